//! Convolutional network of blocks with four branches each, modelled on GoogLeNet (Szegedy et al., *Going Deeper with
//! Convolutions*, CVPR 2015): its shape, with widths in round proportions.

use super::{ForwardOperator, Operators, SavedForBackward};
use crate::generate::GenerateError;

/// Sizes of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cnn {
    /// Height and width of the image in pixels.
    pub image: u64,
    /// Channels of the first convolution; all others are multiples of it.
    pub width: u64,
    /// Blocks of four branches.
    pub blocks: u32,
}

impl Default for Cnn {
    fn default() -> Self {
        Cnn { image: 224, width: 64, blocks: 9 }
    }
}

/// Classes of the classifier.
const LABELS: f64 = 1000.0;
/// Blocks between two halvings of the image.
const BLOCKS_PER_SCALE: u32 = 3;

/// Output of an operator: its index, pixels per side, channels.
#[derive(Debug, Clone, Copy)]
struct FeatureMap {
    at: usize,
    side: f64,
    channels: f64,
}

struct CnnBuilder {
    ops: Operators,
    samples: f64,
}

impl CnnBuilder {
    /// Adds a convolution with its norm and activation.
    fn convolution(&mut self, name: &str, input: FeatureMap, kernel: f64, stride: f64, channels: f64) -> FeatureMap {
        let side = (input.side / stride).ceil();
        let pixels = self.samples * side * side;
        let weights = kernel * kernel * input.channels * channels;
        let at =
            self.ops.add_matrix(name, &[input.at], pixels * channels, 2.0 * pixels * weights, weights + 2.0 * channels);
        FeatureMap { at, side, channels }
    }

    fn pool(&mut self, name: &str, input: FeatureMap, stride: f64) -> FeatureMap {
        let side = (input.side / stride).ceil();
        let at = self.ops.add(name, &[input.at], self.samples * side * side * input.channels, SavedForBackward::Inputs);
        FeatureMap { at, side, ..input }
    }

    /// Adds four branches that read one map, and concatenates their outputs.
    fn block(&mut self, input: FeatureMap, width: f64) -> FeatureMap {
        let straight = self.convolution("1x1", input, 1.0, 1.0, 2.0 * width);
        let narrow = self.convolution("1x1 before 3x3", input, 1.0, 1.0, 2.0 * width);
        let middle = self.convolution("3x3", narrow, 3.0, 1.0, 4.0 * width);
        let narrow = self.convolution("1x1 before 5x5", input, 1.0, 1.0, width / 2.0);
        let wide = self.convolution("5x5", narrow, 5.0, 1.0, width);
        let pooled = self.pool("3x3 pool", input, 1.0);
        let projected = self.convolution("1x1 after pool", pooled, 1.0, 1.0, width);
        let branches = [straight, middle, wide, projected];
        let channels = branches.iter().map(|branch| branch.channels).sum();
        let inputs = branches.map(|branch| branch.at);
        let at = self.ops.add(
            "concatenation",
            &inputs,
            self.samples * input.side * input.side * channels,
            SavedForBackward::Nothing,
        );
        FeatureMap { at, side: input.side, channels }
    }
}

impl Cnn {
    /// Checks the sizes.
    ///
    /// # Errors
    /// [`GenerateError::Setting`] with the flag and the repair.
    pub fn validate(&self) -> Result<(), GenerateError> {
        let refuse = |flag, problem: String| Err(GenerateError::Setting { flag, problem });
        if !(32..=1 << 14).contains(&self.image) {
            return refuse("--image-size", format!("{} is not from 32 to 16384", self.image));
        }
        if !(4..=1 << 12).contains(&self.width) || !self.width.is_multiple_of(4) {
            return refuse("--width", format!("{} is no multiple of 4 from 4 to 4096", self.width));
        }
        if !(1..=1000).contains(&self.blocks) {
            return refuse("--blocks", format!("{} is not from 1 to 1000", self.blocks));
        }
        Ok(())
    }

    /// Forward pass on `samples` images.
    pub(super) fn operators(&self, samples: f64) -> Vec<ForwardOperator> {
        let mut net = CnnBuilder { ops: Operators::default(), samples };
        let (side, width) = (self.image as f64, self.width as f64);
        let image = net.ops.add("image", &[], samples * side * side * 3.0, SavedForBackward::NoGradient);
        let stem = net.convolution("7x7 stem", FeatureMap { at: image, side, channels: 3.0 }, 7.0, 2.0, width);
        let pooled = net.pool("stem pool", stem, 2.0);
        let second = net.convolution("3x3 stem", pooled, 3.0, 1.0, 3.0 * width);
        let mut last = net.pool("second stem pool", second, 2.0);
        for block in 0..self.blocks {
            net.ops.layer = block as usize + 1;
            let scale = block / BLOCKS_PER_SCALE;
            if block > 0 && block % BLOCKS_PER_SCALE == 0 {
                last = net.pool("halving pool", last, 2.0);
            }
            // Channels double when the size halves, up to a limit.
            last = net.block(last, width / 2.0 * f64::from(1 << scale.min(3)));
        }
        net.ops.layer += 1;
        let pooled = net.ops.add("global pool", &[last.at], samples * last.channels, SavedForBackward::Inputs);
        let weights = last.channels * LABELS;
        net.ops.add_matrix("classifier", &[pooled], samples * LABELS, 2.0 * samples * weights, weights + LABELS);
        net.ops.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_meet_and_sizes_halve() {
        let list = Cnn::default().operators(1.0);
        assert_eq!(list.len(), 5 + 9 * 8 + 2 + 2);
        let joins: Vec<&ForwardOperator> = list.iter().filter(|op| op.inputs.len() == 4).collect();
        assert_eq!(joins.len(), 9);
        // 28 x 28 x 256 in the first block, 7 x 7 x 1024 in the last.
        assert_eq!((joins[0].outputs, joins[8].outputs), (28.0 * 28.0 * 256.0, 7.0 * 7.0 * 1024.0));
        assert!(list.iter().enumerate().all(|(at, op)| op.inputs.iter().all(|&input| input < at)));
        let twice: f64 = Cnn::default().operators(2.0).iter().map(|op| op.flop).sum();
        assert_eq!(twice, 2.0 * list.iter().map(|op| op.flop).sum::<f64>());
    }
}
