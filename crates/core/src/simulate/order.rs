//! Order of a worker's computations: a short list of segments that repeat with growing microbatch numbers.
//!
//! A schedule is periodic except at its beginning and end. An order therefore takes memory for its period and not for
//! its microbatches, and any operation is found in constant time. Microbatch numbers are local to the worker.

use crate::plan::interleaved_round;

/// Kind of computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PassKind {
    /// Forward pass.
    Forward,
    /// Backward pass: whole, or only of the inputs if the weights' part is delayed.
    Backward,
    /// Backward pass of the inputs, in a schedule that also has whole ones.
    InputGradient,
    /// Backward pass of the weights.
    WeightGradient,
}

/// One computation of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Computation {
    pub(super) work: PassKind,
    /// Index of the virtual stage in the whole pipeline.
    pub(super) chunk: u32,
    pub(super) own: u32,
    /// True if it runs beside the other pass of another microbatch, so that both take less time.
    pub(super) paired: bool,
}

/// Operations that repeat, each time `step` microbatches later.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) operations: Vec<Computation>,
    pub(super) step: u32,
    pub(super) repeats: u64,
    /// Index of its first operation in the order.
    pub(super) start: u64,
    /// Microbatches held before the segment.
    held_before: i64,
    /// Microbatches held after each operation of the first repetition, minus those before it.
    held: Vec<i64>,
}

impl Segment {
    /// Number of operations in all repetitions.
    pub(super) fn len(&self) -> u64 {
        self.operations.len() as u64 * self.repeats
    }

    /// Change of the number of held microbatches over one repetition.
    fn net(&self) -> i64 {
        self.held.last().copied().unwrap_or(0)
    }
}

/// All computations of a worker, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct ComputationOrder {
    pub(super) segments: Vec<Segment>,
    pub(super) len: u64,
    /// Operations after which a microbatch's activations are released.
    release: &'static [PassKind],
}

impl ComputationOrder {
    /// Creates an empty order that releases a microbatch's activations after `release`.
    fn releasing(release: &'static [PassKind]) -> Self {
        ComputationOrder { release, ..ComputationOrder::default() }
    }

    /// Order of listed operations. Whole backward passes and weights' parts release activations.
    pub(super) fn listed(operations: Vec<Computation>) -> Self {
        let mut order = ComputationOrder::releasing(&[PassKind::Backward, PassKind::WeightGradient]);
        order.once(operations);
        order
    }

    fn repeat(&mut self, operations: Vec<Computation>, step: u32, repeats: u64) {
        if operations.is_empty() || repeats == 0 {
            return;
        }
        let mut now = 0;
        let held = operations.iter().map(|operation| {
            // If a forward releases its own activations, they are held only while it runs.
            now += i64::from(operation.work == PassKind::Forward) - i64::from(self.release.contains(&operation.work));
            now
        });
        let held = held.collect();
        let held_before = self.segments.last().map_or(0, |last| last.held_before + last.net() * last.repeats as i64);
        let segment = Segment { operations, step, repeats, start: self.len, held_before, held };
        self.len += segment.len();
        self.segments.push(segment);
    }

    fn once(&mut self, operations: Vec<Computation>) {
        self.repeat(operations, 0, 1);
    }

    /// Number of forward passes that run beside a backward pass.
    pub(super) fn paired(&self) -> u64 {
        let forward = |operation: &&Computation| operation.paired && operation.work == PassKind::Forward;
        let of = |segment: &Segment| segment.operations.iter().filter(forward).count() as u64 * segment.repeats;
        self.segments.iter().map(of).sum()
    }

    fn segment(&self, index: u64) -> &Segment {
        let next = self.segments.iter().position(|segment| index < segment.start + segment.len());
        &self.segments[next.expect("an index within the order")]
    }

    /// Operation number `index`.
    pub(super) fn at(&self, index: u64) -> Computation {
        let segment = self.segment(index);
        let (within, period) = (index - segment.start, segment.operations.len() as u64);
        let (repetition, position) = if period == 1 { (within, 0) } else { (within / period, within % period) };
        let operation = segment.operations[position as usize];
        Computation { own: operation.own + repetition as u32 * segment.step, ..operation }
    }

    /// Microbatches, times virtual stages, whose activations are held after operation number `index`.
    pub(super) fn held_after(&self, index: u64) -> i64 {
        let segment = self.segment(index);
        let (within, period) = (index - segment.start, segment.operations.len() as u64);
        segment.held_before + (within / period) as i64 * segment.net() + segment.held[(within % period) as usize]
    }

    /// Maximum number held at any time.
    pub(super) fn most_held(&self) -> i64 {
        let most = |segment: &Segment| {
            let within = segment.held.iter().copied().max().unwrap_or(0);
            segment.held_before + within + (segment.net() * (segment.repeats as i64 - 1)).max(0)
        };
        // Activations released after their own forward are held during it.
        let least = i64::from(self.release.contains(&PassKind::Forward) && self.len > 0);
        self.segments.iter().map(most).fold(least, i64::max)
    }

    /// True if the activations of a microbatch are released after `work`.
    pub(super) fn releases(&self, work: PassKind) -> bool {
        self.release.contains(&work)
    }
}

fn forward(chunk: u32, own: u64) -> Computation {
    Computation { work: PassKind::Forward, chunk, own: own as u32, paired: false }
}

fn backward(chunk: u32, own: u64) -> Computation {
    Computation { work: PassKind::Backward, chunk, own: own as u32, paired: false }
}

fn weights(chunk: u32, own: u64) -> Computation {
    Computation { work: PassKind::WeightGradient, chunk, own: own as u32, paired: false }
}

/// A forward and a backward pass, side by side if `paired`.
fn both(passes: [Computation; 2], paired: bool) -> [Computation; 2] {
    passes.map(|pass| Computation { paired, ..pass })
}

/// `warm_up` forwards, then one forward and one backward alternately, then the remaining backwards. This is GPipe if
/// the warm-up covers all microbatches. Passes that are `paired` belong to different microbatches, so that one more is
/// started first.
pub(super) fn alternating(chunk: u32, own: u32, warm_up: u32, paired: bool) -> ComputationOrder {
    let warm_up = warm_up.saturating_add(paired.into());
    let (own, warm_up) = (u64::from(own), u64::from(warm_up.min(own)));
    let mut order = ComputationOrder::releasing(&[PassKind::Backward]);
    order.repeat(vec![forward(chunk, 0)], 1, warm_up);
    order.repeat(both([forward(chunk, warm_up), backward(chunk, 0)], paired).to_vec(), 1, own - warm_up);
    order.repeat(vec![backward(chunk, own - warm_up)], 1, warm_up);
    order
}

/// Forwards only.
pub(super) fn inference(chunk: u32, own: u32) -> ComputationOrder {
    let mut order = ComputationOrder::releasing(&[PassKind::Forward]);
    order.repeat(vec![forward(chunk, 0)], 1, own.into());
    order
}

/// ZB-H1: like 1F1B, with the weights' part of a backward `delay` microbatches later. The last backwards come as early
/// as possible. The remaining weights' parts fill the time between and after them.
pub(super) fn zero_bubble_h1(chunk: u32, own: u32, warm_up: u32, delay: u32) -> ComputationOrder {
    let (own, warm_up) = (u64::from(own), u64::from(warm_up.min(own)));
    let pairs = own - warm_up;
    let put_off = u64::from(delay).min(pairs);
    let mut order = ComputationOrder::releasing(&[PassKind::WeightGradient]);
    order.repeat(vec![forward(chunk, 0)], 1, warm_up);
    order.repeat(vec![forward(chunk, warm_up), backward(chunk, 0)], 1, put_off);
    let steady = vec![forward(chunk, warm_up + put_off), backward(chunk, put_off), weights(chunk, 0)];
    order.repeat(steady, 1, pairs - put_off);
    let still = (u64::from(delay) - put_off).min(warm_up);
    order.repeat(vec![backward(chunk, pairs)], 1, still);
    let first = pairs - put_off;
    order.repeat(vec![backward(chunk, pairs + still), weights(chunk, first)], 1, warm_up - still);
    let first = first + warm_up - still;
    order.repeat(vec![weights(chunk, first)], 1, own - first);
    order
}

/// Interleaved 1F1B on stage `stage` of `stages`, each with `parts` virtual stages. Microbatches go in rounds
/// ([`interleaved_round`]): a round passes all parts before the next. `own` microbatches must have such rounds. With
/// `paired` passes, one more pass is started first.
pub(super) fn interleaved(stage: u32, stages: u32, parts: u32, own: u32, paired: bool) -> ComputationOrder {
    let (s, v) = (u64::from(stages), u64::from(parts));
    let round = interleaved_round(stages, own).unwrap_or(stages).max(1);
    let g = u64::from(round);
    let number = |k: u64, part: u64| ((part * s) as u32 + stage, k / (g * v) * g + k % g);
    let nth_forward = |k: u64| {
        let (chunk, own) = number(k, k % (g * v) / g);
        forward(chunk, own)
    };
    let nth_backward = |k: u64| {
        let (chunk, own) = number(k, v - 1 - k % (g * v) / g);
        backward(chunk, own)
    };
    let all = u64::from(own) * v;
    let warm_up = (2 * (s - 1 - u64::from(stage)) + (v - 1) * g + u64::from(paired)).min(all);
    let rounds = (all - warm_up) / (g * v);
    let pair = |k: u64| both([nth_forward(warm_up + k), nth_backward(k)], paired);
    let mut order = ComputationOrder::releasing(&[PassKind::Backward]);
    order.once((0..warm_up).map(nth_forward).collect());
    order.repeat((0..g * v).flat_map(pair).collect(), round, rounds);
    order.once((rounds * g * v..all - warm_up).flat_map(pair).collect());
    order.once((all - warm_up..all).map(nth_backward).collect());
    order
}

/// Interleaved 1F1B with half the warm-up, and with the weights' part of a backward pass put off by as many passes as the
/// stage's number: ZB-1p over virtual stages (Qi et al., ICLR 2024), as PyTorch's `ScheduleInterleavedZeroBubble`. The
/// other parameters are as for [`interleaved`].
pub(super) fn interleaved_zero_bubble(stage: u32, stages: u32, parts: u32, own: u32) -> ComputationOrder {
    let (s, v, delay) = (u64::from(stages), u64::from(parts), u64::from(stage));
    let round = interleaved_round(stages, own).unwrap_or(stages).max(1);
    let g = u64::from(round);
    let all = u64::from(own) * v;
    let warm_up = ((v - 1) * g + s - 1 - delay).min(all);
    let in_round = |k: u64| k % (g * v) / g;
    let place = |k: u64, part: u64| ((part * s) as u32 + stage, k / (g * v) * g + k % g);
    let nth = |work: PassKind, k: u64| {
        let part = if work == PassKind::Forward { in_round(k) } else { v - 1 - in_round(k) };
        let (chunk, own) = place(k, part);
        Computation { work, chunk, own: own as u32, paired: false }
    };
    // The forward pass after the warm-up, the backward pass `k`, and the weights' part that was put off.
    let turn = |k: u64| {
        let forward = (warm_up + k < all).then(|| nth(PassKind::Forward, warm_up + k));
        let weights = (k >= delay).then(|| nth(PassKind::WeightGradient, k - delay));
        forward.into_iter().chain([nth(PassKind::Backward, k)]).chain(weights)
    };
    let first = delay.min(all);
    let rounds = (all - warm_up).saturating_sub(first) / (g * v);
    let steady = first + rounds * g * v;
    let mut order = ComputationOrder::releasing(&[PassKind::WeightGradient]);
    order.once((0..warm_up).map(|k| nth(PassKind::Forward, k)).collect());
    order.once((0..first).flat_map(turn).collect());
    if rounds > 0 {
        order.repeat((first..first + g * v).flat_map(turn).collect(), round, rounds);
    }
    order.once((steady..all).flat_map(turn).collect());
    order.once((all - first..all).map(|k| nth(PassKind::WeightGradient, k)).collect());
    order
}

/// ZB-V on stage `stage` of `stages`. Its first part is number `stage` of the model, its second number
/// `2 · stages − 1 − stage`: activations go down the devices and come back up.
///
/// The phases are those of the handcrafted schedule for equal times (Qi et al., section 3):
/// 1. forwards of the first part until its microbatch comes back,
/// 2. forwards of both parts alternately,
/// 3. forward, backward and weights of the second part,
/// 4. forward, backward and weights of one microbatch, alternately on both parts,
/// 5. at the end backwards first, weights last.
pub(super) fn zero_bubble_v(stage: u32, stages: u32, own: u32) -> ComputationOrder {
    let (down, up) = (stage, 2 * stages - 1 - stage);
    let (s, all) = (u64::from(stages), u64::from(own));
    let after = s - u64::from(stage);
    // The phases need this many microbatches; those beyond the batch are removed below.
    let planned = all.max(2 * s - 1);
    let mut head = vec![];
    let mut done = [0u64; 2];
    let mut backwards = [0u64; 2];
    let both = |chunk: u32, own: u64| [backward(chunk, own), weights(chunk, own)];
    for _ in 0..2 * after - 1 {
        head.push(forward(down, done[0]));
        done[0] += 1;
    }
    for _ in 0..stage {
        head.extend([forward(up, done[1]), forward(down, done[0])]);
        done = [done[0] + 1, done[1] + 1];
    }
    for _ in 0..after {
        head.push(forward(up, done[1]));
        head.extend(both(up, backwards[1]));
        done[1] += 1;
        backwards[1] += 1;
    }
    let rounds = planned - done[0];
    let mut body = vec![forward(down, done[0])];
    body.extend(both(down, backwards[0]));
    body.push(forward(up, done[1]));
    body.extend(both(up, backwards[1]));
    done = done.map(|done| done + rounds);
    backwards = backwards.map(|backwards| backwards + rounds);
    let mut tail = vec![];
    while done[1] < planned {
        tail.extend(both(down, backwards[0]));
        tail.push(forward(up, done[1]));
        tail.extend(both(up, backwards[1]));
        done[1] += 1;
        backwards = backwards.map(|backwards| backwards + 1);
    }
    let mut weighted = backwards;
    for _ in 0..stage {
        tail.extend([backward(down, backwards[0]), backward(up, backwards[1])]);
        backwards = backwards.map(|backwards| backwards + 1);
    }
    for _ in 0..after {
        tail.extend([backward(down, backwards[0]), weights(down, weighted[0])]);
        backwards[0] += 1;
        weighted[0] += 1;
    }
    tail.extend((weighted[1]..planned).map(|own| weights(up, own)));
    tail.extend((weighted[0]..planned).map(|own| weights(down, own)));
    let mut order = ComputationOrder::releasing(&[PassKind::WeightGradient]);
    if all < planned {
        let shifted = |i: u64| body.iter().map(move |o| Computation { own: o.own + i as u32, ..*o });
        let listed = head.iter().copied().chain((0..rounds).flat_map(shifted)).chain(tail.iter().copied());
        order.once(listed.filter(|operation| operation.own < own).collect());
    } else {
        order.once(head);
        order.repeat(body, 1, rounds);
        order.once(tail);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(order: &ComputationOrder) -> String {
        let one = |operation: Computation| {
            let letter = match operation.work {
                PassKind::Forward => 'F',
                PassKind::Backward => 'B',
                PassKind::InputGradient => 'I',
                PassKind::WeightGradient => 'W',
            };
            format!("{letter}{}.{} ", operation.chunk, operation.own)
        };
        (0..order.len).map(|index| one(order.at(index))).collect::<String>().replace("0.", "")
    }

    #[test]
    fn orders_of_one_part() {
        assert_eq!(text(&alternating(0, 4, 2, false)), "F0 F1 F2 B0 F3 B1 B2 B3 ");
        assert_eq!(text(&alternating(0, 3, 0, false)), "F0 B0 F1 B1 F2 B2 ");
        assert_eq!(text(&alternating(0, 3, 9, false)), "F0 F1 F2 B0 B1 B2 ");
        assert_eq!(text(&alternating(0, 0, 2, false)), "");
        assert_eq!(text(&inference(0, 3)), "F0 F1 F2 ");
        assert_eq!(text(&zero_bubble_h1(0, 4, 1, 1)), "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3 ");
        assert_eq!(text(&zero_bubble_h1(0, 3, 2, 5)), "F0 F1 F2 B0 B1 B2 W0 W1 W2 ");
    }

    #[test]
    fn interleaved_groups_go_through_all_parts() {
        let order = interleaved(0, 2, 2, 4, false);
        assert_eq!(text(&order), "F0 F1 F2.0 F2.1 F2 B2.0 F3 B2.1 F2.2 B0 F2.3 B1 B2.2 B2.3 B2 B3 ");
        assert_eq!(order.most_held(), 5);
    }

    #[test]
    fn every_operation_comes_once_and_in_turn() {
        for stages in 1..6u32 {
            for stage in 0..stages {
                for own in 0..14u32 {
                    let mut orders = vec![(zero_bubble_v(stage, stages, own), 6)];
                    if interleaved_round(stages, own).is_some() {
                        orders.push((interleaved(stage, stages, 3, own, false), 6));
                        orders.push((interleaved_zero_bubble(stage, stages, 3, own), 9));
                    }
                    orders.push((zero_bubble_h1(stage, own, stages - 1 - stage, stage), 3));
                    for (order, each) in orders {
                        assert_eq!(order.len, u64::from(own) * each, "{stage} {stages} {own}");
                        let mut seen = std::collections::HashMap::new();
                        let mut held = 0;
                        for index in 0..order.len {
                            let operation = order.at(index);
                            let next = seen.entry((operation.work, operation.chunk)).or_insert(0);
                            assert_eq!(operation.own, *next);
                            *next += 1;
                            held += i64::from(operation.work == PassKind::Forward);
                            held -= i64::from(order.releases(operation.work));
                            assert_eq!(order.held_after(index), held);
                            assert!(held <= order.most_held());
                        }
                        assert_eq!(held, 0);
                    }
                }
            }
        }
    }
}
