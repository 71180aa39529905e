//! Help, palette and export: what they list, where they are, and which keys they take.

use std::sync::Arc;

use plantui::{
    tui::{Action, Focus, Offscreen, View},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, placement::placement, press, request, screen, stages, tiny};

fn sized(width: u16, height: u16) -> Offscreen {
    let mut screen = stages(request(tiny()), width, height);
    screen.focus(Focus::View);
    screen
}

/// The first row of the palette after this was typed.
fn first_command(screen: &mut Offscreen, typed: &str) -> String {
    screen.keys(&format!(":{typed}"));
    let text = screen.text();
    let title = text.lines().position(|line| line.contains("╭ Command")).expect("the palette is open");
    press(screen, KeyCode::Esc);
    text.lines().nth(title + 3).unwrap_or_default().to_string()
}

#[test]
fn the_palette_finds_an_export_by_all_that_its_format_is_called() {
    let mut screen = sized(120, 36);
    for (typed, title) in [
        ("megatron", "Export as Megatron-LM"),
        ("trace", "Export as Chrome trace"),
        ("perfetto", "Export as Chrome trace"),
        ("deepspeed", "Export as DeepSpeed"),
        ("torchtitan", "Export as torchtitan"),
        ("torch-schedule", "Export as PyTorch schedule"),
        ("dot", "Export as Graphviz dot"),
        ("csv", "Export as CSV"),
        ("vllm", "Export as vLLM"),
    ] {
        assert!(first_command(&mut screen, typed).contains(title), "{typed}\n{}", screen.text());
    }
    // A picture of the plan is made of dot, one of the screen by a key.
    screen.keys(":svg");
    let text = screen.text();
    assert!(text.contains("Save screen") && text.contains("Graphviz dot"), "{text}");
}

#[test]
fn an_export_chosen_in_the_palette_opens_on_its_format() {
    let mut screen = sized(120, 36);
    screen.keys(":megatron");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("● Megatron-LM") && line(&text, "│ file ").contains(".megatron.sh"), "{text}");
}

#[test]
fn the_palette_begins_with_what_is_done_in_the_view() {
    for (view, first) in [(View::Stages, "Boundary back"), (View::Timeline, "Cursor left"), (View::Compare, "Run all")]
    {
        let mut screen = sized(120, 36);
        screen.act(Action::Show(view));
        let row = first_command(&mut screen, "");
        assert!(row.contains(first), "{view:?}: {row}");
    }
}

#[test]
fn an_overlay_that_does_not_fit_says_where_it_is() {
    let mut screen = sized(80, 24);
    for (key, what) in [("?", "lines 1–"), (":", "commands 1–"), ("e", "lines 1–")] {
        screen.keys(key);
        let mark = line(&screen.text(), what);
        assert!(mark.contains(" of ") && mark.contains('↓') && !mark.contains('↑'), "{mark}");
        for _ in 0..3 {
            press(&mut screen, KeyCode::PageDown);
        }
        let text = screen.text();
        assert!(text.contains('↑') && !text.contains(what), "{text}");
        press(&mut screen, KeyCode::Esc);
    }
}

#[test]
fn the_last_key_of_the_help_is_reached() {
    let mut screen = sized(80, 24);
    screen.keys("?");
    for _ in 0..30 {
        press(&mut screen, KeyCode::PageDown);
    }
    let text = screen.text();
    assert!(!text.contains(" ↓ ─") && text.contains("layers, edges, findings, about"), "{text}");
}

#[test]
fn nothing_in_the_help_is_cut_and_no_two_columns_touch() {
    let mut screen = sized(80, 24);
    screen.keys("?tensor degree");
    let text = screen.text();
    assert!(line(&text, "Larger tensor").contains("Larger tensor degree  "), "{text}");
    assert!(!text.lines().skip(1).any(|line| line.contains('…')), "{text}");
    press(&mut screen, KeyCode::Esc);
    // In the palette what is cut is said in full below the list.
    screen.keys(":what would help");
    let text = screen.text();
    assert!(text.contains("re-plans with one limit or option changed: run them, go there, or leave"), "{text}");
}

#[test]
fn the_bottom_line_shows_the_keys_of_the_overlay() {
    let mut screen = sized(80, 24);
    for (key, word) in [("?", "scroll"), (":", "do it"), ("e", "write"), ("o", "open")] {
        screen.keys(key);
        let text = screen.text();
        let bottom = text.lines().last().unwrap();
        assert!(bottom.contains(word) && bottom.contains("Esc close") && !bottom.contains("boundary"), "{bottom}");
        press(&mut screen, KeyCode::Esc);
    }
    assert!(screen.text().lines().last().unwrap().contains("boundary"));
}

#[test]
fn the_export_says_how_long_it_will_be() {
    let mut screen = screen(request(Arc::new(workload::builtin())));
    screen.keys(":perfetto");
    press(&mut screen, KeyCode::Enter);
    let size = line(&screen.text(), "─ preview");
    assert!(size.contains("MiB in all"), "{size}");
    press(&mut screen, KeyCode::Up);
    assert!(line(&screen.text(), "─ preview").contains("KiB in all"));
}

#[test]
fn formats_are_those_that_can_hold_the_plan() {
    let mut screen = screen(placement("placement-dp"));
    screen.keys("e");
    let text = screen.text();
    assert!(text.contains("Graphviz dot") && text.contains("placement split") && !text.contains("Megatron"), "{text}");
    press(&mut screen, KeyCode::Esc);
    screen.keys(":export as");
    assert!(!screen.text().contains("Megatron"), "{}", screen.text());
}

#[test]
fn a_name_and_a_value_set_it() {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let overrides = plantui::cluster::GivenLimits::default()
        .with(plantui::cluster::LimitKind::Devices, 64)
        .with(plantui::cluster::LimitKind::Batch, 128);
    let request = plantui::tui::ScreenRequest { overrides, planner: "joint".into(), ..request(model) };
    let mut screen = Offscreen::new(request, 160, 45).expect("the request can be met");
    screen.draw();
    let mut typed = |text: &str| {
        screen.keys(&format!(":{text}"));
        let shown = screen.text();
        press(&mut screen, KeyCode::Enter);
        (shown, screen.text())
    };
    let (preview, after) = typed("devices 128");
    assert!(preview.contains("▌ devices 128  now 64"), "{preview}");
    assert!(line(&after, "devices ").contains("128"), "{after}");
    let (_, after) = typed("tp 8");
    assert!(line(&after, "ZeRO-1").contains("TP=8"), "{after}");
    let (_, after) = typed("hardware=b200");
    assert!(after.contains("hardware          b200"), "{after}");
    // The change is told with its cause, not with the memory that came with it.
    assert!(after.contains("than with hardware h100"), "{after}");
    let (_, after) = typed("memory 100 GiB");
    assert!(after.contains("memory         100 GiB"), "{after}");
    let (_, after) = typed("theme light");
    assert!(after.contains("theme light"), "{after}");
    // What cannot be is said, before and after.
    let (preview, after) = typed("devices many");
    assert!(preview.contains("✗") && after.contains("✗"), "{preview}\n{after}");
    let (_, after) = typed("tp 3");
    assert!(!after.contains("TP 8"), "{after}");
    // Words that are no name search the actions as ever.
    screen.keys(":save screen");
    assert!(screen.text().contains("▌ Save screen"), "{}", screen.text());
}
