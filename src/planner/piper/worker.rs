//! What one thread does for a probe: the undominated pairs of one set after another.
//!
//! The inner sets of a stage are looked for in windows of the sources, or where these are wide by a walk down from the
//! outer set; [`super::probe`] says why that finds all of them.

use std::borrow::Cow;

use super::{
    blocks::SIZES,
    lean::{self, Within},
    model::Crossing,
    modes::{Oracle, StageKey},
    probe::{Allowed, FoundPair, Probe, Question},
    scratch::Scratch,
    sources::Run,
    view::View,
};

/// With more inner sets than this in the windows of a set, walking down from it is faster than trying them all.
const MANY_CANDIDATES: usize = 10_000;

/// A set whose stages are tried.
pub(super) struct Outer<'m> {
    pub(super) set: usize,
    /// Devices that may be of use.
    most: u32,
    /// The edges into it.
    pub(super) crossings: Cow<'m, [Crossing]>,
    figures: Option<lean::Outer>,
    within: Within,
}

impl<'m> Outer<'m> {
    pub(super) fn new(probe: &Probe<'_, 'm, '_>, set: usize, most: u32, memory_bytes: f64) -> Self {
        let crossings = probe.model.crossings(set);
        let figures = probe.lean.map(|lean| lean.outer(probe.model, set, &crossings));
        let within = Within::new(probe.model, probe.question.target, memory_bytes);
        Outer { set, most, crossings, figures, within }
    }

    /// By degree, the replicas that the stage in front of `inner` needs at the least with so many behind it, and what its edges take;
    /// nothing is changed where sums do not tell.
    #[inline]
    pub(super) fn replicas(
        &self,
        probe: &Probe<'_, '_, '_>,
        (inner, behind): (usize, u32),
        needed: &mut [f64],
        edges_s: &mut [f64],
    ) {
        if let (Some(lean), Some(figures)) = (probe.lean, &self.figures) {
            lean.replicas(probe.model, figures, inner, self.within.behind(behind), needed, edges_s);
        }
    }
}

/// A set that is begun.
pub(super) enum Begun<'m> {
    /// Nothing better is to be found.
    Found(Vec<FoundPair>),
    Open(Box<Open<'m>>),
}

/// A set that stages were put in front of others for, but not yet of all, with the pairs found so far.
pub(super) struct Open<'m> {
    pub(super) outer: Outer<'m>,
    scratch: Scratch,
}

/// What one thread needs to find frontiers.
pub(super) struct Worker<'m, 'a> {
    pub(super) oracle: Oracle<'m, 'a>,
    /// The pairs of the set at hand.
    scratch: Scratch,
    spare: Vec<Scratch>,
    /// For the stage at hand, by degree: the replicas it needs by its sums; 1 where these are not known.
    needed: Vec<f64>,
    /// And what its edges take at the least, seconds on one replica.
    edges_s: Vec<f64>,
    /// The fewest that are allowed, if these may be of use.
    least_d: Vec<Option<u32>>,
    /// By set: the number of the walk that saw it last; a set is walked from for every number of stages.
    stamps: Vec<u32>,
    walks: u32,
    stack: Vec<u32>,
    /// With more inner sets than this in its windows a set is walked down from.
    pub(super) many: usize,
}

impl<'m, 'a> Worker<'m, 'a> {
    pub(super) fn new(oracle: Oracle<'m, 'a>) -> Self {
        Worker {
            oracle,
            scratch: Scratch::default(),
            spare: vec![],
            needed: vec![],
            edges_s: vec![],
            least_d: vec![],
            stamps: vec![],
            walks: 0,
            stack: vec![],
            many: MANY_CANDIDATES,
        }
    }

    /// Clears what belongs to one question over so many sets.
    pub(super) fn prepare(&mut self, question: &Question<'_>, degrees: usize, sets: usize) {
        self.needed = vec![1.0; degrees];
        self.edges_s = vec![0.0; degrees];
        self.least_d = vec![None; question.allowed.len()];
        self.scratch = Scratch::new(question.most_replicas);
        self.spare.clear();
        (self.stamps, self.walks) = (vec![0; sets], 0);
    }

    /// The undominated pairs of a set, from those of all smaller ones, each with the set behind its first stage.
    pub(super) fn frontier(&mut self, view: &View<'_, '_, 'm, 'a>, outer: usize) -> Vec<FoundPair> {
        self.find(view, outer);
        self.scratch.collect()
    }

    /// The same in two steps for one set after another, this one from the sets that are known by now; the pairs, if nothing better
    /// is to be found.
    pub(super) fn begin(&mut self, view: &View<'_, '_, 'm, 'a>, outer: usize) -> Begun<'m> {
        let Some(outer) = self.find(view, outer) else { return Begun::Found(self.scratch.collect()) };
        let spare = self.spare.pop().unwrap_or_else(|| Scratch::new(view.probe.question.most_replicas));
        Begun::Open(Box::new(Open { outer, scratch: std::mem::replace(&mut self.scratch, spare) }))
    }

    /// And this one from those that came in between.
    pub(super) fn end(
        &mut self,
        probe: &Probe<'_, 'm, 'a>,
        open: Open<'m>,
        between: impl Iterator<Item = usize>,
    ) -> Vec<FoundPair> {
        let at_hand = std::mem::replace(&mut self.scratch, open.scratch);
        for inner in between {
            self.extend_all(probe, &open.outer, (inner, probe.pairs(inner)));
            if self.scratch.is_closed() {
                break;
            }
        }
        let found = self.scratch.collect();
        self.spare.push(std::mem::replace(&mut self.scratch, at_hand));
        found
    }

    /// Finds the pairs of a set that stages in front of known ones make; the set, unless nothing better is to be found.
    fn find(&mut self, view: &View<'_, '_, 'm, 'a>, outer: usize) -> Option<Outer<'m>> {
        let probe = view.probe;
        let least = probe.earlier.map(|earlier| &earlier.least[outer]);
        let most = self.scratch.begin(|by_replicas| probe.too_many_devices(outer, by_replicas), least);
        if self.scratch.is_closed() {
            return None;
        }
        for (replicas, devices, by) in probe.reached.iter().flat_map(|reached| reached.of(outer)) {
            self.scratch.lower(replicas, devices, by);
        }
        if self.scratch.is_closed() {
            return None;
        }
        let outer = Outer::new(probe, outer, most, self.oracle.memory_bytes());
        // What comes next for a smaller set mostly does for this one: with few devices known, most others are out at once.
        for inner in view.behind_smaller(outer.set) {
            self.extend_all(probe, &outer, (inner as usize, view.useful_pairs(inner as usize)));
        }
        if !self.scratch.is_closed() {
            self.try_others(view, &outer);
        }
        (!self.scratch.is_closed()).then_some(outer)
    }

    /// Tries the stages in front of all smaller sets.
    fn try_others(&mut self, view: &View<'_, '_, '_, '_>, outer: &Outer<'_>) {
        let &Outer { set, most, .. } = outer;
        let View { probe, sources, .. } = *view;
        let windows = probe.windows(&sources.settled, set, most);
        let candidates: usize = windows.iter().map(|(from, to)| to - from).sum();
        if candidates > self.many && probe.model.sets.below(set).is_some() {
            self.walk(view, outer);
            return;
        }
        let (device_seconds, target) = (probe.model.device_seconds[set], probe.question.target);
        let room = f64::from(most) + probe.room();
        let row = probe.model.sets.row(set);
        for (from, to) in windows {
            let (mut next, mut ends) = (from, [from; SIZES.len()]);
            'next: while next < to {
                let position = next;
                for (size, end) in ends.iter_mut().enumerate() {
                    if *end <= position {
                        let run = sources.run(size, position);
                        *end = run.end as usize;
                        if self.is_useless(probe, outer, row, size, run) {
                            next = *end;
                            continue 'next;
                        }
                    }
                }
                next += 1;
                if !sources.is_within(position, row) {
                    continue;
                }
                let source = &sources.settled[position];
                if !source.leaves_enough(device_seconds, target, room) {
                    continue;
                }
                let inner = source.set as usize;
                if inner < set {
                    self.extend_all(probe, outer, (inner, view.useful_pairs(inner)));
                    if self.scratch.is_closed() {
                        return;
                    }
                }
            }
        }
        for inner in view.unsettled(set) {
            self.extend_all(probe, outer, (inner as usize, view.useful_pairs(inner as usize)));
        }
    }

    /// Whether no set of a block is of use behind a stage of `outer`.
    fn is_useless(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        outer: &Outer<'_>,
        row: &[u64],
        size: usize,
        run: &Run,
    ) -> bool {
        let (block, blocks) = (run.block as usize, &probe.blocks[size]);
        if run.devices >= outer.most || !blocks.may_be_within(block, row) {
            return true;
        }
        let Some(figures) = &outer.figures else { return false };
        for allowed in probe.question.allowed {
            let t = probe.model.degrees[allowed.degree].t;
            let mut least = None;
            for &d in &allowed.replicas {
                let replicas = run.replicas.saturating_add(d);
                if t.saturating_mul(d).saturating_add(run.devices) >= self.scratch.to_beat(replicas) {
                    break;
                }
                let (needed, edges_s) = *least.get_or_insert_with(|| {
                    let (seconds, bytes) = blocks.least(figures, block, allowed.degree);
                    let edges_s = outer.within.seconds(bytes);
                    (outer.within.replicas(seconds + edges_s), edges_s)
                });
                if f64::from(d) < needed {
                    continue;
                }
                let (stage, ends) = ((allowed.degree, d, replicas.div_ceil(d)), (outer.set, (size, block)));
                if !self.oracle.is_block_out_of_reach(stage, ends, probe.question.target, edges_s) {
                    return false;
                }
            }
        }
        true
    }

    /// Visits the inner sets of `outer` from the largest down, each once, and turns back where the stage has become too
    /// slow or too large for any degree: larger stages only get worse.
    fn walk(&mut self, view: &View<'_, '_, '_, '_>, outer: &Outer<'_>) {
        let &Outer { set: whole, most, .. } = outer;
        let probe = view.probe;
        self.walks += 1;
        self.stamps[whole] = self.walks;
        self.stack.clear();
        self.stack.push(whole as u32);
        while let Some(set) = self.stack.pop() {
            for &inner in probe.model.sets.below(set as usize).unwrap_or_default() {
                let inner = inner as usize;
                if self.stamps[inner] == self.walks {
                    continue;
                }
                self.stamps[inner] = self.walks;
                let may_fit = probe.question.allowed.iter().any(|allowed| {
                    let most_d = (most / probe.model.degrees[allowed.degree].t).min(probe.question.most_replicas);
                    probe.model.may_fit(
                        allowed.degree,
                        whole,
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
                self.extend_all(probe, outer, (inner, view.useful_pairs(inner)));
            }
        }
    }

    /// Puts every stage `outer \ inner` that may do with fewer devices than are known in front of the pairs of the inner set: most
    /// may not, which its sums tell.
    fn extend_all(&mut self, probe: &Probe<'_, '_, '_>, outer: &Outer<'_>, (inner, pairs): (usize, &[(u32, u32)])) {
        let (Some(&(behind, _)), Some(&(_, fewest))) = (pairs.first(), pairs.last()) else { return };
        if fewest >= outer.most {
            return;
        }
        outer.replicas(probe, (inner, behind), &mut self.needed, &mut self.edges_s);
        // A stage has a replica.
        let most = self.scratch.to_beat(behind + 1).saturating_sub(fewest);
        let mut any = false;
        for (at, allowed) in probe.question.allowed.iter().enumerate() {
            self.least_d[at] = None;
            let (t, needed) = (probe.model.degrees[allowed.degree].t, self.needed[allowed.degree]);
            // Most end here. Not a number where there is neither work nor time for it.
            if needed * f64::from(t) >= f64::from(most) {
                continue;
            }
            let enough = allowed.replicas.partition_point(|&d| f64::from(d) < needed);
            let Some(&d) = allowed.replicas.get(enough) else { continue };
            let devices = t.saturating_mul(d);
            if devices < most && self.scratch.first_better(pairs, d, devices).is_some() {
                self.least_d[at] = Some(d);
                any = true;
            }
        }
        if !any || !self.may_be_better(probe, outer, (inner, pairs)) {
            return;
        }
        for (at, allowed) in probe.question.allowed.iter().enumerate() {
            if let Some(least_d) = self.least_d[at] {
                self.extend(probe, (allowed, least_d), outer, (inner, pairs));
            }
        }
    }

    /// Whether a stage of `outer` in front of `inner` may do with fewer devices than are known, going by what its nodes and
    /// edges take at the least where slower modes make up for memory.
    #[inline]
    fn may_be_better(
        &self,
        probe: &Probe<'_, '_, '_>,
        outer: &Outer<'_>,
        (inner, pairs): (usize, &[(u32, u32)]),
    ) -> bool {
        let least = probe.least_stage((outer.set, inner), &outer.crossings, pairs[0].0);
        let Some((devices, replicas)) = least else { return false };
        self.scratch.first_better(pairs, replicas, devices).is_some()
    }

    /// Puts the stage `outer \ inner` at one degree with at least so many replicas in front of every pair of the inner set.
    fn extend(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        (allowed, least_d): (&Allowed, u32),
        outer: &Outer<'_>,
        (inner, pairs): (usize, &[(u32, u32)]),
    ) {
        let &Outer { set, most, ref crossings, .. } = outer;
        let target = probe.question.target;
        let t = probe.model.degrees[allowed.degree].t;
        let edges_s = self.edges_s[allowed.degree];
        let mut known = None;
        let key = StageKey { degree: allowed.degree as u32, outer: set as u32, inner: inner as u32 };
        let mut next = 0;
        for &d in &allowed.replicas[allowed.replicas.partition_point(|&d| d < least_d)..] {
            // Pairs with too many replicas for this d have too many for every larger one.
            let reachable = pairs.partition_point(|&(s, _)| s + d <= probe.question.most_replicas);
            let devices = t.saturating_mul(d);
            // What is no better than known with d replicas is not with more of them either.
            let left = &pairs[next.min(reachable)..reachable];
            let Some(first) = self.scratch.first_better(left, d, devices) else { return };
            if devices.saturating_add(pairs[pairs.len() - 1].1) > most {
                return;
            }
            next += first;
            let better = |&(s, j): &(u32, u32)| self.scratch.may_be_better(s + d, devices + j);
            let last = (next..reachable).rev().find(|&i| better(&pairs[i])).unwrap_or(next);
            let in_flight = |i: usize| (pairs[i].0 + d).div_ceil(d);
            if self.oracle.is_out_of_reach(key, d, in_flight(next), target, edges_s) {
                continue;
            }
            let (stage, least_d) = match known {
                Some(known) => known,
                None => {
                    let Some(stage) = probe.model.stage(allowed.degree, set, inner, crossings) else { return };
                    *known.insert((stage, probe.model.least_replicas_of(&stage, target)))
                }
            };
            if d < least_d || !self.oracle.fast_enough(key, &stage, d, target) {
                continue;
            }
            let range = in_flight(next)..=in_flight(last);
            let Some(most_in_flight) = self.oracle.most_in_flight(key, &stage, d, range, target) else {
                continue;
            };
            for (i, &(s, j)) in pairs.iter().enumerate().take(last + 1).skip(next) {
                // A pair may lack devices where a later one, with fewer, does not.
                if devices + j <= most && in_flight(i) <= most_in_flight {
                    self.scratch.lower(s + d, devices + j, inner as u32);
                }
            }
        }
    }
}
