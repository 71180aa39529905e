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
mod tests;
