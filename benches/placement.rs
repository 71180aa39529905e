//! Speed of device placement on the published inputs, one thread, loading excluded, beside the published programs.
//!
//! `PLANTUI_REFERENCE=.. cargo bench --bench placement [FILTER]`; every word of the filter must occur in
//! `input algorithm`. Shows the best of several runs. Peak memory is that of the whole process so far; filter to one
//! input for its own peak.

use std::{path::PathBuf, time::Instant};

use plantui::{
    planner::{
        Search,
        placement::{
            PlacementLimits, PlacementResult, baselines,
            dp::{self, DpOptions},
            linearise, local_search, pipedream,
            unequal::{self, KindLimits, UnequalLimits, UnequalSpace},
        },
    },
    workload::formats::placement::{PlacementFile, read},
};

/// Peak resident memory of this process, MiB, if /proc reports it.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

/// Runs the algorithm of this name; `None` if it is not measured here.
fn run(algorithm: &str, file: &PlacementFile, limits: &PlacementLimits) -> Option<PlacementResult> {
    let (dag, profile) = (&file.dag, &file.profile);
    let (options, search) = (DpOptions::default(), Search::default());
    Some(match algorithm {
        "dp" => dp::plan(dag, profile, limits, &options, &search),
        "dpl" => linearise::plan(dag, profile, limits, &options, &search),
        "pipedream" => pipedream::plan(dag, profile, limits, &search),
        "one-accelerator" => baselines::one_accelerator(dag, profile, limits),
        "local-search-10" => local_search::plan(dag, profile, limits, 10, &search).0,
        _ => return None,
    })
}

/// Splits over the same number of accelerators, half of them twice as fast and the others with half the memory. The rule
/// that skips sets which no number of devices can hold pays 7 times on InceptionV3's training graph.
fn two_kinds(file: &PlacementFile, limits: &PlacementLimits) -> Option<f64> {
    let half = limits.accelerators / 2;
    let memory_bytes = limits.memory_bytes;
    let kinds = vec![
        KindLimits { first: 0, count: half, speed: 2.0, memory_bytes },
        KindLimits { first: half, count: limits.accelerators - half, speed: 1.0, memory_bytes: memory_bytes / 2.0 },
    ];
    let limits = UnequalLimits { kinds, accelerators: limits.accelerators, cpus: limits.cpus };
    let (space, search) = (UnequalSpace::default(), Search::default());
    unequal::plan(&file.dag, &file.profile, &limits, space, &search, &mut |_, _| ()).best.map(|(value, _)| value)
}

fn main() {
    let filter: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE is not set: the published inputs are not measured");
        return;
    };
    println!(
        "{:50} {:16} {:>14} {:>14} {:>10} {:>11} {:>8} {:>9}",
        "input", "algorithm", "value", "published", "ms", "published s", "ratio", "peak MiB"
    );
    let rows: Vec<Vec<&str>> = include_str!("../tests/figures/placement.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect();
    for row in &rows {
        // Rows from an independent program have a value, but no published time.
        let published = !matches!(row[1], "dp-streaming" | "local-search-10-incremental");
        let algorithm = row[1].trim_end_matches("-streaming").trim_end_matches("-incremental");
        let twin = |other: &&Vec<&str>| other[0] == row[0] && other[1] == algorithm;
        if !published && rows.iter().any(|other| twin(&other)) {
            continue;
        }
        let name = format!("{} {algorithm}", row[0]);
        if !filter.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let text = std::fs::read_to_string(root.join(row[0])).expect("a published input is there");
        let file = read(&text, row[0], row[0]).expect("a published input loads");
        let limits = PlacementLimits {
            accelerators: file.accelerators.expect("published inputs have limits"),
            cpus: file.cpus.expect("published inputs have limits"),
            memory_bytes: file.memory_bytes.expect("published inputs have limits"),
        };
        let (mut best, mut value) = (f64::INFINITY, None);
        let begun = Instant::now();
        for _ in 0..5 {
            let started = Instant::now();
            let Some(placed) = run(algorithm, &file, &limits) else { break };
            best = best.min(started.elapsed().as_secs_f64());
            value = placed.max_load;
            if begun.elapsed().as_secs_f64() > 3.0 {
                break;
            }
        }
        if best.is_infinite() {
            continue;
        }
        let cpu = row[4].parse::<f64>().ok().filter(|_| published);
        println!(
            "{:50} {algorithm:16} {:>14} {:>14} {:>10.3} {:>11} {:>8} {:>9.1}",
            row[0].trim_start_matches("dnn-partitioning/"),
            value.map_or("-".into(), |v| format!("{v:.6}")),
            row[2].parse::<f64>().map_or("-".into(), |v| format!("{v:.6}")),
            best * 1e3,
            cpu.map_or("-".into(), |cpu| format!("{cpu:.3}")),
            cpu.map_or("-".into(), |cpu| format!("{:.0}", cpu / best)),
            peak_mib().unwrap_or(f64::NAN),
        );
        if algorithm == "dp" && row[0].contains("throughput") {
            let started = Instant::now();
            let value = two_kinds(&file, &limits);
            println!(
                "{:50} {:16} {:>14} {:>14} {:>10.3}",
                row[0].trim_start_matches("dnn-partitioning/"),
                "dp on two kinds",
                value.map_or("-".into(), |v| format!("{v:.6}")),
                "-",
                started.elapsed().as_secs_f64() * 1e3,
            );
        }
    }
}
