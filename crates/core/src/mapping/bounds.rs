//! Lower bounds on the seconds of every mapping.
//!
//! 1. Sorted: the `i` largest flows use `i` different pairs, the narrowest of which is at most as wide as the `i`-th
//!    widest.
//! 2. Neighbours: the `i`-th largest flow of a worker uses at best the `i`-th widest pair of its device.
//! 3. Components: if a connected set of workers is larger than any component of the topology at some width, one of its
//!    flows uses a narrower pair.
//! 4. Rings: the narrowest step of a ring is at most as wide as the `r`-th largest second-widest pair of a device. It
//!    is also at most the largest width at which some component has `r` devices.
//!
//! The components at every width come from the maximum spanning tree, built once (Prim's algorithm, `O(devices²)`).
//! Time is `O(devices² log devices + flows · (log flows + devices))` in the worst case, memory `O(devices + flows)`. A
//! cancelled search skips bounds: the result is then lower, but still a lower bound.

use super::{MappingInstance, ReductionGroup};
use crate::search::Search;

/// Size of the largest component of the topology at each width.
struct ComponentSizes {
    /// Widths, the widest first, each with the size of the largest component over pairs of at least that width. Only
    /// widths at which the size grows.
    largest: Vec<(f64, usize)>,
}

impl ComponentSizes {
    /// Computes the components over all devices; `None` if the search was cancelled.
    fn of(instance: &MappingInstance<'_>, search: &Search) -> Option<Self> {
        let n = instance.devices();
        // By device outside the tree: the widest pair to the tree, and its other end.
        let mut widest = vec![(f64::NEG_INFINITY, 0); n];
        let mut outside: Vec<usize> = (1..n).collect();
        let (mut last, mut tree) = (0, vec![]);
        while !outside.is_empty() {
            if search.cancelled() {
                return None;
            }
            let mut next = 0;
            for (at, &device) in outside.iter().enumerate() {
                let width = instance.matrix.at(last, device).max(instance.matrix.at(device, last));
                if width > widest[device].0 {
                    widest[device] = (width, last);
                }
                if widest[device].0 > widest[outside[next]].0 {
                    next = at;
                }
            }
            last = outside.swap_remove(next);
            tree.push((widest[last].0, widest[last].1, last));
        }
        tree.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let (mut joined, mut largest) = (UnionFind::new(n), vec![]);
        for (width, a, b) in tree {
            let before = joined.largest;
            joined.join(a, b);
            if joined.largest > before {
                largest.push((width, joined.largest));
            }
        }
        Some(ComponentSizes { largest })
    }

    /// Largest width at which some component has at least `size` devices.
    fn widest(&self, size: usize) -> Option<f64> {
        let at = self.largest.partition_point(|part| part.1 < size);
        self.largest.get(at).map(|part| part.0)
    }
}

/// Union-find with the size of the largest component.
struct UnionFind {
    part: Vec<usize>,
    size: Vec<usize>,
    /// Size of the largest component.
    largest: usize,
}

impl UnionFind {
    fn new(count: usize) -> Self {
        UnionFind { part: (0..count).collect(), size: vec![1; count], largest: count.min(1) }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.part[at] != at {
            self.part[at] = self.part[self.part[at]];
            at = self.part[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            let (into, from) = if self.size[a] < self.size[b] { (b, a) } else { (a, b) };
            self.part[from] = into;
            self.size[into] += self.size[from];
            self.largest = self.largest.max(self.size[into]);
        }
    }
}

/// Keeps the `count` largest values, in descending order.
fn keep_largest(values: &mut Vec<f64>, count: usize) {
    let descending = |a: &f64, b: &f64| b.total_cmp(a);
    if count < values.len() {
        values.select_nth_unstable_by(count, descending);
        values.truncate(count);
    }
    values.sort_unstable_by(descending);
}

impl MappingInstance<'_> {
    /// Lower bound on the seconds of every mapping; weaker if the search was cancelled.
    pub fn lower_bound(&self, search: &Search) -> f64 {
        let alone = self.sorted(search).max(self.neighbours(search));
        let Some(parts) = ComponentSizes::of(self, search) else { return alone };
        alone.max(self.components(&parts)).max(self.rings(&parts, search))
    }

    fn sorted(&self, search: &Search) -> f64 {
        let mut bytes: Vec<f64> = self.demands.flows.iter().map(|flow| flow.bytes).collect();
        bytes.sort_unstable_by(|a, b| b.total_cmp(a));
        let (n, count) = (self.devices(), bytes.len());
        let mut widths = vec![];
        for a in (0..n).take_while(|_| count > 0) {
            if search.cancelled() {
                return 0.0;
            }
            widths.extend((0..n).filter(|&b| b != a).map(|b| self.matrix.at(a, b)));
            if widths.len() > 2 * count {
                keep_largest(&mut widths, count);
            }
        }
        keep_largest(&mut widths, count);
        bytes.iter().zip(widths).map(|(bytes, width)| bytes / width).fold(0.0, f64::max)
    }

    fn neighbours(&self, search: &Search) -> f64 {
        let out = |a: usize, b: usize| self.matrix.at(a, b);
        let into = |a: usize, b: usize| self.matrix.at(b, a);
        self.neighbours_at(&self.leaving, out, search).max(self.neighbours_at(&self.arriving, into, search))
    }

    /// Neighbours bound in one direction; `flows` holds the flows of each worker in that direction.
    fn neighbours_at(&self, flows: &[Vec<usize>], width: impl Fn(usize, usize) -> f64, search: &Search) -> f64 {
        let n = self.devices();
        let talking = flows.iter().filter(|own| !own.is_empty());
        let mut talking: Vec<(f64, Vec<f64>)> = talking
            .map(|own| {
                let mut bytes: Vec<f64> = own.iter().map(|&flow| self.demands.flows[flow].bytes).collect();
                bytes.sort_unstable_by(|a, b| b.total_cmp(a));
                (f64::INFINITY, bytes)
            })
            .collect();
        let Some(most_flows) = talking.iter().map(|(_, bytes)| bytes.len()).max() else { return 0.0 };
        for a in 0..n {
            if search.cancelled() {
                return 0.0;
            }
            let mut widths: Vec<f64> = (0..n).filter(|&b| b != a).map(|b| width(a, b)).collect();
            keep_largest(&mut widths, most_flows);
            for (least, bytes) in &mut talking {
                let mut here = 0.0f64;
                for (bytes, width) in bytes.iter().zip(&widths) {
                    here = here.max(bytes / width);
                    // An earlier device is better for this worker.
                    if here >= *least {
                        break;
                    }
                }
                *least = least.min(here);
            }
        }
        talking.into_iter().map(|(least, _)| least).fold(0.0, f64::max)
    }

    fn components(&self, parts: &ComponentSizes) -> f64 {
        let mut flows: Vec<_> = self.demands.flows.iter().collect();
        flows.sort_unstable_by(|a, b| b.bytes.total_cmp(&a.bytes));
        let mut talkers = UnionFind::new(self.workers());
        let mut bound = 0.0f64;
        // If no component is large enough for the workers joined by flows of at least these bytes, one flow uses a
        // narrower pair.
        for alike in flows.chunk_by(|a, b| a.bytes == b.bytes) {
            alike.iter().for_each(|flow| talkers.join(flow.from, flow.to));
            // Largest width at which a component has that many devices; no mapping gives all of them a larger one.
            if let Some(width) = parts.widest(talkers.largest) {
                bound = bound.max(alike[0].bytes / width);
            }
        }
        bound
    }

    fn rings(&self, parts: &ComponentSizes, search: &Search) -> f64 {
        let n = self.devices();
        // A device in a ring of three or more uses two pairs: at best, the narrower one is its second widest.
        let mut second = vec![];
        for a in (0..n).take_while(|_| self.demands.groups.iter().any(|group| group.workers.len() > 2)) {
            if search.cancelled() {
                return 0.0;
            }
            let others = (0..n).filter(|&b| b != a);
            let mut widths: Vec<f64> = others.map(|b| self.matrix.at(a, b).max(self.matrix.at(b, a))).collect();
            keep_largest(&mut widths, 2);
            second.push(widths.last().copied().unwrap_or(f64::INFINITY));
        }
        second.sort_unstable_by(|a, b| b.total_cmp(a));
        let bound = |group: &ReductionGroup| {
            let size = group.workers.len();
            let steps = match size {
                0 | 1 => return 0.0,
                2 => f64::INFINITY,
                _ => second.get(size - 1).copied().unwrap_or(f64::INFINITY),
            };
            // A ring lies within one component.
            group.bytes / steps.min(parts.widest(size).unwrap_or(f64::INFINITY))
        };
        self.demands.groups.iter().map(bound).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        cluster::topology::{PairMatrix, named},
        mapping::{CommunicationKinds, Demands, Flow},
        random::SplitMix,
    };

    /// Size of the largest component of `count` items, by relabelling.
    fn largest(count: usize, joined: impl Fn(usize, usize) -> bool) -> usize {
        let mut part: Vec<usize> = (0..count).collect();
        for a in 0..count {
            for b in (0..count).filter(|&b| joined(a, b)) {
                let (keep, gone) = (part[a], part[b]);
                part.iter_mut().filter(|part| **part == gone).for_each(|part| *part = keep);
            }
        }
        (0..count).map(|own| part.iter().filter(|&&part| part == own).count()).max().unwrap_or(0)
    }

    /// Random demands, and widths that differ for every pair or take few values.
    fn measured(random: &mut SplitMix, n: usize, few: bool) -> (Demands, PairMatrix) {
        let mut draw = |values: u64| (1 + random.next_u64() % values) as f64;
        let values = if few { 4 } else { 1 << 40 };
        let rows: Vec<Vec<f64>> =
            (0..n).map(|a| (0..n).map(|b| if a == b { f64::INFINITY } else { draw(values) }).collect()).collect();
        let workers = n - (draw(2) as usize - 1);
        let mut demands = Demands::chain(&vec![1.0; workers - 1]);
        demands.flows.clear();
        for from in 0..workers {
            for to in (0..workers).filter(|&to| to != from) {
                if draw(4) < 2.0 {
                    demands.flows.push(Flow { from, to, bytes: draw(values) });
                }
            }
        }
        for size in 2..=workers {
            demands.groups.push(ReductionGroup { workers: (0..size).collect(), bytes: draw(values) });
        }
        (demands, PairMatrix::new(&rows).unwrap())
    }

    #[test]
    fn parts_and_bounds_are_those_of_every_width_looked_at_by_itself() {
        let topology = named("dgx-1").unwrap();
        let mut random = SplitMix::new(21);
        for round in 0..120 {
            let n = 2 + round % 9;
            let (demands, matrix) = measured(&mut random, n, round % 2 == 0);
            let instance = MappingInstance::among(&topology, Arc::new(matrix), &demands, CommunicationKinds::default());
            let parts = ComponentSizes::of(&instance, &Search::default()).unwrap();
            let wide = |a: usize, b: usize| instance.matrix.at(a, b).max(instance.matrix.at(b, a));
            let mut widths: Vec<f64> = (0..n * n).map(|i| instance.matrix.at(i / n, i % n)).collect();
            widths.retain(|width| width.is_finite());
            widths.sort_unstable_by(|a, b| b.total_cmp(a));
            let at = |width: f64| largest(n, |a, b| a != b && wide(a, b) >= width);
            let widest = |size: usize| widths.iter().copied().find(|&width| at(width) >= size);
            for size in 2..=n {
                assert_eq!(parts.widest(size), widest(size), "{round} {size}");
            }
            let talkers = |bytes: f64| {
                let talk = |a: usize, b: usize| {
                    demands.flows.iter().any(|flow| (flow.from, flow.to) == (a, b) && flow.bytes >= bytes)
                };
                largest(demands.workers.len(), talk)
            };
            let flows = demands.flows.iter().map(|flow| flow.bytes);
            let components = flows.map(|bytes| bytes / widest(talkers(bytes)).unwrap()).fold(0.0, f64::max);
            assert_eq!(instance.components(&parts), components, "{round}");
            let mut bytes: Vec<f64> = demands.flows.iter().map(|flow| flow.bytes).collect();
            bytes.sort_unstable_by(|a, b| b.total_cmp(a));
            let sorted = bytes.iter().zip(&widths).map(|(bytes, width)| bytes / width).fold(0.0, f64::max);
            assert_eq!(instance.sorted(&Search::default()), sorted, "{round}");
            if n <= 6 {
                let least = instance.exhaustive(&Search::default()).unwrap();
                assert!(instance.lower_bound(&Search::default()) <= instance.cost(&least).seconds, "{round}");
            }
        }
    }

    #[test]
    fn a_search_that_was_stopped_has_a_bound_that_is_no_higher() {
        let topology = named("dgx-1").unwrap();
        let (demands, matrix) = measured(&mut SplitMix::new(5), 8, false);
        let instance = MappingInstance::among(&topology, Arc::new(matrix), &demands, CommunicationKinds::default());
        let stopped = Search::default();
        stopped.cancel();
        assert!(instance.lower_bound(&stopped) <= instance.lower_bound(&Search::default()));
    }
}
