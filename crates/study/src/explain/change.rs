//! One change of a problem: a limit, an option, or the degrees that nodes offer. A [`Change`] derives the changed
//! problem and labels itself.

use std::sync::Arc;

use plantui_core::{
    cluster::LimitKind,
    family::{
        self,
        kinds::{self, KindCount},
    },
    units,
};
use plantui_planners::{OptionKind, OptionSpec, OptionValue, Planner, Problem, Tunable};

/// Difference of a re-plan's problem.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A limit has another value, in its base unit.
    Limit(LimitKind, f64),
    /// An option of the planner has another value.
    Option(&'static OptionSpec, OptionValue),
    /// There are other numbers of devices of several kinds.
    Kinds(Vec<KindCount>),
    /// Links between devices take no time: the bandwidth limit and all resource options have their largest values.
    FreeLinks,
    /// Every node offers every tensor degree that any node offers, split perfectly.
    EveryDegree,
    /// Only plans that training engines run: whole layers, the same degrees on every stage.
    EngineFeasible,
}

impl Change {
    /// Memory without a limit.
    pub(super) const FREE_MEMORY: Change = Change::Limit(LimitKind::Memory, f64::INFINITY);

    /// Changed problem.
    pub fn apply(&self, problem: &Problem, planner: &dyn Planner) -> Problem {
        let mut changed = problem.clone();
        match self {
            Change::Limit(kind, value) => changed.limits = problem.limits.with(*kind, *value),
            Change::Option(spec, value) => changed.options.set(spec.name, value.clone()),
            Change::Kinds(kinds) => {
                if let Ok(workload) = kinds::over(&problem.workload, kinds) {
                    // A limit on all devices together stays.
                    let all = [&*problem.workload, &workload].map(|own| KindCount::sum(&KindCount::of(own)));
                    if problem.limits.devices >= all[0] {
                        changed.limits = problem.limits.with(LimitKind::Devices, f64::from(all[1]));
                    }
                    changed.workload = Arc::new(workload);
                }
            }
            Change::FreeLinks => {
                if super::limits_of(planner, &problem.workload).contains(&LimitKind::Bandwidth) {
                    changed.limits = problem.limits.with(LimitKind::Bandwidth, f64::INFINITY);
                }
                for (spec, most) in resources(planner) {
                    changed.options.set(spec.name, OptionValue::Number(most));
                }
            }
            Change::EveryDegree => {
                if let Some(filled) =
                    family::of(&problem.workload).with_every_degree(&problem.workload, problem.limits.devices)
                {
                    changed.workload = Arc::new(filled);
                }
            }
            Change::EngineFeasible => {}
        }
        changed
    }

    /// Label beside a problem: `+8 devices`, `memory 10 GiB`, `2x bandwidth`, `no tensor parallel`.
    pub fn label(&self, problem: &Problem) -> String {
        let number = |name: &str| match problem.options.get(name) {
            Some(OptionValue::Number(now)) => now,
            _ => f64::NAN,
        };
        match self {
            Change::Limit(kind, value) => limit_label(*kind, problem.limits.get(*kind), *value),
            Change::Option(spec, OptionValue::Flag(false)) => format!("no {}", spec.label),
            Change::Option(spec, OptionValue::Flag(true)) => spec.label.to_string(),
            // `stages 3` could be read as the third stage.
            Change::Option(spec, OptionValue::Number(count)) if spec.label == "stages" => {
                format!("{} stage{}", units::exact_number(*count), if *count == 1.0 { "" } else { "s" })
            }
            Change::Option(spec, OptionValue::Number(value)) if *value == 2.0 * number(spec.name) => {
                format!("2x {}", spec.name.replace('_', " "))
            }
            Change::Option(spec, OptionValue::Number(number)) => format!("{} {}", spec.label, units::number(*number)),
            Change::Option(spec, value) => format!("{} {}", spec.label, value.text()),
            Change::Kinds(kinds) => kinds_label(problem, kinds),
            Change::FreeLinks => "communication at no cost".into(),
            Change::EveryDegree => "every tensor degree on every node, ideal scaling".into(),
            Change::EngineFeasible => "same degrees everywhere, all or no layers recompute".into(),
        }
    }

    /// Flags of the change, if it has any: `--devices 72`, `--set recompute=never`.
    pub fn flags(&self) -> Option<String> {
        match self {
            Change::Limit(kind, value) => {
                let value = kind.format(*value);
                // A blank between number and unit would need quotes.
                Some(format!("{} {}", kind.flag(), value.replace(' ', "")))
            }
            Change::Option(spec, value) => Some(format!("--set {}={}", spec.name, value.text())),
            Change::Kinds(kinds) => Some(format!("--devices {}", KindCount::list(kinds))),
            Change::FreeLinks | Change::EveryDegree | Change::EngineFeasible => None,
        }
    }
}

/// Numbers of devices by kind that differ from a problem's: `+8 h100`.
fn kinds_label(problem: &Problem, kinds: &[KindCount]) -> String {
    let own = KindCount::of(&problem.workload);
    let now = |id: &str| own.iter().find(|kind| kind.id == id).map_or(0, |kind| i64::from(kind.count));
    let differs = kinds.iter().map(|kind| (i64::from(kind.count) - now(&kind.id), &kind.id));
    let left_out = own.iter().filter(|own| own.count > 0 && kinds.iter().all(|kind| kind.id != own.id));
    let differs = differs.chain(left_out.map(|own| (-i64::from(own.count), &own.id)));
    let told: Vec<String> = differs.filter(|(more, _)| *more != 0).map(|(more, id)| format!("{more:+} {id}")).collect();
    told.join(", ")
}

fn limit_label(kind: LimitKind, now: f64, value: f64) -> String {
    let ratio = value / now;
    let plural = |count: f64| if count.abs() == 1.0 { kind.singular() } else { kind.label() };
    match kind {
        LimitKind::Devices | LimitKind::Cpus if ratio == 2.0 && value - now != 1.0 && value - now != 8.0 => {
            format!("2x {}", kind.label())
        }
        LimitKind::Devices | LimitKind::Cpus => format!("{:+} {}", value - now, plural(value - now)),
        LimitKind::Bandwidth if ratio == 0.5 => "half the bandwidth".into(),
        LimitKind::Bandwidth | LimitKind::Flops => format!("{}x {}", units::number(ratio), kind.label()),
        LimitKind::Microbatches => format!("{value} {}", plural(value)),
        _ => format!("{} {}", kind.label(), kind.format(value)),
    }
}

/// Options that state a resource, with the largest value of each.
fn resources(planner: &dyn Planner) -> impl Iterator<Item = (&'static OptionSpec, f64)> + '_ {
    planner.declaration().tunables.iter().filter_map(|tunable| match (tunable, spec_of(planner, *tunable)?.kind) {
        (Tunable::Resource(_), OptionKind::Number { most, .. } | OptionKind::Quantity { most, .. }) => {
            Some((spec_of(planner, *tunable)?, most))
        }
        _ => None,
    })
}

/// Declaration of a tunable.
pub(super) fn spec_of(planner: &dyn Planner, tunable: Tunable) -> Option<&'static OptionSpec> {
    planner.options().iter().find(|spec| spec.name == tunable.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::cluster::Limits;
    use plantui_planners::Options;

    #[test]
    fn moved_limits_are_called_as_people_call_them() {
        let (memory_bytes, bandwidth_bytes_per_s) = (Some(8.0 * f64::from(1 << 30)), Some(25e9));
        let limits = Limits { devices: 64, memory_bytes, bandwidth_bytes_per_s, ..Limits::NEUTRAL };
        let problem = Problem {
            workload: Arc::new(plantui_core::workload::builtin()),
            limits: limits.clone(),
            options: Options::default(),
        };
        let label = |kind, value| Change::Limit(kind, value).label(&problem);
        assert_eq!(label(LimitKind::Devices, 72.0), "+8 devices");
        assert_eq!(label(LimitKind::Devices, 63.0), "-1 device");
        assert_eq!(label(LimitKind::Devices, 128.0), "2x devices");
        assert_eq!(label(LimitKind::Memory, 10.0 * f64::from(1 << 30)), "memory 10 GiB");
        assert_eq!(label(LimitKind::Bandwidth, 2.0 * limits.bandwidth()), "2x bandwidth");
        assert_eq!(label(LimitKind::Cpus, 1.0), "+1 CPU");
        assert_eq!(label(LimitKind::Microbatches, 1.0), "1 microbatch");
        assert_eq!(Change::FREE_MEMORY.label(&problem), "memory unlimited");
    }
}
