//! Constants of a device from measured kernels and single-device iterations (`examples/measure/measure.py`).
//!
//! Shipped constants were fitted on a reference device of each generation, whose kernels were measured as well. A constant is
//! multiplied by how much faster the user's kernels are than the reference's, both relative to their data sheets. Measured
//! iterations then set the level of all rates. `O(rows)` predictions.
//!
//! The reference's curves were fitted to measurements published by NVIDIA in aiconfigurator-core 0.12.0 (Apache-2.0).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    RunError,
    calibration::{Calibration, FACTORS},
};
use crate::{
    family::training::fit::{FittedFactors, Observation, TimedRun},
    workload::training::{
        Accelerator,
        constants::Constants,
        from_hugging_face,
        hardware::Generation,
        model::Model,
        run::{Layout, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings},
    },
};

/// Schema of a file of measured kernels.
pub(crate) const SCHEMA: &str = "plantui.kernels/1";
/// Number formats of 16 and of 8 bits.
const BITS_16: [&str; 2] = ["bf16", "fp16"];
const BITS_8: [&str; 2] = ["fp8", "mxfp8"];
/// Smallest sides of a product that tells the rate of large ones: m, n, k.
const LARGE: [f64; 3] = [2048.0, 1024.0, 1024.0];
/// Sequence up to which a measurement sets the rate of short attention, tokens.
const SHORT: f64 = 8192.0;
/// Share of the data sheet's memory bandwidth that a large copy attains on the reference devices (assumed).
const COPY: f64 = 0.9;
/// Operations of attention's backward pass, and their rate, relative to the forward pass.
const BACKWARD: f64 = 2.5 / 0.85;

/// File of measured kernels.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MeasuredKernels {
    /// `plantui.kernels/1`.
    schema: String,
    /// Name of the device, as PyTorch has it.
    pub device: String,
    /// Version of PyTorch.
    pub torch: String,
    /// Matrix products.
    products: Vec<ProductRow>,
    /// Attention kernels.
    attention: Vec<AttentionRow>,
    /// Copies within the memory of the device.
    copies: Vec<CopyRow>,
    /// Iterations of a whole model on one device.
    iterations: Vec<IterationRow>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ProductRow {
    /// Number format: `bf16`, `fp16`, `fp8` or `mxfp8`.
    precision: String,
    /// Rows of the result.
    m: f64,
    /// Columns of the result.
    n: f64,
    /// Length of the sums.
    k: f64,
    /// Time of a product, seconds.
    seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AttentionRow {
    /// Sequences at once.
    batch: f64,
    /// Number of heads.
    heads: f64,
    /// Width of a head.
    head_size: f64,
    /// Tokens of a sequence.
    sequence: f64,
    /// Time of the forward pass, seconds.
    forward_s: f64,
    /// Time of the backward pass, seconds.
    backward_s: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct CopyRow {
    /// Bytes that are copied.
    bytes: f64,
    /// Time of a copy, seconds.
    seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct IterationRow {
    /// `config.json` of the model.
    config: Value,
    /// Tokens of a sequence.
    sequence: u64,
    /// Sequences of the iteration.
    micro_batch: u32,
    /// Number format, by the names of `--precision`.
    precision: String,
    /// True if torch.compile compiled the model.
    compiled: bool,
    /// Time of an iteration, seconds.
    seconds: f64,
    /// Largest memory that was allocated, bytes.
    peak_bytes: Option<f64>,
}

/// Factor on one constant from measured kernels.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelFactor {
    /// Name of the constant.
    pub constant: &'static str,
    /// Rate of the user's kernels relative to the reference's.
    pub value: f64,
    /// Number of measurements.
    pub rows: usize,
    /// Smallest and largest rate among them.
    pub range: [f64; 2],
}

/// Measured iteration with its predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FittedIteration {
    /// Sequences in the microbatch.
    pub micro_batch: u32,
    /// Measured seconds.
    pub measured_s: f64,
    /// Relative error with the shipped constants.
    pub shipped_error: f64,
    /// Relative error with the fitted constants.
    pub fitted_error: f64,
    /// Relative error of the memory, if measured.
    pub memory_error: Option<f64>,
}

/// Result of a fit to kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelFit {
    /// Factors, ready to be applied.
    pub calibration: Calibration,
    /// Factors from kernels.
    pub factors: Vec<KernelFactor>,
    /// Iterations.
    pub iterations: Vec<FittedIteration>,
}

/// Curve of a product: fraction of the sustained rate, factors on 1/m, 1/n and 1/k, and seconds of a launch.
type Curve = (f64, [f64; 3], f64);

/// Curves of the reference device of a generation: products in 16 and 8 bits.
fn products_of(generation: Generation) -> [Option<Curve>; 2] {
    match generation {
        Generation::Volta | Generation::Ampere => [Some((0.884, [78.0, 98.0, 113.0], 6.2e-6)), None],
        Generation::Hopper => {
            [Some((0.842, [112.0, 74.0, 149.0], 3.1e-6)), Some((0.808, [91.0, 1940.0, 423.0], 11e-6))]
        }
        Generation::Blackwell => {
            [Some((0.731, [130.0, 103.0, 98.0], 2.5e-6)), Some((0.734, [132.0, 2020.0, 326.0], 15e-6))]
        }
    }
}

/// Curve of the reference device's attention with heads of 128: fraction of the sustained rate, and factors on the inverse of
/// the sequence and of the amount of work.
fn attention_of(generation: Generation) -> [f64; 3] {
    match generation {
        Generation::Volta | Generation::Ampere => [0.676, 278.0, 19.0],
        Generation::Hopper => [0.656, 781.0, 0.0],
        Generation::Blackwell => [0.624, 904.0, 32.0],
    }
}

impl MeasuredKernels {
    /// Reads a file. `source` is its name in messages.
    ///
    /// # Errors
    /// [`RunError`] if the text is no such file, or a figure is not a positive number.
    pub fn parse(text: &str, source: &str) -> Result<Self, RunError> {
        let repair = "make the file with examples/measure/measure.py";
        let file: MeasuredKernels = serde_json::from_str(text).map_err(|error| {
            let place = format!("{source}:{}:{}", error.line(), error.column());
            RunError::new(place, crate::text::printable(&error.to_string()), repair)
        })?;
        let wrong = |problem: String| Err(RunError::new(source, problem, repair));
        if file.schema != SCHEMA {
            return wrong(format!("schema is `{}`, must be {SCHEMA}", crate::text::printable(&file.schema)));
        }
        let products = file.products.iter().flat_map(|row| [row.m, row.n, row.k, row.seconds]);
        let attention = file
            .attention
            .iter()
            .flat_map(|row| [row.batch, row.heads, row.head_size, row.sequence, row.forward_s, row.backward_s]);
        let copies = file.copies.iter().flat_map(|row| [row.bytes, row.seconds]);
        let iterations = file.iterations.iter().map(|row| row.seconds);
        let mut figures = products.chain(attention).chain(copies).chain(iterations);
        if let Some(odd) = figures.find(|value| !(*value > 0.0 && *value < 1e18)) {
            return wrong(format!("has the figure {odd}, must be above 0"));
        }
        Ok(file)
    }

    /// Factors on the constants of this hardware and stack.
    ///
    /// # Errors
    /// [`RunError`] if no measurement is large enough to tell a rate, if a product is faster than the data sheet allows, or if
    /// an iteration's model or precision cannot be read.
    pub fn fit(&self, accelerator: &Accelerator, stack: Stack, source: &str) -> Result<KernelFit, RunError> {
        let shipped = Constants::shipped(accelerator.generation, stack);
        let factors = self.factors(accelerator, &shipped);
        if !factors.iter().any(|factor| factor.constant == "gemm_16") {
            let [m, n, k] = LARGE;
            let problem = format!("has no product in 16 bits of at least {m} x {n} x {k}, and so tells no rate");
            return Err(RunError::new(source, problem, "measure on a GPU, without --tiny"));
        }
        let in_16 = self.products.iter().filter(|row| BITS_16.contains(&row.precision.as_str()));
        let fastest = in_16.map(|row| 2.0 * row.m * row.n * row.k / row.seconds).fold(0.0, f64::max);
        if fastest > 1.02 * accelerator.peak_16 {
            let [own, peak] = [fastest, accelerator.peak_16].map(|rate| format!("{:.0} TFLOP/s", rate / 1e12));
            let problem = format!("has products at {own} in 16 bits, more than the {peak} of {}", accelerator.id);
            return Err(RunError::new(source, problem, "name the measured device with --hardware"));
        }
        let mut calibration = Calibration {
            model: "the models of measure.py".into(),
            hardware: accelerator.id.into(),
            stack: stack.id().into(),
            kernels: factors.iter().map(|factor| (factor.constant.to_string(), factor.value)).collect(),
            ..Calibration::of_logs(&[])
        };
        let iterations = self.level(accelerator, &shipped, &mut calibration, (stack, source))?;
        Ok(KernelFit { calibration, factors, iterations })
    }

    fn factors(&self, accelerator: &Accelerator, shipped: &Constants) -> Vec<KernelFactor> {
        let sustained = accelerator.sustained_16(shipped.power);
        let mut factors = vec![];
        let mut add = |constant, mut rates: Vec<f64>| {
            rates.sort_by(f64::total_cmp);
            if let (Some(&least), Some(&most)) = (rates.first(), rates.last()) {
                let value = rates[rates.len() / 2];
                factors.push(KernelFactor { constant, value, rows: rates.len(), range: [least, most] });
            }
        };
        let [bits_16, bits_8] = products_of(accelerator.generation);
        for (constant, names, curve) in [("gemm_16", BITS_16, bits_16), ("gemm_8", BITS_8, bits_8)] {
            let Some((attained, edges, launch)) = curve else { continue };
            let peak = if constant == "gemm_8" { accelerator.peak_8 } else { Some(accelerator.peak_16) };
            let Some(peak) = peak else { continue };
            let large = |row: &&ProductRow| [row.m, row.n, row.k].iter().zip(LARGE).all(|(side, least)| *side >= least);
            let own = self.products.iter().filter(|row| names.contains(&row.precision.as_str())).filter(large);
            let rate = |row: &ProductRow| {
                let edge: f64 = edges.iter().zip([row.m, row.n, row.k]).map(|(edge, side)| edge / side).sum();
                let full = sustained * (peak / accelerator.peak_16) * attained;
                (2.0 * row.m * row.n * row.k / full * (1.0 + edge) + launch) / row.seconds
            };
            add(constant, own.map(rate).collect());
        }
        let [attained, of_length, of_work] = attention_of(accelerator.generation);
        let rate = |row: &AttentionRow| {
            let work = row.batch * row.heads * row.sequence / 1024.0;
            let operations = 2.0 * row.batch * row.heads * row.sequence.powi(2) * row.head_size;
            let forward = operations / (attained * sustained) * (1.0 + of_length / row.sequence + of_work / work);
            forward * (1.0 + BACKWARD) / (row.forward_s + row.backward_s)
        };
        let over = |short: bool| {
            let own = self.attention.iter().filter(|row| row.sequence >= 1024.0 && (row.sequence <= SHORT) == short);
            own.map(rate).collect::<Vec<f64>>()
        };
        let (short, long) = (over(true), over(false));
        add("attention", if short.is_empty() { long.clone() } else { short.clone() });
        add("attention_long", if long.is_empty() { short } else { long });
        let whole = self.copies.iter().filter(|row| row.bytes >= 1e8);
        add("memory", whole.map(|row| row.bytes / row.seconds / (COPY * accelerator.memory_bandwidth)).collect());
        factors
    }

    /// Sets the level of all rates by the measured iterations.
    fn level(
        &self,
        accelerator: &Accelerator,
        shipped: &Constants,
        calibration: &mut Calibration,
        (stack, source): (Stack, &str),
    ) -> Result<Vec<FittedIteration>, RunError> {
        let mut runs: Vec<(Model, TrainingRun)> = vec![];
        for row in &self.iterations {
            let model = from_hugging_face(&row.config.to_string(), source)
                .map_err(|error| RunError::new(source, error.to_string(), "use the models of measure.py"))?;
            runs.push((model, row.run(stack, source)?));
        }
        let mut timed = vec![];
        let base = calibration.apply(shipped);
        for (model, run) in &runs {
            let one = |constants| {
                TimedRun::new(model, run, accelerator, 1, constants).map_err(|refusal| RunError::of(source, refusal))
            };
            timed.push((one(*shipped)?, one(base)?));
        }
        let observed: Vec<Observation<'_>> = timed
            .iter()
            .zip(&self.iterations)
            .map(|((_, timed), row)| Observation { timed, log: row.seconds.ln() })
            .collect();
        if observed.is_empty() {
            return Ok(vec![]);
        }
        let level = FittedFactors::of(&observed, &FACTORS, &[true, false, false]).logs;
        calibration.compute = level[0].exp();
        calibration.runs = observed.len() as u32;
        let error = |timed: &TimedRun<'_>, logs: &[f64], row: &IterationRow| {
            timed.log_time(&FACTORS, logs).exp() / row.seconds - 1.0
        };
        let iterations: Vec<FittedIteration> = timed
            .iter()
            .zip(&self.iterations)
            .map(|((shipped, fitted), row)| FittedIteration {
                micro_batch: row.micro_batch,
                measured_s: row.seconds,
                shipped_error: error(shipped, &[0.0; 3], row),
                fitted_error: error(fitted, &level, row),
                memory_error: row.peak_bytes.map(|bytes| fitted.bytes() / bytes - 1.0),
            })
            .collect();
        let left_out = |index: usize| {
            let others: Vec<Observation<'_>> =
                observed.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, run)| *run).collect();
            let logs = match others.is_empty() {
                true => vec![0.0; FACTORS.len()],
                false => FittedFactors::of(&others, &FACTORS, &[true, false, false]).logs,
            };
            error(&timed[index].1, &logs, &self.iterations[index]).abs()
        };
        calibration.left_out_error = (0..observed.len()).map(left_out).sum::<f64>() / observed.len() as f64;
        Ok(iterations)
    }
}

impl IterationRow {
    /// Run on one device with weights, gradients and moments in 16 bits.
    fn run(&self, stack: Stack, source: &str) -> Result<TrainingRun, RunError> {
        let ids = TrainingPrecision::ALL.map(TrainingPrecision::id).join(", ");
        let unknown = || {
            let own = crate::text::printable(&self.precision);
            RunError::new(source, format!("an iteration's precision is `{own}`, must be {ids}"), "measure it again")
        };
        let precision = TrainingPrecision::find(&self.precision).ok_or_else(unknown)?;
        let settings = TrainingSettings {
            fsdp: false,
            distributed_optimizer: false,
            fused_elementwise: self.compiled,
            fused_cross_entropy: false,
            master_bytes: 0,
            moment_bytes: 2,
            ..stack.settings()
        };
        Ok(TrainingRun {
            layout: Layout { micro_batch: self.micro_batch, ..Layout::ONE },
            global_batch: u64::from(self.micro_batch),
            sequence: self.sequence,
            precision,
            recompute: Recompute::None,
            stack,
            settings,
            layers: vec![],
            head_alone: false,
            zero_bubble: None,
            links: None,
        })
    }
}

/// Factors on constants by name, as a calibration holds them.
pub(super) type ByConstant = BTreeMap<String, f64>;
