//! Formats of jobs: one reader each, recognised by names that no other format has.

use plantui_core::source::LoadError;

use super::{
    document::{Document, Part, Syntax},
    effects::Effects,
    formats as readers,
    job::{Draft, Job, ReadOptions},
    setting::{Fact, Place, Settings},
    syntax::shell::OpenFile,
};

/// Reader of a format.
pub(crate) trait JobReader: Sync {
    /// Id, for `--from`.
    fn id(&self) -> &'static str;
    /// Name for people.
    fn title(&self) -> &'static str;
    /// Name in the part that only this format has.
    fn recognise(&self, syntax: Syntax, part: &Part) -> Option<String>;
    /// Reads the part.
    ///
    /// # Errors
    /// [`LoadError`] for a value that cannot be read, or that no run can have.
    fn read(&self, part: &Part, draft: &mut Draft<'_>, context: &Context<'_>) -> Result<(), LoadError>;
    /// Effects of settings that are not used.
    fn effects(&self) -> &'static Effects;
}

/// Document and files that a reader may look up beside its part.
pub(crate) struct Context<'a> {
    pub(crate) document: &'a Document,
    pub(crate) open: OpenFile<'a>,
}

impl Context<'_> {
    /// Text of a file that the job names, with its name as shown: one that the script writes, or one beside it.
    pub(crate) fn file(&self, name: &str) -> Option<(String, String)> {
        if let Some((text, before)) = self.document.files.get(name) {
            // Empty lines in front give the lines of the script.
            return Some(("\n".repeat(*before as usize) + text, self.document.source.clone()));
        }
        let text = (self.open)(name)?;
        Some((text, name.to_string()))
    }
}

/// Formats in the order shown.
pub(crate) static READERS: [&dyn JobReader; 16] = [
    &readers::megatron::MegatronReader,
    &readers::megatron_bridge::MegatronBridgeReader,
    &readers::nemo::NemoReader,
    &readers::neox::NeoxReader,
    &readers::nanotron::NanotronReader,
    &readers::torchtitan::TorchTitanReader,
    &readers::deepspeed::DeepSpeedReader,
    &readers::accelerate::AccelerateReader,
    &readers::hugging_face::HuggingFaceReader,
    &readers::axolotl::AxolotlReader,
    &readers::llama_factory::LlamaFactoryReader,
    &readers::swift::SwiftReader,
    &readers::verl::VerlReader,
    &readers::maxtext::MaxTextReader,
    &readers::galvatron::GalvatronReader,
    &readers::torch::TorchReader,
];

/// Ids and titles of all formats.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    READERS.iter().map(|reader| (reader.id(), reader.title()))
}

type Found<'a> = (&'a Part, &'static dyn JobReader, String);

/// Reads the job of a document.
///
/// # Errors
/// [`LoadError`] if no format is recognised, or more than one job is possible.
pub(crate) fn read(document: &Document, options: &ReadOptions, open: OpenFile<'_>) -> Result<Job, LoadError> {
    let source = &document.source;
    let found = candidates(document, options)?;
    let (part, reader, _) = match &found[..] {
        [] => return Err(unrecognised(document, options)),
        [one] => one,
        [first, rest @ ..] => {
            let same =
                |(part, reader, _): &Found<'_>| reader.id() == first.1.id() && part.settings.same(&first.0.settings);
            if !rest.iter().all(same) {
                let names: Vec<String> = found.iter().map(|(part, ..)| part.name.clone()).collect();
                let problem = format!("has {} jobs: {}", found.len(), names.join(", "));
                let repair = format!("choose one with --recipe \"{}\"", names[0]);
                return Err(LoadError::file(source, problem, repair));
            }
            first
        }
    };
    let mut draft = Draft::new(source, options);
    let context = Context { document, open };
    exported(document, &mut draft);
    reader.read(part, &mut draft, &context)?;
    if let Some(launch) = &part.launch {
        readers::launched(launch, &mut draft)?;
        for (reason, place) in &launch.unknown {
            if !options.ignore.iter().any(|name| name == "words") {
                let problem = format!("a word in the place of a flag is not known: {reason}");
                return Err(place.error(
                    "",
                    problem,
                    "set what it depends on with --define, or leave it out with --ignore words",
                ));
            }
        }
        for (name, place) in &launch.empty {
            draft.assume(
                &format!("${name}"),
                format!("empty: {place} uses it, and the file does not set it"),
                &format!("--define {name}=VALUE"),
            );
        }
        if let Some(condition) = launch.conditions.first() {
            draft.note(format!("the command runs only under {condition}"));
        }
    }
    for default in document.defaults.iter().filter(|default| may_matter(default)) {
        let value = if default.value.is_empty() { "empty" } else { &default.value };
        let place = Place::new(source, default.line);
        draft.assume(
            &format!("${}", default.name),
            format!("{value}, its default at {place}"),
            &format!("--define {}=VALUE", default.name),
        );
    }
    for (name, line) in &document.missing {
        let place = Place::new(source, *line);
        draft.note(format!("{place} sources {name}, which is not there; variables that it sets are not known"));
    }
    draft.leave(&part.settings, reader.effects())?;
    let recipe = (!part.name.is_empty()).then(|| part.name.clone());
    draft.finish((reader.id(), reader.title()), recipe)
}

/// Facts in the comments of an export: `64 ranks on h100: ..`, `16 ranks: 4 stages x 2 replicas x tensor degree 2`,
/// `batch of 128 sequences of 4096 tokens, 1 in a microbatch, recompute full, adapter lora:r=16`.
fn exported(document: &Document, draft: &mut Draft<'_>) {
    for (comment, line) in &document.comments {
        batch_of_export(comment, &Place::new(&document.source, *line), draft);
        let mut words = comment.split_whitespace();
        let (Some(Ok(ranks)), Some(word)) = (words.next().map(str::parse::<u64>), words.next()) else { continue };
        if word.trim_end_matches(':') != "ranks" {
            continue;
        }
        let place = Place::new(&document.source, *line);
        draft.set("devices", Fact { value: ranks, place: place.clone() });
        if let (Some("on"), Some(id)) = (words.next(), words.next()) {
            let id = id.trim_end_matches(':');
            if plantui_core::workload::training::hardware::find(id).is_some() {
                draft.set("hardware", Fact { value: id, place: place.clone() });
            }
        }
        let degree = comment
            .split_once("tensor degree ")
            .and_then(|(_, degree)| degree.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok());
        let parts = comment.split(',').find_map(|part| part.strip_prefix("etp=")?.parse::<u64>().ok());
        if let Some(parts) = parts {
            draft.set("etp", Fact { value: parts, place: place.clone() });
        }
        if let Some(tensor) = degree {
            draft.set("tp", Fact { value: tensor, place });
        }
    }
}

/// Batch in a comment of an export. What the file itself states comes first.
fn batch_of_export(comment: &str, place: &Place, draft: &mut Draft<'_>) {
    let words: Vec<&str> = comment.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
    let [
        "batch",
        "of",
        batch,
        "sequences",
        "of",
        tokens,
        "tokens",
        micro,
        "in",
        "a",
        "microbatch",
        "recompute",
        again,
        rest @ ..,
    ] = &words[..]
    else {
        return;
    };
    if let ["adapter", adapter] = rest {
        draft.set("adapter", Fact { value: *adapter, place: place.clone() });
    }
    for (name, value) in [("global_batch", batch), ("sequence_length", tokens), ("mbs", micro)] {
        if let Ok(value) = value.parse::<u64>() {
            draft.set(name, Fact { value, place: place.clone() });
        }
    }
    draft.set("recompute", Fact { value: *again, place: place.clone() });
}

/// True if a default may state a fact of the run: not an address, a path or a key.
fn may_matter(default: &crate::syntax::shell::TakenDefault) -> bool {
    const OTHER: [&str; 18] = [
        "MASTER",
        "ADDR",
        "PORT",
        "RANK",
        "PATH",
        "DIR",
        "KEY",
        "WANDB",
        "LOG",
        "HOST",
        "TOKENIZER_",
        "CHECKPOINT",
        "CKPT",
        "DATA_",
        "NAME",
        "CUDA_DEVICE",
        "NCCL",
        "SEED",
    ];
    let upper = default.name.to_ascii_uppercase();
    !default.value.contains('/') && !OTHER.iter().any(|word| upper.contains(word))
}

/// True if a part of the document is of a known format.
pub(crate) fn recognised(document: &Document) -> bool {
    let known = |part: &Part| READERS.iter().any(|reader| reader.recognise(document.syntax, part).is_some());
    document.parts.iter().any(known)
}

/// Parts that a reader recognises.
fn candidates<'a>(document: &'a Document, options: &ReadOptions) -> Result<Vec<Found<'a>>, LoadError> {
    let wanted = |part: &&Part| {
        options.recipe.as_ref().is_none_or(|name| part.name == *name || part.name == format!("line {name}"))
    };
    let mut found: Vec<Found<'a>> = vec![];
    for part in document.parts.iter().filter(wanted) {
        let mut known: Vec<Found<'a>> = vec![];
        for reader in READERS {
            if options.format.is_some_and(|id| id != reader.id()) {
                continue;
            }
            match (reader.recognise(document.syntax, part), options.format) {
                (Some(evidence), _) => known.push((part, reader, evidence)),
                (None, Some(_)) if document.parts.len() == 1 || options.recipe.is_some() => {
                    known.push((part, reader, String::new()));
                }
                (None, _) => {}
            }
        }
        if let [first, second, ..] = &known[..] {
            let problem =
                format!("may be {} (it has {}) or {} ({})", first.1.title(), first.2, second.1.title(), second.2);
            let repair = format!("name its format: --from {} or --from {}", first.1.id(), second.1.id());
            return Err(LoadError::file(&document.source, problem, repair));
        }
        found.append(&mut known);
    }
    Ok(found)
}

fn unrecognised(document: &Document, options: &ReadOptions) -> LoadError {
    let source = &document.source;
    if let Some(name) = &options.recipe {
        let names: Vec<&str> =
            document.parts.iter().map(|part| part.name.as_str()).filter(|name| !name.is_empty()).collect();
        let shown = plantui_core::text::printable(name);
        if names.contains(&name.as_str()) {
            let problem = format!("has the recipe `{shown}`, whose settings are of no format that is read");
            return LoadError::file(source, problem, "`plantui import --help` lists the formats");
        }
        let repair =
            if names.is_empty() { "leave --recipe out".into() } else { format!("there are {}", names.join(", ")) };
        return LoadError::file(source, format!("has no recipe `{shown}`"), repair);
    }
    if document.parts.is_empty() {
        let repair =
            "give the script with the command that trains (torchrun, srun, python file.py), or the flags alone";
        return LoadError::file(source, "starts no training program", repair);
    }
    let problem = format!("holds none of the names that identify a job of the {} formats that are read", READERS.len());
    LoadError::file(source, problem, "`plantui import --help` lists them; name one with --from")
}

impl Settings {
    /// True if two lists have the same names and values.
    fn same(&self, other: &Settings) -> bool {
        let all = |settings: &Settings| {
            let mut all: Vec<(String, String)> =
                settings.iter().map(|setting| (setting.name.clone(), setting.value.text())).collect();
            all.sort();
            all
        };
        all(self) == all(other)
    }
}
