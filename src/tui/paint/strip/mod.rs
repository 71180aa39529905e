//! Strip of an iteration: a row per stage, a column per interval, coloured by activity.
//!
//! Where a pass takes half a cell or more, every half cell shows one pass ([`passes`]). At a coarser scale the height of
//! a column is its busy fraction and its colour the mix of activities, so idle time is visible at every zoom. The last
//! row of a stage shows its transfers as a thin line. If there are more stages than rows, two share a row as its halves;
//! with even more, a half shows the mean of several. `O(cells · log events)`.

mod passes;
mod phases;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use super::{
    axis::Axis,
    map::EIGHTHS,
    moment::{Shares, most, shares},
    shades::{Activity, Shade, Shades},
};
use crate::{
    simulate::PipelineStage,
    tui::{
        simulated::{Simulated, Work},
        theme::{Role, Theme},
    },
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
    /// Times of the columns.
    pub axis: Axis,
    /// Time of the playhead, if there is one, seconds.
    pub playhead_s: Option<f64>,
}

/// Mapping of stages to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Rows {
    /// Number of rows per stage.
    Whole(u16),
    /// Number of stages per half row.
    Half(usize),
}

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
    /// Activities of a stage in a column: the mean over replicas if a column is shorter than a microbatch, because one
    /// replica alone would flicker. `None` in the gap.
    fn shares_of_stage(&self, stage: usize, column: u16) -> Option<Shares> {
        let of = self.simulated.pipeline.stages.get(stage);
        let replicas = self.simulated.timeline.replicas.get(stage).copied().unwrap_or(1);
        let microbatch_s = of.map_or(0.0, |stage| stage.forward_s + stage.backward_s);
        let wanted = (microbatch_s / self.axis.per_column().max(f64::MIN_POSITIVE)).ceil();
        let (start, end) = self.axis.times();
        let few = end - start < 8.0 * microbatch_s;
        let count = if few { 1 } else { (wanted as u32).clamp(1, MOST_REPLICAS).min(replicas.max(1)) };
        let mut mean = Shares::default();
        for i in 0..count {
            let shares = self.shares(stage, i * replicas / count, column)?;
            mean.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share / f64::from(count));
        }
        Some(mean)
    }

    /// Activities of a replica of a stage in a column; `None` in the gap.
    pub(in crate::tui) fn shares(&self, stage: usize, replica: u32, column: u16) -> Option<Shares> {
        let (from, to) = self.events_of(stage, replica, self.axis.interval(column, 0.0, 1.0)?);
        Some(shares(&self.simulated.share(stage, replica, from, to), to - from))
    }

    /// Interval with the events of an interval, which the simulator may have left out.
    fn events_of(&self, stage: usize, replica: u32, (from, to): (f64, f64)) -> (f64, f64) {
        let middle = f64::midpoint(from, to);
        let shift = self.simulated.repeated(stage, replica, middle) - middle;
        (from + shift, to + shift)
    }

    /// Draws the rows of all stages, without their names.
    pub(in crate::tui) fn draw(&self, buffer: &mut Buffer, area: Rect, rows: Rows) {
        let (start, end) = self.axis.times();
        if end <= start {
            return;
        }
        let count = self.simulated.timeline.replicas.len();
        match rows {
            Rows::Whole(height) => {
                // The last of several rows is for transfers.
                let thin = u16::from(height >= 2);
                for stage in 0..count {
                    let y = area.y + stage as u16 * height;
                    let row = Rect { y, height: height - thin, ..area }.intersection(area);
                    if self.axis.fine && self.shades.coloured() {
                        self.draw_passes(buffer, row, stage);
                    } else {
                        self.draw_row(buffer, row, thin == 0, |column| self.shares_of_stage(stage, column));
                    }
                    let row = Rect { y: y + height - thin, height: thin, ..area }.intersection(area);
                    self.draw_transfers(buffer, row, stage);
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
        self.draw_gap(buffer, area);
    }

    /// Draws one replica of a stage.
    pub(in crate::tui) fn draw_replica(&self, buffer: &mut Buffer, row: Rect, stage: usize, replica: u32) {
        self.draw_row(buffer, row, true, |column| self.shares(stage, replica, column));
    }

    /// Draws columns as bars. If `apart`, an eighth of a row separates them from the row above.
    fn draw_row(&self, buffer: &mut Buffer, row: Rect, apart: bool, shares: impl Fn(u16) -> Option<Shares>) {
        let whole = row.height * 8 - u16::from(apart);
        for column in 0..row.width {
            let Some(shares) = shares(column) else { continue };
            let (level, shade, most) = self.paint(&shares);
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
            if self.axis.interval(column, 0.0, 1.0).is_none() {
                continue;
            }
            let colors = halves.clone().map(|stages| {
                if stages.is_empty() {
                    return (None, 0.0, None);
                }
                let mut mean = Shares::default();
                for stage in stages.clone() {
                    let shares = self.shares_of_stage(stage, column).unwrap_or_default();
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
        let reduce = shares[Activity::Communication as usize];
        let compute = shares.iter().sum::<f64>() - reduce;
        if reduce > 0.3 || (compute <= 0.02 && reduce > 0.0) {
            let shade = self.shades.activity(Activity::Communication);
            return (reduce.min(1.0), shade, Some(Activity::Communication));
        }
        let own = Activity::ALL.into_iter().filter(|activity| *activity != Activity::Communication);
        let parts: Vec<_> = own.map(|activity| (self.shades.activity(activity), shares[activity as usize])).collect();
        (compute.min(1.0), self.shades.mix(&parts), most(shares))
    }

    /// Draws numbers and hues of the stages at the left of the strip, the selected one bright, the limiting one amber.
    pub(in crate::tui) fn draw_names(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        rows: Rows,
        (selected, limiting): (Option<usize>, Option<usize>),
    ) {
        let count = self.simulated.timeline.replicas.len();
        let hue = |stage: usize| {
            self.shades.color(self.shades.stage(stage.min(count.saturating_sub(1)), &self.simulated.shown.places))
        };
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
                let style = match (here, limiting == Some(stage)) {
                    (true, true) => self.theme.bold(Role::Warning),
                    (true, false) => self.theme.bold(Role::Text),
                    (false, true) => self.theme.fg(Role::Warning),
                    (false, false) => self.theme.fg(Role::Muted),
                };
                let name = self.simulated.shown.names.short(stage);
                let name: String = name.chars().take(room).collect();
                let left = room - name.chars().count();
                buffer.set_string(area.x + left as u16, y, name, style);
            }
        }
    }

    /// Width of the legend without its thin lines, with a gap between entries, cells.
    pub(in crate::tui) fn legend_width(&self, gap: u16) -> u16 {
        let areas = legend(self.simulated).into_iter().filter(|entry| !entry.thin);
        let words = areas.map(|entry| entry.word.chars().count() as u16 + 2 + gap);
        words.sum::<u16>().saturating_sub(gap)
    }

    /// Draws the legend on one line, right-aligned, as many entries as fit.
    pub(in crate::tui) fn draw_legend(&self, buffer: &mut Buffer, line: Rect) {
        let entries = legend(self.simulated);
        let width = |gap: u16| entries.iter().map(|e| e.word.chars().count() as u16 + 2 + gap).sum::<u16>() - gap;
        // Reduce the gap before leaving entries out.
        let gap = if width(2) <= line.width { 2 } else { 1 };
        let all = if width(gap) <= line.width { width(gap) } else { self.legend_width(gap) };
        let mut x = line.right().saturating_sub(all).max(line.x);
        for entry in entries {
            let next = x + entry.word.chars().count() as u16 + 2 + gap;
            if next > line.right() + gap {
                break;
            }
            let color = self.shades.color(self.shades.activity(entry.activity));
            buffer.set_string(
                x,
                line.y,
                entry.sign(self.shades),
                Style::new().fg(color).remove_modifier(Modifier::BOLD),
            );
            buffer.set_string(x + 2, line.y, entry.word, self.theme.fg(Role::Muted));
            x = next;
        }
    }
}

/// Entry of the legend.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui) struct Entry {
    pub activity: Activity,
    pub word: &'static str,
    /// True if it is drawn as a thin line.
    pub thin: bool,
}

impl Entry {
    /// Sign of the entry.
    pub(in crate::tui) fn sign(&self, shades: &Shades) -> &'static str {
        match (self.thin, shades.coloured()) {
            (true, true) => "─",
            (true, false) => "→",
            (false, true) => "■",
            (false, false) => self.activity.fill(),
        }
    }
}

/// Activities of an iteration, with their names.
pub(in crate::tui) fn legend(simulated: &Simulated) -> Vec<Entry> {
    let stages = &simulated.pipeline.stages;
    let any = |of: fn(&PipelineStage) -> f64| stages.iter().any(|stage| of(stage) > 0.0);
    let backward = stages.iter().any(|stage| stage.backward_s > stage.recompute_s);
    let entry = |activity, word| Entry { activity, word, thin: false };
    let mut entries = vec![entry(Activity::Forward, if backward { "forward" } else { "compute" })];
    if any(|stage| stage.recompute_s) {
        entries.push(entry(Activity::Recompute, "recompute"));
    }
    if backward {
        entries.push(entry(Activity::Backward, "backward"));
    }
    if any(|stage| stage.all_reduce_s) {
        entries.push(entry(Activity::Communication, "all-reduce"));
    }
    if simulated.works(Work::Optimizer) {
        entries.push(entry(Activity::Step, "step"));
    }
    if !simulated.pipeline.transfers.is_empty() {
        entries.push(Entry { activity: Activity::Communication, word: "sends", thin: true });
    }
    entries
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
