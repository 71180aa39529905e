//! Estimate as a table for people and as JSON for scripts.

use serde_json::{Map, Value, json};

use crate::{
    cli::{
        cost::CostArgs,
        report::{line, table},
    },
    family::training::{
        Estimate, Fits, Model, StageEstimate, TrainingSettings, remedy::Remedy, request::ResolvedRequest,
    },
    units,
};

/// Most changes that are named.
const MOST_REMEDIES: usize = 3;

/// Content of the report.
pub(in crate::cli) struct EstimateReport<'a> {
    pub(in crate::cli) model: &'a Model,
    pub(in crate::cli) resolved: &'a ResolvedRequest,
    pub(in crate::cli) estimate: &'a Estimate,
    pub(in crate::cli) cost: &'a CostArgs,
    /// Changes that would make the run fit.
    pub(in crate::cli) remedies: &'a [Remedy],
}

fn remedy_json(remedy: &Remedy) -> Value {
    json!({
        "flags": remedy.flags,
        "iteration_s": remedy.iteration_s,
        "memory_bytes": remedy.memory_bytes,
        "fits": remedy.fits.id(),
    })
}

impl EstimateReport<'_> {
    /// Document of schema `plantui.estimate/1`, as text.
    pub(super) fn json(&self) -> String {
        serde_json::to_string_pretty(&self.document()).unwrap_or_default() + "\n"
    }

    /// Document of schema `plantui.estimate/1`.
    pub(in crate::cli) fn document(&self) -> Value {
        let (estimate, run) = (self.estimate, &self.resolved.run);
        let layout = &run.layout;
        let settings: Map<String, Value> = TrainingSettings::NAMES
            .iter()
            .map(|(name, _)| {
                let text = run.settings.text(name);
                let value = match text.as_str() {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    _ if *name == "reserve" => json!(run.settings.reserve_bytes),
                    _ => text.parse::<u32>().map_or(Value::String(text), Value::from),
                };
                ((*name).to_string(), value)
            })
            .collect();
        let parts: Map<String, Value> =
            estimate.parts.iter().map(|(name, seconds)| ((*name).to_string(), json!(seconds))).collect();
        json!({
            "schema": "plantui.estimate/1",
            "model": {
                "name": self.model.name,
                "source": self.model.source,
                "parameters": self.model.parameters(),
                "active_parameters": self.model.active_parameters(),
                "layers": self.model.layers.len(),
            },
            "hardware": self.resolved.accelerator.id,
            "devices": self.resolved.devices,
            "parallel": {
                "tp": layout.tensor, "pp": layout.pipeline, "vp": layout.virtual_stages, "cp": layout.context,
                "ep": layout.expert, "etp": layout.expert_tensor, "dp": layout.data, "mbs": layout.micro_batch,
            },
            "global_batch": run.global_batch,
            "microbatches": run.microbatches(),
            "sequence_length": run.sequence,
            "precision": run.precision.id(),
            "recompute": run.recompute.to_string(),
            "stack": self.resolved.stack.id(),
            "settings": settings,
            "iteration_s": estimate.iteration_s,
            "cost": self.cost.of(estimate.tokens_per_s, self.resolved.devices),
            "simulated_s": estimate.simulated_s,
            "tokens_per_s": estimate.tokens_per_s,
            "tokens_per_s_per_device": estimate.tokens_per_s_per_device,
            "model_flops_per_s_per_device": estimate.model_flops_per_s_per_device,
            "mfu": estimate.mfu,
            "hfu": estimate.hfu,
            "bubble": estimate.bubble,
            "parts_s": parts,
            "memory_bytes": estimate.memory_bytes,
            "device_memory_bytes": estimate.limit_bytes,
            "stages": estimate.stages.iter().map(stage).collect::<Vec<_>>(),
            "fits": estimate.fits.id(),
            "would_fit": self.remedies.iter().map(remedy_json).collect::<Vec<_>>(),
            "trust": estimate.trust.class(),
            "differs": estimate.trust.differences(),
            "implausible": estimate.implausible,
            "assumptions": estimate.assumptions,
        })
    }

    /// Changes that would make the run fit, in a line; `None` if it fits.
    fn remedies_line(&self) -> Option<String> {
        if self.estimate.fits == Fits::Yes {
            return None;
        }
        let told = self
            .remedies
            .iter()
            .take(MOST_REMEDIES)
            .map(|remedy| format!("{} ({})", remedy.flags, units::seconds(remedy.iteration_s)));
        let told: Vec<String> = told.collect();
        let close = self.remedies.first().is_some_and(|remedy| remedy.fits == Fits::Close);
        Some(match told.is_empty() {
            true => "no single change makes it fit; `plantui plan` searches all layouts".into(),
            false => format!("fits{} with: {}", if close { " closely" } else { "" }, told.join(", or ")),
        })
    }

    /// Table for people.
    pub(super) fn table(&self) -> String {
        let (estimate, run, accelerator) = (self.estimate, &self.resolved.run, self.resolved.accelerator);
        let mut text = String::new();
        line(&mut text, format_args!("{}, {} parameters", self.model.name, billions(self.model.parameters() as f64)));
        line(
            &mut text,
            format_args!(
                "{} x {}, {}, global batch {}, {} tokens, {}, recompute {}, {}",
                self.resolved.devices,
                accelerator.id,
                run.layout,
                run.global_batch,
                run.sequence,
                run.precision.id(),
                run.recompute,
                self.resolved.stack.id()
            ),
        );
        let band = estimate.trust.class().map_or_else(String::new, |class| format!(" ±{}", units::percent(class.band)));
        let imbalance: f64 = estimate.parts.iter().filter(|part| part.0 == "imbalance").map(|part| part.1).sum();
        let imbalance = imbalance / estimate.iteration_s;
        line(
            &mut text,
            format_args!(
                "{}/iteration{band}   {:.0} tokens/s/device   {:.0} TFLOP/s/device   MFU {}   HFU {}   idle {} (bubble {}, \
                imbalance {})",
                units::seconds(estimate.iteration_s),
                estimate.tokens_per_s_per_device,
                estimate.model_flops_per_s_per_device / 1e12,
                units::percent(estimate.mfu),
                units::percent(estimate.hfu),
                units::percent(estimate.bubble + imbalance),
                units::percent(estimate.bubble),
                units::percent(imbalance)
            ),
        );
        let (whole, limit) = (estimate.memory_bytes + run.settings.reserve_bytes, estimate.limit_bytes);
        line(
            &mut text,
            format_args!(
                "memory: {} and {} reserved, {} of {}: fits: {}",
                units::bytes_beside(estimate.memory_bytes, limit),
                units::bytes_exact(run.settings.reserve_bytes),
                units::percent(whole / limit),
                units::bytes_exact(limit),
                estimate.fits.with_excess(whole, limit)
            ),
        );
        if let Some(remedies) = self.remedies_line() {
            line(&mut text, format_args!("{remedies}"));
        }
        line(&mut text, format_args!("trust: {}", estimate.trust.summary()));
        if let Some(cost) = self.cost.line(estimate.tokens_per_s, self.resolved.devices) {
            line(&mut text, format_args!("{cost}"));
        }
        if let Some(implausible) = &estimate.implausible {
            line(&mut text, format_args!("{implausible}"));
        }
        text.push('\n');
        let mut rows = vec![["part", "time", "share"].map(String::from).to_vec()];
        for (name, seconds) in estimate.parts.iter().filter(|(_, seconds)| *seconds > 0.0) {
            let share = units::percent(seconds / estimate.iteration_s);
            rows.push(vec![name.replace('_', " "), units::seconds(*seconds), share]);
        }
        table(&mut text, &rows);
        text.push('\n');
        self.stage_table(&mut text);
        text.push('\n');
        for assumption in &estimate.assumptions {
            line(&mut text, format_args!("assumed: {assumption}"));
        }
        text
    }

    fn stage_table(&self, text: &mut String) {
        let head = [
            "stage",
            "layers",
            "forward",
            "backward",
            "in flight",
            "memory",
            "weights",
            "gradients",
            "optimizer",
            "activations",
            "work",
        ];
        let mut rows = vec![head.map(String::from).to_vec()];
        for (index, stage) in self.estimate.stages.iter().enumerate() {
            let held = &stage.memory;
            let mut row = vec![
                (index + 1).to_string(),
                stage.layers.to_string(),
                units::seconds(stage.forward_s),
                units::seconds(stage.backward_s),
                units::number(stage.in_flight),
            ];
            let parts = [held.total(), held.weights, held.gradients, held.optimizer, held.activations, held.work];
            row.extend(parts.map(|bytes| units::bytes_beside(bytes, self.resolved.accelerator.memory_bytes)));
            rows.push(row);
        }
        table(text, &rows);
    }
}

fn stage(stage: &StageEstimate) -> Value {
    let held = &stage.memory;
    json!({
        "layers": stage.layers,
        "forward_s": stage.forward_s,
        "backward_s": stage.backward_s,
        "in_flight": stage.in_flight,
        "memory_bytes": held.total(),
        "memory": {
            "weights_bytes": held.weights,
            "gradients_bytes": held.gradients,
            "optimizer_bytes": held.optimizer,
            "activations_bytes": held.activations,
            "work_bytes": held.work,
        },
    })
}

/// Number of parameters in a short form.
fn billions(parameters: f64) -> String {
    if parameters >= 1e9 { format!("{:.2} G", parameters / 1e9) } else { format!("{:.1} M", parameters / 1e6) }
}
