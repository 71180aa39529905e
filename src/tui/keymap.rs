//! Maps a key to an action, given the scopes in force.
//!
//! The action table declares each action's keys. A [`Keymap`] holds the keys in force, which a configuration may have
//! changed. Help, palette and bottom line read the keymap, never the table. Ctrl-C and Ctrl-Z always quit and suspend,
//! so that no configuration can lock users in.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Entry, Scope, TABLE};

/// Key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// Named keys, and their signs on the screen.
const NAMED: [(&str, KeyCode, &str); 15] = [
    ("left", KeyCode::Left, "◂"),
    ("right", KeyCode::Right, "▸"),
    ("up", KeyCode::Up, "↑"),
    ("down", KeyCode::Down, "↓"),
    ("pageup", KeyCode::PageUp, "PgUp"),
    ("pagedown", KeyCode::PageDown, "PgDn"),
    ("home", KeyCode::Home, "Home"),
    ("end", KeyCode::End, "End"),
    ("enter", KeyCode::Enter, "⏎"),
    ("esc", KeyCode::Esc, "Esc"),
    ("tab", KeyCode::Tab, "⇥"),
    ("backtab", KeyCode::BackTab, "⇧⇥"),
    ("backspace", KeyCode::Backspace, "Backspace"),
    ("delete", KeyCode::Delete, "Del"),
    ("space", KeyCode::Char(' '), "space"),
];

/// Named modifiers, and their signs on the screen.
const MODIFIERS: [(&str, KeyModifiers, &str); 3] = [
    ("ctrl-", KeyModifiers::CONTROL, "Ctrl-"),
    ("alt-", KeyModifiers::ALT, "Alt-"),
    ("shift-", KeyModifiers::SHIFT, "⇧"),
];

impl Key {
    /// Parses the name of a key: `q`, `ctrl-c`, `shift-left`, `f1`. A capital letter stands for a shifted one.
    pub fn parse(name: &str) -> Option<Key> {
        let (mut rest, mut modifiers) = (name, KeyModifiers::NONE);
        while let Some((prefix, modifier, _)) = MODIFIERS.iter().find(|(prefix, ..)| rest.starts_with(prefix)) {
            rest = &rest[prefix.len()..];
            modifiers |= *modifier;
        }
        let named = NAMED.iter().find(|(name, ..)| *name == rest).map(|(_, code, _)| *code);
        let function = || rest.strip_prefix('f')?.parse().ok().filter(|n| (1..=12).contains(n)).map(KeyCode::F);
        let code = match named.or_else(function) {
            Some(code) => code,
            None => {
                let mut chars = rest.chars();
                let only = chars.next().filter(|c| !c.is_control() && !c.is_whitespace())?;
                if chars.next().is_some() {
                    return None;
                }
                // Terminals send Shift with a character as another character, and Ctrl with a capital as a small
                // letter.
                let lost = modifiers.contains(KeyModifiers::SHIFT)
                    || (modifiers.contains(KeyModifiers::CONTROL) && only.is_uppercase());
                if lost {
                    return None;
                }
                KeyCode::Char(only)
            }
        };
        Some(Key { code, modifiers })
    }

    /// Name in configuration files.
    pub fn name(&self) -> String {
        self.spelled(|(prefix, ..)| prefix, |(name, ..)| name)
    }

    fn spelled(
        &self,
        modifier: impl Fn(&(&'static str, KeyModifiers, &'static str)) -> &'static str,
        named: impl Fn(&(&'static str, KeyCode, &'static str)) -> &'static str,
    ) -> String {
        let held = MODIFIERS.iter().filter(|(_, held, _)| self.modifiers.contains(*held));
        let mut text: String = held.map(modifier).collect();
        match (NAMED.iter().find(|(_, code, _)| *code == self.code), self.code) {
            (Some(entry), _) => text.push_str(named(entry)),
            (None, KeyCode::F(n)) => text.push_str(&format!("f{n}")),
            (None, KeyCode::Char(c)) => text.push(c),
            (None, _) => {}
        }
        text
    }

    /// True if a key press is this key. Shift counts only for keys without a shifted character.
    fn is(&self, key: &KeyEvent) -> bool {
        let relevant = match key.code {
            KeyCode::Char(_) | KeyCode::BackTab => KeyModifiers::CONTROL | KeyModifiers::ALT,
            _ => KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT,
        };
        key.code == self.code && key.modifiers & relevant == self.modifiers
    }
}

/// Text in help and hints.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.spelled(|(_, _, shown)| shown, |(_, _, shown)| shown);
        match self.code {
            // Letters with a modifier or a number are shown as capitals for readability.
            KeyCode::Char(c) if !self.modifiers.is_empty() && c.is_ascii_lowercase() => {
                write!(f, "{}{}", &text[..text.len() - 1], c.to_ascii_uppercase())
            }
            KeyCode::F(_) => f.write_str(&text.replace('f', "F")),
            _ => f.write_str(&text),
        }
    }
}

/// Text of a key of the table in help and hints.
pub(crate) fn shown(name: &str) -> String {
    Key::parse(name).map_or_else(|| name.to_string(), |key| key.to_string())
}

/// Two actions of one scope with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clash {
    /// The key.
    pub key: Key,
    /// Indices of the two in [`TABLE`].
    pub entries: (usize, usize),
}

/// Keys in force: for each entry of `TABLE`, by index, its keys. The first one is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    keys: Vec<Vec<Key>>,
    /// True to show Enter, Tab and Shift as words.
    words: bool,
}

impl Default for Keymap {
    /// Keys of the table.
    fn default() -> Self {
        let keys = TABLE.iter().map(|entry| entry.keys.iter().filter_map(|name| Key::parse(name)).collect());
        Keymap { keys: keys.collect(), words: false }
    }
}

/// Keys with a fixed action.
const HELD: [(&str, Action); 2] = [("ctrl-c", Action::Quit), ("ctrl-z", Action::Suspend)];

impl Keymap {
    /// Fixed action of a key, if it has one.
    pub fn held(key: Key) -> Option<Action> {
        HELD.iter().find(|(name, _)| Key::parse(name) == Some(key)).map(|(_, action)| *action)
    }

    /// Index in the table of an action's first entry in a scope.
    pub fn find(scope: &str, action: &str) -> Option<usize> {
        TABLE.iter().position(|entry| entry.scope.id() == scope && entry.action.id() == action)
    }

    /// Replaces the keys of an entry. Ctrl-C and Ctrl-Z keep their actions.
    pub fn bind(&mut self, entry: usize, mut keys: Vec<Key>) {
        for key in HELD.iter().filter(|(_, action)| *action == TABLE[entry].action).filter_map(|(k, _)| Key::parse(k)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        self.keys[entry] = keys;
    }

    /// Keys of an entry of the table.
    pub fn of(&self, entry: usize) -> &[Key] {
        &self.keys[entry]
    }

    /// Two actions of one scope with the same key, if any.
    pub fn clash(&self) -> Option<Clash> {
        for (i, entry) in TABLE.iter().enumerate() {
            for (j, _) in TABLE.iter().enumerate().skip(i + 1).filter(|(_, other)| other.scope == entry.scope) {
                if let Some(&key) = self.keys[i].iter().find(|key| self.keys[j].contains(key)) {
                    return Some(Clash { key, entries: (i, j) });
                }
            }
        }
        None
    }

    /// Action of a key in these scopes.
    pub fn lookup(&self, key: &KeyEvent, scopes: &[Scope]) -> Option<Action> {
        let mut entries = TABLE.iter().zip(&self.keys);
        let heard = entries.find(|(entry, keys)| scopes.contains(&entry.scope) && keys.iter().any(|k| k.is(key)));
        heard.map(|(entry, _)| entry.action)
    }

    /// Scope in which a key press means something, where it means nothing in these scopes.
    pub(super) fn elsewhere(&self, key: &KeyEvent) -> Option<Scope> {
        let mut entries = TABLE.iter().zip(&self.keys);
        entries.find(|(_, keys)| keys.iter().any(|own| own.is(key))).map(|(entry, _)| entry.scope)
    }

    /// Shown key of an entry; empty if it has none.
    pub fn shown(&self, entry: usize) -> String {
        self.keys[entry].first().map(|key| self.spell(key)).unwrap_or_default()
    }

    /// All keys of an entry, for the help.
    pub fn all_shown(&self, entry: usize) -> String {
        let shown: Vec<String> = self.keys[entry].iter().map(|key| self.spell(key)).collect();
        shown.join(" ")
    }

    /// Shown key of the first entry of an action; `None` if it has none.
    pub fn of_action(&self, action: Action) -> Option<String> {
        self.of_entry(|entry| entry.action == action)
    }

    /// Key of an action in a scope; several scopes may have the action, with a key each.
    pub fn of_action_in(&self, scope: Scope, action: Action) -> Option<String> {
        self.of_entry(|entry| entry.action == action && entry.scope == scope)
    }

    fn of_entry(&self, wanted: impl Fn(&Entry) -> bool) -> Option<String> {
        let entry = TABLE.iter().position(wanted)?;
        self.keys[entry].first().map(|key| self.spell(key))
    }

    /// Returns the same keys, shown as words if ASCII has no sign for them.
    #[must_use]
    pub fn in_words(self) -> Self {
        Keymap { words: true, ..self }
    }

    fn spell(&self, key: &Key) -> String {
        let text = key.to_string();
        if self.words { text.replace('⏎', "Enter").replace('⇥', "Tab").replace('⇧', "Shift-") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::View;

    /// Every scope.
    fn all() -> Vec<Scope> {
        let views = View::ALL.into_iter().flat_map(|view| view.scopes().iter().copied());
        [Scope::Panel].into_iter().chain(views).chain([Scope::Lists, Scope::Everywhere]).collect()
    }

    fn event(key: Key) -> KeyEvent {
        KeyEvent::new(key.code, key.modifiers)
    }

    #[test]
    fn every_key_in_the_table_is_one_and_reaches_its_action() {
        let map = Keymap::default();
        for entry in TABLE {
            assert!(!entry.keys.is_empty() && !entry.help.is_empty(), "{entry:?}");
            for name in entry.keys {
                let key = Key::parse(name).unwrap_or_else(|| panic!("{name} is no key"));
                assert_eq!(key.name(), *name);
                assert_eq!(map.lookup(&event(key), &[entry.scope]), Some(entry.action), "{name} in {:?}", entry.scope);
            }
        }
        assert_eq!(map.clash(), None);
    }

    #[test]
    fn every_entry_has_an_id_of_its_own() {
        for (i, entry) in TABLE.iter().enumerate() {
            assert_eq!(Keymap::find(&entry.scope.id(), &entry.action.id()), Some(i), "{entry:?} is there twice");
        }
        assert_eq!(Action::NextEvent.id(), "next-event");
        assert_eq!(Action::Show(View::Stages).id(), "show-stages");
    }

    /// A configuration file that names one of these must not break with a new version.
    #[test]
    fn ids_that_were_published_stay() {
        let published = "panel.decrease panel.increase panel.decrease-large panel.increase-large panel.edit panel.reset \
            tree.unfold tree.fold tree.toggle tree.unfold-all tree.fold-all tree.find tree.find-next tree.find-previous \
            devices.toggle timeline.cursor-left timeline.cursor-right timeline.zoom-in timeline.zoom-out \
            timeline.zoom-whole timeline.pan-left timeline.pan-right timeline.next-event timeline.previous-event \
            timeline.toggle timeline.next-schedule workload.next-section lists.up lists.down lists.page-up \
            lists.page-down lists.first lists.last everywhere.show-stages everywhere.show-devices \
            everywhere.show-timeline everywhere.show-compare everywhere.show-sweep everywhere.show-workload \
            everywhere.next-panel everywhere.fold-panel everywhere.fit-memory everywhere.fit-devices \
            everywhere.next-objective everywhere.convergence everywhere.export everywhere.open everywhere.copy \
            everywhere.save-screen everywhere.next-theme everywhere.palette everywhere.help everywhere.back \
            everywhere.suspend everywhere.quit";
        for id in published.split_whitespace() {
            let (scope, action) = id.split_once('.').unwrap();
            assert!(Keymap::find(scope, action).is_some(), "{id}");
        }
    }

    #[test]
    fn no_key_of_everywhere_is_hidden_by_another_scope() {
        let map = Keymap::default();
        for (i, entry) in TABLE.iter().enumerate().filter(|(_, e)| e.scope == Scope::Everywhere) {
            for key in map.of(i) {
                assert_eq!(map.lookup(&event(*key), &all()), Some(entry.action), "{key}");
            }
        }
    }

    #[test]
    fn shift_tells_arrows_apart_but_not_letters() {
        let map = Keymap::default();
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        let panel = [Scope::Panel, Scope::Everywhere];
        assert_eq!(map.lookup(&key(KeyCode::Right, KeyModifiers::SHIFT), &panel), Some(Action::IncreaseLarge));
        assert_eq!(map.lookup(&key(KeyCode::Right, KeyModifiers::NONE), &panel), Some(Action::Increase));
        assert_eq!(map.lookup(&key(KeyCode::Char('S'), KeyModifiers::SHIFT), &panel), Some(Action::SaveSlide));
        assert_eq!(map.lookup(&key(KeyCode::Char('c'), KeyModifiers::CONTROL), &panel), Some(Action::Quit));
        assert_eq!(map.lookup(&key(KeyCode::Char('z'), KeyModifiers::NONE), &panel), None);
    }

    #[test]
    fn names_of_keys_are_read_and_written() {
        for (name, shown) in [
            ("q", "q"),
            ("Q", "Q"),
            ("-", "-"),
            ("ctrl-x", "Ctrl-X"),
            ("alt-left", "Alt-◂"),
            ("ctrl-alt-d", "Ctrl-Alt-D"),
            ("shift-f5", "⇧F5"),
            ("f12", "F12"),
            ("space", "space"),
        ] {
            let key = Key::parse(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!((key.name().as_str(), key.to_string().as_str()), (name, shown));
        }
        for name in ["", "qq", "shift-q", "ctrl-Q", "ctrl-", "f13", "f0", " ", "meta-x"] {
            assert_eq!(Key::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_rebound_key_moves_its_action_and_control_c_stays() {
        let mut map = Keymap::default();
        let quit = Keymap::find("everywhere", "quit").unwrap();
        map.bind(quit, vec![Key::parse("Q").unwrap()]);
        let press = |name| event(Key::parse(name).unwrap());
        assert_eq!(map.lookup(&press("q"), &all()), None);
        assert_eq!(map.lookup(&press("Q"), &all()), Some(Action::Quit));
        assert_eq!(map.lookup(&press("ctrl-c"), &all()), Some(Action::Quit));
        assert_eq!(map.all_shown(quit), "Q Ctrl-C");
        let export = Keymap::find("everywhere", "export").unwrap();
        map.bind(export, vec![Key::parse("Q").unwrap()]);
        assert_eq!(map.clash().map(|clash| clash.key), Key::parse("Q"));
        map.bind(export, vec![]);
        assert_eq!((map.clash(), map.of_action(Action::Export)), (None, None));
    }
}
