//! Values of all closed sets, for the numbers of devices with which they are of use.

use super::{
    DeviceEntries,
    windows::{AcceleratorRange, CellLayout},
};

/// Values of all closed sets; infinite if not below the bound.
#[derive(Debug)]
pub(super) struct SetValues {
    /// By set and number of CPUs.
    windows: CellLayout,
    /// Numbers of CPUs.
    row: usize,
    cells: Vec<f64>,
}

impl SetValues {
    /// Lays out the values for the numbers of accelerators with which sets are of use, by set and number of CPUs (`row` of them).
    /// All are infinite but those of the empty set, which are zero.
    pub(super) fn new(useful: &[AcceleratorRange], row: usize) -> Self {
        let (windows, count) = CellLayout::new(useful.iter().copied(), 1);
        let mut cells = vec![f64::INFINITY; count];
        (0..row).for_each(|c| cells[windows.all(c)].fill(0.0));
        SetValues { windows, row, cells }
    }

    /// Numbers of devices with which a closed set is of use.
    pub(super) fn useful(&self, set: usize) -> impl Iterator<Item = DeviceEntries> + '_ {
        let spans = (0..self.row).map(move |c| (c, self.windows.span(set * self.row + c)));
        let spans = spans.filter(|(_, span)| !span.is_empty());
        spans.map(|(c, span)| DeviceEntries { c, from: span.from.into(), to: span.to.into() })
    }

    /// Values of a range of accelerators beside `c` CPUs, as far as there are cells, and the accelerators of the first.
    #[inline]
    pub(super) fn within(&self, set: usize, c: usize, from: usize, to: usize) -> (usize, &[f64]) {
        let at = set * self.row + c;
        let accelerators = self.windows.span(at).within(from, to);
        if accelerators.is_empty() {
            return (0, &[]);
        }
        (accelerators.start, &self.cells[self.windows.places(at, accelerators)])
    }

    /// Values of entries that are of use, to be written.
    pub(super) fn of_mut(&mut self, set: usize, DeviceEntries { c, from, to }: DeviceEntries) -> &mut [f64] {
        let at = set * self.row + c;
        let accelerators = self.windows.span(at).within(from, to);
        &mut self.cells[self.windows.places(at, accelerators)]
    }

    /// One value.
    pub(super) fn get(&self, set: usize, c: usize, accelerators: usize) -> f64 {
        self.within(set, c, accelerators, accelerators + 1).1.first().copied().unwrap_or(f64::INFINITY)
    }
}
