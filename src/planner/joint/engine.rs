//! What an engine demands of a plan, as this planner's search takes it.
//!
//! Engines cut between whole layers, give every stage the same degrees, recompute repeated layers only and by a rule of
//! their own ([`Runner::recompute`]), and are started on whole machines. Where one number of recomputed layers holds for all
//! stages, every number is a search of its own; what one finds cuts the others short.

use super::{kind::Kind, settings::JointSettings};
use crate::planner::{
    OptionError, Problem,
    engine_layers::{self, Rule},
};
use crate::{
    graph::Dag,
    plan::runner::{RecomputeRule, Runner},
    workload::{Workload, layering::Layering},
};

/// More layers than this are no layers.
const MOST_LAYERS: usize = 1000;

/// The demands of an engine.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    pub(super) runner: Runner,
    pub(super) layering: Layering,
    /// Devices of a machine.
    machine: u32,
}

/// The layers that the engine knows, each of which takes something from the one before, unless they are single nodes.
///
/// # Errors
/// A sentence where there are no such.
pub(super) fn layers(runner: Runner, workload: &Workload) -> Result<Layering, String> {
    let layering = engine_layers::layers(runner, workload, MOST_LAYERS)?;
    let linked = linked(&layering, &workload.dag);
    let alone = linked.iter().skip(1).position(|linked| !linked).filter(|_| layering.blocks() > 0);
    let Some(alone) = alone else { return Ok(layering) };
    let first = layering.layers[alone + 1].nodes.first().map(|&node| workload.nodes[node].label());
    Err(format!(
        "{} takes nothing from the layer before it: stages cannot be cut there in a row",
        first.unwrap_or_default()
    ))
}

/// Whether a workload can be planned for an engine, under the schedules and with the recomputation asked for.
///
/// # Errors
/// [`OptionError::Unsuited`] with why not.
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

/// By layer: whether it takes something from the one before.
pub(super) fn linked(layering: &Layering, dag: &Dag) -> Vec<bool> {
    let mut linked = vec![false; layering.layers.len()];
    for &(from, to) in dag.edges() {
        let (from, to) = (layering.layer_of[from as usize], layering.layer_of[to as usize]);
        linked[to] |= from + 1 == to;
    }
    linked
}

impl Engine {
    /// # Errors
    /// Why the engine has nothing to count, or no stages can be cut.
    pub(super) fn new(runner: Runner, workload: &Workload, machine: u32) -> Result<Self, String> {
        Ok(Engine { runner, layering: layers(runner, workload)?, machine })
    }

    /// The rules by which units may recompute, plain ones first.
    pub(super) fn rules(&self, settings: &JointSettings) -> Vec<Rule> {
        Rule::list(settings.recompute, self.runner.recompute(), self.layering.layers.len())
    }

    /// Whether it can do at a tensor degree what is asked of recomputation.
    ///
    /// # Errors
    /// The rule that stands in the way, a sentence.
    pub(super) fn obeys(&self, workload: &Workload, settings: JointSettings, t: u32) -> Result<(), String> {
        engine_layers::recompute_at(self.runner, workload, &self.layering, settings.recompute, t)
    }

    /// Whether a schedule can be had with a rule to recompute: each part of the model recomputes as many layers.
    pub(super) fn runs(&self, kind: Kind, rule: Rule) -> bool {
        let shares = match rule {
            Rule::First(count) => count == u32::MAX || count.is_multiple_of(kind.parts),
            Rule::Free | Rule::StageByStage | Rule::AllThatCan => true,
        };
        shares && (kind.parts == 1 || self.layering.blocks() > 0)
    }

    /// What plans for the engine look like, in a sentence.
    pub(super) fn note(&self) -> String {
        let recompute = match self.runner.recompute() {
            RecomputeRule::PerLayer => "each repeated layer recomputes or not",
            RecomputeRule::Count => "the first layers of every stage recompute, as many on each",
            RecomputeRule::AllOrNone => "all repeated layers recompute or none",
        };
        let told = self.runner.without_blocks().filter(|_| self.layering.blocks() == 0);
        let others = told.map(|told| format!(" {told}.")).unwrap_or_default();
        format!(
            "Planned for {}: whole layers in order, whole machines of {} devices or a part of one; {recompute}.{others}",
            self.runner.title(),
            self.machine
        )
    }
}
