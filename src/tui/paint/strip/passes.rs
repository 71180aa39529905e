//! Single passes and transfers of a stage.
//!
//! Every half cell has the colour of the pass that takes most of it, so edges are sharp. Alternate microbatches differ
//! in lightness. Without colours, columns are bars instead.

use ratatui::{buffer::Buffer, layout::Rect, style::Color};

use super::Strip;
use crate::tui::paint::{
    moment,
    shades::{Activity, Shade},
};

/// Fraction of a half cell from which it counts as busy.
const BUSY: f64 = 0.5;

impl Strip<'_> {
    /// Draws the passes of the first replica of a stage.
    pub(super) fn draw_passes(&self, buffer: &mut Buffer, row: Rect, stage: usize) {
        let track = self.shades.track();
        for column in 0..row.width {
            let halves = [0.0, 0.5].map(|from| {
                let times = self.axis.interval(column, from, 0.5)?;
                Some(self.pass_in(stage, times).map(|shade| self.shades.color(shade)))
            });
            let [Some(left), Some(right)] = halves else { continue };
            let (symbol, fg, bg) = match (left, right) {
                (None, None) => (" ", Color::Reset, track),
                (Some(left), Some(right)) if left == right => ("█", left, track),
                (Some(left), Some(right)) => ("▌", left, right),
                (Some(left), None) => ("▌", left, track),
                (None, Some(right)) => ("▐", right, track),
            };
            for y in row.top()..row.bottom() {
                buffer[(row.x + column, y)].set_symbol(symbol).set_fg(fg).set_bg(bg);
            }
        }
    }

    /// Colour of the pass that takes most of an interval; `None` if the device is idle.
    fn pass_in(&self, stage: usize, times: (f64, f64)) -> Option<Shade> {
        let (from, to) = self.events_of(stage, 0, times);
        let within = |start: f64, end: f64| (end.min(to) - start.max(from)).max(0.0);
        let events = self.simulated.compute(stage, 0, from, to);
        let busy: f64 = events.iter().map(|event| within(event.start_s, event.end_s)).sum();
        if busy >= BUSY * (to - from) {
            let of = |event: &crate::simulate::Event| within(event.start_s, event.end_s);
            let most = events.iter().max_by(|a, b| of(a).total_cmp(&of(b)))?;
            let shade = self.shades.activity(moment::of(most.kind));
            // Replicas take microbatches in turn.
            let replicas = self.simulated.timeline.replicas.get(stage).copied().unwrap_or(1).max(1);
            let odd = most.microbatch / replicas % 2 == 1;
            return Some(if odd { self.shades.alternate(shade) } else { shade });
        }
        let reduces = self.simulated.share(stage, 0, from, to).all_reduce_s;
        (reduces >= BUSY * (to - from)).then(|| self.shades.activity(Activity::Communication))
    }

    /// Draws the transfers of a stage as a thin line, and its all-reduce as a thick one.
    pub(super) fn draw_transfers(&self, buffer: &mut Buffer, row: Rect, stage: usize) {
        if row.height == 0 {
            return;
        }
        let shade = self.shades.activity(Activity::Communication);
        for column in 0..row.width {
            let Some(times) = self.axis.interval(column, 0.0, 1.0) else { continue };
            let (from, to) = self.events_of(stage, 0, times);
            let reduces = self.simulated.share(stage, 0, from, to).all_reduce_s / (to - from);
            let sends = self.simulated.sending(stage, 0, from, to).contains(&true);
            let symbol = match (reduces >= BUSY, sends, self.shades.coloured()) {
                (true, _, true) => "▀",
                (true, _, false) => "=",
                (false, true, true) => "▔",
                (false, true, false) => "-",
                (false, false, _) => continue,
            };
            buffer[(row.x + column, row.y)].set_symbol(symbol).set_fg(self.shades.color(shade));
        }
    }
}
