//! Hands that work in step: one leads, the others stay awake between what they are given.
//!
//! A search goes through thousands of steps that can be shared, often of some ten microseconds, with as short ones in between
//! that cannot. To wake a thread takes longer than that, so whoever has joined waits by looking. Nobody waits for one who has not:
//! where all threads are taken the leader does everything.
//!
//! Who works or leads must not ask rayon for anything: while it waits, rayon may hand it a helper's part, its own even.

use std::{
    hint,
    ops::Range,
    sync::{
        PoisonError, RwLock, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Looks before a thread lets others run in between.
const LOOKS: usize = 500;
/// A step is its number times this and how many hands it is for.
const HANDS: usize = 1 << 10;
/// Shares of what is done in pieces for each hand, about.
const SHARES: usize = 8;
/// What is left side by side is taken in so many parts for each hand, unless these are large.
const PARTS_OF_A_SHARE: usize = 8;
const MOST_AT_A_TIME: usize = 16;
/// What is told when there are no more steps.
const ENDED: usize = usize::MAX;

/// What the hands of a team know of one another.
#[derive(Default)]
struct Team {
    /// Those who came to help.
    joined: AtomicUsize,
    /// The step at hand.
    step: AtomicUsize,
    /// Helpers who have done it.
    done: AtomicUsize,
    /// Those who have gone.
    left: AtomicUsize,
    /// Whether one of them panicked.
    broken: AtomicBool,
}

/// Ends the steps, also if the leader panics, and sees all off who came: else the leader could be handed another team's work
/// while rayon waits for them.
struct End<'t>(&'t Team);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.step.store(ENDED, Ordering::Release);
        look_for(|| (self.0.left.load(Ordering::Acquire) == self.0.joined.load(Ordering::Acquire)).then_some(()));
    }
}

/// Notes that a helper goes, also if it panics.
struct Left<'t>(&'t Team);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Ordering::Release);
    }
}

/// Counts a helper's work as done, also if it panics.
struct Done<'t>(&'t Team);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
        self.0.done.fetch_add(1, Ordering::Release);
    }
}

/// Leads at most so many hands: what is called with a function that has all who have joined do `work` once, side by side, and
/// tells how many they were. `work` is told which hand it is, 0 being the leader, and of how many.
pub(in crate::planner) fn in_step<R>(
    most: usize,
    work: impl Fn(usize, usize) + Sync,
    lead: impl FnOnce(&dyn Fn() -> usize) -> R,
) -> R {
    let (team, work) = (&Team::default(), &work);
    rayon::in_place_scope(|scope| {
        let _end = End(team);
        for _ in 1..most.min(HANDS) {
            scope.spawn(|_| team.help(work));
        }
        lead(&|| team.step(work))
    })
}

impl Team {
    /// One step, from the leader's side.
    fn step(&self, work: &(impl Fn(usize, usize) + Sync)) -> usize {
        let helpers = self.joined.load(Ordering::Acquire);
        self.done.store(0, Ordering::Relaxed);
        let number = self.step.load(Ordering::Relaxed) / HANDS + 1;
        self.step.store(number * HANDS + helpers, Ordering::Release);
        work(0, 1 + helpers);
        look_for(|| (self.done.load(Ordering::Acquire) == helpers).then_some(()));
        assert!(!self.broken.load(Ordering::Acquire), "a helping thread has panicked");
        1 + helpers
    }

    /// All steps from now on, from a helper's side.
    fn help(&self, work: &(impl Fn(usize, usize) + Sync)) {
        let own = 1 + self.joined.fetch_add(1, Ordering::AcqRel);
        let _left = Left(self);
        let mut last = 0;
        loop {
            let step = look_for(|| Some(self.step.load(Ordering::Acquire)).filter(|&step| step != last));
            if step == ENDED {
                return;
            }
            last = step;
            // A step that was begun before this one joined is not for it.
            let helpers = step % HANDS;
            if own <= helpers {
                let _done = Done(self);
                work(own, 1 + helpers);
            }
        }
    }
}

/// What is done in pieces, step by step: which is done by which hand is all the same.
pub(in crate::planner) struct Pieces<T> {
    task: RwLock<T>,
    /// Pieces in the step at hand, and the first that nobody has taken.
    count: AtomicUsize,
    next: AtomicUsize,
}

impl<T> Pieces<T> {
    /// Of a task that has none yet.
    pub(in crate::planner) fn new(task: T) -> Self {
        Pieces { task: RwLock::new(task), count: AtomicUsize::new(0), next: AtomicUsize::new(0) }
    }

    /// The task, to be changed by the leader between two steps.
    pub(in crate::planner) fn task(&self) -> RwLockWriteGuard<'_, T> {
        self.task.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many pieces are to be taken in the next step.
    pub(in crate::planner) fn offer(&self, count: usize) {
        self.count.store(count, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
    }

    /// Does pieces as long as there are any: one of so many hands.
    pub(in crate::planner) fn take(&self, hands: usize, of: impl Fn(&T, usize)) {
        let task = self.task.read().unwrap_or_else(PoisonError::into_inner);
        let count = self.count.load(Ordering::Relaxed);
        let share = count.div_ceil(SHARES * hands).max(1);
        loop {
            let first = self.next.fetch_add(share, Ordering::Relaxed);
            if first >= count {
                return;
            }
            (first..count.min(first + share)).for_each(|at| of(&task, at));
        }
    }
}

/// Some of those up to `end` that nobody has taken, if there are any: what is found of those side by side lies side by side in
/// memory, so they are taken by the handful; but fewer as fewer are left, so that all hands end together.
pub(in crate::planner) fn take_some(next: &AtomicUsize, end: usize, hands: usize) -> Option<Range<usize>> {
    let after = |from: usize| {
        let few = (end.saturating_sub(from) / (PARTS_OF_A_SHARE * hands)).clamp(1, MOST_AT_A_TIME);
        (from < end).then_some(from + few)
    };
    let from = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()?;
    Some(from..after(from)?)
}

/// What is seen once there is something to see.
pub(in crate::planner) fn look_for<T>(mut see: impl FnMut() -> Option<T>) -> T {
    for _ in 0..LOOKS {
        if let Some(seen) = see() {
            return seen;
        }
        hint::spin_loop();
    }
    loop {
        if let Some(seen) = see() {
            return seen;
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Runs steps on a pool of so many threads and tells by step which hands worked, and for how many.
    fn steps(threads: usize, most: usize, count: usize) -> Vec<(usize, Vec<usize>)> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let worked = Mutex::new(vec![]);
        pool.install(|| {
            in_step(
                most,
                |own, hands| worked.lock().unwrap().push((own, hands)),
                |all| {
                    let step = |_| {
                        let hands = all();
                        let mut worked: Vec<(usize, usize)> = std::mem::take(&mut *worked.lock().unwrap());
                        assert!(worked.iter().all(|&(_, told)| told == hands), "{worked:?}");
                        worked.sort_unstable();
                        (hands, worked.into_iter().map(|(own, _)| own).collect())
                    };
                    (0..count).map(step).collect()
                },
            )
        })
    }

    #[test]
    fn every_step_is_done_once_by_each_who_has_joined() {
        for (threads, most) in [(1, 1), (1, 4), (2, 2), (3, 3), (2, 5)] {
            let all = steps(threads, most, 2_000);
            for (hands, worked) in &all {
                assert!(
                    *hands <= most.min(threads) && *worked == (0..*hands).collect::<Vec<_>>(),
                    "{hands} {worked:?}"
                );
            }
            // Who has joined stays.
            assert!(all.is_sorted_by_key(|(hands, _)| *hands));
        }
    }

    #[test]
    fn nobody_waits_for_threads_that_are_taken() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let sums: Vec<usize> = pool.install(|| {
            use rayon::prelude::*;
            let sum = |_| {
                let done = AtomicUsize::new(0);
                let add = |_, _| _ = done.fetch_add(1, Ordering::Relaxed);
                in_step(2, add, |all| (0..500).map(|_| all()).sum::<usize>() - done.load(Ordering::Relaxed))
            };
            (0..8).into_par_iter().map(sum).collect()
        });
        assert_eq!(sums, [0; 8]);
    }

    #[test]
    fn every_piece_is_done_once() {
        for threads in [1, 2, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let pieces = Pieces::new(vec![]);
            let piece = |done: &Vec<AtomicUsize>, at: usize| _ = done[at].fetch_add(1, Ordering::Relaxed);
            let work = |_, hands| pieces.take(hands, piece);
            pool.install(|| {
                in_step(threads, work, |all| {
                    for count in 0..300 {
                        *pieces.task() = (0..count).map(|_| AtomicUsize::new(0)).collect();
                        pieces.offer(count);
                        if count % 7 == 0 {
                            pieces.take(1, piece);
                        } else {
                            all();
                        }
                        assert!(pieces.task().iter().all(|done| done.load(Ordering::Relaxed) == 1));
                    }
                });
            });
        }
    }

    #[test]
    fn a_panic_ends_all_of_them() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for bad in [0, 1] {
            let work = |own, hands| assert!(own != bad || hands < 2, "as asked");
            let steps = || pool.install(|| in_step(2, work, |all| (0..).find(|_| all() > 2)));
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(steps));
            assert!(ended.is_err());
        }
    }

    #[test]
    fn all_are_taken_once_by_the_handful_and_the_last_one_by_one() {
        for (end, hands) in [(0, 1), (1, 2), (7, 3), (1_000, 2), (5_000, 1)] {
            let (next, taken) = (AtomicUsize::new(0), Mutex::new(vec![]));
            rayon::ThreadPoolBuilder::new().num_threads(hands).build().unwrap().broadcast(|_| {
                while let Some(few) = take_some(&next, end, hands) {
                    taken.lock().unwrap().push(few);
                }
            });
            let mut taken = taken.into_inner().unwrap();
            taken.sort_unstable_by_key(|few| few.start);
            let all: Vec<usize> = taken.iter().cloned().flatten().collect();
            assert_eq!(all, (0..end).collect::<Vec<_>>());
            assert!(
                taken.windows(2).all(|pair| pair[0].len() >= pair[1].len()) && taken.iter().all(|few| few.len() <= 16)
            );
            assert!(taken.last().is_none_or(|few| few.len() == 1));
            assert_eq!(taken.first().map(|few| few.len() > 1), (end > 0).then_some(end > 100), "{end}");
        }
    }
}
