//! Cache of states in their profile: planners, the check, hand edits and lint need them repeatedly.
//!
//! States depend on the workload alone. A hash of all inputs is stored with them, so that a changed profile computes
//! them again. A look-up takes `O(nodes + edges)` time.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, TryLockError},
    thread,
    time::Duration,
};

use super::{States, StatesError};
use crate::workload::{
    layer_profile::{LayerNode, LayerProfile},
    profiled::Workload,
};

type StatesResult = Result<Arc<States>, StatesError>;

/// Cached states of a profile. New profiles and copies start empty.
#[derive(Default)]
pub(in crate::workload) struct StatesCache {
    antichains: Mutex<Option<(u64, StatesResult)>>,
    order: Mutex<Option<(u64, StatesResult)>>,
}

impl Clone for StatesCache {
    fn clone(&self) -> Self {
        StatesCache::default()
    }
}

/// The cache does not affect equality of profiles.
impl PartialEq for StatesCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Interval at which a thread that waits for the lock checks whether it is stopped.
const LOOKS: Duration = Duration::from_millis(1);

/// Locks the mutex. `None` if stopped while waiting.
fn locked<'m, T>(of: &'m Mutex<T>, stopped: &dyn Fn() -> bool) -> Option<MutexGuard<'m, T>> {
    loop {
        match of.try_lock() {
            Ok(own) => return Some(own),
            Err(TryLockError::Poisoned(own)) => return Some(own.into_inner()),
            Err(TryLockError::WouldBlock) if stopped() => return None,
            Err(TryLockError::WouldBlock) => thread::sleep(LOOKS),
        }
    }
}

/// Hash of everything that states depend on.
fn depends_on(workload: &Workload, profile: &LayerProfile) -> u64 {
    let mut hash = DefaultHasher::new();
    workload.dag.edges().hash(&mut hash);
    for node in &workload.nodes {
        node.name.hash(&mut hash);
    }
    for LayerNode { id: _, forward_ms, backward_ms, activation_bytes, parameter_bytes, stage: _ } in &profile.nodes {
        [forward_ms, backward_ms, parameter_bytes].map(|figure| figure.to_bits()).hash(&mut hash);
        activation_bytes.len().hash(&mut hash);
        activation_bytes.iter().for_each(|bytes| bytes.to_bits().hash(&mut hash));
    }
    hash.finish()
}

impl States {
    /// States of a workload with a layer-wise profile, along one order of its layers (`linear`) or all antichains. The
    /// result is cached in `profile`. `stopped` is polled and ends the search. A second caller for the same states
    /// waits for the first.
    ///
    /// # Errors
    /// [`StatesError`] if there are none or too many, or the search was stopped.
    pub fn cached(
        workload: &Workload,
        profile: &LayerProfile,
        linear: bool,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Arc<States>, StatesError> {
        let depends_on = depends_on(workload, profile);
        let kept = if linear { &profile.states_cache.order } else { &profile.states_cache.antichains };
        let mut kept = locked(kept, stopped).ok_or(StatesError::Stopped)?;
        if let Some((_, answer)) = kept.as_ref().filter(|(known, _)| *known == depends_on) {
            return answer.clone();
        }
        let states =
            if linear { Self::along_order(workload, profile) } else { Self::of_unless(workload, profile, stopped) };
        let answer = states.map(Arc::new);
        if answer.as_ref().err() != Some(&StatesError::Stopped) {
            *kept = Some((depends_on, answer.clone()));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Profile, load_bytes};

    fn chain() -> Workload {
        let line = |i: u32| {
            format!(
                "node{i} -- Linear{i}(in=1) -- forward_compute_time={i}, backward_compute_time=1.0, activation_size=8.0, parameter_size=4.0\n"
            )
        };
        let text = (1..=4).map(line).chain((1..4).map(|i| format!("\tnode{i} -- node{}\n", i + 1))).collect::<String>();
        load_bytes(text.as_bytes(), "chain.txt", "chain").unwrap()
    }

    #[test]
    fn states_are_found_once_until_the_profile_changes() {
        let mut workload = chain();
        let ask = |workload: &Workload, linear| {
            States::cached(workload, workload.layers().unwrap(), linear, &|| false).unwrap()
        };
        for linear in [false, true] {
            let first = ask(&workload, linear);
            assert!(Arc::ptr_eq(&first, &ask(&workload, linear)));
            let copy = workload.clone();
            assert_eq!(copy, workload);
            assert!(!Arc::ptr_eq(&first, &ask(&copy, linear)));
            let Profile::Layers(profile) = &mut workload.profile else { panic!() };
            profile.nodes[2].forward_ms += 1000.0;
            let then = ask(&workload, linear);
            assert!(then.compute_s[3] > first.compute_s[3] + 0.9);
            assert_eq!(then.compute_s, ask(&workload.clone(), linear).compute_s);
        }
    }

    #[test]
    fn what_was_stopped_is_not_kept() {
        let workload = chain();
        let ask = |stop: bool| States::cached(&workload, workload.layers().unwrap(), false, &|| stop);
        assert_eq!(ask(true).err(), Some(StatesError::Stopped));
        assert_eq!(ask(false).unwrap().len(), 4);
        // Known by now, whoever has no time.
        assert_eq!(ask(true).unwrap().len(), 4);
        // While another looks for them nobody waits who has none.
        let _other = workload.layers().unwrap().states_cache.antichains.lock().unwrap();
        assert_eq!(ask(true).err(), Some(StatesError::Stopped));
    }
}
