//! Shell scripts, evaluated as far as constants go; no command runs.
//!
//! The evaluator follows assignments, arrays, arithmetic, `if` and `case` on known values, loops over known words,
//! functions and here-documents. What only a running shell knows (the output of a command, a variable of the
//! environment) stays unknown with its reason. Both branches of an unknown condition are followed, and a variable that
//! differs afterwards is unknown. The result is the list of commands with their words and lines.
//!
//! At most [`MOST_STEPS`] commands are evaluated.

mod arithmetic;
mod condition;
mod expand;
mod pattern;
mod text;

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AndOrList, Assignment, AssignmentName, AssignmentValue, CaseClauseCommand, Command,
        CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, FunctionBody, IfClauseCommand, IoFileRedirectKind,
        IoFileRedirectTarget, IoRedirect, Pipeline, SimpleCommand, SourceLocation, Word,
    },
};
use plantui_core::source::LoadError;

pub(crate) use text::{Text, Unknown};

/// Most commands that are evaluated.
const MOST_STEPS: usize = 50_000;

/// Deepest nesting of functions, files and commands in texts.
const DEEPEST: usize = 24;

/// Deepest nesting of brackets in a script. The parser is recursive.
const DEEPEST_BRACKETS: usize = 200;

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

/// What a script does.
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
        for byte in content.bytes() {
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

    fn compound(&mut self, compound: &CompoundCommand, line: u32) -> Option<bool> {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list),
            CompoundCommand::Subshell(inner) => {
                let before = self.state.clone();
                let status = self.list(&inner.list);
                self.state = before;
                status
            }
            CompoundCommand::Arithmetic(expression) => {
                self.arithmetic(&expression.expr.value, line).ok().map(|value| value != 0)
            }
            CompoundCommand::IfClause(clause) => self.if_clause(clause, line),
            CompoundCommand::CaseClause(clause) => self.case_clause(clause, line),
            CompoundCommand::ForClause(clause) => {
                let values = match &clause.values {
                    Some(words) => words.iter().flat_map(|word| self.fields(&word.value, line)).collect(),
                    None => self.state.arguments.clone().unwrap_or_default(),
                };
                let before = self.maybe_left.take();
                for value in values.iter().take(256) {
                    let pass = |evaluator: &mut Self| {
                        evaluator.assign(&clause.variable_name, value.clone());
                        evaluator.list(&clause.body.list);
                    };
                    if self.pass(pass) {
                        break;
                    }
                }
                self.maybe_left = before;
                None
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                let until = matches!(compound, CompoundCommand::UntilClause(_));
                let before = self.maybe_left.take();
                for _ in 0..1000 {
                    match self.list(&clause.0) {
                        Some(holds) if holds != until => {
                            let left = self.pass(|evaluator| {
                                evaluator.list(&clause.1.list);
                            });
                            if left {
                                break;
                            }
                        }
                        Some(_) => break,
                        None => {
                            self.unknown_loop(&clause.0, &clause.1.list, line);
                            (self.state.leaving, self.state.continues) = (0, false);
                            break;
                        }
                    }
                }
                self.maybe_left = before;
                None
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                let value = |expression: &Option<brush_parser::ast::UnexpandedArithmeticExpr>| {
                    expression.as_ref().map_or_else(String::new, |expression| expression.value.clone())
                };
                let known = self.arithmetic(&value(&clause.initializer), line).is_ok();
                for _ in 0..1000 {
                    match self.arithmetic(&value(&clause.condition), line) {
                        Ok(holds) if known && holds != 0 => {
                            let left = self.pass(|evaluator| {
                                evaluator.list(&clause.body.list);
                            });
                            if left {
                                break;
                            }
                            let _ = self.arithmetic(&value(&clause.updater), line);
                        }
                        Ok(_) if known => break,
                        _ => {
                            self.uncertain(&format!("the loop in line {line}"), |evaluator| {
                                evaluator.list(&clause.body.list);
                            });
                            break;
                        }
                    }
                }
                None
            }
            CompoundCommand::Coprocess(_) => None,
        }
    }

    /// One pass of a loop; true if the loop is left behind it.
    fn pass(&mut self, body: impl FnOnce(&mut Self)) -> bool {
        match self.maybe_left.clone() {
            Some(condition) => self.uncertain(&condition, body),
            None => body(self),
        }
        if self.state.leaving == 0 {
            return self.state.ended;
        }
        self.state.leaving -= 1;
        let goes_on = self.state.leaving == 0 && self.state.continues;
        if goes_on {
            self.state.continues = false;
        }
        !goes_on
    }

    /// Loop with an unknown condition. One over the script's arguments does nothing without arguments; another one runs
    /// once or never.
    fn unknown_loop(&mut self, condition: &CompoundList, body: &CompoundList, line: u32) {
        let told = condition.to_string();
        if ["$#", "$1", "${1", "getopts"].iter().any(|word| told.contains(word)) {
            self.assume("$@", &Text::known("no arguments", line), line);
            return;
        }
        // Twice: what changes from one pass to the next depends on the number of passes.
        for _ in 0..2 {
            self.uncertain(&format!("the loop in line {line}"), |evaluator| {
                evaluator.list(body);
            });
        }
    }

    fn if_clause(&mut self, clause: &IfClauseCommand, line: u32) -> Option<bool> {
        let empty = vec![];
        let elses = clause.elses.as_ref().unwrap_or(&empty);
        let mut branches = vec![(Some(&clause.condition), &clause.then)];
        branches.extend(elses.iter().map(|branch| (branch.condition.as_ref(), &branch.body)));
        self.branches(&branches, line)
    }

    /// Branches in order; the first whose condition holds is taken.
    fn branches(&mut self, branches: &[(Option<&CompoundList>, &CompoundList)], line: u32) -> Option<bool> {
        let Some(((condition, body), rest)) = branches.split_first() else { return Some(true) };
        let status = condition.map_or(Some(true), |condition| self.list(condition));
        if self.state.ended {
            return None;
        }
        match status {
            Some(true) => self.list(body),
            Some(false) => self.branches(rest, line),
            None => {
                let told = condition.map_or_else(String::new, ToString::to_string);
                let shown = format!("the condition `{}` (line {line})", one_line(&told));
                self.either(
                    &shown,
                    |evaluator| {
                        evaluator.list(body);
                    },
                    |evaluator| {
                        evaluator.branches(rest, line);
                    },
                );
                None
            }
        }
    }

    /// Follows two branches of an unknown condition.
    fn either(&mut self, condition: &str, first: impl FnOnce(&mut Self), second: impl FnOnce(&mut Self)) {
        let before = self.state.clone();
        self.conditions.push(condition.into());
        first(self);
        let after = std::mem::replace(&mut self.state, before);
        second(self);
        self.conditions.pop();
        self.merge(after, condition);
    }

    fn case_clause(&mut self, clause: &CaseClauseCommand, line: u32) -> Option<bool> {
        let value = self.joined(&clause.value.value, line);
        let known = self.read(&value);
        let mut unknown = vec![];
        for case in &clause.cases {
            let Some(body) = &case.cmd else { continue };
            let patterns: Vec<Text> = case.patterns.iter().map(|word| self.joined(&word.value, line)).collect();
            let matched = known.as_ref().map(|text| patterns.iter().any(|p| pattern::matches(&p.shown(), text)));
            match matched {
                Some(true) => return self.list(body),
                Some(false) => {}
                None => unknown.push(body),
            }
        }
        if known.is_none() {
            let shown = format!("the case of `{}` (line {line})", one_line(&clause.value.value));
            for body in unknown {
                self.uncertain(&shown, |evaluator| {
                    evaluator.list(body);
                });
            }
            return None;
        }
        Some(true)
    }

    fn simple(&mut self, command: &SimpleCommand, line: u32) -> Option<bool> {
        let line = if line > 0 { line } else { self.offset };
        let mut assignments = vec![];
        let mut words: Vec<Text> = vec![];
        let mut redirects = vec![];
        let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
        for item in prefix {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => assignments.push(assignment),
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => redirects.push(redirect),
                _ => {}
            }
        }
        let Some(name) = &command.word_or_name else {
            assignments.into_iter().for_each(|assignment| self.assignment(assignment));
            return Some(true);
        };
        words.extend(self.fields(&name.value, self.word_line(name, line)));
        let declaration = words.first().and_then(|word| word.read().ok()).unwrap_or_default();
        let declares = ["export", "declare", "local", "readonly", "typeset"].contains(&declaration.as_str());
        let mut hides = ["declare", "local", "typeset"].contains(&declaration.as_str());
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) if declares => {
                    if let (true, AssignmentName::VariableName(name)) = (hides, &assignment.name) {
                        self.hide(name);
                    }
                    self.assignment(assignment);
                }
                CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                    let line = self.word_line(word, line);
                    if hides && word.value.starts_with('-') && word.value.contains('g') {
                        hides = false;
                    } else if hides && is_name(&word.value) {
                        self.hide(&word.value);
                        self.state.variables.remove(&word.value);
                    }
                    words.extend(self.fields(&word.value, line));
                }
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => redirects.push(redirect),
                CommandPrefixOrSuffixItem::ProcessSubstitution(..) => {}
            }
        }
        let environment: Vec<(String, Text)> = assignments
            .iter()
            .filter_map(|assignment| match (&assignment.name, &assignment.value) {
                (AssignmentName::VariableName(name), AssignmentValue::Scalar(word)) => {
                    Some((name.clone(), self.joined(&word.value, line)))
                }
                _ => None,
            })
            .collect();
        self.run(words, environment, &redirects, line)
    }

    /// Runs a command with its words.
    fn run(
        &mut self,
        words: Vec<Text>,
        environment: Vec<(String, Text)>,
        redirects: &[&IoRedirect],
        line: u32,
    ) -> Option<bool> {
        let name = match words.first().map(Text::read) {
            Some(Ok(name)) => name,
            Some(Err(_)) => String::new(),
            None => return Some(true),
        };
        if let Some(body) = self.functions.get(&name).cloned() {
            return self.call(&body, &words, line);
        }
        match name.as_str() {
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                for word in &words[1..] {
                    let shown = word.shown();
                    if let Some((name, value)) = shown.split_once('=').filter(|(name, _)| is_name(name)) {
                        let value = if word.read().is_ok() { Text::known(value, word.line()) } else { word.clone() };
                        self.assign(name, value);
                    }
                }
                Some(true)
            }
            "unset" => {
                words[1..].iter().for_each(|word| drop(self.state.variables.remove(&word.shown())));
                Some(true)
            }
            "set" => {
                if let Some(at) = words.iter().position(|word| word.shown() == "--") {
                    self.state.arguments = Some(words[at + 1..].to_vec());
                }
                Some(true)
            }
            "shift" => {
                let count = words.get(1).map_or(Some(1), |word| word.shown().parse::<usize>().ok());
                match (self.state.arguments.as_mut(), count) {
                    (Some(arguments), Some(count)) if count <= arguments.len() => drop(arguments.drain(..count)),
                    (Some(_), Some(_)) => return Some(false),
                    (Some(_), None) => self.state.arguments = None,
                    (None, _) => {}
                }
                Some(true)
            }
            "exit" | "return" => {
                self.state.ended = true;
                None
            }
            "break" | "continue" => {
                let levels = words.get(1).and_then(|word| word.shown().parse().ok()).unwrap_or(1);
                (self.state.leaving, self.state.continues) = (levels, name == "continue");
                None
            }
            ":" | "true" => Some(true),
            "false" => Some(false),
            "[" | "test" => self.test(&words[1..]),
            "let" => {
                let mut value = Ok(0);
                for word in &words[1..] {
                    value = self.arithmetic(&word.shown(), line);
                }
                value.ok().map(|value| value != 0)
            }
            "read" | "mapfile" | "readarray" => {
                for word in words[1..].iter().filter(|word| is_name(&word.shown())) {
                    self.assign(
                        &word.shown(),
                        Text::computed(format!("${} is read from an input", word.shown()), line),
                    );
                }
                None
            }
            "source" | "." => {
                self.sourced(&words, line);
                None
            }
            "eval" => {
                let text = self.script_of(&words[1..]);
                self.apart(&text, words.get(1).map_or(line, Text::line))
            }
            "bash" | "sh"
                if words.get(1).is_some_and(|word| word.shown().ends_with('c') && word.shown().starts_with('-')) =>
            {
                let text = self.script_of(words.get(2).map_or(&[], std::slice::from_ref));
                let line = words.get(2).map_or(line, Text::line);
                let before = self.state.clone();
                let status = self.apart(&text, line);
                self.state = before;
                status
            }
            "cat" | "echo" | "printf" | "tee" => {
                self.written(&name, &words, redirects, line);
                None
            }
            _ => {
                // A command inside a command: `srun bash -c "torchrun .."`.
                let inner = words.windows(2).position(|pair| {
                    let (shell, flag) = (pair[0].shown(), pair[1].shown());
                    let shell = shell.rsplit('/').next() == Some("bash") || shell.rsplit('/').next() == Some("sh");
                    shell && flag.starts_with('-') && flag.ends_with('c')
                });
                let conditions = self.conditions.clone();
                match inner.and_then(|at| words.get(at + 2)) {
                    Some(text) => {
                        let first = self.script.commands.len();
                        let before = self.state.clone();
                        let script = self.script_of(std::slice::from_ref(text));
                        self.apart(&script, text.line());
                        self.state = before;
                        // The outer words state the devices.
                        let outer = words[..words.len().min(inner.unwrap_or(0))].to_vec();
                        for command in &mut self.script.commands[first..] {
                            let rest = std::mem::take(&mut command.words);
                            command.words = outer.iter().cloned().chain(rest).collect();
                        }
                    }
                    None => self.script.commands.push(Invocation { words, environment, line, conditions }),
                }
                None
            }
        }
    }

    fn call(&mut self, body: &FunctionBody, words: &[Text], line: u32) -> Option<bool> {
        if self.depth > DEEPEST {
            return None;
        }
        self.depth += 1;
        let arguments = self.state.arguments.replace(words[1..].to_vec());
        self.hidden.push(BTreeMap::new());
        let status = self.compound(&body.0, line);
        for (name, value) in self.hidden.pop().unwrap_or_default() {
            match value {
                Some(value) => drop(self.state.variables.insert(name, value)),
                None => drop(self.state.variables.remove(&name)),
            }
        }
        self.state.arguments = arguments;
        self.state.ended = false;
        self.depth -= 1;
        status
    }

    /// Remembers the value that a function's own variable hides.
    fn hide(&mut self, name: &str) {
        if self.defines.contains_key(name) {
            return;
        }
        let value = self.state.variables.get(name).cloned();
        if let Some(hidden) = self.hidden.last_mut() {
            hidden.entry(name.into()).or_insert(value);
        }
    }

    /// Words as a script. An unknown segment becomes a variable, so that its reason stays one word.
    fn script_of(&mut self, words: &[Text]) -> String {
        let mut script = String::new();
        for word in words {
            if !script.is_empty() {
                script.push(' ');
            }
            for segment in &word.0 {
                match &segment.text {
                    Ok(text) => script.push_str(text),
                    Err(Unknown::Unset(name)) => script.push_str(&format!("${{{name}}}")),
                    Err(Unknown::Computed(_)) => {
                        let name = format!("plantui_unknown_{}", self.steps);
                        self.steps += 1;
                        script.push_str(&format!("${{{name}}}"));
                        self.state.variables.insert(name, Variable::Scalar(Text(vec![segment.clone()])));
                    }
                }
            }
        }
        script
    }

    /// Evaluates a text as a script of its own with the current variables.
    fn apart(&mut self, text: &str, line: u32) -> Option<bool> {
        if self.depth > DEEPEST {
            return None;
        }
        let Ok(program) = parse(text) else { return None };
        self.depth += 1;
        let before = (self.offset, self.cursor, self.source.clone());
        (self.offset, self.cursor, self.source) = (line.saturating_sub(1), 0, text.into());
        let mut status = Some(true);
        for list in &program {
            if self.state.ended {
                break;
            }
            status = self.list(list);
        }
        (self.offset, self.cursor, self.source) = before;
        self.depth -= 1;
        status
    }

    fn sourced(&mut self, words: &[Text], line: u32) {
        let Some(name) = words.get(1).map(Text::shown) else { return };
        match (self.open)(&name) {
            Some(text) => {
                let file = std::mem::replace(&mut self.file, name.as_str().into());
                self.apart(&text, 1);
                self.file = file;
            }
            None => self.script.missing.push((name, line)),
        }
    }

    /// Remembers a file that a command writes from a here-document or from its words.
    fn written(&mut self, name: &str, words: &[Text], redirects: &[&IoRedirect], line: u32) {
        let mut body = None;
        let mut target = (name == "tee").then(|| words.last().map(Text::shown)).flatten();
        for redirect in redirects {
            match redirect {
                IoRedirect::HereDocument(_, document) => {
                    let at = line + 1;
                    let text = document.doc.value.clone();
                    let text = if document.requires_expansion { self.document(&text, at).shown() } else { text };
                    body = Some((text, at.saturating_sub(1)));
                }
                IoRedirect::HereString(_, word) => body = Some((self.joined(&word.value, line).shown(), line - 1)),
                IoRedirect::File(
                    _,
                    IoFileRedirectKind::Write | IoFileRedirectKind::Clobber,
                    IoFileRedirectTarget::Filename(word),
                ) => target = Some(self.joined(&word.value, line).shown()),
                _ => {}
            }
        }
        if name == "echo" {
            let text: Vec<String> = words[1..].iter().map(Text::shown).collect();
            let line = words.get(1).map_or(line, Text::line);
            body = Some((text.join(" "), line.saturating_sub(1)));
        }
        if let (Some(body), Some(target)) = (body, target) {
            self.script.files.insert(target, body);
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        let line = self.lined(assignment.loc.start.line);
        match (&assignment.name, &assignment.value) {
            (AssignmentName::VariableName(name), AssignmentValue::Scalar(word)) => {
                let mut value = self.joined(&word.value, line);
                if self.lined(assignment.loc.end.line) > line {
                    self.find_lines(&mut value, line);
                }
                if assignment.append {
                    match self.state.variables.get_mut(name) {
                        Some(Variable::Scalar(before)) if !self.defines.contains_key(name) => before.extend(&value),
                        Some(Variable::Array(list)) => list.push(value),
                        _ => self.assign(name, value),
                    }
                } else {
                    self.assign(name, value);
                }
            }
            (AssignmentName::VariableName(name), AssignmentValue::Array(elements)) => {
                if self.defines.contains_key(name) {
                    return;
                }
                let mut values = vec![];
                let mut map = BTreeMap::new();
                self.cursor = line_start(&self.source, (line - self.offset) as usize);
                for (key, word) in elements {
                    let line = self.element_line(&word.value, line);
                    match key {
                        Some(key) => {
                            let key = self.joined(&key.value, line).shown();
                            let value = self.joined(&word.value, line);
                            map.insert(key.trim_matches(['"', '\'']).to_string(), value);
                        }
                        None => values.extend(self.fields(&word.value, line)),
                    }
                }
                let value = match (map.is_empty(), assignment.append, self.state.variables.get(name)) {
                    (false, ..) => Variable::Map(map),
                    (true, true, Some(Variable::Array(before))) => {
                        Variable::Array(before.iter().cloned().chain(values).collect())
                    }
                    (true, true, Some(Variable::Scalar(before))) => {
                        Variable::Array(std::iter::once(before.clone()).chain(values).collect())
                    }
                    _ => Variable::Array(values),
                };
                self.state.variables.insert(name.clone(), value);
            }
            (AssignmentName::ArrayElementName(name, index), AssignmentValue::Scalar(word)) => {
                let value = self.joined(&word.value, line);
                let number = index.parse::<usize>().ok();
                match (self.state.variables.get_mut(name), number) {
                    (Some(Variable::Array(list)), Some(at)) if at < list.len() => list[at] = value,
                    (Some(Variable::Array(list)), Some(at)) if at == list.len() => list.push(value),
                    (Some(Variable::Map(map)), _) => drop(map.insert(index.clone(), value)),
                    _ => {
                        let key = self.joined(index, line).shown();
                        let map = BTreeMap::from([(key, value)]);
                        self.state.variables.insert(name.clone(), Variable::Map(map));
                    }
                }
            }
            (AssignmentName::ArrayElementName(..), AssignmentValue::Array(_)) => {}
        }
    }

    /// Line of an array's element, which has no place of its own in the tree: its text is looked for behind the one
    /// before.
    fn element_line(&mut self, element: &str, usual: u32) -> u32 {
        let Some(found) = self.source.get(self.cursor..).and_then(|rest| rest.find(element)) else { return usual };
        self.cursor += found;
        let line = super::line_at(&self.source, self.cursor) + self.offset;
        self.cursor += element.len();
        line
    }

    /// Gives the words of a quoted block their lines: the parser drops the continued line ends inside it.
    fn find_lines(&mut self, value: &mut Text, first: u32) {
        self.cursor = line_start(&self.source, (first - self.offset) as usize);
        let mut segments = vec![];
        for segment in std::mem::take(&mut value.0) {
            let text = match &segment.text {
                Ok(text) if segment.line == first => text.clone(),
                _ => {
                    segments.push(segment);
                    continue;
                }
            };
            for part in text.split_inclusive(char::is_whitespace) {
                let word = part.trim_end();
                let line = if word.is_empty() { first } else { self.element_line(word, first) };
                segments.push(text::Segment { text: Ok(part.into()), line });
            }
        }
        value.0 = segments;
    }

    fn assign(&mut self, name: &str, value: Text) {
        if !self.defines.contains_key(name) {
            let value = if value.is_long() {
                Text::computed(format!("${name} grows without end"), value.line())
            } else {
                value
            };
            self.state.variables.insert(name.into(), Variable::Scalar(value));
        }
    }

    fn scalar(&mut self, name: &str, line: u32) -> Text {
        match self.state.variables.get(name) {
            Some(Variable::Scalar(value)) => value.clone(),
            Some(Variable::Array(values)) => values.first().cloned().unwrap_or_default(),
            Some(Variable::Map(_)) => Text::default(),
            None => Text::unset(name, line),
        }
    }

    fn element(&mut self, name: &str, index: i64, line: u32) -> Text {
        match self.state.variables.get(name) {
            Some(Variable::Array(values)) => {
                let index = if index < 0 { index + values.len() as i64 } else { index };
                let value = usize::try_from(index).ok().and_then(|index| values.get(index));
                value.cloned().unwrap_or_else(|| Text::unset(&format!("{name}[{index}]"), line))
            }
            Some(Variable::Map(map)) => {
                map.get(&index.to_string()).cloned().unwrap_or_else(|| Text::unset(&format!("{name}[{index}]"), line))
            }
            Some(Variable::Scalar(value)) if index == 0 => value.clone(),
            _ => Text::unset(name, line),
        }
    }

    /// Remembers a default that the script takes.
    fn assume(&mut self, name: &str, value: &Text, line: u32) {
        let default = TakenDefault { name: name.into(), value: value.shown(), line };
        if !self.script.defaults.iter().any(|known| known.name == default.name) {
            self.script.defaults.push(default);
        }
    }

    /// Text of a value in a condition, in which an unset variable is empty.
    fn read(&mut self, value: &Text) -> Option<String> {
        let mut unset = vec![];
        let text = value.read_unset_as_empty(&mut unset).ok();
        if text.is_some() {
            for name in unset {
                self.assume(&name, &Text::known("", value.line()), value.line());
            }
        }
        text
    }

    /// Output of a command, where it follows from its words.
    fn substitution(&mut self, command: &str, line: u32) -> Text {
        let unknown = || Text::computed(format!("the output of `{}`", one_line(command)), line);
        let Ok(program) = parse(command) else { return unknown() };
        let [list] = &program[..] else { return unknown() };
        let [item] = &list.0[..] else { return unknown() };
        let commands: Vec<&SimpleCommand> = item
            .0
            .first
            .seq
            .iter()
            .filter_map(|command| match command {
                Command::Simple(simple) => Some(simple),
                _ => None,
            })
            .collect();
        if !item.0.additional.is_empty() || commands.len() != item.0.first.seq.len() {
            return unknown();
        }
        let words: Vec<Vec<Text>> = commands.iter().map(|simple| self.words_of(simple, line)).collect();
        let known: Option<Vec<Vec<String>>> =
            words.iter().map(|words| words.iter().map(|word| word.read().ok()).collect()).collect();
        let Some(known) = known else { return unknown() };
        let parts: Vec<Vec<&str>> = known.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
        let computed = match &parts[..] {
            [words] => match words[..] {
                ["echo", ref rest @ ..] => {
                    Some(rest.iter().filter(|word| **word != "-n").copied().collect::<Vec<_>>().join(" "))
                }
                ["expr", ref rest @ ..] => self.arithmetic(&rest.join(" "), line).ok().map(|value| value.to_string()),
                ["seq", last] => sequence(1, last.parse().ok()),
                ["seq", first, last] => first.parse().ok().and_then(|first| sequence(first, last.parse().ok())),
                ["basename", path] => path.rsplit('/').next().map(ToString::to_string),
                _ => None,
            },
            [words, then] if then[..] == ["bc"] => match words[..] {
                ["echo", ref rest @ ..] => self.arithmetic(&rest.join(" "), line).ok().map(|value| value.to_string()),
                _ => None,
            },
            _ => None,
        };
        computed.map_or_else(unknown, |text| Text::known(text, line))
    }

    fn words_of(&mut self, command: &SimpleCommand, line: u32) -> Vec<Text> {
        let name = command.word_or_name.iter();
        let rest = command.suffix.iter().flat_map(|suffix| &suffix.0).filter_map(|item| match item {
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(word),
            _ => None,
        });
        let words: Vec<&Word> = name.chain(rest).collect();
        words.into_iter().flat_map(|word| self.fields(&word.value, line)).collect()
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
