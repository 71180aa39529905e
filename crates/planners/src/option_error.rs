//! Reasons why an option is refused.

use thiserror::Error;

use plantui_core::source::LoadError;

/// Reason why `--set name=value` is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// The planner has no such option.
    #[error("planner {planner} has no option `{name}`; its options: {known}")]
    Unknown {
        /// Id of the planner.
        planner: String,
        /// Name that was given.
        name: String,
        /// Names of the planner's options.
        known: String,
    },
    /// The option has moved to another planner.
    #[error("planner {planner} has no option `{name}`: plan for an engine with {instead}")]
    Moved {
        /// Id of the planner.
        planner: String,
        /// Name of the option.
        name: String,
        /// Settings to use instead.
        instead: String,
    },
    /// The option does not take this value.
    #[error("option {name} cannot be `{value}`; values: {known}")]
    Value {
        /// Name of the option.
        name: String,
        /// Value that was given.
        value: String,
        /// Allowed values.
        known: String,
    },
    /// The option has no effect on this workload.
    #[error("option {name} of planner {planner} does not apply to {workload}; leave it out")]
    Ignored {
        /// Id of the planner.
        planner: String,
        /// Name of the option.
        name: String,
        /// Kind of workload, in words.
        workload: String,
    },
    /// The planner needs this option, and it was not given.
    #[error("planner {planner} needs the option `{name}`; give it with --set {name}={example}")]
    Missing {
        /// Id of the planner.
        planner: String,
        /// Name of the option.
        name: String,
        /// Example of a value.
        example: String,
    },
    /// The workload cannot be planned with this value.
    #[error("{workload} cannot be planned with {name}={value}: {why}")]
    Unsuited {
        /// Name of the workload.
        workload: String,
        /// Name of the option.
        name: String,
        /// Value of the option.
        value: String,
        /// Obstacle, in words.
        why: String,
        /// Suggested repair.
        repair: String,
    },
    /// The file that an option names cannot be used.
    #[error(transparent)]
    File(#[from] LoadError),
    /// The setting is not of the form `name=value`.
    #[error("`{0}` is not a setting; write name=value, for example recompute=never")]
    Syntax(String),
}
