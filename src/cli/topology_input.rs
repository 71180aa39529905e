//! Topologies on the command line: the name of a preset, or a file in one of the forms that are read.

use std::{path::Path, sync::Arc};

use super::{Failure, input};
use crate::{
    cluster::{
        GivenLimits, LimitKind, Links,
        topology::{self, LinkRule, NameError, Topology},
    },
    family::platform::Wiring,
    units,
    workload::formats::{Wired, detect, read_file},
};

/// A topology that was asked for with `--topology`.
#[derive(Debug, PartialEq)]
pub(crate) struct Given {
    /// As it was asked for: a name or a path.
    asked: String,
    wired: Wired,
    /// What planners are told that know one bandwidth.
    slowest: f64,
    /// What those are told that know machines: as published, or the slowest pairs.
    links: Links,
}

/// Reads the value of `--topology`, for clap.
pub(super) fn given(text: &str) -> Result<Arc<Given>, String> {
    let given = read(text).map_err(|failure| match failure {
        Failure::Refused { message, hint } if hint.is_empty() => message,
        Failure::Refused { message, hint } => format!("{message}; {hint}"),
        Failure::Bug(what) => what,
        Failure::ReaderLeft => "it could not be read".into(),
    })?;
    Ok(Arc::new(given))
}

/// The topology of this name or in this file, with what it says to those who know less.
///
/// # Errors
/// As [`topology()`].
pub(super) fn read(text: &str) -> Result<Given, Failure> {
    let topology = topology(text)?;
    let rule = LinkRule::of(&topology);
    let published = topology::find_published(text).map(|cluster| cluster.links);
    let links = published.unwrap_or_else(|| rule.links());
    let file = Path::new(text).is_file().then(|| text.to_string());
    let wired = Wired { topology: Arc::new(topology), file };
    Ok(Given { asked: text.into(), wired, slowest: rule.any, links })
}

impl Given {
    /// The topology itself.
    pub(super) fn topology(&self) -> &Arc<Topology> {
        &self.wired.topology
    }

    /// The topology with what it is found by again.
    pub(super) fn wired(&self) -> &Wired {
        &self.wired
    }

    /// What it says of limits: memory, devices, machines, and the bandwidth of the slowest pair.
    pub(super) fn overrides(&self) -> GivenLimits {
        GivenLimits::default()
            .maybe(LimitKind::Memory, self.wired.topology.memory_bytes)
            .with(LimitKind::Devices, self.wired.topology.devices() as u32)
            .on(Some(self.wired.topology.machines()))
            .maybe(LimitKind::Bandwidth, Some(self.slowest).filter(|slowest| slowest.is_finite()))
    }

    /// The links that it gives devices: those of the slowest pair within a machine and across machines.
    pub(super) fn wiring(&self) -> Wiring {
        let machines = self.wired.topology.machines();
        let machine = u32::from(machines.sizes().iter().copied().min().unwrap_or(1));
        let told = format!(
            "{}: {machine} devices to a machine, {} between them and {} to another machine, the slowest pairs, which the planner counts on",
            self.wired.topology.name,
            units::bandwidth_exact(self.links.in_machine),
            units::bandwidth_exact(self.links.between_machines)
        );
        Wiring { links: self.links, machine, told }
    }

    /// How many devices it has.
    pub(super) fn devices(&self) -> usize {
        self.wired.topology.devices()
    }

    /// What it says as settings of planners that have them.
    pub(super) fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("topology", self.asked.clone()),
            ("nvlink_bandwidth", self.links.in_machine.to_string()),
            ("ethernet_bandwidth", self.links.between_machines.to_string()),
            ("all_reduce_bandwidth", self.links.all_reduce.to_string()),
        ]
    }

    /// What a planner that does not know topologies is told in its place, in a sentence.
    pub(super) fn rule(&self, on_machines: bool) -> String {
        let rule = if on_machines { LinkRule::MACHINES } else { LinkRule::SLOWEST };
        format!("{}: {rule}", self.wired.topology.name)
    }
}

/// The topology of this name, or in this file.
///
/// # Errors
/// [`Failure`] with what there is, or with the line of the file.
pub(super) fn topology(text: &str) -> Result<Topology, Failure> {
    let path = Path::new(text);
    if !input::is_standard_input(path) && !path.is_file() {
        // What is there and is neither file nor preset is refused as it is where anything else is asked for.
        let no_file = || Some(path).filter(|path| path.exists()).and_then(|path| read_file(path).err());
        return topology::named(text).map_err(|error| match (error, no_file()) {
            (NameError::Unknown { .. }, Some(no_file)) => no_file.into(),
            (NameError::Unknown { name, known }, _) => {
                let hint = format!("a preset is {known}; 2xdgx-a100 is two of them, 2xdgx-1+eth-25g two over one NIC each, and tpu-v4-4x4x4 a torus");
                Failure::refused(format!("no topology is called `{name}`, and no file"), hint)
            }
            (error, _) => {
                let told = error.to_string();
                let (message, hint) = told.split_once("; ").unwrap_or((&told, ""));
                Failure::refused(message, hint)
            }
        });
    }
    let (bytes, source) = input::plan_bytes(path)?;
    let text = detect::text(&bytes, &source, &detect::TOPOLOGY)?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = crate::text::printable(stem.as_deref().unwrap_or("topology"));
    Ok(topology::read(text, &source, &name)?)
}
