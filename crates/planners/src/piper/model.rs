//! Costs of stages over a family of closed sets: a stage `C = D \ D'` is costed in constant time.
//!
//! Published formula (Piper, section 4), with `W` the bandwidth and `N` the microbatches of an iteration:
//! `load = (edges / d + 4 (d − 1) w / d / N) / W + compute / d`. Every term is a sum over the nodes of the stage or over the
//! edges across its border. Sums over nodes are differences of sums over `D` and `D'`. For the edges, with `in(e)` the
//! bytes that the head of an edge pays and `out(e)` those that its tail pays,
//!
//! ```text
//! edges(C) = in(edges into D) + out(edges into D') − (in + out)(edges from outside D straight into D')
//! ```
//!
//! so only the last term depends on the pair of sets. Where the figures of a file are too far apart for differences, the nodes of
//! a stage are added up one by one. Building takes `O(sets · (n + m) · degrees)` time and `O(sets · degrees)` memory.

use crate::pipeline_options::Recompute;
use plantui_core::{
    cluster::Limits,
    graph::{Dag, SuccessorSets},
    search::Search,
    workload::{Mode, PiperProfile, Workload},
};

use super::settings::PiperSettings;

/// Sums this many times larger than the figures that decide leave a difference too few digits.
const FAR_APART: f64 = 1e6;

/// Mode of a node that the options allow.
#[derive(Debug, Clone, Copy)]
pub(super) struct AllowedMode {
    /// Index in the profile's list of modes.
    pub(super) index: usize,
    pub(super) time_s: f64,
    pub(super) parameters: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
}

impl AllowedMode {
    /// Bytes with `y` microbatches in flight.
    pub(super) fn memory(&self, y: f64) -> f64 {
        self.memory_a * y + self.memory_b
    }
}

/// Sums over a closed set at one tensor degree.
#[derive(Debug, Clone, Copy, Default)]
struct SetSums {
    /// Seconds and bytes of the fastest modes.
    time_s: f64,
    memory_a: f64,
    memory_b: f64,
    /// Least of all modes.
    parameters: f64,
    least_a: f64,
    least_b: f64,
    /// Bytes that heads pay for the edges that enter the set, least of all modes.
    edges_in: f64,
    /// The same for tails.
    edges_out: f64,
    /// Number of nodes that do not offer the degree.
    unsupported: u32,
}

impl SetSums {
    fn add(&mut self, modes: &[AllowedMode], fastest: usize) {
        let Some(mode) = modes.get(fastest) else {
            self.unsupported += 1;
            return;
        };
        let least = |of: fn(&AllowedMode) -> f64| modes.iter().map(of).fold(f64::INFINITY, f64::min);
        self.time_s += mode.time_s;
        self.memory_a += mode.memory_a;
        self.memory_b += mode.memory_b;
        self.parameters += least(|mode| mode.parameters);
        self.least_a += least(|mode| mode.memory_a);
        self.least_b += least(|mode| mode.memory_b);
    }
}

/// Costs at one tensor degree.
#[derive(Debug)]
pub(super) struct Degree {
    pub(super) t: u32,
    /// Allowed modes by node; empty where the node does not offer the degree.
    pub(super) modes: Vec<Vec<AllowedMode>>,
    /// Position of the fastest mode by node (the first among equals).
    pub(super) fastest: Vec<usize>,
    /// True if all modes of a node agree in parameters and sync sizes, so that a change of modes changes compute only.
    /// False where figures are far apart: costs are then summed mode by mode.
    pub(super) uniform: bool,
    sums: Vec<SetSums>,
    /// By edge: bytes that the head and the tail pay in both directions, least of all modes.
    edge_in: Vec<f64>,
    edge_out: Vec<f64>,
}

/// Edge from outside a closed set into it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crossing {
    edge: u32,
    head: u32,
}

/// Sums of a stage at one tensor degree. Time and memory are those of the fastest modes; parameters and edges are the least
/// of all modes, which are those of the fastest if modes are uniform.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageSums {
    pub(super) time_s: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
    pub(super) parameters: f64,
    pub(super) edge_bytes: f64,
    pub(super) least_a: f64,
    pub(super) least_b: f64,
}

/// Piper's problem over a family of closed sets.
pub(super) struct PiperModel<'a> {
    pub(super) dag: &'a Dag,
    pub(super) profile: &'a PiperProfile,
    pub(super) sets: SuccessorSets,
    pub(super) degrees: Vec<Degree>,
    /// Numbers of replicas that a stage may have, ascending: divisors of the microbatches.
    pub(super) replicas: Vec<u32>,
    pub(super) limits: Limits,
    /// Upper bound on the replicas of all stages together: `min(N, k)`.
    pub(super) most_replicas: u32,
    /// By set: lower bound on the device-seconds of its nodes, over all degrees and modes.
    pub(super) device_seconds: Vec<f64>,
    /// Sets by ascending device-seconds.
    pub(super) by_device_seconds: Vec<u32>,
    /// True for nodes whose stage never gets slower when it loses them at its front end: their compute is at least the transfers
    /// from their predecessors.
    pub(super) removable: Vec<bool>,
    /// True if all memory figures are whole numbers, so that sums are exact in any order.
    pub(super) whole_bytes: bool,
    /// True if differences of sums would drown small figures in large ones: some files exclude a mode by an absurd figure.
    pub(super) far_apart: bool,
}

impl<'a> PiperModel<'a> {
    /// Builds the tables; `None` if the search was cancelled.
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
        let crossings: Vec<Vec<Crossing>> = (0..sets.len()).map(|set| crossings(dag, &sets, set)).collect();
        let mut degrees: Vec<Degree> = profile
            .degrees()
            .into_iter()
            .filter(|&t| t <= limits.devices && (settings.tensor_parallel || t == 1))
            .map(|t| Degree::new(dag, profile, settings.recompute, t, (&sets, &crossings), search))
            .collect::<Option<_>>()?;
        let node_seconds: Vec<f64> = (0..dag.len())
            .map(|v| {
                let fastest = |degree: &Degree| {
                    let modes = &degree.modes[v];
                    (!modes.is_empty()).then(|| f64::from(degree.t) * modes[degree.fastest[v]].time_s)
                };
                degrees.iter().filter_map(fastest).fold(f64::INFINITY, f64::min)
            })
            .collect();
        let device_seconds: Vec<f64> =
            (0..sets.len()).map(|set| sets.members(set).map(|v| node_seconds[v]).sum()).collect();
        let mut by_device_seconds: Vec<u32> = (0..sets.len() as u32).collect();
        by_device_seconds.sort_by(|&a, &b| device_seconds[a as usize].total_cmp(&device_seconds[b as usize]));
        let whole_bytes = degrees.iter().flat_map(|degree| degree.modes.iter().flatten()).all(|mode| {
            mode.memory_a.fract() == 0.0 && mode.memory_b.fract() == 0.0 && mode.memory_b < 1e15 && mode.memory_a < 1e12
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
        let removable = (0..dag.len()).map(|v| is_removable(dag, profile, &degrees, v, limits.bandwidth())).collect();
        Some(PiperModel {
            dag,
            profile,
            sets,
            degrees,
            replicas,
            limits: limits.clone(),
            most_replicas,
            device_seconds,
            by_device_seconds,
            removable,
            whole_bytes,
            far_apart,
        })
    }

    /// Index of the full set.
    pub(super) fn full(&self) -> usize {
        self.sets.len() - 1
    }

    /// Lower bound on the load: all device-seconds shared out evenly over `devices`.
    pub(super) fn even_share(&self, devices: u32) -> f64 {
        self.device_seconds[self.full()] / f64::from(devices)
    }

    /// First node that no allowed degree and mode can run.
    pub(super) fn impossible_node(&self) -> Option<usize> {
        (0..self.dag.len()).find(|&v| self.degrees.iter().all(|degree| degree.modes[v].is_empty()))
    }

    /// Edges from outside `set` into it.
    pub(super) fn crossings(&self, set: usize) -> Vec<Crossing> {
        crossings(self.dag, &self.sets, set)
    }

    /// Sums of the stage `outer \ inner` at a degree; `None` if some node does not offer the degree.
    /// `crossings` are those of `outer`.
    pub(super) fn stage(&self, degree: usize, outer: usize, inner: usize, crossings: &[Crossing]) -> Option<StageSums> {
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
        Some(StageSums {
            time_s: nodes.time_s,
            parameters: nodes.parameters,
            edge_bytes: (a.edges_in + b.edges_out - past).max(0.0),
            memory_a: nodes.memory_a,
            memory_b: nodes.memory_b,
            least_a: nodes.least_a,
            least_b: nodes.least_b,
        })
    }

    /// Sums over the nodes of `outer \ inner`, edges left out.
    #[inline]
    fn between(&self, degree: &Degree, outer: usize, inner: usize) -> SetSums {
        let (a, b) = (&degree.sums[outer], &degree.sums[inner]);
        if self.far_apart {
            let mut sums = SetSums::default();
            self.sets.beyond(outer, inner).for_each(|v| sums.add(&degree.modes[v], degree.fastest[v]));
            return sums;
        }
        SetSums {
            time_s: a.time_s - b.time_s,
            parameters: a.parameters - b.parameters,
            memory_a: a.memory_a - b.memory_a,
            memory_b: a.memory_b - b.memory_b,
            least_a: a.least_a - b.least_a,
            least_b: a.least_b - b.least_b,
            unsupported: u32::from(a.unsupported != b.unsupported),
            ..SetSums::default()
        }
    }

    /// True if the stage `outer \ inner` may keep to `target` at a degree with `most_d` replicas and one microbatch in
    /// flight, by compute and the smallest modes alone. If false, the same holds for every larger stage of `outer`.
    #[inline]
    pub(super) fn may_fit(
        &self,
        degree: usize,
        (outer, inner): (usize, usize),
        most_d: u32,
        target: f64,
        memory_bytes: f64,
    ) -> bool {
        let nodes = self.between(&self.degrees[degree], outer, inner);
        nodes.unsupported == 0
            && nodes.time_s <= f64::from(most_d) * target * (1.0 + 1e-9)
            && nodes.least_a + nodes.least_b <= memory_bytes * (1.0 + 1e-9)
    }

    /// Load that a node in a given mode adds to its stage with `d` replicas; `inside` is true for the nodes of the stage.
    pub(super) fn contribution(
        &self,
        degree: usize,
        node: usize,
        allowed: &AllowedMode,
        d: u32,
        inside: impl Fn(usize) -> bool,
    ) -> f64 {
        let modes = self.profile.nodes[node].modes(self.degrees[degree].t).expect("the mode is of this degree");
        let mode = &modes[allowed.index];
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
        self.load(allowed.time_s, allowed.parameters, bytes, d)
    }

    /// Load of a stage with these sums and `d` replicas, seconds per sample.
    #[inline]
    pub(super) fn load(&self, time_s: f64, parameters: f64, edge_bytes: f64, d: u32) -> f64 {
        let replicas = f64::from(d);
        let gradients = 4.0 * (replicas - 1.0) * parameters / replicas / f64::from(self.limits.microbatches);
        (edge_bytes / replicas + gradients) / self.limits.bandwidth() + time_s / replicas
    }
}

impl Degree {
    fn new(
        dag: &Dag,
        profile: &PiperProfile,
        recompute: Recompute,
        t: u32,
        (sets, crossings): (&SuccessorSets, &[Vec<Crossing>]),
        search: &Search,
    ) -> Option<Self> {
        let n = dag.len();
        let profiled = |v: usize| profile.nodes[v].modes(t).unwrap_or_default();
        let allowed = |(index, mode): (usize, &Mode)| AllowedMode {
            index,
            time_s: mode.time_s,
            parameters: mode.parameters,
            memory_a: mode.memory_a,
            memory_b: mode.memory_b,
        };
        let modes: Vec<Vec<AllowedMode>> =
            (0..n).map(|v| recompute.allowed(profiled(v)).map(allowed).collect()).collect();
        let uniform = (0..n).all(|v| {
            modes[v].windows(2).all(|pair| {
                let (a, b) = (&profiled(v)[pair[0].index], &profiled(v)[pair[1].index]);
                a.parameters == b.parameters && a.sync_in == b.sync_in && a.sync_out == b.sync_out
            })
        });
        let fastest: Vec<usize> = modes.iter().map(|list| first_least(list, |mode| mode.time_s)).collect();
        let least = |v: usize, sync: &dyn Fn(&Mode) -> f64| {
            let least = modes[v].iter().map(|mode| sync(&profiled(v)[mode.index])).fold(f64::INFINITY, f64::min);
            if modes[v].is_empty() { 0.0 } else { least }
        };
        let (mut edge_in, mut edge_out) = (vec![0.0; dag.edges().len()], vec![0.0; dag.edges().len()]);
        for v in 0..n {
            for (slot, &edge) in dag.in_edges(v).iter().enumerate() {
                edge_in[edge as usize] =
                    2.0 * (profile.edge_bytes[edge as usize] + least(v, &|mode| mode.sync_in[slot]));
            }
            for (slot, &edge) in dag.out_edges(v).iter().enumerate() {
                edge_out[edge as usize] =
                    2.0 * (profile.edge_bytes[edge as usize] + least(v, &|mode| mode.sync_out[slot]));
            }
        }
        let mut sums = Vec::with_capacity(sets.len());
        for (set, crossings) in crossings.iter().enumerate() {
            if search.cancelled() {
                return None;
            }
            let mut of_set = SetSums::default();
            sets.members(set).for_each(|v| of_set.add(&modes[v], fastest[v]));
            for crossing in crossings {
                of_set.edges_in += edge_in[crossing.edge as usize];
                of_set.edges_out += edge_out[crossing.edge as usize];
            }
            sums.push(of_set);
        }
        Some(Degree { t, modes, fastest, uniform, sums, edge_in, edge_out })
    }
}

fn crossings(dag: &Dag, sets: &SuccessorSets, set: usize) -> Vec<Crossing> {
    let edges = dag.edges().iter().zip(0..);
    let crosses =
        |&(&(u, v), _): &(&(u32, u32), u32)| sets.contains(set, v as usize) && !sets.contains(set, u as usize);
    edges.filter(crosses).map(|(&(_, head), edge)| Crossing { edge, head }).collect()
}

fn is_removable(dag: &Dag, profile: &PiperProfile, degrees: &[Degree], v: usize, bandwidth: f64) -> bool {
    degrees.iter().all(|degree| {
        let sent = |&edge: &u32| {
            let u = dag.edges()[edge as usize].0 as usize;
            let slot = dag.out_edges(u).iter().position(|&own| own == edge).expect("an edge leaves its tail");
            let modes = profile.nodes[u].modes(degree.t).unwrap_or_default();
            let sync = modes.iter().map(|mode| mode.sync_out[slot]).fold(0.0, f64::max);
            2.0 * (profile.edge_bytes[edge as usize] + sync)
        };
        let Some(fastest) = degree.modes[v].get(degree.fastest[v]) else { return true };
        let transfers_s = dag.in_edges(v).iter().map(sent).sum::<f64>() / bandwidth;
        fastest.time_s >= transfers_s * (1.0 + 1e-9)
    })
}

fn divisors(n: u32, most: u32) -> Vec<u32> {
    (1..=most.min(n)).filter(|&d| n.is_multiple_of(d)).collect()
}

/// Position of the first least element by a key; 0 for an empty list.
pub(super) fn first_least<T>(list: &[T], key: impl Fn(&T) -> f64) -> usize {
    (1..list.len()).fold(0, |best, i| if key(&list[i]) < key(&list[best]) { i } else { best })
}
