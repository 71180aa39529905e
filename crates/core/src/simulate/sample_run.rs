//! Run of a single sample: the parts of a latency plan with their times and rows.

use crate::plan::{SingleSample, single_sample::SamplePart};

/// Rows and times of a single sample's parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleRun {
    /// Parts with their times, in milliseconds. Events refer to them by index.
    pub sample: SingleSample,
    /// By part: its nodes in words.
    pub names: Vec<String>,
    /// By part: its row within its stage.
    pub rows: Vec<u32>,
    /// By stage: true if it is on CPUs.
    pub cpus: Vec<bool>,
    /// Number of accelerators with stages.
    pub accelerators: usize,
}

/// Indices of the parts by start, then finish.
pub fn by_time(parts: &[SamplePart]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |part: &SamplePart| (part.start, part.finish());
        let (a, b) = (key(&parts[a]), key(&parts[b]));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    order
}
