//! export (in work).
