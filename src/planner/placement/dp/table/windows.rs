//! Which numbers of accelerators a closed set has cells for: few of them, where there may be dozens of devices.

use std::ops::Range;

/// Numbers of accelerators from one to before another. There is a closed set more than classes and no more accelerators than those,
/// so that a table of a size that is filled has less than `u16::MAX` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u16,
    pub(super) to: u16,
}

impl Span {
    pub(super) const NONE: Span = Span { from: u16::MAX, to: 0 };

    /// From the least to the most; none if that is less.
    pub(super) fn new(least: usize, most: usize) -> Self {
        match (u16::try_from(least), u16::try_from(most + 1)) {
            (Ok(from), Ok(to)) if from < to => Span { from, to },
            _ => Span::NONE,
        }
    }

    /// How many they are.
    #[inline]
    fn len(self) -> usize {
        self.to.saturating_sub(self.from).into()
    }

    pub(super) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Those of them from one number to before another.
    #[inline]
    pub(super) fn within(self, from: usize, to: usize) -> Range<usize> {
        from.max(self.from.into())..to.min(self.to.into())
    }
}

/// The cells of a closed set: one for each number of CPUs beside each of some numbers of accelerators.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// The first one among the cells of all sets.
    start: u32,
    span: Span,
}

/// The cells of all closed sets.
#[derive(Debug, Default)]
pub(super) struct Windows {
    windows: Vec<Window>,
    /// Numbers of CPUs.
    row: usize,
}

impl Windows {
    /// Lays out cells for the accelerators of each set beside so many numbers of CPUs; how many they are.
    pub(super) fn lay_out(&mut self, spans: impl Iterator<Item = Span>, row: usize) -> usize {
        let mut cells = 0;
        self.row = row;
        self.windows.clear();
        self.windows.extend(spans.map(|span| {
            let start = cells as u32;
            cells += row * span.len();
            Window { start, span }
        }));
        cells
    }

    /// The numbers of accelerators of a set.
    #[inline]
    pub(super) fn span(&self, set: usize) -> Span {
        self.windows[set].span
    }

    /// The places of the cells of some of its numbers of accelerators.
    #[inline]
    pub(super) fn places(&self, set: usize, accelerators: Range<usize>) -> Range<usize> {
        let Window { start, span } = self.windows[set];
        if accelerators.is_empty() {
            return 0..0;
        }
        let place = |accelerators: usize| start as usize + self.row * (accelerators - usize::from(span.from));
        place(accelerators.start)..place(accelerators.end)
    }

    /// The places of all its cells.
    #[inline]
    pub(super) fn all(&self, set: usize) -> Range<usize> {
        self.places(set, self.span(set).within(0, usize::MAX))
    }

    /// The place of the cell beside `c` CPUs, if there is one, by number of accelerators.
    #[inline(always)]
    pub(super) fn place(&self, set: usize) -> impl Fn(usize, usize) -> Option<usize> + use<> {
        let (Window { start, span }, row) = (self.windows[set], self.row);
        let (start, from, count) = (start as usize, usize::from(span.from), span.len());
        move |c, accelerators| {
            let at = accelerators.wrapping_sub(from);
            (at < count).then(|| start + row * at + c)
        }
    }
}
