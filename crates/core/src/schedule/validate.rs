//! Flaws of a schedule: missing or repeated actions, a wrong order, a deadlock, memory that grows with the batch.
//!
//! The validator shares no code with the simulator. A step can run if the actions that it needs have run: a forward pass
//! needs that of the stage before; a backward pass its own forward pass and the backward pass of the stage behind; the
//! weights' part needs that of the inputs. Of a sequence in slices, later ones need earlier ones, and their backward
//! passes come in reverse. `O(actions)`.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use super::{Action, ActionKind, ExplicitSchedule, Step, next_chunk};

/// Kind of a flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    /// An action is missing.
    Missing,
    /// An action comes twice.
    Twice,
    /// A rank runs an action before another that it needs.
    Order,
    /// Ranks share a stage in a way that nothing can run.
    Placement,
    /// Ranks wait for each other.
    Deadlock,
    /// A rank holds all microbatches at once.
    Growth,
}

impl FlawKind {
    /// True if a schedule with such a flaw cannot run.
    pub fn breaks(self) -> bool {
        self != FlawKind::Growth
    }
}

/// Flaw of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// Its kind.
    pub kind: FlawKind,
    /// Rank, from 0.
    pub rank: usize,
    /// Step of the rank's order, from 0, without empty cells; `None` if it has no place there.
    pub step: Option<usize>,
    /// The problem, without its place.
    pub problem: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "rank {}, step {step}: {}", self.rank, self.problem),
            None => write!(f, "rank {}: {}", self.rank, self.problem),
        }
    }
}

impl Flaw {
    /// Repair, in a few words.
    pub fn repair(&self) -> &'static str {
        match self.kind {
            FlawKind::Missing => "add the action",
            FlawKind::Twice => "remove one of them",
            FlawKind::Order => "move the action behind the one that it needs",
            FlawKind::Placement => "let each microbatch pass a stage on one rank",
            FlawKind::Deadlock => "move one of these actions in front of the step that waits",
            FlawKind::Growth => "start backward passes earlier",
        }
    }
}

/// Result of an action, which others need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Done {
    /// True for the gradient of a stage's inputs, false for its output.
    backward: bool,
    stage: u32,
    microbatch: u32,
    slice: u32,
}

impl Done {
    fn of(action: Action) -> Option<Done> {
        let Action { kind, stage, microbatch, slice } = action;
        let backward = match kind {
            ActionKind::Forward => false,
            ActionKind::Backward | ActionKind::InputGradient => true,
            ActionKind::WeightGradient => return None,
        };
        Some(Done { backward, stage, microbatch, slice })
    }
}

/// Flaws of a schedule, those that break it first. Empty for a schedule that runs in memory that does not grow with the
/// batch.
pub fn flaws(schedule: &ExplicitSchedule) -> Vec<Flaw> {
    let mut flaws = counts(schedule);
    if flaws.is_empty() {
        flaws = orders(schedule);
    }
    if flaws.is_empty() {
        flaws.extend(play(schedule).1);
    }
    if flaws.is_empty() {
        flaws = growth(schedule);
    }
    flaws
}

/// Rank and step of each pass of one slice over one stage.
type PassPlaces = BTreeMap<ActionKind, (usize, usize)>;

/// Missing and repeated actions, and stages whose ranks do not fit.
fn counts(schedule: &ExplicitSchedule) -> Vec<Flaw> {
    let (stages, microbatches, slices) = (schedule.stages(), schedule.microbatches(), schedule.slices());
    let mut seen: HashMap<(u32, u32, u32), PassPlaces> = HashMap::new();
    let mut flaws = vec![];
    for (rank, step, action) in schedule.actions() {
        let own = seen.entry((action.stage, action.microbatch, action.slice)).or_default();
        if let Some((before, at)) = own.insert(action.kind, (rank, step)) {
            let problem = format!("{action} comes again, after rank {before}, step {at}");
            flaws.push(Flaw { kind: FlawKind::Twice, rank, step: Some(step), problem });
        }
    }
    let trains = seen.values().any(|own| own.keys().any(|kind| *kind != ActionKind::Forward));
    let home = |stage: u32| schedule.actions().find(|(.., action)| action.stage == stage).map_or(0, |(rank, ..)| rank);
    for stage in 0..stages {
        for (microbatch, slice) in (0..microbatches).flat_map(|m| (0..slices).map(move |slice| (m, slice))) {
            let own = seen.get(&(stage, microbatch, slice));
            let has = |kind: ActionKind| own.is_some_and(|own| own.contains_key(&kind));
            let (whole, inputs, weights) =
                (has(ActionKind::Backward), has(ActionKind::InputGradient), has(ActionKind::WeightGradient));
            let missing = match () {
                () if !has(ActionKind::Forward) => Some(ActionKind::Forward),
                () if !trains || whole && !inputs && !weights || inputs && weights && !whole => None,
                () if whole => {
                    let (rank, step) = own.and_then(|own| own.get(&ActionKind::Backward)).copied().unwrap_or((0, 0));
                    let problem = format!("{stage}B{microbatch} is whole, and the same pass also comes in parts");
                    flaws.push(Flaw { kind: FlawKind::Twice, rank, step: Some(step), problem });
                    None
                }
                () if inputs => Some(ActionKind::WeightGradient),
                () if weights => Some(ActionKind::InputGradient),
                () => Some(ActionKind::Backward),
            };
            if let Some(kind) = missing {
                let action = Action { kind, stage, microbatch, slice };
                let problem = format!("{action} is missing");
                let rank = own.and_then(|own| own.values().next()).map_or_else(|| home(stage), |(rank, _)| *rank);
                flaws.push(Flaw { kind: FlawKind::Missing, rank, step: None, problem });
            }
            let ranks = own.into_iter().flat_map(|own| own.values()).map(|(rank, _)| *rank);
            let mut ranks: Vec<usize> = ranks.collect();
            ranks.dedup();
            if let [first, second, ..] = ranks[..] {
                let problem = format!("microbatch {microbatch} passes stage {stage} here and on rank {second}");
                flaws.push(Flaw { kind: FlawKind::Placement, rank: first, step: None, problem });
            }
            // A lone large number would else mean as many missing actions.
            if flaws.len() >= MOST_FLAWS {
                return flaws;
            }
        }
    }
    if flaws.is_empty() { paths(schedule) } else { flaws }
}

/// Number of flaws of one kind that are listed.
const MOST_FLAWS: usize = 20;

/// Stages on several ranks whose microbatches do not stay together from stage to stage.
fn paths(schedule: &ExplicitSchedule) -> Vec<Flaw> {
    let chunks = schedule.chunks();
    let mut flaws = vec![];
    for chunk in chunks.iter().filter(|chunk| chunk.stage + 1 < schedule.stages()) {
        if next_chunk(&chunks, chunk).is_none() {
            let problem = format!(
                "the microbatches of stage {} here are divided over several ranks at stage {}",
                chunk.stage,
                chunk.stage + 1
            );
            flaws.push(Flaw { kind: FlawKind::Placement, rank: chunk.rank, step: None, problem });
        }
    }
    flaws
}

/// Actions that come before another on their own rank that they need.
fn orders(schedule: &ExplicitSchedule) -> Vec<Flaw> {
    let mut flaws = vec![];
    for (rank, steps) in schedule.ranks.iter().enumerate() {
        let place: HashMap<Action, usize> =
            steps.iter().enumerate().flat_map(|(number, step)| step.actions().map(move |own| (own, number))).collect();
        for (number, action) in
            steps.iter().enumerate().flat_map(|(number, step)| step.actions().map(move |own| (number, own)))
        {
            let needs = [
                (action.kind == ActionKind::WeightGradient).then_some(ActionKind::InputGradient),
                matches!(action.kind, ActionKind::Backward | ActionKind::InputGradient).then_some(ActionKind::Forward),
            ];
            for kind in needs.into_iter().flatten() {
                let needed = Action { kind, ..action };
                if let Some(&at) = place.get(&needed).filter(|at| **at >= number) {
                    let problem = format!("{action} needs {needed}, which comes at step {at}");
                    flaws.push(Flaw { kind: FlawKind::Order, rank, step: Some(number), problem });
                }
            }
        }
    }
    flaws.truncate(MOST_FLAWS);
    flaws
}

/// Results that an action needs.
fn needs(action: Action, stages: u32, slices: u32) -> impl Iterator<Item = Done> {
    let Action { kind, stage, microbatch, slice } = action;
    let done = |backward, stage, slice| Done { backward, stage, microbatch, slice };
    let all = match kind {
        ActionKind::Forward => [
            stage.checked_sub(1).map(|before| done(false, before, slice)),
            slice.checked_sub(1).map(|before| done(false, stage, before)),
        ],
        ActionKind::Backward | ActionKind::InputGradient => [
            (stage + 1 < stages).then(|| done(true, stage + 1, slice)),
            (slice + 1 < slices).then(|| done(true, stage, slice + 1)),
        ],
        ActionKind::WeightGradient => [None, None],
    };
    all.into_iter().flatten()
}

/// Column of every step if each takes one unit of time, and the deadlock, if there is one.
fn play(schedule: &ExplicitSchedule) -> (Vec<Vec<usize>>, Option<Flaw>) {
    let (stages, slices) = (schedule.stages(), schedule.slices());
    let mut done: HashMap<Done, usize> = HashMap::new();
    let mut columns: Vec<Vec<usize>> = schedule.ranks.iter().map(|steps| Vec::with_capacity(steps.len())).collect();
    let mut waiting: HashMap<Done, Vec<usize>> = HashMap::new();
    let mut ready: Vec<usize> = (0..schedule.ranks.len()).rev().collect();
    while let Some(rank) = ready.pop() {
        while let Some(step) = schedule.ranks[rank].get(columns[rank].len()) {
            let mut start = columns[rank].last().map_or(0, |last| last + 1);
            let mut missing = None;
            for need in step.actions().flat_map(|action| needs(action, stages, slices)) {
                match done.get(&need) {
                    Some(&column) => start = start.max(column + 1),
                    None => missing = Some(need),
                }
            }
            if let Some(need) = missing {
                waiting.entry(need).or_default().push(rank);
                break;
            }
            columns[rank].push(start);
            for result in step.actions().filter_map(Done::of) {
                done.insert(result, start);
                ready.extend(waiting.remove(&result).into_iter().flatten());
            }
        }
    }
    let stuck = (0..schedule.ranks.len()).find(|&rank| columns[rank].len() < schedule.ranks[rank].len());
    let flaw = stuck.map(|rank| deadlock(schedule, &columns, rank));
    (columns, flaw)
}

/// Column of every step if each takes one unit of time. Steps behind a deadlock have none.
pub fn columns(schedule: &ExplicitSchedule) -> Vec<Vec<usize>> {
    play(schedule).0
}

/// Cycle of waiting ranks, from `rank` on.
fn deadlock(schedule: &ExplicitSchedule, columns: &[Vec<usize>], rank: usize) -> Flaw {
    let (stages, slices) = (schedule.stages(), schedule.slices());
    let mut place: HashMap<Done, (usize, usize, Action)> = HashMap::new();
    for (rank, step, action) in schedule.actions() {
        if let Some(result) = Done::of(action) {
            place.insert(result, (rank, step, action));
        }
    }
    // Each waiting rank needs a result that a later step of another, or of itself, makes.
    let waits = |rank: usize| {
        let at = columns[rank].len();
        let step = schedule.ranks[rank].get(at)?;
        let needed = step.actions().flat_map(|action| needs(action, stages, slices).map(move |need| (action, need)));
        let open = needed.filter_map(|(action, need)| Some((action, *place.get(&need)?)));
        open.into_iter()
            .find(|(_, (other, step, _))| *step >= columns[*other].len())
            .map(|(action, needed)| (at, action, needed))
    };
    let mut seen = vec![];
    let mut now = rank;
    while !seen.contains(&now) {
        seen.push(now);
        match waits(now) {
            Some((_, _, (other, ..))) => now = other,
            None => break,
        }
    }
    let cycle: Vec<usize> = seen.iter().copied().skip_while(|&own| own != now).collect();
    let sentence = |&rank: &usize| {
        let (at, action, (other, step, needed)) = waits(rank)?;
        Some(format!("rank {rank} waits at step {at} ({action}) for {needed}, step {step} of rank {other}"))
    };
    let told: Vec<String> = cycle.iter().filter_map(sentence).collect();
    let first = cycle.first().copied().unwrap_or(rank);
    let problem = format!("deadlock: {}", told.join("; "));
    Flaw { kind: FlawKind::Deadlock, rank: first, step: Some(columns[first].len()), problem }
}

/// Microbatches, times chunks of the rank, that each rank holds at most, and the step where it does so first.
pub fn most_held(schedule: &ExplicitSchedule) -> Vec<(usize, usize)> {
    let of_rank = |steps: &Vec<Step>| {
        let (mut held, mut most, mut at) = (0usize, 0, 0);
        for (number, step) in steps.iter().enumerate() {
            for action in step.actions() {
                match action.kind {
                    ActionKind::Forward => held += 1,
                    ActionKind::Backward | ActionKind::WeightGradient => held = held.saturating_sub(1),
                    ActionKind::InputGradient => {}
                }
                if held > most {
                    (most, at) = (held, number);
                }
            }
        }
        (most, at)
    };
    schedule.ranks.iter().map(of_rank).collect()
}

/// Ranks that hold all of their microbatches at once, although the batch is long.
fn growth(schedule: &ExplicitSchedule) -> Vec<Flaw> {
    let trains = schedule.actions().any(|(.., action)| action.kind != ActionKind::Forward);
    let long = schedule.microbatches() as usize > 2 * schedule.ranks.len();
    let of_rank = |(rank, (most, step)): (usize, (usize, usize))| {
        let all = schedule.ranks[rank].iter().flat_map(Step::actions);
        let all = all.filter(|action| action.kind == ActionKind::Forward).count();
        (all > 0 && most == all).then(|| {
            let problem =
                format!("the activations of all {all} forward passes are held, so that memory grows with the batch");
            Flaw { kind: FlawKind::Growth, rank, step: Some(step), problem }
        })
    };
    let grows = most_held(schedule).into_iter().enumerate().filter_map(of_rank);
    if trains && long { grows.collect() } else { vec![] }
}

#[cfg(test)]
mod tests {
    use crate::schedule::csv;

    fn problem(text: &str) -> String {
        csv::read(text, "a.csv").unwrap_err().to_string()
    }

    #[test]
    fn a_deadlock_is_explained_with_rank_and_step() {
        // Rank 0 runs the backward pass of microbatch 1 before the forward pass that rank 1 runs before it.
        let text = "0F0,0F1,0B1,0F2,0B0,0B2\n1F0,1B0,1F2,1B2,1F1,1B1\n";
        let told = problem(text);
        assert!(told.starts_with(
            "a.csv: rank 0, step 2: deadlock: rank 0 waits at step 2 (0B1) for 1B1, step 5 of rank 1; rank 1 waits at \
             step 2 (1F2) for 0F2, step 3 of rank 0; "
        ), "{told}");
    }

    #[test]
    fn each_flaw_names_its_rank_and_step() {
        for (text, told) in [
            ("0F0,0B0\n1F0\n", "rank 1: 1B0 is missing"),
            ("0F0,0F1,0B0\n1F0,1B0,1F1,1B1\n", "rank 0: 0B1 is missing"),
            ("0F0,0F0,0B0\n1F0,1B0\n", "rank 0, step 1: 0F0 comes again, after rank 0, step 0"),
            ("0F0,0B0\n1B0,1F0\n", "rank 1, step 0: 1B0 needs 1F0, which comes at step 1"),
            ("0F0,0W0,0I0\n1F0,1B0\n", "rank 0, step 1: 0W0 needs 0I0, which comes at step 2"),
            ("0F0,0I0\n1F0,1B0\n", "rank 0: 0W0 is missing"),
            ("0F0\n1F0,1B0,0B0\n", "microbatch 0 passes stage 0 here and on rank 1"),
            ("0F0,0B0,0I0,0W0\n1F0,1B0\n", "0B0 is whole, and the same pass also comes in parts"),
            ("0F0,0X0\n", "row 1, column 2 is `0X0`, whose letter is none of F, B, I and W"),
            ("0F0,(0F1;0F2)OVERLAP_F_B\n", "whose pair is not a forward and a backward pass"),
            ("", "holds no action"),
            // Nobody waits for what a large number would mean.
            ("0F1048575.1048575\n", "rank 0: 0F0 is missing"),
            ("1048575F0\n", "rank 0: 0F0 is missing"),
        ] {
            assert!(problem(text).contains(told), "{text}: {}", problem(text));
        }
    }

    #[test]
    fn memory_that_grows_with_the_batch_is_noted() {
        let forwards = |stage: u32| (0..8).map(move |m| format!("{stage}F{m}"));
        let backwards = |stage: u32| (0..8).map(move |m| format!("{stage}B{m}"));
        let row = |stage| forwards(stage).chain(backwards(stage)).collect::<Vec<_>>().join(",");
        let read = csv::read(&format!("{}\n{}\n", row(0), row(1)), "a.csv").unwrap();
        let told =
            "rank 0, step 7: the activations of all 8 forward passes are held, so that memory grows with the batch";
        assert_eq!(read.notes[0], told);
    }

    #[test]
    fn cells_that_move_data_are_left_out_with_a_word() {
        let text = "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0RESHARD,0REDUCE_GRAD\n1RECV_F0,1F0,1B0,1SEND_B0\n";
        let read = csv::read(text, "a.csv").unwrap();
        assert_eq!(read.schedule.ranks.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        assert!(read.notes[0].starts_with("7 cells that move data or weights are left out"), "{:?}", read.notes);
    }
}
