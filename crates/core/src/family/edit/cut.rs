//! Edits that merge two stages or split one.

use super::{EditContext, EditResult, Result, add, refuse, take};
use crate::{
    family,
    plan::{Basis, Measure, Plan, Stage},
    workload::{NodeIndex, Profile},
};

impl EditContext<'_> {
    pub(super) fn merge(&self, stage: usize) -> Result<EditResult> {
        self.stage(stage)?;
        let Some(next) = self.plan.stages.get(stage + 1) else {
            return refuse(if self.plan.stages.len() == 1 {
                "there is only one stage".into()
            } else {
                format!("stage {} is the last one: it has no next stage to merge with", stage + 1)
            });
        };
        let mut plan: Plan = self.plan.clone();
        let mut moved = Vec::with_capacity(next.nodes.len());
        for (&node, choice) in next.nodes.iter().zip(&next.choices) {
            moved.push((node, self.choice_in(node, choice, stage)?));
        }
        plan.stages.remove(stage + 1);
        let joined = &mut plan.stages[stage];
        add(joined, moved);
        if self.workload.layers().is_some() {
            joined.data_parallel += next.data_parallel;
            joined.devices.extend(&next.devices);
        }
        if let Basis::States(ends) = &mut plan.basis
            && stage < ends.len()
        {
            ends.remove(stage);
        }
        self.done(plan, format!("stages {} and {} merged", stage + 1, stage + 2))
    }

    pub(super) fn split(&self, stage: usize, at: NodeIndex) -> Result<EditResult> {
        if self.operators() {
            return refuse("operators share all devices, so there is one stage");
        }
        let old = self.stage(stage)?;
        if self.stage_of.get(at.index()) != Some(&stage) {
            return refuse(format!("that is no node of stage {}", stage + 1));
        }
        if self.counts_states() {
            return self.split_by_states(stage, at);
        }
        // Split along a topological order, so that no edge goes back. The backward pass has the opposite order.
        let border = self.place[at.index()];
        let mirrored = self.workload.placement().is_some_and(|profile| profile.nodes[at].backward);
        let second = |node: NodeIndex| match self.workload.placement() {
            Some(profile) if profile.nodes[node].backward != mirrored => None,
            _ if mirrored => Some(self.place[node.index()] <= border),
            _ => Some(self.place[node.index()] >= border),
        };
        let leaves = self.with_other_pass(old, second);
        if !old.nodes.iter().any(|&node| !leaves(node)) {
            let name = self.label(at);
            return refuse(format!("{name} is the first node of stage {}: choose a later node to split at", stage + 1));
        }
        let mut plan: Plan = self.plan.clone();
        let mut behind: Stage = old.clone();
        let gone = take(&mut plan.stages[stage], &leaves);
        (behind.nodes, behind.choices) = gone.into_iter().unzip();
        self.share_devices(stage, &mut plan.stages[stage], &mut behind)?;
        plan.stages.insert(stage + 1, behind);
        self.done(plan, format!("stage {} split at {}", stage + 1, self.label(at)))
    }

    /// Selects the nodes of the second part. `second` decides the nodes of one pass. The others, and all of a colour
    /// class, follow a decided node of their class, or stay.
    fn with_other_pass(&self, old: &Stage, second: impl Fn(NodeIndex) -> Option<bool>) -> impl Fn(NodeIndex) -> bool {
        let mut leaves = vec![false; self.stage_of.len()];
        let mut classes = std::collections::BTreeSet::new();
        for &node in &old.nodes {
            if second(node) == Some(true) {
                leaves[node.index()] = true;
                classes.extend(self.workload.placement().and_then(|profile| profile.nodes[node].colour_class));
            }
        }
        if let Some(profile) = self.workload.placement() {
            for &node in &old.nodes {
                leaves[node.index()] |= profile.nodes[node].colour_class.is_some_and(|class| classes.contains(&class));
            }
        }
        move |node| leaves[node.index()]
    }

    /// Divides the devices of a split stage. Both parts are copies of it except for their nodes.
    pub(super) fn share_devices(&self, stage: usize, first: &mut Stage, second: &mut Stage) -> Result<()> {
        let family = family::of(self.workload);
        match &self.workload.profile {
            Profile::Layers(_) => {
                if first.data_parallel < 2 {
                    return refuse(format!("stage {} has one device: give it another before it is split", stage + 1));
                }
                let half = first.data_parallel.div_ceil(2);
                second.data_parallel -= half;
                first.data_parallel = half;
                second.devices = first.devices.split_off((half as usize).min(first.devices.len()));
            }
            // Both run one after the other on the same device.
            Profile::Placement(_) if matches!(self.plan.measure, Measure::Latency { subgraphs: Some(_) }) => {}
            Profile::Placement(_) if first.devices.is_empty() => {}
            // CPUs are one place, which runs any number of nodes at once.
            Profile::Placement(_) if matches!(self.plan.measure, Measure::Latency { .. }) && first.on_cpus() => {}
            Profile::Placement(_) if family.stage_kind(first).is_none() => {
                let from = if first.on_cpus() { family.first_cpu(self.limits) } else { 0 };
                second.devices = self.free_devices(from, 1);
            }
            Profile::Piper(_) => second.devices = self.free_devices(0, first.devices.len() as u32),
            Profile::Mixed(_) | Profile::Placement(_) => {
                second.devices = family.devices_like(self.plan, first);
                if second.devices.len() != first.devices.len() {
                    let (wanted, kind) = (first.devices.len(), family.stage_kind(first).unwrap_or("its kind"));
                    return refuse(format!("that needs {wanted} more devices of {kind}, and fewer are free"));
                }
            }
            Profile::Operators(_) | Profile::Training(_) => {}
        }
        Ok(())
    }
}
