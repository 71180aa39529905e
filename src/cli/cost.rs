//! Days and cost of training on a number of tokens, from a price that the user gives.

use clap::Args;
use serde::Serialize;

use crate::units;

/// Flags for the length of the training and the price of a device.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub(crate) struct CostArgs {
    /// Price of a device for an hour, in any currency; with --tokens, the cost is printed
    #[arg(long, value_name = "PRICE", allow_hyphen_values = true, value_parser = positive)]
    pub price: Option<f64>,
    /// Tokens to train on, such as 15T or 300B: prints the days, and with --price the cost
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_parser = tokens)]
    pub tokens: Option<f64>,
}

fn positive(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|price: &f64| *price > 0.0 && *price < 1e9).ok_or_else(|| "must be above 0".into())
}

fn tokens(text: &str) -> Result<f64, String> {
    let suffixes = [('K', 1e3), ('M', 1e6), ('B', 1e9), ('G', 1e9), ('T', 1e12)];
    let last = text.chars().last().map(|c| c.to_ascii_uppercase());
    let found = suffixes.iter().find(|(suffix, _)| Some(*suffix) == last);
    let (digits, factor) = found.map_or((text, 1.0), |(_, factor)| (&text[..text.len() - 1], *factor));
    let count: Option<f64> = digits.parse().ok().map(|count: f64| count * factor);
    count.filter(|count| (1.0..=1e18).contains(count)).ok_or_else(|| "must be a number such as 15T or 300B".into())
}

/// Figures for a rate of tokens on some devices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// Days of training, if the number of tokens is given.
    pub days: Option<f64>,
    /// Cost of a billion tokens, if the price is given.
    #[serde(rename = "per_billion_tokens")]
    pub per_billion: Option<f64>,
    /// Cost of the training, if both are given.
    pub total: Option<f64>,
}

impl CostArgs {
    /// Figures for a rate; `None` if neither flag is given.
    pub(crate) fn of(&self, tokens_per_s: f64, devices: u64) -> Option<Cost> {
        let days = self.tokens.map(|tokens| tokens / tokens_per_s / 86_400.0);
        let per_s = self.price.map(|price| price * devices as f64 / 3600.0);
        let per_billion = per_s.map(|per_s| per_s * 1e9 / tokens_per_s);
        let total = days.zip(per_s).map(|(days, per_s)| days * 86_400.0 * per_s);
        (days.is_some() || per_billion.is_some()).then_some(Cost { days, per_billion, total })
    }

    /// The figures in a line: `15T tokens: 61.3 days, 1.41 M (94.2 for a billion tokens)`.
    pub(crate) fn line(&self, tokens_per_s: f64, devices: u64) -> Option<String> {
        let cost = self.of(tokens_per_s, devices)?;
        let money = |amount: f64| if amount >= 1e4 { units::count_short(amount) } else { format!("{amount:.2}") };
        let per = cost.per_billion.map(|amount| format!("{} for a billion tokens", money(amount)));
        Some(match (self.tokens, cost.days, cost.total) {
            (Some(tokens), Some(days), Some(total)) => format!(
                "{} tokens: {} days, costs {} ({})",
                units::count_short(tokens),
                units::number(days),
                money(total),
                per.unwrap_or_default()
            ),
            (Some(tokens), Some(days), None) => {
                format!("{} tokens: {} days; --price gives the cost", units::count_short(tokens), units::number(days))
            }
            _ => format!("costs {}", per.unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_cost_follow_from_rate_and_price() {
        assert_eq!(tokens("15T"), Ok(15e12));
        assert_eq!(tokens("300b"), Ok(300e9));
        assert!(tokens("many").is_err() && tokens("").is_err() && positive("-1").is_err());
        let cost = CostArgs { price: Some(2.5), tokens: Some(86.4e9) };
        // A million tokens a second takes a day; ten devices cost 600.
        let figures = cost.of(1e6, 10).unwrap();
        assert_eq!((figures.days, figures.total.map(f64::round)), (Some(1.0), Some(600.0)));
        assert!(CostArgs::default().of(1e6, 10).is_none());
        assert!(cost.line(1e6, 10).unwrap().starts_with("86.4 G tokens: 1 days, costs 600.00 ("));
    }
}
