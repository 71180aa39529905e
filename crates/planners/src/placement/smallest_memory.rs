//! Least memory per accelerator with which a split would exist, for problems without one.
//!
//! Without a CPU, everything goes onto accelerators, and only sizes matter. For contiguous splits the answer is exact.
//! Along the closed sets, the best state is the fewest accelerators, then the least filled last one. So one pass over
//! the steps of the lattice decides for one memory, and bisection over whole bytes finds the least. Other splits are
//! bin packing, with two numbers: a lower bound from the largest classes, and a memory for which first-fit decreasing
//! succeeds.

use super::{
    classes::Partition,
    dp::{MOST_IDEALS, OrderedClasses},
    lattice::Lattice,
};
use plantui_core::{
    family::placement::accelerator_memory::{self, AcceleratorMemory},
    graph::Dag,
    search::Search,
    units,
    workload::placement::PlacementProfile,
};

/// Memory per accelerator, bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryRange {
    /// Lower bound: no split exists with less.
    pub at_least: f64,
    /// Sufficient: a split exists with this.
    pub enough: f64,
}

impl MemoryRange {
    /// Least memory, if both numbers are the same whole number of bytes.
    pub fn exact(&self) -> Option<f64> {
        (self.enough <= self.at_least.ceil()).then_some(self.enough)
    }

    /// Sentence for the report, appended to another one; `limit` is the insufficient limit.
    pub(super) fn sentence(&self, profile: &PlacementProfile, limit: f64) -> String {
        let (least, enough) = (units::bytes_like(self.at_least, limit), units::bytes_enough(self.enough, limit));
        match self.exact() {
            Some(bytes) => least_sentence(bytes, profile, limit),
            None if self.enough.is_infinite() => format!(" At least {least} each are needed."),
            None => format!(" {enough} each would be enough, and at least {least} are needed."),
        }
    }
}

/// Sentence for an exact least memory, appended to another one.
pub(super) fn least_sentence(bytes: f64, profile: &PlacementProfile, limit: f64) -> String {
    let (enough, bytes) = (units::bytes_enough(bytes, limit), units::exact_number(bytes));
    // If sizes are fractions, less by a fraction of a byte may suffice.
    let less = if accelerator_memory::has_whole_sizes(profile) { "no less" } else { "one byte less would not" };
    let bytes = if enough.ends_with(" B") { String::new() } else { format!(" ({bytes} B)") };
    format!(" {enough} each would be enough{bytes}, and {less}.")
}

/// Sizes of classes as counted by `room`.
fn sizes(profile: &PlacementProfile, partition: &Partition, room: &AcceleratorMemory) -> Vec<f64> {
    let mut sizes = vec![0.0; partition.len()];
    for (node, cost) in profile.nodes.iter().enumerate() {
        sizes[partition.class(node)] += room.counted(cost.size_bytes);
    }
    sizes
}

/// Memory for contiguous splits without CPUs. It is exact in whole bytes if the closed sets can be enumerated; else
/// leaves without time are merged into a neighbour, and a range is returned. `None` if no memory suffices, there are
/// too many closed sets even then, or the search was cancelled. `O(steps of the lattice · log bytes)`.
pub fn contiguous(
    dag: &Dag,
    profile: &PlacementProfile,
    contract_layers: bool,
    accelerators: u32,
    search: &Search,
) -> Option<MemoryRange> {
    if accelerators == 0 || !profile.nodes.iter().all(|node| node.supported) {
        return None;
    }
    let with_sets = |prepared: OrderedClasses| {
        let lattice = Lattice::new(&prepared.graph.order(), MOST_IDEALS, search).ok()?;
        Some((prepared, lattice))
    };
    let enough = |(prepared, lattice): (OrderedClasses, Lattice)| {
        least(&prepared.costs.size, accelerators, search, |memory| {
            let room = AcceleratorMemory::new(profile, memory);
            let sizes = sizes(profile, &prepared.graph.partition, &room);
            segments(&lattice, &sizes, room.limit_bytes()) <= accelerators
        })
    };
    let whole = OrderedClasses::whole(dag, profile, contract_layers);
    let mut sizes = whole.costs.size.clone();
    sizes.sort_by(|a, b| b.total_cmp(a));
    if let Some(whole) = with_sets(whole) {
        return enough(whole).map(|least| MemoryRange { at_least: least, enough: least });
    }
    let enough = enough(with_sets(OrderedClasses::with_options(dag, profile, contract_layers))?)?;
    Some(MemoryRange { at_least: counted(&sizes, accelerators as usize).min(enough), enough })
}

/// Memory for all splits without CPUs; the classes are the colours. `None` if no memory suffices, or the search was
/// cancelled. `O(classes · accelerators · log bytes)`.
pub fn any_split(profile: &PlacementProfile, accelerators: u32, search: &Search) -> Option<MemoryRange> {
    let partition = Partition::by_colour(profile);
    if accelerators == 0 || !profile.nodes.iter().all(|node| node.supported) {
        return None;
    }
    let descending = |room: &AcceleratorMemory| {
        let mut sizes = sizes(profile, &partition, room);
        sizes.sort_by(|a, b| b.total_cmp(a));
        sizes
    };
    let given = descending(&AcceleratorMemory::new(profile, f64::INFINITY));
    let enough = least(&given, accelerators, search, |memory| {
        let room = AcceleratorMemory::new(profile, memory);
        first_fit(&descending(&room), accelerators as usize, room.limit_bytes())
    })?;
    Some(MemoryRange { at_least: counted(&given, accelerators as usize).min(enough), enough })
}

/// Least whole number for which `does` is true, between a bound on every packing and the sum of all sizes. `None` if
/// the sum does not suffice, or the search was cancelled.
fn least(sizes: &[f64], accelerators: u32, search: &Search, does: impl Fn(f64) -> bool) -> Option<f64> {
    let total: f64 = sizes.iter().sum();
    let largest = sizes.iter().copied().fold(0.0, f64::max);
    let (mut low, mut high) = ((total / f64::from(accelerators)).max(largest).floor() - 1.0, total.ceil());
    if !does(high) {
        return None;
    }
    while high - low > 1.0 {
        if search.cancelled() {
            return None;
        }
        let middle = ((low + high) / 2.0).floor();
        // Above 2^53 there may be no number between.
        if middle <= low || middle >= high {
            break;
        }
        if does(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Fewest accelerators of a contiguous split; `u32::MAX` if a class is too large.
fn segments(lattice: &Lattice, sizes: &[f64], memory: f64) -> u32 {
    let mut least = vec![(u32::MAX, f64::INFINITY); lattice.len()];
    // Base case: no accelerator is open, so the first class opens one.
    least[0] = (0, f64::INFINITY);
    for set in 1..lattice.len() {
        for &(below, class) in lattice.below(set) {
            let ((count, filled), size) = (least[below as usize], sizes[class as usize]);
            let next = if filled + size <= memory { (count, filled + size) } else { (count.saturating_add(1), size) };
            if size <= memory && next < least[set] {
                least[set] = next;
            }
        }
    }
    least[lattice.len() - 1].0
}

/// True if first-fit decreasing packs all classes.
fn first_fit(descending: &[f64], accelerators: usize, memory: f64) -> bool {
    let mut filled = vec![0.0; accelerators.min(descending.len())];
    descending.iter().all(|size| {
        let room = filled.iter_mut().find(|filled| **filled + size <= memory);
        room.map(|filled| *filled += size).is_some()
    })
}

/// Lower bound on the memory: an equal part of the total and, for every `i`, the pigeonhole bound: some accelerator
/// holds `i + 1` of the `i K + 1` largest classes.
fn counted(descending: &[f64], accelerators: usize) -> f64 {
    let share = descending.iter().sum::<f64>() / accelerators as f64;
    let crowded = (0..).map(|i| (i, i * accelerators + 1)).take_while(|&(_, count)| count <= descending.len());
    let crowded = crowded.map(|(i, count)| descending[count - i - 1..count].iter().sum());
    crowded.fold(share, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload::PlacementNode;

    fn profile(sizes: &[f64]) -> PlacementProfile {
        let node = |&size_bytes: &f64| PlacementNode {
            cpu_time: 1.0,
            accelerator_time: 1.0,
            supported: true,
            backward: false,
            size_bytes,
            colour_class: None,
            layer: None,
            transfer: 0.0,
        };
        sizes.iter().map(node).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_chain_is_cut_where_its_parts_are_smallest() {
        let profile = profile(&[5.0, 1.0, 4.0, 4.0, 1.0, 5.0]);
        let chain = Dag::new(6, (1..6).map(|v| (v - 1, v)).collect()).unwrap();
        let least = |k| contiguous(&chain, &profile, false, k, &Search::default()).and_then(|needed| needed.exact());
        assert_eq!((1..=6).map(least).collect::<Vec<_>>(), [20.0, 10.0, 8.0, 5.0, 5.0, 5.0].map(Some));
        assert_eq!(least(0), None);
    }

    #[test]
    fn a_stopped_search_says_nothing() {
        let stopped = Search::default();
        stopped.cancel();
        assert_eq!(any_split(&profile(&[5.0, 1.0, 4.0]), 2, &stopped), None);
    }

    #[test]
    fn without_order_classes_pair_up() {
        let needed = |k| any_split(&profile(&[5.0, 1.0, 4.0, 4.0, 1.0, 5.0]), k, &Search::default()).unwrap();
        for (k, bytes) in [(1, 20.0), (2, 10.0), (4, 5.0), (5, 5.0), (9, 5.0)] {
            assert_eq!(needed(k), MemoryRange { at_least: bytes, enough: bytes }, "{k} accelerators");
        }
        // Two of the four largest share one of three, and each of the two smallest has room elsewhere.
        assert_eq!(needed(3), MemoryRange { at_least: 8.0, enough: 8.0 });
    }
}
