//! The search over all splits, and each of its parts, against trying everything on small random graphs.

use plantui::{
    graph::Dag,
    planner::{
        Search, Status,
        placement::{
            PlacementLimits,
            classes::Partition,
            ip::{
                Contiguity, IpSettings, Objective, ThroughputProblem,
                bounds::IpBounds,
                convex::Convexity,
                flow::{CutNetwork, CutSide},
                frontier::ClassFrontier,
                model::{IpModel, whole},
                prices::{self, PriceEffort},
                search, slack,
                state::AssignmentState,
            },
        },
    },
    workload::placement::{PlacementNode, PlacementProfile},
};
use std::{collections::BTreeMap, sync::Mutex};

/// A stream of numbers below the argument (xorshift*), by seed.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }
}

struct Case {
    dag: Dag,
    profile: PlacementProfile,
    limits: PlacementLimits,
}

/// Up to eight nodes, three accelerators and two CPUs. Every other graph is a training graph: backward nodes, most of them
/// in the class of a forward node and the others in classes of their own, on edges that never lead back.
fn case(seed: u64) -> Case {
    let mut draw = numbers(seed + 1);
    let n = 3 + draw(6);
    let training = draw(2) == 0;
    let forward = if training { n.div_ceil(2) } else { n };
    let colours = 1 + draw(4);
    let density = 2 + draw(3);
    let mut edges = vec![];
    for u in 0..n {
        for v in u + 1..n {
            if draw(density) == 0 {
                edges.push((u as u32, v as u32));
            }
        }
    }
    let dag = Dag::new(n, edges).unwrap();
    let node = |v: usize| {
        let backward = v >= forward;
        let accelerator_time = if draw(6) == 0 { 0.0 } else { draw(12) as f64 };
        let colour_class = match draw(5) {
            0 => Some(draw(colours) as i64),
            1 => None,
            _ if backward => Some(10 + (n - 1 - v) as i64),
            _ if training => Some(10 + v as i64),
            _ => None,
        };
        PlacementNode {
            cpu_time: accelerator_time * (1 + draw(4)) as f64 + draw(3) as f64,
            accelerator_time,
            supported: draw(10) > 0,
            backward,
            size_bytes: draw(6) as f64,
            colour_class,
            layer: None,
            transfer: if dag.out_degree(v) > 0 { draw(5) as f64 + draw(2) as f64 / 2.0 } else { 0.0 },
        }
    };
    let profile = PlacementProfile::from((0..n).map(node).collect::<Vec<_>>());
    let mut draw = numbers(seed + 1_000_003);
    let all: f64 = profile.nodes.iter().map(|node| node.size_bytes).sum();
    let memory_bytes = if draw(3) == 0 { all } else { (all * (2 + draw(6)) as f64 / 8.0).floor() };
    let limits = PlacementLimits { accelerators: draw(4) as u32, cpus: draw(3) as u32, memory_bytes };
    Case { dag, profile, limits }
}

impl Case {
    fn question(&self, contiguity: Contiguity, objective: Objective) -> ThroughputProblem<'_> {
        ThroughputProblem { dag: &self.dag, profile: &self.profile, limits: self.limits, contiguity, objective }
    }

    fn devices(&self) -> usize {
        (self.limits.accelerators + self.limits.cpus) as usize
    }

    /// Forward and backward load of a device that holds the nodes with `has`, none where it cannot hold them.
    fn load(&self, accelerator: bool, has: &[bool]) -> Option<[f64; 2]> {
        let nodes = &self.profile.nodes;
        let mut load = [0.0; 2];
        let mut size = 0.0;
        for (v, node) in nodes.iter().enumerate() {
            let part = usize::from(node.backward);
            if has[v] {
                size += node.size_bytes;
                load[part] += if accelerator { node.accelerator_time } else { node.cpu_time };
                if accelerator && !node.supported {
                    return None;
                }
            }
            let read_by = |inside: bool| self.dag.successors(v).any(|w| has[w] == inside);
            if accelerator && ((has[v] && read_by(false)) || (!has[v] && read_by(true))) {
                load[part] += node.transfer;
            }
        }
        (!accelerator || size <= self.limits.memory_bytes).then_some(load)
    }

    /// Whether no path of forward nodes leaves the set and comes back, by walking every path.
    fn convex(&self, has: &[bool]) -> bool {
        fn comes_back(case: &Case, has: &[bool], v: usize) -> bool {
            let mut next = case.dag.successors(v).filter(|&w| !case.profile.nodes[w].backward);
            next.any(|w| has[w] || comes_back(case, has, w))
        }
        let forward = |v: &usize| !self.profile.nodes[*v].backward;
        let mut leaving = (0..has.len()).filter(forward).filter(|&v| has[v]).flat_map(|v| self.dag.successors(v));
        !leaving.any(|w| forward(&w) && !has[w] && comes_back(self, has, w))
    }

    /// The value of an assignment of nodes to devices, none where it is not allowed.
    fn value(&self, device: &[usize], contiguity: Contiguity, objective: Objective) -> Option<f64> {
        let mut most = [0.0f64; 2];
        let mut busiest = 0.0f64;
        for d in 0..self.devices() {
            let has: Vec<bool> = device.iter().map(|&of| of == d).collect();
            let load = self.load(d < self.limits.accelerators as usize, &has)?;
            if contiguity == Contiguity::Contiguous && !self.convex(&has) {
                return None;
            }
            most = [most[0].max(load[0]), most[1].max(load[1])];
            busiest = busiest.max(load[0] + load[1]);
        }
        Some(if objective == Objective::MaxLoad { busiest } else { most[0] + most[1] })
    }

    /// Every assignment that keeps colour classes whole.
    fn assignments(&self) -> impl Iterator<Item = Vec<usize>> {
        let mut first: BTreeMap<i64, usize> = BTreeMap::new();
        let mut classes = 0;
        let class: Vec<usize> = (self.profile.nodes.iter())
            .map(|node| {
                let fresh = classes;
                let class = node.colour_class.map_or(fresh, |colour| *first.entry(colour).or_insert(fresh));
                classes += usize::from(class == fresh);
                class
            })
            .collect();
        let devices = self.devices();
        (0..devices.pow(classes as u32)).map(move |code| {
            let digits: Vec<usize> = (0..classes).map(|c| code / devices.pow(c as u32) % devices).collect();
            class.iter().map(|&c| digits[c]).collect()
        })
    }

    fn optimum(&self, contiguity: Contiguity, objective: Objective) -> Option<f64> {
        let values = self.assignments().filter_map(|device| self.value(&device, contiguity, objective));
        values.min_by(f64::total_cmp)
    }
}

fn quick() -> IpSettings {
    IpSettings { rounds: 2, walks: 2, steps: 2000, branches: 100_000 }
}

/// Searches and holds every claim of the result and of what was published on the way against the optimum.
fn check(seed: u64, contiguity: Contiguity, objective: Objective, seen: &mut BTreeMap<&str, usize>) {
    let case = case(seed);
    let expected = case.optimum(contiguity, objective);
    let published = Mutex::new(vec![]);
    let handle = Search::new(None, seed);
    let best = search(&case.question(contiguity, objective), &quick(), &handle, &|value, split| {
        published.lock().unwrap().push((value, split.clone()));
    });
    let place = format!("seed {seed}, {contiguity:?}, {objective:?}: {best:?}, optimum {expected:?}");
    let Some(optimum) = expected else {
        assert_eq!((best.status, &best.split), (Status::Infeasible, &None), "{place}");
        *seen.entry("infeasible").or_default() += 1;
        return;
    };
    assert_eq!(best.status, Status::Optimal, "{place}");
    assert!(best.lower_bound <= optimum + 1e-9, "{place}");
    assert!(handle.progress().bound.is_some_and(|bound| bound <= optimum + 1e-9), "{place}");
    let (value, split) = best.split.clone().unwrap();
    assert!((value - optimum).abs() <= 1e-9, "{place}");
    let published = published.into_inner().unwrap();
    assert_eq!(published.last().map(|last| last.0), Some(value), "{place}");
    for (value, split) in published.iter().chain([&(value, split)]) {
        let held = split.device_of(case.dag.len());
        let (mut accelerator, mut cpu) = (0, case.limits.accelerators as usize);
        let name: Vec<usize> = (split.devices.iter())
            .map(|device| {
                let accelerates = device.kind == plantui::planner::placement::DeviceKind::Accelerator;
                let next = if accelerates { &mut accelerator } else { &mut cpu };
                *next += 1;
                *next - 1
            })
            .collect();
        assert!(accelerator <= case.limits.accelerators as usize && cpu <= case.devices(), "{place}");
        let device: Vec<usize> = held.iter().map(|d| name[d.unwrap()]).collect();
        let naive = case.value(&device, contiguity, objective).expect("an admissible split");
        assert!((naive - value).abs() <= 1e-9, "{place}: {split:?} is worth {naive}");
    }
    let limits = PlacementLimits { memory_bytes: f64::INFINITY, ..case.limits };
    let roomy = Case { limits, ..case }.optimum(contiguity, objective).unwrap();
    *seen.entry(if roomy < optimum { "memory binds" } else { "memory is ample" }).or_default() += 1;
}

#[test]
fn every_small_graph_is_solved_to_optimality() {
    let mut seen = BTreeMap::new();
    for seed in 0..600 {
        check(seed, Contiguity::Free, Objective::MaxLoad, &mut seen);
    }
    assert!(["infeasible", "memory binds", "memory is ample"].iter().all(|kind| seen[kind] > 30), "{seen:?}");
}

#[test]
fn every_small_graph_is_solved_among_contiguous_splits() {
    let mut seen = BTreeMap::new();
    for seed in 0..600 {
        check(seed, Contiguity::Contiguous, Objective::MaxLoad, &mut seen);
    }
    assert!(["infeasible", "memory binds", "memory is ample"].iter().all(|kind| seen[kind] > 30), "{seen:?}");
}

#[test]
fn every_small_graph_is_solved_for_separate_maxima() {
    let mut seen = BTreeMap::new();
    for seed in 0..200 {
        check(seed, Contiguity::Free, Objective::SeparateMaxima, &mut seen);
        check(seed, Contiguity::Contiguous, Objective::SeparateMaxima, &mut seen);
    }
    assert!(["infeasible", "memory binds", "memory is ample"].iter().all(|kind| seen[kind] > 20), "{seen:?}");
}

fn model(case: &Case) -> (Partition, IpModel) {
    let partition = Partition::by_colour(&case.profile);
    let model = IpModel::new(&case.dag, &case.profile, &partition, &case.limits, Objective::MaxLoad);
    (partition, model)
}

#[test]
fn what_the_slack_holds_together_is_together_in_every_assignment_that_keeps_the_threshold() {
    let (mut merged, mut refuted) = (0, 0);
    for seed in 0..500 {
        let case = case(seed);
        let (partition, model) = model(&case);
        let Some(optimum) = case.optimum(Contiguity::Free, Objective::MaxLoad) else { continue };
        for threshold in [optimum, optimum * 1.05, optimum * 0.999] {
            let contracted = slack::contract(&model, threshold);
            let keeps = |device: &Vec<usize>| {
                case.value(device, Contiguity::Free, Objective::MaxLoad).is_some_and(|value| value <= threshold)
            };
            let Some((reduced, group)) = contracted else {
                assert!(!case.assignments().any(|device| keeps(&device)), "seed {seed}");
                refuted += 1;
                continue;
            };
            merged += usize::from(reduced.len() < model.len());
            for device in case.assignments().filter(keeps) {
                let mut home = vec![None; reduced.len()];
                for (v, d) in device.iter().enumerate() {
                    let g = group[partition.class(v)] as usize;
                    assert!(*home[g].get_or_insert(d) == d, "seed {seed}: {group:?} {device:?}");
                }
            }
        }
    }
    assert!(merged > 80 && refuted > 100, "{merged} {refuted}");
}

#[test]
fn bounds_without_an_incumbent_never_exceed_the_optimum_and_often_meet_it() {
    let mut met = 0;
    for seed in 0..500 {
        let case = case(seed);
        let (_, model) = model(&case);
        let mut bounds = IpBounds::new(&model, &Search::default());
        let Some(optimum) = case.optimum(Contiguity::Free, Objective::MaxLoad) else { continue };
        assert!(bounds.proven <= optimum, "seed {seed}: {bounds:?} {optimum}");
        met += usize::from(bounds.proven >= optimum * (1.0 - 1e-8));
        (0..12).for_each(|_| bounds.tighten(optimum, &Search::default()));
        assert!(bounds.proven <= optimum, "seed {seed}: {bounds:?} {optimum}");
    }
    assert!(met > 100, "{met}");
}

#[test]
fn the_cheapest_set_with_a_class_is_a_minimum_cut() {
    for seed in 0..400 {
        let case = case(seed);
        if case.limits.accelerators == 0 {
            continue;
        }
        let (partition, model) = model(&case);
        let mut network = CutNetwork::new(&model);
        let members = partition.members();
        for class in 0..model.len() {
            let barred = (class + 1) % model.len();
            let side = |c: usize| match c {
                _ if c == class => CutSide::In,
                _ if c == barred => CutSide::Out,
                _ => CutSide::Free,
            };
            let least = network.least_load(side, f64::INFINITY);
            let sets = (0..1usize << model.len())
                .filter(|set| set >> class & 1 == 1 && (set >> barred & 1 == 0 || barred == class));
            let naive = sets
                .map(|set| {
                    let mut has = vec![false; case.dag.len()];
                    for (class, nodes) in members.iter().enumerate() {
                        nodes.iter().for_each(|&v| has[v] = set >> class & 1 == 1);
                    }
                    let roomy = PlacementLimits { memory_bytes: f64::INFINITY, ..case.limits };
                    let nodes = case.profile.nodes.iter().map(|node| PlacementNode { supported: true, ..node.clone() });
                    let able = Case { dag: case.dag.clone(), profile: nodes.collect::<Vec<_>>().into(), limits: roomy };
                    whole(able.load(true, &has).unwrap())
                })
                .fold(f64::INFINITY, f64::min);
            assert!((least - naive).abs() <= 1e-9, "seed {seed}, class {class}: {least}, is {naive}");
        }
    }
}

/// What each class is worth, in sixteenths, so that sums are exact.
fn drawn_prices(seed: u64, classes: usize) -> Vec<f32> {
    let mut draw = numbers(seed + 31);
    (0..classes).map(|_| draw(16) as f32 / 16.0).collect()
}

#[test]
fn the_best_set_within_a_threshold_is_found_along_the_frontier() {
    for seed in 0..800 {
        let case = case(seed);
        let roomy = PlacementLimits { accelerators: 1, memory_bytes: f64::INFINITY, ..case.limits };
        let case = Case { limits: roomy, ..case };
        let (partition, model) = model(&case);
        let members = partition.members();
        let threshold = 4.0 + (seed % 24) as f64;
        let frontier = ClassFrontier::new(&model, threshold, 0.0, 100_000).unwrap();
        let price = drawn_prices(seed, model.len());
        // Every load of these graphs is a multiple of a half; a cell is a little less, for loads are rounded down.
        let (cells, cell) = (2 * threshold as usize, 0.5 * (1.0 - 1e-6));
        let worths = frontier.worths(&price, cell, cells, &Search::default()).unwrap();
        let mut naive = vec![0.0f32; cells + 1];
        for set in 0..1usize << model.len() {
            let held = |class: usize| set >> class & 1 == 1;
            let mut has = vec![false; case.dag.len()];
            for (class, nodes) in members.iter().enumerate() {
                nodes.iter().for_each(|&v| has[v] = held(class));
            }
            let Some(load) = case.load(true, &has) else { continue };
            let worth: f32 = (0..model.len()).filter(|&class| held(class)).map(|class| price[class]).sum();
            for most in naive.iter_mut().skip((2.0 * whole(load)) as usize) {
                *most = most.max(worth);
            }
        }
        assert_eq!(worths, naive, "seed {seed}");
        let mut rows = vec![];
        let mut chosen = vec![];
        let worth = frontier.best_set(&price, cell, cells, &mut rows, |class| chosen.push(class as usize));
        assert_eq!(worth, naive[cells], "seed {seed}");
        assert_eq!(chosen.iter().map(|&class| price[class]).sum::<f32>(), worth, "seed {seed}: {chosen:?}");
    }
}

#[test]
fn prices_refute_no_threshold_that_can_be_kept() {
    let effort = PriceEffort { steps: 60, patience: 5, combinations: 100_000, coarse: 200_000, fine: 1_000_000 };
    let (mut refuted, mut resisted) = (0, 0);
    for seed in 0..500 {
        let case = case(seed);
        let (_, model) = model(&case);
        let Some(optimum) = case.optimum(Contiguity::Free, Objective::MaxLoad).filter(|&optimum| optimum > 0.0) else {
            continue;
        };
        let search = Search::default();
        let price: Vec<f64> = model.accelerator_time.iter().map(|&time| whole(time) + 0.5).collect();
        for factor in [0.6, 0.9, 0.97, 0.995, 1.0, 1.1] {
            let threshold = factor * optimum;
            let mut improved = price.clone();
            let proven = prices::refute(&model, threshold, &mut improved, &effort, &search).unwrap();
            assert!(proven < optimum, "seed {seed}: {proven}, optimum {optimum}");
            let reached = proven >= threshold * (1.0 - 1e-9);
            refuted += usize::from(reached);
            resisted += usize::from(!reached);
        }
    }
    println!("{refuted} refuted, {resisted} resisted");
    assert!(refuted > 300 && resisted > 300, "{refuted} {resisted}");
}

#[test]
fn loads_kept_up_to_date_are_loads_added_up() {
    for seed in 0..200 {
        let case = case(seed);
        let partition = Partition::by_colour(&case.profile);
        let model = IpModel::new(&case.dag, &case.profile, &partition, &case.limits, Objective::SeparateMaxima);
        if model.devices() == 0 {
            continue;
        }
        let mut draw = numbers(seed);
        let mut state = AssignmentState::new(&model, vec![0; model.len()]);
        for _ in 0..50 {
            let (class, to) = (draw(model.len()), draw(model.devices()));
            if state.device(class) != to {
                state.shift(class, to);
            }
            let fresh = AssignmentState::new(&model, state.devices().to_vec());
            for (kept, added) in state.loads().iter().zip(fresh.loads()) {
                assert!((kept[0] - added[0]).abs() + (kept[1] - added[1]).abs() < 1e-9, "seed {seed}");
            }
            assert!(state.sizes() == fresh.sizes());
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing_and_a_deadline_is_kept() {
    let large = |case: &Case| case.dag.len() == 8 && case.limits.accelerators == 3 && case.limits.cpus > 0;
    let case = (0..).map(case).find(large).unwrap();
    let settings = IpSettings { branches: 0, rounds: 3, ..quick() };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let question = case.question(Contiguity::Free, Objective::MaxLoad);
        pool.install(|| search(&question, &settings, &Search::new(None, 7), &|_, _| {}))
    };
    assert_eq!(run(1), run(4));
    let stopped = Search::default();
    stopped.cancel();
    let best = search(&case.question(Contiguity::Free, Objective::MaxLoad), &settings, &stopped, &|_, _| {});
    assert!(matches!(best.status, Status::Cancelled | Status::Optimal), "{best:?}");
}

#[test]
fn convexity_is_of_the_forward_pass_alone() {
    for seed in 0..300 {
        let case = case(seed);
        let partition = Partition::by_colour(&case.profile);
        let convexity = Convexity::new(&case.dag, &case.profile, &partition);
        let mut sets = convexity.sets();
        let members = partition.members();
        for set in 0..1usize << partition.len() {
            let mut has = vec![false; case.dag.len()];
            for (class, nodes) in members.iter().enumerate() {
                nodes.iter().for_each(|&v| has[v] = set >> class & 1 == 1);
            }
            let held = (0..partition.len()).filter(|class| set >> class & 1 == 1);
            assert_eq!(convexity.is_convex(held, &mut sets), case.convex(&has), "seed {seed}, set {set:b}");
        }
    }
}

/// The case with costs of every magnitude from 1 to 1e30, or with tensors that must never be sent.
fn spread(seed: u64) -> Case {
    let mut case = case(seed);
    let mut draw = numbers(seed + 77);
    let everything = draw(3) == 0;
    let never = [1e8, 1e18, 1e30];
    for node in &mut case.profile.nodes {
        if everything {
            for cost in [&mut node.accelerator_time, &mut node.cpu_time, &mut node.transfer] {
                *cost = *cost / 7.0 * 10f64.powi(10 * draw(4) as i32);
            }
        } else {
            (node.accelerator_time, node.cpu_time) = (node.accelerator_time / 7.0, node.cpu_time / 3.0);
            node.transfer = if draw(3) == 0 { never[draw(3)] } else { node.transfer / 9.0 };
            node.cpu_time = if draw(6) == 0 { never[draw(3)] } else { node.cpu_time };
        }
    }
    case
}

#[test]
fn what_is_small_counts_beside_what_is_forbidden() {
    let mut solved = 0;
    for seed in 0..300 {
        let case = spread(seed);
        for (contiguity, objective) in [
            (Contiguity::Free, Objective::MaxLoad),
            (Contiguity::Contiguous, Objective::MaxLoad),
            (Contiguity::Free, Objective::SeparateMaxima),
        ] {
            let best = search(&case.question(contiguity, objective), &quick(), &Search::default(), &|_, _| {});
            let optimum = case.optimum(contiguity, objective);
            let place = format!("seed {seed}, {contiguity:?}, {objective:?}: {best:?}, optimum {optimum:?}");
            let Some(optimum) = optimum else {
                assert_eq!(best.status, Status::Infeasible, "{place}");
                continue;
            };
            assert_eq!(best.status, Status::Optimal, "{place}");
            assert!(best.lower_bound <= optimum * (1.0 + 1e-9), "{place}");
            let (value, split) = best.split.clone().unwrap();
            assert!((value - optimum).abs() <= 1e-9 * optimum, "{place}");
            assert_eq!(split.score(&case.dag, &case.profile).loads.len(), split.devices.len());
            solved += usize::from(optimum > 0.0);
        }
        let (_, model) = model(&case);
        let bounds = IpBounds::new(&model, &Search::default());
        if let Some(optimum) = case.optimum(Contiguity::Free, Objective::MaxLoad) {
            assert!(bounds.proven <= optimum, "seed {seed}: {bounds:?} {optimum}");
        }
    }
    assert!(solved > 300, "{solved}");
}
