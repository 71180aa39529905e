//! A finished run on a topology: its plan on the devices where a batch is fastest.
//!
//! The planner knew the slowest pairs only. Where it tells several plans, as of a model that is trained, those are measured
//! again on the routes with their parts in order, and the fastest few are mapped. As long as a check of each, and three
//! mappings at the most.

use super::Run;
use crate::{
    family,
    plan::{Plan, Score},
    planner::{
        Alternative, Problem, Search,
        parmesan::mapping::{self, Consider, Keep, Mapped},
    },
    units,
    workload::formats::Wired,
};

/// Plans of several that are mapped.
const MAPPED: usize = 3;

impl Run {
    /// Puts the plan on the devices of a topology where a batch is simulated to be fastest: those that a search over targets
    /// finds, or those that it has. A plan that cannot be mapped stays as it is, and the notes say why.
    pub fn map_onto(&mut self, wired: &Wired, search: &Search) {
        let name = &wired.topology.name;
        let first = self.outcome.plan.as_ref().and_then(|plan| plan.configuration().cloned());
        let valid = self.score.as_ref().is_some_and(Score::is_valid);
        if !valid || self.outcome.mapping.is_some() {
            return;
        }
        let routed = self.route_alternatives(wired, search);
        let (Some(plan), Some(score)) = (&self.outcome.plan, &self.score) else { return };
        let mut found = match self.mapped(plan, wired, search) {
            Ok(found) => found,
            Err(why) => return self.outcome.notes.push(format!("not mapped to {name}: {why}")),
        };
        for other in self.outcome.alternatives.iter().skip(1).take(if routed { MAPPED - 1 } else { 0 }) {
            if let Ok(mapped) = self.mapped(&other.plan, wired, search)
                && mapped.1.value < found.1.value
            {
                found = mapped;
            }
        }
        let (mapped, moved) = found;
        if mapped.plan.configuration() != first.as_ref() {
            let told = format!("of the plans found another is fastest on the routes of {name}: it is taken");
            self.outcome.notes.push(told);
        }
        if (moved.value - score.value).abs() > 1e-9 * score.value.abs() {
            let (before, after) = (score.measure.show(score.value), score.measure.show(moved.value));
            let model = score.measure.model();
            self.outcome
                .notes
                .push(format!("on the devices it is mapped to, {model} says {after} in place of {before}"));
            self.outcome.not_proven();
        }
        if let (Some((_, _, Some(before))), Some(after)) = (&mapped.before, mapped.part.iteration_s) {
            let before = units::seconds(*before);
            let after = units::seconds(after);
            let told = format!("mapped to {name}: a batch takes {after} on its routes, {before} with devices in order");
            self.outcome.notes.push(told);
        }
        self.outcome.notes.push(format!("mapping: {}", mapped.part.told()));
        self.outcome.objective = Some(moved.value);
        let own = |other: &Alternative| other.plan.configuration() == mapped.plan.configuration();
        if let Some(place) = self.outcome.alternatives.iter().position(own) {
            let other = self.outcome.alternatives.remove(place);
            let first = Alternative { value: moved.value, plan: mapped.plan.clone(), ..other };
            self.outcome.alternatives.insert(0, first);
        }
        self.outcome.plan = Some(mapped.plan);
        self.outcome.mapping = Some(mapped.part);
        self.score = Some(moved);
    }

    /// A plan on the devices where a batch is fastest, and its worth there; else why not.
    fn mapped(&self, plan: &Plan, wired: &Wired, search: &Search) -> Result<(Mapped, Score), String> {
        let Problem { workload, limits, .. } = &self.problem;
        let settings = mapping::MappingSettings::by_the_way(search.seed());
        let how = (Consider::default(), &settings, Keep::Faster);
        let mapped =
            mapping::map_plan(workload, limits, plan, wired, how, search).map_err(|error| error.to_string())?;
        let score = family::check(workload, limits, &mapped.plan);
        match score.violations.first() {
            Some(violation) => Err(violation.to_string()),
            None => Ok((mapped, score)),
        }
    }

    /// Measures all plans that are told on the routes of a topology, their parts in order, and sorts them; the fastest
    /// becomes the plan. False where nothing is different there.
    fn route_alternatives(&mut self, wired: &Wired, search: &Search) -> bool {
        let Problem { workload, limits, .. } = &self.problem;
        if self.outcome.alternatives.len() < 2 || search.cancelled() {
            return false;
        }
        let (topology, mut changed) = (&wired.topology, false);
        for other in &mut self.outcome.alternatives {
            let in_order: Vec<usize> = (0..other.plan.devices().count()).collect();
            let plan = Plan { topology: None, ..other.plan.clone() }.on(topology, &in_order);
            let score = family::check(workload, limits, &plan);
            if score.is_valid() {
                changed |= (score.value - other.value).abs() > 1e-9 * other.value.abs();
                (other.value, other.plan) = (score.value, Plan { topology: None, ..plan });
            }
        }
        if !changed {
            return false;
        }
        // Stable: of plans that take as long the one that was ahead stays ahead.
        self.outcome.alternatives.sort_by(|a, b| a.value.total_cmp(&b.value));
        self.outcome.not_proven();
        let fastest = self.outcome.alternatives[0].plan.clone();
        self.outcome.objective = Some(self.outcome.alternatives[0].value);
        self.score = Some(family::check(workload, limits, &fastest));
        self.outcome.plan = Some(fastest);
        true
    }
}
