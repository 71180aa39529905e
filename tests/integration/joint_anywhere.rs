//! Joint's space of stages of any degrees: never slower than what engines run or than Piper's own plan, and its bound under
//! what trying every plan finds.

use std::sync::Arc;

use crate::common::random_piper::{Flavour, Random, edges, workload};
use plantui::{
    cluster::{GivenLimits, Limits},
    family::{self, check},
    plan::{Execution, Measure, Plan, Stage, WarmUp},
    planner::{Options, Outcome, Planner, Problem, Search, Status, joint::Joint, piper::Piper},
    run,
    workload::{Choice, NodeIndex, Workload, load, load_bytes},
};

fn planned(planner: &dyn Planner, workload: &Arc<Workload>, limits: &Limits, settings: &[&str]) -> Outcome {
    let options = Options::parse(planner.info().id, planner.options(), settings.iter().copied()).unwrap();
    let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options };
    // Confirmed by the check, which measures batches itself.
    run::plan(planner, &problem, &Search::default()).unwrap().0
}

/// Seconds of a batch by the check under both rules of the warm-up; those that keep the memory.
fn batches(workload: &Workload, limits: &Limits, plan: &Plan) -> Vec<f64> {
    let run = |warm_up| {
        let execution = Some(Execution { warm_up, ..Execution::default() });
        let plan = Plan { execution, measure: Measure::IterationTime, ..plan.clone() };
        let score = check(workload, limits, &plan);
        score.is_valid().then_some(score.value)
    };
    WarmUp::ALL.into_iter().filter_map(run).collect()
}

/// The least time of a batch over every plan: all ordered partitions, degrees, replicas and modes.
struct Every<'a> {
    workload: &'a Workload,
    limits: Limits,
    least: Option<f64>,
    plans: usize,
}

impl Every<'_> {
    /// Puts every stage behind those that there are.
    fn go_on(&mut self, plan: &mut Plan, done: u32, devices: u32) {
        let n = self.workload.nodes.len();
        if done == (1 << n) - 1 {
            self.plans += 1;
            let found = batches(self.workload, &self.limits, plan).into_iter().reduce(f64::min);
            self.least = self.least.into_iter().chain(found).reduce(f64::min);
            return;
        }
        let (workload, all) = (self.workload, self.limits.microbatches);
        let profile = workload.piper().unwrap();
        for members in 1..1u32 << n {
            let closed = |v: usize| workload.dag.predecessors(v).all(|u| (done | members) >> u & 1 == 1);
            let nodes: Vec<usize> = (0..n).filter(|v| members >> v & 1 == 1).collect();
            if members & done != 0 || !nodes.iter().all(|&v| closed(v)) {
                continue;
            }
            for t in profile.degrees() {
                for d in (1..=all).filter(|d| all.is_multiple_of(*d)) {
                    if d * t > devices || nodes.iter().any(|&v| profile.nodes[v].modes(t).is_none()) {
                        continue;
                    }
                    let lists: Vec<_> = nodes.iter().map(|&v| profile.nodes[v].modes(t).unwrap()).collect();
                    for mut number in 0..lists.iter().map(|list| list.len()).product() {
                        let choice = |list: &&[plantui::workload::Mode]| {
                            let at = number % list.len();
                            number /= list.len();
                            Choice::Mode(list[at].id.clone())
                        };
                        let choices = lists.iter().map(choice).collect();
                        let nodes = NodeIndex::list(nodes.iter().copied());
                        let stage = Stage { nodes, choices, data_parallel: d, tensor_parallel: t, devices: vec![] };
                        plan.stages.push(stage);
                        self.go_on(plan, done | members, devices - d * t);
                        plan.stages.pop();
                    }
                }
            }
        }
    }
}

#[test]
fn no_plan_goes_below_the_bound_and_none_of_the_others_is_faster() {
    let (mut tried, mut better, mut near, mut uneven, mut none) = (0, 0, 0, 0, 0);
    for seed in 0..60 {
        let mut random = Random(seed);
        let n = 2 + random.below(2);
        let flavour = Flavour { whole: false, uniform: random.chance(70), all_recompute: true, most_modes: 2 };
        let edges = edges(&mut random, n);
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let limits = Limits {
            cpus: 0,
            devices: 2 + random.below(3) as u32,
            memory_bytes: Some(random.pick(&[60.0, 150.0, 1e9])),
            microbatches: random.pick(&[4, 6]),
            bandwidth_bytes_per_s: Some(random.pick(&[2.0, 8.0, 1e3])),
            ..Limits::NEUTRAL
        };
        let mut every = Every { workload: &workload, limits: limits.clone(), least: None, plans: 0 };
        every.go_on(&mut Plan::default(), 0, limits.devices);
        if Joint.can_plan(&workload).is_err() {
            continue;
        }
        let any = planned(&Joint, &workload, &limits, &["space=any"]);
        let Some(least) = every.least else {
            none += 1;
            assert_eq!(any.status, Status::Infeasible, "seed {seed}");
            continue;
        };
        tried += 1;
        let value = any.objective.unwrap_or_else(|| panic!("seed {seed}: {least} is possible, {any:?}"));
        let bound = any.lower_bound.unwrap();
        assert!(bound <= least * (1.0 + 1e-9), "seed {seed}: bound {bound}, {least} is possible");
        assert!(value >= least * (1.0 - 1e-6), "seed {seed}: claims {value}, {least} of {} plans", every.plans);
        let runnable = planned(&Joint, &workload, &limits, &[]).objective.unwrap_or(f64::INFINITY);
        assert!(value <= runnable * (1.0 + 1e-9), "seed {seed}: {value}, engines {runnable}");
        for settings in [&[][..], &["warmup=cumulative"], &["stages=2"]] {
            let plan = planned(&Piper, &workload, &limits, settings).plan;
            for own in plan.iter().flat_map(|plan| batches(&workload, &limits, plan)) {
                assert!(value <= own * (1.0 + 1e-6), "seed {seed}: {value}, Piper's {own} with {settings:?}");
            }
        }
        better += usize::from(value < runnable * (1.0 - 1e-6));
        near += usize::from(value <= least * 1.02);
        let stages = any.plan.unwrap().stages;
        uneven += usize::from(stages.windows(2).any(|pair| pair[0].data_parallel != pair[1].data_parallel));
    }
    println!(
        "tried {tried}, better than engines {better}, within 2 % of the best {near}, uneven {uneven}, none {none}"
    );
    assert!(tried > 25 && better > 3 && near * 2 > tried && uneven > 1);
}

#[test]
fn a_branching_network_takes_no_longer_than_pipers_plan() {
    let workload = Arc::new(load("inputs/tiny-branch.json".as_ref()).unwrap());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let any = planned(&Joint, &workload, &limits, &["space=any"]);
    let (any_s, engines_s) = (any.objective.unwrap(), planned(&Joint, &workload, &limits, &[]).objective.unwrap());
    let piper = planned(&Piper, &workload, &limits, &[]).plan.unwrap();
    let piper_s = batches(&workload, &limits, &piper)[0];
    assert!(any_s <= piper_s && piper_s < engines_s, "{any_s} {piper_s} {engines_s}");
    assert!(any.notes[0].contains("cannot run this plan"), "{:?}", any.notes);
    assert_eq!(any.proven_among.as_deref(), Some("pipelines with stages of any degrees under 1F1B"));
}

#[test]
fn what_is_asked_of_stages_and_degrees_holds_for_other_planners_plans_too() {
    let workload = Arc::new(load("inputs/bert32a100.json".as_ref()).unwrap());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    let limits = Limits { devices: 8, memory_bytes: Some(80e9), ..limits.clone() };
    let settings = ["space=any", "stages=3", "tensor_degree=1", "recompute=never", "data_parallel=true"];
    let plan = planned(&Joint, &workload, &limits, &settings).plan.unwrap();
    assert_eq!(plan.stages.len(), 3);
    assert!(
        plan.stages
            .iter()
            .all(|stage| stage.tensor_parallel == 1 && stage.choices.iter().all(|choice| choice.is_mode("vanilla")))
    );
    let whole = planned(&Joint, &workload, &limits, &["space=any", "tensor_degree=2"]).plan.unwrap();
    assert!(whole.stages.iter().all(|stage| stage.tensor_parallel == 2));
}

#[test]
fn that_no_plan_fits_is_said_only_where_it_is_known() {
    let (mut proven, mut open, mut smallest) = (0, 0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let n = 3 + random.below(2);
        let flavour = Flavour { whole: true, uniform: true, all_recompute: false, most_modes: 2 };
        let edges = edges(&mut random, n);
        let workload = Arc::new(workload(&mut random, n, edges, flavour));
        let limits = Limits {
            devices: 2 + random.below(3) as u32,
            memory_bytes: Some(random.pick(&[20.0, 30.0, 40.0])),
            microbatches: random.pick(&[3, 4, 6]),
            bandwidth_bytes_per_s: Some(8.0),
            ..Limits::NEUTRAL
        };
        if Joint.can_plan(&workload).is_err() {
            continue;
        }
        let settings = ["space=any", "schedule=gpipe"];
        let any = planned(&Joint, &workload, &limits, &settings);
        let piper = planned(&Piper, &workload, &limits, &[]);
        let Some(infeasible) = &any.infeasible else {
            let engines = planned(&Joint, &workload, &limits, &settings[1..]);
            smallest += usize::from(engines.plan.is_none());
            continue;
        };
        // 1F1B holds less than GPipe: where nothing fits under it, nothing does.
        let told = if piper.plan.is_none() { "is feasible either." } else { "may fit." };
        assert!(infeasible.explanation.ends_with(told), "seed {seed}: {}", infeasible.explanation);
        proven += usize::from(piper.plan.is_none());
        open += usize::from(piper.plan.is_some());
        if let Some(memory) = infeasible.smallest_memory_bytes {
            let limits = Limits { memory_bytes: Some(memory), ..limits.clone() };
            assert!(planned(&Joint, &workload, &limits, &settings).plan.is_some(), "seed {seed}: {memory} would do");
        }
    }
    println!("proven {proven}, open {open}, found beyond what engines run {smallest}");
    assert!(proven > 10 && open > 0 && smallest > 3, "{proven} {open} {smallest}");
}

/// A row of layers of a second each that hold so many bytes, and what their outputs take.
fn row(bytes: &[f64], output_bytes: f64) -> Arc<Workload> {
    let node = |v: usize| {
        let ends = |other: Option<usize>| other.map_or(String::new(), |other| format!("\"{other}\": 0"));
        let (before, after) = (ends(v.checked_sub(1)), ends(Some(v + 1).filter(|&next| next < bytes.len())));
        format!(
            r#"{{"id": {v}, "TMPCs": {{"1": [{{"id": "vanilla", "timePerSample": 1, "parameterSize": 0, "memoryUsageA": 0, "memoryUsageB": {}, "syncTimeFw": {{{before}}}, "syncTimeBw": {{{after}}}}}]}}}}"#,
            bytes[v]
        )
    };
    let edge = |v: usize| format!(r#"{{"sourceId": {v}, "destId": {}, "communicationCost": {output_bytes}}}"#, v + 1);
    let nodes: Vec<String> = (0..bytes.len()).map(node).collect();
    let edges: Vec<String> = (0..bytes.len() - 1).map(edge).collect();
    let text = format!(
        r#"{{"maxMemoryPerDevice": 8, "maxDevices": 2, "bandwidth": 1, "mbsInBatch": 1, "nodes": [{}], "edges": [{}]}}"#,
        nodes.join(", "),
        edges.join(", ")
    );
    Arc::new(load_bytes(text.as_bytes(), "row.json", "row").unwrap())
}

#[test]
fn a_stage_that_fills_a_device_to_the_last_fraction_of_a_byte_fits_as_the_check_says() {
    let limits = |devices, memory| Limits {
        devices,
        memory_bytes: Some(memory),
        microbatches: 2,
        bandwidth_bytes_per_s: Some(1.0),
        ..Limits::NEUTRAL
    };
    // 7.699999999999999 in the order of the check.
    let fits = planned(&Joint, &row(&[3.3, 3.3, 1.1], 1e3), &limits(2, 7.7), &[]);
    assert_eq!(fits.objective, Some(3.0));
    // A little more: no plan of one stage, and a bound that knows of it all the same.
    let workload = row(&[1.1, 2.2, 3.300000000001], 1.0);
    let cut = planned(&Joint, &workload, &limits(2, 6.6), &[]);
    assert_eq!((cut.status, cut.plan.map(|plan| plan.stages.len())), (Status::Feasible, Some(2)));
    assert!(cut.objective > Some(3.5) && cut.lower_bound <= Some(3.0), "{:?} {:?}", cut.objective, cut.lower_bound);
    assert!(cut.lower_bound > Some(2.99));
    assert_eq!(planned(&Joint, &workload, &limits(1, 6.6), &[]).status, Status::Infeasible);
}
