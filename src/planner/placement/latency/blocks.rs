//! Colour classes, and the blocks of classes that can only move together.
//!
//! Nodes of one colour class share a device. Classes that reach one another in a circle (a path leaves the first for the
//! second, another comes back) can be apart only where CPUs break the circle, so the heuristics keep them together: a
//! *block* is a strongly connected component of the graph of classes. Linear time (Tarjan 1972).

use std::collections::BTreeMap;

use crate::{graph::Dag, workload::placement::PlacementProfile};

/// The classes and blocks of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Class of each node; classes are numbered by their first node. A node without a colour is a class of its own.
    pub class_of: Vec<u32>,
    /// Nodes of each class, ascending.
    pub classes: Vec<Vec<u32>>,
    /// Block of each node; blocks are numbered by their first node.
    pub block_of: Vec<u32>,
    /// Nodes of each block, ascending.
    pub blocks: Vec<Vec<u32>>,
    /// Edges between different blocks, in the order and multiplicity of the graph's edges.
    pub dag: Dag,
}

/// Numbers groups by their first member, given any labels.
fn number_by_first(labels: impl Iterator<Item = i64>) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut numbers: BTreeMap<i64, u32> = BTreeMap::new();
    let mut groups: Vec<Vec<u32>> = vec![];
    let mut of = vec![];
    for (v, label) in labels.enumerate() {
        let group = *numbers.entry(label).or_insert_with(|| {
            groups.push(vec![]);
            groups.len() as u32 - 1
        });
        groups[group as usize].push(v as u32);
        of.push(group);
    }
    (of, groups)
}

/// Strongly connected component of each vertex, given successor lists; the numbers mean nothing but equality.
fn components(successors: &[Vec<u32>]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let n = successors.len();
    let (mut number, mut low, mut component) = (vec![UNSEEN; n], vec![0u32; n], vec![UNSEEN; n]);
    let (mut open, mut calls) = (vec![], vec![]);
    let (mut counter, mut found) = (0, 0);
    for root in 0..n as u32 {
        if number[root as usize] != UNSEEN {
            continue;
        }
        calls.push((root, 0));
        while let Some((v, next)) = calls.pop() {
            let at = v as usize;
            if next == 0 {
                (number[at], low[at]) = (counter, counter);
                counter += 1;
                open.push(v);
            } else {
                let child = successors[at][next - 1] as usize;
                low[at] = low[at].min(low[child]);
            }
            let mut entered = false;
            for (i, &w) in successors[at].iter().enumerate().skip(next) {
                if number[w as usize] == UNSEEN {
                    calls.extend([(v, i + 1), (w, 0)]);
                    entered = true;
                    break;
                }
                if component[w as usize] == UNSEEN {
                    low[at] = low[at].min(number[w as usize]);
                }
            }
            if !entered && low[at] == number[at] {
                while let Some(w) = open.pop() {
                    component[w as usize] = found;
                    if w == v {
                        break;
                    }
                }
                found += 1;
            }
        }
    }
    component
}

impl Blocks {
    /// Finds classes and blocks. Backward nodes count like all others.
    ///
    /// # Panics
    /// If the profile has fewer nodes than the graph.
    pub fn new(dag: &Dag, profile: &PlacementProfile) -> Self {
        let coloured: BTreeMap<i64, i64> = profile.nodes.iter().filter_map(|node| node.colour_class).zip(0..).collect();
        let fresh = profile.nodes.len() as i64;
        let label = |(v, colour): (usize, Option<i64>)| colour.map_or(fresh + v as i64, |colour| coloured[&colour]);
        let (class_of, classes) = number_by_first((0..dag.len()).map(|v| label((v, profile.nodes[v].colour_class))));
        let mut successors = vec![vec![]; classes.len()];
        for &(u, v) in dag.edges() {
            let (a, b) = (class_of[u as usize], class_of[v as usize]);
            if a != b {
                successors[a as usize].push(b);
            }
        }
        let component = components(&successors);
        let (block_of, blocks) = number_by_first(class_of.iter().map(|&class| i64::from(component[class as usize])));
        let crossing = dag.edges().iter().map(|&(u, v)| (block_of[u as usize], block_of[v as usize]));
        let edges = crossing.filter(|(a, b)| a != b).collect();
        let dag = Dag::new(blocks.len(), edges).expect("components leave no cycle");
        Blocks { class_of, classes, block_of, blocks, dag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::placement::PlacementNode;

    fn profile(colours: &[Option<i64>]) -> PlacementProfile {
        let node = |&colour_class: &Option<i64>| PlacementNode {
            cpu_time: 1.0,
            accelerator_time: 1.0,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class,
            layer: None,
            transfer: 1.0,
        };
        PlacementProfile { nodes: colours.iter().map(node).collect() }
    }

    #[test]
    fn classes_in_a_circle_are_one_block() {
        // 0 -> 1 -> 2 -> 3 -> 4 with colours a b a - -: a and b reach one another.
        let dag = Dag::new(5, vec![(0, 1), (1, 2), (2, 3), (3, 4)]).unwrap();
        let blocks = Blocks::new(&dag, &profile(&[Some(7), Some(3), Some(7), None, None]));
        assert_eq!(blocks.class_of, [0, 1, 0, 2, 3]);
        assert_eq!(blocks.blocks, [vec![0, 1, 2], vec![3], vec![4]]);
        assert_eq!(blocks.dag.edges(), [(0, 1), (1, 2)]);
    }

    #[test]
    fn classes_that_follow_one_another_stay_apart() {
        let dag = Dag::new(4, vec![(0, 2), (1, 3)]).unwrap();
        let blocks = Blocks::new(&dag, &profile(&[Some(1), Some(1), Some(2), Some(2)]));
        assert_eq!(blocks.blocks, [vec![0, 1], vec![2, 3]]);
    }
}
