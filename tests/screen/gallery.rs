//! What a machine can judge of a picture: contrast of every letter, nothing cut without need, scrollbars where a list goes on.

use std::sync::Arc;

use plantui::{
    tui::{Depth, Focus, Offscreen, View, gallery},
    workload,
};
use ratatui::{
    buffer::Buffer,
    crossterm::event::KeyCode,
    style::{Color, Modifier},
};

use crate::{piper, placement::training, press, request, screen, tiny};

/// What a dark terminal is taken to have.
const DARK: (u8, u8, u8) = (14, 16, 22);

/// The sixteen colours as the Linux console has them.
const CONSOLE: [(Color, (u8, u8, u8)); 16] = [
    (Color::Black, (0, 0, 0)),
    (Color::Red, (170, 0, 0)),
    (Color::Green, (0, 170, 0)),
    (Color::Yellow, (170, 85, 0)),
    (Color::Blue, (0, 0, 170)),
    (Color::Magenta, (170, 0, 170)),
    (Color::Cyan, (0, 170, 170)),
    (Color::Gray, (170, 170, 170)),
    (Color::DarkGray, (85, 85, 85)),
    (Color::LightRed, (255, 85, 85)),
    (Color::LightGreen, (85, 255, 85)),
    (Color::LightYellow, (255, 255, 85)),
    (Color::LightBlue, (85, 85, 255)),
    (Color::LightMagenta, (255, 85, 255)),
    (Color::LightCyan, (85, 255, 255)),
    (Color::White, (255, 255, 255)),
];

fn value(color: Color, ground: bool) -> Option<(u8, u8, u8)> {
    match color {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Reset if ground => Some(DARK),
        color => CONSOLE.iter().find(|(known, _)| *known == color).map(|(_, value)| *value),
    }
}

fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.039_28 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    let light = |c: (u8, u8, u8)| 0.2126 * linear(c.0) + 0.7152 * linear(c.1) + 0.0722 * linear(c.2);
    let (a, b) = (light(a), light(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Letters and digits that are hard to read, with where they stand.
pub(crate) fn pale(buffer: &Buffer) -> Vec<String> {
    let mut found = vec![];
    for y in 0..buffer.area.height {
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            if !cell.symbol().chars().all(char::is_alphanumeric) || cell.modifier.contains(Modifier::REVERSED) {
                continue;
            }
            let (Some(ink), Some(ground)) = (value(cell.fg, false), value(cell.bg, true)) else { continue };
            let found_here = contrast(ink, ground);
            if found_here < 4.5 {
                found.push(format!("`{}` at {x}, {y}: {found_here:.2}", cell.symbol()));
            }
        }
    }
    found
}

#[test]
fn every_letter_stands_out_in_every_theme() {
    for theme in ["dark", "light", "high-contrast", "colour-blind"] {
        for workload in [tiny(), training()] {
            for view in [View::Compare, View::Sweep, View::Workload] {
                for size in [(80, 24), (120, 36), (200, 60)] {
                    let mut screen = gallery::posed(&workload, (theme, Depth::True), size, view).unwrap();
                    let found = pale(screen.draw());
                    assert!(found.is_empty(), "{theme} {view:?} {size:?}: {found:?}\n{}", screen.text());
                }
            }
        }
    }
}

#[test]
fn overlays_can_be_read_in_every_theme() {
    for theme in ["dark", "light", "high-contrast", "colour-blind"] {
        for keys in ["?", ":", "o", "g", "e"] {
            let mut screen = gallery::posed(&tiny(), (theme, Depth::True), (120, 36), View::Workload).unwrap();
            screen.keys(keys);
            let found = pale(screen.draw());
            assert!(found.is_empty(), "{theme} {keys}: {found:?}\n{}", screen.text());
        }
    }
}

#[test]
fn a_list_that_goes_on_has_a_scrollbar_and_one_that_does_not_has_none() {
    let bar = |text: &str| text.lines().filter(|line| line.contains('█')).count();
    let mut screen = screen(request(Arc::new(workload::builtin())));
    screen.focus(Focus::View);
    for (keys, long) in [("?", true), (":", true)] {
        screen.keys(keys);
        assert_eq!(bar(&screen.text()) > 0, long, "{keys}\n{}", screen.text());
        press(&mut screen, KeyCode::Esc);
    }
}

#[test]
fn ask_answers_and_enter_takes_the_answer() {
    let mut screen = screen(piper(Arc::new(workload::builtin())));
    screen.keys("g");
    let text = screen.text();
    for part in ["devices", "time per sample at most", "20.06ms", "Enter starts"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    for _ in 0.."20.06ms".len() {
        press(&mut screen, KeyCode::Backspace);
    }
    screen.keys("25ms");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("✓ 52 devices: 24.21 ms/sample; with 51 devices: 25.06 ms/sample"), "{text}");
    assert!(text.contains("proven: no plan reaches the goal with less"), "{text}");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("(objective 24.21 ms)") && text.contains("52 ◂ ▸"), "{text}");
}

#[test]
fn ask_says_what_is_wrong_and_what_is_out_of_reach() {
    let mut screen = screen(piper(Arc::new(workload::builtin())));
    screen.keys("g");
    screen.keys("x");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("✗ the goal"), "{}", screen.text());
    for _ in 0..20 {
        press(&mut screen, KeyCode::Backspace);
    }
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains("◂ memory ▸"), "{}", screen.text());
    screen.keys("1us");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("out of reach: the nearest is 15.66 ms/sample"), "{text}");
    press(&mut screen, KeyCode::Esc);
    assert!(!screen.text().contains("out of reach"));
}

#[test]
fn two_limits_make_a_map_and_a_typed_range_is_swept() {
    let mut screen = Offscreen::new(piper(Arc::new(workload::builtin())), 160, 45).unwrap();
    screen.focus(Focus::View);
    screen.act(plantui::tui::Action::Show(View::Sweep));
    screen.keys("t");
    assert!(screen.text().contains("such as 8..512:x2"), "{}", screen.text());
    screen.keys("16..64:+16");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("4 points"), "{text}");
    screen.keys("t");
    screen.keys("64..16");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("runs backwards"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);
    screen.keys("y");
    let text = screen.text();
    assert!(text.contains("time per sample by devices and memory"), "{text}");
    assert!(text.contains("◆ as good as the current plan: at most 20.06 ms/sample"), "{text}");
    assert!(text.matches('◆').count() > 2, "{text}");
    // Enter sets both limits.
    press(&mut screen, KeyCode::Left);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("48 devices, "), "{}", screen.text());
}

#[test]
fn axes_turn_from_factors_to_steps() {
    let mut screen = screen(piper(Arc::new(workload::builtin())));
    screen.focus(Focus::View);
    screen.act(plantui::tui::Action::Show(View::Sweep));
    let before = screen.text();
    screen.keys("L");
    let text = screen.text();
    assert!(text.contains("devices logarithmic, time per sample linear"), "{text}");
    screen.keys("LLL");
    press(&mut screen, KeyCode::Esc);
    assert_eq!(screen.text(), before);
}
