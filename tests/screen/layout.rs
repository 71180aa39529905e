//! The layout as the title of every view, and its knobs.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, press, request};

fn opened(width: u16, height: u16) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.focus(Focus::View);
    screen.draw();
    screen
}

/// Axes of the title, without blanks that keep their place.
fn title(screen: &mut Offscreen) -> String {
    let text = line(&screen.text(), "mbs ");
    text.rsplit('│').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_layout_is_the_title_of_every_view_and_is_never_cut() {
    for (width, height) in [(80, 24), (120, 36), (160, 45), (200, 60)] {
        let mut screen = opened(width, height);
        for view in View::ALL {
            screen.act(Action::Show(view));
            let title = title(&mut screen);
            let whole = "TP 4 · CP 2 · PP 4 ×5 · DP 2 · EP 1 · mbs 1 · recompute none · ZeRO-1";
            assert_eq!(title, whole, "{view:?} {width}x{height}");
        }
    }
}

#[test]
fn a_knob_tells_the_price_of_its_values_pins_one_and_is_freed() {
    let mut screen = opened(160, 45);
    screen.act(Action::PreviousPanel);
    let text = screen.text();
    let sentence = line(&text, "TP 4 is free: the planner chose it.");
    assert!(sentence.contains("8 costs 1.6%") && sentence.contains("2 costs"), "{sentence}");
    press(&mut screen, KeyCode::Right);
    assert!(title(&mut screen).starts_with("◂TP=8 ▸ · CP 1"), "{}", screen.text());
    let sentence = line(&screen.text(), "TP 8 is pinned");
    assert!(sentence.contains("free saves 1.6%"), "{sentence}");
    // No layout has sixteen tensor ranks: the knob stays, and says so.
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains("TP 16: has no layout"), "{}", screen.text());
    press(&mut screen, KeyCode::Backspace);
    assert!(title(&mut screen).starts_with("◂TP 4 ▸ · CP 2"), "{}", screen.text());
}

#[test]
fn a_low_screen_tells_the_prices_on_the_rule() {
    let mut screen = opened(80, 24);
    screen.act(Action::PreviousPanel);
    let text = screen.text();
    assert!(line(&text, "8 costs 1.6%").contains('─'), "{text}");
}

#[test]
fn every_axis_has_its_knob_and_none_is_in_the_panel_as_well() {
    let mut screen = opened(160, 45);
    let text = screen.text();
    let panel: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split('│').next()).collect();
    for name in ["tensor degree", "context degree", "microbatch", "recompute", "schedule", "virtual"] {
        assert!(panel.iter().all(|row| !row.contains(name)), "{name} in\n{text}");
    }
    screen.act(Action::PreviousPanel);
    let mut seen = vec![];
    for _ in 0..8 {
        let title = title(&mut screen);
        let knob = title.split('◂').nth(1).and_then(|rest| rest.split('▸').next()).expect("a knob");
        seen.push(knob.trim().to_string());
        press(&mut screen, KeyCode::Down);
    }
    assert_eq!(seen, ["TP 4", "CP 2", "PP 4", "×5", "DP 2", "EP 1", "mbs 1", "recompute none"]);
    // The last one is a choice: first never, which is what the planner chose, then always.
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains("free is as fast,  always costs"), "{}", screen.text());
    press(&mut screen, KeyCode::Right);
    assert!(title(&mut screen).contains("◂recompute=full"), "{}", screen.text());
}
