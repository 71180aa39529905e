//! Times of collectives on the real routes: by ring, by double tree, or hierarchical; the fastest counts.
//!
//! With `n` devices and `B` bytes on each (all-gather and reduce-scatter: `B` in total):
//!
//! * ring: `2 (n−1)/n · B / w + 2 (n−1) · α` for an all-reduce, half of it for all-gather or reduce-scatter (Patarasso
//!   and Yuan, JPDC 2009). `w` is the sum over as many parallel rings as fit, each the widest on the bandwidth that the
//!   others leave;
//! * double binary tree: `2 B / w + 2 ⌈log₂ n⌉ · α` if ports are the limit (Sanders, Speck and Träff, Parallel
//!   Computing 2009): two trees carry half of the bytes each, and every device is a leaf of one of them;
//! * hierarchical: reduce-scatter within every machine, all-reduce of the `B / g` bytes of each of its `g` devices with
//!   its peers across machines, all at once, then all-gather within.
//!
//! `α` is the largest latency of a step. Steps that share a channel share its bandwidth: a channel with three steps
//! runs each at a third. `busbw`, the figure of NCCL's tests, is `factor · B / time`, so that an ideal ring attains its
//! port's bandwidth for any `n` (nccl-tests, PERFORMANCE.md).
//!
//! Building takes `O(n²)` routes for up to 64 devices, above that `O(n)`. A time then takes `O(1)`.

use std::collections::BTreeMap;

use super::{graph::Topology, rings::Ring, routes::Route};

/// Maximum number of parallel rings.
const MOST_RINGS: usize = 16;
/// Width of a ring, relative to the first, at or below which it is dropped: the remaining links are of another kind.
const NARROW: f64 = 0.1;
/// Maximum number of devices for which rings are searched. Larger groups form one ring in the order of device numbers.
pub(super) const SEARCHED: usize = 64;

/// Collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectiveOperation {
    /// Sum of all devices' data, on every device.
    AllReduce,
    /// One part of the sum on each device.
    ReduceScatter,
    /// Parts of all devices, on every device.
    AllGather,
    /// Data of one device, on every device.
    Broadcast,
}

impl CollectiveOperation {
    /// NCCL's bus-bandwidth factor: bytes that every port carries per byte of the operation.
    pub fn factor(self, devices: usize) -> f64 {
        let n = devices as f64;
        match self {
            _ if devices < 2 => 0.0,
            CollectiveOperation::AllReduce => 2.0 * (n - 1.0) / n,
            CollectiveOperation::ReduceScatter | CollectiveOperation::AllGather => (n - 1.0) / n,
            CollectiveOperation::Broadcast => 1.0,
        }
    }
}

/// Algorithm of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectiveAlgorithm {
    /// One ring or several.
    Ring,
    /// Two binary trees, up and down.
    Tree,
    /// Within machines, then across them.
    Hierarchical,
}

impl CollectiveAlgorithm {
    /// Name of the algorithm.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveAlgorithm::Ring => "ring",
            CollectiveAlgorithm::Tree => "tree",
            CollectiveAlgorithm::Hierarchical => "hierarchical",
        }
    }
}

/// Algorithm of a collective, and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Collective {
    /// Algorithm.
    pub algorithm: CollectiveAlgorithm,
    /// Seconds.
    pub seconds: f64,
}

/// Seconds per byte, and fixed seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct TransferCost {
    per_byte: f64,
    latency_s: f64,
}

impl TransferCost {
    fn seconds(self, bytes: f64) -> f64 {
        self.latency_s + bytes * self.per_byte
    }

    fn and(self, other: TransferCost) -> TransferCost {
        TransferCost { per_byte: self.per_byte + other.per_byte, latency_s: self.latency_s + other.latency_s }
    }

    fn or_worse(self, other: TransferCost) -> TransferCost {
        TransferCost { per_byte: self.per_byte.max(other.per_byte), latency_s: self.latency_s.max(other.latency_s) }
    }

    fn times(self, bytes: f64, steps: f64) -> TransferCost {
        TransferCost { per_byte: self.per_byte * bytes, latency_s: self.latency_s * steps }
    }
}

/// Collectives of one group of devices.
#[derive(Debug, Clone, PartialEq)]
pub struct Collectives {
    /// Devices in the order of the widest ring.
    order: Vec<usize>,
    /// Per byte over all rings, and latency of one step.
    ring: TransferCost,
    tree: Option<TransferCost>,
    hierarchical: Option<TransferCost>,
}

impl Collectives {
    /// Collectives of a group of distinct devices. Times are infinite if a device cannot be reached.
    pub fn new(topology: &Topology, devices: &[usize]) -> Self {
        let count = devices.len();
        if count < 2 {
            return Collectives {
                order: devices.to_vec(),
                ring: TransferCost::default(),
                tree: None,
                hierarchical: None,
            };
        }
        let group = DeviceGroup { topology, devices };
        let rings = group.rings();
        let widest: Vec<usize> = rings.first().map_or_else(|| (0..count).collect(), |ring| ring.0.clone());
        let order = widest.iter().map(|&at| devices[at]).collect();
        let width: f64 = rings.iter().map(|ring| ring.1).sum();
        let slowest = rings.iter().map(|ring| group.latency(&ring.0)).fold(0.0, f64::max);
        let ring = TransferCost { per_byte: 1.0 / width, latency_s: slowest };
        Collectives { order, ring, tree: Some(group.tree(&[widest])), hierarchical: group.hierarchical() }
    }

    /// Factor by which collectives of several groups slow down when they run at once, because their rings share links;
    /// 1 if they share none. Each group counts with its widest ring.
    pub fn crowding(topology: &Topology, groups: &[Collectives]) -> f64 {
        if groups.len() < 2 {
            return 1.0;
        }
        let (mut together, mut alone) = (BTreeMap::new(), 0.0f64);
        let busiest = |loads: &BTreeMap<u32, f64>| {
            let each = loads.iter().map(|(&channel, load)| load / topology.channel_bandwidth(channel));
            each.fold(0.0, f64::max)
        };
        for Collectives { order, .. } in groups.iter().filter(|group| group.order.len() > 1) {
            let mut own = BTreeMap::new();
            for at in 0..order.len() {
                for channel in topology.route(order[at], order[(at + 1) % order.len()]).channels {
                    *own.entry(channel).or_insert(0.0) += 1.0;
                    *together.entry(channel).or_insert(0.0) += 1.0;
                }
            }
            alone = alone.max(busiest(&own));
        }
        if alone > 0.0 { busiest(&together) / alone } else { 1.0 }
    }

    /// Fastest algorithm for an operation on `bytes`, and its time.
    pub fn run(&self, operation: CollectiveOperation, bytes: f64) -> Collective {
        let devices = self.order.len();
        let n = devices as f64;
        if devices < 2 {
            return Collective { algorithm: CollectiveAlgorithm::Ring, seconds: 0.0 };
        }
        let ring_steps = match operation {
            CollectiveOperation::AllReduce => 2.0 * (n - 1.0),
            _ => n - 1.0,
        };
        let ring = self.ring.times(operation.factor(devices), ring_steps).seconds(bytes);
        let mut best = Collective { algorithm: CollectiveAlgorithm::Ring, seconds: ring };
        let others = match operation {
            CollectiveOperation::AllReduce => {
                [(CollectiveAlgorithm::Tree, self.tree), (CollectiveAlgorithm::Hierarchical, self.hierarchical)]
            }
            _ => [(CollectiveAlgorithm::Tree, None), (CollectiveAlgorithm::Hierarchical, None)],
        };
        for (algorithm, cost) in others {
            let Some(seconds) = cost.map(|cost| cost.seconds(bytes)) else { continue };
            if seconds < best.seconds {
                best = Collective { algorithm, seconds };
            }
        }
        best
    }

    /// Seconds of an all-reduce of `bytes`.
    pub fn all_reduce_s(&self, bytes: f64) -> f64 {
        self.run(CollectiveOperation::AllReduce, bytes).seconds
    }

    /// NCCL's bus bandwidth of an operation, bytes per second; infinite for a single device.
    pub fn bus_bandwidth(&self, operation: CollectiveOperation, bytes: f64) -> f64 {
        let devices = self.order.len();
        if devices < 2 {
            return f64::INFINITY;
        }
        operation.factor(devices) * bytes / self.run(operation, bytes).seconds
    }
}

/// Group of devices with their topology. Devices are named by their positions in the group.
struct DeviceGroup<'a> {
    topology: &'a Topology,
    devices: &'a [usize],
}

impl DeviceGroup<'_> {
    fn route(&self, from: usize, to: usize) -> Route {
        self.topology.route(self.devices[from], self.devices[to])
    }

    fn latency(&self, order: &[usize]) -> f64 {
        let steps = (0..order.len()).map(|at| (order[at], order[(at + 1) % order.len()]));
        steps.map(|(a, b)| self.route(a, b).latency_s).fold(0.0, f64::max)
    }

    /// Parallel rings, each with its bandwidth.
    fn rings(&self) -> Vec<(Vec<usize>, f64)> {
        let count = self.devices.len();
        let mut left: Vec<f64> =
            (0..self.topology.channels() as u32).map(|channel| self.topology.channel_bandwidth(channel)).collect();
        if count > SEARCHED {
            let order: Vec<usize> = (0..count).collect();
            let width = self.take(&order, &mut left, |a, b| self.route(a, b).channels);
            return vec![(order, width)];
        }
        let from = |&device: &usize| self.topology.routes_from(device, self.devices);
        let rows: Vec<Vec<Route>> = self.devices.iter().map(from).collect();
        let routes: Vec<Vec<u32>> = rows.into_iter().flatten().map(|route| route.channels).collect();
        let mut rings: Vec<(Vec<usize>, f64)> = vec![];
        while rings.len() < MOST_RINGS {
            let narrowest = |channels: &[u32]| channels.iter().map(|&c| left[c as usize]).fold(f64::INFINITY, f64::min);
            let width = |a: usize, b: usize| {
                let channels = &routes[a * count + b];
                if channels.is_empty() { 0.0 } else { narrowest(channels) }
            };
            let ring = Ring::widest(count, width);
            let width = self.take(&ring.order, &mut left, |a, b| routes[a * count + b].clone());
            if rings.first().is_some_and(|first| width <= NARROW * first.1) {
                break;
            }
            rings.push((ring.order, width));
            if width <= 0.0 {
                break;
            }
        }
        rings
    }

    /// Bandwidth of a ring on the remaining bandwidth of the channels, which is then reduced by it.
    fn take(&self, order: &[usize], left: &mut [f64], route: impl Fn(usize, usize) -> Vec<u32>) -> f64 {
        let mut loads = std::collections::BTreeMap::new();
        for at in 0..order.len() {
            let channels = route(order[at], order[(at + 1) % order.len()]);
            if channels.is_empty() {
                return 0.0;
            }
            for channel in channels {
                *loads.entry(channel as usize).or_insert(0.0) += 1.0;
            }
        }
        let width = loads.iter().map(|(&channel, load)| left[channel] / load).fold(f64::INFINITY, f64::min);
        for (channel, load) in loads {
            left[channel] = (left[channel] - load * width).max(0.0);
        }
        width
    }

    /// Cost of double trees over several orders at once, for one byte in each order.
    fn tree(&self, orders: &[Vec<usize>]) -> TransferCost {
        let mut loads = vec![0.0; self.topology.channels()];
        let (mut latency_s, mut deepest): (f64, u32) = (0.0, 0);
        let mut reached = true;
        for order in orders {
            let count = order.len();
            for shift in 0..2 {
                for (child, parent, depth) in binary_tree(count) {
                    deepest = deepest.max(depth);
                    let (child, parent) = (order[(child + shift) % count], order[(parent + shift) % count]);
                    for (a, b) in [(child, parent), (parent, child)] {
                        let route = self.route(a, b);
                        reached &= !route.channels.is_empty();
                        latency_s = latency_s.max(route.latency_s);
                        route.channels.iter().for_each(|&channel| loads[channel as usize] += 0.5);
                    }
                }
            }
        }
        let busiest = (0..).zip(&loads).map(|(channel, load)| load / self.topology.channel_bandwidth(channel));
        let per_byte = if reached { busiest.fold(0.0, f64::max) } else { f64::INFINITY };
        TransferCost { per_byte, latency_s: 2.0 * f64::from(deepest) * latency_s }
    }

    /// Cost within machines, then across. `None` unless several machines have the same number of devices, at least 2.
    fn hierarchical(&self) -> Option<TransferCost> {
        let mut machines: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
        for (at, &device) in self.devices.iter().enumerate() {
            machines.entry(self.topology.machine_of(device)).or_default().push(at);
        }
        let parts: Vec<&Vec<usize>> = machines.values().collect();
        let size = parts[0].len();
        if parts.len() < 2 || size < 2 || parts.iter().any(|part| part.len() != size) {
            return None;
        }
        let within = |part: &&Vec<usize>| {
            let devices: Vec<usize> = part.iter().map(|&at| self.devices[at]).collect();
            self.topology.collectives(&devices).ring
        };
        let inside = parts.iter().map(within).fold(TransferCost::default(), TransferCost::or_worse);
        let (g, m) = (size as f64, parts.len() as f64);
        let peers: Vec<Vec<usize>> = (0..size).map(|at| parts.iter().map(|part| part[at]).collect()).collect();
        let mut loads = vec![0.0; self.topology.channels()];
        let mut step = TransferCost::default();
        for ring in &peers {
            for at in 0..ring.len() {
                let route = self.route(ring[at], ring[(at + 1) % ring.len()]);
                step.latency_s = step.latency_s.max(route.latency_s);
                if route.channels.is_empty() {
                    return None;
                }
                route.channels.iter().for_each(|&channel| loads[channel as usize] += 1.0);
            }
        }
        let busiest = (0..).zip(&loads).map(|(channel, load)| load / self.topology.channel_bandwidth(channel));
        step.per_byte = busiest.fold(0.0, f64::max);
        let ring = step.times(2.0 * (m - 1.0) / m / g, 2.0 * (m - 1.0));
        let tree = self.tree(&peers).times(1.0 / g, 1.0);
        let across = if tree.per_byte <= ring.per_byte && tree.latency_s <= ring.latency_s { tree } else { ring };
        Some(inside.times(2.0 * (g - 1.0) / g, 2.0 * (g - 1.0)).and(across))
    }
}

/// Edges of a binary tree over positions in order, from child to parent, with the depth of the child. Every other
/// position is a leaf, so that no device is an inner node of both of two trees that are shifted by one.
fn binary_tree(count: usize) -> Vec<(usize, usize, u32)> {
    let mut edges = vec![];
    let mut ranges = vec![(1, count, None, 0)];
    while let Some((low, high, parent, depth)) = ranges.pop() {
        // The number from `low` to `high` with the most factors of two.
        let Some(root) = (low..=high).max_by_key(|number: &usize| number.trailing_zeros()) else { continue };
        if let Some(parent) = parent {
            edges.push((root - 1, parent, depth));
        }
        ranges.push((low, root - 1, Some(root - 1), depth + 1));
        ranges.push((root + 1, high, Some(root - 1), depth + 1));
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::{
        super::{named, presets::GB},
        *,
    };

    fn group(name: &str, devices: &[usize]) -> Collectives {
        Collectives::new(&named(name).unwrap(), devices)
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 1e-3 * expected
    }

    #[test]
    fn nccls_factors() {
        // PERFORMANCE.md of nccl-tests: 2(n-1)/n, (n-1)/n, (n-1)/n, 1.
        for (operation, factors) in [
            (CollectiveOperation::AllReduce, [0.0, 1.0, 1.5, 1.75, 1.875]),
            (CollectiveOperation::ReduceScatter, [0.0, 0.5, 0.75, 0.875, 0.9375]),
            (CollectiveOperation::AllGather, [0.0, 0.5, 0.75, 0.875, 0.9375]),
            (CollectiveOperation::Broadcast, [0.0, 1.0, 1.0, 1.0, 1.0]),
        ] {
            assert_eq!([1, 2, 4, 8, 16].map(|n| operation.factor(n)), factors);
        }
    }

    #[test]
    fn large_messages_attain_the_ports_bandwidth_whatever_their_number() {
        let operations = [
            CollectiveOperation::AllReduce,
            CollectiveOperation::ReduceScatter,
            CollectiveOperation::AllGather,
            CollectiveOperation::Broadcast,
        ];
        for operation in operations {
            for count in [2, 3, 5, 8] {
                let devices: Vec<usize> = (0..count).collect();
                for (name, port) in [("dgx-a100", 300e9), ("dgx-h100", 450e9)] {
                    let attained = group(name, &devices).bus_bandwidth(operation, 64.0 * GB);
                    assert!(near(attained, port), "{name} {operation:?} {count}: {attained}");
                }
            }
        }
    }

    #[test]
    fn a_dgx_1_fills_all_its_links() {
        // Two rings each way, one of double links: all six links of each device, 150 GB/s. NCCL is known to find them too.
        let devices: Vec<usize> = (0..8).collect();
        let attained = group("dgx-1", &devices).bus_bandwidth(CollectiveOperation::AllReduce, 64.0 * GB);
        assert!(near(attained, 150e9), "{attained}");
        // Two devices without NVLink.
        assert!(near(group("dgx-1", &[3, 4]).bus_bandwidth(CollectiveOperation::AllReduce, GB), 6e9));
        assert!(near(group("pcie3-8", &[0, 1]).bus_bandwidth(CollectiveOperation::AllReduce, GB), 5.7e9));
    }

    #[test]
    fn machines_on_rails_reduce_within_first() {
        let sixteen: Vec<usize> = (0..16).collect();
        let rails = group("2xdgx-h100", &sixteen);
        let large = rails.run(CollectiveOperation::AllReduce, 64.0 * GB);
        // 2·7/8 over 450 GB/s, and an eighth of the bytes over each of eight NICs of 50 GB/s.
        let expected = 64.0 * (1.75 / 450.0 + 1.0 / 8.0 / 50.0);
        assert_eq!(large.algorithm, CollectiveAlgorithm::Hierarchical);
        assert!(near(large.seconds, expected), "{} {expected}", large.seconds);
        // Where one NIC carries all, the ring is as good as anything.
        let one = group("2xdgx-h100+eth-10g", &sixteen).run(CollectiveOperation::AllReduce, GB);
        assert!(near(one.seconds, 1.0 / 1.25) || one.seconds < 1.875 / 1.25, "{one:?}");
        // What is small is a matter of steps.
        assert_ne!(rails.run(CollectiveOperation::AllReduce, 1.0).algorithm, CollectiveAlgorithm::Ring);
    }

    #[test]
    fn every_device_is_a_leaf_of_one_of_two_trees() {
        for count in [2, 4, 7, 8, 16, 33] {
            let edges = binary_tree(count);
            assert_eq!(edges.len(), count - 1);
            let inner = |shift: usize| -> std::collections::BTreeSet<usize> {
                edges.iter().map(|&(_, parent, _)| (parent + shift) % count).collect()
            };
            if count % 2 == 0 {
                assert!(inner(0).is_disjoint(&inner(1)), "{count}");
            }
            assert!(edges.iter().all(|&(_, _, depth)| depth <= count.ilog2()), "{count}");
        }
    }

    #[test]
    fn what_cannot_be_reached_takes_for_ever() {
        use super::super::{Vertex, VertexKind};
        let device = |name: &str| Vertex { name: name.into(), kind: VertexKind::Device, machine: None };
        let apart = Topology::new("apart", vec![device("a"), device("b")], vec![]).unwrap();
        assert_eq!(Collectives::new(&apart, &[0, 1]).all_reduce_s(1.0), f64::INFINITY);
        assert_eq!(Collectives::new(&apart, &[0]).all_reduce_s(1.0), 0.0);
    }
}
