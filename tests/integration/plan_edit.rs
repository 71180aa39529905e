//! Hand edits: what each does, and what must hold of any sequence of them.

use std::sync::Arc;

use crate::common::random_piper::{Flavour, Random, edges, workload};
use plantui::{
    cluster::{GivenLimits, LimitKind, Limits, Machines},
    family::{
        self, check,
        edit::{Edit, EditError, EditResult, apply},
    },
    plan::{Basis, Plan, Stage, Violation},
    planner::{self, Options, Problem, Search},
    run,
    workload::{self, Choice, NodeIndex, Workload},
};

/// A workload with its limits and a planner's plan.
struct Case {
    name: String,
    workload: Arc<Workload>,
    limits: Limits,
    plan: Plan,
}

fn planned(file: &str, planner: &str, overrides: &GivenLimits, settings: &[&str]) -> Case {
    let path = format!("{}/inputs/{file}", env!("CARGO_MANIFEST_DIR"));
    let workload = Arc::new(workload::load(path.as_ref()).expect("the input is valid"));
    of_planner(file, workload, planner, overrides, settings)
}

fn of_planner(name: &str, workload: Arc<Workload>, id: &str, overrides: &GivenLimits, settings: &[&str]) -> Case {
    let planner = planner::find(id).expect("the planner is there");
    let limits = family::resolve(&workload, overrides).expect("all limits are given");
    let options = Options::parse(id, planner.options(), settings.iter().copied()).expect("the options are known");
    let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
    let (outcome, _) = run::plan(planner, &problem, &Search::default()).unwrap();
    let plan = outcome.plan.unwrap_or_else(|| panic!("{name}: {id} finds a plan"));
    Case { name: format!("{name} by {id}"), workload, limits, plan }
}

/// A plan of every kind.
fn cases() -> Vec<Case> {
    let none = GivenLimits::default();
    let layers = none
        .clone()
        .on(Some(Machines::parse("4,4").expect("two machines")))
        .with(LimitKind::Batch, 64)
        .with(LimitKind::Memory, 64e9);
    vec![
        planned("tiny-branch.json", "piper", &none, &[]),
        planned("bert32a100.json", "piper", &none, &[]),
        planned("bert32-layers.txt", "dapple", &layers, &[]),
        planned("bert32-layers.txt", "dapple-hpgo", &layers, &[]),
        planned("branching-cnn-training.json", "placement-dp", &none, &[]),
        planned("mistral-7b-latency.json", "placement-latency-greedy", &none, &[]),
        planned("alexnet-operators.json", "pase", &none.with(LimitKind::Devices, 8), &[]),
    ]
}

impl Case {
    fn apply(&self, plan: &Plan, edit: &Edit) -> Result<Plan, String> {
        let edited: Result<EditResult, EditError> = apply(&self.workload, &self.limits, plan, edit);
        match edited {
            Ok(EditResult { plan: new, what }) => {
                assert!(!what.is_empty() && new != *plan, "{}: {edit:?} changes nothing", self.name);
                self.can_be_scored(&new, edit);
                Ok(new)
            }
            Err(refused) => {
                let why = refused.to_string();
                assert!(why.len() > 10 && !why.ends_with('.'), "{}: {edit:?}: {why}", self.name);
                Err(why)
            }
        }
    }

    /// The check finds every stage and node, and nothing worse than a limit that is not kept.
    fn can_be_scored(&self, plan: &Plan, edit: &Edit) {
        let score = check(&self.workload, &self.limits, plan);
        let context = || format!("{}: after {edit:?}: {:?}", self.name, score.violations);
        assert_eq!(score.stages.len(), plan.stages.len(), "{}", context());
        for (stage, scored) in plan.stages.iter().zip(&score.stages) {
            assert!(!stage.nodes.is_empty() && scored.nodes.len() == stage.nodes.len(), "{}", context());
            assert!(scored.load_s.is_finite() && scored.memory_bytes.is_finite(), "{}", context());
        }
        let of_limits = |violation: &Violation| match violation {
            Violation::OutOfMemory { .. }
            | Violation::SharedMemory { .. }
            | Violation::TooManyDevices { .. }
            | Violation::TooManyCpus { .. }
            | Violation::TooManyReplicas { .. }
            | Violation::TooManySubgraphs { .. }
            | Violation::Circle { .. } => true,
            // A number beyond the last device, or a count that equal pipelines do not share.
            Violation::DeviceList { problem, .. } => {
                problem.contains("does not exist")
                    || problem.contains("is a CPU")
                    || problem.contains("is not an accelerator")
                    || problem.contains("do not divide")
            }
            _ => false,
        };
        assert!(score.violations.iter().all(of_limits), "{}", context());
    }

    fn random_edit(&self, plan: &Plan, random: &mut Random) -> Edit {
        let stage = random.below(plan.stages.len());
        let node = random.pick(&plan.stages[stage].nodes);
        match random.below(8) {
            0 | 1 => Edit::Boundary { stage, forwards: random.chance(50) },
            2 => Edit::Move { nodes: vec![node], to: random.below(plan.stages.len() + 1) },
            3 => Edit::DataParallel { stage, up: random.chance(50) },
            4 => Edit::TensorParallel { stage, up: random.chance(50) },
            5 => {
                let nodes = if random.chance(50) { vec![node] } else { plan.stages[stage].nodes.clone() };
                Edit::Choice { nodes, forwards: random.chance(50) }
            }
            6 => Edit::Merge { stage },
            _ => Edit::Split { stage, at: node },
        }
    }
}

#[test]
fn any_sequence_of_edits_can_be_scored() {
    for case in cases() {
        let mut random = Random(7);
        let (mut plan, mut done) = (case.plan.clone(), 0);
        for _ in 0..120 {
            let edit = case.random_edit(&plan, &mut random);
            if let Ok(new) = case.apply(&plan, &edit) {
                plan = new;
                done += 1;
            }
        }
        assert!(done > 10, "{}: only {done} of 120 edits are done", case.name);
    }
}

#[test]
fn random_networks_can_be_edited_in_any_sequence() {
    for seed in 1..40 {
        let mut random = Random(seed);
        let n = 2 + random.below(9);
        let edges = edges(&mut random, n);
        let flavour = Flavour { whole: true, uniform: false, all_recompute: false, most_modes: 3 };
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let overrides = GivenLimits::default()
            .with(LimitKind::Devices, 8)
            .with(LimitKind::Memory, 1e12)
            .with(LimitKind::Microbatches, 12)
            .with(LimitKind::Bandwidth, 1e3);
        let case = of_planner("random", workload, "piper", &overrides, &[]);
        let mut plan = case.plan.clone();
        for _ in 0..60 {
            let edit = case.random_edit(&plan, &mut random);
            if let Ok(new) = case.apply(&plan, &edit) {
                plan = new;
            }
        }
    }
}

#[test]
fn there_and_back_is_where_it_began() {
    let (mut boundaries, mut moves, mut degrees, mut choices, mut cuts) = (0, 0, 0, 0, 0);
    for case in cases() {
        let plan = &case.plan;
        let back = |edit: Edit, back: Edit| {
            let Ok(there) = case.apply(plan, &edit) else { return 0 };
            let again = case.apply(&there, &back).unwrap_or_else(|why| panic!("{}: {back:?}: {why}", case.name));
            let mut first = plan.clone();
            if again.last_states().is_none() {
                first.basis = Basis::Nodes;
            }
            assert_eq!(again, first, "{}: {edit:?} and {back:?}", case.name);
            1
        };
        for (stage, part) in plan.stages.iter().enumerate() {
            for forwards in [true, false] {
                // Stages of a chain; where it branches the nearest node may be another.
                if case.workload.piper().is_some_and(|_| case.name.starts_with("bert"))
                    || plan.last_states().is_some_and(|last| last.len() > 1)
                {
                    let (there, back_again) =
                        (Edit::Boundary { stage, forwards }, Edit::Boundary { stage, forwards: !forwards });
                    boundaries += back(there, back_again);
                }
                degrees +=
                    back(Edit::DataParallel { stage, up: forwards }, Edit::DataParallel { stage, up: !forwards });
            }
            degrees += back(Edit::TensorParallel { stage, up: true }, Edit::TensorParallel { stage, up: false });
            for &node in part.nodes.iter().take(40) {
                let nodes = vec![node];
                let there = Edit::Choice { nodes: nodes.clone(), forwards: true };
                choices += back(there, Edit::Choice { nodes: nodes.clone(), forwards: false });
                moves += back(Edit::Move { nodes: nodes.clone(), to: stage + 1 }, Edit::Move { nodes, to: stage });
                cuts += back(Edit::Split { stage, at: node }, Edit::Merge { stage });
            }
        }
    }
    let counts = [boundaries, moves, degrees, choices, cuts];
    assert!(counts.iter().all(|&count| count > 5), "{counts:?}");
}

/// The six-node example in two stages: everything up to the branch's join, and the rest.
fn tiny() -> Case {
    let case = planned("tiny-branch.json", "piper", &GivenLimits::default(), &[]);
    let nodes = [[0, 1, 2], [3, 4, 5]].map(NodeIndex::list);
    let stage = |nodes: Vec<NodeIndex>| Stage {
        choices: vec![Choice::Mode("vanilla".into()); nodes.len()],
        nodes,
        data_parallel: 1,
        tensor_parallel: 1,
        devices: vec![],
    };
    let plan = Plan { stages: nodes.into_iter().map(stage).collect(), ..Plan::default() }.with_consecutive_devices();
    Case { plan, ..case }
}

#[test]
fn a_boundary_moves_by_the_node_next_to_it() {
    let case = tiny();
    for stage in [0, 1] {
        let plan = case.apply(&case.plan, &Edit::Boundary { stage, forwards: true }).unwrap();
        assert_eq!(plan.stages[0].nodes, NodeIndex::list(0..4));
        let plan = case.apply(&case.plan, &Edit::Boundary { stage, forwards: false }).unwrap();
        assert_eq!(plan.stages[1].nodes.len(), 4);
    }
    let mut plan = case.plan.clone();
    for _ in 0..2 {
        plan = case.apply(&plan, &Edit::Boundary { stage: 0, forwards: true }).unwrap();
    }
    let why = case.apply(&plan, &Edit::Boundary { stage: 0, forwards: true }).unwrap_err();
    assert!(why.contains("merge the stages instead"), "{why}");
}

#[test]
fn what_would_turn_an_edge_back_is_refused_with_the_node_in_the_way() {
    let case = tiny();
    let why = case.apply(&case.plan, &Edit::Move { nodes: NodeIndex::list([0]), to: 1 }).unwrap_err();
    assert!(why.contains("feeds") && why.contains("stays on stage 1"), "{why}");
    let why = case.apply(&case.plan, &Edit::Move { nodes: NodeIndex::list([5]), to: 0 }).unwrap_err();
    assert!(why.contains("needs") && why.contains("stays on stage 2"), "{why}");
}

#[test]
fn degrees_step_through_what_the_limits_and_the_nodes_offer() {
    let case = tiny();
    let (mut plan, mut seen) = (case.plan.clone(), vec![]);
    while let Ok(next) = case.apply(&plan, &Edit::DataParallel { stage: 0, up: true }) {
        seen.push(next.stages[0].data_parallel);
        assert_eq!(next.stages[1].devices[0] as usize, next.stages[0].devices.len());
        plan = next;
    }
    assert_eq!(seen, [2, 3, 4, 6, 12], "the divisors of 12 microbatches");
    let plan = case.apply(&case.plan, &Edit::TensorParallel { stage: 1, up: true }).unwrap();
    assert_eq!(plan.stages[1].tensor_parallel, 2);
    let why = case.apply(&plan, &Edit::TensorParallel { stage: 1, up: true }).unwrap_err();
    assert!(why.contains("larger tensor degree than 2"), "{why}");
}

#[test]
fn a_colour_class_moves_as_a_whole_and_a_cpu_node_stays_off_accelerators() {
    let case = cases().into_iter().find(|case| case.name.contains("placement-dp")).unwrap();
    let profile = case.workload.placement().unwrap();
    let (node, class) = (case.workload)
        .indices()
        .filter(|&v| case.plan.stage_of(v) == Some(0))
        .find_map(|v| profile.nodes[v].colour_class.map(|class| (v, class)))
        .expect("a node with a class");
    let plan = case.apply(&case.plan, &Edit::Move { nodes: vec![node], to: 1 }).unwrap();
    let mut members = case.workload.indices().filter(|&v| profile.nodes[v].colour_class == Some(class));
    assert!(members.all(|v| plan.stage_of(v) == Some(1)));
}

#[test]
fn what_means_nothing_for_a_kind_of_plan_is_refused_in_a_sentence() {
    for case in cases() {
        let edit = |edit: &Edit| case.apply(&case.plan, edit);
        if case.workload.placement().is_some() {
            assert!(edit(&Edit::DataParallel { stage: 0, up: true }).unwrap_err().contains("no degrees"));
            assert!(
                edit(&Edit::Choice { nodes: NodeIndex::list([0]), forwards: true }).unwrap_err().contains("one mode")
            );
        }
        if case.workload.operators().is_some() {
            assert!(edit(&Edit::Split { stage: 0, at: NodeIndex::new(3) }).unwrap_err().contains("share all devices"));
            assert!(edit(&Edit::Merge { stage: 0 }).unwrap_err().contains("only one stage"));
        }
        assert!(edit(&Edit::Merge { stage: 99 }).unwrap_err().contains("no stage 100"));
        assert!(edit(&Edit::Move { nodes: NodeIndex::list([100_000]), to: 0 }).is_err());
        assert!(edit(&Edit::Choice { nodes: vec![], forwards: true }).is_err());
    }
}

#[test]
fn a_plan_that_is_none_cannot_be_edited() {
    let case = tiny();
    let mut plan = case.plan.clone();
    plan.stages[0].nodes[1] = NodeIndex::new(77);
    let why = case.apply(&plan, &Edit::Merge { stage: 0 }).unwrap_err();
    assert!(why.contains("every node once"), "{why}");
}

#[test]
fn the_splits_of_an_operator_go_round() {
    let case = cases().into_iter().find(|case| case.workload.operators().is_some()).unwrap();
    let (mut plan, mut seen) = (case.plan.clone(), vec![]);
    loop {
        plan = case.apply(&plan, &Edit::Choice { nodes: NodeIndex::list([0]), forwards: true }).unwrap();
        assert!(!seen.contains(&plan.stages[0].choices[0]), "a split comes twice");
        seen.push(plan.stages[0].choices[0].clone());
        if plan == case.plan {
            break;
        }
    }
    assert!(seen.len() > 4, "{seen:?}");
}
