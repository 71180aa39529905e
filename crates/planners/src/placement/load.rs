//! Load of a device that holds a set of classes: its time, its memory, and its transfers.
//!
//! An accelerator pays for a tensor once when it produces it for other devices, and once when it receives it from
//! another device. The number of edges does not matter. The *net* of a node is the node and everything that reads its
//! output. A set pays for a net that it intersects and does not contain. Nets inside one class never cost; nets with
//! the same classes are merged. With a counter per net, adding or removing a class takes `O(nets of the class)`.
//!
//! Rounding: a net's cost enters the sum with its first class and leaves it with its last. A cost of 1e30, by which
//! users forbid a cut, would then erase small costs. So searches use costs that are cut off above a useful limit
//! ([`ClassCosts::bounded`]). The load of a split that they find is summed from its parts ([`ClassCosts::load`]).

use std::collections::BTreeMap;

use super::{DeviceKind, classes::Partition};
use plantui_core::{graph::Dag, workload::placement::PlacementProfile};

/// Costs by class, and the nets.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassCosts {
    /// Time on a CPU.
    pub cpu: Vec<f64>,
    /// Time on an accelerator, without transfers.
    pub accelerator: Vec<f64>,
    /// Memory on an accelerator, bytes.
    pub size: Vec<f64>,
    /// True if an accelerator can run all of the class.
    pub supported: Vec<bool>,
    net_cost: Vec<f64>,
    net_pins: Vec<u32>,
    start: Vec<u32>,
    nets: Vec<u32>,
}

impl ClassCosts {
    /// Sums the costs of nodes over classes. `O(n + m log m)`.
    pub fn new(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> Self {
        ClassCosts::of_nodes(dag, profile, partition, |_| true)
    }

    /// Sums the costs of the nodes for which `counts` is true. The others take no time or memory and transfer nothing.
    pub(super) fn of_nodes(
        dag: &Dag,
        profile: &PlacementProfile,
        partition: &Partition,
        counts: impl Fn(usize) -> bool,
    ) -> Self {
        let n = partition.len();
        let (mut cpu, mut accelerator, mut size) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
        let mut supported = vec![true; n];
        let mut nets: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for (node, cost) in profile.nodes.iter().enumerate() {
            let readers = dag.successors(node).filter(|&reader| counts(reader));
            let mut pins: Vec<u32> = readers.map(|reader| partition.class(reader) as u32).collect();
            if counts(node) {
                let class = partition.class(node);
                cpu[class] += cost.cpu_time;
                accelerator[class] += cost.accelerator_time;
                size[class] += cost.size_bytes;
                supported[class] &= cost.supported;
                pins.push(class as u32);
            }
            pins.sort_unstable();
            pins.dedup();
            if pins.len() > 1 && cost.transfer > 0.0 {
                *nets.entry(pins).or_insert(0.0) += cost.transfer;
            }
        }
        let mut of_class: Vec<Vec<u32>> = vec![vec![]; n];
        let (mut net_cost, mut net_pins) = (vec![], vec![]);
        for (net, (pins, cost)) in nets.into_iter().enumerate() {
            net_cost.push(cost);
            net_pins.push(pins.len() as u32);
            for pin in pins {
                of_class[pin as usize].push(net as u32);
            }
        }
        let mut start = vec![0];
        let mut flat = vec![];
        for list in of_class {
            flat.extend(list);
            start.push(flat.len() as u32);
        }
        ClassCosts { cpu, accelerator, size, supported, net_cost, net_pins, start, nets: flat }
    }

    /// Costs of classes without transfers, from pairs of time on an accelerator and time on a CPU.
    #[cfg(test)]
    pub(super) fn of_times(times: &[(f64, f64)]) -> Self {
        let node = |&(accelerator_time, cpu_time): &(f64, f64)| plantui_core::workload::PlacementNode {
            cpu_time,
            accelerator_time,
            supported: true,
            backward: false,
            size_bytes: 0.0,
            colour_class: None,
            layer: None,
            transfer: 0.0,
        };
        let profile = times.iter().map(node).collect::<Vec<_>>().into();
        let dag = Dag::new(times.len(), vec![]).expect("there are no edges");
        ClassCosts::new(&dag, &profile, &Partition::by_colour(&profile))
    }

    /// Costs for a search of splits whose loads are below `upper` and whose memory is at most `memory_bytes`.
    ///
    /// A cost that rules out a device does so at twice the bound as well as at a million times the bound. Cut off, it
    /// leaves only the rounding of numbers near the bound in sums that it enters and leaves. No cost is larger than
    /// before, so a lower bound under these costs is a lower bound under the true ones. `O(n + m)`.
    #[must_use]
    pub fn bounded(&self, upper: f64, memory_bytes: f64) -> Self {
        let most = 2.0 * upper;
        let mut bounded = self.clone();
        for cost in [&mut bounded.cpu, &mut bounded.accelerator, &mut bounded.net_cost].into_iter().flatten() {
            *cost = cost.min(most);
        }
        for (size, supported) in bounded.size.iter_mut().zip(&mut bounded.supported) {
            *supported &= *size <= memory_bytes;
            *size = size.min(memory_bytes);
        }
        bounded
    }

    /// Load of a device, summed from its parts without subtraction. `O(pins of its nets · log classes)`.
    pub fn load(&self, kind: DeviceKind, classes: &[usize]) -> f64 {
        if kind == DeviceKind::Cpu {
            return classes.iter().map(|&class| self.cpu[class]).sum();
        }
        classes.iter().map(|&class| self.accelerator[class]).sum::<f64>() + self.transfers(classes)
    }

    /// Transfers of an accelerator that holds these classes. `O(pins of their nets · log classes)`.
    pub fn transfers(&self, classes: &[usize]) -> f64 {
        let mut inside: BTreeMap<u32, u32> = BTreeMap::new();
        for &net in classes.iter().flat_map(|&class| self.nets(class)) {
            *inside.entry(net).or_insert(0) += 1;
        }
        let cut = inside.into_iter().filter(|&(net, count)| count < self.net_pins[net as usize]);
        cut.map(|(net, _)| self.net_cost[net as usize]).sum()
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.cpu.len()
    }

    /// True if there is no class.
    pub fn is_empty(&self) -> bool {
        self.cpu.is_empty()
    }

    /// Nets of a class.
    #[inline]
    pub fn nets(&self, class: usize) -> &[u32] {
        &self.nets[self.start[class] as usize..self.start[class + 1] as usize]
    }

    /// Cost of sending a net's tensor once.
    #[inline]
    pub fn net_cost(&self, net: usize) -> f64 {
        self.net_cost[net]
    }

    /// Number of classes in a net.
    #[inline]
    pub fn net_pins(&self, net: usize) -> u32 {
        self.net_pins[net]
    }

    /// Number of nets.
    pub fn net_count(&self) -> usize {
        self.net_cost.len()
    }
}

/// Sums over a set of classes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// Time on a CPU.
    pub cpu: f64,
    /// Time on an accelerator, without transfers.
    pub accelerator: f64,
    /// Transfers of an accelerator.
    pub cut: f64,
    /// Memory, bytes.
    pub size: f64,
    /// Number of classes that no accelerator can run.
    pub unsupported: u32,
    /// Part of `cut` that remains however the set grows: nets with a class outside the set within which it grows.
    pub locked: f64,
}

impl Sums {
    /// Load of an accelerator with this set; infinite if memory is exceeded or a class is not supported.
    #[inline]
    pub fn on_accelerator(&self, memory_bytes: f64) -> f64 {
        if self.unsupported == 0 && self.size <= memory_bytes { self.accelerator + self.cut } else { f64::INFINITY }
    }
}

/// Number of classes of a net in a set.
#[derive(Debug, Clone, Copy, Default)]
struct NetCount {
    /// Classes in the set.
    inside: u32,
    /// Classes in the superset within which the set may grow.
    within: u32,
}

/// Set of classes on one device, with incremental costs as it grows and shrinks within a superset. The caller keeps the
/// sums: subtracting a class would leave a rounding error.
#[derive(Debug, Clone)]
pub(crate) struct NetCounts<'a> {
    costs: &'a ClassCosts,
    /// By net.
    counts: Vec<NetCount>,
}

impl<'a> NetCounts<'a> {
    /// Empty set that may grow to all classes.
    pub(crate) fn new(costs: &'a ClassCosts) -> Self {
        let count = |&within: &u32| NetCount { inside: 0, within };
        NetCounts { costs, counts: costs.net_pins.iter().map(count).collect() }
    }

    /// Empty set that may not grow until classes are allowed.
    pub(crate) fn confined(costs: &'a ClassCosts) -> Self {
        NetCounts { costs, counts: vec![NetCount::default(); costs.net_count()] }
    }

    /// Adds a class to the superset.
    #[inline]
    pub(crate) fn allow(&mut self, class: usize) {
        self.costs.nets(class).iter().for_each(|&net| self.counts[net as usize].within += 1);
    }

    /// Removes a class from the superset.
    #[inline]
    pub(crate) fn forbid(&mut self, class: usize) {
        self.costs.nets(class).iter().for_each(|&net| self.counts[net as usize].within -= 1);
    }

    /// Adds a class to a set with the sums `sums`; returns the new sums.
    #[inline]
    pub(crate) fn add(&mut self, class: usize, sums: &Sums) -> Sums {
        let costs = self.costs;
        let (mut cut, mut locked) = (sums.cut, sums.locked);
        for &net in costs.nets(class) {
            let net = net as usize;
            let (count, cost, pins) = (&mut self.counts[net], costs.net_cost[net], costs.net_pins[net]);
            count.inside += 1;
            if count.inside == 1 {
                cut += cost;
                if count.within < pins {
                    locked += cost;
                }
            } else if count.inside == pins {
                cut -= cost;
            }
        }
        Sums {
            cpu: sums.cpu + costs.cpu[class],
            accelerator: sums.accelerator + costs.accelerator[class],
            cut,
            size: sums.size + costs.size[class],
            unsupported: sums.unsupported + u32::from(!costs.supported[class]),
            locked,
        }
    }

    /// Removes a class.
    #[inline]
    pub(crate) fn remove(&mut self, class: usize) {
        self.costs.nets(class).iter().for_each(|&net| self.counts[net as usize].inside -= 1);
    }
}
