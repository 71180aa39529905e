//! Text in the colour of a drawn item, moved towards the text colour until readable. A colour that fills a bar well is
//! often too close to the background for text. `O(1)`.

use ratatui::style::{Color, Style};

use super::{
    inks::{DARK, READ, Rgb, contrast_of, indexed_rgb},
    theme::{Role, Theme},
};

/// Number of steps towards the text colour.
const STEPS: u32 = 10;

/// Style of text about a role, in its colour or a similar one.
pub(super) fn ink(theme: &Theme, role: Role) -> Style {
    let text = theme.color(Role::Text);
    let (color, ground) = (theme.color(role), theme.base().bg.and_then(rgb).unwrap_or(DARK));
    let (Some(from), Some(to)) = (rgb(color), rgb(text)) else {
        // Of the sixteen colours, those that are light on every terminal.
        let light =
            [Color::Cyan, Color::Green, Color::LightGreen, Color::LightCyan, Color::LightYellow, Color::LightMagenta];
        let readable = light.contains(&color) && !theme.is_light();
        return theme.fg(if readable { role } else { Role::Text });
    };
    for step in 0..STEPS {
        let share = f64::from(step) / f64::from(STEPS);
        let mixed = Rgb(between(from.0, to.0, share), between(from.1, to.1, share), between(from.2, to.2, share));
        if contrast_of(mixed, ground) >= READ {
            let color = match (step, color) {
                (0, color) => color,
                (_, Color::Indexed(_)) => text,
                _ => Color::Rgb(mixed.0, mixed.1, mixed.2),
            };
            return Style::new().fg(color);
        }
    }
    theme.fg(Role::Text)
}

/// Red, green and blue, if known.
fn rgb(color: Color) -> Option<Rgb> {
    match color {
        Color::Rgb(r, g, b) => Some(Rgb(r, g, b)),
        Color::Indexed(i @ 16..) => Some(indexed_rgb(i)),
        _ => None,
    }
}

/// Interpolates between two channels.
fn between(from: u8, to: u8, share: f64) -> u8 {
    (f64::from(from) + (f64::from(to) - f64::from(from)) * share).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{Depth, load};

    #[test]
    fn words_in_the_colour_of_a_bar_can_be_read() {
        let fills =
            [Role::Forward, Role::Backward, Role::Communication, Role::Recompute, Role::State, Role::Activations];
        for name in ["dark", "light", "high-contrast", "colour-blind"] {
            for depth in [Depth::True, Depth::Indexed] {
                let theme = load(name, None, depth).unwrap();
                let ground = theme.base().bg.and_then(rgb).unwrap_or(DARK);
                for role in fills {
                    let color = ink(&theme, role).fg.and_then(rgb).unwrap();
                    assert!(contrast_of(color, ground) >= READ, "{name} {depth:?} {role:?}");
                }
            }
        }
        let dark = load("dark", None, Depth::True).unwrap();
        assert_eq!(ink(&dark, Role::Forward), dark.fg(Role::Forward), "it can be read as it is");
        let light = load("light", None, Depth::True).unwrap();
        assert_ne!(ink(&light, Role::Forward), light.fg(Role::Forward));
    }
}
