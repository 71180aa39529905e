//! Max-min fair sharing of links between transfers: no transfer can get more without taking from one that has no more.
//!
//! A link has a capacity and a transfer has its speed alone, in one unit. On each of its links it takes a part of its
//! speed: all of it, or less if several devices send at once on ways of their own. Max-min fair speeds come from
//! progressive filling: all speeds grow equally; a transfer stops at its speed alone, or when one of its links is full;
//! the others continue. Without capacities every link carries 1, the speed of a lone transfer. Rates (speeds as
//! fractions of the speed alone) are exact fractions, and the remainder of a transfer is a whole number of parts of a
//! tick. Transfers that end together by calculation therefore end in the same tick, and the order of links and
//! transfers has no effect. (A fraction is rounded if its denominator exceeds [`FINEST`]. That takes links with many
//! thousands of transfers, or many links in a row, or latencies.)
//!
//! All changes of a moment are processed together, and only transfers reachable over common links are recomputed:
//! `O(t · l)` for `t` transfers and `l` links joined to them, `O(t)` if each has one link only. Among joined transfers
//! only those that end next have a time in the clock; the rates of the others change before they end.

use std::cmp::Ordering;

/// Speed, or a fraction of one: `parts / of` in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    parts: u128,
    of: u128,
}

/// Largest speed and capacity. With [`FINEST`] it keeps products of fractions within 128 bits.
pub(super) const FASTEST: u64 = 1 << 41;

/// Number of parts of a transfer's speed, for links on which it takes less than all of it.
pub(super) const WHOLE: u32 = 5040;

/// Links of a transfer and its use of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'a> {
    /// Links, in two lists.
    pub(super) links: [&'a [u32]; 2],
    /// By link of the first list: the parts of [`WHOLE`] that it takes. If empty, all of every link.
    pub(super) parts: &'a [u32],
    /// Speed alone, in the unit of the capacities, from 1 to [`FASTEST`].
    pub(super) speed: u64,
}

/// Largest denominator of a rate.
const FINEST: u128 = 1 << 40;

/// Parts of a tick that work is counted in. Equal sharing by up to 16 transfers is exact.
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

    /// Product with `parts / of`, at most [`FASTEST`].
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

/// Running transfer.
#[derive(Debug, Clone)]
struct RunningTransfer {
    links: Vec<u32>,
    /// By link: its parts of the speed; empty if it takes all of it.
    parts: Vec<u32>,
    /// Speed alone.
    speed: u64,
    /// Remaining parts of a tick at full rate, at `since`.
    left: u128,
    rate: Rate,
    since: i64,
    /// End if no rate changes.
    end: i64,
    /// True if the end is in the clock.
    scheduled: bool,
    /// Counter of changes of its end, over all transfers that used the slot.
    version: u32,
    /// Mark of the last search that found it.
    seen: u64,
}

impl RunningTransfer {
    const NEW: RunningTransfer = RunningTransfer {
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

    /// Parts of its speed, of `whole`, that it takes of a link.
    fn parts_of(&self, link: u32, whole: u32) -> u64 {
        let at = self.links.iter().position(|&own| own == link);
        at.map_or(0, |at| self.parts.get(at).map_or(whole, |&parts| parts).into())
    }

    /// Changes the rate from `now` on.
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

/// Link during progressive filling.
#[derive(Debug, Clone, Copy)]
struct LinkFill {
    link: u32,
    left: Rate,
    /// Parts of its transfers that have no rate yet.
    waiting: u64,
}

/// All running transfers.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
    /// By link; empty if every link and every transfer has speed 1.
    capacities: Vec<u64>,
    flows: Vec<RunningTransfer>,
    /// By link: its transfers.
    members: Vec<Vec<u32>>,
    marked: Vec<u64>,
    searches: u64,
    /// Links whose transfers have changed.
    dirty: Vec<u32>,
    /// Starting transfers that use no link.
    free: Vec<u32>,
    /// Transfers and links found by a search.
    found: Vec<u32>,
    filling: Vec<LinkFill>,
}

impl Sharing {
    /// Creates `links` links. Without capacities each carries the speed of a lone transfer.
    pub(super) fn new(links: usize, capacities: Vec<u64>) -> Self {
        Sharing { capacities, members: vec![vec![]; links], marked: vec![0; links], ..Sharing::default() }
    }

    /// Number of parts in a transfer's speed.
    fn whole(&self) -> u32 {
        if self.capacities.is_empty() { 1 } else { WHOLE }
    }

    /// Current version of a transfer's end.
    pub(super) fn version(&self, slot: u32) -> u32 {
        self.flows[slot as usize].version
    }

    /// State of a transfer that later moments depend on, with times relative to `now`.
    pub(super) fn state(&self, slot: u32, now: i64) -> [i64; 6] {
        let flow = &self.flows[slot as usize];
        let (low, high) = (flow.left as u64 as i64, (flow.left >> 64) as i64);
        [low, high, flow.rate.parts as i64, flow.rate.of as i64, flow.since - now, flow.end - now]
    }

    /// Shifts a transfer by `ticks`.
    pub(super) fn delay(&mut self, slot: u32, ticks: i64) {
        let flow = &mut self.flows[slot as usize];
        flow.since += ticks;
        flow.end += ticks;
    }

    /// Starts a transfer that takes `ticks` alone. It has no effect before [`Sharing::share`].
    pub(super) fn join(&mut self, slot: u32, path: Path<'_>, ticks: i64, now: i64) {
        if self.flows.len() <= slot as usize {
            self.flows.resize(slot as usize + 1, RunningTransfer::NEW);
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

    /// Removes a finished transfer. It has no effect before [`Sharing::share`].
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

    /// Recomputes the rates after transfers have joined and left. Reports slot, version and end of those that now end
    /// next.
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

    /// Finds the transfers and links reachable from a link.
    fn search(&mut self, from: u32) {
        self.searches += 1;
        let (search, whole) = (self.searches, self.whole());
        self.found.clear();
        self.filling.clear();
        let mut reach = |link: u32, found: &mut Vec<u32>, flows: &mut [RunningTransfer]| {
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
            self.filling.push(LinkFill { link, left, waiting });
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

    /// Sets the rates of the transfers found, by progressive filling.
    fn fill(&mut self, now: i64) {
        self.filling.sort_unstable_by_key(|filling| filling.link);
        let whole = self.whole();
        let mut waiting = self.found.len();
        while waiting > 0 {
            let open = self.filling.iter().filter(|filling| filling.waiting > 0);
            let levels = open.map(|filling| (filling.left.times(whole.into(), filling.waiting), filling.link));
            let Some((level, narrowest)) = levels.min_by(|a, b| a.0.compare(b.0)) else { break };
            let level = if level.parts == 0 { Rate { parts: 1, of: FINEST } } else { level };
            let reached = |flow: &RunningTransfer| Rate::whole(flow.speed).compare(level) != Ordering::Greater;
            let open = |flow: &RunningTransfer| flow.seen == self.searches;
            let flows = self.found.iter().map(|&slot| &self.flows[slot as usize]);
            let alone = !self.capacities.is_empty() && flows.filter(|flow| open(flow)).any(reached);
            for position in 0..self.found.len() {
                let flow = &mut self.flows[self.found[position] as usize];
                // A found transfer is marked until it has its rate.
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

    /// Reports the transfers found that end next, unless the clock has them.
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
