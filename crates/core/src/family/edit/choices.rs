//! Edits of a node's choice within its stage: its mode, or an operator's split.

use super::{ALL_STAGES, EditContext, EditResult, Result, WHOLE, refuse};
use crate::workload::{Choice, NodeIndex, Operator, Profile};

impl EditContext<'_> {
    pub(super) fn choose(&self, nodes: &[NodeIndex], forwards: bool) -> Result<EditResult> {
        let home = self.home(nodes)?;
        let stage = &self.plan.stages[home];
        let mut plan = self.plan.clone();
        let new = &mut plan.stages[home].choices;
        let at = |node: NodeIndex| stage.nodes.binary_search(&node).unwrap_or_default();
        let first = nodes[0];
        let what = match &self.workload.profile {
            Profile::Piper(profile) => {
                let modes = profile.nodes[first].modes(stage.tensor_parallel).unwrap_or_default();
                let now = modes.iter().position(|mode| stage.choices[at(first)].is_mode(&mode.id));
                if modes.len() < 2 {
                    let (name, t) = (self.label(first), stage.tensor_parallel);
                    return refuse(format!("{name} has only one mode at tensor degree {t}"));
                }
                let step = if forwards { 1 } else { modes.len() - 1 };
                let id = &modes[now.map_or(0, |now| (now + step) % modes.len())].id;
                for &node in nodes {
                    let offered = profile.nodes[node].modes(stage.tensor_parallel).unwrap_or_default();
                    if offered.iter().any(|mode| mode.id == *id) {
                        new[at(node)] = Choice::Mode(id.clone());
                    }
                }
                format!("{}: {id}", self.labels(nodes))
            }
            Profile::Layers(_) => {
                let choice = Choice::of_layer(!stage.choices[0].recomputes());
                new.fill(choice.clone());
                format!("all of stage {}: {choice}", home + 1)
            }
            Profile::Operators(profile) => {
                let mut text = String::new();
                for &node in nodes {
                    let operator = &profile.operators[node];
                    let read = stage.choices[at(node)].split().and_then(|split| operator.degrees(split).ok());
                    let Some(now) = read else {
                        return refuse(format!("the split of {} cannot be read", self.label(node)));
                    };
                    let splits = SplitIterator::new(operator, stage.device_count(), profile.cutoff);
                    let next = operator.split(&splits.beside(&now, forwards));
                    text = next.to_string();
                    new[at(node)] = Choice::Split(next);
                }
                match nodes {
                    [node] => format!("{}: {text}", self.label(*node)),
                    _ => format!("{} operators: each its next split", nodes.len()),
                }
            }
            Profile::Training(_) => return refuse(WHOLE),
            Profile::Mixed(_) => return refuse(ALL_STAGES),
            Profile::Placement(_) => {
                return refuse("a node of a device placement has one mode: move it to another device");
            }
        };
        if plan == *self.plan {
            return refuse(format!("{} has only one mode", self.labels(nodes)));
        }
        self.done(plan, what)
    }
}

/// Possible splits of an operator over devices, in lexicographic order.
struct SplitIterator<'a> {
    operator: &'a Operator,
    /// Ways by dimension, ascending; 1 is always included.
    allowed: Vec<Vec<u32>>,
    devices: u32,
}

impl<'a> SplitIterator<'a> {
    /// Lists the allowed ways. A piece of a dimension keeps at least `cutoff` elements.
    fn new(operator: &'a Operator, devices: u32, cutoff: u32) -> Self {
        let divisors = |extent: u64| -> Vec<u32> {
            let most = u64::from(devices).min(extent / u64::from(cutoff.max(1))).max(1);
            (1..=most).filter(|&ways| extent.is_multiple_of(ways)).map(|ways| ways as u32).collect()
        };
        let allowed = operator.dims.iter().map(|dim| if dim.splittable { divisors(dim.extent) } else { vec![1] });
        SplitIterator { operator, allowed: allowed.collect(), devices }
    }

    /// Possible ways of the next dimension after `before`, ascending; never empty.
    fn ways(&self, before: &[u32]) -> impl DoubleEndedIterator<Item = u32> + '_ {
        let room = before.iter().fold(self.devices, |room, &ways| room / ways.max(1));
        // After a dimension that is split only partly, contiguous pieces allow no further split.
        let closed = self.operator.contiguous()
            && before.iter().zip(&self.operator.dims).any(|(&ways, dim)| u64::from(ways) != dim.extent);
        let fits = move |&ways: &u32| ways == 1 || (ways <= room && !closed);
        self.allowed[before.len()].iter().copied().filter(fits)
    }

    /// Next or previous split, cyclically.
    fn beside(&self, now: &[u32], forwards: bool) -> Vec<u32> {
        for dim in (0..now.len()).rev() {
            let before = &now[..dim];
            let other = match forwards {
                true => self.ways(before).find(|&ways| ways > now[dim]),
                false => self.ways(before).rev().find(|&ways| ways < now[dim]),
            };
            if let Some(other) = other {
                return self.filled([before, &[other]].concat(), !forwards);
            }
        }
        self.filled(vec![], !forwards)
    }

    /// Completes a split with the fewest or the most ways of each remaining dimension.
    fn filled(&self, mut split: Vec<u32>, most: bool) -> Vec<u32> {
        while split.len() < self.allowed.len() {
            let ways = if most { self.ways(&split).next_back() } else { self.ways(&split).next() };
            split.push(ways.unwrap_or(1));
        }
        split
    }
}
