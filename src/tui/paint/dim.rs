//! Dims the screen behind an overlay: readable, but clearly without the focus.
//!
//! Text takes the muted colour, which keeps its contrast. Colours that fill cells are mixed with the background. If
//! colours cannot be mixed, only text changes. `O(cells)`.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier},
};

use crate::tui::theme::{Role, Theme};

/// Fraction of a colour that is left.
const LEFT: f64 = 0.3;

/// Dims a part of the screen.
pub(in crate::tui) fn dim(buffer: &mut Buffer, area: Rect, theme: &Theme) {
    let (text, muted) = (theme.color(Role::Text), theme.color(Role::Muted));
    let ground = match (theme.background(), text) {
        (Color::Rgb(r, g, b), _) => [r, g, b],
        // The terminal's own background: light if its text colour is dark.
        (_, Color::Rgb(r, g, b)) if u32::from(r) + u32::from(g) + u32::from(b) < 380 => [250; 3],
        _ => [14, 16, 22],
    };
    for position in area.intersection(buffer.area).positions() {
        let cell = &mut buffer[position];
        let filled = cell.symbol().chars().all(|c| matches!(c, '\u{2580}'..='\u{259f}' | '\u{2800}'..='\u{28ff}'));
        let on_colour = !matches!(cell.bg, Color::Reset) && cell.bg != theme.background();
        cell.bg = towards(cell.bg, ground);
        cell.modifier.remove(Modifier::BOLD);
        cell.fg = match (filled, on_colour) {
            (true, _) => towards(cell.fg, ground),
            (false, true) => text,
            (false, false) => muted,
        };
    }
}

fn towards(color: Color, ground: [u8; 3]) -> Color {
    let Color::Rgb(r, g, b) = color else { return color };
    let mix = |own: u8, ground: u8| (f64::from(own) * LEFT + f64::from(ground) * (1.0 - LEFT)).round() as u8;
    Color::Rgb(mix(r, ground[0]), mix(g, ground[1]), mix(b, ground[2]))
}

/// Removes the colours of an outdated plan: readable, but clearly not current.
pub(in crate::tui) fn fade(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let muted = theme.color(Role::Muted);
    let buffer = frame.buffer_mut();
    for position in area.intersection(buffer.area).positions() {
        let cell = &mut buffer[position];
        if cell.fg != Color::Reset || muted != Color::Reset {
            cell.set_fg(muted);
        }
        cell.modifier.remove(Modifier::BOLD);
    }
}
