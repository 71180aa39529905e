//! What would help, below the stages.

use std::{sync::Arc, time::Duration};

use plantui::{
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::{line, piper, press, request, screen, stages, tiny};

/// Lets a plan rest until everything was asked.
fn rest(screen: &mut Offscreen) {
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(200));
}

/// A screen with answers, the arrow keys in the view.
fn answered(width: u16, height: u16) -> Offscreen {
    let mut screen = stages(piper(tiny()), width, height);
    rest(&mut screen);
    screen.focus(Focus::View);
    screen.draw();
    screen
}

#[test]
fn a_plan_that_rests_is_asked_about() {
    let mut screen = screen(piper(tiny()));
    assert!(screen.text().contains("What would help"));
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(100));
    assert!(!screen.text().contains("2x bandwidth"), "it has not rested long enough");
    screen.wait(Duration::from_millis(100));
    let text = screen.text();
    assert!(line(&text, "binding limits, each found by a plan without it:").contains("devices 1.91x faster"), "{text}");
    // What it tells of the batch is what the simulator makes of it once it is taken.
    let told = line(&text, "+8 devices").split("+8 devices").nth(1).unwrap().trim().to_string();
    assert!(told.contains("x faster"), "{text}");
    let batch = told.split("  ").next().unwrap().to_string();
    screen.keys("w");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("taken: +8 devices"), "{}", screen.text());
    screen.act(Action::Show(View::Timeline));
    assert!(screen.text().contains(&format!("{batch} per iteration")), "{batch}\n{}", screen.text());
}

#[test]
fn every_size_shows_what_there_is_room_for() {
    for (width, height, shown) in [(60, 16, 0), (80, 24, 1), (120, 36, 4), (200, 60, 7)] {
        let text = answered(width, height).text();
        let from = text.lines().position(|line| line.contains("What would help"));
        assert_eq!(from.is_some(), shown > 0, "{width} x {height}\n{text}");
        let rows = text
            .lines()
            .skip(from.unwrap_or(usize::MAX))
            .filter(|line| line.contains("faster") || line.contains("slower"))
            .count();
        assert!(rows >= shown.min(3), "{width} x {height}: {rows} rows\n{text}");
    }
}

#[test]
fn a_suggestion_is_taken_by_keys() {
    let mut screen = answered(120, 36);
    screen.keys("w");
    assert!(line(&screen.text(), "What would help").contains("take"));
    press(&mut screen, KeyCode::Right);
    press(&mut screen, KeyCode::Left);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("taken: +8 devices") && text.contains("of 12 devices"), "{text}");
    assert!(text.contains("(objective 9.625 ms)"), "{text}");
    // The figures are of the plan before: they are not to be taken.
    screen.keys("W");
    assert!(!screen.text().contains("What would help"));
    screen.keys("W");
    rest(&mut screen);
    assert!(line(&screen.text(), "+8 devices").contains("er"));
}

#[test]
fn escape_gives_the_keys_back_to_the_stages() {
    let mut screen = answered(120, 36);
    let before = screen.text();
    screen.keys("w");
    press(&mut screen, KeyCode::End);
    assert_ne!(screen.text(), before);
    press(&mut screen, KeyCode::Esc);
    assert_eq!(screen.text(), before);
}

#[test]
fn who_does_not_wait_asks_by_key() {
    let mut screen = screen(request(tiny()));
    screen.act(Action::Show(View::Timeline));
    screen.keys("w");
    assert_eq!(screen.view(), View::Stages);
    assert!(line(&screen.text(), "binding limits, without each:").contains("devices"));
}

#[test]
fn other_views_and_changes_ask_nothing() {
    let mut screen = screen(request(tiny()));
    screen.act(Action::Show(View::Devices));
    rest(&mut screen);
    screen.act(Action::Show(View::Stages));
    assert!(!screen.text().contains("2x bandwidth"));
    rest(&mut screen);
    assert!(screen.text().contains("2x bandwidth"));
    screen.hold();
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Right);
    screen.wait(Duration::from_millis(500));
    // A plan is under way: the old figures are there, but nobody can take them.
    screen.focus(Focus::View);
    screen.keys("w");
    assert!(!line(&screen.text(), "What would help").contains("take"));
    screen.release();
    rest(&mut screen);
    assert!(line(&screen.text(), "+8 devices").contains("er"));
}

#[test]
fn a_screen_that_was_left_before_the_question_sleeps() {
    let mut screen = screen(request(tiny()));
    screen.wait(Duration::from_millis(10));
    assert!(screen.wakes(), "the plan rests, then it is asked about");
    screen.keys("3");
    screen.wait(Duration::from_millis(10));
    assert!(!screen.wakes());
    screen.keys("2");
    rest(&mut screen);
    assert!(screen.text().contains("2x bandwidth") && !screen.wakes());
}

#[test]
fn two_clicks_take_a_suggestion() {
    let mut screen = answered(120, 36);
    let text = screen.text();
    let (row, at) = text
        .lines()
        .enumerate()
        .find_map(|(row, line)| {
            Some((row, line.find("2x devices")?)).map(|(row, at)| (row, line[..at].chars().count()))
        })
        .expect("it would help");
    let click = Event::Mouse(MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: at as u16 + 1,
        row: row as u16,
        modifiers: KeyModifiers::NONE,
    });
    screen.event(&click);
    assert!(line(&screen.text(), "What would help").contains("take"));
    screen.event(&click);
    assert!(screen.text().contains("taken: 2x devices"), "{}", screen.text());
}

#[test]
fn published_planners_plans_stand_beside_what_would_help() {
    let bert = Arc::new(workload::builtin());
    let mut screen = stages(ScreenRequest { planner: "joint".into(), ..request(bert.clone()) }, 160, 60);
    rest(&mut screen);
    let told = line(&screen.text(), "published planners: ");
    assert!(told.contains("Piper 42.05 s (+11.3%: ") && told.contains("Equal partition "), "{told}");
    // Only where the plan is measured by just what is told of them.
    let mut screen = stages(ScreenRequest { planner: "piper".into(), ..request(bert) }, 160, 60);
    rest(&mut screen);
    assert!(!screen.text().contains("published planners: "));
}
