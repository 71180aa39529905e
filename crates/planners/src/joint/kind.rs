//! Schedules to search, their microbatches in flight, and the plans they can run.
//!
//! Microbatches in flight are counted as in the simulator, for equal replicas. With `w` stages behind, of `S`, and `M`
//! microbatches per replica:
//!
//! ```text
//! 1F1B          w + 1
//! GPipe         M
//! ZB-H1         S: what 1F1B's first stage has, on all stages
//! interleaved   (2 w + (v − 1) G + 1) / v, in v-ths of the stage's activations
//! ZB-V          S, in halves
//! interleaved ZB  (S + (v − 1) G) / v, on all stages
//! ```
//!
//! and never more than `M`. `G` is the number of microbatches in a round ([`interleaved_round`]): `S` if that divides
//! `M`. Interleaved schedules and ZB-V run chains only. Interleaved ones need equal rounds, and ZB-V needs at least
//! `2 S − 1` microbatches, as its published phases do.

use plantui_core::plan::{Execution, Schedule, interleaved_round};

/// Numbers of parts per device that are tried if the number is free. Each is a search of its own.
pub(super) const PARTS: std::ops::RangeInclusive<u32> = 2..=8;

/// Schedules that are searched, 1F1B first.
pub(super) const SEARCHED: [Schedule; 6] = [
    Schedule::OneForwardOneBackward,
    Schedule::ZeroBubbleH1,
    Schedule::Interleaved,
    Schedule::ZeroBubbleV,
    Schedule::InterleavedZeroBubble,
    Schedule::GPipe,
];

/// Schedule with its number of parts of the model per device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScheduleKind {
    pub(super) schedule: Schedule,
    pub(super) parts: u32,
}

impl ScheduleKind {
    pub(super) const ONE: ScheduleKind = ScheduleKind { schedule: Schedule::OneForwardOneBackward, parts: 1 };

    pub(super) fn execution(self) -> Execution {
        Execution { virtual_stages: self.parts, ..self.schedule.into() }
    }

    /// Number of microbatches in flight on a stage with `behind` stages behind it.
    pub(super) fn in_flight(self, stages: usize, behind: usize, microbatches: u32) -> f64 {
        let (s, w, m, v) = (stages as f64, behind as f64, f64::from(microbatches), f64::from(self.parts));
        let round = || f64::from(interleaved_round(stages as u32, microbatches).unwrap_or(microbatches));
        let held = match self.schedule {
            Schedule::GPipe => m,
            Schedule::ZeroBubbleH1 | Schedule::ZeroBubbleV => s,
            Schedule::InterleavedZeroBubble => (s + (v - 1.0) * round()) / v,
            Schedule::Interleaved => (2.0 * w + (v - 1.0) * round() + 1.0) / v,
            _ => w + 1.0,
        };
        held.min(m)
    }

    /// True if the schedule runs these numbers of stages and microbatches per replica.
    pub(super) fn runs(self, stages: usize, microbatches: u32) -> bool {
        let m = microbatches as usize;
        match self.schedule {
            own if own.has_free_parts() => stages > 1 && interleaved_round(stages as u32, microbatches).is_some(),
            Schedule::ZeroBubbleV => stages > 1 && m + 1 >= 2 * stages,
            _ => true,
        }
    }
}

/// Requested schedule and number of parts; `None` leaves them free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScheduleRequest {
    pub(super) schedule: Option<Schedule>,
    pub(super) parts: Option<u32>,
}

impl ScheduleRequest {
    /// Kinds to search, 1F1B first if included, restricted to schedules for which `runs` is true (an engine's
    /// schedules).
    pub(super) fn kinds(self, runs: &dyn Fn(Schedule) -> bool) -> Vec<ScheduleKind> {
        let asked = |schedule: &Schedule| self.schedule.is_none_or(|asked| asked == *schedule) && runs(*schedule);
        let kinds = |schedule: Schedule| -> Vec<ScheduleKind> {
            match self.parts {
                _ if !schedule.has_free_parts() => vec![ScheduleKind { schedule, parts: schedule.least_parts() }],
                None => PARTS.map(|parts| ScheduleKind { schedule, parts }).collect(),
                Some(parts) => vec![ScheduleKind { schedule, parts }],
            }
        };
        SEARCHED.into_iter().filter(asked).flat_map(kinds).collect()
    }

    /// Note that a requested number of parts is ignored, since the schedule has a fixed one.
    pub(super) fn ignored_parts(self) -> Option<String> {
        let schedule = self.schedule.filter(|schedule| self.parts.is_some() && !schedule.has_free_parts())?;
        let parts = plantui_core::units::counted(schedule.least_parts() as usize, "part");
        Some(format!(
            "virtual_stages changes nothing here: {} has {parts} of the model on each device; only \
            schedule=interleaved and schedule=interleaved-zb have a choice",
            schedule.name()
        ))
    }

    /// Requested schedules that support any stages, with different replicas and in any order.
    pub(super) fn of_any_stages(self) -> Vec<Schedule> {
        let any = |kind: &ScheduleKind| kind.parts == 1;
        self.kinds(&|_| true).into_iter().filter(any).map(|kind| kind.schedule).collect()
    }

    /// True if a requested schedule puts several parts of the model on a device.
    pub(super) fn has_parts(self) -> bool {
        self.kinds(&|_| true).iter().any(|kind| kind.parts > 1)
    }

    /// True if a requested schedule delays the weights' part of the backward.
    pub(super) fn splits_backward(self) -> bool {
        self.kinds(&|_| true).iter().any(|kind| kind.schedule.splits_backward())
    }

    /// Description of the plans that a proof covers, with the names of the schedules that were searched. `runs` is as for
    /// [`ScheduleRequest::kinds`].
    pub(super) fn among(self, plans: Plans, runs: &dyn Fn(Schedule) -> bool) -> String {
        let mut names: Vec<&str> = self.kinds(runs).iter().map(|kind| kind.schedule.name()).collect();
        names.dedup();
        // The number of virtual stages, unless an option pins it.
        let parts = match self.parts {
            None if self.kinds(runs).iter().any(|kind| kind.schedule.has_free_parts()) => {
                format!(
                    ", with {} to {} virtual stages where the schedule interleaves them",
                    PARTS.start(),
                    PARTS.end()
                )
            }
            _ => String::new(),
        };
        format!("{} under {}{parts}", plans.name(), any_of(&names))
    }
}

/// Names in a sentence: `1F1B, GPipe or ZB-V`.
pub(super) fn any_of(names: &[&str]) -> String {
    match names {
        [first @ .., before, last] if !first.is_empty() => format!("{}, {before} or {last}", first.join(", ")),
        names => names.join(" or "),
    }
}

/// Sets of plans that a proof covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plans {
    OfEngine,
    /// No layer repeats, and the network branches.
    OneRowOfEngine,
    Thinned,
    TwoModes,
    /// The network branches, so other orders of its nodes allow other cuts.
    OneRow,
    OneRowTwoModes,
    All,
    /// Stages may differ in degree and replicas.
    Anywhere,
}

impl Plans {
    fn name(self) -> &'static str {
        match self {
            Plans::OfEngine => "pipelines that the engine runs unchanged",
            Plans::OneRowOfEngine => "linear pipelines that the engine runs unchanged",
            Plans::Thinned => "linear pipelines with uniform TP and DP, cut at a few hundred places",
            Plans::TwoModes => "pipelines with uniform TP and DP, two modes per layer",
            Plans::OneRow => "linear pipelines with uniform TP and DP",
            Plans::OneRowTwoModes => "linear pipelines with uniform TP and DP, two modes per layer",
            Plans::All => "pipelines with uniform TP and DP",
            Plans::Anywhere => "pipelines with stages of any degrees",
        }
    }
}
