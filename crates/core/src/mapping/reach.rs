//! Devices that are reached over pairs of at least a given width, and the distinct widths. Cached for the searches of
//! many targets.
//!
//! A device's neighbours are sorted, the widest first, and every prefix is stored as a bit set. The devices with enough
//! bandwidth are then found by bisection, without a threshold graph per number of bytes.
//! `O(devices² · (log devices + devices / 64))` time and `O(devices³ / 64)` memory, so it is used only for the few
//! devices that are searched.

use crate::cluster::topology::PairMatrix;

/// One direction.
#[derive(Debug)]
struct DirectedReach {
    /// By device: widths of its pairs, the widest first.
    widths: Vec<Vec<f64>>,
    /// By device and number of neighbours: the bits of that many widest neighbours.
    bits: Vec<u64>,
}

/// Both directions.
#[derive(Debug)]
pub(super) struct Reachability {
    words: usize,
    out: DirectedReach,
    into: DirectedReach,
    /// Distinct widths, the widest first.
    widths: Vec<f64>,
}

impl DirectedReach {
    fn new(devices: usize, words: usize, width: impl Fn(usize, usize) -> f64) -> Self {
        let (mut widths, mut bits) = (vec![], Vec::with_capacity(devices * devices * words));
        for a in 0..devices {
            let mut others: Vec<usize> = (0..devices).filter(|&b| b != a).collect();
            others.sort_by(|&b, &c| width(a, c).total_cmp(&width(a, b)));
            let mut own = vec![0u64; words];
            bits.extend(&own);
            for &b in &others {
                own[b / 64] |= 1 << (b % 64);
                bits.extend(&own);
            }
            widths.push(others.into_iter().map(|b| width(a, b)).collect());
        }
        DirectedReach { widths, bits }
    }

    fn row(&self, words: usize, device: usize, narrowest: f64) -> &[u64] {
        let count = self.widths[device].partition_point(|&width| width >= narrowest);
        &self.bits[(device * self.widths.len() + count) * words..][..words]
    }
}

impl Reachability {
    pub(super) fn new(matrix: &PairMatrix) -> Self {
        let devices = matrix.devices();
        let words = devices.div_ceil(64);
        let out = DirectedReach::new(devices, words, |a, b| matrix.at(a, b));
        let into = DirectedReach::new(devices, words, |a, b| matrix.at(b, a));
        let mut widths = out.widths.concat();
        widths.sort_unstable_by(|a, b| b.total_cmp(a));
        widths.dedup();
        Reachability { words, out, into, widths }
    }

    /// Distinct widths of pairs, the widest first.
    pub(super) fn widths(&self) -> &[f64] {
        &self.widths
    }

    /// Narrowest width over which the bytes take no longer than the target; infinite if none is wide enough.
    pub(super) fn narrowest(&self, bytes: f64, target: f64) -> f64 {
        let enough = self.widths.partition_point(|width| bytes / width <= target);
        enough.checked_sub(1).map_or(f64::INFINITY, |last| self.widths[last])
    }

    /// Bits of the devices that `device` reaches over at least this width.
    pub(super) fn from(&self, device: usize, narrowest: f64) -> &[u64] {
        self.out.row(self.words, device, narrowest)
    }

    /// Bits of the devices that reach `device` over at least this width.
    pub(super) fn to(&self, device: usize, narrowest: f64) -> &[u64] {
        self.into.row(self.words, device, narrowest)
    }
}
