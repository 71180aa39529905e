//! The latency integer program: which slot runs each node, and when, so that one sample is done soonest.
//!
//! Slots, and what an assignment to them is worth, are those of [`slots`](crate::planner::placement::latency::slots). The
//! program is the paper's row by row, but for its big number: where the paper takes all CPU time together, this takes the
//! latency to beat, which every time of a better solution stays under. There is always one:
//! everything on CPUs. Size `O(slots (n + m))`.

use highs::HighsModelStatus;

use super::{
    MARGIN, SCALE,
    callback::{Ended, Report},
    program::{Program, Variable},
    solve::solve,
};
use crate::{
    planner::{
        Search, Status,
        placement::latency::{
            Best, LatencySettings, Question, evaluate, search as own_search,
            slots::{Instance, Scorer, SlotSchedule},
        },
    },
    workload::PlacementNode,
};

/// What goes before HiGHS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyMilpSettings {
    /// Our own search, whose schedule HiGHS starts from and whose bound it is given. `None`: HiGHS starts from everything
    /// on CPUs.
    pub first: Option<LatencySettings>,
}

impl Default for LatencyMilpSettings {
    fn default() -> Self {
        LatencyMilpSettings { first: Some(LatencySettings { rounds: 2, ..LatencySettings::default() }) }
    }
}

/// The variables, by number: `x` by node and slot, times of nodes, of slots, of all, then what is by slot and node.
struct Layout {
    nodes: usize,
    slots: usize,
}

impl Layout {
    /// `x`: whether a node is in a slot; slot 0 is the CPUs.
    fn holds(&self, node: usize, slot: usize) -> Variable {
        node * (self.slots + 1) + slot
    }

    /// `lat`: when a node is done.
    fn done(&self, node: usize) -> Variable {
        self.nodes * (self.slots + 1) + node
    }

    /// When a slot starts.
    fn start(&self, slot: usize) -> Variable {
        self.done(self.nodes) + slot - 1
    }

    /// When a slot has finished.
    fn finish(&self, slot: usize) -> Variable {
        self.start(self.slots + 1) + slot - 1
    }

    /// When everything is done.
    fn latency(&self) -> Variable {
        self.finish(self.slots + 1)
    }

    /// `z`, `in` and `out` of a node and an accelerator's slot.
    fn passes(&self, node: usize, slot: usize) -> [Variable; 3] {
        let first = self.latency() + 1 + 3 * ((slot - 1) * self.nodes + node);
        [first, first + 1, first + 2]
    }
}

/// The program of one instance.
struct Formulation<'a> {
    instance: &'a Instance<'a>,
    layout: Layout,
    /// Times are multiplied by this.
    scale: f64,
    /// No time in a solution that is wanted exceeds this, scaled.
    horizon: f64,
}

impl Formulation<'_> {
    fn program(&self, bound: f64) -> Program {
        let (instance, layout) = (self.instance, &self.layout);
        let (n, slots) = (layout.nodes, layout.slots);
        let mut program = Program::default();
        for node in &instance.profile.nodes {
            for slot in 0..=slots {
                // What takes longer on a CPU than all that is to be beaten is not on one.
                program.binary(if slot == 0 { self.time(node.cpu_time) <= self.horizon } else { node.supported });
            }
        }
        for _ in 0..n + 2 * slots {
            program.amount(0.0, 0.0..=self.horizon);
        }
        let total = program.amount(1.0, (bound * self.scale).max(0.0)..=self.horizon);
        debug_assert_eq!(total, layout.latency(), "variables are added in the order of the layout");
        for _ in 0..3 * n * slots {
            program.share();
        }
        for v in 0..n {
            program.row(1.0..=1.0, (0..=slots).map(|slot| (layout.holds(v, slot), 1.0)));
            program.row(0.0.., [(total, 1.0), (layout.done(v), -1.0)]);
        }
        self.on_cpus(&mut program);
        self.colours(&mut program);
        self.memory(&mut program);
        for slot in 1..=slots {
            self.slot(&mut program, slot);
        }
        program
    }

    fn time(&self, time: f64) -> f64 {
        time * self.scale
    }

    /// A node's time on a CPU, where it can be on one; elsewhere a number that does not spoil the others' precision.
    fn on_cpu(&self, node: &PlacementNode) -> f64 {
        self.time(node.cpu_time).min(self.horizon)
    }

    /// A node on a CPU takes its time after its last input; on an accelerator it is not done before its inputs either.
    fn on_cpus(&self, program: &mut Program) {
        let layout = &self.layout;
        for (v, node) in self.instance.profile.nodes.iter().enumerate() {
            let runs = (layout.holds(v, 0), -self.on_cpu(node));
            program.row(0.0.., [(layout.done(v), 1.0), runs]);
        }
        for u in 0..layout.nodes {
            for &v in self.instance.successors(u) {
                let v = v as usize;
                let runs = (layout.holds(v, 0), -self.on_cpu(&self.instance.profile.nodes[v]));
                program.row(0.0.., [(layout.done(v), 1.0), (layout.done(u), -1.0), runs]);
            }
        }
    }

    /// A colour class is all on CPUs or all in slots of one accelerator.
    fn colours(&self, program: &mut Program) {
        let (layout, q) = (&self.layout, self.instance.subgraphs);
        for class in &self.instance.blocks.classes {
            for pair in class.windows(2) {
                let (u, v) = (pair[0] as usize, pair[1] as usize);
                program.row(0.0..=0.0, [(layout.holds(u, 0), 1.0), (layout.holds(v, 0), -1.0)]);
                for first in (1..=layout.slots).step_by(q) {
                    let of = |node, sign| (first..first + q).map(move |slot| (layout.holds(node, slot), sign));
                    program.row(0.0..=0.0, of(u, 1.0).chain(of(v, -1.0)));
                }
            }
        }
    }

    /// What the slots of an accelerator hold fits it together, in thousandths of its memory.
    fn memory(&self, program: &mut Program) {
        let (layout, nodes) = (&self.layout, &self.instance.profile.nodes);
        let memory = self.instance.memory_bytes;
        if nodes.iter().map(|node| node.size_bytes).sum::<f64>() <= memory {
            return;
        }
        for first in (1..=layout.slots).step_by(self.instance.subgraphs) {
            let mut terms = vec![];
            for (v, node) in nodes.iter().enumerate() {
                // Without memory there is room for nothing but what has no size.
                let share = if memory > 0.0 { node.size_bytes / memory } else { node.size_bytes };
                terms.extend(
                    (first..first + self.instance.subgraphs).map(|slot| (layout.holds(v, slot), share * SCALE)),
                );
            }
            program.row(..=if memory > 0.0 { SCALE } else { 0.0 }, terms);
        }
    }

    /// Contiguity, transfers and times of one slot.
    fn slot(&self, program: &mut Program, slot: usize) {
        let (instance, layout, horizon) = (self.instance, &self.layout, self.horizon);
        let (start, finish) = (layout.start(slot), layout.finish(slot));
        let mut takes = vec![(finish, 1.0), (start, -1.0)];
        for (u, node) in instance.profile.nodes.iter().enumerate() {
            let [reaches, comes, goes] = layout.passes(u, slot);
            let here = layout.holds(u, slot);
            program.row(0.0.., [(reaches, 1.0), (here, -1.0)]);
            for &v in instance.successors(u) {
                let there = layout.holds(v as usize, slot);
                let [later, ..] = layout.passes(v as usize, slot);
                program.row(0.0.., [(reaches, 1.0), (later, -1.0)]);
                program.row(..=1.0, [(later, 1.0), (there, -1.0), (here, 1.0)]);
                program.row(0.0.., [(comes, 1.0), (there, -1.0), (here, 1.0)]);
                program.row(0.0.., [(goes, 1.0), (there, 1.0), (here, -1.0)]);
            }
            let transfer = self.time(node.transfer);
            takes.extend([(here, -self.time(node.accelerator_time)), (comes, -transfer), (goes, -transfer)]);
            program.row(-horizon.., [(start, 1.0), (layout.done(u), -1.0), (comes, -horizon)]);
            program.row(-horizon.., [(layout.done(u), 1.0), (finish, -1.0), (here, -horizon)]);
        }
        program.row(0.0..=0.0, takes);
        if !(slot - 1).is_multiple_of(instance.subgraphs) {
            program.row(0.0.., [(start, 1.0), (layout.finish(slot - 1), -1.0)]);
        }
    }

    /// The value of every variable for an assignment, if it is admissible.
    fn values(&self, slots: &[u32]) -> Option<Vec<f64>> {
        let (instance, layout) = (self.instance, &self.layout);
        let mut scorer = Scorer::new(instance);
        let latency = scorer.score(instance, slots)?;
        let mut values = vec![0.0; layout.passes(layout.nodes, layout.slots)[0]];
        for (v, &slot) in slots.iter().enumerate() {
            values[layout.holds(v, slot as usize)] = 1.0;
            values[layout.done(v)] = self.time(scorer.finish[v]);
        }
        for slot in 1..=layout.slots {
            values[layout.start(slot)] = self.time(scorer.start[slot]);
            values[layout.finish(slot)] = self.time(scorer.start[slot] + scorer.load[slot]);
            let here = |v: usize| slots[v] as usize == slot;
            for &u in instance.dag.topological_order().iter().rev() {
                let u = u as usize;
                let mut heads = instance.successors(u).iter().map(|&v| v as usize);
                let [reaches, comes, goes] = layout.passes(u, slot);
                let flag = |flag: bool| f64::from(u8::from(flag));
                values[comes] = flag(!here(u) && heads.clone().any(here));
                values[goes] = flag(here(u) && heads.clone().any(|v| !here(v)));
                values[reaches] = flag(here(u) || heads.any(|v| values[layout.passes(v, slot)[0]] > 0.5));
            }
        }
        values[layout.latency()] = self.time(latency);
        Some(values)
    }

    /// The slot of each node in a solution.
    fn slots(&self, values: &[f64]) -> Vec<u32> {
        let share = |v: usize, slot: &usize| values[self.layout.holds(v, *slot)];
        let slot = |v: usize| (0..=self.layout.slots).max_by(|a, b| share(v, a).total_cmp(&share(v, b)));
        (0..self.layout.nodes).map(|v| slot(v).map_or(0, |slot| slot as u32)).collect()
    }
}

/// Searches: our own search if asked for, then HiGHS until it has proven the best to [`GAP`](super::GAP) or is stopped.
/// `improved` is called with every better schedule; bounds go to `handle`.
///
/// # Panics
/// If `subgraphs` is 0 or the profile has fewer nodes than the graph.
pub fn search(
    question: &Question<'_>,
    settings: &LatencyMilpSettings,
    starts: &[Vec<Vec<u32>>],
    handle: &Search,
    improved: &(dyn Fn(&SlotSchedule) + Sync),
) -> Best {
    let Question { dag, profile, accelerators, subgraphs, memory_bytes } = *question;
    let instance = Instance::new(dag, profile, accelerators, subgraphs, memory_bytes);
    let mut best = match &settings.first {
        // Its share of the work is not a share of the whole.
        Some(first) => own_search(question, first, starts, &handle.quiet(), improved),
        None => on_cpus(&instance),
    };
    best.lower_bound.inspect(|&bound| handle.report_bound(bound));
    if best.status != Status::Feasible {
        return best;
    }
    let to_beat = best.schedule.latency;
    let formulation = Formulation {
        instance: &instance,
        layout: Layout { nodes: dag.len(), slots: accelerators * subgraphs },
        scale: if to_beat > 0.0 { SCALE / to_beat } else { 1.0 },
        // Rounding must not make the start infeasible.
        horizon: if to_beat > 0.0 { SCALE * (1.0 + MARGIN) } else { 1.0 },
    };
    let start = formulation.values(&best.slots);
    let program = formulation.program(best.lower_bound.unwrap_or(0.0) * (1.0 - MARGIN));
    let offer = |best: &mut Best, values: &[f64]| {
        let slots = formulation.slots(values);
        let schedule = instance.schedule(&slots)?;
        let latency = schedule.latency;
        if latency < best.schedule.latency {
            improved(&schedule);
            (best.schedule, best.slots) = (schedule, slots);
        }
        Some(latency)
    };
    let raise = |best: &mut Best, bound: f64| {
        let bound = (bound / formulation.scale * (1.0 - MARGIN)).min(best.schedule.latency);
        if bound > best.lower_bound.unwrap_or(0.0) {
            best.lower_bound = Some(bound);
            handle.report_bound(bound);
        }
    };
    let ended = solve(program, start, handle, &|| false, &mut |report| match report {
        Report::Better(values) => {
            offer(&mut best, &values);
        }
        Report::Bound(bound) => raise(&mut best, bound),
        Report::Ended(_) => {}
    });
    best.status = Status::Feasible;
    match ended {
        Some(Ended { status: HighsModelStatus::Optimal, bound, solution }) => {
            raise(&mut best, bound);
            let solved = solution.and_then(|values| offer(&mut best, &values));
            if solved.is_some_and(|solved| solved <= bound / formulation.scale * (1.0 + MARGIN) + f64::MIN_POSITIVE) {
                best.lower_bound = Some(best.schedule.latency);
                best.status = Status::Optimal;
            }
        }
        Some(Ended { bound, .. }) if !handle.cancelled() => raise(&mut best, bound),
        // HiGHS did not begin, for want of a thread or because it refuses the model: the plan that was there stands.
        None if !handle.cancelled() => {}
        _ => best.status = Status::Cancelled,
    }
    best.lower_bound.inspect(|&bound| handle.report_bound(bound));
    best.split = instance.split(&best.slots);
    best.as_pieces = evaluate(dag, profile, memory_bytes, &best.split);
    best
}

/// Everything on CPUs, which is always admissible.
fn on_cpus(instance: &Instance<'_>) -> Best {
    let slots = vec![0; instance.dag.len()];
    let schedule = instance.schedule(&slots).expect("everything on CPUs is admissible");
    let split = instance.split(&slots);
    let as_pieces = evaluate(instance.dag, instance.profile, instance.memory_bytes, &split);
    Best { schedule, slots, split, as_pieces, lower_bound: None, status: Status::Feasible }
}
