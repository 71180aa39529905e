//! From the pairs of all sets back to the stages of a plan.
//!
//! Which stage made a pair is not kept but found again, for the few pairs of one plan: `O(sets · degrees)` time for a stage.

use super::{
    modes::{Oracle, StageKey},
    probe::{FoundStage, Probe},
    worker::Outer,
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
        let (model, target) = (self.model, self.question.target);
        let outer = Outer::new(self, outer, devices, oracle.memory_bytes());
        let mut needed = vec![1.0; model.degrees.len()];
        let mut edges_s = vec![0.0; model.degrees.len()];
        let seconds = &model.device_seconds;
        for inner in 0..outer.set {
            // Cheap questions first: almost every inner set fails one of them.
            let pairs = self.pairs(inner);
            let Some(&(_, fewest)) = pairs.last() else { continue };
            let stage = self.at_least((seconds[outer.set] - seconds[inner]) / target - self.room());
            if stage.is_none_or(|stage| stage.saturating_add(fewest) > devices) {
                continue;
            }
            let Some(&(behind, _)) = pairs.iter().find(|&&(s, j)| s < replicas && j < devices) else { continue };
            outer.replicas(self, (inner, behind), &mut needed, &mut edges_s);
            for allowed in self.question.allowed {
                let t = model.degrees[allowed.degree].t;
                let needed = needed[allowed.degree];
                let most = (replicas - behind).min((devices - fewest) / t);
                let from = allowed.replicas.partition_point(|&d| f64::from(d) < needed);
                let possible = &allowed.replicas[from..allowed.replicas.partition_point(|&d| d <= most).max(from)];
                if possible.is_empty() || !model.sets.is_subset(inner, outer.set) {
                    continue;
                }
                let Some(stage) = model.stage(allowed.degree, outer.set, inner, &outer.crossings) else { continue };
                let least_d = model.least_replicas_of(&stage, target);
                let key = StageKey { degree: allowed.degree as u32, outer: outer.set as u32, inner: inner as u32 };
                for &d in &possible[possible.partition_point(|&d| d < least_d)..] {
                    let most_j = devices - t * d;
                    if !oracle.fast_enough(key, &stage, d, target) {
                        continue;
                    }
                    for &(s, j) in pairs {
                        if s + d <= replicas && j <= most_j && oracle.fits(key, &stage, d, (s + d).div_ceil(d), target)
                        {
                            let found =
                                FoundStage { outer: outer.set as u32, inner: inner as u32, degree: allowed.degree, d };
                            return Some((found, s, j));
                        }
                    }
                }
            }
        }
        None
    }
}
