//! Jobs of engines: what `export` writes is read back to the same run, and a script that is changed a little never
//! becomes another model in silence.

use std::collections::BTreeMap;

use crate::common::engine_rules;
use plantui::{
    cluster::{GivenLimits, LimitKind},
    export::engine::{Engine, EngineSettings, export},
    family::{
        self,
        training::{Estimate, Model, TrainingSettings, configured, hardware, published},
    },
    jobs::{self, ReadOptions},
    plan::Configuration,
    study::nearest,
    workload::{
        TrainingProfile, WorkloadFormat,
        training::{Layout, Recompute, Stack, TrainingPrecision, TrainingRun},
    },
};

/// Run that an engine is given: model, hardware, degrees, batch, and settings by name.
struct Case {
    model: &'static str,
    hardware: &'static str,
    parallel: &'static str,
    batch: u32,
    recompute: &'static str,
    precision: &'static str,
    settings: &'static [(&'static str, &'static str)],
}

const CASES: [Case; 11] = [
    case("llama-3.1-8b", "h200", "dp=8", 128, "none", "bf16", &[]),
    case("llama-3.1-8b", "h100", "tp=2,pp=2,dp=4,mbs=2", 128, "full", "bf16", &[]),
    case("llama-3.1-70b", "h100", "tp=4,pp=4,vp=5,cp=2,dp=2", 128, "none", "bf16", &[]),
    case("llama-3.1-70b", "b200", "tp=2,pp=4,dp=8", 256, "none", "mxfp8", &[]),
    case("llama-3.1-405b", "h100", "tp=8,pp=9,vp=7,cp=2,dp=2", 252, "none", "fp8", &[]),
    case("llama-3.1-405b", "b200", "tp=8,pp=16,vp=8,cp=2,dp=2", 256, "none", "fp8", &[]),
    case("llama-2-13b", "a100-80", "tp=2,pp=2,dp=4", 64, "full", "bf16", &[("zero", "3")]),
    case(
        "llama-2-13b",
        "a100-80",
        "tp=4,dp=4,mbs=2",
        64,
        "none",
        "bf16",
        &[("sequence_parallel", "false"), ("tp_overlap", "false")],
    ),
    case("mixtral-8x7b", "h200", "tp=2,pp=2,ep=4,dp=4", 128, "none", "bf16", &[("dispatcher", "alltoall")]),
    case("qwen3-30b-a3b", "h100", "pp=2,ep=8,dp=8", 128, "none", "bf16", &[("dispatcher", "deepep")]),
    case("deepseek-v2-lite", "h100", "ep=8,dp=8,mbs=2", 128, "full", "bf16", &[("dispatcher", "alltoall")]),
];

#[allow(clippy::too_many_arguments)]
const fn case(
    model: &'static str,
    hardware: &'static str,
    parallel: &'static str,
    batch: u32,
    recompute: &'static str,
    precision: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> Case {
    Case { model, hardware, parallel, batch, recompute, precision, settings }
}

fn layout(text: &str, model: &Model, stack: Stack) -> Layout {
    let mut layout = Layout::ONE;
    for (name, degree) in text.split(',').filter_map(|part| part.split_once('=')) {
        let degree = degree.parse().unwrap();
        match name {
            "tp" => layout.tensor = degree,
            "pp" => layout.pipeline = degree,
            "vp" => layout.virtual_stages = degree,
            "cp" => layout.context = degree,
            "ep" => layout.expert = degree,
            "dp" => layout.data = degree,
            _ => layout.micro_batch = degree,
        }
    }
    layout.expert_tensor = if model.has_experts() { stack.expert_tensor(layout.tensor, layout.expert) } else { 1 };
    layout
}

/// Runs for engines without pipelines or with whole recomputation only.
const ZERO: [Case; 11] = [
    case("llama-3.1-8b", "h100", "dp=8", 128, "full", "bf16", &[("zero", "3")]),
    case("llama-3.1-8b", "h100", "dp=16,mbs=2", 128, "full", "bf16", &[("zero", "2"), ("fused_elementwise", "false")]),
    case("llama-3.1-8b", "h100", "dp=32", 128, "none", "bf16", &[("zero", "3")]),
    case("llama-3.1-8b", "b200", "cp=2,dp=8", 64, "full", "bf16", &[("zero", "3"), ("context_style", "all-gather")]),
    case("llama-3.1-8b", "h100", "cp=4,dp=4", 64, "full", "bf16", &[("zero", "3")]),
    case("llama-2-13b", "a100-80", "dp=64,mbs=2", 512, "full", "bf16", &[("zero", "3"), ("hsdp", "8")]),
    case("llama-2-13b", "a100-80", "tp=2,dp=8", 64, "full", "fp16", &[("zero", "3")]),
    case("gpt2-xl", "v100", "dp=8", 64, "full", "fp32", &[("zero", "2")]),
    case("llama-3.1-70b", "h100", "dp=64", 64, "full", "bf16", &[("zero", "3"), ("optimizer_offload", "true")]),
    case("llama-2-13b", "h100", "dp=8", 64, "full", "bf16", &[("zero", "1"), ("gradient_bytes", "2")]),
    case("llama-3.1-8b", "b200", "dp=4,mbs=2", 64, "none", "bf16", &[("zero", "3"), ("attention", "flash2")]),
];

/// Runs with pipelines of whole layers.
const STAGED: [Case; 11] = [
    case("llama-3.1-8b", "h100", "pp=2,dp=4", 128, "none", "bf16", &[]),
    case("llama-3.1-8b", "h100", "pp=4,dp=4,mbs=2", 128, "full", "bf16", &[]),
    case("llama-3.1-8b", "h100", "tp=2,pp=4,dp=2", 128, "none", "bf16", &[]),
    case("llama-3.1-8b", "h100", "pp=4,vp=2,dp=4", 128, "none", "bf16", &[]),
    case("llama-2-13b", "a100-80", "pp=4,dp=2", 64, "full", "bf16", &[]),
    case("llama-2-13b", "a100-80", "tp=2,pp=2,dp=2", 64, "full", "fp16", &[]),
    case("llama-2-13b", "a100-80", "pp=8", 64, "none", "bf16", &[("zero", "0")]),
    case("llama-3.1-70b", "h100", "tp=4,pp=4,dp=2", 64, "full", "bf16", &[]),
    case("llama-3.1-8b", "h100", "pp=3,dp=2", 24, "none", "bf16", &[]),
    case("gpt2-xl", "a100-80", "pp=2,dp=4", 64, "none", "fp16", &[("zero", "0")]),
    case("llama-3.1-8b", "b200", "pp=2,dp=2,mbs=2", 64, "none", "bf16", &[]),
];

/// Text that the engine is given, the run that it stands for, and the profile that was planned.
fn written(engine: Engine, stack: Stack, case: &Case) -> Result<(String, TrainingRun, TrainingProfile), String> {
    let model = published::find(case.model).unwrap();
    let layout = layout(case.parallel, &model, stack);
    let mut profile = TrainingProfile::new(model, hardware::find(case.hardware).unwrap());
    profile.move_to(profile.accelerator, stack);
    profile.settings = stack.settings();
    profile.sequence = profile.model.longest_sequence.min(4096);
    profile.precision = TrainingPrecision::find(case.precision).unwrap();
    for (name, value) in case.settings {
        profile.settings.set(name, value).unwrap();
    }
    let recompute = Recompute::parse(case.recompute).unwrap();
    let configuration = Configuration { ..profile.configuration(layout, recompute) };
    let split = configured::split(&profile, &configuration).ok_or("no split")?;
    let plan = configured::plan(&profile, configuration.clone(), &split);
    let workload = profile.clone().into_workload(case.model, case.model, WorkloadFormat::Training, Some(case.batch));
    let given = GivenLimits::default().with(LimitKind::Devices, layout.devices() as u32);
    let limits = family::resolve(&workload, &given).unwrap();
    let settings = EngineSettings { nearest: Some(nearest::plans), ..EngineSettings::default() };
    let exported = export(engine, &workload, &limits, &plan, &settings).map_err(|error| error.to_string())?;
    Ok((exported.text, *exported.run.unwrap(), profile))
}

/// Asserts that the file of a case is read back as the same run. The refusal if the engine cannot run it.
fn comes_back(engine: Engine, stack: Stack, name: &str, case: &Case) -> Result<(), String> {
    let told = format!("{engine:?} {} {}", case.model, case.parallel);
    let (text, run, profile) = written(engine, stack, case).map_err(|refusal| format!("{told}: {refusal}"))?;
    match engine {
        Engine::Accelerate => engine_rules::accelerate(&text),
        Engine::MaxText => drop(engine_rules::maxtext(&text)),
        Engine::DeepSpeed if run.layout.pipeline == 1 => {
            let config = engine_rules::deepspeed_zero("zero", &text);
            let stage = config.map(|config| config["zero_optimization"]["stage"].clone());
            assert!(stage.is_none_or(|stage| stage == run.settings.zero()), "{told}: {text}");
        }
        _ => {}
    }
    let mut options = ReadOptions { model: published::find(case.model), ..ReadOptions::default() };
    if engine == Engine::Galvatron {
        // A strategy has no fields for these.
        let facts = [
            ("devices", run.layout.devices().to_string()),
            ("precision", case.precision.to_string()),
            ("sequence_parallel", run.settings.sequence_parallel.to_string()),
            ("sequence_length", run.sequence.to_string()),
            ("hardware", case.hardware.to_string()),
        ];
        options.flags = facts.map(|(name, value)| (name.to_string(), value, "--flag".into())).to_vec();
    }
    let job = jobs::read(&text, name, None, &options).unwrap_or_else(|error| panic!("{told}: {error}\n{text}"));
    assert!(job.refused.is_none(), "{told}: {:?}\n{text}", job.refused);
    assert!(job.not_understood.is_empty(), "{told}: {:?}", job.not_understood);
    let mut back = job.resolve(&profile.model).unwrap_or_else(|error| panic!("{told}: {error}\n{text}"));
    if matches!(engine, Engine::Megatron | Engine::MegatronBridge) {
        // Scripts do not state the age of their software.
        back.run.stack = run.stack;
    }
    assert_eq!(back.run.layout, run.layout, "{told}\n{text}");
    assert_eq!((back.run.global_batch, back.run.sequence), (run.global_batch, run.sequence), "{told}");
    assert_eq!(back.run.precision, run.precision, "{told}");
    assert_eq!(back.accelerator.id, case.hardware, "{told}");
    assert_eq!(back.devices, run.layout.devices(), "{told}");
    let settings = |run: &TrainingRun| -> BTreeMap<&str, String> {
        TrainingSettings::NAMES.iter().map(|(name, _)| (*name, run.settings.text(name))).collect()
    };
    let (ours, theirs) = (settings(&run), settings(&back.run));
    let differ: Vec<_> = ours.iter().filter(|(name, value)| theirs[*name] != **value).collect();
    let estimate = |run: &TrainingRun| {
        Estimate::of(&profile.model, run, &profile.accelerator, run.layout.devices(), None)
            .unwrap_or_else(|refusal| panic!("{told}: {refusal}\n{text}"))
    };
    let (first, second) = (estimate(&run), estimate(&back.run));
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert!(
        close(first.iteration_s, second.iteration_s) && close(first.memory_bytes, second.memory_bytes),
        "{told}: {} {} / {} {}, {differ:?} {theirs:?} {} {}\n{text}",
        first.iteration_s,
        second.iteration_s,
        first.memory_bytes,
        second.memory_bytes,
        run.recompute,
        back.run.recompute,
    );
    Ok(())
}

#[test]
fn what_export_writes_for_a_trained_model_is_the_same_run() {
    let engines: [(Engine, Stack, &str, &[Case]); 9] = [
        (Engine::Megatron, Stack::Megatron2025, "a.sh", &CASES),
        (Engine::MegatronBridge, Stack::Megatron2025, "a.py", &CASES),
        (Engine::TorchTitan, Stack::Torchtitan, "a.py", &CASES),
        (Engine::DeepSpeed, Stack::Torchtitan, "a.py", &ZERO),
        (Engine::Accelerate, Stack::Torchtitan, "a.yml", &ZERO),
        (Engine::MaxText, Stack::Megatron2025, "a.yml", &ZERO),
        (Engine::DeepSpeed, Stack::Megatron2025, "a.py", &STAGED),
        (Engine::Torch, Stack::Megatron2025, "a.py", &STAGED),
        (Engine::Galvatron, Stack::Megatron2025, "a.json", &STAGED),
    ];
    for (engine, stack, name, cases) in engines {
        let mut count = 0;
        let mut refusals = vec![];
        for case in cases {
            match comes_back(engine, stack, name, case) {
                Ok(()) => count += 1,
                Err(refusal) => refusals.push(refusal),
            }
        }
        assert!(count >= 10, "{engine:?}: {count} of {}: {refusals:#?}", cases.len());
    }
}

/// Any plan, also one that an engine's programs run otherwise: the file stands for the run that the export names.
#[test]
fn what_export_writes_for_any_plan_is_the_run_that_it_names() {
    let models = ["llama-3.1-8b", "llama-2-13b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt2-xl"];
    let degrees = ["1", "1", "2", "4"];
    let toggles = [
        ("zero", &["0", "1", "2", "3"][..]),
        ("hsdp", &["0", "8"]),
        ("tp_overlap", &["true", "false"]),
        ("dp_overlap", &["true", "false"]),
        ("fused_cross_entropy", &["true", "false"]),
        ("vocab_parallel_loss", &["true", "false"]),
        ("fused_elementwise", &["true", "false"]),
        ("attention", &["flash", "flash2", "unfused"]),
        ("context_style", &["ring", "all-gather", "all-to-all"]),
        ("dispatcher", &["alltoall", "deepep"]),
        ("gradient_bytes", &["2", "4"]),
        ("master_bytes", &["0", "4"]),
        ("moment_bytes", &["2", "4"]),
        ("optimizer_offload", &["true", "false"]),
        ("parameter_offload", &["true", "false"]),
        ("accumulate_whole", &["true", "false"]),
        ("sequence_parallel", &["true", "false"]),
        ("adapter", &["none", "lora:r=16"]),
        ("cuda_graph", &["true", "false"]),
    ];
    let mut dice = Dice(7);
    let mut counts: BTreeMap<Engine, usize> = BTreeMap::new();
    for _ in 0..6000 {
        let (engine, name) = [
            (Engine::Megatron, "a.sh"),
            (Engine::MegatronBridge, "a.py"),
            (Engine::TorchTitan, "a.py"),
            (Engine::DeepSpeed, "a.py"),
            (Engine::Accelerate, "a.yml"),
            (Engine::MaxText, "a.yml"),
            (Engine::Torch, "a.py"),
            (Engine::Galvatron, "a.json"),
        ][dice.roll(8)];
        let stack = [Stack::Megatron2025, Stack::Torchtitan, Stack::Plain][dice.roll(3)];
        let mut degree = || degrees[dice.roll(degrees.len())];
        let (tp, pp, cp, dp) = (degree(), degree(), degree(), degree());
        let model = models[dice.roll(models.len())];
        let experts = model.starts_with("mixtral") || model.starts_with("qwen3-30b");
        let ep = if experts { dp } else { "1" };
        let parallel = format!("tp={tp},pp={pp},cp={cp},ep={ep},dp={dp},mbs={}", 1 + dice.roll(2));
        let mut settings: Vec<(&str, &str)> = vec![];
        for (name, values) in toggles {
            if dice.roll(4) == 0 {
                settings.push((name, values[dice.roll(values.len())]));
            }
        }
        let case = Case {
            model,
            hardware: ["h100", "h200", "b200", "a100-80"][dice.roll(4)],
            parallel: parallel.leak(),
            batch: 64,
            recompute: ["none", "none", "full", "full:4", "selective:mlp,layernorm"][dice.roll(5)],
            precision: ["bf16", "bf16", "bf16", "fp8", "fp16", "fp32"][dice.roll(6)],
            settings: settings.leak(),
        };
        if comes_back(engine, stack, name, &case).is_ok() {
            *counts.entry(engine).or_default() += 1;
        }
    }
    assert!(counts.len() == 8 && counts.values().all(|count| *count > 30), "{counts:?}");
}

/// Flags of a job: Mixtral 8x7B on 32 devices.
const FLAGS: [(&str, &str); 27] = [
    ("num-layers", "32"),
    ("hidden-size", "4096"),
    ("ffn-hidden-size", "14336"),
    ("num-attention-heads", "32"),
    ("group-query-attention", ""),
    ("num-query-groups", "8"),
    ("seq-length", "4096"),
    ("max-position-embeddings", "32768"),
    ("position-embedding-type", "rope"),
    ("normalization", "RMSNorm"),
    ("swiglu", ""),
    ("untie-embeddings-and-output-weights", ""),
    ("disable-bias-linear", ""),
    ("vocab-size", "32000"),
    ("num-experts", "8"),
    ("moe-router-topk", "2"),
    ("moe-token-dispatcher-type", "alltoall"),
    ("tensor-model-parallel-size", "2"),
    ("pipeline-model-parallel-size", "2"),
    ("expert-model-parallel-size", "4"),
    ("expert-tensor-parallel-size", "1"),
    ("sequence-parallel", ""),
    ("micro-batch-size", "1"),
    ("global-batch-size", "256"),
    ("bf16", ""),
    ("use-distributed-optimizer", ""),
    ("recompute-granularity", "full"),
];

/// Facts of a job in a line.
fn facts(job: &jobs::Job) -> String {
    let model = job.model.as_ref().map_or(0, |model| model.value.parameters());
    let facts: Vec<String> = job.facts.iter().map(|(name, fact)| format!("{name}={}", fact.value)).collect();
    format!("{model} {}", facts.join(" "))
}

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The job as another script: flags in another order, in arrays, variables and blocks, quoted in other ways.
fn mutated(dice: &mut Dice, flags: &[(String, String)]) -> String {
    let mut flags = flags.to_vec();
    for last in (1..flags.len()).rev() {
        flags.swap(last, dice.roll(last + 1));
    }
    let names = ["X", "OPTS", "model_args", "_a1", "FLAGS_2"];
    let mut script = String::from("#!/bin/bash\nset -e\n# --num-layers 99 --bf16\nNODES=${NODES:-4}\n");
    let mut command = String::from("torchrun --nproc_per_node=8 --nnodes $NODES pretrain_gpt.py");
    let mut variables = 0;
    for (index, chunk) in flags.chunks(4).enumerate() {
        let name = format!("{}{index}", names[dice.roll(names.len())]);
        let mut words = vec![];
        for (flag, value) in chunk {
            let value = match (value.as_str(), dice.roll(5)) {
                ("", _) => String::new(),
                (value, 0) => format!(" '{value}'"),
                (value, 1) => format!("={value}"),
                (value, 2) => {
                    variables += 1;
                    script.push_str(&format!("v{variables}={value}\n"));
                    format!(" ${{v{variables}}}")
                }
                (value, 3) if value.parse::<u64>().is_ok_and(|number| number % 2 == 0) => {
                    format!(" $(({} * 2))", value.parse::<u64>().unwrap() / 2)
                }
                (value, _) => format!(" {value}"),
            };
            words.push(format!("--{flag}{value}"));
        }
        let text = words.join(if dice.roll(2) == 0 { " " } else { " \\\n  " });
        match dice.roll(5) {
            0 => {
                script.push_str(&format!("{name}=(\n  {}\n)\n", words.join(" # why\n  ")));
                command.push_str(&format!(" \"${{{name}[@]}}\""));
            }
            1 if !text.contains('\'') => {
                script.push_str(&format!("{name}=\" {text}\"\n"));
                command.push_str(&format!(" ${name}"));
            }
            2 => {
                script.push_str(&format!(
                    "if [ \"$NODES\" -gt 2 ]; then\n  {name}=({text})\nelse\n  {name}=(--num-layers 1)\nfi\n"
                ));
                command.push_str(&format!(" ${{{name}[@]}}"));
            }
            _ => command.push_str(&format!(" {text}")),
        }
    }
    script + &command + " 2>&1 | tee log.txt\n"
}

#[test]
fn a_script_that_is_written_differently_is_the_same_job_or_refused() {
    let read = |text: &str| jobs::read(text, "a.sh", None, &ReadOptions::default());
    let own: Vec<(String, String)> = FLAGS.iter().map(|(flag, value)| ((*flag).into(), (*value).into())).collect();
    let plain = mutated(&mut Dice(0), &own);
    let expected = facts(&read(&plain).unwrap_or_else(|error| panic!("{error}\n{plain}")));
    assert!(expected.starts_with("46702792704 ") && expected.contains("devices=32"), "{expected}");
    let mut dice = Dice(7);
    let (mut same, mut refused) = (0, 0);
    for round in 0..150 {
        let mut flags = own.clone();
        let kind = round % 3;
        match kind {
            // An unknown flag that sounds as if it mattered.
            1 => {
                let words =
                    ["moe-extra-layers", "hidden-widening", "attention-shards", "zero-offload-stage", "fp8-experts"];
                flags.push((words[dice.roll(words.len())].into(), "3".into()));
            }
            // A value that only the running script knows.
            2 => {
                let at = dice.roll(flags.len());
                if !flags[at].1.is_empty() {
                    flags[at].1 = ["$(cat size)", "$UNKNOWN", "`size`"][dice.roll(3)].into();
                }
            }
            _ => {}
        }
        let script = mutated(&mut dice, &flags);
        match read(&script) {
            Ok(job) if facts(&job) == expected => {
                assert_ne!(kind, 1, "an unknown flag is read over\n{script}");
                same += 1;
            }
            Ok(job) => panic!("another job in silence: {}\n{expected}\n{script}", facts(&job)),
            Err(error) => {
                assert_ne!(kind, 0, "{error}\n{script}");
                refused += 1;
            }
        }
    }
    assert!(same >= 50 && refused >= 60, "{same} the same, {refused} refused");
}
