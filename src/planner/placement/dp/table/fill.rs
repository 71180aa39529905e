//! Fills a table by size of closed set, with as many threads as there are.
//!
//! Each thread takes some closed sets of a size and writes what it finds out of them, which nobody reads before all are through; in
//! between, who leads adds the sets of use to those that larger ones build on. What
//! larger sets make useless leaves the table in two more steps of the same kind, for the smaller size and the larger.

use std::{
    ops::Range,
    sync::{Mutex, PoisonError, RwLock, atomic::AtomicUsize},
};

use super::{Open, Outer, Table, Tools, near};
use crate::planner::{
    Search,
    placement::{
        lattice::{Lattice, Refused, Walk},
        load::ClassCosts,
    },
    team::{in_step, take_some},
};

/// One thread, and what it found out about closed sets of a level.
struct Visitor<'a> {
    tools: Tools<'a>,
    /// What they make useless, of the level before.
    useless: Vec<usize>,
    pairs: u64,
}

/// What is done with the closed sets of a size: a share of them for each thread. What a set is found out from lies about as far
/// among those of its size, so it is often what the same thread has written.
#[derive(Debug)]
struct Task {
    work: Work,
    shares: Vec<Share>,
}

/// Closed sets that nobody has taken yet; apart from the others in memory.
#[derive(Debug)]
#[repr(align(128))]
struct Share {
    next: AtomicUsize,
    end: usize,
}

/// What is done with a closed set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Its values are found.
    Visit,
    /// What lies within it is found anew if something has left.
    Settle,
}

impl Task {
    /// Nothing, for so many threads.
    fn nothing(threads: usize) -> Self {
        let share = |_| Share { next: 0.into(), end: 0 };
        Task { work: Work::Visit, shares: (0..threads).map(share).collect() }
    }

    /// Begins work on the sets of a level.
    fn begin(&mut self, work: Work, level: &Range<usize>) {
        let threads = self.shares.len();
        let place = |share: usize| level.start + share * level.len() / threads;
        for (number, share) in self.shares.iter_mut().enumerate() {
            *share.next.get_mut() = place(number);
            share.end = place(number + 1);
        }
        self.work = work;
    }

    /// Sets that nobody has taken, of a thread's own share as long as there are any.
    fn take(&self, own: usize) -> Option<Range<usize>> {
        let (before, from_own) = self.shares.split_at(own);
        from_own.iter().chain(before).find_map(|share| take_some(&share.next, share.end, 1))
    }
}

impl<'a> Visitor<'a> {
    fn new(lattice: &'a Lattice, costs: &'a ClassCosts) -> Self {
        let walk = Walk::new(lattice, costs);
        let (open, outer) = (Open::default(), Outer::default());
        let tools = Tools { walk, ranges: vec![], open, here: vec![], outer, tired: false };
        Visitor { tools, useless: vec![], pairs: 0 }
    }

    /// Does what is to be done with some closed sets of a level, until none is left.
    fn work(&mut self, own: usize, table: &Table<'_>, task: &Task, enough: f64, search: &Search) {
        while let Some(sets) = task.take(own) {
            match task.work {
                Work::Visit => sets.for_each(|set| self.visit(table, set, enough, search)),
                Work::Settle => sets.for_each(|set| table.settle(set)),
            }
        }
    }

    fn visit(&mut self, table: &Table<'_>, set: usize, enough: f64, search: &Search) {
        let Visitor { tools, useless, pairs } = self;
        let Some(looked_at) = table.visit(set, enough, tools, search) else { return };
        *pairs += looked_at;
        let least = tools.here.iter().copied().fold(f64::INFINITY, f64::min);
        if least < f64::INFINITY {
            table.note(set, &tools.here, least);
            useless.extend(table.made_useless(set, &tools.here, enough));
            table.arrive(set);
        }
    }

    /// Tells the table whether bases are wanted, and adds to the closed sets that are useless now; the number of pairs looked at.
    fn hand_over(&mut self, table: &mut Table<'_>, useless: &mut Vec<usize>) -> u64 {
        useless.append(&mut self.useless);
        if std::mem::take(&mut self.tools.tired) {
            table.bases.want();
        }
        std::mem::take(&mut self.pairs)
    }
}

impl Table<'_> {
    /// Notes the values of a closed set, the least of which is known.
    fn note(&self, set: usize, here: &[f64], least: f64) {
        self.least[set].set(least);
        for entries in self.values.useful(set) {
            let here = &here[entries.places(self.accelerators + 1)];
            self.values.of(set, entries).iter().zip(here).for_each(|(value, &here)| value.set(here));
        }
    }

    /// Adds a closed set to what lies within it, with what it has values.
    fn arrive(&self, set: usize) {
        let own = near::compute(&self.sums[set]);
        for entries in self.values.useful(set) {
            for (accelerators, value) in (entries.from..).zip(self.values.of(set, entries)) {
                if value.get().is_finite() {
                    self.near.arrive(set, own, entries.c, accelerators);
                }
            }
        }
    }

    /// Finds anew what lies within a closed set if something has left.
    fn settle(&self, set: usize) {
        if self.has_lost(set) {
            self.near.approach(self.lattice, set);
            if self.least[set].get().is_finite() {
                self.arrive(set);
            }
        }
    }

    /// Fills the table by size of closed set, unless the whole obviously needs more devices, where values up to `enough` need
    /// not be the least; the number of pairs looked at.
    ///
    /// Closed sets of one size know nothing of one another: they are shared among threads.
    pub(in super::super) fn fill(&mut self, enough: f64, round: i32, search: &Search) -> Result<u64, Refused> {
        if self.values.useful(self.lattice.len() - 1).all(|entries| entries.c < self.cpus) {
            return Ok(0);
        }
        // How many rounds there will be is not known: each is half of what is left.
        let share = 0.5_f64.powi(round);
        let (lattice, costs) = (self.lattice, self.costs);
        let levels = lattice.levels();
        let widest = levels.iter().map(ExactSizeIterator::len).max().unwrap_or(1);
        let threads = rayon::current_num_threads().min(widest);
        let visitor = |_| Mutex::new(Visitor::new(lattice, costs));
        let visitors: Vec<Mutex<Visitor<'_>>> = (0..threads).map(visitor).collect();
        // Read by all while they work, written by who leads in between.
        let shared = RwLock::new((self, Task::nothing(threads)));
        let work = |own: usize, _| {
            let shared = shared.read().unwrap_or_else(PoisonError::into_inner);
            let (table, task) = &*shared;
            let mut visitor = visitors[own].lock().unwrap_or_else(PoisonError::into_inner);
            visitor.work(own, table, task, enough, search);
        };
        in_step(threads, work, |all| {
            let write = || shared.write().unwrap_or_else(PoisonError::into_inner);
            // The number of those who have worked.
            let step = |kind: Work, level: &Range<usize>| {
                write().1.begin(kind, level);
                if level.len() > 1 {
                    return all();
                }
                work(0, 1);
                1
            };
            let hand = |number: usize| visitors[number].lock().unwrap_or_else(PoisonError::into_inner);
            let mut pairs = 0;
            for (smaller, level) in levels.iter().zip(&levels[1..]) {
                if search.cancelled() {
                    return Err(Refused::Cancelled);
                }
                search.report_fraction(1.0 - share * (2.0 - level.end as f64 / lattice.len() as f64));
                let hands = step(Work::Visit, level);
                let mut useless = vec![];
                let mut shared = write();
                (0..hands).for_each(|number| pairs += hand(number).hand_over(shared.0, &mut useless));
                shared.0.forsake(&useless, smaller);
                drop(shared);
                if !useless.is_empty() {
                    for level in [smaller, level] {
                        step(Work::Settle, level);
                    }
                }
                write().0.gather(smaller);
            }
            if search.cancelled() { Err(Refused::Cancelled) } else { Ok(pairs) }
        })
    }
}
