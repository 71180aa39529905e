//! Times of one layer on one rank for one microbatch, part by part, and of the embedding and the head.
//!
//! A matrix product of m × n × k takes its FLOP at the attained rate, times a factor with 1/m + 1/n + 1/k for edge
//! tiles and repeated reads of operands. Attention is fused unless the settings disable it. Elementwise kernels move
//! bytes; collectives are rings. `O(1)` per kind of layer.

use crate::workload::training::{
    hardware::{Accelerator, Constants},
    model::{FeedForward, LayerKind, Model, Projection},
    run::{AttentionKernel, ContextStyle, GroupLinks, LinkShares, Recompute, TrainingPrecision, TrainingRun},
};

/// Launch time of a kernel, seconds.
const LAUNCH_S: f64 = 4e-6;
/// Latency of one step of a ring, seconds.
const HOP_S: f64 = 5e-6;
/// Latency of an all-to-all, seconds.
const ALL_TO_ALL_S: f64 = 10e-6;

/// Memory traffic of a backward pass, relative to the forward pass.
pub const BACKWARD_TRAFFIC: f64 = 1.6;

/// Bytes that a rank sends in one pass, by kind of group, exposed or not.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traffic {
    /// Bytes within its tensor group.
    pub tensor: f64,
    /// Time of the tensor group's transfers alone, seconds.
    pub tensor_s: f64,
    /// Bytes within its context group.
    pub context: f64,
    /// Bytes within its expert group.
    pub expert: f64,
}

impl Traffic {
    fn add(&mut self, other: &Traffic, times: f64) {
        self.tensor += times * other.tensor;
        self.tensor_s += times * other.tensor_s;
        self.context += times * other.context;
        self.expert += times * other.expert;
    }
}

/// Parts of one pass of a layer, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PassTime {
    /// Matrix products.
    pub gemm: f64,
    /// Casts to 8 and 4 bits.
    pub cast: f64,
    /// Attention core.
    pub attention: f64,
    /// Norms, activation functions, rotary positions, residuals, permutation of tokens.
    pub elementwise: f64,
    /// Exposed tensor-parallel transfers.
    pub tensor_parallel: f64,
    /// Exposed context-parallel transfers.
    pub context_parallel: f64,
    /// Expert-parallel transfers.
    pub expert_parallel: f64,
    /// Bytes of all transfers; not part of the time.
    pub traffic: Traffic,
}

impl PassTime {
    /// Sum of all parts.
    pub fn total(&self) -> f64 {
        self.parts().iter().sum()
    }

    fn parts(&self) -> [f64; 7] {
        let PassTime { gemm, cast, attention, elementwise, tensor_parallel, context_parallel, expert_parallel, .. } =
            *self;
        [gemm, cast, attention, elementwise, tensor_parallel, context_parallel, expert_parallel]
    }

    /// Adds another pass `times` times.
    pub fn add(&mut self, other: &PassTime, times: f64) {
        self.gemm += times * other.gemm;
        self.cast += times * other.cast;
        self.attention += times * other.attention;
        self.elementwise += times * other.elementwise;
        self.tensor_parallel += times * other.tensor_parallel;
        self.context_parallel += times * other.context_parallel;
        self.expert_parallel += times * other.expert_parallel;
        self.traffic.add(&other.traffic, times);
    }
}

/// Exposed time of a transfer: the fitted fraction of it, and at least the remainder after `hiding`.
fn exposed(transfer: f64, share: f64, hiding: f64) -> f64 {
    (share * transfer).max(transfer - hiding)
}

/// Times of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerTime {
    /// Forward pass.
    pub forward: PassTime,
    /// Backward pass without recomputation.
    pub backward: PassTime,
    /// Recomputation in the backward pass.
    pub again: PassTime,
    /// Part of the backward pass that is the gradient of the weights. Only the optimizer waits for it.
    pub weights: f64,
}

/// Rates and sizes from which all times of a run are computed.
#[derive(Debug, Clone, Copy)]
pub struct RunRates<'a> {
    model: &'a Model,
    run: &'a TrainingRun,
    accelerator: &'a Accelerator,
    constants: &'a Constants,
}

impl<'a> RunRates<'a> {
    /// Rates of a run of a model on accelerators with these constants.
    pub fn new(model: &'a Model, run: &'a TrainingRun, accelerator: &'a Accelerator, constants: &'a Constants) -> Self {
        RunRates { model, run, accelerator, constants }
    }

    /// Tensor-parallel degree.
    fn t(&self) -> f64 {
        f64::from(self.run.layout.tensor)
    }

    /// Bytes per second of elementwise kernels.
    pub fn memory(&self) -> f64 {
        self.constants.memory * self.accelerator.memory_bandwidth
    }

    /// Bytes per second of a collective over `devices` neighbouring devices.
    pub(crate) fn link(&self, devices: u64) -> f64 {
        let inside = devices <= u64::from(self.accelerator.domain);
        self.constants.links * if inside { self.accelerator.inner_link } else { self.accelerator.outer_link }
    }

    /// Bytes per second of one kind of group on a topology; `otherwise` without a topology.
    fn wired(&self, own: impl Fn(&GroupLinks) -> f64, otherwise: f64) -> f64 {
        self.run.links.as_ref().map_or(otherwise, |links| self.constants.links * own(links))
    }

    /// Bytes per second of a reduction over ranks, each with `domain / t` neighbours in its NVLink domain.
    pub(crate) fn reduction(&self, ranks: f64) -> f64 {
        if let Some(links) = &self.run.links {
            return self.constants.links * links.data;
        }
        let inner = self.constants.links * self.accelerator.inner_link;
        let domain = f64::from(self.accelerator.domain);
        if self.t() * ranks <= domain {
            return inner;
        }
        inner.min(self.constants.links * self.accelerator.outer_link * (domain / self.t()).max(1.0))
    }

    /// Bytes per second within a tensor group.
    pub(crate) fn tensor_link(&self) -> f64 {
        self.wired(|links| links.tensor, self.link(u64::from(self.run.layout.tensor)))
    }

    /// Bytes per second within a context group.
    pub(crate) fn context_link(&self) -> f64 {
        let devices = u64::from(self.run.layout.tensor) * u64::from(self.run.layout.context);
        self.wired(|links| links.context, self.link(devices))
    }

    /// Bytes per second within an expert group.
    pub(crate) fn expert_link(&self) -> f64 {
        self.wired(|links| links.expert, self.link(u64::from(self.run.layout.expert)))
    }

    /// Bytes per second to the next stage.
    pub(crate) fn next_stage_link(&self) -> f64 {
        self.wired(|links| links.next_stage, self.link(self.run.layout.devices()))
    }

    /// Fractions of the time of each kind of transfer for which a link is busy with it: tensor, context, expert, next
    /// stage, data. One row for every link that may be the busiest. `ranks` reduce gradients.
    pub(crate) fn shared_links(&self, ranks: f64) -> Vec<LinkShares> {
        if let Some(links) = &self.run.links {
            return links.shares.clone();
        }
        let layout = &self.run.layout;
        let [t, c, e] = [layout.tensor, layout.context, layout.expert].map(u64::from);
        let domain = u64::from(self.accelerator.domain);
        let within = [t, t * c, e, layout.devices()].map(|devices| f64::from(u8::from(devices <= domain)));
        let across = within.map(|share| 1.0 - share);
        // A reduction across domains uses both kinds of links. It uses the inner links at their own rate.
        let data_within = self.reduction(ranks) / self.link(1);
        let data_across = if self.t() * ranks <= f64::from(self.accelerator.domain) { 0.0 } else { 1.0 };
        let row = |[t, c, e, p]: [f64; 4], data: f64| [t, c, e, p, data];
        vec![row(within, data_within), row(across, data_across)]
    }

    /// Seconds of `groups` products of m × n × k.
    fn gemm(&self, [m, n, k]: [f64; 3], groups: f64, precision: TrainingPrecision, share: f64) -> f64 {
        let accelerator = self.accelerator;
        let (peak, attained, edge) = match precision.bits() {
            16 => (accelerator.peak_16, self.constants.gemm_16, 310.0),
            8 => (accelerator.peak_8.unwrap_or(accelerator.peak_16), self.constants.gemm_8, 620.0),
            _ => (accelerator.peak_4.unwrap_or(accelerator.peak_16), self.constants.gemm_8, 620.0),
        };
        // Whatever the power, no product is faster than the data sheet's peak.
        let rate = (accelerator.sustained_16() * (peak / accelerator.peak_16) * attained * share).min(peak);
        2.0 * m * n * k * groups / rate * (1.0 + edge * (1.0 / m + 1.0 / n + 1.0 / k)) + LAUNCH_S
    }

    /// Seconds of one product of m × n × k with a weight: forward, and both products of the backward pass.
    pub fn product(&self, sides: [f64; 3]) -> [f64; 2] {
        let mut time = LayerTime::default();
        self.weight(&mut time, sides);
        [time.forward.gemm + time.forward.cast, time.backward.gemm + time.backward.cast]
    }

    /// Adds a weight's product in the forward pass, and both of the backward pass.
    fn weight(&self, time: &mut LayerTime, [m, n, k]: [f64; 3]) {
        let precision = self.run.precision;
        time.forward.gemm += self.gemm([m, n, k], 1.0, precision, 1.0);
        let of_weights = self.gemm([n, k, m], 1.0, precision, 1.0);
        time.backward.gemm += self.gemm([m, k, n], 1.0, precision, 1.0) + of_weights;
        time.weights += of_weights;
        if precision.bits() < 16 {
            time.forward.cast += 4.0 * m * k / self.memory();
            time.backward.cast += 4.0 * m * n / self.memory();
        }
    }

    /// Times of a kind of layer; `recompute` is the recomputation of this layer.
    pub fn layer(&self, kind: &LayerKind, recompute: Recompute) -> LayerTime {
        let mut time = LayerTime::default();
        self.products(&mut time, kind);
        self.core(&mut time, kind);
        self.elementwise(&mut time, kind);
        self.tensor_parallel(&mut time, kind);
        self.context_parallel(&mut time, kind);
        self.expert_parallel(&mut time, kind);
        match recompute {
            Recompute::Full | Recompute::Layers(_) => time.again = time.forward,
            Recompute::Selective if self.run.settings.attention == AttentionKernel::Unfused => {
                time.again.attention = time.forward.attention;
            }
            Recompute::Selective | Recompute::None => {}
        }
        time
    }

    fn products(&self, time: &mut LayerTime, kind: &LayerKind) {
        let (tokens, t, h) = (self.run.tokens(), self.t(), self.model.hidden as f64);
        let attention = kind.attention.matrices(self.model.hidden);
        for _ in 0..=usize::from(kind.cross) {
            for matrix in &attention {
                let (n, k) = matrix.on_rank(t);
                self.weight(time, [tokens, n, k]);
            }
        }
        let mut block = |width: f64, gated: bool| {
            self.weight(time, [tokens, gates(gated) * width / t, h]);
            self.weight(time, [tokens, h, width / t]);
        };
        match kind.feed_forward {
            FeedForward::Dense { width, gated } => block(width as f64, gated),
            FeedForward::Experts(experts) => {
                if experts.shared_width > 0 {
                    block(experts.shared_width as f64, experts.gated);
                }
                let e = f64::from(self.run.layout.expert);
                let groups = experts.count as f64 / e;
                let m = tokens / self.run.sequence_split() * experts.chosen as f64 / groups;
                let width = experts.width as f64;
                let (precision, share) = (self.run.precision, self.constants.experts);
                for [n, k] in [[gates(experts.gated) * width, h], [h, width]] {
                    time.forward.gemm += self.gemm([m, n, k], groups, precision, share);
                    let of_weights = self.gemm([n, k, m], groups, precision, share);
                    time.backward.gemm += self.gemm([m, k, n], groups, precision, share) + of_weights;
                    time.weights += of_weights;
                }
            }
        }
    }

    fn core(&self, time: &mut LayerTime, kind: &LayerKind) {
        let sequence = self.run.sequence as f64;
        self.core_over(time, kind, kind.mean_span(sequence));
        if kind.cross {
            self.core_over(time, kind, sequence);
        }
    }

    /// Adds the attention core if every token attends to `seen` others on average.
    fn core_over(&self, time: &mut LayerTime, kind: &LayerKind, seen: f64) {
        let (tokens, heads) = (self.run.tokens(), kind.attention.heads() as f64 / self.t());
        let (query, value) = kind.attention.core_widths();
        let flops = 2.0 * tokens * seen * heads * (query + value) as f64;
        let sustained = self.accelerator.sustained_16();
        if self.run.settings.attention == AttentionKernel::Unfused {
            // Products over all pairs, including masked ones, and the scores through memory.
            let flops = 2.0 * tokens * self.run.sequence as f64 * heads * (query + value) as f64;
            let rate = 0.6 * self.constants.gemm_16 * sustained;
            let bytes = tokens * self.run.sequence as f64 * heads * 12.0 / self.memory();
            time.forward.attention += flops / rate + bytes;
            time.backward.attention += 2.0 * flops / rate + 1.25 * bytes;
            return;
        }
        let kernel = match (self.run.settings.attention, self.accelerator.generation) {
            (AttentionKernel::Flash1, _) => 0.6,
            (AttentionKernel::Flash2, super::hardware::Generation::Hopper) => 0.66,
            _ => 1.0,
        };
        let rate = kernel * self.constants.attention * sustained;
        time.forward.attention += flops / rate + LAUNCH_S;
        time.backward.attention += 2.5 * flops / (0.85 * rate) + LAUNCH_S;
    }

    fn elementwise(&self, time: &mut LayerTime, kind: &LayerKind) {
        let (tokens, t, tau, h) = (self.run.tokens(), self.t(), self.run.sequence_split(), self.model.hidden as f64);
        let attention = &kind.attention;
        let heads = (attention.heads() + attention.key_value_heads()) as f64 * attention.head_size() as f64;
        let (width, gated) = match kind.feed_forward {
            FeedForward::Dense { width, gated } => (width as f64 / t, gated),
            FeedForward::Experts(e) => ((e.chosen * e.width) as f64 / tau + e.shared_width as f64 / t, e.gated),
        };
        let each = 1.0 + f64::from(u8::from(kind.cross));
        let mut bytes =
            2.0 * tokens * (10.0 * h / tau + each * 2.0 * heads / t + if gated { 3.0 } else { 2.0 } * width);
        if !self.run.settings.fused_elementwise {
            bytes += 72.0 * tokens * h / tau;
        }
        let moved = bytes / self.memory();
        time.forward.elementwise = moved;
        time.backward.elementwise = BACKWARD_TRAFFIC * moved;
        if let Some(experts) = kind.experts() {
            let permuted = 17.6 * tokens * experts.chosen as f64 * h / tau / self.memory();
            time.forward.elementwise += permuted + 170e-6;
            time.backward.elementwise += permuted + 85e-6;
        }
    }

    fn tensor_parallel(&self, time: &mut LayerTime, kind: &LayerKind) {
        let t = self.t();
        if t <= 1.0 {
            return;
        }
        let bytes = 2.0 * self.run.tokens() * self.model.hidden as f64 * (t - 1.0) / t;
        let unit = bytes / self.tensor_link() + HOP_S * (t - 1.0);
        let overlap = self.run.settings.tp_overlap && self.run.settings.sequence_parallel;
        // Layers with experts have it only around attention; a decoder with cross-attention has it once more.
        let blocks = if kind.experts().is_some() { 0.5 } else { 1.0 + 0.5 * f64::from(u8::from(kind.cross)) };
        let backward = if self.run.settings.sequence_parallel { 5.0 } else { 4.0 };
        for (pass, units) in [(&mut time.forward, 4.0 * blocks), (&mut time.backward, backward * blocks)] {
            let transfer = units * unit;
            // Engines overlap transfers with the products that consume or produce them.
            let hidden_by = pass.gemm + pass.cast;
            pass.tensor_parallel =
                if overlap { exposed(transfer, self.constants.tensor_exposed, hidden_by) } else { transfer };
            pass.traffic.tensor = units * bytes;
            pass.traffic.tensor_s = transfer;
        }
    }

    fn context_parallel(&self, time: &mut LayerTime, kind: &LayerKind) {
        let c = f64::from(self.run.layout.context);
        if c <= 1.0 {
            return;
        }
        let (t, attention) = (self.t(), &kind.attention);
        let (heads, groups) = (attention.heads() as f64, attention.key_value_heads() as f64);
        let width = attention.head_size() as f64 / t;
        let (bytes, latency) = match self.run.settings.context_style {
            ContextStyle::AllToAll => (4.0 * self.run.tokens() * (heads + groups) * width, ALL_TO_ALL_S),
            ContextStyle::Ring => (4.0 * groups * width * self.run.tokens() * c, HOP_S * (c - 1.0)),
        };
        let bytes = bytes * (c - 1.0) / c;
        let unit = bytes / self.context_link() + latency;
        // A ring passes on keys and values, and in the backward pass their gradients too. An exchange of heads sends
        // equally much in both passes.
        let backward = match self.run.settings.context_style {
            ContextStyle::AllToAll => 1.0,
            ContextStyle::Ring => 2.0,
        };
        time.forward.context_parallel = exposed(unit, 0.5, time.forward.attention);
        time.backward.context_parallel = exposed(backward * unit, 1.0 / backward, time.backward.attention);
        time.forward.traffic.context = bytes;
        time.backward.traffic.context = backward * bytes;
    }

    fn expert_parallel(&self, time: &mut LayerTime, kind: &LayerKind) {
        let Some(experts) = kind.experts() else { return };
        let e = f64::from(self.run.layout.expert);
        if e <= 1.0 {
            return;
        }
        let tokens = 2.0 * self.run.tokens() / self.run.sequence_split() * self.model.hidden as f64;
        let (chosen, domain) = (experts.chosen as f64, f64::from(self.accelerator.domain));
        let bytes = if e <= domain {
            tokens * chosen * (e - 1.0) / e
        } else {
            // A token goes once to each machine that has one of its experts.
            let machines = e / domain;
            let limit = experts.node_limit.map_or(f64::INFINITY, |limit| limit as f64);
            let reached = (machines * (1.0 - (1.0 - 1.0 / machines).powf(chosen))).min(limit);
            tokens * reached * (machines - 1.0) / machines
        };
        let unit = bytes / self.expert_link() + ALL_TO_ALL_S;
        for pass in [&mut time.forward, &mut time.backward] {
            pass.expert_parallel = 2.0 * unit;
            pass.traffic.expert = 2.0 * bytes;
        }
    }

    /// Output projection and loss on the last stage: forward and backward of one microbatch.
    pub fn head(&self) -> [f64; 2] {
        let ends = &self.model.ends;
        if ends.projection == Projection::None {
            return [0.0; 2];
        }
        let (tokens, t, h) = (self.run.tokens(), self.t(), self.model.hidden as f64);
        let settings = &self.run.settings;
        let rows = ends.vocabulary as f64 / t;
        let seen = if settings.vocab_parallel_loss { rows } else { ends.vocabulary as f64 };
        let product = |sides| self.gemm(sides, 1.0, TrainingPrecision::Bf16, 1.0);
        let per_logit = if settings.fused_cross_entropy { 12.0 } else { 24.0 };
        let loss = per_logit * tokens * seen / self.memory();
        let mut gather = 0.0;
        if !settings.vocab_parallel_loss && t > 1.0 {
            let bytes = 2.0 * tokens * ends.vocabulary as f64 * (t - 1.0) / t;
            gather = bytes / self.tensor_link() + HOP_S * (t - 1.0);
        }
        let forward = product([tokens, rows, h]) + loss / 2.0 + gather;
        let backward = product([tokens, h, rows]) + product([rows, h, tokens]) + loss / 2.0 + gather;
        [forward, backward]
    }

    /// Part of the head's backward that is the gradient of its weights.
    pub(crate) fn head_weights(&self) -> f64 {
        if self.model.ends.projection == Projection::None {
            return 0.0;
        }
        let rows = self.model.ends.vocabulary as f64 / self.t();
        self.gemm([rows, self.model.hidden as f64, self.run.tokens()], 1.0, TrainingPrecision::Bf16, 1.0)
    }

    /// Token embedding on the first stage: both passes of one microbatch.
    pub fn embedding(&self) -> f64 {
        if self.model.ends.vocabulary == 0 {
            return 0.0;
        }
        6.0 * self.run.tokens() * self.model.hidden as f64 / self.memory()
    }

    /// Seconds of one activation sent to a neighbouring stage. Each rank of the tensor group sends its part.
    pub(crate) fn to_next_stage(self) -> f64 {
        self.handed_on() / self.next_stage_link() + HOP_S
    }

    /// Bytes of that part.
    pub(crate) fn handed_on(self) -> f64 {
        2.0 * self.run.tokens() * self.model.hidden as f64 / self.t()
    }
}

/// Number of input matrices of a block.
fn gates(gated: bool) -> f64 {
    if gated { 2.0 } else { 1.0 }
}
