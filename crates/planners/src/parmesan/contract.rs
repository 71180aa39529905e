//! Cluster graph under contraction: finds the next pair that can be merged without a cycle, and updates the graph.
//!
//! An edge can be contracted iff no other path connects its ends, that is iff it is in the transitive reduction. Once
//! an edge has another path, merges do not remove that path (unless the edge coincides with an edge that has none). So
//! an edge is refused once and then left out of every search. Dense graphs refuse many edges between two merges: there,
//! all edges with another path are found together, with bit sets of the clusters that each cluster reaches.
//!
//! The next pair takes `O(candidates + vertices)`, a merge `O(degree · log degree + window)`. A reduction takes
//! `O(candidates · vertices / 64)` and runs after `vertices / 64` refusals. Memory is `O(vertices + edges)`.

use super::coarsen::CostGraph;
use plantui_core::search::Search;

/// Words of each reachability set: `64 · WORDS` target clusters are handled at a time. It bounds the memory of a
/// reduction to 512 bytes for each cluster.
const WORDS: usize = 64;

/// Outgoing edges: target cluster, ascending, with bytes.
type ClusterEdges = Vec<(usize, f64)>;

/// Cluster graph.
pub(super) struct Contraction {
    seconds: Vec<f64>,
    /// By cluster: edges not yet known to have another path. They include the transitive reduction.
    open: Vec<ClusterEdges>,
    /// By cluster: edges with another path between their ends.
    shut: Vec<ClusterEdges>,
    /// By cluster: its predecessors, ascending.
    into: Vec<Vec<usize>>,
    /// Clusters in a topological order, and the position of each.
    order: Vec<usize>,
    place: Vec<usize>,
    /// By cluster: number of the last search that visited it.
    marked: Vec<usize>,
    searches: usize,
}

/// Removes an edge and returns its bytes.
fn take(edges: &mut ClusterEdges, to: usize) -> Option<f64> {
    let at = edges.binary_search_by_key(&to, |edge| edge.0).ok()?;
    Some(edges.remove(at).1)
}

/// Adds bytes to an edge; inserts the edge if it is missing.
fn lead(edges: &mut ClusterEdges, to: usize, bytes: f64) {
    match edges.binary_search_by_key(&to, |edge| edge.0) {
        Ok(at) => edges[at].1 += bytes,
        Err(at) => edges.insert(at, (to, bytes)),
    }
}

fn insert(list: &mut Vec<usize>, value: usize) {
    if let Err(at) = list.binary_search(&value) {
        list.insert(at, value);
    }
}

fn remove(list: &mut Vec<usize>, value: usize) {
    if let Ok(at) = list.binary_search(&value) {
        list.remove(at);
    }
}

impl Contraction {
    /// Builds the graph after `runs` of vertices were merged, each into its head. Runs along the topological order make
    /// no cycle.
    pub(super) fn of_runs(fine: &CostGraph, runs: &[(usize, usize)]) -> Self {
        let n = fine.len();
        let mut head: Vec<usize> = (0..n).collect();
        let mut seconds = fine.seconds.clone();
        for &(stays, goes) in runs {
            head[goes] = stays;
            seconds[stays] += fine.seconds[goes];
        }
        let mut members = vec![vec![]; n];
        (0..n).for_each(|v| members[head[v]].push(v));
        let mut open: Vec<ClusterEdges> = vec![vec![]; n];
        let mut into = vec![vec![]; n];
        let (mut bytes, mut seen) = (vec![0.0; n], vec![usize::MAX; n]);
        for own in 0..n {
            let mut next = vec![];
            for &v in &members[own] {
                for to in fine.out[v].iter().map(|&w| head[w]).filter(|&to| to != own) {
                    if std::mem::replace(&mut seen[to], own) != own {
                        bytes[to] = 0.0;
                        next.push(to);
                    }
                    bytes[to] += fine.bytes[v];
                }
            }
            next.sort_unstable();
            next.iter().for_each(|&to| into[to].push(own));
            open[own] = next.into_iter().map(|to| (to, bytes[to])).collect();
        }
        let order = fine.order.iter().copied().filter(|&v| head[v] == v).collect();
        let (shut, marked) = (vec![vec![]; n], vec![0; n]);
        let mut graph = Contraction { seconds, open, shut, into, order, place: vec![0; n], marked, searches: 0 };
        graph.settle(0);
        graph
    }

    /// Clusters that are left.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    fn settle(&mut self, from: usize) {
        for at in from..self.order.len() {
            self.place[self.order[at]] = at;
        }
    }

    /// Merges the best pair whose weight is at most `cap`, the second cluster into the first, and returns it. `None` if
    /// there is no such pair or the search was cancelled.
    pub(super) fn merge_best(
        &mut self,
        cap: f64,
        score: impl Fn(f64, f64) -> (f64, f64),
        search: &Search,
    ) -> Option<(usize, usize)> {
        let mut refused = 0;
        while !search.cancelled() {
            let (a, b) = self.best(cap, &score)?;
            if self.apart(a, b) {
                self.merge(a, b);
                return Some((a, b));
            }
            self.shut(a, b);
            refused += 1;
            // From here on, finding all refused edges together costs less than finding them one by one.
            if refused >= self.len().div_ceil(64) {
                self.reduce(search);
                refused = 0;
            }
        }
        None
    }

    /// Best pair whose weight is at most `cap`, whether or not it makes a cycle: by score, then traffic, then earliest
    /// position.
    fn best(&self, cap: f64, score: impl Fn(f64, f64) -> (f64, f64)) -> Option<(usize, usize)> {
        let mut best: Option<((f64, f64), (usize, usize))> = None;
        for (at, &a) in self.order.iter().enumerate() {
            let mut offer = |b: usize, bytes: f64| {
                let together = self.seconds[a] + self.seconds[b];
                if together > cap {
                    return;
                }
                let own = score(together, bytes);
                // Ties: the earlier first cluster; for the same first cluster, the second with the lower number.
                let better = best.is_none_or(|(known, pair)| {
                    let order = own.0.total_cmp(&known.0).then(own.1.total_cmp(&known.1));
                    order.then((at, b).cmp(&(self.place[pair.0], pair.1))).is_lt()
                });
                if better {
                    best = Some((own, (a, b)));
                }
            };
            let next = self.order.get(at + 1).copied();
            let mut follows = false;
            for &(b, bytes) in &self.open[a] {
                follows |= next == Some(b);
                offer(b, bytes);
            }
            // No cluster lies between two neighbours of the order, so an edge to the next cluster is never shut. Here
            // there is no edge.
            if let Some(b) = next.filter(|_| !follows) {
                offer(b, 0.0);
            }
        }
        best.map(|best| best.1)
    }

    /// True if `a` reaches `b` only by their edge. Marks the clusters between both in the order that `a` reaches
    /// otherwise. Shut edges reach nothing that open edges do not reach.
    fn apart(&mut self, a: usize, b: usize) -> bool {
        let last = self.place[b];
        self.searches += 1;
        let mut stack: Vec<usize> = self.open[a].iter().map(|edge| edge.0).filter(|&next| next != b).collect();
        while let Some(v) = stack.pop() {
            if v == b {
                return false;
            }
            if self.place[v] > last || std::mem::replace(&mut self.marked[v], self.searches) == self.searches {
                continue;
            }
            stack.extend(self.open[v].iter().map(|edge| edge.0));
        }
        true
    }

    fn shut(&mut self, from: usize, to: usize) {
        if let Some(bytes) = take(&mut self.open[from], to) {
            lead(&mut self.shut[from], to, bytes);
        }
    }

    /// Shuts every edge with another path between its ends, unless the search is cancelled.
    fn reduce(&mut self, search: &Search) {
        let n = self.len();
        let words = n.div_ceil(64).min(WORDS);
        let columns = 64 * words;
        for first in (0..n).step_by(columns) {
            let last = n.min(first + columns);
            // By position: the clusters of `first..last` that are reached from there.
            let mut reach = vec![0u64; last * words];
            for at in (0..last).rev() {
                if search.cancelled() {
                    return;
                }
                let a = self.order[at];
                let mut next: Vec<usize> = self.open[a].iter().map(|edge| self.place[edge.0]).collect();
                next.sort_unstable();
                let (before, after) = reach.split_at_mut((at + 1) * words);
                let own = &mut before[at * words..];
                let mut known = vec![];
                // A path to a cluster passes through earlier clusters only.
                for to in next.into_iter().take_while(|&to| to < last) {
                    if to >= first {
                        let (word, bit) = ((to - first) / 64, 1 << ((to - first) % 64));
                        if own[word] & bit != 0 {
                            known.push(self.order[to]);
                            continue;
                        }
                        own[word] |= bit;
                    }
                    let from = &after[(to - at - 1) * words..][..words];
                    own.iter_mut().zip(from).for_each(|(own, reached)| *own |= reached);
                }
                if known.is_empty() {
                    continue;
                }
                known.iter().for_each(|&b| self.marked[b] = usize::MAX);
                let (shut, open): (ClusterEdges, ClusterEdges) =
                    std::mem::take(&mut self.open[a]).into_iter().partition(|edge| self.marked[edge.0] == usize::MAX);
                known.iter().for_each(|&b| self.marked[b] = 0);
                self.open[a] = open;
                self.shut[a].extend(shut);
                self.shut[a].sort_unstable_by_key(|edge| edge.0);
            }
        }
    }

    /// Merges `b` into `a`, which precedes it. The last marked clusters are those that `a` reaches.
    fn merge(&mut self, a: usize, b: usize) {
        let (from, to) = (self.place[a], self.place[b]);
        let reached = |v: &usize| self.marked[*v] == self.searches;
        let window = || self.order[from..=to].iter().copied().filter(|v| *v != a && *v != b);
        let free = window().filter(|v| !reached(v));
        let repaired: Vec<usize> = free.chain([a]).chain(window().filter(reached)).collect();
        self.order.splice(from..=to, repaired);
        self.settle(from);
        self.seconds[a] += self.seconds[b];
        take(&mut self.open[a], b);
        remove(&mut self.into[b], a);
        // If both have an edge to a cluster: another path beside b's edge is also one beside the merged edge. The other
        // path beside a's edge may have been the path through b, so b's state decides.
        for (edges, open) in [(std::mem::take(&mut self.open[b]), true), (std::mem::take(&mut self.shut[b]), false)] {
            for (next, bytes) in edges {
                remove(&mut self.into[next], b);
                insert(&mut self.into[next], a);
                self.join(a, next, bytes, |_| open);
            }
        }
        // If a cluster has an edge to both, the reverse holds: the state of its edge to a decides.
        for before in std::mem::take(&mut self.into[b]) {
            let open = take(&mut self.open[before], b).map(|bytes| (bytes, true));
            if let Some((bytes, open)) = open.or_else(|| take(&mut self.shut[before], b).map(|bytes| (bytes, false))) {
                insert(&mut self.into[a], before);
                self.join(before, a, bytes, |known| known.unwrap_or(open));
            }
        }
    }

    /// Adds bytes to an edge. `open` decides if the edge is open afterwards, from its state before, if it existed.
    fn join(&mut self, from: usize, to: usize, bytes: f64, open: impl Fn(Option<bool>) -> bool) {
        let was_open = take(&mut self.open[from], to).map(|before| (before, true));
        let known = was_open.or_else(|| take(&mut self.shut[from], to).map(|before| (before, false)));
        let list = if open(known.map(|known| known.1)) { &mut self.open } else { &mut self.shut };
        lead(&mut list[from], to, known.map_or(bytes, |known| known.0 + bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::coarsen::{coarsen, tests::graph},
        *,
    };
    use plantui_core::random::SplitMix;

    /// Reference implementation of the merges: weighs every pair and searches every path each time.
    struct PlainContraction {
        seconds: Vec<f64>,
        bytes: Vec<Vec<Option<f64>>>,
        order: Vec<usize>,
    }

    impl PlainContraction {
        fn new(fine: &CostGraph) -> Self {
            let mut bytes = vec![vec![None; fine.len()]; fine.len()];
            for (v, row) in bytes.iter_mut().enumerate() {
                fine.out[v].iter().for_each(|&w| row[w] = Some(fine.bytes[v]));
            }
            PlainContraction { seconds: fine.seconds.clone(), bytes, order: fine.order.clone() }
        }

        /// Vertices that `a` reaches without the edge from `a` to `b`.
        fn reached(&self, a: usize, b: usize) -> Vec<bool> {
            let mut reached = vec![false; self.seconds.len()];
            let mut stack = vec![a];
            while let Some(v) = stack.pop() {
                for w in self.order.iter().copied().filter(|&w| self.bytes[v][w].is_some() && (v, w) != (a, b)) {
                    if !std::mem::replace(&mut reached[w], true) {
                        stack.push(w);
                    }
                }
            }
            reached
        }

        fn merge_best(&mut self, cap: f64, score: &dyn Fn(f64, f64) -> (f64, f64)) -> Option<(usize, usize)> {
            let mut offers = vec![];
            for (at, &a) in self.order.iter().enumerate() {
                for (later, &b) in self.order.iter().enumerate().skip(at + 1) {
                    let together = self.seconds[a] + self.seconds[b];
                    if together <= cap && (later == at + 1 || self.bytes[a][b].is_some()) {
                        offers.push((score(together, self.bytes[a][b].unwrap_or(0.0)), at, b, a));
                    }
                }
            }
            offers.sort_by(|x, y| {
                x.0.0.total_cmp(&y.0.0).then(x.0.1.total_cmp(&y.0.1)).then((x.1, x.2).cmp(&(y.1, y.2)))
            });
            let (a, b) = offers.into_iter().map(|offer| (offer.3, offer.2)).find(|&(a, b)| !self.reached(a, b)[b])?;
            let reached = self.reached(a, b);
            let place = |v: usize| self.order.iter().position(|&own| own == v).unwrap();
            let (from, to) = (place(a), place(b));
            let window: Vec<usize> = self.order[from..=to].iter().copied().filter(|&v| v != a && v != b).collect();
            let (behind, free): (Vec<usize>, Vec<usize>) = window.into_iter().partition(|&v| reached[v]);
            self.order.splice(from..=to, free.into_iter().chain([a]).chain(behind));
            self.seconds[a] += self.seconds[b];
            self.bytes[a][b] = None;
            for v in 0..self.seconds.len() {
                let (out, into) = (self.bytes[b][v].take(), self.bytes[v][b].take());
                for (from, to, bytes) in [(a, v, out), (v, a, into)] {
                    if let Some(bytes) = bytes {
                        *self.bytes[from][to].get_or_insert(0.0) += bytes;
                    }
                }
            }
            Some((a, b))
        }
    }

    #[test]
    fn merges_are_those_that_looking_at_everything_finds() {
        let mut random = SplitMix::new(11);
        for round in 0..240 {
            let fine = graph(&mut random, 3 + round % 30, 1 + round as u64 % 8);
            let coefficient = [0.0, 0.3, 1.0, 100.0][round % 4];
            let score = |together: f64, bytes: f64| (together - coefficient * bytes, -bytes);
            let mut cap = 12.0;
            let (mut quick, mut plain) = (Contraction::of_runs(&fine, &[]), PlainContraction::new(&fine));
            while quick.len() > 1 {
                let pair = quick.merge_best(cap, score, &Search::default());
                assert_eq!(pair, plain.merge_best(cap, &score), "{round}");
                assert_eq!(quick.order, plain.order, "{round}");
                if pair.is_none() {
                    cap *= 1.5;
                }
            }
        }
    }

    #[test]
    fn of_a_complete_graph_runs_are_left() {
        // Half a million edges, of which all but those to the next vertex are refused: were each looked for by itself and
        // all weighed again after that, this would not end.
        let n = 1000;
        let fine = graph(&mut SplitMix::new(12), n, 8);
        let merges = coarsen(&fine, 40, 1.0, 1.0, &Search::default());
        let (part, count) = merges.level(&fine, 40);
        assert_eq!(count, 40);
        assert!(part.is_sorted(), "clusters follow one another");
    }

    #[test]
    fn a_stopped_search_merges_nothing_more() {
        let search = Search::default();
        search.cancel();
        let mut clusters = Contraction::of_runs(&graph(&mut SplitMix::new(13), 20, 8), &[]);
        assert_eq!(clusters.merge_best(f64::INFINITY, |together, _| (together, 0.0), &search), None);
        assert_eq!(clusters.len(), 20);
    }

    #[test]
    fn a_reduction_leaves_the_edges_without_another_path() {
        let mut random = SplitMix::new(14);
        for round in 0..30 {
            let fine = graph(&mut random, 2 + 5 * round, 1 + round as u64 % 8);
            let mut clusters = Contraction::of_runs(&fine, &[]);
            clusters.reduce(&Search::default());
            let plain = PlainContraction::new(&fine);
            for v in 0..fine.len().min(12) {
                let open = fine.out[v].iter().copied().filter(|&w| !plain.reached(v, w)[w]);
                assert!(open.eq(clusters.open[v].iter().map(|edge| edge.0)), "{round} {v}");
                assert_eq!(clusters.open[v].len() + clusters.shut[v].len(), fine.out[v].len());
            }
        }
    }
}
