//! Build and run settings of the network behind a workload: facts that a training engine needs and no profile of costs
//! has.
//!
//! Generated workloads have it in their field `recipe`, and the documents of their plans copy it. Every field is
//! optional: an engine's file omits an unknown fact and says so, instead of inventing it. It contains only numbers and
//! words from fixed lists, so it never needs quoting.

use serde::{Deserialize, Serialize};

pub use super::model_shape::{ExpertLayers, ExpertShape, ModelShape, NormKind};
use crate::source::error::LoadError;

/// Build and run settings of a network, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Recipe {
    /// Sequences in a microbatch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<u32>,
    /// Tokens in a sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_length: Option<u32>,
    /// Number format of matrix products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// True if memory was counted with norms and dropouts divided along the sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_parallel: Option<bool>,
    /// True if times were counted with tensor-parallel transfers overlapped with matrix products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_overlap: Option<bool>,
    /// True if memory was counted with attention scores kept (no flash attention).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps_attention_scores: Option<bool>,
    /// Bytes of weights, gradients and optimizer state per parameter, as memory was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_bytes_per_parameter: Option<f64>,
    /// Replicas that divide the optimizer's state, as memory was counted; absent if each has all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer_shards: Option<u32>,
    /// Sizes of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelShape>,
}

/// Number format of matrix products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 16 bits with 8 bits of exponent.
    Bf16,
    /// 16 bits with 5 bits of exponent; the 16-bit format of V100.
    Fp16,
    /// 32 bits.
    Fp32,
}

/// Largest number that is accepted as a size.
const MOST: u64 = 1 << 40;

impl Recipe {
    /// Recipe as JSON on one line.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("numbers and words serialise")
    }

    /// True if a field named `recipe` is meant as a recipe. Another program may use this name for something else.
    pub fn is_meant(value: &serde_json::Value) -> bool {
        let whole = Recipe {
            micro_batch: Some(1),
            sequence_length: Some(1),
            precision: Some(Precision::Bf16),
            sequence_parallel: Some(true),
            tensor_overlap: Some(true),
            keeps_attention_scores: Some(true),
            state_bytes_per_parameter: Some(1.0),
            optimizer_shards: Some(1),
            model: None,
        };
        let ours = serde_json::to_value(whole).unwrap_or_default();
        value.as_object().is_some_and(|fields| fields.keys().any(|field| ours.get(field).is_some() || field == "model"))
    }

    /// Validates that every number is in range. `path` is the JSON path of the recipe in its file, `source` the file's
    /// name in messages.
    ///
    /// # Errors
    /// [`LoadError`] that names the first field out of range.
    pub fn validate(&self, source: &str, path: &str) -> Result<(), LoadError> {
        let own = [
            ("micro_batch", self.micro_batch.map(u64::from)),
            ("sequence_length", self.sequence_length.map(u64::from)),
            ("optimizer_shards", self.optimizer_shards.map(u64::from)),
        ];
        let sizes = own.into_iter().chain(self.model.iter().flat_map(ModelShape::sizes));
        for (field, value) in sizes {
            if let Some(value) = value.filter(|value| !(1..=MOST).contains(value)) {
                let problem = format!("is {value}, must be a whole number from 1 to {MOST}");
                return Err(LoadError::at(source, format!("{path}.{field}"), problem, "correct it or leave it out"));
            }
        }
        if let Some(bytes) = self.state_bytes_per_parameter.filter(|bytes| !(0.0..=1e6).contains(bytes)) {
            let problem = format!("is {bytes}, must be from 0 to 1000000");
            let place = format!("{path}.state_bytes_per_parameter");
            return Err(LoadError::at(source, place, problem, "correct it or leave it out"));
        }
        Ok(())
    }

    /// This recipe, with its open fields taken from `others`.
    #[must_use]
    pub fn or(&self, others: &Recipe) -> Recipe {
        Recipe {
            micro_batch: self.micro_batch.or(others.micro_batch),
            sequence_length: self.sequence_length.or(others.sequence_length),
            precision: self.precision.or(others.precision),
            sequence_parallel: self.sequence_parallel.or(others.sequence_parallel),
            tensor_overlap: self.tensor_overlap.or(others.tensor_overlap),
            keeps_attention_scores: self.keeps_attention_scores.or(others.keeps_attention_scores),
            state_bytes_per_parameter: self.state_bytes_per_parameter.or(others.state_bytes_per_parameter),
            optimizer_shards: self.optimizer_shards.or(others.optimizer_shards),
            model: self.model.or(others.model),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mixture with no experts.
    const MIXTURE: &str = r#"{"model": {"layers": 2, "hidden_size": 8, "attention_heads": 2, "key_value_heads": 2,
        "head_size": 4, "feed_forward_size": 8, "gated": true, "tied_embeddings": false, "vocabulary": 9,
        "max_positions": 8, "learned_positions": false, "bidirectional": false,
        "experts": {"count": 0, "chosen": 1, "feed_forward_size": 8}}}"#;

    #[test]
    fn only_what_is_known_is_written_and_read_back() {
        let recipe = Recipe { micro_batch: Some(4), precision: Some(Precision::Bf16), ..Recipe::default() };
        let text = serde_json::to_string(&recipe).unwrap();
        assert_eq!(text, r#"{"micro_batch":4,"precision":"bf16"}"#);
        assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe);
    }

    #[test]
    fn numbers_that_nothing_can_have_are_refused_by_name() {
        for (text, field) in [
            (r#"{"micro_batch": 0}"#, "recipe.micro_batch"),
            (r#"{"optimizer_shards": 0}"#, "recipe.optimizer_shards"),
            (r#"{"state_bytes_per_parameter": -1}"#, "recipe.state_bytes_per_parameter"),
            (MIXTURE, "recipe.model.experts.count"),
        ] {
            let recipe: Recipe = serde_json::from_str(text).unwrap();
            let error = recipe.validate("a.json", "recipe").unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
