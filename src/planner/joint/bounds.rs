//! Lower bounds on the time of a batch under 1F1B: each is the length of a path of waits, so none can exceed it.
//!
//! All stages have the same replicas, so each replica of the first stage feeds one of every other and what is bounded is
//! one such pipeline with `M` microbatches. Stage `s` of `S` takes `F` and `B` for a microbatch (`x = F + B`) and has
//! `w = S − 1 − s` stages behind it; it does `w` forwards, then a forward and a backward in turn, then `w` backwards. From
//! `s` to `s + 1` a tensor takes `c` forward and its gradient `c` back; both are the first that their sender sends for a
//! microbatch, so neither waits for others of the same microbatch. Writing `t` for stages,
//!
//! ```text
//! pre  = Σ t<s (x + 2c)     the way to s, and home from it
//! R    = 2c(s) + Σ t>s x + 2 Σ t>s c     from the end of a forward of s to the beginning of its backward, at least
//! L    = x(s) + R
//! ```
//!
//! **Stage.** For `M > w + 1`: forward 0, then either straight on (`w` more forwards) or around (`R`) to backward 0; pairs of
//! a forward and a backward up to forward `M − 1`; then either straight on (the `w` backwards left before the last) or
//! around to backward `M − 1`. The four paths are `M x + max(0, R − w F) + max(0, R − w B)`. With `M = w + 1` forward `M − 1`
//! comes before backward 0 and one can go around only once: `max(M x, F + R + M B, M F + R + B)`. (Batches here have at least
//! as many microbatches as stages.) The published form would claim 7.482 where 7.471 is simulated.
//!
//! **Loop.** Forward `k + w + 1` of `s` waits for its backward `k`, so `M − 1 = q (w + 1) + r` allows `q + 1` loops of `L` one
//! after the other. In one of them but the last the path passes backward `k` of some `v ≥ s`, and may go on with `r` pairs
//! there before it goes home: together `(q + 1) L + r max v≥s x(v)`. For `q = 0` only forwards of a stage, or only backwards,
//! follow one another: `r max v≥s max(F(v), B(v))`, of which half of the longest `x` is known at the least.
//!
//! **Engines.** A stage sends activations one after another. The first of the last microbatch waits for all of
//! `M − 1` others': `x + R + (M − 1) · sends`. So with gradients, whose first is the one to the stage before:
//! `x + R + (M − 1) · returns`.
//!
//! **All-reduce.** A path on its way home may stop at any stage `r ≤ s` after its backward and go on with the all-reduce
//! of `r`: in place of `Σ t<r (B + c)` there is `A(r)`. So all of the above plus
//! `lead = max r≤s (A(r) − Σ t<r (B + c))`, which is at least 0 since `r = 0` has no way home. (The path through the
//! gradients' engine leaves `s` for the stage before: `r < s`.)
//!
//! **Window.** For stages `s < u` and as long as `u` has pairs to do, `u` can be left backwards for `s` and come back with
//! a later microbatch: from backward `k` of `u` home to `s`, whose next operation is forward `k + w(s) + 1`, which
//! reaches `u` as its forward `k + w(s) + 1 = (k + u − s + 1) + w(u)`, after which comes backward `k + u − s + 1`. That takes
//! `Σ s≤t<u (x + 2c) + x(u)` for `u − s + 1` microbatches, in place of `(u − s + 1) x(u)`; there is room for
//! `⌊(M − 1 − w(u)) / (u − s + 1)⌋` of these within the pairs of the stage's bound.
//!
//! `O(1)` for each stage and `O(S²)` for the windows.

use super::line::StageCost;

/// A stage and what is around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Microbatches of a replica, and stages behind.
    pub(super) microbatches: f64,
    pub(super) behind: f64,
    /// `R`, at least.
    pub(super) around: f64,
    /// The longest `x` of this stage and those behind it, at least.
    pub(super) heaviest: f64,
    /// Whether the stage's time may be split in any way: it is taken as half forward, half backward.
    pub(super) halves: bool,
}

/// The longest of the paths of a stage, from when its first microbatch arrives until its last gradient is on its way home,
/// without all-reduces: and that of the path that leaves through the gradients' engine.
pub(super) fn stage(cost: &StageCost, place: Place) -> (f64, f64) {
    let Place { microbatches: m, behind: w, around: r, heaviest, halves } = place;
    let x = cost.both();
    // With one sum the path is shortest where both parts are equal: its length is convex and symmetric in the two.
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

/// What the stages before one amount to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Before {
    /// `pre`.
    pub(super) way: f64,
    /// The part of it that leads home: `Σ (B + c)`.
    pub(super) home: f64,
    /// `lead` of the stage before.
    pub(super) lead: f64,
}

impl Before {
    pub(super) const NOTHING: Before = Before { way: 0.0, home: 0.0, lead: f64::NEG_INFINITY };

    /// With a stage's own all-reduce.
    pub(super) fn led(&self, all_reduce: f64) -> f64 {
        self.lead.max(all_reduce - self.home)
    }

    /// Behind the stage.
    pub(super) fn after(&self, cost: &StageCost, all_reduce: f64) -> Before {
        Before {
            way: self.way + cost.both() + 2.0 * cost.send,
            home: self.home + cost.backward + cost.send,
            lead: self.led(all_reduce),
        }
    }

    /// The bound of a stage behind these.
    pub(super) fn bound(&self, cost: &StageCost, all_reduce: f64, place: Place) -> f64 {
        let (paths, returns) = stage(cost, place);
        self.way + (paths + self.led(all_reduce)).max(returns + self.lead)
    }
}

/// Seconds of a ring all-reduce for each byte of parameters.
pub(super) fn reduce_factor(replicas: u32, bandwidth: f64) -> f64 {
    let d = f64::from(replicas);
    4.0 * (d - 1.0) / d / bandwidth
}

/// The bound of all stages of a pipeline, windows included.
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
    let mut before = Before::NOTHING;
    let mut ways = Vec::with_capacity(count);
    let mut most: f64 = 0.0;
    for (u, cost) in stages.iter().enumerate() {
        let all_reduce = factor * cost.parameters;
        let behind = (count - 1 - u) as f64;
        let place = Place { microbatches: m, behind, around: around[u], heaviest: heaviest[u], halves };
        let own = before.bound(cost, all_reduce, place);
        most = most.max(own);
        // The window's loops replace pairs of the straight path only.
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

/// The stage's own path.
fn straight(cost: &StageCost, place: Place) -> f64 {
    let plain = StageCost { sends: 0.0, returns: 0.0, ..*cost };
    let Place { microbatches: m, behind: w, around: r, .. } = place;
    if m <= w + 1.0 {
        return m * plain.both();
    }
    let x = plain.both();
    let (f, b) = if place.halves { (x / 2.0, x / 2.0) } else { (plain.forward, plain.backward) };
    m * x + (r - w * f).max(0.0) + (r - w * b).max(0.0)
}
