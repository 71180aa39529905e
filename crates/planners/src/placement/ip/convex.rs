//! Rule of the contiguous variant: on every device, CPUs included, the forward nodes are convex.
//!
//! A set of nodes is convex if no path leaves it and comes back. Bit sets hold the forward nodes reached from a class,
//! and those that reach it. A device is convex iff it contains every node that is in both unions. Only original edges
//! between forward nodes count; backward nodes do not matter. Dependencies between devices may be cyclic. `O(n / 64)`
//! per class that a device holds; memory `O(classes · n)` bits.

use fixedbitset::FixedBitSet;

use crate::placement::classes::Partition;
use plantui_core::{graph::Dag, workload::placement::PlacementProfile};

/// Reachability of classes in the forward pass.
#[derive(Debug, Clone)]
pub struct Convexity {
    /// Forward nodes of each class.
    own: Vec<FixedBitSet>,
    /// Forward nodes from which a node of the class is reached, including itself.
    before: Vec<FixedBitSet>,
    /// Forward nodes that are reached from a node of the class, including itself.
    after: Vec<FixedBitSet>,
}

/// Working sets of a check.
#[derive(Debug, Clone)]
pub struct ConvexityScratch {
    own: FixedBitSet,
    before: FixedBitSet,
    after: FixedBitSet,
}

impl Convexity {
    /// Computes reachability. `O(m n / 64)`.
    pub fn new(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> Self {
        let forward = |v: &usize| !profile.nodes[*v].backward;
        let mut number = vec![usize::MAX; dag.len()];
        let mut count = 0;
        for v in (0..dag.len()).filter(forward) {
            number[v] = count;
            count += 1;
        }
        let empty = FixedBitSet::with_capacity(count);
        let single = |v: usize| {
            let mut set = empty.clone();
            if number[v] != usize::MAX {
                set.insert(number[v]);
            }
            set
        };
        let mut before: Vec<FixedBitSet> = (0..dag.len()).map(single).collect();
        let mut after = before.clone();
        for v in dag.topological_order().iter().map(|&v| v as usize).filter(forward) {
            let mut set = std::mem::take(&mut before[v]);
            dag.predecessors(v).filter(forward).for_each(|u| set.union_with(&before[u]));
            before[v] = set;
        }
        for v in dag.topological_order().iter().rev().map(|&v| v as usize).filter(forward) {
            let mut set = std::mem::take(&mut after[v]);
            dag.successors(v).filter(forward).for_each(|w| set.union_with(&after[w]));
            after[v] = set;
        }
        let classes = vec![empty; partition.len()];
        let mut reach = Convexity { own: classes.clone(), before: classes.clone(), after: classes };
        for v in (0..dag.len()).filter(forward) {
            let class = partition.class(v);
            reach.own[class].insert(number[v]);
            reach.before[class].union_with(&before[v]);
            reach.after[class].union_with(&after[v]);
        }
        reach
    }

    /// Working sets for [`Convexity::is_convex`], to be reused.
    pub fn sets(&self) -> ConvexityScratch {
        let empty = FixedBitSet::with_capacity(self.own.first().map_or(0, FixedBitSet::len));
        ConvexityScratch { own: empty.clone(), before: empty.clone(), after: empty }
    }

    /// True if a set of classes is convex.
    pub fn is_convex(&self, classes: impl Iterator<Item = usize>, sets: &mut ConvexityScratch) -> bool {
        self.gather(classes, sets);
        sets.before.intersect_with(&sets.after);
        sets.before.is_subset(&sets.own)
    }

    /// True if the classes can become convex without any of the excluded ones.
    pub fn may_become_convex(
        &self,
        classes: impl Iterator<Item = usize>,
        excluded: impl Iterator<Item = usize>,
        sets: &mut ConvexityScratch,
    ) -> bool {
        self.gather(classes, sets);
        sets.before.intersect_with(&sets.after);
        excluded.into_iter().all(|class| sets.before.is_disjoint(&self.own[class]))
    }

    fn gather(&self, classes: impl Iterator<Item = usize>, sets: &mut ConvexityScratch) {
        sets.own.clear();
        sets.before.clear();
        sets.after.clear();
        for class in classes {
            sets.own.union_with(&self.own[class]);
            sets.before.union_with(&self.before[class]);
            sets.after.union_with(&self.after[class]);
        }
    }
}
