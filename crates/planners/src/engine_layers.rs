//! Layers between which an engine cuts a workload, for planners that plan for an engine.

use super::{OptionError, Outcome, Problem, pipeline_options::Recompute};
use plantui_core::{
    family,
    plan::runner::{RecomputeRule, Runner},
    workload::{
        NodeIndex, Workload,
        layering::{Layer, Layering},
    },
};

/// Rule for the layers that recompute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Each layer as is cheapest.
    Free,
    /// All capable layers of a stage or none, chosen for each stage.
    StageByStage,
    /// Every layer that has the mode.
    AllThatCan,
    /// The first layers of every stage, this many. Each of them must have the mode, and no other layer recomputes.
    First(u32),
}

impl Rule {
    /// All layers of every stage.
    const ALL: Rule = Rule::First(u32::MAX);

    /// Returns the rules that the engine and the option both allow, for `layers` layers, simple rules first.
    pub(super) fn list(asked: Recompute, engine: RecomputeRule, layers: usize) -> Vec<Rule> {
        let (none, all) = (Rule::First(0), Rule::ALL);
        match (asked, engine) {
            (Recompute::Never, _) => vec![none],
            // If only some layers have the mode, `recompute_at` has refused engines that cannot skip the others.
            (Recompute::Always, _) => vec![Rule::AllThatCan],
            (_, RecomputeRule::AllOrNone) | (Recompute::AllOrNone, RecomputeRule::Count) => vec![none, all],
            (Recompute::AllOrNone, RecomputeRule::PerLayer) => vec![Rule::StageByStage],
            (Recompute::Auto, RecomputeRule::PerLayer) => vec![Rule::Free],
            (Recompute::Auto, RecomputeRule::Count) => {
                [none, all].into_iter().chain((1..layers as u32).map(Rule::First)).collect()
            }
        }
    }
}

/// Returns the layers between which an engine cuts, at most `most`.
///
/// # Errors
/// A sentence if the engine counts repeated layers and none repeat, or if there are too many layers.
pub(super) fn layers(runner: Runner, workload: &Workload, most: usize) -> Result<Layering, String> {
    let layering = Layering::of(workload, None).map_err(|error| error.to_string())?;
    if runner.counts_blocks() && layering.blocks() == 0 {
        return Err(format!("{} counts repeated layers, and no name of the workload repeats", runner.title()));
    }
    let layering = if runner.merges_ends() { layering.with_merged_ends() } else { layering };
    match layering.layers.len() {
        count if count > most => Err(format!("plans for engines have at most {most} layers, and there are {count}")),
        _ => Ok(layering),
    }
}

/// Checks that an engine can recompute as asked at tensor degree `t`. No engine recomputes nodes before or behind the
/// repeated layers. An engine that recomputes all layers, or the first of a stage, cannot skip one.
///
/// # Errors
/// The violated rule, a sentence.
pub(super) fn recompute_at(
    runner: Runner,
    workload: &Workload,
    layering: &Layering,
    recompute: Recompute,
    t: u32,
) -> Result<(), String> {
    let offers = |v: NodeIndex, again: bool| {
        family::of(workload).mode_at(v, t, again).is_some_and(|mode| mode.recomputes() == again)
    };
    let can = |v: NodeIndex| offers(v, true);
    match recompute {
        Recompute::Always => {}
        Recompute::Never => {
            let lacks = NodeIndex::first(workload.nodes.len()).find(|&v| !offers(v, false));
            return lacks.map_or(Ok(()), |v| {
                Err(format!("`{}` has no mode that keeps its activations", workload.nodes[v].label()))
            });
        }
        Recompute::Auto | Recompute::AllOrNone => return Ok(()),
    }
    let at_end = |v: NodeIndex| layering.at_ends[v.index()];
    let (title, label) = (runner.title(), |v: NodeIndex| workload.nodes[v].label());
    let asked = "it makes every node with such a mode recompute, and";
    if let Some(v) = NodeIndex::first(workload.nodes.len()).find(|&v| at_end(v) && can(v) && offers(v, false)) {
        return Err(format!("{asked} {title} recomputes repeated layers only, not `{}`", label(v)));
    }
    let how = match runner.recompute() {
        RecomputeRule::PerLayer => return Ok(()),
        RecomputeRule::Count => "the first of every stage",
        RecomputeRule::AllOrNone => "all repeated layers or none",
    };
    let counted = layering.layers.iter().filter(|layer| layer.nodes.iter().any(|&v| !at_end(v)));
    let lacks = |layer: &&Layer| !layer.nodes.iter().any(|&v| !at_end(v) && can(v));
    match counted.clone().find(lacks).filter(|_| !counted.clone().all(|layer| lacks(&layer))) {
        Some(layer) => Err(format!("{asked} {title} recomputes {how}: `{}` has no such mode", label(layer.nodes[0]))),
        None => Ok(()),
    }
}

/// Checks that an engine can recompute as asked at some tensor degree.
///
/// # Errors
/// The rule that is violated at the first degree, a sentence.
pub(super) fn recompute_anywhere(
    runner: Runner,
    workload: &Workload,
    layering: &Layering,
    recompute: Recompute,
) -> Result<(), String> {
    let degrees = family::of(workload).tensor_degrees();
    let found: Vec<_> = degrees.iter().map(|&t| recompute_at(runner, workload, layering, recompute, t)).collect();
    let any = found.is_empty() || found.iter().any(Result::is_ok);
    found.into_iter().find(|_| !any).unwrap_or(Ok(()))
}

/// Applies `recompute_anywhere` to a problem.
///
/// # Errors
/// [`OptionError::Unsuited`].
pub(super) fn check_recompute(
    problem: &Problem,
    runner: Runner,
    layering: &Layering,
    recompute: Recompute,
) -> Result<(), OptionError> {
    let found = recompute_anywhere(runner, &problem.workload, layering, recompute);
    found.map_err(|why| OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: "recompute".into(),
        value: recompute.id().into(),
        why,
        repair: "recompute=all-or-none for all repeated layers or none, recompute=auto for the best number".into(),
    })
}

/// Error: the workload cannot be planned for the requested engine.
pub(super) fn unsuited(problem: &Problem, runner: Runner, why: String) -> OptionError {
    OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: "engine".into(),
        value: runner.id().into(),
        why,
        repair: "plan without the option, and export the plan: the export lists what the engine cannot run".into(),
    }
}

/// Outcome for a caller that plans despite the error.
pub(super) fn refused(workload: &Workload, why: &str) -> Outcome {
    Outcome::refused(format!("{} cannot be planned for an engine: {why}.", workload.name))
}

/// True if a proof over these layers covers one of several orders of the nodes: nothing repeats, and the order is not
/// unique.
pub(super) fn one_row_of_several(layering: &Layering, workload: &Workload) -> bool {
    layering.blocks() == 0 && !workload.dag.has_one_order()
}
