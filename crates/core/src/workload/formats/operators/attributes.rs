//! One operator of the file, and the fields of its kind.

use serde::Deserialize;

use super::{Object, RawInput, WorkloadReader, extent_of};
use crate::{
    source::{LoadError, error::printable},
    workload::operators::OperatorKind,
};

/// Maximum number of pointwise operations fused into an operator.
const MAX_POINTWISE: f64 = 1000.0;

/// Operator with the fields of all kinds.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct RawOperator {
    /// Number by which others name it.
    pub(super) id: f64,
    /// Name in reports.
    pub(super) name: Option<String>,
    /// `conv`, `pool`, `norm`, `softmax`, `softmax-cross-entropy`, `elementwise`, `concat`, `ravel`, `unravel`, `stack`,
    /// `unstack`, `dense`, `einsum`, `reduce-mean` or `lstm`.
    pub(super) kind: String,
    /// Tensors that it reads.
    pub(super) inputs: Vec<Object<RawInput>>,
    /// Filters of a convolution.
    filters: Option<f64>,
    /// Rows and columns of the window of a convolution or a pooling.
    window: Option<Vec<f64>>,
    /// Stride of the window; 1 if absent.
    stride: Option<f64>,
    /// Padding of rows and columns; none if absent.
    padding: Option<Vec<f64>>,
    /// Pointwise operations that are fused into it; none if absent.
    pointwise: Option<f64>,
    /// Axis of a normalisation, a softmax or a concatenation.
    axis: Option<f64>,
    /// Axes over which a mean reduces.
    axes: Option<Vec<f64>>,
    /// Extents into which one axis is unravelled.
    shape: Option<Vec<f64>>,
    /// Units of a dense layer or an LSTM.
    units: Option<f64>,
    /// Layers of an LSTM.
    layers: Option<f64>,
    /// Equation of an einsum, such as `bsh,hf->bsf`.
    equation: Option<String>,
}

/// Fields by kind.
const TAKES: [(&str, &[&str]); 15] = [
    ("conv", &["filters", "window", "stride", "padding", "pointwise"]),
    ("pool", &["window", "stride", "padding"]),
    ("norm", &["axis"]),
    ("elementwise", &["pointwise"]),
    ("concat", &["axis"]),
    ("ravel", &[]),
    ("unravel", &["shape"]),
    ("stack", &[]),
    ("unstack", &[]),
    ("dense", &["units", "pointwise"]),
    ("einsum", &["equation", "pointwise"]),
    ("reduce-mean", &["axes"]),
    ("softmax", &["axis"]),
    ("softmax-cross-entropy", &[]),
    ("lstm", &["layers", "units"]),
];

/// Context for messages about the fields of one operator.
struct Fields<'a> {
    reader: &'a WorkloadReader<'a>,
    place: &'a dyn Fn(&str) -> String,
}

impl RawOperator {
    /// Builds the kind of operator from the fields.
    pub(super) fn operator_kind(
        &self,
        reader: &WorkloadReader<'_>,
        place: &dyn Fn(&str) -> String,
    ) -> Result<OperatorKind, LoadError> {
        let Some((word, takes)) = TAKES.iter().find(|(known, _)| *known == self.kind) else {
            let known = TAKES.map(|(known, _)| known).join(", ");
            let problem = format!("is `{}`, which is not known", printable(&self.kind));
            return Err(reader.error(&place("kind"), problem, format!("it may be {known}")));
        };
        if let Some(foreign) = self.given().into_iter().find(|field| !takes.contains(field)) {
            return Err(reader.error(&place(foreign), format!("is nothing that `{word}` takes"), "remove it"));
        }
        let fields = Fields { reader, place };
        let pointwise = || fields.count("pointwise", self.pointwise.unwrap_or(0.0), MAX_POINTWISE);
        let padding = || -> Result<[u64; 2], LoadError> {
            let [rows, columns] = self.padding.as_ref().map_or(Ok([0.0; 2]), |given| fields.pair("padding", given))?;
            Ok([fields.count("padding[0]", rows, 1e6)?.into(), fields.count("padding[1]", columns, 1e6)?.into()])
        };
        let window = || -> Result<[u64; 2], LoadError> {
            let given = self.window.as_ref().ok_or_else(|| fields.missing(word, "window", "[3, 3]"))?;
            let [rows, columns] = fields.pair("window", given)?;
            Ok([fields.extent("window[0]", rows)?, fields.extent("window[1]", columns)?])
        };
        let stride = || fields.extent("stride", self.stride.unwrap_or(1.0));
        let needed = |field: &str, value: Option<f64>, example: &str| {
            fields.extent(field, value.ok_or_else(|| fields.missing(word, field, example))?)
        };
        let axis = || {
            let axis = self.axis.ok_or_else(|| fields.missing(word, "axis", "1"))?;
            fields.count("axis", axis, 15.0).map(|axis| axis as usize)
        };
        Ok(match *word {
            "conv" => OperatorKind::Convolution {
                filters: needed("filters", self.filters, "64")?,
                window: window()?,
                stride: stride()?,
                padding: padding()?,
                pointwise: pointwise()?,
            },
            "pool" => OperatorKind::Pooling { window: window()?, stride: stride()?, padding: padding()? },
            "norm" => OperatorKind::Normalisation { axis: axis()? },
            "elementwise" => OperatorKind::Elementwise { pointwise: pointwise()? },
            "concat" => OperatorKind::Concatenation { axis: axis()? },
            "ravel" => OperatorKind::Ravel,
            "unravel" => OperatorKind::Unravel {
                shape: {
                    let shape = self.shape.as_ref().ok_or_else(|| fields.missing(word, "shape", "[128, 9216]"))?;
                    let extents = shape.iter().enumerate();
                    extents
                        .map(|(i, &extent)| fields.extent(&format!("shape[{i}]"), extent))
                        .collect::<Result<_, _>>()?
                },
            },
            "stack" => OperatorKind::Stack,
            "unstack" => OperatorKind::Unstack,
            "dense" => OperatorKind::Dense { units: needed("units", self.units, "1000")?, pointwise: pointwise()? },
            "einsum" => OperatorKind::Einsum {
                equation: self.equation.clone().ok_or_else(|| fields.missing(word, "equation", "\"ble,ef->blf\""))?,
                pointwise: pointwise()?,
            },
            "reduce-mean" => OperatorKind::Mean {
                axes: {
                    let axes = self.axes.as_ref().ok_or_else(|| fields.missing(word, "axes", "[2, 3]"))?;
                    let axes = axes.iter().enumerate();
                    axes.map(|(i, &axis)| fields.count(&format!("axes[{i}]"), axis, 15.0).map(|axis| axis as usize))
                        .collect::<Result<_, _>>()?
                },
            },
            "softmax" => OperatorKind::Softmax { axis: axis()? },
            "softmax-cross-entropy" => OperatorKind::CrossEntropy,
            _ => OperatorKind::Lstm {
                layers: needed("layers", self.layers, "2")?,
                units: needed("units", self.units, "1024")?,
            },
        })
    }

    /// Names of the fields that the operator has.
    fn given(&self) -> Vec<&'static str> {
        let there = [
            ("filters", self.filters.is_some()),
            ("window", self.window.is_some()),
            ("stride", self.stride.is_some()),
            ("padding", self.padding.is_some()),
            ("pointwise", self.pointwise.is_some()),
            ("axis", self.axis.is_some()),
            ("axes", self.axes.is_some()),
            ("shape", self.shape.is_some()),
            ("units", self.units.is_some()),
            ("layers", self.layers.is_some()),
            ("equation", self.equation.is_some()),
        ];
        there.into_iter().filter(|field| field.1).map(|field| field.0).collect()
    }
}

impl Fields<'_> {
    fn missing(&self, kind: &str, field: &str, example: &str) -> LoadError {
        let problem = format!("is missing: `{kind}` needs it");
        self.reader.error(&(self.place)(field), problem, format!("for example \"{field}\": {example}"))
    }

    /// Reads rows and columns.
    fn pair(&self, field: &str, given: &[f64]) -> Result<[f64; 2], LoadError> {
        given.try_into().map_err(|_| {
            let problem = format!("has length {}, must have 2: rows and columns", given.len());
            self.reader.error(&(self.place)(field), problem, format!("for example \"{field}\": [3, 3]"))
        })
    }

    fn extent(&self, field: &str, value: f64) -> Result<u64, LoadError> {
        extent_of(self.reader, value, &(self.place)(field))
    }

    fn count(&self, field: &str, value: f64, most: f64) -> Result<u32, LoadError> {
        if value.fract() == 0.0 && (0.0..=most).contains(&value) {
            return Ok(value as u32);
        }
        let problem = format!("is {value}, must be a whole number from 0 to {most}");
        Err(self.reader.error(&(self.place)(field), problem, ""))
    }
}
