//! Flags for a training workload: hardware, sequence length, software.
//!
//! The flags override the workload's file. A plan provides the values it was made with.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::de::DeserializeOwned;

use super::{
    Failure, estimate, hardware_file, input,
    job_input::GivenFact,
    topology_input::{self, TopologyArgument},
};
use crate::{
    family::{
        self, dial,
        kinds::KindCount,
        training::{TrainingSettings, check, fabric},
    },
    plan::document::{KindPart, TrainingPart},
    planner::Planner,
    units::{self, UnitError},
    workload::{Workload, WorkloadFormat, training::hardware::Fabric},
};

/// Flags for models that are to be trained.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Training (a config.json, a published name such as llama-3-70b, or plantui.training/1)")]
pub(crate) struct TrainingArgs {
    /// Hardware: a preset of `plantui hardware`, or a TOML file with figures of your own [default: that of the topology,
    /// else h100]
    #[arg(long, value_name = "ID")]
    pub hardware: Option<String>,
    /// Network above the machines: devices of a pod and how many times less bandwidth leaves it, such as 3072:7, or
    /// roce-24k [default: full bandwidth between all]
    #[arg(long, value_name = "POD:RATIO", allow_hyphen_values = true, value_parser = fabric::parse)]
    pub fabric: Option<Fabric>,
    /// Tokens in a sequence; `sweep` takes several, such as 4096,8192 [default: the model's longest, at most 8192]
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_delimiter = ',', value_parser = tokens)]
    pub sequence_length: Vec<u64>,
    /// Number format of matrix products: fp32, bf16, fp16, fp8, mxfp8 or nvfp4 [default: bf16]
    #[arg(long, value_name = "FORMAT")]
    pub precision: Option<String>,
    /// Profile of the training software: megatron-2025, nemo-24, torchtitan or plain [default: megatron-2025]
    #[arg(long, value_name = "ID")]
    pub stack: Option<String>,
    /// Memory per device kept free for the allocator, NCCL and the context [default: 6GiB]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub reserve: Option<String>,
    /// Adapters in place of training all weights: lora or qlora, such as lora:r=16, or PEFT's adapter_config.json
    #[arg(long, value_name = "ADAPTER")]
    pub adapter: Option<String>,
    /// Load of the ranks of experts: balanced, random, a factor from 1, capacity:FACTOR, or a JSON file with the tokens of
    /// each expert
    #[arg(long, value_name = "LOAD|FILE")]
    pub imbalance: Option<String>,
    /// Calibration file: factors that `plantui calibrate` fitted to your runs
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
}

fn tokens(text: &str) -> Result<u64, UnitError> {
    units::parse_count(text).map(u64::from)
}

impl TrainingArgs {
    /// Applies these flags and the topology to a loaded workload, once for each sequence length. With several lengths,
    /// each workload's name states its length.
    ///
    /// # Errors
    /// [`Failure`] if a flag does not apply to the workload.
    pub(super) fn each(&self, read: &Workload, topology: Option<&TopologyArgument>) -> Result<Vec<Workload>, Failure> {
        if self.sequence_length.len() < 2 {
            return Ok(vec![self.over(read.clone(), &[], topology)?]);
        }
        let one = |&tokens: &u64| {
            let own = TrainingArgs { sequence_length: vec![tokens], ..self.clone() };
            let workload = own.over(read.clone(), &[], topology)?;
            Ok(Workload { name: format!("{} at {tokens} tokens", workload.name), ..workload })
        };
        self.sequence_length.iter().map(one).collect()
    }

    /// Loads a workload for a plan's file, which states the training settings.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be read, or a flag does not apply to it.
    pub(super) fn load_for(
        &self,
        path: &Path,
        plan: &Path,
        topology: Option<&TopologyArgument>,
        facts: &[GivenFact],
    ) -> Result<Workload, Failure> {
        let mut workload = input::workload_given(path, facts)?;
        let mut own = self.clone();
        let mut settings = vec![];
        if let Some(part) = if family::of(&workload).has_platform() { training_in_plan(plan)? } else { None } {
            // The network above the machines is the cluster's, whatever the hardware.
            let figure = |name: &str| part.figures.get(name).copied();
            let network = figure("pod").zip(figure("oversubscription")).filter(|_| topology.is_none());
            if let (Some((pod, times)), true, None) = (network, self.hardware.is_some(), own.fabric) {
                let read = Fabric::checked(pod, times);
                own.fabric = Some(read.map_err(|problem| Failure::refused(format!("the plan {problem}"), ""))?);
            }
            if self.hardware.is_none() {
                let (calibrated, source) = (self.calibration.is_some(), input::shown(plan));
                workload = family::of(&workload).on_plan_hardware(&workload, &part, calibrated, &source)?;
            }
            settings = part.settings.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            own.hardware = own.hardware.or(Some(part.hardware));
            if own.sequence_length.is_empty() {
                own.sequence_length.push(part.sequence_length);
            }
            own.precision = own.precision.or(Some(part.precision));
            if own.stack.is_none() {
                own.stack = Some(part.stack);
            } else {
                settings.clear();
            }
        }
        workload = own.over(workload, &settings, topology)?;
        Ok(workload)
    }

    /// Workload with these flags and settings applied.
    ///
    /// # Errors
    /// [`Failure`] if a flag does not apply to it.
    pub(super) fn over(
        &self,
        mut workload: Workload,
        settings: &[(String, String)],
        topology: Option<&TopologyArgument>,
    ) -> Result<Workload, Failure> {
        if !family::of(&workload).has_platform() {
            return match self.given() {
                Some(flag) => Err(Failure::refused(
                    format!("{flag} is for models to be trained, and {} is a profile of times", workload.name),
                    "give a config.json or a published name, such as llama-3-70b",
                )),
                None => Ok(workload),
            };
        }
        let refused = |flag: &str, problem: String| Failure::refused(format!("{flag}: {problem}"), "");
        let tokens = match self.sequence_length[..] {
            [] => None,
            [tokens] => Some(tokens.to_string()),
            _ => {
                let problem = "has several values, which only `sweep` accepts".to_string();
                return Err(Failure::refused(format!("--sequence-length {problem}"), "give one"));
            }
        };
        let turn = |workload: Workload, id: &str, value: Option<&str>| match value {
            Some(value) => {
                dial::turned(&workload, id, value).map_err(|error| refused(&format!("--{id}"), error.to_string()))
            }
            None => Ok(workload),
        };
        let hardware = match topology {
            Some(topology) => self.hardware_on(topology, &workload)?,
            None => self.hardware.clone(),
        };
        let hardware = hardware.as_deref().map(hardware_file::id_of).transpose()?;
        let adapter = self.adapter.as_deref().map(estimate::adapter).transpose()?;
        let imbalance = self.imbalance.as_deref().map(estimate::imbalance).transpose()?;
        workload = turn(workload, "hardware", hardware.as_deref())?;
        if let Some(fabric) = self.fabric {
            if topology.is_some() {
                return Err(Failure::refused("--fabric and --topology both state the links", "give one"));
            }
            let within = family::of(&workload).on_fabric(&workload, fabric);
            workload = within.map_err(|error| refused("--fabric", error.to_string()))?;
        }
        workload = turn(workload, "sequence-length", tokens.as_deref())?;
        workload = turn(workload, "precision", self.precision.as_deref())?;
        if let Some(id) = &self.stack {
            let stacked = family::of(&workload).with_stack(&workload, id);
            workload = stacked.map_err(|error| refused("--stack", error.to_string()))?;
        }
        for (name, value) in settings {
            let set = family::of(&workload).with_setting(&workload, name, value);
            workload = set.map_err(|error| refused("settings", error.to_string()))?;
        }
        for (name, value) in [("adapter", &adapter), ("imbalance", &imbalance)] {
            if let Some(value) = value {
                let set = family::of(&workload).with_setting(&workload, name, value);
                workload = set.map_err(|error| refused(&format!("--{name}"), error.to_string()))?;
            }
        }
        workload = turn(workload, "reserve", self.reserve.as_deref())?;
        if let Some(path) = &self.calibration {
            workload = family::of(&workload).calibrated(&workload, &estimate::calibration(path)?);
        }
        if let Some(topology) = topology {
            workload = family::of(&workload).wired(&workload, &topology.wiring());
        }
        Ok(workload)
    }

    /// Requested hardware, or that of the topology's devices.
    fn hardware_on(&self, topology: &TopologyArgument, workload: &Workload) -> Result<Option<String>, Failure> {
        // A workload's own file states its hardware; models have only a default.
        let told = family::of(workload).training_part().map(|part| part.hardware);
        let stated = told.filter(|_| workload.format == WorkloadFormat::Training);
        let asked = self.hardware.clone().or(stated);
        if let Some(id) = &asked {
            let id = &hardware_file::id_of(id)?;
            topology_input::agree(topology.topology(), id)?;
            return Ok(self.hardware.clone());
        }
        topology.named_hardware().map(|own| Some(own.into()))
    }

    /// Ids of the workload's dials that these flags, the planner's settings or a topology change.
    #[cfg(feature = "screen")]
    pub(super) fn changed_dials(&self, settings: &[String], topology: bool) -> Vec<String> {
        let reserve = settings.iter().any(|setting| setting.starts_with("reserve="));
        let asked = [
            // A calibration belongs to the current hardware, and a topology defines its links.
            ("hardware", self.hardware.is_some() || self.fabric.is_some() || self.calibration.is_some() || topology),
            ("sequence-length", !self.sequence_length.is_empty()),
            ("precision", self.precision.is_some()),
            ("reserve", self.reserve.is_some() || self.stack.is_some() || reserve),
        ];
        asked.into_iter().filter(|(_, asked)| *asked).map(|(id, _)| id.into()).collect()
    }

    /// Flag that was given, if any.
    fn given(&self) -> Option<&'static str> {
        let words = [
            ("--hardware", &self.hardware),
            ("--precision", &self.precision),
            ("--stack", &self.stack),
            ("--reserve", &self.reserve),
            ("--adapter", &self.adapter),
            ("--imbalance", &self.imbalance),
        ];
        let word = words.into_iter().find(|(_, value)| value.is_some()).map(|(flag, _)| flag);
        let tokens = self.sequence_length.first().map(|_| "--sequence-length");
        let fabric = self.fabric.map(|_| "--fabric");
        word.or(fabric).or(tokens).or(self.calibration.as_ref().map(|_| "--calibration"))
    }
}

/// Training settings in a plan's file.
fn training_in_plan(plan: &Path) -> Result<Option<TrainingPart>, Failure> {
    part_of_plan(plan, "/workload/training")
}

/// Kinds of devices in a plan's file; empty if there is one.
pub(super) fn kinds_in_plan(plan: &Path) -> Result<Vec<KindCount>, Failure> {
    let parts: Vec<KindPart> = part_of_plan(plan, "/workload/kinds")?.unwrap_or_default();
    let kind = |part: KindPart| KindCount { id: part.id, count: part.devices, price_per_hour: part.price_per_hour };
    // A kind may be left without devices on the screen.
    let kinds = parts.into_iter().filter(|part| part.devices > 0).map(kind).collect();
    KindCount::checked(kinds).map_err(|problem| Failure::refused(format!("workload.kinds of the plan {problem}"), ""))
}

/// Part of a plan's file. Errors in the file are reported when the plan is read.
fn part_of_plan<T: DeserializeOwned>(plan: &Path, pointer: &str) -> Result<Option<T>, Failure> {
    let (bytes, _) = input::file_bytes(plan)?;
    let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let document = document.get(0).unwrap_or(&document);
    Ok(document.pointer(pointer).cloned().and_then(|part| serde_json::from_value(part).ok()))
}

/// Refuses settings of a model to be trained that the workload does not have, unless they are options of the planner.
pub(super) fn without_model(workload: &Workload, planner: &dyn Planner, settings: &[String]) -> Result<(), Failure> {
    let of_models = |name: &str| TrainingSettings::NAMES.iter().any(|(own, _)| *own == name);
    let option = |name: &str| planner.options().iter().any(|spec| spec.name == name);
    let names = settings.iter().filter_map(|setting| setting.split_once('=').map(|(name, _)| name.trim()));
    match names.into_iter().find(|name| of_models(name) && !option(name)) {
        Some(name) if workload.training().is_none() && !family::of(workload).has_setting(name) => {
            let problem =
                format!("{name} is a setting of a model to be trained, and {} has times of its own", workload.name);
            Err(Failure::refused(problem, "leave it out"))
        }
        _ => Ok(()),
    }
}

/// Applies the software settings among those of `--set` to a workload that has them; returns the others, which belong
/// to the planner.
///
/// # Errors
/// [`Failure`] with the possible values of a setting.
pub(super) fn software(workload: &mut Workload, given: &[String]) -> Result<Vec<String>, Failure> {
    let mut rest = vec![];
    for setting in given {
        match setting.split_once('=') {
            Some((name, value)) if family::of(workload).has_setting(name) => {
                let set = family::of(workload).with_setting(workload, name, value);
                *workload = set.map_err(|problem| Failure::refused(format!("--set: {problem}"), ""))?;
            }
            _ => rest.push(setting.clone()),
        }
    }
    if let Some(profile) = workload.training() {
        check::settings(&profile.model, profile.stack, &profile.settings)
            .map_err(|refusal| Failure::refused(format!("--set: {}", refusal.problem), refusal.repair))?;
    }
    Ok(rest)
}
