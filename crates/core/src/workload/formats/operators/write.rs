//! Writes operator graphs. Reading a file back gives the same graph.

use serde_json::{Map, Value, json};

use super::SCHEMA;
use crate::{
    cluster::GivenLimits,
    workload::operators::{Input, Operator, OperatorKind, OperatorProfile},
};

/// Content of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorFile {
    /// Names by operator.
    pub names: Vec<String>,
    /// Operators; their ids are their positions.
    pub profile: OperatorProfile,
    /// Limits to write.
    pub limits: GivenLimits,
    /// Command that makes the file.
    pub provenance: String,
    /// Assumptions of that command.
    pub assumptions: Vec<String>,
}

/// Text of a file, with one operator per line.
pub fn text(file: &OperatorFile) -> String {
    let mut head = Map::new();
    head.insert("schema".into(), json!(SCHEMA));
    head.insert("provenance".into(), json!(file.provenance));
    head.insert("assumptions".into(), json!(file.assumptions));
    let limits = &file.limits;
    head.extend(limits.devices().map(|devices| ("devices".to_string(), json!(devices))));
    for (field, value) in [
        ("memory", limits.memory_bytes()),
        ("flops", limits.flops_per_s()),
        ("bandwidth", limits.bandwidth_bytes_per_s()),
    ] {
        head.extend(value.map(|value| (field.to_string(), json!(value))));
    }
    head.insert("cutoff".into(), json!(file.profile.cutoff));
    let fields: Vec<String> = head.iter().map(|(field, value)| format!("  {}: {value}", json!(field))).collect();
    let operators = file.profile.operators.iter().zip(&file.names).enumerate();
    let lines: Vec<String> =
        operators.map(|(id, (operator, name))| format!("    {}", line(id, operator, name))).collect();
    format!("{{\n{},\n  \"operators\": [\n{}\n  ]\n}}\n", fields.join(",\n"), lines.join(",\n"))
}

fn line(id: usize, operator: &Operator, name: &str) -> Value {
    let input = |input: &Input| match input.source {
        None => json!({"shape": input.tensor.shape}),
        Some(source) if source.output == 0 => json!({"from": source.node}),
        Some(source) => json!({"from": source.node, "output": source.output}),
    };
    let inputs: Vec<Value> = operator.inputs.iter().map(input).collect();
    let mut object = Map::new();
    object.insert("id".into(), json!(id));
    object.insert("name".into(), json!(name));
    object.insert("kind".into(), json!(operator.kind_name()));
    object.insert("inputs".into(), Value::Array(inputs));
    object.extend(attributes(&operator.kind).into_iter().map(|(field, value)| (field.to_string(), value)));
    Value::Object(object)
}

fn attributes(kind: &OperatorKind) -> Vec<(&'static str, Value)> {
    match kind {
        OperatorKind::Convolution { filters, window, stride, padding, pointwise } => vec![
            ("filters", json!(filters)),
            ("window", json!(window)),
            ("stride", json!(stride)),
            ("padding", json!(padding)),
            ("pointwise", json!(pointwise)),
        ],
        OperatorKind::Pooling { window, stride, padding } => {
            vec![("window", json!(window)), ("stride", json!(stride)), ("padding", json!(padding))]
        }
        OperatorKind::Normalisation { axis }
        | OperatorKind::Softmax { axis }
        | OperatorKind::Concatenation { axis } => vec![("axis", json!(axis))],
        OperatorKind::Elementwise { pointwise } => vec![("pointwise", json!(pointwise))],
        OperatorKind::Unravel { shape } => vec![("shape", json!(shape))],
        OperatorKind::Dense { units, pointwise } => vec![("units", json!(units)), ("pointwise", json!(pointwise))],
        OperatorKind::Einsum { equation, pointwise } => {
            vec![("equation", json!(equation)), ("pointwise", json!(pointwise))]
        }
        OperatorKind::Mean { axes } => vec![("axes", json!(axes))],
        OperatorKind::Lstm { layers, units } => vec![("layers", json!(layers)), ("units", json!(units))],
        OperatorKind::Ravel | OperatorKind::Stack | OperatorKind::Unstack | OperatorKind::CrossEntropy => vec![],
    }
}
