//! Handle on a running search: cancel, deadline, progress, incumbent, and parallel sub-problems.
//!
//! A planner calls [`Search::cancelled`] often: one atomic load, and a look at the clock where there is a deadline. Progress is
//! written to atomics that the screen polls; an improved plan is published when it is found. Nothing here influences which
//! plan is found, only when the search stops.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use rayon::prelude::*;

use crate::plan::Plan;

/// The best plan so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Incumbent {
    /// Its objective.
    pub objective: f64,
    /// The plan.
    pub plan: Plan,
}

/// What the screen polls while a planner runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Share of the work done, 0 to 1.
    pub fraction: f64,
    /// Objective of the best plan so far.
    pub best: Option<f64>,
    /// Proven lower bound so far.
    pub bound: Option<f64>,
}

/// When to stop.
#[derive(Debug)]
struct Control {
    cancel: AtomicBool,
    /// How often it was cancelled by a call.
    calls: AtomicU32,
    deadline: Option<Instant>,
    expired: AtomicBool,
    started: Instant,
    /// The search that this one is a part of, and ends with.
    whole: Option<Arc<Control>>,
    /// The search that this one follows, with how often that had been cancelled before.
    follows: Option<(Arc<Control>, u32)>,
}

impl Control {
    fn new(deadline: Option<Duration>, whole: Option<Arc<Control>>, follows: Option<(Arc<Control>, u32)>) -> Arc<Self> {
        let started = Instant::now();
        let deadline = deadline.and_then(|d| started.checked_add(d));
        let (cancel, expired) = Default::default();
        Arc::new(Control { cancel, calls: AtomicU32::new(0), deadline, expired, started, whole, follows })
    }

    /// How often it, or what it is a part of, was cancelled by a call.
    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed) + self.whole.as_ref().map_or(0, |whole| whole.calls())
    }

    #[inline]
    fn cancelled(&self) -> bool {
        // Who sees that it has ended sees why.
        self.cancel.load(Ordering::Acquire) || self.ended()
    }

    /// Whether something else has ended it.
    #[inline]
    fn ended(&self) -> bool {
        let followed = self.follows.as_ref().is_some_and(|(first, before)| first.calls() > *before);
        if followed || self.whole.as_ref().is_some_and(|whole| whole.cancelled()) {
            // Whose deadline it was makes no difference to a part.
            if self.whole.as_ref().is_some_and(|whole| whole.expired.load(Ordering::Relaxed)) {
                self.expired.store(true, Ordering::Relaxed);
            }
            self.cancel.store(true, Ordering::Release);
            return true;
        }
        let late = self.deadline.is_some_and(|at| Instant::now() >= at);
        if late {
            self.expired.store(true, Ordering::Relaxed);
            self.cancel.store(true, Ordering::Release);
        }
        late
    }
}

/// What is known so far.
#[derive(Debug)]
struct Report {
    fraction: AtomicU64,
    best: AtomicU64,
    bound: AtomicU64,
    incumbent: Mutex<Option<Arc<Incumbent>>>,
}

/// A handle on one run; clones share it.
#[derive(Debug, Clone)]
pub struct Search {
    control: Arc<Control>,
    report: Arc<Report>,
    /// Whether bounds are reported, and progress: plans always are.
    bounds: bool,
    progress: bool,
    seed: u64,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            fraction: AtomicU64::new(0f64.to_bits()),
            best: AtomicU64::new(f64::NAN.to_bits()),
            bound: AtomicU64::new(f64::NAN.to_bits()),
            incumbent: Mutex::new(None),
        }
    }
}

impl Default for Search {
    fn default() -> Self {
        Search::new(None, 0)
    }
}

impl Search {
    /// A search that may last `deadline` from now and draws its random numbers from `seed`.
    pub fn new(deadline: Option<Duration>, seed: u64) -> Self {
        Search {
            control: Control::new(deadline, None, None),
            report: Arc::new(Report::default()),
            bounds: true,
            progress: true,
            seed,
        }
    }

    /// A search of its own that may last `deadline` from now and ends with this one: one of many that are waited for.
    #[must_use]
    pub fn part(&self, deadline: Option<Duration>) -> Search {
        let control = Control::new(deadline, Some(Arc::clone(&self.control)), None);
        Search { control, report: Arc::new(Report::default()), bounds: true, progress: true, seed: self.seed }
    }

    /// A search for what comes after this one has ended, such as simulating its plan: it may last for what is left of the
    /// deadline, and at least for `least`. It ends when this one is cancelled once more.
    #[must_use]
    pub fn follow(&self, least: Duration) -> Search {
        let deadline = self.remaining().map(|left| left.max(least));
        let follows = Some((Arc::clone(&self.control), self.control.calls()));
        let control = Control::new(deadline, None, follows);
        Search { control, report: Arc::new(Report::default()), bounds: true, progress: true, seed: self.seed }
    }

    /// A handle that stops together with this one but reports to nobody: for parts of a search whose bounds do not hold
    /// for the whole.
    #[must_use]
    pub fn quiet(&self) -> Search {
        let report = Arc::new(Report::default());
        Search { control: Arc::clone(&self.control), report, bounds: true, progress: true, seed: self.seed }
    }

    /// A handle that publishes plans but neither bounds nor progress: for a search among some of the plans only.
    #[must_use]
    pub fn plans_only(&self) -> Search {
        Search { bounds: false, progress: false, ..self.clone() }
    }

    /// A handle that publishes no bounds: for a search that leaves plans out.
    #[must_use]
    pub fn without_bounds(&self) -> Search {
        Search { bounds: false, ..self.clone() }
    }

    /// Solves independent sub-problems in parallel; the results are in the order of the items. The sub-problems share no
    /// incumbent, so that no result depends on the number of threads.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], solve: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
        // One item at a time: one may take as long as all others together.
        items.par_iter().with_max_len(1).map(solve).collect()
    }

    /// Asks the planner to stop.
    pub fn cancel(&self) {
        self.control.calls.fetch_add(1, Ordering::Relaxed);
        self.control.cancel.store(true, Ordering::Release);
    }

    /// Whether the planner should stop: cancelled, or past the deadline. Cheap enough for inner loops.
    #[inline]
    pub fn cancelled(&self) -> bool {
        self.control.cancelled()
    }

    /// True if the deadline stopped it; false if it was cancelled before.
    pub fn deadline_passed(&self) -> bool {
        self.control.cancelled();
        self.control.expired.load(Ordering::Relaxed)
    }

    /// Time until the deadline, if there is one.
    pub fn remaining(&self) -> Option<Duration> {
        self.control.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Time since the search was made.
    pub fn elapsed(&self) -> Duration {
        self.control.started.elapsed()
    }

    /// The seed for planners that draw random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Reports the share of the work done.
    pub fn report_fraction(&self, fraction: f64) {
        if !self.progress {
            return;
        }
        self.report.fraction.store(fraction.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
    }

    /// Reports a proven lower bound; a worse one than known is ignored.
    pub fn report_bound(&self, bound: f64) {
        let known = f64::from_bits(self.report.bound.load(Ordering::Relaxed));
        if !self.bounds {
            return;
        }
        if known.is_nan() || bound > known {
            self.report.bound.store(bound.to_bits(), Ordering::Relaxed);
        }
    }

    /// Publishes a better plan (by its own measure); one that is not better is ignored.
    pub fn improve(&self, objective: f64, plan: &Plan) {
        let mut incumbent = self.report.incumbent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if incumbent.as_ref().is_none_or(|known| plan.measure.is_better(objective, known.objective)) {
            *incumbent = Some(Arc::new(Incumbent { objective, plan: plan.clone() }));
            self.report.best.store(objective.to_bits(), Ordering::Relaxed);
        }
    }

    /// The best plan so far.
    pub fn incumbent(&self) -> Option<Arc<Incumbent>> {
        self.report.incumbent.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// What to show of the running search.
    pub fn progress(&self) -> Progress {
        let read = |cell: &AtomicU64| Some(f64::from_bits(cell.load(Ordering::Relaxed))).filter(|v| !v.is_nan());
        Progress {
            fraction: read(&self.report.fraction).unwrap_or(0.0),
            best: read(&self.report.best),
            bound: read(&self.report.bound),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_cancels_and_says_so() {
        let search = Search::new(Some(Duration::ZERO), 0);
        assert!((0..100).any(|_| search.cancelled()));
        assert!(search.deadline_passed());
        let other = Search::default();
        assert!(!other.cancelled());
        other.cancel();
        assert!(other.clone().cancelled() && !other.deadline_passed());
    }

    #[test]
    fn a_search_that_was_cancelled_before_its_deadline_did_not_end_by_it() {
        let search = Search::new(Some(Duration::from_millis(20)), 0);
        search.cancel();
        std::thread::sleep(Duration::from_millis(40));
        assert!(search.cancelled() && !search.deadline_passed());
    }

    #[test]
    fn sub_problems_keep_their_order() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(Search::default().map(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
    }

    #[test]
    fn a_part_ends_with_the_whole_and_not_the_other_way_round() {
        let whole = Search::new(None, 7);
        let (short, long) = (whole.part(Some(Duration::ZERO)), whole.part(None));
        assert!((0..100).any(|_| short.cancelled()) && short.deadline_passed());
        assert!(!whole.cancelled() && !long.cancelled());
        whole.cancel();
        assert!(long.cancelled() && !long.deadline_passed() && long.seed() == 7);
        let part = Search::new(Some(Duration::ZERO), 0).part(None);
        assert!(part.cancelled() && part.deadline_passed());
    }

    #[test]
    fn a_search_among_some_plans_publishes_them_and_no_bounds() {
        let whole = Search::default();
        let among_some = whole.plans_only();
        among_some.improve(2.0, &Plan::default());
        among_some.report_bound(1.5);
        among_some.report_fraction(0.5);
        assert_eq!(whole.progress(), Progress { fraction: 0.0, best: Some(2.0), bound: None });
        whole.cancel();
        assert!(among_some.cancelled());
    }

    #[test]
    fn only_better_plans_and_bounds_are_kept() {
        let search = Search::default();
        assert_eq!(search.progress().best, None);
        search.improve(2.0, &Plan::default());
        search.improve(3.0, &Plan::default());
        search.report_bound(1.0);
        search.report_bound(0.5);
        assert_eq!((search.progress().best, search.progress().bound), (Some(2.0), Some(1.0)));
    }

    #[test]
    fn what_follows_a_search_ends_when_that_is_cancelled_once_more() {
        let whole = Search::default();
        let search = whole.part(Some(Duration::ZERO));
        assert!(search.cancelled());
        // That the deadline has passed, or that it was cancelled before, is no reason not to begin.
        let after = search.follow(Duration::from_secs(3600));
        assert!(!after.cancelled() && after.remaining().is_some());
        search.cancel();
        assert!(after.cancelled() && !after.deadline_passed());
        let again = search.follow(Duration::from_secs(3600));
        assert!(!again.cancelled());
        // So does what the first is a part of.
        whole.cancel();
        assert!(again.cancelled() && !again.deadline_passed());
        let short = search.follow(Duration::ZERO);
        assert!(short.cancelled() && short.deadline_passed());
        assert_eq!(Search::default().follow(Duration::ZERO).remaining(), None);
    }
}
