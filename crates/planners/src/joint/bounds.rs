//! Lower bounds on the iteration time under 1F1B. Each is the length of a path in the event graph, so it always holds.
//!
//! All stages have equally many replicas, and a replica feeds one replica of the next stage. The bounds describe one
//! such pipeline with `M` microbatches. Stage `s` of `S` takes `F` and `B` for a microbatch (`x = F + B`) and has
//! `w = S − 1 − s` stages behind it. It runs `w` forwards, then a forward and a backward in turn, then `w` backwards. A
//! tensor takes `c` from `s` to `s + 1`, and its gradient takes `c` back. Both are the first that their sender sends
//! for a microbatch, so neither waits for others of the same microbatch. With `t` for stages,
//!
//! ```text
//! pre  = Σ t<s (x + 2c)     the way to s, and home from it
//! R    = 2c(s) + Σ t>s x + 2 Σ t>s c     from the end of a forward of s to the beginning of its backward, at least
//! L    = x(s) + R
//! ```
//!
//! **Stage.** For `M > w + 1` a path starts with forward 0. It goes straight on (`w` more forwards) or around (`R`) to
//! backward 0. Pairs of a forward and a backward follow, up to forward `M − 1`. Then it goes straight on (the `w`
//! backwards left before the last) or around to backward `M − 1`. The longest of the four paths is
//! `M x + max(0, R − w F) + max(0, R − w B)`. With `M = w + 1` forward `M − 1` precedes backward 0, so a path can go
//! around only once: `max(M x, F + R + M B, M F + R + B)`. (Plans here have at least as many microbatches as stages.)
//! The first form is wrong at `M = w + 1`: it claims 7.482 in a case where 7.471 is simulated.
//!
//! **Loop.** Forward `k + w + 1` of `s` waits for its backward `k`. So `M − 1 = q (w + 1) + r` allows `q + 1` loops of
//! `L` in sequence. In any loop but the last, the path passes backward `k` of some `v ≥ s`. It may run `r` pairs there
//! before it returns: together `(q + 1) L + r max v≥s x(v)`. For `q = 0` only forwards of a stage, or only backwards,
//! follow each other: `r max v≥s max(F(v), B(v))`. That is at least half of the largest `x`.
//!
//! **Engines.** A stage sends activations in sequence. The first tensor of the last microbatch waits for all tensors of
//! the `M − 1` others: `x + R + (M − 1) · sends`. The same holds for gradients, whose first goes to the stage before:
//! `x + R + (M − 1) · returns`.
//!
//! **All-reduce.** On the way home a path may stop at any stage `r ≤ s` after its backward and continue with the
//! all-reduce of `r`: `A(r)` replaces `Σ t<r (B + c)`. So all paths above grow by
//! `lead = max r≤s (A(r) − Σ t<r (B + c))`. This is at least 0, since `r = 0` has no way home. (The path through the
//! gradients' engine leaves `s` for the stage before: `r < s`.)
//!
//! **Window.** Take stages `s < u`. While `u` has pairs to run, a path can leave `u` backwards to `s` and return with a
//! later microbatch. From backward `k` of `u` it goes home to `s`, whose next operation is forward `k + w(s) + 1`. At
//! `u` that is forward `k + w(s) + 1 = (k + u − s + 1) + w(u)`, and backward `k + u − s + 1` follows it. This takes
//! `Σ s≤t<u (x + 2c) + x(u)` for `u − s + 1` microbatches, in place of `(u − s + 1) x(u)`. The pairs in the stage's
//! bound have room for `⌊(M − 1 − w(u)) / (u − s + 1)⌋` of these.
//!
//! `O(1)` for each stage and `O(S²)` for the windows.

use super::line::StageCost;

/// Position of a stage in its pipeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagePosition {
    /// Number of microbatches of a replica, and number of stages behind.
    pub(super) microbatches: f64,
    pub(super) behind: f64,
    /// Lower bound on `R`.
    pub(super) around: f64,
    /// Lower bound on the largest `x` of this stage and those behind it.
    pub(super) heaviest: f64,
    /// True if the split of the stage's time is unknown. It then counts as half forward, half backward.
    pub(super) halves: bool,
}

/// Longest path of a stage without all-reduces, and the path that leaves through the gradients' engine. Both run from
/// the arrival of the first microbatch until the last gradient has left.
pub(super) fn stage(cost: &StageCost, place: StagePosition) -> (f64, f64) {
    let StagePosition { microbatches: m, behind: w, around: r, heaviest, halves } = place;
    let x = cost.both();
    // If only the sum is known, equal parts give the shortest path: its length is convex and symmetric in the two.
    let (f, b) = if halves { (x / 2.0, x / 2.0) } else { (cost.forward, cost.backward) };
    let straight = if m > w + 1.0 {
        m * x + (r - w * f).max(0.0) + (r - w * b).max(0.0)
    } else {
        (m * x).max(f + r + m * b).max(m * f + r + b)
    };
    let loops = ((m - 1.0) / (w + 1.0)).floor();
    let rest = m - 1.0 - loops * (w + 1.0);
    let around = (loops + 1.0) * (x + r) + rest * if loops > 0.0 { heaviest } else { f.max(b).max(heaviest / 2.0) };
    let sends = x + r + (m - 1.0) * cost.sends;
    let returns = x + r + (m - 1.0) * cost.returns;
    (straight.max(around).max(sends), returns)
}

/// Sums over the stages before one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PrefixSums {
    /// `pre`.
    pub(super) way: f64,
    /// Part of `pre` that leads home: `Σ (B + c)`.
    pub(super) home: f64,
    /// `lead` of the stage before.
    pub(super) lead: f64,
}

impl PrefixSums {
    pub(super) const NOTHING: PrefixSums = PrefixSums { way: 0.0, home: 0.0, lead: f64::NEG_INFINITY };

    /// `lead`, including the stage's own all-reduce.
    pub(super) fn led(&self, all_reduce: f64) -> f64 {
        self.lead.max(all_reduce - self.home)
    }

    /// Sums after adding a stage.
    pub(super) fn after(&self, cost: &StageCost, all_reduce: f64) -> PrefixSums {
        PrefixSums {
            way: self.way + cost.both() + 2.0 * cost.send,
            home: self.home + cost.backward + cost.send,
            lead: self.led(all_reduce),
        }
    }

    /// Bound of a stage behind these.
    pub(super) fn bound(&self, cost: &StageCost, all_reduce: f64, place: StagePosition) -> f64 {
        let (paths, returns) = stage(cost, place);
        self.way + (paths + self.led(all_reduce)).max(returns + self.lead)
    }
}

/// Seconds of a ring all-reduce per byte of parameters.
pub(super) fn reduce_factor(replicas: u32, bandwidth: f64) -> f64 {
    let d = f64::from(replicas);
    4.0 * (d - 1.0) / d / bandwidth
}

/// Bound of a whole pipeline, including windows.
pub(super) fn pipeline(stages: &[StageCost], microbatches: u32, factor: f64, halves: bool) -> f64 {
    let (count, m) = (stages.len(), f64::from(microbatches));
    let mut around = vec![0.0; count];
    let mut heaviest = vec![0.0; count];
    for s in (0..count).rev() {
        heaviest[s] = stages[s].both();
        if s + 1 < count {
            around[s] = 2.0 * stages[s].send + stages[s + 1].both() + around[s + 1];
            heaviest[s] = heaviest[s].max(heaviest[s + 1]);
        }
    }
    let mut before = PrefixSums::NOTHING;
    let mut ways = Vec::with_capacity(count);
    let mut most: f64 = 0.0;
    for (u, cost) in stages.iter().enumerate() {
        let all_reduce = factor * cost.parameters;
        let behind = (count - 1 - u) as f64;
        let place = StagePosition { microbatches: m, behind, around: around[u], heaviest: heaviest[u], halves };
        let own = before.bound(cost, all_reduce, place);
        most = most.max(own);
        // The loops of a window replace pairs of the straight path only.
        let straight = straight(cost, place) + before.way + before.led(all_reduce);
        for (s, way) in ways.iter().enumerate() {
            let length = (u - s + 1) as f64;
            let times = ((m - 1.0 - place.behind) / length).floor();
            let more = (before.way - way) - (length - 1.0) * cost.both();
            if times > 0.0 && more > 0.0 {
                most = most.max(straight + times * more);
            }
        }
        ways.push(before.way);
        before = before.after(cost, all_reduce);
    }
    most
}

/// Straight path of a stage: its first form of bound, without engines. For `M ≤ w + 1`, where no window has room, only
/// `M x`.
fn straight(cost: &StageCost, place: StagePosition) -> f64 {
    let plain = StageCost { sends: 0.0, returns: 0.0, ..*cost };
    let StagePosition { microbatches: m, behind: w, around: r, .. } = place;
    if m <= w + 1.0 {
        return m * plain.both();
    }
    let x = plain.both();
    let (f, b) = if place.halves { (x / 2.0, x / 2.0) } else { (plain.forward, plain.backward) };
    m * x + (r - w * f).max(0.0) + (r - w * b).max(0.0)
}
