//! Two plans side by side: stages aligned by shared nodes, and the differences.
//!
//! Stages are paired greedily, pairs with the most common nodes first. Each has at most one partner, in any order,
//! since stages that are devices have no order. Rows follow the first plan; a stage of the second plan without a
//! partner comes after the stage before it. `O(nodes + pairs log pairs)`, where pairs share a node.

use plantui_core::workload::{Choice, NodeIndex};
use std::collections::BTreeMap;

use plantui_core::plan::{Plan, Score, Stage};

/// Row: a stage of the first plan, its partner in the second, or only one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StagePair {
    /// Paired stages.
    Both(usize, usize),
    /// Stage of the first plan, and the stage of the second that holds most of its nodes, if any.
    First(usize, Option<usize>),
    /// Stage of the second plan, and the stage of the first that holds most of its nodes, if any.
    Second(usize, Option<usize>),
}

/// Differences of a stage of the second plan from its partner in the first.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Difference {
    /// Nodes only in the second stage.
    pub gained: usize,
    /// Nodes only in the first stage.
    pub lost: usize,
    /// Shift of the stage's end in the second plan, in nodes counted through the stages from the first.
    pub border: i64,
    /// True if the degrees differ.
    pub degrees: bool,
    /// Additional devices of the second stage.
    pub devices: i64,
    /// Common nodes with different modes.
    pub modes: usize,
    /// Time per sample of the second minus that of the first, seconds.
    pub load_s: f64,
    /// Memory per device of the second minus that of the first, bytes.
    pub memory_bytes: f64,
}

impl Difference {
    /// True if nothing differs.
    pub fn is_none(&self) -> bool {
        *self == Difference::default()
    }
}

/// Rows for two plans of one workload.
pub fn align(first: &Plan, second: &Plan) -> Vec<StagePair> {
    let home = stages_of(second);
    let mut shared: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (i, stage) in first.stages.iter().enumerate() {
        for &j in stage.nodes.iter().filter_map(|node| home.get(node)) {
            *shared.entry((i, j)).or_default() += 1;
        }
    }
    let mut pairs: Vec<((usize, usize), usize)> = shared.into_iter().collect();
    // Most nodes first; on ties, similar positions first.
    pairs.sort_by_key(|&((i, j), count)| (std::cmp::Reverse(count), i.abs_diff(j), i));
    let mut partner: Vec<Option<usize>> = vec![None; first.stages.len()];
    let mut taken: Vec<Option<usize>> = vec![None; second.stages.len()];
    // A stage's first pair is with the stage that holds most of its nodes.
    let (mut most_of_first, mut most_of_second) = (partner.clone(), taken.clone());
    for ((i, j), _) in pairs {
        most_of_first[i].get_or_insert(j);
        most_of_second[j].get_or_insert(i);
        if partner[i].is_none() && taken[j].is_none() {
            (partner[i], taken[j]) = (Some(j), Some(i));
        }
    }
    let mut after: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    let mut anchor = None;
    for (j, partner) in taken.iter().enumerate() {
        match partner {
            Some(i) => anchor = Some(*i),
            None => after.entry(anchor).or_default().push(j),
        }
    }
    let alone = |anchor: Option<usize>| {
        let stages = after.get(&anchor).into_iter().flatten();
        stages.map(|&j| StagePair::Second(j, most_of_second[j])).collect::<Vec<_>>()
    };
    let mut rows = alone(None);
    for (i, partner) in partner.iter().enumerate() {
        rows.push(partner.map_or(StagePair::First(i, most_of_first[i]), |j| StagePair::Both(i, j)));
        rows.extend(alone(Some(i)));
    }
    rows
}

/// Differences between two paired stages.
pub fn difference(first: (&Plan, &Score, usize), second: (&Plan, &Score, usize)) -> Difference {
    let (a, b) = (&first.0.stages[first.2], &second.0.stages[second.2]);
    let figures = |score: &Score, stage: usize| {
        score.stages.get(stage).map_or((0.0, 0.0), |stage| (stage.load_s, stage.memory_bytes))
    };
    let (before, after) = (figures(first.1, first.2), figures(second.1, second.2));
    let modes: BTreeMap<NodeIndex, &Choice> = a.nodes.iter().copied().zip(&a.choices).collect();
    let common: Vec<(&Choice, &Choice)> =
        b.nodes.iter().zip(&b.choices).filter_map(|(node, choice)| Some((*modes.get(node)?, choice))).collect();
    Difference {
        gained: b.nodes.len() - common.len(),
        lost: a.nodes.len() - common.len(),
        border: nodes_until(second.0, second.2) - nodes_until(first.0, first.2),
        degrees: (a.data_parallel, a.tensor_parallel) != (b.data_parallel, b.tensor_parallel),
        devices: i64::from(b.device_count()) - i64::from(a.device_count()),
        modes: common.iter().filter(|(one, other)| one != other).count(),
        load_s: rounded_difference(after.0, before.0),
        memory_bytes: rounded_difference(after.1, before.1),
    }
}

/// Difference, or 0 if it is within the rounding error of two sums.
fn rounded_difference(after: f64, before: f64) -> f64 {
    let difference = after - before;
    if difference.abs() <= 1e-9 * after.abs().max(before.abs()) { 0.0 } else { difference }
}

/// Number of nodes up to the end of a stage.
fn nodes_until(plan: &Plan, stage: usize) -> i64 {
    plan.stages[..=stage].iter().map(|stage: &Stage| stage.nodes.len() as i64).sum()
}

fn stages_of(plan: &Plan) -> BTreeMap<NodeIndex, usize> {
    let nodes = plan.stages.iter().enumerate().flat_map(|(j, stage)| stage.nodes.iter().map(move |&node| (node, j)));
    nodes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::plan::StageScore;

    fn plan(stages: &[&[usize]]) -> Plan {
        let stage = |nodes: &&[usize]| Stage {
            nodes: NodeIndex::list(nodes.iter().copied()),
            choices: vec![Choice::Mode("vanilla".into()); nodes.len()],
            data_parallel: 1,
            tensor_parallel: 1,
            devices: vec![],
        };
        Plan { stages: stages.iter().map(stage).collect(), ..Plan::default() }
    }

    #[test]
    fn a_plan_is_aligned_with_itself() {
        let whole = plan(&[&[0, 1], &[2], &[3, 4, 5]]);
        assert_eq!(align(&whole, &whole), [StagePair::Both(0, 0), StagePair::Both(1, 1), StagePair::Both(2, 2)]);
        let score = Score { stages: vec![StageScore::default(); 3], ..Score::default() };
        assert!((0..3).all(|i| difference((&whole, &score, i), (&whole, &score, i)).is_none()));
    }

    #[test]
    fn a_split_stage_keeps_its_larger_part_and_says_where_the_rest_is() {
        let (one, two) = (plan(&[&[0, 1, 2], &[3]]), plan(&[&[0], &[1, 2], &[3]]));
        assert_eq!(align(&one, &two), [StagePair::Second(0, Some(0)), StagePair::Both(0, 1), StagePair::Both(1, 2)]);
        assert_eq!(align(&two, &one), [StagePair::First(0, Some(0)), StagePair::Both(1, 0), StagePair::Both(2, 1)]);
    }

    #[test]
    fn every_stage_of_both_plans_has_one_row() {
        let plans = [
            plan(&[&[0, 1, 2, 3, 4, 5]]),
            plan(&[&[0], &[1], &[2], &[3], &[4], &[5]]),
            plan(&[&[5, 0], &[1, 4], &[2, 3]]),
            plan(&[&[3, 4, 5], &[0, 1, 2]]),
        ];
        for first in &plans {
            for second in &plans {
                let rows = align(first, second);
                let mut seen = (vec![], vec![]);
                for row in rows {
                    match row {
                        StagePair::Both(i, j) => {
                            seen.0.push(i);
                            seen.1.push(j);
                        }
                        StagePair::First(i, _) => seen.0.push(i),
                        StagePair::Second(j, _) => seen.1.push(j),
                    }
                }
                seen.1.sort_unstable();
                assert_eq!(seen.0, (0..first.stages.len()).collect::<Vec<_>>());
                assert_eq!(seen.1, (0..second.stages.len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_moved_boundary_is_told_in_nodes() {
        let (one, mut two) = (plan(&[&[0, 1, 2], &[3, 4]]), plan(&[&[0], &[1, 2, 3, 4]]));
        two.stages[0].choices[0] = Choice::Mode("recompute".into());
        two.stages[1].data_parallel = 3;
        let score = |loads: [f64; 2]| Score {
            stages: loads.map(|load_s| StageScore { load_s, ..StageScore::default() }).to_vec(),
            ..Score::default()
        };
        let (before, after) = (score([1.0, 2.0]), score([1.0 + 1e-15, 3.0]));
        let first = difference((&one, &before, 0), (&two, &after, 0));
        assert_eq!(first, Difference { lost: 2, border: -2, modes: 1, ..Difference::default() });
        let second = difference((&one, &before, 1), (&two, &after, 1));
        let told = Difference { gained: 2, degrees: true, devices: 2, load_s: 1.0, ..Difference::default() };
        assert_eq!(second, told);
    }
}
