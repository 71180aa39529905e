//! Hardware and software of a workload, and what may replace them besides the dials: a stack with its settings,
//! constants of a calibration, links of a topology, the values in a plan's file.
//!
//! Measured times belong to the machines and software they were measured on. Workloads with measured times therefore
//! have no platform and stay unchanged.

use super::{dial::DialError, kinds::KindCount, of, training::calibrate::Calibration};
use crate::{
    cluster::Links,
    plan::document::{KindPart, TrainingPart, WorkloadPart},
    source::LoadError,
    workload::{
        TrainingProfile, Workload,
        training::{Accelerator, hardware::Fabric},
    },
};

/// Links of devices, from a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceLinks {
    /// Bandwidths within machines and between them.
    pub links: Links,
    /// Number of devices of the smallest machine.
    pub machine: u32,
    /// Kind of link within a machine, in a word.
    pub joined_by: &'static str,
    /// Bytes of memory of a device, if known.
    pub memory_bytes: Option<f64>,
    /// Summary in a sentence.
    pub summary: String,
}

impl DeviceLinks {
    /// Accelerator in such machines.
    pub fn around(&self, accelerator: &Accelerator) -> Accelerator {
        Accelerator {
            inner_link: self.links.in_machine,
            outer_link: self.links.between_machines,
            domain: self.machine,
            joined_by: self.joined_by,
            // The topology has all levels of its own.
            fabric: None,
            memory_bytes: self.memory_bytes.unwrap_or(accelerator.memory_bytes),
            ..*accelerator
        }
    }
}

/// Platform of a kind of workload. All workload arguments are of this family.
pub trait Platform {
    /// True if it has a platform. Another topology then makes another workload.
    fn has_platform(&self) -> bool {
        false
    }

    /// True if the software has a setting of this name.
    fn has_setting(&self, _name: &str) -> bool {
        false
    }

    /// Changes a setting of the software.
    ///
    /// # Errors
    /// [`DialError`] with the allowed values.
    fn with_setting(&self, workload: &Workload, name: &str, value: &str) -> Result<Workload, DialError> {
        let _ = value;
        Err(DialError(format!("{} is a measured profile: it has no `{name}` to change", workload.name)))
    }

    /// Changes the profile of the software, with its settings if it has others.
    ///
    /// # Errors
    /// [`DialError`] with the available ones.
    fn with_stack(&self, workload: &Workload, id: &str) -> Result<Workload, DialError> {
        let _ = id;
        Err(DialError(format!("{} is a measured profile: it has no software to change", workload.name)))
    }

    /// Replaces the constants by those of a calibration.
    fn calibrated(&self, workload: &Workload, calibration: &Calibration) -> Workload {
        let _ = calibration;
        workload.clone()
    }

    /// Puts the machines into a network with less bandwidth between pods.
    ///
    /// # Errors
    /// [`DialError`] if its times are measured.
    fn on_fabric(&self, workload: &Workload, fabric: Fabric) -> Result<Workload, DialError> {
        let _ = fabric;
        Err(DialError(format!("{} is a measured profile: it has no network to change", workload.name)))
    }

    /// Replaces the links by those of a topology.
    fn wired(&self, workload: &Workload, wiring: &DeviceLinks) -> Workload {
        let _ = wiring;
        workload.clone()
    }

    /// Model and its training, if the costs of nodes are derived from it. Engines' own configurations are written from
    /// it.
    fn model(&self) -> Option<&TrainingProfile> {
        None
    }

    /// Platform for plan documents.
    fn training_part(&self) -> Option<TrainingPart> {
        None
    }

    /// Kinds of devices with their numbers; empty if there is one kind.
    fn kind_counts(&self) -> Vec<KindCount> {
        vec![]
    }

    /// Devices of a machine of a kind.
    fn machine_size(&self, kind: usize) -> u32 {
        let _ = kind;
        1
    }

    /// Workload on these kinds of devices, each with its number.
    ///
    /// # Errors
    /// [`DialError`] if it has costs of one kind alone, or lacks one of these.
    fn on_kinds(&self, workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
        let _ = kinds;
        Err(DialError(format!(
            "{} has times of one kind of device; several kinds need a model to be trained or a table of times by kind",
            workload.name
        )))
    }

    /// Workload on the hardware of a plan's file, with the file's constants unless `calibrated`.
    ///
    /// # Errors
    /// [`LoadError`] with the place in `source` of an impossible figure.
    fn on_plan_hardware(
        &self,
        workload: &Workload,
        part: &TrainingPart,
        calibrated: bool,
        source: &str,
    ) -> Result<Workload, LoadError> {
        let _ = (part, calibrated, source);
        Ok(workload.clone())
    }

    /// Applies to this workload, read again, all changes that `asked` has over `before`, the earlier version.
    fn with_changes(&self, workload: &Workload, before: &Workload, asked: &Workload) -> Workload {
        let _ = (before, asked);
        workload.clone()
    }
}

impl From<KindCount> for KindPart {
    fn from(kind: KindCount) -> Self {
        KindPart { id: kind.id, devices: kind.count, price_per_hour: kind.price_per_hour }
    }
}

impl From<&Workload> for WorkloadPart {
    fn from(workload: &Workload) -> Self {
        WorkloadPart {
            name: workload.name.clone(),
            source: Some(workload.source.clone()).filter(|source| source != "-"),
            format: workload.format.to_string(),
            nodes: workload.nodes.len(),
            edges: workload.dag.edges().len(),
            profile_batch: of(workload).profile_batch().map(|batch| batch.samples),
            recipe: workload.recipe,
            training: of(workload).training_part(),
            kinds: KindCount::of(workload).into_iter().map(Into::into).collect(),
        }
    }
}
