//! Bounds by message passing, and deletion of labels that they exclude.
//!
//! Method: sequential tree-reweighted message passing (TRW-S; Kolmogorov, *Convergent Tree-Reweighted Message Passing
//! for Energy Minimization*, IEEE PAMI 2006). A forward sweep visits the variables in order and passes costs on to
//! later ones; a backward sweep returns. The constants subtracted in the backward sweep add up to a lower bound. A
//! labelling chosen greedily in a sweep gives an upper bound. A label whose reduced cost exceeds the gap is in no
//! better labelling and is deleted, so later sweeps are cheaper.
//!
//! A sweep takes a minimum over each cell of each factor's table. Messages are over classes of labels, as tables are.
//! On all published networks the two bounds meet, so no large table is ever made.

use super::pairwise::{Pairwise, select};
use plantui_core::search::Search;

/// Labels are kept if their lower bound exceeds the best cost by less than this fraction: sums differ in their last
/// bits.
const TOLERANCE: f64 = 1e-10;

/// State of the sweeps.
#[derive(Debug)]
pub struct Bounds {
    /// Model over the remaining labels.
    pub model: Pairwise,
    /// Remaining labels of each variable, ascending, in the numbering of the original model.
    pub alive: Vec<Vec<u32>>,
    /// Message into each class, by factor and end.
    messages: Vec<[Vec<f64>; 2]>,
    /// Proven lower bound on every labelling's cost.
    pub lower: f64,
    /// Cost of the best labelling found.
    pub upper: f64,
    /// Best labelling found, in the numbering of the original model.
    pub labels: Vec<usize>,
    /// Labels of labellings up to this cost are kept, even if better labellings are known.
    pub keep_up_to: f64,
    /// Labels of each variable that are marked to be kept; empty before the first bound.
    kept: Vec<Vec<u32>>,
}

/// Direction of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl Bounds {
    /// Starts from a model and one labelling of it.
    pub fn new(model: Pairwise, labels: Vec<usize>) -> Self {
        let alive = model.unary.iter().map(|costs| (0..costs.len() as u32).collect()).collect();
        let zeros = |factor: &super::pairwise::Factor| [0, 1].map(|end: usize| vec![0.0; factor.classes[end].count]);
        Bounds {
            messages: model.factors.iter().map(zeros).collect(),
            lower: f64::NEG_INFINITY,
            upper: model.cost(&labels),
            labels,
            alive,
            keep_up_to: f64::NEG_INFINITY,
            kept: vec![vec![]; model.len()],
            model,
        }
    }

    /// Runs one sweep in each direction, then deletes the excluded labels. A sweep that is cancelled proves nothing and
    /// deletes nothing.
    pub fn sweep(&mut self, search: &Search) {
        if self.pass(Direction::Forward, search).is_none() {
            return;
        }
        let Some(bound) = self.pass(Direction::Backward, search) else { return };
        self.lower = self.lower.max(bound);
        self.delete();
    }

    /// Relative gap between the bounds.
    pub fn gap(&self) -> f64 {
        if self.upper > 0.0 { ((self.upper - self.lower) / self.upper).max(0.0) } else { 0.0 }
    }

    /// Visits every variable. Returns the sum of the subtracted constants; `None` if cancelled.
    fn pass(&mut self, direction: Direction, search: &Search) -> Option<f64> {
        let count = self.model.len();
        let mut chosen = vec![0; count];
        let mut constants = 0.0;
        let mut scratch = vec![];
        for i in 0..count {
            if i % 64 == 0 && search.cancelled() {
                return None;
            }
            let v = if direction == Direction::Forward { i } else { count - 1 - i };
            let (mut reduced, choice) = self.visit(v, direction, &chosen);
            chosen[v] = choice;
            let least = take_least(&mut reduced);
            constants += least;
            if self.lower > f64::NEG_INFINITY {
                let cost = self.upper.max(self.keep_up_to);
                let most = cost + cost.abs() * TOLERANCE - self.lower;
                let kept = (0..reduced.len() as u32).filter(|&label| reduced[label as usize] <= most);
                self.kept[v] = kept.collect();
            }
            constants += self.send(v, direction, &reduced, &mut scratch);
        }
        let cost = self.model.cost(&chosen);
        if cost < self.upper {
            self.upper = cost;
            self.labels = chosen.iter().zip(&self.alive).map(|(&label, alive)| alive[label] as usize).collect();
        }
        Some(constants)
    }

    /// Costs of a variable's labels including all messages, and the label that is cheapest given the variables visited
    /// before.
    fn visit(&self, v: usize, direction: Direction, chosen: &[usize]) -> (Vec<f64>, usize) {
        let mut reduced = self.model.unary[v].to_vec();
        let mut conditioned = reduced.clone();
        for &f in &self.model.incident[v] {
            let factor = &self.model.factors[f];
            let end = factor.end(v);
            let (of, message) = (&factor.classes[end].of, &self.messages[f][end]);
            for (cost, &class) in reduced.iter_mut().zip(of) {
                *cost += message[class as usize];
            }
            let other = factor.ends[1 - end];
            let visited = if direction == Direction::Forward { other < v } else { other > v };
            if visited {
                let theirs = factor.classes[1 - end].of[chosen[other]] as usize;
                let columns = factor.classes[1].count;
                let (start, step) = if end == 1 { (theirs * columns, 1) } else { (theirs, columns) };
                for (cost, &class) in conditioned.iter_mut().zip(of) {
                    *cost += factor.table[start + step * class as usize];
                }
            } else {
                for (cost, &class) in conditioned.iter_mut().zip(of) {
                    *cost += message[class as usize];
                }
            }
        }
        let best = (0..conditioned.len()).reduce(|a, b| if conditioned[b] < conditioned[a] { b } else { a });
        (reduced, best.unwrap_or_default())
    }

    /// Sends a variable's reduced costs to its neighbours in the direction of the sweep. Returns the subtracted
    /// constants.
    fn send(&mut self, v: usize, direction: Direction, reduced: &[f64], scratch: &mut Vec<f64>) -> f64 {
        let incident = &self.model.incident[v];
        let later = |f: usize| {
            let factor = &self.model.factors[f];
            factor.ends[1 - factor.end(v)] > v
        };
        let after = incident.iter().filter(|&&f| later(f)).count();
        let weight = 1.0 / after.max(incident.len() - after).max(1) as f64;
        let mut constants = 0.0;
        for &f in incident.iter().filter(|&&f| later(f) == (direction == Direction::Forward)) {
            let factor = &self.model.factors[f];
            let end = factor.end(v);
            let [into_first, into_second] = &mut self.messages[f];
            let (back, out) = if end == 0 { (into_first, into_second) } else { (into_second, into_first) };
            scratch.clear();
            scratch.resize(factor.classes[end].count, f64::INFINITY);
            for (&cost, &class) in reduced.iter().zip(&factor.classes[end].of) {
                let cell = &mut scratch[class as usize];
                let cost = weight * cost;
                *cell = if cost < *cell { cost } else { *cell };
            }
            for (cost, message) in scratch.iter_mut().zip(back.iter()) {
                *cost -= message;
            }
            let columns = factor.classes[1].count;
            if end == 0 {
                least_by_column(&factor.table, columns, scratch, out);
            } else {
                for (row, least) in factor.table.chunks_exact(columns).zip(out.iter_mut()) {
                    *least = least_sum(row, scratch);
                }
            }
            constants += take_least(out);
        }
        constants
    }

    /// Deletes the labels that the last pass excluded.
    fn delete(&mut self) {
        let labels = self.model.labels();
        for (v, kept) in self.kept.iter_mut().enumerate() {
            // No label is marked before the first bound, and rounding must not leave a variable without labels.
            if kept.is_empty() {
                *kept = (0..self.model.unary[v].len() as u32).collect();
            }
        }
        let left: usize = self.kept.iter().map(Vec::len).sum();
        if left < labels {
            let (model, renumbered) = self.model.restrict(&self.kept);
            self.model = model;
            for (messages, live) in self.messages.iter_mut().zip(renumbered) {
                let Some(live) = live else { continue };
                for (message, live) in messages.iter_mut().zip(&live) {
                    *message = select(message, live);
                }
            }
            for (alive, kept) in self.alive.iter_mut().zip(&self.kept) {
                *alive = select(alive, kept);
            }
        }
        self.kept.iter_mut().for_each(Vec::clear);
    }
}

/// Subtracts the minimum from all values and returns it.
fn take_least(values: &mut [f64]) -> f64 {
    let least = values.iter().fold(f64::INFINITY, |least, &value| if value < least { value } else { least });
    for value in values {
        *value -= least;
    }
    least
}

/// Minimum of each column after adding its row's cost to every cell.
fn least_by_column(table: &[f64], columns: usize, rows: &[f64], out: &mut [f64]) {
    out.fill(f64::INFINITY);
    for (cells, &cost) in table.chunks_exact(columns).zip(rows) {
        for (least, &cell) in out.iter_mut().zip(cells) {
            let sum = cell + cost;
            *least = if sum < *least { sum } else { *least };
        }
    }
}

/// Minimum of `a[i] + b[i]`.
fn least_sum(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a + b).fold(f64::INFINITY, |least, sum| if sum < least { sum } else { least })
}
