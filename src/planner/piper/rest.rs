//! How many devices a part of the network needs at the least, whatever its stages.
//!
//! A stage on `t · d` devices that keeps to the load `T` within `M` bytes has at least one microbatch in flight, so for any
//! share `λ` between 0 and 1
//!
//! ```text
//! t · d  ≥  λ · t · (compute + edges / W) / T  +  (1 − λ) · t · memory / M
//! ```
//!
//! and both terms are sums over its nodes. Each node takes the degree and mode in which it adds least; what that comes to
//! bounds the devices of any set of nodes from below. With `λ = 1` it is the work shared out evenly; less tells where memory
//! forces slower modes, or more devices. The least `T` for which the whole network's bound leaves enough devices bounds every
//! plan.

use super::{
    model::{Crossing, Model},
    probe::Allowed,
};

/// Shares of time against memory that are looked at.
const SHARES: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Halvings of the load.
const HALVINGS: usize = 40;
/// Slack for rounding, in devices and as a share of them.
const ROUNDING: f64 = 1e-9;

/// Devices by set, at one load.
pub(super) struct Rest {
    /// For each share, by set: what the set adds.
    sums: Vec<Vec<f64>>,
    /// For each share, by edge: what its tail adds.
    edges: Vec<Vec<f64>>,
}

/// What one node adds, `None` where nothing can run it.
fn node(model: &Model<'_>, allowed: &[Allowed], v: usize, target: f64, memory_bytes: f64, share: f64) -> Option<f64> {
    let adds = |allowed: &Allowed| {
        let degree = &model.degrees[allowed.degree];
        let adds = degree.choices[v].iter().map(|choice| {
            let time = if share > 0.0 { share * choice.time_s / target } else { 0.0 };
            time + (1.0 - share) * choice.memory(1.0) / memory_bytes
        });
        adds.reduce(f64::min).map(|least| f64::from(degree.t) * least)
    };
    allowed.iter().filter_map(adds).reduce(f64::min)
}

/// What the tail of an edge adds if its head is in another stage.
fn edge(model: &Model<'_>, allowed: &[Allowed], edge: usize, target: f64, share: f64) -> f64 {
    let bytes = |allowed: &Allowed| {
        let degree = &model.degrees[allowed.degree];
        let least = degree.ranges.as_ref().map_or(degree.edge_out[edge], |ranges| ranges.tails_pay[edge].least);
        f64::from(degree.t) * least
    };
    let bytes = allowed.iter().map(bytes).fold(f64::INFINITY, f64::min);
    if bytes.is_finite() { share * bytes / model.limits.bandwidth_bytes_per_s / target } else { 0.0 }
}

impl Rest {
    /// `None` where sums say nothing: figures too far apart, or no load to keep to.
    pub(super) fn new(model: &Model<'_>, allowed: &[Allowed], target: f64, memory_bytes: f64) -> Option<Self> {
        if model.far_apart || !target.is_finite() || target <= 0.0 || memory_bytes <= 0.0 {
            return None;
        }
        let (mut sums, mut edges) = (vec![], vec![]);
        for share in SHARES {
            let adds: Vec<f64> = (0..model.dag.len())
                .map(|v| node(model, allowed, v, target, memory_bytes, share).unwrap_or(0.0))
                .collect();
            let mut by_set = vec![0.0; model.sets.len()];
            for set in 1..by_set.len() {
                let within = model.within[set] as usize;
                let more: f64 = model.sets.difference(set, within).into_iter().map(|v| adds[v]).sum();
                by_set[set] = by_set[within] + more;
            }
            sums.push(by_set);
            edges.push((0..model.dag.edges().len()).map(|e| edge(model, allowed, e, target, share)).collect());
        }
        Some(Rest { sums, edges })
    }

    /// Devices that everything outside `set` needs; `crossings` are the edges into the set.
    pub(super) fn devices(&self, set: usize, crossings: &[Crossing]) -> u32 {
        let mut most: f64 = 0.0;
        for (sums, edges) in self.sums.iter().zip(&self.edges) {
            let cut: f64 = crossings.iter().map(|crossing| edges[crossing.edge as usize]).sum();
            most = most.max(sums[sums.len() - 1] - sums[set] + cut);
        }
        (most * (1.0 - ROUNDING) - ROUNDING).ceil().max(0.0) as u32
    }
}

/// A load below which no plan can be on so many devices.
pub(super) fn least_load(model: &Model<'_>, allowed: &[Allowed], devices: u32) -> f64 {
    let memory_bytes = model.limits.memory_bytes;
    if model.far_apart || memory_bytes <= 0.0 {
        return 0.0;
    }
    let enough = |target: f64| {
        SHARES.iter().all(|&share| {
            let adds = |v: usize| node(model, allowed, v, target, memory_bytes, share).unwrap_or(0.0);
            (0..model.dag.len()).map(adds).sum::<f64>() * (1.0 - ROUNDING) <= f64::from(devices)
        })
    };
    let mut lower = 0.0;
    let mut upper = model.even_share().max(f64::MIN_POSITIVE);
    let mut doublings = 0;
    while !enough(upper) {
        (lower, upper) = (upper, upper * 2.0);
        doublings += 1;
        // No load would do: memory alone asks for more devices.
        if doublings > HALVINGS {
            return 0.0;
        }
    }
    if doublings == 0 {
        return upper * (1.0 - ROUNDING);
    }
    for _ in 0..HALVINGS {
        let middle = (lower + upper) / 2.0;
        if enough(middle) { upper = middle } else { lower = middle }
    }
    lower
}
