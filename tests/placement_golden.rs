//! Device placement against the published programs: every max-load of `tests/figures/placement.tsv`.

mod common;

use common::reference;
use plantui::{
    planner::{
        Search, Status,
        placement::{
            DeviceKind, Placed, PlacementLimits, Split,
            dp::{self, DpOptions},
            linearise,
        },
    },
    workload::formats::placement::{PlacementFile, read},
};
use std::path::{Path, PathBuf};

/// One value of a published program.
#[derive(Debug, Clone, Copy)]
struct Case {
    input: &'static str,
    algorithm: &'static str,
    value: f64,
    ideals: Option<usize>,
    split: &'static str,
}

fn cases(algorithm: &'static str) -> impl Iterator<Item = Case> {
    let table = include_str!("figures/placement.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    table
        .map(|line| {
            let field: Vec<&str> = line.split('\t').collect();
            let (value, ideals) = (field[2].parse().unwrap(), field[3].parse().ok());
            Case { input: field[0], algorithm: field[1], value, ideals, split: field[5] }
        })
        .filter(move |case| case.algorithm == algorithm || algorithm == "all")
}

fn load(root: &Path, input: &str) -> (PlacementFile, PlacementLimits) {
    let text = std::fs::read_to_string(root.join(input)).unwrap();
    let file = read(&text, input, input).unwrap_or_else(|error| panic!("{error}"));
    let limits = PlacementLimits {
        accelerators: file.accelerators.unwrap(),
        cpus: file.cpus.unwrap(),
        memory_bytes: file.memory_bytes.unwrap(),
    };
    (file, limits)
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

/// The max-load of a result, after its split was found to be complete, within the limits and worth what is claimed.
fn checked(file: &PlacementFile, limits: &PlacementLimits, placed: &Placed, memory: bool) -> f64 {
    let split = placed.split.as_ref().expect("a split");
    let claimed = placed.max_load.unwrap();
    let score = split.score(&file.dag, &file.profile);
    assert!(equal(score.max_load, claimed), "claims {claimed}, is worth {}", score.max_load);
    assert!(split.device_of(file.nodes.len()).iter().all(Option::is_some));
    assert_eq!(split.devices.iter().map(|d| d.nodes.len()).sum::<usize>(), file.nodes.len());
    assert!(split.used(DeviceKind::Accelerator) <= limits.accelerators as usize);
    assert!(split.used(DeviceKind::Cpu) <= limits.cpus as usize);
    if memory {
        assert_eq!(score.over_memory(split, limits.memory_bytes).count(), 0);
        assert!(score.loads.iter().all(|load| load.unsupported == 0));
    }
    claimed
}

#[test]
fn the_dp_meets_every_published_optimum() {
    let Some(root) = reference::root("placement dp") else { return };
    let mut wrong = vec![];
    let (mut count, mut counted) = (0, 0);
    for case in cases("dp-streaming") {
        let (file, limits) = load(&root, case.input);
        let placed = dp::plan(&file.dag, &file.profile, &limits, &DpOptions::default(), &Search::default());
        assert_eq!(placed.status, Status::Optimal, "{case:?}");
        let value = checked(&file, &limits, &placed, true);
        let ideals = placed.counts.iter().find(|(name, _)| *name == "ideals").unwrap().1 as usize;
        println!("{}: {value}, {:?}", case.input, placed.counts);
        count += 1;
        if case.ideals.is_some_and(|theirs| theirs != ideals) || !equal(value, case.value) {
            wrong.push(format!("{case:?}: ours {value}, {ideals} ideals"));
        }
        counted += usize::from(case.ideals.is_some());
    }
    println!("dp: {} of {count} equal, {counted} with their number of ideals", count - wrong.len());
    assert!(count == 24 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_linearised_search_meets_every_published_value() {
    let Some(root) = reference::root("placement dpl") else { return };
    let mut wrong = vec![];
    let mut count = 0;
    for case in cases("dpl") {
        let (file, limits) = load(&root, case.input);
        let placed = linearise::plan(&file.dag, &file.profile, &limits, &DpOptions::default(), &Search::default());
        let value = checked(&file, &limits, &placed, true);
        count += 1;
        if !equal(value, case.value) {
            wrong.push(format!("{case:?}: ours {value}"));
        }
    }
    println!("dpl: {} of {count} equal", count - wrong.len());
    assert!(count == 16 && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The folder of the published programs' splits, beside the reference folder.
fn splits(root: &Path) -> Option<PathBuf> {
    let folder = root.join("../figures/placement-splits");
    if !folder.is_dir() {
        println!("skipped published splits: {} is not there", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn every_published_split_scores_its_published_max_load() {
    let Some(root) = reference::root("placement splits") else { return };
    let Some(folder) = splits(&root) else { return };
    let mut wrong = vec![];
    let mut count = 0;
    for case in cases("all").filter(|case| case.split != "-") {
        let (file, _) = load(&root, case.input);
        let text = std::fs::read_to_string(folder.join(case.split)).unwrap();
        let split = Split::read(&text, case.split, &file.nodes).unwrap();
        let score = split.score(&file.dag, &file.profile);
        count += 1;
        // A solver's own value carries its tolerance for integrality.
        let tolerance = if case.algorithm.starts_with("ip-") { 1e-8 } else { 1e-9 };
        if (score.max_load - case.value).abs() > tolerance * case.value {
            wrong.push(format!("{case:?}: ours {}", score.max_load));
        }
        let written = Split::read(&split.to_json(&file.nodes, &score), "written", &file.nodes).unwrap();
        assert!(equal(written.score(&file.dag, &file.profile).max_load, score.max_load));
    }
    println!("splits: {} of {count} score as published", count - wrong.len());
    assert!(count > 100 && wrong.is_empty(), "{}", wrong.join("\n"));
}
