//! What lies within each closed set that a device may build on: the most compute of a closed set with a value, by the devices
//! that hold it.
//!
//! Of all numbers of accelerators a closed set is asked for few: none has a value with more than the sets within it are of use
//! with, and no larger set asks for fewer than it builds on.
//!
//! Memory `O(sets + cells)`, time `O(sets · (c + 1) + steps)` to find which cells there are.

use super::{
    Aim, Sums, Useful,
    windows::{Span, Windows},
};
use crate::planner::placement::lattice::Lattice;

/// There is no closed set with a value within this one.
const NOWHERE: [f32; 2] = [-1.0; 2];

/// So much compute at least, on an accelerator and on a CPU.
pub(super) fn compute(sums: &Sums) -> [f32; 2] {
    [sums.accelerator, sums.cpu].map(|time| (time as f32).next_up())
}

/// Most compute of a closed set with a value, on an accelerator and on a CPU; rounded up, so that it is never too little.
type Cell = [f32; 2];

fn raise(cell: &mut Cell, [accelerator, cpu]: Cell) {
    *cell = [cell[0].max(accelerator), cell[1].max(cpu)];
}

/// What lies within all closed sets.
#[derive(Debug, Default)]
pub(super) struct Near {
    windows: Windows,
    cells: Vec<Cell>,
    /// From the fewest accelerators that larger sets ask for, to the most that smaller ones have values with.
    asked: Vec<u16>,
    there: Vec<u16>,
}

impl Near {
    /// Begins anew where closed sets are of use with these numbers of accelerators, by set and so many numbers of CPUs. What lies
    /// within a set is to be noted before it is asked for.
    pub(super) fn begin(&mut self, lattice: &Lattice, useful: &[Span], row: usize) {
        let Near { windows, cells, asked, there } = self;
        find_asked(lattice, useful, row, asked);
        find_there(lattice, useful, row, there);
        let spans = asked.iter().zip(&*there).map(|(&from, &to)| Span { from, to });
        let count = windows.lay_out(spans, row);
        if cells.len() < count {
            cells.resize(count, NOWHERE);
        }
        let nothing = compute(&Sums::default());
        cells[windows.all(0)].fill(nothing);
    }

    /// Notes what lies within a closed set and is smaller, that is within those below; whether it is asked for anything.
    pub(super) fn approach(&mut self, lattice: &Lattice, set: usize) -> bool {
        let own = self.windows.span(set);
        let here = self.windows.all(set);
        self.cells[here.clone()].fill(NOWHERE);
        for &(below, _) in lattice.below(set) {
            // The smaller one is asked for no fewer, and has no more.
            let both = self.windows.span(below as usize).within(own.from.into(), own.to.into());
            let there = self.windows.places(below as usize, both);
            for (at, there) in here.clone().zip(there) {
                let most = self.cells[there];
                raise(&mut self.cells[at], most);
            }
        }
        !here.is_empty()
    }

    /// Adds a closed set of so much compute to what lies within it, beside so many CPUs and with these accelerators.
    pub(super) fn arrive(&mut self, set: usize, own: [f32; 2], c: usize, accelerators: usize) {
        if let Some(place) = self.windows.place(set)(c, accelerators) {
            raise(&mut self.cells[place], own);
        }
    }

    /// Whether none of these entries builds on a closed set within this one that computes as much as a device more must find
    /// there, an accelerator or a CPU.
    #[inline]
    pub(super) fn far(&self, set: usize, entries: &[Useful], (accelerator, cpu): Aim) -> bool {
        // Nothing is less than none.
        let (accelerator, cpu) = (accelerator.max(0.0), cpu.max(0.0));
        let place = self.windows.place(set);
        let reached = |c: usize, from: usize, to: usize, kind: usize, least: f64| {
            let most = |accelerators: usize| place(c, accelerators).map(|place| f64::from(self.cells[place][kind]));
            (from..to).any(|accelerators| most(accelerators).is_some_and(|most| most >= least))
        };
        let reached = |&Useful { c, from, to }: &Useful| {
            reached(c, from.max(1) - 1, to - 1, 0, accelerator) || (c > 0 && reached(c - 1, from, to, 1, cpu))
        };
        !entries.iter().any(reached)
    }
}

/// The fewest accelerators that a closed set or one that it lies in asks for.
fn find_asked(lattice: &Lattice, useful: &[Span], row: usize, asked: &mut Vec<u16>) {
    asked.clear();
    asked.resize(lattice.len(), u16::MAX);
    for (set, spans) in useful.chunks_exact(row).enumerate().rev() {
        let spans = spans.iter().filter(|span| !span.is_empty());
        let own = spans.map(|span| span.from.saturating_sub(1)).min().unwrap_or(u16::MAX).min(asked[set]);
        asked[set] = own;
        for &(below, _) in lattice.below(set) {
            let below = &mut asked[below as usize];
            *below = own.min(*below);
        }
    }
}

/// Behind the most accelerators that a closed set or one that lies in it may have a value with.
fn find_there(lattice: &Lattice, useful: &[Span], row: usize, there: &mut Vec<u16>) {
    there.clear();
    for (set, spans) in useful.chunks_exact(row).enumerate() {
        let own = spans.iter().map(|span| span.to);
        // The empty set has a value with nothing, which larger ones with more devices than they need take over.
        let least = if set == 0 { 1 } else { 0 };
        let below = lattice.below(set).iter().map(|&(below, _)| there[below as usize]);
        let most = own.chain(below).fold(least, u16::max);
        there.push(most);
    }
}
