//! Words and columns of layers with costs on several kinds of devices.

use super::{iteration::sequences, layout};
use crate::{
    cluster::Limits,
    family::{
        describe::{Amount, Describe, Detail, FamilyFigure, StageTraffic, runs},
        kinds::KindCount,
        platform::Platform,
    },
    plan::{Plan, Stage},
    units,
    workload::{
        Choice, NodeIndex, Workload,
        mixed::{KindCosts, LayerCost, MixedProfile},
    },
};

/// Costs on each kind with the smallest tensor degree and micro-batch.
fn alone(profile: &MixedProfile, kind: usize) -> Option<&KindCosts> {
    let own = profile.costs.iter().filter(|costs| costs.kind == kind);
    own.min_by_key(|costs| (costs.recompute, costs.tensor, costs.micro_batch))
}

/// Costs of a node on the first kind that has any.
fn first(profile: &MixedProfile, node: NodeIndex) -> LayerCost {
    let kinds = 0..profile.kinds.len();
    kinds.filter_map(|kind| alone(profile, kind)).next().map_or(LayerCost::default(), |own| own.layers[node.index()])
}

fn seconds(cost: &LayerCost) -> f64 {
    cost.forward_s + cost.backward_s
}

impl Describe for MixedProfile {
    fn columns(&self) -> &'static [(&'static str, usize)] {
        &[("forward", 11), ("backward", 11), ("state", 11), ("activations", 11)]
    }

    fn cells(&self, members: &[NodeIndex]) -> Vec<String> {
        let cost = first(self, members[0]);
        vec![
            units::seconds(cost.forward_s),
            units::seconds(cost.backward_s),
            units::bytes(cost.state_bytes.on(1)),
            units::bytes(cost.activation_bytes),
        ]
    }

    fn groups(&self, workload: &Workload) -> Vec<Vec<NodeIndex>> {
        runs(workload, &|node| Some((seconds(&first(self, node)), self.gradient_bytes[node.index()])))
    }

    fn weight(&self, node: NodeIndex) -> f64 {
        seconds(&first(self, node))
    }

    fn details(&self, node: NodeIndex) -> Vec<Detail> {
        let titles = ["t", "kind", "time", "state", "activations of a microbatch"];
        let mut lines = vec![Detail::Row { title: true, cells: titles.map(String::from) }];
        for (kind, own) in self.kinds.iter().enumerate() {
            let Some(costs) = alone(self, kind) else { continue };
            let cost = &costs.layers[node.index()];
            let cells = [
                costs.tensor.to_string(),
                own.id.clone(),
                units::seconds(seconds(cost)),
                units::bytes(cost.state_bytes.on(1)),
                units::bytes(cost.activation_bytes),
            ];
            lines.push(Detail::Row { title: false, cells });
        }
        lines
    }

    fn facts(&self) -> String {
        self.kinds_text()
    }

    fn edge(&self, workload: &Workload, edge: usize) -> Amount {
        Amount::Bytes(self.output_bytes[workload.edge(edge).0.index()])
    }

    fn edge_title(&self) -> &'static str {
        "per sequence"
    }

    fn flows(&self, _workload: &Workload, plan: &Plan) -> Vec<StageTraffic> {
        let sent = |from: usize| {
            let stage = &plan.stages[from];
            let size = stage.choices.first().and_then(Choice::layer_mode).map_or(1, |mode| mode.micro_batch);
            stage.nodes.last().map_or(0.0, |node| 2.0 * self.output_bytes[node.index()] * f64::from(size))
        };
        let flow = |to: usize| StageTraffic { from: to - 1, to, amount: Amount::Bytes(sent(to - 1)) };
        (1..plan.stages.len()).map(flow).collect()
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
        let Ok(pipeline) = layout::pipeline(self, limits, plan) else { return vec![] };
        let taken = pipeline.devices(self.kinds.len());
        let of = |(kind, &taken): (usize, &u64)| {
            let own = &self.kinds[kind];
            (own.count > 0).then(|| format!("{taken} of {} {}", own.count, own.id))
        };
        let taken: Vec<String> = taken.iter().enumerate().filter_map(of).collect();
        let (d, size, m) = (pipeline.data, pipeline.micro_batch, pipeline.microbatches());
        let filled = sequences(m, size, d);
        let filled = (filled > f64::from(pipeline.batch)).then(|| {
            format!(
                "an iteration has {filled} sequences, since the batch of {} fills no whole microbatches",
                pipeline.batch
            )
        });
        let priced = pipeline.time_and_cost(self).and_then(|(seconds, cost)| {
            let (cost, per_hour) = (cost?, pipeline.price_per_hour(self)?);
            let traffic = match pipeline.traffic_cost(self) {
                0.0 => String::new(),
                traffic => format!(" and {} for traffic", units::number(traffic)),
            };
            let (seconds, cost) = (units::seconds(seconds), units::number(cost));
            Some(format!("{seconds} and a cost of {cost} an iteration: {} an hour{traffic}", units::money(per_hour)))
        });
        let layout = format!(
            "{} of {}, {m} microbatches of {}, on {}",
            units::counted(pipeline.stages.len(), "stage"),
            units::counted(d as usize, "replica"),
            units::counted(size as usize, "sequence"),
            taken.join(", ")
        );
        [layout].into_iter().chain(filled).chain(priced).collect()
    }

    fn plan_figures(&self, limits: &Limits, plan: &Plan) -> Vec<FamilyFigure> {
        let priced = || {
            let (_, cost) = layout::pipeline(self, limits, plan).ok()?.time_and_cost(self)?;
            cost
        };
        let figure =
            |cost: f64| FamilyFigure { value: units::number(cost), name: "cost of an iteration".into(), short: "" };
        priced().map(figure).into_iter().collect()
    }

    fn stage_kind(&self, stage: &Stage) -> Option<&str> {
        layout::kind_of(self, stage).map(|kind| self.kinds[kind].id.as_str())
    }
}

impl MixedProfile {
    /// Kinds with their devices: `32 a100-40, 96 v100-16`.
    pub fn kinds_text(&self) -> String {
        KindCount::text(&self.kind_counts())
    }
}
