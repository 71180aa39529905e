//! The planner's options, under their published names where these exist.

use crate::{OptionKind, OptionSpec, Unit};
use plantui_core::cluster::PUBLISHED_LINKS;
use plantui_core::mapping::MappingMethod;

const fn flag(name: &'static str, label: &'static str, help: &'static str, default: bool) -> OptionSpec {
    OptionSpec { name, label, help, kind: OptionKind::Flag { default } }
}

const fn number(
    name: &'static str,
    label: &'static str,
    help: &'static str,
    (default, least, most): (f64, f64, f64),
    (whole, zero): (bool, Option<&'static str>),
) -> OptionSpec {
    OptionSpec { name, label, help, kind: OptionKind::Number { default, least, most, whole, zero } }
}

const fn link(name: &'static str, label: &'static str, help: &'static str, default: f64) -> OptionSpec {
    let kind = OptionKind::Quantity { default, least: 1.0, most: 1e18, unit: Unit::BytesPerSecond };
    OptionSpec { name, label, help, kind }
}

/// All options of the planner.
pub(super) static OPTIONS: [OptionSpec; 21] = [
    OptionSpec {
        name: "topology",
        label: "topology",
        help: "topology of the devices: a name listed by `plantui topologies`, or a file; empty: machines with the \
            links below",
        kind: OptionKind::File { example: "topology.json" },
    },
    number(
        "k",
        "clusters",
        "clusters left by coarsening; auto: four per device",
        (0.0, 0.0, 1e6),
        (true, Some("auto")),
    ),
    number(
        "comm_coef",
        "communication",
        "weight in coarsening of one second of saved traffic against one second of compute",
        (1.0, 0.0, 1e6),
        (false, None),
    ),
    OptionSpec {
        name: "new_flow",
        label: "new flow",
        help: "cut into stages before uncoarsening, or after",
        kind: OptionKind::Choice {
            choices: &[
                ("true", "coarsen, cut into stages, uncoarsen"),
                ("false", "coarsen, uncoarsen, cut into stages"),
                ("both", "both, and keep the better"),
            ],
            default: "true",
        },
    },
    flag("search_k", "search clusters", "try several numbers of clusters; k is then ignored", false),
    flag("search_comm_coef", "search communication", "try several comm_coef; the one given is then ignored", false),
    flag("incl_allr", "map all-reduces", "whether the mapping considers all-reduces", true),
    flag("incl_p2p", "map transfers", "whether the mapping considers transfers between stages", true),
    number(
        "parallel_same_t",
        "same target",
        "parallel searches per target; must divide parallel_degree",
        (1.0, 1.0, 64.0),
        (true, None),
    ),
    number("parallel_degree", "searches", "parallel searches for a mapping, in total", (2.0, 1.0, 256.0), (true, None)),
    flag("concurrent_copy_comp", "overlap", "whether devices compute while they send", true),
    OptionSpec {
        name: "mapping",
        label: "mapping",
        help: "method that maps parts to devices",
        kind: OptionKind::Choice {
            choices: &[
                (MappingMethod::Search.id(), "search over targets, with a bound"),
                (MappingMethod::Identity.id(), "one device after the other"),
                (MappingMethod::Random.id(), "the best of 1000 random orders"),
                (MappingMethod::Greedy.id(), "each part in turn to its cheapest device"),
                (MappingMethod::Annealing.id(), "simulated annealing"),
                (MappingMethod::Bipartition.id(), "recursive bipartition"),
                (MappingMethod::Exhaustive.id(), "every mapping, up to 9 devices"),
            ],
            default: MappingMethod::Search.id(),
        },
    },
    flag("replicas", "replicas", "whether a stage may be replicated", true),
    flag("dag", "DAG", "whether stages may form a DAG: all acyclic partitions of a few clusters, besides chains", true),
    number("micro_batch", "microbatch", "least samples in a microbatch", (1.0, 1.0, 1e7), (true, None)),
    number(
        "optimizer_memory_scaling",
        "optimizer memory",
        "bytes of weights, gradients and optimizer state per byte of parameters",
        (1.0, 0.0, 1000.0),
        (false, None),
    ),
    OptionSpec {
        name: "peak_activation_per_sample",
        label: "activations",
        help: "bytes of activations of the whole network per sample; 0: the sum of all outputs in the profile",
        kind: OptionKind::Quantity { default: 0.0, least: 0.0, most: 1e18, unit: Unit::Bytes },
    },
    link(
        "nvlink_bandwidth",
        "in machine",
        "bytes per second between two devices of a machine",
        PUBLISHED_LINKS.in_machine,
    ),
    link(
        "ethernet_bandwidth",
        "between",
        "bytes per second from a device to one of another machine",
        PUBLISHED_LINKS.between_machines,
    ),
    link(
        "all_reduce_bandwidth",
        "all-reduce",
        "bytes per second of an all-reduce that spans machines",
        PUBLISHED_LINKS.all_reduce,
    ),
    number("stages", "stages", "number of stages; any: the best number", (0.0, 0.0, 1000.0), (true, Some("any"))),
];
