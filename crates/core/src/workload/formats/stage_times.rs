//! Measured times of a pipeline's stages, for the simulator alone.
//!
//! ```text
//! { "schema": "plantui.stage-times/1", "microbatches": 24, "transfer_s": 0.0006, "memory_bytes": 8.0e10,
//!   "stages": [ {"count": 8, "forward_s": 0.0185, "input_gradient_s": 0.0181, "weight_gradient_s": 0.0093,
//!                "activation_bytes": 3.0e9, "fixed_bytes": 1.0e10} ] }
//! ```
//!
//! The three times of a stage are F, B and W of the zero-bubble papers: of one microbatch on one device. A time
//! `backward_s` in place of the last two is a backward pass that nothing splits. `count` equal stages stand in one
//! entry; what is absent is zero.

use serde::Deserialize;

use super::reader::parse;
use crate::source::LoadError;

/// Required value of `schema`.
pub const SCHEMA: &str = "plantui.stage-times/1";

/// Most stages of a file.
const MOST_STAGES: usize = 4096;

/// Times and bytes of one stage, for one microbatch on one device.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StageTime {
    /// Number of equal stages that the entry stands for.
    #[serde(default = "one")]
    pub count: u32,
    /// Forward pass, seconds.
    pub forward_s: f64,
    /// Whole backward pass, seconds, in place of its two parts.
    pub backward_s: Option<f64>,
    /// Backward pass of the inputs, seconds.
    pub input_gradient_s: Option<f64>,
    /// Backward pass of the weights, seconds.
    pub weight_gradient_s: Option<f64>,
    /// Bytes that one microbatch in flight keeps.
    #[serde(default)]
    pub activation_bytes: f64,
    /// Bytes that do not depend on microbatches in flight.
    #[serde(default)]
    pub fixed_bytes: f64,
}

fn one() -> u32 {
    1
}

/// Times of all stages.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StageTimes {
    /// [`SCHEMA`].
    pub schema: String,
    /// Microbatches of a batch.
    pub microbatches: u32,
    /// Time to send one microbatch from a stage to the next, or its gradients back, seconds.
    #[serde(default)]
    pub transfer_s: f64,
    /// Memory of a device, bytes.
    pub memory_bytes: Option<f64>,
    /// Stages in order.
    pub stages: Vec<StageTime>,
}

impl StageTime {
    /// Whole backward pass and, if it is known, the part of the weights, seconds.
    pub fn backward(&self) -> (f64, Option<f64>) {
        match self.backward_s {
            Some(whole) => (whole, None),
            None => {
                let weights = self.weight_gradient_s.unwrap_or_default();
                (self.input_gradient_s.unwrap_or_default() + weights, Some(weights))
            }
        }
    }
}

impl StageTimes {
    /// Stages, each on its own.
    pub fn each(&self) -> impl Iterator<Item = StageTime> + '_ {
        self.stages.iter().flat_map(|stage| (0..stage.count).map(move |_| StageTime { count: 1, ..*stage }))
    }
}

/// Reads stage times from the bytes of a file. `None` if the file is something else.
///
/// # Errors
/// [`LoadError`] with the path of the wrong value and its repair.
pub fn read(bytes: &[u8], source: &str) -> Option<Result<StageTimes, LoadError>> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let text = std::str::from_utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)).ok()?;
    let is_one = match serde_json::from_str::<Head>(text) {
        Ok(head) => head.schema == SCHEMA,
        // Broken JSON still shows what it was meant to be.
        Err(_) => text.trim_start().starts_with('{') && text.contains(&format!("\"{SCHEMA}\"")),
    };
    is_one.then(|| parse::<StageTimes>(text, source).and_then(|times| checked(times, source)))
}

fn checked(times: StageTimes, source: &str) -> Result<StageTimes, LoadError> {
    let refused = |path: String, problem: &str, repair: &str| Err(LoadError::at(source, path, problem, repair));
    let count: usize = times.stages.iter().map(|stage| stage.count as usize).sum();
    if count == 0 || count > MOST_STAGES {
        return refused("stages".into(), &format!("has {count} stages"), &format!("give 1 to {MOST_STAGES} stages"));
    }
    if times.microbatches == 0 {
        return refused("microbatches".into(), "is 0", "write at least 1");
    }
    let sound = |value: f64| value.is_finite() && value >= 0.0;
    for (name, value) in [("transfer_s", Some(times.transfer_s)), ("memory_bytes", times.memory_bytes)] {
        if value.is_some_and(|value| !sound(value)) {
            return refused(name.into(), "is negative", "write 0 or more");
        }
    }
    for (index, stage) in times.stages.iter().enumerate() {
        let at = |field: &str| format!("stages[{index}].{field}");
        let values = [
            ("forward_s", Some(stage.forward_s)),
            ("backward_s", stage.backward_s),
            ("input_gradient_s", stage.input_gradient_s),
            ("weight_gradient_s", stage.weight_gradient_s),
            ("activation_bytes", Some(stage.activation_bytes)),
            ("fixed_bytes", Some(stage.fixed_bytes)),
        ];
        if let Some((name, _)) = values.iter().find(|(_, value)| value.is_some_and(|value| !sound(value))) {
            return refused(at(name), "is negative", "write 0 or more");
        }
        let parts = stage.input_gradient_s.is_some() || stage.weight_gradient_s.is_some();
        if stage.backward_s.is_some() == parts {
            let problem = if parts { "stands beside its two parts" } else { "is missing, and so are its two parts" };
            let repair = "write `backward_s`, or `input_gradient_s` and `weight_gradient_s`";
            return refused(at("backward_s"), problem, repair);
        }
        if parts && (stage.input_gradient_s.is_none() || stage.weight_gradient_s.is_none()) {
            let missing = if stage.input_gradient_s.is_none() { "input_gradient_s" } else { "weight_gradient_s" };
            return refused(at(missing), "is missing", "write both parts of the backward pass");
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(body: &str) -> String {
        let text = format!("{{\"schema\": \"{SCHEMA}\", {body}}}");
        read(text.as_bytes(), "times.json").unwrap().unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let stage = |fields: &str| error(&format!("\"microbatches\": 4, \"stages\": [{{\"forward_s\": 1, {fields}}}]"));
        for (told, expected) in [
            (error("\"microbatches\": 4, \"stages\": []"), "stages"),
            (error("\"microbatches\": 0, \"stages\": [{\"forward_s\": 1, \"backward_s\": 2}]"), "microbatches"),
            (stage("\"backward_s\": -2"), "stages[0].backward_s"),
            (stage("\"backward_s\": 2, \"weight_gradient_s\": 1"), "stages[0].backward_s"),
            (stage("\"weight_gradient_s\": 1"), "stages[0].input_gradient_s"),
            (stage("\"backward_s\": 2, \"wait_s\": 1"), "wait_s"),
            (stage("\"backward_s\": 2, \"count\": 5000"), "5000 stages"),
        ] {
            assert!(told.contains("times.json") && told.contains(expected), "{told}");
        }
        assert_eq!(read(b"{\"schema\": \"plantui.plan/1\"}", "plan.json"), None);
    }
}
