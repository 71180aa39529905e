//! Tries: the plans that were on the screen, unchanged by what came after.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::tui::{changes::Worth, shown::ShownRun, stored_session::StoredSession};

/// Most tries.
const MOST: usize = 50;
/// Most tries that outlive the program, for each workload.
const MOST_KEPT: usize = 20;
/// A plan that stays shorter was on the way to the next one.
const SETTLED: Duration = Duration::from_secs(1);

/// Plan that was on the screen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::tui) struct Try {
    /// Number, from 1.
    pub number: usize,
    /// Number of the try that it was made from.
    pub parent: Option<usize>,
    /// Source of its workload, and its name.
    pub source: String,
    /// Name of its workload.
    pub name: String,
    /// Tokens of a sample of a model to be trained.
    pub tokens: Option<f64>,
    /// Its figures, and its inputs in words.
    pub worth: Worth,
    /// Memory of the fullest device, bytes.
    pub memory_bytes: f64,
    /// Number of devices that it uses.
    pub devices: u32,
    /// Layout in a few words.
    pub layout: String,
    /// Price of a device for an hour at that time.
    pub price: Option<f64>,
    /// True if it was edited by hand.
    pub edited: bool,
    /// True if it breaks a limit.
    #[serde(default)]
    pub broken: bool,
    /// Inputs that were changed, as of a session.
    pub inputs: StoredSession,
    /// The plan with its inputs; `None` for a try of an earlier session.
    #[serde(skip)]
    pub shown: Option<Arc<ShownRun>>,
    /// Time of its arrival in this session.
    #[serde(skip)]
    pub at: Option<Instant>,
}

impl PartialEq for Try {
    /// Equality of what is stored.
    fn eq(&self, other: &Self) -> bool {
        (self.number, &self.source, &self.worth, &self.inputs)
            == (other.number, &other.source, &other.worth, &other.inputs)
    }
}

impl Try {
    /// True if another try is the same plan from the same inputs.
    fn repeats(&self, other: &Try) -> bool {
        (&self.source, &self.worth, &self.layout, self.edited)
            == (&other.source, &other.worth, &other.layout, other.edited)
    }
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

    /// Last tries of a workload.
    pub(in crate::tui) fn of(&self, source: &str) -> Vec<Try> {
        let own: Vec<Try> = self.tries.iter().filter(|own| own.source == source).cloned().collect();
        own[own.len().saturating_sub(MOST_KEPT)..].to_vec()
    }

    /// Appends the stored tries of a workload, unless some of it are there.
    pub(in crate::tui) fn restore(&mut self, tries: &[Try], source: &str) {
        if self.tries.iter().any(|own| own.source == source) {
            return;
        }
        let place = |number: usize| tries.iter().position(|own| own.number == number);
        let before = self.last;
        self.tries.extend(tries.iter().enumerate().map(|(at, own)| Try {
            number: before + at + 1,
            parent: own.parent.and_then(place).map(|at| before + at + 1),
            ..own.clone()
        }));
        self.last += tries.len();
        self.crop();
    }

    /// Stores a plan. One that it followed at once gives it its number.
    pub(in crate::tui) fn note(&mut self, own: Try) {
        if let Some(last) = self.tries.last_mut().filter(|last| last.repeats(&own)) {
            (last.shown, last.at) = (own.shown, own.at);
            return;
        }
        let passing = |last: &&Try| {
            let passed = own.at.zip(last.at).is_some_and(|(now, before)| now.duration_since(before) < SETTLED);
            passed && !self.marked.contains(&last.number)
        };
        // The first try stays: all others start from it.
        let passed = self.tries.last().filter(|last| last.parent.is_some()).filter(passing).is_some();
        let (number, parent) = match (passed, self.tries.last()) {
            (true, Some(last)) => (last.number, last.parent),
            (_, last) => (self.last + 1, last.map(|last| last.number)),
        };
        if passed {
            self.tries.pop();
        } else if self.cursor > 0 {
            // The cursor stays on its try.
            self.cursor += 1;
        }
        self.tries.push(Try { number, parent, ..own });
        self.last = number;
        self.crop();
    }

    fn crop(&mut self) {
        let surplus = self.tries.len().saturating_sub(MOST);
        self.tries.drain(..surplus);
        self.cursor = self.cursor.min(self.tries.len().saturating_sub(1));
    }
}
