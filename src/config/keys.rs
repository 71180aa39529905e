//! Keys of the screen in a configuration file: a table `[keys.SCOPE]` for each scope.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, ConfigError,
    read::{ConfigReader, in_order},
    settings::texts,
};
use crate::{
    source::error::printable,
    tui::{
        action::{Scope, TABLE},
        keymap::{Key, Keymap},
    },
};

const HEAD: &str = "\
# Keys: a text or a list for each action, [] for none. A key is a character, or one of enter, space, tab, backtab, esc,
# backspace, delete, left, right, up, down, home, end, pageup, pagedown, f1 to f12; with shift- (not for \
characters), ctrl-
# or alt- before it. Ctrl-C always leaves, Ctrl-Z always suspends. In lists and forms over the screen, arrows,
# Enter and Esc keep their meaning.
";

/// Writes the tables of all keys.
pub(super) fn write(keymap: &Keymap, text: &mut String) {
    text.push_str(&format!("\n{HEAD}"));
    let mut scope: Option<Scope> = None;
    let mut entries: Vec<usize> = (0..TABLE.len()).collect();
    // TOML forbids opening a table twice.
    entries.sort_by_key(|&i| TABLE[i].scope.place());
    for i in entries {
        let entry = &TABLE[i];
        if scope != Some(entry.scope) {
            text.push_str(&format!("\n[keys.{}]\n", entry.scope.id()));
            scope = Some(entry.scope);
        }
        let keys: Vec<toml::Value> = keymap.of(i).iter().map(|key| key.name().into()).collect();
        let set = format!("{} = {}", entry.action.id(), toml::Value::Array(keys));
        text.push_str(&format!("{set:<40} # {}\n", entry.help));
    }
}

impl ConfigReader<'_> {
    /// Binds the keys of all scopes, then checks for two actions with one key.
    pub(super) fn keys(&self, config: &mut Config, scopes: &DeTable<'_>) -> Result<(), ConfigError> {
        // Position in the file of each bound entry, for error messages.
        let mut bound: Vec<Option<usize>> = vec![None; TABLE.len()];
        for (scope_key, actions) in in_order(scopes) {
            let scope = scope_key.get_ref().as_ref();
            let mut known: Vec<String> = TABLE.iter().map(|entry| entry.scope.id()).collect();
            known.dedup();
            if !known.iter().any(|id| id == scope) {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                return Err(self.unknown(scope_key.span().start, "scope of keys", scope, &known));
            }
            let DeValue::Table(actions) = actions.get_ref() else {
                let repair = format!("write [keys.{scope}] above `action = \"key\"`");
                return Err(self.error(scope_key.span().start, &format!("`keys.{scope}` is not a table"), &repair));
            };
            for (key, value) in in_order(actions) {
                let entry = self.action(scope, key)?;
                config.keymap.bind(entry, self.bound_keys(scope, key.get_ref(), value)?);
                bound[entry] = Some(key.span().start);
            }
        }
        let Some(clash) = config.keymap.clash() else { return Ok(()) };
        let (first, second) = clash.entries;
        let (ours, other) = if bound[second].is_some() { (second, first) } else { (first, second) };
        let (scope, name) = (TABLE[ours].scope.id(), clash.key.name());
        let problem = format!(
            "the key `{name}` is bound to both `{}` and `{}` in [keys.{scope}]",
            TABLE[ours].action.id(),
            TABLE[other].action.id()
        );
        let repair = format!("give one of them another key, for example `{} = []` for none", TABLE[other].action.id());
        Err(self.error(bound[ours].unwrap_or(0), &problem, &repair))
    }

    fn action(&self, scope: &str, key: &Spanned<std::borrow::Cow<'_, str>>) -> Result<usize, ConfigError> {
        let action = key.get_ref().as_ref();
        Keymap::find(scope, action).ok_or_else(|| {
            let elsewhere = TABLE.iter().find(|entry| entry.action.id() == action);
            if let Some(entry) = elsewhere {
                let problem = format!("[keys.{scope}] has no `{action}`");
                return self.error(key.span().start, &problem, &format!("it belongs in [keys.{}]", entry.scope.id()));
            }
            let known: Vec<String> =
                TABLE.iter().filter(|entry| entry.scope.id() == scope).map(|entry| entry.action.id()).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            self.unknown(key.span().start, &format!("action of [keys.{scope}]"), action, &known)
        })
    }

    fn bound_keys(&self, scope: &str, action: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Key>, ConfigError> {
        let at = value.span().start;
        let names = texts(value.get_ref())
            .map_err(|repair| self.error(at, &format!("keys.{scope}.{action} is not a key"), &repair))?;
        let mut keys: Vec<Key> = vec![];
        for name in names {
            let key = Key::parse(name).ok_or_else(|| {
                let repair = "write a character, or such as enter, space, f5, shift-left, ctrl-x, alt-x";
                self.error(at, &format!("`{}` is not a key", printable(name)), repair)
            })?;
            if let Some(held) = Keymap::held(key).filter(|held| held.id() != action) {
                let problem = format!("`{name}` is reserved for `{}`", held.id());
                return Err(self.error(at, &problem, &format!("choose another key for `{action}`")));
            }
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}
