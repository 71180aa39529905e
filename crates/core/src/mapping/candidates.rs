//! All times that a pair or a ring can take: bytes over widths. Without shared links, the optimum is one of them.
//!
//! Many flows on measured links give many millions of times, so they are counted and not listed: for a given number of
//! bytes they ascend as widths shrink. A count takes `O(bytes · log widths)`; finding the time of a given rank takes
//! some sixty counts.

use super::MappingInstance;

/// Distinct numbers of bytes, and distinct widths.
pub(super) struct CandidateTimes<'b> {
    bytes: Vec<f64>,
    /// Widths in bytes per second, the widest first.
    widths: &'b [f64],
}

impl<'b> CandidateTimes<'b> {
    pub(super) fn new(instance: &'b MappingInstance<'_>) -> Self {
        let groups = instance.demands.groups.iter().map(|group| group.bytes);
        let mut bytes: Vec<f64> = instance.demands.flows.iter().map(|flow| flow.bytes).chain(groups).collect();
        bytes.sort_unstable_by(f64::total_cmp);
        bytes.dedup();
        CandidateTimes { bytes, widths: instance.reach().widths() }
    }

    /// Least time for which `pass` is false. `pass` must be monotone: if it is true for a time, then for all smaller
    /// times.
    pub(super) fn least(&self, pass: impl Fn(f64) -> bool) -> Option<f64> {
        let of = |&bytes: &f64| {
            let at = self.widths.partition_point(|width| pass(bytes / width));
            self.widths.get(at).map(|width| bytes / width)
        };
        self.bytes.iter().filter_map(of).reduce(f64::min)
    }

    /// Number of times for which `pass` is true.
    fn count(&self, pass: impl Fn(f64) -> bool) -> usize {
        self.bytes.iter().map(|bytes| self.widths.partition_point(|width| pass(bytes / width))).sum()
    }

    /// At most `most` times below `less_than` for which `pass` is false: evenly spaced by rank, ascending.
    pub(super) fn spaced(&self, most: usize, pass: impl Fn(f64) -> bool, less_than: f64) -> Vec<f64> {
        let before = self.count(pass);
        let open = self.count(|time| time < less_than).saturating_sub(before);
        let most = most.min(open);
        let mut picked: Vec<f64> = (1..=most).map(|k| self.at(before + k * open / (most + 1), less_than)).collect();
        picked.dedup();
        picked
    }

    /// Time of this rank (from 0) below `less_than`; bisects over the bits of a float.
    fn at(&self, rank: usize, less_than: f64) -> f64 {
        let (mut from, mut to) = (0, less_than.to_bits());
        while from < to {
            let middle = from + (to - from) / 2;
            let time = f64::from_bits(middle);
            if self.count(|other| other <= time) > rank { to = middle } else { from = middle + 1 }
        }
        f64::from_bits(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix;

    #[test]
    fn what_is_counted_is_what_a_list_has() {
        let mut random = SplitMix::new(8);
        let mut draw = |most: u64| (1 + random.next_u64() % most) as f64;
        for round in 0..60 {
            let many = if round % 2 == 0 { 6 } else { 1 << 30 };
            let mut list = |count: usize| {
                let mut list: Vec<f64> = (0..count).map(|_| draw(many)).collect();
                list.sort_unstable_by(|a, b| b.total_cmp(a));
                list.dedup();
                list
            };
            let (bytes, widths) = (list(1 + round % 7), list(1 + round % 5));
            let mut all: Vec<f64> = bytes.iter().flat_map(|b| widths.iter().map(move |w| b / w)).collect();
            all.sort_unstable_by(f64::total_cmp);
            let candidates = CandidateTimes { bytes: bytes.clone(), widths: &widths };
            for (at, &time) in all.iter().enumerate() {
                assert_eq!(candidates.least(|other| other < time), Some(time));
                assert_eq!(candidates.at(at, f64::INFINITY), time);
            }
            let (low, high) = (all[all.len() / 4], all[all.len() / 2] * 1.5);
            let mut open: Vec<f64> = all.iter().copied().filter(|&time| time > low && time < high).collect();
            let spaced = |most| candidates.spaced(most, |time| time <= low, high);
            let one = open.get(open.len() / 2).copied();
            assert_eq!(spaced(1), one.into_iter().collect::<Vec<_>>());
            open.dedup();
            assert_eq!(spaced(1000), open);
        }
    }
}
