//! Writers of results, one file per output format.

#![forbid(unsafe_code)]

pub mod chrome_trace;
pub mod drawing;
pub mod engine;
pub mod formats;
pub mod fullness;
pub mod jax_sharding;
pub mod operator_dot;
pub(crate) mod pipedream_graph;
pub(crate) mod pipeline_dot;
pub(crate) mod piper_result;
pub(crate) mod plan_csv;
pub mod plan_json;
pub(crate) mod plan_svg;
pub(crate) mod rank_file;
pub mod split;
pub mod sweep_csv;
pub mod sweep_svg;
pub mod topology;
pub mod whole_file;
pub mod xml;
