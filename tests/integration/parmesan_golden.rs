//! Parmesan and the simulator against published inputs: the fourteen profiles, and the bubble rates of zero-bubble schedules.

use std::{collections::BTreeMap, sync::Arc};

use plantui::{
    simulate::{self, Pipeline, PipelineStage, Schedule, Transfer},
    workload,
};

use crate::common::{on_topology::planned, reference::root};

/// The published profiles with their numbers of nodes.
const GRAPHS: [(&str, usize); 14] = [
    ("alexnet", 23),
    ("vgg16", 41),
    ("gnmt", 48),
    ("squeezenet1_0", 68),
    ("resnet18", 71),
    ("gnmt_large", 96),
    ("resnet50", 177),
    ("resnext50", 177),
    ("inception_v3", 326),
    ("resnet101", 347),
    ("resnext101", 347),
    ("densenet121", 429),
    ("nasnetamobile", 921),
    ("nasnetalarge", 1251),
];

fn graph(name: &str) -> workload::Workload {
    workload::load(&root().join("hpgo/profiles").join(name).join("graph.txt")).unwrap()
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_fourteen_profiles_have_their_nodes() {
    for (name, nodes) in GRAPHS {
        assert_eq!(graph(name).nodes.len(), nodes, "{name}");
    }
}

/// The simulated iteration time under a planner with settings, on a topology.
fn batch(workload: &Arc<workload::Workload>, topology: &str, id: &str, settings: &[&str]) -> f64 {
    planned(workload, topology, id, settings).simulation.unwrap().timeline.iteration_s
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn a_search_is_no_slower_than_a_chain_in_order_nor_than_other_planners() {
    // The smallest, so that it ends soon without optimisation as well; examples/parmesan_table.rs has all.
    for name in ["alexnet", "vgg16", "gnmt"] {
        let workload = Arc::new(graph(name));
        for topology in ["dgx-1", "2xdgx-1+eth-25g", "dgx-2"] {
            for replicas in ["replicas=true", "replicas=false"] {
                let of = |settings: &[&str]| batch(&workload, topology, "parmesan", &[settings, &[replicas]].concat());
                let searched = of(&["search_k=true", "search_comm_coef=true", "new_flow=both"]);
                let chain = of(&["k=1000000", "mapping=identity", "dag=false"]);
                assert!(searched <= chain * (1.0 + 1e-9), "{name} {topology} {replicas}: {searched} {chain}");
                if replicas == "replicas=true" {
                    let others = ["dapple", "dapple-hpgo"].map(|id| batch(&workload, topology, id, &[]));
                    let best = others.into_iter().fold(f64::INFINITY, f64::min);
                    assert!(searched <= best * (1.0 + 1e-9), "{name} {topology}: {searched} {others:?}");
                }
            }
        }
    }
}

/// A published table as rows of named fields.
fn table(file: &str) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("truth").join(file)).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(ToString::to_string).collect::<Vec<_>>());
    let names = lines.next().unwrap();
    lines.map(|row| names.iter().cloned().zip(row).collect()).collect()
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn bubble_rates_of_the_zero_bubble_paper_come_out_of_its_times() {
    let rates = table("zero-bubble.tsv");
    let mut compared = 0;
    for row in table("zero-bubble-times.tsv") {
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        let seconds = |name: &str| number(name) / 1e3;
        let stages = number("stages") as usize;
        let stage = PipelineStage {
            forward_s: seconds("TF_ms"),
            backward_s: seconds("TB_ms") + seconds("TW_ms"),
            weight_gradient_s: Some(seconds("TW_ms")),
            replicas: 1,
            devices: 1,
            ..PipelineStage::default()
        };
        let transfer = |from| Transfer { from, to: from + 1, seconds: seconds("Tcomm_ms"), bytes: 0.0 };
        let pipeline = Pipeline {
            stages: vec![stage; stages],
            transfers: (0..stages - 1).map(transfer).collect(),
            microbatches: number("microbatches") as u32,
            ..Pipeline::default()
        };
        for (name, schedule) in [
            ("1F1B", Schedule::OneForwardOneBackward),
            ("ZB-H1", Schedule::ZeroBubbleH1),
            ("ZB-H2", Schedule::ZeroBubble2p),
        ] {
            let published = rates.iter().find(|rate| {
                rate["schedule"] == name && rate["model"] == row["model"] && rate["microbatches"] == row["microbatches"]
            });
            let published: f64 = published.unwrap()["bubble_rate_computed"].parse().unwrap();
            let timeline = simulate::simulate(&pipeline, schedule);
            // Without a barrier at the optimizer step, an iteration lasts as long as the busiest rank's own span.
            let span = |rank: usize| {
                let passes = timeline.row(rank, 0).iter().filter(|event| event.kind.lane() == 0);
                let (start, end) = passes.fold((f64::INFINITY, 0.0), |(start, end): (f64, f64), event| {
                    (start.min(event.start_s), end.max(event.end_s))
                });
                end - start
            };
            let longest = (0..stages).map(span).fold(0.0, f64::max);
            let bubble = match schedule {
                Schedule::ZeroBubble2p => 1.0 - timeline.busy_s[0] / longest,
                _ => timeline.idle,
            };
            assert!(
                (bubble - published).abs() <= 1e-4,
                "{name} {} {}: {bubble} {published}",
                row["model"],
                row["microbatches"]
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 36);
}
