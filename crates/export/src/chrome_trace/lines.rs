//! Lines of a trace in the order of time, stored as numbers only.
//!
//! A line's number is its position in the list of events, then counters. Lines at the same time keep that order. This
//! takes four bytes per line and eight per event, so a trace is written piece by piece from the existing timeline. `O(n
//! log n)` time for `n` lines.

use plantui_core::simulate::{Event, EventKind, Timeline};

/// Subject of a line.
#[derive(Debug, Clone, Copy)]
pub(super) enum TraceLine<'a> {
    Slice(&'a Event),
    /// The same transfer on its link.
    Link(&'a Event),
    /// Start at a transfer, with its index among the events.
    ArrowStart(&'a Event, usize),
    /// End at the computation that waits for it.
    ArrowEnd(&'a Event, usize),
    Counter {
        stage: usize,
        time_s: f64,
        bytes: f64,
    },
}

/// Numbers reserved for an event: one for each kind of line.
const LINES: usize = 4;
const SLICE: usize = 0;
const LINK: usize = 1;
const ARROW_START: usize = 2;
const ARROW_END: usize = 3;

/// Marks a transfer that nothing in the timeline waits for.
const NOBODY: u32 = u32::MAX;

pub(super) struct TraceLines<'a> {
    timeline: &'a Timeline,
    /// Computation that waits for each event.
    waiting: Vec<u32>,
    /// Number of memory steps before each stage's own.
    steps_before: Vec<usize>,
    /// Line numbers by time.
    order: Vec<u32>,
}

impl<'a> TraceLines<'a> {
    pub(super) fn new(timeline: &'a Timeline) -> Self {
        let waiting = waiting(timeline);
        let mut steps = 0;
        let before = |steps_of: &Vec<(f64, f64)>| {
            steps += steps_of.len();
            steps - steps_of.len()
        };
        let steps_before = timeline.memory.iter().map(before).collect();
        let mut lines = TraceLines { timeline, waiting, steps_before, order: vec![] };
        let events = &timeline.events;
        let number = |event: usize, line: usize| (LINES * event + line) as u32;
        // Sorted by kind first, which is nearly in order within each row.
        let mut order: Vec<u32> = (0..events.len()).map(|event| number(event, SLICE)).collect();
        let transfers = || (0..events.len()).filter(|&event| events[event].receiver().is_some());
        order.extend(transfers().map(|event| number(event, LINK)));
        let awaited = || transfers().filter(|&event| lines.waiting[event] != NOBODY);
        order.extend(awaited().map(|event| number(event, ARROW_START)));
        order.extend(awaited().map(|event| number(event, ARROW_END)));
        order.extend((0..steps).map(|step| (LINES * events.len() + step) as u32));
        order.sort_by(|&a, &b| lines.time_s(a).total_cmp(&lines.time_s(b)).then(a.cmp(&b)));
        lines.order = order;
        lines
    }

    /// Lines by time.
    pub(super) fn iter(&self) -> impl Iterator<Item = TraceLine<'a>> + '_ {
        self.order.iter().map(|&number| self.line(number))
    }

    fn line(&self, number: u32) -> TraceLine<'a> {
        let events = &self.timeline.events;
        let (event, kind) = (number as usize / LINES, number as usize % LINES);
        let Some(about) = events.get(event) else {
            let step = number as usize - LINES * events.len();
            let stage = self.steps_before.partition_point(|&before| before <= step) - 1;
            let (time_s, bytes) = self.timeline.memory[stage][step - self.steps_before[stage]];
            return TraceLine::Counter { stage, time_s, bytes };
        };
        match kind {
            SLICE => TraceLine::Slice(about),
            LINK => TraceLine::Link(about),
            ARROW_START => TraceLine::ArrowStart(about, event),
            _ => TraceLine::ArrowEnd(&events[self.waiting[event] as usize], event),
        }
    }

    fn time_s(&self, number: u32) -> f64 {
        match self.line(number) {
            TraceLine::Slice(event)
            | TraceLine::Link(event)
            | TraceLine::ArrowStart(event, _)
            | TraceLine::ArrowEnd(event, _) => event.start_s,
            TraceLine::Counter { time_s, .. } => time_s,
        }
    }
}

/// For each event that is a transfer, the computation that waits for it.
fn waiting(timeline: &Timeline) -> Vec<u32> {
    let events = &timeline.events;
    let key = |&event: &u32| {
        let event = &events[event as usize];
        (event.stage, event.kind != EventKind::Forward, event.part, event.microbatch)
    };
    let computes = |kind| matches!(kind, EventKind::Forward | EventKind::Recompute | EventKind::Backward);
    let mut started: Vec<u32> =
        (0..events.len() as u32).filter(|&event| computes(events[event as usize].kind)).collect();
    // A backward with recomputation starts with the recomputation, which comes first.
    started.sort_by_key(key);
    let waiting = events.iter().map(|event| {
        let (stage, part) = event.receiver()?;
        let wanted = (stage, matches!(event.kind, EventKind::SendGradient { .. }), part, event.microbatch);
        let at = started.partition_point(|other| key(other) < wanted);
        started.get(at).copied().filter(|other| key(other) == wanted)
    });
    waiting.map(|waiting| waiting.unwrap_or(NOBODY)).collect()
}
