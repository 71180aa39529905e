//! Mixtures of experts: passes side by side, the load of ranks, and whether published layouts fit.

use plantui::family::training::{
    Estimate, ExpertOverlap, Fits, Imbalance, Layout, Recompute, Stack, TrainingRun, check, hardware, published,
    request::Request,
};

/// Run of these arguments of `plantui estimate`, with its estimate.
fn estimate(arguments: &str) -> Estimate {
    let (model, rest) = arguments.split_once(' ').unwrap();
    let model = published::find(model).unwrap();
    let mut request = Request::default();
    let mut words = rest.split_whitespace();
    while let (Some(flag), Some(value)) = (words.next(), words.next()) {
        request.set(flag, value).unwrap_or_else(|problem| panic!("{arguments}: {problem}"));
    }
    let resolved = request.resolve(&model).unwrap();
    Estimate::of(&model, &resolved.run, &resolved.accelerator, resolved.devices, None)
        .unwrap_or_else(|refusal| panic!("{arguments}: {refusal}"))
}

/// Layouts of NVIDIA's Megatron-Bridge with the modules that its recipes recompute. The recipes reduce gradients in 16 bits
/// and fuse the cross-entropy.
const PUBLISHED: [&str; 16] = [
    "deepseek-v3 --hardware gb300 --devices 256 --global-batch 4096 --precision mxfp8 --recompute selective:mla_up_proj \
     --parallel pp=2,vp=8,ep=32 --layers 4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1",
    "deepseek-v3 --hardware gb300 --devices 256 --global-batch 4096 --precision bf16 --recompute selective:moe_act \
     --parallel pp=2,vp=4,ep=32 --layers 8,8,8,8,8,8,8,5",
    "deepseek-v3 --hardware gb200 --devices 256 --global-batch 4096 --precision mxfp8 --recompute selective:mla_up_proj \
     --parallel pp=4,vp=4,ep=64 --layers 4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1",
    "deepseek-v3 --hardware gb200 --devices 256 --global-batch 4096 --precision bf16 --recompute selective:mla_up_proj \
     --parallel pp=4,vp=4,ep=64 --layers 4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1",
    "deepseek-v3 --hardware b200 --devices 256 --global-batch 2048 --precision mxfp8 --recompute selective:mla_up_proj \
     --parallel pp=16,ep=8 --layers 4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1",
    "deepseek-v3 --hardware b300 --devices 256 --global-batch 4096 --precision mxfp8 --recompute selective:mla_up_proj \
     --parallel pp=8,ep=8,mbs=2 --layers 8,8,8,8,8,8,8,5",
    "deepseek-v3 --hardware h100 --devices 1024 --global-batch 8192 --precision fp8 --recompute selective:mla_up_proj,mlp \
     --parallel tp=2,pp=8,vp=4,ep=64",
    "gpt-oss-120b --hardware gb300 --devices 64 --global-batch 1280 --precision mxfp8 --parallel ep=16,mbs=4",
    "gpt-oss-120b --hardware gb200 --devices 64 --global-batch 1280 --precision bf16 \
     --recompute selective:moe_act,layernorm --parallel ep=64,mbs=4",
    "gpt-oss-120b --hardware b200 --devices 64 --global-batch 1280 --precision bf16 \
     --recompute selective:moe_act,layernorm --parallel ep=8,mbs=4",
    "gpt-oss-120b --hardware h100 --devices 64 --global-batch 512 --precision bf16 \
     --recompute selective:moe_act,layernorm --parallel pp=4,ep=8",
    "qwen3-30b-a3b --hardware gb200 --devices 8 --global-batch 512 --precision mxfp8 --parallel ep=8,mbs=4",
    "qwen3-30b-a3b --hardware h100 --devices 16 --global-batch 512 --precision fp8 \
     --recompute selective:moe_act,layernorm --parallel pp=2,vp=24,ep=8,mbs=2",
    "qwen3-30b-a3b --hardware h100 --devices 16 --global-batch 1024 --precision fp8 --parallel ep=16",
    "qwen3-235b-a22b --hardware b200 --devices 64 --global-batch 1024 --precision mxfp8 --parallel pp=8,vp=2,ep=8",
    "qwen3-235b-a22b --hardware gb200 --devices 64 --global-batch 1024 --precision mxfp8 --parallel tp=2,ep=64",
];

#[test]
fn published_layouts_fit_with_the_recomputation_of_their_recipes() {
    for arguments in PUBLISHED {
        let settings = "--sequence-length 4096 --set gradient_bytes=2 --set fused_cross_entropy=true";
        let estimate = estimate(&format!("{arguments} {settings}"));
        assert_ne!(estimate.fits, Fits::No, "{arguments}: {} bytes", estimate.memory_bytes);
    }
}

fn deepseek(layout: Layout, microbatches: u64, overlap: ExpertOverlap) -> TrainingRun {
    let arguments = Request::default();
    let model = published::find("deepseek-v3").unwrap();
    let mut request = arguments;
    request.set("global_batch", &(microbatches * u64::from(layout.data)).to_string()).unwrap();
    request.set("sequence_length", "4096").unwrap();
    request.set("devices", &layout.devices().to_string()).unwrap();
    let resolved = request.resolve(&model).unwrap();
    let mut run = TrainingRun { layout, stack: Stack::Megatron2025, ..resolved.run };
    run.settings.ep_overlap = overlap;
    run
}

#[test]
fn passes_side_by_side_are_simulated_as_the_closed_form_has_them() {
    let model = published::find("deepseek-v3").unwrap();
    let accelerator = hardware::find("h100").unwrap();
    for (pipeline, virtual_stages, data, microbatches) in
        [(1, 1, 64, 16), (4, 4, 16, 32), (8, 2, 8, 64), (8, 4, 8, 32), (16, 2, 4, 64), (4, 2, 16, 4)]
    {
        let layout = Layout { pipeline, virtual_stages, data, expert: data, ..Layout::ONE };
        let of = |overlap| {
            let run = deepseek(layout, microbatches, overlap);
            Estimate::of(&model, &run, &accelerator, layout.devices(), None).unwrap_or_else(|e| panic!("{layout}: {e}"))
        };
        let (paired, serial) = (of(ExpertOverlap::Batch), of(ExpertOverlap::None));
        let saved = 1.0 - paired.simulated_s / serial.simulated_s;
        let exposed = serial.terms.layers.expert_parallel / serial.iteration_s;
        assert!(saved > 0.0 && saved < exposed, "{layout}: saves {saved} of {exposed}");
        let even = (paired.terms.iteration / paired.simulated_s - 1.0).abs();
        let usual = (serial.terms.iteration / serial.simulated_s - 1.0).abs();
        assert!(even < usual + 0.03, "{layout}: {even}, and {usual} without overlap");
        assert!(paired.memory_bytes >= serial.memory_bytes, "one more microbatch is in flight");
    }
}

#[test]
fn delayed_gradients_and_shared_experts_hide_more() {
    let base = "deepseek-v3 --devices 512 --global-batch 2048 --sequence-length 4096 --parallel pp=8,vp=4,ep=64";
    let seconds = |settings: &str| estimate(&format!("{base} {settings}")).iteration_s;
    let (none, batch) = (seconds(""), seconds("--set ep_overlap=batch"));
    let delayed = seconds("--set ep_overlap=batch --set delay_weight_gradients=true");
    assert!(delayed < batch && batch < none, "{delayed} {batch} {none}");
    let flat = seconds("--set dispatcher=alltoall");
    let shared = seconds("--set dispatcher=alltoall --set shared_expert_overlap=true");
    assert!(shared < flat && flat > none, "{shared} {flat} {none}");
}

#[test]
fn an_imbalance_slows_the_busiest_rank() {
    let base =
        "qwen3-30b-a3b --devices 16 --global-batch 1024 --sequence-length 4096 --precision bf16 --parallel ep=16";
    let of = |load: &str| estimate(&format!("{base} --imbalance {load}"));
    let seconds = |load: &str| of(load).iteration_s;
    assert!(seconds("balanced") < seconds("random") && seconds("random") < seconds("1.5"));
    assert!(seconds("1.5") < seconds("2"));
    assert!(of("2").memory_bytes > 1.1 * of("balanced").memory_bytes, "the busiest rank keeps more tokens");
    let part =
        |estimate: &Estimate, name: &str| estimate.parts.iter().find(|part| part.0 == name).map_or(0.0, |part| part.1);
    assert_eq!(part(&of("balanced"), "expert_imbalance"), 0.0);
    assert!(part(&of("2"), "expert_imbalance") > 0.2 * part(&of("2"), "gemm"));
    // Equal counts are no imbalance, and padding to the mean neither.
    let counts = vec!["3"; 128].join("+");
    assert_eq!(seconds(&format!("counts:{counts}")), seconds("balanced"));
    let flat = "--set dispatcher=alltoall";
    assert_eq!(seconds(&format!("capacity:1 {flat}")), seconds(&format!("balanced {flat}")));
    // All tokens on one of 16 ranks are the worst.
    assert_eq!(seconds("100"), seconds("16"));
    assert!(Imbalance::parse("0.9").is_none());
}

#[test]
fn launches_dominate_small_microbatches_unless_graphs_make_them() {
    let base = "qwen3-30b-a3b --hardware b200 --devices 8 --global-batch 512 --sequence-length 4096 --parallel ep=8";
    let part = |settings: &str| {
        let estimate = estimate(&format!("{base} --precision mxfp8 {settings}"));
        let launches = estimate.parts.iter().find(|part| part.0 == "launches").map_or(0.0, |part| part.1);
        launches / estimate.iteration_s
    };
    assert!(part("") > 0.3);
    assert_eq!(part("--set cuda_graph=true"), 0.0);
    assert_eq!(part("--set release=26.06"), 0.0);
    assert!(part("--set release=26.02") > 0.3);
}

#[test]
fn settings_that_megatron_refuses_are_refused() {
    let model = published::find("deepseek-v3").unwrap();
    let accelerator = hardware::find("h100").unwrap();
    let refusal = |layout: Layout, change: &[(&str, &str)]| {
        let mut run = deepseek(layout, 16, ExpertOverlap::Batch);
        for (name, value) in change {
            run.settings.set(name, value).unwrap();
        }
        check::check(&model, &run, &accelerator, layout.devices()).unwrap_err().problem
    };
    let piped = Layout { pipeline: 4, data: 16, expert: 16, ..Layout::ONE };
    let shared = [("dispatcher", "deepep"), ("ep_overlap", "shared")];
    let cases = [
        (refusal(Layout { expert: 1, ..piped }, &[]), "needs expert parallelism"),
        (refusal(piped, &[]), "needs virtual stages"),
        (refusal(piped, &shared), "needs dispatcher=alltoall"),
        (refusal(piped, &[("ep_overlap", "none"), ("delay_weight_gradients", "true")]), "needs ep_overlap=batch"),
        (refusal(piped, &[("ep_overlap", "none"), ("imbalance", "counts:1+2")]), "counts tokens of 2 experts"),
        (refusal(piped, &[("ep_overlap", "none"), ("imbalance", "capacity:1.2")]), "dispatcher=deepep does not"),
    ];
    for (problem, expected) in cases {
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn layers_that_predict_further_tokens_are_placed_before_the_head() {
    let base = "deepseek-v3 --devices 1024 --global-batch 8192 --sequence-length 4096 --precision fp8 \
                --recompute selective:mla_up_proj,mlp --parallel tp=2,pp=8,vp=4,ep=64 --layers";
    let twos = |count: usize| vec!["2"; count].join(",");
    let beside = estimate(&format!("{base} 1,{},0", twos(30)));
    let marked = estimate(&format!("{base} 1,{},0m", twos(30)));
    let apart = estimate(&format!("{base} 3,{},m,0", twos(29)));
    assert_eq!(marked, beside);
    // The layer leaves the stage that has the head, which passes it twice.
    assert!(apart.simulated_s < 0.97 * beside.simulated_s, "{} {}", apart.simulated_s, beside.simulated_s);
    let [last, before] = [7, 6].map(|stage: usize| &apart.stages[stage]);
    assert_eq!((last.layers, before.layers), (6, 6));
    assert!(before.memory.weights > last.memory.weights);
    let refusal = |layers: &str, model: &str| {
        let model = published::find(model).unwrap();
        let mut request = Request::default();
        for (name, value) in [("devices", "8"), ("parallel", "pp=4,dp=2"), ("global_batch", "16"), ("layers", layers)] {
            request.set(name, value)?;
        }
        let resolved = request.resolve(&model).unwrap();
        check::check(&model, &resolved.run, &resolved.accelerator, 8).map_err(|refusal| refusal.problem).map(|_| ())
    };
    assert_eq!(refusal("20,21,20m,0", "deepseek-v3"), Ok(()));
    assert!(refusal("20,20,20m,1", "deepseek-v3").unwrap_err().contains("must then have 0 layers"));
    assert!(refusal("20,20m,21,0", "deepseek-v3").unwrap_err().contains("one m, on the last stage"));
    assert!(refusal("10,10,12m,0", "llama-3.1-8b").unwrap_err().contains("predicts no further tokens"));
}

#[test]
fn recomputation_that_an_overlap_or_graphs_do_not_run_with_is_refused() {
    let model = published::find("deepseek-v3").unwrap();
    let accelerator = hardware::find("h100").unwrap();
    let layout = Layout { pipeline: 4, virtual_stages: 4, data: 16, expert: 16, ..Layout::ONE };
    let refusal = |recompute: &str, change: (&str, &str)| {
        let mut run = deepseek(layout, 16, ExpertOverlap::None);
        run.settings.set(change.0, change.1).unwrap();
        run.recompute = Recompute::parse(recompute).unwrap();
        check::check(&model, &run, &accelerator, layout.devices()).err().map(|refusal| refusal.problem)
    };
    for change in [("ep_overlap", "batch"), ("cuda_graph", "true")] {
        for recompute in ["full", "full:1", "selective:moe"] {
            assert!(refusal(recompute, change).is_some_and(|problem| problem.contains(change.0)), "{recompute}");
        }
        assert_eq!(refusal("selective:moe_act,layernorm", change), None);
    }
}

#[test]
fn the_alias_for_the_overlap_of_the_shared_expert_contradicts_the_others() {
    let mut request = Request::default();
    request.set("ep_overlap", "batch").unwrap();
    assert!(request.set("shared_expert_overlap", "true").unwrap_err().contains("ep_overlap is set twice"));
    request.set("shared_expert_overlap", "false").unwrap();
    let mut settings = Stack::Megatron2025.settings();
    settings.set("ep_overlap", "batch").unwrap();
    assert!(settings.set("shared_expert_overlap", "true").unwrap_err().contains("contradicts ep_overlap=batch"));
}
