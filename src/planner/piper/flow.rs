//! A table of undominated pairs is filled by many hands, smaller sets first.
//!
//! What a set does with depends on all smaller ones within it, so in a long network hardly two sets could be tried side by side if
//! each had to wait for the one before. Instead a set of a narrow level is *begun* in front of what is known some levels before
//! it, which is nearly all, and *ended* in front of the few sets in between, once these are known. Every hand begins and ends its
//! own sets and begins others while it waits. Of a wide level, where all smaller sets are known before, whoever is free takes the
//! next few.
//!
//! Which sets are known to whom when it begins is fixed by the levels alone, so that what is found is the same for any number
//! of hands, however fast. Each keeps its own [`Sources`]: to bring them up to date takes less than to wait for another who does.
//! Memory `O(sets · nodes / 64)` words for each hand.
//!
//! Every wait has an end: of the sets that are not known, the smallest waits for none, and who is to find it does nothing else
//! before that would have to wait.

use std::{
    collections::VecDeque,
    iter,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use super::{
    probe::Probe,
    sources::{Heavier, Sources},
    view::View,
    worker::{Open, Worker},
};
use crate::planner::{
    Search,
    team::{in_step, look_for, take_some},
};

/// Sets of one size are a wide level if there are at least so many of them: whoever is free takes the next few. The inner sets of a
/// single one are never shared out: what one half finds first spares most of the other.
pub(super) const SHARED_OUT: usize = 12;
/// Sets a hand has begun and not ended, at the most.
const BEGUN: usize = 4;
/// So many narrow levels after one another are a hand's, mostly sets within one another: only for the first it waits.
const RUN: usize = 2;
/// Narrow levels between two meetings of all hands, at which newcomers join, at the most; before the first there are fewer.
const LEVELS_TOGETHER: usize = 256;
const FIRST_TOGETHER: usize = 8;
/// No more hands than can have their sources in so many bytes.
const MOST_BYTES: usize = 256 << 20;

/// A table to be filled.
pub(super) struct Flow<'f, 'p, 'm, 'a> {
    probe: &'f Probe<'p, 'm, 'a>,
    heavier: Option<&'f Heavier>,
    levels: Vec<Range<usize>>,
    /// By level: those before this one are known when its sets are begun.
    known: Vec<usize>,
    /// The levels at hand: a wide one or narrow ones.
    at_hand: Mutex<Range<usize>>,
    /// The first set of a wide one that nobody has taken.
    next: AtomicUsize,
    /// Whether someone has given up.
    stopped: AtomicBool,
    search: &'f Search,
    /// Shares of the whole search done before and after.
    progress: (f64, f64),
}

/// One of those who fill it.
#[repr(align(128))]
struct Hand<'w, 'm, 'a> {
    worker: &'w mut Worker<'m, 'a>,
    /// Up to date with the levels before `level`.
    sources: Option<Sources>,
    level: usize,
    /// The sets before this one are known to be known.
    known: usize,
    /// Begun sets, each with the sets that stages are still to be put in front of, as far as they are within it.
    begun: VecDeque<(Box<Open<'m>>, Range<usize>)>,
}

/// That the search was cancelled, or somebody panicked.
struct Stopped;

/// Tells all who wait if the one at work panics.
struct Alarm<'s>(&'s AtomicBool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// By level: the levels before this one are known when its sets are begun, of narrow ones all but the last before it, so that it is
/// one of so many together.
fn known(levels: &[Range<usize>], together: usize) -> Vec<usize> {
    let mut least = 0;
    let known = |(at, level): (usize, &Range<usize>)| {
        if is_wide(level) {
            least = at + 1;
            return at;
        }
        least.max((at + 1).saturating_sub(together))
    };
    levels.iter().enumerate().map(known).collect()
}

fn is_wide(level: &Range<usize>) -> bool {
    level.len() >= SHARED_OUT
}

impl<'f, 'p, 'm, 'a> Flow<'f, 'p, 'm, 'a> {
    /// For the table that `probe` is filling; of narrow levels, so many together are tried side by side.
    pub(super) fn new(
        probe: &'f Probe<'p, 'm, 'a>,
        heavier: Option<&'f Heavier>,
        together: usize,
        progress: (f64, f64),
        search: &'f Search,
    ) -> Self {
        let levels: Vec<Range<usize>> = probe.model.levels().collect();
        let known = known(&levels, together);
        let (at_hand, next, stopped) = (Mutex::new(0..0), AtomicUsize::new(0), AtomicBool::new(false));
        Flow { probe, heavier, levels, known, at_hand, next, stopped, search, progress }
    }

    /// Fills it; false if that was cancelled.
    pub(super) fn run(&self, workers: &mut [Worker<'m, 'a>]) -> bool {
        let most = workers.len().min(MOST_BYTES / Sources::bytes(self.probe.model)).max(1);
        let hand = |worker| Mutex::new(Hand { worker, sources: None, level: 0, known: 1, begun: VecDeque::new() });
        let hands: Vec<Mutex<Hand<'_, 'm, 'a>>> = workers.iter_mut().map(hand).collect();
        let work = |own: usize, of: usize| {
            let _alarm = Alarm(&self.stopped);
            // Each has its own and nobody else's; after a panic there is nothing left to be saved.
            let mut hand = hands[own].lock().unwrap_or_else(PoisonError::into_inner);
            if self.work(&mut hand, own, of).is_err() {
                self.stopped.store(true, Ordering::Release);
            }
        };
        in_step(most, work, |all| {
            let (mut from, mut together) = (0, FIRST_TOGETHER);
            while from < self.levels.len() {
                let narrow = self.levels[from..].iter().take(together).take_while(|level| !is_wide(level)).count();
                let to = from + narrow.max(1);
                self.next.store(self.levels[from].start, Ordering::Relaxed);
                *self.at_hand.lock().unwrap_or_else(PoisonError::into_inner) = from..to;
                all();
                if self.stopped.load(Ordering::Acquire) {
                    return false;
                }
                (from, together) = (to, LEVELS_TOGETHER.min(2 * together));
            }
            true
        })
    }

    /// One hand's part of the levels at hand.
    fn work(&self, hand: &mut Hand<'_, 'm, 'a>, own: usize, of: usize) -> Result<(), Stopped> {
        if hand.sources.is_none() {
            let (question, model) = (self.probe.question, self.probe.model);
            hand.worker.prepare(question, model.degrees.len(), model.sets.len());
        }
        let at_hand = self.at_hand.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for at in at_hand {
            let level = &self.levels[at];
            if own == 0 {
                let (before, after) = self.progress;
                let share = level.start as f64 / self.probe.model.full() as f64;
                self.search.report_fraction(before + (after - before) * share);
            }
            if is_wide(level) {
                self.catch_up(hand, at)?;
                // Who finds a frontier makes no difference to it.
                while let Some(few) = take_some(&self.next, level.end, of) {
                    for outer in few {
                        self.go_on()?;
                        let (open, _) = hand.worker.begin(&self.view(&hand.sources, at), outer);
                        self.probe.note(outer, hand.worker.end(self.probe, open, iter::empty()));
                    }
                }
            } else {
                // The same sets as ever, whose stages it remembers.
                for (_, outer) in level.clone().enumerate().filter(|(place, _)| (at / RUN + place) % of == own) {
                    self.go_on()?;
                    self.begin(hand, at, outer)?;
                }
            }
        }
        self.end_until(hand, |_, _, _| false)
    }

    /// Begins a set of a narrow level, having ended those that can be.
    fn begin(&self, hand: &mut Hand<'_, 'm, 'a>, at: usize, outer: usize) -> Result<(), Stopped> {
        self.end_until(hand, |begun, _, between| {
            begun < BEGUN && !between.clone().all(|set| self.probe.is_known(set))
        })?;
        let known = self.known[at];
        self.catch_up(hand, known)?;
        let view = self.view(&hand.sources, known);
        let (open, more) = hand.worker.begin(&view, outer);
        if !more {
            self.probe.note(outer, hand.worker.end(self.probe, open, iter::empty()));
            return Ok(());
        }
        let between = self.levels[known].start..self.levels[at].start;
        // Where a stage is put in front of another table, all of that is known.
        let between = if self.probe.behind == self.probe.filled { between } else { 0..0 };
        hand.begun.push_back((open, between));
        Ok(())
    }

    /// Ends one begun set after the other, until there are none or the first `waits`: it is told how many there are, the first and
    /// what came in between.
    fn end_until(
        &self,
        hand: &mut Hand<'_, 'm, 'a>,
        waits: impl Fn(usize, &Open<'m>, &Range<usize>) -> bool,
    ) -> Result<(), Stopped> {
        while hand.begun.front().is_some_and(|(open, between)| !waits(hand.begun.len(), open, between)) {
            let Some((open, between)) = hand.begun.pop_front() else { break };
            let (set, sets) = (open.outer.set, &self.probe.model.sets);
            let mut stopped = false;
            let between = between.filter(|&inner| sets.is_subset(inner, set)).map_while(|inner| {
                stopped = self.wait_for(inner).is_err();
                (!stopped).then_some(inner)
            });
            let found = hand.worker.end(self.probe, open, between);
            if stopped {
                return Err(Stopped);
            }
            self.probe.note(set, found);
        }
        Ok(())
    }

    /// Waits until the levels before this one are known, having ended what is begun of them, and brings the sources up to date with
    /// them.
    fn catch_up(&self, hand: &mut Hand<'_, 'm, 'a>, level: usize) -> Result<(), Stopped> {
        let (probe, first) = (self.probe, self.levels[level].start);
        self.end_until(hand, |_, open, _| open.outer.set >= first)?;
        while hand.known < first {
            self.wait_for(hand.known)?;
            hand.known += 1;
        }
        let sources = hand.sources.get_or_insert_with(|| {
            let mut sources = Sources::new(probe.model, self.heavier.is_some());
            if probe.behind == probe.filled {
                // Of a table that is being filled only nothing is known; the rest is looked at level by level.
                sources.look(None);
                sources.look_again(probe.model, probe.table_behind(), 0..1);
            } else {
                sources.look(Some(probe.table_behind()));
            }
            sources
        });
        if hand.level < level {
            let new = &self.levels[hand.level..level];
            if let Some(heavier) = self.heavier {
                for level in new {
                    sources.advance(probe.model, heavier, probe.table_behind(), level.clone());
                }
            }
            if probe.behind == probe.filled {
                sources.look_again(probe.model, probe.table_behind(), new[0].start..first);
            }
            hand.level = level;
        }
        Ok(())
    }

    /// What is known before a level to whom has caught up with it.
    fn view<'v>(&self, sources: &'v Option<Sources>, level: usize) -> View<'v, 'p, 'm, 'a>
    where
        'f: 'v,
    {
        let sources = sources.as_ref().expect("who catches up has sources");
        View { probe: self.probe, sources, known: self.levels[level].start }
    }

    fn wait_for(&self, set: usize) -> Result<(), Stopped> {
        look_for(|| {
            if self.probe.is_known(set) {
                return Some(Ok(()));
            }
            self.stopped.load(Ordering::Relaxed).then_some(Err(Stopped))
        })
    }

    fn go_on(&self) -> Result<(), Stopped> {
        if self.stopped.load(Ordering::Relaxed) || self.search.cancelled() { Err(Stopped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_before_a_level_depends_on_the_levels_alone() {
        let widths = [1, 2, 1, 1, SHARED_OUT, SHARED_OUT, 1, 2, 3, 1, 1];
        let mut start = 1;
        let level = |width| {
            start += width;
            start - width..start
        };
        let levels: Vec<Range<usize>> = widths.into_iter().map(level).collect();
        assert_eq!(known(&levels, 1), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(known(&levels, 3), [0, 0, 0, 1, 4, 5, 6, 6, 6, 7, 8]);
    }
}
