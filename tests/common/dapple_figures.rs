//! The published HPGO figures, kept as tables in `tests/figures`.

use plantui::{cluster::Machines, plan::SpeedupModel};

/// One run of the published planner.
#[derive(Debug, Clone)]
pub(crate) struct DappleCase {
    /// Path of the input below the reference folder.
    pub(crate) input: &'static str,
    /// Machines.
    pub(crate) machines: Machines,
    /// Samples in a batch.
    pub(crate) batch: u32,
    /// What the speed-up depends on.
    pub(crate) model: SpeedupModel,
    fields: Vec<&'static str>,
}

/// Columns of the figures.
const COLUMNS: [&str; 25] = [
    "case",
    "input",
    "machines",
    "batch",
    "profile_batch",
    "micro_batch",
    "optimizer_memory_scaling",
    "peak_activation_per_sample",
    "states",
    "all_reduce_s",
    "max_batch_of_a_device",
    "ga_size",
    "ga_optimal",
    "dp",
    "dp_p3_infinite",
    "dp_p3",
    "dp_p3_optimal",
    "dp_overlap",
    "hybrid",
    "hybrid_pipelines",
    "hybrid_microbatches",
    "hybrid_stages",
    "hybrid_event",
    "multistage",
    "multistage_stages",
];

impl DappleCase {
    /// A figure by its column.
    pub(crate) fn text(&self, column: &str) -> &'static str {
        self.fields[COLUMNS.iter().position(|name| *name == column).expect("a column")]
    }

    /// A figure that is a number; `None` where the published program crashed.
    pub(crate) fn number(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }
}

/// All runs.
pub(crate) fn dapple_cases() -> Vec<DappleCase> {
    let lines = include_str!("../figures/dapple.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let number = |i: usize| fields[i].parse::<f64>().unwrap();
            DappleCase {
                input: fields[1],
                machines: Machines::parse(fields[2]).unwrap(),
                batch: number(3) as u32,
                model: SpeedupModel {
                    profile_batch: number(4) as u32,
                    micro_batch: number(5) as u32,
                    optimizer_memory_scaling: number(6),
                    peak_activation_per_sample: number(7),
                    ..SpeedupModel::default()
                },
                fields,
            }
        })
        .collect()
}

/// One plan that the published planner looked at.
#[derive(Debug, Clone)]
pub(crate) struct DappleCandidate {
    /// The run it belongs to.
    pub(crate) case: usize,
    /// `dp4`, `straight2`, `bipartition`.
    pub(crate) kind: &'static str,
    /// The analytic speed-up; `None` where the published program crashed.
    pub(crate) speedup: Option<f64>,
    /// Pipelines side by side.
    pub(crate) pipelines: Option<u32>,
    /// Stages, written as in the table.
    pub(crate) stages: &'static str,
    /// The event estimate.
    pub(crate) event: Option<f64>,
}

/// All of them.
pub(crate) fn dapple_candidates() -> impl Iterator<Item = DappleCandidate> {
    let lines = include_str!("../figures/dapple-candidates.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        DappleCandidate {
            case: fields[0].parse().unwrap(),
            kind: fields[1],
            speedup: fields[2].parse().ok(),
            pipelines: fields[3].parse().ok(),
            stages: fields[5],
            event: fields[6].parse().ok(),
        }
    })
}
