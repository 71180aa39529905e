//! Figures of a plan file in addition to its objective: costs of its stages, its simulation, its search's status.
//! Figures are not used. They are compared with recomputed ones, and a file with a wrong figure is refused.
//!
//! A lower bound cannot be recomputed. The word `optimal` needs a bound equal to the value, but only planning again can
//! confirm that bound.

use std::collections::BTreeMap;

use super::{
    Plan,
    document::{PredictionPart, SimulationPart},
    score::Score,
};
use crate::units::exact_number;

/// Claims of a file about its plan's value, in the unit of the plan's measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Claims {
    /// Value of the objective.
    pub value: Option<f64>,
    /// Lower bound on every plan's value (upper bound if larger is better).
    pub lower_bound: Option<f64>,
    /// Relative tolerance between the claimed and the recomputed value.
    pub tolerance: f64,
}

impl Default for Claims {
    /// No claims, with a tolerance of rounding errors only.
    fn default() -> Self {
        Claims { value: None, lower_bound: None, tolerance: 1e-9 }
    }
}

/// Relative tolerance between a figure and the recomputed one. Files may be written with fewer digits than the planner
/// had.
const TOLERANCE: f64 = 1e-6;

/// Figures of a plan file. A figure that is not stated is `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures {
    /// Status of the search.
    pub status: Option<String>,
    /// Figures by stage.
    pub stages: Vec<StageFigures>,
    /// Figures of the simulation.
    pub simulation: Option<SimulationFigures>,
    /// Seconds per iteration on the routes of the mapped topology.
    pub mapped_iteration_s: Option<f64>,
    /// Figures of the prediction.
    pub prediction: PredictionFigures,
}

/// Prediction that a file states for a training plan.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Deserialize)]
#[serde(default)]
pub struct PredictionFigures {
    tokens_per_s: Option<f64>,
    tokens_per_s_per_device: Option<f64>,
    model_flops_per_s_per_device: Option<f64>,
    mfu: Option<f64>,
    hfu: Option<f64>,
}

impl PredictionFigures {
    /// Differences from the recomputed prediction, a sentence each.
    pub fn differences(&self, own: &PredictionPart) -> Vec<String> {
        let pairs = [
            ("tokens_per_s", self.tokens_per_s, own.tokens_per_s),
            ("tokens_per_s_per_device", self.tokens_per_s_per_device, own.tokens_per_s_per_device),
            ("model_flops_per_s_per_device", self.model_flops_per_s_per_device, own.model_flops_per_s_per_device),
            ("mfu", self.mfu, own.mfu),
            ("hfu", self.hfu, own.hfu),
        ];
        differing(&pairs).map(|text| format!("prediction: {text}")).collect()
    }
}

/// Costs of a stage as a file states them; seconds per sample, bytes per device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageFigures {
    /// Compute.
    pub compute_s: Option<f64>,
    /// Transfer of tensors across the stage's borders.
    pub communication_s: Option<f64>,
    /// Gradient all-reduce.
    pub sync_s: Option<f64>,
    /// Memory.
    pub memory_bytes: Option<f64>,
}

/// Simulation figures as a file states them.
#[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
#[serde(default)]
pub struct SimulationFigures {
    /// The schedule.
    pub schedule: Option<String>,
    /// Time of one iteration, seconds.
    pub iteration_s: Option<f64>,
    /// Microbatches, or samples, per second.
    pub samples_per_s: Option<f64>,
    /// Fraction of device time that is idle.
    #[serde(rename = "bubble")]
    pub idle: Option<f64>,
    /// Peak memory over all devices, bytes.
    pub peak_memory_bytes: Option<f64>,
    /// Assumptions other than the defaults, by name, as text.
    pub settings: BTreeMap<String, String>,
}

impl Figures {
    /// Wrong statements about the stages and the search's status, a sentence each. `score` is that of `plan` under the
    /// limits in the file. `O(stages)`.
    pub fn contradictions(&self, claims: &Claims, plan: &Plan, score: &Score) -> Vec<String> {
        let mut found: Vec<String> = self.too_good(claims, plan, score).into_iter().collect();
        for (i, (said, scored)) in self.stages.iter().zip(&score.stages).enumerate() {
            let pairs = [
                ("compute_s", said.compute_s, scored.compute_s),
                ("communication_s", said.communication_s, scored.communication_s),
                ("sync_s", said.sync_s, scored.sync_s),
                ("memory_bytes", said.memory_bytes, scored.memory_bytes),
            ];
            found.extend(differing(&pairs).map(|text| format!("stage {}: {text}", i + 1)));
        }
        found
    }

    /// True if the file says that no plan is better.
    pub fn claims_optimum(&self) -> bool {
        self.status.as_deref() == Some("optimal")
    }

    /// Error if the file says `optimal` without a bound, or with a bound that allows a better plan.
    fn too_good(&self, claims: &Claims, plan: &Plan, score: &Score) -> Option<String> {
        if !self.claims_optimum() {
            return None;
        }
        let Some(bound) = claims.lower_bound else {
            return Some("is optimal by its own statement, but has no lower_bound to show it".into());
        };
        let value = if score.is_valid() { score.value } else { claims.value? };
        let room = (value - bound).abs() > TOLERANCE * value.abs();
        (room && plan.measure.is_better(bound, value)).then(|| {
            let (value, bound) = (plan.measure.show(value), plan.measure.show(bound));
            format!(
                "is optimal at {value} by its own statement, but its lower bound {bound} leaves room for a \
                better plan"
            )
        })
    }
}

impl Figures {
    /// Sentence on a wrong iteration time on the topology's routes, if the file states one.
    pub fn mapped_otherwise(&self, iteration_s: f64) -> Option<String> {
        differing(&[("iteration_s", self.mapped_iteration_s, iteration_s)])
            .map(|text| format!("mapping: {text}"))
            .next()
    }
}

impl SimulationFigures {
    /// Differences from the recomputed simulation, a sentence each.
    pub fn differences(&self, simulated: &SimulationPart) -> Vec<String> {
        // Absolute tolerance: the rounding error of an idle share near 0 may be large in relative terms.
        let idle = self.idle.filter(|said| (said - simulated.idle).abs() > TOLERANCE);
        let pairs = [
            ("iteration_s", self.iteration_s, simulated.iteration_s),
            ("samples_per_s", self.samples_per_s, simulated.samples_per_s),
            ("bubble", idle, simulated.idle),
            ("peak_memory_bytes", self.peak_memory_bytes, simulated.peak_memory_bytes),
        ];
        differing(&pairs).map(|text| format!("simulation: {text}")).collect()
    }
}

/// Figures that differ from the recomputed ones.
fn differing(pairs: &[(&'static str, Option<f64>, f64)]) -> impl Iterator<Item = String> {
    pairs.iter().filter_map(|&(name, said, own)| {
        let said = said?;
        let near = (said - own).abs() <= TOLERANCE * said.abs().max(own.abs()) + f64::MIN_POSITIVE;
        (!near).then(|| format!("{name} is {}, recomputed {}", exact_number(said), exact_number(own)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::StageScore;

    #[test]
    fn rounding_is_no_difference_and_a_forged_figure_is_one() {
        let stage = StageScore { compute_s: 0.012_345_678_9, memory_bytes: 4e9, ..StageScore::default() };
        let score = Score { stages: vec![stage], value: 0.012, ..Score::default() };
        let said = StageFigures { compute_s: Some(0.012_345_68), sync_s: Some(0.0), ..StageFigures::default() };
        let mut figures = Figures { stages: vec![said], ..Figures::default() };
        let found = |figures: &Figures| figures.contradictions(&Claims::default(), &Plan::default(), &score);
        assert!(found(&figures).is_empty());
        figures.stages[0].memory_bytes = Some(3e9);
        assert_eq!(found(&figures), ["stage 1: memory_bytes is 3000000000, recomputed 4000000000"]);
    }

    #[test]
    fn a_share_that_is_nothing_but_rounding_is_nothing() {
        let said = SimulationFigures { idle: Some(0.0), ..SimulationFigures::default() };
        let simulated = |idle| SimulationPart {
            schedule: "1f1b".into(),
            iteration_s: 1.0,
            samples_per_s: 1.0,
            idle,
            peak_memory_bytes: 0.0,
            settings: BTreeMap::new(),
        };
        assert!(said.differences(&simulated(3e-16)).is_empty());
        assert_eq!(said.differences(&simulated(0.25)), ["simulation: bubble is 0, recomputed 0.25"]);
    }

    #[test]
    fn optimal_needs_a_bound_that_meets_the_value() {
        let score = Score { value: 0.02, ..Score::default() };
        let figures = Figures { status: Some("optimal".into()), ..Figures::default() };
        let found = |bound: f64| {
            let claims = Claims { lower_bound: Some(bound), ..Claims::default() };
            figures.contradictions(&claims, &Plan::default(), &score)
        };
        assert!(found(0.02).is_empty() && found(0.02 * (1.0 - 1e-9)).is_empty());
        assert!(found(0.01)[0].contains("leaves room for a better plan"));
        let unbound = figures.contradictions(&Claims::default(), &Plan::default(), &score);
        assert_eq!(unbound, ["is optimal by its own statement, but has no lower_bound to show it"]);
    }
}
