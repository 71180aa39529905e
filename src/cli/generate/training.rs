//! `plantui generate MODEL --as training`: generates the model with its training settings, not a profile of times.

use clap::ValueEnum;

use super::{
    GenerateArgs, MAX_CONFIG_BYTES,
    stack::{PUBLISHED, TRAINED_HARDWARE},
};
use crate::{
    cli::input,
    cluster::{GivenLimits, LimitKind, Limits},
    generate::{self, GenerateError, TrainedSettings, operators::OperatorNetwork},
    source::error::printable,
    workload::{
        Provenance, WorkloadFormat,
        convert::text,
        formats::{detect, file},
        training::{Model, Stack, TrainingProfile, from_hugging_face, hardware, published},
    },
};

/// What is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AsArg {
    /// A profile of times and memory by tensor degree, which Piper and others plan
    Profile,
    /// The model with its hardware, software and constants (plantui.training/1), whose configuration is planned
    Training,
}

/// Text of the file.
pub(super) fn run(args: &GenerateArgs) -> Result<String, GenerateError> {
    let only = GenerateArgs {
        hardware: args.hardware.clone(),
        sequence_length: args.sequence_length,
        devices: args.devices,
        memory: args.memory,
        global_batch: args.global_batch,
        form: args.form,
        stack: args.stack.clone(),
        ..GenerateArgs::of(&args.model)
    };
    if args.command_line() != only.command_line() {
        let problem =
            "training takes --stack, --hardware, --sequence-length, --devices, --memory and --global-batch; the \
            other settings belong to profiles"
                .into();
        return Err(GenerateError::Setting { flag: "--as", problem });
    }
    let profile = trained(args, model(&args.model)?)?;
    let name = profile.model.name.clone();
    let mut workload = profile.into_workload(&name, &args.model, WorkloadFormat::Training, args.global_batch);
    let given = GivenLimits::default().maybe(LimitKind::Devices, args.devices).maybe(LimitKind::Memory, args.memory);
    workload.limits = given.or(&workload.limits);
    workload.provenance = Some(Provenance {
        made_by: args.command_line(),
        assumptions: vec![
            "constants are those fitted on published runs (docs/src/background/truth.md); `plantui calibrate` fits them to yours"
                .into(),
        ],
    });
    Ok(text(&workload))
}

/// Text of a profile by tensor degree with the times of real training.
pub(super) fn profile(args: &GenerateArgs) -> Result<String, GenerateError> {
    let only = GenerateArgs {
        stack: args.stack.clone(),
        hardware: args.hardware.clone(),
        sequence_length: args.sequence_length,
        micro_batch: args.micro_batch,
        tensor_degrees: args.tensor_degrees.clone(),
        devices: args.devices,
        memory: args.memory,
        microbatches: args.microbatches,
        bandwidth: args.bandwidth,
        form: args.form,
        ..GenerateArgs::of(&args.model)
    };
    if args.command_line() != only.command_line() {
        let problem =
            "the stacks of real training take --hardware, --sequence-length, --micro-batch, --tensor-degrees and \
            limits; the other settings belong to piper-2021"
                .into();
        return Err(GenerateError::Setting { flag: "--stack", problem });
    }
    let profile = trained(args, model(&args.model)?)?;
    let usual = TrainedSettings::usual(&profile);
    let settings = TrainedSettings {
        micro_batch: args.micro_batch.unwrap_or(usual.micro_batch),
        tensor_degrees: args.tensor_degrees.clone(),
        limits: Limits {
            devices: args.devices.unwrap_or(usual.limits.devices),
            memory_bytes: args.memory.or(usual.limits.memory_bytes),
            microbatches: args.microbatches.unwrap_or(usual.limits.microbatches),
            bandwidth_bytes_per_s: args.bandwidth.or(usual.limits.bandwidth_bytes_per_s),
            ..usual.limits
        },
        ..usual
    };
    generate::trained(&profile, &settings, &args.command_line())
}

/// Training profile that gives the operators' times.
pub(super) fn of_operators(args: &GenerateArgs, network: &OperatorNetwork) -> Result<TrainingProfile, GenerateError> {
    match network {
        OperatorNetwork::Transformer(config) => trained(args, Model::from(config)),
        OperatorNetwork::Cnn(_) => {
            let problem = "the constants of real training hold for transformers only; leave it out".into();
            Err(GenerateError::Setting { flag: "--stack", problem })
        }
    }
}

/// Model on its hardware with its software.
fn trained(args: &GenerateArgs, model: Model) -> Result<TrainingProfile, GenerateError> {
    let id = args.hardware.as_deref().unwrap_or(TRAINED_HARDWARE);
    let Some(accelerator) = hardware::find(id) else {
        let known: Vec<&str> = hardware::all().iter().map(|accelerator| accelerator.id).collect();
        let problem = format!(
            "`{}` has no training constants; {} have them. --stack {PUBLISHED} uses its data sheet alone",
            printable(id),
            known.join(", ")
        );
        return Err(GenerateError::Setting { flag: "--hardware", problem });
    };
    let mut profile = TrainingProfile::new(model, accelerator);
    if let Some(id) = &args.stack {
        let Some(stack) = Stack::find(id) else {
            let known = Stack::ALL.map(Stack::id).join(", ");
            let problem = format!("there is no stack `{}`; there are {}, {known}", printable(id), PUBLISHED);
            return Err(GenerateError::Setting { flag: "--stack", problem });
        };
        profile.move_to(profile.accelerator, stack);
        profile.settings = stack.settings();
    }
    if let Some(tokens) = args.sequence_length {
        profile.sequence = tokens.into();
    }
    Ok(profile)
}

fn model(name: &str) -> Result<Model, GenerateError> {
    let path = std::path::Path::new(name);
    if name != input::STANDARD_INPUT && !path.exists() {
        return published::find(name).ok_or_else(|| super::unknown_model(&printable(name)));
    }
    let bytes = match name {
        input::STANDARD_INPUT => file::limited(crate::streams::input(), name, MAX_CONFIG_BYTES)?,
        _ => file::read_at_most(path, MAX_CONFIG_BYTES)?,
    };
    let shown = printable(name);
    Ok(from_hugging_face(detect::text(&bytes, &shown, &detect::CONFIGURATION)?, &shown)?)
}
