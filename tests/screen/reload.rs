//! A workload whose file changes.

use std::{path::Path, sync::Arc};

use plantui::{
    planner,
    tui::{Focus, Offscreen},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, piper, press, request, screen, tiny};

const TINY: &str = include_str!("../../inputs/tiny-branch.json");

fn shown(file: &Path) -> Offscreen {
    std::fs::write(file, TINY).expect("the temporary folder takes files");
    screen(piper(Arc::new(workload::load(file).expect("it is valid"))))
}

fn read_again(screen: &mut Offscreen) -> String {
    press(screen, KeyCode::F(5));
    screen.text()
}

#[test]
fn what_the_file_says_now_is_planned_and_changed_limits_stay() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.json");
    let mut screen = shown(&file);
    press(&mut screen, KeyCode::Right);
    let before = screen.text();
    assert!(before.contains("6 layers") && before.contains("of 5 devices"), "{before}");
    let changed = TINY.replacen("\"maxMemoryPerDevice\": 1000000000", "\"maxMemoryPerDevice\": 2000000000", 1);
    let changed = changed.replacen("\"maxDevices\": 4", "\"maxDevices\": 6", 1);
    assert_ne!(changed, TINY, "the limits stand otherwise in the file");
    std::fs::write(&file, changed).unwrap();
    let after = read_again(&mut screen);
    assert!(after.contains("read model again") && after.contains("of 5 devices"), "{after}");
    assert!(after.contains("limit 2 GB"), "what was not changed here comes from the file: {after}");
}

#[test]
fn a_broken_file_leaves_the_plan_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.json");
    let mut screen = shown(&file);
    let before = screen.text();
    std::fs::write(&file, &TINY[..TINY.len() / 2]).unwrap();
    let after = read_again(&mut screen);
    assert!(after.contains("not read again, the loaded workload stays") && after.contains("model.json"), "{after}");
    let plan = |text: &str| text.lines().skip(1).take(33).map(str::to_string).collect::<Vec<_>>();
    assert_eq!(plan(&after), plan(&before));
    std::fs::write(&file, TINY).unwrap();
    assert!(read_again(&mut screen).contains("read model again"));
}

#[test]
fn what_has_no_file_cannot_be_read_again() {
    let mut piped = (*tiny()).clone();
    piped.source = "-".into();
    let mut screen = screen(request(Arc::new(piped)));
    assert!(read_again(&mut screen).contains("not a file that could be read again"));
}

/// The table, all planners asked and the plan pinned.
fn compared(file: &Path) -> Offscreen {
    let mut screen = shown(file);
    press(&mut screen, KeyCode::F(1));
    screen.resize(160, 40);
    screen.keys("2p5a");
    screen
}

#[test]
fn no_figure_of_the_old_file_stands_as_a_current_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.json");
    let mut screen = compared(&file);
    let before = screen.text();
    line(&before, "Equal partition");
    let pin = line(&before, "Piper: 4 devices");
    std::fs::write(&file, TINY.replace("\"timePerSample\": 0.0", "\"timePerSample\": 0.1")).unwrap();
    let after = read_again(&mut screen);
    assert!(!after.contains("Equal partition"), "an answer about the old file:\n{after}");
    let time = |row: &str| row.split_whitespace().find(|word| word.contains('.')).map(str::to_string);
    let again = line(&after, "Piper: 4 devices");
    assert_ne!(time(&again), time(&pin), "the pin is measured anew");
    assert!(!again.contains("proven"), "{again}");
    screen.keys("a");
    line(&screen.text(), "Equal partition");
}

#[test]
fn edits_are_measured_anew_or_forgotten_with_their_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.json");
    let mut screen = shown(&file);
    screen.focus(Focus::View);
    screen.keys("s");
    let before = line(&screen.text(), "edited: ");
    std::fs::write(&file, TINY.replace("\"timePerSample\": 0.0", "\"timePerSample\": 0.1")).unwrap();
    let after = read_again(&mut screen);
    assert!(after.contains("the edited plan stays, scored again"), "{after}");
    assert_ne!(line(&after, "edited: "), before);
    // One node less: what was edited has no place in it.
    let mut value: serde_json::Value = serde_json::from_str(TINY).unwrap();
    value["nodes"].as_array_mut().unwrap().pop();
    let last = |edge: &serde_json::Value| edge["destId"] == 5 || edge["sourceId"] == 5;
    value["edges"].as_array_mut().unwrap().retain(|edge| !last(edge));
    let text = value.to_string().replace(",\"syncTimeBw\":{\"5\":0}", ",\"syncTimeBw\":{}");
    std::fs::write(&file, text.replace("{\"5\":8000000}", "{}")).unwrap();
    let after = read_again(&mut screen);
    assert!(after.contains("read model again") && after.contains("5 layers"), "{after}");
    assert!(!after.contains("edited: "), "{after}");
    screen.keys("u");
    assert!(screen.text().contains("no edit to undo"), "{}", screen.text());
}

#[test]
fn the_planner_stays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.json");
    std::fs::write(&file, TINY).unwrap();
    let workload = Arc::new(workload::load(&file).expect("it is valid"));
    let converts =
        |planner: &&&dyn planner::Planner| planner.can_plan(&workload).is_ok() && !planner.is_native(&workload);
    let planner = planner::all().iter().find(converts).expect("some planner plans a converted one").info();
    let mut request = request(workload.clone());
    request.planner = planner.id.into();
    let mut screen = screen(request);
    let header = |text: String| text.lines().next().unwrap_or_default().to_string();
    assert!(header(screen.text()).contains(planner.name), "{}", screen.text());
    assert!(header(read_again(&mut screen)).contains(planner.name), "{}", screen.text());
}
