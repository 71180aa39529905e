//! Answers the points of a sweep, several at a time.
//!
//! Every thread of the pool takes the next task in the order of interest. A task is one point, or all points that differ in
//! nothing but devices where the planner answers those in one run; their order within the run is that of interest, too.
//! What a task answers depends on nothing another does, so the answers are the same for any number of threads.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::{Answer, Point, Sweep, order};
use crate::{
    cluster::LimitKind,
    planner::{self, ManyRuns, Outcome, Problem, Search, Status},
    simulate::Schedule,
    study::compare,
};

/// Answers the points that `wanted` lists by place, under the thread pool in force, and hands over each answer when it is
/// there. `deadline` is the time for each point. After `search` is cancelled, points that were cut short are left out:
/// what was handed over stands as if nothing had happened.
pub fn run(
    sweep: &Sweep,
    wanted: &[usize],
    deadline: Option<Duration>,
    search: &Search,
    found: &(dyn Fn(usize, Answer) + Sync),
) {
    let tasks = tasks(sweep, wanted);
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if search.cancelled() {
                return;
            }
            Run { sweep, task, deadline, search, found, begun: None }.go();
        }
    };
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(tasks.len()) {
            scope.spawn(|_| worker());
        }
    });
}

/// Places of points that are answered together, in the order of interest.
type Task = Vec<usize>;

fn tasks(sweep: &Sweep, wanted: &[usize]) -> Vec<Task> {
    let coordinates: Vec<Vec<f64>> = sweep.points.iter().map(|point| sweep.coordinates(point)).collect();
    let mut asked = vec![false; sweep.points.len()];
    for &place in wanted {
        asked[place] = true;
    }
    let mut tasks: Vec<Task> = vec![];
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

fn problem(sweep: &Sweep, point: &Point) -> Problem {
    Problem {
        workload: sweep.workloads[point.workload].clone(),
        limits: point.limits,
        options: sweep.series[point.series].options.clone(),
    }
}

/// A task under way.
struct Run<'r> {
    sweep: &'r Sweep,
    task: &'r Task,
    deadline: Option<Duration>,
    search: &'r Search,
    found: &'r (dyn Fn(usize, Answer) + Sync),
    begun: Option<Search>,
}

impl Run<'_> {
    fn go(&mut self) {
        let sweep = self.sweep;
        let first = &sweep.points[self.task[0]];
        let planner = sweep.series[first.series].planner;
        if let [place] = self.task[..] {
            let search = self.search.part(self.deadline);
            let problem = problem(sweep, first);
            let outcome = match planner.can_plan(&problem.workload) {
                Ok(()) => planner.plan(&problem, &search),
                Err(reason) => Outcome::refused(reason),
            };
            return self.tell(place, &outcome, search.elapsed().as_secs_f64());
        }
        let devices: Vec<u32> = self.task.iter().map(|&place| sweep.points[place].limits.devices).collect();
        planner.plan_many(&problem(sweep, first), &devices, self);
    }

    /// Checks, plays and hands over an outcome, unless it was cut short.
    fn tell(&self, place: usize, outcome: &Outcome, seconds: f64) {
        let whole = matches!(outcome.status, Status::Optimal | Status::Infeasible);
        if !whole && self.search.cancelled() {
            return;
        }
        let point = &self.sweep.points[place];
        let problem = problem(self.sweep, point);
        let planner = self.sweep.series[point.series].planner;
        let score = outcome.plan.as_ref().map(|plan| planner::verified(planner, &problem, plan, outcome.objective));
        let played = outcome.plan.as_ref().map(|plan| {
            compare::Played::new(&problem.workload, &problem.limits, plan, Schedule::OneForwardOneBackward)
        });
        (self.found)(place, Answer::new(outcome, score.as_ref(), played.as_ref(), seconds));
    }
}

impl ManyRuns for Run<'_> {
    fn begin(&mut self, _devices: u32) -> Search {
        let search = self.search.part(self.deadline);
        self.begun = Some(search.clone());
        search
    }

    fn end(&mut self, devices: u32, outcome: Outcome) {
        let seconds = self.begun.take().map_or(0.0, |search| search.elapsed().as_secs_f64());
        let place = self.task.iter().find(|&&place| self.sweep.points[place].limits.devices == devices);
        self.tell(*place.expect("only devices of the task are asked for"), &outcome, seconds);
    }
}
