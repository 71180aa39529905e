//! Job file by its syntax, as parts of which each may be a job: commands of a script, functions of a Python file, or the
//! whole file.

use std::collections::BTreeMap;

use plantui_core::source::LoadError;

use super::{
    launch::{self, Launch},
    setting::{Place, Setting, Settings, Value},
    syntax::{
        dump, python,
        shell::{self, OpenFile},
        toml, yaml,
    },
};

/// Syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// JSON, YAML or TOML.
    Tree,
    /// Shell script, or flags alone.
    Shell,
    /// Log with a list of arguments.
    Dump,
    /// Log without one.
    Log,
    /// Python.
    Python,
}

/// Part of a file that may be a job.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Function, or line of the command; empty for a whole file.
    pub(crate) name: String,
    /// Settings, or flags of the program.
    pub(crate) settings: Settings,
    /// Launch of the program.
    pub(crate) launch: Option<Launch>,
}

/// File of a job.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) source: String,
    pub(crate) syntax: Syntax,
    pub(crate) parts: Vec<Part>,
    /// Files that the script writes: text, and the line before it.
    pub(crate) files: BTreeMap<String, (String, u32)>,
    /// Values that the script takes if nobody sets them: name, value, line.
    pub(crate) defaults: Vec<shell::TakenDefault>,
    /// Sourced files that are not there.
    pub(crate) missing: Vec<(String, u32)>,
    /// Text of a log, whose lines state times.
    pub(crate) text: String,
    /// Comments of exports that state facts.
    pub(crate) comments: Vec<(String, u32)>,
}

/// Longest program text; its parsers are recursive.
const LONGEST_PROGRAM: usize = 512 << 10;

/// Reads a file by its syntax.
///
/// # Errors
/// [`LoadError`] with the line of a syntax error.
pub(crate) fn read(
    text: &str,
    source: &str,
    defines: &BTreeMap<String, String>,
    open: OpenFile<'_>,
) -> Result<Document, LoadError> {
    let mut document = Document {
        source: source.into(),
        syntax: syntax(text, source),
        parts: vec![],
        files: BTreeMap::new(),
        defaults: vec![],
        missing: vec![],
        text: String::new(),
        comments: comments(text),
    };
    let whole = |settings: Settings| vec![Part { name: String::new(), settings, launch: None }];
    if matches!(document.syntax, Syntax::Shell | Syntax::Python) && text.len() > LONGEST_PROGRAM {
        let problem = format!("is a program of more than {} KiB", LONGEST_PROGRAM >> 10);
        return Err(LoadError::file(source, problem, "give the part that configures the job"));
    }
    match document.syntax {
        Syntax::Tree if is_toml(text, source) => document.parts = whole(toml::read(text, source)?),
        Syntax::Tree => document.parts = whole(yaml::read(text, source)?),
        Syntax::Dump | Syntax::Log => {
            document.parts = whole(dump::read(text, source));
            document.text = text.into();
        }
        Syntax::Python => {
            let recipes = python::read(text, source, defines)?;
            document.parts = recipes
                .into_iter()
                .map(|recipe| Part { name: recipe.name, settings: recipe.settings, launch: None })
                .collect();
        }
        Syntax::Shell => {
            let script = shell::evaluate(text, source, defines, open)?;
            document.parts = launch::launches(&script, source)
                .into_iter()
                .map(|launch| Part {
                    name: format!("line {}", launch.line),
                    settings: launch.flags.clone(),
                    launch: Some(launch),
                })
                .collect();
            document.files = script.files;
            document.defaults = script.defaults;
            document.missing = script.missing;
        }
    }
    Ok(document)
}

impl Document {
    /// Adds settings to every part, as if the file ended with them.
    pub(crate) fn add(&mut self, with: &[(String, String)]) {
        for part in &mut self.parts {
            for (name, value) in with {
                part.settings.push(Setting::new(name, Value::Text(value.clone()), Place::new("--with", 0)));
            }
        }
    }
}

fn extension(source: &str) -> String {
    source.rsplit_once('.').map_or(String::new(), |(_, extension)| extension.to_ascii_lowercase())
}

fn is_toml(text: &str, source: &str) -> bool {
    match extension(source).as_str() {
        "toml" => true,
        "json" | "yaml" | "yml" => false,
        _ => !text.trim_start().starts_with('{') && toml::read(text, source).is_ok(),
    }
}

fn syntax(text: &str, source: &str) -> Syntax {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let has = |words: &[&str]| text.lines().any(|line| words.iter().any(|word| line.starts_with(word)));
    // No script begins like that.
    if text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"')) {
        return Syntax::Tree;
    }
    match extension(source).as_str() {
        "json" | "toml" | "yaml" | "yml" => return Syntax::Tree,
        "py" => return Syntax::Python,
        "sh" | "bash" | "slurm" | "sbatch" | "sub" | "batch" => return Syntax::Shell,
        _ => {}
    }
    if first.starts_with("#!") {
        return if first.contains("python") { Syntax::Python } else { Syntax::Shell };
    }
    if first.trim_start().starts_with('{') {
        return Syntax::Tree;
    }
    if dump::read(text, source).iter().count() >= 3 {
        return Syntax::Dump;
    }
    if text.contains("Training starts at step") && text.contains("tps:") {
        return Syntax::Log;
    }
    if has(&["def ", "import ", "from ", "class "]) {
        return Syntax::Python;
    }
    let flags = text.lines().any(|line| line.trim_start().starts_with("--") && line.trim() != "---");
    if !flags
        && (toml::read(text, source).is_ok_and(|read| read.iter().next().is_some()) || yaml::read(text, source).is_ok())
    {
        return Syntax::Tree;
    }
    Syntax::Shell
}

/// Comments of a text without their marks, and their lines.
fn comments(text: &str) -> Vec<(String, u32)> {
    let lines = text.lines().enumerate().filter_map(|(number, line)| {
        let comment = line.trim_start().strip_prefix('#')?;
        Some((comment.trim().to_string(), number as u32 + 1))
    });
    lines.take(1000).collect()
}
