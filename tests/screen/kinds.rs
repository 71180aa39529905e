//! Several kinds of devices on the screen: which stage is on which kind, a knob for each, and what another machine is worth.

use std::{path::Path, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family::kinds::{self, KindCount},
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload::{self, Workload},
};
use ratatui::crossterm::event::KeyCode;

use crate::{file, line, native, press, request, snapshots};

/// llama-3-8b on 16 H100 and 32 A100.
pub(crate) fn two_kinds() -> Arc<Workload> {
    let model = workload::load(Path::new("llama-3-8b")).expect("a published name");
    let kind = |(id, count): (&str, u32)| KindCount { id: id.into(), count, price_per_hour: None };
    let kinds = [("h100", 16), ("a100-80", 32)].map(kind);
    Arc::new(kinds::over(&model, &kinds).expect("both are known"))
}

/// The same on a screen.
fn opened(width: u16, height: u16) -> Offscreen {
    let workload = two_kinds();
    let overrides = GivenLimits::default().with(LimitKind::Batch, 128);
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(workload) };
    Offscreen::new(request, width, height).expect("the request can be met")
}

#[test]
fn stages_are_told_with_their_kinds() {
    let mut screen = opened(120, 36);
    let text = screen.text();
    assert!(text.contains("1 on h100 · 2 on a100-80"), "{text}");
    assert!(text.contains("Stage 2 on a100-80 limits"), "{text}");
    screen.act(Action::Show(View::Stages));
    let text = screen.text();
    assert!(text.contains("h100") && text.contains("memory, limit 80 GiB"), "{text}");
}

#[test]
fn a_machine_less_is_planned_at_once() {
    let mut screen = opened(120, 36);
    let before = screen.text();
    assert!(line(&before, " h100 ").contains("16") && before.contains("48 of 48 devices"), "{before}");
    screen.focus(Focus::Panel);
    // Devices, batch, then the kinds.
    [KeyCode::Down, KeyCode::Down, KeyCode::Left].into_iter().for_each(|key| press(&mut screen, key));
    let after = screen.text();
    assert!(line(&after, "▌h100").contains(" 8 ") && after.contains("40 of 40 devices"), "{after}");
    assert!(after.contains("slower than before"), "{after}");
}

#[test]
fn kinds_at_the_usual_sizes() {
    for (width, height) in [(80, 24), (120, 36)] {
        let mut screen = opened(width, height);
        snapshots::compare(&format!("kinds-{width}x{height}"), &mut screen);
    }
}

#[test]
fn accelerators_of_two_speeds_have_knobs_and_names() {
    let mut screen = Offscreen::new(native(&file("two-speeds.json")), 120, 36).expect("the request can be met");
    let text = screen.text();
    assert!(text.contains("1 on fast · 2–4 on slow · 5 on fast"), "{text}");
    screen.act(Action::Show(View::Devices));
    let text = screen.text();
    assert!(text.contains("acc 2 slow") && text.contains("acc 5 fast"), "{text}");
    snapshots::compare("two-speeds", &mut screen);
    screen.focus(Focus::Panel);
    // Devices, CPUs, then the kinds.
    [KeyCode::Down, KeyCode::Down, KeyCode::Left].into_iter().for_each(|key| press(&mut screen, key));
    let text = screen.text();
    assert!(line(&text, "▌fast").contains(" 1 ") && text.contains("4 of 4 accelerators"), "{text}");
}
