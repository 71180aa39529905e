//! Best segmentation of one order of the blocks into accelerator segments and CPU blocks that run in sequence.
//!
//! For a fixed topological order, `T[f][j]` is the least total time of the first `j` blocks with `f` accelerators:
//!
//! `T[f][j] = min(T[f][j-1] + cpu(j), min over i of T[f-1][i] + load(i..j))`
//!
//! where `load` is the receive, compute and send time of the segment. Loads are updated as `j` grows. Data still to be
//! sent is an exact sum, so that a huge cost leaves no error after its last reader. One order takes `O(m l + n l k)`
//! for segments of at most `l` blocks (memory limits `l`). The total in sequence is at least the latency, and equal to
//! it for a chain; graphs with parallel branches need [`anneal`](super::anneal).
//!
//! Thousands of blocks are cut only between runs of a fixed length, so that one order takes at most a second or so.

use super::slots::Instance;
use plantui_core::{search::Search, workload::states::ExactSum};

/// Maximum number of nodes and edges visited for one order.
const MOST_STEPS: usize = 200_000_000;
/// Maximum number of pairs of cuts, times accelerators, compared for one order.
const MOST_PAIRS: usize = 1_000_000_000;

/// Topological order of the blocks by smallest key first; ties by block number.
pub(crate) fn order_by_key(instance: &Instance<'_>, key: &[f64]) -> Vec<u32> {
    use std::{cmp::Reverse, collections::BinaryHeap};
    // Non-negative floats have the order of their bits.
    let entry = |block: usize| Reverse((key[block].max(0.0).to_bits(), block as u32));
    let dag = &instance.blocks.dag;
    let mut missing: Vec<usize> = (0..dag.len()).map(|b| dag.in_degree(b)).collect();
    let mut heap: BinaryHeap<_> = (0..dag.len()).filter(|&b| missing[b] == 0).map(entry).collect();
    let mut order = Vec::with_capacity(dag.len());
    while let Some(Reverse((_, block))) = heap.pop() {
        order.push(block);
        for next in dag.successors(block as usize) {
            missing[next] -= 1;
            if missing[next] == 0 {
                heap.push(entry(next));
            }
        }
    }
    order
}

/// Depth-first topological order of the blocks: among those that become ready together, the one with the smallest key
/// is followed first.
pub(crate) fn depth_first_order(instance: &Instance<'_>, key: &[f64]) -> Vec<u32> {
    let dag = &instance.blocks.dag;
    let mut missing: Vec<usize> = (0..dag.len()).map(|b| dag.in_degree(b)).collect();
    let descending = |a: &u32, b: &u32| key[*b as usize].total_cmp(&key[*a as usize]).then(b.cmp(a));
    let mut stack: Vec<u32> = (0..dag.len() as u32).filter(|&b| missing[b as usize] == 0).collect();
    stack.sort_unstable_by(descending);
    let mut order = Vec::with_capacity(dag.len());
    while let Some(block) = stack.pop() {
        order.push(block);
        let first = stack.len();
        for next in dag.successors(block as usize) {
            missing[next] -= 1;
            if missing[next] == 0 {
                stack.push(next as u32);
            }
        }
        stack[first..].sort_unstable_by(descending);
    }
    order
}

/// Number of blocks between two possible cuts of an order, and the largest useful number of accelerators.
fn stride(instance: &Instance<'_>, length: usize) -> (usize, usize) {
    let size = instance.dag.len() + instance.dag.edges().len();
    let (mut stride, mut cuts) = (1, length);
    loop {
        let most = instance.accelerators.min(cuts);
        if cuts <= 64 || (cuts * size <= MOST_STEPS && cuts * cuts * most <= MOST_PAIRS) {
            return (stride, most);
        }
        stride += 1 + stride / 4;
        cuts = length.div_ceil(stride);
    }
}

/// Slots of the best segmentation of `order` (every block once, topological), and its total time. Each segment is in
/// the first slot of its own accelerator. `None` if the search was cancelled.
// One long function: the recurrence and the tables that only it reads.
pub(crate) fn segment(instance: &Instance<'_>, order: &[u32], search: &Search) -> Option<(Vec<u32>, f64)> {
    let (blocks, nodes) = (&instance.blocks, &instance.profile.nodes);
    let (n, length) = (instance.dag.len(), order.len());
    let (stride, most) = stride(instance, length);
    let cuts = length.div_ceil(stride);
    let run = |cut: usize| cut * stride..((cut + 1) * stride).min(length);
    let mut place = vec![0u32; length];
    order.iter().enumerate().for_each(|(i, &b)| place[b as usize] = i as u32);
    let of = |v: u32| place[blocks.block_of[v as usize] as usize];
    // Last position at which an output is needed; and by position, the nodes whose outputs are needed last there.
    let last: Vec<u32> =
        (0..n).map(|v| instance.successors(v).iter().map(|&w| of(w)).max().unwrap_or(0).max(of(v as u32))).collect();
    let mut ends_at: Vec<Vec<u32>> = vec![vec![]; length];
    for v in 0..n as u32 {
        if last[v as usize] > of(v) {
            ends_at[last[v as usize] as usize].push(v);
        }
    }
    let cpu_of = |b: u32| -> f64 { blocks.blocks[b as usize].iter().map(|&v| nodes[v as usize].cpu_time).sum() };
    let cpu: Vec<f64> = (0..cuts).map(|cut| order[run(cut)].iter().map(|&b| cpu_of(b)).sum()).collect();
    // Total and origin of the best prefix, by (runs of blocks, accelerators used). An origin one run earlier with the
    // same number of accelerators is on CPUs.
    let width = most + 1;
    let mut total = vec![f64::INFINITY; (cuts + 1) * width];
    let mut origin: Vec<(u32, bool)> = vec![(0, false); (cuts + 1) * width];
    total[0] = 0.0;
    let mut heard = vec![u32::MAX; n];
    let mut unsent = ExactSum::default();
    for (i, on_cpus) in cpu.iter().enumerate() {
        if search.cancelled() {
            return None;
        }
        for used in 0..width {
            let (from, to) = (i * width + used, (i + 1) * width + used);
            if total[from] + on_cpus < total[to] {
                total[to] = total[from] + on_cpus;
                origin[to] = (i as u32, false);
            }
        }
        // All segments that start with run i.
        let begin = i * stride;
        let (mut bytes, mut busy) = (0.0, 0.0);
        unsent.clear();
        'segments: for end in i..cuts {
            for j in run(end) {
                let members = &blocks.blocks[order[j] as usize];
                bytes += members.iter().map(|&v| nodes[v as usize].size_bytes).sum::<f64>();
                if bytes > instance.memory_bytes || members.iter().any(|&v| !nodes[v as usize].supported) {
                    break 'segments;
                }
                for &v in members {
                    busy += nodes[v as usize].accelerator_time;
                    if last[v as usize] as usize > j {
                        unsent.add(nodes[v as usize].transfer);
                    }
                    for u in instance.dag.predecessors(v as usize) {
                        if (of(u as u32) as usize) < begin && heard[u] != i as u32 {
                            heard[u] = i as u32;
                            busy += nodes[u].transfer;
                        }
                    }
                }
                for &v in &ends_at[j] {
                    if of(v) as usize >= begin {
                        unsent.add(-nodes[v as usize].transfer);
                    }
                }
            }
            let load = busy + unsent.value();
            for used in 0..most {
                let (from, to) = (i * width + used, (end + 1) * width + used + 1);
                if total[from] + load < total[to] {
                    total[to] = total[from] + load;
                    origin[to] = (i as u32, true);
                }
            }
        }
    }
    let best = (0..width).min_by(|&a, &b| total[cuts * width + a].total_cmp(&total[cuts * width + b])).unwrap_or(0);
    let mut slots = vec![0; n];
    let (mut end, mut used) = (cuts, best);
    while end > 0 {
        let (begin, accelerated) = origin[end * width + used];
        if accelerated {
            used -= 1;
            let slot = (used * instance.subgraphs) as u32 + 1;
            for &b in &order[begin as usize * stride..(end * stride).min(length)] {
                blocks.blocks[b as usize].iter().for_each(|&v| slots[v as usize] = slot);
            }
        }
        end = begin as usize;
    }
    Some((slots, total[cuts * width + best]))
}
