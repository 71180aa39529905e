//! A workload whose nodes offer every tensor degree that any of them offers.
//!
//! A degree that a node lacks is made from the nearest smaller one it has (else the nearest larger), split perfectly: time,
//! parameters and memory in proportion, tensors across stages as they are. So the best plan of this workload is a bound on
//! what offering the degrees could bring, never a promise.

use crate::workload::{DegreeProfile, Mode, Profile, Workload, piper::NodeProfile};

/// The workload with what is missing filled in, for degrees up to `devices`; `None` if nothing is missing.
pub(super) fn filled(workload: &Workload, devices: u32) -> Option<Workload> {
    let wanted: Vec<u32> = workload.piper()?.degrees().into_iter().filter(|&t| t <= devices).collect();
    let mut filled = workload.clone();
    let Profile::Piper(profile) = &mut filled.profile else { return None };
    let mut any = false;
    for node in &mut profile.nodes {
        for &t in &wanted {
            if node.modes(t).is_none() {
                let missing = scaled(node, t);
                node.degrees.push(missing);
                any = true;
            }
        }
        node.degrees.sort_by_key(|degree| degree.degree);
    }
    any.then_some(filled)
}

/// What a node would offer at a degree that it does not have.
fn scaled(node: &NodeProfile, t: u32) -> DegreeProfile {
    // Degrees added before are in proportion themselves, so it does not matter if one of them is taken.
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
