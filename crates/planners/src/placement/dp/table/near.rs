//! Most compute of a closed set with a value within each closed set, by the devices that hold it: what one more device can build
//! on.
//!
//! Each set has cells for few numbers of accelerators: not more than the sets within it have values with, not fewer than larger
//! sets build on.
//!
//! Memory `O(sets + cells)`, time `O(sets · (c + 1) + steps)` to find which cells there are.

use super::{
    ComputeAim, DeviceEntries, Sums,
    windows::{AcceleratorRange, CellLayout},
};
use crate::placement::lattice::Lattice;

/// Cell of a set without a closed set with a value within it.
const NOWHERE: [f32; 2] = [-1.0; 2];

/// Compute of a set on an accelerator and on a CPU, rounded up.
pub(super) fn compute(sums: &Sums) -> [f32; 2] {
    [sums.accelerator, sums.cpu].map(|time| (time as f32).next_up())
}

/// Most compute of a closed set with a value, on an accelerator and on a CPU; rounded up, so that it is never too little.
type ComputeCell = [f32; 2];

fn raise(cell: &mut ComputeCell, [accelerator, cpu]: ComputeCell) {
    *cell = [cell[0].max(accelerator), cell[1].max(cpu)];
}

/// Cells of all closed sets.
#[derive(Debug)]
pub(super) struct ReachableCompute {
    windows: CellLayout,
    cells: Vec<ComputeCell>,
}

impl ReachableCompute {
    /// Lays out the cells for the numbers of accelerators with which sets are of use, by set and number of CPUs (`row` of them).
    /// Sets must be approached in order of size.
    pub(super) fn new(lattice: &Lattice, useful: &[AcceleratorRange], row: usize) -> Self {
        let (fewest, most) = (fewest_below(lattice, useful, row), most_within(lattice, useful, row));
        let spans = fewest.into_iter().zip(most).map(|(from, to)| AcceleratorRange { from, to });
        let (windows, count) = CellLayout::new(spans, row);
        let mut cells = vec![NOWHERE; count];
        cells[windows.all(0)].fill(compute(&Sums::default()));
        ReachableCompute { windows, cells }
    }

    /// Fills the cells of a set from those of the sets with one class less; true if it has any cells.
    pub(super) fn approach(&mut self, lattice: &Lattice, set: usize) -> bool {
        let own = self.windows.span(set);
        let here = self.windows.all(set);
        for &(below, _) in lattice.below(set) {
            // The smaller set has no cells beyond the range that both have.
            let both = self.windows.span(below as usize).within(own.from.into(), own.to.into());
            let there = self.windows.places(below as usize, both);
            for (at, there) in here.clone().zip(there) {
                let most = self.cells[there];
                raise(&mut self.cells[at], most);
            }
        }
        !here.is_empty()
    }

    /// Adds a closed set with its compute to its own cell for these devices.
    pub(super) fn arrive(&mut self, set: usize, own: [f32; 2], c: usize, accelerators: usize) {
        if let Some(place) = self.windows.place(set)(c, accelerators) {
            raise(&mut self.cells[place], own);
        }
    }

    /// True if no entry can build on a closed set within this one: none has the compute that one more accelerator or CPU needs
    /// below it.
    #[inline]
    pub(super) fn far(&self, set: usize, entries: &[DeviceEntries], (accelerator, cpu): ComputeAim) -> bool {
        // An empty cell is negative.
        let (accelerator, cpu) = (accelerator.max(0.0), cpu.max(0.0));
        let place = self.windows.place(set);
        let reached = |c: usize, from: usize, to: usize, kind: usize, least: f64| {
            let most = |accelerators: usize| place(c, accelerators).map(|place| f64::from(self.cells[place][kind]));
            (from..to).any(|accelerators| most(accelerators).is_some_and(|most| most >= least))
        };
        let reached = |&DeviceEntries { c, from, to }: &DeviceEntries| {
            reached(c, from.max(1) - 1, to - 1, 0, accelerator) || (c > 0 && reached(c - 1, from, to, 1, cpu))
        };
        !entries.iter().any(reached)
    }
}

/// Fewest accelerators that a closed set or a larger one builds on, by set.
fn fewest_below(lattice: &Lattice, useful: &[AcceleratorRange], row: usize) -> Vec<u16> {
    let mut fewest = vec![u16::MAX; lattice.len()];
    for (set, spans) in useful.chunks_exact(row).enumerate().rev() {
        let spans = spans.iter().filter(|span| !span.is_empty());
        let own = spans.map(|span| span.from.saturating_sub(1)).min().unwrap_or(u16::MAX).min(fewest[set]);
        fewest[set] = own;
        for &(below, _) in lattice.below(set) {
            let below = &mut fewest[below as usize];
            *below = own.min(*below);
        }
    }
    fewest
}

/// One more than the most accelerators with which a closed set or a smaller one may have a value, by set.
fn most_within(lattice: &Lattice, useful: &[AcceleratorRange], row: usize) -> Vec<u16> {
    let mut most = Vec::with_capacity(lattice.len());
    for (set, spans) in useful.chunks_exact(row).enumerate() {
        let own = spans.iter().map(|span| span.to);
        // The empty set has a value without devices.
        let least = if set == 0 { 1 } else { 0 };
        let below = lattice.below(set).iter().map(|&(below, _)| most[below as usize]);
        let own = own.chain(below).fold(least, u16::max);
        most.push(own);
    }
    most
}
