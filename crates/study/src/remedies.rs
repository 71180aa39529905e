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
        training::{
            Fits, evidence,
            hardware::{self, Accelerator},
        },
    },
    plan::{Configuration, Plan},
    units,
    workload::Workload,
};
use plantui_planners::{Infeasible, OptionSpec, OptionValue, Options, Outcome, Planner, Problem, Search};

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
/// Dial of the sequence length.
const SEQUENCE: &str = "sequence-length";
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
    /// True if it fits as predicted, but not with the error of the memory model.
    pub fits_closely: bool,
    /// True if no published run is like it, so that the error of the prediction is unknown.
    pub untested: bool,
}

impl TrainedFigures {
    /// Figures of a plan; `None` if it is none of a model to be trained. `iteration_s` is its time, seconds.
    pub fn of(workload: &Workload, limits: &Limits, plan: &Plan, iteration_s: f64) -> Option<Self> {
        let profile = workload.training()?;
        let own = plan.configuration()?;
        let evidence = evidence(profile, limits, plan);
        let named = family::of(workload).plan_figures(limits, plan);
        let mfu = named.into_iter().find(|figure| figure.name == "MFU").map(|figure| figure.value);
        Some(TrainedFigures {
            devices: limits.devices,
            iteration_s,
            tokens_per_s: f64::from(limits.samples()) * profile.sequence as f64 / iteration_s,
            mfu: mfu.unwrap_or_default(),
            configuration: own.clone(),
            memory_bytes: family::check(workload, limits, plan).peak_memory_bytes(),
            fits_closely: evidence.is_some_and(|evidence| evidence.fits == Fits::Close),
            untested: evidence.is_none_or(|evidence| !evidence.tested),
        })
    }

    /// Tokens per second and device.
    pub fn per_device(&self) -> f64 {
        self.tokens_per_s / f64::from(self.devices.max(1))
    }
}

/// Change of the inputs of a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum InputChange {
    /// Value of a limit, in its base unit.
    Limit(LimitKind, f64),
    /// Hardware, by id, and the number of devices if it changes too.
    Hardware(&'static str, Option<u32>),
    /// Dial of the model, by id.
    Dial(&'static str, String),
    /// Option of the planner.
    Option(&'static OptionSpec, OptionValue),
}

/// Change under which a layout fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// Input that changes, in one or two words.
    pub subject: String,
    /// Its new value: `208 h100, 26 machines`.
    pub to: String,
    /// The change.
    pub change: InputChange,
    /// Figures of the plan.
    pub figures: TrainedFigures,
    /// Remark; may be empty.
    pub remark: String,
}

/// Result of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum RemedyResult {
    /// It is enough.
    Enough(Box<Remedy>),
    /// It is not: the change in words, and how far it gets.
    Short(String, String),
}

/// Remarks on the least number of devices where a larger one makes more sense, and on that number.
const LEAST: [&str; 2] = ["the least", "the least that makes sense"];

/// Inputs of a plan, whose changes are tried.
pub struct PlanInputs {
    /// Planner whose plans count.
    pub planner: &'static dyn Planner,
    /// Its problem.
    pub problem: Problem,
    /// Limits that were stated, without memory and devices; other hardware brings its own.
    pub stated: GivenLimits,
    /// Limits where nothing is stated.
    pub defaults: GivenLimits,
    /// Ids of hardware to try beside the usual, such as what has a price.
    pub hardware: Vec<String>,
}

/// Tries changes of inputs under which nothing fits, one after the other, and tells each result. Stops when `search` is
/// cancelled.
pub fn of(inputs: &PlanInputs, infeasible: &Infeasible, search: &Search, tell: &mut dyn FnMut(RemedyResult)) {
    let Some(profile) = inputs.problem.workload.training() else { return };
    let own = profile.accelerator.id;
    let named = |id: &str| inputs.hardware.iter().any(|other| other == id);
    let mut tell = |result: RemedyResult| {
        if !search.cancelled() {
            tell(result);
        }
    };
    if let Some(fewest) = infeasible.fewest_devices {
        inputs.machines(own, fewest, search, &mut tell);
    }
    let mut later = vec![];
    let ids = hardware::all().iter().map(|accelerator| accelerator.id);
    for id in ids.filter(|id| *id != own && (named(id) || USUAL.contains(id))) {
        let Some((workload, limits)) = inputs.on(id, inputs.problem.limits.devices) else { continue };
        let Some((outcome, figures)) = inputs.plan(&workload, &limits, search) else { return };
        match figures {
            Some(figures) => {
                let to = format!("{} {id}", limits.devices);
                tell(remedy("hardware", to, InputChange::Hardware(id, None), figures, ""));
            }
            None => later.push((id, limits, outcome)),
        }
    }
    for (id, limits, outcome) in &later {
        tell(RemedyResult::Short(format!("{} {id}", limits.devices), reason(outcome, limits)));
        // Machines with as little memory are no way out, unless the caller named them.
        let larger = limits.memory_limit() > inputs.problem.limits.memory_limit() || named(id);
        let fewest = outcome.infeasible.as_ref().and_then(|infeasible| infeasible.fewest_devices);
        if let Some(fewest) = fewest.filter(|_| larger) {
            inputs.machines(id, fewest, search, &mut tell);
        }
    }
    inputs.memory(infeasible, search, &mut tell);
    inputs.settings(search, &mut tell);
    inputs.halved(search, &mut tell);
}

fn remedy(subject: &str, to: String, change: InputChange, figures: TrainedFigures, remark: &str) -> RemedyResult {
    let remark = match (remark, figures.fits_closely) {
        ("", true) => "fits closely",
        (remark, _) => remark,
    };
    RemedyResult::Enough(Box::new(Remedy { subject: subject.into(), to, change, figures, remark: remark.into() }))
}

/// Reason why a change is not enough: the memory that is still needed.
fn reason(outcome: &Outcome, limits: &Limits) -> String {
    let limit = limits.memory_limit();
    let needed = outcome.infeasible.as_ref().and_then(|infeasible| infeasible.smallest_memory_bytes);
    let needs = |bytes| format!("needs {} of {}", units::bytes_beside(bytes, limit), units::bytes_exact(limit));
    needed.map_or("has no layout".into(), needs)
}

impl PlanInputs {
    /// The problem on a number of devices of some hardware; `None` if the model cannot run there.
    fn on(&self, id: &str, devices: u32) -> Option<(Arc<Workload>, Limits)> {
        let problem = &self.problem;
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
        self.plan(&workload, &limits, search)?.1
    }

    /// Outcome of the planner, with the figures of its plan if there is one; `None` if the search was cancelled.
    fn plan(
        &self,
        workload: &Arc<Workload>,
        limits: &Limits,
        search: &Search,
    ) -> Option<(Outcome, Option<TrainedFigures>)> {
        self.plan_with(workload, limits, &self.problem.options, search)
    }

    fn plan_with(
        &self,
        workload: &Arc<Workload>,
        limits: &Limits,
        options: &Options,
        search: &Search,
    ) -> Option<(Outcome, Option<TrainedFigures>)> {
        let problem = Problem { workload: Arc::clone(workload), limits: limits.clone(), options: options.clone() };
        let (outcome, _) = run::plan(self.planner, &problem, search).ok()?;
        if search.cancelled() {
            return None;
        }
        let found = outcome.plan.as_ref().zip(outcome.objective);
        let figures = found.and_then(|(plan, seconds)| TrainedFigures::of(workload, limits, plan, seconds));
        Some((outcome, figures))
    }

    /// Tells the least number of devices of some hardware, and the least sensible one if that is larger.
    fn machines(&self, id: &'static str, fewest: u32, search: &Search, tell: &mut dyn FnMut(RemedyResult)) {
        let Some(profile) = self.problem.workload.training() else { return };
        let own = profile.accelerator.id == id;
        let machine = hardware::find(id).map_or(1, |accelerator| accelerator.machine());
        let figures = |devices: u32| {
            let (workload, limits) = self.on(id, devices)?;
            self.plan(&workload, &limits, search)?.1
        };
        let subject = if own { "devices" } else { "both" };
        let change = |devices: u32| match own {
            true => InputChange::Limit(LimitKind::Devices, f64::from(devices)),
            false => InputChange::Hardware(id, Some(devices)),
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
        let remark = if sensible.is_some() { LEAST[0] } else { "" };
        tell(remedy(subject, words(fewest), change(fewest), least, remark));
        if let Some(sensible) = sensible {
            let devices = sensible.devices;
            tell(remedy(subject, words(devices), change(devices), sensible, LEAST[1]));
        }
    }

    /// Tells the least memory of a device.
    fn memory(&self, infeasible: &Infeasible, search: &Search, tell: &mut dyn FnMut(RemedyResult)) {
        let Some(bytes) = infeasible.smallest_memory_bytes else { return };
        let bytes = units::bytes_up(bytes, self.problem.limits.memory_limit());
        let limits = self.problem.limits.with(LimitKind::Memory, bytes);
        let Some((_, Some(figures))) = self.plan(&self.problem.workload, &limits, search) else { return };
        let sold = hardware::all().iter().filter(|own| own.memory_bytes >= bytes);
        let least = sold.min_by(|a: &&Accelerator, b| a.memory_bytes.total_cmp(&b.memory_bytes));
        let sold = least.map_or_else(|| "nobody sells that".into(), |own| format!("least sold: {}", own.id));
        let change = InputChange::Limit(LimitKind::Memory, bytes);
        tell(remedy("memory", units::bytes_exact(bytes), change, figures, &sold));
    }

    /// Tells which settings of the model, and which options of the planner left free, are enough.
    fn settings(&self, search: &Search, tell: &mut dyn FnMut(RemedyResult)) {
        let problem = &self.problem;
        for spec in self.planner.options() {
            let (now, free) = (problem.options.get(spec.name), spec.default_value());
            let Some(now) = now.filter(|now| *now != free) else { continue };
            let mut options = problem.options.clone();
            options.set(spec.name, free.clone());
            let Some(planned) = self.plan_with(&problem.workload, &problem.limits, &options, search) else { return };
            let to = format!("{} in place of {}", spec.show(&free), spec.show(&now));
            self.tell(&spec.name.replace('_', " "), to, InputChange::Option(spec, free), planned, tell);
        }
        for (id, to) in SETTINGS {
            let Some(now) = self.dial(id).filter(|now| now != to) else { continue };
            let Ok(workload) = dial::turned(&problem.workload, id, to) else { continue };
            let Some(planned) = self.plan(&Arc::new(workload), &problem.limits, search) else { return };
            self.tell(id, format!("{to} in place of {now}"), InputChange::Dial(id, to.into()), planned, tell);
        }
    }

    /// Tells the longest sequence and the largest batch that are enough, of those that are halves of the present ones; if
    /// none is, how far the least gets.
    fn halved(&self, search: &Search, tell: &mut dyn FnMut(RemedyResult)) {
        let (workload, limits) = (&self.problem.workload, &self.problem.limits);
        let tokens = self.dial(SEQUENCE).and_then(|tokens| tokens.parse::<u64>().ok()).unwrap_or(0);
        let shorter = first_enough(halves(tokens).filter(|length| *length >= SHORTEST), |length| {
            let workload = dial::turned(workload, SEQUENCE, &length.to_string()).ok()?;
            self.plan(&Arc::new(workload), limits, search)
        });
        if let Some((length, planned)) = shorter {
            let change = InputChange::Dial(SEQUENCE, length.to_string());
            self.tell("sequence", format!("{length} tokens"), change, planned, tell);
        }
        let smaller = first_enough(halves(u64::from(limits.samples())), |samples| {
            self.plan(workload, &limits.with(LimitKind::Batch, samples as f64), search)
        });
        if let Some((samples, planned)) = smaller {
            let change = InputChange::Limit(LimitKind::Batch, samples as f64);
            self.tell("batch", units::counted(samples as usize, "sequence"), change, planned, tell);
        }
    }

    /// Value of a dial of the model.
    fn dial(&self, id: &str) -> Option<String> {
        dial::dials(&self.problem.workload).into_iter().find(|dial| dial.id == id).map(|dial| dial.value)
    }

    fn tell(
        &self,
        subject: &str,
        to: String,
        change: InputChange,
        (outcome, figures): (Outcome, Option<TrainedFigures>),
        tell: &mut dyn FnMut(RemedyResult),
    ) {
        tell(match figures {
            Some(figures) => remedy(subject, to, change, figures, ""),
            None => RemedyResult::Short(format!("{subject} {to}"), reason(&outcome, &self.problem.limits)),
        });
    }
}

/// First value whose plan exists, else the last one, with its outcome. `None` if no value was planned.
fn first_enough<F>(
    values: impl Iterator<Item = u64>,
    mut plan: impl FnMut(u64) -> Option<(Outcome, Option<F>)>,
) -> Option<(u64, (Outcome, Option<F>))> {
    let mut last = None;
    for value in values {
        let planned = plan(value)?;
        let enough = planned.1.is_some();
        last = Some((value, planned));
        if enough {
            break;
        }
    }
    last
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
