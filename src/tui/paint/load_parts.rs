//! Parts of a stage's load, as far as the profile distinguishes them, for all bars, legends and sentences.

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
    /// Name, one word.
    pub name: &'static str,
    /// Sign that fills its section of a bar.
    pub fill: &'static str,
    /// Colour.
    pub role: Role,
    /// Time of the part on a stage, seconds.
    pub of: fn(&StageScore) -> f64,
}

/// Parts of a plan's loads. Parts that are 0 on every stage are left out.
pub(in crate::tui) fn load_parts(score: &Score) -> Vec<LoadPart> {
    let any = |of: fn(&StageScore) -> f64| score.stages.iter().any(|stage| of(stage) > 0.0);
    let part = |name, fill, role, of| LoadPart { name, fill, role, of };
    let mut parts = if any(|s| s.backward_compute_s) {
        vec![
            part("forward", "█", Role::Forward, |s| s.compute_s - s.backward_compute_s),
            part("backward", "▓", Role::Backward, |s| s.backward_compute_s),
        ]
    } else {
        vec![part("compute", "█", Role::Forward, |s| s.compute_s)]
    };
    if any(|s| s.received_s) {
        parts.push(part("received", "▒", Role::Communication, |s| s.received_s));
        parts.push(part("sent", "▚", Role::Communication, |s| s.communication_s - s.received_s));
    } else {
        parts.push(part("transfers", "▓", Role::Communication, |s| s.communication_s));
    }
    parts.push(part("all-reduce", "▒", Role::Communication, |s| s.sync_s));
    parts.retain(|part| any(part.of));
    parts
}

/// Fill of a part in a bar: half a line in its colour, or its own sign without colours.
fn half(part: &LoadPart, theme: &Theme) -> &'static str {
    if theme.color(part.role) == Color::Reset { part.fill } else { "▄" }
}

/// Parts of a stage in a bar whose full width is `whole` seconds.
pub(in crate::tui) fn bar_parts(parts: &[LoadPart], stage: &StageScore, whole: f64, theme: &Theme) -> Vec<Part> {
    let part = |p: &LoadPart| Part { share: (p.of)(stage) / whole, fill: half(p, theme), style: theme.fg(p.role) };
    parts.iter().map(part).collect()
}

/// The same for one node, whose transfers are one sum; `backward` is true for nodes of that pass.
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

/// Style of text in a part's colour.
pub(in crate::tui) fn words(theme: &Theme, role: Role) -> Style {
    ink(theme, role)
}

/// Sign and name of each part, as many as fit.
pub(in crate::tui) fn legend(parts: &[LoadPart], theme: &Theme, width: usize) -> Vec<Span<'static>> {
    let mut used = 0;
    // Same signs as in the bars: colours if there are any, else fills.
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
