//! How long Joint takes: `PLANTUI_REFERENCE=.. cargo bench --bench joint`.

use std::{path::PathBuf, sync::Arc};

use plantui::{
    cluster::Overrides,
    family,
    planner::{self, Options, Problem, Search},
    run, workload,
};

fn main() {
    divan::main();
}

/// Input, devices, microbatches, GiB.
const CELLS: [(&str, u32, u32, u32); 8] = [
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
fn cell<const CELL: usize>(bencher: divan::Bencher<'_, '_>) {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else { return };
    let (input, devices, microbatches, gib) = CELLS[CELL];
    let workload = workload::load(&root.join(format!("joint/{input}.json"))).expect("a profile");
    let overrides = Overrides {
        devices: Some(devices),
        microbatches: Some(microbatches),
        memory_bytes: Some(f64::from(gib) * f64::from(1 << 30)),
        ..Overrides::default()
    };
    let limits = family::resolve(&workload, &overrides).expect("limits");
    let planner = planner::find("joint").expect("the planner");
    let options = Options::defaults(planner.options());
    let problem = Problem { workload: Arc::new(workload), limits, options };
    bencher.bench_local(|| run::plan(planner, &problem, &Search::default()).unwrap());
}
