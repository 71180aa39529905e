//! The bottleneck between halves: the equal cut of the devices over which least can be sent.
//!
//! Up to [`EXACT`] devices all equal cuts are tried, each by a maximum flow; the narrowest is proven. Above, the cuts tried
//! are those between machines in order, by every stride of the device numbers (axes of a torus, rails), and what exchanges
//! of two devices make of the narrowest: what is found is an upper bound, and said to be one. `O(cuts · flow)` time.

use rayon::prelude::*;

use super::{Topology, flow};

/// Up to so many devices all cuts are tried.
const EXACT: usize = 16;
/// Up to so many devices exchanges are tried.
const EXCHANGED: usize = 64;

/// Two halves of the devices, and what goes between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Halves {
    /// The devices of the half with device 0.
    pub first: Vec<usize>,
    /// The others.
    pub second: Vec<usize>,
    /// Bytes per second from one half to the other, the smaller of both directions.
    pub bandwidth: f64,
    /// The channels that are full then.
    pub full: Vec<u32>,
    /// Whether no other equal cut is narrower.
    pub proven: bool,
}

/// A cut with its worth: by device, whether it is in the first half.
type Cut = (f64, Vec<u32>, Vec<bool>);

fn measured(topology: &Topology, first: Vec<bool>) -> Cut {
    let there = flow::between(topology, &first);
    if topology.links().iter().all(|link| link.duplex != super::Duplex::OneWay) {
        return (there.0, there.1, first);
    }
    let second: Vec<bool> = first.iter().map(|&first| !first).collect();
    let back = flow::between(topology, &second);
    let (bandwidth, full) = if back.0 < there.0 { back } else { there };
    (bandwidth, full, first)
}

/// The narrower of two cuts; the first of two that are as narrow.
fn narrower(one: Cut, other: Cut) -> Cut {
    if other.0 < one.0 * (1.0 - 1e-9) { other } else { one }
}

impl Halves {
    /// The narrowest equal cut that was found; `None` for a single device. Of an odd number the first half is the larger.
    pub fn of(topology: &Topology) -> Option<Self> {
        let devices = topology.devices();
        if devices < 2 {
            return None;
        }
        let proven = devices <= EXACT;
        let cuts = if proven { all(devices) } else { some(devices) };
        let cuts: Vec<Cut> = cuts.into_par_iter().map(|first| measured(topology, first)).collect();
        let mut best = cuts.into_iter().reduce(narrower)?;
        if !proven && devices <= EXCHANGED {
            while let Some(better) = exchanged(topology, &best) {
                best = better;
            }
        }
        let (bandwidth, full, mut inside) = best;
        if !inside[0] {
            inside.iter_mut().for_each(|inside| *inside = !*inside);
        }
        let half = |first: bool| (0..devices).filter(|&device| inside[device] == first).collect();
        Some(Halves { first: half(true), second: half(false), bandwidth, full, proven })
    }
}

/// All equal cuts with device 0 in the first half (of an odd number: in either).
fn all(devices: usize) -> Vec<Vec<bool>> {
    let half = devices.div_ceil(2) as u32;
    let sets = (0u32..1 << devices).filter(|set| set.count_ones() == half);
    let sets = sets.filter(|set| devices % 2 == 1 || set & 1 == 1);
    sets.map(|set| (0..devices).map(|device| set >> device & 1 == 1).collect()).collect()
}

/// Cuts by every stride: blocks of it go to the halves in turn, or its remainders do.
fn some(devices: usize) -> Vec<Vec<bool>> {
    let strides = (1..=devices.div_ceil(2)).filter(|stride| devices.is_multiple_of(2 * stride));
    let mut cuts: Vec<Vec<bool>> = vec![(0..devices).map(|device| device < devices.div_ceil(2)).collect()];
    for stride in strides {
        cuts.push((0..devices).map(|device| (device / stride).is_multiple_of(2)).collect());
        // The first half of each block: an axis cut once, however many come before it.
        let block = 2 * stride;
        cuts.push((0..devices).map(|device| device % block < stride).collect());
    }
    cuts.dedup();
    cuts
}

/// The best cut after one exchange of two devices, if that is narrower.
fn exchanged(topology: &Topology, cut: &Cut) -> Option<Cut> {
    let devices = topology.devices();
    let pairs = (0..devices).flat_map(|a| (a + 1..devices).map(move |b| (a, b)));
    let pairs: Vec<(usize, usize)> = pairs.filter(|&(a, b)| cut.2[a] != cut.2[b]).collect();
    let tried: Vec<Cut> = pairs
        .into_par_iter()
        .map(|(a, b)| {
            let mut inside = cut.2.clone();
            inside.swap(a, b);
            measured(topology, inside)
        })
        .collect();
    let best = tried.into_iter().reduce(narrower)?;
    (best.0 < cut.0 * (1.0 - 1e-9)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::{super::named, *};

    #[test]
    fn what_goes_between_halves() {
        // Four ports of 300 GB/s; two rails of 8 NICs; one NIC.
        for (name, gigabytes) in
            [("dgx-a100", 1200.0), ("2xdgx-a100", 200.0), ("2xdgx-1+eth-25g", 3.125), ("dgx-2", 1200.0)]
        {
            let halves = Halves::of(&named(name).unwrap()).unwrap();
            assert!((halves.bandwidth / 1e9 - gigabytes).abs() < 1e-6, "{name}: {}", halves.bandwidth);
            assert_eq!(halves.first.len(), halves.second.len());
        }
        // Two planes of 4x4 links, there and round the back.
        let torus = Halves::of(&named("tpu-v4-4x4x4").unwrap()).unwrap();
        assert!(!torus.proven && (torus.bandwidth - 32.0 * 50e9).abs() < 1.0, "{}", torus.bandwidth);
        assert_eq!(Halves::of(&named("dgx-1").unwrap()).unwrap().first[0], 0);
    }
}
