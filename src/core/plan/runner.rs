//! What training engines can run of a plan: one table, by which planners plan for an engine and exports say what is lost.
//!
//! All of them cut a network between whole layers, give every stage the same replicas and tensor degree, and recompute
//! repeated layers only, never what stands before or behind them. They differ in which layers may recompute.

use super::Schedule;

/// A training engine, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runner {
    /// Whatever engine: what all of them can run; where no layer repeats, all of those that need none to.
    Any,
    /// Megatron-LM.
    Megatron,
    /// DeepSpeed's `PipelineModule`.
    DeepSpeed,
    /// `torch.distributed.pipelining`.
    Torch,
    /// torchtitan.
    TorchTitan,
    /// Galvatron.
    Galvatron,
}

/// Which layers may recompute their activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecomputeRule {
    /// Any.
    PerLayer,
    /// The first so many of every stage, one number for all stages.
    Count,
    /// All layers or none.
    AllOrNone,
}

impl Runner {
    /// All of them, in the order they are shown.
    pub const ALL: [Runner; 6] =
        [Runner::Any, Runner::Megatron, Runner::DeepSpeed, Runner::Torch, Runner::TorchTitan, Runner::Galvatron];

    /// What scripts call it.
    pub fn id(self) -> &'static str {
        match self {
            Runner::Any => "any",
            Runner::Megatron => "megatron",
            Runner::DeepSpeed => "deepspeed",
            Runner::Torch => "torch",
            Runner::TorchTitan => "torchtitan",
            Runner::Galvatron => "galvatron",
        }
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Runner::Any => "any training engine",
            Runner::Megatron => "Megatron-LM",
            Runner::DeepSpeed => "DeepSpeed",
            Runner::Torch => "PyTorch pipelining",
            Runner::TorchTitan => "torchtitan",
            Runner::Galvatron => "Galvatron",
        }
    }

    /// The engine of this id.
    pub fn find(id: &str) -> Option<Runner> {
        Runner::ALL.into_iter().find(|runner| runner.id() == id)
    }

    /// Which layers may recompute.
    pub fn recompute(self) -> RecomputeRule {
        match self {
            Runner::Megatron => RecomputeRule::Count,
            Runner::Any | Runner::TorchTitan => RecomputeRule::AllOrNone,
            Runner::DeepSpeed | Runner::Torch | Runner::Galvatron => RecomputeRule::PerLayer,
        }
    }

    /// The schedules that its files can ask for, what it does unasked first.
    pub fn schedules(self) -> &'static [Schedule] {
        use Schedule::{GPipe, Interleaved, OneForwardOneBackward, ZeroBubbleV};
        match self {
            Runner::Megatron => &[OneForwardOneBackward, Interleaved],
            Runner::Any | Runner::DeepSpeed => &[OneForwardOneBackward],
            Runner::Torch | Runner::TorchTitan => &[OneForwardOneBackward, GPipe, Interleaved, ZeroBubbleV],
            Runner::Galvatron => &[OneForwardOneBackward, GPipe],
        }
    }

    /// Whether it counts repeated layers, rather than naming modules: without any it has nothing to count.
    pub fn counts_blocks(self) -> bool {
        matches!(self, Runner::Megatron | Runner::Galvatron)
    }

    /// Whether what is no repeated layer must be with the first or the last of them.
    pub fn merges_ends(self) -> bool {
        matches!(self, Runner::Any | Runner::Galvatron)
    }

    /// What is to be told of a plan for it over a workload without repeated layers.
    pub fn without_blocks(self) -> Option<&'static str> {
        (self == Runner::Any)
            .then_some("Megatron-LM and Galvatron take repeated layers only, and no name of the workload repeats")
    }
}
