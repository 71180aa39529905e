//! Rules of training engines, in one table ([`Runner::rules`]). Planners plan for an engine by these rules, the check
//! enforces them, and exports report what is lost.
//!
//! All engines cut a network between whole layers, give every stage the same replicas and tensor degree, and recompute
//! repeated layers only, never the nodes before or behind them. They differ in the layers that may recompute, in their
//! schedules, and in the batches that they interleave.

use super::execution::{Schedule, interleaved_round};

/// Training engine, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runner {
    /// Any engine: the rules that all share. If no layer repeats, those of the engines that need no repeated layers.
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

/// Rule for the layers that may recompute their activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecomputeRule {
    /// Any layer.
    PerLayer,
    /// The first n layers of every stage, with one n for all stages.
    Count,
    /// All layers or none.
    AllOrNone,
}

/// Rules of an engine, read from its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineRules {
    /// Version of the engine.
    pub version: &'static str,
    /// Source of the rules in that version.
    pub source: &'static str,
    /// Layers that may recompute.
    pub recompute: RecomputeRule,
    /// Schedules that its files can request, the default first.
    pub schedules: &'static [Schedule],
    /// True if interleaved stages must divide the microbatches of a replica; else any equal rounds will do.
    pub stages_divide: bool,
    /// True if its files count repeated layers rather than name modules. A network without repeated layers is then
    /// refused.
    pub counts_blocks: bool,
    /// True if nodes before and behind the repeated layers must share a stage with the first or the last of them.
    pub merges_ends: bool,
}

/// Rules that all engines share.
const ANY: EngineRules = EngineRules {
    version: "of each engine below",
    source: "the rules shared by all of them",
    recompute: RecomputeRule::AllOrNone,
    schedules: &[Schedule::OneForwardOneBackward],
    stages_divide: true,
    counts_blocks: false,
    merges_ends: true,
};

const MEGATRON: EngineRules = EngineRules {
    version: "core 0.16.1",
    source: "megatron/core/pipeline_parallel/schedules.py; --recompute-num-layers of transformer_config.py",
    recompute: RecomputeRule::Count,
    schedules: &[Schedule::OneForwardOneBackward, Schedule::Interleaved],
    stages_divide: true,
    counts_blocks: true,
    merges_ends: false,
};

const DEEPSPEED: EngineRules = EngineRules {
    version: "0.19.8",
    source: "deepspeed/runtime/pipe/schedule.py (TrainSchedule) and module.py (PipelineModule)",
    recompute: RecomputeRule::PerLayer,
    schedules: &[Schedule::OneForwardOneBackward],
    stages_divide: true,
    counts_blocks: false,
    merges_ends: false,
};

const TORCH: EngineRules = EngineRules {
    version: "2.15",
    source: "torch/distributed/pipelining/schedules.py (ScheduleInterleaved1F1B: rounds of microbatches)",
    recompute: RecomputeRule::PerLayer,
    schedules: &[
        Schedule::OneForwardOneBackward,
        Schedule::GPipe,
        Schedule::Interleaved,
        Schedule::ZeroBubbleV,
        Schedule::InterleavedZeroBubble,
        Schedule::LoopedBfs,
        Schedule::DualPipeV,
    ],
    stages_divide: false,
    counts_blocks: false,
    merges_ends: false,
};

const TORCHTITAN: EngineRules = EngineRules {
    version: "0.3.0",
    source: "torchtitan/distributed/pipeline_parallel.py and activation_checkpoint.py; schedules are PyTorch's",
    recompute: RecomputeRule::AllOrNone,
    ..TORCH
};

const GALVATRON: EngineRules = EngineRules {
    version: "2.4.1",
    source: "galvatron/core/runtime/pipeline/pipeline.py and the fields of its strategy files",
    recompute: RecomputeRule::PerLayer,
    schedules: &[Schedule::OneForwardOneBackward, Schedule::GPipe],
    stages_divide: true,
    counts_blocks: true,
    merges_ends: true,
};

impl Runner {
    /// All engines, in display order.
    pub const ALL: [Runner; 6] =
        [Runner::Any, Runner::Megatron, Runner::DeepSpeed, Runner::Torch, Runner::TorchTitan, Runner::Galvatron];

    /// Id in files and on the command line.
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

    /// Name for users.
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

    /// Engine with this id.
    pub fn find(id: &str) -> Option<Runner> {
        Runner::ALL.into_iter().find(|runner| runner.id() == id)
    }

    /// Engines whose files can request a schedule by name.
    pub fn running(schedule: Schedule) -> impl Iterator<Item = Runner> {
        let engines = Runner::ALL.into_iter().filter(|runner| *runner != Runner::Any);
        engines.filter(move |runner| runner.schedules().contains(&schedule))
    }

    /// Rules of the engine.
    pub fn rules(self) -> &'static EngineRules {
        match self {
            Runner::Any => &ANY,
            Runner::Megatron => &MEGATRON,
            Runner::DeepSpeed => &DEEPSPEED,
            Runner::Torch => &TORCH,
            Runner::TorchTitan => &TORCHTITAN,
            Runner::Galvatron => &GALVATRON,
        }
    }

    /// Rule for the layers that may recompute.
    pub fn recompute(self) -> RecomputeRule {
        self.rules().recompute
    }

    /// Schedules that its files can request, the default first.
    pub fn schedules(self) -> &'static [Schedule] {
        self.rules().schedules
    }

    /// Sentence on why the engine refuses this number of microbatches per replica over this number of stages, if it
    /// does.
    pub fn refuses(self, schedule: Schedule, stages: u32, microbatches: u32) -> Option<String> {
        let stages_and_parts = 2 * stages;
        if schedule == Schedule::DualPipeV && microbatches < stages_and_parts {
            return Some(format!(
                "{} runs DualPipeV with at least {stages_and_parts} microbatches over {stages_and_parts} parts, not \
                {microbatches}",
                self.title()
            ));
        }
        if !schedule.has_free_parts() {
            return None;
        }
        if self.rules().stages_divide && !microbatches.is_multiple_of(stages) {
            return Some(format!(
                "{} interleaves only if the stages divide the microbatches of a replica; {stages} stages do not \
                divide {microbatches} microbatches",
                self.title()
            ));
        }
        interleaved_round(stages, microbatches).is_none().then(|| {
            let rounds = microbatches / stages.max(1);
            format!(
                "{} interleaves equal rounds of at least one microbatch per stage; {microbatches} microbatches do \
                not make {rounds} equal rounds over {stages} stages",
                self.title()
            )
        })
    }

    /// True if its files count repeated layers rather than name modules. A network without repeated layers is then
    /// refused.
    pub fn counts_blocks(self) -> bool {
        self.rules().counts_blocks
    }

    /// True if nodes before and behind the repeated layers must share a stage with the first or the last of them.
    pub fn merges_ends(self) -> bool {
        self.rules().merges_ends
    }

    /// Note for a plan over a workload without repeated layers, if the engine needs one.
    pub fn without_blocks(self) -> Option<&'static str> {
        (self == Runner::Any)
            .then_some("Megatron-LM and Galvatron run repeated layers only, and no name of the workload repeats")
    }
}
