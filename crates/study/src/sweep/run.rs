//! Parallel run of a sweep's points.
//!
//! Every thread of the pool takes the next task in the order of interest. A task is one point, or all points that
//! differ only in devices if the planner answers them in one run; within the run they keep the order of interest. No
//! task depends on another, so the answers are the same for any number of threads. If a planner fails, only its own
//! points carry the error.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::{PointResult, Sweep, SweepPoint, order};
use crate::{compare, run};
use plantui_core::{
    cluster::LimitKind,
    plan::Score,
    search::Search,
    simulate::{LEAST_TIME, Setup},
};
use plantui_planners::{Fault, ManyRuns, Outcome, Problem, Status};

/// Answers the points whose indices are in `indices`, in the current thread pool, and reports each answer at once.
/// `deadline` is the time per point. After `search` is cancelled, points that were cut short are left out; answers
/// reported before stay valid.
pub fn run(
    sweep: &Sweep,
    indices: &[usize],
    deadline: Option<Duration>,
    search: &Search,
    report: &(dyn Fn(usize, PointResult) + Sync),
) {
    let tasks = tasks(sweep, indices);
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if search.cancelled() {
                return;
            }
            TaskRun { sweep, task, deadline, search, report, begun: None, open: task.clone() }.go();
        }
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(tasks.len()) {
            scope.spawn(|_| worker());
        }
    });
}

/// Indices of points that are answered together, in the order of interest.
type PointBatch = Vec<usize>;

fn tasks(sweep: &Sweep, wanted: &[usize]) -> Vec<PointBatch> {
    let coordinates: Vec<Vec<f64>> = sweep.points.iter().map(|point| sweep.coordinates(point)).collect();
    let mut asked = vec![false; sweep.points.len()];
    for &place in wanted {
        asked[place] = true;
    }
    let mut tasks: Vec<PointBatch> = vec![];
    let mut together: BTreeMap<String, usize> = BTreeMap::new();
    for place in order::of_interest(&coordinates).into_iter().filter(|&place| asked[place]) {
        let point = &sweep.points[place];
        let series = &sweep.series[point.series];
        if sweep.alone || !series.planner.answers_many(&problem(sweep, point)) {
            tasks.push(vec![place]);
            continue;
        }
        let rest = point.limits.with(LimitKind::Devices, 1.0);
        let task = *together.entry(format!("{} {} {rest:?}", point.workload, point.series)).or_insert(tasks.len());
        match tasks.get_mut(task) {
            Some(task) => task.push(place),
            None => tasks.push(vec![place]),
        }
    }
    tasks
}

fn problem(sweep: &Sweep, point: &SweepPoint) -> Problem {
    Problem {
        workload: sweep.workloads[point.workload].clone(),
        limits: point.limits.clone(),
        options: sweep.series[point.series].options.clone(),
    }
}

/// Task in progress.
struct TaskRun<'r> {
    sweep: &'r Sweep,
    task: &'r PointBatch,
    deadline: Option<Duration>,
    search: &'r Search,
    report: &'r (dyn Fn(usize, PointResult) + Sync),
    begun: Option<Search>,
    /// Indices without an answer yet.
    open: PointBatch,
}

impl TaskRun<'_> {
    fn go(&mut self) {
        let sweep = self.sweep;
        let first = &sweep.points[self.task[0]];
        let planner = sweep.series[first.series].planner;
        if let [place] = self.task[..] {
            let search = self.search.part(self.deadline);
            let problem = problem(sweep, first);
            let run = match planner.can_plan(&problem.workload) {
                Ok(()) => run::plan(planner, &problem, &search),
                Err(reason) => Ok((Outcome::refused(reason.to_string()), None)),
            };
            return self.publish(place, run, &search);
        }
        let devices: Vec<u32> = self.task.iter().map(|&place| sweep.points[place].limits.devices).collect();
        if let Err(fault) = run::plan_many(planner, &problem(sweep, first), &devices, self) {
            for place in std::mem::take(&mut self.open) {
                (self.report)(place, PointResult::failed(&problem(sweep, first), fault.clone(), 0.0));
            }
        }
    }

    /// Simulates and reports a checked plan, unless it was cut short.
    fn publish(&self, place: usize, run: Result<(Outcome, Option<Score>), Fault>, search: &Search) {
        let seconds = search.elapsed().as_secs_f64();
        let point = &self.sweep.points[place];
        let problem = problem(self.sweep, point);
        let (outcome, score) = match run {
            Ok(found) => found,
            Err(fault) => return (self.report)(place, PointResult::failed(&problem, fault, seconds)),
        };
        let whole = matches!(outcome.status, Status::Optimal | Status::Infeasible);
        if !whole && self.search.cancelled() {
            return;
        }
        let simulated = outcome.plan.as_ref().map(|plan| {
            let Problem { workload, limits, .. } = &problem;
            let after = search.follow(LEAST_TIME);
            compare::SimulatedFigures::within(workload, limits, plan, Setup::default(), &after)
        });
        if matches!(simulated, Some(Err(_))) && self.search.cancelled() {
            return;
        }
        (self.report)(place, PointResult::new(&problem, &outcome, score.as_ref(), simulated, seconds));
    }
}

impl ManyRuns for TaskRun<'_> {
    fn begin(&mut self, _devices: u32) -> Search {
        let search = self.search.part(self.deadline);
        self.begun = Some(search.clone());
        search
    }

    fn end(&mut self, devices: u32, outcome: Outcome) {
        let search = self.begun.take().unwrap_or_else(|| self.search.part(self.deadline));
        let place = self.task.iter().find(|&&place| self.sweep.points[place].limits.devices == devices);
        let place = *place.expect("only devices of the task are asked for");
        self.open.retain(|&open| open != place);
        let problem = problem(self.sweep, &self.sweep.points[place]);
        let planner = self.sweep.series[self.sweep.points[place].series].planner;
        self.publish(place, run::finished(planner, &problem, outcome, &search), &search);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Mutex};

    use super::*;
    use crate::sweep::{LimitValues, Series};
    use plantui_core::{cluster::GivenLimits, workload};
    use plantui_planners::{Options, Planner, find, liar::Liar};

    /// Bug of the planner, by series and devices.
    fn faults(planners: [&'static dyn Planner; 2]) -> BTreeMap<(usize, u32), Option<Fault>> {
        let series = planners.map(|planner| Series::new(planner, Options::defaults(planner.options()))).to_vec();
        let values = [LimitValues { kind: LimitKind::Devices, values: vec![64.0, 128.0, 256.0] }];
        let workloads = vec![workload::builtin().into()];
        let sweep = Sweep::grid(workloads, series, &values, &GivenLimits::default()).unwrap();
        let found = Mutex::new(BTreeMap::new());
        let wanted: Vec<usize> = (0..sweep.points.len()).collect();
        run(&sweep, &wanted, None, &Search::default(), &|place, answer| {
            let SweepPoint { series, limits, .. } = &sweep.points[place];
            assert_eq!(answer.fault.is_some(), answer.why.contains("a bug of plantui"), "{answer:?}");
            found.lock().unwrap().insert((*series, limits.devices), answer.fault);
        });
        found.into_inner().unwrap()
    }

    #[test]
    fn a_planner_that_fails_takes_down_no_other() {
        for liar in [&Liar::Claims, &Liar::Breaks, &Liar::Panics] {
            let found = faults([liar, find("equal-partition").unwrap()]);
            assert_eq!(found.len(), 6);
            assert!(found.iter().all(|(&(series, _), fault)| fault.is_some() == (series == 0)), "{found:?}");
        }
    }

    #[test]
    fn what_was_answered_before_a_panic_stands() {
        let found = faults([&Liar::Tires, find("equal-partition").unwrap()]);
        assert_eq!(found.len(), 6);
        assert_eq!(found.values().filter(|fault| fault.is_some()).count(), 2, "{found:?}");
    }
}
