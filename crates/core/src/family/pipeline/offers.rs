//! Choices of nodes with modes by tensor degree.
//!
//! A missing degree is made from the nearest smaller one of the node (else the nearest larger), as if split perfectly:
//! time, parameters and memory in proportion, tensors across stages unchanged. The best plan of such a workload
//! therefore bounds the gain of offering the degrees. It is not a prediction.

use super::describe::first_mode;
use crate::{
    family::offers::NodeOffers,
    workload::{
        Choice, DegreeProfile, Mode, NodeIndex, PiperProfile, Profile, Workload,
        piper::{self, NodeProfile},
    },
};

impl NodeOffers for PiperProfile {
    fn tensor_degrees(&self) -> Vec<u32> {
        self.degrees()
    }

    fn offers_degree(&self, node: NodeIndex, degree: u32) -> bool {
        self.nodes[node].modes(degree).is_some()
    }

    fn mode_at(&self, node: NodeIndex, degree: u32, recomputes: bool) -> Option<Choice> {
        let modes = self.nodes[node].modes(degree)?;
        let mode = modes.iter().find(|mode| piper::recomputes(&mode.id) == recomputes).or(modes.first())?;
        Some(Choice::Mode(mode.id.clone()))
    }

    fn takes_no_time(&self, node: NodeIndex, degree: u32) -> bool {
        self.nodes[node].modes(degree).is_some_and(|modes| modes.iter().all(|mode| mode.time_s == 0.0))
    }

    fn with_every_degree(&self, workload: &Workload, devices: u32) -> Option<Workload> {
        let wanted: Vec<u32> = self.degrees().into_iter().filter(|&t| t <= devices).collect();
        let lacks = |node: &NodeProfile| wanted.iter().any(|&t| node.modes(t).is_none());
        if !self.nodes.iter().any(lacks) {
            return None;
        }
        let mut filled = workload.clone();
        let Profile::Piper(profile) = &mut filled.profile else { return None };
        for node in &mut profile.nodes {
            for &t in &wanted {
                if node.modes(t).is_none() {
                    let missing = scaled(node, t);
                    node.degrees.push(missing);
                }
            }
            node.degrees.sort_by_key(|degree| degree.degree);
        }
        Some(filled)
    }

    fn work_and_memory(&self, node: NodeIndex) -> (f64, f64) {
        first_mode(self, node).map_or((0.0, 0.0), |mode| (mode.time_s, mode.memory_a + mode.memory_b))
    }
}

/// Modes of a node at a missing degree.
fn scaled(node: &NodeProfile, t: u32) -> DegreeProfile {
    // Degrees added before are in proportion themselves, so taking one of them is correct.
    let below = node.degrees.iter().filter(|degree| degree.degree < t).max_by_key(|degree| degree.degree);
    let nearest = below.or_else(|| node.degrees.iter().min_by_key(|degree| degree.degree));
    let (from, modes) = nearest.map_or((t, [].as_slice()), |degree| (degree.degree, degree.modes.as_slice()));
    let share = f64::from(from) / f64::from(t);
    let modes = modes.iter().map(|mode| Mode {
        time_s: mode.time_s * share,
        forward_s: mode.forward_s.map(|seconds| seconds * share),
        parameters: mode.parameters * share,
        memory_a: mode.memory_a * share,
        memory_b: mode.memory_b * share,
        ..mode.clone()
    });
    DegreeProfile { degree: t, modes: modes.collect() }
}
