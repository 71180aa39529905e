//! One level of the hierarchy: costs and nets of the vertices, and the merging of pairs.

use crate::placement::{PlacementLimits, classes::Partition, load::ClassCosts, multilevel::refine::StateValue};
use plantui_core::{graph::Dag, random::SplitMix, workload::placement::PlacementProfile};

/// Nets with more pins are skipped: they say little about affinity, and each pin would visit them.
const MOST_PINS: usize = 64;

/// Vertices and nets in compressed rows.
#[derive(Debug)]
pub(super) struct GraphLevel {
    /// Time on an accelerator.
    pub(super) time: Vec<f64>,
    /// Time on a CPU.
    pub(super) cpu_time: Vec<f64>,
    /// Memory, bytes.
    pub(super) size: Vec<f64>,
    /// True if an accelerator can run the vertex.
    pub(super) supported: Vec<bool>,
    /// Position of the vertex's first node in a topological order.
    place: Vec<u32>,
    /// Cost of a net for a device with some but not all of its pins.
    pub(super) net_cost: Vec<f64>,
    pin_start: Vec<u32>,
    pins: Vec<u32>,
    net_start: Vec<u32>,
    nets: Vec<u32>,
}

impl GraphLevel {
    /// Level of the classes of a partition; costs are cut off at `counted`. `O(n + m log m)`.
    pub(super) fn finest(dag: &Dag, profile: &PlacementProfile, classes: &Partition, counted: f64) -> Self {
        let costs = ClassCosts::new(dag, profile, classes);
        let mut place = vec![u32::MAX; classes.len()];
        for (at, &node) in dag.topological_order().iter().enumerate() {
            let place = &mut place[classes.class(node as usize)];
            *place = (*place).min(at as u32);
        }
        let cut_off = |times: &[f64]| times.iter().map(|time| time.min(counted)).collect::<Vec<f64>>();
        let net_cost: Vec<f64> = (0..costs.net_count()).map(|net| costs.net_cost(net).min(counted)).collect();
        let mut pin_start = vec![0u32; net_cost.len() + 1];
        for net in 0..net_cost.len() {
            pin_start[net + 1] = pin_start[net] + costs.net_pins(net);
        }
        let mut next = pin_start.clone();
        let mut pins = vec![0; pin_start.last().map_or(0, |&end| end as usize)];
        for class in 0..classes.len() {
            for &net in costs.nets(class) {
                pins[next[net as usize] as usize] = class as u32;
                next[net as usize] += 1;
            }
        }
        let level = GraphLevel {
            time: cut_off(&costs.accelerator),
            cpu_time: cut_off(&costs.cpu),
            size: costs.size,
            supported: costs.supported,
            place,
            net_cost,
            pin_start,
            pins,
            net_start: vec![],
            nets: vec![],
        };
        level.connected()
    }

    /// Fills the rows of nets by vertex.
    fn connected(mut self) -> Self {
        self.net_start = vec![0; self.len() + 1];
        for &pin in &self.pins {
            self.net_start[pin as usize + 1] += 1;
        }
        for vertex in 0..self.len() {
            self.net_start[vertex + 1] += self.net_start[vertex];
        }
        let mut next = self.net_start.clone();
        self.nets = vec![0; self.pins.len()];
        for net in 0..self.net_cost.len() {
            for at in self.pin_start[net]..self.pin_start[net + 1] {
                let next = &mut next[self.pins[at as usize] as usize];
                self.nets[*next as usize] = net as u32;
                *next += 1;
            }
        }
        self
    }

    /// Number of vertices.
    pub(super) fn len(&self) -> usize {
        self.time.len()
    }

    /// Nets of a vertex.
    #[inline]
    pub(super) fn nets(&self, vertex: usize) -> &[u32] {
        &self.nets[self.net_start[vertex] as usize..self.net_start[vertex + 1] as usize]
    }

    /// Vertices of a net.
    #[inline]
    pub(super) fn pins(&self, net: usize) -> &[u32] {
        &self.pins[self.pin_start[net] as usize..self.pin_start[net + 1] as usize]
    }

    /// Level in which the vertices of a group are one. Nets inside one vertex vanish; nets with the same vertices are
    /// merged.
    pub(super) fn merged(&self, group: &[u32], groups: usize) -> GraphLevel {
        let mut level = GraphLevel {
            time: vec![0.0; groups],
            cpu_time: vec![0.0; groups],
            size: vec![0.0; groups],
            supported: vec![true; groups],
            place: vec![u32::MAX; groups],
            net_cost: vec![],
            pin_start: vec![0],
            pins: vec![],
            net_start: vec![],
            nets: vec![],
        };
        for (vertex, &g) in group.iter().enumerate() {
            let g = g as usize;
            level.time[g] += self.time[vertex];
            level.cpu_time[g] += self.cpu_time[vertex];
            level.size[g] += self.size[vertex];
            level.supported[g] &= self.supported[vertex];
            level.place[g] = level.place[g].min(self.place[vertex]);
        }
        let mut renamed: Vec<u32> = Vec::with_capacity(self.pins.len());
        let mut rows: Vec<(u32, u32, f64)> = vec![];
        for (net, &cost) in self.net_cost.iter().enumerate() {
            let start = renamed.len();
            renamed.extend(self.pins(net).iter().map(|&pin| group[pin as usize]));
            renamed[start..].sort_unstable();
            let mut end = start;
            for at in start..renamed.len() {
                if end == start || renamed[at] != renamed[end - 1] {
                    renamed[end] = renamed[at];
                    end += 1;
                }
            }
            renamed.truncate(if end > start + 1 { end } else { start });
            if end > start + 1 {
                rows.push((start as u32, end as u32, cost));
            }
        }
        let row = |&(start, end, _): &(u32, u32, f64)| &renamed[start as usize..end as usize];
        rows.sort_by(|a, b| row(a).cmp(row(b)));
        for same in rows.chunk_by(|a, b| row(a) == row(b)) {
            level.net_cost.push(same.iter().map(|&(.., cost)| cost).sum());
            level.pins.extend_from_slice(row(&same[0]));
            level.pin_start.push(level.pins.len() as u32);
        }
        level.connected()
    }

    /// Heavy-edge matching: in random order, every vertex takes the free neighbour with the largest weight of shared
    /// nets. A net counts less the more pins it has. Returns the group of every vertex, and the number of groups.
    pub(super) fn matching(&self, limits: &PlacementLimits, random: &mut SplitMix) -> (Vec<u32>, usize) {
        // A vertex heavier than half of an equal part would make balancing impossible.
        let most = self.time.iter().sum::<f64>() / f64::from(limits.accelerators) / 2.0;
        let mut order: Vec<usize> = (0..self.len()).collect();
        random.shuffle(&mut order);
        let mut partner = vec![u32::MAX; self.len()];
        let mut weight = vec![0.0; self.len()];
        let mut near: Vec<u32> = vec![];
        for a in order {
            if partner[a] != u32::MAX {
                continue;
            }
            for &net in self.nets(a) {
                let (net, pins) = (net as usize, self.pins(net as usize));
                if pins.len() > MOST_PINS {
                    continue;
                }
                for &b in pins.iter().filter(|&&b| b as usize != a && partner[b as usize] == u32::MAX) {
                    if weight[b as usize] == 0.0 {
                        near.push(b);
                    }
                    weight[b as usize] += self.net_cost[net] / (pins.len() - 1) as f64;
                }
            }
            let mut heaviest: Option<(f64, u32)> = None;
            for b in near.drain(..) {
                let weight = std::mem::take(&mut weight[b as usize]);
                let (b, at) = (b as usize, b);
                let fits = self.time[a] + self.time[b] <= most
                    && self.size[a] + self.size[b] <= limits.memory_bytes / 2.0
                    && self.supported[a] == self.supported[b];
                // Ties: the smaller number.
                if fits && heaviest.is_none_or(|(known, other)| (weight, other) > (known, at)) {
                    heaviest = Some((weight, at));
                }
            }
            if let Some((_, b)) = heaviest {
                partner[a] = b;
                partner[b as usize] = a as u32;
            }
        }
        let mut group = vec![u32::MAX; self.len()];
        let mut groups = 0;
        for vertex in 0..self.len() {
            if group[vertex] == u32::MAX {
                group[vertex] = groups;
                if let Some(other) = group.get_mut(partner[vertex] as usize) {
                    *other = groups;
                }
                groups += 1;
            }
        }
        (group, groups as usize)
    }

    /// Device of a vertex that no accelerator can run: the CPU after the accelerators, if there is one.
    pub(super) fn forced(&self, limits: &PlacementLimits, vertex: usize) -> Option<u32> {
        (!self.supported[vertex] && limits.cpus > 0).then_some(limits.accelerators)
    }

    /// Assigns vertices in topological order; the next accelerator starts when the current one has an equal part.
    pub(super) fn along_order(&self, limits: &PlacementLimits) -> Vec<u32> {
        let share = self.time.iter().sum::<f64>() / f64::from(limits.accelerators);
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by_key(|&vertex| self.place[vertex]);
        let mut device = vec![0; self.len()];
        let mut done = 0.0;
        for vertex in order {
            // The middle of the vertex decides, so that parts come out even.
            let at = ((done + self.time[vertex] / 2.0) / share) as u32;
            device[vertex] = self.forced(limits, vertex).unwrap_or(at.min(limits.accelerators - 1));
            done += self.time[vertex];
        }
        device
    }

    /// Assigns vertices by descending time to the least loaded accelerator; equal times in random order.
    pub(super) fn largest_first(&self, limits: &PlacementLimits, random: &mut SplitMix) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        random.shuffle(&mut order);
        order.sort_by(|&a, &b| self.time[b].total_cmp(&self.time[a]));
        let mut loads = vec![0.0; limits.accelerators as usize];
        let mut device = vec![0; self.len()];
        for vertex in order {
            let least = (0..loads.len()).fold(0, |best, d| if loads[d] < loads[best] { d } else { best });
            device[vertex] = self.forced(limits, vertex).unwrap_or(least as u32);
            if device[vertex] as usize == least {
                loads[least] += self.time[vertex];
            }
        }
        device
    }

    /// Value of an assignment, computed from scratch. Device `limits.accelerators` is the CPU, which pays for no
    /// transfer.
    pub(super) fn value(&self, device: &[u32], limits: &PlacementLimits) -> StateValue {
        let accelerators = limits.accelerators as usize;
        let (mut loads, mut sizes) = (vec![0.0; accelerators + 1], vec![0.0; accelerators + 1]);
        for (vertex, &d) in device.iter().enumerate() {
            let d = d as usize;
            loads[d] += if d == accelerators { self.cpu_time[vertex] } else { self.time[vertex] };
            sizes[d] += self.size[vertex];
        }
        let mut holders: Vec<u32> = vec![];
        for (net, &cost) in self.net_cost.iter().enumerate() {
            holders.clear();
            holders.extend(self.pins(net).iter().map(|&pin| device[pin as usize]));
            holders.sort_unstable();
            holders.dedup();
            if holders.len() > 1 {
                let paying = holders.iter().filter(|&&d| (d as usize) < accelerators);
                paying.for_each(|&d| loads[d as usize] += cost);
            }
        }
        StateValue::of(&loads, &sizes[..accelerators], limits.memory_bytes)
    }
}
