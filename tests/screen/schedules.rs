//! The list of schedules before one is taken, and the editor of a schedule.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    simulate::Schedule,
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::{line, press, request, snapshots::compare, tiny};

/// Timeline of a model on four stages.
fn opened(schedule: Schedule, (width, height): (u16, u16)) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3.1-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, 32).with(LimitKind::Batch, 64);
    let request = ScreenRequest { overrides, schedule, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.act(Action::Show(View::Timeline));
    screen.draw();
    if width >= 100 {
        press(&mut screen, KeyCode::F(1));
    }
    screen.focus(Focus::View);
    screen.draw();
    screen
}

#[test]
fn the_list_shows_time_and_memory_before_a_schedule_is_taken() {
    let mut screen = opened(Schedule::OneForwardOneBackward, (120, 36));
    let before = line(&screen.text(), "per iteration");
    screen.keys("s");
    compare("schedules-120x36", &mut screen);
    // Nothing is taken before Enter.
    press(&mut screen, KeyCode::Esc);
    assert_eq!(line(&screen.text(), "per iteration"), before);
    screen.keys("s");
    for _ in 0..5 {
        press(&mut screen, KeyCode::Down);
    }
    let row = line(&screen.text(), "ZB-V");
    let words: Vec<&str> = row.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "s").expect("it has a time");
    press(&mut screen, KeyCode::Enter);
    let head = line(&screen.text(), "per iteration");
    assert!(head.contains("ZB-V") && head.contains(words[at - 1]), "{head}\n{row}");
}

#[test]
fn the_list_fits_the_smallest_screen() {
    let mut screen = opened(Schedule::OneForwardOneBackward, (80, 24));
    screen.keys("s");
    compare("schedules-80x24", &mut screen);
    press(&mut screen, KeyCode::End);
    assert!(line(&screen.text(), "inference").contains("forward passes only"));
}

#[test]
fn a_schedule_that_cannot_run_says_why() {
    let mut screen = Offscreen::new(crate::piper(tiny()), 120, 36).expect("the request can be met");
    screen.act(Action::Show(View::Timeline));
    screen.focus(Focus::View);
    screen.draw();
    screen.keys("s");
    press(&mut screen, KeyCode::End);
    let text = screen.text();
    assert!(text.contains("✗ Seq1F1B needs"), "{text}");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("Seq1F1B needs"), "{}", screen.text());
}

#[test]
fn a_move_is_judged_undone_and_taken() {
    let mut screen = opened(Schedule::OneForwardOneBackward, (120, 36));
    screen.keys("E");
    compare("schedule-editor-120x36", &mut screen);
    // The last rank's first backward pass before its forward pass.
    for _ in 0..3 {
        press(&mut screen, KeyCode::Down);
    }
    screen.key(KeyCode::Right, KeyModifiers::SHIFT);
    let text = screen.text();
    assert!(text.contains("✗ rank 3, step 0: 3B0 needs 3F0, which comes at step 1"), "{text}");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("it cannot run yet"), "{}", screen.text());
    screen.keys("u");
    assert!(screen.text().contains("✓ it runs") && screen.text().contains("as fast as 1F1B"), "{}", screen.text());
    screen.keys("u");
    assert!(screen.text().contains("there is no edit to undo"));
    // One more forward pass on the last rank before its first backward pass: it delays the others.
    screen.keys("]");
    let text = screen.text();
    assert!(text.contains("✓ it runs") && text.contains("slower than 1F1B"), "{text}");
    press(&mut screen, KeyCode::Enter);
    let head = line(&screen.text(), "per iteration");
    assert!(head.contains("your schedule"), "{head}");
    screen.keys("s");
    assert!(line(&screen.text(), "▌ your schedule").contains(" s "), "{}", screen.text());
}

#[test]
fn a_pass_is_divided_and_paired() {
    let mut screen = opened(Schedule::OneForwardOneBackward, (120, 36));
    screen.keys("E");
    for _ in 0..3 {
        press(&mut screen, KeyCode::Down);
    }
    press(&mut screen, KeyCode::Right);
    screen.keys("b");
    let text = screen.text();
    assert!(line(&text, "rank 3 ").contains("3I0") && text.contains("✓ it runs"), "{text}");
    screen.keys("b");
    // 3B0 and 3F1 side by side.
    screen.keys("p");
    let text = screen.text();
    assert!(line(&text, "rank 3 ").contains("(3F1;3B0)") && text.contains("✓ it runs"), "{text}");
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Esc);
    assert!(line(&screen.text(), "per iteration").contains("your schedule"), "{}", screen.text());
}

#[test]
fn an_edited_schedule_is_written_and_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("own.csv");
    let mut screen = opened(Schedule::DualPipe, (120, 36));
    screen.keys("E");
    press(&mut screen, KeyCode::Right);
    screen.keys("[e");
    screen.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    screen.keys(&path.display().to_string());
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("written to"), "{}", screen.text());
    let text = std::fs::read_to_string(&path).expect("it was written");
    let read = plantui::schedule::csv::read(&text, "own.csv").expect("a schedule").schedule;
    assert_eq!(read.ranks[0][0].to_string(), "0F1", "{text}");
    // It is not overwritten.
    screen.keys("e");
    screen.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    screen.keys(&path.display().to_string());
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("exists"), "{}", screen.text());
}

#[test]
fn passes_of_a_pair_are_drawn_side_by_side() {
    let mut screen = opened(Schedule::OneForwardOneBackward, (120, 36));
    assert!(!screen.text().contains('▀'), "{}", screen.text());
    let mut screen = opened(Schedule::DualPipe, (120, 36));
    for _ in 0..20 {
        screen.keys("n");
        if line(&screen.text(), "cursor").contains("beside") {
            compare("timeline-pairs-120x36", &mut screen);
            return;
        }
    }
    panic!("no pair under the cursor\n{}", screen.text());
}
