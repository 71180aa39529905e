//! Plan of a configuration over a workload.

use super::{JobConfiguration, JobFormat, RecomputedLayers};
use plantui_core::{
    family,
    plan::{Plan, Stage},
    source::LoadError,
    workload::{
        Choice, NodeIndex, Workload,
        layering::{LayerPosition, Layering},
    },
};

/// Plan that the configuration runs, over a workload of the same network. If the file does not state the layers of a
/// stage, they are divided equally, as engines do.
///
/// # Errors
/// [`LoadError`] if the workload is not a sequence of layers, has another number of layers, or lacks the tensor degree.
pub fn plan(configuration: &JobConfiguration, workload: &Workload, source: &str) -> Result<Plan, LoadError> {
    let refuse = |problem: String, repair: &str| Err(LoadError::file(source, problem, repair));
    let family = family::of(workload);
    if family.tensor_degrees().is_empty() {
        return refuse(
            format!("cannot be a plan over {}, which has no times by tensor degree", workload.name),
            "give a workload in Piper's format",
        );
    }
    let layering = match Layering::of(workload, None) {
        Ok(layering) if layering.blocks() > 0 => layering,
        _ => {
            return refuse(
                format!("counts layers, and no name of {} repeats", workload.name),
                "give a workload of a transformer",
            );
        }
    };
    let blocks = layering.blocks();
    let counts = counts(configuration, blocks, source)?;
    let mut stage_of_block: Vec<usize> =
        counts.iter().enumerate().flat_map(|(stage, &count)| std::iter::repeat_n(stage, count)).collect();
    stage_of_block.truncate(blocks);
    let last = counts.len() - 1;
    let mut stages: Vec<Stage> = counts
        .iter()
        .map(|_| Stage {
            nodes: vec![],
            choices: vec![],
            data_parallel: configuration.data,
            tensor_parallel: configuration.tensor,
            devices: vec![],
        })
        .collect();
    let mut place_in_stage = vec![0usize; counts.len()];
    let mut members: Vec<Vec<(NodeIndex, Choice)>> = vec![vec![]; counts.len()];
    for layer in &layering.layers {
        let (stage, again) = match layer.kind {
            LayerPosition::First => (0, false),
            LayerPosition::Block(number) => {
                let stage = stage_of_block[number];
                place_in_stage[stage] += 1;
                (stage, recomputes(configuration, number, place_in_stage[stage] - 1))
            }
            LayerPosition::Last | LayerPosition::Single => (last, false),
        };
        for &node in &layer.nodes {
            let again = again && !layering.at_ends[node.index()];
            let Some(mode) = family.mode_at(node, configuration.tensor, again) else {
                let problem = format!(
                    "has tensor degree {}, for which {} of {} has no mode",
                    configuration.tensor,
                    workload.nodes[node].label(),
                    workload.name
                );
                return refuse(problem, "generate the workload with that degree in --tensor-degrees");
            };
            members[stage].push((node, mode));
        }
    }
    for (stage, mut members) in stages.iter_mut().zip(members) {
        members.sort();
        (stage.nodes, stage.choices) = members.into_iter().unzip();
    }
    Ok(Plan { stages, ..Plan::default() }.with_consecutive_devices())
}

fn recomputes(configuration: &JobConfiguration, block: usize, place: usize) -> bool {
    match &configuration.recompute {
        RecomputedLayers::No => false,
        RecomputedLayers::All => true,
        RecomputedLayers::First(most) => place < *most,
        RecomputedLayers::Each(flags) => {
            // DeepSpeed numbers the entries of its list, and the embedding is the first.
            let at = if configuration.engine == JobFormat::DeepSpeed { block + 1 } else { block };
            flags.get(at).copied().unwrap_or(false)
        }
    }
}

/// Number of blocks in every stage.
fn counts(configuration: &JobConfiguration, blocks: usize, source: &str) -> Result<Vec<usize>, LoadError> {
    let stages = configuration.pipeline as usize;
    if let Some((starts, ranks)) = &configuration.splits {
        let bounds: Vec<usize> = [0].into_iter().chain(starts.iter().copied()).chain([blocks]).collect();
        let parts: Vec<usize> = bounds.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
        if starts.last().is_some_and(|&last| last >= blocks) {
            let problem = format!("splits in front of layer {}, the workload has {blocks}", starts[starts.len() - 1]);
            return Err(LoadError::file(source, problem, "give the workload of the same model"));
        }
        let of_rank = |own: &Vec<usize>| own.iter().filter_map(|&part| parts.get(part)).sum();
        return Ok(ranks.iter().map(of_rank).collect());
    }
    let Some(told) = &configuration.layers else {
        if stages == 0 || !blocks.is_multiple_of(stages) {
            let problem = format!(
                "has {stages} stages, which do not divide {blocks} layers, and does not state the layers of each \
                stage"
            );
            return Err(LoadError::file(source, problem, "give the layout (--pipeline-model-parallel-layout)"));
        }
        return Ok(vec![blocks / stages; stages]);
    };
    let mut counts = told.clone();
    let extra = counts.iter().sum::<usize>().saturating_sub(blocks);
    // Entries of a DeepSpeed list around the blocks: one before, the rest after.
    if configuration.engine == JobFormat::DeepSpeed && (1..=4).contains(&extra) && counts.len() > 1 {
        let end = counts.len() - 1;
        counts[0] = counts[0].saturating_sub(1);
        counts[end] = counts[end].saturating_sub(extra - 1);
    }
    let sum = counts.iter().sum::<usize>();
    if sum != blocks {
        let problem = format!("assigns {sum} layers, the workload has {blocks}");
        return Err(LoadError::file(source, problem, "give the workload of the same model"));
    }
    Ok(counts)
}
