//! Python files, parsed and never run: each function, and the module itself, is a list of settings.
//!
//! `config.model.x = 4` is the setting `model.x`; a call `Config(training=Training(steps=1))` has `training.steps`, and
//! the class in `training`. Constants of the file, arithmetic on them, and default arguments are known. A function of
//! the file that another one calls contributes its settings. Linear in the text.

mod value;

use std::collections::BTreeMap;

use plantui_core::source::LoadError;
use ruff_python_ast::{self as ast, Expr, Stmt};
use ruff_text_size::Ranged;

use crate::setting::{Place, Setting, Settings, Value};
use value::{combined, path_of};

/// Deepest nesting of calls and of brackets.
const DEEPEST: usize = 60;

/// Settings of a function, or of the module.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Name of the function; empty for the module.
    pub(crate) name: String,
    /// Its settings.
    pub(crate) settings: Settings,
}

/// Recipes of a Python file in order, the module first. `defines` replaces parameters and constants.
///
/// # Errors
/// [`LoadError`] with the line of a syntax error.
pub(crate) fn read(text: &str, source: &str, defines: &BTreeMap<String, String>) -> Result<Vec<Recipe>, LoadError> {
    let lines = line_starts(text);
    if let Some(line) = too_deep(text) {
        let problem = format!("nests brackets more than {DEEPEST} deep");
        return Err(LoadError::file(source, problem, "give the configuration alone").on_line(Some(line)));
    }
    let module = ruff_python_parser::parse_module(text).map_err(|error| {
        let line = line_of(&lines, error.location.start().to_usize());
        LoadError::file(source, format!("is not read as Python: {}", error.error), "correct it")
            .on_line(Some(line as usize))
    })?;
    let body = &module.syntax().body;
    let functions: BTreeMap<&str, &ast::StmtFunctionDef> = body
        .iter()
        .filter_map(|statement| match statement {
            Stmt::FunctionDef(function) => Some((function.name.as_str(), function)),
            _ => None,
        })
        .collect();
    let mut reader = Reader {
        source,
        lines: &lines,
        defines,
        functions: &functions,
        parts: BTreeMap::new(),
        aliases: BTreeMap::new(),
        imports: imports(body),
        local: false,
        depth: 0,
    };
    let mut constants = BTreeMap::new();
    let mut module = Settings::default();
    reader.block(body, &mut constants, &mut module, None);
    let mut recipes = vec![Recipe { name: String::new(), settings: module }];
    for statement in body {
        if let Stmt::FunctionDef(function) = statement {
            let mut settings = Settings::default();
            reader.function(function, &constants, &BTreeMap::new(), &mut settings);
            recipes.push(Recipe { name: function.name.to_string(), settings });
        }
    }
    Ok(recipes)
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn line_of(lines: &[usize], offset: usize) -> u32 {
    u32::try_from(lines.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
}

/// Line where brackets are nested too deep for the recursive parser.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    for (number, line) in text.lines().enumerate() {
        for byte in line.bytes() {
            match byte {
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEEPEST {
                return Some(number + 1);
            }
        }
        // Indentation nests blocks.
        if line.len() - line.trim_start().len() > 400 {
            return Some(number + 1);
        }
    }
    None
}

type Constants = BTreeMap<String, Value>;

struct Reader<'a> {
    source: &'a str,
    lines: &'a [usize],
    defines: &'a BTreeMap<String, String>,
    functions: &'a BTreeMap<&'a str, &'a ast::StmtFunctionDef>,
    /// Settings of local variables that hold a part of the configuration.
    parts: BTreeMap<String, Settings>,
    /// Local variables that stand for a part of the configuration: `model = config.model`.
    aliases: BTreeMap<String, String>,
    /// Names of imported functions by the names that the file gives them.
    imports: BTreeMap<String, String>,
    /// True inside a function, whose local constants are no settings.
    local: bool,
    depth: usize,
}

impl Reader<'_> {
    fn place(&self, node: &impl Ranged) -> Place {
        Place::new(self.source, line_of(self.lines, node.start().to_usize()))
    }

    fn function(
        &mut self,
        function: &ast::StmtFunctionDef,
        constants: &Constants,
        given: &Constants,
        settings: &mut Settings,
    ) {
        if self.depth > DEEPEST {
            return;
        }
        self.depth += 1;
        let (parts, local) = (std::mem::take(&mut self.parts), std::mem::replace(&mut self.local, true));
        self.parts = local_parts(function);
        let aliases = std::mem::take(&mut self.aliases);
        let mut own = constants.clone();
        for parameter in function.parameters.iter_non_variadic_params() {
            let name = parameter.parameter.name.as_str();
            let value = match (self.defines.get(name), &parameter.default) {
                (Some(value), _) => Value::Text(value.clone()),
                (None, _) if given.contains_key(name) => continue,
                (None, Some(default)) => self.value(default, &own),
                (None, None) => Value::Unknown(format!("`{name}` is a parameter (--define {name}=VALUE)")),
            };
            own.insert(name.into(), value);
        }
        self.block(&function.body, &mut own, settings, None);
        (self.parts, self.local, self.aliases) = (parts, local, aliases);
        self.depth -= 1;
    }

    /// Statements of a block. Under an unknown condition, what they set is unknown.
    fn block(&mut self, body: &[Stmt], constants: &mut Constants, settings: &mut Settings, condition: Option<&str>) {
        for statement in body {
            match statement {
                Stmt::Assign(assign) => {
                    for target in &assign.targets {
                        self.assignment(target, &assign.value, constants, settings, condition);
                    }
                }
                Stmt::AnnAssign(assign) => {
                    if let Some(value) = &assign.value {
                        self.assignment(&assign.target, value, constants, settings, condition);
                    }
                }
                Stmt::AugAssign(assign) => self.augmented(assign, constants, settings, condition),
                Stmt::Return(done) => {
                    if let Some(Expr::Call(call)) = done.value.as_deref() {
                        self.call("", call, constants, settings, condition);
                    } else if let Some(Expr::Dict(dict)) = done.value.as_deref() {
                        self.dictionary("", dict, constants, settings, condition);
                    }
                }
                Stmt::Expr(expression) => {
                    if let Expr::Call(call) = &*expression.value {
                        self.statement_call(call, constants, settings, condition);
                    }
                }
                Stmt::If(branch) => self.branches(branch, constants, settings, condition),
                Stmt::ClassDef(class) => self.block(&class.body, constants, settings, condition),
                Stmt::With(with) => self.block(&with.body, constants, settings, condition),
                Stmt::Try(attempt) => self.block(&attempt.body, constants, settings, condition),
                Stmt::For(each) => {
                    let told = format!("a loop in line {}", self.place(each).line);
                    self.block(&each.body, constants, settings, Some(condition.unwrap_or(&told)));
                }
                _ => {}
            }
        }
    }

    /// `x += 1`, of a constant or a setting.
    fn augmented(
        &mut self,
        assign: &ast::StmtAugAssign,
        constants: &mut Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        let by = self.value(&assign.value, constants);
        let result = |before: Value| match condition {
            Some(condition) => Value::Unknown(condition.into()),
            None => combined(assign.op, before, by.clone()),
        };
        match (&*assign.target, path_of(&assign.target)) {
            (Expr::Name(name), _) => {
                if let Some(before) = constants.get(name.id.as_str()).cloned() {
                    let value = result(before);
                    if !self.defines.contains_key(name.id.as_str()) {
                        constants.insert(name.id.to_string(), value.clone());
                    }
                    if settings.has(name.id.as_str()) {
                        settings.push(Setting::new(name.id.as_str(), value, self.place(assign)));
                    }
                }
            }
            (_, Some(path)) => {
                let (root, inner) = path.split_once('.').unwrap_or(("", path.as_str()));
                let inner =
                    self.aliases.get(root).map_or_else(|| inner.to_string(), |alias| format!("{alias}.{inner}"));
                let place = self.place(assign);
                let list = self.parts.get_mut(root).unwrap_or(settings);
                let unknown = Value::Unknown("a change of a value that is set in another file".into());
                let before = list.look(&inner).map_or(unknown, |setting| setting.value.clone());
                list.push(Setting::new(&inner, result(before), place));
            }
            _ => {}
        }
    }

    fn branches(
        &mut self,
        branch: &ast::StmtIf,
        constants: &mut Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        let line = self.place(branch).line;
        let mut unknown = None;
        let first = (Some(&*branch.test), &branch.body);
        let rest = branch.elif_else_clauses.iter().map(|clause| (clause.test.as_ref(), &clause.body));
        for (test, body) in std::iter::once(first).chain(rest) {
            let holds = test.map_or(Some(true), |test| self.truth(test, constants));
            match holds {
                Some(false) => {}
                Some(true) => {
                    self.block(body, constants, settings, unknown.as_deref().or(condition));
                    return;
                }
                None => {
                    let told = format!("the condition in line {line} is not known");
                    self.block(body, constants, settings, Some(&told));
                    unknown = Some(told);
                }
            }
        }
    }

    fn assignment(
        &mut self,
        target: &Expr,
        value: &Expr,
        constants: &mut Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        match target {
            Expr::Name(name) => {
                let name = name.id.as_str();
                if let (true, Expr::Attribute(_), Some(path)) = (self.local, value, path_of(value))
                    && let Some((_, inner)) = path.split_once('.')
                {
                    self.aliases.insert(name.into(), inner.into());
                    return;
                }
                if !self.defines.contains_key(name) {
                    let known = match condition {
                        Some(condition) => Value::Unknown(format!("`{name}`: {condition}")),
                        None => self.value(value, constants),
                    };
                    constants.insert(name.into(), known);
                } else if let Some(defined) = self.defines.get(name) {
                    constants.insert(name.into(), Value::Text(defined.clone()));
                }
                if let Some(mut part) = self.parts.remove(name) {
                    self.setting("", target, value, constants, &mut part, condition);
                    self.parts.insert(name.into(), part);
                } else if !self.local || matches!(value, Expr::Call(_) | Expr::Dict(_)) {
                    self.setting(name, target, value, constants, settings, condition);
                }
            }
            Expr::Attribute(_) | Expr::Subscript(_) => {
                if let Some(path) = path_of(target) {
                    if let Some((root, inner)) = path.split_once('.')
                        && let Some(mut part) = self.parts.remove(root)
                    {
                        self.setting(inner, target, value, constants, &mut part, condition);
                        self.parts.insert(root.into(), part);
                        return;
                    }
                    // Without the variable that holds the configuration.
                    let (root, inner) = path.split_once('.').unwrap_or(("", path.as_str()));
                    let inner = match self.aliases.get(root) {
                        Some(alias) => format!("{alias}.{inner}"),
                        None => inner.to_string(),
                    };
                    self.setting(&inner, target, value, constants, settings, condition);
                }
            }
            Expr::Tuple(targets) => {
                if let Expr::Tuple(values) = value
                    && targets.elts.len() == values.elts.len()
                {
                    for (target, value) in targets.elts.iter().zip(&values.elts) {
                        self.assignment(target, value, constants, settings, condition);
                    }
                }
            }
            _ => {}
        }
    }

    /// Setting of a path.
    fn setting(
        &mut self,
        path: &str,
        at: &Expr,
        value: &Expr,
        constants: &Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        match value {
            Expr::Call(call) => {
                let class = path_of(&call.func).unwrap_or_default();
                let class = self.imports.get(&class).cloned().unwrap_or(class);
                self.push(settings, path, Value::Text(class), at, condition);
                // `Bridge.from_hf_pretrained("name").to_provider()`
                let mut inner = &*call.func;
                while let Expr::Attribute(attribute) = inner {
                    if let Expr::Call(first) = &*attribute.value {
                        let last = path_of(&first.func).unwrap_or_default();
                        let last = last.rsplit('.').next().unwrap_or_default().to_string();
                        let path = if path.is_empty() { last } else { format!("{path}.{last}") };
                        self.call(&path, first, constants, settings, condition);
                    }
                    inner = &attribute.value;
                }
                // The configuration that a function starts from has its settings without a prefix.
                let base = !path.contains('.')
                    && self.functions.contains_key(path_of(&call.func).unwrap_or_default().as_str());
                self.call(if base { "" } else { path }, call, constants, settings, condition);
            }
            Expr::Dict(dict) => {
                self.push(settings, path, Value::Text("dict".into()), at, condition);
                self.dictionary(path, dict, constants, settings, condition);
            }
            Expr::Name(name) if self.parts.contains_key(name.id.as_str()) => {
                let part = self.parts.get(name.id.as_str()).cloned().unwrap_or_default();
                for setting in part.iter() {
                    let inner = if setting.written.is_empty() {
                        path.to_string()
                    } else {
                        format!("{path}.{}", setting.written)
                    };
                    settings.push(Setting::new(&inner, setting.value.clone(), setting.place.clone()));
                }
            }
            other => {
                let value = self.value(other, constants);
                self.push(settings, path, value, at, condition);
            }
        }
    }

    fn push(&self, settings: &mut Settings, path: &str, value: Value, at: &impl Ranged, condition: Option<&str>) {
        let value = match condition {
            Some(condition) => Value::Unknown(condition.into()),
            None => value,
        };
        settings.push(Setting::new(path, value, self.place(at)));
    }

    /// Arguments of a call as settings inside a path. A function of the file is followed.
    fn call(
        &mut self,
        path: &str,
        call: &ast::ExprCall,
        constants: &Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let name = path_of(&call.func).unwrap_or_default();
        if let Some(function) = self.functions.get(name.as_str()).copied() {
            let mut own = constants.clone();
            let mut given = BTreeMap::new();
            let names =
                function.parameters.iter_non_variadic_params().map(|parameter| parameter.parameter.name.as_str());
            for (name, argument) in names.zip(&call.arguments.args) {
                given.insert(name.to_string(), self.value(argument, constants));
            }
            for keyword in &call.arguments.keywords {
                if let Some(name) = &keyword.arg {
                    given.insert(name.to_string(), self.value(&keyword.value, constants));
                }
            }
            own.extend(given.clone());
            let mut inner = Settings::default();
            self.function(function, &own, &given, &mut inner);
            for setting in inner.iter() {
                settings.push(Setting::new(&join(&setting.written), setting.value.clone(), setting.place.clone()));
            }
            return;
        }
        for (index, argument) in call.arguments.args.iter().enumerate() {
            self.setting(&join(&index.to_string()), argument, argument, constants, settings, condition);
        }
        for keyword in &call.arguments.keywords {
            match &keyword.arg {
                Some(name) => {
                    self.setting(&join(name.as_str()), &keyword.value, &keyword.value, constants, settings, condition);
                }
                None => match &keyword.value {
                    Expr::Dict(dict) => self.dictionary(path, dict, constants, settings, condition),
                    // `**options`, a dictionary of the file.
                    other => {
                        let name = path_of(other).unwrap_or_default();
                        let known: Vec<Setting> = settings
                            .under(&name)
                            .map(|(field, setting)| {
                                Setting::new(&join(field), setting.value.clone(), setting.place.clone())
                            })
                            .collect();
                        if known.is_empty() {
                            let told = format!("`**{name}`, which is no dictionary of the file");
                            self.push(settings, &join("found"), Value::Unknown(told), &keyword.value, condition);
                        }
                        known.into_iter().for_each(|setting| settings.push(setting));
                    }
                },
            }
        }
    }

    fn dictionary(
        &mut self,
        path: &str,
        dict: &ast::ExprDict,
        constants: &Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        for item in &dict.items {
            let Some(key) = &item.key else { continue };
            let name = self.value(key, constants).text();
            let name = if path.is_empty() { name } else { format!("{path}.{name}") };
            self.setting(&name, key, &item.value, constants, settings, condition);
        }
    }

    /// Call that stands alone: a function of the file that changes the configuration, or something unknown.
    fn statement_call(
        &mut self,
        call: &ast::ExprCall,
        constants: &Constants,
        settings: &mut Settings,
        condition: Option<&str>,
    ) {
        let Some(name) = path_of(&call.func) else { return };
        // `setattr(config.model, "x", 4)`
        if let ("setattr", [object, Expr::StringLiteral(field), value]) = (name.as_str(), &*call.arguments.args) {
            let object = path_of(object).unwrap_or_default();
            let field = field.value.to_str();
            let path =
                object.split_once('.').map_or_else(|| field.to_string(), |(_, inner)| format!("{inner}.{field}"));
            let value = self.value(value, constants);
            self.push(settings, &path, value, call, condition);
            return;
        }
        // What it is given, by which a reader knows whether it may change the configuration.
        let given: Vec<String> = call.arguments.args.iter().filter_map(path_of).collect();
        let given = if given.is_empty() { Value::Bool(true) } else { Value::Text(given.join(",")) };
        match self.functions.get(name.as_str()).copied() {
            Some(function) if condition.is_none() => {
                self.function(function, constants, &BTreeMap::new(), settings);
            }
            _ => self.push(settings, &format!("call {name}"), given, call, condition),
        }
    }
}

/// Original names of what a file imports under another name.
fn imports(body: &[Stmt]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for statement in body {
        if let Stmt::ImportFrom(from) = statement {
            for alias in &from.names {
                if let Some(own) = &alias.asname {
                    all.insert(own.to_string(), alias.name.to_string());
                }
            }
        }
    }
    all
}

/// Local variables of a function that hold a part of a configuration: made by a call, and not returned.
fn local_parts(function: &ast::StmtFunctionDef) -> BTreeMap<String, Settings> {
    let returned: Vec<&str> = function
        .body
        .iter()
        .filter_map(|statement| match statement {
            Stmt::Return(done) => match done.value.as_deref() {
                Some(Expr::Name(name)) => Some(name.id.as_str()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    let mut parts = BTreeMap::new();
    for statement in &function.body {
        let Stmt::Assign(assign) = statement else { continue };
        let ([Expr::Name(name)], Expr::Call(_)) = (&assign.targets[..], &*assign.value) else { continue };
        if !returned.contains(&name.id.as_str()) {
            parts.insert(name.id.to_string(), Settings::default());
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipes(text: &str) -> Vec<Recipe> {
        read(text, "a.py", &BTreeMap::new()).unwrap()
    }

    fn value(recipe: &Recipe, name: &str) -> Option<(String, u32)> {
        recipe.settings.look(name).map(|setting| (setting.value.text(), setting.place.line))
    }

    #[test]
    fn calls_assignments_and_constants_become_settings() {
        let all = recipes(
            "TP = 2\nPARTS = [['a', 'b'], ['c']]\ndef job(pp=4, seq: int = 8 * 1024):\n    cfg = base()\n    cfg.model.tp = TP * 2\n    cfg.pp = pp\n    cfg[\"seq\"] = seq\n    return cfg\ndef other():\n    return Config(\n        training=Training(batch=8, dtype=torch.bfloat16),\n        ac=FullAC.Config(),\n        spec=registry(\"8B\"),\n    )\ndef base():\n    c = X()\n    c.vocab = 32\n    return c\n",
        );
        let (module, job, other) = (&all[0], &all[1], &all[2]);
        assert_eq!(value(module, "tp"), Some(("2".into(), 1)));
        assert_eq!(value(module, "parts").map(|(text, _)| text), Some("[[a, b], [c]]".into()));
        for (name, expected, line) in [("model.tp", "4", 5), ("pp", "4", 6), ("seq", "8192", 7), ("vocab", "32", 17)] {
            assert_eq!(value(job, name), Some((expected.into(), line)), "{name}");
        }
        for (name, expected, line) in [
            ("training.batch", "8", 11),
            ("training.dtype", "torch.bfloat16", 11),
            ("ac", "FullAC.Config", 12),
            ("spec.0", "8B", 13),
        ] {
            assert_eq!(value(other, name), Some((expected.into(), line)), "{name}");
        }
    }

    #[test]
    fn conditions_are_followed_or_leave_values_unknown() {
        let text = "def job(size='8b', fast=None):\n    if size == '8b':\n        c.tp = 1\n    else:\n        c.tp = 8\n    if gpu():\n        c.pp = 2\n    if fast is not None:\n        c.x = 1\n";
        let all = recipes(text);
        assert_eq!(value(&all[1], "tp"), Some(("1".into(), 3)));
        assert!(value(&all[1], "pp").unwrap().0.contains("condition in line 6"));
        assert_eq!(value(&all[1], "x"), None);
        let large = BTreeMap::from([("size".to_string(), "70b".to_string())]);
        assert_eq!(value(&read(text, "a.py", &large).unwrap()[1], "tp"), Some(("8".into(), 5)));
    }

    #[test]
    fn hostile_files_are_refused_or_read() {
        for text in ["def f(:", "x = ", "(", "f\"{", &"(".repeat(100_000), &format!("x = {}1", "not ".repeat(50))] {
            let _ = read(text, "a.py", &BTreeMap::new());
        }
        let _ = recipes("def f():\n    f()\nx = 2 ** 999\ny = [1] * 99999999\nz = x / 0\n");
        let deep = format!("x = 1{}", " + 1".repeat(3_000));
        let _ = recipes(&deep);
    }
}
