//! What a stage's cost is made of at one tensor-parallel degree: sums over nodes and over edges, by set.

use rayon::prelude::*;

use super::{
    model::{Crossing, Crossings},
    smaller::Smaller,
};
use crate::{
    graph::{Dag, SuccessorSets},
    planner::{Search, pipeline_options::Recompute},
    workload::{Mode, PiperProfile},
};

/// A mode that the options allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    /// Index in the profile's list.
    pub(super) index: usize,
    pub(super) time_s: f64,
    pub(super) parameters: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
}

impl Choice {
    /// Bytes with `y` microbatches in flight.
    pub(super) fn memory(&self, y: f64) -> f64 {
        self.memory_a * y + self.memory_b
    }
}

/// Sums over a set at one tensor-parallel degree, every node in its fastest mode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) time_s: f64,
    pub(super) parameters: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
    pub(super) least_a: f64,
    pub(super) least_b: f64,
    /// What heads pay for the edges that enter the set.
    pub(super) edges_in: f64,
    /// What tails pay for the edges that enter the set.
    pub(super) edges_out: f64,
    /// Nodes that do not offer the degree.
    pub(super) unsupported: u32,
}

impl Sums {
    /// A node by its modes, none if it does not offer the degree.
    pub(super) fn of_node(choices: &[Choice], fastest: usize) -> Self {
        let Some(choice) = choices.get(fastest) else { return Sums { unsupported: 1, ..Sums::default() } };
        let least = |of: fn(&Choice) -> f64| choices.iter().map(of).fold(f64::INFINITY, f64::min);
        Sums {
            time_s: choice.time_s,
            parameters: choice.parameters,
            memory_a: choice.memory_a,
            memory_b: choice.memory_b,
            least_a: least(|choice| choice.memory_a),
            least_b: least(|choice| choice.memory_b),
            ..Sums::default()
        }
    }

    /// Adds nodes; nothing about edges.
    #[inline]
    pub(super) fn add(&mut self, nodes: &Sums) {
        self.time_s += nodes.time_s;
        self.parameters += nodes.parameters;
        self.memory_a += nodes.memory_a;
        self.memory_b += nodes.memory_b;
        self.least_a += nodes.least_a;
        self.least_b += nodes.least_b;
        self.unsupported += nodes.unsupported;
    }
}

/// So many sets at the least are worth another thread.
pub(super) const EACH: usize = 256;

/// Every set; threads share them where there are many.
pub(super) fn every(sets: &SuccessorSets) -> impl IndexedParallelIterator<Item = usize> {
    (0..sets.len()).into_par_iter().with_min_len(EACH)
}

/// Everything at one tensor-parallel degree.
#[derive(Debug)]
pub(super) struct Degree {
    pub(super) t: u32,
    /// Allowed modes by node; empty where the node does not offer the degree.
    pub(super) choices: Vec<Vec<Choice>>,
    /// Position of the fastest mode by node (the first among equals).
    pub(super) fastest: Vec<usize>,
    /// By node, in its fastest mode.
    pub(super) nodes: Vec<Sums>,
    /// Whether all modes of a node agree in parameters and sync sizes, so that only compute time tells them apart. Not
    /// made use of where figures are far apart: costs and savings are then summed mode by mode.
    pub(super) uniform: bool,
    /// By set.
    pub(super) sums: Vec<Sums>,
    /// Over all nodes in the mode with the most of each, and all edges as `edges_in`.
    pub(super) totals: Sums,
    /// By edge: what the head and the tail pay in their fastest modes, both directions.
    pub(super) edge_in: Vec<f64>,
    pub(super) edge_out: Vec<f64>,
    /// Bounds on the same over all modes, where these differ.
    pub(super) ranges: Option<EdgeRanges>,
}

/// Least and most bytes by edge, and of the edges that enter a set, by set.
#[derive(Debug)]
pub(super) struct EdgeRanges {
    pub(super) heads_pay: Vec<Span>,
    pub(super) tails_pay: Vec<Span>,
    pub(super) into: Vec<(Span, Span)>,
}

/// From the least to the most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Span {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Span { least: f64::INFINITY, most: 0.0 };
        let all = values.fold(none, |range, value| Span { least: range.least.min(value), most: range.most.max(value) });
        if all.least.is_finite() { all } else { Span::default() }
    }

    pub(super) fn add(&mut self, other: Span) {
        self.least += other.least;
        self.most += other.most;
    }
}

impl Degree {
    pub(super) fn new(
        dag: &Dag,
        profile: &PiperProfile,
        recompute: Recompute,
        t: u32,
        (sets, smaller, crossings): (&SuccessorSets, &Smaller, &Crossings),
        search: &Search,
    ) -> Option<Self> {
        let n = dag.len();
        let modes = |v: usize| profile.nodes[v].modes(t).unwrap_or_default();
        let choices: Vec<Vec<Choice>> = (0..n)
            .map(|v| {
                let choice = |(index, mode): (usize, &Mode)| Choice {
                    index,
                    time_s: mode.time_s,
                    parameters: mode.parameters,
                    memory_a: mode.memory_a,
                    memory_b: mode.memory_b,
                };
                recompute.allowed(modes(v)).map(choice).collect()
            })
            .collect();
        let uniform = (0..n).all(|v| {
            choices[v].windows(2).all(|pair| {
                let (a, b) = (&modes(v)[pair[0].index], &modes(v)[pair[1].index]);
                a.parameters == b.parameters && a.sync_in == b.sync_in && a.sync_out == b.sync_out
            })
        });
        let fastest: Vec<usize> = choices.iter().map(|list| first_least(list, |choice| choice.time_s)).collect();
        let sync = |v: usize, slot: usize, incoming: bool| match choices[v].get(fastest[v]) {
            Some(choice) if incoming => modes(v)[choice.index].sync_in[slot],
            Some(choice) => modes(v)[choice.index].sync_out[slot],
            None => 0.0,
        };
        let (mut edge_in, mut edge_out) = (vec![0.0; dag.edges().len()], vec![0.0; dag.edges().len()]);
        for v in 0..n {
            for (slot, &edge) in dag.in_edges(v).iter().enumerate() {
                edge_in[edge as usize] = 2.0 * (profile.edge_bytes[edge as usize] + sync(v, slot, true));
            }
            for (slot, &edge) in dag.out_edges(v).iter().enumerate() {
                edge_out[edge as usize] = 2.0 * (profile.edge_bytes[edge as usize] + sync(v, slot, false));
            }
        }
        let nodes: Vec<Sums> =
            choices.iter().zip(&fastest).map(|(choices, &fastest)| Sums::of_node(choices, fastest)).collect();
        let mut sums = smaller.summed(sets, |sums: &mut Sums, v| sums.add(&nodes[v]));
        every(sets).zip(&mut sums).try_for_each(|(set, sums)| {
            for crossing in crossings.of(dag, sets, set).iter() {
                sums.edges_in += edge_in[crossing.edge as usize];
                sums.edges_out += edge_out[crossing.edge as usize];
            }
            (!search.cancelled()).then_some(())
        })?;
        let ranges = match uniform {
            true => None,
            false => Some(EdgeRanges::new(dag, profile, t, &choices, (sets, crossings), search)?),
        };
        let mut totals = Sums::default();
        for choices in &choices {
            let most = |of: &dyn Fn(&Choice) -> f64| choices.iter().map(of).fold(0.0, f64::max);
            totals.time_s += most(&|choice| choice.time_s);
            totals.parameters += most(&|choice| choice.parameters);
        }
        totals.edges_in = edge_in.iter().chain(&edge_out).sum::<f64>() * 2.0;
        Some(Degree { t, choices, fastest, nodes, uniform, sums, totals, edge_in, edge_out, ranges })
    }
}

impl EdgeRanges {
    /// `None` if the search was cancelled meanwhile.
    pub(super) fn new(
        dag: &Dag,
        profile: &PiperProfile,
        t: u32,
        choices: &[Vec<Choice>],
        (sets, crossings): (&SuccessorSets, &Crossings),
        search: &Search,
    ) -> Option<Self> {
        let edges = dag.edges().len();
        let (mut heads_pay, mut tails_pay) = (vec![Span::default(); edges], vec![Span::default(); edges]);
        for (v, choices) in choices.iter().enumerate() {
            let modes = profile.nodes[v].modes(t).unwrap_or_default();
            let span = |edge: u32, sync: &dyn Fn(&Mode) -> f64| {
                let pays = |choice: &Choice| 2.0 * (profile.edge_bytes[edge as usize] + sync(&modes[choice.index]));
                Span::of(choices.iter().map(pays))
            };
            for (slot, &edge) in dag.in_edges(v).iter().enumerate() {
                heads_pay[edge as usize] = span(edge, &|mode| mode.sync_in[slot]);
            }
            for (slot, &edge) in dag.out_edges(v).iter().enumerate() {
                tails_pay[edge as usize] = span(edge, &|mode| mode.sync_out[slot]);
            }
        }
        let into = |set: usize| {
            let mut sums = (Span::default(), Span::default());
            for crossing in crossings.of(dag, sets, set).iter() {
                sums.0.add(heads_pay[crossing.edge as usize]);
                sums.1.add(tails_pay[crossing.edge as usize]);
            }
            (!search.cancelled()).then_some(sums)
        };
        let into = every(sets).map(into).collect::<Option<_>>()?;
        Some(EdgeRanges { heads_pay, tails_pay, into })
    }

    pub(super) fn of_stage(&self, sets: &SuccessorSets, outer: usize, inner: usize, crossings: &[Crossing]) -> Span {
        let mut past = Span::default();
        for crossing in crossings.iter().filter(|crossing| sets.contains(inner, crossing.head as usize)) {
            past.add(self.heads_pay[crossing.edge as usize]);
            past.add(self.tails_pay[crossing.edge as usize]);
        }
        let (heads, tails) = (self.into[outer].0, self.into[inner].1);
        Span { least: (heads.least + tails.least - past.least).max(0.0), most: heads.most + tails.most - past.most }
    }
}

/// Position of the first least element by a key; 0 for an empty list.
pub(super) fn first_least<T>(list: &[T], key: impl Fn(&T) -> f64) -> usize {
    (1..list.len()).fold(0, |best, i| if key(&list[i]) < key(&list[best]) { i } else { best })
}
