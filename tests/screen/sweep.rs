//! The Sweep view: a chart that begins when it is opened, is read with a cursor, and sets limits.

use plantui::{
    cluster::LimitKind,
    tui::{Focus, Offscreen},
    workload,
};
use ratatui::{
    crossterm::event::{Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind},
    style::Color,
};
use std::sync::Arc;

use crate::{line, piper, press, request, stages, tiny};

/// BERT-32 on the view at a size.
fn swept(width: u16, height: u16) -> Offscreen {
    let mut screen = stages(piper(Arc::new(workload::builtin())), width, height);
    screen.focus(Focus::View);
    screen.keys("6");
    screen
}

#[test]
fn opening_the_view_draws_the_chart_at_every_size() {
    for (width, height) in [(60, 16), (80, 24), (120, 36), (200, 60)] {
        let mut screen = swept(width, height);
        let text = screen.text();
        assert!(text.contains("time per sample by devices"), "{width} x {height}\n{text}");
        assert!(text.matches('●').count() >= 10, "{width} x {height}\n{text}");
        let reading = line(&text, "64 devices: ");
        assert!(reading.contains("20.06 ms/sample, proven"), "{width} x {height}\n{text}");
        assert!(line(&text, "┴").contains('↑'), "the value in force is marked\n{text}");
    }
}

#[test]
fn every_size_down_to_one_cell_can_be_drawn() {
    let mut screen = swept(120, 36);
    for width in [1, 20, 59, 60, 61, 70, 99, 100, 220] {
        for height in [1, 5, 15, 16, 17, 18, 24, 70] {
            screen.resize(width, height);
            screen.draw();
        }
    }
}

#[test]
fn the_cursor_reads_points_and_enter_sets_the_limit() {
    let mut screen = swept(120, 36);
    press(&mut screen, KeyCode::Right);
    press(&mut screen, KeyCode::Right);
    let text = screen.text();
    assert!(text.contains("128 devices: 10.05 ms/sample, proven"), "{text}");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("(objective 10.05 ms)"), "{text}");
    assert!(text.contains("devices            128 ◂ ▸"), "{text}");
    // The limit along the chart is no reason for another chart.
    assert!(!text.contains("sweeps again"), "{text}");
    for _ in 0..40 {
        press(&mut screen, KeyCode::Left);
    }
    assert!(screen.text().contains("4 devices: no plan"), "{}", screen.text());
}

#[test]
fn values_without_a_plan_are_crosses_with_the_reason() {
    let mut screen = swept(80, 24);
    let text = screen.text();
    assert!(line(&text, "no plan ●").contains('×'), "{text}");
    for _ in 0..40 {
        press(&mut screen, KeyCode::Left);
    }
    let text = screen.text();
    assert!(text.contains("4 devices: no plan. No feasible plan on 4 devices"), "{text}");
}

#[test]
fn the_limit_along_the_chart_is_picked_by_a_key() {
    let mut screen = swept(120, 36);
    for title in ["by memory", "by microbatches", "by bandwidth", "by devices"] {
        screen.keys("x");
        let text = screen.text();
        assert!(text.contains(&format!("time per sample {title}")), "{title}\n{text}");
        assert!(text.matches('●').count() >= 5, "{title}\n{text}");
    }
}

#[test]
fn lines_are_planners_or_settings_and_have_signs_of_their_own() {
    let mut screen = swept(120, 36);
    screen.keys("s");
    let text = screen.text();
    assert!(text.contains("● Piper") && text.contains("■ Joint") && text.contains("▲ Equal partition"), "{text}");
    assert!(text.contains("simulated iteration time by devices"), "objectives have different units\n{text}");
    assert!(text.matches('■').count() >= 5, "{text}");
    press(&mut screen, KeyCode::Down);
    assert!(screen.text().contains("▸ ■ Joint"), "{}", screen.text());
    screen.keys("sss");
    let text = screen.text();
    for part in ["Piper by recompute", "● recompute auto", "■ recompute never", "▲ recompute always"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn a_change_at_the_left_makes_the_chart_old_until_it_is_asked_for_again() {
    let mut screen = swept(120, 36);
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Right);
    assert!(!screen.text().contains("sweeps again"), "devices are what the chart runs along");
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Right);
    let text = screen.text();
    assert!(text.contains("of earlier settings: r sweeps again"), "{text}");
    assert!(text.matches('●').count() >= 10, "what was found stays\n{text}");
    screen.keys("r");
    assert!(!screen.text().contains("sweeps again"), "{}", screen.text());
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Right);
    screen.keys("26");
    assert!(!screen.text().contains("sweeps again"), "opening the view begins anew\n{}", screen.text());
}

#[test]
fn finer_steps_lie_around_the_value_in_force() {
    let mut screen = swept(120, 36);
    let hints = screen.text().lines().last().unwrap().to_string();
    assert!(hints.contains("+ - steps"), "{hints}");
    screen.keys("++");
    let text = screen.text();
    assert!(text.contains("17 points") && line(&text, "64 devices: ").contains("20.06 ms/sample"), "{text}");
    let axis: Vec<&str> =
        line_below(&text, '┴').split_whitespace().filter(|word| word.parse::<u32>().is_ok()).collect();
    assert_eq!(axis, ["60", "65", "70"], "{text}");
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains("65 devices: "), "{}", screen.text());
    // There is nothing finer than one device.
    screen.keys("+");
    assert!(screen.text().contains("65 devices: "), "{}", screen.text());
    screen.keys("x");
    let text = screen.text();
    assert!(text.contains("memory 8 GiB: ") && text.contains("7.6 GiB"), "steps stay fine for the next limit\n{text}");
    screen.keys("--");
    assert!(screen.text().contains("40 GiB"), "{}", screen.text());
}

/// The line below the first that has a sign in it.
fn line_below(text: &str, sign: char) -> &str {
    let mut lines = text.lines().skip_while(|line| !line.contains(sign));
    lines.next();
    lines.next().unwrap_or_else(|| panic!("no line below `{sign}` in\n{text}"))
}

#[test]
fn a_sweep_that_a_change_cut_short_goes_on_when_the_change_is_taken_back() {
    let mut screen = stages(request(Arc::new(workload::builtin())), 120, 36);
    screen.slow_studies(5);
    screen.keys("6");
    assert!(screen.text().contains("5 of 17 points …"), "{}", screen.text());
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains("of earlier settings: r sweeps again"), "{}", screen.text());
    screen.finish_studies();
    assert!(screen.text().contains("of earlier settings"), "what comes late is dropped\n{}", screen.text());
    press(&mut screen, KeyCode::Left);
    let text = screen.text();
    assert!(text.contains("17 points") && !text.contains("of 17 points"), "{text}");
}

#[test]
fn escape_stops_the_sweep_and_keeps_what_is_there() {
    let mut screen = stages(request(Arc::new(workload::builtin())), 120, 36);
    screen.slow_studies(5);
    screen.keys("6");
    press(&mut screen, KeyCode::Esc);
    screen.finish_studies();
    let text = screen.text();
    assert!(text.contains("stopped at 5 of 17 points: r sweeps again"), "{text}");
    assert!(text.matches('●').count() >= 4, "{text}");
    // To come back to the view is no wish to go on.
    screen.keys("26");
    assert!(screen.text().contains("stopped at 5 of 17 points"), "{}", screen.text());
    screen.focus(Focus::View);
    screen.keys("r");
    assert!(!screen.text().contains("of 17 points"), "{}", screen.text());
}

#[test]
fn axes_are_told_in_units_and_not_cut() {
    let bytes = include_bytes!("../../inputs/alexnet-operators.json");
    let operators = workload::load_bytes(bytes, "inputs/alexnet-operators.json", "alexnet").expect("it is valid");
    let mut request = request(Arc::new(operators));
    request.planner = "pase".into();
    let mut screen = stages(request, 100, 30);
    screen.focus(Focus::View);
    screen.keys("6");
    let text = screen.text();
    assert!(text.contains("200 Gop ┤") && text.contains("● PaSE  97.1 Gop"), "{text}");
    screen.keys("x");
    let text = screen.text();
    assert!(line_below(&text, '┴').contains("TFLOPS"), "{text}");
}

#[test]
fn the_mouse_moves_the_cursor() {
    let mut screen = swept(120, 36);
    let text = screen.text();
    let row = text.lines().position(|line| line.contains('┆')).unwrap() as u16;
    let mut click = |column| {
        let kind = MouseEventKind::Down(MouseButton::Left);
        screen.event(&Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
        line(&screen.text(), " devices: ")
    };
    assert!(click(116).contains("1024 devices"));
    assert!(click(47).contains("4 devices: no plan"));
}

#[test]
fn ascii_and_no_colour_tell_lines_apart() {
    let mut request = piper(Arc::new(workload::builtin()));
    request.ascii = true;
    request.depth = plantui::tui::Depth::None;
    let mut screen = stages(request, 100, 30);
    screen.focus(Focus::View);
    screen.keys("6s");
    let text = screen.text();
    assert!(text.is_ascii(), "{text}");
    assert!(text.contains("* Piper") && text.contains("^ Equal partition"), "{text}");
    assert!(screen.draw().content.iter().all(|cell| cell.fg == Color::Reset));
}

#[test]
fn other_workloads_have_their_own_limits() {
    let mut request = request(tiny());
    request.overrides.set(LimitKind::Memory, Some(8e9));
    let mut screen = stages(request, 100, 30);
    screen.focus(Focus::View);
    screen.keys("6");
    assert!(screen.text().contains("4 devices: "), "{}", screen.text());
}
