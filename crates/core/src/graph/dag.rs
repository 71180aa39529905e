//! Directed acyclic graph in compressed rows.
//!
//! Construction takes `O(n + m)` time and memory. It refuses cycles and names one. Successor and predecessor lists
//! carry *edge indices*, not vertices, so that a planner can keep a cost per edge in a plain array beside the graph.

use thiserror::Error;

/// Reason why a set of edges is not a DAG. Vertices are dense indices; callers translate them to file ids.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GraphError {
    /// Vertices of one directed cycle, in order. The first is not repeated at the end.
    #[error("the edges form a cycle through vertices {0:?}")]
    Cycle(Vec<usize>),
}

/// DAG over `0..len()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dag {
    edges: Vec<(u32, u32)>,
    out_start: Vec<u32>,
    out_edges: Vec<u32>,
    in_start: Vec<u32>,
    in_edges: Vec<u32>,
    order: Vec<u32>,
}

/// Edge indices by vertex, in edge order within each vertex.
fn rows(n: usize, keys: impl Iterator<Item = u32> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0u32; n + 1];
    for key in keys.clone() {
        start[key as usize + 1] += 1;
    }
    for i in 0..n {
        start[i + 1] += start[i];
    }
    let mut next = start.clone();
    let mut list = vec![0u32; *start.last().expect("n + 1 entries") as usize];
    for (edge, key) in keys.enumerate() {
        let slot = &mut next[key as usize];
        list[*slot as usize] = edge as u32;
        *slot += 1;
    }
    (start, list)
}

impl Dag {
    /// Builds the graph of `n` vertices and the given `(source, destination)` pairs.
    ///
    /// # Errors
    /// [`GraphError::Cycle`] with the vertices of a cycle.
    ///
    /// # Panics
    /// If an endpoint is not below `n`.
    pub fn new(n: usize, edges: Vec<(u32, u32)>) -> Result<Self, GraphError> {
        let (out_start, out_edges) = rows(n, edges.iter().map(|e| e.0));
        let (in_start, in_edges) = rows(n, edges.iter().map(|e| e.1));
        let mut dag = Dag { edges, out_start, out_edges, in_start, in_edges, order: Vec::with_capacity(n) };
        let mut missing: Vec<usize> = (0..n).map(|v| dag.in_degree(v)).collect();
        // First in, first out, by index: a breadth-first topological order that keeps file order among equals.
        let mut order: Vec<u32> = (0..n).filter(|&v| missing[v] == 0).map(|v| v as u32).collect();
        let mut head = 0;
        while head < order.len() {
            let v = order[head] as usize;
            head += 1;
            for w in dag.successors(v) {
                missing[w] -= 1;
                if missing[w] == 0 {
                    order.push(w as u32);
                }
            }
        }
        if order.len() < n {
            return Err(GraphError::Cycle(dag.find_cycle(&missing)));
        }
        dag.order = order;
        Ok(dag)
    }

    /// Follows predecessors among the vertices left by Kahn's algorithm until one repeats.
    fn find_cycle(&self, missing: &[usize]) -> Vec<usize> {
        let start = (0..self.len()).find(|&v| missing[v] > 0).expect("a vertex on or behind a cycle is left");
        let mut position = vec![usize::MAX; self.len()];
        let mut path = vec![];
        let mut v = start;
        while position[v] == usize::MAX {
            position[v] = path.len();
            path.push(v);
            v = self.predecessors(v).find(|&u| missing[u] > 0).expect("a left-over vertex has a left-over predecessor");
        }
        let mut cycle = path.split_off(position[v]);
        cycle.reverse();
        cycle
    }

    /// Number of vertices.
    #[inline]
    pub fn len(&self) -> usize {
        self.out_start.len() - 1
    }

    /// True if there is no vertex.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All edges, in the given order.
    #[inline]
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// Indices of the edges out of `v`, in the given order.
    #[inline]
    pub fn out_edges(&self, v: usize) -> &[u32] {
        &self.out_edges[self.out_start[v] as usize..self.out_start[v + 1] as usize]
    }

    /// Indices of the edges into `v`, in the given order.
    #[inline]
    pub fn in_edges(&self, v: usize) -> &[u32] {
        &self.in_edges[self.in_start[v] as usize..self.in_start[v + 1] as usize]
    }

    /// For each edge, its position among the edges out of its source. `O(edges)`.
    pub fn places_of_departure(&self) -> Vec<usize> {
        self.places(|v| self.out_edges(v))
    }

    /// For each edge, its position among the edges into its destination. `O(edges)`.
    pub fn places_of_arrival(&self) -> Vec<usize> {
        self.places(|v| self.in_edges(v))
    }

    fn places<'a>(&'a self, of: impl Fn(usize) -> &'a [u32]) -> Vec<usize> {
        let mut places = vec![0; self.edges.len()];
        for v in 0..self.len() {
            of(v).iter().enumerate().for_each(|(place, &edge)| places[edge as usize] = place);
        }
        places
    }

    /// Number of edges into `v`.
    #[inline]
    pub fn in_degree(&self, v: usize) -> usize {
        self.in_edges(v).len()
    }

    /// Number of edges out of `v`.
    #[inline]
    pub fn out_degree(&self, v: usize) -> usize {
        self.out_edges(v).len()
    }

    /// Heads of the edges out of `v`.
    #[inline]
    pub fn successors(&self, v: usize) -> impl Iterator<Item = usize> + '_ {
        self.out_edges(v).iter().map(|&e| self.edges[e as usize].1 as usize)
    }

    /// Tails of the edges into `v`.
    #[inline]
    pub fn predecessors(&self, v: usize) -> impl Iterator<Item = usize> + '_ {
        self.in_edges(v).iter().map(|&e| self.edges[e as usize].0 as usize)
    }

    /// Breadth-first topological order.
    #[inline]
    pub fn topological_order(&self) -> &[u32] {
        &self.order
    }

    /// True if that is the only topological order: each vertex has an edge to the next.
    pub fn has_one_order(&self) -> bool {
        let after_one_another = |pair: &[u32]| self.successors(pair[0] as usize).any(|w| w == pair[1] as usize);
        self.order.windows(2).all(after_one_another)
    }

    /// Depth-first topological order of Kahn's algorithm with a stack. Sources are pushed by index, successors in edge
    /// order as they become ready, and the last pushed is visited first. The equal-partition baselines of Piper and the
    /// linearisation of device placement use this order.
    pub fn stack_order(&self) -> Vec<u32> {
        let mut missing: Vec<usize> = (0..self.len()).map(|v| self.in_degree(v)).collect();
        let mut stack: Vec<u32> = (0..self.len()).filter(|&v| missing[v] == 0).map(|v| v as u32).collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(v) = stack.pop() {
            order.push(v);
            for w in self.successors(v as usize) {
                missing[w] -= 1;
                if missing[w] == 0 {
                    stack.push(w as u32);
                }
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_edge_order() {
        let dag = Dag::new(4, vec![(0, 2), (0, 1), (1, 3), (2, 3)]).unwrap();
        assert_eq!(dag.successors(0).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(dag.predecessors(3).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(dag.out_edges(0), [0, 1]);
        assert_eq!(dag.topological_order(), [0, 2, 1, 3]);
        assert_eq!(dag.stack_order(), [0, 1, 2, 3]);
    }

    #[test]
    fn a_cycle_is_named_in_order() {
        let error = Dag::new(5, vec![(0, 1), (1, 2), (2, 3), (3, 1), (3, 4)]).unwrap_err();
        let GraphError::Cycle(cycle) = error;
        assert_eq!(cycle.len(), 3);
        let follows = |a: usize, b: usize| [(1, 2), (2, 3), (3, 1)].contains(&(a, b));
        for i in 0..3 {
            assert!(follows(cycle[i], cycle[(i + 1) % 3]), "{cycle:?}");
        }
        assert_eq!(Dag::new(1, vec![(0, 0)]), Err(GraphError::Cycle(vec![0])));
    }
}
