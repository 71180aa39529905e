//! Routes: the widest path between two devices, and the bandwidth of a pair.
//!
//! The route of a pair is the path whose narrowest link is widest. Ties are broken by fewest hops, then least latency,
//! then the nearer previous vertex, the lower one, and the earlier link. Dijkstra's algorithm on the minimum of
//! bandwidths finds the width; it ends when every vertex is reached at the largest width still possible. A
//! breadth-first search over links of at least that width then counts hops, because a shortest widest path need not
//! consist of widest paths. For a pair, it runs from both ends until they meet. `O(links · log vertices)` per pair at
//! worst, `O(vertices)` memory.
//!
//! The widest path is not the fastest for a small message: [`Topology::fastest`] weighs latency against bytes.

use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::{BinaryHeap, VecDeque},
};

use rayon::prelude::*;

use super::graph::Topology;

/// Path from a device to another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Route {
    /// Bytes per second of its narrowest link: infinite from a device to itself, 0 if there is no path.
    pub bandwidth: f64,
    /// Seconds until the first byte arrives.
    pub latency_s: f64,
    /// Channels that it uses, in order.
    pub channels: Vec<u32>,
}

impl Route {
    /// Seconds for a message of `bytes` without other traffic.
    pub fn seconds(&self, bytes: f64) -> f64 {
        self.latency_s + bytes / self.bandwidth
    }
}

/// Bandwidth of every pair alone, bytes per second. Rows are senders.
#[derive(Debug, Clone, PartialEq)]
pub struct PairMatrix {
    devices: usize,
    bandwidths: Vec<f64>,
}

impl PairMatrix {
    /// Matrix from its rows. `None` if it is not square.
    pub fn new(rows: &[Vec<f64>]) -> Option<Self> {
        let devices = rows.len();
        let square = rows.iter().all(|row| row.len() == devices);
        square.then(|| PairMatrix { devices, bandwidths: rows.concat() })
    }

    /// Number of devices.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Bytes per second from a device to another: infinite to itself, 0 if there is no path.
    pub fn at(&self, from: usize, to: usize) -> f64 {
        self.bandwidths[from * self.devices + to]
    }

    /// Smaller bandwidth of the two directions.
    pub fn both_ways(&self, a: usize, b: usize) -> f64 {
        self.at(a, b).min(self.at(b, a))
    }

    /// Median of all pairs of different devices; infinite for a single device.
    pub fn median(&self) -> f64 {
        let pairs = (0..self.devices).flat_map(|a| (0..self.devices).filter(move |&b| a != b).map(move |b| (a, b)));
        let mut all: Vec<f64> = pairs.map(|(a, b)| self.at(a, b)).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::INFINITY)
    }

    /// True if all pairs have the same bandwidth.
    pub fn uniform(&self) -> bool {
        let pairs = (0..self.devices).flat_map(|a| (0..self.devices).filter(move |&b| a != b).map(move |b| (a, b)));
        let mut all = pairs.map(|(a, b)| self.at(a, b));
        all.next().is_none_or(|first| all.all(|other| other == first))
    }
}

/// Vertex in the queue: widest first, then the lowest vertex.
#[derive(PartialEq)]
struct WidthQueueEntry(f64, u32);
impl Eq for WidthQueueEntry {}
impl Ord for WidthQueueEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(other.1.cmp(&self.1))
    }
}
impl PartialOrd for WidthQueueEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Vertex in the queue, with latency and hops: smallest first, then the lowest vertex.
#[derive(PartialEq)]
struct LatencyQueueEntry(f64, u32, u32);
impl Eq for LatencyQueueEntry {}
impl Ord for LatencyQueueEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0).then((other.1, other.2).cmp(&(self.1, self.2)))
    }
}
impl PartialOrd for LatencyQueueEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Backward side of a bidirectional search. It steps back from the target, level by level, until the forward side meets
/// it. From then on the forward side follows only shortest paths. Each side visits only vertices within half of the
/// distance.
struct BackwardSearch {
    target: u32,
    /// Minimum bandwidth of the links.
    width: f64,
    /// Hops to the target by vertex, `u32::MAX` if not known.
    left: Vec<u32>,
    /// Vertices at distance `hops` from the target.
    level: Vec<u32>,
    hops: u32,
    met: bool,
}

impl BackwardSearch {
    fn new(topology: &Topology, target: u32, width: f64) -> Self {
        let mut left = vec![u32::MAX; topology.vertices().len()];
        left[target as usize] = 0;
        BackwardSearch { target, width, left, level: vec![target], hops: 0, met: false }
    }

    /// Steps back while the backward level is not larger than `level`, the forward level. After the sides meet, `level`
    /// keeps only vertices on a shortest path. Returns false if nothing leads to the target.
    fn meets(&mut self, topology: &Topology, source: u32, level: &mut Vec<u32>) -> bool {
        let leads_on = |v: u32| v == source || topology.passes(v);
        while !self.met {
            self.met = level.iter().any(|&v| self.left[v as usize] != u32::MAX && leads_on(v));
            if self.met {
                // No shorter path exists, else the sides had met earlier.
                level.retain(|&v| self.left[v as usize] == self.hops);
            } else if self.level.is_empty() {
                return false;
            } else if self.level.len() > level.len() {
                break;
            } else {
                self.go_back(topology);
            }
        }
        true
    }

    fn go_back(&mut self, topology: &Topology) {
        self.hops += 1;
        let mut next = vec![];
        for v in self.level.drain(..).filter(|&v| v == self.target || topology.passes(v)) {
            for &(from, index) in &topology.leading[v as usize] {
                let wide = topology.hops(from)[index as usize].bandwidth >= self.width;
                if wide && self.left[from as usize] == u32::MAX {
                    self.left[from as usize] = self.hops;
                    next.push(from);
                }
            }
        }
        self.level = next;
    }

    /// True if a hop from a vertex of the level is known to be on no shortest path.
    #[inline]
    fn leads_past(&self, from: u32, to: u32) -> bool {
        self.met && self.left[to as usize] != self.left[from as usize].wrapping_sub(1)
    }
}

/// Arrival at a vertex: the previous vertex, and the index of its hop; `None` if no path leads there.
pub(super) type Arrival = Option<(u32, u32)>;

impl Topology {
    /// Width of the widest path from `source`, by vertex. If a target is given, only its width is final.
    fn widths(&self, source: u32, target: Option<u32>) -> Vec<f64> {
        let mut width = vec![0.0f64; self.vertices().len()];
        width[source as usize] = f64::INFINITY;
        // `level` has vertices at the current width `here`, `heap` narrower ones; `reached` counts vertices at `here`
        // or wider.
        let (mut here, mut level, mut heap) =
            (f64::INFINITY, VecDeque::from([source]), BinaryHeap::<WidthQueueEntry>::new());
        let mut reached = 1;
        loop {
            while let Some(v) = level.pop_front() {
                if reached == width.len() || target.is_some_and(|target| width[target as usize] >= here) {
                    return width;
                }
                for hop in self.hops(v) {
                    let through = here.min(hop.bandwidth);
                    if through > width[hop.to as usize] {
                        width[hop.to as usize] = through;
                        reached += usize::from(through == here);
                        match through == here {
                            true if self.passes(hop.to) => level.push_back(hop.to),
                            true => {}
                            false => heap.push(WidthQueueEntry(through, hop.to)),
                        }
                    }
                }
            }
            let Some(&WidthQueueEntry(next, _)) = heap.peek() else { return width };
            here = next;
            while heap.peek().is_some_and(|wide| wide.0 == here) {
                let Some(WidthQueueEntry(_, v)) = heap.pop() else { break };
                if width[v as usize] == here {
                    reached += 1;
                    if self.passes(v) {
                        level.push_back(v);
                    }
                }
            }
        }
    }

    /// Bytes per second from a device to each device, without other traffic.
    pub fn pairs_from(&self, device: usize) -> Vec<f64> {
        let widths = self.widths(self.vertex_of(device), None);
        (0..self.devices()).map(|other| widths[self.vertex_of(other) as usize]).collect()
    }

    /// Bandwidth of every pair alone. `O(devices · links · log vertices)` time, `O(devices²)` memory.
    pub fn pair_matrix(&self) -> PairMatrix {
        let devices = self.devices();
        let mut bandwidths = vec![0.0; devices * devices];
        let rows = bandwidths.par_chunks_mut(devices.max(1)).enumerate();
        rows.for_each(|(device, row)| row.copy_from_slice(&self.pairs_from(device)));
        PairMatrix { devices, bandwidths }
    }

    /// Bandwidth of the widest link from a device; 0 if there is none.
    pub(super) fn widest_leaving(&self, from: usize) -> f64 {
        self.hops(self.vertex_of(from)).iter().map(|hop| hop.bandwidth).fold(0.0, f64::max)
    }

    /// Route from a device to another one, without the cache.
    pub(super) fn route_alone(&self, from: usize, to: usize) -> Route {
        let target = self.vertex_of(to);
        // No path is wider than the widest link of the device, and often that width reaches the target.
        let paths = self.fewest_hops(from, Some(to), self.widest_leaving(from));
        if paths[target as usize].is_some() {
            return self.follow(&paths, to);
        }
        let bandwidth = self.widths(self.vertex_of(from), Some(target))[target as usize];
        if bandwidth == 0.0 {
            return Route::default();
        }
        self.follow(&self.fewest_hops(from, Some(to), bandwidth), to)
    }

    /// Fastest route for a message of `bytes` without other traffic: latency plus bytes over the narrowest link.
    pub fn fastest(&self, from: usize, to: usize, bytes: f64) -> Route {
        let mut best = self.route(from, to);
        if best.channels.is_empty() {
            return best;
        }
        let mut widths: Vec<f64> = self.links().iter().map(|link| link.bandwidth).collect();
        widths.sort_unstable_by(|a, b| b.total_cmp(a));
        widths.dedup();
        let widest = best.bandwidth;
        for width in widths.into_iter().filter(|&width| width <= widest) {
            let route = self.follow(&self.least_latency(from, to, width), to);
            if route.seconds(bytes) < best.seconds(bytes) {
                best = route;
            }
        }
        best
    }

    /// Paths of fewest hops from a device over links of at least `width`; ties by least latency. Returns the arrival by
    /// vertex. If `to` is given, the search ends there, and other entries have no meaning.
    pub(super) fn fewest_hops(&self, from: usize, to: Option<usize>, width: f64) -> Vec<Arrival> {
        let (source, target) = (self.vertex_of(from), to.map(|to| self.vertex_of(to)));
        let mut before = vec![None; self.vertices().len()];
        // Hops and latency. A level is reached only from the level before, so earlier levels are final.
        let mut length = vec![(u32::MAX, f64::INFINITY); self.vertices().len()];
        length[source as usize] = (0, 0.0);
        let (mut level, mut behind) = (vec![source], target.map(|target| BackwardSearch::new(self, target, width)));
        while !level.is_empty() && !target.is_some_and(|target| level.contains(&target)) {
            if let Some(behind) = &mut behind
                && !behind.meets(self, source, &mut level)
            {
                break;
            }
            let mut next = vec![];
            for v in level {
                if v != source && !self.passes(v) {
                    continue;
                }
                let (hops, latency_s) = length[v as usize];
                for (index, hop) in self.hops(v).iter().enumerate() {
                    let past = behind.as_ref().is_some_and(|behind| behind.leads_past(v, hop.to));
                    if hop.bandwidth < width || past {
                        continue;
                    }
                    let (there, known) = ((hops + 1, latency_s + hop.latency_s), length[hop.to as usize]);
                    // Ties go to the nearer previous vertex, then to the lower one.
                    let nearer = |(other, _): (u32, u32)| (latency_s, v) < (length[other as usize].1, other);
                    if there < known || there == known && before[hop.to as usize].is_some_and(nearer) {
                        if known.0 == u32::MAX {
                            next.push(hop.to);
                        }
                        length[hop.to as usize] = there;
                        before[hop.to as usize] = Some((v, index as u32));
                    }
                }
            }
            level = next;
        }
        before
    }

    /// Path of least latency from a device to another over links of at least `width`; ties by fewest hops. Returns the
    /// arrival by vertex.
    fn least_latency(&self, from: usize, to: usize, width: f64) -> Vec<Arrival> {
        let (source, target) = (self.vertex_of(from), self.vertex_of(to));
        let mut length = vec![(f64::INFINITY, u32::MAX); self.vertices().len()];
        let mut before = vec![None; self.vertices().len()];
        length[source as usize] = (0.0, 0);
        let mut heap = BinaryHeap::from([LatencyQueueEntry(0.0, 0, source)]);
        while let Some(LatencyQueueEntry(latency_s, hops, v)) = heap.pop() {
            if v == target {
                break;
            }
            if (latency_s, hops) != length[v as usize] {
                continue;
            }
            for (index, hop) in (0..).zip(self.hops(v)).filter(|(_, hop)| hop.bandwidth >= width) {
                let there = (latency_s + hop.latency_s, hops + 1);
                if there < length[hop.to as usize] {
                    length[hop.to as usize] = there;
                    before[hop.to as usize] = Some((v, index));
                    // A vertex that does not relay is not expanded.
                    if hop.to == target || self.passes(hop.to) {
                        heap.push(LatencyQueueEntry(there.0, there.1, hop.to));
                    }
                }
            }
        }
        before
    }

    /// Route to a device along the arrivals.
    pub(super) fn follow(&self, before: &[Arrival], to: usize) -> Route {
        let mut route = Route { bandwidth: f64::INFINITY, ..Route::default() };
        let mut at = self.vertex_of(to);
        while let Some((previous, hop)) = before[at as usize] {
            let hop = self.hops(previous)[hop as usize];
            route.bandwidth = route.bandwidth.min(hop.bandwidth);
            route.latency_s += hop.latency_s;
            route.channels.push(hop.channel);
            at = previous;
        }
        route.channels.reverse();
        if route.channels.is_empty() { Route::default() } else { route }
    }
}

/// Maximum number of devices for which the routes of all pairs are stored.
const MOST_DEVICES_WITH_ROUTES: usize = 256;

/// Routes between all devices. For few devices they are stored, because searches look them up repeatedly. For many
/// devices they are computed on demand.
#[derive(Debug, Clone)]
pub struct Routes<'a> {
    topology: &'a Topology,
    routes: Vec<Route>,
}

impl<'a> Routes<'a> {
    /// Routes between all devices. `O(devices² · links)` time at worst if they are stored.
    pub fn new(topology: &'a Topology) -> Self {
        let devices = if topology.devices() > MOST_DEVICES_WITH_ROUTES { 0 } else { topology.devices() };
        let row = |from: usize| -> Vec<Route> { (0..devices).map(|to| topology.route(from, to)).collect() };
        let rows: Vec<Vec<Route>> = (0..devices).into_par_iter().map(row).collect();
        Routes { topology, routes: rows.concat() }
    }

    /// Route from a device to another.
    pub fn get(&self, from: usize, to: usize) -> Cow<'_, Route> {
        let kept = self.routes.get(from * self.topology.devices() + to);
        kept.map_or_else(|| Cow::Owned(self.topology.route(from, to)), Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Duplex, Link, LinkRule, Vertex, VertexKind},
        *,
    };

    /// Devices in two machines and switches, with links of a few bandwidths and latencies in any direction.
    fn wired(random: &mut impl FnMut() -> u32, relay: bool) -> Topology {
        let (devices, switches) = (3 + random() % 5, random() % 4);
        let vertex = |at: u32| Vertex {
            name: format!("v{at}"),
            kind: if at < devices { VertexKind::Device } else { VertexKind::Switch },
            machine: Some(u32::from(2 * at >= devices)).filter(|_| at < devices),
        };
        let mut links = vec![];
        for from in 0..devices + switches {
            for to in 0..devices + switches {
                let draw = random();
                if from != to && draw.is_multiple_of(3) {
                    let duplex = [Duplex::Full, Duplex::Half, Duplex::OneWay][draw as usize / 3 % 3];
                    let bandwidth = [1e9, 2e9, 2e9, 7e9, 9e9][draw as usize / 9 % 5];
                    let latency_s = f64::from(draw / 64 % 4);
                    links.push(Link { from, to, bandwidth, latency_s, duplex, what: String::new() });
                }
            }
        }
        let mut topology = Topology::new("wired", (0..devices + switches).map(vertex).collect(), links).unwrap();
        topology.relay = relay;
        topology
    }

    /// True if a device reaches another along links of at least this width.
    fn reaches(topology: &Topology, from: usize, to: usize, width: f64) -> bool {
        let mut seen = vec![topology.vertex_of(from)];
        let mut at = 0;
        while at < seen.len() {
            let v = seen[at];
            at += 1;
            if at > 1 && !topology.passes(v) {
                continue;
            }
            let wide = topology.hops(v).iter().filter(|hop| hop.bandwidth >= width).map(|hop| hop.to);
            let fresh: Vec<u32> = wide.filter(|to| !seen.contains(to)).collect();
            seen.extend(fresh);
        }
        seen.contains(&topology.vertex_of(to))
    }

    /// Least latency, by number of hops, of a walk from a device to another along links of at least this width.
    fn latencies(topology: &Topology, from: usize, to: usize, width: f64) -> Vec<f64> {
        let count = topology.vertices().len();
        let mut least = vec![f64::INFINITY; count];
        least[topology.vertex_of(from) as usize] = 0.0;
        let further = |hops: usize| {
            let before = std::mem::replace(&mut least, vec![f64::INFINITY; count]);
            for v in (0..count).filter(|&v| hops == 0 || topology.passes(v as u32)) {
                for hop in topology.hops(v as u32).iter().filter(|hop| hop.bandwidth >= width) {
                    least[hop.to as usize] = least[hop.to as usize].min(before[v] + hop.latency_s);
                }
            }
            least[topology.vertex_of(to) as usize]
        };
        (0..count).map(further).collect()
    }

    #[test]
    fn routes_are_as_wide_as_reachability_says_then_as_short_as_walks() {
        let mut state = 11u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u32
        };
        for round in 0..200 {
            let topology = wired(&mut random, round % 2 == 0);
            let mut rule = LinkRule { any: f64::INFINITY, within: f64::INFINITY, across: f64::INFINITY };
            for from in 0..topology.devices() {
                let widths = topology.pairs_from(from);
                for to in (0..topology.devices()).filter(|&to| to != from) {
                    let wide = |width: &f64| reaches(&topology, from, to, *width);
                    let width = [9e9, 7e9, 2e9, 1e9].into_iter().find(wide).unwrap_or(0.0);
                    assert_eq!(widths[to], width, "{round}: {from} {to}");
                    let route = topology.route_alone(from, to);
                    assert_eq!(route.bandwidth, width, "{round}: {from} {to}");
                    let by_hops = latencies(&topology, from, to, width);
                    let fewest = by_hops.iter().position(|latency_s| latency_s.is_finite()).filter(|_| width > 0.0);
                    let expected = fewest.map_or((0, 0.0), |hops| (hops + 1, by_hops[hops]));
                    assert_eq!((route.channels.len(), route.latency_s), expected, "{round}: {from} {to}");
                    let least =
                        latencies(&topology, from, to, 0.0).into_iter().reduce(f64::min).filter(|_| width > 0.0);
                    assert_eq!(topology.fastest(from, to, 0.0).latency_s, least.unwrap_or(0.0), "{round}: {from} {to}");
                    let together = topology.machine_of(from) == topology.machine_of(to);
                    let slowest = if together { &mut rule.within } else { &mut rule.across };
                    *slowest = slowest.min(width);
                }
            }
            rule.any = rule.within.min(rule.across);
            assert_eq!((LinkRule::of(&topology), LinkRule::of(&topology)), (rule, rule), "{round}");
        }
    }
}
