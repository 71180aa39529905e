//! Layer profile whose lines name the stage of each node: a plan as PipeDream's optimizer writes it.
//!
//! Source: `gpus=N.txt` of PipeDream's optimizer (SOSP 2019). The file states no replicas, so each stage has one device.
//! `O(n + m)`.

use std::collections::BTreeMap;

use crate::{
    cluster::GivenLimits,
    family::{self, read::LoadedPlan},
    plan::{
        Plan, Stage,
        figures::{Claims, Figures},
    },
    source::LoadError,
    workload::{Choice, NodeIndex, Workload, formats::torch_graph},
};

/// Reads the stages of a graph as a plan.
///
/// # Errors
/// [`LoadError`] if the workload is no layer profile, or the graph has other nodes or a node without a stage.
pub(in crate::family) fn read(workload: &Workload, text: &str, source: &str) -> Result<LoadedPlan, LoadError> {
    let graph = torch_graph::read(text, source, "plan")?;
    let belongs = "give the plan of this profile";
    let Some(layers) = graph.layers().filter(|_| workload.layers().is_some()) else {
        let problem = format!("holds stages of a layer profile, and {} is none", workload.name);
        return Err(LoadError::file(source, problem, belongs));
    };
    let by_id = workload.by_id();
    let mut stages: BTreeMap<u32, Vec<NodeIndex>> = BTreeMap::new();
    for (node, cost) in graph.nodes.iter().zip(&layers.nodes) {
        let Some(&own) = by_id.get(&node.id) else {
            return Err(LoadError::file(
                source,
                format!("has node {}, and {} has none", node.id, workload.name),
                belongs,
            ));
        };
        let Some(stage) = cost.stage else {
            let problem = format!("has no stage_id for node {}: it is a layer profile, not a plan", node.id);
            return Err(LoadError::file(source, problem, "end each line of a node with ` -- stage_id=N`"));
        };
        stages.entry(stage).or_default().push(own);
    }
    if graph.nodes.len() != workload.nodes.len() {
        let problem = format!("has {} nodes, and {} has {}", graph.nodes.len(), workload.name, workload.nodes.len());
        return Err(LoadError::file(source, problem, belongs));
    }
    let family = family::of(workload);
    let stage = |mut nodes: Vec<NodeIndex>| {
        nodes.sort_unstable();
        let choice = |node: &NodeIndex| Choice::read(&workload.profile, family.example_choice(*node).into());
        let choices = nodes.iter().map(choice).collect();
        Stage { nodes, choices, data_parallel: 1, tensor_parallel: 1, devices: vec![] }
    };
    let measure = family::measure(workload);
    let plan = Plan { measure, stages: stages.into_values().map(stage).collect(), ..Plan::default() };
    Ok(LoadedPlan {
        plan: family.numbered(plan, workload.limits.devices()),
        limits: GivenLimits::default(),
        planner: None,
        recipe: None,
        training: None,
        kinds: vec![],
        options: BTreeMap::new(),
        claims: Claims::default(),
        figures: Figures::default(),
        kind: "PipeDream stages",
        notes: vec!["the file states no replicas: each stage has one device".into()],
        accelerators: workload.limits.devices(),
    })
}
