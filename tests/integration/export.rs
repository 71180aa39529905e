//! What leaves plantui: a plan, taken through the simulator, as a trace and as JSON.

use crate::common::trace_rules;
use plantui::{
    cluster::Limits,
    export::{chrome_trace, plan_json},
    family,
    plan::{Plan, Stage},
    planner::{self, Options, Outcome, Status},
    simulate::{EventKind, Pipeline, Schedule, SimulatorSettings, Timeline, simulate},
    workload::{Choice, NodeIndex, Workload, load_bytes},
};
use serde_json::Value;

/// Four layers in a row and an edge from the first to the last, at tensor degrees 1 and 2, with two modes each.
fn workload() -> Workload {
    let node = |id: i64, before: &[i64], after: &[i64]| {
        let keyed = |ids: &[i64], bytes: f64| -> Value {
            ids.iter().map(|id| (id.to_string(), Value::from(bytes))).collect::<serde_json::Map<_, _>>().into()
        };
        let mode = |name: &str, time: f64, memory: f64, gather: f64| {
            serde_json::json!({"id": name, "timePerSample": time, "parameterSize": 1000.0, "memoryUsageA": memory,
                "memoryUsageB": 500.0, "syncTimeFw": keyed(before, gather), "syncTimeBw": keyed(after, 2.0 * gather)})
        };
        serde_json::json!({"id": id, "name": format!("layer {id}"), "TMPCs": {
            "1": [mode("vanilla", 3.0, 100.0, 0.0), mode("activation recomp", 4.0, 10.0, 0.0)],
            "2": [mode("vanilla", 1.5, 50.0, 20.0), mode("activation recomp", 2.0, 5.0, 20.0)],
        }})
    };
    let edge = |from: i64, to: i64| serde_json::json!({"sourceId": from, "destId": to, "communicationCost": 100.0});
    let file = serde_json::json!({
        "maxMemoryPerDevice": 1e6, "maxDevices": 8, "bandwidth": 1000.0, "mbsInBatch": 12,
        "nodes": [node(1, &[], &[2, 4]), node(2, &[1], &[3]), node(3, &[2], &[4]), node(4, &[3, 1], &[])],
        "edges": [edge(1, 2), edge(2, 3), edge(3, 4), edge(1, 4)],
    });
    load_bytes(file.to_string().as_bytes(), "test.json", "test").unwrap()
}

fn limits() -> Limits {
    Limits {
        devices: 8,
        cpus: 0,
        memory_bytes: Some(1e6),
        microbatches: 12,
        bandwidth_bytes_per_s: Some(1000.0),
        ..Limits::NEUTRAL
    }
}

fn plan() -> Plan {
    let stage = |nodes: &[usize], choice: &str, data_parallel, tensor_parallel| Stage {
        nodes: NodeIndex::list(nodes.iter().copied()),
        choices: vec![Choice::Mode(choice.into()); nodes.len()],
        data_parallel,
        tensor_parallel,
        devices: vec![],
    };
    Plan {
        stages: vec![
            stage(&[0], "vanilla", 3, 1),
            stage(&[1, 2], "activation recomp", 2, 1),
            stage(&[3], "vanilla", 1, 2),
        ],
        ..Plan::default()
    }
    .with_consecutive_devices()
}

#[test]
fn a_pipeline_costs_what_the_check_says() {
    let (workload, limits, plan) = (workload(), limits(), plan());
    let score = family::check(&workload, &limits, &plan);
    assert!(score.is_valid(), "{:?}", score.violations);
    let pipeline = family::pipeline(&workload, &limits, &plan, &SimulatorSettings::default());
    for (i, stage) in pipeline.stages.iter().enumerate() {
        let d = f64::from(stage.replicas);
        assert!((stage.forward_s + stage.backward_s - score.stages[i].compute_s * d).abs() < 1e-12);
        assert!((stage.all_reduce_s / 12.0 - score.stages[i].sync_s).abs() < 1e-12);
        let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
        assert_eq!(timeline.peak_memory_bytes[i], score.stages[i].memory_bytes);
    }
    // Recomputation is backward: forward is a third of the plain time.
    assert_eq!((pipeline.stages[1].forward_s, pipeline.stages[1].backward_s), (2.0, 6.0));
    assert!(pipeline.notes.iter().any(|note| note.contains("33.3%")), "{:?}", pipeline.notes);
    let moved: Vec<_> = pipeline.transfers.iter().map(|t| (t.from, t.to, t.bytes, t.seconds)).collect();
    // The last stage gathers 20 bytes for each incoming edge, its senders nothing.
    assert_eq!(moved, [(0, 1, 100.0, 0.1), (0, 2, 120.0, 0.12), (1, 2, 120.0, 0.12)]);
}

#[test]
fn broken_plans_make_a_pipeline_without_panic() {
    let (workload, limits) = (workload(), limits());
    let mut plan = plan();
    plan.stages.reverse();
    plan.stages[0].choices[0] = Choice::Mode("no such mode".into());
    plan.stages[1].nodes[1] = NodeIndex::new(99);
    plan.stages[2].data_parallel = 0;
    let pipeline = family::pipeline(
        &workload,
        &limits,
        &plan,
        &SimulatorSettings { forward_share: 7.0, ..SimulatorSettings::default() },
    );
    assert_eq!(pipeline.transfers, []);
    assert!(simulate(&pipeline, Schedule::GPipe).iteration_s >= 0.0);
    let none = family::pipeline(&workload, &limits, &Plan::default(), &SimulatorSettings::default());
    assert_eq!(simulate(&none, Schedule::GPipe), Timeline::default());
}

#[test]
fn a_trace_can_be_replayed() {
    let (workload, limits, plan) = (workload(), limits(), plan());
    let pipeline = family::pipeline(&workload, &limits, &plan, &SimulatorSettings::default());
    for schedule in pipeline.playable() {
        let timeline = simulate(&pipeline, schedule);
        let trace = trace_rules::read(&chrome_trace::to_json(&plan, &pipeline, schedule, &timeline));
        assert!((trace.end / 1e6 - timeline.iteration_s).abs() < 1e-9);
        let mut first_device = 0;
        for (stage, planned) in plan.stages.iter().enumerate() {
            assert!((trace.busy((first_device, 0)) / 1e6 - timeline.busy_s[stage]).abs() < 1e-9);
            first_device += u64::from(planned.device_count());
        }
        let transfers = timeline
            .events
            .iter()
            .filter(|e| matches!(e.kind, EventKind::SendActivation { .. } | EventKind::SendGradient { .. }));
        assert_eq!(trace.arrows.len(), transfers.count());
        let expected =
            ["GPU0 stage1 rep0", "GPU1 stage1 rep1", "GPU2 stage1 rep2", "GPU3 stage2 rep0", "GPU4 stage2 rep1"];
        let expected = expected.into_iter().chain(["GPU5-6 stage3 rep0", "links"]).map(String::from);
        assert_eq!(trace.processes, expected.collect());
    }
}

#[test]
fn a_trace_of_nothing_is_json() {
    let trace = chrome_trace::to_json(&Plan::default(), &Pipeline::default(), Schedule::GPipe, &Timeline::default());
    assert_eq!(serde_json::from_str::<Value>(&trace).unwrap()["traceEvents"], serde_json::json!([]));
}

#[test]
fn a_plan_document_comes_back_as_the_plan() {
    let (workload, limits, plan) = (workload(), limits(), plan());
    let score = family::check(&workload, &limits, &plan);
    let pipeline = family::pipeline(&workload, &limits, &plan, &SimulatorSettings::default());
    let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
    let planner = planner::find("piper").unwrap();
    let options = Options::defaults(planner.options());
    let outcome = Outcome {
        plan: Some(plan.clone()),
        objective: Some(score.value),
        lower_bound: Some(f64::NEG_INFINITY),
        notes: vec!["a note".into()],
        ..Outcome::new(Status::Feasible)
    };
    let simulation = plan_json::ReportedSimulation {
        pipeline: &pipeline,
        schedule: Schedule::OneForwardOneBackward,
        timeline: &timeline,
    };
    let run = plan_json::ReportedRun {
        workload: &workload,
        limits: &limits,
        planner: planner.info(),
        options: &options,
        outcome: &outcome,
        score: Some(&score),
        simulation: Some(simulation),
    };
    let text = plan_json::to_json(&plan_json::document(&run));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["schema"], "plantui.plan/1");
    assert_eq!(value["status"], "feasible");
    assert_eq!(value["lower_bound"], Value::Null);
    assert_eq!(value["objective"]["name"], "time_per_sample");
    assert_eq!(value["simulation"]["iteration_s"].as_f64(), Some(timeline.iteration_s));
    assert_eq!(value["stages"][0]["choices"]["1"], "vanilla");
    let read = family::read::read(&workload, &text, "plan.json").unwrap();
    assert_eq!(read.plan, plan);
    assert_eq!(read.claims.value, Some(score.value));
    let failed = Outcome::new(Status::Cancelled);
    let run = plan_json::ReportedRun { outcome: &failed, score: None, simulation: None, ..run };
    let value = serde_json::to_value(plan_json::document(&run)).unwrap();
    assert_eq!((&value["stages"], &value["objective"]), (&serde_json::json!([]), &Value::Null));
}
