//! Writes plantui's own JSON of layers with costs on several kinds of devices. `O(kinds · degrees · layers)`.

use super::{RawCosts, RawKind, RawLayer, RawLayerCost, RawLink, RawMixedFile, RawRing, SCHEMA};
use crate::{
    source::strict::Object,
    workload::{
        mixed::{DeviceKind, KindCosts, LayerCost, LinkRate, MixedProfile, Reductions, RingRate, Sender, TimeRule},
        node::Node,
        profiled::Workload,
    },
};

/// Text of a file; reading it back gives the same costs.
pub(crate) fn text(workload: &Workload, profile: &MixedProfile) -> String {
    let id = |kind: usize| profile.kinds[kind].id.clone();
    let kind = |kind: &DeviceKind| {
        Object(RawKind {
            id: kind.id.clone(),
            devices: kind.count.into(),
            machine: kind.machine.into(),
            memory: kind.memory_bytes,
            price_per_hour: kind.price_per_hour,
        })
    };
    let layer = |(index, node): (usize, &Node)| {
        Object(RawLayer {
            name: node.name.clone(),
            output_bytes: profile.output_bytes[index],
            gradient_bytes: profile.gradient_bytes[index],
        })
    };
    let cost = |cost: &LayerCost| {
        Object(RawLayerCost {
            forward_s: cost.forward_s,
            backward_s: cost.backward_s,
            update_s: cost.update_s.into(),
            state_bytes: cost.state_bytes.into(),
            activation_bytes: cost.activation_bytes,
        })
    };
    let costs = |costs: &KindCosts| {
        Object(RawCosts {
            kind: id(costs.kind),
            tensor: costs.tensor.into(),
            micro_batch: costs.micro_batch.into(),
            recompute: costs.recompute,
            reserve_bytes: costs.reserve_bytes,
            layers: costs.layers.iter().map(cost).collect(),
        })
    };
    let link = |(&(from, to), &rate): (&(Sender, Sender), &LinkRate)| {
        let (bytes_per_s, latency_s, gb_per_s_fit) = match rate {
            LinkRate::Constant { bytes_per_s, latency_s } => (Some(bytes_per_s), Some(latency_s), None),
            LinkRate::Fitted(fit) => (None, None, Some(fit)),
        };
        Object(RawLink {
            from: id(from.0),
            to: id(to.0),
            tensor: Some([from.1.into(), to.1.into()]),
            bytes_per_s,
            latency_s,
            gb_per_s_fit,
            price_per_gb: profile.links.prices.get(&(from.0, to.0)).copied(),
        })
    };
    let ring = |(&(kind, tensor), ring): (&(usize, u32), &RingRate)| {
        Object(RawRing {
            kind: id(kind),
            tensor: tensor.into(),
            within: ring.within,
            across: ring.across,
            machine: ring.machine.into(),
        })
    };
    let (rings, bucket_bytes) = match &profile.links.reductions {
        Reductions::Messages { bucket_bytes } => (vec![], Some(*bucket_bytes)),
        Reductions::Rings(rings) => (rings.iter().map(ring).collect(), None),
    };
    let made = workload.provenance.as_ref();
    let file = RawMixedFile {
        schema: SCHEMA.into(),
        batch: workload.limits.batch().map(f64::from),
        kinds: profile.kinds.iter().map(kind).collect(),
        layers: workload.nodes.iter().enumerate().map(layer).collect(),
        costs: profile.costs.iter().map(costs).collect(),
        links: profile.links.rates.iter().map(link).collect(),
        rings,
        bucket_bytes,
        rule: (profile.rule == TimeRule::Sailor).then(|| "sailor".into()),
        growth: Some(profile.growth).filter(|growth| *growth > 0.0),
        exposed: Some(profile.exposed).filter(|share| *share < 1.0),
        fixed_s: Some(profile.fixed_s).filter(|seconds| *seconds > 0.0),
        provenance: made.map(|made| made.made_by.clone()),
        assumptions: made.map_or_else(|| profile.remarks.clone(), |made| made.assumptions.clone()),
    };
    serde_json::to_string_pretty(&file).expect("numbers and strings") + "\n"
}
