//! Hand edits of a training configuration. All stages share it, so every edit changes the whole plan. The number of
//! devices stays.
//!
//! | edit | effect |
//! |---|---|
//! | tensor degree | the next that the engine accepts; the number of replicas changes |
//! | replicas | the next that the engine accepts; the number of stages changes |
//! | merge, split | the next smaller or larger number of stages; the number of replicas changes |
//! | boundary, move | layers go to the neighbouring stage; refused with virtual stages |
//! | choice | layers up to the chosen ones recompute, or stop; backwards: cycles through none, attention, all |
//!
//! An edit that an engine refuses is refused here with its rule. One that exceeds the memory is not refused.

use crate::{
    cluster::Limits,
    family::{
        edit::{Edit, EditError, EditResult},
        training::{AttentionKernel, Layout, Recompute, check, configured, split::StageSplit},
    },
    plan::{Configuration, Plan},
    units::counted,
    workload::{Choice, NodeIndex, TrainingProfile},
};

type Result<T> = std::result::Result<T, EditError>;

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(EditError(why.into()))
}

/// Applies an edit.
///
/// # Errors
/// [`EditError`] if an engine refuses the result, or if nothing changes.
pub(super) fn apply(profile: &TrainingProfile, limits: &Limits, plan: &Plan, edit: &Edit) -> Result<EditResult> {
    let desk = TrainingEditContext { profile, limits, plan, now: configured::of_plan(profile, plan) };
    match edit {
        Edit::TensorParallel { up, .. } => desk.tensor(*up),
        Edit::DataParallel { up, .. } => desk.replicas(*up),
        Edit::Merge { .. } => desk.stages(false),
        Edit::Split { .. } => desk.stages(true),
        Edit::Boundary { stage, forwards } => {
            let left = (*stage).min(plan.stages.len().saturating_sub(2));
            if *forwards { desk.shift(left + 1, left, 1) } else { desk.shift(left, left + 1, 1) }
        }
        Edit::Move { nodes, to } => desk.carry(nodes, *to),
        Edit::Choice { nodes, forwards } => desk.choose(nodes, *forwards),
    }
}

struct TrainingEditContext<'a> {
    profile: &'a TrainingProfile,
    limits: &'a Limits,
    plan: &'a Plan,
    now: Configuration,
}

impl TrainingEditContext<'_> {
    /// Plan of a configuration that an engine accepts, or its refusal.
    fn configured_plan(&self, configuration: Configuration) -> Result<Plan> {
        let run = self.profile.run(&configuration, self.limits.samples());
        let devices = configuration.layout.devices();
        match check::check(&self.profile.model, &run, &self.profile.accelerator, devices) {
            Ok(split) => Ok(configured::plan(self.profile, configuration, &split)),
            Err(refusal) => refuse(format!("{}; {}", refusal.problem, refusal.repair)),
        }
    }

    fn done(&self, configuration: Configuration, what: String) -> Result<EditResult> {
        if configuration == self.now {
            return refuse("nothing changes");
        }
        self.configured_plan(configuration).map(|plan| EditResult { plan, what })
    }

    /// Configuration with the first of these degrees that an engine accepts; else the first refusal.
    fn first(
        &self,
        degrees: impl Iterator<Item = u32>,
        with: impl Fn(u32) -> Option<Configuration>,
    ) -> Result<Configuration> {
        let mut first_refusal = None;
        for configuration in degrees.filter_map(with) {
            match self.configured_plan(configuration.clone()) {
                Ok(_) => return Ok(configuration),
                Err(refused) => first_refusal = first_refusal.or(Some(refused)),
            }
        }
        Err(first_refusal.unwrap_or_else(|| EditError("no other such degree divides the devices".into())))
    }

    /// Degrees above or below the current one, up to the number of devices.
    fn others(&self, now: u32, up: bool) -> Box<dyn Iterator<Item = u32>> {
        let most = u32::try_from(self.now.layout.devices()).unwrap_or(u32::MAX);
        if up { Box::new(now + 1..=most) } else { Box::new((1..now).rev()) }
    }

    fn tensor(&self, up: bool) -> Result<EditResult> {
        let devices = self.now.layout.devices();
        let found = self.first(self.others(self.now.layout.tensor, up), |tensor| {
            let mut next = self.now.clone();
            next.layout.tensor = tensor;
            let others = u64::from(tensor) * u64::from(next.layout.context) * u64::from(next.layout.pipeline);
            next.layout.data = u32::try_from(devices / others).ok().filter(|_| devices.is_multiple_of(others))?;
            Some(next)
        })?;
        let (t, d) = (found.layout.tensor, found.layout.data);
        self.done(found, format!("tensor degree {t}, {}", counted(d as usize, "replica")))
    }

    /// Configuration with `pipeline` stages on the same devices.
    fn with_stages(&self, pipeline: u32) -> Option<Configuration> {
        let mut next = self.now.clone();
        next.layout.pipeline = pipeline;
        let devices = self.now.layout.devices();
        let others = u64::from(next.layout.tensor) * u64::from(next.layout.context) * u64::from(pipeline);
        next.layout.data = u32::try_from(devices / others).ok().filter(|_| devices.is_multiple_of(others))?;
        next.layers = vec![];
        if let Recompute::Layers(_) | Recompute::Every(_) = next.recompute {
            next.recompute = Recompute::Full;
        }
        // Keeps the number of virtual stages if they still divide the layers, else uses the next smaller one that does.
        let count = self.profile.model.layers.len();
        let most = if pipeline == 1 { 1 } else { next.layout.virtual_stages };
        next.layout.virtual_stages = (1..=most).rev().find(|&virtual_stages| {
            let layout = Layout { virtual_stages, ..next.layout };
            StageSplit::even(count, &layout).is_some()
        })?;
        next.zero_bubble = next.zero_bubble.filter(|own| {
            pipeline > 1
                && own.parts().map_or(next.layout.virtual_stages > 1, |parts| parts == next.layout.virtual_stages)
        });
        Some(next)
    }

    fn stages(&self, up: bool) -> Result<EditResult> {
        let found = self.first(self.others(self.now.layout.pipeline, up), |pipeline| self.with_stages(pipeline))?;
        let (p, d) = (found.layout.pipeline, found.layout.data);
        self.done(found, format!("{}, {}", counted(p as usize, "stage"), counted(d as usize, "replica")))
    }

    fn replicas(&self, up: bool) -> Result<EditResult> {
        let layout = &self.now.layout;
        let found = self.first(self.others(layout.data, up), |data| {
            let others = u64::from(layout.tensor) * u64::from(layout.context) * u64::from(data);
            let devices = layout.devices();
            let pipeline = u32::try_from(devices / others).ok().filter(|_| devices.is_multiple_of(others))?;
            self.with_stages(pipeline)
        })?;
        let (p, d) = (found.layout.pipeline, found.layout.data);
        self.done(found, format!("{}, {}", counted(d as usize, "replica"), counted(p as usize, "stage")))
    }

    /// Moves `count` layers from a stage to its neighbour.
    fn shift(&self, from: usize, to: usize, count: u32) -> Result<EditResult> {
        if self.plan.stages.len() < 2 {
            return refuse("there is only one stage, so there is no boundary to move");
        }
        if self.now.layout.virtual_stages > 1 {
            return refuse("virtual stages are equal parts of the model: use one virtual stage to move a boundary");
        }
        let Some(split) = configured::split(self.profile, &self.now) else {
            return refuse("the layers are not split over the stages, so there is no boundary to move");
        };
        let mut layers: Vec<u32> = (0..split.stages()).map(|stage| split.layers(stage) as u32).collect();
        if layers.len() <= from.max(to) || layers[from] <= count {
            return refuse(format!("stage {} would be left without layers: merge the stages instead", from + 1));
        }
        layers[from] -= count;
        layers[to] += count;
        let even = StageSplit::even(self.profile.model.layers.len(), &self.now.layout);
        let as_even = even.is_some_and(|even| (0..even.stages()).all(|i| layers[i] as usize == even.layers(i)));
        let head_alone = self.now.head_alone && layers.last() == Some(&0);
        let layers = if as_even && !head_alone { vec![] } else { layers };
        let next = Configuration { layers, head_alone, ..self.now.clone() };
        let layers = counted(count as usize, "layer");
        self.done(next, format!("{layers} from stage {} to stage {}", from + 1, to + 1))
    }

    fn carry(&self, nodes: &[NodeIndex], to: usize) -> Result<EditResult> {
        let home = nodes.first().and_then(|&node| self.plan.stage_of(node));
        let Some(from) = home.filter(|from| nodes.iter().all(|&node| self.plan.stage_of(node) == Some(*from))) else {
            return refuse("these nodes are not of one stage");
        };
        if to >= self.plan.stages.len() || from.abs_diff(to) != 1 {
            return refuse("layers form a chain: move them to the previous or the next stage");
        }
        if nodes.iter().any(|&node| self.profile.layer_of(node).is_none()) {
            return refuse("the embedding stays on the first stage and the head on the last");
        }
        self.shift(from, to, nodes.len() as u32)
    }

    fn choose(&self, nodes: &[NodeIndex], forwards: bool) -> Result<EditResult> {
        let recompute = if forwards { self.up_to(nodes)? } else { self.in_turn() };
        let what = format!("recompute {recompute}, in every stage");
        self.done(Configuration { recompute, ..self.now.clone() }, what)
    }

    /// Next value in the cycle: none, attention (if its scores are kept), all.
    fn in_turn(&self) -> Recompute {
        let unfused = self.profile.settings.attention == AttentionKernel::Unfused;
        match self.now.recompute {
            Recompute::None if unfused => Recompute::SELECTIVE,
            Recompute::None | Recompute::Selective(_) => Recompute::Full,
            Recompute::Full | Recompute::Layers(_) | Recompute::Every(_) => Recompute::None,
        }
    }

    /// Recomputes the layers up to the last of the nodes. If the first of them already recomputes, only those before it
    /// do.
    fn up_to(&self, nodes: &[NodeIndex]) -> Result<Recompute> {
        let layers: Vec<usize> = nodes.iter().filter_map(|&node| self.profile.layer_of(node)).collect();
        let (Some(&first), Some(&last)) = (layers.first(), layers.last()) else {
            return refuse("the embedding and the head are never recomputed: choose layers");
        };
        let Some(split) = configured::split(self.profile, &self.now) else {
            return refuse("the layers are not split over the stages");
        };
        let chunks = || (0..split.stages()).flat_map(|stage| split.chunks(stage));
        let place = |layer: usize| chunks().find(|chunk| chunk.contains(&layer)).map_or(0, |chunk| layer - chunk.start);
        let again = self.plan.stages.iter().any(|stage| {
            let at = stage.nodes.iter().position(|&node| self.profile.layer_of(node) == Some(first));
            at.is_some_and(|at| stage.choices.get(at).is_some_and(Choice::recomputes))
        });
        let most = chunks().map(ExactSizeIterator::len).max().unwrap_or(0);
        // A group may span several virtual stages.
        let highest = layers.iter().map(|&layer| place(layer)).max().unwrap_or_else(|| place(last));
        Ok(match (again, place(first), highest + 1) {
            (true, 0, _) => Recompute::None,
            (true, before, _) => Recompute::Layers(before as u32),
            (false, _, all) if all >= most => Recompute::Full,
            (false, _, some) => Recompute::Layers(some as u32),
        })
    }
}
