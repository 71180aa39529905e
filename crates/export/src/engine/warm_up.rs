//! Warm-ups that an engine does not support.

use super::Engine;
use plantui_core::plan::{Plan, WarmUp};

/// Note on a plan whose warm-up the engine lacks: the cumulative warm-up over stages with different replicas.
pub(super) fn note(engine: Engine, plan: &Plan) -> Option<String> {
    let rounds_on = plan.execution.is_some_and(|own| own.warm_up == WarmUp::Cumulative);
    (rounds_on && !plan.has_even_replicas()).then(|| {
        format!(
            "the plan needs the cumulative warm-up; {} starts one microbatch per later stage, so uneven replicas \
            wait for each other",
            engine.title()
        )
    })
}
