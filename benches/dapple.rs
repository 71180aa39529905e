//! Planning time of DAPPLE's planners on the published profiles: `PLANTUI_REFERENCE=.. cargo bench --bench dapple`.
//!
//! Published, one thread: xlnet_36 on two machines of eight 0.97 s, resnet50 34 s.

use std::{path::PathBuf, sync::Arc};

use plantui::{
    cluster::{Limits, Machines},
    family::dial,
    planner::{self, OptionValue, Options, Problem, Search},
    run, workload,
};

fn main() {
    divan::main();
}

const PROFILES: [(&str, f64, u32); 6] = [
    ("xlnet_36", 1.0, 128),
    ("bert_48", 2.0, 64),
    ("amoebanet_36", 1.0, 128),
    ("resnet50", 32.0, 2048),
    ("gnmt_large", 64.0, 1024),
    ("densenet121", 32.0, 1024),
];

fn problem(id: &str, (profile, batch_of_profile, batch): (&str, f64, u32), machines: &str) -> Option<Problem> {
    let root = PathBuf::from(std::env::var_os("PLANTUI_REFERENCE")?);
    let workload =
        workload::load(&root.join(format!("hpgo/profiles/{profile}/graph.txt"))).expect("a published profile");
    let machines = Machines::parse(machines).expect("machines");
    let limits = Limits {
        devices: machines.devices(),
        machines,
        batch: Some(batch),
        memory_bytes: Some(16e9),
        ..Limits::NEUTRAL
    };
    let mut options = Options::defaults(planner::find(id).expect("a planner").options());
    let workload = dial::turned(&workload, "profile-batch", &batch_of_profile.to_string()).expect("a layer profile");
    options.set("micro_batch", OptionValue::Number(batch_of_profile));
    Some(Problem { workload: Arc::new(workload), limits, options })
}

#[divan::bench(args = ["dapple-hpgo", "dapple"], consts = [0, 1, 2, 3, 4, 5], sample_count = 5)]
fn two_machines_of_eight<const PROFILE: usize>(bencher: divan::Bencher<'_, '_>, id: &str) {
    let Some(problem) = problem(id, PROFILES[PROFILE], "8,8") else { return };
    let planner = planner::find(id).expect("a planner");
    bencher.bench_local(|| run::plan(planner, &problem, &Search::default()).unwrap());
}

#[divan::bench(args = ["dapple-hpgo", "dapple"], consts = [0, 1, 2, 3, 4, 5], sample_count = 5)]
fn sixteen_machines<const PROFILE: usize>(bencher: divan::Bencher<'_, '_>, id: &str) {
    let Some(problem) = problem(id, PROFILES[PROFILE], "16x1") else { return };
    let planner = planner::find(id).expect("a planner");
    bencher.bench_local(|| run::plan(planner, &problem, &Search::default()).unwrap());
}
