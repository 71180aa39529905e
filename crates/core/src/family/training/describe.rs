//! Words and columns of a model to be trained: costs of a layer alone, on one device, for one sequence.

use super::{configured, facts, layer::RunRates, memory, repeated::Repeated};
use crate::{
    cluster::Limits,
    family::describe::{Amount, Describe, Detail, FamilyFigure, StageTraffic, runs},
    plan::{Plan, document::PredictionPart},
    units,
    workload::{NodeIndex, TrainingProfile, Workload},
};

/// Costs of a node for one sequence on one device.
#[derive(Debug, Clone, Copy, Default)]
struct SingleDeviceCosts {
    forward_s: f64,
    backward_s: f64,
    parameters: f64,
    activation_bytes: f64,
}

fn alone(profile: &TrainingProfile, node: NodeIndex) -> SingleDeviceCosts {
    let run = profile.alone();
    let rates = RunRates::new(&profile.model, &run, &profile.accelerator, &profile.constants);
    let ends = &profile.model.ends;
    let table = (ends.vocabulary * ends.token_width) as f64;
    let Some(layer) = profile.layer_of(node) else {
        let own = ends.projection == super::Projection::Own;
        return match node.index() {
            0 => SingleDeviceCosts {
                forward_s: rates.embedding() / 3.0,
                backward_s: rates.embedding() * 2.0 / 3.0,
                parameters: table + ends.before as f64,
                activation_bytes: 2.0 * run.tokens() * profile.model.hidden as f64,
            },
            _ => {
                let [forward_s, backward_s] = rates.head();
                let parameters = ends.after as f64 + if own { table } else { 0.0 };
                SingleDeviceCosts { forward_s, backward_s, parameters, activation_bytes: 0.0 }
            }
        };
    };
    let kind = profile.model.kind(layer);
    let time = rates.layer(kind, Repeated::NOTHING);
    SingleDeviceCosts {
        forward_s: time.forward.total(),
        backward_s: time.backward.total(),
        parameters: kind.parameters(profile.model.hidden) as f64,
        activation_bytes: memory::layer_bytes(&profile.model, &run, kind),
    }
}

/// Bytes over one boundary per microbatch, in one direction.
fn boundary_bytes(profile: &TrainingProfile, sequences: f64, context: f64) -> f64 {
    2.0 * sequences * profile.sequence as f64 / context * profile.model.hidden as f64
}

impl Describe for TrainingProfile {
    fn columns(&self) -> &'static [(&'static str, usize)] {
        &[("forward", 11), ("backward", 11), ("parameters", 11), ("activations", 11)]
    }

    fn cells(&self, members: &[NodeIndex]) -> Vec<String> {
        let node = alone(self, members[0]);
        vec![
            units::seconds(node.forward_s),
            units::seconds(node.backward_s),
            units::count_short(node.parameters),
            units::bytes(node.activation_bytes),
        ]
    }

    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>> {
        runs(workload, &|node| {
            let node = alone(self, node);
            Some((node.forward_s + node.backward_s, node.parameters))
        })
    }

    fn size(&self, _: &Workload) -> Vec<String> {
        vec![format!("{} + embedding, head", units::counted(self.model.layers.len(), "layer"))]
    }

    fn layers(&self, nodes: &[NodeIndex]) -> usize {
        nodes.iter().filter(|&&node| self.layer_of(node).is_some()).count()
    }

    fn weight(&self, node: NodeIndex) -> f64 {
        let node = alone(self, node);
        node.forward_s + node.backward_s
    }

    fn details(&self, node: NodeIndex) -> Vec<Detail> {
        let mut lines = vec![];
        if let Some(layer) = self.layer_of(node) {
            let kind = self.model.kind(layer);
            let attention = &kind.attention;
            if let Some(mixer) = kind.mixer {
                lines.push(Detail::Line(match mixer.heads {
                    0 => format!("projection of width {}, convolution over {} channels", mixer.entry, mixer.channels),
                    heads => format!("{heads} heads with a state of {} x {}", mixer.width, mixer.state),
                }));
            }
            let attends = attention.heads() > 0;
            let heads = attends.then(|| {
                Detail::Line(format!(
                    "{} attention heads of {}, {} of keys and values",
                    attention.heads(),
                    attention.head_size(),
                    attention.key_value_heads()
                ))
            });
            lines.extend(heads);
            lines.push(Detail::Line(match kind.feed_forward {
                super::FeedForward::Dense { width: 0, .. } => "no feed-forward block".into(),
                super::FeedForward::Dense { width, .. } => format!("feed-forward width {width}"),
                super::FeedForward::Experts(e) => {
                    format!("{} experts of width {}, {} for each token", e.count, e.width, e.chosen)
                }
            }));
        }
        lines.push(Detail::Line(format!(
            "times and activations are for one sequence of {} tokens on one {}, at tensor degree 1",
            self.sequence, self.accelerator.id
        )));
        lines
    }

    fn facts(&self) -> String {
        format!(
            "{} parameters, {} tokens a sequence, {} on {}, {}",
            units::count_short(self.model.parameters() as f64),
            self.sequence,
            self.precision.id(),
            self.accelerator.id,
            self.stack.id()
        )
    }

    fn edge(&self, _workload: &Workload, _edge: usize) -> Amount {
        Amount::Bytes(boundary_bytes(self, 1.0, 1.0))
    }

    fn edge_title(&self) -> &'static str {
        "per sequence"
    }

    fn flows(&self, _workload: &Workload, plan: &Plan) -> Vec<StageTraffic> {
        let layout = configured::of_plan(self, plan).layout;
        let bytes = boundary_bytes(self, f64::from(layout.micro_batch), f64::from(layout.context));
        let times = 2.0 * f64::from(layout.virtual_stages);
        let chain = 1..plan.stages.len();
        let flow = |from, to, times: f64| StageTraffic { from, to, amount: Amount::Bytes(times * bytes) };
        let mut flows: Vec<StageTraffic> = chain.map(|to| flow(to - 1, to, times)).collect();
        // The last part of a round is followed by the first one of the next.
        if layout.virtual_stages > 1 && plan.stages.len() > 1 {
            flows.push(flow(plan.stages.len() - 1, 0, times - 2.0));
        }
        flows
    }

    fn batch(&self, limits: &Limits) -> String {
        format!("{} sequences", limits.samples())
    }

    fn parts_of_a_batch(&self, limits: &Limits) -> u32 {
        limits.samples()
    }

    fn times_of(&self) -> &'static str {
        "microbatch"
    }

    fn plan_facts(&self, _workload: &Workload, limits: &Limits, plan: &Plan) -> Vec<String> {
        facts::lines(self, limits, plan)
    }

    fn prediction(&self, limits: &Limits, plan: &Plan) -> Option<PredictionPart> {
        facts::prediction(self, limits, plan)
    }

    fn predicts(&self) -> bool {
        true
    }

    fn plans_are_configurations(&self) -> bool {
        true
    }

    fn is_layer(&self, node: NodeIndex) -> bool {
        self.layer_of(node).is_some()
    }

    fn expert_shares(&self, limits: &Limits, plan: &Plan) -> Vec<(&'static str, f64)> {
        facts::expert_shares(self, limits, plan)
    }

    fn plan_figures(&self, limits: &Limits, plan: &Plan) -> Vec<FamilyFigure> {
        facts::figures(self, limits, plan)
    }
}
