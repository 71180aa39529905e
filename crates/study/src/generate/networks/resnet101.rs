//! `ResNet-101` (He, Zhang, Ren, Sun, *Deep Residual Learning for Image Recognition*, CVPR 2016) as in PaSE's program.

use super::{
    NetworkSizes,
    builder::{Builder, Operand},
};
use plantui_core::workload::operators::{OperatorKind, Source};

/// Planes, blocks, and stride of the first block of each stage.
const STAGES: [(u64, usize, u64); 4] = [(64, 3, 1), (128, 4, 2), (256, 23, 2), (512, 3, 2)];
/// Output channels of a block per plane.
const EXPANSION: u64 = 4;

/// Builds the network.
pub(super) fn build(sizes: &NetworkSizes) -> Result<Builder, String> {
    let mut net = Builder::default();
    let image = Operand::Outside(vec![sizes.batch, 3, sizes.image, sizes.image]);
    let stem = net.normalised_convolution("stem", image, 64, [7, 7], 2, [3, 3])?;
    let mut here = net.pooling("stem pool", stem, 3, 2, 1)?;
    for (stage, (planes, blocks, stride)) in STAGES.into_iter().enumerate() {
        for block in 0..blocks {
            let name = format!("{}.{}", stage + 1, block + 1);
            here = bottleneck(&mut net, &name, here, planes, if block == 0 { stride } else { 1 }, block == 0)?;
        }
    }
    net.classifier(here, sizes.classes)?;
    Ok(net)
}

/// Adds three convolutions beside a shortcut; the first block of a stage projects the shortcut.
fn bottleneck(
    net: &mut Builder,
    name: &str,
    input: Source,
    planes: u64,
    stride: u64,
    projected: bool,
) -> Result<Source, String> {
    let out = net.normalised_convolution(&format!("{name} reduce"), input, planes, [1, 1], 1, [0, 0])?;
    let out = net.normalised_convolution(&format!("{name} conv"), out, planes, [3, 3], stride, [1, 1])?;
    let out = net.normalised_convolution(&format!("{name} expand"), out, EXPANSION * planes, [1, 1], 1, [0, 0])?;
    let shortcut = if projected {
        net.normalised_convolution(&format!("{name} shortcut"), input, EXPANSION * planes, [1, 1], stride, [0, 0])?
    } else {
        input
    };
    net.add(&format!("{name} add"), OperatorKind::Elementwise { pointwise: 1 }, [out.into(), shortcut.into()])
}
