//! Costs of operators and the text of their file.
//!
//! By the roofline, the gradient of an operator takes twice its arithmetic and twice its traffic: gradients of inputs
//! and of parameters, or of both inputs. Kernels of real training have their own backward times. A gradient depends on
//! the gradients of all readers of the operator's output, and on the kept tensors.

use std::fmt::Write as _;

use super::{ForwardOperator, OperatorSettings, SamplePass, SavedForBackward, kernels::Kernels};
use plantui_core::{cluster::hardware::Hardware, workload::recipe::Recipe};

/// Workload to write.
pub(super) struct OperatorSketch<'a> {
    pub(super) operators: Vec<ForwardOperator>,
    pub(super) hardware: &'a Hardware,
    pub(super) settings: &'a OperatorSettings,
    /// Accelerator times, if training constants are known.
    pub(super) kernels: Option<Kernels>,
    pub(super) provenance: &'a str,
    pub(super) assumptions: Vec<String>,
    pub(super) recipe: Option<Recipe>,
}

/// Node of the file; times in seconds, sizes in bytes.
struct PlacementRow {
    id: usize,
    name: String,
    backward: bool,
    cpu_s: f64,
    accelerator_s: f64,
    size_bytes: f64,
    class: usize,
    layer: usize,
    output_bytes: f64,
    /// Ids of the nodes that read its output.
    readers: Vec<usize>,
}

/// Milliseconds with six significant digits: estimates are not more precise.
fn milliseconds(seconds: f64) -> f64 {
    format!("{:.5e}", seconds * 1e3).parse().expect("a printed number can be read")
}

impl OperatorSketch<'_> {
    /// Seconds of a pass on a CPU and on an accelerator.
    fn times(&self, operator: &ForwardOperator, backward: bool) -> (f64, f64) {
        let settings = self.settings;
        let passes = if backward { 2.0 } else { 1.0 };
        let (flop, bytes) = (passes * operator.flop, passes * self.traffic_bytes(operator));
        let cpu = (flop / settings.cpu_flops).max(bytes / settings.cpu_bandwidth);
        let accelerator = match &self.kernels {
            Some(kernels) => kernels.seconds(operator.kernel, self.traffic_bytes(operator), backward),
            None => (flop / (self.hardware.peak_flops.value * settings.mfu))
                .max(bytes / self.hardware.memory_bandwidth.value),
        };
        (cpu, accelerator)
    }

    /// Bytes that one forward pass reads and writes; input data costs nothing.
    fn traffic_bytes(&self, operator: &ForwardOperator) -> f64 {
        if operator.saved == SavedForBackward::NoGradient {
            return 0.0;
        }
        (self.read(operator) + operator.parameters_read + operator.outputs) * f64::from(self.settings.element_bytes)
    }

    /// Elements of an operator's inputs.
    fn read(&self, operator: &ForwardOperator) -> f64 {
        operator.inputs.iter().map(|&input| self.operators[input].outputs).sum()
    }

    fn rows(&self) -> Vec<PlacementRow> {
        let (n, element) = (self.operators.len(), f64::from(self.settings.element_bytes));
        // Gradients run in reverse order.
        let gradient = |at: usize| 2 * n - 1 - at;
        let mut rows: Vec<PlacementRow> = vec![];
        for (at, operator) in self.operators.iter().enumerate() {
            let (cpu_s, accelerator_s) = self.times(operator, false);
            let state = self.settings.state.per_parameter() * operator.parameters;
            rows.push(PlacementRow {
                id: at,
                name: operator.name.clone(),
                backward: false,
                cpu_s,
                accelerator_s,
                size_bytes: (state + operator.outputs * element).round(),
                class: at,
                layer: operator.layer,
                output_bytes: operator.outputs * element,
                readers: vec![],
            });
            for &input in &operator.inputs {
                rows[input].readers.push(at);
            }
        }
        if self.settings.pass == SamplePass::Inference {
            return rows;
        }
        for (at, operator) in self.operators.iter().enumerate().rev() {
            if operator.saved == SavedForBackward::NoGradient {
                continue;
            }
            let differentiable = |&&input: &&usize| self.operators[input].saved != SavedForBackward::NoGradient;
            let (cpu_s, accelerator_s) = self.times(operator, true);
            let id = gradient(at);
            rows.push(PlacementRow {
                id,
                name: format!("{} gradient", operator.name),
                backward: true,
                cpu_s,
                accelerator_s,
                size_bytes: 0.0,
                class: at,
                layer: operator.layer,
                output_bytes: operator
                    .inputs
                    .iter()
                    .filter(differentiable)
                    .map(|&i| self.operators[i].outputs)
                    .sum::<f64>()
                    * element,
                readers: operator.inputs.iter().filter(differentiable).map(|&input| gradient(input)).collect(),
            });
            // The loss is computed from the last operator's output.
            let read: &[usize] = match operator.saved {
                SavedForBackward::Inputs => &operator.inputs,
                SavedForBackward::Output => &[at],
                SavedForBackward::NoGradient | SavedForBackward::Nothing => &[],
            };
            for &kept in read {
                rows[kept].readers.push(id);
            }
            if at + 1 == n && operator.saved != SavedForBackward::Output {
                rows[at].readers.push(id);
            }
        }
        rows
    }

    /// Text of the file. Equal sketches give equal bytes.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let settings = self.settings;
        writeln!(out, "{{\n  \"provenance\": {},", quoted(self.provenance))?;
        let sentences: Vec<String> = self.assumptions.iter().map(|a| format!("\n    {}", quoted(a))).collect();
        writeln!(out, "  \"assumptions\": [{}\n  ],", sentences.join(","))?;
        if let Some(recipe) = &self.recipe {
            writeln!(out, "  \"recipe\": {},", recipe.line())?;
        }
        writeln!(out, "  \"maxSizePerFPGA\": {},", settings.memory_bytes)?;
        writeln!(out, "  \"maxFPGAs\": {},\n  \"maxCPUs\": {},", settings.accelerators, settings.cpus)?;
        let rows = self.rows();
        writeln!(out, "  \"nodes\": [")?;
        for (i, row) in rows.iter().enumerate() {
            write!(out, "    {{\"id\": {}, \"name\": {}, \"supportedOnFpga\": 1, ", row.id, quoted(&row.name))?;
            write!(out, "\"cpuLatency\": {}, ", milliseconds(row.cpu_s))?;
            write!(out, "\"fpgaLatency\": {}, ", milliseconds(row.accelerator_s))?;
            write!(out, "\"isBackwardNode\": {}, \"size\": {}, ", u8::from(row.backward), row.size_bytes)?;
            let end = if i + 1 < rows.len() { "," } else { "" };
            writeln!(out, "\"colorClass\": {}, \"layerId\": {}}}{end}", row.class, row.layer)?;
        }
        writeln!(out, "  ],\n  \"edges\": [")?;
        let edges: Vec<String> = rows
            .iter()
            .flat_map(|row| {
                let cost = milliseconds(row.output_bytes / settings.host_link);
                row.readers.iter().map(move |reader| {
                    format!("    {{\"sourceId\": {}, \"destId\": {reader}, \"cost\": {cost}}}", row.id)
                })
            })
            .collect();
        writeln!(out, "{}\n  ]\n}}", edges.join(",\n"))
    }
}
