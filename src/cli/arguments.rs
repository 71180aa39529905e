//! Flags that several commands share: limits and planning.

use std::{path::Path, sync::Arc, time::Duration};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{
    Failure, hardware_file, input,
    job_input::GivenFact,
    profile_input::ProfileArgs,
    topology_input::{TopologyArgs, TopologyArgument},
    training_input::{self, TrainingArgs},
};
use crate::{
    cluster::{GivenLimits, LimitKind, Machines},
    export::formats::{self, PlanFormat},
    family::{
        self,
        kinds::{self, KindCount},
    },
    plan::Plan,
    planner,
    study::sweep::LimitValues,
    units::{self, UnitError},
    workload::Workload,
};

/// Limits that override those of the file. Bare numbers are bytes and bytes per second.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Limits (default: those of the workload)")]
pub(crate) struct LimitArgs {
    /// Devices available; a plan may use fewer. `plan` takes several, such as 64..512, and shows what each costs. Kinds,
    /// such as 16xh100,32xa100-80, are planned together
    #[arg(long, value_name = "K", allow_hyphen_values = true, value_parser = several_devices)]
    pub devices: Option<Counts>,
    /// CPUs that can run nodes beside the devices (device placement)
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = cpus)]
    pub cpus: Option<u32>,
    /// Memory per device, such as 16GiB, 80GB or 8589934592
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = memory)]
    pub memory: Option<f64>,
    /// Microbatches in a batch; the replicas of a stage must divide them
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = microbatches)]
    pub microbatches: Option<u32>,
    /// Bandwidth between any two devices, such as 25GB/s, 25GiB/s or 200Gb/s (bits)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = bandwidth)]
    pub bandwidth: Option<f64>,
    /// Samples in a batch over all devices (layer profiles, training); `plan` takes a list, such as 32,64,128
    #[arg(long, visible_alias = "global-batch", value_name = "N", allow_hyphen_values = true, value_parser = batches)]
    pub batch: Option<Counts>,
    /// Devices of each machine
    #[arg(long, help = "Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer \
        profiles)", value_name = "LIST", allow_hyphen_values = true, value_parser = Machines::parse)]
    pub machines: Option<Machines>,
    /// Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = flops)]
    pub flops: Option<f64>,
    /// Topology of the devices. Before the training flags: each field takes its flag out of what was parsed, and a
    /// topology is read with the hardware's links.
    #[command(flatten)]
    pub topology: TopologyArgs,
    /// How a model is trained.
    #[command(flatten)]
    pub training: TrainingArgs,
    /// How a profile was measured.
    #[command(flatten)]
    pub profile: ProfileArgs,
}

/// Values of a limit to plan for, one after the other, or one number of devices for each of several kinds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counts {
    values: Vec<u32>,
    kinds: Vec<KindCount>,
}

/// Most values of one limit in one command.
const MOST_VALUES: usize = 32;

impl Counts {
    fn of(values: Vec<u32>) -> Self {
        Counts { values, kinds: vec![] }
    }

    /// The only value, or the first of several.
    pub(crate) fn first(&self) -> u32 {
        self.values[0]
    }

    /// Largest value.
    fn largest(&self) -> u32 {
        self.values.iter().copied().max().unwrap_or(0)
    }

    /// True if there are several.
    fn are_several(&self) -> bool {
        self.values.len() > 1
    }
}

/// Workload on these kinds of devices, which `place` names: presets, or hardware of the configuration file.
///
/// # Errors
/// [`Failure`] if it has no costs on one of them, or the configuration file cannot be read.
pub(super) fn over_kinds(workload: &Workload, kinds: &[KindCount], place: &str) -> Result<Workload, Failure> {
    if family::of(workload).has_platform() {
        kinds.iter().try_for_each(|kind| hardware_file::id_of(kind.hardware()).map(drop))?;
    }
    kinds::over(workload, kinds).map_err(|error| Failure::refused(format!("{place}: {error}"), ""))
}

/// Refusal of a flag that is for one kind of device.
pub(super) fn for_one_kind(flag: &str, kinds: &[KindCount]) -> Failure {
    let problem = format!("{flag} is for one kind of device, and there are {}", KindCount::text(kinds));
    Failure::refused(problem, "leave it out: each kind has its own")
}

impl LimitArgs {
    /// Loads the workload with the flags and the topology applied.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be read, or a flag does not apply to it.
    pub(super) fn load(&self, workload: &Path) -> Result<Workload, Failure> {
        self.over(input::workload_given(workload, &self.job_facts()?)?)
    }

    /// Flags that state facts of a job, in place of what its file states.
    ///
    /// # Errors
    /// [`Failure`] if the hardware's file cannot be read.
    pub(super) fn job_facts(&self) -> Result<Vec<GivenFact>, Failure> {
        let single = |counts: &Option<Counts>| {
            counts
                .as_ref()
                .filter(|counts| !counts.are_several() && counts.kinds.is_empty())
                .map(|counts| counts.first().to_string())
        };
        let tokens = match self.training.sequence_length[..] {
            [tokens] => Some(tokens.to_string()),
            _ => None,
        };
        let facts = [
            ("hardware", self.training.hardware.as_deref().map(hardware_file::id_of).transpose()?),
            ("devices", single(&self.devices)),
            ("global_batch", single(&self.batch)),
            ("sequence_length", tokens),
            ("precision", self.training.precision.clone()),
        ];
        let given = |(name, value): (&str, Option<String>)| {
            value.map(|value| (name.to_string(), value, format!("--{}", name.replace('_', "-"))))
        };
        Ok(facts.into_iter().filter_map(given).chain(self.profile.facts()).collect())
    }

    /// True if a flag is given that states no fact of a job.
    pub(super) fn are_more_than_facts(&self) -> bool {
        let training =
            TrainingArgs { hardware: None, sequence_length: vec![], precision: None, ..self.training.clone() };
        let profile = ProfileArgs { micro_batch: None, ..self.profile.clone() };
        LimitArgs { devices: None, batch: None, training, profile, ..self.clone() } != LimitArgs::default()
    }

    /// Applies the model flags to a loaded workload.
    ///
    /// # Errors
    /// [`Failure`] if one of them does not apply to it.
    pub(super) fn over(&self, read: Workload) -> Result<Workload, Failure> {
        self.check_single()?;
        self.over_each(read)
    }

    /// Like [`LimitArgs::over`], with several values of a limit allowed.
    ///
    /// # Errors
    /// As [`LimitArgs::over`].
    pub(super) fn over_each(&self, read: Workload) -> Result<Workload, Failure> {
        if let (Some(topology), Some(devices)) = (&*self.topology, &self.devices) {
            topology.has(devices.largest().into())?;
        }
        let read = self.profile.over(self.training.over(read, &[], self.topology.as_deref())?)?;
        self.on_kinds(read, self.kinds().unwrap_or_default(), "--devices")
    }

    /// Numbers of devices by kind, if they are given so.
    fn kinds(&self) -> Option<&[KindCount]> {
        self.devices.as_ref().map(|counts| counts.kinds.as_slice()).filter(|kinds| !kinds.is_empty())
    }

    /// Ids of the dials that numbers of devices by kind set.
    #[cfg(feature = "screen")]
    pub(super) fn changed_kinds(&self) -> impl Iterator<Item = String> {
        (1..=self.kinds().map_or(0, <[KindCount]>::len)).map(|number| format!("kind-{number}"))
    }

    /// Workload on these kinds of devices, which `place` names; the same if there are none.
    ///
    /// # Errors
    /// [`Failure`] if it has no costs on one of them, or flags for one kind are given.
    fn on_kinds(&self, workload: Workload, kinds: &[KindCount], place: &str) -> Result<Workload, Failure> {
        let asked = if kinds.is_empty() { KindCount::of(&workload) } else { kinds.to_vec() };
        if asked.is_empty() {
            return Ok(workload);
        }
        let for_one = [
            ("--hardware", self.training.hardware.is_some()),
            ("--fabric", self.training.fabric.is_some()),
            ("--memory", self.memory.is_some()),
            ("--topology", self.topology.is_some()),
            ("--machines", self.machines.is_some()),
        ];
        if let Some((flag, _)) = for_one.into_iter().find(|(_, given)| *given) {
            return Err(for_one_kind(flag, &asked));
        }
        if kinds.is_empty() {
            return Ok(workload);
        }
        over_kinds(&workload, kinds, place)
    }

    /// Loads the workload of a plan's file, on the kinds of the flags or of the plan.
    ///
    /// # Errors
    /// As [`LimitArgs::load`].
    pub(super) fn load_for(&self, workload: &Path, plan: &Path) -> Result<Workload, Failure> {
        self.check_single()?;
        let read = self.profile.over_for(
            self.training.load_for(workload, plan, self.topology.as_deref(), self.profile.facts().as_slice())?,
            plan,
        )?;
        let made_for = training_input::kinds_in_plan(plan)?;
        let own = KindCount::of(&read);
        let price = |kinds: &[KindCount], id: &str| kinds.iter().find(|own| own.id == id)?.price_per_hour;
        let (asked, given, place) = match self.kinds() {
            Some(kinds) => (kinds, true, "--devices"),
            None => (&made_for[..], false, "workload.kinds of the plan"),
        };
        // A price of the flags counts before that of the workload's file, and that before the plan's.
        let priced = |kind: &KindCount| KindCount {
            price_per_hour: (kind.price_per_hour.filter(|_| given))
                .or_else(|| price(&own, &kind.id))
                .or_else(|| price(&made_for, &kind.id)),
            ..kind.clone()
        };
        let kinds: Vec<KindCount> = asked.iter().map(priced).collect();
        self.on_kinds(read, &kinds, place)
    }

    /// The same without the topology.
    pub(super) fn without_topology(&self) -> LimitArgs {
        LimitArgs { topology: TopologyArgs::default(), ..self.clone() }
    }

    /// Copies with one number of devices and one batch size each, in the given order.
    pub(crate) fn each(&self) -> Vec<LimitArgs> {
        let one = |counts: &Option<Counts>| match counts {
            Some(counts) => {
                counts.values.iter().map(|&value| Some(Counts { values: vec![value], ..counts.clone() })).collect()
            }
            None => vec![None],
        };
        let batches: Vec<Option<Counts>> = one(&self.batch);
        let with = |devices: &Option<Counts>, batch: &Option<Counts>| LimitArgs {
            devices: devices.clone(),
            batch: batch.clone(),
            ..self.clone()
        };
        one(&self.devices).iter().flat_map(|devices| batches.iter().map(move |batch| with(devices, batch))).collect()
    }

    /// True if there are several numbers of devices.
    pub(crate) fn vary_devices(&self) -> bool {
        self.devices.as_ref().is_some_and(Counts::are_several)
    }

    /// Refuses several values of a limit, which only `plan` and `sweep` take.
    ///
    /// # Errors
    /// [`Failure`] with the flag.
    fn check_single(&self) -> Result<(), Failure> {
        let several = |counts: &Option<Counts>| counts.as_ref().is_some_and(Counts::are_several);
        let flags = [("--devices", several(&self.devices)), ("--batch", several(&self.batch))];
        match flags.into_iter().find(|(_, several)| *several) {
            Some((flag, _)) => Err(Failure::refused(
                format!("{flag} has several values"),
                "give one; `plantui plan` and `plantui sweep` take several",
            )),
            None => Ok(()),
        }
    }

    /// Puts a plan on the routes of the requested topology, if that has enough devices. The plan's devices are the
    /// topology's.
    pub(super) fn wire(&self, plan: &mut Plan) {
        if let Some(given) = &*self.topology {
            let topology = given.topology();
            let known = plan.devices().all(|device| (device as usize) < topology.devices());
            plan.topology = known.then(|| Arc::clone(topology));
        }
    }

    /// Link settings of a topology preset, for planners with link options.
    pub(super) fn link_settings(&self) -> Vec<(&'static str, String)> {
        self.topology.as_deref().map(TopologyArgument::settings).unwrap_or_default()
    }

    /// Limits that override a file. Flags take precedence over the topology.
    pub(crate) fn overrides(&self) -> GivenLimits {
        let Some(topology) = &*self.topology else { return self.flags() };
        let mut told = topology.overrides();
        if self.machines.is_some() {
            told.set(LimitKind::Devices, None::<u32>);
        }
        self.flags().or(&told)
    }

    /// Limits of the flags alone.
    pub(super) fn flags(&self) -> GivenLimits {
        GivenLimits::default()
            // Numbers by kind are the workload's own limit.
            .maybe(
                LimitKind::Devices,
                self.devices.as_ref().filter(|counts| counts.kinds.is_empty()).map(Counts::first),
            )
            .maybe(LimitKind::Cpus, self.cpus)
            .maybe(LimitKind::Memory, self.memory)
            .maybe(LimitKind::Microbatches, self.microbatches)
            .maybe(LimitKind::Bandwidth, self.bandwidth)
            .maybe(LimitKind::Batch, self.batch.as_ref().map(Counts::first))
            .on(self.machines.clone())
            .maybe(LimitKind::Flops, self.flops)
    }
}

/// Which planner, how it is set, and how long it may take.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct PlannerArgs {
    /// The planner; without it the first that can plan the workload
    #[arg(long, value_name = "ID", value_parser = planner_ids())]
    pub planner: Option<String>,
    /// Sets an option of the planner; `plantui planners` lists them. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Stops after this time, such as 60s or 2min, with the best plan so far; its simulation may take one more second
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = deadline)]
    pub deadline: Option<Duration>,
    /// Threads to plan with; the plan is the same for any number [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    pub threads: Option<u16>,
    /// Seed of planners with random choices
    #[arg(long, value_name = "S", allow_hyphen_values = true, default_value_t = 0, value_parser = seed)]
    pub seed: u64,
}

pub(super) fn planner_ids() -> PossibleValuesParser {
    PossibleValuesParser::new(planner::all().iter().map(|p| p.info().id))
}

pub(super) fn devices(text: &str) -> Result<u32, UnitError> {
    LimitKind::Devices.parse(text).map(|count| count as u32)
}

fn cpus(text: &str) -> Result<u32, UnitError> {
    LimitKind::Cpus.parse(text).map(|count| count as u32)
}

fn microbatches(text: &str) -> Result<u32, UnitError> {
    LimitKind::Microbatches.parse(text).map(|count| count as u32)
}

fn batches(text: &str) -> Result<Counts, UnitError> {
    let sizes = text.split(',').map(|word| LimitKind::Batch.parse(word).map(|size| size as u32));
    let sizes = sizes.collect::<Result<Vec<u32>, _>>()?;
    if sizes.len() > MOST_VALUES {
        return Err(UnitError::new(text, "too many batches: at most 32"));
    }
    Ok(Counts::of(sizes))
}

/// Numbers of devices by kind, if the text has them: `16xh100,32xa100-80`. A kind may be a TOML file with hardware of the
/// user, which is then known by its id.
pub(super) fn kinds(text: &str) -> Option<Result<Vec<KindCount>, String>> {
    let of_file = |part: &str| {
        let Some(end) = part.to_ascii_lowercase().find(".toml").map(|start| start + ".toml".len()) else {
            return Ok(part.to_string());
        };
        let (head, rest) = part.split_at(end);
        let Some((count, file)) = head.split_once(['x', 'X', '*']) else { return Ok(part.to_string()) };
        match hardware_file::id_of(file.trim()) {
            Ok(id) => Ok(format!("{count}x{id}{rest}")),
            Err(Failure::Refused { message, hint }) => Err(format!("{message}; {hint}")),
            Err(_) => Err(format!("{file} cannot be read")),
        }
    };
    match text.split(',').map(of_file).collect::<Result<Vec<_>, String>>() {
        Ok(parts) => KindCount::parse(&parts.join(",")),
        Err(problem) => Some(Err(problem)),
    }
}

fn several_devices(text: &str) -> Result<Counts, String> {
    if let Some(kinds) = kinds(text) {
        let kinds = kinds?;
        let all = kinds.iter().fold(0u32, |sum, kind| sum.saturating_add(kind.count));
        return Ok(Counts { values: vec![all], kinds });
    }
    if !text.contains([',', '.']) {
        return devices(text).map(|count| Counts::of(vec![count])).map_err(|error| error.to_string());
    }
    let several = LimitValues::parse(LimitKind::Devices, text)?;
    if several.values.len() > MOST_VALUES {
        return Err(format!("`{text}` has more than {MOST_VALUES} numbers of devices; take larger steps"));
    }
    Ok(Counts::of(several.values.into_iter().map(|count| count as u32).collect()))
}

fn memory(text: &str) -> Result<f64, UnitError> {
    LimitKind::Memory.parse(text)
}

fn flops(text: &str) -> Result<f64, UnitError> {
    LimitKind::Flops.parse(text)
}

fn bandwidth(text: &str) -> Result<f64, UnitError> {
    LimitKind::Bandwidth.parse(text)
}

pub(super) fn threads(text: &str) -> Result<u16, UnitError> {
    let count = text.parse().ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| UnitError::new(text, "not a number of threads from 1 to 1024"))
}

pub(super) fn seed(text: &str) -> Result<u64, UnitError> {
    text.parse().map_err(|_| UnitError::new(text, "not a seed: write a whole number from 0 to 18446744073709551615"))
}

pub(super) fn deadline(text: &str) -> Result<Duration, UnitError> {
    units::parse_deadline(text)
}

/// Export formats as values of the command line, with their help and former names.
pub(crate) fn export_formats() -> impl Iterator<Item = (&'static PlanFormat, PossibleValue)> {
    let value =
        |format: &PlanFormat| PossibleValue::new(format.id).help(format.help).aliases(format.aliases.iter().copied());
    formats::FORMATS.iter().map(move |format| (format, value(format)))
}
