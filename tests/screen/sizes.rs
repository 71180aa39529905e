//! Every view and overlay at every size.

use std::sync::Arc;

use plantui::{
    cluster::LimitKind,
    tui::{Focus, Offscreen},
    workload,
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::{placement::placement, planners, press, request, screen, tiny};

/// All small sizes, and steps through the rest up to 220 x 70.
fn sizes() -> Vec<(u16, u16)> {
    let mut sizes = vec![];
    for height in (1..=26).chain([30, 36, 45, 60, 70]) {
        for width in (1..=8).chain((9..=70).step_by(6)).chain([59, 60, 61, 79, 80, 99, 100, 120, 163, 200, 220]) {
            sizes.push((width, height));
        }
    }
    sizes
}

fn draw_all(screen: &mut Offscreen, what: &str) {
    for (width, height) in sizes() {
        screen.resize(width, height);
        let buffer = screen.draw();
        assert_eq!((buffer.area.width, buffer.area.height), (width, height), "{what}");
    }
}

#[test]
fn views_fit_any_size() {
    let mut screen = screen(request(Arc::new(workload::builtin())));
    for focus in [Focus::Panel, Focus::View] {
        for view in ["2", "3", "4", "5"] {
            screen.focus(focus);
            screen.keys(view);
            draw_all(&mut screen, view);
        }
    }
    screen.focus(Focus::View);
    for keys in ["2*", "3 ", "4++++ ", "5s", "s", "\u{1b}"] {
        screen.resize(120, 36);
        screen.draw();
        screen.keys(keys);
        draw_all(&mut screen, keys);
    }
}

#[test]
fn the_course_of_a_search_fits_any_size() {
    let mut screen = screen(request(tiny()));
    screen.keys("b");
    for view in ["2", "3", "4"] {
        screen.keys(view);
        assert!(screen.text().contains("over time"), "view {view}");
        draw_all(&mut screen, view);
        screen.resize(120, 36);
    }
}

#[test]
fn views_of_a_device_placement_fit_any_size() {
    let mut screen = screen(placement("placement-dp"));
    for keys in ["2", "2*", "3", "3jj", "4", "4++ ", "5", "5s", "s", "\u{1b}"] {
        screen.focus(Focus::View);
        screen.resize(120, 36);
        screen.draw();
        screen.keys(keys);
        draw_all(&mut screen, keys);
        screen.focus(Focus::Panel);
        draw_all(&mut screen, keys);
    }
}

#[test]
fn overlays_fit_any_size() {
    let mut screen = screen(request(tiny()));
    screen.focus(Focus::View);
    for keys in ["?", "?nothing like that", ":", ":zoom", "e", "o", "o/no such file", "/branch"] {
        screen.resize(120, 36);
        screen.keys(keys);
        draw_all(&mut screen, keys);
        press(&mut screen, KeyCode::Esc);
    }
    // A refused value beside its field.
    screen.resize(120, 36);
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Enter);
    screen.keys("x");
    press(&mut screen, KeyCode::Enter);
    draw_all(&mut screen, "refused value");
}

#[test]
fn what_is_no_plan_fits_any_size() {
    let mut request = request(tiny());
    request.planners = &planners::ALL;
    request.planner = "one".into();
    request.overrides.set(LimitKind::Devices, Some(1));
    request.overrides.set(LimitKind::Memory, Some(8e9));
    let mut screen = screen(request);
    draw_all(&mut screen, "infeasible");
    screen.resize(120, 36);
    for code in [KeyCode::Up, KeyCode::Enter, KeyCode::Down, KeyCode::Enter] {
        press(&mut screen, code);
    }
    assert!(screen.text().contains("cannot plan this workload"));
    draw_all(&mut screen, "refusal");
}

#[test]
fn a_screen_that_is_too_small_says_what_is_needed() {
    let mut screen = screen(request(tiny()));
    screen.resize(50, 10);
    assert_eq!(screen.text().lines().next(), Some("plantui needs 60 x 16, this is 50 x 10"));
    // Keys still work, and the screen comes back.
    screen.keys("4");
    screen.resize(80, 24);
    assert!(screen.text().contains("1F1B"));
    screen.key(KeyCode::Char('q'), KeyModifiers::NONE);
    assert!(screen.quit);
}

#[test]
fn at_80_by_24_everything_important_is_there() {
    let mut screen = Offscreen::new(request(Arc::new(workload::builtin())), 80, 24).unwrap();
    let text = screen.text();
    for part in [
        "Joint",
        "≈ within 0.8%",
        "s/iteration",
        "idle",
        "stage 8 limits",
        "64 devices",
        "7Workload",
        "? help",
        "q quit",
    ] {
        assert!(text.contains(part) || text.to_lowercase().contains(part), "{part} in\n{text}");
    }
}

#[test]
fn a_screen_that_grows_starts_like_any_other() {
    let mut grown = Offscreen::new(request(tiny()), 40, 10).unwrap();
    grown.draw();
    grown.resize(120, 36);
    // But for the header, which has the time the plan took.
    let below = |screen: &mut Offscreen| screen.text().lines().skip(1).collect::<Vec<_>>().join("\n");
    assert_eq!(below(&mut grown), below(&mut Offscreen::new(request(tiny()), 120, 36).unwrap()));
    // Who chose the view keeps it through a small size.
    press(&mut grown, KeyCode::Tab);
    let before = grown.text();
    grown.resize(40, 10);
    grown.draw();
    grown.resize(120, 36);
    assert_eq!(grown.text(), before);
}

#[test]
fn a_number_of_the_message_is_never_cut() {
    let mut screen = screen(request(tiny()));
    for (width, height, told) in [
        (30, 5, "plantui needs 60 x 16, this is\n30 x 5"),
        (14, 2, "plantui needs\n60 x 16"),
        (5, 1, "60x16"),
        (4, 9, ""),
        (59, 30, "plantui needs 60 x 16, this is 59 x 30"),
    ] {
        screen.resize(width, height);
        assert_eq!(screen.text().trim_end(), told, "{width} x {height}");
    }
}

#[test]
fn every_view_has_its_tab_at_the_smallest_size() {
    let mut screen = screen(request(tiny()));
    screen.focus(Focus::View);
    for (width, height) in [(60, 16), (66, 16), (80, 24), (120, 36)] {
        screen.resize(width, height);
        let text = screen.text();
        let tabs = text.lines().nth(1).unwrap();
        for tab in ["Overview", "Stages", "Devices", "Timeline", "Compare", "Sweep", "Workload", "History"] {
            // Where there is little room, the last ones have their keys alone.
            let named = width >= 70 || !["Sweep", "Workload", "History"].contains(&tab);
            assert!(!named || tabs.contains(tab), "{width}: {tabs}");
        }
        for key in ["1", "2", "3", "4", "5", "6", "7", "9"] {
            assert!(tabs.contains(key), "{width}: {tabs}");
        }
    }
}
