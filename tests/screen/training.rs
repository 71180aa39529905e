//! A model to be trained on the screen: its configuration, what it attains, and what a change by hand costs.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family,
    planner::{self, Options, Problem, Search},
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload::{self, Workload},
};

use ratatui::crossterm::event::{KeyCode, KeyModifiers};

use crate::{line, press, request, snapshots};

fn model() -> Arc<Workload> {
    Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"))
}

fn opened(width: u16, height: u16) -> Offscreen {
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(model()) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.act(Action::Show(View::Stages));
    screen.focus(Focus::View);
    screen.draw();
    screen
}

#[test]
fn a_published_name_opens_with_a_configuration_and_what_it_attains() {
    let mut screen = opened(160, 40);
    let text = screen.text();
    let figures = line(&text, "tokens/s per device");
    assert!(figures.contains("TFLOP/s") && figures.contains("MFU") && text.contains("published runs"), "{text}");
    assert!(text.contains("tp=4,pp=4,vp=5,cp=2"), "{text}");
    // Virtual stages are equal parts: there is no boundary to move.
    assert!(text.lines().last().is_some_and(|keys| keys.contains("help") && !keys.contains("[ ]")), "{text}");
    assert!(text.contains("s/iteration") && text.contains("Joint"), "{text}");
}

#[test]
fn the_plan_that_a_job_runs_is_pinned_from_the_start() {
    let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
    let joint = planner::find("joint").expect("it is one of the planners");
    let limits = family::resolve(&model(), &overrides).expect("all limits are stated");
    let problem = Problem { workload: model(), limits, options: Options::defaults(joint.options()) };
    let plan = joint.plan(&problem, &Search::new(None, 0)).plan.expect("there is a plan");
    let pinned = vec![("as it runs".to_string(), plan)];
    let request = ScreenRequest { overrides, pinned, planner: "joint".into(), ..request(model()) };
    let mut screen = Offscreen::new(request, 160, 40).expect("the request can be met");
    screen.act(Action::Show(View::Compare));
    let text = screen.text();
    let time = |row: &str| line(&text, row).split_whitespace().find(|word| word.contains('.')).map(String::from);
    assert_eq!(time("as it runs"), time("Joint ◂"), "{text}");
}

#[test]
fn the_first_view_tells_what_the_field_asks_for() {
    let mut screen = opened(200, 50);
    screen.act(Action::Show(View::Overview));
    let text = screen.text();
    let figures = text.lines().find(|line| line.contains(" tokens/s")).unwrap_or_else(|| panic!("{text}"));
    assert!(figures.contains('%') && figures.contains('±'), "{text}");
    assert!(
        line(&text, "per device").contains("MFU") && line(&text, "per device").contains("published runs"),
        "{text}"
    );
    // Options that are about profiles are not offered.
    assert!(!text.contains("│ engine") && !text.contains("microbatches/s"), "{text}");
}

#[test]
fn a_change_by_hand_shows_its_cost_at_once() {
    let mut screen = opened(160, 40);
    let before = line(&screen.text(), "tokens/s per device");
    for (action, told) in
        [(Action::LargerTensor, "tp=8,pp=4"), (Action::Merge, "2 stages on 64"), (Action::NextMode, "recompute full")]
    {
        screen.act(action);
        let text = screen.text();
        assert!(text.contains("edited: ") && text.contains(told), "{text}");
        assert_ne!(line(&text, "tokens/s per device"), before, "{text}");
        screen.keys("u");
    }
    assert_eq!(line(&screen.text(), "tokens/s per device"), before);
}

#[test]
fn every_view_draws_a_model_at_every_size() {
    let mut screen = opened(80, 24);
    for (width, height) in [(80, 24), (1, 1)] {
        screen.resize(width, height);
        for number in "1234567".chars() {
            screen.keys(&number.to_string());
            screen.draw();
        }
    }
}

#[test]
fn hardware_and_the_length_of_sequences_are_turned_like_limits() {
    let mut screen = opened(160, 40);
    // Without the panel, whose rows are beside it.
    let figures = |screen: &mut Offscreen| {
        let text = line(&screen.text(), "tokens/s per device");
        text.rsplit('│').next().unwrap_or_default().to_string()
    };
    let before = figures(&mut screen);
    screen.focus(Focus::Panel);
    let row = |screen: &mut Offscreen, label: &str| {
        let text = screen.text();
        let found = text.lines().find(|line| line.trim_start().trim_start_matches('▌').trim_start().starts_with(label));
        found.unwrap_or_else(|| panic!("no {label} in\n{text}")).to_string()
    };
    assert!(row(&mut screen, "hardware").contains("h100"));
    for _ in 0..10 {
        if screen.text().contains("tokens in a sequence") {
            break;
        }
        screen.act(Action::Down);
    }
    screen.act(Action::Increase);
    assert!(row(&mut screen, "sequence").contains("16384"));
    assert_ne!(figures(&mut screen), before);
    screen.act(Action::Reset);
    assert!(row(&mut screen, "sequence").contains("8192"));
    assert_eq!(figures(&mut screen), before);
    // Another accelerator brings its own memory.
    screen.act(Action::Up);
    screen.act(Action::Increase);
    screen.act(Action::Increase);
    assert!(row(&mut screen, "hardware").contains("h100-nvl") && row(&mut screen, "memory").contains("94 GiB"));
    screen.act(Action::Reset);
    assert_eq!(figures(&mut screen), before);
    // What cannot be is told beside the field and changes nothing.
    screen.act(Action::Edit);
    screen.keys("abacus");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("there is no hardware `abacus`"));
}

#[test]
fn sharding_offload_and_adapters_are_turned_in_the_panel() {
    let mut screen = opened(160, 40);
    // Without the panel, whose rows are beside it.
    let figures = |screen: &mut Offscreen| {
        let text = line(&screen.text(), "tokens/s per device");
        text.rsplit('│').next().unwrap_or_default().to_string()
    };
    let before = figures(&mut screen);
    screen.focus(Focus::Panel);
    let shown = |screen: &mut Offscreen, label: &str, value: &str| {
        let text = screen.text();
        let row = text.lines().find(|line| line.trim_start().trim_start_matches('▌').trim_start().starts_with(label));
        assert!(row.is_some_and(|row| row.contains(value)), "no {label} {value} in\n{text}");
    };
    // Settings of the simulator that change no model are not offered.
    assert!(!screen.text().contains("forward share"));
    for (label, help, values) in [
        ("sharding", "what replicas divide", ["zero2", "zero3"]),
        ("offload", "kept in the host's memory", ["optimizer", "none"]),
        ("adapter", "adapters are trained", ["lora", "qlora"]),
    ] {
        for _ in 0..10 {
            if screen.text().contains(help) {
                break;
            }
            screen.act(Action::Down);
        }
        for value in values {
            screen.act(Action::Increase);
            shown(&mut screen, label, value);
            assert_eq!(figures(&mut screen) == before, value == "none", "{label} {value}");
        }
        screen.act(Action::Reset);
        assert_eq!(figures(&mut screen), before, "{label}");
    }
}

#[test]
fn a_configured_price_shows_what_tokens_cost() {
    let cost = |prices: &[(&str, f64)]| {
        let overrides = GivenLimits::default().with(LimitKind::Devices, 64).with(LimitKind::Batch, 128);
        let prices = prices.iter().map(|(id, price)| (id.to_string(), *price)).collect();
        let request = ScreenRequest { overrides, prices, planner: "joint".into(), ..request(model()) };
        let mut screen = Offscreen::new(request, 200, 50).expect("the request can be met");
        screen.act(Action::Show(View::Overview));
        screen.text()
    };
    let priced = cost(&[("h100", 2.0)]);
    // 64 devices at 2.00 an hour and 1,137 tokens/s each.
    assert!(line(&priced, "per G tokens").contains("488") && priced.contains("at 2.00 an hour"), "{priced}");
    assert!(!cost(&[("b200", 5.0)]).contains("per G tokens"));
}

#[test]
fn a_model_without_a_number_of_devices_opens_on_the_fewest_that_hold_a_layout() {
    let model = Arc::new(workload::load(std::path::Path::new("deepseek-v3")).expect("a published name"));
    let request = ScreenRequest { planner: "joint".into(), ..request(model.clone()) };
    let mut screen = Offscreen::new(request, 120, 36).expect("the request can be met");
    screen.wait(std::time::Duration::from_millis(50));
    let text = screen.text();
    assert!(text.contains("64 devices hold no layout: planned for"), "{text}");
    assert!(line(&text, "TP ").contains("ZeRO-1") && !text.contains("No layout fits"), "{text}");
}

/// Screen of llama-3-70b on some H100.
fn llama(devices: u32, size: (u16, u16)) -> Offscreen {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = GivenLimits::default().with(LimitKind::Devices, devices).with(LimitKind::Batch, 128);
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, size.0, size.1).expect("the request can be met");
    screen.wait(std::time::Duration::from_millis(50));
    screen
}

#[test]
fn who_asks_for_too_few_devices_is_told_what_would_do_and_takes_a_line() {
    let mut screen = llama(8, (120, 36));
    snapshots::compare("no-layout-120x36", &mut screen);
    snapshots::compare("no-layout-80x24", &mut llama(8, (80, 24)));
    screen.focus(Focus::View);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(line(&text, "devices").contains("24") && line(&text, "TP ").contains("ZeRO-1"), "{text}");
}

#[test]
fn devices_step_by_machine_and_memory_stops_at_the_least_that_works() {
    let mut screen = llama(64, (120, 36));
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Right);
    assert!(line(&screen.text(), "▌devices").contains("72"), "{}", screen.text());
    screen.key(KeyCode::Right, KeyModifiers::SHIFT);
    assert!(line(&screen.text(), "▌devices").contains("73"), "{}", screen.text());
    press(&mut screen, KeyCode::Left);
    press(&mut screen, KeyCode::Left);
    for _ in 0..2 {
        press(&mut screen, KeyCode::Down);
    }
    for _ in 0..9 {
        press(&mut screen, KeyCode::Left);
    }
    let text = screen.text();
    assert!(text.contains("of memory is the least that holds a plan") && !text.contains("No layout"), "{text}");
    // Below the fewest that hold a layout the knob stays where it was.
    let mut screen = llama(24, (120, 36));
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Left);
    let text = screen.text();
    assert!(text.contains("no fewer whole machines hold a plan") && line(&text, "▌devices").contains("24"), "{text}");
}
