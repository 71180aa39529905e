//! Way from one run to another, one change on top of the other, each predicted.
//!
//! Degrees whose product stays the same change together. The change that gains most comes first, then the one that gains
//! most on top of it; one that is not valid alone waits for the others. A handful of groups, at most their square of
//! predictions.

use plantui_core::{
    family::training::{Estimate, Fits},
    workload::{
        TrainingProfile,
        training::{Layout, TrainingRun},
    },
};

/// Change on top of those before.
#[derive(Debug, Clone)]
pub struct Step {
    /// The change: `TP 4 for 8, CP 2 for 1`.
    pub what: String,
    /// Run with all changes so far.
    pub run: TrainingRun,
    /// Prediction of it.
    pub estimate: Estimate,
}

type Set = fn(&mut TrainingRun, &TrainingRun);

/// Difference between two runs.
#[derive(Clone)]
struct Difference {
    what: String,
    set: Vec<Set>,
}

impl Difference {
    fn one(what: String, set: Set) -> Difference {
        Difference { what, set: vec![set] }
    }

    fn joined(parts: &[Difference]) -> Difference {
        let what: Vec<&str> = parts.iter().map(|part| part.what.as_str()).collect();
        Difference { what: what.join(", "), set: parts.iter().flat_map(|part| part.set.clone()).collect() }
    }

    fn apply(&self, run: &TrainingRun, to: &TrainingRun) -> TrainingRun {
        let mut run = run.clone();
        self.set.iter().for_each(|set| set(&mut run, to));
        run
    }
}

/// Degrees that divide the devices, with their names.
type Degree = (&'static str, fn(&Layout) -> u32, Set);

const DEGREES: [Degree; 4] = [
    (
        "TP",
        |layout| layout.tensor,
        |run, to| {
            (run.layout.tensor, run.layout.expert_tensor) = (to.layout.tensor, to.layout.expert_tensor);
        },
    ),
    ("CP", |layout| layout.context, |run, to| run.layout.context = to.layout.context),
    ("PP", |layout| layout.pipeline, |run, to| run.layout.pipeline = to.layout.pipeline),
    ("DP", |layout| layout.data, |run, to| run.layout.data = to.layout.data),
];

/// Prediction of a run with the constants of a profile; `None` if an engine refuses it.
pub fn predict(profile: &TrainingProfile, run: &TrainingRun) -> Option<Estimate> {
    let devices = run.layout.devices();
    Estimate::under(&profile.model, run, &profile.accelerator, devices, &profile.constants, None).ok()
}

/// Changes that lead from a run to another one of the same model, the most valuable first. The last prediction is that of
/// the other run.
pub fn steps(profile: &TrainingProfile, from: &TrainingRun, to: &TrainingRun) -> Vec<Step> {
    let mut left = differences(from, to);
    let mut run = from.clone();
    let mut steps = vec![];
    while !left.is_empty() {
        let predicted = |difference: &Difference| {
            let run = difference.apply(&run, to);
            predict(profile, &run).map(|estimate| (run, estimate))
        };
        let best = (0..left.len())
            .filter_map(|at| predicted(&left[at]).map(|(run, estimate)| (at, run, estimate)))
            .min_by(|a, b| {
                let rank = |e: &Estimate| (e.fits == Fits::No, e.simulated_s);
                rank(&a.2).0.cmp(&rank(&b.2).0).then(rank(&a.2).1.total_cmp(&rank(&b.2).1))
            });
        let (at, next, estimate) = match best {
            Some(best) if left.len() > 1 => best,
            // What is left is valid only together.
            _ => {
                let all = Difference::joined(&left);
                left = vec![all];
                let Some(estimate) = predict(profile, to) else { return steps };
                (0, to.clone(), estimate)
            }
        };
        let taken = left.remove(at);
        run = next;
        steps.push(Step { what: taken.what, run: run.clone(), estimate });
    }
    steps
}

/// Differences between two runs that make sense alone.
fn differences(from: &TrainingRun, to: &TrainingRun) -> Vec<Difference> {
    let (a, b) = (&from.layout, &to.layout);
    let mut all = vec![];
    let degrees: Vec<(f64, Difference)> = DEGREES
        .into_iter()
        .map(|(name, of, set)| (name, of(a), of(b), set))
        .filter(|(_, before, now, _)| before != now)
        .map(|(name, before, now, set)| {
            (f64::from(now) / f64::from(before), Difference::one(format!("{name} {now} for {before}"), set))
        })
        .collect();
    all.extend(of_equal_product(degrees));
    if a.expert != b.expert || a.expert_tensor != b.expert_tensor {
        all.push(Difference::one(format!("EP {} for {}", b.expert, a.expert), |run, to| {
            run.layout.expert = to.layout.expert;
            run.layout.expert_tensor = to.layout.expert_tensor;
        }));
    }
    if a.micro_batch != b.micro_batch {
        let what = format!("micro-batch {} for {}", b.micro_batch, a.micro_batch);
        all.push(Difference::one(what, |run, to| run.layout.micro_batch = to.layout.micro_batch));
    }
    if from.recompute != to.recompute {
        let what = format!("recompute {} for {}", to.recompute, from.recompute);
        all.push(Difference::one(what, |run, to| run.recompute = to.recompute));
    }
    let virtual_stages = a.virtual_stages != b.virtual_stages;
    if virtual_stages
        || from.layers != to.layers
        || from.head_alone != to.head_alone
        || from.zero_bubble != to.zero_bubble
    {
        let what = match (virtual_stages, to.zero_bubble) {
            (true, _) => format!("{} virtual stages for {}", b.virtual_stages, a.virtual_stages),
            (false, Some(schedule)) if from.zero_bubble != to.zero_bubble => format!("schedule {}", schedule.id()),
            _ => "other layers on each stage".into(),
        };
        all.push(Difference::one(what, |run, to| {
            run.layout.virtual_stages = to.layout.virtual_stages;
            run.layers.clone_from(&to.layers);
            (run.head_alone, run.zero_bubble) = (to.head_alone, to.zero_bubble);
        }));
    }
    if from.settings != to.settings {
        all.push(Difference::one("settings of the software".into(), |run, to| run.settings = to.settings.clone()));
    }
    all
}

/// Degrees in the smallest groups whose product stays the same.
fn of_equal_product(mut degrees: Vec<(f64, Difference)>) -> Vec<Difference> {
    let mut groups = vec![];
    let mut size = 2;
    while size < degrees.len() {
        let found = (1u32..1 << degrees.len()).filter(|set| set.count_ones() as usize == size).find(|set| {
            let product: f64 =
                degrees.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, own)| own.0).product();
            (product - 1.0).abs() < 1e-9
        });
        let Some(set) = found else {
            size += 1;
            continue;
        };
        let mut at = 0;
        let (group, rest) = degrees.into_iter().partition(|_| {
            at += 1;
            set >> (at - 1) & 1 == 1
        });
        let group: Vec<(f64, Difference)> = group;
        groups.push(Difference::joined(&group.into_iter().map(|own| own.1).collect::<Vec<_>>()));
        degrees = rest;
    }
    if !degrees.is_empty() {
        groups.push(Difference::joined(&degrees.into_iter().map(|own| own.1).collect::<Vec<_>>()));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::{load, training::Recompute};

    #[test]
    fn a_run_becomes_another_step_by_step() {
        let workload = load(std::path::Path::new("llama-3-70b")).unwrap();
        let profile = workload.training().unwrap();
        let run = |tensor, context, pipeline, data, recompute: &str| {
            let layout = Layout { tensor, context, pipeline, data, ..Layout::ONE };
            let recompute = Recompute::parse(recompute).unwrap();
            profile.run(&profile.configuration(layout, recompute), 128)
        };
        let from = run(8, 1, 4, 2, "full");
        let to = run(4, 2, 4, 2, "none");
        let found = steps(profile, &from, &to);
        let what: Vec<&str> = found.iter().map(|step| step.what.as_str()).collect();
        assert_eq!(what, ["recompute none for full", "TP 4 for 8, CP 2 for 1"]);
        assert!(found[0].estimate.simulated_s > found[1].estimate.simulated_s);
        assert!(steps(profile, &from, &from).is_empty());
    }
}
