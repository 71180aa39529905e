//! From a key to an action, by what is in front of the user.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::action::{Action, Entry, Scope, TABLE};

/// Reads the name of a key: `q`, `ctrl-c`, `shift-left`, `f1`.
fn parse(name: &str) -> Option<(KeyCode, KeyModifiers)> {
    let (modifiers, rest) = match name.split_once('-') {
        Some(("ctrl", rest)) => (KeyModifiers::CONTROL, rest),
        Some(("shift", rest)) => (KeyModifiers::SHIFT, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match rest {
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "tab" => KeyCode::Tab,
        "backtab" => KeyCode::BackTab,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "space" => KeyCode::Char(' '),
        "f1" => KeyCode::F(1),
        _ => {
            let mut chars = rest.chars();
            let only = chars.next()?;
            if chars.next().is_some() {
                return None;
            }
            KeyCode::Char(only)
        }
    };
    Some((code, modifiers))
}

/// A key as help and hints show it.
pub fn shown(name: &str) -> String {
    match name {
        "left" => "◂".into(),
        "right" => "▸".into(),
        "up" => "↑".into(),
        "down" => "↓".into(),
        "shift-left" => "⇧◂".into(),
        "shift-right" => "⇧▸".into(),
        "enter" => "⏎".into(),
        "tab" => "⇥".into(),
        "backtab" => "⇧⇥".into(),
        "ctrl-c" => "Ctrl-C".into(),
        "ctrl-z" => "Ctrl-Z".into(),
        "ctrl-t" => "Ctrl-T".into(),
        "ctrl-r" => "Ctrl-R".into(),
        "f1" => "F1".into(),
        "pageup" => "PgUp".into(),
        "pagedown" => "PgDn".into(),
        "home" => "Home".into(),
        "end" => "End".into(),
        "esc" => "Esc".into(),
        "backspace" => "Backspace".into(),
        "delete" => "Del".into(),
        other => other.into(),
    }
}

/// Whether a key press is the key of this name. Shift counts only where the key has no shifted character.
fn is(key: &KeyEvent, name: &str) -> bool {
    let Some((code, modifiers)) = parse(name) else { return false };
    let relevant = match key.code {
        KeyCode::Char(_) | KeyCode::BackTab => KeyModifiers::CONTROL | KeyModifiers::ALT,
        _ => KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SHIFT,
    };
    key.code == code && key.modifiers & relevant == modifiers
}

/// The action of a key where these scopes are in force.
pub fn lookup(key: &KeyEvent, scopes: &[Scope]) -> Option<Action> {
    let heard = |entry: &&Entry| scopes.contains(&entry.scope) && entry.keys.iter().any(|name| is(key, name));
    TABLE.iter().find(heard).map(|entry| entry.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Scope; 10] = [
        Scope::Panel,
        Scope::Stages,
        Scope::Tree,
        Scope::Devices,
        Scope::Timeline,
        Scope::Compare,
        Scope::Sweep,
        Scope::Workload,
        Scope::Lists,
        Scope::Everywhere,
    ];

    #[test]
    fn every_key_in_the_table_is_one_and_reaches_its_action() {
        for entry in TABLE {
            assert!(!entry.keys.is_empty() && !entry.help.is_empty(), "{entry:?}");
            for name in entry.keys {
                let (code, modifiers) = parse(name).unwrap_or_else(|| panic!("{name} is no key"));
                let found = lookup(&KeyEvent::new(code, modifiers), &[entry.scope]);
                assert_eq!(found, Some(entry.action), "{name} in {:?}", entry.scope);
            }
        }
    }

    #[test]
    fn no_key_of_everywhere_is_hidden_by_another_scope() {
        let everywhere = TABLE.iter().filter(|e| e.scope == Scope::Everywhere);
        for entry in everywhere {
            for name in entry.keys {
                let (code, modifiers) = parse(name).unwrap();
                assert_eq!(lookup(&KeyEvent::new(code, modifiers), &ALL), Some(entry.action), "{name}");
            }
        }
    }

    #[test]
    fn shift_tells_arrows_apart_but_not_letters() {
        let key = |code, modifiers| KeyEvent::new(code, modifiers);
        let panel = [Scope::Panel, Scope::Everywhere];
        assert_eq!(lookup(&key(KeyCode::Right, KeyModifiers::SHIFT), &panel), Some(Action::IncreaseLarge));
        assert_eq!(lookup(&key(KeyCode::Right, KeyModifiers::NONE), &panel), Some(Action::Increase));
        assert_eq!(lookup(&key(KeyCode::Char('S'), KeyModifiers::SHIFT), &panel), Some(Action::SaveScreen));
        assert_eq!(lookup(&key(KeyCode::Char('c'), KeyModifiers::CONTROL), &panel), Some(Action::Quit));
        assert_eq!(lookup(&key(KeyCode::Char('z'), KeyModifiers::NONE), &panel), None);
    }
}
