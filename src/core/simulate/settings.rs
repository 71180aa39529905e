//! What the simulation assumes where plan and profile are silent.

use crate::plan::WarmUp;

/// How transfers share what they run over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkModel {
    /// A replica sends activations one after another and gradients one after another; nothing else holds a transfer up.
    #[default]
    Private,
    /// On top of that a link carries one transfer at a time, the one that was ready first.
    Exclusive,
    /// On top of that transfers on one link share its bandwidth fairly (max-min).
    Shared,
}

impl LinkModel {
    /// All of them, in the order they are shown.
    pub const ALL: [LinkModel; 3] = [LinkModel::Private, LinkModel::Exclusive, LinkModel::Shared];

    /// What scripts call it.
    pub fn id(self) -> &'static str {
        match self {
            LinkModel::Private => "private",
            LinkModel::Exclusive => "exclusive",
            LinkModel::Shared => "shared",
        }
    }

    /// The model of this id.
    pub fn find(id: &str) -> Option<LinkModel> {
        LinkModel::ALL.into_iter().find(|model| model.id() == id)
    }
}

/// What the simulation assumes where plan and profile are silent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatorSettings {
    /// Share of a node's time that is forward, where the profile does not tell; 1/3 by default (backward twice forward).
    pub forward_share: f64,
    /// Virtual stages of each device under interleaved 1F1B; 2 by default.
    pub virtual_stages: u32,
    /// How the warm-up of 1F1B is rounded where stages have different numbers of replicas; as published by default.
    pub warm_up: WarmUp,
    /// Microbatches that eager 1F1B starts early on every stage, beyond those of 1F1B; `None` doubles what 1F1B starts early.
    pub extra_warm_up: Option<u32>,
    /// Share of the backward, recomputation apart, that is the gradient of the weights; 1/2 by default. Zero-bubble schedules
    /// put it off.
    pub weight_gradient_share: f64,
    /// Whether a device computes while it sends or receives; true by default.
    pub overlap: bool,
    /// How transfers share links.
    pub links: LinkModel,
    /// Buckets of the gradient all-reduce: with more than one, each starts as soon as the last backward has made its
    /// gradients; 1 by default: one all-reduce after it.
    pub buckets: u32,
    /// Optimizer step of every device after its all-reduce, seconds; 0 by default.
    pub optimizer_step_s: f64,
}

impl Default for SimulatorSettings {
    fn default() -> Self {
        SimulatorSettings {
            forward_share: 1.0 / 3.0,
            virtual_stages: 2,
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
    /// Whether what runs next depends on when things end, and not on the schedule alone.
    pub(super) fn contended(&self) -> bool {
        !self.overlap || self.links != LinkModel::Private
    }
}
