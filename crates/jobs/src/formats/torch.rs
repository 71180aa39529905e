//! Files of `plantui export` for engines that take a module: split points for `torch.distributed.pipelining`, and a
//! `PipelineModule` with its configuration for DeepSpeed.
//!
//! The files state stages, recomputation and batch; the model comes from elsewhere. Their first comment states the ranks.

use plantui_core::source::LoadError;

use super::zero;
use crate::{
    document::{Part, Syntax},
    effects::Effects,
    format::{Context, JobReader},
    job::Draft,
    setting::{Fact, Place, Settings, Value},
};

/// Reads exports that configure a module.
pub(crate) struct TorchReader;

static EFFECTS: Effects = Effects {
    none: "split_spec.dict schedule stages_of_rank config schedule_class micro_batch_size sequence_length parts recompute recomputed layers",
    prefixes: "call config. 0 train_ parser args engine",
    matters: "",
    by_sound: false,
};

impl JobReader for TorchReader {
    fn id(&self) -> &'static str {
        "torch"
    }

    fn title(&self) -> &'static str {
        "a script of PyTorch pipelining or of DeepSpeed's PipelineModule"
    }

    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String> {
        let zero = part.settings.has("gradient_checkpointing");
        let own = ["split_spec", "parts", "config.train_micro_batch_size_per_gpu"]
            .into_iter()
            .find(|name| part.settings.has(name) && (!name.starts_with("config") || zero));
        own.filter(|_| syntax == Syntax::Python && part.name.is_empty()).map(ToString::to_string)
    }

    fn read(&self, part: &Part, draft: &mut Draft<'_>, _: &Context<'_>) -> Result<(), LoadError> {
        let settings = &part.settings;
        let layers = draft.layers();
        draft.maybe("sequence_length", settings.count("sequence_length")?);
        if settings.has("parts") {
            draft.usual("stack", "megatron-2025");
            deepspeed(settings, draft, layers)?;
            draft.usual("sequence_parallel", false);
        } else if settings.has("split_spec") || settings.has("stages_of_rank") {
            draft.usual("stack", "megatron-2025");
            torch(settings, draft, layers)?;
        } else {
            draft.usual("stack", "torchtitan");
            let again = settings.flag("gradient_checkpointing")?;
            if let Some(fact) = again {
                draft.set("recompute", fact.with(if fact.value { "full" } else { "none" }));
            }
            let config = settings.part("config");
            zero::configuration(&config, draft, true)?;
            // A dictionary is used by its entries.
            config.iter().filter(|entry| config.has_under(&entry.name)).for_each(|entry| config.skip(&entry.name));
            draft.leave(&config, &zero::EFFECTS)?;
        }
        draft.usual("tp_overlap", false);
        draft.usual("precision", "bf16");
        if !draft.facts.contains_key("sequence_length") {
            draft.assume("sequence_length", "the model's longest, at most 8192", "--sequence-length");
        }
        Ok(())
    }

    fn effects(&self) -> &'static Effects {
        &EFFECTS
    }
}

fn numbers(value: &Value) -> Vec<u64> {
    value.text().split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

fn torch(settings: &Settings, draft: &mut Draft<'_>, layers: Option<u64>) -> Result<(), LoadError> {
    let mut starts: Vec<(u64, Place)> = vec![];
    for (name, setting) in settings.under("split_spec") {
        let number = name.rsplit('.').next().and_then(|word| word.parse().ok());
        let Some(number) = number.filter(|number| starts.last().is_none_or(|(last, _)| last < number)) else {
            let problem = "splits in front of a module that is no numbered layer behind the one before";
            return Err(setting.error(problem, "split in front of whole layers, in order"));
        };
        starts.push((number, setting.place.clone()));
    }
    settings.skip("split_spec");
    let place = starts.first().map_or(Place::new(draft.source, 0), |(_, place)| place.clone());
    let ranks = settings.take("stages_of_rank").map(|setting| match &setting.value {
        Value::List(lists) => lists.iter().map(numbers).collect::<Vec<_>>(),
        _ => vec![],
    });
    let parts = starts.len() as u64 + 1;
    let stages = ranks.as_ref().map_or(parts, |ranks| ranks.len() as u64).max(1);
    draft.set("pp", Fact { value: stages, place: place.clone() });
    if parts > stages {
        draft.set("vp", Fact { value: parts / stages, place: place.clone() });
    }
    let bounds: Vec<u64> =
        std::iter::once(0).chain(starts.iter().map(|(start, _)| *start)).chain([layers.unwrap_or(u64::MAX)]).collect();
    if layers.is_some() {
        let counts: Vec<String> = bounds.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).to_string()).collect();
        draft.set("layers", Fact { value: counts.join(","), place: place.clone() });
    }
    let again = settings.take("recompute").map(|setting| (setting.value.clone(), setting.place.clone()));
    if let Some((Value::List(names), place)) = again {
        let numbers = names.iter().filter_map(|name| name.text().rsplit('.').next()?.parse().ok());
        recompute(draft, &numbers.collect::<Vec<u64>>(), (0, &bounds), layers, place);
    } else {
        draft.usual("recompute", "none");
    }
    draft.maybe("precision", settings.text("precision")?);
    draft.maybe("sequence_parallel", settings.flag("sequence_parallel")?);
    if let Some(shards) = settings.flag("shard_optimizer")? {
        draft.set("zero", shards.with(u32::from(shards.value)));
    }
    draft.maybe("mbs", settings.count("micro_batch_size")?);
    draft.chunks = settings.count_of(&["n_microbatches", "microbatches"])?;
    Ok(())
}

/// Layers that recompute, by their numbers from `first` on. `bounds` are the first layers of the stages, and the end.
fn recompute(
    draft: &mut Draft<'_>,
    numbers: &[u64],
    (first, bounds): (u64, &[u64]),
    layers: Option<u64>,
    place: Place,
) {
    let numbers: Vec<usize> =
        numbers.iter().filter_map(|number| number.checked_sub(first).map(|n| n as usize)).collect();
    let count = numbers.iter().max().map_or(0, |last| (last + 1).min(100_000));
    draft.recomputed = Some((0..count).map(|layer| numbers.contains(&layer)).collect());
    let first_of_each = first_of_each(&numbers, bounds);
    let text = match numbers.len() as u64 {
        0 => "none",
        all if Some(all) == layers => "full",
        _ if first_of_each.is_some() => &first_of_each.unwrap_or_default(),
        some => {
            let problem = format!("recomputes {some} layers");
            let repair =
                "give a profile with --for: the model's prediction has all layers, none, or the first of each stage";
            draft.refused = Some(place.error("recompute", problem, repair));
            "none"
        }
    };
    draft.set("recompute", Fact { value: text, place });
}

/// `full:N` if the first N layers of every stage recompute, and no others.
fn first_of_each(numbers: &[usize], bounds: &[u64]) -> Option<String> {
    let within = |from: u64, to: u64| numbers.iter().filter(move |number| (from..to).contains(&(**number as u64)));
    let count = within(*bounds.first()?, *bounds.get(1)?).count() as u64;
    let alike = |pair: &[u64]| {
        let own = count.min(pair[1].saturating_sub(pair[0]));
        within(pair[0], pair[1]).count() as u64 == own
            && within(pair[0], pair[0].saturating_add(own)).count() as u64 == own
    };
    (count > 0 && bounds.windows(2).all(alike)).then(|| format!("full:{count}"))
}

fn deepspeed(settings: &Settings, draft: &mut Draft<'_>, layers: Option<u64>) -> Result<(), LoadError> {
    let Some(setting) = settings.take("parts") else { return Ok(()) };
    let bounds = numbers(&setting.value);
    if bounds.len() < 2 || bounds[0] != 0 || !bounds.is_sorted_by(|a, b| a < b) {
        return Err(setting.error(format!("is {}, must be rising numbers from 0", setting.value.text()), "correct it"));
    }
    let place = setting.place.clone();
    let mut counts: Vec<u64> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    draft.set("pp", Fact { value: counts.len() as u64, place: place.clone() });
    // Entries around the blocks: the embedding before them, the head behind.
    if let Some(layers) = layers {
        let extra = counts.iter().sum::<u64>().saturating_sub(layers);
        if (1..=4).contains(&extra) {
            let last = counts.len() - 1;
            counts[0] = counts[0].saturating_sub(1);
            counts[last] = counts[last].saturating_sub(extra - 1);
        }
        let words: Vec<String> = counts.iter().map(u64::to_string).collect();
        draft.set("layers", Fact { value: words.join(","), place: place.clone() });
    }
    let config = settings.part("config");
    zero::configuration(&config, draft, true)?;
    let again = settings.take("recomputed").map(|setting| numbers(&setting.value)).unwrap_or_default();
    // The first entry of the list is the embedding.
    let mut starts = vec![0];
    for count in &counts {
        starts.push(starts[starts.len() - 1] + count);
    }
    recompute(draft, &again, (1, &starts), layers, place);
    Ok(())
}
