//! DeepSpeed's configuration as a job of its own.

use plantui_core::source::LoadError;

use super::zero;
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
};

/// Reads DeepSpeed's JSON.
pub(crate) struct DeepSpeedReader;

impl JobReader for DeepSpeedReader {
    fn id(&self) -> &'static str {
        "deepspeed"
    }

    fn title(&self) -> &'static str {
        "a DeepSpeed configuration"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let settings = &part.settings;
        let own = ["train_micro_batch_size_per_gpu", "train_batch_size", "zero_optimization.stage"];
        let name = own.iter().find(|name| settings.has(name))?;
        // GPT-NeoX's files contain DeepSpeed's entries.
        let other = ["num_layers", "hidden_size", "pipe_parallel_size", "model_parallel_size"]
            .iter()
            .any(|name| settings.has(name));
        (syntax == Syntax::Tree && !other).then(|| (*name).to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, _: &Context<'_>) -> Result<(), LoadError> {
        zero::configuration(&part.settings, draft, true)?;
        draft.usual("stack", if draft.degree("pp") > 1 { "megatron-2025" } else { "torchtitan" });
        if draft.degree("pp") > 1 {
            for setting in ["tp_overlap", "sequence_parallel"] {
                draft.usual(setting, false);
            }
        }
        if !draft.facts.contains_key("recompute") {
            draft.assume("recompute", "none: the program states it, not this file", "--recompute full");
        }
        if !draft.facts.contains_key("sequence_length") {
            draft.assume("sequence_length", "the model's longest, at most 8192", "--sequence-length");
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &zero::EFFECTS
    }
}
