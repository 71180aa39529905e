//! Default choice between the two cost models of a generated workload.

use super::GenerateArgs;
use crate::{
    generate::{BRANCHING_CNN, TINY_BRANCH, follows_published_profile, preset},
    workload::training::Stack,
};

/// Constants of the published profile, applied to data sheets.
pub(super) const PUBLISHED: &str = "piper-2021";
/// Hardware that the analytic constants were fitted on.
pub(super) const ANALYTIC_HARDWARE: &str = "a100-80";
/// Hardware of most published runs.
pub(super) const TRAINED_HARDWARE: &str = "h100";

impl GenerateArgs {
    /// Default stack: real training's, except for the models and assumptions of the published profile.
    pub(super) fn usual_stack(&self) -> &'static str {
        let made_up = [TINY_BRANCH, BRANCHING_CNN].contains(&self.model.as_str());
        let published = preset(&self.model).is_some_and(|model| follows_published_profile(&model));
        if made_up || published || self.assumes() { PUBLISHED } else { Stack::default().id() }
    }

    /// True if times and memory come from the model of real training.
    pub(super) fn is_trained(&self) -> bool {
        let usual = self.usual_stack();
        !self.stack.as_deref().unwrap_or(usual).eq_ignore_ascii_case(PUBLISHED)
    }

    /// True if an assumption of the published profile's cost model was given.
    fn assumes(&self) -> bool {
        let times = self.element_bytes.is_some()
            || self.mfu.is_some()
            || self.tensor_overhead.is_some()
            || self.tensor_bandwidth.is_some()
            || self.keep_attention_scores
            || self.causal_credit;
        // The memory of operators is counted the same way under both time models.
        let memory = self.operators.operators.is_none()
            && (self.state_bytes.is_some()
                || self.activation_bytes.is_some()
                || self.sequence_parallel
                || self.working_set.is_some());
        times || memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumptions_of_the_published_profile_take_its_constants() {
        let bare = GenerateArgs::of("llama-3-8b");
        assert!(bare.is_trained());
        assert!(!GenerateArgs { mfu: Some(0.4), ..bare.clone() }.is_trained());
        assert!(!GenerateArgs { sequence_parallel: true, ..bare.clone() }.is_trained());
        assert!(!GenerateArgs { stack: Some("Piper-2021".into()), ..bare.clone() }.is_trained());
        assert!(!GenerateArgs::of("bert-32").is_trained());
        assert!(GenerateArgs { stack: Some("plain".into()), ..GenerateArgs::of("bert-32") }.is_trained());
    }

    #[test]
    fn the_usual_stack_goes_without_saying() {
        let bare = GenerateArgs::of("llama-3-8b");
        let with = |id: &str, args: &GenerateArgs| GenerateArgs { stack: Some(id.into()), ..args.clone() };
        assert_eq!(with("megatron-2025", &bare).command_line(), bare.command_line());
        assert_eq!(with("piper-2021", &bare).command_line(), "plantui generate llama-3-8b --stack piper-2021");
        let assumed = GenerateArgs { mfu: Some(0.4), ..bare };
        assert_eq!(with("piper-2021", &assumed).command_line(), "plantui generate llama-3-8b --mfu 0.4");
    }
}
