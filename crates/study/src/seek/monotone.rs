//! Cases in which more of a limit never makes a planner's proven optimum worse.
//!
//! A proven optimum is the best of a set of plans. If the limit only restricts the set (devices may stay unused; memory
//! is a bound), more of it allows every plan that less of it allows. If it is a rate (bandwidth), no plan becomes
//! slower. In both cases the optimum cannot become worse. This does not hold in three cases: for the number of
//! microbatches, since replicas must divide it; for plans scored by a simulation, where a limit may change the order of
//! events; and for machines, whose shape depends on the number of devices.

use super::{SeekProbe, SeekQuery};
use plantui_core::{cluster::LimitKind, plan::Measure};
use plantui_planners::Status;

/// Reason why bisection would be unsound; `None` if it is sound. `first` is the step at the current value.
pub(super) fn objection(question: &SeekQuery, first: &SeekProbe) -> Option<String> {
    let kind = question.least;
    if question.goal.is_simulated() {
        return Some(format!(
            "the planner does not optimise {}, so the figure may rise and fall with {}",
            question.goal.title(),
            kind.label()
        ));
    }
    if !question.goal.is_what_is_planned_for() {
        return Some("the goal sets an upper bound on the figure that the planner maximises".into());
    }
    let monotone = match question.goal.measure {
        Measure::TimePerSample => {
            matches!(kind, LimitKind::Devices | LimitKind::Memory | LimitKind::Bandwidth)
        }
        Measure::MaxLoad | Measure::SeparateMaxima | Measure::Latency { .. } => {
            matches!(kind, LimitKind::Devices | LimitKind::Cpus | LimitKind::Memory)
        }
        Measure::OperatorCost(_) => matches!(kind, LimitKind::Memory | LimitKind::Bandwidth),
        Measure::Speedup(_) => kind == LimitKind::Memory,
        // Devices are those of all kinds together, of which a plan takes any.
        Measure::PipelineTime | Measure::IterationCost => kind == LimitKind::Devices,
        Measure::IterationTime => false,
    };
    if !monotone {
        return Some(match kind {
            LimitKind::Microbatches => "replicas must divide the microbatches, so more of them may be worse".into(),
            kind => format!("with more {} the best plan of this kind may be worse", kind.label()),
        });
    }
    match first.status {
        Status::Optimal | Status::Infeasible => None,
        Status::Feasible | Status::Cancelled if first.ruled_out => None,
        Status::Feasible | Status::Cancelled => {
            Some(format!("the plans are not proven optimal, so more {} may give a worse plan", kind.label()))
        }
    }
}
