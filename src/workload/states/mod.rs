//! The states that DAPPLE cuts between: how far a network has been computed, from its first layer to its last.
//!
//! PipeDream's antichain graph (Narayanan et al., SOSP 2019, in the published program): a state is a set of nodes none of
//! which needs another, standing for everything up to them. [`clean`](cleaned) first drops inputs and `__getitem__` sinks,
//! [`antichains`] finds the states, [`States`] sums costs up to each. A chain of layers has a state for each layer; where a
//! network branches there are more, and their number can explode: then [`States::along_order`] cuts along one topological order instead.
//!
//! Surprising, and kept because published plans rest on it: the search starts at the *first* remaining source only, other
//! sources count from the first state that needs them; and where states branch, the order of states is no chain of
//! sets, so that the cost between two neighbours may be negative.
//!
//! `O(states · nodes)` time and bits.

mod antichains;
mod exact_sum;

use fixedbitset::FixedBitSet;
use thiserror::Error;

use super::{LayerProfile, Workload};
use crate::graph::Dag;
use exact_sum::ExactSum;

/// States that are looked for at the most.
pub const MOST_STATES: usize = 4096;

/// Why a profile has no antichain states to plan with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StatesError {
    /// Nothing is left of the network without its inputs.
    #[error("nothing but inputs: no layer is left to plan")]
    Empty,
    /// The branches of the network allow too many.
    #[error("its branches allow more than {0} states, the most that are looked at")]
    TooMany(usize),
}

/// The states of a profile with what they cost, for one batch as profiled.
#[derive(Debug, Clone)]
pub struct States {
    /// Nodes computed up to and with a state (over the workload's node indices), by state.
    covered: Vec<FixedBitSet>,
    /// By state, the states that come before it in the graph of states, ascending.
    before: Vec<FixedBitSet>,
    /// Forward and backward seconds up to and with a state.
    pub compute_s: Vec<f64>,
    /// Forward seconds up to and with a state.
    pub forward_s: Vec<f64>,
    /// Bytes of all outputs up to and with a state.
    pub activation_bytes: Vec<f64>,
    /// Bytes of all parameters up to and with a state.
    pub parameter_bytes: Vec<f64>,
    /// Bytes of the outputs that are needed after a state: what a cut there sends.
    pub output_bytes: Vec<f64>,
    /// For each state the nodes that are computed with it and not before, in the order of states: a partition of all nodes
    /// of the workload.
    pub members: Vec<Vec<usize>>,
    /// Bytes of parameters by node of the workload where sums of them are not exact; else empty.
    node_parameters: Vec<f64>,
    /// Nodes that no state covers: inputs and results that were dropped, and what only they lead to.
    pub left_out: Vec<usize>,
    /// Whether what is planned has one order only, a chain with or without skips: the states then are all there can be.
    pub one_order: bool,
}

/// What is planned of a workload: every node, or those that are left without inputs and results.
#[derive(Debug, Clone)]
struct Cleaned {
    /// Workload index of each node that is left, in file order.
    kept: Vec<usize>,
    /// The graph over what is left.
    dag: Dag,
}

/// Which nodes are planned: all but sources called `Input..` and then sinks called `__getitem__..`, each looked for once.
pub fn kept(workload: &Workload) -> Vec<bool> {
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

/// A part (state, stage) for every node, given those of most: the rest goes with the first part that needs it, else with the
/// last one that leads to it, else to part `last`.
pub fn settled(dag: &Dag, mut part_of: Vec<Option<usize>>, last: usize) -> Vec<usize> {
    let order = dag.topological_order();
    // Towards the network's end first, so that a chain of left-out nodes follows the one that is needed.
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

/// The figures, unless they are whole and few enough for any sum of them, and any difference of sums, to be exact: then
/// nothing.
pub fn inexact(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    const EXACT: f64 = (1u64 << 53) as f64;
    let figures: Vec<f64> = figures.collect();
    let exact = figures.iter().all(|figure| figure.fract() == 0.0) && figures.iter().sum::<f64>() < EXACT;
    if exact { vec![] } else { figures }
}

fn cleaned(workload: &Workload) -> Cleaned {
    let dag = &workload.dag;
    let kept = kept(workload);
    let mut index = vec![u32::MAX; dag.len()];
    let kept: Vec<usize> = (0..dag.len()).filter(|&v| kept[v]).collect();
    for (i, &v) in kept.iter().enumerate() {
        index[v] = i as u32;
    }
    let edges = dag.edges().iter().map(|&(u, v)| (index[u as usize], index[v as usize]));
    let edges = edges.filter(|&(u, v)| u != u32::MAX && v != u32::MAX).collect();
    let dag = Dag::new(kept.len(), edges).expect("a part of a graph without cycles has none");
    Cleaned { kept, dag }
}

impl States {
    /// The antichain states of a workload with a layer-wise profile.
    ///
    /// # Errors
    /// [`StatesError`] if there are none or too many.
    pub fn of(workload: &Workload, profile: &LayerProfile) -> Result<Self, StatesError> {
        let clean = cleaned(workload);
        if clean.dag.is_empty() {
            return Err(StatesError::Empty);
        }
        let label = |i: usize| workload.nodes[clean.kept[i]].name.as_deref().unwrap_or_default();
        let found = antichains::find(&clean.dag, &label, MOST_STATES).ok_or(StatesError::TooMany(MOST_STATES))?;
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

    /// A state after every node along the breadth-first topological order: a chain, whatever the branches.
    ///
    /// # Errors
    /// [`StatesError::Empty`].
    pub fn along_order(workload: &Workload, profile: &LayerProfile) -> Result<Self, StatesError> {
        let clean = cleaned(workload);
        let n = clean.dag.len();
        if n == 0 {
            return Err(StatesError::Empty);
        }
        let mut done = FixedBitSet::with_capacity(n);
        let states = clean.dag.topological_order().iter().map(|&v| {
            done.insert(v as usize);
            let needed = |&u: &usize| u == v as usize || clean.dag.successors(u).any(|w| !done.contains(w));
            (done.clone(), done.ones().filter(needed).collect())
        });
        let states = states.collect();
        let before = (0..n)
            .map(|j| {
                let mut earlier = FixedBitSet::with_capacity(n);
                earlier.insert_range(0..j);
                earlier
            })
            .collect();
        Ok(Self::with_costs(workload, profile, &clean, states, before))
    }

    fn with_costs(
        workload: &Workload,
        profile: &LayerProfile,
        clean: &Cleaned,
        states: Vec<(FixedBitSet, Vec<usize>)>,
        before: Vec<FixedBitSet>,
    ) -> Self {
        let cost = |i: usize| &profile.nodes[clean.kept[i]];
        let activations: Vec<f64> = (0..clean.dag.len()).map(|i| cost(i).activation()).collect();
        let count = states.len();
        let mut all = States {
            covered: Vec::with_capacity(count),
            before,
            compute_s: Vec::with_capacity(count),
            forward_s: Vec::with_capacity(count),
            activation_bytes: Vec::with_capacity(count),
            parameter_bytes: Vec::with_capacity(count),
            output_bytes: Vec::with_capacity(count),
            members: Vec::with_capacity(count),
            node_parameters: inexact(profile.nodes.iter().map(|node| node.parameter_bytes)),
            left_out: vec![],
            one_order: clean
                .dag
                .topological_order()
                .windows(2)
                .all(|pair| clean.dag.successors(pair[0] as usize).any(|w| w == pair[1] as usize)),
        };
        let mut taken = FixedBitSet::with_capacity(workload.nodes.len());
        for (covered, antichain) in states {
            // As the published importer divides: each node's milliseconds by a thousand, then summed.
            all.compute_s
                .push(ExactSum::of(covered.ones().map(|i| (cost(i).forward_ms + cost(i).backward_ms) / 1000.0)));
            all.forward_s.push(ExactSum::of(covered.ones().map(|i| cost(i).forward_ms / 1000.0)));
            all.activation_bytes.push(ExactSum::of(covered.ones().map(|i| activations[i])));
            all.parameter_bytes.push(ExactSum::of(covered.ones().map(|i| cost(i).parameter_bytes)));
            all.output_bytes.push(ExactSum::of(antichain.iter().map(|&i| activations[i])));
            let mut on_workload = FixedBitSet::with_capacity(workload.nodes.len());
            on_workload.extend(covered.ones().map(|i| clean.kept[i]));
            all.members.push(on_workload.difference(&taken).collect());
            taken.union_with(&on_workload);
            all.covered.push(on_workload);
        }
        all.settle(&workload.dag, &taken);
        all
    }

    /// Gives every node that no state covers a place.
    fn settle(&mut self, dag: &Dag, taken: &FixedBitSet) {
        let last = self.members.len() - 1;
        let mut state_of = vec![None; dag.len()];
        for (s, members) in self.members.iter().enumerate() {
            members.iter().for_each(|&v| state_of[v] = Some(s));
        }
        self.left_out = (0..dag.len()).filter(|&v| !taken.contains(v)).collect();
        let state_of = settled(dag, state_of, last);
        for &v in &self.left_out {
            self.members[state_of[v]].push(v);
        }
        for members in &mut self.members {
            members.sort_unstable();
        }
    }

    /// Bytes of the parameters of the states `from..=to`.
    pub fn parameters(&self, from: usize, to: usize) -> f64 {
        let before = from.checked_sub(1);
        if self.node_parameters.is_empty() {
            return self.parameter_bytes[to] - before.map_or(0.0, |before| self.parameter_bytes[before]);
        }
        let sum = |state: usize| self.covered[state].ones().map(|v| self.node_parameters[v]);
        ExactSum::of(sum(to).chain(before.into_iter().flat_map(|before| sum(before).map(|bytes| -bytes))))
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.compute_s.len()
    }

    /// Never: there is always a state.
    pub fn is_empty(&self) -> bool {
        self.compute_s.is_empty()
    }

    /// The nodes computed up to and with state `j`.
    pub fn covered(&self, j: usize) -> &FixedBitSet {
        &self.covered[j]
    }

    /// The states before state `j` in the graph of states, ascending.
    pub fn before(&self, j: usize) -> impl Iterator<Item = usize> + '_ {
        self.before[j].ones()
    }

    /// Whether a stage can end with state `l`: no state before it covers what it does not.
    pub fn is_cut(&self, l: usize) -> bool {
        self.covered[..l].iter().all(|earlier| earlier.is_subset(&self.covered[l]))
    }

    /// Whether each state covers all that its neighbour before it covers.
    pub fn is_chain(&self) -> bool {
        self.covered.windows(2).all(|pair| pair[0].is_subset(&pair[1]))
    }

    /// The nodes computed in the states `from..=to`, ascending: those of a pipeline stage that begins after state
    /// `from - 1` and ends with state `to`.
    pub fn nodes(&self, from: usize, to: usize) -> Vec<usize> {
        let mut nodes: Vec<usize> = self.members[from..=to].iter().flatten().copied().collect();
        nodes.sort_unstable();
        nodes
    }
}
