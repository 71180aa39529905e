//! Exact minimum under a memory limit: elimination over pairs of cost and bytes.
//!
//! As in [`eliminate`](super::eliminate), every variable is replaced by a table over its neighbours, but an entry holds
//! all Pareto-optimal pairs of cost and bytes. Two bounds keep their number small. First, a pair is dropped if its
//! bytes exceed the limit. Second, values are compared at the best multiplier (see [`memory`](super::memory)). A pair
//! is dropped if its priced value exceeds the least of its entry by more than the remaining gap. Every plan with it then
//! exceeds the overall least value by at least as much.
//!
//! Time is the number of label combinations times the products of the joined pairs. Both are capped, and nothing is
//! claimed beyond the caps.

use super::{order::Sequence, pairwise::Pairwise};
use plantui_core::search::Search;

/// Largest number of live pairs; bounds memory.
const MOST_POINTS: usize = 4_000_000;
/// Largest number of label combinations to evaluate; bounds time.
const MOST_COMBINATIONS: f64 = 2e7;
/// Largest number of pairs that are joined; bounds time.
const MOST_SUMS: usize = 400_000_000;
/// Largest number of pairs held together before those that cannot be optimal are dropped.
const MOST_TOGETHER: usize = 2 * MOST_POINTS;
/// Number of pairs between two checks for cancellation.
const GLANCE: usize = 1 << 16;
/// Sums differ in their last bits.
const ROUNDING: f64 = 1e-12;

/// Problem to solve.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question<'a> {
    /// Costs.
    pub(super) model: &'a Pairwise,
    /// Bytes by variable and label.
    pub(super) bytes: &'a [Vec<f64>],
    /// Largest bytes of a labelling.
    pub(super) limit: f64,
    /// Multiplier: cost per byte.
    pub(super) price: f64,
    /// Largest excess of a useful labelling's priced value over the least one.
    pub(super) gap: f64,
}

/// Partial labelling of the eliminated variables: cost, bytes and origin.
#[derive(Debug, Clone, Copy)]
struct Point {
    cost: f64,
    bytes: f64,
    trail: u32,
}

/// Origin of a point: a single label, or the join of two points.
#[derive(Debug, Clone, Copy)]
enum Trail {
    Chosen { variable: u32, label: u32 },
    Joined(u32, u32),
}

/// Points for every labelling of some variables, the last variable fastest.
struct Table {
    variables: Vec<usize>,
    entries: Vec<Vec<Point>>,
}

impl Table {
    fn entry(&self, labels: &[usize], sizes: &[usize]) -> &[Point] {
        &self.entries[self.variables.iter().fold(0, |at, &u| at * sizes[u] + labels[u])]
    }

    fn points(&self) -> usize {
        self.entries.iter().map(Vec::len).sum()
    }
}

/// Labellings within the limit, the cheapest first. They include the optimum if it is within the gap. Returns `None` if
/// the search is too large or was stopped.
pub(super) fn within(question: &Question<'_>, sequence: &Sequence, search: &Search) -> Option<Vec<Vec<usize>>> {
    if sequence.effort(question.model).combinations > MOST_COMBINATIONS {
        return None;
    }
    let mut elimination = Elimination { question, search, trails: vec![], sums: 0 };
    let sizes: Vec<usize> = question.model.unary.iter().map(|costs| costs.len()).collect();
    let mut used = vec![false; question.model.factors.len()];
    let mut tables: Vec<Table> = vec![];
    for step in &sequence.steps {
        let v = step.variable;
        let (absorbed, others): (Vec<Table>, Vec<Table>) =
            tables.into_iter().partition(|table| table.variables.contains(&v));
        tables = others;
        let factors: Vec<usize> =
            question.model.incident[v].iter().copied().filter(|&f| !std::mem::replace(&mut used[f], true)).collect();
        let alive: usize = tables.iter().map(Table::points).sum();
        let chosen = elimination.choices(v);
        let mut table = Table { variables: step.dependent.clone(), entries: vec![] };
        let mut labels = vec![0; sizes.len()];
        loop {
            if search.cancelled() {
                return None;
            }
            let mut points: Vec<Point> = vec![];
            for (label, &choice) in chosen.iter().enumerate() {
                labels[v] = label;
                let pairs = factors.iter().map(|&f| {
                    let factor = &question.model.factors[f];
                    factor.cost(factor.ends.map(|end| labels[end]))
                });
                let mut front = vec![Point { cost: choice.cost + pairs.sum::<f64>(), ..choice }];
                for part in &absorbed {
                    front = elimination.joined(&front, part.entry(&labels, &sizes))?;
                }
                points.extend(front);
                elimination.crowded(&mut points)?;
            }
            table.entries.push(elimination.kept(points));
            if alive + table.points() > MOST_POINTS {
                return None;
            }
            // Advance to the next labelling of the neighbours.
            let Some(&next) = step.dependent.iter().rev().find(|&&u| labels[u] + 1 < sizes[u]) else { break };
            labels[next] += 1;
            step.dependent.iter().rev().take_while(|&&u| u != next).for_each(|&u| labels[u] = 0);
        }
        tables.push(table);
    }
    let mut whole = vec![];
    for (i, table) in tables.iter().enumerate() {
        whole = if i == 0 { table.entries[0].clone() } else { elimination.joined(&whole, &table.entries[0])? };
    }
    whole.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    Some(whole.iter().map(|point| elimination.labels(point.trail, sizes.len())).collect())
}

struct Elimination<'a> {
    question: &'a Question<'a>,
    search: &'a Search,
    trails: Vec<Trail>,
    /// Number of pairs joined so far.
    sums: usize,
}

impl Elimination<'_> {
    /// Returns a variable's labels as points.
    fn choices(&mut self, v: usize) -> Vec<Point> {
        let first = self.trails.len() as u32;
        let costs = self.question.model.unary[v].iter().zip(&self.question.bytes[v]);
        let points =
            costs.enumerate().map(|(label, (&cost, &bytes))| Point { cost, bytes, trail: first + label as u32 });
        let points: Vec<Point> = points.collect();
        self.trails.extend((0..points.len()).map(|label| Trail::Chosen { variable: v as u32, label: label as u32 }));
        points
    }

    /// Joins every point of `a` with every point of `b`; `None` if there are too many, or if the search was stopped.
    fn joined(&mut self, a: &[Point], b: &[Point]) -> Option<Vec<Point>> {
        self.sums += a.len() * b.len();
        if self.sums > MOST_SUMS || self.trails.len() > 16 * MOST_POINTS {
            return None;
        }
        // The trail of a pair is stored only if the pair is kept: until then it is the pair's number.
        let mut pairs: Vec<Point> = vec![];
        for (row, one) in a.iter().enumerate() {
            let first = row * b.len();
            // Rows may be one pair long, and reading the clock has a cost.
            if first / GLANCE != (first + b.len()) / GLANCE && self.search.cancelled() {
                return None;
            }
            let numbered = b.iter().zip(first..);
            pairs.extend(numbered.map(|(other, at)| Point {
                cost: one.cost + other.cost,
                bytes: one.bytes + other.bytes,
                trail: at as u32,
            }));
            self.crowded(&mut pairs)?;
        }
        let mut kept = self.kept(pairs);
        for point in &mut kept {
            let at = point.trail as usize;
            point.trail = self.trails.len() as u32;
            self.trails.push(Trail::Joined(a[at / b.len()].trail, b[at % b.len()].trail));
        }
        Some(kept)
    }

    /// Drops points that cannot be optimal if there are too many points; `None` if too many remain.
    fn crowded(&self, points: &mut Vec<Point>) -> Option<()> {
        if points.len() > MOST_TOGETHER {
            *points = self.kept(std::mem::take(points));
            // Without this limit the next few points would repeat the same work.
            return (points.len() <= MOST_POINTS).then_some(());
        }
        Some(())
    }

    /// Returns the points that can be part of an optimal labelling, sorted by bytes.
    fn kept(&self, mut points: Vec<Point>) -> Vec<Point> {
        let Question { limit, price, gap, .. } = *self.question;
        let most_bytes = limit * (1.0 + ROUNDING);
        let least = points.iter().map(|point| point.cost + price * point.bytes).fold(f64::INFINITY, f64::min);
        points.retain(|point| point.bytes <= most_bytes && point.cost + price * point.bytes <= least + gap);
        points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes).then(a.cost.total_cmp(&b.cost)));
        let mut cheapest = f64::INFINITY;
        points.retain(|point| {
            let cheaper = point.cost < cheapest;
            cheapest = cheapest.min(point.cost);
            cheaper
        });
        points
    }

    /// Returns the label of each variable in a point over all variables.
    fn labels(&self, trail: u32, variables: usize) -> Vec<usize> {
        let mut labels = vec![0; variables];
        let mut open = vec![trail];
        while let Some(at) = open.pop() {
            match self.trails[at as usize] {
                Trail::Chosen { variable, label } => labels[variable as usize] = label as usize,
                Trail::Joined(a, b) => open.extend([a, b]),
            }
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(count: usize, bytes_each: f64) -> Vec<Point> {
        let weigh = |units: usize| units as f64 * bytes_each;
        let point = |i: usize| Point { cost: weigh(count - i), bytes: weigh(i), trail: i as u32 };
        (0..count).map(point).collect()
    }

    fn joined(a: &[Point], b: &[Point], limit: f64, search: &Search) -> Option<Vec<Point>> {
        let model = Pairwise::default();
        let question = Question { model: &model, bytes: &[], limit, price: 0.0, gap: f64::INFINITY };
        Elimination { question: &question, search, trails: vec![], sums: 0 }.joined(a, b)
    }

    #[test]
    fn a_join_of_more_pairs_than_are_held_at_once_keeps_what_counts() {
        // Every sum of bytes is reachable at one cost, so the kept points are the sums that fit.
        let (a, b) = (front(4000, 1.0), front(4000, 1.0));
        assert!(a.len() * b.len() > MOST_TOGETHER);
        let kept = joined(&a, &b, 5000.0, &Search::default()).unwrap();
        assert_eq!(kept.len(), 5001);
        assert!(kept.iter().enumerate().all(|(i, p)| p.bytes == i as f64 && p.cost == (8000 - i) as f64));
    }

    #[test]
    fn joins_that_stay_too_large_or_are_stopped_claim_nothing() {
        // All sums of bytes differ, and all of them are kept.
        assert!(joined(&front(4000, 4000.0), &front(4000, 1.0), 1e9, &Search::default()).is_none());
        let stopped = Search::default();
        stopped.cancel();
        assert!(joined(&front(400, 1.0), &front(400, 1.0), 1e9, &stopped).is_none());
    }
}
