//! What whole layers cost at one tensor degree, kept or recomputed.

use crate::{
    graph::Dag,
    workload::{Choice, Mode, NodeIndex, PiperProfile, layering::Layering, piper::recomputes},
};

/// What a layer costs in one way to run it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct LayerCost {
    pub(super) time_s: f64,
    pub(super) parameters: f64,
    pub(super) memory_a: f64,
    pub(super) memory_b: f64,
}

impl LayerCost {
    /// Bytes with `y` microbatches in flight.
    pub(super) fn memory(&self, y: f64) -> f64 {
        self.memory_a * y + self.memory_b
    }
}

/// A layer: its ways to run and how recomputing changes what it gathers from and for other layers.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    /// With its activations kept, unless a node of a block offers nothing but recomputation.
    pub(super) kept: Option<LayerCost>,
    /// Recomputing, if some node of a block can.
    pub(super) again: Option<LayerCost>,
    /// Other layer and bytes (both directions counted) that recomputing adds on edges from and to it.
    from: Vec<(usize, f64)>,
    to: Vec<(usize, f64)>,
}

/// All layers at one degree.
pub(super) struct Costs<'a> {
    pub(super) t: u32,
    pub(super) layers: Vec<Layer>,
    /// By node: the position of its mode when kept and when recomputed.
    modes: Vec<(usize, usize)>,
    /// Bytes over both ends of the stretch `first ..= last` at `first * layers + last`, all layers kept.
    border: Vec<f64>,
    /// By layer: whether it is, or holds, a repeated one.
    blocks: Vec<bool>,
    layering: &'a Layering,
    profile: &'a PiperProfile,
}

impl<'a> Costs<'a> {
    /// `None` if a node does not offer the degree.
    pub(super) fn new(dag: &Dag, profile: &'a PiperProfile, layering: &'a Layering, t: u32) -> Option<Self> {
        let mut modes = Vec::with_capacity(profile.nodes.len());
        for (v, node) in profile.nodes.iter().enumerate() {
            let offered = node.modes(t)?;
            let find = |again| offered.iter().position(|mode| recomputes(&mode.id) == again);
            let kept = find(false).unwrap_or(0);
            // Engines never recompute what stands before or behind the blocks.
            let again = if layering.at_ends[v] { kept } else { find(true).unwrap_or(kept) };
            modes.push((kept, again));
        }
        let mode = |v: usize, again: bool| -> &Mode {
            let (kept, recomputing) = modes[v];
            &profile.nodes[v].modes(t).expect("asked above")[if again { recomputing } else { kept }]
        };
        let sum = |nodes: &[NodeIndex], again: bool| {
            nodes.iter().fold(LayerCost::default(), |sum, v| {
                let mode = mode(v.index(), again);
                LayerCost {
                    time_s: sum.time_s + mode.time_s,
                    parameters: sum.parameters + mode.parameters,
                    memory_a: sum.memory_a + mode.memory_a,
                    memory_b: sum.memory_b + mode.memory_b,
                }
            })
        };
        let layers = layering.layers.iter().map(|layer| {
            let of_block = |v: &usize| !layering.at_ends[*v];
            let own = || layer.nodes.iter().map(|v| v.index());
            let forced = own().filter(of_block).any(|v| recomputes(&mode(v, false).id));
            let can = own().filter(of_block).any(|v| recomputes(&mode(v, true).id));
            Layer {
                kept: (!forced).then(|| sum(&layer.nodes, false)),
                again: can.then(|| sum(&layer.nodes, true)),
                ..Layer::default()
            }
        });
        let mut layers: Vec<Layer> = layers.collect();
        let count = layers.len();
        let (mut from, mut to) = (vec![vec![]; count], vec![vec![]; count]);
        for v in 0..dag.len() {
            let own = layering.layer_of[v];
            let (kept, again) = (mode(v, false), mode(v, true));
            for (slot, &edge) in dag.in_edges(v).iter().enumerate() {
                let other = layering.layer_of[dag.edges()[edge as usize].0 as usize];
                from[own].push((other, 2.0 * (profile.edge_bytes[edge as usize] + kept.sync_in[slot])));
                let more = 2.0 * (again.sync_in[slot] - kept.sync_in[slot]);
                layers[own].from.extend(Some((other, more)).filter(|(_, more)| *more != 0.0));
            }
            for (slot, &edge) in dag.out_edges(v).iter().enumerate() {
                let other = layering.layer_of[dag.edges()[edge as usize].1 as usize];
                to[own].push((other, 2.0 * (profile.edge_bytes[edge as usize] + kept.sync_out[slot])));
                let more = 2.0 * (again.sync_out[slot] - kept.sync_out[slot]);
                layers[own].to.extend(Some((other, more)).filter(|(_, more)| *more != 0.0));
            }
        }
        let blocks =
            layering.layers.iter().map(|layer| layer.nodes.iter().any(|v| !layering.at_ends[v.index()])).collect();
        Some(Costs { t, layers, border: border(&from, &to), modes, blocks, layering, profile })
    }

    /// Number of layers.
    pub(super) fn len(&self) -> usize {
        self.layers.len()
    }

    /// Compute of all layers in their fastest ways.
    pub(super) fn least_seconds(&self) -> f64 {
        let least = |layer: &Layer| {
            layer.kept.into_iter().chain(layer.again).map(|cost| cost.time_s).fold(f64::INFINITY, f64::min)
        };
        self.layers.iter().map(least).sum()
    }

    /// Bytes over both ends of `first ..= last`, all layers kept.
    pub(super) fn border(&self, first: usize, last: usize) -> f64 {
        self.border[first * self.len() + last]
    }

    /// Bytes that recomputing a layer adds over the ends of `first ..= last`.
    pub(super) fn more_border(&self, layer: usize, first: usize, last: usize) -> f64 {
        let Layer { from, to, .. } = &self.layers[layer];
        let crossing = |edges: &[(usize, f64)], crosses: &dyn Fn(usize) -> bool| -> f64 {
            edges.iter().filter(|(other, _)| crosses(*other)).map(|(_, bytes)| bytes).sum()
        };
        crossing(from, &|other| other < first) + crossing(to, &|other| other > last)
    }

    /// Whether recomputing changes what any layer gathers, or its parameters: then costs depend on more than compute.
    pub(super) fn changes_more_than_compute(&self) -> bool {
        self.layers.iter().any(|layer| {
            let parameters = |cost: Option<LayerCost>| cost.map(|cost| cost.parameters);
            let both = layer.kept.is_some() && layer.again.is_some();
            !layer.from.is_empty()
                || !layer.to.is_empty()
                || (both && parameters(layer.kept) != parameters(layer.again))
        })
    }

    /// Whether layers are repeated ones, which may recompute.
    pub(super) fn is_block(&self, layer: usize) -> bool {
        self.blocks[layer]
    }

    /// The nodes of a stretch, ascending, with the id of each one's mode.
    pub(super) fn nodes(&self, stretch: std::ops::Range<usize>, again: &[bool]) -> (Vec<NodeIndex>, Vec<Choice>) {
        let mut nodes: Vec<(NodeIndex, bool)> = stretch
            .clone()
            .flat_map(|layer| self.layering.layers[layer].nodes.iter().map(move |&v| (v, layer)))
            .map(|(v, layer)| (v, again[layer - stretch.start]))
            .collect();
        nodes.sort_unstable();
        nodes.iter().map(|&(v, again)| (v, Choice::Mode(self.mode(v, again).id.clone()))).unzip()
    }

    /// Bytes of a stretch summed node by node in their order, as whoever checks it does.
    pub(super) fn exact_memory(&self, stretch: std::ops::Range<usize>, again: &[bool], y: f64) -> f64 {
        let mut nodes: Vec<(NodeIndex, bool)> = stretch
            .clone()
            .flat_map(|layer| self.layering.layers[layer].nodes.iter().map(move |&v| (v, layer)))
            .map(|(v, layer)| (v, again[layer - stretch.start]))
            .collect();
        nodes.sort_unstable();
        nodes.iter().fold(0.0, |sum, &(v, again)| {
            let mode = self.mode(v, again);
            sum + (mode.memory_a * y + mode.memory_b)
        })
    }

    fn mode(&self, v: NodeIndex, again: bool) -> &Mode {
        let modes = self.profile.nodes[v].modes(self.t).expect("every node offers the degree");
        let (kept, recomputing) = self.modes[v.index()];
        &modes[if again { recomputing } else { kept }]
    }
}

/// Bytes over both ends of every stretch, summed from what crosses each end, never by taking away what has become internal:
/// no rounding stays behind.
fn border(from: &[Vec<(usize, f64)>], to: &[Vec<(usize, f64)>]) -> Vec<f64> {
    let count = from.len();
    let crossing = |edges: &[(usize, f64)], crosses: &dyn Fn(usize) -> bool| -> f64 {
        edges.iter().filter(|(other, _)| crosses(*other)).map(|(_, bytes)| bytes).sum()
    };
    let mut border = vec![0.0; count * count];
    for end in 0..count {
        let mut received = 0.0;
        for last in end..count {
            received += crossing(&from[last], &|other| other < end);
            border[end * count + last] += received;
        }
        let mut sent = 0.0;
        for first in (0..=end).rev() {
            sent += crossing(&to[first], &|other| other > end);
            border[first * count + end] += sent;
        }
    }
    border
}
