//! Models to be trained as workloads: planned by joint, held against exhaustive search, edited, written and read again.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family::{
        self,
        edit::{self, Edit},
        training::{
            Estimate, Fits, Layout, Model, Recompute, TrainingRun, configured, hardware, iteration::IterationCosts,
            memory, program, published, split::StageSplit,
        },
    },
    plan::{Basis, Configuration, Plan, Violation},
    planner::{self, Options, Outcome, Problem, Search, Status},
    run,
    simulate::Schedule,
    workload::{self, Choice, NodeIndex, Profile, TrainingProfile, Workload, WorkloadFormat},
};

fn profile(model: &str, hardware: &str) -> TrainingProfile {
    TrainingProfile::new(published::find(model).unwrap(), hardware::find(hardware).unwrap())
}

fn problem(workload: &Arc<Workload>, devices: u32, batch: u32, memory: Option<f64>) -> Problem {
    let asked = GivenLimits::default()
        .with(LimitKind::Devices, devices)
        .with(LimitKind::Batch, batch)
        .maybe(LimitKind::Memory, memory);
    let limits = family::resolve(workload, &asked).unwrap();
    let joint = planner::find("joint").unwrap();
    Problem { workload: Arc::clone(workload), limits, options: Options::defaults(joint.options()) }
}

fn planned(problem: &Problem) -> Outcome {
    let (outcome, score) = run::plan(planner::find("joint").unwrap(), problem, &Search::default()).unwrap();
    assert!(score.is_none_or(|score| score.is_valid()));
    outcome
}

fn workload_of(profile: TrainingProfile) -> Arc<Workload> {
    Arc::new(profile.into_workload("model", "model", WorkloadFormat::HuggingFace, None))
}

/// Every even configuration of these devices that an engine takes and that fits, by loops of its own.
fn every_even(profile: &TrainingProfile, devices: u32, batch: u32, limit: f64) -> Vec<(f64, TrainingRun)> {
    let mut all = vec![];
    let up_to = |most: u32| 1..=most;
    for (tensor, pipeline, context) in
        up_to(8).flat_map(|t| up_to(devices).flat_map(move |p| [1, 2, 4, 8].map(move |c| (t, p, c))))
    {
        let others = tensor * pipeline * context;
        if !devices.is_multiple_of(others) {
            continue;
        }
        for (virtual_stages, micro_batch) in up_to(8).flat_map(|v| [1, 2, 4, 8, 16].map(move |b| (v, b))) {
            let data = devices / others;
            let layout = Layout { tensor, pipeline, virtual_stages, context, data, micro_batch, ..Layout::ONE };
            let most = profile.model.layers.len() as u32 / (pipeline * virtual_stages);
            let kinds = up_to(most).map(Recompute::Layers).chain([Recompute::None, Recompute::Full]);
            for (recompute, sequence_parallel) in kinds.flat_map(|kind| [(kind, true), (kind, false)]) {
                let configuration = Configuration { sequence_parallel, ..profile.configuration(layout, recompute) };
                let run = profile.run(&configuration, batch);
                let Ok(estimate) = Estimate::of(&profile.model, &run, &profile.accelerator, u64::from(devices), None)
                else {
                    continue;
                };
                let bytes = estimate.memory_bytes + run.settings.reserve_bytes;
                if Fits::of(bytes, limit, estimate.trust.memory_error()) == Fits::Yes {
                    all.push((estimate.simulated_s, run));
                }
            }
        }
    }
    all
}

#[test]
fn joint_is_no_slower_than_any_even_configuration_that_fits() {
    for (model, devices, batch, memory) in
        [("llama-3.2-1b", 8, 16, 24e9), ("llama-3.1-8b", 8, 8, 60e9), ("llama-3.1-8b", 16, 32, 40e9)]
    {
        let profile = profile(model, "h100");
        let all = every_even(&profile, devices, batch, memory);
        assert!(all.len() > 10, "{model}: {}", all.len());
        let least = all.iter().map(|(seconds, _)| *seconds).fold(f64::INFINITY, f64::min);
        let outcome = planned(&problem(&workload_of(profile), devices, batch, Some(memory)));
        let found = outcome.objective.unwrap();
        assert_eq!(outcome.status, Status::Optimal, "{model}");
        assert!(found <= least * (1.0 + 1e-9), "{model}: {found} against {least}");
        assert!(outcome.lower_bound.unwrap() <= found, "{model}");
    }
}

#[test]
fn the_ten_best_come_first_and_the_front_falls_in_memory() {
    let outcome = planned(&problem(&workload_of(profile("llama-3.1-8b", "h100")), 16, 64, None));
    let all = &outcome.alternatives;
    assert!(all.len() >= 10, "{}", all.len());
    assert_eq!(all[0].plan, outcome.plan.clone().unwrap());
    assert!(all[..10].windows(2).all(|pair| pair[0].value <= pair[1].value));
    assert!(all[10..].windows(2).all(|pair| pair[0].memory_bytes > pair[1].memory_bytes));
    let configurations: Vec<_> = all.iter().map(|other| other.plan.configuration().cloned()).collect();
    for (i, one) in configurations.iter().enumerate() {
        assert!(one.is_some() && !configurations[..i].contains(one), "{one:?}");
    }
}

#[test]
fn what_does_not_fit_says_how_much_would() {
    let workload = workload_of(profile("llama-3-70b", "h100"));
    let refused = planned(&problem(&workload, 8, 64, None));
    let enough = refused.infeasible.unwrap().smallest_memory_bytes.unwrap();
    assert!(refused.plan.is_none() && enough > 80e9);
    assert!(planned(&problem(&workload, 8, 64, Some(enough))).plan.is_some());
    assert!(planned(&problem(&workload, 8, 64, Some(0.999 * enough))).plan.is_none());
}

#[test]
fn devices_that_do_not_divide_stay_idle() {
    let outcome = planned(&problem(&workload_of(profile("llama-3.2-1b", "h100")), 17, 32, None));
    let plan = outcome.plan.unwrap();
    assert_eq!(plan.devices_used(), 16);
    assert!(outcome.notes.iter().any(|note| note.starts_with("16 of 17 devices")), "{:?}", outcome.notes);
}

#[test]
fn a_plan_is_simulated_as_its_value_says() {
    let workload = workload_of(profile("llama-3-70b", "h100"));
    let problem = problem(&workload, 64, 128, None);
    let outcome = planned(&problem);
    let plan = outcome.plan.unwrap();
    let simulation =
        run::Simulation::within(&workload, &problem.limits, &plan, Schedule::ALL[0], &Search::default()).unwrap();
    let value = outcome.objective.unwrap();
    assert!((simulation.timeline.iteration_s / value - 1.0).abs() < 1e-9);
    let virtual_stages = plan.configuration().unwrap().layout.virtual_stages;
    let interleaved = simulation.schedule == Schedule::Interleaved;
    assert_eq!(interleaved, virtual_stages > 1);
    // The closed form of an even split is near.
    let Profile::Training(profile) = &workload.profile else { panic!("it is to be trained") };
    let configuration = plan.configuration().cloned().unwrap();
    let run = profile.run(&configuration, 128);
    let split = configured::split(profile, &configuration).unwrap();
    let costs = IterationCosts::of(&profile.model, &run, &profile.accelerator, &profile.constants, &split);
    if run.layers.is_empty() {
        assert!((costs.terms().iteration / value - 1.0).abs() < 0.02);
    }
    let held = memory::stages(&profile.model, &run, &split);
    assert_eq!(program::iteration(&profile.model, &run, &costs, &held), value);
    let facts = family::of(&workload).plan_facts(&workload, &problem.limits, &outcome.alternatives[0].plan);
    assert!(facts[1].contains("tokens/s per device") && facts[2].contains("published runs"), "{facts:?}");
}

fn by_hand(profile: &TrainingProfile, layout: Layout, recompute: Recompute) -> Plan {
    let configuration = profile.configuration(layout, recompute);
    let split = StageSplit::even(profile.model.layers.len(), &layout).unwrap();
    configured::plan(profile, configuration, &split)
}

#[test]
fn the_check_tells_what_engines_refuse_and_what_is_no_longer_the_configuration() {
    let profile = profile("llama-3.1-8b", "h100");
    let workload = workload_of(profile.clone());
    let limits = problem(&workload, 16, 32, None).limits;
    let layout = Layout { tensor: 2, pipeline: 4, data: 2, ..Layout::ONE };
    let plan = by_hand(&profile, layout, Recompute::Full);
    let score = family::check(&workload, &limits, &plan);
    assert!(score.is_valid() && score.stages.len() == 4, "{:?}", score.violations);
    assert!(score.stages.iter().all(|stage| stage.memory_bytes < limits.memory_limit() && stage.load_s > 0.0));
    let broken = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        family::check(&workload, &limits, &plan).violations
    };
    let rules = |change: &dyn Fn(&mut Configuration)| {
        let found = broken(&|plan| {
            let mut changed = plan.configuration().cloned().unwrap();
            change(&mut changed);
            plan.basis = Basis::Configuration(changed.into());
        });
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert!(rules(&|c| c.layout.tensor = 3).contains("does not divide the model's 32 attention heads"));
    assert!(rules(&|c| c.layout.micro_batch = 3).contains("is not divisible by mbs·dp"));
    assert!(rules(&|c| c.layout.expert = 2).contains("has no experts"));
    assert!(rules(&|c| c.layout.virtual_stages = 9).contains("are too few for pp·vp"));
    assert!(rules(&|c| c.layout.data = 4).contains("there are only 16"));
    assert!(rules(&|c| c.layers = vec![8, 8, 8, 9]).contains("adds up to 33"));
    let moved = broken(&|plan| {
        let node = plan.stages[0].nodes.pop().unwrap();
        let choice = plan.stages[0].choices.pop().unwrap();
        plan.stages[1].nodes.insert(0, node);
        plan.stages[1].choices.insert(0, choice);
    });
    assert!(moved.iter().any(|v| matches!(v, Violation::NotConfigured { stage: 1, .. })), "{moved:?}");
    let kept = broken(&|plan| plan.stages[2].choices[0] = Choice::Keep);
    assert!(matches!(kept[..], [Violation::NotConfigured { stage: 3, .. }]), "{kept:?}");
    let tight = plantui::cluster::Limits { memory_bytes: Some(10e9), ..limits.clone() };
    let full = family::check(&workload, &tight, &plan).violations;
    assert!(full.iter().all(|v| matches!(v, Violation::OutOfMemory { .. })) && !full.is_empty(), "{full:?}");
    // Stages alone tell a configuration, too.
    let bare = Plan { basis: Basis::Nodes, ..plan.clone() };
    let again = family::check(&workload, &limits, &bare);
    assert_eq!((again.is_valid(), again.value), (true, score.value));
}

#[test]
fn hand_edits_go_there_and_back_and_name_the_rule_they_meet() {
    let profile = profile("llama-3.1-8b", "h100");
    let workload = workload_of(profile.clone());
    let limits = problem(&workload, 16, 32, None).limits;
    let plan = by_hand(&profile, Layout { tensor: 2, pipeline: 4, data: 2, ..Layout::ONE }, Recompute::None);
    let apply = |plan: &Plan, edit: Edit| edit::apply(&workload, &limits, plan, &edit).map(|edited| edited.plan);
    let layout = |plan: &Plan| plan.configuration().unwrap().layout;
    let more = apply(&plan, Edit::TensorParallel { stage: 0, up: true }).unwrap();
    assert_eq!((layout(&more).tensor, layout(&more).data, layout(&more).pipeline), (4, 1, 4));
    assert_eq!(apply(&more, Edit::TensorParallel { stage: 2, up: false }).unwrap(), plan);
    let fewer = apply(&plan, Edit::Merge { stage: 0 }).unwrap();
    assert_eq!((layout(&fewer).pipeline, layout(&fewer).data, fewer.stages.len()), (2, 4, 2));
    assert_eq!(apply(&fewer, Edit::Split { stage: 0, at: NodeIndex::new(1) }).unwrap(), plan);
    let wide = apply(&plan, Edit::DataParallel { stage: 0, up: true }).unwrap();
    assert_eq!((layout(&wide).data, layout(&wide).pipeline), (4, 2));
    let shifted = apply(&plan, Edit::Boundary { stage: 1, forwards: true }).unwrap();
    assert_eq!(shifted.configuration().unwrap().layers, [8, 9, 7, 8]);
    assert_eq!(apply(&shifted, Edit::Boundary { stage: 1, forwards: false }).unwrap(), plan);
    // Layers 9 to 11 are the first three of the second stage.
    let some = apply(&plan, Edit::Choice { nodes: NodeIndex::list([9, 10, 11]), forwards: true }).unwrap();
    assert_eq!(some.configuration().unwrap().recompute, Recompute::Layers(3));
    assert_eq!(apply(&some, Edit::Choice { nodes: NodeIndex::list([9]), forwards: true }).unwrap(), plan);
    let all = apply(&plan, Edit::Choice { nodes: NodeIndex::list(9..17), forwards: true }).unwrap();
    assert_eq!(all.configuration().unwrap().recompute, Recompute::Full);
    for edited in [&more, &fewer, &wide, &shifted, &some, &all] {
        let score = family::check(&workload, &limits, edited);
        let rules = score.violations.iter().all(|v| matches!(v, Violation::OutOfMemory { .. }));
        assert!(rules && score.value > 0.0, "{:?}", score.violations);
    }
    let base = family::check(&workload, &limits, &plan).value;
    assert!(family::check(&workload, &limits, &all).value > base, "what is computed again takes time");
    let refused = edit::apply(&workload, &limits, &plan, &Edit::Choice { nodes: NodeIndex::list([0]), forwards: true });
    assert!(refused.unwrap_err().to_string().contains("choose layers"));
    // Sixteen ranks have two copies of each of the 8 heads of keys and values.
    let widest = by_hand(&profile, Layout { tensor: 8, data: 2, ..Layout::ONE }, Recompute::None);
    let wider = apply(&widest, Edit::TensorParallel { stage: 0, up: true }).unwrap();
    assert_eq!(wider.configuration().unwrap().layout.tensor, 16);
    let refused = apply(&wider, Edit::TensorParallel { stage: 0, up: true }).unwrap_err().to_string();
    assert!(refused.contains("no other such degree divides the devices"), "{refused}");
}

#[test]
fn devices_that_divide_badly_are_left_idle_where_fewer_are_faster() {
    let workload = workload_of(profile("llama-3.1-8b", "h100"));
    let [odd, round, more] = [63, 32, 64].map(|devices| planned(&problem(&workload, devices, 128, None)));
    let plan = odd.plan.as_ref().unwrap();
    assert!(plan.devices_used() < 63, "{} devices", plan.devices_used());
    let told = format!("{} of 63 devices are used: no searched layout", plan.devices_used());
    assert!(odd.notes.iter().any(|note| note.starts_with(&told)), "{:?}", odd.notes);
    let [odd, round, more] = [odd, round, more].map(|outcome| outcome.objective.unwrap());
    assert!(more < odd && odd <= round, "64: {more}, 63: {odd}, 32: {round}");
}

#[test]
fn a_model_survives_its_file_and_a_wrong_file_names_the_place() {
    for name in ["llama-3-70b", "deepseek-v3", "gpt-oss-120b", "gemma-2-9b", "bert-large", "t5-large"] {
        let Some(model) = published::find(name) else { continue };
        let mut profile = TrainingProfile::new(model, hardware::find("b200").unwrap());
        profile.settings.set("tp_overlap", "false").unwrap();
        profile.settings.set("reserve", "3GiB").unwrap();
        profile.sequence = 2048;
        let workload = profile.into_workload(name, "x.json", WorkloadFormat::Training, Some(64));
        let text = workload::convert::text(&workload);
        let again = workload::load_bytes(text.as_bytes(), "x.json", name).unwrap();
        assert_eq!(again.profile, workload.profile, "{name}");
        assert_eq!((again.limits, again.format), (workload.limits, WorkloadFormat::Training));
    }
    let text = r#"{"schema": "plantui.training/1", "model": "llama-3.1-8b", "hardware": "h100"}"#;
    assert!(workload::load_bytes(text.as_bytes(), "x.json", "x").is_ok());
    for (from, to, told) in [
        ("llama-3.1-8b", "llama-3.1-9b", "model is `llama-3.1-9b`, which is no published name"),
        ("h100", "h101", "hardware.id is `h101`"),
        ("\"hardware\": \"h100\"", "\"sequence_length\": 0", "sequence_length is 0"),
        ("\"hardware\": \"h100\"", "\"precision\": \"fp7\"", "precision is `fp7`"),
        ("\"hardware\": \"h100\"", "\"constants\": {\"gemm_16\": -1}", "constants.gemm_16 is -1"),
        ("\"hardware\": \"h100\"", "\"settings\": {\"tp_overlap\": 7}", "tp_overlap is `7`"),
    ] {
        let error = workload::load_bytes(text.replace(from, to).as_bytes(), "x.json", "x").unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_configuration_of_hugging_face_is_a_workload_as_it_is() {
    let text = r#"{"model_type": "llama", "hidden_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 8,
        "num_hidden_layers": 20, "intermediate_size": 5632, "vocab_size": 32000, "max_position_embeddings": 4096}"#;
    let workload = workload::load_bytes(text.as_bytes(), "config.json", "config").unwrap();
    assert_eq!((workload.format, workload.nodes.len()), (WorkloadFormat::HuggingFace, 22));
    let Profile::Training(profile) = &workload.profile else { panic!("it is to be trained") };
    assert_eq!((profile.sequence, profile.accelerator.id), (4096, "h100"));
    assert_eq!(workload.parameters(), profile.model.parameters() as f64);
    let plan = planned(&problem(&Arc::new(workload), 8, 32, None)).plan.unwrap();
    assert_eq!(plan.devices_used(), 8);
}

#[test]
fn the_same_configuration_comes_out_on_any_number_of_threads_and_for_a_renamed_model() {
    let base = planned(&problem(&workload_of(profile("llama-3.1-8b", "h100")), 16, 64, None));
    let model = Model { name: "other".into(), ..published::find("llama-3.1-8b").unwrap() };
    let other = TrainingProfile::new(model, hardware::find("h100").unwrap());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let again = pool.install(|| planned(&problem(&workload_of(other), 16, 64, None)));
    assert_eq!((base.plan, base.objective), (again.plan, again.objective));
}
