//! Days and cost of training on a number of tokens, from a price that the user gives: by flag, or for a kind of hardware
//! in the configuration file.

use clap::Args;

pub(crate) use crate::plan::document::CostPart as Cost;
use crate::{
    cli::Failure,
    config::{self, Config},
    folders, units,
    workload::Workload,
};

/// Flags for the length of the training and the price of a device.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct CostArgs {
    /// Price of a device for an hour, in any currency; with --tokens, the cost is printed
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true, value_parser = positive)]
    pub price: Option<f64>,
    /// Tokens to train on, such as 15T or 300B: prints the days, and with --price the cost
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_parser = units::parse_tokens)]
    pub tokens: Option<f64>,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|price: &f64| *price > 0.0 && *price < 1e9).ok_or_else(|| "must be above 0".into())
}

impl CostArgs {
    /// The same with the configured price of the hardware, if no price is given.
    ///
    /// # Errors
    /// [`Failure`] if the configuration file cannot be read.
    pub(crate) fn on(&self, hardware: &str) -> Result<Self, Failure> {
        if self.price.is_some() {
            return Ok(self.clone());
        }
        let place = config::place(folders::variable);
        let config = place.map(|place| Config::load(&place)).transpose()?.unwrap_or_default();
        Ok(CostArgs { price: config.prices.get(hardware).copied(), ..self.clone() })
    }

    /// Figures for a rate; `None` if neither flag is given.
    pub(crate) fn of(&self, tokens_per_s: f64, devices: u64) -> Option<Cost> {
        Cost::of(self.price, self.tokens, tokens_per_s, devices)
    }

    /// The figures in a line: `15T tokens: 61.3 days, 1.41 M (94.2 for a billion tokens)`.
    pub(crate) fn line(&self, tokens_per_s: f64, devices: u64) -> Option<String> {
        let cost = self.of(tokens_per_s, devices)?;
        let per = cost.per_billion.map(|amount| format!("{} for a billion tokens", units::money(amount)));
        Some(match (self.tokens, cost.days, cost.total) {
            (Some(tokens), Some(days), Some(total)) => format!(
                "{} tokens: {} days, costs {} ({})",
                units::count_short(tokens),
                units::number(days),
                units::money(total),
                per.unwrap_or_default()
            ),
            (Some(tokens), Some(days), None) => {
                format!("{} tokens: {} days; --price gives the cost", units::count_short(tokens), units::number(days))
            }
            _ => format!("costs {}", per.unwrap_or_default()),
        })
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
    /// Flags for a workload; `None` if there is neither a price nor a number of tokens.
    ///
    /// # Errors
    /// [`Failure`] if a flag is given for a workload without tokens, or the configuration file cannot be read.
    pub(crate) fn of(args: &CostArgs, workload: &Workload) -> Result<Option<Self>, Failure> {
        let Some(profile) = workload.training() else {
            let flag = if args.tokens.is_some() { "--tokens" } else { "--price" };
            if workload.mixed().is_some() && *args != CostArgs::default() {
                let problem = format!("{flag} is for one kind of device, and {} is on several", workload.name);
                return Err(Failure::refused(problem, "give prices with the kinds, such as --devices 16xh100:2.50"));
            }
            return match *args == CostArgs::default() {
                true => Ok(None),
                false => Err(Failure::refused(
                    format!("{flag} is for a model that is trained, and {} states no tokens", workload.name),
                    "name a model, such as llama-3-70b, or leave it out",
                )),
            };
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
        days.into_iter().chain(per).chain(total).collect()
    }

    /// Cells of a row under [`TrainingCost::heads`]; dashes without a rate.
    pub(crate) fn cells(&self, rate: Option<(f64, u64)>) -> Vec<String> {
        let Some(cost) = rate.and_then(|(samples_per_s, devices)| self.figures(samples_per_s, devices)) else {
            return vec!["-".into(); self.heads().len()];
        };
        let days = cost.days.map(units::number);
        days.into_iter().chain(cost.per_billion.map(units::money)).chain(cost.total.map(units::money)).collect()
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
        let cost = CostArgs { price: Some(2.5), tokens: Some(86.4e9) };
        // A million tokens a second takes a day; ten devices cost 600.
        let figures = cost.of(1e6, 10).unwrap();
        assert_eq!((figures.days, figures.total.map(f64::round)), (Some(1.0), Some(600.0)));
        assert!(CostArgs::default().of(1e6, 10).is_none());
        assert!(cost.line(1e6, 10).unwrap().starts_with("86.4 G tokens: 1 days, costs 600.00 ("));
    }
}
