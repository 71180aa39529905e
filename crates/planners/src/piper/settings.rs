//! Options of the planner.

use crate::{
    Bearing, OptionKind, OptionSpec, Options, Tunable,
    pipeline_options::{self, Recompute},
};
use plantui_core::{
    plan::{Execution, WarmUp},
    units,
};

/// Rule that chooses modes where the fastest do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knapsack {
    /// Published heuristic: swap by ratio until the stage fits.
    Greedy,
    /// Best choice.
    Exact,
}

/// Values of all options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PiperSettings {
    pub(super) data_parallel: bool,
    pub(super) tensor_parallel: bool,
    pub(super) recompute: Recompute,
    pub(super) knapsack: Knapsack,
    /// Exact number of stages, if the user gave one.
    pub(super) stages: Option<usize>,
    /// Upper bound on the replicas of all stages together; `u32::MAX` if the user gave none.
    pub(super) most_replicas: u32,
    /// Rule for the microbatches in flight where stages have different replicas.
    pub(super) warm_up: WarmUp,
}

/// Declared options.
pub(super) static OPTIONS: [OptionSpec; 7] = [
    pipeline_options::DATA_PARALLEL,
    pipeline_options::TENSOR_PARALLEL,
    pipeline_options::RECOMPUTE,
    OptionSpec {
        name: "knapsack",
        label: "knapsack",
        help: "how a stage chooses the nodes that recompute",
        kind: OptionKind::Choice {
            choices: &[("exact", "the best choice, proven"), ("greedy", "by ratio, as the published program does")],
            default: "exact",
        },
    },
    pipeline_options::STAGES,
    OptionSpec {
        name: "most_replicas",
        label: "most replicas",
        help: "most replicas over all stages; any: limited by devices and microbatches only",
        kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_REPLICAS, whole: true, zero: Some("any") },
    },
    OptionSpec {
        name: "warmup",
        label: "warm-up",
        help: "warm-up microbatches of a replica, which its memory must hold",
        kind: OptionKind::Choice {
            choices: &[
                ("published", "rounded up at every stage, as in the paper"),
                ("cumulative", "cumulative from the last stage: a few more, which keep uneven replicas busy"),
            ],
            default: WarmUp::Published.id(),
        },
    },
];

/// Effect of each option on the plans that a proof covers.
pub(super) static BEARINGS: [(&str, Bearing); 7] = [
    pipeline_options::OF_DATA_PARALLEL,
    pipeline_options::OF_TENSOR_PARALLEL,
    pipeline_options::OF_RECOMPUTE,
    // The published rule finds some choices of modes and not others: nothing is proven about the others.
    (
        "knapsack",
        Bearing::Narrows(|options| {
            let greedy = options.choice("knapsack") == "greedy";
            greedy.then(|| "with recomputation as the published greedy rule picks it".into())
        }),
    ),
    pipeline_options::OF_STAGES,
    (
        "most_replicas",
        Bearing::Narrows(|options| {
            let most = PiperSettings::new(options).replica_limit();
            most.map(|most| format!("with at most {}", units::counted(most as usize, "replica")))
        }),
    ),
    (
        "warmup",
        Bearing::Narrows(|options| {
            let cumulative = options.choice("warmup") == WarmUp::Cumulative.id();
            cumulative.then(|| "with cumulative warm-up".into())
        }),
    ),
];

/// Options that decide which plans exist.
pub(super) static TUNABLES: [Tunable; 4] = [
    Tunable::Freedom("data_parallel"),
    Tunable::Freedom("tensor_parallel"),
    Tunable::Freedom("recompute"),
    Tunable::Stages("stages"),
];

/// No plan has more replicas than devices.
const MOST_REPLICAS: f64 = 10_000.0;

impl PiperSettings {
    /// True if modes are chosen by a rule that may need less time with more microbatches in flight.
    pub(super) fn is_heuristic(&self) -> bool {
        self.knapsack == Knapsack::Greedy || self.recompute == Recompute::AllOrNone
    }

    /// Limit on replicas that the user gave.
    pub(super) fn replica_limit(&self) -> Option<u32> {
        Some(self.most_replicas).filter(|&most| most < u32::MAX)
    }

    /// Reads the options.
    pub(super) fn new(options: &Options) -> Self {
        PiperSettings {
            data_parallel: options.flag("data_parallel"),
            tensor_parallel: options.flag("tensor_parallel"),
            recompute: pipeline_options::recompute(options),
            knapsack: if options.choice("knapsack") == "greedy" { Knapsack::Greedy } else { Knapsack::Exact },
            stages: pipeline_options::stages(options),
            most_replicas: match options.number("most_replicas") as u32 {
                0 => u32::MAX,
                most => most,
            },
            warm_up: WarmUp::find(options.choice("warmup")).unwrap_or_default(),
        }
    }

    /// Microbatches in flight on each replica, by stage.
    pub(super) fn in_flight(&self, replicas: impl DoubleEndedIterator<Item = u32>, microbatches: u32) -> Vec<u32> {
        let mut behind: u32 = 0;
        let from_the_end = replicas.rev().map(|d| match self.warm_up {
            WarmUp::Published => {
                behind += d;
                behind.div_ceil(d)
            }
            WarmUp::Cumulative => {
                let own = in_flight(behind, d, microbatches);
                behind = own * d;
                own
            }
        });
        let mut in_flight: Vec<u32> = from_the_end.collect();
        in_flight.reverse();
        in_flight
    }

    /// Execution that the plan carries; `None` for that of the paper.
    pub(super) fn execution(&self) -> Option<Execution> {
        (self.warm_up != WarmUp::Published).then(|| Execution { warm_up: self.warm_up, ..Execution::default() })
    }
}

/// Microbatches in flight on each of `d` replicas with cumulative warm-up, if the stages behind hold `behind`.
pub(super) fn in_flight(behind: u32, d: u32, microbatches: u32) -> u32 {
    (behind.div_ceil(d) + 1).min(microbatches.div_ceil(d))
}
