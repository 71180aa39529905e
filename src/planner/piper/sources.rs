//! Which tails a stage is put in front of: those that no larger one makes useless.
//!
//! Let `X` be nodes that may be run next before the tail `D`, so that `D ∪ X` is a tail too. If `D ∪ X` can be run with as few
//! devices and replicas as `D` is, and whatever stage some of `X` were in is no slower without them, then no plan needs `D` as
//! a tail run that way: every stage before it that holds some of `X` gives these up. Such a stage saves their time, and what
//! they pay for the edges to their successors outside the stage; what its other nodes now pay for the edges into `X` is added.
//! Memory only falls. `X` is *heavy* if the first is no less than the second at every degree, whatever the modes and whichever
//! part of `X` the stage holds.
//!
//! Looked at are single nodes `x` and pairs of an `x` with a predecessor `w`: mostly an `x` is not heavy because the edge into it
//! is dear, which then makes `w` heavy. A stage that holds `w` alone has all successors of `w` behind it, so `w` must be heavy
//! by itself; one that holds `x` alone does not pay for the edge between them.
//!
//! Of the tails that can be run with so many devices and replicas mostly the largest remain. Such small steps are enough:
//! what a useless tail is beaten by may itself be useless, but there is an end to it (from the last cut on, each grows until it is
//! useful, and what is behind it is made of useful ones). Not so where the number of stages is given, since a stage may vanish.
//! `O(steps between sets · undominated pairs)` for each question.

use std::ops::Range;

use super::{
    blocks::SIZES,
    earlier::covers,
    lists::Lists,
    model::{Degree, PiperModel},
    prices::rounding,
    probe::Frontier,
};
use crate::{
    graph::{SuccessorSets, lies_within},
    planner::Search,
};

/// By set: the sets that have some heavy nodes less.
pub(super) struct Heavier {
    lighter: Vec<u32>,
    /// Where those of each set begin.
    start: Vec<u32>,
}

impl Heavier {
    /// Nothing where steps between sets are not known, or figures are too far apart for sums to be compared; `None` if the
    /// search was cancelled meanwhile.
    pub(super) fn new(model: &PiperModel<'_>, search: &Search) -> Option<Self> {
        let full = model.full();
        if model.far_apart || full == 0 || model.sets.below(full).is_none() {
            return Some(Heavier { lighter: vec![], start: vec![] });
        }
        let alone: Vec<bool> = (0..model.dag.len()).map(|v| no_slower_without(model, &[v], None)).collect();
        let going_on = || (!search.cancelled()).then_some(());
        // By edge: whether its ends are heavy together.
        let together: Vec<bool> = model
            .dag
            .edges()
            .iter()
            .map(|&(w, x)| {
                going_on()?;
                let (w, x) = (w as usize, x as usize);
                let together = alone[w]
                    && !alone[x]
                    && no_slower_without(model, &[w, x], None)
                    && no_slower_without(model, &[x], Some(w));
                Some(together)
            })
            .collect::<Option<_>>()?;
        let (mut start, mut lighter) = (vec![0], vec![]);
        for set in 0..=full {
            going_on()?;
            for (below, w) in model.sets.steps_below(set) {
                if alone[w as usize] {
                    lighter.push(below);
                }
                let out = model.dag.out_edges(w as usize);
                for &edge in out.iter().filter(|&&edge| together[edge as usize]) {
                    let x = model.dag.edges()[edge as usize].1;
                    let without_x = model.sets.steps_below(below as usize).filter(|&(_, v)| v == x);
                    lighter.extend(without_x.map(|(below, _)| below));
                }
            }
            start.push(lighter.len() as u32);
        }
        Some(Heavier { start, lighter })
    }

    /// The sets that have some heavy nodes less than one.
    pub(super) fn lighter(&self, set: usize) -> &[u32] {
        &self.lighter[self.start[set] as usize..self.start[set + 1] as usize]
    }

    /// Whether there is any.
    pub(super) fn any(&self) -> bool {
        !self.lighter.is_empty()
    }
}

/// Whether no stage is slower without these of its nodes, if their successors but themselves are in other stages; `outside` is
/// one of their predecessors that is as well.
fn no_slower_without(model: &PiperModel<'_>, nodes: &[usize], outside: Option<usize>) -> bool {
    let edges = model.dag.edges();
    let tail = |degree: &Degree, edge: u32| {
        let pays = degree.edge_out[edge as usize];
        degree.ranges.as_ref().map_or((pays, pays), |ranges| {
            let span = ranges.tails_pay[edge as usize];
            (span.least, span.most)
        })
    };
    let no_slower = |(at, degree): (usize, &Degree)| {
        let mut seconds = 0.0;
        for &v in nodes {
            let Some(time_s) = degree.choices[v].iter().map(|choice| choice.time_s).reduce(f64::min) else {
                return true;
            };
            let leaves = |edge: &&u32| !nodes.contains(&(edges[**edge as usize].1 as usize));
            let enters = |edge: &&u32| {
                let from = edges[**edge as usize].0 as usize;
                !nodes.contains(&from) && outside != Some(from)
            };
            let saved: f64 = model.dag.out_edges(v).iter().filter(leaves).map(|&edge| tail(degree, edge).0).sum();
            let added: f64 = model.dag.in_edges(v).iter().filter(enters).map(|&edge| tail(degree, edge).1).sum();
            seconds += time_s + (saved - added) / model.limits.bandwidth();
        }
        // More than sums may be off by.
        seconds >= 2.0 * rounding(model) * model.most_seconds(at, 1)
    };
    model.degrees.iter().enumerate().all(no_slower)
}

/// A set that a stage is put in front of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) set: u32,
    /// Its place by device-seconds among all sets.
    place: u32,
    /// The fewest devices that run it; 0 if that is not known yet.
    devices: u32,
    pub(super) device_seconds: f64,
}

impl Source {
    /// Whether the set and a stage in front of it, of so many device-seconds together, may do with `most` devices of which it takes
    /// so many a second.
    #[inline]
    pub(super) fn leaves_enough(&self, device_seconds: f64, per_second: f64, most: f64) -> bool {
        let stage = (device_seconds - self.device_seconds) * per_second;
        // Not a number where there is neither work nor time for it.
        stage.is_nan() || f64::from(self.devices) + stage <= most
    }
}

/// Settled sets of one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) block: u32,
    /// Where it ends.
    pub(super) end: u32,
    /// The fewest replicas and the fewest devices that any of its sets does with, not necessarily the same one.
    pub(super) replicas: u32,
    pub(super) devices: u32,
}

/// The runs of settled ones.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    /// By position, which one it is in.
    of: Vec<u32>,
}

/// The pairs of a set that no larger set makes useless.
#[derive(Debug, Clone)]
enum Useful {
    /// Not settled yet: maybe all.
    Unsettled,
    All,
    Fewer(Frontier),
}

impl Useful {
    /// These, of a set that has `all` of them; all where that is not settled.
    fn among<'u>(&'u self, all: &'u [(u32, u32)]) -> &'u [(u32, u32)] {
        if let Useful::Fewer(fewer) = self { fewer } else { all }
    }
}

/// The sets that a stage is put in front of.
pub(super) struct Sources {
    /// By device-seconds.
    pub(super) settled: Vec<Source>,
    /// Their bits, in the same order side by side: most sets are tried in vain, which takes a look at these.
    rows: Vec<u64>,
    words: usize,
    /// By size of blocks.
    runs: [Runs; SIZES.len()],
    /// By set; empty where none are looked for.
    useful: Vec<Useful>,
    /// The settled ones before this position are as they were when they were looked at.
    same: usize,
}

impl Sources {
    /// All sets, or if useless ones are to be found (`pruned`) just the empty one.
    pub(super) fn new(model: &PiperModel<'_>, pruned: bool) -> Self {
        let source = |set: u32| Source {
            set,
            place: model.places[set as usize],
            devices: 0,
            device_seconds: model.device_seconds[set as usize],
        };
        let (settled, useful) = if pruned {
            (vec![source(0)], vec![Useful::Unsettled; model.sets.len()])
        } else {
            (model.by_device_seconds.iter().map(|&set| source(set)).collect(), vec![])
        };
        let words = model.sets.words();
        let mut sources = Sources { settled, rows: vec![], words, runs: Default::default(), useful, same: 0 };
        sources.line_up(&model.sets, 0);
        sources
    }

    /// Puts the bits in the order of the settled ones, from a position on.
    fn line_up(&mut self, sets: &SuccessorSets, from: usize) {
        self.rows.truncate(from * self.words);
        for source in &self.settled[from..] {
            self.rows.extend_from_slice(sets.row(source.set as usize));
        }
    }

    /// What those of a model take for one who fills a table, bytes.
    pub(super) fn bytes(model: &PiperModel<'_>) -> usize {
        let set = size_of::<u64>() * model.sets.words() + size_of::<Source>() + size_of::<Useful>();
        model.sets.len() * (set + SIZES.len() * size_of::<u32>())
    }

    /// Notes what the settled ones do with, by block, if it is known. Those before [`Sources::same`] are known.
    pub(super) fn look(&mut self, pairs: Option<&Lists<(u32, u32)>>) {
        let useful = &self.useful;
        for (Runs { runs, of }, size) in self.runs.iter_mut().zip(SIZES) {
            // The run that the first new one may belong to is made anew.
            let kept = self.same.checked_sub(1).map_or(0, |last| of[last] as usize);
            runs.truncate(kept);
            let start = runs.last().map_or(0, |run| run.end);
            of.truncate(start as usize);
            for (position, source) in (start..).zip(&self.settled[start as usize..]) {
                let block = source.place / size as u32;
                if runs.last().is_none_or(|run| run.block != block) {
                    runs.push(Run { block, end: position, replicas: u32::MAX, devices: u32::MAX });
                }
                of.push(runs.len() as u32 - 1);
                let run = runs.last_mut().expect("one was pushed where there was none");
                run.end = position + 1;
                let set = source.set as usize;
                let all = pairs.map_or(&[][..], |pairs| pairs.of(set));
                let own = useful.get(set).map_or(all, |useful| useful.among(all));
                if let (Some(first), Some(last)) = (own.first(), own.last()) {
                    run.replicas = run.replicas.min(first.0);
                    run.devices = run.devices.min(last.1);
                }
            }
        }
        self.same = self.settled.len();
    }

    /// The same once the pairs of more sets are known.
    pub(super) fn look_again(&mut self, model: &PiperModel<'_>, pairs: &Lists<(u32, u32)>, sets: Range<usize>) {
        if !self.useful.is_empty() {
            self.look(Some(pairs));
            return;
        }
        // All are settled, each at its place.
        for set in sets {
            let (Some(first), Some(last)) = (pairs.of(set).first(), pairs.of(set).last()) else { continue };
            for Runs { runs, of } in &mut self.runs {
                let run = &mut runs[of[model.places[set] as usize] as usize];
                run.replicas = run.replicas.min(first.0);
                run.devices = run.devices.min(last.1);
            }
        }
    }

    /// The run of the settled one at a position among blocks of a size.
    #[inline]
    pub(super) fn run(&self, size: usize, position: usize) -> &Run {
        let Runs { runs, of } = &self.runs[size];
        &runs[of[position] as usize]
    }

    /// Whether the set at a position among the settled ones lies within a set with these bits.
    #[inline]
    pub(super) fn is_within(&self, position: usize, outer: &[u64]) -> bool {
        if let &[outer] = outer {
            return self.rows[position] & !outer == 0;
        }
        let row = &self.rows[position * self.words..(position + 1) * self.words];
        lies_within(row, outer)
    }

    /// Whether useless ones are looked for.
    pub(super) fn are_pruned(&self) -> bool {
        !self.useful.is_empty()
    }

    /// The pairs of a set that a stage may have to be put in front of, if they are known to be fewer than all.
    #[inline]
    pub(super) fn useful(&self, set: usize) -> Option<&Frontier> {
        match self.useful.get(set)? {
            Useful::Fewer(fewer) => Some(fewer),
            _ => None,
        }
    }

    /// Goes on once the pairs of a level's sets are known: that settles the sets with one node less, and those with two nodes less
    /// may have fewer useful pairs.
    pub(super) fn advance(
        &mut self,
        model: &PiperModel<'_>,
        heavier: &Heavier,
        pairs: &Lists<(u32, u32)>,
        level: Range<usize>,
    ) {
        let size = model.sets.size(level.start);
        let before = (0..level.start).rev().take_while(|&set| set > 0 && model.sets.size(set) + 1 == size);
        let first = before.last().unwrap_or(level.start);
        self.useful[first..level.start].fill(Useful::All);
        // Those before the first place of a set that is new, or of less use now, stay as they are.
        let mut place = model.places[first..level.start].iter().copied().min().unwrap_or(u32::MAX);
        for set in level.clone().filter(|&set| !pairs.of(set).is_empty()) {
            for &lighter in heavier.lighter(set) {
                let lighter = lighter as usize;
                let covered = |&pair: &(u32, u32)| covers(pairs.of(set), pair);
                let useful = &self.useful[lighter];
                let known = useful.among(pairs.of(lighter));
                if !matches!(useful, Useful::Unsettled) && known.iter().any(covered) {
                    place = place.min(model.places[lighter]);
                    self.useful[lighter] = Useful::Fewer(known.iter().copied().filter(|pair| !covered(pair)).collect());
                }
            }
        }
        let same = self.settled.partition_point(|source| source.place < place);
        self.same = self.same.min(same);
        let changed = self.settled.split_off(same);
        let new = (first..level.start).map(|set| Source {
            set: set as u32,
            place: model.places[set],
            devices: 0,
            device_seconds: model.device_seconds[set],
        });
        for source in changed.into_iter().chain(new) {
            let devices = match &self.useful[source.set as usize] {
                Useful::Unsettled => Some(0),
                useful => useful.among(pairs.of(source.set as usize)).last().map(|&(_, devices)| devices),
            };
            self.settled.extend(devices.map(|devices| Source { devices, ..source }));
        }
        self.settled[same..].sort_by_key(|source| source.place);
        self.line_up(&model.sets, same);
    }
}
