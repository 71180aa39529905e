//! cli (in work).
