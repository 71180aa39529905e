//! From the pairs of all sets back to the stages of a plan.
//!
//! Which stage made a pair is not kept but found again, for the few pairs of one plan: `O(sets · degrees)` time for a stage.

use super::{
    modes::{Oracle, StageKey},
    probe::{Allowed, FoundStage, Probe},
};

impl<'m, 'a> Probe<'_, 'm, 'a> {
    /// Walks back from the full set: the stages that reach (replicas, devices), first stage first.
    pub(super) fn stages(
        &mut self,
        oracle: &mut Oracle<'m, 'a>,
        mut replicas: u32,
        mut devices: u32,
    ) -> Option<Vec<FoundStage>> {
        let mut stages = vec![];
        let mut outer = self.model.full();
        while outer != 0 {
            if let Some(count) = self.question.stages {
                self.behind = count - stages.len() - 1;
            }
            let (stage, s, j) = self.step_back(oracle, outer, replicas, devices)?;
            stages.push(stage);
            (outer, replicas, devices) = (stage.inner as usize, s, j);
        }
        Some(stages)
    }

    /// The first stage of `outer` that leaves a pair of the inner frontier within (replicas, devices).
    fn step_back(
        &self,
        oracle: &mut Oracle<'m, 'a>,
        outer: usize,
        replicas: u32,
        devices: u32,
    ) -> Option<(FoundStage, u32, u32)> {
        let crossings = self.model.crossings(outer);
        let target = self.question.target;
        for inner in 0..outer {
            // Cheap questions first: almost every inner set fails one of them.
            let within = |&(s, j): &(u32, u32)| s < replicas && j < devices;
            let may_fit = |allowed: &Allowed| {
                self.model.may_fit(allowed.degree, outer, inner, replicas, target, oracle.memory_bytes())
            };
            if !self.pairs(inner).iter().any(within)
                || !self.question.allowed.iter().any(may_fit)
                || !self.model.sets.is_subset(inner, outer)
            {
                continue;
            }
            for allowed in self.question.allowed {
                let Some(stage) = self.model.stage(allowed.degree, outer, inner, &crossings) else { continue };
                let key = StageKey { degree: allowed.degree as u32, outer: outer as u32, inner: inner as u32 };
                let t = self.model.degrees[allowed.degree].t;
                for &d in &allowed.replicas {
                    let (Some(most_s), Some(most_j)) =
                        (replicas.checked_sub(d), devices.checked_sub(t.saturating_mul(d)))
                    else {
                        break;
                    };
                    if !oracle.fast_enough(key, &stage, d, target) {
                        continue;
                    }
                    for &(s, j) in self.pairs(inner) {
                        if s <= most_s && j <= most_j && oracle.fits(key, &stage, d, (s + d).div_ceil(d), target) {
                            let found =
                                FoundStage { outer: outer as u32, inner: inner as u32, degree: allowed.degree, d };
                            return Some((found, s, j));
                        }
                    }
                }
            }
        }
        None
    }
}
