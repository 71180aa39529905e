//! Search over classes (tensor degree, replicas, number of stages) under 1F1B.
//!
//! Classes come in the order of a bound that needs no search. A class is discarded when [`super::decide`] proves that
//! no split of it beats the incumbent by more than the gap. Otherwise bisection finds the least `T` without such a
//! proof, which is the class's bound. The splits found on the way are plans, and queries with a period find more.
//! Moving runs of cuts improves the best split of a class. In most problems about a hundred classes fail their first
//! bound and two are searched. All budgets count operations, not time, so the answer is the same on every machine.

use super::{
    bounds::{self, reduce_factor},
    decide::{PipelineShape, StageArcs, TimeProbe},
    evaluate::ReplicaPipeline,
    kind::ScheduleKind,
    line::StageCost,
    routes::MOST_JUDGED,
    table::DegreeTable,
    weighing::Timing,
};
use plantui_core::{plan::runner::Runner, search::Search};

/// Factor on a time that "no" proves: nearly dominated states were dropped.
const PROOF: f64 = 1.0 - 4e-5;
/// Relative resolution of bisection, well above the error of a "no".
const FINEST: f64 = 2e-4;
/// Budget for improving one split, in stages times ranks.
const MOST_WORK: usize = 2_000_000;
/// Maximum number of splits of a class up to which all are tried.
const MOST_TRIED: usize = 40;

/// Class of plans with one tensor degree, number of replicas and number of stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanClass {
    /// Index of the degree's table.
    pub(super) table: usize,
    pub(super) d: u32,
    pub(super) stages: usize,
    /// Lower bound on the iteration time of its plans.
    pub(super) lower: f64,
}

/// Plan, described by its cuts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LineSplit {
    pub(super) table: usize,
    pub(super) d: u32,
    pub(super) kind: ScheduleKind,
    /// First unit of every stage.
    pub(super) begins: Vec<usize>,
    /// Nodes that recompute, by stage, if they were weighed (`weighing`). Empty: the table's choice.
    pub(super) again: Vec<Vec<usize>>,
    /// Iteration time by [`super::evaluate`] or the simulator.
    pub(super) seconds: f64,
}

/// Result of a search.
#[derive(Debug, Default)]
pub(super) struct FoundPlan {
    pub(super) best: Option<LineSplit>,
    /// Lower bound on the iteration time.
    pub(super) lower: f64,
    /// True if the search was stopped before its end.
    pub(super) stopped: bool,
    /// Numbers of classes, of classes searched, and of splits evaluated.
    pub(super) counts: [usize; 3],
}

/// Limits shared by all classes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchScope {
    pub(super) devices: u32,
    pub(super) microbatches: u32,
    pub(super) bandwidth: f64,
    pub(super) data_parallel: bool,
    pub(super) stages: Option<usize>,
    /// Devices of a machine, if only whole machines or a part of one may be used.
    pub(super) machine: Option<u32>,
    /// Engine that must run the plan.
    pub(super) runner: Option<Runner>,
    pub(super) gap: f64,
}

impl SearchScope {
    /// Numbers of replicas that divide the batch.
    pub(super) fn replicas(&self) -> Vec<u32> {
        self.replicas_on(self.devices)
    }

    fn replicas_on(&self, devices: u32) -> Vec<u32> {
        let most = if self.data_parallel { devices.min(self.microbatches) } else { 1 };
        (1..=most).filter(|d| self.microbatches.is_multiple_of(*d)).collect()
    }

    /// True if the rules allow this number of stages with `d` replicas of `t` devices.
    pub(super) fn may_use(&self, stages: usize, d: u32, t: u32) -> bool {
        let devices = stages as u32 * d * t;
        let whole = self.machine.is_none_or(|machine| devices <= machine || devices.is_multiple_of(machine));
        whole && self.stages.is_none_or(|asked| asked == stages) && stages as u32 * d <= self.microbatches
    }

    /// True if the schedule runs these stages and microbatches per replica, also in the engine if there is one.
    pub(super) fn runs(&self, kind: ScheduleKind, stages: usize, microbatches: u32) -> bool {
        let refused = |runner: Runner| runner.refuses(kind.schedule, stages as u32, microbatches).is_some();
        kind.runs(stages, microbatches) && !self.runner.is_some_and(refused)
    }

    /// Numbers of stages that fit the devices, with their replicas. Under 1F1B only the fewest replicas, which take the
    /// fewest devices. Otherwise all, since the number in flight depends on them.
    pub(super) fn shapes(&self, kind: ScheduleKind, t: u32, units: usize, devices: u32) -> Vec<(usize, u32)> {
        let replicas = self.replicas_on(devices);
        let most = units.min((devices / t).min(self.microbatches) as usize);
        let each = if kind == ScheduleKind::ONE { 1 } else { usize::MAX };
        let found = (1..=most).flat_map(|stages| {
            let fits = move |d: &u32| {
                let m = self.microbatches / d;
                stages as u32 * d * t <= devices && self.may_use(stages, *d, t) && self.runs(kind, stages, m)
            };
            replicas.iter().copied().filter(fits).take(each).map(move |d| (stages, d))
        });
        found.collect()
    }

    /// Maximum number of stages at a degree, over all replicas.
    pub(super) fn most_stages(&self, t: u32, units: usize) -> usize {
        units.min((self.devices / t).min(self.microbatches) as usize).min(self.stages.unwrap_or(usize::MAX))
    }
}

/// Search in progress.
pub(super) struct ClassSearch<'s, 'c> {
    pub(super) scope: SearchScope,
    pub(super) tables: Vec<DegreeTable<'c>>,
    pub(super) search: &'s Search,
    /// Seconds of the best plan from elsewhere; infinite if there is none.
    pub(super) known: f64,
    /// Receives every better split.
    pub(super) publish: &'s mut dyn FnMut(&LineSplit, &[DegreeTable<'_>]),
    /// Receives every better bound of this search.
    pub(super) bounded: &'s dyn Fn(f64),
    pub(super) found: FoundPlan,
    /// Evaluates splits on the routes of a topology, if there is one.
    pub(super) judge: Option<&'s RouteTime<'s>>,
    /// Best split of a class by the search's own times, not yet judged.
    pub(super) candidate: Option<LineSplit>,
}

/// Function that returns the seconds of a split on the routes of a topology.
pub(super) type RouteTime<'s> = dyn Fn(&LineSplit, &[DegreeTable<'_>]) -> Option<f64> + 's;

impl<'c> ClassSearch<'_, 'c> {
    /// Fills all tables, which are independent of each other. If stopped, the search ends.
    pub(super) fn fill(&mut self) {
        let (scope, search) = (self.scope, self.search);
        let tables = std::mem::take(&mut self.tables);
        let own: Vec<_> = tables.iter().map(|table| (table.costs, table.memory())).collect();
        let filled = |table: DegreeTable<'c>| {
            let most = scope.most_stages(table.costs.t, table.costs.len());
            table.filled(most, &|| search.cancelled())
        };
        let filled: Vec<Option<DegreeTable<'c>>> = search.map(tables, filled);
        self.found.stopped = filled.iter().any(Option::is_none);
        // Plans found so far are built from the costs alone.
        let or_bare = |(table, (costs, memory)): (Option<DegreeTable<'c>>, _)| {
            table.unwrap_or_else(|| DegreeTable::bare(costs, memory))
        };
        self.tables = filled.into_iter().zip(own).map(or_bare).collect();
    }

    /// Publishes splits with equal work per stage, for numbers of stages doubled each time. They exist long before a
    /// search ends.
    pub(super) fn straight(&mut self) {
        for index in 0..self.tables.len() {
            let costs = self.tables[index].costs;
            let (n, total) = (costs.len(), costs.fastest(0, costs.len()));
            let most = self.scope.most_stages(costs.t, n);
            let doubled =
                std::iter::successors(Some(1usize), |stages| Some(stages * 2)).take_while(|&stages| stages < most);
            for stages in doubled.chain([most]).filter(|&stages| stages > 0) {
                let fits = |d: &u32| {
                    self.scope.may_use(stages, *d, costs.t) && stages as u32 * d * costs.t <= self.scope.devices
                };
                let Some(d) = self.scope.replicas().into_iter().rev().find(fits) else { continue };
                if stages * (self.scope.microbatches / d) as usize > MOST_WORK
                    || (self.search.cancelled() && self.found.best.is_some())
                {
                    continue;
                }
                let mut begins = vec![0];
                for stage in 1..stages {
                    let (share, least) = (total * stage as f64 / stages as f64, begins[stage - 1] + 1);
                    let own = (least..n).find(|&unit| costs.fastest(0, unit) >= share).unwrap_or(n);
                    begins.push(own.min(n - (stages - stage)));
                }
                if let Some(split) = self.evaluated(index, d, begins, f64::INFINITY) {
                    self.publish(&split);
                }
            }
        }
    }

    /// Searches all classes under 1F1B.
    pub(super) fn run(&mut self) {
        let mut classes = self.classes();
        classes.sort_by(|a, b| a.lower.total_cmp(&b.lower));
        self.found.counts[0] += classes.len();
        let count = classes.len();
        self.found.lower = classes.first().map_or(f64::INFINITY, |class| class.lower);
        for i in 0..count {
            let judged = if self.judge.is_some() { MOST_JUDGED } else { usize::MAX };
            if classes[i].lower >= self.goal() || i >= judged {
                break;
            }
            self.found.counts[1] += 1;
            self.search.report_fraction(i as f64 / count as f64);
            self.explore(&mut classes[i]);
            self.settle_candidate();
            let lower = classes.iter().map(|class| class.lower).fold(f64::INFINITY, f64::min);
            self.found.lower = self.found.best.as_ref().map_or(lower, |best| lower.min(best.seconds));
            if self.search.cancelled() {
                self.found.stopped = true;
                return;
            }
            (self.bounded)(self.found.lower.min(self.known));
        }
    }

    /// Time that a plan must be below to improve the incumbent by more than the gap.
    pub(super) fn goal(&self) -> f64 {
        let best = self.found.best.as_ref().map_or(f64::INFINITY, |best| best.seconds);
        best.min(self.known) * (1.0 - self.scope.gap)
    }

    fn classes(&self) -> Vec<PlanClass> {
        let mut classes = vec![];
        let replicas = self.scope.replicas();
        for (index, table) in self.tables.iter().enumerate() {
            let (costs, n) = (table.costs, table.costs.len());
            let total = costs.fastest(0, n);
            for &d in &replicas {
                let m = self.scope.microbatches / d;
                let most = (self.scope.devices / (d * costs.t)).min(m) as usize;
                for stages in 1..=most.min(table.stages()) {
                    let rest = table.rest(stages, 0);
                    if !self.scope.may_use(stages, d, costs.t) || rest == f64::INFINITY {
                        continue;
                    }
                    let m = f64::from(m);
                    let loops = 1.0 + ((m - 1.0) / stages as f64).floor();
                    let heaviest = (total / stages as f64).max(costs.heaviest);
                    let left = m - 1.0 - (loops - 1.0) * stages as f64;
                    let around = rest * loops + left * heaviest * if loops > 1.0 { 1.0 } else { 0.5 };
                    let lower = around.max(m * heaviest);
                    classes.push(PlanClass { table: index, d, stages, lower: lower * PROOF });
                }
            }
        }
        classes
    }

    fn shape(&self, class: &PlanClass) -> PipelineShape {
        PipelineShape {
            stages: class.stages,
            microbatches: self.scope.microbatches / class.d,
            reduce: reduce_factor(class.d, self.scope.bandwidth),
        }
    }

    /// Finds plans of a class and its bound.
    fn explore(&mut self, class: &mut PlanClass) {
        let shape = self.shape(class);
        let mut own: Option<LineSplit> = None;
        let (mut low, mut high) = (class.lower, self.goal());
        let mut arcs;
        if high == f64::INFINITY {
            // Without an incumbent, `T` grows from the class's bound until there is a plan.
            let mut step = 0.02;
            high = low.max(f64::MIN_POSITIVE);
            loop {
                high *= 1.0 + step;
                step *= 2.0;
                arcs = StageArcs::new(&mut self.tables[class.table], shape, high);
                if self.ask(class, &arcs, high, f64::INFINITY, &mut own) {
                    break;
                }
                low = high * PROOF;
                if step > 1e9 || self.search.cancelled() {
                    class.lower = if step > 1e9 { f64::INFINITY } else { low };
                    return;
                }
            }
        } else {
            arcs = StageArcs::new(&mut self.tables[class.table], shape, high);
            if !self.ask(class, &arcs, high, f64::INFINITY, &mut own) {
                class.lower = class.lower.max(high * PROOF);
                return;
            }
        }
        while high - low > (0.25 * self.scope.gap).max(FINEST) * high && low < self.goal() && !self.search.cancelled() {
            let middle = (low + high) / 2.0;
            if self.ask(class, &arcs, middle, f64::INFINITY, &mut own) {
                high = middle;
            } else {
                low = middle * PROOF;
            }
            class.lower = class.lower.max(low);
        }
        if low < self.goal() && !self.search.cancelled() {
            self.in_step(class, &arcs, low, &mut own);
            for begins in all_splits(self.tables[class.table].costs.len(), class.stages) {
                self.consider(class.table, class.d, begins, &mut own);
            }
        }
        if class.lower < self.goal()
            && !self.search.cancelled()
            && let Some(own) = own
        {
            self.improve(own);
        }
    }

    /// Searches for plans whose windows keep a period, by bisection to the shortest period that has any.
    fn in_step(&mut self, class: &PlanClass, arcs: &StageArcs, low: f64, own: &mut Option<LineSplit>) {
        let m = f64::from(self.shape(class).microbatches);
        let Some(best) = own.as_ref().map(|own| own.seconds) else { return };
        let total = self.tables[class.table].costs.fastest(0, self.tables[class.table].costs.len());
        let (mut short, mut long) = (total / class.stages as f64, best / m);
        for _ in 0..12 {
            if long - short <= 1e-4 * long || low >= self.goal() || self.search.cancelled() {
                return;
            }
            let period = (short + long) / 2.0;
            let time = own.as_ref().map_or(best, |own| own.seconds).max(self.goal().min(best));
            if self.ask(class, arcs, time, period, own) { long = period } else { short = period }
        }
    }

    /// Runs the decision problem and evaluates its splits. Returns true if there are any.
    fn ask(
        &mut self,
        class: &PlanClass,
        arcs: &StageArcs,
        time: f64,
        period: f64,
        own: &mut Option<LineSplit>,
    ) -> bool {
        let splits = arcs.decide(&self.tables[class.table], TimeProbe { time, period });
        let any = !splits.is_empty();
        for begins in splits {
            self.consider(class.table, class.d, begins, own);
        }
        any
    }

    /// Evaluates a split, publishes it and keeps it as `own` if it is faster.
    fn consider(&mut self, table: usize, d: u32, begins: Vec<usize>, own: &mut Option<LineSplit>) {
        if own.as_ref().is_some_and(|own| own.begins == begins) {
            return;
        }
        let Some(split) = self.evaluated(table, d, begins, f64::INFINITY) else { return };
        self.publish(&split);
        if own.as_ref().is_none_or(|own| split.seconds < own.seconds) {
            *own = Some(split);
        }
    }

    /// Judges the best split since the last call.
    pub(super) fn settle_candidate(&mut self) {
        let (Some(judge), Some(split)) = (self.judge, self.candidate.take()) else { return };
        let Some(seconds) = judge(&split, &self.tables) else { return };
        if self.found.best.as_ref().is_none_or(|best| seconds < best.seconds) {
            let split = LineSplit { seconds, ..split };
            (self.publish)(&split, &self.tables);
            self.found.best = Some(split);
        }
    }

    pub(super) fn publish(&mut self, split: &LineSplit) {
        if self.judge.is_some() {
            if self.candidate.as_ref().is_none_or(|known| split.seconds < known.seconds) {
                self.candidate = Some(split.clone());
            }
            return;
        }
        if self.found.best.as_ref().is_none_or(|best| split.seconds < best.seconds) {
            (self.publish)(split, &self.tables);
            self.found.best = Some(split.clone());
        }
    }

    /// Split with its time; `None` if it does not fit or its bound is not below `most`.
    pub(super) fn evaluated(&mut self, table: usize, d: u32, begins: Vec<usize>, most: f64) -> Option<LineSplit> {
        let count = begins.len();
        let (microbatches, factor) = (self.scope.microbatches / d, reduce_factor(d, self.scope.bandwidth));
        let costs = self.tables[table].costs;
        let mut stages: Vec<StageCost> = Vec::with_capacity(count);
        let mut again = Vec::with_capacity(count);
        for s in 0..count {
            let (a, b) = (begins[s], begins.get(s + 1).copied().unwrap_or(costs.len()));
            let extra = self.tables[table].extra(a, b, (count - s) as f64)?;
            let next = begins.get(s + 2).copied().unwrap_or(costs.len());
            stages.push(costs.stage(a, b, next, extra.chosen));
            again.push(extra.chosen);
        }
        if most < f64::INFINITY && bounds::pipeline(&stages, microbatches, factor, costs.halves) >= most {
            return None;
        }
        self.found.counts[2] += 1;
        let parts = |cost: &StageCost| [cost.forward, cost.backward, factor * cost.parameters];
        let transfers = costs.transfers(&begins);
        let time = |stages: &[StageCost], _: &[f64]| {
            let stages = stages.iter().map(parts).collect();
            Some(ReplicaPipeline { microbatches, stages, transfers: transfers.clone() }.seconds())
        };
        let timing = Timing {
            begins: &begins,
            stages: &stages,
            again: &again,
            in_flight: &|s| (count - s) as f64,
            price: factor / f64::from(microbatches),
            time: &time,
        };
        let (seconds, again) = timing.least(&self.tables[table])?;
        Some(LineSplit { table, d, kind: ScheduleKind::ONE, begins, again, seconds })
    }

    /// Improves a split by moving its cuts.
    fn improve(&mut self, own: LineSplit) {
        let count = own.begins.len();
        let (table, d) = (own.table, own.d);
        let ranks = count + (self.scope.microbatches / d) as usize;
        self.climb(own, MOST_WORK, &|class_search, begins, most| {
            let split = class_search.evaluated(table, d, begins, most);
            let took = count * count / 8 + if split.is_some() { count * ranks } else { 0 };
            (split, took)
        });
    }
}

/// All splits of the units into stages; none if there are more than `MOST_TRIED`.
pub(super) fn all_splits(units: usize, stages: usize) -> Vec<Vec<usize>> {
    let mut found = vec![vec![0]];
    for stage in 1..stages {
        let ends = |begins: &Vec<usize>| begins[stage - 1] + 1..=units - (stages - stage);
        let longer = found.iter().flat_map(|begins| ends(begins).map(|next| [begins.as_slice(), &[next]].concat()));
        found = longer.take(MOST_TRIED + 1).collect();
        if found.len() > MOST_TRIED {
            return vec![];
        }
    }
    found
}
