//! Routes from devices, found once for each device that is asked for: for whoever asks for many of them.
//!
//! A route is that of [`Topology::route`]. From one device there is a tree of shortest paths for every bandwidth that some
//! other device is reached with, and these are few. `O(links · log vertices)` time for each device and bandwidth,
//! `O(vertices)` memory for each; above [`KEPT`] devices no tree is kept, so that few routes from one device are found each by
//! itself, and at most [`MOST_ROUTES`] are kept.

use std::{
    borrow::Borrow,
    hash::Hash,
    sync::{Mutex, OnceLock, PoisonError},
};

use rustc_hash::FxHashMap;

use super::{Collectives, LinkRule, Route, Topology, collectives::SEARCHED, routes::Arrival};

/// Up to so many devices trees are kept.
const KEPT: usize = 256;
/// Routes that are kept of more devices.
const MOST_ROUTES: usize = 1 << 16;
/// Routes from one of so many devices that are found along its tree all the same, which nobody keeps.
const MANY_FROM_ONE: usize = 16;
/// Groups whose collectives are kept.
const MOST_GROUPS: usize = 4096;

/// Paths from one device.
#[derive(Debug)]
struct Tree {
    /// By device, the width of the widest path.
    widths: Vec<f64>,
    /// By width: [`Topology::fewest_hops`] of it.
    by_width: Vec<(f64, Vec<Arrival>)>,
}

/// What is kept of a topology's routes from the first time that they are asked for. A copy of a topology begins anew.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Whether data passed through devices then, and by device the paths from there.
    trees: OnceLock<(bool, Box<[OnceLock<Tree>]>)>,
    /// Routes of pairs, with whether data passed through devices then.
    routes: Mutex<FxHashMap<(usize, usize, bool), Route>>,
    /// The slowest pairs, with whether data passed through devices and machines were alike then.
    rule: OnceLock<((bool, bool), LinkRule)>,
    /// The collectives of groups, each with whether data passed through devices then.
    groups: Mutex<FxHashMap<Vec<usize>, (bool, Collectives)>>,
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

/// What is kept of a key, or is found of it and kept then; nobody waits while it is found. Of so many at the most.
fn known<K, Q, V>(all: &Mutex<FxHashMap<K, V>>, most: usize, key: &Q, find: impl FnOnce() -> V) -> V
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
    /// The route from a device to another.
    pub fn route(&self, from: usize, to: usize) -> Route {
        if from == to {
            return Route { bandwidth: f64::INFINITY, ..Route::default() };
        }
        if self.devices() > KEPT {
            return self.route_kept(from, to);
        }
        let begun = || (self.relay, (0..self.devices()).map(|_| OnceLock::new()).collect());
        let (relay, trees) = self.kept.trees.get_or_init(begun);
        if *relay != self.relay {
            return self.route_alone(from, to);
        }
        self.along(trees[from].get_or_init(|| self.tree(from)), to)
    }

    /// The routes from a device to others: of many devices along one table of shortest paths for each width that some of these are
    /// reached with, one at a time.
    pub(super) fn routes_from(&self, from: usize, to: &[usize]) -> Vec<Route> {
        if self.devices() <= KEPT || to.len() < MANY_FROM_ONE {
            return to.iter().map(|&to| self.route(from, to)).collect();
        }
        let reached = |paths: &[Arrival], to: usize| to == from || paths[self.vertex_of(to) as usize].is_some();
        let follow =
            |paths: &[Arrival], to: usize| if to == from { self.route(from, to) } else { self.follow(paths, to) };
        // Nothing leaves faster than by the widest link: often that width leads to all.
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

    /// The route to another device along the paths from one.
    fn along(&self, tree: &Tree, to: usize) -> Route {
        let width = tree.widths[to];
        let paths = tree.by_width.iter().find(|own| own.0 == width);
        paths.map_or_else(Route::default, |(_, before)| self.follow(before, to))
    }

    /// The same of more devices than trees are kept of.
    fn route_kept(&self, from: usize, to: usize) -> Route {
        known(&self.kept.routes, MOST_ROUTES, &(from, to, self.relay), || self.route_alone(from, to))
    }

    /// The slowest pairs, found once.
    pub(super) fn kept_rule(&self, find: impl Fn() -> LinkRule) -> LinkRule {
        let now = (self.relay, self.alike);
        let &(then, rule) = self.kept.rule.get_or_init(|| (now, find()));
        if then == now { rule } else { find() }
    }

    /// The collectives of these devices, as [`Collectives::new`], found once for the same ones while they are few.
    pub fn collectives(&self, devices: &[usize]) -> Collectives {
        let find = || Collectives::new(self, devices);
        if devices.len() > SEARCHED {
            return find();
        }
        let (relay, kept) = known(&self.kept.groups, MOST_GROUPS, devices, || (self.relay, find()));
        if relay == self.relay { kept } else { find() }
    }

    fn tree(&self, from: usize) -> Tree {
        // Nothing leaves faster than by the widest link: often that width leads to all.
        let leaving = self.widest_leaving(from);
        let paths = self.fewest_hops(from, None, leaving);
        if (0..self.devices()).all(|to| to == from || paths[self.vertex_of(to) as usize].is_some()) {
            let mut widths = vec![leaving; self.devices()];
            widths[from] = f64::INFINITY;
            return Tree { widths, by_width: vec![(leaving, paths)] };
        }
        let widths = self.pairs_from(from);
        let mut own: Vec<f64> = (0..).zip(&widths).filter(|(to, _)| *to != from).map(|(_, &width)| width).collect();
        own.retain(|&width| width > 0.0);
        own.sort_unstable_by(f64::total_cmp);
        own.dedup();
        let by_width = own.into_iter().map(|width| (width, self.fewest_hops(from, None, width))).collect();
        Tree { widths, by_width }
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
                    assert_eq!((topology.route_kept(from, to), topology.route_kept(from, to)), (kept, found));
                }
            }
        }
    }

    #[test]
    fn many_routes_from_one_device_are_those_found_one_by_one() {
        let topology = named("tpu-v4-8x12x12").unwrap();
        assert!(topology.devices() > super::KEPT);
        let to: Vec<usize> = (0..super::KEPT + 70).step_by(7).collect();
        assert!(to.len() > super::MANY_FROM_ONE);
        // And round a switch to which every device has a width of its own, but for one that nothing leads to.
        let (count, name) = (super::KEPT as u32 + 70, |v: u32| format!("v{v}"));
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
