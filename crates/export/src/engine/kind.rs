//! Training engines, and the differences in what they can run.

use super::cut::{CutStage, LayerCut};
use super::{maxtext, megatron};
use plantui_core::{
    plan::runner::{RecomputeRule, Runner},
    simulate::Schedule,
};

/// Engine, or a part of one with a file format of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// Megatron-Core's flags.
    Megatron,
    /// Megatron-Bridge's configuration.
    MegatronBridge,
    /// A DeepSpeed `PipelineModule`.
    DeepSpeed,
    /// `torch.distributed.pipelining`: split points of a module.
    Torch,
    /// torchtitan's job configuration.
    TorchTitan,
    /// Galvatron's strategy file.
    Galvatron,
    /// vLLM's flags, for serving.
    Vllm,
    /// MaxText's configuration.
    MaxText,
    /// accelerate's configuration.
    Accelerate,
}

impl Engine {
    /// All engines in the order shown.
    pub const ALL: [Engine; 9] = [
        Engine::Megatron,
        Engine::DeepSpeed,
        Engine::Torch,
        Engine::TorchTitan,
        Engine::Galvatron,
        Engine::Vllm,
        Engine::MegatronBridge,
        Engine::MaxText,
        Engine::Accelerate,
    ];

    /// Id for `--to`.
    pub const fn id(self) -> &'static str {
        match self {
            Engine::Megatron => "megatron",
            Engine::MegatronBridge => "megatron-bridge",
            Engine::DeepSpeed => "deepspeed",
            Engine::Torch => "torch",
            Engine::TorchTitan => "torchtitan",
            Engine::Galvatron => "galvatron",
            Engine::Vllm => "vllm",
            Engine::MaxText => "maxtext",
            Engine::Accelerate => "accelerate",
        }
    }

    /// Name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Engine::Megatron => "Megatron-LM",
            Engine::MegatronBridge => "Megatron-Bridge",
            Engine::DeepSpeed => "DeepSpeed",
            Engine::Torch => "PyTorch pipelining",
            Engine::TorchTitan => "torchtitan",
            Engine::Galvatron => "Galvatron",
            Engine::Vllm => "vLLM",
            Engine::MaxText => "MaxText",
            Engine::Accelerate => "accelerate",
        }
    }

    /// Content of the file in one line.
    pub const fn help(self) -> &'static str {
        match self {
            Engine::Megatron => {
                "flags for Megatron-Core: layout of the stages, degrees, recomputation, the model's sizes"
            }
            Engine::MegatronBridge => "a function that sets a recipe's configuration for Megatron-Bridge, in Python",
            Engine::DeepSpeed => {
                "a PipelineModule whose parts are the plan's stages, or ZeRO's configuration, in Python"
            }
            Engine::Torch => "split_spec, recomputation and schedule for torch.distributed.pipelining, in Python",
            Engine::TorchTitan => "a function for torchtitan's registry of configurations, in Python",
            Engine::Galvatron => "a Galvatron strategy, in JSON",
            Engine::Vllm => "flags for serving with vLLM",
            Engine::MaxText => "mesh axes, pipeline and recomputation for MaxText (JAX), in YAML",
            Engine::Accelerate => "FSDP2 for accelerate and transformers' Trainer, in YAML",
        }
    }

    /// End of the proposed file name.
    pub const fn suffix(self) -> &'static str {
        match self {
            Engine::Megatron => "megatron.sh",
            Engine::MegatronBridge => "megatron_bridge.py",
            Engine::DeepSpeed => "deepspeed.py",
            Engine::Torch => "torch.py",
            Engine::TorchTitan => "torchtitan.py",
            Engine::Galvatron => "galvatron.json",
            Engine::Vllm => "vllm.sh",
            Engine::MaxText => "maxtext.yml",
            Engine::Accelerate => "accelerate.yml",
        }
    }

    /// Runner whose rules planners follow; `None` for serving, which trains nothing.
    pub fn runner(self) -> Option<Runner> {
        match self {
            Engine::Megatron | Engine::MegatronBridge => Some(Runner::Megatron),
            Engine::DeepSpeed => Some(Runner::DeepSpeed),
            Engine::Torch => Some(Runner::Torch),
            Engine::TorchTitan => Some(Runner::TorchTitan),
            Engine::Galvatron => Some(Runner::Galvatron),
            Engine::MaxText => Some(Runner::Any),
            Engine::Vllm | Engine::Accelerate => None,
        }
    }

    /// Default schedule.
    pub fn default_schedule(self) -> Schedule {
        match self {
            Engine::Vllm => Schedule::Inference,
            Engine::MaxText => Schedule::GPipe,
            _ => Schedule::OneForwardOneBackward,
        }
    }

    /// Schedules that the file format can express.
    pub fn schedules(self) -> &'static [Schedule] {
        use Schedule::{GPipe, Inference, OneForwardOneBackward};
        match self {
            Engine::MaxText => &[GPipe],
            Engine::Accelerate => &[OneForwardOneBackward],
            _ => self.runner().map_or(&[Inference], Runner::schedules),
        }
    }

    /// True if the format allows lines that begin with `#`.
    pub(super) fn takes_comments(self) -> bool {
        self != Engine::Galvatron
    }

    /// Rule for recomputation; `None` if the file does not express it.
    fn recompute(self) -> Option<RecomputeRule> {
        self.runner().map(Runner::recompute)
    }

    /// True if the engine counts repeated blocks and does not name modules.
    pub(super) fn counts_blocks(self) -> bool {
        self == Engine::MaxText || self.runner().is_none_or(Runner::counts_blocks)
    }

    /// True if nodes before and after the repeated layers must share a stage with the first or last of these layers.
    pub(super) fn merges_ends(self) -> bool {
        self.runner().is_none_or(Runner::merges_ends)
    }

    /// Difference between the stages' degrees that the engine cannot express.
    pub(super) fn uneven(self, cut: &LayerCut) -> Option<String> {
        let degrees = |stage: &CutStage| (stage.data_parallel, stage.tensor_parallel);
        let first = cut.stages.first().map(degrees)?;
        let odd = cut.stages.iter().position(|stage| match self {
            // Degrees may differ between stages if the number of devices does not.
            Engine::Galvatron => stage.devices() != cut.stages[0].devices(),
            _ => degrees(stage) != first,
        })?;
        let (d, t) = degrees(&cut.stages[odd]);
        let rule = match self {
            Engine::Galvatron => "the same number of devices for every stage",
            _ => "the same degrees for every stage",
        };
        Some(format!(
            "stage 1 runs {} x {} and stage {} runs {d} x {t}; the engine needs {rule}",
            first.0,
            first.1,
            odd + 1
        ))
    }

    /// Recomputation that the engine cannot express.
    fn partial(self, cut: &LayerCut) -> Option<String> {
        let counts: Vec<(usize, usize)> = cut.stages.iter().map(CutStage::recomputed).collect();
        let all = counts.iter().all(|(some, of)| some == of);
        let none = counts.iter().all(|(some, _)| *some == 0);
        let most = counts.iter().map(|(some, _)| *some).max().unwrap_or(0);
        match self.recompute()? {
            RecomputeRule::PerLayer => None,
            _ if all || none => None,
            RecomputeRule::Count if counts.iter().all(|&(some, of)| some == most.min(of)) => None,
            RecomputeRule::Count => {
                Some("stages recompute different numbers of layers; the engine has one number for all".into())
            }
            RecomputeRule::AllOrNone => {
                Some("some layers recompute and some do not; the engine recomputes all layers or none".into())
            }
        }
    }

    /// All losses: parts of the plan that the engine cannot express.
    pub(super) fn losses(self, cut: &LayerCut) -> Vec<String> {
        let nameless = megatron::nameless(cut).filter(|_| matches!(self, Engine::Megatron | Engine::MegatronBridge));
        let nameless = nameless
            .map(|stage| format!("stage {} holds no block, which the engine's layout cannot express", stage + 1));
        let mut losses: Vec<String> = self.uneven(cut).into_iter().chain(self.partial(cut)).chain(nameless).collect();
        if self == Engine::MaxText {
            let blocks: Vec<usize> = cut.stages.iter().map(CutStage::blocks).collect();
            losses.extend(maxtext::losses(&blocks, cut.microbatches / cut.data_parallel().max(1)));
        }
        losses
    }

    /// Numbers of layers per stage that could recompute instead of the plan's.
    pub(super) fn evened(self, cut: &LayerCut) -> Vec<usize> {
        let most = cut.stages.iter().map(|stage| stage.recomputed().0).max().unwrap_or(0);
        match self.recompute() {
            Some(RecomputeRule::Count) => vec![most, usize::MAX],
            Some(RecomputeRule::AllOrNone) => vec![0, usize::MAX],
            Some(RecomputeRule::PerLayer) | None => vec![],
        }
    }
}
