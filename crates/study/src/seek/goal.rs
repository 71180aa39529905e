//! Goal of a search: a figure of a plan, a direction, a value. Reads `time_per_sample<=25ms`.

use crate::run::Run;
use plantui_core::{
    cluster::Limits,
    family,
    plan::{Measure, Plan, Score},
    units,
    workload::{Workload, placement::SECONDS},
};
use plantui_planners::Problem;

/// Figure of a plan that a goal can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalFigure {
    /// Planner's objective, by its own model.
    Planned,
    /// Simulated time per sample (per microbatch if the workload does not state its size), seconds.
    SampleTime,
    /// Simulated iteration time, seconds.
    BatchTime,
    /// Simulated samples (or microbatches) per second.
    Throughput,
    /// Simulated idle share of device time, 0 to 1.
    Idle,
    /// Simulated peak memory over all devices, bytes.
    Memory,
    /// Tokens per second over all devices; training workloads only.
    Tokens,
    /// Model FLOPs utilisation, 0 to 1; training workloads only.
    Utilisation,
}

/// Words for each figure; the first one is shown.
const WORDS: [(GoalFigure, &[&str]); 8] = [
    (GoalFigure::Planned, &["objective", "planned"]),
    (GoalFigure::SampleTime, &["simulated_time_per_sample"]),
    (GoalFigure::BatchTime, &["batch_time", "time_per_batch", "iteration", "simulated_iteration_time"]),
    (GoalFigure::Throughput, &["throughput", "samples_per_s"]),
    (GoalFigure::Idle, &["idle", "bubble"]),
    (GoalFigure::Memory, &["peak_memory", "memory"]),
    (GoalFigure::Tokens, &["tokens_per_s"]),
    (GoalFigure::Utilisation, &["mfu"]),
];

/// Upper or lower limit on a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Figure of the goal.
    pub figure: GoalFigure,
    /// Measure of the planner's plans.
    pub measure: Measure,
    /// True if the value is an upper limit, false if it is a lower limit.
    pub at_most: bool,
    /// Limit in the figure's base unit; for [`GoalFigure::Planned`] in the unit of the measure.
    pub value: f64,
}

/// Reason why a text is not a goal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}; {repair}")]
pub struct GoalError {
    /// Problem in the text.
    pub message: String,
    /// Repair.
    pub repair: String,
}

impl Goal {
    /// Reads `FIGURE<=VALUE` or `FIGURE>=VALUE` for plans with this measure. The measure's name means the planned
    /// figure; `time_per_sample` means the simulated one unless it is the measure.
    ///
    /// # Errors
    /// Problem in the text, and the repair.
    pub fn parse(text: &str, measure: Measure) -> Result<Self, GoalError> {
        let error =
            |message: String| GoalError { message, repair: format!("write a goal such as `{}`", example(measure)) };
        let at = text.find(['<', '>', '≤', '≥', '=']).ok_or_else(|| error(format!("`{text}` has no comparison")))?;
        let (word, rest) = text.split_at(at);
        let (at_most, value) = [("<=", true), (">=", false), ("≤", true), ("≥", false), ("<", true), (">", false)]
            .into_iter()
            .find_map(|(sign, at_most)| Some((at_most, rest.strip_prefix(sign)?)))
            .ok_or_else(|| error(format!("`{text}` is an exact value, which no plan may reach; use <= or >=")))?;
        let word = word.trim();
        let figure = figure(word, measure).ok_or_else(|| GoalError {
            message: format!("plans measured by {} have no figure `{word}`", measure.name()),
            repair: match (measure, word) {
                (Measure::PipelineTime, "cost" | "iteration_cost") => {
                    "limit it with --set most_cost=0.1, or minimise it with --set minimise=cost".into()
                }
                _ => format!("figures are {}", names(measure, false).join(", ")),
            },
        })?;
        let goal = Goal { figure, measure, at_most, value: 0.0 };
        let value = goal.read(value.trim()).map_err(|what| error(format!("the goal `{text}` has no value: {what}")))?;
        Ok(Goal { value, ..goal })
    }

    /// The same for plans of a workload; some figures exist for training workloads only.
    ///
    /// # Errors
    /// As [`Goal::parse`].
    pub fn of_workload(text: &str, measure: Measure, workload: &Workload) -> Result<Self, GoalError> {
        let goal = Goal::parse(text, measure)?;
        if goal.is_predicted() && !family::of(workload).predicts() {
            return Err(GoalError {
                message: format!(
                    "`{}` has no {}: the workload is not a model to be trained",
                    workload.name,
                    goal.name()
                ),
                repair: format!("figures are {}", names(measure, false).join(", ")),
            });
        }
        Ok(goal)
    }

    fn read(&self, text: &str) -> Result<f64, String> {
        let seconds = || units::parse_seconds(text).map_err(|error| error.to_string());
        let number = |text: &str| {
            let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
            value.ok_or_else(|| format!("`{text}` is no number of at least 0"))
        };
        match (self.figure, self.measure.unit()) {
            (GoalFigure::Planned, "s") | (GoalFigure::SampleTime | GoalFigure::BatchTime, _) => seconds(),
            (GoalFigure::Planned, "ms") => number(text).or_else(|_| Ok(seconds()? / SECONDS)),
            (GoalFigure::Planned, "currency") => number(text.trim_start_matches(['$', '€'])),
            (GoalFigure::Planned, "x") => number(text.strip_suffix('x').unwrap_or(text)),
            (GoalFigure::Planned, _) => number(text).or_else(|_| units::parse_flops(text).map_err(|e| e.to_string())),
            (GoalFigure::Throughput, _) => number(text.split('/').next().unwrap_or(text).trim_end_matches("samples")),
            (GoalFigure::Tokens, _) => number(text.split('/').next().unwrap_or(text).trim_end_matches("tokens")),
            (GoalFigure::Idle | GoalFigure::Utilisation, _) => match text.strip_suffix('%') {
                Some(percent) => Ok(number(percent)? / 100.0),
                None => number(text),
            }
            .and_then(|share| if share <= 1.0 { Ok(share) } else { Err(format!("`{text}` is no share: write 20%")) }),
            (GoalFigure::Memory, _) => units::parse_bytes(text).map_err(|error| error.to_string()),
        }
    }

    /// True if a value reaches the goal.
    pub fn is_reached_by(&self, value: f64) -> bool {
        if self.at_most {
            value <= self.value * (1.0 + COMPARISON_TOLERANCE)
        } else {
            value >= self.value * (1.0 - COMPARISON_TOLERANCE)
        }
    }

    /// True if the first value is nearer to the goal, or further beyond it.
    pub fn is_nearer(&self, value: f64, than: f64) -> bool {
        if self.at_most { value < than } else { value > than }
    }

    /// True if the goal needs a simulation.
    pub fn is_simulated(&self) -> bool {
        self.figure != GoalFigure::Planned
    }

    /// True if the goal has the direction of the planner's objective, so a better plan never fails where a worse one
    /// succeeds.
    pub fn is_what_is_planned_for(&self) -> bool {
        self.figure == GoalFigure::Planned && self.at_most != self.measure.larger_is_better()
    }

    /// Figure of a run, if it has a valid plan and, where needed, a simulation.
    pub fn of(&self, run: &Run) -> Option<f64> {
        if self.figure == GoalFigure::Planned {
            let score: &Score = run.score.as_ref().filter(|score| score.is_valid() && score.measure == self.measure)?;
            return Some(score.value);
        }
        if self.is_predicted() {
            let Problem { workload, limits, .. } = &run.problem;
            let plan = run.outcome.plan.as_ref().filter(|_| run.score.as_ref().is_some_and(Score::is_valid))?;
            return self.predicted(workload, limits, plan);
        }
        let timeline = &run.simulation.as_ref().filter(|_| run.score.as_ref().is_some_and(Score::is_valid))?.timeline;
        (timeline.iteration_s > 0.0).then(|| match self.figure {
            GoalFigure::SampleTime => 1.0 / timeline.samples_per_s,
            GoalFigure::Throughput => timeline.samples_per_s,
            GoalFigure::Idle => timeline.idle,
            GoalFigure::Memory => timeline.peak_memory(),
            GoalFigure::BatchTime | GoalFigure::Planned | GoalFigure::Tokens | GoalFigure::Utilisation => {
                timeline.iteration_s
            }
        })
    }

    /// True if the figure comes only from the prediction of a training workload.
    pub fn is_predicted(&self) -> bool {
        matches!(self.figure, GoalFigure::Tokens | GoalFigure::Utilisation)
    }

    /// Predicted figure of a plan; `None` without a prediction, or for other figures.
    pub fn predicted(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Option<f64> {
        let predicted = family::of(workload).prediction(limits, plan).filter(|_| self.is_predicted())?;
        Some(if self.figure == GoalFigure::Tokens { predicted.tokens_per_s } else { predicted.mfu })
    }

    /// Name of the figure.
    pub fn name(&self) -> &'static str {
        match self.figure {
            GoalFigure::Planned => self.measure.name(),
            figure => WORDS.iter().find(|(known, _)| *known == figure).map_or("", |(_, words)| words[0]),
        }
    }

    /// Name of the figure for people.
    pub fn title(&self) -> &'static str {
        match self.figure {
            GoalFigure::Planned => match self.measure {
                Measure::TimePerSample => "planned time per sample",
                Measure::IterationTime | Measure::PipelineTime => "planned iteration time",
                Measure::MaxLoad => "load of the busiest device",
                Measure::SeparateMaxima => "largest forward and largest backward load",
                Measure::Latency { .. } => "latency",
                Measure::Speedup(_) => "planned speed-up",
                Measure::OperatorCost(_) | Measure::IterationCost => "cost of an iteration",
            },
            GoalFigure::SampleTime => "simulated time per sample",
            GoalFigure::BatchTime => "simulated iteration time",
            GoalFigure::Throughput => "simulated samples per second",
            GoalFigure::Idle => "simulated idle share",
            GoalFigure::Memory => "simulated peak memory",
            GoalFigure::Tokens => "predicted tokens per second",
            GoalFigure::Utilisation => "predicted MFU",
        }
    }

    /// Value of the figure with its unit; memory in the goal's unit.
    pub fn show(&self, value: f64) -> String {
        match self.figure {
            GoalFigure::Planned => self.measure.show(value),
            GoalFigure::SampleTime => format!("{}/sample", units::seconds(value)),
            GoalFigure::BatchTime => units::seconds(value),
            GoalFigure::Throughput => format!("{}/s", units::number(value)),
            GoalFigure::Idle | GoalFigure::Utilisation => units::percent(value),
            GoalFigure::Tokens => format!("{} tokens/s", units::number(value)),
            GoalFigure::Memory => units::bytes_like(value, self.value),
        }
    }

    /// Value that was found. A miss smaller than the digits shown is stated in words.
    pub fn judged(&self, value: f64) -> String {
        let shown = self.show(value);
        if self.is_reached_by(value) || shown != self.show(self.value) {
            return shown;
        }
        format!("{shown}, slightly {} the goal", if self.at_most { "above" } else { "below" })
    }

    /// Value rounded to few digits such that it reaches the goal itself; used as a suggested goal.
    pub fn rounded(&self, value: f64) -> String {
        // Four digits are off by at most half a thousandth, percentages by more.
        let steps = (0..12).map(|step| 6e-4 * f64::from(1 << step));
        let reaching = steps.map(|off| value * if self.at_most { 1.0 + off } else { 1.0 - off });
        let texts = std::iter::once(value).chain(reaching).map(|value| Goal { value, ..*self }.bare());
        texts.into_iter().find(|text| self.allows(text, value)).unwrap_or_default()
    }

    /// Value of the goal as users write it.
    fn bare(&self) -> String {
        let words = ["/sample", "/iteration", " tokens/s", "/s", " one device", " operations"];
        words.iter().fold(self.show(self.value), |text, word| text.trim_end_matches(word).to_string()).replace(' ', "")
    }

    /// True if a goal with this text holds for a value.
    fn allows(&self, text: &str, value: f64) -> bool {
        let sign = if self.at_most { "<=" } else { ">=" };
        Goal::parse(&format!("{}{sign}{text}", self.name()), self.measure).is_ok_and(|goal| goal.is_reached_by(value))
    }

    /// Goal in words: `planned time per sample at most 25.00 ms/sample`.
    pub fn summary(&self) -> String {
        format!("{} at {} {}", self.title(), if self.at_most { "most" } else { "least" }, self.show(self.value))
    }
}

/// Tolerance, since sums of times differ in their last digits.
const COMPARISON_TOLERANCE: f64 = 1e-12;

fn figure(word: &str, measure: Measure) -> Option<GoalFigure> {
    // On several kinds of devices, these are what the planner minimises.
    let short = match measure {
        Measure::PipelineTime => Measure::IterationTime.name(),
        Measure::IterationCost => "cost",
        measure => measure.name(),
    };
    if word == measure.name() || word == short {
        return Some(GoalFigure::Planned);
    }
    if word == Measure::TimePerSample.name() {
        return Some(GoalFigure::SampleTime);
    }
    if word == Measure::IterationTime.name() {
        return Some(GoalFigure::BatchTime);
    }
    WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(figure, _)| *figure)
}

/// Names of all figures that a goal can refer to; `predicted` includes those of training workloads.
pub fn names(measure: Measure, predicted: bool) -> Vec<&'static str> {
    let there = |figure: GoalFigure| match figure {
        GoalFigure::Planned => false,
        GoalFigure::Tokens | GoalFigure::Utilisation => predicted,
        _ => true,
    };
    let others = WORDS.iter().filter(|(figure, _)| there(*figure)).map(|(_, words)| words[0]);
    std::iter::once(measure.name()).chain(others).collect()
}

/// Example of a goal.
pub fn example(measure: Measure) -> &'static str {
    match measure {
        Measure::TimePerSample => "time_per_sample<=25ms",
        Measure::IterationTime => "iteration_time<=2s",
        Measure::PipelineTime => "pipeline_time<=2s",
        Measure::IterationCost => "iteration_cost<=0.5",
        Measure::MaxLoad => "max_load<=25ms",
        Measure::SeparateMaxima => "separate_maxima<=25ms",
        Measure::Latency { .. } => "latency<=40ms",
        Measure::Speedup(_) => "speedup>=12x",
        Measure::OperatorCost(_) => "cost<=2e12",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_in_the_units_of_their_figures() {
        let read = |text, measure| Goal::parse(text, measure).map(|goal| (goal.figure, goal.at_most, goal.value));
        let piper = Measure::TimePerSample;
        assert_eq!(read("time_per_sample<=25ms", piper), Ok((GoalFigure::Planned, true, 0.025)));
        assert_eq!(read(" objective < 2s ", piper), Ok((GoalFigure::Planned, true, 2.0)));
        assert_eq!(read("throughput>=40/s", piper), Ok((GoalFigure::Throughput, false, 40.0)));
        assert_eq!(
            read("throughput >= 40 samples/s", piper).map_err(|_| ()),
            Ok((GoalFigure::Throughput, false, 40.0))
        );
        assert_eq!(read("bubble<=20%", piper), Ok((GoalFigure::Idle, true, 0.2)));
        assert_eq!(read("bubble≤0.2", piper), Ok((GoalFigure::Idle, true, 0.2)));
        assert_eq!(read("memory<=1GiB", piper), Ok((GoalFigure::Memory, true, 1_073_741_824.0)));
        assert_eq!(read("mfu>=40%", Measure::IterationTime), Ok((GoalFigure::Utilisation, false, 0.4)));
        assert_eq!(read("tokens_per_s>=1.2e6", Measure::IterationTime), Ok((GoalFigure::Tokens, false, 1.2e6)));
        assert_eq!(read("tokens_per_s>=900 tokens/s", Measure::IterationTime), Ok((GoalFigure::Tokens, false, 900.0)));
        assert_eq!(read("max_load<=0.5s", Measure::MaxLoad), Ok((GoalFigure::Planned, true, 500.0)));
        assert_eq!(read("max_load<=25", Measure::MaxLoad), Ok((GoalFigure::Planned, true, 25.0)));
        assert_eq!(read("time_per_sample<=25ms", Measure::MaxLoad), Ok((GoalFigure::SampleTime, true, 0.025)));
        assert_eq!(read("speedup>=12x", Measure::Speedup(Default::default())), Ok((GoalFigure::Planned, false, 12.0)));
    }

    #[test]
    fn a_goal_that_is_suggested_is_one_that_its_value_reaches() {
        for (figure, measure) in [
            (GoalFigure::Planned, Measure::TimePerSample),
            (GoalFigure::Planned, Measure::Speedup(Default::default())),
            (GoalFigure::BatchTime, Measure::IterationTime),
            (GoalFigure::Throughput, Measure::TimePerSample),
            (GoalFigure::Idle, Measure::TimePerSample),
        ] {
            for (at_most, value) in
                (0..400).flat_map(|i| [true, false].map(|side| (side, 0.000_97 + 0.002_113 * f64::from(i))))
            {
                let goal = Goal { figure, measure, at_most, value };
                let text = goal.rounded(value);
                let sign = if at_most { "<=" } else { ">=" };
                let read = Goal::parse(&format!("{}{sign}{text}", goal.name()), measure);
                assert!(read.is_ok_and(|read| read.is_reached_by(value)), "{} {sign} {text}: {value}", goal.name());
            }
        }
        let goal = Goal::parse("iteration_time<=37.79s", Measure::TimePerSample).unwrap();
        assert_eq!(goal.judged(37.7911), "37.79 s, slightly above the goal");
        assert_eq!([goal.judged(37.789), goal.judged(38.5)], ["37.79 s", "38.50 s"]);
    }

    #[test]
    fn what_is_no_goal_is_told_with_one_that_is() {
        let told = |text| Goal::parse(text, Measure::TimePerSample).unwrap_err().to_string();
        assert!(told("25ms").contains("has no comparison") && told("25ms").contains("`time_per_sample<=25ms`"));
        assert!(told("latency<=25ms").contains("no figure `latency`") && told("latency<=1s").contains("throughput"));
        assert!(told("time_per_sample<=25").contains("without a unit"), "{}", told("time_per_sample<=25"));
        assert!(told("bubble<=20").contains("write 20%"));
        assert!(told("time_per_sample=25ms").contains("exact value"));
        for text in ["bubble<=-1%", "throughput>=nan", "memory<=x", "<=", ""] {
            assert!(Goal::parse(text, Measure::TimePerSample).is_err(), "{text}");
        }
    }
}
