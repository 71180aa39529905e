//! vLLM: number of layers that each pipeline stage serves. Replicas are separate servers; recomputation does not apply.

use super::{cut::CutStage, job::EngineJob};

pub(super) fn text(job: &EngineJob<'_>) -> String {
    let layers: Vec<String> = job.cut.stages.iter().map(CutStage::blocks).map(|count| count.to_string()).collect();
    let (d, t) = (job.data_parallel(), job.tensor_parallel());
    let replicas = if d > 1 {
        format!("# the plan has {d} replicas: run {d} such servers behind a balancer\n")
    } else {
        String::new()
    };
    format!(
        "{replicas}VLLM_PP_LAYER_PARTITION={} vllm serve \"$MODEL\" --pipeline-parallel-size {} --tensor-parallel-size {t}\n",
        layers.join(","),
        job.ranks(),
    )
}
