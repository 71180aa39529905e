//! Schedule of one sample through a device placement, which determines its latency.
//!
//! Tarnawski et al., NeurIPS 2020, sections on latency. The *parts* of a plan run as a whole: a single node on a CPU,
//! of which any number run at once, or a group of nodes on an accelerator. A part starts when all its inputs have
//! finished. An accelerator then receives each tensor from outside once, computes, and sends each of its tensors that
//! is read outside once. Only then do its nodes count as finished.
//!
//! The grouping on an accelerator has two readings, see [`Measure::Latency`](crate::plan::Measure::Latency). With
//! subgraphs a stage is a part, and stages of one device run in the order of the plan. Without, a stage is a device,
//! cut where a path leaves it and comes back. The depth of a node counts the returns, and nodes of equal depth are a
//! part. As in the paper, these wait for one another only for data, even on one device.
//!
//! `O(stages · (nodes + edges))` for the second reading, `O(nodes + edges log edges)` for the first.

use crate::{
    graph::Dag,
    plan::{
        Plan, SingleSample, Stage,
        single_sample::{PartCost, SamplePart},
    },
    workload::{NodeIndex, PlacementProfile},
};

/// Cycle of waiting parts: stage and nodes of each. Every part waits for the next and the last for the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCycle(pub Vec<(usize, Vec<NodeIndex>)>);

/// Schedules a plan over the nodes of `dag`. Nodes in no stage are omitted. `subgraphs`: true if stages are parts, in
/// the order of the plan; false if they are devices to be cut.
///
/// # Errors
/// [`WaitCycle`] if parts wait for one another: such a plan cannot run.
pub fn of(dag: &Dag, profile: &PlacementProfile, plan: &Plan, subgraphs: bool) -> Result<SingleSample, WaitCycle> {
    let mut parts: Vec<SamplePart> = vec![];
    let mut part_of: Vec<Option<usize>> = vec![None; dag.len()];
    for (index, stage) in plan.stages.iter().enumerate() {
        for nodes in members(dag, stage, subgraphs) {
            nodes.iter().for_each(|&node| part_of[node.index()] = Some(parts.len()));
            let costs = vec![PartCost::default(); nodes.len()];
            parts.push(SamplePart { stage: index, nodes, costs, start: 0.0, waits_for: None });
        }
    }
    for (index, part) in parts.iter_mut().enumerate() {
        price(dag, profile, part, index, &plan.stages[part.stage], &part_of);
    }
    let crossing = dag.edges().iter().filter_map(|&(u, v)| part_of[u as usize].zip(part_of[v as usize]));
    let mut waits: Vec<(usize, usize)> = crossing.filter(|(from, to)| from != to).collect();
    if subgraphs {
        waits.extend(in_turn(plan, &parts));
    }
    waits.sort_unstable();
    waits.dedup();
    schedule(parts, &waits)
}

/// Nodes of each part of a stage.
fn members(dag: &Dag, stage: &Stage, subgraphs: bool) -> Vec<Vec<NodeIndex>> {
    let known = stage.nodes.iter().copied().filter(|&node| node.index() < dag.len());
    if stage.on_cpus() {
        return known.map(|node| vec![node]).collect();
    }
    let mut inside = vec![false; dag.len()];
    known.clone().for_each(|node| inside[node.index()] = true);
    let mut nodes: Vec<NodeIndex> = known.collect();
    nodes.sort_unstable();
    nodes.dedup();
    if subgraphs {
        return vec![nodes].into_iter().filter(|nodes| !nodes.is_empty()).collect();
    }
    // Number of times that a path to the node came back to the stage, including the first arrival.
    let mut returns = vec![0usize; dag.len()];
    for &v in dag.topological_order() {
        let v = v as usize;
        let reached = dag.predecessors(v).map(|u| returns[u] + usize::from(inside[v] && !inside[u])).max();
        returns[v] = reached.unwrap_or(0).max(usize::from(inside[v]));
    }
    nodes.sort_by_key(|node| returns[node.index()]);
    nodes.chunk_by(|a, b| returns[a.index()] == returns[b.index()]).map(<[NodeIndex]>::to_vec).collect()
}

/// Computes the costs of a part's nodes.
fn price(
    dag: &Dag,
    profile: &PlacementProfile,
    part: &mut SamplePart,
    index: usize,
    stage: &Stage,
    part_of: &[Option<usize>],
) {
    let (cpu, speed) = (stage.on_cpus(), profile.speed_on(stage));
    let outside = |other: &usize| part_of[*other].is_some_and(|part| part != index);
    let mut received: Vec<usize> = vec![];
    for (&node, cost) in part.nodes.iter().zip(&mut part.costs) {
        cost.compute = profile.nodes[node].compute(cpu) / speed;
        if cpu {
            continue;
        }
        if dag.successors(node.index()).any(|reader| outside(&reader)) {
            cost.send = profile.nodes[node].transfer;
        }
        for producer in dag.predecessors(node.index()).filter(outside) {
            if let Err(place) = received.binary_search(&producer) {
                received.insert(place, producer);
                cost.receive += profile.nodes[producer].transfer;
            }
        }
    }
}

/// Parts of one device that run one after the other, as pairs of neighbours.
fn in_turn(plan: &Plan, parts: &[SamplePart]) -> Vec<(usize, usize)> {
    let mut last: std::collections::BTreeMap<u32, usize> = std::collections::BTreeMap::new();
    let mut turns = vec![];
    for (index, part) in parts.iter().enumerate() {
        let stage = &plan.stages[part.stage];
        if let (false, Some(&device)) = (stage.on_cpus(), stage.devices.first())
            && let Some(before) = last.insert(device, index)
        {
            turns.push((before, index));
        }
    }
    turns
}

/// Starts every part once all its dependencies have finished.
fn schedule(mut parts: Vec<SamplePart>, waits: &[(usize, usize)]) -> Result<SingleSample, WaitCycle> {
    let mut missing = vec![0usize; parts.len()];
    waits.iter().for_each(|&(_, to)| missing[to] += 1);
    let mut ready: Vec<usize> = (0..parts.len()).filter(|&part| missing[part] == 0).collect();
    let (mut latency, mut done) = (0.0f64, 0);
    while let Some(part) = ready.pop() {
        done += 1;
        let finish = parts[part].finish();
        latency = latency.max(finish);
        let first = waits.partition_point(|&(from, _)| from < part);
        for &(_, to) in waits[first..].iter().take_while(|&&(from, _)| from == part) {
            let waiting = &mut parts[to];
            if waiting.waits_for.is_none() || finish > waiting.start {
                (waiting.start, waiting.waits_for) = (finish, Some(part));
            }
            missing[to] -= 1;
            if missing[to] == 0 {
                ready.push(to);
            }
        }
    }
    if done == parts.len() {
        return Ok(SingleSample { parts, latency });
    }
    Err(circle(&parts, waits, &missing))
}

/// Cycle among the parts with missing dependencies.
fn circle(parts: &[SamplePart], waits: &[(usize, usize)], missing: &[usize]) -> WaitCycle {
    // Every such part has a dependency that is such a part too, so following them must return.
    let mut before = vec![usize::MAX; parts.len()];
    for &(from, to) in waits.iter().filter(|&&(from, to)| missing[from] > 0 && missing[to] > 0) {
        before[to] = from;
    }
    let mut at = (0..parts.len()).find(|&part| missing[part] > 0).expect("some part was not reached");
    let mut seen = vec![false; parts.len()];
    while !std::mem::replace(&mut seen[at], true) {
        at = before[at];
    }
    let (first, mut found) = (at, vec![]);
    loop {
        found.push((parts[at].stage, parts[at].nodes.clone()));
        at = before[at];
        if at == first {
            return WaitCycle(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::{
        plan::Measure,
        workload::{Choice, placement::PlacementNode},
    };

    /// Nodes of 2 on an accelerator, 10 on a CPU, with transfers of 1.
    fn profile(n: usize) -> PlacementProfile {
        let node = PlacementNode {
            cpu_time: 10.0,
            accelerator_time: 2.0,
            supported: true,
            backward: false,
            size_bytes: 1.0,
            colour_class: None,
            layer: None,
            transfer: 1.0,
        };
        vec![node; n].into()
    }

    fn plan(stages: &[(&[usize], Choice, u32)]) -> Plan {
        let stage = |(nodes, choice, device): &(&[usize], Choice, u32)| Stage {
            nodes: NodeIndex::list(nodes.iter().copied()),
            choices: vec![choice.clone(); nodes.len()],
            data_parallel: 1,
            tensor_parallel: 1,
            devices: vec![*device],
        };
        Plan {
            stages: stages.iter().map(stage).collect(),
            measure: Measure::Latency { subgraphs: None },
            ..Plan::default()
        }
    }

    #[test]
    fn a_set_is_cut_where_a_path_comes_back() {
        // 0 -> 1 -> 2 with 1 on a CPU: the accelerator runs 0, then 2.
        let dag = Dag::new(3, vec![(0, 1), (1, 2)]).unwrap();
        let plan = plan(&[(&[0, 2], Choice::Accelerator, 0), (&[1], Choice::Cpu, 1)]);
        let sample = of(&dag, &profile(3), &plan, false).unwrap();
        let told: Vec<_> = sample.parts.iter().map(|part| (part.nodes[0].index(), part.start, part.finish())).collect();
        assert_eq!(told, [(0, 0.0, 3.0), (2, 13.0, 16.0), (1, 3.0, 13.0)]);
        assert!(sample.parts.iter().all(|part| part.nodes.len() == 1));
        assert_eq!((sample.latency, sample.parts[1].waits_for), (16.0, Some(2)));
        // As one subgraph it would wait for itself.
        let circle = of(&dag, &profile(3), &plan, true).unwrap_err();
        assert_eq!(circle.0.len(), 2);
    }

    #[test]
    fn subgraphs_of_a_device_take_turns() {
        let dag = Dag::new(2, vec![]).unwrap();
        let plan = plan(&[(&[0], Choice::Accelerator, 0), (&[1], Choice::Accelerator, 0)]);
        assert_eq!(of(&dag, &profile(2), &plan, true).unwrap().latency, 4.0);
        assert_eq!(of(&dag, &profile(2), &plan, false).unwrap().latency, 2.0);
    }

    #[test]
    fn a_tensor_is_moved_once_however_many_read_it() {
        // 0 is read by 1 and 2, which are together.
        let dag = Dag::new(3, vec![(0, 1), (0, 2), (0, 2)]).unwrap();
        let plan = plan(&[(&[0], Choice::Accelerator, 0), (&[1, 2], Choice::Accelerator, 1)]);
        let sample = of(&dag, &profile(3), &plan, false).unwrap();
        assert_eq!(sample.parts[1].cost(), PartCost { receive: 1.0, compute: 4.0, send: 0.0 });
        assert_eq!(sample.latency, 3.0 + 5.0);
    }
}
