//! Configurations of an operator: the number of ways in which each dimension of its iteration space is split.
//!
//! A split divides its dimension's extent and leaves at least `cutoff` elements. The product of all splits is at most
//! the number of devices. It need not equal or divide that number, so devices may be idle. Configurations are in
//! lexicographic order, which depends only on the dimensions. `O(configurations · dimensions)` time and memory.

use plantui_core::workload::operators::Operator;

/// Largest number of configurations of an operator.
pub const MOST_CONFIGURATIONS: usize = 200_000;

/// All configurations of one operator, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    dims: usize,
    splits: Vec<u32>,
}

impl Space {
    /// Enumerates the configurations on at most `devices` devices; `None` if there are more than
    /// [`MOST_CONFIGURATIONS`].
    pub fn new(operator: &Operator, devices: u32, cutoff: u32) -> Option<Self> {
        let choices: Vec<Vec<u32>> = operator
            .dims
            .iter()
            .map(|dim| if dim.splittable { divisors(dim.extent, devices, cutoff) } else { vec![1] })
            .collect();
        let mut space = Space { dims: choices.len(), splits: vec![] };
        space.extend(operator, &choices, &mut vec![], devices);
        (space.len() <= MOST_CONFIGURATIONS).then_some(space)
    }

    /// Creates a space with one configuration.
    pub fn single(splits: Vec<u32>) -> Self {
        Space { dims: splits.len(), splits }
    }

    fn extend(&mut self, operator: &Operator, choices: &[Vec<u32>], prefix: &mut Vec<u32>, room: u32) {
        if self.len() > MOST_CONFIGURATIONS {
            return;
        }
        if prefix.len() == choices.len() {
            self.splits.extend_from_slice(prefix);
            return;
        }
        // A contiguous piece allows no further split after a dimension that is split but not fully.
        let closed = operator.contiguous()
            && prefix.iter().zip(&operator.dims).any(|(&split, dim)| u64::from(split) != dim.extent);
        for &split in choices[prefix.len()].iter().filter(|&&split| split <= room && (!closed || split == 1)) {
            prefix.push(split);
            self.extend(operator, choices, prefix, room / split);
            prefix.pop();
        }
    }

    /// Number of configurations, at least 1.
    pub fn len(&self) -> usize {
        self.splits.len() / self.dims
    }

    /// True if there is no configuration, which never happens.
    pub fn is_empty(&self) -> bool {
        self.splits.is_empty()
    }

    /// Returns the split of each dimension in one configuration.
    pub fn get(&self, configuration: usize) -> &[u32] {
        &self.splits[configuration * self.dims..(configuration + 1) * self.dims]
    }

    /// Iterates over all configurations.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.splits.chunks_exact(self.dims)
    }
}

/// Divisors of `extent` up to `devices` that leave at least `cutoff`; only 1 if there is none.
fn divisors(extent: u64, devices: u32, cutoff: u32) -> Vec<u32> {
    let most = u64::from(devices).min(extent / u64::from(cutoff.max(1)));
    let mut found: Vec<u32> =
        (1..=most).filter(|&split| extent.is_multiple_of(split)).map(|split| split as u32).collect();
    if found.is_empty() {
        found.push(1);
    }
    found
}
