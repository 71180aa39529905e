//! `plantui calibrate`: fits the constants of `estimate` to the user's own measured runs.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{
    CommandEnd, Failure,
    calibrate_document::CalibrateDocument,
    estimate, hardware_file, input,
    output::{self, Destination},
    report::{line, table},
};
use crate::{
    cluster::hardware,
    family::training::{
        Model,
        calibrate::{self, CalibrationFit, KernelFit, MeasuredKernels, MeasuredRun, RunError},
        request::Request,
    },
    jobs, units,
    workload::formats::{self, detect},
};

const EXAMPLES: &str = "\
Examples:
  plantui calibrate llama-3.1-8b --runs runs.csv --write ours.json
  plantui calibrate path/to/config.json --runs a.log --runs b.log --hardware h100
  plantui calibrate --kernels kernels.json --hardware my-board.toml --stack torchtitan --write ours.json
  plantui estimate llama-3.1-70b --devices 64 --parallel tp=8 --global-batch 128 --calibration ours.json

Runs are a CSV table or logs of Megatron-LM or torchtitan. The first line of a table names its columns as `plantui \
estimate` names flags, degrees and settings; measured_s is the iteration time in seconds, measured_memory_bytes is \
optional. Flags here give what the runs do not state.

  tp,pp,devices,global_batch,measured_s
  4,4,64,128,14.9
  8,2,64,128,15.8";

/// Fit the constants of `estimate` to measured runs
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// The model of the runs: as `plantui estimate` takes it
    model: Option<String>,
    /// Measured runs: a table or an engine's log; may be repeated
    #[arg(long, value_name = "FILE")]
    runs: Vec<PathBuf>,
    /// Measured kernels and iterations of one device: the file of examples/measure/measure.py
    #[arg(long, value_name = "FILE")]
    kernels: Option<PathBuf>,
    /// Hardware, if the runs do not state it [default: h100]
    #[arg(long, value_name = "ID")]
    hardware: Option<String>,
    /// Number of devices, if the runs do not state it
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    devices: Option<String>,
    /// Sequences in an iteration, if the runs do not state it
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    global_batch: Option<String>,
    /// Tokens in a sequence, if the runs do not state it
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true)]
    sequence_length: Option<String>,
    /// Number format of matrix products, if the runs do not state it
    #[arg(long, value_name = "FORMAT")]
    precision: Option<String>,
    /// Recomputation, if the runs do not state it
    #[arg(long, value_name = "WHAT")]
    recompute: Option<String>,
    /// Profile of the training software, if the runs do not state it [default: megatron-2025]
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// Sets a setting of the software, if the runs do not state it; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Writes the calibration to this file, for `--calibration` of `plantui estimate`
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Lets --write replace a file
    #[arg(long, requires = "write")]
    force: bool,
    /// Prints one JSON document (schema plantui.calibrate/1) in place of the tables
    #[arg(long)]
    json: bool,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::refused(error.to_string(), error.repair)
    }
}

impl CalibrateArgs {
    /// Fits and prints.
    ///
    /// # Errors
    /// [`Failure`] for a refused model, run or flag, or a file that cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = self.write.as_deref().map(|path| Destination::new(Some(path), self.force));
        destination.as_ref().map_or(Ok(()), Destination::check)?;
        if self.model.is_none() != self.runs.is_empty() || self.model.is_none() && self.kernels.is_none() {
            let repair = "give a model with --runs FILE, or --kernels FILE, or both";
            return Err(Failure::refused("calibrate needs a model and its runs, or measured kernels", repair));
        }
        if let (None, Some(flag)) = (&self.model, self.flag_of_runs()) {
            let problem = format!("{flag} is about runs, and there are none");
            return Err(Failure::refused(problem, "leave it out, or give MODEL and --runs FILE"));
        }
        let defaults = self.defaults()?;
        let kernels = self.kernels.as_deref().map(|path| self.kernels(path, &defaults)).transpose()?;
        let on_kernels = kernels.as_ref().map(|(_, fit)| &fit.calibration);
        let fit = match &self.model {
            Some(word) => {
                let model = estimate::model(word)?;
                let runs = self.runs(&model, &defaults)?;
                let fit = CalibrationFit::of(&model, &runs, on_kernels)?;
                Some((model, fit))
            }
            None => None,
        };
        let calibration = fit.as_ref().map(|(_, fit)| &fit.calibration).or(on_kernels);
        if let (Some(destination), Some(calibration)) = (destination, calibration) {
            let text = serde_json::to_string_pretty(calibration).unwrap_or_default();
            destination.write(&(text + "\n"))?;
        }
        let text = if self.json {
            output::json(&CalibrateDocument::new(
                fit.as_ref().map(|(model, fit)| (model, fit)),
                kernels.as_ref().map(|(file, fit)| (file, fit)),
                calibration,
            ))
        } else {
            let of_kernels = kernels.as_ref().map(|(file, fit)| kernel_tables(file, fit));
            let of_runs = fit.as_ref().map(|(model, fit)| tables(model, fit));
            of_kernels.into_iter().chain(of_runs).collect::<Vec<String>>().join("\n")
        };
        Destination::Standard.write(&text)?;
        Ok(CommandEnd::Done)
    }

    /// First flag that measured kernels do not use.
    fn flag_of_runs(&self) -> Option<&'static str> {
        let flags = [
            ("--devices", self.devices.is_some()),
            ("--global-batch", self.global_batch.is_some()),
            ("--sequence-length", self.sequence_length.is_some()),
            ("--precision", self.precision.is_some()),
            ("--recompute", self.recompute.is_some()),
            ("--set", !self.settings.is_empty()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    fn runs(&self, model: &Model, defaults: &Request) -> Result<Vec<MeasuredRun>, Failure> {
        let mut runs = vec![];
        for path in &self.runs {
            let bytes = formats::read_file(path)?;
            let source = input::shown(path);
            let text = detect::text(&bytes, &source, &detect::RUNS)?;
            if jobs::is_log(text) {
                runs.push(jobs::measured_run(text, &source, model, defaults)?);
            } else {
                runs.extend(calibrate::read(text, &source, model, defaults)?);
            }
        }
        Ok(runs)
    }

    fn kernels(&self, path: &Path, defaults: &Request) -> Result<(MeasuredKernels, KernelFit), Failure> {
        let bytes = formats::read_file(path)?;
        let source = input::shown(path);
        let file = MeasuredKernels::parse(&String::from_utf8_lossy(&bytes), &source)?;
        let (accelerator, stack) = defaults.platform();
        let fit = file.fit(&accelerator, stack, &source)?;
        Ok((file, fit))
    }

    fn defaults(&self) -> Result<Request, Failure> {
        let hardware = self.hardware.as_deref().map(hardware_file::id_of).transpose()?;
        let flags = [
            ("hardware", &hardware),
            ("devices", &self.devices),
            ("global-batch", &self.global_batch),
            ("sequence-length", &self.sequence_length),
            ("precision", &self.precision),
            ("recompute", &self.recompute),
            ("stack", &self.stack),
        ];
        estimate::request(&flags, &self.settings)
    }
}

fn kernel_tables(file: &MeasuredKernels, fit: &KernelFit) -> String {
    let mut text = String::new();
    let calibration = &fit.calibration;
    let [device, torch] = [&file.device, &file.torch].map(|name| crate::text::printable(name));
    line(
        &mut text,
        format_args!("kernels of {device} (PyTorch {torch}) for {}, {}", calibration.hardware, calibration.stack),
    );
    if let Some(named) = hardware::named_in(&file.device).filter(|named| *named != calibration.hardware) {
        line(
            &mut text,
            format_args!(
                "note: the kernels are those of {named}, not of {}; --hardware names it",
                calibration.hardware
            ),
        );
    }
    text.push('\n');
    let head = ["constant", "factor", "from", "to", "measurements"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for factor in &fit.factors {
        let [least, most] = factor.range;
        let figures = [factor.value, least, most].map(|value| format!("{value:.3}"));
        rows.push([factor.constant.into()].into_iter().chain(figures).chain([factor.rows.to_string()]).collect());
    }
    table(&mut text, &rows);
    text.push('\n');
    if fit.iterations.is_empty() {
        line(
            &mut text,
            format_args!("no iteration was measured: the level of all rates is that of the published runs"),
        );
        return text;
    }
    let head = ["microbatch", "measured", "shipped", "fitted", "memory"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for row in &fit.iterations {
        rows.push(vec![
            row.micro_batch.to_string(),
            units::seconds(row.measured_s),
            signed(row.shipped_error),
            signed(row.fitted_error),
            row.memory_error.map_or("-".into(), signed),
        ]);
    }
    table(&mut text, &rows);
    text.push('\n');
    line(&mut text, format_args!("factor on all rates of computing, by the iterations: {:.3}", calibration.compute));
    text
}

fn signed(share: f64) -> String {
    format!("{:+.1}%", 100.0 * share)
}

fn tables(model: &Model, fit: &CalibrationFit) -> String {
    let mut text = String::new();
    let calibration = &fit.calibration;
    line(
        &mut text,
        format_args!(
            "{} of {} on {}, {}",
            units::counted(fit.rows.len(), "run"),
            model.name,
            calibration.hardware,
            calibration.stack
        ),
    );
    text.push('\n');
    let head = ["factor", "value", "within", "before the runs", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    for factor in &fit.factors {
        rows.push(vec![
            factor.name.into(),
            format!("{:.3}", factor.value),
            units::percent(factor.sigma),
            units::percent(factor.prior_sigma),
            if factor.identified { String::new() } else { "not identified by these runs, left unchanged".into() },
        ]);
    }
    table(&mut text, &rows);
    text.push('\n');
    let head = ["layout", "measured", "shipped", "fitted", "left out", "memory", "run"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for row in &fit.rows {
        rows.push(vec![
            row.layout.clone(),
            units::seconds(row.measured_s),
            signed(row.shipped_error),
            signed(row.fitted_error),
            row.left_out_error.map_or("-".into(), signed),
            row.memory_error.map_or("-".into(), signed),
            row.place.clone(),
        ]);
    }
    table(&mut text, &rows);
    text.push('\n');
    let mean = |error: fn(&calibrate::FittedRun) -> Option<f64>| {
        let errors: Vec<f64> = fit.rows.iter().filter_map(error).map(f64::abs).collect();
        errors.iter().sum::<f64>() / errors.len().max(1) as f64
    };
    let shipped = units::percent(mean(|row| Some(row.shipped_error)));
    if fit.rows.len() > 1 {
        let left_out = units::percent(mean(|row| row.left_out_error));
        line(
            &mut text,
            format_args!(
                "mean error: {shipped} with the built-in constants, {left_out} leave-one-out \
            after calibration"
            ),
        );
    } else {
        line(
            &mut text,
            format_args!(
                "mean error: {shipped} with the built-in constants; a leave-one-out test needs \
            at least two runs"
            ),
        );
    }
    match &fit.next {
        Some(next) => line(
            &mut text,
            format_args!(
                "next run to measure: {}, expected to take {}; it leaves {} of the uncertainty about which layouts \
                are fastest",
                next.layout,
                units::seconds(next.expected_s),
                units::percent(next.remains)
            ),
        ),
        None => line(
            &mut text,
            format_args!(
                "next run to measure: none would change the ranking of the layouts that \
            fit"
            ),
        ),
    }
    text
}
