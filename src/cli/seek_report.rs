//! Report of `seek`: the answer with its neighbouring values, the tested values, the plan; and the same as a document.
//!
//! ```text
//! bert32a100 (37 nodes, 67 edges): Piper, least devices for planned time per sample at most 25.00 ms/sample
//! 52 devices: 24.81 ms/sample; with 51 it is 25.02 ms/sample
//! proven: with less no plan reaches the goal (bisection, 9 re-plans)
//! ```

use schemars::JsonSchema;
use serde::Serialize;

use super::report::{self, counted, line};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::{GivenLimits, LimitKind},
    export::plan_json::{self, status_word},
    family::{self, kinds::KindCount},
    plan::{
        Plan, Stage,
        document::{Document, WorkloadPart, limit_value, limits_part},
    },
    planner::{Problem, Status},
    run::Run,
    study::seek::{Goal, GoalFigure, SeekCertainty, SeekMethod, SeekProbe, SeekResult},
    units,
    workload::Workload,
};

/// Text for people.
pub(super) fn text(problem: &Problem, sought: &SeekResult) -> String {
    let mut text = String::new();
    let (question, name) = (&sought.question, sought.planner.info().name);
    line(&mut text, format_args!("{}: {name}, {}", report::about(&problem.workload), question.summary()));
    line(&mut text, format_args!("{}", answer(sought)));
    line(&mut text, format_args!("{}", certainty(sought)));
    line(&mut text, format_args!(""));
    curve(&mut text, sought);
    if let Some(run) = &sought.run {
        let plan = match (sought.answer, sought.nearest()) {
            (None, Some(step)) => format!("the nearest plan, with {}", sought.describe_value(step.value)),
            _ => format!("the plan: {}", flags(sought, &run.problem.workload, run.outcome.plan.as_ref())),
        };
        line(&mut text, format_args!(""));
        line(&mut text, format_args!("{plan}"));
        text += &report::planned(run);
    }
    text
}

/// Flag that sets the answer; with several kinds of devices, the numbers of each that the plan has.
fn flags(sought: &SeekResult, workload: &Workload, plan: Option<&Plan>) -> String {
    let mut kinds = KindCount::of(workload);
    if sought.question.least != LimitKind::Devices || kinds.is_empty() {
        return sought.flags().unwrap_or_default();
    }
    let family = family::of(workload);
    for own in &mut kinds {
        let stages = plan.iter().flat_map(|plan| &plan.stages);
        let stages = stages.filter(|stage| family.stage_kind(stage) == Some(own.id.as_str()));
        own.count = stages.map(Stage::device_count).sum();
    }
    kinds.retain(|own| own.count > 0);
    format!("--devices {}", KindCount::list(&kinds))
}

fn figure(sought: &SeekResult, step: &SeekProbe) -> String {
    step.figure.map_or_else(|| "no plan".into(), |figure| sought.question.goal.judged(figure))
}

/// Answer, and the value below it.
fn answer(sought: &SeekResult) -> String {
    let Some(nearest) = sought.nearest() else {
        let why = sought.curve.iter().rev().find(|step| !step.why.is_empty()).map(|step| step.why.as_str());
        return format!("no tried value has a plan: {}", why.unwrap_or("no value was tried"));
    };
    if sought.answer.is_none() {
        let (first, last) = (sought.curve.first(), sought.curve.last());
        let ends = first.zip(last).map(|(a, b)| match a.value == b.value {
            true => sought.describe_value(a.value),
            false => format!("{} to {}", sought.describe_value(a.value), sought.describe_value(b.value)),
        });
        return format!(
            "out of reach: of {} the nearest is {}, with {}",
            ends.unwrap_or_default(),
            figure(sought, nearest),
            sought.describe_value(nearest.value)
        );
    }
    let below = sought.below.and_then(|below| sought.curve.iter().find(|step| step.value == below));
    let below = match below {
        Some(step) if (nearest.value / step.value - 1.0).abs() < 1e-6 => {
            format!("; with any less it is {}", figure(sought, step).replace("no plan", "none at all"))
        }
        Some(step) => format!("; with {} it is {}", sought.describe_value(step.value), figure(sought, step)),
        None => "; there is no smaller value".into(),
    };
    format!(
        "{}: {}{}",
        sought.describe_value(nearest.value),
        figure(sought, nearest),
        below.replace("it is no plan", "there is no plan")
    )
}

/// Certainty and method of the answer.
fn certainty(sought: &SeekResult) -> String {
    let asked = counted(sought.curve.len(), "re-plan");
    let how = match &sought.method {
        SeekMethod::Bisection => {
            format!("by bisection, {asked}: more {} never worsen the best plan", sought.question.least.label())
        }
        SeekMethod::Sweep(why) => format!("from the least value upwards, {asked}: {why}"),
    };
    let sure = match (&sought.certainty, sought.answer) {
        (SeekCertainty::Proven | SeekCertainty::EveryValueTested, Some(_)) if sought.below.is_none() => {
            "the smallest value reaches the goal".to_string()
        }
        (SeekCertainty::Proven, _) => sought.proof(),
        (SeekCertainty::EveryValueTested, _) => "every smaller value was tried, and its plan fails".to_string(),
        (SeekCertainty::Open(why), _) => format!("not proven: {why}"),
    };
    format!("{sure}\n{how}")
}

/// Tested values, a row each.
fn curve(text: &mut String, sought: &SeekResult) {
    let goal = &sought.question.goal;
    let head = ["", sought.question.least.label(), goal.title(), "stages", "used", "planned in", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    for step in &sought.curve {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        rows.push(vec![
            if sought.answer == Some(step.value) { "*" } else { "" }.into(),
            sought.shown(step.value),
            or_dash(step.figure.map(|figure| goal.show(figure))),
            or_dash(step.stages.map(|stages| stages.to_string())),
            or_dash(step.devices.map(|devices| devices.to_string())),
            units::seconds(step.seconds),
            match step {
                SeekProbe { fault: Some(_), .. } => "bug".into(),
                SeekProbe { reaches_goal: true, .. } => "reaches it".into(),
                SeekProbe { figure: None, .. } => "no plan".into(),
                SeekProbe { ruled_out: true, .. } => "fails, proven".into(),
                _ => "fails".into(),
            },
        ]);
    }
    report::table(text, &rows);
}

/// Least value of a limit that reaches a goal.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SeekDocument {
    schema: &'static str,
    workload: WorkloadPart,
    planner: &'static str,
    limits: GivenLimits,
    least: &'static str,
    goal: GoalPart,
    among: Option<Vec<f64>>,
    /// `bisection`, `sweep`, or `one_plan` if the planner minimises the figure itself.
    method: &'static str,
    /// True if more of the limit never makes the planner's proven optimum worse.
    monotone: bool,
    /// Reason why it is not monotone, or not known to be.
    objection: Option<String>,
    answer: Option<f64>,
    flags: Option<String>,
    figure: Option<f64>,
    below: Option<f64>,
    certainty: &'static str,
    /// Plans that a proof covers, if not all.
    proven_among: Option<String>,
    open: Option<String>,
    nearest: Option<f64>,
    complete: bool,
    curve: Vec<StepPart>,
    /// Plan of the answer, or of the value nearest to the goal.
    plan: Option<Document>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GoalPart {
    pub(super) figure: &'static str,
    pub(super) simulated: bool,
    pub(super) relation: &'static str,
    pub(super) value: f64,
    pub(super) unit: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepPart {
    value: f64,
    status: &'static str,
    figure: Option<f64>,
    reaches: bool,
    ruled_out: bool,
    stages: Option<usize>,
    devices: Option<u32>,
    seconds: f64,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
}

impl From<&Goal> for GoalPart {
    fn from(goal: &Goal) -> Self {
        GoalPart {
            figure: goal.name(),
            simulated: goal.is_simulated(),
            relation: if goal.at_most { "at_most" } else { "at_least" },
            value: goal.value,
            unit: match goal.figure {
                GoalFigure::Planned => goal.measure.unit(),
                GoalFigure::SampleTime | GoalFigure::BatchTime => "s",
                GoalFigure::Throughput => "samples/s",
                GoalFigure::Idle | GoalFigure::Utilisation => "share",
                GoalFigure::Tokens => "tokens/s",
                GoalFigure::Memory => "B",
            },
        }
    }
}

/// Document of one plan that minimises a figure itself, with that figure's value and the goal's.
pub(super) fn of_one_plan(
    run: &Run,
    least: &'static str,
    goal: GoalPart,
    (answer, figure): (Option<f64>, Option<f64>),
    flags: String,
) -> SeekDocument {
    let Problem { workload, limits, .. } = &run.problem;
    let (outcome, proven) = (&run.outcome, matches!(run.outcome.status, Status::Optimal | Status::Infeasible));
    SeekDocument {
        schema: "plantui.seek/1",
        workload: workload.as_ref().into(),
        planner: run.planner.info().id,
        limits: limits_part(limits, family::of(workload).limits()),
        least,
        goal,
        among: None,
        method: "one_plan",
        monotone: true,
        objection: None,
        answer,
        flags: answer.is_some().then_some(flags),
        figure,
        below: None,
        certainty: if proven { "proven" } else { "open" },
        proven_among: outcome.proven_among.clone(),
        open: (!proven).then(|| outcome.summary()),
        nearest: None,
        complete: outcome.status != Status::Cancelled,
        curve: vec![],
        plan: Some(plan_json::of_run(run)),
    }
}

/// Document of a search.
pub(super) fn document(problem: &Problem, sought: &SeekResult) -> SeekDocument {
    let (certainty, open) = match &sought.certainty {
        SeekCertainty::Proven => ("proven", None),
        SeekCertainty::EveryValueTested => ("every_value_asked", None),
        SeekCertainty::Open(why) => ("open", Some(why.clone())),
    };
    let objection = match &sought.method {
        SeekMethod::Bisection => None,
        SeekMethod::Sweep(why) => Some(why.clone()),
    };
    let (nearest, least) = (sought.nearest(), sought.question.least);
    let told = |value| limit_value(least, value);
    SeekDocument {
        schema: "plantui.seek/1",
        workload: problem.workload.as_ref().into(),
        planner: sought.planner.info().id,
        limits: limits_part(&problem.limits, family::of(&problem.workload).limits()),
        least: sought.question.least.flag().trim_start_matches('-'),
        goal: (&sought.question.goal).into(),
        among: sought.question.among.clone(),
        method: if objection.is_none() { "bisection" } else { "sweep" },
        monotone: objection.is_none(),
        objection,
        answer: sought.answer.map(told),
        flags: sought.flags(),
        figure: nearest.and_then(|step| step.figure),
        below: sought.below.map(told),
        certainty,
        proven_among: sought.among.clone(),
        open,
        nearest: nearest.filter(|_| sought.answer.is_none()).map(|step| told(step.value)),
        complete: !sought.stopped,
        curve: sought.curve.iter().map(|step| part(least, step)).collect(),
        plan: sought.run.as_ref().map(plan_json::of_run),
    }
}

fn part(kind: LimitKind, step: &SeekProbe) -> StepPart {
    StepPart {
        value: limit_value(kind, step.value),
        status: status_word(step.status),
        figure: step.figure,
        reaches: step.reaches_goal,
        ruled_out: step.ruled_out,
        stages: step.stages,
        devices: step.devices,
        seconds: step.seconds,
        why: step.why.clone(),
    }
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<SeekDocument>("plantui.seek/1")
}
