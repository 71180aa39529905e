//! PipeDream's planner as the paper's baseline: branches that split and join again become one class, and the linearised
//! search cuts the rest.
//!
//! The vertices are the forward and backward parts of colour classes. In each biconnected component of the undirected
//! graph, the classes that produce a tensor for the component are merged. On training graphs, the edges from forward to
//! backward close cycles over everything, so this baseline is often no better than one accelerator.
//!
//! The published program drops the edges of a few producers, listed by number, if the input has as many nodes as its
//! BERT-24 or GNMT. Its values cannot be reproduced without the same rule, so it is here, in one table.

use std::collections::{BTreeMap, BTreeSet};

use super::{PlacementLimits, PlacementResult, classes::Partition, dp::OrderedClasses, linearise};
use plantui_core::{graph::Dag, search::Search, workload::placement::PlacementProfile};

/// By number of nodes of the input: the producers whose edges are dropped. Forward parts are numbered by colour,
/// backward parts from the largest colour on.
const LEFT_OUT: [(usize, &[i64]); 4] =
    [(32, &[4, 37]), (64, &[4, 37]), (96, &[2, 100, 40, 137, 46, 142]), (192, &[2, 100, 40, 137, 46, 142])];

/// Best split along the order of the merged classes.
pub fn plan(dag: &Dag, profile: &PlacementProfile, limits: &PlacementLimits, search: &Search) -> PlacementResult {
    let prepared = OrderedClasses::new(dag, profile, &merged(dag, profile));
    linearise::along(&prepared, limits, search).placed(&prepared)
}

/// Colour classes, merged if they produce for the same biconnected component.
fn merged(dag: &Dag, profile: &PlacementProfile) -> Partition {
    let colours = Partition::by_colour(profile);
    colours.united(meeting(dag, profile, &colours))
}

/// Pairs of classes that produce for the same biconnected component.
fn meeting(dag: &Dag, profile: &PlacementProfile, colours: &Partition) -> Vec<(usize, usize)> {
    let n = colours.len();
    let mut by_label: Vec<usize> = (0..n).collect();
    by_label.sort_by_key(|&class| colours.label(class));
    let largest = by_label.last().map_or(0, |&class| colours.label(class));
    let mut number: Vec<i64> = (0..n).map(|class| colours.label(class)).collect();
    number.resize(2 * n, 0);
    for (rank, &class) in by_label.iter().enumerate() {
        number[n + class] = largest + 1 + rank as i64;
    }
    let left_out = LEFT_OUT.iter().find(|(nodes, _)| *nodes == dag.len()).map_or(&[][..], |(_, list)| list);
    let part = |node: u32| colours.class(node as usize) + if profile.nodes[node as usize].backward { n } else { 0 };
    let edges: BTreeSet<(usize, usize)> = dag
        .edges()
        .iter()
        .map(|&(u, v)| (part(u), part(v)))
        .filter(|&(a, b)| a != b && !left_out.contains(&number[a]))
        .collect();
    let ends: BTreeMap<(usize, usize), usize> =
        edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect::<BTreeSet<_>>().into_iter().zip(0..).collect();
    let list: Vec<(usize, usize)> = ends.keys().copied().collect();
    let component = biconnected_components(2 * n, &list);
    let mut producer: BTreeMap<usize, usize> = BTreeMap::new();
    edges
        .iter()
        .map(|&(a, b)| {
            let class = a % n;
            (*producer.entry(component[ends[&(a.min(b), a.max(b))]]).or_insert(class), class)
        })
        .collect()
}

/// Biconnected component of every undirected edge (Hopcroft and Tarjan 1973), in `O(n + m)` without recursion.
fn biconnected_components(n: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut at: Vec<Vec<usize>> = vec![vec![]; n];
    for (e, &(a, b)) in edges.iter().enumerate() {
        at[a].push(e);
        at[b].push(e);
    }
    let mut component = vec![UNSEEN; edges.len()];
    let mut depth = vec![UNSEEN; n];
    let mut low = vec![UNSEEN; n];
    let mut components = 0;
    let mut open: Vec<usize> = vec![];
    for start in 0..n {
        if depth[start] != UNSEEN {
            continue;
        }
        depth[start] = 0;
        low[start] = 0;
        // Vertex, edge by which it was entered, and number of its edges followed.
        let mut path = vec![(start, UNSEEN, 0)];
        while let Some(&mut (v, entered, ref mut next)) = path.last_mut() {
            if let Some(&e) = at[v].get(*next) {
                *next += 1;
                let w = if edges[e].0 == v { edges[e].1 } else { edges[e].0 };
                if e == entered {
                    continue;
                }
                if depth[w] == UNSEEN {
                    depth[w] = depth[v] + 1;
                    low[w] = depth[w];
                    open.push(e);
                    path.push((w, e, 0));
                } else if depth[w] < depth[v] {
                    open.push(e);
                    low[v] = low[v].min(depth[w]);
                }
                continue;
            }
            path.pop();
            let Some(&(above, ..)) = path.last() else { continue };
            low[above] = low[above].min(low[v]);
            if low[v] >= depth[above] {
                while let Some(e) = open.pop() {
                    component[e] = components;
                    if e == entered {
                        break;
                    }
                }
                components += 1;
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bridge_is_a_component_and_so_is_each_cycle() {
        // Two triangles that share vertex 2, and a tail.
        let edges = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 4), (3, 4), (4, 5)];
        let component = biconnected_components(6, &edges);
        assert!(component[0] == component[1] && component[1] == component[2]);
        assert!(component[3] == component[4] && component[4] == component[5]);
        assert_eq!(component.iter().collect::<BTreeSet<_>>().len(), 3);
    }
}
