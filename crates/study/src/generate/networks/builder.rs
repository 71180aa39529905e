//! Builder of a network, operator by operator.

use plantui_core::workload::{
    NodeIndex,
    operators::{InputSpec, Operator, OperatorKind, Source},
};

/// Input of an operator.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    /// Output of an operator.
    Of(Source),
    /// External tensor; axis 0 of the first operand is the batch.
    Outside(Vec<u64>),
}

impl From<Source> for Operand {
    fn from(source: Source) -> Self {
        Operand::Of(source)
    }
}

/// Operators with their names; inputs come from earlier operators.
#[derive(Debug, Default)]
pub(super) struct Builder {
    pub(super) operators: Vec<Operator>,
    pub(super) names: Vec<String>,
}

impl Builder {
    /// Adds an operator and returns its first output.
    ///
    /// # Errors
    /// Sentence with the operator's name and what does not fit.
    pub(super) fn add(
        &mut self,
        name: &str,
        kind: OperatorKind,
        operands: impl IntoIterator<Item = Operand>,
    ) -> Result<Source, String> {
        let given = operands.into_iter().map(|operand| match operand {
            Operand::Of(source) => {
                InputSpec::output(&self.operators, source).ok_or_else(|| format!("{name} reads nothing"))
            }
            Operand::Outside(shape) => Ok(InputSpec::outside(shape)),
        });
        let given = given.collect::<Result<Vec<_>, _>>()?;
        self.operators.push(Operator::new(kind, &given).map_err(|problem| format!("{name} {problem}"))?);
        self.names.push(name.into());
        Ok(Source { node: NodeIndex::new(self.operators.len() - 1), output: 0 })
    }

    /// Shape of an output.
    pub(super) fn shape(&self, source: Source) -> &[u64] {
        &self.operators[source.node].outputs[source.output].shape
    }

    /// Adds a convolution without bias; fused pointwise operations are counted.
    pub(super) fn convolution(
        &mut self,
        name: &str,
        input: impl Into<Operand>,
        filters: u64,
        window: [u64; 2],
        stride: u64,
        padding: [u64; 2],
    ) -> Result<Source, String> {
        let kind = OperatorKind::Convolution { filters, window, stride, padding, pointwise: 0 };
        self.add(name, kind, [input.into()])
    }

    /// Adds pooling with a square window.
    pub(super) fn pooling(
        &mut self,
        name: &str,
        input: Source,
        window: u64,
        stride: u64,
        padding: u64,
    ) -> Result<Source, String> {
        let kind = OperatorKind::Pooling { window: [window; 2], stride, padding: [padding; 2] };
        self.add(name, kind, [input.into()])
    }

    /// Adds a convolution followed by batch normalisation.
    pub(super) fn normalised_convolution(
        &mut self,
        name: &str,
        input: impl Into<Operand>,
        filters: u64,
        window: [u64; 2],
        stride: u64,
        padding: [u64; 2],
    ) -> Result<Source, String> {
        let convolved = self.convolution(name, input, filters, window, stride, padding)?;
        self.add(&format!("{name} norm"), OperatorKind::Normalisation { axis: 0 }, [convolved.into()])
    }

    /// Adds the mean over height and width, a dense layer and the loss.
    pub(super) fn classifier(&mut self, input: Source, classes: u64) -> Result<Source, String> {
        let pooled = self.add("mean", OperatorKind::Mean { axes: vec![2, 3] }, [input.into()])?;
        let kind = OperatorKind::Dense { units: classes, pointwise: 0 };
        let scores = self.add("classifier", kind, [pooled.into()])?;
        self.add("loss", OperatorKind::CrossEntropy, [scores.into()])
    }
}
