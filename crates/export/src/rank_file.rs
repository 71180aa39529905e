//! Device of every rank, for launchers: a row per rank, and the visible devices of each machine.

use std::fmt::Write;

use super::{engine::launch, formats::ScoredPlan};
use plantui_core::family::{self, kinds::KindCount};

/// Ranks in the order of stages, replicas and shards: `rank,stage,replica,shard,machine,device,local_device`. Machines
/// are those of the plan's topology, else those of the limits, else as the engines' launch lines spread them: up to
/// eight devices in each. With several kinds of devices, machines are counted kind by kind, and a column names the kind.
/// Without either, the devices of a placement are all in machine 0. A leading line for each
/// machine lists its devices in the order of their ranks. `O(devices)`.
pub(crate) fn to_csv(exported: &ScoredPlan<'_>) -> String {
    let ScoredPlan { workload, limits, plan, .. } = exported;
    let devices = u32::try_from(plan.devices().count()).unwrap_or(u32::MAX);
    let each = launch::Spread::of(limits, devices).each;
    let launched = limits.machines.is_empty() && family::of(workload).id() != "placements";
    let mixed = workload.mixed();
    let place = |device: u32| -> (usize, u32) {
        if let Some((machine, local)) = mixed.and_then(|profile| profile.machine_of(device)) {
            return (machine, local);
        }
        let machine = |device: u32| match &plan.topology {
            Some(topology) => topology.machine_of(device as usize),
            None if launched => (device / each) as usize,
            None => limits.machines.machine_of(device).unwrap_or(0),
        };
        let own = machine(device);
        // Devices of a machine have consecutive numbers.
        let first = (0..device).rev().take_while(|&other| machine(other) == own).last().unwrap_or(device);
        (own, device - first)
    };
    let kinds = !KindCount::of(workload).is_empty();
    let mut rows = String::new();
    let mut shown: std::collections::BTreeMap<usize, Vec<String>> = std::collections::BTreeMap::new();
    let mut rank = 0;
    for (number, stage) in (1..).zip(&plan.stages) {
        let shards = stage.tensor_parallel.max(1);
        for (at, &device) in (0..).zip(&stage.devices) {
            let (machine, local) = place(device);
            shown.entry(machine).or_default().push(local.to_string());
            let (replica, shard) = (at / shards, at % shards);
            let number: u32 = number;
            let own = family::of(workload).stage_kind(stage).unwrap_or_default();
            let kind = if kinds { format!(",{own}") } else { String::new() };
            writeln!(rows, "{rank},{number},{replica},{shard},{machine},{device},{local}{kind}")
                .expect("a string takes every write");
            rank += 1;
        }
    }
    let mut text = String::new();
    for (machine, local) in shown {
        writeln!(text, "# machine {machine}: CUDA_VISIBLE_DEVICES={}", local.join(","))
            .expect("a string takes every write");
    }
    let kind = if kinds { ",kind" } else { "" };
    text + "rank,stage,replica,shard,machine,device,local_device" + kind + "\n" + &rows
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use plantui_core::{
        cluster::{Limits, topology::named},
        plan::{Plan, Score, Stage},
        workload,
    };

    #[test]
    fn ranks_follow_stages_and_machines_their_own_devices() {
        let stage = |data_parallel| Stage {
            nodes: vec![],
            choices: vec![],
            data_parallel,
            tensor_parallel: 1,
            devices: vec![],
        };
        let plan = Plan { stages: vec![stage(2), stage(1)], ..Plan::default() };
        let plan = plan.on(&Arc::new(named("2xdgx-1").unwrap()), &[9, 8, 3]);
        let (workload, limits, score) = (workload::builtin(), Limits::NEUTRAL, Score::default());
        let text = to_csv(&ScoredPlan { workload: &workload, limits: &limits, plan: &plan, score: &score });
        let expected = "# machine 0: CUDA_VISIBLE_DEVICES=3\n# machine 1: CUDA_VISIBLE_DEVICES=1,0\n\
                        rank,stage,replica,shard,machine,device,local_device\n0,1,0,0,1,9,1\n1,1,1,0,1,8,0\n2,2,0,0,0,3,3\n";
        assert_eq!(text, expected);
    }
}
