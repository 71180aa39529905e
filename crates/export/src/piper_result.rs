//! Piper's own result format, for tools that read the published program's results.

use plantui_core::{plan::Plan, workload::Workload};

/// Plan as `{"stages": [{"nodes", "dataParallelDegree", "tensorParallelDegree", "TMPCids"}]}`, ending in a newline.
pub(crate) fn to_json(workload: &Workload, plan: &Plan) -> String {
    plantui_core::family::pipeline::result_file::to_json(workload, plan)
}
