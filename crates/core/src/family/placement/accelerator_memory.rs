//! Memory rule of accelerators, shared by the check and all planners.
//!
//! Nodes fit if the sizes on their accelerator sum to no more than the memory. Sums of fractional sizes depend on the
//! order: seven times 0.1 may exceed 0.7 or not. If some size is not a whole number, sizes are therefore rounded to
//! units of a 2^52th of the memory. Sums of units are exact in any order up to twice the memory, and subtraction from
//! such a sum is exact; beyond twice the memory they stay beyond it. To allow for rounding in the file and to units,
//! the memory is extended by 1e-12 of it and a unit for each node. Whole bytes are compared with the unchanged memory.

use std::borrow::Cow;

use crate::workload::PlacementProfile;

/// Whole numbers below are exact, and so are their sums up to twice that.
const WHOLE: f64 = (1u64 << 52) as f64;
/// Number of units in the largest power of two up to the memory.
const UNITS: f64 = (1u64 << 51) as f64;
/// Possible rounding error of sums in files, relative to the memory.
const FEASIBILITY_TOLERANCE: f64 = 1e-12;

/// Memory of an accelerator, in the units of a profile's sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcceleratorMemory {
    /// Unit that sizes are rounded to; `None` if they are not rounded.
    unit_bytes: Option<f64>,
    /// Possible error of a sum of rounded sizes, bytes.
    rounding_bytes: f64,
    limit_bytes: f64,
}

impl AcceleratorMemory {
    /// Memory limit for the nodes of a profile. `O(nodes)`.
    pub fn new(profile: &PlacementProfile, memory_bytes: f64) -> Self {
        let as_it_is = AcceleratorMemory { unit_bytes: None, rounding_bytes: 0.0, limit_bytes: memory_bytes };
        if memory_bytes.is_infinite() || (memory_bytes < WHOLE && has_whole_sizes(profile)) {
            return as_it_is;
        }
        // Sign and exponent alone: the largest power of two up to the memory.
        let power = f64::from_bits(memory_bytes.to_bits() >> 52 << 52);
        let unit = power / UNITS;
        if !unit.is_normal() {
            return as_it_is;
        }
        let rounding_bytes = profile.nodes.len() as f64 * f64::EPSILON * memory_bytes;
        let rounded = AcceleratorMemory { unit_bytes: Some(unit), rounding_bytes, limit_bytes: 0.0 };
        AcceleratorMemory { limit_bytes: rounded.limit_of(memory_bytes), ..rounded }
    }

    /// Limit for the sum of rounded sizes on an accelerator with another memory, at most this one's.
    pub fn limit_of(&self, memory_bytes: f64) -> f64 {
        self.unit_bytes.map_or(memory_bytes, |unit| {
            let units = ((memory_bytes * (1.0 + FEASIBILITY_TOLERANCE) + self.rounding_bytes) / unit).floor();
            (units * unit).min(f64::MAX)
        })
    }

    /// Limit for the sum of rounded sizes on an accelerator; infinite if unlimited.
    pub fn limit_bytes(&self) -> f64 {
        self.limit_bytes
    }

    /// Rounded size.
    pub fn counted(&self, size_bytes: f64) -> f64 {
        self.unit_bytes.map_or(size_bytes, |unit| (size_bytes / unit).round() * unit)
    }

    /// True if nodes with this sum of rounded sizes fit on an accelerator with a memory, at most the largest.
    pub(crate) fn fits(&self, counted_bytes: f64, memory_bytes: f64) -> bool {
        counted_bytes <= self.limit_of(memory_bytes)
    }

    /// Profile with rounded sizes, to plan with: any sum of them within [`AcceleratorMemory::limit_bytes`] fits.
    pub fn profile<'p>(&self, profile: &'p PlacementProfile) -> Cow<'p, PlacementProfile> {
        if self.unit_bytes.is_none() {
            return Cow::Borrowed(profile);
        }
        let mut counted = profile.clone();
        counted.nodes.iter_mut().for_each(|node| node.size_bytes = self.counted(node.size_bytes));
        Cow::Owned(counted)
    }
}

/// True if all sizes are whole numbers of bytes.
pub fn has_whole_sizes(profile: &PlacementProfile) -> bool {
    profile.nodes.iter().all(|node| node.size_bytes.fract() == 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::PlacementNode;

    fn profile(sizes: &[f64]) -> PlacementProfile {
        let node = |&size_bytes: &f64| PlacementNode {
            cpu_time: 1.0,
            accelerator_time: 1.0,
            supported: true,
            backward: false,
            size_bytes,
            colour_class: None,
            layer: None,
            transfer: 0.0,
        };
        sizes.iter().map(node).collect::<Vec<_>>().into()
    }

    fn hold(sizes: &[f64], memory_bytes: f64) -> bool {
        let memory = AcceleratorMemory::new(&profile(sizes), memory_bytes);
        let sum = |sizes: &mut dyn Iterator<Item = &f64>| sizes.fold(0.0, |sum, &size| sum + memory.counted(size));
        let (up, down) = (sum(&mut sizes.iter()), sum(&mut sizes.iter().rev()));
        assert_eq!(up, down, "{sizes:?} in {memory_bytes}");
        memory.fits(up, memory_bytes)
    }

    #[test]
    fn tenths_that_fill_the_memory_fit_and_a_little_more_does_not() {
        for tenths in 1..=60 {
            let memory = f64::from(tenths) / 10.0;
            for size in [1, 2, 3, 7].into_iter().filter(|size| *size <= tenths) {
                let mut sizes = vec![f64::from(size) / 10.0; (tenths / size) as usize];
                sizes.extend(vec![0.1; (tenths % size) as usize]);
                assert!(hold(&sizes, memory), "{sizes:?} in {memory}");
                sizes.push(1e-6 * memory);
                assert!(!hold(&sizes, memory), "{sizes:?} in {memory}");
            }
        }
        let many = vec![0.1; 100_000];
        assert!(hold(&many, 10_000.0) && !hold(&many, 9_999.9));
    }

    #[test]
    fn whole_bytes_are_held_to_the_last_one() {
        let memory = (1u64 << 40) as f64;
        assert!(hold(&[memory - 1.0, 1.0], memory) && !hold(&[memory - 1.0, 2.0], memory));
        assert!(hold(&[3.0], 3.5) && !hold(&[4.0], 3.5));
    }

    #[test]
    fn what_leaves_a_sum_leaves_nothing_behind() {
        let sizes = [0.1, 0.7, 0.3, 0.2, 1e-9];
        let memory = AcceleratorMemory::new(&profile(&sizes), 1.3);
        let mut sum = sizes.iter().fold(0.0, |sum, &size| sum + memory.counted(size));
        for size in [0.3, 0.1, 1e-9, 0.7, 0.2] {
            sum -= memory.counted(size);
        }
        assert_eq!(sum, 0.0);
    }

    #[test]
    fn the_largest_and_the_smallest_memories_are_numbers() {
        assert!(hold(&[0.5, f64::MAX / 2.0], f64::INFINITY) && hold(&[0.5], f64::MAX));
        assert!(!hold(&[0.5], 0.0) && hold(&[0.0], 0.0) && !hold(&[0.5], 1e-310));
        assert!(!hold(&[0.5, 1e30], 1.0));
    }
}
