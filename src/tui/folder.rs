//! Entries of a typed folder, completion by Tab, and facts of a file before it is loaded.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::files;
use crate::units;

/// Maximum number of visited entries of a folder, and bytes read to detect a file's kind.
const MOST: usize = 2_000;
const HEAD: u64 = 16 * 1024;

/// Facts of a file before it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Facts {
    /// Likely kind: `Piper profile`, `plan`, `folder`; empty if unknown.
    pub(super) kind: &'static str,
    /// Size: `84 KiB`.
    pub(super) size: String,
    /// Time since its last change: `3 h ago`.
    pub(super) age: String,
}

/// Splits a typed path into a folder and the beginning of a name, if the folder exists.
fn parted(typed: &str) -> Option<(PathBuf, String)> {
    let typed = files::expand_home(typed);
    let (folder, begin) = typed.rsplit_once('/')?;
    let folder = if folder.is_empty() { PathBuf::from("/") } else { PathBuf::from(folder) };
    folder.is_dir().then(|| (folder, begin.to_string()))
}

/// Folders and loadable files in the typed folder whose names start as typed, folders first. `O(n log n)` in the
/// entries of the folder.
pub(super) fn inside(typed: &str) -> Vec<PathBuf> {
    let Some((folder, begin)) = parted(typed) else { return vec![] };
    let hidden = begin.starts_with('.');
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let kind = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        name.starts_with(&begin)
            && (hidden || !name.starts_with('.'))
            && (path.is_dir() || matches!(kind, "json" | "txt"))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.take(MOST).filter(fits).collect();
    found.sort_by_cached_key(|path| (!path.is_dir(), path.clone()));
    found
}

/// Completes the typed path by the common prefix of all matches; `None` if that adds nothing.
pub(super) fn completed(typed: &str) -> Option<String> {
    let (_, begin) = parted(typed)?;
    let found = inside(typed);
    let names: Vec<String> = found.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_string)).collect();
    let first = names.first()?;
    let agree = |length: usize| names.iter().all(|name| name.get(..length) == first.get(..length));
    let length = (begin.len()..=first.len()).filter(|&l| first.is_char_boundary(l)).take_while(|&l| agree(l)).last()?;
    let mut whole = format!("{}{}", &typed[..typed.len() - begin.len()], &first[..length]);
    if names.len() == 1 && found[0].is_dir() {
        whole.push('/');
    }
    (whole != typed).then_some(whole)
}

/// Facts of a file or folder.
pub(super) fn facts(path: &Path) -> Facts {
    let Ok(about) = fs::metadata(path) else { return Facts::default() };
    let age = about.modified().ok().and_then(|then| SystemTime::now().duration_since(then).ok());
    let age = age.map_or_else(String::new, |age| ago(age.as_secs()));
    if about.is_dir() {
        return Facts { kind: "folder", size: String::new(), age };
    }
    Facts { kind: if about.is_file() { kind(path) } else { "" }, size: units::bytes(about.len() as f64), age }
}

fn ago(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".into(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Likely kind of a file, by words that only files of that kind contain.
fn kind(path: &Path) -> &'static str {
    let mut head = vec![];
    if fs::File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).is_err() {
        return "";
    }
    let text = String::from_utf8_lossy(&head);
    let kinds = [
        ("plantui.plan/", "plan"),
        ("plantui.operators/", "operators"),
        ("plantui.training/", "training"),
        ("TMPCs", "Piper profile"),
        ("cpuLatency", "placement"),
        ("fpgaLatency", "placement"),
        (" -- forward_compute_time", "layer profile"),
    ];
    kinds.into_iter().find(|(word, _)| text.contains(word)).map_or("", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_completed_and_files_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap().to_string();
        fs::create_dir(folder.path().join("models")).unwrap();
        fs::write(folder.path().join("models/bert-a.json"), "{\"nodes\": [{\"TMPCs\": {}}]}").unwrap();
        fs::write(folder.path().join("models/bert-b.json"), "{\"schema\": \"plantui.plan/1\"}").unwrap();
        fs::write(folder.path().join("models/notes.md"), "x").unwrap();
        fs::write(folder.path().join("models/.hidden.json"), "{}").unwrap();
        assert_eq!(completed(&format!("{root}/mo")), Some(format!("{root}/models/")));
        assert_eq!(completed(&format!("{root}/models/b")), Some(format!("{root}/models/bert-")));
        assert_eq!(completed(&format!("{root}/models/bert-")), None);
        assert_eq!(completed("nothing/there"), None);
        let found = inside(&format!("{root}/models/"));
        assert_eq!(found.len(), 2);
        assert_eq!((facts(&found[0]).kind, facts(&found[1]).kind), ("Piper profile", "plan"));
        assert_eq!(facts(&folder.path().join("models")).kind, "folder");
        assert_eq!(facts(&found[0]).age, "just now");
        assert_eq!((ago(7_300).as_str(), ago(200_000).as_str()), ("2 h ago", "2 d ago"));
    }
}
