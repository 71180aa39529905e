//! Piper (in work).
use super::*;
/// Piper's planner.
#[derive(Debug)]
pub struct Piper;
static INFO: PlannerInfo = PlannerInfo {
    id: "piper",
    name: "Piper",
    paper: "Tarnawski, Narayanan, Phanishayee: Piper: Multidimensional Planner for DNN Parallelization, NeurIPS 2021",
    summary: "Stages, replicas, tensor degree and recomputation with the least time per sample",
    objective: "time_per_sample",
    unit: "s",
};
impl Planner for Piper {
    fn info(&self) -> &'static PlannerInfo {
        &INFO
    }
    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }
    fn can_plan(&self, _: &Workload) -> Result<(), String> {
        Ok(())
    }
    fn plan(&self, _: &Problem, _: &Search) -> Outcome {
        Outcome::new(Status::Cancelled)
    }
}
