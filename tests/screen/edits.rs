//! Editing the plan by hand on the Stages view.

use std::{sync::Arc, time::Duration};

use plantui::{
    family::{self, check},
    tui::{Action, Focus, Offscreen, View},
    workload::{self, Workload},
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::{line, piper, press, screen, tiny};

/// The Stages view with the keys.
fn at_stages(workload: Arc<Workload>) -> Offscreen {
    let mut screen = screen(piper(workload));
    screen.focus(Focus::View);
    screen.draw();
    screen
}

fn builtin() -> Offscreen {
    at_stages(Arc::new(workload::builtin()))
}

fn header(screen: &mut Offscreen) -> String {
    screen.text().lines().next().unwrap_or_default().to_string()
}

#[test]
fn a_moved_boundary_is_measured_compared_and_undone() {
    let mut screen = builtin();
    let before = line(&screen.text(), "limited by");
    screen.keys("[");
    let text = screen.text();
    let edited = line(&text, "edited: ");
    assert!(edited.contains("ms/sample") && edited.contains("er than Piper's"), "{text}");
    assert!(text.contains("moved from stage 1 to stage 2"), "{text}");
    assert!(header(&mut screen).contains("Edited plan"), "{text}");
    assert!(text.contains("edited by hand: u undo"), "{text}");
    screen.keys("u");
    let text = screen.text();
    assert_eq!(line(&text, "limited by"), before);
    assert!(!text.contains("edited: ") && header(&mut screen).contains("✓ optimal"), "{text}");
    screen.keys("U");
    assert_eq!(line(&screen.text(), "edited: "), edited);
    screen.keys("uU");
    assert_eq!(line(&screen.text(), "edited: "), edited);
}

#[test]
fn what_breaks_is_said_and_stays_on_the_screen_with_its_bars() {
    let mut screen = builtin();
    for _ in 0..3 {
        screen.keys("]");
    }
    let text = screen.text();
    let broken = line(&text, "✗ stage 1 needs");
    assert!(broken.contains("the limit is 8 GiB") && broken.contains("too much"), "{text}");
    assert!(text.lines().any(|line| line.contains("✗ 1 ") && line.contains("▄✗")), "{text}");
    assert!(header(&mut screen).contains("✗ breaks"), "{text}");
    // More devices than there are.
    screen.keys("0d");
    let text = screen.text();
    assert!(text.contains("✗ uses") && text.contains("but there are only 64"), "{text}");
    for view in ["3", "4"] {
        screen.keys(view);
        assert!(screen.text().contains("edited by hand"), "view {view}");
    }
}

#[test]
fn degrees_modes_merging_and_splitting_have_keys() {
    let mut screen = at_stages(tiny());
    let stages = |screen: &mut Offscreen| screen.text().matches(" ● ").count() + screen.text().matches("✗ ").count();
    let start = screen.text();
    for (keys, told) in [
        ("D", "replica"),
        ("u", "stage"),
        ("T", "tensor degree"),
        ("s", "split at"),
        ("M", "merged"),
        ("r", "activation recomp"),
    ] {
        screen.keys(keys);
        let text = screen.text();
        assert!(text.contains(told), "{keys}: no `{told}` in\n{text}");
    }
    screen.keys("R");
    assert!(screen.text().contains("vanilla"), "{}", screen.text());
    assert!(stages(&mut screen) > 0);
    screen.keys("0");
    assert!(screen.text().contains("back to the planner's plan"));
    press(&mut screen, KeyCode::Esc);
    // But for the header, which tells the time it took, and the line of the last change.
    let below = |text: &str| -> Vec<String> {
        let lines = text.lines().enumerate().filter(|(at, _)| (1..25).contains(at) && *at != 4);
        lines.map(|(_, line)| line.to_string()).collect()
    };
    assert_eq!(below(&screen.text()), below(&start));
    screen.keys("u");
    assert!(screen.text().contains("edited: "));
}

#[test]
fn a_selected_node_moves_and_stays_selected() {
    let mut screen = builtin();
    screen.keys("*");
    screen.keys("/embed");
    press(&mut screen, KeyCode::Enter);
    screen.keys("[");
    assert!(screen.text().contains("first stage"), "{}", screen.text());
    screen.keys("]");
    assert!(screen.text().contains("stays on stage 1"), "{}", screen.text());
    let before = screen.text();
    assert!(!before.contains("edited: "), "a refused edit changes nothing");
}

#[test]
fn a_changed_limit_keeps_the_edited_plan_and_another_planner_does_not() {
    let mut screen = builtin();
    for _ in 0..3 {
        screen.keys("]");
    }
    assert!(screen.text().contains("✗ stage 1 needs"));
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    screen.keys("40GiB");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("edited: ") && !text.contains("✗ stage 1 needs"), "{text}");
    assert!(text.contains("memory, limit 40 GiB") && text.contains("er than Piper's"), "{text}");
    assert!(text.contains("scored under the new limits"), "{text}");
    screen.focus(Focus::Panel);
    // Joint, Piper, Equal partition.
    press(&mut screen, KeyCode::Home);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(!text.contains("edited: ") && text.contains("u on Stages restores it"), "{text}");
    screen.focus(Focus::View);
    screen.keys("u");
    let text = screen.text();
    assert!(text.contains("edited: ") && text.contains("than Equal partition's"), "{text}");
}

#[test]
fn an_edited_plan_is_exported_and_checked_like_any_other() {
    let workload = Arc::new(workload::builtin());
    let mut screen = builtin();
    screen.keys("[C");
    let text = screen.clipboard.take().expect("a plan was copied");
    let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(value["planner"]["id"], "hand-edited");
    assert!(value["notes"][0].as_str().is_some_and(|note| note.contains("from the plan of Piper (piper)")), "{text}");
    assert!(value["simulation"]["iteration_s"].as_f64().is_some_and(|seconds| seconds > 0.0));
    let loaded = family::read::read(&workload, &text, "plan.json").expect("it can be read");
    let limits = plantui::family::resolve(&workload, &plantui::cluster::GivenLimits::default()).unwrap();
    let score = check(&workload, &limits, &loaded.plan);
    let claimed = loaded.claims.value.expect("it says what it is worth");
    assert!((score.value - claimed).abs() <= 1e-9 * claimed, "{} is not {claimed}", score.value);
    // One that breaks a rule says so and can be read as well.
    screen.keys("0]]]C");
    let text = screen.clipboard.take().expect("a plan was copied");
    let loaded = family::read::read(&workload, &text, "plan.json").expect("it can be read");
    assert!(!check(&workload, &limits, &loaded.plan).is_valid());
    assert!(text.contains("breaks a limit: stage 1 needs"), "{text}");
}

#[test]
fn edits_start_from_the_best_so_far_and_outlive_it() {
    let mut screen = builtin();
    assert_eq!(screen.view(), View::Stages);
    screen.hold();
    screen.act(Action::BoundaryBack);
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Left);
    let text = screen.text();
    assert!(text.contains("edited: ") && !text.contains("against"), "nothing to compare with yet:\n{text}");
    screen.release();
    let text = screen.text();
    assert!(text.contains("er than Piper's") && text.contains("breaks"), "63 devices are not enough:\n{text}");
}

#[test]
fn keys_of_edits_say_why_when_there_is_nothing_to_edit() {
    let mut screen = builtin();
    screen.keys("u");
    assert!(screen.text().contains("no edit to undo"));
    screen.keys("0");
    assert!(screen.text().contains("this is the planner's plan"));
    press(&mut screen, KeyCode::End);
    screen.keys("M");
    assert!(screen.text().contains("no next stage"));
}

#[test]
fn an_edited_plan_is_not_told_what_would_help_the_planners() {
    let mut screen = builtin();
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(200));
    assert!(line(&screen.text(), "What would help").contains("w choose"));
    screen.keys("[");
    let text = screen.text();
    let title = line(&text, "What would help");
    assert!(title.contains("the planner's plan, not this one") && !title.contains("w choose"), "{text}");
    screen.keys("w");
    assert!(screen.text().contains("`what would help` needs a planner's plan"), "{}", screen.text());
    // Under other limits the old answers are of no plan that could be shown.
    screen.key(KeyCode::Char('l'), KeyModifiers::NONE);
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Right);
    let text = screen.text();
    assert!(text.contains("0 goes back to it") && !text.contains("2x devices"), "{text}");
}

#[test]
fn messages_of_edits_name_nodes_by_id_and_name() {
    let mut screen = builtin();
    screen.keys("[");
    let text = screen.text();
    let told = line(&text, "moved from stage 1 to stage 2");
    assert!(told.contains("#6 ParallelTransformerLayer moved"), "{told}");
}

#[test]
fn a_stage_says_how_many_of_its_nodes_recompute() {
    let mut screen = builtin();
    let text = screen.text();
    assert!(text.contains("↻ layers that recompute"), "{text}");
    let recomputes = |text: &str| text.lines().filter(|line| line.contains(" ● ") && line.contains('↻')).count();
    assert!(recomputes(&text) > 0, "{text}");
    for _ in 0..8 {
        screen.keys("r");
        press(&mut screen, KeyCode::Down);
    }
    assert_ne!(recomputes(&screen.text()), recomputes(&text));
}
