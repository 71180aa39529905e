//! Cache of routes, for callers that need many of them.
//!
//! Routes are those of [`Topology::route`]. Each device has one tree of shortest paths per bandwidth at which it
//! reaches another device, and these bandwidths are few. `O(links · log vertices)` time and `O(vertices)` memory per
//! device and bandwidth. Above [`MOST_DEVICES_WITH_TREES`] devices no tree is stored: routes are computed one by one,
//! and at most [`MOST_ROUTES`] are stored.

use std::{
    borrow::Borrow,
    hash::Hash,
    sync::{Mutex, OnceLock, PoisonError},
};

use rustc_hash::FxHashMap;

use super::{
    collectives::{Collectives, SEARCHED},
    graph::Topology,
    routes::{Arrival, Route},
    rule::LinkRule,
};

/// Maximum number of devices for which trees are stored.
const MOST_DEVICES_WITH_TREES: usize = 256;
/// Maximum number of stored routes for more devices.
const MOST_ROUTES: usize = 1 << 16;
/// Number of routes from one device from which on they are computed along its tree, which is not stored.
const MANY_FROM_ONE: usize = 16;
/// Maximum number of groups whose collectives are stored.
const MOST_GROUPS: usize = 4096;

/// Paths from one device.
#[derive(Debug)]
struct PathTree {
    /// Width of the widest path by device.
    widths: Vec<f64>,
    /// [`Topology::fewest_hops`] by width.
    by_width: Vec<(f64, Vec<Arrival>)>,
}

/// Cache of a topology. It is filled on demand; a copy of a topology starts with an empty cache. Entries are valid only
/// for the flags that they were computed with.
#[derive(Debug, Default)]
pub(super) struct RouteCache {
    /// Paths by device, with the `relay` flag.
    trees: OnceLock<(bool, Box<[OnceLock<PathTree>]>)>,
    /// Routes by pair and `relay` flag.
    routes: Mutex<FxHashMap<(usize, usize, bool), Route>>,
    /// Slowest pairs, with the `relay` and `alike` flags.
    rule: OnceLock<((bool, bool), LinkRule)>,
    /// Collectives by group, with the `relay` flag.
    groups: Mutex<FxHashMap<Vec<usize>, (bool, Collectives)>>,
}

impl Clone for RouteCache {
    fn clone(&self) -> Self {
        RouteCache::default()
    }
}

/// The cache does not affect equality of topologies.
impl PartialEq for RouteCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Returns the value of a key, computed and stored if absent. The lock is not held during the computation. A cache of
/// `most` entries is cleared before the next one.
fn cached<K, Q, V>(all: &Mutex<FxHashMap<K, V>>, most: usize, key: &Q, find: impl FnOnce() -> V) -> V
where
    K: Borrow<Q> + Hash + Eq,
    Q: ToOwned<Owned = K> + Hash + Eq + ?Sized,
    V: Clone,
{
    let known = || all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = known().get(key) {
        return value.clone();
    }
    let value = find();
    let mut known = known();
    if known.len() >= most {
        known.clear();
    }
    known.insert(key.to_owned(), value.clone());
    value
}

impl Topology {
    /// Route from a device to another.
    pub fn route(&self, from: usize, to: usize) -> Route {
        if from == to {
            return Route { bandwidth: f64::INFINITY, ..Route::default() };
        }
        if self.devices() > MOST_DEVICES_WITH_TREES {
            return self.route_cached(from, to);
        }
        let begun = || (self.relay, (0..self.devices()).map(|_| OnceLock::new()).collect());
        let (relay, trees) = self.cache.trees.get_or_init(begun);
        if *relay != self.relay {
            return self.route_alone(from, to);
        }
        self.along(trees[from].get_or_init(|| self.tree(from)), to)
    }

    /// Routes from a device to others. For many devices, one table of shortest paths per width is computed, and only
    /// one is held at a time.
    pub(super) fn routes_from(&self, from: usize, to: &[usize]) -> Vec<Route> {
        if self.devices() <= MOST_DEVICES_WITH_TREES || to.len() < MANY_FROM_ONE {
            return to.iter().map(|&to| self.route(from, to)).collect();
        }
        let reached = |paths: &[Arrival], to: usize| to == from || paths[self.vertex_of(to) as usize].is_some();
        let follow =
            |paths: &[Arrival], to: usize| if to == from { self.route(from, to) } else { self.follow(paths, to) };
        // No path is wider than the widest link of the device, and often that width reaches all.
        let paths = self.fewest_hops(from, None, self.widest_leaving(from));
        if to.iter().all(|&to| reached(&paths, to)) {
            return to.iter().map(|&to| follow(&paths, to)).collect();
        }
        let widths = self.pairs_from(from);
        let mut own: Vec<f64> = to.iter().filter(|&&to| to != from).map(|&to| widths[to]).collect();
        own.retain(|&width| width > 0.0);
        own.sort_unstable_by(f64::total_cmp);
        own.dedup();
        let mut routes = vec![Route::default(); to.len()];
        for width in own {
            let paths = self.fewest_hops(from, None, width);
            for (route, &to) in routes.iter_mut().zip(to) {
                if widths[to] == width {
                    *route = follow(&paths, to);
                }
            }
        }
        for (route, &to) in routes.iter_mut().zip(to) {
            if to == from {
                *route = self.route(from, to);
            }
        }
        routes
    }

    /// Route to a device along a tree.
    fn along(&self, tree: &PathTree, to: usize) -> Route {
        let width = tree.widths[to];
        let paths = tree.by_width.iter().find(|own| own.0 == width);
        paths.map_or_else(Route::default, |(_, before)| self.follow(before, to))
    }

    /// Same as [`Topology::route`] for more than [`MOST_DEVICES_WITH_TREES`] devices.
    fn route_cached(&self, from: usize, to: usize) -> Route {
        cached(&self.cache.routes, MOST_ROUTES, &(from, to, self.relay), || self.route_alone(from, to))
    }

    /// Slowest pairs, computed once.
    pub(super) fn cached_rule(&self, find: impl Fn() -> LinkRule) -> LinkRule {
        let now = (self.relay, self.alike);
        let &(then, rule) = self.cache.rule.get_or_init(|| (now, find()));
        if then == now { rule } else { find() }
    }

    /// Collectives of a group, as [`Collectives::new`]. Small groups are cached.
    pub fn collectives(&self, devices: &[usize]) -> Collectives {
        let find = || Collectives::new(self, devices);
        if devices.len() > SEARCHED {
            return find();
        }
        let (relay, kept) = cached(&self.cache.groups, MOST_GROUPS, devices, || (self.relay, find()));
        if relay == self.relay { kept } else { find() }
    }

    fn tree(&self, from: usize) -> PathTree {
        // No path is wider than the widest link of the device, and often that width reaches all.
        let leaving = self.widest_leaving(from);
        let paths = self.fewest_hops(from, None, leaving);
        if (0..self.devices()).all(|to| to == from || paths[self.vertex_of(to) as usize].is_some()) {
            let mut widths = vec![leaving; self.devices()];
            widths[from] = f64::INFINITY;
            return PathTree { widths, by_width: vec![(leaving, paths)] };
        }
        let widths = self.pairs_from(from);
        let mut own: Vec<f64> = (0..).zip(&widths).filter(|(to, _)| *to != from).map(|(_, &width)| width).collect();
        own.retain(|&width| width > 0.0);
        own.sort_unstable_by(f64::total_cmp);
        own.dedup();
        let by_width = own.into_iter().map(|width| (width, self.fewest_hops(from, None, width))).collect();
        PathTree { widths, by_width }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Duplex, Link, Topology, Vertex, VertexKind, named};

    #[test]
    fn kept_routes_are_those_found_one_by_one() {
        for name in ["dgx-1", "2xdgx-1+eth-25g", "3xdgx-a100", "tpu-v4-2x2x4", "pcie3-8"] {
            let topology = named(name).unwrap();
            for from in 0..topology.devices() {
                for to in (0..topology.devices()).filter(|&to| to != from) {
                    let (kept, found) = (topology.route(from, to), topology.route_alone(from, to));
                    assert_eq!(kept, found, "{name}: {from} {to}");
                    assert_eq!((topology.route_cached(from, to), topology.route_cached(from, to)), (kept, found));
                }
            }
        }
    }

    #[test]
    fn many_routes_from_one_device_are_those_found_one_by_one() {
        let topology = named("tpu-v4-8x12x12").unwrap();
        assert!(topology.devices() > super::MOST_DEVICES_WITH_TREES);
        let to: Vec<usize> = (0..super::MOST_DEVICES_WITH_TREES + 70).step_by(7).collect();
        assert!(to.len() > super::MANY_FROM_ONE);
        // And round a switch to which every device has a width of its own, but for one that nothing leads to.
        let (count, name) = (super::MOST_DEVICES_WITH_TREES as u32 + 70, |v: u32| format!("v{v}"));
        let kind = |v: u32| if v < count { VertexKind::Device } else { VertexKind::Switch };
        let vertices = (0..=count).map(|v| Vertex { name: name(v), kind: kind(v), machine: None }).collect();
        let link = |v: u32| {
            let duplex = if v == 49 { Duplex::OneWay } else { Duplex::Full };
            Link {
                from: v,
                to: count,
                bandwidth: f64::from(1 + v * 7 % 30),
                latency_s: f64::from(v % 3),
                duplex,
                what: String::new(),
            }
        };
        let star = Topology::new("star", vertices, (0..count).map(link).collect()).unwrap();
        for topology in [topology, star] {
            for from in [0, 7, 300] {
                for (&to, route) in to.iter().zip(topology.routes_from(from, &to)) {
                    let alone = if to == from { topology.route(from, to) } else { topology.route_alone(from, to) };
                    assert_eq!(route, alone, "{}: {from} {to}", topology.name);
                }
            }
        }
    }
}
