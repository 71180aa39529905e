//! Effect of settings that a reader does not use.

/// Settings of an engine by their effect: names in normal form with blanks between them. A name in neither list matters if
/// it sounds as if it did.
pub(crate) struct Effects {
    /// Names without an effect on time and memory.
    pub(crate) none: &'static str,
    /// Beginnings of such names.
    pub(crate) prefixes: &'static str,
    /// Names that change model, layout, memory or precision, and are not modelled.
    pub(crate) matters: &'static str,
    /// True if unknown names are judged by their words.
    pub(crate) by_sound: bool,
}

/// Words in the names of settings that change model, layout, memory or precision.
const IMPORTANT: [&str; 66] = [
    "layers",
    "layer",
    "hidden",
    "heads",
    "head",
    "ffn",
    "intermediate",
    "expert",
    "experts",
    "moe",
    "parallel",
    "parallelism",
    "pipeline",
    "tensor",
    "context",
    "sequence",
    "recompute",
    "checkpointing",
    "offload",
    "cpu",
    "attention",
    "attn",
    "fp8",
    "fp4",
    "fp16",
    "bf16",
    "fp32",
    "int8",
    "precision",
    "dtype",
    "quantization",
    "quantize",
    "quant",
    "zero",
    "shard",
    "sharding",
    "fsdp",
    "lora",
    "adapter",
    "peft",
    "vocab",
    "seq",
    "seqlen",
    "batch",
    "mtp",
    "mla",
    "window",
    "embedding",
    "embeddings",
    "rank",
    "degree",
    "stages",
    "chunks",
    "microbatch",
    "microbatches",
    "replicate",
    "remat",
    "freeze",
    "frozen",
    "mamba",
    "hybrid",
    "galore",
    "badam",
    "ema",
    "optimizer",
    "model",
];

impl Effects {
    /// True if a setting has no effect.
    pub(crate) fn has_none(&self, name: &str) -> bool {
        has(self.none, name) || self.prefixes.split_whitespace().any(|prefix| name.starts_with(prefix))
    }

    /// True if a setting changes the job, or sounds as if it did.
    pub(crate) fn matters(&self, name: &str) -> bool {
        has(self.matters, name) || self.by_sound && name.split(['_', '.', ' ']).any(|word| IMPORTANT.contains(&word))
    }
}

/// True if a list has a name.
fn has(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_judged_by_their_words() {
        let effects = Effects { none: "lr", prefixes: "log_", matters: "kd", by_sound: true };
        assert!(effects.has_none("lr") && effects.has_none("log_layers") && !effects.has_none("lrs"));
        assert!(effects.matters("kd") && effects.matters("num_extra_layers") && effects.matters("my_moe_thing"));
        assert!(!effects.matters("colour"));
        assert!(!Effects { by_sound: false, ..effects }.matters("num_extra_layers"));
    }
}
