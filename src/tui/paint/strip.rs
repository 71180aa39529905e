//! Strip of an iteration: a row per stage, a column per interval, coloured by activity.
//!
//! The height of a column is its busy fraction and its colour the mix of activities, so idle time is visible at every
//! zoom. If there are more stages than rows, two share a row as its halves; with even more, a half shows the mean of
//! several. `O(cells · log events)`.

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    map::EIGHTHS,
    moment::{Shares, most, shares},
    shades::{Activity, Shade, Shades},
};
use crate::{
    simulate::EventKind,
    tui::{
        simulated::Simulated,
        theme::{Role, Theme},
    },
    units,
};

/// Minimum and maximum columns for numbers and hues of stages at the left.
const NAMES: (u16, u16) = (5, 10);

/// Columns for names and hues, given the length of the longest name.
pub(in crate::tui) fn names_width(longest: usize) -> u16 {
    (longest as u16 + 3).clamp(NAMES.0, NAMES.1)
}

/// Inputs of a strip.
#[derive(Clone, Copy)]
pub(in crate::tui) struct Strip<'a> {
    pub simulated: &'a Simulated,
    pub shades: &'a Shades,
    pub theme: &'a Theme,
    /// Start and end of the visible interval, seconds.
    pub window: (f64, f64),
}

/// Mapping of stages to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Rows {
    /// Number of rows per stage.
    Whole(u16),
    /// Number of stages per half row.
    Half(usize),
}

/// Columns that the time takes on either side of the playhead.
const TIME: u16 = 6;

/// Maximum number of replicas in a mean.
const MOST_REPLICAS: u32 = 6;

/// Maximum rows of a stage: more add no information.
const TALLEST: u16 = 4;

impl Rows {
    /// Rows for a number of stages in a height.
    pub(in crate::tui) fn new(stages: usize, height: u16) -> Rows {
        let height = usize::from(height.max(1));
        match height / stages.max(1) {
            0 => Rows::Half(stages.div_ceil(2 * height)),
            rows => Rows::Whole((rows as u16).min(TALLEST)),
        }
    }

    /// Height of all stages, rows.
    pub(in crate::tui) fn height(self, stages: usize) -> u16 {
        match self {
            Rows::Whole(rows) => stages as u16 * rows,
            Rows::Half(count) => stages.div_ceil(2 * count) as u16,
        }
    }

    /// First stage of a row.
    pub(in crate::tui) fn stage_at(self, row: u16) -> usize {
        match self {
            Rows::Whole(rows) => usize::from(row / rows.max(1)),
            Rows::Half(count) => usize::from(row) * 2 * count,
        }
    }
}

impl Strip<'_> {
    fn per_column(&self, width: u16) -> f64 {
        (self.window.1 - self.window.0) / f64::from(width.max(1))
    }

    /// Column of a time, from the left; `None` outside.
    pub(in crate::tui) fn column(&self, time: f64, width: u16) -> Option<u16> {
        let share = (time - self.window.0) / (self.window.1 - self.window.0);
        (0.0..=1.0).contains(&share).then(|| ((share * f64::from(width)) as u16).min(width.saturating_sub(1)))
    }

    /// Activities of a stage in a column: the mean over replicas if a column is shorter than a microbatch, because one
    /// replica alone would flicker.
    fn shares_of_stage(&self, stage: usize, column: u16, width: u16) -> Shares {
        let of = self.simulated.pipeline.stages.get(stage);
        let replicas = self.simulated.timeline.replicas.get(stage).copied().unwrap_or(1);
        let microbatch_s = of.map_or(0.0, |stage| stage.forward_s + stage.backward_s);
        let wanted = (microbatch_s / self.per_column(width).max(f64::MIN_POSITIVE)).ceil();
        let few = self.window.1 - self.window.0 < 8.0 * microbatch_s;
        let count = if few { 1 } else { (wanted as u32).clamp(1, MOST_REPLICAS).min(replicas.max(1)) };
        let mut mean = [0.0; 4];
        for i in 0..count {
            let shares = self.shares(stage, i * replicas / count, column, width);
            mean.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share / f64::from(count));
        }
        mean
    }

    /// Activities of a replica of a stage in a column.
    pub(in crate::tui) fn shares(&self, stage: usize, replica: u32, column: u16, width: u16) -> Shares {
        let length = self.per_column(width);
        let from = self.window.0 + f64::from(column) * length;
        let middle = from + length / 2.0;
        let shift = self.simulated.repeated(stage, replica, middle) - middle;
        shares(&self.simulated.share(stage, replica, from + shift, from + shift + length), length)
    }

    /// Draws the rows of all stages, without their names.
    pub(in crate::tui) fn draw(&self, buffer: &mut Buffer, area: Rect, rows: Rows) {
        if self.window.1 <= self.window.0 {
            return;
        }
        let count = self.simulated.timeline.replicas.len();
        match rows {
            Rows::Whole(height) => {
                for stage in 0..count {
                    let y = area.y + stage as u16 * height;
                    let row = Rect { y, height, ..area }.intersection(area);
                    self.draw_row(buffer, row, |column| self.shares_of_stage(stage, column, row.width));
                }
            }
            Rows::Half(together) => {
                for row in 0..area.height {
                    let first = usize::from(row) * 2 * together;
                    let line = Rect { y: area.y + row, height: 1, ..area };
                    let halves = [first..first + together, first + together..first + 2 * together];
                    self.draw_halves(buffer, line, &halves.map(|h| h.start.min(count)..h.end.min(count)));
                }
            }
        }
    }

    /// Draws one replica of a stage.
    pub(in crate::tui) fn draw_replica(&self, buffer: &mut Buffer, row: Rect, stage: usize, replica: u32) {
        self.draw_row(buffer, row, |column| self.shares(stage, replica, column, row.width));
    }

    fn draw_row(&self, buffer: &mut Buffer, row: Rect, shares: impl Fn(u16) -> Shares) {
        for column in 0..row.width {
            let shares = shares(column);
            let (level, shade, most) = self.paint(&shares);
            // The last eighth separates rows.
            let whole = row.height * 8 - 1;
            let eighths = (level * f64::from(whole)).round() as u16;
            let eighths = if level > 0.02 { eighths.max(1) } else { 0 };
            for line in 0..row.height {
                let filled = eighths.saturating_sub(8 * line).min(8);
                let cell = &mut buffer[(row.x + column, row.bottom() - 1 - line)];
                let sign = match most {
                    Some(most) if !self.shades.coloured() && filled >= 3 => most.fill(),
                    _ => EIGHTHS[usize::from(filled)],
                };
                cell.set_symbol(sign).set_fg(self.shades.color(shade));
                if self.shades.mixes() {
                    cell.set_bg(self.shades.track());
                }
            }
        }
    }

    /// Draws two stages, or means of several, on one row.
    fn draw_halves(&self, buffer: &mut Buffer, row: Rect, halves: &[std::ops::Range<usize>; 2]) {
        for column in 0..row.width {
            let colors = halves.clone().map(|stages| {
                if stages.is_empty() {
                    return (None, 0.0, None);
                }
                let mut mean = [0.0; 4];
                for stage in stages.clone() {
                    let shares = self.shares_of_stage(stage, column, row.width);
                    mean.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share / stages.len() as f64);
                }
                let (level, shade, most) = self.paint(&mean);
                let left = level.powf(0.8);
                let color = match self.shades.mixes() {
                    true => {
                        let track = self.shades.track_shade();
                        self.shades.color(self.shades.mix(&[(shade, left), (track, 1.0 - left)]))
                    }
                    false => self.shades.color(shade),
                };
                (Some(color), level, most)
            });
            let cell = &mut buffer[(row.x + column, row.y)];
            if self.shades.mixes() {
                cell.set_symbol("▀").set_fg(colors[0].0.unwrap_or(Color::Reset));
                if let Some(color) = colors[1].0 {
                    cell.set_bg(color);
                }
            } else {
                // With one colour or none, show halves that are busy for more than half of the interval.
                let busy = |level: f64| level > 0.5;
                let sign = match (busy(colors[0].1), busy(colors[1].1)) {
                    (true, true) if !self.shades.coloured() => colors[0].2.map_or(" ", Activity::fill),
                    (true, true) => "█",
                    (true, false) => "▀",
                    (false, true) => "▄",
                    (false, false) => " ",
                };
                let of = if busy(colors[0].1) { colors[0].0 } else { colors[1].0 };
                cell.set_symbol(sign).set_fg(of.unwrap_or(Color::Reset));
            }
        }
    }

    /// Busy fraction, colour and main activity. An all-reduce takes its whole column, because it would vanish in a mix.
    pub(in crate::tui) fn paint(&self, shares: &Shares) -> (f64, Shade, Option<Activity>) {
        let compute: f64 = shares[..3].iter().sum();
        let reduce = shares[Activity::Communication as usize];
        if reduce > 0.3 || (compute <= 0.02 && reduce > 0.0) {
            let shade = self.shades.activity(Activity::Communication);
            return (reduce.min(1.0), shade, Some(Activity::Communication));
        }
        let parts = Activity::ALL.map(|activity| (self.shades.activity(activity), shares[activity as usize]));
        (compute.min(1.0), self.shades.mix(&parts[..3]), most(shares))
    }

    /// Draws the playhead over a strip, and its time on the line below.
    pub(in crate::tui) fn draw_playhead(&self, buffer: &mut Buffer, strip: Rect, line: Rect, at_s: f64) {
        let Some(column) = self.column(at_s, strip.width) else { return };
        let x = strip.x + column;
        for y in strip.top()..strip.bottom() {
            let cell = &mut buffer[(x, y)];
            if self.shades.mixes() && cell.symbol() != " " {
                cell.bg = cell.fg;
            }
            cell.set_symbol("│").set_style(self.theme.bold(Role::Text));
        }
        if line.height > 0 {
            let text = format!(" {} ", units::seconds(at_s));
            let width = text.chars().count() as u16;
            let left = x.saturating_sub(width / 2).clamp(line.x, line.right().saturating_sub(width).max(line.x));
            buffer.set_stringn(left, line.y, text, line.width.into(), self.theme.bold(Role::Text));
        }
    }

    /// Draws warm-up, steady state and drain on a line below the strip, or times if the iteration has no such phases.
    pub(in crate::tui) fn draw_phases(&self, buffer: &mut Buffer, line: Rect, playhead_s: Option<f64>) {
        if line.height == 0 || line.width < 12 {
            return;
        }
        let (muted, rule) = (self.theme.fg(Role::Muted), self.theme.fg(Role::Border));
        let Some((warm, drain)) = phases(self.simulated) else {
            buffer.set_string(line.x, line.y, "0", muted);
            let end = units::seconds(self.window.1);
            let width = end.chars().count() as u16;
            buffer.set_string(line.right().saturating_sub(width), line.y, &end, muted);
            return;
        };
        let batch = self.simulated.timeline.iteration_s;
        let spans = [("warm-up", 0.0, warm), ("steady", warm, drain), ("drain", drain, batch)];
        for (name, from, to) in spans {
            let (from, to) = (from.max(self.window.0), to.min(self.window.1));
            let columns = self.column(from, line.width).zip(self.column(to, line.width));
            let Some((first, end)) = columns.filter(|(first, end)| end > first && to > from) else { continue };
            let width = usize::from(end - first);
            let whole = format!(" {name} {} ", units::seconds(to - from));
            let apart = format!(" {name} ");
            let fits = |text: &&str| text.chars().count() + if text.starts_with(' ') { 4 } else { 2 } <= width;
            let text = [whole.as_str(), apart.as_str(), name, ""].into_iter().find(fits);
            let text = text.unwrap_or("");
            let long = text.chars().count();
            // The playhead's time is on the same line, so the name goes to the larger part beside it.
            let (mut from, mut room) = (0, width);
            if let Some(column) = playhead_s.and_then(|at| self.column(at, line.width)) {
                let (left, right) = (column.saturating_sub(TIME), column + TIME);
                if left < end && right > first {
                    let before = usize::from(left.saturating_sub(first));
                    let after = usize::from(end.saturating_sub(right));
                    (from, room) = if before >= after { (0, before) } else { (width - after, after) };
                }
            }
            let text = if long + 2 <= room { text } else { "" };
            let left = from + room.saturating_sub(long) / 2;
            for x in 0..width {
                let sign = if x == 0 {
                    "├"
                } else if x + 1 == width {
                    "┤"
                } else {
                    "─"
                };
                buffer[(line.x + first + x as u16, line.y)].set_symbol(sign).set_style(rule);
            }
            buffer.set_string(line.x + first + left as u16, line.y, text, muted);
        }
    }

    /// Draws numbers and hues of the stages at the left of the strip, the selected one bright.
    pub(in crate::tui) fn draw_names(&self, buffer: &mut Buffer, area: Rect, rows: Rows, selected: Option<usize>) {
        let count = self.simulated.timeline.replicas.len();
        let hue = |stage: usize| self.shades.color(self.shades.stage(stage.min(count.saturating_sub(1)), count));
        let room = usize::from(area.width.saturating_sub(3));
        for row in 0..area.height {
            let stage = rows.stage_at(row);
            if stage >= count {
                break;
            }
            let y = area.y + row;
            let mark = &mut buffer[(area.right().saturating_sub(2).max(area.x), y)];
            match rows {
                Rows::Whole(_) => {
                    mark.set_symbol("█").set_fg(hue(stage));
                }
                Rows::Half(together) => {
                    mark.set_symbol("▀").set_fg(hue(stage));
                    if self.shades.mixes() && stage + together < count {
                        mark.set_bg(hue(stage + together));
                    }
                }
            }
            let told = match rows {
                Rows::Whole(height) => row % height == (height - 1) / 2,
                // Number only every fifth row of many stages.
                Rows::Half(_) => count <= 30 || row % 5 == 0,
            };
            if told {
                let here =
                    selected.is_some_and(|s| rows.stage_at(row) == s || (rows.stage_at(row + 1) > s && s > stage));
                let style = if here { self.theme.bold(Role::Text) } else { self.theme.fg(Role::Muted) };
                let name = self.simulated.shown.names.short(stage);
                let name: String = name.chars().take(room).collect();
                let left = room - name.chars().count();
                buffer.set_string(area.x + left as u16, y, name, style);
            }
        }
    }

    /// Width of the legend with a gap between entries, cells.
    pub(in crate::tui) fn legend_width(&self, gap: u16) -> u16 {
        let words = legend(self.simulated).into_iter().map(|(_, word)| word.chars().count() as u16 + 2 + gap);
        words.sum::<u16>().saturating_sub(gap)
    }

    /// Draws the legend on one line, right-aligned, as many entries as fit.
    pub(in crate::tui) fn draw_legend(&self, buffer: &mut Buffer, line: Rect) {
        let entries = legend(self.simulated);
        // Reduce the gap before leaving entries out.
        let gap = if self.legend_width(2) <= line.width { 2 } else { 1 };
        let mut x = line.right().saturating_sub(self.legend_width(gap)).max(line.x);
        for (activity, word) in entries {
            let next = x + word.chars().count() as u16 + 2 + gap;
            if next > line.right() + gap {
                break;
            }
            let color = self.shades.color(self.shades.activity(activity));
            let sign = if self.shades.coloured() { "■" } else { activity.fill() };
            buffer.set_string(x, line.y, sign, Style::new().fg(color).remove_modifier(Modifier::BOLD));
            buffer.set_string(x + 2, line.y, word, self.theme.fg(Role::Muted));
            x = next;
        }
    }
}

/// Activities of an iteration, with their names.
pub(in crate::tui) fn legend(simulated: &Simulated) -> Vec<(Activity, &'static str)> {
    let stages = &simulated.pipeline.stages;
    let backward = stages.iter().any(|stage| stage.backward_s > stage.recompute_s);
    let mut entries = vec![(Activity::Forward, if backward { "forward" } else { "compute" })];
    if stages.iter().any(|stage| stage.recompute_s > 0.0) {
        entries.push((Activity::Recompute, "recompute"));
    }
    if backward {
        entries.push((Activity::Backward, "backward"));
    }
    if stages.iter().any(|stage| stage.all_reduce_s > 0.0) {
        entries.push((Activity::Communication, "all-reduce"));
    }
    entries
}

/// End of warm-up and start of drain: the first backward pass of the first stage, and its last forward pass. `None` if
/// the iteration has no such phases.
fn phases(simulated: &Simulated) -> Option<(f64, f64)> {
    if simulated.timeline.replicas.len() < 2 || simulated.pipeline.single_sample.is_some() {
        return None;
    }
    let (mut warm, mut drain) = (f64::INFINITY, 0.0f64);
    for replica in 0..simulated.timeline.replicas[0] {
        for event in simulated.timeline.row(0, replica) {
            match event.kind {
                EventKind::Recompute | EventKind::Backward => warm = warm.min(event.start_s),
                EventKind::Forward => drain = drain.max(event.end_s),
                _ => {}
            }
        }
    }
    (warm.is_finite() && drain > 0.0).then(|| (warm.min(drain), drain.max(warm.min(drain))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_take_the_rows_there_are() {
        assert_eq!(Rows::new(4, 16), Rows::Whole(4));
        assert_eq!(Rows::new(1, 16), Rows::Whole(4));
        assert_eq!(Rows::new(16, 16), Rows::Whole(1));
        assert_eq!(Rows::new(17, 16), Rows::Half(1));
        assert_eq!(Rows::new(60, 10), Rows::Half(3));
        for stages in 1..200 {
            for height in 1..60 {
                let rows = Rows::new(stages, height);
                assert!(rows.height(stages) <= height.max(1), "{stages} in {height}: {rows:?}");
                assert!(rows.stage_at(rows.height(stages) - 1) < stages);
            }
        }
    }
}
