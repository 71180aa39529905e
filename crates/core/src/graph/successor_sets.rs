//! Closed sets at which a pipeline may be cut: closed under successors, grown from the sinks.
//!
//! Piper and device placement build a pipeline out of nested closed sets. A set here is closed when it **contains every
//! successor of each of its members** (the pipeline's tail). For sets closed under predecessors, pass the reversed
//! graph. Piper's paper calls these sets downsets, the placement paper ideals, of the order read from the sinks.
//!
//! Enumeration is breadth-first by size, one vertex added at a time, with a hash table of bit sets: `O(sets · n)` time
//! at most and `O(sets · n / 64)` words of memory. Pairs of nested sets are not stored: the published GNMT graph has
//! 15.5 million of them, but only 17,914 sets. Sets are numbered by size, then in the order of discovery, which depends
//! only on the graph.

use std::{
    collections::hash_map::Entry,
    hash::{DefaultHasher, Hash, Hasher},
};

use rustc_hash::FxHashMap;

use super::{Dag, strong_components};

/// All closed sets of a graph, as rows of bits ordered by size. Row 0 is empty, the last row is full.
#[derive(Debug, Clone)]
pub struct SuccessorSets {
    n: usize,
    words: usize,
    bits: Vec<u64>,
    sizes: Vec<u32>,
    /// For each set, the sets with one member less, in compressed rows. No rows if the family is not complete.
    below_start: Vec<u32>,
    below: Vec<u32>,
    /// For each entry of `below`, the member that it lacks.
    lacking: Vec<u32>,
}

/// True if the set `inner` is a subset of `outer`, both as rows of bits.
#[inline]
pub fn lies_within(inner: &[u64], outer: &[u64]) -> bool {
    // Indexed loop: zipped iterators are not inlined across crates and cost the planners a tenth of their time.
    let mut word = 0;
    while word < inner.len().min(outer.len()) && inner[word] & !outer[word] == 0 {
        word += 1;
    }
    word == inner.len().min(outer.len())
}

/// Hash of a vertex. The hash of a set is the XOR of its members' hashes.
fn mark(v: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    v.hash(&mut hasher);
    hasher.finish()
}

/// For each set of one size, the vertices that may join it, ascending.
#[derive(Debug)]
struct JoinableVertices {
    start: Vec<usize>,
    vertices: Vec<u32>,
    /// Vertices that may join the latest set but could not join the set it was made from.
    fresh: Vec<u32>,
}

impl JoinableVertices {
    /// Creates a list for no sets.
    fn new() -> Self {
        JoinableVertices { start: vec![0], vertices: vec![], fresh: vec![] }
    }

    fn clear(&mut self) {
        self.start.truncate(1);
        self.vertices.clear();
    }

    /// Appends the vertices that may join a set.
    fn push(&mut self, joining: impl Iterator<Item = u32>) {
        self.vertices.extend(joining);
        self.start.push(self.vertices.len());
    }

    /// Appends the vertices that may join a set after `v` joined. `row` are the set's bits, `joining` the vertices that
    /// could join before.
    fn push_with(&mut self, dag: &Dag, row: &[u64], joining: &[u32], v: u32) {
        let contains = |w: usize| row[w / 64] >> (w % 64) & 1 == 1;
        let fresh = dag.predecessors(v as usize).filter(|&u| dag.successors(u).all(contains)).map(|u| u as u32);
        self.fresh.clear();
        self.fresh.extend(fresh);
        self.fresh.sort_unstable();
        self.fresh.dedup();
        // `v` was missing, so no vertex of `fresh` could join before.
        let mut fresh = self.fresh.iter().copied().peekable();
        for &w in joining.iter().filter(|&&w| w != v) {
            while let Some(earlier) = fresh.next_if(|&u| u < w) {
                self.vertices.push(earlier);
            }
            self.vertices.push(w);
        }
        self.vertices.extend(fresh);
        self.start.push(self.vertices.len());
    }

    /// Iterates over the joining vertices of each set.
    fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.start.windows(2).map(|ends| &self.vertices[ends[0]..ends[1]])
    }
}

/// Result of an enumeration.
#[derive(Debug, Clone)]
pub enum Enumeration {
    /// All sets.
    Complete(SuccessorSets),
    /// More sets than the limit.
    TooMany,
    /// Stopped by the caller.
    Cancelled,
}

impl SuccessorSets {
    /// Lower bound on the number of closed sets of a graph, in `O(n + m)`. A vertex that is comparable to all others
    /// separates the graph into stretches. Within a stretch, components without an edge between them are filled
    /// independently, each in as many steps as it has vertices.
    pub fn at_least(dag: &Dag) -> usize {
        let (n, order) = (dag.len(), dag.topological_order());
        let mut place = vec![0; n];
        order.iter().enumerate().for_each(|(p, &v)| place[v as usize] = p);
        // By position: the first position that an edge from there leads to, and the last position from which an edge
        // leads there.
        let first = order.iter().map(|&v| dag.successors(v as usize).map(|w| place[w]).min().unwrap_or(n));
        let last = order.iter().map(|&v| dag.predecessors(v as usize).map(|u| place[u] + 1).max().unwrap_or(0));
        let (first, last): (Vec<usize>, Vec<usize>) = (first.collect(), last.collect());
        // Maximum of `first` over all earlier positions, and minimum of `last` over all later ones.
        let mut reached = vec![0; n + 1];
        (0..n).for_each(|p| reached[p + 1] = first[p].max(reached[p]));
        let mut left = vec![n; n + 1];
        (0..n).rev().for_each(|p| left[p] = last[p].min(left[p + 1]));
        let comparable = |p: usize| reached[p] <= p && left[p + 1] > p;
        let mut between = vec![0; n + 1];
        (0..n).for_each(|p| between[p + 1] = between[p] + usize::from(comparable(p)));
        let inside = |&(u, v): &(u32, u32)| {
            let (u, v) = (place[u as usize], place[v as usize]);
            !comparable(u) && !comparable(v) && between[u] == between[v]
        };
        let both = dag.edges().iter().copied().filter(inside).flat_map(|(u, v)| [(u, v), (v, u)]).collect::<Vec<_>>();
        let parts = strong_components(n, both.iter());
        let mut sizes = vec![0usize; n];
        parts.iter().for_each(|&part| sizes[part as usize] += 1);
        // Product over the components of a stretch. The full stretch is one of its states: the next separating vertex
        // may then join.
        let (mut count, mut ways, mut seen) = (0usize, 1usize, vec![false; n]);
        for (p, &v) in order.iter().enumerate() {
            if comparable(p) {
                count = count.saturating_add(ways);
                ways = 1;
            } else if !std::mem::replace(&mut seen[parts[v as usize] as usize], true) {
                ways = ways.saturating_mul(sizes[parts[v as usize] as usize] + 1);
            }
        }
        count.saturating_add(ways)
    }

    /// Enumerates the closed sets of `dag`, at most `limit` of them. Polls `cancelled` periodically.
    pub fn enumerate(dag: &Dag, limit: usize, cancelled: &dyn Fn() -> bool) -> Enumeration {
        Self::enumerate_by(dag, limit, cancelled, mark)
    }

    /// Like `enumerate`, with another hash of vertices. Sets with equal hashes are still distinguished.
    fn enumerate_by(dag: &Dag, limit: usize, cancelled: &dyn Fn() -> bool, mark: impl Fn(u32) -> u64) -> Enumeration {
        let n = dag.len();
        if Self::at_least(dag) > limit {
            return Enumeration::TooMany;
        }
        let own_marks: Vec<u64> = (0..n as u32).map(mark).collect();
        let mut all = SuccessorSets::empty(n);
        all.below_start = vec![0, 0];
        let mut level = 0..1;
        // For each set of the level, the vertices that may join it and the set's hash.
        let (mut open, mut next_open) = (JoinableVertices::new(), JoinableVertices::new());
        open.push((0..n as u32).filter(|&v| dag.out_degree(v as usize) == 0));
        let (mut marks, mut next_marks) = (vec![0u64], vec![]);
        // By hash: the set with this hash. On a collision the next free key is used.
        let mut seen: FxHashMap<u64, u32> = FxHashMap::default();
        // Links: a set, the set with one member less, and that member. `place` is the position of each set's own links.
        let (mut links, mut place): (Vec<[u32; 3]>, Vec<usize>) = (vec![], vec![]);
        for _ in 0..n {
            seen.clear();
            links.clear();
            next_open.clear();
            next_marks.clear();
            let first = all.len();
            for ((set, joining), marks) in level.zip(open.iter()).zip(&marks) {
                if set % 64 == 0 && cancelled() {
                    return Enumeration::Cancelled;
                }
                for &v in joining {
                    let marks = marks ^ own_marks[v as usize];
                    let mut key = marks;
                    let found = loop {
                        match seen.entry(key) {
                            Entry::Occupied(known) if all.is_with(*known.get() as usize, set, v) => break *known.get(),
                            Entry::Occupied(_) => key = key.wrapping_add(1),
                            Entry::Vacant(free) => {
                                let found = all.add_with(set, v);
                                next_open.push_with(dag, all.row(found), joining, v);
                                next_marks.push(marks);
                                break *free.insert(found as u32);
                            }
                        }
                    };
                    links.push([found, set as u32, v]);
                    if all.len() > limit {
                        return Enumeration::TooMany;
                    }
                }
            }
            std::mem::swap(&mut open, &mut next_open);
            std::mem::swap(&mut marks, &mut next_marks);
            // Links are ascending by the smaller set: each goes to the next position of its larger set.
            place.clear();
            place.resize(all.len() - first + 1, 0);
            links.iter().for_each(|&[found, ..]| place[found as usize - first + 1] += 1);
            let known = all.below.len();
            place[0] = known;
            (first..all.len()).for_each(|set| {
                place[set - first + 1] += place[set - first];
                all.below_start.push(place[set - first + 1] as u32);
            });
            all.below.resize(known + links.len(), 0);
            all.lacking.resize(known + links.len(), 0);
            for &[found, set, v] in &links {
                let next = &mut place[found as usize - first];
                (all.below[*next], all.lacking[*next]) = (set, v);
                *next += 1;
            }
            level = first..all.len();
        }
        Enumeration::Complete(all)
    }

    /// Union of the suffix chains of several topological orders, used where the full family is too large. It always
    /// holds the empty and the full set, and has at most `orders · n + 1` sets. Each chain contributes every
    /// `stride`-th set and the full one.
    pub fn from_orders(dag: &Dag, orders: &[Vec<u32>], stride: usize) -> SuccessorSets {
        let n = dag.len();
        let words = n.div_ceil(64).max(1);
        let mut all = SuccessorSets::empty(n);
        let mut chains: Vec<Vec<u64>> = vec![vec![0; words]; orders.len()];
        for size in 1..=n {
            let mut seen: FxHashMap<Vec<u64>, ()> = FxHashMap::default();
            for (chain, order) in chains.iter_mut().zip(orders) {
                let v = order[n - size] as usize;
                chain[v / 64] |= 1 << (v % 64);
                if size % stride.max(1) != 0 && size != n {
                    continue;
                }
                if seen.insert(chain.clone(), ()).is_none() {
                    all.bits.extend_from_slice(chain);
                    all.sizes.push(size as u32);
                }
            }
        }
        all
    }

    /// Suffixes of a topological order that begin at the given positions (ascending), with the empty and the full set.
    pub fn at_places(dag: &Dag, order: &[u32], places: &[usize]) -> SuccessorSets {
        let n = dag.len();
        let mut all = SuccessorSets::empty(n);
        let mut row = vec![0; all.words];
        let mut end = n;
        for &place in places.iter().rev().filter(|&&place| 0 < place && place < n).chain([&0]) {
            if place == end {
                continue;
            }
            order[place..end].iter().for_each(|&v| row[v as usize / 64] |= 1 << (v % 64));
            all.bits.extend_from_slice(&row);
            all.sizes.push((n - place) as u32);
            end = place;
        }
        all
    }

    /// Family of closed sets given by their bits, with the empty and the full set. Duplicates are removed.
    ///
    /// # Panics
    /// If the number of words of a row differs from that of this graph's sets.
    pub fn of_rows(dag: &Dag, rows: impl IntoIterator<Item = Vec<u64>>) -> SuccessorSets {
        let mut all = SuccessorSets::empty(dag.len());
        let mut full = vec![0; all.words];
        (0..dag.len()).for_each(|v| full[v / 64] |= 1 << (v % 64));
        let size = |row: &[u64]| row.iter().map(|word| word.count_ones()).sum::<u32>();
        let mut sized: Vec<(u32, Vec<u64>)> =
            rows.into_iter().chain([full]).map(|row| (size(&row), row)).filter(|&(size, _)| size > 0).collect();
        sized.sort_unstable();
        sized.dedup();
        for (size, row) in sized {
            assert_eq!(row.len(), all.words, "a set is a row of bits");
            all.bits.extend_from_slice(&row);
            all.sizes.push(size);
        }
        all
    }

    /// True if `set` is `other` with the vertex `v` added.
    fn is_with(&self, set: usize, other: usize, v: u32) -> bool {
        let (word, bit) = (v as usize / 64, 1 << (v % 64));
        let mut rows = self.row(set).iter().zip(self.row(other)).enumerate();
        rows.all(|(at, (a, b))| if at == word { *a == b | bit } else { a == b })
    }

    /// Appends the set `other` with the vertex `v` added. Returns its number.
    fn add_with(&mut self, other: usize, v: u32) -> usize {
        let added = self.len();
        self.bits.extend_from_within(other * self.words..(other + 1) * self.words);
        self.bits[added * self.words + v as usize / 64] |= 1 << (v % 64);
        self.sizes.push(self.sizes[other] + 1);
        added
    }

    fn empty(n: usize) -> Self {
        let words = n.div_ceil(64).max(1);
        SuccessorSets {
            n,
            words,
            bits: vec![0; words],
            sizes: vec![0],
            below_start: vec![],
            below: vec![],
            lacking: vec![],
        }
    }

    /// Sets that lack one member of `set`. `None` if the family is not complete ([`SuccessorSets::from_orders`],
    /// [`SuccessorSets::of_rows`]).
    #[inline]
    pub fn below(&self, set: usize) -> Option<&[u32]> {
        let (from, to) = (*self.below_start.get(set)?, *self.below_start.get(set + 1)?);
        Some(&self.below[from as usize..to as usize])
    }

    /// Sets that lack one member of `set`, each with that member. None if the family is not complete.
    #[inline]
    pub fn steps_below(&self, set: usize) -> impl Iterator<Item = (u32, u32)> + '_ {
        let ends = self.below_start.get(set).zip(self.below_start.get(set + 1));
        let steps = ends.map_or(0..0, |(&from, &to)| from as usize..to as usize);
        self.below[steps.clone()].iter().copied().zip(self.lacking[steps].iter().copied())
    }

    /// Number of sets.
    #[inline]
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Always false: the empty set is always there.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Number of vertices of the graph.
    #[inline]
    pub fn vertices(&self) -> usize {
        self.n
    }

    /// Number of 64-bit words in a row.
    #[inline]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Bits of a set.
    #[inline]
    pub fn row(&self, set: usize) -> &[u64] {
        &self.bits[set * self.words..(set + 1) * self.words]
    }

    /// Number of members of a set.
    #[inline]
    pub fn size(&self, set: usize) -> usize {
        self.sizes[set] as usize
    }

    /// True if vertex `v` is a member of `set`.
    #[inline]
    pub fn contains(&self, set: usize, v: usize) -> bool {
        self.bits[set * self.words + v / 64] >> (v % 64) & 1 == 1
    }

    /// True if every member of `inner` is a member of `outer`.
    #[inline]
    pub fn is_subset(&self, inner: usize, outer: usize) -> bool {
        lies_within(self.row(inner), self.row(outer))
    }

    /// Members of a set, by increasing index.
    #[inline]
    pub fn members(&self, set: usize) -> impl Iterator<Item = usize> + '_ {
        self.beyond(set, 0)
    }

    /// Members of `outer` that are not in `inner`, by increasing index, as an iterator.
    #[inline]
    pub fn beyond(&self, outer: usize, inner: usize) -> impl Iterator<Item = usize> + '_ {
        let (outer, inner) = (self.row(outer), self.row(inner));
        let (mut word, mut bits) = (0, outer[0] & !inner[0]);
        std::iter::from_fn(move || {
            while bits == 0 {
                word += 1;
                bits = outer.get(word)? & !inner[word];
            }
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            Some(word * 64 + bit)
        })
    }

    /// Members of `outer` that are not in `inner`, as a list.
    pub fn difference(&self, outer: usize, inner: usize) -> Vec<usize> {
        let mut members = Vec::with_capacity(self.size(outer).saturating_sub(self.size(inner)));
        members.extend(self.beyond(outer, inner));
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(dag: &Dag) -> SuccessorSets {
        match SuccessorSets::enumerate(dag, 1_000_000, &|| false) {
            Enumeration::Complete(sets) => sets,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_chain_has_one_set_more_than_vertices() {
        let dag = Dag::new(4, vec![(0, 1), (1, 2), (2, 3)]).unwrap();
        let sets = all(&dag);
        assert_eq!(sets.len(), 5);
        assert_eq!(sets.difference(4, 2), [0, 1]);
        assert_eq!(sets.members(2).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn counts_agree_with_trying_every_subset() {
        // Deterministic pseudo-random graphs; every subset of up to ten vertices is tried.
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for _ in 0..60 {
            let n = 1 + (next() % 10) as usize;
            let mut edges = vec![];
            for u in 0..n as u32 {
                for v in u + 1..n as u32 {
                    if next() % 4 == 0 {
                        edges.push((u, v));
                    }
                }
            }
            let dag = Dag::new(n, edges).unwrap();
            let closed =
                |mask: u32| (0..n).all(|v| mask >> v & 1 == 0 || dag.successors(v).all(|w| mask >> w & 1 == 1));
            let expected = (0..1u32 << n).filter(|&mask| closed(mask)).count();
            let sets = all(&dag);
            assert_eq!(sets.len(), expected);
            assert!((n + 1..=expected).contains(&SuccessorSets::at_least(&dag)));
            assert!((1..sets.len()).all(|i| sets.size(i - 1) <= sets.size(i)));
            for i in 0..sets.len() {
                let below = |j: &usize| sets.size(*j) + 1 == sets.size(i) && sets.is_subset(*j, i);
                let expected: Vec<u32> = (0..i).filter(below).map(|j| j as u32).collect();
                assert_eq!(sets.below(i), Some(expected.as_slice()));
                let lacking = |&j: &u32| (j, sets.beyond(i, j as usize).next().unwrap() as u32);
                assert_eq!(sets.steps_below(i).collect::<Vec<_>>(), expected.iter().map(lacking).collect::<Vec<_>>());
            }
            // Marks that many sets share.
            let Enumeration::Complete(confused) =
                SuccessorSets::enumerate_by(&dag, 1_000_000, &|| false, |v| u64::from(v % 3))
            else {
                panic!()
            };
            assert_eq!((&confused.bits, &confused.below), (&sets.bits, &sets.below));
            assert_eq!(confused.lacking, sets.lacking);
            let chains = SuccessorSets::from_orders(&dag, &[dag.topological_order().to_vec(), dag.stack_order()], 1);
            assert_eq!((chains.below(0), chains.steps_below(0).count()), (None, 0));
            let order = dag.stack_order();
            let placed = SuccessorSets::at_places(&dag, &order, &[0, n / 2, n / 2, n]);
            assert_eq!(placed.len(), 2 + usize::from(n / 2 > 0));
            let suffix = |from: usize| order[from..].iter().fold(0, |m: u32, v| m | 1 << v);
            let mask = |set: usize| (0..n).filter(|&v| placed.contains(set, v)).fold(0, |m: u32, v| m | 1 << v);
            assert_eq!((mask(0), mask(1), mask(placed.len() - 1)), (0, suffix(n / 2), suffix(0)));
            let rows: Vec<Vec<u64>> = (0..chains.len()).rev().chain([0, 1]).map(|i| chains.row(i).to_vec()).collect();
            let again = SuccessorSets::of_rows(&dag, rows);
            assert_eq!((again.len(), again.below(0)), (chains.len(), None));
            assert!((0..chains.len()).all(|i| (0..chains.len()).any(|j| again.row(i) == chains.row(j))));
            assert!((1..again.len()).all(|i| again.size(i - 1) <= again.size(i)));
            assert_eq!(SuccessorSets::of_rows(&dag, []).len(), 2);
            let sparse = SuccessorSets::from_orders(&dag, &[dag.stack_order()], 3);
            assert_eq!((sparse.len(), sparse.size(sparse.len() - 1)), (1 + n.div_ceil(3), n));
            for i in 0..chains.len() {
                let mask = (0..n).filter(|&v| chains.contains(i, v)).fold(0, |m, v| m | 1 << v);
                assert!(closed(mask));
            }
        }
    }

    #[test]
    fn parts_without_edges_to_one_another_multiply() {
        let chains = |first: u32, count: u32, length: u32| {
            let link = move |i: u32| (i + 1..i + length).map(|v| (v - 1, v));
            (0..count).flat_map(move |c| link(first + c * length))
        };
        // Two chains of three, a vertex behind both, three single ones, and one behind these.
        let mut edges: Vec<(u32, u32)> = chains(0, 2, 3).chain([(2, 6), (5, 6)]).collect();
        edges.extend((7..10).flat_map(|v| [(6, v), (v, 10)]));
        let dag = Dag::new(11, edges).unwrap();
        assert_eq!((SuccessorSets::at_least(&dag), all(&dag).len()), (16 + 1 + 7 + 1, 25));
        assert_eq!(SuccessorSets::at_least(&Dag::new(1, vec![]).unwrap()), 2);
        assert_eq!(SuccessorSets::at_least(&Dag::new(5, chains(0, 1, 5).collect()).unwrap()), 6);
        // More than can be counted, known without a look at any.
        let many = Dag::new(900, chains(0, 30, 30).collect()).unwrap();
        assert_eq!(SuccessorSets::at_least(&many), usize::MAX);
        assert!(matches!(SuccessorSets::enumerate(&many, 60_000, &|| panic!()), Enumeration::TooMany));
    }

    #[test]
    fn the_limit_and_cancel_stop_it() {
        // In one part: 0 -> 1 <- 2 -> 3 and so on.
        let dag = Dag::new(30, (1..30).map(|v| if v % 2 == 1 { (v - 1, v) } else { (v, v - 1) }).collect()).unwrap();
        assert!(matches!(SuccessorSets::enumerate(&dag, 1000, &|| false), Enumeration::TooMany));
        assert!(matches!(SuccessorSets::enumerate(&dag, 1000, &|| true), Enumeration::Cancelled));
    }
}
