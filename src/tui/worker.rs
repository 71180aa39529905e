//! Planning thread: one job runs, and only the latest other one waits.
//!
//! The screen submits a [`Job`] and continues to draw; [`Report`]s return over a channel. So a held key never queues
//! plans. While a newer job waits, a running search continues for [`GRACE`] and is then cancelled. So quick plans
//! follow a held key step by step. The panic of a planner is caught and reported, and the thread continues.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{
    export_form::{ExportFormat, Source},
    shown::ShownRun,
    side_job::{self, Exported, SideJob},
    simulated::Simulated,
    studies::StudyKind,
    study_job::{self, Finding, Study},
};
use crate::{
    planner::{self, Options, Planner, Problem, Search, panic_message},
    run,
    simulate::{LEAST_TIME, Setup},
    source::LoadError,
    tui::views::compare::pins::LoadedPin,
    workload::Workload,
};

/// Time for which a search may continue while a newer job waits.
pub(super) const GRACE: Duration = Duration::from_millis(120);

/// Task of a job.
pub(super) enum Task {
    /// Plans, checks, and simulates the plan.
    Plan {
        /// The planner.
        planner: &'static dyn Planner,
        /// The problem.
        problem: Box<Problem>,
        /// Schedule and settings of the simulation.
        setup: Setup,
    },
    /// Simulates an existing plan.
    Simulate {
        /// Run of the plan.
        shown: Arc<ShownRun>,
        /// Schedule and settings of the simulation.
        setup: Setup,
    },
}

/// Task with its number and search.
pub(super) struct Job {
    /// Increasing number; reports name their job by it.
    pub id: u64,
    /// The task.
    pub task: Task,
    /// Handle for progress and cancellation.
    pub search: Search,
}

/// Message of the worker.
pub(super) enum News {
    /// Plan with its timeline, or the reason why there is no plan. They come together, so that no picture mixes two plans.
    Planned {
        /// The run.
        shown: Arc<ShownRun>,
        /// Timeline of its plan.
        simulated: Option<Arc<Simulated>>,
    },
    /// Timeline of a plan that was shown before.
    Simulated(Arc<Simulated>),
    /// Reason why a plan has no timeline.
    Unplayed(String),
    /// Workload, or the error.
    Loaded(Result<Arc<Workload>, LoadError>),
    /// Plan from a file, or the error.
    PlanLoaded(Box<Result<LoadedPin, LoadError>>),
    /// Reloaded file of the workload.
    Reloaded {
        /// Number of the reload.
        number: u64,
        /// Workload, or the error.
        read: Result<Arc<Workload>, LoadError>,
    },
    /// Size of an export.
    Measured {
        /// Exported plan.
        source: Source,
        /// Format of the file.
        format: ExportFormat,
        /// Size, bytes.
        bytes: u64,
    },
    /// Result of an export.
    Exported(Exported),
    /// Loading or exporting panicked, with its message.
    ErrandCrashed(String),
    /// Finding of a study; `None` at its end.
    Found {
        /// Kind of the study.
        kind: StudyKind,
        /// Number of the study.
        id: u64,
        /// The finding.
        finding: Option<Finding>,
    },
    /// The task panicked, with its message.
    Crashed(String),
    /// End of the job.
    Done,
}

/// Message of a job.
pub(super) struct Report {
    /// Number of the job.
    pub job: u64,
    /// The message.
    pub news: News,
}

/// Runs a job on the caller's thread. The last report is always [`News::Done`].
pub(super) fn perform(job: &Job, tell: &mut dyn FnMut(Report)) {
    let result = catch_unwind(AssertUnwindSafe(|| work(job, tell)));
    if let Err(payload) = result {
        tell(Report { job: job.id, news: News::Crashed(panic_message(payload.as_ref())) });
    }
    tell(Report { job: job.id, news: News::Done });
}

fn work(job: &Job, tell: &mut dyn FnMut(Report)) {
    let mut tell = |news| tell(Report { job: job.id, news });
    match &job.task {
        Task::Plan { planner, problem, setup: how } => {
            let started = Instant::now();
            let (outcome, score) = match run::plan(*planner, problem, &job.search) {
                Ok(found) => found,
                Err(fault) => return tell(News::Crashed(fault.to_string())),
            };
            let seconds = started.elapsed().as_secs_f64();
            let shown = Arc::new(ShownRun::new(planner.info(), problem, outcome, score, seconds));
            // A stopped search still gets its plan simulated; a second stop or a change cancels that.
            let search = job.search.follow(LEAST_TIME);
            let simulated = simulated(&shown, *how, &search);
            let given_up = simulated.is_none() && shown.plan().is_some() && search.deadline_passed();
            tell(News::Planned { shown, simulated });
            if given_up {
                tell(News::Unplayed(run::given_up(&search)));
            }
        }
        Task::Simulate { shown, setup: how } => match simulated(shown, *how, &job.search) {
            Some(simulated) => tell(News::Simulated(simulated)),
            None if job.search.deadline_passed() => tell(News::Unplayed(run::given_up(&job.search))),
            None => {}
        },
    }
}

/// Simulated iteration of a plan, with that of the equal partition of its workload to compare it with.
fn simulated(shown: &Arc<ShownRun>, setup: Setup, search: &Search) -> Option<Arc<Simulated>> {
    let mut simulated = Simulated::new(shown, setup, search)?;
    simulated.equal_s = equal_s(shown, setup, search);
    Some(Arc::new(simulated))
}

/// Iteration time of the equal partition, seconds; `None` for workloads that it does not plan as they are, for large
/// ones, and for its own plans.
fn equal_s(shown: &ShownRun, setup: Setup, search: &Search) -> Option<f64> {
    let planner = planner::find(EQUAL).filter(|planner| {
        shown.planner.id != EQUAL && planner.is_native(&shown.workload) && planner.can_plan(&shown.workload).is_ok()
    })?;
    if shown.workload.training().is_some() || shown.workload.nodes.len() > LARGEST {
        return None;
    }
    let problem = Problem {
        workload: shown.workload.clone(),
        limits: shown.limits.clone(),
        options: Options::defaults(planner.options()),
    };
    let (outcome, score) = run::plan(planner, &problem, search).ok()?;
    let equal = Arc::new(ShownRun::new(planner.info(), &problem, outcome, score, 0.0));
    Some(Simulated::new(&equal, setup, search)?.timeline.iteration_s)
}

/// Id of the planner of the equal partition.
const EQUAL: &str = "equal-partition";
/// Most nodes of a workload whose equal partition is planned beside every plan.
const LARGEST: usize = 2000;

/// The screen's handle of the planning thread.
pub(super) struct Worker {
    waiting: (Sender<Job>, Receiver<Job>),
    reports: (Sender<Report>, Receiver<Report>),
    latest: Option<(u64, Search)>,
    running: Option<(u64, Search, Instant)>,
}

impl Worker {
    /// Starts the thread. It ends when the worker is dropped and its last job is done.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start() -> std::io::Result<Worker> {
        let (job_sender, job_receiver) = bounded::<Job>(1);
        let reports = unbounded();
        let report_sender: Sender<Report> = reports.0.clone();
        let jobs = job_receiver.clone();
        thread::Builder::new().name("planner".into()).stack_size(planner::STACK_BYTES).spawn(move || {
            for job in jobs {
                // A send fails only after the screen is gone, when nobody needs the rest.
                perform(&job, &mut |report| drop(report_sender.send(report)));
            }
        })?;
        Ok(Worker { waiting: (job_sender, job_receiver), reports, latest: None, running: None })
    }

    /// Submits a job. A waiting one is dropped.
    pub(super) fn submit(&mut self, job: Job) {
        drop(self.waiting.1.try_recv());
        let (id, search) = (job.id, job.search.clone());
        if self.running.is_none() {
            self.running = Some((id, search.clone(), Instant::now()));
        }
        self.latest = Some((id, search));
        // The queue was emptied above, and this is the only sender.
        drop(self.waiting.0.try_send(job));
    }

    /// Runs a side job on its own thread.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn aside(&self, side_job: SideJob) -> std::io::Result<()> {
        let sender = self.reports.0.clone();
        let work = move || drop(sender.send(side_job::perform(side_job)));
        thread::Builder::new().name("side job".into()).spawn(work).map(drop)
    }

    /// Runs a study on its own thread.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn study(&self, study: Study) -> std::io::Result<()> {
        let sender = self.reports.0.clone();
        // A send fails only after the screen is gone, when nobody needs the answer.
        let work = move || study_job::perform(study, &mut |report| drop(sender.send(report)));
        thread::Builder::new().name("study".into()).stack_size(planner::STACK_BYTES).spawn(work).map(drop)
    }

    /// Cancels the running search if a newer job has waited long enough. Called at every tick.
    pub(super) fn hurry(&self) {
        if let (Some((running, search, since)), Some((latest, _))) = (&self.running, &self.latest)
            && running != latest
            && since.elapsed() > GRACE
        {
            search.cancel();
        }
    }

    /// Receiver of the reports.
    pub(super) fn reports(&self) -> &Receiver<Report> {
        &self.reports.1
    }

    /// Must be called for every report: the end of a job starts the waiting one, if any.
    pub(super) fn heard(&mut self, report: &Report) {
        if !matches!(report.news, News::Done) {
            return;
        }
        self.running = match self.latest.take() {
            Some((id, search)) if id != report.job => {
                self.latest = Some((id, search.clone()));
                Some((id, search, Instant::now()))
            }
            _ => None,
        };
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.waiting.1.try_recv());
        if let Some((_, search, _)) = &self.running {
            search.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::GivenLimits,
        family,
        planner::{Declaration, Options, Outcome, Status, liar::Liar},
        workload,
    };

    /// Waits until it is cancelled.
    struct Patient;

    impl Planner for Patient {
        fn declaration(&self) -> &'static Declaration {
            &Declaration::NEW
        }

        fn plan(&self, _: &Problem, search: &Search) -> Outcome {
            while !search.cancelled() {
                thread::sleep(Duration::from_millis(1));
            }
            Outcome::new(Status::Cancelled)
        }
    }

    fn job(id: u64) -> Job {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let problem = Problem { workload, limits, options: Options::default() };
        let task = Task::Plan { planner: &Patient, problem: problem.into(), setup: Setup::default() };
        Job { id, task, search: Search::default() }
    }

    #[test]
    fn a_planner_that_fails_is_told_and_the_next_job_runs() {
        for (liar, what) in [(&Liar::Claims, "but the check finds"), (&Liar::Panics, "no such table")] {
            let mut job = job(1);
            let Task::Plan { planner, problem, .. } = &mut job.task else { panic!("it plans") };
            *planner = liar;
            let options = Options::defaults(liar.options());
            *problem = Problem { options, ..(**problem).clone() }.into();
            let mut news = vec![];
            perform(&job, &mut |report| news.push(report.news));
            assert!(matches!(&news[..], [News::Crashed(told), News::Done] if told.contains(what)));
        }
    }

    #[test]
    fn the_running_job_makes_way_and_of_those_that_wait_only_the_latest_runs() {
        let mut worker = Worker::start().unwrap();
        worker.submit(job(1));
        // Once the queue is empty the first job runs, and no later one can take its place.
        while !worker.waiting.1.is_empty() {
            thread::yield_now();
        }
        let last = job(4);
        let search = last.search.clone();
        worker.submit(job(2));
        worker.submit(job(3));
        worker.submit(last);
        let mut done = vec![];
        while done.len() < 2 {
            worker.hurry();
            if done == [1] {
                search.cancel();
            }
            if let Ok(report) = worker.reports().recv_timeout(Duration::from_millis(10)) {
                worker.heard(&report);
                if matches!(report.news, News::Done) {
                    done.push(report.job);
                }
            }
        }
        assert_eq!(done, [1, 4]);
        assert!(worker.running.is_none() && worker.waiting.1.is_empty());
    }
}
