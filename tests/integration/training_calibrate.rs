//! Calibration on runs of a stack whose constants are not the shipped ones.

use plantui::family::training::{
    Calibration, Estimate, Model, Stack,
    calibrate::{self, CalibrationFit, MeasuredKernels, MeasuredRun},
    hardware, published,
    request::Request,
};
use plantui::jobs;

/// A stack that computes and sends more slowly than what the shipped constants say.
fn foreign() -> Calibration {
    Calibration {
        schema: "plantui.calibration/1".into(),
        model: String::new(),
        hardware: String::new(),
        stack: String::new(),
        runs: 0,
        compute: 0.84,
        links: 0.6,
        data_exposed: 1.0,
        memory: 1.0,
        kernels: std::collections::BTreeMap::new(),
        left_out_error: 0.0,
    }
}

/// Runs of that stack, off by up to 3 % as by chance.
fn measured(model: &Model, layouts: &[&str]) -> Vec<MeasuredRun> {
    let one = |(index, layout): (usize, &&str)| {
        let mut request = Request::default();
        for (name, value) in [("devices", "64"), ("global_batch", "128"), ("parallel", layout), ("stack", "plain")] {
            request.set(name, value).unwrap();
        }
        let resolved = request.resolve(model).unwrap();
        let estimate = Estimate::of(model, &resolved.run, &resolved.accelerator, 64, Some(&foreign())).unwrap();
        let chance = 1.0 + 0.03 * ((index * 7 % 5) as f64 - 2.0) / 2.0;
        MeasuredRun {
            place: format!("run {index}"),
            measured_s: estimate.iteration_s * chance,
            measured_bytes: None,
            resolved,
        }
    };
    layouts.iter().enumerate().map(one).collect()
}

const LAYOUTS: [&str; 12] = [
    "tp=8,pp=1",
    "tp=4,pp=4",
    "tp=2,pp=8",
    "tp=8,pp=4",
    "tp=4,pp=2",
    "tp=2,pp=4",
    "tp=1,pp=8",
    "tp=8,pp=2",
    "tp=4,pp=8",
    "tp=2,pp=16",
    "tp=4,pp=1",
    "tp=1,pp=16",
];

fn errors(model: &Model, runs: &[MeasuredRun], calibration: Option<&Calibration>) -> f64 {
    let error = |run: &MeasuredRun| {
        let estimate = Estimate::of(model, &run.resolved.run, &run.resolved.accelerator, 64, calibration).unwrap();
        (estimate.iteration_s / run.measured_s - 1.0).abs()
    };
    runs.iter().map(error).sum::<f64>() / runs.len() as f64
}

#[test]
fn four_runs_of_a_foreign_stack_bring_the_error_on_the_others_below_six_percent() {
    let model = published::find("llama-3.1-70b").unwrap();
    let runs = measured(&model, &LAYOUTS);
    let (known, others) = runs.split_at(4);
    let before = errors(&model, others, None);
    let fit = CalibrationFit::of(&model, known, None).unwrap();
    let after = errors(&model, others, Some(&fit.calibration));
    assert!(before > 0.12 && after < 0.06, "{before} to {after}: {:?}", fit.factors);
    assert!(fit.calibration.compute < 0.95 && fit.calibration.links < 0.9, "{:?}", fit.calibration);
    assert!(fit.rows.iter().all(|row| row.left_out_error.unwrap().abs() < 0.12));
    // Every replica count reduces alike here: the runs do not tell how much overlap hides.
    let next = fit.next.unwrap();
    assert!(next.remains > 0.0 && next.remains < 1.0);
    assert!(known.iter().all(|run| run.resolved.run.layout != next.layout));
}

#[test]
fn few_runs_fit_few_factors() {
    let model = published::find("llama-3.1-70b").unwrap();
    let runs = measured(&model, &LAYOUTS);
    let one = CalibrationFit::of(&model, &runs[..1], None).unwrap();
    assert_eq!(one.factors.iter().map(|f| f.identified).collect::<Vec<_>>(), [true, false, false]);
    assert!(one.rows[0].left_out_error.is_none() && one.factors[1].value == 1.0);
    let two = CalibrationFit::of(&model, &runs[..2], None).unwrap();
    assert!(two.factors[1].identified && !two.factors[2].identified);
    // Without transfers nothing is told of links.
    let small = published::find("llama-3.2-1b").unwrap();
    let text = "devices,global_batch,mbs,measured_s\n1,8,1,1.0\n1,16,1,2.0\n1,16,2,2.0\n";
    let alone = calibrate::read(text, "runs.csv", &small, &Request::default()).unwrap();
    let fit = CalibrationFit::of(&small, &alone, None).unwrap();
    assert!(!fit.factors[1].identified && fit.calibration.links == 1.0);
    assert!(CalibrationFit::of(&small, &[], None).is_err());
}

const MEGATRON: &str = "\
using world size: 64, data-parallel size: 4, tensor-model-parallel size: 4, pipeline-model-parallel size: 4
------------------------ arguments ------------------------
  bf16 ............................................ True
  context_parallel_size ........................... 1
  cross_entropy_loss_fusion ....................... True
  fp8 ............................................. None
  global_batch_size ............................... 128
  hidden_size ..................................... 8192
  micro_batch_size ................................ 1
  num_layers ...................................... 80
  overlap_grad_reduce ............................. False
  pipeline_model_parallel_size .................... 4
  recompute_granularity ........................... full
  recompute_method ................................ block
  recompute_num_layers ............................ 2
  seq_length ...................................... 8192
  sequence_parallel ............................... True
  tensor_model_parallel_size ...................... 4
  tp_comm_overlap ................................. False
  use_distributed_optimizer ....................... True
  virtual_pipeline_model_parallel_size ............ 5
  world_size ...................................... 64
-------------------- end of arguments ---------------------
 iteration        1/      20 | consumed samples: 128 | elapsed time per iteration (ms): 31000.1 | learning rate: 1E-06 |
[Rank 0] (after 1 iterations) memory (MB) | allocated: 30000.0 | max allocated: 60000.5 | reserved: 65000.0 |
 iteration        2/      20 | consumed samples: 256 | elapsed time per iteration (ms): 16002.0 | learning rate: 1E-06 |
 iteration        3/      20 | consumed samples: 384 | elapsed time per iteration (ms): 16000.0 | learning rate: 1E-06 |
 iteration        4/      20 | consumed samples: 512 | elapsed time per iteration (ms): 16004.0 | learning rate: 1E-06 |
";

const TORCHTITAN: &str = "\
[titan] 2025-01-01 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]
[titan] 2025-01-01 - root - INFO - Applied full activation checkpointing to the model
[titan] 2025-01-01 - root - INFO - Compiling each TransformerBlock with torch.compile
[titan] 2025-01-01 - root - INFO - Training starts at step 1, with local batch size 2, global batch size 8, sequence length 8192, total steps 10 (warmup 2).
[titan] 2025-01-01 - root - INFO - \u{1b}[31mstep:  1  \u{1b}[32mloss: 12.0  \u{1b}[33mmemory: 40.10GiB(50.0%)  \u{1b}[34mtps: 1,000  mfu: 5%\u{1b}[0m
[titan] 2025-01-01 - root - INFO - \u{1b}[31mstep: 10  \u{1b}[32mloss: 11.0  \u{1b}[33mmemory: 42.50GiB(53.0%)  \u{1b}[34mtps: 4,096  mfu: 40%\u{1b}[0m
";

#[test]
fn logs_of_engines_are_runs() {
    let model = published::find("llama-3.1-70b").unwrap();
    let run = jobs::measured_run(MEGATRON, "a.log", &model, &Request::default()).unwrap();
    assert_eq!(run.resolved.run.layout.to_string(), "tp=4,pp=4,vp=5,cp=1,ep=1,dp=4,mbs=1");
    assert_eq!((run.resolved.devices, run.resolved.run.global_batch, run.resolved.run.sequence), (64, 128, 8192));
    assert_eq!(run.resolved.run.recompute.to_string(), "full:2");
    let settings = &run.resolved.run.settings;
    assert!(settings.fused_cross_entropy && !settings.tp_overlap && !settings.dp_overlap);
    assert_eq!(run.measured_s, 16.002);
    assert_eq!(run.measured_bytes, Some(60000.5 * 1024.0 * 1024.0));
    let small = published::find("llama-3.1-8b").unwrap();
    let error = jobs::measured_run(MEGATRON, "a.log", &small, &Request::default()).unwrap_err().to_string();
    assert!(error.contains("num_layers is 80") && error.contains("llama-3.1-8b has 32"), "{error}");

    let [run] = &calibrate::read(TORCHTITAN, "b.log", &small, &Request::default()).unwrap()[..] else {
        panic!("one run")
    };
    assert_eq!(run.resolved.run.layout.to_string(), "tp=2,pp=1,vp=1,cp=1,ep=1,dp=4,mbs=2");
    assert!(run.resolved.run.settings.fsdp && run.resolved.run.settings.fused_elementwise);
    assert_eq!(run.resolved.run.recompute.to_string(), "full");
    assert_eq!(run.measured_s, 8.0 * 8192.0 / (4096.0 * 8.0));
    assert_eq!(run.measured_bytes, Some(42.5 * 1024f64.powi(3)));
}

#[test]
fn tables_are_refused_with_line_and_column() {
    let model = published::find("llama-3.1-8b").unwrap();
    let refusal = |text: &str| calibrate::read(text, "r.csv", &model, &Request::default()).unwrap_err().to_string();
    for (text, sentence) in [
        ("tp,pp\n1,2\n", "r.csv: has no column measured_s, and is not a log of Megatron-LM or torchtitan"),
        ("tp,measured_s\n", "r.csv: holds no runs"),
        ("tp,tp,measured_s\n", "r.csv:1: has column tp twice"),
        ("tp,measured_s\n1,-1\n", "r.csv:2: measured_s is `-1`, must be a number of seconds above 0"),
        ("tp,measured_s\n1,1\n", "r.csv:2: no global batch is given"),
        ("tp,global_batch,measured_s\n1,8,\n", "r.csv:2: measured_s is empty"),
        ("tp,global_batch,measured_s\n1,8\n", "r.csv:2: has another number of fields than the first line"),
        ("colour,global_batch,measured_s\nred,8,1\n", "r.csv:2: there is no setting `colour`"),
    ] {
        let found = refusal(text);
        assert!(found.starts_with(sentence), "{found}");
    }
    let text =
        "name,parallel,global-batch,tp_overlap,measured_s,measured_memory_bytes\na,\"tp=2,pp=2\",8,FALSE,1.5,60GiB\n";
    let runs = calibrate::read(text, "r.csv", &model, &Request::default()).unwrap();
    assert_eq!(runs[0].resolved.devices, 4);
    assert!(!runs[0].resolved.run.settings.tp_overlap);
    assert_eq!(runs[0].measured_bytes, Some(60.0 * 1024f64.powi(3)));
    let text = "model\tset\tglobal_batch\tmeasured_s\nllama-3-8b\tattention=flash2 dp_overlap=false\t8\t1.5\n";
    let runs = calibrate::read(text, "r.tsv", &model, &Request::default()).unwrap();
    let settings = &runs[0].resolved.run.settings;
    assert!(!settings.dp_overlap && settings.text("attention") == "flash2");
    let other = refusal("model,global_batch,measured_s\nqwen3-8b,8,1\n");
    assert_eq!(other, "r.csv:2: model is `qwen3-8b`, must be the model of these runs, llama-3.1-8b");
}

/// Kernels of an H100 that are as fast as the reference's times `speed`.
fn kernels(speed: f64, iterations: &str) -> String {
    let sustained = hardware::find("h100").unwrap().sustained_16(1.0);
    let product = |m: f64, n: f64, k: f64| {
        let edge = 1.0 + 112.0 / m + 74.0 / n + 149.0 / k;
        let seconds = (2.0 * m * n * k / (0.842 * sustained) * edge + 3.1e-6) / speed;
        format!(r#"{{"precision": "bf16", "m": {m}, "n": {n}, "k": {k}, "seconds": {seconds}}}"#)
    };
    let products =
        [product(4096.0, 4096.0, 4096.0), product(8192.0, 8192.0, 2048.0), product(256.0, 64.0, 64.0)].join(", ");
    let copy = 2e9 / (0.9 * 3.35e12 * speed);
    format!(
        r#"{{"schema": "plantui.kernels/1", "device": "H100", "torch": "2.6", "products": [{products}], "attention": [],
        "copies": [{{"bytes": 2e9, "seconds": {copy}}}], "iterations": [{iterations}]}}"#
    )
}

#[test]
fn measured_kernels_scale_the_shipped_constants() {
    let h100 = hardware::find("h100").unwrap();
    for speed in [1.0, 0.8] {
        let file = MeasuredKernels::parse(&kernels(speed, ""), "k.json").unwrap();
        let fit = file.fit(&h100, Stack::Plain, "k.json").unwrap();
        let names: Vec<&str> = fit.factors.iter().map(|factor| factor.constant).collect();
        assert_eq!(names, ["gemm_16", "memory"]);
        assert_eq!(fit.factors[0].rows, 2, "the small product tells nothing of large ones");
        assert!(fit.factors.iter().all(|factor| (factor.value / speed - 1.0).abs() < 1e-9), "{:?}", fit.factors);
        assert!(fit.iterations.is_empty() && fit.calibration.compute == 1.0);
        assert_eq!(fit.calibration.problem(), None);
    }
}

#[test]
fn measured_iterations_set_the_level_and_leave_the_kernels_their_ratio() {
    let h100 = hardware::find("h100").unwrap();
    let config = r#"{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "tie_word_embeddings": false}"#;
    let row = |seconds: f64| {
        format!(
            r#"{{"config": {config}, "sequence": 4096, "micro_batch": 2, "precision": "bf16", "compiled": true,
            "seconds": {seconds}, "peak_bytes": 3e10}}"#
        )
    };
    let fit = |seconds: f64| {
        let file = MeasuredKernels::parse(&kernels(1.0, &row(seconds)), "k.json").unwrap();
        file.fit(&h100, Stack::Plain, "k.json").unwrap()
    };
    let usual = fit(0.235);
    let slow = fit(0.235 * 1.2);
    assert!(slow.calibration.compute < usual.calibration.compute / 1.1);
    assert!(slow.iterations[0].fitted_error.abs() < 0.05 && slow.iterations[0].memory_error.is_some());
    assert_eq!(slow.calibration.kernels, usual.calibration.kernels);
    // Runs of several devices are fitted on top of the kernels.
    let model = published::find("llama-3.1-70b").unwrap();
    let runs = measured(&model, &LAYOUTS);
    let both = CalibrationFit::of(&model, &runs, Some(&slow.calibration)).unwrap();
    assert_eq!(both.calibration.kernels, slow.calibration.kernels);
    assert!(errors(&model, &runs, Some(&both.calibration)) < 0.06);
}

#[test]
fn a_file_without_kernels_is_refused_with_the_place() {
    let refusal = |text: &str| MeasuredKernels::parse(text, "k.json").unwrap_err().to_string();
    assert!(refusal("{").starts_with("k.json:1:"));
    assert!(refusal(&kernels(1.0, "").replace("kernels/1", "kernels/9")).contains("must be plantui.kernels/1"));
    assert!(refusal(&kernels(-1.0, "")).contains("must be above 0"));
    let small = kernels(1.0, "").replace("4096", "96").replace("8192", "96");
    let file = MeasuredKernels::parse(&small, "k.json").unwrap();
    let error = file.fit(&hardware::find("h100").unwrap(), Stack::Plain, "k.json").unwrap_err();
    assert!(error.to_string().contains("no product in 16 bits of at least 2048 x 1024 x 1024"), "{error}");
}
