//! State of the form for the least value of a limit that reaches a goal.

use std::sync::Arc;

use tui_input::Input;

use crate::{
    cluster::LimitKind,
    study::seek::{SeekProbe, SeekQuery, SeekResult},
};

/// Field of the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// Limit to minimise.
    Least,
    /// Figure of the goal.
    Figure,
    /// Bound on the figure (at most or at least).
    Value,
}

/// The form and its results.
#[derive(Debug, Clone)]
pub(super) struct AskForm {
    /// Limits to choose from.
    pub(super) kinds: Vec<LimitKind>,
    /// Index of the chosen limit.
    pub(super) kind: usize,
    /// Figures to choose from.
    pub(super) figures: Vec<&'static str>,
    /// Index of the chosen figure.
    pub(super) figure: usize,
    /// Typed value with its unit. Its sign follows from the figure.
    pub(super) value: Input,
    /// Field that receives the keys.
    pub(super) field: Field,
    /// Error in the goal.
    pub(super) error: Option<String>,
    /// Query that is running or answered.
    pub(super) question: Option<SeekQuery>,
    /// Re-plans so far, by ascending value.
    pub(super) curve: Vec<SeekProbe>,
    /// The answer.
    pub(super) sought: Option<Arc<SeekResult>>,
}

impl AskForm {
    /// Sign between figure and value: at least for figures where more is better.
    pub(super) fn sign(&self) -> &'static str {
        if matches!(self.figures[self.figure], "throughput" | "speedup" | "tokens_per_s" | "mfu") { ">=" } else { "<=" }
    }

    /// The goal as the command line writes it.
    pub(super) fn goal(&self) -> String {
        format!("{}{}{}", self.figures[self.figure], self.sign(), self.value.value().trim())
    }

    /// Flags of `plantui seek` for the same query.
    pub(super) fn call(&self) -> String {
        let least = self.kinds[self.kind].flag().trim_start_matches('-');
        format!("--least {least} --until '{}'", self.goal())
    }
}
