//! Text format of PipeDream's profiler (`graph.txt`), which DAPPLE and HPGO also read.
//!
//! ```text
//! # profile_batch=64
//! node1 -- Embedding(32320, 1024) -- forward_compute_time=0.073, backward_compute_time=6.949, activation_size=6291456.0, parameter_size=132382720.000
//! node2 -- LSTM -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[6291456.0; 131072.0], parameter_size=0 -- stage_id=1
//!     node1 -- node2
//! ```
//!
//! A node starts in the first column, an edge with a blank. Nodes come before the edges that use them. The position of
//! a figure gives its meaning; the text left of `=` is ignored, as in the published readers. Times are in milliseconds
//! and sizes in bytes for one batch. The line `# profile_batch=N` before the nodes gives the batch in samples. It is
//! plantui's own: the published readers support no comments. Other lines that begin with `#` are comments. [`write()`]
//! is the inverse of [`read`]. Linear in time and memory.

use std::fmt::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use super::format::WorkloadFormat;
use crate::{
    cluster::GivenLimits,
    graph::{Dag, GraphError},
    source::{LoadError, error::printable},
    units::{LARGEST, exact_number},
    workload::{
        layer_profile::{Batch, LayerNode, LayerProfile},
        node::{Node, NodeId},
        profiled::{Profile, Workload},
    },
};

/// Separator between the parts of a line.
const PARTS: &str = " -- ";
/// Separator between the figures of a node.
const FIGURES: &str = ", ";
/// Names of the figures, in order.
const NAMES: [&str; 4] = ["forward_compute_time", "backward_compute_time", "activation_size", "parameter_size"];
/// Key of the header line.
const BATCH: &str = "profile_batch";
/// Maximum number of samples in a batch.
pub const MOST_SAMPLES: u32 = 10_000_000;
/// Form of a node line, for messages.
const NODE_LINE: &str = "write `ID -- NAME -- forward_compute_time=.., backward_compute_time=.., activation_size=.., \
                         parameter_size=..`, and ` -- stage_id=N` after it if you like";
/// Form of an edge line, for messages.
const EDGE_LINE: &str = "write a tab, then `ID -- ID`";

/// Line of the file, for messages.
struct SourceLine<'a> {
    source: &'a str,
    number: usize,
}

impl SourceLine<'_> {
    fn refuse<T>(&self, place: &str, problem: impl Into<String>, repair: impl Into<String>) -> Result<T, LoadError> {
        Err(LoadError::at(self.source, place, problem, repair).on_line(Some(self.number)))
    }
}

/// Reads a workload.
///
/// # Errors
/// [`LoadError`] with the line and the repair.
pub fn read(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let mut names: Vec<String> = vec![];
    let mut profile = LayerProfile::new(vec![]);
    let mut told: Option<u32> = None;
    let mut edges: Vec<(u32, u32)> = vec![];
    let mut known: FxHashMap<&str, u32> = FxHashMap::default();
    let mut line_of: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    for (i, content) in text.lines().enumerate() {
        let line = SourceLine { source, number: i + 1 };
        if content.trim().is_empty() {
            continue;
        }
        if let Some(comment) = content.strip_prefix('#') {
            let Some(rest) = comment.trim().strip_prefix(BATCH) else { continue };
            let Some(samples) = rest.trim_start().strip_prefix('=') else {
                let problem = format!("is `{}`", printable(rest.trim()));
                return line.refuse("profile_batch", problem, "write `# profile_batch=64`");
            };
            if told.replace(batch(&line, samples)?).is_some() {
                return line.refuse("", "tells the profiled batch a second time", "keep one of them");
            }
            continue;
        }
        if content.starts_with([' ', '\t']) {
            let (from, to) = edge(&line, content.trim(), &known)?;
            if line_of.insert((from, to), line.number).is_some() {
                return line.refuse("", "repeats an edge", "keep one of them");
            }
            edges.push((from, to));
        } else {
            let (id, description, cost) = node(&line, content.trim_end())?;
            let index = profile.nodes.len() as u32;
            if known.insert(id, index).is_some() {
                let problem = format!("gives the id `{}` a second time", printable(id));
                return line.refuse("", problem, "give every node an id of its own");
            }
            names.push(printable(description));
            profile.nodes.push(cost);
        }
    }
    if profile.nodes.is_empty() {
        return Err(LoadError::file(source, "has edges but no node", NODE_LINE));
    }
    if profile.nodes.iter().all(|node| node.forward_ms + node.backward_ms == 0.0) {
        let repair = "plans are made from times: profile the network, in milliseconds";
        return Err(LoadError::file(source, "has no node that takes any time", repair));
    }
    let dag = Dag::new(profile.nodes.len(), edges).map_err(|GraphError::Cycle(cycle)| {
        let ids: Vec<String> = cycle.iter().take(8).map(|&v| printable(&profile.nodes[v].id)).collect();
        let more = if cycle.len() > 8 { ", .." } else { "" };
        // The edge of the cycle that comes last in the file: the one that closes it.
        let next = cycle.iter().cycle().skip(1);
        let edges = cycle.iter().zip(next).map(|(&from, &to)| (from as u32, to as u32));
        let closes = edges.filter_map(|edge| line_of.get(&edge).copied()).max();
        let problem = format!("puts edges in a circle: {}{more}", ids.join(" -> "));
        LoadError::file(source, problem, "remove this edge or another of them").on_line(closes)
    })?;
    let profile = match told {
        Some(samples) => profile.of_batch(samples),
        None => profile.of_sizes(&names),
    };
    let ids = node_ids(&profile);
    let nodes = ids.into_iter().zip(names).map(|(id, name)| Node { id, name: Some(name) }).collect();
    Ok(Workload {
        name: name.into(),
        source: source.into(),
        format: WorkloadFormat::PipeDream,
        nodes,
        dag,
        profile: Profile::Layers(profile),
        limits: GivenLimits::default(),
        provenance: None,
        recipe: None,
        unknown_fields: vec![],
    })
}

/// Samples in the profiled batch.
fn batch(line: &SourceLine<'_>, text: &str) -> Result<u32, LoadError> {
    let told = text.trim();
    let samples = told.parse().ok().filter(|samples| (1..=MOST_SAMPLES).contains(samples));
    let problem = || format!("is `{}`, must be a whole number from 1 to {MOST_SAMPLES}", printable(told));
    samples.map_or_else(|| line.refuse("profile_batch", problem(), "write the samples that were profiled at once"), Ok)
}

/// Numeric ids: the number after `node` if every id has one and all differ, else the position from 1.
fn node_ids(profile: &LayerProfile) -> Vec<NodeId> {
    let number = |id: &str| -> Option<i64> {
        let digits = id.strip_prefix("node")?;
        let plain = !digits.is_empty() && digits.len() <= 15 && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse().ok())?
    };
    let numbers: Option<Vec<i64>> = profile.nodes.iter().map(|node| number(&node.id)).collect();
    let unique = |numbers: &Vec<i64>| numbers.iter().collect::<FxHashSet<_>>().len() == numbers.len();
    let positions = || (1..=profile.nodes.len() as i64).collect();
    numbers.filter(unique).unwrap_or_else(positions).into_iter().map(NodeId).collect()
}

/// Id, description and cost of a node line.
fn node<'a>(line: &SourceLine<'_>, content: &'a str) -> Result<(&'a str, &'a str, LayerNode), LoadError> {
    let parts: Vec<&str> = content.split(PARTS).collect();
    let (id, description, figures, stage) = match parts[..] {
        [id, description, figures] => (id, description, figures, None),
        [id, description, figures, stage] => (id, description, figures, Some(stage)),
        _ => {
            let problem = format!("has {} where a node has 3 or 4", counted_parts(parts.len()));
            return line.refuse("", problem, NODE_LINE);
        }
    };
    if id.is_empty() {
        return line.refuse("", "has no id in front of ` -- `", NODE_LINE);
    }
    if printable(id) != id {
        return line.refuse("", "has an id with characters that cannot be shown", "give the node a plain id");
    }
    let items: Vec<&str> = figures.split(FIGURES).collect();
    if items.len() != NAMES.len() {
        let problem = format!("has {} figures where a node has 4, in `{}`", items.len(), printable(figures));
        return line.refuse("", problem, NODE_LINE);
    }
    let mut values: [Vec<f64>; 4] = [const { vec![] }; 4];
    for ((value, item), name) in values.iter_mut().zip(items).zip(NAMES) {
        let Some((_, text)) = item.split_once('=') else {
            return line.refuse(name, format!("has no `=` in `{}`", printable(item)), format!("write `{name}=NUMBER`"));
        };
        *value = numbers(line, name, text.trim())?;
        if name != "activation_size" && value.len() != 1 {
            return line.refuse(name, "is a list", "write one number: only activation_size may be a list");
        }
    }
    let [forward, backward, activation_bytes, parameters] = values;
    let cost = LayerNode {
        id: id.into(),
        forward_ms: forward[0],
        backward_ms: backward[0],
        activation_bytes,
        parameter_bytes: parameters[0],
        stage: stage.map(|text| stage_id(line, text)).transpose()?,
    };
    Ok((id, description, cost))
}

fn counted_parts(count: usize) -> String {
    match count {
        1 => "no ` -- `".into(),
        _ => format!("{count} parts between ` -- `"),
    }
}

/// Number, or list of numbers in brackets.
fn numbers(line: &SourceLine<'_>, name: &str, text: &str) -> Result<Vec<f64>, LoadError> {
    let one = |text: &str| -> Result<f64, LoadError> {
        let Ok(value) = text.trim().parse::<f64>() else {
            return line.refuse(name, format!("is `{}`, must be a number", printable(text)), "");
        };
        if !(value >= 0.0 && value.is_finite()) {
            return line.refuse(name, format!("is {}, must be >= 0", exact_number(value)), "");
        }
        if value > LARGEST {
            let problem = format!("is {}, must be at most {LARGEST:e}", exact_number(value));
            return line.refuse(name, problem, "nothing computed from it would be finite: correct it");
        }
        Ok(value)
    };
    match text.strip_prefix('[') {
        None => Ok(vec![one(text)?]),
        Some(rest) => match rest.strip_suffix(']') {
            Some(list) => list.split(';').map(one).collect(),
            None => line.refuse(name, "opens a list without closing it", "write `[1; 2; 3]`"),
        },
    }
}

fn stage_id(line: &SourceLine<'_>, text: &str) -> Result<u32, LoadError> {
    let number = text.split_once('=').map_or(text, |(_, number)| number).trim();
    match number.parse::<u32>() {
        Ok(stage) if stage <= 1_000_000 => Ok(stage),
        _ => line.refuse("stage_id", format!("is `{}`, must be a whole number from 0 on", printable(number)), ""),
    }
}

fn edge(line: &SourceLine<'_>, content: &str, known: &FxHashMap<&str, u32>) -> Result<(u32, u32), LoadError> {
    let parts: Vec<&str> = content.split(PARTS).collect();
    let [from, to] = parts[..] else {
        let repair = format!("{EDGE_LINE}; if it is a node, remove the blank in front");
        return line.refuse("", format!("has {} where an edge has 2", counted_parts(parts.len())), repair);
    };
    let find = |id: &str| match known.get(id) {
        Some(&index) => Ok(index),
        None => line.refuse(
            "",
            format!("has an edge of `{}`, which no line above describes", printable(id)),
            "give the node a line above its edges",
        ),
    };
    Ok((find(from)?, find(to)?))
}

/// Writes a workload in this format.
pub fn write(workload: &Workload, profile: &LayerProfile) -> String {
    let mut text = match profile.batch {
        Batch::Stated(samples) => format!("# {BATCH}={samples}\n"),
        // A reader infers the same batch again.
        Batch::BySizes(_) | Batch::Unknown(_) => String::new(),
    };
    // Shortest decimals that read back as the same number.
    let list = |values: &[f64]| match values {
        [one] => format!("{one}"),
        many => format!("[{}]", many.iter().map(f64::to_string).collect::<Vec<_>>().join("; ")),
    };
    for (node, cost) in workload.nodes.iter().zip(&profile.nodes) {
        let name = node.label().replace(PARTS, " - ");
        let name = if name.is_empty() { "-".to_string() } else { name };
        let LayerNode { id, forward_ms, backward_ms, activation_bytes, parameter_bytes, stage } = cost;
        let figures = format!(
            "{}={forward_ms}, {}={backward_ms}, {}={}, {}={parameter_bytes}",
            NAMES[0],
            NAMES[1],
            NAMES[2],
            list(activation_bytes),
            NAMES[3]
        );
        write!(text, "{id}{PARTS}{name}{PARTS}{figures}").expect("a string takes every write");
        if let Some(stage) = stage {
            write!(text, "{PARTS}stage_id={stage}").expect("a string takes every write");
        }
        text.push('\n');
    }
    for &(u, v) in workload.dag.edges() {
        let (from, to) = (&profile.nodes[u as usize].id, &profile.nodes[v as usize].id);
        writeln!(text, "\t{from}{PARTS}{to}").expect("a string takes every write");
    }
    text
}
