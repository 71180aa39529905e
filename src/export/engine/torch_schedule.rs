//! `torch.distributed.pipelining`: a schedule as CSV, a row per rank and a cell per step.
//!
//! A cell is `<stage><operation><microbatch>` with operation `F` or `B`; an empty one is a bubble. Every operation takes one
//! step here: the loader wants the order, times are the machine's. A step holds the next operation of a rank's own order
//! as soon as what it needs was done in an earlier step.

use super::{Cut, Settings};
use crate::simulate::Schedule;

/// An operation on a microbatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Forward(u32),
    Backward(u32),
}

pub(super) fn text(cut: &Cut, settings: &Settings) -> String {
    let microbatches = (cut.microbatches / cut.data_parallel()).max(1);
    csv(cut.stages.len(), microbatches, settings.schedule)
}

/// The schedule of `stages` ranks with one stage each.
pub fn csv(stages: usize, microbatches: u32, schedule: Schedule) -> String {
    let orders: Vec<Vec<Operation>> = (0..stages).map(|stage| order(stage, stages, microbatches, schedule)).collect();
    let mut next = vec![0usize; stages];
    // By stage: forwards and backwards done before the current step.
    let mut done = vec![(0u32, 0u32); stages];
    let mut rows = vec![String::new(); stages];
    let mut first = true;
    while (0..stages).any(|stage| next[stage] < orders[stage].len()) {
        let before = done.clone();
        for stage in 0..stages {
            if !first {
                rows[stage].push(',');
            }
            let Some(&operation) = orders[stage].get(next[stage]) else { continue };
            let ready = match operation {
                Operation::Forward(m) => stage == 0 || before[stage - 1].0 > m,
                Operation::Backward(m) if stage + 1 == stages => before[stage].0 > m,
                Operation::Backward(m) => before[stage + 1].1 > m,
            };
            if ready {
                next[stage] += 1;
                match operation {
                    Operation::Forward(m) => {
                        done[stage].0 += 1;
                        rows[stage] += &format!("{stage}F{m}");
                    }
                    Operation::Backward(m) => {
                        done[stage].1 += 1;
                        rows[stage] += &format!("{stage}B{m}");
                    }
                }
            }
        }
        first = false;
    }
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// What a stage does in turn.
fn order(stage: usize, stages: usize, microbatches: u32, schedule: Schedule) -> Vec<Operation> {
    let warm_up = match schedule {
        Schedule::GPipe => microbatches,
        Schedule::EagerOneForwardOneBackward => (2 * (stages - stage) as u32 - 1).min(microbatches),
        // The others are refused before; of one sample alone every order is the same.
        _ => ((stages - stage) as u32).min(microbatches),
    };
    let mut order: Vec<Operation> = (0..warm_up).map(Operation::Forward).collect();
    for m in 0..microbatches {
        order.push(Operation::Backward(m));
        if m + warm_up < microbatches {
            order.push(Operation::Forward(m + warm_up));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_stages_and_three_microbatches() {
        let text = csv(2, 3, Schedule::OneForwardOneBackward);
        assert_eq!(
            text,
            "0F0,0F1,,0B0,0F2,0B1,,0B2\n,1F0,1B0,1F1,1B1,,1F2,1B2\n".replace("1B1,,1F2,1B2", "1B1,1F2,1B2,")
        );
    }
}
