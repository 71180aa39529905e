//! Which links a transfer runs over: that of its pair of stages, or the ports of the machines at its ends.

use std::collections::BTreeMap;

use super::{Pipeline, program::Program};

/// The links of a pipeline, numbered: machines' ports out and in, then pairs of stages.
pub(super) struct Routes {
    /// By sending chunk, direction and number of the transfer: the link of the pair of stages.
    pairs: Vec<[Vec<[u32; 1]>; 2]>,
    /// By worker: on which set of machines it lies; empty where the plan is not laid out over machines.
    place: Vec<u32>,
    /// By set of machines: their ports out, and in.
    ports: Vec<[Vec<u32>; 2]>,
    /// Links in all.
    pub(super) links: u32,
}

impl Routes {
    pub(super) fn new(pipeline: &Pipeline, program: &Program) -> Self {
        let mut routes = Routes { pairs: vec![], place: vec![], ports: vec![], links: 0 };
        if !pipeline.machines.is_empty() {
            let mut sets: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
            for worker in 0..program.workers.len() {
                let own = machines(pipeline, program, worker);
                routes.links = own.last().map_or(routes.links, |last| routes.links.max(2 * (last + 1)));
                let fresh = routes.ports.len() as u32;
                let place = *sets.entry(own).or_insert_with_key(|own| {
                    let ports = [0, 1].map(|side| own.iter().map(|machine| 2 * machine + side).collect());
                    routes.ports.push(ports);
                    fresh
                });
                routes.place.push(place);
            }
        }
        let mut pairs: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for chunk in &program.chunks {
            let mut link = |to: u32| {
                let fresh = routes.links + pairs.len() as u32;
                [*pairs.entry((chunk.stage, to)).or_insert(fresh)]
            };
            let of = [&chunk.activations, &chunk.gradients];
            routes.pairs.push(of.map(|sends| sends.iter().map(|send| link(send.stage)).collect()));
        }
        routes.links += pairs.len() as u32;
        routes
    }

    /// Whether replicas of a stage differ in the links they use.
    pub(super) fn by_machine(&self) -> bool {
        !self.place.is_empty()
    }

    /// The links of a chunk's transfer number `number` in a direction, in two parts.
    pub(super) fn of(
        &self,
        (chunk, direction, number): (u32, usize, usize),
        sender: usize,
        receiver: usize,
    ) -> [&[u32]; 2] {
        if let (Some(&from), Some(&to)) = (self.place.get(sender), self.place.get(receiver))
            && from != to
        {
            return [&self.ports[from as usize][0], &self.ports[to as usize][1]];
        }
        [&self.pairs[chunk as usize][direction][number], &[]]
    }
}

/// The machines that a worker's devices lie on, in order; none where the plan is not laid out over machines.
fn machines(pipeline: &Pipeline, program: &Program, worker: usize) -> Vec<u32> {
    let place = program.workers[worker];
    let width = pipeline.stages[place.stage as usize].devices.max(1) as usize;
    let all = pipeline.machines.get(place.stage as usize).map_or(&[][..], Vec::as_slice);
    let from = (place.replica as usize * width).min(all.len());
    let mut own = all[from..(from + width).min(all.len())].to_vec();
    own.sort_unstable();
    own.dedup();
    own
}
