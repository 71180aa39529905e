//! What the answer to one question tells about the next, which asks for a smaller load.
//!
//! A tail that keeps to the smaller load keeps to the larger one as well. So the pairs found for the larger one bound those of
//! the smaller one from below, and where they are reached again nothing better can be found: most sets come out as before, and
//! the stages that made their pairs are the first to be tried. Closing a gap of 2 % takes a fraction of the first question's time.
//!
//! Where useless tails were left out, a set's pairs may be worse than they could be, but then some larger set that is made
//! by heavy steps (see `sources`) has pairs that are as good; the bound is the best of all of these.
//!
//! The other way round, a tail that keeps to a smaller load keeps to a larger one: what a question found that no plan answered is
//! there from the start of the next. Between the two bounds little is left to be tried for loads that are close together.
//!
//! `O(steps between sets · undominated pairs)` time, memory as for the pairs.

use super::{
    probe::{Allowed, FoundPair, Frontier, Question},
    sources::Heavier,
};

/// Pairs found for a load.
pub(super) struct Earlier {
    target: f64,
    devices: u32,
    most_replicas: u32,
    allowed: Vec<Allowed>,
    /// By set: no tail of a whole plan is better than one of these.
    pub(super) least: Vec<Frontier>,
    /// By set: the sets behind the first stages of its pairs.
    pub(super) behind_first: Vec<Vec<u32>>,
}

impl Earlier {
    /// From the pairs of a question without a number of stages.
    pub(super) fn new(
        question: &Question<'_>,
        heavier: Option<&Heavier>,
        mut least: Vec<Frontier>,
        behind_first: Vec<Vec<u32>>,
    ) -> Self {
        for set in (0..least.len()).rev() {
            for &lighter in heavier.map(|heavier| heavier.lighter(set)).unwrap_or_default() {
                let (smaller, larger) = least.split_at_mut(set);
                let pairs = &mut smaller[lighter as usize];
                if !larger[0].iter().all(|&pair| covers(pairs, pair)) {
                    pairs.extend(&larger[0]);
                    *pairs = undominated(std::mem::take(pairs));
                }
            }
        }
        let Question { target, devices, most_replicas, allowed, .. } = *question;
        Earlier { target, devices, most_replicas, allowed: allowed.to_vec(), least, behind_first }
    }

    /// Whether every plan that answers a question would have answered this one.
    pub(super) fn bounds(&self, question: &Question<'_>) -> bool {
        question.stages.is_none()
            && question.target <= self.target
            && question.devices <= self.devices
            && question.most_replicas <= self.most_replicas
            && question.allowed == self.allowed
    }
}

/// Pairs that tails were found to do with for a load that is too small for the whole.
pub(super) struct Reached {
    target: f64,
    devices: u32,
    allowed: Vec<Allowed>,
    /// By set.
    pairs: Vec<Frontier>,
    /// By set and pair, the set behind its first stage.
    by: Vec<Vec<u32>>,
}

impl Reached {
    /// From the pairs of a question without a number of stages.
    pub(super) fn new(question: &Question<'_>, pairs: Vec<Frontier>, by: Vec<Vec<u32>>) -> Self {
        let Question { target, devices, allowed, .. } = *question;
        Reached { target, devices, allowed: allowed.to_vec(), pairs, by }
    }

    /// Whether the tails do with these pairs for a question as well.
    pub(super) fn holds_for(&self, question: &Question<'_>) -> bool {
        question.stages.is_none()
            && self.target <= question.target
            && self.devices <= question.devices
            && self.allowed == question.allowed
    }

    /// The pairs of a set.
    pub(super) fn of(&self, set: usize) -> impl Iterator<Item = FoundPair> + '_ {
        self.pairs[set].iter().zip(&self.by[set]).map(|(&(replicas, devices), &by)| (replicas, devices, by))
    }
}

/// Whether one of the pairs has no more replicas and no more devices than another set's.
pub(super) fn covers(pairs: &Frontier, (replicas, devices): (u32, u32)) -> bool {
    // Of the pairs with as few replicas the last has the fewest devices.
    let within = pairs.partition_point(|&(s, _)| s <= replicas);
    within > 0 && pairs[within - 1].1 <= devices
}

/// The pairs of which no other is as good, replicas ascending.
fn undominated(mut pairs: Frontier) -> Frontier {
    pairs.sort_unstable();
    let mut fewest = u32::MAX;
    pairs.retain(|&(_, devices)| {
        let undominated = devices < fewest;
        fewest = fewest.min(devices);
        undominated
    });
    pairs
}

#[cfg(test)]
mod tests {
    use super::super::{
        bisection::allowed,
        model::PiperModel,
        probe::{Answer, Crew, Threads},
        settings::{OPTIONS, PiperSettings},
    };
    use super::*;
    use crate::{
        cluster::GivenLimits,
        family,
        graph::{Enumeration, SuccessorSets},
        planner::{Options, Search, random::SplitMix},
        workload::formats::piper::read,
    };

    /// So many chains of so many nodes side by side on twelve devices; `memory` bytes on each are a little more than the whole
    /// needs with everything recomputed.
    fn branches(chains: usize, length: usize, memory: usize) -> String {
        let all = chains * length;
        let edges: Vec<(usize, usize)> = (0..all).filter(|v| v % length != length - 1).map(|v| (v, v + 1)).collect();
        network(all, &edges, memory)
    }

    /// The same behind a node that comes before all chains.
    fn fan(chains: usize, length: usize, memory: usize) -> String {
        let all = 1 + chains * length;
        let edge = |v: usize| if v % length == 1 % length { (0, v) } else { (v - 1, v) };
        network(all, &(1..all).map(edge).collect::<Vec<_>>(), memory)
    }

    fn network(all: usize, edges: &[(usize, usize)], memory: usize) -> String {
        let mut random = SplitMix::new(7);
        let sync = |ids: Vec<usize>| {
            let all: Vec<String> = ids.iter().map(|id| format!("\"{id}\": 0")).collect();
            all.join(", ")
        };
        let node = |v: usize| {
            let (seconds, bytes) = (1.0 + random.unit(), (1e6 * (1.0 + random.unit())).round());
            let before = sync(edges.iter().filter(|edge| edge.1 == v).map(|edge| edge.0).collect());
            let after = sync(edges.iter().filter(|edge| edge.0 == v).map(|edge| edge.1).collect());
            let mode = |id: &str, t: f64, seconds: f64, bytes: f64| {
                format!(
                    r#"{{"id": "{id}", "timePerSample": {}, "parameterSize": 0, "memoryUsageA": {}, "memoryUsageB": 100000, "syncTimeFw": {{{before}}}, "syncTimeBw": {{{after}}}}}"#,
                    seconds / t,
                    (bytes / t).round(),
                )
            };
            let modes = |t: f64| {
                [mode("vanilla", t, seconds, bytes), mode("activation recomp", t, 1.3 * seconds, 0.1 * bytes)]
                    .join(", ")
            };
            format!(r#"{{"id": {v}, "TMPCs": {{"1": [{}], "2": [{}]}}}}"#, modes(1.0), modes(1.9))
        };
        let nodes: Vec<String> = (0..all).map(node).collect();
        let edge = |&(from, to): &(usize, usize)| {
            format!(r#"{{"sourceId": {from}, "destId": {to}, "communicationCost": 100000}}"#)
        };
        let list: Vec<String> = edges.iter().map(edge).collect();
        format!(
            r#"{{"maxMemoryPerDevice": {memory}, "maxDevices": 12, "bandwidth": 1e6, "mbsInBatch": 12, "nodes": [{}], "edges": [{}]}}"#,
            nodes.join(", "),
            list.join(", ")
        )
    }

    /// Calls a test with a model of such a network, its settings and a question about it.
    fn with(text: &str, test: impl FnOnce(&PiperModel<'_>, &PiperSettings, &Question<'_>)) {
        let workload = read(text, "branches.json", "branches").unwrap();
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let settings = PiperSettings::new(&Options::defaults(&OPTIONS));
        let Enumeration::Complete(sets) = SuccessorSets::enumerate(&workload.dag, 20_000, &|| false) else { panic!() };
        let (profile, search) = (workload.piper().unwrap(), Search::default());
        let model = PiperModel::new(&workload, profile, &limits, &settings, sets, &search).unwrap();
        let question = Question {
            target: model.even_share(),
            devices: 12,
            most_replicas: settings.replicas(model.most_replicas),
            allowed: &allowed(&model),
            stages: None,
            progress: (0.0, 1.0),
        };
        test(&model, &settings, &question);
    }

    fn devices_of(crew: &mut Crew<'_, '_>, model: &PiperModel<'_>, question: &Question<'_>) -> Option<u32> {
        match crew.ask(question, &Search::default()) {
            Answer::Yes(stages) => Some(stages.iter().map(|stage| stage.d * model.degrees[stage.degree].t).sum()),
            _ => None,
        }
    }

    /// As halving would ask, and beyond.
    const FACTORS: [f64; 11] = [1.0, 1.5, 1.25, 1.1, 1.2, 1.15, 1.18, 1.3, 1.22, 1.05, 1.4];

    #[test]
    fn what_other_loads_tell_changes_no_answer() {
        with(&branches(3, 7, 6_000_000), |model, settings, question| {
            assert!(model.sets.len() == 512, "{} sets", model.sets.len());
            let mut old = Crew::new(model, settings, model.limits.memory());
            let answers = FACTORS.map(|factor| {
                let question = Question { target: factor * question.target, ..question.clone() };
                let fresh = devices_of(&mut Crew::new(model, settings, model.limits.memory()), model, &question);
                assert_eq!(devices_of(&mut old, model, &question), fresh, "{factor}");
                fresh
            });
            assert!(answers.contains(&None) && answers.iter().any(Option::is_some), "{answers:?}");
        });
    }

    #[test]
    fn levels_tried_together_change_no_answer() {
        let pools = [1, 3].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
        for (chains, length, memory) in [(1, 450, 60_000_000), (2, 10, 6_000_000), (3, 7, 6_000_000)] {
            with(&branches(chains, length, memory), |model, settings, question| {
                let crews = [(1, 0), (2, 0), (4, 0), (4, 1), (7, 1)];
                let mut crews = crews.map(|(levels, pool): (usize, usize)| {
                    let new = || Crew::of(Threads::All, model, settings, model.limits.memory());
                    let mut crew = pools[pool].install(new);
                    crew.levels = levels;
                    (crew, &pools[pool])
                });
                let mut answers = vec![];
                for (stages, factor) in [None, Some(3), Some(6)].into_iter().flat_map(|s| FACTORS.map(|f| (s, f))) {
                    let question = Question { target: factor * question.target, stages, ..question.clone() };
                    let told = crews.each_mut().map(|(crew, pool)| pool.install(|| devices_of(crew, model, &question)));
                    assert!(
                        told.iter().all(|other| *other == told[0]),
                        "{chains} {length} {stages:?} {factor}: {told:?}"
                    );
                    answers.push(told[0]);
                }
                assert!(answers.contains(&None) && answers.iter().any(Option::is_some), "{answers:?}");
            });
        }
    }

    #[test]
    fn a_set_is_walked_for_every_number_of_stages() {
        // So many sets that those behind a stage are walked through from the largest down.
        with(&fan(3, 21, 40_000_000), |model, settings, question| {
            assert!(model.sets.len() > 10_000, "{} sets", model.sets.len());
            let mut answers = vec![];
            for (stages, factor) in [(2, 1.477_455), (2, 2.653_298), (3, 2.182_875), (4, 3.555_673)] {
                let question = Question { target: factor * question.target, stages: Some(stages), ..question.clone() };
                let told = [1, 2].map(|threads| {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| {
                        devices_of(&mut Crew::new(model, settings, model.limits.memory()), model, &question)
                    })
                });
                answers.push(told);
            }
            assert!(answers.iter().all(|[one, two]| one == two && one.is_some()), "{answers:?}");
        });
    }
}
