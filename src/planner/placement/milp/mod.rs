//! The published integer programs of device placement, solved with HiGHS (feature `milp`).
//!
//! Tarnawski et al., *Efficient Algorithms for Device Placement of DNN Graph Operators*, NeurIPS 2020. [`throughput`] is
//! the program for the busiest device (all splits or contiguous ones, one maximum or two), [`latency`] the one for a
//! single sample with so many subgraphs per accelerator. [`program`] holds variables and rows, [`solve`] runs HiGHS on a
//! thread of its own, and [`callback`] is the line to it.
//!
//! Times are scaled so that the value to beat is [`SCALE`], whatever unit a file has: HiGHS' tolerances are absolute. What
//! it finds is rounded and priced again by this program's own evaluation, and dropped if that does not admit it; what it
//! proves is lowered by [`MARGIN`]. What counts as optimal is so within two such margins: a split worth HiGHS' bound, up
//! to one, is taken as proven, and its value as the bound. Our own search goes first, and for
//! throughput on beside it. The linear relaxation is weak (a `1/K` share of everything on each of `K` accelerators cuts
//! nothing), so HiGHS is given a split that is hard to beat and a bound that it would take long to reach.

pub(crate) mod callback;
pub mod latency;
pub(crate) mod program;
pub(crate) mod solve;
pub mod throughput;

use crate::planner::{OptionKind, OptionSpec, Options};

/// Who answers the question of an integer program.
pub(crate) const SOLVER: OptionSpec = OptionSpec {
    name: "solver",
    label: "solver",
    help: "who improves and proves the plan",
    kind: OptionKind::Choice {
        choices: &[
            ("own", "our own search, for so many rounds"),
            ("highs", "HiGHS after our own search, until proven or stopped; give it a deadline"),
        ],
        default: "own",
    },
};

/// Whether HiGHS is asked for.
pub(crate) fn wanted(options: &Options) -> bool {
    options.choice(SOLVER.name) == "highs"
}

/// What the value to beat is scaled to.
pub(crate) const SCALE: f64 = 1000.0;
/// Relative gap at which HiGHS may stop. Its absolute gap is this share of [`SCALE`].
pub(crate) const GAP: f64 = 1e-9;
/// Feasibility tolerance of rows, bounds and reduced costs, the smallest that HiGHS is still quick with.
pub(crate) const FEASIBILITY: f64 = 1e-9;
/// By how much, relatively, a bound of HiGHS is lowered before it counts: what its tolerances can add up to.
pub const MARGIN: f64 = 1e-6;
