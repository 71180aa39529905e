//! Joint on models that are to be trained: the configuration whose simulated iteration takes the least time.
//!
//! An exhaustive search over degrees (tensor, context, expert, pipeline, data), virtual stages, micro-batch, sequence
//! parallelism, splits that are even or nearly so, and recomputation. For each layout only the recomputation that it needs
//! to fit counts: memory falls and time grows with every layer that is computed again. The closed form
//! ([`crate::family::training::iteration`]) orders what is left, a bound on the simulated time
//! (`candidate::bound`, with its proof) ends the search, and the simulator decides. An optimizer whose state is divided is
//! both smaller and faster than one that is not, so that what the settings say of it stands.
//!
//! With `C` layouts of `p` stages and `L` layers: `O(C · (p + L) · log L)` time, `O(C)` memory.

mod candidate;
mod space;
#[cfg(test)]
mod tests;
mod zero_bubble;

use candidate::{Bench, Candidate, bound_of_any_split};

use crate::{
    cluster::{LimitKind, Limits},
    family::training::{Layout, Recompute, Run, Stack, ZeroBubble, check::Refusal, configured, iteration::Costs},
    plan::{Plan, Schedule},
    planner::{Alternative, Infeasible, Outcome, Search, Status, pipeline_options},
    units,
    workload::TrainingProfile,
};

use super::settings::JointSettings;

/// The planner's options that are about profiles: here the engine is that of the stack, virtual stages are searched, and the
/// search is whole. NVIDIA's stacks run 1F1B, interleaved where the configuration has virtual stages, and nothing else.
pub(super) fn unheard(profile: &TrainingProfile) -> &'static [&'static str] {
    const UNHEARD: [&str; 6] = ["schedule", "space", "virtual_stages", "engine", "gap", "tensor_degree"];
    match profile.stack {
        Stack::Torchtitan | Stack::Plain => &UNHEARD[1..],
        Stack::Megatron2025 | Stack::Nemo24 => &UNHEARD,
    }
}

/// What a bound speaks of where fewer devices than there are were searched, too.
const ALSO_FEWER: &str = "configurations that the engine runs on all devices, or on the most of them that 2, 4, 8 and so on \
                          divide, split evenly or nearly so";
/// Configurations that are kept and told.
const KEPT: usize = 10;
/// Configurations that no other is both faster and smaller than, told at the most.
const FRONT: usize = 12;
/// Candidates between two looks at whether the search has ended.
const STRIDE: usize = 64;

/// What has been found.
#[derive(Default)]
struct FoundLayouts {
    /// All that fit.
    candidates: Vec<Candidate>,
    /// The least memory that any configuration needs, where none fitted.
    least_memory: Option<f64>,
    /// Why an engine refused the first configuration that it did.
    refusal: Option<Refusal>,
    layouts: usize,
    stopped: bool,
    /// The fastest simulated so far.
    best: Option<f64>,
}

/// Plans.
pub(super) fn plan(profile: &TrainingProfile, limits: &Limits, settings: &JointSettings, search: &Search) -> Outcome {
    let task = Task {
        bench: Bench { profile, batch: limits.samples(), memory_bytes: limits.memory() * (1.0 - settings.headroom) },
        settings,
        search,
    };
    let schedules = match zero_bubble::searched(profile, settings) {
        Ok(schedules) => schedules,
        Err(why) => return Outcome::refused(why),
    };
    // Where the devices do not divide into any configuration, fewer of them may.
    let mut found = FoundLayouts::default();
    let mut devices = limits.devices;
    while devices > 0 {
        found = task.candidates(devices, schedules);
        if !found.candidates.is_empty() || found.least_memory.is_some() || found.stopped {
            break;
        }
        devices -= 1;
    }
    if found.candidates.is_empty() {
        return if found.stopped { Outcome::new(Status::Cancelled) } else { infeasible(limits, settings, &found) };
    }
    // Sixty-three devices have few divisors: fewer of them are faster where they divide better.
    for fewer in rounder(devices) {
        if found.stopped {
            break;
        }
        found.join(task.candidates(fewer, schedules));
    }
    let mut outcome = task.decide(found);
    if rounder(devices).next().is_some() {
        outcome.proven_among = Some(ALSO_FEWER.into());
    }
    let used = outcome.plan.as_ref().map_or(devices, Plan::devices_used);
    if used < limits.devices {
        let why = match used < devices {
            true => "no configuration that was searched on more is faster",
            false => "the engine's rules let no configuration use more",
        };
        outcome.notes.push(format!("{used} of {} devices are used: {why}", limits.devices));
    }
    outcome
}

/// The largest multiples of 2, 4, 8 and so on below a number of devices, each once.
fn rounder(devices: u32) -> impl Iterator<Item = u32> {
    let largest = (1..u32::BITS).map(move |bits| devices >> bits << bits).take_while(|&count| count > 0);
    let mut before = devices;
    largest.filter(move |&count| std::mem::replace(&mut before, count) != count)
}

impl FoundLayouts {
    /// Takes what was found on other devices.
    fn join(&mut self, other: FoundLayouts) {
        self.candidates.extend(other.candidates);
        self.layouts += other.layouts;
        self.stopped |= other.stopped;
        self.best = self.best.into_iter().chain(other.best).reduce(f64::min);
    }
}

struct Task<'a> {
    bench: Bench<'a>,
    settings: &'a JointSettings,
    search: &'a Search,
}

impl Task<'_> {
    /// All configurations on so many devices that fit.
    fn candidates(&self, devices: u32, (usual, zero_bubble): (bool, Option<ZeroBubble>)) -> FoundLayouts {
        let mut found = FoundLayouts::default();
        let layouts = space::layouts(self.bench.profile, devices, self.bench.batch, self.settings);
        found.layouts = layouts.len();
        for (number, layout) in layouts.iter().enumerate() {
            if number % STRIDE == 0 {
                if self.search.cancelled() {
                    found.stopped = true;
                    break;
                }
                self.search.report_fraction(0.8 * number as f64 / layouts.len() as f64);
            }
            let own = self.bench.profile.settings.sequence_parallel;
            let other =
                zero_bubble.and_then(|schedule| Some((zero_bubble::layout(*layout, schedule)?, Some(schedule))));
            let interleaved = self.settings.wanted.schedule == Some(Schedule::Interleaved);
            let usual = usual && (layout.virtual_stages > 1 || !interleaved);
            for (layout, schedule) in usual.then_some((*layout, None)).into_iter().chain(other) {
                self.layout(layout, schedule, own, &mut found);
                if own && layout.tensor > 1 {
                    self.layout(layout, schedule, false, &mut found);
                }
            }
        }
        found
    }

    /// The splits of a layout.
    fn layout(&self, layout: Layout, schedule: Option<ZeroBubble>, sequence_parallel: bool, found: &mut FoundLayouts) {
        let mut configuration = self.bench.profile.configuration(layout, Recompute::None);
        configuration.sequence_parallel = sequence_parallel;
        configuration.zero_bubble = schedule;
        let even = self.bench.taken(&configuration);
        let mut promising = true;
        match &even {
            Ok((run, split)) => {
                self.recomputations(run, split, found);
                let profile = self.bench.profile;
                let costs = Costs::of(&profile.model, run, &profile.accelerator, &profile.constants, split);
                // What no split of this layout can reach need not be split otherwise.
                promising = found.best.is_none_or(|best| bound_of_any_split(&costs) < best);
            }
            Err(refusal) => found.refusal = found.refusal.take().or_else(|| Some(refusal.clone())),
        }
        if !promising {
            return;
        }
        for layers in space::uneven(self.bench.profile.model.layers.len(), &layout) {
            configuration.layers = layers;
            if let Ok((run, split)) = self.bench.taken(&configuration) {
                self.recomputations(&run, &split, found);
            }
        }
    }

    /// The recomputation that a split needs, and more of it for those who have less memory.
    fn recomputations(&self, run: &Run, split: &crate::family::training::split::StageSplit, found: &mut FoundLayouts) {
        use pipeline_options::Recompute as Asked;
        let bench = &self.bench;
        let with = |recompute| Run { recompute, ..run.clone() };
        let fits = |run: &Run| bench.fullest(run, split) <= bench.memory_bytes;
        let asked = self.settings.recompute;
        let mut runs = vec![];
        if asked != Asked::Always {
            runs.push(with(Recompute::None));
            if bench.keeps_scores() {
                runs.push(with(Recompute::Selective));
            }
            runs.retain(fits);
        }
        let kept = runs.first().is_some_and(|run| run.recompute == Recompute::None);
        if asked == Asked::Auto && !kept {
            runs.extend(bench.least_layers(run, split).map(with));
        }
        if asked != Asked::Never {
            let full = with(Recompute::Full);
            if !runs.iter().any(|run| run.recompute == Recompute::Full) && fits(&full) {
                runs.push(full);
            }
        }
        if runs.is_empty() {
            let least = if asked == Asked::Never { Recompute::None } else { Recompute::Full };
            let needed = bench.fullest(&with(least), split);
            found.least_memory = Some(found.least_memory.map_or(needed, |known| known.min(needed)));
        }
        for run in runs {
            let candidate = bench.candidate(&run, split);
            if found.best.is_none_or(|best| candidate.bound_s < best) && found.candidates.len().is_multiple_of(STRIDE) {
                self.publish(&candidate, found);
            }
            found.candidates.push(candidate);
        }
    }

    /// Simulates a candidate and shows it if it is the fastest so far.
    fn publish(&self, candidate: &Candidate, found: &mut FoundLayouts) -> f64 {
        let seconds = self.bench.simulated(candidate);
        if found.best.is_none_or(|best| seconds < best) {
            found.best = Some(seconds);
            let plan = configured::plan(self.bench.profile, candidate.configuration.clone(), &candidate.split);
            self.search.improve(seconds, &plan);
        }
        seconds
    }

    /// Simulates candidates in the order of their bounds until none that is left can be among the best.
    fn decide(&self, mut found: FoundLayouts) -> Outcome {
        let mut order: Vec<usize> = (0..found.candidates.len()).collect();
        let candidates = std::mem::take(&mut found.candidates);
        order.sort_by(|&a, &b| candidates[a].bound_s.total_cmp(&candidates[b].bound_s).then(a.cmp(&b)));
        let mut simulated: Vec<(f64, usize)> = vec![];
        let mut lower = f64::INFINITY;
        for (done, &index) in order.iter().enumerate() {
            let candidate = &candidates[index];
            let (best, last) = (simulated.first(), simulated.get(KEPT - 1));
            if last.is_some_and(|last| candidate.bound_s >= last.0) {
                lower = lower.min(candidate.bound_s);
                break;
            }
            if self.search.cancelled() && best.is_some() {
                found.stopped = true;
                lower = candidate.bound_s;
                break;
            }
            self.search.report_bound(best.map_or(candidate.bound_s, |best| candidate.bound_s.min(best.0)));
            self.search.report_fraction(0.8 + 0.2 * done as f64 / order.len() as f64);
            let seconds = self.publish(candidate, &mut found);
            let place = simulated.partition_point(|known| (known.0, known.1) < (seconds, index));
            simulated.insert(place, (seconds, index));
        }
        self.outcome(&candidates, &simulated, lower, &found)
    }

    fn outcome(
        &self,
        candidates: &[Candidate],
        simulated: &[(f64, usize)],
        lower: f64,
        found: &FoundLayouts,
    ) -> Outcome {
        let (seconds, best) = simulated[0];
        let plan_of = |index: usize| {
            let candidate: &Candidate = &candidates[index];
            configured::plan(self.bench.profile, candidate.configuration.clone(), &candidate.split)
        };
        // A search that was stopped has not seen all layouts.
        let lower = if found.stopped { None } else { Some(lower.min(seconds)) };
        let status = match found.stopped {
            false => Status::Optimal,
            true if self.search.deadline_passed() => Status::Feasible,
            true => Status::Cancelled,
        };
        let alternative = |&(value, index): &(f64, usize)| Alternative {
            plan: plan_of(index),
            value,
            memory_bytes: candidates[index].memory_bytes,
        };
        let mut alternatives: Vec<Alternative> = simulated.iter().take(KEPT).map(alternative).collect();
        for index in front(candidates, best) {
            if !simulated.iter().take(KEPT).any(|known| known.1 == index) {
                alternatives.push(alternative(&(self.bench.simulated(&candidates[index]), index)));
            }
        }
        let mut outcome = Outcome {
            plan: Some(plan_of(best)),
            objective: Some(seconds),
            lower_bound: lower,
            proven_among: Some("configurations that the engine runs, split evenly or nearly so".into()),
            alternatives,
            ..Outcome::new(status)
        };
        outcome.statistics.counts = vec![
            ("layouts", found.layouts as f64),
            ("configurations", candidates.len() as f64),
            ("simulated", simulated.len() as f64),
        ];
        outcome.notes = self.notes();
        outcome
    }

    fn notes(&self) -> Vec<String> {
        let profile = self.bench.profile;
        let mut notes = vec![format!(
            "{} of memory on every device are kept free for the allocator, NCCL and the context",
            units::bytes_exact(profile.settings.reserve_bytes)
        )];
        notes.push(format!(
            "tensor groups stay within {} devices, which NVLink joins; software as {} runs it",
            profile.accelerator.domain,
            profile.stack.id()
        ));
        notes.extend(profile.model.remarks.iter().chain(&profile.remarks).cloned());
        notes
    }
}

/// The configurations that no other is both faster (in closed form) and smaller than, from the fastest on.
fn front(candidates: &[Candidate], best: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&candidates[a], &candidates[b]);
        a.closed_s.total_cmp(&b.closed_s).then(a.memory_bytes.total_cmp(&b.memory_bytes))
    });
    let mut least = candidates[best].memory_bytes;
    let mut front = vec![];
    for index in order {
        // A percent less is no reason to be slower.
        if candidates[index].memory_bytes < 0.99 * least {
            least = candidates[index].memory_bytes;
            front.push(index);
        }
    }
    thinned(front)
}

/// At most [`FRONT`] of a list, the last among them.
fn thinned(list: Vec<usize>) -> Vec<usize> {
    if list.len() <= FRONT {
        return list;
    }
    (1..=FRONT).map(|number| list[number * list.len() / FRONT - 1]).collect()
}

fn infeasible(limits: &Limits, settings: &JointSettings, found: &FoundLayouts) -> Outcome {
    let devices = units::counted(limits.devices as usize, "device");
    let Some(needed) = found.least_memory else {
        let rule = found.refusal.as_ref().map(|refusal| format!(": {refusal}")).unwrap_or_default();
        return Outcome::refused(format!(
            "An engine takes no configuration for {devices} and a batch of {}{rule}.",
            limits.samples()
        ));
    };
    let bytes = (needed / (1.0 - settings.headroom)).ceil();
    let infeasible = Infeasible {
        limits: vec![LimitKind::Memory],
        smallest_memory_bytes: Some(bytes),
        fewest_devices: None,
        explanation: format!(
            "No configuration fits {} on {devices}, the reserve included. {} of memory would do.",
            units::bytes_exact(limits.memory_limit()),
            units::bytes_enough(bytes, limits.memory_limit())
        ),
    };
    Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) }
}
