//! Input of an engine's writer: the stages, the parts on every rank, the recipe; and the notes that go with the text.

use super::{CutStage, Engine, LayerCut, ModuleNames, VirtualStageParts};
use plantui_core::{
    plan::runner::{RecomputeRule, Runner},
    simulate::Schedule,
    units,
    workload::{
        layering::LayerPosition,
        recipe::{ModelShape, Precision, Recipe},
    },
};

/// Job to write.
#[derive(Debug, Clone)]
pub(super) struct EngineJob<'a> {
    /// Plan as stages.
    pub(super) cut: &'a LayerCut,
    /// Parts to run: the stages, or several parts on every rank.
    pub(super) parts: VirtualStageParts,
    pub(super) schedule: Schedule,
    pub(super) names: &'a ModuleNames,
    /// Structure and settings of the network, as far as known.
    pub(super) recipe: Recipe,
    /// Context-parallel degree.
    pub(super) context_parallel: u32,
    /// ZeRO stage: parts of the state that replicas divide.
    pub(super) zero: u32,
}

/// Least bytes per parameter that Adam takes in mixed precision.
const LEAST_TRAINING_STATE: f64 = 12.0;

impl<'a> EngineJob<'a> {
    /// Collects the input of a writer.
    ///
    /// # Errors
    /// Reason why the engine cannot interleave this plan.
    pub(super) fn new(
        cut: &'a LayerCut,
        engine: Engine,
        (schedule, virtual_stages): (Schedule, u32),
        names: &'a ModuleNames,
        recipe: Recipe,
    ) -> Result<Self, String> {
        let parts = VirtualStageParts::of(cut, engine.runner().unwrap_or(Runner::Any), schedule, virtual_stages)?;
        let zero = u32::from(recipe.optimizer_shards.is_some());
        Ok(EngineJob { cut, parts, schedule, names, recipe, context_parallel: 1, zero })
    }

    /// Replicas of every stage.
    pub(super) fn data_parallel(&self) -> u32 {
        self.cut.data_parallel()
    }

    /// Tensor degree of every stage.
    pub(super) fn tensor_parallel(&self) -> u32 {
        self.cut.tensor_parallel()
    }

    /// Ranks of a pipeline.
    pub(super) fn ranks(&self) -> usize {
        self.cut.stages.len()
    }

    /// Microbatches per replica and iteration.
    pub(super) fn own_microbatches(&self) -> u32 {
        (self.cut.microbatches / self.data_parallel()).max(1)
    }

    /// Samples per iteration over all replicas, if the microbatch size is known.
    pub(super) fn samples(&self) -> Option<u64> {
        self.cut.micro_batch_size.map(|size| u64::from(size) * u64::from(self.cut.microbatches))
    }

    /// Total number of repeated layers.
    pub(super) fn blocks(&self) -> usize {
        self.cut.stages.iter().map(CutStage::blocks).sum()
    }

    /// Model sizes, if they belong to this network: a file may have been edited.
    pub(super) fn model(&self) -> Option<ModelShape> {
        self.recipe.model.filter(|model| model.layers as usize == self.blocks())
    }

    /// True if memory was counted with the optimizer's state divided over replicas.
    pub(super) fn shards_optimizer(&self) -> bool {
        self.recipe.optimizer_shards.is_some()
    }

    /// True if norms and dropouts are divided along the sequence, which requires a tensor degree above 1.
    pub(super) fn sequence_parallel(&self) -> bool {
        self.recipe.sequence_parallel == Some(true) && self.tensor_parallel() > 1
    }

    /// True if tensor-parallel transfers overlap with products, which requires sequence parallelism.
    pub(super) fn tensor_overlap(&self) -> bool {
        self.recipe.tensor_overlap == Some(true) && self.sequence_parallel()
    }

    /// True if the model has experts and a tensor degree above 1. The figures then assume that every tensor-parallel
    /// rank holds its experts whole and runs them on its part of the sequence.
    pub(super) fn experts_are_whole(&self) -> bool {
        self.tensor_parallel() > 1 && self.model().is_some_and(|model| model.experts.is_some())
    }

    /// True if gradients were counted in 16 bits, plus bf16 weights and 12 bytes of optimizer state, whole or divided.
    pub(super) fn reduces_in_bf16(&self) -> bool {
        let optimizer = 12.0 / f64::from(self.recipe.optimizer_shards.unwrap_or(1).max(1));
        let gradients = self.recipe.state_bytes_per_parameter.map(|bytes| bytes - 2.0 - optimizer);
        gradients.is_some_and(|bytes| (bytes - 2.0).abs() < 1e-6) && self.recipe.precision == Some(Precision::Bf16)
    }

    /// True if any layer recomputes.
    pub(super) fn recomputes(&self) -> bool {
        self.parts.parts.iter().any(|part| part.recompute.contains(&true))
    }

    /// Comment on the number of ranks and their roles.
    pub(super) fn layout_line(&self) -> String {
        let (d, t) = (self.data_parallel(), self.tensor_parallel());
        let virtual_stages = match self.parts.each() {
            1 => String::new(),
            each => format!(", {each} virtual stages on every rank"),
        };
        format!(
            "{} ranks: {} stages x {d} replicas x tensor degree {t}{virtual_stages}",
            self.cut.devices(),
            self.ranks()
        )
    }

    /// Makes the number of recomputed layers equal in all parts if the engine supports only that. Returns the change,
    /// if any.
    pub(super) fn even_out(&mut self, engine: Engine) -> Option<String> {
        let count = engine.runner()?.recompute() == RecomputeRule::Count;
        let counts: Vec<(usize, usize)> = self.parts.parts.iter().map(CutStage::recomputed).collect();
        let most = counts.iter().map(|(some, _)| *some).max().unwrap_or(0);
        if !count || counts.iter().all(|&(some, of)| some == most.min(of)) {
            return None;
        }
        let mut more = 0;
        for part in &mut self.parts.parts {
            let mut place = 0;
            for (kind, recompute) in part.layers.iter().zip(&mut part.recompute) {
                if matches!(kind, LayerPosition::Block(_)) {
                    more += usize::from(place < most && !*recompute);
                    *recompute = place < most;
                    place += 1;
                }
            }
        }
        Some(format!("the recomputed layers of a stage do not divide over its virtual stages; {more} more recompute"))
    }

    /// Notes for the user of the file: how memory was counted and what the plan leaves open.
    pub(super) fn notes(&self, engine: Engine) -> Vec<String> {
        if engine == Engine::Vllm {
            return vec![
                "the plan is for training: its memory holds gradients, optimizer and activations, not a cache of \
                keys and values"
                    .into(),
            ];
        }
        let mut notes = vec![];
        let d = self.data_parallel();
        match self.recipe.optimizer_shards {
            Some(shards) if shards != d => notes.push(format!(
                "memory was counted with the optimizer's state divided over {shards} replicas; the plan has {d}"
            )),
            _ => {}
        }
        match self.recipe.state_bytes_per_parameter {
            Some(bytes) if bytes < LEAST_TRAINING_STATE && !self.shards_optimizer() => notes.push(format!(
                "memory was counted with {} bytes of state per parameter; training with Adam needs 16 to 18",
                units::number(bytes)
            )),
            _ => {}
        }
        if self.parts.each() > 1 {
            notes.push(
                "every rank has as many layers as its stage in the plan; the schedule determines which ones".into(),
            );
        }
        notes
    }
}

/// Word for a precision in flags.
pub(super) fn precision_word(precision: Precision) -> &'static str {
    match precision {
        Precision::Bf16 => "bf16",
        Precision::Fp16 => "fp16",
        Precision::Fp32 => "fp32",
    }
}
