//! Knapsacks for the patterns of CPUs: dynamic programming over cells.

/// Working memory of a knapsack.
#[derive(Debug, Clone)]
pub(crate) struct CellKnapsack {
    cells: usize,
    value: Vec<f64>,
    /// `taken[item · (cells + 1) + fill]`: true if the item is taken at this fill.
    taken: Vec<bool>,
}

impl CellKnapsack {
    /// Allocates memory for `items` items and `cells` cells.
    pub(crate) fn new(items: usize, cells: usize) -> Self {
        CellKnapsack { cells, value: vec![], taken: vec![false; items * (cells + 1)] }
    }

    /// Largest value that fits. A weight is in cells, `None` if the item does not fit; `chosen` is called with the
    /// items taken. `O(items · cells)`.
    pub(crate) fn fill(&mut self, weights: &[Option<usize>], price: &[f64], mut chosen: impl FnMut(usize)) -> f64 {
        let width = self.cells + 1;
        self.value.clear();
        self.value.resize(width, 0.0);
        for (item, weight) in weights.iter().enumerate() {
            let taken = &mut self.taken[item * width..(item + 1) * width];
            taken.fill(false);
            let Some(weight) = weight.filter(|&weight| weight < width) else { continue };
            let price = price[item];
            if price <= 0.0 {
                continue;
            }
            for fill in (weight..width).rev() {
                let with = self.value[fill - weight] + price;
                if with > self.value[fill] {
                    self.value[fill] = with;
                    taken[fill] = true;
                }
            }
        }
        let mut fill = self.cells;
        for item in (0..weights.len()).rev() {
            if self.taken[item * width + fill] {
                chosen(item);
                fill -= weights[item].unwrap_or(0);
            }
        }
        self.value[self.cells]
    }

    /// After [`CellKnapsack::fill`]: the largest value that fits into each number of cells.
    pub(crate) fn values(&self) -> &[f64] {
        &self.value
    }
}
