//! Domain of a measured error: the runs for which it holds.
//!
//! An error was measured on runs of one software, device and precision, within ranges of sizes. A run that differs in
//! any of them has no measured error; the differences are listed instead. `O(kinds of layers)` time.

use crate::{
    family::training::layer::RunRates,
    units,
    workload::training::{
        constants::Constants,
        expert_settings::Imbalance,
        hardware::Accelerator,
        model::{FeedForward, Model},
        run::{AttentionKernel, ContextStyle, Stack, TrainingRun},
    },
};

/// Runs on which an error was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Domain {
    /// Software stacks.
    pub stacks: &'static [Stack],
    /// True if only the shipped settings of the software were measured.
    pub as_shipped: bool,
    /// Ids of the devices, each with its power in watts.
    pub hardware: &'static [(&'static str, f64)],
    /// Bits of an operand of a product.
    pub bits: &'static [u32],
    /// True if weights were divided over replicas.
    pub fsdp: bool,
    /// True if the models were mixtures of experts.
    pub experts: bool,
    /// True if the software's release is named, `false` if not; `None` if either holds.
    pub release: Option<bool>,
    /// True if adapters were trained, not all weights.
    pub adapters: bool,
    /// True if widths were measured that are no multiple of the tensor cores' block size.
    pub odd_widths: bool,
    /// Attention kernels.
    pub attention: &'static [AttentionKernel],
    /// True if the gradients of weights were delayed.
    pub zero_bubble: bool,
    /// Fewest and most parameters.
    pub parameters: [f64; 2],
    /// Shortest and longest sequence, tokens.
    pub sequence: [u64; 2],
    /// Fewest and most devices.
    pub devices: [u64; 2],
    /// Largest degrees: tensor, pipeline, context.
    pub degrees: [u32; 3],
}

/// Tolerance of a size outside the measured range, relative.
const NEAR: f64 = 0.1;
/// Tolerance of a link's bandwidth below that of the measured runs, relative.
const SLOWER: f64 = 0.2;
/// Block size of tensor cores, in elements.
const BLOCK: u64 = 64;

impl Domain {
    /// False if a run is of another kind than the measured ones, without the differences.
    pub(super) fn may_hold(&self, model: &Model, run: &TrainingRun, accelerator: &Accelerator) -> bool {
        self.experts == model.has_experts()
            && self.fsdp == run.settings.fsdp
            && self.stacks.contains(&run.stack)
            && self.hardware.iter().any(|(id, _)| *id == accelerator.id)
    }

    /// Differences between a run and the measured ones, a phrase each; empty if there are none.
    pub fn differences(
        &self,
        model: &Model,
        run: &TrainingRun,
        accelerator: &Accelerator,
        constants: &Constants,
    ) -> Vec<String> {
        let mut all = self.of_kind(model, run);
        all.extend(self.of_hardware(run, accelerator));
        if *constants != Constants::shipped(accelerator.generation, run.stack) {
            all.push("constants not fitted on published runs".into());
        }
        all.extend(self.of_sizes(model, run));
        all.extend(slow_links(model, run, accelerator, constants));
        all
    }

    /// Differences in the kind of model, software and precision.
    fn of_kind(&self, model: &Model, run: &TrainingRun) -> Vec<String> {
        let mut all = vec![];
        if !model.is_decoder() {
            all.push("a model other than a decoder".to_string());
        }
        if model.kinds.iter().any(|kind| kind.mixer.is_some()) {
            all.push("layers with a state, linear attention or convolutions".into());
        }
        if model.has_experts() != self.experts {
            all.push(if self.experts { "a dense model" } else { "a mixture of experts" }.into());
        }
        if !self.bits.contains(&run.precision.bits()) {
            let known: Vec<String> = self.bits.iter().map(ToString::to_string).collect();
            all.push(format!("matrix products in {}, not in {} bits", run.precision.id(), known.join(" or ")));
        }
        if run.settings.fsdp != self.fsdp {
            all.push(if self.fsdp { "no FSDP" } else { "FSDP" }.into());
        }
        if self.release.is_some_and(|named| named != run.settings.release.is_some()) {
            all.push(run.settings.release.map_or("no release".into(), |own| format!("release {own}")));
        }
        if let Some(release) = run.settings.release.filter(|own| self.release == Some(true) && !own.is_published()) {
            all.push(format!("release {release}, not 25.09 to 26.08"));
        }
        if run.settings.adapter.is_some() != self.adapters {
            all.push(run.settings.adapter.map_or("no adapters".into(), |adapter| format!("adapters ({adapter})")));
        }
        if run.zero_bubble.is_some() != self.zero_bubble {
            all.push(run.zero_bubble.map_or("no zero-bubble schedule".into(), |own| format!("schedule {}", own.id())));
        }
        if !self.stacks.contains(&run.stack) {
            let known: Vec<&str> = self.stacks.iter().map(|stack| stack.id()).collect();
            all.push(format!("the software {}, not {}", run.stack.id(), known.join(" or ")));
        }
        if !self.attention.contains(&run.settings.attention) {
            all.push(format!("attention={}", run.settings.text("attention")));
        }
        all.extend(unmeasured(model, run));
        let shipped = run.stack.settings();
        if self.as_shipped && self.stacks.contains(&run.stack) {
            // Settings that change the time of this run.
            let (layout, own) = (&run.layout, &run.settings);
            let heard = [
                ("sequence_parallel", layout.tensor > 1),
                ("tp_overlap", layout.tensor > 1),
                ("dp_overlap", layout.data * layout.context > 1),
                ("distributed_optimizer", layout.data * layout.context > 1),
                ("fused_cross_entropy", true),
                ("vocab_parallel_loss", layout.tensor > 1),
                ("fused_elementwise", true),
                ("context_style", layout.context > 1),
            ];
            let changed = heard.into_iter().filter(|(name, heard)| *heard && own.text(name) != shipped.text(name));
            all.extend(changed.map(|(name, _)| format!("{name}={}", own.text(name))));
        }
        all
    }

    fn of_hardware(&self, run: &TrainingRun, accelerator: &Accelerator) -> Vec<String> {
        let id = accelerator.id;
        let mut all = vec![];
        let of_kind: Vec<f64> =
            self.hardware.iter().filter(|(known, _)| *known == id).map(|(_, watts)| *watts).collect();
        if of_kind.is_empty() {
            let mut known: Vec<&str> = self.hardware.iter().map(|(known, _)| *known).collect();
            known.dedup();
            return vec![format!("{id}, not {}", known.join(" or "))];
        }
        if !of_kind.contains(&accelerator.watts) {
            let known: Vec<String> = of_kind.iter().map(|watts| format!("{watts} W")).collect();
            all.push(format!("{id} at {} W, not {}", accelerator.watts, known.join(" or ")));
        }
        let Some(preset) = super::super::hardware::find(id) else { return all };
        if accelerator.joined_by != preset.joined_by && run.layout.devices() > 1 {
            all.push(format!("devices joined by {}, not {}", accelerator.joined_by, preset.joined_by));
        }
        let own = Accelerator { inner_link: preset.inner_link, outer_link: preset.outer_link, ..*accelerator };
        let leaves = accelerator.fabric.filter(|own| u64::from(own.pod) < run.layout.devices());
        all.extend(leaves.map(|own| format!("devices in several pods of {}", own.pod)));
        let own = Accelerator { fabric: preset.fabric, ..own };
        let own = Accelerator { domain: preset.domain, joined_by: preset.joined_by, watts: preset.watts, ..own };
        // Torchtitan's devices have other memory.
        let own = Accelerator { memory_bandwidth: preset.memory_bandwidth, memory_bytes: preset.memory_bytes, ..own };
        if own != preset {
            all.push(format!("figures of {id} that differ from its data sheet"));
        }
        all
    }

    fn of_sizes(&self, model: &Model, run: &TrainingRun) -> Vec<String> {
        let mut all = vec![];
        let parameters = model.parameters() as f64;
        let [least, most] = self.parameters;
        if parameters < least * (1.0 - NEAR) || parameters > most * (1.0 + NEAR) {
            let [own, least, most] = [parameters, least, most].map(units::count_short);
            all.push(format!("{own} parameters, not {least} to {most}"));
        }
        let range = |what: &str, own: u64, [least, most]: [u64; 2]| {
            let known = if least == most { least.to_string() } else { format!("{least} to {most}") };
            (own < least || own > most).then(|| format!("{own} {what}, not {known}"))
        };
        all.extend(range("tokens", run.sequence, self.sequence));
        all.extend(range("devices", run.layout.devices(), self.devices));
        let layout = &run.layout;
        let degrees = [("tp", layout.tensor), ("pp", layout.pipeline), ("cp", layout.context)];
        for ((name, own), most) in degrees.into_iter().zip(self.degrees) {
            if own > most {
                all.push(format!("{name}={own}, not up to {most}"));
            }
        }
        if !self.odd_widths {
            all.extend(odd_width(model, run));
        }
        all
    }
}

/// Settings that no published run has. Recomputation is not among them: it repeats passes that were measured.
fn unmeasured(model: &Model, run: &TrainingRun) -> Vec<String> {
    let (own, shipped) = (&run.settings, run.stack.settings());
    let mut all: Vec<String> =
        ["shard_gradients", "hsdp", "optimizer_offload", "parameter_offload", "activation_offload"]
            .into_iter()
            .chain(["master_bytes", "moment_bytes"])
            .chain(model.has_experts().then_some("ep_overlap"))
            .filter(|name| own.text(name) != shipped.text(name))
            .map(|name| format!("{name}={}", own.text(name)))
            .collect();
    if model.has_experts() && own.imbalance != Imbalance::Balanced {
        all.push("experts with unequal loads".into());
    }
    if run.layout.expert_tensor > 1 {
        all.push(format!("etp={}", run.layout.expert_tensor));
    }
    if run.settings.adapter.is_some_and(|adapter| adapter.quantised) {
        all.push("weights in 4 bits".into());
    }
    all
}

/// Width of a product that is not a multiple of the tensor cores' block size.
fn odd_width(model: &Model, run: &TrainingRun) -> Option<String> {
    let t = u64::from(run.layout.tensor.max(1));
    let feed_forward = model.kinds.iter().map(|kind| match kind.feed_forward {
        FeedForward::Dense { width, .. } => width / t,
        FeedForward::Experts(experts) => experts.width,
    });
    let mut widths = feed_forward.chain([model.hidden]);
    let odd = widths.find(|width| !width.is_multiple_of(BLOCK))?;
    Some(format!("matrix products of width {odd}, not a multiple of {BLOCK}"))
}

/// Kind of group with the slowest links compared with the hardware's own.
fn slow_links(model: &Model, run: &TrainingRun, accelerator: &Accelerator, constants: &Constants) -> Option<String> {
    run.links.as_ref()?;
    let preset = super::super::hardware::find(accelerator.id)?;
    let alone = TrainingRun { links: None, ..run.clone() };
    let (own, usual) =
        (RunRates::new(model, run, accelerator, constants), RunRates::new(model, &alone, &preset, constants));
    let layout = &run.layout;
    let replicas = f64::from(layout.data) * f64::from(layout.context);
    let ring = run.settings.context_style != ContextStyle::AllToAll;
    let kinds = [
        ("tensor groups", layout.tensor > 1, own.tensor_link(), usual.tensor_link()),
        ("context groups", layout.context > 1 && ring, own.context_link(), usual.context_link()),
        ("groups of experts", layout.expert > 1, own.expert_link(), usual.expert_link()),
        ("stages", layout.pipeline > 1, own.next_stage_link(), usual.next_stage_link()),
        ("replicas", replicas > 1.0, own.reduction(replicas), usual.reduction(replicas)),
    ];
    let slow = kinds.into_iter().filter(|(_, used, own, usual)| *used && *own < (1.0 - SLOWER) * usual);
    let (name, _, own, usual) = slow.min_by(|a, b| (a.2 / a.3).total_cmp(&(b.2 / b.3)))?;
    let rate = |attained: f64| units::bandwidth_exact((attained / constants.links / 1e8).round() * 1e8);
    Some(format!("links of {} between {name}, not {}", rate(own), rate(usual)))
}
