//! The library, as a program that uses it would: planners against published figures, brute force and properties; formats;
//! studies; the simulator; exports.

#[path = "../common/mod.rs"]
mod common;
mod convert;
mod dapple_exhaustive;
mod dapple_format;
mod dapple_golden;
mod dapple_properties;
mod dapple_states;
mod engine_plans;
mod engines;
mod explain;
mod export;
mod generated_profile;
mod hugging_face;
mod inputs;
mod latency_planners;
mod lint;
mod lint_placement;
mod load;
mod load_mutations;
mod load_placement;
#[cfg(feature = "milp")]
mod milp;
mod operators_load;
mod pase_brute;
mod pase_golden;
mod pase_paper;
mod pase_properties;
mod piper_exhaustive;
mod piper_golden;
mod piper_properties;
mod placement_brute;
mod placement_golden;
mod placement_ip;
mod placement_ip_golden;
mod placement_latency;
mod placement_partitioners;
mod plan_edit;
mod simulate;
mod sweep;
mod sweep_papers;
mod training_calibrate;
mod training_program;
mod training_terms;
mod truth;
