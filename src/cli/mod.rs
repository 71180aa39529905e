//! cli (in work).

pub mod generate;
