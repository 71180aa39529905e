//! Colours of a theme on the actual terminal: the nearest available ones with enough contrast.

use ratatui::style::Color;
use serde::Deserialize;

use super::theme::Depth;

/// Colour as written in theme files: `#5fa8e8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Rgb(pub(super) u8, pub(super) u8, pub(super) u8);

impl TryFrom<String> for Rgb {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix('#').filter(|d| d.len() == 6 && d.is_ascii());
        let value = digits.and_then(|d| u32::from_str_radix(d, 16).ok());
        value
            .map(|v| Rgb((v >> 16) as u8, (v >> 8) as u8, v as u8))
            .ok_or_else(|| format!("`{text}` is not a colour; write #rrggbb, such as #5fa8e8"))
    }
}

/// Black or white, whichever is more readable on a colour.
pub(super) fn contrast(color: Color) -> Color {
    let light = match color {
        Color::Rgb(r, g, b) => luma(r, g, b) > 120.0,
        Color::Indexed(i) => {
            let Rgb(r, g, b) = indexed_rgb(i);
            luma(r, g, b) > 120.0
        }
        Color::Blue | Color::LightBlue | Color::Red | Color::Magenta | Color::Black | Color::DarkGray => false,
        _ => true,
    };
    if light { Color::Black } else { Color::White }
}

pub(super) fn luma(r: u8, g: u8, b: u8) -> f64 {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b)
}

pub(super) const ANSI: [(Color, Rgb); 16] = [
    (Color::Black, Rgb(0, 0, 0)),
    (Color::Red, Rgb(190, 30, 30)),
    (Color::Green, Rgb(40, 160, 60)),
    (Color::Yellow, Rgb(200, 150, 20)),
    (Color::Blue, Rgb(50, 90, 200)),
    (Color::Magenta, Rgb(160, 70, 170)),
    (Color::Cyan, Rgb(40, 160, 180)),
    (Color::Gray, Rgb(190, 190, 190)),
    (Color::DarkGray, Rgb(90, 90, 90)),
    (Color::LightRed, Rgb(255, 110, 110)),
    (Color::LightGreen, Rgb(130, 220, 130)),
    (Color::LightYellow, Rgb(250, 220, 110)),
    (Color::LightBlue, Rgb(110, 170, 250)),
    (Color::LightMagenta, Rgb(230, 140, 230)),
    (Color::LightCyan, Rgb(120, 230, 230)),
    (Color::White, Rgb(255, 255, 255)),
];

/// Assumed background of a dark terminal.
pub(super) const DARK: Rgb = Rgb(14, 16, 22);
/// Minimum contrast of text, and of other marks.
pub(super) const READ: f64 = 4.5;
pub(super) const SEEN: f64 = 1.5;

/// Converts a colour for the terminal's depth: the nearest with enough contrast on a ground. Many terminals show dark
/// blue, black and dark grey almost as black, whatever their nominal values. On the Linux console light blue and brown
/// are unsuitable for text.
pub(super) fn lower_ink(rgb: Rgb, depth: Depth, ground: Rgb, least: f64) -> Color {
    let told = |other: Rgb| contrast_of(other, ground) >= least;
    match depth {
        Depth::None | Depth::True => lower(rgb, depth, false),
        Depth::Indexed => {
            let fitting = (16..=255).filter(|&i| told(indexed_rgb(i)));
            fitting.min_by_key(|&i| distance(rgb, indexed_rgb(i))).map_or(lower(rgb, depth, false), Color::Indexed)
        }
        Depth::Ansi => {
            let light = luma(ground.0, ground.1, ground.2) > 120.0;
            let pale = |color: Color| matches!(color, Color::LightBlue | Color::Yellow) && least >= READ;
            let sure = |color: Color| light || (color != Color::Blue && !pale(color));
            let usual =
                |color: Color| !matches!(color, Color::Black | Color::DarkGray) || (light && color == Color::Black);
            let fitting = ANSI.iter().filter(|(color, other)| usual(*color) && sure(*color) && told(*other));
            // Rules and muted text stay grey: the nearest of so few colours would be magenta.
            let greys = fitting.clone().filter(|(_, other)| is_grey(rgb) && is_grey(*other));
            let fitting: Vec<_> = if greys.clone().next().is_some() { greys.collect() } else { fitting.collect() };
            fitting
                .into_iter()
                .min_by_key(|(_, other)| distance(rgb, *other))
                .map_or(lower(rgb, depth, false), |(color, _)| *color)
        }
    }
}

/// True if a colour has hardly any hue.
fn is_grey(Rgb(r, g, b): Rgb) -> bool {
    r.max(g).max(b) - r.min(g).min(b) < 40
}

/// Contrast of two colours as defined by WCAG 2, from 1 to 21.
pub(super) fn contrast_of(a: Rgb, b: Rgb) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.039_28 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let light = |c: Rgb| 0.2126 * linear(c.0) + 0.7152 * linear(c.1) + 0.0722 * linear(c.2);
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Converts a colour for the terminal's depth.
pub(super) fn lower(rgb: Rgb, depth: Depth, ground: bool) -> Color {
    match depth {
        Depth::None => Color::Reset,
        Depth::True => Color::Rgb(rgb.0, rgb.1, rgb.2),
        Depth::Indexed => Color::Indexed((16..=255).min_by_key(|&i| distance(rgb, indexed_rgb(i))).unwrap_or(7)),
        Depth::Ansi => ANSI
            .iter()
            .filter(|(color, _)| ground || !matches!(color, Color::Black | Color::DarkGray))
            .min_by_key(|(_, other)| distance(rgb, *other))
            .map_or(Color::Reset, |(color, _)| *color),
    }
}

/// Weighted square distance, close enough to perception.
pub(super) fn distance(a: Rgb, b: Rgb) -> i64 {
    let square = |x: u8, y: u8| (i64::from(x) - i64::from(y)).pow(2);
    3 * square(a.0, b.0) + 4 * square(a.1, b.1) + 2 * square(a.2, b.2)
}

/// Colour of entries 16 to 255 of xterm's table: a 6 x 6 x 6 cube, then 24 greys.
pub(super) fn indexed_rgb(index: u8) -> Rgb {
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return Rgb(grey, grey, grey);
    }
    let level = |i: u8| if i == 0 { 0 } else { 55 + 40 * i };
    let i = index.saturating_sub(16);
    Rgb(level(i / 36), level(i / 6 % 6), level(i % 6))
}
