//! Words and figures that were once cut, left out or told in two ways.

use std::{sync::Arc, time::Duration};

use plantui::{
    tui::{Offscreen, ScreenRequest},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{file, line, native, overview, piper, press, request, tiny};

fn opened(request: ScreenRequest, width: u16, height: u16, view: &str) -> Offscreen {
    let mut screen = overview(request, width, height);
    screen.keys(view);
    screen.draw();
    screen
}

fn bert() -> ScreenRequest {
    request(Arc::new(workload::builtin()))
}

#[test]
fn narrow_tabs_and_legends_still_say_which_is_which() {
    let mut screen = opened(bert(), 80, 24, "");
    press(&mut screen, KeyCode::F(1));
    let text = screen.text();
    for tab in ["1Overview", "2Sta", "3Dev", "4Tim", "5Com", "6Swe", "7Wor", "9His"] {
        assert!(line(&text, "1Overview").contains(tab), "{tab}\n{text}");
    }
    let legend = line(&text, "■ forward");
    assert!(["■ recompute", "■ backward", "■ all-reduce"].iter().all(|kind| legend.contains(kind)), "{text}");
    screen.keys("2");
    let text = screen.text();
    assert!(!text.contains(" ops ") && text.contains("within 0.8% of optimal"), "{text}");
}

#[test]
fn a_stage_says_how_much_of_its_communication_is_hidden() {
    let text = opened(bert(), 120, 36, "").text();
    let (whole, hidden) = (line(&text, "■ communication"), line(&text, "during passes"));
    assert!(whole.contains(" ms") && hidden.contains('s'), "{text}");
}

#[test]
fn compare_tells_promise_and_gap_in_words() {
    let text = opened(bert(), 120, 36, "5").text();
    assert!(text.contains("as planned") && text.contains("its gap of 0.8%* is to the best among"), "{text}");
}

#[test]
fn a_map_over_two_limits_has_its_scale_and_its_signs_explained() {
    let mut screen = opened(bert(), 100, 36, "6");
    screen.keys("y");
    let text = screen.text();
    assert!(text.contains("◆ as good as the current plan") && text.contains("× no plan"), "{text}");
}

#[test]
fn of_changes_that_yield_the_same_only_the_cheapest_is_told() {
    let mut screen = opened(native(&file("branching-cnn-training.json")), 120, 45, "2");
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(200));
    let text = screen.text();
    assert!(text.contains("+1 device ") && !text.contains("+8 devices") && !text.contains("2x devices"), "{text}");
}

#[test]
fn a_key_plans_for_a_schedule_that_the_plan_cannot_run() {
    let mut screen = opened(piper(tiny()), 120, 36, "4");
    screen.keys("]");
    let told = screen.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("v plans for one of them"), "{told}");
    screen.keys("v");
    let text = screen.text();
    assert!(
        line(&text, "per iteration").contains("interleaved") || line(&text, "per iteration").contains("ZB-V"),
        "{text}"
    );
}

#[test]
fn large_screens_tell_more_instead_of_nothing() {
    let operators = native(&file("alexnet-operators.json"));
    let text = opened(operators, 200, 60, "").text();
    assert!(text.contains("share of an iteration") && text.matches("dense3").count() >= 1, "{text}");
    let text = opened(bert(), 200, 60, "7").text();
    assert!(text.contains("time of each, in order; hue: its stage in the plan"), "{text}");
    let text = opened(bert(), 200, 60, "5").text();
    assert!(text.contains("Iteration") && text.contains("steady"), "{text}");
}

#[test]
fn what_runs_once_is_no_batch_of_one_microbatch() {
    let text = opened(native(&file("alexnet-operators.json")), 120, 36, "4").text();
    assert!(text.contains("one iteration") && text.contains("forward of conv1 on all devices"), "{text}");
    assert!(!text.contains("microbatch"), "{text}");
}

#[test]
fn only_boundaries_that_can_move_have_their_keys_below() {
    let footer = |request: ScreenRequest| {
        let text = opened(request, 160, 36, "2").text();
        text.lines().last().unwrap_or_default().to_string()
    };
    let below = footer(bert());
    assert!(below.contains("[ ]"), "{below}");
    // Operators share all devices: one stage.
    let below = footer(native(&file("alexnet-operators.json")));
    assert!(!below.contains("[ ]"), "{below}");
}
