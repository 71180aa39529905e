//! Lower bounds on the seconds of every mapping.
//!
//! 1. Components: if a connected set of workers is larger than any component of the topology at some width, one of its
//!    flows uses a narrower pair.
//! 2. Rings: the narrowest step of a ring is at most as wide as the `r`-th largest second-widest pair of a device. It
//!    is also at most the largest width at which some component has `r` devices.
//!
//! The components at every width come from all pairs, sorted by width. Time is `O(devices² log devices + flows · log
//! flows)`, memory `O(devices² + flows)`. A cancelled search skips bounds: the result is then lower, but still a lower
//! bound.

use super::{MappingInstance, ReductionGroup};
use crate::search::Search;

/// Size of the largest component of the topology at each width.
struct ComponentSizes {
    /// Widths, the widest first, each with the size of the largest component over pairs of at least that width. Only
    /// widths at which the size grows.
    largest: Vec<(f64, usize)>,
}

impl ComponentSizes {
    /// Computes the components over all devices; `None` if the search was cancelled.
    fn of(instance: &MappingInstance<'_>, search: &Search) -> Option<Self> {
        let n = instance.devices();
        let mut pairs: Vec<(f64, usize, usize)> = vec![];
        for a in 0..n {
            if search.cancelled() {
                return None;
            }
            let width = |b: usize| instance.matrix.at(a, b).max(instance.matrix.at(b, a));
            pairs.extend((0..a).map(|b| (width(b), a, b)));
        }
        pairs.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let (mut joined, mut largest) = (UnionFind::new(n), vec![]);
        for (width, a, b) in pairs {
            let before = joined.largest;
            joined.join(a, b);
            if joined.largest > before {
                largest.push((width, joined.largest));
            }
        }
        Some(ComponentSizes { largest })
    }

    /// Largest width at which some component has at least `size` devices.
    fn widest(&self, size: usize) -> Option<f64> {
        let at = self.largest.partition_point(|part| part.1 < size);
        self.largest.get(at).map(|part| part.0)
    }
}

/// Union-find with the size of the largest component.
struct UnionFind {
    part: Vec<usize>,
    size: Vec<usize>,
    /// Size of the largest component.
    largest: usize,
}

impl UnionFind {
    fn new(count: usize) -> Self {
        UnionFind { part: (0..count).collect(), size: vec![1; count], largest: count.min(1) }
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.part[at] != at {
            self.part[at] = self.part[self.part[at]];
            at = self.part[at];
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            let (into, from) = if self.size[a] < self.size[b] { (b, a) } else { (a, b) };
            self.part[from] = into;
            self.size[into] += self.size[from];
            self.largest = self.largest.max(self.size[into]);
        }
    }
}

impl MappingInstance<'_> {
    /// Lower bound on the seconds of every mapping; weaker if the search was cancelled.
    pub fn lower_bound(&self, search: &Search) -> f64 {
        let Some(parts) = ComponentSizes::of(self, search) else { return 0.0 };
        self.components(&parts).max(self.rings(&parts, search))
    }

    fn components(&self, parts: &ComponentSizes) -> f64 {
        let mut flows: Vec<_> = self.demands.flows.iter().collect();
        flows.sort_unstable_by(|a, b| b.bytes.total_cmp(&a.bytes));
        let mut talkers = UnionFind::new(self.workers());
        let mut bound = 0.0f64;
        // If no component is large enough for the workers joined by flows of at least these bytes, one flow uses a
        // narrower pair.
        for alike in flows.chunk_by(|a, b| a.bytes == b.bytes) {
            alike.iter().for_each(|flow| talkers.join(flow.from, flow.to));
            // Largest width at which a component has that many devices; no mapping gives all of them a larger one.
            if let Some(width) = parts.widest(talkers.largest) {
                bound = bound.max(alike[0].bytes / width);
            }
        }
        bound
    }

    fn rings(&self, parts: &ComponentSizes, search: &Search) -> f64 {
        let n = self.devices();
        // A device in a ring of three or more uses two pairs: at best, the narrower one is its second widest.
        let mut second_widest = vec![];
        for a in (0..n).take_while(|_| self.demands.groups.iter().any(|group| group.workers.len() > 2)) {
            if search.cancelled() {
                return 0.0;
            }
            let (mut first, mut second) = (0.0f64, 0.0f64);
            for b in (0..n).filter(|&b| b != a) {
                let width = self.matrix.at(a, b).max(self.matrix.at(b, a));
                if width > first {
                    (first, second) = (width, first);
                } else {
                    second = second.max(width);
                }
            }
            second_widest.push(second);
        }
        second_widest.sort_unstable_by(|a, b| b.total_cmp(a));
        let bound = |group: &ReductionGroup| {
            let size = group.workers.len();
            let steps = match size {
                0 | 1 => return 0.0,
                2 => f64::INFINITY,
                _ => second_widest.get(size - 1).copied().unwrap_or(f64::INFINITY),
            };
            // A ring lies within one component.
            group.bytes / steps.min(parts.widest(size).unwrap_or(f64::INFINITY))
        };
        self.demands.groups.iter().map(bound).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cluster::topology::{PairMatrix, named},
        mapping::{CommunicationKinds, Demands, Flow},
        random::SplitMix,
    };

    /// Size of the largest component of `count` items, by relabelling.
    fn largest(count: usize, joined: impl Fn(usize, usize) -> bool) -> usize {
        let mut part: Vec<usize> = (0..count).collect();
        for a in 0..count {
            for b in (0..count).filter(|&b| joined(a, b)) {
                let (keep, gone) = (part[a], part[b]);
                part.iter_mut().filter(|part| **part == gone).for_each(|part| *part = keep);
            }
        }
        (0..count).map(|own| part.iter().filter(|&&part| part == own).count()).max().unwrap_or(0)
    }

    /// Random demands, and widths that differ for every pair or take few values.
    fn measured(random: &mut SplitMix, n: usize, few: bool) -> (Demands, PairMatrix) {
        let mut draw = |values: u64| (1 + random.next_u64() % values) as f64;
        let values = if few { 4 } else { 1 << 40 };
        let rows: Vec<Vec<f64>> =
            (0..n).map(|a| (0..n).map(|b| if a == b { f64::INFINITY } else { draw(values) }).collect()).collect();
        let workers = n - (draw(2) as usize - 1);
        let mut demands = Demands::chain(&vec![1.0; workers - 1]);
        demands.flows.clear();
        for from in 0..workers {
            for to in (0..workers).filter(|&to| to != from) {
                if draw(4) < 2.0 {
                    demands.flows.push(Flow { from, to, bytes: draw(values) });
                }
            }
        }
        for size in 2..=workers {
            demands.groups.push(ReductionGroup { workers: (0..size).collect(), bytes: draw(values) });
        }
        (demands, PairMatrix::new(&rows).unwrap())
    }

    #[test]
    fn parts_and_bounds_are_those_of_every_width_looked_at_by_itself() {
        let topology = named("dgx-1").unwrap();
        let mut random = SplitMix::new(21);
        for round in 0..120 {
            let n = 2 + round % 9;
            let (demands, matrix) = measured(&mut random, n, round % 2 == 0);
            let instance = MappingInstance::among(&topology, matrix, &demands, CommunicationKinds::default());
            let parts = ComponentSizes::of(&instance, &Search::default()).unwrap();
            let wide = |a: usize, b: usize| instance.matrix.at(a, b).max(instance.matrix.at(b, a));
            let mut widths: Vec<f64> = (0..n * n).map(|i| instance.matrix.at(i / n, i % n)).collect();
            widths.retain(|width| width.is_finite());
            widths.sort_unstable_by(|a, b| b.total_cmp(a));
            let at = |width: f64| largest(n, |a, b| a != b && wide(a, b) >= width);
            let widest = |size: usize| widths.iter().copied().find(|&width| at(width) >= size);
            for size in 2..=n {
                assert_eq!(parts.widest(size), widest(size), "{round} {size}");
            }
            let talkers = |bytes: f64| {
                let talk = |a: usize, b: usize| {
                    demands.flows.iter().any(|flow| (flow.from, flow.to) == (a, b) && flow.bytes >= bytes)
                };
                largest(demands.workers.len(), talk)
            };
            let flows = demands.flows.iter().map(|flow| flow.bytes);
            let components = flows.map(|bytes| bytes / widest(talkers(bytes)).unwrap()).fold(0.0, f64::max);
            assert_eq!(instance.components(&parts), components, "{round}");
            if n <= 6 {
                let least = instance.exhaustive(&Search::default()).unwrap();
                assert!(instance.lower_bound(&Search::default()) <= instance.cost(&least).seconds, "{round}");
            }
        }
    }

    #[test]
    fn a_search_that_was_stopped_has_a_bound_that_is_no_higher() {
        let topology = named("dgx-1").unwrap();
        let (demands, matrix) = measured(&mut SplitMix::new(5), 8, false);
        let instance = MappingInstance::among(&topology, matrix, &demands, CommunicationKinds::default());
        let stopped = Search::default();
        stopped.cancel();
        assert!(instance.lower_bound(&stopped) <= instance.lower_bound(&Search::default()));
    }
}
