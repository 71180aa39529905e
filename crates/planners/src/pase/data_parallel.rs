//! Pure data parallelism: splits the batch of every operator the same number of ways, and nothing else.

use plantui_core::workload::operators::{Operator, OperatorProfile};

/// Largest number of ways: the largest divisor of the batch up to `devices` that leaves `cutoff` samples.
pub fn ways(profile: &OperatorProfile, devices: u32, cutoff: u32) -> u32 {
    let batch = profile.operators.iter().find_map(|operator| {
        let dim = &operator.dims[usize::from(operator.batch_dim?)];
        dim.splittable.then_some(dim.extent)
    });
    let most = batch.map_or(1, |batch| u64::from(devices).min(batch / u64::from(cutoff.max(1))));
    (1..=most as u32).rev().find(|&ways| batch.is_some_and(|batch| batch.is_multiple_of(u64::from(ways)))).unwrap_or(1)
}

/// Split of one operator: unsplit if it has no batch, or if `ways` does not divide the batch.
pub fn split(operator: &Operator, ways: u32) -> Vec<u32> {
    let mut splits = vec![1; operator.dims.len()];
    if let Some(dim) = operator.batch_dim.map(usize::from) {
        let batch = &operator.dims[dim];
        // A contiguous piece can split the batch only if all outer dimensions have extent 1.
        let outermost = operator.dims[..dim].iter().all(|dim| dim.extent == 1);
        if batch.splittable && batch.extent.is_multiple_of(u64::from(ways)) && (outermost || !operator.contiguous()) {
            splits[dim] = ways;
        }
    }
    splits
}
