//! Compatibility of a sweep and its planners: workloads that they cannot plan, and limits that they ignore.

use super::Sweep;
use crate::explain::limits_of;
use plantui_core::cluster::LimitKind;

/// Limit that some lines ignore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredLimit {
    /// Kind of the limit.
    pub kind: LimitKind,
    /// Names of the planners that ignore it, without duplicates.
    pub planners: Vec<&'static str>,
    /// True if every line ignores it.
    pub by_all: bool,
}

impl IgnoredLimit {
    /// Sentence on it; `limit` is the limit's flag or label.
    pub fn sentence(&self, limit: &str) -> String {
        let planners = listed(&self.planners);
        let verb = if self.planners.len() == 1 { "does" } else { "do" };
        let place = if self.by_all { "here" } else { "for some lines" };
        format!("{limit} changes nothing {place}: {planners} {verb} not support it")
    }
}

/// Names as a list: `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        names => names.concat(),
    }
}

impl Sweep {
    /// Reason why the planner of a series cannot plan a workload; `None` if it can.
    pub fn refusal(&self, series: usize, workload: usize) -> Option<String> {
        let planner = self.series[series].planner;
        let workload = &self.workloads[workload];
        let reason = planner.can_plan(workload).err()?;
        Some(format!("{} cannot plan {}: {reason}", planner.info().name, workload.name))
    }

    /// True if the planner of a series supports a limit for some workload.
    pub fn supports(&self, series: usize, kind: LimitKind) -> bool {
        let planner = self.series[series].planner;
        self.workloads.iter().any(|workload| limits_of(planner, workload).contains(&kind))
    }

    /// Limits that some line ignores.
    pub fn ignored_limits(&self, kinds: &[LimitKind]) -> Vec<IgnoredLimit> {
        let of = |&kind: &LimitKind| {
            let deaf: Vec<usize> = (0..self.series.len()).filter(|&series| !self.supports(series, kind)).collect();
            let mut planners: Vec<&'static str> = vec![];
            for &series in &deaf {
                let name = self.series[series].planner.info().name;
                if !planners.contains(&name) {
                    planners.push(name);
                }
            }
            (!deaf.is_empty()).then_some(IgnoredLimit { kind, planners, by_all: deaf.len() == self.series.len() })
        };
        kinds.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_nobody_heeds_is_told_by_name() {
        let one = IgnoredLimit { kind: LimitKind::Bandwidth, planners: vec!["A"], by_all: true };
        assert_eq!(one.sentence("--bandwidth"), "--bandwidth changes nothing here: A does not support it");
        let three = IgnoredLimit { kind: LimitKind::Cpus, planners: vec!["A", "B", "C"], by_all: false };
        assert_eq!(three.sentence("--cpus"), "--cpus changes nothing for some lines: A, B and C do not support it");
    }
}
