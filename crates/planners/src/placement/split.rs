//! A split assigns nodes to devices. This module scores any split.
//!
//! Scoring is `O(n + m)` and needs no property of the split: it may divide classes and need not be contiguous. The
//! published evaluator adds all CPUs into one load; here each CPU is a device of its own.

use super::PlacementLimits;
use plantui_core::{
    family::placement::split_file::SplitFile,
    graph::Dag,
    plan::{Measure, Plan, Stage},
    source::LoadError,
    workload::{Choice, Node, NodeIndex, PlacementProfile},
};

/// Stage of a device with these nodes.
pub(super) fn stage(nodes: &[usize], choice: Choice, device: u32) -> Stage {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    Stage {
        choices: vec![choice; nodes.len()],
        nodes: NodeIndex::list(nodes),
        data_parallel: 1,
        tensor_parallel: 1,
        devices: vec![device],
    }
}

/// Kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// Pays for transfers, has limited memory, and cannot run every node.
    Accelerator,
    /// Runs every node, with host memory.
    Cpu,
}

/// A device and its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Accelerator or CPU.
    pub kind: DeviceKind,
    /// Node indices, ascending.
    pub nodes: Vec<usize>,
}

/// Assignment of nodes to devices. The devices of a contiguous split are in pipeline order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// Devices.
    pub devices: Vec<Device>,
}

/// Load of one device, by parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DeviceLoad {
    /// Time of its forward nodes.
    pub forward: f64,
    /// Time of its backward nodes.
    pub backward: f64,
    /// Transfers of tensors that other devices produced; none on a CPU.
    pub received: f64,
    /// Transfers of tensors that other devices need; none on a CPU.
    pub sent: f64,
    /// Size of its nodes, bytes.
    pub size_bytes: f64,
    /// Number of nodes that the device cannot run.
    pub unsupported: usize,
}

impl DeviceLoad {
    /// Total time.
    pub fn total(&self) -> f64 {
        self.forward + self.backward + self.received + self.sent
    }
}

/// Score of a split.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitScore {
    /// Load of each device.
    pub loads: Vec<DeviceLoad>,
    /// Load of the busiest device.
    pub max_load: f64,
}

impl SplitScore {
    /// Indices of the accelerators whose nodes exceed the memory.
    pub fn over_memory<'a>(&'a self, split: &'a Split, memory_bytes: f64) -> impl Iterator<Item = usize> + 'a {
        let full = move |&d: &usize| {
            split.devices[d].kind == DeviceKind::Accelerator && self.loads[d].size_bytes > memory_bytes
        };
        (0..self.loads.len()).filter(full)
    }
}

impl Split {
    /// Split of the given devices; nodes may come in any order.
    pub fn from_stages(stages: impl IntoIterator<Item = (DeviceKind, Vec<usize>)>) -> Self {
        let devices = stages
            .into_iter()
            .map(|(kind, mut nodes)| {
                nodes.sort_unstable();
                Device { kind, nodes }
            })
            .collect();
        Split { devices }
    }

    /// Device of every node of a graph with `n` nodes, if it has one.
    pub fn device_of(&self, n: usize) -> Vec<Option<usize>> {
        let mut device_of = vec![None; n];
        for (d, device) in self.devices.iter().enumerate() {
            for &node in &device.nodes {
                device_of[node] = Some(d);
            }
        }
        device_of
    }

    /// Number of non-empty devices of a kind.
    pub fn used(&self, kind: DeviceKind) -> usize {
        self.devices.iter().filter(|device| device.kind == kind && !device.nodes.is_empty()).count()
    }

    /// Load of every device. A node on no device costs nothing itself, but counts as outside of every device.
    pub fn score(&self, dag: &Dag, profile: &PlacementProfile) -> SplitScore {
        let device_of = self.device_of(dag.len());
        let mut loads = vec![DeviceLoad::default(); self.devices.len()];
        let is_accelerator = |d: usize| self.devices[d].kind == DeviceKind::Accelerator;
        let mut paid: Vec<usize> = vec![];
        for (node, cost) in profile.nodes.iter().enumerate() {
            if let Some(d) = device_of[node] {
                let load = &mut loads[d];
                let time = if is_accelerator(d) { cost.accelerator_time } else { cost.cpu_time };
                *(if cost.backward { &mut load.backward } else { &mut load.forward }) += time;
                load.size_bytes += cost.size_bytes;
                load.unsupported += usize::from(is_accelerator(d) && !cost.supported);
            }
            paid.clear();
            let mut leaves = false;
            for reader in dag.successors(node).filter(|&v| device_of[v] != device_of[node]) {
                leaves = true;
                if let Some(d) = device_of[reader].filter(|&d| is_accelerator(d))
                    && !paid.contains(&d)
                {
                    loads[d].received += cost.transfer;
                    paid.push(d);
                }
            }
            if let Some(d) = device_of[node].filter(|&d| leaves && is_accelerator(d)) {
                loads[d].sent += cost.transfer;
            }
        }
        let max_load = loads.iter().map(DeviceLoad::total).fold(0.0, f64::max);
        SplitScore { loads, max_load }
    }

    /// Plan of the split; accelerators are numbered from 0, CPUs after them.
    pub(super) fn plan(&self, limits: &PlacementLimits) -> Plan {
        let (mut accelerators, mut cpus) = (0, limits.accelerators);
        let mut plan = Plan { measure: Measure::MaxLoad, ..Plan::default() };
        for device in self.devices.iter().filter(|device| !device.nodes.is_empty()) {
            let (choice, next) = match device.kind {
                DeviceKind::Accelerator => (Choice::Accelerator, &mut accelerators),
                DeviceKind::Cpu => (Choice::Cpu, &mut cpus),
            };
            plan.stages.push(stage(&device.nodes, choice, *next));
            *next += 1;
        }
        plan
    }

    /// Reads a split in the published format. Nodes may be missing; `source` names the file in messages.
    ///
    /// # Errors
    /// [`LoadError`] if the file is not a split, names a node that the graph lacks, or names one twice.
    pub fn read(text: &str, source: &str, nodes: &[Node]) -> Result<Split, LoadError> {
        let SplitFile { accelerators, cpus, .. } = SplitFile::read(text, source, nodes)?;
        let plain = |nodes: Vec<NodeIndex>| nodes.into_iter().map(NodeIndex::index).collect();
        let accelerators = accelerators.into_iter().map(|nodes| (DeviceKind::Accelerator, plain(nodes)));
        Ok(Split::from_stages(accelerators.chain(cpus.into_iter().map(|nodes| (DeviceKind::Cpu, plain(nodes))))))
    }
}
