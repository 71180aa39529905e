//! `torch.distributed.pipelining`: a schedule as CSV, a row per rank and a cell per step.
//!
//! A cell is `<stage><operation><microbatch>` with operation `F` or `B`; an empty cell is a bubble. Every operation
//! takes one step here: the loader needs only the order, and real times depend on the machine. A step holds the next
//! operation of a rank's order as soon as its inputs were done in an earlier step. Interleaved, rank `r` of `R` has the
//! stages `r`, `r + R`, ..

use super::job::EngineJob;
use plantui_core::{plan::interleaved_round, simulate::Schedule};

/// Operation on a microbatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TorchOperation {
    Forward(u32),
    Backward(u32),
}

pub(super) fn text(job: &EngineJob<'_>) -> String {
    csv(job.ranks(), job.parts.each(), job.own_microbatches(), job.schedule)
}

/// Schedule of `ranks` ranks with `each` stages each; `each` is 1 unless the schedule is interleaved.
pub fn csv(ranks: usize, each: usize, microbatches: u32, schedule: Schedule) -> String {
    let orders: Vec<Vec<(usize, TorchOperation)>> = (0..ranks)
        .map(|rank| match schedule {
            Schedule::Interleaved => interleaved(rank, ranks, each, microbatches),
            _ => alternating(rank, ranks, microbatches, schedule),
        })
        .collect();
    let stages = ranks * each;
    let mut next = vec![0usize; ranks];
    // Forwards and backwards done before the current step, by stage.
    let mut done = vec![(0u32, 0u32); stages];
    let mut rows = vec![String::new(); ranks];
    let mut first = true;
    while (0..ranks).any(|rank| next[rank] < orders[rank].len()) {
        let before = done.clone();
        for rank in 0..ranks {
            if !first {
                rows[rank].push(',');
            }
            let Some(&(stage, operation)) = orders[rank].get(next[rank]) else { continue };
            let ready = match operation {
                TorchOperation::Forward(m) => stage == 0 || before[stage - 1].0 > m,
                TorchOperation::Backward(m) if stage + 1 == stages => before[stage].0 > m,
                TorchOperation::Backward(m) => before[stage + 1].1 > m,
            };
            if ready {
                next[rank] += 1;
                match operation {
                    TorchOperation::Forward(m) => {
                        done[stage].0 += 1;
                        rows[rank] += &format!("{stage}F{m}");
                    }
                    TorchOperation::Backward(m) => {
                        done[stage].1 += 1;
                        rows[rank] += &format!("{stage}B{m}");
                    }
                }
            }
        }
        first = false;
    }
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Order of operations of a rank with one stage.
fn alternating(stage: usize, stages: usize, microbatches: u32, schedule: Schedule) -> Vec<(usize, TorchOperation)> {
    let warm_up = match schedule {
        Schedule::GPipe => microbatches,
        Schedule::EagerOneForwardOneBackward => (2 * (stages - stage) as u32 - 1).min(microbatches),
        // Other schedules are refused before; for one sample every order is the same.
        _ => ((stages - stage) as u32).min(microbatches),
    };
    let mut order: Vec<TorchOperation> = (0..warm_up).map(TorchOperation::Forward).collect();
    for m in 0..microbatches {
        order.push(TorchOperation::Backward(m));
        if m + warm_up < microbatches {
            order.push(TorchOperation::Forward(m + warm_up));
        }
    }
    order.into_iter().map(|operation| (stage, operation)).collect()
}

/// Order of operations of a rank with several stages (Narayanan et al., SC 2021). Microbatches go in rounds
/// ([`interleaved_round`]): a round passes all stages of the rank before the next begins.
fn interleaved(rank: usize, ranks: usize, each: usize, microbatches: u32) -> Vec<(usize, TorchOperation)> {
    let group = interleaved_round(ranks as u32, microbatches).map_or(ranks, |round| round as usize);
    let round = group * each;
    let all = microbatches as usize * each;
    let number = |k: usize| (k / round * group + k % group) as u32;
    let forward = |k: usize| (k % round / group * ranks + rank, TorchOperation::Forward(number(k)));
    let backward = |k: usize| ((each - 1 - k % round / group) * ranks + rank, TorchOperation::Backward(number(k)));
    let warm_up = (2 * (ranks - 1 - rank) + (each - 1) * group).min(all);
    let mut order: Vec<(usize, TorchOperation)> = (0..warm_up).map(forward).collect();
    for k in 0..all - warm_up {
        order.extend([forward(warm_up + k), backward(k)]);
    }
    order.extend((all - warm_up..all).map(backward));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_more_microbatches_than_ranks_are_interleaved() {
        // 4 ranks with 2 stages each and 10 microbatches: two rounds of 5.
        let text = csv(4, 2, 10, Schedule::Interleaved);
        let cells: Vec<&str> = text.lines().next().unwrap().split(',').filter(|cell| !cell.is_empty()).collect();
        let begun =
            ["0F0", "0F1", "0F2", "0F3", "0F4", "4F0", "4F1", "4F2", "4F3", "4F4", "0F5", "0F6", "4B0", "0F7", "4B1"];
        assert_eq!(cells[..15], begun);
        assert_eq!(cells.len(), 40);
        assert_eq!(cells[37..], ["0B7", "0B8", "0B9"]);
    }

    #[test]
    fn two_stages_and_three_microbatches() {
        let text = csv(2, 1, 3, Schedule::OneForwardOneBackward);
        assert_eq!(
            text,
            "0F0,0F1,,0B0,0F2,0B1,,0B2\n,1F0,1B0,1F1,1B1,,1F2,1B2\n".replace("1B1,,1F2,1B2", "1B1,1F2,1B2,")
        );
    }
}
