//! Sizes of a transformer, its biases and the modules at its ends.
//!
//! Counts are of elements, never bytes. Nothing here depends on how the model is run.

/// Kind of feed-forward block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mlp {
    /// Up, activation, down: two matrices.
    Plain,
    /// Gate and up multiplied, then down: three matrices.
    Gated,
}

/// Kind of normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// Scale and shift.
    Layer,
    /// Scale only.
    Rms,
}

/// Matrices with a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Biases {
    /// Query, key and value projections.
    pub query_key_value: bool,
    /// Attention's output projection.
    pub attention_output: bool,
    /// Matrices of the feed-forward block.
    pub mlp: bool,
}

impl Biases {
    /// Bias on every matrix: BERT, GPT-2, GPT-3, GPT-NeoX.
    pub const ALL: Biases = Biases { query_key_value: true, attention_output: true, mlp: true };
    /// Bias on no matrix: Llama, Mistral.
    pub const NONE: Biases = Biases { query_key_value: false, attention_output: false, mlp: false };
}

/// Module after the last layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// BERT's pooler over the first token: one square matrix and its bias.
    Pooler,
    /// Final norm and projection onto the vocabulary.
    LanguageModel {
        /// True if the projection uses the embedding's matrix.
        tied: bool,
    },
    /// BERT's masked-token head: a square matrix, a norm, and the tied projection onto the vocabulary.
    MaskedLanguageModel,
}

/// Sizes of a transformer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelConfig {
    /// Name in messages and files.
    pub name: String,
    /// Source of the sizes.
    pub source: String,
    /// Number of transformer layers.
    pub layers: u32,
    /// Width of the hidden state, h.
    pub hidden: u64,
    /// Number of attention heads, a.
    pub heads: u64,
    /// Number of key-value heads, g; equal to `heads` without grouped-query attention.
    pub key_value_heads: u64,
    /// Width of a head, d_h.
    pub head_size: u64,
    /// Width of the feed-forward block, f.
    pub mlp_width: u64,
    /// Kind of the feed-forward block.
    pub mlp: Mlp,
    /// Rows of the token embedding, V.
    pub vocabulary: u64,
    /// Rows of a learned position embedding; 0 if positions are computed.
    pub positions: u64,
    /// Rows of a token-type embedding; 0 if there is none.
    pub token_types: u64,
    /// True if a norm follows the embedding.
    pub embedding_norm: bool,
    /// Matrices with biases.
    pub biases: Biases,
    /// Kind of every norm.
    pub norm: Norm,
    /// True if layers read a padding mask of one value per pair of tokens (encoders do).
    pub padding_mask: bool,
    /// Module after the last layer.
    pub head: Head,
    /// Longest sequence that the model supports.
    pub longest_sequence: u64,
}

impl Head {
    /// Name of the generated node.
    pub fn name(self) -> &'static str {
        match self {
            Head::Pooler => "Pooler",
            Head::LanguageModel { .. } => "final norm and LM head",
            Head::MaskedLanguageModel => "masked LM head",
        }
    }
}

impl ModelConfig {
    /// Elements of one norm.
    pub fn norm_parameters(&self) -> f64 {
        match self.norm {
            Norm::Layer => 2.0 * self.hidden as f64,
            Norm::Rms => self.hidden as f64,
        }
    }

    /// Number of matrices in the feed-forward block.
    pub fn mlp_matrices(&self) -> f64 {
        match self.mlp {
            Mlp::Plain => 2.0,
            Mlp::Gated => 3.0,
        }
    }

    /// Total elements of a layer's matrices: `a·d_h·h·(2 + 2g/a) + n·h·f`.
    pub fn layer_matrix_parameters(&self) -> f64 {
        let [h, a, g, d] = [self.hidden, self.heads, self.key_value_heads, self.head_size].map(|v| v as f64);
        d * h * (2.0 * a + 2.0 * g) + self.mlp_matrices() * h * self.mlp_width as f64
    }

    /// Elements of a layer on each of `t` devices. Matrices and the biases of their split outputs are divided. Norms
    /// and output biases are not. If there are fewer than `t` key-value heads, they are repeated.
    pub fn layer_parameters(&self, t: u32) -> f64 {
        let t = f64::from(t);
        let [h, a, g, d, f] =
            [self.hidden, self.heads, self.key_value_heads, self.head_size, self.mlp_width].map(|v| v as f64);
        let query = a * d / t;
        let key_value = 2.0 * d * (g / t).max(1.0);
        let up = (self.mlp_matrices() - 1.0) * f / t;
        let mut elements = h * (query + key_value + a * d / t + self.mlp_matrices() * f / t);
        elements += 2.0 * self.norm_parameters();
        if self.biases.query_key_value {
            elements += query + key_value;
        }
        if self.biases.attention_output {
            elements += h;
        }
        if self.biases.mlp {
            elements += up + h;
        }
        elements
    }

    /// Rows of the vocabulary on each of `t` devices, rounded up.
    pub fn vocabulary_rows(&self, t: u32) -> f64 {
        self.vocabulary.div_ceil(u64::from(t)) as f64
    }

    /// Elements of the embeddings on each of `t` devices. Tokens are divided; positions and types are not.
    pub fn embedding_parameters(&self, t: u32) -> f64 {
        let rows = self.vocabulary_rows(t) + (self.positions + self.token_types) as f64;
        rows * self.hidden as f64 + if self.embedding_norm { self.norm_parameters() } else { 0.0 }
    }

    /// Elements of the module after the last layer, on each of `t` devices. A tied projection is a copy and counts.
    pub fn head_parameters(&self, t: u32) -> f64 {
        let h = self.hidden as f64;
        match self.head {
            Head::Pooler => h * h + h,
            Head::LanguageModel { .. } => self.norm_parameters() + self.vocabulary_rows(t) * h,
            Head::MaskedLanguageModel => h * h + h + self.norm_parameters() + self.vocabulary_rows(t) * (h + 1.0),
        }
    }

    /// Total elements, with a tied projection counted once.
    pub fn parameters(&self) -> f64 {
        let h = self.hidden as f64;
        let copy = match self.head {
            Head::LanguageModel { tied: true } | Head::MaskedLanguageModel => self.vocabulary as f64 * h,
            Head::LanguageModel { tied: false } | Head::Pooler => 0.0,
        };
        f64::from(self.layers) * self.layer_parameters(1) + self.embedding_parameters(1) + self.head_parameters(1)
            - copy
    }

    /// Reason why `t` devices cannot divide a layer, if they cannot.
    pub fn refuses_degree(&self, t: u32) -> Option<String> {
        let t64 = u64::from(t);
        let splits = |what: &str, count: u64| {
            (t == 0 || !count.is_multiple_of(t64))
                .then(|| format!("{t} does not divide {}'s {count} {what}", self.name))
        };
        splits("attention heads", self.heads)
            .or_else(|| splits("columns of the feed-forward block", self.mlp_width))
            .or_else(|| {
                let (g, low, high) =
                    (self.key_value_heads, self.key_value_heads.min(t64), self.key_value_heads.max(t64));
                (!high.is_multiple_of(low)).then(|| {
                    format!("{t} neither divides {}'s {g} key/value heads nor is a multiple of them", self.name)
                })
            })
    }
}
