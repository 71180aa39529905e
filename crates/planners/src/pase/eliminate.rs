//! Variable elimination: the recurrence of the paper's section 3.
//!
//! Eliminating a variable replaces all tables that mention it by one table over its remaining neighbours:
//!
//! ```text
//! T_v(φ) = min over labels c of  cost_v(c) + Σ factors to neighbours (c, φ) + Σ earlier tables that mention v (c, φ)
//! ```
//!
//! The last table has no variables and is the minimum; back-substitution of the stored labels gives the labelling.
//! Exact for any order. Time is [`Effort::combinations`], memory 12 bytes per live entry. The innermost loop runs over
//! the labels of the eliminated variable, along contiguous rows. Sums over the outer neighbours are stored by depth, so
//! a row is added only when its own neighbours change.

use super::{
    order::{Effort, Sequence},
    pairwise::Pairwise,
};
use plantui_core::search::Search;

/// Largest number of entries in the tables of an elimination; about 1.5 GiB including the labels for back-substitution.
pub(crate) const MOST_ENTRIES: f64 = 1.2e8;

/// A minimum and its labelling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Minimum {
    /// Minimum cost.
    pub cost: f64,
    /// Label of each variable.
    pub labels: Vec<usize>,
}

/// Function of some variables: a dense table with the last variable innermost.
struct Table {
    variables: Vec<usize>,
    values: Vec<f64>,
}

/// True if the tables of an elimination fit into memory.
pub(crate) fn fits(effort: &Effort) -> bool {
    effort.entries <= MOST_ENTRIES
}

/// Finds the minimum of a model in the given order; `None` if the search was stopped.
pub(crate) fn minimum(model: &Pairwise, sequence: &Sequence, search: &Search) -> Option<Minimum> {
    let sizes: Vec<usize> = model.unary.iter().map(|costs| costs.len()).collect();
    // Tables not yet absorbed, and for each variable the indices of the tables that mention it, oldest first.
    let mut tables: Vec<Option<Table>> = vec![];
    let mut mentions: Vec<Vec<usize>> = vec![vec![]; model.len()];
    let mut used = vec![false; model.factors.len()];
    let mut choices: Vec<Vec<u32>> = Vec::with_capacity(sequence.steps.len());
    let mut constant = 0.0;
    for step in &sequence.steps {
        let v = step.variable;
        let mut parts: Vec<Table> = vec![];
        for &f in &model.incident[v] {
            if !std::mem::replace(&mut used[f], true) {
                parts.push(pair(model, f, v));
            }
        }
        let absorbed = std::mem::take(&mut mentions[v]).into_iter().filter_map(|made| tables[made].take());
        parts.extend(absorbed.map(|table| innermost(table, v, &sizes)));
        let mut pass = Pass {
            sizes: step.dependent.iter().map(|&u| sizes[u]).collect(),
            levels: vec![vec![]; step.dependent.len() + 1],
            sums: vec![vec![0.0; sizes[v]]; step.dependent.len() + 1],
            values: vec![],
            labels: vec![],
            search,
        };
        pass.sums[0].copy_from_slice(&model.unary[v]);
        for part in &parts {
            pass.add(part, &step.dependent, &sizes);
        }
        pass.descend(0)?;
        choices.push(pass.labels);
        let table = Table { variables: step.dependent.clone(), values: pass.values };
        match table.variables.is_empty() {
            true => constant += table.values[0],
            false => {
                table.variables.iter().for_each(|&u| mentions[u].push(tables.len()));
                tables.push(Some(table));
            }
        }
    }
    let mut labels = vec![0; model.len()];
    for (step, choice) in sequence.steps.iter().zip(&choices).rev() {
        let at = step.dependent.iter().fold(0, |at, &u| at * sizes[u] + labels[u]);
        labels[step.variable] = choice[at] as usize;
    }
    Some(Minimum { cost: constant, labels })
}

/// Returns the factor of a variable and a neighbour as a table with the variable innermost.
fn pair(model: &Pairwise, f: usize, v: usize) -> Table {
    let factor = &model.factors[f];
    let end = factor.end(v);
    let other = factor.ends[1 - end];
    let columns = factor.classes[1].count;
    let mut values = Vec::with_capacity(model.unary[other].len() * model.unary[v].len());
    for &theirs in &factor.classes[1 - end].of {
        let cell = |&ours: &u32| match end {
            0 => ours as usize * columns + theirs as usize,
            _ => theirs as usize * columns + ours as usize,
        };
        values.extend(factor.classes[end].of.iter().map(|ours| factor.table[cell(ours)]));
    }
    Table { variables: vec![other, v], values }
}

/// Returns the table with one of its variables moved innermost.
fn innermost(table: Table, v: usize, sizes: &[usize]) -> Table {
    let at = table.variables.iter().position(|&u| u == v).unwrap_or_default();
    let inner: usize = table.variables[at + 1..].iter().map(|&u| sizes[u]).product();
    let outer = table.values.len() / (inner * sizes[v]);
    if inner == 1 {
        return table;
    }
    let mut values = Vec::with_capacity(table.values.len());
    for o in 0..outer {
        for i in 0..inner {
            values.extend((0..sizes[v]).map(|x| table.values[(o * sizes[v] + x) * inner + i]));
        }
    }
    let mut variables = table.variables;
    variables.remove(at);
    variables.push(v);
    Table { variables, values }
}

/// A table and the distances between its rows, by depth.
#[derive(Clone)]
struct Rows<'a> {
    values: &'a [f64],
    strides: Vec<usize>,
}

/// One elimination: iterates over the labels of the dependent variables, the last fastest.
struct Pass<'a> {
    sizes: Vec<usize>,
    /// Tables by depth: entry `i` holds those whose last dependent variable has index `i − 1`.
    levels: Vec<Vec<(Rows<'a>, usize)>>,
    /// Sums by depth: cost of each label from all tables above.
    sums: Vec<Vec<f64>>,
    values: Vec<f64>,
    labels: Vec<u32>,
    search: &'a Search,
}

impl<'a> Pass<'a> {
    fn add(&mut self, part: &'a Table, dependent: &[usize], sizes: &[usize]) {
        let mut strides = vec![0; dependent.len()];
        let mut stride = 1;
        let mut depth = 0;
        for &u in part.variables.iter().rev() {
            if let Ok(at) = dependent.binary_search(&u) {
                strides[at] = stride;
                depth = depth.max(at + 1);
            }
            stride *= sizes[u];
        }
        if depth == 0 {
            // The table mentions only the eliminated variable.
            for (sum, value) in self.sums[0].iter_mut().zip(&part.values) {
                *sum += value;
            }
            return;
        }
        self.levels[depth].push((Rows { values: &part.values, strides }, 0));
    }

    /// Fills the entries for the labels fixed above `depth`; `None` if the search was stopped.
    fn descend(&mut self, depth: usize) -> Option<()> {
        if depth < 2 && self.search.cancelled() {
            return None;
        }
        if depth == self.sizes.len() {
            let (label, value) = least(&self.sums[depth]);
            self.values.push(value);
            self.labels.push(label as u32);
            return Some(());
        }
        for label in 0..self.sizes[depth] {
            for level in &mut self.levels[depth + 1..] {
                for (rows, offset) in level {
                    if label > 0 {
                        *offset += rows.strides[depth];
                    }
                }
            }
            let (above, below) = self.sums.split_at_mut(depth + 1);
            let (above, below) = (&above[depth], &mut below[0]);
            below.copy_from_slice(above);
            for (rows, offset) in &self.levels[depth + 1] {
                let row = &rows.values[*offset..*offset + below.len()];
                for (sum, value) in below.iter_mut().zip(row) {
                    *sum += value;
                }
            }
            self.descend(depth + 1)?;
        }
        // Resets the offsets to the first label.
        for level in &mut self.levels[depth + 1..] {
            for (rows, offset) in level {
                *offset -= rows.strides[depth] * (self.sizes[depth] - 1);
            }
        }
        Some(())
    }
}

/// Returns the first minimum and its index.
fn least(values: &[f64]) -> (usize, f64) {
    let minimum = values.iter().fold(f64::INFINITY, |least, &value| if value < least { value } else { least });
    (values.iter().position(|&value| value == minimum).unwrap_or_default(), minimum)
}
