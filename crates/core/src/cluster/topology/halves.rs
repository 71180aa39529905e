//! Bottleneck between halves: the equal cut of the devices with the least bandwidth.
//!
//! Up to [`EXACT`] devices, all equal cuts are tried, each by a maximum flow, so the narrowest is proven. Above, the
//! result is an upper bound and marked as one. It tries the first half of the devices in order, and cuts by every
//! stride of the device numbers (axes of a torus, rails). Exchanges of two devices then improve the narrowest of them.
//! `O(cuts · flow)` time.

use rayon::prelude::*;

use super::{flow, graph::Topology};

/// Maximum number of devices for which all cuts are tried.
const EXACT: usize = 16;
/// Maximum number of devices for which exchanges are tried.
const EXCHANGED: usize = 64;

/// Two halves of the devices, and the bandwidth between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Halves {
    /// Devices of the half with device 0.
    pub first: Vec<usize>,
    /// Other devices.
    pub second: Vec<usize>,
    /// Bytes per second from one half to the other, in the slower direction.
    pub bandwidth: f64,
    /// Channels that are then full.
    pub full: Vec<u32>,
    /// True if no other equal cut is narrower.
    pub proven: bool,
}

/// Cut: its bandwidth, its full channels, and by device true for the first half.
type DeviceCut = (f64, Vec<u32>, Vec<bool>);

fn measured(topology: &Topology, first: Vec<bool>) -> DeviceCut {
    let there = flow::between(topology, &first);
    if topology.links().iter().all(|link| link.duplex != super::Duplex::OneWay) {
        return (there.0, there.1, first);
    }
    let second: Vec<bool> = first.iter().map(|&first| !first).collect();
    let back = flow::between(topology, &second);
    let (bandwidth, full) = if back.0 < there.0 { back } else { there };
    (bandwidth, full, first)
}

/// Narrower of two cuts; the first if they are equal.
fn narrower(one: DeviceCut, other: DeviceCut) -> DeviceCut {
    if other.0 < one.0 * (1.0 - 1e-9) { other } else { one }
}

impl Halves {
    /// Narrowest equal cut found; `None` for a single device. For an odd number of devices the halves differ by one.
    pub fn of(topology: &Topology) -> Option<Self> {
        let devices = topology.devices();
        if devices < 2 {
            return None;
        }
        let proven = devices <= EXACT;
        let cuts = if proven { all(devices) } else { some(devices) };
        let cuts: Vec<DeviceCut> = cuts.into_par_iter().map(|first| measured(topology, first)).collect();
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

/// All equal cuts with device 0 in the first half; for an odd number, also those with device 0 in the second.
fn all(devices: usize) -> Vec<Vec<bool>> {
    let half = devices.div_ceil(2) as u32;
    let sets = (0u32..1 << devices).filter(|set| set.count_ones() == half);
    let sets = sets.filter(|set| devices % 2 == 1 || set & 1 == 1);
    sets.map(|set| (0..devices).map(|device| set >> device & 1 == 1).collect()).collect()
}

/// Cuts by every stride: blocks alternate between the halves, or each block is cut in the middle.
fn some(devices: usize) -> Vec<Vec<bool>> {
    let strides = (1..=devices.div_ceil(2)).filter(|stride| devices.is_multiple_of(2 * stride));
    let mut cuts: Vec<Vec<bool>> = vec![(0..devices).map(|device| device < devices.div_ceil(2)).collect()];
    for stride in strides {
        cuts.push((0..devices).map(|device| (device / stride).is_multiple_of(2)).collect());
        // The first half of each block: cuts one axis once, whatever axes come before it.
        let block = 2 * stride;
        cuts.push((0..devices).map(|device| device % block < stride).collect());
    }
    cuts.dedup();
    cuts
}

/// Best cut after one exchange of two devices, if it is narrower.
fn exchanged(topology: &Topology, cut: &DeviceCut) -> Option<DeviceCut> {
    let devices = topology.devices();
    let pairs = (0..devices).flat_map(|a| (a + 1..devices).map(move |b| (a, b)));
    let pairs: Vec<(usize, usize)> = pairs.filter(|&(a, b)| cut.2[a] != cut.2[b]).collect();
    let tried: Vec<DeviceCut> = pairs
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
