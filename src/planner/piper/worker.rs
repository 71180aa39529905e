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
#[derive(Default)]
pub(super) struct Outer<'m> {
    pub(super) set: usize,
    /// Devices that may be of use.
    most: u32,
    /// The edges into it.
    pub(super) crossings: Cow<'m, [Crossing]>,
    figures: lean::Outer,
    within: Within,
}

impl<'m> Outer<'m> {
    /// A set of which so many devices may be of use.
    pub(super) fn new(probe: &Probe<'_, 'm, '_>, set: usize, most: u32, memory_bytes: f64) -> Self {
        let mut outer = Outer::default();
        outer.become_set(probe, set, most, memory_bytes);
        outer
    }

    /// Becomes another one.
    fn become_set(&mut self, probe: &Probe<'_, 'm, '_>, set: usize, most: u32, memory_bytes: f64) {
        (self.set, self.most) = (set, most);
        self.crossings = probe.model.crossings(set);
        if let Some(lean) = probe.lean {
            lean.outer(probe.model, set, &self.crossings, &mut self.figures);
        }
        self.within = Within::new(probe.model, probe.question.target, memory_bytes);
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
        if let Some(lean) = probe.lean {
            lean.replicas(probe.model, &self.figures, inner, self.within.behind(behind), needed, edges_s);
        }
    }
}

/// A set that stages are put in front of others for, with the pairs found so far. On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Open<'m> {
    pub(super) outer: Outer<'m>,
    scratch: Scratch,
}

/// What one thread needs to find frontiers; what it writes to all the time is on cache lines of its own, and nothing is taken
/// from the heap for a set but what is kept of it: else threads wait for one another there.
#[repr(align(128))]
pub(super) struct Worker<'m, 'a> {
    pub(super) oracle: Oracle<'m, 'a>,
    /// Those that are used again.
    #[allow(clippy::vec_box, reason = "large, and handed from list to list")]
    spare: Vec<Box<Open<'m>>>,
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
    /// Inner sets to be tried first, and where others lie.
    likely: Vec<u32>,
    windows: Vec<(usize, usize)>,
    found: Vec<FoundPair>,
    /// With more inner sets than this in its windows a set is walked down from.
    pub(super) many: usize,
}

impl<'m, 'a> Worker<'m, 'a> {
    pub(super) fn new(oracle: Oracle<'m, 'a>) -> Self {
        Worker {
            oracle,
            spare: vec![],
            needed: vec![],
            edges_s: vec![],
            least_d: vec![],
            stamps: vec![],
            walks: 0,
            stack: vec![],
            likely: vec![],
            windows: vec![],
            found: vec![],
            many: MANY_CANDIDATES,
        }
    }

    /// Clears what belongs to one question over so many sets; by the thread that works, for what two threads write to had better
    /// not lie side by side.
    pub(super) fn prepare(&mut self, question: &Question<'_>, degrees: usize, sets: usize) {
        self.needed = vec![1.0; degrees];
        self.edges_s = vec![0.0; degrees];
        self.least_d = vec![None; question.allowed.len()];
        self.spare.clear();
        (self.stamps, self.walks) = (vec![0; sets], 0);
    }

    /// Begins a set from those that are known by now, and tells whether anything better is still to be found.
    pub(super) fn begin(&mut self, view: &View<'_, '_, 'm, 'a>, outer: usize) -> (Box<Open<'m>>, bool) {
        let mut open = self.spare.pop().unwrap_or_else(|| {
            let scratch = Scratch::new(view.probe.question.most_replicas);
            Box::new(Open { scratch, ..Open::default() })
        });
        let more = self.find(view, &mut open, outer);
        (open, more)
    }

    /// The undominated pairs of a set that was begun, each with the set behind its first stage, once stages are put in front of
    /// those `between` as well.
    pub(super) fn end(
        &mut self,
        probe: &Probe<'_, 'm, 'a>,
        mut open: Box<Open<'m>>,
        between: impl Iterator<Item = usize>,
    ) -> &[FoundPair] {
        for inner in between {
            self.extend_all(probe, &mut open, (inner, probe.pairs(inner)));
            if open.scratch.is_closed() {
                break;
            }
        }
        open.scratch.collect(&mut self.found);
        self.spare.push(open);
        &self.found
    }

    /// Finds the pairs of a set that stages in front of known ones make; whether anything better may be found.
    fn find(&mut self, view: &View<'_, '_, 'm, 'a>, open: &mut Open<'m>, outer: usize) -> bool {
        let (probe, scratch) = (view.probe, &mut open.scratch);
        let least = probe.earlier.map(|earlier| earlier.least.of(outer));
        let most = scratch.begin(|by_replicas| probe.too_many_devices(outer, by_replicas), least);
        if scratch.is_closed() {
            return false;
        }
        for (replicas, devices, by) in probe.reached.iter().flat_map(|reached| reached.of(outer)) {
            scratch.lower(replicas, devices, by);
        }
        if scratch.is_closed() {
            return false;
        }
        open.outer.become_set(probe, outer, most, self.oracle.memory_bytes());
        // What comes next for a smaller set mostly does for this one: with few devices known, most others are out at once.
        let mut likely = std::mem::take(&mut self.likely);
        view.behind_smaller(outer, &mut likely);
        for &inner in &likely {
            self.extend_all(probe, open, (inner as usize, view.useful_pairs(inner as usize)));
        }
        self.likely = likely;
        if !open.scratch.is_closed() {
            let mut windows = std::mem::take(&mut self.windows);
            probe.windows(&view.sources.settled, outer, most, &mut windows);
            self.try_others(view, open, &windows);
            self.windows = windows;
        }
        !open.scratch.is_closed()
    }

    /// Tries the stages in front of all smaller sets, those that are settled in these windows.
    fn try_others(&mut self, view: &View<'_, '_, '_, '_>, open: &mut Open<'_>, windows: &[(usize, usize)]) {
        let Outer { set, most, .. } = open.outer;
        let View { probe, sources, .. } = *view;
        let candidates: usize = windows.iter().map(|(from, to)| to - from).sum();
        if candidates > self.many && probe.model.sets.below(set).is_some() {
            self.walk(view, open);
            return;
        }
        let (device_seconds, per_second) = (probe.model.device_seconds[set], 1.0 / probe.question.target);
        let room = f64::from(most) + probe.room();
        let row = probe.model.sets.row(set);
        for &(from, to) in windows {
            let (mut next, mut ends) = (from, [from; SIZES.len()]);
            'next: while next < to {
                let position = next;
                for (size, end) in ends.iter_mut().enumerate() {
                    if *end <= position {
                        let run = sources.run(size, position);
                        *end = run.end as usize;
                        if self.is_useless(probe, open, row, size, run) {
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
                if !source.leaves_enough(device_seconds, per_second, room) {
                    continue;
                }
                let inner = source.set as usize;
                if inner < set {
                    self.extend_all(probe, open, (inner, view.useful_pairs(inner)));
                    if open.scratch.is_closed() {
                        return;
                    }
                }
            }
        }
        let mut unsettled = std::mem::take(&mut self.likely);
        view.unsettled(set, &mut unsettled);
        for &inner in &unsettled {
            self.extend_all(probe, open, (inner as usize, view.useful_pairs(inner as usize)));
        }
        self.likely = unsettled;
    }

    /// Whether no set of a block is of use behind a stage of `outer`.
    fn is_useless(&mut self, probe: &Probe<'_, '_, '_>, open: &Open<'_>, row: &[u64], size: usize, run: &Run) -> bool {
        let Open { outer, scratch } = open;
        let (block, blocks) = (run.block as usize, &probe.blocks[size]);
        if run.devices >= outer.most || !blocks.may_be_within(block, row) {
            return true;
        }
        if probe.lean.is_none() {
            return false;
        }
        for allowed in probe.question.allowed {
            let t = probe.model.degrees[allowed.degree].t;
            let mut least = None;
            for &d in &allowed.replicas {
                let replicas = run.replicas.saturating_add(d);
                if t.saturating_mul(d).saturating_add(run.devices) >= scratch.to_beat(replicas) {
                    break;
                }
                let (needed, edges_s) = *least.get_or_insert_with(|| {
                    let (seconds, bytes) = blocks.least(&outer.figures, block, allowed.degree);
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
    fn walk(&mut self, view: &View<'_, '_, '_, '_>, open: &mut Open<'_>) {
        let Outer { set: whole, most, .. } = open.outer;
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
                self.extend_all(probe, open, (inner, view.useful_pairs(inner)));
            }
        }
    }

    /// Puts every stage `outer \ inner` that may do with fewer devices than are known in front of the pairs of the inner set: most
    /// may not, which its sums tell.
    fn extend_all(&mut self, probe: &Probe<'_, '_, '_>, open: &mut Open<'_>, (inner, pairs): (usize, &[(u32, u32)])) {
        let Open { outer, scratch } = open;
        let (Some(&(behind, _)), Some(&(_, fewest))) = (pairs.first(), pairs.last()) else { return };
        if fewest >= outer.most {
            return;
        }
        outer.replicas(probe, (inner, behind), &mut self.needed, &mut self.edges_s);
        // A stage has a replica.
        let most = scratch.to_beat(behind + 1).saturating_sub(fewest);
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
            if devices < most && scratch.first_better(pairs, d, devices).is_some() {
                self.least_d[at] = Some(d);
                any = true;
            }
        }
        if !any {
            return;
        }
        // Going by what its nodes and edges take at the least where slower modes make up for memory.
        let least = probe.least_stage((outer.set, inner), &outer.crossings, behind);
        let better = |(devices, replicas)| scratch.first_better(pairs, replicas, devices).is_some();
        if !least.is_some_and(better) {
            return;
        }
        for (at, allowed) in probe.question.allowed.iter().enumerate() {
            if let Some(least_d) = self.least_d[at] {
                self.extend(probe, (allowed, least_d), open, (inner, pairs));
            }
        }
    }

    /// Puts the stage `outer \ inner` at one degree with at least so many replicas in front of every pair of the inner set.
    fn extend(
        &mut self,
        probe: &Probe<'_, '_, '_>,
        (allowed, least_d): (&Allowed, u32),
        open: &mut Open<'_>,
        (inner, pairs): (usize, &[(u32, u32)]),
    ) {
        let Open { outer: Outer { set, most, crossings, .. }, scratch } = open;
        let (set, most) = (*set, *most);
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
            let Some(first) = scratch.first_better(left, d, devices) else { return };
            if devices.saturating_add(pairs[pairs.len() - 1].1) > most {
                return;
            }
            next += first;
            let better = |&(s, j): &(u32, u32)| scratch.may_be_better(s + d, devices + j);
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
                    scratch.lower(s + d, devices + j, inner as u32);
                }
            }
        }
    }
}
