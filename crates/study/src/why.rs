//! Reasons why one plan is faster than another, in one sentence computed from their figures.
//!
//! A reason is given only if the faster plan is better in that figure. The reasons that can explain most come first.
//! `O(nodes)`.

use crate::compare::ComparedPlan;
use plantui_core::units::{self, percent_whole};

/// Smaller relative differences of times count as none.
const ALIKE: f64 = 0.005;
/// Smaller differences of shares count as none.
const POINT: f64 = 0.01;

/// Plan with its name.
#[derive(Clone, Copy)]
pub struct NamedPlan<'a> {
    /// Name in the table.
    pub name: &'a str,
    /// Figures of the plan.
    pub entry: &'a ComparedPlan,
}

/// Reasons why the faster of two plans is faster; `None` if one was not simulated.
pub fn why(first: NamedPlan<'_>, second: NamedPlan<'_>) -> Option<String> {
    let time = |plan: NamedPlan<'_>| plan.entry.simulated.as_ref().map(|simulated| simulated.iteration_s);
    let (a, b) = (time(first)?, time(second)?);
    if first.entry.runs_alone() != second.entry.runs_alone() {
        let (alone, batch) = if first.entry.runs_alone() { (first, second) } else { (second, first) };
        let (alone, batch) = (alone.name, batch.name);
        return Some(format!("{alone} is timed for a single sample, {batch} for a batch: the two cannot be compared."));
    }
    if (a / b - 1.0).abs() < ALIKE {
        return Some(format!("{} and {} take the same time within 0.5%.", first.name, second.name));
    }
    let (fast, slow, times) = if a < b { (first, second, b / a) } else { (second, first, a / b) };
    let reasons: Vec<String> = [bubble, work, slowest, transfers, recomputation, memory]
        .iter()
        .filter_map(|reason| reason(fast, slow))
        .collect();
    let told = if reasons.is_empty() { "no figure here explains it".into() } else { reasons.join(", ") };
    let despite = despite(fast, slow).map_or_else(String::new, |despite| format!(", though {despite}"));
    Some(format!("{} is {times:.2}x faster than {}: {told}{despite}.", fast.name, slow.name))
}

/// Disadvantage of the faster plan: it idles more.
fn despite(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let (own, other) = (idle(fast)?, idle(slow)?);
    if own <= other + POINT {
        return None;
    }
    let more = match (stages(fast)?, stages(slow)?) {
        (own, other) if own > other => format!("its {own} stages, against {other}, idle more, "),
        _ => String::new(),
    };
    Some(format!("{more}idle {} against {}", units::percent(own), units::percent(other)))
}

/// Simulated idle share of a plan's device time.
fn idle(plan: NamedPlan<'_>) -> Option<f64> {
    plan.entry.simulated.as_ref().map(|simulated| simulated.idle)
}

fn stages(plan: NamedPlan<'_>) -> Option<usize> {
    plan.entry.plan.as_ref().map(|plan| plan.stages.len())
}

/// Reason: fewer stages, or a schedule that idles less.
fn bubble(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let (own, other) = (idle(fast)?, idle(slow)?);
    if own > other - POINT {
        return None;
    }
    let fewer = stages(slow)?.checked_sub(stages(fast)?).filter(|fewer| *fewer > 0);
    let against = format!("idle {} against {}", units::percent(own), units::percent(other));
    Some(match fewer {
        Some(1) => format!("one stage fewer shortens warm-up and drain ({against})"),
        Some(fewer) => format!("{fewer} fewer stages shorten warm-up and drain ({against})"),
        None => against,
    })
}

/// Reason: more devices in use.
fn work(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let used = |plan: NamedPlan<'_>| plan.entry.plan.as_ref().map(plantui_core::plan::Plan::devices_used);
    let more = used(fast)?.checked_sub(used(slow)?).filter(|more| *more > 0)?;
    Some(format!("{} more work", units::counted(more as usize, "device")))
}

/// Reason: a faster slowest stage.
fn slowest(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let load = |plan: NamedPlan<'_>| plan.entry.score.as_ref().map(|score| score.slowest_s).filter(|load| *load > 0.0);
    let (own, other) = (load(fast)?, load(slow)?);
    (own < other * (1.0 - ALIKE))
        .then(|| format!("its slowest stage takes {} against {}", units::seconds(own), units::seconds(other)))
}

/// Reason: a smaller share of communication.
fn transfers(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let share = |plan: NamedPlan<'_>| {
        let stages = &plan.entry.score.as_ref()?.stages;
        let whole: f64 = stages.iter().map(|stage| stage.load_s).sum();
        let moved: f64 = stages.iter().map(|stage| stage.communication_s + stage.sync_s).sum();
        (whole > 0.0).then(|| moved / whole)
    };
    let (own, other) = (share(fast)?, share(slow)?);
    (own < other - POINT)
        .then(|| format!("less communication ({} against {})", percent_whole(own), percent_whole(other)))
}

/// Reason: less recomputation.
fn recomputation(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let share = |plan: NamedPlan<'_>| {
        let choices = plan.entry.plan.as_ref()?.stages.iter().flat_map(|stage| &stage.choices);
        let (mut all, mut again) = (0usize, 0usize);
        for choice in choices {
            all += 1;
            again += usize::from(choice.recomputes());
        }
        Some((again, all))
    };
    let ((own, all), (other, _)) = (share(fast)?, share(slow)?);
    (own < other).then(|| format!("it recomputes {own} of {all} against {other}"))
}

/// Reason: memory that the other plan does not use.
fn memory(fast: NamedPlan<'_>, slow: NamedPlan<'_>) -> Option<String> {
    let peak = |plan: NamedPlan<'_>| plan.entry.simulated.as_ref().map(|simulated| simulated.peak_memory_bytes);
    let (own, other) = (peak(fast)?, peak(slow)?);
    let told = |bytes: f64| units::bytes_beside(bytes, fast.entry.memory_limit_bytes);
    (own > other * 1.1).then(|| format!("it uses {} where {} uses {}", told(own), slow.name, told(other)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::compare;
    use plantui_core::{cluster::GivenLimits, family, search::Search, simulate::Schedule, workload};
    use plantui_planners as planner;

    #[test]
    fn the_faster_plan_is_named_with_reasons_that_its_figures_bear_out() {
        let workload = Arc::new(workload::builtin());
        let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
        let plan = |id: &str| {
            let planner = planner::find(id).unwrap();
            let setup = Schedule::OneForwardOneBackward;
            let options = planner::Options::defaults(planner.options());
            let problem = planner::Problem { workload: workload.clone(), limits: limits.clone(), options };
            compare::planned(planner, problem, setup, &Search::default(), Search::clone)
        };
        let (piper, equal) = (plan("piper"), plan("equal-partition"));
        let named = |name, entry| NamedPlan { name, entry };
        let told = why(named("E", &equal), named("P", &piper)).unwrap();
        let times = equal.simulated.as_ref().unwrap().iteration_s / piper.simulated.as_ref().unwrap().iteration_s;
        assert!(told.starts_with(&format!("P is {times:.2}x faster than E: ")) && told.ends_with('.'), "{told}");
        let slowest = |entry: &ComparedPlan| entry.score.as_ref().unwrap().slowest_s;
        assert_eq!(told.contains("slowest stage"), slowest(&piper) < slowest(&equal) * (1.0 - ALIKE), "{told}");
        let bubble = |entry: &ComparedPlan| entry.simulated.as_ref().unwrap().idle;
        assert_eq!(told.contains(", though "), bubble(&piper) > bubble(&equal) + POINT, "{told}");
        let same = why(named("A", &piper), named("B", &piper)).unwrap();
        assert_eq!(same, "A and B take the same time within 0.5%.");
        assert_eq!(why(named("A", &piper), named("B", &ComparedPlan { simulated: None, ..equal.clone() })), None);
    }
}
