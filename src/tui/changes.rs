//! Effect of a change: figures of the plan before and after, bright for a second, then calm.
//!
//! Figures are simulated and compared in samples per second, because another batch size changes the iteration by
//! itself. The baseline is the previous plan, or one that the user set.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{layout_bar::Axis, shown::Standing, simulated::Simulated};
use crate::{
    cluster::LimitKind,
    family::{self, dial},
    planner::{self, OptionSpec},
    units,
    workload::Workload,
};

/// Time for which a change is bright.
const BRIGHT: Duration = Duration::from_secs(1);
/// Time for which devices with a new stage flash.
const FLASH: Duration = Duration::from_millis(400);
/// Relative difference below which two plans count as equal.
const NOTICEABLE: f64 = units::AS_FAST;

/// Figures of a plan, for comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Worth {
    /// Iteration time, seconds.
    pub iteration_s: f64,
    /// Samples a second.
    pub samples_per_s: f64,
    /// Name of the planner.
    pub planner: String,
    /// Limits as text that parses back, by flag.
    limits: BTreeMap<String, String>,
    /// Labels and values of the workload's dials.
    dials: Vec<(String, String)>,
    /// Names and values of the planner's options.
    options: Vec<(String, String)>,
}

impl Worth {
    fn limit(&self, kind: LimitKind) -> Option<&String> {
        self.limits.get(kind.flag())
    }
}

/// State of the comparison.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    now: Option<Worth>,
    before: Option<Worth>,
    /// True if the user set `before` as the baseline: new plans do not replace it.
    set: bool,
    /// Stage of each device.
    stages: BTreeMap<u32, usize>,
    /// Devices whose stage changed.
    moved: Vec<u32>,
    at: Option<Instant>,
}

/// Change in words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    /// Iteration time before, seconds; `None` if the batch size differs.
    pub before_s: Option<f64>,
    /// Difference: `1.25x faster`.
    pub difference: String,
    /// Baseline: `than Equal partition`.
    pub than: String,
    /// True if faster, false if slower, `None` if equal.
    pub better: Option<bool>,
    /// True if the change is recent.
    pub bright: bool,
}

impl Changes {
    /// Next time at which the flash or the bright phase ends.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let at = self.at?;
        let flash = (!self.moved.is_empty()).then_some(at + FLASH);
        flash.into_iter().chain([at + BRIGHT]).find(|due| *due > now)
    }

    /// Records the simulated iteration of a plan, under a planner's name. Returns it unless it was the last one too.
    pub(super) fn note(&mut self, simulated: &Simulated, planner: &str, now: Instant) -> Option<Worth> {
        let (shown, timeline) = (&simulated.shown, &simulated.timeline);
        if matches!(shown.standing, Standing::BestSoFar { .. }) || timeline.iteration_s <= 0.0 {
            return None;
        }
        let worth = Worth {
            iteration_s: timeline.iteration_s,
            samples_per_s: timeline.samples_per_s,
            planner: planner.to_string(),
            limits: LimitKind::ALL
                .iter()
                .map(|kind| (kind.flag().into(), kind.exact(shown.limits.get(*kind))))
                .collect(),
            dials: dial::dials(&shown.workload).into_iter().map(|dial| (dial.label.into(), dial.value)).collect(),
            options: options(simulated),
        };
        let stages = stages(simulated);
        if self.now.as_ref() == Some(&worth) && self.stages == stages {
            return None;
        }
        let moved = |(device, stage): (&u32, &usize)| {
            self.stages.get(device).is_some_and(|before| before != stage).then_some(*device)
        };
        self.moved = stages.iter().filter_map(moved).collect();
        self.stages = stages;
        let last = self.now.replace(worth.clone());
        if !self.set {
            self.before = last.or(self.before.take());
        }
        self.at = self.before.is_some().then_some(now);
        Some(worth)
    }

    /// Effect of the last change of a workload's plan.
    pub(super) fn told(&self, workload: &Workload, time: Instant) -> Option<Told> {
        let (now, before) = (self.now.as_ref()?, self.before.as_ref()?);
        let gain = now.samples_per_s / before.samples_per_s;
        let of_batch = [LimitKind::Microbatches, LimitKind::Batch];
        let same_batch = of_batch.into_iter().all(|kind| now.limit(kind) == before.limit(kind));
        let bright = self.at.is_some_and(|at| time < at + BRIGHT);
        Some(Told {
            before_s: same_batch.then_some(before.iteration_s),
            difference: units::faster(gain),
            than: than(workload, now, before),
            better: ((gain - 1.0).abs() > NOTICEABLE).then_some(gain > 1.0),
            bright,
        })
    }

    /// Devices that flash at a time.
    pub(super) fn flashing(&self, now: Instant) -> &[u32] {
        match self.at {
            Some(at) if now < at + FLASH => &self.moved,
            _ => &[],
        }
    }

    /// Sets the shown plan as the baseline, or clears the one that was set. Returns what was done; `None` if there
    /// is no plan.
    pub(super) fn set_baseline(&mut self) -> Option<String> {
        let text = match (self.set, self.now.clone()) {
            (true, now) if now == self.before => {
                self.set = false;
                self.before = None;
                "changes are measured against the previous plan again".to_string()
            }
            (_, Some(now)) => {
                let text = format!(
                    "changes are measured against this plan: {}, {} an iteration",
                    now.planner,
                    units::seconds(now.iteration_s)
                );
                self.before = Some(now);
                self.set = true;
                text
            }
            (_, None) => return None,
        };
        self.at = None;
        Some(text)
    }
}

/// The baseline, named by what differs: `than Piper`, `than with 64 devices`.
fn than(workload: &Workload, now: &Worth, before: &Worth) -> String {
    let as_fast = (now.samples_per_s / before.samples_per_s - 1.0).abs() <= units::AS_FAST;
    let than = if as_fast { "as" } else { "than" };
    if now.planner != before.planner {
        return format!("{than} {}", before.planner);
    }
    match changed(workload, now, before).as_slice() {
        [one] => format!("{than} with {one}"),
        _ => format!("{than} before"),
    }
}

/// Inputs of `to` that differ from those of `from`, with their values.
pub(super) fn changed(workload: &Workload, from: &Worth, to: &Worth) -> Vec<String> {
    let mut changed = vec![];
    changed.extend((to.planner != from.planner).then(|| to.planner.clone()));
    let dials = to.dials.iter().zip(&from.dials).filter(|(to, from)| to != from);
    changed.extend(dials.map(|((label, value), _)| format!("{label} {value}")));
    // Other limits follow a dial: the memory that of the hardware.
    let own = |kind: LimitKind| matches!(kind, LimitKind::Devices | LimitKind::Batch | LimitKind::Microbatches);
    let turned = to.dials != from.dials;
    let kinds = family::of(workload).limits().iter().copied().filter(|&kind| !turned || own(kind));
    let differs = |kind: LimitKind| to.limit(kind).filter(|value| from.limit(kind) != Some(value));
    let value = |kind: LimitKind| Some(with(kind, kind.parse(differs(kind)?).ok()?));
    changed.extend(kinds.filter_map(value));
    // Planners have options of their own.
    if to.planner == from.planner {
        let options = to.options.iter().zip(&from.options).filter(|(to, from)| to != from);
        changed.extend(options.map(|((label, value), _)| format!("{label} {value}")));
    }
    changed
}

/// Limit's value with its name: `64 devices`, `memory 8 GiB`.
fn with(kind: LimitKind, value: f64) -> String {
    match kind {
        LimitKind::Devices | LimitKind::Cpus | LimitKind::Microbatches => kind.counted(value),
        _ => format!("{} {}", kind.label(), kind.format(value)),
    }
}

/// Options of a run with their values. An axis of the layout without one is free.
fn options(simulated: &Simulated) -> Vec<(String, String)> {
    let shown = &simulated.shown;
    let specs = planner::find(shown.planner.id).map_or(&[][..], |planner| planner.options());
    let named = |spec: &OptionSpec| {
        let value = shown.options.get(spec.name).unwrap_or_else(|| spec.default_value());
        let axis = Axis::ALL.into_iter().find(|axis| axis.option() == spec.name);
        match axis {
            Some(axis) if value == spec.default_value() => (axis.name().into(), "free".into()),
            Some(axis) => (axis.name().into(), spec.show(&value)),
            None => (spec.label.into(), spec.show(&value)),
        }
    };
    specs.iter().map(named).collect()
}

/// Stage of each device.
fn stages(simulated: &Simulated) -> BTreeMap<u32, usize> {
    let Some((plan, _)) = simulated.shown.plan() else { return BTreeMap::new() };
    let of = |(i, stage): (usize, &crate::plan::Stage)| stage.devices.iter().map(move |&device| (device, i)).collect();
    plan.stages.iter().enumerate().flat_map(|(i, stage)| -> Vec<(u32, usize)> { of((i, stage)) }).collect()
}
