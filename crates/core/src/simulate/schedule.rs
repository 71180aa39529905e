//! Schedules that a pipeline can run, and the assumptions of each.

use super::{pipeline::Pipeline, settings::LinkModel};
use crate::{
    plan::{Schedule, interleaved_round},
    schedule::{ExplicitSchedule, MOST_ACTIONS, has_copies},
    units,
};

/// Maximum number of simulated operations and transfers if each waits for links or devices. They take some seconds.
const MOST_CONTENDED: u64 = 1 << 26;

impl Pipeline {
    /// Schedule that is simulated if `wanted` is requested. A single sample has no choice of schedule. If the pipeline
    /// cannot run a schedule ([`Pipeline::refusal`]), it runs 1F1B.
    pub fn schedule(&self, wanted: Schedule) -> Schedule {
        let own = self.interleaved && wanted == Schedule::OneForwardOneBackward;
        let wanted = if own { Schedule::Interleaved } else { wanted };
        if self.single_sample.is_some() {
            Schedule::SingleSample
        } else if self.refusal(wanted).is_some() {
            Schedule::OneForwardOneBackward
        } else {
            wanted
        }
    }

    /// Schedules that the pipeline can run, in display order.
    pub fn playable(&self) -> Vec<Schedule> {
        Schedule::ALL.into_iter().filter(|&schedule| self.refusal(schedule).is_none()).collect()
    }

    /// True if the plan runs once, in an order that no schedule changes.
    pub fn runs_once(&self) -> bool {
        self.single_sample.is_some() || !self.steps.is_empty()
    }

    /// Assumptions of a schedule under the settings, and the reasons why other schedules cannot run.
    pub fn schedule_notes(&self, schedule: Schedule) -> Vec<String> {
        let settings = &self.settings;
        let mut notes = vec![];
        if self.runs_once() {
            return notes;
        }
        match schedule {
            Schedule::Interleaved => notes.push(format!(
                "each stage is assumed to have {} equal virtual stages, assigned round robin; the last stage sends \
                to the first as much as over the most expensive boundary",
                self.virtual_stages(schedule)
            )),
            Schedule::DualPipe => notes.push(
                "every device holds two stages of the model, one of each copy; the sum of the copies' gradients is not \
                simulated"
                    .into(),
            ),
            Schedule::InterleavedZeroBubble | Schedule::LoopedBfs => notes.push(format!(
                "each stage is assumed to have {} equal virtual stages, assigned round robin",
                self.virtual_stages(schedule)
            )),
            Schedule::Seq1F1B => notes.push(format!(
                "each sequence is cut into {} slices that take equal shares of the time",
                settings.sequence_slices
            )),
            Schedule::ZeroBubbleV | Schedule::DualPipeV => notes.push(
                "each stage is assumed to have two equal virtual stages, the second half of the model placed from \
                the last stage back to the first"
                    .into(),
            ),
            Schedule::ZeroBubble2p => notes.push(
                "the time is of one iteration alone; without a barrier at the optimizer step, the next one begins before \
                the last rank has ended"
                    .into(),
            ),
            Schedule::Inference => notes.push("forward passes only; the fixed memory is that of training".into()),
            _ => {}
        }
        let told = self.stages.iter().all(|stage| stage.weight_gradient_s.is_some());
        if schedule.splits_backward() && told {
            notes.push("weight gradients are deferred; they take the time of the model's own products".into());
        } else if schedule.splits_backward() {
            let share = units::percent(settings.weight_gradient_share);
            notes.push(format!("weight gradients are {share} of the backward pass without recomputation"));
        }
        match settings.links {
            LinkModel::Private => {}
            LinkModel::Exclusive => notes.push("a link between two stages carries one transfer at a time".into()),
            LinkModel::Shared => notes.push("transfers on a link between two stages share it fairly".into()),
        }
        if settings.links != LinkModel::Private && !self.machines.is_empty() {
            notes.push("between machines their network ports have this limit, in each direction".into());
        }
        if settings.buckets > 1 {
            notes.push(if settings.overlap {
                format!("gradients are all-reduced in {} buckets, each as soon as it is complete", settings.buckets)
            } else {
                "without overlap all gradients are reduced after the last backward pass".into()
            });
        }
        // The others are named where they are requested.
        let refused = Schedule::OF_PLANS.into_iter().filter_map(|other| self.refusal(other));
        let mut refused: Vec<String> = refused.map(|reason| format!("not simulated: {reason}")).collect();
        refused.dedup();
        notes.extend(refused);
        notes
    }

    /// Number of model parts on each device under a schedule.
    pub fn virtual_stages(&self, schedule: Schedule) -> u32 {
        match schedule {
            Schedule::Interleaved | Schedule::InterleavedZeroBubble | Schedule::LoopedBfs => {
                self.settings.virtual_stages.max(1)
            }
            Schedule::Combined if self.stages.len() > 1 => self.settings.virtual_stages.max(1),
            Schedule::ZeroBubbleV | Schedule::DualPipeV => 2,
            _ => 1,
        }
    }

    /// Reason why the pipeline cannot run a schedule, in one sentence; `None` if it can.
    pub fn refusal(&self, schedule: Schedule) -> Option<String> {
        self.refused(schedule).map(|(reason, _)| reason)
    }

    /// Repair that lets the pipeline run a refused schedule, in a few words. `None` if it can run, or if there is no
    /// repair.
    pub fn repair(&self, schedule: Schedule) -> Option<String> {
        self.refused(schedule).and_then(|(_, repair)| repair)
    }

    /// Reason why a schedule cannot be simulated, with its repair.
    fn refused(&self, schedule: Schedule) -> Option<(String, Option<String>)> {
        let name = schedule.name();
        if self.runs_once() {
            let first = self.single_sample.is_none() && schedule == Schedule::ALL[0];
            let reason = format!("{name} needs several microbatches; this plan runs one sample");
            let repair = self.single_sample.as_ref().map(|_| "use a planner for throughput".to_string());
            return (!first).then_some((reason, repair));
        }
        if let Some((reason, repair)) = self.no_parts(schedule) {
            return Some((reason, Some(repair)));
        }
        if self.on_kinds && schedule == Schedule::DualPipe {
            let reason = format!("{name} places every stage on two devices, and here they are of several kinds");
            return Some((reason, Some("choose another schedule".into())));
        }
        if self.on_kinds && self.virtual_stages(schedule) > 1 {
            let reason = format!("{name} sends more often, which is not modelled between several kinds of devices");
            return Some((reason, Some("choose a schedule without virtual stages".into())));
        }
        let sends: u64 = self.sends().count() as u64 * u64::from(self.virtual_stages(schedule));
        let work = self.stages.len() as u64 * u64::from(self.virtual_stages(schedule));
        let operations = 3 * u64::from(self.microbatches) * (sends + work);
        if self.settings.contended() && operations > MOST_CONTENDED {
            let most = MOST_CONTENDED / (operations / u64::from(self.microbatches)).max(1);
            return Some((
                format!(
                    "with transfers that wait for links or devices the simulator takes at most {most} microbatches \
                    here, not {}",
                    self.microbatches
                ),
                Some("private links with overlap have no such limit".into()),
            ));
        }
        None
    }

    /// Reason why a schedule of a file is not one of this pipeline, with its repair.
    fn not_of_file(&self, given: &ExplicitSchedule, (count, replicas): (usize, u32)) -> Option<(String, String)> {
        let (ranks, microbatches) = (given.ranks.len(), given.microbatches());
        if ranks != count {
            let problem = format!("the schedule has {ranks} ranks, and the plan {count} stages");
            return Some((problem, format!("plan with {ranks} stages, or write a schedule of {count} ranks")));
        }
        let own = self.microbatches / replicas;
        if !self.microbatches.is_multiple_of(replicas) || own != microbatches {
            let problem = format!("the schedule has {microbatches} microbatches, and the plan {own} on each replica");
            return Some((problem, format!("give {} microbatches, or another schedule", microbatches * replicas)));
        }
        let chunks = given.chunks();
        if has_copies(&chunks) && given.stages() as usize != count {
            let stages = given.stages();
            let problem = format!("the schedule has copies of {stages} stages on {count} ranks");
            return Some((problem, "copies need as many stages as ranks".into()));
        }
        None
    }

    /// Reason why stages cannot be divided for a schedule that needs it, with its repair.
    fn no_parts(&self, schedule: Schedule) -> Option<(String, String)> {
        let name = schedule.name();
        let in_parts = schedule.least_parts() > 1;
        if !schedule.is_listed() && !in_parts && schedule != Schedule::ZeroBubble2p {
            return None;
        }
        let count = self.stages.len();
        if count < 2 {
            return Some((format!("{name} needs at least two stages"), "split the stage in two".into()));
        }
        if let Some(skip) = self.sends().find(|t| t.to != t.from + 1) {
            let (from, to) = (skip.from + 1, skip.to + 1);
            return Some((
                format!("{name} needs a chain of stages; stage {from} also sends to stage {to}"),
                format!("merge stages {} to {to}, or move the sender next to the receiver", from + 1),
            ));
        }
        let replicas = self.stages[0].replicas.max(1);
        if let Some(other) = self.stages.iter().position(|stage| stage.replicas.max(1) != replicas) {
            return Some((
                format!(
                    "{name} needs the same number of replicas in all stages; stage 1 has {replicas} and stage {} has \
                    {}",
                    other + 1,
                    self.stages[other].replicas.max(1)
                ),
                "give all stages the same data-parallel degree".into(),
            ));
        }
        let m = self.microbatches;
        if let Schedule::Given(given) = schedule {
            return self.not_of_file(&given.schedule(), (count, replicas));
        }
        let ranks = count as u32;
        if schedule.is_listed() {
            let each = match schedule {
                Schedule::Seq1F1B => self.settings.sequence_slices.max(1),
                _ => self.virtual_stages(schedule),
            };
            let passes = if schedule.splits_backward() { 3 } else { 2 };
            let of_one = u64::from(ranks) * u64::from(each) * passes;
            let most = MOST_ACTIONS / of_one.max(1) * u64::from(replicas);
            if u64::from(m) > most {
                let problem = format!("{name} is played from a list, here of at most {most} microbatches, not {m}");
                return Some((problem, format!("{most} microbatches or fewer work")));
            }
        }
        if schedule == Schedule::DualPipe && count % 2 == 1 {
            return Some((format!("{name} needs an even number of stages, not {count}"), "add a stage".into()));
        }
        let rounds = match schedule {
            Schedule::Combined => count > 1,
            other => other.has_free_parts(),
        };
        let whole = |own: u32| match schedule {
            Schedule::DualPipe => own >= 2 * ranks && own.is_multiple_of(2),
            Schedule::DualPipeV => own >= 2 * ranks,
            _ => !rounds || interleaved_round(ranks, own).is_some(),
        };
        let in_rounds = |m: u32| m.is_multiple_of(replicas) && whole(m / replicas);
        if !in_rounds(m) {
            let of = if replicas > 1 { format!(" with {replicas} replicas") } else { String::new() };
            let (below, above) = ((1..m).rev().find(|&m| in_rounds(m)), (m + 1..).find(|&m| in_rounds(m)));
            let either: Vec<String> = below.into_iter().chain(above).map(|m| m.to_string()).collect();
            return Some((
                match schedule {
                    Schedule::DualPipe | Schedule::DualPipeV => {
                        let even = if schedule == Schedule::DualPipe { "an even number of " } else { "" };
                        let least = 2 * count;
                        format!(
                            "{name} over {count} stages needs {even}at least {least} microbatches on each replica; there are {m} microbatches{of}"
                        )
                    }
                    _ if rounds => format!(
                        "{name} over {count} stages{of} cannot divide {m} microbatches into equal rounds of at least \
                        {count} per replica"
                    ),
                    _ => format!("{name}{of} cannot divide {m} microbatches equally"),
                },
                format!("{} microbatches work", either.join(" or ")),
            ));
        }
        None
    }
}
