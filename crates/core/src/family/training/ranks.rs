//! Ranks of a run, and the groups that communicate.
//!
//! Ranks are numbered as engines do: tensor shards are neighbours, followed by context and data ranks, stage by stage.
//! `O(ranks)` for all groups of an axis.

use crate::workload::training::Layout;

/// Numbers of a run's ranks: by stage, by data and context together, and by tensor shard.
#[derive(Debug, Clone, Copy)]
pub struct RankNumbers {
    pub(super) stages: usize,
    pub(super) replicas: usize,
    pub(super) context: usize,
    pub(super) tensor: usize,
    pub(super) expert: usize,
    pub(super) expert_tensor: usize,
}

impl RankNumbers {
    /// Numbers of the ranks of a layout.
    pub fn of(layout: &Layout) -> Self {
        let [stages, data, context, tensor] =
            [layout.pipeline, layout.data, layout.context, layout.tensor].map(|degree| degree as usize);
        let [expert, expert_tensor] = [layout.expert, layout.expert_tensor].map(|degree| degree as usize);
        RankNumbers { stages, replicas: data * context, context, tensor, expert, expert_tensor }
    }

    /// Number of ranks.
    pub fn count(self) -> usize {
        self.stages * self.replicas * self.tensor
    }

    pub(super) fn at(self, stage: usize, replica: usize, shard: usize) -> usize {
        (stage * self.replicas + replica) * self.tensor + shard
    }

    fn each_stage(self, of: impl Fn(usize) -> Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        (0..self.stages).flat_map(of).collect()
    }

    /// Shards of each replica.
    pub fn tensor_groups(self) -> Vec<Vec<usize>> {
        self.each_stage(|stage| {
            (0..self.replicas).map(|q| (0..self.tensor).map(|shard| self.at(stage, q, shard)).collect()).collect()
        })
    }

    /// Groups of `size` neighbouring replicas, for each shard.
    pub fn replica_groups(self, size: usize) -> Vec<Vec<usize>> {
        self.each_stage(|stage| {
            let starts = (0..self.replicas).step_by(size.max(1));
            let group = move |start: usize, shard: usize| {
                (start..(start + size).min(self.replicas)).map(|q| self.at(stage, q, shard)).collect()
            };
            starts.flat_map(|start| (0..self.tensor).map(move |shard| group(start, shard))).collect()
        })
    }

    /// Groups that exchange tokens for experts. Within a stage, ranks that share an expert are neighbours.
    pub fn expert_groups(self) -> Vec<Vec<usize>> {
        let (width, parts) = (self.replicas * self.tensor, self.expert_tensor.max(1));
        let block = (self.expert * parts).clamp(1, width);
        self.each_stage(|stage| {
            let starts = (0..width).step_by(block);
            let group = move |start: usize, part: usize| {
                (start + part..(start + block).min(width)).step_by(parts).map(|rank| stage * width + rank).collect()
            };
            starts.flat_map(|start| (0..parts.min(block)).map(move |part| group(start, part))).collect()
        })
    }

    /// Pairs of ranks between each stage and the next.
    pub fn handovers(self) -> impl Iterator<Item = (usize, usize)> {
        let width = self.replicas * self.tensor;
        (0..self.stages.saturating_sub(1) * width).map(move |rank| (rank, rank + width))
    }

    /// Groups of an axis.
    pub fn groups(self, axis: GroupAxis) -> Vec<Vec<usize>> {
        match axis {
            GroupAxis::Tensor => self.tensor_groups(),
            GroupAxis::Context => self.replica_groups(self.context),
            GroupAxis::Expert => self.expert_groups(),
            GroupAxis::Data => self.each_stage(|stage| {
                let member = |context: usize, shard: usize| {
                    (context..self.replicas).step_by(self.context).map(|q| self.at(stage, q, shard)).collect()
                };
                (0..self.context).flat_map(|c| (0..self.tensor).map(move |shard| member(c, shard))).collect()
            }),
            GroupAxis::Pipeline => {
                let width = self.replicas * self.tensor;
                (0..width).map(|rank| (0..self.stages).map(|stage| stage * width + rank).collect()).collect()
            }
        }
    }
}

/// Axis of a layout whose groups communicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupAxis {
    /// Shards of a layer.
    Tensor,
    /// Parts of a sequence.
    Context,
    /// Holders of different experts.
    Expert,
    /// Replicas.
    Data,
    /// Stages.
    Pipeline,
}

impl GroupAxis {
    /// All axes, in the order of their ranks: neighbours first.
    pub const ALL: [GroupAxis; 5] =
        [GroupAxis::Tensor, GroupAxis::Context, GroupAxis::Expert, GroupAxis::Data, GroupAxis::Pipeline];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_in_one_group_of_each_axis_and_groups_have_their_degree() {
        let layout = Layout { tensor: 4, context: 2, data: 2, pipeline: 4, expert: 8, ..Layout::ONE };
        let ranks = RankNumbers::of(&layout);
        for (axis, degree) in GroupAxis::ALL.into_iter().zip([4, 2, 8, 2, 4]) {
            let groups = ranks.groups(axis);
            let mut all: Vec<usize> = groups.iter().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..64).collect::<Vec<_>>(), "{axis:?}");
            assert!(groups.iter().all(|group| group.len() == degree), "{axis:?}");
        }
        let of = |axis: GroupAxis| ranks.groups(axis).into_iter().find(|group| group.contains(&13)).unwrap();
        assert_eq!(of(GroupAxis::Tensor), [12, 13, 14, 15]);
        assert_eq!((of(GroupAxis::Context), of(GroupAxis::Data)), (vec![9, 13], vec![5, 13]));
        assert_eq!(of(GroupAxis::Pipeline), [13, 29, 45, 61]);
    }
}
