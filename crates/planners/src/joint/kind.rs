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
//! ```
//!
//! and never more than `M`. `G` is the number of microbatches in a round ([`interleaved_round`]): `S` if that divides
//! `M`. Interleaved schedules and ZB-V run chains only. Interleaved ones need equal rounds, and ZB-V needs at least
//! `2 S − 1` microbatches, as its published phases do.

use plantui_core::plan::{Execution, Schedule, interleaved_round};

/// Numbers of parts per device that are tried if the number is free. Each is a search of its own.
pub(super) const PARTS: std::ops::RangeInclusive<u32> = 2..=8;

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
            Schedule::Interleaved => (2.0 * w + (v - 1.0) * round() + 1.0) / v,
            _ => w + 1.0,
        };
        held.min(m)
    }

    /// True if the schedule runs these numbers of stages and microbatches per replica.
    pub(super) fn runs(self, stages: usize, microbatches: u32) -> bool {
        let m = microbatches as usize;
        match self.schedule {
            Schedule::Interleaved => stages > 1 && interleaved_round(stages as u32, microbatches).is_some(),
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
        const ORDER: [Schedule; 5] = [
            Schedule::OneForwardOneBackward,
            Schedule::ZeroBubbleH1,
            Schedule::Interleaved,
            Schedule::ZeroBubbleV,
            Schedule::GPipe,
        ];
        let asked = |schedule: &Schedule| self.schedule.is_none_or(|asked| asked == *schedule) && runs(*schedule);
        let kinds = |schedule: Schedule| -> Vec<ScheduleKind> {
            match (schedule, self.parts) {
                (Schedule::Interleaved, None) => PARTS.map(|parts| ScheduleKind { schedule, parts }).collect(),
                (Schedule::Interleaved, Some(parts)) => vec![ScheduleKind { schedule, parts }],
                _ => vec![ScheduleKind { schedule, parts: schedule.least_parts() }],
            }
        };
        ORDER.into_iter().filter(asked).flat_map(kinds).collect()
    }

    /// Note that a requested number of parts is ignored, since the schedule has a fixed one.
    pub(super) fn ignored_parts(self) -> Option<String> {
        let schedule = self.schedule.filter(|schedule| self.parts.is_some() && *schedule != Schedule::Interleaved)?;
        let parts = plantui_core::units::counted(schedule.least_parts() as usize, "part");
        Some(format!(
            "virtual_stages changes nothing here: {} has {parts} of the model on each device; only \
            schedule=interleaved has a choice",
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

    /// Description of the plans that a proof covers, including the schedule.
    pub(super) fn among(self, plans: Plans) -> &'static str {
        macro_rules! with_schedule {
            ($plans:literal) => {
                match self.schedule {
                    None => concat!($plans, ", any schedule"),
                    Some(Schedule::GPipe) => concat!($plans, ", GPipe"),
                    Some(Schedule::Interleaved) => concat!($plans, ", interleaved 1F1B"),
                    Some(Schedule::ZeroBubbleH1) => concat!($plans, ", ZB-H1"),
                    Some(Schedule::ZeroBubbleV) => concat!($plans, ", ZB-V"),
                    Some(_) => concat!($plans, ", 1F1B"),
                }
            };
        }
        match plans {
            Plans::OfEngine => with_schedule!("pipelines that the engine runs unchanged"),
            Plans::OneRowOfEngine => {
                with_schedule!("linear pipelines that the engine runs unchanged")
            }
            Plans::Thinned => with_schedule!("linear pipelines with uniform TP and DP, cut at a few hundred places"),
            Plans::TwoModes => with_schedule!("pipelines with uniform TP and DP, two modes per layer"),
            Plans::OneRow => {
                with_schedule!("linear pipelines with uniform TP and DP")
            }
            Plans::OneRowTwoModes => {
                with_schedule!("linear pipelines with uniform TP and DP, two modes per layer")
            }
            Plans::All => with_schedule!("pipelines with uniform TP and DP"),
            Plans::Anywhere => with_schedule!("pipelines with stages of any degrees"),
        }
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
