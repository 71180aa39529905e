//! plantui's own JSON of operator graphs, the input of PaSE.
//!
//! ```text
//! { "schema": "plantui.operators/1", "devices": 8, "memory": bytes, "flops": per s, "bandwidth": bytes per s, "cutoff": 4,
//!   "operators": [
//!     {"id": 0, "name": "conv1", "kind": "conv", "inputs": [{"shape": [128, 3, 227, 227]}], "filters": 96,
//!      "window": [11, 11], "stride": 4, "padding": [0, 0], "pointwise": 1},
//!     {"id": 1, "kind": "norm", "inputs": [{"from": 0}], "axis": 0} ] }
//! ```
//!
//! Every operator comes after the operators that it reads from. An input is either a tensor from outside or an output
//! of another operator. A tensor from outside has a `shape`: data, whose axis 0 is the batch, or weights as second
//! operand of an `einsum`. An output is given by `from` and `output` (default 0). Shapes of all other tensors are
//! derived. Kinds and their fields:
//!
//! | kind | fields | inputs |
//! |---|---|---|
//! | `conv` | `filters`, `window`, `stride` (1), `padding` (0, 0), `pointwise` (0) | batch, channels, rows, columns |
//! | `pool` | `window`, `stride`, `padding` | the same |
//! | `norm`, `softmax` | `axis` | any; axis 0 of a norm means batch normalisation |
//! | `softmax-cross-entropy` | | any, classes last |
//! | `elementwise` | `pointwise` | two of one shape |
//! | `concat` | `axis` | one or more |
//! | `ravel` | | any |
//! | `unravel` | `shape` | one axis |
//! | `stack` | | one or more of one shape |
//! | `unstack` | | any; one output per slice of axis 0 |
//! | `dense` | `units`, `pointwise` | features last |
//! | `einsum` | `equation`, `pointwise` | two: the generic matrix multiplication |
//! | `reduce-mean` | `axes` | any |
//! | `lstm` | `layers`, `units` | batch, sequence, units |
//!
//! `pointwise` counts pointwise operations fused into an operator. Limits and `cutoff` are optional. `cutoff` is the
//! minimum number of elements that a split leaves of a dimension (default 1).

mod attributes;
mod write;

use rustc_hash::FxHashMap;
use serde::Deserialize;

use attributes::RawOperator;

use super::{
    format::WorkloadFormat,
    reader::{OwnField, WorkloadReader, parse, unknown_fields},
};
use crate::{
    cluster::{GivenLimits, LimitKind},
    graph::Dag,
    source::strict::Object,
    source::{
        LoadError,
        error::{printable, single_line},
    },
    workload::{
        node::{Node, NodeId},
        node_index::NodeIndex,
        operators::{InputSpec, Operator, OperatorProfile, Source},
        profiled::{Profile, Provenance, Workload},
    },
};

pub use write::{OperatorFile, text};

/// Required value of `schema`.
pub const SCHEMA: &str = "plantui.operators/1";

/// Maximum number of devices in a file.
const MAX_DEVICES: f64 = 10_000.0;
/// Maximum number of axes of a tensor from outside.
const MAX_AXES: usize = 15;
/// Maximum extent of an axis.
const MAX_EXTENT: f64 = 1e9;
/// Maximum number of elements of an iteration space.
const MAX_ELEMENTS: f64 = 1e24;
/// Maximum number of operators.
const MAX_OPERATORS: usize = 100_000;

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawOperatorFile {
    /// `plantui.operators/1`.
    schema: Option<String>,
    /// Number of devices.
    devices: Option<f64>,
    /// Memory of a device, bytes.
    memory: Option<f64>,
    /// Operations per second of a device.
    flops: Option<f64>,
    /// Bandwidth between devices, bytes per second.
    bandwidth: Option<f64>,
    /// Least number of elements that a split leaves of a dimension.
    cutoff: Option<f64>,
    /// Operators; each comes after those that it reads from.
    operators: Vec<Object<RawOperator>>,
    /// Command that made the file.
    provenance: Option<OwnField<String>>,
    /// Assumptions of the figures.
    assumptions: Option<OwnField<Vec<String>>>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RawInput {
    /// Extents of a tensor from outside.
    shape: Option<Vec<f64>>,
    /// `id` of the operator whose output this is.
    from: Option<f64>,
    /// Index of the output, for an operator with several.
    output: Option<f64>,
}

/// Known fields at the top level; all others are listed as unknown.
const TOP_LEVEL: [&str; 9] =
    ["schema", "devices", "memory", "flops", "bandwidth", "cutoff", "operators", "provenance", "assumptions"];

/// Reads and validates a file of this format. `source` is its name in messages, `name` its name on the screen.
///
/// # Errors
/// [`LoadError`] that names file, line, JSON path and repair. Rules are checked in the order of the file.
pub fn read(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let raw: RawOperatorFile = parse(text, source)?;
    let reader = WorkloadReader { source, text };
    if let Some(schema) = raw.schema.as_deref().filter(|&schema| schema != SCHEMA) {
        let problem = format!("is `{}`", printable(schema));
        return Err(reader.error("schema", problem, format!("this version reads {SCHEMA}")));
    }
    let whole = |value: Option<f64>, field: &str, most: f64| match value {
        Some(v) if v.fract() != 0.0 || !(1.0..=most).contains(&v) => {
            Err(reader.error(field, format!("is {v}, must be a whole number from 1 to {most}"), ""))
        }
        v => Ok(v.map(|v| v as u32)),
    };
    let limits = GivenLimits::default()
        .maybe(LimitKind::Devices, whole(raw.devices, "devices", MAX_DEVICES)?)
        .maybe(LimitKind::Memory, reader.limit(raw.memory, "memory")?)
        .maybe(LimitKind::Flops, reader.limit(raw.flops, "flops")?)
        .maybe(LimitKind::Bandwidth, reader.limit(raw.bandwidth, "bandwidth")?);
    let cutoff = whole(raw.cutoff, "cutoff", MAX_EXTENT)?.unwrap_or(1);
    let (nodes, operators) = read_operators(&reader, &raw.operators)?;
    let profile = OperatorProfile { operators, cutoff };
    let edges =
        profile.links().iter().map(|link| (link.producer.index() as u32, link.consumer.index() as u32)).collect();
    let dag = Dag::new(nodes.len(), edges)
        .map_err(|error| LoadError::file(source, error.to_string(), "list operators in the order of the data"))?;
    let assumptions = raw.assumptions.and_then(OwnField::known).unwrap_or_default();
    Ok(Workload {
        name: printable(name),
        source: source.into(),
        format: WorkloadFormat::Operators,
        nodes,
        dag,
        profile: Profile::Operators(profile),
        limits,
        provenance: raw.provenance.and_then(OwnField::known).map(|made_by| Provenance {
            made_by: single_line(&made_by),
            assumptions: assumptions.iter().map(|a| single_line(a)).collect(),
        }),
        recipe: None,
        unknown_fields: unknown_fields(text, &TOP_LEVEL),
    })
}

fn read_operators(
    reader: &WorkloadReader<'_>,
    raw: &[Object<RawOperator>],
) -> Result<(Vec<Node>, Vec<Operator>), LoadError> {
    if raw.is_empty() || raw.len() > MAX_OPERATORS {
        let problem = format!("has {} operators, must have 1 to {MAX_OPERATORS}", raw.len());
        return Err(reader.error("operators", problem, ""));
    }
    let mut nodes = Vec::with_capacity(raw.len());
    let mut operators: Vec<Operator> = Vec::with_capacity(raw.len());
    let mut index: FxHashMap<NodeId, usize> = FxHashMap::default();
    for (i, Object(operator)) in raw.iter().enumerate() {
        let place = |field: &str| format!("operators[{i}].{field}");
        let id = NodeId(reader.integer(operator.id, || place("id"))?);
        if let Some(first) = index.insert(id, i) {
            let problem = format!("is {id}, which operators[{first}] has already");
            return Err(reader.error(&place("id"), problem, "give every operator an id of its own"));
        }
        let kind = operator.operator_kind(reader, &place)?;
        let mut given = Vec::with_capacity(operator.inputs.len());
        for (slot, Object(input)) in operator.inputs.iter().enumerate() {
            given.push(read_input(reader, input, &place(&format!("inputs[{slot}]")), i, &operators, &index)?);
        }
        let built = Operator::new(kind, &given).map_err(|problem| {
            let repair = "mend the operator, or the operators it reads from";
            reader.error(&format!("operators[{i}]"), problem.to_string(), repair)
        })?;
        if let Some(tensor) = built.outputs.iter().find(|tensor| tensor.shape.iter().any(|&e| e as f64 > MAX_EXTENT))
            && !built.contiguous()
        {
            let problem = format!("writes a tensor of shape {:?}", tensor.shape);
            return Err(reader.error(
                &format!("operators[{i}]"),
                problem,
                format!("extents are at most {MAX_EXTENT:e}"),
            ));
        }
        if built.dims.iter().map(|dim| dim.extent as f64).product::<f64>() > MAX_ELEMENTS {
            let problem = format!("has an iteration space of more than {MAX_ELEMENTS:e} elements");
            return Err(reader.error(&format!("operators[{i}]"), problem, "give smaller extents"));
        }
        operators.push(built);
        nodes.push(Node { id, name: operator.name.as_deref().map(printable).filter(|name| !name.is_empty()) });
    }
    Ok((nodes, operators))
}

/// Reads one input of operator `at`.
fn read_input(
    reader: &WorkloadReader<'_>,
    raw: &RawInput,
    place: &str,
    at: usize,
    operators: &[Operator],
    index: &FxHashMap<NodeId, usize>,
) -> Result<InputSpec, LoadError> {
    let field = |name: &str| format!("{place}.{name}");
    match (&raw.shape, raw.from) {
        (Some(shape), None) => {
            if raw.output.is_some() {
                return Err(reader.error(&field("output"), "is given for a tensor from outside", "remove it"));
            }
            if shape.len() > MAX_AXES {
                let problem = format!("has {} axes, may have {MAX_AXES}", shape.len());
                return Err(reader.error(&field("shape"), problem, ""));
            }
            let extents = shape.iter().enumerate();
            let extents = extents.map(|(axis, &extent)| extent_of(reader, extent, &field(&format!("shape[{axis}]"))));
            Ok(InputSpec::outside(extents.collect::<Result<_, _>>()?))
        }
        (None, Some(from)) => {
            let id = NodeId(reader.integer(from, || field("from"))?);
            let Some(&node) = index.get(&id) else {
                let repair = "operators stand in the order of the data: check the id, or move that operator up";
                return Err(reader.error(&field("from"), format!("is {id}, which no operator before has"), repair));
            };
            if node == at {
                return Err(reader.error(&field("from"), format!("is {id}, the operator itself"), "remove it"));
            }
            let output = reader.integer(raw.output.unwrap_or(0.0), || field("output"))?;
            let source = usize::try_from(output).ok().map(|output| Source { node: NodeIndex::new(node), output });
            source.and_then(|source| InputSpec::output(operators, source)).ok_or_else(|| {
                let count = operators[node].outputs.len();
                let problem = format!("is {output}, but operator {id} writes {count}, counted from 0");
                reader.error(&field("output"), problem, "")
            })
        }
        _ => Err(reader.error(place, "must have either `shape` or `from`", "`from` is the id of an operator")),
    }
}

/// Reads an extent of a tensor.
fn extent_of(reader: &WorkloadReader<'_>, value: f64, place: &str) -> Result<u64, LoadError> {
    if value.fract() == 0.0 && (1.0..=MAX_EXTENT).contains(&value) {
        return Ok(value as u64);
    }
    Err(reader.error(place, format!("is {value}, must be a whole number from 1 to {MAX_EXTENT:e}"), ""))
}

/// JSON Schema of the format.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> crate::schemas::DocumentSchema {
    crate::schemas::DocumentSchema::read::<RawOperatorFile>(SCHEMA)
}
