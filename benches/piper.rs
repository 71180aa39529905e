//! Piper's speed on random networks and on the published inputs, loading excluded; for the latter beside the published
//! program's CPU seconds.
//!
//! `PLANTUI_REFERENCE=.. cargo bench --bench piper [FILTER]`. Without the reference folder it measures only the random
//! networks: parallel branches and long chains with random costs. For these it shows CPU seconds, which a busy machine
//! hardly changes; for the published inputs the best of several runs. Peak memory is that of the whole process so far.

#[path = "../tests/common/random_piper.rs"]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
mod random_piper;

use std::{path::PathBuf, sync::Arc, time::Duration, time::Instant};

use plantui::{
    cluster::Limits,
    planner::{self, Options, Problem, Search},
    workload::{
        self, DegreeProfile, Mode, Workload,
        piper::{NodeProfile, RECOMPUTE, VANILLA},
    },
};
use random_piper::{Random, assemble};

/// Random network and the limits of its plan.
struct RandomNetwork {
    branches: usize,
    length: usize,
    devices: u32,
    microbatches: u32,
    /// Memory of a device as a fraction of the whole network's memory with one microbatch in flight.
    memory_share: f64,
    /// True if the modes of a node differ only in time and memory.
    uniform: bool,
}

const fn made(branches: usize, length: usize, devices: u32, memory_share: f64, uniform: bool) -> RandomNetwork {
    let microbatches = if devices > 64 { devices } else { 32 };
    RandomNetwork { branches, length, devices, microbatches, memory_share, uniform }
}

const MADE: [RandomNetwork; 16] = [
    made(2, 40, 16, 0.15, true),
    made(2, 40, 16, 0.15, false),
    made(2, 40, 16, 0.5, false),
    made(4, 8, 16, 0.15, true),
    made(4, 8, 16, 0.15, false),
    made(4, 8, 16, 0.5, false),
    made(3, 20, 16, 0.15, true),
    made(3, 20, 16, 0.15, false),
    made(3, 20, 16, 0.5, false),
    made(6, 5, 16, 0.15, true),
    made(6, 5, 16, 0.5, false),
    made(20, 2, 16, 0.15, true),
    made(20, 2, 16, 0.5, false),
    made(1, 250, 1024, 0.02, true),
    made(1, 500, 1024, 0.02, true),
    made(1, 1000, 1024, 0.02, true),
];

impl RandomNetwork {
    fn workload(&self) -> (Workload, Limits) {
        let (n, random) = (self.branches * self.length, &mut Random(1));
        let within = |low: f64, high: f64, random: &mut Random| low + (high - low) * random.amount(1, false);
        let edges: Vec<(u32, u32)> =
            (0..n as u32).filter(|&v| !(v as usize + 1).is_multiple_of(self.length)).map(|v| (v, v + 1)).collect();
        let edge_bytes = edges.iter().map(|_| within(1e6, 5e7, random)).collect();
        let mut held = 0.0;
        let nodes = (0..n)
            .map(|v| {
                let (time, parameters) = (within(1e-3, 1e-2, random), within(1e7, 2e8, random));
                let (a, b) = (within(5e7, 5e8, random), 4.0 * parameters + within(0.0, 1e8, random));
                let (slower, kept) = (within(1.15, 1.5, random), within(0.05, 0.4, random));
                held += a + b;
                let (ins, outs) = (usize::from(v % self.length != 0), usize::from((v + 1) % self.length != 0));
                let mut profile = |degree: u32| {
                    let t = f64::from(degree);
                    let gain = t.powf(within(0.75, 0.95, random));
                    let mut mode = |id: &str, time: f64, a: f64, b: f64| {
                        let sync = if degree == 1 { 0.0 } else { within(0.0, 1e7, random) };
                        let scale = if self.uniform { 1.0 } else { within(0.9, 1.1, random) };
                        Mode {
                            id: id.into(),
                            time_s: time / gain,
                            forward_s: None,
                            parameters: parameters / t * scale,
                            memory_a: (a / t).round(),
                            memory_b: (b / t).round(),
                            sync_in: vec![sync; ins],
                            sync_out: vec![sync; outs],
                        }
                    };
                    let fast = mode(VANILLA, time, a, b);
                    let mut small = mode(RECOMPUTE, time * slower, a * kept, b + 0.2 * a * (1.0 - kept));
                    if self.uniform {
                        small.sync_in.clone_from(&fast.sync_in);
                        small.sync_out.clone_from(&fast.sync_out);
                    }
                    DegreeProfile { degree, modes: vec![fast, small] }
                };
                NodeProfile { degrees: [1, 2, 4].map(&mut profile).to_vec() }
            })
            .collect();
        let limits = Limits {
            cpus: 0,
            devices: self.devices,
            microbatches: self.microbatches,
            memory_bytes: Some(held * self.memory_share),
            bandwidth_bytes_per_s: Some(25e9),
            ..Limits::NEUTRAL
        };
        (assemble(edges, edge_bytes, nodes), limits)
    }

    fn name(&self) -> String {
        let RandomNetwork { branches, length, devices, memory_share, uniform, .. } = self;
        let modes = if *uniform { "alike" } else { "unlike" };
        format!("{branches} x {length}, k {devices}, {memory_share} of memory, modes {modes}")
    }
}

/// CPU seconds of this process so far, all threads, if /proc reports them.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / 100.0)
}

/// Plans each network once, with a deadline; prints the results up to then.
fn made_up(filter: &[String]) {
    println!(
        "{:50} {:16} {:>9} {:>8} {:>12} {:>10} {:>7}",
        "made-up network", "planner", "CPU s", "s", "s/sample", "status", "gap %"
    );
    for made in MADE.iter().filter(|made| filter.iter().all(|word| made.name().contains(word.as_str()))) {
        let (workload, limits) = made.workload();
        let workload = Arc::new(workload);
        for id in ["piper", "equal-partition"] {
            let planner = planner::find(id).expect("registered");
            let options = Options::defaults(planner.options());
            let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
            let (started, cpu) = (Instant::now(), cpu_seconds());
            let outcome = planner.plan(&problem, &Search::new(Some(Duration::from_secs(60)), 0));
            let used = cpu_seconds().zip(cpu).map(|(after, before)| after - before);
            println!(
                "{:50} {id:16} {:>9.2} {:>8.2} {:>12} {:>10} {:>7}",
                made.name(),
                used.unwrap_or(f64::NAN),
                started.elapsed().as_secs_f64(),
                outcome.objective.map_or("-".into(), |value| format!("{value:.7}")),
                format!("{:?}", outcome.status).to_lowercase(),
                outcome.gap().map_or("-".into(), |gap| format!("{:.1}", 100.0 * gap)),
            );
        }
    }
}

/// Published CPU seconds by (input, devices, memory in bytes, microbatches, bandwidth).
fn published() -> Vec<(String, Limits, Option<f64>, Option<f64>)> {
    let table = include_str!("../tests/figures/piper.tsv");
    let row = |line: &str| {
        let field: Vec<&str> = line.split('\t').collect();
        let limits = Limits {
            cpus: 0,
            devices: field[2].parse().ok()?,
            memory_bytes: Some(field[3].parse().ok()?),
            microbatches: field[4].parse().ok()?,
            bandwidth_bytes_per_s: Some(field[5].parse().ok()?),
            ..Limits::NEUTRAL
        };
        (field[6] == "Piper").then(|| (field[1].to_string(), limits, field[7].parse().ok(), field[8].parse().ok()))
    };
    table.lines().filter(|line| !line.starts_with('#')).skip(1).filter_map(row).collect()
}

/// Peak resident memory of this process, MiB, if /proc reports it.
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
    made_up(&filter);
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE is not set: the published inputs are not measured");
        return;
    };
    println!(
        "{:42} {:>5} {:>9} {:>6} {:>12} {:>10} {:>11} {:>8} {:>9}",
        "input", "k", "GiB", "N", "s/sample", "ms", "published s", "ratio", "peak MiB"
    );
    for (input, limits, theirs, cpu) in published() {
        let name = format!("{input} {} {}", limits.devices, limits.memory_limit() / (1u64 << 30) as f64);
        if !filter.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let loaded = Arc::new(workload::load(&root.join(&input)).expect("a published input loads"));
        let (seconds, value) = measure(&loaded, limits.clone());
        let better = match (value, theirs) {
            (Some(ours), Some(theirs)) if ours < theirs * (1.0 - 1e-9) => " lower",
            (Some(ours), Some(theirs)) if ours > theirs * (1.0 + 1e-9) => " HIGHER",
            (None, None) => " infeasible",
            _ => "",
        };
        println!(
            "{input:42} {:>5} {:>9.3} {:>6} {:>12} {:>10.3} {:>11} {:>8} {:>9.1}{better}",
            limits.devices,
            limits.memory_limit() / (1u64 << 30) as f64,
            limits.microbatches,
            value.map_or("-".into(), |v| format!("{v:.6}")),
            seconds * 1e3,
            cpu.map_or("-".into(), |cpu| format!("{cpu:.2}")),
            cpu.map_or("-".into(), |cpu| format!("{:.0}", cpu / seconds)),
            peak_mib().unwrap_or(f64::NAN),
        );
    }
}
