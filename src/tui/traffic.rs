//! What the stages of a plan send one another, by pair.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    plan::Plan,
    units,
    workload::{Profile, Workload, placement::SECONDS},
};

/// What goes from one stage to another for one sample or microbatch, forward and backward pass together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Flow {
    /// The stage that produces.
    pub from: usize,
    /// The stage that reads.
    pub to: usize,
    /// How much.
    pub amount: Amount,
}

/// How much is sent: as the profile states it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Amount {
    /// Bytes.
    Bytes(f64),
    /// Time on a link.
    Seconds(f64),
}

impl Amount {
    /// Without its unit; those of one plan have the same.
    pub(super) fn value(self) -> f64 {
        match self {
            Amount::Bytes(value) | Amount::Seconds(value) => value,
        }
    }

    /// With its unit.
    pub(super) fn text(self) -> String {
        match self {
            Amount::Bytes(bytes) => units::bytes(bytes),
            Amount::Seconds(seconds) => units::seconds(seconds),
        }
    }
}

/// All flows of a plan, by pair of stages. `O((nodes + edges) log stages)`.
pub(super) fn of(workload: &Workload, plan: &Plan) -> Vec<Flow> {
    let mut stage_of = vec![None; workload.nodes.len()];
    for (i, stage) in plan.stages.iter().enumerate() {
        for &node in &stage.nodes {
            if let Some(slot) = stage_of.get_mut(node) {
                *slot = Some(i);
            }
        }
    }
    let mut sums: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    match &workload.profile {
        Profile::Piper(profile) => {
            for (&(u, v), &bytes) in workload.dag.edges().iter().zip(&profile.edge_bytes) {
                if let (Some(from), Some(to)) = (stage_of[u as usize], stage_of[v as usize])
                    && from != to
                {
                    *sums.entry((from, to)).or_default() += bytes;
                }
            }
            flows(sums, Amount::Bytes)
        }
        // All operators share their devices: what they pass on is in the operators' own costs.
        Profile::Operators(_) => vec![],
        Profile::Layers(profile) => {
            // An output goes to the last stage that needs it, from one to the next.
            for (u, cost) in profile.nodes.iter().enumerate() {
                let last = workload.dag.successors(u).filter_map(|v| stage_of[v]).max();
                if let (Some(from), Some(last)) = (stage_of[u], last) {
                    for stage in from..last {
                        *sums.entry((stage, stage + 1)).or_default() += cost.activation();
                    }
                }
            }
            flows(sums, Amount::Bytes)
        }
        Profile::Placement(profile) => {
            for (u, cost) in profile.nodes.iter().enumerate() {
                let readers: BTreeSet<_> = workload.dag.successors(u).filter_map(|v| stage_of[v]).collect();
                for to in readers {
                    if let Some(from) = stage_of[u].filter(|&from| from != to) {
                        *sums.entry((from, to)).or_default() += cost.transfer * SECONDS;
                    }
                }
            }
            flows(sums, Amount::Seconds)
        }
    }
}

fn flows(sums: BTreeMap<(usize, usize), f64>, amount: fn(f64) -> Amount) -> Vec<Flow> {
    sums.into_iter().map(|((from, to), sum)| Flow { from, to, amount: amount(sum) }).collect()
}
