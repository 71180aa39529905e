//! Handle on a running search: cancellation, deadline, progress, incumbent, and parallel sub-problems.
//!
//! Planners call [`Search::cancelled`] often: it costs one atomic load, and a read of the clock if there is a deadline.
//! Progress goes to atomics that the screen polls. An improved plan is published when it is found. The handle decides
//! when a search stops, never which plan it finds.

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
    /// Objective of the plan.
    pub objective: f64,
    /// The plan.
    pub plan: Plan,
}

/// Progress of a running planner, polled by the screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Fraction of the work done, 0 to 1.
    pub fraction: f64,
    /// Objective of the incumbent.
    pub best: Option<f64>,
    /// Proven lower bound so far.
    pub bound: Option<f64>,
}

/// Stop conditions of a search.
#[derive(Debug)]
struct Control {
    cancel: AtomicBool,
    /// Number of calls of [`Search::cancel`].
    calls: AtomicU32,
    deadline: Option<Instant>,
    expired: AtomicBool,
    started: Instant,
    /// Search that contains this one and ends it.
    whole: Option<Arc<Control>>,
    /// Search that this one follows, with its number of cancellations before.
    follows: Option<(Arc<Control>, u32)>,
}

impl Control {
    fn new(deadline: Option<Duration>, whole: Option<Arc<Control>>, follows: Option<(Arc<Control>, u32)>) -> Arc<Self> {
        let started = Instant::now();
        let deadline = deadline.and_then(|d| started.checked_add(d));
        let (cancel, expired) = Default::default();
        Arc::new(Control { cancel, calls: AtomicU32::new(0), deadline, expired, started, whole, follows })
    }

    /// Cancellations of this search and of the searches that contain it.
    fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed) + self.whole.as_ref().map_or(0, |whole| whole.calls())
    }

    #[inline]
    fn cancelled(&self) -> bool {
        // Acquire: a thread that sees the end also sees the reason.
        self.cancel.load(Ordering::Acquire) || self.ended()
    }

    /// True if a deadline, the containing search or the followed search has ended it.
    #[inline]
    fn ended(&self) -> bool {
        let followed = self.follows.as_ref().is_some_and(|(first, before)| first.calls() > *before);
        if followed || self.whole.as_ref().is_some_and(|whole| whole.cancelled()) {
            // A part has also expired if the deadline belongs to the whole.
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

/// Results so far.
#[derive(Debug)]
struct SearchReport {
    fraction: AtomicU64,
    best: AtomicU64,
    bound: AtomicU64,
    incumbent: Mutex<Option<Arc<Incumbent>>>,
}

/// Handle on one run; clones share it.
#[derive(Debug, Clone)]
pub struct Search {
    control: Arc<Control>,
    report: Arc<SearchReport>,
    /// False if bounds (`bounds`) or progress (`progress`) are not reported; plans always are.
    bounds: bool,
    progress: bool,
    seed: u64,
}

impl Default for SearchReport {
    fn default() -> Self {
        SearchReport {
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
    /// Creates a search with a deadline from now and a seed for random numbers.
    pub fn new(deadline: Option<Duration>, seed: u64) -> Self {
        Search {
            control: Control::new(deadline, None, None),
            report: Arc::new(SearchReport::default()),
            bounds: true,
            progress: true,
            seed,
        }
    }

    /// Creates a separate search that ends with this one and may have an earlier deadline: one of several that a caller
    /// waits for.
    #[must_use]
    pub fn part(&self, deadline: Option<Duration>) -> Search {
        let control = Control::new(deadline, Some(Arc::clone(&self.control)), None);
        Search { control, report: Arc::new(SearchReport::default()), bounds: true, progress: true, seed: self.seed }
    }

    /// Creates a search for work after this one, such as simulating its plan. It may use the time left until the
    /// deadline, and at least `least`. A further cancellation of this search ends it.
    #[must_use]
    pub fn follow(&self, least: Duration) -> Search {
        let deadline = self.remaining().map(|left| left.max(least));
        let follows = Some((Arc::clone(&self.control), self.control.calls()));
        let control = Control::new(deadline, None, follows);
        Search { control, report: Arc::new(SearchReport::default()), bounds: true, progress: true, seed: self.seed }
    }

    /// Returns a handle that stops with this one but reports to nobody: for parts of a search whose bounds do not hold
    /// for the whole.
    #[must_use]
    pub fn quiet(&self) -> Search {
        let report = Arc::new(SearchReport::default());
        Search { control: Arc::clone(&self.control), report, bounds: true, progress: true, seed: self.seed }
    }

    /// Returns a handle that publishes plans but neither bounds nor progress: for a search over a subset of the plans.
    #[must_use]
    pub fn plans_only(&self) -> Search {
        Search { bounds: false, progress: false, ..self.clone() }
    }

    /// Returns a handle that publishes no bounds: for a search that excludes plans.
    #[must_use]
    pub fn without_bounds(&self) -> Search {
        Search { bounds: false, ..self.clone() }
    }

    /// Solves independent sub-problems in parallel; results keep the order of the items. Sub-problems share no
    /// incumbent, so the results do not depend on the number of threads.
    pub fn map<I, R>(&self, items: I, solve: impl Fn(I::Item) -> R + Sync + Send) -> Vec<R>
    where
        I: IntoParallelIterator<Iter: IndexedParallelIterator>,
        R: Send,
    {
        // One item at a time: one may take as long as all others together.
        items.into_par_iter().with_max_len(1).map(solve).collect()
    }

    /// Stops the search at its next check.
    pub fn cancel(&self) {
        self.control.calls.fetch_add(1, Ordering::Relaxed);
        self.control.cancel.store(true, Ordering::Release);
    }

    /// True if the search must stop: cancelled, or past the deadline. Cheap enough for inner loops.
    #[inline]
    pub fn cancelled(&self) -> bool {
        self.control.cancelled()
    }

    /// True if the deadline ended the search; false if it was cancelled before.
    pub fn deadline_passed(&self) -> bool {
        self.control.cancelled();
        self.control.expired.load(Ordering::Relaxed)
    }

    /// Time until the deadline; `None` without one.
    pub fn remaining(&self) -> Option<Duration> {
        self.control.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Time since the search was created.
    pub fn elapsed(&self) -> Duration {
        self.control.started.elapsed()
    }

    /// Seed for planners that draw random numbers.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Reports the fraction of the work done.
    pub fn report_fraction(&self, fraction: f64) {
        if !self.progress {
            return;
        }
        self.report.fraction.store(fraction.clamp(0.0, 1.0).to_bits(), Ordering::Relaxed);
    }

    /// Reports a proven lower bound; ignored unless it is higher than the known one.
    pub fn report_bound(&self, bound: f64) {
        let known = f64::from_bits(self.report.bound.load(Ordering::Relaxed));
        if !self.bounds {
            return;
        }
        if known.is_nan() || bound > known {
            self.report.bound.store(bound.to_bits(), Ordering::Relaxed);
        }
    }

    /// Publishes a plan; ignored unless it is better by its own measure.
    pub fn improve(&self, objective: f64, plan: &Plan) {
        let mut incumbent = self.report.incumbent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if incumbent.as_ref().is_none_or(|known| plan.measure.is_better(objective, known.objective)) {
            *incumbent = Some(Arc::new(Incumbent { objective, plan: plan.clone() }));
            self.report.best.store(objective.to_bits(), Ordering::Relaxed);
        }
    }

    /// Returns the best plan so far.
    pub fn incumbent(&self) -> Option<Arc<Incumbent>> {
        self.report.incumbent.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Returns the state of the running search for display.
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
        assert_eq!(
            Search::default().map(&items, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
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
        // A deadline that has passed, or an earlier cancellation, does not prevent the start.
        let after = search.follow(Duration::from_secs(3600));
        assert!(!after.cancelled() && after.remaining().is_some());
        search.cancel();
        assert!(after.cancelled() && !after.deadline_passed());
        let again = search.follow(Duration::from_secs(3600));
        assert!(!again.cancelled());
        // A cancellation of the containing search also ends it.
        whole.cancel();
        assert!(again.cancelled() && !again.deadline_passed());
        let short = search.follow(Duration::ZERO);
        assert!(short.cancelled() && short.deadline_passed());
        assert_eq!(Search::default().follow(Duration::ZERO).remaining(), None);
    }
}
