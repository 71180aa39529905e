//! Truth table: predictions with the shipped constants beside published measurements, by source.

use std::{collections::BTreeMap, fmt::Write};

use super::{
    CLASSES, RunClass,
    refit::RowFit,
    rows::{PublishedRun, SOURCES, SkippedRows},
};
use crate::family::training::{check::Refusal, estimate::Estimate};

/// Published run with its prediction.
#[derive(Debug, Clone)]
pub struct PredictedRun<'a> {
    /// Published run.
    pub published: &'a PublishedRun,
    /// Prediction for the run.
    pub estimate: Estimate,
}

impl PredictedRun<'_> {
    /// Relative error of the time; above 0 if predicted too slow.
    pub fn time_error(&self) -> f64 {
        self.estimate.iteration_s / self.published.measured_s - 1.0
    }

    /// Relative error of the memory, if measured.
    pub fn memory_error(&self) -> Option<f64> {
        self.published.measured_bytes.map(|bytes| self.estimate.memory_bytes / bytes - 1.0)
    }
}

/// Predicts every run.
///
/// # Errors
/// First [`Refusal`] with the run's name.
pub fn predict(runs: &[PublishedRun]) -> Result<Vec<PredictedRun<'_>>, (String, Refusal)> {
    let one = |published: &'_ PublishedRun| {
        let devices = published.run.layout.devices();
        Estimate::of(&published.model, &published.run, &published.accelerator, devices, None)
            .map_err(|refusal| (published.name.clone(), refusal))
    };
    runs.iter().map(|published| Ok(PredictedRun { published, estimate: one(published)? })).collect()
}

/// Errors of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// Number of runs.
    pub count: usize,
    /// Mean of the absolute values.
    pub mean: f64,
    /// Nine of ten absolute values are at most this.
    pub band: f64,
    /// Largest absolute value.
    pub worst: f64,
    /// Mean.
    pub bias: f64,
}

/// Errors of a list of values; `None` if it is empty.
pub fn errors(values: impl IntoIterator<Item = f64>) -> Option<Errors> {
    let values: Vec<f64> = values.into_iter().collect();
    let count = values.len();
    (count > 0).then(|| Errors {
        count,
        mean: values.iter().map(|v| v.abs()).sum::<f64>() / count as f64,
        band: {
            let mut sizes: Vec<f64> = values.iter().map(|v| v.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            sizes[(9 * count).div_ceil(10) - 1]
        },
        worst: values.iter().map(|v| v.abs()).fold(0.0, f64::max),
        bias: values.iter().sum::<f64>() / count as f64,
    })
}

/// Spearman's rank correlation of two lists of equal length. Ties share their mean rank.
pub fn rank_correlation(one: &[f64], other: &[f64]) -> f64 {
    let (a, b) = (ranks(one), ranks(other));
    let mean = (one.len() as f64 - 1.0) / 2.0;
    let sum = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum::<f64>();
    sum(&a, &b) / (sum(&a, &a) * sum(&b, &b)).sqrt()
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |v: f64| values.iter().filter(|&&w| w < v).count() as f64;
    let equal = |v: f64| values.iter().filter(|&&w| w == v).count() as f64;
    values.iter().map(|&v| below(v) + (equal(v) - 1.0) / 2.0).collect()
}

/// Measured and predicted model operations per second and device: they rank configurations of different sizes.
fn rates(rows: &[&PredictedRun<'_>]) -> (Vec<f64>, Vec<f64>) {
    let predicted: Vec<f64> = rows.iter().map(|row| row.estimate.model_flops_per_s_per_device).collect();
    let measured = rows.iter().zip(&predicted).map(|(row, rate)| rate * (1.0 + row.time_error())).collect();
    (measured, predicted)
}

/// Tables as Markdown: classes, sources, another predictor's runs, and the rows that could not be expressed.
pub fn markdown(predicted: &[PredictedRun<'_>], fits: &[RowFit<'_>], left: &[SkippedRows]) -> String {
    by_class(predicted, fits)
        + "\n"
        + &by_source(predicted)
        + "\n"
        + &mixtures(predicted)
        + "\n"
        + &peers(predicted)
        + &left_rows(left)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Runs of a class, and their errors of time and memory.
pub fn of_class<'a>(
    predicted: &'a [PredictedRun<'_>],
    class: &RunClass,
) -> (Vec<&'a PredictedRun<'a>>, Option<Errors>, Option<Errors>) {
    let rows: Vec<&PredictedRun<'_>> =
        predicted.iter().filter(|row| row.estimate.trust.class() == Some(class)).collect();
    let time = errors(rows.iter().map(|row| row.time_error()));
    let memory = errors(rows.iter().filter_map(|row| row.memory_error()));
    (rows, time, memory)
}

/// Errors of a class's runs, each predicted with constants fitted without its source; `None` if no fit has them.
pub fn left_out(fits: &[RowFit<'_>], class: &RunClass) -> Option<Errors> {
    let runs = fits.iter().flat_map(|fit| &fit.runs).filter(|run| run.class == Some(class));
    errors(runs.map(|run| run.left_out))
}

fn by_class(predicted: &[PredictedRun<'_>], fits: &[RowFit<'_>]) -> String {
    let mut text = String::from(
        "| class | runs | mean error | nine of ten within | bias | worst | left out: mean | nine of ten within | \
        memory: runs | mean | nine of ten within |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for class in CLASSES {
        let (_, Some(time), memory) = of_class(predicted, class) else { continue };
        let memory = memory.map_or("– | – | –".to_string(), |memory| {
            format!("{} | {} | {}", memory.count, percent(memory.mean), percent(memory.band))
        });
        let shares = [time.mean, time.band, time.bias, time.worst].map(percent).join(" | ");
        let left = left_out(fits, class)
            .map_or("– | –".to_string(), |left| format!("{} | {}", percent(left.mean), percent(left.band)));
        _ = writeln!(text, "| {} | {} | {shares} | {left} | {memory} |", class.class, time.count);
    }
    let outside: Vec<&PredictedRun<'_>> = predicted.iter().filter(|row| row.estimate.trust.class().is_none()).collect();
    if let Some(time) = errors(outside.iter().map(|row| row.time_error())) {
        let shares = [time.mean, time.band, time.bias, time.worst].map(percent).join(" | ");
        _ = writeln!(text, "| in no class | {} | {shares} | – | – | – | – | – |", time.count);
    }
    text
}

fn by_source(predicted: &[PredictedRun<'_>]) -> String {
    let mut text = String::from(
        "| source | runs | mean error | bias | worst | rank correlation of FLOP/s | memory: runs | mean | bias |\n\
        |---|---|---|---|---|---|---|---|---|\n",
    );
    for source in SOURCES {
        let rows: Vec<&PredictedRun<'_>> = predicted.iter().filter(|row| row.published.source == source).collect();
        let Some(time) = errors(rows.iter().map(|row| row.time_error())) else { continue };
        let (measured, ours) = rates(&rows);
        let memory = errors(rows.iter().filter_map(|row| row.memory_error()))
            .map_or("– | – | –".into(), |memory| {
                format!("{} | {} | {}", memory.count, percent(memory.mean), percent(memory.bias))
            });
        let shares = [time.mean, time.bias, time.worst].map(percent).join(" | ");
        let rank = if rows.len() > 2 { format!("{:.2}", rank_correlation(&measured, &ours)) } else { "–".into() };
        _ = writeln!(text, "| {source} | {} | {shares} | {rank} | {memory} |", time.count);
    }
    text
}

/// The last release of every model on every device: a run of a mixture of experts, predicted without its release and with.
fn mixtures(predicted: &[PredictedRun<'_>]) -> String {
    let mut last: BTreeMap<(&str, &str), &PredictedRun<'_>> = BTreeMap::new();
    let release = |row: &PredictedRun<'_>| row.published.run.settings.release;
    for row in predicted.iter().filter(|row| release(row).is_some()) {
        let key = (row.published.model.name.as_str(), row.published.accelerator.id);
        let known = last.entry(key).or_insert(row);
        if release(row) > release(known) {
            *known = row;
        }
    }
    let mut text = String::from(
        "| model | devices | release | layout | measured | predicted | with its release |\n|---|---|---|---|---|---|---|\n",
    );
    for ((model, id), row) in last {
        let published = row.published;
        let unnamed = predicted.iter().find(|other| {
            let run = &other.published.run;
            other.published.name == published.name
                && run.settings.release.is_none()
                && other.published.measured_s == published.measured_s
        });
        let release = release(row).map_or_else(String::new, |release| release.to_string());
        let seconds =
            |row: &PredictedRun<'_>| format!("{:.2} s ({:+.0} %)", row.estimate.iteration_s, 100.0 * row.time_error());
        _ = writeln!(
            text,
            "| {model} | {} {id} | {release} | {}, {} | {:.2} s | {} | {} |",
            published.run.layout.devices(),
            published.run.layout,
            published.run.precision.id(),
            published.measured_s,
            unnamed.map_or_else(String::new, seconds),
            seconds(row)
        );
    }
    text
}

/// Errors of another predictor on its own runs, beside ours.
fn peers(predicted: &[PredictedRun<'_>]) -> String {
    let rows: Vec<(&PredictedRun<'_>, (f64, f64))> =
        predicted.iter().filter_map(|row| row.published.peer.map(|peer| (row, peer))).collect();
    let time = |(row, peer): &(&PredictedRun<'_>, (f64, f64))| peer.0 / row.published.measured_s - 1.0;
    let memory =
        |(row, peer): &(&PredictedRun<'_>, (f64, f64))| row.published.measured_bytes.map(|bytes| peer.1 / bytes - 1.0);
    let mut text = String::from(
        "| SimuMax's runs | time mean | worst | bias | memory mean | worst |\n|---|---|---|---|---|---|\n",
    );
    let lists = [
        (
            "predicted here",
            errors(rows.iter().map(|r| r.0.time_error())),
            errors(rows.iter().filter_map(|r| r.0.memory_error())),
        ),
        ("predicted by SimuMax itself", errors(rows.iter().map(time)), errors(rows.iter().filter_map(memory))),
    ];
    for (who, time, memory) in lists {
        let (Some(time), Some(memory)) = (time, memory) else { continue };
        let shares =
            [time.mean, time.worst, time.bias, memory.mean, memory.worst].map(|v| format!("{:.1} %", 100.0 * v));
        _ = writeln!(text, "| {who} | {} |", shares.join(" | "));
    }
    text + "\n"
}

/// Every run with its class, as Markdown.
pub fn every_row(predicted: &[PredictedRun<'_>]) -> String {
    let mut text =
        String::from("| run | layout | measured s | predicted s | error | memory |\n|---|---|---|---|---|---|\n");
    for row in predicted {
        let published = row.published;
        _ = writeln!(
            text,
            "| {}: {} | {} | {:.4} | {:.4} | {:+.1} % | {} |",
            published.source,
            published.name,
            published.run.layout,
            published.measured_s,
            row.estimate.iteration_s,
            100.0 * row.time_error(),
            row.memory_error().map_or_else(String::new, |error| format!("{:+.1} %", 100.0 * error))
        );
    }
    text + "\n"
}

fn left_rows(left: &[SkippedRows]) -> String {
    let mut text = String::from("Rows that cannot be expressed:\n\n");
    for (source, count, reason) in left {
        _ = writeln!(text, "* {source}: {}, {reason}", crate::units::counted(*count, "row"));
    }
    text
}
