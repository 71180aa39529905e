//! Layouts of the search, each with its time and memory, and the front of both.

use std::sync::Arc;

use crate::{
    plan::{Configuration, Plan},
    tui::{model::Model, shown::ShownRun},
    workload::training::Recompute,
};

/// Number of a job's layout, which no search has.
const RUNS: usize = usize::MAX;

/// Number of a layout that was taken step by step.
const TAKEN: usize = RUNS - 1;

/// Layout of the search.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// Number in the search's own order, which sorting keeps.
    pub number: usize,
    pub plan: Plan,
    pub configuration: Configuration,
    /// Iteration time, seconds.
    pub seconds: f64,
    /// Memory of the fullest device, bytes.
    pub bytes: f64,
    /// True if no other layout takes less of both.
    pub on_front: bool,
    /// True for the plan on the screen.
    pub shown: bool,
    /// True for the plan of a job as it runs.
    pub runs: bool,
}

impl Point {
    /// True if whole layers or modules run again.
    pub(super) fn repeats(&self) -> bool {
        self.configuration.recompute != Recompute::None
    }
}

/// Run that the layouts come from: the planner's, also while one of its layouts is on the screen.
pub(super) fn source(model: &Model) -> Option<&Arc<ShownRun>> {
    if model.edited() { model.planning.edits.base.as_ref() } else { model.planning.shown.as_ref() }
}

/// Layouts in the order of their rows.
pub(super) fn points(model: &Model) -> Vec<Point> {
    let Some(source) = source(model) else { return vec![] };
    let on_screen = model.planning.shown.as_ref().and_then(|shown| shown.outcome.plan.as_ref());
    let mut points: Vec<Point> = vec![];
    let own = source.plan().zip(source.outcome.objective);
    let own = own.map(|((plan, score), seconds)| (plan, seconds, score.peak_memory_bytes()));
    let others = source.outcome.alternatives.iter().map(|other| (&other.plan, other.value, other.memory_bytes));
    for (plan, seconds, bytes) in own.into_iter().chain(others) {
        let Some(configuration) = plan.configuration() else { continue };
        if points.iter().any(|known| known.configuration == *configuration) {
            continue;
        }
        let shown = on_screen.and_then(Plan::configuration) == Some(configuration);
        points.push(Point {
            number: points.len(),
            plan: plan.clone(),
            configuration: configuration.clone(),
            seconds,
            bytes,
            on_front: false,
            shown,
            runs: false,
        });
    }
    // A layout that was taken from between two others is in no list.
    let taken = model.planning.shown.as_ref().filter(|_| model.edited()).and_then(|shown| {
        let (plan, score) = shown.plan()?;
        let configuration =
            plan.configuration().filter(|own| !points.iter().any(|known| known.configuration == **own))?;
        let seconds = model.simulation.of(shown).map_or(score.value, |own| own.timeline.iteration_s);
        Some(Point {
            number: TAKEN,
            plan: plan.clone(),
            configuration: configuration.clone(),
            seconds,
            bytes: score.peak_memory_bytes(),
            on_front: false,
            shown: true,
            runs: false,
        })
    });
    points.extend(taken);
    points.extend(model.pins_here().filter(|pin| pin.compared.is_of_job()).filter_map(|pin| {
        let shown = &pin.compared.shown;
        let (plan, score) = shown.plan()?;
        let simulated = pin.compared.entry.simulated.as_ref().map(|figures| figures.iteration_s);
        Some(Point {
            number: RUNS,
            plan: plan.clone(),
            configuration: plan.configuration()?.clone(),
            seconds: simulated.unwrap_or(score.value),
            bytes: score.peak_memory_bytes(),
            on_front: false,
            shown: on_screen == Some(plan),
            runs: true,
        })
    }));
    if let Some((axis, value)) = model.views.frontier.only {
        points.retain(|point| point.runs || axis.of(&point.configuration.layout) == Some(value));
    }
    let all: Vec<(f64, f64)> = points.iter().map(|point| (point.seconds, point.bytes)).collect();
    for point in &mut points {
        let beats = |(seconds, bytes): &(f64, f64)| {
            *seconds <= point.seconds && *bytes <= point.bytes && (*seconds < point.seconds || *bytes < point.bytes)
        };
        point.on_front = !all.iter().any(beats);
    }
    if model.views.frontier.by_memory {
        points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    } else {
        points.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    }
    points
}
