//! Schedules that delay the gradients of the weights, if requested and supported by the training software.
//!
//! `schedule=zb-h1`, `zb-v` and `interleaved-zb` search only these. `schedule=auto` adds the last two to 1F1B and
//! interleaved 1F1B if the software is torchtitan, which runs them. NVIDIA's stacks run none. `O(1)` for each layout.

use crate::joint::settings::JointSettings;
use plantui_core::{
    family::training::{Layout, Stack, ZeroBubble},
    plan::Schedule,
    workload::TrainingProfile,
};

/// Schedules to search.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayoutSchedules {
    /// True for 1F1B and interleaved 1F1B.
    pub(super) usual: bool,
    /// Schedules that delay the gradients of the weights.
    pub(super) delayed: &'static [ZeroBubble],
    /// True if only layouts with virtual stages run 1F1B.
    interleaved: bool,
    /// Pinned number of virtual stages.
    virtual_stages: Option<u32>,
}

impl LayoutSchedules {
    /// Runs of a layout: itself, and those that delay gradients, from a layout without virtual stages, or with them if
    /// the schedule deals them out in turn. Only those with the pinned number of virtual stages.
    pub(super) fn runs(self, of: Layout) -> impl Iterator<Item = (Layout, Option<ZeroBubble>)> {
        let usual = self.usual && (of.virtual_stages > 1 || !self.interleaved);
        let delayed = self.delayed.iter().filter_map(move |&schedule| Some((layout(of, schedule)?, Some(schedule))));
        let all = usual.then_some((of, None)).into_iter().chain(delayed);
        all.filter(move |(own, _)| self.virtual_stages.is_none_or(|pinned| pinned == own.virtual_stages))
    }
}

/// Schedules to search.
///
/// # Errors
/// The reason why the software cannot run the request, and an alternative.
pub(super) fn searched(profile: &TrainingProfile, settings: &JointSettings) -> Result<LayoutSchedules, String> {
    let with = |usual: bool, delayed: &'static [ZeroBubble]| LayoutSchedules {
        usual,
        delayed,
        interleaved: settings.wanted.schedule == Some(Schedule::Interleaved),
        virtual_stages: settings.virtual_stages,
    };
    let asked = match settings.wanted.schedule {
        Some(Schedule::ZeroBubbleH1) => ZeroBubble::H1,
        Some(Schedule::ZeroBubbleV) => ZeroBubble::V,
        Some(Schedule::InterleavedZeroBubble) => ZeroBubble::Interleaved,
        Some(Schedule::GPipe) => {
            return Err("layouts run 1F1B, interleaved 1F1B or a zero-bubble schedule, not gpipe.".into());
        }
        None if profile.stack == Stack::Torchtitan => {
            return Ok(with(true, &[ZeroBubble::V, ZeroBubble::Interleaved]));
        }
        _ => return Ok(with(true, &[])),
    };
    let only = |delayed| Ok(with(false, delayed));
    let (id, stack) = (asked.id(), profile.stack.id());
    match (asked, profile.stack) {
        (ZeroBubble::H1, Stack::Plain) => only(&[ZeroBubble::H1]),
        (ZeroBubble::V, Stack::Torchtitan | Stack::Plain) => only(&[ZeroBubble::V]),
        (ZeroBubble::Interleaved, Stack::Torchtitan | Stack::Plain) => only(&[ZeroBubble::Interleaved]),
        (ZeroBubble::H1, Stack::Torchtitan) => {
            Err(format!("torchtitan runs zb-v and interleaved-zb, not {id}: use schedule=zb-v."))
        }
        _ => Err(format!(
            "{stack} does not run {id}: NVIDIA's engines do not defer weight gradients. torchtitan runs zb-v and \
            interleaved-zb."
        )),
    }
}

/// Layout for a zero-bubble schedule; `None` if this one is not for it.
pub(super) fn layout(of: Layout, schedule: ZeroBubble) -> Option<Layout> {
    match schedule.parts() {
        Some(parts) => (of.pipeline > 1 && of.virtual_stages == 1).then_some(Layout { virtual_stages: parts, ..of }),
        None => (of.virtual_stages > 1).then_some(of),
    }
}
