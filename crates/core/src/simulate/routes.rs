//! Links of a transfer: the channels of its way if the pipeline is mapped to a topology; otherwise the link of its pair
//! of stages, or the ports of the machines at its ends.

use std::collections::BTreeMap;

use super::{
    pipeline::Pipeline,
    program::Program,
    sharing::{FASTEST, Path, WHOLE},
    wires::ReplicaRoute,
};

/// Way in the form that link sharing uses.
struct SharedRoute {
    links: Vec<u32>,
    parts: Vec<u32>,
    speed: u64,
}

/// Links of a pipeline, numbered: machines' output and input ports, then pairs of stages; or the channels of its wires.
pub(super) struct PipelineRoutes {
    /// True if the pipeline is mapped to a topology.
    wired: bool,
    /// By sending chunk, direction and number of the transfer: its ways, by microbatch modulo their number.
    ways: Vec<[Vec<Vec<SharedRoute>>; 2]>,
    /// Capacity of each channel.
    pub(super) capacities: Vec<u64>,
    /// By sending chunk, direction and number of the transfer: the link of the pair of stages.
    pairs: Vec<[Vec<[u32; 1]>; 2]>,
    /// By worker: the index of its set of machines. Empty if the plan is not mapped to machines.
    place: Vec<u32>,
    /// By set of machines: their output ports, and input ports.
    ports: Vec<[Vec<u32>; 2]>,
    /// Total number of links.
    pub(super) links: u32,
}

impl PipelineRoutes {
    pub(super) fn new(pipeline: &Pipeline, program: &Program) -> Self {
        let mut routes = PipelineRoutes {
            wired: !pipeline.wires.is_empty(),
            ways: vec![],
            capacities: vec![],
            pairs: vec![],
            place: vec![],
            ports: vec![],
            links: 0,
        };
        if routes.wired {
            routes.wire(pipeline, program);
            return routes;
        }
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

    /// Adds the ways of every transfer over the channels of the topology.
    fn wire(&mut self, pipeline: &Pipeline, program: &Program) {
        let speed = |bytes_per_s: f64| (bytes_per_s.round() as u64).clamp(1, FASTEST);
        self.links = pipeline.wires.channels.len() as u32;
        self.capacities = pipeline.wires.channels.iter().map(|&width| speed(width)).collect();
        let shared = |way: &ReplicaRoute| {
            let most = way.loads.iter().map(|load| load.bytes).fold(0.0, f64::max);
            let alone = speed(most / way.seconds);
            let part = |bytes: f64| ((bytes / most * f64::from(WHOLE)).round() as u32).clamp(1, WHOLE);
            SharedRoute {
                links: way.loads.iter().map(|load| load.channel).collect(),
                parts: way.loads.iter().map(|load| part(load.bytes)).collect(),
                speed: alone,
            }
        };
        for chunk in &program.chunks {
            let of = [&chunk.activations, &chunk.gradients].map(|sends| {
                let ways = |to| pipeline.wires.between(chunk.stage, to).iter().map(shared).collect();
                sends.iter().map(|send| ways(send.stage)).collect::<Vec<Vec<SharedRoute>>>()
            });
            self.ways.push(of);
        }
        // A single transfer never exceeds a capacity because of rounding.
        let (ways, capacities) = (&self.ways, &mut self.capacities);
        for way in ways.iter().flatten().flatten().flatten() {
            for (&link, &part) in way.links.iter().zip(&way.parts) {
                let needs = (way.speed * u64::from(part)).div_ceil(WHOLE.into());
                capacities[link as usize] = capacities[link as usize].max(needs);
            }
        }
    }

    /// True if replicas of a stage differ in the links they use.
    pub(super) fn by_replica(&self) -> bool {
        self.wired || !self.place.is_empty()
    }

    /// Path of a microbatch's transfer number `number` of a chunk in a direction.
    pub(super) fn path(&self, way: (u32, usize, usize), microbatch: u32, sender: usize, receiver: usize) -> Path<'_> {
        let (chunk, direction, number) = way;
        if self.wired {
            let ways = &self.ways[chunk as usize][direction][number];
            let way = ways.get(microbatch as usize % ways.len().max(1));
            let none = Path { links: [&[], &[]], parts: &[], speed: 1 };
            return way.map_or(none, |way| Path { links: [&way.links, &[]], parts: &way.parts, speed: way.speed });
        }
        Path { links: self.of(way, sender, receiver), parts: &[], speed: 1 }
    }

    /// Links of a chunk's transfer number `number` in a direction, in two parts.
    fn of(&self, (chunk, direction, number): (u32, usize, usize), sender: usize, receiver: usize) -> [&[u32]; 2] {
        if let (Some(&from), Some(&to)) = (self.place.get(sender), self.place.get(receiver))
            && from != to
        {
            return [&self.ports[from as usize][0], &self.ports[to as usize][1]];
        }
        [&self.pairs[chunk as usize][direction][number], &[]]
    }
}

/// Machines of a worker's devices, ascending. Empty if the plan is not mapped to machines.
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
