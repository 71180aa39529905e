//! Tries every plan of a small Piper problem: all ordered partitions into stages, all degrees, all modes.
//!
//! Shares nothing with the planner: sets are bit masks, stages are measured by `plan::check`, and the best is found by
//! the plain recurrence over (tail, replicas, devices), each exact, without closing or discarding anything.

use plantui::{
    cluster::Limits,
    family::check,
    plan::{Execution, Plan, Stage, WarmUp},
    workload::{Choice, NodeIndex, Workload},
};
use std::collections::BTreeMap;

/// Which modes may be combined in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modes {
    Any,
    Never,
    Always,
    AllOrNone,
}

/// What plans may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) data_parallel: bool,
    pub(crate) tensor_parallel: bool,
    pub(crate) modes: Modes,
    /// Exactly so many stages.
    pub(crate) stages: Option<usize>,
    /// At most so many replicas of all stages together.
    pub(crate) most_replicas: Option<usize>,
    /// Whether warm-ups are rounded on from the last stage.
    pub(crate) cumulative: bool,
}

/// One way to run a stage.
#[derive(Debug, Clone)]
struct Way {
    choices: Vec<Choice>,
    /// Whether every node recomputes that has a mode for it.
    recomputing: bool,
    load: f64,
    /// By microbatches in flight, from 1.
    memory: Vec<f64>,
}

/// A stage with its degrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    mask: u32,
    t: u32,
    d: u32,
}

/// All stages of a problem, measured.
pub(crate) struct EveryPlan<'a> {
    workload: &'a Workload,
    limits: Limits,
    most_replicas: usize,
    /// Sets that hold every successor of each member, smaller ones first.
    tails: Vec<u32>,
    ways: BTreeMap<Cut, Vec<Way>>,
}

fn members(mask: u32) -> Vec<NodeIndex> {
    NodeIndex::first(32).filter(|v| mask >> v.index() & 1 == 1).collect()
}

impl<'a> EveryPlan<'a> {
    /// Measures every stage with at most `limits.devices` devices. The memory limit plays no part yet.
    pub(crate) fn new(workload: &'a Workload, limits: &Limits) -> Self {
        let n = workload.nodes.len();
        let closed = |&mask: &u32| workload.dag.edges().iter().all(|&(u, v)| mask >> u & 1 == 0 || mask >> v & 1 == 1);
        let mut tails: Vec<u32> = (0..1u32 << n).filter(closed).collect();
        tails.sort_by_key(|mask| mask.count_ones());
        let mut every = EveryPlan {
            workload,
            limits: limits.clone(),
            most_replicas: limits.microbatches.min(limits.devices) as usize,
            tails,
            ways: BTreeMap::new(),
        };
        let mut masks: Vec<u32> =
            every.pairs().into_iter().map(|(outer, inner)| every.tails[outer] & !every.tails[inner]).collect();
        masks.sort_unstable();
        masks.dedup();
        for mask in masks {
            for t in workload.piper().unwrap().degrees() {
                for d in 1..=every.most_replicas as u32 {
                    if limits.microbatches.is_multiple_of(d) && d * t <= limits.devices {
                        every.measure(Cut { mask, t, d });
                    }
                }
            }
        }
        every
    }

    /// More are never in flight on a replica, however warm-ups are rounded: each stage adds fewer than two rounds of its own.
    fn most_in_flight(&self) -> u32 {
        (2 * self.most_replicas as u32).min(self.limits.microbatches)
    }

    /// Positions of all strictly nested pairs of tails.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let nested = |outer: usize| {
            let mask = self.tails[outer];
            (0..outer).filter(move |&inner| self.tails[inner] & !mask == 0).map(move |inner| (outer, inner))
        };
        (0..self.tails.len()).flat_map(nested).filter(|&(a, b)| self.tails[a] != self.tails[b]).collect()
    }

    fn measure(&mut self, cut: Cut) {
        let nodes = members(cut.mask);
        let profile = self.workload.piper().unwrap();
        let mut lists = vec![];
        for &v in &nodes {
            let Some(modes) = profile.nodes[v].modes(cut.t) else { return };
            lists.push(modes.iter().map(|mode| Choice::Mode(mode.id.clone())).collect::<Vec<_>>());
        }
        let rest = members(((1 << self.workload.nodes.len()) - 1) & !cut.mask);
        let mut at = vec![0; lists.len()];
        let mut ways = vec![];
        loop {
            let choices: Vec<Choice> = lists.iter().zip(&at).map(|(list, &i)| list[i].clone()).collect();
            let could = lists.iter().map(|list| list.iter().any(Choice::recomputes));
            let recomputing = choices.iter().zip(could).all(|(choice, could)| choice.recomputes() || !could);
            let mut way = Way { choices, recomputing, load: 0.0, memory: vec![] };
            for y in 1..=self.most_in_flight() {
                let stage = |nodes: &[NodeIndex], choices: &[Choice], data_parallel| Stage {
                    nodes: nodes.to_vec(),
                    choices: choices.to_vec(),
                    data_parallel,
                    tensor_parallel: cut.t,
                    devices: vec![],
                };
                // Everything else stands behind the stage, with as many replicas as y asks for.
                let plan = Plan {
                    stages: vec![stage(&nodes, &way.choices, cut.d), stage(&rest, &[], (y - 1) * cut.d)],
                    ..Plan::default()
                };
                let score = check(self.workload, &self.limits, &plan);
                assert_eq!(score.stages[0].in_flight, y);
                way.load = score.stages[0].load_s;
                way.memory.push(score.stages[0].memory_bytes);
            }
            ways.push(way);
            // The next choice, the last node's mode turning fastest.
            let Some(turn) = (0..at.len()).rev().find(|&i| at[i] + 1 < lists[i].len()) else { break };
            at[turn] += 1;
            at[turn + 1..].fill(0);
        }
        self.ways.insert(cut, ways);
    }

    /// The best way to run a stage with `y` in flight.
    fn fastest_way<'e>(&self, ways: &'e [Way], y: usize, memory_bytes: f64, modes: Modes) -> Option<&'e Way> {
        let least = |list: &mut dyn Iterator<Item = &'e Way>, key: &dyn Fn(&Way) -> f64| {
            // The first among equals.
            list.reduce(|best, way| if key(way) < key(best) { way } else { best })
        };
        let fits = |way: &&Way, y: usize| way.memory[y - 1] <= memory_bytes;
        let load = |way: &Way| way.load;
        if modes != Modes::AllOrNone {
            return least(&mut ways.iter().filter(|way| fits(way, y) && allowed(way, modes)), &load);
        }
        // The fastest modes; else the smallest, with as many in flight as there are or more.
        let fast = least(&mut ways.iter(), &load).filter(|way| fits(way, y));
        let smallest = |in_flight: usize| {
            least(&mut ways.iter(), &|way: &Way| way.memory[in_flight - 1]).filter(|way| fits(way, in_flight))
        };
        fast.or_else(|| least(&mut (y..=self.most_replicas.max(y)).filter_map(smallest), &load))
    }

    /// The least over all plans of the largest of their stages' values; `stage` gives the value of a stage by its
    /// ways and microbatches in flight.
    fn minimise<'e>(
        &'e self,
        rules: Rules,
        stage: &dyn Fn(&'e [Way], usize) -> Option<(f64, &'e Way)>,
    ) -> Option<(f64, Plan)> {
        let cuts: Vec<(u32, u32)> = self.ways.keys().map(|cut| (cut.t, cut.d)).collect();
        let mut degrees: Vec<(u32, u32)> = cuts
            .into_iter()
            .filter(|&(t, d)| (rules.tensor_parallel || t == 1) && (rules.data_parallel || d == 1))
            .collect();
        degrees.sort_unstable();
        degrees.dedup();
        self.recurrence(&degrees, rules, stage)
    }

    fn recurrence<'e>(
        &'e self,
        degrees: &[(u32, u32)],
        rules: Rules,
        stage: &dyn Fn(&'e [Way], usize) -> Option<(f64, &'e Way)>,
    ) -> Option<(f64, Plan)> {
        let Rules { stages, most_replicas, .. } = rules;
        let most_s = self.most_replicas.min(most_replicas.unwrap_or(usize::MAX));
        let most_j = self.limits.devices as usize;
        let width = most_j + 1;
        // Without a number of stages to keep, all are in table 0.
        let tables = 1 + stages.unwrap_or(0);
        let step = usize::from(stages.is_some());
        // What a tail holds is the sum of its replicas unless warm-ups are rounded on.
        let most_held = if rules.cumulative { self.limits.microbatches as usize } else { most_s };
        let state =
            |count: usize, h: usize, s: usize, j: usize| ((count * (most_held + 1) + h) * (most_s + 1) + s) * width + j;
        // Value and the step that led there: (stage, inner tail, state of the inner tail).
        type Step = (Cut, usize, usize);
        let mut table: Vec<Vec<(f64, Option<Step>)>> =
            vec![vec![(f64::INFINITY, None); tables * (most_held + 1) * (most_s + 1) * width]; self.tails.len()];
        table[0][state(0, 0, 0, 0)].0 = 0.0;
        let mut values: BTreeMap<(Cut, usize), Option<f64>> = BTreeMap::new();
        for (outer, inner) in self.pairs() {
            let mask = self.tails[outer] & !self.tails[inner];
            for &(t, d) in degrees {
                let cut = Cut { mask, t, d };
                let Some(ways) = self.ways.get(&cut) else { continue };
                let (replicas, devices) = (d as usize, (d * t) as usize);
                let own = self.limits.microbatches as usize / replicas;
                let held = |s: usize| if rules.cumulative { 0..most_held + 1 } else { s..s + 1 };
                for (s, h) in (0..=most_s.saturating_sub(replicas)).flat_map(|s| held(s).map(move |h| (s, h))) {
                    if s + replicas > most_s {
                        continue;
                    }
                    let (y, ahead) = if rules.cumulative {
                        let y = (h.div_ceil(replicas) + 1).min(own);
                        (y, y * replicas)
                    } else {
                        ((s + replicas).div_ceil(replicas), s + replicas)
                    };
                    for (count, j) in (0..tables - step).flat_map(|c| (0..=most_j).map(move |j| (c, j))) {
                        let from = state(count, h, s, j);
                        let before = table[inner][from].0;
                        if before.is_infinite() || j + devices > most_j {
                            continue;
                        }
                        let value = *values.entry((cut, y)).or_insert_with(|| stage(ways, y).map(|found| found.0));
                        let Some(value) = value else { continue };
                        let slot = &mut table[outer][state(count + step, ahead, s + replicas, j + devices)];
                        if before.max(value) < slot.0 {
                            *slot = (before.max(value), Some((cut, inner, from)));
                        }
                    }
                }
            }
        }
        let full = self.tails.len() - 1;
        let (mut at, last) = (state(tables - 1, 0, 0, 0)..table[full].len())
            .map(|i| (i, table[full][i].0))
            .reduce(|a, b| if b.1 < a.1 { b } else { a })?;
        if last.is_infinite() {
            return None;
        }
        let execution = Execution { warm_up: WarmUp::Cumulative, ..Execution::default() };
        let execution = Some(execution).filter(|_| rules.cumulative);
        let (mut plan, mut tail) = (Plan { execution, ..Plan::default() }, full);
        while let Some((cut, inner, before)) = table[tail][at].1 {
            let held = at / width / (most_s + 1) % (most_held + 1);
            let y = held.div_ceil(cut.d as usize);
            let (_, way) = stage(&self.ways[&cut], y).unwrap();
            plan.stages.push(Stage {
                nodes: members(cut.mask),
                choices: way.choices.clone(),
                data_parallel: cut.d,
                tensor_parallel: cut.t,
                devices: vec![],
            });
            (tail, at) = (inner, before);
        }
        Some((last, plan))
    }

    /// The least time per sample within `memory_bytes`, and a plan that reaches it.
    pub(crate) fn best<'e>(&'e self, memory_bytes: f64, rules: Rules) -> Option<(f64, Plan)> {
        let stage =
            |ways: &'e [Way], y: usize| self.fastest_way(ways, y, memory_bytes, rules.modes).map(|way| (way.load, way));
        let (value, plan) = self.minimise(rules, &stage)?;
        let limits = Limits { memory_bytes: Some(memory_bytes), ..self.limits.clone() };
        let score = check(self.workload, &limits, &plan);
        assert!(score.is_valid(), "{:?}", score.violations);
        assert_eq!(score.value, value);
        Some((value, plan))
    }

    /// The least memory per device with which there is a plan at all.
    pub(crate) fn least_memory<'e>(&'e self, rules: Rules) -> Option<f64> {
        let stage = |ways: &'e [Way], y: usize| {
            let memory = |way: &&'e Way| way.memory[y - 1];
            let ways = ways.iter().filter(|way| allowed(way, rules.modes));
            ways.reduce(|a, b| if memory(&b) < memory(&a) { b } else { a }).map(|way| (way.memory[y - 1], way))
        };
        self.minimise(rules, &stage).map(|(bytes, _)| bytes)
    }

    /// Every amount of memory that some way to run some stage needs, ascending.
    pub(crate) fn memory_steps(&self) -> Vec<f64> {
        let mut steps: Vec<f64> = self.ways.values().flatten().flat_map(|way| way.memory.iter().copied()).collect();
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        steps
    }
}

fn allowed(way: &Way, modes: Modes) -> bool {
    match modes {
        Modes::Any | Modes::AllOrNone => true,
        Modes::Never => !way.choices.iter().any(Choice::recomputes),
        Modes::Always => way.recomputing,
    }
}
