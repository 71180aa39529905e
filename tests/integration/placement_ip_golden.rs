//! The search over all splits on the published inputs, against the best that is known of them.

use crate::common::reference;
use plantui::{
    planner::{
        Search,
        placement::{
            PlacementLimits,
            dp::{self, DpOptions},
            ip::{Contiguity, IpSettings, Objective, ThroughputProblem, search},
        },
    },
    workload::formats::placement::read,
};

/// HiGHS's values are its own objective, which may be below what its split is worth by its tolerance.
const SOLVER: f64 = 1e-8;

/// Input and the least max-load known for it over all splits.
fn published() -> impl Iterator<Item = (&'static str, f64)> {
    let rows = include_str!("../figures/placement-ip.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| row.split_once('\t').unwrap()).map(|(input, known)| (input, known.parse().unwrap()))
}

fn on_published(input: &str, settings: &IpSettings, contiguity: Contiguity) -> (f64, f64, f64) {
    let root = reference::root();
    let text = std::fs::read_to_string(root.join(input)).unwrap();
    let file = read(&text, input, input).unwrap();
    let limits = PlacementLimits {
        accelerators: file.accelerators.unwrap(),
        cpus: file.cpus.unwrap(),
        memory_bytes: file.memory_bytes.unwrap(),
    };
    let (dag, profile) = (&file.dag, &file.profile);
    let question = ThroughputProblem { dag, profile, limits, contiguity, objective: Objective::MaxLoad };
    let best = search(&question, settings, &Search::default(), &|_, _| {});
    let (value, split) = best.split.expect("a split");
    let score = split.score(dag, profile);
    assert!((score.max_load - value).abs() <= 1e-9 * value, "{input}");
    assert_eq!(score.over_memory(&split, limits.memory_bytes).count(), 0, "{input}");
    let dp = dp::plan(dag, profile, &limits, &DpOptions::default(), &Search::default()).max_load.unwrap();
    println!("{input}: {value} in {} rounds, bound {}, dp {dp}", best.rounds, best.lower_bound);
    (value, best.lower_bound, dp)
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn a_short_search_is_no_worse_than_the_dp_and_its_bounds_hold() {
    let settings = IpSettings { rounds: 1, walks: 1, steps: 100_000, branches: 20_000 };
    for (input, known) in published().filter(|(input, _)| !input.contains("inception") && !input.contains("12")) {
        for contiguity in [Contiguity::Free, Contiguity::Contiguous] {
            let (value, bound, dp) = on_published(input, &settings, contiguity);
            assert!(value <= dp * (1.0 + 1e-9), "{input}: {value}, dp {dp}");
            if contiguity == Contiguity::Free {
                assert!(bound <= known * (1.0 + SOLVER), "{input}: {bound} is no bound on {known}");
            }
        }
    }
}

/// About sixteen minutes on two cores.
#[test]
#[ignore = "runs for a quarter of an hour"]
fn by_hand_every_published_input_is_solved_as_well_as_is_known() {
    let mut within = 0;
    for (input, known) in published() {
        let (value, bound, _) = on_published(input, &IpSettings::default(), Contiguity::Free);
        assert!(value <= known * (1.0 + SOLVER), "{input}: {value}, known is {known}");
        assert!(bound <= value, "{input}");
        within += usize::from(bound >= 0.99 * value);
    }
    assert!(within == 16, "{within}");
}
