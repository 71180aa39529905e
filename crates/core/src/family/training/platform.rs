//! Hardware and software of a model to be trained.

use super::{calibrate::Calibration, kinds, request};
use crate::workload::training::{
    constants::Constants,
    hardware::{self, Fabric},
    run::{Stack, TrainingSettings},
};
use crate::{
    family::{
        dial::DialError,
        kinds::KindCount,
        platform::{DeviceLinks, Platform},
    },
    plan::document::TrainingPart,
    source::LoadError,
    text::printable,
    workload::{Profile, TrainingProfile, Workload},
};

impl Platform for TrainingProfile {
    fn has_platform(&self) -> bool {
        true
    }

    fn has_setting(&self, name: &str) -> bool {
        TrainingSettings::knows(name)
    }

    fn with_setting(&self, workload: &Workload, name: &str, value: &str) -> Result<Workload, DialError> {
        let mut profile = self.clone();
        profile.settings.set(name, value).map_err(DialError)?;
        Ok(with(workload, profile))
    }

    fn with_stack(&self, workload: &Workload, id: &str) -> Result<Workload, DialError> {
        on_stack(workload, id)
    }

    fn calibrated(&self, workload: &Workload, calibration: &Calibration) -> Workload {
        let mut profile = self.clone();
        profile.constants = calibration.apply(&profile.constants);
        profile.remarks.push(calibration.summary());
        with(workload, profile)
    }

    fn on_fabric(&self, workload: &Workload, fabric: Fabric) -> Result<Workload, DialError> {
        fabric.suits(&self.accelerator).map_err(DialError)?;
        let mut profile = self.clone();
        profile.accelerator.fabric = Some(fabric);
        profile.remarks.push(fabric.told());
        Ok(with(workload, profile))
    }

    fn wired(&self, workload: &Workload, wiring: &DeviceLinks) -> Workload {
        let mut profile = self.clone();
        profile.accelerator = wiring.around(&profile.accelerator);
        profile.remarks.push(wiring.summary.clone());
        with(workload, profile)
    }

    fn on_kinds(&self, workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
        let known = |kind: &KindCount| match self.accelerator {
            own if own.id == kind.hardware() => Ok((own, kind.clone())),
            _ => request::accelerator(kind.hardware()).map(|own| (own, kind.clone())).map_err(DialError),
        };
        let known: Vec<_> = kinds.iter().map(known).collect::<Result<_, DialError>>()?;
        Ok(kinds::profile(self, &known).map_err(DialError)?.over(workload))
    }

    fn model(&self) -> Option<&TrainingProfile> {
        Some(self)
    }

    fn training_part(&self) -> Option<TrainingPart> {
        Some(self.into())
    }

    fn on_plan_hardware(
        &self,
        workload: &Workload,
        part: &TrainingPart,
        calibrated: bool,
        source: &str,
    ) -> Result<Workload, LoadError> {
        let wrong = |path: String, problem: String| {
            LoadError::at(source, format!("workload.training.{path}"), problem, "correct it, or leave it out")
        };
        let preset = match hardware::find(&part.hardware) {
            Some(known) => known,
            // Hardware of the user: the plan has all its figures.
            None if part.generation.is_some() => {
                let generation = part.generation.as_deref().unwrap_or_default();
                hardware::from_figures(&part.hardware, generation, &part.figures)
                    .map_err(|problem| wrong("figures".into(), problem))?
            }
            None => return Ok(workload.clone()),
        };
        let mut profile = self.clone();
        if preset.id != profile.accelerator.id {
            profile.move_to(preset, profile.stack);
            profile.constants = Constants::shipped(preset.generation, profile.stack);
        }
        for (name, &value) in &part.figures {
            if !(1.0..=1e18).contains(&value) || !profile.accelerator.set(name, value) {
                let known = profile.accelerator.named().map(|(name, _)| name).join(", ");
                let path = format!("figures.{}", printable(name));
                return Err(wrong(path, format!("is {value}; a figure is one of {known}, from 1 to 1e18")));
            }
        }
        if let Some(Fabric { pod, oversubscription }) = profile.accelerator.fabric {
            Fabric::checked(part.figures.get("pod").copied().unwrap_or(f64::from(pod)), oversubscription)
                .map_err(|problem| wrong("figures.pod".into(), problem))?;
        }
        for (name, &value) in part.constants.iter().filter(|_| !calibrated) {
            let taken = (0.0..=1e3).contains(&value) && (value > 0.0 || Constants::may_be_zero(name));
            let Some(known) = profile.constants.by_name(name).filter(|_| taken) else {
                let known = profile.constants.named().map(|(name, _)| name).join(", ");
                let path = format!("constants.{}", printable(name));
                return Err(wrong(path, format!("is {value}; a constant is one of {known}, above 0 and at most 1000")));
            };
            *known = value;
        }
        for remark in &part.remarks {
            let remark = printable(remark);
            if !profile.remarks.contains(&remark) {
                profile.remarks.push(remark);
            }
        }
        Ok(with(workload, profile))
    }

    fn with_changes(&self, workload: &Workload, before: &Workload, asked: &Workload) -> Workload {
        let (Some(before), Some(asked)) = (before.training(), asked.training()) else { return workload.clone() };
        let mut profile = self.clone();
        if (asked.stack, &asked.settings) != (before.stack, &before.settings) {
            profile.settings = asked.settings.clone();
            profile.move_to(profile.accelerator, asked.stack);
        }
        if asked.accelerator != before.accelerator {
            profile.move_to(asked.accelerator, profile.stack);
        }
        if asked.constants != before.constants {
            profile.constants = asked.constants;
        }
        let told = asked.remarks.iter().filter(|remark| !before.remarks.contains(remark));
        profile.remarks.extend(told.cloned());
        with(workload, profile)
    }
}

/// The same model with another profile of software and its settings.
///
/// # Errors
/// [`DialError`] with the known profiles.
pub(super) fn on_stack(workload: &Workload, id: &str) -> Result<Workload, DialError> {
    let ids = Stack::ALL.map(Stack::id).join(", ");
    let unknown = || DialError(format!("is `{}`, must be {ids}", printable(id)));
    let stack = Stack::find(id).ok_or_else(unknown)?;
    let Some(own) = workload.training().filter(|own| own.stack != stack) else { return Ok(workload.clone()) };
    let mut profile = TrainingProfile { settings: stack.settings(), ..own.clone() };
    profile.move_to(profile.accelerator, stack);
    Ok(with(workload, profile))
}

/// Replaces the profile of a workload.
fn with(workload: &Workload, profile: TrainingProfile) -> Workload {
    Workload { profile: Profile::Training(Box::new(profile)), ..workload.clone() }
}
