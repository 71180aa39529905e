//! Processes and threads of a single sample's trace: a process for each accelerator, shared by its subgraphs, and one
//! for each further row of parts that run at the same time.

use std::collections::BTreeMap;

use plantui_core::{
    plan::Plan,
    simulate::{Pipeline, SampleRun},
};

/// Process of every row, by stage, in the form of a device list.
pub(super) fn processes(plan: &Plan, pipeline: &Pipeline, run: &SampleRun) -> Vec<Vec<Vec<u32>>> {
    let accelerator = |stage: usize| plan.stages[stage].devices.first().copied().filter(|_| !run.cpus[stage]);
    let mut next = (0..plan.stages.len()).filter_map(accelerator).max().map_or(0, |last| last.saturating_add(1));
    let mut fresh = || {
        next = next.saturating_add(1);
        next - 1
    };
    let rows = |stage: usize| {
        let row = |row: u32| vec![accelerator(stage).filter(|_| row == 0).unwrap_or_else(&mut fresh)];
        (0..pipeline.stages[stage].replicas).map(row).collect()
    };
    (0..plan.stages.len()).map(rows).collect()
}

/// Names of the processes.
pub(super) fn names(plan: &Plan, run: &SampleRun, processes: &[Vec<Vec<u32>>]) -> BTreeMap<u32, String> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    for (stage, rows) in processes.iter().enumerate() {
        for (row, process) in rows.iter().enumerate() {
            let name = names.entry(process[0]).or_insert_with(|| match plan.stages[stage].devices.first() {
                Some(device) if !run.cpus[stage] => format!("GPU{device}"),
                _ => "CPU".to_string(),
            });
            *name += &format!(" stage{}", stage + 1);
            if row > 0 || run.cpus[stage] {
                *name += &format!(" row{row}");
            }
        }
    }
    names
}
