//! Parts of a layer that mix tokens without softmax attention: state-space models, linear attention, short convolutions.
//!
//! A mixer has a projection into its inner width, a short convolution, a recurrence over chunks of the sequence, and a
//! projection out. The recurrence has H heads with states of P × N (Dao & Gu 2024, section 6; gated DeltaNet has keys
//! of N and values of P). Costs per token do not depend on the length of the sequence.

use serde::{Deserialize, Serialize};

use super::model::{MatrixSplit, WeightMatrix};

/// Token mixer of a layer, beside its attention or in place of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mixer {
    /// Width of the projection from the hidden state.
    pub entry: u64,
    /// Width of the projection to the hidden state; 0 if there is none.
    pub exit: u64,
    /// Projections inside, of outputs and inputs: those of a selective state (Mamba 1); 0 if there are none.
    pub inner: [[u64; 2]; 2],
    /// Channels of the short convolution; 0 if there is none.
    pub channels: u64,
    /// Number of heads with a state, H; 0 if there is no recurrence.
    pub heads: u64,
    /// Groups of heads that share their keys, G.
    pub groups: u64,
    /// Width of a head, P.
    pub width: u64,
    /// Width of the state, N.
    pub state: u64,
    /// Tokens in a chunk of the recurrence, Q; 1 if it runs token by token.
    pub chunk: u64,
}

impl Mixer {
    /// Projection alone, such as an output gate of attention.
    pub const fn gate(width: u64) -> Self {
        Mixer {
            entry: width,
            exit: 0,
            inner: [[0; 2]; 2],
            channels: 0,
            heads: 0,
            groups: 0,
            width: 0,
            state: 0,
            chunk: 1,
        }
    }

    /// Mamba 2: heads of a width with states, one convolution over values and keys.
    pub const fn mamba2(heads: u64, width: u64, groups: u64, state: u64, chunk: u64) -> Self {
        let inner = heads * width;
        Mixer {
            entry: 2 * inner + 2 * groups * state + heads,
            exit: inner,
            channels: inner + 2 * groups * state,
            heads,
            groups,
            width,
            state,
            chunk,
            ..Mixer::gate(0)
        }
    }

    /// Weight matrices, each with the dimension that tensor parallelism divides.
    pub fn matrices(&self, hidden: u64) -> Vec<WeightMatrix> {
        let matrix = |outputs, inputs, split| WeightMatrix { outputs, inputs, split };
        let inner = self.inner.map(|[outputs, inputs]| matrix(outputs, inputs, MatrixSplit::Outputs));
        let ends = [matrix(self.entry, hidden, MatrixSplit::Outputs), matrix(hidden, self.exit, MatrixSplit::Inputs)];
        ends.into_iter().chain(inner).filter(|matrix| matrix.outputs * matrix.inputs > 0).collect()
    }

    /// Elements of all matrices.
    pub fn parameters(&self, hidden: u64) -> u64 {
        self.matrices(hidden).iter().map(|matrix| matrix.outputs * matrix.inputs).sum()
    }

    /// Operations of the recurrence for a token, forward. Within a chunk, half of the pairs are masked.
    pub fn core_flops(&self) -> f64 {
        let [heads, groups, width, state, chunk] =
            [self.heads, self.groups, self.width, self.state, self.chunk].map(|size| size as f64);
        chunk * state * groups + heads * (chunk * width + 4.0 * width * state)
    }

    /// Elements that a token's forward pass keeps for the backward pass: inputs and outputs of the convolution and the
    /// recurrence, and its share of a chunk's states.
    pub fn kept(&self) -> f64 {
        let states = (self.heads * self.width * self.state) as f64 * 2.0 / self.chunk.max(1) as f64;
        (self.entry + self.channels + 2 * self.exit) as f64 + states
    }
}
