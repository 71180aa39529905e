//! Links beyond a pod: devices of a pod have full bandwidth between them, and what leaves it is oversubscribed.
//!
//! A reduction over ranks in several pods reduces within each pod, then one part per rank across:
//! `(n - 1) / n · V / β` becomes `((p - 1) / p + o · (k - 1) / (k p)) · V / β` with `p` of `n` ranks in a pod, `k` pods and
//! `o` times less bandwidth between them. An exchange among all pays for the share that leaves the pod, and transfers
//! between stages for the devices of a stage that send at once. All are `O(1)`.

use crate::{
    units,
    workload::training::{Accelerator, hardware::Fabric},
};

/// Fabrics with a name: id, figures, source.
pub const FABRICS: [(&str, Fabric, &str); 1] = [(
    "roce-24k",
    Fabric { pod: 3072, oversubscription: 7.0 },
    "24,576 H100 on RoCE, pods of 3,072 with 1:7 above: The Llama 3 Herd of Models, 2024",
)];

/// Reads a fabric: a name, or `3072:7` for pods of 3,072 devices with a seventh of the bandwidth between them.
///
/// # Errors
/// A sentence with the form.
pub fn parse(text: &str) -> Result<Fabric, String> {
    if let Some((_, fabric, _)) = FABRICS.iter().find(|(id, ..)| id.eq_ignore_ascii_case(text.trim())) {
        return Ok(*fabric);
    }
    let known = FABRICS.map(|(id, ..)| id).join(", ");
    let form = || format!("is no fabric: write POD:OVERSUBSCRIPTION, such as 3072:7, or {known}");
    let (pod, times) = text.split_once(':').ok_or_else(form)?;
    let pod = units::parse_count(pod.trim()).map_err(|_| form())?;
    Fabric::checked(f64::from(pod), times.trim().parse().map_err(|_| form())?)
}

impl Fabric {
    /// Network with these figures.
    ///
    /// # Errors
    /// A sentence with the possible ones.
    pub fn checked(pod: f64, oversubscription: f64) -> Result<Self, String> {
        if pod.fract() != 0.0 || !(1.0..=f64::from(u32::MAX)).contains(&pod) {
            return Err(format!("has pods of {pod} devices, must be a whole number from 1"));
        }
        let most = Fabric::MOST_OVERSUBSCRIPTION;
        if !(1.0..=most).contains(&oversubscription) {
            return Err(format!("has an oversubscription of {oversubscription}, must be from 1 to {most}"));
        }
        Ok(Fabric { pod: pod as u32, oversubscription })
    }

    /// In a sentence, for reports.
    pub fn told(&self) -> String {
        format!(
            "pods of {} devices have full bandwidth within, and {} times less between them: modelled, compared with no run",
            self.pod,
            units::number(self.oversubscription)
        )
    }

    /// Refuses pods that hold no whole machine.
    ///
    /// # Errors
    /// A sentence with the devices of a machine.
    pub fn suits(&self, accelerator: &Accelerator) -> Result<(), String> {
        if self.pod >= accelerator.domain {
            return Ok(());
        }
        Err(format!("has pods of {} devices, and {} devices share a machine's links", self.pod, accelerator.domain))
    }

    /// Rate of a reduction over ranks that are `stride` devices apart, as a share of the rate within a pod.
    fn reduction(&self, ranks: f64, stride: f64) -> f64 {
        let pod = f64::from(self.pod);
        if ranks * stride <= pod || ranks < 2.0 {
            return 1.0;
        }
        let within = (pod / stride).floor().max(1.0);
        let pods = ranks / within;
        let across = self.oversubscription * (pods - 1.0) / (pods * within);
        (((ranks - 1.0) / ranks) / ((within - 1.0) / within + across)).min(1.0)
    }

    /// Rate of an exchange among neighbouring devices, as a share of the rate within a pod.
    fn exchange(&self, devices: f64) -> f64 {
        let leaves = 1.0 - f64::from(self.pod) / devices;
        if leaves <= 0.0 { 1.0 } else { (1.0 / (self.oversubscription * leaves)).min(1.0) }
    }

    /// Rate of transfers to the next stage, as a share of the rate within a pod, if all devices of a stage send at once.
    fn next_stage(&self, devices: f64, of_stage: f64) -> f64 {
        let pod = f64::from(self.pod);
        if devices <= pod { 1.0 } else { (pod / (self.oversubscription * of_stage.min(pod))).min(1.0) }
    }
}

/// Network of an accelerator; a pod holds whole machines.
fn of(accelerator: &Accelerator) -> Option<Fabric> {
    accelerator.fabric.map(|fabric| Fabric { pod: fabric.pod.max(accelerator.domain), ..fabric })
}

/// Share of the rate for a reduction over ranks that are `stride` devices apart.
pub(super) fn reduction(accelerator: &Accelerator, ranks: f64, stride: f64) -> f64 {
    of(accelerator).map_or(1.0, |fabric| fabric.reduction(ranks, stride))
}

/// Share of the rate for an exchange among neighbouring devices.
pub(super) fn exchange(accelerator: &Accelerator, devices: f64) -> f64 {
    of(accelerator).map_or(1.0, |fabric| fabric.exchange(devices))
}

/// Share of the rate for transfers to the next stage, of devices in all and of a stage.
pub(super) fn next_stage(accelerator: &Accelerator, devices: f64, of_stage: f64) -> f64 {
    of(accelerator).map_or(1.0, |fabric| fabric.next_stage(devices, of_stage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_in_a_pod_keeps_its_rate() {
        let fabric = parse("roce-24k").unwrap();
        assert_eq!(
            (fabric.reduction(384.0, 8.0), fabric.exchange(3072.0), fabric.next_stage(3072.0, 1024.0)),
            (1.0, 1.0, 1.0)
        );
        // Without oversubscription nothing changes beyond it either.
        let flat = parse("3072:1").unwrap();
        assert!((flat.reduction(2048.0, 8.0) - 1.0).abs() < 1e-12);
        assert_eq!((flat.exchange(1e6), flat.next_stage(1e6, 1e5)), (1.0, 1.0));
    }

    #[test]
    fn what_leaves_a_pod_is_slower() {
        let fabric = parse("64:4").unwrap();
        // 32 ranks 8 apart: 8 in each of four pods. 7/8 within, 4 · 3/4 / 8 across, against 31/32.
        assert!((fabric.reduction(32.0, 8.0) - (31.0 / 32.0) / (7.0 / 8.0 + 3.0 / 8.0)).abs() < 1e-12);
        // One rank in each pod: every byte leaves.
        assert!((fabric.reduction(16.0, 64.0) - 0.25).abs() < 1e-12);
        assert_eq!(
            (fabric.exchange(128.0), fabric.next_stage(256.0, 64.0), fabric.next_stage(256.0, 16.0)),
            (0.5, 0.25, 1.0)
        );
    }

    #[test]
    fn forms_that_are_none_are_told() {
        assert_eq!(parse("3072:7"), Ok(Fabric { pod: 3072, oversubscription: 7.0 }));
        for text in ["", "7", "0:7", "64:x", "64:0.5", "64:NaN"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
