//! Searches over the answer: the least load for which [`super::probe`] finds a cut.
//!
//! Each yes gives a plan whose own load becomes the new upper bound, so the bound jumps from one possible load to the
//! next; each no raises the lower bound. Once the two are close, the question "is there anything below the best plan?"
//! is asked directly, and a no proves the plan optimal. About 15 probes in all, whatever the size.
//!
//! The published program keeps a table over (set, devices, replicas); asking about one load at a time replaces the two
//! last dimensions by a handful of undominated pairs.

use super::{
    model::PiperModel,
    picking,
    probe::{Allowed, Answer, Crew, FoundStage, Question},
    rest,
    settings::PiperSettings,
};
use crate::{
    plan::{Plan, Stage},
    planner::Search,
    workload::{Choice, NodeIndex},
};

/// Loads closer than this (relative) count as equal: far above rounding, far below any difference that matters.
pub(super) const RESOLUTION: f64 = 1e-11;
/// When the bounds are this close, the best plan is put to the question.
const CLOSE: f64 = 2e-3;
/// The same where it was, and was not the best.
const VERY_CLOSE: f64 = 1e-6;
/// When the bounds are this close, halfway between them is no quicker to ask about than the best plan; and a plan that was
/// probably the best, and is not, is asked to be better by no more.
const FAR_APART: f64 = 2e-2;

/// A plan and its load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    pub(super) plan: Plan,
    pub(super) value: f64,
}

/// How a search ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ended {
    pub(super) best: Option<Best>,
    /// Proven lower bound on the load.
    pub(super) lower: f64,
    /// Whether every question was answered; false after a cancel.
    pub(super) complete: bool,
    /// Questions asked.
    pub(super) probes: u32,
}

/// What may be combined in one plan: every degree with every number of replicas.
pub(super) fn allowed(model: &PiperModel<'_>) -> Vec<Allowed> {
    (0..model.degrees.len()).map(|degree| Allowed { degree, replicas: model.replicas.clone() }).collect()
}

/// What is known before a search that shares its model with others.
#[derive(Default)]
pub(super) struct Known {
    /// A plan.
    pub(super) best: Option<Best>,
    /// Whether that plan is probably the best already.
    pub(super) likely: bool,
    /// A proven lower bound on the load.
    pub(super) lower: f64,
}

/// The least load on at most `devices` of the model's devices, starting from what is known already.
pub(super) fn minimise<'m, 'a>(
    devices: u32,
    model: &'m PiperModel<'a>,
    settings: &PiperSettings,
    crew: &mut Crew<'m, 'a>,
    known: Known,
    search: &Search,
) -> Ended {
    let mut run = Run::new(devices, model, settings, crew, known, search);
    if let Some(best) = &run.best {
        search.improve(best.value, &best.plan);
    }
    let complete = run.minimise();
    let Run { best, lower, probes, .. } = run;
    let lower = match &best {
        // A knapsack that was left open may have hidden a better plan.
        Some(best) if complete && !crew.unproven() => best.value,
        _ => lower,
    };
    Ended { best, lower, complete, probes }
}

/// The plan with the fewest devices whose load is that of `best` or less; `None` if cancelled.
///
/// Which of several equally fast plans the halving meets depends on where it began; this one depends on the load alone.
pub(super) fn thriftiest<'m, 'a>(
    devices: u32,
    model: &'m PiperModel<'a>,
    settings: &PiperSettings,
    crew: &mut Crew<'m, 'a>,
    best: &Best,
    search: &Search,
) -> Option<Best> {
    let allowed = allowed(model);
    let question = Question {
        target: best.value * (1.0 + RESOLUTION),
        devices,
        most_replicas: settings.replicas(model.most_replicas.min(devices)),
        allowed: &allowed,
        stages: settings.stages,
        progress: (0.9, 1.0),
    };
    match crew.ask(&question, search) {
        Answer::Yes(stages) => Some(build(model, settings, &stages, model.limits.memory())),
        // Rounding: the plan at hand is as good.
        Answer::No => Some(best.clone()),
        Answer::Cancelled => None,
    }
}

struct Run<'r, 'm, 'a> {
    model: &'m PiperModel<'a>,
    settings: &'r PiperSettings,
    crew: &'r mut Crew<'m, 'a>,
    search: &'r Search,
    devices: u32,
    allowed: Vec<Allowed>,
    best: Option<Best>,
    /// The greatest load below which there is proven to be no plan.
    lower: f64,
    /// Whether the plan known at the start is probably the best already.
    likely: bool,
    probes: u32,
    /// Share of the work done.
    done: f64,
}

impl<'r, 'm, 'a> Run<'r, 'm, 'a> {
    fn new(
        devices: u32,
        model: &'m PiperModel<'a>,
        settings: &'r PiperSettings,
        crew: &'r mut Crew<'m, 'a>,
        known: Known,
        search: &'r Search,
    ) -> Self {
        let Known { best, likely, lower } = known;
        let allowed = allowed(model);
        let even = model.device_seconds[model.full()] / f64::from(devices);
        let lower = lower.max(rest::least_load(model, &allowed, devices)).max(even);
        Run { model, settings, crew, search, devices, allowed, best, lower, likely, probes: 0, done: 0.0 }
    }

    /// False if it was cancelled.
    fn minimise(&mut self) -> bool {
        let mut lower = self.lower;
        let likely = self.best.is_some() && self.likely;
        if self.best.is_none() {
            match self.first(&mut lower) {
                Some(true) => {}
                Some(false) => return true,
                None => return false,
            }
        }
        // A plan that was there before is most often the best already: that is asked after one question halfway, which takes
        // a fraction of the time and moves the bound. If it is not, the best is mostly near, and what both answers have in
        // common makes every further one quick.
        let mut asked_directly = false;
        // The best plan was put to the question, and is not the best: others are mostly as near to it as it was to the one before.
        let mut halving = false;
        loop {
            let upper = self.upper();
            if upper <= 0.0 {
                return true;
            }
            if !self.crew.unproven() {
                self.lower = lower;
                self.search.report_bound(lower);
            }
            let soon = likely && !asked_directly && (self.probes > 0 || upper <= lower * (1.0 + FAR_APART));
            let near = if halving { VERY_CLOSE } else { CLOSE };
            let direct = soon || upper <= lower * (1.0 + near);
            let middle = lower + (upper - lower) / 2.0;
            let target = match (direct, likely && asked_directly) {
                (true, _) => upper * (1.0 - RESOLUTION),
                (_, true) => middle.max(upper * (1.0 - FAR_APART)),
                _ => middle,
            };
            asked_directly |= direct;
            let halvings = ((upper - lower) / (CLOSE * lower).max(f64::MIN_POSITIVE)).log2();
            match self.probe(target, if direct { 1.0 } else { halvings.clamp(0.0, 40.0).ceil() + 1.0 }) {
                // No better than what is there: the difference is one of rounding.
                Answer::Yes(stages) if !self.accept(&stages) => return true,
                Answer::Yes(_) => halving |= direct,
                Answer::No if direct => return true,
                Answer::No => (lower, halving) = (target, false),
                Answer::Cancelled => return false,
            }
        }
    }

    fn upper(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.value)
    }

    /// Finds a first plan by raising the load step by step: `Some(false)` if there is none for any load.
    fn first(&mut self, lower: &mut f64) -> Option<bool> {
        for factor in [1.03, 1.12, 1.5, 2.5, 8.0, f64::INFINITY] {
            let target = if *lower > 0.0 && factor.is_finite() { *lower * factor } else { f64::INFINITY };
            match self.probe(target, 10.0) {
                Answer::Yes(stages) => {
                    self.accept(&stages);
                    return Some(true);
                }
                Answer::No if target.is_infinite() => return Some(false),
                Answer::No => *lower = target,
                Answer::Cancelled => return None,
            }
        }
        Some(false)
    }

    /// Asks one question; `remaining` is a guess at how many are left, this one included.
    fn probe(&mut self, target: f64, remaining: f64) -> Answer {
        self.probes += 1;
        let after = self.done + (1.0 - self.done) / remaining;
        let question = Question {
            target,
            devices: self.devices,
            most_replicas: self.settings.replicas(self.model.most_replicas.min(self.devices)),
            allowed: &self.allowed,
            stages: self.settings.stages,
            progress: (self.done, after),
        };
        self.done = after;
        self.crew.ask(&question, self.search)
    }

    /// Makes a plan of the stages found and keeps it if it is better; tells whether it was.
    fn accept(&mut self, stages: &[FoundStage]) -> bool {
        let best = build(self.model, self.settings, stages, self.model.limits.memory());
        let better = best.value < self.upper();
        if better {
            self.search.improve(best.value, &best.plan);
            self.best = Some(best);
        }
        better
    }
}

/// The plan of the stages found, every stage in its best modes for the replicas that really stand behind it.
pub(super) fn build(
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    stages: &[FoundStage],
    memory_bytes: f64,
) -> Best {
    let in_flight = settings.in_flight(stages.iter().map(|stage| stage.d), model.limits.microbatches);
    let mut plan = Plan { execution: settings.execution(), ..Plan::default() };
    let mut value: f64 = 0.0;
    for (stage, y) in stages.iter().zip(in_flight) {
        let nodes = model.sets.difference(stage.outer as usize, stage.inner as usize);
        let picked = picking::choose(model, settings, stage.degree, &nodes, stage.d, y, memory_bytes)
            .expect("the probe found modes that fit with as many in flight or more");
        value = value.max(picked.cost);
        plan.stages.push(stage_of(model, stage.degree, stage.d, nodes, &picked.positions));
    }
    Best { plan: plan.with_consecutive_devices(), value }
}

/// A stage of these nodes, each in the mode at its position among the degree's choices.
pub(super) fn stage_of(model: &PiperModel<'_>, degree: usize, d: u32, nodes: Vec<usize>, positions: &[usize]) -> Stage {
    let degree = &model.degrees[degree];
    let choice = |(&v, &p): (&usize, &usize)| {
        let modes = model.profile.nodes[v].modes(degree.t).expect("the stage's nodes offer its degree");
        Choice::Mode(modes[degree.choices[v][p].index].id.clone())
    };
    let choices = nodes.iter().zip(positions).map(choice).collect();
    let nodes = NodeIndex::list(nodes);
    Stage { nodes, choices, data_parallel: d, tensor_parallel: degree.t, devices: vec![] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::GivenLimits,
        family,
        graph::{Enumeration, SuccessorSets},
        planner::{Options, random::SplitMix},
        workload::formats::piper::read,
    };

    /// A chain on one device whose modes are a knapsack that cannot be solved: what a node saves costs as much and a little.
    fn chain(nodes: usize) -> String {
        let mut random = SplitMix::new(4);
        let mut all = 0.0;
        let node = |v: usize| {
            let save = 1e6 + (1e6 * random.unit()).round();
            all += save;
            let sync = |id: Option<usize>| id.map_or(String::new(), |id| format!("\"{id}\": 0"));
            let (before, after) = (sync(v.checked_sub(1)), sync(Some(v + 1).filter(|&next| next < nodes)));
            let mode = |id: &str, seconds: f64, bytes: f64| {
                format!(
                    r#"{{"id": "{id}", "timePerSample": {seconds}, "parameterSize": 0, "memoryUsageA": 0, "memoryUsageB": {bytes}, "syncTimeFw": {{{before}}}, "syncTimeBw": {{{after}}}}}"#
                )
            };
            let modes = [mode("vanilla", 1.0, save), mode("activation recomp", 1.0 + (save + 1e5) * 1e-6, 0.0)];
            format!(r#"{{"id": {v}, "TMPCs": {{"1": [{}]}}}}"#, modes.join(", "))
        };
        let list: Vec<String> = (0..nodes).map(node).collect();
        let edge = |v: usize| format!(r#"{{"sourceId": {v}, "destId": {}, "communicationCost": 0}}"#, v + 1);
        let edges: Vec<String> = (0..nodes - 1).map(edge).collect();
        format!(
            r#"{{"maxMemoryPerDevice": {}, "maxDevices": 1, "bandwidth": 1e9, "mbsInBatch": 1, "nodes": [{}], "edges": [{}]}}"#,
            (all / 2.0).floor(),
            list.join(", "),
            edges.join(", ")
        )
    }

    #[test]
    fn what_a_knapsack_leaves_open_is_not_claimed_to_be_proven() {
        let text = chain(120);
        let workload = read(&text, "chain.json", "chain").unwrap();
        let profile = workload.piper().unwrap();
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let settings = PiperSettings::new(&Options::defaults(&super::super::settings::OPTIONS));
        let Enumeration::Complete(sets) = SuccessorSets::enumerate(&workload.dag, 1000, &|| false) else { panic!() };
        let search = Search::default();
        let model = PiperModel::new(&workload, profile, &limits, &settings, sets, &search).unwrap();
        let mut crew = Crew::new(&model, &settings, limits.memory(), &search).unwrap();
        let ended = minimise(1, &model, &settings, &mut crew, Known::default(), &search);
        let best = ended.best.unwrap();
        assert!(ended.complete && crew.unproven(), "the knapsack was solved: a harder one is needed");
        assert!(ended.lower < best.value, "{} is claimed to be proven", best.value);
        assert!(ended.lower >= model.even_share(), "{}", ended.lower);
    }
}
