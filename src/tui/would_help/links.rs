//! Effect of faster links on a plan's iteration, if it has a topology: one link, or all of a kind, at twice the
//! bandwidth. It cannot be set here, but helps to design a machine.

use crate::{
    planner::Search,
    study::{
        explain::ExplainedPlan,
        links::{self, WiderLink},
    },
    tui::paint::topology::arrowed,
    units,
};

/// Relative gain below which a link is left out.
const TOLD: f64 = 5e-4;

/// Links at twice the bandwidth, and the effect on the iteration.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Widened {
    /// Name of the links: `2x link gpu0 → gpu4`, `2x links: NVLink 2`.
    pub label: String,
    /// Speed-up of the iteration.
    pub rate: f64,
    /// Iteration time, seconds.
    pub batch_s: f64,
}

impl Widened {
    fn new(now_s: f64, wider: &WiderLink) -> Widened {
        let what = match wider.what.strip_prefix("all ").and_then(|rest| rest.split_once(" of ")) {
            Some((_, kind)) => format!("links: {kind}"),
            None => format!("link {}", arrowed(&wider.what)),
        };
        Widened { label: format!("2x {what}"), rate: now_s / wider.iteration_s, batch_s: wider.iteration_s }
    }

    /// Relative gain, above 0.
    pub(in crate::tui) fn gain(&self) -> f64 {
        self.rate - 1.0
    }

    /// Speed-up in words: `1.06x`, with another digit for small ones.
    pub(in crate::tui) fn told(&self) -> String {
        if self.rate < 1.01 { format!("{:.3}x", self.rate) } else { format!("{:.2}x", self.rate) }
    }

    /// Links and iteration time in words: `2x link gpu0 → gpu4 31.20 s`.
    pub(in crate::tui) fn in_words(&self) -> String {
        format!("{} {}", self.label, units::seconds(self.batch_s))
    }
}

/// Links that shorten the iteration, best first. Each takes a simulation.
pub(in crate::tui) fn widened(base: &ExplainedPlan, search: &Search) -> Vec<Widened> {
    let found = links::twice_as_fast(&base.problem.workload, &base.problem.limits, &base.plan, search);
    let Some((now_s, found)) = found else { return vec![] };
    let all = found.iter().map(|wider| Widened::new(now_s, wider));
    all.filter(|widened| widened.gain() >= TOLD).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_told_in_few_words() {
        let of = |what: &str, iteration_s| Widened::new(2.0, &WiderLink { what: what.into(), iteration_s });
        let one = of("gpu3 -> gpu0", 1.0);
        assert_eq!((one.label.as_str(), one.told().as_str()), ("2x link gpu3 → gpu0", "2.00x"));
        let all = of("all 16 of 2 x NVLink 2", 1.994);
        assert_eq!((all.label.as_str(), all.told().as_str()), ("2x links: 2 x NVLink 2", "1.003x"));
    }
}
