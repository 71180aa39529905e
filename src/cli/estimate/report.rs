//! Estimate as a table.

use super::document::EstimateDocument;
use crate::{
    cli::{
        cost::CostArgs,
        report::{line, table},
    },
    family::training::{Estimate, Fits, Model, remedy::Remedy, request::ResolvedRequest},
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

impl EstimateReport<'_> {
    /// Document of schema `plantui.estimate/1`.
    pub(in crate::cli) fn document(&self) -> EstimateDocument {
        let cost = self.cost.of(self.estimate.tokens_per_s, self.resolved.devices);
        EstimateDocument::new((self.model, self.resolved), self.estimate, cost, self.remedies)
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

/// Number of parameters in a short form.
fn billions(parameters: f64) -> String {
    if parameters >= 1e9 { format!("{:.2} G", parameters / 1e9) } else { format!("{:.1} M", parameters / 1e6) }
}
