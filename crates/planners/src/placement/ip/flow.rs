//! Least load of an accelerator that must hold given classes: a minimum cut.
//!
//! The load of a set is a sum over its classes plus the cut function of a hypergraph, which is submodular. Lawler's
//! expansion (1973) turns it into a cut of a directed graph. A net becomes an arc with its cost between two vertices of
//! its own. Infinite arcs lead from all its classes to the first and from the second to all its classes. Classes that
//! must be in are joined to the source, classes that must be out to the sink. A class pays its own time as an arc to
//! the sink.
//!
//! Dinic's algorithm (1970), `O(V^2 E)` in the worst case and near linear here. Capacities are floating point. The
//! result is the value of a flow, a lower bound on the cut even if rounding left arcs unsaturated.

use std::collections::VecDeque;

use super::model::{IpModel, whole};

/// Flow network over the classes and nets of a model.
#[derive(Debug, Clone)]
pub struct CutNetwork {
    classes: usize,
    /// Arcs in pairs: arc `e` and its reverse `e ^ 1`.
    head: Vec<u32>,
    base: Vec<f64>,
    room: Vec<f64>,
    first: Vec<u32>,
    arcs: Vec<u32>,
    level: Vec<u32>,
    cursor: Vec<u32>,
    tiny: f64,
}

/// Side of the cut to which a class is forced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutSide {
    /// The class may be in the set or not.
    Free,
    /// The class is in the set.
    In,
    /// The class is not in the set.
    Out,
}

impl CutNetwork {
    /// Network of a model; times are the sums of both parts.
    pub fn new(model: &IpModel) -> Self {
        let (n, nets) = (model.len(), model.net_count());
        let vertices = n + 2 * nets + 2;
        let (source, sink) = (vertices - 2, vertices - 1);
        let mut ends: Vec<(usize, usize, f64)> = vec![];
        for class in 0..n {
            ends.push((source, class, 0.0));
            ends.push((class, sink, whole(model.accelerator_time[class])));
        }
        for net in 0..nets {
            let (gather, spread) = (n + 2 * net, n + 2 * net + 1);
            ends.push((gather, spread, whole(model.net_cost[net])));
            for &pin in model.pins(net) {
                ends.push((pin as usize, gather, f64::INFINITY));
                ends.push((spread, pin as usize, f64::INFINITY));
            }
        }
        let mut degree = vec![0u32; vertices + 1];
        for &(a, b, _) in &ends {
            degree[a + 1] += 1;
            degree[b + 1] += 1;
        }
        for v in 0..vertices {
            degree[v + 1] += degree[v];
        }
        let mut fill = degree.clone();
        let mut arcs = vec![0; 2 * ends.len()];
        let (mut head, mut base) = (vec![], vec![]);
        for (i, &(a, b, capacity)) in ends.iter().enumerate() {
            head.extend([b as u32, a as u32]);
            base.extend([capacity, 0.0]);
            for (v, arc) in [(a, 2 * i), (b, 2 * i + 1)] {
                arcs[fill[v] as usize] = arc as u32;
                fill[v] += 1;
            }
        }
        let largest = ends.iter().map(|e| e.2).filter(|c| c.is_finite()).fold(0.0, f64::max);
        CutNetwork {
            classes: n,
            head,
            room: base.clone(),
            base,
            first: degree,
            arcs,
            level: vec![0; vertices],
            cursor: vec![0; vertices],
            tiny: largest * 1e-13,
        }
    }

    /// Least load of a set with all classes on side [`CutSide::In`] and none on side [`CutSide::Out`]. Stops early with a
    /// lower bound of at least `enough`.
    pub fn least_load(&mut self, side: impl Fn(usize) -> CutSide, enough: f64) -> f64 {
        self.room.copy_from_slice(&self.base);
        for class in 0..self.classes {
            match side(class) {
                CutSide::Free => {}
                // Every class has two arcs, each with its reverse; the arc from the source is the first of the four.
                CutSide::In => self.room[4 * class] = f64::INFINITY,
                CutSide::Out => self.room[4 * class + 2] = f64::INFINITY,
            }
        }
        let mut flow = 0.0;
        while flow < enough && self.layer() {
            flow += self.block(enough - flow);
        }
        flow
    }

    /// After a complete run of [`CutNetwork::least_load`]: the classes on the source side of the cut, the smallest such
    /// set.
    pub fn cheapest_set(&self) -> Vec<u32> {
        (0..self.classes).filter(|&class| self.level[class] != u32::MAX).map(|class| class as u32).collect()
    }

    /// Computes levels by distance from the source; true if the sink is reached.
    fn layer(&mut self) -> bool {
        let vertices = self.level.len();
        let (source, sink) = (vertices - 2, vertices - 1);
        self.level.fill(u32::MAX);
        self.level[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(v) = queue.pop_front() {
            for &arc in &self.arcs[self.first[v] as usize..self.first[v + 1] as usize] {
                let w = self.head[arc as usize] as usize;
                if self.room[arc as usize] > self.tiny && self.level[w] == u32::MAX {
                    self.level[w] = self.level[v] + 1;
                    queue.push_back(w);
                }
            }
        }
        self.level[sink] != u32::MAX
    }

    /// Blocking flow along the levels; stops when it reaches `enough`.
    fn block(&mut self, enough: f64) -> f64 {
        let vertices = self.level.len();
        let (source, sink) = (vertices - 2, vertices - 1);
        self.cursor.copy_from_slice(&self.first[..vertices]);
        let mut path: Vec<usize> = vec![];
        let mut total = 0.0;
        loop {
            let v = path.last().map_or(source, |&arc| self.head[arc] as usize);
            if v == sink {
                let push = path.iter().map(|&arc| self.room[arc]).fold(f64::INFINITY, f64::min);
                if push.is_infinite() {
                    return f64::INFINITY;
                }
                total += push;
                for &arc in &path {
                    self.room[arc] -= push;
                    self.room[arc ^ 1] += push;
                }
                if total >= enough {
                    return total;
                }
                let full = path.iter().position(|&arc| self.room[arc] <= self.tiny).unwrap_or(0);
                path.truncate(full);
                continue;
            }
            let end = self.first[v + 1];
            let mut next = None;
            while self.cursor[v] < end {
                let arc = self.arcs[self.cursor[v] as usize] as usize;
                let w = self.head[arc] as usize;
                if self.room[arc] > self.tiny && self.level[w] == self.level[v].wrapping_add(1) {
                    next = Some(arc);
                    break;
                }
                self.cursor[v] += 1;
            }
            match next {
                Some(arc) => path.push(arc),
                None => match path.pop() {
                    // Dead end: its arc is not tried again.
                    Some(arc) => self.cursor[self.head[arc ^ 1] as usize] += 1,
                    None => return total,
                },
            }
        }
    }
}
