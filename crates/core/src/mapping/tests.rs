use std::time::Duration;

use super::*;
use crate::{
    cluster::topology::{Duplex, Link, PairMatrix, Topology, Vertex, VertexKind, named},
    random::SplitMix,
    search::Search,
};

const EQUAL: f64 = 1e9;

fn searched(instance: &MappingInstance<'_>, parallel: Parallel) -> Mapping {
    map(instance, &MappingSettings { parallel, ..MappingSettings::default() }, &Search::default()).unwrap()
}

/// Least cost over all mappings.
fn brute(instance: &MappingInstance<'_>) -> f64 {
    instance.cost(&instance.exhaustive(&Search::default()).unwrap()).seconds
}

/// Random topology of `devices` devices with links of few widths; some pairs have no direct link.
pub(super) fn wired(random: &mut SplitMix, devices: usize) -> Topology {
    let vertex = |name: String, kind| Vertex { name, kind, machine: None };
    let mut vertices: Vec<Vertex> = (0..devices).map(|d| vertex(format!("d{d}"), VertexKind::Device)).collect();
    vertices.push(vertex("host".into(), VertexKind::Host));
    let mut links = vec![];
    for a in 0..devices as u32 {
        let link =
            |to, bandwidth| Link { from: a, to, bandwidth, latency_s: 0.0, duplex: Duplex::Full, what: String::new() };
        links.push(link(devices as u32, 1e9));
        for b in 0..a {
            let width = random.next_u64() % 4;
            if width > 0 {
                links.push(link(b, width as f64 * 2e9));
            }
        }
    }
    Topology::new("random", vertices, links).unwrap()
}

pub(super) fn demands(random: &mut SplitMix, workers: usize) -> Demands {
    let mut demands =
        Demands::chain(&(1..workers).map(|_| (1 + random.next_u64() % 5) as f64 * 1e8).collect::<Vec<_>>());
    if workers > 3 && random.next_u64().is_multiple_of(2) {
        demands.groups.push(ReductionGroup { workers: vec![0, 1, workers - 1], bytes: 3e8 });
    }
    if random.next_u64().is_multiple_of(2) {
        demands.groups.push(ReductionGroup { workers: vec![0, workers - 1], bytes: 2e8 });
    }
    demands
}

#[test]
fn a_chain_of_eight_on_a_dgx_1_lies_on_the_cycle_of_double_links() {
    let topology = named("dgx-1").unwrap();
    let instance = MappingInstance::new(&topology, &Demands::chain(&[EQUAL; 7]), CommunicationKinds::default());
    let mapping = searched(&instance, Parallel::default());
    assert_eq!(mapping.cost.seconds, EQUAL / 50e9);
    assert!(mapping.proved && !mapping.budget && mapping.lower_bound_s == mapping.cost.seconds);
    assert_eq!(mapping.bottleneck(&instance).unwrap().1, 50e9);
    let cycle = [0, 3, 2, 1, 5, 6, 7, 4];
    for pair in mapping.devices.windows(2) {
        let at = cycle.iter().position(|&device| device == pair[0]).unwrap();
        assert!([cycle[(at + 1) % 8], cycle[(at + 7) % 8]].contains(&pair[1]), "{:?}", mapping.devices);
    }
    // One device after the other goes from 3 to 4, which no NVLink joins.
    let identity = map(
        &instance,
        &MappingSettings { method: MappingMethod::Identity, ..MappingSettings::default() },
        &Search::default(),
    );
    let identity = identity.unwrap();
    assert_eq!(identity.bottleneck(&instance), Some(("gpu3 -> gpu4".into(), 6e9)));
    assert!(!identity.proved && identity.lower_bound_s <= mapping.cost.seconds);
    // Facts of the specification: 16 of all orders use double links only, 816 NVLink only.
    let (mut double, mut nvlink) = (0, 0);
    every_order(8, &mut |order| {
        let least = order.windows(2).map(|p| instance.matrix.at(p[0], p[1])).fold(f64::INFINITY, f64::min);
        double += usize::from(least >= 50e9);
        nvlink += usize::from(least >= 25e9);
    });
    assert_eq!((double, nvlink), (16, 816));
}

fn every_order(count: usize, seen: &mut dyn FnMut(&[usize])) {
    fn go(order: &mut Vec<usize>, from: usize, seen: &mut dyn FnMut(&[usize])) {
        if from == order.len() {
            return seen(order);
        }
        for at in from..order.len() {
            order.swap(from, at);
            go(order, from + 1, seen);
            order.swap(from, at);
        }
    }
    go(&mut (0..count).collect(), 0, seen);
}

#[test]
fn the_search_finds_what_all_mappings_find() {
    let mut random = SplitMix::new(3);
    for round in 0..60 {
        let devices = 4 + round % 3;
        let topology = wired(&mut random, devices);
        let workers = devices - usize::from(round % 4 == 0);
        let demands = demands(&mut random, workers);
        for (transfers, all_reduces) in [(true, true), (true, false), (false, true)] {
            for shared_links in [false, true] {
                let consider = CommunicationKinds { transfers, all_reduces, shared_links };
                let instance = MappingInstance::new(&topology, &demands, consider);
                let (mapping, least) = (searched(&instance, Parallel::default()), brute(&instance));
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-8 * b;
                assert!(close(mapping.cost.seconds, least), "{round} {consider:?}: {} {least}", mapping.cost.seconds);
                assert!(mapping.proved || least == 0.0, "{round} {consider:?} {mapping:?}");
                assert!(instance.lower_bound(&Search::default()) <= least * (1.0 + 1e-12));
                let mut sorted = mapping.devices.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), workers, "every worker has a device of its own");
            }
        }
    }
}

#[test]
fn all_placements_of_eight_on_a_dgx_1() {
    let topology = named("dgx-1").unwrap();
    let mut demands = Demands::chain(&[3e8, 1e8, 4e8, 1e8, 5e8]);
    demands.workers.extend([6, 7].map(|stage| ModelShard { stage, replica: 0, shard: 0 }));
    demands.groups =
        vec![ReductionGroup { workers: vec![5, 6, 7], bytes: 6e8 }, ReductionGroup { workers: vec![0, 1], bytes: 2e8 }];
    for (transfers, all_reduces) in [(true, true), (true, false), (false, true)] {
        let instance = MappingInstance::new(
            &topology,
            &demands,
            CommunicationKinds { transfers, all_reduces, shared_links: false },
        );
        let (mapping, least) = (searched(&instance, Parallel::default()), brute(&instance));
        assert_eq!(mapping.cost.seconds, least);
        assert!(mapping.proved);
    }
}

#[test]
fn threads_and_their_numbers_change_nothing() {
    let mut random = SplitMix::new(11);
    let topologies = [named("dgx-1").unwrap(), named("2xv100-4+eth-25g").unwrap(), wired(&mut random, 7)];
    for topology in &topologies {
        let instance = MappingInstance::new(topology, &demands(&mut random, 6), CommunicationKinds::default());
        let plain = searched(&instance, Parallel { same_target: 1, degree: 1 });
        assert!(!plain.budget);
        for (same_target, degree) in [(1, 4), (2, 2), (2, 4), (3, 6)] {
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let other = pool.install(|| searched(&instance, Parallel { same_target, degree }));
                assert_eq!(
                    (&other.devices, other.cost),
                    (&plain.devices, plain.cost),
                    "{same_target} {degree} {threads}"
                );
            }
        }
    }
    let error = Parallel { same_target: 3, degree: 4 }.checked().unwrap_err().to_string();
    assert!(error.contains('4') && error.contains('3'), "{error}");
}

#[test]
fn where_nothing_is_to_be_gained_that_is_said() {
    let topology = named("dgx-a100").unwrap();
    let chain = Demands::chain(&[EQUAL; 7]);
    let mapping =
        searched(&MappingInstance::new(&topology, &chain, CommunicationKinds::default()), Parallel::default());
    assert!(mapping.ties && mapping.proved && mapping.notes[0].contains("all mappings are equally"), "{mapping:?}");
    let neither = CommunicationKinds { transfers: false, all_reduces: false, shared_links: false };
    let mapping = searched(&MappingInstance::new(&topology, &chain, neither), Parallel::default());
    assert_eq!(mapping.devices, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(mapping.notes[0].contains("the identity is used"), "{mapping:?}");
}

#[test]
fn what_cannot_be_mapped_is_told() {
    let vertex = |name: &str| Vertex { name: name.into(), kind: VertexKind::Device, machine: None };
    let link = |from, to| Link { from, to, bandwidth: 1e9, latency_s: 0.0, duplex: Duplex::Full, what: String::new() };
    let apart = Topology::new("two islands", ["a", "b", "c", "d"].map(vertex).to_vec(), vec![link(0, 1), link(2, 3)]);
    let apart = apart.unwrap();
    let instance = MappingInstance::new(&apart, &Demands::chain(&[EQUAL]), CommunicationKinds::default());
    let error = map(&instance, &MappingSettings::default(), &Search::default()).unwrap_err().to_string();
    assert!(error.contains("a, b cannot reach c, d"), "{error}");
    let small = named("a6000-2").unwrap();
    let instance = MappingInstance::new(&small, &Demands::chain(&[EQUAL; 2]), CommunicationKinds::default());
    let error = map(&instance, &MappingSettings::default(), &Search::default()).unwrap_err().to_string();
    assert!(error.contains("3 parts") && error.contains("2 devices"), "{error}");
    let large = named("dgx-2").unwrap();
    let instance = MappingInstance::new(&large, &Demands::chain(&[EQUAL; 2]), CommunicationKinds::default());
    let every = MappingSettings { method: MappingMethod::Exhaustive, ..MappingSettings::default() };
    let error = map(&instance, &every, &Search::default()).unwrap_err().to_string();
    assert!(error.contains("up to 9") && error.contains("16"), "{error}");
}

#[test]
fn the_cheapest_cut_crosses_between_machines() {
    let topology = named("2xv100-4+eth-25g").unwrap();
    // Four and four: the only cut in the middle is the dearest but one; with a device to spare others are possible.
    let instance = MappingInstance::new(
        &topology,
        &Demands::chain(&[4e8, 5e8, 6e8, 3e8, 5e8, 4e8, 1e8]),
        CommunicationKinds::default(),
    );
    let mapping = searched(&instance, Parallel::default());
    assert_eq!(mapping.cost.seconds, 3e8 / 3.125e9);
    assert!(mapping.proved);
    let crossings = mapping.devices.windows(2).filter(|p| (p[0] < 4) != (p[1] < 4)).count();
    assert_eq!(crossings, 1);
}

#[test]
fn every_method_is_valid_and_the_search_is_no_worse() {
    let mut random = SplitMix::new(5);
    for name in ["dgx-1", "2xdgx-1+eth-25g", "tpu-v5e-4x4"] {
        let topology = named(name).unwrap();
        let instance = MappingInstance::new(&topology, &demands(&mut random, 8), CommunicationKinds::default());
        let search = searched(&instance, Parallel::default());
        for method in MappingMethod::ALL {
            let Ok(mapping) =
                map(&instance, &MappingSettings { method, ..MappingSettings::default() }, &Search::default())
            else {
                assert!(method == MappingMethod::Exhaustive && topology.devices() > EXHAUSTIVE);
                continue;
            };
            assert!(
                !mapping.cost.is_less(&search.cost) || search.budget,
                "{name} {method:?}: {:?} {:?}",
                mapping.cost,
                search.cost
            );
            assert!(mapping.lower_bound_s <= mapping.cost.seconds);
            let mut sorted = mapping.devices;
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 8);
            assert_eq!(MappingMethod::find(method.id()), Some(method));
        }
    }
}

#[test]
fn names_of_devices_and_units_change_nothing() {
    let mut random = SplitMix::new(17);
    let topology = wired(&mut random, 6);
    let demands = demands(&mut random, 6);
    let cost = |topology: &Topology, demands: &Demands| {
        searched(&MappingInstance::new(topology, demands, CommunicationKinds::default()), Parallel::default())
            .cost
            .seconds
    };
    let plain = cost(&topology, &demands);
    // The devices the other way round.
    let turned: Vec<Link> = topology
        .links()
        .iter()
        .map(|link| {
            let other = |v: u32| if v < 6 { 5 - v } else { v };
            Link { from: other(link.from), to: other(link.to), ..link.clone() }
        })
        .collect();
    let turned = Topology::new("turned", topology.vertices().to_vec(), turned).unwrap();
    assert_eq!(cost(&turned, &demands), plain);
    let mut twice = demands.clone();
    twice.flows.iter_mut().for_each(|flow| flow.bytes *= 2.0);
    twice.groups.iter_mut().for_each(|group| group.bytes *= 2.0);
    assert_eq!(cost(&topology, &twice), 2.0 * plain);
    // A narrower link helps nobody.
    let narrowed = topology.links().iter().map(|link| Link { bandwidth: link.bandwidth.min(4e9), ..link.clone() });
    let narrowed = Topology::new("narrowed", topology.vertices().to_vec(), narrowed.collect()).unwrap();
    assert!(cost(&narrowed, &demands) >= plain);
}

/// Random bandwidths that differ by about as much as rounding, some by more.
fn nearly_alike(random: &mut SplitMix, devices: usize) -> PairMatrix {
    let mut width = || {
        let near = 25e9 * (1.0 - (random.next_u64() % 7) as f64 * 0.45e-12);
        if random.next_u64().is_multiple_of(3) {
            near * (1.0 + (random.next_u64() % 1000) as f64 / 1000.0)
        } else {
            near
        }
    };
    let rows: Vec<Vec<f64>> = (0..devices).map(|_| (0..devices).map(|_| width()).collect()).collect();
    PairMatrix::new(&rows).unwrap()
}

#[test]
fn exchanges_end_where_bandwidths_differ_by_no_more_than_rounding() {
    let topology = named("dgx-1").unwrap();
    let mut random = SplitMix::new(29);
    for round in 0..60 {
        let devices = 3 + round % 3;
        let demands = Demands::chain(&vec![1e6; 1 + round % (devices - 1)]);
        let matrix = nearly_alike(&mut random, devices);
        let instance = MappingInstance::among(&topology, matrix, &demands, CommunicationKinds::default());
        // Far more time than it takes: what goes round in circles is stopped by it.
        let search = Search::new(Some(Duration::from_secs(20)), 0);
        every_order(devices, &mut |order| {
            let start = &order[..demands.workers.len()];
            let end = instance.polished(start, &search);
            assert!(!search.deadline_passed(), "{round}: from {start:?}");
            assert!(!instance.cost(start).is_less(&instance.cost(&end)));
        });
        let mapping = map(&instance, &MappingSettings::default(), &search).unwrap();
        assert!(!search.deadline_passed() && mapping.lower_bound_s <= mapping.cost.seconds, "{round}");
    }
}

#[test]
fn what_costs_less_is_an_order() {
    let mut random = SplitMix::new(31);
    let mut near = || 1.0 + (random.next_u64() % 9) as f64 * 0.3e-12;
    let costs: Vec<MappingCost> = (0..40)
        .map(|_| MappingCost { seconds: near(), squares: near(), bottleneck: MappingBottleneck::None })
        .collect();
    for a in &costs {
        for b in &costs {
            assert!(!(a.is_less(b) && b.is_less(a)));
            for c in &costs {
                assert!(!(a.is_less(b) && b.is_less(c)) || a.is_less(c), "{a:?} {b:?} {c:?}");
                // Of three, two that neither is less than the other stand alike to the third.
                assert!(a.is_less(b) || b.is_less(a) || a.is_less(c) == b.is_less(c), "{a:?} {b:?} {c:?}");
            }
        }
    }
}
