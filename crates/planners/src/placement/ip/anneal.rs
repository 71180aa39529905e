//! Simulated annealing over assignments. It moves classes, clusters joined by costly nets, and runs along a topological
//! order, alone or in exchange.
//!
//! The load of the busiest device alone is a poor guide. So a walk has a *target* slightly below the best value and
//! minimises the sum over all devices of the load above it, including memory above the limit. At zero, a better
//! assignment is found and the target falls. Devices below the target cost nothing, so the walk can reorder them
//! freely, which helps to pack large classes. At the end, the walk returns to its best assignment and descends from
//! there. A candidate takes `O(nets of the classes that move)`.

use super::{
    convex::{Convexity, ConvexityScratch},
    model::{IpModel, Time, whole},
    state::AssignmentState,
};
use plantui_core::{random::SplitMix, search::Search};

/// Problem that all walks share.
#[derive(Debug)]
pub(crate) struct AnnealingInput<'a> {
    /// Costs.
    pub model: &'a IpModel,
    /// Rule of contiguity, if it applies.
    pub convexity: Option<&'a Convexity>,
    /// Classes along a topological order.
    pub order: &'a [u32],
}

/// Parameters of one walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AssignmentWalk {
    /// Seed of its random numbers.
    pub seed: u64,
    /// Number of candidates.
    pub steps: u64,
    /// Initial temperature, relative to the value.
    pub hot: f64,
    /// Final temperature, relative to the value.
    pub cold: f64,
    /// Relative distance of the target below the best value.
    pub ahead: f64,
    /// Value at which the walk stops: no lower one exists.
    pub enough: f64,
}

/// State of a walk, with positions in the order and buffers.
struct Walker<'a> {
    ground: &'a AnnealingInput<'a>,
    state: AssignmentState<'a>,
    random: SplitMix,
    target: Time,
    ahead: f64,
    place: Vec<u32>,
    /// Candidate: classes and their new devices.
    moves: Vec<(u32, u32)>,
    cluster: Vec<u32>,
    mark: Vec<u32>,
    stamp: u32,
    sets: Option<ConvexityScratch>,
}

/// Walks from a start; returns the best admissible assignment and its value. `found` is called with every improvement
/// on `known`. Cancellation is checked every few hundred candidates.
// One long function: a part taken out of the loop would need its whole state as parameters.
pub(crate) fn anneal(
    ground: &AnnealingInput<'_>,
    start: &[u32],
    known: f64,
    walk: &AssignmentWalk,
    search: &Search,
    mut found: impl FnMut(f64, &[u32]),
) -> Option<(f64, Vec<u32>)> {
    let model = ground.model;
    if model.devices() < 2 || model.is_empty() {
        return None;
    }
    let mut place = vec![0; model.len()];
    for (position, &class) in ground.order.iter().enumerate() {
        place[class as usize] = position as u32;
    }
    let mut walker = Walker {
        ground,
        state: AssignmentState::new(model, start.to_vec()),
        random: SplitMix::new(walk.seed),
        target: [0.0; 2],
        ahead: walk.ahead,
        place,
        moves: vec![],
        cluster: vec![],
        mark: vec![0; model.len()],
        stamp: 0,
        sets: ground.convexity.map(Convexity::sets),
    };
    let admissible = walker.state.admissible();
    let mut best = known;
    let mut best_devices = None;
    if admissible && walker.state.value() <= best {
        best = walker.state.value();
        best_devices = Some(walker.state.devices().to_vec());
    }
    let scale = if best.is_finite() { best } else { walker.state.value() };
    walker.aim(scale);
    let mut energy = walker.energy();
    let (mut temperature, cooling) = (walk.hot * scale, (walk.cold / walk.hot).powf(256.0 / walk.steps.max(1) as f64));
    let polish = walk.steps / 8;
    for step in 0..walk.steps + polish {
        if step == walk.steps {
            // Descend from the best assignment, guided by the busiest device alone.
            let Some(devices) = &best_devices else { break };
            walker.state = AssignmentState::new(model, devices.clone());
            walker.ahead = 1e-13;
            walker.aim(best);
            energy = walker.energy();
            temperature = 0.0;
        }
        if step % 256 == 0 {
            if search.cancelled() || best <= walk.enough {
                break;
            }
            temperature *= cooling;
            if step % 16384 == 0 {
                walker.state.refresh();
                energy = walker.energy();
            }
        }
        if !walker.propose() {
            continue;
        }
        let threshold = energy - temperature * walker.random.unit().max(1e-300).ln();
        let after = walker.apply();
        if after > threshold || !walker.keeps_contiguity() {
            walker.take_back();
            continue;
        }
        energy = after;
        if walker.state.value() < best * (1.0 - 1e-12) && walker.state.admissible() {
            walker.state.refresh();
            let value = walker.state.value();
            if value < best && walker.state.admissible() {
                best = value;
                best_devices = Some(walker.state.devices().to_vec());
                found(value, walker.state.devices());
            }
            walker.aim(best);
            energy = walker.energy();
            // Recomputing a large model takes as long as hundreds of candidates.
            if search.cancelled() {
                break;
            }
        }
    }
    best_devices.map(|devices| (best, devices))
}

impl Walker<'_> {
    /// Sets the target slightly below a value, with its parts in proportion to the current maxima.
    fn aim(&mut self, value: f64) {
        let maxima = self.state.maxima();
        let share = if whole(maxima) > 0.0 { value * (1.0 - self.ahead) / whole(maxima) } else { 0.0 };
        self.target = [maxima[0] * share, maxima[1] * share];
    }

    /// Sum of loads above the target, with a penalty for memory above the limit.
    fn energy(&self) -> f64 {
        let mut over = 0.0;
        for load in self.state.loads() {
            over += (load[0] - self.target[0]).max(0.0) + (load[1] - self.target[1]).max(0.0);
        }
        let model = self.state.model;
        for &size in &self.state.sizes()[..model.accelerators] {
            if size > model.memory {
                over += whole(self.target) * (0.01 + (size - model.memory) / model.memory.max(1.0));
            }
        }
        over
    }

    /// Makes the candidate's moves and returns the new energy. `moves` then holds the former devices, to undo them.
    fn apply(&mut self) -> f64 {
        for entry in &mut self.moves {
            let (class, to) = *entry;
            entry.1 = self.state.device(class as usize) as u32;
            if entry.1 != to {
                self.state.shift(class as usize, to as usize);
            }
        }
        self.energy()
    }

    fn take_back(&mut self) {
        for &(class, from) in self.moves.iter().rev() {
            if self.state.device(class as usize) != from as usize {
                self.state.shift(class as usize, from as usize);
            }
        }
    }

    /// True if the devices touched by the applied moves are convex.
    fn keeps_contiguity(&mut self) -> bool {
        let (Some(convexity), Some(sets)) = (self.ground.convexity, self.sets.as_mut()) else { return true };
        let touched = self.moves.iter().flat_map(|&(class, from)| [from, self.state.device(class as usize) as u32]);
        let touched = touched.fold(0u64, |bits, d| bits | 1 << (d % 64));
        let devices = self.state.devices();
        (0..self.state.model.devices()).filter(|d| touched >> (d % 64) & 1 == 1).all(|d| {
            let held = (0..devices.len()).filter(|&class| devices[class] == d as u32);
            convexity.is_convex(held, sets)
        })
    }

    /// Draws a candidate; false if it is impossible or moves nothing.
    fn propose(&mut self) -> bool {
        self.moves.clear();
        let class = self.random.below(self.state.model.len());
        let from = self.state.device(class);
        match self.random.below(16) {
            0..5 => {
                let to = self.destination(class, from);
                self.moves.push((class as u32, to as u32));
            }
            5..9 => {
                let other = self.random.below(self.state.model.len());
                self.moves.push((class as u32, self.state.device(other) as u32));
                self.moves.push((other as u32, from as u32));
            }
            9..12 => {
                let to = self.destination(class, from);
                self.grow(class, to);
            }
            12..14 => {
                let to = self.destination(class, from);
                self.grow(class, to);
                // In exchange, a cluster of the other device.
                let back = self.random.below(self.state.model.len());
                if self.state.device(back) == to {
                    self.grow(back, from);
                }
            }
            _ => self.run(class, from),
        }
        let model = self.state.model;
        let possible = |&(class, to): &(u32, u32)| model.is_cpu(to as usize) || model.fits[class as usize];
        let moves_something = self.moves.iter().any(|&(class, to)| self.state.device(class as usize) as u32 != to);
        self.moves.iter().all(possible) && moves_something
    }

    /// Another device, mostly one that holds a neighbour.
    fn destination(&mut self, class: usize, from: usize) -> usize {
        let model = self.state.model;
        let nets = model.nets(class);
        if !nets.is_empty() && self.random.below(4) > 0 {
            let pins = model.pins(nets[self.random.below(nets.len())] as usize);
            let to = self.state.device(pins[self.random.below(pins.len())] as usize);
            if to != from {
                return to;
            }
        }
        let to = self.random.below(model.devices() - 1);
        if to >= from { to + 1 } else { to }
    }

    /// Random number of any order of magnitude up to 64.
    fn scale(&mut self) -> usize {
        let magnitude = 1 << (1 + self.random.below(6));
        self.random.below(magnitude)
    }

    /// Adds a class to the candidate, with the classes on its device that costly nets join to it.
    fn grow(&mut self, class: usize, to: usize) {
        let model = self.state.model;
        let from = self.state.device(class);
        let nets = model.nets(class);
        self.moves.push((class as u32, to as u32));
        if nets.is_empty() {
            return;
        }
        let least = whole(model.net_cost[nets[self.random.below(nets.len())] as usize]);
        let most = 2 + self.scale();
        self.stamp += 1;
        self.mark[class] = self.stamp;
        self.cluster.clear();
        self.cluster.push(class as u32);
        let mut next = 0;
        while next < self.cluster.len() && self.cluster.len() < most {
            let inner = self.cluster[next] as usize;
            next += 1;
            for &net in model.nets(inner).iter().filter(|&&net| whole(model.net_cost[net as usize]) >= least) {
                for &pin in model.pins(net as usize) {
                    let pin = pin as usize;
                    if self.mark[pin] != self.stamp && self.state.device(pin) == from && self.cluster.len() < most {
                        self.mark[pin] = self.stamp;
                        self.cluster.push(pin as u32);
                        self.moves.push((pin as u32, to as u32));
                    }
                }
            }
        }
    }

    /// Moves a run of a device's classes along the order, from `class` on, to the device at its end.
    fn run(&mut self, class: usize, from: usize) {
        let order = self.ground.order;
        let most = 1 + self.scale();
        let forwards = self.random.below(2) == 0;
        let mut position = self.place[class] as usize;
        let mut to = from;
        loop {
            let here = order[position];
            let device = self.state.device(here as usize);
            if device != from {
                to = device;
                if self.moves.len() >= most || self.random.below(4) > 0 {
                    break;
                }
            } else if self.moves.len() >= most {
                break;
            } else {
                self.moves.push((here, 0));
            }
            let next = if forwards { position + 1 } else { position.wrapping_sub(1) };
            if next >= order.len() {
                break;
            }
            position = next;
        }
        if to == from {
            to = self.destination(class, from);
        }
        for entry in &mut self.moves {
            entry.1 = to as u32;
        }
    }
}
