//! Bytes per second of the transfers of a run: within tensor, context and expert groups, to the next stage, and of
//! reductions. They follow from the data sheet's links and the network's pods, or from a topology. All are `O(1)`.

use super::{fabric, layer::RunRates};
use crate::workload::training::run::{GroupLinks, LinkShares};

impl RunRates<'_> {
    /// Bytes per second of a collective over `devices` neighbouring devices.
    pub(crate) fn link(&self, devices: u64) -> f64 {
        self.flat_link(devices) * fabric::exchange(self.accelerator, devices as f64)
    }

    /// The same on a network with full bandwidth between all devices.
    fn flat_link(&self, devices: u64) -> f64 {
        let inside = devices <= u64::from(self.accelerator.domain);
        self.constants.links * if inside { self.accelerator.inner_link } else { self.accelerator.outer_link }
    }

    /// Bytes per second of one kind of group on a topology; `otherwise` without a topology.
    pub(super) fn wired(&self, own: impl Fn(&GroupLinks) -> f64, otherwise: f64) -> f64 {
        self.run.links.as_ref().map_or(otherwise, |links| self.constants.links * own(links))
    }

    /// Bytes per second of a reduction over ranks, each with `domain / t` neighbours in its NVLink domain.
    pub(crate) fn reduction(&self, ranks: f64) -> f64 {
        if let Some(links) = &self.run.links {
            return self.constants.links * links.data;
        }
        let inner = self.constants.links * self.accelerator.inner_link;
        let domain = f64::from(self.accelerator.domain);
        if self.t() * ranks <= domain {
            return inner;
        }
        let outer = self.accelerator.outer_link * fabric::reduction(self.accelerator, ranks, self.t());
        inner.min(self.constants.links * outer * (domain / self.t()).max(1.0))
    }

    /// Fraction of FSDP's gathers over `ranks` that overlap does not hide, at least.
    pub(crate) fn gathers_exposed(&self, ranks: f64) -> f64 {
        let across = self.t() * ranks > f64::from(self.accelerator.domain);
        if across { self.constants.fsdp_exposed_across } else { self.constants.fsdp_exposed }
    }

    /// Bytes per second within a tensor group.
    pub(crate) fn tensor_link(&self) -> f64 {
        self.wired(|links| links.tensor, self.link(u64::from(self.run.layout.tensor)))
    }

    /// Bytes per second within a context group.
    pub(crate) fn context_link(&self) -> f64 {
        let devices = u64::from(self.run.layout.tensor) * u64::from(self.run.layout.context);
        self.wired(|links| links.context, self.link(devices))
    }

    /// Bytes per second within an expert group.
    pub(crate) fn expert_link(&self) -> f64 {
        self.wired(|links| links.expert, self.link(self.run.layout.expert_ranks()))
    }

    /// Bytes per second to the next stage.
    pub(crate) fn next_stage_link(&self) -> f64 {
        let layout = &self.run.layout;
        let devices = layout.devices();
        let of_stage = devices as f64 / f64::from(layout.pipeline.max(1));
        let share = fabric::next_stage(self.accelerator, devices as f64, of_stage);
        self.wired(|links| links.next_stage, self.flat_link(devices) * share)
    }

    /// Fractions of the time of each kind of transfer for which a link is busy with it: tensor, context, expert, next
    /// stage, data. One row for every link that may be the busiest. `ranks` reduce gradients.
    pub(crate) fn shared_links(&self, ranks: f64) -> Vec<LinkShares> {
        if let Some(links) = &self.run.links {
            return links.shares.clone();
        }
        let layout = &self.run.layout;
        let ([t, c], e) = ([layout.tensor, layout.context].map(u64::from), layout.expert_ranks());
        let domain = u64::from(self.accelerator.domain);
        let within = [t, t * c, e, layout.devices()].map(|devices| f64::from(u8::from(devices <= domain)));
        let across = within.map(|share| 1.0 - share);
        // A reduction across domains uses both kinds of links. It uses the inner links at their own rate.
        let data_within = self.reduction(ranks) / self.link(1);
        let data_across = if self.t() * ranks <= f64::from(self.accelerator.domain) { 0.0 } else { 1.0 };
        let row = |[t, c, e, p]: [f64; 4], data: f64| [t, c, e, p, data];
        vec![row(within, data_within), row(across, data_across)]
    }
}
