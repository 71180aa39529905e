//! Simple commands: those of the shell that change its state, and those that run a text of their own.
//!
//! Other commands are recorded with their words. `eval`, `bash -c` and `source` are evaluated like the script itself. The
//! output of a command is known only where it follows from its words.

use std::collections::BTreeMap;

use brush_parser::ast::{
    AssignmentName, AssignmentValue, Command, CommandPrefixOrSuffixItem, FunctionBody, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, SimpleCommand, Word,
};

use super::{DEEPEST, Evaluator, Invocation, Text, Unknown, Variable, is_name, one_line, parse, sequence};

impl Evaluator<'_> {
    pub(super) fn simple(&mut self, command: &SimpleCommand, line: u32) -> Option<bool> {
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
    pub(super) fn run(
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

    pub(super) fn call(&mut self, body: &FunctionBody, words: &[Text], line: u32) -> Option<bool> {
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
    pub(super) fn hide(&mut self, name: &str) {
        if self.defines.contains_key(name) {
            return;
        }
        let value = self.state.variables.get(name).cloned();
        if let Some(hidden) = self.hidden.last_mut() {
            hidden.entry(name.into()).or_insert(value);
        }
    }

    /// Words as a script. An unknown segment becomes a variable, so that its reason stays one word.
    pub(super) fn script_of(&mut self, words: &[Text]) -> String {
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
    pub(super) fn apart(&mut self, text: &str, line: u32) -> Option<bool> {
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

    pub(super) fn sourced(&mut self, words: &[Text], line: u32) {
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
    pub(super) fn written(&mut self, name: &str, words: &[Text], redirects: &[&IoRedirect], line: u32) {
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

    /// Output of a command, where it follows from its words.
    pub(super) fn substitution(&mut self, command: &str, line: u32) -> Text {
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

    pub(super) fn words_of(&mut self, command: &SimpleCommand, line: u32) -> Vec<Text> {
        let name = command.word_or_name.iter();
        let rest = command.suffix.iter().flat_map(|suffix| &suffix.0).filter_map(|item| match item {
            CommandPrefixOrSuffixItem::Word(word) | CommandPrefixOrSuffixItem::AssignmentWord(_, word) => Some(word),
            _ => None,
        });
        let words: Vec<&Word> = name.chain(rest).collect();
        words.into_iter().flat_map(|word| self.fields(&word.value, line)).collect()
    }
}
