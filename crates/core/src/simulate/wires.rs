//! Transfers between the replicas of a pipeline whose parts are mapped to a topology.
//!
//! A microbatch `m` goes from replica `m mod r` of a stage to replica `m mod s` of another, so the ways between two
//! stages repeat after `lcm(r, s)` microbatches. Each way has its own duration and channels. Memory: a duration per
//! way, and a load per channel on it.

use std::collections::BTreeMap;

use super::pipeline::sound;

/// Load of a way on one of its channels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelLoad {
    /// Index of the channel in [`ReplicaRoutes::channels`].
    pub channel: u32,
    /// Bytes of one microbatch.
    pub bytes: f64,
}

/// Route from one replica of a stage to one of another, in one direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplicaRoute {
    /// Duration of one microbatch's transfer without other traffic.
    pub seconds: f64,
    /// Loads by channel.
    pub loads: Vec<ChannelLoad>,
}

/// Ways between the stages of a pipeline.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplicaRoutes {
    /// By sending and receiving stage: the ways. Microbatch `m` takes the one at `m` modulo their number.
    pub ways: BTreeMap<(u32, u32), Vec<ReplicaRoute>>,
    /// Bandwidth in bytes per second of every channel in use.
    pub channels: Vec<f64>,
}

impl ReplicaRoutes {
    /// True if there are none. A transfer then takes the pipeline's own duration, on the link of its pair of stages.
    pub fn is_empty(&self) -> bool {
        self.ways.is_empty()
    }

    /// Ways from a stage to another; empty if nothing is sent.
    pub fn between(&self, from: u32, to: u32) -> &[ReplicaRoute] {
        self.ways.get(&(from, to)).map_or(&[], Vec::as_slice)
    }

    /// Mean duration of a microbatch's transfer from a stage to another, seconds; `None` if nothing is sent.
    pub fn mean_s(&self, from: u32, to: u32) -> Option<f64> {
        let ways = self.between(from, to);
        (!ways.is_empty()).then(|| ways.iter().map(|way| sound(way.seconds)).sum::<f64>() / ways.len() as f64)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::simulate::pipeline::Pipeline;

    /// Random ways between all stages that send to one another, some of which share channels.
    pub(in crate::simulate) fn random(pipeline: &Pipeline, next: &mut impl FnMut(u64) -> u64) -> ReplicaRoutes {
        let channels: Vec<f64> = (0..6).map(|_| (1 + next(8)) as f64).collect();
        let mut wires = ReplicaRoutes { channels, ..ReplicaRoutes::default() };
        let (alike, longest) = (next(3) == 0, [2, 20, 150][next(3) as usize]);
        for transfer in pipeline.sends() {
            let [r, s] = [transfer.from, transfer.to].map(|stage| u64::from(pipeline.stages[stage].replicas.max(1)));
            let count = (1..=r * s).find(|count| count % r == 0 && count % s == 0).unwrap();
            for pair in [(transfer.from, transfer.to), (transfer.to, transfer.from)] {
                let first = (next(longest), next(6));
                let ways = (0..count).map(|_| {
                    let (bytes, channel) = if alike { first } else { (next(longest), next(6)) };
                    let (bytes, channel) = (bytes as f64, channel as u32);
                    let second = (channel + 1 + next(5) as u32) % 6;
                    let mut loads = vec![ChannelLoad { channel, bytes }];
                    if next(2) == 0 && !alike {
                        loads.push(ChannelLoad { channel: second, bytes: bytes / 2.0 });
                    }
                    let each = loads.iter().map(|load| load.bytes / wires.channels[load.channel as usize]);
                    ReplicaRoute { seconds: each.fold(0.0, f64::max).ceil(), loads }
                });
                wires.ways.insert((pair.0 as u32, pair.1 as u32), ways.collect());
            }
        }
        wires
    }

    #[test]
    fn the_mean_is_that_of_all_ways() {
        let way = |seconds| ReplicaRoute { seconds, loads: vec![] };
        let mut wires = ReplicaRoutes::default();
        assert!(wires.is_empty() && wires.mean_s(0, 1).is_none());
        wires.ways.insert((0, 1), vec![way(1.0), way(4.0)]);
        assert_eq!((wires.mean_s(0, 1), wires.mean_s(1, 0)), (Some(2.5), None));
    }
}
