//! Can the network be cut so that no stage takes longer than `T`? And with how few devices?
//!
//! The published recurrence minimises the largest load over (set, devices, replicas). Turned around: for a load `T` let
//! `F[D]` be the undominated pairs (replicas `s`, devices `j`) with which the set `D`, the pipeline's tail, can be run
//! with every stage at most `T`:
//!
//! ```text
//! F[∅] = {(0, 0)}
//! F[D] = undominated { (s + d, j + t·d) : D' ⊂ D, (s, j) ∈ F[D'], load(D \ D', t, d, ⌈(s + d) / d⌉) ≤ T }
//! ```
//!
//! Fewer replicas behind a stage never hurt it (its memory falls), so only undominated pairs matter, and for a fixed
//! `(D', t, s)` only the *smallest* `d` that keeps to `T`. As `s` grows that `d` never falls, so every `d` serves one
//! stretch of `F[D']`, whose end is found by bisection over the microbatches in flight.
//!
//! Two bounds discard most work. A set needs at least its device-seconds divided by `T` devices, so pairs that leave too
//! few for the rest are dropped, and for a stage on `m` devices the inner set's device-seconds must lie in a window as
//! wide as the slack `k·T − total`, which is small near the answer: inner sets are kept sorted by device-seconds and
//! only the windows are looked at. Where the slack is wide (tight memory), the inner sets are visited by a walk from the
//! largest down instead, which turns back where a stage is too slow or too large whatever follows.
//!
//! What a question with a larger load found bounds every one with a smaller load (`earlier`): most sets then come out as
//! before after a few stages, and where a question with a smaller load did with as little, after none. Of the others those
//! that cannot be of use are left out by the block (`blocks`), and four sums side by side tell of most that are left (`lean`).
//!
//! Where the number of stages is given, there is a table of `F` for every number of them, each made from the one before.
//! Time `O(pairs in the windows · degrees · |F|)`, memory `O(sets · |F|)`, both times the number of stages where that is
//! given; no pair of sets is ever stored. Threads share the sets out (`flow`); `F` is the same for any number of them.

use super::{
    blocks::{Blocks, SIZES},
    cumulative::Tails,
    earlier::{Earlier, Reached},
    flow::{Flow, SHARED_OUT},
    lean::Lean,
    lists::{List, Lists, Spare},
    model::{Crossing, PiperModel},
    modes::Oracle,
    rest::{Borders, Rest},
    settings::PiperSettings,
    sources::{Heavier, Source},
    worker::Worker,
};
use crate::{plan::WarmUp, planner::Search};

/// Undominated (replicas, devices): replicas ascend, devices descend.
pub(super) type Frontier = List<(u32, u32)>;
/// A pair with the set behind the first stage that makes it.
pub(super) type FoundPair = (u32, u32, u32);

/// A tensor degree and the replicas it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allowed {
    /// Index into the model's degrees.
    pub(super) degree: usize,
    /// Replicas, ascending.
    pub(super) replicas: Vec<u32>,
}

/// One question: a load, memory, devices, and which degrees may be used.
#[derive(Debug, Clone)]
pub(super) struct Question<'q> {
    /// The load no stage may exceed, seconds per sample; infinite to ask for memory alone.
    pub(super) target: f64,
    /// Devices that may be used.
    pub(super) devices: u32,
    /// The most replicas all stages may have together.
    pub(super) most_replicas: u32,
    /// Degrees and replicas.
    pub(super) allowed: &'q [Allowed],
    /// Exactly so many stages, if that matters.
    pub(super) stages: Option<usize>,
    /// Shares of the whole search done before and after this probe, to report in between.
    pub(super) progress: (f64, f64),
}

/// A stage of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundStage {
    pub(super) outer: u32,
    pub(super) inner: u32,
    pub(super) degree: usize,
    pub(super) d: u32,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A cut with the fewest devices, first stage first.
    Yes(Vec<FoundStage>),
    /// There is none.
    No,
    /// Stopped.
    Cancelled,
}

/// The question with everything that is known of its answer so far; read by all workers.
pub(super) struct Probe<'p, 'm, 'a> {
    pub(super) model: &'m PiperModel<'a>,
    pub(super) question: &'p Question<'p>,
    /// By set; where stages are counted, a table for every number of them.
    tables: Vec<Lists<(u32, u32)>>,
    /// By set: the sets behind the first stages of its pairs, in the table that is being filled.
    behind_first: Lists<u32>,
    /// By set and pair, the one of these that is behind its first stage.
    by: Lists<u32>,
    /// The table that is being filled, and the one that a stage is put in front of: the same, unless stages are counted.
    pub(super) filled: usize,
    pub(super) behind: usize,
    /// Narrow levels that are tried side by side.
    levels: usize,
    /// Numbers of devices a stage may take, ascending.
    stage_devices: Vec<u32>,
    /// The largest tensor degree.
    widest: u32,
    /// What stages, and everything outside a set, need at the least.
    rest: Option<(Rest, &'p Borders)>,
    /// What is known from a question with a larger load.
    pub(super) earlier: Option<&'p Earlier>,
    /// What is known from one with a smaller load.
    pub(super) reached: Option<&'p Reached>,
    /// What tells most stages at a glance.
    pub(super) lean: Option<&'p Lean>,
    /// And many at once.
    pub(super) blocks: &'p [Blocks; SIZES.len()],
}

/// Who answers a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Threads {
    /// As many as there are.
    All,
    /// Those that are free: others have their own questions, as long as there are any.
    Free,
}

/// Those who answer questions about one model; they remember what they found out about its stages.
pub(super) struct Crew<'m, 'a> {
    model: &'m PiperModel<'a>,
    /// What makes sets useless.
    heavier: Heavier,
    /// What edges take.
    borders: Borders,
    lean: Option<Lean>,
    blocks: [Blocks; SIZES.len()],
    /// Whether warm-ups are rounded on from the last stage.
    rounds_on: bool,
    pub(super) workers: Vec<Worker<'m, 'a>>,
    /// Narrow levels that are tried side by side.
    pub(super) levels: usize,
    /// What the last question that was answered by a plan tells.
    earlier: Option<Earlier>,
    /// What the question with the largest load that was answered by none tells.
    reached: Option<Reached>,
    spare: (Spare<(u32, u32)>, Spare<u32>),
}

pub(super) const NONE: u32 = u32::MAX;
/// Slack for rounding when device-seconds are turned into whole devices.
const ROUNDING: f64 = 1e-9;

/// In families of so many sets, of levels of few sets so many are tried side by side.
const LONG: usize = 400;
const LEVELS: usize = 8;

impl<'m, 'a> Crew<'m, 'a> {
    /// As many workers as there are threads, or one where there is too little to share out; `None` if the search was cancelled
    /// meanwhile.
    pub(super) fn new(
        model: &'m PiperModel<'a>,
        settings: &PiperSettings,
        memory_bytes: f64,
        search: &Search,
    ) -> Option<Self> {
        Crew::of(Threads::All, model, settings, memory_bytes, search)
    }

    /// The same of so many threads.
    pub(super) fn of(
        threads: Threads,
        model: &'m PiperModel<'a>,
        settings: &PiperSettings,
        memory_bytes: f64,
        search: &Search,
    ) -> Option<Self> {
        let (all, long) = (rayon::current_num_threads(), model.sets.len() >= LONG);
        let (shared, crews) = match threads {
            Threads::All => (long || model.widest_level() >= SHARED_OUT, 1),
            Threads::Free => (long, all),
        };
        let threads = if shared { all } else { 1 };
        let workers = Oracle::of_threads(threads, crews, model, settings, memory_bytes).map(Worker::new).collect();
        let heavier = || Heavier::new(model, search);
        let blocks = || {
            let lean = Lean::new(model);
            (SIZES.map(|size| Blocks::new(model, lean.as_ref(), size)), lean)
        };
        let (heavier, (borders, (blocks, lean))) =
            rayon::join(heavier, || rayon::join(|| Borders::new(model, search), blocks));
        let (heavier, borders) = (heavier?, borders?);
        let rounds_on = settings.warm_up == WarmUp::Cumulative;
        let levels = if model.sets.len() >= LONG { LEVELS } else { 1 };
        let (earlier, reached, spare) = (None, None, (Spare::new(), Spare::new()));
        Some(Crew { model, heavier, borders, lean, blocks, rounds_on, workers, levels, earlier, reached, spare })
    }

    /// Whether some knapsack was too large to be solved exactly.
    pub(super) fn unproven(&self) -> bool {
        self.workers.iter().any(|worker| worker.oracle.unproven)
    }

    /// Answers one question.
    pub(super) fn ask(&mut self, question: &Question<'_>, search: &Search) -> Answer {
        self.answer(question, search).unwrap_or_else(|| {
            self.reached = None;
            self.answer(question, search).expect("every pair of a frontier has a stage that made it")
        })
    }

    /// `None` if by rounding a tail of this load lacks one of a smaller load that it was made of.
    fn answer(&mut self, question: &Question<'_>, search: &Search) -> Option<Answer> {
        let model = self.model;
        let mut stage_devices: Vec<u32> = question
            .allowed
            .iter()
            .flat_map(|allowed| allowed.replicas.iter().map(|&d| d.saturating_mul(model.degrees[allowed.degree].t)))
            .filter(|&m| m <= question.devices)
            .collect();
        stage_devices.sort_unstable();
        stage_devices.dedup();
        let (tables, sets) = (1 + question.stages.unwrap_or(0), model.sets.len());
        let (spare_pairs, spare_sets) = &mut self.spare;
        let tables: Vec<Lists<(u32, u32)>> = std::iter::repeat_with(|| spare_pairs.take(sets)).take(tables).collect();
        tables[0].note(0, List::from_slice(&[(0, 0)]));
        let memory_bytes = self.workers[0].oracle.memory_bytes();
        let rest = Rest::new(model, question.allowed, question.target, memory_bytes, question.most_replicas)
            .map(|rest| (rest, &self.borders));
        let heavier = Some(&self.heavier).filter(|heavier| question.stages.is_none() && heavier.any());
        let heavier = heavier.filter(|_| !self.rounds_on);
        let widest = question.allowed.iter().map(|allowed| model.degrees[allowed.degree].t).max().unwrap_or(1);
        let earlier = self.earlier.as_ref().filter(|earlier| earlier.bounds(question));
        let reached = self.reached.as_ref().filter(|reached| reached.holds_for(question));
        let lean = self.lean.as_ref();
        // With rounding warm-ups these are not noted.
        let noted = if self.rounds_on { 0 } else { sets };
        let mut probe = Probe {
            model,
            question,
            tables,
            behind_first: spare_sets.take(noted),
            by: spare_sets.take(noted),
            filled: 0,
            behind: 0,
            levels: self.levels,
            stage_devices,
            widest,
            rest,
            earlier,
            reached,
            lean,
            blocks: &self.blocks,
        };
        if self.rounds_on {
            return Some(Tails::new(&probe).answer(&mut self.workers, search));
        }
        let answer = probe.run(heavier, &mut self.workers, search);
        let Probe { tables, behind_first, by, .. } = probe;
        let answer = answer?;
        // With more replicas than sets the bounds would cost more than they save.
        let few = question.most_replicas as usize <= sets;
        let kept = few && question.stages.is_none();
        let mut tables = tables.into_iter();
        match (&answer, tables.next()) {
            (Answer::Yes(_), Some(least)) if kept => {
                spare_sets.give(by);
                let earlier = Earlier::new(question, heavier, least, behind_first);
                if let Some(Earlier { least, behind_first, .. }) = self.earlier.replace(earlier) {
                    spare_pairs.give(least);
                    spare_sets.give(behind_first);
                }
            }
            (Answer::No, Some(pairs)) if kept && pairs.is_known(model.full()) => {
                spare_sets.give(behind_first);
                if let Some(Reached { pairs, by, .. }) = self.reached.replace(Reached::new(question, pairs, by)) {
                    spare_pairs.give(pairs);
                    spare_sets.give(by);
                }
            }
            (_, pairs) => {
                tables.chain(pairs).for_each(|pairs| spare_pairs.give(pairs));
                [behind_first, by].into_iter().for_each(|sets| spare_sets.give(sets));
            }
        }
        Some(answer)
    }
}

impl<'m, 'a> Probe<'_, 'm, 'a> {
    fn run(&mut self, heavier: Option<&Heavier>, workers: &mut [Worker<'m, 'a>], search: &Search) -> Option<Answer> {
        let full = self.model.full();
        if self.most_devices(0).is_none() {
            return Some(Answer::No);
        }
        let (before, after) = self.question.progress;
        match self.question.stages {
            None => {
                if !self.fill(0, heavier, (before, after), workers, search) {
                    return Some(Answer::Cancelled);
                }
            }
            Some(stages) => {
                for count in 1..=stages {
                    self.behind = count - 1;
                    let share = |done: usize| before + (after - before) * done as f64 / stages as f64;
                    if !self.fill(count, None, (share(count - 1), share(count)), workers, search) {
                        return Some(Answer::Cancelled);
                    }
                }
            }
        }
        let whole = self.tables.len() - 1;
        match self.tables[whole].of(full).last() {
            None => Some(Answer::No),
            Some(&(replicas, devices)) => self.stages(&mut workers[0].oracle, replicas, devices).map(Answer::Yes),
        }
    }

    /// Fills a table, smaller sets first; false if it was cancelled.
    fn fill(
        &mut self,
        table: usize,
        heavier: Option<&Heavier>,
        progress: (f64, f64),
        workers: &mut [Worker<'m, 'a>],
        search: &Search,
    ) -> bool {
        self.filled = table;
        if table > 0 {
            self.behind_first.clear();
            self.by.clear();
        }
        // Nothing comes behind no stage.
        self.behind_first.note(0, List::new());
        Flow::new(self, heavier, self.levels, progress, search).run(workers)
    }

    /// Makes known what was found about a set.
    pub(super) fn note(&self, outer: usize, found: &[FoundPair]) {
        let by: List<u32> = found.iter().map(|&(_, _, by)| by).collect();
        let mut behind = by.clone();
        behind.dedup();
        self.by.note(outer, by);
        self.behind_first.note(outer, behind);
        // Whoever sees these sees the others.
        self.tables[self.filled].note(outer, found.iter().map(|&(s, j, _)| (s, j)).collect());
    }

    /// Whether the pairs of a set are known in the table that is being filled.
    #[inline]
    pub(super) fn is_known(&self, set: usize) -> bool {
        self.tables[self.filled].is_known(set)
    }

    /// The sets behind the first stages of a set's pairs.
    pub(super) fn behind_first(&self, set: usize) -> &[u32] {
        self.behind_first.of(set)
    }

    /// The pairs of a set that a stage is put in front of.
    #[inline]
    pub(super) fn pairs(&self, set: usize) -> &[(u32, u32)] {
        self.tables[self.behind].of(set)
    }

    /// Those of all.
    pub(super) fn table_behind(&self) -> &Lists<(u32, u32)> {
        &self.tables[self.behind]
    }

    /// Devices that so many device-seconds need at the least.
    fn devices_for(&self, device_seconds: f64) -> u32 {
        let devices = (device_seconds / self.question.target - ROUNDING).ceil();
        // Infinite for a target of 0 with work to do; 0 for an infinite target.
        if devices > 0.0 { devices.min(f64::from(NONE - 1)) as u32 } else { 0 }
    }

    /// Devices by which differences of device-seconds may be off: no load is below the whole's share.
    pub(super) fn room(&self) -> f64 {
        ROUNDING * f64::from(self.question.devices)
    }

    /// The fewest devices and replicas of any stage `outer \ inner` that keeps to the load with so many replicas behind it,
    /// going by what its nodes and edges take at the least; `None` if no number of devices would do. `crossings` are the edges
    /// into `outer`.
    #[inline]
    pub(super) fn least_stage(
        &self,
        (outer, inner): (usize, usize),
        crossings: &[Crossing],
        behind: u32,
    ) -> Option<(u32, u32)> {
        let least = match &self.rest {
            Some((rest, borders)) => rest.stage(self.model, borders, (outer, inner), crossings, behind),
            None => {
                let seconds = self.model.device_seconds[outer] - self.model.device_seconds[inner];
                seconds / self.question.target - self.room()
            }
        };
        let devices = self.at_least(least)?;
        Some((devices, devices.div_ceil(self.widest)))
    }

    /// The fewest devices that a stage can have of those that are no fewer than this; `None` if it can have no such number.
    #[inline]
    pub(super) fn at_least(&self, devices: f64) -> Option<u32> {
        // Not a number where there is neither work nor time for it.
        let enough = self.stage_devices.partition_point(|&m| f64::from(m) < devices);
        self.stage_devices.get(enough).copied()
    }

    /// Devices that a tail may take so that the rest can still be run.
    pub(super) fn most_devices(&self, outer: usize) -> Option<u32> {
        let rest = self.rest.as_ref().and_then(|(rest, borders)| Some(rest.devices(outer, borders).next()?.1));
        self.question.devices.checked_sub(self.even(outer).max(rest.unwrap_or(0)))
    }

    /// By replicas of a tail, a number of devices that is too many for the rest to be run, and 0 where none are few enough.
    pub(super) fn too_many_devices(&self, outer: usize, by_replicas: &mut [u32]) {
        let even = self.even(outer);
        let too_many = |rest: u32| (self.question.devices + 1).saturating_sub(even.max(rest));
        let (mut from, mut value) = (0, too_many(0));
        for (replicas, devices) in self.rest.iter().flat_map(|(rest, borders)| rest.devices(outer, borders)) {
            by_replicas[from..replicas as usize].fill(value);
            (from, value) = (replicas as usize, too_many(devices));
            if replicas > 0 && value <= 1 {
                break;
            }
        }
        by_replicas[from..].fill(value);
    }

    /// Devices that everything outside a set needs if all work is shared out evenly.
    fn even(&self, outer: usize) -> u32 {
        let seconds = &self.model.device_seconds;
        self.devices_for((seconds[self.model.full()] - seconds[outer]).max(0.0))
    }

    /// Makes `windows` the ranges of positions in a list of sources, by device-seconds, that may hold the inner set of a stage of `outer`.
    pub(super) fn windows(&self, order: &[Source], outer: usize, most: u32, windows: &mut Vec<(usize, usize)>) {
        windows.clear();
        let seconds = &self.model.device_seconds;
        let target = self.question.target;
        if target.is_infinite() {
            windows.push((0, order.len()));
            return;
        }
        let at = |limit: f64| order.partition_point(|source| source.device_seconds <= limit);
        let room = ROUNDING * target * f64::from(self.question.devices);
        // Descending devices give ascending device-seconds of the inner set.
        for &m in self.stage_devices.iter().rev() {
            let Some(before) = most.checked_sub(m) else { continue };
            let lowest = seconds[outer] - f64::from(m) * target - room;
            let from = order.partition_point(|source| source.device_seconds < lowest);
            let to = at((f64::from(before) * target + room).min(seconds[outer] + room));
            match windows.last_mut() {
                _ if from >= to => {}
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => windows.push((from, to)),
            }
        }
    }
}
