//! A pairwise model: variables with a cost for each label, and factors with a cost for each pair of labels.
//!
//! What splitting operators comes down to: a variable is an operator, its labels are configurations, a factor is what a
//! pair of operators pays to hand tensors over. A factor sees only how configurations project onto those tensors, so its
//! table is over *classes* of labels; layers that repeat share one table. Memory is
//! `labels · (8 + 4 · degree)` bytes and 8 bytes for each cell of a distinct table.

use std::sync::Arc;

/// Labels of one side of a factor, grouped by what the factor sees of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// By label.
    pub of: Vec<u32>,
    /// Number of classes; some may have no label.
    pub count: usize,
}

/// The cost between two variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The two variables, the smaller first.
    pub ends: [usize; 2],
    /// Classes of the labels at each end.
    pub classes: [Arc<Classes>; 2],
    /// Costs, a row for each class of the first end.
    pub table: Arc<Vec<f64>>,
}

impl Factor {
    /// The cost of a pair of labels.
    pub fn cost(&self, labels: [usize; 2]) -> f64 {
        let [row, column] = [0, 1].map(|end| self.classes[end].of[labels[end]] as usize);
        self.table[row * self.classes[1].count + column]
    }

    /// Which end a variable is.
    pub fn end(&self, variable: usize) -> usize {
        usize::from(self.ends[1] == variable)
    }
}

/// The model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairwise {
    /// By variable and label.
    pub unary: Vec<Arc<Vec<f64>>>,
    /// At most one for each pair of variables.
    pub factors: Vec<Factor>,
    /// By variable, its factors in the order of the variable at their other end.
    pub incident: Vec<Vec<usize>>,
}

impl Pairwise {
    /// Puts a model together.
    pub fn new(unary: Vec<Arc<Vec<f64>>>, factors: Vec<Factor>) -> Self {
        let mut incident = vec![vec![]; unary.len()];
        for (f, factor) in factors.iter().enumerate() {
            for end in factor.ends {
                incident[end].push(f);
            }
        }
        for (v, list) in incident.iter_mut().enumerate() {
            list.sort_by_key(|&f| factors[f].ends[1 - factors[f].end(v)]);
        }
        Pairwise { unary, factors, incident }
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.unary.len()
    }

    /// Whether there is no variable.
    pub fn is_empty(&self) -> bool {
        self.unary.is_empty()
    }

    /// Number of labels of all variables.
    pub fn labels(&self) -> usize {
        self.unary.iter().map(|costs| costs.len()).sum()
    }

    /// The cost of a labelling: variables first, then factors, each in their order.
    pub fn cost(&self, labels: &[usize]) -> f64 {
        let unary: f64 = self.unary.iter().zip(labels).map(|(costs, &label)| costs[label]).sum();
        let pairs = self.factors.iter().map(|factor| factor.cost(factor.ends.map(|end| labels[end])));
        unary + pairs.sum::<f64>()
    }

    /// The model that keeps some labels of every variable, ascending, and by factor the classes that are left at each end
    /// where they were renumbered. A table is copied only where at least half of it falls away, so shared tables stay
    /// shared until they are small.
    #[must_use]
    pub fn restrict(&self, kept: &[Vec<u32>]) -> (Self, Vec<Option<[Vec<u32>; 2]>>) {
        let unary = self.unary.iter().zip(kept).map(|(costs, kept)| {
            if kept.len() == costs.len() { Arc::clone(costs) } else { Arc::new(select(costs, kept)) }
        });
        let factors = self.factors.iter().map(|factor| {
            let whole = factor.ends.iter().all(|&end| kept[end].len() == self.unary[end].len());
            if whole { (factor.clone(), None) } else { narrow(factor, factor.ends.map(|end| kept[end].as_slice())) }
        });
        let (factors, renumbered) = factors.unzip();
        (Pairwise { unary: unary.collect(), factors, incident: self.incident.clone() }, renumbered)
    }
}

pub(super) fn select<T: Copy>(values: &[T], kept: &[u32]) -> Vec<T> {
    kept.iter().map(|&i| values[i as usize]).collect()
}

/// A factor over fewer labels, and the classes it has left if they were renumbered.
fn narrow(factor: &Factor, kept: [&[u32]; 2]) -> (Factor, Option<[Vec<u32>; 2]>) {
    let of = [0, 1].map(|end: usize| select(&factor.classes[end].of, kept[end]));
    let mut alive = [0, 1].map(|end: usize| vec![false; factor.classes[end].count]);
    for end in 0..2 {
        for &class in &of[end] {
            alive[end][class as usize] = true;
        }
    }
    let live = alive
        .each_ref()
        .map(|flags| (0..flags.len() as u32).filter(|&class| flags[class as usize]).collect::<Vec<u32>>());
    let [rows, columns] = [0, 1].map(|end: usize| factor.classes[end].count);
    let [row_of, column_of] = of;
    if 2 * live[0].len() * live[1].len() > rows * columns {
        let classes = [Classes { of: row_of, count: rows }, Classes { of: column_of, count: columns }].map(Arc::new);
        return (Factor { ends: factor.ends, classes, table: Arc::clone(&factor.table) }, None);
    }
    let mut table = Vec::with_capacity(live[0].len() * live[1].len());
    for &row in &live[0] {
        let start = row as usize * columns;
        table.extend(select(&factor.table[start..start + columns], &live[1]));
    }
    let renumber = |of: Vec<u32>, end: usize| {
        let mut number = vec![0; factor.classes[end].count];
        for (new, &old) in live[end].iter().enumerate() {
            number[old as usize] = new as u32;
        }
        Classes { of: of.iter().map(|&class| number[class as usize]).collect(), count: live[end].len() }
    };
    let classes = [renumber(row_of, 0), renumber(column_of, 1)].map(Arc::new);
    (Factor { ends: factor.ends, classes, table: Arc::new(table) }, Some(live))
}
