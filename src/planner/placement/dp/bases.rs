//! The closed sets that larger ones may build on (bases), to be looked at one after the other.
//!
//! A walk down from a closed set goes over all that lies within a device's reach, and what larger sets may build on is often a
//! hundredth of that. Where a walk gets long these few are looked at instead: what lies between is found from bits and summed
//! up in the order in which the walk takes it out, so that the sums are the same to the last bit.
//!
//! `O(classes + bases · (classes / 64 + classes of a device · degree))` time for a closed set, a bit for each class of a base in
//! memory.

use crate::{graph::lies_within, planner::placement::lattice::Lattice};

/// The bits of all bases, in words (32 MiB); where they would be more none are kept.
const MOST_WORDS: usize = 1 << 22;

/// What a base takes to look at, in classes that are summed up.
const STEPS_OF_A_BASE: usize = 32;

/// Closed sets that larger ones may build on, by size.
#[derive(Debug, Default)]
pub(super) struct Bases {
    bases: Vec<Base>,
    /// Words of a row of bits.
    words: usize,
    /// The classes by place of those that were looked at, a row for each.
    bits: Vec<u64>,
    /// Whether they are looked at, in this table or a later one.
    wanted: bool,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
struct Base {
    set: usize,
    compute: Compute,
    /// The most of all bases up to it.
    most: Compute,
}

/// What a closed set computes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compute {
    pub(super) accelerator: f64,
    pub(super) cpu: f64,
}

impl Compute {
    /// Whether either is as much as this.
    #[inline]
    fn reaches(self, least: Compute) -> bool {
        self.accelerator >= least.accelerator || self.cpu >= least.cpu
    }
}

/// A closed set that bases are looked for in.
#[derive(Debug, Default)]
pub(super) struct Outer {
    bits: Vec<u64>,
    /// Its class at each place.
    classes: Vec<u32>,
}

/// A look through the bases within a closed set, the largest first.
#[derive(Debug)]
pub(super) struct Look<'a> {
    bases: &'a Bases,
    outer: &'a Outer,
    least: Compute,
    /// The base at hand and the last one, by place among all bases.
    at: usize,
    first: usize,
}

impl Look<'_> {
    /// The next one that computes so much.
    pub(super) fn next_base(&mut self) -> Option<usize> {
        while self.at > self.first {
            self.at -= 1;
            let base = &self.bases.bases[self.at];
            if base.compute.reaches(self.least) && lies_within(self.bases.bits(self.at), &self.outer.bits) {
                return Some(base.set);
            }
        }
        None
    }

    /// The classes of the closed set that the base at hand does not hold, the last in topological order first.
    pub(super) fn between(&self) -> impl Iterator<Item = u32> + Clone {
        let (Outer { bits, classes }, inner) = (self.outer, self.bases.bits(self.at));
        let in_word = move |word: usize| {
            let lacking = bits[word] & !inner[word];
            let last = |left: u64| (left > 0).then(|| 63 - left.leading_zeros());
            let next = move |&bit: &u32| last(lacking & ((1 << bit) - 1));
            std::iter::successors(last(lacking), next).map(move |bit| classes[64 * word + bit as usize])
        };
        (0..bits.len()).rev().flat_map(in_word)
    }

    /// How many bases were looked at.
    pub(super) fn looked(&self) -> usize {
        self.bases.bases.len() - self.at
    }
}

impl Bases {
    /// Begins anew over so many classes.
    pub(super) fn begin(&mut self, classes: usize) {
        self.bases.clear();
        self.bits.clear();
        self.words = classes.div_ceil(64);
    }

    /// The classes of one of them, by place.
    fn bits(&self, at: usize) -> &[u64] {
        &self.bits[at * self.words..(at + 1) * self.words]
    }

    /// Adds a closed set that comes after those known; the empty one is the first.
    pub(super) fn push(&mut self, set: usize, compute: Compute) {
        let Compute { accelerator, cpu } = self.bases.last().map_or(compute, |last| last.most);
        let most = Compute { accelerator: accelerator.max(compute.accelerator), cpu: cpu.max(compute.cpu) };
        self.bases.push(Base { set, compute, most });
    }

    /// From now on they are looked at.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// Finds the classes of those that were added, if they are looked at.
    pub(super) fn draw(&mut self, lattice: &Lattice) {
        if !self.wanted {
            return;
        }
        if self.bases.len() * self.words > MOST_WORDS {
            self.bits = vec![];
            return;
        }
        for at in self.bits.len() / self.words..self.bases.len() {
            let from = self.bits.len();
            self.bits.resize(from + self.words, 0);
            // What it holds beside a base that is not far: the empty set is one.
            for (below, _, place) in lattice.taken_out(self.bases[at].set) {
                self.bits[from + place / 64] |= 1 << (place % 64);
                if let Ok(known) = self.bases[..at].binary_search_by_key(&below, |base| base.set) {
                    (0..self.words).for_each(|word| self.bits[from + word] |= self.bits[self.words * known + word]);
                    break;
                }
            }
        }
    }

    /// Whether they may be looked at.
    pub(super) fn ready(&self) -> bool {
        !self.bits.is_empty() && self.bits.len() == self.words * self.bases.len()
    }

    /// The first of those that may compute so much, by accelerator or by CPU; all behind it may.
    fn first(&self, least: Compute) -> usize {
        self.bases.partition_point(|base| !base.most.reaches(least))
    }

    /// About so many steps, in classes that are summed up, a look takes through those within a closed set that compute so much.
    pub(super) fn steps(&self, lattice: &Lattice, set: usize, least: Compute) -> u64 {
        let first = self.first(least);
        let size = lattice.size(set);
        let furthest = self.bases.get(first).map_or(0, |base| size - lattice.size(base.set));
        let of_a_base = STEPS_OF_A_BASE + 2 * self.words + furthest;
        (size + (self.bases.len() - first) * of_a_base) as u64
    }

    /// Begins a look through those within a closed set that compute so much.
    pub(super) fn look<'a>(&'a self, lattice: &Lattice, set: usize, least: Compute, outer: &'a mut Outer) -> Look<'a> {
        outer.bits.clear();
        outer.bits.resize(self.words, 0);
        outer.classes.resize(64 * self.words, 0);
        for (_, class, place) in lattice.taken_out(set) {
            outer.bits[place / 64] |= 1 << (place % 64);
            outer.classes[place] = class;
        }
        Look { bases: self, outer, least, at: self.bases.len(), first: self.first(least) }
    }
}
