//! Communication between the workers of a plan of any family, taken from the simulated pipeline.
//!
//! A worker is one device's part of a plan: a stage, a replica, and a shard. Microbatch `m` runs on replica `m mod r`.
//! Replica `q` of a stage with `r` replicas therefore communicates with replica `p` of one with `s` iff `q ≡ p` modulo
//! `gcd(r, s)`, and each pair carries `1 / lcm(r, s)` of the bytes. Shards hold equal consecutive parts of a tensor,
//! and send the parts that overlap. Gradients return on the same pairs.
//!
//! A gradient all-reduce moves `2 (r−1)/r · W` bytes over each step of a ring once per batch; a microbatch has its part
//! of that. Shards of a replica all-reduce the boundary's tensor four times per node. No profile states this; a note
//! reports it as an assumption. `O(transfers · replicas · shards)` flows.

use std::collections::BTreeMap;

use super::pipeline::{Pipeline, Transfer};
use crate::units;

/// Part of a plan on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelShard {
    /// Stage of the worker.
    pub stage: u32,
    /// Replica of the stage.
    pub replica: u32,
    /// Shard of the replica.
    pub shard: u32,
}

/// Traffic from one worker to another, in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// Bytes per microbatch.
    pub bytes: f64,
}

/// Workers that all-reduce together.
#[derive(Debug, Clone, PartialEq)]
pub struct ReductionGroup {
    /// Members of the group, ascending.
    pub workers: Vec<usize>,
    /// Bytes per microbatch over each step of the ring.
    pub bytes: f64,
}

/// All communication of a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demands {
    /// Workers, stage by stage, replica by replica, as the plan numbers its devices.
    pub workers: Vec<ModelShard>,
    /// Flows in both directions, each ordered pair at most once.
    pub flows: Vec<Flow>,
    /// Groups of all-reduces.
    pub groups: Vec<ReductionGroup>,
    /// Assumptions.
    pub notes: Vec<String>,
}

/// Greatest common divisor.
pub(super) fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Length of the intersection of `[i/n, (i+1)/n)` and `[j/m, (j+1)/m)`.
fn overlap(i: u32, n: u32, j: u32, m: u32) -> f64 {
    let (i, n, j, m) = (f64::from(i), f64::from(n), f64::from(j), f64::from(m));
    (((i + 1.0) / n).min((j + 1.0) / m) - (i / n).max(j / m)).max(0.0)
}

impl Demands {
    /// Chain of workers, each exchanging `bytes` with the next in both directions.
    pub fn chain(bytes: &[f64]) -> Self {
        let workers = (0..=bytes.len() as u32).map(|stage| ModelShard { stage, replica: 0, shard: 0 }).collect();
        let flow = |(from, &bytes): (usize, &f64)| {
            [Flow { from, to: from + 1, bytes }, Flow { from: from + 1, to: from, bytes }]
        };
        Demands { workers, flows: bytes.iter().enumerate().flat_map(flow).collect(), ..Demands::default() }
    }

    /// Communication of a pipeline's workers. `counts`: number of nodes of each stage. `bandwidth` converts times to
    /// bytes if the profile has only times of transfers.
    pub fn of(pipeline: &Pipeline, counts: &[usize], bandwidth: f64) -> Self {
        let mut demands = Demands::default();
        let timed = pipeline.transfers.iter().all(|transfer| transfer.bytes == 0.0);
        let timed = timed && pipeline.transfers.iter().any(|transfer| transfer.seconds > 0.0);
        let bytes_of = |transfer: &Transfer| if timed { transfer.seconds * bandwidth } else { transfer.bytes };
        if timed {
            let at = units::bandwidth_exact(bandwidth);
            demands.notes.push(format!("the profile states transfers as times: they are assumed to be times at {at}"));
        }
        let mut first = vec![];
        for (stage, planned) in (0..).zip(&pipeline.stages) {
            first.push(demands.workers.len());
            for replica in 0..planned.replicas.max(1) {
                let shard = |shard| ModelShard { stage, replica, shard };
                demands.workers.extend((0..planned.devices.max(1)).map(shard));
            }
        }
        let index = |stage: usize, replica: u32, shard: u32| {
            first[stage] + (replica * pipeline.stages[stage].devices.max(1) + shard) as usize
        };
        let mut flows: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for transfer in pipeline.transfers.iter().filter(|t| t.from < t.to && t.to < pipeline.stages.len()) {
            let [a, b] = [transfer.from, transfer.to].map(|stage| &pipeline.stages[stage]);
            let (r, s) = (a.replicas.max(1), b.replicas.max(1));
            let common = gcd(r, s);
            let share = bytes_of(transfer) * f64::from(common) / f64::from(r) / f64::from(s);
            let pairs = (0..r).flat_map(|q| (0..s).filter(move |p| q % common == p % common).map(move |p| (q, p)));
            for (q, p) in pairs {
                for (i, n) in (0..a.devices.max(1)).map(|i| (i, a.devices.max(1))) {
                    for (j, m) in (0..b.devices.max(1)).map(|j| (j, b.devices.max(1))) {
                        let bytes = share * overlap(i, n, j, m);
                        if bytes > 0.0 {
                            let (from, to) = (index(transfer.from, q, i), index(transfer.to, p, j));
                            *flows.entry((from, to)).or_default() += bytes;
                            *flows.entry((to, from)).or_default() += bytes;
                        }
                    }
                }
            }
        }
        demands.flows = flows.into_iter().map(|((from, to), bytes)| Flow { from, to, bytes }).collect();
        let microbatches = f64::from(pipeline.microbatches.max(1));
        for (stage, planned) in pipeline.stages.iter().enumerate() {
            let (replicas, shards) = (planned.replicas.max(1), planned.devices.max(1));
            // If all devices of a stage work on each microbatch together, they count as its replicas.
            let by_sample = pipeline.samples_are_split;
            let reduced = planned.gradient_bytes / microbatches;
            let mut add = |workers: Vec<usize>, bytes: f64| {
                let n = workers.len() as f64;
                if n > 1.0 && bytes > 0.0 {
                    demands.groups.push(ReductionGroup { workers, bytes: 2.0 * (n - 1.0) / n * bytes });
                }
            };
            if by_sample {
                add((0..shards).map(|shard| index(stage, 0, shard)).collect(), reduced);
                continue;
            }
            for shard in 0..shards {
                add((0..replicas).map(|replica| index(stage, replica, shard)).collect(), reduced);
            }
            let touches = pipeline.transfers.iter().filter(|t| t.from == stage || t.to == stage);
            let boundary = touches.map(bytes_of).fold(0.0, f64::max);
            let times = 4.0 * counts.get(stage).map_or(1.0, |&nodes| nodes as f64) / f64::from(replicas);
            for replica in 0..replicas {
                add((0..shards).map(|shard| index(stage, replica, shard)).collect(), times * boundary);
            }
        }
        if !pipeline.samples_are_split && pipeline.stages.iter().any(|stage| stage.devices > 1) {
            let told = "the shards of a replica are assumed to all-reduce the largest tensor at its boundary four times per \
                node";
            demands.notes.push(told.into());
        }
        demands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{PipelineStage, Transfer};

    fn pipeline(replicas: &[(u32, u32)]) -> Pipeline {
        let stage = |&(replicas, devices): &(u32, u32)| PipelineStage {
            replicas,
            devices,
            gradient_bytes: 64.0,
            ..PipelineStage::default()
        };
        let transfer = |from| Transfer { from, to: from + 1, seconds: 1.0, bytes: 12.0 };
        Pipeline {
            stages: replicas.iter().map(stage).collect(),
            transfers: (0..replicas.len() - 1).map(transfer).collect(),
            microbatches: 8,
            ..Pipeline::default()
        }
    }

    #[test]
    fn replicas_talk_to_those_of_their_microbatches() {
        let demands = Demands::of(&pipeline(&[(2, 1), (4, 1)]), &[1, 1], 1.0);
        let forward: Vec<(usize, usize, f64)> =
            demands.flows.iter().filter(|flow| flow.from < flow.to).map(|f| (f.from, f.to, f.bytes)).collect();
        assert_eq!(forward, [(0, 2, 3.0), (0, 4, 3.0), (1, 3, 3.0), (1, 5, 3.0)]);
        // All bytes of a microbatch, both ways.
        assert_eq!(demands.flows.iter().map(|flow| flow.bytes).sum::<f64>(), 24.0);
        let groups: Vec<(&[usize], f64)> = demands.groups.iter().map(|g| (&g.workers[..], g.bytes)).collect();
        assert_eq!(groups, [(&[0, 1][..], 8.0), (&[2, 3, 4, 5][..], 12.0)]);
        let odd = Demands::of(&pipeline(&[(2, 1), (3, 1)]), &[1, 1], 1.0);
        assert_eq!(odd.flows.len(), 12);
    }

    #[test]
    fn shards_send_the_parts_that_overlap() {
        let demands = Demands::of(&pipeline(&[(1, 2), (1, 4)]), &[3, 1], 1.0);
        let from_first: Vec<(usize, f64)> =
            demands.flows.iter().filter(|f| f.from == 0).map(|f| (f.to, f.bytes)).collect();
        assert_eq!(from_first, [(2, 3.0), (3, 3.0)]);
        // Four all-reduces of 12 bytes for each of three nodes, of two shards.
        assert_eq!((demands.groups[0].workers.as_slice(), demands.groups[0].bytes), (&[0, 1][..], 144.0));
        assert_eq!(demands.notes.len(), 1);
        let split = Pipeline { samples_are_split: true, ..pipeline(&[(1, 2), (1, 4)]) };
        let demands = Demands::of(&split, &[3, 1], 1.0);
        assert_eq!((demands.groups[0].bytes, demands.notes.len()), (8.0, 0));
    }

    #[test]
    fn a_chain_goes_both_ways() {
        let chain = Demands::chain(&[1.0, 2.0]);
        assert_eq!((chain.workers.len(), chain.flows.len()), (3, 4));
    }
}
