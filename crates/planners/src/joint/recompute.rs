//! Chooses the nodes of a stage that recompute: the least time within memory.
//!
//! An item is a node, or all nodes of a layer if engines recompute whole layers. A rule may prescribe the first items
//! of a stage. Otherwise items are grouped by their change of time, bytes per microbatch in flight and fixed bytes.
//! Layers of a network are alike, so groups are few. In a stage, every count of all groups but the largest is tried,
//! and one division gives the count of the largest. If groups are many, or the smaller ones large, the linear
//! relaxation bounds the least time: items in order of time per byte, the last one in part. The choice is then that
//! order rounded up. So the choice is exact in the first case, and within the reported bound in the second.
//!
//! `O(groups)` if one group counts, `O(combinations)` for several; relaxed results are memoised. For long networks of
//! unlike nodes ([`MANY`]) classes of nodes with about the same price bound the least time ([`super::ranks`]).

use rustc_hash::FxHashMap;

use super::ranks::Ranks;
use crate::engine_layers::Rule;

/// Largest count; a larger number means all.
const MOST_COUNTED: u32 = u32::MAX - 1;
/// Maximum number of combinations of the smaller groups' counts. With relaxations only, the search
/// takes up to 2.2 times as long.
const MOST_TRIED: usize = 64;
/// Number of groups from which nodes are classed by price. Without classes, 1000 unlike layers take 3.8 times as long.
const MANY: usize = 512;

/// Items with the same change.
#[derive(Debug, Clone)]
struct ItemGroup {
    /// Added seconds, and bytes saved per microbatch in flight and fixed (either may be negative).
    seconds: f64,
    in_flight: f64,
    fixed: f64,
    /// Unit and index of each item, in order.
    items: Vec<(u32, u32)>,
    /// Number of items before each boundary; empty if groups are many.
    before: Vec<u32>,
}

impl ItemGroup {
    fn saves(&self, in_flight: f64) -> f64 {
        self.in_flight * in_flight + self.fixed
    }

    /// Number of its items before a boundary.
    fn before(&self, unit: usize) -> u32 {
        match self.before.get(unit) {
            Some(&count) => count,
            None => self.items.partition_point(|item| (item.0 as usize) < unit) as u32,
        }
    }

    fn count(&self, a: usize, b: usize) -> u32 {
        self.before(b) - self.before(a)
    }
}

/// Modes that a layer offers to a rule that prescribes recomputation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offers {
    /// True if it can keep its activations.
    pub(super) kept: bool,
    /// True if it can recompute them.
    pub(super) again: bool,
}

/// Nodes of a unit that recompute together: those that can, their change, and the modes offered to an engine that
/// counts layers.
pub(super) struct RecomputeItem {
    pub(super) nodes: Vec<usize>,
    /// Added seconds, and bytes saved per microbatch in flight and fixed.
    pub(super) key: [f64; 3],
    pub(super) offers: Offers,
}

impl RecomputeItem {
    pub(super) const NOTHING: RecomputeItem =
        RecomputeItem { nodes: vec![], key: [0.0; 3], offers: Offers { kept: true, again: false } };

    pub(super) fn add(&mut self, other: RecomputeItem) {
        self.nodes.extend(other.nodes);
        self.key.iter_mut().zip(other.key).for_each(|(sum, part)| *sum += part);
        self.offers.kept &= other.offers.kept;
        self.offers.again |= other.offers.again;
    }
}

/// Effect of a prescribing rule on units `a .. b`.
struct RuleEffect {
    items: std::ops::Range<usize>,
    seconds: f64,
    saved: f64,
    /// True if every layer offers the mode that the rule requires.
    possible: bool,
}

/// Effects of recomputation on units `a .. b`.
#[derive(Debug, Clone)]
pub(super) struct Swaps {
    groups: Vec<ItemGroup>,
    units: usize,
    rule: Rule,
    /// Nodes that recompute together, by item.
    items: Vec<Vec<usize>>,
    /// Prefix sums over items: seconds, bytes per microbatch in flight, fixed bytes.
    sums: Vec<[f64; 3]>,
    /// Number of items before each that cannot keep their activations, and that cannot recompute.
    lacking: Vec<[u32; 2]>,
    /// Number of items before each boundary.
    before: Vec<u32>,
    /// Microbatches in flight up to which no group saves anything, and above which every group does, if such numbers
    /// exist.
    turning: (f64, f64),
    /// Group, by item.
    group_of: Vec<u32>,
    /// Groups by the bits of their change.
    known: FxHashMap<[u64; 3], u32>,
}

/// Recompute time of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RecomputeTime {
    /// Lower bound over all choices within memory.
    pub(super) least: f64,
    /// Time of the choice of [`Swaps::choose`].
    pub(super) chosen: f64,
}

impl RecomputeTime {
    const NONE: RecomputeTime = RecomputeTime { least: 0.0, chosen: 0.0 };
}

/// Memoised results: relaxations by units and microbatches in flight, prices by microbatches in flight.
#[derive(Debug, Default)]
pub(super) struct Memo {
    relaxed: FxHashMap<(u32, u32, u64), Option<RecomputeTime>>,
    ranks: FxHashMap<u64, Ranks>,
}

impl Swaps {
    pub(super) fn new(units: usize, rule: Rule) -> Self {
        Swaps {
            groups: vec![],
            units,
            rule,
            items: vec![],
            sums: vec![[0.0; 3]],
            lacking: vec![[0; 2]],
            before: vec![0; units + 1],
            turning: (f64::INFINITY, 0.0),
            group_of: vec![],
            known: FxHashMap::default(),
        }
    }

    /// Adds nodes of a unit that can recompute together. If a rule counts layers, also those that cannot. Units come in
    /// order.
    pub(super) fn add(&mut self, unit: usize, RecomputeItem { nodes, key, offers }: RecomputeItem) {
        if nodes.is_empty() && !self.counts() {
            return;
        }
        let item = (unit as u32, self.items.len() as u32);
        let (sums, lacking) = (self.sums[self.items.len()], self.lacking[self.items.len()]);
        self.lacking.push([lacking[0] + u32::from(!offers.kept), lacking[1] + u32::from(!offers.again)]);
        self.items.push(nodes);
        self.sums.push([sums[0] + key[0], sums[1] + key[1], sums[2] + key[2]]);
        self.before[unit + 1] += 1;
        let [seconds, in_flight, fixed] = key;
        // Adding zero maps both zeros to the same bits.
        let group = *self.known.entry(key.map(|part| (part + 0.0).to_bits())).or_insert(self.groups.len() as u32);
        if group as usize == self.groups.len() {
            self.groups.push(ItemGroup { seconds, in_flight, fixed, items: vec![], before: vec![] });
            // Without savings per microbatch, the savings do not depend on the number in flight.
            let turns = match in_flight {
                saved if saved > 0.0 => (-fixed / saved, -fixed / saved),
                _ => (f64::NEG_INFINITY, f64::INFINITY),
            };
            self.turning = (self.turning.0.min(turns.0), self.turning.1.max(turns.1));
        }
        self.groups[group as usize].items.push(item);
        self.group_of.push(group);
    }

    pub(super) fn finish(&mut self) {
        for unit in 0..self.units {
            self.before[unit + 1] += self.before[unit];
        }
        self.known = FxHashMap::default();
        if self.is_many() {
            return;
        }
        for group in &mut self.groups {
            group.before = vec![0; self.units + 1];
            group.items.iter().for_each(|&(unit, _)| group.before[unit as usize + 1] += 1);
            for unit in 0..self.units {
                group.before[unit + 1] += group.before[unit];
            }
        }
    }

    /// True if nodes are so unlike that they are classed by price.
    fn is_many(&self) -> bool {
        self.groups.len() >= MANY && self.rule == Rule::Free
    }

    /// True if a rule prescribes recomputation, so that every layer counts.
    fn counts(&self) -> bool {
        matches!(self.rule, Rule::First(_) | Rule::AllThatCan)
    }

    /// True if putting a unit in front of a stage never reduces its memory. With a fixed count, another unit may then
    /// recompute.
    pub(super) fn grows(&self) -> bool {
        !matches!(self.rule, Rule::First(1..=MOST_COUNTED))
    }

    /// Items of units `a .. b` that recompute by a prescribing rule, with their seconds and bytes saved; else `None`.
    fn prescribed(&self, a: usize, b: usize, in_flight: f64) -> Option<RuleEffect> {
        let (count, any) = match self.rule {
            Rule::First(count) => (count, false),
            Rule::AllThatCan => (u32::MAX, true),
            Rule::Free | Rule::StageByStage => return None,
        };
        let first = self.before[a] as usize;
        let last = self.before[b].min(self.before[a].saturating_add(count)) as usize;
        let [seconds, flying, fixed] = std::array::from_fn(|i| self.sums[last][i] - self.sums[first][i]);
        let lacking = |what: usize, from: usize, to: usize| self.lacking[to][what] > self.lacking[from][what];
        let possible = any || (!lacking(0, last, self.before[b] as usize) && !lacking(1, first, last));
        Some(RuleEffect { items: first..last, seconds, saved: flying * in_flight + fixed, possible })
    }

    /// Upper bound on the bytes saved relative to the fastest modes, within the rule.
    pub(super) fn most_saved(&self, a: usize, b: usize, in_flight: f64) -> f64 {
        if let Some(RuleEffect { saved, possible, .. }) = self.prescribed(a, b, in_flight) {
            return if possible { saved } else { f64::NEG_INFINITY };
        }
        self.most_by_any(a, b, in_flight)
    }

    /// Upper bound on the bytes saved if any items may recompute, regardless of the rule.
    pub(super) fn most_by_any(&self, a: usize, b: usize, in_flight: f64) -> f64 {
        if self.is_many() {
            let (none, all) = self.turning;
            let run = self.run(a, b);
            if in_flight <= none {
                return 0.0;
            }
            if in_flight > all {
                let [flying, fixed] = [1, 2].map(|part| self.sums[run.end][part] - self.sums[run.start][part]);
                return flying * in_flight + fixed;
            }
            return run.map(|item| self.groups[self.group_of[item] as usize].saves(in_flight).max(0.0)).sum();
        }
        self.groups.iter().map(|group| group.saves(in_flight).max(0.0) * f64::from(group.count(a, b))).sum()
    }

    /// Items of units `a .. b`.
    fn run(&self, a: usize, b: usize) -> std::ops::Range<usize> {
        self.before[a] as usize..self.before[b] as usize
    }

    /// Least recompute time of units `a .. b` to save `shave` bytes, or a lower bound on it; `None` if they cannot.
    pub(super) fn least(&self, a: usize, b: usize, in_flight: f64, shave: f64, memo: &mut Memo) -> Option<f64> {
        if !self.is_many() || shave <= 0.0 {
            return self.extra(a, b, in_flight, shave, memo).map(|extra| extra.least);
        }
        let ranks = memo.ranks.entry(in_flight.to_bits()).or_insert_with(|| {
            let item = |item: usize| {
                let group = &self.groups[self.group_of[item] as usize];
                (group.seconds, group.saves(in_flight))
            };
            let units: Vec<Vec<_>> = (0..self.units).map(|unit| self.run(unit, unit + 1).map(item).collect()).collect();
            Ranks::new(&units)
        });
        ranks.least(a, b, shave)
    }

    /// Recompute time of units `a .. b` to save `shave` bytes; `None` if they cannot.
    pub(super) fn extra(
        &self,
        a: usize,
        b: usize,
        in_flight: f64,
        shave: f64,
        memo: &mut Memo,
    ) -> Option<RecomputeTime> {
        if let Some(RuleEffect { seconds, saved, possible, .. }) = self.prescribed(a, b, in_flight) {
            return (possible && saved >= shave).then_some(RecomputeTime { least: seconds, chosen: seconds });
        }
        if shave <= 0.0 {
            return Some(RecomputeTime::NONE);
        }
        if self.rule == Rule::StageByStage {
            let (seconds, saved) = self.everything(a, b, in_flight);
            return (saved >= shave).then_some(RecomputeTime { least: seconds, chosen: seconds });
        }
        if self.is_many() {
            return self.relaxed(a, b, in_flight, shave, memo);
        }
        let mut found = [(0.0, 0.0, 0); 4];
        let mut used = 0;
        for group in &self.groups {
            let (count, saves) = (group.count(a, b), group.saves(in_flight));
            if count == 0 || saves <= 0.0 {
                continue;
            }
            if used == found.len() {
                return self.relaxed(a, b, in_flight, shave, memo);
            }
            found[used] = (group.seconds, saves, count);
            used += 1;
        }
        let found = &mut found[..used];
        found.sort_unstable_by_key(|group| group.2);
        let tried: usize = found.iter().rev().skip(1).map(|group| group.2 as usize + 1).product();
        if tried > MOST_TRIED {
            return self.relaxed(a, b, in_flight, shave, memo);
        }
        let (seconds, _) = fewest(found, shave)?;
        Some(RecomputeTime { least: seconds, chosen: seconds })
    }

    /// Seconds and bytes saved if everything that saves recomputes.
    fn everything(&self, a: usize, b: usize, in_flight: f64) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for group in &self.groups {
            let (count, saves) = (f64::from(group.count(a, b)), group.saves(in_flight));
            if saves > 0.0 {
                sums = (sums.0 + count * group.seconds, sums.1 + count * saves);
            }
        }
        sums
    }

    /// Memoised result of the linear relaxation and of its order rounded up.
    fn relaxed(&self, a: usize, b: usize, in_flight: f64, shave: f64, memo: &mut Memo) -> Option<RecomputeTime> {
        let key = (a as u32, b as u32, in_flight.to_bits());
        if let Some(known) = memo.relaxed.get(&key) {
            return *known;
        }
        let found = self.greedy(a, b, in_flight, shave).map(|(extra, _)| extra);
        memo.relaxed.insert(key, found);
        found
    }

    /// Groups with items in units `a .. b` that save bytes, by index.
    fn useful(&self, a: usize, b: usize, in_flight: f64) -> Vec<usize> {
        let saves = |g: &usize| self.groups[*g].saves(in_flight) > 0.0;
        if self.is_many() {
            let mut found: Vec<usize> =
                self.group_of[self.run(a, b)].iter().map(|&group| group as usize).filter(saves).collect();
            found.sort_unstable();
            found.dedup();
            return found;
        }
        (0..self.groups.len()).filter(|g| saves(g) && self.groups[*g].count(a, b) > 0).collect()
    }

    /// Counts by group, cheapest bytes first. Items that turn out to be unnecessary are removed again.
    fn greedy(&self, a: usize, b: usize, in_flight: f64, shave: f64) -> Option<(RecomputeTime, Vec<(usize, u32)>)> {
        let mut order = self.useful(a, b, in_flight);
        let price = |g: &usize| self.groups[*g].seconds / self.groups[*g].saves(in_flight);
        order.sort_by(|x, y| price(x).total_cmp(&price(y)).then(x.cmp(y)));
        let (mut left, mut least, mut chosen, mut taken) = (shave, 0.0, 0.0, vec![]);
        for g in order {
            let (group, saves) = (&self.groups[g], self.groups[g].saves(in_flight));
            let needed = (left / saves).ceil().min(f64::from(group.count(a, b)));
            least += group.seconds * needed.min(left / saves);
            chosen += group.seconds * needed;
            left -= saves * needed;
            taken.push((g, needed as u32));
            if left <= 0.0 {
                break;
            }
        }
        if left > 0.0 {
            return None;
        }
        for (g, number) in taken.iter_mut().rev() {
            let (group, saves) = (&self.groups[*g], self.groups[*g].saves(in_flight));
            let spare = (-left / saves).floor().clamp(0.0, f64::from(*number));
            left += spare * saves;
            chosen -= spare * group.seconds;
            *number -= spare as u32;
        }
        Some((RecomputeTime { least: least.min(chosen), chosen }, taken))
    }

    /// Nodes of units `a .. b` that recompute to save `shave` bytes; `None` if they cannot.
    pub(super) fn choose(&self, a: usize, b: usize, in_flight: f64, shave: f64) -> Option<Vec<usize>> {
        let nodes = |items: &mut dyn Iterator<Item = usize>| {
            let mut nodes: Vec<usize> = items.flat_map(|item| &self.items[item]).copied().collect();
            nodes.sort_unstable();
            Some(nodes)
        };
        if let Some(RuleEffect { mut items, possible, .. }) = self.prescribed(a, b, in_flight) {
            return if possible { nodes(&mut items) } else { None };
        }
        let mut present = self.useful(a, b, in_flight);
        present.sort_by_key(|&g| self.groups[g].count(a, b));
        let numbers: Vec<(usize, u32)> = if shave <= 0.0 {
            vec![]
        } else if self.rule == Rule::StageByStage {
            present.iter().map(|&g| (g, self.groups[g].count(a, b))).collect()
        } else {
            let one = |&g: &usize| {
                let group = &self.groups[g];
                (group.seconds, group.saves(in_flight), group.count(a, b))
            };
            let found: Vec<(f64, f64, u32)> = present.iter().map(one).collect();
            let tried = || found.iter().rev().skip(1).map(|group| group.2 as usize + 1).product::<usize>();
            if found.len() <= 4 && !self.is_many() && tried() <= MOST_TRIED {
                let (_, numbers) = fewest(&found, shave)?;
                present.iter().copied().zip(numbers).collect()
            } else {
                self.greedy(a, b, in_flight, shave)?.1
            }
        };
        let chosen = numbers.into_iter().flat_map(|(g, number)| {
            let group = &self.groups[g];
            let first = group.before(a) as usize;
            group.items[first..first + number as usize].iter().map(|&(_, item)| item as usize)
        });
        nodes(&mut chosen.into_iter())
    }
}

/// Least time to save `shave` bytes, and the count of each group. Groups are (seconds, bytes, number), the largest
/// last.
fn fewest(groups: &[(f64, f64, u32)], shave: f64) -> Option<(f64, [u32; 4])> {
    let (&(seconds, saves, count), others) = groups.split_last()?;
    let last = others.len();
    let mut best: Option<(f64, [u32; 4])> = None;
    let mut numbers = [0; 4];
    loop {
        let (mut time, mut left) = (0.0, shave);
        for (group, &number) in others.iter().zip(&numbers) {
            time += group.0 * f64::from(number);
            left -= group.1 * f64::from(number);
        }
        let needed = (left / saves).ceil().max(0.0);
        if needed <= f64::from(count) {
            time += needed * seconds;
            if best.is_none_or(|(known, _)| time < known) {
                numbers[last] = needed as u32;
                best = Some((time, numbers));
                numbers[last] = 0;
            }
        }
        // Advances to the next combination.
        let mut at = 0;
        loop {
            if at == last {
                return best;
            }
            if numbers[at] < others[at].2 {
                numbers[at] += 1;
                break;
            }
            numbers[at] = 0;
            at += 1;
        }
    }
}
