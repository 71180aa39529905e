//! Cost of an equal partition from prefix sums along the order of the nodes.
//!
//! All stages have the same degrees and modes. So a stage's compute and memory are differences of prefix sums, in
//! constant time. Only edges between stages are visited one by one, once per number of stages. The differences contain
//! rounding errors. Every estimate bounds its error, and cases within the bound are scored by the check.
//!
//! `O(n + m)` per number of stages, then `O(stages + edges between them)` per degree and mode.

use plantui_core::{
    cluster::Limits,
    workload::{
        PiperProfile, Workload,
        piper::{Mode, RECOMPUTE, VANILLA},
    },
};

/// Nodes in the order of the split, with prefix sums for every degree and mode that all of them offer.
pub(super) struct Line<'a> {
    workload: &'a Workload,
    pub(super) order: Vec<usize>,
    /// Position of each node in the order.
    place: Vec<usize>,
    pub(super) kinds: Vec<Kind>,
}

/// A tensor degree and a mode, with prefix sums: entry `i` is the sum over the first `i` nodes.
pub(super) struct Kind {
    pub(super) t: u32,
    pub(super) mode: &'static str,
    time_s: Vec<f64>,
    parameters: Vec<f64>,
    memory_a: Vec<f64>,
    memory_b: Vec<f64>,
    /// Bytes that the head and the tail of each edge are charged if the edge crosses stages.
    heads_pay: Vec<f64>,
    tails_pay: Vec<f64>,
}

/// An edge between two stages, numbered from the first.
#[derive(Clone, Copy)]
pub(super) struct Between {
    edge: usize,
    from: usize,
    to: usize,
}

/// Load and memory of a plan, each with a bound on its error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) load_s: f64,
    pub(super) load_room: f64,
    pub(super) memory_bytes: f64,
    pub(super) memory_room: f64,
}

impl<'a> Line<'a> {
    pub(super) fn new(workload: &'a Workload, profile: &PiperProfile, order: Vec<usize>, degrees: &[u32]) -> Self {
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, &v)| place[v] = i);
        let kinds = degrees.iter().flat_map(|&t| [(t, VANILLA), (t, RECOMPUTE)]);
        let kinds = kinds.filter_map(|(t, mode)| Kind::new(workload, profile, &order, t, mode)).collect();
        Line { workload, order, place, kinds }
    }

    /// Returns the edges between stages that begin at these positions (ascending).
    pub(super) fn between(&self, begins: &[usize]) -> Vec<Between> {
        let mut stage_at = vec![0; self.order.len()];
        for (stage, &begin) in begins.iter().enumerate() {
            stage_at[begin..].iter_mut().take(self.end(begins, stage) - begin).for_each(|at| *at = stage);
        }
        let stage_of = |v: u32| stage_at[self.place[v as usize]];
        let edges = self.workload.dag.edges().iter().enumerate();
        let between = edges.map(|(edge, &(u, v))| Between { edge, from: stage_of(u), to: stage_of(v) });
        between.filter(|edge| edge.from != edge.to).collect()
    }

    /// Position where a stage ends (exclusive).
    pub(super) fn end(&self, begins: &[usize], stage: usize) -> usize {
        begins.get(stage + 1).copied().unwrap_or(self.order.len())
    }

    /// Estimates the cost of stages that begin at these positions, all of one kind, with `d` replicas each.
    pub(super) fn estimate(
        &self,
        kind: &Kind,
        begins: &[usize],
        between: &[Between],
        d: u32,
        limits: &Limits,
    ) -> Estimate {
        let mut edge_bytes = vec![0.0; begins.len()];
        for &Between { edge, from, to } in between {
            edge_bytes[from] += kind.tails_pay[edge];
            edge_bytes[to] += kind.heads_pay[edge];
        }
        let d = f64::from(d);
        // Same formula as the check: 4 (d − 1) / d of the parameters, once for all microbatches.
        let synced = 4.0 * (d - 1.0) / d / f64::from(limits.microbatches);
        let (mut load_s, mut memory_bytes): (f64, f64) = (0.0, 0.0);
        for (stage, &from) in begins.iter().enumerate() {
            let to = self.end(begins, stage);
            let sum = |list: &[f64]| list[to] - list[from];
            let bytes = edge_bytes[stage] / d + synced * sum(&kind.parameters);
            load_s = load_s.max(bytes / limits.bandwidth() + sum(&kind.time_s) / d);
            let in_flight = (begins.len() - stage) as f64;
            memory_bytes = memory_bytes.max(sum(&kind.memory_a) * in_flight + sum(&kind.memory_b));
        }
        let all = |list: &[f64]| list[list.len() - 1];
        let rounding = 4.0 * f64::EPSILON * (self.order.len() + begins.len() + between.len()) as f64;
        let seconds = all(&kind.time_s) / d + synced * all(&kind.parameters) / limits.bandwidth();
        let bytes = all(&kind.memory_a) * begins.len() as f64 + all(&kind.memory_b);
        let (load_room, memory_room) = (rounding * (seconds + load_s), rounding * bytes);
        Estimate { load_s, load_room, memory_bytes, memory_room }
    }
}

impl Kind {
    /// Builds the sums; `None` if some node does not offer this degree and mode.
    fn new(workload: &Workload, profile: &PiperProfile, order: &[usize], t: u32, mode: &'static str) -> Option<Self> {
        let dag = &workload.dag;
        let chosen = |v: usize| profile.nodes[v].modes(t)?.iter().find(|offered| offered.id == mode);
        let chosen: Vec<&Mode> = (0..order.len()).map(chosen).collect::<Option<_>>()?;
        let along = |cost: &dyn Fn(&Mode) -> f64| {
            let mut sums = Vec::with_capacity(order.len() + 1);
            let mut sum = 0.0;
            sums.push(sum);
            for &v in order {
                sum += cost(chosen[v]);
                sums.push(sum);
            }
            sums
        };
        let (mut heads_pay, mut tails_pay) = (vec![0.0; dag.edges().len()], vec![0.0; dag.edges().len()]);
        for (v, mode) in chosen.iter().enumerate() {
            for (&edge, sync) in dag.in_edges(v).iter().zip(&mode.sync_in) {
                heads_pay[edge as usize] = 2.0 * (profile.edge_bytes[edge as usize] + sync);
            }
            for (&edge, sync) in dag.out_edges(v).iter().zip(&mode.sync_out) {
                tails_pay[edge as usize] = 2.0 * (profile.edge_bytes[edge as usize] + sync);
            }
        }
        Some(Kind {
            t,
            mode,
            time_s: along(&|mode| mode.time_s),
            parameters: along(&|mode| mode.parameters),
            memory_a: along(&|mode| mode.memory_a),
            memory_b: along(&|mode| mode.memory_b),
            heads_pay,
            tails_pay,
        })
    }

    /// Device-seconds of all nodes on one group of `t` devices.
    pub(super) fn device_seconds(&self) -> f64 {
        f64::from(self.t) * self.time_s[self.time_s.len() - 1]
    }
}
