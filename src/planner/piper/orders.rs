//! Topological orders and the chains of sets along them: their suffixes are admissible sets.
//!
//! `O(n + m)` time for an order, but for random ones, which take `O(n · width)`.

use crate::{
    graph::{Dag, SuccessorSets},
    planner::random::SplitMix,
};

/// Words of bits for chains of sets, and nodes from which one topological order must do.
const MOST_CHAIN_WORDS: usize = 1 << 19;
const MANY_NODES: usize = 4_000;
/// How likely random orders are to go on along a branch, one order each.
const STAY: [f64; 4] = [0.9, 0.7, 0.4, 0.0];

/// Topological orders that differ where the graph has branches; their suffixes are admissible sets.
fn orders(dag: &Dag) -> Vec<Vec<u32>> {
    let depth_first = dag.stack_order();
    let breadth_first = dag.topological_order().to_vec();
    // Later first: every node as late as its successors allow.
    let reversed =
        Dag::new(dag.len(), dag.edges().iter().map(|&(u, v)| (v, u)).collect()).expect("a reversed DAG has no cycle");
    let backwards = |mut order: Vec<u32>| {
        order.reverse();
        order
    };
    vec![
        depth_first,
        breadth_first,
        backwards(reversed.stack_order()),
        backwards(reversed.topological_order().to_vec()),
    ]
}

/// Sets of several topological orders: all of them for networks of usual size, a sample of one order's for huge ones, so
/// that neither memory nor time grows with the square of the network.
pub(super) fn chains(dag: &Dag) -> SuccessorSets {
    let n = dag.len();
    let mut orders = orders(dag);
    if n > MANY_NODES {
        orders.truncate(1);
    }
    let most = MOST_CHAIN_WORDS / n.div_ceil(64).max(1);
    SuccessorSets::from_orders(dag, &orders, (orders.len() * n).div_ceil(most).max(1))
}

/// Sets of a few random orders, others for every seed.
pub(super) fn random_chains(dag: &Dag, seed: u64) -> SuccessorSets {
    let mut random = SplitMix::new(seed);
    let orders: Vec<Vec<u32>> = STAY.iter().map(|&stay| random_order(dag, stay, &mut random)).collect();
    SuccessorSets::from_orders(dag, &orders, 1)
}

/// A random topological order that goes on with a successor of the last node at a certain probability, if it can.
fn random_order(dag: &Dag, stay: f64, random: &mut SplitMix) -> Vec<u32> {
    let mut missing: Vec<usize> = (0..dag.len()).map(|v| dag.in_degree(v)).collect();
    let mut ready: Vec<usize> = (0..dag.len()).filter(|&v| missing[v] == 0).collect();
    let mut order = Vec::with_capacity(dag.len());
    // How many at the end of `ready` the last node has made so.
    let mut fresh = 0;
    while !ready.is_empty() {
        let among = if fresh > 0 && random.unit() < stay { fresh } else { ready.len() };
        let v = ready.swap_remove(ready.len() - 1 - random.below(among));
        order.push(v as u32);
        fresh = 0;
        for w in dag.successors(v) {
            missing[w] -= 1;
            if missing[w] == 0 {
                ready.push(w);
                fresh += 1;
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_orders_are_topological_and_differ_by_seed() {
        let edges = (0..30u32).filter(|v| v % 10 != 9).map(|v| (v, v + 1)).chain([(3, 15), (12, 28)]).collect();
        let dag = Dag::new(30, edges).unwrap();
        let all = |seed: u64| {
            let mut random = SplitMix::new(seed);
            STAY.map(|stay| random_order(&dag, stay, &mut random))
        };
        for order in all(1) {
            let mut place = [0; 30];
            order.iter().enumerate().for_each(|(i, &v)| place[v as usize] = i);
            assert!(dag.edges().iter().all(|&(u, v)| place[u as usize] < place[v as usize]), "{order:?}");
        }
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        assert!(random_chains(&dag, 3).len() > 30);
    }
}
