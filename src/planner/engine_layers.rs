//! The layers between which an engine cuts a workload, for planners that plan for one.

use super::{OptionError, Outcome, Problem, pipeline_options::Recompute};
use crate::{
    family,
    plan::runner::{RecomputeRule, Runner},
    workload::{
        NodeIndex, Workload,
        layering::{Layer, Layering},
    },
};

/// Which layers recompute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Whichever are cheapest.
    Free,
    /// All layers of a stage that can, or none, stage by stage.
    StageByStage,
    /// Every layer that can.
    AllThatCan,
    /// The first so many of every stage: each of them must be able to, and no other may.
    First(u32),
}

impl Rule {
    /// Every layer of every stage.
    const ALL: Rule = Rule::First(u32::MAX);

    /// Rules that an engine leaves of those asked for, plain rules first; of so many layers.
    pub(super) fn list(asked: Recompute, engine: RecomputeRule, layers: usize) -> Vec<Rule> {
        let (none, all) = (Rule::First(0), Rule::ALL);
        match (asked, engine) {
            (Recompute::Never, _) => vec![none],
            // Where a layer lacks the mode the others are refused, unless all lack it.
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

/// The layers that an engine knows, at most so many.
///
/// # Errors
/// A sentence where it has nothing to count, or too much.
pub(super) fn layers(runner: Runner, workload: &Workload, most: usize) -> Result<Layering, String> {
    let layering = Layering::of(workload, None).map_err(|error| error.to_string())?;
    if runner.counts_blocks() && layering.blocks() == 0 {
        return Err(format!("{} counts repeated layers, and no name of the workload repeats", runner.title()));
    }
    let layering = if runner.merges_ends() { layering.with_merged_ends() } else { layering };
    match layering.layers.len() {
        count if count > most => {
            Err(format!("plans for engines are made of at most {most} layers here, and there are {count}"))
        }
        _ => Ok(layering),
    }
}

/// Checks that an engine can recompute as asked at a tensor degree. No engine recomputes nodes before or behind the repeated
/// layers; an engine that recomputes all layers, or the first of a stage, cannot leave one out.
///
/// # Errors
/// The rule that stands in the way, a sentence.
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
    let asked = "that asks every node with a mode for it to recompute, and";
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
/// The rule that stands in the way at the first degree, a sentence.
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

/// The same of a problem.
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
        repair: "recompute=all-or-none: all repeated layers or none; auto: as many as pay".into(),
    })
}

/// That a workload cannot be planned for the engine asked for.
pub(super) fn unsuited(problem: &Problem, runner: Runner, why: String) -> OptionError {
    OptionError::Unsuited {
        workload: problem.workload.name.clone(),
        name: "engine".into(),
        value: runner.id().into(),
        why,
        repair: "plan without, and export the plan: what the engine cannot run of it is said there".into(),
    }
}

/// The same to whoever plans all the same.
pub(super) fn refused(workload: &Workload, why: &str) -> Outcome {
    Outcome::refused(format!("{} cannot be planned so: {why}.", workload.name))
}

/// What a proof over these layers speaks of beside the engine: where nothing repeats they stand in one of several orders.
pub(super) fn one_row_of_several(layering: &Layering, workload: &Workload) -> bool {
    layering.blocks() == 0 && !workload.dag.has_one_order()
}
