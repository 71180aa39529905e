//! Topologies as an axis of a sweep: a series for each planner on each topology, and the loss from one to the next.

use super::{report::line, sweep_limits::SweepLimits};
use crate::{
    study::sweep::{PointResult, Series, SeriesError, Sweep},
    units,
};

/// Series of these lines on every given topology. Labels name both, or only the topology if there is one planner.
/// `trained` models have their machines in the workload.
///
/// # Errors
/// The part of a line that is not a planner or not a setting.
pub(super) fn series(
    lines: &[String],
    settings: &[String],
    limits: &SweepLimits,
    trained: bool,
) -> Result<Vec<Series>, SeriesError> {
    let topologies = if trained { &[] } else { limits.topologies() };
    let mut all = vec![];
    for text in lines {
        // A topology's link settings are not part of a series' name.
        let plain = Series::parse(text, settings)?;
        for given in topologies {
            let links = given.settings().into_iter().map(|(name, value)| format!("{name}={value}"));
            let common: Vec<String> = links.chain(settings.iter().cloned()).collect();
            let name = &given.topology().name;
            let one = lines.len() == 1 && topologies.len() > 1;
            let label = if one { name.clone() } else { format!("{} on {name}", plain.label) };
            let wiring = Some(limits.wiring(given));
            all.push(Series { label, wiring, ..Series::parse(text, &common)? });
        }
        if topologies.is_empty() {
            all.push(plain);
        }
    }
    Ok(all)
}

/// Comparison for each set of limits and each planner: the topologies in the order of the simulated iteration time,
/// each with its loss against the one before and the place of its heaviest communication. Empty with fewer than two
/// topologies.
pub(super) fn report(sweep: &Sweep, answers: &[Option<PointResult>]) -> String {
    let mut text = String::new();
    let count = sweep.series.len();
    for (at, row) in answers.chunks(count.max(1)).enumerate() {
        for planner in planners(sweep) {
            let mut found: Vec<(f64, &str, Option<&str>)> = vec![];
            for (series, answer) in
                sweep.series.iter().zip(row).filter(|(series, _)| series.planner.info().id == planner)
            {
                let (Some(wiring), Some(answer)) = (&series.wiring, answer) else { continue };
                let Some(simulated) = &answer.simulated else { continue };
                let Some(wired) = &wiring.topology else { continue };
                found.push((simulated.iteration_s, &wired.topology.name, answer.mapped.as_deref()));
            }
            if found.len() < 2 {
                continue;
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            let place = sweep.points.get(at * count).map(|point| sweep.workload_label(point.workload));
            line(&mut text, format_args!("\n{} by {planner}, simulated on the routes:", place.unwrap_or_default()));
            let width = found.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
            let mut before: Option<(f64, &str)> = None;
            for (seconds, name, mapped) in found {
                let loss = match before {
                    Some((faster, other)) if seconds > faster * (1.0 + 1e-9) => {
                        format!("  {:.1} % longer than {other}", 100.0 * (seconds / faster - 1.0))
                    }
                    Some((_, other)) => format!("  as long as {other}"),
                    None => String::new(),
                };
                let mapped = mapped.map(|mapped| format!("; {mapped}")).unwrap_or_default();
                let batch = units::seconds(seconds);
                line(&mut text, format_args!("  {name:width$}  {batch} an iteration{loss}{mapped}"));
                before = Some((seconds, name));
            }
        }
    }
    text
}

/// Planners of the series, without duplicates.
fn planners(sweep: &Sweep) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = vec![];
    for series in &sweep.series {
        let id = series.planner.info().id;
        if !all.contains(&id) {
            all.push(id);
        }
    }
    all
}
