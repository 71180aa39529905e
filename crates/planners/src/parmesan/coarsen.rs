//! Coarsening: merges vertices in pairs until `k` clusters are left. The quotient stays acyclic.
//!
//! The next pair minimises `comp(A) + comp(B) − comm_coef · saved(A, B)`: seconds of compute minus the weighted seconds
//! of traffic that the merge makes internal. Candidates are the edges of the quotient, and clusters that are neighbours
//! in its topological order (nothing lies between these, so they can always be merged). Contracting an edge makes a
//! cycle iff another path connects its ends. That path is sought in the window of the order between both ends, and the
//! order is then repaired in this window ([`super::contract`]). A cluster may not exceed `1.1 · total / k` (or the
//! heaviest vertex, if larger) while other merges are possible.
//!
//! Pairs are merged one at a time, because several merges that are each legal can make a cycle together. Time is
//! `O(vertices · candidates + edges · log vertices)`, where candidates are the edges that can be contracted. Memory is
//! `O(vertices + edges)`. The merges are kept, so that every level can be rebuilt. A graph of more than
//! [`MOST_VERTICES`] vertices is first reduced by merging runs along the topological order: the vertices between two
//! positions of such an order can be one cluster without a cycle.

use super::contract::Contraction;
use plantui_core::search::Search;

/// Graph to partition: a DAG with costs for one microbatch.
#[derive(Debug, Clone, Default)]
pub(super) struct CostGraph {
    /// Successors of each vertex, ascending.
    pub(super) out: Vec<Vec<usize>>,
    /// Predecessors of each vertex, ascending.
    pub(super) into: Vec<Vec<usize>>,
    /// Seconds of forward and backward together, by vertex.
    pub(super) seconds: Vec<f64>,
    /// Output bytes, by vertex.
    pub(super) bytes: Vec<f64>,
    /// Parameter bytes, by vertex.
    pub(super) parameters: Vec<f64>,
    /// Stashed bytes for each microbatch in flight, by vertex.
    pub(super) kept: Vec<f64>,
    /// All vertices in a topological order.
    pub(super) order: Vec<usize>,
}

impl CostGraph {
    pub(super) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// Quotient graph. `part` gives the cluster of each vertex; clusters are numbered in a topological order of the
    /// quotient.
    pub(super) fn quotient(&self, part: &[usize], count: usize) -> CostGraph {
        let mut quotient = CostGraph {
            out: vec![vec![]; count],
            into: vec![vec![]; count],
            seconds: vec![0.0; count],
            bytes: vec![0.0; count],
            parameters: vec![0.0; count],
            kept: vec![0.0; count],
            order: (0..count).collect(),
        };
        for v in 0..self.len() {
            let own = part[v];
            quotient.seconds[own] += self.seconds[v];
            quotient.parameters[own] += self.parameters[v];
            quotient.kept[own] += self.kept[v];
            let leaves = self.out[v].iter().any(|&w| part[w] != own);
            quotient.bytes[own] += if leaves { self.bytes[v] } else { 0.0 };
        }
        for (own, list) in successors(self, part, count).into_iter().enumerate() {
            list.iter().for_each(|&next| quotient.into[next].push(own));
            quotient.out[own] = list;
        }
        quotient
    }
}

/// Successor clusters of each cluster, ascending; `part` gives for each vertex a cluster below `count`. No list of all
/// edges is sorted, because a dense graph has millions.
fn successors(fine: &CostGraph, part: &[usize], count: usize) -> Vec<Vec<usize>> {
    let mut members = vec![vec![]; count];
    part.iter().enumerate().for_each(|(v, &own)| members[own].push(v));
    // By cluster: the last predecessor found for it.
    let mut seen = vec![usize::MAX; count];
    let of = |(own, members): (usize, Vec<usize>)| {
        let mut list = vec![];
        for &w in members.iter().flat_map(|&v| &fine.out[v]) {
            let next = part[w];
            if next != own && std::mem::replace(&mut seen[next], own) != own {
                list.push(next);
            }
        }
        list.sort_unstable();
        list
    };
    members.into_iter().enumerate().map(of).collect()
}

/// Merges, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(super) struct Merges {
    vertices: usize,
    /// Cluster that stays, and cluster that is merged into it.
    pairs: Vec<(usize, usize)>,
}

impl Merges {
    /// Clusters left after all merges.
    #[cfg(test)]
    pub(super) fn least(&self) -> usize {
        self.vertices - self.pairs.len()
    }

    /// By vertex: the representative of its cluster at the level of `count` clusters, or after all merges if fewer were
    /// made.
    pub(super) fn clusters(&self, count: usize) -> Vec<usize> {
        let merges = self.vertices.saturating_sub(count).min(self.pairs.len());
        let mut root: Vec<usize> = (0..self.vertices).collect();
        for &(stays, goes) in &self.pairs[..merges] {
            root[goes] = stays;
        }
        for v in 0..self.vertices {
            let mut at = v;
            while root[at] != at {
                at = root[at];
            }
            root[v] = at;
        }
        root
    }

    /// The same level, with clusters numbered in a topological order; and the number of clusters.
    pub(super) fn level(&self, fine: &CostGraph, count: usize) -> (Vec<usize>, usize) {
        number(fine, &self.clusters(count))
    }
}

/// Numbers clusters along a topological order of their quotient (Kahn's algorithm, earliest vertex first). Returns the
/// cluster of each vertex and the number of clusters.
pub(super) fn number(fine: &CostGraph, root: &[usize]) -> (Vec<usize>, usize) {
    let n = fine.len();
    let mut place = vec![0; n];
    fine.order.iter().enumerate().for_each(|(at, &v)| place[v] = at);
    let mut first = vec![usize::MAX; n];
    (0..n).for_each(|v| first[root[v]] = first[root[v]].min(place[v]));
    let after = successors(fine, root, n);
    let mut waits = vec![0usize; n];
    after.iter().flatten().for_each(|&next| waits[next] += 1);
    let mut ready: std::collections::BTreeSet<(usize, usize)> =
        (0..n).filter(|&v| root[v] == v && waits[v] == 0).map(|v| (first[v], v)).collect();
    let mut number = vec![usize::MAX; n];
    let mut count = 0;
    while let Some((_, cluster)) = ready.pop_first() {
        number[cluster] = count;
        count += 1;
        for &next in &after[cluster] {
            waits[next] -= 1;
            if waits[next] == 0 {
                ready.insert((first[next], next));
            }
        }
    }
    ((0..n).map(|v| number[root[v]]).collect(), count)
}

/// Allowed weight of a cluster, relative to an equal part. It bounds the imbalance that the chain starts from.
const SLACK: f64 = 1.1;

/// Number of vertices above which runs are merged before pairs. It bounds the time of merging pairs, which is
/// quadratic.
const MOST_VERTICES: usize = 2_000;

/// Merges that leave at most `most` runs along the order, of about equal seconds. The first vertex of each run stays.
fn runs(fine: &CostGraph, most: usize) -> Vec<(usize, usize)> {
    if fine.len() <= most {
        return vec![];
    }
    let total: f64 = fine.seconds.iter().sum();
    let (mut pairs, mut head, mut run, mut before) = (vec![], None, 0, 0.0);
    for &v in &fine.order {
        let middle = before + fine.seconds[v] / 2.0;
        let own = if total > 0.0 { (middle / total * most as f64) as usize } else { 0 };
        match head {
            Some(head) if own == run => pairs.push((head, v)),
            _ => (head, run) = (Some(v), own),
        }
        before += fine.seconds[v];
    }
    pairs
}

/// Merges down to `k` clusters. `bandwidth` (bytes/s) converts bytes into seconds, counted in both directions.
pub(super) fn coarsen(fine: &CostGraph, k: usize, comm_coef: f64, bandwidth: f64, search: &Search) -> Merges {
    let n = fine.len();
    let mut merges = Merges { vertices: n, pairs: runs(fine, MOST_VERTICES.max(k)) };
    let mut graph = Contraction::of_runs(fine, &merges.pairs);
    let total: f64 = fine.seconds.iter().sum();
    let heaviest = fine.seconds.iter().copied().fold(0.0, f64::max);
    let mut cap = (SLACK * total / k.max(1) as f64).max(heaviest);
    let score = |together: f64, bytes: f64| {
        let saved = 2.0 * bytes / bandwidth;
        (together - comm_coef * saved, -saved)
    };
    while graph.len() > k.max(1) && !search.cancelled() {
        match graph.merge_best(cap, score, search) {
            Some(pair) => merges.pairs.push(pair),
            None => cap *= 1.5,
        }
    }
    merges
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use plantui_core::random::SplitMix;

    pub(in crate::parmesan) fn random_graph(random: &mut SplitMix, n: usize) -> CostGraph {
        graph(random, n, 2)
    }

    /// Random graph: each pair of vertices has an edge with probability `of_eight / 8`.
    pub(in crate::parmesan) fn graph(random: &mut SplitMix, n: usize, of_eight: u64) -> CostGraph {
        let mut fine = CostGraph {
            out: vec![vec![]; n],
            into: vec![vec![]; n],
            seconds: (0..n).map(|_| (1 + random.next_u64() % 9) as f64).collect(),
            bytes: (0..n).map(|_| (1 + random.next_u64() % 9) as f64).collect(),
            parameters: vec![1.0; n],
            kept: vec![1.0; n],
            order: (0..n).collect(),
        };
        for v in 1..n {
            for u in (0..v).filter(|_| random.next_u64() % 8 < of_eight) {
                fine.out[u].push(v);
                fine.into[v].push(u);
            }
        }
        fine
    }

    #[test]
    fn every_quotient_is_acyclic_and_the_first_level_is_the_graph() {
        let mut random = SplitMix::new(1);
        for round in 0..200 {
            let fine = random_graph(&mut random, 2 + round % 14);
            let merges = coarsen(&fine, 1 + round % 5, [0.0, 1.0, 100.0][round % 3], 1.0, &Search::default());
            assert_eq!(merges.least(), (1 + round % 5).min(fine.len()));
            for count in merges.least()..=fine.len() {
                let (part, clusters) = merges.level(&fine, count);
                assert_eq!(clusters, count);
                assert!((0..fine.len()).all(|v| fine.out[v].iter().all(|&w| part[v] <= part[w])), "{round} {count}");
                let quotient = fine.quotient(&part, clusters);
                assert_eq!(quotient.seconds.iter().sum::<f64>(), fine.seconds.iter().sum::<f64>());
            }
            let (part, _) = merges.level(&fine, fine.len());
            let mut sorted = part;
            sorted.sort_unstable();
            assert_eq!(sorted, (0..fine.len()).collect::<Vec<_>>(), "undone, every vertex is by itself");
        }
    }

    #[test]
    fn a_graph_of_very_many_vertices_is_merged_by_runs_first() {
        let mut random = SplitMix::new(5);
        let mut fine = random_graph(&mut random, 0);
        let n = 2 * MOST_VERTICES + 7;
        for v in 0..n {
            let to: Vec<usize> = [v + 1, v + 3].into_iter().filter(|&w| w < n).collect();
            fine.out.push(to);
            fine.into.push([3, 1].into_iter().filter_map(|back| v.checked_sub(back)).collect());
            fine.seconds.push((1 + random.next_u64() % 9) as f64);
            fine.order.push(v);
        }
        (fine.bytes, fine.parameters, fine.kept) = (vec![1.0; n], vec![1.0; n], vec![1.0; n]);
        assert!(fine.len() - runs(&fine, MOST_VERTICES).len() <= MOST_VERTICES);
        let merges = coarsen(&fine, MOST_VERTICES - 40, 1.0, 1.0, &Search::default());
        for count in [MOST_VERTICES - 40, MOST_VERTICES, 3000, n] {
            let (part, clusters) = merges.level(&fine, count);
            assert!(clusters >= count.min(MOST_VERTICES - 40) && clusters <= count.max(merges.least()), "{count}");
            assert!((0..n).all(|v| fine.out[v].iter().all(|&w| part[v] <= part[w])), "{count}: it stays acyclic");
        }
    }

    #[test]
    fn without_a_coefficient_bytes_do_not_count() {
        let mut random = SplitMix::new(2);
        for _ in 0..40 {
            let fine = random_graph(&mut random, 12);
            let mut loud = fine.clone();
            loud.bytes.iter_mut().for_each(|bytes| *bytes *= 1000.0);
            let [one, other] = [&fine, &loud].map(|fine| coarsen(fine, 4, 0.0, 1.0, &Search::default()).clusters(4));
            assert_eq!(one, other);
        }
    }
}
