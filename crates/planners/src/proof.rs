//! Wording of what a run has proven about its plan, shared by reports, the screen and studies.

use std::fmt;

use super::{Outcome, Status};
use plantui_core::{plan::Measure, units};

/// Smaller gaps are rounding.
const CLOSED: f64 = 1e-9;
/// Gap beyond which a bound carries no information about the plan.
pub const WEAK_GAP: f64 = 1.0;

/// Distance of a plan from the optimum of its planner's model. A proof concerns the model, never a simulated or a real
/// batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// Measure of the model.
    pub measure: Measure,
    /// Largest possible improvement relative to the value: 0 if optimal, `None` if unknown.
    pub gap: Option<f64>,
    /// Value of the plan, in the measure's unit.
    pub value: Option<f64>,
    /// Proven bound, in the measure's unit.
    pub bound: Option<f64>,
    /// Plans that the proof covers, if not all.
    pub among: Option<String>,
}

impl Outcome {
    /// Returns what is proven of the plan; `None` if there is no plan.
    pub fn proof(&self) -> Option<Proof> {
        let measure = self.plan.as_ref()?.measure;
        let gap = if self.status == Status::Optimal { Some(0.0) } else { self.gap() };
        let (value, bound, among) = (self.objective, self.lower_bound, self.proven_among.clone());
        Some(Proof { measure, gap, value, bound, among })
    }

    /// Result in a few words: `optimal`, `within 0.8% of optimal`.
    pub fn summary(&self) -> String {
        match (self.status, self.gap()) {
            (Status::Optimal, _) => "optimal".into(),
            (Status::Feasible, Some(gap)) => match self.proof().and_then(|proof| proof.weak()) {
                Some(weak) => weak,
                None => format!("within {} of optimal", units::gap(gap)),
            },
            (Status::Feasible, None) => "no bound".into(),
            (Status::Infeasible, _) => "no feasible plan".into(),
            (Status::Cancelled, _) if self.plan.is_some() => "stopped early, best plan so far".into(),
            (Status::Cancelled, _) => "stopped before any plan was found".into(),
        }
    }
}

impl Proof {
    /// True if no plan is better.
    pub fn is_closed(&self) -> bool {
        self.gap.is_some_and(|gap| gap <= CLOSED)
    }

    /// States both figures if the bound is too weak to be informative: `bound too weak (33x against at most 128x)`.
    pub fn weak(&self) -> Option<String> {
        let (value, bound) = (self.value?, self.bound?);
        let limit = if self.measure.larger_is_better() { "most" } else { "least" };
        let [value, bound] = [value, bound].map(|value| self.measure.show(value));
        self.gap.filter(|gap| *gap > WEAK_GAP).map(|_| format!("bound too weak ({value} against at {limit} {bound})"))
    }

    /// Proof in a few words, with the model or the set of plans: `optimal in Piper's model`, `within 3.2% of optimal in
    /// Piper's model`, `no bound`.
    pub fn short(&self) -> String {
        let of = match &self.among {
            Some(plans) => format!("among {plans}"),
            None => format!("in {}", self.measure.model()),
        };
        match self.gap {
            _ if self.is_closed() => format!("optimal {of}"),
            Some(gap) => self.weak().unwrap_or_else(|| format!("within {} of optimal {of}", units::gap(gap))),
            None => "no bound".into(),
        }
    }
}

/// Writes `optimal: least time per microbatch in Piper's model`, `within 3.2% of the least .. (lower bound ..); searched:
/// contiguous splits in a row`, `no bound on the ..`.
impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let goal = self.measure.goal();
        let side = if self.measure.larger_is_better() { "upper" } else { "lower" };
        match (self.weak(), self.gap) {
            (Some(weak), _) => write!(f, "{weak}: {goal}")?,
            (None, Some(gap)) if gap > CLOSED => {
                write!(f, "within {} of the {goal}", units::gap(gap))?;
                self.bound.map_or(Ok(()), |bound| write!(f, " ({side} bound {})", self.measure.show(bound)))?;
            }
            (None, Some(_)) => write!(f, "optimal: {goal}")?,
            (None, None) => return write!(f, "no bound on the {goal}"),
        }
        self.among.as_ref().map_or(Ok(()), |plans| write!(f, "; searched: {plans}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::plan::Plan;

    #[test]
    fn a_proof_says_of_what() {
        let mut outcome =
            Outcome { plan: Some(Plan::default()), objective: Some(0.02), ..Outcome::new(Status::Optimal) };
        outcome.lower_bound = Some(0.02);
        let told = |outcome: &Outcome| outcome.proof().unwrap().to_string();
        assert_eq!(told(&outcome), "optimal: least time per microbatch in Piper's model");
        outcome.proven_among = Some("equal partitions".into());
        assert_eq!(told(&outcome), "optimal: least time per microbatch in Piper's model; searched: equal partitions");
        (outcome.status, outcome.lower_bound, outcome.proven_among) = (Status::Feasible, Some(0.019), None);
        let open = "within 5.0% of the least time per microbatch in Piper's model (lower bound 19.00 ms/sample)";
        assert_eq!(
            (told(&outcome).as_str(), outcome.proof().unwrap().short().as_str()),
            (open, "within 5.0% of optimal in Piper's model")
        );
        let fast = Plan { measure: Measure::Speedup(plantui_core::plan::SpeedupModel::default()), ..Plan::default() };
        let weak = Outcome {
            plan: Some(fast),
            objective: Some(33.0),
            lower_bound: Some(128.0),
            ..Outcome::new(Status::Feasible)
        };
        assert_eq!(weak.summary(), "bound too weak (33x one device against at most 128x one device)");
        assert!(told(&weak).contains("bound too weak") && !told(&weak).contains('%'), "{}", told(&weak));
        outcome.lower_bound = None;
        assert_eq!(outcome.proof().unwrap().short(), "no bound");
        assert!(told(&outcome).starts_with("no bound on the "));
        assert_eq!(Outcome::new(Status::Infeasible).proof(), None);
    }
}
