//! What of a sweep suits its planners: workloads they cannot plan, and limits that change nothing for them.

use super::Sweep;
use crate::{cluster::LimitKind, study::explain::limits_of};

/// A limit that some lines do not heed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheeded {
    /// The limit.
    pub kind: LimitKind,
    /// The names of the planners that do not heed it, each once.
    pub planners: Vec<&'static str>,
    /// Whether no line heeds it.
    pub by_all: bool,
}

impl Unheeded {
    /// A sentence on it; `limit` is what the limit is called there: its flag or its label.
    pub fn told(&self, limit: &str) -> String {
        let planners = listed(&self.planners);
        let verb = if self.planners.len() == 1 { "does" } else { "do" };
        let place = if self.by_all { "here" } else { "for some lines" };
        format!("{limit} changes nothing {place}: {planners} {verb} not heed it")
    }
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}

impl Sweep {
    /// Why the planner of a series cannot plan a workload; `None` if it can.
    pub fn refusal(&self, series: usize, workload: usize) -> Option<String> {
        let planner = self.series[series].planner;
        let workload = &self.workloads[workload];
        let reason = planner.can_plan(workload).err()?;
        Some(format!("{} cannot plan {}: {reason}", planner.info().name, workload.name))
    }

    /// Whether a limit means anything to the planner of a series, for some workload.
    pub fn heeds(&self, series: usize, kind: LimitKind) -> bool {
        let planner = self.series[series].planner;
        self.workloads.iter().any(|workload| limits_of(planner, workload).contains(&kind))
    }

    /// Those of the limits that change nothing for some line.
    pub fn unheeded(&self, kinds: &[LimitKind]) -> Vec<Unheeded> {
        let of = |&kind: &LimitKind| {
            let deaf: Vec<usize> = (0..self.series.len()).filter(|&series| !self.heeds(series, kind)).collect();
            let mut planners: Vec<&'static str> = vec![];
            for &series in &deaf {
                let name = self.series[series].planner.info().name;
                if !planners.contains(&name) {
                    planners.push(name);
                }
            }
            (!deaf.is_empty()).then_some(Unheeded { kind, planners, by_all: deaf.len() == self.series.len() })
        };
        kinds.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_nobody_heeds_is_told_by_name() {
        let one = Unheeded { kind: LimitKind::Bandwidth, planners: vec!["A"], by_all: true };
        assert_eq!(one.told("--bandwidth"), "--bandwidth changes nothing here: A does not heed it");
        let three = Unheeded { kind: LimitKind::Cpus, planners: vec!["A", "B", "C"], by_all: false };
        assert_eq!(three.told("--cpus"), "--cpus changes nothing for some lines: A, B and C do not heed it");
    }
}
