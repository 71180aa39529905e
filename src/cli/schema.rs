//! `plantui schema`: JSON Schemas of all documents.

use std::{fs, path::PathBuf};

use clap::Args;

use super::{
    CommandEnd, Failure, calibrate_document, check, compare, estimate, explain, explain_job, hardware, import, input,
    lint,
    output::{self, Destination},
    planners,
    report::table,
    schedule_table, seek_report, simulate, sweep_report, terms, topologies,
};
use crate::{
    schemas::{self, DocumentSchema},
    source::error::printable,
    text,
};

const EXAMPLES: &str = "\
Examples:
  plantui schema                          the documents
  plantui schema plan > plan.schema.json
  plantui schema --directory docs/schema --force";

/// Print the JSON Schema of a document
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Document, such as plan or plantui.plan/1 [default: a list of all]
    name: Option<String>,
    /// Writes a file for every document into this directory, and creates the directory
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    directory: Option<PathBuf>,
    /// Lets --directory replace files
    #[arg(long, requires = "directory")]
    force: bool,
}

impl SchemaArgs {
    /// Prints or writes the schemas.
    ///
    /// # Errors
    /// [`Failure`] for an unknown name, or if a file cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let all = all();
        if let Some(directory) = &self.directory {
            fs::create_dir_all(directory).map_err(|error| Failure::writing(&input::shown(directory), &error))?;
            for document in &all {
                let path = directory.join(format!("{}.schema.json", document.name()));
                Destination::new(Some(&path), self.force).write(&output::json(&document.schema))?;
            }
            return Ok(CommandEnd::Done);
        }
        output::print(&match &self.name {
            Some(name) => output::json(&find(&all, name)?.schema),
            None => list(&all),
        })?;
        Ok(CommandEnd::Done)
    }
}

/// Schemas of all documents, by name.
pub(super) fn all() -> Vec<DocumentSchema> {
    let mut all = schemas::all();
    all.extend([
        check::schema(),
        compare::schema(),
        estimate::schema(),
        explain::schema(),
        explain_job::schema(),
        import::schema(),
        calibrate_document::schema(),
        lint::schema(),
        seek_report::schema(),
        sweep_report::schema(),
        simulate::schema(),
        schedule_table::schema(),
        hardware::schema(),
        planners::schema(),
        terms::schema(),
        topologies::schema(),
    ]);
    all.sort_by_key(DocumentSchema::name);
    all
}

fn find<'a>(all: &'a [DocumentSchema], name: &str) -> Result<&'a DocumentSchema, Failure> {
    all.iter().find(|document| document.name() == name || document.id == name).ok_or_else(|| {
        let near = text::nearest(name, all.iter().map(DocumentSchema::name));
        let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Failure::refused(format!("there is no document `{}`", printable(name)), hint + "`plantui schema` lists all")
    })
}

fn list(all: &[DocumentSchema]) -> String {
    let mut text = String::new();
    let about = |document: &DocumentSchema| {
        let told = document.schema.get("description").and_then(serde_json::Value::as_str).unwrap_or_default();
        told.lines().next().unwrap_or_default().to_string()
    };
    let rows: Vec<Vec<String>> =
        all.iter().map(|document| vec![document.name().into(), document.id.into(), about(document)]).collect();
    table(&mut text, &rows);
    text
}
