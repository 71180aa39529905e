//! Days and cost of training on a number of tokens, from a price that the user gives: by flag, or for a kind of hardware
//! in the configuration file. Failures that the user states lower the share of the time that trains.

use clap::Args;

pub(crate) use crate::plan::document::CostPart as Cost;
use crate::{
    cli::Failure,
    cluster::{Limits, goodput::Failures},
    config::{self, Config},
    family::{kinds::KindCount, mixed::prices::PlanPrices, platform::Platform},
    folders,
    plan::Plan,
    units,
    workload::{TrainingProfile, Workload, mixed::MixedProfile},
};

/// Time to write a checkpoint if none is given, seconds.
const CHECKPOINT_S: f64 = 60.0;
/// Time to restart after a failure if none is given, seconds.
const RESTART_S: f64 = 600.0;

/// Flags for the length of the training, the price of a device, and failures.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct CostArgs {
    /// Price of a device for an hour, in any currency; with --tokens, the cost is printed
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true, value_parser = positive)]
    pub price: Option<f64>,
    /// Tokens to train on, such as 15T or 300B: prints the days, and with --price the cost
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_parser = units::parse_tokens)]
    pub tokens: Option<f64>,
    /// Failures of the whole job in a day, such as 7.8: prints the goodput, which days and costs then count
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true, value_parser = positive, conflicts_with = "mtbf")]
    pub failures_per_day: Option<f64>,
    /// Mean time between two failures of one device, such as 50000h; the job's is that divided by the devices
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = long_duration)]
    pub mtbf: Option<f64>,
    /// Time to write a checkpoint, during which nothing is trained [with failures: 60s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = units::parse_seconds)]
    pub checkpoint_time: Option<f64>,
    /// Time from a failure until training goes on [with failures: 10min]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = units::parse_seconds)]
    pub restart_time: Option<f64>,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|price: &f64| *price > 0.0 && *price < 1e9).ok_or_else(|| "must be above 0".into())
}

/// Reads a duration in seconds, in hours, days or years too: `50000h`, `90d`, `5y`.
fn long_duration(text: &str) -> Result<f64, String> {
    let long = [("d", 86_400.0), ("y", 365.0 * 86_400.0)];
    let of = |(unit, seconds): (&str, f64)| Some(text.trim().strip_suffix(unit)?.trim().parse::<f64>().ok()? * seconds);
    let read = long.into_iter().find_map(of).or_else(|| units::parse_seconds(text).ok());
    let known = read.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    known.ok_or_else(|| "is no duration above 0; write 50000h, 90d or 5y".into())
}

impl CostArgs {
    /// The same with the configured price of the hardware, if no price is given.
    ///
    /// # Errors
    /// [`Failure`] if times of failures are given without failures, or the configuration file cannot be read.
    pub(crate) fn on(&self, hardware: &str) -> Result<Self, Failure> {
        self.needs_failures()?;
        if self.price.is_some() {
            return Ok(self.clone());
        }
        let place = config::place(folders::variable);
        let config = place.map(|place| Config::load(&place)).transpose()?.unwrap_or_default();
        Ok(CostArgs { price: config.prices.get(hardware).copied(), ..self.clone() })
    }

    /// Refuses times of failures without failures.
    fn needs_failures(&self) -> Result<(), Failure> {
        let times = [("--checkpoint-time", self.checkpoint_time), ("--restart-time", self.restart_time)];
        match times.into_iter().find(|(_, time)| time.is_some()).filter(|_| !self.has_failures()) {
            Some((flag, _)) => {
                let problem = format!("{flag} says nothing without failures");
                Err(Failure::refused(problem, "give --failures-per-day or --mtbf, or leave it out"))
            }
            None => Ok(()),
        }
    }

    fn has_failures(&self) -> bool {
        self.failures_per_day.is_some() || self.mtbf.is_some()
    }

    /// First flag that is given.
    fn first_flag(&self) -> Option<&'static str> {
        let flags = [
            ("--tokens", self.tokens.is_some()),
            ("--price", self.price.is_some()),
            ("--failures-per-day", self.failures_per_day.is_some()),
            ("--mtbf", self.mtbf.is_some()),
            ("--checkpoint-time", self.checkpoint_time.is_some()),
            ("--restart-time", self.restart_time.is_some()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Failures of a job on some devices, if they are given.
    fn failures(&self, devices: u64) -> Option<Failures> {
        let per_day = self.failures_per_day.map(|count| 86_400.0 / count);
        let between_s = per_day.or(self.mtbf.map(|seconds| seconds / devices as f64))?;
        Some(Failures {
            between_s,
            checkpoint_s: self.checkpoint_time.unwrap_or(CHECKPOINT_S),
            restart_s: self.restart_time.unwrap_or(RESTART_S),
        })
    }

    /// Figures for a rate; `None` if neither price, tokens nor failures are given.
    pub(crate) fn of(&self, tokens_per_s: f64, devices: u64) -> Option<Cost> {
        let Some(failures) = self.failures(devices) else {
            return Cost::of(self.price, self.tokens, tokens_per_s, devices);
        };
        let goodput = failures.goodput();
        // A job that makes no progress has no end and no cost.
        let counted = Cost::of(self.price, self.tokens, tokens_per_s * goodput, devices).filter(|_| goodput > 0.0);
        let checkpoint_every_s = Some(failures.interval_s());
        Some(Cost { goodput: Some(goodput), checkpoint_every_s, ..counted.unwrap_or_default() })
    }

    /// The figures in lines: `15T tokens: 61.3 days, 1.41 M (94.2 for a billion tokens)`, and the goodput.
    pub(crate) fn line(&self, tokens_per_s: f64, devices: u64) -> Option<String> {
        self.of(tokens_per_s, devices).map(|cost| self.told(&cost, devices, "--price gives"))
    }

    /// Figures on some devices in lines; `priced` says what gives the cost.
    fn told(&self, cost: &Cost, devices: u64, priced: &str) -> String {
        let per = cost.per_billion.map(|amount| format!("{} for a billion tokens", units::money(amount)));
        let length = match (self.tokens, cost.days, cost.total) {
            (Some(tokens), Some(days), Some(total)) => Some(format!(
                "{} tokens: {} days, costs {} ({})",
                units::count_short(tokens),
                units::number(days),
                units::money(total),
                per.unwrap_or_default()
            )),
            (Some(tokens), Some(days), None) => {
                Some(format!("{} tokens: {} days; {priced} the cost", units::count_short(tokens), units::number(days)))
            }
            _ => per.map(|per| format!("costs {per}")),
        };
        let goodput = self.failures(devices).map(|failures| self.goodput_line(&failures));
        length.into_iter().chain(goodput).collect::<Vec<_>>().join("\n")
    }

    /// Goodput in a line: `goodput 84.2%: a failure every 3.093 h, a checkpoint every 1156 s is best (..)`.
    fn goodput_line(&self, failures: &Failures) -> String {
        let [between, every, checkpoint, restart] =
            [failures.between_s, failures.interval_s(), failures.checkpoint_s, failures.restart_s].map(units::seconds);
        let goodput = units::percent(failures.goodput());
        if failures.goodput() == 0.0 {
            return format!(
                "goodput {goodput}: with a failure every {between}, {checkpoint} to write a checkpoint and {restart} to \
                 restart, the formula leaves no time to train, and no days or cost"
            );
        }
        let assumed = match (self.checkpoint_time, self.restart_time) {
            (None, None) => ", both assumed",
            (None, Some(_)) => ", the first assumed",
            (Some(_), None) => ", the second assumed",
            (Some(_), Some(_)) => "",
        };
        let best = if failures.checkpoint_s > 0.0 {
            format!("a checkpoint every {every} is best ({checkpoint} to write, ")
        } else {
            "checkpoints cost nothing (".to_string()
        };
        format!("goodput {goodput}: a failure every {between}, {best}{restart} to restart{assumed})")
    }
}

/// Samples per second of a plan on its devices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PlanRate {
    /// Samples per second.
    pub(crate) samples_per_s: f64,
    /// Simulated iteration time, seconds.
    pub(crate) iteration_s: f64,
    /// Devices that the plan uses.
    pub(crate) devices: u64,
    /// Prices of a plan on several kinds of devices, if all have one.
    pub(crate) prices: Option<PlanPrices>,
}

impl PlanRate {
    /// Rate of a plan for a workload, from its simulated samples per second and iteration time.
    pub(crate) fn of(
        workload: &Workload,
        limits: &Limits,
        plan: &Plan,
        (samples_per_s, iteration_s): (f64, f64),
    ) -> Self {
        PlanRate {
            samples_per_s,
            iteration_s,
            devices: u64::from(plan.devices_used()),
            prices: PlanPrices::of(workload, limits, plan),
        }
    }

    /// Cost of an iteration, its traffic included, if the kinds have prices.
    fn iteration_cost(&self) -> Option<f64> {
        let samples = self.samples_per_s * self.iteration_s;
        self.prices.map(|prices| prices.of_iteration(self.iteration_s, samples))
    }
}

/// Price and length of the training of one workload.
#[derive(Debug, Clone)]
pub(crate) struct TrainingCost {
    args: CostArgs,
    /// Tokens of one sample.
    tokens: f64,
    /// True if there are several kinds of devices, with prices of their own.
    of_kinds: bool,
    /// True if a price is known.
    priced: bool,
}

impl TrainingCost {
    /// Flags for a workload; `None` if there is neither a price, a number of tokens nor a number of failures.
    ///
    /// # Errors
    /// [`Failure`] if a flag is given for a workload without tokens, or the configuration file cannot be read.
    pub(crate) fn of(args: &CostArgs, workload: &Workload) -> Result<Option<Self>, Failure> {
        if let Some((profile, model)) = workload.mixed().and_then(|profile| Some((profile, profile.model()?))) {
            return Self::on_kinds(args, profile, model);
        }
        let Some(profile) = workload.training() else {
            let Some(flag) = args.first_flag() else { return Ok(None) };
            return Err(Failure::refused(
                format!("{flag} is for a model that is trained, and {} states no tokens", workload.name),
                "name a model, such as llama-3-70b, or leave it out",
            ));
        };
        let args = args.on(profile.accelerator.id)?;
        let (given, priced) = (args != CostArgs::default(), args.price.is_some());
        Ok(given.then_some(TrainingCost { args, tokens: profile.sequence as f64, of_kinds: false, priced }))
    }

    /// Flags for a model on several kinds of devices, which have prices of their own.
    fn on_kinds(args: &CostArgs, profile: &MixedProfile, model: &TrainingProfile) -> Result<Option<Self>, Failure> {
        if args.price.is_some() {
            let repair = "give prices with the kinds, such as --devices 16xh100:2.50";
            return Err(Failure::refused("--price is for one kind of device, and there are several", repair));
        }
        args.needs_failures()?;
        let priced = KindCount::have_prices(&profile.kind_counts());
        let given = *args != CostArgs::default();
        Ok((given || priced).then(|| TrainingCost {
            args: args.clone(),
            tokens: model.sequence as f64,
            of_kinds: true,
            priced,
        }))
    }

    /// Figures for the rate of a plan.
    pub(crate) fn figures(&self, rate: &PlanRate) -> Option<Cost> {
        let price = rate.prices.map(|prices| prices.per_hour / rate.devices as f64).or(self.args.price);
        let args = CostArgs { price, ..self.args.clone() };
        let mut cost = args.of(rate.samples_per_s * self.tokens, rate.devices)?;
        // What failures undo is sent again.
        let again = self.args.failures(rate.devices).map_or(0.0, |failures| failures.repeated());
        let traffic = rate.prices.map_or(0.0, |prices| prices.traffic) / self.tokens * (1.0 + again);
        cost.per_billion = cost.per_billion.map(|amount| amount + 1e9 * traffic);
        cost.total = cost.total.zip(self.args.tokens).map(|(amount, tokens)| amount + tokens * traffic);
        let (per_hour, per_iteration) = (rate.prices.map(|prices| prices.per_hour), rate.iteration_cost());
        Some(Cost { per_hour, per_iteration, ..cost })
    }

    /// The figures in a line.
    pub(crate) fn line(&self, rate: &PlanRate) -> Option<String> {
        let priced = if self.of_kinds { "prices in --devices give" } else { "--price gives" };
        self.figures(rate).map(|cost| self.args.told(&cost, rate.devices, priced))
    }

    /// True if a price is known.
    pub(crate) fn has_price(&self) -> bool {
        self.priced
    }

    /// Heads of the columns of a table.
    pub(crate) fn heads(&self) -> Vec<String> {
        let days = self.args.tokens.map(|tokens| format!("days for {}", units::count_short(tokens)));
        let per = self.has_price().then(|| "per G tokens".to_string());
        let total = self.args.tokens.filter(|_| self.has_price()).map(|_| "cost".to_string());
        let goodput = self.args.has_failures().then(|| "goodput".to_string());
        let of_kinds = (self.of_kinds && self.priced).then(|| ["an hour", "iteration cost"].map(String::from));
        of_kinds.into_iter().flatten().chain(goodput).chain(days).chain(per).chain(total).collect()
    }

    /// Cells of a row under [`TrainingCost::heads`]; dashes without a rate.
    pub(crate) fn cells(&self, rate: Option<PlanRate>) -> Vec<String> {
        let Some(cost) = rate.and_then(|rate| self.figures(&rate)) else {
            return vec!["-".into(); self.heads().len()];
        };
        let shown = |given: bool, figure: Option<String>| given.then(|| figure.unwrap_or_else(|| "-".into()));
        let (days, price) = (self.args.tokens.is_some(), self.has_price());
        let of_kinds = self.of_kinds && price;
        let cells = [
            shown(of_kinds, cost.per_hour.map(units::money)),
            shown(of_kinds, cost.per_iteration.map(units::number)),
            shown(self.args.has_failures(), cost.goodput.map(units::percent)),
            shown(days, cost.days.map(units::number)),
            shown(price, cost.per_billion.map(units::money)),
            shown(days && price, cost.total.map(units::money)),
        ];
        cells.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_cost_follow_from_rate_and_price() {
        assert_eq!(units::parse_tokens("15T"), Ok(15e12));
        assert_eq!(units::parse_tokens("300b"), Ok(300e9));
        assert!(units::parse_tokens("many").is_err() && units::parse_tokens("").is_err() && positive("-1").is_err());
        let cost = CostArgs { price: Some(2.5), tokens: Some(86.4e9), ..CostArgs::default() };
        // A million tokens a second takes a day; ten devices cost 600.
        let figures = cost.of(1e6, 10).unwrap();
        assert_eq!((figures.days, figures.total.map(f64::round)), (Some(1.0), Some(600.0)));
        assert!(CostArgs::default().of(1e6, 10).is_none());
        assert!(cost.line(1e6, 10).unwrap().starts_with("86.4 G tokens: 1 days, costs 600.00 ("));
    }

    #[test]
    fn failures_lengthen_the_training() {
        let cost = CostArgs { tokens: Some(86.4e9), failures_per_day: Some(419.0 / 54.0), ..CostArgs::default() };
        let figures = cost.of(1e6, 16_384).unwrap();
        assert_eq!(
            (figures.goodput.map(units::percent), figures.days.map(units::number)),
            (Some("84.2%".into()), Some("1.187".into()))
        );
        let line = cost.line(1e6, 16_384).unwrap();
        assert!(line.contains("goodput 84.2%: a failure every 3.093 h, a checkpoint every 1156 s is best"), "{line}");
        assert!(line.contains("(60.00 s to write, 600.0 s to restart, both assumed)"), "{line}");
        // A device of the job fails as often as the job divided by the devices.
        let of_device = CostArgs { failures_per_day: None, mtbf: Some(54.0 * 86_400.0 / 419.0 * 16_384.0), ..cost };
        assert_eq!(of_device.of(1e6, 16_384).unwrap().goodput.map(units::percent), Some("84.2%".into()));
        let often = CostArgs { failures_per_day: Some(1e4), ..CostArgs::default() };
        let (figures, line) = (often.of(1e6, 8).unwrap(), often.line(1e6, 8).unwrap());
        assert!(figures.days.is_none() && line.contains("leaves no time to train"), "{line}");
        assert!(CostArgs { restart_time: Some(60.0), ..CostArgs::default() }.on("h100").is_err());
    }
}
