//! Visible interval of the iteration, without any drawing. The cursor is the playhead, which views share.

/// State of the Timeline view; times are in seconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::tui) struct State {
    /// Index of the selected row among those shown.
    pub row: usize,
    /// Stages shown with every replica.
    pub unfolded: Vec<usize>,
    /// Left edge.
    pub from_s: f64,
    /// Length of the visible interval; 0: the whole iteration.
    pub span_s: f64,
    /// True to mark the critical path.
    pub path: bool,
    /// True once an initial interval was chosen.
    pub(in crate::tui) begun: bool,
    /// Number of columns at the last drawing.
    pub columns: u16,
}

/// Shortest visible interval, as a fraction of the iteration.
const DEEPEST: f64 = 1e-6;

impl State {
    /// Stores the layout of a drawing.
    pub(in crate::tui) fn laid_out(&mut self, laid: Self) {
        *self = laid;
    }

    /// Visible interval of an iteration: (from, to).
    pub(in crate::tui) fn window(&self, batch_s: f64) -> (f64, f64) {
        let span = self.span(batch_s);
        let from = self.from_s.clamp(0.0, (batch_s - span).max(0.0));
        (from, from + span)
    }

    fn span(&self, batch_s: f64) -> f64 {
        if self.span_s <= 0.0 { batch_s } else { self.span_s.clamp(batch_s * DEEPEST, batch_s) }
    }

    /// Shows the first `span_s` of the first iteration, because thousands of microbatches at once are unreadable.
    pub(in crate::tui) fn begin(&mut self, span_s: f64, batch_s: f64) {
        if !std::mem::replace(&mut self.begun, true) && span_s > 0.0 && span_s < batch_s {
            self.span_s = span_s;
        }
    }

    /// Multiplies the visible interval; the time `anchor_s` keeps its place.
    pub(in crate::tui) fn zoom(&mut self, factor: f64, anchor_s: f64, batch_s: f64) {
        let (from, to) = self.window(batch_s);
        let span = ((to - from) * factor).clamp(batch_s * DEEPEST, batch_s);
        let share = if to > from { ((anchor_s - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
        self.from_s = (anchor_s - share * span).clamp(0.0, (batch_s - span).max(0.0));
        self.span_s = if span >= batch_s { 0.0 } else { span };
    }

    /// Shows the whole iteration.
    pub(in crate::tui) fn whole(&mut self) {
        self.from_s = 0.0;
        self.span_s = 0.0;
    }

    /// Moves the visible interval by a fraction of itself. Returns the time of a cursor that moves with it.
    #[must_use]
    pub(in crate::tui) fn pan(&mut self, share: f64, cursor_s: f64, batch_s: f64) -> f64 {
        let (from, to) = self.window(batch_s);
        let span = to - from;
        self.from_s = (from + share * span).clamp(0.0, (batch_s - span).max(0.0));
        (cursor_s + self.from_s - from).clamp(0.0, batch_s)
    }

    /// Time of a cursor after a move by columns.
    pub(in crate::tui) fn stepped(&self, columns: f64, cursor_s: f64, batch_s: f64) -> f64 {
        let (from, to) = self.window(batch_s);
        let column_s = (to - from) / f64::from(self.columns.max(1));
        // From the middle of a column to the middle of another, so that rounding never skips one.
        let at = ((cursor_s - from) / column_s).floor() + 0.5 + columns;
        from + at * column_s
    }

    /// Scrolls to a time.
    pub(in crate::tui) fn show(&mut self, time_s: f64, batch_s: f64) {
        let (from, to) = self.window(batch_s);
        if time_s < from {
            self.from_s = time_s;
        } else if time_s > to {
            self.from_s = time_s - (to - from);
        }
    }

    /// Limits the visible interval to a new iteration of `batch_s` seconds.
    pub(in crate::tui) fn fit(&mut self, batch_s: f64) {
        if self.span_s >= batch_s {
            self.whole();
        }
        self.from_s = self.window(batch_s).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zoom_keeps_what_is_under_the_cursor() {
        let mut state = State { columns: 100, ..State::default() };
        state.zoom(0.5, 25.0, 100.0);
        assert_eq!(state.window(100.0), (12.5, 62.5));
        state.zoom(0.5, 25.0, 100.0);
        assert_eq!(state.window(100.0), (18.75, 43.75));
        for _ in 0..40 {
            state.zoom(2.0, 25.0, 100.0);
        }
        assert_eq!(state.window(100.0), (0.0, 100.0));
        for _ in 0..100 {
            state.zoom(0.5, 99.0, 100.0);
        }
        let (from, to) = state.window(100.0);
        assert!(from < to && from >= 0.0 && to <= 100.0 + 1e-9);
    }

    #[test]
    fn the_window_follows_the_cursor_and_stays_inside() {
        let mut state = State { columns: 10, span_s: 10.0, ..State::default() };
        let mut cursor: f64 = 0.0;
        for _ in 0..200 {
            cursor = state.stepped(1.0, cursor, 100.0).clamp(0.0, 100.0);
            state.show(cursor, 100.0);
            let (from, to) = state.window(100.0);
            assert!(from <= cursor && cursor <= to + 1e-9 && to <= 100.0 + 1e-9);
        }
        assert!((cursor - 100.0).abs() < 1.0);
        let from = state.window(100.0).0;
        assert_eq!(state.pan(-50.0, cursor, 100.0), cursor - from);
        assert_eq!(state.window(100.0).0, 0.0);
        state.fit(5.0);
        assert_eq!(state.window(5.0), (0.0, 5.0));
    }

    #[test]
    fn only_the_first_batch_chooses_its_stretch() {
        let mut state = State::default();
        state.begin(10.0, 100.0);
        assert_eq!(state.window(100.0), (0.0, 10.0));
        state.whole();
        state.begin(10.0, 100.0);
        assert_eq!(state.window(100.0), (0.0, 100.0));
        let mut short = State::default();
        short.begin(10.0, 5.0);
        assert_eq!(short.window(5.0), (0.0, 5.0));
    }

    #[test]
    fn an_empty_batch_does_no_harm() {
        let mut state = State::default();
        state.show(0.0, 0.0);
        state.zoom(0.5, 0.0, 0.0);
        assert_eq!(state.pan(1.0, 0.0, 0.0), 0.0);
        // No column has a length: what comes of a step is no time, and the playhead goes to the beginning.
        assert!(state.stepped(1.0, 0.0, 0.0).is_nan());
        assert_eq!(state.window(0.0), (0.0, 0.0));
    }
}
