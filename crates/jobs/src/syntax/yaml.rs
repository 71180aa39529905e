//! YAML and JSON: a mapping becomes settings with dotted names.
//!
//! Scalars have the types of YAML 1.1 as PyYAML reads them: `yes` and `on` are true, `1e-5` is a text. An alias stands for
//! its node, and `<<` merges a mapping. `${a.b}` of OmegaConf is the value of another setting. Linear in the settings,
//! of which there are at most [`MOST_SETTINGS`].

use std::{collections::BTreeMap, rc::Rc};

use plantui_core::source::LoadError;
use saphyr_parser::{Event, Parser, ScalarStyle};

use super::MOST_SETTINGS;
use crate::setting::{Place, Setting, Settings, Value};

/// Deepest nesting.
const DEEPEST: usize = 64;

enum Node {
    Scalar(Value),
    List(Vec<(Rc<Node>, u32)>),
    Map(Vec<(String, u32, Rc<Node>)>),
}

/// Collection under construction.
struct Open {
    anchor: usize,
    line: u32,
    key: Option<(String, u32)>,
    node: Node,
}

/// Settings of a YAML or JSON text; of its first document if there are several.
///
/// # Errors
/// [`LoadError`] with the line of a syntax error, or if the text is no mapping.
pub(crate) fn read(text: &str, source: &str) -> Result<Settings, LoadError> {
    let root = parse(text, source)?;
    let mut flat = Flat { settings: Settings::default(), count: 0, source };
    flat.add("", &root, 1, 0)?;
    Ok(resolved(&flat.settings))
}

fn parse(text: &str, source: &str) -> Result<Rc<Node>, LoadError> {
    let wrong = |line: u32, problem: &str| {
        Err(LoadError::file(source, problem.to_string(), "correct it").on_line(Some(line as usize)))
    };
    // YAML forbids tabs where JSON allows them; no text of a configuration depends on one.
    let text = text.replace('\t', " ");
    let mut anchors: BTreeMap<usize, Rc<Node>> = BTreeMap::new();
    let mut open: Vec<Open> = vec![];
    for event in Parser::new_from_str(&text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let line = u32::try_from(error.marker().line()).unwrap_or(0);
                return wrong(line, &format!("is not read as YAML or JSON: {}", error.info()));
            }
        };
        let line = u32::try_from(span.start.line()).unwrap_or(0);
        let (node, anchor, line) = match event {
            Event::Scalar(text, style, anchor, _) => (Rc::new(Node::Scalar(scalar(&text, style))), anchor, line),
            Event::Alias(id) => match anchors.get(&id) {
                Some(node) => (node.clone(), 0, line),
                None => return wrong(line, "has an alias of an unfinished node"),
            },
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) if open.len() >= DEEPEST => {
                let _ = anchor;
                return wrong(line, &format!("is nested more than {DEEPEST} deep"));
            }
            Event::SequenceStart(anchor, _) => {
                open.push(Open { anchor, line, key: None, node: Node::List(vec![]) });
                continue;
            }
            Event::MappingStart(anchor, _) => {
                open.push(Open { anchor, line, key: None, node: Node::Map(vec![]) });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(done) => (Rc::new(done.node), done.anchor, done.line),
                None => return wrong(line, "closes what it did not open"),
            },
            Event::DocumentEnd => break,
            _ => continue,
        };
        if anchor > 0 {
            anchors.insert(anchor, node.clone());
        }
        let Some(parent) = open.last_mut() else { return finished(node, source) };
        match (&mut parent.node, parent.key.take()) {
            (Node::List(list), _) => list.push((node, line)),
            (Node::Map(map), Some((key, at))) => map.push((key, at, node)),
            (Node::Map(_), None) => match &*node {
                Node::Scalar(value) => parent.key = Some((key_text(value), line)),
                _ => return wrong(line, "has a key that is no word"),
            },
            (Node::Scalar(_), _) => {}
        }
    }
    wrong(1, "holds no settings")
}

/// Root of a document, which must be a mapping.
fn finished(node: Rc<Node>, source: &str) -> Result<Rc<Node>, LoadError> {
    if matches!(*node, Node::Map(_)) {
        return Ok(node);
    }
    Err(LoadError::file(source, "is no mapping of names to values", "give the configuration of a job"))
}

fn key_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other => other.text(),
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.into());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Value::Bool(true),
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Value::Bool(false),
        _ => Value::Text(text.into()),
    }
}

/// Settings as they are collected from a tree.
struct Flat<'a> {
    settings: Settings,
    count: usize,
    source: &'a str,
}

impl Flat<'_> {
    fn add(&mut self, path: &str, node: &Node, line: u32, depth: usize) -> Result<(), LoadError> {
        let join = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        self.count += 1;
        if self.count > MOST_SETTINGS || depth > DEEPEST {
            let problem = format!("has more than {MOST_SETTINGS} settings or is nested more than {DEEPEST} deep");
            return Err(LoadError::file(self.source, problem, "give the configuration of one job"));
        }
        let place = Place::new(self.source, line);
        match node {
            Node::Scalar(value) => self.settings.push(Setting::new(path, value.clone(), place)),
            Node::List(list) => {
                let values: Option<Vec<Value>> =
                    list.iter().map(|(node, _)| list_value(node, &mut self.count)).collect();
                match values {
                    Some(values) => self.settings.push(Setting::new(path, Value::List(values), place)),
                    // A mapping inside, or more than anybody writes.
                    None => {
                        for (index, (node, line)) in list.iter().enumerate() {
                            self.add(&join(&index.to_string()), node, *line, depth + 1)?;
                        }
                    }
                }
            }
            Node::Map(map) => {
                if map.is_empty() && !path.is_empty() {
                    self.settings.push(Setting::new(path, Value::Null, place));
                }
                // Merged mappings first, so that own entries count.
                for (_, line, node) in map.iter().filter(|(key, ..)| key == "<<") {
                    self.add(path, node, *line, depth + 1)?;
                }
                for (key, line, node) in map.iter().filter(|(key, ..)| key != "<<") {
                    self.add(&join(key), node, *line, depth + 1)?;
                }
            }
        }
        Ok(())
    }
}

/// Value of a list's element; `None` for a mapping, or if there are too many.
fn list_value(node: &Node, count: &mut usize) -> Option<Value> {
    *count += 1;
    match node {
        _ if *count > MOST_SETTINGS => None,
        Node::Scalar(value) => Some(value.clone()),
        Node::List(list) => {
            Some(Value::List(list.iter().map(|(node, _)| list_value(node, count)).collect::<Option<_>>()?))
        }
        Node::Map(_) => None,
    }
}

/// Settings with `${a.b}` and the arithmetic resolvers replaced. Others are unknown.
fn resolved(settings: &Settings) -> Settings {
    let known: BTreeMap<String, Value> =
        settings.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect();
    let mut all = Settings::default();
    for setting in settings.iter() {
        let mut setting = setting.clone();
        if let Value::Text(text) = &setting.value
            && text.contains("${")
        {
            setting.value = interpolated(text, &setting.name, &known, 0)
                .unwrap_or_else(|| Value::Unknown(format!("`{text}` is computed when the job starts")));
        }
        all.push(setting);
    }
    all
}

fn interpolated(text: &str, name: &str, known: &BTreeMap<String, Value>, depth: usize) -> Option<Value> {
    if depth > 16 || !text.contains("${") {
        return (depth <= 16).then(|| Value::Text(text.into()));
    }
    // The innermost reference first: it has no `${` inside.
    let start = text.rfind("${")?;
    let end = start + text[start..].find('}')?;
    let inner = text[start + 2..end].trim();
    let value = match inner.split_once(':') {
        Some((function, arguments)) => Value::Text(computed(function.trim(), arguments)?),
        None => {
            // A leading dot refers to the setting's own mapping.
            let parent = name.rsplit_once('.').map_or("", |(parent, _)| parent);
            let path = match inner.strip_prefix('.') {
                Some(rest) if parent.is_empty() => rest.to_string(),
                Some(rest) => format!("{parent}.{rest}"),
                None => inner.to_string(),
            };
            let path = crate::setting::normal(&path);
            match known.get(&path)? {
                Value::Text(text) => interpolated(text, &path, known, depth + 1)?,
                other => other.clone(),
            }
        }
    };
    if start == 0 && end + 1 == text.len() {
        return Some(value);
    }
    interpolated(&format!("{}{}{}", &text[..start], value.text(), &text[end + 1..]), name, known, depth + 1)
}

/// Result of a resolver that NeMo registers.
fn computed(function: &str, arguments: &str) -> Option<String> {
    let numbers: Option<Vec<f64>> = arguments.split(',').map(|word| word.trim().parse().ok()).collect();
    let numbers = numbers?;
    let value = match function {
        "multiply" => numbers.iter().product(),
        "add" | "sum" => numbers.iter().sum(),
        "divide" | "divide_floor" => (numbers.first()? / numbers.get(1)?).floor(),
        "divide_ceil" => (numbers.first()? / numbers.get(1)?).ceil(),
        _ => return None,
    };
    value.is_finite().then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_types_and_lines_are_those_of_yaml() {
        let text = "a: 1\nb:\n  c: yes\n  'd-e': \"no\"\n  list: [x, 2]\nf: 1e-5\nbase: &x {g: 1, h: 2}\nown:\n  <<: *x\n  h: 3\n";
        let read = read(text, "a.yaml").unwrap();
        let value = |name: &str| read.look(name).map(|setting| (setting.value.text(), setting.place.line));
        assert_eq!(value("a"), Some(("1".into(), 1)));
        assert_eq!(value("b.c"), Some(("true".into(), 3)));
        assert_eq!(value("b.d_e"), Some(("no".into(), 4)));
        assert_eq!(value("b.list"), Some(("[x, 2]".into(), 5)));
        assert_eq!(value("own.g").map(|(value, _)| value), Some("1".into()));
        assert_eq!(value("own.h"), Some(("3".into(), 10)));
        let json = super::read("{\n\t\"a\": {\"b\": 4,},\n}", "a.json").unwrap();
        assert_eq!(json.count("a.b").unwrap().map(|fact| (fact.value, fact.place.line)), Some((4, 2)));
    }

    #[test]
    fn references_are_followed_and_unknown_ones_named() {
        let text = "m:\n  h: 1024\n  f: ${multiply:4,${.h}}\n  k: ${m.h}\n  w: ${oc.env:HOME}\n";
        let read = read(text, "a.yaml").unwrap();
        assert_eq!(read.count("m.f").unwrap().map(|fact| fact.value), Some(4096));
        assert_eq!(read.count("m.k").unwrap().map(|fact| fact.value), Some(1024));
        assert!(read.count("m.w").unwrap_err().to_string().contains("computed when the job starts"));
    }

    #[test]
    fn hostile_trees_are_refused() {
        let laughs: String = std::iter::once("a0: &a0 [x, x]\n".to_string())
            .chain((1..30).map(|n| format!("a{n}: &a{n} [*a{p}, *a{p}]\n", p = n - 1)))
            .collect();
        assert!(read(&laughs, "a").is_err());
        for text in ["", "- a\n- b", "a: [", "a: {b: ", "?", "a: *b", &"[".repeat(5000)] {
            assert!(read(text, "a").is_err(), "{text:.20}");
        }
    }
}
