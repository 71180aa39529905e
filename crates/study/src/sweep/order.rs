//! Order in which points are computed: the ends and the middle first, then the middles of the gaps.
//!
//! A curve covers its whole range from the first points on, and becomes finer. A sweep that is stopped leaves a coarse
//! curve, not its left half.

use std::collections::VecDeque;

/// Round in which each of `count` positions is computed: 0 for both ends, 1 for the middle, and so on. `O(count)`.
pub(crate) fn rounds(count: usize) -> Vec<u32> {
    let mut rounds = vec![0; count];
    let mut gaps = VecDeque::from([(0, count.saturating_sub(1), 1)]);
    while let Some((left, right, round)) = gaps.pop_front() {
        if right - left < 2 {
            continue;
        }
        let middle = left.midpoint(right);
        rounds[middle] = round;
        gaps.extend([(left, middle, round + 1), (middle, right, round + 1)]);
    }
    rounds
}

/// Indices of points in the order of interest, given each point's coordinates. Points of one round keep their order.
pub(crate) fn of_interest(points: &[Vec<f64>]) -> Vec<usize> {
    let dimensions = points.first().map_or(0, Vec::len);
    let mut round = vec![0; points.len()];
    for dimension in 0..dimensions {
        let mut values: Vec<f64> = points.iter().map(|point| point[dimension]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let rounds = rounds(values.len());
        for (place, point) in points.iter().enumerate() {
            let rank = values.partition_point(|value| *value < point[dimension]);
            round[place] = round[place].max(rounds[rank]);
        }
    }
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&place| round[place]);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_then_the_middle_then_what_lies_between() {
        assert_eq!(rounds(9), [0, 3, 2, 3, 1, 3, 2, 3, 0]);
        assert_eq!(rounds(2), [0, 0]);
        assert!(rounds(0).is_empty() && rounds(1) == [0]);
        let line: Vec<Vec<f64>> = [8.0, 16.0, 32.0, 64.0, 128.0].map(|value| vec![value]).to_vec();
        assert_eq!(of_interest(&line), [0, 4, 2, 1, 3]);
        assert_eq!(of_interest(&[vec![], vec![]]), [0, 1]);
    }

    #[test]
    fn corners_of_a_grid_come_first() {
        let grid: Vec<Vec<f64>> = (0..9).map(|i| vec![f64::from(i / 3), f64::from(i % 3)]).collect();
        assert_eq!(of_interest(&grid)[..4], [0, 2, 6, 8]);
    }
}
