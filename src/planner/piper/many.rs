//! Several numbers of devices answered by one run.
//!
//! The published table answers every number of devices up to the one it was filled for. The search over the answer shares
//! as much: the admissible sets, the model and everything remembered about stages are made once, for the largest number.
//! More devices never make the least load larger, so what was found for fewer devices is a plan to beat, what was proven
//! for more a bound to meet; and a plan for more devices that leaves enough of them idle is the answer for fewer as well.
//!
//! A number of devices between two whose answers are known takes the probes of that bracket, and none where the bracket is
//! closed: the closer the numbers lie, the less each costs. Every answer is asked for once
//! more, as the plan with the fewest devices for its load, so that it does not depend on what else was asked.

use std::collections::BTreeMap;

use super::{
    MANY_SETS, MOST_SETS, MOST_WORDS, Piper,
    bisection::{Best, Known, RESOLUTION, minimise, thriftiest},
    chains,
    model::PiperModel,
    probe::Crew,
    settings::PiperSettings,
};
use crate::{
    cluster::{LimitKind, Limits},
    graph::{Enumeration, SuccessorSets},
    planner::{ManyRuns, Outcome, Planner, Problem, Search, Status},
};

/// A plan for fewer devices that is further from the bound than this is of no use: raising the load from the bound step by
/// step finds a better one sooner than halving what lies between.
const NEAR: f64 = 1.12;

/// Answers each number of devices, in the order given.
pub(super) fn plan(piper: &Piper, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
    let settings = PiperSettings::new(&problem.options);
    let most = devices.iter().copied().max().unwrap_or(1);
    let limits = problem.limits.with(LimitKind::Devices, f64::from(most));
    let mut waiting = devices.iter().copied();
    let Some(first) = waiting.next() else { return };
    let search = run.begin(first);
    let models = models(problem, &limits, &settings, &search);
    let both = models.as_ref().and_then(|(wide, narrow)| {
        let bracketed = |model| Bracketed::new(model, &settings, &limits, &search);
        let narrow = match narrow {
            Some(model) => Some(bracketed(model)?),
            None => None,
        };
        Some(Both { wide: bracketed(wide)?, narrow })
    });
    let Some(mut both) = both else {
        // Too many sets, a node that nothing can run, or cancelled: each by itself says it best.
        run.end(first, alone(piper, problem, first, &search));
        for count in waiting {
            let search = run.begin(count);
            run.end(count, alone(piper, problem, count, &search));
        }
        return;
    };
    run.end(first, both.answer(piper, problem, first, &search));
    for count in waiting {
        let search = run.begin(count);
        run.end(count, both.answer(piper, problem, count, &search));
    }
}

fn alone(piper: &Piper, problem: &Problem, devices: u32, search: &Search) -> Outcome {
    let limits = problem.limits.with(LimitKind::Devices, f64::from(devices));
    piper.plan(&Problem { limits, ..problem.clone() }, search)
}

/// The model over all admissible sets, and where these are many one over chains of them; `None` where there are too many,
/// where some node cannot be run at all, or if cancelled.
fn models<'a>(
    problem: &'a Problem,
    limits: &Limits,
    settings: &PiperSettings,
    search: &Search,
) -> Option<(PiperModel<'a>, Option<PiperModel<'a>>)> {
    let workload = &problem.workload;
    let profile = workload.piper()?;
    let most_sets = MOST_SETS.min(MOST_WORDS / workload.nodes.len().div_ceil(64).max(1));
    let Enumeration::Complete(sets) = SuccessorSets::enumerate(&workload.dag, most_sets, &|| search.cancelled()) else {
        return None;
    };
    let many = sets.len() > MANY_SETS;
    let wide = PiperModel::new(workload, profile, limits, settings, sets, search)?;
    if wide.impossible_node().is_some() {
        return None;
    }
    let narrow = if many {
        Some(PiperModel::new(workload, profile, limits, settings, chains(&workload.dag), search)?)
    } else {
        None
    };
    Some((wide, narrow))
}

/// A model with the answers it gave so far; `None` where there is no plan.
struct Bracketed<'s, 'm, 'a> {
    model: &'m PiperModel<'a>,
    settings: &'s PiperSettings,
    crew: Crew<'m, 'a>,
    answers: BTreeMap<u32, Option<Best>>,
    probes: u32,
}

/// How asking a model ended.
enum Narrowed {
    Best(Option<Best>),
    Stopped { best: Option<Best>, lower: f64 },
}

impl<'s, 'm, 'a> Bracketed<'s, 'm, 'a> {
    /// `None` if the search was cancelled meanwhile.
    fn new(model: &'m PiperModel<'a>, settings: &'s PiperSettings, limits: &Limits, search: &Search) -> Option<Self> {
        let crew = Crew::new(model, settings, limits.memory(), search)?;
        Some(Bracketed { model, settings, crew, answers: BTreeMap::new(), probes: 0 })
    }

    /// The best plan on so many devices; `hint` is one that is there already and probably the best.
    fn ask(&mut self, devices: u32, hint: Option<Best>, search: &Search) -> Narrowed {
        let fewer = self.answers.range(..=devices).next_back().and_then(|(_, best)| best.clone());
        let more = self.answers.range(devices..).next();
        // What cannot be run on more devices cannot be run on fewer.
        if let Some((_, None)) = more {
            return Narrowed::Best(None);
        }
        let lower = match more {
            Some((_, Some(best))) if best.plan.devices_used() <= devices => return Narrowed::Best(Some(best.clone())),
            Some((_, Some(best))) => best.value * (1.0 - RESOLUTION),
            _ => 0.0,
        };
        let closed = |best: &Best| best.value * (1.0 - RESOLUTION) <= lower;
        if let Some(best) = fewer.clone().filter(closed) {
            return Narrowed::Best(Some(best));
        }
        let likely = hint.is_some();
        let even = self.model.device_seconds[self.model.full()] / f64::from(devices);
        let fewer = fewer.filter(|best| best.value <= NEAR * lower.max(even));
        let best = [hint, fewer].into_iter().flatten().min_by(|a, b| a.value.total_cmp(&b.value));
        let known = Known { best, likely, lower };
        let ended = minimise(devices, self.model, self.settings, &mut self.crew, known, search);
        self.probes += ended.probes;
        if !ended.complete {
            return Narrowed::Stopped { best: ended.best, lower: ended.lower };
        }
        let Some(best) = ended.best else { return Narrowed::Best(None) };
        self.probes += 1;
        match thriftiest(devices, self.model, self.settings, &mut self.crew, &best, search) {
            Some(thrifty) => Narrowed::Best(Some(thrifty)),
            None => Narrowed::Stopped { lower: best.value, best: Some(best) },
        }
    }
}

/// The model of all sets, and the one whose plans it starts from.
struct Both<'s, 'm, 'a> {
    wide: Bracketed<'s, 'm, 'a>,
    narrow: Option<Bracketed<'s, 'm, 'a>>,
}

impl Both<'_, '_, '_> {
    fn answer(&mut self, piper: &Piper, problem: &Problem, devices: u32, search: &Search) -> Outcome {
        let before = self.wide.probes;
        let hint = self.narrow.as_mut().and_then(|narrow| match narrow.ask(devices, None, &search.quiet()) {
            Narrowed::Best(best) => {
                narrow.answers.insert(devices, best.clone());
                best
            }
            Narrowed::Stopped { best, .. } => best,
        });
        let found = self.wide.ask(devices, hint, search);
        let mut outcome = match found {
            // Another rule than the search's own: the explanation, or the proof, is the single run's.
            _ if self.wide.crew.unproven() => return alone(piper, problem, devices, search),
            Narrowed::Best(best) => {
                self.wide.answers.insert(devices, best.clone());
                let Some(Best { plan, value }) = best else { return alone(piper, problem, devices, search) };
                Outcome {
                    plan: Some(plan),
                    objective: Some(value),
                    lower_bound: Some(value),
                    ..Outcome::new(Status::Optimal)
                }
            }
            Narrowed::Stopped { best, lower } => {
                super::stopped(search, best.clone(), Some(best.map_or(lower, |best| best.value.min(lower))))
            }
        };
        let probes = f64::from(self.wide.probes - before);
        outcome.statistics.counts = vec![("closed_sets", self.wide.model.sets.len() as f64), ("probes", probes)];
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }
}
