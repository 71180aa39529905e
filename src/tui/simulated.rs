//! Timeline of a plan, prepared for drawing at any zoom.
//!
//! A timeline may have 250 000 events, and a cell may cover hundreds of them. Each row stores prefix sums of the time
//! per kind of work. So the work in any interval takes two binary searches, and a frame costs `O(cells · log events)`
//! at any zoom. The sums take 40 bytes per event and are computed once, on the worker.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::shown::ShownRun;
use crate::{
    family,
    plan::{Measure, Score},
    planner::Search,
    schedule::{ExplicitSchedule, Step},
    simulate::{CriticalPath, Event, EventKind, Pipeline, Schedule, Setup, Timeline, critical_path, simulate_unless},
    study::{losses::Losses, pace::Pace, prediction_gap::PredictionGap, steady::Steady},
};

/// Lines of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Forward, backward and the all-reduce.
    Compute,
    /// Activations to later stages and gradients to earlier ones; in a plan for a single sample, transfers to and from
    /// the host.
    Links,
}

/// Kinds of compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Forward.
    Forward,
    /// Recomputation.
    Recompute,
    /// Backward.
    Backward,
    /// Delayed backward pass of the weights.
    Weights,
    /// Optimizer step.
    Optimizer,
}

impl Work {
    /// Kind of a compute event.
    pub(super) fn of(kind: EventKind) -> Work {
        match kind {
            EventKind::Recompute => Work::Recompute,
            EventKind::Backward => Work::Backward,
            EventKind::WeightGradient => Work::Weights,
            EventKind::OptimizerStep => Work::Optimizer,
            _ => Work::Forward,
        }
    }
}

/// Events of one replica, and their prefix sums.
#[derive(Debug, Clone, PartialEq, Default)]
struct Row {
    /// Compute events, in order of start.
    compute: Range<usize>,
    /// Seconds of each kind of work before each compute event; one entry more than events.
    before: Vec<[f64; 5]>,
    /// The all-reduce, in buckets.
    reduces: Range<usize>,
    /// Activation sends, then gradient sends.
    sends: [Range<usize>; 2],
    /// Passes that run side by side: the events of each pair, in order of start.
    pairs: Vec<Range<usize>>,
    /// Intervals in which the simulator leaves out repeating events of a long iteration.
    gaps: Vec<(f64, f64)>,
}

/// Seconds of each kind of compute within an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Share {
    /// Indexed by [`Work`].
    pub work_s: [f64; 5],
    /// All-reduce.
    pub all_reduce_s: f64,
}

/// Timeline with data for drawing.
#[derive(Debug, Clone)]
pub(super) struct Simulated {
    /// Run whose plan was simulated.
    pub(super) shown: Arc<ShownRun>,
    /// Requested schedule and settings; [`Simulated::schedule`] is the schedule actually used.
    pub setup: Setup,
    /// Simulated pipeline.
    pub pipeline: Pipeline,
    /// Resulting timeline.
    pub timeline: Timeline,
    /// Critical path, which determines the length.
    pub path: CriticalPath,
    /// Planner's objective against the simulated value.
    pub promise: Option<PredictionGap>,
    /// Causes of lost time.
    pub losses: Option<Losses>,
    /// Phases of the iteration; `None` if it has no steady state.
    pub steady: Option<Steady>,
    /// Stages whose passes set the pace of the steady state, if passes do.
    pub pace: Option<Pace>,
    /// By stage: fraction of its transfers, sent and received, during which its device computes.
    hidden: Vec<f64>,
    /// Indices of the events on the critical path, ascending.
    critical: Vec<usize>,
    /// Rows by stage, then replica.
    rows: Vec<Vec<Row>>,
    /// The check's score with loads as simulated: the passes of a stage, which hide transfers. Only for plans whose
    /// objective is the simulated iteration.
    pub paced: Option<Score>,
    /// Iteration time of the equal partition of the same workload, if it was planned, seconds.
    pub equal_s: Option<f64>,
}

impl Simulated {
    /// Stage that limits: the one whose passes set the pace, else the one with the largest sum of compute and transfers.
    pub(super) fn limiting(&self) -> Option<usize> {
        let (_, score) = self.shown.plan()?;
        self.pace.as_ref().map(|pace| pace.stage).or_else(|| score.bottleneck())
    }

    /// Number of stages that limit as much as each other, within the resolution of the screen.
    pub(super) fn alike(&self) -> usize {
        self.pace.as_ref().map_or(1, |pace| pace.alike.len())
    }

    /// True if passes set the pace of the steady state, and transfers run beside them.
    pub(super) fn hides_transfers(&self) -> bool {
        self.pace.is_some()
    }

    /// Time of a microbatch by which the passes of a stage are shorter than those that set the pace, seconds.
    pub(super) fn slack_s(&self, stage: usize) -> Option<f64> {
        self.pace.as_ref().and_then(|pace| pace.slack_s(stage))
    }

    /// Score whose loads are the passes of each stage. `None` if the planner counts sums, or if passes do not set the
    /// pace.
    fn paced_score(&self) -> Option<Score> {
        let (plan, score) = self.shown.plan()?;
        let pace = self.pace.as_ref().filter(|_| plan.measure == Measure::IterationTime)?;
        let mut paced = score.clone();
        for (stage, scored) in paced.stages.iter_mut().enumerate() {
            let own = self.pipeline.stages.get(stage)?;
            scored.load_s = *pace.passes_s.get(stage)?;
            scored.compute_s = scored.load_s;
            scored.backward_compute_s = own.backward_s / f64::from(own.replicas.max(1));
            (scored.communication_s, scored.received_s, scored.sync_s) = (0.0, 0.0, 0.0);
        }
        paced.slowest_s = pace.longest_s();
        Some(paced)
    }

    /// Score to draw loads from: as simulated where that is the plan's objective, else as the planner counts.
    pub(super) fn loads<'a>(simulated: Option<&'a Self>, score: &'a Score) -> &'a Score {
        simulated.and_then(|simulated| simulated.paced.as_ref()).unwrap_or(score)
    }

    /// Simulates the shown plan, if there is one. `None` if `search` is cancelled meanwhile.
    pub(super) fn new(shown: &Arc<ShownRun>, setup: Setup, search: &Search) -> Option<Self> {
        let (plan, score) = shown.plan()?;
        let setup = setup.of(plan);
        let stopped = || search.cancelled();
        let pipeline = family::pipeline_unless(&shown.workload, &shown.limits, plan, &setup.settings, &stopped)?;
        let schedule = pipeline.schedule(setup.schedule);
        let timeline = simulate_unless(&pipeline, schedule, &stopped)?;
        let path = critical_path(&pipeline, schedule, &timeline);
        let listed = schedule.has_pairs().then(|| pipeline.explicit(schedule)).flatten();
        let rows = rows(&timeline, listed.as_deref());
        let mut critical = path.events.clone();
        critical.sort_unstable();
        let promise = PredictionGap::of(&shown.workload, &shown.limits, plan, score, &timeline);
        let losses = Losses::of(&pipeline, schedule, &timeline, &|| search.cancelled());
        let shown = shown.clone();
        let hidden = vec![];
        let steady = Some(&timeline).filter(|_| pipeline.single_sample.is_none()).and_then(Steady::of);
        let pace = Pace::of(plan.measure, &pipeline, steady.as_ref());
        let mut simulated = Simulated {
            shown,
            setup,
            pipeline,
            timeline,
            path,
            promise,
            losses,
            steady,
            pace,
            hidden,
            critical,
            rows,
            paced: None,
            equal_s: None,
        };
        simulated.hidden = hidden_shares(&simulated);
        simulated.paced = simulated.paced_score();
        Some(simulated)
    }

    /// Schedule used: the requested one, if the plan supports it.
    pub(super) fn schedule(&self) -> Schedule {
        self.pipeline.schedule(self.setup.schedule)
    }

    /// True if any stage spends time on a kind of work.
    pub(super) fn works(&self, work: Work) -> bool {
        let total = |row: &Row| row.before.last().map_or(0.0, |sums| sums[work as usize]);
        self.rows.iter().flatten().any(|row| total(row) > 0.0)
    }

    /// The same timeline with another run of the same plan.
    pub(super) fn under(&self, shown: Arc<ShownRun>) -> Self {
        Simulated { shown, ..self.clone() }
    }

    /// Fraction of a stage's transfers hidden by compute; `None` if it has no transfers.
    pub(super) fn hidden(&self, stage: usize) -> Option<f64> {
        self.hidden.get(stage).copied().filter(|share| share.is_finite())
    }

    /// Seconds of each kind of compute on a replica between two times. Two binary searches.
    pub(super) fn share(&self, stage: usize, replica: u32, from: f64, to: f64) -> Share {
        let Some(row) = self.row(stage, replica) else { return Share::default() };
        let events = &self.timeline.events[row.compute.clone()];
        let until = |time: f64| {
            let next = events.partition_point(|e| e.start_s < time);
            let mut sums = row.before[next];
            // An event that spans `time` counts only up to it.
            if let Some(event) = next.checked_sub(1).map(|i| events[i])
                && event.end_s > time
            {
                sums[Work::of(event.kind) as usize] -= event.end_s - time;
            }
            sums
        };
        let (a, b) = (until(from), until(to));
        let mut share = Share::default();
        share.work_s.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum = b - a);
        let reduces = self.touching(self.reduces(stage), from, to).iter();
        share.all_reduce_s = reduces.map(|e| (e.end_s.min(to) - e.start_s.max(from)).max(0.0)).sum();
        share
    }

    /// Events of the critical path that touch an interval on a lane of a replica. The first replica's compute includes
    /// the all-reduce.
    pub(super) fn critical(&self, lane: Lane, stage: usize, replica: u32, from: f64, to: f64) -> Vec<Event> {
        let Some(row) = self.row(stage, replica) else { return vec![] };
        let ranges = match lane {
            Lane::Compute => [row.compute.clone(), row.reduces.clone()],
            Lane::Links => row.sends.clone(),
        };
        let mut found = vec![];
        for range in ranges {
            let first = self.critical.partition_point(|&i| i < range.start);
            let last = self.critical.partition_point(|&i| i < range.end);
            let events = self.critical[first..last].iter().map(|&i| self.timeline.events[i]);
            found.extend(events.filter(|e| e.end_s > from && e.start_s < to));
        }
        found
    }

    /// Compute events of a replica that touch an interval, as a contiguous slice.
    pub(super) fn compute(&self, stage: usize, replica: u32, from: f64, to: f64) -> &[Event] {
        self.row(stage, replica).map_or(&[], |row| self.touching(row.compute.clone(), from, to))
    }

    /// Pairs of passes that run side by side on a replica and touch an interval: the events of each.
    pub(super) fn pairs(&self, stage: usize, replica: u32, from: f64, to: f64) -> impl Iterator<Item = &[Event]> {
        let pairs = self.row(stage, replica).map_or(&[][..], |row| &row.pairs);
        let events = |range: &Range<usize>| &self.timeline.events[range.clone()];
        let first = pairs.partition_point(|pair| events(pair).last().is_some_and(|event| event.end_s <= from));
        pairs[first..].iter().map(events).take_while(move |pair| pair[0].start_s < to)
    }

    /// True for activations, and for gradients, if a replica sends them in an interval.
    pub(super) fn sending(&self, stage: usize, replica: u32, from: f64, to: f64) -> [bool; 2] {
        let Some(row) = self.row(stage, replica) else { return [false; 2] };
        row.sends.clone().map(|range| !self.touching(range, from, to).is_empty())
    }

    /// Event of a lane at a time.
    pub(super) fn at(&self, lane: Lane, stage: usize, replica: u32, time: f64) -> Option<Event> {
        let row = self.row(stage, replica)?;
        let under = |range: Range<usize>| {
            self.touching(range, time, time).iter().copied().find(|e| e.start_s <= time && time < e.end_s)
        };
        match lane {
            Lane::Compute => under(row.compute.clone()).or_else(|| under(self.reduces(stage))),
            Lane::Links => under(row.sends[0].clone()).or_else(|| under(row.sends[1].clone())),
        }
    }

    /// Subject of an event of a single sample, in words; `None` for other events.
    pub(super) fn part(&self, event: &Event) -> Option<String> {
        let run = self.pipeline.single_sample.as_ref()?;
        run.names.get(event.microbatch as usize).cloned()
    }

    /// Interval that shows the warm-up and the return of the first microbatches, seconds: twice the time of one
    /// microbatch through all stages and back.
    pub(super) fn warm_up_s(&self) -> f64 {
        2.0 * self.pipeline.stages.iter().map(|stage| stage.forward_s + stage.backward_s).sum::<f64>()
    }

    /// True if the simulator left out the events at this time.
    pub(super) fn left_out(&self, stage: usize, replica: u32, time: f64) -> bool {
        self.row(stage, replica).is_some_and(|row| row.gaps.iter().any(|gap| gap.0 < time && time < gap.1))
    }

    /// Maps a time without events, where the pipeline repeats itself, to an equivalent time of the interval before.
    /// Returns other times unchanged.
    pub(super) fn repeated(&self, stage: usize, replica: u32, time: f64) -> f64 {
        let gap = self.row(stage, replica).and_then(|row| row.gaps.iter().find(|gap| gap.0 < time && time < gap.1));
        match gap {
            Some(&(from, _)) => {
                let stretch = (from * 0.25).max(f64::MIN_POSITIVE);
                from - stretch + (time - from) % stretch
            }
            None => time,
        }
    }

    /// Start of the next or the previous compute event of a replica.
    pub(super) fn neighbour(&self, stage: usize, replica: u32, time: f64, forwards: bool) -> Option<f64> {
        let row = self.row(stage, replica)?;
        let events = &self.timeline.events[row.compute.clone()];
        let reduces = &self.timeline.events[self.reduces(stage)];
        let found = [events, reduces].map(|events| {
            if forwards {
                events.get(events.partition_point(|e| e.start_s <= time))
            } else {
                events.partition_point(|e| e.start_s < time).checked_sub(1).map(|i| &events[i])
            }
        });
        let starts = found.into_iter().flatten().map(|e| e.start_s);
        if forwards { starts.min_by(f64::total_cmp) } else { starts.max_by(f64::total_cmp) }
    }

    /// All-reduce of a stage: shared by all replicas, stored with the first.
    fn reduces(&self, stage: usize) -> Range<usize> {
        self.row(stage, 0).map_or(0..0, |row| row.reduces.clone())
    }

    fn row(&self, stage: usize, replica: u32) -> Option<&Row> {
        self.rows.get(stage)?.get(replica as usize)
    }

    /// Events in a range that touch an interval. The range is sorted by start, without overlaps.
    fn touching(&self, range: Range<usize>, from: f64, to: f64) -> &[Event] {
        let events = &self.timeline.events[range];
        let first = events.partition_point(|e| e.end_s <= from);
        let last = events.partition_point(|e| e.start_s <= to);
        &events[first.min(last)..last]
    }
}

fn rows(timeline: &Timeline, listed: Option<&ExplicitSchedule>) -> Vec<Vec<Row>> {
    let steps = |stage: usize| listed.and_then(|listed| listed.ranks.get(stage)).map_or(&[][..], Vec::as_slice);
    let replicas = |(stage, &count): (usize, &u32)| (0..count).map(|r| row(timeline, stage, r, steps(stage))).collect();
    timeline.replicas.iter().enumerate().map(replicas).collect()
}

/// Events of the pairs among the compute events `first..`. `steps` are those of the rank.
fn pairs(events: &[Event], first: usize, steps: &[Step]) -> Vec<Range<usize>> {
    let mut pairs = vec![];
    let mut at = 0;
    for step in steps {
        let begin = at;
        for _ in step.actions() {
            // A backward pass may recompute first.
            at += usize::from(events.get(at).is_some_and(|event| event.kind == EventKind::Recompute)) + 1;
        }
        if matches!(step, Step::Overlap(..)) && at <= events.len() {
            pairs.push(first + begin..first + at);
        }
    }
    pairs
}

fn row(timeline: &Timeline, stage: usize, replica: u32, steps: &[Step]) -> Row {
    let key = (stage as u32, replica);
    let first = timeline.events.partition_point(|e| (e.stage, e.replica) < key);
    let events = timeline.row(stage, replica);
    let end = |upto: u8| events.partition_point(|e| e.kind.lane() <= upto);
    let (compute, activations, gradients) = (end(0), end(1), end(2));
    let mut row = Row {
        compute: first..first + compute,
        before: Vec::with_capacity(compute + 1),
        reduces: first + gradients..first + events.len(),
        sends: [first + compute..first + activations, first + activations..first + gradients],
        gaps: gaps(&events[..compute], timeline.left_out.as_ref()),
        // Not all events of a long iteration are there.
        pairs: if timeline.left_out.is_none() { pairs(&events[..compute], first, steps) } else { vec![] },
    };
    let mut sums = [0.0; 5];
    row.before.push(sums);
    for event in &events[..compute] {
        sums[Work::of(event.kind) as usize] += event.end_s - event.start_s;
        row.before.push(sums);
    }
    row
}

/// Intervals between two events of a kind that have the left-out microbatches between them.
fn gaps(events: &[Event], left_out: Option<&Range<u32>>) -> Vec<(f64, f64)> {
    let Some(left_out) = left_out else { return vec![] };
    let mut gaps = vec![];
    let mut before: BTreeMap<(Work, u32), Option<u32>> = BTreeMap::new();
    for (i, event) in events.iter().enumerate().filter(|(_, event)| event.kind != EventKind::OptimizerStep) {
        let last = before.entry((Work::of(event.kind), event.part)).or_default();
        let across = |a: u32, b: u32| a < left_out.start && b >= left_out.end;
        if last.is_some_and(|last| across(last, event.microbatch) || across(event.microbatch, last)) {
            gaps.push((events[i - 1].end_s, event.start_s));
        }
        *last = Some(event.microbatch);
    }
    gaps
}

/// Maximum number of transfers examined; more do not change the result.
const LOOKED_AT: usize = 20_000;

/// By stage, fraction of the time of its transfers during which its device computes; NaN without transfers. Binary
/// searches for each transfer.
fn hidden_shares(simulated: &Simulated) -> Vec<f64> {
    let replicas = &simulated.timeline.replicas;
    let mut sums = vec![(0.0, 0.0); replicas.len()];
    let sends = simulated.timeline.events.iter().filter_map(|event| match event.kind {
        EventKind::SendActivation { to, .. } | EventKind::SendGradient { to, .. } => Some((event, to)),
        _ => None,
    });
    for (event, to) in sends.take(LOOKED_AT) {
        let receiver = event.microbatch % replicas.get(to as usize).copied().unwrap_or(1).max(1);
        for (stage, replica) in [(event.stage, event.replica), (to, receiver)] {
            let work = simulated.share(stage as usize, replica, event.start_s, event.end_s).work_s;
            if let Some((under, all)) = sums.get_mut(stage as usize) {
                *under += work.iter().sum::<f64>();
                *all += event.end_s - event.start_s;
            }
        }
    }
    sums.into_iter().map(|(under, all)| (under / all).min(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::GivenLimits,
        planner::{Options, Outcome, Problem, Status},
    };

    fn event(start_s: f64, end_s: f64, microbatch: u32, kind: EventKind) -> Event {
        Event { start_s, end_s, stage: 0, replica: 0, microbatch, part: 0, kind }
    }

    fn simulated(events: Vec<Event>, left_out: Option<Range<u32>>) -> Simulated {
        let timeline = Timeline { events, left_out, replicas: vec![1], iteration_s: 20.0, ..Timeline::default() };
        let rows = rows(&timeline, None);
        let workload = Arc::new(crate::workload::builtin());
        let planner = crate::planner::all()[0].info();
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let problem = Problem { workload, limits, options: Options::default() };
        let shown = Arc::new(ShownRun::new(planner, &problem, Outcome::new(Status::Infeasible), None, 0.0));
        let (setup, pipeline, path) = (Setup::default(), Pipeline::default(), CriticalPath::default());
        Simulated {
            paced: None,
            equal_s: None,
            shown,
            setup,
            pipeline,
            timeline,
            path,
            promise: None,
            losses: None,
            steady: None,
            pace: None,
            hidden: vec![],
            critical: vec![],
            rows,
        }
    }

    #[test]
    fn shares_are_what_a_sum_over_all_events_gives() {
        let mut events = vec![];
        for i in 0..9 {
            let start = f64::from(i) * 1.7;
            let kind = [EventKind::Forward, EventKind::WeightGradient, EventKind::Backward][i as usize % 3];
            events.push(event(start, start + 1.1, i as u32, kind));
        }
        events.push(event(16.0, 16.5, 0, EventKind::SendActivation { to: 1, part: 0 }));
        events.push(event(17.0, 19.0, 0, EventKind::AllReduce));
        let simulated = simulated(events.clone(), None);
        for from in 0..40 {
            for length in 1..20 {
                let (from, to) = (f64::from(from) * 0.5, f64::from(from) * 0.5 + f64::from(length) * 0.3);
                let share = simulated.share(0, 0, from, to);
                let sum = |kind: EventKind| -> f64 {
                    let of = events.iter().filter(|e| e.kind == kind);
                    of.map(|e| (e.end_s.min(to) - e.start_s.max(from)).max(0.0)).sum()
                };
                for kind in [EventKind::Forward, EventKind::Backward, EventKind::WeightGradient] {
                    let seconds = share.work_s[Work::of(kind) as usize];
                    assert!((seconds - sum(kind)).abs() < 1e-9, "{from} {to}");
                }
                assert!((share.all_reduce_s - sum(EventKind::AllReduce)).abs() < 1e-9, "{from} {to}");
            }
        }
        assert_eq!(simulated.sending(0, 0, 15.9, 16.1), [true, false]);
        assert_eq!(simulated.at(Lane::Compute, 0, 0, 0.5).map(|e| e.microbatch), Some(0));
        assert_eq!(simulated.at(Lane::Compute, 0, 0, 1.3), None);
        assert_eq!(simulated.at(Lane::Compute, 0, 0, 18.0).map(|e| e.kind), Some(EventKind::AllReduce));
        assert_eq!(simulated.neighbour(0, 0, 1.3, true), Some(1.7));
        assert_eq!(simulated.neighbour(0, 0, 1.3, false), Some(0.0));
        assert_eq!(simulated.neighbour(0, 0, 15.0, true), Some(17.0));
        assert_eq!(simulated.share(3, 0, 0.0, 1.0), Share::default());
    }

    #[test]
    fn what_the_simulator_left_out_is_known() {
        let events = vec![
            event(0.0, 1.0, 0, EventKind::Forward),
            event(9.0, 10.0, 5, EventKind::Forward),
            event(10.0, 11.0, 0, EventKind::Backward),
            event(18.0, 19.0, 5, EventKind::Backward),
        ];
        let simulated = simulated(events, Some(1..5));
        assert!(simulated.left_out(0, 0, 5.0) && simulated.left_out(0, 0, 12.0));
        let again = simulated.repeated(0, 0, 5.0);
        assert!((0.75..1.0).contains(&again) && simulated.repeated(0, 0, 9.5) == 9.5, "{again}");
        assert!(!simulated.left_out(0, 0, 0.5) && !simulated.left_out(0, 0, 10.5) && !simulated.left_out(0, 0, 18.5));
    }
}
