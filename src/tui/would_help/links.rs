//! Of a plan on a topology: what a batch takes where a link, or all links of a kind, are twice as fast. Nothing that can be
//! set, but what an architect asks.

use crate::{
    planner::Search,
    study::{
        explain::Base,
        links::{self, Wider},
    },
    tui::paint::topology::arrowed,
    units,
};

/// Less than this shortens nothing.
const TOLD: f64 = 5e-4;

/// Links twice as fast, and what a batch gains.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Widened {
    /// Which: `2x link gpu0 → gpu4`, `2x links: NVLink 2`.
    pub label: String,
    /// How many times as fast the batch is.
    pub rate: f64,
    /// Seconds of it.
    pub batch_s: f64,
}

impl Widened {
    fn new(now_s: f64, wider: &Wider) -> Widened {
        let what = match wider.what.strip_prefix("all ").and_then(|rest| rest.split_once(" of ")) {
            Some((_, kind)) => format!("links: {kind}"),
            None => format!("link {}", arrowed(&wider.what)),
        };
        Widened { label: format!("2x {what}"), rate: now_s / wider.iteration_s, batch_s: wider.iteration_s }
    }

    /// The gain, above 0.
    pub(in crate::tui) fn gain(&self) -> f64 {
        self.rate - 1.0
    }

    /// `1.06x`; with another digit where that would be told as nothing.
    pub(in crate::tui) fn told(&self) -> String {
        if self.rate < 1.01 { format!("{:.3}x", self.rate) } else { format!("{:.2}x", self.rate) }
    }

    /// `2x link gpu0 → gpu4 31.20 s`.
    pub(in crate::tui) fn in_words(&self) -> String {
        format!("{} {}", self.label, units::seconds(self.batch_s))
    }
}

/// What shortens the batch, the most first; a simulation each.
pub(super) fn widened(base: &Base, search: &Search) -> Vec<Widened> {
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
        let of = |what: &str, iteration_s| Widened::new(2.0, &Wider { what: what.into(), iteration_s });
        let one = of("gpu3 -> gpu0", 1.0);
        assert_eq!((one.label.as_str(), one.told().as_str()), ("2x link gpu3 → gpu0", "2.00x"));
        let all = of("all 16 of 2 x NVLink 2", 1.994);
        assert_eq!((all.label.as_str(), all.told().as_str()), ("2x links: 2 x NVLink 2", "1.003x"));
    }
}
