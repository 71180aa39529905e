//! Uncoarsening: undoes the merges level by level and moves vertices across the borders of stages.
//!
//! Parts are numbered in a topological order: no edge leads to an earlier part. A vertex may move to a neighbouring
//! part if none of its predecessors is behind that part and none of its successors before it. This alone keeps the
//! quotient acyclic (after Moreira, Popp and Schulz, SEA 2017). A move is accepted if it improves the slowest stage or
//! cut, then the sum of squares over all stages, then the traffic over cuts: load flows from a slow stage through
//! others to a light one.
//!
//! Sums are exact, so that refinement never worsens the input. A pass takes `O(vertices · degree · stages)` while the
//! last part that needs a vertex seldom loses its only successor in it, else `O(vertices · degree²)`. At most eight
//! passes.

use std::ops::Index;

use super::{coarsen::CostGraph, stages::MachineModel};
use plantui_core::mapping::rounded::rounded;
use plantui_core::{search::Search, workload::states::ExactSum};

/// Maximum number of passes over all vertices. It bounds the time of one level.
const PASSES: usize = 8;

/// Objective of a partition, compared lexicographically; less is better.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub(super) struct PartitionObjective {
    most: f64,
    squares: f64,
    cuts: f64,
}

impl PartitionObjective {
    /// True if it is less by more than rounding.
    fn is_less(&self, than: &PartitionObjective) -> bool {
        let rounded = |objective: &PartitionObjective| {
            (rounded(objective.most), rounded(objective.squares), rounded(objective.cuts))
        };
        rounded(self) < rounded(than)
    }
}

/// Partition under refinement.
pub(super) struct StageRefinement<'a> {
    fine: &'a CostGraph,
    machine: &'a MachineModel,
    /// Number of devices of each part.
    widths: &'a [usize],
    part: Vec<usize>,
    seconds: ExactSums,
    parameters: ExactSums,
    kept: ExactSums,
    vertices: Vec<usize>,
    /// By vertex: last part that needs its output; its own part if none does.
    needed: Vec<usize>,
    /// Bytes across the border before each part.
    cut: ExactSums,
}

/// Sums with additions and removals, by part or border. They are exact, so that a removed large value leaves no error
/// beside small ones.
#[derive(Debug, Clone)]
struct ExactSums {
    exact: Vec<ExactSum>,
    rounded: Vec<f64>,
}

impl ExactSums {
    fn new(count: usize) -> Self {
        ExactSums { exact: vec![ExactSum::default(); count], rounded: vec![0.0; count] }
    }

    fn add(&mut self, at: usize, value: f64) {
        self.exact[at].add(value);
        self.rounded[at] = self.exact[at].value();
    }
}

impl Index<usize> for ExactSums {
    type Output = f64;

    fn index(&self, at: usize) -> &f64 {
        &self.rounded[at]
    }
}

impl<'a> StageRefinement<'a> {
    /// Starts from `part`; `widths` gives the devices of each part.
    pub(super) fn new(fine: &'a CostGraph, machine: &'a MachineModel, widths: &'a [usize], part: Vec<usize>) -> Self {
        let count = widths.len();
        let [seconds, parameters, kept, cut] = [(); 4].map(|()| ExactSums::new(count));
        let needed = (0..part.len()).map(|v| fine.out[v].iter().map(|&w| part[w]).fold(part[v], usize::max)).collect();
        let vertices = vec![0; count];
        let mut new = StageRefinement { fine, machine, widths, part, seconds, parameters, kept, vertices, needed, cut };
        for v in 0..new.part.len() {
            let own = new.part[v];
            new.vertices[own] += 1;
            new.weigh(v, own, 1.0);
            new.carry(v, 1.0);
        }
        new
    }

    fn weigh(&mut self, v: usize, part: usize, sign: f64) {
        self.seconds.add(part, sign * self.fine.seconds[v]);
        self.parameters.add(part, sign * self.fine.parameters[v]);
        self.kept.add(part, sign * self.fine.kept[v]);
    }

    /// Objective of the current partition.
    pub(super) fn objective(&self) -> PartitionObjective {
        let mut objective = PartitionObjective { most: 0.0, squares: 0.0, cuts: 0.0 };
        for (own, &width) in self.widths.iter().enumerate() {
            let over = if own > 0 { self.machine.cut_s(self.cut[own]) } else { 0.0 };
            let behind = if own + 1 < self.widths.len() { self.machine.cut_s(self.cut[own + 1]) } else { 0.0 };
            let between = if self.machine.overlap { 0.0 } else { 2.0 * (over + behind) };
            let stage = self.machine.stage_s(self.seconds[own], self.parameters[own], width) + between;
            let slow = if self.machine.overlap { stage.max(over) } else { stage };
            objective.most = objective.most.max(slow);
            objective.squares += stage * stage;
            objective.cuts += over;
        }
        objective
    }

    /// True if part `own` fits into memory.
    fn fits(&self, own: usize) -> bool {
        let after = self.widths.len() - 1 - own;
        self.machine.fits(self.parameters[own], self.kept[own], self.widths[own], after)
    }

    fn carry(&mut self, v: usize, sign: f64) {
        for border in self.part[v] + 1..=self.needed[v] {
            self.cut.add(border, sign * self.fine.bytes[v]);
        }
    }

    fn shift(&mut self, v: usize, to: usize) {
        let fine = self.fine;
        self.carry(v, -1.0);
        fine.into[v].iter().for_each(|&u| self.carry(u, -1.0));
        self.weigh(v, self.part[v], -1.0);
        self.weigh(v, to, 1.0);
        self.vertices[self.part[v]] -= 1;
        self.vertices[to] += 1;
        let from = std::mem::replace(&mut self.part[v], to);
        self.needed[v] = self.farthest(v, usize::MAX);
        for &u in &fine.into[v] {
            if to >= self.needed[u] {
                self.needed[u] = to;
            } else if from == self.needed[u] {
                self.needed[u] = self.farthest(u, from);
            }
        }
        self.carry(v, 1.0);
        fine.into[v].iter().for_each(|&u| self.carry(u, 1.0));
    }

    /// Last part that needs the output of `v`; the caller guarantees that no such part is behind `most`. Successors are
    /// mostly numbered as their parts are, so in a dense graph the loop usually ends early.
    fn farthest(&self, v: usize, most: usize) -> usize {
        let mut last = self.part[v];
        for &w in self.fine.out[v].iter().rev() {
            last = last.max(self.part[w]);
            if last == most {
                break;
            }
        }
        last
    }

    /// Moves vertices while the objective improves and the search is not cancelled. Returns the parts, never worse than
    /// before.
    pub(super) fn run(mut self, search: &Search) -> Vec<usize> {
        let mut best = self.objective();
        for _ in 0..PASSES {
            let mut moved = false;
            for v in 0..self.fine.len() {
                if search.cancelled() {
                    break;
                }
                let own = self.part[v];
                let earliest = self.fine.into[v].iter().map(|&u| self.part[u]).max().unwrap_or(0);
                let latest = self.fine.out[v].iter().map(|&w| self.part[w]).min().unwrap_or(self.widths.len() - 1);
                for to in [own.wrapping_sub(1), own + 1] {
                    if to < earliest
                        || to > latest
                        || to >= self.widths.len()
                        || self.vertices[self.part[v]] < 2
                        || self.part[v] != own
                    {
                        continue;
                    }
                    self.shift(v, to);
                    let objective = self.objective();
                    if objective.is_less(&best) && self.fits(to) && self.fits(own) {
                        best = objective;
                        moved = true;
                    } else {
                        self.shift(v, own);
                    }
                }
            }
            if !moved || search.cancelled() {
                break;
            }
        }
        self.part
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::coarsen::{coarsen, tests::random_graph},
        *,
    };
    use plantui_core::random::SplitMix;

    #[test]
    fn refinement_keeps_the_order_and_never_worsens() {
        let mut random = SplitMix::new(6);
        let mut better = 0;
        for round in 0..120 {
            let fine = random_graph(&mut random, 6 + round % 20);
            let parts = 2 + round % 4;
            let merges = coarsen(&fine, parts, 1.0, 2.0, &Search::default());
            let (part, count) = merges.level(&fine, parts);
            let machine = MachineModel {
                devices: count,
                widths: vec![1],
                bandwidth: 2.0,
                reduce_s: vec![0.0; 2],
                microbatches: 4.0,
                overlap: round % 2 == 0,
                memory: f64::INFINITY,
                state: 1.0,
            };
            let widths = vec![1; count];
            let before = StageRefinement::new(&fine, &machine, &widths, part.clone()).objective();
            let refined = StageRefinement::new(&fine, &machine, &widths, part).run(&Search::default());
            let after = StageRefinement::new(&fine, &machine, &widths, refined.clone()).objective();
            assert!(!before.is_less(&after), "{before:?} {after:?}");
            better += usize::from(after.is_less(&before));
            assert!((0..fine.len()).all(|v| fine.out[v].iter().all(|&w| refined[v] <= refined[w])));
            assert!((0..count).all(|p| refined.contains(&p)), "no part is emptied");
        }
        assert!(better > 30, "{better}");
    }

    #[test]
    fn sums_and_what_needs_a_vertex_last_are_known_after_every_move() {
        let mut random = SplitMix::new(7);
        for round in 0..60 {
            let mut fine = random_graph(&mut random, 6 + round % 20);
            // Some forbid a cut, or a stage, and all the others are small beside them.
            for values in [&mut fine.bytes, &mut fine.seconds, &mut fine.parameters, &mut fine.kept] {
                values.iter_mut().for_each(|value| *value *= [0.1, 1e30, 1e-3][(random.next_u64() % 3) as usize]);
            }
            let machine = MachineModel {
                devices: 4,
                widths: vec![1],
                bandwidth: 2.0,
                reduce_s: vec![0.0; 2],
                microbatches: 4.0,
                overlap: true,
                memory: f64::INFINITY,
                state: 1.0,
            };
            let widths = [1; 4];
            let part = (0..fine.len()).map(|v| 4 * v / fine.len()).collect();
            let mut moving = StageRefinement::new(&fine, &machine, &widths, part);
            for _ in 0..40 {
                let (v, to) = ((random.next_u64() % fine.len() as u64) as usize, (random.next_u64() % 4) as usize);
                moving.shift(v, to);
                let again = StageRefinement::new(&fine, &machine, &widths, moving.part.clone());
                assert_eq!(moving.needed, again.needed);
                assert_eq!(moving.cut.rounded, again.cut.rounded);
                assert_eq!(moving.seconds.rounded, again.seconds.rounded);
                assert_eq!(moving.parameters.rounded, again.parameters.rounded);
                assert_eq!(moving.kept.rounded, again.kept.rounded);
            }
        }
    }
}
