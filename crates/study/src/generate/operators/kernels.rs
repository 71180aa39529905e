//! Operator times on an accelerator whose attained rates published runs confirm.
//!
//! A product takes its arithmetic at the attained rate, plus a penalty for its edges. Attention takes its arithmetic at
//! the rate of the fused kernel. All else takes its traffic at the attained memory bandwidth, 1.6 times in backward
//! passes. `O(1)` per operator.

use super::Kernel;
use plantui_core::{
    family::training::{
        Layout, TrainingRun,
        layer::{BACKWARD_TRAFFIC, RunRates},
        repeated::Repeated,
    },
    workload::TrainingProfile,
};

/// Operator times of one model at one micro-batch.
#[derive(Debug, Clone)]
pub(super) struct Kernels {
    profile: TrainingProfile,
    run: TrainingRun,
}

impl Kernels {
    /// Times of the model as the profile trains it, with this many sequences per microbatch.
    pub(super) fn new(profile: &TrainingProfile, micro_batch: u64) -> Self {
        let micro_batch = u32::try_from(micro_batch).unwrap_or(u32::MAX);
        let layout = Layout { micro_batch, ..Layout::ONE };
        Kernels {
            run: TrainingRun { layout, global_batch: micro_batch.into(), ..profile.alone() },
            profile: profile.clone(),
        }
    }

    /// Seconds of an operator's pass; `bytes` is the traffic of its forward pass.
    pub(super) fn seconds(&self, kernel: Kernel, bytes: f64, backward: bool) -> f64 {
        let TrainingProfile { model, accelerator, constants, .. } = &self.profile;
        let rates = RunRates::new(model, &self.run, accelerator, constants);
        match kernel {
            Kernel::Memory => bytes * if backward { BACKWARD_TRAFFIC } else { 1.0 } / rates.memory(),
            Kernel::Product(sides) => rates.product(sides)[usize::from(backward)],
            Kernel::Attention => {
                let time = rates.layer(model.kind(0), Repeated::NOTHING);
                if backward { time.backward.attention } else { time.forward.attention }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::training::{hardware, published};

    #[test]
    fn the_operators_of_a_layer_take_what_the_layer_takes() {
        let model = published::find("llama-3-8b").expect("it is published");
        let profile = TrainingProfile::new(model, hardware::find("h100").expect("it is known"));
        let kernels = Kernels::new(&profile, 1);
        let tokens = profile.sequence as f64;
        let products = [[4096.0, 4096.0], [1024.0, 4096.0], [1024.0, 4096.0], [4096.0, 4096.0]].into_iter().chain([
            [14336.0, 4096.0],
            [14336.0, 4096.0],
            [4096.0, 14336.0],
        ]);
        let products: Vec<Kernel> = products.map(|[n, k]| Kernel::Product([tokens, n, k])).collect();
        let TrainingProfile { model, accelerator, constants, .. } = &profile;
        let whole = RunRates::new(model, &kernels.run, accelerator, constants).layer(model.kind(0), Repeated::NOTHING);
        for (backward, pass) in [(false, whole.forward), (true, whole.backward)] {
            let sum: f64 = products.iter().map(|&kernel| kernels.seconds(kernel, 0.0, backward)).sum();
            // One product for queries, keys and values, and one for gate and up: shorter edges.
            assert!((sum / pass.gemm - 1.0).abs() < 0.1, "{sum} {}", pass.gemm);
            assert_eq!(kernels.seconds(Kernel::Attention, 0.0, backward), pass.attention);
        }
        let bytes = 1e9;
        let forward = kernels.seconds(Kernel::Memory, bytes, false);
        assert!((forward - bytes / (constants.memory * accelerator.memory_bandwidth)).abs() < 1e-12);
        assert!((kernels.seconds(Kernel::Memory, bytes, true) / forward - 1.6).abs() < 1e-12);
    }
}
