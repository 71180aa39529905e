//! A stage in figures: what its time and its memory are made of, its degrees, how far it is from the slowest.

use crate::{
    plan::{Plan, Score},
    tui::{
        paint::shades::{Activity, Memory},
        shown::ShownRun,
        simulated::Simulated,
    },
    units,
    workload::piper::RECOMPUTE,
};

/// What there is to say of a stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::tui) struct Facts {
    /// `Stage 4`, `Accelerator 2`.
    pub title: String,
    /// `devices 22–29`.
    pub devices: String,
    /// What its time goes into, seconds a microbatch; nothing is left out but what no stage has.
    pub time: Vec<(Activity, &'static str, f64)>,
    /// What its memory is made of, bytes.
    pub memory: Vec<(Memory, &'static str, f64)>,
    /// What it needs at the most, bytes; `None` where nothing limits it.
    pub peak_bytes: Option<f64>,
    /// Names and values.
    pub rows: Vec<(&'static str, String)>,
}

impl Facts {
    /// The facts of a stage; `simulated`: the plan's simulated batch, if it is there.
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
        let mut facts = Facts { title: capital(names.long(index)), ..Facts::default() };
        facts.devices = match names.machines(index) {
            "" => devices(&stage.devices),
            machines => machines.to_string(),
        };
        facts.time = match simulated {
            Some(simulated) => time(simulated, index),
            None => vec![
                (Activity::Forward, "compute", scored.compute_s),
                (Activity::Communication, "communication", scored.communication_s + scored.sync_s),
            ],
        };
        facts.memory = simulated.map(|simulated| memory(simulated, index)).unwrap_or_default();
        let peak = simulated.and_then(|simulated| simulated.timeline.peak_memory_bytes.get(index).copied());
        facts.peak_bytes = (!names.is_cpu(index)).then(|| peak.unwrap_or(scored.memory_bytes));
        let layers = if names.noun == "stage" { "layers" } else { "nodes" };
        facts.rows.push((layers, stage.nodes.len().to_string()));
        if names.degrees {
            facts.rows.push(("DP × TP", format!("{} × {}", stage.data_parallel, stage.tensor_parallel)));
        }
        if scored.in_flight > 0 {
            facts.rows.push(("in flight", scored.in_flight.to_string()));
        }
        let recomputed = stage.choices.iter().filter(|choice| *choice == RECOMPUTE).count();
        if plan.stages.iter().any(|stage| stage.choices.iter().any(|choice| choice == RECOMPUTE)) {
            facts.rows.push(("recomputing", format!("{recomputed} of {}", stage.nodes.len())));
        }
        match scored.sample {
            Some(times) => {
                facts.rows.push(("begins", units::seconds(times.start_s)));
                facts.rows.push(("ends", units::seconds(times.finish_s)));
                facts.rows.push(("waited for", units::seconds(times.critical_s)));
            }
            None if plan.stages.len() > 1 => {
                let slack = score.slowest_s - scored.load_s;
                let told = if score.bottleneck() == Some(index) { "slowest".into() } else { units::seconds(slack) };
                facts.rows.push(("slack a sample", told));
            }
            None => {}
        }
        facts
    }
}

/// What a microbatch costs on a replica, in the simulator.
fn time(simulated: &Simulated, index: usize) -> Vec<(Activity, &'static str, f64)> {
    let pipeline = &simulated.pipeline;
    let Some(stage) = pipeline.stages.get(index) else { return vec![] };
    let sent = |from: usize, to: usize| from == index || to == index;
    let transfers = pipeline.transfers.iter().filter(|t| sent(t.from, t.to)).map(|t| t.seconds).sum();
    let any = |of: fn(&crate::simulate::PipelineStage) -> f64| pipeline.stages.iter().any(|stage| of(stage) > 0.0);
    let backward = any(|stage| stage.backward_s);
    let mut time = vec![(Activity::Forward, if backward { "forward" } else { "compute" }, stage.forward_s)];
    if any(|stage| stage.recompute_s) {
        time.push((Activity::Recompute, "recompute", stage.recompute_s));
    }
    if backward {
        time.push((Activity::Backward, "backward", stage.backward_s - stage.recompute_s));
    }
    if !pipeline.transfers.is_empty() {
        time.push((Activity::Communication, "communication", transfers));
    }
    if any(|stage| stage.all_reduce_s) {
        let a_microbatch =
            stage.all_reduce_s * f64::from(stage.replicas.max(1)) / f64::from(pipeline.microbatches.max(1));
        time.push((Activity::Communication, "all-reduce", a_microbatch));
    }
    time
}

fn memory(simulated: &Simulated, index: usize) -> Vec<(Memory, &'static str, f64)> {
    let Some(parts) = simulated.timeline.peak_parts.get(index) else { return vec![] };
    let state = parts.weights + parts.gradients + parts.optimizer + parts.state;
    let all = [
        (Memory::State, "state", state),
        (Memory::Activations, "activations", parts.activations),
        (Memory::Buffers, "buffers", parts.buffers),
    ];
    all.into_iter().filter(|part| part.2 > 0.0).collect()
}

/// `devices 22–29`, `device 3`, `8 devices`.
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

/// Whether a limit of memory is none.
pub(in crate::tui) fn is_unlimited(limit: f64) -> bool {
    !limit.is_finite() || units::bytes_exact(limit) == "unlimited"
}

/// A value of memory without its unit where the limit's has the same: `78.4 of 80 GiB`.
pub(in crate::tui) fn of_limit(bytes: f64, limit: f64) -> (String, String) {
    let held = units::bytes_like(bytes, limit);
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
