//! Recursive bipartition as in Scotch (Pellegrini and Roman, 1996): halves the devices along a narrow cut and the
//! workers along a cut with little traffic, assigns half to half, and recurses.
//!
//! Halves are improved by exchanges while one reduces the cut. `O(n³)` time for `n` devices, `O(n²)` memory, so it is
//! limited to [`HALVED`] devices.

use super::MappingInstance;
use crate::search::Search;

/// Largest number of devices for bipartition: the traffic matrix then takes 128 MiB.
pub(super) const HALVED: usize = 4096;

/// Splits items into `size` and the rest with a small cut; `weight` is the weight between two items.
fn halves(
    things: &[usize],
    size: usize,
    weight: &impl Fn(usize, usize) -> f64,
    search: &Search,
) -> (Vec<usize>, Vec<usize>) {
    let mut first = things[..size].to_vec();
    let mut second = things[size..].to_vec();
    // Every exchange reduces the cut, so the loop ends; the limit guards against cycles from rounding.
    for _ in 0..things.len() * 4 {
        if search.cancelled() {
            break;
        }
        let pull = |thing: usize, there: &[usize], here: &[usize]| -> f64 {
            let sum = |others: &[usize]| others.iter().filter(|&&o| o != thing).map(|&o| weight(thing, o)).sum::<f64>();
            sum(there) - sum(here)
        };
        let out: Vec<f64> = first.iter().map(|&thing| pull(thing, &second, &first)).collect();
        let into: Vec<f64> = second.iter().map(|&thing| pull(thing, &first, &second)).collect();
        let mut best = (0.0, None);
        for (a, gain_a) in out.iter().enumerate() {
            for (b, gain_b) in into.iter().enumerate() {
                let gain = gain_a + gain_b - 2.0 * weight(first[a], second[b]);
                if gain > best.0 {
                    best = (gain, Some((a, b)));
                }
            }
        }
        let scale = out.iter().chain(&into).map(|gain| gain.abs()).fold(0.0, f64::max);
        match best {
            (gain, Some((a, b))) if gain > 1e-9 * scale => std::mem::swap(&mut first[a], &mut second[b]),
            _ => break,
        }
    }
    first.sort_unstable();
    second.sort_unstable();
    (first, second)
}

impl MappingInstance<'_> {
    /// Mapping by recursive bipartition.
    pub(super) fn bipartition(&self, search: &Search) -> Vec<usize> {
        let workers = self.workers();
        let mut said = vec![vec![0.0; workers]; workers];
        for flow in &self.demands.flows {
            said[flow.from][flow.to] += flow.bytes;
            said[flow.to][flow.from] += flow.bytes;
        }
        for group in &self.demands.groups {
            for &a in &group.workers {
                for &b in group.workers.iter().filter(|&&b| b != a) {
                    said[a][b] += group.bytes;
                }
            }
        }
        let mut mapping = vec![0; workers];
        let all: Vec<usize> = (0..workers).collect();
        let devices: Vec<usize> = (0..self.devices()).collect();
        self.part(&said, (&all, &devices), &mut mapping, search);
        mapping
    }

    fn part(
        &self,
        said: &[Vec<f64>],
        (workers, devices): (&[usize], &[usize]),
        mapping: &mut [usize],
        search: &Search,
    ) {
        if workers.is_empty() {
            return;
        }
        if let ([worker], [device, ..]) = (workers, devices) {
            mapping[*worker] = *device;
            return;
        }
        let wide = |a: usize, b: usize| self.matrix.both_ways(a, b);
        let size = devices.len() / 2;
        let (left, right) = halves(devices, size, &wide, search);
        // Each half gets workers in proportion to its devices, within its capacity.
        let share = (workers.len() * left.len()).div_ceil(devices.len());
        let share = share.min(left.len()).max(workers.len().saturating_sub(right.len()));
        let (first, second) = halves(workers, share, &|a, b| said[a][b], search);
        self.part(said, (&first, &left), mapping, search);
        self.part(said, (&second, &right), mapping, search);
    }
}
