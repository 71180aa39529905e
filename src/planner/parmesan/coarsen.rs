//! Coarsening: vertices are merged in pairs until `k` clusters are left, and the quotient stays acyclic.
//!
//! The pair that is merged next has the least `comp(A) + comp(B) − comm_coef · saved(A, B)`: seconds of compute against the
//! seconds of traffic that would stay inside. Candidates are the edges of the quotient, and clusters that follow one another
//! in its topological order (which can always be merged: nothing lies between them). Contracting an edge makes a cycle iff
//! another path leads along it; that path is looked for among the clusters between both in the order, which is then
//! repaired in that window. A cluster may not outgrow `1.1 · total / k` (nor the heaviest vertex) as long as something else
//! can be merged.
//!
//! Merging one pair at a time matters: several merges that are legal by themselves can make a cycle together.
//! `O(vertices · edges)` time, `O(vertices + edges)` memory; the merges are kept, so that every level can be had again.

use std::collections::BTreeMap;

use crate::planner::Search;

/// What is partitioned: a DAG with costs for one microbatch.
#[derive(Debug, Clone, Default)]
pub(super) struct Fine {
    /// Successors of every vertex, ascending.
    pub(super) out: Vec<Vec<usize>>,
    /// Predecessors of every vertex, ascending.
    pub(super) into: Vec<Vec<usize>>,
    /// Seconds of forward and backward.
    pub(super) seconds: Vec<f64>,
    /// Bytes that a vertex puts out.
    pub(super) bytes: Vec<f64>,
    /// Bytes of its parameters.
    pub(super) parameters: Vec<f64>,
    /// Bytes that are kept of it for every microbatch in flight.
    pub(super) kept: Vec<f64>,
    /// All vertices, in a topological order.
    pub(super) order: Vec<usize>,
}

impl Fine {
    pub(super) fn len(&self) -> usize {
        self.seconds.len()
    }

    /// The graph of clusters: `part` names a cluster for each vertex, numbered in a topological order of theirs.
    pub(super) fn quotient(&self, part: &[usize], count: usize) -> Fine {
        let mut quotient = Fine {
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
            for &w in self.out[v].iter().filter(|&&w| part[w] != own) {
                quotient.out[own].push(part[w]);
                quotient.into[part[w]].push(own);
            }
        }
        for list in quotient.out.iter_mut().chain(&mut quotient.into) {
            list.sort_unstable();
            list.dedup();
        }
        quotient
    }
}

/// Merges, in the order in which they were made.
#[derive(Debug, Clone, Default)]
pub(super) struct Merges {
    vertices: usize,
    /// The cluster that stays, and the one that goes into it.
    pairs: Vec<(usize, usize)>,
}

impl Merges {
    /// Clusters that are left after all merges.
    #[cfg(test)]
    pub(super) fn least(&self) -> usize {
        self.vertices - self.pairs.len()
    }

    /// By vertex the representative of its cluster when so many clusters are left, or all merges are made.
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

    /// The same clusters numbered in a topological order of theirs, with their number.
    pub(super) fn level(&self, fine: &Fine, count: usize) -> (Vec<usize>, usize) {
        number(fine, &self.clusters(count))
    }
}

/// Numbers clusters along a topological order of their quotient: Kahn's algorithm, the earliest vertex first.
pub(super) fn number(fine: &Fine, root: &[usize]) -> (Vec<usize>, usize) {
    let n = fine.len();
    let mut place = vec![0; n];
    fine.order.iter().enumerate().for_each(|(at, &v)| place[v] = at);
    let mut first = vec![usize::MAX; n];
    (0..n).for_each(|v| first[root[v]] = first[root[v]].min(place[v]));
    let mut edges: Vec<(usize, usize)> = vec![];
    for v in 0..n {
        edges.extend(fine.out[v].iter().map(|&w| (root[v], root[w])).filter(|(a, b)| a != b));
    }
    edges.sort_unstable();
    edges.dedup();
    let mut waits = vec![0usize; n];
    let mut after: Vec<Vec<usize>> = vec![vec![]; n];
    for &(a, b) in &edges {
        waits[b] += 1;
        after[a].push(b);
    }
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

/// A cluster may be so much heavier than an equal part.
const SLACK: f64 = 1.1;

/// Clusters under way.
struct Quotient {
    seconds: Vec<f64>,
    /// By cluster: bytes to each later cluster, and from which it receives.
    out: Vec<BTreeMap<usize, f64>>,
    into: Vec<BTreeMap<usize, ()>>,
    /// Clusters in a topological order, and where each stands.
    order: Vec<usize>,
    place: Vec<usize>,
}

impl Quotient {
    fn new(fine: &Fine) -> Self {
        let n = fine.len();
        let mut quotient = Quotient {
            seconds: fine.seconds.clone(),
            out: vec![BTreeMap::new(); n],
            into: vec![BTreeMap::new(); n],
            order: fine.order.clone(),
            place: vec![0; n],
        };
        for v in 0..n {
            for &w in &fine.out[v] {
                quotient.out[v].insert(w, fine.bytes[v]);
                quotient.into[w].insert(v, ());
            }
        }
        quotient.settle(0);
        quotient
    }

    fn settle(&mut self, from: usize) {
        for at in from..self.order.len() {
            self.place[self.order[at]] = at;
        }
    }

    /// Clusters between both in the order that the first reaches other than by their edge; `None` if the second is among
    /// them.
    fn between(&self, a: usize, b: usize) -> Option<Vec<usize>> {
        let last = self.place[b];
        let mut seen = vec![];
        let mut marked = std::collections::BTreeSet::new();
        let mut stack: Vec<usize> = self.out[a].keys().copied().filter(|&next| next != b).collect();
        while let Some(v) = stack.pop() {
            if v == b {
                return None;
            }
            if self.place[v] > last || !marked.insert(v) {
                continue;
            }
            seen.push(v);
            stack.extend(self.out[v].keys());
        }
        Some(seen)
    }

    /// Merges the second into the first, which comes before it.
    fn merge(&mut self, a: usize, b: usize, reached: &[usize]) {
        let (from, to) = (self.place[a], self.place[b]);
        let window: Vec<usize> = self.order[from..=to].to_vec();
        let free = window.iter().copied().filter(|v| *v != a && *v != b && !reached.contains(v));
        let bound = window.iter().copied().filter(|v| reached.contains(v));
        let repaired: Vec<usize> = free.chain([a]).chain(bound).collect();
        self.order.splice(from..=to, repaired);
        self.settle(from);
        self.seconds[a] += self.seconds[b];
        self.out[a].remove(&b);
        self.into[b].remove(&a);
        for (next, bytes) in std::mem::take(&mut self.out[b]) {
            self.into[next].remove(&b);
            self.into[next].insert(a, ());
            *self.out[a].entry(next).or_insert(0.0) += bytes;
        }
        for (before, ()) in std::mem::take(&mut self.into[b]) {
            if let Some(bytes) = self.out[before].remove(&b) {
                *self.out[before].entry(a).or_insert(0.0) += bytes;
                self.into[a].insert(before, ());
            }
        }
    }
}

/// Merges down to `k` clusters; `bandwidth` makes seconds of bytes, both ways.
pub(super) fn coarsen(fine: &Fine, k: usize, comm_coef: f64, bandwidth: f64, search: &Search) -> Merges {
    let n = fine.len();
    let mut merges = Merges { vertices: n, pairs: vec![] };
    let mut quotient = Quotient::new(fine);
    let total: f64 = fine.seconds.iter().sum();
    let heaviest = fine.seconds.iter().copied().fold(0.0, f64::max);
    let mut cap = (SLACK * total / k.max(1) as f64).max(heaviest);
    while quotient.order.len() > k.max(1) && !search.cancelled() {
        let mut candidates: Vec<(f64, f64, usize, usize, usize)> = vec![];
        let mut offer = |a: usize, b: usize, bytes: f64, place: usize| {
            let together = quotient.seconds[a] + quotient.seconds[b];
            let saved = 2.0 * bytes / bandwidth;
            candidates.push((together - comm_coef * saved, -saved, place, a, b));
        };
        for (at, &a) in quotient.order.iter().enumerate() {
            let next = quotient.order.get(at + 1).copied();
            let edges = quotient.out[a].iter().filter(|(b, _)| quotient.seconds[a] + quotient.seconds[**b] <= cap);
            edges.for_each(|(&b, &bytes)| offer(a, b, bytes, at));
            if let Some(b) =
                next.filter(|b| !quotient.out[a].contains_key(b) && quotient.seconds[a] + quotient.seconds[*b] <= cap)
            {
                offer(a, b, 0.0, at);
            }
        }
        let by_score = |x: &(f64, f64, usize, usize, usize), y: &(f64, f64, usize, usize, usize)| {
            x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)).then(x.2.cmp(&y.2)).then(x.4.cmp(&y.4))
        };
        let mut merged = false;
        while !merged {
            let Some(at) = (0..candidates.len()).min_by(|&x, &y| by_score(&candidates[x], &candidates[y])) else {
                break;
            };
            let (.., a, b) = candidates.swap_remove(at);
            if let Some(reached) = quotient.between(a, b) {
                quotient.merge(a, b, &reached);
                merges.pairs.push((a, b));
                merged = true;
            }
        }
        if !merged {
            cap *= 1.5;
        }
    }
    merges
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::planner::random::SplitMix;

    pub(in crate::planner::parmesan) fn random_graph(random: &mut SplitMix, n: usize) -> Fine {
        let mut fine = Fine {
            out: vec![vec![]; n],
            into: vec![vec![]; n],
            seconds: (0..n).map(|_| (1 + random.next() % 9) as f64).collect(),
            bytes: (0..n).map(|_| (1 + random.next() % 9) as f64).collect(),
            parameters: vec![1.0; n],
            kept: vec![1.0; n],
            order: (0..n).collect(),
        };
        for v in 1..n {
            for u in 0..v {
                if random.next().is_multiple_of(4) {
                    fine.out[u].push(v);
                    fine.into[v].push(u);
                }
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
