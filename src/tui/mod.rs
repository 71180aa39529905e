//! tui (in work).
