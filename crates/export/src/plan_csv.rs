//! Plan as a table with a row per node, for spreadsheets and scripts.
//!
//! RFC 4180: fields with commas, quotes or line ends are quoted, quotes doubled. Times are seconds per sample, memory
//! is bytes per device.

use std::fmt::Write;

use plantui_core::{
    plan::{Plan, Score},
    workload::Workload,
};

/// Columns.
const HEADER: &str =
    "stage,data_parallel,tensor_parallel,devices,node,name,choice,compute_s,communication_s,sync_s,memory_bytes";

/// Table with its header.
pub(crate) fn to_csv(workload: &Workload, plan: &Plan, score: &Score) -> String {
    let mut text = format!("{HEADER}\n");
    for (i, stage) in plan.stages.iter().enumerate() {
        let devices: Vec<String> = stage.devices.iter().map(ToString::to_string).collect();
        let scores = score.stages.get(i).map_or(&[][..], |stage| &stage.nodes);
        for (place, &node) in stage.nodes.iter().enumerate() {
            let (id, name) = (workload.nodes[node].id, workload.nodes[node].name.as_deref().unwrap_or_default());
            let cost = scores.get(place).copied().unwrap_or_default();
            let choice = stage.choices.get(place).map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(
                text,
                "{},{},{},{},{id},{},{},{},{},{},{}",
                i + 1,
                stage.data_parallel,
                stage.tensor_parallel,
                field(&devices.join(" ")),
                field(name),
                field(&choice),
                cost.compute_s,
                cost.communication_s,
                cost.sync_s,
                cost.memory_bytes,
            );
        }
    }
    text
}

fn field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field("plain text"), "plain text");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
