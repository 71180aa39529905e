//! Links whose bandwidth transfers share fairly: nobody can get more without taking from someone with no more.
//!
//! A link has a capacity, a transfer the speed that it has alone, both in one unit, and of each of its links it takes a part
//! of its speed: all of it, or less where several devices send at once on ways of their own. The max-min fair speeds come
//! from filling up: all grow alike; those that have reached what they have alone grow no more, and those on the link that is
//! full first; and so on. Where nothing is known of capacities every link carries 1, which is what a lone transfer uses.
//! Rates, speeds as shares of that alone, are fractions and what is left of a transfer is a whole number of parts of a tick,
//! so transfers that end together by calculation end in the same tick, and nothing depends on the order in which links and
//! transfers are counted. (Should a denominator ever exceed [`FINEST`], which takes links of many thousand transfers, or
//! many links in a row, or latencies, the fraction is rounded.)
//!
//! All changes of a moment are taken together, and only what they can reach over common links is computed anew: `O(t · l)` for
//! `t` transfers and `l` links joined to them, `O(t)` where each has one link only. Of transfers that are joined only those
//! that end next have a time in the clock; before the others end their rates change.

use std::cmp::Ordering;

/// A speed, or a share of one: `parts / of` in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    parts: u128,
    of: u128,
}

/// The largest speed and capacity; with [`FINEST`] it keeps products of fractions within 128 bits.
pub(super) const FASTEST: u64 = 1 << 41;

/// Parts of a transfer's speed, where it takes less than all of it of some links.
pub(super) const WHOLE: u32 = 5040;

/// What a transfer takes of links.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    /// Its links, in two lists.
    pub(super) links: [&'a [u32]; 2],
    /// Of each link of the first list the parts of [`WHOLE`] that it takes; where there are none, all of every link.
    pub(super) parts: &'a [u32],
    /// Its speed alone, in the unit of the capacities, from 1 to [`FASTEST`].
    pub(super) speed: u64,
}

/// The largest denominator of a rate.
const FINEST: u128 = 1 << 40;

/// Parts of a tick in which work is counted: what up to 16 transfers share evenly comes out even.
const GRAIN: u128 = 720_720;

impl Rate {
    const NONE: Rate = Rate { parts: 0, of: 1 };
    const WHOLE: Rate = Rate { parts: 1, of: 1 };

    fn new(parts: u128, of: u128) -> Rate {
        let (mut a, mut b) = (parts, of);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let (parts, of) = (parts / a, of / a);
        if of <= FINEST { Rate { parts, of } } else { Rate::new((parts * (FINEST >> 8)).div_ceil(of), FINEST >> 8) }
    }

    fn whole(speed: u64) -> Rate {
        Rate { parts: speed.into(), of: 1 }
    }

    fn less(self, other: Rate) -> Rate {
        let (have, take) = (self.parts * other.of, other.parts * self.of);
        Rate::new(have.saturating_sub(take), self.of * other.of)
    }

    /// So many parts of so many, at most [`FASTEST`].
    fn times(self, parts: u64, of: u64) -> Rate {
        if self.of == 1 && self.parts == 1 && parts == 1 {
            return Rate { parts: 1, of: of.into() };
        }
        let rate = Rate::new(self.parts * u128::from(parts), self.of * u128::from(of));
        if rate.parts > rate.of * u128::from(FASTEST) { Rate::whole(FASTEST) } else { rate }
    }

    fn compare(self, other: Rate) -> Ordering {
        (self.parts * other.of).cmp(&(other.parts * self.of))
    }
}

/// A transfer under way.
#[derive(Debug, Clone)]
struct Flow {
    links: Vec<u32>,
    /// By link: its parts of the speed; empty where it takes all of it.
    parts: Vec<u32>,
    /// Its speed alone.
    speed: u64,
    /// Parts of a tick at full rate that are left of it at `since`.
    left: u128,
    rate: Rate,
    since: i64,
    /// When it ends if no rate changes.
    end: i64,
    /// Whether that is in the clock.
    scheduled: bool,
    /// Counts changes of its end, over all transfers that used the slot.
    version: u32,
    /// Marks of a search.
    seen: u64,
}

impl Flow {
    const NEW: Flow = Flow {
        links: vec![],
        parts: vec![],
        speed: 1,
        left: 0,
        rate: Rate::NONE,
        since: 0,
        end: 0,
        scheduled: false,
        version: 0,
        seen: 0,
    };

    /// The parts of its speed that it takes of a link, of `whole`.
    fn parts_of(&self, link: u32, whole: u32) -> u64 {
        let at = self.links.iter().position(|&own| own == link);
        at.map_or(0, |at| self.parts.get(at).map_or(whole, |&parts| parts).into())
    }

    /// Goes on at another rate from now on.
    fn turn(&mut self, rate: Rate, now: i64) {
        if self.rate == rate {
            return;
        }
        let moved = (now - self.since) as u128 * GRAIN * self.rate.parts / self.rate.of;
        self.left = self.left.saturating_sub(moved);
        self.since = now;
        self.rate = rate;
        self.end = now + (self.left * rate.of).div_ceil(rate.parts * GRAIN) as i64;
        self.scheduled = false;
        self.version = self.version.wrapping_add(1);
    }
}

/// A link while it is filled up.
#[derive(Debug, Clone, Copy)]
struct Filling {
    link: u32,
    left: Rate,
    /// Parts of transfers on it that have no rate.
    waiting: u64,
}

/// All transfers under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
    /// By link; none where every link carries 1 and so does every transfer.
    capacities: Vec<u64>,
    flows: Vec<Flow>,
    /// By link: the transfers on it.
    members: Vec<Vec<u32>>,
    marked: Vec<u64>,
    searches: u64,
    /// Links whose transfers have changed.
    dirty: Vec<u32>,
    /// Transfers that start alone on no link at all.
    free: Vec<u32>,
    /// Of a search: transfers and links found.
    found: Vec<u32>,
    filling: Vec<Filling>,
}

impl Sharing {
    /// So many links; with no capacities each carries what a transfer uses alone.
    pub(super) fn new(links: usize, capacities: Vec<u64>) -> Self {
        Sharing { capacities, members: vec![vec![]; links], marked: vec![0; links], ..Sharing::default() }
    }

    /// Parts that make a transfer's speed.
    fn whole(&self) -> u32 {
        if self.capacities.is_empty() { 1 } else { WHOLE }
    }

    /// The version of a transfer's end that holds now.
    pub(super) fn version(&self, slot: u32) -> u32 {
        self.flows[slot as usize].version
    }

    /// All of a transfer's state that later moments depend on, times as seen from now.
    pub(super) fn state(&self, slot: u32, now: i64) -> [i64; 6] {
        let flow = &self.flows[slot as usize];
        let (low, high) = (flow.left as u64 as i64, (flow.left >> 64) as i64);
        [low, high, flow.rate.parts as i64, flow.rate.of as i64, flow.since - now, flow.end - now]
    }

    /// Puts a transfer off by so many ticks.
    pub(super) fn delay(&mut self, slot: u32, ticks: i64) {
        let flow = &mut self.flows[slot as usize];
        flow.since += ticks;
        flow.end += ticks;
    }

    /// A transfer starts that would take `ticks` alone. Nothing changes before [`Sharing::share`].
    pub(super) fn join(&mut self, slot: u32, path: Path<'_>, ticks: i64, now: i64) {
        if self.flows.len() <= slot as usize {
            self.flows.resize(slot as usize + 1, Flow::NEW);
        }
        let flow = &mut self.flows[slot as usize];
        flow.links.clear();
        flow.links.extend(path.links.into_iter().flatten());
        flow.parts.clear();
        flow.parts.extend(path.parts);
        flow.speed = path.speed;
        for &link in &flow.links {
            self.members[link as usize].push(slot);
        }
        self.dirty.extend_from_slice(&flow.links);
        if flow.links.is_empty() {
            self.free.push(slot);
        }
        flow.left = ticks as u128 * GRAIN;
        flow.rate = Rate::NONE;
        flow.since = now;
    }

    /// A transfer has ended. Nothing changes before [`Sharing::share`].
    pub(super) fn leave(&mut self, slot: u32) {
        let flow = &mut self.flows[slot as usize];
        flow.version = flow.version.wrapping_add(1);
        for &link in &flow.links {
            let members = &mut self.members[link as usize];
            if let Some(place) = members.iter().position(|&other| other == slot) {
                members.swap_remove(place);
            }
        }
        self.dirty.extend_from_slice(&flow.links);
    }

    /// Shares the links anew after transfers have joined and left; tells slot, version and end of those that now end next.
    pub(super) fn share(&mut self, now: i64, mut next: impl FnMut(u32, u32, i64)) {
        while let Some(slot) = self.free.pop() {
            self.found.clear();
            self.found.push(slot);
            self.flows[slot as usize].turn(Rate::WHOLE, now);
            self.schedule(&mut next);
        }
        let searches = self.searches;
        while let Some(link) = self.dirty.pop() {
            if self.marked[link as usize] > searches || self.members[link as usize].is_empty() {
                continue;
            }
            self.search(link);
            if self.capacities.is_empty()
                && let [only] = self.filling[..]
            {
                let rate = Rate::WHOLE.times(1, only.waiting);
                self.found.iter().for_each(|&slot| self.flows[slot as usize].turn(rate, now));
            } else {
                self.fill(now);
            }
            self.schedule(&mut next);
        }
    }

    /// Finds the transfers and links that can be reached from a link.
    fn search(&mut self, from: u32) {
        self.searches += 1;
        let (search, whole) = (self.searches, self.whole());
        self.found.clear();
        self.filling.clear();
        let mut reach = |link: u32, found: &mut Vec<u32>, flows: &mut [Flow]| {
            if std::mem::replace(&mut self.marked[link as usize], search) == search {
                return;
            }
            let left = self.capacities.get(link as usize).map_or(Rate::WHOLE, |&capacity| Rate::whole(capacity));
            let mut waiting = 0;
            for &slot in &self.members[link as usize] {
                let flow = &mut flows[slot as usize];
                waiting += if flow.parts.is_empty() { whole.into() } else { flow.parts_of(link, whole) };
                if std::mem::replace(&mut flow.seen, search) != search {
                    found.push(slot);
                }
            }
            self.filling.push(Filling { link, left, waiting });
        };
        reach(from, &mut self.found, &mut self.flows);
        let mut at = 0;
        while let Some(&slot) = self.found.get(at) {
            at += 1;
            for position in 0..self.flows[slot as usize].links.len() {
                let link = self.flows[slot as usize].links[position];
                reach(link, &mut self.found, &mut self.flows);
            }
        }
    }

    /// Gives the transfers that were found their rates: those that are full first.
    fn fill(&mut self, now: i64) {
        self.filling.sort_unstable_by_key(|filling| filling.link);
        let whole = self.whole();
        let mut waiting = self.found.len();
        while waiting > 0 {
            let open = self.filling.iter().filter(|filling| filling.waiting > 0);
            let levels = open.map(|filling| (filling.left.times(whole.into(), filling.waiting), filling.link));
            let Some((level, narrowest)) = levels.min_by(|a, b| a.0.compare(b.0)) else { break };
            let level = if level.parts == 0 { Rate { parts: 1, of: FINEST } } else { level };
            let reached = |flow: &Flow| Rate::whole(flow.speed).compare(level) != Ordering::Greater;
            let open = |flow: &Flow| flow.seen == self.searches;
            let flows = self.found.iter().map(|&slot| &self.flows[slot as usize]);
            let alone = !self.capacities.is_empty() && flows.filter(|flow| open(flow)).any(reached);
            for position in 0..self.found.len() {
                let flow = &mut self.flows[self.found[position] as usize];
                // Marked as found; a transfer with its rate is marked no longer.
                let next = if alone { reached(flow) } else { flow.links.contains(&narrowest) };
                if flow.seen != self.searches || !next {
                    continue;
                }
                flow.seen = 0;
                let speed = if alone { Rate::whole(flow.speed) } else { level };
                flow.turn(if alone { Rate::WHOLE } else { level.times(1, flow.speed) }, now);
                waiting -= 1;
                for filling in self.filling.iter_mut().filter(|filling| flow.links.contains(&filling.link)) {
                    let parts = flow.parts_of(filling.link, whole);
                    let taken = if parts == u64::from(whole) { speed } else { speed.times(parts, whole.into()) };
                    filling.left = filling.left.less(taken);
                    filling.waiting -= parts;
                }
            }
        }
    }

    /// Tells of those found that end next, if the clock does not know.
    fn schedule(&mut self, next: &mut impl FnMut(u32, u32, i64)) {
        let Some(end) = self.found.iter().map(|&slot| self.flows[slot as usize].end).min() else { return };
        for &slot in &self.found {
            let flow = &mut self.flows[slot as usize];
            if flow.end == end && !std::mem::replace(&mut flow.scheduled, true) {
                next(slot, flow.version, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of some links that carry 1.
    fn on(links: &[u32]) -> Path<'_> {
        Path { links: [links, &[]], parts: &[], speed: 1 }
    }

    /// What ends next, by slot.
    fn next(sharing: &mut Sharing, now: i64) -> Vec<(u32, i64)> {
        let mut ends = vec![];
        sharing.share(now, |slot, _, end| ends.push((slot, end)));
        ends.sort_unstable();
        ends
    }

    #[test]
    fn two_on_a_link_take_half_each() {
        let mut sharing = Sharing::new(1, vec![]);
        sharing.join(0, on(&[0]), 100, 0);
        assert_eq!(next(&mut sharing, 0), [(0, 100)]);
        sharing.join(1, on(&[0]), 100, 50);
        assert_eq!(next(&mut sharing, 50), [(0, 150)]);
        sharing.leave(0);
        assert_eq!(next(&mut sharing, 150), [(1, 200)]);
    }

    #[test]
    fn what_one_cannot_use_another_gets() {
        // 0 and 1 share link 0, 1 and 2 and 3 share link 1: 1, 2 and 3 get a third, so 0 gets two.
        let mut sharing = Sharing::new(2, vec![]);
        sharing.join(1, on(&[0, 1]), 90, 0);
        sharing.join(2, on(&[1]), 90, 0);
        sharing.join(3, on(&[1]), 90, 0);
        sharing.join(0, on(&[0]), 90, 0);
        assert_eq!(next(&mut sharing, 0), [(0, 135)]);
        let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
        assert_eq!(rates, [(2, 3), (1, 3), (1, 3), (1, 3)]);
        // Those that end together do so in the same tick.
        sharing.leave(0);
        assert_eq!(next(&mut sharing, 135), [(1, 270), (2, 270), (3, 270)]);
    }

    #[test]
    fn fast_transfers_leave_a_wide_link_to_slow_ones() {
        // A wide link of 100: 0 and 1 are held to 10 by narrow links of their own, 2 has the wide one alone.
        let mut sharing = Sharing::new(3, vec![100, 10, 10]);
        let path = |links, speed| Path { links: [links, &[]], parts: &[], speed };
        sharing.join(0, path(&[0, 1], 10), 100, 0);
        sharing.join(1, path(&[0, 2], 10), 100, 0);
        assert_eq!(next(&mut sharing, 0), [(0, 100), (1, 100)], "together they take a fifth of it");
        sharing.join(2, path(&[0], 100), 80, 0);
        assert_eq!(next(&mut sharing, 0), [(2, 100)], "and leave four fifths: 80 ticks become 100");
        let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
        assert_eq!(rates, [(1, 1), (1, 1), (4, 5)]);
        // Two on one narrow link take half each, and the wide one has more left.
        sharing.join(3, path(&[0, 1], 10), 100, 0);
        next(&mut sharing, 0);
        let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
        assert_eq!(rates, [(1, 2), (1, 1), (4, 5), (1, 2)]);
    }

    #[test]
    fn a_transfer_of_several_devices_takes_a_part_of_each_link() {
        // Two devices of one end send over a link each, half of the bytes, and 1 has the first of these links alone.
        let mut sharing = Sharing::new(2, vec![10, 10]);
        let (half, links) = ([WHOLE / 2; 2], [0, 1]);
        sharing.join(0, Path { links: [&links, &[]], parts: &half, speed: 20 }, 100, 0);
        assert_eq!(next(&mut sharing, 0), [(0, 100)]);
        sharing.join(1, Path { links: [&[0], &[]], parts: &[], speed: 10 }, 100, 0);
        next(&mut sharing, 0);
        // At equal speeds of both, v/2 + v = 10.
        let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
        assert_eq!(rates, [(1, 3), (2, 3)]);
    }

    /// When each of some transfers that start at once ends, by filling up in floating point from end to end.
    fn filled_up(capacities: &[u64], flows: &[(Vec<u32>, Vec<u32>, u64, i64)]) -> Vec<f64> {
        let part = |flow: usize, link: usize| {
            let at = flows[flow].0.iter().position(|&own| own as usize == link);
            at.map_or(0.0, |at| f64::from(flows[flow].1[at]) / f64::from(WHOLE))
        };
        let mut left: Vec<f64> = flows.iter().map(|flow| flow.3 as f64).collect();
        let (mut ends, mut now) = (vec![0.0; flows.len()], 0.0);
        while ends.contains(&0.0) {
            let live: Vec<usize> = (0..flows.len()).filter(|&flow| ends[flow] == 0.0).collect();
            let mut speeds = vec![None; flows.len()];
            while live.iter().any(|&flow| speeds[flow].is_none()) {
                let rest = |link: usize| {
                    let taken: f64 = live.iter().map(|&flow| part(flow, link) * speeds[flow].unwrap_or(0.0)).sum();
                    let open: f64 = live.iter().filter(|&&f| speeds[f].is_none()).map(|&f| part(f, link)).sum();
                    (capacities[link] as f64 - taken).max(1e-9) / open
                };
                let open: Vec<usize> = live.iter().copied().filter(|&flow| speeds[flow].is_none()).collect();
                let used = |link: &usize| open.iter().any(|&flow| part(flow, *link) > 0.0);
                let links: Vec<(f64, usize)> =
                    (0..capacities.len()).filter(used).map(|link| (rest(link), link)).collect();
                let (level, link) = links.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
                let slowest = open.iter().copied().min_by_key(|&flow| flows[flow].2).unwrap();
                if flows[slowest].2 as f64 <= level {
                    speeds[slowest] = Some(flows[slowest].2 as f64);
                } else {
                    open.iter().filter(|&&flow| part(flow, link) > 0.0).for_each(|&flow| speeds[flow] = Some(level));
                }
            }
            let rate = |flow: usize| speeds[flow].unwrap() / flows[flow].2 as f64;
            let step = live.iter().map(|&flow| left[flow] / rate(flow)).fold(f64::INFINITY, f64::min);
            now += step;
            for &flow in &live {
                left[flow] -= step * rate(flow);
                if left[flow] < 1e-6 * flows[flow].3 as f64 {
                    ends[flow] = now;
                }
            }
        }
        ends
    }

    #[test]
    fn ends_are_those_of_filling_up_in_floating_point() {
        let mut state = 7u64;
        let mut next = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for round in 0..300 {
            let links = 1 + next(5) as usize;
            let capacities: Vec<u64> = (0..links).map(|_| 1_000 * (1 + next(400))).collect();
            let flows: Vec<(Vec<u32>, Vec<u32>, u64, i64)> = (0..2 + next(6))
                .map(|_| {
                    let own: Vec<u32> = (0..links as u32).filter(|_| next(2) == 0).collect();
                    let own = if own.is_empty() { vec![next(links as u64) as u32] } else { own };
                    let parts: Vec<u32> = own.iter().map(|_| WHOLE / (1 + next(3) as u32)).collect();
                    let fits = own
                        .iter()
                        .zip(&parts)
                        .map(|(&link, &parts)| capacities[link as usize] * u64::from(WHOLE) / u64::from(parts));
                    let speed = fits.min().unwrap() / (1 + next(3));
                    (own, parts, speed, 100_000 + next(900_000) as i64)
                })
                .collect();
            let mut sharing = Sharing::new(links, capacities.clone());
            for (slot, (own, parts, speed, ticks)) in (0..).zip(&flows) {
                sharing.join(slot, Path { links: [own, &[]], parts, speed: *speed }, *ticks, 0);
            }
            let (mut ends, mut clock) = (vec![0.0; flows.len()], vec![]);
            sharing.share(0, |slot, version, end| clock.push((end, slot, version)));
            while let Some(at) = (0..clock.len()).min_by_key(|&at| clock[at]) {
                let (end, slot, version) = clock.swap_remove(at);
                if sharing.version(slot) == version {
                    ends[slot as usize] = end as f64;
                    sharing.leave(slot);
                    sharing.share(end, |slot, version, end| clock.push((end, slot, version)));
                }
            }
            for (own, expected) in ends.iter().zip(filled_up(&capacities, &flows)) {
                assert!((own - expected).abs() <= 20.0 + 1e-5 * expected, "{round}: {own} {expected} {flows:?}");
            }
        }
    }

    #[test]
    fn transfers_without_links_run_alone() {
        let mut sharing = Sharing::new(0, vec![]);
        sharing.join(0, on(&[]), 7, 1);
        assert_eq!(next(&mut sharing, 1), [(0, 8)]);
        sharing.join(1, on(&[]), 7, 2);
        assert_eq!(next(&mut sharing, 2), [(1, 9)]);
    }

    #[test]
    fn many_thousand_sharers_are_rounded_and_still_end() {
        let mut rate = Rate::WHOLE;
        for by in 2..2000 {
            let share = rate.times(1, by);
            assert!(share.parts > 0 && share.of <= FINEST);
            rate = rate.less(share);
        }
        assert!(rate.compare(Rate::WHOLE) == Ordering::Less);
    }
}
