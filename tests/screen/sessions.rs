//! What comes back when a workload is shown again.

use std::{path::Path, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    tui::{Offscreen, ScreenRequest, View},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{press, request};

/// A request for a file, with sessions in a folder of the test's own.
fn kept(folder: &Path, file: &str) -> ScreenRequest {
    let path = folder.join(file);
    if !path.exists() {
        std::fs::copy("inputs/tiny-branch.json", &path).expect("the temporary folder takes files");
    }
    let mut request = request(Arc::new(workload::load(&path).expect("it is valid")));
    request.state_directory = Some(folder.join("state"));
    request
}

/// A screen as it starts, in whatever view that is.
fn screen(request: ScreenRequest) -> Offscreen {
    Offscreen::new(request, 120, 36).expect("the request can be met")
}

/// The devices that the left panel shows.
fn devices(text: &str) -> String {
    let row = text.lines().find(|line| line.contains("devices ") && line.contains('◂')).expect("there is such a row");
    let words: Vec<&str> = row.split_whitespace().collect();
    let at = words.iter().position(|word| word.ends_with("devices")).expect("it is in the row");
    words[at + 1].into()
}

/// Changes a limit, an option, the schedule and the view, and leaves.
fn leave_changed(folder: &Path) -> String {
    let mut first = screen(kept(folder, "a.json"));
    assert!(!first.text().contains("last time"), "{}", first.text());
    press(&mut first, KeyCode::Right);
    first.keys("4");
    press(&mut first, KeyCode::Tab);
    first.keys("]");
    let text = first.text();
    first.keys("q");
    assert!(first.quit && first.unkept.is_none());
    text
}

#[test]
fn limits_schedule_and_view_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let before = leave_changed(folder.path());
    let mut again = screen(kept(folder.path(), "a.json"));
    let after = again.text();
    assert_eq!(again.view(), View::Timeline);
    assert!(after.contains("restored from the last session; plantui --fresh starts without it"), "{after}");
    assert!(before.contains("GPipe") && after.contains("GPipe"), "{after}");
    assert_eq!(devices(&after), "5");
    // Back to what the file says, not to what was restored.
    press(&mut again, KeyCode::Backspace);
    assert_eq!(devices(&again.text()), "4");
}

#[test]
fn a_schedule_edited_by_hand_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut request = kept(folder.path(), "a.json");
    request.planner = "equal-partition".into();
    let mut first = screen(request);
    first.keys("4");
    press(&mut first, KeyCode::Tab);
    first.keys("E]");
    assert!(first.text().contains("1 edit after"), "{}", first.text());
    // Two forward passes trade places on one rank, and on the others.
    for _ in 0..10 {
        if first.text().contains("✓ it runs") {
            break;
        }
        press(&mut first, KeyCode::Down);
        press(&mut first, KeyCode::Home);
        first.keys("]");
    }
    press(&mut first, KeyCode::Enter);
    assert!(first.text().contains("your schedule"), "{}", first.text());
    first.keys("q");
    let mut again = screen(kept(folder.path(), "a.json"));
    again.keys("4");
    assert!(again.text().contains("your schedule"), "{}", again.text());
}

#[test]
fn fresh_begins_anew_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    leave_changed(folder.path());
    let mut fresh = kept(folder.path(), "a.json");
    fresh.fresh = true;
    let mut fresh = screen(fresh);
    assert_eq!(fresh.view(), View::Overview);
    assert_eq!(devices(&fresh.text()), "4");
    let mut asked = kept(folder.path(), "a.json");
    asked.overrides = GivenLimits::default().with(LimitKind::Devices, 3);
    asked.planner = "equal-partition".into();
    asked.planner_asked = true;
    let mut asked = screen(asked);
    let text = asked.text();
    assert_eq!(devices(&text), "3");
    assert!(text.contains("● Equal partition"), "{text}");
    assert_eq!(asked.view(), View::Timeline, "what no flag asks for still comes back");
}

#[test]
fn a_broken_file_of_sessions_is_told_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::write(state.join("sessions.json"), "not ours").unwrap();
    let mut shown = screen(kept(folder.path(), "a.json"));
    let text = shown.text();
    assert!(text.contains("≈ within") && text.contains("sessions.json"), "{text}");
    shown.keys("qq");
    assert!(shown.unkept.is_some_and(|why| why.contains("remove the file")));
    assert_eq!(std::fs::read_to_string(state.join("sessions.json")).unwrap(), "not ours");
}

#[test]
fn a_session_that_no_longer_fits_is_taken_as_far_as_it_does() {
    let folder = tempfile::tempdir().unwrap();
    leave_changed(folder.path());
    let file = folder.path().join("state/sessions.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text.replace("\"joint\"", "\"gone\"").replace("\"timeline\"", "\"hologram\"");
    let text = text.replace("\"options\": {}", "\"options\": {\"joint\": [\"recompute=never\", \"no-such=1\"]}");
    std::fs::write(&file, &text).unwrap();
    let mut shown = screen(kept(folder.path(), "a.json"));
    let text = shown.text();
    assert_eq!(shown.view(), View::Overview);
    assert_eq!(devices(&text), "5");
    assert!(text.contains("never"), "{text}");
}

#[test]
fn the_file_before_is_first_in_the_list_and_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    leave_changed(folder.path());
    let mut shown = screen(kept(folder.path(), "b.json"));
    assert_eq!(shown.view(), View::Overview);
    shown.keys("o");
    let text = shown.text();
    let row = text.lines().find(|line| line.contains("▌ ") && line.contains("a.json")).unwrap_or_default();
    assert!(row.contains("recent"), "{text}");
    press(&mut shown, KeyCode::Enter);
    assert_eq!(shown.view(), View::Timeline);
    assert_eq!(devices(&shown.text()), "5");
}

/// A request for a model to be trained, with sessions in a folder of the test's own.
fn trained(folder: &Path) -> ScreenRequest {
    let path = folder.join("model.json");
    if !path.exists() {
        let model = workload::load(Path::new("gpt2")).expect("a published name");
        std::fs::write(&path, workload::convert::text(&model)).expect("the temporary folder takes files");
    }
    let mut request = request(Arc::new(workload::load(&path).expect("it is valid")));
    request.overrides = GivenLimits::default().with(LimitKind::Devices, 8).with(LimitKind::Batch, 8);
    request.planner = "joint".into();
    request.state_directory = Some(folder.join("state"));
    request
}

/// The value that the left panel shows in a row of this name.
fn row(screen: &mut Offscreen, label: &str) -> String {
    let text = screen.text();
    let rows = text.lines().map(|line| line.trim_start_matches(['▌', ' ']).replace(['◂', '▸'], " "));
    let mut values = rows.filter_map(|line| Some(line.strip_prefix(label)?.split_whitespace().next()?.to_string()));
    values.next_back().unwrap_or_else(|| panic!("no {label} in\n{text}"))
}

#[test]
fn dials_of_a_model_come_back_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = screen(trained(folder.path()));
    let length = row(&mut first, "sequence");
    // Up from the first limit, round to the rows behind the last.
    for _ in 0..30 {
        if first.text().contains("▌sequence") {
            break;
        }
        press(&mut first, KeyCode::Down);
    }
    press(&mut first, KeyCode::Right);
    let longer = row(&mut first, "sequence");
    assert_ne!(longer, length);
    press(&mut first, KeyCode::Up);
    press(&mut first, KeyCode::Right);
    let hardware = row(&mut first, "hardware");
    assert_ne!(hardware, "h100");
    let memory = row(&mut first, "memory");
    first.keys("qq");
    assert!(first.quit && first.unkept.is_none());

    let mut again = screen(trained(folder.path()));
    assert!(again.text().contains("restored from the last session"), "{}", again.text());
    for (label, left) in [("sequence", &longer), ("hardware", &hardware), ("memory", &memory)] {
        assert_eq!(row(&mut again, label), *left, "{label}");
    }
    // Back to what the file says, not to what was restored.
    for _ in 0..30 {
        if again.text().contains("▌sequence") {
            break;
        }
        press(&mut again, KeyCode::Down);
    }
    press(&mut again, KeyCode::Backspace);
    assert_eq!(row(&mut again, "sequence"), length);

    let mut asked = trained(folder.path());
    asked.dials_asked = vec!["hardware".into()];
    let mut asked = screen(asked);
    assert_eq!(row(&mut asked, "hardware"), "h100");
    assert_eq!(row(&mut asked, "sequence"), longer, "what no flag asks for still comes back");
    let mut fresh = screen(ScreenRequest { fresh: true, ..trained(folder.path()) });
    assert_eq!((row(&mut fresh, "hardware"), row(&mut fresh, "sequence")), ("h100".into(), length));
}
