//! Numbers of a configuration under the names of all engines: degrees, replicas, batch, precision.

use super::{
    configuration::{TENSOR, number},
    facts::JobFacts,
};
use plantui_core::{
    cluster::{MOST_DEVICES, MOST_MICROBATCHES},
    source::LoadError,
    workload::recipe::Precision,
};

/// Facts, and the name of their file for messages.
pub(super) struct FactReader<'a> {
    pub(super) facts: &'a JobFacts,
    pub(super) source: &'a str,
}

impl FactReader<'_> {
    pub(super) fn count(&self, names: &[&str]) -> Result<Option<u32>, LoadError> {
        let Some(value) = number(self.facts, names, self.source)? else { return Ok(None) };
        match u32::try_from(value) {
            Ok(value) if (1..=MOST_MICROBATCHES).contains(&value) => Ok(Some(value)),
            _ => {
                let problem = format!("is {value}, must be from 1 to {MOST_MICROBATCHES}");
                Err(LoadError::at(
                    self.source,
                    self.facts.any(names).map(|(name, _)| name).unwrap_or_default(),
                    problem,
                    "",
                ))
            }
        }
    }

    pub(super) fn degree(&self, names: &[&str]) -> Result<Option<u32>, LoadError> {
        // Galvatron writes a degree for every layer.
        if let Some(list) = self.facts.get("tp_sizes_enc").filter(|_| names == TENSOR) {
            let mut degrees: Vec<&str> = list.split(',').map(str::trim).collect();
            degrees.dedup();
            let [one] = degrees[..] else {
                return Err(LoadError::at(
                    self.source,
                    "tp_sizes_enc",
                    "gives layers different tensor degrees",
                    "a stage here has one; give every layer the same",
                ));
            };
            return Ok(one.parse().ok());
        }
        let degree = self.count(names)?;
        match degree {
            Some(degree) if degree > MOST_DEVICES => {
                Err(LoadError::at(self.source, names[0], format!("is {degree}, more than {MOST_DEVICES}"), ""))
            }
            other => Ok(other),
        }
    }

    /// Refuses context and expert parallelism, which no stage of a plan can express.
    pub(super) fn refuse_what_no_plan_holds(&self) -> Result<(), LoadError> {
        for name in
            ["context_parallel_size", "context_parallel_degree", "expert_model_parallel_size", "expert_parallel_degree"]
        {
            if let Some(degree) = self.count(&[name])?.filter(|&degree| degree > 1) {
                let repair = "`plantui estimate` predicts such runs (--parallel cp=.., ep=..)";
                return Err(LoadError::at(
                    self.source,
                    name,
                    format!("is {degree}: stages of this workload split neither the sequence nor experts"),
                    repair,
                ));
            }
        }
        Ok(())
    }

    /// Number of replicas, derived from the ranks.
    pub(super) fn replicas(
        &self,
        parts: u32,
        devices: Option<u32>,
        stated: Option<u32>,
        notes: &mut Vec<String>,
    ) -> Result<u32, LoadError> {
        if let Some(replicas) = self.count(&["data_parallel_size"])? {
            return Ok(replicas);
        }
        let shards = self.count(&["data_parallel_shard_degree"])?;
        let copies = self.count(&["data_parallel_replicate_degree"])?;
        // Values that a script computes or requests from its scheduler are unknown.
        let known = |names: &[&str]| self.count(names).unwrap_or(None);
        let machines = known(&["nnodes", "num_nodes", "num_machines"]);
        let each = known(&["nproc_per_node", "gpus_per_node", "ntasks_per_node"]);
        let world = devices
            .or(known(&["world_size", "num_processes"]))
            .or(stated)
            .or(each.map(|each| each.saturating_mul(machines.unwrap_or(1))));
        match (world, shards) {
            (Some(world), _) if world.is_multiple_of(parts) => Ok(world / parts),
            (Some(world), _) => {
                let problem = format!("runs on {world} devices, not a multiple of the {parts} of one replica");
                Err(LoadError::file(self.source, problem, "give their number with --devices"))
            }
            (None, Some(shards)) => Ok(shards.saturating_mul(copies.unwrap_or(1))),
            (None, None) => {
                notes.push(format!(
                    "the number of devices is not stated: {parts}, one replica, are assumed; --devices sets another"
                ));
                Ok(1)
            }
        }
    }

    /// Sequences per microbatch, and microbatches per iteration over all replicas.
    pub(super) fn batch(&self, data: u32, notes: &mut Vec<String>) -> Result<(u32, u32), LoadError> {
        let micro = self.count(&[
            "micro_batch_size",
            "train_micro_batch_size_per_gpu",
            "pipeline_parallel_microbatch_size",
            "per_device_train_batch_size",
        ])?;
        let steps = self.count(&["gradient_accumulation_steps", "megatron_lm_num_micro_batches", "n_microbatches"])?;
        let chunks = self.count(&["chunks"])?;
        let local = self.count(&["local_batch_size"])?;
        let global = self.count(&["global_batch_size", "train_batch_size", "global_bsz"])?;
        let micro = match (micro, global, chunks) {
            (Some(micro), _, _) => micro,
            (None, Some(global), Some(chunks)) => (global / chunks.saturating_mul(data).max(1)).max(1),
            _ => {
                notes.push("the microbatch is not stated: one sequence is assumed".into());
                1
            }
        };
        let each = |count: u32| count.saturating_mul(data);
        let microbatches = match (global, local, steps.or(chunks)) {
            (Some(global), _, _) => {
                let all = micro.saturating_mul(data);
                if !global.is_multiple_of(all) {
                    let problem = format!(
                        "has a batch of {global}, not a multiple of {micro} sequences on each of {data} \
                            replicas"
                    );
                    return Err(LoadError::file(self.source, problem, "correct one of the three"));
                }
                global / micro
            }
            (None, Some(local), _) => each((local / micro).max(1)),
            (None, None, Some(steps)) => each(steps),
            (None, None, None) => {
                notes.push("the batch is not stated: one microbatch per replica is assumed".into());
                data
            }
        };
        Ok((micro, microbatches.min(MOST_MICROBATCHES)))
    }

    pub(super) fn precision(&self) -> Option<Precision> {
        let set = |name: &str| self.facts.is_set(name) || self.facts.is_set(&format!("{name}.enabled"));
        let word =
            self.facts.any(&["mixed_precision_param", "mixed_precision"]).map(|(_, value)| value.to_ascii_lowercase());
        match word.as_deref() {
            _ if set("bf16") => Some(Precision::Bf16),
            _ if set("fp16") => Some(Precision::Fp16),
            Some("bf16" | "bfloat16") => Some(Precision::Bf16),
            Some("fp16" | "float16") => Some(Precision::Fp16),
            Some("no" | "float32") => Some(Precision::Fp32),
            _ => None,
        }
    }
}
