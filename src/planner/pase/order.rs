//! In which order operators are eliminated, and how large the tables become.
//!
//! `GenerateSeq` of the paper: always the vertex with the fewest neighbours left, the earliest on ties. Its yardstick is
//! a breadth-first order from the first vertex. Either way the tables follow from the order alone, so they are counted
//! before any is made. `O((V + fill) log V)`.

use std::collections::{BTreeSet, VecDeque};

use super::pairwise::Pairwise;

/// Which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Fewest neighbours first.
    #[default]
    MinDegree,
    /// Breadth first from the first vertex.
    BreadthFirst,
}

/// One elimination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The variable that is eliminated.
    pub variable: usize,
    /// The variables its table is over, ascending: its neighbours among those left.
    pub dependent: Vec<usize>,
}

/// The eliminations of a model in some order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// In order; every variable once.
    pub steps: Vec<Step>,
}

/// How much an elimination takes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effort {
    /// Entries of the largest table.
    pub largest_table: f64,
    /// Entries of all tables.
    pub entries: f64,
    /// Combinations of labels that are looked at.
    pub combinations: f64,
    /// Variables in the largest dependent set.
    pub most_dependent: usize,
}

impl Sequence {
    /// The eliminations of a model.
    pub fn new(model: &Pairwise, order: Order) -> Self {
        let mut left: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); model.len()];
        for factor in &model.factors {
            let [a, b] = factor.ends;
            left[a].insert(b);
            left[b].insert(a);
        }
        let fixed = (order == Order::BreadthFirst).then(|| breadth_first(&left));
        // By number of neighbours left, then by number.
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

    /// What the eliminations take with this many labels by variable.
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

/// Breadth first from the first vertex, and from the first one not reached where the graph is not connected.
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
