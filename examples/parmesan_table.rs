//! Table of topologies: for each published graph and topology, iterations simulated on the routes. Plans come from a
//! chain on devices in order, DAPPLE, HPGO, Parmesan without and with its search, and the ensemble of all. Devices have
//! the memory of the topology's own machines. The batch of a profile follows from its sizes, or from [`SAMPLES`].
//!
//! `PLANTUI_REFERENCE=.. cargo run --release --example parmesan_table > table.tsv`; words after `--` select the
//! methods, topologies and graphs whose names contain them.

use std::{path::PathBuf, sync::Arc};

use plantui::workload::{self, Profile};

#[path = "../tests/common/on_topology.rs"]
mod on_topology;

const GRAPHS: [&str; 14] = [
    "alexnet",
    "vgg16",
    "gnmt",
    "squeezenet1_0",
    "resnet18",
    "gnmt_large",
    "resnet50",
    "resnext50",
    "inception_v3",
    "resnet101",
    "resnext101",
    "densenet121",
    "nasnetamobile",
    "nasnetalarge",
];
/// Batch sizes that tensor sizes do not determine: sentences for GNMT (from the arguments of PipeDream's profiler), and
/// images of 3 x 224 x 224 for SqueezeNet, which has no linear layer to confirm them.
const SAMPLES: [(&str, u32); 3] = [("gnmt", 64), ("gnmt_large", 64), ("squeezenet1_0", 256)];
const TOPOLOGIES: [&str; 3] = ["dgx-1", "2xdgx-1+eth-25g", "dgx-2"];
/// Name of the row, planner, and its settings.
const WAYS: [(&str, &str, &[&str]); 10] = [
    ("chain, in order", "parmesan", &["k=1000000", "mapping=identity", "dag=false"]),
    (
        "one device a stage, chain, in order",
        "parmesan",
        &["k=1000000", "mapping=identity", "replicas=false", "dag=false"],
    ),
    (
        "one device a stage, Parmesan, search",
        "parmesan",
        &["search_k=true", "search_comm_coef=true", "new_flow=both", "replicas=false"],
    ),
    ("one device a stage, DAG, in order", "parmesan", &["k=1000000", "mapping=identity", "replicas=false"]),
    (
        "one device a stage, Parmesan, search of chains",
        "parmesan",
        &["search_k=true", "search_comm_coef=true", "new_flow=both", "replicas=false", "dag=false"],
    ),
    ("HPGO", "dapple-hpgo", &[]),
    ("DAPPLE", "dapple", &[]),
    ("Parmesan", "parmesan", &[]),
    ("Parmesan, search", "parmesan", &["search_k=true", "search_comm_coef=true", "new_flow=both"]),
    (
        "ensemble",
        "ensemble",
        &[
            "members=parmesan;search_k=true;search_comm_coef=true;new_flow=both,parmesan;k=1000000;dag=false,dapple,dapple-hpgo",
        ],
    ),
];

fn main() {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        eprintln!("set PLANTUI_REFERENCE to the folder of the published profiles");
        return;
    };
    let only = std::env::args().nth(1).unwrap_or_default();
    let wired_as = std::env::args().nth(2).unwrap_or_default();
    let named = std::env::args().nth(3).unwrap_or_default();
    println!("graph\ttopology\tway\tsimulated s\tstages\tplanned in s\tcommunication s\tbound s\tproven");
    for graph in GRAPHS.into_iter().filter(|graph| graph.contains(&named)) {
        let folder = root.join("hpgo/profiles");
        let Some(path) =
            ["graph.txt"].map(|file| folder.join(graph).join(file)).into_iter().find(|path| path.is_file())
        else {
            eprintln!("{graph}: not there");
            continue;
        };
        let mut workload = workload::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let told = SAMPLES.iter().find(|(name, _)| *name == graph);
        if let (Profile::Layers(profile), Some(&(_, samples))) = (&mut workload.profile, told) {
            *profile = profile.clone().of_batch(samples);
        }
        let workload = Arc::new(workload);
        for name in TOPOLOGIES.into_iter().filter(|name| name.contains(&wired_as)) {
            for (way, id, settings) in WAYS.into_iter().filter(|way| way.0.contains(&only)) {
                let run = on_topology::planned(&workload, name, id, settings);
                let seconds = run.simulation.as_ref().map(|simulation| simulation.timeline.iteration_s);
                let stages = run.outcome.plan.as_ref().map_or(0, |plan| plan.stages.len());
                let mapping = run.outcome.mapping.as_ref();
                println!(
                    "{graph}\t{name}\t{way}\t{:.5}\t{stages}\t{:.2}\t{:.6}\t{:.6}\t{}",
                    seconds.unwrap_or(f64::NAN),
                    run.seconds,
                    mapping.map_or(0.0, |mapping| mapping.communication_s),
                    mapping.map_or(0.0, |mapping| mapping.lower_bound_s),
                    mapping.is_some_and(|mapping| mapping.proved)
                );
            }
        }
    }
}
