//! A mixed-integer program to be minimised, as variables and rows are added to it.

use std::ops::RangeBounds;

use highs::{Col, RowProblem};

/// Number of a variable, from 0 in the order they are added.
pub(crate) type Variable = usize;

/// Variables and rows. Every variable is at least 0.
#[derive(Debug, Default)]
pub(crate) struct Program {
    problem: RowProblem,
    columns: Vec<Col>,
}

impl Program {
    /// A variable that is 0 or 1; 0 if it may not be 1.
    pub(crate) fn binary(&mut self, allowed: bool) -> Variable {
        self.columns.push(self.problem.add_integer_column(0.0, 0..=i32::from(allowed)));
        self.columns.len() - 1
    }

    /// A variable between 0 and 1.
    pub(crate) fn share(&mut self) -> Variable {
        self.columns.push(self.problem.add_column(0.0, 0..=1));
        self.columns.len() - 1
    }

    /// A variable in a range, with what it costs.
    pub(crate) fn amount(&mut self, cost: f64, range: impl RangeBounds<f64>) -> Variable {
        self.columns.push(self.problem.add_column(cost, range));
        self.columns.len() - 1
    }

    /// A row: the sum of variables times factors is in the range. A variable comes once.
    pub(crate) fn row(&mut self, range: impl RangeBounds<f64>, terms: impl IntoIterator<Item = (Variable, f64)>) {
        let columns = &self.columns;
        // A factor of 0 would be kept as an entry of the matrix.
        let terms = terms.into_iter().filter(|term| term.1 != 0.0);
        self.problem.add_row(range, terms.map(|(variable, factor)| (columns[variable], factor)));
    }

    /// The program as HiGHS takes it.
    pub(crate) fn into_problem(self) -> RowProblem {
        self.problem
    }
}
