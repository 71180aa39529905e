//! Dials of a model to be trained: hardware, software, sequence length, precision, division of the state over replicas,
//! offload, adapters, reserved memory.

use super::{platform, request};
use crate::workload::training::{
    hardware::{self, Accelerator},
    run::{Stack, TrainingPrecision},
};
use crate::{
    cluster::LimitKind,
    family::dial::{Dial, DialError},
    units::{self, GIB},
    workload::{Profile, TrainingProfile, Workload, training::Constants},
};

/// Maximum sequence length.
const MOST_TOKENS: u64 = 1 << 24;
/// Maximum reserved memory of a device.
const MOST_RESERVE: f64 = 1024.0 * GIB;

const HARDWARE: &str = "hardware";
const SEQUENCE: &str = "sequence-length";
const PRECISION: &str = "precision";
const STACK: &str = "stack";
const SHARDING: &str = "sharding";
const OFFLOAD: &str = "offload";
const ADAPTER: &str = "adapter";
const RESERVE: &str = "reserve";

/// Parts of the state that replicas divide, by ZeRO stage.
const SHARDED: [&str; 4] = ["none", "zero1", "zero2", "zero3"];
/// State in the host's memory: none, the optimizer's, or that and the weights.
const OFFLOADED: [&str; 3] = ["none", "optimizer", "weights"];
/// Adapters in place of training all weights, by the usual rank.
const ADAPTERS: [&str; 3] = ["none", "lora", "qlora"];

/// Dials of a profile.
pub(super) fn dials(profile: &TrainingProfile) -> Vec<Dial> {
    let ids: Vec<&'static str> = hardware::all().iter().map(|accelerator| accelerator.id).collect();
    let precisions: Vec<&'static str> =
        TrainingPrecision::ALL.into_iter().filter(|own| has(profile, *own)).map(TrainingPrecision::id).collect();
    let tokens = profile.sequence;
    let next =
        |factor: u64| [(tokens / factor).max(1), (tokens * factor).min(MOST_TOKENS)].map(|tokens| tokens.to_string());
    let stacks = Stack::ALL.map(Stack::id);
    let settings = &profile.settings;
    let sharding = SHARDED[settings.zero() as usize % SHARDED.len()];
    let offload = OFFLOADED[usize::from(settings.optimizer_offload) + usize::from(settings.parameter_offload)];
    let adapter = now_adapter(profile);
    let reserve = settings.reserve_bytes;
    let kept = |gib: f64| [reserve - gib * GIB, reserve + gib * GIB].map(|bytes| size(bytes.clamp(0.0, MOST_RESERVE)));
    vec![
        Dial {
            id: HARDWARE,
            label: "hardware".into(),
            help: "the accelerator: its speed, memory and links",
            value: profile.accelerator.id.into(),
            steps: around(&ids, profile.accelerator.id),
        },
        Dial {
            id: SEQUENCE,
            label: "sequence".into(),
            help: "tokens in a sequence",
            value: tokens.to_string(),
            steps: [next(2), next(4)],
        },
        Dial {
            id: PRECISION,
            label: "precision".into(),
            help: "number format of matrix products, of those that the hardware supports",
            value: profile.precision.id().into(),
            steps: around(&precisions, profile.precision.id()),
        },
        Dial {
            id: STACK,
            label: "software".into(),
            help: "training software; sets the defaults of its settings",
            value: profile.stack.id().into(),
            steps: around(&stacks, profile.stack.id()),
        },
        Dial {
            id: SHARDING,
            label: "sharding".into(),
            help: "what replicas divide: zero1 state, zero2 gradients too, zero3 weights too",
            value: sharding.into(),
            steps: around(&SHARDED, sharding),
        },
        Dial {
            id: OFFLOAD,
            label: "offload".into(),
            help: "kept in the host's memory: the optimizer's state, or weights too (zero3)",
            value: offload.into(),
            steps: around(&OFFLOADED[..if settings.fsdp { 3 } else { 2 }], offload),
        },
        Dial {
            id: ADAPTER,
            label: "adapter".into(),
            help: "adapters are trained, not all weights; qlora keeps those in 4 bits",
            value: adapter.into(),
            steps: around(&ADAPTERS, adapter),
        },
        Dial {
            id: RESERVE,
            label: "kept free".into(),
            help: "memory per device kept free for the allocator, NCCL and the context",
            value: size(reserve),
            steps: [kept(1.0), kept(4.0)],
        },
    ]
}

/// Sets a dial of the workload.
///
/// # Errors
/// [`DialError`] with the allowed values.
pub(super) fn turned(workload: &Workload, id: &str, value: &str) -> Result<Workload, DialError> {
    let mut workload = workload.clone();
    let Profile::Training(profile) = &mut workload.profile else {
        return Err(DialError(format!("{} is not a model to be trained", workload.name)));
    };
    let value = value.trim();
    match id {
        HARDWARE => {
            let wanted = request::accelerator(value).map_err(DialError)?;
            // Selecting the current hardware keeps the figures of the file's own hardware.
            if wanted.id != profile.accelerator.id {
                // The network above the machines is the cluster's.
                let fabric = wanted.fabric.or(profile.accelerator.fabric);
                let wanted = Accelerator { fabric, ..wanted };
                profile.move_to(wanted, profile.stack);
                profile.constants = Constants::shipped(wanted.generation, profile.stack);
                if profile.precision == TrainingPrecision::Bf16 {
                    profile.precision = wanted.usual_precision();
                }
                // The remarks described replaced links and constants.
                profile.remarks.clear();
                profile.remarks.extend(fabric.map(|fabric| fabric.told()));
                workload.limits.set(LimitKind::Memory, Some(wanted.memory_bytes));
            }
        }
        SEQUENCE => {
            let tokens = units::parse_count(value).map(u64::from).map_err(|error| DialError(error.to_string()))?;
            if !(1..=MOST_TOKENS).contains(&tokens) {
                return Err(DialError(format!("{tokens} tokens are not from 1 to {MOST_TOKENS}")));
            }
            profile.sequence = tokens;
        }
        PRECISION => {
            let ids = TrainingPrecision::ALL.map(TrainingPrecision::id).join(", ");
            let unknown = || DialError(format!("is `{}`, must be {ids}", crate::text::printable(value)));
            profile.precision = TrainingPrecision::find(value).ok_or_else(unknown)?;
        }
        STACK => return platform::on_stack(&workload, value),
        SHARDING => {
            let stage = one_of(&SHARDED, value)?;
            profile.settings.set("zero", &stage.to_string()).map_err(DialError)?;
        }
        OFFLOAD => {
            let away = one_of(&OFFLOADED, value)?;
            if away > 1 && !profile.settings.fsdp {
                return Err(DialError("weights go to the host's memory with zero3 alone".into()));
            }
            profile.settings.optimizer_offload = away > 0;
            profile.settings.parameter_offload = away > 1;
        }
        ADAPTER => {
            one_of(&ADAPTERS, value)?;
            // Selecting the current kind keeps its rank and targets.
            if value != now_adapter(profile) {
                profile.settings.set("adapter", value).map_err(DialError)?;
            }
        }
        RESERVE => profile.settings.set("reserve", value).map_err(DialError)?,
        _ => return Err(DialError(format!("there is no setting `{}`", crate::text::printable(id)))),
    }
    Ok(workload)
}

/// Place of a value in a list of values.
fn one_of(values: &[&str], value: &str) -> Result<usize, DialError> {
    let unknown = || DialError(format!("is `{}`, must be {}", crate::text::printable(value), values.join(", ")));
    values.iter().position(|own| *own == value).ok_or_else(unknown)
}

/// Adapters of a profile, as the dial names them.
fn now_adapter(profile: &TrainingProfile) -> &'static str {
    profile.settings.adapter.map_or(ADAPTERS[0], |adapter| ADAPTERS[1 + usize::from(adapter.quantised)])
}

/// True if the hardware supports products in this precision.
fn has(profile: &TrainingProfile, precision: TrainingPrecision) -> bool {
    match precision.bits() {
        16 | 32 => true,
        8 => profile.accelerator.peak_8.is_some(),
        _ => profile.accelerator.peak_4.is_some(),
    }
}

/// Previous and next of a cyclic list. A large step equals a small one.
fn around(all: &[&'static str], now: &str) -> [[String; 2]; 2] {
    let count = all.len().max(1);
    let at = all.iter().position(|own| *own == now).unwrap_or(0);
    let of = |at: usize| all.get(at % count).map_or_else(|| now.to_string(), ToString::to_string);
    let both = [of(at + count - 1), of(at + 1)];
    [both.clone(), both]
}

fn size(bytes: f64) -> String {
    units::bytes_exact(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{family::dial, workload::training::published};

    fn model() -> Workload {
        let model = published::find("llama-3-8b").expect("it is published");
        let profile = TrainingProfile::new(model, hardware::find("h100").expect("it is known"));
        profile.into_workload("llama", "llama", crate::workload::WorkloadFormat::Training, None)
    }

    #[test]
    fn every_step_of_every_dial_can_be_taken_and_is_what_is_then_shown() {
        let model = model();
        for dial in dial::dials(&model) {
            for (up, large) in [(false, false), (true, false), (false, true), (true, true)] {
                let wanted = dial.step(up, large);
                let turned =
                    dial::turned(&model, dial.id, wanted).unwrap_or_else(|error| panic!("{}: {error}", dial.id));
                let shown = dial::dials(&turned).into_iter().find(|own| own.id == dial.id).expect("it is there");
                assert_eq!(shown.value, wanted, "{}", dial.id);
            }
            assert_eq!(dial::turned(&model, dial.id, &dial.value), Ok(model.clone()), "{}", dial.id);
            assert!(dial::turned(&model, dial.id, "neither").is_err(), "{}", dial.id);
        }
    }

    #[test]
    fn another_accelerator_brings_its_memory_and_its_number_formats() {
        let ampere = dial::turned(&model(), HARDWARE, "a100-40").expect("it is known");
        assert_eq!(ampere.limits.memory_bytes(), Some(40.0 * GIB));
        let mut calibrated = model();
        if let Profile::Training(profile) = &mut calibrated.profile {
            profile.remarks.push("calibrated on 3 runs".into());
        }
        let remarks = |workload: &Workload| workload.training().map(|profile| profile.remarks.len());
        let other = dial::turned(&calibrated, HARDWARE, "a100-80").expect("it is known");
        assert_eq!(remarks(&other), Some(0), "its constants are the shipped ones");
        let same = dial::turned(&calibrated, HARDWARE, "h100").expect("it is known");
        assert_eq!(remarks(&same), Some(1));
        let precision = dial::dials(&ampere).into_iter().find(|own| own.id == PRECISION).expect("it is there");
        assert!(
            precision.steps.iter().flatten().all(|id| ["fp32", "bf16", "fp16"].contains(&id.as_str())),
            "{precision:?}"
        );
    }
}
