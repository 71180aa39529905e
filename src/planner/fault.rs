//! A planner's mistake as a value: what it claims is not so, or it fell over.
//!
//! Planners are checked by code that shares nothing with them ([`check`](crate::plan)). Where the two disagree one of
//! them has a bug, and whoever called the planner decides what to do about it: a library goes on, the command line says it
//! and ends with a code of its own, a comparison shows the other planners.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use thiserror::Error;

use super::Planner;

/// What to do about a [`Fault`].
pub const REPORT: &str =
    "it is no fault of your input: please report it with these words, the command and the workload";

/// What a planner did that no input excuses.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Fault {
    /// The independent check finds its plan to be worth something else.
    #[error("planner {planner} claims {claimed} {unit}, its plan is worth {value} {unit}")]
    Claim {
        /// Its id.
        planner: &'static str,
        /// What it says; not a number where it says nothing.
        claimed: f64,
        /// What the check finds.
        value: f64,
        /// Unit of both.
        unit: &'static str,
    },
    /// Its plan is not valid.
    #[error("planner {planner} claims that its plan keeps every rule, and it does not: {violation}")]
    Rule {
        /// Its id.
        planner: &'static str,
        /// The first rule that is broken.
        violation: String,
    },
    /// It panicked.
    #[error("planner {planner} panicked: {message}")]
    Panic {
        /// Its id.
        planner: &'static str,
        /// What the panic said.
        message: String,
    },
}

/// Does what a planner may panic in.
///
/// # Errors
/// [`Fault::Panic`].
pub(crate) fn guarded<T>(planner: &(impl Planner + ?Sized), work: impl FnOnce() -> T) -> Result<T, Fault> {
    // Nothing that the work may have left half done is looked at again.
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|payload| Fault::Panic { planner: planner.info().id, message: panic_message(payload.as_ref()) })
}

/// What a panic said.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "no message was left".into())
}
