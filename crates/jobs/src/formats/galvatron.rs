//! Galvatron's strategy: degrees, sharding and recomputation by layer, in JSON.
//!
//! Source: Galvatron 2.4's `hybrid_parallel_config.py`. A run here has one tensor degree and one kind of sharding for all layers.

use plantui_core::source::LoadError;

use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Settings},
};

/// Reads Galvatron's strategies.
pub(crate) struct GalvatronReader;

static EFFECTS: Effects = Effects {
    none: "tp_consecutive_flags vtp vsp embed_sdp vocab_sdp vcp search_space",
    prefixes: "",
    matters: "",
    by_sound: true,
};

impl JobReader for GalvatronReader {
    fn id(&self) -> &'static str {
        "galvatron"
    }

    fn title(&self) -> &'static str {
        "a Galvatron strategy"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        (syntax == Syntax::Tree && part.settings.has("pp_deg")).then(|| "pp_deg".to_string())
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, _: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        draft.usual("stack", "megatron-2025");
        draft.maybe("pp", settings.count("pp_deg")?);
        draft.maybe("global_batch", settings.count("global_bsz")?);
        draft.chunks = settings.count("chunks")?;
        if let Some(tensor) = one(settings, "tp_sizes_enc", "tensor degrees")? {
            draft.set("tp", tensor);
        }
        if let Some(context) = one(settings, "cp_sizes_enc", "context degrees")?.filter(|fact| fact.value != "1") {
            draft.set("cp", context);
        }
        if let Some(ulysses) = one(settings, "use_sp", "kinds of parallelism")?
            && ulysses.value == "1"
            && let Some(degree) = draft.facts.remove("tp")
        {
            draft.set("context_style", ulysses.with("all-to-all"));
            draft.set("cp", degree);
        }
        let kind = settings.text("default_dp_type")?;
        let divided = one(settings, "dp_types_enc", "kinds of data parallelism")?;
        match (&divided, &kind) {
            (Some(fact), _) if fact.value == "1" => draft.set("zero", fact.with(3)),
            (_, Some(kind)) => {
                let stage = match kind.value.as_str() {
                    "zero2" => 2,
                    "zero3" => 3,
                    _ => 0,
                };
                draft.set("zero", kind.with(stage));
            }
            _ => draft.usual("zero", 0),
        }
        recomputation(settings, draft)?;
        if let Some(division) = settings.words("pp_division")?
            && draft.degree("pp") > 1
        {
            draft.set("layers", division.with(division.value.join(",")));
        }
        if let Some(kind) = settings.text("pipeline_type")?.filter(|fact| fact.value == "gpipe") {
            draft.note(format!(
                "{} runs all forward passes first, which holds more activations than is predicted",
                kind.place
            ));
        }
        draft.usual("precision", "bf16");
        for name in ["tp_overlap", "fused_cross_entropy"] {
            draft.usual(name, false);
        }
        draft.assume("sequence_length", "the model's longest, at most 8192", "--sequence-length");
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

/// Value that a list of layers shares.
fn one(settings: &Settings, name: &str, what: &str) -> Result<Option<Fact>, LoadError> {
    let Some(words) = settings.words(name)? else { return Ok(None) };
    let mut distinct = words.value.clone();
    distinct.sort();
    distinct.dedup();
    match &distinct[..] {
        [] => Ok(None),
        [one] => Ok(Some(words.with(one.clone()))),
        several => {
            let problem = format!("gives layers different {what}: {}", several.join(", "));
            Err(words.place.error(name, problem, "a run here has one; give every layer the same"))
        }
    }
}

/// Recomputation, if it is that of all layers, of none, or of the first layers of every stage.
fn recomputation(settings: &Settings, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    let Some(flags) = settings.words("checkpoint")? else {
        draft.usual("recompute", "none");
        return Ok(());
    };
    let again: Vec<bool> = flags.value.iter().map(|flag| flag == "1").collect();
    draft.recomputed = Some(again.clone());
    let text = match (again.contains(&true), again.contains(&false)) {
        (false, _) => "none".to_string(),
        (true, false) => "full".into(),
        (true, true) => {
            let division: Option<Vec<usize>> = settings
                .words("pp_division")?
                .and_then(|words| words.value.iter().map(|word| word.parse().ok()).collect());
            let stages = division.unwrap_or_else(|| {
                let count = draft.degree("pp").max(1) as usize;
                vec![again.len() / count; count]
            });
            let mut start = 0;
            let mut counts = vec![];
            for stage in stages {
                let own = &again[start.min(again.len())..(start + stage).min(again.len())];
                let count = own.iter().filter(|flag| **flag).count();
                if own[..count.min(own.len())].contains(&false) {
                    counts.clear();
                    break;
                }
                counts.push(count);
                start += stage;
            }
            counts.dedup();
            match counts[..] {
                [count] => format!("full:{count}"),
                _ => {
                    let problem = "recomputes other layers than the first of every stage, as many in each";
                    let repair = "give the same number for every stage, or a profile with --for";
                    draft.refused = Some(flags.place.error("checkpoint", problem, repair));
                    "none".into()
                }
            }
        }
    };
    draft.set("recompute", flags.with(text));
    Ok(())
}
