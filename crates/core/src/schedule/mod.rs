//! Schedules as values: for each rank an ordered list of actions on stages and microbatches.
//!
//! [`generate`] makes the published schedules, [`csv`] reads and writes the files of `torch.distributed.pipelining`,
//! [`edit`] changes a list by hand, and [`validate`] lists what a schedule breaks. The simulator plays any valid one ([`crate::simulate`]). Everything is
//! `O(actions)`.
//!
//! A schedule of another program is a [`GivenSchedule`], a handle that can be copied like the names of the built-in ones.

pub mod csv;
pub mod edit;
pub mod generate;
pub mod validate;

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Computation of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActionKind {
    /// Forward pass.
    Forward,
    /// Whole backward pass.
    Backward,
    /// Backward pass of the inputs.
    InputGradient,
    /// Backward pass of the weights.
    WeightGradient,
}

impl ActionKind {
    /// Letter in PyTorch's files.
    pub const fn letter(self) -> char {
        match self {
            ActionKind::Forward => 'F',
            ActionKind::Backward => 'B',
            ActionKind::InputGradient => 'I',
            ActionKind::WeightGradient => 'W',
        }
    }
}

/// Computation of a stage on a microbatch, or on a slice of its sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action {
    /// The computation.
    pub kind: ActionKind,
    /// Virtual stage of the whole model, from 0.
    pub stage: u32,
    /// Microbatch, from 0.
    pub microbatch: u32,
    /// Slice of the sequence, from 0; 0 where sequences are whole.
    pub slice: u32,
}

impl fmt::Display for Action {
    /// As in PyTorch's files: `2F3`; the second slice of microbatch 3 is `2F3.1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.stage, self.kind.letter(), self.microbatch)?;
        if self.slice > 0 { write!(f, ".{}", self.slice) } else { Ok(()) }
    }
}

/// Entry of a rank's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// One action.
    One(Action),
    /// A forward and a backward pass of different microbatches that run side by side.
    Overlap(Action, Action),
}

impl Step {
    /// Actions of the step: the forward pass of a pair first.
    pub fn actions(&self) -> impl Iterator<Item = Action> + use<> {
        let (first, second) = match *self {
            Step::One(action) => (action, None),
            Step::Overlap(forward, backward) => (forward, Some(backward)),
        };
        std::iter::once(first).chain(second)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::One(action) => action.fmt(f),
            Step::Overlap(forward, backward) => write!(f, "({forward};{backward})OVERLAP_F_B"),
        }
    }
}

/// Schedule as a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ExplicitSchedule {
    /// Steps of every rank, in order.
    pub ranks: Vec<Vec<Step>>,
}

impl ExplicitSchedule {
    /// All actions with their rank and step.
    pub fn actions(&self) -> impl Iterator<Item = (usize, usize, Action)> {
        self.ranks.iter().enumerate().flat_map(|(rank, steps)| {
            steps
                .iter()
                .enumerate()
                .flat_map(move |(number, step)| step.actions().map(move |action| (rank, number, action)))
        })
    }

    fn most(&self, of: impl Fn(Action) -> u32) -> u32 {
        self.ranks.iter().flatten().flat_map(Step::actions).map(|action| of(action) + 1).max().unwrap_or(0)
    }

    /// Number of virtual stages.
    pub fn stages(&self) -> u32 {
        self.most(|action| action.stage)
    }

    /// Number of microbatches.
    pub fn microbatches(&self) -> u32 {
        self.most(|action| action.microbatch)
    }

    /// Number of slices of a sequence; 1 if sequences are whole.
    pub fn slices(&self) -> u32 {
        self.most(|action| action.slice).max(1)
    }

    /// True if a backward pass of inputs runs apart from that of the weights.
    pub fn splits_backward(&self) -> bool {
        self.ranks.iter().flatten().flat_map(Step::actions).any(|action| action.kind == ActionKind::InputGradient)
    }

    /// True if two passes run side by side.
    pub fn has_pairs(&self) -> bool {
        self.ranks.iter().flatten().any(|step| matches!(step, Step::Overlap(..)))
    }

    /// Chunks: a stage on a rank, and the microbatches that it runs there. Stages are in order, and each rank's too.
    pub fn chunks(&self) -> Vec<ScheduleChunk> {
        let mut found: BTreeMap<(u32, usize), Vec<u32>> = BTreeMap::new();
        for (rank, _, action) in self.actions().filter(|(.., action)| action.kind == ActionKind::Forward) {
            found.entry((action.stage, rank)).or_default().push(action.microbatch);
        }
        let chunk = |((stage, rank), mut microbatches): ((u32, usize), Vec<u32>)| {
            microbatches.sort_unstable();
            microbatches.dedup();
            ScheduleChunk { stage, rank, microbatches }
        };
        found.into_iter().map(chunk).collect()
    }
}

/// Largest number of actions that a list may have: in memory, some 200 bytes for each.
pub const MOST_ACTIONS: u64 = 1 << 22;

/// True if a stage is on several ranks, each with a copy of it.
pub fn has_copies(chunks: &[ScheduleChunk]) -> bool {
    chunks.windows(2).any(|pair| pair[0].stage == pair[1].stage)
}

/// Chunk that follows one of a schedule's chunks: the next stage, where the same microbatches run.
pub fn next_chunk(chunks: &[ScheduleChunk], own: &ScheduleChunk) -> Option<usize> {
    let from = chunks.partition_point(|other| other.stage <= own.stage);
    let behind = chunks[from..].iter().take_while(|other| other.stage == own.stage + 1);
    behind.into_iter().position(|other| other.microbatches == own.microbatches).map(|at| from + at)
}

/// Stage on a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleChunk {
    /// Virtual stage of the model.
    pub stage: u32,
    /// Rank that holds it.
    pub rank: usize,
    /// Microbatches that it runs there, in order.
    pub microbatches: Vec<u32>,
}

/// Number of microbatches that pass all parts of a stage before the next ones do, under interleaved 1F1B. It is the
/// number of stages if that divides the batch, else a few more. `None` if the batch has no equal rounds (Narayanan et
/// al., SC 2021, section 2.2; rounds as in PyTorch's `ScheduleInterleaved1F1B`).
pub fn interleaved_round(stages: u32, microbatches: u32) -> Option<u32> {
    let rounds = (microbatches / stages.max(1)).max(1);
    microbatches.is_multiple_of(rounds).then_some(microbatches / rounds)
}

/// Handle of a schedule from a file or an edit. Equal schedules have equal handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GivenSchedule(u32);

/// Schedules of all handles. They stay until the program ends: a command reads one, a screen few.
static GIVEN: Mutex<Vec<Arc<ExplicitSchedule>>> = Mutex::new(vec![]);

impl GivenSchedule {
    /// Handle of a schedule.
    pub fn new(schedule: ExplicitSchedule) -> Self {
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = given.iter().position(|known| **known == schedule);
        let index = known.unwrap_or_else(|| {
            given.push(Arc::new(schedule));
            given.len() - 1
        });
        GivenSchedule(index as u32)
    }

    /// The schedule.
    pub fn schedule(self) -> Arc<ExplicitSchedule> {
        GIVEN.lock().unwrap_or_else(PoisonError::into_inner)[self.0 as usize].clone()
    }
}
