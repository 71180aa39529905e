//! The edges across the border of each set: found once, read by all that add up what edges cost.
//!
//! A set's edges are those of a smaller one within it but for the nodes it has beyond that: time grows with the edges across
//! all borders, the words of a set and the edges into such nodes, but for sorting each set's. Memory is 8 bytes for an edge
//! across a border, at most [`MOST_KEPT`] of them: the edges into later sets are found anew each time.

use std::borrow::Cow;

use crate::{
    graph::{Dag, SuccessorSets},
    planner::Search,
};

/// The most edges across borders that are kept (64 MiB): a graph whose nodes all feed each other has very many.
const MOST_KEPT: usize = 1 << 23;

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
    /// `within` has a smaller set within each; `None` if the search was cancelled meanwhile.
    pub(super) fn new(dag: &Dag, sets: &SuccessorSets, within: &[u32], search: &Search) -> Option<Self> {
        Crossings::keeping(dag, sets, within, MOST_KEPT, search)
    }

    fn keeping(dag: &Dag, sets: &SuccessorSets, within: &[u32], most: usize, search: &Search) -> Option<Self> {
        // None lead into the empty set.
        let mut all = Crossings { start: vec![0, 0], edges: vec![] };
        for (set, &within) in within.iter().enumerate().skip(1) {
            if search.cancelled() {
                return None;
            }
            let first = all.edges.len();
            all.grow(dag, sets, set, within as usize);
            if all.edges.len() > most {
                all.edges.truncate(first);
                break;
            }
            // By edge: sums then come out the same whatever the order of the nodes.
            all.edges[first..].sort_unstable_by_key(|crossing| crossing.edge);
            all.start.push(all.edges.len());
        }
        Some(all)
    }

    /// Adds the edges into a set, going by those into one within it.
    fn grow(&mut self, dag: &Dag, sets: &SuccessorSets, set: usize, within: usize) {
        for i in self.start[within]..self.start[within + 1] {
            let crossing = self.edges[i];
            if !sets.contains(set, dag.edges()[crossing.edge as usize].0 as usize) {
                self.edges.push(crossing);
            }
        }
        sets.beyond(set, within).for_each(|head| enter(dag, sets, set, head, &mut self.edges));
    }

    /// The edges from outside a set into it, by index.
    #[inline]
    pub(super) fn of(&self, dag: &Dag, sets: &SuccessorSets, set: usize) -> Cow<'_, [Crossing]> {
        match self.start.get(set + 1) {
            Some(&end) => Cow::Borrowed(&self.edges[self.start[set]..end]),
            None => {
                let mut edges = vec![];
                sets.members(set).for_each(|head| enter(dag, sets, set, head, &mut edges));
                edges.sort_unstable_by_key(|crossing| crossing.edge);
                Cow::Owned(edges)
            }
        }
    }
}

/// Adds the edges into `set` from outside to one of its nodes.
fn enter(dag: &Dag, sets: &SuccessorSets, set: usize, head: usize, edges: &mut Vec<Crossing>) {
    for &edge in dag.in_edges(head) {
        if !sets.contains(set, dag.edges()[edge as usize].0 as usize) {
            edges.push(Crossing { edge, head: head as u32 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::smaller::within, *};
    use crate::graph::Enumeration;

    #[test]
    fn edges_into_every_set_of_a_diamond_with_a_bridge() {
        let dag = Dag::new(4, vec![(0, 2), (0, 1), (1, 3), (2, 3), (0, 3)]).unwrap();
        let Enumeration::Complete(complete) = SuccessorSets::enumerate(&dag, 100, &|| false) else { panic!("few") };
        let some = SuccessorSets::from_orders(&dag, &[vec![0, 1, 2, 3], vec![0, 2, 1, 3]], 1);
        let search = Search::default();
        // The last few sets' edges are not kept.
        for (sets, most) in [(&complete, MOST_KEPT), (&some, MOST_KEPT), (&complete, 5), (&some, 3)] {
            let crossings = Crossings::keeping(&dag, sets, &within(sets), most, &search).unwrap();
            assert_eq!(crossings.start.len() == sets.len() + 1, most == MOST_KEPT);
            for set in 0..sets.len() {
                let crosses = |&(_, &(u, v)): &(usize, &(u32, u32))| {
                    sets.contains(set, v as usize) && !sets.contains(set, u as usize)
                };
                let crossing = |(edge, &(_, head)): (usize, &(u32, u32))| Crossing { edge: edge as u32, head };
                let expected: Vec<Crossing> = dag.edges().iter().enumerate().filter(crosses).map(crossing).collect();
                assert_eq!(crossings.of(&dag, sets, set), expected);
            }
        }
        search.cancel();
        assert!(Crossings::new(&dag, &complete, &within(&complete), &search).is_none());
    }
}
