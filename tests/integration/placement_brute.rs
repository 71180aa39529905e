//! Device placement against trying everything, on small random graphs.

use plantui::{
    graph::Dag,
    planner::{
        Search, Status,
        placement::{
            DeviceKind, PlacementLimits, Split,
            classes::{ClassGraph, Partition},
            dp::{self, DpOptions},
            ip::{self, Contiguity, Objective, ThroughputProblem},
            linearise, local_search, multilevel, pipedream, smallest_memory,
        },
    },
    workload::placement::{PlacementNode, PlacementProfile},
};
use std::collections::BTreeMap;

/// A linear congruential generator (Knuth's MMIX constants): the same graphs on every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

struct Instance {
    dag: Dag,
    profile: PlacementProfile,
    limits: PlacementLimits,
}

/// A forward graph, perhaps with mirrored backward nodes in the classes of their forward nodes, orphans among them.
fn instance(random: &mut Random) -> Instance {
    let forward = 2 + random.below(4) as usize;
    let training = random.below(2) == 0;
    let n = if training { (forward + 1 + random.below(forward as u64) as usize).min(8) } else { forward + 3 };
    let colours = 2 + random.below(5);
    let node = |v: usize, random: &mut Random| {
        let backward = training && v >= forward;
        let colour_class = match random.below(4) {
            0 => None,
            1 if !backward => Some(random.below(colours) as i64),
            2 if backward => Some(100 + random.below(2) as i64),
            _ if backward => Some(10 + (n - 1 - v) as i64),
            _ => Some(10 + v as i64),
        };
        let free = random.below(5) == 0;
        let accelerator_time = if free { 0.0 } else { random.below(12) as f64 };
        PlacementNode {
            cpu_time: if free { 0.0 } else { accelerator_time * (1 + random.below(4)) as f64 },
            accelerator_time,
            supported: random.below(10) > 0,
            backward,
            size_bytes: random.below(6) as f64,
            colour_class,
            layer: (random.below(3) == 0).then(|| random.below(3) as i64),
            transfer: 0.0,
        }
    };
    let mut nodes: Vec<PlacementNode> = (0..n).map(|v| node(v, random)).collect();
    let mut edges = vec![];
    for u in 0..n as u32 {
        for v in u + 1..n as u32 {
            if random.below(3) == 0 {
                edges.push((u, v));
                nodes[u as usize].transfer = random.below(5) as f64;
            }
        }
    }
    let limits = PlacementLimits {
        accelerators: random.below(4) as u32,
        cpus: random.below(3) as u32,
        memory_bytes: 4.0 + random.below(20) as f64,
    };
    Instance { dag: Dag::new(n, edges).unwrap(), profile: nodes.into(), limits }
}

/// A forward node of size 1 that any device runs, in no class and no layer, and that sends nothing.
fn plain(cpu_time: f64, accelerator_time: f64) -> PlacementNode {
    PlacementNode {
        cpu_time,
        accelerator_time,
        supported: true,
        backward: false,
        size_bytes: 1.0,
        colour_class: None,
        layer: None,
        transfer: 0.0,
    }
}

/// Classes of which two fill an accelerator, many of them free of cost: hardly an order fits.
fn tight_instance(random: &mut Random) -> Instance {
    let n = 4 + random.below(3) as usize;
    let node = |_| {
        let time = f64::from(random.below(5) > 1);
        PlacementNode { size_bytes: 4.0 + random.below(4) as f64, ..plain(1.0, time) }
    };
    let nodes: Vec<PlacementNode> = (0..n).map(node).collect();
    let pairs = (0..n as u32).flat_map(|u| (u + 1..n as u32).map(move |v| (u, v)));
    let edges = pairs.filter(|_| random.below(4) == 0).collect();
    let limits = PlacementLimits { accelerators: n as u32 / 2 + 1, cpus: 0, memory_bytes: 10.0 };
    Instance { dag: Dag::new(n, edges).unwrap(), profile: nodes.into(), limits }
}

/// The least max-load over every assignment of classes to devices whose devices can be ordered so that no edge of the
/// class graph goes backwards.
fn by_trying_everything(instance: &Instance, contract_layers: bool) -> Option<f64> {
    let Instance { dag, profile, limits } = instance;
    let colours = Partition::by_colour(profile);
    let partition = if contract_layers { colours.with_layers(profile) } else { colours };
    let graph = ClassGraph::new(dag, profile, &partition);
    let members = graph.partition.members();
    let devices = (limits.accelerators + limits.cpus) as usize;
    let mut best: Option<f64> = None;
    for code in 0..devices.pow(members.len() as u32) {
        let mut rest = code;
        let device: Vec<usize> = members.iter().map(|_| (rest % devices, rest /= devices).0).collect();
        let between = graph.edges.iter().chain(&graph.artificial);
        let quotient: Vec<(u32, u32)> = between
            .map(|&(a, b)| (device[a as usize] as u32, device[b as usize] as u32))
            .filter(|(a, b)| a != b)
            .collect();
        if Dag::new(devices, quotient).is_err() {
            continue;
        }
        let split = Split::from_stages((0..devices).map(|d| {
            let kind = if d < limits.accelerators as usize { DeviceKind::Accelerator } else { DeviceKind::Cpu };
            let held = members.iter().zip(&device).filter(|&(_, &of)| of == d);
            (kind, held.flat_map(|(nodes, _)| nodes.clone()).collect())
        }));
        let value = naive_max_load(instance, &split);
        if value.is_finite() {
            best = Some(best.map_or(value, |known: f64| known.min(value)));
        }
    }
    best
}

/// Section 3 of the paper's cost model written down once more, with nothing shared.
fn naive_max_load(instance: &Instance, split: &Split) -> f64 {
    let Instance { dag, profile, limits } = instance;
    let mut most: f64 = 0.0;
    for device in &split.devices {
        let has = |v: usize| device.nodes.contains(&v);
        let mut load = 0.0;
        match device.kind {
            DeviceKind::Cpu => load += device.nodes.iter().map(|&v| profile.nodes[v].cpu_time).sum::<f64>(),
            DeviceKind::Accelerator => {
                let size: f64 = device.nodes.iter().map(|&v| profile.nodes[v].size_bytes).sum();
                if size > limits.memory_bytes || device.nodes.iter().any(|&v| !profile.nodes[v].supported) {
                    return f64::INFINITY;
                }
                for u in 0..dag.len() {
                    load += if has(u) { profile.nodes[u].accelerator_time } else { 0.0 };
                    if dag.successors(u).any(|v| has(v) != has(u)) && (has(u) || dag.successors(u).any(has)) {
                        load += profile.nodes[u].transfer;
                    }
                }
            }
        }
        most = most.max(load);
    }
    most
}

#[test]
fn the_dp_finds_the_optimum_of_every_small_graph() {
    let mut random = Random(20);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..500 {
        let instance = instance(&mut random);
        let Instance { dag, profile, limits } = &instance;
        let contract_layers = round % 4 == 0;
        let options = DpOptions { contract_layers, ..DpOptions::default() };
        let expected = by_trying_everything(&instance, contract_layers);
        let placed = dp::plan(dag, profile, limits, &options, &Search::default());
        let linear = linearise::plan(dag, profile, limits, &options, &Search::default());
        match expected {
            None => {
                assert_eq!((placed.status, &placed.split, &linear.split), (Status::Infeasible, &None, &None));
                *seen.entry("infeasible").or_default() += 1;
            }
            Some(value) => {
                assert_eq!(placed.status, Status::Optimal);
                let split = placed.split.as_ref().unwrap();
                assert!((placed.max_load.unwrap() - value).abs() < 1e-9, "round {round}: {placed:?}, is {value}");
                assert!((naive_max_load(&instance, split) - value).abs() < 1e-9, "round {round}");
                assert!((split.score(dag, profile).max_load - value).abs() < 1e-9, "round {round}");
                assert!(split.used(DeviceKind::Accelerator) <= limits.accelerators as usize);
                assert!(split.used(DeviceKind::Cpu) <= limits.cpus as usize);
                // The bound that needs no search never exceeds the optimum.
                assert!(linear.lower_bound.unwrap() <= value + 1e-9, "round {round}: {linear:?}, is {value}");
                if let Some(linear) = linear.max_load {
                    assert!(linear >= value - 1e-9);
                    *seen
                        .entry(if linear > value + 1e-9 { "linearised worse" } else { "linearised equal" })
                        .or_default() += 1;
                } else {
                    *seen.entry("linearised finds none").or_default() += 1;
                }
                let no_memory = PlacementLimits { memory_bytes: f64::INFINITY, ..*limits };
                let roomy = dp::plan(dag, profile, &no_memory, &options, &Search::default()).max_load.unwrap();
                assert!(roomy <= value + 1e-9);
                *seen.entry(if roomy < value - 1e-9 { "memory binds" } else { "memory is ample" }).or_default() += 1;
            }
        }
    }
    println!("{seen:?}");
    for kind in ["infeasible", "linearised worse", "linearised equal", "memory binds", "memory is ample"] {
        assert!(seen.get(kind).is_some_and(|&count| count > 20), "{kind}: {seen:?}");
    }
}

#[test]
fn the_dp_fills_accelerators_that_hardly_an_order_fits() {
    let mut random = Random(21);
    let (mut hidden, mut impossible) = (0, 0);
    for round in 0..600 {
        let instance = tight_instance(&mut random);
        let Instance { dag, profile, limits } = &instance;
        let expected = by_trying_everything(&instance, false);
        let placed = dp::plan(dag, profile, limits, &DpOptions::default(), &Search::default());
        assert_eq!(placed.max_load, expected, "round {round}: {:?} {profile:?}", dag.edges());
        impossible += usize::from(expected.is_none());
        let linear = linearise::plan(dag, profile, limits, &DpOptions::default(), &Search::default());
        hidden += usize::from(expected.is_some() && linear.split.is_none());
    }
    assert!(hidden > 50 && impossible > 50, "{hidden} that linearised search does not find, {impossible} impossible");
}

#[test]
fn the_smallest_memory_is_enough_and_less_is_not() {
    let mut random = Random(33);
    let (mut checked, mut exact) = (0, 0);
    for round in 0..400 {
        let Instance { dag, profile, limits } = instance(&mut random);
        let accelerators = limits.accelerators;
        let with = |memory_bytes: f64| PlacementLimits { accelerators, cpus: 0, memory_bytes };
        let contiguous = smallest_memory::contiguous(&dag, &profile, false, accelerators, &Search::default());
        let contiguous = contiguous.map(|needed| needed.exact().expect("there are few closed sets"));
        let needed = smallest_memory::any_split(&profile, accelerators, &Search::default());
        let (Some(least), Some(needed)) = (contiguous, needed) else {
            assert!(contiguous.is_none() && needed.is_none(), "round {round}");
            assert!(accelerators == 0 || profile.nodes.iter().any(|node| !node.supported), "round {round}");
            continue;
        };
        let planned =
            |memory| dp::plan(&dag, &profile, &with(memory), &DpOptions::default(), &Search::default()).split.is_some();
        assert!(planned(least) && (least < 1.0 || !planned(least - 1.0)), "round {round}: {least}");
        let settings = ip::IpSettings { rounds: 1, walks: 1, steps: 1000, branches: 100_000 };
        let packed = |memory| {
            let (contiguity, objective) = (Contiguity::Free, Objective::MaxLoad);
            let question =
                ThroughputProblem { dag: &dag, profile: &profile, limits: with(memory), contiguity, objective };
            ip::search(&question, &settings, &Search::default(), &|_, _| {}).split.is_some()
        };
        assert!(needed.at_least <= needed.enough && needed.enough <= least, "round {round}: {needed:?}, {least}");
        assert!(packed(needed.enough), "round {round}: {needed:?}");
        let below = needed.at_least.ceil() - 1.0;
        assert!(below < 0.0 || !packed(below), "round {round}: {needed:?}");
        checked += 1;
        exact += usize::from(needed.exact() == Some(needed.enough));
    }
    println!("{checked} checked, {exact} exact without order");
    assert!(checked > 100 && exact > checked / 2 && exact < checked, "{checked}, {exact}");
}

#[test]
fn a_cancelled_search_says_so() {
    let search = Search::default();
    search.cancel();
    let mut random = Random(3);
    let instance = instance(&mut random);
    let placed = dp::plan(&instance.dag, &instance.profile, &instance.limits, &DpOptions::default(), &search);
    assert_eq!(placed.status, Status::Cancelled);
    // What fits along one order is there all the same.
    if let Some(split) = placed.split {
        assert_eq!(placed.max_load, Some(split.score(&instance.dag, &instance.profile).max_load));
    }
}

/// The same graph with costs of every magnitude from 1 to 1e30, or with tensors that must never be sent.
fn spread(random: &mut Random, mut instance: Instance) -> Instance {
    let forbidden = [1e8, 1e18, 1e30];
    let everything = random.below(3) == 0;
    let scaled = |random: &mut Random, cost: f64| cost / 7.0 * 10f64.powi(10 * random.below(4) as i32);
    for node in &mut instance.profile.nodes {
        if everything {
            node.accelerator_time = scaled(random, node.accelerator_time);
            node.cpu_time = scaled(random, node.cpu_time);
            node.transfer = scaled(random, node.transfer);
        } else {
            (node.accelerator_time, node.cpu_time) = (node.accelerator_time / 7.0, node.cpu_time / 3.0);
            node.transfer /= 9.0;
            if random.below(3) == 0 {
                node.transfer = forbidden[random.below(3) as usize];
            }
            if random.below(6) == 0 {
                node.cpu_time = forbidden[random.below(3) as usize];
            }
        }
    }
    instance
}

/// Equal but for the rounding of sums of a few numbers.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

#[test]
fn what_is_small_counts_beside_what_is_forbidden() {
    let mut random = Random(31);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for round in 0..500 {
        let plain = instance(&mut random);
        let instance = spread(&mut random, plain);
        let Instance { dag, profile, limits } = &instance;
        let expected = by_trying_everything(&instance, false);
        let options = DpOptions::default();
        let placed = dp::plan(dag, profile, limits, &options, &Search::default());
        let linear = linearise::plan(dag, profile, limits, &options, &Search::default());
        let merged = pipedream::plan(dag, profile, limits, &Search::default());
        for claims in [&placed, &linear, &merged] {
            let Some(split) = &claims.split else { continue };
            let worth = naive_max_load(&instance, split);
            assert!(same(claims.max_load.unwrap(), worth), "round {round}: {claims:?}, is worth {worth}");
            assert!(worth >= expected.unwrap() * (1.0 - 1e-12), "round {round}: {claims:?}");
            assert!(claims.lower_bound.unwrap() <= worth * (1.0 + 1e-12), "round {round}: {claims:?}");
        }
        assert_eq!(placed.max_load.is_some(), expected.is_some(), "round {round}: {placed:?}, {expected:?}");
        if limits.accelerators > 0 {
            let (moved, descents) = local_search::plan(dag, profile, limits, 2, &Search::default());
            let refined = multilevel::plan(dag, profile, limits, 2, &Search::default(), &|_, _| {});
            for found in [&moved, &refined] {
                let worth = found.split.as_ref().unwrap().score(dag, profile).max_load;
                assert!(same(found.max_load.unwrap(), worth), "round {round}: {found:?}, is worth {worth}");
            }
            assert!(descents.iter().all(|descent| descent.end <= descent.start), "round {round}: {descents:?}");
        }
        let Some(value) = expected else { continue };
        assert_eq!(placed.status, Status::Optimal);
        // Splits that are worth the same but for rounding are not told apart.
        let short = placed.max_load.unwrap() / value - 1.0;
        assert!(value == 0.0 || short.abs() < 1e-10, "round {round}: {placed:?}, the best is {value}");
        assert!(linear.lower_bound.unwrap() <= value * (1.0 + 1e-12), "round {round}: {linear:?}, is {value}");
        *seen.entry(if value < 100.0 { "small" } else { "large" }).or_default() += 1;
    }
    assert!(seen.values().len() == 2 && seen.values().all(|&count| count > 100), "{seen:?}");
}

#[test]
fn a_leaf_that_takes_no_time_leaves_its_neighbour_where_that_is_better() {
    let node = |time: f64, size_bytes: f64, transfer: f64| PlacementNode { size_bytes, transfer, ..plain(time, time) };
    // The leaf 0 and node 3 are read by node 1, and that by node 2.
    let nodes = |sent: f64| vec![node(0.0, 5.0, sent), node(3.0, 8.0, 5.0), node(3.0, 2.0, 0.0), node(2.0, 0.0, 4.0)];
    let dag = Dag::new(4, vec![(0, 1), (1, 2), (3, 1)]).unwrap();
    let plan = |sent: f64, memory_bytes: f64, most_ideals: usize| {
        let limits = PlacementLimits { accelerators: 2, cpus: 0, memory_bytes };
        let options = DpOptions { most_ideals, ..DpOptions::default() };
        let instance = Instance { dag: dag.clone(), profile: nodes(sent).into(), limits };
        let placed = dp::plan(&dag, &instance.profile, &limits, &options, &Search::default());
        (by_trying_everything(&instance, false), placed)
    };
    // With its neighbour, an accelerator needs 13.
    for (sent, memory, best) in [(1.0, 15.0, 8.0), (1.0, 13.0, 9.0), (1.0, 10.0, 9.0), (7.0, 13.0, 10.0)] {
        let (expected, placed) = plan(sent, memory, 100);
        assert_eq!((expected, placed.max_load, placed.lower_bound), (Some(best), Some(best), Some(best)));
        assert_eq!((placed.status, placed.among), (Status::Optimal, None), "{memory}");
    }
    assert_eq!(plan(1.0, 9.0, 100).1.status, Status::Infeasible);
    // Where it takes too long to look at all ways to part them, the proof says so, or there is none.
    let (_, placed) = plan(7.0, 13.0, 1);
    assert_eq!((placed.status, placed.max_load), (Status::Optimal, Some(10.0)));
    assert_eq!(placed.among, Some("with leaves of no cost next to a neighbour"));
    let (_, placed) = plan(7.0, 15.0, 1);
    assert_eq!((placed.status, placed.max_load, placed.among), (Status::Optimal, Some(8.0), None));
    let (_, placed) = plan(1.0, 13.0, 1);
    assert_eq!((placed.status, placed.max_load), (Status::Feasible, Some(9.0)));
    assert!(placed.lower_bound.unwrap() <= 8.0, "{placed:?}");
    let (_, placed) = plan(1.0, 9.0, 1);
    assert!(placed.status == Status::Feasible && placed.split.is_none(), "nothing is proven: {placed:?}");
    assert!(placed.notes[0].contains("along one order of its classes nothing fits"), "{placed:?}");
    let smallest = smallest_memory::contiguous(&dag, &nodes(1.0).into(), false, 2, &Search::default());
    assert_eq!(smallest, Some(smallest_memory::MemoryRange { at_least: 10.0, enough: 10.0 }));
}

#[test]
fn a_forbidden_edge_of_three_nodes() {
    let node = |accelerator_time: f64, transfer: f64| PlacementNode { transfer, ..plain(1.0, accelerator_time) };
    let times = [1.1, 1.242_857_142_857_142_9, 1.385_714_285_714_285_7];
    let dag = Dag::new(3, vec![(0, 1), (1, 2)]).unwrap();
    let limits = PlacementLimits { accelerators: 2, cpus: 0, memory_bytes: 1e9 };
    for forbidden in [1e8, 1e18, 1e30] {
        let profile = vec![node(times[0], forbidden), node(times[1], 0.1), node(times[2], 0.0)].into();
        let best = times[0] + times[1] + 0.1;
        let placed = dp::plan(&dag, &profile, &limits, &DpOptions::default(), &Search::default());
        assert!(same(placed.max_load.unwrap(), best), "{placed:?}");
        let split = placed.split.unwrap();
        assert!(same(split.score(&dag, &profile).max_load, best), "{split:?}");
    }
}

/// Two bundles that must not be torn, of which one is a little heavier at one node: what helps is 1e24 times smaller than
/// what is forbidden.
#[test]
fn searches_by_moves_see_what_is_small() {
    let node = |v: usize| {
        let transfer = if v % 4 < 3 { 1e24 } else { 0.0 };
        PlacementNode { transfer, ..plain(900.0, 1.0 + v as f64 / 7.0) }
    };
    let profile: PlacementProfile = (0..16).map(node).collect::<Vec<_>>().into();
    let edges = (0..16u32).filter(|v| v % 4 < 3).map(|v| (v, v + 1)).collect();
    let dag = Dag::new(16, edges).unwrap();
    let limits = PlacementLimits { accelerators: 2, cpus: 0, memory_bytes: 1e9 };
    let load = |from: usize| (from..from + 4).map(|v| profile.nodes[v].accelerator_time).sum::<f64>();
    let best = (load(0) + load(12)).max(load(4) + load(8));
    for found in [
        local_search::plan(&dag, &profile, &limits, 40, &Search::default()).0,
        multilevel::plan(&dag, &profile, &limits, 8, &Search::default(), &|_, _| {}),
    ] {
        assert!(found.max_load.unwrap() <= best * 1.5, "{found:?}, {best} is possible");
    }
}
