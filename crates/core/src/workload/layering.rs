//! Workload as a sequence of layers, the view of training engines: first nodes, numbered blocks, last nodes.
//!
//! Blocks are nodes that share a name (`ParallelTransformerLayer`), or the name before its first number
//! (`layers.0.attention`, `layers.1.attention`). A pattern with a `*` for the number selects them instead, if given.
//! Every other node joins the layer of the last block it depends on. Nodes that depend on no block are first. Nodes
//! that depend on the last block and are not in it are last. No edge leads to an earlier layer. If nothing repeats,
//! every node is a layer, in topological order. `O(nodes + edges)`.

use std::collections::BTreeMap;

use thiserror::Error;

use super::{node_index::NodeIndex, piper::TRANSFORMER_LAYER, profiled::Workload};

/// Kind of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerPosition {
    /// Nodes before the first block, such as the embedding.
    First,
    /// Repeated block, numbered from 0.
    Block(usize),
    /// Nodes after the last block, such as the head.
    Last,
    /// Single node, if nothing repeats.
    Single,
}

/// Nodes that an engine never separates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Kind of the layer.
    pub kind: LayerPosition,
    /// Nodes of the layer, ascending; never empty.
    pub nodes: Vec<NodeIndex>,
}

/// Layers in the order of the data flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layering {
    /// Layers, first to last.
    pub layers: Vec<Layer>,
    /// Layer by node index.
    pub layer_of: Vec<usize>,
    /// True if a node is before the first block or after the last, by node index. Merging the ends does not change it.
    pub at_ends: Vec<bool>,
}

/// Reason why the workload is not a sequence of layers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LayeringError {
    /// No name matches the pattern.
    #[error("no node is named like `{0}`; write the blocks' name with a * for the number, for example layers.*")]
    NoMatch(String),
    /// The blocks do not follow one another.
    #[error("the edge {from} -> {to} leads back to an earlier block: the blocks are no sequence")]
    NoSequence {
        /// Label of the edge's source.
        from: String,
        /// Label of its destination.
        to: String,
    },
}

impl Layering {
    /// Layers of a workload. Blocks are the nodes that match `pattern` (`*` stands for the number), else repeated
    /// names.
    ///
    /// # Errors
    /// [`LayeringError`] if nothing matches the pattern or its blocks are not a sequence. Without a pattern there is
    /// always a layering.
    pub fn of(workload: &Workload, pattern: Option<&str>) -> Result<Self, LayeringError> {
        match pattern {
            Some(pattern) => {
                let blocks = numbered(workload, |name| matched(name, pattern));
                if blocks.iter().all(Option::is_none) {
                    return Err(LayeringError::NoMatch(pattern.into()));
                }
                around(workload, &blocks)
            }
            None => {
                let found = repeated(workload).and_then(|blocks| around(workload, &blocks).ok());
                Ok(found.unwrap_or_else(|| singles(workload)))
            }
        }
    }

    /// Same layering with the first nodes in the first block and the last nodes in the last, for engines that count
    /// only blocks. Without blocks nothing changes.
    #[must_use]
    pub fn with_merged_ends(self) -> Self {
        if self.blocks() == 0 {
            return self;
        }
        let nodes = self.layer_of.len();
        let mut merged: Vec<(LayerPosition, Vec<NodeIndex>)> = vec![];
        let mut waiting = vec![];
        for mut layer in self.layers {
            match (layer.kind, merged.last_mut()) {
                (LayerPosition::First, _) => waiting = layer.nodes,
                (LayerPosition::Last, Some((_, last))) => last.append(&mut layer.nodes),
                (kind, _) => {
                    layer.nodes.append(&mut waiting);
                    merged.push((kind, layer.nodes));
                }
            }
        }
        merged.iter_mut().for_each(|(_, nodes)| nodes.sort_unstable());
        Layering { at_ends: self.at_ends, ..layering(nodes, merged.into_iter()) }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.layers.iter().filter(|layer| matches!(layer.kind, LayerPosition::Block(_))).count()
    }
}

/// Number in a name that matches the pattern: the text before `*`, then digits, then the rest of the pattern. More text
/// may follow after a separator.
fn matched(name: &str, pattern: &str) -> Option<u64> {
    let (before, after) = pattern.split_once('*').unwrap_or((pattern, ""));
    let rest = name.strip_prefix(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let tail = rest[end..].strip_prefix(after)?;
    let whole = tail.is_empty() || tail.starts_with(['.', '/', '_', '-', ' ', ':']);
    if !whole {
        return None;
    }
    // A pattern without a star names blocks without numbers: they are numbered by their order.
    if pattern.contains('*') { rest[..end].parse().ok() } else { Some(u64::MAX) }
}

/// Block by node, renumbered 0, 1, 2, ... If no node has a number of its own, they are numbered in topological order.
fn numbered(workload: &Workload, number: impl Fn(&str) -> Option<u64>) -> Vec<Option<usize>> {
    let of = |v: usize| workload.nodes[v].name.as_deref().and_then(&number);
    let mut numbers: Vec<u64> = (0..workload.nodes.len()).filter_map(of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers == [u64::MAX] {
        let mut next = 0;
        let mut blocks = vec![None; workload.nodes.len()];
        for &v in workload.dag.topological_order() {
            if of(v as usize).is_some() {
                blocks[v as usize] = Some(next);
                next += 1;
            }
        }
        return blocks;
    }
    (0..workload.nodes.len()).map(|v| of(v).and_then(|number| numbers.binary_search(&number).ok())).collect()
}

/// Blocks found by name. The first rule that applies counts: the published name of a transformer layer, names that
/// share the text before their first number, the most frequent name.
fn repeated(workload: &Workload) -> Option<Vec<Option<usize>>> {
    let mut shared: BTreeMap<&str, usize> = BTreeMap::new();
    let mut families: BTreeMap<&str, std::collections::BTreeSet<u64>> = BTreeMap::new();
    for name in workload.nodes.iter().filter_map(|node| node.name.as_deref()) {
        *shared.entry(name).or_default() += 1;
        if let Some((before, number)) = first_number(name) {
            families.entry(before).or_default().insert(number);
        }
    }
    let named = |same: &str| numbered(workload, |name| (name == same).then_some(u64::MAX));
    if shared.get(TRANSFORMER_LAYER).is_some_and(|&count| count > 1) {
        return Some(named(TRANSFORMER_LAYER));
    }
    // `node17` numbers nodes, not blocks: a family counts if a word follows the number.
    let worded = |before: &str| {
        workload.nodes.iter().filter_map(|node| node.name.as_deref()).any(|name| {
            first_number(name).is_some_and(|(own, _)| own == before)
                && name[before.len()..].trim_start_matches(|c: char| c.is_ascii_digit()).len() > 1
        })
    };
    // Ties are broken by the alphabet, so that the result is deterministic.
    let family = families
        .iter()
        .filter(|(before, numbers)| numbers.len() > 1 && !before.is_empty() && worded(before))
        .max_by_key(|(before, numbers)| (numbers.len(), std::cmp::Reverse(**before)));
    if let Some((family, _)) = family {
        let number = |name: &str| first_number(name).filter(|(before, _)| before == family).map(|(_, number)| number);
        return Some(numbered(workload, number));
    }
    let same = shared.iter().filter(|(_, count)| **count > 2);
    same.max_by_key(|(name, count)| (**count, std::cmp::Reverse(**name))).map(|(name, _)| named(name))
}

/// Text of a name before its first number, and the number.
fn first_number(name: &str) -> Option<(&str, u64)> {
    let start = name.find(|c: char| c.is_ascii_digit())?;
    let rest = &name[start..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok().map(|number| (&name[..start], number))
}

/// Builds the layering from the block of each node.
fn around(workload: &Workload, blocks: &[Option<usize>]) -> Result<Layering, LayeringError> {
    let dag = &workload.dag;
    let count = blocks.iter().flatten().max().map_or(0, |last| last + 1);
    // Level 0 holds nodes before the first block; level b + 1 holds block b and the nodes after it.
    let mut level = vec![0usize; dag.len()];
    for &v in dag.topological_order() {
        let v = v as usize;
        let latest = dag.predecessors(v).max_by_key(|&u| level[u]);
        level[v] = latest.map_or(0, |u| level[u]);
        if let Some(block) = blocks[v] {
            if level[v] > block + 1 {
                let (from, to) =
                    (workload.nodes[latest.expect("a level comes from somewhere")].label(), workload.nodes[v].label());
                return Err(LayeringError::NoSequence { from, to });
            }
            level[v] = block + 1;
        }
    }
    let mut members = vec![vec![]; count + 2];
    for node in workload.indices() {
        let (level, block) = (level[node.index()], blocks[node.index()]);
        let last = level == count && block.is_none();
        members[if last { count + 1 } else { level }].push(node);
    }
    let kind = |place: usize| match place {
        0 => LayerPosition::First,
        place if place == count + 1 => LayerPosition::Last,
        place => LayerPosition::Block(place - 1),
    };
    Ok(layering(dag.len(), members.into_iter().enumerate().map(|(place, nodes)| (kind(place), nodes))))
}

fn singles(workload: &Workload) -> Layering {
    let order = workload.topological_order();
    layering(workload.nodes.len(), order.map(|node| (LayerPosition::Single, vec![node])))
}

fn layering(nodes: usize, members: impl Iterator<Item = (LayerPosition, Vec<NodeIndex>)>) -> Layering {
    let layers: Vec<Layer> =
        members.filter(|(_, nodes)| !nodes.is_empty()).map(|(kind, nodes)| Layer { kind, nodes }).collect();
    let (mut layer_of, mut at_ends) = (vec![0; nodes], vec![false; nodes]);
    for (i, layer) in layers.iter().enumerate() {
        let end = matches!(layer.kind, LayerPosition::First | LayerPosition::Last);
        for &v in &layer.nodes {
            (layer_of[v.index()], at_ends[v.index()]) = (i, end);
        }
    }
    Layering { layers, layer_of, at_ends }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::builtin;

    fn renamed(name: impl Fn(usize) -> String) -> Workload {
        let mut workload = builtin();
        let order: Vec<usize> = workload.dag.topological_order().iter().map(|&v| v as usize).collect();
        for (place, v) in order.into_iter().enumerate() {
            workload.nodes[v].name = Some(name(place));
        }
        workload
    }

    fn forwards(workload: &Workload, layering: &Layering) -> bool {
        workload.dag.edges().iter().all(|&(u, v)| layering.layer_of[u as usize] <= layering.layer_of[v as usize])
    }

    #[test]
    fn the_built_in_network_has_32_blocks_between_two_ends() {
        let workload = builtin();
        let layering = Layering::of(&workload, None).unwrap();
        assert_eq!((layering.blocks(), layering.layers.len()), (32, 34));
        assert_eq!(layering.layers[0].kind, LayerPosition::First);
        assert_eq!(layering.layers[33].kind, LayerPosition::Last);
        assert!(forwards(&workload, &layering));
        assert_eq!(layering.layers.iter().map(|layer| layer.nodes.len()).sum::<usize>(), workload.nodes.len());
    }

    #[test]
    fn ends_can_join_the_outer_blocks() {
        let workload = builtin();
        let layering = Layering::of(&workload, None).unwrap().with_merged_ends();
        assert_eq!((layering.blocks(), layering.layers.len()), (32, 32));
        assert_eq!(layering.layers.iter().map(|layer| layer.nodes.len()).sum::<usize>(), workload.nodes.len());
        assert!(forwards(&workload, &layering));
    }

    #[test]
    fn numbers_in_names_make_blocks() {
        let workload = renamed(|place| format!("layers.{}.part", place / 4));
        let layering = Layering::of(&workload, None).unwrap();
        assert_eq!(layering.blocks(), workload.nodes.len().div_ceil(4));
        assert!(forwards(&workload, &layering));
        assert_eq!(Layering::of(&workload, Some("layers.*")).unwrap(), layering);
        assert!(matches!(Layering::of(&workload, Some("blocks.*")), Err(LayeringError::NoMatch(_))));
    }

    #[test]
    fn numbered_nodes_are_no_blocks() {
        let workload = renamed(|place| format!("node{place}"));
        let layering = Layering::of(&workload, None).unwrap();
        assert_eq!(layering.layers.len(), workload.nodes.len());
        assert!(
            layering.layers.iter().all(|layer| layer.kind == LayerPosition::Single) && forwards(&workload, &layering)
        );
    }

    #[test]
    fn blocks_that_lead_back_are_refused() {
        let workload = renamed(|place| format!("layers.{}.part", 100 - place));
        let error = Layering::of(&workload, Some("layers.*")).unwrap_err();
        assert!(error.to_string().contains("leads back"), "{error}");
    }
}
