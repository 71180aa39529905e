//! The model behind a plan reaches every engine: its experts, its shape, the batch, and what is asked of whom.

use std::sync::Arc;

use super::engines::generated;
use crate::common::engine_rules;
use plantui::{
    cluster::{GivenLimits, LimitKind, Limits},
    export::engine::{Engine, EngineExport, EngineSettings, export},
    family,
    plan::Plan,
    planner::{Options, Planner, Problem, Search, joint::Joint},
    run,
    simulate::Schedule,
    workload::{Workload, load},
};

/// Settings with which an engine takes the nearest plan that it can run.
fn nearest() -> EngineSettings {
    EngineSettings { nearest: Some(plantui::study::nearest::plans), ..EngineSettings::default() }
}

fn planned(workload: &Workload, limits: &Limits, settings: &[&str]) -> Plan {
    let options = Options::parse("joint", Joint.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::new(workload.clone()), limits: limits.clone(), options };
    run::plan(&Joint, &problem, &Search::default()).unwrap().0.plan.expect("there is a plan")
}

struct Case {
    workload: Workload,
    limits: Limits,
    plan: Plan,
}

impl Case {
    fn new(words: &str, settings: &[&str]) -> Self {
        let workload = generated(words);
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let plan = planned(&workload, &limits, settings);
        Case { workload, limits, plan }
    }

    fn to(&self, engine: Engine) -> EngineExport {
        export(engine, &self.workload, &self.limits, &self.plan, &nearest()).unwrap()
    }
}

fn mixture() -> Case {
    Case::new(
        "generate mixtral-8x7b --micro-batch 2 --sequence-length 4096 --devices 64 --microbatches 128 --memory 600GiB",
        &["space=engine", "stages=2"],
    )
}

#[test]
fn a_mixture_of_experts_is_told_to_every_engine() {
    let case = mixture();
    let megatron = case.to(Engine::Megatron).text;
    engine_rules::megatron(&megatron);
    for flag in [
        "--num-experts 8",
        "--moe-router-topk 2",
        "--moe-ffn-hidden-size 14336",
        "--ffn-hidden-size 14336",
        "--group-query-attention --num-query-groups 8",
        "--swiglu",
        "--normalization RMSNorm",
        "--disable-bias-linear",
        "--untie-embeddings-and-output-weights",
        "--hidden-size 4096",
    ] {
        assert!(megatron.contains(flag), "{flag}: {megatron}");
    }
    let bridge = engine_rules::megatron_bridge(&case.to(Engine::MegatronBridge).text);
    assert_eq!((bridge["num_moe_experts"].as_str(), bridge["moe_router_topk"].as_str()), ("8", "2"));
    assert_eq!(bridge["model.expert_model_parallel_size"], "1");
    let titan = case.to(Engine::TorchTitan);
    let sizes = engine_rules::torchtitan(&titan.text).sizes;
    assert_eq!((sizes["experts"], sizes["experts of a token"], sizes["vocabulary"]), (8, 2, 32000));
    assert!(titan.notes.iter().any(|note| note.contains("no configuration of such a mixture")), "{:?}", titan.notes);
    let galvatron = case.to(Engine::Galvatron).notes;
    assert!(galvatron.iter().any(|note| note.contains("no mixture of experts")), "{galvatron:?}");
}

#[test]
fn experts_stay_whole_where_tensors_are_divided() {
    let case = Case::new(
        "generate mixtral-8x7b --stack plain --micro-batch 1 --sequence-length 2048 --devices 64 --microbatches 128 \
         --memory 900GiB --tensor-degrees 1,2",
        &["space=engine", "stages=2", "data_parallel=false"],
    );
    assert_eq!(case.plan.stages[0].tensor_parallel, 2);
    let megatron = case.to(Engine::Megatron).text;
    assert!(
        megatron.contains("--expert-tensor-parallel-size 1") && megatron.contains("--sequence-parallel"),
        "{megatron}"
    );
}

#[test]
fn a_model_of_as_many_layers_is_not_taken_for_another() {
    let case = Case::new("generate mistral-7b --devices 16 --microbatches 64", &["space=engine"]);
    let titan = case.to(Engine::TorchTitan).text;
    let sizes = engine_rules::torchtitan(&titan).sizes;
    assert_eq!((sizes["layers"], sizes["vocabulary"], sizes["experts"]), (32, 32000, 0));
    assert!(titan.contains("as base  # fill in"), "{titan}");
    let own = Case::new("generate qwen3-14b --devices 16 --microbatches 64", &["space=engine"]);
    let own = own.to(Engine::TorchTitan).text;
    assert!(own.contains("models.qwen3.config_registry import qwen3_14b as base\n"), "{own}");
}

/// Its own function of the largest Llama multiplies in float8, which other devices refuse to build.
#[test]
fn the_largest_llama_is_not_built_in_float8() {
    let case = Case::new(
        "generate llama-3-405b --devices 16 --microbatches 64 --memory 4000GiB",
        &["space=engine", "stages=2"],
    );
    let titan = case.to(Engine::TorchTitan).text;
    engine_rules::torchtitan(&titan);
    assert!(titan.contains("import llama3_70b as base\n") && titan.contains("model_registry(\"405B\")"), "{titan}");
}

/// One stage has no pipeline that would split a batch: microbatches are steps of accumulation.
#[test]
fn torchtitan_keeps_the_microbatch_without_a_pipeline() {
    let case = Case::new(
        "generate llama-3-8b --micro-batch 4 --sequence-length 4096 --devices 16 --microbatches 64 --memory 600GiB",
        &["space=engine", "stages=1"],
    );
    let titan = engine_rules::torchtitan(&case.to(Engine::TorchTitan).text).fields;
    assert_eq!(titan["parallelism.pipeline_parallel_degree"], "1");
    assert_eq!(titan["config.training.local_batch_size"], "4");
    assert_eq!(titan["config.training.global_batch_size"], "256");
    assert!(!titan.contains_key("parallelism.pipeline_parallel_microbatch_size"));
}

/// The stacks overlap tensor-parallel transfers, which torchtitan's compiler does.
#[test]
fn torchtitan_overlaps_tensors_by_its_compiler() {
    let case = Case::new(
        "generate llama-3-8b --micro-batch 4 --sequence-length 4096 --devices 8 --microbatches 64 --tensor-degrees 1,2",
        &["space=engine", "stages=2", "data_parallel=false"],
    );
    assert_eq!(case.plan.stages[0].tensor_parallel, 2);
    let titan = engine_rules::torchtitan(&case.to(Engine::TorchTitan).text).fields;
    assert_eq!(titan["config.compile.enable_async_tensor_parallel"], "True");
}

#[test]
fn encoders_are_started_by_their_own_program() {
    let encoder = Case::new("generate bert-32 --devices 8 --microbatches 64", &["space=engine"]);
    let decoder = Case::new("generate llama-3-8b --devices 8 --microbatches 64", &["space=engine"]);
    for (case, program, other) in
        [(encoder, "pretrain_bert.py FLAGS", "pretrain_gpt"), (decoder, "pretrain_gpt.py FLAGS", "pretrain_bert")]
    {
        let text = case.to(Engine::Megatron).text;
        assert!(text.matches(program).count() == 2 && !text.contains(other), "{text}");
    }
}

#[test]
fn the_nearest_plan_is_one_that_the_schedule_runs() {
    let workload = generated("generate bert-32 --micro-batch 4 --memory 8GiB");
    let given = GivenLimits::default()
        .with(LimitKind::Devices, 2)
        .with(LimitKind::Microbatches, 8)
        .with(LimitKind::Memory, 30.0 * 1024f64.powi(3));
    let limits = family::resolve(&workload, &given).unwrap();
    let plan = planned(&workload, &limits, &["data_parallel=false", "tensor_parallel=false", "stages=2"]);
    let settings = EngineSettings { schedule: Some(Schedule::Interleaved), ..nearest() };
    let exported = export(Engine::Megatron, &workload, &limits, &plan, &settings).unwrap();
    assert_eq!((exported.plan.stages.len(), engine_rules::megatron(&exported.text).stages.len()), (2, 4));
    // Where no plan of several stages is left, the refusal says what it is of.
    let alone = Limits { microbatches: 7, ..limits };
    let error = export(Engine::Megatron, &workload, &alone, &plan, &settings).unwrap_err().to_string();
    assert!(error.contains("the nearest plan has"), "{error}");
}

/// Engines that count repeated layers take no workload without any, whatever plan is asked of all the others.
#[test]
fn a_plan_for_any_engine_is_one_of_those_that_take_the_workload() {
    let workload = load("inputs/tiny-branch.json".as_ref()).unwrap();
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let plan = planned(&workload, &limits, &["space=engine", "engine=any"]);
    let exact = EngineSettings { micro_batch_size: Some(2), ..EngineSettings::default() };
    let taken = |engine| export(engine, &workload, &limits, &plan, &exact);
    for engine in [Engine::DeepSpeed, Engine::Torch, Engine::TorchTitan] {
        assert!(taken(engine).is_ok_and(|exported| exported.losses.is_empty()), "{engine:?}");
    }
    for engine in [Engine::Megatron, Engine::Galvatron] {
        assert!(taken(engine).unwrap_err().to_string().contains("counts repeated layers"), "{engine:?}");
    }
    let option = Joint.options().iter().find(|option| option.name == "engine").unwrap();
    assert!(option.help.contains("`any` alone does not restrict the plan"), "{}", option.help);
}

#[test]
fn equal_stages_carry_the_model_to_maxtext() {
    let workload = generated("generate mixtral-8x7b --devices 16 --microbatches 64 --memory 900GiB");
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let plan = Plan { execution: None, ..planned(&workload, &limits, &["space=engine", "stages=1"]) };
    let rows = engine_rules::maxtext(&export(Engine::MaxText, &workload, &limits, &plan, &nearest()).unwrap().text);
    assert_eq!((rows["num_experts"].as_str(), rows["num_experts_per_tok"].as_str()), ("8", "2"));
    assert_eq!((rows["base_moe_mlp_dim"].as_str(), rows["base_num_kv_heads"].as_str()), ("14336", "8"));
}
