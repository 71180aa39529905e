//! A plan's timeline, made ready for drawing at any zoom.
//!
//! A timeline may have a quarter of a million events, and a screen cell may cover hundreds of them. Each row keeps
//! running sums of forward and backward time, so the share of any interval is two binary searches: a frame costs
//! `O(cells · log events)`, whatever the zoom. The sums take 16 bytes an event and are made once, on the worker.

use std::ops::Range;

use super::shown::Shown;
use crate::simulate::{Event, EventKind, Pipeline, Schedule, Settings, Timeline, simulate};

/// The most events that are kept for drawing: about 300 MB of them.
const MOST_EVENTS: u64 = 6_000_000;

/// The two lines a row is drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Forward, backward and the all-reduce.
    Compute,
    /// Activations to later stages and gradients to earlier ones.
    Links,
}

/// Where the events of one replica lie, and their running sums.
#[derive(Debug, Clone, PartialEq, Default)]
struct Row {
    /// Compute events, in order of start.
    compute: Range<usize>,
    /// Forward seconds before each compute event, one entry more than events; then the same for backward.
    forward_before: Vec<f64>,
    backward_before: Vec<f64>,
    /// The all-reduce, if there is one.
    all_reduce: Option<usize>,
    /// Activation sends, then gradient sends.
    sends: [Range<usize>; 2],
}

/// Seconds of each kind of compute within an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Share {
    /// Forward.
    pub forward_s: f64,
    /// Backward.
    pub backward_s: f64,
    /// All-reduce.
    pub all_reduce_s: f64,
}

/// A timeline with what drawing needs.
#[derive(Debug, Clone)]
pub(super) struct Played {
    /// The schedule that was played.
    pub schedule: Schedule,
    /// What was played.
    pub pipeline: Pipeline,
    /// What came of it.
    pub timeline: Timeline,
    /// By stage, then replica.
    rows: Vec<Vec<Row>>,
}

impl Played {
    /// Plays the shown plan.
    ///
    /// # Errors
    /// A sentence, if there is no plan or the batch has too many events to keep.
    pub(super) fn new(shown: &Shown, schedule: Schedule) -> Result<Self, String> {
        let Some((plan, _)) = shown.plan() else { return Err("there is no plan to play".into()) };
        let events = 4 * plan.stages.len() as u64 * u64::from(shown.limits.microbatches);
        if events > MOST_EVENTS {
            return Err(format!(
                "{} stages and {} microbatches make about {} events, too many to draw: lower the microbatches to see the timeline",
                plan.stages.len(),
                shown.limits.microbatches,
                crate::units::count_short(events as f64)
            ));
        }
        let pipeline = Pipeline::from_plan(&shown.workload, &shown.limits, plan, &Settings::default());
        let timeline = simulate(&pipeline, schedule);
        let rows = rows(&timeline);
        Ok(Played { schedule, pipeline, timeline, rows })
    }

    /// Seconds of each kind of compute on a replica between two times. Two binary searches.
    pub(super) fn share(&self, stage: usize, replica: u32, from: f64, to: f64) -> Share {
        let Some(row) = self.row(stage, replica) else { return Share::default() };
        let events = &self.timeline.events[row.compute.clone()];
        let until = |time: f64| {
            let next = events.partition_point(|e| e.start_s < time);
            let (mut forward, mut backward) = (row.forward_before[next], row.backward_before[next]);
            // The event that runs across `time` counts only up to it.
            if let Some(event) = next.checked_sub(1).map(|i| events[i])
                && event.end_s > time
            {
                match event.kind {
                    EventKind::Forward => forward -= event.end_s - time,
                    _ => backward -= event.end_s - time,
                }
            }
            (forward, backward)
        };
        let (a, b) = (until(from), until(to));
        let overlap = self.all_reduce(stage).map_or(0.0, |e| (e.end_s.min(to) - e.start_s.max(from)).max(0.0));
        Share { forward_s: b.0 - a.0, backward_s: b.1 - a.1, all_reduce_s: overlap }
    }

    /// Compute events of a replica that touch an interval: a contiguous slice.
    pub(super) fn compute(&self, stage: usize, replica: u32, from: f64, to: f64) -> &[Event] {
        self.row(stage, replica).map_or(&[], |row| self.touching(row.compute.clone(), from, to))
    }

    /// Whether activations, and whether gradients, leave a replica in an interval.
    pub(super) fn sending(&self, stage: usize, replica: u32, from: f64, to: f64) -> [bool; 2] {
        let Some(row) = self.row(stage, replica) else { return [false; 2] };
        row.sends.clone().map(|range| !self.touching(range, from, to).is_empty())
    }

    /// The event of a lane under a time.
    pub(super) fn at(&self, lane: Lane, stage: usize, replica: u32, time: f64) -> Option<Event> {
        let row = self.row(stage, replica)?;
        let under = |range: Range<usize>| {
            self.touching(range, time, time).iter().copied().find(|e| e.start_s <= time && time < e.end_s)
        };
        match lane {
            Lane::Compute => under(row.compute.clone())
                .or_else(|| self.all_reduce(stage).filter(|e| e.start_s <= time && time < e.end_s)),
            Lane::Links => under(row.sends[0].clone()).or_else(|| under(row.sends[1].clone())),
        }
    }

    /// Start of the next compute event of a replica after a time, or of the one before it.
    pub(super) fn neighbour(&self, stage: usize, replica: u32, time: f64, forwards: bool) -> Option<f64> {
        let row = self.row(stage, replica)?;
        let events = &self.timeline.events[row.compute.clone()];
        let starts = |i: usize| events.get(i).map(|e| e.start_s);
        let reduce = self.all_reduce(stage).map(|e| e.start_s);
        if forwards {
            starts(events.partition_point(|e| e.start_s <= time)).or(reduce.filter(|start| *start > time))
        } else {
            reduce
                .filter(|start| *start < time)
                .or_else(|| starts(events.partition_point(|e| e.start_s < time).checked_sub(1)?))
        }
    }

    /// The all-reduce of a stage: one event for all its replicas, kept with the first.
    fn all_reduce(&self, stage: usize) -> Option<Event> {
        Some(self.timeline.events[self.row(stage, 0)?.all_reduce?])
    }

    fn row(&self, stage: usize, replica: u32) -> Option<&Row> {
        self.rows.get(stage)?.get(replica as usize)
    }

    /// Of a range sorted by start, without overlaps, the events that touch an interval.
    fn touching(&self, range: Range<usize>, from: f64, to: f64) -> &[Event] {
        let events = &self.timeline.events[range];
        let first = events.partition_point(|e| e.end_s <= from);
        let last = events.partition_point(|e| e.start_s <= to);
        &events[first.min(last)..last]
    }
}

fn rows(timeline: &Timeline) -> Vec<Vec<Row>> {
    let replicas = |(stage, &count): (usize, &u32)| (0..count).map(|r| row(timeline, stage, r)).collect();
    timeline.replicas.iter().enumerate().map(replicas).collect()
}

fn row(timeline: &Timeline, stage: usize, replica: u32) -> Row {
    let key = (stage as u32, replica);
    let first = timeline.events.partition_point(|e| (e.stage, e.replica) < key);
    let events = timeline.row(stage, replica);
    // Within a row the order is compute, activation sends, gradient sends, all-reduce.
    let rank = |event: &Event| match event.kind {
        EventKind::Forward | EventKind::Backward => 0,
        EventKind::SendActivation { .. } => 1,
        EventKind::SendGradient { .. } => 2,
        EventKind::AllReduce => 3,
    };
    let end = |upto: u32| events.partition_point(|e| rank(e) <= upto);
    let (compute, activations, gradients) = (end(0), end(1), end(2));
    let mut row = Row {
        compute: first..first + compute,
        forward_before: Vec::with_capacity(compute + 1),
        backward_before: Vec::with_capacity(compute + 1),
        all_reduce: (gradients < events.len()).then_some(first + gradients),
        sends: [first + compute..first + activations, first + activations..first + gradients],
    };
    let (mut forward, mut backward) = (0.0, 0.0);
    row.forward_before.push(0.0);
    row.backward_before.push(0.0);
    for event in &events[..compute] {
        match event.kind {
            EventKind::Forward => forward += event.end_s - event.start_s,
            _ => backward += event.end_s - event.start_s,
        }
        row.forward_before.push(forward);
        row.backward_before.push(backward);
    }
    row
}
