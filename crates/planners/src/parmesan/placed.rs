//! End of the search: maps the best few partitions by the chosen method and builds the outcome from the fastest.
//!
//! The fastest partition under quick mappings may differ from the fastest under good ones, so several are mapped. Time:
//! that many mappings, each with two simulations.

use std::sync::Arc;

use super::planner::{ParmesanSearch, SimulatedPlan, in_order, parallel};
use crate::{Outcome, Status};
use plantui_core::{
    mapping::{MapError, Mapping, MappingInstance, MappingMethod, MappingSettings, map},
    plan::{Plan, document::MappingPart},
    units,
};

/// Mapped partition.
struct MappedPartition {
    scored: SimulatedPlan,
    part: MappingPart,
    /// Seconds of an iteration with devices in order.
    in_order: Option<f64>,
    /// True if the quick mapping is faster than the mapping with the least bottleneck.
    at_once: bool,
}

impl ParmesanSearch<'_> {
    /// Maps each of the best partitions by the chosen method and returns the fastest. `best` is sorted, best first;
    /// `tried` is the number of points and of partitions.
    pub(super) fn finished(&self, best: Vec<SimulatedPlan>, tried: (usize, usize), mut notes: Vec<String>) -> Outcome {
        let counts = vec![("points", tried.0 as f64), ("partitions", tried.1 as f64)];
        let cancelled = self.search.cancelled() && !self.search.deadline_passed();
        let mut outcome = Outcome::new(if cancelled { Status::Cancelled } else { Status::Feasible });
        outcome.statistics.counts = counts;
        if self.converted {
            // The original plan is mapped instead, by the traffic of its own stages.
            outcome.plan = best.into_iter().next().map(|best| best.plan);
            return outcome;
        }
        let mut fastest: Option<MappedPartition> = None;
        for scored in best {
            // Keep what was found: there is no time for another mapping.
            if fastest.is_some() && self.search.cancelled() {
                break;
            }
            match self.placed(scored) {
                Ok(placed) if fastest.as_ref().is_none_or(|fastest| placed.scored.is_better(&fastest.scored)) => {
                    fastest = Some(placed);
                }
                Ok(_) => {}
                Err(error) if fastest.is_none() => return Outcome::refused(format!("{error}.")),
                Err(_) => break,
            }
        }
        let Some(MappedPartition { scored, part, in_order, at_once }) = fastest else {
            return Outcome::new(Status::Cancelled);
        };
        if at_once {
            notes.push(
                "the mapping with the least bottleneck is not the fastest in the simulator: a faster one is \
                    kept"
                    .into(),
            );
        }
        if self.search.cancelled() && !self.search.deadline_passed() {
            outcome.status = Status::Cancelled;
        }
        let before = in_order.map(|seconds| format!("; with devices in order {}", units::seconds(seconds)));
        let named = self.problem.options.file("topology").is_some();
        // Without a topology, all figures of the report use DAPPLE's links, as for every planner.
        let chosen = if named { "simulated" } else { "chosen" };
        let elsewhere =
            if named { "" } else { "; the figures above use DAPPLE's links; --topology simulates on routes" };
        let (name, batch) = (&self.topology.name, units::seconds(scored.seconds));
        let before = before.unwrap_or_default();
        notes.insert(0, format!("{chosen} on the routes of {name}: an iteration takes {batch}{before}{elsewhere}"));
        notes.push(format!("mapping: {}", part.summary()));
        notes.extend(part.notes.iter().map(|note| format!("mapping: {note}")));
        notes.push(
            "the speed-up comes from DAPPLE's model, with the slowest links within and between machines; \
            plans are chosen by simulated time"
                .into(),
        );
        outcome.notes = notes;
        outcome.statistics.counts.extend([
            ("simulated_on_topology_s", scored.seconds),
            ("communication_s", part.communication_s),
            ("communication_bound_s", part.lower_bound_s),
        ]);
        outcome.mapping = Some(MappingPart { iteration_s: Some(scored.seconds), file: self.file.cloned(), ..part });
        outcome.objective = Some(scored.speedup);
        // A plan file cannot name the default topology built from the planner's own links.
        let topology = self.problem.options.file("topology").map(|_| Arc::clone(self.topology));
        outcome.plan = Some(Plan { topology, ..scored.plan });
        outcome.statistics.seconds = self.search.elapsed().as_secs_f64();
        outcome
    }

    /// Maps one partition by the chosen method.
    fn placed(&self, best: SimulatedPlan) -> Result<MappedPartition, MapError> {
        let instance = MappingInstance::new(self.topology, &self.demands(&best.plan), self.consider);
        let settings = MappingSettings {
            method: self.method,
            parallel: parallel(self.problem),
            seed: self.search.seed(),
            ..MappingSettings::default()
        };
        let mapping = map(&instance, &settings, self.search)?;
        let identity = self.scored(&best.plan, &in_order(&best.plan)).map(|scored| scored.seconds);
        let asked = self.method != MappingMethod::Search;
        let placed = match self.scored(&best.plan, &mapping.devices) {
            // A smaller bottleneck does not always make the iteration shorter, so simulated time decides.
            Some(scored) if asked || !best.is_better(&scored) => {
                MappedPartition { scored, part: mapping.part(&instance), in_order: identity, at_once: false }
            }
            _ => {
                let devices: Vec<usize> = best.plan.devices().map(|device| device as usize).collect();
                let cost = instance.cost(&devices);
                let proved = mapping.proved && cost.seconds <= mapping.cost.seconds * (1.0 + 1e-9);
                let kept = Mapping { cost, devices, proved, ..mapping };
                MappedPartition { scored: best, part: kept.part(&instance), in_order: identity, at_once: true }
            }
        };
        Ok(placed)
    }
}
