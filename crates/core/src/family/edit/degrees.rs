//! Edits of the number of replicas and the tensor degree.

use super::{ALL_STAGES, EditContext, EditError, EditResult, Result, WHOLE, refuse};
use crate::{
    cluster::MOST_LISTED_DEVICES,
    plan::{Plan, Stage},
    workload::{PiperProfile, Profile},
};

impl EditContext<'_> {
    pub(super) fn data_parallel(&self, stage: usize, up: bool) -> Result<EditResult> {
        let old = self.stage(stage)?;
        let next = match &self.workload.profile {
            Profile::Piper(_) => self.next_replicas(old, stage, up)?,
            Profile::Layers(_) => match (up, old.data_parallel) {
                (true, count) => count.saturating_add(1),
                (false, 0 | 1) => return refuse(format!("stage {} has only one device", stage + 1)),
                (false, count) => count - 1,
            },
            Profile::Placement(_) => return refuse(NO_DEGREES),
            Profile::Operators(_) => return refuse(NO_REPLICAS),
            Profile::Training(_) => return refuse(WHOLE),
            Profile::Mixed(_) => return refuse(ALL_STAGES),
        };
        let mut plan = self.plan.clone();
        plan.stages[stage].data_parallel = next;
        self.resized(plan, stage)?.with(|plan| {
            let d = plan.stages[stage].data_parallel;
            format!("stage {} has {d} replica{}", stage + 1, if d == 1 { "" } else { "s" })
        })
    }

    /// Nearest number of replicas that divides the microbatches.
    fn next_replicas(&self, old: &Stage, stage: usize, up: bool) -> Result<u32> {
        let (d, batch) = (old.data_parallel, self.limits.microbatches);
        let divides = |d: &u32| batch.is_multiple_of(*d);
        let most = batch.min(MOST_LISTED_DEVICES / old.tensor_parallel.max(1));
        let next = if up { (d.saturating_add(1)..=most).find(divides) } else { (1..d).rev().find(divides) };
        next.ok_or_else(|| {
            EditError(if up {
                format!(
                    "no more than {d} replicas divide {batch} microbatches on at most {MOST_LISTED_DEVICES} devices"
                )
            } else {
                format!("stage {} has one replica already", stage + 1)
            })
        })
    }

    pub(super) fn tensor_parallel(&self, stage: usize, up: bool) -> Result<EditResult> {
        let old = self.stage(stage)?;
        let profile = match &self.workload.profile {
            Profile::Piper(profile) => profile,
            Profile::Layers(_) => return refuse("layers of this profile have no tensor parallelism"),
            Profile::Placement(_) => return refuse(NO_DEGREES),
            Profile::Operators(_) => return refuse(NO_REPLICAS),
            Profile::Training(_) => return refuse(WHOLE),
            Profile::Mixed(_) => return refuse(ALL_STAGES),
        };
        let t = old.tensor_parallel;
        let offered = |degree: &u32| old.nodes.iter().all(|&node| profile.nodes[node].modes(*degree).is_some());
        let all = profile.degrees();
        let next = if up {
            all.iter().find(|&degree| *degree > t && offered(degree))
        } else {
            all.iter().rev().find(|&degree| *degree < t && offered(degree))
        };
        let Some(&next) = next else { return refuse(self.no_degree(profile, old, stage, up)) };
        let mut plan = self.plan.clone();
        let choices = old.nodes.iter().zip(&old.choices).map(|(&node, choice)| self.mode_at(node, choice, next));
        plan.stages[stage].choices = choices.collect::<Result<_>>()?;
        plan.stages[stage].tensor_parallel = next;
        self.resized(plan, stage)?.with(|_| format!("stage {} has tensor degree {next}", stage + 1))
    }

    /// Reason why there is no other tensor degree: the node that lacks the nearest one.
    fn no_degree(&self, profile: &PiperProfile, old: &Stage, stage: usize, up: bool) -> String {
        let t = old.tensor_parallel;
        let all = profile.degrees();
        let nearest = if up { all.iter().find(|&&d| d > t) } else { all.iter().rev().find(|&&d| d < t) };
        let lacking = |d: u32| old.nodes.iter().find(|&&node| profile.nodes[node].modes(d).is_none());
        match nearest.and_then(|&d| lacking(d).map(|&node| (d, node))) {
            Some((degree, node)) => format!("{} does not offer tensor degree {degree}", self.label(node)),
            None => format!("no node of stage {} offers a {} tensor degree than {t}", stage + 1, size(up)),
        }
    }

    /// Gives a stage as many devices as its degrees need.
    fn resized(&self, mut plan: Plan, stage: usize) -> Result<ResizedStage<'_>> {
        let wanted = plan.stages[stage].device_count();
        let devices = &mut plan.stages[stage].devices;
        let there = devices.len() as u32;
        if wanted > MOST_LISTED_DEVICES {
            return refuse(format!("that needs {wanted} devices; a plan may have {MOST_LISTED_DEVICES}"));
        }
        if wanted < there {
            devices.truncate(wanted as usize);
        } else if there > 0 {
            let more = self.more_devices(devices, wanted - there)?;
            devices.extend(more);
        }
        Ok(ResizedStage { desk: self, plan })
    }

    /// Additional devices for a stage with devices `own`. On machines, free devices of its own machines come first, and
    /// only existing devices are used.
    fn more_devices(&self, own: &[u32], count: u32) -> Result<Vec<u32>> {
        let machines = &self.limits.machines;
        if self.workload.layers().is_none() || machines.is_empty() {
            return Ok(self.free_devices(0, count));
        }
        let mut free: Vec<u32> = self.free_devices(0, machines.devices());
        free.retain(|&device| device < machines.devices());
        free.sort_by_key(|&device| {
            let machine = machines.machine_of(device);
            (!own.iter().any(|&mine| machines.machine_of(mine) == machine), device)
        });
        if free.len() < count as usize {
            let all = machines.devices();
            return refuse(format!("all {all} devices are in use: take one from another stage first"));
        }
        free.truncate(count as usize);
        Ok(free)
    }
}

const NO_DEGREES: &str = "every stage of a device placement is one device: it has no degrees";
const NO_REPLICAS: &str = "operators share all devices: change how an operator is split, or the number of devices";

fn size(up: bool) -> &'static str {
    if up { "larger" } else { "smaller" }
}

/// Plan whose stage has its devices.
struct ResizedStage<'d> {
    desk: &'d EditContext<'d>,
    plan: Plan,
}

impl ResizedStage<'_> {
    fn with(self, what: impl FnOnce(&Plan) -> String) -> Result<EditResult> {
        let what = what(&self.plan);
        self.desk.done(self.plan, what)
    }
}
