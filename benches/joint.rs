//! Time, memory and gap of Joint: `PLANTUI_REFERENCE=.. cargo bench --bench joint`.
//!
//! Runs every cell under 1F1B and under any schedule. Each time is followed by the allocator's peak. The proven gaps
//! and the prototype's figures come first.

use std::{path::PathBuf, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family,
    planner::{self, Options, Planner, Problem, Search},
    run,
    workload::{self, TrainingProfile, WorkloadFormat, training},
};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const FIGURES: &str = include_str!("../tests/figures/joint.tsv");

fn main() {
    for (number, cell) in CELLS.iter().enumerate() {
        for schedule in ["1f1b", "auto"] {
            let Some(problem) = problem(cell, schedule) else { continue };
            let (outcome, _) = run::plan(planner(), &problem, &Search::default()).expect("a sound plan");
            let (Some(value), Some(gap)) = (outcome.objective, outcome.gap()) else { continue };
            let known = figure(cell).map_or(String::new(), |known| format!(", the figures' 1F1B {known:.4} s"));
            println!("cell {number} {cell:?} {schedule}: {value:.4} s, proven within {:.2}%{known}", 100.0 * gap);
        }
    }
    divan::main();
}

/// Seconds of the prototype under 1F1B, if it has the cell.
fn figure(&(input, devices, microbatches, gib): &JointCase) -> Option<f64> {
    let cell = [format!("{input}.json"), devices.to_string(), microbatches.to_string(), gib.to_string()];
    let fields = FIGURES.lines().skip(2).map(|line| line.split('\t').collect::<Vec<_>>());
    let own = |fields: &Vec<&str>| cell.iter().zip(fields).all(|(own, field)| own == field);
    fields.filter(own).find_map(|fields| fields.get(4)?.parse().ok())
}

fn planner() -> &'static dyn Planner {
    planner::find("joint").expect("the planner")
}

/// Problem of a cell; `None` if the published inputs are missing.
fn problem(&(input, devices, microbatches, gib): &JointCase, schedule: &str) -> Option<Problem> {
    let root = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from)?;
    let workload = workload::load(&root.join(format!("joint/{input}.json"))).expect("a profile");
    let overrides = GivenLimits::default()
        .with(LimitKind::Devices, devices)
        .with(LimitKind::Microbatches, microbatches)
        .with(LimitKind::Memory, f64::from(gib) * f64::from(1 << 30));
    let limits = family::resolve(&workload, &overrides).expect("limits");
    let settings = [format!("schedule={schedule}")];
    let options = Options::parse("joint", planner().options(), settings.iter().map(String::as_str)).expect("options");
    Some(Problem { workload: Arc::new(workload), limits, options })
}

/// Input, devices, microbatches, GiB.
type JointCase = (&'static str, u32, u32, u32);

const CELLS: [JointCase; 8] = [
    ("bert32a100", 64, 512, 4),
    ("bert32a100", 512, 1920, 8),
    ("bert96a100", 256, 128, 8),
    ("bert96a100", 4096, 1920, 8),
    ("gpt3-175b-a100", 256, 128, 40),
    ("llama-3-70b-h100", 64, 512, 40),
    ("llama-3-70b-h100", 256, 1920, 80),
    ("llama-3-70b-h100", 4096, 1920, 80),
];

#[divan::bench(consts = [0, 1, 2, 3, 4, 5, 6, 7], sample_count = 10)]
fn one_f_one_b<const CELL: usize>(bencher: divan::Bencher<'_, '_>) {
    planned(bencher, CELL, "1f1b");
}

#[divan::bench(consts = [0, 1, 2, 3, 4, 5, 6, 7], sample_count = 10)]
fn any_schedule<const CELL: usize>(bencher: divan::Bencher<'_, '_>) {
    planned(bencher, CELL, "auto");
}

fn planned(bencher: divan::Bencher<'_, '_>, cell: usize, schedule: &str) {
    let Some(problem) = problem(&CELLS[cell], schedule) else { return };
    bencher.bench_local(|| run::plan(planner(), &problem, &Search::default()).unwrap());
}

/// Models to be trained: name, devices, sequences in an iteration.
const MODELS: [(&str, u32, u32); 2] = [("llama-3.1-405b", 1024, 128), ("deepseek-v3", 2048, 15_360)];

#[divan::bench(consts = [0, 1], sample_count = 3)]
fn model_to_be_trained<const MODEL: usize>(bencher: divan::Bencher<'_, '_>) {
    let (name, devices, batch) = MODELS[MODEL];
    let model = training::published::find(name).expect("a published name");
    let mut profile = TrainingProfile::new(model, training::hardware::find("h100").expect("a preset"));
    profile.sequence = 4096;
    let workload = Arc::new(profile.into_workload(name, name, WorkloadFormat::Training, None));
    let asked = GivenLimits::default().with(LimitKind::Devices, devices).with(LimitKind::Batch, batch);
    let limits = family::resolve(&workload, &asked).expect("limits");
    let problem = Problem { workload, limits, options: Options::defaults(planner().options()) };
    bencher.bench_local(|| run::plan(planner(), &problem, &Search::default()).unwrap());
}
