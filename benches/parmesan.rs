//! Planning time of Parmesan: `PLANTUI_REFERENCE=.. cargo bench --bench parmesan`.

use std::{path::PathBuf, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind, topology},
    family,
    planner::{self, Options, Problem, Search},
    run, workload,
};

fn main() {
    divan::main();
}

/// Published profile and settings: a single point, and the whole search.
const CELLS: [(&str, &[&str]); 4] = [
    ("gnmt_large", &[]),
    ("gnmt_large", &["search_k=true", "search_comm_coef=true", "new_flow=both"]),
    ("nasnetalarge", &[]),
    ("nasnetalarge", &["search_k=true", "search_comm_coef=true", "new_flow=both"]),
];

#[divan::bench(consts = [0, 1, 2, 3], sample_count = 3)]
fn on_a_dgx_1<const CELL: usize>(bencher: divan::Bencher<'_, '_>) {
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else { return };
    let (graph, settings) = CELLS[CELL];
    let file = root.join(format!("hpgo/profiles/{graph}/graph.txt"));
    let workload = Arc::new(workload::load(&file).expect("a profile"));
    let dgx = topology::named("dgx-1").expect("a preset");
    let asked = GivenLimits::default()
        .with(LimitKind::Devices, dgx.devices() as u32)
        .on(Some(dgx.machines()))
        .with(LimitKind::Batch, 128)
        .maybe(LimitKind::Memory, dgx.memory_bytes);
    let limits = family::resolve(&workload, &asked).expect("limits");
    let planner = planner::find("parmesan").expect("the planner");
    let all = ["topology=dgx-1"].into_iter().chain(settings.iter().copied());
    let options = Options::parse("parmesan", planner.options(), all).expect("settings that it takes");
    let problem = Problem { workload, limits, options };
    bencher.bench_local(|| run::plan(planner, &problem, &Search::default()).unwrap());
}
