//! Title of every view: the layout of the shown plan, axis by axis.
//!
//! An axis that the planner can pin is a knob. Values that it could take instead are planned beside the shown plan, so
//! that the price of a turn is known before it is made, and a value without a plan is stepped over.

use std::sync::Arc;

use super::shown::ShownRun;
use crate::{
    plan::Plan,
    planner::{OptionKind, OptionSpec, OptionValue, Options},
    units,
    workload::training::{Layout, TrainingSettings},
};

/// Axis of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Tensor,
    Context,
    Pipeline,
    Virtual,
    Data,
    Expert,
    MicroBatch,
    Recompute,
}

impl Axis {
    /// All axes, in the order of the title.
    pub(super) const ALL: [Axis; 8] = [
        Axis::Tensor,
        Axis::Context,
        Axis::Pipeline,
        Axis::Virtual,
        Axis::Data,
        Axis::Expert,
        Axis::MicroBatch,
        Axis::Recompute,
    ];

    /// Label in the title.
    pub(super) fn label(self) -> &'static str {
        match self {
            Axis::Tensor => "TP",
            Axis::Context => "CP",
            Axis::Pipeline => "PP",
            Axis::Virtual => "×",
            Axis::Data => "DP",
            Axis::Expert => "EP",
            Axis::MicroBatch => "mbs",
            Axis::Recompute => "recompute",
        }
    }

    /// Name in a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Axis::Virtual => "virtual stages",
            other => other.label(),
        }
    }

    /// Word that teaches the label; empty if the label is one.
    pub(super) fn word(self) -> &'static str {
        match self {
            Axis::Tensor => "tensor",
            Axis::Context => "context",
            Axis::Pipeline => "pipeline",
            Axis::Data => "data",
            Axis::Expert => "expert",
            Axis::MicroBatch => "microbatch",
            Axis::Virtual | Axis::Recompute => "",
        }
    }

    /// Option of a planner that pins the axis.
    pub(super) fn option(self) -> &'static str {
        match self {
            Axis::Tensor => "tensor_degree",
            Axis::Context => "context_degree",
            Axis::Pipeline => "stages",
            Axis::Virtual => "virtual_stages",
            Axis::Data => "data_degree",
            Axis::Expert => "expert_degree",
            Axis::MicroBatch => "micro_batch",
            Axis::Recompute => "recompute",
        }
    }

    /// Width that a value keeps, cells.
    pub(super) fn width(self) -> usize {
        match self {
            Axis::Data => 3,
            Axis::Recompute => 0,
            _ => 2,
        }
    }

    /// Value in a layout, if it is a number.
    pub(super) fn of(self, layout: &Layout) -> Option<u32> {
        Some(match self {
            Axis::Tensor => layout.tensor,
            Axis::Context => layout.context,
            Axis::Pipeline => layout.pipeline,
            Axis::Virtual => layout.virtual_stages,
            Axis::Data => layout.data,
            Axis::Expert => layout.expert,
            Axis::MicroBatch => layout.micro_batch,
            Axis::Recompute => return None,
        })
    }
}

/// Axis with its value in the shown plan.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisValue {
    pub(super) axis: Axis,
    /// Value in words.
    pub(super) text: String,
    /// Value, if it is a number.
    pub(super) number: Option<u32>,
    /// True if an option holds it.
    pub(super) pinned: bool,
    /// True if an option could hold it.
    pub(super) turns: bool,
}

/// Title of a plan: its axes, and what else belongs to the layout.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LayoutTitle {
    pub(super) axes: Vec<AxisValue>,
    /// Further parts, such as `ZeRO-1`.
    pub(super) more: Vec<String>,
}

impl LayoutTitle {
    /// Title of a shown plan. `specs` are the options that its planner heeds, `options` their values.
    pub(super) fn of(shown: &ShownRun, specs: &[&OptionSpec], options: &Options) -> LayoutTitle {
        let Some((plan, _)) = shown.plan() else { return LayoutTitle::default() };
        let value = |(axis, number, text): (Axis, Option<u32>, String)| {
            let spec = specs.iter().find(|spec| spec.name == axis.option());
            let pinned = spec.is_some_and(|spec| options.get(spec.name).is_some_and(|own| own != spec.default_value()));
            AxisValue { axis, text, number, pinned, turns: spec.is_some() }
        };
        let mut title = LayoutTitle::default();
        if let (Some(profile), Some(own)) = (shown.workload.training(), plan.configuration()) {
            let axes = Axis::ALL.into_iter().map(|axis| match axis.of(&own.layout) {
                Some(number) => (axis, Some(number), number.to_string()),
                None => (axis, None, own.recompute.to_string()),
            });
            title.axes = axes.map(value).collect();
            title.more = vec![sharding(&profile.settings, own.distributed_optimizer)];
            return title;
        }
        let uniform = |of: &dyn Fn(&crate::plan::Stage) -> u32| -> (Option<u32>, String) {
            let values = plan.stages.iter().map(of);
            let (least, most) = values.fold((u32::MAX, 0), |(a, b), n| (a.min(n), b.max(n)));
            match least == most {
                true => (Some(most), most.to_string()),
                false => (None, format!("{least}–{most}")),
            }
        };
        if plan.stages.is_empty() || shown.names.noun != "stage" || shown.operators.is_some() {
            title.more = devices(shown, plan);
            return title;
        }
        let (tensor, data) = (uniform(&|stage| stage.tensor_parallel), uniform(&|stage| stage.data_parallel));
        let stages = plan.stages.len() as u32;
        let mut axes = vec![
            (Axis::Tensor, tensor.0, tensor.1),
            (Axis::Pipeline, Some(stages), stages.to_string()),
            (Axis::Data, data.0, data.1),
        ];
        let parts = plan.execution.map_or(1, |own| own.virtual_stages);
        if parts > 1 {
            axes.insert(2, (Axis::Virtual, Some(parts), parts.to_string()));
        }
        title.axes = axes.into_iter().map(value).collect();
        title.more = recomputed(plan).into_iter().collect();
        title
    }

    /// Axes above 1 in a few words: `TP 4 PP 4 ×5`.
    pub(super) fn brief(&self) -> String {
        let numbers = self.axes.iter().filter(|own| own.axis != Axis::Recompute && own.number != Some(1));
        let words: Vec<String> = numbers
            .map(|own| match own.axis {
                Axis::Virtual => format!("×{}", own.text),
                axis => format!("{} {}", axis.label(), own.text),
            })
            .collect();
        if self.axes.is_empty() { self.more.join(", ") } else { words.join(" ") }
    }

    /// Axes that turn.
    pub(super) fn knobs(&self) -> Vec<&AxisValue> {
        self.axes.iter().filter(|value| value.turns).collect()
    }
}

/// Sharding of the training state over replicas.
fn sharding(settings: &TrainingSettings, optimizer: bool) -> String {
    match () {
        () if settings.hsdp > 0 => format!("HSDP {}", settings.hsdp),
        () if settings.fsdp => "FSDP".into(),
        () if settings.shard_gradients => "ZeRO-2".into(),
        () if optimizer => "ZeRO-1".into(),
        () => "ZeRO-0".into(),
    }
}

/// Devices of a plan that is no pipeline of equal ones: its CPUs apart.
fn devices(shown: &ShownRun, plan: &Plan) -> Vec<String> {
    if shown.names.noun != "device" {
        return vec![units::counted(plan.devices_used() as usize, "device")];
    }
    let cpus = (0..plan.stages.len()).filter(|&i| shown.names.long(i).starts_with("CPU")).count();
    let counted = [(plan.stages.len() - cpus, "accelerator"), (cpus, "CPU")];
    counted.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| units::counted(count, noun)).collect()
}

/// How many nodes of a plan run again.
fn recomputed(plan: &Plan) -> Option<String> {
    let all: usize = plan.stages.iter().map(|stage| stage.nodes.len()).sum();
    let again: usize = plan.stages.iter().map(crate::plan::Stage::recomputed).sum();
    (all > 0).then(|| match again {
        0 => "recompute none".to_string(),
        _ if again == all => "recompute all".to_string(),
        _ => format!("recompute {again} of {all}"),
    })
}

/// Value that an axis could take.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisTrial {
    /// Value of the option; the default frees the axis.
    pub(super) value: OptionValue,
    /// Value in words.
    pub(super) text: String,
    /// Seconds for a sample, or why there is no plan; `None` while it is planned.
    pub(super) result: Option<Result<f64, String>>,
}

/// Values around that of one axis in one plan.
#[derive(Debug, Clone)]
pub(super) struct AxisTrials {
    /// Plan that they are compared with.
    pub(super) of: Arc<ShownRun>,
    pub(super) axis: Axis,
    /// Larger values, nearest first.
    pub(super) above: Vec<AxisTrial>,
    /// Smaller values, nearest first.
    pub(super) below: Vec<AxisTrial>,
    /// The axis left free, if it is pinned.
    pub(super) free: Option<AxisTrial>,
}

/// Most values in each direction.
const EACH_WAY: usize = 3;

impl AxisTrials {
    /// Values to try around one of a plan on `devices` devices.
    pub(super) fn new(of: Arc<ShownRun>, own: &AxisValue, spec: &OptionSpec, now: &OptionValue, devices: u32) -> Self {
        let trial = |value: OptionValue| {
            let text = spec.show(&value);
            AxisTrial { value, text, result: None }
        };
        let free = own.pinned.then(|| trial(spec.default_value()));
        let (above, below): (Vec<OptionValue>, Vec<OptionValue>) = match (&spec.kind, own.number) {
            (OptionKind::Choice { choices, .. }, _) => {
                let at = choices.iter().position(|(id, _)| *now == OptionValue::Choice(id)).unwrap_or(0);
                let choice = |(id, _): &(&'static str, &str)| OptionValue::Choice(id);
                // Its default is no value, but frees the axis.
                let pins = |value: &OptionValue| *value != spec.default_value();
                let above = choices[at + 1..].iter().map(choice).filter(pins).collect();
                (above, choices[..at].iter().rev().map(choice).filter(pins).collect())
            }
            (_, Some(number)) => {
                let [above, below] = neighbours(own.axis, number, devices);
                let numbers = |values: Vec<u32>| values.into_iter().map(|n| OptionValue::Number(n.into())).collect();
                (numbers(above), numbers(below))
            }
            _ => (vec![], vec![]),
        };
        let trials = |values: Vec<OptionValue>| values.into_iter().take(EACH_WAY).map(trial).collect();
        AxisTrials { of, axis: own.axis, above: trials(above), below: trials(below), free }
    }

    /// All trials: nearest first, larger and smaller in turn, freedom first.
    pub(super) fn all(&mut self) -> Vec<&mut AxisTrial> {
        let mut sides = vec![];
        let (mut above, mut below) = (self.above.iter_mut(), self.below.iter_mut());
        sides.extend(self.free.as_mut());
        loop {
            match (above.next(), below.next()) {
                (None, None) => return sides,
                (a, b) => sides.extend(a.into_iter().chain(b)),
            }
        }
    }

    /// First value in a direction that has a plan, or may have one, with the reasons of those that are stepped over.
    ///
    /// # Errors
    /// Reason why there is none.
    pub(super) fn next(&self, up: bool) -> Result<(&AxisTrial, Vec<String>), String> {
        let side = if up { &self.above } else { &self.below };
        let mut over = vec![];
        for trial in side {
            match &trial.result {
                Some(Err(reason)) => over.push(format!("{} {}: {reason}", self.axis.name(), trial.text)),
                _ => return Ok((trial, over)),
            }
        }
        let end = if up { "largest" } else { "smallest" };
        Err(over.first().cloned().unwrap_or_else(|| format!("this is the {end} value of {}", self.axis.name())))
    }
}

/// Numbers above and below one, nearest first.
fn neighbours(axis: Axis, number: u32, devices: u32) -> [Vec<u32>; 2] {
    match axis {
        Axis::Pipeline => {
            let divides = |n: &u32| devices.is_multiple_of(*n);
            [(number + 1..=devices).filter(divides).collect(), (1..number).rev().filter(divides).collect()]
        }
        Axis::Virtual => [(number + 1..=number + 32).collect(), (1..number).rev().collect()],
        _ => {
            let up = std::iter::successors(Some(number), |n| n.checked_mul(2)).skip(1);
            let down = std::iter::successors(Some(number), |n| (*n > 1).then_some(n / 2)).skip(1);
            [up.take_while(|n| *n <= devices.max(64)).collect(), down.collect()]
        }
    }
}

/// Degrees of a layout in short, without those of 1: `TP 4 CP 2 PP 4 ×5 DP 2`.
pub(super) fn degrees(layout: &Layout, gap: &str) -> String {
    let axes = [Axis::Tensor, Axis::Context, Axis::Pipeline, Axis::Data, Axis::Expert].into_iter();
    let times = Axis::Virtual.of(layout).filter(|n| *n > 1).map_or_else(String::new, |n| format!("{gap}×{n}"));
    let degree = |axis: Axis| {
        let times = if axis == Axis::Pipeline { times.as_str() } else { "" };
        axis.of(layout).filter(|n| *n > 1).map(|n| format!("{}{gap}{n}{times}", axis.label()))
    };
    axes.filter_map(degree).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_values_that_divide_or_double() {
        assert_eq!(neighbours(Axis::Tensor, 4, 64), [vec![8, 16, 32, 64], vec![2, 1]]);
        assert_eq!(neighbours(Axis::Pipeline, 4, 48), [vec![6, 8, 12, 16, 24, 48], vec![3, 2, 1]]);
        assert_eq!(neighbours(Axis::Virtual, 2, 64)[1], [1]);
        assert_eq!(neighbours(Axis::Data, 3, 48), [vec![6, 12, 24, 48], vec![1]]);
    }
}
