//! Several numbers of devices planned in one run, as a sweep needs them.
//!
//! The published table answers every number of devices up to the one it was filled for. The search over the answer shares as
//! much: the closed sets, the model and everything remembered about stages are made once, for the largest number. More
//! devices never make the least load larger, so a plan for fewer devices is a warm start and a bound for more devices is a
//! lower bound. A plan for more devices that leaves enough of them idle is the answer for fewer.
//!
//! Every answer is replaced by the plan with the fewest devices for its load, so that it does not depend on the other numbers.

use std::collections::BTreeMap;

use super::{
    Piper, Sets, closed_sets,
    decide::Prober,
    model::PiperModel,
    search::{Loaded, RESOLUTION, WarmStart, minimise, with_fewest_devices},
    settings::PiperSettings,
    stopped,
};
use crate::{ManyRuns, Outcome, Planner, Problem, Status};
use plantui_core::{
    cluster::{LimitKind, Limits},
    search::Search,
};

/// Answers each number of devices, in the order given.
pub(super) fn plan(piper: &Piper, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
    let settings = PiperSettings::new(&problem.options);
    let most = devices.iter().copied().max().unwrap_or(1);
    let limits = problem.limits.with(LimitKind::Devices, f64::from(most));
    let mut shared = None;
    for (i, &count) in devices.iter().enumerate() {
        let search = run.begin(count);
        if i == 0 {
            shared = model(problem, &limits, &settings, &search);
        }
        // Too many sets, a node that nothing can run, or cancelled: a run of its own explains it.
        let Some(model) = &shared else {
            run.end(count, alone(piper, problem, count, &search));
            continue;
        };
        let mut known = Known {
            settings: &settings,
            prober: Prober::new(model, &settings, limits.memory()),
            answers: BTreeMap::new(),
        };
        run.end(count, known.answer(piper, problem, count, &search));
        for &count in &devices[i + 1..] {
            let search = run.begin(count);
            run.end(count, known.answer(piper, problem, count, &search));
        }
        return;
    }
}

fn alone(piper: &Piper, problem: &Problem, devices: u32, search: &Search) -> Outcome {
    let limits = problem.limits.with(LimitKind::Devices, f64::from(devices));
    piper.plan(&Problem { limits, ..problem.clone() }, search)
}

/// Model over all closed sets; `None` if there are too many, if some node has no mode, or if cancelled.
fn model<'a>(
    problem: &'a Problem,
    limits: &Limits,
    settings: &PiperSettings,
    search: &Search,
) -> Option<PiperModel<'a>> {
    let workload = &problem.workload;
    let Sets { family, .. } = closed_sets(&workload.dag, search).filter(|sets| sets.complete)?;
    let model = PiperModel::new(workload, workload.piper()?, limits, settings, family, search)?;
    model.impossible_node().is_none().then_some(model)
}

/// Answers so far, by number of devices; `None` where there is no plan.
struct Known<'s, 'm, 'a> {
    settings: &'s PiperSettings,
    prober: Prober<'m, 'a>,
    answers: BTreeMap<u32, Option<Loaded>>,
}

/// Result for one number of devices.
enum Answered {
    Best(Option<Loaded>),
    Stopped { best: Option<Loaded>, lower: f64 },
}

impl Known<'_, '_, '_> {
    fn answer(&mut self, piper: &Piper, problem: &Problem, devices: u32, search: &Search) -> Outcome {
        let mut probes = 0;
        let answered = self.minimise(devices, &mut probes, search);
        let mut outcome = match answered {
            // Its proof is a matter of the single run.
            _ if self.prober.unproven() => return alone(piper, problem, devices, search),
            Answered::Best(best) => {
                self.answers.insert(devices, best.clone());
                let Some(Loaded { plan, load }) = best else { return alone(piper, problem, devices, search) };
                Outcome {
                    plan: Some(plan),
                    objective: Some(load),
                    lower_bound: Some(load),
                    ..Outcome::new(Status::Optimal)
                }
            }
            Answered::Stopped { best, lower } => {
                let bound = best.as_ref().map_or(lower, |best| best.load.min(lower));
                stopped(search, best, Some(bound))
            }
        };
        let sets = self.prober.model.sets.len();
        outcome.statistics.counts = vec![("closed_sets", sets as f64), ("probes", f64::from(probes))];
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }

    fn minimise(&mut self, devices: u32, probes: &mut u32, search: &Search) -> Answered {
        let fewer = self.answers.range(..=devices).next_back().and_then(|(_, best)| best.clone());
        let lower = match self.answers.range(devices..).next() {
            // A workload that does not fit on more devices does not fit on fewer.
            Some((_, None)) => return Answered::Best(None),
            Some((_, Some(best))) if best.plan.devices_used() <= devices => return Answered::Best(Some(best.clone())),
            Some((_, Some(best))) => best.load * (1.0 - RESOLUTION),
            None => 0.0,
        };
        if let Some(best) = fewer.clone().filter(|best| best.load * (1.0 - RESOLUTION) <= lower) {
            return Answered::Best(Some(best));
        }
        let start = WarmStart { best: fewer, likely: false, lower };
        let ended = minimise(devices, self.settings, &mut self.prober, start, search);
        *probes += ended.probes;
        if !ended.complete {
            return Answered::Stopped { best: ended.best, lower: ended.lower };
        }
        let Some(best) = ended.best else { return Answered::Best(None) };
        *probes += 1;
        match with_fewest_devices(devices, self.settings, &mut self.prober, &best, search) {
            Some(thrifty) => Answered::Best(Some(thrifty)),
            None => Answered::Stopped { lower: best.load, best: Some(best) },
        }
    }
}
