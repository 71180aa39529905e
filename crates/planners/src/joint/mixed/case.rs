//! One choice of data degree and micro-batch: what every kind of stage costs, and lower bounds on what is left.
//!
//! Costs are prefix sums over the layers, so that any stage costs `O(1)`. Transfers depend on the neighbours: a stage that
//! is placed before its predecessor counts the fastest possible one. `O(types² · layers)` to build, and
//! `O(stages · types · layers²)` for the bounds.

use plantui_core::{
    family::mixed::iteration::{self, HOUR},
    workload::mixed::{MixedProfile, TimeRule},
};

/// Price levels of the bound by duality, and the factor between two. Without the bound, 80 + 240 devices take 2.6 times the
/// CPU time, and a model with a fixed number of stages 22 times.
const LEVELS: usize = 40;
const LEVEL_STEP: f64 = 1.15;

/// Kind with a tensor degree that a stage may be on.
#[derive(Debug, Clone)]
pub(super) struct StageType {
    pub(super) kind: usize,
    pub(super) tensor: u32,
    pub(super) recompute: bool,
    /// Type that differs in recomputation alone: it keeps all activations.
    keeps: Option<usize>,
    /// Seconds of forward and backward passes of the layers before each layer.
    time_s: Vec<f64>,
    /// Bytes of state of the layers before each layer.
    state_bytes: Vec<f64>,
    /// Bytes of activations of a microbatch of the layers before each layer.
    activation_bytes: Vec<f64>,
    /// Bytes that the layers may use.
    memory_bytes: f64,
    /// Shortest optimizer step that counts apart from the reductions, seconds.
    update_s: f64,
    /// By first layer and end: seconds to reduce the gradients, and to update the layers if both count together.
    reductions_s: Vec<Vec<f64>>,
    /// By layer: seconds to send its output to each type, and to the nearest.
    sends_s: Vec<Vec<f64>>,
    least_send_s: Vec<f64>,
}

impl StageType {
    /// Compute of a microbatch on the layers `first..end`, seconds.
    pub(super) fn compute_s(&self, first: usize, end: usize) -> f64 {
        self.time_s[end] - self.time_s[first]
    }

    /// Reduction of the gradients, and the update, of the layers `first..end`, seconds.
    pub(super) fn reduction_s(&self, first: usize, end: usize) -> f64 {
        self.reductions_s[first][end]
    }

    /// Seconds to send the output of a layer to a type, or to the nearest.
    pub(super) fn send_s(&self, layer: usize, to: Option<usize>) -> f64 {
        to.map_or(self.least_send_s[layer], |to| self.sends_s[layer][to])
    }

    /// True if the layers `first..end` fit with so many microbatches in flight.
    pub(super) fn fits(&self, first: usize, end: usize, in_flight: usize) -> bool {
        let activations = self.activation_bytes[end] - self.activation_bytes[first];
        self.state_bytes[end] - self.state_bytes[first] + activations * in_flight as f64 <= self.memory_bytes
    }
}

/// Devices and money that are left for the stages that are not placed yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Left {
    /// Devices by kind.
    pub(super) devices: Vec<u32>,
    /// Devices of all kinds together.
    pub(super) together: u32,
    /// Price for an hour.
    pub(super) per_hour: f64,
}

/// Least cost of the layers that no stage holds yet, without regard to the devices that are left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rest {
    /// Slowest stage's compute and transfers, seconds.
    pub(super) slowest_s: f64,
    /// Compute and transfers of all stages, seconds.
    pub(super) through_s: f64,
    /// Slowest reduction, seconds.
    pub(super) reduction_s: f64,
}

impl Rest {
    const NOTHING: Rest = Rest { slowest_s: 0.0, through_s: 0.0, reduction_s: 0.0 };
    pub(super) const NEVER: Rest =
        Rest { slowest_s: f64::INFINITY, through_s: f64::INFINITY, reduction_s: f64::INFINITY };
}

/// A data degree with a micro-batch.
#[derive(Debug)]
pub(super) struct Case<'a> {
    pub(super) profile: &'a MixedProfile,
    pub(super) data: u32,
    pub(super) micro_batch: u32,
    /// Microbatches of a replica, m.
    pub(super) microbatches: u32,
    pub(super) types: Vec<StageType>,
    /// Devices of all kinds that a plan may use.
    pub(super) devices: u32,
    /// Shortest optimizer step of any type and layer, seconds.
    least_update_s: f64,
    /// Least cost of the layers left, by stages placed, then first layer placed.
    rest: Vec<Vec<Rest>>,
    /// By kind: speed of a unit, as the share of all layers that it computes in a second.
    worth: Vec<f64>,
    /// Kinds from the fastest unit on, and from the cheapest for its speed on.
    fastest: Vec<usize>,
    cheapest: Vec<usize>,
    /// By layer: price for an hour times seconds, at least, of the devices that compute the layers before it.
    device_cost: Vec<f64>,
    /// Price levels, from that of all devices on.
    levels: Vec<f64>,
    /// By price level, then layer: least priced compute of the layers before it, seconds.
    priced: Vec<Vec<f64>>,
}

fn prefix(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = vec![0.0];
    values.for_each(|value| sums.push(sums[sums.len() - 1] + value));
    sums
}

impl<'a> Case<'a> {
    /// Case with the types that have costs for the micro-batch, enough devices for one stage, and a tensor degree that
    /// divides a machine.
    pub(super) fn new(profile: &'a MixedProfile, (batch, devices): (u32, u32), data: u32, micro_batch: u32) -> Self {
        let layers = profile.output_bytes.len();
        let bytes = |layer: usize| profile.output_bytes[layer] * f64::from(micro_batch);
        let gradients = prefix(profile.gradient_bytes.iter().copied());
        let mut types: Vec<StageType> = vec![];
        let suits = |tensor: u32, kind: usize| {
            let devices = u64::from(data) * u64::from(tensor);
            devices <= u64::from(profile.kinds[kind].count) && profile.kinds[kind].machine.is_multiple_of(tensor)
        };
        for own in profile.costs.iter().filter(|own| own.micro_batch == micro_batch && suits(own.tensor, own.kind)) {
            let updates = prefix(own.layers.iter().map(|layer| layer.update_s.on(data)));
            let reduction = |first: usize, end: usize| {
                let bytes = (gradients[end] - gradients[first]) / f64::from(own.tensor);
                let updates = match profile.rule {
                    TimeRule::Stages => updates[end] - updates[first],
                    TimeRule::Sailor => 0.0,
                };
                profile.links.all_reduce_s(bytes, (own.kind, own.tensor), data) + updates
            };
            let from =
                |first: usize| (0..=layers).map(|end| if end > first { reduction(first, end) } else { 0.0 }).collect();
            types.push(StageType {
                kind: own.kind,
                tensor: own.tensor,
                recompute: own.recompute,
                keeps: None,
                time_s: prefix(own.layers.iter().map(|layer| layer.forward_s + layer.backward_s)),
                state_bytes: prefix(own.layers.iter().map(|layer| layer.state_bytes.on(data))),
                activation_bytes: prefix(own.layers.iter().map(|layer| layer.activation_bytes)),
                memory_bytes: profile.kinds[own.kind].memory_bytes - own.reserve_bytes,
                update_s: match profile.rule {
                    TimeRule::Stages => 0.0,
                    TimeRule::Sailor => {
                        own.layers.iter().map(|layer| layer.update_s.on(data)).fold(f64::INFINITY, f64::min)
                    }
                },
                reductions_s: (0..layers).map(from).collect(),
                sends_s: vec![],
                least_send_s: vec![],
            });
        }
        for own in 0..types.len() {
            let same = |other: &StageType| {
                (other.kind, other.tensor, other.recompute) == (types[own].kind, types[own].tensor, false)
            };
            types[own].keeps = if types[own].recompute && profile.rule == TimeRule::Stages {
                types.iter().position(same)
            } else {
                None
            };
        }
        let ends: Vec<(usize, u32)> = types.iter().map(|own| (own.kind, own.tensor)).collect();
        for own in &mut types {
            let sender = (own.kind, own.tensor);
            let to = |layer| ends.iter().map(|&end| profile.links.seconds(bytes(layer), sender, end)).collect();
            own.sends_s = (0..layers).map(to).collect();
            own.least_send_s =
                own.sends_s.iter().map(|to: &Vec<f64>| to.iter().copied().fold(f64::INFINITY, f64::min)).collect();
        }
        let microbatches = batch.div_ceil(micro_batch.saturating_mul(data).max(1));
        let least_update_s = types.iter().map(|own| own.update_s).fold(f64::INFINITY, f64::min);
        let mut case = Case {
            profile,
            data,
            micro_batch,
            microbatches,
            types,
            devices,
            least_update_s,
            rest: vec![],
            worth: vec![],
            levels: vec![],
            device_cost: vec![],
            fastest: vec![],
            cheapest: vec![],
            priced: vec![],
        };
        case.price(layers);
        case.bound(layers);
        case
    }

    /// Number of layers.
    pub(super) fn layers(&self) -> usize {
        self.profile.output_bytes.len()
    }

    /// Transfers that a stage sends for a microbatch, as far as they are known: activations to `later`, and gradients to
    /// the nearest type. `placed` stages come after it.
    pub(super) fn sends_s(
        &self,
        own: usize,
        first: usize,
        end: usize,
        placed: usize,
        later: Option<usize>,
    ) -> [f64; 2] {
        let [activations, gradients] = self.factors(first, placed);
        let stage = &self.types[own];
        let ahead = if activations > 0.0 { activations * stage.send_s(end - 1, later) } else { 0.0 };
        let back =
            if gradients > 0.0 { gradients * stage.send_s(self.profile.rule.sends_back(first), None) } else { 0.0 };
        [ahead, back]
    }

    /// Factors on the transfers of a stage that begins with a layer and has `placed` stages after it.
    pub(super) fn factors(&self, first: usize, placed: usize) -> [f64; 2] {
        let before = usize::from(first > 0);
        // Any number of stages before another counts the same.
        self.profile.rule.factors(before, before + 1 + placed)
    }

    /// Time of an iteration from its slowest stage, all stages, the slowest reduction, and the devices so far, seconds: at
    /// least.
    pub(super) fn iteration_s(&self, slowest_s: f64, through_s: f64, reduction_s: f64, devices: u64) -> f64 {
        self.profile.whole_s(self.closed_s(slowest_s, through_s, reduction_s), devices)
    }

    /// Time of an iteration from the compute that is left, the stages placed, and the slowest reduction, seconds: at least.
    pub(super) fn priced_s(&self, left_s: f64, through_s: f64, reduction_s: f64, devices: u64) -> f64 {
        self.profile.whole_s(left_s + through_s + reduction_s + self.least_update_s, devices)
    }

    /// Lower bound on the cost of a plan that takes at least `bound_s`: the devices so far at their price for an hour, those
    /// of the layers before `first`, and the traffic so far.
    pub(super) fn cost(&self, bound_s: f64, per_hour: f64, traffic: f64, first: usize) -> f64 {
        (per_hour * bound_s + self.device_cost[first]) / HOUR + traffic
    }

    /// Cost of an iteration's traffic between a stage that ends before layer `end` and the next one.
    pub(super) fn traffic_cost(&self, own: usize, later: usize, end: usize) -> f64 {
        let (from, to) = (self.types[own].kind, self.types[later].kind);
        iteration::sequences(self.microbatches, self.micro_batch, self.data)
            * self.profile.traffic_cost_per_sequence(from, to, end)
    }

    fn closed_s(&self, slowest_s: f64, through_s: f64, reduction_s: f64) -> f64 {
        f64::from(self.microbatches - 1) * slowest_s + through_s + reduction_s + self.least_update_s
    }

    /// False if a stage of a type would recompute the layers `first..end` although it can keep their activations with so
    /// many microbatches in flight, and is no slower.
    pub(super) fn suits(&self, own: usize, first: usize, end: usize, in_flight: usize) -> bool {
        let stage = &self.types[own];
        let better = |keeps: &StageType| {
            keeps.compute_s(first, end) <= stage.compute_s(first, end)
                && keeps.reduction_s(first, end) <= stage.reduction_s(first, end)
                && keeps.fits(first, end, in_flight)
        };
        !stage.keeps.is_some_and(|keeps| better(&self.types[keeps]))
    }

    /// Most stages that the devices allow.
    fn most_stages(&self) -> usize {
        let of_kind = |kind: usize| {
            let least = self.types.iter().filter(|own| own.kind == kind).map(|own| own.tensor).min();
            least.map_or(0, |tensor| self.profile.kinds[kind].count / self.data.saturating_mul(tensor).max(1))
        };
        let all: u32 = (0..self.profile.kinds.len()).map(of_kind).sum();
        all.min(self.devices / self.data) as usize
    }

    /// Least cost of the layers before `first`, which no stage holds yet, after `placed` stages.
    pub(super) fn rest(&self, placed: usize, first: usize) -> Rest {
        self.rest[placed][first]
    }

    /// Bounds the compute of layers on the devices left by linear duality.
    ///
    /// Stages on a kind take at most the slowest stage's compute `T` on each of its units, so with prices `π` of units whose
    /// sum over the units left is `m − 1`, `(m − 1) T + Σ compute ≥ Σ_layers min_types compute · (1 + π t)`. The prices of the
    /// kinds are to one another as their speeds. Sums are kept for a row of price levels.
    fn price(&mut self, layers: usize) {
        let whole = |kind: usize| {
            let own = self.types.iter().filter(|own| own.kind == kind);
            own.map(|own| f64::from(own.tensor) * own.compute_s(0, layers)).fold(f64::INFINITY, f64::min)
        };
        let worth = |seconds: f64| if seconds.is_finite() && seconds > 0.0 { seconds.recip() } else { 0.0 };
        self.worth = (0..self.profile.kinds.len()).map(|kind| worth(whole(kind))).collect();
        let kinds = &self.profile.kinds;
        let by = |value: &dyn Fn(usize) -> f64| {
            let mut order: Vec<usize> = (0..kinds.len()).collect();
            order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
            order
        };
        self.fastest = by(&|kind| self.worth[kind]);
        self.cheapest = by(&|kind| self.worth[kind] / kinds[kind].price_per_hour.unwrap_or(0.0));
        let least_level = self.level(self.speed(&self.all()));
        self.levels = (0..LEVELS).map(|step| least_level * LEVEL_STEP.powi(step as i32)).collect();
        let least = |level: f64, layer: usize| {
            let own = self.types.iter().map(|own| {
                let price = level * self.worth[own.kind] * f64::from(own.tensor);
                own.compute_s(layer, layer + 1) * (1.0 + price)
            });
            own.fold(f64::INFINITY, f64::min)
        };
        let devices = f64::from(self.data) * f64::from(self.microbatches);
        let cost = |layer: usize| {
            let own = self.types.iter().map(|own| {
                let price = self.profile.kinds[own.kind].price_per_hour.unwrap_or(0.0);
                price * devices * f64::from(own.tensor) * own.compute_s(layer, layer + 1)
            });
            own.fold(f64::INFINITY, f64::min)
        };
        self.device_cost = prefix((0..layers).map(cost));
        self.priced = self.levels.iter().map(|&level| prefix((0..layers).map(|layer| least(level, layer)))).collect();
    }

    /// All devices that a plan may use, at any price.
    pub(super) fn all(&self) -> Left {
        let devices = self.profile.kinds.iter().map(|kind| kind.count).collect();
        Left { devices, together: self.devices, per_hour: f64::INFINITY }
    }

    /// Largest speed of units that are left, as the share of all layers that they compute in a second. Devices are taken from
    /// the fastest kind on while any are left together, or from the cheapest for its speed on while there is money left.
    fn speed(&self, left: &Left) -> f64 {
        let units = |kind: usize| left.devices[kind] / self.data;
        let (mut together, mut fastest) = (left.together / self.data, 0.0);
        for &kind in &self.fastest {
            let taken = units(kind).min(together);
            together -= taken;
            fastest += self.worth[kind] * f64::from(taken);
        }
        let (mut per_hour, mut cheapest) = (left.per_hour, 0.0);
        for &kind in &self.cheapest {
            let price = self.profile.kinds[kind].price_per_hour.unwrap_or(0.0) * f64::from(self.data);
            let all = f64::from(units(kind));
            let taken = if price > 0.0 { all.min(per_hour / price) } else { all };
            per_hour -= taken * price;
            cheapest += self.worth[kind] * taken;
        }
        f64::min(fastest, cheapest)
    }

    /// Price level at which units of this speed are worth `m − 1`.
    fn level(&self, speed: f64) -> f64 {
        f64::from(self.microbatches - 1) / speed
    }

    /// Least time of the layers before `first` on the devices left, seconds: the slowest stage's compute for all microbatches
    /// but one, and that of all stages for one.
    pub(super) fn compute_left_s(&self, first: usize, left: &Left) -> f64 {
        // Without microbatches to repeat all levels are 0.
        let level = self.level(self.speed(left));
        let above = self.levels.partition_point(|&own| own <= level).clamp(1, LEVELS - 1);
        let [from, to] = [above - 1, above].map(|step| self.levels[step]);
        let share = if to > from { ((level - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 };
        // Concave in the level, so that a chord lies below it.
        self.priced[above - 1][first] * (1.0 - share) + self.priced[above][first] * share
    }

    fn bound(&mut self, layers: usize) {
        self.rest = vec![vec![Rest::NEVER; layers + 1]; layers + 1];
        self.rest.iter_mut().for_each(|by_first| by_first[0] = Rest::NOTHING);
        for placed in (0..layers.min(self.most_stages())).rev() {
            for end in 1..=layers {
                let mut least = Rest::NEVER;
                for (own, stage) in self.types.iter().enumerate() {
                    for first in (0..end).rev().take_while(|&first| stage.fits(first, end, placed + 1)) {
                        if !self.suits(own, first, end, placed + 1) {
                            continue;
                        }
                        let after = self.rest[placed + 1][first];
                        let [ahead, back] = self.sends_s(own, first, end, placed, None);
                        let slot_s = stage.compute_s(first, end) + ahead + back;
                        least.through_s = least.through_s.min(after.through_s + slot_s);
                        least.slowest_s = least.slowest_s.min(after.slowest_s.max(slot_s));
                        least.reduction_s = least.reduction_s.min(after.reduction_s.max(stage.reduction_s(first, end)));
                    }
                }
                self.rest[placed][end] = least;
            }
        }
    }
}
