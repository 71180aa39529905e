//! A restriction leaves fewer plans: the best of them is no better than the bound of all, and a plan of all that keeps the
//! restriction is among them.

use std::sync::Arc;

use plantui::{
    cluster::Limits,
    export::engine::{self, Engine, EngineSettings, ExportError},
    plan::Plan,
    planner::{Options, Outcome, Planner, Problem, Search, Status, joint::Joint},
    run,
    workload::{Profile, Workload},
};

use crate::{common::random_piper::Random, joint::network, joint_engine::transformer};

fn planned(workload: &Arc<Workload>, limits: &Limits, settings: &[String]) -> Outcome {
    let options = Options::parse("joint", Joint.options(), settings.iter().map(String::as_str)).unwrap();
    let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options };
    run::plan(&Joint, &problem, &Search::default()).unwrap().0
}

const ENGINES: [&str; 5] = ["megatron", "deepspeed", "torch", "torchtitan", "galvatron"];

/// What joint is asked for without the restriction.
fn asked(random: &mut Random, engine: Option<&str>) -> Vec<String> {
    let schedules: &[&str] = match engine {
        Some("megatron") => &["1f1b", "interleaved", "auto"],
        Some("deepspeed") => &["1f1b"],
        Some("galvatron") => &["1f1b", "gpipe", "auto"],
        Some(_) => &["1f1b", "gpipe", "interleaved", "zb-v", "auto"],
        None => &["1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "auto"],
    };
    let mut settings = vec![format!("schedule={}", random.pick(schedules))];
    settings.extend(engine.map(|engine| format!("engine={engine}")));
    if random.chance(20) {
        settings.push(format!("recompute={}", random.pick(&["never", "always", "all-or-none"])));
    }
    settings
}

/// A restriction that may leave any plans; of an engine where none is asked for yet.
fn any_restriction(random: &mut Random, engine: bool) -> String {
    match random.below(if engine { 8 } else { 10 }) {
        0 => format!("stages={}", 1 + random.below(8)),
        1 => format!("virtual_stages={}", 2 + random.below(4)),
        2 => format!("tensor_degree={}", random.pick(&[1, 2, 4])),
        3 => "data_parallel=false".into(),
        4 => "tensor_parallel=false".into(),
        5 => "recompute=never".into(),
        6 => "recompute=always".into(),
        7 => "recompute=all-or-none".into(),
        _ => format!("engine={}", random.pick(&ENGINES)),
    }
}

/// The same network, some nodes of which offer one mode only.
fn with_single_modes(random: &mut Random, mut workload: Workload) -> Workload {
    if let Profile::Piper(profile) = &mut workload.profile {
        for node in &mut profile.nodes {
            let kept = random.pick(&[None, None, None, Some(0), Some(1)]);
            for degree in &mut node.degrees {
                if let Some(mode) = kept.and_then(|own: usize| degree.modes.get(own).cloned()) {
                    degree.modes = vec![mode];
                }
            }
        }
    }
    workload
}

/// What the engine asked for cannot run of a plan.
fn broken(workload: &Workload, limits: &Limits, plan: &Plan, settings: &[String]) -> Option<String> {
    let engine = settings.iter().find_map(|own| own.strip_prefix("engine="))?;
    let engine = Engine::ALL.into_iter().find(|own| own.id() == engine)?;
    let exact = EngineSettings { micro_batch_size: Some(1), ..EngineSettings::default() };
    match engine::export(engine, workload, limits, plan, &exact) {
        Ok(exported) => exported.losses.into_iter().next(),
        Err(ExportError::NoBlocks(_)) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Restrictions that a plan keeps.
fn kept_by(outcome: &Outcome) -> Vec<String> {
    let plan = outcome.plan.as_ref().unwrap();
    let execution = plan.execution.unwrap_or_default();
    let mut kept = vec![
        format!("stages={}", plan.stages.len()),
        format!("tensor_degree={}", plan.stages[0].tensor_parallel),
        format!("schedule={}", execution.schedule.id()),
    ];
    if execution.virtual_stages > 1 && execution.schedule.id() == "interleaved" {
        kept.push(format!("virtual_stages={}", execution.virtual_stages));
    }
    if plan.stages.iter().all(|stage| stage.data_parallel == 1) {
        kept.push("data_parallel=false".into());
    }
    kept
}

fn told(workload: &Workload, limits: &Limits, settings: &[String]) -> String {
    format!(
        "{} nodes, {} devices, {} microbatches, {:?} bytes, {:?}: {settings:?}",
        workload.nodes.len(),
        limits.devices,
        limits.microbatches,
        limits.memory_bytes,
        limits.bandwidth_bytes_per_s
    )
}

/// Searches so many restricted problems; the number of those that had a plan.
fn restricted(seed: u64, count: usize) -> usize {
    let mut random = Random(seed);
    let (mut searched, mut with_plan) = (0, 0);
    while searched < count {
        let engines = random.chance(70);
        let network = if engines { transformer(&mut random) } else { network(&mut random) };
        let single = random.chance(25);
        let workload = Arc::new(if single { with_single_modes(&mut random, network) } else { network });
        if Joint.can_plan(&workload).is_err() {
            continue;
        }
        let limits = Limits {
            devices: random.pick(&[2, 4, 6, 8, 16, 32]),
            microbatches: random.pick(&[1, 2, 4, 6, 8, 12, 24, 48]),
            memory_bytes: Some(if engines { 8.0 + random.amount(60, false) } else { 4.0 + random.amount(20, false) }),
            bandwidth_bytes_per_s: Some(random.pick(&[1.0, 5.0, 1000.0])),
            ..Limits::NEUTRAL
        };
        let engine = (engines && random.chance(70)).then(|| random.pick(&ENGINES));
        let settings = asked(&mut random, engine);
        let all = planned(&workload, &limits, &settings);
        let with = |more: &[String]| {
            let mut both = settings.clone();
            both.retain(|own| !more.iter().any(|new| new.split('=').next() == own.split('=').next()));
            both.extend_from_slice(more);
            both
        };
        for _ in 0..3 {
            let restriction = any_restriction(&mut random, engine.is_some() || !engines);
            // Another value of an option is another question.
            let name = restriction.split('=').next();
            // And engines know repeated layers where other plans have nodes: `all-or-none` is of these or of those.
            let other = settings.contains(&"recompute=all-or-none".into()) && name == Some("engine");
            if other || settings.iter().any(|own| own.split('=').next() == name) {
                continue;
            }
            let narrow = with(&[restriction]);
            let fewer = planned(&workload, &limits, &narrow);
            searched += 1;
            let told = told(&workload, &limits, &narrow);
            let refused = fewer.plan.as_ref().and_then(|plan| broken(&workload, &limits, plan, &narrow));
            assert_eq!(refused, None, "{told}");
            match (&all.plan, fewer.objective) {
                (None, _) => assert_eq!(fewer.status, Status::Infeasible, "{told}: {all:?} {fewer:?}"),
                (Some(_), Some(value)) => {
                    with_plan += 1;
                    let bound = all.lower_bound.unwrap_or(0.0);
                    assert!(value >= bound * (1.0 - 1e-9), "{told}: {value} below the bound {bound} of all");
                }
                _ => {}
            }
        }
        if let Some(value) = all.objective {
            let kept = kept_by(&all);
            let own = random.below(kept.len());
            for narrow in [with(&kept[own..=own]), with(&kept)] {
                let fewer = planned(&workload, &limits, &narrow);
                searched += 1;
                with_plan += 1;
                let told = told(&workload, &limits, &narrow);
                let found = fewer.objective.unwrap_or_else(|| panic!("{told}: {value} exists: {fewer:?}"));
                let bound = fewer.lower_bound.unwrap_or(0.0);
                assert!(bound <= value * (1.0 + 1e-9), "{told}: bound {bound}, {value} exists");
                // A plan within the gap asked for is as good.
                assert!(found <= value * 1.0011, "{told}: {found}, {value} exists");
            }
        }
    }
    with_plan
}

#[test]
fn restrictions_leave_no_better_plan_and_lose_none() {
    assert!(restricted(41, 2000) > 1000);
}
