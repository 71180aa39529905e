//! Check that a plan made for an engine runs there unchanged, by the engine's exporter.

use crate::{
    cluster::Limits,
    export::engine::{self, Engine, EngineSettings, ExportError},
    family::read::LoadedPlan,
    plan::runner::Runner,
    workload::Workload,
};

/// Reason why an engine cannot run the plan although the plan's options promise it, as a sentence. `None` if all
/// engines can, or nothing was promised. Workloads without numbered layers cannot be exported at all, which breaks no
/// promise.
pub(super) fn broken(workload: &Workload, limits: &Limits, loaded: &LoadedPlan) -> Option<String> {
    let runner = promised(loaded)?;
    let settings = EngineSettings { micro_batch_size: Some(1), ..EngineSettings::default() };
    let engines = Engine::ALL.into_iter().filter(|engine| match (runner, engine.runner()) {
        (Runner::Any, own) => own.is_some_and(|own| own != Runner::Any),
        (runner, own) => own == Some(runner),
    });
    let mut refusals =
        engines.filter_map(|engine| engine::export(engine, workload, limits, &loaded.plan, &settings).err());
    let (engine, why) = refusals.find_map(|error| match error {
        ExportError::Impossible { engine, losses } => Some((engine, losses.join("; "))),
        ExportError::Schedule { engine, schedule, reason } => Some((engine, format!("{schedule}: {reason}"))),
        _ => None,
    })?;
    Some(format!("its options state that {engine} runs the plan unchanged, and it cannot: {why}"))
}

/// Engine that the options name; any engine if they require an engine's plan and name none.
fn promised(loaded: &LoadedPlan) -> Option<Runner> {
    let asked = loaded.options.get("engine_feasible").is_some_and(|value| value.as_bool() == Some(true))
        || loaded.options.get("space").is_some_and(|value| value.as_str() == Some("engine"));
    let word = loaded.options.get("engine").and_then(|value| value.as_str()).unwrap_or("any");
    Runner::find(word).filter(|runner| asked || *runner != Runner::Any)
}
