//! A workload whose file changes.

use std::{path::Path, sync::Arc};

use plantui::{tui::Offscreen, workload};
use ratatui::crossterm::event::KeyCode;

use crate::{press, request, screen, tiny};

const TINY: &str = include_str!("../../inputs/tiny-branch.json");

fn shown(file: &Path) -> Offscreen {
    std::fs::write(file, TINY).expect("the temporary folder takes files");
    screen(request(Arc::new(workload::load(file).expect("it is valid"))))
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
    assert!(before.contains("6 nodes") && before.contains("of 5 devices"), "{before}");
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
    assert!(after.contains("not read again, the old one stays") && after.contains("model.json"), "{after}");
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
    assert!(read_again(&mut screen).contains("no file that could be read again"));
}
