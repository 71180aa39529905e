//! Speed-ups of plain data parallelism: the whole network on every device, with one all-reduce of the gradients per
//! batch.
//!
//! Without overlap the all-reduce follows the compute. With overlap each layer's all-reduce hides behind the rest of
//! the last microbatch's backward pass. With P3 (Jayarajan et al., MLSys 2019) it also hides behind the next forward
//! pass.

use super::model::HpgoModel;

/// Results; speed-ups that need a microbatch that fits are `None` if not even one sample fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataParallel {
    /// Seconds to all-reduce all parameters over all devices.
    pub all_reduce_s: f64,
    /// Number of samples that fit on a device.
    pub largest_batch: u64,
    /// Samples per device between two accumulations.
    pub accumulation_size: Option<u32>,
    /// Same for a device that need not divide its samples evenly.
    pub optimal_accumulation_size: Option<u32>,
    /// Speed-up without overlap.
    pub plain: f64,
    /// Speed-up with overlap in the backward pass.
    pub overlap: Option<f64>,
    /// Speed-up with P3.
    pub p3: Option<f64>,
    /// Speed-up with P3 and the optimal accumulation size.
    pub p3_optimal: Option<f64>,
    /// Speed-up with P3 and unlimited memory.
    pub p3_infinite: f64,
}

impl DataParallel {
    /// Statistics for reports: speed-ups with and without overlap, and their accumulation size.
    pub fn statistics(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let optional = [
            ("data_parallel_p3_speedup", self.p3),
            ("data_parallel_overlap_speedup", self.overlap),
            ("gradient_accumulation_size", self.accumulation_size.map(f64::from)),
        ];
        let known = optional.into_iter().filter_map(|(name, value)| Some((name, value?)));
        std::iter::once(("data_parallel_speedup", self.plain)).chain(known)
    }
}

/// Computes all results.
pub fn data_parallel(model: &HpgoModel<'_>) -> DataParallel {
    let devices: Vec<u32> = (0..model.devices).collect();
    let all_reduce_s = model.links().all_reduce_s(&model.machines, &devices, model.total_parameters());
    let largest_batch = largest_batch(model);
    let accumulation_size = accumulation_size(model, largest_batch);
    let optimal_accumulation_size = optimal_accumulation_size(model, largest_batch);
    let with = |size: Option<u32>, p3| size.map(|size| overlapped(model, f64::from(size) / f64::from(model.batch), p3));
    DataParallel {
        all_reduce_s,
        largest_batch,
        accumulation_size,
        optimal_accumulation_size,
        plain: model.total_s() / (model.total_s() / f64::from(model.devices) + all_reduce_s),
        overlap: with(accumulation_size, false),
        p3: with(accumulation_size, true),
        p3_optimal: with(optimal_accumulation_size, true),
        p3_infinite: overlapped(model, 1.0, true),
    }
}

/// Number of samples whose activations fit on a device beside weights and optimizer state.
fn largest_batch(model: &HpgoModel<'_>) -> u64 {
    let free = model.memory_bytes - model.speedup.optimizer_memory_scaling * model.total_parameters();
    // The cast turns negative numbers and NaN into 0.
    (free / model.activation_per_sample()).trunc() as u64
}

/// Largest part of a device's samples that fits and divides them evenly; parts of up to half of them are tried.
fn accumulation_size(model: &HpgoModel<'_>, largest: u64) -> Option<u32> {
    let own = u64::from(model.batch / model.devices);
    if largest >= own {
        return Some(own as u32);
    }
    if largest == 0 {
        return None;
    }
    let mut iterations = own.div_ceil(largest);
    while iterations < own / 2 + 1 && !own.is_multiple_of(iterations) {
        iterations += 1;
    }
    Some((own / iterations) as u32)
}

fn optimal_accumulation_size(model: &HpgoModel<'_>, largest: u64) -> Option<u32> {
    let own = u64::from(model.batch / model.devices);
    let size = match largest {
        0 if own > 0 => return None,
        largest if largest >= own => own,
        largest if 2 * largest >= own => own / 2,
        largest => largest,
    };
    Some(size as u32)
}

/// Speed-up if each layer's all-reduce hides behind compute. `partial` is the fraction of the batch still to compute
/// when the first gradients are ready.
fn overlapped(model: &HpgoModel<'_>, partial: f64, p3: bool) -> f64 {
    let count = model.states();
    let devices: Vec<u32> = (0..model.devices).collect();
    // Blocks run from the network's end: the last layer's gradients are ready first.
    let layer = |block: usize| count - 1 - block;
    let half = |at: usize, forward: bool| {
        let whole = model.compute_s(at, at);
        match (model.faults.even_halves, forward) {
            (true, _) => whole * partial / 2.0,
            (false, true) => model.forward_s(at, at) * partial,
            (false, false) => (whole - model.forward_s(at, at)) * partial,
        }
    };
    let backward = |block: usize| half(layer(block), false);
    let forward = |block: usize| match (p3, model.faults.mirrored_forward) {
        (false, _) => 0.0,
        (true, true) => half(block, true),
        (true, false) => half(layer(block), true),
    };
    let reduce = |block: usize| {
        let at = layer(block);
        model.links().all_reduce_s(&model.machines, &devices, model.parameter_bytes(at, at))
    };
    let mut exposed = reduce(count - 1);
    let mut spare = 0.0;
    for block in (0..count - 1).rev() {
        let slot = backward(block + 1) + forward(block + 1);
        let needed = reduce(block);
        if slot < needed {
            let deficit = needed - slot;
            if deficit < spare {
                spare -= deficit;
            } else {
                exposed += deficit - spare;
                spare = 0.0;
            }
        } else {
            spare += slot - needed;
        }
    }
    model.total_s() / (model.total_s() / f64::from(model.devices) + exposed)
}
