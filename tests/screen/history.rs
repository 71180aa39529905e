//! Plans that were on the screen.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    tui::{Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, press, request, snapshots::compare};

/// A model on 64 H100, then with TP 8, then on B200.
fn tried(width: u16, height: u16) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let prices = BTreeMap::from([("h100".to_string(), 2.4), ("b200".to_string(), 4.5)]);
    let request = ScreenRequest { overrides, prices, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    for text in ["tp 8", "hardware b200"] {
        screen.wait(Duration::from_secs(2));
        screen.keys(&format!(":{text}"));
        press(&mut screen, KeyCode::Enter);
    }
    screen.wait(Duration::from_secs(2));
    screen.focus(Focus::View);
    screen.keys("9");
    screen.draw();
    screen
}

#[test]
fn every_plan_is_listed_with_what_it_changed() {
    for (width, height) in [(80, 24), (120, 36), (160, 45)] {
        let mut screen = tried(width, height);
        assert_eq!(screen.view(), View::History);
        compare(&format!("history-{width}x{height}"), &mut screen);
    }
}

#[test]
fn enter_goes_back_to_a_try_as_a_new_one() {
    let mut screen = tried(120, 36);
    press(&mut screen, KeyCode::End);
    press(&mut screen, KeyCode::Enter);
    screen.wait(Duration::from_secs(2));
    let text = screen.text();
    assert!(text.contains("4 tries") && text.contains("back at try 1"), "{text}");
    // Its inputs are back: the hardware, and the free axis.
    let newest = line(&text, "(4)");
    assert!(newest.contains("hardware h100"), "{text}");
    assert!(line(&text, "ZeRO-1").contains("TP 4"), "{text}");
    assert!(line(&text, "start: Joint").contains(" 1 "), "{text}");
}

#[test]
fn two_marked_tries_are_told_apart() {
    let mut screen = tried(160, 45);
    press(&mut screen, KeyCode::End);
    screen.keys(" ");
    press(&mut screen, KeyCode::Home);
    screen.keys(" ");
    let text = screen.text();
    let told = line(&text, "try 3 against 1");
    assert!(told.contains("hardware b200, TP 8") && told.contains("faster"), "{text}");
    assert!(text.contains("per G tokens"), "{text}");
}

#[test]
fn any_changed_option_is_named() {
    let mut screen = tried(160, 45);
    for (text, told) in [("recompute always", "recompute always"), ("headroom 1", "headroom 1")] {
        screen.keys(&format!(":{text}"));
        press(&mut screen, KeyCode::Enter);
        screen.wait(Duration::from_secs(2));
        assert!(line(&screen.text(), "▌").contains(told), "{}", screen.text());
    }
}

#[test]
fn tries_outlive_the_program_and_lead_back() {
    let folder = tempfile::tempdir().unwrap();
    let start = |devices: Option<u32>| {
        let model = Arc::new(workload::load(std::path::Path::new("llama-3-8b")).expect("a published name"));
        let overrides = devices.map_or_else(GivenLimits::default, |devices| {
            GivenLimits::default().with(LimitKind::Devices, devices).with(LimitKind::Batch, 128)
        });
        let state_directory = Some(folder.path().join("state"));
        let request = ScreenRequest { overrides, state_directory, planner: "joint".into(), ..request(model) };
        let mut screen = Offscreen::new(request, 160, 45).expect("the request can be met");
        screen.wait(Duration::from_secs(2));
        screen.keys("9");
        screen
    };
    let mut first = start(Some(16));
    first.keys(":devices 32");
    press(&mut first, KeyCode::Enter);
    first.wait(Duration::from_secs(2));
    let text = first.text();
    assert!(line(&text, "(2)").contains("32 devices") && line(&text, "start: Joint").contains(" 1 "), "{text}");
    first.keys("q");
    assert!(first.quit && first.unkept.is_none());
    let mut second = start(None);
    // The same plan again is no new try.
    assert!(second.text().contains("2 tries"), "{}", second.text());
    press(&mut second, KeyCode::End);
    press(&mut second, KeyCode::Enter);
    second.wait(Duration::from_secs(2));
    let text = second.text();
    assert!(text.contains("back at try 1") && line(&text, "(3)").contains("16 devices"), "{text}");
}

#[test]
fn an_edited_try_comes_back_as_it_was() {
    let mut screen = tried(160, 45);
    // Another layout of the search counts as an edit.
    screen.keys("5");
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    screen.wait(Duration::from_secs(2));
    screen.keys("9");
    assert!(line(&screen.text(), "(4)").contains("Edited plan"), "{}", screen.text());
    press(&mut screen, KeyCode::End);
    press(&mut screen, KeyCode::Enter);
    screen.wait(Duration::from_secs(2));
    press(&mut screen, KeyCode::Home);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    screen.wait(Duration::from_secs(2));
    let text = screen.text();
    assert!(line(&text, "ZeRO-1").contains("mbs 2") && text.contains("Edited plan  ✓ keeps"), "{text}");
}
