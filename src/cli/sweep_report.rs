//! Output of `sweep`: a table for people, a document for programs.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::{
    cost::{Cost, PlanRate, TrainingCost},
    output,
    report::{self, line},
};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::GivenLimits,
    family,
    plan::{
        Measure,
        document::{WorkloadPart, limits_part},
    },
    planner::Status,
    study::sweep::{
        ChartFigure, PointResult, PointSimulation, Sweep,
        chart::{Chart, ChartAxis, ChartLine},
    },
    units,
};

/// Workload and axes in one line.
pub(super) fn title(sweep: &Sweep) -> String {
    let workload = match &sweep.workloads[..] {
        [workload] => workload.name.clone(),
        all => report::counted(all.len(), "workload"),
    };
    let axes = sweep.axis_labels();
    if axes.is_empty() { workload } else { format!("{workload} by {}", axes.join(" and ")) }
}

/// Table of a sweep. `taken` points were there before; `again` is the file from which a stopped sweep resumes.
pub(super) fn table(
    sweep: &Sweep,
    answers: &[Option<PointResult>],
    figure: ChartFigure,
    (taken, again): (usize, Option<&str>),
    costs: &[Option<TrainingCost>],
) -> String {
    let mut text = String::new();
    let done = answers.iter().flatten().count();
    for workload in sweep.workloads.iter().take(4) {
        line(&mut text, format_args!("{}", report::about(workload)));
    }
    if sweep.workloads.len() > 4 {
        line(&mut text, format_args!("and {}", report::counted(sweep.workloads.len() - 4, "other workload")));
    }
    let chart = Chart::new(sweep, answers, figure);
    let from_file = if taken > 0 { format!(", {taken} of them from the file") } else { String::new() };
    line(
        &mut text,
        format_args!("{} by {}: {}{from_file}", chart.y_title(), title_of_axes(sweep), report::counted(done, "point")),
    );
    // Whatever figure is shown, bounds are on the objectives.
    let objectives = answers.iter().flatten().filter_map(|answer| answer.objective.as_ref());
    let goals: BTreeSet<&str> = objectives.filter_map(|objective| Measure::goal_of(&objective.name)).collect();
    if !goals.is_empty() {
        let goals = goals.into_iter().collect::<Vec<_>>().join(", or the ");
        line(
            &mut text,
            format_args!("bounds are on the {goals} within the planner's options; iterations are simulated"),
        );
    }
    line(&mut text, format_args!(""));
    match &chart.lines[..] {
        [one] => single(&mut text, sweep, (&chart, one), answers, costs),
        lines => {
            let mut together = String::new();
            side_by_side(&mut together, sweep, &chart, answers);
            // Sentences below the table may wrap.
            let rows = together.lines().take(chart.places.len() + 1);
            let widest = rows.map(UnicodeWidthStr::width).max().unwrap_or(0);
            if widest <= output::columns() {
                text += &together;
            } else {
                // A table wider than the terminal is printed as one block per line of the chart.
                for (place, one) in lines.iter().enumerate() {
                    line(&mut text, format_args!("{}{}", if place > 0 { "\n" } else { "" }, one.label));
                    single(&mut text, sweep, (&chart, one), answers, costs);
                }
            }
        }
    }
    let open = answers.len() - done;
    if open > 0 {
        let how = again.map_or_else(|| "--output would keep them".into(), |file| format!("--resume {file} continues"));
        line(&mut text, format_args!("stopped: {} of {} points are missing; {how}", open, answers.len()));
    }
    text
}

fn title_of_axes(sweep: &Sweep) -> String {
    let axes = sweep.axis_labels();
    if axes.is_empty() { "workload".into() } else { axes.join(" and ") }
}

/// Appends one line of the chart: a row for each point with all its figures.
fn single(
    text: &mut String,
    sweep: &Sweep,
    (chart, one): (&Chart, &ChartLine),
    answers: &[Option<PointResult>],
    costs: &[Option<TrainingCost>],
) {
    let y_title = chart.y_title();
    let head = [
        chart.x_title(),
        &y_title,
        "bound",
        "iteration",
        "samples/s",
        "idle",
        "peak memory",
        "used",
        "stages",
        "planned in",
    ];
    // Not all clusters need to have prices.
    let heads = costs.iter().flatten().map(TrainingCost::heads).max_by_key(Vec::len).unwrap_or_default();
    let mut rows = vec![head.map(String::from).into_iter().chain(heads.clone()).chain([String::new()]).collect()];
    for mark in &one.marks {
        let Some(answer) = &answers[mark.place] else { continue };
        let limit = sweep.points[mark.place].limits.memory_limit();
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let simulated = answer.simulated.as_ref();
        let bound = answer.objective.as_ref().zip(answer.bound).map(|(objective, bound)| {
            let gap = if objective.value == 0.0 { 0.0 } else { ((objective.value - bound) / objective.value).abs() };
            if gap <= 1e-9 { "proven".into() } else { units::percent(gap) }
        });
        let mut row = vec![
            chart.show_x(mark.x),
            or_dash(mark.y.map(|y| chart.show_y(y))),
            or_dash(bound),
            or_dash(simulated.map(|s| units::seconds(s.iteration_s))),
            or_dash(simulated.map(|s| units::number(s.samples_per_s))),
            or_dash(simulated.map(|s| units::percent(s.idle))),
            or_dash(simulated.map(|s| units::bytes_beside(s.peak_memory_bytes, limit))),
            or_dash(answer.devices_used.map(|devices| devices.to_string())),
            or_dash(answer.stages.map(|stages| stages.to_string())),
            units::seconds(answer.seconds),
        ];
        let cost = costs.get(sweep.points[mark.place].workload).and_then(Option::as_ref);
        let cells: BTreeMap<String, String> =
            cost.map(|cost| cost.heads().into_iter().zip(cost.cells(rate(answer))).collect()).unwrap_or_default();
        row.extend(heads.iter().map(|head| or_dash(cells.get(head).cloned())));
        row.push(if answer.has_plan() { String::new() } else { no_plan(answer, sweep, mark.place).into() });
        rows.push(row);
    }
    report::table(text, &rows);
    if let Some((what, x, why)) = why(chart, one, answers) {
        line(text, format_args!("{what} with {x}: {why}"));
    }
}

/// Missing plan or simulation of a line, with its position and reason. Of several positions, the last is the most
/// informative.
fn why<'a>(
    chart: &Chart,
    one: &ChartLine,
    answers: &'a [Option<PointResult>],
) -> Option<(&'static str, String, &'a str)> {
    let reason = |place: usize| answers[place].as_ref().filter(|answer| !answer.why.is_empty());
    let (mark, answer) = one.marks.iter().rev().find_map(|mark| Some((mark, reason(mark.place)?)))?;
    let what = if answer.has_plan() { "a plan" } else { "no plan" };
    let x = chart.show_x(mark.x);
    let x = if matches!(chart.along, ChartAxis::Workloads(_)) { x } else { format!("{x} {}", chart.x_title()) };
    Some((what, x, &answer.why))
}

/// Rate of a point's plan.
fn rate(answer: &PointResult) -> Option<PlanRate> {
    let rate = |(simulated, used): (&PointSimulation, u32)| PlanRate {
        samples_per_s: simulated.samples_per_s,
        iteration_s: simulated.iteration_s,
        devices: used.into(),
        prices: answer.prices,
    };
    answer.simulated.as_ref().zip(answer.devices_used).map(rate)
}

fn no_plan(answer: &PointResult, sweep: &Sweep, place: usize) -> &'static str {
    let point = &sweep.points[place];
    match answer.status {
        _ if answer.fault.is_some() => "bug",
        Status::Cancelled => "stopped",
        _ if sweep.refusal(point.series, point.workload).is_some() => "cannot",
        _ => "no plan",
    }
}

/// Most lines whose missing plans are explained.
const MOST_REASONS: usize = 6;

/// Appends several lines of the chart, a column each; the best value of a row has a star.
fn side_by_side(text: &mut String, sweep: &Sweep, chart: &Chart, answers: &[Option<PointResult>]) {
    let larger_is_better = match &chart.objective {
        Some((_, unit)) => unit == "x",
        None => chart.figure == ChartFigure::Throughput,
    };
    let mut head = vec![chart.x_title().to_string()];
    head.extend(chart.lines.iter().map(|line| line.label.clone()));
    let mut rows = vec![head];
    for &x in &chart.places {
        let marks: Vec<_> = chart.lines.iter().map(|line| line.marks.iter().find(|mark| mark.x == x)).collect();
        if marks.iter().all(Option::is_none) {
            continue;
        }
        let values = marks.iter().flatten().filter_map(|mark| mark.y);
        let best = values.reduce(|a, b| if larger_is_better { a.max(b) } else { a.min(b) });
        let mut row = vec![chart.show_x(x)];
        row.extend(marks.iter().map(|mark| match mark {
            None => String::new(),
            Some(mark) => match mark.y {
                None => {
                    let missing = |answer: &PointResult| match answer.has_plan() {
                        true => "-",
                        false => no_plan(answer, sweep, mark.place),
                    };
                    answers[mark.place].as_ref().map_or("", missing).into()
                }
                Some(y) => {
                    let star = best.is_some_and(|best| (y - best).abs() <= 1e-9 * best.abs());
                    format!("{}{}", if star { "*" } else { "" }, chart.show_y(y))
                }
            },
        }));
        rows.push(row);
    }
    // Names are aligned to the left, figures to the right.
    if matches!(chart.along, ChartAxis::Workloads(_)) {
        for row in &mut rows {
            row.rotate_left(1);
        }
    }
    report::table(text, &rows);
    let reasons: Vec<_> = chart.lines.iter().filter_map(|one| Some((&one.label, why(chart, one, answers)?))).collect();
    for (label, (what, x, why)) in reasons.iter().take(MOST_REASONS) {
        line(text, format_args!("{what} of {label} with {x}: {why}"));
    }
    if let Some(more @ 1..) = reasons.len().checked_sub(MOST_REASONS) {
        line(
            text,
            format_args!(
                "and {} without a plan at some point; --json gives the reasons",
                report::counted(more, "other line")
            ),
        );
    }
}

/// Plans over a range of limits.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SweepDocument<'a> {
    schema: &'static str,
    workloads: Vec<WorkloadPart>,
    axes: Vec<&'static str>,
    series: Vec<SeriesPart<'a>>,
    complete: bool,
    points: Vec<PointPart<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SeriesPart<'a> {
    label: &'a str,
    planner: &'static str,
    options: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PointPart<'a> {
    workload: usize,
    series: usize,
    limits: GivenLimits,
    status: Status,
    objective: Option<PointObjectivePart<'a>>,
    lower_bound: Option<f64>,
    stages: Option<usize>,
    devices: Option<u32>,
    /// Layout of a model to be trained, in the notation of `--parallel`, or the stages by kind of device.
    #[serde(skip_serializing_if = "str::is_empty")]
    layout: &'a str,
    iteration_s: Option<f64>,
    samples_per_s: Option<f64>,
    bubble: Option<f64>,
    peak_memory_bytes: Option<f64>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Cost>,
    #[serde(skip_serializing_if = "str::is_empty")]
    why: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PointObjectivePart<'a> {
    name: &'a str,
    value: f64,
    unit: &'a str,
}

/// Document of the answered points.
pub(super) fn document<'a>(
    sweep: &'a Sweep,
    answers: &'a [Option<PointResult>],
    costs: &[Option<TrainingCost>],
) -> SweepDocument<'a> {
    let points = sweep.points.iter().zip(answers).filter_map(|(point, answer)| {
        let answer = answer.as_ref()?;
        let simulated = answer.simulated.as_ref();
        Some(PointPart {
            workload: point.workload,
            series: point.series,
            limits: limits_part(&point.limits, family::of(&sweep.workloads[point.workload]).limits()),
            status: answer.status,
            objective: answer.objective.as_ref().map(|objective| PointObjectivePart {
                name: &objective.name,
                value: objective.value,
                unit: &objective.unit,
            }),
            lower_bound: answer.bound,
            stages: answer.stages,
            devices: answer.devices_used,
            layout: &answer.layout,
            iteration_s: simulated.map(|s| s.iteration_s),
            samples_per_s: simulated.map(|s| s.samples_per_s),
            bubble: simulated.map(|s| s.idle),
            peak_memory_bytes: simulated.map(|s| s.peak_memory_bytes),
            seconds: answer.seconds,
            cost: costs
                .get(point.workload)
                .and_then(Option::as_ref)
                .zip(rate(answer))
                .and_then(|(cost, rate)| cost.figures(&rate)),
            why: &answer.why,
        })
    });
    let series = sweep.series.iter().map(|series| SeriesPart {
        label: &series.label,
        planner: series.planner.info().id,
        options: series.options.iter().map(|(name, value)| (name.to_string(), value.json())).collect(),
    });
    SweepDocument {
        schema: "plantui.sweep/1",
        workloads: sweep.workloads.iter().map(|workload| workload.as_ref().into()).collect(),
        axes: sweep.axis_labels(),
        series: series.collect(),
        complete: answers.iter().all(Option::is_some),
        points: points.collect(),
    }
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<SweepDocument<'_>>("plantui.sweep/1")
}
