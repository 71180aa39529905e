//! Pairwise model: variables with a cost for each label, and factors with a cost for each pair of labels.
//!
//! A variable is an operator, its labels are configurations, and a factor is the transfer cost between two operators. A
//! factor depends only on how configurations project onto the transferred tensors. So its table is over *classes* of
//! labels, and repeated layers share one table. Memory is `labels · (8 + 4 · degree)` bytes plus 8 bytes for each cell
//! of a distinct table.

use std::sync::Arc;

/// Labels of one side of a factor, grouped by their projection onto the factor's tensors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classes {
    /// Class of each label.
    pub of: Vec<u32>,
    /// Number of classes.
    pub count: usize,
}

/// Cost between two variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The two variables, the smaller first.
    pub ends: [usize; 2],
    /// Classes of the labels at each end.
    pub classes: [Arc<Classes>; 2],
    /// Costs, one row for each class of the first end.
    pub table: Arc<Vec<f64>>,
}

impl Factor {
    /// Cost of a pair of labels.
    pub fn cost(&self, labels: [usize; 2]) -> f64 {
        let [row, column] = [0, 1].map(|end| self.classes[end].of[labels[end]] as usize);
        self.table[row * self.classes[1].count + column]
    }

    /// Index (0 or 1) of the variable's end.
    pub fn end(&self, variable: usize) -> usize {
        usize::from(self.ends[1] == variable)
    }
}

/// Pairwise model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairwise {
    /// Costs by variable and label.
    pub unary: Vec<Arc<Vec<f64>>>,
    /// Factors, at most one for each pair of variables.
    pub factors: Vec<Factor>,
    /// Factors of each variable, ordered by the variable at the other end.
    pub incident: Vec<Vec<usize>>,
}

impl Pairwise {
    /// Builds a model.
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

    /// True if there is no variable.
    pub fn is_empty(&self) -> bool {
        self.unary.is_empty()
    }

    /// Total number of labels.
    pub fn labels(&self) -> usize {
        self.unary.iter().map(|costs| costs.len()).sum()
    }

    /// Cost of a labelling: variables first, then factors, each in their order.
    pub fn cost(&self, labels: &[usize]) -> f64 {
        let unary: f64 = self.unary.iter().zip(labels).map(|(costs, &label)| costs[label]).sum();
        let pairs = self.factors.iter().map(|factor| factor.cost(factor.ends.map(|end| labels[end])));
        unary + pairs.sum::<f64>()
    }

    /// Restricts every variable to the labels in `kept` (ascending). Classes are renumbered; for
    /// each factor whose classes changed, the old numbers of those that remain are returned, by end. The other factors keep all labels and share their tables.
    #[must_use]
    pub fn restrict(&self, kept: &[Vec<u32>]) -> (Self, Vec<Option<[Vec<u32>; 2]>>) {
        let unary = self.unary.iter().zip(kept).map(|(costs, kept)| {
            if kept.len() == costs.len() { Arc::clone(costs) } else { Arc::new(select(costs, kept)) }
        });
        let factors = self.factors.iter().map(|factor| {
            let whole = factor.ends.iter().all(|&end| kept[end].len() == self.unary[end].len());
            if whole {
                return (factor.clone(), None);
            }
            let (factor, live) = narrow(factor, factor.ends.map(|end| kept[end].as_slice()));
            (factor, Some(live))
        });
        let (factors, renumbered) = factors.unzip();
        (Pairwise { unary: unary.collect(), factors, incident: self.incident.clone() }, renumbered)
    }
}

pub(super) fn select<T: Copy>(values: &[T], kept: &[u32]) -> Vec<T> {
    kept.iter().map(|&i| values[i as usize]).collect()
}

/// Restricts a factor to fewer labels, and returns the remaining classes.
fn narrow(factor: &Factor, kept: [&[u32]; 2]) -> (Factor, [Vec<u32>; 2]) {
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
    let columns = factor.classes[1].count;
    let mut table = Vec::with_capacity(live[0].len() * live[1].len());
    for &row in &live[0] {
        let start = row as usize * columns;
        table.extend(select(&factor.table[start..start + columns], &live[1]));
    }
    let classes = [0, 1].map(|end: usize| {
        let mut number = vec![0; factor.classes[end].count];
        for (new, &old) in live[end].iter().enumerate() {
            number[old as usize] = new as u32;
        }
        let of = of[end].iter().map(|&class| number[class as usize]).collect();
        Arc::new(Classes { of, count: live[end].len() })
    });
    (Factor { ends: factor.ends, classes, table: Arc::new(table) }, live)
}
