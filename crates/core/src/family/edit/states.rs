//! Edits of plans whose speed-up the published planner computes over states: a stage ends at the end of a state.

use std::sync::Arc;

use super::{EditContext, EditResult, Result, refuse};
use crate::{
    plan::{Basis, Measure, Plan, Stage},
    workload::{NodeIndex, states::States},
};

impl<'a> EditContext<'a> {
    /// Last state of every stage.
    fn ends(&self) -> &'a [u32] {
        self.plan.last_states().unwrap_or_default()
    }

    fn states(&self) -> Result<Arc<States>> {
        let (Some(profile), Measure::Speedup(model)) = (self.workload.layers(), self.plan.measure) else {
            return refuse("the plan has no states");
        };
        let states = match States::cached(self.workload, profile, model.linear, &|| false) {
            Ok(states) => states,
            Err(error) => return refuse(format!("its states cannot be found: {error}")),
        };
        let ends = self.ends();
        let grow = ends.windows(2).all(|pair| pair[0] < pair[1]);
        if ends.len() != self.plan.stages.len() || !grow || ends.last().map(|&l| l as usize + 1) != Some(states.len()) {
            return refuse("the plan does not state the last state of its stages, so boundaries cannot be moved");
        }
        Ok(states)
    }

    pub(super) fn boundary_by_states(&self, left: usize, forwards: bool) -> Result<EditResult> {
        let states = self.states()?;
        let ends = self.ends();
        let least = if left == 0 { 0 } else { ends[left - 1] + 1 };
        let mut open: Box<dyn Iterator<Item = u32>> =
            if forwards { Box::new(ends[left] + 1..ends[left + 1]) } else { Box::new((least..ends[left]).rev()) };
        let Some(end) = open.find(|&state| states.is_cut(state as usize)) else {
            let emptied = if forwards { left + 2 } else { left + 1 };
            return refuse(format!("stage {emptied} is one state of the network: merge the stages instead"));
        };
        let mut plan: Plan = self.plan.clone();
        fill(&mut plan.stages[left], &states, least, end);
        fill(&mut plan.stages[left + 1], &states, end + 1, ends[left + 1]);
        let mut ends = ends.to_vec();
        ends[left] = end;
        plan.basis = Basis::States(ends);
        self.done(plan, format!("stage {} ends with state {}", left + 1, end + 1))
    }

    pub(super) fn split_by_states(&self, stage: usize, at: NodeIndex) -> Result<EditResult> {
        let states = self.states()?;
        let ends = self.ends();
        let first = if stage == 0 { 0 } else { ends[stage - 1] + 1 };
        let last = ends[stage];
        let state = states.members.iter().position(|members| members.contains(&at)).unwrap_or_default() as u32;
        let end = state.checked_sub(1).filter(|&end| end >= first && end < last && states.is_cut(end as usize));
        let Some(end) = end else {
            let name = self.label(at);
            return refuse(format!("stage {} cannot be split at {name}: no state ends before it", stage + 1));
        };
        let mut plan: Plan = self.plan.clone();
        let mut behind = plan.stages[stage].clone();
        fill(&mut plan.stages[stage], &states, first, end);
        fill(&mut behind, &states, end + 1, last);
        self.share_devices(stage, &mut plan.stages[stage], &mut behind)?;
        plan.stages.insert(stage + 1, behind);
        let mut ends = ends.to_vec();
        ends.insert(stage, end);
        plan.basis = Basis::States(ends);
        self.done(plan, format!("stage {} split at {}", stage + 1, self.label(at)))
    }
}

/// Gives a stage the nodes of its states. Its recomputation stays the same.
fn fill(stage: &mut Stage, states: &States, first: u32, last: u32) {
    stage.nodes = states.nodes(first as usize, last as usize);
    stage.choices = vec![stage.choices[0].clone(); stage.nodes.len()];
}
