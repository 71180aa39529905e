//! `plantui seek --least cost` and `--least iteration_time`: the cheapest plan within a time, or the fastest within a
//! cost, on devices with prices.
//!
//! The planner minimises both itself, so that one plan answers the question. `O(plan)`.

use super::{
    CommandEnd, Failure,
    arguments::{LimitArgs, PlannerArgs},
    output::{self, Destination},
    planning::{self, PlanningTask},
    report::{self, line},
    seek_report,
};
use crate::{
    family::{kinds::KindCount, mixed::layout},
    plan::Measure,
    planner::Status,
    run::Run,
    study::seek::Goal,
    units,
    workload::Workload,
};

/// Figure of a plan that is minimised under a limit on the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeastFigure {
    /// Cost of an iteration.
    Cost,
    /// Time of an iteration.
    Time,
}

impl LeastFigure {
    /// Words of the command line; the first one is shown.
    pub(super) const WORDS: [(LeastFigure, &[&str]); 2] =
        [(LeastFigure::Cost, &["cost", "usd"]), (LeastFigure::Time, &["iteration_time", "time"])];

    /// Figure with this word.
    pub(super) fn find(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(_, words)| words.contains(&word)).map(|(figure, _)| figure)
    }

    /// Word of the command line.
    pub(super) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(figure, _)| *figure == self).map_or("", |(_, words)| words[0])
    }

    fn measure(self) -> Measure {
        match self {
            LeastFigure::Cost => Measure::IterationCost,
            LeastFigure::Time => Measure::PipelineTime,
        }
    }

    fn other(self) -> Self {
        match self {
            LeastFigure::Cost => LeastFigure::Time,
            LeastFigure::Time => LeastFigure::Cost,
        }
    }

    /// Limit on the other figure: `iteration_time<=6s`, or `cost<=0.08`.
    fn goal(self, text: &str) -> Result<Goal, Failure> {
        let limited = self.other();
        let at = text.find(['<', '>', '≤', '≥', '=']).unwrap_or(text.len());
        let (word, rest) = text.split_at(at);
        let example = match limited {
            LeastFigure::Time => "iteration_time<=6s",
            LeastFigure::Cost => "cost<=0.08",
        };
        let refused = |problem: String| Failure::refused(problem, format!("write --until '{example}'"));
        let known = LeastFigure::find(word.trim()).is_some_and(|own| own == limited);
        if !known && word.trim() != limited.measure().name() {
            return Err(refused(format!("--least {} needs a limit on {}", self.word(), limited.word())));
        }
        let goal = Goal::parse(&format!("objective{rest}"), limited.measure());
        let goal = goal.map_err(|error| refused(error.message.replace("objective", limited.word())))?;
        if goal.value <= 0.0 {
            return Err(refused(format!("--until {} at most 0: no plan is so good", limited.word())));
        }
        if !goal.at_most {
            return Err(refused(format!("--least {} needs {} at most", self.word(), limited.word())));
        }
        Ok(goal)
    }

    /// Settings of the planner for the question.
    fn settings(self, goal: &Goal) -> [String; 2] {
        match self {
            LeastFigure::Cost => ["minimise=cost".into(), format!("most_seconds={}", goal.value)],
            LeastFigure::Time => ["minimise=time".into(), format!("most_cost={}", goal.value)],
        }
    }
}

/// Plans for the least of a figure within a limit on the other one, and prints the answer with its plan.
///
/// # Errors
/// [`Failure`] for wrong use, or if the result cannot be written.
pub(super) fn run(
    least: LeastFigure,
    until: &str,
    workload: Workload,
    (limits, planning): (&LimitArgs, &PlannerArgs),
    (json, destination): (bool, &Destination),
) -> Result<CommandEnd, Failure> {
    let kinds = KindCount::of(&workload);
    if workload.mixed().is_none() {
        let problem = format!("--least {} is for devices with prices", least.word());
        let repair = match workload.training() {
            Some(_) => "name them in --devices, such as 16xh100:2.50,32xa100-80:1.20".into(),
            None => format!("{} has no kinds of devices with a price: take another --least", workload.name),
        };
        return Err(Failure::refused(problem, repair));
    }
    let without = kinds.iter().find(|kind| kind.count > 0 && kind.price_per_hour.is_none());
    if let Some(KindCount { id, count, .. }) = without {
        let repair = format!("write --devices {count}x{id}:PRICE, for an hour");
        return Err(Failure::refused(format!("{id} has no price"), repair));
    }
    let goal = least.goal(until)?;
    let own = least.settings(&goal);
    let name = |setting: &str| setting.split('=').next().unwrap_or_default().trim().to_string();
    let set_by = |setting: &&String| own.iter().any(|own| name(own) == name(setting));
    if let Some(setting) = planning.settings.iter().find(set_by) {
        let problem = format!("--set {setting} and seek --least {} set the same option", least.word());
        return Err(Failure::refused(problem, "leave it out"));
    }
    let asked =
        PlannerArgs { settings: planning.settings.iter().cloned().chain(own.clone()).collect(), ..planning.clone() };
    let task = PlanningTask::new(workload, limits, &asked)?;
    let (planned, _until_written) = task.run(&asked)?;
    let answer = Answer { least, goal, settings: own, run: &planned };
    let text = if json { output::json(&answer.document()) } else { answer.text() };
    destination.write(&text)?;
    Ok(planning::ending(&planned))
}

/// Answer with its plan.
struct Answer<'a> {
    least: LeastFigure,
    goal: Goal,
    settings: [String; 2],
    run: &'a Run,
}

impl Answer<'_> {
    /// Planned time and cost of the plan.
    fn figures(&self) -> Option<(f64, f64)> {
        let (problem, plan) = (&self.run.problem, self.run.outcome.plan.as_ref()?);
        let profile = problem.workload.mixed()?;
        let (seconds, cost) = layout::pipeline(profile, &problem.limits, plan).ok()?.time_and_cost(profile)?;
        Some((seconds, cost?))
    }

    /// Value of a figure of the plan, if there is one.
    fn value(&self, of: LeastFigure) -> Option<f64> {
        let (seconds, cost) = self.figures()?;
        Some(if of == LeastFigure::Cost { cost } else { seconds })
    }

    /// Flags with which `plantui plan` gives the same plan.
    fn flags(&self) -> String {
        self.settings.each_ref().map(|setting| format!("--set {setting}")).join(" ")
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let most = self.goal.value;
        let question = match self.least {
            LeastFigure::Cost => format!("cheapest iteration within {}", units::seconds(most)),
            LeastFigure::Time => format!("fastest iteration for a cost of at most {}", units::number(most)),
        };
        let about = report::about(&self.run.problem.workload);
        let name = self.run.planner.info().name;
        line(&mut text, format_args!("{about}: {name}, {question}"));
        match self.figures() {
            Some((seconds, cost)) => {
                let (seconds, cost) = (units::seconds(seconds), units::number(cost));
                let answer = match self.least {
                    LeastFigure::Cost => format!("a cost of {cost} for an iteration of {seconds}"),
                    LeastFigure::Time => format!("an iteration of {seconds} for a cost of {cost}"),
                };
                line(&mut text, format_args!("{answer}"));
            }
            None if self.run.outcome.status == Status::Cancelled => {
                line(&mut text, format_args!("stopped before any plan was found"));
            }
            None => line(&mut text, format_args!("no plan reaches it")),
        }
        line(&mut text, format_args!("\nasked of the planner: {}", self.flags()));
        text + &report::planned(self.run)
    }

    fn document(&self) -> seek_report::SeekDocument {
        let limited = self.least.other();
        let goal = seek_report::GoalPart { figure: limited.word(), ..(&self.goal).into() };
        let values = (self.value(self.least), self.value(limited));
        seek_report::of_one_plan(self.run, self.least.word(), goal, values, self.flags())
    }
}
