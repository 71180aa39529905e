//! Time axis of a strip: linear, or with a gap in the steady state.
//!
//! A long iteration is mostly its steady state, which repeats itself. On a broken axis warm-up and drain keep a scale
//! at which single passes are visible, and the middle is a gap of fixed width. Half a cell is one forward pass of the
//! slowest stage, or longer if warm-up and drain do not fit otherwise. Every function is `O(1)`.

use crate::study::steady::Steady;

/// Columns of the gap on a wide and on a narrow axis.
const GAP: (u16, u16) = (15, 9);
/// Columns from which the gap is wide.
const WIDE: u16 = 70;
/// Columns below which an axis is not broken.
const LEAST: u16 = 30;
/// Microbatches of the steady state that are visible at least, half of them on either side of the gap.
const VISIBLE: f64 = 4.0;
/// Number of hidden microbatches from which a gap is worth its columns.
const WORTH: f64 = 4.0;
/// Half a cell may be this much longer than a forward pass before passes are no longer told apart.
const FINE: f64 = 1.2;

/// Columns and the times that they show.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Piece {
    /// First column, and the one after the last.
    columns: (u16, u16),
    /// Start and end, seconds.
    times: (f64, f64),
}

impl Piece {
    fn per_column(&self) -> f64 {
        (self.times.1 - self.times.0) / f64::from((self.columns.1 - self.columns.0).max(1))
    }

    fn at(&self, column: f64) -> f64 {
        self.times.0 + (column - f64::from(self.columns.0)) * self.per_column()
    }
}

/// Gap of a broken axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tui) struct Gap {
    /// First column, and the one after the last.
    pub columns: (u16, u16),
    /// Start and end, seconds.
    pub times: (f64, f64),
    /// Number of microbatches that it hides.
    pub microbatches: u32,
}

/// Mapping of columns to times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tui) struct Axis {
    before: Piece,
    gap: Option<Gap>,
    after: Piece,
    /// True if every pass takes about half a cell or more, so that passes can be drawn one by one.
    pub fine: bool,
}

impl Axis {
    /// Linear axis over an interval, seconds.
    pub(in crate::tui) fn linear(times: (f64, f64), width: u16) -> Axis {
        let before = Piece { columns: (0, width), times };
        Axis { before, gap: None, after: Piece { columns: (width, width), times: (times.1, times.1) }, fine: false }
    }

    /// Axis over an iteration of `iteration_s` seconds: broken if its steady state is too long for the width.
    pub(in crate::tui) fn of(steady: Option<&Steady>, iteration_s: f64, width: u16) -> Axis {
        let linear = Axis::linear((0.0, iteration_s), width);
        let Some(steady) = steady else { return linear };
        let half_s = steady.forward_s;
        if iteration_s <= half_s * f64::from(width) * 2.0 * FINE {
            return Axis { fine: true, ..linear };
        }
        let gap = if width >= WIDE { GAP.0 } else { GAP.1 };
        let hidden = (steady.until_s - steady.from_s) / steady.microbatch_s - VISIBLE;
        if width < LEAST || hidden < WORTH {
            return linear;
        }
        let half_visible = VISIBLE / 2.0 * steady.microbatch_s;
        let least = [steady.from_s + half_visible, iteration_s - steady.until_s + half_visible];
        let room = f64::from(width - gap);
        let column_s = (2.0 * half_s).max((least[0] + least[1]) / (room - 2.0));
        // What is free goes to both sides.
        let spare = (room - (least[0] + least[1]) / column_s).max(0.0);
        let left = ((least[0] / column_s + spare / 2.0).round() as u16).clamp(1, width - gap - 1);
        let right = width - gap - left;
        let times = (f64::from(left) * column_s, iteration_s - f64::from(right) * column_s);
        let microbatches = ((times.1 - times.0) / steady.microbatch_s).round();
        if microbatches < WORTH {
            return linear;
        }
        Axis {
            before: Piece { columns: (0, left), times: (0.0, times.0) },
            gap: Some(Gap { columns: (left, left + gap), times, microbatches: microbatches as u32 }),
            after: Piece { columns: (left + gap, width), times: (times.1, iteration_s) },
            fine: column_s <= 2.0 * half_s * FINE,
        }
    }

    /// Number of columns.
    pub(in crate::tui) fn width(&self) -> u16 {
        self.after.columns.1
    }

    /// Start and end, seconds.
    pub(in crate::tui) fn times(&self) -> (f64, f64) {
        (self.before.times.0, self.after.times.1)
    }

    /// The gap, if there is one.
    pub(in crate::tui) fn gap(&self) -> Option<Gap> {
        self.gap
    }

    /// Seconds of a column outside the gap.
    pub(in crate::tui) fn per_column(&self) -> f64 {
        self.before.per_column()
    }

    fn piece(&self, column: u16) -> Piece {
        match self.gap {
            Some(gap) if column >= gap.columns.1 => self.after,
            Some(gap) if column >= gap.columns.0 => Piece { columns: gap.columns, times: gap.times },
            _ => self.before,
        }
    }

    /// Start and end of a part of a column, which begins `from` columns after it and is `length` columns long, seconds.
    /// `None` in the gap.
    pub(in crate::tui) fn interval(&self, column: u16, from: f64, length: f64) -> Option<(f64, f64)> {
        if self.gap.is_some_and(|gap| (gap.columns.0..gap.columns.1).contains(&column)) {
            return None;
        }
        let piece = self.piece(column);
        let from = f64::from(column) + from;
        Some((piece.at(from), piece.at(from + length)))
    }

    /// Time in the middle of a column, seconds; the gap covers the times that it hides.
    pub(in crate::tui) fn time(&self, column: u16) -> f64 {
        self.piece(column).at(f64::from(column) + 0.5)
    }

    /// Column of a time; `None` outside.
    pub(in crate::tui) fn column(&self, time_s: f64) -> Option<u16> {
        let (start, end) = self.times();
        if !(start..=end).contains(&time_s) || self.width() == 0 {
            return None;
        }
        let piece = match self.gap {
            Some(gap) if time_s >= gap.times.1 => self.after,
            Some(gap) if time_s >= gap.times.0 => Piece { columns: gap.columns, times: gap.times },
            _ => self.before,
        };
        let share = (time_s - piece.times.0) / (piece.times.1 - piece.times.0);
        let columns = f64::from(piece.columns.1 - piece.columns.0);
        Some((piece.columns.0 + (share * columns) as u16).min(self.width() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Steady = Steady { from_s: 10.0, until_s: 290.0, microbatch_s: 3.0, forward_s: 1.0 };

    #[test]
    fn a_long_iteration_hides_the_middle_of_its_steady_state() {
        let axis = Axis::of(Some(&LONG), 300.0, 80);
        let gap = axis.gap().unwrap();
        assert!(axis.fine && axis.per_column() == 2.0, "{axis:?}");
        assert!(gap.times.0 >= 16.0 && gap.times.1 <= 284.0, "{gap:?}");
        let hidden = (gap.times.1 - gap.times.0) / 3.0;
        assert!((f64::from(gap.microbatches) - hidden).abs() <= 0.5);
        assert_eq!(axis.width(), 80);
    }

    #[test]
    fn columns_and_times_agree() {
        for width in [20, 40, 80, 140, 300] {
            let axis = Axis::of(Some(&LONG), 300.0, width);
            let mut last = -1.0;
            for column in 0..width {
                let time = axis.time(column);
                assert!(time > last, "{width}: {column}");
                last = time;
                assert_eq!(axis.column(time), Some(column), "{width}");
                let hidden = axis.gap().is_some_and(|gap| (gap.columns.0..gap.columns.1).contains(&column));
                assert_eq!(axis.interval(column, 0.0, 1.0).is_none(), hidden);
            }
            assert_eq!((axis.column(0.0), axis.column(300.0), axis.column(300.1)), (Some(0), Some(width - 1), None));
        }
    }

    #[test]
    fn a_short_iteration_is_not_broken() {
        let short = Steady { until_s: 30.0, ..LONG };
        let axis = Axis::of(Some(&short), 40.0, 80);
        assert!(axis.fine && axis.gap().is_none());
        assert!(Axis::of(None, 40.0, 80).gap().is_none());
    }

    #[test]
    fn a_deep_pipeline_is_drawn_coarser_but_whole() {
        let deep = Steady { from_s: 200.0, until_s: 800.0, ..LONG };
        let axis = Axis::of(Some(&deep), 1000.0, 80);
        assert!(!axis.fine && axis.gap().is_some_and(|gap| gap.times.0 >= 200.0 && gap.times.1 <= 800.0), "{axis:?}");
    }
}
