//! Recurrent language model: a path of embedding, LSTM layers, projection to the vocabulary, and loss.

use super::{
    NetworkSizes,
    builder::{Builder, Operand},
};
use plantui_core::workload::operators::OperatorKind;

/// Builds the network.
pub(super) fn build(sizes: &NetworkSizes) -> Result<Builder, String> {
    let mut net = Builder::default();
    let tokens = Operand::Outside(vec![sizes.batch, sizes.sequence_length, sizes.vocabulary]);
    let table = Operand::Outside(vec![sizes.vocabulary, sizes.hidden]);
    let kind = OperatorKind::Einsum { equation: "blv,ve->ble".into(), pointwise: 0 };
    let embedded = net.add("embedding", kind, [tokens, table])?;
    let kind = OperatorKind::Lstm { layers: sizes.layers, units: sizes.hidden };
    let hidden = net.add("lstm", kind, [embedded.into()])?;
    let kind = OperatorKind::Dense { units: sizes.vocabulary, pointwise: 0 };
    let scores = net.add("projection", kind, [hidden.into()])?;
    net.add("loss", OperatorKind::CrossEntropy, [scores.into()])?;
    Ok(net)
}
