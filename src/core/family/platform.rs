//! The hardware and the software that a workload carries in itself, and what may be put over them beside the dials: a stack
//! with its settings, constants of a calibration, links of a topology, what a plan's file tells of them.
//!
//! Times that were measured belong to the machines and the software they were measured on: workloads made of such times
//! carry neither, and stay as they are.

use super::{dial::NotTurned, of, training::Calibration};
use crate::{
    cluster::Links,
    plan::document::{TrainingPart, WorkloadPart},
    source::LoadError,
    workload::{TrainingProfile, Workload, training::Accelerator},
};

/// Links that devices are given by a topology.
#[derive(Debug, Clone, PartialEq)]
pub struct Wiring {
    /// Bandwidths within machines and across them.
    pub links: Links,
    /// Devices of the smallest machine.
    pub machine: u32,
    /// What joins the devices of a machine, in a word.
    pub joined_by: &'static str,
    /// Bytes of memory of a device, where that is known.
    pub memory_bytes: Option<f64>,
    /// The same in a sentence.
    pub told: String,
}

impl Wiring {
    /// An accelerator in such machines.
    pub fn around(&self, accelerator: &Accelerator) -> Accelerator {
        Accelerator {
            inner_link: self.links.in_machine,
            outer_link: self.links.between_machines,
            domain: self.machine,
            joined_by: self.joined_by,
            memory_bytes: self.memory_bytes.unwrap_or(accelerator.memory_bytes),
            ..*accelerator
        }
    }
}

/// What a kind of workload carries of its platform. The workloads that are handed in are of this family.
pub trait Platform {
    /// Whether it carries one: then another topology makes another workload.
    fn has_platform(&self) -> bool {
        false
    }

    /// The names of the software's settings, each with what it may be.
    fn software_settings(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The workload with a setting of the software.
    ///
    /// # Errors
    /// [`NotTurned`] with what would do.
    fn with_setting(&self, workload: &Workload, name: &str, value: &str) -> Result<Workload, NotTurned> {
        let _ = value;
        Err(NotTurned(format!("{} carries what was measured: there is no `{name}` to change", workload.name)))
    }

    /// The workload with another profile of the software, and its settings where it has another.
    ///
    /// # Errors
    /// [`NotTurned`] with those that there are.
    fn with_stack(&self, workload: &Workload, id: &str) -> Result<Workload, NotTurned> {
        let _ = id;
        Err(NotTurned(format!("{} carries what was measured: there is no software to change", workload.name)))
    }

    /// The workload with constants as a calibration has them.
    fn calibrated(&self, workload: &Workload, calibration: &Calibration) -> Workload {
        let _ = calibration;
        workload.clone()
    }

    /// The workload with the links of a topology.
    fn wired(&self, workload: &Workload, wiring: &Wiring) -> Workload {
        let _ = wiring;
        workload.clone()
    }

    /// The model and how it is trained, where the costs of nodes are derived from that: engines' own configurations are
    /// written of it.
    fn model(&self) -> Option<&TrainingProfile> {
        None
    }

    /// What it runs on and with, for plan documents.
    fn told(&self) -> Option<TrainingPart> {
        None
    }

    /// The workload on the hardware that a plan's file tells, with its constants unless these are `calibrated` anyway.
    ///
    /// # Errors
    /// [`LoadError`] with the place in `source` of a figure that cannot be.
    fn as_told(
        &self,
        workload: &Workload,
        part: &TrainingPart,
        calibrated: bool,
        source: &str,
    ) -> Result<Workload, LoadError> {
        let _ = (part, calibrated, source);
        Ok(workload.clone())
    }

    /// This workload, read anew, with everything that `asked` had put over `before`, which was read earlier.
    fn with_changes(&self, workload: &Workload, before: &Workload, asked: &Workload) -> Workload {
        let _ = (before, asked);
        workload.clone()
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
            training: of(workload).told(),
        }
    }
}
