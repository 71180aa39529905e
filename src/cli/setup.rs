//! Flags for the simulation of an iteration.

use clap::{Args, builder::PossibleValuesParser};

use super::schedule_argument::{ScheduleChoice, ScheduleChoiceParser};

use crate::{
    plan::WarmUp,
    simulate::{ExplicitSettings, LinkModel, Pipeline, Schedule, Setup, SimulatorSetting, SimulatorSettings},
    units,
};

/// How a batch is simulated; what is not given is as everywhere else in plantui.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulation")]
pub(super) struct SetupArgs {
    /// Pipeline schedule, a CSV file with one as PyTorch writes it, or a table of all [default: the plan's, else 1f1b]
    #[arg(long, value_name = "ID|FILE|all", value_parser = ScheduleChoiceParser)]
    schedule: Option<ScheduleChoice>,
    /// Virtual stages per device under `interleaved`, `interleaved-zb` and `looped-bfs` [default: the plan's, else 2]
    #[arg(long, value_name = "V", value_parser = virtual_stages)]
    virtual_stages: Option<u32>,
    /// Slices of a sequence under `seq1f1b` [default: 2]
    #[arg(long, value_name = "N", value_parser = slices)]
    sequence_slices: Option<u32>,
    /// Rounding of warm-up microbatches where replicas differ: up at every stage, or cumulative from the last one
    /// [default: the plan's, else published]
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(WarmUp::ALL.map(WarmUp::id)))]
    warmup: Option<String>,
    /// Warm-up microbatches of `eager-1f1b` beyond those of 1F1B [default: twice as many as 1F1B in total]
    #[arg(long, value_name = "N")]
    extra_warmup: Option<u32>,
    /// Weight gradients as a share of the backward pass, which zero-bubble schedules defer [default: 0.5]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    weight_gradient_share: Option<f64>,
    /// Forward share of a node's time, if the profile has one time for both passes [default: 1/3]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    forward_share: Option<f64>,
    /// Devices do not compute while they send or receive
    #[arg(long)]
    no_overlap: bool,
    /// Use of the link between two stages, or of a machine's ports: without limit, one transfer at a time, or shared
    /// fairly
    #[arg(long, value_name = "MODEL", default_value = LinkModel::default().id(),
          value_parser = PossibleValuesParser::new(LinkModel::ALL.map(LinkModel::id)))]
    links: String,
    /// Buckets of the gradient all-reduce; with more than one they overlap the last backward pass
    #[arg(long, value_name = "N", value_parser = buckets)]
    buckets: Option<u32>,
    /// Optimizer step of every device at the end, such as 20ms [default: none]
    #[arg(long, value_name = "TIME", value_parser = units::parse_seconds, allow_hyphen_values = true)]
    optimizer_step: Option<f64>,
}

fn virtual_stages(text: &str) -> Result<u32, String> {
    SimulatorSetting::VirtualStages.parse(text, &SimulatorSettings::default()).map(|settings| settings.virtual_stages)
}

fn slices(text: &str) -> Result<u32, String> {
    SimulatorSetting::SequenceSlices.parse(text, &SimulatorSettings::default()).map(|settings| settings.sequence_slices)
}

fn buckets(text: &str) -> Result<u32, String> {
    SimulatorSetting::Buckets.parse(text, &SimulatorSettings::default()).map(|settings| settings.buckets)
}

fn share(text: &str) -> Result<f64, String> {
    SimulatorSetting::ForwardShare.parse(text, &SimulatorSettings::default()).map(|settings| settings.forward_share)
}

impl SetupArgs {
    /// Flags that were given.
    fn given(&self) -> impl Iterator<Item = SimulatorSetting> + '_ {
        SimulatorSetting::ALL.into_iter().filter(|setting| match setting {
            SimulatorSetting::Overlap => self.no_overlap,
            SimulatorSetting::Links => self.links != LinkModel::default().id(),
            SimulatorSetting::VirtualStages => self.virtual_stages.is_some(),
            SimulatorSetting::SequenceSlices => self.sequence_slices.is_some(),
            SimulatorSetting::WarmUp => self.warmup.is_some(),
            SimulatorSetting::ExtraWarmUp => self.extra_warmup.is_some(),
            SimulatorSetting::WeightGradientShare => self.weight_gradient_share.is_some(),
            SimulatorSetting::ForwardShare => self.forward_share.is_some(),
            SimulatorSetting::Buckets => self.buckets.is_some(),
            SimulatorSetting::OptimizerStep => self.optimizer_step.is_some(),
        })
    }

    /// True if a table of all schedules is requested.
    pub(super) fn all_schedules(&self) -> bool {
        self.schedule == Some(ScheduleChoice::All)
    }

    /// Given settings that affect none of these simulated plans, a sentence each.
    #[allow(clippy::needless_pass_by_value, reason = "callers hand over what they make for this alone")]
    pub(super) fn unused_settings<'a>(
        &self,
        simulated: impl Iterator<Item = (Schedule, &'a Pipeline)> + Clone,
    ) -> Vec<String> {
        let wanted = self.simulate();
        let mut told = vec![];
        let once = simulated.clone().next().is_some() && simulated.clone().all(|(_, pipeline)| pipeline.runs_once());
        if once && wanted.schedule != Schedule::ALL[0] {
            told.push("--schedule changes nothing here: the plan runs one sample, in a fixed order".into());
        }
        for setting in self.given() {
            let flag = if setting == SimulatorSetting::Overlap { "no-overlap" } else { setting.id() };
            let mut reasons = simulated
                .clone()
                .map(|(schedule, pipeline)| setting.unused(&Setup { schedule, ..wanted }, Some(pipeline)));
            if let Some(Some(reason)) = reasons.next()
                && reasons.all(|reason| reason.is_some())
            {
                told.push(format!("--{flag} changes nothing here: {reason}"));
            }
        }
        told
    }

    /// Requested schedule and settings.
    pub(super) fn simulate(&self) -> Setup {
        let default = SimulatorSettings::default();
        let settings = SimulatorSettings {
            forward_share: self.forward_share.unwrap_or(default.forward_share),
            virtual_stages: self.virtual_stages.unwrap_or(default.virtual_stages),
            sequence_slices: self.sequence_slices.unwrap_or(default.sequence_slices),
            warm_up: self.warmup.as_deref().and_then(WarmUp::find).unwrap_or(default.warm_up),
            extra_warm_up: self.extra_warmup,
            weight_gradient_share: self.weight_gradient_share.unwrap_or(default.weight_gradient_share),
            overlap: !self.no_overlap,
            links: LinkModel::find(&self.links).unwrap_or_default(),
            buckets: self.buckets.unwrap_or(default.buckets),
            optimizer_step_s: self.optimizer_step.unwrap_or(default.optimizer_step_s),
        };
        let schedule = match self.schedule {
            Some(ScheduleChoice::One(schedule)) => Some(schedule),
            _ => None,
        };
        let explicit = ExplicitSettings {
            schedule: schedule.is_some(),
            virtual_stages: self.virtual_stages.is_some(),
            warm_up: self.warmup.is_some(),
        };
        Setup { schedule: schedule.unwrap_or(Schedule::ALL[0]), settings, explicit }
    }
}
