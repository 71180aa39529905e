//! DeepSpeed: a `PipelineModule` that is cut where the plan says.
//!
//! `partition_method` knows no given cut, so a subclass sets the bounds itself: `parts[s] .. parts[s + 1]` are the entries
//! of the `layers` list that stage `s` builds.

use super::{Cut, Settings, torch::modules};

pub(super) fn text(cut: &Cut, settings: &Settings) -> String {
    let stages = modules(cut, &settings.names);
    let mut parts = vec![0];
    for stage in &stages {
        parts.push(parts.last().expect("it starts with one") + stage.len());
    }
    let bounds: Vec<String> = parts.iter().map(ToString::to_string).collect();
    let (entries, count) = (parts[stages.len()], stages.len());
    let recompute = cut.stages.iter().flat_map(|stage| &stage.recompute).any(|recompute| *recompute);
    let interval = u32::from(recompute);
    let (d, t) = (cut.data_parallel(), cut.tensor_parallel());
    let accumulation = (cut.microbatches / d).max(1);
    format!(
        "# {devices} ranks: {count} stages x {d} replicas x tensor degree {t}
# `layers` has {entries} entries: {listed}
# In the DeepSpeed configuration: \"train_micro_batch_size_per_gpu\": {micro}, \"gradient_accumulation_steps\": {accumulation}
from deepspeed.pipe import PipelineModule


class PlannedPipelineModule(PipelineModule):
    \"\"\"Stage s builds layers[PARTS[s]:PARTS[s + 1]].\"\"\"

    PARTS = [{bounds}]

    def _partition_layers(self, method=\"uniform\"):
        stage = self._topo.get_coord(self.global_rank).pipe
        self.parts = list(self.PARTS)
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])


def build(layers, **kwargs):
    assert len(layers) == {entries}, f\"the plan is for {entries} layers, here are {{len(layers)}}\"
    return PlannedPipelineModule(
        layers=layers, num_stages={count}, activation_checkpoint_interval={interval}, **kwargs
    )
",
        devices = cut.devices(),
        listed = listed(&stages.concat()),
        micro = cut.micro_batch_size,
        bounds = bounds.join(", "),
    )
}

/// The first and the last few names.
fn listed(names: &[String]) -> String {
    match names {
        [first, second, .., last] if names.len() > 6 => format!("{first}, {second}, .., {last}"),
        _ => names.join(", "),
    }
}
