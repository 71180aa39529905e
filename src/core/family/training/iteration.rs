//! The time of an iteration in closed form, for even splits under 1F1B and interleaved 1F1B.
//!
//! `m` microbatches run on the slowest stage, `(p − 1)/v` mean stages fill and drain the pipeline, and what is sent between
//! stages, reduced over replicas and updated by the optimizer comes on top as far as nothing hides it. A cluster's size
//! adds a little to all of it. `O(p·v + layers)` time.

use super::{
    Accelerator, Constants, Model, Recompute, Run,
    configured::recomputed,
    layer::{LayerTime, Pass, Rates, Traffic},
    model::Projection,
    run::LinkShares,
    split::StageSplit,
};

/// Latency of the reduction and of the gather over data-parallel ranks, together, seconds.
const REDUCTION_S: f64 = 10e-6;

/// What one stage takes for one microbatch, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageTime {
    /// Forward of its layers.
    pub forward: Pass,
    /// Backward of its layers.
    pub backward: Pass,
    /// What its layers compute again.
    pub again: Pass,
    /// Forward and backward of the head and the loss, on the last stage.
    pub head: [f64; 2],
    /// Both passes of the embedding, on the first stage.
    pub embedding: f64,
    /// The part of the backward that is the gradients of the weights.
    pub weights: f64,
}

impl StageTime {
    /// The whole forward pass.
    pub fn forward_s(&self) -> f64 {
        self.forward.total() + self.head[0] + self.embedding / 3.0
    }

    /// The whole backward pass, recomputation included.
    pub fn backward_s(&self) -> f64 {
        self.backward.total() + self.again.total() + self.head[1] + self.embedding * 2.0 / 3.0
    }

    /// Both.
    pub fn total(&self) -> f64 {
        self.forward_s() + self.backward_s()
    }

    /// Bytes that a rank sends for one microbatch, recomputation included.
    pub fn traffic(&self) -> Traffic {
        let mut all = Pass::default();
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
    }
}

/// What a rank of a stage does beside its microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reduction {
    /// Gradients reduced and weights gathered over replicas, as far as compute does not hide it, seconds.
    pub data_parallel: f64,
    /// The optimizer's step, seconds.
    pub optimizer: f64,
    /// Bytes that the rank sends for the reductions and gathers of an iteration.
    pub bytes: f64,
}

/// The terms of the closed form, seconds, of all microbatches: parts of layers on the mean stage, the head where it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Terms {
    /// Layers on the mean stage, recomputation included.
    pub layers: Pass,
    /// The head on the last stage.
    pub head: f64,
    /// The embedding on the first.
    pub embedding: f64,
    /// The slowest stage beyond the mean.
    pub imbalance: f64,
    /// Filling and draining the pipeline.
    pub bubble: f64,
    /// Transfers between stages.
    pub p2p: f64,
    /// Reductions and the optimizer's step.
    pub reduction: Reduction,
    /// The whole iteration.
    pub iteration: f64,
}

/// Everything the closed form and the simulator need of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// By stage, for one microbatch.
    pub stages: Vec<StageTime>,
    /// By stage.
    pub reductions: Vec<Reduction>,
    /// One transfer to a neighbouring stage, as far as compute does not hide it, seconds.
    pub transfer: f64,
    /// Microbatches.
    pub microbatches: u64,
    /// Pipeline stages' virtual stages.
    pub virtual_stages: u32,
    /// What the iteration is lengthened by for the cluster's size.
    pub growth: f64,
    /// What it takes beside, seconds.
    pub fixed: f64,
    /// The mean stage's parameters give the closed form's reductions.
    mean_reduction: Reduction,
}

impl Costs {
    /// Of a run that [`super::check::check`] accepts, split as that gave it.
    pub fn of(model: &Model, run: &Run, accelerator: &Accelerator, constants: &Constants, split: &StageSplit) -> Self {
        let rates = Rates::new(model, run, accelerator, constants);
        let layers = LayerTimes::new(&rates, model, run);
        let stages: Vec<StageTime> =
            (0..split.stages()).map(|stage| layers.stage(&rates, model, split, stage)).collect();
        let each: Vec<Parameters> = model.kinds.iter().map(|kind| Parameters::of_layer(model, run, kind)).collect();
        let devices = run.layout.devices() as f64;
        let links = LinkTime::new(rates, run, split.stages());
        let transfer = links.exposed_transfer(&stages);
        let mut mean = StageTime::default();
        stages.iter().for_each(|stage| mean.add(stage, 1.0 / stages.len() as f64));
        let slowest = stages.iter().map(StageTime::total).fold(0.0, f64::max);
        let reduction = |of: Parameters, stage: &StageTime| links.reduction(constants, of, stage, slowest, transfer);
        let reductions = stages
            .iter()
            .enumerate()
            .map(|(index, stage)| reduction(Parameters::on_stage(model, run, split, index, &each), stage))
            .collect();
        Costs {
            transfer,
            microbatches: run.microbatches(),
            virtual_stages: run.layout.virtual_stages,
            growth: 1.0 + constants.growth * (devices / 8.0).log2().max(0.0),
            fixed: constants.fixed_s,
            mean_reduction: reduction(Parameters::mean(model, run, split, &each), &mean),
            stages,
            reductions,
        }
    }

    /// Seconds of the tensor-parallel transfers of all microbatches on the mean stage, hidden or not.
    pub fn tensor_transfers(&self) -> f64 {
        let all: f64 = self.stages.iter().map(|stage| stage.traffic().tensor_s).sum();
        self.microbatches as f64 * all / self.stages.len() as f64
    }

    /// The closed form.
    pub fn terms(&self) -> Terms {
        let (p, v) = (self.stages.len() as f64, f64::from(self.virtual_stages));
        let m = self.microbatches as f64;
        let largest = self.stages.iter().map(StageTime::total).fold(0.0, f64::max);
        let mean = self.stages.iter().map(StageTime::total).sum::<f64>() / p;
        let mut terms = Terms {
            imbalance: m * (largest - mean),
            bubble: (p - 1.0) / v * mean,
            p2p: (m * v + 2.0 * (p - 1.0)) * self.transfer,
            reduction: self.mean_reduction,
            ..Terms::default()
        };
        for stage in &self.stages {
            for pass in [&stage.forward, &stage.backward, &stage.again] {
                terms.layers.add(pass, m / p);
            }
            terms.head += m * (stage.head[0] + stage.head[1]);
            terms.embedding += m * stage.embedding;
        }
        let batch = m * largest + terms.bubble + terms.p2p;
        let after = terms.reduction.data_parallel + terms.reduction.optimizer;
        terms.iteration = (batch + after) * self.growth + self.fixed;
        terms
    }
}

/// The times of every kind of layer, whole and computed again.
struct LayerTimes {
    recomputed: usize,
    kinds: Vec<[LayerTime; 2]>,
}

impl LayerTimes {
    fn new(rates: &Rates<'_>, model: &Model, run: &Run) -> Self {
        let kept = match run.recompute {
            Recompute::Selective => Recompute::Selective,
            _ => Recompute::None,
        };
        let both = |kind| [rates.layer(kind, kept), rates.layer(kind, Recompute::Full)];
        LayerTimes { recomputed: recomputed(run.recompute), kinds: model.kinds.iter().map(both).collect() }
    }

    fn stage(&self, rates: &Rates<'_>, model: &Model, split: &StageSplit, stage: usize) -> StageTime {
        let mut time = StageTime::default();
        let mut add = |layer: &LayerTime, count: f64| {
            time.forward.add(&layer.forward, count);
            time.backward.add(&layer.backward, count);
            time.again.add(&layer.again, count);
            time.weights += count * layer.weights;
        };
        for ([whole, again], counts) in self.kinds.iter().zip(split.by_kind(stage, model, self.recomputed)) {
            if counts[0] > 0.0 {
                add(whole, counts[0]);
            }
            if counts[1] > 0.0 {
                add(again, counts[1]);
            }
        }
        let last = stage == split.last();
        if last && model.prediction_layers > 0 {
            // Every one is a layer like the last, and goes through the head again.
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
        time
    }
}

/// Elements on one rank: of matrices that all ranks of a data-parallel group share, and of experts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parameters {
    /// Attention, dense blocks, routers, embeddings.
    pub shared: f64,
    /// Routed experts.
    pub experts: f64,
}

impl Parameters {
    /// Of one layer of a kind.
    pub fn of_layer(model: &Model, run: &Run, kind: &super::LayerKind) -> Self {
        let (t, h) = (f64::from(run.layout.tensor), model.hidden as f64);
        let matrices = kind.attention.matrices(model.hidden);
        let attention: f64 = matrices.iter().map(|matrix| matrix.on_rank(t)).map(|(n, k)| n * k).sum();
        let mut of = Parameters { shared: attention * (1.0 + f64::from(u8::from(kind.cross))), experts: 0.0 };
        let block = |width: f64, gated: bool| if gated { 3.0 } else { 2.0 } * width * h;
        match kind.feed_forward {
            super::FeedForward::Dense { width, gated } => of.shared += block(width as f64, gated) / t,
            super::FeedForward::Experts(e) => {
                of.shared += block(e.shared_width as f64, e.gated) / t + e.count as f64 * h;
                of.experts = block(e.width as f64, e.gated) * e.count as f64 / f64::from(run.layout.expert);
            }
        }
        of
    }

    fn add(&mut self, other: Parameters, times: f64) {
        self.shared += other.shared * times;
        self.experts += other.experts * times;
    }

    /// Of the layers of a stage.
    fn of_layers(model: &Model, split: &StageSplit, stage: usize, each: &[Parameters]) -> Self {
        let mut sum = Parameters::default();
        for (&layer, [count, _]) in each.iter().zip(split.by_kind(stage, model, 0)) {
            sum.add(layer, count);
        }
        if stage == split.last() && model.prediction_layers > 0 {
            let h = model.hidden as f64;
            let last = each[usize::from(model.layers[model.layers.len() - 1])];
            let projection = Parameters { shared: 2.0 * h * h, experts: 0.0 };
            sum.add(last, model.prediction_layers.into());
            sum.add(projection, model.prediction_layers.into());
        }
        sum
    }

    /// Of a stage, with the embedding on the first and the projection on the last; tied, each has a copy.
    pub fn of(model: &Model, run: &Run, split: &StageSplit, stage: usize) -> Self {
        let each: Vec<Parameters> = model.kinds.iter().map(|kind| Parameters::of_layer(model, run, kind)).collect();
        Parameters::on_stage(model, run, split, stage, &each)
    }

    /// The same, where those of a layer of every kind are known.
    fn on_stage(model: &Model, run: &Run, split: &StageSplit, stage: usize, each: &[Parameters]) -> Self {
        let mut of = Parameters::of_layers(model, split, stage, each);
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
        of
    }

    /// Of the mean stage, with one table of the vocabulary, or both where there is one stage.
    fn mean(model: &Model, run: &Run, split: &StageSplit, each: &[Parameters]) -> Self {
        if split.stages() == 1 {
            return Parameters::on_stage(model, run, split, 0, each);
        }
        let p = split.stages() as f64;
        let mut mean = Parameters::default();
        for stage in 0..split.stages() {
            mean.add(Parameters::of_layers(model, split, stage, each), 1.0 / p);
        }
        let ends = &model.ends;
        mean.shared += (ends.vocabulary * ends.token_width) as f64 / f64::from(run.layout.tensor);
        mean
    }
}

/// Ranks over which a rank's shared parameters, and its experts, are replicated.
pub fn replicas(run: &Run) -> (f64, f64) {
    let layout = &run.layout;
    let shared = f64::from(layout.data) * f64::from(layout.context);
    (shared, (shared * f64::from(layout.tensor) / f64::from(layout.expert)).max(1.0))
}

/// The time for which links are busy: nothing takes less, whatever share of it was fitted as hidden.
struct LinkTime<'a> {
    rates: Rates<'a>,
    run: &'a Run,
    /// Sends to other stages of the busiest rank, for one microbatch.
    sends: f64,
    /// Links, each with its share of the time of every kind of transfer.
    links: Vec<LinkShares>,
}

impl<'a> LinkTime<'a> {
    fn new(rates: Rates<'a>, run: &'a Run, stages: usize) -> Self {
        let v = f64::from(run.layout.virtual_stages);
        // A rank sends activations on and gradients back. The ends send one of them, of two stages each is an end, and with
        // several virtual stages the last hands on to the first.
        let sends = match stages {
            0 | 1 => 0.0,
            2 if run.zero_bubble.is_some() => v,
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

    /// Time of one transfer to the next stage that shows. Half of what a rank sends is hidden, as far as its links are not
    /// busier than it computes.
    fn exposed_transfer(&self, stages: &[StageTime]) -> f64 {
        if self.sends == 0.0 {
            return 0.0;
        }
        let slowest = stages.iter().map(StageTime::total).fold(0.0, f64::max);
        let busy = stages.iter().flat_map(|stage| self.links.iter().map(|link| self.busy(stage, link)));
        let over = busy.fold(0.0, f64::max) - slowest;
        self.rates.to_next_stage().max(over / f64::from(self.run.layout.virtual_stages))
    }

    /// Reductions of parameters on a rank of a stage, where the slowest stage takes so long for a microbatch.
    fn reduction(
        &self,
        constants: &Constants,
        of: Parameters,
        stage: &StageTime,
        slowest: f64,
        transfer: f64,
    ) -> Reduction {
        let (run, rates) = (self.run, &self.rates);
        let (shared, experts) = replicas(run);
        let settings = &run.settings;
        let m = run.microbatches() as f64;
        let times = if settings.fsdp { m } else { 1.0 };
        let (mut all, mut bytes) = (0.0, 0.0);
        for (elements, ranks) in [(of.shared, shared), (of.experts, experts)] {
            if ranks > 1.0 && elements > 0.0 {
                let sent = 6.0 * elements * (ranks - 1.0) / ranks * times;
                bytes += sent;
                all += sent / rates.reduction(ranks) + REDUCTION_S;
            }
        }
        let waits = transfer * f64::from(run.layout.virtual_stages);
        // What is left when so many microbatches' time has passed, in which links have other transfers to carry.
        let left = |microbatches: f64, seconds: f64| {
            let busy = |link: &LinkShares| link[4] * all + microbatches * self.busy(stage, link);
            self.links.iter().map(busy).fold(0.0, f64::max) - microbatches * (seconds + waits)
        };
        let data_parallel = if settings.fsdp {
            (constants.fsdp_exposed * all).max(all - 0.8 * m * slowest).max(left(m, slowest))
        } else if settings.dp_overlap {
            // Gradients are final in the last microbatch's backward pass, and the next iteration's first forward pass waits
            // for weights; virtual stages spread both over a round of the pipeline.
            let window = if run.layout.virtual_stages > 1 { m.min(f64::from(run.layout.pipeline)) } else { 1.0 };
            (constants.data_exposed * all).max(left(window, stage.total()))
        } else {
            all
        };
        let divided = settings.distributed_optimizer || settings.fsdp;
        let step = |elements: f64, ranks: f64| (26.0 / if divided { ranks } else { 1.0 } + 8.0) * elements;
        let optimizer = (step(of.shared, shared) + step(of.experts, experts)) / rates.memory();
        Reduction { data_parallel: data_parallel.min(all), optimizer, bytes }
    }
}
