//! Lower bounds under schedules other than 1F1B. Each is the length of a path in the event graph, as in
//! [`super::bounds`].
//!
//! All have `M` microbatches on each of `S` stages with equal replicas. A stage takes `F` forward and `B` backward,
//! `x = F + B`. Zero-bubble schedules split `B = I + W` into inputs and weights, and gradients go home after `I`.
//! `c(s)` is the transfer from `s` to the next stage. Under any schedule, a stage starts no earlier than the first
//! microbatch reaches it (`fill`) and is busy for `M x`. Each bound adds:
//!
//! * the **turn**. Before its first backward a stage waits for that microbatch to reach the end of the model and come
//!   back. The forwards that it runs meanwhile are subtracted. The same holds between its last forward and its last
//!   backward. A path can take both turns if the first backward comes before the last forward, else one of them;
//! * the **way home**. After the last backward its gradients go on to the first stage, while at most some weights'
//!   parts are left here;
//! * the **all-reduce**, which starts when the stage has finished, and those of the stages on the way home;
//! * under ZB-H1 and GPipe, where stages may send past the next one, the **engines**. The first tensor of the last
//!   microbatch waits for all tensors of the others, and so do returned gradients;
//! * under ZB-H1 the **loop**. Forward `k + w + 1` follows the inputs' backward `k`. So `M − 1 = q (w + 1) + r` allows
//!   `q + 1` loops `F + R + I` in sequence, and `r` pairs `F + I` behind them. For `q = 0` these are forwards only, or
//!   backwards only.
//!
//! `R = 2c + Σ t>s (x + 2c)` uses a stage's part if it has several, and `I` for `B` in `x` if `B` is split:
//!
//! ```text
//! ZB-H1        fill Σ t<s (F + c);  turns R − w F, and R − w B: of the w + 1 backwards and w weights behind the last forward
//!              all but the last backward may come while its microbatch is away;  s + 1 weights are left at the most;
//!              home Σ t<s (I + c)
//! ZB-V         fill Σ t<s (F / 2 + c);  S forwards' worth before the first backward, whose microbatch goes down and up the model
//!              and comes back: Σ F + 2 Σ c + Σ t<s (I / 2 + c) from the beginning;  2 s + 1 half weights are left;
//!              home Σ t<s (I / 2 + c)
//! interleaved  fill Σ t<s (F / v + c);  e = min(2 w + (v − 1) G + 1, M v) v-ths of F before the first backward, and of B behind
//!              the last forward; their microbatches go v − 1 times around the model before or after they turn at its end, and
//!              from the last stage to the first no quicker than over the dearest boundary: turns
//!              (v − 1) (Σ F / v + Σ c (1 + 1 / (S − 1))) + R − (e − 1) F / v,  the same with B for F
//!              (one of them where e = M v);  home Σ t<s (B / v + c)
//! interleaved ZB  as interleaved with e = w + (v − 1) G + 1, with the transfers alone around the model before the last
//!              backward, and B for its own part in that turn;  s + 1 v-ths of weights are left;  home Σ t<s (I / v + c)
//! GPipe        Σ x + 2 Σ c over all stages, and M − 1 times max(F, sends) + max(B, returns) of any one
//! ```
//!
//! GPipe: the first microbatch passes everything once. All forwards of the last stage precede its first backward. So
//! the slowest forward or send, and the slowest backward or return, both count `M − 1` times. Together they are at
//! least those of one stage. `O(1)` for a stage.
//!
//! If a node's modes differ in their forward, `F` is unknown before the choice. The turns are then dropped, the ways
//! count transfers only, and the weights count as their maximum. So the bound is little more than the busy time.

use super::{kind::ScheduleKind, line::StageCost};
use plantui_core::plan::{Schedule, interleaved_round};

/// Share of the backward, without recomputation, that is delayed as the gradient of the weights: the simulator's
/// default. Recomputation may be more than its known lower bound, but a larger weights' part only shortens the paths.
pub(super) const WEIGHTS: f64 = 0.5;

/// Path lengths before a stage: to it, and home from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PathLengths {
    pub(super) there: f64,
    pub(super) home: f64,
    /// Way home at the end of the iteration, or up to a stage on it plus that stage's all-reduce, whichever is longer.
    pub(super) end: f64,
}

impl PathLengths {
    pub(super) const NONE: PathLengths = PathLengths { there: 0.0, home: 0.0, end: 0.0 };
}

/// Shape of a pipeline, with sums that all of its bounds use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) kind: ScheduleKind,
    pub(super) stages: usize,
    pub(super) microbatches: u32,
    /// Forward and backward of the whole network in its fastest modes.
    pub(super) forward: f64,
    pub(super) backward: f64,
    /// Lower bound on the sum of all transfers to the next stage.
    pub(super) sends: f64,
    /// True if forwards depend on the modes.
    pub(super) halves: bool,
}

impl Frame {
    fn parts(&self) -> f64 {
        f64::from(self.kind.parts)
    }

    /// Seconds of the forward, of the backward until gradients go home, and of the delayed weights' part.
    fn split(&self, cost: &StageCost) -> [f64; 3] {
        let share = if self.kind.schedule.splits_backward() { WEIGHTS } else { 0.0 };
        if self.halves {
            return [0.0, 0.0, share * cost.both()];
        }
        let weights = share * (cost.backward - cost.again);
        [cost.forward, cost.backward - weights, weights]
    }

    /// Ways for the stages behind this one, which has an all-reduce of `reduce` seconds.
    pub(super) fn after(&self, ways: PathLengths, cost: &StageCost, reduce: f64) -> PathLengths {
        let [forward, inputs, _] = self.split(cost);
        let v = self.parts();
        let inputs = inputs / v + cost.send;
        PathLengths {
            there: ways.there + forward / v + cost.send,
            home: ways.home + inputs,
            end: ways.end.max(reduce) + inputs,
        }
    }

    /// Contribution of a stage to the turn of those before it, including its send to the next.
    pub(super) fn turn(&self, cost: &StageCost) -> f64 {
        let [forward, inputs, _] = self.split(cost);
        match self.kind.schedule {
            Schedule::ZeroBubbleV => 0.0,
            own if own.has_free_parts() => (forward + inputs) / self.parts() + 2.0 * cost.send,
            _ => forward + inputs + 2.0 * cost.send,
        }
    }

    /// Longest path through a stage. `ways` are those before it, `around` is the least sum of [`Frame::turn`] behind
    /// it, and `reduce` is its all-reduce.
    pub(super) fn bound(&self, stage: usize, cost: &StageCost, ways: PathLengths, around: f64, reduce: f64) -> f64 {
        let (m, x) = (f64::from(self.microbatches), cost.both());
        let [forward, inputs, weights] = self.split(cost);
        let (s, w, v) = (stage as f64, (self.stages - 1 - stage) as f64, self.parts());
        let busy = m * x;
        let way = 2.0 * cost.send + around;
        let left = match self.kind.schedule {
            Schedule::GPipe => {
                let own = if self.halves { 0.0 } else { ways.there + ways.end + way };
                let both = forward.max(cost.sends) + inputs.max(cost.returns);
                let each = if self.halves { x.max(cost.sends + cost.returns) } else { both };
                return (own + x + (m - 1.0) * each).max(ways.there + busy + reduce);
            }
            Schedule::ZeroBubbleH1 => (s + 1.0).min(m) * weights,
            Schedule::Interleaved => 0.0,
            Schedule::InterleavedZeroBubble => (s + 1.0).min(m * v) * weights / v,
            _ => (2.0 * s + 1.0).min(2.0 * m) * weights / v,
        };
        let wait = match self.kind.schedule {
            _ if self.halves => 0.0,
            Schedule::ZeroBubbleH1 if m > w => turns(way - w * forward, way - w * (inputs + weights), m > w + 1.0),
            own if own.has_free_parts() => {
                let round = interleaved_round(self.stages as u32, self.microbatches).unwrap_or(self.microbatches);
                let behind = if own == Schedule::Interleaved { 2.0 * w } else { w };
                let early = (behind + (v - 1.0) * f64::from(round) + 1.0).min(m * v);
                let loops = |work: f64| (v - 1.0) * (work / v + self.sends * (1.0 + 1.0 / (self.stages - 1) as f64));
                // Weights' parts may come later on the way around, and all may come here.
                let around = if weights > 0.0 { 0.0 } else { self.backward };
                let turn = |whole: f64, own: f64| loops(whole) + way - (early - 1.0) * own / v;
                turns(turn(self.forward, forward), turn(around, inputs + weights), early < m * v)
            }
            Schedule::ZeroBubbleV => {
                let first = self.forward + 2.0 * self.sends + ways.home;
                (first - ways.there - self.stages as f64 * forward).max(0.0)
            }
            _ => 0.0,
        };
        let done = ways.there + wait + busy;
        let own = (done + reduce).max(done - left + ways.end);
        if self.kind.schedule != Schedule::ZeroBubbleH1 {
            return own;
        }
        let (end, returned) = self.around(cost, m, w, way);
        own.max(ways.there + (end + ways.end.max(weights + reduce)).max(returned + ways.end))
    }

    /// ZB-H1: longest path from the first forward of a stage to its last backward of inputs, around the model or
    /// through the send engine. The second value ends with its last gradient through the returns' engine.
    fn around(&self, cost: &StageCost, m: f64, w: f64, way: f64) -> (f64, f64) {
        let [forward, inputs, _] = self.split(cost);
        let once = forward + inputs + way;
        let loops = ((m - 1.0) / (w + 1.0)).floor();
        let rest = m - 1.0 - loops * (w + 1.0);
        let each = if loops > 0.0 { forward + inputs } else { forward.max(inputs) };
        let around = (loops + 1.0) * once + rest * each;
        (around.max(once + (m - 1.0) * cost.sends), once + (m - 1.0) * cost.returns)
    }
}

/// Waits of a stage in its two turns. A path takes both, or the longer one.
fn turns(first: f64, last: f64, both: bool) -> f64 {
    let (first, last) = (first.max(0.0), last.max(0.0));
    if both { first + last } else { first.max(last) }
}

/// Bound of a whole split.
pub(super) fn pipeline(frame: &Frame, stages: &[StageCost], factor: f64) -> f64 {
    let frame = &Frame { sends: stages.iter().map(|cost| cost.send).sum(), ..*frame };
    let mut around = vec![0.0; stages.len() + 1];
    for (s, cost) in stages.iter().enumerate().rev() {
        around[s] = around[s + 1] + frame.turn(cost);
    }
    let mut ways = PathLengths::NONE;
    let mut most = 0.0;
    for (s, cost) in stages.iter().enumerate() {
        most = f64::max(most, frame.bound(s, cost, ways, around[s + 1], factor * cost.parameters));
        ways = frame.after(ways, cost, factor * cost.parameters);
    }
    most
}
