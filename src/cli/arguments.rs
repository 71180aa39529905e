//! Flags that several commands share: limits, and how to plan.

use std::time::Duration;

use clap::{Args, builder::PossibleValuesParser};

use crate::{
    cluster::{LimitKind, Machines, Overrides},
    planner,
    units::{self, UnitError},
};

/// Limits that override those of the file. Bare numbers are bytes and bytes per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args)]
#[command(next_help_heading = "Limits (what is not given is read from the workload)")]
pub struct LimitArgs {
    /// Devices available; not all need be used
    #[arg(long, value_name = "K", allow_hyphen_values = true, value_parser = devices)]
    pub devices: Option<u32>,
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
    /// Samples in a batch over all devices (layer profiles)
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = batch)]
    pub batch: Option<u32>,
    /// Devices of each machine, such as 8,8 or 2x8, or counted through as [8,16] (layer profiles)
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = Machines::parse)]
    pub machines: Option<Machines>,
    /// Operations per second of a device, such as 10e12, 10T or 312TFLOPS (operator graphs)
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = flops)]
    pub flops: Option<f64>,
}

impl LimitArgs {
    /// The limits as what overrides a file.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            devices: self.devices,
            cpus: self.cpus,
            memory_bytes: self.memory,
            microbatches: self.microbatches,
            bandwidth_bytes_per_s: self.bandwidth,
            batch: self.batch,
            machines: self.machines,
            flops_per_s: self.flops,
        }
    }
}

/// Which planner, how it is set, and how long it may take.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Planning")]
pub struct PlannerArgs {
    /// The planner; without it the first that can plan the workload
    #[arg(long, value_name = "ID", value_parser = planner_ids())]
    pub planner: Option<String>,
    /// Sets an option of the planner; `plantui planners` lists them. May be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub settings: Vec<String>,
    /// Stops after this time, such as 60s or 2min, with the best plan so far
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = deadline)]
    pub deadline: Option<Duration>,
    /// Threads to plan with; the plan is the same for any number [default: one per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    pub threads: Option<u16>,
    /// Seed of planners that draw random numbers
    #[arg(long, value_name = "S", allow_hyphen_values = true, default_value_t = 0, value_parser = seed)]
    pub seed: u64,
}

pub(super) fn planner_ids() -> PossibleValuesParser {
    PossibleValuesParser::new(planner::all().iter().map(|p| p.info().id))
}

fn devices(text: &str) -> Result<u32, UnitError> {
    LimitKind::Devices.parse(text).map(|count| count as u32)
}

fn cpus(text: &str) -> Result<u32, UnitError> {
    LimitKind::Cpus.parse(text).map(|count| count as u32)
}

fn microbatches(text: &str) -> Result<u32, UnitError> {
    LimitKind::Microbatches.parse(text).map(|count| count as u32)
}

fn batch(text: &str) -> Result<u32, UnitError> {
    LimitKind::Batch.parse(text).map(|count| count as u32)
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

fn threads(text: &str) -> Result<u16, UnitError> {
    let count = text.parse().ok().filter(|count| (1..=1024).contains(count));
    count.ok_or_else(|| UnitError::new(text, "not a number of threads from 1 to 1024"))
}

fn seed(text: &str) -> Result<u64, UnitError> {
    text.parse().map_err(|_| UnitError::new(text, "not a seed: write a whole number from 0 to 18446744073709551615"))
}

pub(super) fn deadline(text: &str) -> Result<Duration, String> {
    let seconds = units::parse_seconds(text).map_err(|error| error.to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is longer than any run can last"))
}
