//! Figures of a simulated iteration, as a table and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::schemas::DocumentSchema;
use crate::{
    cli::report::{self, line},
    cluster::Limits,
    export::plan_json,
    plan::{Plan, Stage, document::SimulationPart},
    run::Simulation,
    simulate::{CriticalPath, LinkUse, MemoryParts, critical_path},
    study::losses::Losses,
    units,
};

/// Most links that the table shows: the busiest ones.
const SHOWN_LINKS: usize = 5;

/// Simulated iteration of a plan.
#[derive(Debug, Serialize, JsonSchema)]
struct SimulationDocument {
    schema: &'static str,
    #[serde(flatten)]
    summary: SimulationPart,
    stages: Vec<StageEntry>,
    links: Vec<LinkEntry>,
    critical_path: PathEntry,
    notes: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StageEntry {
    data_parallel: u32,
    tensor_parallel: u32,
    forward_s: f64,
    backward_s: f64,
    recompute_s: f64,
    all_reduce_s: f64,
    busy_s: f64,
    utilization: f64,
    peak_memory_bytes: f64,
    memory: MemoryEntry,
}

/// Parts of the peak memory.
#[derive(Debug, Serialize, JsonSchema)]
struct MemoryEntry {
    weights_bytes: f64,
    gradients_bytes: f64,
    optimizer_bytes: f64,
    state_bytes: f64,
    activations_bytes: f64,
    buffers_bytes: f64,
}

impl From<&MemoryParts> for MemoryEntry {
    fn from(parts: &MemoryParts) -> Self {
        MemoryEntry {
            weights_bytes: parts.weights,
            gradients_bytes: parts.gradients,
            optimizer_bytes: parts.optimizer,
            state_bytes: parts.state,
            activations_bytes: parts.activations,
            buffers_bytes: parts.buffers,
        }
    }
}

/// Link between two stages, counted from 1, in one direction.
#[derive(Debug, Serialize, JsonSchema)]
struct LinkEntry {
    from_stage: usize,
    to_stage: usize,
    busy_s: f64,
    utilization: f64,
    bytes: f64,
}

/// Chain of events that determines the iteration time.
#[derive(Debug, Serialize, JsonSchema)]
struct PathEntry {
    events: usize,
    from_s: f64,
    to_s: f64,
    shares: Vec<ShareEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ShareEntry {
    kind: &'static str,
    stage: usize,
    seconds: f64,
}

/// Fraction of a whole; 0 if the whole is 0.
fn part(seconds: f64, whole: f64) -> f64 {
    if whole > 0.0 { seconds / whole } else { 0.0 }
}

fn path(simulation: &Simulation) -> CriticalPath {
    critical_path(&simulation.pipeline, simulation.schedule, &simulation.timeline)
}

/// Assumptions, and schedules that the plan cannot run.
fn notes(simulation: &Simulation) -> Vec<String> {
    let pipeline = &simulation.pipeline;
    let own = pipeline.notes.iter().cloned();
    own.chain(pipeline.schedule_notes(simulation.schedule)).collect()
}

/// Figures in words and tables; `memory` limits the devices of each stage, bytes.
pub(super) fn summary(plan: &Plan, (limits, memory): (&Limits, &[f64]), simulation: &Simulation) -> String {
    let Simulation { timeline, pipeline, .. } = simulation;
    let mut text = String::new();
    report::simulation(&mut text, simulation, Losses::of_simulation(simulation).as_ref(), limits);
    line(&mut text, format_args!("critical path: {}", path(simulation).summary()));
    line(&mut text, format_args!(""));
    let head = ["stage", "DP x TP", "forward", "backward", "all-reduce", "busy", "peak memory", "of limit"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (i, stage) in plan.stages.iter().enumerate() {
        let timing = &pipeline.stages[i];
        rows.push(vec![
            (i + 1).to_string(),
            format!("{} x {}", stage.data_parallel, stage.tensor_parallel),
            units::seconds(timing.forward_s),
            units::seconds(timing.backward_s),
            units::seconds(timing.all_reduce_s),
            units::percent(part(timeline.busy_s[i], timeline.iteration_s)),
            units::bytes_beside(timeline.peak_memory_bytes[i], memory[i]),
            units::percent(part(timeline.peak_memory_bytes[i], memory[i])),
        ]);
    }
    report::table(&mut text, &rows);
    if let Some(fullest) = fullest(simulation) {
        let parts = timeline.peak_parts[fullest].named();
        let named = parts
            .iter()
            .filter(|part| part.1 > 0.0)
            .map(|part| format!("{} {}", part.0, units::bytes_beside(part.1, limits.memory_limit())));
        let named: Vec<String> = named.collect();
        if !named.is_empty() {
            line(&mut text, format_args!("memory of stage {}: {}", fullest + 1, named.join(", ")));
        }
    }
    let links = busiest(&timeline.links);
    if !links.is_empty() {
        let one = |link: &&LinkUse| {
            let load = units::percent(part(link.busy_s, timeline.iteration_s));
            format!("{} to {} {load}", link.from + 1, link.to + 1)
        };
        let shown: Vec<String> = links.iter().take(SHOWN_LINKS).map(one).collect();
        let more = links.len().saturating_sub(SHOWN_LINKS);
        let rest =
            if more > 0 { format!(", and {} with no more", report::counted(more, "other")) } else { String::new() };
        line(&mut text, format_args!("use of links between stages: {}{rest}", shown.join(", ")));
    }
    report::notes(&mut text, &notes(simulation));
    text
}

/// Stage with the highest peak memory.
fn fullest(simulation: &Simulation) -> Option<usize> {
    let peaks = simulation.timeline.peak_memory_bytes.iter().enumerate();
    peaks.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0))).map(|(stage, _)| stage)
}

/// Links by load, the busiest first.
fn busiest(links: &[LinkUse]) -> Vec<&LinkUse> {
    let mut sorted: Vec<&LinkUse> = links.iter().collect();
    sorted.sort_by(|a, b| b.busy_s.total_cmp(&a.busy_s));
    sorted
}

/// Figures as a document.
pub(super) fn document(plan: &Plan, simulation: &Simulation) -> impl Serialize {
    let Simulation { schedule, pipeline, timeline } = simulation;
    let stage = |(i, stage): (usize, &Stage)| StageEntry {
        data_parallel: stage.data_parallel,
        tensor_parallel: stage.tensor_parallel,
        forward_s: pipeline.stages[i].forward_s,
        backward_s: pipeline.stages[i].backward_s,
        recompute_s: pipeline.stages[i].recompute_s,
        all_reduce_s: pipeline.stages[i].all_reduce_s,
        busy_s: timeline.busy_s[i],
        utilization: part(timeline.busy_s[i], timeline.iteration_s),
        peak_memory_bytes: timeline.peak_memory_bytes[i],
        memory: MemoryEntry::from(&timeline.peak_parts[i]),
    };
    let link = |link: &LinkUse| LinkEntry {
        from_stage: link.from + 1,
        to_stage: link.to + 1,
        busy_s: link.busy_s,
        utilization: part(link.busy_s, timeline.iteration_s),
        bytes: link.bytes,
    };
    let path = path(simulation);
    let shares = path.shares.iter();
    SimulationDocument {
        schema: "plantui.simulation/1",
        summary: plan_json::simulation_part(pipeline, *schedule, timeline),
        stages: plan.stages.iter().enumerate().map(stage).collect(),
        links: timeline.links.iter().map(link).collect(),
        critical_path: PathEntry {
            events: path.events.len(),
            from_s: path.from_s,
            to_s: path.to_s,
            shares: shares.map(|&(kind, s, seconds)| ShareEntry { kind: kind.name(), stage: s + 1, seconds }).collect(),
        },
        notes: notes(simulation),
    }
}

/// JSON Schema of the document.
pub(in crate::cli) fn schema() -> DocumentSchema {
    DocumentSchema::written::<SimulationDocument>("plantui.simulation/1")
}
