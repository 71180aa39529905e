//! Costs of a chain of layers on several kinds of devices, for clusters that mix them.
//!
//! A kind has a number of devices in machines, their memory and their price. Each layer has times and memory for every
//! kind, tensor degree and micro-batch that was measured or derived. Links between kinds have a rate that depends on the
//! bytes of a message, as measurements show it.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use super::{
    profiled::{Profile, Workload},
    sailor::{SailorModel, SailorTables},
    training::TrainingProfile,
};

use crate::cluster::LimitKind;

/// Bytes that a price of traffic is for.
const GIGABYTE: f64 = 1e9;

/// Most kinds of devices of a workload.
pub const MOST_KINDS: usize = 4;

/// Kind of device of a cluster, in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceKind {
    /// Name, such as `a100-40`, or `a100-40@us-west1-b` where a zone was asked for.
    pub id: String,
    /// Number of devices that a plan may use.
    pub count: u32,
    /// Devices of a machine; tensor degrees divide it.
    pub machine: u32,
    /// Memory of a device, bytes.
    pub memory_bytes: f64,
    /// Price of a device for an hour, in any currency, if known.
    pub price_per_hour: Option<f64>,
}

/// Amount of which replicas divide a part among them, such as the optimizer's state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Divided {
    /// Part that every replica has.
    pub whole: f64,
    /// Part of which each replica has its share.
    pub divided: f64,
}

impl Divided {
    /// Amount that nothing divides.
    pub fn whole(whole: f64) -> Self {
        Divided { whole, divided: 0.0 }
    }

    /// Amount on each of the replicas.
    pub fn on(self, replicas: u32) -> f64 {
        self.whole + self.divided / f64::from(replicas.max(1))
    }
}

/// Costs of one layer on one rank, for a microbatch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerCost {
    /// Forward pass, seconds.
    pub forward_s: f64,
    /// Backward pass, recomputation included, seconds.
    pub backward_s: f64,
    /// Optimizer step, seconds.
    pub update_s: Divided,
    /// Weights, gradients and optimizer state, bytes.
    pub state_bytes: Divided,
    /// Activations that are kept for the backward pass, bytes.
    pub activation_bytes: f64,
}

/// Costs of all layers on one kind with one tensor degree and micro-batch.
#[derive(Debug, Clone, PartialEq)]
pub struct KindCosts {
    /// Index of the kind.
    pub kind: usize,
    /// Tensor degree, t.
    pub tensor: u32,
    /// Sequences of a microbatch.
    pub micro_batch: u32,
    /// True if the backward passes recompute the layers' activations.
    pub recompute: bool,
    /// Costs by layer.
    pub layers: Vec<LayerCost>,
    /// Bytes of a device that no layer may use.
    pub reserve_bytes: f64,
}

/// Rate of messages between two groups of devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkRate {
    /// Bandwidth and latency.
    Constant {
        /// Bytes per second.
        bytes_per_s: f64,
        /// Seconds that a message takes in addition.
        latency_s: f64,
    },
    /// GB/s as a polynomial of the second degree in the binary logarithm of the message's megabytes, highest power first
    /// (Sailor, SOSP 2025).
    Fitted([f64; 3]),
}

impl LinkRate {
    /// Time of a message, seconds.
    pub fn seconds(self, bytes: f64) -> f64 {
        if bytes <= 0.0 {
            return 0.0;
        }
        match self {
            LinkRate::Constant { bytes_per_s, latency_s } => latency_s + bytes / bytes_per_s,
            LinkRate::Fitted([square, linear, constant]) => {
                let size = (bytes / 1e6).log2();
                let rate = square * size * size + linear * size + constant;
                // The polynomial holds for the sizes that were measured.
                if rate > 0.0 { bytes / 1e9 / rate } else { f64::INFINITY }
            }
        }
    }
}

/// Group of devices that sends as one: a kind and the number of its devices.
pub type Sender = (usize, u32);

/// Rates of messages by sender and receiver.
pub type LinkRates = BTreeMap<(Sender, Sender), LinkRate>;

/// Rates of the rings in which the replicas of a stage reduce gradients, bytes per second of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RingRate {
    /// Rate while all devices of the stage are in one machine.
    pub within: f64,
    /// Rate if they are in several.
    pub across: f64,
    /// Devices of a machine.
    pub machine: u32,
}

/// How replicas reduce gradients.
#[derive(Debug, Clone, PartialEq)]
pub enum Reductions {
    /// As messages on the links of single devices, so many bytes at once.
    Messages {
        /// Bytes of gradients that are reduced at once.
        bucket_bytes: f64,
    },
    /// In rings with rates by kind and tensor degree.
    Rings(BTreeMap<Sender, RingRate>),
}

/// Links between groups of devices.
#[derive(Debug, Clone, PartialEq)]
pub struct KindLinks {
    /// Rates by sender and receiver.
    pub rates: LinkRates,
    /// Reductions of gradients.
    pub reductions: Reductions,
    /// Price of a GB by sending and receiving kind, in the currency of the devices' prices. Absent: none.
    pub prices: BTreeMap<(usize, usize), f64>,
}

impl KindLinks {
    /// Price of a GB from a kind to another.
    pub fn price(&self, from: usize, to: usize) -> f64 {
        self.prices.get(&(from, to)).copied().unwrap_or(0.0)
    }

    /// Time of a message between two groups, seconds; infinite without a link.
    pub fn seconds(&self, bytes: f64, from: Sender, to: Sender) -> f64 {
        self.rates.get(&(from, to)).map_or(f64::INFINITY, |rate| rate.seconds(bytes))
    }

    /// Time to reduce gradients over replicas in a ring, seconds. `bytes` are those of one rank; infinite without a link.
    pub fn all_reduce_s(&self, bytes: f64, (kind, tensor): Sender, replicas: u32) -> f64 {
        if replicas < 2 {
            return 0.0;
        }
        let steps = 2.0 * f64::from(replicas - 1);
        let part = f64::from(replicas);
        match &self.reductions {
            Reductions::Messages { bucket_bytes } => {
                let bucket = |bytes: f64| steps * self.seconds(bytes / part, (kind, 1), (kind, 1));
                let (whole, rest) = ((bytes / bucket_bytes).floor(), bytes % bucket_bytes);
                let full = if whole > 0.0 { whole * bucket(*bucket_bytes) } else { 0.0 };
                full + bucket(rest)
            }
            Reductions::Rings(rates) => rates.get(&(kind, tensor)).map_or(f64::INFINITY, |ring| {
                // Stages that fill a machine evenly are placed in one.
                let inside = ring.machine.is_multiple_of(replicas.saturating_mul(tensor));
                steps * bytes / part / if inside { ring.within } else { ring.across }
            }),
        }
    }
}

/// Rules of an iteration's closed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeRule {
    /// A stage sends activations to the next one and gradients to the one before. After its last microbatch it reduces
    /// its gradients and updates all its layers; the slowest stage ends the iteration.
    #[default]
    Stages,
    /// As the simulator of Sailor (SOSP 2025) counts: the last stage sends its gradients twice, and so does the first its
    /// activations in pipelines of more than three stages. Of an update only a stage's first layer counts, and the slowest
    /// update and the slowest reduction are added.
    Sailor,
}

impl TimeRule {
    /// Layer whose output has the size of the gradients that a stage from layer `first` on sends back. Sailor takes the
    /// stage's own.
    pub fn sends_back(self, first: usize) -> usize {
        match self {
            TimeRule::Stages => first.saturating_sub(1),
            TimeRule::Sailor => first,
        }
    }

    /// Factors on the activations and the gradients that a stage sends for a microbatch, of `stages`.
    pub fn factors(self, stage: usize, stages: usize) -> [f64; 2] {
        let (first, last) = (stage == 0, stage + 1 == stages);
        match self {
            _ if first && last => [0.0, 0.0],
            TimeRule::Sailor if first => [if stages > 3 { 2.0 } else { 1.0 }, 0.0],
            TimeRule::Sailor if last => [0.0, 2.0],
            _ => [f64::from(u8::from(!last)), f64::from(u8::from(!first))],
        }
    }
}

/// How a layer runs: with a micro-batch, and with or without its activations kept.
///
/// Its text is the one in plans: `micro-batch 4`, or `micro-batch 4 recompute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerMode {
    /// Sequences of a microbatch.
    pub micro_batch: u32,
    /// True if the backward pass recomputes activations.
    pub recompute: bool,
}

impl fmt::Display for LayerMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = if self.recompute { " recompute" } else { "" };
        f.pad(&format!("micro-batch {}{again}", self.micro_batch))
    }
}

impl FromStr for LayerMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_prefix("micro-batch ").ok_or(())?;
        let (size, recompute) = rest.strip_suffix(" recompute").map_or((rest, false), |size| (size, true));
        let micro_batch = size.parse().ok().filter(|size| *size > 0).ok_or(())?;
        Ok(LayerMode { micro_batch, recompute })
    }
}

/// Costs of a chain of layers on a cluster of several kinds.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedProfile {
    /// Kinds.
    pub kinds: Vec<DeviceKind>,
    /// Costs, for some kinds, tensor degrees and micro-batches.
    pub costs: Vec<KindCosts>,
    /// Bytes that a layer hands to the next, for one sequence.
    pub output_bytes: Vec<f64>,
    /// Bytes of a layer's gradients, undivided.
    pub gradient_bytes: Vec<f64>,
    /// Links.
    pub links: KindLinks,
    /// Rules of the closed form.
    pub rule: TimeRule,
    /// Share of all times that every doubling of the devices beyond eight adds.
    pub growth: f64,
    /// Time of an iteration that nothing changes, seconds.
    pub fixed_s: f64,
    /// Share of a transfer that no pass hides, above 0 and at most 1. The times of the links are those of that share.
    pub exposed: f64,
    /// Source of the costs, if it has those of other kinds, too.
    pub origin: Option<Box<MixedOrigin>>,
    /// Remarks on the figures, a sentence each.
    pub remarks: Vec<String>,
}

/// Source of a profile's costs, from which other kinds have theirs.
#[derive(Debug, Clone, PartialEq)]
pub enum MixedOrigin {
    /// A model with its training settings, and the data sheets of accelerators.
    Model(Box<TrainingProfile>),
    /// Tables of Sailor.
    Tables {
        /// The tables of a folder.
        tables: Arc<SailorTables>,
        /// Model of the tables.
        model: SailorModel,
    },
}

impl MixedProfile {
    /// Model that the costs are derived from, if they are.
    pub fn model(&self) -> Option<&TrainingProfile> {
        match self.origin.as_deref() {
            Some(MixedOrigin::Model(model)) => Some(model),
            _ => None,
        }
    }

    /// Costs on a kind with a tensor degree, for a mode, if there are any.
    pub fn costs(&self, kind: usize, tensor: u32, mode: LayerMode) -> Option<&KindCosts> {
        let LayerMode { micro_batch, recompute } = mode;
        let own = |costs: &KindCosts| (costs.kind, costs.tensor, costs.micro_batch, costs.recompute);
        self.costs.iter().find(|costs| own(costs) == (kind, tensor, micro_batch, recompute))
    }

    /// Cost of what a sequence sends between a stage on kind `from` that ends before layer `end` and the next one, on kind
    /// `to`: activations there, and gradients back.
    pub fn traffic_cost_per_sequence(&self, from: usize, to: usize, end: usize) -> f64 {
        let (there, back) = (self.output_bytes[end - 1], self.output_bytes[self.rule.sends_back(end)]);
        (there * self.links.price(from, to) + back * self.links.price(to, from)) / GIGABYTE
    }

    /// Number of the first device of a kind: devices are counted through, kind by kind.
    pub fn first_device(&self, kind: usize) -> u32 {
        self.kinds[..kind].iter().fold(0, |sum, kind| sum.saturating_add(kind.count))
    }

    /// Kind of a device, by its number.
    pub fn kind_of(&self, device: u32) -> Option<usize> {
        let after = |kind: usize| u64::from(self.first_device(kind)) + u64::from(self.kinds[kind].count);
        (0..self.kinds.len()).find(|&kind| u64::from(device) < after(kind))
    }

    /// Machine of a device, counted through kind by kind, and the device's place in it.
    pub fn machine_of(&self, device: u32) -> Option<(usize, u32)> {
        let own = self.kind_of(device)?;
        let of = |kind: &DeviceKind| kind.count.div_ceil(kind.machine.max(1)) as usize;
        let before: usize = self.kinds[..own].iter().map(of).sum();
        let (place, size) = (device - self.first_device(own), self.kinds[own].machine.max(1));
        Some((before + (place / size) as usize, place % size))
    }

    /// Factor on all times of a plan on so many devices.
    pub fn factor(&self, devices: u64) -> f64 {
        1.0 + self.growth * (devices as f64 / 8.0).log2().max(0.0)
    }

    /// Time of an iteration on so many devices, from that of the closed form, seconds.
    pub fn whole_s(&self, closed_s: f64, devices: u64) -> f64 {
        closed_s * self.factor(devices) + self.fixed_s
    }

    /// Workload with this profile, whose devices are its limit.
    #[must_use]
    pub fn over(self, workload: &Workload) -> Workload {
        let mut workload = workload.clone();
        workload.limits.set(LimitKind::Devices, Some(self.devices()));
        workload.limits.set(LimitKind::Memory, None::<f64>);
        workload.profile = Profile::Mixed(Box::new(self));
        workload
    }

    /// Parameters of the model, if the costs are derived from one.
    pub fn parameters(&self) -> Option<f64> {
        match self.origin.as_deref()? {
            MixedOrigin::Model(model) => Some(model.model.parameters() as f64),
            MixedOrigin::Tables { .. } => None,
        }
    }

    /// Number of devices of all kinds.
    pub fn devices(&self) -> u32 {
        self.kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_reduced_bucket_by_bucket() {
        let rate = LinkRate::Constant { bytes_per_s: 1e9, latency_s: 0.0 };
        let reductions = Reductions::Messages { bucket_bytes: 4e9 };
        let links = KindLinks { rates: [(((0, 1), (0, 1)), rate)].into(), reductions, prices: BTreeMap::new() };
        // Three quarters of the bytes, twice.
        assert_eq!(links.all_reduce_s(10e9, (0, 1), 4), 15.0);
        assert_eq!(links.all_reduce_s(10e9, (0, 1), 1), 0.0);
        assert_eq!(links.seconds(1.0, (0, 1), (1, 1)), f64::INFINITY);
    }

    #[test]
    fn sailor_counts_the_ends_of_a_long_pipeline_twice() {
        let rule = |rule: TimeRule, stages| -> Vec<[f64; 2]> { (0..stages).map(|i| rule.factors(i, stages)).collect() };
        assert_eq!(rule(TimeRule::Stages, 3), [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]);
        assert_eq!(rule(TimeRule::Sailor, 3), [[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]);
        assert_eq!(rule(TimeRule::Sailor, 4)[0], [2.0, 0.0]);
        assert_eq!(rule(TimeRule::Sailor, 1), [[0.0, 0.0]]);
    }

    #[test]
    fn traffic_is_paid_by_direction_and_sailors_rule_sends_back_the_stages_own_layer() {
        let prices = [((0, 1), 2.0), ((1, 0), 5.0)].into();
        let links = KindLinks { rates: BTreeMap::new(), reductions: Reductions::Rings([].into()), prices };
        let mut profile = MixedProfile {
            kinds: vec![],
            costs: vec![],
            output_bytes: vec![1e9, 3e9],
            gradient_bytes: vec![0.0; 2],
            links,
            rule: TimeRule::Stages,
            growth: 0.0,
            fixed_s: 0.0,
            exposed: 1.0,
            origin: None,
            remarks: vec![],
        };
        // 1 GB there and back; the other way round the prices change places.
        assert_eq!(profile.traffic_cost_per_sequence(0, 1, 1), 2.0 + 5.0);
        assert_eq!(profile.traffic_cost_per_sequence(0, 0, 1), 0.0);
        profile.rule = TimeRule::Sailor;
        assert_eq!(profile.traffic_cost_per_sequence(0, 1, 1), 2.0 + 3.0 * 5.0);
        assert_eq!(profile.traffic_cost_per_sequence(1, 0, 1), 5.0 + 3.0 * 2.0);
    }

    #[test]
    fn rings_are_faster_in_one_machine() {
        let ring = RingRate { within: 4e9, across: 1e9, machine: 8 };
        let reductions = Reductions::Rings([((0, 2), ring)].into());
        let links = KindLinks { rates: BTreeMap::new(), reductions, prices: BTreeMap::new() };
        assert_eq!(links.all_reduce_s(8e9, (0, 2), 4), 3.0);
        assert_eq!(links.all_reduce_s(8e9, (0, 2), 8), 14.0);
        assert_eq!(links.all_reduce_s(8e9, (0, 4), 2), f64::INFINITY);
    }

    #[test]
    fn a_mode_is_read_as_it_is_written() {
        for (micro_batch, recompute) in [(1, false), (16, true)] {
            let mode = LayerMode { micro_batch, recompute };
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for text in ["micro-batch 0", "micro-batch", "micro-batch 2 again", "2"] {
            assert_eq!(text.parse::<LayerMode>(), Err(()), "{text}");
        }
    }
}
