//! Joint beside the configurations that experts published: theirs is among those it searches, so that it is never slower.

use std::{fmt::Write, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family::{
        self,
        training::{
            Constants, Estimate,
            truth::rows::{self, PublishedRun, SOURCES},
        },
    },
    plan::Configuration,
    planner::{self, Options, Problem, Search},
    run,
    workload::{TrainingProfile, WorkloadFormat},
};

/// A published run, and what joint finds for the same model, devices, batch, precision and software.
struct HeadroomRow {
    published: PublishedRun,
    /// Simulated, seconds.
    theirs_s: f64,
    ours_s: f64,
    ours: Configuration,
}

fn row(published: PublishedRun) -> HeadroomRow {
    let (run, accelerator) = (&published.run, published.accelerator);
    let devices = run.layout.devices();
    let theirs = Estimate::of(&published.model, run, &accelerator, devices, None).unwrap();
    let profile = TrainingProfile {
        model: published.model.clone(),
        sequence: run.sequence,
        precision: run.precision,
        stack: run.stack,
        settings: run.settings.clone(),
        constants: Constants::shipped(accelerator.generation, run.stack),
        accelerator,
        remarks: vec![],
    };
    // What is predicted not to fit, or to fit closely, did fit.
    let needed = (theirs.memory_bytes + run.settings.reserve_bytes) * (1.0 + theirs.trust.memory_error());
    let asked = GivenLimits::default()
        .with(LimitKind::Devices, devices as u32)
        .with(LimitKind::Batch, run.global_batch as u32)
        .with(LimitKind::Memory, accelerator.memory_bytes.max(needed));
    let workload = Arc::new(profile.into_workload(&published.name, "truth", WorkloadFormat::Training, None));
    let joint = planner::find("joint").unwrap();
    let limits = family::resolve(&workload, &asked).unwrap();
    let problem = Problem { workload, limits, options: Options::defaults(joint.options()) };
    let (outcome, _) = run::plan(joint, &problem, &Search::default()).unwrap();
    let ours = outcome.plan.unwrap().configuration().cloned().unwrap();
    HeadroomRow { theirs_s: theirs.simulated_s, ours_s: outcome.objective.unwrap(), ours, published }
}

/// The lines of the table in docs/src/background/headroom.md.
fn table(rows: &[HeadroomRow]) -> String {
    let mut text = String::new();
    let less = |row: &HeadroomRow| row.theirs_s / row.ours_s - 1.0;
    for source in &SOURCES[..7] {
        let of: Vec<&HeadroomRow> = rows.iter().filter(|row| row.published.source == *source).collect();
        let mean = of.iter().map(|row| less(row)).sum::<f64>() / of.len() as f64;
        let most = of.iter().map(|row| less(row)).fold(0.0, f64::max);
        let above = of.iter().filter(|row| less(row) > 0.1).count();
        let (count, mean, most) = (of.len(), 100.0 * mean, 100.0 * most);
        writeln!(text, "| {source} | {count} | {mean:.1} % | {most:.1} % | {above} |").unwrap();
    }
    for row in rows.iter().filter(|row| less(row) > 0.1) {
        let PublishedRun { name, run, .. } = &row.published;
        let theirs = format!("{}, recompute {}", run.layout, run.recompute);
        writeln!(text, "| {name} | {theirs} | {} | {:.0} % |", row.ours, 100.0 * less(row)).unwrap();
    }
    text
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn joint_is_never_slower_than_what_experts_published() {
    let (runs, _) = rows::read(&crate::common::reference::root().join("truth")).unwrap();
    // Joint does not search what NVIDIA's software cannot run. The runs of the second collection would take minutes.
    let first = runs.into_iter().filter(|published| SOURCES[..7].contains(&published.source));
    let usual = first.filter(|published| published.run.zero_bubble.is_none());
    let rows: Vec<HeadroomRow> = usual.map(row).collect();
    assert_eq!(rows.len(), 202);
    for row in &rows {
        let (ours, theirs) = (row.ours_s, row.theirs_s);
        assert!(ours <= theirs * (1.0 + 1e-9), "{}: {ours} against {theirs}", row.published.name);
    }
    let table = table(&rows);
    println!("{table}");
    let documented = include_str!("../../docs/src/background/headroom.md");
    for line in table.lines() {
        assert!(documented.contains(line), "docs/src/background/headroom.md lacks: {line}");
    }
}
