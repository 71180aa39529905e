//! The same training on other hardware.

use std::{collections::BTreeMap, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    tui::{Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, piper, press, request, snapshots::compare, tiny};

fn opened(width: u16, height: u16) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let prices = BTreeMap::from([("h100".to_string(), 2.4), ("b200".to_string(), 4.5)]);
    let request = ScreenRequest { overrides, prices, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.focus(Focus::View);
    screen.keys("8");
    screen.draw();
    screen
}

#[test]
fn speed_days_and_cost_stand_side_by_side() {
    for (width, height) in [(80, 24), (120, 36), (160, 45)] {
        let mut screen = opened(width, height);
        assert_eq!(screen.view(), View::Hardware);
        compare(&format!("hardware-{width}x{height}"), &mut screen);
    }
    // The cell in force is the plan on the screen.
    let mut screen = opened(160, 45);
    let text = screen.text();
    assert!(text.contains("1137 tok/s 51.6%") && text.contains("159 d  586 k"), "{text}");
    assert!(text.contains("fastest: 256 gb300") && text.contains("cheapest of those with a price: 32 h100"), "{text}");
    screen.keys(":tokens 2T");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("318 d"), "{}", screen.text());
    screen.keys(":within 200");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("  late"), "{text}");
    assert!(text.contains("cheapest within 200 days"), "{text}");
}

#[test]
fn a_cell_is_taken_and_one_without_a_plan_says_why() {
    let mut screen = opened(160, 45);
    press(&mut screen, KeyCode::Left);
    press(&mut screen, KeyCode::Left);
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("✗ 16 h100: needs 82.1 GiB"), "{}", screen.text());
    press(&mut screen, KeyCode::Right);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("hardware          h200") && line(&text, "devices   ").contains("32"), "{text}");
    // The grid stays as it is: nothing that its plans share has changed.
    assert!(text.contains("1137 tok/s 51.6%") && !text.contains("still to plan"), "{text}");
    // Another batch is another grid.
    screen.keys(":batch 256");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("batch 256 of"), "{}", screen.text());
    assert!(!screen.text().contains("1137 tok/s 51.6%"), "{}", screen.text());
}

#[test]
fn a_profile_has_no_other_hardware() {
    let mut screen = Offscreen::new(piper(tiny()), 120, 36).expect("the request can be met");
    let before = screen.view();
    screen.keys("8");
    assert_eq!(screen.view(), before);
    assert!(!screen.text().contains("8 Hardware"), "{}", screen.text());
}
