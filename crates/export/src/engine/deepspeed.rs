//! DeepSpeed: a `PipelineModule` that is cut as planned, and its configuration.
//!
//! `partition_method` cannot express given cuts, so a subclass sets the bounds itself: stage `s` builds the entries
//! `parts[s] .. parts[s + 1]` of the `layers` list. Checkpointing by interval would wrap everything with parameters,
//! the embedding included. Reentrant checkpointing then loses the embedding's gradients; DeepSpeed's own GPT modules
//! are exempt for that reason. With an interval of 1, DeepSpeed calls `_is_checkpointable` for every entry, so the
//! subclass answers as planned, layer by layer.

use super::{
    job::EngineJob,
    python,
    torch::{modules, modules_by_layer},
};
use plantui_core::workload::{layering::LayerPosition, recipe::Precision};

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let stages = modules(&job.parts.parts, job.names);
    let mut parts = vec![0];
    for stage in &stages {
        parts.push(parts.last().expect("it starts with one") + stage.len());
    }
    let bounds: Vec<String> = parts.iter().map(ToString::to_string).collect();
    let (entries, count) = (parts[stages.len()], stages.len());
    let recomputed = recomputed_entries(job);
    let interval = u32::from(!recomputed.is_empty());
    let recomputed: Vec<String> = recomputed.iter().map(ToString::to_string).collect();
    let (d, t) = (job.data_parallel(), job.tensor_parallel());
    let (import, topology) = if t > 1 {
        (
            "from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology\n",
            format!("topology=PipeModelDataParallelTopology(num_pp={count}, num_mp={t}, num_dp={d})"),
        )
    } else {
        ("", format!("num_stages={count}"))
    };
    format!(
        "# {layout}
# `layers` has {entries} entries: {listed}
# DeepSpeed clips gradients at 1.0 unless \"gradient_clipping\" in its configuration says otherwise.
from deepspeed.pipe import PipelineModule
{import}
# For deepspeed.initialize(config=CONFIG), with your optimizer added.
CONFIG = {{
{config}}}
{sequence}

class PlannedPipelineModule(PipelineModule):
    \"\"\"Stage s builds layers[PARTS[s]:PARTS[s + 1]]; the entries in RECOMPUTED recompute their activations.\"\"\"

    PARTS = [{bounds}]
    RECOMPUTED = {{{recomputed}}}

    def _partition_layers(self, method=\"uniform\"):
        stage = self._topo.get_coord(self.global_rank).pipe
        self.parts = list(self.PARTS)
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])

    def _is_checkpointable(self, funcs):
        entries = [i for i, func in enumerate(self.forward_funcs) if func is funcs[0]]
        return any(self._local_start + i in self.RECOMPUTED for i in entries)


def build(layers, **kwargs):
    assert len(layers) == {entries}, f\"the plan is for {entries} layers, here are {{len(layers)}}\"
    return PlannedPipelineModule(
        layers=layers, {topology}, activation_checkpoint_interval={interval}, **kwargs
    )
",
        layout = job.layout_line(),
        listed = listed(&stages.concat()),
        config = config(job),
        sequence =
            python::assignment("", "SEQUENCE_LENGTH", python::sequence_length(&job.recipe), "tokens in a sequence"),
        bounds = bounds.join(", "),
        recomputed = if recomputed.is_empty() { "*()".into() } else { recomputed.join(", ") },
    )
}

/// Lines of the configuration.
fn config(job: &EngineJob<'_>) -> String {
    let mut lines = match job.cut.micro_batch_size {
        Some(size) => format!("    \"train_micro_batch_size_per_gpu\": {size},\n"),
        None => "    # fill in: \"train_micro_batch_size_per_gpu\": samples in a microbatch,\n".into(),
    };
    lines += &format!("    \"gradient_accumulation_steps\": {},\n", job.own_microbatches());
    match job.recipe.precision {
        Some(Precision::Bf16) => lines += "    \"bf16\": {\"enabled\": True},\n",
        Some(Precision::Fp16) => lines += "    \"fp16\": {\"enabled\": True},\n",
        Some(Precision::Fp32) => {}
        None => lines += "    # fill in the precision, for example \"bf16\": {\"enabled\": True},\n",
    }
    if job.shards_optimizer() {
        lines += "    \"zero_optimization\": {\"stage\": 1},\n";
        if job.recipe.precision == Some(Precision::Bf16) && !job.reduces_in_bf16() {
            lines += "    \"data_types\": {\"grad_accum_dtype\": \"fp32\"},\n";
        }
    }
    lines
}

/// Entries of `layers` that recompute; never the embedding.
fn recomputed_entries(job: &EngineJob<'_>) -> Vec<usize> {
    let mut entries = vec![];
    let mut next = 0;
    for (part, names) in job.parts.parts.iter().zip(modules_by_layer(&job.parts.parts, job.names)) {
        for ((kind, recompute), names) in part.layers.iter().zip(&part.recompute).zip(names) {
            let again = *recompute && *kind != LayerPosition::First;
            entries.extend((next..next + names.len()).filter(|_| again));
            next += names.len();
        }
    }
    entries
}

/// First and last few names, as literals: a name with a line break would end the comment.
fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| python::string(name)).collect();
    match &quoted[..] {
        [first, second, .., last] if names.len() > 6 => format!("{first}, {second}, .., {last}"),
        _ => quoted.join(", "),
    }
}
