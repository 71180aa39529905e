//! `plantui lint`: reports parts of a profile that may mislead a planner.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CommandEnd, Failure, input, output,
    profile_input::ProfileArgs,
    report::{self, counted, line},
};
use crate::schemas::DocumentSchema;
use crate::{
    plan::document::WorkloadPart,
    workload::{
        NodeId, Workload,
        lint::{Finding, Severity, lint},
    },
};

const EXAMPLES: &str = "\
Examples:
  plantui lint model.json
  plantui lint model.json --json
  plantui generate llama-3-8b | plantui lint -

A finding is not an error: the workload can be planned, but its plans may be misleading. Exit code 0 with or without \
findings, 2 for a workload that cannot be read.";

/// List facts in a workload that may mislead a planner
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct LintArgs {
    /// Workload to look at: a file, or `-` for standard input
    workload: PathBuf,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Prints one JSON document (schema plantui.lint/1) in place of the text
    #[arg(long)]
    json: bool,
}

/// Findings about a workload.
#[derive(Debug, Serialize, JsonSchema)]
struct LintDocument<'a> {
    schema: &'static str,
    workload: WorkloadPart,
    findings: Vec<FindingEntry<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FindingEntry<'a> {
    rule: &'static str,
    severity: Severity,
    /// Node ids; empty for the file as a whole.
    nodes: Vec<NodeId>,
    what: &'a str,
    why: &'static str,
}

impl LintArgs {
    /// Prints the findings.
    ///
    /// # Errors
    /// [`Failure`] for a workload that cannot be read.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let workload = self.profile.over(input::workload_given(&self.workload, self.profile.facts().as_slice())?)?;
        let findings = lint(&workload);
        output::print(&if self.json {
            output::json(&document(&workload, &findings))
        } else {
            text(&workload, &findings)
        })?;
        Ok(CommandEnd::Done)
    }
}

fn document<'a>(workload: &Workload, findings: &'a [Finding]) -> LintDocument<'a> {
    let entry = |finding: &'a Finding| FindingEntry {
        rule: finding.rule,
        severity: finding.severity,
        nodes: finding.nodes.iter().map(|&node| workload.nodes[node].id).collect(),
        what: &finding.what,
        why: finding.why,
    };
    LintDocument { schema: "plantui.lint/1", workload: workload.into(), findings: findings.iter().map(entry).collect() }
}

fn text(workload: &Workload, findings: &[Finding]) -> String {
    let mut text = String::new();
    line(&mut text, format_args!("{}: {}", report::about(workload), counted(findings.len(), "finding")));
    for finding in findings {
        let Finding { rule, severity, what, why, .. } = finding;
        line(&mut text, format_args!(""));
        line(&mut text, format_args!("{severity}: {}: {what} [{rule}]", finding.subject(workload)));
        line(&mut text, format_args!("  {why}"));
    }
    text
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<LintDocument<'_>>("plantui.lint/1")
}
