//! Strongly connected components (Tarjan 1972), in `O(n + m)` time and memory.
//!
//! Iterative, since graphs may be long chains. Components are numbered from the sinks up: an edge never leads to a
//! component with a larger number.

/// Component of each of `n` vertices. Edges may repeat.
pub fn strong_components<'a>(n: usize, edges: impl Iterator<Item = &'a (u32, u32)>) -> Vec<u32> {
    let mut successors: Vec<Vec<u32>> = vec![vec![]; n];
    for &(a, b) in edges {
        successors[a as usize].push(b);
    }
    const UNSEEN: u32 = u32::MAX;
    let mut component = vec![UNSEEN; n];
    let mut index = vec![UNSEEN; n];
    let mut low = vec![0u32; n];
    let mut open: Vec<usize> = vec![];
    let mut path: Vec<(usize, usize)> = vec![];
    let (mut clock, mut components) = (0, 0);
    for start in 0..n {
        if index[start] != UNSEEN {
            continue;
        }
        path.push((start, 0));
        while let Some(&mut (v, ref mut next)) = path.last_mut() {
            if *next == 0 {
                index[v] = clock;
                low[v] = clock;
                clock += 1;
                open.push(v);
            }
            if let Some(&w) = successors[v].get(*next) {
                *next += 1;
                let w = w as usize;
                if index[w] == UNSEEN {
                    path.push((w, 0));
                } else if component[w] == UNSEEN {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            path.pop();
            if let Some(&(above, _)) = path.last() {
                low[above] = low[above].min(low[v]);
            }
            if low[v] == index[v] {
                while let Some(w) = open.pop() {
                    component[w] = components;
                    if w == v {
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
    fn a_cycle_is_one_component_and_edges_lead_to_smaller_numbers() {
        let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 4)];
        let component = strong_components(6, edges.iter());
        assert!(component[0] == component[1] && component[1] == component[2]);
        assert!(edges.iter().all(|&(a, b)| component[a as usize] >= component[b as usize]), "{component:?}");
        assert_eq!(component.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
    }
}
