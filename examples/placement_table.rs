//! Table of device placement: every algorithm on every published input, beside the results of the published programs.
//!
//! ```sh
//! PLANTUI_REFERENCE=folder cargo run --release --example placement_table [DEADLINE [WORD ..]]
//! ```
//!
//! Prints Markdown. Each cell is a separate run of the `plantui` program, so its memory is its own. DEADLINE (60s)
//! stops long searches. WORDs select the rows that contain all of them. Published figures:
//! `tests/figures/placement-table.tsv`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use serde_json::Value;

/// Name of a row, and its arguments.
const ALGORITHMS: [(&str, &[&str]); 15] = [
    ("one", &["placement-one"]),
    ("expert", &["placement-expert"]),
    ("scotch", &["placement-multilevel"]),
    ("pipedream", &["placement-pipedream"]),
    ("local-search", &["placement-local-search"]),
    ("dpl", &["placement-dpl"]),
    ("dp", &["placement-dp"]),
    ("ip contiguous", &["placement-ip", "--set", "contiguity=contiguous"]),
    ("ip free", &["placement-ip"]),
    ("ip separate maxima", &["placement-ip", "--set", "objective=separate-maxima"]),
    ("latency-greedy", &["placement-latency-greedy"]),
    ("latency-dp", &["placement-latency-dp"]),
    ("latency expert", &["placement-expert", "--set", "objective=latency"]),
    ("latency scotch", &["placement-multilevel", "--set", "objective=latency"]),
    ("latency-ip", &["placement-latency-ip"]),
];

struct PublishedResult {
    value: f64,
    bound: Option<f64>,
    cpu_seconds: Option<f64>,
    peak_mib: Option<f64>,
}

fn published() -> BTreeMap<(String, String), PublishedResult> {
    let rows =
        include_str!("../tests/figures/placement-table.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.split('\t').collect();
        let figure = |at: usize| cells[at].parse().ok();
        let value = figure(3).expect("every row has a value");
        let published = PublishedResult { value, bound: figure(4), cpu_seconds: figure(5), peak_mib: figure(6) };
        ((cells[0].to_string(), cells[1].to_string()), published)
    })
    .collect()
}

/// Split of a human expert for an input, if there is one.
fn expert(root: &Path, input: &str) -> Option<PathBuf> {
    let name = Path::new(input).file_stem()?.to_str()?;
    let folder = root.join("dnn-partitioning/human-experts");
    // Splits of inference files also serve training: colour classes place the backward nodes.
    let names = [name.to_string(), name.replace("_training", "_inference")];
    // Experts cut layer graphs; operator graphs share their names.
    if !input.contains("LayerGraphs") {
        return None;
    }
    names.iter().map(|name| folder.join(format!("{name}_expert.json"))).find(|path| path.is_file())
}

fn run(root: &Path, input: &str, algorithm: &str, arguments: &[&str], deadline: &str) -> Option<Value> {
    let program = std::env::current_exe().ok()?.parent()?.parent()?.join("plantui");
    let mut command = Command::new(program);
    command.arg("plan").arg(root.join(input)).arg("--planner").args(arguments);
    command.args(["--json", "--threads", "2", "--deadline", deadline]);
    if algorithm.contains("expert") {
        command.arg("--set").arg(format!("split={}", expert(root, input)?.display()));
    }
    let output = command.output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}

fn main() -> ExitCode {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        eprintln!("error: PLANTUI_REFERENCE names no folder with the published inputs");
        return ExitCode::FAILURE;
    };
    let mut arguments = std::env::args().skip(1);
    let deadline = arguments.next().unwrap_or_else(|| "60s".into());
    let words: Vec<String> = arguments.collect();
    let published = published();
    let mut inputs: Vec<&String> = published.keys().map(|(input, _)| input).collect();
    inputs.dedup();
    println!(
        "| input | algorithm | ours | bound | gap | status | s | MiB | published | bound | CPU s | MiB | ours / published |"
    );
    println!("|---|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|");
    for input in inputs {
        let latency = input.contains("latency-inputs");
        let short = input.trim_start_matches("dnn-partitioning/").replace("-inputs", "").replace("Graphs", "");
        for (algorithm, arguments) in
            ALGORITHMS.iter().filter(|(name, _)| !latency || *name == "dp" || name.starts_with("latency"))
        {
            if (!latency && algorithm.starts_with("latency"))
                || !words.iter().all(|word| format!("{short} {algorithm}").contains(word))
            {
                continue;
            }
            let known = published.get(&(input.clone(), (*algorithm).to_string()));
            let Some(document) = run(&root, input, algorithm, arguments, &deadline) else { continue };
            let figure = |pointer: &str| document.pointer(pointer).and_then(Value::as_f64);
            let (value, bound) = (figure("/objective/value"), figure("/lower_bound"));
            let gap = value.zip(bound).map(|(value, bound)| 100.0 * (value - bound) / value);
            let ratio = value.zip(known).map(|(value, known)| value / known.value);
            println!(
                "| {short} | {algorithm} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                shown(value, 4),
                shown(bound, 4),
                gap.map_or_else(|| "-".into(), |gap| format!("{gap:.2}%")),
                document.pointer("/status").and_then(Value::as_str).unwrap_or("-"),
                shown(figure("/stats/seconds"), 3),
                shown(figure("/stats/peak_rss_bytes").map(|bytes| bytes / 1024.0 / 1024.0), 0),
                shown(known.map(|known| known.value), 4),
                shown(known.and_then(|known| known.bound), 4),
                shown(known.and_then(|known| known.cpu_seconds), 2),
                shown(known.and_then(|known| known.peak_mib), 0),
                shown(ratio, 6),
            );
        }
    }
    ExitCode::SUCCESS
}
