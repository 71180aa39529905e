//! Equal partition (in work).
use super::*;
/// The equal-partition baselines.
#[derive(Debug)]
pub struct EqualPartition;
static INFO: PlannerInfo = PlannerInfo {
    id: "equal-partition",
    name: "Equal partition",
    paper: "Baseline of Piper, NeurIPS 2021 (after PipeDream-2BW, ICML 2021)",
    summary: "The same number of layers, replicas and tensor degree on every stage",
    objective: "time_per_sample",
    unit: "s",
};
impl Planner for EqualPartition {
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
