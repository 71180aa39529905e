//! Plan of a job over an existing profile of its network, which has measured times in place of a model's sizes.

use plantui_core::{
    family,
    plan::{Plan, Stage},
    source::LoadError,
    workload::{
        Choice, NodeIndex, Workload,
        layering::{LayerPosition, Layering},
        training::Recompute,
    },
};

use super::job::Job;

/// Plan that the job runs, over a profile of the same network. Layers are divided equally if the job does not state
/// those of each stage, as engines do.
///
/// # Errors
/// [`LoadError`] if the workload is not a sequence of layers, has another number of layers, or lacks the tensor degree.
pub fn plan(job: &Job, workload: &Workload) -> Result<Plan, LoadError> {
    let refuse = |problem: String, repair: &str| Err(LoadError::file(&job.source, problem, repair));
    let family = family::of(workload);
    if family.tensor_degrees().is_empty() {
        let problem = format!("cannot be a plan over {}, which has no times by tensor degree", workload.name);
        return refuse(problem, "give a workload in Piper's format");
    }
    for (name, word) in [("cp", "context"), ("ep", "expert")] {
        if job.degree(name) > 1 {
            let problem = format!("has {word} parallelism, which the stages of a profile do not have");
            return refuse(problem, "import it without --for: the model's prediction knows it");
        }
    }
    let layering = match Layering::of(workload, None) {
        Ok(layering) if layering.blocks() > 0 => layering,
        _ => {
            let problem = format!("counts layers, and no name of {} repeats", workload.name);
            return refuse(problem, "give a workload of a transformer");
        }
    };
    let blocks = layering.blocks();
    let counts = counts(job, blocks)?;
    let tensor = job.degree("tp");
    let data = job.degree("devices") / (job.degree("pp") * tensor).max(1);
    let stage_of_block: Vec<usize> =
        counts.iter().enumerate().flat_map(|(stage, &count)| std::iter::repeat_n(stage, count)).collect();
    let last = counts.len() - 1;
    let mut place_in_stage = vec![0usize; counts.len()];
    let mut members: Vec<Vec<(NodeIndex, Choice)>> = vec![vec![]; counts.len()];
    for layer in &layering.layers {
        let (stage, again) = match layer.kind {
            LayerPosition::First => (0, false),
            LayerPosition::Block(number) => {
                let stage = stage_of_block[number];
                place_in_stage[stage] += 1;
                (stage, recomputes(job, number, place_in_stage[stage] - 1))
            }
            LayerPosition::Last | LayerPosition::Single => (last, false),
        };
        for &node in &layer.nodes {
            let again = again && !layering.at_ends[node.index()];
            let Some(mode) = family.mode_at(node, tensor, again) else {
                let (node, name) = (workload.nodes[node].label(), &workload.name);
                let problem = format!("has tensor degree {tensor}, for which {node} of {name} has no mode");
                return refuse(problem, "generate the workload with that degree in --tensor-degrees");
            };
            members[stage].push((node, mode));
        }
    }
    let stage = |mut members: Vec<(NodeIndex, Choice)>| {
        members.sort();
        let (nodes, choices) = members.into_iter().unzip();
        Stage { nodes, choices, data_parallel: data, tensor_parallel: tensor, devices: vec![] }
    };
    let stages = members.into_iter().map(stage).collect();
    Ok(Plan { stages, ..Plan::default() }.with_consecutive_devices())
}

fn recomputes(job: &Job, block: usize, place: usize) -> bool {
    if let Some(flags) = &job.recomputed {
        return flags.get(block).copied().unwrap_or(false);
    }
    let recompute = job.facts.get("recompute").and_then(|fact| Recompute::parse(&fact.value).ok());
    recompute.is_some_and(|recompute| recompute.repeats(place))
}

/// Number of blocks in every stage.
fn counts(job: &Job, blocks: usize) -> Result<Vec<usize>, LoadError> {
    let stages = job.degree("pp").max(1) as usize;
    let refuse = |problem: String| {
        Err(LoadError::file(&job.source, problem, "give the workload of the same model, or the layers of each stage"))
    };
    let Some(fact) = job.facts.get("layers").filter(|_| stages > 1) else {
        if !blocks.is_multiple_of(stages) {
            return refuse(format!(
                "has {stages} stages, which do not divide {blocks} layers, and does not state the layers of each stage"
            ));
        }
        return Ok(vec![blocks / stages; stages]);
    };
    let parts: Vec<usize> = fact.value.split(',').filter_map(|word| word.trim_end_matches('m').parse().ok()).collect();
    // Part v·p + s belongs to stage s.
    let counts: Vec<usize> = (0..stages).map(|stage| parts.iter().skip(stage).step_by(stages).sum()).collect();
    let sum: usize = counts.iter().sum();
    if sum != blocks {
        return refuse(format!("assigns {sum} layers, the workload has {blocks}"));
    }
    Ok(counts)
}
