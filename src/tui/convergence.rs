//! Course of a search: value and bound over time, sampled once per frame of the screen.
//!
//! The loop reads [`crate::planner::Search::progress`] and keeps changes, so the planner does no extra work. A full
//! history drops every other point, because a search that improves for hours would fill memory.

use crate::plan::Measure;

/// Maximum number of points kept.
const MOST: usize = 2048;

/// Values known at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    /// Seconds since the search began.
    pub at_s: f64,
    /// Objective of the best plan.
    pub best: Option<f64>,
    /// Proven lower bound.
    pub bound: Option<f64>,
}

/// Course of one search.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Convergence {
    points: Vec<Point>,
    /// Measure of the values.
    pub measure: Measure,
    /// Duration, seconds.
    pub lasted_s: f64,
}

impl Convergence {
    /// Empty course of a search with this measure.
    pub(super) fn of(measure: Measure) -> Self {
        Convergence { measure, ..Convergence::default() }
    }

    /// Adds a sample. A missing value keeps its last one.
    pub(super) fn sample(&mut self, point: Point) {
        // The planner's clock and the screen's differ by the time a job waits; keep time monotonic.
        self.lasted_s = self.lasted_s.max(point.at_s);
        let last = self.points.last();
        let known = Point {
            at_s: self.lasted_s,
            best: point.best.or_else(|| last.and_then(|p| p.best)),
            bound: point.bound.or_else(|| last.and_then(|p| p.bound)),
        };
        let nothing_new = match last {
            Some(last) => last.best == known.best && last.bound == known.bound,
            None => known.best.is_none() && known.bound.is_none(),
        };
        if nothing_new {
            return;
        }
        if self.points.len() == MOST {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.points.push(known);
    }

    /// Values known at a time: the last point up to it.
    pub(super) fn at(&self, time_s: f64) -> Option<Point> {
        let next = self.points.partition_point(|point| point.at_s <= time_s);
        next.checked_sub(1).map(|i| self.points[i])
    }

    /// The last point.
    pub(super) fn last(&self) -> Option<Point> {
        self.points.last().copied()
    }

    /// Smallest and largest of all values and bounds.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        let values = self.points.iter().flat_map(|point| [point.best, point.bound]).flatten();
        values.filter(|value| value.is_finite()).fold(None, |range, value| {
            let (least, most) = range.unwrap_or((value, value));
            Some((least.min(value), most.max(value)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_s: f64, best: Option<f64>, bound: Option<f64>) -> Point {
        Point { at_s, best, bound }
    }

    #[test]
    fn only_changes_are_kept_and_what_was_known_stays_known() {
        let mut course = Convergence::default();
        course.sample(point(0.0, None, None));
        assert!(course.last().is_none());
        course.sample(point(1.0, Some(9.0), None));
        course.sample(point(2.0, Some(9.0), None));
        course.sample(point(3.0, None, Some(4.0)));
        assert_eq!(course.points.len(), 2);
        assert_eq!(course.at(0.5), None);
        assert_eq!(course.at(2.5), Some(point(1.0, Some(9.0), None)));
        assert_eq!(course.last(), Some(point(3.0, Some(9.0), Some(4.0))));
        assert_eq!((course.lasted_s, course.range()), (3.0, Some((4.0, 9.0))));
    }

    #[test]
    fn a_long_course_stays_small_and_keeps_both_ends() {
        let mut course = Convergence::default();
        for i in 0..20_000 {
            course.sample(point(f64::from(i), Some(f64::from(20_000 - i)), None));
        }
        assert!(course.points.len() <= MOST);
        assert_eq!(course.points[0].at_s, 0.0);
        assert_eq!(course.last().map(|p| p.best), Some(Some(1.0)));
    }
}
