//! Edits of a schedule by hand: move a step, pair two passes, divide a backward pass.
//!
//! An edit changes the list only; [`validate`](super::validate) says what the new list breaks. `O(steps of the rank)`.

use super::{Action, ActionKind, ExplicitSchedule, Step};

/// Edit of one rank's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleEdit {
    /// Moves a step one place earlier.
    Earlier,
    /// Moves a step one place later.
    Later,
    /// Pairs a step with the next one, or separates a pair.
    Pair,
    /// Divides a whole backward pass into that of the inputs and that of the weights, or joins the two.
    Divide,
}

impl ScheduleEdit {
    /// Applies the edit to a step of a rank. Returns the new place of the step.
    ///
    /// # Errors
    /// Reason why the step has no such edit, as a sentence without a full stop.
    pub fn apply(self, schedule: &mut ExplicitSchedule, rank: usize, step: usize) -> Result<usize, String> {
        let steps = schedule.ranks.get_mut(rank).filter(|steps| step < steps.len()).ok_or("there is no such step")?;
        match self {
            ScheduleEdit::Earlier => {
                let to = step.checked_sub(1).ok_or("this is the first step of the rank")?;
                steps.swap(step, to);
                Ok(to)
            }
            ScheduleEdit::Later if step + 1 == steps.len() => Err("this is the last step of the rank".into()),
            ScheduleEdit::Later => {
                steps.swap(step, step + 1);
                Ok(step + 1)
            }
            ScheduleEdit::Pair => pair(steps, step),
            ScheduleEdit::Divide => divide(steps, step),
        }
    }
}

fn pair(steps: &mut Vec<Step>, at: usize) -> Result<usize, String> {
    match (steps[at], steps.get(at + 1)) {
        (Step::Overlap(forward, backward), _) => {
            steps.splice(at..=at, [Step::One(forward), Step::One(backward)]);
            Ok(at)
        }
        (Step::One(own), Some(&Step::One(next))) => {
            let (forward, backward) = if own.kind == ActionKind::Forward { (own, next) } else { (next, own) };
            if (forward.kind, backward.kind) != (ActionKind::Forward, ActionKind::Backward) {
                return Err(format!("{own} and {next} are not a forward and a whole backward pass"));
            }
            steps.splice(at..=at + 1, [Step::Overlap(forward, backward)]);
            Ok(at)
        }
        (Step::One(own), _) => Err(format!("no single pass follows {own}")),
    }
}

fn divide(steps: &mut Vec<Step>, at: usize) -> Result<usize, String> {
    let Step::One(own) = steps[at] else { return Err("separate the pair first".into()) };
    let of = |kind: ActionKind| Step::One(Action { kind, ..own });
    let place = |kind: ActionKind| steps.iter().position(|step| *step == of(kind));
    match own.kind {
        ActionKind::Forward => Err(format!("{own} is a forward pass")),
        ActionKind::Backward => {
            steps.splice(at..=at, [of(ActionKind::InputGradient), of(ActionKind::WeightGradient)]);
            Ok(at)
        }
        ActionKind::InputGradient | ActionKind::WeightGradient => {
            let both = place(ActionKind::InputGradient).zip(place(ActionKind::WeightGradient));
            let (inputs, weights) = both.ok_or_else(|| format!("the other part of {own} is in a pair, or missing"))?;
            steps[inputs] = of(ActionKind::Backward);
            steps.remove(weights);
            Ok(inputs - usize::from(weights < inputs))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::csv;

    fn after(text: &str, edits: &[(ScheduleEdit, usize)]) -> Result<String, String> {
        let mut schedule = csv::read(text, "test.csv").expect("a schedule").schedule;
        for (edit, step) in edits {
            edit.apply(&mut schedule, 0, *step)?;
        }
        Ok(csv::write(&schedule).trim_end().to_string())
    }

    #[test]
    fn each_edit_has_an_inverse() {
        use ScheduleEdit::{Divide, Earlier, Later, Pair};
        let text = "0F0,0F1,0B0,0B1";
        for (edits, expected) in [
            (vec![(Later, 1)], "0F0,0B0,0F1,0B1"),
            (vec![(Later, 1), (Earlier, 2)], text),
            (vec![(Pair, 1)], "0F0,(0F1;0B0)OVERLAP_F_B,0B1"),
            (vec![(Pair, 1), (Pair, 1)], text),
            (vec![(Later, 1), (Pair, 1)], "0F0,(0F1;0B0)OVERLAP_F_B,0B1"),
            (vec![(Divide, 2)], "0F0,0F1,0I0,0W0,0B1"),
            (vec![(Divide, 2), (Later, 3), (Divide, 4)], text),
            (vec![(Divide, 2), (Divide, 2)], text),
        ] {
            assert_eq!(after(text, &edits).as_deref(), Ok(expected), "{edits:?}");
        }
    }

    #[test]
    fn an_edit_that_makes_no_sense_says_why() {
        use ScheduleEdit::{Divide, Earlier, Later, Pair};
        let text = "0F0,0F1,0B0,0B1";
        for (edit, step, reason) in [
            (Earlier, 0, "first step"),
            (Later, 3, "last step"),
            (Pair, 0, "0F0 and 0F1 are not a forward and a whole backward pass"),
            (Pair, 3, "no single pass follows 0B1"),
            (Divide, 0, "0F0 is a forward pass"),
            (Divide, 9, "no such step"),
        ] {
            let refused = after(text, &[(edit, step)]).expect_err("refused");
            assert!(refused.contains(reason), "{edit:?} {step}: {refused}");
        }
        let joined = after(text, &[(Pair, 1), (Divide, 1)]).expect_err("refused");
        assert!(joined.contains("separate"), "{joined}");
    }
}
