//! Cells of closed sets for some numbers of accelerators: few, even with dozens of devices.

use std::ops::Range;

/// Range of numbers of accelerators. There are at most as many as classes, and tables that are filled are small enough for `u16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AcceleratorRange {
    pub(super) from: u16,
    pub(super) to: u16,
}

impl AcceleratorRange {
    pub(super) const NONE: AcceleratorRange = AcceleratorRange { from: u16::MAX, to: 0 };

    /// From the least to the most; empty if the most is less.
    pub(super) fn new(least: usize, most: usize) -> Self {
        match (u16::try_from(least), u16::try_from(most + 1)) {
            (Ok(from), Ok(to)) if from < to => AcceleratorRange { from, to },
            _ => AcceleratorRange::NONE,
        }
    }

    /// Number of elements.
    #[inline]
    fn len(self) -> usize {
        self.to.saturating_sub(self.from).into()
    }

    pub(super) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Intersection with a range.
    #[inline]
    pub(super) fn within(self, from: usize, to: usize) -> Range<usize> {
        from.max(self.from.into())..to.min(self.to.into())
    }
}

/// Cells of a closed set: one for each number of CPUs beside each of some numbers of accelerators.
#[derive(Debug, Clone, Copy)]
struct CellWindow {
    /// Position of the first among the cells of all sets.
    start: u32,
    span: AcceleratorRange,
}

/// Cells of all closed sets.
#[derive(Debug)]
pub(super) struct CellLayout {
    windows: Vec<CellWindow>,
    /// Numbers of CPUs.
    row: usize,
}

impl CellLayout {
    /// Lays out cells for the accelerators of each set beside `row` numbers of CPUs; also returns their number.
    pub(super) fn new(spans: impl Iterator<Item = AcceleratorRange>, row: usize) -> (Self, usize) {
        let mut cells = 0;
        let window = |span: AcceleratorRange| {
            let start = cells as u32;
            cells += row * span.len();
            CellWindow { start, span }
        };
        let windows = spans.map(window).collect();
        (CellLayout { windows, row }, cells)
    }

    /// Numbers of accelerators of a set.
    #[inline]
    pub(super) fn span(&self, set: usize) -> AcceleratorRange {
        self.windows[set].span
    }

    /// Positions of the cells of some of its numbers of accelerators.
    #[inline]
    pub(super) fn places(&self, set: usize, accelerators: Range<usize>) -> Range<usize> {
        let CellWindow { start, span } = self.windows[set];
        if accelerators.is_empty() {
            return 0..0;
        }
        let place = |accelerators: usize| start as usize + self.row * (accelerators - usize::from(span.from));
        place(accelerators.start)..place(accelerators.end)
    }

    /// Positions of all its cells.
    #[inline]
    pub(super) fn all(&self, set: usize) -> Range<usize> {
        self.places(set, self.span(set).within(0, usize::MAX))
    }

    /// Position of the cell beside `c` CPUs, by number of accelerators; `None` if there is no cell.
    #[inline(always)]
    pub(super) fn place(&self, set: usize) -> impl Fn(usize, usize) -> Option<usize> + use<> {
        let (CellWindow { start, span }, row) = (self.windows[set], self.row);
        let (start, from, count) = (start as usize, usize::from(span.from), span.len());
        move |c, accelerators| {
            let at = accelerators.wrapping_sub(from);
            (at < count).then(|| start + row * at + c)
        }
    }
}
