//! Graph of antichains as in PipeDream's importer, and its numbering of them.

use std::{cell::OnceCell, collections::VecDeque};

use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

use super::StatesError;
use crate::graph::Dag;

/// Maximum number of nodes: three tables hold one bit for every pair of them (32 MB each).
const MOST_NODES: usize = 1 << 14;

/// Maximum number of nodes in all antichains plus steps between antichains: about 200 MB.
const MOST_STORED: usize = 1 << 23;

/// All antichains of a graph.
pub(super) struct AllAntichains {
    /// Antichains in order of discovery, each with the ancestors whose outputs are still needed.
    pub(super) antichains: Vec<Vec<usize>>,
    /// Antichains in the order of states.
    pub(super) order: Vec<usize>,
    /// Positions of all antichains that lead to an antichain, by its position in that order.
    pub(super) before: Vec<FixedBitSet>,
    /// Ancestors by node, without the node itself.
    pub(super) ancestors: Vec<FixedBitSet>,
}

/// Vertices that can be reached from each vertex, without the vertex itself.
fn reachable(
    n: usize,
    order: impl Iterator<Item = usize>,
    neighbours: impl Fn(usize) -> Vec<usize>,
) -> Vec<FixedBitSet> {
    let mut sets = vec![FixedBitSet::with_capacity(n); n];
    for v in order {
        let mut own = std::mem::take(&mut sets[v]);
        for w in neighbours(v) {
            own.insert(w);
            own.union_with(&sets[w]);
        }
        sets[v] = own;
    }
    sets
}

/// Finds all antichains from the first source on. `stopped` is polled and ends the search.
///
/// # Errors
/// [`StatesError`] if there are more than `most`, or they need too much memory, or the search was stopped.
pub(super) fn find<'a>(
    dag: &Dag,
    label: &dyn Fn(usize) -> &'a str,
    most: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<AllAntichains, StatesError> {
    let n = dag.len();
    if n > MOST_NODES {
        return Err(StatesError::TooLarge(MOST_NODES));
    }
    let topological = || dag.topological_order().iter().map(|&v| v as usize);
    let ancestors = reachable(n, topological(), |v| dag.predecessors(v).collect());
    let descendants = reachable(n, topological().rev(), |v| dag.successors(v).collect());
    // By node `v`: ancestors whose output is needed by a node other than `v` and its ancestors. Computed on demand: if
    // branches allow too many states, few nodes are reached.
    let beside: Vec<OnceCell<FixedBitSet>> = vec![OnceCell::new(); n];
    let beside = |v: usize| {
        beside[v].get_or_init(|| {
            let used = |&u: &usize| dag.successors(u).any(|w| w != v && !ancestors[v].contains(w));
            let mut set = FixedBitSet::with_capacity(n);
            ancestors[v].ones().filter(used).for_each(|u| set.insert(u));
            set
        })
    };
    let augmented = |antichain: &[usize]| -> Vec<usize> {
        let mut extra = FixedBitSet::with_capacity(n);
        antichain.iter().for_each(|&v| extra.union_with(beside(v)));
        extra.ones().chain(antichain.iter().copied()).collect()
    };
    let start = (0..n).find(|&v| dag.in_degree(v) == 0).ok_or(StatesError::Empty)?;
    let mut number: FxHashMap<Vec<usize>, usize> = FxHashMap::default();
    let mut antichains = vec![augmented(&[start])];
    let mut first = vec![start];
    let mut next: Vec<Vec<usize>> = vec![vec![]];
    number.insert(vec![start], 0);
    let mut queue = VecDeque::from([(0, vec![start])]);
    let mut kept = 0;
    while let Some((from, antichain)) = queue.pop_front() {
        let found = successors(dag, &descendants, &antichain, &antichains[from], stopped)?;
        kept += antichain.len() + antichains[from].len() + found.len();
        if kept > MOST_STORED {
            return Err(StatesError::TooMany(most));
        }
        for successor in found {
            let mut key = successor.clone();
            key.sort_unstable();
            let to = *number.entry(key).or_insert_with(|| {
                antichains.push(augmented(&successor));
                first.push(successor[0]);
                next.push(vec![]);
                queue.push_back((antichains.len() - 1, successor));
                antichains.len() - 1
            });
            if antichains.len() > most {
                return Err(StatesError::TooMany(most));
            }
            next[from].push(to);
        }
    }
    let order = numbered(&next, &|s| label(first[s]));
    let before = preceding(&next, &order);
    Ok(AllAntichains { antichains, order, before, ancestors })
}

/// Antichains one step after `antichain`. `kept` holds its members and the ancestors whose outputs are still needed.
fn successors(
    dag: &Dag,
    descendants: &[FixedBitSet],
    antichain: &[usize],
    kept: &[usize],
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Vec<usize>>, StatesError> {
    let mut members = FixedBitSet::with_capacity(dag.len());
    kept.iter().for_each(|&v| members.insert(v));
    let (mut found, mut list, mut set) = (vec![], kept.to_vec(), members.clone());
    for (at, &a) in kept.iter().enumerate() {
        for b in dag.successors(a) {
            if antichain.contains(&b) || have_some(&descendants[b], &members) {
                continue;
            }
            if stopped() {
                return Err(StatesError::Stopped);
            }
            list[at] = b;
            set.clear();
            list.iter().for_each(|&v| set.insert(v));
            let mut next: Vec<usize> = vec![];
            for &v in &list {
                if !have_some(&descendants[v], &set) && !next.contains(&v) {
                    next.push(v);
                }
            }
            found.push(next);
            list[at] = a;
        }
    }
    Ok(found)
}

/// True if two sets intersect. A loop over words that is inlined.
#[inline]
fn have_some(a: &FixedBitSet, b: &FixedBitSet) -> bool {
    let (a, b) = (a.as_slice(), b.as_slice());
    let mut word = 0;
    while word < a.len().min(b.len()) && a[word] & b[word] == 0 {
        word += 1;
    }
    word < a.len().min(b.len())
}

/// States in reverse postorder of a depth-first search. Children are sorted by label; ties keep their order.
fn numbered<'a>(next: &[Vec<usize>], label: &dyn Fn(usize) -> &'a str) -> Vec<usize> {
    let children = |s: usize| {
        let mut children = next[s].clone();
        children.sort_by_key(|&child| label(child));
        children.into_iter()
    };
    let mut seen = vec![false; next.len()];
    let mut order = Vec::with_capacity(next.len());
    seen[0] = true;
    let mut stack = vec![(0, children(0))];
    while let Some((state, rest)) = stack.last_mut() {
        match rest.next() {
            Some(child) => {
                if !std::mem::replace(&mut seen[child], true) {
                    stack.push((child, children(child)));
                }
            }
            None => {
                order.push(*state);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Positions of all states that lead to a state, by its position.
fn preceding(next: &[Vec<usize>], order: &[usize]) -> Vec<FixedBitSet> {
    let mut position = vec![0; order.len()];
    for (i, &s) in order.iter().enumerate() {
        position[s] = i;
    }
    let mut before = vec![FixedBitSet::with_capacity(order.len()); order.len()];
    // The order is topological: a state's set is complete when the loop reaches it.
    for (i, &s) in order.iter().enumerate() {
        let own = before[i].clone();
        for &child in &next[s] {
            let after = &mut before[position[child]];
            after.union_with(&own);
            after.insert(i);
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diamond_has_a_state_for_every_way_through() {
        // 0 -> 1, 2 -> 3.
        let dag = Dag::new(4, vec![(0, 1), (0, 2), (1, 3), (2, 3)]).unwrap();
        let found = find(&dag, &|v| ["a", "b", "c", "d"][v], 100, &|| false).unwrap();
        let states: Vec<Vec<usize>> = found.order.iter().map(|&s| found.antichains[s].clone()).collect();
        // After b alone a is still needed by c, and the other way round; after both it is kept all the same.
        assert_eq!(states, [vec![0], vec![0, 2], vec![0, 1], vec![0, 2, 1], vec![3]]);
        assert_eq!(found.before[4].ones().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(found.before[2].ones().collect::<Vec<_>>(), [0]);
        let refused = |most, stopped: &dyn Fn() -> bool| find(&dag, &|_| "", most, stopped).err();
        assert_eq!(refused(3, &|| false), Some(StatesError::TooMany(3)));
        assert_eq!(refused(100, &|| true), Some(StatesError::Stopped));
    }

    #[test]
    fn it_is_stopped_at_any_step_and_keeps_within_its_memory() {
        // A ladder of many rungs: states and steps grow fast.
        let rungs = 400;
        let edges = (0..rungs - 1).flat_map(|i| [(i, i + 1), (rungs + i, rungs + i + 1), (i, rungs + i + 1)]);
        let dag = Dag::new(2 * rungs as usize, edges.chain([(0, rungs)]).collect()).unwrap();
        for after in [0usize, 1, 500, 1000, 5000] {
            let asked = std::cell::Cell::new(0);
            let stopped = || {
                asked.set(asked.get() + 1);
                asked.get() > after
            };
            let ended = find(&dag, &|_| "", usize::MAX, &stopped).err();
            assert_eq!((ended, asked.get()), (Some(StatesError::Stopped), after + 1));
        }
        let large = Dag::new(MOST_NODES + 1, vec![]).unwrap();
        assert_eq!(find(&large, &|_| "", usize::MAX, &|| false).err(), Some(StatesError::TooLarge(MOST_NODES)));
    }
}
