//! The undominated pairs of the set at hand while its stages are tried one after the other.
//!
//! By number of replicas there is the fewest devices known, and a bound from below: what is too many for the rest of the
//! network on the one side, what an earlier question with a larger load could do with on the other. Numbers of replicas for which
//! the two have met are closed; where all are, no more stages need to be tried. What is found below the bound cannot belong to
//! a whole plan and counts as the bound, so that the pairs do not depend on the order of trying.
//!
//! A step takes `O(replicas)` time, memory is `O(replicas)`.

use super::probe::{FoundPair, NONE};

/// By number of replicas, see above.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Fewest devices with so many replicas or fewer; where none are known, the fewest that are too many.
    fewest: Vec<u32>,
    /// The inner set of the stage that does with these, if they are known.
    by: Vec<u32>,
    /// No whole plan has a tail with so many replicas or fewer on fewer devices than these.
    least: Vec<u32>,
    /// What a stage with so many replicas or more must do better than to be of use: the fewest devices known for the next number
    /// of replicas that is open, 0 if none is. Never rises.
    to_beat: Vec<u32>,
    /// Whether an earlier question bounds anything from below.
    bounded: bool,
    /// How many are not closed; 1 for any number where nothing is bounded from below.
    open: usize,
    /// Where the first was found.
    first: usize,
}

impl Scratch {
    /// For up to so many replicas.
    pub(super) fn new(most_replicas: u32) -> Self {
        let len = most_replicas as usize + 1;
        Scratch {
            fewest: vec![0; len],
            by: vec![NONE; len],
            least: vec![0; len],
            to_beat: vec![0; len],
            bounded: false,
            open: 0,
            first: 0,
        }
    }

    /// Begins a set: `too_many` writes by replicas the fewest devices that are too many; `least` is what an earlier question could
    /// do with. Returns the most devices that may be of use.
    pub(super) fn begin(&mut self, too_many: impl FnOnce(&mut [u32]), least: Option<&[(u32, u32)]>) -> u32 {
        too_many(&mut self.fewest);
        self.first = usize::MAX;
        self.bounded = least.is_some();
        let Some(least) = least else {
            self.to_beat.copy_from_slice(&self.fewest);
            self.open = usize::from(self.to_beat[1] > 1);
            return self.to_beat[1].saturating_sub(1);
        };
        let (mut from, mut devices) = (0, NONE);
        for &(replicas, fewer) in least {
            let replicas = (replicas as usize).min(self.least.len());
            self.least[from..replicas].fill(devices);
            (from, devices) = (replicas, fewer);
        }
        self.least[from..].fill(devices);
        // Every tail has a replica.
        self.least[0] = NONE;
        self.open = 0;
        let mut to_beat = 0;
        for s in (0..self.fewest.len()).rev() {
            if self.is_open(s) {
                self.open += 1;
                to_beat = self.fewest[s];
            }
            self.to_beat[s] = to_beat;
        }
        to_beat.saturating_sub(1)
    }

    #[inline]
    fn is_open(&self, s: usize) -> bool {
        self.fewest[s] > self.least[s]
    }

    /// Whether nothing better can be found.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.open == 0
    }

    /// Whether so many devices or more may be better than what is known for so many replicas or more.
    #[inline]
    pub(super) fn may_be_better(&self, replicas: u32, devices: u32) -> bool {
        self.to_beat.get(replicas as usize).is_some_and(|&known| devices < known)
    }

    /// The first of a set's pairs to be better with a stage of `d` replicas on so many devices in front, if any may be.
    #[inline]
    pub(super) fn first_better(&self, pairs: &[(u32, u32)], d: u32, devices: u32) -> Option<usize> {
        // By the handful: none of them is better if not even the devices of the last with the replicas of the first are.
        const HANDFUL: usize = 8;
        let mut start = 0;
        while start < pairs.len() {
            let end = pairs.len().min(start + HANDFUL);
            let (most, fewest) = (self.to_beat(pairs[start].0 + d), pairs[end - 1].1);
            if devices.saturating_add(fewest) < most {
                for (at, &(s, j)) in pairs[start..end].iter().enumerate() {
                    if self.may_be_better(s + d, devices.saturating_add(j)) {
                        return Some(start + at);
                    }
                }
            }
            start = end;
        }
        None
    }

    /// The fewest devices that are of no use with so many replicas or more.
    #[inline]
    pub(super) fn to_beat(&self, replicas: u32) -> u32 {
        self.to_beat.get(replicas as usize).copied().unwrap_or_default()
    }

    /// Notes that so many devices do with `replicas`, and so with more.
    pub(super) fn lower(&mut self, replicas: u32, devices: u32, inner: u32) {
        let first = (replicas as usize).min(self.to_beat.len());
        let end = first + self.to_beat[first..].partition_point(|&known| known > devices);
        if first == end {
            return;
        }
        self.first = self.first.min(first);
        if !self.bounded {
            self.fewest[first..end].fill(devices);
            self.to_beat[first..end].fill(devices);
            self.by[first..end].fill(inner);
            return;
        }
        let mut to_beat = self.to_beat.get(end).copied().unwrap_or_default();
        for s in (first..end).rev() {
            if self.is_open(s) {
                self.fewest[s] = devices.max(self.least[s]);
                self.by[s] = inner;
                if self.is_open(s) {
                    to_beat = devices;
                } else {
                    self.open -= 1;
                }
            }
            self.to_beat[s] = to_beat;
        }
        // Closed ones before these go by the next that is open.
        for s in (0..first).rev().take_while(|&s| self.fewest[s] <= self.least[s]) {
            self.to_beat[s] = to_beat;
        }
    }

    /// Takes out the undominated pairs, which `found` is made.
    pub(super) fn collect(&mut self, found: &mut Vec<FoundPair>) {
        found.clear();
        let mut fewest = NONE;
        for s in self.first..self.fewest.len() {
            let (devices, by) = (self.fewest[s], std::mem::replace(&mut self.by[s], NONE));
            if by != NONE && devices < fewest {
                fewest = devices;
                found.push((s as u32, devices, by));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_undominated_and_end_at_the_bound() {
        let (mut scratch, found) = (Scratch::new(6), &mut vec![]);
        let limits = |by_replicas: &mut [u32]| by_replicas.copy_from_slice(&[9, 9, 9, 9, 8, 8, 8]);
        assert_eq!(scratch.begin(limits, Some(&[(2, 7), (4, 3)])), 8);
        assert!(scratch.may_be_better(2, 8) && scratch.may_be_better(1, 8) && !scratch.may_be_better(2, 9));
        assert!(!scratch.may_be_better(7, 1));
        scratch.lower(3, 8, 10);
        scratch.lower(2, 6, 11);
        // With two and three replicas nothing better is to be found, so only what helps with four counts.
        assert!(scratch.may_be_better(2, 5) && !scratch.may_be_better(2, 6) && !scratch.is_closed());
        scratch.lower(5, 3, 12);
        scratch.lower(4, 2, 13);
        assert!(scratch.is_closed());
        scratch.collect(found);
        assert_eq!(*found, [(2, 7, 11), (4, 3, 13)]);
        assert_eq!(scratch.begin(|by_replicas| by_replicas.fill(5), None), 4);
        scratch.collect(found);
        assert_eq!(*found, []);
    }
}
