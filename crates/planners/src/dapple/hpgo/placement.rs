//! Devices that a stage may take: fresh machines first, machines in use first, or scattered over all.
//!
//! Source: Fan et al., PPoPP 2021, section 4.2.1. A set of devices is a bit set with device 0 as the highest bit. So
//! the order of sets is the order in which the published tables are visited.

use std::ops::BitOr;

use plantui_core::cluster::Machines;

/// Number of words of a set.
const WORDS: usize = 16;

/// Largest number of devices in a set.
pub const MOST: u32 = WORDS as u32 * u64::BITS;

/// Set of devices, ordered like a binary number whose first digit is device 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Devices([u64; WORDS]);

impl Devices {
    /// Creates the set of a range of devices.
    pub fn range(devices: std::ops::Range<u32>) -> Self {
        devices.fold(Devices::default(), |mut set, device| {
            set.insert(device);
            set
        })
    }

    /// Adds a device.
    pub fn insert(&mut self, device: u32) {
        self.0[(device / u64::BITS) as usize] |= 1 << (u64::BITS - 1 - device % u64::BITS);
    }

    /// True if the set contains a device.
    pub fn contains(&self, device: u32) -> bool {
        self.0[(device / u64::BITS) as usize] >> (u64::BITS - 1 - device % u64::BITS) & 1 == 1
    }

    /// Number of its devices.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

impl BitOr for Devices {
    type Output = Self;

    fn bitor(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
        self
    }
}

/// Returns the devices of a set, ascending.
pub fn ids(set: Devices) -> Vec<u32> {
    let mut ids = vec![];
    for (at, mut word) in (0u32..).zip(set.0) {
        while word != 0 {
            let first = word.leading_zeros();
            ids.push(at * u64::BITS + first);
            word &= !(1 << (u64::BITS - 1 - first));
        }
    }
    ids
}

/// Returns the sets that the next stage may take beside `occupied`, without duplicates, in the order of the policies.
pub fn next(machines: &Machines, occupied: Devices, need: u32) -> Vec<Devices> {
    let mut found: Vec<Devices> = vec![];
    for set in [fresh(machines, occupied, need), append(machines, occupied, need), scatter(machines, occupied, need)] {
        if let Some(set) = set
            && !found.contains(&set)
        {
            found.push(set);
        }
    }
    found
}

/// Returns the first devices for a stage on an empty cluster.
pub fn next_of_fresh(machines: &Machines, need: u32) -> Option<Devices> {
    fresh(machines, Devices::default(), need)
}

/// Returns the sets that `pipelines` parallel stages may take together, each of them by any policy.
pub fn next_of_each(machines: &Machines, occupied: Devices, need: u32, pipelines: u32) -> Vec<Devices> {
    // Only the set of taken devices matters for the next step, so ways to the same set are merged.
    let mut taken = vec![Devices::default()];
    for _ in 0..pipelines {
        let mut more = vec![];
        for set in taken {
            for next in next(machines, occupied | set, need) {
                if !more.contains(&(set | next)) {
                    more.push(set | next);
                }
            }
        }
        taken = more;
    }
    taken
}

/// Range of devices of each machine.
fn ranges(machines: &Machines) -> impl Iterator<Item = std::ops::Range<u32>> + '_ {
    let mut end = 0;
    machines.sizes().iter().map(move |&size| {
        let first = end;
        end += u32::from(size);
        first..end
    })
}

/// First free devices of the machines without (`fresh`) or with occupied devices; `None` if they do not suffice.
fn first_free(machines: &Machines, occupied: Devices, need: u32, fresh: bool) -> Option<Devices> {
    let mut set = Devices::default();
    let mut left = need;
    for range in ranges(machines) {
        if range.clone().any(|device| occupied.contains(device)) == fresh {
            continue;
        }
        for device in range.filter(|&device| !occupied.contains(device)) {
            if left == 0 {
                return Some(set);
            }
            set.insert(device);
            left -= 1;
        }
    }
    (left == 0).then_some(set)
}

fn fresh(machines: &Machines, occupied: Devices, need: u32) -> Option<Devices> {
    first_free(machines, occupied, need, true)
}

fn append(machines: &Machines, occupied: Devices, need: u32) -> Option<Devices> {
    first_free(machines, occupied, need, false)
}

/// Takes one device of each machine in turn.
fn scatter(machines: &Machines, occupied: Devices, need: u32) -> Option<Devices> {
    let mut set = Devices::default();
    let mut left = need;
    while left > 0 {
        let before = left;
        for mut range in ranges(machines) {
            if left == 0 {
                break;
            }
            if let Some(device) = range.find(|&device| !occupied.contains(device) && !set.contains(device)) {
                set.insert(device);
                left -= 1;
            }
        }
        if before == left {
            return None;
        }
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(machines: &[u16], occupied: &[u32], need: u32) -> Vec<Vec<u32>> {
        let occupied =
            occupied.iter().fold(Devices::default(), |set, &device| set | Devices::range(device..device + 1));
        next(&Machines::new(machines).unwrap(), occupied, need).into_iter().map(ids).collect()
    }

    #[test]
    fn the_three_policies() {
        assert_eq!(shown(&[4, 4], &[], 2), [vec![0, 1], vec![0, 4]]);
        assert_eq!(shown(&[4, 4], &[0], 2), [vec![4, 5], vec![1, 2], vec![1, 4]]);
        // Neither machine alone suffices. Scatter takes one of each in turn until the first machine is full.
        assert_eq!(shown(&[4, 4], &[0], 5), [vec![1, 2, 3, 4, 5]]);
        assert_eq!(shown(&[1, 1, 1], &[0], 1), [vec![1]]);
        assert!(shown(&[2], &[0, 1], 1).is_empty());
    }

    #[test]
    fn pipelines_side_by_side_take_every_mixture() {
        let machines = Machines::new(&[2, 2]).unwrap();
        let sets: Vec<Vec<u32>> = next_of_each(&machines, Devices::default(), 1, 2).into_iter().map(ids).collect();
        assert_eq!(sets, [vec![0, 2], vec![0, 1]]);
    }
}
