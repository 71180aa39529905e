//! The search over classes: tensor degree, replicas, number of stages.
//!
//! Classes are taken in the order of a bound that needs no search. One is left for good when [`super::decide`] says that
//! no split of it is faster than the best plan by more than the gap. Else the least `T` for which it does not say so is
//! the class's bound, and the splits found on the way are plans; more are looked for with a period to keep. The best
//! of a class is improved by moving runs of cuts. In most problems some hundred classes fall to their first bound and two are
//! searched. Everything is counted, nothing timed: the answer is the same on every machine.

use super::{
    bounds::{self, reduce_factor},
    decide::{Arcs, Question, Shape},
    evaluate::Batch,
    kind::Kind,
    line::StageCost,
    routes::MOST_JUDGED,
    table::Table,
    weighing::Timing,
};
use crate::{plan::runner::Runner, planner::Search};

/// What a "no" may be off by, relative: sums that are nearly as good as others were dropped.
const PROOF: f64 = 1.0 - 4e-5;
/// Times are told apart no finer than this, relative: well above what a "no" may be off by.
const FINEST: f64 = 2e-4;
/// Operations that improving one split may take, in stages times ranks.
const MOST_WORK: usize = 2_000_000;
/// Where a class has no more splits than this, all are tried.
const MOST_TRIED: usize = 40;

/// A degree, replicas and stages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// Which table.
    pub(super) table: usize,
    pub(super) d: u32,
    pub(super) stages: usize,
    /// No plan of it is faster.
    pub(super) lower: f64,
}

/// A plan by its cuts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Split {
    pub(super) table: usize,
    pub(super) d: u32,
    pub(super) kind: Kind,
    /// First unit of every stage.
    pub(super) begins: Vec<usize>,
    /// By stage, the nodes that recompute where they were weighed; else those are the table's choice.
    pub(super) again: Vec<Vec<usize>>,
    /// Time of a batch by [`super::evaluate`], or simulated.
    pub(super) seconds: f64,
}

/// What a search has found.
#[derive(Debug, Default)]
pub(super) struct FoundPlan {
    pub(super) best: Option<Split>,
    /// No plan is faster.
    pub(super) lower: f64,
    /// Whether it was stopped before its end.
    pub(super) stopped: bool,
    /// Classes, those that were searched, splits that were evaluated.
    pub(super) counts: [usize; 3],
}

/// Limits that all classes share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope {
    pub(super) devices: u32,
    pub(super) microbatches: u32,
    pub(super) bandwidth: f64,
    pub(super) data_parallel: bool,
    pub(super) stages: Option<usize>,
    /// Devices of a machine, where only whole ones are used, or a part of one.
    pub(super) machine: Option<u32>,
    /// The engine that must run the plan.
    pub(super) runner: Option<Runner>,
    pub(super) gap: f64,
}

impl Scope {
    /// Numbers of replicas that divide the batch.
    pub(super) fn replicas(&self) -> Vec<u32> {
        self.replicas_on(self.devices)
    }

    fn replicas_on(&self, devices: u32) -> Vec<u32> {
        let most = if self.data_parallel { devices.min(self.microbatches) } else { 1 };
        (1..=most).filter(|d| self.microbatches.is_multiple_of(*d)).collect()
    }

    /// Whether so many stages of replicas of so many devices may be.
    pub(super) fn may_use(&self, stages: usize, d: u32, t: u32) -> bool {
        let devices = stages as u32 * d * t;
        let whole = self.machine.is_none_or(|machine| devices <= machine || devices.is_multiple_of(machine));
        whole && self.stages.is_none_or(|asked| asked == stages) && stages as u32 * d <= self.microbatches
    }

    /// Whether a schedule runs so many stages and microbatches of a replica, in the engine if one must run it.
    pub(super) fn runs(&self, kind: Kind, stages: usize, microbatches: u32) -> bool {
        let refused = |runner: Runner| runner.refuses(kind.schedule, stages as u32, microbatches).is_some();
        kind.runs(stages, microbatches) && !self.runner.is_some_and(refused)
    }

    /// The numbers of stages there can be on so many devices, and replicas of each: the fewest, which take the fewest
    /// devices; where what is in flight depends on them, all.
    pub(super) fn shapes(&self, kind: Kind, t: u32, units: usize, devices: u32) -> Vec<(usize, u32)> {
        let replicas = self.replicas_on(devices);
        let most = units.min((devices / t).min(self.microbatches) as usize);
        let each = if kind == Kind::ONE { 1 } else { usize::MAX };
        let found = (1..=most).flat_map(|stages| {
            let fits = move |d: &u32| {
                let m = self.microbatches / d;
                stages as u32 * d * t <= devices && self.may_use(stages, *d, t) && self.runs(kind, stages, m)
            };
            replicas.iter().copied().filter(fits).take(each).map(move |d| (stages, d))
        });
        found.collect()
    }

    /// The most stages at a degree, whatever the replicas.
    pub(super) fn most_stages(&self, t: u32, units: usize) -> usize {
        units.min((self.devices / t).min(self.microbatches) as usize).min(self.stages.unwrap_or(usize::MAX))
    }
}

/// A search in progress.
pub(super) struct Hunt<'s, 'c> {
    pub(super) scope: Scope,
    pub(super) tables: Vec<Table<'c>>,
    pub(super) search: &'s Search,
    /// Seconds of the best plan that is known otherwise; infinite where there is none.
    pub(super) known: f64,
    /// Called with every better split.
    pub(super) publish: &'s mut dyn FnMut(&Split, &[Table<'_>]),
    /// Called with every better bound of what is searched here.
    pub(super) bounded: &'s dyn Fn(f64),
    pub(super) found: FoundPlan,
    /// Where splits are worth what they take on the routes of a topology: seconds there.
    pub(super) judge: Option<&'s Judge<'s>>,
    /// The best split of a class, by the search's own times, that is to be judged.
    pub(super) candidate: Option<Split>,
}

/// What a split takes on the routes of a topology.
pub(super) type Judge<'s> = dyn Fn(&Split, &[Table<'_>]) -> Option<f64> + 's;

impl<'c> Hunt<'_, 'c> {
    /// The shortest ways through the stages of every table, which know nothing of one another; a search that is stopped
    /// meanwhile is over.
    pub(super) fn fill(&mut self) {
        let (scope, search) = (self.scope, self.search);
        let tables = std::mem::take(&mut self.tables);
        let own: Vec<_> = tables.iter().map(|table| (table.costs, table.memory())).collect();
        let filled = |table: &Table<'c>| {
            let most = scope.most_stages(table.costs.t, table.costs.len());
            table.clone().filled(most, &|| search.cancelled())
        };
        let filled: Vec<Option<Table<'c>>> = search.map(&tables, filled);
        self.found.stopped = filled.iter().any(Option::is_none);
        // What was found stays to be built from costs alone.
        let or_bare =
            |(table, (costs, memory)): (Option<Table<'c>>, _)| table.unwrap_or_else(|| Table::bare(costs, memory));
        self.tables = filled.into_iter().zip(own).map(or_bare).collect();
    }

    /// Plans of equal work by stage, the number of stages doubled each time: one is there long before a search is through.
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

    /// All classes under 1F1B.
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

    /// What a plan must be faster than to be worth finding.
    pub(super) fn goal(&self) -> f64 {
        let best = self.found.best.as_ref().map_or(f64::INFINITY, |best| best.seconds);
        best.min(self.known) * (1.0 - self.scope.gap)
    }

    fn classes(&self) -> Vec<Class> {
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
                    classes.push(Class { table: index, d, stages, lower: lower * PROOF });
                }
            }
        }
        classes
    }

    fn shape(&self, class: &Class) -> Shape {
        Shape {
            stages: class.stages,
            microbatches: self.scope.microbatches / class.d,
            reduce: reduce_factor(class.d, self.scope.bandwidth),
        }
    }

    /// Finds plans of a class and its bound.
    fn explore(&mut self, class: &mut Class) {
        let shape = self.shape(class);
        let mut own: Option<Split> = None;
        let (mut low, mut high) = (class.lower, self.goal());
        let mut arcs;
        if high == f64::INFINITY {
            // The first class: up from its bound until there is a plan.
            let mut step = 0.02;
            high = low.max(f64::MIN_POSITIVE);
            loop {
                high *= 1.0 + step;
                step *= 2.0;
                arcs = Arcs::new(&mut self.tables[class.table], shape, high);
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
            arcs = Arcs::new(&mut self.tables[class.table], shape, high);
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

    /// Looks for plans whose windows keep a period, the shortest for which there are some.
    fn in_step(&mut self, class: &Class, arcs: &Arcs, low: f64, own: &mut Option<Split>) {
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

    /// Asks for splits of a class and evaluates them; whether there are any.
    fn ask(&mut self, class: &Class, arcs: &Arcs, time: f64, period: f64, own: &mut Option<Split>) -> bool {
        let splits = arcs.decide(&self.tables[class.table], Question { time, period });
        let any = !splits.is_empty();
        for begins in splits {
            self.consider(class.table, class.d, begins, own);
        }
        any
    }

    /// Evaluates a split.
    fn consider(&mut self, table: usize, d: u32, begins: Vec<usize>, own: &mut Option<Split>) {
        if own.as_ref().is_some_and(|own| own.begins == begins) {
            return;
        }
        let Some(split) = self.evaluated(table, d, begins, f64::INFINITY) else { return };
        self.publish(&split);
        if own.as_ref().is_none_or(|own| split.seconds < own.seconds) {
            *own = Some(split);
        }
    }

    /// Judges the best split since the last time.
    pub(super) fn settle_candidate(&mut self) {
        let (Some(judge), Some(split)) = (self.judge, self.candidate.take()) else { return };
        let Some(seconds) = judge(&split, &self.tables) else { return };
        if self.found.best.as_ref().is_none_or(|best| seconds < best.seconds) {
            let split = Split { seconds, ..split };
            (self.publish)(&split, &self.tables);
            self.found.best = Some(split);
        }
    }

    pub(super) fn publish(&mut self, split: &Split) {
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

    /// A split with its time, unless it does not fit or its bound is not below `most`.
    pub(super) fn evaluated(&mut self, table: usize, d: u32, begins: Vec<usize>, most: f64) -> Option<Split> {
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
            Some(Batch { microbatches, stages, transfers: transfers.clone() }.seconds())
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
        Some(Split { table, d, kind: Kind::ONE, begins, again, seconds })
    }

    /// Improves a split by moving its cuts.
    fn improve(&mut self, own: Split) {
        let count = own.begins.len();
        let (table, d) = (own.table, own.d);
        let ranks = count + (self.scope.microbatches / d) as usize;
        self.climb(own, MOST_WORK, &|hunt, begins, most| {
            let split = hunt.evaluated(table, d, begins, most);
            let took = count * count / 8 + if split.is_some() { count * ranks } else { 0 };
            (split, took)
        });
    }
}

/// All splits of so many units into so many stages, where they are few enough to try each; else none.
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
