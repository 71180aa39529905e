//! Search over the answer: the least load for which [`super::decide`] finds a plan.
//!
//! Each "yes" gives a plan whose own load is the new upper bound, so the bound falls from one load that occurs to the next.
//! Each "no" raises the lower bound. Once the two are close, the probe just below the incumbent is decided: a "no" proves
//! the incumbent optimal. About 15 probes in all, whatever the size. The published program fills one table over (set,
//! devices, replicas) instead; a probe replaces the last two dimensions by a few Pareto-optimal pairs.

use super::{
    decide::{Answer, FoundStage, Probe, Prober},
    model::PiperModel,
    picking,
    settings::PiperSettings,
};
use plantui_core::{
    plan::{Plan, Stage},
    search::Search,
    workload::{Choice, NodeIndex},
};

/// Relative difference below which loads count as equal: far above rounding, far below any difference that matters.
pub(super) const RESOLUTION: f64 = 1e-11;
/// Relative difference of the bounds below which the probe just below the incumbent is decided.
const CLOSE: f64 = 2e-3;
/// Targets of the first probes over the lower bound, until one has a plan.
const FIRST_TARGETS: [f64; 6] = [1.03, 1.12, 1.5, 2.5, 8.0, f64::INFINITY];

/// Plan with its load, seconds per sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Loaded {
    pub(super) plan: Plan,
    pub(super) load: f64,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Minimised {
    pub(super) best: Option<Loaded>,
    /// Proven lower bound on the load.
    pub(super) lower: f64,
    /// False after a cancel.
    pub(super) complete: bool,
    pub(super) probes: u32,
}

/// Plan and lower bound that a search begins with.
#[derive(Default)]
pub(super) struct WarmStart {
    pub(super) best: Option<Loaded>,
    /// True if that plan is probably optimal.
    pub(super) likely: bool,
    pub(super) lower: f64,
}

/// Least load on at most `devices` of the devices of the model.
pub(super) fn minimise(
    devices: u32,
    settings: &PiperSettings,
    prober: &mut Prober<'_, '_>,
    start: WarmStart,
    search: &Search,
) -> Minimised {
    let WarmStart { best, likely, lower } = start;
    let lower = lower.max(prober.model.even_share(devices));
    if let Some(best) = &best {
        search.improve(best.load, &best.plan);
    }
    let mut run = Bisection { settings, prober, search, devices, best, lower, probes: 0, done: 0.0 };
    let complete = run.minimise(likely).is_some();
    let Bisection { best, lower, probes, .. } = run;
    let lower = match &best {
        // A knapsack that is not solved to its end may hide a better plan.
        Some(best) if complete && !prober.unproven() => best.load,
        _ => lower,
    };
    Minimised { best, lower, complete, probes }
}

/// Plan with the fewest devices among those with the load of `best`; `None` if cancelled. It depends on the load alone, not
/// on where the bisection began.
pub(super) fn with_fewest_devices(
    devices: u32,
    settings: &PiperSettings,
    prober: &mut Prober<'_, '_>,
    best: &Loaded,
    search: &Search,
) -> Option<Loaded> {
    let probe = probe(devices, prober.model, settings, best.load * (1.0 + RESOLUTION), (0.9, 1.0));
    match prober.decide(&probe, search) {
        Answer::Yes(stages) => Some(build(prober.model, settings, &stages)),
        // Rounding: the plan at hand is as good.
        Answer::No => Some(best.clone()),
        Answer::Cancelled => None,
    }
}

pub(super) fn probe(
    devices: u32,
    model: &PiperModel<'_>,
    settings: &PiperSettings,
    target: f64,
    progress: (f64, f64),
) -> Probe {
    let most_replicas = settings.most_replicas.min(model.most_replicas).min(devices);
    Probe { target, devices, most_replicas, stages: settings.stages, progress }
}

struct Bisection<'r, 'm, 'a> {
    settings: &'r PiperSettings,
    prober: &'r mut Prober<'m, 'a>,
    search: &'r Search,
    devices: u32,
    best: Option<Loaded>,
    /// Largest load below which there is proven to be no plan.
    lower: f64,
    probes: u32,
    /// Fraction of the work done.
    done: f64,
}

impl Bisection<'_, '_, '_> {
    /// `None` if cancelled.
    fn minimise(&mut self, likely: bool) -> Option<()> {
        if self.best.is_none() && !self.find_first()? {
            return Some(());
        }
        // A plan that is probably optimal is tried first.
        let mut just_below = likely;
        loop {
            let upper = self.upper();
            if upper <= 0.0 {
                return Some(());
            }
            if !self.prober.unproven() {
                self.search.report_bound(self.lower);
            }
            just_below |= upper <= self.lower * (1.0 + CLOSE);
            let target = if just_below { upper * (1.0 - RESOLUTION) } else { (self.lower + upper) / 2.0 };
            let halvings = ((upper - self.lower) / (CLOSE * self.lower).max(f64::MIN_POSITIVE)).log2();
            match self.decide(target, if just_below { 1.0 } else { halvings.clamp(0.0, 40.0).ceil() + 1.0 })? {
                // No better than the incumbent: the difference is one of rounding.
                Some(stages) if !self.accept(&stages) => return Some(()),
                Some(_) => {}
                None if just_below => return Some(()),
                None => self.lower = target,
            }
            just_below = false;
        }
    }

    fn upper(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |best| best.load)
    }

    /// Finds a first plan by raising the target step by step; false if there is none for any load.
    fn find_first(&mut self) -> Option<bool> {
        let lower = self.lower;
        for factor in FIRST_TARGETS {
            let target = if lower > 0.0 && factor.is_finite() { lower * factor } else { f64::INFINITY };
            match self.decide(target, 10.0)? {
                Some(stages) => {
                    self.accept(&stages);
                    return Some(true);
                }
                None if target.is_infinite() => return Some(false),
                None => self.lower = target,
            }
        }
        Some(false)
    }

    /// Decides one probe; `remaining` is a guess at the number of probes left, this one included.
    fn decide(&mut self, target: f64, remaining: f64) -> Option<Option<Vec<FoundStage>>> {
        self.probes += 1;
        let after = self.done + (1.0 - self.done) / remaining;
        let probe = probe(self.devices, self.prober.model, self.settings, target, (self.done, after));
        self.done = after;
        match self.prober.decide(&probe, self.search) {
            Answer::Yes(stages) => Some(Some(stages)),
            Answer::No => Some(None),
            Answer::Cancelled => None,
        }
    }

    /// Keeps the plan of these stages if it is better than the incumbent; true if it is.
    fn accept(&mut self, stages: &[FoundStage]) -> bool {
        let found = build(self.prober.model, self.settings, stages);
        let better = found.load < self.upper();
        if better {
            self.search.improve(found.load, &found.plan);
            self.best = Some(found);
        }
        better
    }
}

/// Plan of these stages, each in its best modes for the microbatches that it really holds.
fn build(model: &PiperModel<'_>, settings: &PiperSettings, stages: &[FoundStage]) -> Loaded {
    let in_flight = settings.in_flight(stages.iter().map(|stage| stage.d), model.limits.microbatches);
    let mut plan = Plan { execution: settings.execution(), ..Plan::default() };
    let mut load: f64 = 0.0;
    for (stage, y) in stages.iter().zip(in_flight) {
        let nodes = model.sets.difference(stage.outer as usize, stage.inner as usize);
        let picked = picking::choose(model, settings, stage.degree, &nodes, stage.d, y, model.limits.memory())
            .expect("the probe found modes that fit with as many in flight or more");
        load = load.max(picked.cost);
        let degree = &model.degrees[stage.degree];
        let choice = |(&v, &position): (&usize, &usize)| {
            let modes = model.profile.nodes[v].modes(degree.t).expect("the nodes of the stage offer its degree");
            Choice::Mode(modes[degree.modes[v][position].index].id.clone())
        };
        let choices = nodes.iter().zip(&picked.positions).map(choice).collect();
        let (data_parallel, tensor_parallel) = (stage.d, degree.t);
        plan.stages.push(Stage {
            nodes: NodeIndex::list(nodes),
            choices,
            data_parallel,
            tensor_parallel,
            devices: vec![],
        });
    }
    Loaded { plan: plan.with_consecutive_devices(), load }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use plantui_core::{
        cluster::GivenLimits,
        family,
        graph::{Enumeration, SuccessorSets},
        random::SplitMix,
        workload::formats::piper::read,
    };

    /// Chain on one device whose modes form a knapsack that is too hard to solve: bytes saved cost as much time, plus a little.
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
    fn an_unsolved_knapsack_leaves_the_plan_unproven() {
        let text = chain(120);
        let workload = read(&text, "chain.json", "chain").unwrap();
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let settings = PiperSettings::new(&Options::defaults(&super::super::settings::OPTIONS));
        let Enumeration::Complete(sets) = SuccessorSets::enumerate(&workload.dag, 1000, &|| false) else { panic!() };
        let (profile, search) = (workload.piper().unwrap(), Search::default());
        let model = PiperModel::new(&workload, profile, &limits, &settings, sets, &search).unwrap();
        let mut prober = Prober::new(&model, &settings, limits.memory());
        let ended = minimise(1, &settings, &mut prober, WarmStart::default(), &search);
        let best = ended.best.unwrap();
        assert!(ended.complete && prober.unproven(), "the knapsack was solved: a harder one is needed");
        assert!(ended.lower < best.load, "{} is claimed to be proven", best.load);
        assert!(ended.lower >= model.even_share(1), "{}", ended.lower);
    }
}
