//! Sharding of PyTorch's FSDP as Hugging Face's programs state it.

use plantui_core::source::LoadError;

use crate::{
    job::Draft,
    setting::{Fact, Settings},
};

/// Sets the division of weights and state by a strategy of FSDP 1.
pub(crate) fn strategy(draft: &mut Draft<'_>, fact: &Fact) -> Result<(), LoadError> {
    let word = fact.value.to_ascii_lowercase();
    match word.as_str() {
        "full_shard" | "1" | "true" => draft.set("zero", fact.with(3)),
        "shard_grad_op" | "2" | "false" => draft.set("zero", fact.with(2)),
        "no_shard" | "3" => draft.set("zero", fact.with(0)),
        "hybrid_shard" | "4" | "hybrid_shard_zero2" | "5" => {
            draft.set("zero", fact.with(3));
            draft.shards_in_machine = Some(fact.with(()));
        }
        _ => {
            let problem = format!("is `{}`, which is no strategy of FSDP", plantui_core::text::printable(&fact.value));
            return Err(fact.place.error("sharding_strategy", problem, "correct it"));
        }
    }
    Ok(())
}

/// Reads `fsdp_config`, whose names may begin with `fsdp_`.
pub(crate) fn section(settings: &Settings, draft: &mut Draft<'_>, name: &str) -> Result<(), LoadError> {
    let part = settings.part(name);
    let both = |word: &str| [format!("fsdp_{word}"), word.to_string()];
    let text = |word: &str| -> Result<Option<Fact>, LoadError> {
        let [long, short] = both(word);
        Ok(part.text(&long)?.or(part.text(&short)?))
    };
    let flag = |word: &str| -> Result<Option<Fact<bool>>, LoadError> {
        let [long, short] = both(word);
        Ok(part.flag(&long)?.or(part.flag(&short)?).filter(|fact| fact.value))
    };
    let version = text("version")?;
    let (kind, reshard) = (text("sharding_strategy")?, text("reshard_after_forward")?);
    if let Some(found) = kind {
        strategy(draft, &found)?;
    } else if let Some(found) = reshard {
        strategy(draft, &found)?;
    } else {
        let place = version
            .clone()
            .unwrap_or(Fact { value: String::new(), place: crate::setting::Place::new("default of FSDP", 0) });
        draft.set("zero", place.with(3));
    }
    if let Some(fact) = flag("offload_params")?.or(flag("cpu_offload")?) {
        draft.set("parameter_offload", fact.with(true));
        draft.set("optimizer_offload", fact.with(true));
    }
    match flag("activation_checkpointing")? {
        Some(fact) => draft.set("recompute", fact.with("full")),
        None => draft.usual("recompute", "none"),
    }
    if let Some(fact) = flag("activation_checkpointing_offload")? {
        draft.note(format!("{} keeps the layers' inputs on the host, which is not predicted", fact.place));
    }
    for word in [
        "auto_wrap_policy",
        "transformer_layer_cls_to_wrap",
        "min_num_params",
        "backward_prefetch",
        "backward_prefetch_policy",
        "forward_prefetch",
        "use_orig_params",
        "cpu_ram_efficient_loading",
        "sync_module_states",
        "state_dict_type",
        "mixed_precision_policy",
        "limit_all_gathers",
        "xla",
        "xla_fsdp_v2",
    ] {
        both(word).iter().for_each(|name| part.skip(name));
    }
    for setting in part.untaken() {
        if !setting.value.is_off() {
            return Err(setting.error(
                "is not understood in FSDP's configuration",
                format!("leave it out with --with {name}.{}=false", setting.name),
            ));
        }
    }
    Ok(())
}
