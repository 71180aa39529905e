//! Graph partitioners: Scotch through a stand-in for its program, and our own against what is known of small graphs and
//! published values.

use std::{path::Path, sync::Arc};

use crate::common::reference;
use plantui::{
    cluster::GivenLimits,
    family,
    graph::Dag,
    planner::{
        self, Options, Outcome, Problem, Search,
        placement::{PlacementLimits, multilevel},
    },
    run,
    workload::{
        self, Workload,
        placement::{PlacementNode, PlacementProfile},
    },
};

fn workload(path: &Path) -> Arc<Workload> {
    Arc::new(workload::load(path).unwrap_or_else(|error| panic!("{error}")))
}

fn input(file: &str) -> Arc<Workload> {
    workload(&Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs").join(file))
}

/// Runs a planner; `planner::run` asserts that its plan is valid and worth what it says.
fn planned(id: &str, workload: &Arc<Workload>, seed: u64, settings: &[&str]) -> Outcome {
    let planner = planner::find(id).unwrap();
    let limits = family::resolve(workload, &GivenLimits::default()).unwrap();
    let options = Options::parse(id, planner.options(), settings.iter().copied()).unwrap();
    run::plan(planner, &Problem { workload: workload.clone(), limits, options }, &Search::new(None, seed)).unwrap().0
}

#[test]
fn multilevel_is_near_the_best_known_on_generated_graphs() {
    for file in ["branching-cnn-training.json", "llama-3-8b-training.json"] {
        let workload = input(file);
        let best = planned("placement-dp", &workload, 0, &[]).objective.unwrap();
        let found = planned("placement-multilevel", &workload, 0, &[]);
        let value = found.objective.unwrap_or_else(|| panic!("{file}: {:?}", found.infeasible));
        println!("{file}: multilevel {value}, best contiguous {best}");
        assert!(value <= 1.25 * best, "{file}: {value} against {best}");
        assert_eq!(planned("placement-multilevel", &workload, 0, &[]).plan, found.plan, "one seed, one plan");
        let once = planned("placement-multilevel", &workload, 0, &["restarts=1"]).objective.unwrap();
        assert!(value <= once, "more runs are no worse");
    }
}

/// A node whose output all others read: one net, of all pins.
#[test]
fn a_net_of_twenty_thousand_pins_is_split_evenly() {
    const NODES: usize = 20_000;
    let node = |v: usize| PlacementNode {
        cpu_time: 50.0,
        accelerator_time: (1 + v % 7) as f64,
        supported: true,
        backward: false,
        size_bytes: 1.0,
        colour_class: None,
        layer: None,
        transfer: if v == 0 { 1.0 } else { 0.0 },
    };
    let profile: PlacementProfile = (0..NODES).map(node).collect::<Vec<_>>().into();
    let dag = Dag::new(NODES, (1..NODES as u32).map(|v| (0, v)).collect()).unwrap();
    let share = profile.nodes.iter().map(|node| node.accelerator_time).sum::<f64>() / 4.0;
    let limits = PlacementLimits { accelerators: 4, cpus: 0, memory_bytes: 1e9 };
    let placed = multilevel::plan(&dag, &profile, &limits, 16, &Search::default(), &|_, _| {});
    // All four pay for the one tensor.
    assert!(placed.max_load.is_some_and(|load| load <= share + 2.0), "{:?} for {share}", placed.max_load);
}

#[test]
fn partitions_can_be_scored_by_latency() {
    let workload = input("mistral-7b-latency.json");
    let found = planned("placement-multilevel", &workload, 0, &["objective=latency"]);
    match (found.objective, found.infeasible) {
        (Some(latency), None) => assert!(latency > 0.0),
        (None, Some(story)) => assert!(story.explanation.starts_with("Its split"), "{}", story.explanation),
        other => panic!("{other:?}"),
    }
}

/// Published max-loads of Scotch, by input.
fn published() -> Vec<(String, f64)> {
    let table = include_str!("../figures/placement.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    table
        .filter_map(|line| {
            let field: Vec<&str> = line.split('\t').collect();
            (field[1] == "scotch").then(|| (field[0].to_string(), field[2].parse().unwrap()))
        })
        .collect()
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn multilevel_is_no_worse_than_scotch_over_all_published_inputs() {
    let root = reference::root();
    let rows = published();
    assert!(rows.len() >= 16, "{} rows", rows.len());
    let (mut logarithms, mut count) = (0.0, 0);
    for (file, scotch) in rows.iter().filter(|row| row.0.contains("throughput")) {
        let found = planned("placement-multilevel", &workload(&root.join(file)), 0, &[]);
        let seconds = found.statistics.seconds;
        match found.objective {
            Some(value) => {
                println!(
                    "{file}: multilevel {value:.3}, Scotch {scotch:.3}, ratio {:.3}, {seconds:.3} s",
                    value / scotch
                );
                logarithms += (value / scotch).ln();
                count += 1;
            }
            None => println!("{file}: {:?}", found.infeasible),
        }
    }
    let mean = (logarithms / f64::from(count)).exp();
    println!("geometric mean {mean:.3} over {count} inputs");
    assert!(count >= 14 && mean < 1.0, "{mean} over {count}");
}

#[cfg(unix)]
mod scotch {
    use std::{fs, os::unix::fs::PermissionsExt};

    use assert_cmd::{Command, assert::Assert};
    use serde_json::Value;

    /// `plantui plan` where the only program on the PATH is a script of this text, called `gpart`.
    fn plan_with(script: Option<&str>, arguments: &[&str]) -> Assert {
        let folder = tempfile::tempdir().unwrap();
        if let Some(text) = script {
            let path = folder.path().join("gpart");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Command::cargo_bin("plantui")
            .unwrap()
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("PATH", folder.path())
            .args(["plan", "inputs/branching-cnn-training.json", "--planner", "placement-scotch"])
            .args(arguments)
            .assert()
    }

    /// Reads the number of vertices and deals them out in order.
    const DEALS_OUT: &str = "#!/bin/sh
{ read -r version; read -r vertices arcs; read -r flags; } < \"$2\"
[ \"$version $flags\" = '0 0 111' ] || exit 9
echo \"$vertices\" > \"$3\"
i=0
while [ $i -lt $vertices ]; do
  echo \"$i $((i * $1 / vertices))\" >> \"$3\"
  i=$((i + 1))
done
";

    #[test]
    fn its_partition_is_scored_by_the_house() {
        let done = plan_with(Some(DEALS_OUT), &["--json"]).success();
        let document: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
        assert_eq!(document["status"], "feasible");
        assert_eq!(document["objective"]["name"], "max_load");
        assert_eq!(document["stages"].as_array().unwrap().len(), 3);
        let notes = document["notes"].to_string();
        assert!(notes.contains("version of Scotch"), "{notes}");
    }

    #[test]
    fn without_it_the_package_is_named() {
        let refused = plan_with(None, &[]).code(2);
        let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(message.contains("not on the PATH: install it (Debian: apt-get install scotch)"), "{message}");
    }

    #[test]
    fn what_goes_wrong_in_it_is_told() {
        for (script, wanted) in [
            ("#!/bin/sh\necho 'ERROR: no room' >&2\nexit 3\n", "ended with exit status: 3: ERROR: no room"),
            ("#!/bin/sh\nexit 0\n", "cannot be run: No such file"),
            ("#!/bin/sh\necho 1 > \"$3\"\necho 0 7 >> \"$3\"\n", "gave vertex 0 the part 7"),
        ] {
            let refused = plan_with(Some(script), &[]).code(1);
            let text = String::from_utf8_lossy(&refused.get_output().stdout).into_owned();
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
    }
}
