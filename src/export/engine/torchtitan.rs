//! torchtitan: the job's `parallelism` section, with the modules of every stage by name.

use super::{
    Cut, Settings,
    torch::{modules, quoted},
};
use crate::simulate::Schedule;

pub(super) fn text(cut: &Cut, settings: &Settings) -> String {
    let (d, t) = (cut.data_parallel(), cut.tensor_parallel());
    let schedule = match settings.schedule {
        Schedule::GPipe => "GPipe",
        _ => "1F1B",
    };
    let parts: Vec<String> = modules(cut, &settings.names)
        .iter()
        .map(|stage| format!("  [{}]", stage.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")))
        .collect();
    let recompute = cut.stages.iter().flat_map(|stage| &stage.recompute).any(|recompute| *recompute);
    let stages = cut.stages.len();
    format!(
        "# {} ranks: {stages} stages x {d} replicas x tensor degree {t}
# As flags: --parallelism.pipeline_parallel_degree {stages} --parallelism.tensor_parallel_degree {t} --parallelism.pipeline_parallel_schedule {schedule}
[parallelism]
pipeline_parallel_degree = {stages}
tensor_parallel_degree = {t}
data_parallel_replicate_degree = {d}
pipeline_parallel_schedule = \"{schedule}\"
module_fqns_per_model_part = [
{},
]

[activation_checkpoint]
mode = \"{}\"
",
        cut.devices(),
        parts.join(",\n"),
        if recompute { "full" } else { "none" },
    )
}
