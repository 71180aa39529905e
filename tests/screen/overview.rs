//! Overview: the picture for every family, at every size; the batch that is simulated; what a change did.

use std::{sync::Arc, time::Duration};

use plantui::{
    cluster::{LimitKind, Machines},
    tui::{Offscreen, ScreenRequest},
    workload,
};
use ratatui::{
    backend::{Backend, CrosstermBackend},
    crossterm::event::{Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
    style::Color,
};

use crate::{file, line, native, overview, press, request, tiny};

/// The line over the map.
fn map_title(text: &str) -> String {
    let found = text.lines().find(|line| line.contains("Devices  ") && line.contains(" of "));
    found.unwrap_or_else(|| panic!("no map in\n{text}")).to_string()
}

/// The stage under the cursor.
fn stage(text: &str) -> String {
    let at = text.find("█ Stage ").unwrap_or_else(|| panic!("no stage in\n{text}"));
    text[at..].split_whitespace().nth(2).unwrap().to_string()
}

/// A request for a pipeline whose warm-up and drain are long enough to have names.
fn llama() -> ScreenRequest {
    let mut request = native(&file("llama-3-70b-h100.json"));
    request.overrides.set(LimitKind::Microbatches, Some(256));
    request
}

/// A workload of each family.
fn families() -> Vec<(&'static str, ScreenRequest)> {
    let mut latency = native(&file("mistral-7b-latency.json"));
    if let Some(planner) = latency.planners.iter().find(|planner| planner.info().id == "placement-latency-greedy") {
        latency.planner = planner.info().id.to_string();
    }
    let mut machines = native(&file("bert32-layers.txt"));
    machines.overrides.machines = Some(Machines::even(2, 8));
    machines.overrides.set(LimitKind::Batch, Some(64));
    machines.overrides.set(LimitKind::Memory, Some(8e9));
    vec![
        ("pipeline", native(&Arc::new(workload::builtin()))),
        ("machines", machines),
        ("placement", native(&file("branching-cnn-training.json"))),
        ("latency", latency),
        ("operators", native(&file("alexnet-operators.json"))),
    ]
}

#[test]
fn the_stage_under_the_cursor_is_the_same_in_all_views() {
    let mut screen = overview(native(&Arc::new(workload::builtin())), 120, 36);
    let limiting = stage(&screen.text());
    screen.keys("21");
    assert_eq!(stage(&screen.text()), limiting, "nobody pointed at another stage");
    screen.keys("2");
    screen.draw();
    (0..3).for_each(|_| press(&mut screen, KeyCode::Down));
    assert!(screen.text().contains("█ Stage 4"), "{}", screen.text());
    screen.keys("1");
    assert_eq!(stage(&screen.text()), "4");
    screen.keys("4");
    assert!(line(&screen.text(), "▌▸ 4 ").contains("×8"), "{}", screen.text());
    screen.keys("63");
    assert!(line(&screen.text(), "▌▸ 24–31").contains("● 4"), "{}", screen.text());
}

#[test]
fn every_family_has_its_picture() {
    for (family, request) in families() {
        let mut screen = overview(request, 80, 24);
        for (width, height) in [(80, 24), (120, 36), (160, 45), (200, 60), (300, 80)] {
            screen.resize(width, height);
            let text = screen.text();
            let place = format!("{family} {width}x{height}\n{text}");
            assert!(map_title(&text).contains(" of ") && text.contains("Iteration  "), "{place}");
            assert!(text.contains('█') && text.contains("fullest"), "{place}");
            // What is under the cursor is told, beside the picture or below it.
            let named =
                ["█ Stage ", "█ Accelerator ", "█ CPU ", "devices together"].iter().any(|name| text.contains(name));
            assert!(named, "{place}");
        }
    }
}

/// Requests are made anew: one is used up by its screen.
fn request_again(request: &ScreenRequest) -> ScreenRequest {
    let mut again = crate::request(request.workload.clone());
    again.planner.clone_from(&request.planner);
    again.overrides = request.overrides.clone();
    again
}

#[test]
fn it_fits_any_size() {
    for (family, request) in families() {
        let mut screen = overview(request_again(&request), 120, 36);
        for keys in ["1", " ", "."] {
            screen.keys(keys);
            // As closely as the other views for a pipeline, in fewer steps for the rest.
            let step = if family == "pipeline" { 3 } else { 7 };
            for height in (1..=26).step_by(step).chain([36, 60]) {
                for width in (1..=70).step_by(13 * step.min(2)).chain([60, 80, 120, 163, 220]) {
                    screen.resize(width, height);
                    let area = screen.draw().area;
                    assert_eq!((area.width, area.height), (width, height), "{family}");
                }
            }
        }
    }
}

#[test]
fn the_first_look_tells_what_limits_and_how_full_the_fullest_is() {
    // Joint plans for the simulated batch itself: it has no model that could err.
    let request = ScreenRequest { planner: "piper".into(), ..llama() };
    let mut screen = overview(request, 160, 45);
    screen.draw();
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(400));
    let text = screen.text();
    assert!(line(&text, "Iteration  ").contains(&format!("stage {} limits", stage(&text))), "{text}");
    for part in ["an iteration", "idle", "fullest, stage", "model error", "warm-up", "steady", "drain"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    for part in ["What would help", "2x devices", "slack", "in flight", "forward", "recompute", "backward"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn arrows_and_the_mouse_walk_the_map() {
    let mut screen = overview(native(&Arc::new(workload::builtin())), 160, 45);
    press(&mut screen, KeyCode::Home);
    let first = screen.text();
    assert_eq!(stage(&first), "1");
    press(&mut screen, KeyCode::End);
    press(&mut screen, KeyCode::Left);
    let last = stage(&screen.text());
    assert_eq!(last, "8");
    press(&mut screen, KeyCode::Home);
    assert_eq!(screen.text(), first);
    press(&mut screen, KeyCode::Down);
    assert_ne!(screen.text(), first);
    press(&mut screen, KeyCode::Up);
    assert_eq!(screen.text(), first);
    // A click on a cell of the last stage.
    let map = first.lines().position(|line| line == map_title(&first)).unwrap();
    let mut found = false;
    for (row, column) in (map + 1..map + 34).flat_map(|row| (2..100).step_by(6).map(move |column| (row, column))) {
        let (kind, modifiers) = (MouseEventKind::Down(MouseButton::Left), KeyModifiers::NONE);
        screen.event(&Event::Mouse(MouseEvent { kind, column, row: row as u16, modifiers }));
        found |= stage(&screen.text()) == last;
    }
    assert!(found, "{last}\n{first}");
}

#[test]
fn the_batch_is_played_held_and_left() {
    let mut screen = overview(llama(), 160, 45);
    let whole = screen.text();
    assert!(!screen.wakes(), "an idle screen wakes nothing");
    screen.keys(" ");
    assert!(screen.wakes(), "a running batch does");
    let mut seen = vec![];
    for _ in 0..8 {
        screen.wait(Duration::from_millis(500));
        seen.push(playhead_ms(&screen.text()));
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    screen.keys(" ");
    let held = screen.text();
    assert!(!screen.wakes());
    screen.wait(Duration::from_secs(5));
    assert_eq!(screen.text(), held);
    // The same time is the Timeline's cursor.
    screen.keys("4");
    let at = line(&screen.text(), "cursor ");
    assert!(at.contains(held_time(&held).as_str()), "{at}\n{held}");
    screen.keys("1");
    press(&mut screen, KeyCode::Esc);
    // What would help is beside it, and comes when it is there.
    let phases = |text: &str| {
        let line = line(text, "├");
        line[..line.rfind('┤').expect("the end of the last phase")].to_string()
    };
    assert_eq!(phases(&screen.text()), phases(&whole), "the playhead is gone");
}

/// The time that stands alone, not after a word, on the line of phases.
fn held_time(text: &str) -> String {
    let phases = line(text, "├");
    let parts = phases.split(['─', '├', '┤', '▶', '■']).map(str::trim);
    let time = parts.clone().find(|part| part.chars().next().is_some_and(|c| c.is_ascii_digit()) && part.contains(' '));
    time.unwrap_or_else(|| panic!("no time in {phases}")).split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn events_are_stepped_through_and_speed_changes() {
    let mut screen = overview(native(&tiny()), 160, 45);
    let mut times = vec![];
    for _ in 0..12 {
        screen.keys(".");
        times.push(playhead_ms(&screen.text()));
    }
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    screen.keys(",,,");
    assert!(playhead_ms(&screen.text()) < times[11]);
    let moved = |screen: &mut Offscreen| {
        let before = playhead_ms(&screen.text());
        screen.keys(" ");
        screen.wait(Duration::from_millis(200));
        screen.keys(" ");
        playhead_ms(&screen.text()) - before
    };
    press(&mut screen, KeyCode::Esc);
    screen.keys(",");
    let usual = moved(&mut screen);
    screen.keys(">>");
    assert!(moved(&mut screen) > 2.0 * usual);
    screen.keys("<<<<");
    assert!(moved(&mut screen) < usual);
}

/// The playhead's time in milliseconds, whatever its unit.
fn playhead_ms(text: &str) -> f64 {
    let time = held_time(text);
    let (value, unit) = time.split_once(' ').unwrap();
    let value: f64 = value.parse().unwrap();
    value * [("s", 1e3), ("ms", 1.0), ("µs", 1e-3)].iter().find(|(name, _)| *name == unit).unwrap().1
}

#[test]
fn cells_show_what_devices_do_at_the_playhead() {
    let mut screen = overview(native(&Arc::new(workload::builtin())), 160, 45);
    let colours = |screen: &mut Offscreen| -> Vec<Color> {
        let text = screen.text();
        let top = text.lines().position(|line| line == map_title(&text)).unwrap() as u16 + 1;
        let buffer = screen.draw();
        (2..100).map(|x| buffer[(x, top + 1)].fg).collect()
    };
    let still = colours(&mut screen);
    screen.keys(".");
    let first = colours(&mut screen);
    assert_ne!(still, first);
    screen.keys("........");
    assert_ne!(first, colours(&mut screen));
    press(&mut screen, KeyCode::Esc);
    assert_eq!(still, colours(&mut screen));
}

#[test]
fn a_change_is_told_bright_for_a_second_then_calm() {
    let mut screen = Offscreen::new(native(&Arc::new(workload::builtin())), 160, 45).unwrap();
    screen.draw();
    assert!(!screen.text().contains("faster than") && !screen.text().contains(" → "));
    // Twice the devices.
    press(&mut screen, KeyCode::Char('L'));
    let text = screen.text();
    let figures = line(&text, "x faster");
    assert!(figures.contains(" → "), "{figures}");
    assert!(text.contains("than with 64 devices"), "{text}");
    assert!(screen.wakes(), "to calm down");
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(1500));
    screen.wait(Duration::from_millis(500));
    assert!(!screen.wakes(), "an idle screen wakes nothing");
    let calm = screen.text();
    assert!(calm.contains("than with 64 devices"), "{calm}");
    // Back again, against the plan that was set with =.
    screen.keys("=");
    press(&mut screen, KeyCode::Char('H'));
    assert!(line(&screen.text(), "slower").contains(" → "));
    press(&mut screen, KeyCode::Char('L'));
    let text = screen.text();
    assert!(text.contains("as fast"), "{text}");
}

#[test]
fn thousands_of_devices_share_cells_and_that_is_said() {
    let mut request = native(&Arc::new(workload::builtin()));
    request.overrides.set(LimitKind::Devices, Some(10_000));
    let mut screen = overview(request, 80, 24);
    let text = screen.text();
    assert!(map_title(&text).contains("a cell for every "), "{text}");
}

#[test]
fn playing_sends_only_what_changes() {
    let mut screen = overview(llama(), 120, 36);
    screen.keys(" ");
    let mut before = screen.draw().clone();
    let (mut most, frames) = (0, 10);
    // Five seconds, in warm-up and after it, at the ten pictures a second that are drawn.
    for _ in 0..5 {
        let mut bytes = 0;
        for _ in 0..frames {
            screen.wait(Duration::from_millis(100));
            let after = screen.draw().clone();
            let mut sent = vec![];
            CrosstermBackend::new(&mut sent).draw(before.diff(&after).into_iter()).unwrap();
            bytes += sent.len();
            before = after;
        }
        most = most.max(bytes);
    }
    assert!(most < 25_000, "{most} bytes in a second");
}

#[test]
fn a_slide_tells_the_plan_without_tabs_and_keys() {
    let mut screen = overview(request(Arc::new(workload::builtin())), 120, 36);
    screen.draw();
    let slide = screen.slide();
    assert!(slide.contains("viewBox=\"0 0 768 432\""), "16 by 9: {}", &slide[..300]);
    assert!(slide.contains("bert32a100 on 64 devices") && slide.contains("more"), "title and strip");
    assert!(!slide.contains("Workload") && !slide.contains("export"), "no tabs, no keys");
}
