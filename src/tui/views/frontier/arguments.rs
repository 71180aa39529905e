//! Engine's own arguments of two layouts: those that only one of them has.
//!
//! Both layouts are exported for the engine of the software stack, and the texts are compared line by line, without
//! comments. A layout that the engine cannot run as it is has none. `O(lines)`.

use crate::{
    cluster::Limits,
    export::engine::{self, Engine, EngineSettings},
    plan::Plan,
    workload::{Workload, training::Stack},
};

/// Arguments that differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArgumentChanges {
    /// Title of the engine.
    pub engine: &'static str,
    /// Arguments of the first layout alone.
    pub removed: Vec<String>,
    /// Arguments of the second layout alone.
    pub added: Vec<String>,
}

/// Engine of a software stack.
fn engine_of(stack: Stack) -> Engine {
    match stack {
        Stack::Torchtitan => Engine::TorchTitan,
        Stack::Megatron2025 | Stack::Nemo24 | Stack::Plain => Engine::Megatron,
    }
}

impl ArgumentChanges {
    /// Compares the arguments of two plans; `None` if the engine cannot run one of them as it is.
    pub(super) fn of(workload: &Workload, limits: &Limits, plans: [&Plan; 2]) -> Option<ArgumentChanges> {
        let engine = engine_of(workload.training()?.stack);
        let settings = EngineSettings::default();
        let lines = |plan: &Plan| -> Option<Vec<String>> {
            let export = engine::export(engine, workload, limits, plan, &settings).ok()?;
            let lines = export.text.lines().map(str::trim).filter(|line| is_argument(engine, line));
            export.losses.is_empty().then(|| lines.map(str::to_string).collect())
        };
        let [before, after] = [lines(plans[0])?, lines(plans[1])?];
        let alone =
            |own: &[String], other: &[String]| own.iter().filter(|line| !other.contains(line)).cloned().collect();
        let (removed, added) = (alone(&before, &after), alone(&after, &before));
        Some(ArgumentChanges { engine: engine.title(), removed, added })
    }

    /// Most lines of either side.
    pub(super) fn height(&self) -> usize {
        self.removed.len().max(self.added.len())
    }
}

/// True for a line that sets something.
fn is_argument(engine: Engine, line: &str) -> bool {
    match engine {
        Engine::Megatron => line.starts_with("--"),
        _ => !line.starts_with('#') && line.contains(" = "),
    }
}
