//! Models for training: a Hugging Face `config.json` as it is, and plantui's own JSON.
//!
//! ```text
//! { "schema": "plantui.training/1", "model": { .. sizes .. }, "sequence_length": 8192, "global_batch": 128, "devices": 64,
//!   "memory": bytes, "precision": "bf16", "stack": "megatron-2025", "settings": {"tp_overlap": false, ..},
//!   "hardware": {"id": "h100", "peak_16": .., .., "source": ".."},
//!   "constants": {"gemm_16": {"value": 0.71, "source": ".."}, ..} }
//! ```
//!
//! `model` is a published name, such as `"llama-3.1-70b"`, or all sizes. `hardware` is an id, or an object in which
//! only `id` is required. An absent field has the default of the model, the hardware or the stack; an absent constant is the
//! shipped one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    format::WorkloadFormat,
    reader::{WorkloadReader, parse, unknown_fields},
};
use crate::{
    cluster::{GivenLimits, LimitKind, MOST_BATCH, MOST_DEVICES},
    source::{LoadError, error::printable},
    workload::{
        profiled::{Provenance, Workload},
        training::{
            TrainingProfile,
            constants::Constants,
            from_hugging_face,
            hardware::{self, Accelerator},
            model::Model,
            published,
            run::{Stack, TrainingPrecision, TrainingSettings},
        },
    },
};

/// Required value of `schema`.
pub(crate) const SCHEMA: &str = "plantui.training/1";

/// Default hardware.
pub(crate) const USUAL_HARDWARE: &str = "h100";

/// Maximum number of tokens in a sequence.
const MOST_TOKENS: f64 = 1e9;

/// Model to be trained, with hardware and software.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawTrainingFile {
    /// Always `plantui.training/1`.
    #[allow(dead_code)]
    schema: String,
    /// Published name of a model, or its sizes.
    model: RawModel,
    /// Tokens in a sequence.
    sequence_length: Option<f64>,
    /// Sequences in an iteration, over all devices.
    global_batch: Option<f64>,
    /// Number of devices.
    devices: Option<f64>,
    /// Bytes of memory per device.
    memory: Option<f64>,
    /// Number format of matrix products.
    precision: Option<String>,
    /// Profile of the training software.
    stack: Option<String>,
    /// Settings of the software by name.
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    /// Id of the hardware, or its figures.
    hardware: Option<RawHardware>,
    /// Constants by name that differ from the shipped ones.
    #[serde(default)]
    constants: BTreeMap<String, RawConstant>,
    /// Origin of the file.
    provenance: Option<String>,
    /// Assumptions of its author, a sentence each.
    #[serde(default)]
    assumptions: Vec<String>,
    /// Sources of changed figures and constants, a sentence each.
    #[serde(default)]
    remarks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawModel {
    Name(String),
    Sizes(Box<Model>),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawHardware {
    Id(String),
    Figures(BTreeMap<String, Value>),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawConstant {
    Value(f64),
    Sourced {
        /// Value of the constant.
        value: f64,
    },
}

const TOP_LEVEL: [&str; 14] = [
    "schema",
    "model",
    "sequence_length",
    "global_batch",
    "devices",
    "memory",
    "precision",
    "stack",
    "settings",
    "hardware",
    "constants",
    "provenance",
    "assumptions",
    "remarks",
];

/// Reads a `config.json` as a workload on the default hardware.
///
/// # Errors
/// [`LoadError`] that names file, field and repair.
pub(crate) fn read_configuration(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let model = from_hugging_face(text, source)?;
    let name = if name == "config" && !model.name.is_empty() { model.name.clone() } else { name.to_string() };
    Ok(usual(model).into_workload(&name, source, WorkloadFormat::HuggingFace, None))
}

/// Model with a published name, as a workload on the default hardware; `None` if there is none.
pub(crate) fn named(name: &str) -> Option<Workload> {
    let model = published::find(name)?;
    let (name, source) = (model.name.clone(), crate::text::printable(name));
    Some(usual(model).into_workload(&name, &source, WorkloadFormat::HuggingFace, None))
}

fn usual(model: Model) -> TrainingProfile {
    TrainingProfile::new(model, hardware::find(USUAL_HARDWARE).expect("it is among the presets"))
}

/// Reads and validates a file of this format.
///
/// # Errors
/// [`LoadError`] that names file, line, JSON path and repair.
pub(crate) fn read(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let raw: RawTrainingFile = parse(text, source)?;
    let reader = WorkloadReader { source, text };
    let model = model(&reader, raw.model)?;
    let accelerator = raw.hardware.map_or_else(|| Ok(None), |raw| accelerator(&reader, raw).map(Some))?;
    let mut profile = match accelerator {
        Some(accelerator) => TrainingProfile::new(model, accelerator),
        None => usual(model),
    };
    let count = |value: Option<f64>, field: &str, most: f64| match value {
        Some(v) if !(v.fract() == 0.0 && (1.0..=most).contains(&v)) => {
            Err(reader.error(field, format!("is {v}, must be a whole number from 1 to {most}"), ""))
        }
        other => Ok(other),
    };
    if let Some(tokens) = count(raw.sequence_length, "sequence_length", MOST_TOKENS)? {
        profile.sequence = tokens as u64;
    }
    if let Some(word) = &raw.precision {
        let ids = TrainingPrecision::ALL.map(TrainingPrecision::id).join(", ");
        let unknown = || reader.error("precision", format!("is `{}`", printable(word)), format!("must be {ids}"));
        profile.precision = TrainingPrecision::find(word).ok_or_else(unknown)?;
    }
    if let Some(word) = &raw.stack {
        let ids = Stack::ALL.map(Stack::id).join(", ");
        let unknown = || reader.error("stack", format!("is `{}`", printable(word)), format!("must be {ids}"));
        let stack = Stack::find(word).ok_or_else(unknown)?;
        profile.move_to(profile.accelerator, stack);
        profile.settings = profile.stack.settings();
    }
    for (name, value) in &raw.settings {
        let path = format!("settings.{}", printable(name));
        profile.settings.set(name, &word(value)).map_err(|problem| reader.error(&path, problem, ""))?;
    }
    for (name, constant) in &raw.constants {
        let (RawConstant::Value(value) | RawConstant::Sourced { value }) = *constant;
        let path = format!("constants.{}", printable(name));
        let Some(known) = profile.constants.by_name(name) else {
            let names = profile.constants.named().map(|(name, _)| name).join(", ");
            return Err(reader.error(&path, "is no constant", format!("there are {names}")));
        };
        let taken = (0.0..=1e3).contains(&value) && (value > 0.0 || Constants::may_be_zero(name));
        if !taken {
            return Err(reader.error(&path, format!("is {value}, must be above 0 and at most 1000"), ""));
        }
        *known = value;
    }
    profile.remarks = raw.remarks.iter().map(|remark| printable(remark)).collect();
    let batch = count(raw.global_batch, "global_batch", f64::from(MOST_BATCH))?.map(|batch| batch as u32);
    let devices = count(raw.devices, "devices", f64::from(MOST_DEVICES))?.map(|devices| devices as u32);
    let memory = reader.limit(raw.memory, "memory")?;
    let mut workload = profile.into_workload(name, source, WorkloadFormat::Training, batch);
    let given = GivenLimits::default().maybe(LimitKind::Devices, devices).maybe(LimitKind::Memory, memory);
    workload.limits = given.or(&workload.limits);
    workload.unknown_fields = unknown_fields(text, &TOP_LEVEL);
    workload.provenance = raw.provenance.map(|made_by| Provenance {
        made_by: printable(&made_by),
        assumptions: raw.assumptions.iter().map(|sentence| printable(sentence)).collect(),
    });
    Ok(workload)
}

fn model(reader: &WorkloadReader<'_>, raw: RawModel) -> Result<Model, LoadError> {
    match raw {
        RawModel::Name(name) => published::find(&name).ok_or_else(|| {
            let problem = format!("is `{}`, which is no published name", printable(&name));
            reader.error("model", problem, "give the sizes, or a name such as llama-3.1-8b")
        }),
        RawModel::Sizes(mut model) => {
            if let Some((place, problem)) = model.problem() {
                return Err(reader.error(&format!("model.{place}"), problem, "correct it"));
            }
            model.name = printable(&model.name);
            model.source = printable(&model.source);
            model.remarks = model.remarks.iter().map(|remark| printable(remark)).collect();
            Ok(*model)
        }
    }
}

fn accelerator(reader: &WorkloadReader<'_>, raw: RawHardware) -> Result<Accelerator, LoadError> {
    let mut figures = match raw {
        RawHardware::Id(id) => BTreeMap::from([("id".to_string(), Value::String(id))]),
        RawHardware::Figures(figures) => figures,
    };
    let id = figures.remove("id").as_ref().map(word).unwrap_or_default();
    let generation = figures.remove("generation").as_ref().map(word);
    figures.remove("source");
    if hardware::find(&id).is_none() && figures.contains_key("peak_16") {
        let generation = generation.unwrap_or_else(|| "hopper".into());
        let numbers = figures.iter().map(|(name, value)| (name.clone(), value.as_f64().unwrap_or(0.0))).collect();
        return hardware::from_figures(&id, &generation, &numbers)
            .map_err(|problem| reader.error("hardware", problem, ""));
    }
    let Some(mut accelerator) = hardware::find(&id) else {
        let known: Vec<&str> = hardware::all().iter().map(|accelerator| accelerator.id).collect();
        let problem = format!("is `{}`, which is not known", printable(&id));
        let repair = format!("give peak_16 and the other figures, or one of {}", known.join(", "));
        return Err(reader.error("hardware.id", problem, repair));
    };
    figures.remove("source");
    for (name, value) in figures {
        let path = format!("hardware.{}", printable(&name));
        let Some(value) = value.as_f64().filter(|value| *value >= 1.0 && *value <= 1e18) else {
            return Err(reader.error(&path, "must be a number from 1 to 1e18", ""));
        };
        if !accelerator.set(&name, value) {
            let names = accelerator.named().map(|(name, _)| name).join(", ");
            return Err(reader.error(&path, "is no figure of hardware", format!("there are {names}")));
        }
    }
    Ok(accelerator)
}

/// Text of a setting, from a JSON value.
fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToString::to_string)
}

/// JSON value of a setting, from its text.
fn value(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => text.parse::<u32>().map_or_else(|_| text.into(), Value::from),
    }
}

/// Text of a workload's file. Reading it back gives the same model under the same settings.
pub(crate) fn text(workload: &Workload, profile: &TrainingProfile) -> String {
    let usual = profile.stack.settings();
    let changed = TrainingSettings::NAMES.iter().filter(|(name, _)| profile.settings.text(name) != usual.text(name));
    let settings: Map<String, Value> =
        changed.map(|(name, _)| ((*name).to_string(), value(&profile.settings.text(name)))).collect();
    let mut hardware: Map<String, Value> = Map::new();
    hardware.insert("id".into(), profile.accelerator.id.into());
    if !hardware::all().iter().any(|preset| preset.id == profile.accelerator.id) {
        hardware.insert("generation".into(), profile.accelerator.generation.id().into());
    }
    for (name, figure) in profile.accelerator.named() {
        if let Some(figure) = figure {
            hardware.insert(name.into(), json!(figure));
        }
    }
    hardware.insert("source".into(), "the vendor's data sheet, dense rates; links per direction and device".into());
    // Shipped ones are those of the program that reads the file.
    let shipped = Constants::shipped(profile.accelerator.generation, profile.stack);
    let constants: Map<String, Value> = profile
        .constants
        .named()
        .into_iter()
        .zip(shipped.named())
        .filter(|((_, value), (_, shipped))| value != shipped)
        .map(|((name, value), _)| (name.to_string(), json!({ "value": value, "source": "changed or calibrated" })))
        .collect();
    let mut file = Map::new();
    file.insert("schema".into(), SCHEMA.into());
    if let Some(provenance) = &workload.provenance {
        file.insert("provenance".into(), json!(provenance.made_by));
        file.insert("assumptions".into(), json!(provenance.assumptions));
    }
    file.insert("model".into(), json!(profile.model));
    file.insert("sequence_length".into(), json!(profile.sequence));
    let limits = &workload.limits;
    let mut given = |field: &str, value: Option<Value>| {
        if let Some(value) = value {
            file.insert(field.into(), value);
        }
    };
    given("global_batch", limits.batch().map(Value::from));
    given("devices", limits.devices().map(Value::from));
    given("memory", limits.memory_bytes().map(Value::from));
    file.insert("precision".into(), profile.precision.id().into());
    file.insert("stack".into(), profile.stack.id().into());
    file.insert("settings".into(), Value::Object(settings));
    file.insert("hardware".into(), Value::Object(hardware));
    if !constants.is_empty() {
        file.insert("constants".into(), Value::Object(constants));
    }
    if !profile.remarks.is_empty() {
        file.insert("remarks".into(), json!(profile.remarks));
    }
    serde_json::to_string_pretty(&file).expect("strings and finite numbers serialise") + "\n"
}

/// JSON Schema of the format.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> crate::schemas::DocumentSchema {
    crate::schemas::DocumentSchema::read::<RawTrainingFile>(SCHEMA)
}
