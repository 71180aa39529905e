//! Plans of other planners, for a planner that starts from them.
//!
//! No planner calls another. A planner that declares that it [`Uses`](super::Uses) others receives this handle from
//! whoever runs it, and asks it for plans.

use super::{Fault, Outcome, Planner, Problem, Search, fault::guarded};

/// Function that plans a problem with a planner.
type PlanWith<'a> = dyn Fn(&'static dyn Planner, &Problem, &Search) -> Result<Outcome, Fault> + 'a;

/// Planners whose plans a planner may use, and the function that runs them.
#[derive(Clone, Copy)]
pub struct Others<'a> {
    planners: &'a [&'static dyn Planner],
    plan: &'a PlanWith<'a>,
}

impl<'a> Others<'a> {
    /// Handle on no planners.
    pub const NONE: Others<'static> = Others { planners: &[], plan: &run };

    /// Handle on these planners.
    pub fn new(planners: &'a [&'static dyn Planner], plan: &'a PlanWith<'a>) -> Self {
        Others { planners, plan }
    }

    /// Planners that need no others themselves, in display order.
    pub fn planners(&self) -> &'a [&'static dyn Planner] {
        self.planners
    }

    /// Plans a problem with one of them.
    ///
    /// # Errors
    /// [`Fault`] if the planner panics.
    pub fn plan(&self, planner: &'static dyn Planner, problem: &Problem, search: &Search) -> Result<Outcome, Fault> {
        (self.plan)(planner, problem, search)
    }
}

/// Plans a problem with a planner, without plans of others.
fn run(planner: &'static dyn Planner, problem: &Problem, search: &Search) -> Result<Outcome, Fault> {
    guarded(planner, || planner.plan(problem, search))
}
