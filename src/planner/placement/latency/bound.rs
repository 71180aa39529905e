//! A lower bound on the latency of every admissible assignment.
//!
//! Take any path of the graph. What it has in one slot is consecutive on it, because slots are convex. Whoever holds
//! `v_i` and `v_j` of the path in one slot holds their *closure* as well: every node on a way from one to the other and,
//! with one slot per accelerator, the colour classes of all these, and so on until nothing is added. That slot takes at
//! least the closure's accelerator time, plus the transfer of `v_(i-1)` into it and of `v_j` out of it, and needs the
//! closure's memory. So the least time in which the path can be passed is a shortest way over its cuts:
//!
//! `E[s][j] = min(E[s][j-1] + cpu(v_j), min over i of E[s-1][i-1] + c(v_(i-1)) + time(closure(i, j)) + c(v_j))`
//!
//! with at most as many segments `s` as there are slots; at the last vertex nothing has to be sent. Instead of one path a
//! tree is used: each vertex continues the way of the predecessor whose bound is greatest. With no memory and no transfers
//! this is the critical path with every node on its faster device.
//!
//! `O(n l (n^2 / 64 + k))` at worst for segments of at most `l` vertices; on the published graphs under a second.

use fixedbitset::FixedBitSet;

use super::slots::Instance;
use crate::planner::Search;

/// Reachability and the growing closure of one segment.
struct Closure<'i, 'a> {
    instance: &'i Instance<'a>,
    before: Vec<FixedBitSet>,
    after: Vec<FixedBitSet>,
    within: FixedBitSet,
    ahead: FixedBitSet,
    behind: FixedBitSet,
    time: f64,
    bytes: f64,
    supported: bool,
}

impl<'i, 'a> Closure<'i, 'a> {
    fn new(instance: &'i Instance<'a>) -> Self {
        let n = instance.dag.len();
        let mut before = vec![FixedBitSet::with_capacity(n); n];
        let mut after = before.clone();
        for &v in instance.dag.topological_order() {
            let mut set = FixedBitSet::with_capacity(n);
            set.insert(v as usize);
            instance.dag.predecessors(v as usize).for_each(|u| set.union_with(&before[u]));
            before[v as usize] = set;
        }
        for &v in instance.dag.topological_order().iter().rev() {
            let mut set = FixedBitSet::with_capacity(n);
            set.insert(v as usize);
            instance.dag.successors(v as usize).for_each(|w| set.union_with(&after[w]));
            after[v as usize] = set;
        }
        let empty = FixedBitSet::with_capacity(n);
        let (within, ahead, behind) = (empty.clone(), empty.clone(), empty);
        Closure { instance, before, after, within, ahead, behind, time: 0.0, bytes: 0.0, supported: true }
    }

    fn clear(&mut self) {
        self.within.clear();
        self.ahead.clear();
        self.behind.clear();
        (self.time, self.bytes, self.supported) = (0.0, 0.0, true);
    }

    /// Adds a node and all that has to come with it.
    fn add(&mut self, v: usize) {
        let instance = self.instance;
        let mut fresh = vec![v];
        while !fresh.is_empty() {
            for v in fresh.drain(..) {
                let class: &[u32] = match instance.subgraphs {
                    1 => &instance.blocks.classes[instance.blocks.class_of[v] as usize],
                    _ => &[v as u32],
                };
                for &member in class {
                    let member = member as usize;
                    if self.within.put(member) {
                        continue;
                    }
                    let node = &instance.profile.nodes[member];
                    self.time += node.accelerator_time;
                    self.bytes += node.size_bytes;
                    self.supported &= node.supported;
                    self.ahead.union_with(&self.after[member]);
                    self.behind.union_with(&self.before[member]);
                }
            }
            if !self.fits() {
                return;
            }
            let between = self.ahead.as_slice().iter().zip(self.behind.as_slice()).zip(self.within.as_slice());
            for (block, ((ahead, behind), within)) in between.enumerate() {
                let mut new = ahead & behind & !within;
                while new != 0 {
                    fresh.push(block * usize::BITS as usize + new.trailing_zeros() as usize);
                    new &= new - 1;
                }
            }
        }
    }

    fn fits(&self) -> bool {
        self.supported && self.bytes <= self.instance.memory_bytes * (1.0 + 1e-12)
    }
}

/// A value that no admissible assignment of `instance` goes below; `None` if `search` was cancelled meanwhile.
pub fn lower_bound(instance: &Instance<'_>, search: &Search) -> Option<f64> {
    let (n, width) = (instance.dag.len(), instance.slots());
    let nodes = &instance.profile.nodes;
    let mut closure = Closure::new(instance);
    let mut parent: Vec<Option<usize>> = vec![None; n];
    // Least time until v is finished and its output is on the host, by number of slots passed on the way.
    let mut sent = vec![f64::INFINITY; n * width];
    let mut bound = 0.0f64;
    for &v in instance.dag.topological_order() {
        let v = v as usize;
        if search.cancelled() {
            return None;
        }
        let least = |u: usize| sent[u * width..(u + 1) * width].iter().copied().fold(f64::INFINITY, f64::min);
        parent[v] = instance.dag.predecessors(v).max_by(|&a, &b| least(a).total_cmp(&least(b)).then(b.cmp(&a)));
        let mut ends = vec![f64::INFINITY; width];
        match parent[v] {
            None => ends[0] = nodes[v].cpu_time,
            Some(u) => (0..width).for_each(|s| ends[s] = sent[u * width + s] + nodes[v].cpu_time),
        }
        let mut on_accelerator = vec![f64::INFINITY; width];
        closure.clear();
        let mut first = Some(v);
        while let Some(i) = first {
            closure.add(i);
            if !closure.fits() {
                break;
            }
            match parent[i] {
                None => {
                    if let Some(time) = on_accelerator.get_mut(1) {
                        *time = time.min(closure.time);
                    }
                }
                Some(u) => {
                    for s in 1..width {
                        let entered = sent[u * width + s - 1] + nodes[u].transfer;
                        on_accelerator[s] = on_accelerator[s].min(entered + closure.time);
                    }
                }
            }
            first = parent[i];
        }
        let passed = (0..width).map(|s| ends[s].min(on_accelerator[s])).fold(f64::INFINITY, f64::min);
        bound = bound.max(passed);
        for s in 0..width {
            sent[v * width + s] = ends[s].min(on_accelerator[s] + nodes[v].transfer);
        }
    }
    // Sums here and in the score run in different orders: keep clear of rounding.
    Some(bound * (1.0 - 1e-12))
}
