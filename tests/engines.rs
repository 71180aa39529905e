//! What is written for engines, read back by the rules of each engine.

mod common;

use std::sync::Arc;

use common::engine_rules;
use plantui::{
    cluster::{Limits, Overrides},
    export::engine::{Cut, CutStage, Engine, ExportError, Exported, Settings, export, torch_schedule},
    plan::{Plan, check::check},
    planner::{self, Options, Planner, Problem, Search, piper::Piper},
    simulate::Schedule,
    workload::{
        Workload, builtin,
        layering::{LayerKind, Layering},
    },
};
use serde_json::Value;

fn limits(workload: &Workload, devices: u32, gib: f64) -> Limits {
    let memory_bytes = Some(gib * 1024f64.powi(3));
    Limits::resolve(workload, &Overrides { devices: Some(devices), memory_bytes, ..Overrides::default() }).unwrap()
}

fn piper(workload: &Workload, limits: &Limits, settings: &[&str]) -> Plan {
    let options = Options::parse("piper", Piper.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::new(workload.clone()), limits: *limits, options };
    planner::run(&Piper, &problem, &Search::default()).0.plan.expect("there is a plan")
}

/// Plans that the engines can and cannot run as they are.
fn cases() -> Vec<(Workload, Limits, Plan)> {
    let workload = builtin();
    let cases: [(u32, f64, &[&str]); 5] = [
        (8, 80.0, &["engine_feasible=true", "recompute=all-or-none"]),
        (64, 8.0, &["engine_feasible=true", "recompute=all-or-none"]),
        (64, 8.0, &["engine_feasible=true"]),
        (64, 8.0, &[]),
        (12, 16.0, &[]),
    ];
    cases
        .into_iter()
        .map(|(devices, gib, settings)| {
            let limits = limits(&workload, devices, gib);
            let plan = piper(&workload, &limits, settings);
            (workload.clone(), limits, plan)
        })
        .collect()
}

fn written(engine: Engine, case: &(Workload, Limits, Plan)) -> (Exported, Cut) {
    let (workload, limits, plan) = case;
    let exported = export(engine, workload, limits, plan, &Settings::default()).unwrap();
    let score = check(workload, limits, &exported.plan);
    assert!(score.is_valid(), "{:?}", score.violations);
    assert_eq!(exported.values, (check(workload, limits, plan).value, score.value));
    assert_eq!(exported.losses.is_empty(), exported.plan == *plan, "{:?}", exported.losses);
    let mut layering = Layering::of(workload, None).unwrap();
    if matches!(engine, Engine::Galvatron | Engine::Vllm) {
        layering = layering.with_merged_ends();
    }
    let cut = Cut::of(workload, limits, &layering, &exported.plan).unwrap();
    (exported, cut)
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
        assert_eq!(read.samples, case.1.microbatches as usize);
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
        let exact = Settings { exact: true, ..Settings::default() };
        let error = export(engine, &case.0, &case.1, &case.2, &exact).unwrap_err();
        assert!(matches!(error, ExportError::Impossible { .. }), "{error}");
    }
}

#[test]
fn deepspeeds_parts_are_executed_by_python() {
    for case in cases() {
        let (exported, cut) = written(Engine::DeepSpeed, &case);
        let read = engine_rules::deepspeed("deepspeeds_parts_are_executed_by_python", &exported.text);
        let Some((parts, interval)) = read else { return };
        let mut start = 0;
        let stages = cut.stages.iter().map(|stage| {
            let own = (start, start + layer_names(stage.layers.iter()));
            start = own.1;
            own
        });
        assert_eq!(parts, stages.collect::<Vec<_>>());
        assert_eq!(interval > 0, cut.stages.iter().any(|stage| stage.recompute.contains(&true)));
    }
}

/// Modules that layers stand for, under the default names.
fn layer_names<'a>(layers: impl Iterator<Item = &'a LayerKind>) -> usize {
    layers.map(|kind| if *kind == LayerKind::Last { 2 } else { 1 }).sum()
}

#[test]
fn torchtitans_parts_hold_every_module_once() {
    for case in cases() {
        let (exported, cut) = written(Engine::TorchTitan, &case);
        let parts = engine_rules::torchtitan(&exported.text);
        let expected: Vec<String> = std::iter::once("tok_embeddings".to_string())
            .chain((0..32).map(|block| format!("layers.{block}")))
            .chain(["norm".to_string(), "output".to_string()])
            .collect();
        assert_eq!(parts.concat(), expected);
        assert_eq!(parts.len(), cut.stages.len());
        let job: toml::Table = exported.text.parse().unwrap();
        let degree = job["parallelism"]["tensor_parallel_degree"].as_integer();
        assert_eq!(degree, Some(i64::from(cut.tensor_parallel())));
        let recomputed = cut.stages.iter().any(|stage| stage.recomputed().0 > 0);
        let mode = job["activation_checkpoint"]["mode"].as_str();
        assert_eq!(mode, Some(if recomputed { "full" } else { "none" }));
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
        let read = engine_rules::torch("pytorch_splits_in_front_of_every_later_stage", &exported.text);
        let Some((splits, recompute)) = read else { return };
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

/// Every operation once, each after what it needs.
#[test]
fn schedules_are_legal() {
    for (stages, microbatches) in [(1, 1), (1, 4), (2, 3), (4, 8), (5, 2), (8, 32)] {
        use Schedule::{EagerOneForwardOneBackward, GPipe, OneForwardOneBackward};
        for schedule in [OneForwardOneBackward, GPipe, EagerOneForwardOneBackward] {
            let text = torch_schedule::csv(stages, microbatches, schedule);
            assert_eq!(engine_rules::torch_schedule(&text), (stages, microbatches as usize));
        }
    }
}

#[test]
fn a_schedule_that_the_file_cannot_hold_is_refused() {
    let workload = plantui::workload::load("inputs/bert32a100.json".as_ref()).unwrap();
    let limits = Limits::resolve(&workload, &Overrides::default()).unwrap();
    let plan = piper(&workload, &limits, &["engine_feasible=true"]);
    for (engine, known) in [(Engine::TorchSchedule, 3), (Engine::TorchTitan, 2)] {
        let written = Schedule::ALL.into_iter().filter(|&schedule| {
            let settings = Settings { schedule, ..Settings::default() };
            match export(engine, &workload, &limits, &plan, &settings) {
                Err(ExportError::Schedule { schedule: refused, .. }) => {
                    assert_eq!(refused, schedule.id());
                    false
                }
                other => other.is_ok(),
            }
        });
        assert_eq!(written.count(), known);
    }
}

#[test]
fn a_workload_without_repeated_layers_has_no_layout() {
    let workload = plantui::workload::load("inputs/tiny-branch.json".as_ref()).unwrap();
    let limits = Limits::resolve(&workload, &Overrides::default()).unwrap();
    let plan = piper(&workload, &limits, &[]);
    let error = export(Engine::Megatron, &workload, &limits, &plan, &Settings::default()).unwrap_err();
    assert!(error.to_string().contains("--layers"), "{error}");
    let torch = export(Engine::Torch, &workload, &limits, &plan, &Settings::default());
    assert!(torch.is_ok(), "{torch:?}");
}
