//! Themes, colours, ASCII.

use std::sync::Arc;

use plantui::{
    text::is_hostile,
    tui::{Depth, Focus, theme},
    workload,
};
use ratatui::{
    crossterm::event::{KeyCode, KeyModifiers},
    style::Color,
};

use crate::{kinds::two_kinds, placement::training, press, request, screen, tiny};

const VIEWS: [&str; 5] = ["1", "2", "3", "4", "5"];

#[test]
fn without_colours_nothing_is_coloured_and_everything_is_said() {
    let mut request = request(Arc::new(workload::builtin()));
    request.depth = Depth::None;
    let mut screen = screen(request);
    screen.focus(Focus::View);
    for view in VIEWS {
        screen.keys(view);
        let colored = screen.draw().content.iter().filter(|c| c.fg != Color::Reset || c.bg != Color::Reset).count();
        assert_eq!(colored, 0, "view {view}");
    }
    screen.keys("2");
    assert!(screen.text().contains("◂  "), "the bottleneck has a sign");
}

#[test]
fn every_depth_uses_only_its_own_colours() {
    for (depth, fits) in [
        (Depth::Ansi, (|c: Color| !matches!(c, Color::Rgb(..) | Color::Indexed(_))) as fn(Color) -> bool),
        (Depth::Indexed, |c| !matches!(c, Color::Rgb(..))),
    ] {
        for name in theme::names(None) {
            let mut request = request(Arc::new(workload::builtin()));
            request.depth = depth;
            request.theme.clone_from(&name);
            let mut screen = screen(request);
            for view in VIEWS {
                screen.focus(Focus::View);
                screen.keys(view);
                assert!(screen.draw().content.iter().all(|c| fits(c.fg) && fits(c.bg)), "{name} {depth:?} {view}");
            }
        }
    }
}

#[test]
fn ascii_mode_draws_ascii() {
    let mut request = request(Arc::new(workload::builtin()));
    request.ascii = true;
    let mut screen = screen(request);
    screen.focus(Focus::View);
    for keys in ["1", " ", ".", "2", "*", "3", "4", "+++++", "5", "s", "\u{1b}", "4", "E", "\u{1b}", "?", "\u{1b}"] {
        if keys == "\u{1b}" {
            screen.key(KeyCode::Esc, KeyModifiers::NONE);
        } else {
            screen.keys(keys);
        }
        let text = screen.text();
        assert!(text.is_ascii(), "{keys}: {text}");
        assert!(!text.contains('?') || keys == "?" || text.matches('?').count() == 1, "an unknown sign in\n{text}");
    }
}

#[test]
fn themes_go_round() {
    let mut screen = screen(request(Arc::new(workload::builtin())));
    let first = screen.draw().clone();
    let names = theme::names(None);
    for name in names.iter().skip(1).chain(names.first()) {
        screen.key(KeyCode::Char('t'), KeyModifiers::CONTROL);
        assert!(screen.text().contains(&format!("theme {name}")));
    }
    // The message goes with the next key.
    screen.keys("z");
    assert_eq!(*screen.draw(), first);
}

#[test]
fn a_theme_that_is_not_there_is_refused() {
    let mut request = request(Arc::new(workload::builtin()));
    request.theme = "plaid".into();
    let error = plantui::tui::Offscreen::new(request, 80, 24).err().expect("there is no such theme");
    assert!(error.to_string().contains("monochrome"), "{error}");
}

#[test]
fn the_pictures_are_of_the_real_views() {
    let dir = tempfile::tempdir().unwrap();
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let names = plantui::tui::screenshots(dir.path(), &training(), &model, &two_kinds()).unwrap();
    assert_eq!(
        names,
        [
            "overview.svg",
            "stages.svg",
            "devices.svg",
            "timeline.svg",
            "overview-light.svg",
            "model.svg",
            "frontier.svg",
            "hardware.svg",
            "placement.svg",
            "kinds.svg"
        ]
    );
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let parts = [
        "idle",
        "limited by 4 stages alike",
        "slowest",
        "1F1B",
        "idle",
        "per device",
        "recompute",
        "b200",
        "optimal among",
        "on a100-80",
    ];
    for (name, part) in names.iter().zip(parts) {
        let picture = read(name);
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"), "{name}");
        assert!(picture.contains(part), "{name} has no `{part}`");
    }
    assert_ne!(read("overview.svg"), read("overview-light.svg"));
    // The same again, to the last byte: nothing in them depends on the clock.
    let again = tempfile::tempdir().unwrap();
    plantui::tui::screenshots(again.path(), &training(), &model, &two_kinds()).unwrap();
    assert!(names.iter().all(|name| std::fs::read_to_string(again.path().join(name)).unwrap() == read(name)));
}

/// A library caller may hand over any names; a terminal gets what can be seen of them.
#[test]
fn names_that_would_move_the_cursor_are_drawn_as_text() {
    let hostile = "h\u{1b}]0;owned\u{7}\u{9b}31m\u{7f}\u{202e}\u{2028}\r\nforged\u{200b}\t";
    let mut workload = (*tiny()).clone();
    workload.name = hostile.into();
    workload.source = hostile.into();
    workload.nodes.iter_mut().for_each(|node| node.name = Some(hostile.into()));
    let mut screen = screen(request(Arc::new(workload)));
    let mut drawn = 0;
    for key in "123456789?:oexpb/ ".chars() {
        press(&mut screen, KeyCode::Char(key));
        for (width, height) in [(120, 36), (80, 24), (200, 60)] {
            screen.resize(width, height);
            for cell in screen.draw().content() {
                assert!(!cell.symbol().chars().any(is_hostile), "{key}: {:?}", cell.symbol());
                drawn += usize::from(cell.symbol() == "f");
            }
        }
        if !key.is_ascii_digit() {
            press(&mut screen, KeyCode::Esc);
        }
    }
    assert!(drawn > 100, "the names are there");
}
