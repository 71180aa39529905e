//! Links whose bandwidth transfers share fairly: nobody can get more without taking from someone with no more.
//!
//! Every link carries 1 a tick, which is what a lone transfer uses. The max-min fair rates come from filling up: the link
//! with the least left for each of its transfers fixes their rates, and so on. Rates are fractions and what is left of a
//! transfer is a whole number of parts of a tick, so transfers that end together by calculation end in the same tick, and
//! nothing depends on the order in which links and transfers are counted. (Should a denominator ever exceed [`FINEST`], which
//! takes links of many thousand transfers or many links in a row, the fraction is rounded.)
//!
//! All changes of a moment are taken together, and only what they can reach over common links is computed anew: `O(t · l)` for
//! `t` transfers and `l` links joined to them, `O(t)` where each has one link only. Of transfers that are joined only those
//! that end next have a time in the clock; before the others end their rates change.

use std::cmp::Ordering;

/// A part of a link's bandwidth, or of a transfer's: `parts / of` in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rate {
    parts: u64,
    of: u64,
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
        if of <= FINEST {
            Rate { parts: parts as u64, of: of as u64 }
        } else {
            Rate::new((parts * (FINEST >> 8)).div_ceil(of), FINEST >> 8)
        }
    }

    fn less(self, other: Rate) -> Rate {
        let (a, b) = (u128::from(self.of), u128::from(other.of));
        let (have, take) = (u128::from(self.parts) * b, u128::from(other.parts) * a);
        Rate::new(have.saturating_sub(take), a * b)
    }

    fn shared(self, by: usize) -> Rate {
        if self == Rate::WHOLE {
            Rate { parts: 1, of: by as u64 }
        } else {
            Rate::new(self.parts.into(), u128::from(self.of) * by as u128)
        }
    }

    fn compare(self, other: Rate) -> Ordering {
        (u128::from(self.parts) * u128::from(other.of)).cmp(&(u128::from(other.parts) * u128::from(self.of)))
    }
}

/// A transfer under way.
#[derive(Debug, Clone)]
struct Flow {
    links: Vec<u32>,
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
    const NEW: Flow =
        Flow { links: vec![], left: 0, rate: Rate::NONE, since: 0, end: 0, scheduled: false, version: 0, seen: 0 };

    /// Goes on at another rate from now on.
    fn turn(&mut self, rate: Rate, now: i64) {
        if self.rate == rate {
            return;
        }
        let (parts, of) = (u128::from(self.rate.parts), u128::from(self.rate.of));
        let moved = (now - self.since) as u128 * GRAIN * parts / of;
        self.left = self.left.saturating_sub(moved);
        self.since = now;
        self.rate = rate;
        self.end = now + (self.left * u128::from(rate.of)).div_ceil(u128::from(rate.parts) * GRAIN) as i64;
        self.scheduled = false;
        self.version = self.version.wrapping_add(1);
    }
}

/// A link while it is filled up.
#[derive(Debug, Clone, Copy)]
struct Filling {
    link: u32,
    left: Rate,
    /// Transfers on it without a rate.
    waiting: usize,
}

/// All transfers under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
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
    pub(super) fn new(links: usize) -> Self {
        Sharing { members: vec![vec![]; links], marked: vec![0; links], ..Sharing::default() }
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
    pub(super) fn join(&mut self, slot: u32, links: [&[u32]; 2], ticks: i64, now: i64) {
        if self.flows.len() <= slot as usize {
            self.flows.resize(slot as usize + 1, Flow::NEW);
        }
        let flow = &mut self.flows[slot as usize];
        flow.links.clear();
        flow.links.extend(links.into_iter().flatten());
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
            if let [only] = self.filling[..] {
                let rate = Rate::WHOLE.shared(only.waiting);
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
        let search = self.searches;
        self.found.clear();
        self.filling.clear();
        let mut reach = |link: u32, found: &mut Vec<u32>, flows: &mut [Flow]| {
            if std::mem::replace(&mut self.marked[link as usize], search) == search {
                return;
            }
            let members = &self.members[link as usize];
            self.filling.push(Filling { link, left: Rate::WHOLE, waiting: members.len() });
            for &slot in members {
                if std::mem::replace(&mut flows[slot as usize].seen, search) != search {
                    found.push(slot);
                }
            }
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

    /// Gives the transfers that were found their rates, those of the narrowest link first.
    fn fill(&mut self, now: i64) {
        self.filling.sort_unstable_by_key(|filling| filling.link);
        let mut waiting = self.found.len();
        while waiting > 0 {
            let open = self.filling.iter().filter(|filling| filling.waiting > 0);
            let shares = open.map(|filling| (filling.left.shared(filling.waiting), filling.link));
            let Some((rate, narrowest)) = shares.min_by(|a, b| a.0.compare(b.0)) else { break };
            let rate = if rate.parts == 0 { Rate { parts: 1, of: FINEST as u64 } } else { rate };
            for position in 0..self.found.len() {
                let flow = &mut self.flows[self.found[position] as usize];
                // Marked as found; a transfer with its rate is marked no longer.
                if flow.seen != self.searches || !flow.links.contains(&narrowest) {
                    continue;
                }
                flow.seen = 0;
                flow.turn(rate, now);
                waiting -= 1;
                for filling in self.filling.iter_mut().filter(|filling| flow.links.contains(&filling.link)) {
                    filling.left = filling.left.less(rate);
                    filling.waiting -= 1;
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

    /// What ends next, by slot.
    fn next(sharing: &mut Sharing, now: i64) -> Vec<(u32, i64)> {
        let mut ends = vec![];
        sharing.share(now, |slot, _, end| ends.push((slot, end)));
        ends.sort_unstable();
        ends
    }

    #[test]
    fn two_on_a_link_take_half_each() {
        let mut sharing = Sharing::new(1);
        sharing.join(0, [&[0], &[]], 100, 0);
        assert_eq!(next(&mut sharing, 0), [(0, 100)]);
        sharing.join(1, [&[0], &[]], 100, 50);
        assert_eq!(next(&mut sharing, 50), [(0, 150)]);
        sharing.leave(0);
        assert_eq!(next(&mut sharing, 150), [(1, 200)]);
    }

    #[test]
    fn what_one_cannot_use_another_gets() {
        // 0 and 1 share link 0, 1 and 2 and 3 share link 1: 1, 2 and 3 get a third, so 0 gets two.
        let mut sharing = Sharing::new(2);
        sharing.join(1, [&[0, 1], &[]], 90, 0);
        sharing.join(2, [&[1], &[]], 90, 0);
        sharing.join(3, [&[1], &[]], 90, 0);
        sharing.join(0, [&[0], &[]], 90, 0);
        assert_eq!(next(&mut sharing, 0), [(0, 135)]);
        let rates: Vec<(u64, u64)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
        assert_eq!(rates, [(2, 3), (1, 3), (1, 3), (1, 3)]);
        // Those that end together do so in the same tick.
        sharing.leave(0);
        assert_eq!(next(&mut sharing, 135), [(1, 270), (2, 270), (3, 270)]);
    }

    #[test]
    fn transfers_without_links_run_alone() {
        let mut sharing = Sharing::new(0);
        sharing.join(0, [&[], &[]], 7, 1);
        assert_eq!(next(&mut sharing, 1), [(0, 8)]);
        sharing.join(1, [&[], &[]], 7, 2);
        assert_eq!(next(&mut sharing, 2), [(1, 9)]);
    }

    #[test]
    fn many_thousand_sharers_are_rounded_and_still_end() {
        let mut rate = Rate::WHOLE;
        for by in 2..2000 {
            let share = rate.shared(by);
            assert!(share.parts > 0 && u128::from(share.of) <= FINEST);
            rate = rate.less(share);
        }
        assert!(rate.compare(Rate::WHOLE) == Ordering::Less);
    }
}
