//! Readers of the formats, and what launchers tell about the devices.

pub(crate) mod accelerate;
pub(crate) mod axolotl;
pub(crate) mod deepspeed;
mod fsdp;
pub(crate) mod galvatron;
pub(crate) mod hugging_face;
pub(crate) mod llama_factory;
pub(crate) mod maxtext;
pub(crate) mod megatron;
pub(crate) mod megatron_bridge;
mod names;
pub(crate) mod nanotron;
pub(crate) mod nemo;
pub(crate) mod neox;
pub(crate) mod swift;
pub(crate) mod torch;
pub(crate) mod torchtitan;
pub(crate) mod verl;
mod zero;

use plantui_core::source::LoadError;

use super::{
    job::Draft,
    launch::Launch,
    setting::{Fact, Settings},
};

/// Devices that a launcher gives a program.
pub(crate) fn launched(launch: &Launch, draft: &mut Draft<'_>) -> Result<(), LoadError> {
    if draft.facts.contains_key("devices") || draft.per_machine.is_some() {
        return Ok(());
    }
    let options = &launch.options;
    let found = devices(launch, options);
    match found {
        Ok(Some(Devices::All(count))) => draft.set("devices", count),
        Ok(Some(Devices::Machines(machines, each))) => {
            draft.machines = machines;
            draft.per_machine = Some(each);
        }
        Ok(None) => {}
        // Known only to those who run it; a batch may still tell.
        Err(error) => {
            let repair = "give the number with --devices".to_string();
            draft.unknown_devices = Some(LoadError { repair, ..error });
        }
    }
    Ok(())
}

enum Devices {
    All(Fact<u64>),
    Machines(Option<Fact<u64>>, Fact<u64>),
}

fn devices(launch: &Launch, options: &Settings) -> Result<Option<Devices>, LoadError> {
    let has = |name: &str| launch.launchers.iter().any(|launcher| launcher.starts_with(name));
    if has("torchrun") || has("torch.distributed") || options.has("nproc_per_node") || options.has("nproc") {
        let each = match options.look("nproc_per_node").map(|setting| setting.value.text()).as_deref() {
            Some("gpu" | "auto") => of_batch(options)?,
            _ => options.count("nproc_per_node")?,
        };
        let machines = options.count("nnodes")?;
        // torchrun's default is one process.
        let Some(each) = each.or(machines.as_ref().map(|machines| machines.with(1))) else { return Ok(None) };
        return Ok(Some(Devices::Machines(machines, each)));
    }
    if (has("accelerate") || options.has("num_processes"))
        && let Some(all) = options.count("num_processes")?
    {
        return Ok(Some(Devices::All(all)));
    }
    if has("deepspeed") {
        let each = options.count("num_gpus")?.or(visible(options));
        let machines = options.count("num_nodes")?;
        return Ok(each.map(|each| Devices::Machines(machines, each)));
    }
    if let Some(each) = options.count("env.NPROC_PER_NODE".to_lowercase().as_str())? {
        return Ok(Some(Devices::Machines(options.count("env.nnodes")?, each)));
    }
    if has("srun") || has("mpirun") {
        let all = options.count_of(&["ntasks", "np"])?.or(options.count("sbatch.ntasks")?);
        let machines = options.count_of(&["nodes", "sbatch.nodes"])?;
        if let Some(all) = all {
            return Ok(Some(Devices::All(all)));
        }
        let tasks = options.count_of(&["ntasks_per_node", "sbatch.ntasks_per_node"])?.filter(|fact| fact.value > 1);
        let each = match tasks {
            Some(tasks) => Some(tasks),
            None => of_batch(options)?,
        };
        return Ok(each.map(|each| Devices::Machines(machines, each)));
    }
    Ok(visible(options).map(|each| Devices::Machines(None, each)))
}

/// Devices of a machine, as a batch system is asked for them.
fn of_batch(options: &Settings) -> Result<Option<Fact<u64>>, LoadError> {
    for name in ["gpus_per_node", "sbatch.gpus_per_node", "gres", "sbatch.gres"] {
        // `gpu:8`, `gpu:a100:8`, `8`
        if let Some(fact) = options.text(name)? {
            let digits = fact.value.rsplit(':').next().unwrap_or_default();
            if let Ok(count) = digits.trim().parse() {
                return Ok(Some(fact.with(count)));
            }
        }
    }
    Ok(None)
}

/// Devices that `CUDA_VISIBLE_DEVICES` lists.
fn visible(options: &Settings) -> Option<Fact<u64>> {
    let setting = options.take("env.cuda_visible_devices")?;
    let text = setting.value.text();
    let count = text.split(',').filter(|part| part.trim().parse::<u32>().is_ok()).count() as u64;
    (count > 0).then(|| Fact { value: count, place: setting.place.clone() })
}

/// Fact that a flag is set.
pub(crate) fn set_to<T>(fact: &Fact<bool>, value: T) -> Fact<T> {
    fact.with(value)
}
