//! Table of DAPPLE plans by model, cluster and batch: the published planner's plan and ours, both simulated.
//!
//! `PLANTUI_REFERENCE=.. cargo run --release --example dapple_table > table.tsv`

use std::{path::PathBuf, sync::Arc};

use plantui::{
    cluster::{Limits, Machines},
    family::{self, dial},
    plan::Plan,
    planner::{self, OptionValue, Options, Problem, Search},
    run,
    simulate::{Schedule, SimulatorSettings, simulate},
    units,
    workload::{self},
};

/// Stages of a plan: `8:8`, with an `r` if a stage recomputes.
fn shape(plan: &Plan) -> String {
    let stage = |stage: &plantui::plan::Stage| {
        let recompute = if stage.recomputed() > 0 { "r" } else { "" };
        format!("{}{recompute}", stage.data_parallel)
    };
    plan.stages.iter().map(stage).collect::<Vec<_>>().join(":")
}

fn main() {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        eprintln!("set PLANTUI_REFERENCE to the folder of the published profiles");
        return;
    };
    println!("profile\tmachines\tbatch\tpublished\tstages\tsimulated s\tours\tstages\tsimulated s\tstatus\tms");
    let table = include_str!("../tests/figures/dapple.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    for line in table {
        let field: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| field[i].parse::<f64>().expect("a number");
        let workload = workload::load(&root.join(field[1])).unwrap_or_else(|error| panic!("{error}"));
        let workload = Arc::new(dial::turned(&workload, "profile-batch", field[4]).expect("a layer profile"));
        let machines = Machines::parse(field[2]).expect("machines");
        let limits = Limits {
            devices: machines.devices(),
            machines: machines.clone(),
            batch: Some(number(3) as u32),
            memory_bytes: Some(16e9),
            ..Limits::NEUTRAL
        };
        let run = |id: &str| {
            let planner = planner::find(id).expect("a planner of this program");
            let mut options = Options::defaults(planner.options());
            let names = ["micro_batch", "optimizer_memory_scaling", "peak_activation_per_sample"];
            for (i, name) in names.into_iter().enumerate() {
                options.set(name, OptionValue::Number(number(5 + i)));
            }
            let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
            run::plan(planner, &problem, &Search::default()).unwrap().0
        };
        let simulated = |plan: &Plan| {
            let pipeline = family::pipeline(&workload, &limits, plan, &SimulatorSettings::default());
            simulate(&pipeline, Schedule::OneForwardOneBackward).iteration_s
        };
        let (theirs, ours) = (run("dapple-hpgo"), run("dapple"));
        let cells = |outcome: &planner::Outcome| match (&outcome.plan, outcome.objective) {
            (Some(plan), Some(value)) => {
                format!("{}\t{}\t{:.4}", units::number(value), shape(plan), simulated(plan))
            }
            _ => "-\t-\t-".into(),
        };
        println!(
            "{}\t{machines}\t{}\t{}\t{}\t{:?}\t{:.1}",
            field[1],
            limits.samples(),
            cells(&theirs),
            cells(&ours),
            ours.status,
            ours.statistics.seconds * 1e3
        );
    }
}
