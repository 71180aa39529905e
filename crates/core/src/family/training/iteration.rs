//! Iteration time in closed form, for even splits under 1F1B and interleaved 1F1B.
//!
//! `m` microbatches run on the slowest stage, and `(p − 1)/v` mean stages fill and drain the pipeline. Exposed
//! transfers between stages, reductions over replicas and the optimizer step are added. The cluster's size adds a
//! little to all of it. `O(p·v + layers)` time.

use super::{
    layer::{LayerTime, PassTime, RunRates, Traffic},
    memory,
    repeated::Repeated,
    split::StageSplit,
};
use crate::workload::training::ZeroBubble;
use crate::workload::training::{
    constants::Constants,
    hardware::Accelerator,
    model::{Model, Projection},
    run::{LinkShares, Modules, TrainingRun},
};

/// Latency of the reduction plus the gather over data-parallel ranks, seconds.
const REDUCTION_S: f64 = 10e-6;

/// Time of one stage for one microbatch, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageTime {
    /// Forward of its layers.
    pub forward: PassTime,
    /// Backward of its layers.
    pub backward: PassTime,
    /// Recomputation of its layers.
    pub again: PassTime,
    /// Forward and backward of the head and the loss, on the last stage.
    pub head: [f64; 2],
    /// Both passes of the embedding, on the first stage.
    pub embedding: f64,
    /// Part of the backward that is the gradient of the weights.
    pub weights: f64,
    /// Part of both passes that is saved if they run side by side, of two microbatches.
    pub saved: f64,
}

impl StageTime {
    /// Whole forward pass.
    pub fn forward_s(&self) -> f64 {
        self.forward.total() + self.head[0] + self.embedding / 3.0
    }

    /// Whole backward pass, recomputation included.
    pub fn backward_s(&self) -> f64 {
        self.backward.total() + self.again.total() + self.head[1] + self.embedding * 2.0 / 3.0
    }

    /// Sum of both passes.
    pub fn total(&self) -> f64 {
        self.forward_s() + self.backward_s()
    }

    /// Bytes that a rank sends per microbatch, recomputation included.
    pub fn traffic(&self) -> Traffic {
        let mut all = PassTime::default();
        [&self.forward, &self.backward, &self.again].into_iter().for_each(|pass| all.add(pass, 1.0));
        all.traffic
    }

    fn add(&mut self, other: &StageTime, times: f64) {
        self.forward.add(&other.forward, times);
        self.backward.add(&other.backward, times);
        self.again.add(&other.again, times);
        self.head = [0, 1].map(|pass| self.head[pass] + times * other.head[pass]);
        self.embedding += times * other.embedding;
        self.weights += times * other.weights;
        self.saved += times * other.saved;
    }
}

/// Work of a stage's rank in addition to its microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reduction {
    /// Exposed time of gradient reduction and weight gathering over replicas, seconds.
    pub data_parallel: f64,
    /// Optimizer step, seconds.
    pub optimizer: f64,
    /// Bytes that the rank sends for the reductions and gathers of an iteration.
    pub bytes: f64,
}

/// Terms of the closed form for all microbatches, seconds: parts of layers on the mean stage, the head on its own
/// stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IterationTerms {
    /// Layers on the mean stage, recomputation included.
    pub layers: PassTime,
    /// Head on the last stage.
    pub head: f64,
    /// Embedding on the first stage.
    pub embedding: f64,
    /// Excess of the slowest stage over the mean.
    pub imbalance: f64,
    /// Warm-up and drain of the pipeline.
    pub bubble: f64,
    /// Transfers between stages.
    pub p2p: f64,
    /// Reductions and the optimizer step.
    pub reduction: Reduction,
    /// Whole iteration.
    pub iteration: f64,
}

/// Costs of a run for the closed form and the simulator.
#[derive(Debug, Clone, PartialEq)]
pub struct IterationCosts {
    /// Times of one microbatch, by stage.
    pub stages: Vec<StageTime>,
    /// Reductions, by stage.
    pub reductions: Vec<Reduction>,
    /// Exposed time of one transfer to a neighbouring stage, seconds.
    pub transfer: f64,
    /// Number of microbatches.
    pub microbatches: u64,
    /// Virtual stages per pipeline stage.
    pub virtual_stages: u32,
    /// Factor on the iteration for the cluster's size and the software's release.
    pub growth: f64,
    /// Constant time of an iteration, seconds.
    pub fixed: f64,
    /// Reductions of the closed form, from the mean stage's parameters.
    mean_reduction: Reduction,
}

impl IterationCosts {
    /// Costs of a run that [`super::check::check`] accepts, with the split that it returns.
    pub fn of(
        model: &Model,
        run: &TrainingRun,
        accelerator: &Accelerator,
        constants: &Constants,
        split: &StageSplit,
    ) -> Self {
        let rates = RunRates::new(model, run, accelerator, constants);
        let layers = LayerTimes::new(&rates, model, run);
        let counts: Vec<LayerCounts> =
            (0..split.stages()).map(|stage| split.by_kind(stage, model, run.recompute)).collect();
        let stages: Vec<StageTime> =
            (0..split.stages()).map(|stage| layers.stage(&rates, model, (split, stage, &counts[stage]))).collect();
        let each = Parameters::by_kind(model, run);
        let adapters = Parameters::adapters_by_kind(model, run).unwrap_or_default();
        let trained =
            |stage: usize| Parameters::trained(model, run, (split, stage, &counts[stage]), [&each, &adapters]);
        let devices = run.layout.devices() as f64;
        let links = LinkTime::new(rates, run, split.stages());
        let transfer = links.exposed_transfer(&stages);
        let mut mean = StageTime::default();
        stages.iter().for_each(|stage| mean.add(stage, 1.0 / stages.len() as f64));
        let slowest = stages.iter().map(StageTime::total).fold(0.0, f64::max);
        let reduction = |[of, trained]: [Parameters; 2], stage: &StageTime| {
            links.reduction(constants, [of, trained], stage, slowest, transfer)
        };
        let frozen = run.settings.adapter.is_some();
        let reductions = stages
            .iter()
            .enumerate()
            .map(|(index, stage)| {
                let of = Parameters::on_stage(model, run, (split, index, &counts[index]), &each);
                let trained = if frozen { trained(index) } else { of };
                reduction([of, trained], stage)
            })
            .collect();
        let release = release_factor(model, run, accelerator);
        let all = Parameters::mean(model, run, split, &each, &counts);
        let trained = if frozen { trained(0) } else { all };
        IterationCosts {
            transfer,
            microbatches: run.microbatches(),
            virtual_stages: run.layout.virtual_stages,
            growth: (1.0 + constants.growth * (devices / 8.0).log2().max(0.0)) * release,
            fixed: constants.fixed_s,
            mean_reduction: reduction([all, trained], &mean),
            stages,
            reductions,
        }
    }

    /// Seconds of the tensor-parallel transfers of all microbatches on the mean stage, exposed or not.
    pub fn tensor_transfers(&self) -> f64 {
        let all: f64 = self.stages.iter().map(|stage| stage.traffic().tensor_s).sum();
        self.microbatches as f64 * all / self.stages.len() as f64
    }

    /// Microbatches of the last stage whose passes run beside those of others. Those of the warm-up do not: one, and with
    /// virtual stages a round of the pipeline for each but the last.
    fn paired(&self) -> f64 {
        let (p, v) = (self.stages.len() as f64, f64::from(self.virtual_stages));
        (self.microbatches as f64 - ((v - 1.0) * p + 1.0) / v).max(0.0)
    }

    /// Terms of the closed form.
    pub fn terms(&self) -> IterationTerms {
        let (p, v) = (self.stages.len() as f64, f64::from(self.virtual_stages));
        let m = self.microbatches as f64;
        let mean = self.stages.iter().map(StageTime::total).sum::<f64>() / p;
        let paired = self.paired();
        let largest = self.stages.iter().map(|stage| m * stage.total() - paired * stage.saved).fold(0.0, f64::max);
        let saved = paired * self.stages.iter().map(|stage| stage.saved).sum::<f64>() / p;
        let mut terms = IterationTerms {
            imbalance: largest - (m * mean - saved),
            bubble: (p - 1.0) / v * mean,
            p2p: (m * v + 2.0 * (p - 1.0)) * self.transfer,
            reduction: self.mean_reduction,
            ..IterationTerms::default()
        };
        for stage in &self.stages {
            for pass in [&stage.forward, &stage.backward, &stage.again] {
                terms.layers.add(pass, m / p);
            }
            terms.head += m * (stage.head[0] + stage.head[1]);
            terms.embedding += m * stage.embedding;
        }
        terms.layers.expert_parallel -= saved;
        let batch = largest + terms.bubble + terms.p2p;
        let after = terms.reduction.data_parallel + terms.reduction.optimizer;
        terms.iteration = (batch + after) * self.growth + self.fixed;
        terms
    }
}

/// Factor of the software's release on the time of a mixture of experts; 1 if it is not named.
fn release_factor(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> f64 {
    let release = run.settings.release.filter(|_| model.has_experts());
    release.map_or(1.0, |release| release.factor(accelerator.generation))
}

/// Seconds of both passes of all layers for one microbatch, on the ranks of one stage, without recomputation, side by
/// side with those of another if the settings pair them.
pub fn layers_s(model: &Model, run: &TrainingRun, accelerator: &Accelerator, constants: &Constants) -> f64 {
    let rates = RunRates::new(model, run, accelerator, constants);
    let each = model.kinds.iter().map(|kind| {
        let time = rates.layer(kind, Repeated::Modules(Modules::NONE));
        time.forward.total() + time.backward.total() - time.saved
    });
    let each: Vec<f64> = each.collect();
    let sum: f64 = model.layers.iter().map(|&kind| each[usize::from(kind)]).sum();
    sum * release_factor(model, run, accelerator)
}

/// Times of every kind of layer, without and with full recomputation.
struct LayerTimes<'a> {
    run: &'a TrainingRun,
    kinds: Vec<[LayerTime; 2]>,
}

impl<'a> LayerTimes<'a> {
    fn new(rates: &RunRates<'_>, model: &Model, run: &'a TrainingRun) -> Self {
        let both = |kind| [rates.layer(kind, Repeated::Modules(run.modules())), rates.layer(kind, Repeated::Whole)];
        LayerTimes { run, kinds: model.kinds.iter().map(both).collect() }
    }

    fn stage(&self, rates: &RunRates<'_>, model: &Model, (split, stage, counts): StageLayers<'_>) -> StageTime {
        let mut time = StageTime::default();
        let mut add = |layer: &LayerTime, count: f64| {
            time.forward.add(&layer.forward, count);
            time.backward.add(&layer.backward, count);
            time.again.add(&layer.again, count);
            time.weights += count * layer.weights;
            time.saved += count * layer.saved;
        };
        for ([whole, again], counts) in self.kinds.iter().zip(counts) {
            if counts[0] > 0.0 {
                add(whole, counts[0]);
            }
            if counts[1] > 0.0 {
                add(again, counts[1]);
            }
        }
        let last = stage == split.last();
        if stage == split.predictions() && model.prediction_layers > 0 {
            // Each prediction layer equals the last layer, and passes the head again.
            let kind = usize::from(model.layers[model.layers.len() - 1]);
            add(&self.kinds[kind][0], f64::from(model.prediction_layers));
        }
        if last {
            let passes = 1.0 + f64::from(model.prediction_layers);
            time.head = rates.head().map(|seconds| seconds * passes);
            time.weights += passes * rates.head_weights();
        }
        if stage == 0 {
            time.embedding = rates.embedding();
        }
        let offloaded = self.run.settings.activation_offload;
        if offloaded > 0 {
            let counts = split.first_by_kind(stage, model, self.run.recompute, offloaded as usize);
            for (kind, ([whole, again], counts)) in model.kinds.iter().zip(self.kinds.iter().zip(counts)) {
                let bytes = [memory::layer_bytes(model, self.run, kind), memory::layer_input(model, self.run)];
                for ((layer, bytes), count) in [whole, again].into_iter().zip(bytes).zip(counts) {
                    // The copies run beside the layer that follows, which takes as long.
                    let seconds = rates.host_copy(bytes);
                    time.forward.offload += count * (seconds - layer.forward.total()).max(0.0);
                    time.backward.offload += count * (seconds - layer.backward.total()).max(0.0);
                }
            }
        }
        // Each virtual stage is a chunk with its own ends.
        let tail = self.kinds.iter().map(|[whole, _]| whole.tail).fold(0.0, f64::max);
        time.saved = (time.saved - f64::from(self.run.layout.virtual_stages) * tail).max(0.0);
        time
    }
}

/// Stage of a split with the numbers of its layers by kind.
pub type StageLayers<'a> = (&'a StageSplit, usize, &'a [[f64; 2]]);

/// By kind: numbers of layers without and with recomputation of the whole layer.
type LayerCounts = Vec<[f64; 2]>;

/// Parameters on one rank: of matrices shared by all ranks of a data-parallel group, and of experts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// Attention, dense blocks, routers, embeddings.
    pub shared: f64,
    /// Routed experts.
    pub experts: f64,
}

impl Parameters {
    /// Parameters of one layer of a kind.
    pub fn of_layer(model: &Model, run: &TrainingRun, kind: &super::LayerKind) -> Self {
        let (t, h) = (f64::from(run.layout.tensor), model.hidden as f64);
        let matrices = kind.attention.replicated(run.layout.tensor).matrices(model.hidden);
        let attention: f64 = matrices.iter().map(|matrix| matrix.on_rank(t)).map(|(n, k)| n * k).sum();
        let mixer = kind.mixer.map_or(vec![], |mixer| mixer.matrices(model.hidden));
        let mixer: f64 = mixer.iter().map(|matrix| matrix.on_rank(t)).map(|(n, k)| n * k).sum();
        let mut of = Parameters { shared: mixer + attention * (1.0 + f64::from(u8::from(kind.cross))), experts: 0.0 };
        let block = |width: f64, gated: bool| if gated { 3.0 } else { 2.0 } * width * h;
        match kind.feed_forward {
            super::FeedForward::Dense { width, gated } => of.shared += block(width as f64, gated) / t,
            super::FeedForward::Experts(e) => {
                of.shared += block(e.shared_width as f64, e.gated) / t
                    + (e.count * model.hidden + e.projections(model.hidden)) as f64;
                of.experts = block(e.width as f64, e.gated) * e.token_width(model.hidden) as f64 / h * e.count as f64
                    / run.layout.expert_ranks() as f64;
            }
        }
        of
    }

    /// Parameters of each kind of layer.
    pub fn by_kind(model: &Model, run: &TrainingRun) -> Vec<Self> {
        model.kinds.iter().map(|kind| Parameters::of_layer(model, run, kind)).collect()
    }

    /// Parameters of the adapters of each kind of layer; `None` if all weights are trained.
    pub fn adapters_by_kind(model: &Model, run: &TrainingRun) -> Option<Vec<Self>> {
        let adapter = run.settings.adapter?;
        let of = |kind| {
            let [shared, experts] = adapter.parameters(kind, model.hidden, f64::from(run.layout.tensor));
            Parameters { shared, experts: experts / run.layout.expert_ranks() as f64 }
        };
        Some(model.kinds.iter().map(of).collect())
    }

    /// Parameters with gradients on a stage: all of them, or the adapters'.
    pub fn trained(
        model: &Model,
        run: &TrainingRun,
        stage: StageLayers<'_>,
        [each, adapters]: [&[Parameters]; 2],
    ) -> Self {
        if run.settings.adapter.is_none() {
            return Parameters::on_stage(model, run, stage, each);
        }
        let mut sum = Parameters::default();
        for (&layer, [whole, again]) in adapters.iter().zip(stage.2) {
            sum.add(layer, whole + again);
        }
        sum
    }

    fn add(&mut self, other: Parameters, times: f64) {
        self.shared += other.shared * times;
        self.experts += other.experts * times;
    }

    /// Parameters of the layers of a stage.
    fn of_layers(model: &Model, (split, stage, counts): StageLayers<'_>, each: &[Parameters]) -> Self {
        let mut sum = Parameters::default();
        for (&layer, [whole, again]) in each.iter().zip(counts) {
            sum.add(layer, whole + again);
        }
        if stage == split.predictions() && model.prediction_layers > 0 {
            let h = model.hidden as f64;
            let last = each[usize::from(model.layers[model.layers.len() - 1])];
            let projection = Parameters { shared: 2.0 * h * h, experts: 0.0 };
            sum.add(last, model.prediction_layers.into());
            sum.add(projection, model.prediction_layers.into());
        }
        sum
    }

    /// Parameters of a stage, with the embedding on the first and the projection on the last. Tied ones have a copy on
    /// each. `each` has those of every kind of layer.
    pub fn on_stage(model: &Model, run: &TrainingRun, layers: StageLayers<'_>, each: &[Parameters]) -> Self {
        let mut of = Parameters::of_layers(model, layers, each);
        let (split, stage, _) = layers;
        let ends = &model.ends;
        let table = (ends.vocabulary * ends.token_width) as f64 / f64::from(run.layout.tensor);
        let last = stage == split.last();
        if stage == 0 {
            of.shared += table + (ends.positions * model.hidden) as f64;
        }
        let copied = ends.projection == Projection::Own || ends.projection == Projection::Tied && stage != 0;
        if last && copied {
            of.shared += table;
        }
        if stage == split.predictions() && stage != 0 && model.prediction_layers > 0 {
            // They embed the next tokens.
            of.shared += table;
        }
        of
    }

    /// Parameters of the mean stage, with one vocabulary table, or both if there is one stage.
    fn mean(model: &Model, run: &TrainingRun, split: &StageSplit, each: &[Parameters], counts: &[LayerCounts]) -> Self {
        if split.stages() == 1 {
            return Parameters::on_stage(model, run, (split, 0, &counts[0]), each);
        }
        let p = split.stages() as f64;
        let mut mean = Parameters::default();
        for (stage, counts) in counts.iter().enumerate() {
            mean.add(Parameters::of_layers(model, (split, stage, counts), each), 1.0 / p);
        }
        let ends = &model.ends;
        mean.shared += (ends.vocabulary * ends.token_width) as f64 / f64::from(run.layout.tensor);
        mean
    }
}

/// Numbers of ranks over which a rank's shared parameters, and its experts, are replicated.
pub fn replicas(run: &TrainingRun) -> (f64, f64) {
    let layout = &run.layout;
    let shared = f64::from(layout.data) * f64::from(layout.context);
    (shared, (layout.stage_devices() as f64 / layout.expert_ranks() as f64).max(1.0))
}

/// Bytes per parameter that a rank sends in an iteration of `m` microbatches, relative to a whole ring: for gathers of
/// weights, and for the reduction of gradients.
fn state_traffic(run: &TrainingRun, m: f64) -> [f64; 2] {
    let settings = &run.settings;
    let wide = run.element_bytes() / 2.0;
    match () {
        // Two gathers of 16-bit weights and one reduction for each microbatch.
        () if settings.fsdp => [4.0 * wide * m, 2.0 * wide * m],
        () if settings.shard_gradients => [2.0 * wide, 4.0 * m],
        () => [2.0 * wide, 4.0],
    }
}

/// Busy time of links: a lower bound on time, whatever fraction was fitted as hidden.
struct LinkTime<'a> {
    rates: RunRates<'a>,
    run: &'a TrainingRun,
    /// Sends of the busiest rank to other stages, per microbatch.
    sends: f64,
    /// Links, each with its fraction of the time of every kind of transfer.
    links: Vec<LinkShares>,
}

impl<'a> LinkTime<'a> {
    fn new(rates: RunRates<'a>, run: &'a TrainingRun, stages: usize) -> Self {
        let v = f64::from(run.layout.virtual_stages);
        // A rank sends activations forward and gradients back; a rank at an end sends only one of them. With two
        // stages, both are ends. With several virtual stages, the last stage also sends to the first.
        let sends = match stages {
            0 | 1 => 0.0,
            2 if run.zero_bubble == Some(ZeroBubble::V) => v,
            2 => 2.0 * v - 1.0,
            _ => 2.0 * v,
        };
        LinkTime { sends, links: rates.shared_links(replicas(run).0), rates, run }
    }

    /// Seconds for which one link is busy with the transfers of a microbatch on a stage.
    fn busy(&self, stage: &StageTime, link: &LinkShares) -> f64 {
        let (traffic, rates) = (stage.traffic(), &self.rates);
        let [tensor, context, expert, next, _] = *link;
        let times = |share: f64, bytes: f64, rate: f64| if bytes > 0.0 { share * bytes / rate } else { 0.0 };
        times(tensor, traffic.tensor, rates.tensor_link())
            + times(context, traffic.context, rates.context_link())
            + times(expert, traffic.expert, rates.expert_link())
            + times(next, self.sends * rates.handed_on(), rates.next_stage_link())
    }

    /// Exposed time of one transfer to the next stage. Half of a rank's sends is hidden, unless its links are busy for
    /// longer than it computes.
    fn exposed_transfer(&self, stages: &[StageTime]) -> f64 {
        if self.sends == 0.0 {
            return 0.0;
        }
        let slowest = stages.iter().map(StageTime::total).fold(0.0, f64::max);
        let busy = stages.iter().flat_map(|stage| self.links.iter().map(|link| self.busy(stage, link)));
        let over = busy.fold(0.0, f64::max) - slowest;
        self.rates.to_next_stage().max(over / f64::from(self.run.layout.virtual_stages))
    }

    /// Reductions of parameters on a rank of a stage. `slowest` is the slowest stage's time per microbatch.
    fn reduction(
        &self,
        constants: &Constants,
        [all_of, of]: [Parameters; 2],
        stage: &StageTime,
        slowest: f64,
        transfer: f64,
    ) -> Reduction {
        let (run, rates) = (self.run, &self.rates);
        let (shared, experts) = replicas(run);
        let settings = &run.settings;
        let m = run.microbatches() as f64;
        let (mut all, mut bytes) = (0.0, 0.0);
        for (all_elements, elements, ranks) in
            [(all_of.shared, of.shared, shared), (all_of.experts, of.experts, experts)]
        {
            if ranks > 1.0 && all_elements > 0.0 {
                let shards = run.shards(ranks);
                let [gathered, reduced] = state_traffic(run, m);
                // Weights that are not trained are gathered only where they are divided.
                let gathers = if settings.fsdp { all_elements } else { elements };
                let sent = (gathered * gathers + reduced * elements) * (shards - 1.0) / shards;
                let copies = ranks / shards;
                // Copies of the shards reduce their gradients once more (HSDP).
                let between = 2.0 * 4.0 * elements / shards * (copies - 1.0) / copies;
                bytes += sent + between;
                all += sent / rates.reduction(shards) + between / rates.reduction(ranks) + REDUCTION_S;
            }
        }
        if settings.parameter_offload {
            let elements = all_of.shared / run.shards(shared) + all_of.experts / run.shards(experts);
            // Each gather first brings the rank's shard from the host.
            all += 2.0 * m * rates.host_copy(run.element_bytes() * elements);
        }
        let waits = transfer * f64::from(run.layout.virtual_stages);
        // Remaining time after that of some microbatches, during which links also carry other transfers.
        let left = |microbatches: f64, seconds: f64| {
            let busy = |link: &LinkShares| link[4] * all + microbatches * self.busy(stage, link);
            self.links.iter().map(busy).fold(0.0, f64::max) - microbatches * (seconds + waits)
        };
        let data_parallel = if settings.fsdp {
            (rates.gathers_exposed(run.shards(shared)) * all).max(all - 0.8 * m * slowest).max(left(m, slowest))
        } else if settings.dp_overlap {
            // Gradients are final in the last microbatch's backward pass, and the next iteration's first forward pass
            // waits for weights. Virtual stages spread both over a round of the pipeline.
            let window = if run.layout.virtual_stages > 1 { m.min(f64::from(run.layout.pipeline)) } else { 1.0 };
            (constants.data_exposed * all).max(left(window, stage.total()))
        } else {
            all
        };
        let divided = settings.distributed_optimizer || settings.shard_gradients || settings.fsdp;
        let by = |ranks: f64| if divided { run.shards(ranks) } else { 1.0 };
        let own = of.shared / by(shared) + of.experts / by(experts);
        let state = 2.0 * f64::from(settings.master_bytes + 2 * settings.moment_bytes) + 2.0;
        let unpacked = 8.0 * (of.shared + of.experts);
        let optimizer = if settings.optimizer_offload {
            // Gradients go down and weights come back; the host's memory is read and written in between.
            2.0 * rates.host_copy(2.0 * own) + state * own / rates.host_memory() + unpacked / rates.memory()
        } else {
            (state * own + unpacked) / rates.memory()
        };
        Reduction { data_parallel: data_parallel.min(all), optimizer, bytes }
    }
}
