//! How a removed limit binds, derived from the differences of the better plan.

use super::{Certainty, Change, ExplainedPlan, NOTICEABLE, Replan, Topic};
use plantui_core::{
    cluster::LimitKind,
    family::{self, devices},
    plan::{Plan, Stage},
    units,
    workload::NodeIndex,
};

/// Limit that binds a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseKind {
    /// Memory per device.
    Memory,
    /// Number of devices.
    Devices,
    /// Time of transfers over links.
    Links,
    /// Divisors of the number of microbatches: the number of replicas must be one of them.
    Divisors,
    /// Tensor degrees that some nodes lack.
    Degrees,
}

impl CauseKind {
    /// Id for scripts.
    pub fn id(self) -> &'static str {
        match self {
            CauseKind::Memory => "memory",
            CauseKind::Devices => "devices",
            CauseKind::Links => "links",
            CauseKind::Divisors => "divisors",
            CauseKind::Degrees => "degrees",
        }
    }

    /// True if the details say more than the fact that the limit binds.
    pub fn explains(self) -> bool {
        matches!(self, CauseKind::Memory | CauseKind::Divisors | CauseKind::Degrees)
    }

    /// Name for people.
    pub fn title(self) -> &'static str {
        match self {
            CauseKind::Memory => "memory",
            CauseKind::Devices => "devices",
            CauseKind::Links => "bandwidth",
            CauseKind::Divisors => "microbatch divisors",
            CauseKind::Degrees => "tensor degrees",
        }
    }
}

/// Limit that binds, proven by a re-plan without it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Kind of the limit.
    pub kind: CauseKind,
    /// How it binds, in a few words: `24 of 37 layers recompute, none would`.
    pub how: String,
    /// Change that showed it: `memory unlimited`.
    pub without: String,
    /// Value of the plan after the change, in the base's unit.
    pub value: f64,
    /// Relative gain.
    pub gain: f64,
    /// Difference for people.
    pub difference: String,
    /// Difference in words: `1.94x faster`, `5.6% faster at most`.
    pub words: String,
    /// Certainty of the difference.
    pub certainty: Certainty,
    /// [`Replan::parts`].
    pub parts: Vec<(&'static str, f64)>,
}

/// Cause shown by an answer, given all answers. `None` if the answer has another topic, or the removed limit does not
/// bind.
pub(super) fn cause(base: &ExplainedPlan, answer: &Replan, answers: &[Replan]) -> Option<Cause> {
    let (gain, value, plan) = (answer.gain()?, answer.value?, answer.plan.as_ref()?);
    if gain <= NOTICEABLE {
        return None;
    }
    let devices = base.problem.limits.get(LimitKind::Devices);
    let (kind, how) = match (answer.question.topic, &answer.question.change) {
        (Topic::Binds(CauseKind::Memory), _) => (CauseKind::Memory, memory(base, plan, answers)),
        (Topic::Binds(CauseKind::Links), _) => (CauseKind::Links, links(base)),
        (Topic::Binds(CauseKind::Divisors), _) => (CauseKind::Divisors, divisors(base, plan)?),
        (Topic::Binds(CauseKind::Degrees), _) => (CauseKind::Degrees, degrees(base, plan)?),
        (Topic::Limit, Change::Limit(LimitKind::Devices, twice)) if *twice == 2.0 * devices => {
            (CauseKind::Devices, format!("{} are used", devices::used(&base.problem.limits, &base.plan)))
        }
        _ => return None,
    };
    let mut cause = Cause {
        kind,
        how,
        without: answer.label.clone(),
        value,
        gain,
        difference: answer.difference()?,
        words: answer.in_words()?,
        certainty: answer.certainty,
        parts: answer.parts.clone(),
    };
    if kind == CauseKind::Degrees {
        // A perfect split is a bound and may not be reached.
        cause.certainty = Certainty::AtMost;
        let at_most = Replan { certainty: Certainty::AtMost, ..answer.clone() };
        (cause.difference, cause.words) = (at_most.difference()?, at_most.in_words()?);
    }
    Some(cause)
}

/// Differences to the plan without a memory limit.
fn memory(base: &ExplainedPlan, without: &Plan, answers: &[Replan]) -> String {
    let with = &base.plan;
    let nouns = family::of(&base.problem.workload).nouns();
    let mut ways = vec![];
    let (now, then) = (recomputed(with), recomputed(without));
    if then < now && !recomputation_is_idle(answers) {
        let all: usize = with.stages.iter().map(|stage| stage.nodes.len()).sum();
        let would = if then == 0 { "none".to_string() } else { then.to_string() };
        ways.push(format!("forces recomputation: {now} of {all} {nouns} recompute, {would} without the limit"));
    }
    let stages = |plan: &Plan| plan.stages.len();
    if replicas(without) > replicas(with) * (1.0 + 1e-9) {
        ways.push(format!(
            "limits data parallelism: average degree {}, {} without the limit",
            units::number(replicas(with)),
            units::number(replicas(without))
        ));
    }
    if splits(without) < splits(with) * (1.0 - 1e-9) {
        ways.push(format!(
            "forces tensor parallelism: average degree {}, {} without the limit",
            units::number(splits(with)),
            units::number(splits(without))
        ));
    }
    if ways.is_empty() {
        ways.push(match (stages(with), stages(without)) {
            (now, then) if now != then => format!("forces {now} stages, {then} without the limit"),
            _ => "forbids better stage boundaries".into(),
        });
    }
    ways.join("; ")
}

/// True if some plan under the same limits is as good without recomputation.
fn recomputation_is_idle(answers: &[Replan]) -> bool {
    let same_limits = |answer: &&Replan| matches!(answer.question.topic, Topic::Option | Topic::NextBest);
    let as_good = |answer: &Replan| answer.gain().is_some_and(|gain| gain >= -NOTICEABLE);
    answers.iter().filter(same_limits).any(|a| as_good(a) && a.plan.as_ref().is_some_and(|plan| recomputed(plan) == 0))
}

fn recomputed(plan: &Plan) -> usize {
    plan.stages.iter().map(Stage::recomputed).sum()
}

/// Average number of replicas per node.
fn replicas(plan: &Plan) -> f64 {
    average(plan, |stage| stage.data_parallel)
}

/// Average tensor degree per node.
fn splits(plan: &Plan) -> f64 {
    average(plan, |stage| stage.tensor_parallel)
}

fn average(plan: &Plan, of: fn(&plantui_core::plan::Stage) -> u32) -> f64 {
    let nodes: usize = plan.stages.iter().map(|stage| stage.nodes.len()).sum();
    let sum: f64 = plan.stages.iter().map(|stage| f64::from(of(stage)) * stage.nodes.len() as f64).sum();
    sum / (nodes.max(1) as f64)
}

/// Share of links in the time of the slowest stage, if no pass hides them.
fn links(base: &ExplainedPlan) -> String {
    if base.hides_transfers {
        return "the all-reduce, and transfers that no pass hides, prolong the iteration".into();
    }
    let Some(stage) = base.score.bottleneck().map(|stage| &base.score.stages[stage]) else { return String::new() };
    let share = (stage.communication_s + stage.sync_s) / stage.load_s;
    if share.is_finite() && share > NOTICEABLE {
        format!("communication takes {} of the slowest stage's time", units::percent(share))
    } else {
        "communication forbids better stage boundaries".into()
    }
}

/// Number of replicas that only another number of microbatches allows; `None` if the current number allows all.
fn divisors(base: &ExplainedPlan, plan: &Plan) -> Option<String> {
    let now = base.problem.limits.microbatches;
    let (at, stage) = plan.stages.iter().enumerate().find(|(_, s)| !now.is_multiple_of(s.data_parallel))?;
    let count = |n: u32| (1..=base.problem.limits.devices.min(n)).filter(|&d| n.is_multiple_of(d)).count();
    Some(format!(
        "replicas must divide {now} microbatches: {} number{} up to {} do{}; stage {} would have {} replicas",
        count(now),
        if count(now) == 1 { "" } else { "s" },
        base.problem.limits.devices,
        if count(now) == 1 { "es" } else { "" },
        at + 1,
        stage.data_parallel,
    ))
}

/// Node that would run at a degree that it lacks; `None` if there is none.
fn degrees(base: &ExplainedPlan, plan: &Plan) -> Option<String> {
    let workload = &base.problem.workload;
    let family = family::of(workload);
    let mut lacking: Vec<(NodeIndex, u32)> = vec![];
    for stage in &plan.stages {
        let t = stage.tensor_parallel;
        lacking.extend(stage.nodes.iter().filter(|&&v| !family.offers_degree(v, t)).map(|&v| (v, t)));
    }
    lacking.sort_unstable();
    let &(first, t) = lacking.first()?;
    let others = match lacking.len() - 1 {
        0 => String::new(),
        1 => " (and one other node)".into(),
        more => format!(" (and {more} other nodes)"),
    };
    Some(format!(
        "{}{others} has no mode at tensor degree {t}; with ideal scaling the plan would use it",
        workload.nodes[first].label()
    ))
}
