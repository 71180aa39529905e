//! A published profile planned and mapped to a topology, as the table of topologies and its tests do.

use std::{sync::Arc, time::Duration};

use plantui::{
    cluster::{GivenLimits, LimitKind, topology::LinkRule},
    family,
    planner::{self, Options, Problem, Search},
    run::Run,
    simulate::Schedule,
    workload::{Workload, formats::PlanTopology},
};

/// Time limit of one search.
const PATIENCE: Duration = Duration::from_secs(60);
const MOST_MEMBERS: u32 = 4;

/// A batch of 128 under a planner with settings, on a topology whose devices have the memory of its own machines: planned,
/// mapped and simulated. A search that takes longer than a minute gives what it has; each
/// member of the ensemble has as long.
pub(crate) fn planned(workload: &Arc<Workload>, topology: &str, id: &str, settings: &[&str]) -> Run {
    let wired = PlanTopology::read(topology).expect("a preset");
    let asked = GivenLimits::default()
        .with(LimitKind::Devices, wired.topology.devices() as u32)
        .on(Some(wired.topology.machines()))
        .with(LimitKind::Batch, 128)
        .maybe(LimitKind::Memory, wired.topology.memory_bytes)
        .wired(Some(wired.clone()));
    let limits = family::resolve(workload, &asked).expect("every limit is given");
    let planner = planner::find(id).expect("a planner of this program");
    let links = LinkRule::of(&wired.topology).links();
    let own = [
        format!("topology={topology}"),
        format!("nvlink_bandwidth={}", links.in_machine),
        format!("ethernet_bandwidth={}", links.between_machines),
        format!("all_reduce_bandwidth={}", links.all_reduce),
    ];
    let declared =
        |setting: &&String| planner.options().iter().any(|spec| setting.split('=').next() == Some(spec.name));
    let all = own.iter().filter(declared).map(String::as_str).chain(settings.iter().copied());
    let options = Options::parse(id, planner.options(), all).expect("settings that it takes");
    let patience = if id == "ensemble" { PATIENCE * MOST_MEMBERS } else { PATIENCE };
    let problem = Problem { workload: Arc::clone(workload), limits, options };
    let mut run = Run::new(planner, problem, &Search::new(Some(patience), 0)).expect("a sound plan");
    run.simulate(Schedule::OneForwardOneBackward, &Search::default());
    run
}
