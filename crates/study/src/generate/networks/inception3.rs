//! Inception v3 (Szegedy et al., *Rethinking the Inception Architecture for Computer Vision*, CVPR 2016) as in PaSE's
//! program: without the auxiliary classifier. Modules A to E follow the sections of the paper.

use super::{
    NetworkSizes,
    builder::{Builder, Operand},
};
use plantui_core::workload::operators::{OperatorKind, Source};

type Window = [u64; 2];

/// Module under construction: its input, and the outputs of its branches.
struct InceptionModule<'a> {
    net: &'a mut Builder,
    name: String,
    input: Source,
    branches: Vec<Source>,
}

/// Filters, window and stride of a convolution; the padding keeps the extent if the stride is 1.
type ConvolutionStep = (u64, Window, u64);

impl InceptionModule<'_> {
    /// Adds convolutions in sequence.
    fn chain(&mut self, branch: &str, from: Source, steps: &[ConvolutionStep]) -> Result<Source, String> {
        let mut here = from;
        for (i, &(filters, window, stride)) in steps.iter().enumerate() {
            let padding = if stride == 1 { window.map(|side| side / 2) } else { [0, 0] };
            let name = format!("{} {branch}{}", self.name, i + 1);
            here = self.net.normalised_convolution(&name, here, filters, window, stride, padding)?;
        }
        Ok(here)
    }

    /// Adds a branch of convolutions on the module's input.
    fn branch(&mut self, name: &str, steps: &[ConvolutionStep]) -> Result<(), String> {
        let out = self.chain(name, self.input, steps)?;
        self.branches.push(out);
        Ok(())
    }

    /// Adds a branch that ends in a 1x3 beside a 3x1 convolution.
    fn forked(&mut self, name: &str, steps: &[ConvolutionStep]) -> Result<(), String> {
        let trunk = self.chain(name, self.input, steps)?;
        let wide = self.chain(&format!("{name} wide"), trunk, &[(384, [1, 3], 1)])?;
        let tall = self.chain(&format!("{name} tall"), trunk, &[(384, [3, 1], 1)])?;
        let kind = OperatorKind::Concatenation { axis: 1 };
        let joined = self.net.add(&format!("{} {name} concat", self.name), kind, [wide.into(), tall.into()])?;
        self.branches.push(joined);
        Ok(())
    }

    /// Adds a branch of pooling that keeps the extent, and a projection.
    fn pooled(&mut self, filters: u64) -> Result<(), String> {
        let pooled = self.net.pooling(&format!("{} pool", self.name), self.input, 3, 1, 1)?;
        let out = self.chain("project", pooled, &[(filters, [1, 1], 1)])?;
        self.branches.push(out);
        Ok(())
    }

    /// Adds a branch of pooling that halves the extent.
    fn halved(&mut self) -> Result<(), String> {
        let pooled = self.net.pooling(&format!("{} pool", self.name), self.input, 3, 2, 0)?;
        self.branches.push(pooled);
        Ok(())
    }

    fn concatenate(self) -> Result<Source, String> {
        let branches = self.branches.into_iter().map(Operand::Of);
        self.net.add(&format!("{} concat", self.name), OperatorKind::Concatenation { axis: 1 }, branches)
    }
}

/// Builds the network.
pub(super) fn build(sizes: &NetworkSizes) -> Result<Builder, String> {
    let mut net = Builder::default();
    let image = Operand::Outside(vec![sizes.batch, 3, sizes.image, sizes.image]);
    let out = net.normalised_convolution("stem1", image, 32, [3, 3], 2, [0, 0])?;
    let out = net.normalised_convolution("stem2", out, 32, [3, 3], 1, [0, 0])?;
    let out = net.normalised_convolution("stem3", out, 64, [3, 3], 1, [1, 1])?;
    let out = net.pooling("stem pool1", out, 3, 2, 0)?;
    let out = net.normalised_convolution("stem4", out, 80, [1, 1], 1, [0, 0])?;
    let out = net.normalised_convolution("stem5", out, 192, [3, 3], 1, [0, 0])?;
    let mut here = net.pooling("stem pool2", out, 3, 2, 0)?;
    for (i, pooled) in [32, 64, 64].into_iter().enumerate() {
        here = module_a(module(&mut net, format!("A{}", i + 1), here), pooled)?;
    }
    here = module_b(module(&mut net, "B".into(), here))?;
    for (i, narrow) in [128, 160, 160, 192].into_iter().enumerate() {
        here = module_c(module(&mut net, format!("C{}", i + 1), here), narrow)?;
    }
    here = module_d(module(&mut net, "D".into(), here))?;
    for i in 1..=2 {
        here = module_e(module(&mut net, format!("E{i}"), here))?;
    }
    net.classifier(here, sizes.classes)?;
    Ok(net)
}

fn module(net: &mut Builder, name: String, input: Source) -> InceptionModule<'_> {
    InceptionModule { net, name, input, branches: vec![] }
}

fn module_a(mut module: InceptionModule<'_>, pooled: u64) -> Result<Source, String> {
    module.branch("a", &[(64, [1, 1], 1)])?;
    module.branch("b", &[(48, [1, 1], 1), (64, [5, 5], 1)])?;
    module.branch("c", &[(64, [1, 1], 1), (96, [3, 3], 1), (96, [3, 3], 1)])?;
    module.pooled(pooled)?;
    module.concatenate()
}

fn module_b(mut module: InceptionModule<'_>) -> Result<Source, String> {
    module.branch("a", &[(384, [3, 3], 2)])?;
    module.branch("b", &[(64, [1, 1], 1), (96, [3, 3], 1), (96, [3, 3], 2)])?;
    module.halved()?;
    module.concatenate()
}

fn module_c(mut module: InceptionModule<'_>, narrow: u64) -> Result<Source, String> {
    let (wide, tall) = ([1, 7], [7, 1]);
    module.branch("a", &[(192, [1, 1], 1)])?;
    module.branch("b", &[(narrow, [1, 1], 1), (narrow, wide, 1), (192, tall, 1)])?;
    module
        .branch("c", &[(narrow, [1, 1], 1), (narrow, tall, 1), (narrow, wide, 1), (narrow, tall, 1), (192, wide, 1)])?;
    module.pooled(192)?;
    module.concatenate()
}

fn module_d(mut module: InceptionModule<'_>) -> Result<Source, String> {
    module.branch("a", &[(192, [1, 1], 1), (320, [3, 3], 2)])?;
    module.branch("b", &[(192, [1, 1], 1), (192, [1, 7], 1), (192, [7, 1], 1), (192, [3, 3], 2)])?;
    module.halved()?;
    module.concatenate()
}

fn module_e(mut module: InceptionModule<'_>) -> Result<Source, String> {
    module.branch("a", &[(320, [1, 1], 1)])?;
    module.forked("b", &[(384, [1, 1], 1)])?;
    module.forked("c", &[(448, [1, 1], 1), (384, [3, 3], 1)])?;
    module.pooled(192)?;
    module.concatenate()
}
