//! The latency search on the published inputs: value, bound and time beside the published greedy and the best published.
//!
//! `PLANTUI_REFERENCE=.. cargo bench --bench placement_latency [FILTER]`.

#[path = "../tests/common/latency_input.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod latency_input;

use std::{collections::BTreeMap, path::PathBuf, time::Instant};

use latency_input::read_input;
use plantui::planner::{
    Search,
    placement::latency::{Question, Settings, evaluate, greedy, search},
};

fn main() {
    let filter: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE is not set: the published inputs are not measured");
        return;
    };
    let table = include_str!("../tests/figures/placement-latency.tsv");
    let rows = table.lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| line.split('\t').collect());
    let published: BTreeMap<&str, f64> = rows
        .filter(|row: &Vec<&str>| row[1] == "best")
        .map(|row| (row[0], row[3].parse().expect("a number")))
        .collect();
    println!(
        "{:50} {:>10} {:>14} {:>10} {:>10} {:>7} {:>8}",
        "input", "greedy", "best published", "ours", "bound", "gap %", "s"
    );
    for (input, best) in published {
        if !filter.iter().all(|word| input.contains(word.as_str())) {
            continue;
        }
        let (file, accelerators, memory_bytes) = read_input(&root.join(input));
        let (dag, profile) = (&file.dag, &file.profile);
        let split = greedy(dag, profile, accelerators, memory_bytes);
        let theirs = evaluate(dag, profile, memory_bytes, &split).expect("greedy splits have no circles").latency;
        let question = Question { dag, profile, accelerators, subgraphs: 1, memory_bytes };
        let started = Instant::now();
        let found = search(&question, &Settings::default(), &[], &Search::default(), &|_| ());
        let seconds = started.elapsed().as_secs_f64();
        let (ours, bound) = (found.schedule.latency, found.lower_bound.unwrap_or(0.0));
        let verdict = if ours > best * (1.0 + 1e-9) { " WORSE" } else { "" };
        println!(
            "{:50} {theirs:>10.3} {best:>14.3} {ours:>10.3} {bound:>10.3} {:>7.2} {seconds:>8.1}{verdict}",
            input.trim_start_matches("dnn-partitioning/latency-inputs/"),
            100.0 * (ours - bound) / ours,
        );
    }
}
