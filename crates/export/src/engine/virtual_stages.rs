//! Several parts of the model on every rank, for interleaved schedules.
//!
//! A plan has one range of layers on each stage. Interleaved schedules give a rank several shorter ranges. Each rank
//! keeps its number of blocks and of recomputed blocks, so work and memory stay those of the plan; the blocks
//! themselves change. Parts are listed in model order. With a loop (interleaved 1F1B) part `v · P + p` is on rank `p`.
//! With a V (ZB-V) the first `P` parts are on ranks 0 to `P - 1`, the next `P` in reverse order.

use super::cut::{CutStage, LayerCut};
use plantui_core::{plan::runner::Runner, simulate::Schedule, workload::layering::LayerPosition};

/// Parts of the model in model order, and the ranks that hold them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualStageParts {
    /// Parts, first to last.
    pub parts: Vec<CutStage>,
    /// Rank of each part in the pipeline.
    pub ranks: Vec<usize>,
}

impl VirtualStageParts {
    /// One part for each stage.
    pub fn plain(cut: &LayerCut) -> Self {
        VirtualStageParts { parts: cut.stages.clone(), ranks: (0..cut.stages.len()).collect() }
    }

    /// Number of parts on each rank.
    pub fn each(&self) -> usize {
        let ranks = self.ranks.iter().max().map_or(1, |last| last + 1);
        self.parts.len() / ranks
    }

    /// Parts that a schedule runs, `each` on every rank if it interleaves.
    ///
    /// # Errors
    /// Reason why the plan cannot be cut this way, for people.
    pub fn of(cut: &LayerCut, runner: Runner, schedule: Schedule, each: u32) -> Result<Self, String> {
        let each = match schedule {
            _ if schedule.loops() => each.max(2) as usize,
            _ if schedule.is_v() => 2,
            _ => return Ok(VirtualStageParts::plain(cut)),
        };
        let count = cut.stages.len();
        if count < 2 {
            return Err("it needs at least two stages".into());
        }
        if cut.stages.iter().any(|stage| stage.layers.contains(&LayerPosition::Single)) {
            return Err("virtual stages are made of repeated layers, and no name of the workload repeats".into());
        }
        if let Some(at) = cut.stages.iter().position(|stage| stage.blocks() < each) {
            let (stage, blocks) = (at + 1, cut.stages[at].blocks());
            let plural = if blocks == 1 { "layer" } else { "layers" };
            return Err(format!("stage {stage} holds {blocks} {plural}, too few for {each} virtual stages"));
        }
        let own = (cut.microbatches / cut.data_parallel().max(1)) as usize;
        if let Some(refusal) = runner.refuses(schedule, count as u32, own as u32) {
            return Err(refusal);
        }
        let ranks: Vec<usize> = (0..each * count)
            .map(|part| {
                let back = schedule.is_v() && part / count == 1;
                if back { count - 1 - part % count } else { part % count }
            })
            .collect();
        let mut next = 0;
        let last = ranks.len() - 1;
        let parts = ranks.iter().enumerate().map(|(at, &rank)| {
            let stage = &cut.stages[rank];
            let (recomputed, blocks) = stage.recomputed();
            let own = share(blocks, each, at / count);
            // A rank recomputes as many blocks as in the plan, divided over its parts like its blocks.
            let again = share(recomputed, each, at / count).min(own);
            let (data_parallel, tensor_parallel) = (stage.data_parallel, stage.tensor_parallel);
            let mut part = CutStage { layers: vec![], recompute: vec![], data_parallel, tensor_parallel };
            let mut add = |kind: LayerPosition, recompute: bool| {
                part.layers.push(kind);
                part.recompute.push(recompute);
            };
            if at == 0 && has(cut, LayerPosition::First) {
                add(LayerPosition::First, recomputes(cut, LayerPosition::First));
            }
            for block in 0..own {
                add(LayerPosition::Block(next), block < again);
                next += 1;
            }
            if at == last && has(cut, LayerPosition::Last) {
                add(LayerPosition::Last, recomputes(cut, LayerPosition::Last));
            }
            part
        });
        let parts = parts.collect();
        Ok(VirtualStageParts { parts, ranks })
    }
}

/// Size of part `at` when `all` is divided into `each` parts as equal as possible, larger ones first.
fn share(all: usize, each: usize, at: usize) -> usize {
    all / each + usize::from(at < all % each)
}

fn has(cut: &LayerCut, kind: LayerPosition) -> bool {
    cut.stages.iter().any(|stage| stage.layers.contains(&kind))
}

fn recomputes(cut: &LayerCut, kind: LayerPosition) -> bool {
    let flags = cut.stages.iter().flat_map(|stage| stage.layers.iter().zip(&stage.recompute));
    flags.into_iter().any(|(own, recompute)| *own == kind && *recompute)
}
