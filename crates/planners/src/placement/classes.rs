//! Classes of nodes that must share a device: colour classes, unions forced by a layer or a cycle, and leaves without
//! cost.
//!
//! A [`Partition`] maps nodes to classes; a [`ClassGraph`] is the order among classes that a contiguous split must
//! keep. Its edges are those between forward nodes, and *artificial* ones: a class with only backward nodes has no
//! position in the forward pass, so its backward edges are mirrored into the forward pass. Artificial edges order
//! classes and never cost.
//!
//! Strongly connected classes are found with Tarjan's algorithm in `O(n + m)`; leaf merging is `O(m log m)`.

use std::collections::{BTreeMap, BTreeSet};

use plantui_core::{
    graph::{Dag, strong_components},
    workload::placement::PlacementProfile,
};

/// Number of the first node without a class, above every colour; the next ones count up. It matters only for ties,
/// which are broken by class. The published program counts down from here, but visits such classes in the order of its
/// nodes.
const FRESH_LABEL: i64 = 2_135_137_968;
/// A leaf's time below this counts as none.
const NEGLIGIBLE: f64 = 1e-6;

/// Partition of the nodes into classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    class_of: Vec<u32>,
    labels: Vec<i64>,
}

impl Partition {
    /// Colour classes of a profile; a node without a colour is its own class.
    pub fn by_colour(profile: &PlacementProfile) -> Self {
        let mut known: BTreeMap<i64, u32> = BTreeMap::new();
        let mut labels = vec![];
        let mut fresh = FRESH_LABEL;
        let class_of = profile
            .nodes
            .iter()
            .map(|node| {
                let new = labels.len() as u32;
                match node.colour_class {
                    Some(colour) => *known.entry(colour).or_insert_with(|| {
                        labels.push(colour);
                        new
                    }),
                    None => {
                        labels.push(fresh);
                        fresh += 1;
                        new
                    }
                }
            })
            .collect();
        Partition { class_of, labels }
    }

    /// Number of classes.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// True if there is no class.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Class of a node.
    pub fn class(&self, node: usize) -> usize {
        self.class_of[node] as usize
    }

    /// Number that breaks ties: the colour of one of the members.
    pub fn label(&self, class: usize) -> i64 {
        self.labels[class]
    }

    /// Nodes of every class, ascending.
    pub fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![vec![]; self.len()];
        for (node, &class) in self.class_of.iter().enumerate() {
            members[class as usize].push(node);
        }
        members
    }

    /// Merges the classes of each pair; a merged class keeps the smallest label.
    pub(super) fn united(&self, pairs: impl IntoIterator<Item = (usize, usize)>) -> Partition {
        let mut parent: Vec<usize> = (0..self.len()).collect();
        for (a, b) in pairs {
            let (a, b) = (root(&mut parent, a), root(&mut parent, b));
            if (self.labels[a], a) <= (self.labels[b], b) {
                parent[b] = a;
            } else {
                parent[a] = b;
            }
        }
        self.merged_into(|class| root(&mut parent, class))
    }

    /// Merges each class into the class `target(class)`; `target` maps a target to itself.
    fn merged_into(&self, mut target: impl FnMut(usize) -> usize) -> Partition {
        let mut compact = vec![u32::MAX; self.len()];
        let mut labels = vec![];
        for class in 0..self.len() {
            let kept = target(class);
            if compact[kept] == u32::MAX {
                compact[kept] = labels.len() as u32;
                labels.push(self.labels[kept]);
            }
            compact[class] = compact[kept];
        }
        Partition { class_of: self.class_of.iter().map(|&class| compact[class as usize]).collect(), labels }
    }

    /// Merges classes that share one of the given node sets.
    #[must_use]
    pub fn with_together<'a>(&self, sets: impl IntoIterator<Item = &'a [usize]>) -> Partition {
        self.united(
            sets.into_iter()
                .flat_map(|set| set.windows(2).map(|two| (self.class(two[0]), self.class(two[1]))).collect::<Vec<_>>()),
        )
    }

    /// Merges classes that meet in a layer.
    #[must_use]
    pub fn with_layers(&self, profile: &PlacementProfile) -> Partition {
        let mut layers: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for (node, cost) in profile.nodes.iter().enumerate() {
            if let Some(layer) = cost.layer {
                layers.entry(layer).or_default().push(node);
            }
        }
        self.with_together(layers.values().map(Vec::as_slice))
    }
}

fn root(parent: &mut [usize], mut class: usize) -> usize {
    while parent[class] != class {
        parent[class] = parent[parent[class]];
        class = parent[class];
    }
    class
}

/// Classes and the acyclic order among them.
#[derive(Debug, Clone)]
pub struct ClassGraph {
    /// Class of every node.
    pub partition: Partition,
    /// Edges between forward nodes of different classes, ascending, without duplicates.
    pub edges: BTreeSet<(u32, u32)>,
    /// Edges that only order, ascending, without duplicates.
    pub artificial: BTreeSet<(u32, u32)>,
}

impl ClassGraph {
    /// Orders the classes of a partition: mirrors the backward edges of orphans, then merges every cycle into one
    /// class.
    pub fn new(dag: &Dag, profile: &PlacementProfile, partition: &Partition) -> Self {
        let mut orphan = vec![true; partition.len()];
        for (node, cost) in profile.nodes.iter().enumerate() {
            if !cost.backward {
                orphan[partition.class(node)] = false;
            }
        }
        // Building a set from a whole list is several times as fast as inserting edges one by one.
        let (mut edges, mut artificial) = (vec![], vec![]);
        for &(u, v) in dag.edges() {
            let (a, b) = (partition.class(u as usize), partition.class(v as usize));
            if a == b {
                continue;
            }
            match (profile.nodes[u as usize].backward, profile.nodes[v as usize].backward) {
                (false, false) => edges.push((a as u32, b as u32)),
                (true, true) if orphan[a] || orphan[b] => artificial.push((b as u32, a as u32)),
                _ => {}
            }
        }
        let (edges, artificial): (BTreeSet<_>, BTreeSet<_>) =
            (edges.into_iter().collect(), artificial.into_iter().collect());
        let component = strong_components(partition.len(), edges.iter().chain(&artificial));
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        let pairs: Vec<(usize, usize)> =
            component.iter().enumerate().map(|(class, &c)| (*first.entry(c).or_insert(class), class)).collect();
        let merged = partition.united(pairs);
        let mut class = vec![0; partition.len()];
        for node in 0..profile.nodes.len() {
            class[partition.class(node)] = merged.class(node);
        }
        ClassGraph { edges: renamed(&edges, &class), artificial: renamed(&artificial, &class), partition: merged }
    }

    /// Merges every leaf that takes no time into the class of its only neighbour, until there is none left. The second
    /// result is true for each class, as numbered before, that was merged away.
    ///
    /// This shrinks the search and is a heuristic: the leaf keeps its size and the cost of sending its output. If these
    /// do not matter, no split is better with a leaf elsewhere.
    #[must_use]
    pub fn without_free_leaves(&self, dag: &Dag, profile: &PlacementProfile) -> (Self, Vec<bool>) {
        let n = self.partition.len();
        // Forward CPU and accelerator time; backward time of both kinds; true if forward and backward nodes are
        // adjacent.
        let mut forward = vec![(0.0, 0.0); n];
        let mut backward = vec![0.0; n];
        let mut touches = vec![false; n];
        for (node, cost) in profile.nodes.iter().enumerate() {
            let class = self.partition.class(node);
            if cost.backward {
                backward[class] += cost.cpu_time + cost.accelerator_time;
            } else {
                forward[class].0 += cost.cpu_time;
                forward[class].1 += cost.accelerator_time;
            }
        }
        for &(u, v) in dag.edges() {
            let (u, v) = (u as usize, v as usize);
            match (profile.nodes[u].backward, profile.nodes[v].backward) {
                (false, true) => touches[self.partition.class(u)] = true,
                (true, false) => touches[self.partition.class(v)] = true,
                _ => {}
            }
        }
        let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); n];
        for &(a, b) in self.edges.iter().chain(&self.artificial) {
            neighbours[a as usize].insert(b as usize);
            neighbours[b as usize].insert(a as usize);
        }
        let mut target: Vec<usize> = (0..n).collect();
        let mut waiting: BTreeSet<(i64, usize)> = (0..n).map(|class| (self.partition.label(class), class)).collect();
        while let Some((_, x)) = waiting.pop_first() {
            let free = forward[x].0 < NEGLIGIBLE && forward[x].1 < NEGLIGIBLE && backward[x] < NEGLIGIBLE;
            if !free || touches[x] || neighbours[x].len() != 1 {
                continue;
            }
            let y = *neighbours[x].first().expect("it has one");
            target[x] = y;
            neighbours[x].clear();
            neighbours[y].remove(&x);
            forward[y] = (forward[y].0 + forward[x].0, forward[y].1 + forward[x].1);
            backward[y] += backward[x];
            waiting.insert((self.partition.label(y), y));
        }
        for mut class in 0..n {
            // A chain of leaves ends in a class that stayed.
            let mut kept = class;
            while target[kept] != kept {
                kept = target[kept];
            }
            while target[class] != class {
                class = std::mem::replace(&mut target[class], kept);
            }
        }
        let merged = self.partition.merged_into(|class| target[class]);
        let mut class = vec![0; n];
        for node in 0..profile.nodes.len() {
            class[self.partition.class(node)] = merged.class(node);
        }
        let given = (0..n).map(|class| target[class] != class).collect();
        let edges = renamed(&self.edges, &class);
        (ClassGraph { edges, artificial: renamed(&self.artificial, &class), partition: merged }, given)
    }

    /// The order as a graph over classes; edges ascend.
    ///
    /// # Panics
    /// Never: cycles were made one class.
    pub fn order(&self) -> Dag {
        let edges = self.edges.union(&self.artificial).copied().collect();
        Dag::new(self.partition.len(), edges).expect("strongly connected classes were merged")
    }
}

/// Edges between the new classes, without those inside one class.
fn renamed(edges: &BTreeSet<(u32, u32)>, class: &[usize]) -> BTreeSet<(u32, u32)> {
    edges.iter().map(|&(a, b)| (class[a as usize] as u32, class[b as usize] as u32)).filter(|(a, b)| a != b).collect()
}
