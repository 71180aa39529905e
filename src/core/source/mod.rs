//! What is wrong with a file, and where: one error for every format, with the line or the JSON path and the repair.

pub mod error;
pub(crate) mod locate;
pub(crate) mod strict;
pub(crate) mod syntax;

pub use error::LoadError;
