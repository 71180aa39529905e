//! Assumptions of the simulation that neither plan nor profile states.

use crate::plan::WarmUp;

/// Model of how transfers share links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkModel {
    /// A replica sends activations one after another and gradients one after another. Nothing else delays a transfer.
    #[default]
    Private,
    /// In addition, a link carries one transfer at a time, in order of readiness.
    Exclusive,
    /// In addition, transfers on one link share its bandwidth fairly (max-min).
    Shared,
}

impl LinkModel {
    /// All models, in display order.
    pub const ALL: [LinkModel; 3] = [LinkModel::Private, LinkModel::Exclusive, LinkModel::Shared];

    /// Id in files and on the command line.
    pub fn id(self) -> &'static str {
        match self {
            LinkModel::Private => "private",
            LinkModel::Exclusive => "exclusive",
            LinkModel::Shared => "shared",
        }
    }

    /// Model with this id.
    pub fn find(id: &str) -> Option<LinkModel> {
        LinkModel::ALL.into_iter().find(|model| model.id() == id)
    }
}

/// Assumptions of the simulation that neither plan nor profile states.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatorSettings {
    /// Forward fraction of a node's time, if the profile gives one time; 1/3 by default (backward twice forward).
    pub forward_share: f64,
    /// Virtual stages of each device under interleaved 1F1B; 2 by default.
    pub virtual_stages: u32,
    /// Slices of a sequence under Seq1F1B; 2 by default.
    pub sequence_slices: u32,
    /// Rounding rule of 1F1B's warm-up if stages have different numbers of replicas; as published by default.
    pub warm_up: WarmUp,
    /// Microbatches that eager 1F1B starts early on every stage, in addition to those of 1F1B. `None` doubles the early
    /// ones of 1F1B.
    pub extra_warm_up: Option<u32>,
    /// Weight-gradient fraction of the backward without recomputation; 1/2 by default. Zero-bubble schedules delay it.
    pub weight_gradient_share: f64,
    /// True if a device computes while it sends or receives; true by default.
    pub overlap: bool,
    /// Model of how transfers share links.
    pub links: LinkModel,
    /// Buckets of the gradient all-reduce. With more than one, each starts as soon as the last backward has computed
    /// its gradients. 1 by default: one all-reduce after that backward.
    pub buckets: u32,
    /// Optimizer step of every device after its all-reduce, seconds; 0 by default.
    pub optimizer_step_s: f64,
}

impl Default for SimulatorSettings {
    fn default() -> Self {
        SimulatorSettings {
            forward_share: 1.0 / 3.0,
            virtual_stages: 2,
            sequence_slices: 2,
            warm_up: WarmUp::Published,
            extra_warm_up: None,
            weight_gradient_share: 0.5,
            overlap: true,
            links: LinkModel::Private,
            buckets: 1,
            optimizer_step_s: 0.0,
        }
    }
}

impl SimulatorSettings {
    /// True if the order of operations depends on their times, and not on the schedule alone.
    pub(super) fn contended(&self) -> bool {
        !self.overlap || self.links != LinkModel::Private
    }
}
