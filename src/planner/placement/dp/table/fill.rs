//! Fills a table by size of closed set, with as many threads as there are.
//!
//! Each thread takes some closed sets of a size and keeps what it finds out; in between, who leads notes it in the table. What
//! larger sets make useless leaves the table in two more steps of the same kind, for the smaller size and the larger.

use std::{
    ops::Range,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::{NOWHERE, Open, Outer, Table, Tools};
use crate::planner::{
    Search,
    placement::{
        lattice::{Lattice, Refused, Walk},
        load::ClassCosts,
    },
    team::in_step,
};

/// Closed sets that a thread takes at a time: so many parts for each thread, unless they are large.
const PARTS_OF_A_THREAD: usize = 8;
const MOST_AT_A_TIME: usize = 16;

/// One thread, and what it found out about closed sets of a level.
struct Visitor<'a> {
    tools: Tools<'a>,
    /// Those that it is known of what lies within them, and that, one row after the other.
    sets: Vec<usize>,
    near: Vec<f32>,
    /// Those that have values, the least of each, and their rows.
    valued: Vec<(usize, f64)>,
    values: Vec<f64>,
    /// What they make useless, of the level before.
    useless: Vec<usize>,
    pairs: u64,
}

/// What is done with the closed sets of a size, and those that nobody has taken yet, so many at a time.
#[derive(Debug)]
struct Task {
    work: Work,
    next: AtomicUsize,
    end: usize,
    few: usize,
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
    /// For so many threads.
    fn new(work: Work, level: &Range<usize>, threads: usize) -> Self {
        let few = (level.len() / (PARTS_OF_A_THREAD * threads)).clamp(1, MOST_AT_A_TIME);
        Task { work, next: level.start.into(), end: level.end, few }
    }

    /// Sets that nobody has taken.
    fn take(&self) -> Option<Range<usize>> {
        let from = self.next.fetch_add(self.few, Ordering::Relaxed);
        (from < self.end).then(|| from..self.end.min(from + self.few))
    }
}

impl<'a> Visitor<'a> {
    fn new(lattice: &'a Lattice, costs: &'a ClassCosts) -> Self {
        let walk = Walk::new(lattice, costs);
        let tools = Tools { walk, ranges: vec![], open: Open::default(), outer: Outer::default(), tired: false };
        Visitor { tools, sets: vec![], near: vec![], valued: vec![], values: vec![], useless: vec![], pairs: 0 }
    }

    /// Does what is to be done with some closed sets of a level, until none is left.
    fn work(&mut self, table: &Table<'_>, task: &Task, enough: f64, search: &Search) {
        while let Some(sets) = task.take() {
            match task.work {
                Work::Visit => sets.for_each(|set| self.visit(table, set, enough, search)),
                Work::Settle => sets.for_each(|set| self.settle(table, set)),
            }
        }
    }

    fn visit(&mut self, table: &Table<'_>, set: usize, enough: f64, search: &Search) {
        let Visitor { tools, sets, near, valued, values, useless, pairs } = self;
        let places = (values.len(), near.len());
        sets.push(set);
        near.resize(places.1 + table.width(), NOWHERE);
        values.resize(places.0 + table.cells(), f64::INFINITY);
        let (near, here) = (&mut near[places.1..], &mut values[places.0..]);
        table.approach(set, near);
        *pairs += table.visit(set, enough, (here, near), tools, search);
        let least = here.iter().copied().fold(f64::INFINITY, f64::min);
        if least == f64::INFINITY {
            values.truncate(places.0);
            return;
        }
        valued.push((set, least));
        useless.extend(table.made_useless(set, here, enough));
        table.arrive(set, here, near);
    }

    fn settle(&mut self, table: &Table<'_>, set: usize) {
        if table.has_lost(set) {
            let (cells, place) = (table.cells(), self.near.len());
            self.sets.push(set);
            self.near.resize(place + table.width(), NOWHERE);
            let near = &mut self.near[place..];
            table.approach(set, near);
            if table.least[set].is_finite() {
                table.arrive(set, &table.values[set * cells..(set + 1) * cells], near);
            }
        }
    }

    /// Notes in the table what lies within the closed sets that it is known of.
    fn hand_over_near(&mut self, table: &mut Table<'_>) {
        let width = table.width();
        for (set, near) in self.sets.drain(..).zip(self.near.chunks_exact(width)) {
            table.near[set * width..(set + 1) * width].copy_from_slice(near);
        }
        self.near.clear();
    }

    /// Notes in the table what was found out, and adds to the closed sets that are useless now; the number of pairs looked at.
    fn hand_over(&mut self, table: &mut Table<'_>, useless: &mut Vec<usize>) -> u64 {
        let cells = table.cells();
        for ((set, least), values) in self.valued.drain(..).zip(self.values.chunks_exact(cells)) {
            table.values[set * cells..(set + 1) * cells].copy_from_slice(values);
            table.valued.push(set);
            table.least[set] = least;
        }
        self.values.clear();
        self.hand_over_near(table);
        useless.append(&mut self.useless);
        if std::mem::take(&mut self.tools.tired) {
            table.bases.want();
        }
        std::mem::take(&mut self.pairs)
    }
}

impl Table<'_> {
    /// Fills the table by size of closed set, unless the whole obviously needs more devices, where values up to `enough` need
    /// not be the least; the number of pairs looked at.
    ///
    /// Closed sets of one size know nothing of one another: they are shared among threads.
    pub(in super::super) fn fill(&mut self, enough: f64, round: i32, search: &Search) -> Result<u64, Refused> {
        let (least, most) = self.useful(self.lattice.len() - 1, self.cpus, &self.full);
        if least > most {
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
        let shared = RwLock::new((self, Task::new(Work::Visit, &(0..0), 1)));
        let work = |own: usize, _| {
            let shared = shared.read().unwrap_or_else(PoisonError::into_inner);
            let (table, task) = &*shared;
            let mut visitor = visitors[own].lock().unwrap_or_else(PoisonError::into_inner);
            visitor.work(table, task, enough, search);
        };
        in_step(threads, work, |all| {
            let write = || shared.write().unwrap_or_else(PoisonError::into_inner);
            // The number of those who have worked.
            let step = |kind: Work, level: &Range<usize>| {
                write().1 = Task::new(kind, level, threads);
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
                        let hands = step(Work::Settle, level);
                        let mut shared = write();
                        (0..hands).for_each(|number| hand(number).hand_over_near(shared.0));
                    }
                }
                write().0.gather(smaller);
            }
            if search.cancelled() { Err(Refused::Cancelled) } else { Ok(pairs) }
        })
    }
}
