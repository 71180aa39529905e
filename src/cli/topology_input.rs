//! Topologies on the command line: the name of a preset, or a file in a supported format.

use std::{ops::Deref, path::PathBuf, sync::Arc};

use clap::{ArgMatches, Args, Command, FromArgMatches, error::ErrorKind};

use super::{Failure, input};
use crate::{
    cluster::{
        GivenLimits, LimitKind, Links, hardware,
        topology::{self, AssumedBandwidths, LinkRule, NameError, PlanTopology, Spec, Topology, TopologyFormat},
    },
    family::platform::DeviceLinks,
    units,
    workload::formats::{detect, read_file},
};

/// Topology given with `--topology`.
#[derive(Debug, PartialEq)]
pub(crate) struct TopologyArgument {
    /// Argument as given: a name or a path.
    argument: String,
    wired: PlanTopology,
    /// Bandwidth for planners that support only one.
    slowest: f64,
    /// Links for planners with machines: the published ones, or the slowest pairs.
    links: Links,
}

/// The flags about topologies, as they are typed.
#[derive(Debug, Clone, Args)]
struct Flags {
    /// Topology: a preset such as dgx-1 or 4xdgx-h100, a file, or several machines of one, such as 8xbox.txt+ib-ndr;
    /// `plantui topologies` lists the presets
    #[arg(long, value_name = "NAME|FILE")]
    topology: Option<String>,
    #[command(flatten)]
    links: LinkFlags,
}

/// The same for several topologies.
#[derive(Debug, Clone, Args)]
struct ListFlags {
    /// Topologies, such as dgx-1,2xdgx-a100: presets or files; plans are mapped to each
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    topology: Vec<String>,
    #[command(flatten)]
    links: LinkFlags,
}

/// What links carry, where a table tells their kind alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
pub(super) struct LinkFlags {
    /// GB/s of one NVLink (or xGMI link) each way, for tables without bandwidths [default: that of the hardware]
    #[arg(long, value_name = "GB/S", value_parser = topology::gigabytes)]
    nvlink_gbps: Option<f64>,
    /// PCIe of a device: gen3, gen4, gen5 or GB/s, for tables without bandwidths
    #[arg(long, value_name = "GEN", value_parser = topology::pcie)]
    pcie: Option<f64>,
}

/// Requested topology, read with the link facts of `--hardware`, `--pcie` and `--nvlink-gbps`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TopologyArgs(Option<Arc<TopologyArgument>>);

/// The same for several topologies.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TopologyListArgs(Vec<Arc<TopologyArgument>>);

impl Deref for TopologyArgs {
    type Target = Option<Arc<TopologyArgument>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Deref for TopologyListArgs {
    type Target = [Arc<TopologyArgument>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromArgMatches for TopologyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Flags { topology, links } = Flags::from_arg_matches(matches)?;
        links.read(topology.as_slice(), matches).map(|all| TopologyArgs(all.into_iter().next()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = TopologyArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl FromArgMatches for TopologyListArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let ListFlags { topology, links } = ListFlags::from_arg_matches(matches)?;
        links.read(&topology, matches).map(TopologyListArgs)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = TopologyListArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for TopologyArgs {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}

impl Args for TopologyListArgs {
    fn augment_args(command: Command) -> Command {
        ListFlags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ListFlags::augment_args_for_update(command)
    }
}

impl LinkFlags {
    fn read(self, arguments: &[String], matches: &ArgMatches) -> Result<Vec<Arc<TopologyArgument>>, clap::Error> {
        let hardware = matches.try_get_one::<String>("hardware").ok().flatten();
        let wrong = |failure| {
            let message = match failure {
                Failure::Refused { message, hint } if hint.is_empty() => message,
                Failure::Refused { message, hint } => format!("{message}; {hint}"),
                Failure::Bug(what) => what,
                Failure::ReaderLeft => "it cannot be read".into(),
            };
            clap::Error::raw(ErrorKind::ValueValidation, format!("--topology: {message}\n"))
        };
        if arguments.is_empty() && self != LinkFlags::default() {
            let message = "--nvlink-gbps and --pcie set the links of a topology; give --topology\n";
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
        }
        let read = |text: &String| read(text, self, hardware.map(String::as_str)).map(Arc::new).map_err(wrong);
        arguments.iter().map(read).collect()
    }
}

/// Topology with this name or in this file, with simplified links for planners without topologies.
///
/// # Errors
/// As [`topology()`].
pub(super) fn read(text: &str, links: LinkFlags, hardware: Option<&str>) -> Result<TopologyArgument, Failure> {
    let mut wired = wired(text, links, hardware)?;
    if let Some(sheet) = hardware.and_then(hardware::find) {
        agree(&wired.topology, sheet.id)?;
        // The same machines with another memory consist of these devices.
        let mut topology = Topology::clone(&wired.topology);
        (topology.hardware, topology.memory_bytes) = (Some(sheet.id.into()), Some(sheet.memory_bytes.value));
        wired.topology = Arc::new(topology);
    }
    let rule = LinkRule::of(&wired.topology);
    let published = topology::find_published(text).map(|cluster| cluster.links);
    let links = published.unwrap_or_else(|| rule.links());
    let argument = wired.file.clone().unwrap_or_else(|| text.into());
    Ok(TopologyArgument { argument, wired, slowest: rule.any, links })
}

/// Checks that the devices of a topology may be this hardware.
///
/// # Errors
/// [`Failure`] if the topology names other devices.
pub(super) fn agree(topology: &Topology, id: &str) -> Result<(), Failure> {
    let Some(sheet) = hardware::find(id) else { return Ok(()) };
    let name = &topology.name;
    let refuse = |devices: String| {
        let hint = "leave one of the two out, or give a topology of those devices";
        Err(Failure::refused(format!("--hardware {id} contradicts --topology {name}, whose devices {devices}"), hint))
    };
    match topology.hardware.as_deref().and_then(hardware::find) {
        Some(own) => {
            let figures = |sheet: &hardware::Hardware| {
                (sheet.peak_flops.value, sheet.intra_node_link.value, sheet.memory_bytes.value)
            };
            if figures(&own) == figures(&sheet) { Ok(()) } else { refuse(format!("are {}", own.id)) }
        }
        None => match topology.memory_bytes {
            Some(bytes) if (bytes / sheet.memory_bytes.value - 1.0).abs() > 0.01 => {
                let [own, other] = [bytes, sheet.memory_bytes.value].map(units::bytes_exact);
                refuse(format!("have {own} each, not {other}"))
            }
            _ => Ok(()),
        },
    }
}

impl TopologyArgument {
    /// Topology itself.
    pub(super) fn topology(&self) -> &Arc<Topology> {
        &self.wired.topology
    }

    /// Topology with the facts to find it again.
    pub(super) fn wired(&self) -> &PlanTopology {
        &self.wired
    }

    /// Hardware of its devices.
    ///
    /// # Errors
    /// [`Failure`] if the topology does not state it.
    pub(super) fn named_hardware(&self) -> Result<&str, Failure> {
        self.wired.topology.hardware.as_deref().ok_or_else(|| {
            let problem = format!("--topology {} does not name its devices", self.wired.topology.name);
            let memory = self.wired.topology.memory_bytes;
            let like = |sheet: &&hardware::Hardware| agree(&self.wired.topology, sheet.id).is_ok();
            let hint = match (hardware::all().iter().rfind(like), memory) {
                (None, Some(bytes)) => format!(
                    "no hardware of {} has training constants: a workload file may state its own",
                    units::bytes_exact(bytes)
                ),
                (like, _) => {
                    let id = hardware::find("h100")
                        .filter(|usual| agree(&self.wired.topology, usual.id).is_ok())
                        .or(like.copied())
                        .map_or("h100", |sheet| sheet.id);
                    format!("give --hardware, such as --hardware {id}")
                }
            };
            Failure::refused(problem, hint)
        })
    }

    /// Specification as given, without assumptions about its links.
    fn spec(&self) -> Spec {
        Spec { assumed: AssumedBandwidths::default(), ..PlanTopology::spec(&self.argument) }
    }

    /// Checks that the topology has this many devices.
    ///
    /// # Errors
    /// [`Failure`] that suggests a topology of more machines.
    pub(super) fn has(&self, devices: u64) -> Result<(), Failure> {
        let there = self.devices() as u64;
        if devices <= there {
            return Ok(());
        }
        let machines = self.wired.topology.machines().sizes().len() as u64;
        let hint = match devices.div_ceil(there) {
            copies if machines == 1 => {
                let spec = Spec { machines: Some(copies.to_string()), network: Some("ib-ndr".into()), ..self.spec() };
                format!("several machines of it are --topology {spec}")
            }
            _ => "give a topology of more machines".into(),
        };
        let name = &self.wired.topology.name;
        let has = units::counted(self.devices(), "device");
        Err(Failure::refused(format!("--devices {devices} are more than --topology {name} has, which is {has}"), hint))
    }

    /// Limits that it implies: memory, devices, machines, and the bandwidth of the slowest pair.
    pub(super) fn overrides(&self) -> GivenLimits {
        GivenLimits::default()
            .maybe(LimitKind::Memory, self.wired.topology.memory_bytes)
            .with(LimitKind::Devices, self.wired.topology.devices() as u32)
            .on(Some(self.wired.topology.machines()))
            .maybe(LimitKind::Bandwidth, Some(self.slowest).filter(|slowest| slowest.is_finite()))
            .wired(Some(self.wired.clone()))
    }

    /// Links for devices: those of the slowest pair within a machine and across machines.
    pub(super) fn wiring(&self) -> DeviceLinks {
        let machines = self.wired.topology.machines();
        let machine = u32::from(machines.sizes().iter().copied().min().unwrap_or(1));
        let summary = format!(
            "{}: {machine} devices to a machine, {} between the slowest pair of them and {} to another machine; \
            groups run at the speed of their routes",
            self.wired.topology.name,
            units::bandwidth_exact(self.links.in_machine),
            units::bandwidth_exact(self.links.between_machines)
        );
        let topology = &self.wired.topology;
        let (joined_by, memory_bytes) = (topology.joined_by(), topology.memory_bytes);
        DeviceLinks { links: self.links, machine, joined_by, memory_bytes, summary }
    }

    /// Number of its devices.
    pub(super) fn devices(&self) -> usize {
        self.wired.topology.devices()
    }

    /// Settings that it implies, for planners that have them.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("topology", self.argument.clone()),
            ("nvlink_bandwidth", self.links.in_machine.to_string()),
            ("ethernet_bandwidth", self.links.between_machines.to_string()),
            ("all_reduce_bandwidth", self.links.all_reduce.to_string()),
        ]
    }

    /// Assumption of a planner without topologies, in a sentence.
    pub(super) fn rule(&self, on_machines: bool) -> String {
        let rule = if on_machines { LinkRule::MACHINES } else { LinkRule::SLOWEST };
        format!("{}: {rule}", self.wired.topology.name)
    }
}

/// Topology with this name, or in this file.
///
/// # Errors
/// [`Failure`] with the known names, or with the line of the file.
pub(super) fn topology(text: &str, links: LinkFlags, hardware: Option<&str>) -> Result<Arc<Topology>, Failure> {
    wired(text, links, hardware).map(|wired| wired.topology)
}

fn wired(text: &str, links: LinkFlags, hardware: Option<&str>) -> Result<PlanTopology, Failure> {
    let mut spec = PlanTopology::spec(text);
    let path = PathBuf::from(&spec.base);
    let told = "states its bandwidths: --nvlink-gbps and --pcie are for tables without them";
    if !input::is_standard_input(&path) && !path.is_file() {
        // A path that exists but is neither file nor preset gets the same error as for other inputs.
        let no_file = || Some(&path).filter(|path| path.exists()).and_then(|path| read_file(path).err());
        let named = topology::named(text).map_err(|error| match (error, no_file()) {
            (NameError::Unknown { .. }, Some(no_file)) => no_file.into(),
            (NameError::Unknown { name, known }, _) => {
                let hint = format!(
                    "presets: {known}; 2xdgx-a100 is two machines, 2xdgx-1+eth-25g two machines with \
                    one NIC each, tpu-v4-4x4x4 a torus"
                );
                Failure::refused(format!("there is no topology and no file `{name}`"), hint)
            }
            (error, _) => {
                let told = error.to_string();
                let (message, hint) = told.split_once("; ").unwrap_or((&told, ""));
                Failure::refused(message, hint)
            }
        })?;
        if links != LinkFlags::default() {
            return Err(Failure::refused(format!("the preset {} {told}", named.name), "leave them out"));
        }
        return Ok(PlanTopology { topology: Arc::new(named), file: None });
    }
    let (bytes, source) = input::file_bytes(&path)?;
    let text = detect::text(&bytes, &source, &detect::TOPOLOGY)?;
    let flags = AssumedBandwidths { nvlink: links.nvlink_gbps, pcie: links.pcie, nic: None };
    if TopologyFormat::of(text).has_bandwidths() {
        if links != LinkFlags::default() {
            return Err(Failure::refused(format!("{source} {told}"), "leave them out"));
        }
    } else {
        let sheet = hardware.and_then(hardware::find);
        let own =
            sheet.map(|sheet| AssumedBandwidths { nvlink: Some(sheet.nvlink.value), ..AssumedBandwidths::default() });
        spec.assumed = spec.assumed.or(flags).or(own.unwrap_or_default());
    }
    if spec.machines.is_some() && spec.network.is_none() {
        let nic = hardware.and_then(hardware::find).map(|sheet| sheet.inter_node_link.value);
        spec.assumed = spec.assumed.or(AssumedBandwidths { nic, ..AssumedBandwidths::default() });
    }
    Ok(PlanTopology::of_text(text, &source, &spec)?)
}
