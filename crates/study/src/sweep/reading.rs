//! Interpretation of curves: how well they scale, where doubling stops to pay, and which line leads where.
//!
//! All figures are converted to rates, where more is better: the rate of a time is its inverse. `O(n)` in the points of
//! a line, `O(n²)` for knees (every point searches its double).

use super::{
    ChartFigure,
    chart::{Chart, ChartLine},
};

/// Least gain of a doubling before the knee.
pub const LEAST_GAIN: f64 = 1.6;
/// Relative tolerance for values that count as double another.
const NEAR: f64 = 0.02;
/// Fewest points of a line that say something.
const FEWEST: usize = 5;
/// Smaller relative leads count as none.
const LEAD: f64 = 0.005;

/// Point from which doubling gains less than [`LEAST_GAIN`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knee {
    /// Position along the chart.
    pub x: f64,
    /// Speed-up from doubling.
    pub gain: f64,
}

/// True if more of the chart's figure is better.
pub fn more_is_better(chart: &Chart) -> bool {
    match &chart.objective {
        Some((_, unit)) => unit == "x",
        None => matches!(chart.figure, ChartFigure::Throughput),
    }
}

/// Rates of a line by x, without points that have no plan.
pub fn rates(chart: &Chart, line: &ChartLine) -> Vec<(f64, f64)> {
    let more = more_is_better(chart);
    let rate = |y: f64| if more { y } else { 1.0 / y };
    line.marks.iter().filter_map(|mark| Some((mark.x, rate(mark.y.filter(|y| *y > 0.0)?)))).collect()
}

/// Best rate per unit along the chart, over several lines.
pub fn best_per_unit<'a>(lines: impl Iterator<Item = &'a [(f64, f64)]>) -> f64 {
    lines.flatten().filter(|(x, _)| *x > 0.0).map(|(x, rate)| rate / x).fold(0.0, f64::max)
}

/// First point from which on every doubling gains less than [`LEAST_GAIN`].
pub fn knee(rates: &[(f64, f64)]) -> Option<Knee> {
    let double = |x: f64| rates.iter().find(|(other, _)| (other / (2.0 * x) - 1.0).abs() <= NEAR);
    let gains: Vec<Knee> = rates.iter().filter_map(|&(x, rate)| Some(Knee { x, gain: double(x)?.1 / rate })).collect();
    let from = gains.iter().rposition(|knee| knee.gain >= LEAST_GAIN).map_or(0, |last| last + 1);
    gains.into_iter().nth(from)
}

/// Statements about the curves, a sentence each: the leaders, the best efficiency, the knee.
pub fn sentences(chart: &Chart, line: usize, scales: bool) -> Vec<String> {
    let all: Vec<Vec<(f64, f64)>> = chart.lines.iter().map(|line| rates(chart, line)).collect();
    let mut told = vec![];
    // A curve of a few points says nothing.
    if all.get(line).is_none_or(|rates| rates.len() < FEWEST) {
        return told;
    }
    if let Some(lead) = leads(chart, &all) {
        told.push(lead);
    }
    let Some(own) = all.get(line).filter(|own| !own.is_empty()) else { return told };
    if scales {
        let most = own.iter().reduce(|best, point| if point.1 / point.0 > best.1 / best.0 { point } else { best });
        if let Some((x, _)) = most {
            let (one, many) = chart.x_noun();
            told.push(format!("Efficiency per {one} peaks at {}{many}.", chart.show_x(*x)));
        }
        told.extend(knee(own).map(|Knee { x, gain }| {
            format!("Knee at {}: the next doubling gives {gain:.2}x, less than {LEAST_GAIN}x.", chart.show_x(x))
        }));
    } else if let Some(&(enough, _)) =
        own.iter().find(|(_, rate)| own.iter().all(|(_, other)| *other <= rate * (1.0 + LEAD)))
    {
        let last = own.last().map_or(enough, |(x, _)| *x);
        if enough < last {
            told.push(format!("More than {} {} gains nothing.", chart.show_x(enough), chart.x_title()));
        }
    }
    told
}

/// Line that is best at most positions, and the leaders elsewhere.
fn leads(chart: &Chart, all: &[Vec<(f64, f64)>]) -> Option<String> {
    if all.len() < 2 {
        return None;
    }
    let at = |line: usize, x: f64| all[line].iter().find(|(other, _)| *other == x).map(|(_, rate)| *rate);
    let mut met = false;
    let mut wins = vec![0usize; all.len()];
    let mut best_at = vec![];
    for &x in &chart.places {
        let mut there: Vec<(usize, f64)> = (0..all.len()).filter_map(|line| Some((line, at(line, x)?))).collect();
        there.sort_by(|a, b| b.1.total_cmp(&a.1));
        let [(first, rate), (_, second), ..] = there[..] else { continue };
        met = true;
        if rate > second * (1.0 + LEAD) {
            wins[first] += 1;
            best_at.push((x, first, rate));
        }
    }
    let leader = (0..all.len()).reduce(|best, line| if wins[line] > wins[best] { line } else { best })?;
    if !met {
        return None;
    }
    if wins[leader] == 0 {
        return Some("No line leads: all differences are below 0.5%.".into());
    }
    let name = |line: usize| &chart.lines[line].label;
    let other = best_at.iter().filter(|(_, line, _)| *line != leader).max_by(|a, b| {
        let over = |(x, _, rate): &(f64, usize, f64)| at(leader, *x).map_or(f64::INFINITY, |own| rate / own);
        over(a).total_cmp(&over(b))
    });
    let but = other.map(|(x, line, rate)| match at(leader, *x) {
        Some(own) => format!(", but at {} {} is {:.2}x as fast", chart.show_x(*x), name(*line), rate / own),
        None => format!(", but at {} only {} has a plan", chart.show_x(*x), name(*line)),
    });
    Some(format!("{} leads{}.", name(leader), but.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_a_doubling_gives_too_little() {
        let rates = [(8.0, 8.0), (11.0, 10.9), (16.0, 15.5), (32.0, 28.0), (64.0, 40.0), (128.0, 50.0)];
        let found = knee(&rates).unwrap();
        assert_eq!(found.x, 32.0);
        assert!((found.gain - 40.0 / 28.0).abs() < 1e-12);
        assert_eq!(knee(&[(1.0, 1.0), (2.0, 2.0), (4.0, 4.0)]), None);
        assert_eq!(knee(&[]), None);
        assert_eq!(best_per_unit([&rates[..]].into_iter()), 1.0);
    }
}
