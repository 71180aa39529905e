//! The simulated program of a training run against its closed form, and runs that only the simulator times.

use plantui::{
    family::training::{
        Constants, Estimate, Layout, Model, Recompute, Stack, TrainingPrecision, TrainingRun, check, hardware,
        iteration::IterationCosts, memory, program, published,
    },
    simulate,
};

/// Draws whole numbers (Knuth's multiplier, the upper half).
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

fn run(layout: Layout, microbatches: u64) -> TrainingRun {
    TrainingRun {
        layout,
        global_batch: microbatches * u64::from(layout.data) * u64::from(layout.micro_batch),
        sequence: 4096,
        precision: TrainingPrecision::Bf16,
        recompute: Recompute::None,
        stack: Stack::Megatron2025,
        settings: Stack::Megatron2025.settings(),
        layers: vec![],
        head_alone: false,
        zero_bubble: None,
        links: None,
    }
}

#[test]
fn a_thousand_even_runs_are_simulated_within_two_percent_of_the_closed_form() {
    let names =
        ["llama-2-7b", "llama-3.1-8b", "llama-3.1-70b", "gpt3-175b", "mistral-7b", "nemotron-4-340b", "qwen2.5-32b"];
    let models: Vec<Model> = names.iter().map(|name| published::find(name).unwrap()).collect();
    let mut draw = Draw(7);
    let (mut compared, mut interleaved) = (0, 0);
    while compared < 1000 {
        let model = &models[draw.below(models.len())];
        let layout = Layout {
            tensor: draw.of(&[1, 2, 4, 8]),
            pipeline: draw.of(&[1, 2, 4, 8, 16]),
            virtual_stages: draw.of(&[1, 1, 2, 3, 4, 5]),
            data: draw.of(&[1, 2, 8, 32]),
            micro_batch: draw.of(&[1, 2]),
            ..Layout::ONE
        };
        let microbatches = u64::from(layout.pipeline) * draw.of(&[4, 5, 8, 13, 32]);
        let mut run = run(layout, microbatches.max(8));
        run.recompute = draw.of(&[Recompute::None, Recompute::Full]);
        let accelerator = draw.of(&[&hardware::all()[1], &hardware::all()[2], &hardware::all()[4]]);
        let layers = model.layers.len();
        let parts = (layout.pipeline * layout.virtual_stages) as usize;
        if !layers.is_multiple_of(parts) && !(layers + 2).is_multiple_of(parts) {
            continue;
        }
        let Ok(estimate) = Estimate::of(model, &run, accelerator, layout.devices(), None) else { continue };
        let ratio = estimate.simulated_s / estimate.iteration_s;
        assert!((ratio - 1.0).abs() < 0.02, "{} {layout} x {microbatches}: {ratio}", model.name);
        compared += 1;
        interleaved += usize::from(layout.virtual_stages > 1);
    }
    assert!(interleaved > 200, "{interleaved}");
}

#[test]
fn uneven_splits_are_timed_by_the_simulator() {
    let model = published::find("llama-3.1-70b").unwrap();
    let layout = Layout { tensor: 8, pipeline: 4, ..Layout::ONE };
    let estimate = |layers: &[u32]| {
        let run = TrainingRun { layers: layers.to_vec(), ..run(layout, 32) };
        Estimate::of(&model, &run, &hardware::find("h100").unwrap(), 32, None).unwrap()
    };
    let even = estimate(&[20, 20, 20, 20]);
    assert_eq!(even, estimate(&[]));
    // The last stage has the head: a layer less there helps, a layer more hurts.
    let (fewer, more) = (estimate(&[20, 20, 21, 19]), estimate(&[19, 20, 20, 21]));
    assert!(fewer.iteration_s < more.iteration_s);
    assert_eq!(more.iteration_s, more.simulated_s);
    assert_eq!(more.stages.iter().map(|stage| stage.layers).collect::<Vec<_>>(), [19, 20, 20, 21]);
    // Memory follows the layers.
    assert!(more.stages[0].memory.total() < even.stages[0].memory.total());
    assert!(more.stages[3].memory.total() > even.stages[3].memory.total());
    for estimate in [even, fewer, more] {
        let sum: f64 = estimate.parts.iter().map(|(_, seconds)| seconds).sum();
        assert!((sum / estimate.iteration_s - 1.0).abs() < 1e-9);
        assert!(estimate.bubble > 0.0 && estimate.bubble < 0.3, "{}", estimate.bubble);
    }
}

#[test]
fn the_program_holds_in_memory_what_the_closed_form_says() {
    let model = published::find("llama-3.1-8b").unwrap();
    let layout = Layout { pipeline: 4, ..Layout::ONE };
    let run = run(layout, 16);
    let accelerator = hardware::find("h100").unwrap();
    let split = check::check(&model, &run, &accelerator, 4).unwrap();
    let costs =
        IterationCosts::of(&model, &run, &accelerator, &Constants::shipped(accelerator.generation, run.stack), &split);
    let held = memory::stages(&model, &run, &split);
    let timeline = simulate::simulate(&program::pipeline(&run, &costs, &held), program::schedule(&run));
    let fullest = memory::fullest(&held);
    assert!((timeline.peak_memory() / fullest - 1.0).abs() < 1e-6, "{} {fullest}", timeline.peak_memory());
}
