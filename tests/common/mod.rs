//! What several test files share.

pub(crate) mod answered;
pub(crate) mod dapple_figures;
pub(crate) mod engine_demands;
pub(crate) mod engine_rules;
pub(crate) mod every_plan;
pub(crate) mod figures;
pub(crate) mod latency_input;
pub(crate) mod on_topology;
pub(crate) mod pase_figures;
pub(crate) mod random_layers;
pub(crate) mod random_operators;
pub(crate) mod random_piper;
pub(crate) mod random_placement;
pub(crate) mod reference;
pub(crate) mod trace_rules;
