//! PaSE's search time and costs beside the published ones: one thread, tables included, loading excluded.
//!
//! `cargo bench --bench pase [FILTER]` prints the table; every word of the filter must occur in `network p=P batch=B`.
//! Published seconds are CPU seconds of the published program (without its tables). If it did not finish, they come
//! from the paper's own Table I (wall clock, another machine). Peak memory is that of the whole process so far.

use std::time::Instant;

use plantui::{
    generate::networks::PaseNetwork,
    planner::{
        Search,
        pase::{
            PaseSettings, data_parallel,
            model::PaseModel,
            order::Order,
            solve::{Method, Solution, solve},
        },
    },
    workload::{OperatorProfile, operators::CostRules},
};

/// Table I of the paper, seconds: network, devices, PaSE's search.
const PAPER: [(&str, u32, f64); 20] = [
    ("alexnet", 4, 0.226),
    ("alexnet", 8, 0.253),
    ("alexnet", 16, 0.295),
    ("alexnet", 32, 0.361),
    ("alexnet", 64, 0.475),
    ("inception3", 4, 14.398),
    ("inception3", 8, 20.018),
    ("inception3", 16, 39.791),
    ("inception3", 32, 86.039),
    ("inception3", 64, 196.253),
    ("rnnlm", 4, 0.057),
    ("rnnlm", 8, 0.086),
    ("rnnlm", 16, 0.069),
    ("rnnlm", 32, 0.131),
    ("rnnlm", 64, 0.215),
    ("transformer", 4, 9.752),
    ("transformer", 8, 28.798),
    ("transformer", 16, 130.882),
    ("transformer", 32, 553.022),
    ("transformer", 64, 1883.187),
];

/// Peak resident memory of this process, MiB, if /proc reports it.
fn peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}

fn search(profile: &OperatorProfile, settings: &PaseSettings) -> Solution {
    let model = PaseModel::new(profile, settings).expect("the published sizes fit");
    let method = Method { order: Order::MinDegree, bounds: true };
    solve(&model.pairwise, vec![0; model.spaces.len()], method, &Search::default(), |_, _| {})
}

/// Cost of data parallelism: a model with this one configuration.
fn data_parallel(profile: &OperatorProfile, settings: &PaseSettings) -> f64 {
    use plantui::planner::pase::space::Space;
    let ways = data_parallel::ways(profile, settings.devices, 1);
    let only = |_: usize, operator: &_| Some(Space::single(data_parallel::split(operator, ways)));
    let model = PaseModel::with_spaces(profile, settings, only, &|| false).expect("one configuration fits");
    model.pairwise.cost(&vec![0; model.spaces.len()])
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let figures: Vec<Vec<&str>> = include_str!("../tests/figures/pase.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split('\t').collect())
        .collect();
    println!(
        "{:<12} {:>5} {:>5} {:>12} {:>12} {:>8} {:>9} {:>11} {:>9} {:>9} {:>8}",
        "network", "p", "batch", "published", "ours", "x dp", "ours s", "published s", "paper s", "left", "MiB"
    );
    let mut cases: Vec<(PaseNetwork, u32, u64, f64, f64)> = figures
        .iter()
        .map(|row| {
            let number = |i: usize| row[i].parse::<f64>().expect("a figure");
            let network = PaseNetwork::find(row[0]).expect("a network");
            (network, number(1) as u32, number(2) as u64, number(3), number(4))
        })
        .collect();
    cases.extend(PaseNetwork::ALL.map(|network| (network, 1024, 1024, 10.0, 16.0)));
    for (network, devices, batch, tflops, gbytes) in cases {
        let name = format!("{} p={devices} batch={batch}", network.id());
        if !words.iter().all(|word| name.contains(word.as_str())) {
            continue;
        }
        let mut sizes = network.defaults();
        sizes.batch = batch;
        let (_, profile) = network.build(&sizes).expect("the sizes fit");
        let settings = PaseSettings {
            devices,
            cutoff: network.cutoff(),
            flops_per_s: tflops * 1e12,
            bandwidth_bytes_per_s: gbytes * 1e9,
            rules: CostRules::default(),
        };
        let mut seconds = f64::INFINITY;
        let mut found = None;
        for _ in 0..3 {
            let started = Instant::now();
            found = Some(search(&profile, &settings));
            seconds = seconds.min(started.elapsed().as_secs_f64());
        }
        let Some(found) = found else { continue };
        let row = figures.iter().find(|row| {
            (row[0], row[1].parse(), row[2].parse()) == (network.id(), Ok(devices), Ok(batch))
                && row[3].parse() == Ok(tflops)
                && row[4].parse() == Ok(gbytes)
        });
        let published = row.map_or("-".into(), |row| format!("{:.4e}", row[5].parse::<f64>().expect("a figure")));
        let paper = PAPER.iter().find(|row| row.0 == network.id() && row.1 == devices && batch == 128);
        println!(
            "{:<12} {devices:>5} {batch:>5} {published:>12} {:>12} {:>8.3} {seconds:>9.5} {:>11} {:>9} {:>9} {:>8.1}{}",
            network.id(),
            format!("{:.4e}", found.cost),
            data_parallel(&profile, &settings) / found.cost,
            row.map_or("-", |row| row[11]),
            paper.map_or("-".into(), |row| row.2.to_string()),
            found.work.labels_left,
            peak_mib().unwrap_or(f64::NAN),
            if found.proven { "" } else { "  not proven" },
        );
    }
}
