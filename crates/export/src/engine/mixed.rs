//! Export of plans on several kinds of devices, as the configuration of the model that their costs are derived from.
//!
//! The engines written here have one tensor degree, one number of replicas and one rule of recomputation for all stages, and
//! take uneven layers. A plan that has those is written as it is, with the kind of each rank's device: ranks follow the
//! stages, so that the order of the hosts puts each stage on its kind. `O(layers)`.

use super::{Engine, EngineExport, EngineSettings, ExportError, training};
use plantui_core::{
    cluster::{LimitKind, Limits},
    family::{
        self, check,
        mixed::{iteration::KindPipeline, layout},
        training::{Layout, Recompute, configured, split::StageSplit},
    },
    plan::{Configuration, Plan, Violation},
    text::single_line,
    workload::{MixedProfile, Profile, TrainingProfile, Workload, mixed::MixedOrigin},
};

/// Start of the line with the cost of what an engine cannot express.
const COST: &str = "# nearest plan it can run:";

/// Writes a plan for an engine.
///
/// # Errors
/// [`ExportError`] if the plan breaks a rule, or the engine cannot run it as it is.
pub(super) fn export(
    engine: Engine,
    workload: &Workload,
    profile: &MixedProfile,
    limits: &Limits,
    plan: &Plan,
    settings: &EngineSettings,
) -> Result<EngineExport, ExportError> {
    let impossible = |losses: Vec<String>| ExportError::Impossible { engine: engine.title(), losses };
    let invalid = |violation: &Violation| ExportError::Invalid(violation.to_string());
    let score = check(workload, limits, plan);
    if let Some(violation) = score.violations.first() {
        return Err(invalid(violation));
    }
    let pipeline = layout::pipeline(profile, limits, plan)
        .map_err(|broken| broken.first().map_or(ExportError::Invalid(String::new()), invalid))?;
    let Some(MixedOrigin::Model(model)) = profile.origin.as_deref() else {
        let why = "the workload is a table of times by kind, and an engine's file needs the model: plan the model itself, \
                   such as `llama-3-8b --devices 16xh100,32xa100-80`";
        return Err(impossible(vec![why.into()]));
    };
    let losses = losses(&pipeline);
    if !losses.is_empty() {
        return Err(impossible(losses));
    }
    let configuration = configuration(model, &pipeline);
    let Some(split) = configured::split(model, &configuration) else {
        return Err(impossible(vec!["a stage between others has no layer of the model".into()]));
    };
    let on_one = on_one_kind(workload, model, limits, plan);
    let written = configured::plan(model, configuration, &split);
    let (one, one_limits) = &on_one;
    let own = one.training().unwrap_or(model);
    let mut exported = training::export(engine, one, own, one_limits, &written, settings)?;
    let mut notes = vec![format!("order of the hosts: {}", ranks(profile, plan))];
    if !exported.losses.is_empty() {
        notes.push("what it cannot express changes the time; on several kinds of devices that is not costed".into());
    }
    exported.text = told(engine, &exported.text, model, profile, &notes);
    notes.append(&mut exported.notes);
    exported.notes = notes;
    exported.plan = plan.clone();
    exported.values = (score.value, score.value);
    Ok(exported)
}

/// Parts of a plan that no engine expresses, a sentence each.
fn losses(pipeline: &KindPipeline) -> Vec<String> {
    let all = |of: fn(&family::mixed::iteration::KindStage) -> u32| {
        let mut values: Vec<u32> = pipeline.stages.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values
    };
    let mut losses = vec![];
    let degrees = all(|stage| stage.tensor);
    if degrees.len() > 1 {
        let degrees: Vec<String> = degrees.iter().map(ToString::to_string).collect();
        losses.push(format!(
            "its stages have tensor degrees {}, and it has one for all; `--set space=engine` plans with one",
            degrees.join(", ")
        ));
    }
    if all(|stage| u32::from(stage.recompute)).len() > 1 {
        losses.push(
            "some stages recompute and others do not, and it has one rule for all; `--set recompute=always` \
             or `never` plans with one"
                .into(),
        );
    }
    losses
}

/// Configuration of the model that runs the pipeline's stages.
fn configuration(model: &TrainingProfile, pipeline: &KindPipeline) -> Configuration {
    let first = &pipeline.stages[0];
    let layout = Layout {
        tensor: first.tensor,
        pipeline: pipeline.stages.len() as u32,
        data: pipeline.data,
        micro_batch: pipeline.micro_batch,
        ..Layout::ONE
    };
    let last = model.nodes() - 1;
    // The embedding and the head are no layers.
    let counts: Vec<u32> = pipeline
        .stages
        .iter()
        .map(|stage| stage.layers.clone().filter(|&node| node > 0 && node < last).count() as u32)
        .collect();
    let even = StageSplit::even(model.model.layers.len(), &layout);
    let is_even = even.is_some_and(|even| counts.iter().enumerate().all(|(at, &own)| even.layers(at) == own as usize));
    let recompute = if first.recompute { Recompute::Full } else { Recompute::None };
    Configuration { layers: if is_even { vec![] } else { counts }, ..model.configuration(layout, recompute) }
}

/// Workload and limits of the configuration, on one kind of device whose memory does not limit it: the plan's own kinds
/// were checked.
fn on_one_kind(workload: &Workload, model: &TrainingProfile, limits: &Limits, plan: &Plan) -> (Workload, Limits) {
    let mut model = model.clone();
    model.settings.forget_kinds();
    let workload = Workload { profile: Profile::Training(Box::new(model)), ..workload.clone() };
    let used = f64::from(plan.devices_used());
    let limits = limits.with(LimitKind::Devices, used).with(LimitKind::Memory, f64::INFINITY);
    (workload, limits)
}

/// Ranks on each kind: `ranks 0–15 on h100, 16–47 on a100-80`.
fn ranks(profile: &MixedProfile, plan: &Plan) -> String {
    let mut first = 0;
    let mut runs: Vec<(u32, u32, usize)> = vec![];
    for stage in &plan.stages {
        let (Some(kind), count) = (layout::kind_of(profile, stage), stage.device_count()) else { continue };
        match runs.last_mut() {
            Some((_, end, own)) if *own == kind => *end += count,
            _ => runs.push((first, first + count, kind)),
        }
        first += count;
    }
    let told = runs.iter().map(|&(from, end, kind)| format!("{from}–{} on {}", end - 1, profile.kinds[kind].id));
    format!("ranks {}", told.collect::<Vec<_>>().join(", "))
}

/// Text with these comments after its first line, the kinds of devices in place of the model's own, and no figure of a
/// cluster of that kind.
fn told(engine: Engine, text: &str, model: &TrainingProfile, profile: &MixedProfile, comments: &[String]) -> String {
    if !engine.takes_comments() {
        return text.into();
    }
    let (one, all) = (format!("ranks on {}:", model.accelerator.id), format!("ranks on {}:", profile.kinds_text()));
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with(COST)).map(|line| line.replace(&one, &all)).collect();
    let comments = comments.iter().map(|comment| format!("# {}", single_line(comment)));
    let first = lines.len().min(1);
    lines.splice(first..first, comments);
    lines.join("\n") + "\n"
}
