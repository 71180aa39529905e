//! Lost time of a simulated iteration: simulations that each remove one possible cause.
//!
//! 1. Without transfers: the difference is their cost, waiting for links and devices included.
//! 2. Without all-reduces and optimizer steps.
//! 3. Without warm-up and drain: the steady-state time of a batch, from the difference of two long runs.
//! 4. With even replicas: one for each stage, faster by the number of replicas. If stages differ in their number of
//!    replicas, microbatches return out of order, and the few that 1F1B keeps in flight run out.
//!
//! The rest is the compute of the slowest stage, and the waits of the schedule itself. Shares refer to the whole
//! iteration. The runs have no waits for links, so the simulator can skip through long ones. A batch with too many
//! operations is measured on a shorter one of the same period; if none is short enough, there is no result. At most
//! seven runs of `MOST_OPERATIONS` each.

use crate::run::Simulation;
use plantui_core::{
    cluster::Limits,
    family,
    plan::Plan,
    simulate::{LinkModel, Pipeline, ReplicaRoutes, Schedule, Setup, Timeline, length_unless},
    units,
    workload::Workload,
};

/// Most operations of a run.
const MOST_OPERATIONS: u64 = 1 << 21;

/// Factor by which a run may exceed this if many replicas have microbatches in flight.
const MOST_LONG: u64 = 4;

/// Smaller shares are not reported: in percent with one decimal they show as zero.
const SMALLEST_SHARE: f64 = 5e-4;
/// Smaller differences between the parts of two iterations, relative to an iteration, are not reported.
const DIFFERS: f64 = 1e-3;

/// Parts of a simulated iteration; seconds per iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Losses {
    /// Whole iteration.
    pub iteration_s: f64,
    /// Compute of one replica of the slowest stage.
    pub compute_s: f64,
    /// Transfers, and the waits for them.
    pub transfers_s: f64,
    /// All-reduces and optimizer steps.
    pub reduce_s: f64,
    /// Optimizer step, a part of `reduce_s` in which devices are busy.
    pub optimizer_s: f64,
    /// Warm-up and drain.
    pub fill_s: f64,
    /// Different numbers of replicas.
    pub uneven_s: f64,
    /// The rest: the schedule's own waits.
    pub schedule_s: f64,
}

impl Losses {
    /// Losses of a simulation.
    pub fn of_simulation(simulation: &Simulation) -> Option<Self> {
        Losses::of(&simulation.pipeline, simulation.schedule, &simulation.timeline, &|| false)
    }

    /// Losses of a simulated iteration. `None` if the plan runs once, nothing was simulated, the batch is too long, or
    /// `stopped` returns true.
    pub fn of(
        pipeline: &Pipeline,
        schedule: Schedule,
        timeline: &Timeline,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Losses> {
        let simulated = timeline.iteration_s > 0.0 && pipeline.microbatches > 0;
        if !simulated || pipeline.runs_once() || pipeline.stages.is_empty() {
            return None;
        }
        let schedule = pipeline.schedule(schedule);
        let runs = BatchRuns::new(pipeline, schedule, stopped)?;
        Losses::of_batch(pipeline, schedule, timeline.iteration_s, &runs)
    }

    /// Losses of a plan measured by iteration time, simulated as in that measure.
    pub fn of_plan(workload: &Workload, limits: &Limits, plan: &Plan, stopped: &dyn Fn() -> bool) -> Option<Losses> {
        let setup = Setup::default().of(plan);
        let mut pipeline = family::pipeline(workload, limits, plan, &setup.settings);
        pipeline.machines.clear();
        let pipeline = pipeline.of_one_replica();
        if pipeline.microbatches == 0 || pipeline.runs_once() || pipeline.stages.is_empty() {
            return None;
        }
        let schedule = pipeline.schedule(setup.schedule);
        let runs = BatchRuns::new(&pipeline, schedule, stopped)?;
        let iteration_s = length_unless(&pipeline, schedule, stopped).filter(|&seconds| seconds > 0.0)?;
        Losses::of_batch(&pipeline, schedule, iteration_s, &runs)
    }

    fn of_batch(pipeline: &Pipeline, schedule: Schedule, iteration_s: f64, runs: &BatchRuns<'_>) -> Option<Losses> {
        let mut bare = without_transfers(pipeline);
        let connected_s = runs.batch_s(&bare)?;
        let backward = schedule.has_backward();
        let optimizer_s = if backward { pipeline.settings.optimizer_step_s.max(0.0) } else { 0.0 };
        bare.settings.optimizer_step_s = 0.0;
        bare.stages.iter_mut().for_each(|stage| stage.all_reduce_s = 0.0);
        let reduced_s = runs.batch_s(&bare)?;
        let steady_s = runs.steady_s(&bare)?;
        let even_s = match even(&bare) {
            Some(even) => runs.steady_s(&even)?,
            None => steady_s,
        };
        let compute_s = slowest_s(pipeline, schedule);
        Some(Losses {
            iteration_s,
            compute_s,
            transfers_s: iteration_s - connected_s,
            reduce_s: connected_s - reduced_s,
            optimizer_s,
            fill_s: reduced_s - steady_s,
            uneven_s: steady_s - even_s,
            schedule_s: even_s - compute_s,
        })
    }

    /// All parts in seconds; they add up to the iteration.
    pub fn parts(&self) -> [(&'static str, f64); 6] {
        [
            ("transfers", self.transfers_s),
            ("warm-up and drain", self.fill_s),
            ("uneven replicas", self.uneven_s),
            ("all-reduce", self.reduce_s),
            ("waits in the schedule", self.schedule_s),
            ("compute of the slowest stage", self.compute_s),
        ]
    }

    /// Excess of this iteration's parts over another's in seconds, the largest first. They add up to the whole
    /// difference, except for omitted negligible parts.
    pub fn beyond(&self, other: &Losses) -> Vec<(&'static str, f64)> {
        let parts = self.parts().into_iter().zip(other.parts());
        let mut parts: Vec<(&'static str, f64)> = parts.map(|((name, own), (_, other))| (name, own - other)).collect();
        parts.retain(|(_, seconds)| seconds.abs() >= DIFFERS * other.iteration_s);
        parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        parts
    }

    /// Names and shares of the lost parts, 0 to 1, the largest first; negligible parts are omitted.
    pub fn shares(&self) -> Vec<(&'static str, f64)> {
        let [lost @ .., _] = self.parts();
        noticeable(lost.map(|(name, seconds)| (name, seconds / self.iteration_s)))
    }

    /// Causes of idle time and their fractions of the iteration on the mean device, the largest first; negligible
    /// parts are omitted. `idle` is the idle fraction of the same simulation, to which all parts add up. The slowest
    /// stage idles in the bubble (warm-up and drain), transfers, all-reduces and waits. The additional idle time of the
    /// other stages is imbalance.
    pub fn causes_of_idle(&self, idle: f64) -> Vec<(&'static str, f64)> {
        let slowest_s = self.iteration_s - self.compute_s - self.optimizer_s;
        noticeable([
            ("bubble", self.fill_s / self.iteration_s),
            ("imbalance", idle - slowest_s / self.iteration_s),
            ("transfers", self.transfers_s / self.iteration_s),
            ("all-reduce", (self.reduce_s - self.optimizer_s) / self.iteration_s),
            ("uneven replicas", self.uneven_s / self.iteration_s),
            ("waits in the schedule", self.schedule_s / self.iteration_s),
        ])
    }

    /// The same in words: `imbalance 9.6%, bubble 2.5%`; empty without idle time.
    pub fn idle_in_words(&self, idle: f64) -> String {
        let causes = self.causes_of_idle(idle).into_iter();
        causes.map(|(name, share)| format!("{name} {}", units::percent(share))).collect::<Vec<_>>().join(", ")
    }
}

/// Parts that are not negligible, the largest first.
fn noticeable<const N: usize>(parts: [(&'static str, f64); N]) -> Vec<(&'static str, f64)> {
    let mut parts: Vec<(&'static str, f64)> = parts.into_iter().filter(|(_, share)| *share >= SMALLEST_SHARE).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

/// Differences in words: `uneven replicas +3.62 s, transfers -120.0 ms`; empty without differences.
pub fn differences_text(parts: &[(&'static str, f64)]) -> String {
    let sign = |seconds: f64| if seconds < 0.0 { '-' } else { '+' };
    let told =
        parts.iter().map(|&(name, seconds)| format!("{name} {}{}", sign(seconds), units::seconds(seconds.abs())));
    told.collect::<Vec<_>>().join(", ")
}

/// The same with transfers that take no time, but still prevent an early start of a stage.
fn without_transfers(pipeline: &Pipeline) -> Pipeline {
    let mut bare = Pipeline { notes: vec![], ..pipeline.clone() };
    bare.transfers.iter_mut().for_each(|transfer| transfer.seconds = 0.0);
    bare.wires = ReplicaRoutes::default();
    // No transfer is left to wait for; without overlap gradients are reduced at once.
    bare.settings.links = LinkModel::Private;
    if !bare.settings.overlap {
        bare.settings.buckets = 1;
    }
    bare.settings.overlap = true;
    bare
}

/// The same with one replica of each stage, faster by the number of replicas; `None` if the numbers are already equal.
fn even(pipeline: &Pipeline) -> Option<Pipeline> {
    let first = pipeline.stages[0].replicas.max(1);
    if pipeline.stages.iter().all(|stage| stage.replicas.max(1) == first) {
        return None;
    }
    let mut even = pipeline.clone();
    for stage in &mut even.stages {
        let replicas = f64::from(stage.replicas.max(1));
        stage.forward_s /= replicas;
        stage.backward_s /= replicas;
        stage.recompute_s /= replicas;
        stage.replicas = 1;
    }
    Some(even)
}

/// Compute of one replica of the slowest stage per iteration, seconds.
fn slowest_s(pipeline: &Pipeline, schedule: Schedule) -> f64 {
    let backward = f64::from(u8::from(schedule.has_backward()));
    let each = pipeline.stages.iter().enumerate().map(|(index, stage)| {
        let one = stage.forward_s.max(0.0) + backward * stage.backward_s.max(0.0);
        f64::from(pipeline.microbatches) * one / f64::from(stage.replicas.max(1)) - pipeline.saved_s(schedule, index)
    });
    each.fold(0.0, f64::max)
}

/// Measures batches of a pipeline in runs that are short enough.
struct BatchRuns<'a> {
    schedule: Schedule,
    stopped: &'a dyn Fn() -> bool,
    microbatches: u32,
    /// Microbatches of a run: those of the batch, or fewer if they are too many, or more if they do not fill the
    /// pipeline.
    run: u32,
}

impl<'a> BatchRuns<'a> {
    fn new(pipeline: &Pipeline, schedule: Schedule, stopped: &'a dyn Fn() -> bool) -> Option<Self> {
        let replicas = || pipeline.stages.iter().map(|stage| u64::from(stage.replicas.max(1)));
        let parts = u64::from(pipeline.virtual_stages(schedule));
        let operations = 2 * parts * (pipeline.stages.len() + pipeline.transfers.len()) as u64;
        let most = MOST_OPERATIONS / (2 * operations);
        // Twice the most in flight, so the second half of a doubled run is in steady state.
        let least = 2 * parts * replicas().sum::<u64>();
        let microbatches = u64::from(pipeline.microbatches);
        let run = if microbatches <= most.max(least) {
            microbatches * least.div_ceil(microbatches)
        } else {
            // A multiple of the period: replicas of a stage get equal numbers of microbatches, and parts complete their
            // rounds.
            let all = replicas().try_fold(1, |all: u64, own| (all <= most).then(|| all / gcd(all, own) * own))?;
            let period = if parts > 1 { all * pipeline.stages.len() as u64 } else { all };
            Some(most / period * period).filter(|run| *run >= least)?
        };
        let fits = 2 * run * operations <= MOST_LONG * MOST_OPERATIONS;
        let run = u32::try_from(run).ok().filter(|run| fits && run.checked_mul(2).is_some())?;
        Some(BatchRuns { schedule, stopped, microbatches: pipeline.microbatches, run })
    }

    fn length_s(&self, pipeline: &Pipeline, microbatches: u32) -> Option<f64> {
        // A schedule of a file has its own number of microbatches.
        let longer = Pipeline { microbatches, ..pipeline.clone() };
        longer.refusal(self.schedule).is_none().then(|| length_unless(&longer, self.schedule, self.stopped)).flatten()
    }

    /// Steady-state time of the batch, without warm-up and drain.
    fn steady_s(&self, pipeline: &Pipeline) -> Option<f64> {
        let more_s = self.length_s(pipeline, 2 * self.run)? - self.length_s(pipeline, self.run)?;
        Some(more_s / f64::from(self.run) * f64::from(self.microbatches))
    }

    /// Time of the batch.
    fn batch_s(&self, pipeline: &Pipeline) -> Option<f64> {
        if self.run >= self.microbatches {
            return self.length_s(pipeline, self.microbatches);
        }
        let part = f64::from(self.run) / f64::from(self.microbatches);
        Some(self.length_s(pipeline, self.run)? + self.steady_s(pipeline)? * (1.0 - part))
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::simulate::{PipelineStage, SimulatorSettings, Transfer, simulate};

    fn pipeline(replicas: &[u32], transfer_s: f64, microbatches: u32) -> Pipeline {
        let stage = |&replicas: &u32| PipelineStage {
            forward_s: f64::from(replicas),
            backward_s: 2.0 * f64::from(replicas),
            replicas,
            ..PipelineStage::default()
        };
        let transfer = |from| Transfer { from, to: from + 1, seconds: transfer_s, bytes: 1.0 };
        Pipeline {
            stages: replicas.iter().map(stage).collect(),
            transfers: (0..replicas.len() - 1).map(transfer).collect(),
            microbatches,
            ..Pipeline::default()
        }
    }

    fn losses(pipeline: &Pipeline) -> Losses {
        let schedule = Schedule::OneForwardOneBackward;
        Losses::of(pipeline, schedule, &simulate(pipeline, schedule), &|| false).unwrap()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn every_second_of_a_batch_is_accounted_for() {
        for (replicas, transfer_s) in [(&[1, 1, 1][..], 0.0), (&[3, 2, 4, 1], 0.7), (&[2, 2], 0.1), (&[5], 0.0)] {
            let found = losses(&pipeline(replicas, transfer_s, 120));
            let Losses { iteration_s, compute_s, transfers_s, reduce_s, fill_s, uneven_s, schedule_s, .. } = found;
            let sum = compute_s + transfers_s + reduce_s + fill_s + uneven_s + schedule_s;
            assert!(near(sum, iteration_s), "{found:?}");
            assert!(
                [transfers_s, reduce_s, fill_s, uneven_s, schedule_s].iter().all(|part| *part > -1e-6),
                "{found:?}"
            );
            assert!(near(compute_s, 360.0) && near(schedule_s, 0.0), "{found:?}");
        }
    }

    #[test]
    fn causes_of_idle_time_add_up_to_it() {
        for (slowest, step_s) in [(2.0, 0.0), (5.0, 0.0), (5.0, 4.0)] {
            let mut pipeline = pipeline(&[1, 1, 1], 0.3, 60);
            pipeline.stages[1].backward_s = slowest;
            pipeline.stages[2].all_reduce_s = 3.0;
            pipeline.settings.optimizer_step_s = step_s;
            let timeline = simulate(&pipeline, Schedule::OneForwardOneBackward);
            let causes = losses(&pipeline).causes_of_idle(timeline.idle);
            let sum: f64 = causes.iter().map(|(_, share)| share).sum();
            assert!((sum - timeline.idle).abs() < 2e-3, "{causes:?} of {}", timeline.idle);
            assert_eq!(causes.iter().any(|(name, _)| *name == "imbalance"), slowest > 2.0, "{causes:?}");
        }
    }

    #[test]
    fn each_cause_is_found_where_it_is_the_only_one() {
        // Three equal stages: warm-up and drain of two microbatches, nothing else.
        let fill = losses(&pipeline(&[1, 1, 1], 0.0, 10));
        assert!(near(fill.fill_s, 6.0) && near(fill.transfers_s, 0.0) && near(fill.uneven_s, 0.0), "{fill:?}");
        assert_eq!(fill.shares()[0].0, "warm-up and drain");
        assert_eq!(fill.idle_in_words(1.0 / 6.0), "bubble 16.7%");
        // A single stage loses only its all-reduce.
        let mut one = pipeline(&[2], 0.0, 10);
        one.stages[0].all_reduce_s = 5.0;
        one.settings = SimulatorSettings { optimizer_step_s: 1.0, ..SimulatorSettings::default() };
        let reduced = losses(&one);
        assert!(near(reduced.reduce_s, 6.0) && near(reduced.fill_s, 0.0), "{reduced:?}");
        // Under 1F1B, transfers as long as the work cause waits.
        let waiting = losses(&pipeline(&[1, 1, 1], 3.0, 60));
        assert!(waiting.transfers_s > waiting.fill_s && near(waiting.uneven_s, 0.0), "{waiting:?}");
        // Uneven replicas lose time in every round, even with free transfers.
        let uneven = [(&[8, 15, 4, 12, 5][..], 9600), (&[3, 2], 9600)].map(|(d, m)| losses(&pipeline(d, 0.0, m)));
        assert!(uneven[0].uneven_s > 10.0 * uneven[0].fill_s && near(uneven[0].transfers_s, 0.0), "{uneven:?}");
    }

    #[test]
    fn long_batches_are_measured_on_short_ones_and_some_not_at_all() {
        let short = losses(&pipeline(&[3, 2], 0.5, 6 * 20_000));
        let long = losses(&pipeline(&[3, 2], 0.5, 6 * 500_000));
        for (a, b) in short.shares().iter().zip(long.shares()) {
            assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-4, "{short:?} {long:?}");
        }
        let schedule = Schedule::OneForwardOneBackward;
        let timeline = Timeline { iteration_s: 1.0, ..Timeline::default() };
        let endless = pipeline(&[9973, 9967, 9949], 0.5, u32::MAX / 2);
        assert_eq!(Losses::of(&endless, schedule, &timeline, &|| false), None);
        // A batch that was not simulated has no losses.
        assert_eq!(Losses::of(&endless, schedule, &Timeline::default(), &|| false), None);
    }

    #[test]
    fn links_that_are_waited_for_count_as_transfers() {
        let mut shared = pipeline(&[2, 2, 2], 2.0, 60);
        let private = losses(&shared);
        shared.settings.links = LinkModel::Exclusive;
        let exclusive = losses(&shared);
        assert!(exclusive.transfers_s > private.transfers_s, "{private:?} {exclusive:?}");
        assert!(near(exclusive.fill_s, private.fill_s) && near(exclusive.uneven_s, private.uneven_s));
    }
}
