//! Execution of a plan: schedule, virtual stages and warm-up rule.
//!
//! A plan made for a schedule carries it ([`super::Plan::execution`]). Check, simulation and export then use that
//! schedule unless another is requested.

use crate::schedule::GivenSchedule;
pub use crate::schedule::interleaved_round;
use crate::{source::LoadError, text::printable};

/// Order in which a stage processes its microbatches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// One forward, one backward, with synchronous flush (PipeDream-Flush, Megatron-LM's default).
    OneForwardOneBackward,
    /// All forwards, then all backwards (Huang et al., NeurIPS 2019).
    GPipe,
    /// 1F1B over several virtual stages on each device (Narayanan et al., SC 2021). A stage's work is divided into
    /// equal parts. The parts of the model are dealt to the stages round robin: part `j` of stage `s` is number
    /// `j · stages + s` of the whole.
    Interleaved,
    /// 1F1B with more forwards before the first backward, to hide transfers. Costs memory.
    EagerOneForwardOneBackward,
    /// Zero-bubble schedule H1: the backward of the weights is delayed and fills the bubble. It has no more
    /// microbatches in flight than the first stage of 1F1B (Qi et al., ICLR 2024).
    ZeroBubbleH1,
    /// Zero-bubble schedule V: two parts on each device, the second half of the model placed back from the last device
    /// to the first (Qi et al., NeurIPS 2024).
    ZeroBubbleV,
    /// Zero-bubble schedule with twice the warm-up of 1F1B, and twice its activations (ZB-H2; Qi et al., ICLR 2024).
    ZeroBubble2p,
    /// ZB-1p over several virtual stages on each device, as PyTorch's `ScheduleInterleavedZeroBubble`.
    InterleavedZeroBubble,
    /// All microbatches pass a virtual stage of a device before its next one (Lamy-Poirier, MLSys 2023).
    LoopedBfs,
    /// Interleaved 1F1B in which a forward and a backward pass of different microbatches run side by side
    /// (Megatron-Core's `overlap_moe_expert_parallel_comm`).
    Combined,
    /// Two copies of the model, passed in opposite directions (DeepSeek-AI, arXiv:2412.19437).
    DualPipe,
    /// The phases of DualPipe on one copy in the shape of a V (PyTorch's `ScheduleDualPipeV`).
    DualPipeV,
    /// 1F1B over slices of sequences (Sun et al., NAACL 2025).
    Seq1F1B,
    /// Schedule of a file or an edit. It cannot be requested by an id.
    Given(GivenSchedule),
    /// Forwards only, for serving.
    Inference,
    /// One sample alone, as a latency plan runs it. It follows from the plan and cannot be requested.
    SingleSample,
}

impl Schedule {
    /// Schedules that a plan's document may hold: those that the independent check of a plan knows.
    pub const OF_PLANS: [Schedule; 7] = [
        Schedule::OneForwardOneBackward,
        Schedule::GPipe,
        Schedule::Interleaved,
        Schedule::EagerOneForwardOneBackward,
        Schedule::ZeroBubbleH1,
        Schedule::ZeroBubbleV,
        Schedule::InterleavedZeroBubble,
    ];

    /// All schedules that can be requested, in display order.
    pub const ALL: [Schedule; 14] = [
        Schedule::OneForwardOneBackward,
        Schedule::GPipe,
        Schedule::Interleaved,
        Schedule::EagerOneForwardOneBackward,
        Schedule::ZeroBubbleH1,
        Schedule::ZeroBubbleV,
        Schedule::ZeroBubble2p,
        Schedule::InterleavedZeroBubble,
        Schedule::LoopedBfs,
        Schedule::Combined,
        Schedule::DualPipe,
        Schedule::DualPipeV,
        Schedule::Seq1F1B,
        Schedule::Inference,
    ];

    /// Id in files and on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Schedule::OneForwardOneBackward => "1f1b",
            Schedule::GPipe => "gpipe",
            Schedule::Interleaved => "interleaved",
            Schedule::EagerOneForwardOneBackward => "eager-1f1b",
            Schedule::ZeroBubbleH1 => "zb-h1",
            Schedule::ZeroBubbleV => "zb-v",
            Schedule::ZeroBubble2p => "zb-2p",
            Schedule::InterleavedZeroBubble => "interleaved-zb",
            Schedule::LoopedBfs => "looped-bfs",
            Schedule::Combined => "combined-1f1b",
            Schedule::DualPipe => "dualpipe",
            Schedule::DualPipeV => "dualpipe-v",
            Schedule::Seq1F1B => "seq1f1b",
            Schedule::Given(_) => "given",
            Schedule::Inference => "inference",
            Schedule::SingleSample => "single-sample",
        }
    }

    /// Name for users.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::OneForwardOneBackward => "1F1B",
            Schedule::GPipe => "GPipe",
            Schedule::Interleaved => "interleaved 1F1B",
            Schedule::EagerOneForwardOneBackward => "eager 1F1B",
            Schedule::ZeroBubbleH1 => "ZB-H1",
            Schedule::ZeroBubbleV => "ZB-V",
            Schedule::ZeroBubble2p => "ZB-2p",
            Schedule::InterleavedZeroBubble => "interleaved ZB",
            Schedule::LoopedBfs => "looped BFS",
            Schedule::Combined => "combined 1F1B",
            Schedule::DualPipe => "DualPipe",
            Schedule::DualPipeV => "DualPipeV",
            Schedule::Seq1F1B => "Seq1F1B",
            Schedule::Given(_) => "your schedule",
            Schedule::Inference => "inference",
            Schedule::SingleSample => "single sample",
        }
    }

    /// Schedule with this id, if it can be requested.
    pub fn find(id: &str) -> Option<Schedule> {
        Schedule::ALL.into_iter().find(|schedule| schedule.id() == id)
    }

    /// Minimum number of model parts per device.
    pub fn least_parts(self) -> u32 {
        // The combined schedule also runs on one device, where the model is whole.
        if self.is_v() || self.loops() && self != Schedule::Combined { 2 } else { 1 }
    }

    /// True if the schedule has backwards.
    pub fn has_backward(self) -> bool {
        self != Schedule::Inference
    }

    /// True if the backward of the weights runs apart from that of the inputs.
    pub fn splits_backward(self) -> bool {
        match self {
            Schedule::ZeroBubbleH1
            | Schedule::ZeroBubbleV
            | Schedule::ZeroBubble2p
            | Schedule::InterleavedZeroBubble
            | Schedule::DualPipe
            | Schedule::DualPipeV => true,
            Schedule::Given(given) => given.schedule().splits_backward(),
            _ => false,
        }
    }

    /// True if passes of different microbatches may run side by side.
    pub fn has_pairs(self) -> bool {
        match self {
            Schedule::Combined | Schedule::DualPipe | Schedule::DualPipeV => true,
            Schedule::Given(given) => given.schedule().has_pairs(),
            _ => false,
        }
    }

    /// True if the model is in two parts on each device, the second one placed back from the last device to the first.
    pub fn is_v(self) -> bool {
        matches!(self, Schedule::ZeroBubbleV | Schedule::DualPipeV)
    }

    /// True if each device has several parts of the model, dealt out in turn.
    pub fn loops(self) -> bool {
        use Schedule::{Combined, Interleaved, InterleavedZeroBubble, LoopedBfs};
        matches!(self, Interleaved | InterleavedZeroBubble | LoopedBfs | Combined)
    }

    /// True if a plan chooses the number of virtual stages of the schedule.
    pub fn has_free_parts(self) -> bool {
        matches!(self, Schedule::Interleaved | Schedule::InterleavedZeroBubble)
    }

    /// True if the schedule is played from a list of actions, and not from a period.
    pub fn is_listed(self) -> bool {
        matches!(
            self,
            Schedule::Combined
                | Schedule::LoopedBfs
                | Schedule::DualPipe
                | Schedule::DualPipeV
                | Schedule::Seq1F1B
                | Schedule::Given(_)
        )
    }
}

/// Number of microbatches that each replica starts before its first backward, for stages with different numbers of
/// replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WarmUp {
    /// `⌈replicas behind / d⌉`, rounded at every stage, as in Piper's memory model.
    #[default]
    Published,
    /// Rounded from the last stage on: `w(s) = ⌈K(s + 1) / d(s)⌉` with `K(s) = (w(s) + 1) d(s)`. A stage then has
    /// enough microbatches in flight to cover those of the stages behind it, up to a few more. With equal replicas both
    /// rules agree.
    Cumulative,
}

impl WarmUp {
    /// Both rules, in display order.
    pub const ALL: [WarmUp; 2] = [WarmUp::Published, WarmUp::Cumulative];

    /// Id in files and on the command line.
    pub const fn id(self) -> &'static str {
        match self {
            WarmUp::Published => "published",
            WarmUp::Cumulative => "cumulative",
        }
    }

    /// Rule with this id.
    pub fn find(id: &str) -> Option<WarmUp> {
        WarmUp::ALL.into_iter().find(|rule| rule.id() == id)
    }
}

/// Schedule, virtual stages and warm-up rule of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Execution {
    /// The schedule.
    pub schedule: Schedule,
    /// Number of model parts on each device if the schedule interleaves them; else 1.
    pub virtual_stages: u32,
    /// Warm-up rule.
    pub warm_up: WarmUp,
}

impl Default for Execution {
    /// 1F1B with the published warm-up.
    fn default() -> Self {
        Schedule::OneForwardOneBackward.into()
    }
}

impl From<Schedule> for Execution {
    /// Schedule with its minimum of virtual stages and the published warm-up.
    fn from(schedule: Schedule) -> Self {
        Execution { schedule, virtual_stages: schedule.least_parts(), warm_up: WarmUp::Published }
    }
}

impl Execution {
    /// Replaces the schedule. `virtual_stages` applies only to interleaved schedules.
    #[must_use]
    pub fn under(self, schedule: Schedule, virtual_stages: u32) -> Execution {
        let virtual_stages = match schedule {
            own if own.has_free_parts() => virtual_stages,
            other => other.least_parts(),
        };
        Execution { schedule, virtual_stages, ..self }
    }

    /// Name in words: `1F1B`, `interleaved 1F1B with 4 virtual stages`.
    pub fn name(self) -> String {
        let parts = match self.schedule {
            own if own.has_free_parts() => format!(" with {} virtual stages", self.virtual_stages),
            _ => String::new(),
        };
        let warm_up = match self.warm_up {
            WarmUp::Published => "",
            WarmUp::Cumulative => ", cumulative warm-up",
        };
        format!("{}{parts}{warm_up}", self.schedule.name())
    }
}

/// Fields of a document for a plan's execution, as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecutionPart {
    /// [`super::document::Document::schedule`].
    pub schedule: Option<String>,
    /// [`super::document::Document::virtual_stages`].
    pub virtual_stages: Option<u32>,
    /// [`super::document::Document::warmup`].
    pub warmup: Option<String>,
}

impl From<Execution> for ExecutionPart {
    fn from(execution: Execution) -> Self {
        ExecutionPart {
            schedule: Some(execution.schedule.id().into()),
            virtual_stages: Some(execution.virtual_stages).filter(|&parts| parts > 1),
            warmup: Some(execution.warm_up.id().into()),
        }
    }
}

/// Maximum number of model parts on a device.
const MOST_PARTS: u32 = 1024;

impl ExecutionPart {
    /// Execution in the fields; `None` if there are none.
    ///
    /// # Errors
    /// [`LoadError`] that names the field and the allowed values.
    pub fn read(&self, source: &str) -> Result<Option<Execution>, LoadError> {
        let ExecutionPart { schedule, virtual_stages, warmup } = self;
        if schedule.is_none() && virtual_stages.is_none() && warmup.is_none() {
            return Ok(None);
        }
        let unknown = |field: &str, said: &str, known: &[&str]| {
            let problem = format!("is `{}`, which is not known", printable(said));
            LoadError::at(source, field, problem, format!("it may be {}", known.join(", ")))
        };
        let mut own = Execution::default();
        if let Some(id) = schedule {
            let found = Schedule::OF_PLANS.into_iter().find(|schedule| schedule.id() == id);
            own = found.ok_or_else(|| unknown("schedule", id, &Schedule::OF_PLANS.map(Schedule::id)))?.into();
        }
        if let Some(parts) = *virtual_stages {
            let fits = match own.schedule {
                own if own.has_free_parts() => (2..=MOST_PARTS).contains(&parts),
                _ => parts == own.schedule.least_parts(),
            };
            if !fits {
                let problem = format!("is {parts}, which the schedule {} does not allow", own.schedule.id());
                let repair = match own.schedule {
                    own if own.has_free_parts() => format!("write a whole number from 2 to {MOST_PARTS}"),
                    _ => "remove it: only `interleaved` and `interleaved-zb` have virtual stages to choose".into(),
                };
                return Err(LoadError::at(source, "virtual_stages", problem, repair));
            }
            own.virtual_stages = parts;
        }
        if let Some(id) = warmup {
            let known = WarmUp::ALL.map(WarmUp::id);
            own.warm_up = WarmUp::find(id).ok_or_else(|| unknown("warmup", id, &known))?;
        }
        Ok(Some(own))
    }
}
