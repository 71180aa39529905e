//! Published figures of PaSE, kept as tables in `tests/figures`.

use plantui::{
    generate::networks::PaseNetwork,
    planner::pase::PaseSettings,
    workload::operators::{CostRules, OperatorProfile},
};

/// One value of the published PaSE program.
#[derive(Debug, Clone)]
pub(crate) struct PaseCase {
    /// The network.
    pub(crate) network: PaseNetwork,
    /// Samples in a batch.
    pub(crate) batch: u64,
    /// Devices and machine; cutoff and rules as published.
    pub(crate) settings: PaseSettings,
    /// The least cost.
    pub(crate) min_cost: f64,
    /// Cost of pure data parallelism, whatever the cutoff.
    pub(crate) data_parallel_cost: f64,
    /// Ways the batch is split for it.
    pub(crate) data_parallel_ways: u32,
    /// Cost on one device.
    pub(crate) serial_cost: f64,
    /// Configurations of the operator that has the most.
    pub(crate) max_configurations: usize,
    /// Whether the published program itself found it.
    pub(crate) published: bool,
}

impl PaseCase {
    /// The graph.
    pub(crate) fn profile(&self) -> OperatorProfile {
        let mut sizes = self.network.defaults();
        sizes.batch = self.batch;
        self.network.build(&sizes).expect("the published sizes fit").1
    }

    /// What to call it.
    pub(crate) fn name(&self) -> String {
        let PaseSettings { devices, flops_per_s, bandwidth_bytes_per_s, .. } = self.settings;
        let batch = self.batch;
        format!("{} p={devices} batch={batch} {flops_per_s:e} {bandwidth_bytes_per_s:e}", self.network.id())
    }
}

/// All of them.
pub(crate) fn pase_cases() -> impl Iterator<Item = PaseCase> {
    include_str!("../figures/pase.tsv").lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| fields[i].parse::<f64>().ok();
        let network = PaseNetwork::find(fields[0]).unwrap();
        PaseCase {
            network,
            batch: fields[2].parse().unwrap(),
            settings: PaseSettings {
                devices: fields[1].parse().unwrap(),
                cutoff: network.cutoff(),
                flops_per_s: number(3).unwrap() * 1e12,
                bandwidth_bytes_per_s: number(4).unwrap() * 1e9,
                rules: CostRules::default(),
            },
            min_cost: number(5).unwrap(),
            data_parallel_ways: fields[6].parse().unwrap(),
            data_parallel_cost: number(7).unwrap(),
            serial_cost: number(8).unwrap(),
            max_configurations: fields[9].parse().unwrap(),
            published: fields[10] == "yes",
        }
    })
}
