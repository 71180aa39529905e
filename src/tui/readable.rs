//! The colour of something drawn, for words about it: brought towards that of text until it can be read. What fills a bar
//! well is often too near the background to write with. `O(1)`.

use ratatui::style::{Color, Style};

use super::theme::{Role, Theme};

/// The least contrast of what is read.
const READ: f64 = 4.5;
/// What a dark terminal is taken to have as its background.
const DARK: [f64; 3] = [14.0, 16.0, 22.0];
/// Steps on the way to the colour of text.
const STEPS: u32 = 10;

/// Words about what has a role, in its colour or one near it.
pub(super) fn ink(theme: &Theme, role: Role) -> Style {
    let text = theme.color(Role::Text);
    let (color, ground) = (theme.color(role), theme.base().bg.and_then(rgb).unwrap_or(DARK));
    let (Some(from), Some(to)) = (rgb(color), rgb(text)) else {
        // Of sixteen colours those that are light everywhere.
        let light =
            [Color::Cyan, Color::Green, Color::LightGreen, Color::LightCyan, Color::LightYellow, Color::LightMagenta];
        let readable = light.contains(&color) && !theme.is_light();
        return theme.fg(if readable { role } else { Role::Text });
    };
    for step in 0..STEPS {
        let share = f64::from(step) / f64::from(STEPS);
        let mixed = [0, 1, 2].map(|i| from[i] + (to[i] - from[i]) * share);
        if contrast(mixed, ground) >= READ {
            let color = match (step, color) {
                (0, color) => color,
                (_, Color::Indexed(_)) => text,
                _ => Color::Rgb(mixed[0].round() as u8, mixed[1].round() as u8, mixed[2].round() as u8),
            };
            return Style::new().fg(color);
        }
    }
    theme.fg(Role::Text)
}

/// Red, green and blue, where they are known.
fn rgb(color: Color) -> Option<[f64; 3]> {
    match color {
        Color::Rgb(r, g, b) => Some([r, g, b].map(f64::from)),
        Color::Indexed(i @ 16..=231) => {
            let level = |n: u8| if n == 0 { 0.0 } else { 55.0 + 40.0 * f64::from(n) };
            let i = i - 16;
            Some([level(i / 36), level(i / 6 % 6), level(i % 6)])
        }
        Color::Indexed(i @ 232..) => Some([8.0 + 10.0 * f64::from(i - 232); 3]),
        _ => None,
    }
}

/// The contrast of two colours as WCAG 2 defines it.
fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
    let linear = |c: f64| {
        let c = c / 255.0;
        if c <= 0.039_28 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let light = |c: [f64; 3]| 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{Depth, load};

    #[test]
    fn words_in_the_colour_of_a_bar_can_be_read() {
        let fills = [Role::Forward, Role::Backward, Role::Communication, Role::Sync, Role::Weights, Role::Activations];
        for name in ["dark", "light", "high-contrast", "colour-blind"] {
            for depth in [Depth::True, Depth::Indexed] {
                let theme = load(name, None, depth).unwrap();
                let ground = theme.base().bg.and_then(rgb).unwrap_or(DARK);
                for role in fills {
                    let color = ink(&theme, role).fg.and_then(rgb).unwrap();
                    assert!(contrast(color, ground) >= READ, "{name} {depth:?} {role:?}");
                }
            }
        }
        let dark = load("dark", None, Depth::True).unwrap();
        assert_eq!(ink(&dark, Role::Forward), dark.fg(Role::Forward), "it can be read as it is");
        let light = load("light", None, Depth::True).unwrap();
        assert_ne!(ink(&light, Role::Forward), light.fg(Role::Forward));
    }
}
