//! Bugs of planners as values: a wrong claim, or a panic.
//!
//! Code that shares nothing with the planners checks every plan ([`check`](plantui_core::plan)). If the two disagree, one of
//! them has a bug. The caller decides how to react: the library continues, the command line reports it and exits with
//! its own code, a comparison shows the other planners.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use thiserror::Error;

use super::Planner;

/// Advice to the user after a [`Fault`].
pub const REPORT: &str = concat!(
    "your input is not at fault: please report this message, the command and the workload at ",
    env!("CARGO_PKG_REPOSITORY"),
    "/issues"
);

/// Error of a planner that no input justifies.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Fault {
    /// The independent check finds another value for the plan.
    #[error("planner {planner} claims {claimed} {unit}, but the check finds {value} {unit}")]
    Claim {
        /// Id of the planner.
        planner: &'static str,
        /// Claimed value; NaN if the planner states none.
        claimed: f64,
        /// Value that the check finds.
        value: f64,
        /// Unit of both values.
        unit: &'static str,
    },
    /// The plan is invalid.
    #[error("planner {planner} claims a valid plan, but the check finds: {violation}")]
    Rule {
        /// Id of the planner.
        planner: &'static str,
        /// The first rule that is broken.
        violation: String,
    },
    /// The planner panicked.
    #[error("planner {planner} panicked: {message}")]
    Panic {
        /// Id of the planner.
        planner: &'static str,
        /// Message of the panic.
        message: String,
    },
}

/// Runs work in which a planner may panic.
///
/// # Errors
/// [`Fault::Panic`].
pub fn guarded<T>(planner: &(impl Planner + ?Sized), work: impl FnOnce() -> T) -> Result<T, Fault> {
    // State that the work may have left inconsistent is not used again.
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|payload| Fault::Panic { planner: planner.info().id, message: panic_message(payload.as_ref()) })
}

/// Returns the message of a panic.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "no message".into())
}
