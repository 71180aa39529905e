//! Assigns each part of a plan to a device of a topology: phase 2 of Parmesan, for the plan of any planner.
//!
//! The full paper (Liu, Liu, Jiang and Young, TCAD 2024, doi 10.1109/TCAD.2024.3368970) was not available, only its
//! abstract and the names of its options. The options `parallel_same_t` and `parallel_degree` imply a search for a
//! mapping under a target time, with several threads per target and several targets at once. The rest is our own
//! design.
//!
//! The target `t` is the seconds per microbatch that communication may take. A mapping is feasible for `t` if no
//! transfer, no all-reduce on its widest ring and (with shared links) no channel takes longer. A search for one target
//! ends as found, proven infeasible, or out of budget ([`Feasibility`]). Several targets are probed at a time, evenly
//! spaced between the lower bound and the incumbent. A mapping that is found lowers the incumbent to its own time; a
//! proof raises the lower bound. The last probe is for any time below the incumbent: if it is infeasible, the mapping
//! is optimal. A final search without randomness then fixes the mapping for that target, so that threads and their
//! number change nothing. Exchanges reduce the sum of squares of the remaining communication.
//!
//! * [`Demands`]: traffic between workers, of any plan that can be simulated
//! * [`MappingInstance`]: demands on a topology; cost of a mapping; lower bound
//! * [`map`]: the search and the baselines

mod baselines;
mod bipartition;
mod bounds;
mod candidates;
mod exchange;
mod feasible;
mod instance;
mod on_plan;
mod reach;
pub mod rounded;
mod search;

pub use crate::simulate::{Demands, Flow, ModelShard, ReductionGroup};
pub use baselines::EXHAUSTIVE;
pub use feasible::Feasibility;
pub use instance::{CommunicationKinds, MappingBottleneck, MappingCost, MappingInstance};
pub use on_plan::{MappedPlan, MappingChoice, PlanError, demands, map_plan};
pub use search::{MapError, Mapping, MappingMethod, MappingSettings, Parallel, map};

#[cfg(test)]
mod tests;
