//! Costs of a chain of layers on several kinds of devices, for clusters that mix them.
//!
//! A kind has a number of devices in machines, their memory and their price. Each layer has times and memory for every
//! kind, tensor degree and micro-batch that was measured or derived. Links between kinds have a rate that depends on the
//! bytes of a message, as measurements show it.

use std::collections::BTreeMap;

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
    /// Price of a device, US dollars per hour, if known.
    pub usd_per_hour: Option<f64>,
}

/// Costs of one layer on one rank, for a microbatch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerCost {
    /// Forward pass, seconds.
    pub forward_s: f64,
    /// Backward pass, seconds.
    pub backward_s: f64,
    /// Optimizer step, seconds.
    pub update_s: f64,
    /// Weights, gradients and optimizer state, bytes.
    pub state_bytes: f64,
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
                bytes / 1e9 / (square * size * size + linear * size + constant)
            }
        }
    }
}

/// Group of devices that sends as one: a kind and the number of its devices.
pub type Sender = (usize, u32);

/// Links between groups of devices.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KindLinks {
    /// Rates by sender and receiver.
    pub rates: BTreeMap<(Sender, Sender), LinkRate>,
    /// Bytes of gradients that are reduced at once.
    pub bucket_bytes: f64,
}

impl KindLinks {
    /// Time of a message between two groups, seconds; infinite without a link.
    pub fn seconds(&self, bytes: f64, from: Sender, to: Sender) -> f64 {
        self.rates.get(&(from, to)).map_or(f64::INFINITY, |rate| rate.seconds(bytes))
    }

    /// Time to reduce gradients over replicas on one kind in a ring, bucket by bucket, seconds.
    pub fn all_reduce_s(&self, bytes: f64, kind: usize, replicas: u32) -> f64 {
        if replicas < 2 {
            return 0.0;
        }
        let bucket = |bytes: f64| {
            let steps = 2.0 * f64::from(replicas - 1);
            steps * self.seconds(bytes / f64::from(replicas), (kind, 1), (kind, 1))
        };
        let (whole, rest) = ((bytes / self.bucket_bytes).floor(), bytes % self.bucket_bytes);
        whole * bucket(self.bucket_bytes) + bucket(rest)
    }
}

/// How the source of a profile counts transfers between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferRule {
    /// A stage sends activations to the next one and gradients to the one before.
    #[default]
    Sends,
    /// The same, but the last stage counts its gradients twice, and so does the first its activations in pipelines of
    /// more than three stages (the simulator of Sailor, SOSP 2025).
    Sailor,
}

impl TransferRule {
    /// Factors on the activations and the gradients that a stage sends for a microbatch, of `stages`.
    pub fn factors(self, stage: usize, stages: usize) -> [f64; 2] {
        let (first, last) = (stage == 0, stage + 1 == stages);
        match self {
            _ if first && last => [0.0, 0.0],
            TransferRule::Sailor if first => [if stages > 3 { 2.0 } else { 1.0 }, 0.0],
            TransferRule::Sailor if last => [0.0, 2.0],
            _ => [f64::from(u8::from(!last)), f64::from(u8::from(!first))],
        }
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
    /// Rule for transfers between stages.
    pub transfers: TransferRule,
}

impl MixedProfile {
    /// Costs on a kind with a tensor degree and a micro-batch, if there are any.
    pub fn costs(&self, kind: usize, tensor: u32, micro_batch: u32) -> Option<&KindCosts> {
        let asked = |costs: &&KindCosts| (costs.kind, costs.tensor, costs.micro_batch) == (kind, tensor, micro_batch);
        self.costs.iter().find(asked)
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
        let links = KindLinks { rates: [(((0, 1), (0, 1)), rate)].into(), bucket_bytes: 4e9 };
        // Three quarters of the bytes, twice.
        assert_eq!(links.all_reduce_s(10e9, 0, 4), 15.0);
        assert_eq!(links.all_reduce_s(10e9, 0, 1), 0.0);
        assert_eq!(links.seconds(1.0, (0, 1), (1, 1)), f64::INFINITY);
    }

    #[test]
    fn sailor_counts_the_ends_of_a_long_pipeline_twice() {
        let rule =
            |rule: TransferRule, stages| -> Vec<[f64; 2]> { (0..stages).map(|i| rule.factors(i, stages)).collect() };
        assert_eq!(rule(TransferRule::Sends, 3), [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]);
        assert_eq!(rule(TransferRule::Sailor, 3), [[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]);
        assert_eq!(rule(TransferRule::Sailor, 4)[0], [2.0, 0.0]);
        assert_eq!(rule(TransferRule::Sailor, 1), [[0.0, 0.0]]);
    }
}
