//! Zero-bubble schedules of models that are to be trained: their memory, their place in the search, what they refuse.

use std::sync::Arc;

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family::{
        self,
        training::{
            Constants, Estimate, Layout, Recompute, Stack, TrainingPrecision, TrainingRun, ZeroBubble, check, hardware,
            iteration::IterationCosts, memory, program, published,
        },
    },
    plan::{Basis, Configuration, Violation},
    planner::{self, Options, Outcome, Problem, Search},
    run,
    simulate::{self, Schedule},
    workload::{NodeIndex, TrainingProfile, Workload, WorkloadFormat},
};

fn run_of(layout: Layout, zero_bubble: Option<ZeroBubble>, microbatches: u64) -> TrainingRun {
    TrainingRun {
        layout,
        global_batch: microbatches * u64::from(layout.data) * u64::from(layout.micro_batch),
        sequence: 4096,
        precision: TrainingPrecision::Bf16,
        recompute: Recompute::None,
        stack: Stack::Plain,
        settings: Stack::Plain.settings(),
        layers: vec![],
        head_alone: false,
        zero_bubble,
        links: None,
    }
}

#[test]
fn every_stage_holds_in_the_simulation_what_the_memory_says() {
    let model = published::find("llama-3.1-8b").unwrap();
    let accelerator = hardware::find("h100").unwrap();
    for (schedule, pipeline, microbatches) in [
        (ZeroBubble::H1, 4, 16),
        (ZeroBubble::H1, 8, 3),
        (ZeroBubble::V, 4, 16),
        (ZeroBubble::V, 2, 9),
        (ZeroBubble::V, 8, 40),
        (ZeroBubble::Interleaved, 4, 16),
        (ZeroBubble::Interleaved, 4, 10),
        (ZeroBubble::Interleaved, 2, 3),
    ] {
        let virtual_stages = schedule.parts().unwrap_or(3);
        let layout = Layout { pipeline, virtual_stages, ..Layout::ONE };
        let run = run_of(layout, Some(schedule), microbatches);
        let split = check::check(&model, &run, &accelerator, pipeline.into()).unwrap();
        let costs = IterationCosts::of(
            &model,
            &run,
            &accelerator,
            &Constants::shipped(accelerator.generation, run.stack),
            &split,
        );
        let held = memory::stages(&model, &run, &split);
        let timeline = simulate::simulate(&program::pipeline(&run, &costs, &held), program::schedule(&run));
        for (stage, (peak, held)) in timeline.peak_memory_bytes.iter().zip(&held).enumerate() {
            let ratio = peak / held.total();
            assert!(ratio <= 1.0 + 1e-9 && ratio > 0.5, "{schedule:?} {pipeline}: stage {stage}: {ratio}");
        }
        let fullest = memory::fullest(&held);
        assert!((timeline.peak_memory() / fullest - 1.0).abs() < 1e-6, "{schedule:?} {pipeline}");
    }
}

#[test]
fn bubbles_shrink_and_the_second_half_comes_back_up() {
    let model = published::find("llama-3.1-8b").unwrap();
    let accelerator = hardware::find("h100").unwrap();
    let estimate = |zero_bubble: Option<ZeroBubble>| {
        let layout =
            Layout { pipeline: 4, virtual_stages: zero_bubble.and_then(ZeroBubble::parts).unwrap_or(1), ..Layout::ONE };
        Estimate::of(&model, &run_of(layout, zero_bubble, 8), &accelerator, 4, None).unwrap()
    };
    let [usual, h1, v] = [None, Some(ZeroBubble::H1), Some(ZeroBubble::V)].map(estimate);
    assert!(v.simulated_s < h1.simulated_s && h1.simulated_s < usual.simulated_s);
    // The head and the embedding are both with the first stage under ZB-V, and with the ends else.
    assert!(v.stages[0].forward_s > v.stages[3].forward_s && usual.stages[0].forward_s < usual.stages[3].forward_s);
    assert_eq!(v.iteration_s, v.simulated_s);
    assert!(v.assumptions.iter().any(|line| line.contains("zb-v")), "{:?}", v.assumptions);
    // What nothing was measured of is not trusted.
    assert_eq!(v.trust.class(), None);
}

fn planned(profile: TrainingProfile, schedule: &str, batch: u32) -> (Arc<Workload>, Problem, Outcome) {
    let workload = Arc::new(profile.into_workload("model", "model", WorkloadFormat::HuggingFace, None));
    let asked = GivenLimits::default().with(LimitKind::Devices, 32).with(LimitKind::Batch, batch);
    let limits = family::resolve(&workload, &asked).unwrap();
    let joint = planner::find("joint").unwrap();
    let options = Options::parse("joint", joint.options(), [format!("schedule={schedule}").as_str()]).unwrap();
    let problem = Problem { workload: Arc::clone(&workload), limits, options };
    let (outcome, score) = run::plan(joint, &problem, &Search::default()).unwrap();
    assert!(score.is_none_or(|score| score.is_valid()));
    (workload, problem, outcome)
}

fn profile(stack: Stack) -> TrainingProfile {
    let mut profile = TrainingProfile::new(published::find("llama-3-70b").unwrap(), hardware::find("h100").unwrap());
    (profile.stack, profile.settings, profile.sequence) = (stack, stack.settings(), 4096);
    // Without it every rank holds the whole of its stage, and pipelines are worth their bubble.
    profile.settings.fsdp = false;
    profile
}

#[test]
fn joint_takes_zero_bubble_schedules_where_the_software_runs_them() {
    let (_, _, usual) = planned(profile(Stack::Torchtitan), "1f1b", 32);
    let (workload, problem, all) = planned(profile(Stack::Torchtitan), "auto", 32);
    let (_, _, only) = planned(profile(Stack::Torchtitan), "zb-v", 32);
    let (_, _, dealt) = planned(profile(Stack::Torchtitan), "interleaved-zb", 32);
    let [usual, best, only_s, dealt_s] = [&usual, &all, &only, &dealt].map(|outcome| outcome.objective.unwrap());
    assert!((best - usual.min(only_s).min(dealt_s)).abs() <= 1e-12 * best, "{best} {usual} {only_s} {dealt_s}");
    let among = all.proven_among.unwrap();
    assert!(among.ends_with("under 1F1B, interleaved 1F1B, ZB-V or interleaved ZB"), "{among}");
    assert!(all.notes.iter().any(|note| note.contains("also runs looped BFS and DualPipeV")), "{:?}", all.notes);
    let own = dealt.plan.unwrap();
    assert_eq!(own.configuration().unwrap().zero_bubble, Some(ZeroBubble::Interleaved));
    assert!(only.alternatives.iter().all(|other| other.plan.configuration().unwrap().zero_bubble.is_some()));
    let plan = only.plan.unwrap();
    let own = plan.configuration().cloned().unwrap();
    assert_eq!((own.zero_bubble, own.layout.virtual_stages), (Some(ZeroBubble::V), 2));
    assert!(own.to_string().contains("zb-v"), "{own}");
    // The simulator runs that schedule unasked, and finds the same time.
    let simulated =
        run::Simulation::within(&workload, &problem.limits, &plan, simulate::Setup::default(), &Search::default());
    let simulated = simulated.unwrap();
    assert_eq!(simulated.schedule, Schedule::ZeroBubbleV);
    assert!((simulated.timeline.iteration_s / only_s - 1.0).abs() < 1e-9);
    // Head and embedding share a stage.
    let ends = NodeIndex::list([0, workload.nodes.len() - 1]);
    assert!(ends.iter().all(|node| plan.stages[0].nodes.contains(node)));
    // A configuration without its schedule has other stages.
    let mut other = plan.clone();
    other.basis = Basis::Configuration(Configuration { zero_bubble: None, ..own }.into());
    let violations = family::check(&workload, &problem.limits, &other).violations;
    assert!(matches!(violations[0], Violation::NotConfigured { stage: 1, .. } | Violation::Refused { .. }));
    let (_, _, refused) = planned(profile(Stack::Megatron2025), "zb-v", 32);
    assert!(refused.infeasible.unwrap().explanation.contains("torchtitan runs zb-v"));
}
