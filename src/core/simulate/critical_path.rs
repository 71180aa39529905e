//! Which chain of events sets the iteration time.
//!
//! From the event that ends last, back: whatever ended when an event began and held it up, until the beginning of the
//! batch. Times are whole ticks of one clock, so "when" is exact. Where several held an event up, the computation before it
//! on the same device comes first, then what it needs, then what was in its way. A bucket of gradients begins within a
//! computation; the path then counts this one up to there.
//!
//! `O(e log e)` time for `e` events. In long batches, whose middle is not kept, the path is known from there on only.

use std::collections::BTreeMap;

use super::{Event, EventKind, Pipeline, Schedule, Timeline};
use crate::units;

/// What the time on the path is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// Forward passes.
    Forward,
    /// Recomputation.
    Recompute,
    /// Backward passes, of the inputs where the schedule parts them.
    Backward,
    /// Backward passes of the weights.
    WeightGradient,
    /// Activations and gradients on their way.
    Transfer,
    /// All-reduces of the gradients.
    AllReduce,
    /// Optimizer steps.
    OptimizerStep,
}

impl PathKind {
    /// What people call it.
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

/// The chain of events that sets the iteration time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalPath {
    /// Indices into [`Timeline::events`], in order of time.
    pub events: Vec<usize>,
    /// From when on the path is known, seconds: 0 but for batches whose middle is not kept.
    pub from_s: f64,
    /// Until when, seconds: the iteration time.
    pub to_s: f64,
    /// Seconds by what they are spent on and on which stage (a transfer's sender), the longest first.
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

    /// What it consists of, in words: kinds by share, and the stage with the most of it.
    pub fn summary(&self) -> String {
        self.summary_with(&|stage| format!("stage {}", stage + 1))
    }

    /// The same with names for the stages.
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

/// The critical path of a timeline that was simulated from a pipeline.
pub fn critical_path(pipeline: &Pipeline, schedule: Schedule, timeline: &Timeline) -> CriticalPath {
    let events = &timeline.events;
    let mut by_end: Vec<u32> = (0..events.len() as u32).collect();
    by_end.sort_by(|&a, &b| events[a as usize].end_s.total_cmp(&events[b as usize].end_s));
    let search = Search { pipeline, schedule, timeline, by_end };
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

struct Search<'a> {
    pipeline: &'a Pipeline,
    schedule: Schedule,
    timeline: &'a Timeline,
    /// Events by when they end.
    by_end: Vec<u32>,
}

impl Search<'_> {
    /// What held an event up.
    fn before(&self, at: usize) -> Option<usize> {
        let events = &self.timeline.events;
        let event = &events[at];
        let from = self.by_end.partition_point(|&i| events[i as usize].end_s < event.start_s);
        let ended = self.by_end[from..].iter().map(|&i| i as usize);
        let ended = ended.take_while(|&i| events[i].end_s <= event.start_s).filter(|&i| i != at);
        // Of several on one lane, some of which take no time, the last one before the event.
        let rank = |i: usize| self.rank(at, i).map(|rank| (rank, std::cmp::Reverse(i)));
        let best = ended.filter_map(rank).min().map(|(_, i)| i.0);
        best.or_else(|| (event.kind == EventKind::AllReduce).then(|| self.within(event)).flatten())
    }

    /// The computation during which a bucket of gradients was ready.
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

    /// How directly an event had to wait for another, which ended when it began: the less the more; `None` if not at all.
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
        let settings = &self.pipeline.settings;
        if !settings.contended() || !takes_time(other) {
            return None;
        }
        let both_sends = (1..=2).contains(&lane) && (1..=2).contains(&its);
        let directly =
            (!settings.overlap && self.share_a_device(event, other)) || (both_sends && self.share_a_link(event, other));
        // Else by way of transfers that wait in between, or take no time.
        Some(if directly { 3 } else { 4 })
    }

    /// Whether an event needs what another made.
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
                same && right_way && other.receiver(self.schedule) == Some((event.stage, event.part))
            }
        }
    }

    /// The rows whose devices an event keeps from other work, without overlap.
    fn devices(&self, event: &Event) -> [Option<(u32, u32)>; 2] {
        let receiver = event.receiver(self.schedule).map(|(stage, _)| stage);
        let replica = |stage: u32| event.microbatch % self.timeline.replicas[stage as usize].max(1);
        [Some((event.stage, event.replica)), receiver.map(|stage| (stage, replica(stage)))]
    }

    fn share_a_device(&self, event: &Event, other: &Event) -> bool {
        let (a, b) = (self.devices(event), self.devices(other));
        a.iter().flatten().any(|row| b.contains(&Some(*row)))
    }

    /// Whether two transfers may run over one link: between the same stages, through ports of machines, or on a topology.
    fn share_a_link(&self, event: &Event, other: &Event) -> bool {
        let ends = |e: &Event| (e.stage, e.receiver(self.schedule).map(|(stage, _)| stage));
        ends(event) == ends(other) || !self.pipeline.machines.is_empty() || !self.pipeline.wires.is_empty()
    }
}
