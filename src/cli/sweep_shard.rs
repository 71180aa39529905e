//! `--shard 3/16`: the part of a sweep's points that one of several machines answers.
//!
//! Points are dealt to the shards in turn, in the sweep's order of points, which depends only on the command. So the
//! same command gives the same shards everywhere, each shard covers the whole range, and together they are the sweep.

use std::str::FromStr;

/// Largest number of shards; a sweep has no more points than that.
const MOST: usize = crate::study::sweep::MOST_POINTS;

/// Shard of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shard {
    /// Index, from 1.
    index: usize,
    /// Number of shards.
    count: usize,
}

impl Shard {
    /// Keeps only this shard's points. `O(points)`.
    pub(super) fn keep<T>(self, points: &mut Vec<T>) {
        let mut place = 0;
        points.retain(|_| {
            place += 1;
            (place - 1) % self.count == self.index - 1
        });
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) && count <= MOST => Ok(Shard { index, count }),
            Some((0, _)) => Err("shares count from 1: write 1/16 for the first of sixteen".into()),
            _ => Err(format!("write the share and their number, up to {MOST}: 3/16")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole_and_nothing_twice() {
        for count in [1, 2, 7, 16, 40] {
            let mut all: Vec<u32> = vec![];
            for index in 1..=count {
                let mut points: Vec<u32> = (0..33).collect();
                Shard { index, count }.keep(&mut points);
                assert!(points.is_sorted() && points.len().abs_diff(33 / count) <= 1);
                all.extend(points);
            }
            all.sort_unstable();
            assert_eq!(all, (0..33).collect::<Vec<_>>());
        }
    }

    #[test]
    fn wrong_shares_are_refused_with_the_repair() {
        assert_eq!("3/16".parse(), Ok(Shard { index: 3, count: 16 }));
        for (text, part) in
            [("0/16", "from 1"), ("17/16", "3/16"), ("3", "3/16"), ("a/b", "3/16"), ("1/999999", "up to")]
        {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
