//! Page of an imported job.

use std::fmt::Write;

use super::ImportedJob;
use crate::{
    cli::report::line,
    family::training::{Estimate, Fits, Model, TrainingSettings},
    jobs::{Place, Unused},
    study::improve::BetterRun,
    units,
    workload::training::{Modules, Span, TrainingRun},
};

/// Width of lists of names.
const WIDTH: usize = 100;

/// Smaller relative differences count as equal.
const EQUAL: f64 = 0.005;

/// Name of the division of weights, gradients and state over replicas.
pub(super) fn sharding(settings: &TrainingSettings) -> &'static str {
    match settings.zero() {
        _ if settings.fsdp && settings.hsdp > 0 => "hsdp",
        0 => "none",
        1 => "zero1",
        2 => "zero2",
        _ => "zero3",
    }
}

/// Experts and attention window of a model, if it has them.
fn details(model: &Model) -> String {
    let experts = model.kinds.iter().find_map(|kind| kind.experts());
    let experts = experts.map(|own| format!(", {} experts ({} of a token)", own.count, own.chosen));
    let window = model.kinds.iter().find_map(|kind| match kind.span {
        Span::Window(tokens) => Some(format!(", window {tokens}")),
        _ => None,
    });
    experts.into_iter().chain(window).collect()
}

/// Parts that lie in the host's memory.
pub(super) fn offload(settings: &TrainingSettings) -> Vec<&'static str> {
    let all = [
        (settings.optimizer_offload, "optimizer"),
        (settings.parameter_offload, "parameters"),
        (settings.activation_offload > 0, "activations"),
    ];
    all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
}

pub(super) fn adapter(settings: &TrainingSettings) -> String {
    settings.adapter.map_or("none".into(), |adapter| adapter.to_string())
}

/// Recomputation with the modules that the stack's usual selection means.
pub(super) fn recompute(run: &TrainingRun) -> String {
    let text = run.recompute.to_string();
    if text == "selective" && !run.modules().is_empty() && run.modules() != Modules::NONE {
        return format!("selective:{}", run.modules().names().join(","));
    }
    text
}

impl ImportedJob<'_> {
    /// Place of a fact, by its name in a request.
    fn place(&self, name: &str) -> Option<String> {
        let assumed =
            || self.job.assumed.iter().any(|assumption| assumption.name == name).then(|| "assumed".to_string());
        self.job.facts.get(name).map(|fact| fact.place.to_string()).or_else(assumed)
    }

    /// First place of several facts.
    fn place_of(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.place(name))
    }

    /// Facts: label, value, place.
    fn facts(&self) -> Vec<(&'static str, String, Option<String>)> {
        let (run, model) = (&self.resolved.run, self.model);
        let layout = &run.layout;
        let place = |name: &str| self.place(name);
        let parameters = model.parameters() as f64;
        let billions =
            if parameters >= 1e9 { format!("{:.2} G", parameters / 1e9) } else { format!("{:.1} M", parameters / 1e6) };
        let sizes = format!(
            "{}, {billions} parameters, {} layers of width {}{}",
            model.name,
            model.layers.len(),
            model.hidden,
            details(model)
        );
        let stated = self.job.model.as_ref().map(|model| model.place.to_string());
        let mut rows = vec![
            ("model", sizes, stated),
            ("sequence length", run.sequence.to_string(), place("sequence_length")),
            ("precision", run.precision.id().to_string(), place("precision")),
            ("devices", self.resolved.devices.to_string(), place("devices")),
            ("TP", layout.tensor.to_string(), place("tp")),
            ("PP", layout.pipeline.to_string(), place("pp")),
        ];
        let optional = [
            ("VP", layout.virtual_stages, "vp"),
            ("CP", layout.context, "cp"),
            ("EP", layout.expert, "ep"),
            ("ETP", layout.expert_tensor, "etp"),
        ];
        for (label, degree, name) in optional {
            if degree > 1 || place(name).is_some_and(|_| model.has_experts() && name.starts_with('e')) {
                rows.push((label, degree.to_string(), place(name)));
            }
        }
        rows.push(("DP", layout.data.to_string(), Some("follows from the devices".into())));
        rows.push(("micro-batch", layout.micro_batch.to_string(), place("mbs")));
        rows.push(("global batch", run.global_batch.to_string(), place("global_batch")));
        rows.push(("recompute", recompute(run), place("recompute")));
        rows.push((
            "sharding",
            match run.settings.fsdp && run.layout.pipeline > 1 {
                true => format!("{}, weights stay gathered through the pipeline", sharding(&run.settings)),
                false => sharding(&run.settings).into(),
            },
            self.place_of(&["zero", "fsdp", "hsdp", "distributed_optimizer"]),
        ));
        let away = offload(&run.settings);
        if !away.is_empty() {
            let place = self.place_of(&["optimizer_offload", "parameter_offload", "activation_offload"]);
            rows.push(("offload", away.join(", "), place));
        }
        if run.settings.adapter.is_some() {
            rows.push(("adapter", adapter(&run.settings), place("adapter")));
        }
        if !run.layers.is_empty() {
            let runs = run.layers.chunk_by(|a, b| a == b).map(|alike| match alike {
                [one] => one.to_string(),
                several => format!("{} x {}", several.len(), several[0]),
            });
            rows.push(("layers of stages", runs.collect::<Vec<_>>().join(", "), place("layers")));
        }
        if let Some(schedule) = run.zero_bubble {
            rows.push(("schedule", schedule.id().into(), place("schedule")));
        }
        rows
    }

    /// Page for people.
    pub(super) fn page(&self) -> String {
        let mut text = String::new();
        let job = self.job;
        // The first line has the whole path, all others the name of the file.
        let folder = job.source.rfind('/').map_or("", |end| &job.source[..=end]);
        let recipe = job.recipe.as_ref().map_or(String::new(), |recipe| format!(", {recipe}"));
        line(&mut text, format_args!("{}: {}{recipe}", job.source, job.title));
        text.push('\n');
        let mut rows = vec![["read", "", "from"].map(String::from).to_vec()];
        for (label, value, place) in self.facts() {
            let place = place.map_or_else(|| "default of the engine".into(), |place| short(&place, folder));
            rows.push(vec![label.into(), value, place]);
        }
        left_table(&mut text, &rows);
        text.push('\n');
        for assumption in &job.assumed {
            line(
                &mut text,
                format_args!("assumed: {} {} ({})", assumption.name, short(&assumption.value, folder), assumption.flag),
            );
        }
        listed(&mut text, "no effect", &job.no_effect, folder);
        listed(&mut text, "not understood", &job.not_understood, folder);
        for note in &job.notes {
            line(&mut text, format_args!("note: {}", short(note, folder)));
        }
        text.push('\n');
        self.comparison(&mut text);
        self.outcome(&mut text);
        text
    }

    /// The job as it runs beside the best found.
    fn comparison(&self, text: &mut String) {
        let as_it_runs = self.column(self.estimate, &self.resolved.run, self.resolved.devices);
        let best = self.best.map(|best| self.column(&best.estimate, &best.run, best.devices));
        let labels = ["", "layout", "recompute", "sharding", "iteration", "tokens/s/device", "MFU", "memory", "fits"];
        let rows: Vec<Vec<String>> = labels
            .iter()
            .enumerate()
            .map(|(index, label)| {
                let mut row = vec![(*label).to_string(), as_it_runs[index].clone()];
                row.extend(best.as_ref().map(|best| best[index].clone()));
                row
            })
            .collect();
        let mut rows = rows;
        rows[0][1] = "as it runs".into();
        if let Some(head) = rows[0].get_mut(2) {
            *head = "best found".into();
        }
        left_table(text, &rows);
        line(text, format_args!("trust: {}", self.estimate.trust.summary()));
        if let Some(implausible) = &self.estimate.implausible {
            line(text, format_args!("{implausible}"));
        }
    }

    fn column(&self, estimate: &Estimate, run: &TrainingRun, devices: u64) -> [String; 9] {
        let whole = estimate.memory_bytes + run.settings.reserve_bytes;
        let limit = estimate.limit_bytes;
        let fewer = if devices == self.resolved.devices { String::new() } else { format!(" on {devices} devices") };
        [
            String::new(),
            format!("{}{fewer}", run.layout),
            recompute(run),
            sharding(&run.settings).into(),
            units::seconds(estimate.iteration_s),
            format!("{:.0}", estimate.tokens_per_s_per_device),
            units::percent(estimate.mfu),
            format!("{} of {}", units::bytes_beside(whole, limit), units::bytes_exact(limit)),
            estimate.fits.with_excess(whole, limit),
        ]
    }

    /// Difference, what would make the job fit, what was measured, and the commands that go on.
    fn outcome(&self, text: &mut String) {
        if self.estimate.fits == Fits::No {
            let fullest = self.fullest_stage();
            let told: Vec<String> = self
                .fitting
                .iter()
                .take(3)
                .map(|change| {
                    let memory = change.estimate.memory_bytes + change.run.settings.reserve_bytes;
                    let left = units::bytes_beside(change.estimate.limit_bytes - memory, change.estimate.limit_bytes);
                    format!("{} ({}, {left} left)", change.what, units::seconds(change.estimate.iteration_s))
                })
                .collect();
            let told = if told.is_empty() {
                "no single change makes it fit".into()
            } else {
                format!("it fits with {}", told.join(", or "))
            };
            line(text, format_args!("does not fit on {fullest}; {told}"));
        }
        match self.best {
            Some(best) => {
                line(text, format_args!("{} ({})", difference(self.estimate, &best.estimate), best.summary));
            }
            None => line(
                text,
                format_args!("no layout fits on {}", units::counted(self.resolved.devices as usize, "device")),
            ),
        }
        if let Some(measured) = &self.job.measured {
            let off = self.estimate.iteration_s / measured.iteration_s - 1.0;
            line(
                text,
                format_args!(
                    "measured: {}/iteration, the median of {}; the prediction is {} {}",
                    units::seconds(measured.iteration_s),
                    units::counted(measured.iterations, "iteration"),
                    units::percent(off.abs()),
                    if off < 0.0 { "shorter" } else { "longer" }
                ),
            );
            if let Some(bytes) = measured.memory_bytes {
                line(text, format_args!("measured: {} at the peak", units::bytes(bytes)));
            }
            let hardware = self.resolved.accelerator.id;
            line(text, format_args!("calibrate: {} --workload job.json", self.call));
            let runs = &self.job.source;
            line(
                text,
                format_args!(
                    "           plantui calibrate job.json --runs {runs} --hardware {hardware} --write ours.json"
                ),
            );
        }
        let Some(best) = self.best else { return };
        if let Some(changes) = self.changes(best) {
            line(text, format_args!("change: {changes}, in the job's own settings"));
        }
        if let Some(engine) = self.engine() {
            line(text, format_args!("export: {} --workload job.json --best best.json", self.call));
            line(text, format_args!("        plantui export best.json --to {engine}"));
        }
    }

    /// Engine of the job, if plans are written for it.
    fn engine(&self) -> Option<&'static str> {
        match self.job.format {
            "torchtitan" => Some("torchtitan"),
            "megatron-bridge" | "nemo" => Some("megatron-bridge"),
            "megatron" | "megatron-log" => Some("megatron"),
            "deepspeed" => Some("deepspeed"),
            "accelerate" => Some("accelerate"),
            "galvatron" => Some("galvatron"),
            "maxtext" if self.job.degree("pp") == 1 => Some("maxtext"),
            _ => None,
        }
    }

    /// Differences between the job and the best plan.
    fn changes(&self, best: &BetterRun) -> Option<String> {
        let (now, then) = (&self.resolved.run, &best.run);
        let pairs = [
            ("TP", now.layout.tensor.to_string(), then.layout.tensor.to_string()),
            ("PP", now.layout.pipeline.to_string(), then.layout.pipeline.to_string()),
            ("VP", now.layout.virtual_stages.to_string(), then.layout.virtual_stages.to_string()),
            ("CP", now.layout.context.to_string(), then.layout.context.to_string()),
            ("EP", now.layout.expert.to_string(), then.layout.expert.to_string()),
            ("DP", now.layout.data.to_string(), then.layout.data.to_string()),
            ("micro-batch", now.layout.micro_batch.to_string(), then.layout.micro_batch.to_string()),
            ("recompute", recompute(now), recompute(then)),
            ("sharding", sharding(&now.settings).to_string(), sharding(&then.settings).to_string()),
        ];
        let differ = pairs.into_iter().filter(|(_, now, then)| now != then);
        let told: Vec<String> = differ.map(|(name, now, then)| format!("{name} {now} -> {then}")).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// Stage with the most memory, and its ranks.
    fn fullest_stage(&self) -> String {
        let stages = &self.estimate.stages;
        let totals = stages.iter().map(|stage| stage.memory.total());
        let (index, _) = totals.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        let each = self.resolved.run.layout.stage_devices();
        let first = index as u64 * each;
        if stages.len() == 1 {
            return "any device".into();
        }
        format!("the devices of stage {} (ranks {first} to {})", index + 1, first + each - 1)
    }
}

/// Sentence on the time of the best layout against that of the job.
fn difference(now: &Estimate, best: &Estimate) -> String {
    let gain = now.iteration_s / best.iteration_s - 1.0;
    match now.fits {
        Fits::No => format!("the best layout fits: {}/iteration", units::seconds(best.iteration_s)),
        _ if gain > EQUAL => format!(
            "the best layout is {} faster: {} less per iteration",
            units::percent(gain),
            units::seconds(now.iteration_s - best.iteration_s)
        ),
        _ if gain < -EQUAL => {
            format!(
                "the job is {} faster than the best layout found, which keeps memory for the error of the prediction",
                units::percent(1.0 / (1.0 + gain) - 1.0)
            )
        }
        _ => "no layout is faster than that of the job".into(),
    }
}

/// Table with all columns to the left.
fn left_table(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        line(text, format_args!("{}", cells.join("  ").trim_end()));
    }
}

/// Settings that were not used, in lines of limited width.
pub(super) fn listed(text: &mut String, label: &str, list: &[Unused], folder: &str) {
    if list.is_empty() {
        return;
    }
    let mut row = format!("{label} ({}):", list.len());
    let mut last: Option<&Place> = None;
    for (index, unused) in list.iter().enumerate() {
        let value = if ["true", "none"].contains(&unused.value.as_str()) {
            String::new()
        } else {
            format!(" {}", shortened(&unused.value))
        };
        let place = if last == Some(&unused.place) {
            String::new()
        } else {
            format!(" ({})", short(&unused.place.to_string(), folder))
        };
        last = Some(&unused.place);
        let comma = if index + 1 < list.len() { "," } else { "" };
        let word = format!(" {}{value}{place}{comma}", unused.name);
        if row.len() + word.len() > WIDTH {
            let _ = writeln!(text, "{row}");
            row = "   ".into();
        }
        row += &word;
    }
    let _ = writeln!(text, "{row}");
}

/// Text without the folder of the job.
fn short(text: &str, folder: &str) -> String {
    if folder.is_empty() { text.into() } else { text.replace(folder, "") }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= 30 { text.into() } else { text.chars().take(28).chain("..".chars()).collect() }
}
