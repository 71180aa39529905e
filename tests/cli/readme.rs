//! The calls of README and of the book in docs/ give the output they show.
//!
//! Every `console` block is replayed: a line that starts with `$ plantui` is run by a shell, the lines below it must be the start
//! of its output (`...` stands for the rest), with times of planning left out of the comparison. Each page has a folder
//! of its own with `inputs/` in it, so that a page may use the files that it wrote, and no other's. A block that begins
//! with a language and a name (`csv runs.csv`) is such a file.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// A call and what a page shows of its output.
struct Call {
    command: String,
    shown: Vec<String>,
}

fn calls(text: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = vec![];
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && line.starts_with("$ plantui ") {
            calls.push(Call { command: line[2..].into(), shown: vec![] });
        } else if inside {
            calls.last_mut().expect("a block starts with a call").shown.push(line.into());
        }
    }
    calls
}

/// Files that a page shows: name and content of each block that begins with a language and a name.
fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = vec![];
    let mut block: Option<&str> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), block) {
            (Some(info), None) => {
                block = Some(info);
                if let Some((_, name)) = info.split_once(' ') {
                    files.push((name, String::new()));
                }
            }
            (Some(_), Some(_)) => block = None,
            (None, Some(info)) if info.contains(' ') => {
                let (_, content) = files.last_mut().expect("a named block has begun");
                content.push_str(line);
                content.push('\n');
            }
            (None, _) => {}
        }
    }
    files
}

/// The line without the time that planning took.
fn timeless(line: &str) -> String {
    match line.rsplit_once(", in ") {
        Some((before, time)) if time.ends_with('s') => before.into(),
        _ => line.trim_end().into(),
    }
}

/// README.md and all pages below docs/src, sorted by path.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut pages, mut folders) = (vec![], vec![root.join("docs/src")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages.push(root.join("README.md"));
    pages
}

/// Replays a page's calls in a folder of their own; the number of calls.
fn replay(page: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let inputs = folder.path().join("inputs");
    fs::create_dir(&inputs).unwrap();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), inputs.join(entry.file_name())).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_plantui")).parent().unwrap().to_path_buf();
    let elsewhere = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([program].into_iter().chain(env::split_paths(&elsewhere))).unwrap();
    let text = fs::read_to_string(page).unwrap();
    for (name, content) in files(&text) {
        fs::write(folder.path().join(name), content).unwrap();
    }
    let calls = calls(&text);
    for call in &calls {
        let name = format!("{}: {}", page.display(), call.command);
        let mut shell = Command::new("sh");
        shell.args(["-c", &call.command]).current_dir(folder.path()).env("PATH", &path).stdin(Stdio::null());
        let output = shell.output().unwrap();
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{name}: {code:?} {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let got: Vec<String> = text.lines().map(timeless).collect();
        let cut = call.shown.iter().position(|line| line == "...");
        let wanted: Vec<String> =
            call.shown[..cut.unwrap_or(call.shown.len())].iter().map(|line| timeless(line)).collect();
        assert!(got.len() >= wanted.len(), "{name}: the page shows more than\n{text}");
        assert_eq!(got[..wanted.len()], wanted, "{name}");
        if cut.is_none() && !wanted.is_empty() {
            assert_eq!(got.len(), wanted.len(), "{name} prints more than the page shows");
        }
    }
    calls.len()
}

#[test]
fn the_calls_of_the_readme_and_the_docs_give_the_output_they_show() {
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let pages = pages();
        let replays: Vec<_> = pages.into_iter().map(|page| scope.spawn(move || replay(&page))).collect();
        replays.into_iter().map(|replay| replay.join().expect("every call gives what its page shows")).collect()
    });
    assert!(counts.iter().sum::<usize>() >= 30, "only {counts:?} calls found");
}

#[test]
fn every_page_says_what_it_is_for_in_its_first_line() {
    for page in pages().into_iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let text = fs::read_to_string(&page).unwrap();
        let mut lines = text.lines();
        assert!(lines.next().is_some_and(|title| title.starts_with("# ")), "{}: no title", page.display());
        let first = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let sentence = first.starts_with(|c: char| c.is_ascii_uppercase() || "`*p".contains(c));
        assert!(sentence && first.contains('.'), "{}: begins with {first:?}", page.display());
    }
}

#[test]
fn every_page_is_in_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src");
    let summary = fs::read_to_string(root.join("SUMMARY.md")).unwrap();
    for page in pages().into_iter().filter(|page| page.starts_with(&root) && !page.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(&root).unwrap().display();
        assert!(summary.contains(&format!("]({name})")), "{name} is not in SUMMARY.md");
    }
}

#[test]
fn the_readme_is_short_and_every_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.lines().count() <= 100, "README.md has {} lines: the rest goes to docs/", readme.lines().count());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            let elsewhere = file.is_empty() || file.contains("://");
            assert!(elsewhere || page.with_file_name(file).exists(), "{}: nothing at {link}", page.display());
        }
    }
}
