//! Piper's speed on the published inputs, one thread, loading excluded, beside the published program's CPU seconds.
//!
//! `PLANTUI_REFERENCE=.. cargo bench --bench piper [FILTER]`; without the reference folder it measures the built-in
//! workload. The best of several runs is shown; peak memory is that of the whole process so far.

use std::{path::PathBuf, sync::Arc, time::Instant};

use plantui::{
    cluster::Limits,
    planner::{self, Options, Problem, Search},
    workload::{self, Workload},
};

/// Published CPU seconds by (input, devices, memory in bytes, microbatches, bandwidth).
fn published() -> Vec<(String, Limits, Option<f64>, Option<f64>)> {
    let table = include_str!("../tests/figures/piper.tsv");
    let row = |line: &str| {
        let field: Vec<&str> = line.split('\t').collect();
        let limits = Limits {
            cpus: 0,
            devices: field[2].parse().ok()?,
            memory_bytes: field[3].parse().ok()?,
            microbatches: field[4].parse().ok()?,
            bandwidth_bytes_per_s: field[5].parse().ok()?,
            ..Limits::NEUTRAL
        };
        (field[6] == "Piper").then(|| (field[1].to_string(), limits, field[7].parse().ok(), field[8].parse().ok()))
    };
    table.lines().filter(|line| !line.starts_with('#')).skip(1).filter_map(row).collect()
}

/// Peak resident memory of this process, MiB, where /proc tells.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

fn measure(workload: &Arc<Workload>, limits: Limits) -> (f64, Option<f64>) {
    let planner = planner::find("piper").expect("registered");
    let problem = Problem { workload: Arc::clone(workload), limits, options: Options::defaults(planner.options()) };
    let mut best = f64::INFINITY;
    let mut value = None;
    let begun = Instant::now();
    for _ in 0..5 {
        let started = Instant::now();
        let outcome = planner.plan(&problem, &Search::default());
        best = best.min(started.elapsed().as_secs_f64());
        value = outcome.objective;
        if begun.elapsed().as_secs_f64() > 3.0 {
            break;
        }
    }
    (best, value)
}

fn main() {
    let filter: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE is not set: the published inputs are not measured");
        return;
    };
    println!(
        "{:42} {:>5} {:>9} {:>6} {:>12} {:>10} {:>11} {:>8} {:>9}",
        "input", "k", "GiB", "N", "s/sample", "ms", "published s", "ratio", "peak MiB"
    );
    for (input, limits, theirs, cpu) in published() {
        let name = format!("{input} {} {}", limits.devices, limits.memory_bytes / (1u64 << 30) as f64);
        if !filter.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let loaded = Arc::new(workload::load(&root.join(&input)).expect("a published input loads"));
        let (seconds, value) = measure(&loaded, limits);
        let better = match (value, theirs) {
            (Some(ours), Some(theirs)) if ours < theirs * (1.0 - 1e-9) => " lower",
            (Some(ours), Some(theirs)) if ours > theirs * (1.0 + 1e-9) => " HIGHER",
            (None, None) => " infeasible",
            _ => "",
        };
        println!(
            "{input:42} {:>5} {:>9.3} {:>6} {:>12} {:>10.3} {:>11} {:>8} {:>9.1}{better}",
            limits.devices,
            limits.memory_bytes / (1u64 << 30) as f64,
            limits.microbatches,
            value.map_or("-".into(), |v| format!("{v:.6}")),
            seconds * 1e3,
            cpu.map_or("-".into(), |cpu| format!("{cpu:.2}")),
            cpu.map_or("-".into(), |cpu| format!("{:.0}", cpu / seconds)),
            peak_mib().unwrap_or(f64::NAN),
        );
    }
}
