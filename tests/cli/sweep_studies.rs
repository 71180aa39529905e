//! `plantui sweep --study`: every experiment of the papers as a command, and what Ctrl-C leaves of a sweep.

use std::{fs, time::Duration};

use plantui::study::sweep::papers;

use super::{Folder, argument, plantui, reference};

/// Runs a study; gives its table on disk, and what was printed.
fn study(id: &str, root: &str, folder: &Folder, more: &[&str]) -> (String, String) {
    let table = argument(&folder.path(&format!("{id}.csv")));
    let mut command = plantui();
    command.args(["sweep", "--study", id, root, "--resume", &table]).args(more).timeout(Duration::from_secs(300));
    let output = command.assert().get_output().clone();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{id}: {}", String::from_utf8_lossy(&output.stderr));
    (fs::read_to_string(table).unwrap(), String::from_utf8(output.stdout).unwrap())
}

/// With next to no time for each point every study has a row for every point, a chart, and is taken up again as it is.
#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn every_study_is_a_command() {
    let root = reference::root();
    let root = root.to_str().expect("the folder's name is UTF-8");
    for (id, points, head) in [
        ("piper-figure-1", 224, "time per sample by devices and memory"),
        ("piper-figure-2", 4096, "time per sample by devices and microbatches"),
        ("piper-figure-2-replicas", 1472, "time per sample by most replicas and microbatches"),
        ("piper-figure-3", 160, "planning time by devices and microbatches"),
        ("piper-gnmt", 26, "time per sample by devices and memory"),
        ("piper-resnet", 50, "time per sample by devices and memory"),
        ("placement-throughput", 136, "max load by workload"),
        ("placement-latency", 36, "latency by workload"),
        ("joint-headroom", 1008, "simulated iteration time by devices and microbatches"),
    ] {
        let folder = Folder::new();
        let chart = folder.path("chart.svg");
        let svg = argument(&chart);
        let (table, text) = study(id, root, &folder, &["--deadline", "1ns", "--svg", &svg]);
        assert!(table.starts_with("workload,series,planner,options,devices,"), "{id}: {table}");
        assert_eq!(table.lines().count(), 1 + points, "{id}");
        assert!(text.contains(&format!("{points} points")), "{id}\n{text}");
        // Without a single plan there is no objective to name.
        assert!(text.contains(head) || !table.contains(",optimal,") && !table.contains(",feasible,"), "{id}\n{text}");
        let drawn = fs::read_to_string(&chart).unwrap();
        assert!(
            drawn.starts_with("<svg") && drawn.ends_with("</svg>\n") && drawn.contains("Piper") | drawn.contains("IP")
        );
        // What was stopped is asked again, the rest stays as it is.
        let kept = table.lines().skip(1).filter(|row| !row.contains(",cancelled,")).count();
        let (again, text) = study(id, root, &folder, &["--deadline", "1ns"]);
        assert_eq!(again.lines().count(), table.lines().count(), "{id}");
        assert!(kept == 0 || text.contains(&format!("{points} points, {kept} of them from the file")), "{id}\n{text}");
    }
    assert_eq!(papers::ALL.len(), 9, "every study is tried here");
}

/// One whole study, planned once.
#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn a_study_that_is_whole_is_not_planned_again() {
    let root = reference::root();
    let folder = Folder::new();
    let root = root.to_str().expect("the folder's name is UTF-8");
    let (table, text) = study("piper-resnet", root, &folder, &[]);
    assert!(table.lines().any(|line| line.contains("resnet,Piper,piper,knapsack=greedy,128,")), "{table}");
    assert!(text.contains("time per sample by devices and memory: 50 points\n"), "{text}");
    let (again, text) = study("piper-resnet", root, &folder, &[]);
    assert!(again == table && text.contains("50 points, 50 of them from the file"), "{text}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_writes_what_is_there_and_says_how_to_go_on() {
    use std::{
        process::{Command, Stdio},
        thread,
        time::Instant,
    };
    let folder = Folder::new();
    let table = folder.path("table.csv");
    let child = Command::new(env!("CARGO_BIN_EXE_plantui"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["sweep", "inputs/bert96a100.json", "--devices", "1..4000:+1", "--alone", "--threads", "1", "--resume"])
        .arg(&table)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Once the table is there, the sweep is under way. The minutes are only there to end a test that fails.
    let patience = Instant::now() + Duration::from_secs(120);
    while !table.exists() && Instant::now() < patience {
        thread::sleep(Duration::from_millis(20));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("there is a kill command").success());
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = fs::read_to_string(&table).unwrap().lines().count() - 1;
    assert!((1..4000).contains(&rows), "{rows} points\n{text}");
    assert!(text.contains(&format!("stopped: {} of 4000 points are missing; --resume", 4000 - rows)), "{text}");
    let rows = fs::read_to_string(&table).unwrap();
    let found = [",optimal,", ",feasible,"].iter().any(|status| rows.contains(status));
    assert_eq!(output.status.code(), Some(if found { 0 } else { 3 }), "{text}");
}
