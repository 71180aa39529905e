//! The decision problem: is there a plan in which no stage takes longer than `T`, and with how few devices?
//!
//! The published recurrence minimises the largest load over (set, devices, replicas). Here the load is fixed to a
//! target `T`. Let the closed set `D` be the tail of the pipeline. `F[D]` holds the Pareto-optimal pairs (replicas `s`,
//! devices `j`) with which every stage of `D` takes at most `T`:
//!
//! ```text
//! F[∅] = {(0, 0)}
//! F[D] = pareto { (s + d, j + t·d) : D' ⊂ D, (s, j) ∈ F[D'], load(D \ D', t, d, ⌈(s + d) / d⌉) ≤ T }
//! ```
//!
//! With fewer replicas after it a stage needs less memory. So for fixed `(D', t, s)` only the smallest `d` with a load
//! up to `T` matters. That `d` grows with `s`: every `d` covers one interval of `F[D']`, and bisection over the
//! microbatches in flight finds its end.
//!
//! Lower bound on the devices of a set: its device-seconds divided by `T`. Pairs that leave too few devices for the
//! rest are dropped. For a stage on `m` devices, the device-seconds of `D'` lie in a window as wide as the slack `k·T −
//! total`. Where the windows hold many sets (tight memory), a walk down from `D` replaces them and stops where a stage
//! is too slow or too large.
//!
//! A closed set `I` is dominated as inner set if `F[I + v]` has a pair as good as each of `F[I]`, and no stage gets
//! slower without layer `v`: the compute of `v` is at least the transfers that the cut adds. In any plan, `v` can then
//! move into the tail.
//!
//! If the number of stages is given, there is one table of `F` for each number. Time `O(pairs in the windows · degrees ·
//! |F|)`, memory `O(sets · |F|)`, both times the number of stages where that is given. No pair of sets is stored.

use super::{
    cumulative,
    model::{Crossing, Degree, PiperModel},
    modes::{StageKey, StageOracle},
    settings::PiperSettings,
};
use plantui_core::{plan::WarmUp, search::Search};

/// Pareto-optimal (replicas, devices): replicas ascend, devices descend.
type Frontier = Vec<(u32, u32)>;

const NONE: u32 = u32::MAX;
/// Number of inner sets in the windows of a set above which a walk down from the set visits fewer.
const MANY_CANDIDATES: usize = 128;
/// Tolerance where device-seconds are turned into whole devices.
const ROUNDING: f64 = 1e-9;

/// Decision problem: a target load and limits on devices, replicas and stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// Load that no stage may exceed, seconds per sample; infinite to decide about memory alone.
    pub(super) target: f64,
    pub(super) devices: u32,
    /// Upper bound on the replicas of all stages together.
    pub(super) most_replicas: u32,
    /// Exact number of stages, if it is given.
    pub(super) stages: Option<usize>,
    /// Fractions of the whole search that are done before and after this probe.
    pub(super) progress: (f64, f64),
}

/// Stage `outer \ inner` of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundStage {
    pub(super) outer: u32,
    pub(super) inner: u32,
    /// Index into the degrees of the model.
    pub(super) degree: usize,
    pub(super) d: u32,
}

/// Answer to a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// Stages with the fewest devices, first stage first.
    Yes(Vec<FoundStage>),
    No,
    Cancelled,
}

/// Decides probes over one model. Its oracle caches the costs of stages between probes.
pub(super) struct Prober<'m, 'a> {
    pub(super) model: &'m PiperModel<'a>,
    pub(super) oracle: StageOracle<'m, 'a>,
    warm_up: WarmUp,
    /// Fewest devices by number of replicas, for the set at hand.
    fewest: Vec<u32>,
    /// Range of `fewest` that is in use.
    touched: (usize, usize),
    /// By set: the outer set whose walk visited it last.
    visited: Vec<u32>,
    stack: Vec<u32>,
}

/// Tables of one probe.
struct Tables<'p> {
    probe: &'p Probe,
    /// By set; one table for each number of stages if that is given.
    frontiers: Vec<Vec<Frontier>>,
    /// Index of the table with the tails after a stage: the table in progress, or with a given number of stages the one
    /// for one stage fewer.
    behind: usize,
    /// Numbers of devices that a stage may take, ascending.
    stage_devices: Vec<u32>,
    /// True for closed sets that a larger one replaces as inner set of a stage.
    dominated: Vec<bool>,
}

impl<'m, 'a> Prober<'m, 'a> {
    pub(super) fn new(model: &'m PiperModel<'a>, settings: &PiperSettings, memory_bytes: f64) -> Self {
        Prober {
            model,
            oracle: StageOracle::new(model, settings, memory_bytes),
            warm_up: settings.warm_up,
            fewest: vec![],
            touched: (usize::MAX, 0),
            visited: vec![],
            stack: vec![],
        }
    }

    /// True if some knapsack was too large to be solved exactly.
    pub(super) fn unproven(&self) -> bool {
        self.oracle.unproven
    }

    pub(super) fn decide(&mut self, probe: &Probe, search: &Search) -> Answer {
        let model = self.model;
        if devices_for(probe, model.device_seconds[model.full()]) > probe.devices {
            return Answer::No;
        }
        if self.warm_up == WarmUp::Cumulative {
            return cumulative::decide(self, probe, search);
        }
        self.fewest = vec![NONE; probe.most_replicas as usize + 1];
        self.visited.resize(model.sets.len(), NONE);
        let mut tables = Tables {
            probe,
            frontiers: vec![vec![vec![]; model.sets.len()]; 1 + probe.stages.unwrap_or(0)],
            behind: 0,
            stage_devices: stage_devices(model, probe),
            dominated: vec![false; model.sets.len()],
        };
        tables.frontiers[0][0] = vec![(0, 0)];
        for (table, progress) in rounds(probe) {
            tables.behind = table.saturating_sub(1);
            self.visited.fill(NONE);
            if !self.fill(&mut tables, table, progress, search) {
                return Answer::Cancelled;
            }
        }
        match tables.frontiers[tables.frontiers.len() - 1][model.full()].last() {
            None => Answer::No,
            Some(&(replicas, devices)) => Answer::Yes(self.trace_back(&mut tables, replicas, devices)),
        }
    }

    /// Fills a table, smaller sets first; false if cancelled.
    fn fill(&mut self, tables: &mut Tables<'_>, table: usize, (before, after): (f64, f64), search: &Search) -> bool {
        let full = self.model.full();
        for outer in 1..=full {
            if outer % 16 == 0 {
                search.report_fraction(before + (after - before) * outer as f64 / full as f64);
            }
            if search.cancelled() {
                return false;
            }
            tables.frontiers[table][outer] = self.frontier(tables, outer);
            if tables.probe.stages.is_none() {
                self.mark_dominated(tables, outer);
            }
        }
        true
    }

    /// Marks the sets with one layer less that `larger` replaces as inner set.
    fn mark_dominated(&self, tables: &mut Tables<'_>, larger: usize) {
        for (set, v) in self.model.sets.steps_below(larger) {
            let set = set as usize;
            if self.model.removable[v as usize] && dominates(tables.pairs(larger), tables.pairs(set)) {
                tables.dominated[set] = true;
            }
        }
    }

    /// Pareto-optimal pairs of a set, from those of all smaller ones.
    fn frontier(&mut self, tables: &Tables<'_>, outer: usize) -> Frontier {
        let model = self.model;
        let Some(most) = most_devices(model, tables.probe, outer) else { return vec![] };
        let crossings = model.crossings(outer);
        let windows = windows(model, tables.probe, &tables.stage_devices, outer, most);
        let candidates: usize = windows.iter().map(|(from, to)| to - from).sum();
        if candidates > MANY_CANDIDATES && model.sets.below(outer).is_some() {
            self.walk(tables, outer, most, &crossings);
        } else {
            for position in windows.into_iter().flat_map(|(from, to)| from..to) {
                let inner = model.by_device_seconds[position] as usize;
                let Some(&(_, devices)) = tables.pairs(inner).last() else { continue };
                if devices < most && inner < outer && !tables.dominated[inner] && model.sets.is_subset(inner, outer) {
                    self.extend(tables, outer, inner, most, &crossings);
                }
            }
        }
        self.collect()
    }

    /// Visits the inner sets of `outer` from the largest down, each once. Turns back where the stage is too slow or too
    /// large at every degree: larger stages are worse.
    fn walk(&mut self, tables: &Tables<'_>, outer: usize, most: u32, crossings: &[Crossing]) {
        let (model, probe) = (self.model, tables.probe);
        self.visited[outer] = outer as u32;
        self.stack.clear();
        self.stack.push(outer as u32);
        while let Some(set) = self.stack.pop() {
            for &inner in model.sets.below(set as usize).unwrap_or_default() {
                let inner = inner as usize;
                if std::mem::replace(&mut self.visited[inner], outer as u32) == outer as u32 {
                    continue;
                }
                let memory_bytes = self.oracle.memory_bytes();
                let may_fit = (0..model.degrees.len()).any(|degree| {
                    let most_d = (most / model.degrees[degree].t).min(probe.most_replicas);
                    model.may_fit(degree, (outer, inner), most_d, probe.target, memory_bytes)
                });
                if !may_fit {
                    continue;
                }
                self.stack.push(inner as u32);
                let reaches = tables.pairs(inner).last().is_some_and(|&(_, devices)| devices < most);
                if reaches && !tables.dominated[inner] {
                    self.extend(tables, outer, inner, most, crossings);
                }
            }
        }
    }

    /// Puts the stage `outer \ inner` at every degree in front of every pair of the inner frontier.
    fn extend(&mut self, tables: &Tables<'_>, outer: usize, inner: usize, most: u32, crossings: &[Crossing]) {
        for degree in 0..self.model.degrees.len() {
            self.extend_at(tables, degree, (outer, inner), most, crossings);
        }
    }

    fn extend_at(
        &mut self,
        tables: &Tables<'_>,
        degree: usize,
        (outer, inner): (usize, usize),
        most: u32,
        crossings: &[Crossing],
    ) {
        let (model, probe) = (self.model, tables.probe);
        let Some(stage) = model.stage(degree, outer, inner, crossings) else { return };
        let key = StageKey { degree: degree as u32, outer: outer as u32, inner: inner as u32 };
        let t = model.degrees[degree].t;
        let pairs = tables.pairs(inner);
        let mut next = 0;
        for &d in &model.replicas {
            // Pairs with too many replicas for this d have too many for every larger one.
            let reachable = pairs.partition_point(|&(s, _)| s + d <= probe.most_replicas);
            let devices = t.saturating_mul(d);
            if next >= reachable || devices.saturating_add(pairs[pairs.len() - 1].1) > most {
                return;
            }
            // Pairs that need too many devices for this d need too many for every larger one.
            next = next.max(pairs.partition_point(|&(_, j)| j + devices > most));
            if next >= reachable {
                continue;
            }
            if f64::from(d) * probe.target < stage.time_s * (1.0 - ROUNDING)
                || !self.oracle.fast_enough(key, &stage, d, probe.target)
            {
                continue;
            }
            let in_flight = |i: usize| (pairs[i].0 + d).div_ceil(d);
            let range = in_flight(next)..=in_flight(reachable - 1);
            let Some(most_in_flight) = self.oracle.most_in_flight(key, &stage, d, range, probe.target) else {
                continue;
            };
            while next < reachable && in_flight(next) <= most_in_flight {
                let (s, j) = pairs[next];
                let behind = (s + d) as usize;
                self.fewest[behind] = self.fewest[behind].min(devices + j);
                self.touched = (self.touched.0.min(behind), self.touched.1.max(behind));
                next += 1;
            }
        }
    }

    /// Takes the Pareto-optimal pairs out of `fewest` and clears it.
    fn collect(&mut self) -> Frontier {
        let (first, last) = std::mem::replace(&mut self.touched, (usize::MAX, 0));
        let (mut frontier, mut fewest) = (vec![], NONE);
        if first > last {
            return frontier;
        }
        for s in first..=last {
            let devices = std::mem::replace(&mut self.fewest[s], NONE);
            if devices < fewest {
                fewest = devices;
                frontier.push((s as u32, devices));
            }
        }
        frontier
    }

    /// Stages that reach (replicas, devices) from the full set, first stage first.
    fn trace_back(&mut self, tables: &mut Tables<'_>, mut replicas: u32, mut devices: u32) -> Vec<FoundStage> {
        let mut stages = vec![];
        let mut outer = self.model.full();
        while outer != 0 {
            if let Some(count) = tables.probe.stages {
                tables.behind = count - stages.len() - 1;
            }
            let (stage, s, j) =
                self.first_stage(tables, outer, replicas, devices).expect("every pair of a frontier has a stage");
            stages.push(stage);
            (outer, replicas, devices) = (stage.inner as usize, s, j);
        }
        stages
    }

    /// First stage of `outer` that leaves a pair of the inner frontier within (replicas, devices), and that pair.
    fn first_stage(
        &mut self,
        tables: &Tables<'_>,
        outer: usize,
        replicas: u32,
        devices: u32,
    ) -> Option<(FoundStage, u32, u32)> {
        let model = self.model;
        let crossings = model.crossings(outer);
        let target = tables.probe.target;
        for inner in 0..outer {
            let memory_bytes = self.oracle.memory_bytes();
            // Of the pairs with few enough replicas, the last has the fewest devices.
            let pairs = tables.pairs(inner);
            let fewest = pairs[..pairs.partition_point(|&(s, _)| s < replicas)].last();
            if fewest.is_none_or(|&(_, j)| j >= devices)
                || !(0..model.degrees.len())
                    .any(|degree| model.may_fit(degree, (outer, inner), replicas, target, memory_bytes))
                || !model.sets.is_subset(inner, outer)
            {
                continue;
            }
            for (degree, Degree { t, .. }) in model.degrees.iter().enumerate() {
                let Some(stage) = model.stage(degree, outer, inner, &crossings) else { continue };
                let key = StageKey { degree: degree as u32, outer: outer as u32, inner: inner as u32 };
                for &d in &model.replicas {
                    let rest = replicas.checked_sub(d).zip(devices.checked_sub(t.saturating_mul(d)));
                    let Some((most_s, most_j)) = rest else { break };
                    if !self.oracle.fast_enough(key, &stage, d, target) {
                        continue;
                    }
                    for &(s, j) in pairs {
                        if s <= most_s && j <= most_j && self.oracle.fits(key, &stage, d, (s + d).div_ceil(d), target) {
                            return Some((FoundStage { outer: outer as u32, inner: inner as u32, degree, d }, s, j));
                        }
                    }
                }
            }
        }
        None
    }
}

impl Tables<'_> {
    /// Pairs of a set that a stage is put in front of.
    fn pairs(&self, set: usize) -> &Frontier {
        &self.frontiers[self.behind][set]
    }
}

/// True if every pair of `b` has one in `a` with no more replicas and no more devices.
fn dominates(a: &[(u32, u32)], b: &[(u32, u32)]) -> bool {
    b.iter().all(|&(s, j)| a[..a.partition_point(|&(own, _)| own <= s)].last().is_some_and(|&(_, own)| own <= j))
}

/// Tables to fill in turn, each with the progress before and after it: one, or one for each number of stages.
pub(super) fn rounds(probe: &Probe) -> Vec<(usize, (f64, f64))> {
    let (before, after) = probe.progress;
    match probe.stages {
        None => vec![(0, probe.progress)],
        Some(stages) => {
            let at = |done: usize| before + (after - before) * done as f64 / stages as f64;
            (1..=stages).map(|count| (count, (at(count - 1), at(count)))).collect()
        }
    }
}

/// Numbers of devices that a stage may take, ascending.
pub(super) fn stage_devices(model: &PiperModel<'_>, probe: &Probe) -> Vec<u32> {
    let replicas = |t: u32| model.replicas.iter().map(move |&d| d.saturating_mul(t));
    let mut counts: Vec<u32> =
        model.degrees.iter().flat_map(|degree| replicas(degree.t)).filter(|&m| m <= probe.devices).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Lower bound on the devices that run so many device-seconds.
fn devices_for(probe: &Probe, device_seconds: f64) -> u32 {
    let devices = (device_seconds / probe.target - ROUNDING).ceil();
    // Infinite for a target of 0 with work to do; 0 for an infinite target.
    if devices > 0.0 { devices.min(f64::from(NONE - 1)) as u32 } else { 0 }
}

/// Upper bound on the devices of a tail that leaves enough for the rest; `None` if there is none.
pub(super) fn most_devices(model: &PiperModel<'_>, probe: &Probe, outer: usize) -> Option<u32> {
    let seconds = &model.device_seconds;
    probe.devices.checked_sub(devices_for(probe, (seconds[model.full()] - seconds[outer]).max(0.0)))
}

/// Ranges of positions in the list of sets by device-seconds that may hold the inner set of a stage of `outer`.
pub(super) fn windows(
    model: &PiperModel<'_>,
    probe: &Probe,
    stage_devices: &[u32],
    outer: usize,
    most: u32,
) -> Vec<(usize, usize)> {
    let (seconds, order) = (&model.device_seconds, &model.by_device_seconds);
    if probe.target.is_infinite() {
        return vec![(0, order.len())];
    }
    let tolerance = ROUNDING * probe.target * f64::from(probe.devices);
    let mut windows: Vec<(usize, usize)> = vec![];
    // Descending devices give ascending device-seconds of the inner set.
    for &m in stage_devices.iter().rev() {
        let Some(before) = most.checked_sub(m) else { continue };
        let lowest = seconds[outer] - f64::from(m) * probe.target - tolerance;
        let highest = (f64::from(before) * probe.target + tolerance).min(seconds[outer] + tolerance);
        let from = order.partition_point(|&set| seconds[set as usize] < lowest);
        let to = order.partition_point(|&set| seconds[set as usize] <= highest);
        match windows.last_mut() {
            _ if from >= to => {}
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => windows.push((from, to)),
        }
    }
    windows
}
