//! Settings of the training software, by name, with a default in each [`Stack`], the profile of a training engine.

use super::{
    adapter::Adapter,
    expert_settings::{Dispatcher, ExpertOverlap, Imbalance, Release},
    hardware::Generation,
    recompute::Modules,
};
use crate::units::{self, GIB};

/// Kernel of the attention core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttentionKernel {
    /// Best fused kernel of the generation: cuDNN's or FlashAttention 3 on Hopper, FlashAttention 2 on Ampere.
    Flash,
    /// FlashAttention 1.
    Flash1,
    /// FlashAttention 2.
    Flash2,
    /// Kernel that writes scores to memory.
    Unfused,
}

impl AttentionKernel {
    /// Names of all kernels, as in settings.
    pub const IDS: [(&'static str, AttentionKernel); 4] = [
        ("flash", AttentionKernel::Flash),
        ("flash1", AttentionKernel::Flash1),
        ("flash2", AttentionKernel::Flash2),
        ("unfused", AttentionKernel::Unfused),
    ];
}

/// Way in which context parallelism divides attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextStyle {
    /// Keys and values circulate in a ring.
    Ring,
    /// Every rank gathers all keys and values before its attention.
    AllGather,
    /// Ranks exchange parts of the sequence for heads (Ulysses).
    AllToAll,
    /// Heads are exchanged within a machine, and keys and values circulate between machines.
    Hierarchical,
}

impl ContextStyle {
    /// Names of all styles, as in settings.
    pub const IDS: [(&'static str, ContextStyle); 4] = [
        ("ring", ContextStyle::Ring),
        ("all-gather", ContextStyle::AllGather),
        ("all-to-all", ContextStyle::AllToAll),
        ("hierarchical", ContextStyle::Hierarchical),
    ];

    /// Name in settings.
    pub fn id(self) -> &'static str {
        id_of(&ContextStyle::IDS, self)
    }

    /// Name of Megatron-Core's `--cp-comm-type`.
    pub fn megatron(self) -> &'static str {
        match self {
            ContextStyle::Ring => "p2p",
            ContextStyle::AllGather => "all_gather",
            ContextStyle::AllToAll => "a2a",
            ContextStyle::Hierarchical => "a2a+p2p",
        }
    }
}

/// Settings of the training software that do not depend on the layout.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainingSettings {
    /// True if norms and dropout are divided along the sequence over the tensor group.
    pub sequence_parallel: bool,
    /// True if optimizer state is divided over the data-parallel group (ZeRO 1).
    pub distributed_optimizer: bool,
    /// True if gradients are divided as well, and reduced after every microbatch (ZeRO 2).
    pub shard_gradients: bool,
    /// True if weights, gradients and state are divided over the data-parallel group (FSDP, ZeRO 3).
    pub fsdp: bool,
    /// Ranks that share one copy of what is divided; the copies are replicas (HSDP). 0 for all ranks.
    pub hsdp: u32,
    /// True if tensor-parallel transfers overlap with matrix products.
    pub tp_overlap: bool,
    /// True if data-parallel transfers overlap with the backward pass.
    pub dp_overlap: bool,
    /// True if FSDP accumulates whole gradients over the microbatches and reduces them once.
    pub accumulate_whole: bool,
    /// True if one kernel computes the cross-entropy.
    pub fused_cross_entropy: bool,
    /// True if the loss is computed on parts of the vocabulary.
    pub vocab_parallel_loss: bool,
    /// True if norms and activation functions run in one kernel each.
    pub fused_elementwise: bool,
    /// Kernel of the attention core.
    pub attention: AttentionKernel,
    /// Way in which context parallelism divides attention.
    pub context_style: ContextStyle,
    /// Way in which tokens reach their experts.
    pub dispatcher: Dispatcher,
    /// Work that runs while tokens are on their way.
    pub ep_overlap: ExpertOverlap,
    /// True if the gradients of weights run apart from the backward pass under `ep_overlap=batch`.
    pub delay_weight_gradients: bool,
    /// True if kernels are launched from CUDA graphs, so that the host never makes them wait.
    pub cuda_graph: bool,
    /// Load of the busiest rank of experts.
    pub imbalance: Imbalance,
    /// Release of the software; `None` if unknown.
    pub release: Option<Release>,
    /// Bytes per element of a gradient.
    pub gradient_bytes: u32,
    /// Bytes per element of the optimizer's own weights; 0 if it updates the 16-bit weights.
    pub master_bytes: u32,
    /// Bytes per element of each of the two moments.
    pub moment_bytes: u32,
    /// True if optimizer state lies in the host's memory and its CPU takes the step.
    pub optimizer_offload: bool,
    /// True if FSDP's shards of the weights lie in the host's memory.
    pub parameter_offload: bool,
    /// Layers of each virtual stage whose activations lie in the host's memory between the passes.
    pub activation_offload: u32,
    /// Adapters that are trained in place of the weights.
    pub adapter: Option<Adapter>,
    /// Bytes reserved for the allocator, NCCL and the context.
    pub reserve_bytes: f64,
    /// Bytes per second of a device to devices of another kind; 0 for the rate of the slower end.
    pub between_kinds: f64,
    /// Bytes per second of a device to devices of another place; 0 for the rate between kinds.
    pub between_places: f64,
    /// Time of a message to another place besides its transfer, seconds.
    pub places_latency_s: f64,
    /// Price of a GB to another place, in the currency of the devices' prices.
    pub traffic_price: f64,
}

/// Profile of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stack {
    /// Megatron-Core as in NVIDIA's recipes of 2025.
    #[default]
    Megatron2025,
    /// NeMo as in NVIDIA's benchmark recipes of 2024.
    Nemo24,
    /// torchtitan: FSDP, compiled.
    Torchtitan,
    /// Megatron-LM without optional flags: no overlap of tensor-parallel transfers.
    Plain,
}

impl Stack {
    /// All stacks.
    pub const ALL: [Stack; 4] = [Stack::Megatron2025, Stack::Nemo24, Stack::Torchtitan, Stack::Plain];

    /// Id on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Stack::Megatron2025 => "megatron-2025",
            Stack::Nemo24 => "nemo-24",
            Stack::Torchtitan => "torchtitan",
            Stack::Plain => "plain",
        }
    }

    /// Stack with this id, in either case.
    pub fn find(id: &str) -> Option<Self> {
        Stack::ALL.into_iter().find(|stack| stack.id().eq_ignore_ascii_case(id))
    }

    /// Default tensor-parallel degree of the routed experts. Megatron-Core takes that of the attention, NVIDIA's recipes
    /// set 1. torchtitan divides each expert only without expert parallelism.
    pub fn expert_tensor(self, tensor: u32, expert: u32) -> u32 {
        match self {
            Stack::Megatron2025 | Stack::Nemo24 => 1,
            Stack::Torchtitan if expert > 1 => 1,
            Stack::Torchtitan | Stack::Plain => tensor,
        }
    }

    /// Settings of the stack.
    pub fn settings(self) -> TrainingSettings {
        let plain = TrainingSettings {
            sequence_parallel: true,
            distributed_optimizer: true,
            shard_gradients: false,
            fsdp: false,
            hsdp: 0,
            tp_overlap: false,
            dp_overlap: true,
            accumulate_whole: false,
            fused_cross_entropy: false,
            vocab_parallel_loss: true,
            fused_elementwise: true,
            attention: AttentionKernel::Flash,
            context_style: ContextStyle::Ring,
            dispatcher: Dispatcher::AllToAll,
            ep_overlap: ExpertOverlap::None,
            delay_weight_gradients: false,
            cuda_graph: false,
            imbalance: Imbalance::Balanced,
            release: None,
            gradient_bytes: 4,
            master_bytes: 4,
            moment_bytes: 4,
            optimizer_offload: false,
            parameter_offload: false,
            activation_offload: 0,
            adapter: None,
            reserve_bytes: 6.0 * GIB,
            between_kinds: 0.0,
            between_places: 0.0,
            places_latency_s: 0.0,
            traffic_price: 0.0,
        };
        match self {
            Stack::Megatron2025 => TrainingSettings { tp_overlap: true, dispatcher: Dispatcher::DeepEp, ..plain },
            Stack::Nemo24 => TrainingSettings { tp_overlap: true, ..plain },
            Stack::Torchtitan => {
                TrainingSettings { fsdp: true, accumulate_whole: true, attention: AttentionKernel::Flash2, ..plain }
            }
            Stack::Plain => plain,
        }
    }

    /// Bytes per token and vocabulary entry at the peak of a loss without a fused kernel. torch's stacks keep one more
    /// 32-bit copy of the logits than Megatron-Core.
    pub fn logit_bytes(self) -> f64 {
        if self == Stack::Torchtitan { 14.0 } else { 10.0 }
    }

    /// Modules of selective recomputation that names none.
    pub fn usual_modules(self) -> Modules {
        if self == Stack::Torchtitan { Modules::OPERATORS } else { Modules::CORE_ATTENTION }
    }
}

/// Value of a setting.
enum Slot<'a> {
    Flag(&'a mut bool),
    /// With the allowed numbers.
    Count(&'a mut u32, &'static [u32]),
    Upto(&'a mut u32, u32),
    Kernel(&'a mut AttentionKernel),
    Style(&'a mut ContextStyle),
    Dispatcher(&'a mut Dispatcher),
    Overlap(&'a mut ExpertOverlap),
    Imbalance(&'a mut Imbalance),
    Release(&'a mut Option<Release>),
    Adapter(&'a mut Option<Adapter>),
    Size(&'a mut f64),
    Rate(&'a mut f64),
    Time(&'a mut f64),
    Price(&'a mut f64),
}

/// Names that set other settings.
const ALIASES: [&str; 2] = ["zero", "shared_expert_overlap"];
/// Maximum of a count of ranks or layers.
const MOST: u32 = 1 << 20;

impl TrainingSettings {
    /// Names of all settings with their allowed values, in display order.
    pub const NAMES: [(&'static str, &'static str); 31] = [
        ("sequence_parallel", "true or false"),
        ("distributed_optimizer", "true or false"),
        ("shard_gradients", "true or false"),
        ("fsdp", "true or false"),
        ("hsdp", "the ranks that share one copy of the weights, or 0 for all"),
        ("tp_overlap", "true or false"),
        ("dp_overlap", "true or false"),
        ("accumulate_whole", "true or false"),
        ("fused_cross_entropy", "true or false"),
        ("vocab_parallel_loss", "true or false"),
        ("fused_elementwise", "true or false"),
        ("attention", "flash, flash1, flash2 or unfused"),
        ("context_style", "ring, all-gather, all-to-all or hierarchical"),
        ("dispatcher", "alltoall, deepep or hybridep"),
        ("ep_overlap", "none, shared or batch"),
        ("delay_weight_gradients", "true or false"),
        ("cuda_graph", "true or false"),
        ("imbalance", Imbalance::VALUES),
        ("release", "none, or a release such as 26.02"),
        ("gradient_bytes", "2 or 4"),
        ("master_bytes", "0, 2 or 4"),
        ("moment_bytes", "1, 2 or 4"),
        ("optimizer_offload", "true or false"),
        ("parameter_offload", "true or false"),
        ("activation_offload", "the layers of each stage, or 0"),
        ("adapter", "none, lora:r=RANK or qlora:r=RANK"),
        ("reserve", "a size, such as 6GiB"),
        ("between_kinds", "a bandwidth, such as 5GB/s, or 0 for that of the slower end"),
        ("between_places", "a bandwidth, such as 1GB/s, or 0 for that between kinds"),
        ("latency_between_places", "a time, such as 30ms"),
        ("traffic_price", "the price of a GB to another place, such as 0.02"),
    ];

    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        Some(match name {
            "sequence_parallel" => Slot::Flag(&mut self.sequence_parallel),
            "distributed_optimizer" => Slot::Flag(&mut self.distributed_optimizer),
            "shard_gradients" => Slot::Flag(&mut self.shard_gradients),
            "fsdp" => Slot::Flag(&mut self.fsdp),
            "hsdp" => Slot::Upto(&mut self.hsdp, MOST),
            "tp_overlap" => Slot::Flag(&mut self.tp_overlap),
            "dp_overlap" => Slot::Flag(&mut self.dp_overlap),
            "accumulate_whole" => Slot::Flag(&mut self.accumulate_whole),
            "fused_cross_entropy" => Slot::Flag(&mut self.fused_cross_entropy),
            "vocab_parallel_loss" => Slot::Flag(&mut self.vocab_parallel_loss),
            "fused_elementwise" => Slot::Flag(&mut self.fused_elementwise),
            "attention" => Slot::Kernel(&mut self.attention),
            "context_style" => Slot::Style(&mut self.context_style),
            "dispatcher" => Slot::Dispatcher(&mut self.dispatcher),
            "ep_overlap" => Slot::Overlap(&mut self.ep_overlap),
            "delay_weight_gradients" => Slot::Flag(&mut self.delay_weight_gradients),
            "cuda_graph" => Slot::Flag(&mut self.cuda_graph),
            "imbalance" => Slot::Imbalance(&mut self.imbalance),
            "release" => Slot::Release(&mut self.release),
            "gradient_bytes" => Slot::Count(&mut self.gradient_bytes, &[2, 4]),
            "master_bytes" => Slot::Count(&mut self.master_bytes, &[0, 2, 4]),
            "moment_bytes" => Slot::Count(&mut self.moment_bytes, &[1, 2, 4]),
            "optimizer_offload" => Slot::Flag(&mut self.optimizer_offload),
            "parameter_offload" => Slot::Flag(&mut self.parameter_offload),
            "activation_offload" => Slot::Upto(&mut self.activation_offload, MOST),
            "adapter" => Slot::Adapter(&mut self.adapter),
            "reserve" => Slot::Size(&mut self.reserve_bytes),
            "between_kinds" => Slot::Rate(&mut self.between_kinds),
            "between_places" => Slot::Rate(&mut self.between_places),
            "latency_between_places" => Slot::Time(&mut self.places_latency_s),
            "traffic_price" => Slot::Price(&mut self.traffic_price),
            _ => return None,
        })
    }

    /// Sets a value by name. `zero` sets `distributed_optimizer`, `shard_gradients` and `fsdp` together, from 0 (none of
    /// them) to 3. `shared_expert_overlap` sets `ep_overlap` to `shared` or back to `none`.
    ///
    /// # Errors
    /// A sentence, if there is no such setting or the value is not allowed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let shown = crate::text::printable(value);
        if name == "zero" {
            let stage: u32 = value
                .parse()
                .ok()
                .filter(|stage| *stage <= 3)
                .ok_or_else(|| format!("zero is `{shown}`, must be 0, 1, 2 or 3"))?;
            self.distributed_optimizer = stage >= 1;
            self.shard_gradients = stage == 2;
            self.fsdp = stage == 3;
            return Ok(());
        }
        if name == "shared_expert_overlap" {
            let wanted: bool = value.parse().map_err(|_| format!("{name} is `{shown}`, must be true or false"))?;
            match wanted {
                true if self.ep_overlap == ExpertOverlap::Batch => {
                    return Err("shared_expert_overlap=true contradicts ep_overlap=batch".into());
                }
                true => self.ep_overlap = ExpertOverlap::Shared,
                false if self.ep_overlap == ExpertOverlap::Shared => self.ep_overlap = ExpertOverlap::None,
                false => {}
            }
            return Ok(());
        }
        let Some((name, values)) = TrainingSettings::NAMES.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = TrainingSettings::NAMES.iter().map(|(name, _)| *name).chain(ALIASES).collect();
            let name = crate::text::printable(name);
            return Err(format!("there is no setting `{name}`; there are {}", known.join(", ")));
        };
        let taken = self.slot(name).and_then(|slot| slot.set(value));
        taken.ok_or_else(|| format!("{name} is `{shown}`, must be {values}"))
    }

    /// True if [`TrainingSettings::set`] knows the name.
    pub fn knows(name: &str) -> bool {
        ALIASES.contains(&name) || TrainingSettings::NAMES.iter().any(|(known, _)| *known == name)
    }

    /// Names and values of the settings that are for several kinds of devices.
    fn of_kinds(&self) -> [(&'static str, f64); 4] {
        [
            ("between_kinds", self.between_kinds),
            ("between_places", self.between_places),
            ("latency_between_places", self.places_latency_s),
            ("traffic_price", self.traffic_price),
        ]
    }

    /// Setting for several kinds of devices that is given, if any.
    pub fn given_of_kinds(&self) -> Option<&'static str> {
        self.of_kinds().into_iter().find(|(_, value)| *value > 0.0).map(|(name, _)| name)
    }

    /// Clears the settings that join kinds of devices.
    pub fn forget_kinds(&mut self) {
        [self.between_kinds, self.between_places, self.places_latency_s, self.traffic_price] = [0.0; 4];
    }

    /// True if CUDA graphs launch the kernels. Megatron-Bridge's recipes for Blackwell use them from release 26.06.
    pub fn launches_from_graphs(&self, generation: Generation) -> bool {
        self.cuda_graph || self.release.is_some_and(|release| release.has_graphs(generation))
    }

    /// ZeRO stage: what is divided over replicas; 0 for nothing.
    pub fn zero(&self) -> u32 {
        match () {
            () if self.fsdp => 3,
            () if self.shard_gradients => 2,
            () => self.distributed_optimizer.into(),
        }
    }

    /// Value of a setting as [`TrainingSettings::set`] reads it.
    pub fn text(&self, name: &str) -> String {
        let mut copy = self.clone();
        copy.slot(name).map_or_else(String::new, Slot::text)
    }
}

impl Slot<'_> {
    /// Takes a value; `None` if it is not allowed.
    fn set(self, value: &str) -> Option<()> {
        match self {
            Slot::Flag(flag) => *flag = value.parse().ok()?,
            Slot::Count(count, allowed) => *count = value.parse().ok().filter(|count| allowed.contains(count))?,
            Slot::Upto(count, most) => *count = value.parse().ok().filter(|count| *count <= most)?,
            Slot::Kernel(kernel) => *kernel = named(&AttentionKernel::IDS, value)?,
            Slot::Style(style) => *style = named(&ContextStyle::IDS, value)?,
            Slot::Dispatcher(own) => *own = named(&Dispatcher::IDS, value)?,
            Slot::Overlap(overlap) => *overlap = named(&ExpertOverlap::IDS, value)?,
            Slot::Imbalance(imbalance) => *imbalance = Imbalance::parse(value)?,
            Slot::Release(release) => *release = Release::parse_setting(value)?,
            Slot::Adapter(adapter) => *adapter = Adapter::parse(value).ok()?,
            Slot::Size(bytes) => *bytes = size(value)?,
            Slot::Rate(rate) if value.trim() == "0" => *rate = 0.0,
            Slot::Rate(rate) => *rate = units::parse_bandwidth(value).ok()?,
            Slot::Time(seconds) => *seconds = units::parse_seconds(value).ok()?,
            Slot::Price(price) => *price = value.trim().parse().ok().filter(|price| (0.0..1e9).contains(price))?,
        }
        Some(())
    }

    fn text(self) -> String {
        match self {
            Slot::Flag(flag) => flag.to_string(),
            Slot::Count(count, _) | Slot::Upto(count, _) => count.to_string(),
            Slot::Kernel(kernel) => id_of(&AttentionKernel::IDS, *kernel).into(),
            Slot::Style(style) => id_of(&ContextStyle::IDS, *style).into(),
            Slot::Dispatcher(own) => id_of(&Dispatcher::IDS, *own).into(),
            Slot::Overlap(overlap) => id_of(&ExpertOverlap::IDS, *overlap).into(),
            Slot::Imbalance(imbalance) => imbalance.to_string(),
            Slot::Release(release) => release.map_or_else(|| "none".into(), |release| release.to_string()),
            Slot::Adapter(adapter) => adapter.map_or_else(|| "none".into(), |adapter| adapter.to_string()),
            Slot::Size(bytes) => units::bytes_exact(*bytes),
            Slot::Rate(0.0) => "0".into(),
            Slot::Rate(rate) => units::bandwidth_exact(*rate).replace(' ', ""),
            Slot::Time(seconds) => format!("{seconds}s"),
            Slot::Price(price) => price.to_string(),
        }
    }
}

/// Reads a size, which may be 0.
fn size(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    if digits.parse() == Ok(0.0) { Some(0.0) } else { units::parse_bytes(text).ok() }
}

fn named<T: Copy>(ids: &[(&str, T)], text: &str) -> Option<T> {
    ids.iter().find(|(id, _)| *id == text).map(|&(_, value)| value)
}

fn id_of<T: Copy + PartialEq>(ids: &[(&'static str, T)], value: T) -> &'static str {
    ids.iter().find(|(_, other)| *other == value).map_or("", |(id, _)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_can_be_set_to_what_it_shows() {
        for stack in Stack::ALL {
            assert_eq!(Stack::find(&stack.id().to_uppercase()), Some(stack));
            let settings = stack.settings();
            let mut copy = Stack::Plain.settings();
            for (name, _) in TrainingSettings::NAMES {
                copy.set(name, &settings.text(name)).unwrap();
            }
            assert_eq!(copy, settings);
        }
        let mut settings = Stack::Plain.settings();
        settings.set("reserve", "0").unwrap();
        assert_eq!(settings.reserve_bytes, 0.0);
        assert!(settings.set("attention", "fast").unwrap_err().contains("must be flash, flash1, flash2 or unfused"));
        assert!(settings.set("colour", "red").unwrap_err().contains("there is no setting `colour`"));
        assert!(settings.set("gradient_bytes", "3").is_err() && settings.set("fsdp", "yes").is_err());
    }
}
