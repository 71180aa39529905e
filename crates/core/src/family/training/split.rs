//! Split of a model's layers over the stages.
//!
//! A virtual stage (chunk) `j·p + i` is part `j` of stage `i`. If `L` layers do not divide evenly, `L + 2` or `L + 1`
//! are shared out, and the first and the last chunk (only the last) have one layer fewer. They hold the embedding and
//! the head. Megatron-LM's `--account-for-embedding-in-pipeline-split` and `--account-for-loss-in-pipeline-split` do the
//! same. If these do not divide either, later chunks have one layer fewer than earlier ones, which Megatron-LM takes as
//! `--pipeline-model-parallel-layout`.

use std::ops::Range;

use crate::workload::training::{
    model::Model,
    run::{Layout, Recompute},
};

/// Layers of every chunk in the model's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSplit {
    stages: usize,
    chunks: Vec<Range<usize>>,
    /// True if the second of two chunks of each stage is placed back from the last stage to the first.
    folded: bool,
    /// True if the layers that predict further tokens are on the chunk before the last.
    head_alone: bool,
}

impl StageSplit {
    /// Split of `layers` over the stages that is as even as possible. `None` if a chunk other than the first and the last
    /// would have no layer.
    pub fn even(layers: usize, layout: &Layout) -> Option<Self> {
        let chunks = layout.pipeline as usize * layout.virtual_stages as usize;
        if chunks == 0 {
            // A plan without stages.
            return None;
        }
        let (each, fewer) = match equal_share(layers, chunks) {
            Some(share) => share,
            None => ((layers + 2) / chunks, 2),
        };
        let more = (layers + fewer) % chunks;
        let mut counts: Vec<usize> = (0..chunks).map(|chunk| each + usize::from(chunk < more)).collect();
        if fewer > 0 {
            let last = counts.last_mut()?;
            *last = last.checked_sub(1)?;
        }
        if fewer == 2 {
            counts[0] = counts[0].checked_sub(1)?;
        }
        let inner = counts.get(1..chunks - 1).unwrap_or_default();
        let whole = layers > 0 && !inner.contains(&0);
        whole.then(|| StageSplit::of(&counts, layout.pipeline as usize))
    }

    /// True if `layers` over the stages are even, but for one layer fewer at the ends.
    pub fn is_even(layers: usize, layout: &Layout) -> bool {
        equal_share(layers, layout.pipeline as usize * layout.virtual_stages as usize).is_some()
    }

    /// Split by the numbers of layers of all chunks.
    pub fn of(counts: &[usize], stages: usize) -> Self {
        let mut first = 0;
        let chunks = counts
            .iter()
            .map(|&count| {
                first += count;
                first - count..first
            })
            .collect();
        StageSplit { stages, chunks, folded: false, head_alone: false }
    }

    /// Number of stages.
    pub fn stages(&self) -> usize {
        self.stages
    }

    /// Places the second half of the model back from the last stage to the first, as in ZB-V: chunk `2p − 1 − i` on
    /// stage `i` beside chunk `i`. This needs two chunks per stage.
    #[must_use]
    pub fn folded(self) -> Self {
        StageSplit { folded: self.chunks.len() == 2 * self.stages, ..self }
    }

    /// Stage with the model's last layers.
    pub fn last(&self) -> usize {
        if self.folded { 0 } else { self.stages - 1 }
    }

    /// The same split with the layers that predict further tokens before the last chunk, if `alone`.
    #[must_use]
    pub fn with_head_alone(self, alone: bool) -> Self {
        StageSplit { head_alone: alone, ..self }
    }

    /// Stage with the layers that predict further tokens.
    pub fn predictions(&self) -> usize {
        if self.head_alone { self.chunks.len().saturating_sub(2) % self.stages } else { self.last() }
    }

    /// Chunks of a stage, earlier layers first.
    pub fn chunks(&self, stage: usize) -> impl Iterator<Item = &Range<usize>> {
        let back = self.chunks.len() - 1;
        let own = (stage..self.chunks.len()).step_by(if self.folded { (back - 2 * stage).max(1) } else { self.stages });
        own.take(if self.folded { 2 } else { usize::MAX }).map(|chunk| &self.chunks[chunk])
    }

    /// Number of layers of a stage.
    pub fn layers(&self, stage: usize) -> usize {
        self.chunks(stage).map(ExactSizeIterator::len).sum()
    }

    /// By kind of layer: the numbers of a stage's layers without and with recomputation of the whole layer.
    pub fn by_kind(&self, stage: usize, model: &Model, recompute: Recompute) -> Vec<[f64; 2]> {
        self.first_by_kind(stage, model, recompute, usize::MAX)
    }

    /// Like [`StageSplit::by_kind`], of the first `most` layers of each chunk.
    pub fn first_by_kind(&self, stage: usize, model: &Model, recompute: Recompute, most: usize) -> Vec<[f64; 2]> {
        let mut counts = vec![[0.0; 2]; model.kinds.len()];
        for chunk in self.chunks(stage) {
            for (place, layer) in chunk.clone().enumerate().take(most) {
                counts[usize::from(model.layers[layer])][usize::from(recompute.repeats(place))] += 1.0;
            }
        }
        counts
    }
}

/// Layers of each chunk, and the number of ends with one layer fewer; `None` if no such split is equal.
fn equal_share(layers: usize, chunks: usize) -> Option<(usize, usize)> {
    let fewer = [0, 2, 1].into_iter().find(|fewer| chunks > 0 && (layers + fewer).is_multiple_of(chunks))?;
    Some(((layers + fewer) / chunks, fewer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(pipeline: u32, virtual_stages: u32) -> Layout {
        Layout { pipeline, virtual_stages, ..Layout::ONE }
    }

    #[test]
    fn layers_are_shared_out_as_evenly_as_possible() {
        let layers = |count, p, v| {
            let split = StageSplit::even(count, &layout(p, v))?;
            Some((0..split.stages()).map(|stage| split.layers(stage)).collect::<Vec<_>>())
        };
        assert_eq!(layers(80, 4, 5), Some(vec![20; 4]));
        assert_eq!(layers(126, 16, 1).map(|l| (l[0], l[1], l[15])), Some((7, 8, 7)));
        assert_eq!(layers(80, 3, 1), Some(vec![27, 27, 26]));
        assert_eq!(layers(22, 8, 3), Some(vec![2, 3, 3, 3, 3, 3, 3, 2]));
        assert_eq!(layers(21, 4, 1), Some(vec![5, 6, 6, 4]));
        assert_eq!(layers(60, 8, 1), Some(vec![7, 8, 8, 8, 8, 8, 7, 6]));
        assert_eq!(layers(61, 4, 4), Some(vec![15, 16, 16, 14]));
        assert!(!StageSplit::is_even(61, &layout(4, 4)) && StageSplit::is_even(126, &layout(16, 1)));
        // The ends may hold only the embedding and the head; other stages have a layer.
        assert_eq!(layers(6, 8, 1), Some(vec![0, 1, 1, 1, 1, 1, 1, 0]));
        assert_eq!(layers(5, 8, 1), None);
    }

    #[test]
    fn chunks_are_dealt_round_robin() {
        let split = StageSplit::even(8, &layout(2, 2)).unwrap();
        assert_eq!(split.chunks(1).cloned().collect::<Vec<_>>(), [2..4, 6..8]);
        let folded = StageSplit::even(12, &layout(3, 2)).unwrap().folded();
        assert_eq!(folded.chunks(0).cloned().collect::<Vec<_>>(), [0..2, 10..12]);
        assert_eq!(folded.chunks(2).cloned().collect::<Vec<_>>(), [4..6, 6..8]);
        assert_eq!((folded.last(), folded.layers(1)), (0, 4));
        assert_eq!(StageSplit::of(&[3, 1, 2], 3).chunks(2).cloned().collect::<Vec<_>>(), vec![4..6]);
    }
}
