//! The edges across the border of each set: found once, read by all that add up what edges cost.
//!
//! Where the sets with a node less are known, a set's edges are those of one of them but for the node's own: `O(edges across
//! all borders)` time, as memory; else `O(sets · members · degree)`.

use crate::graph::{Dag, SuccessorSets};

/// An edge across the border of a set, from outside into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Crossing {
    pub(super) edge: u32,
    pub(super) head: u32,
}

/// Edges into sets, in compressed rows.
#[derive(Debug)]
pub(super) struct Crossings {
    start: Vec<usize>,
    edges: Vec<Crossing>,
}

impl Crossings {
    pub(super) fn new(dag: &Dag, sets: &SuccessorSets) -> Self {
        let mut all = Crossings { start: vec![0], edges: vec![] };
        for set in 0..sets.len() {
            let first = all.edges.len();
            match sets.below(set).and_then(<[u32]>::first) {
                Some(&below) => all.grow(dag, sets, set, below as usize),
                None => sets.members(set).for_each(|head| all.enter(dag, sets, set, head)),
            }
            // By edge: sums then come out the same whatever the order of the nodes.
            all.edges[first..].sort_unstable_by_key(|crossing| crossing.edge);
            all.start.push(all.edges.len());
        }
        all
    }

    /// Adds the edges into `set` from outside to one of its nodes.
    fn enter(&mut self, dag: &Dag, sets: &SuccessorSets, set: usize, head: usize) {
        for &edge in dag.in_edges(head) {
            if !sets.contains(set, dag.edges()[edge as usize].0 as usize) {
                self.edges.push(Crossing { edge, head: head as u32 });
            }
        }
    }

    /// Adds the edges into a set that has one node more than another.
    fn grow(&mut self, dag: &Dag, sets: &SuccessorSets, set: usize, below: usize) {
        let more = sets.beyond(set, below).next().expect("it has a node more");
        for i in self.start[below]..self.start[below + 1] {
            let crossing = self.edges[i];
            if dag.edges()[crossing.edge as usize].0 as usize != more {
                self.edges.push(crossing);
            }
        }
        self.enter(dag, sets, set, more);
    }

    /// The edges from outside a set into it, by index.
    #[inline]
    pub(super) fn of(&self, set: usize) -> &[Crossing] {
        &self.edges[self.start[set]..self.start[set + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Enumeration;

    #[test]
    fn edges_into_every_set_of_a_diamond_with_a_bridge() {
        let dag = Dag::new(4, vec![(0, 2), (0, 1), (1, 3), (2, 3), (0, 3)]).unwrap();
        let Enumeration::Complete(complete) = SuccessorSets::enumerate(&dag, 100, &|| false) else { panic!("few") };
        let some = SuccessorSets::from_orders(&dag, &[vec![0, 1, 2, 3], vec![0, 2, 1, 3]], 1);
        for sets in [complete, some] {
            let crossings = Crossings::new(&dag, &sets);
            for set in 0..sets.len() {
                let crosses = |&(_, &(u, v)): &(usize, &(u32, u32))| {
                    sets.contains(set, v as usize) && !sets.contains(set, u as usize)
                };
                let crossing = |(edge, &(_, head)): (usize, &(u32, u32))| Crossing { edge: edge as u32, head };
                let expected: Vec<Crossing> = dag.edges().iter().enumerate().filter(crosses).map(crossing).collect();
                assert_eq!(crossings.of(set), expected);
            }
            assert_eq!((crossings.of(0).len(), crossings.of(sets.len() - 1).len()), (0, 0));
        }
    }
}
