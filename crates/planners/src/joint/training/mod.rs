//! Joint for models to be trained: the configuration with the least simulated iteration time.
//!
//! An exhaustive search over degrees (tensor, context, expert, pipeline, data), virtual stages, micro-batch, sequence
//! parallelism, splits that are even or nearly so, and recomputation. Each layout is tried with the least recomputation
//! that fits, of whole layers and of modules in all layers, since memory falls and time grows with every recomputed layer
//! and with larger sets of modules. Full recomputation is added for users with less memory. Layouts are tried in the order
//! of a lower bound on their layers' work. Candidates are simulated in the order of a lower bound (`candidate::bound`, with
//! its proof), which also ends the search. The closed form ([`plantui_core::family::training::iteration`]) ranks them for
//! the trade-off with memory. A distributed optimizer is both smaller and faster than a replicated one, so that setting is not searched.
//!
//! With `C` layouts of `p` stages and `L` layers: `O(C · (p + L) · log L)` time, `O(C)` memory.

mod candidate;
mod space;
#[cfg(test)]
mod tests;
mod zero_bubble;

use candidate::{Bench, LayoutCandidate, bound_of_any_split};
use zero_bubble::LayoutSchedules;

use crate::{Alternative, Infeasible, Outcome, Status, outcome::feasible, pipeline_options};
use plantui_core::{
    cluster::{LimitKind, Limits, MOST_DEVICES},
    family::training::{
        ExpertOverlap, Layout, Recompute, Stack, TrainingRun, ZeroBubble,
        check::{self, Refusal},
        configured,
        iteration::IterationCosts,
        remedy,
        split::StageSplit,
    },
    plan::{Plan, Schedule},
    search::Search,
    units,
    workload::TrainingProfile,
};

use super::{engine_of, kind::any_of, settings::JointSettings};

/// Options that the planner ignores for these models: the stack determines the engine, and the search is exhaustive. NVIDIA's stacks ignore the schedule too: they run 1F1B, interleaved if the configuration
/// has virtual stages, and nothing else.
pub(super) fn ignored(profile: &TrainingProfile) -> &'static [&'static str] {
    const IGNORED: [&str; 8] =
        ["schedule", "space", "engine", "gap", "minimise", "most_seconds", "most_per_hour", "most_cost"];
    match profile.stack {
        Stack::Torchtitan | Stack::Plain => &IGNORED[1..],
        Stack::Megatron2025 | Stack::Nemo24 => &IGNORED,
    }
}

/// Addition to the description of a proof if fewer devices were searched, too.
const ALSO_FEWER: &str = " on all devices, or on the largest numbers of them with factors 2, 4, 8";
/// Number of machines that are added one by one in search of enough devices. Larger numbers have many divisors.
const MORE_MACHINES: u32 = 24;
/// Number of configurations kept and reported.
const KEPT: usize = 10;
/// Maximum number of reported configurations on the Pareto front of time and memory. With all, the search takes up to
/// 1.16 times as long.
const FRONT: usize = 12;
/// Factor on the least simulated time above which a layout is not looked at, whatever it saves: nobody trades twice the
/// time for memory. Without it, deepseek-v3 on 2,048 devices takes 2.5 times the CPU time.
const FAR: f64 = 2.0;
/// Number of candidates between two checks for cancellation, or between two early simulations. Without the latter, the
/// search takes up to 1.05 times as long.
const STRIDE: usize = 64;

/// Result of the search over layouts.
#[derive(Default)]
struct FoundLayouts {
    /// All configurations that fit.
    candidates: Vec<LayoutCandidate>,
    /// Least memory that any configuration needs, bytes, if none fits.
    least_memory: Option<f64>,
    /// Reason for the first configuration that the engine refused.
    refusal: Option<Refusal>,
    /// Fastest in closed form of those that fit, but not with the error of the memory model.
    close: Option<LayoutCandidate>,
    layouts: usize,
    stopped: bool,
    /// Least simulated time so far, seconds.
    best: Option<f64>,
}

/// Plans a model to be trained.
pub(super) fn plan(profile: &TrainingProfile, limits: &Limits, settings: &JointSettings, search: &Search) -> Outcome {
    let mut layout_search = LayoutSearch { bench: Bench::new(profile, limits, settings.headroom), settings, search };
    if let Err(refusal) = check::settings(&profile.model, profile.stack, &profile.settings) {
        return Outcome::refused(format!("{}: {}.", refusal.problem, refusal.repair));
    }
    if settings.recompute == pipeline_options::Recompute::Always && !whole_layers(profile) {
        return Outcome::refused(
            "recompute=always repeats whole layers, which neither ep_overlap=batch nor cuda_graph runs with: set \
            recompute=auto.",
        );
    }
    let schedules = match zero_bubble::searched(profile, settings) {
        Ok(schedules) => schedules,
        Err(why) => return Outcome::refused(why),
    };
    let (mut devices, mut found) = layout_search.on_fewer_too(limits.devices, schedules);
    if found.candidates.is_empty() && !found.stopped {
        // A plan that fits as predicted, but not with the error of the prediction, is better than none.
        layout_search.bench.with_error = false;
        (devices, found) = layout_search.on_fewer_too(limits.devices, schedules);
    }
    if found.candidates.is_empty() {
        return if found.stopped {
            Outcome::new(Status::Cancelled)
        } else {
            layout_search.infeasible(limits, schedules, &found)
        };
    }
    let mut outcome = layout_search.decide(found);
    outcome.proven_among = Some(layout_search.searched(rounder(devices).next().is_some(), schedules));
    let used = outcome.plan.as_ref().map_or(devices, Plan::devices_used);
    if used < limits.devices {
        let why = match used < devices {
            true => "no searched layout on more devices is faster",
            false => "the engine's rules allow no layout on more devices",
        };
        outcome.notes.push(format!("{used} of {} devices are used: {why}", limits.devices));
    }
    outcome
}

/// True if the software runs with recomputation of whole layers.
fn whole_layers(profile: &TrainingProfile) -> bool {
    let settings = &profile.settings;
    let graphs = settings.cuda_graph && profile.stack != Stack::Torchtitan;
    settings.ep_overlap != ExpertOverlap::Batch && !graphs
}

/// Largest multiples of 2, 4, 8 and so on below a number of devices, each once.
fn rounder(devices: u32) -> impl Iterator<Item = u32> {
    let largest = (1..u32::BITS).map(move |bits| devices >> bits << bits).take_while(|&count| count > 0);
    let mut before = devices;
    largest.filter(move |&count| std::mem::replace(&mut before, count) != count)
}

impl FoundLayouts {
    /// Adds the result for other devices.
    fn join(&mut self, other: FoundLayouts) {
        self.candidates.extend(other.candidates);
        self.layouts += other.layouts;
        self.stopped |= other.stopped;
        self.close = self.close.take().into_iter().chain(other.close).min_by(|a, b| a.closed_s.total_cmp(&b.closed_s));
        self.best = self.best.into_iter().chain(other.best).reduce(f64::min);
    }
}

struct LayoutSearch<'a> {
    bench: Bench<'a>,
    settings: &'a JointSettings,
    search: &'a Search,
}

impl LayoutSearch<'_> {
    /// Number of devices and the configurations on them. If `devices` allow no configuration, the largest number that
    /// does.
    fn on_most(&self, devices: u32, schedules: LayoutSchedules) -> (u32, FoundLayouts) {
        for count in (1..=devices).rev() {
            let found = self.candidates(count, schedules);
            if !found.candidates.is_empty() || found.least_memory.is_some() || found.stopped {
                return (count, found);
            }
        }
        (0, FoundLayouts::default())
    }

    /// The same, with configurations on fewer devices. Sixty-three devices have few divisors: fewer of them are faster if
    /// they divide better, or hold what all of them do not.
    fn on_fewer_too(&self, devices: u32, schedules: LayoutSchedules) -> (u32, FoundLayouts) {
        let (devices, mut found) = self.on_most(devices, schedules);
        for fewer in rounder(devices) {
            if found.stopped {
                break;
            }
            found.join(self.candidates(fewer, schedules));
        }
        (devices, found)
    }

    /// Description of the configurations that a proof covers.
    fn searched(&self, also_fewer: bool, schedules: LayoutSchedules) -> String {
        let devices = if also_fewer { ALSO_FEWER } else { "" };
        let fit = if self.bench.with_error { " and that fit" } else { " and that fit closely" };
        let routes = self.bench.topology.map(|topology| format!(", with ranks in order on {}", topology.name));
        let routes = routes.unwrap_or_default();
        let interleaved = Schedule::Interleaved.name();
        let plain = match self.settings.wanted.schedule {
            Some(Schedule::Interleaved) => vec![interleaved],
            _ if schedules.usual => vec![Schedule::OneForwardOneBackward.name(), interleaved],
            _ => vec![],
        };
        let delayed = schedules.delayed.iter().map(|own| configured::schedule_of(*own).name());
        let names = any_of(&plain.into_iter().chain(delayed).collect::<Vec<_>>());
        format!("layouts that the engine runs{devices}{fit}, with even or nearly even stages, under {names}{routes}")
    }

    /// Plan of a candidate, on the devices in order if there is a topology.
    fn plan_of(&self, candidate: &LayoutCandidate) -> Plan {
        let plan = configured::plan(self.bench.profile, candidate.configuration.clone(), &candidate.split);
        let Some(topology) = self.bench.topology else { return plan };
        let in_order: Vec<usize> = (0..plan.devices().count()).collect();
        plan.on(topology, &in_order)
    }

    /// All configurations on `devices` devices that fit, but for those of layouts that are far too slow. Layouts are tried in the order of a lower bound, so that fast ones come first.
    fn candidates(&self, devices: u32, schedules: LayoutSchedules) -> FoundLayouts {
        let mut found = FoundLayouts::default();
        let layouts = space::layouts(self.bench.profile, devices, self.bench.batch, self.settings);
        found.layouts = layouts.len();
        let own = self.bench.profile.settings.sequence_parallel;
        let mut tried = vec![];
        for (layout, schedule) in layouts.into_iter().flat_map(|layout| schedules.runs(layout)) {
            tried.push((self.bench.least_time(&layout, own), layout, schedule, own));
            if own && layout.tensor > 1 {
                tried.push((self.bench.least_time(&layout, false), layout, schedule, false));
            }
        }
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (number, &(least, layout, schedule, sequence_parallel)) in tried.iter().enumerate() {
            if found.best.is_some_and(|best| least > FAR * best) {
                break;
            }
            if number % STRIDE == 0 {
                if self.search.cancelled() {
                    found.stopped = true;
                    break;
                }
                self.search.report_fraction(0.8 * number as f64 / tried.len() as f64);
            }
            self.layout(layout, schedule, sequence_parallel, &mut found);
        }
        found
    }

    /// Adds the splits of a layout to `found`.
    fn layout(&self, layout: Layout, schedule: Option<ZeroBubble>, sequence_parallel: bool, found: &mut FoundLayouts) {
        let mut configuration = self.bench.profile.configuration(layout, Recompute::None);
        configuration.sequence_parallel = sequence_parallel;
        configuration.zero_bubble = schedule;
        let even = self.bench.taken(&configuration);
        let mut promising = true;
        match &even {
            Ok((run, split)) => {
                let profile = self.bench.profile;
                let costs = IterationCosts::of(&profile.model, run, &profile.accelerator, &profile.constants, split);
                let bound = bound_of_any_split(&costs);
                if found.best.is_some_and(|best| bound > FAR * best) {
                    return;
                }
                self.recomputations(run, split, found);
                // If no split of this layout can be faster, the even one is enough.
                promising = found.best.is_none_or(|best| bound < best);
            }
            Err(refusal) => found.refusal = found.refusal.take().or_else(|| Some(refusal.clone())),
        }
        if !promising {
            return;
        }
        let model = &self.bench.profile.model;
        let uneven = space::uneven(model.layers.len(), &layout).into_iter().map(|layers| (layers, false));
        let alone = schedule.is_none().then(|| space::head_alone(model, &layout)).flatten();
        for (layers, head_alone) in uneven.chain(alone.map(|layers| (layers, true))) {
            configuration.layers = layers;
            configuration.head_alone = head_alone;
            if let Ok((run, split)) = self.bench.taken(&configuration) {
                self.recomputations(&run, &split, found);
            }
        }
    }

    /// Adds the recomputation that a split needs, and more of it for users with less memory.
    fn recomputations(&self, run: &TrainingRun, split: &StageSplit, found: &mut FoundLayouts) {
        use pipeline_options::Recompute as RecomputeOption;
        let bench = &self.bench;
        let with = |recompute| TrainingRun { recompute, ..run.clone() };
        let fits = |run: &TrainingRun| bench.fits(run, split);
        let asked = self.settings.recompute;
        let mut runs = vec![];
        if asked != RecomputeOption::Always {
            runs.push(with(Recompute::None));
            if bench.keeps_scores() {
                runs.push(with(Recompute::SELECTIVE));
            }
            let all = runs.len();
            runs.retain(fits);
            if bench.with_error && runs.len() < all {
                self.close(&with(Recompute::None), split, found);
            }
        }
        let kept = runs.first().is_some_and(|run| run.recompute == Recompute::None);
        let full = with(Recompute::Full);
        // Some settings do not run with recomputation of whole layers.
        let whole = whole_layers(bench.profile);
        let full_fits = whole && asked != RecomputeOption::Never && fits(&full);
        if asked == RecomputeOption::Auto && !kept && (full_fits || !whole) {
            // The sets save more and take longer from one to the next, so that the first that fits is enough.
            runs.extend(remedy::module_sets(&bench.profile.model, run).into_iter().map(with).find(&fits));
            runs.extend(bench.least_layers(run, split).filter(|_| whole).map(with));
        }
        if full_fits && !runs.iter().any(|run| run.recompute == Recompute::Full) {
            runs.push(full);
        }
        if runs.is_empty() {
            let sets = remedy::module_sets(&bench.profile.model, run);
            let least = match asked {
                RecomputeOption::Never => Recompute::None,
                _ if whole => Recompute::Full,
                _ => sets.last().copied().unwrap_or(Recompute::None),
            };
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

    /// Keeps a run that fits without the error of the memory model, if it is the fastest of those.
    fn close(&self, run: &TrainingRun, split: &StageSplit, found: &mut FoundLayouts) {
        if self.bench.fullest(run, split) > self.bench.memory_bytes {
            return;
        }
        let candidate = self.bench.candidate(run, split);
        if found.close.as_ref().is_none_or(|known| candidate.closed_s < known.closed_s) {
            found.close = Some(candidate);
        }
    }

    /// Simulates a candidate and publishes it if it is the fastest so far.
    fn publish(&self, candidate: &LayoutCandidate, found: &mut FoundLayouts) -> f64 {
        let seconds = self.bench.simulated(candidate);
        if found.best.is_none_or(|best| seconds < best) {
            found.best = Some(seconds);
            self.search.improve(seconds, &self.plan_of(candidate));
        }
        seconds
    }

    /// Simulates candidates in the order of their bounds until no other can be among the best.
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
        candidates: &[LayoutCandidate],
        simulated: &[(f64, usize)],
        lower: f64,
        found: &FoundLayouts,
    ) -> Outcome {
        let (seconds, best) = simulated[0];
        let plan_of = |index: usize| self.plan_of(&candidates[index]);
        // A stopped search has not covered all layouts.
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
            alternatives,
            ..Outcome::new(status)
        };
        outcome.statistics.counts = vec![
            ("layouts", found.layouts as f64),
            ("configurations", candidates.len() as f64),
            ("simulated", simulated.len() as f64),
        ];
        outcome.notes = self.notes();
        if !self.bench.with_error {
            outcome.notes.push(
                "no layout fits with the error of the memory model added: this one fits as predicted, without that \
                margin (fits: close)"
                    .into(),
            );
        }
        if let Some(close) = found.close.as_ref().filter(|close| close.bound_s < seconds) {
            let faster = self.bench.simulated(close);
            let (time, memory) = (units::seconds(faster), units::bytes(close.memory_bytes));
            outcome.notes.extend((faster < seconds).then(|| {
                format!(
                    "{} would take {time}, but fits without margin: {memory} of {}",
                    close.configuration,
                    units::bytes_exact(self.bench.memory_bytes)
                )
            }));
        }
        outcome
    }

    fn notes(&self) -> Vec<String> {
        let profile = self.bench.profile;
        let mut notes = vec![format!(
            "{} of memory per device are kept free for the allocator, NCCL and the context",
            units::bytes_exact(profile.settings.reserve_bytes)
        )];
        notes.push(format!(
            "tensor groups stay within the {} devices joined by {}; the plan is for {} with --stack {}",
            profile.accelerator.domain,
            profile.accelerator.joined_by,
            engine_of(profile.stack).title(),
            profile.stack.id()
        ));
        notes.extend(profile.model.remarks.iter().chain(&profile.remarks).cloned());
        notes
    }
}

/// Pareto front of closed-form time and memory, fastest first.
fn front(candidates: &[LayoutCandidate], best: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (&candidates[a], &candidates[b]);
        a.closed_s.total_cmp(&b.closed_s).then(a.memory_bytes.total_cmp(&b.memory_bytes))
    });
    let mut least = candidates[best].memory_bytes;
    let mut front = vec![];
    for index in order {
        // A saving of one percent does not justify a slower plan.
        if candidates[index].memory_bytes < 0.99 * least {
            least = candidates[index].memory_bytes;
            front.push(index);
        }
    }
    thinned(front)
}

/// At most [`FRONT`] entries of a list, including the last.
fn thinned(list: Vec<usize>) -> Vec<usize> {
    if list.len() <= FRONT {
        return list;
    }
    (1..=FRONT).map(|number| list[number * list.len() / FRONT - 1]).collect()
}

impl LayoutSearch<'_> {
    /// Outcome without a plan, with limits that would be enough: more whole machines, or more memory per device.
    fn infeasible(&self, limits: &Limits, schedules: LayoutSchedules, found: &FoundLayouts) -> Outcome {
        let devices = units::counted(limits.devices as usize, "device");
        let Some(needed) = found.least_memory else {
            let rule = found.refusal.as_ref().map(|refusal| format!(": {refusal}")).unwrap_or_default();
            let pins = self.settings.pins();
            let pins = if pins.is_empty() { String::new() } else { format!(", {}", pins.join(", ")) };
            return Outcome::refused(format!(
                "The engine runs no layout on {devices} with a batch of {}{pins}{rule}.",
                limits.samples()
            ));
        };
        let bytes = (needed / (1.0 - self.settings.headroom)).ceil();
        let each = units::bytes_exact(limits.memory_limit());
        let more = self.enough_machines(limits, schedules);
        let memory = (limits.devices, units::bytes_enough(bytes, limits.memory_limit()));
        let enough = feasible(more.map(|more| (more, each.clone())).into_iter().chain([memory]));
        let explanation = format!("No feasible layout on {devices} of {each}, the reserve included.{enough}");
        let infeasible = Infeasible {
            limits: more.map(|_| LimitKind::Devices).into_iter().chain([LimitKind::Memory]).collect(),
            smallest_memory_bytes: Some(bytes),
            fewest_devices: more,
            explanation,
        };
        Outcome { infeasible: Some(infeasible), ..Outcome::new(Status::Infeasible) }
    }

    /// Fewest devices, by whole machines, on which something fits as predicted. `None` if the topology has no more, or
    /// the search is stopped. Feasibility is not monotone, so machines are first added one by one.
    fn enough_machines(&self, limits: &Limits, schedules: LayoutSchedules) -> Option<u32> {
        let machine = self.bench.profile.accelerator.domain.max(1);
        let there = limits.topology.as_ref().map_or(MOST_DEVICES, |wired| wired.topology.devices() as u32);
        let first = limits.devices / machine + 1;
        let last = first.saturating_add(MORE_MACHINES);
        // Later numbers have many divisors: 2, 3, 4, 6, 8, 12 and so on.
        let round = (0..u32::BITS - 2).flat_map(|bits| [2u32 << bits, (2u32 << bits).saturating_add(1 << bits)]);
        let counts =
            (first..=last).chain(round.filter(|&count| count > last)).map(|count| count.saturating_mul(machine));
        for devices in counts.take_while(|&devices| devices <= there) {
            if self.search.cancelled() {
                return None;
            }
            if self.anything_fits(devices, schedules) {
                return Some(devices);
            }
        }
        None
    }

    /// True if some configuration on these devices fits, with full recomputation if allowed.
    fn anything_fits(&self, devices: u32, schedules: LayoutSchedules) -> bool {
        let never = self.settings.recompute == pipeline_options::Recompute::Never;
        let recompute = if never { Recompute::None } else { Recompute::Full };
        let layouts = space::layouts(self.bench.profile, devices, self.bench.batch, self.settings);
        let layers = self.bench.profile.model.layers.len();
        let fits = |layout: Layout, schedule: Option<ZeroBubble>| {
            let mut configuration = self.bench.profile.configuration(layout, recompute);
            configuration.zero_bubble = schedule;
            let uneven = if schedule.is_none() { space::uneven(layers, &layout) } else { vec![] };
            std::iter::once(vec![]).chain(uneven).any(|layers| {
                configuration.layers = layers;
                self.bench.taken(&configuration).is_ok_and(|(run, split)| self.bench.fits(&run, &split))
            })
        };
        layouts.into_iter().flat_map(|layout| schedules.runs(layout)).any(|(layout, schedule)| fits(layout, schedule))
    }
}
