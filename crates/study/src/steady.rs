//! Phases of a pipelined iteration: warm-up, steady state and drain.
//!
//! Warm-up ends with the first backward pass of the first stage, and drain begins after its last forward pass. In
//! between the pipeline repeats itself with every microbatch, so a picture can leave most of it out. `O(events of the
//! first stage)`, once per timeline.

use plantui_core::simulate::{Event, EventKind, Timeline};

/// Steady state of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// End of the warm-up, seconds.
    pub from_s: f64,
    /// Start of the drain, seconds.
    pub until_s: f64,
    /// Mean time of a microbatch, seconds.
    pub microbatch_s: f64,
    /// Longest forward pass of a stage (of a chunk if stages are virtual), seconds.
    pub forward_s: f64,
}

impl Steady {
    /// Phases of a timeline; `None` if it has no steady state.
    pub fn of(timeline: &Timeline) -> Option<Steady> {
        let first = || (0..timeline.replicas.first().copied().unwrap_or(0)).flat_map(|r| timeline.row(0, r));
        let is_backward = |event: &&Event| matches!(event.kind, EventKind::Recompute | EventKind::Backward);
        let is_forward = |event: &&Event| event.kind == EventKind::Forward;
        let from_s = first().filter(is_backward).map(|event| event.start_s).min_by(f64::total_cmp)?;
        let until_s = first().filter(is_forward).map(|event| event.end_s).max_by(f64::total_cmp)?;
        // Forward passes of one part in the steady state follow each other at the rate of the pipeline.
        let later = || first().filter(is_forward).filter(|event| event.part == 0 && event.start_s >= from_s);
        let late = later().max_by(|a, b| a.start_s.total_cmp(&b.start_s))?;
        // Virtual stages take as many microbatches in turn as there are stages.
        let turns = if first().any(|event| event.part > 0) { timeline.replicas.len() as u32 } else { 1 };
        let alike = |event: &&Event| late.microbatch.abs_diff(event.microbatch) % turns == 0;
        let early = later().filter(alike).min_by(|a, b| a.start_s.total_cmp(&b.start_s))?;
        let microbatches = late.microbatch.checked_sub(early.microbatch).filter(|count| *count > 0)?;
        let microbatch_s = (late.start_s - early.start_s) / f64::from(microbatches);
        let longest = |stage: usize| {
            let of_stage = timeline.row(stage, 0).iter().filter(is_forward);
            of_stage.map(|event| event.end_s - event.start_s).next()
        };
        let forward_s = (0..timeline.replicas.len()).filter_map(longest).fold(0.0, f64::max);
        let steady = Steady { from_s, until_s, microbatch_s, forward_s };
        (until_s > from_s && microbatch_s > 0.0 && forward_s > 0.0).then_some(steady)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(order: &[(EventKind, u32)]) -> Timeline {
        let event = |(i, &(kind, microbatch)): (usize, &(EventKind, u32))| Event {
            start_s: i as f64,
            end_s: i as f64 + 1.0,
            stage: 0,
            replica: 0,
            microbatch,
            part: 0,
            kind,
        };
        let events: Vec<Event> = order.iter().enumerate().map(event).collect();
        Timeline { iteration_s: events.len() as f64, events, replicas: vec![1], ..Timeline::default() }
    }

    #[test]
    fn one_forward_and_one_backward_pass_take_two_seconds_a_microbatch() {
        let mut order = vec![(EventKind::Forward, 0)];
        for i in 1..20 {
            order.extend([(EventKind::Forward, i), (EventKind::Backward, i - 1)]);
        }
        order.push((EventKind::Backward, 19));
        let steady = Steady::of(&timeline(&order)).unwrap();
        assert_eq!(steady, Steady { from_s: 2.0, until_s: 38.0, microbatch_s: 2.0, forward_s: 1.0 });
    }

    #[test]
    fn all_forward_passes_first_have_no_steady_state() {
        let order: Vec<_> =
            (0..4).map(|i| (EventKind::Forward, i)).chain((0..4).map(|i| (EventKind::Backward, i))).collect();
        assert_eq!(Steady::of(&timeline(&order)), None);
    }
}
