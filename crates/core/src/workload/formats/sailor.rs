//! Training configurations of Sailor (SOSP 2025), with the tables of costs in files beside them.
//!
//! `O(tables)`.

use std::{path::Path, sync::Arc};

use serde::Deserialize;

use super::{file::read_file, format::WorkloadFormat, mixed, reader};
use crate::{
    cluster::MOST_BATCH,
    source::error::LoadError,
    workload::{
        Workload,
        mixed::MOST_KINDS,
        sailor::{FILES, PRICES, SailorModel, SailorTables, ZoneDevices},
    },
};

/// Most layers of a model.
const MOST_LAYERS: usize = 256;

/// Reads the tables of a folder.
///
/// # Errors
/// [`LoadError`] if one is missing or has another form.
pub fn tables(folder: &Path) -> Result<SailorTables, LoadError> {
    let file = |name: &str| read_file(&folder.join(name));
    let texts = [file(FILES[0])?, file(FILES[1])?, file(FILES[2])?, file(FILES[3])?];
    let prices = folder.join(PRICES).is_file().then(|| file(PRICES)).transpose()?;
    let source = crate::text::printable(&folder.display().to_string());
    SailorTables::of(texts.each_ref().map(Vec::as_slice), prices.as_deref(), &source)
}

/// Fields of a training configuration that plans depend on.
#[derive(Debug, Deserialize)]
struct Configuration {
    model: String,
    global_batch_size: u32,
    num_all_layers: usize,
    #[serde(default)]
    num_layers: Option<usize>,
}

/// Fields of a training configuration that its tables repeat, or that change nothing in its simulator.
const UNUSED: [&str; 8] = [
    "type",
    "hidden_size",
    "sequence_length",
    "vocab_size",
    "optimizer",
    "heads",
    "head_dim",
    "max_position_embeddings",
];

/// Reads a training configuration with the tables of its folder, on every kind that the tables have for its model; the
/// numbers of devices are the user's.
///
/// # Errors
/// [`LoadError`] if a field or a table is missing or has another form.
pub(super) fn read(text: &str, source: &str, name: &str) -> Result<Workload, LoadError> {
    let raw: Configuration = reader::parse(text, source)?;
    if !(1..=MOST_LAYERS).contains(&raw.num_all_layers) {
        let problem = format!("is {}, must be from 1 to {MOST_LAYERS}", raw.num_all_layers);
        return Err(LoadError::at(source, "num_all_layers", problem, ""));
    }
    if !(1..=MOST_BATCH).contains(&raw.global_batch_size) {
        let problem = format!("is {}, must be from 1 to {MOST_BATCH}", raw.global_batch_size);
        return Err(LoadError::at(source, "global_batch_size", problem, ""));
    }
    let folder = Path::new(source).parent().filter(|_| Path::new(source).is_file());
    let Some(folder) = folder else {
        let repair = "give its path: its tables are files beside it";
        return Err(LoadError::file(source, "is a training configuration of Sailor without its folder", repair));
    };
    let tables = Arc::new(tables(folder)?);
    let model = SailorModel { name: raw.model, layers: raw.num_all_layers };
    let kinds = tables.kinds(&model.name);
    let none = |kind: &&String| ZoneDevices { kind: (*kind).clone(), zone: None, count: 0, price_per_hour: None };
    let linked = |kind: &&&String| tables.links(kind);
    let devices: Vec<ZoneDevices> = kinds.iter().filter(linked).take(MOST_KINDS).map(none).collect();
    let profile = tables.profile(&model, &devices)?;
    let body = raw.num_layers.filter(|&layers| layers + 2 == model.layers);
    let label = |index: usize| match body {
        Some(_) if index == 0 => "embedding".to_string(),
        Some(_) if index + 1 == model.layers => "head".into(),
        _ => format!("layer {}", index + usize::from(body.is_none())),
    };
    let names = (0..model.layers).map(|index| Some(label(index))).collect();
    let known: Vec<&str> =
        UNUSED.into_iter().chain(["model", "global_batch_size", "num_all_layers", "num_layers"]).collect();
    let batch = Some(raw.global_batch_size);
    Ok(Workload {
        unknown_fields: reader::unknown_fields(text, &known),
        ..mixed::workload(profile, names, batch, (name, source, WorkloadFormat::Sailor))
    })
}
