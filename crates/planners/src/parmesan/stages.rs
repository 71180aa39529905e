//! Dynamic program over a chain of clusters: chooses the clusters and the number of devices of each stage.
//!
//! ```text
//! G[s][i][d] = min over j > i and r ≤ d of  max( stage(i, j, r), cut(j), G[s−1][j][d−r] )
//! ```
//!
//! It runs from the last stage backwards, so the number of stages behind a stage is known, and with it the
//! number of microbatches in flight. `stage` is the compute on `r` devices plus one microbatch's part of the
//! all-reduce. `cut(j)` is all data that crosses position `j`, one way, because links are full duplex. Without overlap
//! of compute and sending, both directions of both cuts are added to the stage. Every number of stages has its own
//! optimum; the simulator decides which is fastest.
//!
//! Time is `O(clusters² · devices · widths · stages)`; each state takes eight bytes. Above [`MOST_STEPS`] steps,
//! devices are assigned in units of two, four and so on. Numbers of stages that need more than [`MOST_STATES`] states
//! are left out.

use super::coarsen::CostGraph;
use plantui_core::{search::Search, workload::states::ExactSum};

/// Number of steps of the program above which devices are assigned in larger units. It bounds the time of one chain.
const MOST_STEPS: f64 = 4e9;
/// Minimum number of units. It bounds the error of the units.
const LEAST_UNITS: usize = 16;
/// Maximum number of states: 256 MB.
const MOST_STATES: usize = 1 << 25;

/// Devices that stages run on, with the costs of the chain.
#[derive(Debug, Clone)]
pub(super) struct MachineModel {
    /// Number of devices.
    pub(super) devices: usize,
    /// Numbers of devices that a stage may have, ascending.
    pub(super) widths: Vec<usize>,
    /// Bytes per second between two stages.
    pub(super) bandwidth: f64,
    /// Seconds of an all-reduce per byte, by number of devices.
    pub(super) reduce_s: Vec<f64>,
    /// Microbatches per iteration.
    pub(super) microbatches: f64,
    /// True if devices compute while they send.
    pub(super) overlap: bool,
    /// Memory of a device, bytes.
    pub(super) memory: f64,
    /// Bytes of weights, gradients and optimizer state per byte of parameters.
    pub(super) state: f64,
}

impl MachineModel {
    /// Seconds per microbatch of a stage with these sums, without transfers.
    pub(super) fn stage_s(&self, seconds: f64, parameters: f64, devices: usize) -> f64 {
        seconds / devices as f64 + self.reduce_s[devices] * parameters / self.microbatches
    }

    /// Seconds to send bytes over a cut, one way.
    pub(super) fn cut_s(&self, bytes: f64) -> f64 {
        bytes / self.bandwidth
    }

    /// True if a stage fits into memory with `after` stages behind it.
    pub(super) fn fits(&self, parameters: f64, kept: f64, devices: usize, after: usize) -> bool {
        let in_flight = ((2 * after + 1) as f64).min(self.microbatches);
        self.state * parameters + in_flight * kept / devices as f64 <= self.memory
    }
}

/// Stages along a chain: the end of each, and its devices.
pub(super) type ChainCuts = Vec<(usize, usize)>;

/// Bytes that cross every position of a chain, once per producer, up to its last consumer. Sums are exact: very large
/// bytes that forbid a cut leave no rounding error behind after their last consumer.
pub(super) fn cut_bytes(fine: &CostGraph, part: &[usize], parts: usize) -> Vec<f64> {
    let mut steps = vec![];
    for v in 0..fine.len() {
        let last = fine.out[v].iter().map(|&w| part[w]).max().unwrap_or(part[v]);
        if last > part[v] {
            steps.push((part[v] + 1, fine.bytes[v]));
            steps.push((last + 1, -fine.bytes[v]));
        }
    }
    steps.sort_unstable_by_key(|step| step.0);
    let mut steps = steps.into_iter().peekable();
    let mut now = ExactSum::default();
    let over = |at: usize| {
        while let Some((_, bytes)) = steps.next_if(|step| step.0 <= at) {
            now.add(bytes);
        }
        now.value()
    };
    (0..=parts).map(over).collect()
}

/// Number of devices that are assigned together, so that the program ends in reasonable time.
fn unit(parts: usize, machine: &MachineModel) -> usize {
    let steps = |unit: usize| {
        let (units, parts) = (machine.devices / unit, parts as f64);
        let widths = machine.widths.iter().filter(|width| width.is_multiple_of(unit)).count();
        parts * parts / 2.0 * units as f64 * widths as f64 * parts.min(units as f64)
    };
    // Without replicas, all stages have a single device, and larger units are not possible.
    let widest = machine.widths.last().copied().unwrap_or(1);
    let mut unit = 1;
    while steps(unit) > MOST_STEPS && machine.devices / (2 * unit) >= LEAST_UNITS && 2 * unit <= widest {
        unit *= 2;
    }
    unit
}

/// Best cuts of the chain and their bottleneck, for every number of stages, fewest first. `part` gives the cluster of
/// each vertex; clusters are numbered along the chain. A cancelled search returns the numbers of stages finished so
/// far.
pub(super) fn chain(
    fine: &CostGraph,
    part: &[usize],
    parts: usize,
    machine: &MachineModel,
    search: &Search,
) -> Vec<(f64, ChainCuts)> {
    let unit = unit(parts, machine);
    let widths: Vec<usize> = machine.widths.iter().copied().filter(|width| width.is_multiple_of(unit)).collect();
    // If every stage has one device, the number of stages implies the number of devices.
    let single = widths == [1];
    let (n, devices) = (parts, if single { 0 } else { machine.devices / unit });
    let units = |r: usize| if single { 0 } else { r / unit };
    let mut own = vec![[0.0; 3]; n];
    for v in 0..fine.len() {
        for (sum, value) in own[part[v]].iter_mut().zip([fine.seconds[v], fine.parameters[v], fine.kept[v]]) {
            *sum += value;
        }
    }
    let cut = cut_bytes(fine, part, parts);
    let width = devices + 1;
    let states = (n + 1) * width;
    // Base case: the empty suffix has no stages.
    let mut later = vec![f64::INFINITY; states];
    (0..width).for_each(|d| later[n * width + d] = 0.0);
    let mut choices: Vec<Vec<(u32, u32)>> = vec![];
    let mut found = vec![];
    let most_stages = n.min(machine.devices / unit).min(MOST_STATES.div_ceil(states));
    for stages in 1..=most_stages {
        let mut now = vec![f64::INFINITY; states];
        let mut choice = vec![(0u32, 0u32); states];
        for i in 0..n {
            if search.cancelled() {
                return found;
            }
            let mut sums = [0.0; 3];
            for j in i + 1..=n {
                // Summed upwards. Subtracting from a longer sum would lose small values beside a large one.
                let added = own[j - 1];
                sums = [sums[0] + added[0], sums[1] + added[1], sums[2] + added[2]];
                let [seconds, parameters, kept] = sums;
                let over = if j < n { machine.cut_s(cut[j]) } else { 0.0 };
                let between = if machine.overlap { 0.0 } else { 2.0 * (over + machine.cut_s(cut[i])) };
                for &r in &widths {
                    if !machine.fits(parameters, kept, r, stages - 1) {
                        continue;
                    }
                    let stage = machine.stage_s(seconds, parameters, r) + between;
                    let stage = if machine.overlap { stage.max(over) } else { stage };
                    for d in units(r)..=devices {
                        let value = stage.max(later[j * width + d - units(r)]);
                        if value < now[i * width + d] {
                            now[i * width + d] = value;
                            choice[i * width + d] = (j as u32, r as u32);
                        }
                    }
                }
            }
        }
        choices.push(choice);
        if now[devices].is_finite() {
            let (mut at, mut left, mut cuts) = (0, devices, vec![]);
            for choice in choices.iter().rev() {
                let (j, r) = choice[at * width + left];
                cuts.push((j as usize, r as usize));
                (at, left) = (j as usize, left - units(r as usize));
            }
            found.push((now[devices], cuts));
        }
        later = now;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{super::coarsen::tests::random_graph, *};
    use plantui_core::random::SplitMix;

    /// Tries all ways to cut a chain into stages on devices.
    fn brute(fine: &CostGraph, part: &[usize], from: usize, devices: usize, machine: &MachineModel) -> f64 {
        let n = fine.len();
        if from == n {
            return 0.0;
        }
        let cut = cut_bytes(fine, part, n);
        let sum = |values: &[f64], i: usize, j: usize| {
            (0..n).filter(|&v| part[v] >= i && part[v] < j).map(|v| values[v]).sum::<f64>()
        };
        let mut best = f64::INFINITY;
        for to in from + 1..=n {
            for r in 1..=devices {
                let own = machine.stage_s(sum(&fine.seconds, from, to), sum(&fine.parameters, from, to), r);
                let over = if to < n { machine.cut_s(cut[to]) } else { 0.0 };
                let own = if machine.overlap { own.max(over) } else { own + 2.0 * (over + machine.cut_s(cut[from])) };
                best = best.min(own.max(brute(fine, part, to, devices - r, machine)));
            }
        }
        best
    }

    #[test]
    fn the_chain_is_cut_as_all_cuts_say() {
        let mut random = SplitMix::new(9);
        for round in 0..240 {
            let fine = random_graph(&mut random, 1 + round % 6);
            let devices = 1 + round % 4;
            let machine = MachineModel {
                devices,
                widths: (1..=devices).collect(),
                bandwidth: 1.0 + (round % 7) as f64,
                reduce_s: (0..=devices).map(|r| if r > 1 { 0.5 * (r - 1) as f64 / r as f64 } else { 0.0 }).collect(),
                microbatches: 4.0,
                overlap: round % 2 == 0,
                memory: f64::INFINITY,
                state: 1.0,
            };
            let part: Vec<usize> = (0..fine.len()).collect();
            let found = chain(&fine, &part, fine.len(), &machine, &Search::default());
            let best = found.iter().map(|found| found.0).fold(f64::INFINITY, f64::min);
            let expected = brute(&fine, &part, 0, devices, &machine);
            assert!((best - expected).abs() <= 1e-12 * expected, "{round}: {best} {expected}");
            for (stages, (_, cuts)) in (1..).zip(&found) {
                assert_eq!(cuts.len(), stages);
                assert!(cuts.iter().map(|cut| cut.1).sum::<usize>() <= devices);
                assert_eq!(cuts[stages - 1].0, fine.len());
            }
        }
    }

    #[test]
    fn bytes_that_forbid_a_cut_leave_the_other_cuts_as_they_are() {
        let mut fine = random_graph(&mut SplitMix::new(3), 0);
        let bytes = [5.0, 1e30, 3.0, 0.1, 4.0, 1.0];
        fine.bytes = bytes.to_vec();
        fine.seconds = vec![1.0, 1.0, 1.0, 1.0, 2.0, 3.0];
        (fine.parameters, fine.kept, fine.order) = (vec![1.0; 6], vec![1.0; 6], (0..6).collect());
        fine.out = (0..6).map(|v| if v < 5 { vec![v + 1] } else { vec![] }).collect();
        fine.into = (0..6).map(|v| if v > 0 { vec![v - 1] } else { vec![] }).collect();
        let part: Vec<usize> = (0..6).collect();
        assert_eq!(cut_bytes(&fine, &part, 6), [0.0, 5.0, 1e30, 3.0, 0.1, 4.0, 0.0]);
        let machine = MachineModel {
            devices: 2,
            widths: vec![1],
            bandwidth: 1.0,
            reduce_s: vec![0.0; 3],
            microbatches: 4.0,
            overlap: true,
            memory: f64::INFINITY,
            state: 1.0,
        };
        let found = chain(&fine, &part, 6, &machine, &Search::default());
        assert_eq!(found[1], (5.0, vec![(4, 1), (6, 1)]));
    }

    #[test]
    fn memory_is_kept_for_what_is_in_flight() {
        let fine = random_graph(&mut SplitMix::new(4), 6);
        let machine = MachineModel {
            devices: 3,
            widths: vec![1, 2, 3],
            bandwidth: 1.0,
            reduce_s: vec![0.0; 4],
            microbatches: 8.0,
            overlap: true,
            memory: 12.0,
            state: 1.0,
        };
        let part: Vec<usize> = (0..6).collect();
        let found = chain(&fine, &part, 6, &machine, &Search::default());
        // All on one device would hold 6 bytes of weights and 6 in flight; on three stages the first has five times its own.
        assert!(!found.is_empty());
        for (_, cuts) in &found {
            let mut from = 0;
            for (stage, &(to, r)) in cuts.iter().enumerate() {
                let own = (to - from) as f64;
                assert!(own + own * (2 * (cuts.len() - 1 - stage) + 1) as f64 / r as f64 <= 12.0, "{cuts:?}");
                from = to;
            }
        }
        let small = MachineModel { memory: 1.5, ..machine };
        assert!(chain(&fine, &part, 6, &small, &Search::default()).is_empty());
    }
}
