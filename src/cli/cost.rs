//! Days and cost of training on a number of tokens, from a price that the user gives: by flag, or for a kind of hardware
//! in the configuration file. Failures that the user states lower the share of the time that trains.

use clap::Args;

pub(crate) use crate::plan::document::CostPart as Cost;
use crate::{
    cli::Failure,
    cluster::goodput::Failures,
    config::{self, Config},
    folders, units,
    workload::Workload,
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
        let times = [("--checkpoint-time", self.checkpoint_time), ("--restart-time", self.restart_time)];
        let given = times.into_iter().find(|(_, time)| time.is_some()).filter(|_| !self.has_failures());
        if let Some((flag, _)) = given {
            let problem = format!("{flag} says nothing without failures");
            return Err(Failure::refused(problem, "give --failures-per-day or --mtbf, or leave it out"));
        }
        if self.price.is_some() {
            return Ok(self.clone());
        }
        let place = config::place(folders::variable);
        let config = place.map(|place| Config::load(&place)).transpose()?.unwrap_or_default();
        Ok(CostArgs { price: config.prices.get(hardware).copied(), ..self.clone() })
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
        let cost = self.of(tokens_per_s, devices)?;
        let per = cost.per_billion.map(|amount| format!("{} for a billion tokens", units::money(amount)));
        let length = match (self.tokens, cost.days, cost.total) {
            (Some(tokens), Some(days), Some(total)) => Some(format!(
                "{} tokens: {} days, costs {} ({})",
                units::count_short(tokens),
                units::number(days),
                units::money(total),
                per.unwrap_or_default()
            )),
            (Some(tokens), Some(days), None) => Some(format!(
                "{} tokens: {} days; --price gives the cost",
                units::count_short(tokens),
                units::number(days)
            )),
            _ => per.map(|per| format!("costs {per}")),
        };
        let goodput = self.failures(devices).map(|failures| self.goodput_line(&failures));
        Some(length.into_iter().chain(goodput).collect::<Vec<_>>().join("\n"))
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

/// Price and length of the training of one workload.
#[derive(Debug, Clone)]
pub(crate) struct TrainingCost {
    args: CostArgs,
    /// Tokens of one sample.
    tokens: f64,
}

impl TrainingCost {
    /// Flags for a workload; `None` if there is neither a price, a number of tokens nor a number of failures.
    ///
    /// # Errors
    /// [`Failure`] if a flag is given for a workload without tokens, or the configuration file cannot be read.
    pub(crate) fn of(args: &CostArgs, workload: &Workload) -> Result<Option<Self>, Failure> {
        let Some(profile) = workload.training() else {
            let Some(flag) = args.first_flag() else { return Ok(None) };
            if workload.mixed().is_some() {
                let problem = format!("{flag} is for one kind of device, and {} is on several", workload.name);
                let repair = match flag {
                    "--price" => "give prices with the kinds, such as --devices 16xh100:2.50",
                    _ => "leave it out, or plan on one kind",
                };
                return Err(Failure::refused(problem, repair));
            }
            return Err(Failure::refused(
                format!("{flag} is for a model that is trained, and {} states no tokens", workload.name),
                "name a model, such as llama-3-70b, or leave it out",
            ));
        };
        let args = args.on(profile.accelerator.id)?;
        let given = args != CostArgs::default();
        Ok(given.then_some(TrainingCost { args, tokens: profile.sequence as f64 }))
    }

    /// Figures for a rate of samples on some devices.
    pub(crate) fn figures(&self, samples_per_s: f64, devices: u64) -> Option<Cost> {
        self.args.of(samples_per_s * self.tokens, devices)
    }

    /// The figures in a line.
    pub(crate) fn line(&self, samples_per_s: f64, devices: u64) -> Option<String> {
        self.args.line(samples_per_s * self.tokens, devices)
    }

    /// True if a price is known.
    pub(crate) fn has_price(&self) -> bool {
        self.args.price.is_some()
    }

    /// Heads of the columns of a table.
    pub(crate) fn heads(&self) -> Vec<String> {
        let days = self.args.tokens.map(|tokens| format!("days for {}", units::count_short(tokens)));
        let per = self.args.price.map(|_| "per G tokens".to_string());
        let total = self.args.tokens.zip(self.args.price).map(|_| "cost".to_string());
        let goodput = self.args.has_failures().then(|| "goodput".to_string());
        goodput.into_iter().chain(days).chain(per).chain(total).collect()
    }

    /// Cells of a row under [`TrainingCost::heads`]; dashes without a rate.
    pub(crate) fn cells(&self, rate: Option<(f64, u64)>) -> Vec<String> {
        let Some(cost) = rate.and_then(|(samples_per_s, devices)| self.figures(samples_per_s, devices)) else {
            return vec!["-".into(); self.heads().len()];
        };
        let shown = |given: bool, figure: Option<String>| given.then(|| figure.unwrap_or_else(|| "-".into()));
        let (days, price) = (self.args.tokens.is_some(), self.args.price.is_some());
        let cells = [
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
