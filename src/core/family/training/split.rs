//! Which layers lie on which stage.
//!
//! A virtual stage (chunk) `j·p + i` is part `j` of stage `i`. Where `L` layers do not divide evenly but `L + 2` (or `L + 1`)
//! do, the first and the last chunk (the last alone) have one fewer: they hold the embedding and the head, as
//! Megatron-LM's `--account-for-embedding-in-pipeline-split` and `--account-for-loss-in-pipeline-split` do it.

use std::ops::Range;

use super::{Layout, Model};

/// The layers of every chunk in the model's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageSplit {
    stages: usize,
    chunks: Vec<Range<usize>>,
    /// Whether the second of two chunks of each stage is placed back from the last stage to the first.
    folded: bool,
}

impl StageSplit {
    /// The even split of `layers` over the stages; `None` where there is none.
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
        // A chunk may hold an end alone, a stage may not.
        let split = StageSplit::of(&counts, layout.pipeline as usize);
        (0..split.stages).all(|stage| split.layers(stage) > 0).then_some(split)
    }

    /// A split by the layers of every chunk.
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

    /// The same split with the second half of the model placed back from the last stage to the first, as ZB-V has it:
    /// chunk `2p − 1 − i` on stage `i` beside chunk `i`. It takes two chunks a stage.
    #[must_use]
    pub fn folded(self) -> Self {
        StageSplit { folded: self.chunks.len() == 2 * self.stages, ..self }
    }

    /// The stage with the model's last layers.
    pub fn last(&self) -> usize {
        if self.folded { 0 } else { self.stages - 1 }
    }

    /// The chunks of a stage, earlier layers first.
    pub fn chunks(&self, stage: usize) -> impl Iterator<Item = &Range<usize>> {
        let back = self.chunks.len() - 1;
        let own = (stage..self.chunks.len()).step_by(if self.folded { (back - 2 * stage).max(1) } else { self.stages });
        own.take(if self.folded { 2 } else { usize::MAX }).map(|chunk| &self.chunks[chunk])
    }

    /// Layers of a stage.
    pub fn layers(&self, stage: usize) -> usize {
        self.chunks(stage).map(ExactSizeIterator::len).sum()
    }

    /// By kind of layer: how many of a stage's layers are of it and whole, and how many are computed again. `recomputed` is
    /// the number of layers of each chunk that are.
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
