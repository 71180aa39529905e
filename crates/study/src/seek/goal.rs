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
pub enum Figure {
    /// Planner's objective, by its own model.
    Planned,
    /// Simulated time per sample (per microbatch if the workload does not state its size), seconds.
    SampleTime,
    /// Simulated iteration time, seconds.
    BatchTime,
    /// Simulated samples (or microbatches) per second.
    Throughput,
    /// Simulated idle share of device time, 0 to 1.
    Bubble,
    /// Simulated peak memory over all devices, bytes.
    Memory,
    /// Tokens per second over all devices; training workloads only.
    Tokens,
    /// Model FLOPs utilisation, 0 to 1; training workloads only.
    Utilisation,
}

/// Words for each figure; the first one is shown.
const WORDS: [(Figure, &[&str]); 8] = [
    (Figure::Planned, &["objective", "planned"]),
    (Figure::SampleTime, &["simulated_time_per_sample"]),
    (Figure::BatchTime, &["batch_time", "time_per_batch", "iteration", "simulated_iteration_time"]),
    (Figure::Throughput, &["throughput", "samples_per_s"]),
    (Figure::Bubble, &["bubble"]),
    (Figure::Memory, &["peak_memory", "memory"]),
    (Figure::Tokens, &["tokens_per_s"]),
    (Figure::Utilisation, &["mfu"]),
];

/// Upper or lower limit on a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Figure of the goal.
    pub figure: Figure,
    /// Measure of the planner's plans.
    pub measure: Measure,
    /// True if the value is an upper limit, false if it is a lower limit.
    pub at_most: bool,
    /// Limit in the figure's base unit; for [`Figure::Planned`] in the unit of the measure.
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
        let at = text.find(['<', '>', '≤', '≥', '=']).ok_or_else(|| error(format!("`{text}` compares nothing")))?;
        let (word, rest) = text.split_at(at);
        let (at_most, value) = [("<=", true), (">=", false), ("≤", true), ("≥", false), ("<", true), (">", false)]
            .into_iter()
            .find_map(|(sign, at_most)| Some((at_most, rest.strip_prefix(sign)?)))
            .ok_or_else(|| error(format!("`{text}` asks for one exact value, which no plan may have")))?;
        let word = word.trim();
        let figure = figure(word, measure).ok_or_else(|| GoalError {
            message: format!("plans measured by {} have no figure `{word}`", measure.name()),
            repair: format!("goals are set for {}", names(measure, false).join(", ")),
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
                message: format!("`{}` has no {}: it is no model to be trained", workload.name, goal.name()),
                repair: format!("goals are set for {}", names(measure, false).join(", ")),
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
            (Figure::Planned, "s") | (Figure::SampleTime | Figure::BatchTime, _) => seconds(),
            (Figure::Planned, "ms") => number(text).or_else(|_| Ok(seconds()? / SECONDS)),
            (Figure::Planned, "x") => number(text.strip_suffix('x').unwrap_or(text)),
            (Figure::Planned, _) => number(text).or_else(|_| units::parse_flops(text).map_err(|e| e.to_string())),
            (Figure::Throughput, _) => number(text.split('/').next().unwrap_or(text).trim_end_matches("samples")),
            (Figure::Tokens, _) => number(text.split('/').next().unwrap_or(text).trim_end_matches("tokens")),
            (Figure::Bubble | Figure::Utilisation, _) => match text.strip_suffix('%') {
                Some(percent) => Ok(number(percent)? / 100.0),
                None => number(text),
            }
            .and_then(|share| if share <= 1.0 { Ok(share) } else { Err(format!("`{text}` is no share: write 20%")) }),
            (Figure::Memory, _) => units::parse_bytes(text).map_err(|error| error.to_string()),
        }
    }

    /// True if a value reaches the goal.
    pub fn holds(&self, value: f64) -> bool {
        if self.at_most { value <= self.value * (1.0 + ROUNDING) } else { value >= self.value * (1.0 - ROUNDING) }
    }

    /// True if the first value is nearer to the goal, or further beyond it.
    pub fn is_nearer(&self, value: f64, than: f64) -> bool {
        if self.at_most { value < than } else { value > than }
    }

    /// True if the goal needs a simulation.
    pub fn is_simulated(&self) -> bool {
        self.figure != Figure::Planned
    }

    /// True if the goal has the direction of the planner's objective, so a better plan never fails where a worse one
    /// succeeds.
    pub fn is_what_is_planned_for(&self) -> bool {
        self.figure == Figure::Planned && self.at_most != self.measure.larger_is_better()
    }

    /// Figure of a run, if it has a valid plan and, where needed, a simulation.
    pub fn of(&self, run: &Run) -> Option<f64> {
        if self.figure == Figure::Planned {
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
            Figure::SampleTime => 1.0 / timeline.samples_per_s,
            Figure::Throughput => timeline.samples_per_s,
            Figure::Bubble => timeline.bubble,
            Figure::Memory => timeline.peak_memory(),
            Figure::BatchTime | Figure::Planned | Figure::Tokens | Figure::Utilisation => timeline.iteration_s,
        })
    }

    /// True if the figure comes only from the prediction of a training workload.
    pub fn is_predicted(&self) -> bool {
        matches!(self.figure, Figure::Tokens | Figure::Utilisation)
    }

    /// Predicted figure of a plan; `None` without a prediction, or for other figures.
    pub fn predicted(&self, workload: &Workload, limits: &Limits, plan: &Plan) -> Option<f64> {
        let predicted = family::of(workload).prediction(limits, plan).filter(|_| self.is_predicted())?;
        Some(if self.figure == Figure::Tokens { predicted.tokens_per_s } else { predicted.mfu })
    }

    /// Name of the figure.
    pub fn name(&self) -> &'static str {
        match self.figure {
            Figure::Planned => self.measure.name(),
            figure => WORDS.iter().find(|(known, _)| *known == figure).map_or("", |(_, words)| words[0]),
        }
    }

    /// Name of the figure for people.
    pub fn title(&self) -> &'static str {
        match self.figure {
            Figure::Planned => match self.measure {
                Measure::TimePerSample => "planned time per sample",
                Measure::IterationTime => "planned time of a batch",
                Measure::MaxLoad => "load of the busiest device",
                Measure::SeparateMaxima => "largest forward and largest backward load",
                Measure::Latency { .. } => "latency",
                Measure::Speedup(_) => "planned speed-up",
                Measure::OperatorCost(_) => "cost of a step",
            },
            Figure::SampleTime => "simulated time per sample",
            Figure::BatchTime => "simulated time of a batch",
            Figure::Throughput => "simulated samples per second",
            Figure::Bubble => "bubble",
            Figure::Memory => "simulated peak memory",
            Figure::Tokens => "predicted tokens per second",
            Figure::Utilisation => "predicted MFU",
        }
    }

    /// Value of the figure with its unit; memory in the goal's unit.
    pub fn show(&self, value: f64) -> String {
        match self.figure {
            Figure::Planned => self.measure.show(value),
            Figure::SampleTime => format!("{}/sample", units::seconds(value)),
            Figure::BatchTime => units::seconds(value),
            Figure::Throughput => format!("{}/s", units::number(value)),
            Figure::Bubble | Figure::Utilisation => units::percent(value),
            Figure::Tokens => format!("{} tokens/s", units::number(value)),
            Figure::Memory => units::bytes_like(value, self.value),
        }
    }

    /// Value that was found. A miss smaller than the digits shown is stated in words.
    pub fn judged(&self, value: f64) -> String {
        let shown = self.show(value);
        if self.holds(value) || shown != self.show(self.value) {
            return shown;
        }
        format!("{shown}, just {} the goal", if self.at_most { "above" } else { "below" })
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
        let words = ["/sample", "/batch", " tokens/s", "/s", " one device", " operations"];
        words.iter().fold(self.show(self.value), |text, word| text.trim_end_matches(word).to_string()).replace(' ', "")
    }

    /// True if a goal with this text holds for a value.
    fn allows(&self, text: &str, value: f64) -> bool {
        let sign = if self.at_most { "<=" } else { ">=" };
        Goal::parse(&format!("{}{sign}{text}", self.name()), self.measure).is_ok_and(|goal| goal.holds(value))
    }

    /// Goal in words: `planned time per sample at most 25.00 ms/sample`.
    pub fn told(&self) -> String {
        format!("{} at {} {}", self.title(), if self.at_most { "most" } else { "least" }, self.show(self.value))
    }
}

/// Tolerance, since sums of times differ in their last digits.
const ROUNDING: f64 = 1e-12;

fn figure(word: &str, measure: Measure) -> Option<Figure> {
    if word == measure.name() {
        return Some(Figure::Planned);
    }
    if word == Measure::TimePerSample.name() {
        return Some(Figure::SampleTime);
    }
    if word == Measure::IterationTime.name() {
        return Some(Figure::BatchTime);
    }
    WORDS.iter().find(|(_, words)| words.contains(&word)).map(|(figure, _)| *figure)
}

/// Names of all figures that a goal can refer to; `predicted` includes those of training workloads.
pub fn names(measure: Measure, predicted: bool) -> Vec<&'static str> {
    let there = |figure: Figure| match figure {
        Figure::Planned => false,
        Figure::Tokens | Figure::Utilisation => predicted,
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
        assert_eq!(read("time_per_sample<=25ms", piper), Ok((Figure::Planned, true, 0.025)));
        assert_eq!(read(" objective < 2s ", piper), Ok((Figure::Planned, true, 2.0)));
        assert_eq!(read("throughput>=40/s", piper), Ok((Figure::Throughput, false, 40.0)));
        assert_eq!(read("throughput >= 40 samples/s", piper).map_err(|_| ()), Ok((Figure::Throughput, false, 40.0)));
        assert_eq!(read("bubble<=20%", piper), Ok((Figure::Bubble, true, 0.2)));
        assert_eq!(read("bubble≤0.2", piper), Ok((Figure::Bubble, true, 0.2)));
        assert_eq!(read("memory<=1GiB", piper), Ok((Figure::Memory, true, 1_073_741_824.0)));
        assert_eq!(read("mfu>=40%", Measure::IterationTime), Ok((Figure::Utilisation, false, 0.4)));
        assert_eq!(read("tokens_per_s>=1.2e6", Measure::IterationTime), Ok((Figure::Tokens, false, 1.2e6)));
        assert_eq!(read("tokens_per_s>=900 tokens/s", Measure::IterationTime), Ok((Figure::Tokens, false, 900.0)));
        assert_eq!(read("max_load<=0.5s", Measure::MaxLoad), Ok((Figure::Planned, true, 500.0)));
        assert_eq!(read("max_load<=25", Measure::MaxLoad), Ok((Figure::Planned, true, 25.0)));
        assert_eq!(read("time_per_sample<=25ms", Measure::MaxLoad), Ok((Figure::SampleTime, true, 0.025)));
        assert_eq!(read("speedup>=12x", Measure::Speedup(Default::default())), Ok((Figure::Planned, false, 12.0)));
    }

    #[test]
    fn a_goal_that_is_suggested_is_one_that_its_value_reaches() {
        for (figure, measure) in [
            (Figure::Planned, Measure::TimePerSample),
            (Figure::Planned, Measure::Speedup(Default::default())),
            (Figure::BatchTime, Measure::IterationTime),
            (Figure::Throughput, Measure::TimePerSample),
            (Figure::Bubble, Measure::TimePerSample),
        ] {
            for (at_most, value) in
                (0..400).flat_map(|i| [true, false].map(|side| (side, 0.000_97 + 0.002_113 * f64::from(i))))
            {
                let goal = Goal { figure, measure, at_most, value };
                let text = goal.rounded(value);
                let sign = if at_most { "<=" } else { ">=" };
                let read = Goal::parse(&format!("{}{sign}{text}", goal.name()), measure);
                assert!(read.is_ok_and(|read| read.holds(value)), "{} {sign} {text}: {value}", goal.name());
            }
        }
        let goal = Goal::parse("iteration_time<=37.79s", Measure::TimePerSample).unwrap();
        assert_eq!(goal.judged(37.7911), "37.79 s, just above the goal");
        assert_eq!([goal.judged(37.789), goal.judged(38.5)], ["37.79 s", "38.50 s"]);
    }

    #[test]
    fn what_is_no_goal_is_told_with_one_that_is() {
        let told = |text| Goal::parse(text, Measure::TimePerSample).unwrap_err().to_string();
        assert!(told("25ms").contains("compares nothing") && told("25ms").contains("`time_per_sample<=25ms`"));
        assert!(told("latency<=25ms").contains("no figure `latency`") && told("latency<=1s").contains("throughput"));
        assert!(told("time_per_sample<=25").contains("without a unit"), "{}", told("time_per_sample<=25"));
        assert!(told("bubble<=20").contains("write 20%"));
        assert!(told("time_per_sample=25ms").contains("exact value"));
        for text in ["bubble<=-1%", "throughput>=nan", "memory<=x", "<=", ""] {
            assert!(Goal::parse(text, Measure::TimePerSample).is_err(), "{text}");
        }
    }
}
