//! Megatron-LM's list of arguments at the top of a log: a name, dots, a value.

use crate::setting::{Place, Setting, Settings, Value};

/// Longest line that may be an argument.
const LONGEST: usize = 4096;

/// Arguments of a log. A rank or a time may stand before a name.
pub(crate) fn read(text: &str, source: &str) -> Settings {
    let mut settings = Settings::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| line.len() <= LONGEST) {
        let Some((before, behind)) = line.split_once(" ..") else { continue };
        let name = before.split_whitespace().next_back().unwrap_or_default();
        let value = behind.trim_start_matches('.').trim();
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || value.is_empty() || !behind.trim_start_matches('.').starts_with(' ') {
            continue;
        }
        let value = match value {
            "None" => Value::Null,
            "True" => Value::Bool(true),
            "False" => Value::Bool(false),
            list if list.starts_with('[') && list.ends_with(']') => {
                let parts = list[1..list.len() - 1].split(',').map(|word| word.trim().trim_matches(['\'', '"']));
                Value::List(parts.filter(|part| !part.is_empty()).map(|part| Value::Text(part.into())).collect())
            }
            text => Value::Text(text.into()),
        };
        settings.push(Setting::new(name, value, Place::new(source, number as u32 + 1)));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_behind_dots_and_prefixes() {
        let text = "[default0]:  micro_batch_size ....................... 2\n  fp8 ..... None\nwait .. what\n  x ..... [1, 2]\n";
        let read = read(text, "a.log");
        assert_eq!(read.count("micro_batch_size").unwrap().map(|fact| fact.value), Some(2));
        assert!(read.take("fp8").is_none() && read.has("fp8"));
        assert_eq!(read.look("x").map(|setting| setting.value.text()), Some("[1, 2]".into()));
    }
}
