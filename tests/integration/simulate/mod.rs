//! The simulator: plans in it, facts known of schedules, and traces, over drawn pipelines.

mod facts;
mod plans;
mod simulated;
mod trace;
