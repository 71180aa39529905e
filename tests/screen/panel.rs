//! The left panel: values that are typed, and lists that are longer than the screen.

use std::fs;

use plantui::{
    cluster::LimitKind,
    {planner::Planner, tui::Offscreen},
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::{line, planners, press, request, stages, tiny};

fn staged(planners: &'static [&'static dyn Planner], width: u16, height: u16) -> Offscreen {
    let mut request = request(tiny());
    request.planners = planners;
    request.planner = "one".into();
    request.overrides.set(LimitKind::Memory, Some(8e9));
    stages(request, width, height)
}

/// A screen with the cursor on an option of the first planner, by its place among them.
fn on_option(place: usize) -> Offscreen {
    let mut screen = staged(&planners::ALL, 120, 36);
    press(&mut screen, KeyCode::End);
    for _ in place..3 {
        press(&mut screen, KeyCode::Up);
    }
    screen
}

fn clear(screen: &mut Offscreen) {
    screen.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
}

#[test]
fn a_number_is_stepped_and_typed_and_a_bad_one_changes_nothing() {
    let mut screen = on_option(2);
    assert!(line(&screen.text(), "restarts").contains("10 ◂ ▸"), "{}", screen.text());
    press(&mut screen, KeyCode::Right);
    assert!(line(&screen.text(), "restarts").contains("11 ◂ ▸"));
    screen.key(KeyCode::Right, KeyModifiers::SHIFT);
    assert!(line(&screen.text(), "restarts").contains("16 ◂ ▸"));
    for bad in ["2000", "2.5", "many"] {
        press(&mut screen, KeyCode::Enter);
        clear(&mut screen);
        screen.keys(bad);
        press(&mut screen, KeyCode::Enter);
        let text = screen.text();
        assert!(text.contains("not taken") && text.contains("values: a whole"), "{bad}: {text}");
        press(&mut screen, KeyCode::Esc);
        assert!(line(&screen.text(), "restarts").contains("16 ◂ ▸"), "{bad}");
    }
    press(&mut screen, KeyCode::Enter);
    screen.keys("250");
    press(&mut screen, KeyCode::Enter);
    assert!(line(&screen.text(), "restarts").contains("250 ◂ ▸"));
    press(&mut screen, KeyCode::Backspace);
    assert!(line(&screen.text(), "restarts").contains("10 ◂ ▸"));
}

#[test]
fn a_file_is_typed_and_said_to_be_there_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.json");
    fs::write(&path, "{}").unwrap();
    let mut screen = on_option(3);
    assert!(line(&screen.text(), "split").contains("none"));
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains("split.json"), "an example is given\n{}", screen.text());
    screen.keys(path.to_str().unwrap().strip_suffix(".json").unwrap());
    assert!(screen.text().contains("not there"), "{}", screen.text());
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("not taken") && text.contains("does not exist"), "{text}");
    screen.keys(".json");
    let text = screen.text();
    assert!(!text.contains("not taken") && text.contains("2 B"), "{text}");
    press(&mut screen, KeyCode::Enter);
    assert!(line(&screen.text(), "split").contains("mine.json"), "{}", screen.text());
    // A folder is no file, and what was taken before stays.
    press(&mut screen, KeyCode::Enter);
    clear(&mut screen);
    screen.keys(dir.path().to_str().unwrap());
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("is a directory"));
    press(&mut screen, KeyCode::Esc);
    assert!(line(&screen.text(), "split").contains("mine.json"));
    // Nothing typed is no file again.
    press(&mut screen, KeyCode::Enter);
    clear(&mut screen);
    press(&mut screen, KeyCode::Enter);
    assert!(line(&screen.text(), "split").contains("none"));
}

#[test]
fn the_home_directory_has_a_short_name() {
    let home = std::env::var("HOME").expect("tests run with a home directory");
    let mut screen = on_option(3);
    press(&mut screen, KeyCode::Enter);
    screen.keys("~/plantui has no such file");
    let text = screen.text();
    assert!(text.contains("not there") && text.contains(&home) && !text.contains("│ ~/"), "{text}");
}

#[test]
fn planners_that_cannot_plan_fold_into_one_row_and_say_why() {
    let mut screen = staged(&planners::MANY, 120, 36);
    let text = screen.text();
    assert!(text.contains("▸ +9 not for this workload") && !text.contains("The refusing one"), "{text}");
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("▾ +9 not for this workload"));
    press(&mut screen, KeyCode::Down);
    let text = screen.text();
    assert!(text.contains("The refusing one ✗") && text.contains("no moon"), "{text}");
    // Going over to it and folding the others leaves it in sight.
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Left);
    let text = screen.text();
    assert!(text.contains("▸ +8 not for this workload") && text.contains("● The refusing one"), "{text}");
}

#[test]
fn limits_stay_in_sight_however_many_planners_there_are() {
    for (width, height) in [(60, 16), (80, 24), (120, 36)] {
        let mut screen = staged(&planners::MANY, width, height);
        if width < 100 {
            press(&mut screen, KeyCode::Tab);
        }
        for step in 0..60 {
            let text = screen.text();
            for limit in ["devices  ", "memory  ", "microbatches  ", "bandwidth  "] {
                assert!(text.contains(limit), "{limit} at {width} x {height} after {step}\n{text}");
            }
            assert!(text.contains('▌'), "the selected row is seen at {width} x {height} after {step}\n{text}");
            press(&mut screen, if step < 30 { KeyCode::Up } else { KeyCode::Down });
        }
    }
    let text = staged(&planners::MANY, 120, 24).text();
    assert!(line(&text, "Planner").contains(" of 18"), "{text}");
}

#[test]
fn a_key_goes_to_the_planner_last_used_for_the_other_objective() {
    let mut screen = staged(&planners::OBJECTIVES, 120, 36);
    screen.keys("O");
    let text = screen.text();
    assert!(text.contains("● The quick one") && text.contains("objective: latency"), "{text}");
    // Back is to the first planner of the other objective, and it keeps its own options.
    screen.keys("O");
    assert!(screen.text().contains("● The one one"), "{}", screen.text());
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("● The panicking one"));
    screen.keys("OO");
    assert!(screen.text().contains("● The panicking one"), "{}", screen.text());
    let mut screen = staged(&planners::ALL, 120, 36);
    screen.keys("O");
    assert!(screen.text().contains("time per sample is the only objective"), "{}", screen.text());
}
