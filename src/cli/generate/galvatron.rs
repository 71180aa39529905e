//! `plantui generate computation_profiling_*.json`: generates a workload from Galvatron's measurements.

use std::path::Path;

use super::{GenerateArgs, MAX_CONFIG_BYTES, NetworkArgs};
use crate::{
    cluster::{Limits, hardware::Hardware},
    generate::{
        GenerateError, GenerateSettings,
        galvatron::{GalvatronProfile, GalvatronSettings, sibling, workload},
        preset,
    },
    source::error::printable,
    workload::formats::{detect, file},
};

/// Most layers of a network.
const MOST_LAYERS: u32 = 10_000;

/// True if the argument is named like such a profile: if it is missing, the error is a missing file, not an unknown
/// model.
pub(super) fn is_profile(args: &GenerateArgs) -> bool {
    memory_file(&args.model).is_some()
}

/// Path of the memory profile beside a profile of times.
fn memory_file(times: &str) -> Option<std::path::PathBuf> {
    let path = Path::new(times);
    Some(path.with_file_name(sibling(path.file_name()?.to_str()?)?))
}

/// Text of the workload.
pub(super) fn text(args: &GenerateArgs, hardware: &Hardware) -> Result<String, GenerateError> {
    let only = GenerateArgs {
        hardware: args.hardware.clone(),
        sequence_length: args.sequence_length,
        micro_batch: args.micro_batch,
        tensor_bandwidth: args.tensor_bandwidth,
        devices: args.devices,
        memory: args.memory,
        microbatches: args.microbatches,
        bandwidth: args.bandwidth,
        network: NetworkArgs { layers: args.network.layers, ..NetworkArgs::default() },
        ..GenerateArgs::of(&args.model)
    };
    if args.command_line() != only.command_line() {
        let problem = "a profile of Galvatron's takes --layers, --sequence-length, --micro-batch, \
            --tensor-bandwidth, --hardware, --devices, --memory, --microbatches and --bandwidth; the profile has \
            measured the rest";
        return Err(GenerateError::Setting { flag: "MODEL", problem: problem.into() });
    }
    let Some(layers) = args.network.layers else {
        let problem =
            "a profile of Galvatron's does not state the number of layers; give it, such as --layers 32".into();
        return Err(GenerateError::Setting { flag: "--layers", problem });
    };
    if layers > MOST_LAYERS {
        let problem = format!("{layers} layers are more than {MOST_LAYERS}");
        return Err(GenerateError::Setting { flag: "--layers", problem });
    }
    let read = |path: &Path| -> Result<(String, String), GenerateError> {
        let shown = printable(&path.display().to_string());
        let bytes = file::read_at_most(path, MAX_CONFIG_BYTES)?;
        Ok((detect::text(&bytes, &shown, &detect::CONFIGURATION)?.to_string(), shown))
    };
    let times = read(Path::new(&args.model))?;
    let memory = read(&memory_file(&args.model).unwrap_or_default())?;
    // Limits are those of any model on this hardware.
    let any = preset("llama-3-8b").map_or(Limits::NEUTRAL, |model| GenerateSettings::defaults(&model, hardware).limits);
    let limits = Limits {
        cpus: 0,
        devices: args.devices.unwrap_or(any.devices),
        memory_bytes: args.memory.or(any.memory_bytes),
        microbatches: args.microbatches.unwrap_or(any.microbatches),
        bandwidth_bytes_per_s: args.bandwidth.or(any.bandwidth_bytes_per_s),
        ..Limits::NEUTRAL
    };
    let asked = GalvatronSettings {
        layers,
        micro_batch: args.micro_batch.unwrap_or(1),
        sequence_length: args.sequence_length,
        link_bytes_per_s: args.tensor_bandwidth.unwrap_or(hardware.intra_node_link.value),
        limits,
    };
    let profile = GalvatronProfile { times: (&times.0, &times.1), memory: (&memory.0, &memory.1) };
    workload(&profile, &asked, &args.command_line())
}
