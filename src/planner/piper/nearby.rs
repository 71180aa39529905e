//! Makes a plan better by planning over the sets near its cuts.
//!
//! A few nodes moved from stage to stage make up most of what a plan over chains of sets lacks. The sets that differ from one
//! of its cuts by a few nodes are a family small enough to plan over in milliseconds, with all cuts free to move at once.
//! From a better plan the search goes on around that one's cuts, until no plan over the sets nearby is better: a local
//! optimum, from which the search over all sets is mostly one question long, and the answer where there are too many
//! sets for that.
//!
//! A round takes the time of a few probes over [`Reach::sets`] sets, those near the best of all starts over [`Reach::last`].

use std::collections::VecDeque;

use rayon::prelude::*;
use rustc_hash::FxHashSet;

use super::{
    bisection::{self, Best, Known, RESOLUTION},
    model::PiperModel,
    orders,
    probe::{Answer, Crew, Question, Threads},
    settings::PiperSettings,
};
use crate::{
    cluster::Limits,
    graph::{Dag, SuccessorSets},
    plan::Plan,
    planner::Search,
    workload::{PiperProfile, Workload},
};

/// How far to look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reach {
    /// Sets to plan over, about.
    pub(super) sets: usize,
    /// The same in the end, near the best plan from all starts.
    pub(super) last: usize,
    /// Better plans to go on from, at most.
    pub(super) rounds: usize,
    /// Families of orders to begin with.
    pub(super) starts: u64,
}

impl Reach {
    /// The same for a network of so many nodes: a start, and a round over many sets, take so much longer in a large one, and
    /// its orders are so many that random ones are of little use.
    pub(super) fn within(self, nodes: usize) -> Reach {
        let nodes = nodes.max(1);
        let starts = self.starts.min((MOST_STARTED / nodes) as u64).max(1);
        Reach { starts, last: self.last.min(MOST_BITS / nodes).max(self.sets), ..self }
    }
}

/// What is planned, and how far to look.
pub(super) struct Near<'n> {
    pub(super) workload: &'n Workload,
    pub(super) profile: &'n PiperProfile,
    pub(super) limits: &'n Limits,
    pub(super) settings: &'n PiperSettings,
    pub(super) reach: Reach,
}

/// Nodes of all starts together, and of all sets of a last round.
const MOST_STARTED: usize = 1_500;
const MOST_BITS: usize = 1_500_000;
/// By how much a better plan is asked for, in this order.
const STEPS: [f64; 3] = [1e-2, 1e-3, RESOLUTION];

impl<'n> Near<'n> {
    /// The best plan met from several starts, `best` and plans over chains of random orders, and then near the best of these
    /// over a larger family. Starts know nothing of one another and go to as many threads as there are; who has none
    /// left helps the others.
    pub(super) fn best_of_starts(&self, best: Option<&Best>, search: &Search) -> Option<Best> {
        let each = self.reach.starts >= rayon::current_num_threads() as u64;
        let threads = if each { Threads::Free } else { Threads::All };
        let from = |seed| {
            let start = if seed == 0 { best.cloned() } else { self.random_start(seed, search) };
            start.map(|start| self.go_on(start, self.reach.sets, threads, search))
        };
        let found: Vec<Option<Best>> = (0..self.reach.starts).into_par_iter().map(from).collect();
        // Of equally good ones the first, however the threads were.
        let best = found.into_iter().flatten().min_by(|a, b| a.value.total_cmp(&b.value));
        best.map(|best| self.go_on(best, self.reach.last, Threads::All, search))
    }

    /// The best plan over chains of random orders; `None` if there is none, or if cancelled.
    fn random_start(&self, seed: u64, search: &Search) -> Option<Best> {
        if search.cancelled() {
            return None;
        }
        let model = self.model(orders::random_chains(&self.workload.dag, seed), search)?;
        let mut crew = Crew::of(Threads::Free, &model, self.settings, self.limits.memory(), search)?;
        let devices = self.limits.devices;
        bisection::minimise(devices, &model, self.settings, &mut crew, Known::default(), search).best
    }

    fn model(&self, sets: SuccessorSets, search: &Search) -> Option<PiperModel<'n>> {
        PiperModel::new(self.workload, self.profile, self.limits, self.settings, sets, search)
    }

    /// The best plan met on the way from `best` over about so many sets a round; `best` itself if the search was cancelled before.
    fn go_on(&self, mut best: Best, sets: usize, threads: Threads, search: &Search) -> Best {
        let mut from = 0;
        for _ in 0..self.reach.rounds {
            match self.step(&best, sets, &mut from, threads, search) {
                Some(better) if better.value < best.value => best = better,
                _ => break,
            }
            search.improve(best.value, &best.plan);
        }
        best
    }

    /// A better plan over the sets near the cuts of `best`. Steps before `from` were refused before: a little
    /// further on the answer is mostly the same.
    fn step(&self, best: &Best, sets: usize, from: &mut usize, threads: Threads, search: &Search) -> Option<Best> {
        let Near { limits, settings, .. } = *self;
        let rows = around(&self.workload.dag, &best.plan, sets);
        let model = self.model(SuccessorSets::of_rows(&self.workload.dag, rows), search)?;
        let mut crew = Crew::of(threads, &model, settings, limits.memory(), search)?;
        let allowed = bisection::allowed(&model);
        for (i, step) in STEPS.iter().enumerate().skip(*from) {
            let question = Question {
                target: best.value * (1.0 - step),
                devices: limits.devices,
                most_replicas: settings.replicas(model.most_replicas),
                allowed: &allowed,
                stages: settings.stages,
                progress: (0.0, 0.0),
            };
            *from = i;
            if let Answer::Yes(stages) = crew.ask(&question, search) {
                return Some(bisection::build(&model, settings, &stages, limits.memory()));
            }
        }
        None
    }
}

/// The sets nearest to the cuts of a plan, about `most` of them and the cuts themselves at the least.
fn around(dag: &Dag, plan: &Plan, most: usize) -> Vec<Vec<u64>> {
    let words = dag.len().div_ceil(64).max(1);
    let mut cut = vec![0; words];
    let mut cuts = vec![];
    for stage in plan.stages.iter().skip(1).rev() {
        stage.nodes.iter().map(|v| v.index()).for_each(|v| cut[v / 64] |= 1u64 << (v % 64));
        cuts.push(cut.clone());
    }
    let each = most / cuts.len().max(1);
    let mut seen: FxHashSet<Vec<u64>> = FxHashSet::default();
    let mut rows = vec![];
    for cut in cuts {
        // Breadth first: the fewest nodes moved come first.
        let mut here: FxHashSet<Vec<u64>> = FxHashSet::default();
        here.insert(cut.clone());
        let mut waiting = VecDeque::from([cut]);
        while let Some(set) = waiting.pop_front() {
            for v in 0..dag.len() {
                if here.len() >= each || !may_change_sides(dag, &set, v) {
                    continue;
                }
                let mut next = set.clone();
                next[v / 64] ^= 1 << (v % 64);
                if here.insert(next.clone()) {
                    waiting.push_back(next);
                }
            }
            if seen.insert(set.clone()) {
                rows.push(set);
            }
        }
    }
    rows
}

/// Whether the set is still closed under successors with the node joining or leaving it.
fn may_change_sides(dag: &Dag, set: &[u64], v: usize) -> bool {
    let inside = |w: usize| set[w / 64] >> (w % 64) & 1 == 1;
    if inside(v) { !dag.predecessors(v).any(inside) } else { dag.successors(v).all(inside) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::Stage, workload::NodeIndex};

    #[test]
    fn large_networks_are_looked_at_less_far() {
        let reach = Reach { sets: 1_500, last: 10_000, rounds: 80, starts: 12 };
        let looked = |nodes: usize| {
            let Reach { sets, last, starts, .. } = reach.within(nodes);
            assert!(starts as usize * nodes <= MOST_STARTED.max(nodes) && last * nodes <= MOST_BITS.max(sets * nodes));
            (starts, last)
        };
        assert_eq!(looked(0), (12, 10_000));
        assert_eq!(looked(40), (12, 10_000));
        assert_eq!(looked(300), (5, 5_000));
        assert_eq!(looked(100_000), (1, 1_500));
    }

    #[test]
    fn sets_near_a_cut_are_closed_and_hold_the_cut() {
        // Two chains of six side by side, cut in three.
        let dag = Dag::new(12, (0..12u32).filter(|v| v % 6 != 5).map(|v| (v, v + 1)).collect()).unwrap();
        let stage = |nodes: &[usize]| Stage {
            nodes: NodeIndex::list(nodes.iter().copied()),
            choices: vec![],
            data_parallel: 1,
            tensor_parallel: 1,
            devices: vec![],
        };
        let stages = vec![stage(&[0, 1, 6, 7]), stage(&[2, 3, 8, 9]), stage(&[4, 5, 10, 11])];
        let rows = around(&dag, &Plan { stages, ..Plan::default() }, 20);
        let cut = |nodes: &[usize]| vec![nodes.iter().fold(0u64, |row, &v| row | 1 << v)];
        assert!(rows.contains(&cut(&[4, 5, 10, 11])) && rows.contains(&cut(&[2, 3, 4, 5, 8, 9, 10, 11])), "{rows:?}");
        assert!((12..=20).contains(&rows.len()), "{rows:?}");
        for row in rows {
            let inside = |v: usize| row[0] >> v & 1 == 1;
            assert!((0..12).filter(|&v| inside(v)).all(|v| dag.successors(v).all(inside)), "{row:?}");
        }
    }
}
