//! Costs of a model on several kinds of accelerators, from their data sheets.
//!
//! Each kind has the times, memory and links of runs on it alone, for every tensor degree within a
//! machine, for micro-batches of 1, 2, 4 and 8 sequences, with the activations kept or recomputed. Transfers between
//! stages leave the machine, and the slower of both ends sets their rate, or the link between the kinds or places if it
//! is given. A kind in another place is a kind of its own. `O(kinds · degrees · layers)`.
//!
//! Half of each transfer and the usual share of a reduction are exposed, as in runs on one kind. No published run on
//! several kinds was compared.

use std::collections::BTreeMap;

use super::{
    Layout, Projection, Recompute, TrainingRun, check,
    iteration::Parameters,
    layer::RunRates,
    memory::{self, layer_bytes, layer_input},
    repeated::Repeated,
};
use crate::family::kinds::KindCount;
use crate::units;
use crate::workload::{
    TrainingProfile,
    mixed::{
        DeviceKind, Divided, KindCosts, KindLinks, LayerCost, LinkRate, MixedOrigin, MixedProfile, Reductions,
        RingRate, TimeRule,
    },
    training::{Accelerator, Constants, TrainingSettings},
};

/// Micro-batches that are derived, sequences.
const MICRO_BATCHES: [u32; 4] = [1, 2, 4, 8];
/// Share of a transfer between stages that no pass hides.
const EXPOSED_TRANSFER: f64 = 0.5;
/// Bytes of a ring per bytes of its reduction, over those of the weights in 16 bits: gradients in 32 bits are reduced,
/// and weights in 16 bits are gathered.
const RING_BYTES: f64 = 3.0;

/// Costs of a model on kinds of accelerators, each with its number of devices.
///
/// # Errors
/// A sentence, if the model or its settings are not planned on several kinds, or no kind can run it.
pub fn profile(model: &TrainingProfile, kinds: &[(Accelerator, KindCount)]) -> Result<MixedProfile, String> {
    suits(model)?;
    places_suit(&model.settings, kinds)?;
    let own = |accelerator: &Accelerator| match accelerator.id == model.accelerator.id {
        true => model.constants,
        false => Constants::shipped(accelerator.generation, model.stack),
    };
    let constants: Vec<Constants> = kinds.iter().map(|(accelerator, _)| own(accelerator)).collect();
    let largest = |of: fn(&Constants) -> f64| constants.iter().map(of).fold(0.0, f64::max);
    let mut profile = MixedProfile {
        kinds: kinds.iter().map(|(accelerator, kind)| device_kind(accelerator, kind)).collect(),
        costs: vec![],
        output_bytes: vec![layer_input(&model.model, &run(model, 1, 1, false)); model.nodes()],
        gradient_bytes: gradient_bytes(model),
        links: KindLinks {
            rates: BTreeMap::new(),
            reductions: Reductions::Rings(BTreeMap::new()),
            prices: BTreeMap::new(),
        },
        rule: TimeRule::Stages,
        growth: largest(|own| own.growth),
        fixed_s: largest(|own| own.fixed_s),
        exposed: EXPOSED_TRANSFER,
        origin: Some(Box::new(MixedOrigin::Model(Box::new(model.clone())))),
        remarks: vec![
            "times on each kind are those of its data sheet; no run on several kinds was compared with them".into(),
            transfers_told(&model.settings),
        ],
    };
    let mut refusal = None;
    let mut ends: Vec<((usize, u32), f64, f64)> = vec![];
    let mut rings = BTreeMap::new();
    for (kind, ((accelerator, asked), constants)) in kinds.iter().zip(&constants).enumerate() {
        let machine = accelerator.machine();
        let degrees = (0..).map(|bits| 1u32 << bits).take_while(|&tensor| tensor <= machine.min(asked.count.max(1)));
        for tensor in degrees.filter(|&tensor| machine.is_multiple_of(tensor)) {
            if let Err(error) =
                check::check(&model.model, &run(model, tensor, 1, false), accelerator, u64::from(tensor))
            {
                refusal = refusal.or(Some(format!("{}: {}", accelerator.id, error.problem)));
                continue;
            }
            for micro_batch in MICRO_BATCHES {
                for recompute in [false, true] {
                    let run = run(model, tensor, micro_batch, recompute);
                    let rates = RunRates::new(&model.model, &run, accelerator, constants);
                    profile.costs.push(costs(model, &run, &rates, kind));
                }
            }
            let run = run(model, tensor, 1, false);
            let rates = RunRates::new(&model.model, &run, accelerator, constants);
            let exposed = if run.settings.dp_overlap { constants.data_exposed } else { 1.0 };
            let across = rates.reduction(f64::from(accelerator.domain) + 1.0) / exposed;
            rings.insert(
                (kind, tensor),
                RingRate { within: rates.reduction(1.0) / exposed, across, machine: accelerator.domain },
            );
            // A rank of the tensor group sends its part.
            let rate = f64::from(tensor) * constants.links * accelerator.outer_link / EXPOSED_TRANSFER;
            ends.push(((kind, tensor), rate, constants.hop_s * EXPOSED_TRANSFER));
        }
    }
    if profile.costs.is_empty() {
        return Err(refusal.unwrap_or_else(|| "there are no devices".into()));
    }
    for &(from, from_rate, from_s) in &ends {
        for &(to, to_rate, to_s) in &ends {
            let settings = &model.settings;
            let apart = kinds[from.0].1.place() != kinds[to.0].1.place();
            let between = match apart && settings.between_places > 0.0 {
                true => settings.between_places,
                false if from.0 != to.0 => settings.between_kinds,
                false => 0.0,
            };
            let both = f64::from(from.1.min(to.1)) / EXPOSED_TRANSFER;
            let between = if between > 0.0 { both * between } else { f64::INFINITY };
            let bytes_per_s = from_rate.min(to_rate).min(between);
            let mut latency_s = from_s.max(to_s);
            if apart {
                latency_s = latency_s.max(settings.places_latency_s * EXPOSED_TRANSFER);
                profile.links.prices.insert((from.0, to.0), settings.traffic_price);
            }
            profile.links.rates.insert((from, to), LinkRate::Constant { bytes_per_s, latency_s });
        }
    }
    profile.links.reductions = Reductions::Rings(rings);
    Ok(profile)
}

/// Refuses models and settings whose costs do not follow from layers alone.
fn suits(profile: &TrainingProfile) -> Result<(), String> {
    let settings = &profile.settings;
    let refused = [
        (profile.model.has_experts(), "mixtures of experts are"),
        (profile.model.prediction_layers > 0, "layers that predict further tokens are"),
        (settings.adapter.is_some(), "adapters are"),
        (
            settings.fsdp || settings.shard_gradients,
            "division of gradients and weights over replicas (zero2, zero3) is",
        ),
        (settings.parameter_offload || settings.activation_offload > 0, "offload of weights and activations is"),
    ];
    match refused.into_iter().find(|(holds, _)| *holds) {
        Some((_, what)) => Err(format!("{what} planned on one kind of device alone: leave one kind in --devices")),
        None => Ok(()),
    }
}

/// True unless a setting joins kinds or places of which there is one among these.
pub fn joins_some(setting: &str, kinds: &[KindCount]) -> bool {
    let several_places = || kinds.iter().any(|kind| kind.place() != kinds[0].place());
    match setting {
        "between_kinds" => kinds.len() > 1,
        "between_places" | "latency_between_places" | "traffic_price" => several_places(),
        _ => true,
    }
}

/// Refuses settings that join kinds or places where there is one, and a price of traffic without those of the devices.
fn places_suit(settings: &TrainingSettings, kinds: &[(Accelerator, KindCount)]) -> Result<(), String> {
    let counts: Vec<KindCount> = kinds.iter().map(|(_, kind)| kind.clone()).collect();
    if settings.between_kinds > 0.0 && !joins_some("between_kinds", &counts) {
        return Err("between_kinds is for several kinds of devices, and there is one: leave it out".into());
    }
    let of_places = [
        ("between_places", settings.between_places),
        ("latency_between_places", settings.places_latency_s),
        ("traffic_price", settings.traffic_price),
    ];
    let Some((name, _)) = of_places.into_iter().find(|(_, value)| *value > 0.0) else { return Ok(()) };
    if !joins_some(name, &counts) {
        return Err(format!(
            "{name} is for several places, and there is one: write --devices 16xh100@east,16xh100@west"
        ));
    }
    match kinds.iter().find(|(_, kind)| settings.traffic_price > 0.0 && kind.count > 0 && kind.price_per_hour.is_none())
    {
        Some((_, KindCount { id, count, .. })) => Err(format!(
            "traffic_price is a part of the cost, and {id} has no price: write --devices {count}x{id}:PRICE, for an hour"
        )),
        None => Ok(()),
    }
}

/// Remark on transfers between stages.
fn transfers_told(settings: &TrainingSettings) -> String {
    let of = |rate: f64, what: &str| {
        (rate > 0.0).then(|| format!("{} a device between {what}", units::bandwidth_exact(rate)))
    };
    let given = [of(settings.between_kinds, "kinds"), of(settings.between_places, "places")];
    let given: Vec<String> = given.into_iter().flatten().collect();
    let rate = match given.is_empty() {
        true => "at the rate of the slower end".into(),
        false => format!("at most at {}", given.join(" and ")),
    };
    let latency = match settings.places_latency_s {
        0.0 => String::new(),
        latency_s => format!(", {} of latency between places", units::seconds(latency_s)),
    };
    format!("transfers between stages leave the machine, {rate}{latency}, and half of each is exposed")
}

fn device_kind(accelerator: &Accelerator, kind: &KindCount) -> DeviceKind {
    DeviceKind {
        id: if kind.place().is_some() { kind.id.clone() } else { accelerator.id.into() },
        count: kind.count,
        machine: accelerator.machine(),
        memory_bytes: accelerator.memory_bytes,
        price_per_hour: kind.price_per_hour,
    }
}

/// Run of one stage's rank: the degrees that its layers' costs depend on.
fn run(profile: &TrainingProfile, tensor: u32, micro_batch: u32, recompute: bool) -> TrainingRun {
    let layout = Layout { tensor, micro_batch, ..Layout::ONE };
    let mut run = profile
        .run(&profile.configuration(layout, if recompute { Recompute::Full } else { Recompute::None }), micro_batch);
    run.settings.sequence_parallel &= tensor > 1;
    run.settings.tp_overlap &= run.settings.sequence_parallel;
    // Layers cost the same whatever joins the kinds.
    run.settings.forget_kinds();
    run
}

/// Bytes of every node's part of a ring, undivided.
fn gradient_bytes(profile: &TrainingProfile) -> Vec<f64> {
    let run = run(profile, 1, 1, false);
    parameters(profile, &run).into_iter().map(|count| RING_BYTES * count).collect()
}

/// Parameters on a rank, by node: the embedding, the layers, the head. A tied head has a copy of the table.
fn parameters(profile: &TrainingProfile, run: &TrainingRun) -> Vec<f64> {
    let (model, tensor) = (&profile.model, f64::from(run.layout.tensor));
    let ends = &model.ends;
    let table = (ends.vocabulary * ends.token_width) as f64 / tensor;
    let kinds = Parameters::by_kind(model, run);
    let layers = model.layers.iter().map(|&kind| {
        let own = kinds[usize::from(kind)];
        own.shared + own.experts
    });
    let first = table + (ends.positions * model.hidden) as f64;
    let last = if ends.projection == Projection::None { 0.0 } else { table };
    [first].into_iter().chain(layers).chain([last]).collect()
}

/// Costs of all nodes on a kind.
fn costs(profile: &TrainingProfile, run: &TrainingRun, rates: &RunRates<'_>, kind: usize) -> KindCosts {
    let (model, settings) = (&profile.model, &run.settings);
    let repeated = if run.recompute == Recompute::Full { Repeated::Whole } else { Repeated::NOTHING };
    let times: Vec<[f64; 2]> = model
        .kinds
        .iter()
        .map(|own| {
            let time = rates.layer(own, repeated);
            [time.forward.total(), time.backward.total() + time.again.total()]
        })
        .collect();
    let kept: Vec<f64> = model.kinds.iter().map(|own| layer_bytes(model, run, own)).collect();
    let again = run.recompute == Recompute::Full;
    let input = layer_input(model, run);
    let counts = parameters(profile, run);
    let (weight, wide) = (f64::from(settings.gradient_bytes), run.element_bytes());
    let state = f64::from(settings.master_bytes + 2 * settings.moment_bytes);
    let state = if wide > 2.0 { state - f64::from(settings.master_bytes) } else { state };
    let state = if settings.optimizer_offload { 0.0 } else { state };
    let divided = |whole: f64, optimizer: f64| match settings.distributed_optimizer {
        true => Divided { whole, divided: optimizer },
        false => Divided::whole(whole + optimizer),
    };
    // The optimizer reads and writes its state, and gradients are unpacked before.
    let steps = 2.0 * f64::from(settings.master_bytes + 2 * settings.moment_bytes) + 2.0;
    let last = counts.len() - 1;
    let running = model
        .kinds
        .iter()
        .zip(Parameters::by_kind(model, run))
        .map(|(own, parameters)| memory::running(model, run, own, &parameters))
        .fold(0.0, f64::max);
    let node = |(index, &count): (usize, &f64)| {
        let [forward_s, backward_s] = match index {
            0 => [1.0, 2.0].map(|part| rates.embedding() * part / 3.0),
            _ if index == last => rates.head(),
            _ => times[usize::from(model.layers[index - 1])],
        };
        let mut state_bytes = divided((wide + weight) * count, state * count);
        if index == last {
            state_bytes.whole += (memory::loss_bytes(model, run) - running).max(0.0);
        }
        LayerCost {
            forward_s,
            backward_s,
            update_s: divided(8.0 * count / rates.memory(), steps * count / rates.memory()),
            state_bytes,
            activation_bytes: match index {
                0 => input,
                _ if index == last => 0.0,
                _ if again => input,
                _ => kept[usize::from(model.layers[index - 1])],
            },
        }
    };
    let whole_layer = if again { kept.iter().copied().fold(0.0, f64::max) } else { 0.0 };
    KindCosts {
        kind,
        tensor: run.layout.tensor,
        micro_batch: run.layout.micro_batch,
        recompute: again,
        layers: counts.iter().enumerate().map(node).collect(),
        reserve_bytes: settings.reserve_bytes + running + whole_layer,
    }
}
