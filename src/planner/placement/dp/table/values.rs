//! The values of all closed sets, with the numbers of devices that they are of use with.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Useful,
    windows::{Span, Windows, refill},
};

/// A value that whoever finds it writes, when nobody reads it.
#[derive(Debug)]
pub(super) struct Value(AtomicU64);

impl Value {
    pub(super) fn new(value: f64) -> Self {
        Value(AtomicU64::new(value.to_bits()))
    }

    #[inline]
    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
}

/// The values of all closed sets; infinite where not below the bound or of no use.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// By set and number of CPUs.
    windows: Windows,
    /// Numbers of CPUs.
    row: usize,
    cells: Vec<Value>,
}

impl Values {
    /// Begins anew where closed sets are of use with these numbers of accelerators, by set and so many numbers of CPUs: there are
    /// no values, but for the empty set, whose are zero.
    pub(super) fn begin(&mut self, useful: &[Span], row: usize) {
        let Values { windows, cells, .. } = self;
        let count = windows.lay_out(useful.iter().copied(), 1);
        refill(cells, count, || Value::new(f64::INFINITY));
        (0..row).flat_map(|c| &cells[windows.all(c)]).for_each(|value| value.set(0.0));
        self.row = row;
    }

    /// The numbers of devices with which a closed set is of use.
    pub(super) fn useful(&self, set: usize) -> impl Iterator<Item = Useful> {
        let spans = (0..self.row).map(move |c| (c, self.windows.span(set * self.row + c)));
        let spans = spans.filter(|(_, span)| !span.is_empty());
        spans.map(|(c, span)| Useful { c, from: span.from.into(), to: span.to.into() })
    }

    /// The values of some entries, as far as there may be any, and the accelerators of the first.
    #[inline]
    pub(super) fn within(&self, set: usize, c: usize, from: usize, to: usize) -> (usize, &[Value]) {
        let at = set * self.row + c;
        let accelerators = self.windows.span(at).within(from, to);
        if accelerators.is_empty() {
            return (0, &[]);
        }
        (accelerators.start, &self.cells[self.windows.places(at, accelerators)])
    }

    /// The values of entries that are of use.
    pub(super) fn of(&self, set: usize, Useful { c, from, to }: Useful) -> &[Value] {
        self.within(set, c, from, to).1
    }

    /// One value.
    pub(super) fn get(&self, set: usize, c: usize, accelerators: usize) -> f64 {
        self.within(set, c, accelerators, accelerators + 1).1.first().map_or(f64::INFINITY, Value::get)
    }
}
