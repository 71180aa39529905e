//! Which devices a stage may take: fresh machines first, machines in use first, or scattered over all.
//!
//! Fan et al., PPoPP 2021, section 4.2.1. Sets of devices are bits of a `u128`, device 0 the highest of them, so that the
//! order of numbers is the order in which the published tables are walked.

use crate::cluster::Machines;

/// A set of devices.
pub type Devices = u128;

/// The most devices that fit a set.
pub const MOST: u32 = Devices::BITS;

/// The set of one device.
pub fn bit(device: u32) -> Devices {
    1 << (MOST - 1 - device)
}

/// The devices of a set, ascending.
pub fn ids(mut set: Devices) -> Vec<u32> {
    let mut ids = vec![];
    while set != 0 {
        let device = set.leading_zeros();
        ids.push(device);
        set &= !bit(device);
    }
    ids
}

/// The sets that the next stage may take beside what is occupied, without repetition, in the order of the policies.
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

/// The first devices for a stage on an empty cluster.
pub fn next_of_fresh(machines: &Machines, need: u32) -> Option<Devices> {
    fresh(machines, 0, need)
}

/// The sets that `pipelines` stages side by side may take together, each of them by any policy.
pub fn next_of_each(machines: &Machines, occupied: Devices, need: u32, pipelines: u32) -> Vec<Devices> {
    // What is taken decides what comes next, so ways to the same set need not be kept apart.
    let mut taken: Vec<Devices> = vec![0];
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

/// First devices of the machines, and one past their last.
fn ranges(machines: &Machines) -> impl Iterator<Item = std::ops::Range<u32>> + '_ {
    let mut end = 0;
    machines.sizes().iter().map(move |&size| {
        let first = end;
        end += u32::from(size);
        first..end
    })
}

/// The first free devices of the machines of which none (`fresh`) or some is in use; `None` if they do not suffice.
fn first_free(machines: &Machines, occupied: Devices, need: u32, fresh: bool) -> Option<Devices> {
    let mut set = 0;
    let mut left = need;
    for range in ranges(machines) {
        if range.clone().any(|device| occupied & bit(device) != 0) == fresh {
            continue;
        }
        for device in range.filter(|&device| occupied & bit(device) == 0) {
            if left == 0 {
                return Some(set);
            }
            set |= bit(device);
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

/// One device of each machine in turn.
fn scatter(machines: &Machines, occupied: Devices, need: u32) -> Option<Devices> {
    let mut set = 0;
    let mut left = need;
    while left > 0 {
        let before = left;
        for mut range in ranges(machines) {
            if left == 0 {
                break;
            }
            if let Some(device) = range.find(|&device| (occupied | set) & bit(device) == 0) {
                set |= bit(device);
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
        let occupied = occupied.iter().fold(0, |set, &device| set | bit(device));
        next(&Machines::new(machines).unwrap(), occupied, need).into_iter().map(ids).collect()
    }

    #[test]
    fn the_three_policies() {
        assert_eq!(shown(&[4, 4], &[], 2), [vec![0, 1], vec![0, 4]]);
        assert_eq!(shown(&[4, 4], &[0], 2), [vec![4, 5], vec![1, 2], vec![1, 4]]);
        // Neither machine alone suffices: what is left is one of each in turn until the first has no more.
        assert_eq!(shown(&[4, 4], &[0], 5), [vec![1, 2, 3, 4, 5]]);
        assert_eq!(shown(&[1, 1, 1], &[0], 1), [vec![1]]);
        assert!(shown(&[2], &[0, 1], 1).is_empty());
    }

    #[test]
    fn pipelines_side_by_side_take_every_mixture() {
        let machines = Machines::new(&[2, 2]).unwrap();
        let sets: Vec<Vec<u32>> = next_of_each(&machines, 0, 1, 2).into_iter().map(ids).collect();
        assert_eq!(sets, [vec![0, 2], vec![0, 1]]);
    }
}
