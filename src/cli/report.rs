//! Report of `plan` and `check`: for people, in plain characters, readable in a log.
//!
//! ```text
//! bert32a100 (37 nodes, 67 edges): Piper, optimal, in 8.000 ms
//! 40.32 s/iteration   47.6 samples/s   12 stages on 64 of 64 devices   simulated, 1F1B
//! planner's objective: 20.20 ms/sample; simulated 21.00 ms/sample, 4.0% more
//! limited by stage 3: compute 91.0%, transfers 6.0%, all-reduce 3.0%
//!
//!   stage  DP x TP  time/sample  compute  transfers  all-reduce    memory  of 8 GiB  in flight  recompute  nodes
//!       1    4 x 1     19.90 ms    91.0%       6.0%        3.0%  7.40 GiB     92.5%         16     2 of 3  tensor .. layer
//! *     3    6 x 1     20.20 ms    ..
//!
//! proof: optimal: least time per microbatch in Piper's model
//! ```

use std::{fmt::Write, path::Path};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{device_table, input::shown, kind_table, operator_table, training_table};
pub(crate) use crate::units::counted;
use crate::{
    cluster::{LimitKind, Limits},
    family::{self, devices, kinds::KindCount},
    plan::{Measure, Plan, Score, Stage, StageScore},
    planner::Infeasible,
    run::{Run, Simulation},
    simulate::Schedule,
    study::{explain::PlanBottleneck, losses::Losses, prediction_gap::PredictionGap},
    units,
    workload::Workload,
};

/// Above this many distinct names, only the first and the last are shown.
const NAMES_SHOWN: usize = 3;

/// Longer names are cut.
const NAME_WIDTH: usize = 40;

/// Smaller relative differences between planned and simulated time need no explanation.
const NOTED_DIFFERENCE: f64 = 0.05;

/// Report of `plan`.
pub(crate) fn planned(planned: &Run) -> String {
    planned_with(planned, None)
}

/// Report of `plan` with a line on the cost below the figures.
pub(crate) fn planned_with(planned: &Run, cost: Option<&str>) -> String {
    let (workload, outcome) = (&planned.problem.workload, &planned.outcome);
    let mut text = String::new();
    let status = outcome.summary();
    let name = planned.planner.info().name;
    let seconds = units::seconds(outcome.statistics.seconds);
    line(&mut text, format_args!("{}: {name}, {status}, in {seconds}", about(workload)));
    if let (Some(plan), Some(score)) = (&outcome.plan, &planned.score) {
        text += &headline(planned, plan, score);
        cost.iter().for_each(|cost| line(&mut text, format_args!("{cost}")));
        let simulation = planned.simulation.as_ref();
        stages(&mut text, workload, &planned.problem.limits, plan, score, simulation);
        training_table::alternatives(&mut text, workload, &planned.problem.limits, outcome);
        kind_table::cheaper(&mut text, workload, &planned.problem.limits, outcome);
        proof(&mut text, planned);
    }
    if let Some(infeasible) = &outcome.infeasible {
        text += &explanation(infeasible);
    }
    line(&mut text, format_args!(""));
    line(&mut text, format_args!("limits: {}", limits(&planned.problem.workload, &planned.problem.limits)));
    let losses = planned.simulation.as_ref().and_then(Losses::of_simulation);
    if let Some(simulated) = &planned.simulation {
        simulation(&mut text, simulated, losses.as_ref(), &planned.problem.limits);
    }
    notes(&mut text, &planned.notes());
    notes(&mut text, difference(planned, losses.as_ref()).as_slice());
    text
}

/// One line about a plan that was written to a file: its figure, or the reason why there is none.
pub(crate) fn written(planned: &Run, path: &Path) -> String {
    let (outcome, name) = (&planned.outcome, planned.planner.info().name);
    let figure = outcome.plan.as_ref().zip(planned.score.as_ref()).map(|(plan, score)| headline(planned, plan, score));
    let figure = figure.or_else(|| outcome.infeasible.as_ref().map(explanation)).unwrap_or_default();
    let first = figure.lines().next().unwrap_or_default().replace("   ", ", ");
    let told = if first.is_empty() { String::new() } else { format!(": {first}") };
    format!("{}: {name}, {}{told}\n", shown(path), outcome.summary())
}

/// Figure under the settings in force, which is the simulated one, then the planner's objective if that differs.
pub(crate) fn headline(planned: &Run, plan: &Plan, score: &Score) -> String {
    let mut text = String::new();
    let limits = &planned.problem.limits;
    let (Some(gap), Some(simulation)) = (PredictionGap::of_run(planned), &planned.simulation) else {
        line(&mut text, format_args!("{}", with_band(planned, plan, objective_line(limits, plan, score))));
        if let Some(simulated) = as_simulated(planned) {
            line(&mut text, format_args!("{simulated}"));
        }
        return text;
    };
    let timeline = &simulation.timeline;
    let batch = match score.measure {
        Measure::MaxLoad | Measure::SeparateMaxima => {
            format!("{}/sample", units::seconds(1.0 / timeline.samples_per_s))
        }
        _ => format!("{}/iteration", units::seconds(timeline.iteration_s)),
    };
    let (rate, stages) = (units::number(timeline.samples_per_s), counted(plan.stages.len(), "stage"));
    let (used, schedule) = (devices::used(limits, plan), simulation.schedule.name());
    line(&mut text, format_args!("{batch}   {rate} samples/s   {stages} on {used}   simulated, {schedule}"));
    let own = score.measure.show(score.value);
    line(&mut text, format_args!("planner's objective: {own}; simulated {}", gap.summary()));
    text
}

/// The line with the band of published runs that are like the plan, behind the iteration time.
fn with_band(planned: &Run, plan: &Plan, line: String) -> String {
    let problem = &planned.problem;
    let prediction = family::of(&problem.workload).prediction(&problem.limits, plan);
    let Some(trust) = prediction.and_then(|prediction| prediction.trust) else { return line };
    line.replacen("/iteration", &format!("/iteration ±{}", units::percent(trust.band)), 1)
}

/// Appends the proof of the plan, with the bound and the plans that were searched, below the tables.
fn proof(text: &mut String, planned: &Run) {
    if let Some(proof) = planned.outcome.proof() {
        line(text, format_args!("\nproof: {proof}"));
    }
}

/// Simulated value of a plan beside its planner's: a planner's model is not the iteration that runs.
fn as_simulated(planned: &Run) -> Option<String> {
    let gap = PredictionGap::of_run(planned).map(|gap| gap.summary()).or_else(|| PredictionGap::once(planned))?;
    let simulation = planned.simulation.as_ref()?;
    Some(format!("simulated as {}: {gap}", simulation.schedule.name()))
}

/// Name and size of a workload.
pub(crate) fn about(workload: &Workload) -> String {
    format!("{} ({})", workload.name, family::of(workload).size(workload).join(", "))
}

/// Objective, throughput, stages and devices in one line.
pub(crate) fn objective_line(limits: &Limits, plan: &Plan, score: &Score) -> String {
    let time = score.slowest_s;
    let value = score.measure.show(score.value);
    let worth = match score.measure {
        Measure::TimePerSample | Measure::MaxLoad => {
            format!("{}/sample   {} samples/s", units::seconds(time), units::number(1.0 / time))
        }
        Measure::Speedup(_) | Measure::IterationTime | Measure::PipelineTime | Measure::IterationCost => value,
        Measure::SeparateMaxima => format!("{value}, largest forward plus largest backward load"),
        Measure::Latency { .. } => format!("latency {value}"),
        Measure::OperatorCost(_) => format!("{value}   {}/iteration", units::seconds(time)),
    };
    format!("{worth}   {} on {}", counted(plan.stages.len(), "stage"), devices::used(limits, plan))
}

/// True if a stage of a device placement runs on CPUs.
pub(super) fn on_cpus(stage: &Stage) -> bool {
    stage.on_cpus()
}

/// Stage that limits, as on the screen: in the simulated iteration where a planner minimises it, else by the planner's
/// own sums.
pub(crate) fn limited_by(bottleneck: &PlanBottleneck) -> String {
    let PlanBottleneck { name, parts, alike, hides_transfers, as_simulated, .. } = bottleneck;
    let shares: Vec<String> =
        parts.iter().map(|part| format!("{} {}", part_name(part.name), units::percent(part.share))).collect();
    let stage = if alike.len() > 1 { format!("{} stages alike", alike.len()) } else { name.clone() };
    let (before, after) = match as_simulated {
        Some(other) => ("without overlap ", format!("; as simulated by stage {}", other + 1)),
        None if *hides_transfers => ("", "; passes hide transfers".into()),
        None => ("", String::new()),
    };
    format!("{before}limited by {stage}: {}{after}", shares.join(", "))
}

/// Name of a part of a stage's time. The JSON document keeps the older names.
pub(super) fn part_name(part: &'static str) -> &'static str {
    match part {
        "edges" => "transfers",
        "sync" => "all-reduce",
        part => part,
    }
}

/// Appends the line about the bottleneck and the table of stages, in which a star marks each stage that limits.
pub(crate) fn stages(
    text: &mut String,
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    score: &Score,
    simulation: Option<&Simulation>,
) {
    let family = family::of(workload);
    if family.stages_are_devices() {
        return device_table::stages(text, workload, limits, plan, score);
    }
    if family.plans_are_configurations() {
        return training_table::stages(text, workload, limits, plan, score);
    }
    if let (Measure::OperatorCost(_), [stage]) = (score.measure, plan.stages.as_slice()) {
        if let Some([compute, edges, sync]) = score.stages.first().map(shares) {
            line(text, format_args!("time: compute {compute}, transfers {edges}, all-reduce {sync}"));
        }
        operator_table::operators(text, workload, stage, score);
        return;
    }
    let simulated = simulation.map(|simulation| (&simulation.pipeline, &simulation.timeline));
    let bottleneck = PlanBottleneck::of(workload, plan, score, simulated);
    bottleneck.iter().for_each(|bottleneck| line(text, format_args!("{}", limited_by(bottleneck))));
    let limiting = bottleneck.map(|bottleneck| bottleneck.alike).unwrap_or_default();
    if plan.stages.iter().any(|stage| family.stage_kind(stage).is_some()) {
        return kind_table::stages(text, workload, limits, plan, score, &limiting);
    }
    line(text, format_args!(""));
    let of_limit = format!("of {}", units::bytes_exact(limits.memory_limit()));
    let head = [
        "  stage",
        "DP x TP",
        "time/sample",
        "compute",
        "transfers",
        "all-reduce",
        "memory",
        &of_limit,
        "in flight",
        "recompute",
    ];
    let mapped = plan.topology.is_some();
    let on = mapped.then(|| "on devices".to_string());
    let mut rows: Vec<Vec<String>> =
        vec![head.iter().map(ToString::to_string).chain(on).chain([family::of(workload).nouns().into()]).collect()];
    for (i, (stage, scored)) in plan.stages.iter().zip(&score.stages).enumerate() {
        let mark = if limiting.contains(&i) { "*" } else { "" };
        let [compute, edges, sync] = shares(scored);
        let recomputed = stage.recomputed();
        let mut row = vec![
            format!("{mark} {:>5}", i + 1),
            format!("{} x {}", stage.data_parallel, stage.tensor_parallel),
            units::seconds(scored.load_s),
            compute,
            edges,
            sync,
            units::bytes_beside(scored.memory_bytes, limits.memory_limit()),
            units::percent(scored.memory_bytes / limits.memory_limit()),
            scored.in_flight.to_string(),
            format!("{recomputed} of {}", stage.nodes.len()),
        ];
        row.extend(mapped.then(|| runs(&stage.devices)));
        row.push(names(workload, stage));
        rows.push(row);
    }
    table(text, &rows);
}

/// Device numbers with consecutive ones as a range: `0-3, 7`; cut if there are many.
fn runs(devices: &[u32]) -> String {
    const SHOWN: usize = 8;
    let mut runs: Vec<(u32, u32)> = vec![];
    for &device in devices {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(device) => *last = device,
            _ => runs.push((device, device)),
        }
    }
    let shown = |&(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}-{last}"),
    };
    let more = if runs.len() > SHOWN { " .." } else { "" };
    runs.iter().take(SHOWN).map(shown).collect::<Vec<_>>().join(", ") + more
}

/// Compute, edges and sync as shares of a stage's load.
fn shares(stage: &StageScore) -> [String; 3] {
    [stage.compute_s, stage.communication_s, stage.sync_s].map(|part| {
        let share = if stage.load_s > 0.0 { part / stage.load_s } else { 0.0 };
        units::percent(share)
    })
}

/// Node names of a stage: `embedding, layer x3`, or first and last if there are many.
pub(super) fn names(workload: &Workload, stage: &Stage) -> String {
    let mut runs: Vec<(String, usize)> = vec![];
    for label in stage.nodes.iter().filter_map(|&v| workload.node(v)).map(crate::workload::Node::label) {
        match runs.last_mut() {
            Some((last, count)) if *last == label => *count += 1,
            _ => runs.push((label, 1)),
        }
    }
    let shown = |(label, count): &(String, usize)| match count {
        1 => cut(label),
        _ => format!("{} x{count}", cut(label)),
    };
    match runs.as_slice() {
        [first, .., last] if runs.len() > NAMES_SHOWN => format!("{} .. {}", shown(first), shown(last)),
        few => few.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

/// Name cut to at most [`NAME_WIDTH`] columns.
fn cut(name: &str) -> String {
    if name.width() <= NAME_WIDTH {
        return name.to_string();
    }
    let mut shown = String::new();
    for character in name.chars() {
        if shown.width() + character.width().unwrap_or(0) > NAME_WIDTH - 2 {
            break;
        }
        shown.push(character);
    }
    shown + ".."
}

/// Reason why there is no plan, and flags that would be enough.
fn explanation(infeasible: &Infeasible) -> String {
    let mut text = String::new();
    if !infeasible.explanation.is_empty() {
        line(&mut text, format_args!("{}", infeasible.explanation));
    }
    // Whole bytes, rounded up, so that the shown flag is really enough.
    let memory = infeasible
        .smallest_memory_bytes
        .map(|bytes| format!("{} {}", LimitKind::Memory.flag(), units::exact_number(bytes.ceil())));
    let devices = infeasible.fewest_devices.map(|devices| format!("{} {devices}", LimitKind::Devices.flag()));
    let enough: Vec<String> = memory.into_iter().chain(devices).collect();
    if !enough.is_empty() {
        line(&mut text, format_args!("just enough: {}", enough.join(" or ")));
    }
    text
}

/// Limits in one line.
pub(crate) fn limits(workload: &Workload, limits: &Limits) -> String {
    let one = |kind: LimitKind| format!("{} {}", kind.label(), kind.format(limits.get(kind)));
    let kinds = match workload.placement() {
        Some(profile) => profile.kinds_text(),
        None => KindCount::text(&KindCount::of(workload)),
    };
    let kinds = Some(kinds).filter(|kinds| !kinds.is_empty());
    kinds.into_iter().chain(family::of(workload).limits().iter().copied().map(one)).collect::<Vec<_>>().join(", ")
}

/// Simulated iteration in one line, its memory in the unit of the limit.
pub(crate) fn simulated(simulation: &Simulation, limits: &Limits) -> String {
    let timeline = &simulation.timeline;
    let peak = units::bytes_beside(timeline.peak_memory(), limits.memory_limit());
    if simulation.schedule == Schedule::SingleSample {
        return format!(
            "simulated one sample: {}, idle {}, peak memory {}",
            units::seconds(timeline.iteration_s),
            units::percent(timeline.idle),
            peak,
        );
    }
    format!(
        "simulated {}: {} an iteration of {}, {} samples/s, idle {}, peak memory {}",
        simulation.schedule.name(),
        units::seconds(timeline.iteration_s),
        counted(simulation.pipeline.microbatches as usize, "microbatch"),
        units::number(timeline.samples_per_s),
        units::percent(timeline.idle),
        peak,
    )
}

/// Appends the simulated iteration and the causes of its idle time: `idle time: imbalance 9.6%, bubble 2.5%`.
pub(crate) fn simulation(text: &mut String, simulation: &Simulation, losses: Option<&Losses>, limits: &Limits) {
    line(text, format_args!("{}", simulated(simulation, limits)));
    let causes = losses.map(|losses| losses.idle_in_words(simulation.timeline.idle)).unwrap_or_default();
    if !causes.is_empty() {
        line(text, format_args!("idle time: {causes}"));
    }
}

/// Explanation of a difference between simulated and planned value above [`NOTED_DIFFERENCE`].
fn difference(planned: &Run, losses: Option<&Losses>) -> Option<String> {
    let (gap, simulation) = (PredictionGap::of_run(planned)?, planned.simulation.as_ref()?);
    if gap.difference().abs() <= NOTED_DIFFERENCE {
        return None;
    }
    let Some(losses) = losses else {
        return Some(
            "simulated and planned times differ; the iteration is too long to split the difference into parts".into(),
        );
    };
    let compute = units::percent(losses.compute_s / losses.iteration_s);
    let told = format!("the slowest stage computes {compute} of the simulated iteration");
    // A speed-up is of whole batches, so nothing is added to it.
    let loads = planned.score.as_ref().filter(|score| !score.measure.larger_is_better());
    let beside =
        loads.map(|score| 1.0 - losses.compute_s / (score.slowest_s * f64::from(simulation.pipeline.microbatches)));
    Some(match beside.filter(|beside| *beside >= 0.0005) {
        Some(beside) => format!(
            "{told}; {} of the planned time are transfers and all-reduces, which the simulated iteration overlaps \
            with compute",
            units::percent(beside)
        ),
        None => told,
    })
}

/// Appends assumptions, a line each.
pub(crate) fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        line(text, format_args!("note: {note}"));
    }
}

/// Appends a line.
pub(crate) fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("a string takes every write");
}

/// Aligns rows: every column to the right except the last. The first row is the head.
pub(crate) fn table(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut cells = String::new();
        for (column, cell) in row.iter().enumerate() {
            let last = column + 1 == columns;
            let padding = if last { 0 } else { widths[column] - cell.width() };
            cells += &format!("{:padding$}{cell}{}", "", if last { "" } else { "  " });
        }
        line(text, format_args!("{}", cells.trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_characters() {
        let rows = [["a", "µs", "z"], ["long", "1", "zz"]].map(|row| row.map(String::from).to_vec());
        let mut text = String::new();
        table(&mut text, &rows);
        assert_eq!(text, "   a  µs  z\nlong   1  zz\n");
    }

    #[test]
    fn long_names_are_cut_by_width() {
        assert_eq!(cut("layer"), "layer");
        assert_eq!(cut(&"x".repeat(200)), format!("{}..", "x".repeat(38)));
        assert_eq!(cut(&"層".repeat(200)).width(), 40);
    }
}
