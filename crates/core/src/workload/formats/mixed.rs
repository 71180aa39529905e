//! plantui's own JSON of layers with costs on several kinds of devices.
//!
//! ```text
//! { "schema": "plantui.mixed/1", "batch": 1024,
//!   "kinds": [{"id": "a100-40", "devices": 32, "machine": 8, "memory": 4e10, "price_per_hour": 3.67}, ..],
//!   "layers": [{"name": "embedding", "output_bytes": 8e6, "gradient_bytes": 2e8}, ..],
//!   "costs": [{"kind": "a100-40", "tensor": 1, "micro_batch": 1,
//!              "layers": [{"forward_s": 1e-3, "backward_s": 2e-3, "state_bytes": 9e8, "activation_bytes": 8e6}, ..]}, ..],
//!   "links": [{"from": "a100-40", "to": "a100-40", "bytes_per_s": 1e10}, ..] }
//! ```
//!
//! A row of `costs` has the times and memory of all layers on one kind with one tensor degree and micro-batch; plans use
//! the kinds, degrees and micro-batches that have rows. `update_s` and `state_bytes` are numbers, or objects with the part
//! that is `whole` on each replica and the part that is `divided` over them. A link holds for all tensor degrees, or for
//! the two in `tensor`; a link from a kind to itself is between its machines, and carries reductions unless `rings` has
//! rates for them. `O(kinds · degrees · layers)`.

mod write;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    format::WorkloadFormat,
    reader::{WorkloadReader, parse, unknown_fields},
};
use crate::{
    cluster::{GivenLimits, LimitKind, MOST_BATCH, MOST_DEVICES},
    graph::Dag,
    source::{LoadError, error::printable, strict::Object},
    workload::{
        mixed::{
            DeviceKind, Divided, KindCosts, KindLinks, LayerCost, LinkRate, LinkRates, MOST_KINDS, MixedProfile,
            Reductions, RingRate, TimeRule,
        },
        node::{Node, NodeId},
        profiled::{Profile, Provenance, Workload},
    },
};

pub(crate) use write::text;

/// Required value of `schema`.
pub const SCHEMA: &str = "plantui.mixed/1";

/// Most layers of a file.
const MOST_LAYERS: usize = 256;
/// Most sequences of a microbatch.
const MOST_MICRO_BATCH: f64 = 65_536.0;
/// Bytes of gradients that are reduced at once, unless the file says otherwise.
const USUAL_BUCKET: f64 = 5e8;

/// Layers with costs on several kinds of devices.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawMixedFile {
    /// Always `plantui.mixed/1`.
    schema: String,
    /// Sequences of an iteration, over all devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<f64>,
    /// Kinds of devices.
    kinds: Vec<Object<RawKind>>,
    /// Layers in order.
    layers: Vec<Object<RawLayer>>,
    /// Costs of all layers on a kind with a tensor degree and a micro-batch.
    costs: Vec<Object<RawCosts>>,
    /// Links between the kinds.
    links: Vec<Object<RawLink>>,
    /// Rates of the rings that reduce gradients, by kind and tensor degree. Absent: reductions are messages on the links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rings: Vec<Object<RawRing>>,
    /// Bytes of gradients that are reduced at once, as messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket_bytes: Option<f64>,
    /// Rules of the iteration's closed form: `stages`, or `sailor` for those of Sailor's simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Share of all times that every doubling of the devices beyond eight adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<f64>,
    /// Time of an iteration that nothing changes, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed_s: Option<f64>,
    /// Share of a transfer that no pass hides, above 0; 1 by default. The times of the links are those of that share.
    #[serde(skip_serializing_if = "Option::is_none")]
    exposed: Option<f64>,
    /// Command that made the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    provenance: Option<String>,
    /// Assumptions of the figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    assumptions: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawKind {
    /// Name of the kind.
    id: String,
    /// Number of devices.
    devices: f64,
    /// Devices of a machine; tensor degrees divide it.
    machine: f64,
    /// Memory of a device, bytes.
    memory: f64,
    /// Price of a device for an hour, in any currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    price_per_hour: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawLayer {
    /// Name of the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Bytes that it hands to the next layer, for one sequence.
    output_bytes: f64,
    /// Bytes of its gradients, undivided.
    gradient_bytes: f64,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawCosts {
    /// Name of the kind.
    kind: String,
    /// Tensor degree, a power of two.
    tensor: f64,
    /// Sequences of a microbatch.
    micro_batch: f64,
    /// True if backward passes recompute activations.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    recompute: bool,
    /// Bytes of a device that no layer may use.
    #[serde(default)]
    reserve_bytes: f64,
    /// Costs of every layer, in order.
    layers: Vec<Object<RawLayerCost>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawLayerCost {
    /// Forward pass of a microbatch, seconds.
    forward_s: f64,
    /// Backward pass of a microbatch, recomputation included, seconds.
    backward_s: f64,
    /// Optimizer step, seconds.
    #[serde(default)]
    update_s: RawAmount,
    /// Weights, gradients and optimizer state, bytes.
    state_bytes: RawAmount,
    /// Activations of a microbatch, bytes.
    activation_bytes: f64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
enum RawAmount {
    /// Amount on each replica.
    Whole(f64),
    /// Amount of which replicas divide a part.
    Divided {
        /// Part that each replica has.
        whole: f64,
        /// Part that they divide.
        divided: f64,
    },
}

impl Default for RawAmount {
    fn default() -> Self {
        RawAmount::Whole(0.0)
    }
}

impl From<Divided> for RawAmount {
    fn from(amount: Divided) -> Self {
        match amount {
            Divided { whole, divided: 0.0 } => RawAmount::Whole(whole),
            Divided { whole, divided } => RawAmount::Divided { whole, divided },
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawLink {
    /// Kind that sends.
    from: String,
    /// Kind that receives.
    to: String,
    /// Tensor degrees of both ends; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    tensor: Option<[f64; 2]>,
    /// Bandwidth of a message, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_s: Option<f64>,
    /// Latency of a message, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_s: Option<f64>,
    /// GB/s as a polynomial in the binary logarithm of the message's megabytes, highest power first.
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_per_s_fit: Option<[f64; 3]>,
    /// Price of a GB, in the currency of `price_per_hour`. All links from a kind to another have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price_per_gb: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawRing {
    /// Name of the kind.
    kind: String,
    /// Tensor degree.
    tensor: f64,
    /// Rate of a device while the stage is in one machine, bytes per second.
    within: f64,
    /// Rate if it is in several, bytes per second.
    across: f64,
    /// Devices of that machine.
    machine: f64,
}

const TOP_LEVEL: [&str; 14] = [
    "schema",
    "batch",
    "kinds",
    "layers",
    "costs",
    "links",
    "rings",
    "bucket_bytes",
    "rule",
    "growth",
    "fixed_s",
    "exposed",
    "provenance",
    "assumptions",
];

/// Schema of the file.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> crate::schemas::DocumentSchema {
    crate::schemas::DocumentSchema::read::<RawMixedFile>(SCHEMA)
}

/// File being read, with the kinds that it names.
struct Reader<'a> {
    of: WorkloadReader<'a>,
    kinds: Vec<DeviceKind>,
}

impl Reader<'_> {
    fn positive(&self, value: f64, path: &str) -> Result<f64, LoadError> {
        match self.of.not_negative(value, || path.into())? {
            0.0 => Err(self.of.error(path, "is 0, must be above 0", "")),
            value => Ok(value),
        }
    }

    fn not_negative(&self, value: f64, path: &str) -> Result<f64, LoadError> {
        self.of.not_negative(value, || path.into())
    }

    fn count(&self, value: f64, least: f64, most: f64, path: &str) -> Result<u32, LoadError> {
        if value.fract() == 0.0 && (least..=most).contains(&value) {
            return Ok(value as u32);
        }
        Err(self.of.error(path, format!("is {value}, must be a whole number from {least} to {most}"), ""))
    }

    fn kind(&self, id: &str, path: &str) -> Result<usize, LoadError> {
        self.kinds.iter().position(|kind| kind.id == id).ok_or_else(|| {
            let known: Vec<&str> = self.kinds.iter().map(|kind| kind.id.as_str()).collect();
            self.of.error(path, format!("is `{}`", printable(id)), format!("name one of {}", known.join(", ")))
        })
    }

    fn degree(&self, value: f64, kind: usize, path: &str) -> Result<u32, LoadError> {
        let machine = self.kinds[kind].machine;
        let degree = self.count(value, 1.0, f64::from(MOST_DEVICES), path)?;
        if degree.is_power_of_two() && machine.is_multiple_of(degree) {
            return Ok(degree);
        }
        let id = &self.kinds[kind].id;
        let problem = format!("is {degree}, and a machine of {id} has {machine} devices");
        Err(self.of.error(path, problem, "give a power of two that divides the machine"))
    }

    fn amount(&self, raw: RawAmount, path: &str) -> Result<Divided, LoadError> {
        let (whole, divided) = match raw {
            RawAmount::Whole(whole) => (whole, 0.0),
            RawAmount::Divided { whole, divided } => (whole, divided),
        };
        Ok(Divided { whole: self.not_negative(whole, path)?, divided: self.not_negative(divided, path)? })
    }

    fn read_kinds(&mut self, raw: &[Object<RawKind>]) -> Result<(), LoadError> {
        if raw.is_empty() || raw.len() > MOST_KINDS {
            let problem = format!("has {} kinds of devices, must have 1 to {MOST_KINDS}", raw.len());
            return Err(self.of.error("kinds", problem, ""));
        }
        for (i, Object(raw)) in raw.iter().enumerate() {
            let at = |field: &str| format!("kinds[{i}].{field}");
            let id = printable(raw.id.trim());
            if id.is_empty() || id.contains(',') || self.kinds.iter().any(|kind| kind.id.eq_ignore_ascii_case(&id)) {
                return Err(self.of.error(&at("id"), format!("is `{id}`"), "give each kind a name of its own"));
            }
            let most = f64::from(MOST_DEVICES);
            let kind = DeviceKind {
                id,
                count: self.count(raw.devices, 0.0, most, &at("devices"))?,
                machine: self.count(raw.machine, 1.0, most, &at("machine"))?,
                memory_bytes: self.positive(raw.memory, &at("memory"))?,
                price_per_hour: raw
                    .price_per_hour
                    .map(|price| self.not_negative(price, &at("price_per_hour")))
                    .transpose()?,
            };
            self.kinds.push(kind);
        }
        Ok(())
    }

    fn costs(&self, i: usize, raw: &RawCosts, layers: usize) -> Result<KindCosts, LoadError> {
        let at = |field: &str| format!("costs[{i}].{field}");
        let kind = self.kind(&raw.kind, &at("kind"))?;
        if raw.layers.len() != layers {
            let problem = format!("has costs of {} layers, and the file has {layers}", raw.layers.len());
            return Err(self.of.error(&at("layers"), problem, "give the costs of every layer"));
        }
        let cost = |(j, Object(raw)): (usize, &Object<RawLayerCost>)| {
            let at = |field: &str| format!("costs[{i}].layers[{j}].{field}");
            Ok(LayerCost {
                forward_s: self.not_negative(raw.forward_s, &at("forward_s"))?,
                backward_s: self.not_negative(raw.backward_s, &at("backward_s"))?,
                update_s: self.amount(raw.update_s, &at("update_s"))?,
                state_bytes: self.amount(raw.state_bytes, &at("state_bytes"))?,
                activation_bytes: self.not_negative(raw.activation_bytes, &at("activation_bytes"))?,
            })
        };
        Ok(KindCosts {
            kind,
            tensor: self.degree(raw.tensor, kind, &at("tensor"))?,
            micro_batch: self.count(raw.micro_batch, 1.0, MOST_MICRO_BATCH, &at("micro_batch"))?,
            recompute: raw.recompute,
            layers: raw.layers.iter().enumerate().map(cost).collect::<Result<_, LoadError>>()?,
            reserve_bytes: self.not_negative(raw.reserve_bytes, &at("reserve_bytes"))?,
        })
    }

    fn rate(&self, i: usize, raw: &RawLink) -> Result<LinkRate, LoadError> {
        let at = |field: &str| format!("links[{i}].{field}");
        match (raw.bytes_per_s, raw.gb_per_s_fit) {
            (Some(rate), None) => Ok(LinkRate::Constant {
                bytes_per_s: self.positive(rate, &at("bytes_per_s"))?,
                latency_s: self.not_negative(raw.latency_s.unwrap_or(0.0), &at("latency_s"))?,
            }),
            (None, Some(fit)) if fit.iter().all(|own| own.is_finite()) => Ok(LinkRate::Fitted(fit)),
            _ => {
                let repair = "give bytes_per_s, or three numbers in gb_per_s_fit";
                Err(self.of.error(&format!("links[{i}]"), "needs one rate", repair))
            }
        }
    }
}

/// Reads and validates a file of this format. `source` is its name in messages, `name` its name on the screen.
///
/// # Errors
/// [`LoadError`] that names file, line, JSON path and repair.
pub fn read(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let raw: RawMixedFile = parse(text, source)?;
    let mut reader = Reader { of: WorkloadReader { source, text }, kinds: vec![] };
    if raw.schema != SCHEMA {
        let problem = format!("is `{}`", printable(&raw.schema));
        return Err(reader.of.error("schema", problem, format!("this version reads {SCHEMA}")));
    }
    reader.read_kinds(&raw.kinds)?;
    if raw.layers.is_empty() || raw.layers.len() > MOST_LAYERS {
        let problem = format!("has {} layers, must have 1 to {MOST_LAYERS}", raw.layers.len());
        return Err(reader.of.error("layers", problem, ""));
    }
    let by_layer = |field: &str, of: fn(&RawLayer) -> f64| {
        let value = |(i, Object(raw)): (usize, &Object<RawLayer>)| {
            reader.not_negative(of(raw), &format!("layers[{i}].{field}"))
        };
        raw.layers.iter().enumerate().map(value).collect::<Result<Vec<f64>, LoadError>>()
    };
    let (output_bytes, gradient_bytes) =
        (by_layer("output_bytes", |raw| raw.output_bytes)?, by_layer("gradient_bytes", |raw| raw.gradient_bytes)?);
    let mut costs: Vec<KindCosts> = vec![];
    for (i, Object(raw)) in raw.costs.iter().enumerate() {
        let own = reader.costs(i, raw, output_bytes.len())?;
        let key = |costs: &KindCosts| (costs.kind, costs.tensor, costs.micro_batch, costs.recompute);
        if let Some(first) = costs.iter().position(|other| key(other) == key(&own)) {
            let problem = format!("has the kind, degree, micro-batch and recomputation of costs[{first}]");
            return Err(reader.of.error(&format!("costs[{i}]"), problem, "keep one of them"));
        }
        costs.push(own);
    }
    if costs.is_empty() {
        return Err(reader.of.error("costs", "is empty", "give the costs of the layers on every kind"));
    }
    let links = KindLinks {
        rates: rates(&reader, &raw, &costs)?,
        reductions: reductions(&reader, &raw)?,
        prices: prices(&reader, &raw)?,
    };
    let rule = match raw.rule.as_deref() {
        None | Some("stages") => TimeRule::Stages,
        Some("sailor") => TimeRule::Sailor,
        Some(other) => {
            return Err(reader.of.error("rule", format!("is `{}`", printable(other)), "must be stages or sailor"));
        }
    };
    let divided = |layer: &LayerCost| layer.state_bytes.divided > 0.0 || layer.update_s.divided > 0.0;
    if rule == TimeRule::Sailor && costs.iter().flat_map(|costs| &costs.layers).any(divided) {
        let problem = "is sailor, whose replicas divide nothing, and the file has divided amounts";
        return Err(reader.of.error("rule", problem, "give whole amounts, or the rule stages"));
    }
    for costs in &costs {
        let (kind, own) = (&reader.kinds[costs.kind].id, (costs.kind, 1));
        let reduces = match &links.reductions {
            Reductions::Messages { .. } => links.rates.contains_key(&(own, own)),
            Reductions::Rings(rings) => rings.contains_key(&(costs.kind, costs.tensor)),
        };
        if !reduces {
            let problem = format!("have no rate with which replicas on {kind} reduce gradients");
            return Err(reader.of.error("links", problem, format!("give a link from {kind} to itself, or its rings")));
        }
    }
    let growth = reader.not_negative(raw.growth.unwrap_or(0.0), "growth")?;
    let fixed_s = reader.not_negative(raw.fixed_s.unwrap_or(0.0), "fixed_s")?;
    let exposed = reader.not_negative(raw.exposed.unwrap_or(1.0), "exposed")?;
    if exposed == 0.0 || exposed > 1.0 {
        return Err(reader.of.error("exposed", format!("is {exposed}"), "give a share above 0 and at most 1"));
    }
    let batch = raw.batch.map(|batch| reader.count(batch, 1.0, f64::from(MOST_BATCH), "batch")).transpose()?;
    let names = raw.layers.iter().map(|Object(layer)| layer.name.as_deref().map(printable)).collect();
    let kinds = std::mem::take(&mut reader.kinds);
    let profile = MixedProfile {
        kinds,
        costs,
        output_bytes,
        gradient_bytes,
        links,
        rule,
        growth,
        fixed_s,
        exposed,
        origin: None,
        remarks: vec![],
    };
    let made_by = raw.provenance.as_deref().map(printable);
    let assumptions = raw.assumptions.iter().map(|taken| printable(taken)).collect();
    Ok(Workload {
        provenance: made_by.map(|made_by| Provenance { made_by, assumptions }),
        unknown_fields: unknown_fields(text, &TOP_LEVEL),
        ..workload(profile, names, batch, (name, source, WorkloadFormat::Mixed))
    })
}

/// Rates by both ends, each with a tensor degree that has costs.
fn rates(reader: &Reader<'_>, raw: &RawMixedFile, costs: &[KindCosts]) -> Result<LinkRates, LoadError> {
    let degrees = |kind: usize| -> BTreeSet<u32> {
        let own = costs.iter().filter(|costs| costs.kind == kind).map(|costs| costs.tensor);
        // Messages of reductions are between single devices.
        own.chain([1]).collect()
    };
    let mut rates = BTreeMap::new();
    for (i, Object(link)) in raw.links.iter().enumerate() {
        let (from, to) =
            (reader.kind(&link.from, &format!("links[{i}].from"))?, reader.kind(&link.to, &format!("links[{i}].to"))?);
        let rate = reader.rate(i, link)?;
        let (senders, receivers) = match link.tensor {
            None => (degrees(from), degrees(to)),
            Some([sends, receives]) => {
                let path = format!("links[{i}].tensor");
                let one = |value, kind| Ok(BTreeSet::from([reader.degree(value, kind, &path)?]));
                (one(sends, from)?, one(receives, to)?)
            }
        };
        for &sends in &senders {
            for &receives in &receivers {
                rates.insert(((from, sends), (to, receives)), rate);
            }
        }
    }
    Ok(rates)
}

/// Prices of a GB by both ends.
fn prices(reader: &Reader<'_>, raw: &RawMixedFile) -> Result<BTreeMap<(usize, usize), f64>, LoadError> {
    let mut prices = BTreeMap::new();
    for (i, Object(link)) in raw.links.iter().enumerate() {
        let path = format!("links[{i}].price_per_gb");
        let Some(price) = link.price_per_gb else { continue };
        let price = reader.not_negative(price, &path)?;
        let ends = (reader.kind(&link.from, &path)?, reader.kind(&link.to, &path)?);
        if ends.0 == ends.1 && price > 0.0 {
            let problem = "is the price of traffic within a kind, which plans do not count";
            return Err(reader.of.error(&path, problem, "leave it out, or make two places two kinds"));
        }
        if prices.insert(ends, price).is_some_and(|other| other != price) {
            let problem = format!("differs from the price of another link from {} to {}", link.from, link.to);
            return Err(reader.of.error(&path, problem, "give both the same"));
        }
    }
    Ok(prices)
}

fn reductions(reader: &Reader<'_>, raw: &RawMixedFile) -> Result<Reductions, LoadError> {
    if raw.rings.is_empty() {
        let bucket_bytes = reader.positive(raw.bucket_bytes.unwrap_or(USUAL_BUCKET), "bucket_bytes")?;
        return Ok(Reductions::Messages { bucket_bytes });
    }
    let mut rings = BTreeMap::new();
    for (i, Object(ring)) in raw.rings.iter().enumerate() {
        let at = |field: &str| format!("rings[{i}].{field}");
        let kind = reader.kind(&ring.kind, &at("kind"))?;
        let tensor = reader.degree(ring.tensor, kind, &at("tensor"))?;
        let rate = RingRate {
            within: reader.positive(ring.within, &at("within"))?,
            across: reader.positive(ring.across, &at("across"))?,
            machine: reader.count(ring.machine, 1.0, f64::from(MOST_DEVICES), &at("machine"))?,
        };
        rings.insert((kind, tensor), rate);
    }
    Ok(Reductions::Rings(rings))
}

/// Workload of a chain of layers with these costs. Layers without a name have their number.
pub(super) fn workload(
    profile: MixedProfile,
    names: Vec<Option<String>>,
    batch: Option<u32>,
    (name, source, format): (&str, &str, WorkloadFormat),
) -> Workload {
    let count = names.len();
    let node = |(index, name): (usize, Option<String>)| Node { id: NodeId(index as i64), name };
    let edges: Vec<(u32, u32)> = (1..count as u32).map(|node| (node - 1, node)).collect();
    let devices = Some(profile.devices()).filter(|&devices| devices > 0);
    Workload {
        name: name.into(),
        source: source.into(),
        format,
        nodes: names.into_iter().enumerate().map(node).collect(),
        dag: Dag::new(count, edges).expect("a chain has no cycle"),
        limits: GivenLimits::default().maybe(LimitKind::Devices, devices).maybe(LimitKind::Batch, batch),
        profile: Profile::Mixed(Box::new(profile)),
        provenance: None,
        recipe: None,
        unknown_fields: vec![],
    }
}
