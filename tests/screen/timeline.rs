//! The Timeline view: how a plan is simulated, why not otherwise, memory over time; no figure is ever cut.

use std::sync::Arc;

use plantui::{
    cluster::LimitKind,
    simulate::{LinkModel, Schedule, SimulatorSettings},
    tui::{Focus, Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::{line, press, request, screen, tiny};

/// The built-in network on some devices, in the Timeline view.
fn timeline(change: impl FnOnce(&mut ScreenRequest)) -> Offscreen {
    let mut request = request(Arc::new(workload::builtin()));
    request.planner = "piper".into();
    change(&mut request);
    let mut screen = screen(request);
    screen.keys("4");
    screen
}

/// Goes to a row of the left panel that says how plans are simulated.
fn go_to(screen: &mut Offscreen, label: &str) {
    screen.keys("P");
    let rows =
        ["schedule", "overlap", "links", "virtual", "warm-up", "extra", "weight", "forward", "buckets", "optimizer"];
    let down = rows.iter().position(|row| *row == label).unwrap_or_else(|| panic!("no row {label}"));
    (0..down).for_each(|_| press(screen, KeyCode::Down));
}

/// What the view says, line after line, without the left panel.
fn view(text: &str) -> String {
    // The left panel ends with a rule, on which scrollbars lie.
    let ruled = |line: &&str| line.chars().nth(29).is_some_and(|c| matches!(c, '│' | '█'));
    let panel = if 2 * text.lines().filter(ruled).count() > text.lines().count() { 30 } else { 0 };
    let right = |line: &str| -> String { line.chars().skip(panel).collect::<String>().trim().to_string() };
    text.lines().map(right).collect::<Vec<_>>().join(" ")
}

/// The figure after a word on the line of figures.
fn batch(text: &str) -> String {
    let line = line(text, " per iteration");
    let at = line.find(" per iteration").unwrap();
    line[..at].rsplit("  ").next().unwrap().trim().to_string()
}

#[test]
fn what_the_simulator_assumes_is_set_at_the_left_and_played_at_once() {
    let mut screen = timeline(|_| {});
    let before = screen.text();
    assert!(before.contains(" Simulator ") && !before.contains("simulated with"), "{before}");
    go_to(&mut screen, "overlap");
    press(&mut screen, KeyCode::Right);
    let after = screen.text();
    assert!(line(&after, "simulated with").contains("no overlap"), "{after}");
    assert_ne!(batch(&before), batch(&after), "transfers hold up compute");
    // Each row tells what it is; a number takes what is typed, with its unit.
    assert!(after.contains("whether a device"), "{after}");
    go_to(&mut screen, "optimizer");
    press(&mut screen, KeyCode::Enter);
    screen.keys("250ms");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(line(&text, "simulated with").contains("no overlap, optimizer step 250.0 ms"), "{text}");
    assert!(text.contains("optimizer"), "{text}");
    // Backspace puts a row back.
    press(&mut screen, KeyCode::Backspace);
    go_to(&mut screen, "overlap");
    press(&mut screen, KeyCode::Backspace);
    assert_eq!(batch(&screen.text()), batch(&before));
    assert!(!screen.text().contains("simulated with"));
}

#[test]
fn a_value_that_cannot_be_is_refused_beside_its_row() {
    let mut screen = timeline(|_| {});
    go_to(&mut screen, "buckets");
    press(&mut screen, KeyCode::Enter);
    screen.keys("0");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("not taken") && text.contains("a whole number from 1"), "{text}");
    press(&mut screen, KeyCode::Esc);
    assert!(!screen.text().contains("simulated with"));
    // Left as it is shown, rounded or not, a value is what it was.
    go_to(&mut screen, "forward");
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Enter);
    assert!(!screen.text().contains("simulated with"), "{}", screen.text());
}

#[test]
fn rows_that_nothing_listens_to_say_so() {
    let mut screen = timeline(|_| {});
    screen.keys("P");
    let text = screen.text();
    assert!(line(&text, "virtual stages").contains("(2)"), "{text}");
    go_to(&mut screen, "virtual");
    assert!(screen.text().contains("not used: only"), "{}", screen.text());
    // The schedule that listens: two steps on.
    go_to(&mut screen, "schedule");
    press(&mut screen, KeyCode::Right);
    press(&mut screen, KeyCode::Right);
    let text = screen.text();
    assert!(line(&text, "schedule").contains("interleaved"), "{text}");
    assert!(!line(&text, "virtual stages").contains('('), "{text}");
}

#[test]
fn the_mouse_sets_them_as_it_sets_limits() {
    let mut screen = timeline(|_| {});
    // The row under the cursor has arrows.
    go_to(&mut screen, "links");
    let text = screen.text();
    let (y, row) = text.lines().enumerate().find(|(_, line)| line.contains("▌links ")).expect("there is such a row");
    let at = row.chars().position(|c| c == '▸').expect("it has arrows");
    let click =
        |kind| Event::Mouse(MouseEvent { kind, column: at as u16, row: y as u16, modifiers: KeyModifiers::NONE });
    screen.event(&click(MouseEventKind::Down(MouseButton::Left)));
    let text = screen.text();
    let row = text.lines().nth(y).unwrap();
    assert!(row.contains("▌links") && row.contains("exclusive"), "{text}");
}

#[test]
fn the_key_leads_there_from_anywhere_and_help_knows_it() {
    let mut screen = screen(request(tiny()));
    screen.keys("2P");
    assert_eq!(screen.view(), View::Timeline);
    assert!(screen.text().contains(" Simulator "));
    screen.keys("5P");
    assert_eq!(screen.view(), View::Compare);
    screen.keys("2");
    assert!(!screen.text().contains(" Simulator "), "where nothing is simulated nobody asks how");
    press(&mut screen, KeyCode::Tab);
    press(&mut screen, KeyCode::Down);
    screen.keys("?settings of the simulator");
    let text = screen.text();
    assert!(line(&text, "settings of the simulator, at").contains(" P "), "{text}");
}

#[test]
fn compare_and_exports_play_the_same() {
    let mut screen = timeline(|_| {});
    let figure = |text: &str| line(text, "per iteration");
    go_to(&mut screen, "overlap");
    press(&mut screen, KeyCode::Right);
    let simulated = batch(&screen.text());
    assert!(!figure(&screen.text()).is_empty());
    screen.keys("C");
    let document: serde_json::Value = serde_json::from_str(screen.clipboard.as_ref().unwrap()).unwrap();
    let seconds = document["simulation"]["iteration_s"].as_f64().unwrap();
    assert_eq!(plantui::units::seconds(seconds), simulated);
    let notes = document["notes"].to_string();
    assert!(notes.contains("simulation: simulated with no overlap"), "{notes}");
    screen.keys("5");
    let text = screen.text();
    assert!(text.contains("all simulated as 1F1B with no overlap"), "{text}");
    assert!(text.contains(&simulated[..4]), "{simulated}\n{text}");
}

#[test]
fn a_session_and_the_request_bring_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    std::fs::copy("inputs/tiny-branch.json", &file).unwrap();
    let again = |fresh: bool| {
        let mut request = request(Arc::new(workload::load(&file).unwrap()));
        request.state_directory = Some(folder.path().join("state"));
        request.fresh = fresh;
        request.simulator = SimulatorSettings { buckets: 4, ..SimulatorSettings::default() };
        let mut screen = screen(request);
        screen.keys("4");
        screen
    };
    let mut first = again(true);
    go_to(&mut first, "links");
    press(&mut first, KeyCode::Right);
    go_to(&mut first, "buckets");
    press(&mut first, KeyCode::Left);
    first.keys("q");
    assert!(first.quit && first.unkept.is_none());
    let text = again(false).text();
    assert!(line(&text, "links").contains(LinkModel::Exclusive.id()), "{text}");
    assert!(line(&text, "buckets").contains('3'), "{text}");
    let text = again(true).text();
    assert!(line(&text, "links").contains(LinkModel::Private.id()), "{text}");
    assert!(line(&text, "buckets").contains('4'), "{text}");
}

#[test]
fn a_refused_schedule_is_told_whole_with_what_would_help() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let mut screen = timeline(|request| request.schedule = Schedule::Interleaved);
        screen.resize(width, height);
        let text = screen.text();
        let told = view(&text);
        assert!(told.contains("What would help:") && told.contains("This is 1F1B."), "{text}");
        assert!(told.contains("✗ interleaved 1F1B "), "{text}");
    }
}

#[test]
fn no_figure_is_cut_at_any_width() {
    let mut screen = timeline(|request| request.overrides.set(LimitKind::Devices, Some(16)));
    screen.focus(Focus::View);
    let whole = |text: &str| -> Vec<String> {
        // Every share and time on a wide screen, which shows them all.
        text.split(|c: char| c.is_whitespace() || "│:;,".contains(c))
            .filter(|w| w.contains('.'))
            .map(str::to_string)
            .collect()
    };
    for _ in 0..6 {
        screen.keys("n");
        screen.resize(240, 40);
        let known = whole(&screen.text());
        for width in [80, 83, 90, 100, 117, 140] {
            screen.resize(width, 24);
            let text = screen.text();
            let view: Vec<&str> =
                text.lines().filter(|line| line.contains("path") || line.contains("cursor")).collect();
            assert!(view.len() >= 2, "{text}");
            for figure in view.iter().flat_map(|line| whole(line)) {
                assert!(known.contains(&figure), "`{figure}` is half of one\n{text}");
            }
        }
    }
}

#[test]
fn the_cursor_hides_no_digit_of_the_axis() {
    let mut screen = timeline(|_| {});
    screen.focus(Focus::View);
    let axis = |text: &str| line(&text.replace('▾', "│"), "│0 ms");
    screen.resize(120, 30);
    let mut seen = vec![];
    // To a little before the right end, where the window would follow.
    for _ in 0..70 {
        seen.push(axis(&screen.text()).split_whitespace().filter(|word| word.contains("00")).collect::<String>());
        press(&mut screen, KeyCode::Right);
    }
    seen.iter_mut().for_each(|times| times.retain(|c| c.is_ascii_digit()));
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[test]
fn what_has_no_room_is_left_out_and_nothing_lies_over_another() {
    let mut screen = timeline(|request| request.schedule = Schedule::ZeroBubbleV);
    screen.focus(Focus::View);
    for height in 16..30 {
        screen.resize(60, height);
        let text = screen.text();
        assert!(!line(&text, "cursor ").contains('▒') && text.contains("▌▸ 1"), "{text}");
        assert!(view(&text).contains("This is 1F1B."), "{text}");
    }
}

#[test]
fn memory_over_time_names_its_parts() {
    let mut screen = timeline(|_| {});
    let text = screen.text();
    let head = line(&text, "peak ");
    assert!(head.contains("peak 7.99 GiB"), "{text}");
    // Recomputing modes keep room to recompute in.
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        screen.resize(width, height);
        screen.focus(Focus::View);
        let text = screen.text();
        for part in ["limit 8 GiB,", "■ state 1.36 GiB", "■ buffers 1.04 GiB", "■ activations 5.38 GiB"] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.contains("██████████"), "{text}");
    }
}

#[test]
fn a_batch_too_long_for_its_settings_is_told_and_nothing_breaks() {
    let mut screen = timeline(|request| {
        request.overrides.set(LimitKind::Microbatches, Some(300_000_000));
        request.simulator.links = LinkModel::Shared;
    });
    let text = screen.text();
    assert!(
        view(&text).contains("nothing simulated ✗ with transfers that wait for links")
            && view(&text).contains("at most"),
        "{text}"
    );
    screen.focus(Focus::View);
    for key in ["n", "N", "+", "-", "0", "x", "]"] {
        screen.keys(key);
        screen.draw();
    }
    press(&mut screen, KeyCode::Enter);
    screen.keys("24");
    assert!(!screen.text().is_empty());
    screen.keys("4");
    go_to(&mut screen, "links");
    press(&mut screen, KeyCode::Right);
    assert!(screen.text().contains(" per iteration"), "{}", screen.text());
}
