//! Equal partition: the same number of layers, replicas and tensor degree on every stage.
//!
//! The baseline that Piper is compared with (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021), in the manner of
//! PipeDream-2BW (Narayanan et al., ICML 2021): every combination of stage count, replicas, tensor degree and "recompute
//! everywhere or nowhere" is scored, the best one wins. Two variants:
//!
//! * *transformer*: transformer layers are dealt out evenly, what comes before them joins the first stage and what comes
//!   after joins the last; optionally the ends get stages of their own;
//! * *general*: all nodes in depth-first topological order are dealt out evenly.
//!
//! With `S` stage counts, `d` divisors, `t` degrees it scores `O(S · d · t)` plans of `O(n + m)` each. The surprising
//! decision, as published: a tensor degree is tried if the file's *first* node offers it, and a stage count that exceeds
//! the nodes leaves leading stages empty. A plan with empty stages is never better than the same without, so those are
//! left out here; the values are the same.

use std::collections::BTreeSet;

use super::{Infeasible, Lever, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Search, Status};
use crate::{
    cluster::{LimitKind, Limits},
    plan::{Plan, Stage, Violation, check},
    units,
    workload::{
        PiperProfile, Workload,
        piper::{RECOMPUTE, TRANSFORMER_LAYER, VANILLA},
    },
};

static INFO: PlannerInfo = PlannerInfo {
    id: "equal-partition",
    name: "Equal partition",
    paper: "Baseline of Piper (NeurIPS 2021) after Narayanan et al.: Memory-Efficient Pipeline-Parallel DNN Training, ICML 2021",
    summary: "the same number of layers, replicas and tensor degree on every stage",
    objective: "time_per_sample",
    unit: "s",
};

static OPTIONS: [OptionSpec; 3] = [
    OptionSpec {
        name: "variant",
        label: "variant",
        help: "what is dealt out evenly",
        kind: OptionKind::Choice {
            choices: &[
                ("auto", "transformer layers where there are any, else all nodes"),
                ("transformer", "transformer layers"),
                ("general", "all nodes in topological order"),
            ],
            default: "auto",
        },
    },
    OptionSpec {
        name: "separate_ends",
        label: "separate ends",
        help: "whether what comes before and after the transformer layers may have stages of its own",
        kind: OptionKind::Choice {
            choices: &[("auto", "try with and without"), ("never", "always with the outer layers")],
            default: "auto",
        },
    },
    OptionSpec {
        name: "tensor_parallel",
        label: "tensor parallel",
        help: "let a stage split its tensors over several devices",
        kind: OptionKind::Flag { default: true },
    },
];

/// The planner.
#[derive(Debug, Clone, Copy)]
pub struct EqualPartition;

impl Planner for EqualPartition {
    fn info(&self) -> &'static PlannerInfo {
        &INFO
    }

    fn options(&self) -> &'static [OptionSpec] {
        &OPTIONS
    }

    fn levers(&self) -> &'static [Lever] {
        &[Lever::Freedom("tensor_parallel")]
    }

    fn can_plan(&self, workload: &Workload) -> Result<(), String> {
        match workload.piper() {
            Some(_) => Ok(()),
            None => Err("equal partition needs a profile with times and memory by tensor degree (Piper's JSON)".into()),
        }
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let workload = &problem.workload;
        let Some(profile) = workload.piper() else { return Outcome::new(Status::Infeasible) };
        let has_layers = workload.nodes.iter().any(is_transformer);
        let layered = match problem.options.choice("variant") {
            "transformer" if !has_layers => return without_layers(),
            "transformer" => true,
            "general" => false,
            _ => has_layers,
        };
        let mut trial = Trial {
            workload,
            profile,
            limits: &problem.limits,
            degrees: degrees(profile, &problem.limits, problem.options.flag("tensor_parallel")),
            search,
            best: None,
            least_memory: None,
            scored: 0,
        };
        let complete = if layered {
            let parts = Layers::new(workload);
            trial.layered(&parts, false)
                && (problem.options.choice("separate_ends") == "never" || trial.layered(&parts, true))
        } else {
            trial.general()
        };
        trial.outcome(complete, layered)
    }
}

fn is_transformer(node: &crate::workload::Node) -> bool {
    node.name.as_deref() == Some(TRANSFORMER_LAYER)
}

fn without_layers() -> Outcome {
    Outcome::refused(format!("No node is named `{TRANSFORMER_LAYER}`: set variant to general."))
}

/// Tensor degrees to try: those that the first node offers, as in the published program.
fn degrees(profile: &PiperProfile, limits: &Limits, tensor_parallel: bool) -> Vec<u32> {
    if !tensor_parallel {
        return vec![1];
    }
    let first = profile.nodes.first().map(|node| node.degrees.iter().map(|d| d.degree).collect::<Vec<_>>());
    first.unwrap_or_default().into_iter().filter(|&t| t <= limits.devices).collect()
}

/// The nodes in front of, in, and behind the transformer layers.
struct Layers {
    initial: Vec<usize>,
    layers: Vec<usize>,
    last: Vec<usize>,
}

impl Layers {
    /// A node from which a layer can be reached comes before; of the others, one that can be reached from a layer comes
    /// after, and so does one that touches neither (it has to be somewhere).
    fn new(workload: &Workload) -> Self {
        let dag = &workload.dag;
        let layers: BTreeSet<usize> =
            (0..workload.nodes.len()).filter(|&v| is_transformer(&workload.nodes[v])).collect();
        let mut initial = BTreeSet::new();
        for &v in dag.topological_order().iter().rev() {
            let v = v as usize;
            if !layers.contains(&v) && dag.successors(v).any(|w| layers.contains(&w) || initial.contains(&w)) {
                initial.insert(v);
            }
        }
        let order = dag.stack_order();
        let pick = |wanted: &dyn Fn(usize) -> bool| order.iter().map(|&v| v as usize).filter(|&v| wanted(v)).collect();
        Layers {
            initial: pick(&|v| initial.contains(&v)),
            layers: pick(&|v| layers.contains(&v)),
            last: pick(&|v| !initial.contains(&v) && !layers.contains(&v)),
        }
    }

    /// The stages' nodes with the layers dealt out over `count` of them.
    fn stages(&self, count: usize, separate_ends: bool) -> Vec<Vec<usize>> {
        let mut stages = dealt(&self.layers, count);
        if separate_ends {
            stages.insert(0, self.initial.clone());
            stages.push(self.last.clone());
        } else {
            stages[0].splice(0..0, self.initial.iter().copied());
            stages[count - 1].extend(&self.last);
        }
        stages
    }
}

/// A list in `count` runs of equal length; the last ones are one longer where it does not divide.
fn dealt(list: &[usize], count: usize) -> Vec<Vec<usize>> {
    let (each, more) = (list.len() / count, list.len() % count);
    let mut rest = list;
    (0..count)
        .map(|i| {
            let (run, after) = rest.split_at(each + usize::from(i >= count - more));
            rest = after;
            run.to_vec()
        })
        .collect()
}

struct Trial<'a> {
    workload: &'a Workload,
    profile: &'a PiperProfile,
    limits: &'a Limits,
    degrees: Vec<u32>,
    search: &'a Search,
    best: Option<(f64, Plan)>,
    /// The least peak memory of any plan that broke no other rule.
    least_memory: Option<f64>,
    scored: u32,
}

impl Trial<'_> {
    /// All stage counts over the transformer layers; false if cancelled.
    fn layered(&mut self, parts: &Layers, separate_ends: bool) -> bool {
        let ends = if separate_ends { 2 } else { 0 };
        let most = (self.limits.devices as usize).min(parts.layers.len() + ends);
        (1..=most.saturating_sub(ends)).all(|count| {
            self.search.report_fraction(count as f64 / most as f64);
            self.stages(&parts.stages(count, separate_ends))
        })
    }

    /// All stage counts over all nodes; false if cancelled.
    fn general(&mut self) -> bool {
        let order: Vec<usize> = self.workload.dag.stack_order().into_iter().map(|v| v as usize).collect();
        let most = (self.limits.devices as usize).min(order.len());
        (1..=most).all(|count| {
            self.search.report_fraction(count as f64 / most as f64);
            self.stages(&dealt(&order, count))
        })
    }

    /// Scores every common degree and mode for these stages; false if cancelled.
    fn stages(&mut self, stages: &[Vec<usize>]) -> bool {
        let limits = self.limits;
        let count = stages.len() as u32;
        let most_replicas = limits.devices.min(limits.microbatches) / count;
        for d in (1..=most_replicas).filter(|&d| limits.microbatches.is_multiple_of(d)) {
            for t in self.degrees.clone() {
                if count.saturating_mul(d).saturating_mul(t) > limits.devices {
                    continue;
                }
                for mode in [VANILLA, RECOMPUTE] {
                    if self.search.cancelled() {
                        return false;
                    }
                    self.score(stages, d, t, mode);
                }
            }
        }
        true
    }

    fn score(&mut self, stages: &[Vec<usize>], d: u32, t: u32, mode: &str) {
        let offered =
            |&v: &usize| self.profile.nodes[v].modes(t).is_some_and(|modes| modes.iter().any(|m| m.id == mode));
        if !stages.iter().flatten().all(offered) {
            return;
        }
        let stage = |nodes: &Vec<usize>| {
            let mut nodes = nodes.clone();
            nodes.sort_unstable();
            Stage {
                choices: vec![mode.to_string(); nodes.len()],
                nodes,
                data_parallel: d,
                tensor_parallel: t,
                devices: vec![],
            }
        };
        let stages = stages.iter().filter(|nodes| !nodes.is_empty()).map(stage).collect();
        let plan = Plan { stages, ..Plan::default() }.with_consecutive_devices();
        let score = check::check(self.workload, self.limits, &plan);
        self.scored += 1;
        if score.violations.iter().all(|v| matches!(v, Violation::OutOfMemory { .. })) {
            let peak = score.peak_memory_bytes();
            self.least_memory = Some(self.least_memory.map_or(peak, |least| least.min(peak)));
        }
        let value = score.value;
        if score.is_valid() && self.best.as_ref().is_none_or(|(best, _)| value < *best) {
            self.search.improve(value, &plan);
            self.best = Some((value, plan));
        }
    }

    fn outcome(self, complete: bool, layered: bool) -> Outcome {
        let status = match (complete, &self.best) {
            (true, Some(_)) => Status::Optimal,
            (true, None) => Status::Infeasible,
            (false, Some(_)) if self.search.deadline_passed() => Status::Feasible,
            (false, _) => Status::Cancelled,
        };
        let mut outcome = Outcome::new(status);
        if status == Status::Infeasible {
            outcome.infeasible = Some(self.infeasible());
        }
        if let Some((value, plan)) = self.best {
            outcome.objective = Some(value);
            outcome.plan = Some(plan);
            if complete {
                outcome.lower_bound = Some(value);
                outcome.proven_among = Some("equal partitions");
                let what = if layered { "transformer layers" } else { "nodes" };
                outcome.notes.push(format!(
                    "Optimal among equal partitions: the same degrees and mode everywhere, {what} dealt out evenly. Uneven plans may be faster."
                ));
            }
        }
        outcome.statistics.seconds = self.search.elapsed().as_secs_f64();
        outcome.statistics.counts = vec![("plans_scored", f64::from(self.scored))];
        outcome
    }

    fn infeasible(&self) -> Infeasible {
        let limits = self.limits;
        let mut explanation = format!(
            "No equal partition fits on {} {} with {} each.",
            limits.devices,
            if limits.devices == 1 { "device" } else { "devices" },
            units::bytes_exact(limits.memory_bytes)
        );
        match self.least_memory {
            Some(bytes) => explanation += &format!(" {} each would do.", units::bytes(bytes)),
            None => explanation += " No common tensor degree and mode is offered by every node.",
        }
        let kinds = if self.least_memory.is_some() { vec![LimitKind::Memory, LimitKind::Devices] } else { vec![] };
        Infeasible { limits: kinds, smallest_memory_bytes: self.least_memory, fewest_devices: None, explanation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_runs_take_what_does_not_divide() {
        let list: Vec<usize> = (0..7).collect();
        assert_eq!(dealt(&list, 3), [vec![0, 1], vec![2, 3], vec![4, 5, 6]]);
        assert_eq!(dealt(&list, 4), [vec![0], vec![1, 2], vec![3, 4], vec![5, 6]]);
    }
}
