//! Plans of published planners in the simulator, if the shown plan minimises the simulated iteration.

use std::time::Duration;

use crate::{
    planner::Search,
    run::Simulation,
    simulate::Setup,
    study::{
        explain::ExplainedPlan,
        losses::Losses,
        rivals::{self, Rival},
    },
};

/// Their plans, fastest first. Each is planned within `share`, and simulated with the settings of the screen.
pub(in crate::tui) fn plans(base: &ExplainedPlan, setup: Setup, share: Duration, search: &Search) -> Vec<Rival> {
    let others = rivals::rival_planners(base);
    if others.is_empty() {
        return vec![];
    }
    let (workload, limits) = (&base.problem.workload, &base.problem.limits);
    let own = Simulation::within(workload, limits, &base.plan, setup, &search.part(Some(share))).ok();
    let Some(lost) = own.as_ref().and_then(Losses::of_simulation) else { return vec![] };
    let mut found: Vec<Rival> =
        others.into_iter().filter_map(|other| rivals::rival(other, (base, &lost), share, search)).collect();
    found.sort_by(|a, b| a.batch_s.total_cmp(&b.batch_s));
    found
}
