//! Tries: the plans that were on the screen, unchanged by what came after.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::tui::{changes::Worth, shown::ShownRun};

/// Most tries.
const MOST: usize = 50;
/// A plan that stays shorter was on the way to the next one.
const SETTLED: Duration = Duration::from_secs(1);

/// Plan that was on the screen.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Try {
    /// Number, from 1.
    pub number: usize,
    /// Number of the try that it was made from.
    pub parent: Option<usize>,
    /// The plan with its inputs.
    pub shown: Arc<ShownRun>,
    /// Its figures, and its inputs in words.
    pub worth: Worth,
    /// Layout in a few words.
    pub layout: String,
    /// Price of a device for an hour at that time.
    pub price: Option<f64>,
    /// Time of its arrival.
    at: Instant,
}

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// Tries, oldest first.
    pub tries: Vec<Try>,
    /// Row of the cursor; rows are newest first.
    pub cursor: usize,
    /// Numbers of the marked tries, oldest mark first; at most two.
    pub marked: Vec<usize>,
    /// Inputs without a plan before the first try, in words.
    pub refused: Option<String>,
    /// Number of the last try.
    last: usize,
}

impl State {
    /// Try of a number.
    pub(in crate::tui) fn get(&self, number: usize) -> Option<&Try> {
        self.tries.iter().find(|other| other.number == number)
    }

    /// Try of a row.
    pub(in crate::tui) fn row(&self, row: usize) -> Option<&Try> {
        self.tries.iter().rev().nth(row)
    }

    /// Stores a plan. One that it followed at once gives it its number.
    pub(in crate::tui) fn note(
        &mut self,
        (shown, worth): (Arc<ShownRun>, Worth),
        layout: String,
        price: Option<f64>,
        at: Instant,
    ) {
        let passing = |own: &&Try| at.duration_since(own.at) < SETTLED && !self.marked.contains(&own.number);
        // The first try stays: all others start from it.
        let passed = self.tries.last().filter(|own| own.parent.is_some()).filter(passing).is_some();
        let (number, parent) = match (passed, self.tries.last()) {
            (true, Some(own)) => (own.number, own.parent),
            (_, own) => (self.last + 1, own.map(|own| own.number)),
        };
        if passed {
            self.tries.pop();
        } else if self.cursor > 0 {
            // The cursor stays on its try.
            self.cursor += 1;
        }
        self.tries.push(Try { number, parent, shown, worth, layout, price, at });
        self.last = number;
        let surplus = self.tries.len().saturating_sub(MOST);
        self.tries.drain(..surplus);
        self.cursor = self.cursor.min(self.tries.len() - 1);
    }
}
