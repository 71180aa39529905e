//! Colour classes of a device placement, and the order of classes that a pipeline must keep.

use std::collections::{BTreeMap, BTreeSet};

use super::{node_index::NodeIndex, placement::PlacementProfile};
use crate::graph::{Dag, strong_components};

/// Colour classes in the order of their first nodes. A node without a colour is a class by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ColourClasses {
    /// Class by node.
    pub(super) of: Vec<u32>,
    /// Colour by class.
    pub(super) colour: Vec<Option<i64>>,
    /// Nodes by class, ascending.
    pub(super) members: Vec<Vec<NodeIndex>>,
}

impl ColourClasses {
    pub(super) fn new(profile: &PlacementProfile) -> Self {
        let mut known: BTreeMap<i64, u32> = BTreeMap::new();
        let (mut of, mut colour, mut members) = (vec![], vec![], vec![]);
        for (node, cost) in NodeIndex::enumerate(&profile.nodes) {
            let next = members.len() as u32;
            let class = cost.colour_class.map_or(next, |c| *known.entry(c).or_insert(next));
            if class == next {
                colour.push(cost.colour_class);
                members.push(vec![]);
            }
            members[class as usize].push(node);
            of.push(class);
        }
        ColourClasses { of, colour, members }
    }

    /// True if all nodes of the class are backward nodes.
    pub(super) fn is_orphan(&self, profile: &PlacementProfile, class: usize) -> bool {
        self.members[class].iter().all(|&node| profile.nodes[node].backward)
    }

    /// Groups of classes on a common cycle, by their first class. A group's classes ascend; a class on no cycle is a
    /// group by itself. Only the forward pass orders classes. A class without forward nodes is ordered by the mirrored
    /// backward pass. `O((nodes + edges) · log nodes)`.
    pub(super) fn groups(&self, dag: &Dag, profile: &PlacementProfile) -> Vec<Vec<usize>> {
        let edges = self.order(dag, profile);
        let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (class, component) in strong_components(self.members.len(), edges.iter()).into_iter().enumerate() {
            groups.entry(component).or_default().push(class);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
        groups.sort();
        groups
    }

    /// Edges that order the classes. An edge may lead from a class to itself.
    pub(super) fn order(&self, dag: &Dag, profile: &PlacementProfile) -> BTreeSet<(u32, u32)> {
        let backward = |v: u32| profile.nodes[v as usize].backward;
        let orphan: Vec<bool> = (0..self.members.len()).map(|class| self.is_orphan(profile, class)).collect();
        let mut edges = BTreeSet::new();
        for &(u, v) in dag.edges() {
            let (a, b) = (self.of[u as usize], self.of[v as usize]);
            match (backward(u), backward(v)) {
                (false, false) => _ = edges.insert((a, b)),
                (true, true) if orphan[a as usize] || orphan[b as usize] => _ = edges.insert((b, a)),
                _ => {}
            }
        }
        edges
    }
}
