//! Tables of Sailor (SOSP 2025): times by model, kind, micro-batch, tensor degree and layer; sizes by model, tensor degree
//! and layer; rates of links by zone and kind; devices and memory of a machine.
//!
//! They are `profiles_tmp.json`, `llm_info.json`, `multizone_bandwidths_het.json` and `basic_cluster_config.json` of one
//! folder. `communication_cost.json` has the prices of a GB between zones, if there is one. Not used: the sizes of inputs,
//! the sizes in bytes (which repeat the counts), and the rate beside a link's coefficients. `O(kinds · degrees · layers)`.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    source::error::LoadError,
    workload::mixed::{
        DeviceKind, Divided, KindCosts, KindLinks, LayerCost, LinkRate, MixedOrigin, MixedProfile, Reductions, TimeRule,
    },
};

/// Files of the tables, in the order of their texts.
pub const FILES: [&str; 4] =
    ["profiles_tmp.json", "llm_info.json", "multizone_bandwidths_het.json", "basic_cluster_config.json"];

/// Prices of traffic, which a folder may lack.
pub const PRICES: &str = "communication_cost.json";

/// Bytes of a number: Sailor's profiles are of 32-bit training.
const NUMBER: f64 = 4.0;
/// Bytes of state for a parameter: weight, gradient, two moments of Adam, and copies that its memory model counts.
const STATE: f64 = 24.0;
/// Bytes of a device that its memory model keeps free, without and with tensor parallelism.
const RESERVE: [f64; 2] = [2e9, 3e9];
/// Bytes of gradients that are reduced at once.
const BUCKET: f64 = 5e8;

/// Remarks on figures from the tables.
const REMARKS: [&str; 2] = [
    "times and sizes are those of the tables, which hold the effect of the model's sizes, its optimizer and its precision",
    "on 30 runs of Sailor's authors the closed form of its simulator is off by 12 % in the mean and 8 % in the median",
];

/// Model of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SailorModel {
    /// Name in the tables.
    pub name: String,
    /// Layers with the embedding and the head: `num_all_layers` of its training configuration.
    pub layers: usize,
}

type ByKey<T> = BTreeMap<String, T>;
/// By tensor degree and layer: forward, backward and update, seconds.
type TimesByDegree = ByKey<ByKey<[f64; 3]>>;
/// By zone, kind and devices of one end of a link.
type ByEnd<T> = ByKey<ByKey<ByKey<T>>>;

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Sizes {
    params_floats: f64,
    act_output_floats: f64,
    act_mem_floats: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Machine {
    gpus_per_node: u32,
    mem_per_gpu: f64,
}

/// Rate of a link: coefficients, and a rate for large messages that its simulator does not use.
type Rate = ([f64; 3], f64);

/// Entry of the table of machines: a machine of a kind, or the zone.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum MachineEntry {
    Kind(Machine),
    Zone(String),
}

/// Tables of a folder.
#[derive(Debug, PartialEq)]
pub struct SailorTables {
    /// By model, kind and micro-batch.
    times: ByKey<ByKey<ByKey<TimesByDegree>>>,
    /// By model, tensor degree and layer.
    sizes: ByKey<ByKey<ByKey<Sizes>>>,
    /// By sender, then receiver.
    rates: ByEnd<ByEnd<Rate>>,
    machines: ByKey<MachineEntry>,
    /// Price of a GB by zone that sends, then zone that receives.
    prices: ByKey<ByKey<f64>>,
    /// Name of the folder in messages.
    source: String,
}

/// Devices of one kind in a zone.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneDevices {
    /// Kind, as the tables name it, in any case: `a100-40`.
    pub kind: String,
    /// Zone; the tables' own if absent.
    pub zone: Option<String>,
    /// Number of devices.
    pub count: u32,
    /// Price of a device for an hour, in any currency.
    pub price_per_hour: Option<f64>,
}

fn table<T: DeserializeOwned>(text: &[u8], source: &str, name: &str) -> Result<T, LoadError> {
    serde_json::from_slice(text).map_err(|error| {
        LoadError::file(
            &format!("{source}/{name}"),
            format!("is not a table of Sailor: {error}"),
            "use the published file",
        )
    })
}

impl SailorTables {
    /// Tables from the texts of their files, and that of [`PRICES`] if there is one. `source` is the name of their folder in
    /// messages.
    ///
    /// # Errors
    /// [`LoadError`] if one has another form.
    pub fn of(texts: [&[u8]; 4], prices: Option<&[u8]>, source: &str) -> Result<Self, LoadError> {
        let [times, sizes, rates, machines] = texts;
        let prices: ByKey<ByKey<f64>> = prices.map_or(Ok(ByKey::new()), |text| table(text, source, PRICES))?;
        if prices.values().flat_map(ByKey::values).any(|price| *price < 0.0) {
            let problem = format!("has a price below 0 in {PRICES}");
            return Err(LoadError::file(source, problem, "give prices of a GB"));
        }
        Ok(SailorTables {
            times: table(times, source, FILES[0])?,
            sizes: table(sizes, source, FILES[1])?,
            rates: table(rates, source, FILES[2])?,
            machines: table(machines, source, FILES[3])?,
            prices,
            source: source.into(),
        })
    }

    fn error(&self, problem: String, repair: impl Into<String>) -> LoadError {
        LoadError::file(&self.source, problem, repair)
    }

    /// Kinds with times of a model.
    pub fn kinds(&self, model: &str) -> Vec<&String> {
        self.times.get(model).into_iter().flat_map(BTreeMap::keys).collect()
    }

    /// True if the tables have links of a kind in their own zone.
    pub fn links(&self, kind: &str) -> bool {
        self.zone().and_then(|zone| self.rates.get(zone)?.get(kind)).is_some()
    }

    /// Zone of the tables.
    fn zone(&self) -> Option<&str> {
        self.machines.values().find_map(|entry| match entry {
            MachineEntry::Zone(zone) => Some(zone.as_str()),
            MachineEntry::Kind(_) => None,
        })
    }

    /// Costs of a model on these devices.
    ///
    /// # Errors
    /// [`LoadError`] for a model, kind or zone that the tables lack.
    pub fn profile(self: &Arc<Self>, asked: &SailorModel, devices: &[ZoneDevices]) -> Result<MixedProfile, LoadError> {
        let model = asked.name.as_str();
        let listed = |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let (Some(times), Some(sizes)) = (self.times.get(model), self.sizes.get(model)) else {
            let known = listed(self.times.keys().filter(|own| self.sizes.contains_key(*own)).collect());
            return Err(self.error(format!("has no tables for the model `{model}`"), format!("choose one of {known}")));
        };
        let layers = asked.layers;
        let whole = sizes.get("1").ok_or_else(|| {
            self.error(format!("has no sizes of `{model}` for tensor degree 1"), "use the published llm_info.json")
        })?;
        let by_layer = |own: &ByKey<Sizes>, of: fn(&Sizes) -> f64| -> Result<Vec<f64>, LoadError> {
            let size = |layer: usize| own.get(&layer.to_string()).map(of);
            (0..layers).map(size).collect::<Option<_>>().ok_or_else(|| {
                self.error(
                    format!("has no sizes for all {layers} layers of `{model}`"),
                    "use the published llm_info.json",
                )
            })
        };
        let mut profile = MixedProfile {
            kinds: vec![],
            costs: vec![],
            output_bytes: by_layer(whole, |sizes| NUMBER * sizes.act_output_floats)?,
            gradient_bytes: by_layer(whole, |sizes| NUMBER * sizes.params_floats)?,
            links: KindLinks {
                rates: BTreeMap::new(),
                reductions: Reductions::Messages { bucket_bytes: BUCKET },
                prices: BTreeMap::new(),
            },
            rule: TimeRule::Sailor,
            growth: 0.0,
            fixed_s: 0.0,
            exposed: 1.0,
            origin: Some(Box::new(MixedOrigin::Tables { tables: Arc::clone(self), model: asked.clone() })),
            remarks: REMARKS.map(String::from).to_vec(),
        };
        let mut names: Vec<(&str, &str)> = vec![];
        for ZoneDevices { kind, zone, count, price_per_hour } in devices {
            let same = |own: &&String| own.eq_ignore_ascii_case(kind);
            let Some((name, by_size)) = times.keys().find(same).map(|name| (name.as_str(), &times[name])) else {
                let known = listed(times.keys().collect());
                let problem = format!("has no times of `{model}` on `{}`", crate::text::printable(kind));
                return Err(self.error(problem, format!("choose from {known}")));
            };
            let Some(MachineEntry::Kind(machine)) = self.machines.get(name) else {
                return Err(
                    self.error(format!("does not tell the machines of {name}"), "add it to basic_cluster_config.json")
                );
            };
            let id = name.to_ascii_lowercase();
            let id = zone.as_ref().map_or_else(|| id.clone(), |zone| format!("{id}@{zone}"));
            let zone = zone.as_deref().or_else(|| self.zone()).unwrap_or_default();
            let index = profile.kinds.len();
            names.push((zone, name));
            profile.kinds.push(DeviceKind {
                id,
                count: *count,
                machine: machine.gpus_per_node,
                memory_bytes: machine.mem_per_gpu,
                price_per_hour: *price_per_hour,
            });
            for (micro_batch, by_degree) in by_size {
                for (tensor, by_layer) in by_degree {
                    let (Ok(micro_batch), Ok(tensor)) = (micro_batch.parse(), tensor.parse::<u32>()) else { continue };
                    let Some(own) = sizes.get(&tensor.to_string()).filter(|_| tensor <= machine.gpus_per_node) else {
                        continue;
                    };
                    let cost = |layer: usize| {
                        let ([forward_s, backward_s, update_s], size) =
                            (*by_layer.get(&layer.to_string())?, own.get(&layer.to_string())?);
                        let activation_bytes = NUMBER * size.act_mem_floats * f64::from(micro_batch);
                        Some(LayerCost {
                            forward_s,
                            backward_s,
                            update_s: Divided::whole(update_s),
                            state_bytes: Divided::whole(STATE * size.params_floats),
                            activation_bytes,
                        })
                    };
                    let Some(layers) = (0..layers).map(cost).collect() else { continue };
                    let reserve_bytes = RESERVE[usize::from(tensor > 1)];
                    profile.costs.push(KindCosts {
                        kind: index,
                        tensor,
                        micro_batch,
                        recompute: false,
                        layers,
                        reserve_bytes,
                    });
                }
            }
        }
        for (from, &(zone, kind)) in names.iter().enumerate() {
            let senders = self.rates.get(zone).and_then(|kinds| kinds.get(kind));
            let senders = senders
                .ok_or_else(|| self.error(format!("has no links of {kind} in {zone}"), "choose another zone"))?;
            for (to, &(other, receiver)) in names.iter().enumerate() {
                if from != to
                    && let Some(price) = self.prices.get(zone).and_then(|to| to.get(other))
                {
                    profile.links.prices.insert((from, to), *price);
                }
                for (tensor, zones) in senders {
                    for (degree, (coefficients, _)) in
                        zones.get(other).and_then(|kinds| kinds.get(receiver)).into_iter().flatten()
                    {
                        let (Ok(tensor), Ok(degree)) = (tensor.parse(), degree.parse()) else { continue };
                        profile.links.rates.insert(((from, tensor), (to, degree)), LinkRate::Fitted(*coefficients));
                    }
                }
            }
        }
        Ok(profile)
    }
}
