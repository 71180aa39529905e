//! Predictions of published training runs with the shipped constants, held against what was measured.

use plantui::family::training::{
    Stack,
    truth::{
        self, refit,
        rows::{self, PublishedRun, SOURCES},
        summary::{self, PredictedRun, errors, rank_correlation},
    },
};

fn published() -> (Vec<PublishedRun>, Vec<rows::SkippedRows>) {
    rows::read(&crate::common::reference::root().join("truth")).unwrap()
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn published_runs_are_predicted_within_their_targets() {
    let (runs, left) = published();
    let predicted = summary::predict(&runs).unwrap();
    assert_eq!((predicted.len(), left.iter().map(|(_, count, _)| count).sum::<usize>()), (588, 53));
    let of = |source: &'static str| predicted.iter().filter(move |row| row.published.source == source);
    for (source, count, target) in [
        (SOURCES[0], 57, 0.03),
        (SOURCES[1], 57, 0.05),
        (SOURCES[2], 8, 0.04),
        (SOURCES[3], 10, 0.05),
        (SOURCES[4], 24, 0.05),
        (SOURCES[5], 22, 0.05),
        (SOURCES[7], 12, 0.05),
        (SOURCES[8], 37, 0.09),
        (SOURCES[9], 63, 0.05),
        (SOURCES[12], 40, 0.07),
        (SOURCES[16], 48, 0.07),
        (SOURCES[17], 95, 0.17),
        (SOURCES[18], 5, 0.10),
        (SOURCES[19], 67, 0.14),
    ] {
        let time = errors(of(source).map(PredictedRun::time_error)).unwrap();
        assert_eq!(time.count, count, "{source}");
        assert!(time.mean <= target, "{source}: {time:?}");
    }
    let mean = |wanted: &dyn Fn(&PredictedRun<'_>) -> bool| {
        errors(predicted.iter().filter(|row| wanted(row)).map(PredictedRun::time_error)).unwrap().mean
    };
    let of_experts =
        |row: &PredictedRun<'_>, stack| row.published.model.has_experts() && row.published.run.stack == stack;
    let unnamed = |row: &PredictedRun<'_>| row.published.run.settings.release.is_none();
    let bridge = |row: &PredictedRun<'_>| {
        of_experts(row, Stack::Megatron2025) && unnamed(row) && !row.published.name.starts_with("Grok")
    };
    assert!(mean(&bridge) <= 0.19, "Megatron-Bridge, no release: {}", mean(&bridge));
    let grok = |row: &PredictedRun<'_>| of_experts(row, Stack::Nemo24) && row.published.run.precision.bits() == 16;
    assert!(mean(&grok) <= 0.08, "Grok in 16 bits: {}", mean(&grok));
    let simumax = |row: &PredictedRun<'_>| of_experts(row, Stack::Plain);
    assert!(mean(&simumax) <= 0.08, "SimuMax: {}", mean(&simumax));
    let memory = errors(of(SOURCES[5]).filter_map(PredictedRun::memory_error)).unwrap();
    assert!(memory.count == 22 && memory.mean <= 0.025, "{memory:?}");
    let sharded = predicted.iter().filter(|row| row.published.run.settings.fsdp);
    let memory = errors(sharded.filter_map(PredictedRun::memory_error)).unwrap();
    assert!(memory.count == 26 && memory.mean <= 0.15, "{memory:?}");
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn trust_is_what_was_measured() {
    let (runs, left) = published();
    let predicted = summary::predict(&runs).unwrap();
    let fits = refit::all(&runs).unwrap();
    let table = summary::markdown(&predicted, &fits, &left);
    let documented = include_str!("../../docs/src/background/truth.md");
    let lines = table.lines().filter(|line| line.starts_with('|') || line.starts_with('*'));
    for line in lines {
        assert!(documented.contains(line), "docs/src/background/truth.md lacks: {line}");
    }
    let mut in_band = 0;
    for class in truth::CLASSES {
        let (rows, time, memory) = summary::of_class(&predicted, class);
        let time = time.unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
        assert_eq!(time.count, class.runs as usize, "{}", class.class);
        let told = [class.mean_error, class.band, class.bias, class.worst_error];
        let unseen = summary::left_out(&fits, class).unwrap_or(time);
        let measured = [time.mean.max(unseen.mean), time.band.max(unseen.band), time.bias, time.worst];
        assert!(told.into_iter().zip(measured).all(|(a, b)| near(a, b)), "{}: {time:?}", class.class);
        assert_eq!(memory.map(|m| m.count), class.memory.map(|m| m.runs as usize), "{}", class.class);
        if let (Some(told), Some(memory)) = (class.memory, memory) {
            assert!(near(told.mean, memory.mean) && near(told.band, memory.band), "{memory:?}");
        }
        in_band += rows.iter().filter(|row| row.time_error().abs() <= class.band + 1e-4).count();
        // The domain is as wide as the runs are.
        let devices = rows.iter().map(|row| row.published.run.layout.devices());
        let sequences = rows.iter().map(|row| row.published.run.sequence);
        let parameters = rows.iter().map(|row| row.published.model.parameters() as f64);
        let domain = &class.domain;
        assert_eq!([devices.clone().min(), devices.max()], domain.devices.map(Some), "{}", class.class);
        assert_eq!([sequences.clone().min(), sequences.max()], domain.sequence.map(Some), "{}", class.class);
        let [least, most] = [parameters.clone().fold(f64::INFINITY, f64::min), parameters.fold(0.0, f64::max)];
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.05;
        assert!(
            near(least, domain.parameters[0]) && near(most, domain.parameters[1]),
            "{}: {least} {most}",
            class.class
        );
    }
    assert!(in_band as f64 >= 0.9 * predicted.len() as f64, "{in_band} of {}", predicted.len());
    for row in &predicted {
        assert!(row.estimate.trust.class().is_some(), "{}: {:?}", row.published.name, row.estimate.trust);
    }
}

#[test]
fn ranks_correlate() {
    assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[10.0, 20.0, 90.0]), 1.0);
    assert_eq!(rank_correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
    // Ties share their ranks: 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert!((rank_correlation(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]) - 0.9_f64.sqrt()).abs() < 1e-12);
}
