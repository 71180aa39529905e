//! Title of every view: the layout of the shown plan, with its knobs, and a sentence on the selected one or on the last
//! change.
//!
//! ```text
//! ◂TP 4▸ ·  CP 2  ·  PP 4 ×5  ·  DP 2  ·  EP 1  ·  mbs 1  ·  recompute none · ZeRO-1
//!  tensor    context   pipeline   data ..
//! TP 4 is free: the planner chose it. 8 costs 1.6 %, 2 does not fit: 119 of 80 GiB
//! ```

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    tui::{
        layout_bar::{Axis, AxisTrial, AxisTrials, LayoutTitle},
        marks::Marks,
        model::{Focus, Hit, Model},
        paint::{phrases::flow, text::clip},
        theme::Role,
    },
    units,
};

/// Part of the title: label, value, and index among the knobs.
struct TitlePart {
    label: String,
    value: String,
    pinned: bool,
    knob: Option<usize>,
    /// Word for the line below.
    word: &'static str,
    /// True if a blank parts it from the one before, of which it is a detail.
    close: bool,
}

impl TitlePart {
    /// Text before the part, if another one precedes it.
    fn before(&self, separator: &'static str) -> &'static str {
        if self.close { " " } else { separator }
    }

    fn width(&self) -> usize {
        self.label.width() + self.value.width()
    }
}

/// Ways to write the title, the widest first.
#[derive(Clone, Copy)]
struct TitleStyle {
    /// True if values keep the width of larger ones.
    slots: bool,
    /// True if the modules that run again are listed.
    modules: bool,
    /// True with the sharding.
    more: bool,
    separator: &'static str,
}

const STYLES: [TitleStyle; 7] = [
    TitleStyle { slots: true, modules: true, more: true, separator: "  ·  " },
    TitleStyle { slots: true, modules: true, more: true, separator: " · " },
    TitleStyle { slots: true, modules: false, more: true, separator: " · " },
    TitleStyle { slots: false, modules: false, more: true, separator: " · " },
    TitleStyle { slots: false, modules: false, more: false, separator: " · " },
    TitleStyle { slots: false, modules: false, more: true, separator: "  " },
    TitleStyle { slots: false, modules: false, more: false, separator: "  " },
];

/// Draws the title on a line, and below it, if there is another one, the words that its labels stand for.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks) {
    let line = Rect { height: area.height.min(1), ..area };
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let title = model.layout_title();
    let theme = &model.appearance.theme;
    let width = usize::from(line.width);
    let written = STYLES.iter().map(|style| (parts(&title, *style), style.separator));
    let fits = |(parts, separator): &(Vec<TitlePart>, &'static str)| whole(parts, separator) <= width;
    let mut all: Vec<_> = written.collect();
    let at = all.iter().position(fits).unwrap_or(all.len() - 1);
    let (mut parts, separator) = all.swap_remove(at);
    while whole(&parts, separator) > width && !parts.is_empty() {
        parts.pop();
    }
    let selected = (model.focus == Focus::Layout).then_some(model.layout.at);
    let (mut x, mut arrows) = (line.x, None);
    let mut words = vec![];
    for (i, part) in parts.into_iter().enumerate() {
        let before = if i > 0 { part.before(separator) } else { "" };
        frame.render_widget(Span::styled(before, theme.fg(Role::Border)), Rect { x, ..line }.intersection(line));
        x += before.width() as u16;
        let place = Rect { x, width: part.width() as u16, ..line };
        words.extend((!part.word.is_empty()).then_some((x, part.word)));
        let here = part.knob.is_some() && part.knob == selected;
        let value = theme.bold(if part.pinned { Role::Accent } else { Role::Text });
        let spans = vec![Span::styled(part.label, theme.fg(Role::Muted)), Span::styled(part.value, value)];
        frame.render_widget(Line::from(spans), place);
        if here {
            frame.buffer_mut().set_style(place, theme.selected());
            arrows = Some([place.x.saturating_sub(1), place.right()]);
        }
        marks.hits.extend(part.knob.map(|knob| (place, Hit::Knob(knob))));
        x = place.right();
    }
    let fits = words.windows(2).all(|pair| pair[0].0 + (pair[0].1.len() as u16) < pair[1].0);
    for (x, word) in words.into_iter().filter(|_| fits && below.height > 0) {
        frame.render_widget(Span::styled(word, theme.fg(Role::Muted)), Rect { x, ..below }.intersection(below));
    }
    for (x, sign) in arrows.into_iter().flatten().zip(["◂", "▸"]) {
        let place = Rect { x, width: 1, ..line }.intersection(frame.area());
        frame.render_widget(Span::styled(sign, theme.bold(Role::Focus)), place);
    }
}

fn whole(parts: &[TitlePart], separator: &'static str) -> usize {
    let gaps: usize = parts.iter().skip(1).map(|part| part.before(separator).width()).sum();
    parts.iter().map(TitlePart::width).sum::<usize>() + gaps
}

fn parts(title: &LayoutTitle, style: TitleStyle) -> Vec<TitlePart> {
    let mut knobs = 0;
    let mut parts: Vec<TitlePart> = vec![];
    for own in &title.axes {
        let knob = own.turns.then_some(knobs);
        knobs += usize::from(own.turns);
        let short = own.text.split(':').next().unwrap_or_default();
        let text = if style.modules || own.axis != Axis::Recompute { own.text.as_str() } else { short };
        let value = if style.slots { format!("{text:<0$}", own.axis.width()) } else { text.to_string() };
        let label = match own.axis {
            Axis::Virtual => own.axis.label().to_string(),
            // A pinned value is told apart without colour too.
            axis if own.pinned => format!("{}=", axis.label()),
            axis => format!("{} ", axis.label()),
        };
        parts.push(TitlePart {
            label,
            value,
            pinned: own.pinned,
            knob,
            close: own.axis == Axis::Virtual,
            word: own.axis.word(),
        });
    }
    let more = title.more.iter().filter(|_| style.more || title.axes.is_empty());
    parts.extend(more.map(|text| TitlePart {
        label: String::new(),
        value: text.clone(),
        pinned: false,
        knob: None,
        word: "",
        close: false,
    }));
    parts
}

/// Effect of the last change, or the limits that an edit breaks.
pub(super) fn change(model: &Model) -> Vec<Span<'static>> {
    let theme = &model.appearance.theme;
    let shown = model.planning.shown.as_ref();
    let violations = shown.and_then(|shown| shown.plan()).map_or(&[][..], |(_, score)| &score.violations);
    let simulated = shown.and_then(|shown| model.simulation.of(shown));
    let change = model.change().filter(|_| simulated.is_some());
    // What an edit breaks matters more than what it gains.
    let mut spans = vec![];
    if let [first, more @ ..] = violations {
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        spans.push(Span::styled(format!("✗ {first}{more}  "), theme.bold(Role::Bad)));
    }
    if let Some(change) = change {
        let role = match change.better {
            Some(true) => Role::Good,
            Some(false) => Role::Warning,
            None => Role::Muted,
        };
        let now = simulated.map(|own| own.timeline.iteration_s).filter(|_| change.better.is_some());
        if let Some((before, now)) = change.before_s.zip(now) {
            let times = format!("{} → {}  ", units::seconds(before), units::seconds(now));
            spans.push(Span::styled(times, theme.fg(Role::Muted)));
        }
        let style = if change.bright { theme.bold(role) } else { theme.fg(role) };
        spans.push(Span::styled(change.difference, style));
        spans.push(Span::styled(format!(" {}  ", change.than), theme.fg(Role::Muted)));
    }
    spans
}

/// Prices of the selected knob's other values, as many as fit; without a knob, the effect of the last change.
pub(super) fn on_rule(model: &Model, room: usize) -> Vec<Span<'static>> {
    let Some(own) = model.knob().filter(|_| model.focus == Focus::Layout) else { return change(model) };
    let phrases = known_prices(model, own.axis).into_iter();
    let phrases = phrases.map(|text| vec![Span::styled(text, model.appearance.theme.fg(Role::Muted))]).collect();
    flow(phrases, "  ", room.saturating_sub(3), 1).into_iter().next().map_or(vec![], |line| line.spans)
}

/// Prices of an axis's other values, if they are those of the plan on the screen.
fn known_prices(model: &Model, axis: Axis) -> Vec<String> {
    let known = model.layout.trials.as_ref().filter(|trials| trials.axis == axis);
    let current =
        known.filter(|trials| model.planning.shown.as_ref().is_some_and(|shown| std::ptr::eq(&**shown, &*trials.of)));
    current.map(prices).unwrap_or_default()
}

/// Draws the sentence on the selected knob; without one, the effect of the last change.
pub(super) fn draw_sentence(frame: &mut Frame<'_>, line: Rect, model: &Model) {
    if model.focus != Focus::Layout {
        let width = usize::from(line.width);
        let phrases = change(model).into_iter().map(|span| vec![Span::styled(clip(&span.content, width), span.style)]);
        if let Some(told) = flow(phrases.collect(), "", width, 1).into_iter().next() {
            frame.render_widget(told, line);
        }
        return;
    }
    let Some(own) = model.knob() else { return };
    let theme = &model.appearance.theme;
    let name = own.axis.name();
    let standing = match (own.axis, own.pinned) {
        (Axis::Data, false) => format!("{name} {} is free: it is what the other axes leave.", own.text),
        (_, false) => format!("{name} {} is free: the planner chose it.", own.text),
        (_, true) => format!("{name} {} is pinned; ⌫ frees it.", own.text),
    };
    let mut phrases = vec![vec![Span::styled(standing, theme.fg(Role::Text))]];
    let prices = known_prices(model, own.axis).into_iter();
    phrases.extend(prices.map(|text| vec![Span::styled(text, theme.fg(Role::Muted))]));
    if let Some(line_of) = flow(phrases, "  ", line.width.into(), 1).into_iter().next() {
        frame.render_widget(line_of, line);
    }
}

/// Costs of other values, nearest first.
fn prices(trials: &AxisTrials) -> Vec<String> {
    let own = trials.of.outcome.objective;
    let told = |trial: &AxisTrial| {
        let name = trial.text.as_str();
        match (&trial.result, own) {
            (None, _) => format!("{name} …"),
            (Some(Err(reason)), _) => format!("{name} {}", clip(reason, 44)),
            (Some(Ok(seconds)), Some(own)) if *seconds < own * (1.0 - units::AS_FAST) => {
                format!("{name} saves {}", units::percent(1.0 - seconds / own))
            }
            (Some(Ok(seconds)), Some(own)) if *seconds < own * (1.0 + units::AS_FAST) => format!("{name} is as fast"),
            (Some(Ok(seconds)), Some(own)) => format!("{name} costs {}", units::percent(seconds / own - 1.0)),
            (Some(Ok(_)), None) => format!("{name} has a plan"),
        }
    };
    let free = trials.free.iter().map(|trial| told(trial).replacen(&trial.text, "free", 1));
    let near = trials
        .above
        .first()
        .into_iter()
        .chain(trials.below.first())
        .chain(trials.above.get(1))
        .chain(trials.below.get(1));
    let mut all: Vec<String> = free.chain(near.map(told)).collect();
    let last = all.len().saturating_sub(1);
    all.iter_mut().take(last).for_each(|text| text.push(','));
    all
}
