//! Device placement on accelerators of several kinds: against trying everything, and against the program for one kind.

use crate::placement_brute::Random;
use plantui::{
    graph::Dag,
    planner::{
        Search,
        placement::{
            PlacementLimits,
            classes::{ClassGraph, Partition},
            dp::{self, DpOptions},
            unequal::{self, KindLimits, UnequalLimits, UnequalResult, UnequalSpace},
        },
    },
    workload::placement::{PlacementNode, PlacementProfile},
};

struct Instance {
    dag: Dag,
    profile: PlacementProfile,
    limits: UnequalLimits,
}

/// A forward graph of four to six nodes, some of which share a class, with two kinds of accelerators.
fn instance(random: &mut Random) -> Instance {
    let n = 4 + random.below(3) as usize;
    let node = |random: &mut Random| {
        let accelerator_time = random.below(12) as f64;
        PlacementNode {
            cpu_time: accelerator_time * (1 + random.below(4)) as f64,
            accelerator_time,
            supported: random.below(10) > 0,
            backward: false,
            size_bytes: random.below(6) as f64,
            colour_class: (random.below(4) == 0).then(|| random.below(2) as i64),
            layer: None,
            transfer: 0.0,
        }
    };
    let mut nodes: Vec<PlacementNode> = (0..n).map(|_| node(random)).collect();
    let mut edges = vec![];
    for u in 0..n as u32 {
        for v in u + 1..n as u32 {
            if random.below(3) == 0 {
                edges.push((u, v));
                nodes[u as usize].transfer = random.below(5) as f64;
            }
        }
    }
    let mut first = 0;
    let mut kind = |random: &mut Random| {
        let count = random.below(3) as u32;
        first += count;
        let (speed, memory_bytes) = ([0.5, 1.0, 2.0, 3.0][random.below(4) as usize], 4.0 + random.below(16) as f64);
        KindLimits { first: first - count, count, speed, memory_bytes }
    };
    let kinds: Vec<KindLimits> = (0..2).map(|_| kind(random)).collect();
    let all = kinds.iter().map(|kind| kind.count).sum::<u32>();
    let limits = UnequalLimits {
        kinds,
        accelerators: if random.below(4) == 0 { all.saturating_sub(1) } else { all },
        cpus: random.below(2) as u32,
    };
    Instance { dag: Dag::new(n, edges).unwrap(), profile: nodes.into(), limits }
}

/// Load of a device with these nodes, written down once more: computing divided by the speed, each tensor that enters or
/// leaves once.
fn naive_load(Instance { dag, profile, limits }: &Instance, kind: Option<usize>, nodes: &[usize]) -> f64 {
    let Some(kind) = kind.map(|kind| &limits.kinds[kind]) else {
        return nodes.iter().map(|&v| profile.nodes[v].cpu_time).sum();
    };
    let has = |v: usize| nodes.contains(&v);
    let size: f64 = nodes.iter().map(|&v| profile.nodes[v].size_bytes).sum();
    if size > kind.memory_bytes || nodes.iter().any(|&v| !profile.nodes[v].supported) {
        return f64::INFINITY;
    }
    let compute: f64 = nodes.iter().map(|&v| profile.nodes[v].accelerator_time).sum();
    let crosses = |u: &usize| {
        let reads = || dag.successors(*u).any(has);
        dag.successors(*u).any(|v| has(v) != has(*u)) && (has(*u) || reads())
    };
    compute / kind.speed + (0..dag.len()).filter(crosses).map(|u| profile.nodes[u].transfer).sum::<f64>()
}

/// Least max-load over every assignment of classes to devices that can be put in a row.
fn by_trying_everything(instance: &Instance) -> Option<f64> {
    let graph = ClassGraph::new(&instance.dag, &instance.profile, &Partition::by_colour(&instance.profile));
    let members = graph.partition.members();
    let kinds = instance.limits.kinds.iter().enumerate();
    let mut devices: Vec<Option<usize>> =
        kinds.flat_map(|(kind, own)| std::iter::repeat_n(Some(kind), own.count as usize)).collect();
    devices.extend(std::iter::repeat_n(None, instance.limits.cpus as usize));
    let mut best: Option<f64> = None;
    for code in 0..devices.len().pow(members.len() as u32) {
        let mut rest = code;
        let on: Vec<usize> = members.iter().map(|_| (rest % devices.len(), rest /= devices.len()).0).collect();
        let used = (0..devices.len()).filter(|&d| devices[d].is_some() && on.contains(&d)).count();
        let ends = |&(a, b): &(u32, u32)| (on[a as usize] as u32, on[b as usize] as u32);
        let crossing = graph.edges.iter().map(ends).filter(|(a, b)| a != b).collect();
        if used > instance.limits.accelerators as usize || Dag::new(devices.len(), crossing).is_err() {
            continue;
        }
        let load = |d: usize| {
            let held = members.iter().zip(&on).filter(|&(_, &own)| own == d);
            let nodes: Vec<usize> = held.flat_map(|(nodes, _)| nodes.clone()).collect();
            if nodes.is_empty() { 0.0 } else { naive_load(instance, devices[d], &nodes) }
        };
        let value = (0..devices.len()).map(load).fold(0.0, f64::max);
        if value.is_finite() {
            best = Some(best.map_or(value, |known: f64| known.min(value)));
        }
    }
    best
}

fn planned(instance: &Instance, linear: bool) -> UnequalResult {
    let space = UnequalSpace { linear, ..UnequalSpace::default() };
    unequal::plan(&instance.dag, &instance.profile, &instance.limits, space, &Search::default(), &mut |_, _| ())
}

#[test]
fn the_dp_finds_the_optimum_of_every_small_graph() {
    let mut random = Random(52);
    let (mut none, mut both, mut worse) = (0, 0, 0);
    for round in 0..600 {
        let instance = instance(&mut random);
        let expected = by_trying_everything(&instance);
        let (found, linear) = (planned(&instance, false), planned(&instance, true));
        assert!(found.proven, "round {round}");
        match (expected, &found.best) {
            (None, None) => none += 1,
            (Some(value), Some((own, stages))) => {
                assert!((own - value).abs() < 1e-9, "round {round}: {own} is not {value}");
                assert!(found.bound <= value + 1e-9 && linear.bound <= value + 1e-9, "round {round}");
                let loads = stages.iter().map(|stage| naive_load(&instance, stage.kind, &stage.nodes));
                assert!((loads.fold(0.0, f64::max) - value).abs() < 1e-9, "round {round}");
                for (kind, limits) in instance.limits.kinds.iter().enumerate() {
                    let used = stages.iter().filter(|stage| stage.kind == Some(kind)).count();
                    assert!(used <= limits.count as usize, "round {round}");
                }
                let accelerators = stages.iter().filter(|stage| stage.kind.is_some()).count();
                assert!(accelerators <= instance.limits.accelerators as usize, "round {round}");
                both += usize::from((0..2).all(|kind| stages.iter().any(|stage| stage.kind == Some(kind))));
                worse += usize::from(linear.best.is_none_or(|(linear, _)| linear > value + 1e-9));
            }
            (expected, found) => panic!("round {round}: {expected:?}, {found:?}"),
        }
    }
    assert!(none > 20 && both > 50 && worse > 20, "{none} {both} {worse}");
}

#[test]
fn kinds_that_are_alike_are_planned_like_one() {
    let mut random = Random(53);
    for round in 0..200 {
        let mut instance = instance(&mut random);
        let memory_bytes = instance.limits.kinds[0].memory_bytes;
        for kind in &mut instance.limits.kinds {
            (kind.speed, kind.memory_bytes) = (1.0, memory_bytes);
        }
        let UnequalLimits { accelerators, cpus, .. } = instance.limits;
        let alike = PlacementLimits { accelerators, cpus, memory_bytes };
        let one = dp::plan(&instance.dag, &instance.profile, &alike, &DpOptions::default(), &Search::default());
        let several = planned(&instance, false).best.map(|(value, _)| value);
        match (one.max_load, several) {
            (Some(one), Some(several)) => assert!((one - several).abs() < 1e-9, "round {round}: {one}, {several}"),
            (one, several) => assert_eq!(one, several, "round {round}"),
        }
    }
}

#[test]
fn a_faster_accelerator_is_never_worse() {
    let mut random = Random(54);
    for round in 0..100 {
        let mut instance = instance(&mut random);
        let before = planned(&instance, false).best.map_or(f64::INFINITY, |(value, _)| value);
        instance.limits.kinds[0].speed *= 2.0;
        instance.limits.kinds[0].memory_bytes += 4.0;
        let after = planned(&instance, false).best.map_or(f64::INFINITY, |(value, _)| value);
        assert!(after <= before * (1.0 + 1e-9), "round {round}: {before}, {after}");
    }
}
