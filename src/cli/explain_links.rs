//! Links of a topology in `plantui explain`: the fullest ones, and the iteration time with some twice as fast.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::report::{self, line};
use crate::{
    plan::Plan,
    planner::Search,
    study::{
        explain::ExplainedPlan,
        links::{self, LinkLoad, WiderLink},
    },
    units,
};

/// Most links that a report names.
const NAMED: usize = 8;

/// Effect of a plan on the links of its topology.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct LinkEffects {
    /// Loads, the fullest first.
    #[serde(serialize_with = "loads")]
    #[schemars(with = "Vec<LoadRow<'static>>")]
    loads: Vec<LinkLoad>,
    /// Current iteration time of the plan, seconds.
    iteration_s: Option<f64>,
    /// Iteration times with faster links, if shorter, the largest gain first.
    #[serde(serialize_with = "wider")]
    #[schemars(with = "Vec<WiderRow<'static>>")]
    twice_as_fast: Vec<WiderLink>,
}

#[derive(Serialize, JsonSchema)]
struct LoadRow<'a> {
    link: &'a str,
    kind: &'a str,
    bytes_per_s: f64,
    /// Busy seconds per microbatch.
    seconds: f64,
}

#[derive(Serialize, JsonSchema)]
struct WiderRow<'a> {
    link: &'a str,
    iteration_s: f64,
}

fn loads<S: Serializer>(loads: &[LinkLoad], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(loads.iter().map(|load| LoadRow {
        link: &load.name,
        kind: &load.kind,
        bytes_per_s: load.bandwidth,
        seconds: load.seconds,
    }))
}

fn wider<S: Serializer>(wider: &[WiderLink], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(wider.iter().map(|wider| WiderRow { link: &wider.what, iteration_s: wider.iteration_s }))
}

impl LinkEffects {
    /// Effect of the explained plan; empty without a topology.
    pub(super) fn of(base: &ExplainedPlan, search: &Search) -> Self {
        let (workload, limits) = (&base.problem.workload, &base.problem.limits);
        let loads = links::loads(workload, limits, &base.plan);
        if loads.is_empty() {
            return LinkEffects::default();
        }
        let (now, twice_as_fast) = links::twice_as_fast(workload, limits, &base.plan, search).unzip();
        LinkEffects { loads, iteration_s: now, twice_as_fast: twice_as_fast.unwrap_or_default() }
    }

    /// True if there are no loads.
    pub(super) fn is_empty(&self) -> bool {
        self.loads.is_empty()
    }

    /// Appends the report.
    pub(super) fn append_to(&self, text: &mut String, plan: &Plan) {
        let Some(topology) = plan.topology.as_ref().filter(|_| !self.is_empty()) else { return };
        line(text, format_args!("busiest links of {}, per microbatch", topology.name));
        let load = |load: &LinkLoad| {
            let rate = units::bandwidth_exact(load.bandwidth);
            vec![format!("  {}", units::seconds(load.seconds)), load.name.clone(), rate]
        };
        report::table(text, &self.loads.iter().take(NAMED).map(load).collect::<Vec<_>>());
        if let Some(now) = self.iteration_s {
            let batch = units::seconds(now);
            line(text, format_args!("the same plan with one link twice as fast (now {batch} an iteration)"));
            let wider = |wider: &WiderLink| {
                let less = units::percent(1.0 - wider.iteration_s / now);
                vec![format!("  {}", units::seconds(wider.iteration_s)), format!("-{less}"), wider.what.clone()]
            };
            report::table(text, &self.twice_as_fast.iter().map(wider).collect::<Vec<_>>());
            if self.twice_as_fast.is_empty() {
                line(text, format_args!("  no single link shortens it"));
            }
        }
        line(text, format_args!(""));
    }
}
