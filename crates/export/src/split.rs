//! Published split format of device placements, for tools that read the published programs' results.

use plantui_core::{
    cluster::Limits,
    family::{self, placement::split_file},
    plan::{Measure, Plan},
    workload::Workload,
};

/// Plan as `{"maxLoad" or "totalLatency", "fpgas": [{"nodes"}], "cpus": [{"nodes"}]}`, ending in a newline. The format
/// has no subgraphs: those of an accelerator are joined, and the latency is that of the published evaluation.
pub fn to_json(workload: &Workload, limits: &Limits, plan: &Plan) -> String {
    let measure = match plan.measure {
        Measure::Latency { .. } => Measure::Latency { subgraphs: None },
        measure => measure,
    };
    let plan = plan.measured_by(measure);
    split_file::to_json(workload, &plan, &family::check(workload, limits, &plan))
}
