//! Who talks to whom, which device is the fullest, and what is told of a stage.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind, Machines},
    tui::{Action, Offscreen, ScreenRequest, View},
    workload::{self, Profile},
};
use ratatui::crossterm::event::KeyCode;

use crate::{file, line, native, overview, press, request, stages};

/// The lines below the title of the arcs, up to the batch.
fn arcs(text: &str) -> Vec<String> {
    let below = text.lines().skip_while(|line| !line.trim_start().starts_with("Transfers  "));
    below.skip(1).take_while(|line| !line.contains("Iteration ")).map(str::to_string).collect()
}

#[test]
fn arcs_join_the_stages_that_send_to_one_another() {
    let text = overview(native(&file("llama-3-70b-h100.json")), 200, 60).text();
    assert!(line(&text, "Transfers  ").contains("most from stage "), "{text}");
    let arcs = arcs(&text);
    assert!(arcs[0].matches('█').count() >= 3, "each stage is named: {arcs:?}");
    assert!(arcs.iter().skip(1).any(|row| row.contains('╰') && row.contains('╯')), "{arcs:?}");
    assert!(text.contains("  to  ") || text.contains("  from  "), "the stage's block tells it in figures\n{text}");
}

#[test]
fn arcs_join_machines_where_there_are_several() {
    let mut request = native(&file("bert32-layers.txt"));
    request.overrides =
        GivenLimits::default().on(Machines::new(&[8, 8])).with(LimitKind::Batch, 64).with(LimitKind::Devices, 16);
    let text = overview(request, 160, 45).text();
    let names = arcs(&text);
    assert!(names[0].contains("machine 1") && names[0].contains("machine 2"), "{text}");
    assert!(names.iter().any(|row| row.contains('╯')), "{text}");
}

#[test]
fn thousands_of_devices_stay_readable_and_arcs_leave_the_map_its_rows() {
    let mut request = native(&file("gpt3-175b-a100.json"));
    request.overrides.set(LimitKind::Devices, Some(4096));
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let text = overview(request_again(&request), width, height).text();
        assert!(text.contains("4096 of 4096 devices"), "{text}");
        let map = text.lines().skip_while(|line| !line.contains("4096 of 4096")).skip(1);
        let rows = map.take_while(|line| line.contains('▀')).count();
        assert!(rows >= 4, "{width} x {height}: {rows} rows of cells\n{text}");
    }
}

fn request_again(first: &ScreenRequest) -> ScreenRequest {
    let mut again = request(Arc::clone(&first.workload));
    again.planner.clone_from(&first.planner);
    again.overrides = first.overrides.clone();
    again
}

#[test]
fn idle_time_fullest_device_and_what_helps_are_there_at_every_size() {
    for (width, height) in [(80, 24), (100, 30), (120, 36), (200, 60)] {
        let mut screen = overview(request(Arc::new(workload::builtin())), width, height);
        screen.wait(std::time::Duration::from_secs(2));
        let text = screen.text();
        assert!(text.contains("idle") && text.contains("fullest"), "{width} x {height}\n{text}");
        assert!(text.contains("stage 1") || text.contains("stage 2"), "whose device it is, {width} x {height}\n{text}");
        assert!(text.contains("limits"), "{width} x {height}\n{text}");
    }
}

#[test]
fn a_stage_tells_transfers_of_both_passes() {
    let mut screen = overview(request(Arc::new(workload::builtin())), 160, 45);
    screen.act(Action::Show(View::Stages));
    screen.draw();
    let text = screen.text();
    let told = line(&text, "■ communication");
    let at = told.find("communication").expect("it is there") + "communication".len();
    let value: f64 = told[at..].split_whitespace().next().expect("a figure").parse().expect("a number");
    // They do not count against the pace: passes hide them.
    let whole = line(&text, "limited by");
    assert!(value > 0.0 && whole.contains("passes hide communication"), "{text}");
}

#[test]
fn operators_that_share_all_devices_are_no_stage() {
    let text = overview(native(&file("alexnet-operators.json")), 120, 36).text();
    assert!(text.contains("8 devices together") && !text.contains("Stage 1"), "{text}");
    assert!(line(&text, "Transfers  ").contains("between operators"), "{text}");
}

#[test]
fn what_another_file_says_of_memory_does_not_go_with_the_user() {
    let mut screen = overview(request(Arc::new(workload::builtin())), 120, 36);
    let open = |screen: &mut Offscreen, name: &str| {
        screen.keys("o");
        screen.keys(&format!("{}/inputs/{name}", env!("CARGO_MANIFEST_DIR")));
        press(screen, KeyCode::Enter);
        screen.draw();
        screen.text()
    };
    let text = open(&mut screen, "alexnet-operators.json");
    assert!(line(&text, "fullest").contains("device") && !text.contains("of 8 GiB"), "{text}");
}

#[test]
fn a_sample_alone_is_not_told_against_batches() {
    let mut screen = overview(native(&file("branching-cnn-training.json")), 200, 60);
    screen.act(Action::Show(View::Compare));
    screen.act(Action::CompareAll);
    screen.draw();
    let text = screen.text();
    let groups: Vec<&str> = text.lines().filter(|line| line.contains("gap: to ")).collect();
    assert!(groups.len() >= 2, "{text}");
    for row in text.lines().filter(|line| line.contains("x slower")) {
        let times = row.split("x slower").next().and_then(|before| before.split_whitespace().last());
        let times: f64 = times.and_then(|text| text.parse().ok()).unwrap_or(0.0);
        assert!(times < 8.0, "a batch of 32 against a sample?\n{row}\n{text}");
    }
}

#[test]
fn slack_is_in_the_measure_of_the_times_above_it() {
    let slack = |text: &str| {
        let row = line(text, " slack ").split(" slack ").nth(1).unwrap().trim().to_string();
        row.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    };
    // A stage's replicas take whole microbatches in turn, and passes hide transfers: what its passes are shorter by.
    let text = stages(native(&file("llama-3-70b-h100.json")), 120, 40).text();
    assert!(text.contains("a microbatch on a replica") && slack(&text).starts_with("59.4"), "{text}");
    // They share each microbatch; the sums of two stages are alike, but the passes of the first set the pace.
    let mut of_1 = (*file("bert32-layers.txt")).clone();
    if let Profile::Layers(profile) = &mut of_1.profile {
        *profile = profile.clone().of_batch(1);
    }
    let mut request = native(&Arc::new(of_1));
    request.planner = "dapple".into();
    request.overrides = GivenLimits::default().with(LimitKind::Batch, 64).on(Machines::new(&[8, 8]));
    let text = stages(request, 120, 40).text();
    assert!(!text.contains("on a replica") && slack(&text) == "none, it", "{text}");
}
