//! Schedules as CSV: a row for each rank, a cell for each step, as `torch.distributed.pipelining` reads and writes them.
//!
//! Cells are `0F3`, `1B0`, `2I1`, `2W1` and `(0F0;1B0)OVERLAP_F_B` (PyTorch 2.15, `_Action.from_str`). Cells that move
//! data or weights (`UNSHARD`, `SEND_F`, ..) are left out: the simulator makes transfers itself. An empty cell waits.
//! `2F3.1` is slice 1 of microbatch 3, an extension.

use super::{Action, ActionKind, ExplicitSchedule, MOST_ACTIONS, Step, validate};
use crate::source::LoadError;

/// Actions that move data or weights, and compute nothing.
const MOVES: [&str; 10] = [
    "UNSHARD",
    "RESHARD",
    "REDUCE_GRAD",
    "WAIT_REDUCE_GRAD",
    "SEND_F",
    "RECV_F",
    "SEND_B",
    "RECV_B",
    "WAIT_SEND_F",
    "WAIT_SEND_B",
];

/// Largest number of a stage, microbatch or slice.
const MOST: u32 = 1 << 20;

/// Schedule of a file, with notes on what was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadSchedule {
    /// The schedule.
    pub schedule: ExplicitSchedule,
    /// Notes for the user, a sentence each.
    pub notes: Vec<String>,
}

/// Reads a schedule.
///
/// # Errors
/// [`LoadError`] for a cell that is no action, with its row and column, or for a schedule that cannot run
/// ([`validate::flaws`]).
pub fn read(text: &str, source: &str) -> Result<ReadSchedule, LoadError> {
    let mut ranks = vec![];
    let (mut moves, mut actions) = (0usize, 0u64);
    for (row, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let mut steps = vec![];
        for (column, cell) in line.split(',').map(|cell| cell.trim().trim_matches('"')).enumerate() {
            match step(cell) {
                Ok(Some(step)) => steps.push(step),
                Ok(None) => moves += usize::from(!cell.is_empty()),
                Err(problem) => {
                    let shown = crate::text::printable(cell);
                    let place = format!("row {}, column {}", row + 1, column + 1);
                    let repair = "write cells such as 0F3, 1B0, 2I1, 2W1 or (0F0;1B0)OVERLAP_F_B";
                    return Err(LoadError::at(source, place, format!("is `{shown}`, {problem}"), repair));
                }
            }
        }
        actions += steps.len() as u64;
        if actions > MOST_ACTIONS {
            let problem = format!("has more than {MOST_ACTIONS} actions");
            return Err(LoadError::file(source, problem, "give fewer microbatches: the middle repeats itself"));
        }
        ranks.push(steps);
    }
    let schedule = ExplicitSchedule { ranks };
    if actions == 0 {
        return Err(LoadError::file(source, "holds no action", "give a row for each rank, with cells such as 0F0"));
    }
    let flaws = validate::flaws(&schedule);
    if let Some(flaw) = flaws.iter().find(|flaw| flaw.kind.breaks()) {
        return Err(LoadError::file(source, flaw.to_string(), flaw.repair()));
    }
    let mut notes: Vec<String> = flaws.iter().map(ToString::to_string).collect();
    if moves > 0 {
        notes.push(format!(
            "{moves} cells that move data or weights are left out: the simulator makes transfers itself"
        ));
    }
    Ok(ReadSchedule { schedule, notes })
}

/// Writes a schedule. Cells are placed so that each row shows what a rank waits for, with one step per action.
pub fn write(schedule: &ExplicitSchedule) -> String {
    let columns = validate::columns(schedule);
    let width = columns.iter().flatten().map(|column| column + 1).max().unwrap_or(0);
    let row = |(steps, columns): (&Vec<Step>, &Vec<usize>)| {
        let mut cells: Vec<String> = vec![];
        for (step, &column) in steps.iter().zip(columns) {
            cells.resize(column.max(cells.len()), String::new());
            cells.push(step.to_string());
        }
        cells.resize(width.max(cells.len()), String::new());
        cells.join(",") + "\n"
    };
    schedule.ranks.iter().zip(&columns).map(row).collect()
}

/// Step in a cell; `None` for an empty cell, or one that moves data.
fn step(cell: &str) -> Result<Option<Step>, &'static str> {
    if cell.is_empty() {
        return Ok(None);
    }
    if let Some(pair) = cell.strip_prefix('(') {
        let (pair, kind) = pair.split_once(')').ok_or("which has no closing bracket")?;
        if kind != "OVERLAP_F_B" {
            return Err("whose pair is not OVERLAP_F_B");
        }
        let (first, second) = pair.split_once(';').ok_or("whose pair has not two actions")?;
        let (Some(first), Some(second)) = (action(first.trim())?, action(second.trim())?) else {
            return Err("whose pair moves data");
        };
        let (forward, backward) = if first.kind == ActionKind::Forward { (first, second) } else { (second, first) };
        let gradient = matches!(backward.kind, ActionKind::Backward | ActionKind::InputGradient);
        if forward.kind != ActionKind::Forward || !gradient {
            return Err("whose pair is not a forward and a backward pass");
        }
        return Ok(Some(Step::Overlap(forward, backward)));
    }
    Ok(action(cell)?.map(Step::One))
}

fn action(text: &str) -> Result<Option<Action>, &'static str> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or("which has no letter")?;
    let stage: u32 = text[..digits].parse().map_err(|_| "which does not begin with a stage")?;
    let rest = &text[digits..];
    let name = rest.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if MOVES.contains(&name) {
        return Ok(None);
    }
    let kind = match name {
        "F" => ActionKind::Forward,
        "B" => ActionKind::Backward,
        "I" => ActionKind::InputGradient,
        "W" => ActionKind::WeightGradient,
        _ => return Err("whose letter is none of F, B, I and W"),
    };
    let number = &rest[name.len()..];
    let (microbatch, slice) = number.split_once('.').unwrap_or((number, "0"));
    let microbatch: u32 = microbatch.parse().map_err(|_| "which has no microbatch")?;
    let slice: u32 = slice.parse().map_err(|_| "whose slice is no number")?;
    if [stage, microbatch, slice].iter().any(|&number| number >= MOST) {
        return Err("whose number is too large");
    }
    Ok(Some(Action { kind, stage, microbatch, slice }))
}
