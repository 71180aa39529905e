//! Compare: rows, pins, two plans side by side, the way to the other views and back.

use std::{fs, sync::Arc, time::Duration};

use plantui::{
    cluster::LimitKind,
    planner,
    simulate::Schedule,
    study::{columns::Column, compare},
    tui::{Focus, Offscreen, View},
    workload,
};
use ratatui::crossterm::event::{Event, KeyCode, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::{line, piper, placement::placement, planners, press, request, screen, tiny};

/// The table over the six-node example.
fn table() -> Offscreen {
    let mut screen = screen(piper(tiny()));
    // Without the left panel, which has names of planners, too.
    press(&mut screen, KeyCode::F(1));
    screen.keys("5");
    screen
}

/// The table over the planners of the tests, which get a moment each.
fn staged() -> Offscreen {
    let mut request = request(tiny());
    request.planners = &planners::ALL;
    request.planner = "one".into();
    request.overrides.set(LimitKind::Memory, Some(8e9));
    request.deadline = Some(Duration::from_millis(30));
    let mut screen = screen(request);
    press(&mut screen, KeyCode::F(1));
    screen.keys("5");
    screen
}

/// Turns the selected limit at the left, which is the number of devices, down.
fn fewer_devices(screen: &mut Offscreen) {
    screen.focus(Focus::Panel);
    press(screen, KeyCode::Left);
    screen.focus(Focus::View);
}

/// Two devices, on which nothing fits.
fn too_few_devices(screen: &mut Offscreen) {
    screen.keys(":devices 2");
    press(screen, KeyCode::Enter);
    screen.focus(Focus::View);
}

/// The first line that has a text in it, from the top.
fn position(text: &str, needle: &str) -> usize {
    text.lines().position(|line| line.contains(needle)).unwrap_or_else(|| panic!("no `{needle}` in\n{text}"))
}

#[test]
fn the_plan_that_is_shown_stands_on_the_table_unasked() {
    let mut screen = table();
    screen.resize(160, 40);
    let text = screen.text();
    assert!(line(&text, "all simulated").contains("all simulated as 1F1B, "), "{text}");
    let row = line(&text, "Piper ◂");
    assert!(row.contains("26.00 ms") && row.contains("proven"), "{row}");
    assert!(line(&text, "runs every planner").contains("10 s each"), "{text}");
    assert!(line(&text, "cannot plan this workload").contains("planners"), "{text}");
}

#[test]
fn every_planner_that_can_has_the_figures_of_the_command_line() {
    let mut screen = table();
    screen.resize(220, 60);
    screen.keys("a");
    let text = screen.text();
    let limits = plantui::family::resolve(&tiny(), &plantui::cluster::GivenLimits::default()).unwrap();
    let mut seen = 0;
    for &planner in planner::all().iter().filter(|planner| planner.can_plan(&tiny()).is_ok() && planner.stands_alone())
    {
        let search = planner::Search::default();
        let options = planner::Options::defaults(planner.options());
        let problem = planner::Problem { workload: tiny(), limits: limits.clone(), options };
        let entry = compare::planned(planner, problem, Schedule::ALL[0], &search, std::clone::Clone::clone);
        let name = planner.info().name;
        let row = text
            .lines()
            .skip(1)
            .find(|line| line.contains(&format!("{name} ")))
            .unwrap_or_else(|| panic!("{name}\n{text}"));
        seen += 1;
        if entry.value().is_none() {
            let why: String = entry.remarks[0].split(' ').take(3).collect::<Vec<_>>().join(" ");
            assert!(row.contains(&why), "the planner's own reason, {why}: {row}");
            continue;
        }
        for column in Column::ALL.into_iter().filter(|column| *column != Column::Planning) {
            // The title says that objectives are of a sample.
            let cell = match (column, column.figure(&entry)) {
                // Memory has the unit of the limit.
                (Column::Memory, Some(bytes)) => plantui::units::bytes_beside(bytes, limits.memory_limit()),
                _ => column.cell(&entry).replace("/sample", ""),
            };
            assert!(row.contains(&cell), "{name}: {column:?} {cell} in {row}");
        }
    }
    assert!(seen > 2);
    // The fastest has a sign, and stands first as the table is sorted by simulated time.
    assert_eq!(text.lines().filter(|line| line.contains('★') && !line.contains("★ fastest")).count(), 1);
    let first = text.lines().nth(position(&text, "samp/s") + 1).unwrap();
    assert!(first.contains('★'), "{text}");
    screen.keys("a");
    assert!(screen.text().contains("all suitable planners have planned"));
}

#[test]
fn planners_that_fail_refuse_or_run_out_of_time_say_so() {
    let mut screen = staged();
    assert!(screen.text().contains("30.00 ms each"), "{}", screen.text());
    screen.keys("a");
    let text = screen.text();
    let failed = line(&text, "The panicking one");
    assert!(
        failed.contains('✗') && failed.contains("a bug of plantui, please report it: planner panicking panicked"),
        "{failed}"
    );
    // The best that the endless one had when its time was up.
    assert!(line(&text, "The endless one").contains("54.00 ms"), "{text}");
    press(&mut screen, KeyCode::End);
    press(&mut screen, KeyCode::Enter);
    assert!(line(&screen.text(), "The refusing one: ").contains("no moon"), "{}", screen.text());
    press(&mut screen, KeyCode::Enter);
    assert!(!screen.text().contains("The refusing one: "), "{}", screen.text());
}

#[test]
fn a_changed_limit_makes_rows_old_until_they_are_asked_again() {
    let mut screen = table();
    screen.keys("a");
    assert!(!screen.text().contains('○'));
    fewer_devices(&mut screen);
    let text = screen.text();
    let row = line(&text, "Equal partition");
    assert!(row.contains('○'), "{row}");
    assert!(!line(&text, "Piper ◂").contains('○'), "the plan at the left is planned anew:\n{text}");
    screen.keys("a");
    assert!(!screen.text().contains('○'), "{}", screen.text());
}

#[test]
fn pins_keep_their_limits_and_figures_over_every_change() {
    let mut screen = table();
    screen.keys("2p");
    assert!(screen.text().contains("pinned as `Piper: 4 devices"), "{}", screen.text());
    screen.keys("p");
    assert!(screen.text().contains("already pinned"));
    screen.keys("5");
    screen.resize(160, 40);
    let pin = line(&screen.text(), "Piper: 4 devices");
    too_few_devices(&mut screen);
    let text = screen.text();
    let kept = line(&text, "Piper: 4 devices");
    assert!(kept.contains('≠'), "{kept}");
    assert_eq!(kept.replace(['≠', '▌', '★', '◂', ' '], ""), pin.replace(['≠', '▌', '★', '◂', ' '], ""));
    // What it says about the limits in force, and a name of one's own.
    for _ in 0..5 {
        if screen.text().contains("pin, by Piper") {
            break;
        }
        press(&mut screen, KeyCode::Down);
    }
    assert!(screen.text().contains("not valid under the limits at the left"), "{}", screen.text());
    screen.keys("n");
    for _ in 0..60 {
        press(&mut screen, KeyCode::Backspace);
    }
    screen.keys("four of them");
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("four of them"), "{}", screen.text());
    screen.keys("p");
    let text = screen.text();
    assert!(text.contains("`four of them` is no longer pinned"), "{text}");
    assert_eq!(text.matches("four of them").count(), 1, "{text}");
}

/// The table with the plan of equal parts opened from it, and the first line before that.
fn visiting() -> (Offscreen, String) {
    let mut screen = table();
    screen.keys("a");
    let header = screen.text().lines().next().unwrap().to_string();
    for _ in 0..30 {
        if line(&screen.text(), "▌").contains("Equal partition") {
            break;
        }
        press(&mut screen, KeyCode::Down);
    }
    press(&mut screen, KeyCode::Enter);
    (screen, header)
}

#[test]
fn a_plan_of_the_table_is_shown_in_the_other_views_and_one_key_leads_back() {
    let (mut screen, header) = visiting();
    assert_eq!(screen.view(), View::Stages);
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("Equal partition"), "{text}");
    assert!(text.lines().last().unwrap().contains("back to Compare"), "{text}");
    screen.keys("4");
    assert!(screen.text().contains("1F1B"), "{}", screen.text());
    screen.keys("5");
    assert!(screen.text().contains("Equal partition ◂"), "{}", screen.text());
    screen.keys("2");
    press(&mut screen, KeyCode::Esc);
    assert_eq!(screen.view(), View::Compare);
    assert!(screen.text().contains("Piper ◂"), "{}", screen.text());
    assert_eq!(screen.text().lines().next().unwrap(), header);
    // A new plan ends the visit.
    press(&mut screen, KeyCode::Enter);
    screen.focus(Focus::Panel);
    press(&mut screen, KeyCode::Left);
    assert!(screen.text().lines().next().unwrap().contains("Piper"));
    assert!(!screen.text().contains("back to Compare"));
}

#[test]
fn a_visited_plan_is_edited_from_and_two_keys_lead_back() {
    let (mut screen, header) = visiting();
    let devices = |text: &str| text.lines().skip(4).take(10).filter(|line| line.contains('●')).count();
    let visited = devices(&screen.text());
    screen.keys("r");
    let text = screen.text();
    assert!(text.contains("edited: ") && text.contains("er than Piper's"), "{text}");
    assert!(!text.contains("back to Compare"), "an edit ends the visit:\n{text}");
    screen.keys("u");
    let text = screen.text();
    assert!(text.contains("now: Equal partition, unchanged"), "{text}");
    assert_eq!(devices(&text), visited, "{text}");
    screen.keys("U0");
    assert_eq!(screen.text().lines().next().unwrap(), header);
    press(&mut screen, KeyCode::Esc);
    assert_eq!(screen.view(), View::Stages);
    assert_eq!(screen.text().lines().next().unwrap(), header);
}

#[test]
fn a_visit_leaves_the_search_alone() {
    let mut screen = table();
    screen.keys("2p5");
    fewer_devices(&mut screen);
    screen.hold();
    too_few_devices(&mut screen);
    for _ in 0..30 {
        if line(&screen.text(), "▌").contains("Piper: 4 devices") {
            break;
        }
        press(&mut screen, KeyCode::Down);
    }
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("back to Compare"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);
    assert_eq!(screen.view(), View::Compare);
    assert!(!screen.search().expect("the search goes on").cancelled());
    assert_eq!(screen.release(), 0, "nothing took its place");
    screen.keys("2");
    assert!(screen.text().contains("No feasible plan on 2 devices"), "{}", screen.text());
}

#[test]
fn plans_with_too_few_or_too_many_stages_are_refused_and_never_break_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let workload = workload::load(std::path::Path::new("inputs/alexnet-operators.json")).expect("it is valid");
    let native = planner::all().iter().find(|planner| planner.is_native(&workload)).expect("one splits operators");
    let mut request = request(Arc::new(workload));
    request.planner = native.info().id.into();
    let mut screen = screen(request);
    press(&mut screen, KeyCode::F(1));
    screen.keys("C");
    let mut plan: serde_json::Value = serde_json::from_str(&screen.clipboard.take().expect("it was copied")).unwrap();
    // What the file says of the whole plan would contradict what becomes of it.
    let fields = ["schema", "workload", "limits", "stages", "operators"];
    plan.as_object_mut().unwrap().retain(|field, _| fields.contains(&field.as_str()));
    let path = folder.path().join("mine.json");
    let open = |screen: &mut Offscreen, plan: &serde_json::Value| {
        fs::write(&path, plan.to_string()).unwrap();
        screen.keys(&format!("1o{}", path.display()));
        press(screen, KeyCode::Enter);
    };
    let stage = plan["stages"][0].clone();
    let nodes = stage["nodes"].as_array().unwrap();
    let part = |nodes: &[serde_json::Value]| {
        let mut choices = stage["choices"].as_object().unwrap().clone();
        choices.retain(|id, _| nodes.iter().any(|node| id.parse() == Ok(node.as_i64().unwrap())));
        let degree = &stage["tensor_parallel"];
        serde_json::json!({"nodes": nodes, "data_parallel": 1, "tensor_parallel": degree, "choices": choices})
    };
    plan["stages"] = serde_json::json!([part(&nodes[..2]), part(&nodes[2..])]);
    open(&mut screen, &plan);
    assert!(screen.text().contains("pinned as `mine.json`"), "{}", screen.text());
    press(&mut screen, KeyCode::Enter);
    for key in [KeyCode::End, KeyCode::Home] {
        press(&mut screen, key);
        for edit in "][dDtTrRMs".chars() {
            screen.keys(&edit.to_string());
            screen.draw();
        }
    }
    screen.keys("s");
    assert!(screen.text().contains("no such stage"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);
    plan["stages"] = serde_json::json!([]);
    plan.as_object_mut().unwrap().remove("operators");
    open(&mut screen, &plan);
    assert!(screen.text().contains("stages is empty"), "{}", screen.text());
}

#[test]
fn two_marked_plans_stand_side_by_side() {
    let mut screen = screen(request(Arc::new(workload::builtin())));
    press(&mut screen, KeyCode::F(1));
    screen.keys("5v");
    assert!(screen.text().contains("mark two plans"), "{}", screen.text());
    screen.keys("a");
    press(&mut screen, KeyCode::Home);
    screen.keys(" ");
    press(&mut screen, KeyCode::Down);
    screen.keys(" ");
    assert_eq!(screen.text().matches('◆').count(), 2);
    screen.keys("v");
    let text = screen.text();
    let (first, second) = (line(&text, "  A "), line(&text, "  B "));
    assert!(first.contains("Joint") && second.contains('%'), "{text}");
    assert!(text.contains("rows 1 to"), "{text}");
    screen.keys(" ");
    assert!(line(&screen.text(), "  B ").contains("Joint"), "{}", screen.text());
    press(&mut screen, KeyCode::Esc);
    assert!(screen.text().contains("runs every planner"));
}

#[test]
fn the_order_follows_keys_and_clicks_and_is_signed() {
    let mut screen = table();
    screen.keys("a");
    assert!(line(&screen.text(), " plan  ").contains("time ▴"));
    screen.keys(">");
    assert!(line(&screen.text(), " plan  ").contains("obj/sample ▴"));
    screen.keys("r");
    assert!(line(&screen.text(), " plan  ").contains("obj/sample ▾"));
    screen.keys("<<");
    let text = screen.text();
    assert!(line(&text, " plan  ").contains("planned in ▴"), "a column that is sorted by is seen:\n{text}");
    let row = position(&text, " plan  ") as u16;
    let column = text.lines().nth(row.into()).unwrap().split("peak").next().unwrap().chars().count() as u16;
    let kind = MouseEventKind::Down(MouseButton::Left);
    screen.event(&Event::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
    assert!(screen.text().contains("peak ▴"), "{}", screen.text());
}

#[test]
fn objectives_of_their_own_stand_in_groups_of_their_own() {
    let mut screen = Offscreen::new(placement("placement-dp"), 120, 45).unwrap();
    press(&mut screen, KeyCode::F(1));
    screen.keys("5a");
    let text = screen.text();
    let (load, latency) =
        (position(&text, "objective: max load"), position(&text, "one sample, simulated; objective: latency"));
    let (busiest, alone) = (position(&text, "Placement: DP ◂"), position(&text, "Latency: max-load DP"));
    assert!(load < busiest && busiest < latency && latency < alone, "{text}");
    // A sample alone is not measured against batches.
    assert!(!line(&text, "Latency: max-load DP").contains('★'), "{text}");
}

#[test]
fn another_schedule_plays_every_row_again() {
    let mut screen = screen(request(Arc::new(workload::builtin())));
    press(&mut screen, KeyCode::F(1));
    screen.resize(160, 40);
    screen.keys("5a");
    let before = screen.text();
    screen.keys("]");
    let text = screen.text();
    assert!(text.contains("all simulated as GPipe"), "{text}");
    assert!(!text.contains('○'), "{text}");
    assert_ne!(line(&before, "Equal partition"), line(&text, "Equal partition"));
}

#[test]
fn plans_from_files_are_pinned_if_they_belong_to_the_workload() {
    let folder = tempfile::tempdir().unwrap();
    let mut screen = table();
    screen.keys("C");
    let plan = screen.clipboard.take().expect("the plan was copied");
    let path = folder.path().join("mine.json");
    fs::write(&path, &plan).unwrap();
    screen.keys(&format!("1o{}", path.display()));
    press(&mut screen, KeyCode::Enter);
    assert_eq!(screen.view(), View::Compare);
    assert!(screen.text().contains("pinned as `mine.json`"), "{}", screen.text());
    let (own, read) = (line(&screen.text(), "Piper ◂"), line(&screen.text(), "mine.json  "));
    let time = own.split_whitespace().find(|word| word.contains('.')).unwrap();
    assert!(read.contains(time), "{own}\n{read}");
    // A plan of another workload is refused with the reason.
    let other = folder.path().join("other.json");
    fs::write(&other, plan.replace("\"nodes\": 6,", "\"nodes\": 7,")).unwrap();
    screen.keys(&format!("o{}", other.display()));
    press(&mut screen, KeyCode::Enter);
    assert!(screen.text().contains("workload.nodes is 7, but tiny-branch has 6"), "{}", screen.text());
}

#[test]
fn the_table_fits_any_size_with_whole_columns() {
    let mut screen = table();
    screen.keys("a2p5");
    press(&mut screen, KeyCode::Home);
    screen.keys(" ");
    press(&mut screen, KeyCode::Down);
    screen.keys(" ");
    for keys in ["", "v"] {
        screen.keys(keys);
        for width in [60, 70, 80, 99, 100, 120, 163, 200, 220] {
            for height in [16, 20, 24, 36, 70] {
                screen.resize(width, height);
                let text = screen.text();
                if keys.is_empty() {
                    let titles = line(&text, "time ▴");
                    let whole = Column::ALL
                        .iter()
                        .filter(|column| titles.contains(column.title().get(..4).unwrap_or("gap")))
                        .count();
                    let words = titles.split_whitespace().filter(|word| *word != "▴").count();
                    assert!(whole >= 2 && words >= whole, "{width} x {height}:\n{text}");
                    assert!(!titles.contains('…'), "{titles}");
                    line(&text, "Piper ◂");
                } else {
                    line(&text, "rows 1 to");
                }
            }
        }
    }
}
