//! Re-plans worth doing, in the typical order of importance.

use super::{
    CauseKind, Change, ExplainedPlan,
    change::{self, spec_of},
    limits_of,
};
use plantui_core::{
    cluster::{LimitKind, Limits, MOST_MICROBATCHES},
    family::{self, kinds::KindCount},
    workload::layering::Layering,
};
use plantui_planners::{OptionKind, OptionSpec, OptionValue, Planner, Tunable};

/// Purpose of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Test if a cause binds the plan.
    Binds(CauseKind),
    /// Effect of a limit.
    Limit,
    /// Effect of an option.
    Option,
    /// Alternative plans.
    NextBest,
}

impl Topic {
    /// Possible cause, if the question is about one.
    pub fn bound(self) -> Option<CauseKind> {
        match self {
            Topic::Binds(kind) => Some(kind),
            Topic::Limit | Topic::Option | Topic::NextBest => None,
        }
    }
}

/// Problem that differs from the base in one change.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeQuery {
    /// Change of the problem.
    pub change: Change,
    /// Purpose of the question.
    pub topic: Topic,
}

impl ExplainedPlan {
    /// All questions worth a re-plan.
    pub fn questions(&self) -> Vec<ChangeQuery> {
        let mut list = QueryList { base: self, questions: vec![] };
        list.better_limits();
        list.what_binds();
        list.options();
        list.worse_limits();
        list.next_best();
        list.questions
    }

    /// Questions that a user would try first: possible causes, and changes that a flag can set.
    pub fn quick_questions(&self) -> Vec<ChangeQuery> {
        let settable = |question: &ChangeQuery| question.change.flags().is_some();
        self.questions().into_iter().filter(|question| question.topic.bound().is_some() || settable(question)).collect()
    }
}

struct QueryList<'a> {
    base: &'a ExplainedPlan,
    questions: Vec<ChangeQuery>,
}

impl QueryList<'_> {
    /// Adds a question unless it changes nothing or is already in the list.
    fn ask(&mut self, topic: Topic, change: Change) {
        let problem = &self.base.problem;
        let changes = match &change {
            Change::Limit(kind, value) => problem.limits.with(*kind, *value).get(*kind) != problem.limits.get(*kind),
            Change::Option(spec, value) => problem.options.get(spec.name).as_ref() != Some(value),
            Change::Kinds(_) | Change::FreeLinks | Change::EveryDegree | Change::EngineFeasible => true,
        };
        let known = self.questions.iter().any(|question| question.change == change);
        if changes && !known {
            self.questions.push(ChangeQuery { change, topic });
        }
    }

    fn limit(&mut self, kind: LimitKind, value: f64) {
        self.ask(Topic::Limit, Change::Limit(kind, value));
    }

    /// Limits with a finite value: some workloads leave memory or bandwidth open.
    fn limiting(&self) -> Vec<LimitKind> {
        let limits = &self.base.problem.limits;
        let kinds = limits_of(self.base.planner, &self.base.problem.workload).iter().copied();
        kinds
            .filter(|&kind| limits.get(kind).is_finite() && (limits.get(kind) > 0.0 || kind == LimitKind::Cpus))
            .collect()
    }

    /// Asks for one machine more or fewer of each kind of device. False if there is one kind.
    fn kinds(&mut self, more: bool) -> bool {
        let limits = &self.base.problem.limits;
        // A limit on all devices together is asked about instead.
        let own = KindCount::of(&self.base.problem.workload);
        if own.is_empty() || KindCount::sum(&own) > limits.devices {
            return false;
        }
        for (index, kind) in own.iter().enumerate() {
            let step = family::of(&self.base.problem.workload).machine_size(index);
            let count = if more { kind.count.checked_add(step) } else { kind.count.checked_sub(step) };
            let mut kinds = own.clone();
            let Some(count) = count else { continue };
            kinds[index].count = count;
            // A kind without devices is left out.
            kinds.retain(|kind| kind.count > 0);
            if kinds.is_empty() {
                continue;
            }
            self.ask(Topic::Limit, Change::Kinds(kinds));
        }
        true
    }

    fn better_limits(&mut self) {
        let limits = self.base.problem.limits.clone();
        let mut kinds = self.limiting();
        if self.kinds(true) {
            kinds.retain(|&kind| kind != LimitKind::Devices);
        }
        if kinds.contains(&LimitKind::Devices) {
            let devices = f64::from(limits.devices);
            // Several kinds have no more devices than their own.
            let own = KindCount::of(&self.base.problem.workload);
            let of_kinds = if own.is_empty() { f64::INFINITY } else { f64::from(KindCount::sum(&own)) };
            for more in [devices + 8.0, devices + 1.0, 2.0 * devices] {
                // Doubling also tests if devices bind.
                if more <= of_kinds.min(f64::from(family::of(&self.base.problem.workload).most_devices())) {
                    self.limit(LimitKind::Devices, more);
                }
            }
        }
        for kind in kinds {
            let value = limits.get(kind);
            match kind {
                LimitKind::Devices => {}
                LimitKind::Cpus => self.limit(kind, value + 1.0),
                LimitKind::Bandwidth | LimitKind::Flops => self.limit(kind, 2.0 * value),
                _ => self.limit(kind, kind.step(value, true, false)),
            }
        }
    }

    fn what_binds(&mut self) {
        let (limits, kinds) = (self.base.problem.limits.clone(), self.limiting());
        if kinds.contains(&LimitKind::Memory) {
            self.ask(Topic::Binds(CauseKind::Memory), Change::FREE_MEMORY);
        }
        if kinds.contains(&LimitKind::Microbatches)
            && let Some(rich) = richest(&limits)
        {
            // The same number may already be asked as a step; `ask` would drop this question then.
            let change = Change::Limit(LimitKind::Microbatches, f64::from(rich));
            self.questions.push(ChangeQuery { change, topic: Topic::Binds(CauseKind::Divisors) });
        }
        let tunables = self.base.planner.tunables_for(&self.base.problem.workload);
        if kinds.contains(&LimitKind::Bandwidth)
            || tunables.iter().any(|tunable| matches!(tunable, Tunable::Resource(_)))
        {
            self.ask(Topic::Binds(CauseKind::Links), Change::FreeLinks);
        }
        let workload = &self.base.problem.workload;
        if self.base.planner.is_native(workload)
            && family::of(workload).with_every_degree(workload, limits.devices).is_some()
        {
            self.ask(Topic::Binds(CauseKind::Degrees), Change::EveryDegree);
        }
    }

    fn options(&mut self) {
        for tunable in self.base.planner.tunables_for(&self.base.problem.workload) {
            let Some(spec) = spec_of(self.base.planner, tunable) else { continue };
            let now = self.base.problem.options.get(spec.name).unwrap_or_else(|| spec.default_value());
            match (tunable, spec.kind, now) {
                (Tunable::Freedom(_), OptionKind::Flag { .. }, OptionValue::Flag(flag)) => {
                    self.option(spec, OptionValue::Flag(!flag));
                }
                (Tunable::Freedom(_), OptionKind::Choice { choices, .. }, _) => {
                    for (word, _) in choices {
                        self.option(spec, OptionValue::Choice(word));
                    }
                }
                (
                    Tunable::Resource(_),
                    OptionKind::Number { most, .. } | OptionKind::Quantity { most, .. },
                    OptionValue::Number(number),
                ) => {
                    let twice = Change::Option(spec, OptionValue::Number((2.0 * number).min(most)));
                    self.ask(Topic::Limit, twice);
                }
                _ => {}
            }
        }
    }

    fn option(&mut self, spec: &'static OptionSpec, value: OptionValue) {
        self.ask(Topic::Option, Change::Option(spec, value));
    }

    fn worse_limits(&mut self) {
        let limits = self.base.problem.limits.clone();
        let by_kind = self.kinds(false);
        for kind in self.limiting() {
            let value = limits.get(kind);
            match kind {
                LimitKind::Devices if by_kind => {}
                LimitKind::Devices => {
                    for fewer in [value - 1.0, value - 8.0] {
                        if fewer >= 1.0 {
                            self.limit(kind, fewer);
                        }
                    }
                }
                LimitKind::Cpus if value == 0.0 => {}
                LimitKind::Cpus => self.limit(kind, value - 1.0),
                LimitKind::Bandwidth => self.limit(kind, value / 2.0),
                LimitKind::Microbatches | LimitKind::Flops => {}
                _ => self.limit(kind, kind.step(value, false, false)),
            }
        }
    }

    fn other_degrees(&mut self) {
        let ExplainedPlan { planner, problem, plan, .. } = self.base;
        let tunable =
            planner.tunables_for(&problem.workload).into_iter().find(|tunable| matches!(tunable, Tunable::Degree(_)));
        let Some(first) = plan.stages.first() else { return };
        let Some(spec) = tunable.and_then(|tunable| change::spec_of(*planner, tunable)) else { return };
        let now = first.tensor_parallel;
        let free = problem.options.get(spec.name) == Some(OptionValue::Number(0.0));
        if free && plan.stages.iter().all(|stage| stage.tensor_parallel == now) {
            let mut offered = family::of(&problem.workload).tensor_degrees();
            offered.retain(|&t| t <= problem.limits.devices);
            for t in neighbours(&offered, now) {
                self.ask(Topic::NextBest, Change::Option(spec, OptionValue::Number(f64::from(t))));
            }
        }
    }

    fn next_best(&mut self) {
        let stages = self.base.plan.stages.len() as f64;
        let tunables = self.base.planner.tunables_for(&self.base.problem.workload);
        let asked = tunables.into_iter().find(|tunable| matches!(tunable, Tunable::Stages(_)));
        if let Some(spec) = asked.and_then(|tunable| change::spec_of(self.base.planner, tunable)) {
            let free = self.base.problem.options.get(spec.name) == Some(OptionValue::Number(0.0));
            for count in [stages + 1.0, stages - 1.0, stages * 2.0, (stages / 2.0).floor()] {
                if free && count >= 1.0 && count <= self.base.problem.workload.nodes.len() as f64 {
                    self.ask(Topic::NextBest, Change::Option(spec, OptionValue::Number(count)));
                }
            }
        }
        self.other_degrees();
        let workload = &self.base.problem.workload;
        let degrees = !family::of(workload).tensor_degrees().is_empty();
        if degrees && self.base.planner.is_native(workload) && Layering::of(workload, None).is_ok() {
            // Planners with an engine space use that; otherwise Piper plans for engines.
            match engine_space(self.base.planner) {
                Some(change) => self.ask(Topic::NextBest, change),
                None => self.ask(Topic::NextBest, Change::EngineFeasible),
            }
        }
    }
}

/// Tensor degrees next to `now`, of those offered.
fn neighbours(offered: &[u32], now: u32) -> impl Iterator<Item = u32> {
    let fewer = offered.iter().copied().filter(|&t| t < now).max();
    let more = offered.iter().copied().filter(|&t| t > now).min();
    fewer.into_iter().chain(more)
}

/// Planner's own space of plans that an engine runs unchanged.
fn engine_space(planner: &dyn Planner) -> Option<Change> {
    let spec = planner.options().iter().find(|spec| spec.name == "space")?;
    let OptionKind::Choice { choices, .. } = spec.kind else { return None };
    let &(engine, _) = choices.iter().find(|choice| choice.0 == "engine")?;
    Some(Change::Option(spec, OptionValue::Choice(engine)))
}

/// Number of microbatches, up to twice the current one, with the most divisors that replicas can use; the smallest on
/// ties. `None` if none has more than the current number.
fn richest(limits: &Limits) -> Option<u32> {
    let now = limits.microbatches;
    let last = now.saturating_mul(2).min(MOST_MICROBATCHES);
    // For each number from `now` on, its divisors up to the number of devices.
    let mut divisors = vec![0u32; (last - now + 1) as usize];
    for d in 1..=limits.devices.min(last) {
        let first = now.div_ceil(d) * d;
        for multiple in (first..=last).step_by(d as usize) {
            divisors[(multiple - now) as usize] += 1;
        }
    }
    let best = (0..divisors.len()).reduce(|best, i| if divisors[i] > divisors[best] { i } else { best })?;
    (best > 0).then(|| now + best as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_richest_number_has_the_divisors_that_devices_can_use() {
        let rich = |microbatches, devices| richest(&Limits { microbatches, devices, ..Limits::NEUTRAL });
        assert_eq!(rich(7, 4), Some(12));
        assert_eq!(rich(12, 4), None);
        // 120 has 16 divisors; with four devices 72 has as many usable ones.
        assert_eq!(rich(61, 4), Some(72));
        assert_eq!(rich(61, 120), Some(120));
        assert_eq!(rich(1, 8), Some(2));
        assert_eq!(rich(5, 1), None);
    }
}
