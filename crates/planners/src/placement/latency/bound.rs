//! Lower bound on the latency of every admissible assignment.
//!
//! Take any path `v_1 v_2 ..` of the graph. Its nodes in one slot are consecutive, because slots are convex. A slot
//! that holds `v_i` and `v_j` also holds their *closure* `C(i, j)`: every node on a path from one to the other and,
//! with one slot per accelerator, the colour classes of all these, until nothing is added. With `v_(i-1)` and `v_(j+1)`
//! elsewhere, convexity keeps the ancestors of the first and the descendants of the second out of the slot. So the slot
//! receives what these ancestors feed to the closure, and sends what these descendants take from it: a cut through a
//! residual block also pays for the shortcut. The least time to pass the path is then a shortest path over its cuts.
//! Let `B[s][j]` be the time at which the predecessor of `v_j` on the path is done with `s` slots used:
//!
//! `B[s][j+1] = min(B[s][j] + cpu(v_j), min over i of B[s-1][i] + receive(i) + time(C(i, j)) + send(j))`
//!
//! Here `s` is at most the number of slots, and only closures that fit a memory count. A tree replaces the single
//! path: each vertex extends the path of the predecessor with the greatest bound. Without memory limit and transfers,
//! this is the critical path with every node on its faster device.
//!
//! `O(m l (n / 64 (1 + d) + k))` for `m` edges and segments of at most `l` vertices whose closures grow by `d` nodes
//! each; `O(n^2 / 8)` bytes for reachability. It takes well under a second on the published graphs. If the sets would
//! take too much memory, or there is no time, [`critical_path`] is the bound, in linear time.

use fixedbitset::FixedBitSet;

use super::slots::Instance;
use plantui_core::search::Search;

/// Maximum memory of the reachability sets and the tree of paths together, bytes.
const MOST_BYTES: usize = 1 << 28;

/// Reachability.
struct NodeReach {
    /// Ancestors of each vertex, including itself.
    before: Vec<FixedBitSet>,
    /// Descendants of each vertex, including itself.
    after: Vec<FixedBitSet>,
    /// Predecessors of each vertex and of its descendants.
    feeding: Vec<FixedBitSet>,
}

impl NodeReach {
    fn new(instance: &Instance<'_>) -> Self {
        let (dag, n) = (instance.dag, instance.dag.len());
        let single = |v: usize| {
            let mut set = FixedBitSet::with_capacity(n);
            set.insert(v);
            set
        };
        let mut before: Vec<FixedBitSet> = (0..n).map(single).collect();
        let mut after = before.clone();
        let mut feeding = vec![FixedBitSet::with_capacity(n); n];
        for &v in dag.topological_order() {
            let mut set = std::mem::take(&mut before[v as usize]);
            dag.predecessors(v as usize).for_each(|u| set.union_with(&before[u]));
            before[v as usize] = set;
        }
        for &v in dag.topological_order().iter().rev() {
            let v = v as usize;
            let mut descendants = std::mem::take(&mut after[v]);
            let mut sources = std::mem::take(&mut feeding[v]);
            sources.extend(dag.predecessors(v));
            for w in dag.successors(v) {
                descendants.union_with(&after[w]);
                sources.union_with(&feeding[w]);
            }
            (after[v], feeding[v]) = (descendants, sources);
        }
        NodeReach { before, after, feeding }
    }
}

/// Closure of one segment, built incrementally.
struct Closure<'i, 'a> {
    instance: &'i Instance<'a>,
    reach: &'i NodeReach,
    members: FixedBitSet,
    predecessors: FixedBitSet,
    ahead: FixedBitSet,
    behind: FixedBitSet,
    time: f64,
    bytes: f64,
    supported: bool,
}

impl<'i, 'a> Closure<'i, 'a> {
    fn new(instance: &'i Instance<'a>, reach: &'i NodeReach) -> Self {
        let empty = FixedBitSet::with_capacity(instance.dag.len());
        let (members, predecessors, ahead, behind) = (empty.clone(), empty.clone(), empty.clone(), empty);
        Closure { instance, reach, members, predecessors, ahead, behind, time: 0.0, bytes: 0.0, supported: true }
    }

    fn clear(&mut self) {
        for set in [&mut self.members, &mut self.predecessors, &mut self.ahead, &mut self.behind] {
            set.clear();
        }
        (self.time, self.bytes, self.supported) = (0.0, 0.0, true);
    }

    /// Adds a node and all that its closure requires; may stop early if the closure fits on no accelerator.
    fn add(&mut self, v: usize) {
        let instance = self.instance;
        let mut fresh = vec![v];
        while !fresh.is_empty() && self.fits() {
            for v in fresh.drain(..) {
                let class: &[u32] = match instance.subgraphs {
                    1 => &instance.blocks.classes[instance.blocks.class_of[v] as usize],
                    _ => &[v as u32],
                };
                for &member in class {
                    let member = member as usize;
                    if self.members.put(member) {
                        continue;
                    }
                    let node = &instance.profile.nodes[member];
                    self.time += node.accelerator_time;
                    self.bytes += node.size_bytes;
                    self.supported &= node.supported;
                    self.predecessors.extend(instance.dag.predecessors(member));
                    self.ahead.union_with(&self.reach.after[member]);
                    self.behind.union_with(&self.reach.before[member]);
                }
            }
            let between = self.ahead.as_slice().iter().zip(self.behind.as_slice()).zip(self.members.as_slice());
            for (word, ((ahead, behind), members)) in between.enumerate() {
                let mut new = ahead & behind & !members;
                while new != 0 {
                    fresh.push(word * usize::BITS as usize + new.trailing_zeros() as usize);
                    new &= new - 1;
                }
            }
        }
    }

    fn fits(&self) -> bool {
        self.supported && self.bytes <= self.instance.memory_bytes
    }

    fn transfers(&self, one: &FixedBitSet, other: &FixedBitSet) -> f64 {
        one.intersection(other).map(|u| self.instance.profile.nodes[u].transfer).sum()
    }
}

/// Tree of paths built so far.
struct Paths<'i, 'a> {
    instance: &'i Instance<'a>,
    reach: &'i NodeReach,
    closure: Closure<'i, 'a>,
    parent: Vec<Option<usize>>,
    /// `B`, by vertex and number of slots.
    begin: Vec<f64>,
    width: usize,
}

impl Paths<'_, '_> {
    /// By number of slots used: lower bound on the finish of `v`, if its path continues to `next` (or ends). Valid for
    /// all devices of `v` and `next`, unless they share a slot.
    fn done(&mut self, v: usize, next: Option<usize>) -> Vec<f64> {
        let width = self.width;
        let row = |i: usize| i * width..(i + 1) * width;
        let cpu_time = self.instance.profile.nodes[v].cpu_time;
        let mut done: Vec<f64> = self.begin[row(v)].iter().map(|begin| begin + cpu_time).collect();
        self.closure.clear();
        let mut first = Some(v);
        while let Some(i) = first {
            self.closure.add(i);
            let closure = &self.closure;
            if !closure.fits() || next.is_some_and(|next| closure.members.contains(next)) {
                break;
            }
            first = self.parent[i];
            // A closure that contains the vertex before its first vertex starts earlier.
            if first.is_none_or(|before| !closure.members.contains(before)) {
                let receive = first.map(|before| closure.transfers(&closure.predecessors, &self.reach.before[before]));
                let send = next.map(|next| closure.transfers(&closure.members, &self.reach.feeding[next]));
                let busy = receive.unwrap_or(0.0) + closure.time + send.unwrap_or(0.0);
                for (done, begin) in done[1..].iter_mut().zip(&self.begin[row(i)]) {
                    *done = done.min(begin + busy);
                }
            }
        }
        done
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Longest path with every node on its faster device and no transfers: a lower bound for all admissible assignments.
/// `O(n + m)`.
pub(crate) fn critical_path(instance: &Instance<'_>) -> f64 {
    let mut done = vec![0.0f64; instance.dag.len()];
    let mut longest = 0.0f64;
    for &v in instance.dag.topological_order() {
        let v = v as usize;
        let node = &instance.profile.nodes[v];
        let alone = node.size_bytes <= instance.memory_bytes;
        let on_accelerator = instance.accelerators > 0 && node.supported && alone;
        let least = if on_accelerator { node.cpu_time.min(node.accelerator_time) } else { node.cpu_time };
        done[v] = instance.dag.predecessors(v).map(|u| done[u]).fold(0.0, f64::max) + least;
        longest = longest.max(done[v]);
    }
    longest * (1.0 - 1e-12)
}

/// Lower bound on the latency of admissible assignments, better than [`critical_path`]. `None` if `search` was
/// cancelled, or it would take more than 256 MiB.
pub(crate) fn lower_bound(instance: &Instance<'_>, search: &Search) -> Option<f64> {
    let (n, width) = (instance.dag.len(), instance.slots());
    // Three sets and a row of the tree per node.
    if n.saturating_mul(3 * n / 8 + 8 * width) > MOST_BYTES {
        return None;
    }
    let reach = NodeReach::new(instance);
    let closure = Closure::new(instance, &reach);
    let mut paths =
        Paths { instance, reach: &reach, closure, parent: vec![None; n], begin: vec![f64::INFINITY; n * width], width };
    let mut bound = 0.0f64;
    for &v in instance.dag.topological_order() {
        let v = v as usize;
        paths.begin[v * width] = 0.0;
        let mut greatest = f64::NEG_INFINITY;
        for u in instance.dag.predecessors(v) {
            if search.cancelled() {
                return None;
            }
            let begin = paths.done(u, Some(v));
            if least(&begin) > greatest {
                greatest = least(&begin);
                paths.parent[v] = Some(u);
                paths.begin[v * width..(v + 1) * width].copy_from_slice(&begin);
            }
        }
        if instance.dag.out_degree(v) == 0 {
            bound = bound.max(least(&paths.done(v, None)));
        }
    }
    // Sums here and in the score have different orders; the margin covers rounding.
    Some(bound * (1.0 - 1e-12))
}
