//! Piper's cost model over a family of admissible sets: what a stage `C = D \ D'` costs, in constant time.
//!
//! Everything a stage's cost is made of is a sum over its nodes or over the edges across its border. Sums over nodes are
//! differences of sums over `D` and `D'`; for the edges, with `in(e)` what the head pays and `out(e)` what the tail pays,
//!
//! ```text
//! edges(C) = in(edges into D) + out(edges into D') − (in + out)(edges from outside D straight into D')
//! ```
//!
//! so only the last term depends on the pair. Where a file's figures are too far apart for differences, a stage's nodes are
//! added up one by one instead. Time `O(sets · n)` for device-seconds, and for each degree one step for every node that a set
//! adds to a smaller one ([`super::smaller`]) and every edge across its border; memory `O(sets · degrees)` and these edges
//! ([`super::crossings`]).
//!
//! Published formulas (Piper, section 4): `load = (edges / d + 4 (d − 1) w / d / N) / W + compute / d`.

use std::{borrow::Cow, ops::Range};

use rayon::prelude::*;

use crate::{
    cluster::Limits,
    graph::{Dag, SuccessorSets},
    planner::Search,
    workload::{PiperProfile, Workload},
};

pub(super) use super::{
    crossings::{Crossing, Crossings},
    degree::{Choice, Degree, Span, Sums, first_least},
};
use super::{
    degree::every,
    settings::PiperSettings,
    smaller::{Added, Smaller, within},
};

/// Cost of a stage at one tensor degree with every node in its fastest mode, as a function of the replicas.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageCost {
    pub(super) time_s: f64,
    pub(super) parameters: f64,
    pub(super) edge_bytes: f64,
    /// Bytes over the edges whatever modes are chosen: at the least, at the most.
    pub(super) edge_least: f64,
    pub(super) edge_most: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
    pub(super) least_a: f64,
    pub(super) least_b: f64,
}

/// A Piper problem over a family of admissible sets.
pub(super) struct PiperModel<'a> {
    pub(super) dag: &'a Dag,
    pub(super) profile: &'a PiperProfile,
    pub(super) sets: SuccessorSets,
    crossings: Crossings,
    pub(super) degrees: Vec<Degree>,
    /// Numbers of replicas a stage may have, ascending: divisors of the microbatches.
    pub(super) replicas: Vec<u32>,
    pub(super) limits: Limits,
    /// The most replicas all stages may have together: `min(N, k)`.
    pub(super) most_replicas: u32,
    /// By set: the least device-seconds its nodes can take, whatever degree and mode.
    pub(super) device_seconds: Vec<f64>,
    /// Sets by ascending device-seconds.
    pub(super) by_device_seconds: Vec<u32>,
    /// By set: its place among these.
    pub(super) places: Vec<u32>,
    pub(super) smaller: Smaller,
    /// Whether all memory figures are whole numbers, so that sums are exact in any order.
    pub(super) whole_bytes: bool,
    /// Whether differences of sums would drown small figures in large ones: files exclude a mode by an absurd figure.
    pub(super) far_apart: bool,
}

/// Sums so many times larger than what decides leave a difference too few digits.
const FAR_APART: f64 = 1e6;

fn divisors(n: u32, most: u32) -> Vec<u32> {
    (1..=most.min(n)).filter(|&d| n.is_multiple_of(d)).collect()
}

impl<'a> PiperModel<'a> {
    /// Builds the tables; `None` if the search was cancelled meanwhile.
    pub(super) fn new(
        workload: &'a Workload,
        profile: &'a PiperProfile,
        limits: &Limits,
        settings: &PiperSettings,
        sets: SuccessorSets,
        search: &Search,
    ) -> Option<Self> {
        let dag = &workload.dag;
        let most_replicas = limits.microbatches.min(limits.devices);
        let replicas = if settings.data_parallel { divisors(limits.microbatches, most_replicas) } else { vec![1] };
        let within = within(&sets);
        let crossings = || Crossings::new(dag, &sets, &within, search);
        let (crossings, added) = rayon::join(crossings, || Added::new(&sets, &within));
        let (crossings, smaller) = (crossings?, Smaller { within, added });
        let mut degrees: Vec<Degree> = profile
            .degrees()
            .into_par_iter()
            .filter(|&t| t <= limits.devices && (settings.tensor_parallel || t == 1))
            .map(|t| Degree::new(dag, profile, settings.recompute, t, (&sets, &smaller, &crossings), search))
            .collect::<Option<_>>()?;
        let node_seconds: Vec<f64> = (0..dag.len())
            .map(|v| {
                let fastest = |degree: &Degree| {
                    let choices = &degree.choices[v];
                    (!choices.is_empty()).then(|| f64::from(degree.t) * choices[degree.fastest[v]].time_s)
                };
                degrees.iter().filter_map(fastest).fold(f64::INFINITY, f64::min)
            })
            .collect();
        let device_seconds: Vec<f64> =
            every(&sets).map(|set| sets.members(set).map(|v| node_seconds[v]).sum()).collect();
        let mut by_device_seconds: Vec<u32> = (0..sets.len() as u32).collect();
        by_device_seconds.par_sort_by(|&a, &b| device_seconds[a as usize].total_cmp(&device_seconds[b as usize]));
        let mut places = vec![0; sets.len()];
        (0..).zip(&by_device_seconds).for_each(|(place, &set)| places[set as usize] = place);
        let whole_bytes = degrees.iter().flat_map(|degree| degree.choices.iter().flatten()).all(|choice| {
            choice.memory_a.fract() == 0.0
                && choice.memory_b.fract() == 0.0
                && choice.memory_b < 1e15
                && choice.memory_a < 1e12
        });
        let seconds_each = device_seconds[sets.len() - 1] / f64::from(limits.devices);
        let far_apart = degrees.iter().any(|degree| {
            let all = &degree.sums[sets.len() - 1];
            let memory = all.memory_a * f64::from(most_replicas) + all.memory_b;
            let gradients = 4.0 * all.parameters / f64::from(limits.microbatches) / limits.bandwidth();
            all.time_s > FAR_APART * seconds_each
                || gradients > FAR_APART * seconds_each
                || (!whole_bytes && memory > FAR_APART * limits.memory())
        });
        for degree in &mut degrees {
            degree.uniform &= !far_apart;
        }
        Some(PiperModel {
            dag,
            profile,
            sets,
            crossings,
            degrees,
            replicas,
            limits: limits.clone(),
            most_replicas,
            device_seconds,
            by_device_seconds,
            places,
            smaller,
            whole_bytes,
            far_apart,
        })
    }

    /// Index of the full set.
    pub(super) fn full(&self) -> usize {
        self.sets.len() - 1
    }

    /// The load if all work were shared out evenly: none is less.
    pub(super) fn even_share(&self) -> f64 {
        self.device_seconds[self.full()] / f64::from(self.limits.devices)
    }

    /// Ranges of sets of one size, from one node up.
    pub(super) fn levels(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = 1;
        std::iter::from_fn(move || {
            let from = start;
            let size = (from < self.sets.len()).then(|| self.sets.size(from))?;
            while start < self.sets.len() && self.sets.size(start) == size {
                start += 1;
            }
            Some(from..start)
        })
    }

    /// The most sets of one size.
    pub(super) fn widest_level(&self) -> usize {
        self.levels().map(|level| level.len()).max().unwrap_or(0)
    }

    /// A node that no allowed degree and mode can run, if there is one.
    pub(super) fn impossible_node(&self) -> Option<usize> {
        (0..self.dag.len()).find(|&v| self.degrees.iter().all(|degree| degree.choices[v].is_empty()))
    }

    /// The edges from outside `set` into it.
    #[inline]
    pub(super) fn crossings(&self, set: usize) -> Cow<'_, [Crossing]> {
        self.crossings.of(self.dag, &self.sets, set)
    }

    /// Cost of the stage `outer \ inner` at a degree, or `None` if some node does not offer the degree.
    /// `crossings` are those of `outer`.
    pub(super) fn stage(&self, degree: usize, outer: usize, inner: usize, crossings: &[Crossing]) -> Option<StageCost> {
        let degree = &self.degrees[degree];
        let (a, b) = (&degree.sums[outer], &degree.sums[inner]);
        if a.unsupported != b.unsupported {
            return None;
        }
        let past: f64 = crossings
            .iter()
            .filter(|crossing| self.sets.contains(inner, crossing.head as usize))
            .map(|crossing| degree.edge_in[crossing.edge as usize] + degree.edge_out[crossing.edge as usize])
            .sum();
        let nodes = self.between(degree, outer, inner);
        let edge_bytes = (a.edges_in + b.edges_out - past).max(0.0);
        let edges = match &degree.ranges {
            Some(ranges) => ranges.of_stage(&self.sets, outer, inner, crossings),
            None => Span { least: edge_bytes, most: edge_bytes },
        };
        Some(StageCost {
            time_s: nodes.time_s,
            parameters: nodes.parameters,
            edge_bytes,
            edge_least: edges.least,
            edge_most: edges.most,
            memory_a: nodes.memory_a,
            memory_b: nodes.memory_b,
            least_a: nodes.least_a,
            least_b: nodes.least_b,
        })
    }

    /// Sums over the nodes of `outer \ inner`; nothing about edges.
    #[inline]
    fn between(&self, degree: &Degree, outer: usize, inner: usize) -> Sums {
        let (a, b) = (&degree.sums[outer], &degree.sums[inner]);
        if self.far_apart {
            let mut sums = Sums::default();
            self.sets.beyond(outer, inner).for_each(|v| sums.add(&degree.nodes[v]));
            return sums;
        }
        Sums {
            time_s: a.time_s - b.time_s,
            parameters: a.parameters - b.parameters,
            memory_a: a.memory_a - b.memory_a,
            memory_b: a.memory_b - b.memory_b,
            least_a: a.least_a - b.least_a,
            least_b: a.least_b - b.least_b,
            unsupported: u32::from(a.unsupported != b.unsupported),
            ..Sums::default()
        }
    }

    /// Whether the stage `outer \ inner` could keep to `target` at a degree with `most_d` replicas and one microbatch in
    /// flight, going by compute and the smallest modes alone. If not, no larger stage of `outer` could.
    #[inline]
    pub(super) fn may_fit(
        &self,
        degree: usize,
        outer: usize,
        inner: usize,
        most_d: u32,
        target: f64,
        memory_bytes: f64,
    ) -> bool {
        let nodes = self.between(&self.degrees[degree], outer, inner);
        nodes.unsupported == 0
            && nodes.time_s <= f64::from(most_d) * target * (1.0 + 1e-9)
            && nodes.least_a + nodes.least_b <= memory_bytes * (1.0 + 1e-9)
    }

    /// The fewest replicas with which a stage may keep to `target`, going by its cheapest edges and
    /// modes.
    #[inline]
    pub(super) fn least_replicas_of(&self, stage: &StageCost, target: f64) -> u32 {
        let links = if self.far_apart { 0.0 } else { stage.edge_least / self.limits.bandwidth() };
        whole_replicas((stage.time_s + links) / target)
    }

    /// What a node in a given mode adds to its stage's load with `d` replicas. `inside` tells the stage's nodes.
    pub(super) fn contribution(
        &self,
        degree: usize,
        node: usize,
        choice: &Choice,
        d: u32,
        inside: impl Fn(usize) -> bool,
    ) -> f64 {
        let mode = &self.profile.nodes[node].modes(self.degrees[degree].t).expect("the choice is of this degree")
            [choice.index];
        let edges = self.dag.edges();
        let mut bytes = 0.0;
        for (slot, &edge) in self.dag.in_edges(node).iter().enumerate() {
            if !inside(edges[edge as usize].0 as usize) {
                bytes += 2.0 * (self.profile.edge_bytes[edge as usize] + mode.sync_in[slot]);
            }
        }
        for (slot, &edge) in self.dag.out_edges(node).iter().enumerate() {
            if !inside(edges[edge as usize].1 as usize) {
                bytes += 2.0 * (self.profile.edge_bytes[edge as usize] + mode.sync_out[slot]);
            }
        }
        self.load(choice.time_s, choice.parameters, bytes, d)
    }

    /// Seconds on one replica of everything at a degree and of all its edges: what sums are taken from.
    pub(super) fn most_seconds(&self, degree: usize, d: u32) -> f64 {
        let all = &self.degrees[degree].totals;
        self.load(all.time_s, all.parameters, all.edges_in, d) * f64::from(d)
    }

    /// The load of a stage with these sums and `d` replicas, seconds per sample.
    #[inline]
    pub(super) fn load(&self, time_s: f64, parameters: f64, edge_bytes: f64, d: u32) -> f64 {
        let replicas = f64::from(d);
        let resync = 4.0 * (replicas - 1.0) * parameters / replicas / f64::from(self.limits.microbatches);
        (edge_bytes / replicas + resync) / self.limits.bandwidth() + time_s / replicas
    }
}

/// Replicas of which so many are needed, but for rounding.
#[inline]
fn whole_replicas(needed: f64) -> u32 {
    let replicas = (needed * (1.0 - 1e-9)).ceil();
    // Not a number where there is neither work nor time for it.
    if replicas > 1.0 { replicas.min(f64::from(u32::MAX)) as u32 } else { 1 }
}
