//! Space of configurations: every layout that takes all devices, and every split of its layers that is even or nearly
//! so.

use crate::joint::settings::JointSettings;
use plantui_core::{
    family::training::{Layout, Model, Stack, check, split::StageSplit},
    workload::TrainingProfile,
};

/// Largest micro-batch, sequences.
const MOST_SEQUENCES: u32 = 64;
/// Largest context-parallel degree.
const MOST_CONTEXT: u32 = 64;
/// Maximum number of virtual stages per stage.
const MOST_VIRTUAL: u32 = 32;
/// Maximum number of layers by which the last stage is shorter in uneven splits.
const FEWER_AT_THE_END: usize = 4;

/// Layouts on exactly `devices` devices for a batch, in a fixed order. `O(divisors⁴)`.
pub(super) fn layouts(profile: &TrainingProfile, devices: u32, batch: u32, settings: &JointSettings) -> Vec<Layout> {
    let model = &profile.model;
    let mut all = vec![];
    for tensor in divisors(devices).filter(|&t| t <= profile.accelerator.domain) {
        if settings.degree.is_some_and(|degree| degree != tensor) {
            continue;
        }
        if tensor > 1 && !settings.tensor_parallel || !check::takes_tensor(model, profile.stack, tensor) {
            continue;
        }
        let rest = devices / tensor;
        for context in divisors(rest).filter(|c| *c <= MOST_CONTEXT && c.is_power_of_two()) {
            let other = settings.context.is_some_and(|degree| degree != context);
            if other || context > 1 && !model.is_decoder() {
                continue;
            }
            let rest = rest / context;
            for pipeline in divisors(rest).filter(|&p| p as usize <= model.layers.len()) {
                let data = rest / pipeline;
                let asked = settings.stages.is_none_or(|stages| stages == pipeline as usize);
                let asked = asked && settings.data.is_none_or(|degree| degree == data);
                if !asked || !batch.is_multiple_of(data) || data > 1 && !settings.data_parallel {
                    continue;
                }
                let layout = Layout { tensor, context, pipeline, data, ..Layout::ONE };
                let own = batch / data;
                let mut experts = expert_degrees(profile, &layout);
                experts.retain(|(degree, _)| settings.expert.is_none_or(|pinned| pinned == *degree));
                let sizes = divisors(own).filter(|&b| b <= MOST_SEQUENCES);
                for micro_batch in sizes.filter(|size| settings.micro_batch.is_none_or(|pinned| pinned == *size)) {
                    for &(expert, expert_tensor) in &experts {
                        let layout = Layout { micro_batch, expert, expert_tensor, ..layout };
                        all.extend(virtual_stages(model.layers.len(), layout, own / micro_batch));
                    }
                }
            }
        }
    }
    all
}

/// Divisors in ascending order. `O(√of)`.
fn divisors(of: u32) -> impl Iterator<Item = u32> {
    let small: Vec<u32> = (1..=of.isqrt()).filter(|d| of.is_multiple_of(*d)).collect();
    let large: Vec<u32> = small.iter().rev().map(|d| of / d).filter(|&d| d > of.isqrt()).collect();
    small.into_iter().chain(large)
}

/// Expert-parallel degrees and tensor-parallel degrees of experts, within the ranks of a stage. An expert is divided over
/// at most as many ranks as attention.
fn expert_degrees(profile: &TrainingProfile, layout: &Layout) -> Vec<(u32, u32)> {
    let counts: Vec<u64> =
        profile.model.kinds.iter().filter_map(|kind| kind.experts()).map(|experts| experts.count).collect();
    if counts.is_empty() {
        return vec![(1, 1)];
    }
    let ranks = layout.stage_devices() as u32;
    let whole = |e: &u32| counts.iter().all(|count| count.is_multiple_of(u64::from(*e)));
    let parts = |expert: u32| -> Vec<u32> {
        match profile.stack {
            Stack::Torchtitan => vec![profile.stack.expert_tensor(layout.tensor, expert)],
            _ => divisors(layout.tensor).filter(|parts| (ranks / expert).is_multiple_of(*parts)).collect(),
        }
    };
    divisors(ranks)
        .filter(whole)
        .flat_map(|expert| parts(expert).into_iter().map(move |parts| (expert, parts)))
        .collect()
}

/// Layout with each number of virtual stages that suits the microbatches and splits the layers evenly. If none above 1
/// does, powers of two split them unevenly.
fn virtual_stages(layers: usize, layout: Layout, microbatches: u32) -> Vec<Layout> {
    let p = layout.pipeline;
    let most = if p > 1 && microbatches.is_multiple_of(p) { (layers as u32).div_ceil(p).min(MOST_VIRTUAL) } else { 1 };
    let with = |virtual_stages| Layout { virtual_stages, ..layout };
    let mut all: Vec<Layout> = (2..=most).map(with).filter(|layout| StageSplit::is_even(layers, layout)).collect();
    if all.is_empty() {
        let powers = (2..=most).filter(|count| count.is_power_of_two()).map(with);
        all = powers.filter(|layout| StageSplit::even(layers, layout).is_some()).collect();
    }
    all.insert(0, layout);
    all
}

/// Splits without virtual stages that are nearly even. The first and the last stage have a few layers fewer. If the
/// others cannot be equal, the earlier ones, which hold more activations, have one fewer.
pub(super) fn uneven(layers: usize, layout: &Layout) -> Vec<Vec<u32>> {
    let p = layout.pipeline as usize;
    if p < 2 || layout.virtual_stages > 1 {
        return vec![];
    }
    let even = StageSplit::even(layers, layout);
    let mut all: Vec<Vec<u32>> = vec![];
    for first in 0..=1 {
        for last in 0..=FEWER_AT_THE_END {
            let whole = layers + first + last;
            let (each, more) = (whole / p, whole % p);
            let mut counts: Vec<usize> = (0..p).map(|stage| each + usize::from(stage >= p - more)).collect();
            let (Some(head), Some(tail)) = (counts[0].checked_sub(first), counts[p - 1].checked_sub(last)) else {
                continue;
            };
            counts[0] = head;
            counts[p - 1] = tail;
            let same = even.as_ref().is_some_and(|even| (0..p).all(|stage| even.layers(stage) == counts[stage]));
            if counts.contains(&0) || same {
                continue;
            }
            let counts: Vec<u32> = counts.into_iter().map(|count| count as u32).collect();
            if !all.contains(&counts) {
                all.push(counts);
            }
        }
    }
    all
}

/// Nearly even split in which the last virtual stage holds the head alone, and the one before also the layers that predict
/// further tokens; `None` without such layers, or if a stage would be empty.
pub(super) fn head_alone(model: &Model, layout: &Layout) -> Option<Vec<u32>> {
    let stages = layout.pipeline as usize * layout.virtual_stages as usize;
    let (predicts, layers) = (model.prediction_layers as usize, model.layers.len());
    if predicts == 0 || layout.pipeline < 2 {
        return None;
    }
    let filled = stages - 1;
    let (each, more) = ((layers + predicts) / filled, (layers + predicts) % filled);
    // The first stages, which also hold the most activations, have one layer fewer.
    let mut counts: Vec<usize> = (0..filled).map(|stage| each + usize::from(stage >= filled - more)).collect();
    counts[filled - 1] = counts[filled - 1].checked_sub(predicts)?;
    if counts[..filled - 1].contains(&0) {
        return None;
    }
    Some(counts.into_iter().chain([0]).map(|count| count as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::divisors;

    #[test]
    fn divisors_ascend_and_are_all_there() {
        for of in 1..400 {
            let all: Vec<u32> = (1..=of).filter(|d| of % d == 0).collect();
            assert_eq!(divisors(of).collect::<Vec<u32>>(), all, "{of}");
        }
    }
}
