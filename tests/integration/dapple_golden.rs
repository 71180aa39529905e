//! DAPPLE's published programs: states and totals of every profile they finish.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use crate::common::{
    dapple_figures::{dapple_candidates, dapple_cases},
    random_layers::of_batch,
    reference,
};
use plantui::{
    cluster::Limits,
    family,
    planner::{
        self, OptionValue, Options, Problem, Search, Status,
        dapple::hpgo::{
            Candidate, Faults, HpgoModel, Kind, candidates,
            data_parallel::data_parallel,
            length::{Stage, event_speedup},
            placement,
        },
    },
    run,
    simulate::{Schedule, SimulatorSettings, simulate},
    workload::{
        self, Workload,
        states::{MOST_STATES, States, StatesError},
    },
};

fn load(root: &Path, input: &str) -> Workload {
    workload::load(&root.join(input)).unwrap_or_else(|error| panic!("{error}"))
}

fn states(workload: &Workload) -> Result<States, StatesError> {
    States::of(workload, workload.layers().expect("a layer-wise profile"))
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn states_and_totals_are_those_of_the_published_importer() {
    let root = reference::root();
    let table = include_str!("../figures/dapple-states.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut count = 0;
    for line in table {
        let field: Vec<&str> = line.split('\t').collect();
        let workload = load(&root, field[0]);
        let states = states(&workload).unwrap_or_else(|error| panic!("{}: {error}", field[0]));
        assert_eq!(states.len(), field[1].parse::<usize>().unwrap(), "{}", field[0]);
        assert!(states.members.iter().map(Vec::len).sum::<usize>() == workload.nodes.len(), "{}", field[0]);
        count += 1;
        if field[2] == "-" {
            continue;
        }
        let number = |i: usize| field[i].parse::<f64>().unwrap();
        let last = states.len() - 1;
        let (profile_batch, batch) = (number(2), number(3));
        assert!(equal(states.compute_s[last] * batch / profile_batch, number(4)), "{}", field[0]);
        assert!(equal(states.parameter_bytes[last], number(5)), "{}", field[0]);
        assert!(equal(states.activation_bytes[last] / profile_batch, number(6)), "{}", field[0]);
    }
    assert!(count >= 30, "only {count} profiles");
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn profiles_with_too_many_states_can_be_cut_along_one_order() {
    let root = reference::root();
    for input in ["inception_v3", "nasnetalarge", "nasnetamobile"] {
        let workload = load(&root, &format!("hpgo/profiles/{input}/graph.txt"));
        assert_eq!(states(&workload).unwrap_err(), StatesError::TooMany(MOST_STATES), "{input}");
        let linear = States::along_order(&workload, workload.layers().unwrap()).unwrap();
        assert!(linear.is_chain() && linear.len() > 300, "{input}");
    }
}

/// Stages as the published planner writes them: the end of the last is inclusive.
fn written(model: &HpgoModel<'_>, stages: &[Stage]) -> String {
    let stage = |stage: &Stage| {
        let end = if stage.to + 1 == model.states() { stage.to } else { stage.to + 1 };
        format!("{}:{end}:{}:{}", stage.from, stage.groups, ranges(&placement::ids(stage.devices)))
    };
    stages.iter().map(stage).collect::<Vec<_>>().join(";")
}

/// `0-3,8`.
fn ranges(ids: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = vec![];
    for &id in ids {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == id => *end = id,
            _ => runs.push((id, id)),
        }
    }
    let run = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

fn name(kind: Kind) -> String {
    match kind {
        Kind::PseudoDataParallel(groups) => format!("dp{groups}"),
        Kind::Straight(count) => format!("straight{count}"),
        Kind::Bipartition => "bipartition".into(),
    }
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn every_published_plan_comes_out_again() {
    let root = reference::root();
    let mut inputs: BTreeMap<&str, States> = BTreeMap::new();
    let mut theirs: BTreeMap<usize, Vec<_>> = BTreeMap::new();
    dapple_candidates().for_each(|candidate| theirs.entry(candidate.case).or_default().push(candidate));
    let mut wrong = vec![];
    let (mut count, mut ties) = (0, 0);
    for (at, case) in dapple_cases().iter().enumerate() {
        let profile = inputs.entry(case.input).or_insert_with(|| states(&load(&root, case.input)).unwrap());
        let model = HpgoModel::new(profile, case.machines.clone(), case.batch, 16e9, case.model, Faults::KEPT);
        let mut wrong_if = |bad: bool, what: String| {
            count += 1;
            if bad {
                wrong.push(format!("case {at} {} {} {}: {what}", case.input, case.machines, case.batch));
            }
        };
        assert_eq!(Some(model.states() as f64), case.number("states"));
        let plain = data_parallel(&model);
        for (column, ours) in [
            ("all_reduce_s", Some(plain.all_reduce_s)),
            ("max_batch_of_a_device", Some(plain.largest_batch as f64)),
            ("ga_size", plain.accumulation_size.map(f64::from)),
            ("ga_optimal", plain.optimal_accumulation_size.map(f64::from)),
            ("dp", Some(plain.plain)),
            ("dp_p3_infinite", Some(plain.p3_infinite)),
            ("dp_p3", plain.p3),
            ("dp_p3_optimal", plain.p3_optimal),
            ("dp_overlap", plain.overlap),
        ] {
            let published = case.number(column);
            let same = match (published, ours) {
                (Some(published), Some(ours)) => equal(ours, published),
                (None, _) => true,
                (Some(_), None) => false,
            };
            wrong_if(!same, format!("{column} {published:?}, ours {ours:?}"));
        }
        let all = candidates(&model, &Search::default());
        let event = |plan: &Candidate| event_speedup(&model, &plan.stages, plan.pipelines);
        for published in theirs.get(&at).into_iter().flatten() {
            let ours = all.plans.iter().find(|plan| name(plan.kind) == published.kind);
            let (Some(speedup), Some(ours)) = (published.speedup, ours) else {
                wrong_if(published.speedup.is_some() != ours.is_some(), format!("{} {ours:?}", published.kind));
                continue;
            };
            wrong_if(!equal(ours.speedup, speedup), format!("{} {speedup}, ours {}", published.kind, ours.speedup));
            let shown = written(&model, &ours.stages);
            if shown != published.stages
                && equal(ours.speedup, speedup)
                && ours.speedup < 0.5 * case.number("hybrid").unwrap()
            {
                // Cuts of one bottleneck are equally good; which one is met first hangs on a last bit.
                ties += 1;
            } else {
                wrong_if(shown != published.stages, format!("{} {}, ours {shown}", published.kind, published.stages));
            }
            wrong_if(Some(ours.pipelines) != published.pipelines, format!("{} pipelines", published.kind));
            let event = event(ours);
            let same = published.event.is_none_or(|theirs| event.is_some_and(|ours| equal(ours, theirs)));
            wrong_if(!same, format!("{} event {:?}, ours {event:?}", published.kind, published.event));
        }
        let best = all.best().expect("a plan");
        let many = all.best_of_many_stages();
        wrong_if(!equal(best.speedup, case.number("hybrid").unwrap()), format!("hybrid {}", best.speedup));
        wrong_if(written(&model, &best.stages) != case.text("hybrid_stages"), "hybrid stages".into());
        let same = case.number("multistage").is_none_or(|theirs| many.is_some_and(|many| equal(many.speedup, theirs)));
        wrong_if(!same, format!("multistage {many:?}"));
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 9000 && ties <= 1, "{count} figures, {ties} ties");
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn no_plan_is_slower_than_the_published_planners_when_both_are_simulated() {
    let root = reference::root();
    let (mut proven, mut count) = (0, 0);
    for (at, case) in dapple_cases().iter().enumerate() {
        let workload = Arc::new(of_batch(&load(&root, case.input), f64::from(case.model.profile_batch)));
        let (devices, machines) = (case.machines.devices(), case.machines.clone());
        let limits = Limits { devices, machines, batch: Some(case.batch), memory_bytes: Some(16e9), ..Limits::NEUTRAL };
        let run = |id: &str| {
            let planner = planner::find(id).unwrap();
            let mut options = Options::defaults(planner.options());
            for (name, value) in [
                ("micro_batch", f64::from(case.model.micro_batch)),
                ("optimizer_memory_scaling", case.model.optimizer_memory_scaling),
                ("peak_activation_per_sample", case.model.peak_activation_per_sample),
            ] {
                options.set(name, OptionValue::Number(value));
            }
            let problem = Problem { workload: Arc::clone(&workload), limits: limits.clone(), options };
            let (outcome, _) = run::plan(planner, &problem, &Search::default()).unwrap();
            let plan = outcome.plan.as_ref().unwrap_or_else(|| panic!("case {at}: {id} finds no plan"));
            let pipeline = family::pipeline(&workload, &limits, plan, &SimulatorSettings::default());
            (simulate(&pipeline, Schedule::OneForwardOneBackward).iteration_s, outcome.status)
        };
        let ((theirs, _), (ours, status)) = (run("dapple-hpgo"), run("dapple"));
        assert!(ours <= theirs * (1.0 + 1e-9), "case {at} {}: {ours} s, published {theirs} s", case.input);
        proven += usize::from(status == Status::Optimal);
        count += 1;
    }
    assert!(proven * 20 >= count * 19, "{proven} of {count} proven");
}
