//! Links between devices in machines, and the time to move data over them (cost model of DAPPLE's published programs).
//!
//! There are three speeds: inside a machine, between two devices of different machines, and for an all-reduce that
//! spans machines. As published, a transfer to devices of one machine slows down with the fraction of senders outside
//! it, independent of the number of receivers. A transfer to devices of several machines runs at the all-reduce's
//! speed.

use super::machines::Machines;

/// Bytes per second of each kind of link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Links {
    /// Between two devices of one machine (NVLink).
    pub in_machine: f64,
    /// Between two devices of different machines (Ethernet, point to point).
    pub between_machines: f64,
    /// Within an all-reduce that spans machines (Ethernet, NCCL).
    pub all_reduce: f64,
}

/// Links of the published programs: NVLink and 25 Gb/s Ethernet.
pub const PUBLISHED_LINKS: Links = Links { in_machine: 25e9, between_machines: 1e9, all_reduce: 3e9 };

impl Default for Links {
    fn default() -> Self {
        PUBLISHED_LINKS
    }
}

/// True if all devices are in one machine. A device without a machine is outside all machines.
fn together(machines: &Machines, devices: &[u32]) -> bool {
    let Some(&any) = devices.first() else { return true };
    let (mut first, mut last) = (any, any);
    for &device in devices {
        (first, last) = (first.min(device), last.max(device));
    }
    machines.machine_of(first).is_some() && machines.machine_of(first) == machines.machine_of(last)
}

impl Links {
    /// Seconds to all-reduce `bytes` over `devices`.
    #[inline]
    pub fn all_reduce_s(&self, machines: &Machines, devices: &[u32], bytes: f64) -> f64 {
        self.all_reduce_of(devices.len(), together(machines, devices), bytes)
    }

    /// True if all devices are in one machine.
    #[inline]
    pub fn one_machine(machines: &Machines, devices: &[u32]) -> bool {
        together(machines, devices)
    }

    /// Seconds to all-reduce `bytes` over `count` devices of one machine or of several.
    #[inline]
    pub fn all_reduce_of(&self, count: usize, one_machine: bool, bytes: f64) -> f64 {
        if count < 2 {
            return 0.0;
        }
        let k = count as f64;
        let traffic = 2.0 * (k - 1.0) / k * bytes;
        if one_machine { traffic / self.in_machine / (count / 2) as f64 } else { traffic / self.all_reduce }
    }

    /// Seconds to send `bytes`, split over the senders, to the receivers, which split them again.
    pub fn transfer_s(&self, machines: &Machines, from: &[u32], to: &[u32], bytes: f64) -> f64 {
        bytes * self.transfer_per_byte(machines, from, to)
    }

    /// Seconds per byte of [`Links::transfer_s`].
    #[inline]
    pub fn transfer_per_byte(&self, machines: &Machines, from: &[u32], to: &[u32]) -> f64 {
        if !together(machines, to) {
            return self.transfer_of(from.len(), from.len(), false);
        }
        let home = to.first().and_then(|&receiver| machines.machine_of(receiver));
        let outside = from.iter().filter(|&&sender| machines.machine_of(sender) != home).count();
        self.transfer_of(outside, from.len(), true)
    }

    /// Seconds per byte from `senders` devices, `outside` of them outside the receivers' machine, if the receivers
    /// share one.
    pub fn transfer_of(&self, outside: usize, senders: usize, one_machine: bool) -> f64 {
        match outside {
            _ if !one_machine => 1.0 / self.all_reduce,
            0 => 1.0 / self.in_machine,
            outside => outside as f64 / senders as f64 / self.between_machines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far() {
        let machines = Machines::new(&[4, 4]).unwrap();
        let links = PUBLISHED_LINKS;
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12 * b;
        assert_eq!(links.all_reduce_s(&machines, &[3], 1e9), 0.0);
        // Four devices of one machine: 1.5 times the bytes over two pairs of links.
        assert!(close(links.all_reduce_s(&machines, &[0, 1, 2, 3], 1e9), 1.5e9 / 50e9));
        assert!(close(links.all_reduce_s(&machines, &[3, 4], 3e9), 1.0));
        assert!(close(links.transfer_s(&machines, &[0], &[1, 2], 25e9), 1.0));
        assert!(close(links.transfer_s(&machines, &[0, 4], &[1, 2], 1e9), 0.5));
        assert!(close(links.transfer_s(&machines, &[0], &[1, 4], 3e9), 1.0));
        // A device that does not exist is far from all.
        assert!(close(links.all_reduce_s(&machines, &[8, 9], 3e9), 1.0));
    }
}
