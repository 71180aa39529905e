//! The throughput integer program: which device holds each class, so that the busiest is least busy.
//!
//! The paper's variables are by node; here a class has one variable per device, which is what its rows for colour classes
//! come to, and nodes whose tensors go to the same classes share one pair of transfer variables. Neither changes the
//! program or its linear relaxation: by device, `in >= x[v] - x[u]` and `out >= x[u] - x[v]` over the pins of a net come to
//! the largest minus the smallest share of any pin, whichever pin they are written from.
//!
//! Contiguity stays by node, as in the paper: `z[v] >= x[v]` falls along every edge between forward nodes, and where an
//! edge leaves a device it falls to nothing. Size `O(devices (classes + pins))`, and `O(devices (n + m))` more for
//! contiguity.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
};

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
        placement::{
            Split,
            classes::Partition,
            ip::{
                Best, Contiguity, IpSettings, Question, along_the_graph,
                model::{IpModel, whole},
                search as own_search,
                state::State,
            },
        },
    },
    workload::placement::PlacementProfile,
};

/// What our own search does for HiGHS. Without both, HiGHS is alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MilpSettings {
    /// Before: HiGHS starts from its split and is given its bound.
    pub first: Option<IpSettings>,
    /// Beside it: what the two find and prove counts together.
    pub beside: Option<IpSettings>,
}

impl MilpSettings {
    /// HiGHS alone.
    pub const ALONE: MilpSettings = MilpSettings { first: None, beside: None };
}

impl Default for MilpSettings {
    fn default() -> Self {
        let own = IpSettings::default();
        MilpSettings { first: Some(IpSettings { rounds: 1, ..own }), beside: Some(own) }
    }
}

/// The program of one question.
struct Formulation<'a> {
    question: &'a Question<'a>,
    partition: &'a Partition,
    model: &'a IpModel,
    /// Times are multiplied by this.
    scale: f64,
    /// Forward nodes, in topological order, where contiguity is asked for.
    forward: Vec<usize>,
}

impl Formulation<'_> {
    /// `x`, the first variables: whether a device holds a class.
    fn holds(&self, class: usize, device: usize) -> Variable {
        class * self.model.devices() + device
    }

    /// All variables and rows. `bound` is known to be below every value.
    fn program(&self, bound: f64) -> Program {
        let model = self.model;
        let mut program = Program::default();
        for class in 0..model.len() {
            for device in 0..model.devices() {
                program.binary(model.is_cpu(device) || model.fits[class]);
            }
        }
        for class in 0..model.len() {
            program.row(1.0..=1.0, (0..model.devices()).map(|device| (self.holds(class, device), 1.0)));
        }
        let peaks = [program.amount(1.0, 0.0..), program.amount(1.0, 0.0..)];
        if bound > 0.0 {
            program.row((bound * self.scale).., peaks.map(|peak| (peak, 1.0)));
        }
        let transfers = self.transfers(&mut program);
        for device in 0..model.devices() {
            self.memory(&mut program, device);
            let time = if model.is_cpu(device) { &model.cpu_time } else { &model.accelerator_time };
            for (part, &peak) in peaks.iter().enumerate() {
                let computed = (0..model.len()).map(|class| (self.holds(class, device), time[class][part]));
                let moved = transfers.get(device).into_iter().flatten().zip(&model.net_cost);
                let moved = moved.flat_map(|(pair, cost)| pair.map(|variable| (variable, cost[part])));
                let load = computed.chain(moved).map(|(variable, time)| (variable, time * self.scale));
                program.row(..=0.0, load.chain([(peak, -1.0)]));
            }
        }
        self.contiguity(&mut program);
        program
    }

    /// By accelerator and net: whether its tensor comes in, and whether it goes out.
    fn transfers(&self, program: &mut Program) -> Vec<Vec<[Variable; 2]>> {
        let model = self.model;
        let pair = |program: &mut Program, accelerator: usize, net: usize| {
            let (comes, goes) = (program.share(), program.share());
            let [first, others @ ..] = model.pins(net) else { unreachable!("a net has at least two pins") };
            let first = self.holds(*first as usize, accelerator);
            for &other in others {
                let other = self.holds(other as usize, accelerator);
                program.row(0.0.., [(comes, 1.0), (first, 1.0), (other, -1.0)]);
                program.row(0.0.., [(goes, 1.0), (first, -1.0), (other, 1.0)]);
            }
            [comes, goes]
        };
        (0..model.accelerators).map(|a| (0..model.net_count()).map(|net| pair(program, a, net)).collect()).collect()
    }

    /// What an accelerator holds fits, in thousandths of its memory.
    fn memory(&self, program: &mut Program, device: usize) {
        let model = self.model;
        let placeable: f64 = (0..model.len()).filter(|&class| model.fits[class]).map(|class| model.size[class]).sum();
        if model.is_cpu(device) || placeable <= model.memory {
            return;
        }
        let share = |class: usize| (self.holds(class, device), model.size[class] / model.memory * SCALE);
        program.row(..=SCALE, (0..model.len()).filter(|&class| model.fits[class]).map(share));
    }

    fn contiguity(&self, program: &mut Program) {
        let dag = self.question.dag;
        let mut number = vec![None; dag.len()];
        for device in 0..self.model.devices() {
            for &v in &self.forward {
                let reaches = program.share();
                number[v] = Some(reaches);
                program.row(0.0.., [(reaches, 1.0), (self.holds(self.partition.class(v), device), -1.0)]);
            }
            for &(u, v) in dag.edges() {
                let (u, v) = (u as usize, v as usize);
                let (Some(from), Some(to)) = (number[u], number[v]) else { continue };
                program.row(0.0.., [(from, 1.0), (to, -1.0)]);
                let (left, entered) = (self.partition.class(u), self.partition.class(v));
                if left != entered {
                    let (left, entered) = (self.holds(left, device), self.holds(entered, device));
                    program.row(..=1.0, [(to, 1.0), (entered, -1.0), (left, 1.0)]);
                }
            }
        }
    }

    /// The value of every variable for an assignment, in the order in which [`Formulation::program`] adds them.
    fn values(&self, device: &[u32]) -> Vec<f64> {
        let model = self.model;
        let on = |class: usize, d: usize| device[class] as usize == d;
        let mut values: Vec<f64> = (0..model.len())
            .flat_map(|class| (0..model.devices()).map(move |d| f64::from(u8::from(on(class, d)))))
            .collect();
        let maxima = State::new(model, device.to_vec()).maxima();
        values.extend(maxima.map(|most| most * self.scale));
        for accelerator in 0..model.accelerators {
            for net in 0..model.net_count() {
                let [first, others @ ..] = model.pins(net) else { unreachable!("a net has at least two pins") };
                let first = on(*first as usize, accelerator);
                let comes = !first && others.iter().any(|&other| on(other as usize, accelerator));
                let goes = first && others.iter().any(|&other| !on(other as usize, accelerator));
                values.extend([comes, goes].map(|flag| f64::from(u8::from(flag))));
            }
        }
        let mut reaches = vec![false; self.question.dag.len()];
        for d in 0..model.devices() {
            // The nodes from which one on this device is reached.
            for &v in self.forward.iter().rev() {
                // Backward nodes are never set.
                let later = self.question.dag.successors(v).any(|w| reaches[w]);
                reaches[v] = later || on(self.partition.class(v), d);
            }
            values.extend(self.forward.iter().map(|&v| f64::from(u8::from(reaches[v]))));
        }
        values
    }

    /// The assignment that a solution means, with its value by our own evaluation; `None` where that does not admit it.
    fn priced(&self, values: &[f64]) -> Option<(f64, Vec<u32>)> {
        let model = self.model;
        let home = |class: usize| {
            let share = |d: &usize| values[self.holds(class, *d)];
            (0..model.devices()).max_by(|a, b| share(a).total_cmp(&share(b))).map(|d| d as u32)
        };
        let device: Vec<u32> = (0..model.len()).map(home).collect::<Option<_>>()?;
        let state = State::new(model, device);
        state.admissible().then(|| (state.value(), state.devices().to_vec()))
    }
}

/// Forward nodes in topological order.
fn forward_nodes(question: &Question<'_>, profile: &PlacementProfile) -> Vec<usize> {
    let order = question.dag.topological_order().iter().map(|&v| v as usize);
    order.filter(|&v| !profile.nodes[v].backward).collect()
}

/// What is known so far, by whomever.
struct Known<'k> {
    best: Mutex<Best>,
    handle: &'k Search,
    improved: &'k (dyn Fn(f64, &Split) + Sync),
}

impl Known<'_> {
    fn best(&self) -> MutexGuard<'_, Best> {
        self.best.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(&self, value: f64, split: &Split) {
        let mut best = self.best();
        if best.split.as_ref().is_none_or(|(known, _)| value < *known) {
            (self.improved)(value, split);
            best.split = Some((value, split.clone()));
        }
    }

    fn raise(&self, bound: f64) {
        // HiGHS says minus infinity before the relaxation is solved, and infinity when nothing is left.
        if !bound.is_finite() {
            return;
        }
        let mut best = self.best();
        let value = best.split.as_ref().map_or(f64::INFINITY, |(value, _)| *value);
        best.lower_bound = bound.min(value).max(best.lower_bound);
        self.handle.report_bound(best.lower_bound);
    }

    fn proven(&self) -> bool {
        self.best().status != Status::Feasible
    }

    /// What another search ended with.
    fn join(&self, other: &Best) {
        if let Some((value, split)) = &other.split {
            self.offer(*value, split);
        }
        self.raise(other.lower_bound);
        if matches!(other.status, Status::Optimal | Status::Infeasible) {
            self.conclude(other.status);
        }
    }

    fn conclude(&self, status: Status) {
        let mut best = self.best();
        best.status = status;
        best.lower_bound = best.split.as_ref().map_or(f64::INFINITY, |(value, _)| *value);
    }
}

/// Searches: our own search if asked for, then HiGHS until it has proven the best to [`GAP`](super::GAP) or is stopped, and
/// our own search beside it if asked for. `improved` is called with every better split, one at a time; bounds go to
/// `handle`. Of several best splits, which one is returned depends on who is first.
pub fn search(
    question: &Question<'_>,
    settings: &MilpSettings,
    handle: &Search,
    improved: &(dyn Fn(f64, &Split) + Sync),
) -> Best {
    let best = match &settings.first {
        // Its share of the work is not a share of the whole.
        Some(first) => own_search(question, first, &handle.quiet(), improved),
        None => Best { status: Status::Feasible, split: None, lower_bound: 0.0, rounds: 0 },
    };
    if best.lower_bound.is_finite() {
        handle.report_bound(best.lower_bound);
    }
    if best.status != Status::Feasible {
        return best;
    }
    let rounds = best.rounds;
    let known = Known { best: Mutex::new(best), handle, improved };
    // Stopped on its own when HiGHS has proven the best.
    let own = Search::new(handle.remaining(), handle.seed().wrapping_add(1));
    let besides = thread::scope(|scope| {
        let beside = settings.beside.map(|beside| {
            let (known, own) = (&known, &own);
            scope.spawn(move || {
                let found = own_search(question, &beside, own, &|value, split| known.offer(value, split));
                known.join(&found);
                found.rounds
            })
        });
        with_highs(question, &known, &own);
        own.cancel();
        beside.and_then(|beside| beside.join().ok()).unwrap_or(0)
    });
    let mut best = known.best.into_inner().unwrap_or_else(PoisonError::into_inner);
    best.rounds = rounds + besides;
    if best.status == Status::Feasible && handle.cancelled() {
        best.status = Status::Cancelled;
    }
    if best.lower_bound.is_finite() {
        handle.report_bound(best.lower_bound);
    }
    best
}

/// Runs HiGHS from what is known. `own` is the search beside it.
fn with_highs(question: &Question<'_>, known: &Known<'_>, own: &Search) {
    let partition = Partition::by_colour(question.profile);
    let model = IpModel::new(question.dag, question.profile, &partition, &question.limits, question.objective);
    if model.homeless().is_some() {
        return known.conclude(Status::Infeasible);
    }
    let Best { split, lower_bound, .. } = known.best().clone();
    let all = |time: &[[f64; 2]]| time.iter().map(|&time| whole(time)).sum::<f64>();
    let to_beat = match &split {
        Some((value, _)) => *value,
        None => all(&model.accelerator_time) + all(&model.net_cost) + all(&model.cpu_time),
    };
    let contiguous = question.contiguity == Contiguity::Contiguous;
    let formulation = Formulation {
        question,
        partition: &partition,
        model: &model,
        scale: if to_beat > 0.0 { SCALE / to_beat } else { 1.0 },
        forward: if contiguous { forward_nodes(question, question.profile) } else { vec![] },
    };
    let start = split.as_ref().and_then(|(_, split)| model.assignment(&partition, split));
    let start = start.map(|device| formulation.values(&device));
    let program = formulation.program(lower_bound * (1.0 - MARGIN));
    let unscaled = |bound: f64| bound / formulation.scale;
    let offer = |values: &[f64]| {
        let (value, device) = formulation.priced(values)?;
        known.offer(value, &along_the_graph(question.dag, model.split(&partition, &device)));
        Some(value)
    };
    let ended = solve(program, start, known.handle, &|| known.proven(), &mut |report| {
        match report {
            Report::Better(values) => {
                offer(&values);
            }
            Report::Bound(bound) => known.raise(unscaled(bound) * (1.0 - MARGIN)),
            Report::Ended(_) => {}
        }
        known.raise(own.progress().bound.unwrap_or(0.0));
    });
    let Some(Ended { status, bound, solution }) = ended else { return };
    known.raise(unscaled(bound) * (1.0 - MARGIN));
    match status {
        HighsModelStatus::Infeasible if known.best().split.is_none() => known.conclude(Status::Infeasible),
        HighsModelStatus::Optimal => {
            // Proven if the solution is worth as much by our own evaluation, not only by HiGHS'.
            let solved = solution.and_then(|values| offer(&values));
            if solved.is_some_and(|solved| solved <= unscaled(bound) * (1.0 + MARGIN) + f64::MIN_POSITIVE) {
                known.conclude(Status::Optimal);
            }
        }
        _ => {}
    }
}
