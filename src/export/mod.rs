//! How results leave: one file per output.

pub mod chrome_trace;
pub mod engine;
pub mod formats;
pub mod fullness;
pub mod jax_sharding;
pub mod operator_dot;
pub mod pipedream_graph;
pub mod pipeline_dot;
pub mod piper_result;
pub mod plan_csv;
pub mod plan_json;
pub mod plan_svg;
pub mod rank_file;
pub mod split;
pub mod sweep_csv;
pub mod sweep_svg;
pub mod topology;
#[cfg(feature = "screen")]
pub mod whole_file;
pub(crate) mod xml;
