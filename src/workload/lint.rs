//! Findings about a profile that will mislead a planner.
