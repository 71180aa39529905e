//! A split in the latency integer program: subgraphs in the slots of accelerators.
//!
//! Slot 0 is all CPUs together. Accelerator `a` (from 0) has the slots `a q + 1 ..= a q + q`, which run in this order.
//! A slot starts when the previous slot of its accelerator and every node with an edge into it have finished. It then
//! receives, computes and sends, and all its nodes finish together. A CPU node starts with its last input; the number
//! of CPUs is not limited. An assignment is admissible if the nodes of every accelerator fit its memory together and
//! can run there. All nodes of a colour class must be on CPUs, or all on one accelerator (in any of its slots).
//!
//! The program's big-M constraints require convex slots. Here, convexity follows from a stronger rule: slots and CPU
//! nodes must have an order, without which nothing can run. The only difference: the program would accept a cycle of
//! parts that take no time.
//!
//! Scoring is `O(n + m + slots)` without allocation: it is the inner loop of the search.

use super::blocks::Blocks;
use plantui_core::{graph::Dag, workload::placement::PlacementProfile};

/// Problem in flat arrays by node index.
#[derive(Debug, Clone)]
pub struct Instance<'a> {
    /// Graph.
    pub dag: &'a Dag,
    /// Costs.
    pub profile: &'a PlacementProfile,
    /// Number of accelerators.
    pub accelerators: usize,
    /// Slots per accelerator, at least 1.
    pub subgraphs: usize,
    /// Memory of an accelerator, bytes.
    pub memory_bytes: f64,
    /// Colour classes and blocks.
    pub blocks: Blocks,
    successors: Vec<u32>,
    successor_start: Vec<u32>,
}

/// Run of a slot.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotRun {
    /// Accelerator of the slot.
    pub accelerator: usize,
    /// Its nodes, ascending.
    pub nodes: Vec<u32>,
    /// Time at which it starts to receive.
    pub start: f64,
    /// Time at which its nodes count as finished.
    pub finish: f64,
}

/// A scored assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotSchedule {
    /// Finish of the last slot or CPU node.
    pub latency: f64,
    /// Slots that hold nodes, by slot number.
    pub slots: Vec<SlotRun>,
    /// Finish of each node, by node index.
    pub finish: Vec<f64>,
}

/// Arrays for scoring many assignments of one instance, and the results of the last scoring.
#[derive(Debug, Clone)]
pub(crate) struct Scorer {
    /// Finish of each node.
    pub finish: Vec<f64>,
    /// Start of each slot.
    pub start: Vec<f64>,
    /// Busy time of each slot, with transfers.
    pub load: Vec<f64>,
    /// By CPU node, and by slot at `n + slot`: the last input that it waited for; `u32::MAX` if there is none.
    pub waited_for: Vec<u32>,
    ready: Vec<f64>,
    missing: Vec<u32>,
    open: Vec<u32>,
    stamp: Vec<u32>,
    members: Vec<u32>,
    member_start: Vec<u32>,
    bytes: Vec<f64>,
}

impl<'a> Instance<'a> {
    /// Prepares an instance with `accelerators` of `subgraphs` slots each.
    ///
    /// # Panics
    /// If the profile has fewer nodes than the graph, or `subgraphs` is 0.
    pub fn new(
        dag: &'a Dag,
        profile: &'a PlacementProfile,
        accelerators: usize,
        subgraphs: usize,
        memory_bytes: f64,
    ) -> Self {
        assert!(subgraphs > 0, "an accelerator runs at least one subgraph");
        let mut successors = vec![];
        let mut successor_start = vec![0];
        for v in 0..dag.len() {
            let first = successors.len();
            successors.extend(dag.successors(v).map(|w| w as u32));
            // Parallel edges have no effect.
            successors[first..].sort_unstable();
            let mut kept = first;
            for i in first..successors.len() {
                if i == first || successors[i] != successors[i - 1] {
                    successors[kept] = successors[i];
                    kept += 1;
                }
            }
            successors.truncate(kept);
            successor_start.push(kept as u32);
        }
        let blocks = Blocks::new(dag, profile);
        Instance { dag, profile, accelerators, subgraphs, memory_bytes, blocks, successors, successor_start }
    }

    /// Number of slots, with slot 0 of the CPUs.
    pub fn slots(&self) -> usize {
        self.accelerators * self.subgraphs + 1
    }

    /// Accelerator of a slot; `None` for slot 0.
    pub fn owner(&self, slot: u32) -> Option<usize> {
        (slot as usize).checked_sub(1).map(|s| s / self.subgraphs)
    }

    /// Distinct successors of `v`, ascending.
    pub fn successors(&self, v: usize) -> &[u32] {
        &self.successors[self.successor_start[v] as usize..self.successor_start[v + 1] as usize]
    }

    /// Slots of a split that only assigns accelerators: the first slot of each. Accelerators beyond the instance's and
    /// unknown nodes are ignored.
    pub fn first_slots(&self, split: &[Vec<u32>]) -> Vec<u32> {
        let mut slots = vec![0; self.dag.len()];
        for (accelerator, nodes) in split.iter().enumerate().take(self.accelerators) {
            for &v in nodes {
                if let Some(slot) = slots.get_mut(v as usize) {
                    *slot = (accelerator * self.subgraphs) as u32 + 1;
                }
            }
        }
        slots
    }

    /// Node indices by accelerator.
    pub fn split(&self, slots: &[u32]) -> Vec<Vec<u32>> {
        let mut split = vec![vec![]; self.accelerators];
        for (v, &slot) in slots.iter().enumerate() {
            if let Some(accelerator) = self.owner(slot) {
                split[accelerator].push(v as u32);
            }
        }
        split
    }

    /// Scores an assignment of a slot to every node; `None` if it is not admissible.
    pub fn schedule(&self, slots: &[u32]) -> Option<SlotSchedule> {
        let mut scorer = Scorer::new(self);
        let latency = scorer.score(self, slots)?;
        let mut runs: Vec<SlotRun> = vec![];
        for slot in 1..self.slots() {
            let nodes = scorer.members(slot).to_vec();
            let start = scorer.start[slot];
            let finish = start + scorer.load[slot];
            if let (Some(accelerator), false) = (self.owner(slot as u32), nodes.is_empty()) {
                runs.push(SlotRun { accelerator, nodes, start, finish });
            }
        }
        Some(SlotSchedule { latency, slots: runs, finish: scorer.finish })
    }
}

const NONE: u32 = u32::MAX;

impl Scorer {
    /// Allocates the arrays for an instance.
    pub(crate) fn new(instance: &Instance<'_>) -> Self {
        let (n, slots) = (instance.dag.len(), instance.slots());
        Scorer {
            finish: vec![0.0; n],
            start: vec![0.0; slots],
            load: vec![0.0; slots],
            waited_for: vec![NONE; n + slots],
            ready: vec![0.0; n + slots],
            missing: vec![0; n + slots],
            open: Vec::with_capacity(n + slots),
            stamp: vec![NONE; slots],
            members: vec![0; n],
            member_start: vec![0; slots + 1],
            bytes: vec![0.0; instance.accelerators],
        }
    }

    /// True if memory, capability and colour classes are kept.
    pub(crate) fn admissible(&mut self, instance: &Instance<'_>, slots: &[u32]) -> bool {
        self.bytes.fill(0.0);
        for (node, &slot) in instance.profile.nodes.iter().zip(slots) {
            if let Some(accelerator) = instance.owner(slot) {
                self.bytes[accelerator] += node.size_bytes;
                if !node.supported {
                    return false;
                }
            }
        }
        self.bytes.iter().all(|&bytes| bytes <= instance.memory_bytes)
            && instance.blocks.classes.iter().all(|class| {
                let owner = instance.owner(slots[class[0] as usize]);
                class.iter().all(|&v| instance.owner(slots[v as usize]) == owner)
            })
    }

    /// Latency of an assignment; `None` if it is not admissible or its parts wait for one another in a cycle.
    pub(crate) fn score(&mut self, instance: &Instance<'_>, slots: &[u32]) -> Option<f64> {
        if !self.admissible(instance, slots) {
            return None;
        }
        self.latency(instance, slots)
    }

    /// Computes loads of all slots, numbers of missing inputs of all units, and members by slot. Units are CPU nodes
    /// `v < n` and slots `n + slot`.
    fn prepare(&mut self, instance: &Instance<'_>, slots: &[u32]) {
        let (n, nodes) = (slots.len(), &instance.profile.nodes);
        self.load.fill(0.0);
        self.missing.fill(0);
        self.ready.fill(0.0);
        self.waited_for.fill(NONE);
        self.stamp.fill(NONE);
        self.member_start.fill(0);
        for v in 0..n {
            let (here, transfer) = (slots[v], nodes[v].transfer);
            let mut leaves = false;
            for &w in instance.successors(v) {
                let there = slots[w as usize];
                if there == 0 {
                    self.missing[w as usize] += 1;
                    leaves = true;
                } else if there != here {
                    self.missing[n + there as usize] += 1;
                    leaves = true;
                    if self.stamp[there as usize] != v as u32 {
                        self.stamp[there as usize] = v as u32;
                        self.load[there as usize] += transfer;
                    }
                }
            }
            if here != 0 {
                self.load[here as usize] += nodes[v].accelerator_time + if leaves { transfer } else { 0.0 };
            }
            self.member_start[here as usize + 1] += 1;
        }
        for slot in 0..self.load.len() {
            self.member_start[slot + 1] += self.member_start[slot];
            if slot > 0 && !(slot - 1).is_multiple_of(instance.subgraphs) {
                self.missing[n + slot] += 1;
            }
        }
        // Filled from the back: afterwards, an entry is the start of its slot and the next one its end.
        for v in (0..n).rev() {
            let end = &mut self.member_start[slots[v] as usize + 1];
            *end -= 1;
            self.members[*end as usize] = v as u32;
        }
    }

    /// Supplies one input of `unit`.
    #[inline]
    fn supply(&mut self, unit: usize, by: u32, at: f64) {
        if at > self.ready[unit] || self.waited_for[unit] == NONE {
            self.ready[unit] = at;
            self.waited_for[unit] = by;
        }
        self.missing[unit] -= 1;
        if self.missing[unit] == 0 {
            self.open.push(unit as u32);
        }
    }

    fn supply_successors(&mut self, instance: &Instance<'_>, slots: &[u32], v: usize) {
        let (n, here, at) = (slots.len(), slots[v], self.finish[v]);
        for &w in instance.successors(v) {
            let there = slots[w as usize];
            if there == 0 {
                self.supply(w as usize, v as u32, at);
            } else if there != here {
                self.supply(n + there as usize, v as u32, at);
            }
        }
    }

    /// Latency of an admissible assignment; `None` if its parts wait in a cycle.
    pub(crate) fn latency(&mut self, instance: &Instance<'_>, slots: &[u32]) -> Option<f64> {
        let n = slots.len();
        self.prepare(instance, slots);
        self.open.clear();
        self.open.extend((0..n as u32).filter(|&v| slots[v as usize] == 0 && self.missing[v as usize] == 0));
        let free = (1..self.load.len()).filter(|&slot| self.missing[n + slot] == 0);
        self.open.extend(free.map(|slot| (n + slot) as u32));
        let (mut latency, mut done) = (0.0f64, 0);
        while let Some(unit) = self.open.pop() {
            let unit = unit as usize;
            done += 1;
            let start = self.ready[unit];
            if unit < n {
                self.finish[unit] = start + instance.profile.nodes[unit].cpu_time;
                latency = latency.max(self.finish[unit]);
                self.supply_successors(instance, slots, unit);
                continue;
            }
            let slot = unit - n;
            let finish = start + self.load[slot];
            self.start[slot] = start;
            latency = latency.max(finish);
            let (from, to) = (self.member_start[slot + 1], self.member_end(slot));
            for i in from..to {
                let v = self.members[i as usize] as usize;
                self.finish[v] = finish;
                self.supply_successors(instance, slots, v);
            }
            if slot + 1 < self.load.len() && !slot.is_multiple_of(instance.subgraphs) {
                self.supply(
                    unit + 1,
                    if from < to { self.members[from as usize] } else { self.waited_for[unit] },
                    finish,
                );
            }
        }
        let on_cpus = (self.member_end(0) - self.member_start[1]) as usize;
        (done == on_cpus + self.load.len() - 1).then_some(latency)
    }

    /// End of a slot's members in `members`.
    fn member_end(&self, slot: usize) -> u32 {
        self.member_start.get(slot + 2).copied().unwrap_or(self.members.len() as u32)
    }

    /// Members of a slot, after a scoring.
    pub(crate) fn members(&self, slot: usize) -> &[u32] {
        &self.members[self.member_start[slot + 1] as usize..self.member_end(slot) as usize]
    }
}
