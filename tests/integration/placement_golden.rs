//! Device placement against the published programs: every max-load of `tests/figures/placement.tsv`.

use crate::common::reference;
use plantui::{
    planner::{
        Search, Status,
        placement::{
            DeviceKind, PlacementLimits, PlacementResult, Split, baselines,
            classes::{ClassGraph, Partition},
            dp::{self, DpOptions},
            linearise, local_search, pipedream,
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
    sets: Option<usize>,
    split: &'static str,
}

fn cases(algorithm: &'static str) -> impl Iterator<Item = Case> {
    let table = include_str!("../figures/placement.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    table
        .map(|line| {
            let field: Vec<&str> = line.split('\t').collect();
            let (value, sets) = (field[2].parse().unwrap(), field[3].parse().ok());
            Case { input: field[0], algorithm: field[1], value, sets, split: field[5] }
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
fn checked(file: &PlacementFile, limits: &PlacementLimits, placed: &PlacementResult, memory: bool) -> f64 {
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
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_dp_meets_every_published_optimum() {
    let root = reference::root();
    let mut wrong = vec![];
    let (mut count, mut counted) = (0, 0);
    for case in cases("dp-streaming") {
        let (file, limits) = load(&root, case.input);
        let placed = dp::plan(&file.dag, &file.profile, &limits, &DpOptions::default(), &Search::default());
        assert_eq!(placed.status, Status::Optimal, "{case:?}");
        let value = checked(&file, &limits, &placed, true);
        let sets = placed.counts.iter().find(|(name, _)| *name == "closed_sets").unwrap().1 as usize;
        println!("{}: {value}, {:?}", case.input, placed.counts);
        count += 1;
        if case.sets.is_some_and(|theirs| theirs != sets) || !equal(value, case.value) {
            wrong.push(format!("{case:?}: ours {value}, {sets} closed sets"));
        }
        counted += usize::from(case.sets.is_some());
    }
    println!("dp: {} of {count} equal, {counted} with their number of closed sets", count - wrong.len());
    assert!(count == 24 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_linearised_search_meets_every_published_value() {
    let root = reference::root();
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
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn every_published_split_scores_its_published_max_load() {
    let root = reference::root();
    let Some(folder) = splits(&root) else { return };
    let mut wrong = vec![];
    let mut count = 0;
    for case in cases("all").filter(|case| case.split != "-") {
        let (file, _) = load(&root, case.input);
        let text = std::fs::read_to_string(folder.join(case.split)).unwrap();
        let split = Split::read(&text, case.split, &file.nodes).unwrap();
        let score = split.score(&file.dag, &file.profile);
        count += 1;
        // A solver's value leaves out transfers of 5.8e-8, which it takes for zero.
        let tolerance = if case.algorithm.starts_with("ip-") { 1e-8 } else { 1e-9 };
        if (score.max_load - case.value).abs() > tolerance * case.value {
            wrong.push(format!("{case:?}: ours {}", score.max_load));
        }
    }
    println!("splits: {} of {count} score as published", count - wrong.len());
    assert!(count > 100 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn pipedream_meets_the_published_values() {
    let root = reference::root();
    let mut wrong = vec![];
    let mut count = 0;
    for case in cases("pipedream") {
        let (file, limits) = load(&root, case.input);
        let placed = pipedream::plan(&file.dag, &file.profile, &limits, &Search::default());
        let value = checked(&file, &limits, &placed, true);
        count += 1;
        if !equal(value, case.value) {
            println!("pipedream {}: ours {value}, published {}", case.input, case.value);
            assert!((value - case.value).abs() < 0.004 * case.value, "{case:?}: ours {value}");
            wrong.push(case.input.rsplit('/').next().unwrap());
        }
    }
    println!("pipedream: {} of {count} equal", count - wrong.len());
    assert_eq!(count, 16);
    // There the published program's order of sources is that of its hash table, which no rule on class numbers gives.
    assert_eq!(wrong, ["gnmt_inference.json"]);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn one_accelerator_meets_every_published_value() {
    let root = reference::root();
    let mut count = 0;
    for case in cases("one-accelerator") {
        let (file, limits) = load(&root, case.input);
        let placed = baselines::one_accelerator(&file.dag, &file.profile, &limits);
        assert!(equal(checked(&file, &limits, &placed, false), case.value), "{case:?}");
        count += 1;
    }
    assert_eq!(count, 16);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn experts_meet_every_published_value() {
    let root = reference::root();
    let mut count = 0;
    for case in cases("expert") {
        let (file, limits) = load(&root, case.input);
        let stem = Path::new(case.input).file_stem().unwrap().to_str().unwrap();
        let folder = root.join("dnn-partitioning/human-experts");
        // Two networks have a split of the forward pass alone.
        let path = [stem, &stem.replace("training", "inference")]
            .map(|stem| folder.join(format!("{stem}_expert.json")))
            .into_iter()
            .find(|path| path.is_file())
            .unwrap();
        let named = Split::read(&std::fs::read_to_string(&path).unwrap(), "expert", &file.nodes).unwrap();
        let placed = baselines::expert(&file.dag, &file.profile, &limits, &named, &file.nodes).unwrap();
        assert!(equal(checked(&file, &limits, &placed, false), case.value), "{case:?}");
        count += 1;
    }
    assert_eq!(count, 8);
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn local_search_ends_where_no_move_helps() {
    let root = reference::root();
    for case in cases("local-search-10-incremental") {
        let (file, limits) = load(&root, case.input);
        let (placed, descents) = local_search::plan(&file.dag, &file.profile, &limits, 10, &Search::default());
        let value = checked(&file, &limits, &placed, false);
        assert_eq!(descents.len(), 10);
        assert!(descents.iter().all(|descent| descent.end <= descent.start));
        assert!(equal(value, descents.iter().map(|descent| descent.end).fold(f64::INFINITY, f64::min)));
        println!("local search {}: ours {value}, published {} (other random numbers)", case.input, case.value);
        if file.nodes.len() > 700 {
            continue;
        }
        // Every move by rescoring the whole split.
        let members =
            ClassGraph::new(&file.dag, &file.profile, &Partition::by_colour(&file.profile)).partition.members();
        let split = placed.split.unwrap();
        let device_of = split.device_of(file.nodes.len());
        for class in &members {
            for to in 0..split.devices.len() {
                let mut moved = split.clone();
                let from = device_of[class[0]].unwrap();
                moved.devices[from].nodes.retain(|node| !class.contains(node));
                moved.devices[to].nodes.extend(class);
                assert!(moved.score(&file.dag, &file.profile).max_load > value - 1.1 * local_search::LEAST_GAIN);
            }
        }
    }
}
