//! Names and values in a configuration's text, in any syntax; nothing is executed.
//!
//! Reads shell flags (`--micro-batch-size 4`, variables resolved), Megatron's dump (`micro_batch_size ....... 4`),
//! TOML, YAML and Python assignments (`parallelism.tensor_parallel_degree = 2`), JSON. Names are paths in lower case
//! with `_`, values are text. The last value of a name counts. `O(text)`, nesting at most 64 deep.

use std::collections::BTreeMap;

/// Names and values of a text.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct JobFacts {
    pairs: Vec<(String, String)>,
    /// Comments without their marker.
    pub comments: Vec<String>,
}

impl JobFacts {
    /// All facts of a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut facts = JobFacts::default();
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(text) {
            facts.json("", &value);
            return facts;
        }
        let (code, comments) = without_comments(text);
        facts.comments = comments;
        facts.dump(&code);
        facts.flags(&code);
        facts.assignments(&code);
        facts
    }

    /// Last value of a name: a whole path, or its end after a dot.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let ends = |path: &str| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        self.pairs.iter().rev().find(|(path, _)| ends(path)).map(|(_, value)| value.as_str())
    }

    /// Last value of a name that is a list: a script may reuse the name.
    pub(crate) fn list(&self, name: &str) -> Option<&str> {
        let own = |path: &str| path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let lists = self.pairs.iter().rev().filter(|(path, value)| own(path) && value.starts_with(['[', '{']));
        lists.map(|(_, value)| value.as_str()).next()
    }

    /// First of these names that has a value, and the value.
    pub(crate) fn any(&self, names: &[&str]) -> Option<(String, &str)> {
        names.iter().find_map(|name| self.get(name).map(|value| ((*name).to_string(), value)))
    }

    /// True if a name exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// True if a name exists and its value is not `false`, `None` or 0.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "none" | "0" | "null" | "no"))
    }

    fn add(&mut self, path: &str, value: &str) {
        let path = path.trim().trim_matches(['"', '\'']).to_lowercase().replace('-', "_");
        if !path.is_empty() {
            self.pairs.push((path, unquoted(value).to_string()));
        }
    }

    fn json(&mut self, path: &str, value: &serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.json(&if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value);
                }
            }
            Value::String(text) => self.add(path, text),
            Value::Null => {}
            other => self.add(path, &other.to_string()),
        }
    }

    /// Reads Megatron's dump: a name, dots, a value. A rank or a time may come first.
    fn dump(&mut self, code: &str) {
        for line in code.lines() {
            let Some((name, value)) = line.split_once(" ..") else { continue };
            let name = name.split_whitespace().last().unwrap_or_default();
            let value = value.trim_start_matches('.').trim();
            let word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if word && !value.is_empty() && value != "None" {
                self.add(name, value);
            }
        }
    }

    /// Reads shell flags with the variables of the script.
    fn flags(&mut self, code: &str) {
        let mut variables: BTreeMap<String, String> = BTreeMap::new();
        for line in code.lines() {
            for word in words(&line.trim_start().trim_start_matches("export ").replace('(', " ")) {
                let Some((name, value)) = word.split_once('=') else { continue };
                let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if plain && !name.is_empty() && !value.is_empty() {
                    let value = value.trim_end_matches([',', ';', ')']);
                    variables.insert(name.to_string(), resolved(value, &variables));
                }
            }
        }
        for (name, value) in &variables {
            self.add(name, value);
        }
        let joined = code.replace("\\\n", " ");
        let all: Vec<String> = joined.lines().flat_map(words).map(|word| resolved(&word, &variables)).collect();
        let mut place = 0;
        while let Some(word) = all.get(place) {
            place += 1;
            let Some(flag) = word.trim_start_matches('(').strip_prefix("--").filter(|flag| !flag.is_empty()) else {
                continue;
            };
            let (name, inline) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
            let name = name.trim_end_matches([')', '"', ';']);
            let next = all.get(place).map(|next| next.trim_end_matches([')', ';']));
            let value = inline.or(next.filter(|next| !next.starts_with("--") && !next.is_empty()));
            match value {
                Some(value) => self.add(name, value.trim_end_matches([')', ';'])),
                None => self.add(name, "true"),
            }
        }
    }

    /// Reads `name = value` and `name: value`, under `[section]` or by indentation. Brackets are read to their end.
    fn assignments(&mut self, code: &str) {
        let mut section = String::new();
        let mut above: Vec<(usize, String)> = vec![];
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            let content = line.trim();
            if let Some(name) =
                content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).filter(|_| !content.contains(','))
            {
                section = name.trim_matches(['[', ']', ' ']).to_string();
                continue;
            }
            let split = content.find(['=', ':']).map(|at| (content[..at].trim(), content[at + 1..].trim()));
            let Some((name, value)) = split else { continue };
            let quoted = name.trim_matches(['"', '\'']);
            let plain = !quoted.is_empty() && quoted.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
            if !plain || name.starts_with("--") {
                continue;
            }
            let mut value = value.to_string();
            while depth(&value) > 0 {
                let Some(more) = lines.next() else { break };
                value.push(' ');
                value.push_str(more.trim());
            }
            let indent = line.len() - line.trim_start().len();
            above.retain(|(other, _)| *other < indent);
            if value.is_empty() {
                above.push((indent, quoted.to_string()));
                continue;
            }
            let parents = above.iter().map(|(_, name)| name.as_str());
            let path: Vec<&str> =
                [section.as_str()].into_iter().chain(parents).chain([quoted]).filter(|part| !part.is_empty()).collect();
            let value = value.trim_end_matches([',', ';']);
            // A Python dictionary is JSON except for its constants and trailing comma.
            if let Some(inner) = value.strip_prefix('{').and_then(|_| dictionary(value)) {
                self.json(&path.join("."), &inner);
            }
            self.add(&path.join("."), value);
        }
    }
}

fn dictionary(text: &str) -> Option<serde_json::Value> {
    let mut json = text.replace("True", "true").replace("False", "false").replace("None", "null").replace('\'', "\"");
    while let Some(at) = json.find(", }").or_else(|| json.find(",}")) {
        json.remove(at);
    }
    serde_json::from_str(&json).ok()
}

/// Number of brackets left open outside of quotes; 0 if more close than open.
fn depth(text: &str) -> usize {
    let mut depth = 0usize;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth
}

/// Text without comments, and the comments.
fn without_comments(text: &str) -> (String, Vec<String>) {
    let mut comments = vec![];
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        let mut quote = None;
        let mut end = line.len();
        let mut before = ' ';
        for (at, c) in line.char_indices() {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, '#') if before.is_whitespace() => {
                    comments.push(line[at + 1..].trim().to_string());
                    end = at;
                    break;
                }
                _ => {}
            }
            before = c;
        }
        code.push_str(line[..end].trim_end());
        code.push('\n');
    }
    (code, comments)
}

/// Words of a shell line: blanks outside of quotes separate them, quotes are dropped.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() || c == '\\' => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Word with `$NAME`, `${NAME}` and `${NAME:-default}` replaced; unknown variables stay.
fn resolved(word: &str, variables: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (name, default, after) = if let Some(inner) = rest.strip_prefix('{') {
            let Some(end) = inner.find('}') else { break };
            let (name, default) = inner[..end].split_once(":-").map_or((&inner[..end], None), |(n, d)| (n, Some(d)));
            (name, default, &inner[end + 1..])
        } else {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            (&rest[..end], None, &rest[end..])
        };
        match variables.get(name).map(String::as_str).or(default) {
            Some(value) => text.push_str(value),
            None => text.push_str(&format!("${name}")),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    let whole = |quote: char| value.len() >= 2 && value.starts_with(quote) && value.ends_with(quote);
    if whole('"') || whole('\'') { &value[1..value.len() - 1] } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_with_its_variables() {
        let facts = JobFacts::of(
            "#!/bin/bash\n# a comment --num-layers 99\nTP=2\nexport PP=${PP:-4}\nGPUS_PER_NODE=8\nARGS=(\n  --num-layers 32\n  \
             --swiglu --bf16\n)\ntorchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py \\\n  --tensor-model-parallel-size $TP \
             --pipeline-model-parallel-size=${PP} ${ARGS[@]} --layout \"Et*8|t*8L\"\n",
        );
        for (name, value) in [
            ("num_layers", "32"),
            ("swiglu", "true"),
            ("bf16", "true"),
            ("tensor_model_parallel_size", "2"),
            ("pipeline_model_parallel_size", "4"),
            ("nproc_per_node", "8"),
            ("layout", "Et*8|t*8L"),
        ] {
            assert_eq!(facts.get(name), Some(value), "{name}: {facts:?}");
        }
    }

    #[test]
    fn a_dump_toml_yaml_python_and_json_are_read() {
        let dump = JobFacts::of(
            "------------------------ arguments ------------------------\n  num_layers ...................................... 24\n  lr .............. None\n",
        );
        assert_eq!((dump.get("num_layers"), dump.get("lr")), (Some("24"), None));
        let toml =
            JobFacts::of("[parallelism]\ntensor_parallel_degree = 4 # why\n[activation_checkpoint]\nmode = \"full\"\n");
        assert_eq!(toml.get("parallelism.tensor_parallel_degree"), Some("4"));
        assert_eq!(toml.get("activation_checkpoint.mode"), Some("full"));
        let yaml = JobFacts::of(
            "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  megatron_lm_tp_degree: 2\nnum_processes: 8\n",
        );
        assert_eq!(yaml.get("megatron_lm_config.megatron_lm_tp_degree"), Some("2"));
        assert_eq!(yaml.get("num_processes"), Some("8"));
        let python = JobFacts::of(
            "PARTS = [\n    [\"a\", \"b\"],\n    [\"c\"],\n]\nCONFIG = {\n  \"bf16\": {\"enabled\": True},\n}\nx.y = 3\n",
        );
        assert_eq!(python.get("parts"), Some("[ [\"a\", \"b\"], [\"c\"], ]"));
        assert_eq!((python.get("bf16.enabled"), python.get("x.y")), (Some("true"), Some("3")));
        let json = JobFacts::of(r#"{"zero_optimization": {"stage": 1}, "train_batch_size": 64}"#);
        assert_eq!((json.get("zero_optimization.stage"), json.get("train_batch_size")), (Some("1"), Some("64")));
    }

    #[test]
    fn nothing_makes_it_stop_or_panic() {
        for text in ["", "$", "${", "--", "=", "[", "a = [", "\"", "--a=${b", "é='", "a: {", "x ..", "{\"a\": ["] {
            JobFacts::of(text);
        }
    }
}
