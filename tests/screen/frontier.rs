//! Layouts of a model to be trained, time against memory.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, piper, press, request, snapshots::compare, tiny};

fn opened(width: u16, height: u16) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.focus(Focus::View);
    screen.keys("5");
    screen.draw();
    screen
}

#[test]
fn layouts_are_drawn_time_against_memory() {
    for (width, height) in [(80, 24), (120, 36), (160, 45)] {
        let mut screen = opened(width, height);
        assert_eq!(screen.view(), View::Frontier);
        press(&mut screen, KeyCode::Down);
        compare(&format!("frontier-{width}x{height}"), &mut screen);
    }
}

#[test]
fn a_layout_is_taken_and_left_again() {
    let mut screen = opened(160, 45);
    for _ in 0..4 {
        press(&mut screen, KeyCode::Down);
    }
    let text = screen.text();
    assert!(text.contains("TP 8 for 4, CP 1 for 2") && text.contains("1.6% slower"), "{text}");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(line(&text, "ZeRO-1").contains("TP 8") && text.contains("1.6% slower than Joint's"), "{text}");
    // All layouts stay there to choose from.
    assert!(text.contains("20 layouts"), "{text}");
    screen.act(Action::PlannersPlan);
    assert!(line(&screen.text(), "ZeRO-1").contains("TP 4"), "{}", screen.text());
}

#[test]
fn two_marked_layouts_are_told_apart_and_sorting_keeps_the_cursor() {
    let mut screen = opened(160, 45);
    screen.keys(" ");
    press(&mut screen, KeyCode::End);
    screen.keys(" ");
    let text = screen.text();
    let told = line(&text, "less on the fullest device");
    assert!(told.contains("slower, 41.9 GiB less") && told.contains("TP 8 for 4, CP 1 for 2"), "{text}");
    assert!(line(&text, "recompute full for none").contains("uneven layers"), "{text}");
    // The selected row has the same layout in the other order; the first mark is of the panel, if any.
    let row = |text: &str| text.lines().rfind(|line| line.contains('▌')).map(|line| line.replace(['█', '│'], " "));
    let words = |row: Option<String>| row.map(|row| row.split_whitespace().map(String::from).collect::<Vec<_>>());
    let before = words(row(&text)).expect("a selected row");
    screen.keys("s");
    let after = words(row(&screen.text())).expect("a selected row");
    assert!(before.iter().rev().take(8).eq(after.iter().rev().take(8)), "{before:?} {after:?}");
}

#[test]
fn planners_are_compared_where_there_is_no_layout() {
    let mut screen = Offscreen::new(piper(tiny()), 120, 36).expect("the request can be met");
    screen.keys("5");
    assert_eq!(screen.view(), View::Compare);
    // For a model the comparison of planners has a name, and its own tab while it is shown.
    let mut screen = opened(120, 36);
    screen.keys(":compare");
    press(&mut screen, KeyCode::Enter);
    assert_eq!(screen.view(), View::Compare);
    assert!(line(&screen.text(), "1Overview").contains("5Compare"), "{}", screen.text());
    screen.keys("5");
    assert_eq!(screen.view(), View::Frontier);
}

#[test]
fn two_layouts_stand_side_by_side_with_each_change_and_alike_ones_alone() {
    let mut screen = opened(120, 36);
    screen.keys("F");
    let text = screen.text();
    assert!(text.contains(", only TP 4") && !text.contains("● TP 8"), "{text}");
    screen.keys("FFF");
    assert!(!screen.text().contains(", only "), "{}", screen.text());
    for _ in 0..4 {
        press(&mut screen, KeyCode::Down);
    }
    screen.keys("v");
    compare("frontier-beside-120x36", &mut screen);
    press(&mut screen, KeyCode::Esc);
    assert!(screen.text().contains("slower"), "the table is back\n{}", screen.text());
    // One change of several is taken by itself.
    screen.keys("v");
    let changes = screen.text().lines().filter(|line| line.contains(" for ") && line.contains('▄')).count();
    assert_eq!(changes, 2);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("taken; 0 returns to the planner's plan"), "{text}");
    assert!(line(&text, "ZeRO-1").contains("TP 8  · CP 1  · PP 4"), "the first change alone\n{text}");
    screen.keys("0");
    assert!(line(&screen.text(), "ZeRO-1").contains("TP 4  · CP 2  · PP 4"), "{}", screen.text());
}
