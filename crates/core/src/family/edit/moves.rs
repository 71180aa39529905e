//! Edits that move nodes between stages: chosen nodes, or the one at a boundary.

use super::{EditContext, EditError, EditResult, Result, add, refuse, take};
use crate::{
    plan::Plan,
    workload::{Choice, NodeIndex, Profile},
};

impl EditContext<'_> {
    pub(super) fn boundary(&self, stage: usize, forwards: bool) -> Result<EditResult> {
        self.stage(stage)?;
        if self.plan.stages.len() < 2 {
            return refuse("there is only one stage, so there is no boundary to move");
        }
        let left = stage.min(self.plan.stages.len() - 2);
        if self.counts_states() {
            return self.boundary_by_states(left, forwards);
        }
        let (from, to) = if forwards { (left + 1, left) } else { (left, left + 1) };
        let mut nodes: Vec<NodeIndex> = self.plan.stages[from].nodes.clone();
        // Nodes next to the boundary come first.
        nodes.sort_by_key(|&node| self.place_along(node));
        if !forwards {
            nodes.reverse();
        }
        let mut first_refusal = None;
        for node in nodes {
            let unit = self.unit(&[node]);
            if unit.len() == self.plan.stages[from].nodes.len() {
                continue;
            }
            match self.held_back(&unit, from, forwards) {
                Some(_) => {}
                None => match self.move_nodes(&unit, to) {
                    Ok(edited) => return Ok(edited),
                    Err(refused) => first_refusal = first_refusal.or(Some(refused)),
                },
            }
        }
        let last = format!("stage {} would be left without nodes: merge the stages instead", from + 1);
        Err(first_refusal.unwrap_or(EditError(last)))
    }

    pub(super) fn move_nodes(&self, nodes: &[NodeIndex], to: usize) -> Result<EditResult> {
        if self.operators() {
            return refuse("operators share all devices, so there is no other stage to go to");
        }
        if self.counts_states() {
            return refuse("this speed-up is defined over states of the network: move the boundary instead");
        }
        let from = self.home(nodes)?;
        if to >= self.plan.stages.len() {
            let behind = to == self.plan.stages.len() && from + 1 == to;
            return refuse(if behind {
                "this is the last stage: split it to make another".into()
            } else {
                format!("there is no stage {}", to + 1)
            });
        }
        if from == to {
            return refuse(format!("the node is on stage {} already", to + 1));
        }
        let unit = self.unit(nodes);
        if self.plan.stages.iter().enumerate().any(|(i, stage)| i != to && stage.nodes.iter().all(|v| unit.contains(v)))
        {
            let what = self.labels(&unit);
            return refuse(format!("moving {what} would leave stage {} empty: merge the stages instead", from + 1));
        }
        if let Some(why) = self.blocked(&unit, to) {
            return refuse(why);
        }
        let mut plan: Plan = self.plan.clone();
        let mut gone = vec![];
        for stage in &mut plan.stages {
            gone.extend(take(stage, |node| unit.contains(&node)));
        }
        let target = &mut plan.stages[to];
        let mut moved = Vec::with_capacity(gone.len());
        for (node, choice) in gone {
            moved.push((node, self.choice_in(node, &choice, to)?));
        }
        add(target, moved);
        self.done(plan, format!("{} moved from stage {} to stage {}", self.labels(&unit), from + 1, to + 1))
    }

    /// These nodes and all that share a colour class with one of them, ascending.
    fn unit(&self, nodes: &[NodeIndex]) -> Vec<NodeIndex> {
        let mut unit = nodes.to_vec();
        if let Some(profile) = self.workload.placement() {
            let class = |node: NodeIndex| profile.nodes[node].colour_class;
            let shared: Vec<i64> = nodes.iter().filter_map(|&node| class(node)).collect();
            unit.extend(self.workload.indices().filter(|&v| class(v).is_some_and(|class| shared.contains(&class))));
        }
        unit.sort_unstable();
        unit.dedup();
        unit
    }

    fn is_backward(&self, node: NodeIndex) -> bool {
        self.workload.placement().is_some_and(|profile| profile.nodes[node].backward)
    }

    /// Position of a node along the pipeline. The backward pass has the opposite order.
    fn place_along(&self, node: NodeIndex) -> usize {
        let place = self.place[node.index()];
        if self.is_backward(node) { self.place.len() - 1 - place } else { place }
    }

    /// Node that must leave the stage before any of the unit does, if the unit leaves over the boundary behind it
    /// (`!forwards`) or before it (`forwards`).
    fn held_back(&self, unit: &[NodeIndex], from: usize, forwards: bool) -> Option<NodeIndex> {
        let stays = |v: &NodeIndex| self.stage_of[v.index()] == from && !unit.contains(v);
        unit.iter().find_map(|&node| {
            let backward = self.is_backward(node);
            let same_pass = |v: &NodeIndex| self.is_backward(*v) == backward;
            if forwards == backward {
                self.workload.successors(node).find(|v| stays(v) && same_pass(v))
            } else {
                self.workload.predecessors(node).find(|v| stays(v) && same_pass(v))
            }
        })
    }

    /// Reason why nodes cannot move to a stage of a pipeline: an edge would go back to an earlier stage.
    fn blocked(&self, unit: &[NodeIndex], to: usize) -> Option<String> {
        if self.workload.placement().is_some() {
            return None;
        }
        let after = |v: &NodeIndex| !unit.contains(v) && self.stage_of[v.index()] > to;
        let before = |v: &NodeIndex| !unit.contains(v) && self.stage_of[v.index()] < to;
        unit.iter().find_map(|&node| {
            let sentence = |verb: &str, other: NodeIndex| {
                let stage = self.stage_of[other.index()] + 1;
                format!(
                    "{} {verb} {}, which stays on stage {stage}: move that first",
                    self.label(node),
                    self.label(other)
                )
            };
            let needed = self.workload.predecessors(node).find(after).map(|other| sentence("needs", other));
            needed.or_else(|| self.workload.successors(node).find(before).map(|other| sentence("feeds", other)))
        })
    }

    /// Choice of a node in another stage: the same if that stage offers it, else its first.
    pub(super) fn choice_in(&self, node: NodeIndex, choice: &Choice, to: usize) -> Result<Choice> {
        let stage = self.stage(to)?;
        match &self.workload.profile {
            Profile::Piper(_) => self.mode_at(node, choice, stage.tensor_parallel),
            Profile::Placement(profile) => match (stage.on_cpus(), profile.nodes[node].supported) {
                (true, _) => Ok(Choice::Cpu),
                (false, true) => Ok(Choice::Accelerator),
                (false, false) => refuse(format!("{} runs on CPUs only", self.label(node))),
            },
            // A stage recomputes as a whole.
            Profile::Layers(_) | Profile::Mixed(_) => Ok(stage.choices[0].clone()),
            Profile::Operators(_) | Profile::Training(_) => Ok(choice.clone()),
        }
    }

    /// Mode of a node at a tensor degree: the one with this id, else the first.
    pub(super) fn mode_at(&self, node: NodeIndex, now: &Choice, degree: u32) -> Result<Choice> {
        let modes = self.workload.piper().and_then(|profile| profile.nodes[node].modes(degree));
        let Some(modes) = modes else {
            return refuse(format!("{} does not offer tensor degree {degree}", self.label(node)));
        };
        let mode = modes.iter().find(|mode| now.is_mode(&mode.id)).unwrap_or(&modes[0]);
        Ok(Choice::Mode(mode.id.clone()))
    }
}
