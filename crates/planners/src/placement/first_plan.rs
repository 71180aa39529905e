//! Immediate split: fills devices one after the other along one order of the classes.
//!
//! For a threshold on the load, an accelerator takes classes along the order up to the furthest position that keeps the
//! threshold (with transfers) and the memory. A CPU takes over if an accelerator gets no further or none is left.
//! Bisection finds a threshold that is just large enough for the available devices. Each of some forty thresholds takes
//! `O(classes + nets)`: a graph of 100,000 nodes gets a contiguous plan within memory in a fraction of a second, and
//! chains get one within a percent of the bound. Nothing is proven.
//!
//! Transfers of a device change as classes enter. They are summed with compensation, so that a huge cost leaves no
//! error after its net is complete.

use std::ops::Range;

use super::{
    DeviceKind, PlacementLimits, Split,
    classes::Partition,
    dp::{ClassStage, OrderedClasses},
    linearise,
    load::ClassCosts,
    need::lower_bound,
};
use plantui_core::{graph::Dag, workload::placement::PlacementProfile};

/// Maximum number of thresholds.
const MOST_THRESHOLDS: usize = 60;
/// Relative distance below which bisection stops.
const RESOLUTION: f64 = 1e-4;
/// A threshold is given up after all classes were visited this many times: there are too few places to cut.
const MOST_PASSES: usize = 24;

/// Immediate split, and a lower bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FirstPlan {
    /// Lower bound on the max-load of all splits, contiguous or not.
    pub lower_bound: f64,
    /// Max-load and split; `None` if the order has no cuts within memory.
    pub split: Option<(f64, Split)>,
}

/// Lower bound on the max-load of all splits, contiguous or not.
pub(crate) fn lower_bound_of_all(dag: &Dag, profile: &PlacementProfile, limits: &PlacementLimits) -> f64 {
    lower_bound(&ClassCosts::new(dag, profile, &Partition::by_colour(profile)), limits)
}

/// First split of a graph.
pub(crate) fn plan(dag: &Dag, profile: &PlacementProfile, limits: &PlacementLimits) -> FirstPlan {
    let colours = Partition::by_colour(profile);
    let lower_bound = lower_bound(&ClassCosts::new(dag, profile, &colours), limits);
    let prepared = OrderedClasses::new(dag, profile, &colours);
    let found = along(&linearise::order(&prepared.graph), &prepared.costs, limits, lower_bound);
    FirstPlan { lower_bound, split: found.map(|(value, stages)| (value, prepared.split(&stages))) }
}

/// Fills devices along an order; returns max-load and stages. `lower` is a lower bound on the max-load.
pub(crate) fn along(
    order: &[u32],
    costs: &ClassCosts,
    limits: &PlacementLimits,
    lower: f64,
) -> Option<(f64, Vec<ClassStage>)> {
    let mut filler = Filler { order, costs, limits, inside: vec![0; costs.net_count()] };
    let mut best = filler.filled(f64::INFINITY)?;
    let (mut low, mut high) = (lower.min(best.0), best.0);
    for _ in 0..MOST_THRESHOLDS {
        if high - low <= RESOLUTION * high {
            break;
        }
        // Loads may be of any order of magnitude.
        let middle = if high > 4.0 * low { (low * high).sqrt().max(high * 1e-6) } else { (low + high) / 2.0 };
        match filler.filled(middle) {
            Some(found) => {
                high = middle.min(found.0).max(low);
                if found.0 < best.0 {
                    best = found;
                }
            }
            None => low = middle,
        }
    }
    let classes = |range: Range<usize>| order[range].iter().map(|&class| class as usize).collect();
    let stages = best.1.into_iter().map(|(kind, range)| ClassStage { kind, classes: classes(range) });
    Some((best.0, stages.collect()))
}

/// Devices and their ranges of the order.
type DeviceRanges = Vec<(DeviceKind, Range<usize>)>;

struct Filler<'a> {
    order: &'a [u32],
    costs: &'a ClassCosts,
    limits: &'a PlacementLimits,
    /// Classes of each net on the current device; all zero between devices.
    inside: Vec<u32>,
}

impl Filler<'_> {
    /// Devices filled up to a threshold, and the largest of their loads.
    fn filled(&mut self, threshold: f64) -> Option<(f64, DeviceRanges)> {
        let (mut accelerators, mut cpus) = (self.limits.accelerators, self.limits.cpus);
        let mut ranges: DeviceRanges = vec![];
        let (mut at, mut seen) = (0, 0);
        while at < self.order.len() {
            let (mut end, mut kind) = (at, DeviceKind::Accelerator);
            if accelerators > 0 {
                let looked_at;
                (end, looked_at) = self.on_accelerator(at, threshold);
                seen += looked_at - at;
            }
            if end == at && cpus > 0 {
                kind = DeviceKind::Cpu;
                end = self.on_cpu(at, threshold);
            }
            if end == at || seen > MOST_PASSES * self.order.len() {
                return None;
            }
            match kind {
                DeviceKind::Accelerator => accelerators -= 1,
                DeviceKind::Cpu => cpus -= 1,
            }
            ranges.push((kind, at..end));
            at = end;
        }
        let value = ranges.iter().map(|(kind, range)| self.load(*kind, range.clone())).fold(0.0, f64::max);
        Some((value, ranges))
    }

    /// Furthest position up to which an accelerator can hold the classes from `from`, and the last position visited.
    fn on_accelerator(&mut self, from: usize, threshold: f64) -> (usize, usize) {
        let costs = self.costs;
        let (mut time, mut size, mut cut) = (0.0, 0.0, CompensatedSum::default());
        let (mut end, mut place) = (from, from);
        while let Some(&class) = self.order.get(place) {
            let class = class as usize;
            time += costs.accelerator[class];
            size += costs.size[class];
            if !costs.supported[class] || time > threshold || size > self.limits.memory_bytes {
                break;
            }
            place += 1;
            for &net in costs.nets(class) {
                let net = net as usize;
                self.inside[net] += 1;
                if self.inside[net] == 1 {
                    cut.add(costs.net_cost(net));
                } else if self.inside[net] == costs.net_pins(net) {
                    cut.add(-costs.net_cost(net));
                }
            }
            if time + cut.value() <= threshold {
                end = place;
            }
        }
        self.empty(from..place);
        (end, place)
    }

    /// Furthest position up to which a CPU can run the classes from `from`.
    fn on_cpu(&self, from: usize, threshold: f64) -> usize {
        let mut time = 0.0;
        let fits = |&&class: &&u32| {
            time += self.costs.cpu[class as usize];
            time <= threshold
        };
        from + self.order[from..].iter().take_while(fits).count()
    }

    /// Load of a device, summed from its parts.
    fn load(&mut self, kind: DeviceKind, range: Range<usize>) -> f64 {
        let costs = self.costs;
        let held = &self.order[range.clone()];
        if kind == DeviceKind::Cpu {
            return held.iter().map(|&class| costs.cpu[class as usize]).sum();
        }
        let mut load: f64 = held.iter().map(|&class| costs.accelerator[class as usize]).sum();
        for &class in held {
            costs.nets(class as usize).iter().for_each(|&net| self.inside[net as usize] += 1);
        }
        for &class in held {
            for &net in costs.nets(class as usize) {
                let inside = std::mem::take(&mut self.inside[net as usize]);
                if inside > 0 && inside < costs.net_pins(net as usize) {
                    load += costs.net_cost(net as usize);
                }
            }
        }
        load
    }

    fn empty(&mut self, range: Range<usize>) {
        for &class in &self.order[range] {
            self.costs.nets(class as usize).iter().for_each(|&net| self.inside[net as usize] = 0);
        }
    }
}

/// Sum in two parts; the second collects the rounding errors of the first (Knuth's two-sum).
#[derive(Debug, Clone, Copy, Default)]
struct CompensatedSum {
    high: f64,
    low: f64,
}

impl CompensatedSum {
    fn add(&mut self, value: f64) {
        let high = self.high + value;
        let own = high - self.high;
        self.low += (self.high - (high - own)) + (value - own);
        self.high = high;
    }

    fn value(&self) -> f64 {
        (self.high + self.low).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::PlacementNode;

    fn chain(times: &[f64], transfers: &[f64]) -> (Dag, PlacementProfile) {
        let node = |(&accelerator_time, &transfer): (&f64, &f64)| PlacementNode {
            cpu_time: 10.0 * accelerator_time,
            accelerator_time,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class: None,
            layer: None,
            transfer,
        };
        let nodes: Vec<PlacementNode> = times.iter().zip(transfers).map(node).collect();
        let dag = Dag::new(times.len(), (1..times.len() as u32).map(|v| (v - 1, v)).collect()).unwrap();
        (dag, nodes.into())
    }

    fn first(times: &[f64], transfers: &[f64], accelerators: u32, cpus: u32, memory_bytes: f64) -> FirstPlan {
        let (dag, profile) = chain(times, transfers);
        let first = plan(&dag, &profile, &PlacementLimits { accelerators, cpus, memory_bytes });
        if let Some((value, split)) = &first.split {
            assert_eq!(split.score(&dag, &profile).max_load, *value);
            assert!(first.lower_bound <= value * (1.0 + 1e-12));
        }
        first
    }

    #[test]
    fn devices_are_filled_evenly_and_cut_where_it_is_cheap() {
        let found = first(&[1.0; 6], &[5.0, 5.0, 0.5, 5.0, 5.0, 0.0], 2, 0, 10.0);
        assert_eq!(found.split.map(|(value, _)| value), Some(3.5));
        assert!(found.lower_bound <= 3.0);
    }

    #[test]
    fn an_edge_never_to_be_cut_leaves_nothing_behind() {
        let found = first(&[1.1, 1.25, 1.375], &[1e30, 0.125, 0.0], 2, 0, 10.0);
        assert_eq!(found.split.map(|(value, _)| value), Some(1.1 + 1.25 + 0.125));
    }

    #[test]
    fn memory_is_kept_and_cpus_help_where_it_is_short() {
        assert_eq!(first(&[1.0; 4], &[0.0; 4], 2, 0, 1.0).split, None);
        let found = first(&[1.0; 4], &[0.0; 4], 2, 1, 1.0).split.unwrap();
        assert_eq!((found.0, found.1.used(DeviceKind::Accelerator), found.1.used(DeviceKind::Cpu)), (20.0, 2, 1));
    }
}
