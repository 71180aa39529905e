//! Shell scripts, evaluated as far as constants go; no command runs.
//!
//! The evaluator follows assignments, arrays, arithmetic, `if` and `case` on known values, loops over known words,
//! functions and here-documents. What only a running shell knows (the output of a command, a variable of the
//! environment) stays unknown with its reason. Both branches of an unknown condition are followed, and a variable that
//! differs afterwards is unknown. The result is the list of commands with their words and lines.
//!
//! At most [`MOST_STEPS`] commands are evaluated.

mod arithmetic;
mod command;
mod condition;
mod control;
mod expand;
mod pattern;
mod text;
mod variable;

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use brush_parser::{
    Parser, ParserOptions,
    ast::{AndOr, AndOrList, Command, CompoundCommand, CompoundList, FunctionBody, Pipeline, SourceLocation, Word},
};
use plantui_core::source::LoadError;

pub(crate) use text::{Text, Unknown};

/// Most commands that are evaluated.
const MOST_STEPS: usize = 50_000;

/// Deepest nesting of functions, files and commands in texts.
const DEEPEST: usize = 24;

/// Deepest nesting of brackets in a script. The parser is recursive.
const DEEPEST_BRACKETS: usize = 200;
/// Most opening parentheses in a row. The parser's time doubles with each if they are not closed.
const MOST_IN_A_ROW: usize = 16;

/// Command of a script.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Invocation {
    /// Words after expansion.
    pub(crate) words: Vec<Text>,
    /// Variables that are set for this command.
    pub(crate) environment: Vec<(String, Text)>,
    /// Line.
    pub(crate) line: u32,
    /// Unknown conditions under which it runs.
    pub(crate) conditions: Vec<String>,
}

/// Value that a script takes if nobody sets a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TakenDefault {
    /// Variable.
    pub(crate) name: String,
    /// Value.
    pub(crate) value: String,
    /// Line.
    pub(crate) line: u32,
}

/// Result of a script: its commands, and what they depend on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    /// Commands in the order in which they run.
    pub(crate) commands: Vec<Invocation>,
    /// Defaults that were taken.
    pub(crate) defaults: Vec<TakenDefault>,
    /// Files that here-documents write: name, and text with the line before it.
    pub(crate) files: BTreeMap<String, (String, u32)>,
    /// Options of `#SBATCH` lines, with their lines.
    pub(crate) batch: Vec<(String, String, u32)>,
    /// Files that are sourced but not there.
    pub(crate) missing: Vec<(String, u32)>,
}

/// Reads a file beside the script; `None` if it is not there.
pub(crate) type OpenFile<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Debug, Clone, PartialEq)]
enum Variable {
    Scalar(Text),
    Array(Vec<Text>),
    Map(BTreeMap<String, Text>),
}

/// State that branches may change.
#[derive(Clone, Default)]
struct State {
    variables: BTreeMap<String, Variable>,
    /// Arguments of the script or function; `None` for those of a script, which are not known.
    arguments: Option<Vec<Text>>,
    /// True after `exit`, or after `return` in a function.
    ended: bool,
    /// Loops that `break` or `continue` still leaves.
    leaving: u32,
    /// True if the last of them goes on with its next pass.
    continues: bool,
}

struct Evaluator<'a> {
    file: Arc<str>,
    source: Rc<str>,
    state: State,
    functions: BTreeMap<String, Rc<FunctionBody>>,
    defines: &'a BTreeMap<String, String>,
    open: OpenFile<'a>,
    script: Script,
    conditions: Vec<String>,
    steps: usize,
    depth: usize,
    /// Added to the lines of a text that is evaluated apart.
    offset: u32,
    /// Values that `local` hid, for each function that runs.
    hidden: Vec<BTreeMap<String, Option<Variable>>>,
    /// Condition under which the loop may have been left.
    maybe_left: Option<String>,
    /// Place in the source behind which the next element of an array is looked for.
    cursor: usize,
}

/// Evaluates a script. `defines` sets variables before it starts and keeps their values.
///
/// # Errors
/// [`LoadError`] if the text is no shell script, or is too long to evaluate.
pub(crate) fn evaluate(
    text: &str,
    file: &str,
    defines: &BTreeMap<String, String>,
    open: OpenFile<'_>,
) -> Result<Script, LoadError> {
    let program = parse(text).map_err(|(problem, line)| {
        LoadError::file(file, problem, "correct it, or give the flags alone in a file").on_line(line)
    })?;
    let mut evaluator = Evaluator {
        file: file.into(),
        source: text.into(),
        state: State::default(),
        functions: BTreeMap::new(),
        defines,
        open,
        script: Script { batch: batch_options(text), ..Script::default() },
        conditions: vec![],
        steps: 0,
        depth: 0,
        offset: 0,
        hidden: vec![],
        maybe_left: None,
        cursor: 0,
    };
    evaluator.prepare();
    for list in &program {
        if evaluator.state.ended {
            break;
        }
        evaluator.list(list);
    }
    if evaluator.steps >= MOST_STEPS {
        let problem = format!("runs more than {MOST_STEPS} commands");
        return Err(LoadError::file(file, problem, "give the command that trains, alone in a file"));
    }
    Ok(evaluator.script)
}

type Wrong = (String, Option<usize>);

fn parse(text: &str) -> Result<Vec<CompoundList>, Wrong> {
    let mut depth = 0usize;
    for (line, content) in text.lines().enumerate() {
        let mut row = 0usize;
        for byte in content.bytes() {
            row = if byte == b'(' { row + 1 } else { 0 };
            if row > MOST_IN_A_ROW {
                return Err((format!("has more than {MOST_IN_A_ROW} opening parentheses in a row"), Some(line + 1)));
            }
            match byte {
                b'(' | b'{' => depth += 1,
                b')' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEEPEST_BRACKETS {
                return Err((format!("nests brackets more than {DEEPEST_BRACKETS} deep"), Some(line + 1)));
            }
        }
    }
    // The parser takes the number of a file descriptor for one of 32 bits.
    let long = |line: &str| {
        let mut digits = 0;
        line.bytes().any(|byte| {
            let redirects = matches!(byte, b'<' | b'>') && digits > 9;
            digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
            redirects
        })
    };
    if let Some(line) = text.lines().position(long) {
        return Err(("redirects a file descriptor that no shell has".into(), Some(line + 1)));
    }
    let options = ParserOptions::default();
    let mut parser = Parser::new(std::io::Cursor::new(text.as_bytes()), &options);
    match parser.parse_program() {
        Ok(program) => Ok(program.complete_commands),
        Err(error) => {
            let told = error.to_string();
            let line = told
                .split("line ")
                .nth(1)
                .and_then(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok());
            Err(("is not read as a shell script".into(), line))
        }
    }
}

/// Options of `#SBATCH` lines.
fn batch_options(text: &str) -> Vec<(String, String, u32)> {
    let mut all = vec![];
    for (number, line) in text.lines().enumerate() {
        // sbatch reads the lines before the first command.
        if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            break;
        }
        let Some(options) = line.trim_start().strip_prefix("#SBATCH") else { continue };
        let options = options.split(" #").next().unwrap_or_default();
        let mut words = options.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix('-') else { continue };
            let (name, value) = match (word.strip_prefix("--"), word.split_once('=')) {
                (Some(_), Some((name, value))) => (name.trim_start_matches('-').to_string(), value.to_string()),
                (Some(long), None) => {
                    (long.to_string(), words.next_if(|next| !next.starts_with('-')).unwrap_or("").into())
                }
                (None, _) => {
                    let (letter, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
                    let value = if rest.is_empty() { words.next().unwrap_or("") } else { rest };
                    (letter.to_string(), value.to_string())
                }
            };
            all.push((name, value.trim_matches(['"', '\'']).to_string(), number as u32 + 1));
        }
    }
    all
}

impl Evaluator<'_> {
    /// Variables that are set before the script starts: those that the caller defines, and Slurm's from `#SBATCH` lines.
    fn prepare(&mut self) {
        let mut set = |name: &str, value: &str, line: u32| {
            self.state.variables.insert(name.into(), Variable::Scalar(Text::known(value, line)));
        };
        for (name, value, line) in self.script.batch.clone() {
            let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
            let devices: String = value.rsplit(':').next().unwrap_or("").into();
            match name.as_str() {
                "nodes" | "N" => {
                    ["SLURM_NNODES", "SLURM_JOB_NUM_NODES"].iter().for_each(|name| set(name, &digits, line));
                }
                "ntasks-per-node" => set("SLURM_NTASKS_PER_NODE", &digits, line),
                "ntasks" | "n" => ["SLURM_NTASKS", "SLURM_NPROCS"].iter().for_each(|name| set(name, &digits, line)),
                "gpus-per-node" => {
                    ["SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"].iter().for_each(|name| set(name, &devices, line));
                }
                _ => {}
            }
        }
        let arguments: Vec<Text> = (1..100u32)
            .map_while(|number| self.defines.get(&number.to_string()))
            .map(|value| Text::known(value.as_str(), 0))
            .collect();
        self.state.arguments = (!arguments.is_empty()).then_some(arguments);
        for (name, value) in self.defines {
            self.state.variables.insert(name.clone(), Variable::Scalar(Text::known(value.as_str(), 0)));
        }
    }

    fn list(&mut self, list: &CompoundList) -> Option<bool> {
        let mut status = Some(true);
        for item in &list.0 {
            if self.state.ended || self.state.leaving > 0 || self.steps >= MOST_STEPS {
                break;
            }
            status = self.and_or(&item.0);
        }
        status
    }

    fn and_or(&mut self, list: &AndOrList) -> Option<bool> {
        let mut status = self.pipeline(&list.first);
        for next in &list.additional {
            if self.state.ended || self.state.leaving > 0 {
                break;
            }
            let (pipeline, wanted) = match next {
                AndOr::And(pipeline) => (pipeline, true),
                AndOr::Or(pipeline) => (pipeline, false),
            };
            status = match status {
                Some(done) if done == wanted => self.pipeline(pipeline),
                Some(done) => Some(done),
                None => {
                    let line = pipeline.seq.first().map_or(0, |command| self.line(command));
                    self.uncertain(&format!("the command before it (line {line})"), |evaluator| {
                        evaluator.pipeline(pipeline);
                    });
                    None
                }
            };
        }
        status
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Option<bool> {
        let mut status = None;
        for command in &pipeline.seq {
            status = self.command(command);
        }
        if pipeline.seq.len() > 1 {
            // Its status is that of the last command, whose input is not known.
            status = None;
        }
        if pipeline.bang { status.map(|done| !done) } else { status }
    }

    /// Runs something that may or may not happen, and merges the states.
    fn uncertain(&mut self, condition: &str, run: impl FnOnce(&mut Self)) {
        let before = self.state.clone();
        self.conditions.push(condition.into());
        run(self);
        self.conditions.pop();
        let after = std::mem::replace(&mut self.state, before);
        self.merge(after, condition);
    }

    /// Merges the state after another branch into the current one.
    fn merge(&mut self, other: State, condition: &str) {
        if other.ended {
            return;
        }
        if self.state.ended {
            self.state = other;
            return;
        }
        if other.leaving != self.state.leaving {
            // Which branch leaves the loop is not known: later passes may happen or not.
            self.maybe_left = Some(condition.into());
            (self.state.leaving, self.state.continues) = (0, false);
        }
        let mut names: Vec<String> = self.state.variables.keys().chain(other.variables.keys()).cloned().collect();
        names.sort();
        names.dedup();
        for name in names {
            let (ours, theirs) = (self.state.variables.get(&name), other.variables.get(&name));
            if ours == theirs {
                continue;
            }
            let shown = |variable: Option<&Variable>| match variable {
                Some(Variable::Scalar(text)) => format!("`{}`", one_line(&text.shown())),
                Some(Variable::Array(_) | Variable::Map(_)) => "a list".into(),
                None => "not set".into(),
            };
            let reason =
                format!("${name} is {} or {}, by {condition} (--define {name}=VALUE)", shown(ours), shown(theirs));
            let line = self.offset;
            self.state.variables.insert(name, Variable::Scalar(Text::computed(reason, line)));
        }
    }

    fn line(&self, command: &Command) -> u32 {
        command.location().map_or(0, |span| self.lined(span.start.line))
    }

    fn lined(&self, line: usize) -> u32 {
        u32::try_from(line).unwrap_or(0) + self.offset
    }

    fn word_line(&self, word: &Word, usual: u32) -> u32 {
        // A word behind a continued line starts before the continuation for the parser.
        let newlines = word.value.bytes().filter(|byte| *byte == b'\n').count();
        word.loc.as_ref().map_or(usual, |span| self.lined(span.end.line.saturating_sub(newlines).max(span.start.line)))
    }

    fn command(&mut self, command: &Command) -> Option<bool> {
        self.steps += 1;
        if self.steps >= MOST_STEPS || self.state.ended || self.depth > DEEPEST {
            return None;
        }
        let line = self.line(command);
        match command {
            Command::Simple(simple) => self.simple(simple, line),
            Command::Function(function) => {
                self.functions.insert(function.fname.value.clone(), Rc::new(function.body.clone()));
                Some(true)
            }
            Command::ExtendedTest(test, _) => self.extended(&test.expr, line),
            Command::Compound(compound, redirects) => {
                let status = self.compound(compound, line);
                if redirects.is_some() {
                    // A loop over a file's lines: what it counts is not known.
                    if matches!(compound, CompoundCommand::WhileClause(_)) {
                        return None;
                    }
                }
                status
            }
        }
    }
}

/// Numbers of `seq`.
fn sequence(first: i64, last: Option<i64>) -> Option<String> {
    let last = last.filter(|last| last - first < 10_000)?;
    Some((first..=last).map(|number| number.to_string()).collect::<Vec<_>>().join(" "))
}

fn is_name(word: &str) -> bool {
    word.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Text in one line, shortened for a message.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= 60 { line } else { line.chars().take(58).chain("..".chars()).collect() }
}

/// Offset of the start of a line, from 1.
fn line_start(text: &str, line: usize) -> usize {
    match line {
        0 | 1 => 0,
        line => text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1),
    }
}

#[cfg(test)]
mod tests;
