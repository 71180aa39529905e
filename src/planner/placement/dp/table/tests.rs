use super::*;
use crate::{
    graph::Dag,
    planner::{placement::classes::Partition, random::SplitMix},
    workload::{PlacementNode, placement::PlacementProfile},
};

/// Nodes of which every third reads from one of the last few, by a seed; among them some that no accelerator runs and transfers
/// that must not happen.
fn question(seed: u64) -> (Dag, PlacementProfile) {
    let mut random = SplitMix::new(seed);
    let n = 6 + random.below(8);
    let edges = (0..n as u32).flat_map(|v: u32| (v.saturating_sub(5)..v).map(move |u| (u, v)));
    let edges: Vec<(u32, u32)> = edges.filter(|_| random.below(3) == 0).collect();
    let node = |_| {
        let accelerator_time = random.below(40) as f64 / 4.0;
        PlacementNode {
            cpu_time: 3.0 * accelerator_time,
            accelerator_time,
            supported: random.below(12) > 0,
            backward: false,
            size_bytes: random.below(8) as f64,
            colour_class: None,
            layer: None,
            transfer: if random.below(9) == 0 { 1e30 } else { random.below(12) as f64 / 4.0 },
        }
    };
    (Dag::new(n, edges).unwrap(), (0..n).map(node).collect::<Vec<_>>().into())
}

#[test]
fn a_look_through_the_bases_finds_what_a_walk_finds() {
    let mut looks = 0;
    for seed in 0..400 {
        let (dag, profile) = question(seed);
        let costs = ClassCosts::new(&dag, &profile, &Partition::by_colour(&profile));
        let lattice = Lattice::new(&dag, 10_000, &Search::default()).unwrap();
        let (cpus, accelerators) = ((seed % 3) as u32, 1 + (seed % 4) as u32);
        let memory = if seed % 2 == 0 { 20.0 } else { f64::INFINITY };
        let (upper, enough) = match seed % 8 {
            0 => (f64::INFINITY, f64::INFINITY),
            1 => (8.0 + (seed % 60) as f64, 9.0),
            _ => (8.0 + (seed % 60) as f64, 0.0),
        };
        let costs = costs.bounded(upper, memory);
        let limits = PlacementLimits { cpus, accelerators, memory_bytes: memory };
        let fill = |upper: f64, patience: fn(u64) -> u64, space: Space| {
            let mut table = Table::new(&lattice, &costs, &limits, upper, space);
            table.patience = patience;
            let pairs = table.fill(enough, 1, &Search::default()).unwrap();
            (table, pairs)
        };
        let (walked, walked_pairs) = fill(upper, |_| u64::MAX, Space::default());
        // In the memory of a table with another bound.
        let (other, _) = fill(1.5 * upper, |_| 3, Space::default());
        let (looked, pairs) = fill(upper, |_| 0, other.into_space());
        looks += usize::from(looked.bases.ready() && pairs != walked_pairs);
        // What is good enough need not be the same.
        let value = |&value: &f64| value.is_finite().then_some(value.max(enough));
        let row = |table: &Table<'_>, set: usize| {
            let of = |entries| table.values.of(set, entries).iter().map(value).collect::<Vec<_>>();
            table.values.useful(set).map(of).collect::<Vec<_>>()
        };
        let values = |table: &Table<'_>| (0..lattice.len()).map(|set| row(table, set)).collect::<Vec<_>>();
        assert_eq!(values(&walked), values(&looked), "seed {seed}");
        if let Some(best) = looked.best().filter(|_| upper.is_finite()) {
            let worth = |stage: &Stage| costs.load(stage.kind, &stage.classes);
            let worth = looked.stages().iter().map(worth).fold(0.0, f64::max);
            assert!((worth - best).abs() < 1e-9, "seed {seed}: {worth} is told as {best}");
        }
    }
    assert!(looks > 100, "{looks} tables looked through bases");
}
