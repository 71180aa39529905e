//! Error type for every input format: the problem, its line or JSON path, and the repair.

pub mod error;
pub(crate) mod locate;
pub(crate) mod strict;
pub(crate) mod syntax;

pub use error::LoadError;
