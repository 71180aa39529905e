//! Critical path: the chain of events that sets the iteration time.
//!
//! It is followed backwards from the event that ends last. Each step goes to an event that ended when the current one
//! began and delayed it, until the beginning of the batch. Times are whole ticks of one clock, so equality is exact. If
//! several events qualify, the order is: the computation before it on the same device, then its inputs, then
//! contention. A bucket of gradients begins within a computation; the path then counts this computation up to that
//! point.
//!
//! `O(e log e)` time for `e` events. If the middle of a long batch is not kept, the path is known only after it.

use std::collections::BTreeMap;

use super::{
    pipeline::Pipeline,
    timeline::{Event, EventKind, Timeline},
};
use crate::{plan::Schedule, units};

/// Kind of activity on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// Forward passes.
    Forward,
    /// Recomputation.
    Recompute,
    /// Backward passes; only of the inputs if the schedule splits them.
    Backward,
    /// Backward passes of the weights.
    WeightGradient,
    /// Transfers of activations and gradients.
    Transfer,
    /// All-reduces of the gradients.
    AllReduce,
    /// Optimizer steps.
    OptimizerStep,
}

impl PathKind {
    /// Name for users.
    pub fn name(self) -> &'static str {
        match self {
            PathKind::Forward => "forward",
            PathKind::Recompute => "recompute",
            PathKind::Backward => "backward",
            PathKind::WeightGradient => "weight gradient",
            PathKind::Transfer => "transfer",
            PathKind::AllReduce => "all-reduce",
            PathKind::OptimizerStep => "optimizer",
        }
    }

    fn of(kind: EventKind) -> PathKind {
        match kind {
            EventKind::Forward => PathKind::Forward,
            EventKind::Recompute => PathKind::Recompute,
            EventKind::Backward => PathKind::Backward,
            EventKind::WeightGradient => PathKind::WeightGradient,
            EventKind::OptimizerStep => PathKind::OptimizerStep,
            EventKind::AllReduce => PathKind::AllReduce,
            EventKind::SendActivation { .. }
            | EventKind::SendGradient { .. }
            | EventKind::ToHost
            | EventKind::FromHost => PathKind::Transfer,
        }
    }
}

/// Chain of events that sets the iteration time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// Indices into [`Timeline::events`], in order of time.
    pub events: Vec<usize>,
    /// Start of the known path, seconds: 0 except for batches whose middle is not kept.
    pub from_s: f64,
    /// End of the path, seconds: the iteration time.
    pub to_s: f64,
    /// Seconds by kind and stage (a transfer's sender), the longest first.
    pub shares: Vec<(PathKind, usize, f64)>,
}

impl CriticalPath {
    /// Seconds of each kind, the longest first.
    pub fn by_kind(&self) -> Vec<(PathKind, f64)> {
        let mut sums: BTreeMap<PathKind, f64> = BTreeMap::new();
        self.shares.iter().for_each(|&(kind, _, seconds)| *sums.entry(kind).or_default() += seconds);
        let mut sums: Vec<_> = sums.into_iter().filter(|sum| sum.1 > 0.0).collect();
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        sums
    }

    /// Seconds on each stage, the longest first.
    pub fn by_stage(&self) -> Vec<(usize, f64)> {
        let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
        self.shares.iter().for_each(|&(_, stage, seconds)| *sums.entry(stage).or_default() += seconds);
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        sums
    }

    /// Summary in words: kinds by percentage, and the stage with the largest part.
    pub fn summary(&self) -> String {
        self.summary_with(&|stage| format!("stage {}", stage + 1))
    }

    /// Summary with names for the stages.
    pub fn summary_with(&self, name: &dyn Fn(usize) -> String) -> String {
        let length = self.to_s - self.from_s;
        if self.events.is_empty() || length <= 0.0 {
            return "nothing takes time".to_string();
        }
        let kinds =
            self.by_kind().into_iter().map(|(kind, s)| format!("{} {}", kind.name(), units::percent(s / length)));
        let mut text = kinds.collect::<Vec<_>>().join(", ");
        let stages = self.by_stage();
        if let Some(&(stage, seconds)) = stages.first().filter(|_| stages.len() > 1) {
            text += &format!("; most on {}: {}", name(stage), units::percent(seconds / length));
        }
        if self.from_s > 0.0 {
            text += &format!("; of the last {}", units::seconds(length));
        }
        text
    }
}

/// Critical path of a timeline that was simulated from a pipeline.
pub fn critical_path(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) -> CriticalPath {
    let events = &timeline.events;
    let mut by_end: Vec<u32> = (0..events.len() as u32).collect();
    by_end.sort_by(|&a, &b| events[a as usize].end_s.total_cmp(&events[b as usize].end_s));
    let search = PathSearch { pipeline, pairs: schedule.has_pairs(), timeline, by_end };
    let Some(&last) = search.by_end.iter().rfind(|&&i| takes_time(&events[i as usize])) else {
        return CriticalPath::default();
    };
    let mut path = CriticalPath { to_s: timeline.iteration_s, ..CriticalPath::default() };
    let mut sums: BTreeMap<(PathKind, usize), f64> = BTreeMap::new();
    let (mut at, mut until_s) = (last as usize, timeline.iteration_s);
    loop {
        let event = &events[at];
        path.events.push(at);
        *sums.entry((PathKind::of(event.kind), event.stage as usize)).or_default() += until_s - event.start_s;
        path.from_s = event.start_s;
        if event.start_s <= 0.0 {
            break;
        }
        let Some(before) = search.before(at) else { break };
        (at, until_s) = (before, event.start_s);
    }
    path.events.reverse();
    path.shares = sums.into_iter().map(|((kind, stage), seconds)| (kind, stage, seconds)).collect();
    path.shares.sort_by(|a, b| b.2.total_cmp(&a.2));
    path
}

fn takes_time(event: &Event) -> bool {
    event.end_s > event.start_s
}

struct PathSearch<'a> {
    pipeline: &'a Pipeline,
    /// True if passes may run side by side: then they wait for each other's inputs, and send at their common end.
    pairs: bool,
    timeline: &'a Timeline,
    /// Indices of the events, sorted by end.
    by_end: Vec<u32>,
}

impl PathSearch<'_> {
    /// Event that delayed the event `at`.
    fn before(&self, at: usize) -> Option<usize> {
        let events = &self.timeline.events;
        let event = &events[at];
        let from = self.by_end.partition_point(|&i| events[i as usize].end_s < event.start_s);
        let ended = self.by_end[from..].iter().map(|&i| i as usize);
        let ended = ended.take_while(|&i| events[i].end_s <= event.start_s).filter(|&i| i != at);
        // If several are on one lane, some without duration, takes the last one before the event.
        let rank = |i: usize| self.rank(at, i).map(|rank| (rank, std::cmp::Reverse(i)));
        let best = ended.filter_map(rank).min().map(|(_, i)| i.0);
        best.or_else(|| (event.kind == EventKind::AllReduce).then(|| self.within(event)).flatten())
    }

    /// Computation during which a bucket of gradients became ready.
    fn within(&self, event: &Event) -> Option<usize> {
        let running = |e: &Event| e.kind.lane() == 0 && e.start_s < event.start_s && event.start_s < e.end_s;
        let replicas = 0..self.timeline.replicas[event.stage as usize];
        replicas.into_iter().find_map(|replica| {
            let row = self.timeline.row(event.stage as usize, replica);
            let found = row.iter().position(running)?;
            let first = self.timeline.events.partition_point(|e| (e.stage, e.replica) < (event.stage, replica));
            Some(first + found)
        })
    }

    /// Directness with which an event waited for `before`, which ended when it began: smaller is more direct; `None` if
    /// it did not wait.
    fn rank(&self, at: usize, before: usize) -> Option<u8> {
        let (event, other) = (&self.timeline.events[at], &self.timeline.events[before]);
        let same_row = (event.stage, event.replica) == (other.stage, other.replica);
        let (lane, its) = (event.kind.lane(), other.kind.lane());
        if self.pipeline.single_sample.is_some() {
            return takes_time(other).then_some(u8::from(!same_row));
        }
        if same_row && lane == its {
            return (before < at).then_some(if lane == 0 { 0 } else { 2 });
        }
        if self.needs(event, other) {
            return Some(1);
        }
        if self.pairs && self.in_pair(at, before) {
            return Some(5);
        }
        let settings = &self.pipeline.settings;
        if !settings.contended() || !takes_time(other) {
            return None;
        }
        let both_sends = (1..=2).contains(&lane) && (1..=2).contains(&its);
        let directly =
            (!settings.overlap && self.share_a_device(event, other)) || (both_sends && self.share_a_link(event, other));
        // Otherwise indirectly, through waiting transfers or transfers without duration.
        Some(if directly { 3 } else { 4 })
    }

    /// True if `before` delayed the other pass of a pair of which `at` is one, or of which `at` sends a result.
    fn in_pair(&self, at: usize, before: usize) -> bool {
        let (event, other) = (&self.timeline.events[at], &self.timeline.events[before]);
        let same_row = (event.stage, event.replica) == (other.stage, other.replica);
        if event.receiver().is_some() {
            return same_row && other.kind.lane() == 0;
        }
        let second = self.timeline.events.get(at + 1);
        second.is_some_and(|second| second.start_s == event.end_s && self.needs(second, other))
    }

    /// True if `event` needs the result of `other`.
    fn needs(&self, event: &Event, other: &Event) -> bool {
        let (same_stage, same) = (event.stage == other.stage, event.microbatch == other.microbatch);
        match event.kind {
            EventKind::AllReduce => same_stage,
            EventKind::OptimizerStep => {
                same_stage && (other.kind == EventKind::AllReduce || event.replica == other.replica)
            }
            EventKind::SendActivation { .. } => {
                same_stage && same && event.part == other.part && other.kind == EventKind::Forward
            }
            EventKind::SendGradient { .. } => {
                same_stage && same && event.part == other.part && other.kind == EventKind::Backward
            }
            _ => {
                let forward = event.kind == EventKind::Forward;
                let right_way = matches!(other.kind, EventKind::SendActivation { .. }) == forward;
                same && right_way && other.receiver() == Some((event.stage, event.part))
            }
        }
    }

    /// Rows whose devices an event blocks, without overlap.
    fn devices(&self, event: &Event) -> [Option<(u32, u32)>; 2] {
        let receiver = event.receiver().map(|(stage, _)| stage);
        let replica = |stage: u32| event.microbatch % self.timeline.replicas[stage as usize].max(1);
        [Some((event.stage, event.replica)), receiver.map(|stage| (stage, replica(stage)))]
    }

    fn share_a_device(&self, event: &Event, other: &Event) -> bool {
        let (a, b) = (self.devices(event), self.devices(other));
        a.iter().flatten().any(|row| b.contains(&Some(*row)))
    }

    /// True if two transfers may use the same link: between the same stages, through ports of machines, or on a
    /// topology.
    fn share_a_link(&self, event: &Event, other: &Event) -> bool {
        let ends = |e: &Event| (e.stage, e.receiver().map(|(stage, _)| stage));
        ends(event) == ends(other) || !self.pipeline.machines.is_empty() || !self.pipeline.wires.is_empty()
    }
}
