//! JSON Schemas of the documents that this crate reads and writes, from the types that do so.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::Value;

use crate::{
    cluster::topology,
    family::training::calibrate,
    plan::document,
    workload::formats::{mixed, operators, stage_times, training},
};

/// Document with its schema.
#[derive(Debug, Clone)]
pub struct DocumentSchema {
    /// Value of its field `schema`, or the name of a list.
    pub id: &'static str,
    /// JSON Schema, draft 2020-12.
    pub schema: Schema,
}

impl DocumentSchema {
    /// Schema of a document that is read, whose field `schema` is `id`: absent fields may have a default.
    pub fn read<T: JsonSchema>(id: &'static str) -> Self {
        DocumentSchema::new::<T>(id, SchemaSettings::draft2020_12())
    }

    /// Schema of a document that is only written. One without a field `schema` has the name of its list as `id`.
    pub fn written<T: JsonSchema>(id: &'static str) -> Self {
        DocumentSchema::new::<T>(id, SchemaSettings::draft2020_12().for_serialize())
    }

    fn new<T: JsonSchema>(id: &'static str, settings: SchemaSettings) -> Self {
        let mut told = DocumentSchema { id, schema: settings.into_generator().into_root_schema_for::<T>() };
        told.schema.insert("title".into(), id.into());
        if let Some(field) = told.schema.pointer_mut("/properties/schema").and_then(Value::as_object_mut) {
            field.insert("const".into(), id.into());
        }
        told
    }

    /// Name without the version: `plan` of `plantui.plan/1`.
    pub fn name(&self) -> &'static str {
        let name = self.id.strip_prefix("plantui.").unwrap_or(self.id);
        name.split('/').next().unwrap_or(name)
    }
}

/// Schemas of all documents of this crate.
pub fn all() -> Vec<DocumentSchema> {
    vec![
        DocumentSchema::read::<document::Document>(document::SCHEMA),
        DocumentSchema::read::<stage_times::StageTimes>(stage_times::SCHEMA),
        DocumentSchema::read::<calibrate::Calibration>(calibrate::CALIBRATION_SCHEMA),
        DocumentSchema::read::<calibrate::MeasuredKernels>(calibrate::KERNELS_SCHEMA),
        training::schema(),
        operators::schema(),
        mixed::schema(),
        topology::schema(),
    ]
}
