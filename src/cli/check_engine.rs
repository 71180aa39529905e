//! Whether a plan that was asked for an engine is one that the engine runs unchanged, as its exporter sees it.

use crate::{
    cluster::Limits,
    export::engine::{self, Engine, EngineSettings, ExportError},
    family::read::LoadedPlan,
    plan::runner::Runner,
    workload::Workload,
};

/// Why an engine whose rules the plan's options promise to keep cannot run it, a sentence; `None` if all can, and where
/// nothing was promised. What an engine cannot be given at all, because the workload has no numbered layers, is no promise.
pub(super) fn broken(workload: &Workload, limits: &Limits, loaded: &LoadedPlan) -> Option<String> {
    let runner = promised(loaded)?;
    let settings = EngineSettings { exact: true, micro_batch_size: Some(1), ..EngineSettings::default() };
    // A table of who does what when says less than the engine runs.
    let whole = Engine::ALL.into_iter().filter(|&engine| engine != Engine::TorchSchedule);
    let engines = whole.filter(|engine| match (runner, engine.runner()) {
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
    Some(format!("its options promise a plan that {engine} runs unchanged, and it cannot: {why}"))
}

/// The engine that the options name; all of them, where they ask for a plan of an engine and name none.
fn promised(loaded: &LoadedPlan) -> Option<Runner> {
    let asked = loaded.options.get("engine_feasible").is_some_and(|value| value.as_bool() == Some(true))
        || loaded.options.get("space").is_some_and(|value| value.as_str() == Some("engine"));
    let word = loaded.options.get("engine").and_then(|value| value.as_str()).unwrap_or("any");
    Runner::find(word).filter(|runner| asked || *runner != Runner::Any)
}
