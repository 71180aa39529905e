//! What no mapping can do better than, whoever is placed where.
//!
//! 1. Sorted: the `i` largest demands lie on `i` different pairs, the worst of which is no wider than the `i`-th widest.
//! 2. Neighbours: the `i`-th largest flow of a worker goes to or comes from its device's `i`-th widest neighbour at best.
//! 3. Components: where the workers that talk are more than any part of the topology joined at a width, some flow among
//!    them goes over a narrower pair.
//! 4. Rings: a ring's narrowest step is no wider than what its workers' devices could have in the best case, nor than the
//!    widest width at which some part of the topology has as many devices.
//!
//! `O(devices² log devices + flows log flows)`.

use super::Instance;

impl Instance<'_> {
    /// Seconds that every mapping takes at least.
    pub fn lower_bound(&self) -> f64 {
        [self.sorted(), self.neighbours(), self.components(), self.rings()].into_iter().fold(0.0, f64::max)
    }

    /// All widths of pairs, widest first.
    fn widths(&self) -> Vec<f64> {
        let n = self.devices();
        let pairs = (0..n).flat_map(|a| (0..n).filter(move |&b| a != b).map(move |b| (a, b)));
        let mut widths: Vec<f64> = pairs.map(|(a, b)| self.matrix.at(a, b)).collect();
        widths.sort_unstable_by(|a, b| b.total_cmp(a));
        widths
    }

    fn sorted(&self) -> f64 {
        let mut bytes: Vec<f64> = self.demands.flows.iter().map(|flow| flow.bytes).collect();
        bytes.sort_unstable_by(|a, b| b.total_cmp(a));
        bytes.iter().zip(self.widths()).map(|(bytes, width)| bytes / width).fold(0.0, f64::max)
    }

    fn neighbours(&self) -> f64 {
        let n = self.devices();
        let order = |mut values: Vec<f64>| {
            values.sort_unstable_by(|a, b| b.total_cmp(a));
            values
        };
        let wide = |out: bool| -> Vec<Vec<f64>> {
            let at = |a: usize, b: usize| if out { self.matrix.at(a, b) } else { self.matrix.at(b, a) };
            (0..n).map(|a| order((0..n).filter(|&b| b != a).map(|b| at(a, b)).collect())).collect()
        };
        let mut bound = 0.0f64;
        for (widths, flows) in [(wide(true), &self.leaving), (wide(false), &self.arriving)] {
            for own in flows.iter().filter(|own| !own.is_empty()) {
                let bytes = order(own.iter().map(|&flow| self.demands.flows[flow].bytes).collect());
                let at = |widths: &Vec<f64>| bytes.iter().zip(widths).map(|(b, w)| b / w).fold(0.0, f64::max);
                bound = bound.max(widths.iter().map(at).fold(f64::INFINITY, f64::min));
            }
        }
        bound
    }

    /// Widths from the narrowest up, each with the size of the largest part that pairs of that width or more join; of equal
    /// sizes the narrowest width.
    fn parts(&self, distinct: &[f64]) -> Vec<(f64, usize)> {
        let n = self.devices();
        let largest_part = |width: f64| {
            let joined = |a: usize, b: usize| self.matrix.at(a, b).max(self.matrix.at(b, a)) >= width;
            largest(n, (0..n).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|&(a, b)| joined(a, b)))
        };
        let mut parts: Vec<(f64, usize)> = distinct.iter().rev().map(|&width| (width, largest_part(width))).collect();
        parts.dedup_by_key(|part| part.1);
        parts
    }

    fn components(&self) -> f64 {
        let mut distinct = self.widths();
        distinct.dedup();
        let mut flows: Vec<_> = self.demands.flows.iter().collect();
        flows.sort_unstable_by(|a, b| b.bytes.total_cmp(&a.bytes));
        let mut sizes: Vec<f64> = flows.iter().map(|flow| flow.bytes).collect();
        sizes.dedup();
        let mut bound = 0.0f64;
        // Where a part is too small for the talkers of at least these bytes, one of them goes over less.
        let parts = self.parts(&distinct);
        for bytes in sizes {
            let talkers = largest(
                self.workers(),
                flows.iter().take_while(|flow| flow.bytes >= bytes).map(|flow| (flow.from, flow.to)),
            );
            // The widest width that all of them could have; what is above cannot be reached.
            let narrower = distinct.iter().rev().take_while(|&&width| largest_of(&parts, width) >= talkers).last();
            if let Some(width) = narrower {
                bound = bound.max(bytes / width);
            }
        }
        bound
    }

    fn rings(&self) -> f64 {
        let n = self.devices();
        // Both steps of a device in a ring: no wider than its second widest neighbour, of three devices or more.
        let mut second: Vec<f64> = (0..n)
            .map(|a| {
                let mut widths: Vec<f64> =
                    (0..n).filter(|&b| b != a).map(|b| self.matrix.at(a, b).max(self.matrix.at(b, a))).collect();
                widths.sort_unstable_by(|a, b| b.total_cmp(a));
                widths.get(1).or(widths.first()).copied().unwrap_or(f64::INFINITY)
            })
            .collect();
        second.sort_unstable_by(|a, b| b.total_cmp(a));
        let mut distinct = self.widths();
        distinct.dedup();
        let parts = self.parts(&distinct);
        let widest = distinct.first().copied().unwrap_or(f64::INFINITY);
        // The widest width at which a part has as many devices: a ring stays within one part.
        let within = |size: usize| distinct.iter().find(|&&width| largest_of(&parts, width) >= size).copied();
        let bound = |group: &super::Group| {
            let size = group.workers.len();
            let steps = match size {
                0 | 1 => return 0.0,
                2 => widest,
                _ => second.get(size - 1).copied().unwrap_or(f64::INFINITY),
            };
            group.bytes / steps.min(within(size).unwrap_or(f64::INFINITY))
        };
        self.demands.groups.iter().map(bound).fold(0.0, f64::max)
    }
}

/// The size of the largest part at a width, from sizes at some widths, narrowest first.
fn largest_of(parts: &[(f64, usize)], width: f64) -> usize {
    parts.iter().take_while(|part| part.0 <= width).last().map_or(0, |part| part.1)
}

/// The size of the largest part of `count` things that pairs join.
fn largest(count: usize, pairs: impl Iterator<Item = (usize, usize)>) -> usize {
    let mut part: Vec<usize> = (0..count).collect();
    fn root(part: &mut [usize], mut at: usize) -> usize {
        while part[at] != at {
            part[at] = part[part[at]];
            at = part[at];
        }
        at
    }
    for (a, b) in pairs {
        let (a, b) = (root(&mut part, a), root(&mut part, b));
        part[a.max(b)] = a.min(b);
    }
    let mut sizes = vec![0; count];
    for at in 0..count {
        sizes[root(&mut part, at)] += 1;
    }
    sizes.into_iter().max().unwrap_or(0)
}
