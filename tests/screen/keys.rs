//! What keys and clicks do.

use std::{fs, sync::Arc, time::Duration};

use plantui::{
    cluster::LimitKind,
    family,
    tui::{Focus, Offscreen, View},
    workload,
};
use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::{line, piper, planners, press, request, screen, stages, tiny};

fn builtin() -> Offscreen {
    screen(request(Arc::new(workload::builtin())))
}

/// A screen over the planners of the tests.
fn staged() -> Offscreen {
    let mut request = request(tiny());
    request.planners = &planners::ALL;
    request.planner = "one".into();
    // Room for everything on one device.
    request.overrides.set(LimitKind::Memory, Some(8e9));
    screen(request)
}

fn mouse(screen: &mut Offscreen, kind: MouseEventKind, column: u16, row: u16) {
    screen.event(&Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
}

/// Column and row of a text on the screen, in cells.
fn find(screen: &mut Offscreen, needle: &str) -> (u16, u16) {
    let text = screen.text();
    let row = text.lines().position(|l| l.contains(needle)).unwrap_or_else(|| panic!("no `{needle}` in\n{text}"));
    let line = text.lines().nth(row).unwrap();
    let column = line[..line.find(needle).unwrap()].chars().count();
    (column as u16, row as u16)
}

#[test]
fn the_first_screen_tells_what_the_plan_is_worth_and_what_limits_it() {
    let text = builtin().text();
    let header = text.lines().next().unwrap();
    for part in ["plantui", "bert32a100", "37 layers", "67 edges", "Joint", "≈ within 0.8%", "37.79 s/iteration"] {
        assert!(header.contains(part), "{part}: {header}");
    }
    line(&text, "limited by 4 stages alike");
    line(&text, "37.79 s/iteration   within 0.8% of optimal   8 stages on 64 of 64 devices");
    line(&text, "simulated as 1F1B: 50.81 samples/s, idle 13.2% (imbalance ");
    for label in ["devices", "memory", "microbatches", "bandwidth"] {
        line(&text, label);
    }
}

#[test]
fn a_planner_that_knows_no_schedule_is_told_with_what_the_simulator_makes_of_its_plan() {
    let text = screen(piper(Arc::new(workload::builtin()))).text();
    let header = text.lines().next().unwrap();
    assert!(header.contains("✓ optimal") && header.contains("42.05 s/iteration (objective 20.06 ms)"), "{header}");
    assert!(line(&text, "21.90 ms/sample simulated").contains("optimal in Piper's model"), "{text}");
    assert!(text.contains("8 stages on 63 of 64 devices"), "{text}");
    assert!(text.contains("simulated as 1F1B: 9.2% more, idle 19.3%"), "{text}");
}

#[test]
fn a_changed_limit_plans_at_once() {
    let mut screen = builtin();
    let before = line(&screen.text(), "samples/s");
    screen.key(KeyCode::Right, KeyModifiers::SHIFT);
    let text = screen.text();
    assert!(line(&text, "◂ ▸").contains("128"), "{text}");
    assert_ne!(line(&text, "samples/s"), before);
    press(&mut screen, KeyCode::Left);
    assert!(line(&screen.text(), "◂ ▸").contains("127"));
    press(&mut screen, KeyCode::Backspace);
    assert_eq!(line(&screen.text(), "samples/s"), before);
}

#[test]
fn a_typed_value_takes_units_and_a_bad_one_says_why() {
    let mut screen = builtin();
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    screen.keys("12 parsecs");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("not taken") && text.contains("16GiB"), "{text}");
    screen.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    screen.keys("12.5GiB");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(!text.contains("not taken") && text.contains("memory, limit 12.5 GiB"), "{text}");
    // Escape leaves the value as it was; what is typed first takes its place.
    press(&mut screen, KeyCode::Enter);
    screen.keys("7");
    assert!(line(&screen.text(), "memory [").contains("[7 "));
    press(&mut screen, KeyCode::Esc);
    assert!(screen.text().contains("memory, limit 12.5 GiB"));
}

#[test]
fn options_are_those_the_planner_declares() {
    let mut screen = staged();
    let before = line(&screen.text(), "samples/s");
    for _ in 0..5 {
        press(&mut screen, KeyCode::Down);
    }
    press(&mut screen, KeyCode::Right);
    let text = screen.text();
    assert!(line(&text, "mode  ").contains("last"), "{text}");
    assert_ne!(line(&text, "samples/s"), before);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Right);
    assert!(line(&screen.text(), "go fast").contains("off"));
}

#[test]
fn an_infeasible_limit_is_explained_and_mended_by_a_key() {
    let mut screen = staged();
    press(&mut screen, KeyCode::Enter);
    screen.keys("1");
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("✗ infeasible"), "{text}");
    assert!(text.contains("One device is not enough"));
    assert!(text.contains("press f for 2") && text.contains("press m for 3.3 GB"), "{text}");
    for view in ["3", "4"] {
        screen.focus(Focus::View);
        screen.keys(view);
        assert!(screen.text().contains("press f for 2"), "view {view}");
    }
    screen.keys("f");
    assert!(screen.text().lines().next().unwrap().contains("≈ feasible, gap 50.0%"));
}

#[test]
fn a_planner_that_cannot_says_why_and_one_that_fails_does_no_harm() {
    let mut screen = staged();
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("cannot plan this workload") && text.contains("no moon"), "{text}");
    for _ in 0..3 {
        press(&mut screen, KeyCode::Up);
    }
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("fell over") && text.contains("■ stopped"), "{text}");
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().lines().next().unwrap().contains("≈ feasible"));
}

#[test]
fn the_old_plan_stays_while_the_new_one_is_made_and_only_the_last_is_made() {
    let mut screen = builtin();
    let before = line(&screen.text(), "samples/s");
    screen.hold();
    for _ in 0..5 {
        press(&mut screen, KeyCode::Right);
    }
    assert!(!screen.text().contains("planning"), "a quick plan is not announced");
    // A sign turns after a while, and what is old stays.
    screen.wait(Duration::from_millis(400));
    let text = screen.text();
    let header = text.lines().next().unwrap();
    assert!(header.contains("⣠ Joint") || header.contains("⢰ Joint") && !header.contains("planning"), "{text}");
    assert_eq!(line(&text, "samples/s"), before);
    // A search that takes long says how far it is.
    screen.wait(Duration::from_secs(2));
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("… planning"), "{text}");
    assert_eq!(line(&text, "samples/s"), before);
    assert_eq!(screen.release(), 4);
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("≈ within") && text.contains("of 69 devices"), "{text}");
}

#[test]
fn stopping_keeps_the_best() {
    let mut screen = staged();
    screen.hold();
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Esc);
    screen.release();
    let header = screen.text().lines().next().unwrap().to_string();
    assert!(header.contains("■ stopped, best so far, gap 75.0%"), "{header}");
    // With one device there is nothing to keep: the old plan stays, and it says so.
    screen.hold();
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Enter);
    screen.keys("1");
    press(&mut screen, KeyCode::Enter);
    press(&mut screen, KeyCode::Esc);
    screen.release();
    let text = screen.text();
    assert!(text.contains("stopped before a plan was found"), "{text}");
    line(&text, "samples/s");
}

#[test]
fn stages_unfold_to_nodes_that_can_be_found() {
    let mut screen = screen(request(tiny()));
    screen.focus(Focus::View);
    screen.draw();
    screen.keys("/left br");
    press(&mut screen, KeyCode::Enter);
    let found = line(&screen.text(), "left branch");
    assert!(found.contains('▌'), "{found}");
    screen.keys("/nowhere");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("no row with `nowhere`"));
    screen.keys("-");
    assert!(!screen.text().contains("left branch"));
    screen.keys("*");
    assert!(screen.text().contains("left branch"));
}

#[test]
fn devices_fold_replicas_and_unfold_them() {
    let mut screen = builtin();
    screen.focus(Focus::View);
    screen.keys("3");
    let text = screen.text();
    assert!(text.contains("░slack") && text.contains("slowest ◂"), "{text}");
    let folded = text.matches("replica ").count();
    press(&mut screen, KeyCode::Enter);
    let unfolded = screen.text().matches("replica ").count();
    assert!(unfolded > folded, "{folded} {unfolded}");
    press(&mut screen, KeyCode::Enter);
    assert_eq!(screen.text().matches("replica ").count(), folded);
}

#[test]
fn the_timeline_zooms_pans_and_tells_what_is_under_the_cursor() {
    let mut screen = screen(request(tiny()));
    screen.focus(Focus::View);
    screen.keys("4");
    let text = screen.text();
    assert!(line(&text, "per iteration").contains("1F1B"), "{text}");
    assert!(line(&text, "cursor").contains("microbatch 0 on stage 1"), "{text}");
    screen.keys("n");
    assert!(line(&screen.text(), "cursor").contains("microbatch 1 on"), "{}", screen.text());
    screen.keys("N");
    assert!(line(&screen.text(), "cursor").contains("microbatch 0 on"));
    screen.keys("0");
    assert!(!screen.text().contains("shown:"));
    screen.keys("+++");
    assert!(line(&screen.text(), "shown:").contains("12.5%"));
    screen.key(KeyCode::Right, KeyModifiers::SHIFT);
    let moved = line(&screen.text(), "cursor");
    press(&mut screen, KeyCode::Right);
    assert_ne!(line(&screen.text(), "cursor"), moved);
    screen.keys("---");
    assert!(!screen.text().contains("shown:"));
    screen.keys("]");
    assert!(line(&screen.text(), "per iteration").contains("GPipe"));
}

#[test]
fn the_workload_shows_nodes_edges_and_where_it_comes_from() {
    let mut screen = screen(request(tiny()));
    screen.focus(Focus::View);
    screen.keys("7");
    let text = screen.text();
    assert!(text.contains("left branch") && text.contains("no recompute"), "{text}");
    screen.keys("s");
    assert!(screen.text().contains("per microbatch"));
    screen.keys("s");
    let findings = workload::lint::lint(&tiny());
    let text = screen.text();
    assert!(text.contains(&format!("▸ {} finding", findings.len())), "{text}");
    for finding in findings.iter().take(1) {
        let beginning: String = finding.what.chars().take(30).collect();
        assert!(text.contains(&beginning), "{beginning} in\n{text}");
    }
    for _ in 0..3 {
        if screen.text().contains("Made by") {
            break;
        }
        screen.keys("s");
    }
    let text = screen.text();
    assert!(text.contains("plantui generate tiny-branch") && text.contains("It assumes"), "{text}");
}

#[test]
fn help_and_palette_know_every_action() {
    let mut screen = builtin();
    screen.keys("?zoom");
    let text = screen.text();
    assert!(text.contains("Zoom in") && !text.contains("Fold left panel"), "{text}");
    press(&mut screen, KeyCode::Esc);
    screen.keys(":timeline");
    press(&mut screen, KeyCode::Enter);
    assert_eq!(screen.view(), View::Timeline);
    screen.keys(":xyzzy");
    assert!(screen.text().contains("no such name"));
    press(&mut screen, KeyCode::Esc);
    screen.keys(":quit");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.quit);
}

#[test]
fn the_timeline_plays_what_the_plan_can_and_marks_its_critical_path() {
    let mut screen = screen(piper(Arc::new(workload::builtin())));
    screen.keys("4");
    let text = screen.text();
    assert!(text.contains("x marks the critical path: backward") && !text.contains('◆'), "{text}");
    screen.keys("x");
    let text = screen.text();
    assert!(text.contains("◆ critical path: backward") && text.matches('◆').count() > 1, "{text}");
    screen.keys("x");
    // Its stages have unequal replicas: neither interleaving nor ZB-V can run them.
    let mut simulated = vec![];
    for _ in 0..5 {
        let text = screen.text();
        // The last lines tell of those that are left out, with the whole reason and what plans one of them.
        let last: Vec<&str> = text.lines().skip(33).flat_map(str::split_whitespace).collect();
        let told = last.join(" ");
        let reason = ["left out: ", "interleaved", "v plans for one of them"];
        assert!(simulated.is_empty() || reason.iter().all(|part| told.contains(part)) && !told.contains('…'), "{told}");
        let figures = line(&text, "per iteration");
        let name =
            ["eager 1F1B", "1F1B", "GPipe", "ZB-H1", "inference"].into_iter().find(|name| figures.contains(name));
        simulated.push(name.unwrap_or_else(|| panic!("{text}")));
        screen.keys("]");
    }
    assert_eq!(simulated, ["1F1B", "GPipe", "eager 1F1B", "ZB-H1", "inference"]);
    assert!(screen.text().contains("1F1B"));
}

#[test]
fn the_panel_folds_and_comes_back() {
    let mut screen = builtin();
    press(&mut screen, KeyCode::F(1));
    let text = screen.text();
    assert!(!text.contains("Options") && text.contains("64 devices · 8 GiB"), "{text}");
    press(&mut screen, KeyCode::F(1));
    assert!(screen.text().contains("Options"));
    // On a narrow screen the panel is there while it has the focus.
    screen.focus(Focus::View);
    press(&mut screen, KeyCode::F(1));
    screen.resize(80, 24);
    assert!(!screen.text().contains("Options"));
    press(&mut screen, KeyCode::Tab);
    assert!(screen.text().contains("Options"));
    press(&mut screen, KeyCode::Esc);
    assert!(!screen.text().contains("Options"));
}

#[test]
fn what_is_copied_is_the_plan_and_checks_out() {
    let mut screen = screen(request(tiny()));
    screen.keys("C");
    let text = screen.clipboard.clone().expect("something was copied");
    let workload = tiny();
    let loaded = family::read::read(&workload, &text, "clipboard").unwrap();
    let limits = plantui::family::resolve(&workload, &Default::default()).unwrap();
    let score = family::check(&workload, &limits, &loaded.plan);
    assert!(score.is_valid());
    let claimed = loaded.claims.value.expect("a plan says what it is worth");
    assert!((score.value - claimed).abs() <= 1e-9 * claimed);
}

#[test]
fn a_plan_leaves_as_the_flags_of_an_engine() {
    let mut screen = screen(piper(Arc::new(workload::builtin())));
    screen.keys("e");
    let mut seen = vec![];
    for _ in 0..12 {
        press(&mut screen, KeyCode::Down);
        let text = screen.text();
        let title = text.lines().find_map(|line| line.split_once("● ")).map(|(_, title)| title.trim().to_string());
        seen.extend(title);
        if text.contains("● Megatron-LM") {
            // Stages of different degrees: what is lost stands above the flags.
            assert!(text.contains("# not expressed") && text.contains("nearest plan it can run"), "{text}");
            assert!(text.contains("bert32a100.piper.megatron.sh"), "{text}");
            return;
        }
    }
    panic!("Megatron-LM is not among {seen:?}");
}

#[test]
fn an_export_asks_before_it_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.json");
    let mut screen = screen(piper(tiny()));
    let type_path = |screen: &mut Offscreen| {
        screen.keys("e");
        screen.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
        screen.keys(path.to_str().unwrap());
        press(screen, KeyCode::Enter);
    };
    type_path(&mut screen);
    assert!(screen.text().contains("written to"), "{}", screen.text());
    let first = fs::read_to_string(&path).unwrap();
    assert!(first.contains("plantui.plan/1") && first.contains("simulation"));
    fs::write(&path, "mine").unwrap();
    type_path(&mut screen);
    assert!(screen.text().contains("Enter replaces it"), "{}", screen.text());
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    press(&mut screen, KeyCode::Enter);
    assert_eq!(fs::read_to_string(&path).unwrap(), first);
    // Another format has another preview and another proposed name.
    screen.keys("e");
    for _ in 0..20 {
        press(&mut screen, KeyCode::Down);
        if screen.text().contains("● Chrome trace") {
            break;
        }
    }
    let text = screen.text();
    assert!(text.contains("displayTimeUnit") && text.contains("tiny-branch.piper.trace.json"), "{text}");
}

#[test]
fn another_workload_is_opened_and_a_bad_one_is_refused_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.json");
    fs::write(&bad, "{\"nodes\": 3}").unwrap();
    let mut screen = builtin();
    screen.keys("o");
    screen.keys(bad.to_str().unwrap());
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("Open a workload") && text.contains('✗'), "{text}");
    screen.key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/tiny-branch.json");
    screen.keys(good);
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("tiny-branch"), "{text}");
    assert!(text.contains("of 4 devices"), "{text}");
    assert!(text.contains("loaded tiny-branch; all limits from the file"), "{text}");
    // A file that states none keeps what it needs, and says so; what another file said of memory stays with that.
    screen.keys("o");
    screen.keys(concat!(env!("CARGO_MANIFEST_DIR"), "/inputs/bert32-layers.txt"));
    press(&mut screen, KeyCode::Enter);
    let text = screen.text();
    assert!(text.contains("loaded bert32-layers; kept devices 4; the file states nothing; "), "{text}");
    assert!(text.contains("memory is taken as 16 GB") || text.contains("batch is assumed to be 128"), "{text}");
}

#[test]
fn the_mouse_selects_steps_and_scrolls() {
    let mut screen = builtin();
    let down = MouseEventKind::Down(MouseButton::Left);
    let (x, y) = find(&mut screen, "3 Devices");
    mouse(&mut screen, down, x, y);
    assert_eq!(screen.view(), View::Devices);
    let (_, y) = find(&mut screen, "devices             64");
    let line = screen.text().lines().nth(usize::from(y)).unwrap().to_string();
    let step = line.chars().position(|c| c == '▸').unwrap() as u16;
    mouse(&mut screen, down, step, y);
    assert!(screen.text().contains("of 65 devices"), "{}", screen.text());
    let (x, y) = find(&mut screen, "4 Timeline");
    mouse(&mut screen, down, x, y);
    screen.draw();
    let before = screen.text();
    let (x, y) = find(&mut screen, "per iteration");
    mouse(&mut screen, MouseEventKind::ScrollUp, x + 20, y + 9);
    assert_ne!(screen.text(), before, "the wheel zooms");
    mouse(&mut screen, down, x + 30, y + 9);
    assert!(!line_of_cursor(&mut screen).contains("cursor 0 s"));
}

fn line_of_cursor(screen: &mut Offscreen) -> String {
    line(&screen.text(), "cursor ")
}

#[test]
fn control_c_quits_from_anywhere() {
    for prelude in ["", "?", ":", "e", "o", "/"] {
        let mut screen = builtin();
        screen.focus(Focus::View);
        screen.keys(prelude);
        screen.key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(screen.quit, "after {prelude:?}");
    }
}

#[test]
fn the_preview_of_an_export_scrolls() {
    let mut screen = stages(request(Arc::new(workload::builtin())), 80, 24);
    screen.keys("e");
    let top = screen.text();
    press(&mut screen, KeyCode::PageDown);
    let further = screen.text();
    assert!(top.contains("plantui.plan/1") && !further.contains("plantui.plan/1"), "{further}");
    press(&mut screen, KeyCode::PageUp);
    assert_eq!(screen.text(), top);
}
