//! States between which DAPPLE cuts: how far a network has been computed, from its first layer to its last.
//!
//! The states are PipeDream's antichain graph (Narayanan et al., SOSP 2019, in the published program). A state is a set
//! of nodes that do not depend on each other, and stands for everything up to them. `clean` first removes inputs and
//! `__getitem__` sinks, `antichains` finds the states, and [`States`] sums the costs up to each. A chain of layers has
//! one state per layer. A network with branches has more, and their number can explode; [`States::along_order`] then
//! cuts along one topological order.
//!
//! Two properties are kept because published plans depend on them. The search starts only at the *first* remaining
//! source; other sources count from the first state that needs them. With branches, the order of states is not a chain
//! of sets, so the cost between two neighbours may be negative.
//!
//! `O(states · nodes)` time and bits with branches, `O(nodes)` along an order.

mod antichains;
mod cache;
mod exact_sum;

use fixedbitset::FixedBitSet;
use thiserror::Error;

use super::{
    layer_profile::{LayerNode, LayerProfile},
    node_index::NodeIndex,
    profiled::Workload,
};
use crate::graph::Dag;
pub(super) use cache::StatesCache;
pub use exact_sum::ExactSum;

/// Relative difference of two sums at or below which rounding has lost too many digits.
const MOST_LOST: f64 = 1e-5;
/// Maximum number of states.
pub const MOST_STATES: usize = 4096;

/// Reason why a profile has no antichain states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StatesError {
    /// Without its inputs, the network has no layers.
    #[error("nothing but inputs: no layer is left to plan")]
    Empty,
    /// The branches of the network allow too many states.
    #[error("its branches allow more than {0} states, the most that are looked at")]
    TooMany(usize),
    /// The network has too many layers for a search for states.
    #[error("it has more than {0} layers, the most whose states are looked for")]
    TooLarge(usize),
    /// The search was stopped.
    #[error("the time was up before its states were found")]
    Stopped,
}

impl StatesError {
    /// True if there are states along one order of the layers.
    pub fn has_an_order(self) -> bool {
        self != StatesError::Empty
    }
}

/// States of a profile with their costs, for one batch as profiled.
#[derive(Debug, Clone)]
pub struct States {
    reach: StateClosures,
    /// Index among all states by state, if only some of them are held.
    numbers: Vec<u32>,
    /// Forward plus backward seconds up to and including a state.
    pub compute_s: Vec<f64>,
    /// Forward seconds up to and including a state.
    pub forward_s: Vec<f64>,
    /// Bytes of all outputs up to and including a state.
    pub activation_bytes: Vec<f64>,
    /// Bytes of all parameters up to and including a state.
    pub parameter_bytes: Vec<f64>,
    /// Bytes of the outputs that are needed after a state: the bytes that a cut there sends.
    pub output_bytes: Vec<f64>,
    /// Nodes that are computed with a state and not before, by state. A partition of all nodes of the workload.
    pub members: Vec<Vec<NodeIndex>>,
    /// The same sums by state without rounding, for differences between two states.
    totals: Vec<Totals>,
    /// Nodes that no state covers: removed inputs and results, and nodes that lead only to those.
    pub left_out: Vec<NodeIndex>,
    /// True if the planned nodes have only one order, a chain with or without skips. The states are then all that
    /// exist.
    pub one_order: bool,
}

/// Nodes computed up to each state, and the states before it.
#[derive(Debug, Clone)]
enum StateClosures {
    /// Sets of nodes, if states branch.
    Sets {
        /// Nodes computed up to and including a state, by state (over the workload's node indices).
        covered: Vec<FixedBitSet>,
        /// States before a state in the graph of states, by state, ascending.
        before: Vec<FixedBitSet>,
    },
    /// One order, in which every state comes after all earlier ones. `first` is by node the first state that covers it;
    /// `None` for nodes left out.
    Order { first: Vec<Option<u32>> },
}

/// Planned part of a workload: the nodes that remain without inputs and results.
#[derive(Debug, Clone)]
struct PlannedGraph {
    /// Remaining nodes, in file order.
    nodes: Vec<NodeIndex>,
    /// Graph over the remaining nodes.
    dag: Dag,
}

/// True for the nodes that are planned. Removes sources named `Input..`, then sinks named `__getitem__..`, in one pass
/// each.
pub fn planned_nodes(workload: &Workload) -> Vec<bool> {
    let dag = &workload.dag;
    let starts = |v: usize, word: &str| workload.nodes[v].name.as_deref().is_some_and(|name| name.starts_with(word));
    let mut kept: Vec<bool> = (0..dag.len()).map(|v| dag.in_degree(v) > 0 || !starts(v, "Input")).collect();
    let sinks: Vec<usize> = (0..dag.len())
        .filter(|&v| kept[v] && dag.successors(v).all(|w| !kept[w]) && starts(v, "__getitem__"))
        .collect();
    for v in sinks {
        kept[v] = false;
    }
    kept
}

/// Completes a partial assignment of nodes to parts (states or stages). A node without a part joins the first part that
/// needs it, else the last part that leads to it, else part `last`.
pub fn settled(dag: &Dag, mut part_of: Vec<Option<usize>>, last: usize) -> Vec<usize> {
    let order = dag.topological_order();
    // From the network's end, so that a chain of nodes without a part follows the node that needs it.
    for &v in order.iter().rev() {
        let v = v as usize;
        if part_of[v].is_none() {
            part_of[v] = dag.successors(v).filter_map(|w| part_of[w]).min();
        }
    }
    for &v in order {
        let v = v as usize;
        if part_of[v].is_none() {
            part_of[v] = Some(dag.predecessors(v).filter_map(|u| part_of[u]).max().unwrap_or(last));
        }
    }
    part_of.into_iter().map(|part| part.unwrap_or(last)).collect()
}

/// Returns the figures, or nothing if they are whole and their sum is below 2⁵³. Then any sum of them, and any
/// difference of such sums, is exact.
pub fn inexact(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    const EXACT: f64 = (1u64 << 53) as f64;
    let figures: Vec<f64> = figures.collect();
    let exact = figures.iter().all(|figure| figure.fract() == 0.0) && figures.iter().sum::<f64>() < EXACT;
    if exact { vec![] } else { figures }
}

fn cleaned(workload: &Workload) -> PlannedGraph {
    let dag = &workload.dag;
    let kept = planned_nodes(workload);
    let mut index = vec![u32::MAX; dag.len()];
    let kept: Vec<NodeIndex> = workload.indices().filter(|v| kept[v.index()]).collect();
    for (i, v) in kept.iter().enumerate() {
        index[v.index()] = i as u32;
    }
    let edges = dag.edges().iter().map(|&(u, v)| (index[u as usize], index[v as usize]));
    let edges = edges.filter(|&(u, v)| u != u32::MAX && v != u32::MAX).collect();
    let dag = Dag::new(kept.len(), edges).expect("a part of a graph without cycles has none");
    PlannedGraph { nodes: kept, dag }
}

impl PlannedGraph {
    /// Number of nodes reachable from the first source whose only predecessor has no other successor. Each is a state
    /// of its own, so that a long chain has too many states without a search.
    fn lone_steps(&self) -> usize {
        let dag = &self.dag;
        let Some(start) = (0..dag.len()).find(|&v| dag.in_degree(v) == 0) else { return 0 };
        let mut behind = FixedBitSet::with_capacity(dag.len());
        behind.insert(start);
        let mut steps = 0;
        for &v in dag.topological_order() {
            let v = v as usize;
            if dag.predecessors(v).any(|u| behind.contains(u)) {
                behind.insert(v);
                steps += usize::from(dag.in_degree(v) == 1 && dag.predecessors(v).all(|u| dag.out_degree(u) == 1));
            }
        }
        steps
    }
}

/// Sums over the nodes up to a state. As in the published importer, each node's milliseconds are divided by a thousand,
/// then summed.
#[derive(Debug, Clone, Default)]
struct Totals {
    compute_s: ExactSum,
    forward_s: ExactSum,
    activation_bytes: ExactSum,
    parameter_bytes: ExactSum,
}

impl Totals {
    fn add(&mut self, node: &LayerNode) {
        self.add_times(node, 1.0);
    }

    /// Subtracts a node exactly.
    fn take_away(&mut self, node: &LayerNode) {
        self.add_times(node, -1.0);
    }

    fn add_times(&mut self, node: &LayerNode, sign: f64) {
        self.compute_s.add(sign * ((node.forward_ms + node.backward_ms) / 1000.0));
        self.forward_s.add(sign * (node.forward_ms / 1000.0));
        self.activation_bytes.add(sign * node.activation());
        self.parameter_bytes.add(sign * node.parameter_bytes);
    }
}

impl States {
    /// Antichain states of a workload with a layer-wise profile.
    ///
    /// # Errors
    /// [`StatesError`] if there are none or too many.
    pub fn of(workload: &Workload, profile: &LayerProfile) -> Result<Self, StatesError> {
        Self::of_unless(workload, profile, &|| false)
    }

    /// Same as [`States::of`]; `stopped` is polled at every step between states and ends the search.
    ///
    /// # Errors
    /// [`StatesError`] if there are none or too many, or the search was stopped.
    pub fn of_unless(
        workload: &Workload,
        profile: &LayerProfile,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, StatesError> {
        let clean = cleaned(workload);
        if clean.dag.is_empty() {
            return Err(StatesError::Empty);
        }
        if clean.lone_steps() > MOST_STATES {
            return Err(StatesError::TooMany(MOST_STATES));
        }
        let label = |i: usize| workload.nodes[clean.nodes[i]].name.as_deref().unwrap_or_default();
        let found = antichains::find(&clean.dag, &label, MOST_STATES, stopped)?;
        let states = found.order.iter().map(|&s| {
            let antichain = &found.antichains[s];
            let mut covered = FixedBitSet::with_capacity(clean.dag.len());
            for &v in antichain {
                covered.union_with(&found.ancestors[v]);
                covered.insert(v);
            }
            (covered, antichain.clone())
        });
        Ok(Self::with_costs(workload, profile, &clean, states.collect(), found.before))
    }

    /// One state after every node along the breadth-first topological order: a chain, independent of branches.
    ///
    /// # Errors
    /// [`StatesError::Empty`].
    pub fn along_order(workload: &Workload, profile: &LayerProfile) -> Result<Self, StatesError> {
        let clean = cleaned(workload);
        let n = clean.dag.len();
        if n == 0 {
            return Err(StatesError::Empty);
        }
        let mut all = Self::without_states(&clean);
        let mut first = vec![None; workload.nodes.len()];
        let mut totals = Totals::default();
        // Output bytes of computed nodes that are still needed. Exact, so that subtraction leaves no error.
        let mut open = ExactSum::default();
        let activation = |u: usize| profile.nodes[clean.nodes[u]].activation();
        // Consumers of each node that are not computed yet.
        let mut needed: Vec<usize> = (0..n).map(|v| clean.dag.out_degree(v)).collect();
        for (state, &v) in clean.dag.topological_order().iter().enumerate() {
            let v = v as usize;
            totals.add(&profile.nodes[clean.nodes[v]]);
            for u in clean.dag.predecessors(v) {
                needed[u] -= 1;
                if needed[u] == 0 {
                    open.add(-activation(u));
                }
            }
            open.add(activation(v));
            all.push(&totals, open.value());
            if needed[v] == 0 {
                open.add(-activation(v));
            }
            all.members.push(vec![clean.nodes[v]]);
            first[clean.nodes[v].index()] = Some(state as u32);
        }
        let mut taken = FixedBitSet::with_capacity(workload.nodes.len());
        taken.extend(clean.nodes.iter().map(|v| v.index()));
        all.reach = StateClosures::Order { first };
        all.settle(&workload.dag, &taken);
        Ok(all)
    }

    fn without_states(clean: &PlannedGraph) -> Self {
        States {
            reach: StateClosures::Order { first: vec![] },
            numbers: vec![],
            compute_s: vec![],
            forward_s: vec![],
            activation_bytes: vec![],
            parameter_bytes: vec![],
            output_bytes: vec![],
            members: vec![],
            totals: vec![],
            left_out: vec![],
            one_order: clean.dag.has_one_order(),
        }
    }

    /// Adds the costs of a state.
    fn push(&mut self, totals: &Totals, output_bytes: f64) {
        self.numbers.push(self.numbers.len() as u32);
        self.compute_s.push(totals.compute_s.value());
        self.forward_s.push(totals.forward_s.value());
        self.activation_bytes.push(totals.activation_bytes.value());
        self.parameter_bytes.push(totals.parameter_bytes.value());
        self.output_bytes.push(output_bytes);
        self.totals.push(totals.clone());
    }

    fn with_costs(
        workload: &Workload,
        profile: &LayerProfile,
        clean: &PlannedGraph,
        states: Vec<(FixedBitSet, Vec<usize>)>,
        before: Vec<FixedBitSet>,
    ) -> Self {
        let cost = |i: usize| &profile.nodes[clean.nodes[i]];
        let mut all = Self::without_states(clean);
        let mut on_workload = Vec::with_capacity(states.len());
        let mut taken = FixedBitSet::with_capacity(workload.nodes.len());
        // Totals are updated by difference, because neighbouring states differ little.
        let (mut totals, mut last) = (Totals::default(), FixedBitSet::with_capacity(clean.dag.len()));
        for (covered, antichain) in states {
            covered.difference(&last).for_each(|i| totals.add(cost(i)));
            last.difference(&covered).for_each(|i| totals.take_away(cost(i)));
            all.push(&totals, ExactSum::of(antichain.iter().map(|&i| cost(i).activation())));
            let mut nodes = FixedBitSet::with_capacity(workload.nodes.len());
            nodes.extend(covered.ones().map(|i| clean.nodes[i].index()));
            all.members.push(nodes.difference(&taken).map(NodeIndex::new).collect());
            taken.union_with(&nodes);
            on_workload.push(nodes);
            last = covered;
        }
        all.reach = StateClosures::Sets { covered: on_workload, before };
        all.settle(&workload.dag, &taken);
        all
    }

    /// At most `most` of the states, evenly spread and with the last one; all if there are no more.
    #[must_use]
    pub fn thinned(&self, most: usize) -> States {
        let (count, most) = (self.len(), most.max(1));
        if count <= most {
            return self.clone();
        }
        let picked: Vec<usize> = (1..=most).map(|i| i * count / most - 1).collect();
        let pick = |list: &[f64]| picked.iter().map(|&state| list[state]).collect();
        let reach = match &self.reach {
            StateClosures::Sets { covered, before } => {
                let among = |&state: &usize| {
                    let mut among = FixedBitSet::with_capacity(most);
                    among.extend((0..most).filter(|&i| before[state].contains(picked[i])));
                    among
                };
                StateClosures::Sets {
                    covered: picked.iter().map(|&state| covered[state].clone()).collect(),
                    before: picked.iter().map(among).collect(),
                }
            }
            StateClosures::Order { first } => {
                let at = |state: u32| picked.partition_point(|&picked| picked < state as usize) as u32;
                StateClosures::Order { first: first.iter().map(|state| state.map(at)).collect() }
            }
        };
        let from = |i: usize| if i == 0 { 0 } else { picked[i - 1] + 1 };
        States {
            reach,
            numbers: picked.iter().map(|&state| self.numbers[state]).collect(),
            compute_s: pick(&self.compute_s),
            forward_s: pick(&self.forward_s),
            activation_bytes: pick(&self.activation_bytes),
            parameter_bytes: pick(&self.parameter_bytes),
            output_bytes: pick(&self.output_bytes),
            members: (0..most).map(|i| self.nodes(from(i), picked[i])).collect(),
            totals: picked.iter().map(|&state| self.totals[state].clone()).collect(),
            left_out: self.left_out.clone(),
            one_order: self.one_order,
        }
    }

    /// Index of a state among all of the workload's states.
    pub fn number(&self, state: usize) -> u32 {
        self.numbers[state]
    }

    /// Assigns every node that no state covers to a state.
    fn settle(&mut self, dag: &Dag, taken: &FixedBitSet) {
        let last = self.members.len() - 1;
        let mut state_of = vec![None; dag.len()];
        for (s, members) in self.members.iter().enumerate() {
            members.iter().for_each(|v| state_of[v.index()] = Some(s));
        }
        self.left_out = NodeIndex::first(dag.len()).filter(|v| !taken.contains(v.index())).collect();
        let state_of = settled(dag, state_of, last);
        for &v in &self.left_out {
            self.members[state_of[v.index()]].push(v);
        }
        for members in &mut self.members {
            members.sort_unstable();
        }
    }

    /// Sum over the states `from..=to`. May be negative if states branch.
    ///
    /// As in the published program, it is the difference of two rounded sums, which breaks ties between equally long
    /// plans. If many digits would be lost, it is the exact difference.
    #[inline]
    fn between(&self, sums: &[f64], exact: impl Fn(&Totals) -> &ExactSum, from: usize, to: usize) -> f64 {
        let Some(before) = from.checked_sub(1) else { return sums[to] };
        let difference = sums[to] - sums[before];
        if difference.abs() > MOST_LOST * sums[to].abs().max(sums[before].abs()) {
            return difference;
        }
        exact(&self.totals[to]).minus(exact(&self.totals[before]))
    }

    /// Forward plus backward seconds of the states `from..=to`.
    #[inline]
    pub fn compute_between(&self, from: usize, to: usize) -> f64 {
        self.between(&self.compute_s, |totals| &totals.compute_s, from, to)
    }

    /// Forward seconds of the states `from..=to`.
    #[inline]
    pub fn forward_between(&self, from: usize, to: usize) -> f64 {
        self.between(&self.forward_s, |totals| &totals.forward_s, from, to)
    }

    /// Bytes of the outputs of the states `from..=to`.
    #[inline]
    pub fn activations_between(&self, from: usize, to: usize) -> f64 {
        self.between(&self.activation_bytes, |totals| &totals.activation_bytes, from, to)
    }

    /// Bytes of the parameters of the states `from..=to`.
    #[inline]
    pub fn parameters_between(&self, from: usize, to: usize) -> f64 {
        self.between(&self.parameter_bytes, |totals| &totals.parameter_bytes, from, to)
    }

    /// Number of states.
    #[inline]
    pub fn len(&self) -> usize {
        self.compute_s.len()
    }

    /// Always false: there is at least one state.
    pub fn is_empty(&self) -> bool {
        self.compute_s.is_empty()
    }

    /// Nodes computed up to and including state `j`.
    pub fn covered(&self, j: usize) -> FixedBitSet {
        match &self.reach {
            StateClosures::Sets { covered, .. } => covered[j].clone(),
            StateClosures::Order { first } => {
                let mut covered = FixedBitSet::with_capacity(first.len());
                covered.extend((0..first.len()).filter(|&v| first[v].is_some_and(|state| state as usize <= j)));
                covered
            }
        }
    }

    /// Nodes computed up to and including each state, in the order of states.
    pub fn all_covered(&self) -> impl Iterator<Item = FixedBitSet> + '_ {
        // Along an order, each set grows from the one before.
        let mut next: Vec<Vec<usize>> = vec![];
        let mut along = FixedBitSet::default();
        if let StateClosures::Order { first } = &self.reach {
            next.resize(self.len(), vec![]);
            along.grow(first.len());
            for (v, state) in first.iter().enumerate() {
                if let Some(state) = state {
                    next[*state as usize].push(v);
                }
            }
        }
        (0..self.len()).map(move |j| match &self.reach {
            StateClosures::Sets { covered, .. } => covered[j].clone(),
            StateClosures::Order { .. } => {
                next[j].iter().for_each(|&v| along.insert(v));
                along.clone()
            }
        })
    }

    /// States before state `j` in the graph of states, ascending.
    pub fn before(&self, j: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let (set, all) = match &self.reach {
            StateClosures::Sets { before, .. } => (Some(&before[j]), 0),
            StateClosures::Order { .. } => (None, j),
        };
        set.into_iter().flat_map(FixedBitSet::ones).chain(0..all)
    }

    /// True if a stage can end with state `l`: `l` covers all that the states before it cover.
    #[inline]
    pub fn is_cut(&self, l: usize) -> bool {
        match &self.reach {
            StateClosures::Sets { covered, .. } => covered[..l].iter().all(|earlier| earlier.is_subset(&covered[l])),
            StateClosures::Order { .. } => true,
        }
    }

    /// True if each state covers all that the state before it covers.
    #[inline]
    pub fn is_chain(&self) -> bool {
        match &self.reach {
            StateClosures::Sets { covered, .. } => covered.windows(2).all(|pair| pair[0].is_subset(&pair[1])),
            StateClosures::Order { .. } => true,
        }
    }

    /// Nodes computed in the states `from..=to`, ascending: the nodes of a pipeline stage over these states.
    pub fn nodes(&self, from: usize, to: usize) -> Vec<NodeIndex> {
        let mut nodes: Vec<NodeIndex> = self.members[from..=to].iter().flatten().copied().collect();
        nodes.sort_unstable();
        nodes
    }
}
