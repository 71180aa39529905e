//! Schedules that delay the gradients of the weights, if requested and supported by the training software.
//!
//! `schedule=zb-h1` and `schedule=zb-v` search only these. `schedule=auto` adds ZB-V to 1F1B and interleaved 1F1B if
//! the software is torchtitan, which runs it. NVIDIA's stacks run neither. `O(1)` for each layout.

use crate::joint::settings::JointSettings;
use plantui_core::{
    family::training::{Layout, Stack, ZeroBubble},
    plan::Schedule,
    workload::TrainingProfile,
};

/// Returns true if 1F1B and interleaved 1F1B are searched, and the zero-bubble schedule to search, if any.
///
/// # Errors
/// The reason why the software cannot run the request, and an alternative.
pub(super) fn searched(
    profile: &TrainingProfile,
    settings: &JointSettings,
) -> Result<(bool, Option<ZeroBubble>), String> {
    let asked = match settings.wanted.schedule {
        Some(Schedule::ZeroBubbleH1) => ZeroBubble::H1,
        Some(Schedule::ZeroBubbleV) => ZeroBubble::V,
        Some(Schedule::GPipe) => {
            return Err("layouts run 1F1B, interleaved 1F1B or a zero-bubble schedule, not gpipe.".into());
        }
        None if profile.stack == Stack::Torchtitan => return Ok((true, Some(ZeroBubble::V))),
        _ => return Ok((true, None)),
    };
    let (id, stack) = (asked.id(), profile.stack.id());
    match (asked, profile.stack) {
        (ZeroBubble::V, Stack::Torchtitan) | (_, Stack::Plain) => Ok((false, Some(asked))),
        (ZeroBubble::H1, Stack::Torchtitan) => Err(format!("torchtitan runs zb-v, not {id}: use schedule=zb-v.")),
        _ => Err(format!(
            "{stack} does not run {id}: NVIDIA's engines do not defer weight gradients. torchtitan runs \
            zb-v."
        )),
    }
}

/// Layout for a zero-bubble schedule, from one without virtual stages; `None` if there is no pipeline.
pub(super) fn layout(of: Layout, schedule: ZeroBubble) -> Option<Layout> {
    let pipeline = of.pipeline > 1 && of.virtual_stages == 1;
    pipeline.then_some(Layout { virtual_stages: schedule.parts(), ..of })
}
