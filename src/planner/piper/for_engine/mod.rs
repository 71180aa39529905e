//! The best plan that a training engine can run unchanged.
//!
//! Engines give every stage the same replicas `d` and tensor degree `t`, cut between whole layers ([`Layering`]), recompute
//! by their own rules ([`Runner`]) and are started on whole machines. Under those rules Piper's cost model becomes a chain
//! ([`chain`]): for every `(t, d)` and way to recompute, with `r` stages from a layer on, the first of them has `r`
//! microbatches in flight. Megatron's one number of recomputed layers for all stages is tried number by number; where
//! layers are free to recompute, each stage is a knapsack ([`stage`]).
//!
//! The optimum under these rules, proven, unless a knapsack is too large (the outcome says so).
//! `O(degrees · replicas · ways · S · L²)` time for `L` layers and `S` stages, cut short where a stage alone is too slow or
//! too large; `O(L²)` memory. What stands before and behind the repeated layers never recomputes,
//! since no engine offers that; `recompute=always` is refused where it asks for it.

mod chain;
mod costs;
mod stage;

use rustc_hash::FxHashMap;

use super::settings::PiperSettings;
use crate::planner::engine_layers::{self, Rule};
use crate::{
    cluster::{LimitKind, Limits, MOST_DEVICES},
    plan::{
        Plan, Stage,
        runner::{RecomputeRule, Runner},
    },
    planner::{Infeasible, Outcome, Search, Status},
    units,
    workload::{PiperProfile, Workload, layering::Layering},
};
use chain::Cuts;
use costs::Costs;
use stage::{Goal, Ways};

/// More layers than this are no layers: the table of stretches would not fit.
pub(super) const MOST_LAYERS: usize = 3000;

/// What there is to plan.
struct Chain<'a> {
    workload: &'a Workload,
    profile: &'a PiperProfile,
    limits: &'a Limits,
    settings: &'a PiperSettings,
    runner: Runner,
    layering: Layering,
    /// Devices of a machine.
    machine: u32,
}

/// The best so far.
struct Best {
    plan: Plan,
    value: f64,
}

/// Plans for an engine.
pub(super) fn plan(
    workload: &Workload,
    profile: &PiperProfile,
    limits: &Limits,
    settings: &PiperSettings,
    runner: Runner,
    search: &Search,
) -> Outcome {
    let layering = match engine_layers::layers(runner, workload, MOST_LAYERS) {
        Ok(layering) => layering,
        Err(why) => return engine_layers::refused(workload, &why),
    };
    if let Err(why) = engine_layers::recompute_anywhere(runner, workload, &layering, settings.recompute) {
        return engine_layers::refused(workload, &why);
    }
    let machine = limits.machines.whole();
    let chain = Chain { workload, profile, limits, settings, runner, layering, machine };
    chain.plan(search)
}

impl Chain<'_> {
    fn plan(&self, search: &Search) -> Outcome {
        let mut best: Option<Best> = None;
        let mut unproven = false;
        let degrees = self.degrees(self.limits);
        // Plain ways first: what they find cuts the dearer ones short.
        let rules = self.rules();
        let all: Vec<(Rule, u32)> = rules.iter().flat_map(|&rule| degrees.iter().map(move |&t| (rule, t))).collect();
        let costs: FxHashMap<u32, Costs<'_>> = degrees.iter().filter_map(|&t| Some((t, self.costs(t)?))).collect();
        for (step, &(rule, t)) in all.iter().enumerate() {
            search.report_fraction(step as f64 / all.len() as f64);
            let Some(costs) = costs.get(&t) else { continue };
            let mut ways = self.ways(costs, self.limits, rule, Goal::Load);
            for d in self.replicas(self.limits, t) {
                ways.d = d;
                let most = (self.limits.devices / (d * t)).min(self.most_replicas(self.limits) / d) as usize;
                let allowed = |stages: usize| self.may_use(stages, d, t);
                let known = best.as_ref().map_or(f64::INFINITY, |best| best.value);
                // Not even the work shared out evenly.
                if costs.least_seconds() / (f64::from(d) * most.max(1) as f64) >= known * (1.0 + 1e-9) {
                    continue;
                }
                let Some(found) = chain::best(&mut ways, most, &allowed, known, search) else { continue };
                if let Some(plan) = self.built(&mut ways, &found) {
                    search.improve(found.value, &plan);
                    best = Some(Best { plan, value: found.value });
                }
            }
            unproven |= ways.unproven;
        }
        self.outcome(best, unproven, search)
    }

    /// The plans that a proof speaks of.
    fn among(&self) -> &'static str {
        if engine_layers::one_row_of_several(&self.layering, self.workload) {
            "plans that the engine runs unchanged, cut from one row of nodes"
        } else {
            "plans that the engine runs unchanged"
        }
    }

    fn outcome(&self, best: Option<Best>, unproven: bool, search: &Search) -> Outcome {
        let stopped = search.cancelled();
        let mut outcome = match (best, stopped) {
            (None, true) => Outcome::new(Status::Cancelled),
            (None, false) => Outcome { infeasible: self.infeasible(search), ..Outcome::new(Status::Infeasible) },
            (Some(Best { plan, value }), stopped) => {
                let status = match (stopped, unproven) {
                    (true, _) if !search.deadline_passed() => Status::Cancelled,
                    (false, false) => Status::Optimal,
                    _ => Status::Feasible,
                };
                let proven = status == Status::Optimal;
                if proven {
                    search.report_bound(value);
                }
                Outcome {
                    plan: Some(plan),
                    objective: Some(value),
                    lower_bound: proven.then_some(value),
                    proven_among: Some(self.among().into()),
                    ..Outcome::new(status)
                }
            }
        };
        if outcome.status == Status::Infeasible && outcome.infeasible.is_none() {
            outcome.status = Status::Cancelled;
        }
        outcome.notes.push(self.note());
        if self.limits.machines.is_empty() && self.limits.devices > self.machine {
            outcome.notes.push(format!(
                "engines are started on whole machines; devices are taken to sit in machines of {}: --machines says \
                 otherwise",
                self.machine
            ));
        }
        outcome
    }

    /// What plans for the engine look like.
    fn note(&self) -> String {
        let recompute = match self.runner.recompute() {
            RecomputeRule::PerLayer => "each repeated layer recomputes or not",
            RecomputeRule::Count => "the first layers of every stage recompute, as many on each",
            RecomputeRule::AllOrNone => "all repeated layers recompute or none",
        };
        let told = self.runner.without_blocks().filter(|_| self.layering.blocks() == 0);
        let others = told.map(|told| format!("; {told}")).unwrap_or_default();
        format!(
            "planned for {}: whole layers in order, the same replicas and tensor degree on every stage; {recompute}{others}",
            self.runner.title()
        )
    }

    /// Ways to recompute, plain ones first: what is found with one rule for all cuts a free choice short.
    fn rules(&self) -> Vec<Rule> {
        let rules = Rule::list(self.settings.recompute, self.runner.recompute(), self.layering.layers.len());
        let one = matches!(rules[0], Rule::Free | Rule::StageByStage);
        let plain = [Rule::First(0), Rule::First(u32::MAX)].into_iter().filter(|_| one);
        plain.chain(rules).collect()
    }

    fn degrees(&self, limits: &Limits) -> Vec<u32> {
        let obeys = |t: u32| {
            engine_layers::recompute_at(self.runner, self.workload, &self.layering, self.settings.recompute, t).is_ok()
        };
        let allowed = |&t: &u32| t <= limits.devices && (t == 1 || self.settings.tensor_parallel) && obeys(t);
        self.profile.degrees().into_iter().filter(allowed).collect()
    }

    fn costs(&self, t: u32) -> Option<Costs<'_>> {
        Costs::new(&self.workload.dag, self.profile, &self.layering, t)
    }

    fn ways<'c, 'a>(&self, costs: &'c Costs<'a>, limits: &'c Limits, rule: Rule, goal: Goal) -> Ways<'c, 'a> {
        let known = (!costs.changes_more_than_compute()).then(FxHashMap::default);
        Ways { costs, limits, rule, goal, d: 1, known, unproven: false }
    }

    /// Replicas that all stages together may have.
    fn most_replicas(&self, limits: &Limits) -> u32 {
        self.settings.replicas(limits.microbatches)
    }

    /// Replicas that every stage may have.
    fn replicas(&self, limits: &Limits, t: u32) -> Vec<u32> {
        let most = if self.settings.data_parallel { limits.devices / t } else { 1 };
        let most = most.min(self.most_replicas(limits));
        (1..=most).filter(|&d| limits.microbatches.is_multiple_of(d)).collect()
    }

    /// Whether so many stages are asked for, and fill whole machines.
    fn may_use(&self, stages: usize, d: u32, t: u32) -> bool {
        let devices = stages as u32 * d * t;
        let whole = devices <= self.machine || devices.is_multiple_of(self.machine);
        whole && self.settings.stages.is_none_or(|asked| asked == stages)
    }

    fn built(&self, ways: &mut Ways<'_, '_>, found: &Cuts) -> Option<Plan> {
        let count = self.layering.layers.len();
        let starts = std::iter::once(0).chain(found.starts.iter().copied());
        let ends = found.starts.iter().copied().chain([count]);
        let stages = found.starts.len() as u32 + 1;
        let stage = |((start, end), y): ((usize, usize), u32)| {
            let again = ways.choice(start, end - 1, y)?;
            let (nodes, choices) = ways.costs.nodes(start..end, &again);
            let (data_parallel, tensor_parallel) = (ways.d, ways.costs.t);
            Some(Stage { nodes, choices, data_parallel, tensor_parallel, devices: vec![] })
        };
        let stages = starts.zip(ends).zip((1..=stages).rev()).map(stage).collect::<Option<_>>()?;
        Some(Plan { stages, ..Plan::default() }.with_consecutive_devices())
    }

    /// Why there is no plan, and what would do; `None` if cancelled.
    fn infeasible(&self, search: &Search) -> Option<Infeasible> {
        let smallest_memory_bytes = self.smallest_memory(search)?;
        let fewest_devices = self.fewest_devices(search)?;
        let (devices, memory) = (self.limits.devices, units::bytes_exact(self.limits.memory_limit()));
        let plural = if devices == 1 { "device" } else { "devices" };
        let mut explanation = format!(
            "No plan that {} runs unchanged fits on {devices} {plural} with {memory} each.",
            self.runner.title()
        );
        let mut limits = vec![];
        if let Some(bytes) = smallest_memory_bytes {
            limits.push(LimitKind::Memory);
            let enough = units::bytes_enough(bytes, self.limits.memory_limit());
            explanation += &format!(" With {devices} {plural}, {enough} each would do.");
        }
        match fewest_devices {
            Some(fewest) => {
                limits.push(LimitKind::Devices);
                explanation += &format!(" With {memory} each, {fewest} devices would do.");
            }
            None => explanation += &format!(" With {memory} each, no number of devices up to {MOST_DEVICES} would do."),
        }
        Some(Infeasible { limits, smallest_memory_bytes, fewest_devices, explanation })
    }

    /// The least memory with which the devices suffice; the inner option is `None` if no memory does.
    fn smallest_memory(&self, search: &Search) -> Option<Option<f64>> {
        let mut least = f64::INFINITY;
        for t in self.degrees(self.limits) {
            let Some(costs) = self.costs(t) else { continue };
            let replicas = self.replicas(self.limits, t);
            let most = (self.limits.devices / t).min(self.most_replicas(self.limits)) as usize;
            let allowed = |stages: usize| {
                let fits = |d: u32| {
                    stages as u32 * d <= self.most_replicas(self.limits) && stages as u32 * d * t <= self.limits.devices
                };
                replicas.iter().any(|&d| fits(d) && self.may_use(stages, d, t))
            };
            for rule in self.rules() {
                let mut ways = self.ways(&costs, self.limits, rule, Goal::Memory);
                if let Some(found) = chain::best(&mut ways, most, &allowed, least, search) {
                    least = found.value;
                }
                if search.cancelled() {
                    return None;
                }
            }
        }
        Some(Some(least).filter(|bytes| bytes.is_finite()))
    }

    /// The fewest devices with which the memory suffices; the inner option is `None` if no number does.
    fn fewest_devices(&self, search: &Search) -> Option<Option<u32>> {
        let many = Limits { devices: MOST_DEVICES, ..self.limits.clone() };
        let mut fewest: Option<u32> = None;
        for t in self.degrees(&many) {
            let Some(costs) = self.costs(t) else { continue };
            let replicas = self.replicas(&many, t);
            let most = self.layering.layers.len().min(self.most_replicas(&many) as usize);
            for rule in self.rules() {
                let mut ways = self.ways(&costs, &many, rule, Goal::Memory);
                for stages in chain::possible(&mut ways, most, self.limits.memory().next_up(), search)? {
                    let fits = |&d: &u32| {
                        stages as u32 * d <= self.most_replicas(&many)
                            && stages as u32 * d * t <= MOST_DEVICES
                            && self.may_use(stages, d, t)
                    };
                    let devices = replicas.iter().copied().find(fits).map(|d| stages as u32 * d * t);
                    fewest = fewest.into_iter().chain(devices).min();
                }
            }
        }
        Some(fewest)
    }
}
