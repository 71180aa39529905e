//! Colour classes, and blocks of classes that must move together.
//!
//! Nodes of one colour class share a device. Classes on a cycle (paths lead from one to the other and back) can be
//! separate only if CPUs break the cycle, so the heuristics keep them together. A *block* is a strongly connected
//! component of the graph of classes. Linear time.

use crate::placement::classes::Partition;
use plantui_core::{
    graph::{Dag, strong_components},
    workload::placement::PlacementProfile,
};

/// Classes and blocks of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// Class of each node; classes are numbered by their first node. A node without a colour is its own class.
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

/// Members of every group, ascending.
fn groups(count: usize, group_of: &[u32]) -> Vec<Vec<u32>> {
    let mut groups = vec![vec![]; count];
    for (v, &group) in group_of.iter().enumerate() {
        groups[group as usize].push(v as u32);
    }
    groups
}

impl Blocks {
    /// Computes classes and blocks. Backward nodes count like all others.
    ///
    /// # Panics
    /// If the profile has fewer nodes than the graph.
    pub fn new(dag: &Dag, profile: &PlacementProfile) -> Self {
        let colours = Partition::by_colour(profile);
        let class_of: Vec<u32> = (0..dag.len()).map(|v| colours.class(v) as u32).collect();
        let classes = groups(colours.len(), &class_of);
        let between: Vec<(u32, u32)> =
            dag.edges().iter().map(|&(u, v)| (class_of[u as usize], class_of[v as usize])).collect();
        let component = strong_components(classes.len(), between.iter());
        // Components have no useful order, so they are numbered by first node.
        let mut number = vec![u32::MAX; classes.len()];
        let mut found = 0;
        for &class in &class_of {
            let number = &mut number[component[class as usize] as usize];
            if *number == u32::MAX {
                *number = found;
                found += 1;
            }
        }
        let block_of: Vec<u32> = class_of.iter().map(|&class| number[component[class as usize] as usize]).collect();
        let blocks = groups(found as usize, &block_of);
        let crossing = dag.edges().iter().map(|&(u, v)| (block_of[u as usize], block_of[v as usize]));
        let edges = crossing.filter(|(a, b)| a != b).collect();
        let dag = Dag::new(blocks.len(), edges).expect("components leave no cycle");
        Blocks { class_of, classes, block_of, blocks, dag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::placement::PlacementNode;

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
        colours.iter().map(node).collect::<Vec<_>>().into()
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
