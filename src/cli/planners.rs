//! `plantui planners`: lists the planners with their options and limits.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CommandEnd, Failure, output, report::line};
use crate::planner::{self, OptionKind, OptionSpec, Planner};
use crate::schemas::DocumentSchema;

const EXAMPLES: &str = "\
Examples:
  plantui planners
  plantui planners --json

The options are what `plantui plan --set NAME=VALUE` takes.";

/// List the planners with their options
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlannersArgs {
    /// Prints a JSON array in place of the text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PlannerEntry {
    id: &'static str,
    name: &'static str,
    summary: &'static str,
    paper: &'static str,
    objective: ObjectiveEntry,
    limits: Vec<&'static str>,
    options: Vec<OptionEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ObjectiveEntry {
    name: &'static str,
    unit: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OptionEntry {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    default: serde_json::Value,
    /// Default for people.
    #[serde(skip)]
    default_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<f64>,
    /// Unit of a quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
    /// Accepted values in words.
    #[serde(skip)]
    takes: String,
    values: Vec<ValueEntry>,
    help: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ValueEntry {
    value: serde_json::Value,
    help: &'static str,
}

impl PlannersArgs {
    /// Prints the list.
    ///
    /// # Errors
    /// [`Failure`] if standard output cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let entries: Vec<PlannerEntry> = planner::all().iter().map(|&planner| entry(planner)).collect();
        output::print(&if self.json { output::json(&entries) } else { text(&entries) })?;
        Ok(CommandEnd::Done)
    }
}

fn entry(planner: &dyn Planner) -> PlannerEntry {
    let info = planner.info();
    PlannerEntry {
        id: info.id,
        name: info.name,
        summary: info.summary,
        paper: info.paper,
        objective: ObjectiveEntry { name: info.objective, unit: info.unit },
        limits: planner.declaration().limits.iter().map(|kind| kind.label()).collect(),
        options: planner.options().iter().map(option).collect(),
    }
}

fn option(spec: &OptionSpec) -> OptionEntry {
    let (kind, values) = match spec.kind {
        OptionKind::Flag { .. } => {
            let value = |value: bool| ValueEntry { value: value.into(), help: "" };
            ("flag", vec![value(true), value(false)])
        }
        OptionKind::Choice { choices, .. } => {
            ("choice", choices.iter().map(|&(value, help)| ValueEntry { value: value.into(), help }).collect())
        }
        OptionKind::Number { whole, zero: Some(word), .. } => {
            (if whole { "integer" } else { "number" }, vec![ValueEntry { value: word.into(), help: "" }])
        }
        OptionKind::Number { whole: true, .. } => ("integer", vec![]),
        OptionKind::Number { .. } | OptionKind::Quantity { .. } => ("number", vec![]),
        OptionKind::File { .. } => ("file", vec![]),
        OptionKind::Text { .. } => ("text", vec![]),
    };
    let (least, most) = match spec.kind {
        OptionKind::Number { least, most, .. } | OptionKind::Quantity { least, most, .. } => (Some(least), Some(most)),
        _ => (None, None),
    };
    let default = spec.default_value().json();
    let listed = matches!(spec.kind, OptionKind::Flag { .. } | OptionKind::Choice { .. });
    let takes = spec.values().join(if listed { "|" } else { ", " });
    let unit = match spec.kind {
        OptionKind::Quantity { unit, .. } => Some(unit.name()),
        _ => None,
    };
    let default_text = spec.show(&spec.default_value());
    OptionEntry { name: spec.name, default_text, kind, default, least, most, unit, takes, values, help: spec.help }
}

fn text(planners: &[PlannerEntry]) -> String {
    let mut text = String::new();
    for (i, planner) in planners.iter().enumerate() {
        if i > 0 {
            line(&mut text, format_args!(""));
        }
        line(&mut text, format_args!("{}  ({})", planner.id, planner.name));
        line(&mut text, format_args!("  {}", planner.summary));
        line(&mut text, format_args!("  paper: {}", planner.paper));
        line(&mut text, format_args!("  minimises: {} in {}", planner.objective.name, planner.objective.unit));
        line(&mut text, format_args!("  limits: {}", planner.limits.join(", ")));
        if !planner.options.is_empty() {
            line(&mut text, format_args!("  options:"));
        }
        for option in &planner.options {
            let shown = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_string);
            let default = if option.default_text.is_empty() { "none" } else { &option.default_text };
            let takes = if option.values.is_empty() { format!("<{}>", option.takes) } else { option.takes.clone() };
            line(&mut text, format_args!("    {}={takes}  [default: {default}]", option.name));
            line(&mut text, format_args!("        {}", option.help));
            for value in option.values.iter().filter(|value| !value.help.is_empty()) {
                line(&mut text, format_args!("          {}: {}", shown(&value.value), value.help));
            }
        }
    }
    text
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<Vec<PlannerEntry>>("planners")
}
