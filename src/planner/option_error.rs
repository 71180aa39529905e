//! Why an option was refused.

use thiserror::Error;

use crate::source::LoadError;

/// Why `--set name=value` was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// The planner has no such option.
    #[error("planner {planner} has no option `{name}`; it takes {known}")]
    Unknown {
        /// The planner's id.
        planner: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Another planner has taken the option over.
    #[error("planner {planner} has no option `{name}`: plan for an engine with {instead}")]
    Moved {
        /// Id of the planner.
        planner: String,
        /// Name of the option.
        name: String,
        /// Settings to use.
        instead: String,
    },
    /// The option does not take this value.
    #[error("option {name} cannot be `{value}`; it takes {known}")]
    Value {
        /// The option.
        name: String,
        /// What was given.
        value: String,
        /// What it takes.
        known: String,
    },
    /// The option means nothing for this workload.
    #[error("option {name} of planner {planner} means nothing for {workload}; leave it out")]
    Unheard {
        /// The planner's id.
        planner: String,
        /// The option.
        name: String,
        /// What is planned, in words: a kind of workload.
        workload: String,
    },
    /// An option without which the planner cannot plan was not given.
    #[error("planner {planner} needs the option `{name}`; give it with --set {name}={example}")]
    Missing {
        /// The planner's id.
        planner: String,
        /// The option.
        name: String,
        /// A value as a user might give it.
        example: String,
    },
    /// The workload cannot be planned with this value.
    #[error("{workload} cannot be planned with {name}={value}: {why}")]
    Unsuited {
        /// The workload.
        workload: String,
        /// The option.
        name: String,
        /// Its value.
        value: String,
        /// What stands in the way.
        why: String,
        /// What to do about it.
        repair: String,
    },
    /// The file that an option names cannot be used.
    #[error(transparent)]
    File(#[from] LoadError),
    /// Not of the form `name=value`.
    #[error("`{0}` is no setting; write name=value, for example recompute=never")]
    Syntax(String),
}
