//! Request for a run, by name and text: on the command line, in a table of measured runs, in an engine's log.
//!
//! A missing value takes its default once the model is known. A contradiction is refused with one sentence.

use super::check::Refusal;
use crate::workload::training::{
    adapter::Adapter,
    hardware::{self, Accelerator},
    model::Model,
    run::{Layout, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings, ZeroBubble},
};
use crate::{plan::Schedule, text::printable};

/// Maximum degree, microbatch size or number of devices.
const MOST: u64 = 1 << 20;

/// Maximum sequence length and batch size.
const MOST_TOKENS: u64 = 1 << 30;

/// Values requested so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    hardware: Option<Accelerator>,
    devices: Option<u64>,
    degrees: [Option<u32>; 8],
    global_batch: Option<u64>,
    sequence: Option<u64>,
    precision: Option<TrainingPrecision>,
    recompute: Option<Recompute>,
    stack: Option<Stack>,
    layers: Vec<u32>,
    head_alone: bool,
    schedule: Option<Schedule>,
    settings: Vec<(String, String)>,
}

/// Request with defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedRequest {
    /// The run.
    pub run: TrainingRun,
    /// Accelerator of the run.
    pub accelerator: Accelerator,
    /// Number of devices.
    pub devices: u64,
    /// Profile of its settings.
    pub stack: Stack,
}

impl Request {
    /// Names of the degrees, in the order of [`Layout`]'s fields.
    pub const DEGREES: [&'static str; 8] = ["tp", "pp", "vp", "cp", "ep", "etp", "dp", "mbs"];

    /// Names that [`Request::set`] takes in addition to those of settings.
    pub const NAMES: [&'static str; 10] = [
        "hardware",
        "devices",
        "parallel",
        "global_batch",
        "sequence_length",
        "precision",
        "recompute",
        "stack",
        "layers",
        "schedule",
    ];

    /// Sets one value by name. Dashes count as underscores.
    ///
    /// # Errors
    /// Sentence, if the name is unknown, the value is invalid, or another value was set before.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = name.trim_start_matches("--").replace('-', "_");
        let value = value.trim();
        match name.as_str() {
            "hardware" => self.hardware = Some(accelerator(value)?),
            "devices" => self.devices = Some(count("devices", value, MOST)?),
            "global_batch" => self.global_batch = Some(count("global_batch", value, MOST_TOKENS)?),
            "sequence_length" => self.sequence = Some(count("sequence_length", value, MOST_TOKENS)?),
            "precision" => self.precision = Some(precision(value)?),
            "recompute" => self.recompute = Some(Recompute::parse(value)?),
            "stack" => self.stack = Some(stack(value)?),
            "layers" => {
                (self.layers, self.head_alone) = layers(value)?;
            }
            "schedule" => self.schedule = Some(schedule(value)?),
            "parallel" => return self.parallel(value),
            "set" => return self.settings_of(value),
            "adapter" => {
                Adapter::parse(value)?;
                return self.setting(&name, value);
            }
            _ if Request::DEGREES.contains(&name.as_str()) => return self.degree(&name, value),
            _ => return self.setting(&name, value),
        }
        Ok(())
    }

    /// Sets all degrees of `tp=4,pp=2`.
    fn parallel(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!("`{}` is not a degree; write tp=4,pp=2", printable(part)));
            };
            self.degree(name.trim(), value.trim())?;
        }
        Ok(())
    }

    /// Sets all settings of `fsdp=true tp_overlap=false`. Commas and semicolons also separate settings.
    fn settings_of(&mut self, text: &str) -> Result<(), String> {
        for part in text.split([' ', ',', ';']).filter(|part| !part.is_empty()) {
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!("`{}` is not a setting; write tp_overlap=false", printable(part)));
            };
            self.setting(name, value)?;
        }
        Ok(())
    }

    fn degree(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(index) = Request::DEGREES.iter().position(|known| *known == name) else {
            return Err(format!("there is no degree `{}`; there are {}", printable(name), Request::DEGREES.join(", ")));
        };
        let degree = count(name, value, MOST)? as u32;
        if let Some(before) = self.degrees[index].filter(|before| *before != degree) {
            return Err(format!("{name} is given twice, as {before} and {degree}"));
        }
        self.degrees[index] = Some(degree);
        Ok(())
    }

    fn setting(&mut self, name: &str, value: &str) -> Result<(), String> {
        Stack::Plain.settings().set(name, value)?;
        let (name, value) = match (name, value) {
            ("shared_expert_overlap", "true") => ("ep_overlap", "shared"),
            // The usual value; nothing is to be set, unless it contradicts.
            ("shared_expert_overlap", _) => {
                let shared = |(name, value): &(String, String)| name == "ep_overlap" && value == "shared";
                if self.settings.iter().any(shared) {
                    return Err("shared_expert_overlap=false contradicts ep_overlap=shared".into());
                }
                return Ok(());
            }
            other => other,
        };
        if let Some((_, before)) = self.settings.iter().find(|(known, before)| known == name && before != value) {
            return Err(format!("{name} is set twice, to {} and {}", printable(before), printable(value)));
        }
        self.settings.push((name.into(), value.into()));
        Ok(())
    }

    /// Combines two requests. Values of this one take precedence.
    #[must_use]
    pub fn or(&self, other: &Request) -> Request {
        let mut both = self.clone();
        both.hardware = both.hardware.or(other.hardware);
        both.devices = both.devices.or(other.devices);
        for (degree, default) in both.degrees.iter_mut().zip(other.degrees) {
            *degree = degree.or(default);
        }
        both.global_batch = both.global_batch.or(other.global_batch);
        both.sequence = both.sequence.or(other.sequence);
        both.precision = both.precision.or(other.precision);
        both.recompute = both.recompute.or(other.recompute);
        both.stack = both.stack.or(other.stack);
        both.schedule = both.schedule.or(other.schedule);
        if both.layers.is_empty() {
            both.layers.clone_from(&other.layers);
            both.head_alone = other.head_alone;
        }
        let unset = |(name, _): &&(String, String)| !self.settings.iter().any(|(known, _)| known == name);
        both.settings.extend(other.settings.iter().filter(unset).cloned());
        both
    }

    /// Requested hardware, or the default.
    pub fn resolve_hardware(&self) -> Accelerator {
        self.hardware.or_else(|| hardware::find("h100")).unwrap_or(hardware::all()[0])
    }

    /// Fills in the values that were not requested.
    ///
    /// # Errors
    /// [`Refusal`] if a value has no default, or if the request contradicts itself.
    pub fn resolve(&self, model: &Model) -> Result<ResolvedRequest, Refusal> {
        let zero_bubble = self.schedule.and_then(|schedule| ZeroBubble::find(schedule.id()));
        let [tensor, pipeline, mut virtual_stages, context, expert, _, data, micro_batch] =
            self.degrees.map(|degree| degree.unwrap_or(1));
        if let (Some(schedule), None) = (zero_bubble, self.degrees[2]) {
            virtual_stages = schedule.parts().unwrap_or(virtual_stages);
        }
        let others = u64::from(tensor) * u64::from(pipeline) * u64::from(context);
        let refuse = |problem: String, repair: &str| Err(Refusal { problem, repair: repair.into() });
        let devices = self.devices.unwrap_or_else(|| others.saturating_mul(data.into()));
        if devices > MOST {
            return refuse(format!("{devices} devices are more than {MOST}"), "take smaller degrees");
        }
        if !devices.is_multiple_of(others) || devices == 0 {
            return refuse(
                format!("{devices} devices are not a multiple of tp·pp·cp = {tensor}·{pipeline}·{context} = {others}"),
                "every replica needs that many",
            );
        }
        let data = devices / others;
        if let Some(asked) = self.degrees[6].filter(|asked| u64::from(*asked) != data) {
            return refuse(
                format!("dp={asked} contradicts {devices} devices with tp·pp·cp = {others}, which give dp={data}"),
                "leave one of the two out",
            );
        }
        let Some(global_batch) = self.global_batch else {
            return refuse("no global batch is given".into(), "give --global-batch, the sequences in an iteration");
        };
        let (accelerator, stack) = self.platform();
        let usual = if model.has_experts() { stack.expert_tensor(tensor, expert) } else { 1 };
        let expert_tensor = self.degrees[5].unwrap_or(usual);
        let run = TrainingRun {
            layout: Layout {
                tensor,
                pipeline,
                virtual_stages,
                context,
                expert,
                expert_tensor,
                data: data as u32,
                micro_batch,
            },
            global_batch,
            sequence: self.sequence.unwrap_or(model.longest_sequence.min(8192)),
            precision: self.precision.unwrap_or_else(|| self.resolve_hardware().usual_precision()),
            recompute: self.recompute.unwrap_or(Recompute::None),
            stack,
            settings: self.settings(stack),
            layers: self.layers.clone(),
            head_alone: self.head_alone,
            zero_bubble,
            links: None,
        };
        Ok(ResolvedRequest { run, accelerator, devices, stack })
    }

    /// Hardware and stack, or the defaults of a request that names none.
    pub fn platform(&self) -> (Accelerator, Stack) {
        (self.resolve_hardware(), self.stack.unwrap_or(Stack::Megatron2025))
    }

    /// Settings of the stack with the requested changes. Tensor-parallel overlap is disabled with sequence parallelism,
    /// unless requested.
    fn settings(&self, stack: Stack) -> TrainingSettings {
        let mut settings = stack.settings();
        for (name, value) in &self.settings {
            // Each value was validated when it was set.
            drop(settings.set(name, value));
        }
        if !settings.sequence_parallel && !self.settings.iter().any(|(name, _)| name == "tp_overlap") {
            settings.tp_overlap = false;
        }
        settings
    }
}

/// Layers of the stages, and true if the layers that predict further tokens (`m`) are before the last stage. On the last
/// one `m` is usual, so that it may be written or not.
fn layers(value: &str) -> Result<(Vec<u32>, bool), String> {
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    let marked: Vec<usize> = (0..words.len()).filter(|&index| words[index].ends_with('m')).collect();
    let place = match marked[..] {
        [] => words.len() - 1,
        [place] if place + 2 >= words.len() => place,
        _ => return Err("layers may have one m, on the last stage or on the one before".into()),
    };
    let one = |word: &&str| match word.strip_suffix('m').unwrap_or(word) {
        "0" => Ok(0),
        "" if word.ends_with('m') => Ok(0),
        word => count("layers", word, MOST).map(|layers| layers as u32),
    };
    Ok((words.iter().map(one).collect::<Result<_, _>>()?, place + 1 < words.len()))
}

/// Accelerator with this name.
///
/// # Errors
/// Sentence with the available ones.
pub(super) fn accelerator(value: &str) -> Result<Accelerator, String> {
    hardware::find(value).ok_or_else(|| {
        let known: Vec<&str> = hardware::all().iter().map(|accelerator| accelerator.id).collect();
        format!("there is no hardware `{}`; there are {}", printable(value), known.join(", "))
    })
}

fn precision(value: &str) -> Result<TrainingPrecision, String> {
    TrainingPrecision::find(value).ok_or_else(|| {
        format!(
            "precision is `{}`, must be {}",
            printable(value),
            TrainingPrecision::ALL.map(TrainingPrecision::id).join(", ")
        )
    })
}

fn stack(value: &str) -> Result<Stack, String> {
    Stack::find(value).ok_or_else(|| {
        format!("there is no stack `{}`; there are {}", printable(value), Stack::ALL.map(Stack::id).join(", "))
    })
}

fn schedule(value: &str) -> Result<Schedule, String> {
    let known = ["1f1b", "interleaved", "zb-h1", "zb-v", "interleaved-zb"];
    Schedule::find(value).filter(|schedule| known.contains(&schedule.id())).ok_or_else(|| {
        format!(
            "schedule is `{}`, must be 1f1b (interleaved where vp is above 1), zb-h1, zb-v or interleaved-zb",
            printable(value)
        )
    })
}

/// Whole number from 1 to `most`.
fn count(name: &str, value: &str, most: u64) -> Result<u64, String> {
    value
        .parse()
        .ok()
        .filter(|count| (1..=most).contains(count))
        .ok_or_else(|| format!("{name} is `{}`, must be a whole number from 1 to {most}", printable(value)))
}
