//! Demands of a training engine on a plan, in terms of this planner's search.
//!
//! Engines cut between whole layers and give every stage the same degrees. They recompute repeated layers only, by a
//! rule of their own ([`Runner::recompute`]), and are started on whole machines. If all stages recompute the same
//! number of layers, each number is a separate search, cut short by the plans of the others.

use super::{kind::ScheduleKind, settings::JointSettings};
use crate::{
    OptionError, Problem,
    engine_layers::{self, Rule},
};
use plantui_core::{
    graph::Dag,
    plan::runner::{RecomputeRule, Runner},
    workload::{Workload, layering::Layering},
};

/// Number of layers above which a layering is not accepted. Bounds the units, which engines' lines do not thin.
const MOST_LAYERS: usize = 1000;

/// Demands of an engine.
#[derive(Debug, Clone)]
pub(super) struct EngineDemands {
    pub(super) runner: Runner,
    pub(super) layering: Layering,
    /// Number of devices of a machine.
    machine: u32,
}

/// Layers as the engine counts them. Each takes input from the layer before, unless the layers are single nodes.
///
/// # Errors
/// A sentence if there are no such layers.
pub(super) fn layers(runner: Runner, workload: &Workload) -> Result<Layering, String> {
    let layering = engine_layers::layers(runner, workload, MOST_LAYERS)?;
    let linked = linked(&layering, &workload.dag);
    let alone = linked.iter().skip(1).position(|linked| !linked).filter(|_| layering.blocks() > 0);
    let Some(alone) = alone else { return Ok(layering) };
    let first = layering.layers[alone + 1].nodes.first().map(|&node| workload.nodes[node].label());
    Err(format!("{} has no input from the layer before it: stages cannot be cut there", first.unwrap_or_default()))
}

/// Checks that a workload can be planned for an engine, with the requested schedules and recomputation.
///
/// # Errors
/// [`OptionError::Unsuited`] with the reason.
pub(super) fn check(problem: &Problem, runner: Runner, settings: JointSettings) -> Result<(), OptionError> {
    let found = layers(runner, &problem.workload);
    let layering = found.map_err(|why| engine_layers::unsuited(problem, runner, why))?;
    engine_layers::check_recompute(problem, runner, &layering, settings.recompute)?;
    let kinds = settings.wanted.kinds(&|schedule| runner.schedules().contains(&schedule));
    if layering.blocks() > 0 || kinds.is_empty() || kinds.iter().any(|kind| kind.parts == 1) {
        return Ok(());
    }
    Err(OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: "schedule".into(),
        value: kinds[0].schedule.id().into(),
        why: "virtual stages are made of repeated layers, and no name of the workload repeats".into(),
        repair: "leave the option out".into(),
    })
}

/// True for each layer that takes input from the one before.
pub(super) fn linked(layering: &Layering, dag: &Dag) -> Vec<bool> {
    let mut linked = vec![false; layering.layers.len()];
    for &(from, to) in dag.edges() {
        let (from, to) = (layering.layer_of[from as usize], layering.layer_of[to as usize]);
        linked[to] |= from + 1 == to;
    }
    linked
}

impl EngineDemands {
    /// Reads the layers of a workload for an engine.
    ///
    /// # Errors
    /// The reason why the engine has no layers to count, or why no stages can be cut.
    pub(super) fn new(runner: Runner, workload: &Workload, machine: u32) -> Result<Self, String> {
        Ok(EngineDemands { runner, layering: layers(runner, workload)?, machine })
    }

    /// Rules by which units may recompute, plain ones first.
    pub(super) fn rules(&self, settings: &JointSettings) -> Vec<Rule> {
        Rule::list(settings.recompute, self.runner.recompute(), self.layering.layers.len())
    }

    /// Checks that the engine supports the requested recomputation at a tensor degree.
    ///
    /// # Errors
    /// The violated rule, as a sentence.
    pub(super) fn obeys(&self, workload: &Workload, settings: JointSettings, t: u32) -> Result<(), String> {
        engine_layers::recompute_at(self.runner, workload, &self.layering, settings.recompute, t)
    }

    /// True if the engine runs a schedule with a recomputation rule: each part of the model must recompute equally many
    /// layers.
    pub(super) fn runs(&self, kind: ScheduleKind, rule: Rule) -> bool {
        let shares = match rule {
            Rule::First(count) => count == u32::MAX || count.is_multiple_of(kind.parts),
            Rule::Free | Rule::StageByStage | Rule::AllThatCan => true,
        };
        shares && (kind.parts == 1 || self.layering.blocks() > 0)
    }

    /// Sentence that describes plans for the engine.
    pub(super) fn note(&self) -> String {
        let recompute = match self.runner.recompute() {
            RecomputeRule::PerLayer => "each repeated layer recomputes or not",
            RecomputeRule::Count => "the first layers of every stage recompute, as many on each",
            RecomputeRule::AllOrNone => "all repeated layers recompute or none",
        };
        let told = self.runner.without_blocks().filter(|_| self.layering.blocks() == 0);
        let others = told.map(|told| format!(" {told}.")).unwrap_or_default();
        format!(
            "Planned for {}: whole layers in order, whole machines of {} devices or a part of one; \
            {recompute}.{others}",
            self.runner.title(),
            self.machine
        )
    }
}
