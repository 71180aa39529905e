//! Simulated annealing over assignments of nodes to slots.
//!
//! A move takes a seed node, a target slot, and nodes that must come along: the seed's colour class, its block, or all
//! that follows (or precedes) it in its slot. The last kind shifts the cut between two slots, and both stay convex.
//! Other moves empty a slot into another, or cut the current running order anew ([`segment`]). Half of the seeds are
//! drawn from the chain of units that determines the latency. Every candidate is scored exactly.
//!
//! The energy is the latency plus a thousandth of all slots' load, so that cheaper cuts off the critical chain also
//! count. A step takes `O(n + m)`. The walk is determined by its seed and its number of steps.

use super::{
    segment::{order_by_key, segment},
    slots::{Instance, Scorer},
};
use plantui_core::{random::SplitMix, search::Search};

/// Weight of the load of all slots, relative to the latency.
const LOAD_WEIGHT: f64 = 1e-3;
/// Steps between two new segmentations of the running order. Without them, bert_l-3 gets another, slightly slower plan.
const RECUT_EVERY: u64 = 4096;
/// Maximum number of nodes and edges scored between two checks for cancellation.
const UNSEEN_WORK: u64 = 200_000;
/// Maximum number of nodes and edges scored in a walk; on large graphs, a walk has fewer steps.
const MOST_WORK: u64 = 4_000_000_000;

/// Parameters of one walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SlotWalk {
    /// Seed.
    pub seed: u64,
    /// Number of candidates.
    pub steps: u64,
    /// Initial temperature, relative to the initial latency.
    pub hot: f64,
    /// Final temperature, relative to the initial latency.
    pub cold: f64,
    /// Latency at which the walk ends.
    pub enough: f64,
}

/// State of a walk.
struct Annealer<'i, 'a> {
    instance: &'i Instance<'a>,
    random: SplitMix,
    scorer: Scorer,
    slots: Vec<u32>,
    /// Changes of the last move: node and former slot.
    changed: Vec<(u32, u32)>,
    pending: Vec<u32>,
    chain: Vec<u32>,
    occupied: Vec<u32>,
}

/// Walks from `slots`, which must be admissible and acyclic; returns the best latency seen and its assignment. `found`
/// is called with every improvement.
pub(crate) fn anneal(
    instance: &Instance<'_>,
    slots: &[u32],
    walk: &SlotWalk,
    search: &Search,
    mut found: impl FnMut(f64, &[u32]),
) -> (f64, Vec<u32>) {
    let mut annealer = Annealer::new(instance, slots, walk.seed);
    let Some((mut energy, mut best)) = annealer.energy() else { return (f64::INFINITY, slots.to_vec()) };
    let mut best_slots = slots.to_vec();
    if instance.dag.is_empty() || instance.accelerators == 0 {
        return (best, best_slots);
    }
    annealer.describe();
    let size = (instance.dag.len() + instance.dag.edges().len()) as u64;
    let look_every = (UNSEEN_WORK / size.max(1)).clamp(1, 64);
    let steps = walk.steps.min((MOST_WORK / size.max(1)).max(1));
    let (hot, cold) = (walk.hot * best, walk.cold * best);
    for step in 0..steps {
        if best <= walk.enough || (step % look_every == 0 && search.cancelled()) {
            break;
        }
        let temperature = hot * (cold / hot).powf(step as f64 / steps as f64);
        annealer.propose(step, search);
        if annealer.changed.is_empty() {
            continue;
        }
        let candidate = annealer.energy();
        let threshold = energy - temperature * annealer.random.unit().max(1e-300).ln();
        match candidate {
            Some((new, latency)) if new <= threshold => {
                energy = new;
                annealer.describe();
                if latency < best {
                    best = latency;
                    best_slots.copy_from_slice(&annealer.slots);
                    found(best, &best_slots);
                }
            }
            _ => annealer.undo(),
        }
    }
    (best, best_slots)
}

impl<'i, 'a> Annealer<'i, 'a> {
    fn new(instance: &'i Instance<'a>, slots: &[u32], seed: u64) -> Self {
        Annealer {
            instance,
            random: SplitMix::new(seed),
            scorer: Scorer::new(instance),
            slots: slots.to_vec(),
            changed: vec![],
            pending: vec![],
            chain: vec![],
            occupied: vec![],
        }
    }

    /// Energy and latency of the current assignment.
    fn energy(&mut self) -> Option<(f64, f64)> {
        let latency = self.scorer.score(self.instance, &self.slots)?;
        Some((latency + LOAD_WEIGHT * self.scorer.load.iter().sum::<f64>(), latency))
    }

    /// After a scoring: stores the nodes of the chain that determines the latency, and the slots in use.
    fn describe(&mut self) {
        let n = self.slots.len();
        self.chain.clear();
        let latest = (0..n as u32).max_by(|&a, &b| {
            let finish = &self.scorer.finish;
            finish[a as usize].total_cmp(&finish[b as usize]).then(b.cmp(&a))
        });
        let mut next = latest;
        while let Some(v) = next {
            let slot = self.slots[v as usize] as usize;
            let unit = if slot == 0 {
                self.chain.push(v);
                v as usize
            } else {
                self.chain.extend(self.scorer.members(slot));
                n + slot
            };
            next = Some(self.scorer.waited_for[unit]).filter(|&u| u != u32::MAX);
        }
        self.occupied.clear();
        self.occupied
            .extend((1..self.instance.slots() as u32).filter(|&s| !self.scorer.members(s as usize).is_empty()));
    }

    fn put(&mut self, v: u32, slot: u32) {
        let former = std::mem::replace(&mut self.slots[v as usize], slot);
        self.changed.push((v, former));
    }

    fn undo(&mut self) {
        while let Some((v, former)) = self.changed.pop() {
            self.slots[v as usize] = former;
        }
    }

    /// Changes the assignment to a candidate and stores the changes.
    fn propose(&mut self, step: u64, search: &Search) {
        self.changed.clear();
        if step % RECUT_EVERY == RECUT_EVERY - 1 {
            return self.recut(search);
        }
        let kind = self.random.below(100);
        if kind < 3 && self.occupied.len() > 1 {
            return self.merge();
        }
        let seed = if kind.is_multiple_of(2) && !self.chain.is_empty() {
            self.chain[self.random.below(self.chain.len())]
        } else {
            self.random.below(self.slots.len()) as u32
        };
        let seed = self.towards_a_cut(seed);
        let here = self.slots[seed as usize];
        let target = self.target(seed);
        if target == here {
            return;
        }
        match self.random.below(8) {
            0 | 1 => self.relocate(seed, target, Extent::Class),
            2 => self.relocate(seed, target, Extent::Block),
            3 | 4 => self.relocate(seed, target, Extent::Following),
            5 | 6 => self.relocate(seed, target, Extent::Preceding),
            _ => self.exchange(here, target),
        }
    }

    /// The node itself or, half of the time, a node that it reaches and that has a neighbour in another slot.
    fn towards_a_cut(&mut self, seed: u32) -> u32 {
        if self.random.below(2) == 0 {
            return seed;
        }
        let forward = self.random.below(2) == 0;
        let mut v = seed;
        for _ in 0..32 {
            let Some(next) = self.neighbour(v, forward) else { break };
            if self.slots[next as usize] != self.slots[v as usize] {
                break;
            }
            v = next;
        }
        v
    }

    /// Random successor or predecessor.
    fn neighbour(&mut self, v: u32, forward: bool) -> Option<u32> {
        if forward {
            let successors = self.instance.successors(v as usize);
            (!successors.is_empty()).then(|| successors[self.random.below(successors.len())])
        } else {
            let edges = self.instance.dag.in_edges(v as usize);
            let edge = (!edges.is_empty()).then(|| edges[self.random.below(edges.len())])?;
            Some(self.instance.dag.edges()[edge as usize].0)
        }
    }

    /// Target slot of a node: mostly that of a neighbour, else CPU, an empty slot or any.
    fn target(&mut self, v: u32) -> u32 {
        let slots = self.instance.slots();
        match self.random.below(16) {
            0 | 1 => 0,
            2 | 3 => {
                let begin = self.random.below(slots - 1) as u32;
                let turn = |i: u32| (begin + i) % (slots as u32 - 1) + 1;
                (0..slots as u32 - 1).map(turn).find(|s| self.scorer.members(*s as usize).is_empty()).unwrap_or(0)
            }
            4 => self.random.below(slots) as u32,
            _ => {
                let here = self.slots[v as usize];
                let forward = self.random.below(2) == 0;
                let mut at = v;
                for _ in 0..32 {
                    let Some(next) = self.neighbour(at, forward) else { break };
                    at = next;
                    if self.slots[at as usize] != here {
                        return self.slots[at as usize];
                    }
                }
                here
            }
        }
    }

    /// Moves a node and the nodes that must come along.
    fn relocate(&mut self, seed: u32, target: u32, extent: Extent) {
        let instance = self.instance;
        let here = self.slots[seed as usize];
        let owner = instance.owner(target);
        self.pending.clear();
        self.pending.push(seed);
        if extent == Extent::Block {
            self.pending.extend(&instance.blocks.blocks[instance.blocks.block_of[seed as usize] as usize]);
        }
        while let Some(v) = self.pending.pop() {
            let slot = self.slots[v as usize];
            if slot == target {
                continue;
            }
            self.put(v, target);
            // Members of the colour class on another device come along.
            let class = &instance.blocks.classes[instance.blocks.class_of[v as usize] as usize];
            self.pending.extend(class.iter().filter(|&&w| instance.owner(self.slots[w as usize]) != owner));
            if slot != here || here == 0 {
                continue;
            }
            match extent {
                Extent::Following => {
                    let stays = |w: &&u32| self.slots[**w as usize] == here;
                    self.pending.extend(instance.successors(v as usize).iter().filter(stays));
                }
                Extent::Preceding => {
                    let stays = |u: &usize| self.slots[*u] == here;
                    self.pending.extend(instance.dag.predecessors(v as usize).filter(stays).map(|u| u as u32));
                }
                Extent::Class | Extent::Block => {}
            }
        }
    }

    /// Moves all nodes of one slot to another.
    fn merge(&mut self) {
        let from = self.occupied[self.random.below(self.occupied.len())];
        let to = self.occupied[self.random.below(self.occupied.len())];
        if from != to {
            for v in 0..self.slots.len() as u32 {
                if self.slots[v as usize] == from {
                    self.put(v, to);
                }
            }
        }
    }

    /// Exchanges two slots. This matters if one waits for the other, or if they share memory.
    fn exchange(&mut self, one: u32, other: u32) {
        if self.instance.subgraphs == 1 || one == 0 || other == 0 {
            return;
        }
        for v in 0..self.slots.len() as u32 {
            if self.slots[v as usize] == one {
                self.put(v, other);
            } else if self.slots[v as usize] == other {
                self.put(v, one);
            }
        }
    }

    /// Replaces the assignment by the best segmentation of its running order, with some noise.
    fn recut(&mut self, search: &Search) {
        let instance = self.instance;
        let noise = self.random.unit() * 0.1;
        let span = self.scorer.finish.iter().copied().fold(0.0, f64::max);
        let mut key = Vec::with_capacity(instance.blocks.blocks.len());
        for block in &instance.blocks.blocks {
            let finish = block.iter().map(|&v| self.scorer.finish[v as usize]).fold(0.0, f64::max);
            key.push(finish + noise * span * self.random.unit());
        }
        let Some((slots, _)) = segment(instance, &order_by_key(instance, &key), search) else { return };
        for (v, &slot) in slots.iter().enumerate() {
            if self.slots[v] != slot {
                self.put(v as u32, slot);
            }
        }
    }
}

/// Nodes that come along with a node that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Its colour class.
    Class,
    /// Its block.
    Block,
    /// All that follows it in its slot.
    Following,
    /// All that precedes it in its slot.
    Preceding,
}
