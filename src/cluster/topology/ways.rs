//! Routes from devices, found once for each device that is asked for: for whoever asks for many of them.
//!
//! A route is that of [`Topology::route`]. From one device there is a tree of shortest paths for every bandwidth that some
//! other device is reached with, and these are few. `O(links · log vertices)` time for each device and bandwidth,
//! `O(vertices)` memory for each; above [`KEPT`] devices nothing is kept, and every route is found by itself.

use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    sync::{Mutex, OnceLock, PoisonError},
};

use rustc_hash::FxHashMap;

use super::{Route, Topology, collectives::Cost};

/// Up to so many devices trees are kept.
const KEPT: usize = 1024;
/// Groups whose rings are kept.
const MOST_RINGS: usize = 4096;
/// There is no way there.
const NONE: u32 = u32::MAX;

/// Paths from one device.
#[derive(Debug)]
struct Tree {
    /// By device, the width of the widest path.
    widths: Vec<f64>,
    /// By width: for each vertex the one before it, and which of its hops leads on.
    by_width: Vec<(f64, Vec<(u32, u32)>)>,
}

/// A vertex on the way, by hops and latency, least first, then the lowest vertex.
#[derive(PartialEq)]
struct Near(u32, f64, u32);
impl Eq for Near {}
impl Ord for Near {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0).then(other.1.total_cmp(&self.1)).then(other.2.cmp(&self.2))
    }
}
impl PartialOrd for Near {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is kept of a topology's routes from the first time that they are asked for. A copy of a topology begins anew.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Whether data passed through devices then, and by device the paths from there.
    trees: OnceLock<(bool, Box<[OnceLock<Tree>]>)>,
    /// What a byte takes round the rings of a group, by its devices.
    rings: Mutex<FxHashMap<Vec<usize>, Cost>>,
}

impl Clone for Kept {
    fn clone(&self) -> Self {
        Kept::default()
    }
}

/// What is kept says nothing of its own.
impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Topology {
    /// The route from a device to another.
    pub fn route(&self, from: usize, to: usize) -> Route {
        if from == to {
            return Route { bandwidth: f64::INFINITY, ..Route::default() };
        }
        if self.devices() > KEPT {
            return self.route_alone(from, to);
        }
        let begun = || (self.relay, (0..self.devices()).map(|_| OnceLock::new()).collect());
        let (relay, trees) = self.kept.trees.get_or_init(begun);
        if *relay != self.relay {
            return self.route_alone(from, to);
        }
        let tree = trees[from].get_or_init(|| self.tree(from));
        let width = tree.widths[to];
        let Some((_, before)) = tree.by_width.iter().find(|own| own.0 == width) else { return Route::default() };
        let mut route = Route { bandwidth: f64::INFINITY, ..Route::default() };
        let mut at = self.vertex_of(to);
        while let (previous, hop) = before[at as usize]
            && previous != NONE
        {
            let hop = self.hops(previous)[hop as usize];
            route.bandwidth = route.bandwidth.min(hop.bandwidth);
            route.latency_s += hop.latency_s;
            route.channels.push(hop.channel);
            at = previous;
        }
        route.channels.reverse();
        if route.channels.is_empty() { Route::default() } else { route }
    }

    /// What a group's rings cost, found once for the same devices.
    pub(super) fn rings_cost(&self, devices: &[usize], find: impl FnOnce() -> Cost) -> Cost {
        let known = || self.kept.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&cost) = known().get(devices) {
            return cost;
        }
        let cost = find();
        let mut known = known();
        if known.len() >= MOST_RINGS {
            known.clear();
        }
        known.insert(devices.to_vec(), cost);
        cost
    }

    fn tree(&self, from: usize) -> Tree {
        let widths = self.pairs_from(from);
        let mut own: Vec<f64> = (0..).zip(&widths).filter(|(to, _)| *to != from).map(|(_, &width)| width).collect();
        own.retain(|&width| width > 0.0);
        own.sort_unstable_by(f64::total_cmp);
        own.dedup();
        let by_width = own.into_iter().map(|width| (width, self.tree_of(from, width))).collect();
        Tree { widths, by_width }
    }

    /// The shortest paths from a device along links of at least this width, by hops, then by latency.
    fn tree_of(&self, from: usize, width: f64) -> Vec<(u32, u32)> {
        let source = self.vertex_of(from);
        let vertices = self.vertices().len();
        let mut length = vec![(u32::MAX, f64::INFINITY); vertices];
        let mut before = vec![(NONE, 0); vertices];
        length[source as usize] = (0, 0.0);
        let mut heap = BinaryHeap::from([Near(0, 0.0, source)]);
        while let Some(Near(hops, latency, v)) = heap.pop() {
            if (hops, latency) != length[v as usize] || (v != source && !self.passes(v)) {
                continue;
            }
            for (index, hop) in (0..).zip(self.hops(v)).filter(|(_, hop)| hop.bandwidth >= width) {
                let there = (hops + 1, latency + hop.latency_s);
                if there < length[hop.to as usize] {
                    length[hop.to as usize] = there;
                    before[hop.to as usize] = (v, index);
                    heap.push(Near(there.0, there.1, hop.to));
                }
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::super::named;

    #[test]
    fn kept_routes_are_those_found_one_by_one() {
        for name in ["dgx-1", "2xdgx-1+eth-25g", "3xdgx-a100", "tpu-v4-2x2x4", "pcie3-8"] {
            let topology = named(name).unwrap();
            for from in 0..topology.devices() {
                for to in (0..topology.devices()).filter(|&to| to != from) {
                    let (kept, found) = (topology.route(from, to), topology.route_alone(from, to));
                    assert_eq!(kept, found, "{name}: {from} {to}");
                }
            }
        }
    }
}
