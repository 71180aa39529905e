//! Graph of a generated workload and the text of its file.
//!
//! A [`Sketch`] has names, edges and, for every node, its modes by degree. [`Sketch::text`] writes Piper's JSON with
//! one line for each mode. A divided tensor must be gathered when it leaves a stage. So the sync bytes of an edge equal
//! its own bytes at every degree above 1.

use std::fmt::Write as _;

use super::cost::{CostModel, ModeCost, NodePart};
use plantui_core::{
    cluster::Limits,
    workload::{
        piper::{RECOMPUTE, TRANSFORMER_LAYER, VANILLA},
        recipe::Recipe,
    },
};

/// Name of a node and, by degree, the costs of its modes.
pub(super) struct SketchNode {
    pub(super) name: String,
    /// `(degree, [(mode id, cost)])`.
    pub(super) degrees: Vec<(u32, Vec<(&'static str, ModeCost)>)>,
}

/// Workload to write.
pub(super) struct Sketch {
    pub(super) nodes: Vec<SketchNode>,
    /// Source, destination, bytes per microbatch.
    pub(super) edges: Vec<(usize, usize, f64)>,
    pub(super) limits: Limits,
    pub(super) provenance: String,
    pub(super) assumptions: Vec<String>,
    pub(super) recipe: Option<Recipe>,
    /// Cost of gathering a tensor within a machine, as a fraction of its bytes between machines; `None`: all bytes, as
    /// in the published profile.
    pub(super) gathered: Option<f64>,
}

/// Graph of a transformer: inputs, embedding, consecutive layers, head. Encoders feed a padding mask to every layer.
pub(super) fn transformer(costs: &CostModel<'_>) -> (Vec<SketchNode>, Vec<(usize, usize, f64)>) {
    let model = costs.model;
    let index = costs.index_bytes();
    let hidden = costs.hidden_bytes();
    let mut nodes = vec![];
    let mut edges = vec![];
    let mut add = |name: &str, part: NodePart| {
        let degrees = costs
            .settings
            .tensor_degrees
            .iter()
            .map(|&t| (t, vec![(VANILLA, costs.cost(part, t, false)), (RECOMPUTE, costs.cost(part, t, true))]))
            .collect();
        nodes.push(SketchNode { name: name.into(), degrees });
        nodes.len() - 1
    };
    // The published file lists a tensor after the first node that reads it. The same order makes ids comparable.
    let tokens = add("tokens", NodePart::Tensor(index));
    let typed = model.token_types > 0;
    let embedding = add("Embedding", NodePart::Embedding(if typed { 2.0 * index } else { index }));
    edges.push((tokens, embedding, index));
    if typed {
        let types = add("positions and types", NodePart::Tensor(index));
        edges.push((types, embedding, index));
    }
    let mut last = embedding;
    let mut mask = None;
    for _ in 0..model.layers {
        let layer = add(TRANSFORMER_LAYER, NodePart::Layer);
        edges.push((last, layer, hidden));
        if model.padding_mask {
            let mask = *mask.get_or_insert_with(|| add("attention mask", NodePart::Tensor(costs.mask_bytes())));
            edges.push((mask, layer, costs.mask_bytes()));
        }
        last = layer;
    }
    let head = add(model.head.name(), NodePart::Head);
    edges.push((last, head, hidden));
    (nodes, edges)
}

/// Time with six significant digits: estimates are not more precise, and short numbers are readable.
fn seconds(value: f64) -> f64 {
    format!("{value:.5e}").parse().expect("a printed number can be read")
}

impl Sketch {
    /// Text of the file. Equal sketches give equal bytes.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string cannot fail");
        text
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let Limits { devices, microbatches, .. } = self.limits;
        let (memory_bytes, bandwidth_bytes_per_s) = (self.limits.memory(), self.limits.bandwidth());
        writeln!(out, "{{\n  \"provenance\": {},", quoted(&self.provenance))?;
        let sentences: Vec<String> = self.assumptions.iter().map(|a| format!("\n    {}", quoted(a))).collect();
        writeln!(out, "  \"assumptions\": [{}\n  ],", sentences.join(","))?;
        if let Some(recipe) = &self.recipe {
            writeln!(out, "  \"recipe\": {},", recipe.line())?;
        }
        writeln!(out, "  \"maxDevices\": {devices},\n  \"maxMemoryPerDevice\": {memory_bytes},")?;
        writeln!(out, "  \"bandwidth\": {bandwidth_bytes_per_s},\n  \"mbsInBatch\": {microbatches},")?;
        writeln!(out, "  \"nodes\": [")?;
        let mut before = vec![vec![]; self.nodes.len()];
        let mut after = vec![vec![]; self.nodes.len()];
        for &(u, v, bytes) in &self.edges {
            before[v].push((u, bytes));
            after[u].push((v, bytes));
        }
        for (i, node) in self.nodes.iter().enumerate() {
            writeln!(out, "    {{\"id\": {i}, \"name\": {}, \"TMPCs\": {{", quoted(&node.name))?;
            for (j, (degree, modes)) in node.degrees.iter().enumerate() {
                writeln!(out, "      \"{degree}\": [")?;
                for (l, (id, cost)) in modes.iter().enumerate() {
                    let ModeCost { time_s, forward_s, parameters, memory_a, memory_b } = *cost;
                    write!(out, "        {{\"id\": {}, \"timePerSample\": {}, ", quoted(id), seconds(time_s))?;
                    write!(out, "\"forwardTimePerSample\": {}, ", seconds(forward_s))?;
                    write!(out, "\"parameterSize\": {}, ", parameters.round())?;
                    write!(out, "\"memoryUsageA\": {}, \"memoryUsageB\": {}, ", memory_a.round(), memory_b.round())?;
                    let sync = |neighbours: &[(usize, f64)]| {
                        let t = f64::from(*degree);
                        let bytes = |b: f64| match self.gathered {
                            _ if *degree == 1 => 0.0,
                            Some(share) => (b * share * (t - 1.0) / t).round(),
                            None => b,
                        };
                        let list: Vec<String> =
                            neighbours.iter().map(|&(v, b)| format!("\"{v}\": {}", bytes(b))).collect();
                        format!("{{{}}}", list.join(", "))
                    };
                    write!(out, "\"syncTimeFw\": {}, ", sync(&before[i]))?;
                    writeln!(out, "\"syncTimeBw\": {}}}{}", sync(&after[i]), comma(l, modes.len()))?;
                }
                writeln!(out, "      ]{}", comma(j, node.degrees.len()))?;
            }
            writeln!(out, "    }}}}{}", comma(i, self.nodes.len()))?;
        }
        writeln!(out, "  ],\n  \"edges\": [")?;
        for (i, (u, v, bytes)) in self.edges.iter().enumerate() {
            let end = comma(i, self.edges.len());
            writeln!(out, "    {{\"sourceId\": {u}, \"destId\": {v}, \"communicationCost\": {bytes}}}{end}")?;
        }
        writeln!(out, "  ]\n}}")
    }
}

/// Separator after element `i` of `n`.
fn comma(i: usize, n: usize) -> &'static str {
    if i + 1 < n { "," } else { "" }
}
