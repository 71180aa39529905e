//! Branch and bound over all assignments: the proof for small graphs.
//!
//! Nodes are assigned in topological order. The assigned nodes are scored alone: a slot's load only grows, and cycles
//! remain. The others then follow with every node on its faster device and no transfers. A branch that does not improve
//! the incumbent is cut. Accelerators are identical, so a node may open only the first unused one. Exponential in the
//! number of nodes; a budget of branches limits it to small graphs.

use super::slots::Instance;
use plantui_core::search::Search;

/// Result of an exhaustive search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SlotSearchResult {
    /// Nothing is better than the incumbent, which is thus optimal.
    NothingBetter,
    /// Optimum, better than the incumbent.
    Better(f64, Vec<u32>),
    /// The budget was used up or the search was cancelled; nothing is proven.
    GaveUp(Option<(f64, Vec<u32>)>),
}

const UNASSIGNED: u32 = u32::MAX;

struct SlotBranching<'i, 'a> {
    instance: &'i Instance<'a>,
    search: &'i Search,
    budget: u64,
    slots: Vec<u32>,
    bytes: Vec<f64>,
    /// Number of nodes on each accelerator.
    held: Vec<u32>,
    best: f64,
    found: Option<Vec<u32>>,
    scratch: Scratch,
}

#[derive(Default)]
struct Scratch {
    finish: Vec<f64>,
    load: Vec<f64>,
    missing: Vec<u32>,
    ready: Vec<f64>,
    open: Vec<u32>,
}

/// Searches an assignment whose latency is below `known` by more than one part in 10^9.
pub(crate) fn exhaust(instance: &Instance<'_>, known: f64, budget: u64, search: &Search) -> SlotSearchResult {
    let mut branching = SlotBranching {
        instance,
        search,
        budget,
        slots: vec![UNASSIGNED; instance.dag.len()],
        bytes: vec![0.0; instance.accelerators],
        held: vec![0; instance.accelerators],
        best: known,
        found: None,
        scratch: Scratch::default(),
    };
    let finished = branching.assign(0);
    match (finished, branching.found) {
        (true, None) => SlotSearchResult::NothingBetter,
        (true, Some(slots)) => SlotSearchResult::Better(branching.best, slots),
        (false, found) => SlotSearchResult::GaveUp(found.map(|slots| (branching.best, slots))),
    }
}

impl SlotBranching<'_, '_> {
    /// Tries all assignments of the nodes from `depth` of the topological order on; `false` if it gave up.
    fn assign(&mut self, depth: usize) -> bool {
        if self.budget == 0 || self.search.cancelled() {
            return false;
        }
        self.budget -= 1;
        let Some(bound) = self.bound() else { return true };
        if bound >= self.best * (1.0 - 1e-9) {
            return true;
        }
        let Some(&v) = self.instance.dag.topological_order().get(depth) else {
            self.best = bound;
            self.found = Some(self.slots.clone());
            return true;
        };
        let v = v as usize;
        let instance = self.instance;
        let class = &instance.blocks.classes[instance.blocks.class_of[v] as usize];
        let decided = class.iter().map(|&w| self.slots[w as usize]).find(|&slot| slot != UNASSIGNED);
        let node = &instance.profile.nodes[v];
        let unused = self.held.iter().position(|&held| held == 0);
        for slot in 0..instance.slots() as u32 {
            let owner = instance.owner(slot);
            if decided.is_some_and(|slot| instance.owner(slot) != owner) {
                continue;
            }
            let former = owner.map(|a| self.bytes[a]);
            if let (Some(a), Some(former)) = (owner, former) {
                let first = unused.is_none_or(|unused| a <= unused);
                let fits = former + node.size_bytes <= instance.memory_bytes;
                if !node.supported || !first || !fits {
                    continue;
                }
                self.bytes[a] += node.size_bytes;
                self.held[a] += 1;
            }
            self.slots[v] = slot;
            let finished = self.assign(depth + 1);
            self.slots[v] = UNASSIGNED;
            if let (Some(a), Some(former)) = (owner, former) {
                self.bytes[a] = former;
                self.held[a] -= 1;
            }
            if !finished {
                return false;
            }
        }
        true
    }

    /// Lower bound on all completions of the current assignment; the exact latency of a complete one. `None` if no
    /// completion is admissible.
    // One long function: the bounds share the schedule of the assigned nodes.
    fn bound(&mut self) -> Option<f64> {
        let SlotBranching { instance, slots, scratch, .. } = self;
        let (n, nodes) = (slots.len(), &instance.profile.nodes);
        if !slots.contains(&UNASSIGNED) {
            return instance.schedule(slots).map(|schedule| schedule.latency);
        }
        scratch.load.clear();
        scratch.load.resize(instance.slots(), 0.0);
        scratch.missing.clear();
        scratch.missing.resize(n + instance.slots(), 0);
        scratch.ready.clear();
        scratch.ready.resize(n + instance.slots(), 0.0);
        scratch.finish.clear();
        scratch.finish.resize(n, 0.0);
        let unit = |slots: &[u32], v: usize| if slots[v] == 0 { v } else { n + slots[v] as usize };
        for v in (0..n).filter(|&v| slots[v] != UNASSIGNED) {
            let mut outside: Vec<u32> = vec![];
            for &w in instance.successors(v) {
                let there = slots[w as usize];
                if there != UNASSIGNED && (there == 0 || there != slots[v]) {
                    scratch.missing[unit(slots, w as usize)] += 1;
                    outside.push(there);
                }
            }
            if slots[v] != 0 {
                let sent = if outside.is_empty() { 0.0 } else { nodes[v].transfer };
                scratch.load[slots[v] as usize] += nodes[v].accelerator_time + sent;
            }
            outside.sort_unstable();
            outside.dedup();
            for there in outside.into_iter().filter(|&there| there != 0) {
                scratch.load[there as usize] += nodes[v].transfer;
            }
        }
        let chained =
            |slot: usize| slot > 0 && slot < instance.slots() && !(slot - 1).is_multiple_of(instance.subgraphs);
        (1..instance.slots()).filter(|&slot| chained(slot)).for_each(|slot| scratch.missing[n + slot] += 1);
        let units = (0..n).filter(|&v| slots[v] == 0).chain((1..instance.slots()).map(|slot| n + slot));
        scratch.open.clear();
        scratch.open.extend(units.clone().filter(|&u| scratch.missing[u] == 0).map(|u| u as u32));
        let mut done = 0;
        while done < scratch.open.len() {
            let u = scratch.open[done] as usize;
            done += 1;
            let finish = scratch.ready[u] + if u < n { nodes[u].cpu_time } else { scratch.load[u - n] };
            let mut supply = |to: usize| {
                scratch.ready[to] = scratch.ready[to].max(finish);
                scratch.missing[to] -= 1;
                if scratch.missing[to] == 0 {
                    scratch.open.push(to as u32);
                }
            };
            for v in (0..n).filter(|&v| slots[v] != UNASSIGNED && unit(slots, v) == u) {
                scratch.finish[v] = finish;
                for &w in instance.successors(v) {
                    let there = slots[w as usize];
                    if there != UNASSIGNED && (there == 0 || there != slots[v]) {
                        supply(unit(slots, w as usize));
                    }
                }
            }
            if u > n && chained(u + 1 - n) {
                supply(u + 1);
            }
        }
        if done < units.count() {
            return None;
        }
        let mut bound = 0.0f64;
        for &v in instance.dag.topological_order() {
            let v = v as usize;
            if slots[v] == UNASSIGNED {
                let start = instance.dag.predecessors(v).map(|u| scratch.finish[u]).fold(0.0, f64::max);
                let node = &nodes[v];
                let usable = node.supported && instance.accelerators > 0;
                let least = if usable { node.cpu_time.min(node.accelerator_time) } else { node.cpu_time };
                scratch.finish[v] = start + least;
            }
            bound = bound.max(scratch.finish[v]);
        }
        Some(bound * (1.0 - 1e-12))
    }
}
