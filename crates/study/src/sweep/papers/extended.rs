//! BERT with more layers, as in the Piper paper's figure 3: repeated copies of the last layer but one.
//!
//! A copy has the costs of the original and comes between it and the last layer. Only its predecessor feeds it, not the
//! attention mask. In the published program the copied layer depends on the order of a hash table; it is this one.

use std::path::Path;

use serde_json::{Value, json};

use plantui_core::{
    source::LoadError,
    workload::{self, Workload, formats},
};

/// Copied layer, the one before it, and the last one.
const COPIED: i64 = 34;
const BEFORE: i64 = 33;
const LAST: i64 = 35;
/// Layers of the published file.
const LAYERS: i64 = 32;
/// Id of the first copy.
const FIRST: i64 = 37;

/// Published BERT-32 at `path` with this many layers, 33 or more.
///
/// # Errors
/// [`LoadError`] if it cannot be read or is not the published file.
pub(super) fn bert(path: &Path, layers: i64) -> Result<Workload, LoadError> {
    let shown = path.display().to_string();
    let other = || LoadError::file(&shown, "is not the published BERT-32", "use piper/inputs/bert32a100.json");
    let bytes = formats::read_file(path)?;
    let mut file: Value = serde_json::from_slice(&bytes).map_err(|_| other())?;
    extend(&mut file, layers - LAYERS).ok_or_else(other)?;
    let mut workload = workload::load_bytes(file.to_string().as_bytes(), &shown, &format!("bert{layers}a100"))?;
    workload.source = format!("{shown} with {layers} layers");
    Ok(workload)
}

/// Inserts the copies; `None` if the file is not the published one.
fn extend(file: &mut Value, copies: i64) -> Option<()> {
    let is = |value: &Value, id: i64| value["id"].as_i64() == Some(id);
    let nodes = file["nodes"].as_array_mut()?;
    let model = nodes.iter().find(|node| is(node, COPIED))?.clone();
    let ids: Vec<i64> = (FIRST..FIRST + copies).collect();
    for (place, &id) in ids.iter().enumerate() {
        let before = place.checked_sub(1).map_or(COPIED, |at| ids[at]);
        let after = ids.get(place + 1).copied().unwrap_or(LAST);
        let mut copy = model.clone();
        copy["id"] = json!(id);
        each_mode(&mut copy, |mode| {
            let (fed, feeds) =
                (mode["syncTimeFw"][BEFORE.to_string()].take(), mode["syncTimeBw"][LAST.to_string()].take());
            mode["syncTimeFw"] = json!({ before.to_string(): fed });
            mode["syncTimeBw"] = json!({ after.to_string(): feeds });
        })?;
        nodes.push(copy);
    }
    let (first, last) = (*ids.first()?, *ids.last()?);
    let node = |nodes: &mut Vec<Value>, id: i64| nodes.iter().position(|node| is(node, id));
    let copied = node(nodes, COPIED)?;
    each_mode(&mut nodes[copied], |mode| rename(&mut mode["syncTimeBw"], LAST, first))?;
    let end = node(nodes, LAST)?;
    each_mode(&mut nodes[end], |mode| rename(&mut mode["syncTimeFw"], COPIED, last))?;
    let edges = file["edges"].as_array_mut()?;
    let joins = |edge: &Value, from: i64, to: i64| {
        edge["sourceId"].as_i64() == Some(from) && edge["destId"].as_i64() == Some(to)
    };
    let fed = edges.iter().find(|edge| joins(edge, BEFORE, COPIED))?["communicationCost"].clone();
    let cut = edges.iter().position(|edge| joins(edge, COPIED, LAST))?;
    let feeds = edges[cut]["communicationCost"].take();
    edges.remove(cut);
    let mut from = COPIED;
    for &id in &ids {
        edges.push(json!({ "sourceId": from, "destId": id, "communicationCost": fed }));
        from = id;
    }
    edges.push(json!({ "sourceId": last, "destId": LAST, "communicationCost": feeds }));
    Some(())
}

fn each_mode(node: &mut Value, mut change: impl FnMut(&mut Value)) -> Option<()> {
    for (_, modes) in node["TMPCs"].as_object_mut()? {
        modes.as_array_mut()?.iter_mut().for_each(&mut change);
    }
    Some(())
}

/// Renames a key of an object.
fn rename(object: &mut Value, from: i64, to: i64) {
    if let Some(object) = object.as_object_mut()
        && let Some(value) = object.remove(&from.to_string())
    {
        object.insert(to.to_string(), value);
    }
}
