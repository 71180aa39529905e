//! `AlexNet` (Krizhevsky, Sutskever, Hinton, NIPS 2012) as in PaSE's program: a path without response normalisation and
//! dropout, with 1024 classes by default.

use super::{
    NetworkSizes,
    builder::{Builder, Operand},
};
use plantui_core::workload::operators::OperatorKind;

/// Filters, window, stride and padding of each convolution, and true if pooling follows.
const LAYERS: [(u64, u64, u64, u64, bool); 5] =
    [(96, 11, 4, 0, true), (256, 5, 1, 2, true), (384, 3, 1, 1, false), (384, 3, 1, 1, false), (256, 3, 1, 1, true)];

/// Builds the network.
pub(super) fn build(sizes: &NetworkSizes) -> Result<Builder, String> {
    let mut net = Builder::default();
    let mut here = Operand::Outside(vec![sizes.batch, 3, sizes.image, sizes.image]);
    let mut features = None;
    for (i, (filters, window, stride, padding, pooled)) in LAYERS.into_iter().enumerate() {
        let kind =
            OperatorKind::Convolution { filters, window: [window; 2], stride, padding: [padding; 2], pointwise: 1 };
        let mut out = net.add(&format!("conv{}", i + 1), kind, [here])?;
        if pooled {
            out = net.pooling(&format!("pool{}", i + 1), out, 3, 2, 0)?;
        }
        features = Some(out);
        here = out.into();
    }
    let features = features.map_or(0, |out| net.shape(out)[1..].iter().product());
    let flat = net.add("ravel", OperatorKind::Ravel, [here])?;
    let mut out = net.add("unravel", OperatorKind::Unravel { shape: vec![sizes.batch, features] }, [flat.into()])?;
    for (i, (units, pointwise)) in [(4096, 1), (4096, 1), (sizes.classes, 0)].into_iter().enumerate() {
        out = net.add(&format!("dense{}", i + 1), OperatorKind::Dense { units, pointwise }, [out.into()])?;
    }
    net.add("loss", OperatorKind::CrossEntropy, [out.into()])?;
    Ok(net)
}
