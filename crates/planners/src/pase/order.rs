//! Order in which operators are eliminated, and the size of the resulting tables.
//!
//! `GenerateSeq` of the paper always eliminates the vertex with the fewest remaining neighbours, the earliest one on
//! ties. The paper compares it with a breadth-first order from the first vertex. The table sizes follow from the order
//! alone, so they are counted before any table is made. `O((V + fill) log V)`.

use std::collections::{BTreeSet, VecDeque};

use super::pairwise::Pairwise;

/// Elimination order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Fewest remaining neighbours first.
    #[default]
    MinDegree,
    /// Breadth first from the first vertex.
    BreadthFirst,
}

/// Elimination of one variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Variable to eliminate.
    pub variable: usize,
    /// Variables of its table, ascending: its neighbours among the remaining variables.
    pub dependent: Vec<usize>,
}

/// Eliminations of a model in some order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Steps in order; every variable occurs once.
    pub steps: Vec<Step>,
}

/// Size of an elimination.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Entries of the largest table.
    pub largest_table: f64,
    /// Entries of all tables.
    pub entries: f64,
    /// Combinations of labels that are evaluated.
    pub combinations: f64,
    /// Variables in the largest dependent set.
    pub most_dependent: usize,
}

impl Sequence {
    /// Computes the eliminations of a model.
    pub fn new(model: &Pairwise, order: Order) -> Self {
        let mut left: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); model.len()];
        for factor in &model.factors {
            let [a, b] = factor.ends;
            left[a].insert(b);
            left[b].insert(a);
        }
        let fixed = (order == Order::BreadthFirst).then(|| breadth_first(&left));
        // Sorted by number of remaining neighbours, then by index.
        let mut open: BTreeSet<(usize, usize)> = (0..model.len()).map(|v| (left[v].len(), v)).collect();
        let mut steps = Vec::with_capacity(model.len());
        while steps.len() < model.len() {
            let next = match &fixed {
                Some(order) => order[steps.len()],
                None => open.first().map_or(0, |&(_, v)| v),
            };
            open.remove(&(left[next].len(), next));
            let dependent = std::mem::take(&mut left[next]);
            for &u in &dependent {
                open.remove(&(left[u].len(), u));
                left[u].remove(&next);
                left[u].extend(dependent.iter().copied().filter(|&w| w != u));
                open.insert((left[u].len(), u));
            }
            steps.push(Step { variable: next, dependent: dependent.into_iter().collect() });
        }
        Sequence { steps }
    }

    /// Size of the eliminations for the model's numbers of labels.
    pub fn effort(&self, model: &Pairwise) -> Effort {
        let labels = |v: &usize| model.unary[*v].len() as f64;
        let mut effort = Effort::default();
        for step in &self.steps {
            let entries: f64 = step.dependent.iter().map(labels).product();
            effort.largest_table = effort.largest_table.max(entries);
            effort.entries += entries;
            effort.combinations += entries * labels(&step.variable);
            effort.most_dependent = effort.most_dependent.max(step.dependent.len());
        }
        effort
    }
}

/// Breadth-first order from the first vertex. In a graph that is not connected it continues from the first vertex not
/// yet reached.
fn breadth_first(neighbours: &[BTreeSet<usize>]) -> Vec<usize> {
    let mut seen = vec![false; neighbours.len()];
    let mut order = Vec::with_capacity(neighbours.len());
    for root in 0..neighbours.len() {
        let mut queue = VecDeque::from([root]);
        while let Some(v) = queue.pop_front() {
            if std::mem::replace(&mut seen[v], true) {
                continue;
            }
            order.push(v);
            queue.extend(neighbours[v].iter().filter(|&&u| !seen[u]));
        }
    }
    order
}
