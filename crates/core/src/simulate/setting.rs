//! Simulator settings that a user can read, step through and type: one list for the screen's rows, the configuration
//! file and sessions.
//!
//! A setting without effect states the reason ([`SimulatorSetting::unused`]) instead of being omitted. Its value is
//! kept for another schedule or plan.

use super::{
    pipeline::Pipeline,
    settings::{LinkModel, SimulatorSettings},
    setup::Setup,
};
use crate::{plan::Schedule, plan::WarmUp, units};

/// Maximum number of virtual stages of a device, and of buckets of an all-reduce.
const MOST_PARTS: u32 = 1024;

/// Maximum number of microbatches started early.
const MOST_WARM_UP: u32 = 1 << 20;

/// One of [`SimulatorSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SimulatorSetting {
    /// [`SimulatorSettings::overlap`].
    Overlap,
    /// [`SimulatorSettings::links`].
    Links,
    /// [`SimulatorSettings::virtual_stages`].
    VirtualStages,
    /// [`SimulatorSettings::sequence_slices`].
    SequenceSlices,
    /// [`SimulatorSettings::warm_up`].
    WarmUp,
    /// [`SimulatorSettings::extra_warm_up`].
    ExtraWarmUp,
    /// [`SimulatorSettings::weight_gradient_share`].
    WeightGradientShare,
    /// [`SimulatorSettings::forward_share`].
    ForwardShare,
    /// [`SimulatorSettings::buckets`].
    Buckets,
    /// [`SimulatorSettings::optimizer_step_s`].
    OptimizerStep,
}

impl SimulatorSetting {
    /// All settings, in display order.
    pub const ALL: [SimulatorSetting; 10] = [
        SimulatorSetting::Overlap,
        SimulatorSetting::Links,
        SimulatorSetting::VirtualStages,
        SimulatorSetting::SequenceSlices,
        SimulatorSetting::WarmUp,
        SimulatorSetting::ExtraWarmUp,
        SimulatorSetting::WeightGradientShare,
        SimulatorSetting::ForwardShare,
        SimulatorSetting::Buckets,
        SimulatorSetting::OptimizerStep,
    ];

    /// Id in files. If `plantui simulate` has a flag for it, the flag's name.
    pub fn id(self) -> &'static str {
        match self {
            SimulatorSetting::Overlap => "overlap",
            SimulatorSetting::Links => "links",
            SimulatorSetting::VirtualStages => "virtual-stages",
            SimulatorSetting::SequenceSlices => "sequence-slices",
            SimulatorSetting::WarmUp => "warmup",
            SimulatorSetting::ExtraWarmUp => "extra-warmup",
            SimulatorSetting::WeightGradientShare => "weight-gradient-share",
            SimulatorSetting::ForwardShare => "forward-share",
            SimulatorSetting::Buckets => "buckets",
            SimulatorSetting::OptimizerStep => "optimizer-step",
        }
    }

    /// Setting with this id.
    pub fn find(id: &str) -> Option<SimulatorSetting> {
        SimulatorSetting::ALL.into_iter().find(|setting| setting.id() == id)
    }

    /// Label for users, at most 15 cells wide.
    pub fn label(self) -> &'static str {
        match self {
            SimulatorSetting::Overlap => "overlap",
            SimulatorSetting::Links => "links",
            SimulatorSetting::VirtualStages => "virtual stages",
            SimulatorSetting::SequenceSlices => "slices",
            SimulatorSetting::WarmUp => "warm-up",
            SimulatorSetting::ExtraWarmUp => "extra warm-up",
            SimulatorSetting::WeightGradientShare => "weight grads",
            SimulatorSetting::ForwardShare => "forward share",
            SimulatorSetting::Buckets => "buckets",
            SimulatorSetting::OptimizerStep => "optimizer",
        }
    }

    /// Description in one line, with the unit.
    pub fn help(self) -> &'static str {
        match self {
            SimulatorSetting::Overlap => "whether a device computes while it sends or receives: yes or no",
            SimulatorSetting::Links => {
                "how transfers use a link: without limit (private), one at a time (exclusive), sharing its bandwidth \
                (shared)"
            }
            SimulatorSetting::VirtualStages => "virtual stages per device",
            SimulatorSetting::SequenceSlices => "slices of a sequence under Seq1F1B",
            SimulatorSetting::WarmUp => {
                "rounding of warm-up microbatches where replicas differ: up at every stage (published), or \
                cumulative from the last stage"
            }
            SimulatorSetting::ExtraWarmUp => {
                "warm-up microbatches beyond those of 1F1B; `double`: twice as many as \
                1F1B"
            }
            SimulatorSetting::WeightGradientShare => {
                "weight gradients as a share of the backward pass; zero-bubble schedules defer them"
            }
            SimulatorSetting::ForwardShare => {
                "forward share of a node's time, where the profile has one time for both passes"
            }
            SimulatorSetting::Buckets => {
                "buckets of the gradient all-reduce; with more than one they overlap the \
                last backward pass"
            }
            SimulatorSetting::OptimizerStep => "optimizer step of every device at the end, in ms or s",
        }
    }

    /// Values that can be typed.
    pub fn values(self) -> String {
        match self {
            SimulatorSetting::Overlap => "yes or no".into(),
            SimulatorSetting::Links => LinkModel::ALL.map(LinkModel::id).join(", "),
            SimulatorSetting::VirtualStages | SimulatorSetting::SequenceSlices | SimulatorSetting::Buckets => {
                format!("a whole number from 1 to {MOST_PARTS}, such as 4")
            }
            SimulatorSetting::WarmUp => WarmUp::ALL.map(WarmUp::id).join(", "),
            SimulatorSetting::ExtraWarmUp => format!("`double`, or a whole number up to {MOST_WARM_UP}, such as 3"),
            SimulatorSetting::WeightGradientShare | SimulatorSetting::ForwardShare => {
                "a share from 0 to 1, such as 0.4 or 40%".into()
            }
            SimulatorSetting::OptimizerStep => "a time such as 20ms".into(),
        }
    }

    /// True if it is one of a few words, to step through rather than to type.
    pub fn is_choice(self) -> bool {
        matches!(self, SimulatorSetting::Overlap | SimulatorSetting::Links | SimulatorSetting::WarmUp)
    }

    /// Value as the screen shows it.
    pub fn show(self, settings: &SimulatorSettings) -> String {
        match self {
            SimulatorSetting::WeightGradientShare => units::percent(settings.weight_gradient_share),
            SimulatorSetting::ForwardShare => units::percent(settings.forward_share),
            SimulatorSetting::OptimizerStep if settings.optimizer_step_s == 0.0 => "none".into(),
            SimulatorSetting::OptimizerStep => units::seconds(settings.optimizer_step_s),
            _ => self.text(settings),
        }
    }

    /// Value as text from which [`SimulatorSetting::parse`] restores it exactly.
    pub fn text(self, settings: &SimulatorSettings) -> String {
        match self {
            SimulatorSetting::Overlap => if settings.overlap { "yes" } else { "no" }.into(),
            SimulatorSetting::Links => settings.links.id().into(),
            SimulatorSetting::VirtualStages => settings.virtual_stages.to_string(),
            SimulatorSetting::SequenceSlices => settings.sequence_slices.to_string(),
            SimulatorSetting::WarmUp => settings.warm_up.id().into(),
            SimulatorSetting::ExtraWarmUp => {
                settings.extra_warm_up.map_or_else(|| "double".into(), |extra| extra.to_string())
            }
            SimulatorSetting::WeightGradientShare => settings.weight_gradient_share.to_string(),
            SimulatorSetting::ForwardShare => settings.forward_share.to_string(),
            SimulatorSetting::Buckets => settings.buckets.to_string(),
            SimulatorSetting::OptimizerStep => format!("{}s", settings.optimizer_step_s),
        }
    }

    /// Settings with this one parsed from a text.
    ///
    /// # Errors
    /// Allowed values, in one sentence.
    pub fn parse(self, text: &str, settings: &SimulatorSettings) -> Result<SimulatorSettings, String> {
        let text = text.trim();
        let expected = || format!("expected {}", self.values());
        let parts = || text.parse().ok().filter(|count| (1..=MOST_PARTS).contains(count)).ok_or_else(expected);
        let mut new = *settings;
        match self {
            SimulatorSetting::Overlap => {
                new.overlap = match text {
                    "yes" | "true" | "on" => true,
                    "no" | "false" | "off" => false,
                    _ => return Err(expected()),
                }
            }
            SimulatorSetting::Links => new.links = LinkModel::find(text).ok_or_else(expected)?,
            SimulatorSetting::VirtualStages => new.virtual_stages = parts()?,
            SimulatorSetting::SequenceSlices => new.sequence_slices = parts()?,
            SimulatorSetting::WarmUp => new.warm_up = WarmUp::find(text).ok_or_else(expected)?,
            SimulatorSetting::ExtraWarmUp if text == "double" => new.extra_warm_up = None,
            SimulatorSetting::ExtraWarmUp => {
                let extra = text.parse().ok().filter(|extra| *extra <= MOST_WARM_UP);
                new.extra_warm_up = Some(extra.ok_or_else(expected)?);
            }
            SimulatorSetting::WeightGradientShare => new.weight_gradient_share = share(text).ok_or_else(expected)?,
            SimulatorSetting::ForwardShare => new.forward_share = share(text).ok_or_else(expected)?,
            SimulatorSetting::Buckets => new.buckets = parts()?,
            SimulatorSetting::OptimizerStep if matches!(text, "none" | "0") => new.optimizer_step_s = 0.0,
            SimulatorSetting::OptimizerStep => {
                new.optimizer_step_s = units::parse_seconds(text).map_err(|error| error.to_string())?;
            }
        }
        Ok(new)
    }

    /// Settings with this one a step up or down. A number stops at its limits; a choice wraps around.
    pub fn step(self, settings: &SimulatorSettings, up: bool, large: bool) -> SimulatorSettings {
        let mut new = *settings;
        let count = |now: u32| match (up, large) {
            (true, false) => (now + 1).min(MOST_PARTS),
            (true, true) => (2 * now).min(MOST_PARTS),
            (false, false) => (now - 1).max(1),
            (false, true) => (now / 2).max(1),
        };
        let shift = |now: f64| {
            let by = if large { 0.25 } else { 0.05 };
            // Steps go to the next multiple, so that values after 1/3 are round.
            let at = now / by;
            let next = if up { (at + 1e-9).floor() + 1.0 } else { (at - 1e-9).ceil() - 1.0 };
            (next * by).clamp(0.0, 1.0)
        };
        match self {
            SimulatorSetting::Overlap => new.overlap = !settings.overlap,
            SimulatorSetting::Links => {
                let at = LinkModel::ALL.iter().position(|links| *links == settings.links).unwrap_or(0);
                let count = LinkModel::ALL.len();
                new.links = LinkModel::ALL[(at + if up { 1 } else { count - 1 }) % count];
            }
            SimulatorSetting::WarmUp => {
                let at = WarmUp::ALL.iter().position(|rule| *rule == settings.warm_up).unwrap_or(0);
                new.warm_up = WarmUp::ALL[(at + 1) % WarmUp::ALL.len()];
            }
            SimulatorSetting::VirtualStages => new.virtual_stages = count(settings.virtual_stages.max(1)),
            SimulatorSetting::SequenceSlices => new.sequence_slices = count(settings.sequence_slices.max(1)),
            SimulatorSetting::Buckets => new.buckets = count(settings.buckets.max(1)),
            SimulatorSetting::ExtraWarmUp => {
                let by = if large { 8 } else { 1 };
                // `double` comes before 0.
                new.extra_warm_up = match (settings.extra_warm_up, up) {
                    (None, true) => Some(0),
                    (None | Some(0), false) => None,
                    (Some(extra), true) => Some((extra + by).min(MOST_WARM_UP)),
                    (Some(extra), false) => Some(extra.saturating_sub(by)),
                };
            }
            SimulatorSetting::WeightGradientShare => new.weight_gradient_share = shift(settings.weight_gradient_share),
            SimulatorSetting::ForwardShare => new.forward_share = shift(settings.forward_share),
            SimulatorSetting::OptimizerStep => {
                let steps = if large { 3 } else { 1 };
                new.optimizer_step_s = (0..steps).fold(settings.optimizer_step_s, |now, _| next_time(now, up));
            }
        }
        new
    }

    /// True if both settings have the same value of this one.
    pub fn same(self, one: &SimulatorSettings, other: &SimulatorSettings) -> bool {
        self.text(one) == self.text(other)
    }

    /// Settings with this one taken from `others`.
    pub fn from(self, settings: &SimulatorSettings, others: &SimulatorSettings) -> SimulatorSettings {
        self.parse(&self.text(others), settings).unwrap_or(*settings)
    }

    /// Difference from the default in a few words; `None` if there is none.
    pub fn change(self, settings: &SimulatorSettings) -> Option<String> {
        if self.same(settings, &SimulatorSettings::default()) {
            return None;
        }
        let value = self.show(settings);
        Some(match self {
            SimulatorSetting::Overlap => "no overlap".into(),
            SimulatorSetting::Links => format!("{value} links"),
            SimulatorSetting::VirtualStages => format!("{value} virtual stages"),
            SimulatorSetting::SequenceSlices => format!("{value} slices of a sequence"),
            SimulatorSetting::WarmUp => format!("{value} warm-up"),
            SimulatorSetting::ExtraWarmUp => format!("warm-up +{value}"),
            SimulatorSetting::WeightGradientShare => format!("weight gradients {value} of the backward"),
            SimulatorSetting::ForwardShare => format!("forward {value} of a node"),
            SimulatorSetting::Buckets => format!("{value} buckets"),
            SimulatorSetting::OptimizerStep => format!("optimizer step {value}"),
        })
    }

    /// Reason why the setting does not change the simulation, in a few words; `None` if it does. Without a pipeline,
    /// considers only the schedule and the other settings.
    pub fn unused(self, setup: &Setup, pipeline: Option<&Pipeline>) -> Option<&'static str> {
        if pipeline.is_some_and(Pipeline::runs_once) {
            return Some("this plan runs one sample, in a fixed order");
        }
        let schedule = setup.schedule;
        let lacks = |is_there: fn(&Pipeline) -> bool| pipeline.is_some_and(|pipeline| !is_there(pipeline));
        match self {
            SimulatorSetting::Overlap | SimulatorSetting::Links => {
                lacks(|pipeline| pipeline.sends().next().is_some()).then_some("no stage sends anything to another")
            }
            SimulatorSetting::VirtualStages => {
                let several =
                    [Schedule::Interleaved, Schedule::InterleavedZeroBubble, Schedule::LoopedBfs, Schedule::Combined];
                (!several.contains(&schedule)).then_some("only interleaved schedules have virtual stages to choose")
            }
            SimulatorSetting::SequenceSlices => {
                (schedule != Schedule::Seq1F1B).then_some("only Seq1F1B cuts sequences into slices")
            }
            SimulatorSetting::WarmUp if !warms_up(schedule) => {
                Some("only 1F1B, eager 1F1B and ZB-H1 round their warm-up")
            }
            SimulatorSetting::WarmUp => {
                lacks(Pipeline::is_uneven).then_some("all stages have the same number of replicas: both rules agree")
            }
            SimulatorSetting::ExtraWarmUp => (schedule != Schedule::EagerOneForwardOneBackward)
                .then_some("only eager 1F1B has extra warm-up microbatches"),
            SimulatorSetting::WeightGradientShare => (!schedule.splits_backward())
                .then_some("only zero-bubble schedules and DualPipe split the backward pass"),
            SimulatorSetting::ForwardShare => lacks(|pipeline| pipeline.assumes_forward_share).then_some(
                "the profile has separate times for both \
                    passes",
            ),
            SimulatorSetting::Buckets | SimulatorSetting::OptimizerStep if !schedule.has_backward() => {
                Some("inference has no backward pass")
            }
            SimulatorSetting::Buckets if !setup.settings.overlap => {
                Some("without overlap gradients are reduced at the end, in one bucket")
            }
            SimulatorSetting::Buckets => lacks(|pipeline| pipeline.stages.iter().any(|stage| stage.all_reduce_s > 0.0))
                .then_some("no stage has gradients to reduce"),
            SimulatorSetting::OptimizerStep => None,
        }
    }
}

/// True if a schedule's warm-up depends on the replicas of later stages.
fn warms_up(schedule: Schedule) -> bool {
    use Schedule::{EagerOneForwardOneBackward, OneForwardOneBackward, ZeroBubbleH1};
    matches!(schedule, OneForwardOneBackward | EagerOneForwardOneBackward | ZeroBubbleH1)
}

/// Parses a fraction of 1, or a percentage with `%`.
fn share(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

/// Next of 0, 1, 2, 5, 10, 20, .. milliseconds.
fn next_time(now_s: f64, up: bool) -> f64 {
    let times = (-3..=3).flat_map(|power| [1.0, 2.0, 5.0].map(|m: f64| m * 10f64.powi(power)));
    let mut times = std::iter::once(0.0).chain(times);
    let found = if up {
        times.find(|time| *time > now_s * (1.0 + 1e-9))
    } else {
        times.take_while(|time| *time < now_s * (1.0 - 1e-9)).last()
    };
    found.unwrap_or(now_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings that all differ from the default.
    fn other() -> SimulatorSettings {
        SimulatorSettings {
            forward_share: 0.1 + 0.2,
            virtual_stages: 4,
            warm_up: WarmUp::Cumulative,
            extra_warm_up: Some(3),
            weight_gradient_share: 1.0 / 3.0,
            overlap: false,
            links: LinkModel::Shared,
            buckets: 8,
            optimizer_step_s: 0.1 + 0.02,
            sequence_slices: 7,
        }
    }

    #[test]
    fn texts_are_read_back_as_they_were() {
        let read = SimulatorSetting::ALL.into_iter().fold(SimulatorSettings::default(), |settings, setting| {
            assert_eq!(SimulatorSetting::find(setting.id()), Some(setting));
            assert!(!setting.same(&settings, &other()), "{setting:?}");
            setting.from(&settings, &other())
        });
        assert_eq!(read, other());
        let changes: Vec<String> =
            SimulatorSetting::ALL.iter().filter_map(|setting| setting.change(&other())).collect();
        assert_eq!(
            changes.join(", "),
            "no overlap, shared links, 4 virtual stages, 7 slices of a sequence, cumulative warm-up, warm-up +3, weight gradients 33.3% of the backward, \
             forward 30.0% of a node, 8 buckets, optimizer step 120.0 ms"
        );
        assert!(SimulatorSetting::ALL.iter().all(|setting| setting.change(&SimulatorSettings::default()).is_none()));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (setting, text) in [
            (SimulatorSetting::Overlap, "maybe"),
            (SimulatorSetting::Links, "none"),
            (SimulatorSetting::VirtualStages, "0"),
            (SimulatorSetting::VirtualStages, "1025"),
            (SimulatorSetting::WarmUp, "double"),
            (SimulatorSetting::ExtraWarmUp, "-1"),
            (SimulatorSetting::WeightGradientShare, "140%"),
            (SimulatorSetting::ForwardShare, "nan"),
            (SimulatorSetting::Buckets, "2.5"),
            (SimulatorSetting::OptimizerStep, "-3ms"),
            (SimulatorSetting::OptimizerStep, "soon"),
        ] {
            let error = setting.parse(text, &SimulatorSettings::default()).unwrap_err();
            assert!(error.contains("expected") || error.contains("1.5ms"), "{setting:?} {text}: {error}");
        }
        let taken = SimulatorSetting::WeightGradientShare.parse(" 40 %", &SimulatorSettings::default()).unwrap();
        assert_eq!(taken.weight_gradient_share, 0.4);
        assert_eq!(SimulatorSetting::OptimizerStep.parse("20ms", &taken).unwrap().optimizer_step_s, 0.02);
    }

    #[test]
    fn every_step_stays_within_what_can_be_typed_and_comes_back() {
        for setting in SimulatorSetting::ALL {
            for (up, large) in [(true, false), (true, true), (false, false), (false, true)] {
                let mut settings = SimulatorSettings::default();
                for _ in 0..60 {
                    settings = setting.step(&settings, up, large);
                    assert_eq!(
                        setting.parse(&setting.text(&settings), &SimulatorSettings::default()),
                        Ok(settings),
                        "{setting:?}"
                    );
                }
            }
            let up = setting.step(&other(), true, false);
            assert!(!setting.same(&up, &other()), "{setting:?}");
        }
        let stepped = SimulatorSetting::ForwardShare.step(&SimulatorSettings::default(), true, false);
        assert_eq!(SimulatorSetting::ForwardShare.show(&stepped), "35.0%");
        let stepped = SimulatorSetting::OptimizerStep.step(&SimulatorSettings::default(), true, false);
        assert_eq!(SimulatorSetting::OptimizerStep.show(&stepped), "1.000 ms");
        let twice = SimulatorSetting::OptimizerStep.step(
            &SimulatorSetting::OptimizerStep.step(&stepped, true, false),
            false,
            false,
        );
        assert_eq!(twice, stepped);
    }

    #[test]
    fn who_listens_depends_on_schedule_and_plan() {
        let setup = |schedule: Schedule| Setup::from(schedule);
        let heard = |schedule| -> Vec<&str> {
            let heard = SimulatorSetting::ALL.into_iter().filter(|s| s.unused(&setup(schedule), None).is_none());
            heard.map(SimulatorSetting::id).collect()
        };
        assert_eq!(heard(Schedule::GPipe), ["overlap", "links", "forward-share", "buckets", "optimizer-step"]);
        assert!(heard(Schedule::Interleaved).contains(&"virtual-stages"));
        assert!(heard(Schedule::EagerOneForwardOneBackward).contains(&"extra-warmup"));
        assert!(heard(Schedule::ZeroBubbleV).contains(&"weight-gradient-share"));
        assert_eq!(heard(Schedule::Inference), ["overlap", "links", "forward-share"]);
        let alone = Pipeline { stages: vec![Default::default()], ..Pipeline::default() };
        for setting in [
            SimulatorSetting::Overlap,
            SimulatorSetting::Links,
            SimulatorSetting::Buckets,
            SimulatorSetting::ForwardShare,
        ] {
            assert!(setting.unused(&setup(Schedule::GPipe), Some(&alone)).is_some(), "{setting:?}");
        }
        let mut waiting = setup(Schedule::GPipe);
        waiting.settings.overlap = false;
        assert!(SimulatorSetting::Buckets.unused(&waiting, None).is_some());
        waiting.settings.virtual_stages = 5;
        waiting.settings.buckets = 4;
        assert_eq!(waiting.changes(), ["no overlap"]);
    }
}
