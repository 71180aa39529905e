//! Figures of a stage: parts of its time and memory, degrees, distance from the slowest.

use crate::{
    family,
    plan::{Plan, Score, StageScore},
    simulate::MemoryParts,
    tui::{
        paint::shades::{Activity, Memory},
        shown::ShownRun,
        simulated::Simulated,
    },
    units,
};

/// Beginning of the name of the row of a stage's degrees.
pub(in crate::tui) const DEGREES: &str = "DP";

/// Name of the part of the time for transfers.
pub(in crate::tui) const COMMUNICATION: &str = "communication";

/// Figures of a stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::tui) struct Facts {
    /// Title: `Stage 4`, `Accelerator 2`.
    pub title: String,
    /// Devices: `devices 22–29`.
    pub devices: String,
    /// Reference of its times, and what hides communication; empty if there is nothing to say.
    pub per: &'static str,
    /// Parts of its time, seconds per microbatch. Parts that no stage has are left out.
    pub time: Vec<(Activity, &'static str, f64)>,
    /// Communication hidden by passes, seconds per microbatch; `None` if unknown.
    pub hidden_s: Option<f64>,
    /// Parts of its memory, bytes.
    pub memory: Vec<(Memory, &'static str, f64)>,
    /// Peak memory, bytes; `None` if unlimited.
    pub peak_bytes: Option<f64>,
    /// Names and values.
    pub rows: Vec<(&'static str, String)>,
}

impl Facts {
    /// Figures of a stage; `simulated` is the plan's simulated iteration, if known.
    pub(in crate::tui) fn of(
        shown: &ShownRun,
        plan: &Plan,
        score: &Score,
        simulated: Option<&Simulated>,
        index: usize,
    ) -> Facts {
        let (Some(stage), Some(scored)) = (plan.stages.get(index), score.stages.get(index)) else {
            return Facts::default();
        };
        let names = &shown.names;
        let mut title = capital(names.long(index));
        if let Some(kind) = family::of(&shown.workload).stage_kind(stage) {
            title += &format!(" on {kind}");
        }
        let mut facts = Facts { title, ..Facts::default() };
        facts.devices = match names.machines(index) {
            // An accelerator is named by its own number.
            "" if names.noun == "device" => String::new(),
            "" => devices(&stage.devices),
            machines => machines.to_string(),
        };
        facts.time = match simulated {
            // The simulator plays a step of operators as two passes, without their parts.
            _ if shown.operators.is_some() => vec![
                (Activity::Forward, "compute", scored.compute_s),
                (Activity::Communication, "transfers", scored.communication_s),
                (Activity::Communication, "all-reduce", scored.sync_s),
            ],
            // The simulator includes these transfers in passes; the check counts them separately.
            Some(simulated) if within_passes(simulated, scored) => planned(simulated, index, scored),
            Some(simulated) => time(simulated, index),
            None => vec![
                (Activity::Forward, "compute", scored.compute_s),
                (Activity::Communication, COMMUNICATION, scored.communication_s + scored.sync_s),
            ],
        };
        let told = |name: &str| facts.time.iter().find(|part| part.1 == name).map(|part| part.2);
        let whole = told(COMMUNICATION).filter(|seconds| *seconds > 0.0 && shown.operators.is_none());
        // Transfers that count within passes are the part that is not hidden.
        let apart = simulated.filter(|simulated| !within_passes(simulated, scored));
        let share = apart.filter(|simulated| simulated.setup.settings.overlap).and_then(|s| s.hidden(index));
        facts.hidden_s = whole.zip(share).map(|(seconds, share)| seconds * share);
        // If replicas take turns, the parts are per microbatch of one replica, and loads a fraction of that.
        let own = simulated.and_then(|simulated| simulated.pipeline.stages.get(index));
        let replicas = own.filter(|_| shown.operators.is_none()).map_or(1.0, |own| f64::from(own.replicas.max(1)));
        facts.memory = simulated.map(|simulated| memory(simulated, index)).unwrap_or_default();
        let peak = simulated.and_then(|simulated| simulated.timeline.peak_memory_bytes.get(index).copied());
        facts.peak_bytes = (!names.is_cpu(index)).then(|| peak.unwrap_or(scored.memory_bytes));
        let layers = family::of(&shown.workload).layers(&stage.nodes);
        facts.rows.push((names.nodes, layers.to_string()));
        if names.degrees && shown.operators.is_none() {
            let overlaps = simulated.is_some_and(Simulated::hides_transfers);
            facts.per = match (replicas > 1.0, overlaps) {
                (true, true) => "a microbatch on a replica; passes hide communication",
                (true, false) => "a microbatch on a replica",
                (false, true) => "a microbatch; passes hide communication",
                (false, false) => "a microbatch",
            };
            facts.rows.push((names.degrees_head(), names.degrees_of(stage)));
        }
        if scored.in_flight > 0 {
            facts.rows.push(("in flight", scored.in_flight.to_string()));
        }
        let recomputed = stage.recomputed();
        if plan.stages.iter().any(|stage| stage.recomputed() > 0) {
            facts.rows.push(("recomputing", format!("{recomputed} of {layers}")));
        }
        match scored.sample {
            Some(times) => {
                facts.rows.push(("begins", units::seconds(times.start_s)));
                facts.rows.push(("ends", units::seconds(times.finish_s)));
                facts.rows.push(("waited for", units::seconds(times.critical_s)));
            }
            None if plan.stages.len() > 1 => {
                let limiting = simulated.map_or_else(|| score.bottleneck(), Simulated::limiting);
                let paced = simulated.and_then(|simulated| simulated.slack_s(index));
                let slack = paced.unwrap_or(score.slowest_s - scored.load_s) * replicas;
                let told = if limiting == Some(index) { "none, it limits".into() } else { units::seconds(slack) };
                facts.rows.push(("slack", told));
            }
            None => {}
        }
        facts
    }
}

/// True if there are transfers, but the simulator has no separate time for them.
fn within_passes(simulated: &Simulated, scored: &StageScore) -> bool {
    let apart = simulated.pipeline.transfers.iter().any(|transfer| transfer.seconds > 0.0);
    !apart && scored.communication_s > 0.0 && scored.backward_compute_s > 0.0 && simulated.pipeline.steps.is_empty()
}

/// Parts of the time as the independent check counts them.
fn planned(simulated: &Simulated, index: usize, scored: &StageScore) -> Vec<(Activity, &'static str, f64)> {
    let mut time = vec![(Activity::Forward, "forward", scored.compute_s - scored.backward_compute_s)];
    let again = simulated.pipeline.stages.get(index).map_or(0.0, |stage| stage.recompute_s);
    if again > 0.0 {
        time.push((Activity::Recompute, "recompute", again));
    }
    time.push((Activity::Backward, "backward", scored.backward_compute_s - again));
    time.push((Activity::Communication, COMMUNICATION, scored.communication_s));
    if scored.sync_s > 0.0 {
        time.push((Activity::Communication, "all-reduce", scored.sync_s));
    }
    time
}

/// Parts of the time of a microbatch on a replica, as simulated.
fn time(simulated: &Simulated, index: usize) -> Vec<(Activity, &'static str, f64)> {
    let pipeline = &simulated.pipeline;
    let Some(stage) = pipeline.stages.get(index) else { return vec![] };
    let sent = |from: usize, to: usize| from == index || to == index;
    let one_way: f64 = pipeline.transfers.iter().filter(|t| sent(t.from, t.to)).map(|t| t.seconds).sum();
    let any = |of: fn(&crate::simulate::PipelineStage) -> f64| pipeline.stages.iter().any(|stage| of(stage) > 0.0);
    let backward = any(|stage| stage.backward_s);
    let mut time = vec![(Activity::Forward, if backward { "forward" } else { "compute" }, stage.forward_s)];
    if any(|stage| stage.recompute_s) {
        time.push((Activity::Recompute, "recompute", stage.recompute_s));
    }
    if backward {
        time.push((Activity::Backward, "backward", stage.backward_s - stage.recompute_s));
    }
    if pipeline.transfers.iter().any(|transfer| transfer.seconds > 0.0) {
        // Gradients return over the same links.
        time.push((Activity::Communication, COMMUNICATION, if backward { 2.0 * one_way } else { one_way }));
    }
    if any(|stage| stage.all_reduce_s) {
        let a_microbatch =
            stage.all_reduce_s * f64::from(stage.replicas.max(1)) / f64::from(pipeline.microbatches.max(1));
        time.push((Activity::Communication, "all-reduce", a_microbatch));
    }
    time
}

/// Least part of the buffers that is worth a name beside the memory that stays free.
const NAMED: f64 = 0.01;

/// Buffers in use, and the memory that stays free, which the simulator counts among them, bytes.
pub(super) fn buffers(simulated: &Simulated, parts: &MemoryParts) -> [f64; 2] {
    let kept = simulated.shown.workload.training().map_or(0.0, |profile| profile.settings.reserve_bytes);
    let kept = kept.min(parts.buffers);
    let used = parts.buffers - kept;
    [if used > NAMED * parts.buffers { used } else { 0.0 }, kept]
}

fn memory(simulated: &Simulated, index: usize) -> Vec<(Memory, &'static str, f64)> {
    let Some(parts) = simulated.timeline.peak_parts.get(index) else { return vec![] };
    let state = parts.weights + parts.gradients + parts.optimizer + parts.state;
    let [buffers, kept] = buffers(simulated, parts);
    let all = [
        (Memory::State, "state", state),
        (Memory::Activations, "activations", parts.activations),
        (Memory::Buffers, "buffers", buffers),
        (Memory::Buffers, "kept free", kept),
    ];
    all.into_iter().filter(|part| part.2 > 0.0).collect()
}

/// Devices in words: `devices 22–29`, `device 3`, `8 devices`.
fn devices(devices: &[u32]) -> String {
    match devices {
        [] => String::new(),
        [only] => format!("device {only}"),
        [first, .., last] if (last - first) as usize + 1 == devices.len() => format!("devices {first}–{last}"),
        _ => format!("{} devices", devices.len()),
    }
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// True if a memory limit means unlimited.
pub(in crate::tui) fn is_unlimited(limit: f64) -> bool {
    !limit.is_finite() || units::bytes_exact(limit) == "unlimited"
}

/// Memory value and limit, with the unit once if both have the same: `78.4 of 80 GiB`.
pub(in crate::tui) fn of_limit(bytes: f64, limit: f64) -> (String, String) {
    let held = units::bytes_beside(bytes, limit);
    let all = units::bytes_exact(limit);
    if is_unlimited(limit) {
        return (units::bytes(bytes), String::new());
    }
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_string());
    let held = match (unit(&held), unit(&all)) {
        (Some(a), Some(b)) if a == b => held.split(' ').next().unwrap_or_default().to_string(),
        _ => held,
    };
    (held, format!(" of {all}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_told_in_short() {
        assert_eq!(devices(&[22, 23, 24]), "devices 22–24");
        assert_eq!(devices(&[3]), "device 3");
        assert_eq!(devices(&[0, 2, 4]), "3 devices");
    }

    #[test]
    fn a_unit_stands_once() {
        let gib = f64::from(1 << 30);
        let (held, all) = of_limit(78.4 * gib, 80.0 * gib);
        assert_eq!(held + &all, "78.4 of 80 GiB");
        assert_eq!(of_limit(gib, f64::INFINITY).1, "");
    }
}
