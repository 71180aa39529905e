//! What one thread does for a probe: the undominated pairs of one set after another.
//!
//! The inner sets of a stage are looked for in windows of the sources, or where these are wide by a walk down from the
//! outer set; [`super::probe`] says why that finds all of them.

use super::{
    model::Crossing,
    modes::{Oracle, StageKey},
    probe::{Allowed, FoundPair, NONE, Probe, Question},
};

/// With more inner sets than this in the windows of a set, walking down from it is faster than trying them all.
const MANY_CANDIDATES: usize = 10_000;
/// Every so many inner sets from the first of its own on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) hand: usize,
    pub(super) hands: usize,
}

impl Share {
    pub(super) const ALL: Share = Share { hand: 0, hands: 1 };
}

/// What one thread needs to find frontiers.
pub(super) struct Worker<'m, 'a> {
    pub(super) oracle: Oracle<'m, 'a>,
    /// Fewest devices with so many replicas or fewer, for the set at hand.
    fewest: Vec<u32>,
    /// The inner set of the stage that does with these.
    by: Vec<u32>,
    /// By set: the outer set whose walk saw it last.
    stamps: Vec<u32>,
    stack: Vec<u32>,
}

impl<'m, 'a> Worker<'m, 'a> {
    pub(super) fn new(oracle: Oracle<'m, 'a>) -> Self {
        Worker { oracle, fewest: vec![], by: vec![], stamps: vec![], stack: vec![] }
    }

    /// Clears what belongs to one question over so many sets.
    pub(super) fn begin(&mut self, question: &Question<'_>, sets: usize) {
        self.fewest = vec![NONE; question.most_replicas as usize + 1];
        self.by = vec![NONE; self.fewest.len()];
        self.stamps = vec![NONE; sets];
    }

    /// The undominated pairs of a set, from those of a share of all smaller ones, each with the set behind its first stage.
    pub(super) fn frontier(&mut self, probe: &Probe<'_, '_, '_>, outer: usize, share: Share) -> Vec<FoundPair> {
        let crossings = probe.model.crossings(outer);
        let Some(most) = probe.most_devices(outer) else { return vec![] };
        let mut touched = usize::MAX;
        // What comes next for a smaller set mostly does for this one: with few devices known, most others are out at once.
        for &inner in probe.behind_smaller(outer).iter().skip(share.hand).step_by(share.hands) {
            if probe.pairs(inner as usize).last().is_some_and(|&(_, devices)| devices < most) {
                self.extend_all(probe, outer, inner as usize, most, &crossings, &mut touched);
            }
        }
        let windows = probe.windows(outer, most);
        let candidates: usize = windows.iter().map(|(from, to)| to - from).sum();
        if candidates > MANY_CANDIDATES && probe.model.sets.below(outer).is_some() {
            self.walk(probe, outer, most, &crossings, share, &mut touched);
        } else {
            let (device_seconds, target) = (probe.model.device_seconds[outer], probe.question.target);
            let room = f64::from(most) + probe.room();
            let row = probe.model.sets.row(outer);
            for (from, to) in windows {
                for position in (from + share.hand..to).step_by(share.hands) {
                    if !probe.sources.is_within(position, row) {
                        continue;
                    }
                    let source = &probe.sources.settled[position];
                    if !source.leaves_enough(device_seconds, target, room) {
                        continue;
                    }
                    let inner = source.set as usize;
                    let Some(&(_, devices)) = probe.pairs(inner).last() else { continue };
                    if devices < most && inner < outer {
                        self.extend_all(probe, outer, inner, most, &crossings, &mut touched);
                    }
                }
            }
            for &inner in probe.sources.unsettled(&probe.model.sets, outer).iter().skip(share.hand).step_by(share.hands)
            {
                if probe.pairs(inner as usize).last().is_some_and(|&(_, devices)| devices < most) {
                    self.extend_all(probe, outer, inner as usize, most, &crossings, &mut touched);
                }
            }
        }
        self.collect(touched)
    }

    /// Visits the inner sets of `outer` from the largest down, each once, and turns back where the stage has become too
    /// slow or too large for any degree: larger stages only get worse.
    fn walk(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        outer: usize,
        most: u32,
        crossings: &[Crossing],
        share: Share,
        touched: &mut usize,
    ) {
        self.stamps[outer] = outer as u32;
        self.stack.clear();
        self.stack.push(outer as u32);
        while let Some(set) = self.stack.pop() {
            for &inner in probe.model.sets.below(set as usize).unwrap_or_default() {
                let inner = inner as usize;
                if self.stamps[inner] == outer as u32 {
                    continue;
                }
                self.stamps[inner] = outer as u32;
                let may_fit = probe.question.allowed.iter().any(|allowed| {
                    let most_d = (most / probe.model.degrees[allowed.degree].t).min(probe.question.most_replicas);
                    probe.model.may_fit(
                        allowed.degree,
                        outer,
                        inner,
                        most_d,
                        probe.question.target,
                        self.oracle.memory_bytes(),
                    )
                });
                if !may_fit {
                    continue;
                }
                self.stack.push(inner as u32);
                let own = inner % share.hands == share.hand;
                if own
                    && probe.sources.useful(inner)
                    && probe.pairs(inner).last().is_some_and(|&(_, devices)| devices < most)
                {
                    self.extend_all(probe, outer, inner, most, crossings, touched);
                }
            }
        }
    }

    fn extend_all(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        outer: usize,
        inner: usize,
        most: u32,
        crossings: &[Crossing],
        touched: &mut usize,
    ) {
        if !self.may_be_better(probe, (outer, inner), most, crossings) {
            return;
        }
        for allowed in probe.question.allowed {
            self.extend(probe, allowed, (outer, inner), most, crossings, touched);
        }
    }

    /// Whether a stage of `outer` in front of `inner` may do with fewer devices than are known, going by what its nodes and
    /// edges take at the least: most may not, and nothing else needs to be known of them.
    #[inline]
    fn may_be_better(
        &self,
        probe: &Probe<'_, '_, '_>,
        (outer, inner): (usize, usize),
        most: u32,
        crossings: &[Crossing],
    ) -> bool {
        let Some((devices, replicas)) = probe.least_stage(outer, inner, crossings) else { return false };
        probe.pairs(inner).iter().any(|&(s, j)| {
            let all = j.saturating_add(devices);
            all <= most && self.fewest.get((s + replicas) as usize).is_some_and(|&known| all < known)
        })
    }

    /// Puts the stage `outer \ inner` at one degree in front of every pair of the inner frontier.
    fn extend(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        allowed: &Allowed,
        (outer, inner): (usize, usize),
        most: u32,
        crossings: &[Crossing],
        touched: &mut usize,
    ) {
        let target = probe.question.target;
        let t = probe.model.degrees[allowed.degree].t;
        let pairs = probe.pairs(inner);
        // Whatever is behind, one more microbatch is in flight than without it.
        let least_in_flight = if pairs[0].0 > 0 { 2.0 } else { 1.0 };
        let memory_bytes = self.oracle.memory_bytes();
        let stage = (outer, inner);
        let Some(least_d) = probe.model.least_replicas(allowed.degree, stage, least_in_flight, target, memory_bytes)
        else {
            return;
        };
        let promising = |d: u32| {
            let (last, devices) = (pairs[pairs.len() - 1], t.saturating_mul(d));
            devices.saturating_add(last.1) <= most
                && pairs
                    .iter()
                    .any(|&(s, j)| self.fewest.get((s + d) as usize).is_some_and(|&known| devices + j < known))
        };
        if !promising(least_d) {
            return;
        }
        let Some(stage) = probe.model.stage(allowed.degree, outer, inner, crossings) else { return };
        let least_d = least_d.max(probe.model.least_replicas_of(&stage, target));
        let key = StageKey { degree: allowed.degree as u32, outer: outer as u32, inner: inner as u32 };
        let mut next = 0;
        for &d in &allowed.replicas[allowed.replicas.partition_point(|&d| d < least_d)..] {
            // Pairs with too many replicas for this d have too many for every larger one.
            let reachable = pairs.partition_point(|&(s, _)| s + d <= probe.question.most_replicas);
            let devices = t.saturating_mul(d);
            // What is no better than known with d replicas is not with more of them either.
            let better = |&(s, j): &(u32, u32)| devices + j <= most && devices + j < self.fewest[(s + d) as usize];
            while next < reachable && !better(&pairs[next]) {
                next += 1;
            }
            if next >= reachable || devices.saturating_add(pairs[pairs.len() - 1].1) > most {
                return;
            }
            let last = (next..reachable).rev().find(|&i| better(&pairs[i])).unwrap_or(next);
            if !self.oracle.fast_enough(key, &stage, d, target) {
                continue;
            }
            let in_flight = |i: usize| (pairs[i].0 + d).div_ceil(d);
            let range = in_flight(next)..=in_flight(last);
            let Some(most_in_flight) = self.oracle.most_in_flight(key, &stage, d, range, target) else {
                continue;
            };
            for (i, &(s, j)) in pairs.iter().enumerate().take(last + 1).skip(next) {
                // A pair may lack devices where a later one, with fewer, does not.
                if devices + j <= most && in_flight(i) <= most_in_flight {
                    self.lower((s + d) as usize, devices + j, inner as u32, touched);
                }
            }
        }
    }

    /// Notes that so many devices do with `behind` replicas, and so with more.
    fn lower(&mut self, behind: usize, devices: u32, inner: u32, touched: &mut usize) {
        let known = self.fewest[behind..].iter_mut().zip(&mut self.by[behind..]);
        for (known, by) in known.take_while(|(known, _)| **known > devices) {
            (*known, *by) = (devices, inner);
        }
        *touched = behind.min(*touched);
    }

    /// Takes the undominated pairs out of the scratch table and clears it.
    fn collect(&mut self, first: usize) -> Vec<FoundPair> {
        let mut found = vec![];
        let mut fewest = NONE;
        for (s, (known, &by)) in self.fewest.iter_mut().zip(&self.by).enumerate().skip(first) {
            let devices = std::mem::replace(known, NONE);
            if devices < fewest {
                fewest = devices;
                found.push((s as u32, devices, by));
            }
        }
        found
    }
}
