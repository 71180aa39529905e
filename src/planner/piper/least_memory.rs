//! A bound on the memory that any plan needs on its fullest device, whatever the sets: for networks too large to search.
//!
//! Think of devices from the network's end on. A stage on `t · d` devices holds `y` microbatches on each replica, and
//! `d · y` is at least the number of replicas from there on, which is at least `x / T` where `x` devices are in use up to
//! the stage's last one and `T` is the largest degree. So the bytes of a stage on all its devices are at least
//! `t · (a · max(1, x / T) + b)` summed over its nodes, and each of those devices is at a place no further than `x`: a node
//! that takes its share of the devices at place `x'` costs at least `c(v, x') = min over t, mode of t · (a · max(1, x' / T) + b)`.
//! Weigh the nodes by `w(v) = c(v, K/2)` with `K` devices in all: the devices between two places hold no more weight than
//! their memory over `min over v of c(v, x') / w(v)` at the nearer place. If all places together hold less than all nodes
//! weigh, nothing fits. `O(nodes · modes · PLACES)` time.

use super::model::PiperModel;

/// Places that are looked at.
const PLACES: u32 = 32;
/// Slack for rounding.
const ROUNDING: f64 = 1e-9;

/// Bytes of memory that every device must have at the least; 0 where nothing can be said.
pub(super) fn least_memory(model: &PiperModel<'_>) -> f64 {
    let devices = model.limits.devices;
    if devices == 0 {
        return 0.0;
    }
    let widest = model.degrees.iter().map(|degree| degree.t).max().map_or(1.0, f64::from);
    let cost = |v: usize, place: f64| {
        let in_flight = (place / widest).max(1.0);
        let least = |(t, memory): (u32, f64)| f64::from(t) * memory;
        let choices = model.degrees.iter().flat_map(|degree| degree.choices[v].iter().map(move |own| (degree.t, own)));
        choices.map(|(t, own)| least((t, own.memory(in_flight)))).fold(f64::INFINITY, f64::min)
    };
    let weights: Vec<f64> = (0..model.dag.len()).map(|v| cost(v, f64::from(devices) / 2.0)).collect();
    let all: f64 = weights.iter().sum();
    let places = PLACES.min(devices);
    let mut held = 0.0;
    for step in 0..places {
        let [from, to] = [step, step + 1].map(|step| f64::from(devices) * f64::from(step) / f64::from(places));
        let heavy = (0..weights.len()).filter(|&v| weights[v] > 0.0);
        let least = heavy.map(|v| cost(v, from) / weights[v]).fold(f64::INFINITY, f64::min);
        held += (to - from) / least;
    }
    if all > 0.0 && held.is_finite() && all.is_finite() { all / held * (1.0 - ROUNDING) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::{GivenLimits, LimitKind},
        family,
        graph::SuccessorSets,
        planner::{self, Options, Problem, Search, piper::settings::PiperSettings},
        workload,
    };

    #[test]
    fn no_plan_fits_into_less_and_not_much_more_is_needed() {
        let workload = std::sync::Arc::new(workload::builtin());
        for devices in [1, 2, 3, 8, 32] {
            let asked = GivenLimits::default().with(LimitKind::Devices, devices).with(LimitKind::Memory, 1.0);
            let limits = family::resolve(&workload, &asked).unwrap();
            let piper = planner::find("piper").unwrap();
            let options = Options::defaults(piper.options());
            let settings = PiperSettings::new(&options);
            let order = workload.dag.stack_order();
            let sets = SuccessorSets::at_places(&workload.dag, &order, &[]);
            let (profile, search) = (workload.piper().unwrap(), Search::default());
            let model = PiperModel::new(&workload, profile, &limits, &settings, sets, &search).unwrap();
            let least = least_memory(&model);
            let outcome = piper.plan(&Problem { workload: workload.clone(), limits, options }, &search);
            let enough = outcome.infeasible.unwrap().smallest_memory_bytes.unwrap();
            assert!(least <= enough && least >= 0.3 * enough, "{devices}: {least} {enough}");
        }
    }
}
