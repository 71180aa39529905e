//! Equal partition: the same number of layers, replicas and tensor degree on every stage.
//!
//! This is the baseline of Piper (Tarnawski, Narayanan, Phanishayee, NeurIPS 2021), after PipeDream-2BW (Narayanan et
//! al., ICML 2021). Every combination of stage count, replicas, tensor degree and "recompute everywhere or nowhere" is
//! scored, and the best one wins. There are two variants:
//!
//! * *transformer*: the transformer layers are split evenly. Nodes before them join the first stage, nodes after them
//!   the last. Optionally these ends get stages of their own.
//! * *general*: all nodes in depth-first topological order are split evenly.
//!
//! With `S` stage counts, `d` divisors and `t` degrees, `O(S · d · t)` plans are estimated from sums (`estimate`) in
//! `O(S · (n + m) + plans · stages)`. Only those that may be optimal are built and scored, in `O(n + m)` each.
//!
//! As published, a tensor degree is tried if the file's *first* node offers it, and a stage count above the number of
//! nodes leaves leading stages empty. This code skips plans with empty stages: the same plan without them is never
//! worse, so the values are unchanged.

mod estimate;

use std::collections::BTreeSet;

use super::{
    Declaration, Infeasible, OptionKind, OptionSpec, Outcome, Planner, PlannerInfo, Problem, Search, Status, Tunable,
};
use crate::{Bearing, CannotPlan, Proves, outcome::feasible_with, pipeline_options};
use estimate::{Estimate, Line};
use plantui_core::{
    cluster::{LimitKind, Limits},
    family,
    plan::{Plan, Stage, Violation},
    units,
    workload::{Choice, NodeIndex, PiperProfile, Workload, piper::TRANSFORMER_LAYER},
};

static OPTIONS: [OptionSpec; 3] = [
    OptionSpec {
        name: "variant",
        label: "variant",
        help: "the nodes that are split evenly",
        kind: OptionKind::Choice {
            choices: &[
                ("auto", "transformer layers if there are any, else all nodes"),
                ("transformer", "transformer layers"),
                ("general", "all nodes in topological order"),
            ],
            default: "auto",
        },
    },
    OptionSpec {
        name: "separate_ends",
        label: "separate ends",
        help: "whether the nodes before and after the transformer layers may form their own stages",
        kind: OptionKind::Choice {
            choices: &[("auto", "try both"), ("never", "always with the outer layers")],
            default: "auto",
        },
    },
    OptionSpec {
        name: "tensor_parallel",
        label: "tensor parallel",
        help: "allow tensor parallelism",
        kind: OptionKind::Flag { default: true },
    },
];

/// Role of each option in a proof.
static BEARINGS: [(&str, Bearing); 3] = [
    (
        "variant",
        Bearing::Narrows(|options| match options.choice("variant") {
            "general" => Some("with all nodes split evenly".into()),
            "transformer" => Some("with the transformer layers split evenly".into()),
            _ => None,
        }),
    ),
    (
        "separate_ends",
        Bearing::Narrows(|options| {
            (options.choice("separate_ends") == "never").then(|| "without separate ends".into())
        }),
    ),
    pipeline_options::OF_TENSOR_PARALLEL,
];

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "equal-partition",
        name: "Equal partition",
        paper: "Baseline of Piper (NeurIPS 2021) after Narayanan et al.: Memory-Efficient Pipeline-Parallel DNN \
            Training, ICML 2021",
        summary: "the same number of layers, replicas and tensor degree on every stage",
        objective: "time_per_sample",
        unit: "s",
    },
    options: &OPTIONS,
    proves: Proves::Among(&BEARINGS),
    tunables: &[Tunable::Freedom("tensor_parallel")],
    can_plan,
    ..Declaration::NEW
};

/// Planner of equal partitions.
#[derive(Debug, Clone, Copy)]
pub struct EqualPartition;

impl Planner for EqualPartition {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
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
        let dealt = if layered { Dealt::layers(workload) } else { Dealt::nodes(workload) };
        let degrees = degrees(profile, &problem.limits, problem.options.flag("tensor_parallel"));
        let mut trial = Trial {
            workload,
            limits: &problem.limits,
            line: Line::new(workload, profile, dealt.order.clone(), &degrees),
            search,
            best: None,
            least_memory: None,
            contenders: Contenders::default(),
            scored: 0,
        };
        let ends = layered && problem.options.choice("separate_ends") != "never";
        let complete = trial.all(&dealt, false) && (!ends || trial.all(&dealt, true));
        trial.decide(&dealt, complete);
        trial.outcome(complete, layered)
    }
}

fn can_plan(workload: &Workload) -> Result<(), CannotPlan> {
    match workload.piper() {
        Some(_) => Ok(()),
        None => Err("equal partition needs a profile with times and memory by tensor degree (Piper's JSON)".into()),
    }
}

fn is_transformer(node: &plantui_core::workload::Node) -> bool {
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

/// Order of the nodes, and the number of nodes before and after the part that is split evenly.
struct Dealt {
    order: Vec<usize>,
    before: usize,
    after: usize,
}

impl Dealt {
    /// Splits all nodes.
    fn nodes(workload: &Workload) -> Self {
        let order = workload.dag.stack_order().into_iter().map(|v| v as usize).collect();
        Dealt { order, before: 0, after: 0 }
    }

    /// Splits the transformer layers. A node with a path to a layer comes before them. All other nodes come after,
    /// including those without a path to or from a layer.
    fn layers(workload: &Workload) -> Self {
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
        let pick = |wanted: &dyn Fn(usize) -> bool| -> Vec<usize> {
            order.iter().map(|&v| v as usize).filter(|&v| wanted(v)).collect()
        };
        let before = pick(&|v| initial.contains(&v));
        let after = pick(&|v| !initial.contains(&v) && !layers.contains(&v));
        let (first, last) = (before.len(), after.len());
        let order = [before, pick(&|v| layers.contains(&v)), after].concat();
        Dealt { order, before: first, after: last }
    }

    /// Number of nodes to split.
    fn dealt(&self) -> usize {
        self.order.len() - self.before - self.after
    }

    /// Start of each stage if the nodes are split over `count` stages; empty stages are left out.
    fn begins(&self, count: usize, separate_ends: bool) -> Vec<usize> {
        let mut begins = vec![0];
        let mut at = self.before;
        if separate_ends {
            begins.push(at);
        }
        for length in lengths(self.dealt(), count) {
            at += length;
            begins.push(at);
        }
        if !separate_ends {
            begins.pop();
        }
        begins.dedup();
        if begins.len() > 1 && begins.last() == Some(&self.order.len()) {
            begins.pop();
        }
        begins
    }
}

/// Lengths of `count` equal runs; if the division has a remainder, the last runs are one longer.
fn lengths(all: usize, count: usize) -> impl Iterator<Item = usize> {
    let (each, more) = (all / count, all % count);
    (0..count).map(move |i| each + usize::from(i >= count - more))
}

/// An equal partition.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// Stages over which the nodes are split, without separate ends.
    count: usize,
    separate_ends: bool,
    /// Index of degree and mode in `Line::kinds`.
    kind: usize,
    d: u32,
}

/// Partitions that may be optimal, in order of visit, each with a lower bound on its value.
#[derive(Debug, Default)]
struct Contenders {
    list: Vec<(f64, Candidate)>,
    /// Upper bound on the optimal value.
    most: Option<f64>,
}

impl Contenders {
    /// Adds a candidate unless another one is certainly better. `sure` means that it certainly breaks no rule.
    fn add(&mut self, candidate: Candidate, value: f64, room: f64, sure: bool) {
        if self.most.is_some_and(|most| value - room > most) {
            return;
        }
        self.list.push((value - room, candidate));
        if sure {
            self.most = Some(self.most.map_or(value + room, |most| most.min(value + room)));
        }
    }

    fn take(&mut self) -> Vec<Candidate> {
        let most = self.most.unwrap_or(f64::INFINITY);
        std::mem::take(&mut self.list).into_iter().filter(|&(least, _)| least <= most).map(|(_, c)| c).collect()
    }
}

/// A candidate that improves on the best published value by this factor is built and published at once.
const WORTH_PUBLISHING: f64 = 0.9;

struct Trial<'a> {
    workload: &'a Workload,
    limits: &'a Limits,
    line: Line<'a>,
    search: &'a Search,
    best: Option<(f64, Plan)>,
    /// Smallest peak memory of any plan that broke no other rule.
    least_memory: Option<f64>,
    /// Ranked by load among plans that may fit; until one fits, ranked by memory.
    contenders: Contenders,
    scored: u32,
}

impl Trial<'_> {
    /// Estimates all stage counts; false if cancelled.
    fn all(&mut self, dealt: &Dealt, separate_ends: bool) -> bool {
        let ends = if separate_ends { 2 } else { 0 };
        // Every stage needs a device and a microbatch in flight.
        let most = (self.limits.devices.min(self.limits.microbatches) as usize).min(dealt.dealt() + ends);
        (1..=most.saturating_sub(ends)).all(|count| {
            self.search.report_fraction(count as f64 / most as f64);
            !self.search.cancelled() && self.stages(dealt, count, separate_ends)
        })
    }

    /// Estimates every common degree and mode for `count` stages; false if cancelled.
    fn stages(&mut self, dealt: &Dealt, count: usize, separate_ends: bool) -> bool {
        let limits = self.limits;
        let begins = dealt.begins(count, separate_ends);
        let between = self.line.between(&begins);
        let stages = (count + if separate_ends { 2 } else { 0 }) as u32;
        let most_replicas = limits.devices.min(limits.microbatches) / stages;
        for d in (1..=most_replicas).filter(|&d| limits.microbatches.is_multiple_of(d)) {
            for kind in 0..self.line.kinds.len() {
                if stages.saturating_mul(d).saturating_mul(self.line.kinds[kind].t) > limits.devices {
                    continue;
                }
                if self.search.cancelled() {
                    return false;
                }
                let estimate = self.line.estimate(&self.line.kinds[kind], &begins, &between, d, limits);
                self.weigh(dealt, Candidate { count, separate_ends, kind, d }, estimate);
                self.scored += 1;
            }
        }
        true
    }

    fn weigh(&mut self, dealt: &Dealt, candidate: Candidate, estimate: Estimate) {
        let Estimate { load_s, load_room, memory_bytes, memory_room } = estimate;
        if memory_bytes - memory_room > self.limits.memory() {
            // If nothing fits, the outcome reports the smallest memory that suffices.
            if self.best.is_none() {
                self.contenders.add(candidate, memory_bytes, memory_room, true);
            }
            return;
        }
        if self.best.as_ref().is_none_or(|&(best, _)| load_s < best * WORTH_PUBLISHING) {
            let before = self.best.is_some();
            self.score(dealt, candidate);
            if !before && self.best.is_some() {
                self.contenders = Contenders::default();
            }
        }
        if self.best.is_some() {
            self.contenders.add(candidate, load_s, load_room, memory_bytes + memory_room <= self.limits.memory());
        }
    }

    /// Scores the remaining candidates; only the last added, most promising one if the search was stopped.
    fn decide(&mut self, dealt: &Dealt, complete: bool) {
        let mut left = self.contenders.take();
        if !complete {
            left.drain(..left.len().saturating_sub(1));
        }
        // Among equal candidates the first one wins.
        let published = std::mem::take(&mut self.best);
        left.into_iter().for_each(|candidate| self.score(dealt, candidate));
        if let Some(published) = published
            && self.best.as_ref().is_none_or(|best| published.0 < best.0)
        {
            self.best = Some(published);
        }
    }

    fn score(&mut self, dealt: &Dealt, Candidate { count, separate_ends, kind, d }: Candidate) {
        let begins = dealt.begins(count, separate_ends);
        let kind = &self.line.kinds[kind];
        let stage = |(i, &from): (usize, &usize)| {
            let mut nodes = self.line.order[from..self.line.end(&begins, i)].to_vec();
            nodes.sort_unstable();
            Stage {
                choices: vec![Choice::Mode(kind.mode.to_string()); nodes.len()],
                nodes: NodeIndex::list(nodes),
                data_parallel: d,
                tensor_parallel: kind.t,
                devices: vec![],
            }
        };
        let stages = begins.iter().enumerate().map(stage).collect();
        let plan = Plan { stages, ..Plan::default() }.with_consecutive_devices();
        let score = family::check(self.workload, self.limits, &plan);
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

    /// Lower bound on the load: all work spread evenly over the devices, at the kind with the least work.
    fn even_share(&self) -> f64 {
        let least = self.line.kinds.iter().map(estimate::Kind::device_seconds).fold(f64::INFINITY, f64::min);
        least * (1.0 - 1e-9) / f64::from(self.limits.devices)
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
        let even_share = self.even_share();
        if let Some((value, plan)) = self.best {
            outcome.objective = Some(value);
            outcome.plan = Some(plan);
            outcome.lower_bound = Some(even_share.min(value));
            if complete {
                outcome.lower_bound = Some(value);
                outcome.proven_among = Some("equal partitions".into());
                let what = if layered { "transformer layers" } else { "nodes" };
                outcome.notes.push(format!(
                    "Optimal among equal partitions: the same degrees and mode everywhere, {what} split evenly. \
                    Uneven plans may be faster."
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
            "No feasible equal partition on {} of {}.{}",
            units::counted(limits.devices as usize, "device"),
            units::bytes_exact(limits.memory_limit()),
            feasible_with(limits, self.least_memory, None)
        );
        if self.least_memory.is_none() {
            explanation += " No tensor degree and mode is common to all nodes.";
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
        assert_eq!(lengths(7, 3).collect::<Vec<_>>(), [2, 2, 3]);
        assert_eq!(lengths(7, 4).collect::<Vec<_>>(), [1, 2, 2, 2]);
    }

    #[test]
    fn stages_without_nodes_are_left_out() {
        let dealt = |before: usize, layers: usize, after: usize| Dealt {
            order: (0..before + layers + after).collect(),
            before,
            after,
        };
        assert_eq!(dealt(2, 4, 1).begins(2, false), [0, 4]);
        assert_eq!(dealt(2, 4, 1).begins(2, true), [0, 2, 4, 6]);
        assert_eq!(dealt(0, 4, 0).begins(2, true), [0, 2]);
        assert_eq!(dealt(0, 2, 0).begins(3, false), [0, 1]);
        assert_eq!(dealt(1, 3, 0).begins(1, true), [0, 1]);
    }
}
