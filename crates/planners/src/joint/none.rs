//! Answers without a plan: the limits that would let one fit, or the rule that every number of stages and replicas
//! breaks.

use super::{
    DegreeCosts, EngineDemands, JointSettings, NO_COMMON_DEGREE, Outcome, ProfileSearch, Status, UnitLine,
    kind::ScheduleKind, search::SearchScope, table::DegreeTable,
};
use crate::{
    Infeasible, Problem,
    engine_layers::{self, Rule},
    outcome::feasible_with,
    pipeline_options::Recompute,
};
use plantui_core::{
    cluster::{LimitKind, Limits, MOST_LISTED_DEVICES},
    family,
    plan::{Plan, Schedule},
    search::Search,
    units,
};

/// Limits that would let a plan fit.
#[derive(Debug, Clone, Default)]
pub(super) struct SufficientLimits {
    /// Bytes of memory that are enough on these devices.
    pub(super) memory: Option<f64>,
    /// Number of devices that is enough with this memory.
    pub(super) devices: Option<u32>,
    /// Sentence on the rule that forbids every plan on these devices, for any memory.
    pub(super) rule: Option<String>,
}

impl SufficientLimits {
    /// Combines two searches: limits that are enough for one are enough.
    pub(super) fn or(self, other: SufficientLimits) -> SufficientLimits {
        SufficientLimits {
            memory: self.memory.into_iter().chain(other.memory).reduce(f64::min),
            devices: self.devices.into_iter().chain(other.devices).min(),
            rule: self.rule.or(other.rule),
        }
    }
}

/// Rules on the number of stages and replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShapeRule {
    /// Rule of the schedule, or of the engine for it.
    Schedule,
    /// Whole machines only.
    Machines,
    /// Enough layers in a stage for its parts, and a chain of stages.
    Parts,
    /// At least as many microbatches per replica as stages.
    Microbatches,
}

impl ShapeRule {
    /// Sentence on the rule, for a number of stages and of microbatches per replica.
    fn told(self, scope: SearchScope, kind: ScheduleKind, stages: usize, m: u32) -> String {
        let (name, counted) = (kind.schedule.name(), units::counted(stages, "stage"));
        match self {
            ShapeRule::Schedule if stages < 2 => format!("{name} needs at least two stages"),
            ShapeRule::Schedule if kind.schedule == Schedule::ZeroBubbleV => {
                format!("{name} over {counted} needs {} microbatches per replica, and there are {m}", 2 * stages - 1)
            }
            ShapeRule::Schedule => {
                let refused = scope.runner.and_then(|runner| runner.refuses(kind.schedule, stages as u32, m));
                let needs = || {
                    format!(
                        "{name} over {counted} needs equal rounds of at least {stages} microbatches, which {m} do \
                        not make"
                    )
                };
                refused.unwrap_or_else(needs)
            }
            ShapeRule::Parts if kind.parts == 1 => format!("{counted} cannot be cut"),
            ShapeRule::Parts => format!(
                "{name} with {} virtual stages needs that many repeated layers on each of {counted}, and a chain of \
                stages",
                kind.parts
            ),
            ShapeRule::Machines => {
                let (machine, devices) = (scope.machine.unwrap_or(1), units::counted(scope.devices as usize, "device"));
                format!(
                    "engines start on whole machines of {machine} devices or a part of one, unlike {counted} on \
                    {devices}"
                )
            }
            ShapeRule::Microbatches => {
                format!("{counted} need {stages} microbatches per replica, and there are {m}")
            }
        }
    }
}

impl ProfileSearch<'_> {
    /// Outcome if no tensor degree can be used, with the reason.
    pub(super) fn no_degree(&self, engine: Option<&EngineDemands>) -> Outcome {
        let line = UnitLine::of(&self.workload.dag);
        let how = (Recompute::Auto, Rule::Free);
        let usual = |t: &u32| DegreeCosts::new(&self.workload.dag, self.profile, &line, *t, how, 1.0).is_some();
        let devices = self.limits.devices;
        let refusal =
            |engine: &EngineDemands| engine.obeys(self.workload, self.settings, *self.profile.degrees().first()?).err();
        if let Some(why) = engine.and_then(refusal) {
            return engine_layers::refused(self.workload, &why);
        }
        if let Some(asked) = self.settings.degree {
            return Outcome::refused(format!(
                "Tensor degree {asked} is not common to all nodes on {}: tensor_degree=any tries every degree.",
                units::counted(devices as usize, "device")
            ));
        }
        let explanation = match self.profile.degrees().into_iter().find(usual) {
            None => NO_COMMON_DEGREE.into(),
            Some(least) if least > devices => {
                let explanation =
                    format!("Tensor degree {least} is the least common to all nodes: {least} devices would be enough.");
                let infeasible = Infeasible {
                    limits: vec![LimitKind::Devices],
                    fewest_devices: Some(least),
                    explanation,
                    ..Infeasible::default()
                };
                return Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) };
            }
            Some(least) if !self.settings.tensor_parallel && least > 1 => {
                "Tensor degree 1 is not common to all nodes: switch tensor parallelism on.".into()
            }
            Some(_) => "Some node has no mode of the kind that recompute names: set recompute to auto.".to_string(),
        };
        Outcome::refused(explanation)
    }

    /// Limits that would let a plan fit, as far as known when the search is stopped.
    pub(super) fn enough(
        &self,
        tables: &[DegreeTable<'_>],
        scope: SearchScope,
        kinds: &[ScheduleKind],
    ) -> SufficientLimits {
        let mut enough = SufficientLimits::default();
        for table in tables {
            for &kind in kinds {
                let parts = kind.parts;
                let (units, t) = (table.costs.len(), table.costs.t);
                let m = |d: u32| scope.microbatches / d;
                let flight = |stages: usize, d: u32| move |behind: usize| kind.in_flight(stages, behind, m(d));
                let chain = |stages: usize| parts == 1 || table.costs.may_be_chain(stages);
                for (stages, d) in scope.shapes(kind, t, units, scope.devices) {
                    if self.search.cancelled() {
                        return enough;
                    }
                    let least = table.least_memory(stages, parts, &flight(stages, d)).filter(|_| chain(stages));
                    enough.memory = enough.memory.into_iter().chain(least).reduce(f64::min);
                }
                for (stages, d) in scope.shapes(kind, t, units, MOST_LISTED_DEVICES) {
                    let used = stages as u32 * d * t;
                    let fewer = used > scope.devices && enough.devices.is_none_or(|known| used < known);
                    if fewer && chain(stages) && table.holds(stages, parts, table.memory().0, &flight(stages, d)) {
                        enough.devices = Some(used);
                    }
                }
            }
        }
        let share = 1.0 - self.settings.headroom;
        enough.memory = enough.memory.map(|bytes| (bytes / share).ceil());
        enough.rule = if enough.memory.is_none() { self.barred(tables, scope, kinds) } else { None };
        enough
    }

    /// Rules broken by every number of stages and replicas, for one that breaks the fewest.
    fn barred(&self, tables: &[DegreeTable<'_>], scope: SearchScope, kinds: &[ScheduleKind]) -> Option<String> {
        let mut nearest: Option<(Vec<ShapeRule>, ScheduleKind, usize, u32)> = None;
        for (table, &kind) in tables.iter().flat_map(|table| kinds.iter().map(move |kind| (table, kind))) {
            let (t, units) = (table.costs.t, table.costs.len());
            for stages in scope.stages.map_or(1..=units, |asked| asked..=asked.min(units)) {
                let parts = kind.parts == 1
                    || (table.costs.has_parts(0, units, stages as u32 * kind.parts)
                        && table.costs.may_be_chain(stages));
                for d in scope.replicas() {
                    let (used, m) = ((stages as u32).saturating_mul(d * t), scope.microbatches / d);
                    if used > scope.devices {
                        continue;
                    }
                    let machine = scope.machine.is_none_or(|machine| used <= machine || used.is_multiple_of(machine));
                    let keeps = [
                        (ShapeRule::Schedule, scope.runs(kind, stages, m)),
                        (ShapeRule::Parts, parts),
                        (ShapeRule::Machines, machine),
                        (ShapeRule::Microbatches, stages as u32 <= m),
                    ];
                    let broken: Vec<ShapeRule> =
                        keeps.into_iter().filter(|(_, kept)| !kept).map(|(rule, _)| rule).collect();
                    // A single stage breaks few rules, which explains little.
                    let rank = (broken.len(), stages < 2);
                    if nearest.as_ref().is_none_or(|(known, _, count, _)| rank < (known.len(), *count < 2)) {
                        nearest = Some((broken, kind, stages, m));
                    }
                }
            }
        }
        let (broken, kind, stages, m) = nearest.filter(|(broken, ..)| !broken.is_empty())?;
        let told: Vec<String> = broken.into_iter().map(|rule| rule.told(scope, kind, stages, m)).collect();
        Some(told.join("; "))
    }

    /// Outcome without a plan, with the limits that would let one fit.
    pub(super) fn infeasible(&self, enough: SufficientLimits) -> Outcome {
        let SufficientLimits { memory, devices, rule } = enough;
        let each = units::bytes_exact(self.limits.memory_limit());
        let have = units::counted(self.limits.devices as usize, "device");
        let (feasible, limits) = suggestions(self.limits, memory, devices);
        let explanation = match rule.filter(|_| memory.is_none()) {
            Some(rule) => format!("No feasible plan on {have}: {rule}.{feasible}"),
            None => format!(
                "No feasible plan on {have} of {each}.{feasible} Searched: linear pipelines with uniform TP and DP."
            ),
        };
        let (smallest_memory_bytes, fewest_devices) = (memory, devices);
        let infeasible = Infeasible { limits, smallest_memory_bytes, fewest_devices, explanation };
        Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) }
    }
}

/// Sentence on the memory and the devices with which a plan exists, and the limits that it names.
fn suggestions(limits: &Limits, memory: Option<f64>, devices: Option<u32>) -> (String, Vec<LimitKind>) {
    let kinds = memory.map(|_| LimitKind::Memory).into_iter().chain(devices.map(|_| LimitKind::Devices)).collect();
    (feasible_with(limits, memory, devices), kinds)
}

/// Replaces suggested limits under which a search finds no plan. Outside 1F1B the memory of a stage depends on the
/// whole plan, and [`ProfileSearch::enough`] gives only a lower bound. Bisection finds the least memory; a wrong number
/// of devices is dropped.
pub(super) fn confirmed(
    problem: &Problem,
    outcome: Outcome,
    search: &Search,
    plan: &dyn Fn(&Problem) -> Outcome,
) -> Outcome {
    let Some(infeasible) = outcome.infeasible.as_ref() else { return outcome };
    let Infeasible { smallest_memory_bytes: memory, fewest_devices: devices, explanation, .. } = infeasible;
    let under = |limits: Limits| plan(&Problem { limits, ..problem.clone() }).plan;
    let with_memory = |bytes: f64| under(Limits { memory_bytes: Some(bytes), ..problem.limits.clone() });
    let with_devices = |devices: u32| under(Limits { devices, ..problem.limits.clone() });
    let known = (*memory, *devices);
    let memory = memory.and_then(|lower| match with_memory(lower) {
        Some(_) => Some(lower),
        None => least_memory(problem, lower, search, &with_memory),
    });
    let devices = devices.filter(|&devices| with_devices(devices).is_some());
    if (memory, devices) == known {
        return outcome;
    }
    let (before, _) = suggestions(&problem.limits, known.0, known.1);
    let (after, limits) = suggestions(&problem.limits, memory, devices);
    let explanation = explanation.replacen(&before, &after, 1);
    let infeasible = Infeasible { limits, smallest_memory_bytes: memory, fewest_devices: devices, explanation };
    Outcome { infeasible: Some(infeasible), ..outcome }
}

/// Least memory per device with which a plan is found, bytes, within 0.1 %. `none_with` is too little.
fn least_memory(problem: &Problem, none_with: f64, search: &Search, plan: &dyn Fn(f64) -> Option<Plan>) -> Option<f64> {
    let share = 1.0 - JointSettings::new(&problem.options).headroom;
    let needed = |plan: &Plan| {
        let score = family::check(&problem.workload, &problem.limits, plan);
        score.stages.iter().map(|stage| stage.memory_bytes).fold(0.0, f64::max) / share
    };
    let mut enough = needed(&plan(units::LARGEST)?);
    let mut least = none_with.max(1.0);
    while enough > least * 1.001 && !search.cancelled() {
        let middle = (least * enough).sqrt();
        match plan(middle) {
            Some(plan) => enough = needed(&plan).min(middle),
            None => least = middle,
        }
    }
    // Rounding may put a plan above what it needs.
    let enough = enough.ceil();
    (!search.cancelled() && plan(enough).is_some()).then_some(enough)
}
