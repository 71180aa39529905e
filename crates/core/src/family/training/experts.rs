//! Times of a layer's routed experts: their products, the dispatch of tokens to them and back, the load of the busiest
//! rank, and the host's launches.
//!
//! A hierarchical dispatcher sends a token once to each machine with one of its experts; a flat one once to each expert.
//! Grouped products run at a fraction of a dense product's rate, which grows with the experts' width. Without CUDA graphs,
//! a pass takes at least the host's time to launch its kernels. `O(1)` per kind of layer.

use super::layer::{LayerTime, RunRates, gates, odd_width};
use crate::workload::training::{
    expert_settings::{ExpertOverlap, Imbalance},
    model::{Attention, Experts, FeedForward, LayerKind},
};

/// Width of experts for which the constant `experts` holds.
const WIDTH: f64 = 2048.0;
/// Largest fraction of a dense product's rate in 8 bits: Grok-1's experts of width 32,768 do not gain from it.
const MOST_IN_8_BITS: f64 = 0.70;
/// Block size of grouped products. Experts of other widths run at [`OFF_BLOCK`] of the rate; observed on gpt-oss (2,880)
/// alone, and no table of measured kernels explains it.
const GROUPED_BLOCK: u64 = 128;
/// See [`GROUPED_BLOCK`].
const OFF_BLOCK: f64 = 0.69;
/// Latency of a dispatch or combine within a domain, and to each further machine, seconds.
const LATENCY_S: [f64; 2] = [30e-6, 20e-6];
/// Expected number of `machines` with one of a token's `chosen` experts, if each holds as many of `experts`.
pub(super) fn machines_reached(machines: f64, experts: f64, chosen: f64) -> f64 {
    let each = experts / machines;
    // All experts are chosen from the other machines: C(experts − each, chosen) / C(experts, chosen).
    let missed: f64 =
        (0..chosen as u64).map(|drawn| ((experts - each - drawn as f64) / (experts - drawn as f64)).max(0.0)).product();
    machines * (1.0 - missed)
}

/// Seconds of a forward and a backward pass side by side, without their ends: `computed` and `sent` seconds overlap. While
/// the dispatcher runs, products take longer by the share `slowed`.
fn slot(computed: f64, sent: f64, slowed: f64) -> f64 {
    (computed + slowed * computed.min(sent)).max(sent)
}

impl RunRates<'_> {
    /// Factor on the mean load, and the excess of the busiest rank. Padded experts all have the same load.
    fn load(&self, experts: &Experts) -> (f64, f64) {
        let busiest = self.run.busiest(experts);
        match self.run.settings.imbalance {
            Imbalance::Capacity(_) => (busiest, 0.0),
            _ => (1.0, busiest - 1.0),
        }
    }

    /// Adds the products of the routed experts.
    pub(super) fn grouped_products(&self, time: &mut LayerTime, experts: &Experts) {
        let (e, parts) = (f64::from(self.run.layout.expert), f64::from(self.run.layout.expert_tensor));
        let wide = experts.token_width(self.model.hidden) as f64;
        let groups = experts.count as f64 / e;
        let (load, excess) = self.load(experts);
        // The ranks that share an expert gather their tokens, and each has a part of its width.
        let tokens = self.run.tokens() / self.run.sequence_split();
        let m = load * parts * tokens * experts.chosen as f64 / groups;
        let width = experts.width as f64 / parts;
        let mut share = self.constants.experts * (width / WIDTH).powf(self.constants.experts_width);
        if self.run.precision.bits() == 8 {
            share = share.min(MOST_IN_8_BITS);
        }
        if !experts.width.is_multiple_of(GROUPED_BLOCK) {
            share *= OFF_BLOCK;
        }
        let (precision, share) = (self.run.precision, share / odd_width([width, wide]));
        let (mut forward, mut backward) = (0.0, 0.0);
        for [n, k] in [[gates(experts.gated) * width, wide], [wide, width]] {
            forward += self.gemm([m, n, k], groups, precision, share);
            let of_weights = if self.frozen() { 0.0 } else { self.gemm([n, k, m], groups, precision, share) };
            backward += self.gemm([m, k, n], groups, precision, share) + of_weights;
            time.weights += of_weights * (1.0 + excess);
        }
        for (pass, seconds) in [(&mut time.forward, forward), (&mut time.backward, backward)] {
            pass.gemm += seconds;
            pass.routing += excess * seconds;
        }
    }

    /// Adds the dispatch of tokens to their experts and back.
    pub(super) fn expert_parallel(&self, time: &mut LayerTime, experts: &Experts) {
        let (e, parts) = (f64::from(self.run.layout.expert), f64::from(self.run.layout.expert_tensor));
        let (load, excess) = self.load(experts);
        let tokens = load * self.run.element_bytes() * self.run.tokens() / self.run.sequence_split()
            * experts.token_width(self.model.hidden) as f64;
        let chosen = experts.chosen as f64;
        let mut unit = 0.0;
        if parts > 1.0 {
            // Before its experts run, a rank gathers the tokens of the ranks that share them; afterwards it reduces.
            let bytes = tokens * chosen * (parts - 1.0);
            unit += bytes / self.link(u64::from(self.run.layout.expert_tensor)) + self.constants.hop_s * (parts - 1.0);
            for pass in [&mut time.forward, &mut time.backward] {
                pass.traffic.tensor += 2.0 * bytes;
            }
        }
        if e > 1.0 {
            let (seconds, bytes) = self.dispatch(experts, tokens);
            unit += seconds;
            for pass in [&mut time.forward, &mut time.backward] {
                pass.traffic.expert += 2.0 * bytes;
            }
        }
        for pass in [&mut time.forward, &mut time.backward] {
            pass.expert_parallel += 2.0 * unit;
            pass.routing += 2.0 * unit * excess;
        }
        if self.run.settings.ep_overlap == ExpertOverlap::Shared {
            self.behind_shared_expert(time, experts);
        }
    }

    /// Seconds of one dispatch of `tokens` bytes, and the bytes that a rank sends on the slowest links that it uses.
    fn dispatch(&self, experts: &Experts, tokens: f64) -> (f64, f64) {
        let (e, parts) = (f64::from(self.run.layout.expert), f64::from(self.run.layout.expert_tensor));
        let (chosen, domain) = (experts.chosen as f64, f64::from(self.accelerator.domain));
        let machines = (e * parts / domain).min(e);
        if machines <= 1.0 {
            let bytes = tokens * chosen * (e - 1.0) / e;
            return (self.constants.expert_exposed * bytes / self.expert_link() + LATENCY_S[0], bytes);
        }
        let copies = if self.run.settings.dispatcher.is_hierarchical() {
            let limit = experts.node_limit.map_or(f64::INFINITY, |limit| limit as f64);
            machines_reached(machines, experts.count as f64, chosen).min(limit)
        } else {
            chosen
        };
        let between = tokens * copies * (machines - 1.0) / machines;
        // Within a machine every expert gets its copy.
        let inside = tokens * chosen * (1.0 - machines / e).max(0.0);
        let seconds = f64::max(between / self.expert_link(), self.constants.expert_exposed * inside / self.link(1));
        (seconds + LATENCY_S[0] + LATENCY_S[1] * (machines - 1.0), between)
    }

    /// Hides the dispatch behind the shared expert, up to its own time.
    fn behind_shared_expert(&self, time: &mut LayerTime, experts: &Experts) {
        if experts.shared_width == 0 {
            return;
        }
        let mut shared = LayerTime::default();
        self.dense_block(&mut shared, experts.shared_width as f64, experts.gated);
        for (pass, own) in [(&mut time.forward, &shared.forward), (&mut time.backward, &shared.backward)] {
            pass.expert_parallel -= pass.expert_parallel.min(own.gemm + own.cast);
        }
    }

    /// Adds the host's launches: a pass takes at least the time to launch its kernels one by one. The numbers of kernels are
    /// those of Megatron-Core with Transformer Engine; 8 bits add casts, latent attention adds projections.
    pub(super) fn launches(&self, time: &mut LayerTime, kind: &LayerKind) {
        if self.run.settings.launches_from_graphs(self.accelerator.generation) || !self.model.has_experts() {
            return;
        }
        let in_8_bits = f64::from(u8::from(self.run.precision.bits() < 16));
        let latent = matches!(kind.attention, Attention::Latent { .. });
        let attention = 14.0 + 4.0 * in_8_bits + if latent { 10.0 } else { 0.0 };
        let (fixed, each, groups) = match kind.feed_forward {
            FeedForward::Dense { .. } => (5.0 + 2.0 * in_8_bits, 0.0, 0.0),
            FeedForward::Experts(experts) => {
                let shared = if experts.shared_width > 0 { 6.0 } else { 0.0 };
                let groups = experts.count as f64 / f64::from(self.run.layout.expert);
                (40.0 + shared, 2.0 + 2.0 * in_8_bits, groups)
            }
        };
        let forward = attention + fixed + groups * each;
        let backward = 2.0 * (attention + fixed) + groups * (4.0 + 2.0 * in_8_bits);
        for (pass, kernels) in [(&mut time.forward, forward), (&mut time.backward, backward)] {
            pass.launches = (self.constants.host_s * kernels - pass.total()).max(0.0);
        }
    }

    /// Sets the seconds that a layer saves if its forward pass runs beside the backward pass of another microbatch,
    /// recomputation included: the transfers of one run during the products of the other.
    pub(super) fn pair(&self, time: &mut LayerTime) {
        let settings = &self.run.settings;
        let passes = [&time.forward, &time.backward, &time.again];
        let sent: f64 = passes.iter().map(|pass| pass.expert_parallel).sum();
        if settings.ep_overlap != ExpertOverlap::Batch || sent == 0.0 {
            return;
        }
        let whole: f64 = passes.iter().map(|pass| pass.total()).sum();
        let slowed = settings.dispatcher.multiprocessors() / self.accelerator.generation.multiprocessors();
        time.saved = (whole - slot(whole - sent, sent, slowed)).max(0.0);
        // The last combine of a chunk's forward pass and the last dispatch of its backward pass have nothing beside them,
        // but for delayed gradients of weights.
        let tail = (time.forward.expert_parallel + time.backward.expert_parallel) / 2.0;
        let behind = if settings.delay_weight_gradients { time.weights } else { 0.0 };
        time.tail = (tail - behind).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length of two chains of operations on two streams, each started as early as possible: the forward pass of one
    /// microbatch and the backward pass of another.
    fn on_two_streams(layers: usize, [attention, experts, dispatch]: [f64; 3]) -> f64 {
        const COMPUTE: usize = 0;
        const COPY: usize = 1;
        let forward = [(COMPUTE, attention), (COPY, dispatch), (COMPUTE, experts), (COPY, dispatch)];
        let backward = [(COPY, dispatch), (COMPUTE, 2.0 * experts), (COPY, dispatch), (COMPUTE, 2.0 * attention)];
        let chains = [forward, backward].map(|layer| layer.repeat(layers));
        let (mut done, mut ready, mut free) = ([0; 2], [0.0f64; 2], [0.0f64; 2]);
        while let Some((start, chain)) = (0..2)
            .filter(|&chain| done[chain] < chains[chain].len())
            .map(|chain| (free[chains[chain][done[chain]].0].max(ready[chain]), chain))
            .min_by(|a, b| a.0.total_cmp(&b.0))
        {
            let (stream, seconds) = chains[chain][done[chain]];
            done[chain] += 1;
            ready[chain] = start + seconds;
            free[stream] = start + seconds;
        }
        ready[0].max(ready[1])
    }

    #[test]
    fn a_slot_takes_as_long_as_two_streams() {
        let layers = 8;
        for times in
            [[1.0, 1.0, 0.5], [1.0, 2.0, 0.3], [2.0, 1.0, 1.0], [0.5, 0.5, 0.2], [1.0, 1.0, 1.5], [1.0, 1.0, 0.0]]
        {
            let [attention, experts, dispatch] = times;
            let all = |one: f64| layers as f64 * one;
            let (computed, sent) = (all(3.0 * (attention + experts)), all(4.0 * dispatch));
            let own = slot(computed, sent, 0.0) + 2.0 * dispatch;
            let played = on_two_streams(layers, times);
            assert!(played >= slot(computed, sent, 0.0) - 1e-9, "{times:?}");
            assert!((own / played - 1.0).abs() < 0.1, "{times:?}: {own} {played}");
        }
        assert_eq!(slot(10.0, 4.0, 0.25), 11.0);
    }

    #[test]
    fn machines_are_reached_as_often_as_in_drawn_routings() {
        let mut seed = 11u64;
        let mut uniform = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        for (machines, experts, chosen) in [(8, 256, 8), (4, 128, 8), (2, 8, 2), (16, 64, 6)] {
            let mut sum = 0;
            for _ in 0..10_000 {
                let mut taken: Vec<usize> = vec![];
                while taken.len() < chosen {
                    let expert = (uniform() * experts as f64) as usize;
                    if !taken.contains(&expert) {
                        taken.push(expert);
                    }
                }
                let mut reached: Vec<usize> = taken.iter().map(|expert| expert / (experts / machines)).collect();
                reached.sort_unstable();
                reached.dedup();
                sum += reached.len();
            }
            let (drawn, own) =
                (f64::from(sum as u32) / 1e4, machines_reached(machines as f64, experts as f64, chosen as f64));
            assert!((drawn / own - 1.0).abs() < 0.01, "{drawn} {own}");
        }
        assert_eq!(machines_reached(1.0, 8.0, 2.0), 1.0);
    }
}
