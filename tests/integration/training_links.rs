//! No link is busier than the whole iteration, whatever shares of transfers were fitted as hidden.

use plantui::family::training::{
    Accelerator, Estimate, Layout, Model, Recompute, Stack, TrainingPrecision, TrainingRun, hardware, published,
};

struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Share of a link's bandwidth that collectives attain.
const ATTAINED: f64 = 0.75;

/// Seconds for which the busiest rank's links inside and outside a domain are busy in an iteration, by the bytes alone.
fn busy(model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> [f64; 2] {
    let layout = &run.layout;
    let [t, p, v, c, d] =
        [layout.tensor, layout.pipeline, layout.virtual_stages, layout.context, layout.data].map(f64::from);
    let (h, m, layers) = (model.hidden as f64, run.microbatches() as f64, model.layers.len() as f64);
    let domain = f64::from(accelerator.domain);
    let mut busy = [0.0; 2];
    let mut send = |inside: bool, bytes: f64| {
        let link = if inside { accelerator.inner_link } else { accelerator.outer_link };
        busy[usize::from(!inside)] += bytes / (ATTAINED * link);
    };
    // Four and five collectives a layer; the recomputed forward once more.
    let again = if run.recompute == Recompute::Full { 4.0 } else { 0.0 };
    let activation = 2.0 * run.tokens() * h;
    // The mean stage has no more than the busiest.
    let own = (layers / p).floor();
    send(t <= domain, m * own * (9.0 + again) * activation * (t - 1.0) / t);
    if p > 1.0 {
        let sends = if p > 2.0 { 2.0 * v } else { 2.0 * v - 1.0 };
        send(t * c * p * d <= domain, m * sends * activation / t);
    }
    let ranks = d * c;
    if ranks > 1.0 && t * ranks > domain {
        let parameters =
            (0..model.layers.len()).map(|layer| model.kind(layer).parameters(model.hidden)).sum::<u64>() as f64 / t;
        let rate = accelerator.outer_link * (domain / t).max(1.0);
        let times = if run.settings.fsdp { m } else { 1.0 };
        busy[1] += times * 6.0 * (parameters / p) * (ranks - 1.0)
            / ranks
            / (ATTAINED * rate).min(ATTAINED * accelerator.inner_link);
    }
    busy
}

#[test]
fn no_link_is_busier_than_the_iteration() {
    let models: Vec<Model> = ["llama-3.1-8b", "llama-2-7b", "gpt3-175b", "qwen2.5-32b"]
        .iter()
        .map(|name| published::find(name).unwrap())
        .collect();
    let mut draw = Draw(44);
    let (mut seen, mut bound) = (0, 0);
    while seen < 2000 {
        let model = &models[draw.below(models.len())];
        let layout = Layout {
            tensor: draw.of(&[1, 2, 4, 8]),
            pipeline: draw.of(&[1, 2, 4]),
            virtual_stages: draw.of(&[1, 1, 2]),
            context: draw.of(&[1, 1, 2]),
            expert: 1,
            expert_tensor: 1,
            data: draw.of(&[1, 2, 4, 8]),
            micro_batch: draw.of(&[1, 2]),
        };
        let stack = draw.of(&[Stack::Megatron2025, Stack::Torchtitan, Stack::Plain]);
        let microbatches = u64::from(layout.pipeline) * draw.of(&[1, 2, 8]);
        let run = TrainingRun {
            layout,
            global_batch: microbatches * u64::from(layout.data * layout.micro_batch),
            sequence: draw.of(&[2048, 4096]),
            precision: TrainingPrecision::Bf16,
            recompute: draw.of(&[Recompute::None, Recompute::Full]),
            stack,
            settings: stack.settings(),
            layers: vec![],
            head_alone: false,
            zero_bubble: None,
            links: None,
        };
        let mut accelerator = hardware::find("h100").unwrap();
        accelerator.inner_link /= draw.of(&[1.0, 4.0, 30.0, 300.0]);
        accelerator.outer_link = accelerator.inner_link.min(accelerator.outer_link / draw.of(&[1.0, 8.0, 100.0]));
        let Ok(estimate) = Estimate::of(model, &run, &accelerator, layout.devices(), None) else { continue };
        seen += 1;
        for (name, seconds) in ["inside", "outside"].into_iter().zip(busy(model, &run, &accelerator)) {
            assert!(
                seconds <= estimate.iteration_s * (1.0 + 1e-9) && seconds <= estimate.simulated_s * (1.0 + 1e-9),
                "{} {layout} {}: links {name} are busy for {seconds} s of {} ({} simulated)",
                model.name,
                stack.id(),
                estimate.iteration_s,
                estimate.simulated_s
            );
            bound += usize::from(seconds > 0.8 * estimate.iteration_s);
        }
    }
    assert!(bound > 100, "{bound} of {seen} are bound by their links");
}
