//! Encoder-decoder Transformer (Vaswani et al., *Attention Is All You Need*, NIPS 2017) as in PaSE's program: one
//! product yields queries, keys and values together, and heads have `hidden / heads` features.

use super::{
    NetworkSizes,
    builder::{Builder, Operand},
};
use plantui_core::workload::operators::{OperatorKind, Source};

/// Builds the network.
pub(super) fn build(sizes: &NetworkSizes) -> Result<Builder, String> {
    if !sizes.hidden.is_multiple_of(sizes.heads) {
        return Err(format!("{} heads do not divide {} hidden features", sizes.heads, sizes.hidden));
    }
    let mut net = Transformer { net: Builder::default(), sizes };
    let mut encoded = net.embedding("encoder")?;
    for layer in 1..=sizes.layers {
        let name = format!("encoder {layer}");
        encoded = net.attention(&format!("{name} self"), encoded, None)?;
        encoded = net.feed_forward(&name, encoded)?;
    }
    let mut decoded = net.embedding("decoder")?;
    for layer in 1..=sizes.layers {
        let name = format!("decoder {layer}");
        decoded = net.attention(&format!("{name} self"), decoded, None)?;
        decoded = net.attention(&format!("{name} cross"), decoded, Some(encoded))?;
        decoded = net.feed_forward(&name, decoded)?;
    }
    let weights = Operand::Outside(vec![sizes.hidden, sizes.vocabulary]);
    let scores = net.einsum("projection", "ble,ev->blv", 0, decoded, weights)?;
    net.net.add("loss", OperatorKind::CrossEntropy, [scores.into()])?;
    Ok(net.net)
}

struct Transformer<'a> {
    net: Builder,
    sizes: &'a NetworkSizes,
}

impl Transformer<'_> {
    fn einsum(
        &mut self,
        name: &str,
        equation: &str,
        pointwise: u32,
        left: Source,
        right: impl Into<Operand>,
    ) -> Result<Source, String> {
        let kind = OperatorKind::Einsum { equation: equation.into(), pointwise };
        self.net.add(name, kind, [left.into(), right.into()])
    }

    /// Adds the token embedding and the positions.
    fn embedding(&mut self, name: &str) -> Result<Source, String> {
        let NetworkSizes { batch, sequence_length, vocabulary, hidden, .. } = *self.sizes;
        let kind = OperatorKind::Einsum { equation: "blv,ve->ble".into(), pointwise: 0 };
        let tokens = Operand::Outside(vec![batch, sequence_length, vocabulary]);
        let table = Operand::Outside(vec![vocabulary, hidden]);
        let looked_up = self.net.add(&format!("{name} embedding"), kind, [tokens, table])?;
        let positions = Operand::Outside(vec![batch, sequence_length, hidden]);
        let kind = OperatorKind::Elementwise { pointwise: 0 };
        self.net.add(&format!("{name} positions"), kind, [looked_up.into(), positions])
    }

    /// Adds attention of `input` on itself, or on `memory` for keys and values.
    fn attention(&mut self, name: &str, input: Source, memory: Option<Source>) -> Result<Source, String> {
        let NetworkSizes { hidden, heads, .. } = *self.sizes;
        let size = hidden / heads;
        let weights = Operand::Outside(vec![3, heads, hidden, size]);
        let projected = match memory {
            None => self.einsum(&format!("{name} qkv"), "ble,shek->sbhlk", 0, input, weights)?,
            Some(memory) => {
                let operands = [input, memory, memory].map(Operand::Of);
                let stacked = self.net.add(&format!("{name} stack"), OperatorKind::Stack, operands)?;
                self.einsum(&format!("{name} qkv"), "sble,shek->sbhlk", 0, stacked, weights)?
            }
        };
        let apart = self.net.add(&format!("{name} unstack"), OperatorKind::Unstack, [projected.into()])?;
        let [query, key, value] = [0, 1, 2].map(|output| Source { output, ..apart });
        let logits = self.einsum(&format!("{name} logits"), "bhlk,bhmk->bhlm", 0, query, key)?;
        let kind = OperatorKind::Softmax { axis: 3 };
        let shares = self.net.add(&format!("{name} softmax"), kind, [logits.into()])?;
        let mixed = self.einsum(&format!("{name} mix"), "bhlm,bhmk->bhlk", 0, shares, value)?;
        let weights = Operand::Outside(vec![heads, hidden, size]);
        let out = self.einsum(&format!("{name} out"), "bhlk,hek->ble", 0, mixed, weights)?;
        self.add_and_normalise(name, input, out)
    }

    fn feed_forward(&mut self, name: &str, input: Source) -> Result<Source, String> {
        let NetworkSizes { hidden, feed_forward, .. } = *self.sizes;
        let weights = Operand::Outside(vec![hidden, feed_forward]);
        let wide = self.einsum(&format!("{name} ff1"), "ble,ef->blf", 2, input, weights)?;
        let weights = Operand::Outside(vec![feed_forward, hidden]);
        let out = self.einsum(&format!("{name} ff2"), "blf,fe->ble", 0, wide, weights)?;
        self.add_and_normalise(&format!("{name} ff"), input, out)
    }

    fn add_and_normalise(&mut self, name: &str, input: Source, out: Source) -> Result<Source, String> {
        let kind = OperatorKind::Elementwise { pointwise: 0 };
        let sum = self.net.add(&format!("{name} add"), kind, [input.into(), out.into()])?;
        self.net.add(&format!("{name} norm"), OperatorKind::Normalisation { axis: 2 }, [sum.into()])
    }
}
