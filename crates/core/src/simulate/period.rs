//! Detects periodic behaviour of a run: the shortest period of the most recent rounds.

use std::collections::VecDeque;

/// History of rounds, one number each, and the time of the next search for a period.
#[derive(Debug, Clone)]
pub(super) struct History {
    /// Latest round first.
    rounds: VecDeque<u64>,
    since_look: usize,
    wait: usize,
}

/// Maximum number of rounds kept.
const MOST_ROUNDS: usize = 1 << 16;

/// Rounds before the first search.
const FIRST_LOOK: usize = 8;

impl History {
    pub(super) fn new() -> Self {
        History { rounds: VecDeque::new(), since_look: 0, wait: FIRST_LOOK }
    }

    /// Appends a round.
    pub(super) fn push(&mut self, round: u64) {
        self.rounds.push_front(round);
        self.rounds.truncate(MOST_ROUNDS);
        self.since_look += 1;
    }

    /// Shortest period with which the last rounds repeat the earlier ones, for at least one period and `memory` more
    /// rounds. Searches are rare enough that together they cost no more than the rounds.
    pub(super) fn period(&mut self, memory: usize) -> Option<usize> {
        if self.since_look < self.wait {
            return None;
        }
        self.since_look = 0;
        self.wait = FIRST_LOOK.max(self.rounds.len() / 4);
        shortest_period(self.rounds.make_contiguous(), memory)
    }
}

/// Hash of an event at a place after `ticks`. The sum of such hashes, in any order, identifies a round.
pub(super) fn mix(place: u64, ticks: i64) -> u64 {
    let mixed =
        (place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ ticks as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// Smallest `p` such that the first `p + memory` values equal those `p` later.
fn shortest_period(values: &[u64], memory: usize) -> Option<usize> {
    // Length of the longest common prefix of the values and their suffix at each position (Z-function).
    let mut common = vec![0; values.len()];
    let (mut from, mut to) = (0, 0);
    for at in 1..values.len() {
        let mut length = if at < to { common[at - from].min(to - at) } else { 0 };
        while at + length < values.len() && values[length] == values[at + length] {
            length += 1;
        }
        if at + length > to {
            (from, to) = (at, at + length);
        }
        common[at] = length;
        if length >= at + memory {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_period_is_found_once_it_has_been_seen_often_enough() {
        assert_eq!(shortest_period(&[1, 2, 1, 2, 9], 0), Some(2));
        assert_eq!(shortest_period(&[1, 2, 1, 2, 9], 1), None);
        assert_eq!(shortest_period(&[1, 2, 1, 2, 1, 9], 1), Some(2));
        assert_eq!(shortest_period(&[1, 1, 2, 1, 1, 2], 1), None);
        assert_eq!(shortest_period(&[1, 1, 2, 1, 1, 2, 1], 1), Some(3));
        assert_eq!(shortest_period(&[5, 5, 7], 0), Some(1));
        assert_eq!(shortest_period(&[1, 2, 3, 4], 0), None);
        assert_eq!(shortest_period(&[], 0), None);
    }

    #[test]
    fn looks_are_seldom() {
        let mut history = History::new();
        let mut looks = 0;
        for round in 0..10_000 {
            history.push(round);
            let waiting = history.since_look < history.wait;
            looks += u32::from(!waiting);
            assert_eq!(history.period(0), None);
        }
        assert!((10..60).contains(&looks), "{looks}");
    }
}
