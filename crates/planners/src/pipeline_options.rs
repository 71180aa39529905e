//! Options that pipeline planners share, declared and read in one place.

use super::{Bearing, OptionKind, OptionSpec, Options};
use plantui_core::{
    plan::runner::Runner,
    units,
    workload::{Mode, piper::recomputes},
};

/// Policy for recomputing activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recompute {
    /// Per node, where it is worthwhile.
    Auto,
    /// No node.
    Never,
    /// Every node that has a mode to recompute.
    Always,
    /// Each stage uses either its fastest modes or its smallest ones.
    AllOrNone,
}

impl Recompute {
    const ALL: [Recompute; 4] = [Recompute::Auto, Recompute::Never, Recompute::Always, Recompute::AllOrNone];

    /// Returns the modes of a node that the policy allows, with their indices; empty if the node has none of them.
    pub(super) fn allowed(self, modes: &[Mode]) -> impl Iterator<Item = (usize, &Mode)> {
        let can = modes.iter().any(|mode| recomputes(&mode.id));
        modes.iter().enumerate().filter(move |(_, mode)| match self {
            Recompute::Never => !recomputes(&mode.id),
            Recompute::Always => !can || recomputes(&mode.id),
            Recompute::Auto | Recompute::AllOrNone => true,
        })
    }

    /// Value of [`RECOMPUTE`] for this policy.
    pub(super) fn id(self) -> &'static str {
        match self {
            Recompute::Auto => "auto",
            Recompute::Never => "never",
            Recompute::Always => "always",
            Recompute::AllOrNone => "all-or-none",
        }
    }
}

/// Largest number of stages that a user can ask for: a planner may need a table over all sets for each.
const MOST_STAGES: f64 = 1000.0;

pub(super) const DATA_PARALLEL: OptionSpec = OptionSpec {
    name: "data_parallel",
    label: "data parallel",
    help: "allow several replicas per stage",
    kind: OptionKind::Flag { default: true },
};

pub(super) const TENSOR_PARALLEL: OptionSpec = OptionSpec {
    name: "tensor_parallel",
    label: "tensor parallel",
    help: "allow tensor parallelism",
    kind: OptionKind::Flag { default: true },
};

pub(super) const RECOMPUTE: OptionSpec = OptionSpec {
    name: "recompute",
    label: "recompute",
    help: "where activations are recomputed in the backward pass to save memory",
    kind: OptionKind::Choice {
        choices: &[
            ("auto", "node by node, where it pays"),
            ("never", "keep every activation"),
            ("always", "recompute every node that has a mode for it"),
            ("all-or-none", "all nodes of a stage or none; for an engine all repeated layers or none"),
        ],
        default: "auto",
    },
};

pub(super) const ENGINE: OptionSpec = OptionSpec {
    name: "engine",
    label: "engine",
    help: "engine whose rules the plan keeps; `any` alone does not restrict the plan",
    kind: OptionKind::Choice {
        choices: &[
            ("any", "all engines that run the workload (Megatron-LM and Galvatron run repeated layers only)"),
            ("megatron", "Megatron-LM: the same number of recomputed layers on every stage"),
            ("deepspeed", "DeepSpeed: layers recompute one by one"),
            ("torch", "torch.distributed.pipelining: layers recompute one by one"),
            ("torchtitan", "torchtitan: all layers recompute or none"),
            ("galvatron", "Galvatron: layers recompute one by one, ends with the outer layers"),
        ],
        default: "any",
    },
};

pub(super) const STAGES: OptionSpec = OptionSpec {
    name: "stages",
    label: "stages",
    help: "number of stages; any: the best number",
    kind: OptionKind::Number { default: 0.0, least: 0.0, most: MOST_STAGES, whole: true, zero: Some("any") },
};

/// Plans that [`DATA_PARALLEL`] allows.
pub(super) const OF_DATA_PARALLEL: (&str, Bearing) = (
    DATA_PARALLEL.name,
    Bearing::Narrows(|options| (!options.flag(DATA_PARALLEL.name)).then(|| "without data parallelism".into())),
);

/// Plans that [`TENSOR_PARALLEL`] allows.
pub(super) const OF_TENSOR_PARALLEL: (&str, Bearing) = (
    TENSOR_PARALLEL.name,
    Bearing::Narrows(|options| (!options.flag(TENSOR_PARALLEL.name)).then(|| "without tensor parallelism".into())),
);

/// Plans that an option named as [`RECOMPUTE`] allows.
pub(super) const OF_RECOMPUTE: (&str, Bearing) = (
    RECOMPUTE.name,
    Bearing::Narrows(|options| {
        let left = match recompute(options) {
            Recompute::Auto => return None,
            Recompute::Never => "without recomputation",
            Recompute::Always => "with every possible node recomputed",
            Recompute::AllOrNone if options.get(ENGINE.name).is_some_and(|own| own != ENGINE.default_value()) => {
                "with all repeated layers of a stage recomputed or none"
            }
            Recompute::AllOrNone => "with all nodes of a stage recomputed or none",
        };
        Some(left.into())
    }),
);

/// The planner that applies an engine's rules states which plans they allow.
pub(super) const OF_ENGINE: (&str, Bearing) = (ENGINE.name, Bearing::Told);

/// Plans that an option named as [`STAGES`] allows.
pub(super) const OF_STAGES: (&str, Bearing) = (
    STAGES.name,
    Bearing::Narrows(|options| stages(options).map(|count| format!("with exactly {}", units::counted(count, "stage")))),
);

/// Reads [`RECOMPUTE`].
pub(super) fn recompute(options: &Options) -> Recompute {
    let asked = options.choice(RECOMPUTE.name);
    Recompute::ALL.into_iter().find(|own| own.id() == asked).unwrap_or(Recompute::Auto)
}

/// Reads [`ENGINE`]: the engine that must be able to run the plan unchanged. `any` counts only if `asked` is set, that
/// is, if a plan for engines is wanted anyway. A named engine always counts.
pub(super) fn engine(options: &Options, asked: bool) -> Option<Runner> {
    Runner::find(options.choice(ENGINE.name)).filter(|runner| asked || *runner != Runner::Any)
}

/// Reads [`STAGES`].
pub(super) fn stages(options: &Options) -> Option<usize> {
    Some(options.number(STAGES.name) as usize).filter(|&stages| stages > 0)
}
