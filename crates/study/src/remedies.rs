//! Remedies for limits under which no layout of a model to be trained fits.
//!
//! One change is tried at a time: more machines, other hardware, both, more memory, and settings that save memory. Each
//! is planned, so a remedy comes with its figures. Least numbers of machines are searched upwards, because the memory
//! needed is not monotone in devices; where the least is far from efficient, the least sensible one is told too. Two to
//! ten plans for each kind of hardware.

use std::sync::Arc;

use plantui_core::{
    cluster::{GivenLimits, LimitKind, Limits},
    family::{
        self, dial,
        training::hardware::{self, Accelerator},
    },
    plan::{Configuration, Plan},
    units,
    workload::Workload,
};
use plantui_planners::{OptionSpec, OptionValue, Outcome, Planner, Problem, Search};

use crate::run;

/// Hardware that is tried beside what the caller names.
const USUAL: [&str; 7] = ["a100-80", "h100", "h200", "b200", "gb200", "gb300", "mi300x"];
/// Multiples of the least number of devices among which the most efficient one is looked for; of other hardware, the
/// first alone.
const MULTIPLES: [f64; 3] = [2.0, 1.5, 4.0];
/// Tokens per second and device that a sensible number of devices has, relative to the most efficient one.
const SENSIBLE: f64 = 0.5;
/// Most machines that are added one by one to find the least sensible number.
const WALKED: u32 = 32;
/// Shortest sequence that is tried, tokens.
const SHORTEST: u64 = 512;
/// Settings of a model that save memory, with the values that save most.
const SETTINGS: [(&str, &str); 4] =
    [("sharding", "zero3"), ("precision", "fp8"), ("offload", "optimizer"), ("adapter", "lora")];

/// Figures of a plan for a model to be trained.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedFigures {
    /// Number of devices.
    pub devices: u32,
    /// Iteration time, seconds.
    pub iteration_s: f64,
    /// Tokens per second on all devices.
    pub tokens_per_s: f64,
    /// Model FLOP utilisation, in words.
    pub mfu: String,
    /// Its configuration.
    pub configuration: Configuration,
    /// Memory of the fullest device, bytes.
    pub memory_bytes: f64,
}

impl TrainedFigures {
    /// Figures of a plan; `None` if it is none of a model to be trained. `iteration_s` is its time, seconds.
    pub fn of(workload: &Workload, limits: &Limits, plan: &Plan, iteration_s: f64) -> Option<Self> {
        let profile = workload.training()?;
        let own = plan.configuration()?;
        let named = family::of(workload).plan_figures(limits, plan);
        let mfu = named.into_iter().find(|figure| figure.name == "MFU").map(|figure| figure.value);
        Some(TrainedFigures {
            devices: limits.devices,
            iteration_s,
            tokens_per_s: f64::from(limits.samples()) * profile.sequence as f64 / iteration_s,
            mfu: mfu.unwrap_or_default(),
            configuration: own.clone(),
            memory_bytes: family::check(workload, limits, plan).peak_memory_bytes(),
        })
    }

    /// Tokens per second and device.
    pub fn per_device(&self) -> f64 {
        self.tokens_per_s / f64::from(self.devices.max(1))
    }
}

/// One change of the inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Number of devices.
    Devices(u32),
    /// Hardware, by id, and the number of devices if it changes too.
    Hardware(&'static str, Option<u32>),
    /// Memory of a device, bytes.
    Memory(f64),
    /// Dial of the model, by id.
    Dial(&'static str, String),
    /// Sequences of an iteration.
    Batch(u32),
    /// Option of the planner, by name.
    Option(&'static str, OptionValue),
}

/// Change under which a layout fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// Input that changes, in one or two words.
    pub subject: String,
    /// Its new value: `208 h100, 26 machines`.
    pub to: String,
    /// The change.
    pub change: Change,
    /// Figures of the plan.
    pub figures: TrainedFigures,
    /// Remark; may be empty.
    pub remark: String,
}

/// Result of one change.
#[derive(Debug, Clone, PartialEq)]
pub enum Tried {
    /// It is enough.
    Remedy(Box<Remedy>),
    /// It is not: the change in words, and how far it gets.
    Refused(String, String),
}

/// Remark of the least number of devices where a larger one makes more sense.
pub const LEAST: &str = "the least";
/// Remark of that larger number.
pub const LEAST_SENSIBLE: &str = "the least that makes sense";

/// Inputs under which nothing fits.
pub struct Inputs<'a> {
    /// Planner whose plans count.
    pub planner: &'a dyn Planner,
    /// Its problem, without a plan.
    pub problem: &'a Problem,
    /// Limits that were stated, without memory and devices; other hardware brings its own.
    pub stated: GivenLimits,
    /// Limits where nothing is stated.
    pub defaults: GivenLimits,
    /// Hardware to try first, by id, such as what has a price.
    pub hardware: &'a [&'a str],
    /// Outcome without a plan.
    pub outcome: &'a Outcome,
}

/// Tries the changes one after the other and tells each result. Stops when `search` is cancelled.
pub fn of(inputs: &Inputs<'_>, search: &Search, tell: &mut dyn FnMut(Tried)) {
    let Some(profile) = inputs.problem.workload.training() else { return };
    let own = profile.accelerator.id;
    let mut tell = |tried: Tried| {
        if !search.cancelled() {
            tell(tried);
        }
    };
    if let Some(fewest) = inputs.outcome.infeasible.as_ref().and_then(|infeasible| infeasible.fewest_devices) {
        inputs.machines(own, fewest, search, &mut tell);
    }
    let mut ids: Vec<&'static str> = hardware::all()
        .iter()
        .map(|accelerator| accelerator.id)
        .filter(|id| inputs.hardware.contains(id) || USUAL.contains(id))
        .filter(|id| *id != own)
        .collect();
    ids.dedup();
    let mut later = vec![];
    for id in ids {
        let Some((workload, limits)) = inputs.on(id, inputs.problem.limits.devices) else { continue };
        match inputs.plan(&workload, &limits, search) {
            Err(()) => return,
            Ok((_, Some(figures))) => {
                let to = format!("{} {id}", limits.devices);
                tell(remedy("hardware", to, Change::Hardware(id, None), figures, ""));
            }
            Ok((outcome, None)) => later.push((id, limits, outcome)),
        }
    }
    for (id, limits, outcome) in &later {
        tell(Tried::Refused(format!("{} {id}", limits.devices), reason(outcome, limits)));
        // Machines with as little memory are no way out, unless they have a price to compare.
        let larger = limits.memory_limit() > inputs.problem.limits.memory_limit() || inputs.hardware.contains(id);
        let fewest = outcome.infeasible.as_ref().and_then(|infeasible| infeasible.fewest_devices);
        if let Some(fewest) = fewest.filter(|_| larger) {
            inputs.machines(id, fewest, search, &mut tell);
        }
    }
    inputs.memory(search, &mut tell);
    inputs.settings(search, &mut tell);
}

fn remedy(subject: &str, to: String, change: Change, figures: TrainedFigures, remark: &str) -> Tried {
    Tried::Remedy(Box::new(Remedy { subject: subject.into(), to, change, figures, remark: remark.into() }))
}

/// How far a change gets, in words.
fn reason(outcome: &Outcome, limits: &Limits) -> String {
    let infeasible = outcome.infeasible.as_ref();
    match infeasible.and_then(|own| own.smallest_memory_bytes) {
        Some(bytes) => {
            format!(
                "needs {} of {}",
                units::bytes_beside(bytes, limits.memory_limit()),
                units::bytes_exact(limits.memory_limit())
            )
        }
        None => "has no layout".into(),
    }
}

impl Inputs<'_> {
    /// The problem on a number of devices of some hardware; `None` if the model cannot run there.
    fn on(&self, id: &str, devices: u32) -> Option<(Arc<Workload>, Limits)> {
        let problem = self.problem;
        let own = problem.workload.training()?.accelerator.id;
        let workload = match own == id {
            true => Arc::clone(&problem.workload),
            false => Arc::new(dial::turned(&problem.workload, "hardware", id).ok()?),
        };
        if own == id {
            let limits = problem.limits.with(LimitKind::Devices, f64::from(devices));
            return Some((workload, limits));
        }
        let given = self.stated.clone().with(LimitKind::Devices, f64::from(devices));
        let limits = family::resolve(&workload, &given.or(&self.defaults.unstated_by(&workload.limits))).ok()?;
        Some((workload, limits))
    }

    /// Figures of the plan on another number of devices, if there is one.
    pub fn on_devices(&self, devices: u32, search: &Search) -> Option<TrainedFigures> {
        let own = self.problem.workload.training()?.accelerator.id;
        let (workload, limits) = self.on(own, devices)?;
        self.plan(&workload, &limits, search).ok()?.1
    }

    /// Plan of the planner and its figures, if there is one.
    fn plan(
        &self,
        workload: &Arc<Workload>,
        limits: &Limits,
        search: &Search,
    ) -> Result<(Outcome, Option<TrainedFigures>), ()> {
        self.plan_with(workload, limits, &self.problem.options, search)
    }

    fn plan_with(
        &self,
        workload: &Arc<Workload>,
        limits: &Limits,
        options: &plantui_planners::Options,
        search: &Search,
    ) -> Result<(Outcome, Option<TrainedFigures>), ()> {
        let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options: options.clone() };
        let (outcome, _) = run::plan(self.planner, &problem, search).map_err(|_| ())?;
        if search.cancelled() {
            return Err(());
        }
        let found = outcome.plan.as_ref().zip(outcome.objective);
        let figures = found.and_then(|(plan, seconds)| TrainedFigures::of(workload, limits, plan, seconds));
        Ok((outcome, figures))
    }

    /// Tells the least number of devices of some hardware, and the least sensible one if that is larger.
    fn machines(&self, id: &'static str, fewest: u32, search: &Search, tell: &mut dyn FnMut(Tried)) {
        let Some(profile) = self.problem.workload.training() else { return };
        let own = profile.accelerator.id == id;
        let machine = hardware::find(id).map_or(1, |accelerator| accelerator.domain.max(1));
        let figures = |devices: u32| {
            let (workload, limits) = self.on(id, devices)?;
            self.plan(&workload, &limits, search).ok()?.1
        };
        let subject = if own { "devices" } else { "both" };
        let change = |devices: u32| match own {
            true => Change::Devices(devices),
            false => Change::Hardware(id, Some(devices)),
        };
        let words = |devices: u32| match machine {
            1 => format!("{devices} {id}"),
            machine => format!("{devices} {id}, {}", units::counted(devices.div_ceil(machine) as usize, "machine")),
        };
        let Some(least) = figures(fewest) else { return };
        let multiples = if own { &MULTIPLES[..] } else { &MULTIPLES[..1] };
        let sensible = sensible_from(&least, machine, multiples, &mut |devices| figures(devices));
        if search.cancelled() {
            return;
        }
        let remark = if sensible.is_some() { LEAST } else { "" };
        tell(remedy(subject, words(fewest), change(fewest), least, remark));
        if let Some(sensible) = sensible {
            let devices = sensible.devices;
            tell(remedy(subject, words(devices), change(devices), sensible, LEAST_SENSIBLE));
        }
    }

    /// Tells the least memory of a device.
    fn memory(&self, search: &Search, tell: &mut dyn FnMut(Tried)) {
        let infeasible = self.outcome.infeasible.as_ref();
        let Some(bytes) = infeasible.and_then(|infeasible| infeasible.smallest_memory_bytes) else { return };
        let bytes = rounded_up(bytes);
        let limits = self.problem.limits.with(LimitKind::Memory, bytes);
        let Ok((_, Some(figures))) = self.plan(&self.problem.workload, &limits, search) else { return };
        let sold = hardware::all().iter().filter(|own| own.memory_bytes >= bytes);
        let least = sold.min_by(|a: &&Accelerator, b| a.memory_bytes.total_cmp(&b.memory_bytes));
        let sold = least.map_or_else(|| "nobody sells that".into(), |own| format!("least sold: {}", own.id));
        tell(remedy("memory", units::bytes_exact(bytes), Change::Memory(bytes), figures, &sold));
    }

    /// Tells which settings of the model and options of the planner are enough.
    fn settings(&self, search: &Search, tell: &mut dyn FnMut(Tried)) {
        let problem = self.problem;
        let dials = dial::dials(&problem.workload);
        let value = |id: &str| dials.iter().find(|dial| dial.id == id).map(|dial| dial.value.clone());
        for spec in self.planner.options() {
            let now = problem.options.get(spec.name).unwrap_or_else(|| spec.default_value());
            if now == spec.default_value() {
                continue;
            }
            let mut options = problem.options.clone();
            options.set(spec.name, spec.default_value());
            let Ok(planned) = self.plan_with(&problem.workload, &problem.limits, &options, search) else { return };
            let change = Change::Option(spec.name, spec.default_value());
            self.tell(&spec.name.replace('_', " "), freed(spec, &now), change, planned, tell);
        }
        for (id, to) in SETTINGS {
            let Some(now) = value(id).filter(|now| now != to) else { continue };
            let Ok(workload) = dial::turned(&problem.workload, id, to) else { continue };
            let Ok(planned) = self.plan(&Arc::new(workload), &problem.limits, search) else { return };
            self.tell(id, format!("{to} in place of {now}"), Change::Dial(id, to.into()), planned, tell);
        }
        let tokens = value("sequence-length").and_then(|tokens| tokens.parse::<u64>().ok()).unwrap_or(0);
        let lengths: Vec<u64> = halves(tokens).take_while(|length| *length >= SHORTEST).collect();
        let mut last = None;
        for length in lengths {
            let Ok(workload) = dial::turned(&problem.workload, "sequence-length", &length.to_string()) else { break };
            let Ok(planned) = self.plan(&Arc::new(workload), &problem.limits, search) else { return };
            let found = planned.1.is_some();
            last = Some((length, planned));
            if found {
                break;
            }
        }
        if let Some((length, planned)) = last {
            let change = Change::Dial("sequence-length", length.to_string());
            self.tell("sequence", format!("{length} tokens"), change, planned, tell);
        }
        let batch = u64::from(problem.limits.samples());
        let mut last = None;
        for samples in halves(batch) {
            let limits = problem.limits.with(LimitKind::Batch, samples as f64);
            let Ok(planned) = self.plan(&problem.workload, &limits, search) else { return };
            let found = planned.1.is_some();
            last = Some((samples as u32, planned));
            if found {
                break;
            }
        }
        if let Some((samples, planned)) = last {
            self.tell("batch", units::counted(samples as usize, "sequence"), Change::Batch(samples), planned, tell);
        }
    }

    fn tell(
        &self,
        subject: &str,
        to: String,
        change: Change,
        (outcome, figures): (Outcome, Option<TrainedFigures>),
        tell: &mut dyn FnMut(Tried),
    ) {
        tell(match figures {
            Some(figures) => remedy(subject, to, change, figures, ""),
            None => Tried::Refused(format!("{subject} {to}"), reason(&outcome, &self.problem.limits)),
        });
    }
}

/// Fewest devices from `least` on, by whole machines, with at least half of the tokens per second and device of the most
/// efficient number up to four times as many. `None` if `least` itself has them, or nothing else fits.
pub fn least_sensible(
    least: &TrainedFigures,
    machine: u32,
    figures: &mut dyn FnMut(u32) -> Option<TrainedFigures>,
) -> Option<TrainedFigures> {
    sensible_from(least, machine, &MULTIPLES, figures)
}

fn sensible_from(
    least: &TrainedFigures,
    machine: u32,
    multiples: &[f64],
    figures: &mut dyn FnMut(u32) -> Option<TrainedFigures>,
) -> Option<TrainedFigures> {
    let whole = |devices: f64| (devices / f64::from(machine)).ceil() as u32 * machine;
    let mut tried = vec![];
    for multiple in multiples {
        tried.extend(figures(whole(f64::from(least.devices) * multiple)));
    }
    tried.sort_by_key(|own: &TrainedFigures| own.devices);
    let best = tried.iter().map(TrainedFigures::per_device).fold(least.per_device(), f64::max);
    if least.per_device() >= SENSIBLE * best {
        return None;
    }
    let sensible = |own: &TrainedFigures| own.per_device() >= SENSIBLE * best;
    let known = tried.into_iter().find(sensible)?;
    for machines in 1..=WALKED {
        let devices = whole(f64::from(least.devices)) + machines * machine;
        if devices >= known.devices {
            break;
        }
        if let Some(found) = figures(devices).filter(sensible) {
            return Some(found);
        }
    }
    Some(known)
}

/// Half of a number, a quarter, and so on down to 1.
fn halves(number: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(number / 2), |half| Some(half / 2)).take_while(|half| *half > 0)
}

/// Memory rounded up to a tenth of a GiB, bytes.
fn rounded_up(bytes: f64) -> f64 {
    let unit = f64::from(1 << 30) / 10.0;
    (bytes / unit).ceil() * unit
}

/// Value of an option that is freed, in words.
fn freed(spec: &OptionSpec, now: &OptionValue) -> String {
    format!("{} in place of {}", spec.show(&spec.default_value()), spec.show(now))
}
