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
//! added up one by one instead. Time `O(sets · (n + m) · degrees)`, memory `O(sets · degrees)`.
//!
//! Published formulas (Piper, section 4): `load = (edges / d + 4 (d − 1) w / d / N) / W + compute / d`.

use std::ops::Range;

use crate::{
    cluster::Limits,
    graph::{Dag, DownSets},
    planner::Search,
    workload::{Mode, PiperProfile, Workload},
};

use super::settings::Settings;
use crate::planner::pipeline_options::Recompute;

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
    time_s: f64,
    parameters: f64,
    memory_a: f64,
    memory_b: f64,
    least_a: f64,
    least_b: f64,
    /// What heads pay for the edges that enter the set.
    edges_in: f64,
    /// What tails pay for the edges that enter the set.
    edges_out: f64,
    /// Nodes that do not offer the degree.
    unsupported: u32,
}

impl Sums {
    /// Adds a node by its modes, none if it does not offer the degree.
    fn add(&mut self, choices: &[Choice], fastest: usize) {
        let Some(choice) = choices.get(fastest) else {
            self.unsupported += 1;
            return;
        };
        self.time_s += choice.time_s;
        self.parameters += choice.parameters;
        self.memory_a += choice.memory_a;
        self.memory_b += choice.memory_b;
        self.least_a += choices.iter().map(|c| c.memory_a).fold(f64::INFINITY, f64::min);
        self.least_b += choices.iter().map(|c| c.memory_b).fold(f64::INFINITY, f64::min);
    }
}

/// Everything at one tensor-parallel degree.
#[derive(Debug)]
pub(super) struct Degree {
    pub(super) t: u32,
    /// Allowed modes by node; empty where the node does not offer the degree.
    pub(super) choices: Vec<Vec<Choice>>,
    /// Position of the fastest mode by node (the first among equals).
    pub(super) fastest: Vec<usize>,
    /// Whether all modes of a node agree in parameters and sync sizes, so that only compute time tells them apart. Not
    /// made use of where figures are far apart: costs and savings are then summed mode by mode.
    pub(super) uniform: bool,
    /// By set.
    sums: Vec<Sums>,
    /// Over all nodes in the mode with the most of each, and all edges as `edges_in`.
    totals: Sums,
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
    into: Vec<(Span, Span)>,
}

/// From the least to the most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Span {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let none = Span { least: f64::INFINITY, most: 0.0 };
        let all = values.fold(none, |range, value| Span { least: range.least.min(value), most: range.most.max(value) });
        if all.least.is_finite() { all } else { Span::default() }
    }

    fn add(&mut self, other: Span) {
        self.least += other.least;
        self.most += other.most;
    }
}

/// An edge across the border of a set, from outside into it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    pub(super) edge: u32,
    pub(super) head: u32,
}

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
pub(super) struct Model<'a> {
    pub(super) dag: &'a Dag,
    pub(super) profile: &'a PiperProfile,
    pub(super) sets: DownSets,
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
    /// By set: a smaller one within it, that lacks few of its nodes.
    pub(super) within: Vec<u32>,
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

/// Whether a mode recomputes activations, told by its name as in the published files.
pub(super) fn recomputes(mode: &Mode) -> bool {
    mode.id.to_ascii_lowercase().contains("recomp")
}

impl<'a> Model<'a> {
    /// Builds the tables; `None` if the search was cancelled meanwhile.
    pub(super) fn new(
        workload: &'a Workload,
        profile: &'a PiperProfile,
        limits: &Limits,
        settings: &Settings,
        sets: DownSets,
        search: &Search,
    ) -> Option<Self> {
        let dag = &workload.dag;
        let most_replicas = limits.microbatches.min(limits.devices);
        let replicas = if settings.data_parallel { divisors(limits.microbatches, most_replicas) } else { vec![1] };
        let mut degrees: Vec<Degree> = profile
            .degrees()
            .into_iter()
            .filter(|&t| t <= limits.devices && (settings.tensor_parallel || t == 1))
            .map(|t| Degree::new(dag, profile, settings.recompute, t, &sets, search))
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
            (0..sets.len()).map(|set| sets.difference(set, 0).iter().map(|&v| node_seconds[v]).sum()).collect();
        let mut by_device_seconds: Vec<u32> = (0..sets.len() as u32).collect();
        by_device_seconds.sort_by(|&a, &b| device_seconds[a as usize].total_cmp(&device_seconds[b as usize]));
        let whole_bytes = degrees.iter().flat_map(|degree| degree.choices.iter().flatten()).all(|choice| {
            choice.memory_a.fract() == 0.0
                && choice.memory_b.fract() == 0.0
                && choice.memory_b < 1e15
                && choice.memory_a < 1e12
        });
        let within = (0..sets.len()).map(|set| within(&sets, set)).collect();
        let seconds_each = device_seconds[sets.len() - 1] / f64::from(limits.devices);
        let far_apart = degrees.iter().any(|degree| {
            let all = &degree.sums[sets.len() - 1];
            let memory = all.memory_a * f64::from(most_replicas) + all.memory_b;
            let gradients = 4.0 * all.parameters / f64::from(limits.microbatches) / limits.bandwidth_bytes_per_s;
            all.time_s > FAR_APART * seconds_each
                || gradients > FAR_APART * seconds_each
                || (!whole_bytes && memory > FAR_APART * limits.memory_bytes)
        });
        for degree in &mut degrees {
            degree.uniform &= !far_apart;
        }
        Some(Model {
            dag,
            profile,
            sets,
            degrees,
            replicas,
            limits: *limits,
            most_replicas,
            device_seconds,
            by_device_seconds,
            within,
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
    pub(super) fn crossings(&self, set: usize) -> Vec<Crossing> {
        let crosses = |&(edge, &(u, v)): &(usize, &(u32, u32))| {
            let _ = edge;
            self.sets.contains(set, v as usize) && !self.sets.contains(set, u as usize)
        };
        let crossing = |(edge, &(_, head)): (usize, &(u32, u32))| Crossing { edge: edge as u32, head };
        self.dag.edges().iter().enumerate().filter(crosses).map(crossing).collect()
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
            for v in self.sets.difference(outer, inner) {
                sums.add(&degree.choices[v], degree.fastest[v]);
            }
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

    /// The fewest replicas with which the stage `outer \ inner` may keep to `target`, going by compute alone; `None` if some
    /// node does not offer the degree, or if with `y` microbatches in flight not even the smallest modes fit.
    #[inline]
    pub(super) fn least_replicas(
        &self,
        degree: usize,
        (outer, inner): (usize, usize),
        y: f64,
        target: f64,
        memory_bytes: f64,
    ) -> Option<u32> {
        let nodes = self.between(&self.degrees[degree], outer, inner);
        if nodes.unsupported != 0 || nodes.least_a * y + nodes.least_b > memory_bytes * (1.0 + 1e-9) {
            return None;
        }
        Some(whole_replicas(nodes.time_s / target))
    }

    /// The fewest replicas with which a stage may keep to `target`, going by its cheapest edges and
    /// modes.
    #[inline]
    pub(super) fn least_replicas_of(&self, stage: &StageCost, target: f64) -> u32 {
        let links = if self.far_apart { 0.0 } else { stage.edge_least / self.limits.bandwidth_bytes_per_s };
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
        (edge_bytes / replicas + resync) / self.limits.bandwidth_bytes_per_s + time_s / replicas
    }
}

impl Degree {
    fn new(
        dag: &Dag,
        profile: &PiperProfile,
        recompute: Recompute,
        t: u32,
        sets: &DownSets,
        search: &Search,
    ) -> Option<Self> {
        let n = dag.len();
        let allowed = |mode: &Mode| match recompute {
            Recompute::Never => !recomputes(mode),
            Recompute::Always => recomputes(mode),
            Recompute::Auto | Recompute::AllOrNone => true,
        };
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
                modes(v).iter().enumerate().filter(|(_, mode)| allowed(mode)).map(choice).collect()
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
        let one = |set| (!search.cancelled()).then(|| sums(dag, sets, set, &choices, &fastest, &edge_in, &edge_out));
        let sums = (0..sets.len()).map(one).collect::<Option<_>>()?;
        let ranges = (!uniform).then(|| EdgeRanges::new(dag, profile, t, &choices, sets));
        let mut totals = Sums::default();
        for choices in &choices {
            let most = |of: &dyn Fn(&Choice) -> f64| choices.iter().map(of).fold(0.0, f64::max);
            totals.time_s += most(&|choice| choice.time_s);
            totals.parameters += most(&|choice| choice.parameters);
        }
        totals.edges_in = edge_in.iter().chain(&edge_out).sum::<f64>() * 2.0;
        Some(Degree { t, choices, fastest, uniform, sums, totals, edge_in, edge_out, ranges })
    }
}

impl EdgeRanges {
    fn new(dag: &Dag, profile: &PiperProfile, t: u32, choices: &[Vec<Choice>], sets: &DownSets) -> Self {
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
            for (edge, &(u, v)) in dag.edges().iter().enumerate() {
                if sets.contains(set, v as usize) && !sets.contains(set, u as usize) {
                    sums.0.add(heads_pay[edge]);
                    sums.1.add(tails_pay[edge]);
                }
            }
            sums
        };
        let into = (0..sets.len()).map(into).collect();
        EdgeRanges { heads_pay, tails_pay, into }
    }

    fn of_stage(&self, sets: &DownSets, outer: usize, inner: usize, crossings: &[Crossing]) -> Span {
        let mut past = Span::default();
        for crossing in crossings.iter().filter(|crossing| sets.contains(inner, crossing.head as usize)) {
            past.add(self.heads_pay[crossing.edge as usize]);
            past.add(self.tails_pay[crossing.edge as usize]);
        }
        let (heads, tails) = (self.into[outer].0, self.into[inner].1);
        Span { least: (heads.least + tails.least - past.least).max(0.0), most: heads.most + tails.most - past.most }
    }
}

/// A smaller set within one, the largest among the last few before it.
fn within(sets: &DownSets, set: usize) -> u32 {
    const LOOKED_AT: usize = 8;
    if let Some(&below) = sets.below(set).and_then(<[u32]>::first) {
        return below;
    }
    let mut before = (set.saturating_sub(LOOKED_AT)..set).rev();
    before.find(|&inner| sets.is_subset(inner, set)).unwrap_or(0) as u32
}

fn sums(
    dag: &Dag,
    sets: &DownSets,
    set: usize,
    choices: &[Vec<Choice>],
    fastest: &[usize],
    edge_in: &[f64],
    edge_out: &[f64],
) -> Sums {
    let mut sums = Sums::default();
    for v in sets.difference(set, 0) {
        sums.add(&choices[v], fastest[v]);
    }
    for (edge, &(u, v)) in dag.edges().iter().enumerate() {
        if sets.contains(set, v as usize) && !sets.contains(set, u as usize) {
            sums.edges_in += edge_in[edge];
            sums.edges_out += edge_out[edge];
        }
    }
    sums
}

/// Replicas of which so many are needed, but for rounding.
#[inline]
fn whole_replicas(needed: f64) -> u32 {
    let replicas = (needed * (1.0 - 1e-9)).ceil();
    // Not a number where there is neither work nor time for it.
    if replicas > 1.0 { replicas.min(f64::from(u32::MAX)) as u32 } else { 1 }
}

/// Position of the first least element by a key; 0 for an empty list.
pub(super) fn first_least<T>(list: &[T], key: impl Fn(&T) -> f64) -> usize {
    (1..list.len()).fold(0, |best, i| if key(&list[i]) < key(&list[best]) { i } else { best })
}
