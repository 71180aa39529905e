//! What is written for engines, read back by the rules of each engine.

use std::sync::Arc;

use crate::common::engine_rules;
use plantui::{
    cluster::{GivenLimits, LimitKind, Limits},
    export::engine::{CutStage, Engine, EngineExport, EngineSettings, ExportError, LayerCut, export},
    family::{self, check},
    plan::Plan,
    planner::{Options, Planner, Problem, Search, joint::Joint, piper::Piper},
    run,
    simulate::Schedule,
    workload::{
        Workload, builtin,
        layering::{LayerPosition, Layering},
    },
};
use serde_json::Value;

/// Settings with which an engine takes the nearest plan that it can run.
fn nearest() -> EngineSettings {
    EngineSettings { nearest: Some(plantui::study::nearest::plans), ..EngineSettings::default() }
}

fn limits(workload: &Workload, devices: u32, gib: f64) -> Limits {
    let memory_bytes = Some(gib * 1024f64.powi(3));
    family::resolve(
        workload,
        &GivenLimits::default().with(LimitKind::Devices, devices).maybe(LimitKind::Memory, memory_bytes),
    )
    .unwrap()
}

fn planned(planner: &dyn Planner, workload: &Workload, limits: &Limits, settings: &[&str]) -> Plan {
    let options = Options::parse(planner.info().id, planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::new(workload.clone()), limits: limits.clone(), options };
    run::plan(planner, &problem, &Search::default()).unwrap().0.plan.expect("there is a plan")
}

fn piper(workload: &Workload, limits: &Limits, settings: &[&str]) -> Plan {
    planned(&Piper, workload, limits, settings)
}

/// Plan that an engine runs unchanged.
fn for_engine(workload: &Workload, limits: &Limits, settings: &[&str]) -> Plan {
    planned(&Joint, workload, limits, settings)
}

/// Plans that the engines can and cannot run as they are.
fn cases() -> Vec<(Workload, Limits, Plan)> {
    let workload = builtin();
    let cases: [(u32, f64, &[&str]); 5] = [
        (8, 80.0, &["space=engine", "recompute=all-or-none"]),
        (64, 8.0, &["space=engine", "recompute=all-or-none"]),
        (64, 8.0, &["space=engine"]),
        (64, 8.0, &[]),
        (12, 16.0, &[]),
    ];
    cases
        .into_iter()
        .map(|(devices, gib, settings)| {
            let limits = limits(&workload, devices, gib);
            let plan = if settings.is_empty() { piper } else { for_engine }(&workload, &limits, settings);
            (workload.clone(), limits, plan)
        })
        .collect()
}

fn written(engine: Engine, case: &(Workload, Limits, Plan)) -> (EngineExport, LayerCut) {
    let (workload, limits, plan) = case;
    let exported = export(engine, workload, limits, plan, &nearest()).unwrap();
    let score = check(workload, limits, &exported.plan);
    assert!(score.is_valid(), "{:?}", score.violations);
    assert_eq!(exported.values, (check(workload, limits, plan).value, score.value));
    assert_eq!(exported.losses.is_empty(), exported.plan == *plan, "{:?}", exported.losses);
    let mut layering = Layering::of(workload, None).unwrap();
    if matches!(engine, Engine::Galvatron | Engine::Vllm) {
        layering = layering.with_merged_ends();
    }
    let cut = LayerCut::of(workload, limits, &layering, &exported.plan).unwrap();
    (exported, cut)
}

/// Whatever settings a plan has: each flag that can be written is one of those that the engine knows by our table of it.
#[test]
fn every_flag_in_the_writers_for_megatron_is_one_of_its() {
    let writers = [
        include_str!("../../crates/export/src/engine/megatron.rs"),
        include_str!("../../crates/export/src/engine/training/megatron.rs"),
    ];
    assert!(writers.map(engine_rules::megatron_flags).iter().all(|&flags| flags > 20));
}

#[test]
fn a_flag_that_megatron_does_not_have_is_found_in_a_writer() {
    assert_eq!(engine_rules::megatron_flags("// --no-flag\nf(\"--bf16\"); f(\"--bf16 --fp16\");\n"), 2);
    for wrong in ["f(\"--fp32\");", "f(\"--bf16_only\");", "format!(\"--{}\", word);"] {
        assert!(std::panic::catch_unwind(|| engine_rules::megatron_flags(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn every_field_in_the_other_writers_is_one_of_the_engine() {
    let titan = [
        include_str!("../../crates/export/src/engine/torchtitan.rs"),
        include_str!("../../crates/export/src/engine/torchtitan_model.rs"),
        include_str!("../../crates/export/src/engine/training/torchtitan.rs"),
    ];
    let bridge = [
        include_str!("../../crates/export/src/engine/megatron_bridge.rs"),
        include_str!("../../crates/export/src/engine/training/megatron_bridge.rs"),
    ];
    let count = |engine: &str, sources: &[&str], roots: &[&str]| -> usize {
        sources.iter().map(|source| engine_rules::fields(engine, source, roots)).sum()
    };
    assert!(count("torchtitan", &titan, &["config.", "parallelism."]) > 15);
    assert!(count("Megatron-Bridge", &bridge, &["config.", "model."]) > 15);
    assert!(engine_rules::megatron_flags(include_str!("../../crates/export/src/engine/megatron_model.rs")) > 20);
    let wrong = "f(\"parallelism.enable_async_tensor_parallel = True\");";
    assert!(std::panic::catch_unwind(|| engine_rules::fields("torchtitan", wrong, &["parallelism."])).is_err());
}

#[test]
fn megatrons_layout_expands_to_the_stages() {
    for case in cases() {
        let (exported, cut) = written(Engine::Megatron, &case);
        let read = engine_rules::megatron(&exported.text);
        assert_eq!(read.stages.len(), cut.stages.len());
        for (letters, stage) in read.stages.iter().zip(&cut.stages) {
            assert_eq!(letters.matches('t').count(), stage.blocks());
        }
        let (d, t) = (cut.data_parallel(), cut.tensor_parallel());
        assert!(cut.stages.iter().all(|stage| (stage.data_parallel, stage.tensor_parallel) == (d, t)));
        assert_eq!(read.tensor_parallel, t as usize);
        // The built-in network has two sequences in a microbatch.
        assert_eq!(read.samples, Some((2 * case.1.microbatches as usize, 2)));
        let recomputed = cut.stages.iter().map(|stage| stage.recomputed().0).max().unwrap();
        match read.recompute {
            None => assert_eq!(recomputed, 0),
            Some((method, count)) if method == "block" => {
                assert!(cut.stages.iter().all(|stage| stage.recomputed().0 == count.min(stage.blocks())));
            }
            Some((_, every)) => {
                assert_eq!(every, 1);
                assert!(cut.stages.iter().all(|stage| stage.recomputed().0 == stage.blocks()));
            }
        }
    }
}

#[test]
fn what_is_lost_is_said_and_scored() {
    let case = &cases()[3];
    assert!(case.2.stages.iter().any(|stage| stage.data_parallel != case.2.stages[0].data_parallel));
    for engine in [Engine::Megatron, Engine::DeepSpeed, Engine::TorchTitan] {
        let (exported, _) = written(engine, case);
        assert!(exported.losses.iter().any(|loss| loss.contains("the same degrees")), "{:?}", exported.losses);
        assert!(exported.values.1 > exported.values.0, "the best plan of all cannot be beaten");
        assert!(exported.text.contains("above the plan's"), "{}", exported.text);
        let exact = EngineSettings::default();
        let error = export(engine, &case.0, &case.1, &case.2, &exact).unwrap_err();
        assert!(matches!(error, ExportError::Impossible { .. }), "{error}");
    }
}

/// Engines warm up by the stages behind; a plan whose uneven replicas count on more is told so, whether it is written or not.
#[test]
fn a_warm_up_that_engines_do_not_have_is_told() {
    let (workload, limits, _) = &cases()[3];
    let told = |settings: &[&str], engine| {
        let case = (workload.clone(), limits.clone(), piper(workload, limits, settings));
        let exported = written(engine, &case).0;
        let mut all = exported.losses.iter().chain(&exported.notes);
        (case.2, all.any(|told| told.contains("cumulative warm-up")))
    };
    for engine in [Engine::Megatron, Engine::Galvatron] {
        let (plan, tells) = told(&["warmup=cumulative"], engine);
        assert!(plan.stages.windows(2).any(|pair| pair[0].data_parallel != pair[1].data_parallel));
        assert!(tells, "{engine:?}");
        assert!(!told(&["warmup=published"], engine).1 && !told(&["warmup=cumulative", "stages=1"], engine).1);
    }
}

#[test]
fn deepspeeds_parts_are_executed_by_python() {
    for case in cases() {
        let (exported, cut) = written(Engine::DeepSpeed, &case);
        let read = engine_rules::deepspeed("deepspeeds_parts_are_executed_by_python", &exported.text);
        let Some(engine_rules::DeepSpeed { parts, recomputed, config }) = read else { return };
        let mut start = 0;
        let stages = cut.stages.iter().map(|stage| {
            let own = (start, start + layer_names(stage.layers.iter()));
            start = own.1;
            own
        });
        assert_eq!(parts, stages.collect::<Vec<_>>());
        assert_eq!(recomputed.len(), cut.stages.iter().map(|stage| stage.recomputed().0).sum::<usize>());
        assert!(!recomputed.contains(&0), "the embedding would lose its gradients");
        assert_eq!(config["train_micro_batch_size_per_gpu"], 2);
        assert_eq!(config["gradient_accumulation_steps"], case.1.microbatches / cut.data_parallel());
    }
}

/// Modules that layers stand for, under the default names.
fn layer_names<'a>(layers: impl Iterator<Item = &'a LayerPosition>) -> usize {
    layers.map(|kind| if *kind == LayerPosition::Last { 2 } else { 1 }).sum()
}

#[test]
fn torchtitans_parts_hold_every_module_once() {
    for case in cases() {
        let (exported, cut) = written(Engine::TorchTitan, &case);
        let engine_rules::TorchTitan { parts, fields, .. } = engine_rules::torchtitan(&exported.text);
        let expected: Vec<String> = std::iter::once("tok_embeddings".to_string())
            .chain((0..32).map(|block| format!("layers.{block}")))
            .chain(["norm".to_string(), "lm_head".to_string()])
            .collect();
        assert_eq!(parts.concat(), expected);
        assert_eq!(parts.len(), cut.stages.len());
        assert_eq!(fields["parallelism.tensor_parallel_degree"], cut.tensor_parallel().to_string());
        let own = case.1.microbatches / cut.data_parallel();
        assert_eq!(fields["config.training.global_batch_size"], (2 * own * cut.data_parallel()).to_string());
        let local = if cut.stages.len() > 1 { 2 * own } else { 2 };
        assert_eq!(fields["config.training.local_batch_size"], local.to_string());
        assert_eq!(fields["config.training.seq_len"], "2048");
        let recomputed = cut.stages.iter().any(|stage| stage.recomputed().0 > 0);
        assert_eq!(fields["config.activation_checkpoint"] == "FullAC.Config()", recomputed);
    }
}

#[test]
fn galvatron_and_vllm_count_the_blocks_of_every_stage() {
    for case in cases() {
        let (exported, cut) = written(Engine::Galvatron, &case);
        let division = engine_rules::galvatron(&exported.text);
        assert_eq!(division, cut.stages.iter().map(CutStage::blocks).collect::<Vec<_>>());
        assert_eq!(division.iter().sum::<usize>(), 32);
        let strategy: Value = serde_json::from_str(&exported.text).unwrap();
        let recomputed: usize = cut.stages.iter().map(|stage| stage.recomputed().0).sum();
        assert_eq!(strategy["checkpoint"].as_str().unwrap().matches('1').count(), recomputed);
        assert!(cut.stages.iter().all(|stage| stage.devices() == cut.stages[0].devices()));

        let (exported, cut) = written(Engine::Vllm, &case);
        let (counts, tensor_parallel) = engine_rules::vllm(&exported.text);
        assert_eq!(counts, cut.stages.iter().map(CutStage::blocks).collect::<Vec<_>>());
        assert_eq!(counts.iter().sum::<usize>(), 32);
        assert_eq!(tensor_parallel, cut.tensor_parallel() as usize);
    }
}

#[test]
fn pytorch_splits_in_front_of_every_later_stage() {
    for case in cases() {
        let (exported, cut) = written(Engine::Torch, &case);
        let read = engine_rules::torch(
            "pytorch_splits_in_front_of_every_later_stage",
            &exported.text,
            &engine_rules::llama(32),
        );
        let Some(engine_rules::Torch { splits, recompute, schedule, stages }) = read else { return };
        assert_eq!((schedule.as_str(), stages.len()), ("Schedule1F1B", cut.stages.len()));
        assert_eq!(splits.len(), cut.stages.len() - 1);
        let mut next = 0;
        for (i, stage) in cut.stages.iter().enumerate() {
            if next > 0 && stage.blocks() > 0 {
                assert_eq!(splits[i - 1], format!("layers.{next}"));
            }
            next += stage.blocks();
        }
        let blocks: usize = cut.stages.iter().map(|stage| stage.recomputed().0).sum();
        assert_eq!(recompute.iter().filter(|name| name.starts_with("layers.")).count(), blocks);
    }
}

#[test]
fn a_schedule_that_the_engine_cannot_run_is_refused_with_the_reason() {
    let workload = builtin();
    let limits = limits(&workload, 8, 80.0);
    let plan = for_engine(&workload, &limits, &["space=engine", "stages=4", "data_parallel=false"]);
    let known = [
        (Engine::Megatron, "1f1b interleaved"),
        (Engine::DeepSpeed, "1f1b"),
        (Engine::Torch, "1f1b gpipe interleaved zb-v interleaved-zb looped-bfs dualpipe-v"),
        (Engine::TorchTitan, "1f1b gpipe interleaved zb-v interleaved-zb looped-bfs dualpipe-v"),
        (Engine::Galvatron, "1f1b gpipe"),
        (Engine::Vllm, "inference"),
    ];
    for (engine, known) in known {
        let written = Schedule::ALL.into_iter().filter(|&schedule| {
            let settings = EngineSettings { schedule: Some(schedule), ..nearest() };
            match export(engine, &workload, &limits, &plan, &settings) {
                Err(ExportError::Schedule { schedule: refused, reason, .. }) => {
                    assert!(refused == schedule.id() && reason.contains("only"), "{engine:?}: {reason}");
                    false
                }
                other => other.is_ok(),
            }
        });
        assert_eq!(written.map(Schedule::id).collect::<Vec<_>>().join(" "), known, "{engine:?}");
    }
}

#[test]
fn interleaved_plans_have_several_parts_on_every_rank() {
    let workload = builtin();
    let limits = limits(&workload, 8, 80.0);
    let plan = for_engine(&workload, &limits, &["engine=megatron", "stages=4", "data_parallel=false"]);
    let blocks: Vec<usize> = {
        let layering = Layering::of(&workload, None).unwrap();
        LayerCut::of(&workload, &limits, &layering, &plan).unwrap().stages.iter().map(CutStage::blocks).collect()
    };
    let settings = |schedule, virtual_stages| EngineSettings {
        schedule: Some(schedule),
        virtual_stages: Some(virtual_stages),
        ..nearest()
    };
    for each in [2, 3] {
        let settings = settings(Schedule::Interleaved, each);
        let read =
            engine_rules::megatron(&export(Engine::Megatron, &workload, &limits, &plan, &settings).unwrap().text);
        let each = each as usize;
        assert_eq!(read.stages.len(), 4 * each);
        let count = |part: usize| read.stages[part].matches('t').count();
        for (rank, blocks) in blocks.iter().enumerate() {
            assert_eq!((0..each).map(|v| count(v * 4 + rank)).sum::<usize>(), *blocks, "as many as in the plan");
        }
        let titan = export(Engine::TorchTitan, &workload, &limits, &plan, &settings).unwrap().text;
        let titan = engine_rules::torchtitan(&titan);
        assert_eq!((titan.parts.len(), titan.parts.concat()), (4 * each, engine_rules::llama(32)));
        let torch = export(Engine::Torch, &workload, &limits, &plan, &settings).unwrap().text;
        let Some(torch) = engine_rules::torch("interleaved", &torch, &engine_rules::llama(32)) else { return };
        assert_eq!((torch.schedule.as_str(), torch.splits.len()), ("ScheduleInterleaved1F1B", 4 * each - 1));
        assert_eq!(torch.stages[1], (0..each).map(|v| v * 4 + 1).collect::<Vec<_>>());
    }
    for (schedule, class, first_rank) in [
        (Schedule::ZeroBubbleV, "ScheduleZBVZeroBubble", [0, 7]),
        (Schedule::DualPipeV, "ScheduleDualPipeV", [0, 7]),
        (Schedule::LoopedBfs, "ScheduleLoopedBFS", [0, 4]),
        (Schedule::InterleavedZeroBubble, "ScheduleInterleavedZeroBubble", [0, 4]),
    ] {
        let settings = settings(schedule, if schedule.is_v() { 5 } else { 2 });
        let torch = export(Engine::Torch, &workload, &limits, &plan, &settings).unwrap().text;
        let torch = engine_rules::torch("interleaved", &torch, &engine_rules::llama(32)).unwrap();
        assert_eq!((torch.schedule.as_str(), torch.stages[0].as_slice()), (class, &first_rank[..]));
    }
    // A stage with fewer layers than virtual stages, and a batch that the ranks do not divide.
    let many = EngineSettings { schedule: Some(Schedule::Interleaved), virtual_stages: Some(33), ..nearest() };
    let error = export(Engine::Megatron, &workload, &limits, &plan, &many).unwrap_err().to_string();
    assert!(error.contains("too few for 33 virtual stages"), "{error}");
    let odd = Limits { microbatches: 1921, ..limits.clone() };
    let error = export(Engine::Megatron, &workload, &odd, &plan, &EngineSettings { virtual_stages: Some(2), ..many })
        .unwrap_err();
    assert!(error.to_string().contains("4 stages do not divide 1921 microbatches"), "{error}");
}

pub(crate) fn generated(words: &str) -> Workload {
    use clap::Parser;
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: plantui::cli::generate::GenerateArgs,
    }
    let line = Line::try_parse_from(words.split_whitespace()).unwrap();
    let text = plantui::cli::generate::run(&line.args).unwrap();
    plantui::workload::load_bytes(text.as_bytes(), "generated.json", "generated").unwrap()
}

#[test]
fn batch_model_and_assumptions_reach_every_engine() {
    let workload = generated(
        "generate llama-3-8b --hardware h100 --micro-batch 4 --sequence-length 4096 --sequence-parallel \
         --state-bytes distributed:4 --devices 16 --microbatches 96 --tensor-degrees 1,2",
    );
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let plan = for_engine(&workload, &limits, &["space=engine", "stages=2"]);
    let text = |engine| export(engine, &workload, &limits, &plan, &nearest()).unwrap();
    let megatron = text(Engine::Megatron).text;
    let read = engine_rules::megatron(&megatron);
    assert_eq!(read.samples, Some((384, 4)), "{megatron}");
    for expected in [
        "--use-distributed-optimizer",
        "--hidden-size 4096",
        "--num-attention-heads 32",
        "--group-query-attention --num-query-groups 8",
        "--ffn-hidden-size 14336",
        "--swiglu",
        "--untie-embeddings-and-output-weights",
        "--seq-length 4096",
        "--max-position-embeddings 8192",
        "--normalization RMSNorm",
        "--disable-bias-linear",
        "--bf16",
    ] {
        assert!(megatron.contains(expected), "{expected}: {megatron}");
    }
    assert_eq!(read.flags.iter().any(|flag| flag == "--sequence-parallel"), read.tensor_parallel > 1);
    let titan = engine_rules::torchtitan(&text(Engine::TorchTitan).text).fields;
    assert_eq!(titan["parallelism.data_parallel_replicate_degree"], "1");
    assert_eq!(titan["config.training.seq_len"], "4096");
    let galvatron: Value = serde_json::from_str(&text(Engine::Galvatron).text).unwrap();
    assert_eq!((&galvatron["default_dp_type"], &galvatron["global_bsz"]), (&"zero2".into(), &384.into()));
    let notes = text(Engine::Galvatron).notes;
    engine_rules::galvatron_notes(&notes);
    assert!(notes.iter().any(|note| note.contains("--seq_length 4096 --set_seqlen_manually 1")), "{notes:?}");
    let deepspeed = engine_rules::deepspeed("batch", &text(Engine::DeepSpeed).text);
    if let Some(engine_rules::DeepSpeed { config, .. }) = deepspeed {
        assert_eq!((&config["zero_optimization"]["stage"], &config["bf16"]["enabled"]), (&1.into(), &true.into()));
    }
    assert!(text(Engine::Vllm).notes[0].contains("is for training") || text(Engine::Vllm).notes.len() > 1);
    // The document of the plan carries the recipe on: the workload may have lost it.
    let lost = Workload { recipe: None, ..workload.clone() };
    let settings = EngineSettings { recipe: workload.recipe, ..nearest() };
    assert_eq!(export(Engine::Megatron, &lost, &limits, &plan, &settings).unwrap().text, megatron);
}

#[test]
fn what_nobody_states_is_asked_for_and_not_made_up() {
    let workload = Workload { recipe: None, ..builtin() };
    let limits = limits(&workload, 8, 80.0);
    let plan = for_engine(&workload, &limits, &["space=engine"]);
    let settings = nearest();
    let text = |engine| export(engine, &workload, &limits, &plan, &settings).unwrap().text;
    let megatron = engine_rules::megatron(&text(Engine::Megatron));
    assert_eq!(megatron.samples, None);
    engine_rules::torchtitan(&text(Engine::TorchTitan));
    let galvatron: Value = serde_json::from_str(&text(Engine::Galvatron)).unwrap();
    assert!(galvatron.get("global_bsz").is_none() && galvatron["default_dp_type"] == "ddp", "{galvatron}");
    assert!(text(Engine::DeepSpeed).contains("# fill in: \"train_micro_batch_size_per_gpu\""));
    assert!(text(Engine::Torch).contains("# fill in: micro_batch_size"));
    let given = EngineSettings { micro_batch_size: Some(8), ..nearest() };
    let told = export(Engine::Megatron, &workload, &limits, &plan, &given).unwrap().text;
    assert_eq!(engine_rules::megatron(&told).samples, Some((8 * 1920, 8)));
}

#[test]
fn full_devices_are_told_before_anybody_starts_them() {
    let workload = builtin();
    let roomy = limits(&workload, 8, 80.0);
    let plan = for_engine(&workload, &roomy, &["space=engine"]);
    let peak = check(&workload, &roomy, &plan).peak_memory_bytes();
    for (share, told) in [(0.96, true), (0.94, false)] {
        let limits = Limits { memory_bytes: Some(peak / share), ..roomy.clone() };
        let exported = export(Engine::Megatron, &workload, &limits, &plan, &nearest()).unwrap();
        assert_eq!(exported.text.contains("need room too"), told, "{}", exported.text);
        assert_eq!(exported.notes.iter().any(|note| note.contains("need room too")), told);
    }
}

#[test]
fn names_cannot_leave_their_place_in_a_script() {
    let workload = builtin();
    let limits = limits(&workload, 8, 80.0);
    // Every engine takes its own schedule.
    let plan = Plan { execution: None, ..for_engine(&workload, &limits, &["space=engine", "stages=2"]) };
    let hostile = "x\"]\nimport os\u{1b}]0;owned\u{7}\u{202e}";
    let names = plantui::export::engine::ModuleNames {
        block: format!("{hostile}.{{}}"),
        first: vec![hostile.into()],
        last: vec![format!("{hostile}2")],
    };
    let settings = EngineSettings { names, ..nearest() };
    // accelerate has no pipelines.
    for engine in Engine::ALL.into_iter().filter(|engine| *engine != Engine::Accelerate) {
        let exported = export(engine, &workload, &limits, &plan, &settings).unwrap();
        let raw = |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
        assert!(!raw(&exported.text) && !exported.notes.iter().any(|note| raw(note)), "{engine:?}");
        assert!(!exported.text.lines().any(|line| line.starts_with("import os")), "{engine:?}: {}", exported.text);
    }
}

#[test]
fn a_workload_without_repeated_layers_has_no_layout() {
    let workload = plantui::workload::load("inputs/tiny-branch.json".as_ref()).unwrap();
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let plan = piper(&workload, &limits, &[]);
    let error = export(Engine::Megatron, &workload, &limits, &plan, &nearest()).unwrap_err();
    assert!(error.to_string().contains("--layers"), "{error}");
    let torch = export(Engine::Torch, &workload, &limits, &plan, &nearest());
    assert!(torch.is_ok(), "{torch:?}");
}
