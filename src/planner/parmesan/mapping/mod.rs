//! Phase 2 of Parmesan: which device each part of a plan sits on.
//!
//! The paper (Liu, Liu, Jiang and Young, TCAD 2024, doi 10.1109/TCAD.2024.3368970) could not be had; known are its
//! abstract and the names of its options. That a mapping is searched for a target time, by several threads for each of
//! several targets at once, follows from `parallel_same_t` and `parallel_degree`; all the rest is a design of our own.
//!
//! The target `t` is the seconds a microbatch that communication may take. A mapping is feasible for it if every transfer,
//! the widest ring of every all-reduce and, where links are shared, every channel takes no longer. [`Feasibility`] says how a search
//! for one target ended: found, proven not to be there, or out of budget. Targets are tried several at a time, evenly spaced
//! between what is proven and what is known; the smallest that is found lowers what is known to what its mapping takes, any
//! that is disproved raises what is proven. The last question is for anything less than the best: if it is disproved, the
//! mapping is optimal. Then one search without chance takes the mapping of that target, so that threads and their number
//! change nothing, and exchanges lower the sum of squares of what is not the bottleneck.
//!
//! * [`Demands`]: what workers say to one another, of any plan that can be simulated
//! * [`Instance`]: demands on a topology; what a mapping costs; its lower bound
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
mod search;

pub use crate::simulate::{Demands, Flow, Group, Worker};
pub use baselines::EXHAUSTIVE;
pub use feasible::Feasibility;
pub use instance::{Bottleneck, Consider, Cost, Instance};
pub use on_plan::{Keep, Mapped, PlanError, demands, map_plan};
pub use search::{MapError, Mapping, MappingSettings, Method, Parallel, map};

#[cfg(test)]
mod tests;
