//! Branch and bound: tries every class in turn on every device, and prunes against the incumbent.
//!
//! A partial assignment bounds each device from below: by the time of its classes, and by every net that is certainly
//! cut, with a class on it and another one elsewhere. This sum only grows as classes are decided. The total spent on
//! transfers is also compared with the incumbent's slack ([`super::slack`]). Classes are decided along their nets, the
//! costliest neighbour next, so that cuts appear early. Empty devices of one kind are equivalent, so only the first of
//! them is tried.
//!
//! Exponential: for small models, and for larger ones within a budget of branches.

use super::{
    convex::{Convexity, ConvexityScratch},
    model::{IpModel, Time, whole},
    slack::{MARGIN, slack},
};
use plantui_core::search::Search;

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AssignmentSearchResult {
    /// No assignment is better than the incumbent.
    NothingBetter,
    /// Optimum, better than the incumbent.
    Better(f64, Vec<u32>),
    /// The budget ran out or the search was cancelled; holds a better assignment if one was found.
    GaveUp(Option<(f64, Vec<u32>)>),
}

/// State of the depth-first search.
struct AssignmentBranching<'m> {
    model: &'m IpModel,
    convexity: Option<(&'m Convexity, ConvexityScratch)>,
    order: Vec<u32>,
    device: Vec<u32>,
    /// By net: number of decided classes. By net and device, `held[net · devices + d]`: number of its classes there.
    decided: Vec<u32>,
    held: Vec<u32>,
    load: Vec<Time>,
    size: Vec<f64>,
    members: Vec<u32>,
    best: f64,
    found: Option<Vec<u32>>,
    branches: u64,
    spent: f64,
    budget: f64,
}

const OPEN: u32 = u32::MAX;

/// Searches an assignment better than `upper`, which may be infinite.
pub(crate) fn exhaust(
    model: &IpModel,
    convexity: Option<&Convexity>,
    upper: f64,
    branches: u64,
    search: &Search,
) -> AssignmentSearchResult {
    let devices = model.devices();
    let mut branching = AssignmentBranching {
        model,
        convexity: convexity.map(|convexity| (convexity, convexity.sets())),
        order: order(model),
        device: vec![OPEN; model.len()],
        decided: vec![0; model.net_count()],
        held: vec![0; model.net_count() * devices],
        load: vec![[0.0; 2]; devices],
        size: vec![0.0; devices],
        members: vec![0; devices],
        best: upper,
        found: None,
        branches,
        spent: 0.0,
        budget: f64::INFINITY,
    };
    branching.rebudget();
    let done = devices > 0 && branching.descend(0, search);
    let found = branching.found.map(|device| (branching.best, device));
    match (done || devices == 0, found) {
        (true, None) => AssignmentSearchResult::NothingBetter,
        (true, Some((value, device))) => AssignmentSearchResult::Better(value, device),
        (false, found) => AssignmentSearchResult::GaveUp(found),
    }
}

/// Order of decisions: the heaviest class first, then always the class with the costliest nets to decided ones.
fn order(model: &IpModel) -> Vec<u32> {
    let n = model.len();
    let mut tie = vec![0.0; n];
    let mut open = vec![true; n];
    let mut order = Vec::with_capacity(n);
    let rank = |class: usize| whole(model.accelerator_time[class]);
    for _ in 0..n {
        let better = |&a: &usize, &b: &usize| {
            let by_tie: std::cmp::Ordering = f64::total_cmp(&tie[a], &tie[b]);
            by_tie.then(rank(a).total_cmp(&rank(b))).then(b.cmp(&a))
        };
        let Some(class) = (0..n).filter(|&class| open[class]).max_by(better) else { break };
        open[class] = false;
        order.push(class as u32);
        for &net in model.nets(class) {
            let net = net as usize;
            for &pin in model.pins(net) {
                tie[pin as usize] += whole(model.net_cost[net]) / model.pins(net).len() as f64;
            }
        }
    }
    order
}

impl AssignmentBranching<'_> {
    /// Recomputes the budget for all transfers below the incumbent.
    fn rebudget(&mut self) {
        if self.best.is_finite() {
            self.budget = slack(self.model, self.best) + self.best * self.model.devices() as f64 * MARGIN;
        }
    }

    /// True if the decided classes rule out a better completion.
    fn hopeless(&mut self, device: usize) -> bool {
        let mut most = [0.0f64; 2];
        for load in &self.load {
            most = [most[0].max(load[0]), most[1].max(load[1])];
        }
        if most[0] + most[1] >= self.best * (1.0 - 1e-12) || self.spent > self.budget {
            return true;
        }
        let Some((convexity, sets)) = &mut self.convexity else { return false };
        let on = |d: Option<u32>| {
            let devices = &self.device;
            (0..devices.len()).filter(move |&class| match d {
                Some(d) => devices[class] == d,
                None => devices[class] != OPEN && devices[class] != device as u32,
            })
        };
        if !convexity.may_become_convex(on(Some(device as u32)), on(None), sets) {
            return true;
        }
        // The class placed here may lie on a path within another device.
        (0..self.members.len()).any(|d| {
            let devices = &self.device;
            let elsewhere = (0..devices.len()).filter(|&class| devices[class] != OPEN && devices[class] != d as u32);
            d != device && self.members[d] > 0 && !convexity.may_become_convex(on(Some(d as u32)), elsewhere, sets)
        })
    }

    /// Decides the classes from a depth on; false if the budget ran out.
    fn descend(&mut self, depth: usize, search: &Search) -> bool {
        let Some(&class) = self.order.get(depth) else {
            let maxima = self.load.iter().fold([0.0f64; 2], |m, l| [m[0].max(l[0]), m[1].max(l[1])]);
            if whole(maxima) < self.best {
                self.best = whole(maxima);
                self.found = Some(self.device.clone());
                self.rebudget();
            }
            return true;
        };
        let class = class as usize;
        let model = self.model;
        let mut choices: Vec<usize> = vec![];
        let mut fresh = [false; 2];
        for device in 0..model.devices() {
            let cpu = usize::from(model.is_cpu(device));
            if self.members[device] == 0 && std::mem::replace(&mut fresh[cpu], true) {
                continue;
            }
            let possible = cpu == 1 || (model.fits[class] && self.size[device] + model.size[class] <= model.memory);
            if possible {
                choices.push(device);
            }
        }
        // Devices with its neighbours first.
        let near = |device: usize| -> f64 {
            let shared =
                model.nets(class).iter().filter(|&&net| self.held[net as usize * model.devices() + device] > 0);
            shared.map(|&net| whole(model.net_cost[net as usize])).sum()
        };
        let mut ranked: Vec<(f64, f64, usize)> = choices.iter().map(|&d| (-near(d), whole(self.load[d]), d)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)));
        for (_, _, device) in ranked {
            if self.branches == 0 || (self.branches.is_multiple_of(256) && search.cancelled()) {
                return false;
            }
            self.branches -= 1;
            let before = (self.load.clone(), self.size[device], self.spent);
            self.put(class, device);
            let go_on = self.hopeless(device) || self.descend(depth + 1, search);
            self.take(class, device);
            (self.load, self.size[device], self.spent) = before;
            if !go_on {
                return false;
            }
        }
        true
    }

    /// Decides a class, and charges every net that is now certainly cut.
    fn put(&mut self, class: usize, device: usize) {
        let model = self.model;
        let devices = model.devices();
        let time = if model.is_cpu(device) { model.cpu_time[class] } else { model.accelerator_time[class] };
        self.device[class] = device as u32;
        self.members[device] += 1;
        self.size[device] += model.size[class];
        self.charge(device, time);
        for &net in model.nets(class) {
            let net = net as usize;
            let held = self.held[net * devices + device];
            let (decided, cost) = (self.decided[net], model.net_cost[net]);
            let was_cut = decided > 0 && (0..devices).all(|d| self.held[net * devices + d] < decided);
            if !model.is_cpu(device) && held == 0 && decided > 0 {
                self.charge(device, cost);
                self.spent += whole(cost);
            }
            if !was_cut && decided > held {
                // Until now, all of its decided classes were on one other device.
                let other = (0..devices).find(|&d| self.held[net * devices + d] == decided).unwrap_or(device);
                if !model.is_cpu(other) && other != device {
                    self.charge(other, cost);
                    self.spent += whole(cost);
                }
            }
            self.held[net * devices + device] += 1;
            self.decided[net] += 1;
        }
    }

    /// Undoes the counts of [`AssignmentBranching::put`]; the caller restores the sums.
    fn take(&mut self, class: usize, device: usize) {
        let devices = self.model.devices();
        self.device[class] = OPEN;
        self.members[device] -= 1;
        for &net in self.model.nets(class) {
            self.held[net as usize * devices + device] -= 1;
            self.decided[net as usize] -= 1;
        }
    }

    fn charge(&mut self, device: usize, time: Time) {
        self.load[device][0] += time[0];
        self.load[device][1] += time[1];
    }
}
