//! Links whose bandwidth transfers share fairly: nobody can get more without taking from someone with no more.
//!
//! Every link carries 1 a tick, which is what a lone transfer uses. The max-min fair rates come from filling up: the link
//! with the least left for each of its transfers fixes their rates, and so on. Only what a change can reach over common
//! links is computed anew: `O(t · l)` for `t` transfers and `l` links joined to it.

/// A transfer under way.
#[derive(Debug, Clone, Default)]
struct Flow {
    links: Vec<u32>,
    /// Ticks at full rate that are left of it at `since`.
    left: f64,
    rate: f64,
    since: i64,
    /// Counts changes of its rate, over all transfers that used the slot.
    version: u32,
    /// Marks of a search.
    seen: u64,
}

/// All transfers under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
    flows: Vec<Flow>,
    /// By link: the transfers on it.
    members: Vec<Vec<u32>>,
    marked: Vec<u64>,
    searches: u64,
    /// Slot, version and end of those that changed.
    changes: Vec<(u32, u32, i64)>,
}

impl Sharing {
    pub(super) fn new(links: usize) -> Self {
        Sharing { members: vec![vec![]; links], marked: vec![0; links], ..Sharing::default() }
    }

    /// The version of a transfer's rate that holds now.
    pub(super) fn version(&self, slot: u32) -> u32 {
        self.flows[slot as usize].version
    }

    /// The next transfer whose end has changed: slot, version, end.
    pub(super) fn changed(&mut self) -> Option<(u32, u32, i64)> {
        self.changes.pop()
    }

    /// A transfer starts that would take `ticks` alone.
    pub(super) fn join(&mut self, slot: u32, links: &[u32], ticks: i64, now: i64) {
        if self.flows.len() <= slot as usize {
            self.flows.resize(slot as usize + 1, Flow::default());
        }
        for &link in links {
            self.members[link as usize].push(slot);
        }
        let flow = &mut self.flows[slot as usize];
        flow.links.clear();
        flow.links.extend_from_slice(links);
        flow.left = ticks as f64;
        flow.rate = 0.0;
        flow.since = now;
        if links.is_empty() || links.iter().all(|&link| self.members[link as usize].len() == 1) {
            // Alone: exact, however long.
            flow.rate = 1.0;
            flow.version += 1;
            self.changes.push((slot, flow.version, now + ticks));
        } else {
            self.share(slot, now);
        }
    }

    /// A transfer has ended.
    pub(super) fn leave(&mut self, slot: u32, now: i64) {
        let links = std::mem::take(&mut self.flows[slot as usize].links);
        self.flows[slot as usize].version += 1;
        for &link in &links {
            self.members[link as usize].retain(|&other| other != slot);
        }
        for &link in &links {
            if let Some(&other) = self.members[link as usize].first() {
                self.share(other, now);
            }
        }
        self.flows[slot as usize].links = links;
    }

    /// Fills up the links that can be reached from a transfer.
    fn share(&mut self, from: u32, now: i64) {
        self.searches += 1;
        let (mut flows, mut links) = (vec![from], vec![]);
        self.flows[from as usize].seen = self.searches;
        let mut next = 0;
        while let Some(&slot) = flows.get(next) {
            next += 1;
            for position in 0..self.flows[slot as usize].links.len() {
                let link = self.flows[slot as usize].links[position];
                if std::mem::replace(&mut self.marked[link as usize], self.searches) == self.searches {
                    continue;
                }
                links.push((link, 1.0, self.members[link as usize].len()));
                for &other in &self.members[link as usize] {
                    if std::mem::replace(&mut self.flows[other as usize].seen, self.searches) != self.searches {
                        flows.push(other);
                    }
                }
            }
        }
        let mut rates: Vec<(u32, f64)> = vec![];
        while !flows.is_empty() {
            let share = |&(_, left, count): &(u32, f64, usize)| left / count as f64;
            let narrowest = links.iter().filter(|link| link.2 > 0).min_by(|a, b| share(a).total_cmp(&share(b)));
            let Some(&narrowest) = narrowest else { break };
            let rate = share(&narrowest).max(f64::MIN_POSITIVE);
            flows.retain(|&slot| {
                let on = &self.flows[slot as usize].links;
                if !on.contains(&narrowest.0) {
                    return true;
                }
                for link in links.iter_mut().filter(|link| on.contains(&link.0)) {
                    link.1 = (link.1 - rate).max(0.0);
                    link.2 -= 1;
                }
                rates.push((slot, rate));
                false
            });
        }
        for (slot, rate) in rates {
            let flow = &mut self.flows[slot as usize];
            if flow.rate == rate {
                continue;
            }
            flow.left = (flow.left - flow.rate * (now - flow.since) as f64).max(0.0);
            flow.since = now;
            flow.rate = rate;
            flow.version += 1;
            self.changes.push((slot, flow.version, now + (flow.left / rate).ceil() as i64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of all transfers that change, by slot.
    fn ends(sharing: &mut Sharing) -> Vec<(u32, i64)> {
        let mut ends: Vec<_> = std::iter::from_fn(|| sharing.changed()).map(|(slot, _, end)| (slot, end)).collect();
        ends.sort_unstable();
        ends
    }

    #[test]
    fn two_on_a_link_take_half_each() {
        let mut sharing = Sharing::new(1);
        sharing.join(0, &[0], 100, 0);
        assert_eq!(ends(&mut sharing), [(0, 100)]);
        sharing.join(1, &[0], 100, 50);
        assert_eq!(ends(&mut sharing), [(0, 150), (1, 250)]);
        sharing.leave(0, 150);
        assert_eq!(ends(&mut sharing), [(1, 200)]);
    }

    #[test]
    fn what_one_cannot_use_another_gets() {
        // 0 and 1 share link 0, 1 and 2 and 3 share link 1: 1, 2 and 3 get a third, so 0 gets two.
        let mut sharing = Sharing::new(2);
        sharing.join(1, &[0, 1], 90, 0);
        sharing.join(2, &[1], 90, 0);
        sharing.join(3, &[1], 90, 0);
        sharing.join(0, &[0], 90, 0);
        let rates: Vec<f64> = sharing.flows.iter().map(|flow| flow.rate).collect();
        for (rate, expected) in rates.iter().zip([2.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]) {
            assert!((rate - expected).abs() < 1e-12, "{rates:?}");
        }
    }

    #[test]
    fn transfers_without_links_run_alone() {
        let mut sharing = Sharing::new(0);
        sharing.join(0, &[], 7, 1);
        sharing.join(1, &[], 7, 2);
        assert_eq!(ends(&mut sharing), [(0, 8), (1, 9)]);
    }
}
