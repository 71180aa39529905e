//! Constants for the fraction of the data sheet that a run attains, by generation of devices and software stack.
//!
//! A constant belongs to whoever tuned the software on a generation: others run the same layout 15 to 25 % slower than
//! NVIDIA. A row of the table therefore has a generation, the stacks for which it holds, and the published runs that it
//! was fitted on. A stack without a row of its own takes the generation's. `examples/fit_constants.rs` fits rows again.

use super::{hardware::Generation, run::Stack};

/// Fractions of the data sheet that a run attains, fitted on published runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constants {
    /// Fraction of the sustained rate that large matrix products attain in 16 bits.
    pub gemm_16: f64,
    /// Same in 8 bits.
    pub gemm_8: f64,
    /// Fraction of the rate of measured 4-bit kernels that a run attains.
    pub gemm_4: f64,
    /// Fraction of the sustained rate that the fused attention core attains, for sequences up to 8,192 tokens.
    pub attention: f64,
    /// Same for sequences from 32,768 tokens; between the two it is linear in the logarithm of the length.
    pub attention_long: f64,
    /// Fraction of a dense product's rate that grouped products of experts of width 2,048 attain.
    pub experts: f64,
    /// Exponent of the experts' width in that fraction.
    pub experts_width: f64,
    /// Fraction of the transfers of tokens to experts that is exposed within a domain.
    pub expert_exposed: f64,
    /// Fraction of the memory bandwidth that elementwise kernels attain.
    pub memory: f64,
    /// Fraction of a link's bandwidth that collectives attain.
    pub links: f64,
    /// Fraction of tensor-parallel transfers that overlap does not hide.
    pub tensor_exposed: f64,
    /// Fraction of data-parallel transfers that overlap does not hide.
    pub data_exposed: f64,
    /// Minimum fraction of FSDP's gathers that overlap does not hide within a machine.
    pub fsdp_exposed: f64,
    /// Same across machines.
    pub fsdp_exposed_across: f64,
    /// Latency of one step of a ring, seconds.
    pub hop_s: f64,
    /// Launch time of a kernel, seconds.
    pub launch_s: f64,
    /// Time of the host to launch a kernel of a mixture of experts where no CUDA graph does, seconds.
    pub host_s: f64,
    /// Exponent of the device's power in the sustained rate; 1 is proportional.
    pub power: f64,
    /// Fixed time per iteration beside all of this, seconds.
    pub fixed_s: f64,
    /// Relative growth of an iteration with every doubling of the devices beyond eight.
    pub growth: f64,
}

/// Row of the table: constants of one generation under some stacks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConstantsRow {
    /// Generation of devices.
    pub generation: Generation,
    /// Stacks for which the row holds; empty for all that have no row of their own.
    pub stacks: &'static [Stack],
    /// Constants.
    pub constants: Constants,
    /// Published runs that they were fitted on.
    pub evidence: &'static str,
}

/// Constants of NVIDIA's stacks on Hopper. Other rows change some of them.
const HOPPER: Constants = Constants {
    gemm_16: 0.73,
    gemm_8: 0.75,
    gemm_4: 0.909,
    attention: 0.53,
    attention_long: 0.45,
    experts: 0.607,
    experts_width: 0.12,
    expert_exposed: 0.79,
    memory: 0.80,
    links: 0.75,
    tensor_exposed: 0.23,
    data_exposed: 0.30,
    fsdp_exposed: 0.09,
    fsdp_exposed_across: 0.09,
    hop_s: 5e-6,
    launch_s: 4e-6,
    host_s: 24e-6,
    power: 1.0,
    fixed_s: 0.03,
    growth: 0.003,
};

const BLACKWELL: Constants = Constants { gemm_16: 0.52, gemm_8: 0.55, attention: 0.55, attention_long: 0.55, ..HOPPER };

const AMPERE: Constants = Constants { gemm_16: 0.90, gemm_8: 0.90, attention: 0.60, attention_long: 0.60, ..HOPPER };

/// All rows. The first that matches a generation and a stack holds.
pub const ROWS: [ConstantsRow; 7] = [
    ConstantsRow {
        generation: Generation::Ampere,
        stacks: &[Stack::Plain],
        constants: Constants {
            gemm_16: 0.807,
            gemm_8: 0.807,
            attention: 0.472,
            attention_long: 0.472,
            memory: 0.504,
            links: 0.467,
            data_exposed: 0.51,
            fsdp_exposed: 0.154,
            fsdp_exposed_across: 0.154,
            hop_s: 9.4e-6,
            launch_s: 6.2e-6,
            ..AMPERE
        },
        evidence: "37 runs on A100 of BigScience",
    },
    ConstantsRow {
        generation: Generation::Ampere,
        stacks: &[Stack::Torchtitan],
        constants: Constants {
            gemm_16: 0.807,
            gemm_8: 0.807,
            attention: 0.363,
            attention_long: 0.363,
            memory: 0.90,
            links: 0.467,
            data_exposed: 0.51,
            fsdp_exposed: 0.154,
            fsdp_exposed_across: 0.154,
            hop_s: 9.4e-6,
            launch_s: 6.2e-6,
            ..AMPERE
        },
        evidence: "66 runs under FSDP on A100: MosaicML, IBM, torchtitan",
    },
    ConstantsRow {
        generation: Generation::Ampere,
        stacks: &[],
        constants: AMPERE,
        evidence: "54 runs on A100: NVIDIA's Selene (Narayanan 2021, Korthikanti 2022), Qi 2023",
    },
    ConstantsRow {
        generation: Generation::Hopper,
        stacks: &[Stack::Torchtitan],
        constants: Constants {
            gemm_16: 0.688,
            gemm_8: 0.742,
            attention: 0.324,
            attention_long: 0.324,
            memory: 0.603,
            links: 0.591,
            fsdp_exposed: 0.24,
            fsdp_exposed_across: 0.48,
            hop_s: 8.1e-6,
            launch_s: 8.8e-6,
            power: 0.35,
            fixed_s: 0.04,
            ..HOPPER
        },
        evidence: "42 runs under FSDP on H100 and H200: MosaicML, Pax, Kempner, torchtitan",
    },
    ConstantsRow {
        generation: Generation::Hopper,
        stacks: &[],
        constants: HOPPER,
        evidence: "114 runs on H100 of NVIDIA's Megatron stack (dgxc-benchmarking)",
    },
    ConstantsRow {
        generation: Generation::Blackwell,
        stacks: &[Stack::Plain],
        constants: Constants { links: 0.468, attention: 0.401, attention_long: 0.401, ..BLACKWELL },
        evidence: "16 runs on B200 (SimuMax)",
    },
    ConstantsRow {
        generation: Generation::Blackwell,
        stacks: &[],
        constants: BLACKWELL,
        evidence: "48 runs on B200, GB200 and GB300 of NVIDIA's Megatron-Bridge",
    },
];

impl Constants {
    /// Row of the table that holds for a generation and a stack. Volta has no published run and takes Ampere's.
    pub fn row(generation: Generation, stack: Stack) -> &'static ConstantsRow {
        let generation = if generation == Generation::Volta { Generation::Ampere } else { generation };
        let holds = |row: &&ConstantsRow| {
            row.generation == generation && (row.stacks.is_empty() || row.stacks.contains(&stack))
        };
        ROWS.iter().find(holds).unwrap_or(&ROWS[4])
    }

    /// Shipped constants of a generation under a stack.
    pub fn shipped(generation: Generation, stack: Stack) -> Self {
        Constants::row(generation, stack).constants
    }

    /// Fraction of the sustained rate that the fused attention core attains for sequences of this length.
    pub fn attention_over(&self, tokens: f64) -> f64 {
        let [short, long] = [8192f64, 32_768.0].map(f64::ln);
        let share = ((tokens.ln() - short) / (long - short)).clamp(0.0, 1.0);
        self.attention + share * (self.attention_long - self.attention)
    }

    /// All constants by name.
    pub fn named(&self) -> [(&'static str, f64); 20] {
        [
            ("gemm_16", self.gemm_16),
            ("gemm_8", self.gemm_8),
            ("gemm_4", self.gemm_4),
            ("attention", self.attention),
            ("attention_long", self.attention_long),
            ("experts", self.experts),
            ("experts_width", self.experts_width),
            ("expert_exposed", self.expert_exposed),
            ("memory", self.memory),
            ("links", self.links),
            ("tensor_exposed", self.tensor_exposed),
            ("data_exposed", self.data_exposed),
            ("fsdp_exposed", self.fsdp_exposed),
            ("fsdp_exposed_across", self.fsdp_exposed_across),
            ("hop_s", self.hop_s),
            ("launch_s", self.launch_s),
            ("host_s", self.host_s),
            ("power", self.power),
            ("fixed_s", self.fixed_s),
            ("growth", self.growth),
        ]
    }

    /// Constant with this name, mutable.
    pub fn by_name(&mut self, name: &str) -> Option<&mut f64> {
        Some(match name {
            "gemm_16" => &mut self.gemm_16,
            "gemm_8" => &mut self.gemm_8,
            "gemm_4" => &mut self.gemm_4,
            "attention" => &mut self.attention,
            "attention_long" => &mut self.attention_long,
            "experts" => &mut self.experts,
            "experts_width" => &mut self.experts_width,
            "expert_exposed" => &mut self.expert_exposed,
            "memory" => &mut self.memory,
            "links" => &mut self.links,
            "tensor_exposed" => &mut self.tensor_exposed,
            "data_exposed" => &mut self.data_exposed,
            "fsdp_exposed" => &mut self.fsdp_exposed,
            "fsdp_exposed_across" => &mut self.fsdp_exposed_across,
            "hop_s" => &mut self.hop_s,
            "launch_s" => &mut self.launch_s,
            "host_s" => &mut self.host_s,
            "power" => &mut self.power,
            "fixed_s" => &mut self.fixed_s,
            "growth" => &mut self.growth,
            _ => return None,
        })
    }

    /// True if a constant is the share of transfers that overlap does not hide, and so at most 1.
    pub fn is_share(name: &str) -> bool {
        name.contains("exposed")
    }

    /// True if a constant may be 0.
    pub fn may_be_zero(name: &str) -> bool {
        matches!(name, "fixed_s" | "growth" | "hop_s" | "launch_s" | "power" | "host_s" | "experts_width")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_has_a_row_in_every_generation_and_names_reach_every_constant() {
        use Generation::{Ampere, Blackwell, Hopper, Volta};
        for generation in [Volta, Ampere, Hopper, Blackwell] {
            for stack in Stack::ALL {
                let mut constants = Constants::shipped(generation, stack);
                assert!(constants.gemm_16 > 0.0 && constants.gemm_16 < 1.0);
                for (name, value) in constants.named() {
                    assert_eq!(constants.by_name(name).copied(), Some(value), "{name}");
                }
            }
        }
        assert_eq!(Constants::shipped(Volta, Stack::Plain), Constants::shipped(Ampere, Stack::Plain));
        assert_ne!(Constants::shipped(Hopper, Stack::Torchtitan), Constants::shipped(Hopper, Stack::Nemo24));
    }

    #[test]
    fn attention_slows_down_between_8k_and_32k_tokens() {
        let nvidia = Constants::shipped(Generation::Hopper, Stack::Megatron2025);
        assert_eq!(
            [2048.0, 8192.0, 32_768.0, 1e6].map(|tokens| nvidia.attention_over(tokens)),
            [0.53, 0.53, 0.45, 0.45]
        );
        assert!((nvidia.attention_over(16_384.0) - 0.49).abs() < 1e-9);
    }
}
