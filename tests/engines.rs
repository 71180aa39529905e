//! What is written for engines, read back by the rules of each engine.

use std::{collections::BTreeMap, process::Command, sync::Arc};

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

/// The value after a flag.
fn flag(text: &str, name: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).map(|word| word.trim_matches('"').to_string())
}

/// A Megatron layout, letter by letter: repetitions of a letter written out, stages parted.
fn expanded(layout: &str) -> Vec<String> {
    let stage = |text: &str| {
        let mut letters = String::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[1..];
            let mut times = 1;
            if let Some(count) = rest.strip_prefix('*') {
                let end = count.find(|c: char| !c.is_ascii_digit()).unwrap_or(count.len());
                times = count[..end].parse().expect("a number follows *");
                rest = &count[end..];
            }
            letters.extend(std::iter::repeat_n(letter, times));
        }
        letters
    };
    layout.split('|').map(stage).collect()
}

#[test]
fn megatrons_layout_expands_to_the_stages() {
    for case in cases() {
        let (exported, cut) = written(Engine::Megatron, &case);
        let text = &exported.text;
        let stages = match flag(text, "--pipeline-model-parallel-layout") {
            Some(layout) => expanded(&layout),
            None => vec!["E".to_string() + &"t".repeat(32) + "L"],
        };
        assert_eq!(flag(text, "--pipeline-model-parallel-size"), Some(stages.len().to_string()));
        assert_eq!(flag(text, "--num-layers"), Some("32".into()));
        let all: String = stages.concat();
        assert_eq!((all.matches('E').count(), all.matches('L').count(), all.matches('t').count()), (1, 1, 32));
        assert!(stages[0].starts_with('E') && stages[stages.len() - 1].ends_with('L'));
        for (letters, stage) in stages.iter().zip(&cut.stages) {
            assert_eq!(letters.matches('t').count(), stage.blocks());
            assert!(!letters.is_empty());
        }
        let (d, t) = (cut.data_parallel(), cut.tensor_parallel());
        assert!(cut.stages.iter().all(|stage| (stage.data_parallel, stage.tensor_parallel) == (d, t)));
        assert_eq!(flag(text, "--tensor-model-parallel-size"), Some(t.to_string()));
        let recomputed = cut.stages.iter().map(|stage| stage.recomputed().0).max().unwrap();
        match flag(text, "--recompute-method").as_deref() {
            None => assert_eq!(recomputed, 0),
            Some("uniform") => assert!(cut.stages.iter().all(|stage| stage.recomputed().0 == stage.blocks())),
            Some("block") => {
                let count: usize = flag(text, "--recompute-num-layers").unwrap().parse().unwrap();
                assert!(cut.stages.iter().all(|stage| stage.recomputed().0 == count.min(stage.blocks())));
            }
            other => panic!("{other:?}"),
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
    let Ok(version) = Command::new("python3").arg("--version").output() else {
        println!("skipped deepspeeds_parts_are_executed_by_python: there is no python3");
        return;
    };
    assert!(version.status.success());
    for case in cases() {
        let (exported, cut) = written(Engine::DeepSpeed, &case);
        let stand_in = "
import sys, types
class PipelineModule:
    def __init__(self, layers, num_stages, activation_checkpoint_interval):
        self.layers, self.num_stages, self.interval = layers, num_stages, activation_checkpoint_interval
        self._topo, self.global_rank = self, 0
    def get_coord(self, rank): return types.SimpleNamespace(pipe=rank)
    def _set_bounds(self, start=None, stop=None): self.bounds = (start, stop)
package, pipe = types.ModuleType('deepspeed'), types.ModuleType('deepspeed.pipe')
pipe.PipelineModule = PipelineModule
sys.modules['deepspeed'], sys.modules['deepspeed.pipe'] = package, pipe
";
        let layers: usize = cut.stages.iter().map(|stage| layer_names(stage.layers.iter())).sum();
        let ask = format!(
            "
module = build(list(range({layers})))
for rank in range(module.num_stages):
    module.global_rank = rank
    module._partition_layers()
    print(*module.bounds)
print(module.interval)
"
        );
        let script = format!("{stand_in}{}{ask}", exported.text);
        let output = Command::new("python3").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stderr), exported.text);
        let printed = String::from_utf8(output.stdout).unwrap();
        let mut expected = String::new();
        let mut start = 0;
        for stage in &cut.stages {
            let stop = start + layer_names(stage.layers.iter());
            expected += &format!("{start} {stop}\n");
            start = stop;
        }
        let recomputes = cut.stages.iter().any(|stage| stage.recompute.contains(&true));
        assert_eq!(printed, format!("{expected}{}\n", u8::from(recomputes)));
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
        let job: toml::Table = exported.text.parse().unwrap();
        let section = &job["parallelism"];
        assert_eq!(section["pipeline_parallel_degree"].as_integer(), Some(cut.stages.len() as i64));
        assert_eq!(section["tensor_parallel_degree"].as_integer(), Some(i64::from(cut.tensor_parallel())));
        let parts = section["module_fqns_per_model_part"].as_array().unwrap();
        let names = |part: &toml::Value| -> Vec<String> {
            part.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string()).collect()
        };
        let expected: Vec<String> = std::iter::once("tok_embeddings".to_string())
            .chain((0..32).map(|block| format!("layers.{block}")))
            .chain(["norm".to_string(), "output".to_string()])
            .collect();
        assert_eq!(parts.iter().flat_map(names).collect::<Vec<_>>(), expected);
        assert_eq!(parts.len(), cut.stages.len());
        let mode = job["activation_checkpoint"]["mode"].as_str();
        let recomputed = cut.stages.iter().any(|stage| stage.recomputed().0 > 0);
        assert_eq!(mode, Some(if recomputed { "full" } else { "none" }));
    }
}

#[test]
fn galvatron_and_vllm_count_the_blocks_of_every_stage() {
    for case in cases() {
        let (exported, cut) = written(Engine::Galvatron, &case);
        let strategy: BTreeMap<String, Value> = serde_json::from_str(&exported.text).unwrap();
        let list = |field: &str| -> Vec<usize> {
            strategy[field].as_str().unwrap().split(',').map(|part| part.parse().unwrap()).collect()
        };
        assert_eq!(strategy["pp_deg"], cut.stages.len());
        assert_eq!(list("pp_division"), cut.stages.iter().map(CutStage::blocks).collect::<Vec<_>>());
        assert_eq!(list("tp_sizes_enc").len(), 32);
        let recomputed: usize = cut.stages.iter().map(|stage| stage.recomputed().0).sum();
        assert_eq!(list("checkpoint").iter().sum::<usize>(), recomputed);
        assert!(cut.stages.iter().all(|stage| stage.devices() == cut.stages[0].devices()));

        let (exported, cut) = written(Engine::Vllm, &case);
        let line = exported.text.lines().find(|line| !line.starts_with('#')).unwrap();
        let partition = line.split(' ').next().unwrap().strip_prefix("VLLM_PP_LAYER_PARTITION=").unwrap();
        let counts: Vec<usize> = partition.split(',').map(|count| count.parse().unwrap()).collect();
        assert_eq!(counts, cut.stages.iter().map(CutStage::blocks).collect::<Vec<_>>());
        assert!(counts.iter().all(|&count| count > 0) && counts.iter().sum::<usize>() == 32);
        assert_eq!(flag(line, "--tensor-parallel-size"), Some(cut.tensor_parallel().to_string()));
    }
}

#[test]
fn pytorch_splits_in_front_of_every_later_stage() {
    for case in cases() {
        let (exported, cut) = written(Engine::Torch, &case);
        let splits = exported.text.matches("SplitPoint.BEGINNING").count();
        assert_eq!(splits, cut.stages.len() - 1);
        let mut next = 0;
        for stage in &cut.stages {
            if next > 0 && stage.blocks() > 0 {
                assert!(
                    exported.text.contains(&format!("\"layers.{next}\": SplitPoint.BEGINNING")),
                    "{}",
                    exported.text
                );
            }
            next += stage.blocks();
        }
        let recompute = exported.text.split("recompute = [").nth(1).unwrap();
        let recomputed: usize = cut.stages.iter().map(|stage| stage.recompute.iter().filter(|r| **r).count()).sum();
        assert!(recompute.matches("layers.").count() <= recomputed);
    }
}

/// Every operation once, each after what it needs, as many warm-up forwards as the schedule has.
#[test]
fn schedules_are_legal() {
    for (stages, microbatches) in [(1, 1), (1, 4), (2, 3), (4, 8), (5, 2), (8, 32)] {
        use Schedule::{EagerOneForwardOneBackward, GPipe, OneForwardOneBackward};
        for schedule in [OneForwardOneBackward, GPipe, EagerOneForwardOneBackward] {
            let text = torch_schedule::csv(stages, microbatches, schedule);
            let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
            assert_eq!(rows.len(), stages);
            assert!(rows.iter().all(|row| row.len() == rows[0].len()), "rows are padded with empty cells");
            let mut at: BTreeMap<(usize, char, u32), usize> = BTreeMap::new();
            for (rank, row) in rows.iter().enumerate() {
                for (step, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                    let place = cell.find(['F', 'B']).expect("F or B");
                    assert_eq!(cell[..place].parse::<usize>().unwrap(), rank);
                    let key = (rank, cell.as_bytes()[place] as char, cell[place + 1..].parse().unwrap());
                    assert_eq!(at.insert(key, step), None, "{cell} twice");
                }
            }
            assert_eq!(at.len(), stages * microbatches as usize * 2);
            for (&(stage, operation, m), &step) in &at {
                let needs = match operation {
                    'F' if stage > 0 => (stage - 1, 'F', m),
                    'F' => continue,
                    _ if stage + 1 < stages => (stage + 1, 'B', m),
                    _ => (stage, 'F', m),
                };
                assert!(at[&needs] < step, "{stage}{operation}{m} before {needs:?}");
            }
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
