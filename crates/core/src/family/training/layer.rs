//! Times of one layer on one rank for one microbatch, part by part, and of the embedding and the head.
//!
//! A matrix product of m × n × k takes its FLOP at the attained rate, times a factor with 1/m + 1/n + 1/k for edge
//! tiles and repeated reads of operands. Attention is fused unless the settings disable it. Elementwise kernels move
//! bytes; collectives are rings. `O(1)` per kind of layer.

use super::repeated::Repeated;
use crate::workload::training::{
    adapter::NF4_BYTES,
    constants::Constants,
    hardware::Accelerator,
    model::{FeedForward, LayerKind, Model, Projection, WeightMatrix},
    run::{AttentionKernel, ContextStyle, TrainingPrecision, TrainingRun},
};

/// Factor on the time of a product with a width that is not a multiple of [`BLOCK`]: hidden width 14,400 on four ranks
/// took 221 s per iteration where 160 s were predicted (BigScience).
const ODD_WIDTH: f64 = 1.42;
/// Width of a tile of the tensor cores.
const BLOCK: f64 = 64.0;

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
    /// Exposed expert-parallel transfers.
    pub expert_parallel: f64,
    /// Additional time of the busiest rank of experts.
    pub routing: f64,
    /// Wait for the host to launch kernels.
    pub launches: f64,
    /// Exposed copies of activations to and from the host's memory.
    pub offload: f64,
    /// Bytes of all transfers; not part of the time.
    pub traffic: Traffic,
}

impl PassTime {
    /// Sum of all parts.
    pub fn total(&self) -> f64 {
        self.parts().iter().sum()
    }

    fn parts(&self) -> [f64; 10] {
        let PassTime { gemm, cast, attention, elementwise, tensor_parallel, context_parallel, expert_parallel, .. } =
            *self;
        let PassTime { routing, launches, offload, .. } = *self;
        [
            gemm,
            cast,
            attention,
            elementwise,
            tensor_parallel,
            context_parallel,
            expert_parallel,
            routing,
            launches,
            offload,
        ]
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
        self.routing += times * other.routing;
        self.launches += times * other.launches;
        self.offload += times * other.offload;
        self.traffic.add(&other.traffic, times);
    }
}

/// Fraction of the sustained peak in 4 bits and the factors on 1/m, 1/n, 1/k of a product. They were fitted to kernels that
/// NVIDIA measured and published in aiconfigurator-core 0.12.0 (Apache-2.0).
fn four_bits(id: &str) -> (f64, [f64; 3]) {
    match id {
        "gb200" => (0.545, [303.0, 2580.0, 860.0]),
        "b300" => (0.563, [493.0, 3460.0, 3060.0]),
        "gb300" => (0.491, [570.0, 3730.0, 3230.0]),
        _ => (0.597, [272.0, 2450.0, 814.0]),
    }
}

/// Factor on the time of a product with these widths.
pub(super) fn odd_width(widths: impl IntoIterator<Item = f64>) -> f64 {
    if widths.into_iter().any(|width| width % BLOCK != 0.0) { ODD_WIDTH } else { 1.0 }
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
    /// Part of both passes that is saved if they run side by side, of two microbatches.
    pub saved: f64,
    /// Transfers of it that are exposed at the ends of a chunk all the same.
    pub tail: f64,
}

/// Rates and sizes from which all times of a run are computed.
#[derive(Debug, Clone, Copy)]
pub struct RunRates<'a> {
    pub(super) model: &'a Model,
    pub(super) run: &'a TrainingRun,
    pub(super) accelerator: &'a Accelerator,
    pub(super) constants: &'a Constants,
}

impl<'a> RunRates<'a> {
    /// Rates of a run of a model on accelerators with these constants.
    pub fn new(model: &'a Model, run: &'a TrainingRun, accelerator: &'a Accelerator, constants: &'a Constants) -> Self {
        RunRates { model, run, accelerator, constants }
    }

    /// Tensor-parallel degree.
    pub(super) fn t(&self) -> f64 {
        f64::from(self.run.layout.tensor)
    }

    /// Bytes per second of elementwise kernels.
    pub fn memory(&self) -> f64 {
        self.constants.memory * self.accelerator.memory_bandwidth
    }

    /// Seconds to copy bytes to the host's memory, or back.
    pub(crate) fn host_copy(&self, bytes: f64) -> f64 {
        bytes / self.accelerator.host_link
    }

    /// Bytes per second of the host's memory for one device.
    pub(crate) fn host_memory(&self) -> f64 {
        self.accelerator.host_bandwidth
    }

    /// Seconds of `groups` products of m × n × k.
    pub(super) fn gemm(&self, [m, n, k]: [f64; 3], groups: f64, precision: TrainingPrecision, share: f64) -> f64 {
        let accelerator = self.accelerator;
        let constants = self.constants;
        let (peak, attained, edges) = match precision.bits() {
            32 => (accelerator.peak_32, constants.gemm_16, [310.0; 3]),
            16 => (accelerator.peak_16, constants.gemm_16, [310.0; 3]),
            8 => (accelerator.peak_8.unwrap_or(accelerator.peak_16), constants.gemm_8, [620.0; 3]),
            _ => {
                let (attained, edges) = four_bits(accelerator.id);
                (accelerator.peak_4.unwrap_or(accelerator.peak_16), attained * constants.gemm_4, edges)
            }
        };
        // Whatever the power, no product is faster than the data sheet's peak.
        let sustained = accelerator.sustained_16(constants.power);
        let rate = (sustained * (peak / accelerator.peak_16) * attained * share).min(peak);
        let edge: f64 = edges.iter().zip([m, n, k]).map(|(edge, side)| edge / side).sum();
        2.0 * m * n * k * groups / rate * (1.0 + edge) + constants.launch_s
    }

    /// Seconds of one product of m × n × k with a weight: forward, and both products of the backward pass.
    pub fn product(&self, sides: [f64; 3]) -> [f64; 2] {
        let mut time = LayerTime::default();
        self.weight(&mut time, sides, 1.0);
        [time.forward.gemm + time.forward.cast, time.backward.gemm + time.backward.cast]
    }

    /// Adds a weight's product in the forward pass, and both of the backward pass, each `slow` times as long.
    fn weight(&self, time: &mut LayerTime, [m, n, k]: [f64; 3], slow: f64) {
        let (precision, share) = (self.run.precision, 1.0 / slow);
        time.forward.gemm += self.gemm([m, n, k], 1.0, precision, share);
        let of_weights = if self.frozen() { 0.0 } else { self.gemm([n, k, m], 1.0, precision, share) };
        time.backward.gemm += self.gemm([m, k, n], 1.0, precision, share) + of_weights;
        time.weights += of_weights;
        // The curves of 4-bit products include the cast.
        if precision.bits() == 8 {
            time.forward.cast += 4.0 * m * k / self.memory();
            time.backward.cast += 4.0 * m * n / self.memory();
        }
    }

    /// Times of a kind of layer, with the time of what it repeats.
    pub fn layer(&self, kind: &LayerKind, repeated: Repeated) -> LayerTime {
        let mut time = LayerTime::default();
        self.products(&mut time, kind);
        self.core(&mut time, kind);
        self.elementwise(&mut time, kind);
        self.adapters(&mut time, kind);
        self.tensor_parallel(&mut time, kind);
        self.context_parallel(&mut time, kind);
        if let Some(experts) = kind.experts() {
            self.expert_parallel(&mut time, experts);
        }
        self.launches(&mut time, kind);
        time.again = match repeated {
            Repeated::Whole => time.forward,
            Repeated::Modules(modules) => self.again(&time.forward, kind, modules),
        };
        self.pair(&mut time);
        time
    }

    fn products(&self, time: &mut LayerTime, kind: &LayerKind) {
        self.projections(time, kind, |_| true);
        for matrix in kind.mixer.map_or(vec![], |mixer| mixer.matrices(self.model.hidden)) {
            let (n, k) = matrix.on_rank(self.t());
            self.weight(time, [self.run.tokens(), n, k], odd_width([n, k]));
        }
        self.block(time, kind);
    }

    /// Adds the products around the attention core with the matrices that are wanted.
    pub(super) fn projections(&self, time: &mut LayerTime, kind: &LayerKind, wanted: impl Fn(&WeightMatrix) -> bool) {
        let (tokens, t) = (self.run.tokens(), self.t());
        let attention = kind.attention.replicated(self.run.layout.tensor).matrices(self.model.hidden);
        for _ in 0..=usize::from(kind.cross) {
            for matrix in attention.iter().filter(|matrix| wanted(matrix)) {
                let (n, k) = matrix.on_rank(t);
                self.weight(time, [tokens, n, k], odd_width([n, k]));
            }
        }
    }

    /// Adds the products of a dense block, or of a shared expert.
    pub(super) fn dense_block(&self, time: &mut LayerTime, width: f64, gated: bool) {
        if width == 0.0 {
            return;
        }
        let (tokens, t, h) = (self.run.tokens(), self.t(), self.model.hidden as f64);
        let slow = odd_width([width / t, h]);
        self.weight(time, [tokens, gates(gated) * width / t, h], slow);
        self.weight(time, [tokens, h, width / t], slow);
    }

    /// Adds the products of the feed-forward block.
    pub(super) fn block(&self, time: &mut LayerTime, kind: &LayerKind) {
        let (tokens, h) = (self.run.tokens(), self.model.hidden as f64);
        match kind.feed_forward {
            FeedForward::Dense { width, gated } => self.dense_block(time, width as f64, gated),
            FeedForward::Experts(experts) => {
                self.dense_block(time, experts.shared_width as f64, experts.gated);
                let wide = experts.token_width(self.model.hidden) as f64;
                if experts.latent.is_some() {
                    // Every rank projects its own tokens.
                    let own = tokens / self.run.sequence_split();
                    self.weight(time, [own, wide, h], 1.0);
                    self.weight(time, [own, h, wide], 1.0);
                }
                self.grouped_products(time, &experts);
            }
        }
    }

    fn core(&self, time: &mut LayerTime, kind: &LayerKind) {
        let sequence = self.run.sequence as f64;
        if kind.attention.heads() > 0 {
            self.core_over(time, kind, kind.mean_span(sequence));
        }
        if let Some(mixer) = kind.mixer.filter(|mixer| mixer.heads > 0) {
            // As the fused attention core, with a backward pass of twice the operations.
            let rate = self.constants.attention * self.accelerator.sustained_16(self.constants.power);
            let seconds = self.run.tokens() * mixer.core_flops() / self.t() / rate;
            time.forward.attention += seconds + self.constants.launch_s;
            time.backward.attention += 2.0 * seconds + self.constants.launch_s;
        }
        if kind.cross {
            self.core_over(time, kind, sequence);
        }
    }

    /// Adds the attention core if every token attends to `seen` others on average.
    fn core_over(&self, time: &mut LayerTime, kind: &LayerKind, seen: f64) {
        let (tokens, heads) = (self.run.tokens(), kind.attention.heads() as f64 / self.t());
        let (query, value) = kind.attention.core_widths();
        let flops = 2.0 * tokens * seen * heads * (query + value) as f64;
        let sustained = self.accelerator.sustained_16(self.constants.power);
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
        let rate = kernel * self.constants.attention_over(self.run.sequence as f64) * sustained;
        let launch = self.constants.launch_s;
        time.forward.attention += flops / rate + launch;
        time.backward.attention += 2.5 * flops / (0.85 * rate) + launch;
    }

    fn elementwise(&self, time: &mut LayerTime, kind: &LayerKind) {
        let (tokens, t, tau, h) = (self.run.tokens(), self.t(), self.run.sequence_split(), self.model.hidden as f64);
        let attention = kind.attention.replicated(self.run.layout.tensor);
        let heads = (attention.heads() + attention.key_value_heads()) as f64 * attention.head_size() as f64;
        let (width, gated) = match kind.feed_forward {
            FeedForward::Dense { width, gated } => (width as f64 / t, gated),
            FeedForward::Experts(e) => ((e.chosen * e.width) as f64 / tau + e.shared_width as f64 / t, e.gated),
        };
        let each = 1.0 + f64::from(u8::from(kind.cross));
        let mixed = kind.mixer.map_or(0.0, |mixer| 2.0 * mixer.kept() / t);
        let mut bytes = self.run.element_bytes()
            * tokens
            * (5.0 * halves(kind) * h / tau + each * 2.0 * heads / t + if gated { 3.0 } else { 2.0 } * width + mixed);
        if !self.run.settings.fused_elementwise {
            bytes += 36.0 * halves(kind) * tokens * h / tau;
        }
        let moved = bytes / self.memory();
        time.forward.elementwise = moved;
        time.backward.elementwise = BACKWARD_TRAFFIC * moved;
        if let Some(experts) = kind.experts() {
            let parts = f64::from(self.run.layout.expert_tensor);
            let wide = experts.token_width(self.model.hidden) as f64;
            let permuted = 17.6 * parts * tokens * experts.chosen as f64 * wide / tau / self.memory();
            time.forward.elementwise += permuted + 170e-6;
            time.backward.elementwise += permuted + 85e-6;
        }
    }

    /// True if adapters are trained, and the weights have no gradients.
    pub(super) fn frozen(&self) -> bool {
        self.run.settings.adapter.is_some()
    }

    /// Adds the adapters of a layer. Their products are narrow, so that they read and write activations; weights in 4 bits
    /// are written in 16 bits before every use.
    fn adapters(&self, time: &mut LayerTime, kind: &LayerKind) {
        let Some(adapter) = self.run.settings.adapter else { return };
        let [shared, experts] = adapter.parameters(kind, self.model.hidden, self.t());
        let chosen = kind.experts().map_or(0.0, |e| e.chosen as f64 / e.count as f64 / self.run.sequence_split());
        // Input and output of each adapter, per token; the rank is much smaller.
        let widths = (shared + chosen * experts) / f64::from(adapter.rank);
        let mut moved = 2.0 * self.run.element_bytes() * self.run.tokens() * widths;
        if adapter.quantised {
            let of = super::iteration::Parameters::of_layer(self.model, self.run, kind);
            moved += (NF4_BYTES + 2.0) * (of.shared + of.experts);
        }
        let launches = if shared + experts > 0.0 { 14.0 * self.constants.launch_s } else { 0.0 };
        time.forward.elementwise += moved / self.memory() + launches;
        time.backward.elementwise += BACKWARD_TRAFFIC * moved / self.memory() + 2.0 * launches;
    }

    fn tensor_parallel(&self, time: &mut LayerTime, kind: &LayerKind) {
        let t = self.t();
        if t <= 1.0 {
            return;
        }
        let bytes = self.run.element_bytes() * self.run.tokens() * self.model.hidden as f64 * (t - 1.0) / t;
        let unit = bytes / self.tensor_link() + self.constants.hop_s * (t - 1.0);
        let overlap = self.run.settings.tp_overlap && self.run.settings.sequence_parallel;
        // Each half has it, but for experts; a decoder with cross-attention has it once more.
        let [mixes, feeds] = kind.halves();
        let halves = [mixes, feeds && kind.experts().is_none(), kind.cross];
        let blocks = 0.5 * halves.map(|half| f64::from(u8::from(half))).iter().sum::<f64>();
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
        let (t, attention) = (self.t(), kind.attention.replicated(self.run.layout.tensor));
        let (heads, groups) = (attention.heads() as f64, attention.key_value_heads() as f64);
        let width = attention.head_size() as f64 / t;
        let wide = self.run.element_bytes() / 2.0 * self.run.tokens() * width;
        let hop = self.constants.hop_s;
        // Bytes and seconds of an exchange of heads over `ranks`, and of keys and values that pass `ranks`. A rank that
        // exchanged its heads has longer sequences of fewer heads, so that as many bytes circulate.
        let exchange = |ranks: f64, link: f64| {
            let bytes = 4.0 * wide * (heads + groups) * (ranks - 1.0) / ranks;
            [bytes, bytes / link + 2.0 * hop]
        };
        let pass_on = |ranks: f64, link: f64| {
            let bytes = 4.0 * wide * groups * (ranks - 1.0);
            [bytes, bytes / link + hop * (ranks - 1.0)]
        };
        // An exchange of heads sends equally much in both passes. Keys and values are passed on once more, with their
        // gradients.
        let [forward, backward] = [&time.forward, &time.backward].map(|pass| pass.attention);
        let (sent, shown) = match self.run.settings.context_style {
            ContextStyle::AllToAll => {
                let [bytes, unit] = exchange(c, self.context_link());
                ([bytes; 2], [exposed(unit, 0.5, forward), exposed(unit, 1.0, backward)])
            }
            ContextStyle::Ring => {
                let [bytes, unit] = pass_on(c, self.context_link());
                ([bytes, 2.0 * bytes], [exposed(unit, 0.5, forward), exposed(2.0 * unit, 0.5, backward)])
            }
            // Attention starts when all keys and values are there.
            ContextStyle::AllGather => {
                let [bytes, unit] = pass_on(c, self.context_link());
                ([bytes, 2.0 * bytes], [unit, 2.0 * unit])
            }
            ContextStyle::Hierarchical => {
                let ranks = self.run.layout.context_hierarchy(self.accelerator.domain);
                let near = u64::from(self.run.layout.tensor) * u64::from(ranks[0]);
                let [inside, between] = ranks.map(f64::from);
                let [near_bytes, near_s] = exchange(inside, self.wired(|links| links.context, self.link(near)));
                let [far_bytes, far_s] = pass_on(between, self.context_link());
                let shown = [near_s + exposed(far_s, 0.5, forward), near_s + exposed(2.0 * far_s, 0.5, backward)];
                ([near_bytes + far_bytes, near_bytes + 2.0 * far_bytes], shown)
            }
        };
        for ((pass, bytes), seconds) in [&mut time.forward, &mut time.backward].into_iter().zip(sent).zip(shown) {
            pass.context_parallel = seconds;
            pass.traffic.context = bytes;
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
        let product = |sides| self.gemm(sides, 1.0, self.head_precision(), 1.0);
        let per_logit = if settings.fused_cross_entropy { 12.0 } else { 24.0 };
        let loss = per_logit * tokens * seen / self.memory();
        let mut gather = 0.0;
        if !settings.vocab_parallel_loss && t > 1.0 {
            let bytes = 2.0 * tokens * ends.vocabulary as f64 * (t - 1.0) / t;
            gather = bytes / self.tensor_link() + self.constants.hop_s * (t - 1.0);
        }
        let forward = product([tokens, rows, h]) + loss / 2.0 + gather;
        let of_weights = if self.frozen() { 0.0 } else { product([rows, h, tokens]) };
        let backward = product([tokens, h, rows]) + of_weights + loss / 2.0 + gather;
        [forward, backward]
    }

    /// Precision of the head's products: 16 bits, unless all are wider.
    fn head_precision(&self) -> TrainingPrecision {
        if self.run.precision == TrainingPrecision::Fp32 { TrainingPrecision::Fp32 } else { TrainingPrecision::Bf16 }
    }

    /// Part of the head's backward that is the gradient of its weights.
    pub(crate) fn head_weights(&self) -> f64 {
        if self.model.ends.projection == Projection::None || self.frozen() {
            return 0.0;
        }
        let rows = self.model.ends.vocabulary as f64 / self.t();
        self.gemm([rows, self.model.hidden as f64, self.run.tokens()], 1.0, self.head_precision(), 1.0)
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
        self.handed_on() / self.next_stage_link() + self.constants.hop_s
    }

    /// Bytes of that part.
    pub(crate) fn handed_on(self) -> f64 {
        self.run.element_bytes() * self.run.tokens() * self.model.hidden as f64 / self.t()
    }
}

/// Number of halves of a layer.
fn halves(kind: &LayerKind) -> f64 {
    kind.halves().map(|half| f64::from(u8::from(half))).iter().sum()
}

/// Number of input matrices of a block.
pub(super) fn gates(gated: bool) -> f64 {
    if gated { 2.0 } else { 1.0 }
}
