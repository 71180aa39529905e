//! The strategies of the paper's Table II (p = 32, 1080Ti), checked: they are valid, and no better than what is found.

use std::{collections::BTreeMap, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family::{self, check},
    generate::networks::PaseNetwork,
    planner::{self, Options, Problem, Search, Status},
    run,
    workload::{
        self, Workload,
        formats::operators::{OperatorFile, text},
    },
};
use serde_json::{Value, json};

fn graph(network: PaseNetwork, batch: u64) -> Workload {
    let mut sizes = network.defaults();
    sizes.batch = batch;
    let (names, profile) = network.build(&sizes).unwrap();
    let limits = GivenLimits::default().with(LimitKind::Devices, 32);
    let file = OperatorFile { names, profile, limits, provenance: String::new(), assumptions: vec![] };
    workload::load_bytes(text(&file).as_bytes(), "graph.json", network.id()).unwrap()
}

/// A plan file with a split for every operator, by name.
fn plan_file(workload: &Workload, split: impl Fn(&str, &str) -> &'static str) -> String {
    let profile = workload.operators().unwrap();
    let choices: BTreeMap<String, Value> = workload
        .nodes
        .iter()
        .zip(&profile.operators)
        .map(|(node, operator)| {
            (node.id.to_string(), split(node.name.as_deref().unwrap(), operator.kind_name()).into())
        })
        .collect();
    let ids: Vec<i64> = workload.nodes.iter().map(|node| node.id.0).collect();
    json!({
        "schema": "plantui.plan/1",
        "stages": [{"nodes": ids, "data_parallel": 1, "tensor_parallel": 32, "choices": choices}],
    })
    .to_string()
}

fn alexnet(name: &str, _: &str) -> &'static str {
    match name {
        "conv5" => "b=16 c=2",
        "pool5" | "ravel" | "unravel" => "b=16",
        "dense1" | "dense3" => "n=4 k=8",
        "dense2" => "n=8 k=4",
        "loss" => "n=4",
        _ => "b=32",
    }
}

fn inception(name: &str, kind: &str) -> &'static str {
    match (name, kind) {
        ("classifier", _) => "n=2 k=16",
        ("loss", _) => "n=2",
        ("mean", _) => "b=16 c=2",
        (_, "concat") if name.starts_with('E') => "b=16",
        (_, "conv") if name.starts_with('E') => "b=16 n=2",
        (_, _) if name.starts_with('E') => "b=16 c=2",
        _ => "b=32",
    }
}

fn rnnlm(name: &str, _: &str) -> &'static str {
    match name {
        "embedding" => "v=32",
        "lstm" => "l=2 b=4 n=2 k=2",
        _ => "n=32",
    }
}

fn transformer(name: &str, kind: &str) -> &'static str {
    match (name, kind) {
        ("projection" | "loss", _) => "v=16",
        (_, "einsum") if name.ends_with("embedding") => "v=16",
        (_, "einsum") if name.ends_with("ff1") || name.ends_with("ff2") => "b=16 f=2",
        (_, "unstack" | "softmax" | "einsum") => "b=16 h=2",
        _ => "b=16",
    }
}

#[test]
fn the_strategies_of_the_paper_are_valid_and_no_better_than_ours() {
    type Split = fn(&str, &str) -> &'static str;
    // Inception's table names the splits of convolutions only; with those filled in here it costs more than data
    // parallelism.
    let cases: [(PaseNetwork, u64, Split, bool); 4] = [
        (PaseNetwork::AlexNet, 128, alexnet, true),
        (PaseNetwork::Inception3, 128, inception, false),
        (PaseNetwork::Rnnlm, 64, rnnlm, true),
        (PaseNetwork::Transformer, 64, transformer, true),
    ];
    for (network, batch, split, better) in cases {
        let workload = Arc::new(graph(network, batch));
        let loaded = family::read::read(&workload, &plan_file(&workload, split), "paper.json").unwrap();
        // The ratio of the paper's machine: 11.3 TFLOPS, 12 GB/s.
        let overrides = GivenLimits::default().with(LimitKind::Flops, 11.3e12).with(LimitKind::Bandwidth, 12e9);
        let limits = family::resolve(&workload, &overrides).unwrap();
        let score = check(&workload, &limits, &loaded.plan);
        assert!(score.is_valid(), "{}: {}", network.id(), score.violations[0]);
        let run = |id| {
            let planner = planner::find(id).unwrap();
            let options = Options::defaults(planner.options());
            run::plan(
                planner,
                &Problem { workload: workload.clone(), limits: limits.clone(), options },
                &Search::default(),
            )
            .unwrap()
            .0
        };
        let (best, data_parallel) = (run("pase"), run("pase-data-parallel").objective.unwrap());
        assert_eq!(best.status, Status::Optimal);
        let best = best.objective.unwrap();
        println!(
            "{}: paper {:.4e}, least {best:.4e}, data parallel {data_parallel:.4e} operations",
            network.id(),
            score.value
        );
        assert!(score.value >= best * (1.0 - 1e-12), "{}", network.id());
        assert_eq!(score.value < data_parallel, better, "{}: against data parallelism", network.id());
    }
}

#[test]
fn wrong_splits_are_told() {
    let workload = graph(PaseNetwork::AlexNet, 128);
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    for (wrong, told) in [
        ("b=64", "makes 64 pieces, but the stage has 32 devices"),
        ("b=3", "splits b 3 ways, which does not divide its 128 elements"),
        ("h=5", "splits h, which cannot be split"),
        ("x=2", "names `x`; the dimensions are b, c, h, w, r, s, n"),
        ("b=2 b=2", "names `b` twice"),
        ("b", "has `b`, which is no name=degree"),
        ("", "is empty; write `whole` for no split"),
    ] {
        let split = |name: &str, _: &str| if name == "conv1" { wrong } else { "whole" };
        let loaded = family::read::read(&workload, &plan_file(&workload, split), "wrong.json").unwrap();
        let score = check(&workload, &limits, &loaded.plan);
        assert_eq!(score.violations.len(), 1, "{wrong}");
        let message = score.violations[0].to_string();
        assert_eq!(message, format!("conv1: the split `{wrong}` {told}"));
    }
    let split = |name: &str, _: &str| if name == "ravel" { "b=2 c=2" } else { "whole" };
    let loaded = family::read::read(&workload, &plan_file(&workload, split), "wrong.json").unwrap();
    let message = check(&workload, &limits, &loaded.plan).violations[0].to_string();
    assert!(message.contains("pieces must be contiguous"), "{message}");
}
