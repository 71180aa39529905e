//! The paper's planner: any number of stages, each with its own replicas, and three placement policies.

use super::{
    costs::{Costs, Recompute},
    exact::{self, Effort, Ended, ExactPlan},
    greedy::{self, Row},
    hpgo::{
        self, Candidate, Faults, HpgoModel,
        data_parallel::{DataParallel, data_parallel},
        placement,
    },
    places::Places,
    settings,
};
use rustc_hash::FxHashSet;

use crate::{
    Bearing, Declaration, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Proves, Status, Tunable,
    pipeline_options,
};
use plantui_core::{
    cluster::{LimitKind, Limits},
    family::{self, layers::costs},
    plan::{Basis, Length, Measure, Plan, Score, SpeedupModel, Stage, StageScore},
    search::Search,
    simulate::{Schedule, SimulatorSettings, simulate_unless},
    units,
    workload::{
        Choice, LayerProfile, NodeIndex, Workload,
        states::{self, States, StatesError},
    },
};

static OPTIONS: [OptionSpec; 10] = [
    settings::MICRO_BATCH,
    settings::OPTIMIZER,
    settings::PEAK_ACTIVATION,
    settings::NVLINK,
    settings::ETHERNET,
    settings::ALL_REDUCE,
    settings::STATES,
    OptionSpec {
        name: "recompute",
        label: "recompute",
        help: "whether a stage may recompute its activations in the backward pass",
        kind: OptionKind::Choice {
            choices: &[
                ("auto", "only where a stage does not fit otherwise"),
                ("never", "never"),
                ("always", "every stage"),
            ],
            default: "auto",
        },
    },
    OptionSpec {
        name: "whole_samples",
        label: "whole samples",
        help: "give every device whole samples of a microbatch; the published planner splits samples too",
        kind: OptionKind::Flag { default: false },
    },
    OptionSpec {
        name: "stages",
        label: "stages",
        help: "number of stages; any: the best number",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_STAGES, whole: true, zero: Some("any") },
    },
];

/// Role of each option in a proof.
static BEARINGS: [(&str, Bearing); 10] = [
    (settings::MICRO_BATCH.name, Bearing::Question),
    (settings::OPTIMIZER.name, Bearing::Question),
    (settings::PEAK_ACTIVATION.name, Bearing::Question),
    (settings::NVLINK.name, Bearing::Question),
    (settings::ETHERNET.name, Bearing::Question),
    (settings::ALL_REDUCE.name, Bearing::Question),
    (settings::STATES.name, Bearing::Told),
    pipeline_options::OF_RECOMPUTE,
    (
        "whole_samples",
        Bearing::Narrows(|options| options.flag("whole_samples").then(|| "with whole samples on every device".into())),
    ),
    pipeline_options::OF_STAGES,
];

/// Upper limit of the option: there are never more stages than devices.
const MOST_STAGES: f64 = 1000.0;

/// Options that decide which plans exist.
static TUNABLES: [Tunable; 5] = [
    Tunable::Freedom("recompute"),
    settings::LINKS[0],
    settings::LINKS[1],
    settings::LINKS[2],
    Tunable::Stages("stages"),
];

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "dapple",
        name: "DAPPLE",
        paper: "Fan et al.: DAPPLE: A Pipelined Data Parallel Approach for Training Large Models, PPoPP 2021",
        summary: "stages with different replica counts over machines with fast and slow links; the shortest \
            iteration, proven",
        objective: "speedup",
        unit: "x",
    },
    options: &OPTIONS,
    proves: Proves::Among(&BEARINGS),
    tunables: &TUNABLES,
    limits: &LimitKind::LAYERS,
    can_plan: |workload| settings::layers(workload).map(drop),
    check_options: settings::check_states,
    ..Declaration::NEW
};

/// DAPPLE's planner.
#[derive(Debug, Clone, Copy)]
pub struct Dapple;

impl Planner for Dapple {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let Some(profile) = problem.workload.layers() else { return Outcome::new(Status::Infeasible) };
        let length = Length::Synchronous { whole_samples: problem.options.flag("whole_samples") };
        let cuts = match settings::cuts(&problem.workload, profile, &problem.options, search) {
            Ok(cuts) => cuts,
            Err(StatesError::Stopped) => return Outcome::new(Status::Cancelled),
            Err(error) => return Outcome::refused(settings::no_states(&problem.workload, error)),
        };
        let model = SpeedupModel { linear: cuts.linear, ..settings::model(profile, &problem.options, length) };
        let recompute = match problem.options.choice("recompute") {
            "never" => Recompute::Never,
            "always" => Recompute::Always,
            _ => Recompute::Auto,
        };
        let (workload, limits) = (&*problem.workload, &problem.limits);
        let stages = Some(problem.options.number("stages") as u32).filter(|&stages| stages > 0);
        let complete = cuts.complete;
        let few = (cuts.states.len() > settings::MANY).then(|| cuts.states.thinned(settings::FEW));
        let hunt = |states| Hunt { workload, profile, states, complete, limits, model, recompute, stages, search };
        let whole = hunt(&cuts.states);
        let mut outcome = if whole.outweighs_all() {
            whole.infeasible()
        } else {
            whole.run(few.as_ref().map(|few| hunt(few).quick()).unwrap_or_default())
        };
        outcome.proven_among = outcome.lower_bound.and_then(|_| cuts.proven_among());
        outcome.notes.extend(cuts.note.filter(|_| outcome.plan.is_some()));
        outcome
    }
}

/// Labels kept per suffix if not all places are searched. With one label, gnmt_large on 4 machines of 8 reaches a
/// speed-up of 21.80 instead of 22.03.
const ENOUGH: usize = 8;
/// Estimated effort with `ENOUGH` labels over the effort with one label.
const MORE_TRIED: f64 = 4.0;
/// If not all places are searched, a search that may try more stage ends and labels than this is not started.
const MOST_TRIED: f64 = 1e8;

/// One problem to solve.
struct Hunt<'a> {
    workload: &'a Workload,
    profile: &'a LayerProfile,
    states: &'a States,
    /// True if no state was left out.
    complete: bool,
    limits: &'a Limits,
    model: SpeedupModel,
    recompute: Recompute,
    /// Required number of stages.
    stages: Option<u32>,
    search: &'a Search,
}

/// Results of the published planner.
struct Published<'a> {
    model: HpgoModel<'a>,
    /// Best plan of the published planner.
    best: Option<Candidate>,
    /// Plans that differ as synchronous pipelines. Stored over states, not nodes: there may be a thousand plans of a
    /// hundred thousand nodes each.
    candidates: Vec<Candidate>,
    /// Data parallelism of the whole network.
    data_parallel: DataParallel,
}

/// Incumbent with its speed-up.
#[derive(Default)]
struct Best {
    speedup: f64,
    plan: Option<Plan>,
}

impl Best {
    fn offer(&mut self, search: &Search, speedup: f64, plan: Plan) {
        if speedup > self.speedup {
            search.improve(speedup, &plan);
            *self = Best { speedup, plan: Some(plan) };
        }
    }
}

impl Hunt<'_> {
    /// Warm start: the widest stages on the coarsest places, with one label per suffix.
    fn quick(&self) -> Best {
        let mut best = Best::default();
        let Some(&(widest, microbatches)) = self.widths().first() else { return best };
        let costs = self.costs(microbatches);
        if let Some(places) = &Places::coarsest(&self.limits.machines, &self.model.links, widest, costs.end()) {
            let effort = Effort { labels: 1, below_s: f64::MAX, recompute: self.recompute, stages: self.stages };
            if let Ended::Done(Some(found), _) =
                exact::search(&costs, places, self.limits.devices, &effort, &self.search.plans_only())
            {
                self.offer(&mut best, self.plan(&costs, places, &found));
            }
        }
        best
    }

    /// Searches for a plan better than the warm start.
    fn run(&self, mut best: Best) -> Outcome {
        let widths = self.widths();
        if best.plan.is_none()
            && let Some(&(widest, microbatches)) = widths.first()
        {
            self.rows(&self.costs(microbatches), widest, &mut best);
        }
        let published = self.published();
        let mut proven = self.complete;
        let (mut positions, mut tried) = (0, 0);
        for (widest, microbatches) in widths {
            let costs = self.costs(microbatches);
            let ladder = Places::ladder(&self.limits.machines, &self.model.links, widest, costs.end());
            positions = costs.end();
            let mut finest: Option<(&Places, u64)> = None;
            for places in &ladder {
                let growth = |coarser: &Places| (places.all.len() as f64 / coarser.all.len() as f64).powf(1.5);
                if finest.is_some_and(|(coarser, tried)| tried as f64 * growth(coarser) > MOST_TRIED) {
                    break;
                }
                let Some(now) = self.look(&costs, places, 1, &mut best) else { break };
                tried += now;
                finest = Some((places, now));
            }
            // All labels are kept only if that gives a proof.
            let complete = finest.is_some_and(|(places, _)| places.complete);
            let labels = if complete { usize::MAX } else { ENOUGH };
            let worthwhile = |tried: u64| complete || best.plan.is_none() || tried as f64 * MORE_TRIED <= MOST_TRIED;
            let all = finest.filter(|&(_, tried)| worthwhile(tried));
            let through = all.and_then(|(places, _)| self.look(&costs, places, labels, &mut best));
            tried += through.unwrap_or_default();
            proven &= complete && through.is_some();
        }
        self.outcome(best, proven, (positions, tried), &published)
    }

    fn costs(&self, microbatches: u32) -> Costs {
        Costs::new(self.workload, self.profile, self.states, self.limits, &self.model, microbatches)
    }

    /// Offers linear pipelines with equal stages. After cancellation, stops at the first plan.
    fn rows(&self, costs: &Costs, widest: u32, best: &mut Best) {
        for row in greedy::rows(costs, (self.limits.devices, widest), self.recompute, self.search) {
            if self.stages.is_none_or(|asked| asked as usize == row.stages.len()) {
                self.offer(best, self.row(costs, &row));
            }
            if self.search.cancelled() && best.plan.is_some() {
                break;
            }
        }
    }

    /// Searches some places for a better plan. Returns the number of ends and labels tried; `None` if cancelled.
    fn look(&self, costs: &Costs, places: &Places, labels: usize, best: &mut Best) -> Option<u64> {
        let total_s = costs.compute_s(0, costs.end());
        let below_s = if best.speedup > 0.0 { total_s / best.speedup } else { f64::MAX };
        let effort = Effort { labels, below_s, recompute: self.recompute, stages: self.stages };
        match exact::search(costs, places, self.limits.devices, &effort, self.search) {
            Ended::Done(found, tried) => {
                if let Some(found) = found {
                    self.offer(best, self.plan(costs, places, &found));
                }
                Some(tried)
            }
            Ended::Cancelled => None,
        }
    }

    /// True if the parameters exceed the memory of all devices together: every device stores the parameters of its
    /// stage.
    fn outweighs_all(&self) -> bool {
        let weights = self.states.parameters_between(0, self.states.len() - 1) * self.model.optimizer_memory_scaling;
        weights > self.limits.memory() * f64::from(self.limits.devices) * (1.0 + 1e-9)
    }

    /// Returns the valid candidate of the published planner that is fastest in simulation, if their best plan is faster
    /// there than `plan`. The formula can err: it lets a link carry activations and gradients in turn, the simulator
    /// both at once.
    fn overtaken(&self, plan: &Plan, theirs: &Plan, published: &Published<'_>) -> Option<(f64, Plan)> {
        let least = self.simulated_s(theirs);
        if self.simulated_s(plan) <= least * (1.0 + 1e-12) {
            return None;
        }
        let candidates = published.candidates.iter().take_while(|_| !self.search.cancelled());
        let simulated = candidates.filter_map(|candidate| {
            let (plan, score) = self.synchronous(&published.model, candidate);
            score.is_valid().then(|| (self.simulated_s(&plan), plan, score.value))
        });
        let (best_s, best, value) = simulated.reduce(|best, other| if other.0 < best.0 { other } else { best })?;
        (best_s < self.simulated_s(plan)).then_some((value, best))
    }

    /// Largest allowed stage width, with the resulting number of microbatches, the widest first.
    fn widths(&self) -> Vec<(u32, u32)> {
        let n = self.limits.devices;
        let Length::Synchronous { whole_samples: true } = self.model.length else {
            return vec![(n, self.model.microbatches(self.limits.samples(), 1).max(1))];
        };
        let mut widths: Vec<(u32, u32)> = vec![];
        for widest in (1..=n).rev() {
            let microbatches = self.model.microbatches(self.limits.samples(), widest).max(1);
            // Of widths with the same number of microbatches the largest allows the most plans.
            if widths.last().is_none_or(|last| last.1 < microbatches) {
                widths.push((widest, microbatches));
            }
        }
        widths
    }

    /// Keeps a plan if it is better and valid.
    fn offer(&self, best: &mut Best, plan: Plan) {
        let score = family::check(self.workload, self.limits, &plan);
        if score.is_valid() {
            best.offer(self.search, score.value, plan);
        }
    }

    /// Results of the published planner, if its tables can hold this many devices.
    fn published(&self) -> Published<'_> {
        let quiet = self.search.quiet();
        let (machines, batch) = (self.limits.machines.clone(), self.limits.samples());
        let model = HpgoModel::new(self.states, machines, batch, self.limits.memory(), self.model, Faults::KEPT);
        let data_parallel = data_parallel(&model);
        if self.limits.devices > placement::MOST {
            return Published { model, best: None, candidates: vec![], data_parallel };
        }
        let mut all = hpgo::candidates(&model, &quiet);
        let worthwhile = |plan: &Candidate| {
            plan.speedup > 0.0 && self.stages.is_none_or(|asked| asked as usize == plan.stages.len())
        };
        let best = all.best().filter(|best| worthwhile(best)).cloned();
        let mut seen = FxHashSet::default();
        all.plans.retain(|candidate| {
            // Parallel pipelines are equivalent to wider stages here.
            let shape = || -> Vec<_> { candidate.stages.iter().map(|stage| (stage.to, stage.devices)).collect() };
            worthwhile(candidate) && seen.insert(shape())
        });
        Published { model, best, candidates: all.plans, data_parallel }
    }

    /// Converts a candidate of the published planner to a synchronous pipeline and scores it. Stages that need
    /// recomputation get it, if allowed.
    fn synchronous(&self, model: &HpgoModel<'_>, candidate: &Candidate) -> (Plan, Score) {
        let mut plan = hpgo::planner::plan(model, self.states, candidate);
        plan.measure = Measure::Speedup(self.model);
        let score = family::check(self.workload, self.limits, &plan);
        let recomputes = |stage: &StageScore| match self.recompute {
            Recompute::Never => false,
            Recompute::Auto => stage.memory_bytes > self.limits.memory(),
            Recompute::Always => true,
        };
        if !score.stages.iter().any(recomputes) {
            return (plan, score);
        }
        for (stage, _) in plan.stages.iter_mut().zip(&score.stages).filter(|(_, scored)| recomputes(scored)) {
            stage.choices.fill(Choice::Recompute);
        }
        let score = family::check(self.workload, self.limits, &plan);
        (plan, score)
    }

    /// Converts the result of a search to a plan over nodes.
    fn plan(&self, costs: &Costs, places: &Places, found: &ExactPlan) -> Plan {
        let stages = found.stages.iter().map(|stage| (stage.from, stage.to, places.all[stage.place].ids()));
        self.over_nodes(costs, stages.collect())
    }

    /// Converts a linear pipeline on consecutive devices to a plan over nodes.
    fn row(&self, costs: &Costs, row: &Row) -> Plan {
        let devices = |i: u32| (i * row.replicas..(i + 1) * row.replicas).collect();
        let stages = row.stages.iter().zip(0..).map(|(&(from, to), i)| (from, to, devices(i)));
        self.over_nodes(costs, stages.collect())
    }

    /// Converts stages between positions, each with its devices, to a plan over nodes.
    fn over_nodes(&self, costs: &Costs, stages: Vec<(usize, usize, Vec<u32>)>) -> Plan {
        let mut plan = Plan { measure: Measure::Speedup(self.model), ..Plan::default() };
        let count = stages.len();
        let planned = states::planned_nodes(self.workload);
        // A node done at the end of a stage is done at the ends of all later stages.
        let stage_of = |v: usize| {
            Some(stages.partition_point(|&(_, to, _)| !costs.is_done(to, v))).filter(|&i| planned[v] && i < count)
        };
        let dag = &self.workload.dag;
        let stage_of = states::settled(dag, (0..dag.len()).map(stage_of).collect(), count - 1);
        let mut nodes: Vec<Vec<NodeIndex>> = vec![vec![]; count];
        self.workload.indices().for_each(|v| nodes[stage_of[v.index()]].push(v));
        let ends = stages.iter().map(|&(_, to, _)| self.states.number(costs.state(to)));
        plan.basis = Basis::States(ends.collect());
        for (i, ((from, to, devices), nodes)) in stages.into_iter().zip(nodes).enumerate() {
            let data_parallel = devices.len() as u32;
            let time = costs.stage(from, to, data_parallel, count - 1 - i, self.recompute);
            let choice = Choice::of_layer(time.is_some_and(|time| time.recompute));
            let choices = vec![choice; nodes.len()];
            plan.stages.push(Stage { choices, nodes, data_parallel, tensor_parallel: 1, devices });
        }
        plan
    }

    /// Simulated iteration, seconds; infinite if the search ended before.
    fn simulated_s(&self, plan: &Plan) -> f64 {
        let pipeline = family::pipeline(self.workload, self.limits, plan, &SimulatorSettings::default());
        let stopped = || self.search.cancelled();
        let simulated = simulate_unless(&pipeline, Schedule::OneForwardOneBackward, &stopped);
        simulated.map_or(f64::INFINITY, |timeline| timeline.iteration_s)
    }

    fn outcome(
        &self,
        best: Best,
        proven: bool,
        (positions, tried): (usize, u64),
        published: &Published<'_>,
    ) -> Outcome {
        let cancelled = self.search.cancelled();
        let Some(mut plan) = best.plan else {
            return if cancelled { Outcome::new(Status::Cancelled) } else { self.infeasible() };
        };
        let status = match (proven, cancelled, self.search.deadline_passed()) {
            (true, ..) => Status::Optimal,
            (false, true, false) => Status::Cancelled,
            _ => Status::Feasible,
        };
        let mut outcome = Outcome::new(status);
        // Upper bound on the speed-up: devices that never wait.
        outcome.lower_bound = Some(if proven { best.speedup } else { f64::from(self.limits.devices) });
        let mut speedup = best.speedup;
        let theirs = published.best.as_ref().map(|best| hpgo::planner::plan(&published.model, self.states, best));
        if let Some(theirs) = &theirs
            && let Some(overtaking) = self.overtaken(&plan, theirs, published)
        {
            outcome.status = Status::Feasible;
            outcome.notes.push(format!(
                "the paper's formula rates another plan better ({}x), but its simulated iteration is slower than the \
                published planner's; this is the faster plan",
                units::number(best.speedup)
            ));
            (speedup, plan) = overtaking;
        }
        let counts = [("states", self.states.len() as f64), ("positions", positions as f64), ("tried", tried as f64)];
        outcome.statistics.counts = counts.into();
        let simulated = [("simulated_s", Some(&plan)), ("published_simulated_s", theirs.as_ref())];
        let simulated = simulated.into_iter().filter_map(|(name, plan)| Some((name, self.simulated_s(plan?))));
        outcome.statistics.counts.extend(simulated.filter(|(_, seconds)| seconds.is_finite()));
        outcome.statistics.counts.extend(published.data_parallel.statistics());
        outcome.notes.extend(self.notes(&plan));
        outcome.objective = Some(speedup);
        outcome.plan = Some(plan);
        outcome.statistics.seconds = self.search.elapsed().as_secs_f64();
        outcome
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let mut notes = vec![
            "speed-ups are relative to one device without a memory limit that computes the whole batch".to_string(),
        ];
        let microbatches = costs::microbatches(&self.model, self.limits, plan);
        let samples = f64::from(self.limits.samples()) / f64::from(microbatches);
        let widest = plan.stages.iter().map(Stage::device_count).max().unwrap_or(1);
        if samples < f64::from(widest) {
            let counted =
                if samples == 1.0 { "1 sample".into() } else { format!("{} samples", units::number(samples)) };
            notes.push(format!(
                "a microbatch of {counted} is split over {widest} devices, less than one sample each; \
                whole_samples=true forbids this"
            ));
        }
        notes
    }

    fn infeasible(&self) -> Outcome {
        let devices = self.limits.devices;
        let memory = units::bytes_exact(self.limits.memory_limit());
        let what = self
            .stages
            .map_or("pipeline".into(), |stages| format!("pipeline of {}", units::counted(stages as usize, "stage")));
        let mut outcome = Outcome::refused(format!("No {what} fits on {devices} devices with {memory} each."));
        if let Some(infeasible) = &mut outcome.infeasible {
            infeasible.limits = vec![LimitKind::Memory, LimitKind::Devices];
        }
        outcome
    }
}
