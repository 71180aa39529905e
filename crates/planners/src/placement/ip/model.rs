//! Data of the integer program by class: the costs of a device that holds a set of classes.
//!
//! Every time has two parts, [`Time`]. For the max-load objective, the first part is everything and the second is zero.
//! For separate maxima, they are the forward and the backward pass; a transfer belongs to the pass of its producer. One
//! formula gives the value of both: the sum over the parts of the largest part on any device.

use std::collections::BTreeMap;

use crate::placement::{DeviceKind, PlacementLimits, Split, classes::Partition};
use plantui_core::{graph::Dag, workload::placement::PlacementProfile};

/// Ratio of a cost to the deciding costs above which its sums have too few digits.
const FAR_APART: f64 = 1e3;

/// Time by part of the objective.
pub type Time = [f64; 2];

/// Sum of the parts: the total load for both objectives.
#[inline]
pub fn whole(time: Time) -> f64 {
    time[0] + time[1]
}

/// Objective to minimise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Load of the busiest device.
    MaxLoad,
    /// Largest forward load plus largest backward load, possibly of different devices.
    SeparateMaxima,
}

/// Classes, nets and devices. Accelerators are devices `0..accelerators`, followed by the CPUs.
#[derive(Debug, Clone)]
pub struct IpModel {
    /// Number of accelerators, at most one per class.
    pub accelerators: usize,
    /// Number of CPUs, at most one per class.
    pub cpus: usize,
    /// Memory of an accelerator, bytes.
    pub memory: f64,
    /// Time of each class on an accelerator, without transfers.
    pub accelerator_time: Vec<Time>,
    /// Time of each class on a CPU.
    pub cpu_time: Vec<Time>,
    /// Memory of each class on an accelerator, bytes.
    pub size: Vec<f64>,
    /// True if an accelerator can hold the class: it supports all of it and has the memory.
    pub fits: Vec<bool>,
    /// Cost of each net for an accelerator that holds some but not all of its classes.
    pub net_cost: Vec<Time>,
    pin_start: Vec<u32>,
    pins: Vec<u32>,
    net_start: Vec<u32>,
    nets: Vec<u32>,
}

impl IpModel {
    /// Sums the costs of nodes over the classes of a partition. `O(n + m log m)`.
    pub fn new(
        dag: &Dag,
        profile: &PlacementProfile,
        partition: &Partition,
        limits: &PlacementLimits,
        objective: Objective,
    ) -> Self {
        let n = partition.len();
        let part = |backward: bool| usize::from(objective == Objective::SeparateMaxima && backward);
        let mut model = IpModel {
            accelerators: (limits.accelerators as usize).min(n),
            cpus: (limits.cpus as usize).min(n),
            memory: limits.memory_bytes,
            accelerator_time: vec![[0.0; 2]; n],
            cpu_time: vec![[0.0; 2]; n],
            size: vec![0.0; n],
            fits: vec![true; n],
            net_cost: vec![],
            pin_start: vec![],
            pins: vec![],
            net_start: vec![],
            nets: vec![],
        };
        let mut nets: BTreeMap<Vec<u32>, Time> = BTreeMap::new();
        for (node, cost) in profile.nodes.iter().enumerate() {
            let (class, part) = (partition.class(node), part(cost.backward));
            model.accelerator_time[class][part] += cost.accelerator_time;
            model.cpu_time[class][part] += cost.cpu_time;
            model.size[class] += cost.size_bytes;
            model.fits[class] &= cost.supported;
            if cost.transfer > 0.0 {
                let mut pins: Vec<u32> = dag.successors(node).map(|v| partition.class(v) as u32).collect();
                pins.push(class as u32);
                add_net(&mut nets, pins, part, cost.transfer);
            }
        }
        for (fits, &size) in model.fits.iter_mut().zip(&model.size) {
            *fits &= size <= limits.memory_bytes;
        }
        model.connect(nets);
        model
    }

    /// Model with the classes of a group merged; `group` has numbers below `groups`.
    #[must_use]
    pub fn merged(&self, group: &[u32], groups: usize) -> IpModel {
        let mut model = IpModel {
            accelerators: self.accelerators,
            cpus: self.cpus,
            memory: self.memory,
            accelerator_time: vec![[0.0; 2]; groups],
            cpu_time: vec![[0.0; 2]; groups],
            size: vec![0.0; groups],
            fits: vec![true; groups],
            net_cost: vec![],
            pin_start: vec![],
            pins: vec![],
            net_start: vec![],
            nets: vec![],
        };
        for (class, &g) in group.iter().enumerate() {
            let g = g as usize;
            for part in 0..2 {
                model.accelerator_time[g][part] += self.accelerator_time[class][part];
                model.cpu_time[g][part] += self.cpu_time[class][part];
            }
            model.size[g] += self.size[class];
            model.fits[g] &= self.fits[class];
        }
        for (fits, &size) in model.fits.iter_mut().zip(&model.size) {
            *fits &= size <= self.memory;
        }
        let mut nets = BTreeMap::new();
        for (net, cost) in self.net_cost.iter().enumerate() {
            for (part, &cost) in cost.iter().enumerate().filter(|(_, cost)| **cost > 0.0) {
                let pins = self.pins(net).iter().map(|&class| group[class as usize]).collect();
                add_net(&mut nets, pins, part, cost);
            }
        }
        model.connect(nets);
        model
    }

    /// Model for a search of assignments of a value below `upper`, with costs cut off at twice this bound. A cost above
    /// it rules out its device as before, and sums that it enters and leaves keep small values. No cost is larger than
    /// before. `None` if costs are not that far apart.
    pub fn bounded(&self, upper: f64) -> Option<IpModel> {
        let most = 2.0 * upper;
        let times = [&self.accelerator_time, &self.cpu_time, &self.net_cost];
        if !times.into_iter().flatten().flatten().any(|&time| time > FAR_APART * most) {
            return None;
        }
        let mut model = self.clone();
        let times = [&mut model.accelerator_time, &mut model.cpu_time, &mut model.net_cost];
        times.into_iter().flatten().flatten().for_each(|time| *time = time.min(most));
        Some(model)
    }

    fn connect(&mut self, nets: BTreeMap<Vec<u32>, Time>) {
        let mut of_class: Vec<Vec<u32>> = vec![vec![]; self.len()];
        self.pin_start.push(0);
        for (pins, cost) in nets {
            for &pin in &pins {
                of_class[pin as usize].push(self.net_cost.len() as u32);
            }
            self.net_cost.push(cost);
            self.pins.extend(pins);
            self.pin_start.push(self.pins.len() as u32);
        }
        self.net_start.push(0);
        for nets in of_class {
            self.nets.extend(nets);
            self.net_start.push(self.nets.len() as u32);
        }
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.size.len()
    }

    /// True if there is no class.
    pub fn is_empty(&self) -> bool {
        self.size.is_empty()
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.accelerators + self.cpus
    }

    /// True if a device is a CPU.
    #[inline]
    pub fn is_cpu(&self, device: usize) -> bool {
        device >= self.accelerators
    }

    /// Number of nets.
    pub fn net_count(&self) -> usize {
        self.net_cost.len()
    }

    /// Nets of a class.
    #[inline]
    pub fn nets(&self, class: usize) -> &[u32] {
        &self.nets[self.net_start[class] as usize..self.net_start[class + 1] as usize]
    }

    /// Classes of a net, ascending, at least two.
    #[inline]
    pub fn pins(&self, net: usize) -> &[u32] {
        &self.pins[self.pin_start[net] as usize..self.pin_start[net + 1] as usize]
    }

    /// A class that no device of this model can hold.
    pub fn homeless(&self) -> Option<usize> {
        (0..self.len()).find(|&class| self.cpus == 0 && (self.accelerators == 0 || !self.fits[class]))
    }

    /// Value of an assignment, summed from its parts. `None` if a class is on a device that cannot hold it, or an
    /// accelerator exceeds its memory. `O(classes + pins log pins)`.
    pub fn value(&self, device: &[u32]) -> Option<f64> {
        let mut loads = vec![[0.0; 2]; self.devices()];
        let mut sizes = vec![0.0; self.devices()];
        for (class, &d) in device.iter().enumerate() {
            let d = d as usize;
            if !self.is_cpu(d) && !self.fits[class] {
                return None;
            }
            let time = if self.is_cpu(d) { self.cpu_time[class] } else { self.accelerator_time[class] };
            (0..2).for_each(|part| loads[d][part] += time[part]);
            sizes[d] += self.size[class];
        }
        if sizes[..self.accelerators].iter().any(|&size| size > self.memory) {
            return None;
        }
        let mut holders: Vec<u32> = vec![];
        for (net, cost) in self.net_cost.iter().enumerate() {
            holders.clear();
            holders.extend(self.pins(net).iter().map(|&class| device[class as usize]));
            holders.sort_unstable();
            holders.dedup();
            if holders.len() > 1 {
                for &d in holders.iter().filter(|&&d| !self.is_cpu(d as usize)) {
                    (0..2).for_each(|part| loads[d as usize][part] += cost[part]);
                }
            }
        }
        let most = |part: usize| loads.iter().map(|load: &Time| load[part]).fold(0.0, f64::max);
        Some(most(0) + most(1))
    }

    /// Split of an assignment, without empty devices.
    pub fn split(&self, partition: &Partition, device: &[u32]) -> Split {
        let mut stages = vec![vec![]; self.devices()];
        for (class, nodes) in partition.members().into_iter().enumerate() {
            stages[device[class] as usize].extend(nodes);
        }
        let kind = |d: usize| if self.is_cpu(d) { DeviceKind::Cpu } else { DeviceKind::Accelerator };
        let used = stages.into_iter().enumerate().filter(|(_, nodes)| !nodes.is_empty());
        Split::from_stages(used.map(|(d, nodes)| (kind(d), nodes)))
    }

    /// Assignment of a split that keeps classes whole; `None` if it has more devices than the model, or a node has no
    /// device.
    pub fn assignment(&self, partition: &Partition, split: &Split) -> Option<Vec<u32>> {
        let mut device = vec![u32::MAX; self.len()];
        let (mut accelerator, mut cpu) = (0, self.accelerators);
        for held in split.devices.iter().filter(|held| !held.nodes.is_empty()) {
            let (next, end) = match held.kind {
                DeviceKind::Accelerator => (&mut accelerator, self.accelerators),
                DeviceKind::Cpu => (&mut cpu, self.devices()),
            };
            if *next >= end {
                return None;
            }
            for &node in &held.nodes {
                device[partition.class(node)] = *next as u32;
            }
            *next += 1;
        }
        device.iter().all(|&d| d != u32::MAX).then_some(device)
    }
}

fn add_net(nets: &mut BTreeMap<Vec<u32>, Time>, mut pins: Vec<u32>, part: usize, cost: f64) {
    pins.sort_unstable();
    pins.dedup();
    if pins.len() > 1 {
        nets.entry(pins).or_insert([0.0; 2])[part] += cost;
    }
}
