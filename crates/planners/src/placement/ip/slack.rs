//! Slack of a threshold, and the classes that it forces together.
//!
//! If no load exceeds `T`, the `K` accelerators together do at most `K T`. The `L` CPUs relieve them of at most what a
//! fractional knapsack of size `L T` holds. The *slack* is both minus the time of all classes: all that can be spent on
//! transfers. It grows with `T`. A net whose least cost exceeds the slack cannot be cut, so its classes share a device in
//! every assignment of value at most `T`. Of a cut net, each of two devices with its classes pays unless it is a CPU,
//! and two different devices cannot both be the only CPU. So a cut net is paid at least
//! * twice if none of its classes can be on a CPU,
//! * not at all if all of its classes can be on CPUs and there are two CPUs,
//! * once otherwise.
//!
//! Merging changes what fits on CPUs, so it is repeated until nothing changes. A negative slack refutes the threshold.

use super::model::{IpModel, whole};

/// Tolerance for rounding, relative to the threshold.
pub const MARGIN: f64 = 1e-11;

/// Time left for transfers at a threshold; negative if the threshold is refuted.
pub fn slack(model: &IpModel, threshold: f64) -> f64 {
    let mut host = model.cpus as f64 * threshold;
    // Time left for the accelerators, summed upwards: a difference from the total would lose small values.
    let mut left = 0.0;
    let mut offers: Vec<(f64, f64)> = vec![];
    for class in 0..model.len() {
        let (accelerator, cpu) = (whole(model.accelerator_time[class]), whole(model.cpu_time[class]));
        if !model.fits[class] || model.accelerators == 0 {
            if model.cpus == 0 || cpu > threshold * (1.0 + MARGIN) {
                return f64::NEG_INFINITY;
            }
            host -= cpu;
        } else {
            if accelerator > 0.0 && cpu <= threshold * (1.0 + MARGIN) && model.cpus > 0 {
                offers.push((cpu, accelerator));
            } else {
                left += accelerator;
            }
        }
    }
    let spare = threshold * model.devices() as f64 * MARGIN;
    if host < -spare {
        return f64::NEG_INFINITY;
    }
    host = host.max(0.0);
    offers.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    for (cpu, accelerator) in offers {
        if cpu <= host {
            host -= cpu;
        } else {
            left += accelerator * ((cpu - host) / cpu);
            host = 0.0;
        }
    }
    model.accelerators as f64 * threshold - left
}

/// Largest threshold found whose slack refutes it, by bisection: a lower bound on the value.
pub fn average_bound(model: &IpModel) -> f64 {
    let negative = |threshold: f64| slack(model, threshold) < -threshold * model.devices() as f64 * MARGIN;
    let mut high = 1e-3;
    while negative(high) {
        high *= 2.0;
        if high > 1e300 {
            return f64::INFINITY;
        }
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if negative(middle) { low = middle } else { high = middle }
    }
    low
}

/// Merges classes that share a device in every assignment of value at most the threshold. Returns the model and the
/// group of every class; `None` if there is no such assignment.
pub fn contract(model: &IpModel, threshold: f64) -> Option<(IpModel, Vec<u32>)> {
    let mut reduced = model.clone();
    let mut group: Vec<u32> = (0..model.len() as u32).collect();
    loop {
        let spare = slack(&reduced, threshold);
        let margin = threshold * reduced.devices() as f64 * MARGIN;
        if spare < -margin {
            return None;
        }
        let mut root: Vec<u32> = (0..reduced.len() as u32).collect();
        let merged = unite_bound(&reduced, threshold, spare + margin, &mut root);
        if !merged {
            return Some((reduced, group));
        }
        let mut number = vec![u32::MAX; reduced.len()];
        let mut groups = 0;
        for class in 0..reduced.len() {
            let top = find(&mut root, class as u32) as usize;
            if number[top] == u32::MAX {
                number[top] = groups;
                groups += 1;
            }
            number[class] = number[top];
        }
        reduced = reduced.merged(&number, groups as usize);
        for g in &mut group {
            *g = number[*g as usize];
        }
        if reduced.homeless().is_some() {
            return None;
        }
    }
}

/// Merges classes that cannot be apart; true if there were any.
fn unite_bound(model: &IpModel, threshold: f64, slack: f64, root: &mut [u32]) -> bool {
    let on_cpu = |class: usize| model.cpus > 0 && whole(model.cpu_time[class]) <= threshold * (1.0 + MARGIN);
    let times = |all: bool, any: bool| match (all && model.cpus > 1, any) {
        (true, _) => 0.0,
        (false, true) => 1.0,
        (false, false) => 2.0,
    };
    let mut any = false;
    for net in 0..model.net_count() {
        let (pins, cost) = (model.pins(net), whole(model.net_cost[net]));
        let possible = |class: &u32| on_cpu(*class as usize);
        if cost * times(pins.iter().all(possible), pins.iter().any(possible)) > slack {
            for pair in pins.windows(2) {
                any |= unite(root, pair[0], pair[1]);
            }
        }
    }
    any
}

fn find(root: &mut [u32], class: u32) -> u32 {
    let mut class = class as usize;
    while root[class] as usize != class {
        root[class] = root[root[class] as usize];
        class = root[class] as usize;
    }
    class as u32
}

fn unite(root: &mut [u32], a: u32, b: u32) -> bool {
    let (a, b) = (find(root, a), find(root, b));
    root[b as usize] = a;
    a != b
}
