//! What a stage's time is made of, as far as the profile tells: the parts of every bar, legend and sentence about loads.

use ratatui::{
    style::{Color, Style},
    text::Span,
};

use crate::{
    plan::{NodeScore, Score, StageScore},
    tui::{
        readable::ink,
        theme::{Role, Theme},
        widget::bar::Part,
    },
};

/// One part of a load.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui) struct LoadPart {
    /// One word.
    pub name: &'static str,
    /// Sign that fills its stretch of a bar.
    pub fill: &'static str,
    /// Its colour.
    pub role: Role,
    /// How long it takes on a stage, seconds.
    pub of: fn(&StageScore) -> f64,
}

/// The parts that a plan's loads have; a part that is nothing on every stage is left out.
pub(in crate::tui) fn load_parts(score: &Score) -> Vec<LoadPart> {
    let any = |of: fn(&StageScore) -> f64| score.stages.iter().any(|stage| of(stage) > 0.0);
    let part = |name, fill, role, of| LoadPart { name, fill, role, of };
    let mut parts = if any(|s| s.backward_compute_s) {
        vec![
            part("forward", "█", Role::Forward, |s| s.compute_s - s.backward_compute_s),
            part("backward", "▓", Role::Backward, |s| s.backward_compute_s),
        ]
    } else {
        vec![part("compute", "█", Role::Compute, |s| s.compute_s)]
    };
    if any(|s| s.received_s) {
        parts.push(part("received", "▒", Role::Communication, |s| s.received_s));
        parts.push(part("sent", "▚", Role::Transfer, |s| s.communication_s - s.received_s));
    } else {
        parts.push(part("transfers", "▓", Role::Communication, |s| s.communication_s));
    }
    parts.push(part("all-reduce", "▒", Role::Sync, |s| s.sync_s));
    parts.retain(|part| any(part.of));
    parts
}

/// What a part fills a bar with: half a line in its colour, a sign of its own where it has none.
fn half(part: &LoadPart, theme: &Theme) -> &'static str {
    if theme.color(part.role) == Color::Reset { part.fill } else { "▄" }
}

/// The parts of a stage as parts of a bar that `whole` seconds fill.
pub(in crate::tui) fn bar_parts(parts: &[LoadPart], stage: &StageScore, whole: f64, theme: &Theme) -> Vec<Part> {
    let part = |p: &LoadPart| Part { share: (p.of)(stage) / whole, fill: half(p, theme), style: theme.fg(p.role) };
    parts.iter().map(part).collect()
}

/// The same for one node, whose transfers are told in one sum; `backward`: whether it is of that pass.
pub(in crate::tui) fn node_parts(
    parts: &[LoadPart],
    node: &NodeScore,
    backward: bool,
    whole: f64,
    theme: &Theme,
) -> Vec<Part> {
    let look = |names: [&str; 2]| -> (&'static str, Style) {
        let found = parts.iter().find(|p| names.contains(&p.name));
        found.map_or(("█", Style::new()), |p| (half(p, theme), theme.fg(p.role)))
    };
    let compute = if backward { ["backward", "compute"] } else { ["forward", "compute"] };
    [
        (node.compute_s, compute),
        (node.communication_s, ["received", "transfers"]),
        (node.sync_s, ["all-reduce", "all-reduce"]),
    ]
    .into_iter()
    .map(|(time, names)| {
        let (fill, style) = look(names);
        Part { share: time / whole, fill, style }
    })
    .collect()
}

/// A part's colour as that of words.
pub(in crate::tui) fn words(theme: &Theme, role: Role) -> Style {
    ink(theme, role)
}

/// Every part's sign and name, as many as fit.
pub(in crate::tui) fn legend(parts: &[LoadPart], theme: &Theme, width: usize) -> Vec<Span<'static>> {
    let mut used = 0;
    // As the bars are: where fills tell nothing, colours do.
    let sign = |part: &LoadPart| if theme.color(part.role) == Color::Reset { part.fill } else { "■" };
    let texts = parts.iter().map(|part| (format!("{}{} ", sign(part), part.name), part.role));
    let fitting = texts.take_while(|(text, _)| {
        used += text.chars().count();
        used <= width + 1
    });
    let mut spans = vec![];
    for (text, role) in fitting {
        let (sign, name) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        spans.push(Span::styled(sign.to_string(), theme.fg(role)));
        spans.push(Span::styled(name.to_string(), words(theme, role)));
    }
    spans
}
