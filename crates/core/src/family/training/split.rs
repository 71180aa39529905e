//! Split of a model's layers over the stages.
//!
//! A virtual stage (chunk) `j·p + i` is part `j` of stage `i`. If `L` layers do not divide evenly but `L + 2` (or
//! `L + 1`) do, the first and the last chunk (only the last) have one layer fewer. They hold the embedding and the
//! head. Megatron-LM's `--account-for-embedding-in-pipeline-split` and `--account-for-loss-in-pipeline-split` do the
//! same.

use std::ops::Range;

use crate::workload::training::{model::Model, run::Layout};

/// Layers of every chunk in the model's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSplit {
    stages: usize,
    chunks: Vec<Range<usize>>,
    /// True if the second of two chunks of each stage is placed back from the last stage to the first.
    folded: bool,
}

impl StageSplit {
    /// Even split of `layers` over the stages; `None` if there is none.
    pub fn even(layers: usize, layout: &Layout) -> Option<Self> {
        let chunks = layout.pipeline as usize * layout.virtual_stages as usize;
        let counts = if layers.is_multiple_of(chunks) {
            vec![layers / chunks; chunks]
        } else {
            let fewer = [2, 1].into_iter().find(|fewer| (layers + fewer).is_multiple_of(chunks))?;
            let each = (layers + fewer) / chunks;
            let mut counts = vec![each; chunks];
            *counts.last_mut()? -= 1;
            if fewer == 2 {
                counts[0] = counts[0].checked_sub(1)?;
            }
            counts
        };
        // A chunk may hold only the embedding or the head; a stage may not.
        let split = StageSplit::of(&counts, layout.pipeline as usize);
        (0..split.stages).all(|stage| split.layers(stage) > 0).then_some(split)
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
        StageSplit { stages, chunks, folded: false }
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

    /// By kind of layer: the numbers of a stage's layers without and with recomputation. `recomputed` is the number of
    /// recomputed layers per chunk.
    pub fn by_kind(&self, stage: usize, model: &Model, recomputed: usize) -> Vec<[f64; 2]> {
        let mut counts = vec![[0.0; 2]; model.kinds.len()];
        for chunk in self.chunks(stage) {
            for (place, layer) in chunk.clone().enumerate() {
                counts[usize::from(model.layers[layer])][usize::from(place < recomputed)] += 1.0;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(pipeline: u32, virtual_stages: u32) -> Layout {
        Layout { pipeline, virtual_stages, ..Layout::ONE }
    }

    #[test]
    fn ends_have_one_layer_fewer_where_that_makes_the_rest_even() {
        let layers = |count, p, v| {
            let split = StageSplit::even(count, &layout(p, v))?;
            Some((0..split.stages()).map(|stage| split.layers(stage)).collect::<Vec<_>>())
        };
        assert_eq!(layers(80, 4, 5), Some(vec![20; 4]));
        assert_eq!(layers(126, 16, 1).map(|l| (l[0], l[1], l[15])), Some((7, 8, 7)));
        assert_eq!(layers(80, 3, 1), Some(vec![27, 27, 26]));
        assert_eq!(layers(22, 8, 3), Some(vec![2, 3, 3, 3, 3, 3, 3, 2]));
        assert_eq!(layers(6, 8, 1), None);
        assert_eq!(layers(21, 4, 1), None);
        // Megatron has no layerless stage.
        assert_eq!(layers(1, 3, 1), None);
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
