//! The Devices view: devices on their machines, who talks to whom, and what split operators pay and leave idle.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind, Machines},
    tui::{Focus, Offscreen, ScreenRequest},
    workload::{self, Workload},
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, press, request, snapshots, stages};

fn input(name: &str) -> Arc<Workload> {
    let path = format!("{}/inputs/{name}", env!("CARGO_MANIFEST_DIR"));
    Arc::new(workload::load(path.as_ref()).expect("it is valid"))
}

/// Eight machines of one device each: slow links all round, so that a pipeline pays.
fn layers() -> ScreenRequest {
    let mut request = request(input("bert32-layers.txt"));
    request.planner = "dapple".into();
    request.overrides =
        GivenLimits::default().on(Machines::new(&[1; 8])).with(LimitKind::Batch, 64).with(LimitKind::Memory, 8e9);
    request
}

fn devices(request: ScreenRequest, width: u16, height: u16) -> Offscreen {
    let mut screen = stages(request, width, height);
    press(&mut screen, KeyCode::Char('3'));
    screen
}

#[test]
fn devices_are_drawn_on_their_machines_and_links_between_stages_are_told() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let mut screen = devices(layers(), width, height);
        let text = screen.text();
        line(&text, "who sends to whom");
        let first = line(&text, "stage 1 m 1");
        assert!(first.contains(" MB") && first.contains('%'), "{first}");
        // A small screen has no room for both.
        assert_eq!(text.contains("devices on their machines"), height > 24, "{text}");
        assert!(!text.contains("slowestmemory"), "{text}");
    }
}

#[test]
fn the_matrix_follows_the_selected_stage() {
    let mut screen = devices(layers(), 80, 24);
    let before = screen.text();
    for _ in 0..7 {
        press(&mut screen, KeyCode::Down);
    }
    let after = screen.text();
    let matrix =
        |text: &str| text.lines().skip_while(|line| !line.contains("who sends")).map(String::from).collect::<Vec<_>>();
    assert_ne!(matrix(&before), matrix(&after), "{after}");
}

#[test]
fn operators_tell_their_costliest_tensors_and_idle_devices() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let mut operators = request(input("alexnet-operators.json"));
        operators.planner = "pase".into();
        operators.overrides = GivenLimits::default().with(LimitKind::Devices, 32);
        let text = devices(operators, width, height).text();
        line(&text, "most expensive tensor transfers");
        let first = line(&text, " → ");
        assert!(first.contains('%'), "{first}");
        assert!(text.contains("idle"), "{text}");
    }
}

#[test]
fn links_are_shown_with_their_unit() {
    let mut screen = stages(layers(), 120, 60);
    let text = screen.text();
    for (label, value) in [("in machine", "25 GB/s"), ("between", "1 GB/s"), ("all-reduce", "3 GB/s")] {
        let row = text.lines().find(|line| line.contains(label) && line.contains(value));
        assert!(row.is_some(), "no {label} {value} in\n{text}");
    }
}

/// Screen of llama-3-70b on 64 H100.
fn llama(width: u16, height: u16) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.focus(Focus::View);
    screen
}

#[test]
fn groups_of_a_device_are_told_axis_by_axis() {
    let mut screen = llama(120, 36);
    screen.keys("c");
    press(&mut screen, KeyCode::Down);
    for _ in 0..5 {
        press(&mut screen, KeyCode::Right);
    }
    snapshots::compare("groups-120x36", &mut screen);
    let text = screen.text();
    assert!(text.contains("12–15") && text.contains("13 → 29 → 45 → 61"), "{text}");
    press(&mut screen, KeyCode::Esc);
    assert!(!screen.text().contains("and its groups"), "{}", screen.text());
}

#[test]
fn a_machine_fails_and_the_ways_on_are_told_with_their_cost() {
    let mut screen = llama(160, 45);
    screen.keys("3X");
    snapshots::compare("machine-fails-160x45", &mut screen);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(line(&text, "devices  ").contains("56") && line(&text, "mbs").contains("PP 7"), "{text}");
    screen.keys("XX");
    assert!(!screen.text().contains("If machine"), "revived\n{}", screen.text());
}
