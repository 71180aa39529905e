//! Files, names, arguments and an environment that were made to harm: whatever they hold, what reaches the terminal is text.

use std::{collections::BTreeSet, ffi::OsStr, process::Output};

use clap::{ArgAction, CommandFactory};
use plantui::text::is_hostile;
use serde_json::Value;

use crate::{BERT, Folder, TINY, plantui, stdout};

/// Renames the window, turns the text red in two ways, reverses it, and forges a line of ours.
pub(super) const HOSTILE: &str =
    "h\u{1b}]0;owned\u{7}\u{1b}[31m\u{9b}31m\u{7f}\u{202e}\u{2028}\r\nerror: forged\u{200b}x\t";

/// Runs with these arguments in a folder and looks at every byte that comes out.
fn harmless<S: AsRef<OsStr> + std::fmt::Debug>(folder: &Folder, arguments: &[S]) -> Output {
    let output = plantui().current_dir(folder.path("")).args(arguments).output().expect("it runs");
    inspect(&output, &format!("{arguments:?}"));
    output
}

pub(super) fn inspect(output: &Output, what: &str) {
    for stream in [&output.stdout, &output.stderr] {
        let text = std::str::from_utf8(stream).unwrap_or_else(|_| panic!("{what}: no UTF-8 comes out"));
        let told = text.chars().find(|&c| is_hostile(c) && c != '\n' && c != '\t');
        assert_eq!(told, None, "{what}: {text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{what} forges a line: {text}");
    }
    let code = output.status.code().unwrap_or_else(|| panic!("{what}: killed"));
    assert!((0..=3).contains(&code), "{what}: exit code {code}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Every value of a document, and every key, by its path; of a list the first and the last stand for all.
fn places(document: &Value, path: &str, found: &mut Vec<String>) {
    match document {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                found.push(path.clone());
                places(value, &path, found);
            }
        }
        Value::Array(items) => {
            for at in [0, items.len().saturating_sub(1)].into_iter().collect::<BTreeSet<_>>() {
                if let Some(item) = items.get(at) {
                    found.push(format!("{path}/{at}"));
                    places(item, &format!("{path}/{at}"), found);
                }
            }
        }
        _ => {}
    }
}

/// The document with a hostile value, or with a hostile key in place of the one there, one place after the other.
pub(super) fn poisoned(text: &str) -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(text).expect("it is JSON");
    let mut all = vec![];
    places(&document, "", &mut all);
    // Numbers as keys are ids, of which one is like another.
    let shape = |path: &String| -> String {
        path.split('/').map(|part| if part.parse::<u64>().is_ok() { "*" } else { part }).collect::<Vec<_>>().join("/")
    };
    let mut seen = BTreeSet::new();
    all.retain(|path| seen.insert(shape(path)));
    let mut made = vec![];
    for path in all {
        let mut value = document.clone();
        *value.pointer_mut(&path).expect("it was found there") = HOSTILE.into();
        made.push((path.clone(), value.to_string()));
        let (parent, name) = path.rsplit_once('/').expect("it begins with one");
        if let Some(Value::Object(fields)) = document.pointer(parent) {
            let renamed = |key: &String| if key == name { HOSTILE.to_string() } else { key.clone() };
            let fields = fields.iter().map(|(key, value)| (renamed(key), value.clone())).collect();
            let mut value = document.clone();
            *value.pointer_mut(parent).expect("it was found there") = Value::Object(fields);
            made.push((format!("key {path}"), value.to_string()));
        }
    }
    made
}

/// A workload and a plan for it in the folder.
fn pair(folder: &Folder, family: &str) -> (String, String) {
    let here = |name: &str| format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    let workload = match family {
        "piper" => std::fs::read_to_string(here(TINY)).unwrap(),
        "placement" => stdout(&["convert", TINY, "--to", "placement"], 0),
        "layers" => std::fs::read_to_string(here("inputs/bert32-layers.txt")).unwrap(),
        _ => std::fs::read_to_string(here("inputs/alexnet-operators.json")).unwrap(),
    };
    let workload = folder.file(&format!("{family}.in"), workload);
    let machines: &[&str] = if family == "layers" { &["--machines", "2x4", "--batch", "64"] } else { &[] };
    let plan = stdout(&[&["plan", &workload, "--json", "--deadline", "1s"], machines].concat(), 0);
    (workload, folder.file(&format!("{family}.plan"), plan))
}

#[test]
fn workloads_of_every_format() {
    let folder = Folder::new();
    for family in ["piper", "placement", "operators"] {
        let (workload, plan) = pair(&folder, family);
        for (path, text) in poisoned(&std::fs::read_to_string(&workload).unwrap()) {
            let bad = folder.file("bad.in", text);
            for arguments in
                [&["lint", &bad][..], &["check", &bad, &plan], &["export", &plan, "--workload", &bad, "--to", "dot"]]
            {
                inspect(&plantui().args(arguments).output().unwrap(), &format!("{family} {path} {arguments:?}"));
            }
            if path.to_lowercase().contains("name") || path.contains("assumptions") || path.contains("made_by") {
                for arguments in [
                    &["plan", &bad, "--deadline", "1s"][..],
                    &["plan", &bad, "--json", "--deadline", "1s"],
                    &["convert", &bad, "--to", "piper"],
                ] {
                    inspect(&plantui().args(arguments).output().unwrap(), &format!("{family} {path} {arguments:?}"));
                }
            }
        }
    }
    // A layer profile is lines of text.
    let text = std::fs::read_to_string(pair(&folder, "layers").0).unwrap();
    let line = text.lines().next().unwrap();
    for (place, (start, word)) in line
        .split_inclusive([' ', '=', ','])
        .scan(0, |at, word| {
            *at += word.len();
            Some((*at, word))
        })
        .enumerate()
    {
        let bad =
            format!("{}{}{}", &line[..start - word.len()], HOSTILE.replace(['\r', '\n', '\u{7}'], ""), &line[start..]);
        let bad = folder.file("bad.txt", text.replacen(line, &bad, 1));
        for command in ["lint", "plan"] {
            inspect(&plantui().args([command, &bad]).output().unwrap(), &format!("word {place} of a layer, {command}"));
        }
    }
}

#[test]
fn plans_of_every_format() {
    let folder = Folder::new();
    for family in ["piper", "placement", "layers", "operators"] {
        let (workload, plan) = pair(&folder, family);
        let mut documents = vec![std::fs::read_to_string(&plan).unwrap()];
        let more = match family {
            "piper" => Some("piper"),
            "placement" => Some("placement-split"),
            _ => None,
        };
        documents.extend(more.map(|to| stdout(&["export", &plan, "--workload", &workload, "--to", to], 0)));
        let formats: &[&str] = match family {
            "operators" => &["jax", "svg", "chrome-trace"],
            "piper" => &["megatron", "torch", "csv"],
            _ => &["csv"],
        };
        for (path, text) in documents.iter().flat_map(|document| poisoned(document)) {
            let bad = folder.file("bad.plan", text);
            let mut commands = vec![vec!["check", &workload, &bad], vec!["check", &workload, &bad, "--json"]];
            // What is deep in a document is read by the same reader for every command.
            if path.contains("choices")
                || path.contains("splits")
                || path.contains("TMPCids")
                || path.matches('/').count() < 3
            {
                commands.push(vec!["simulate", &workload, &bad]);
                commands.push(vec!["export", &bad, "--to", "svg"]);
                commands.extend(formats.iter().map(|to| vec!["export", &bad, "--workload", &workload, "--to", to]));
            }
            for arguments in commands {
                inspect(&plantui().args(&arguments).output().unwrap(), &format!("{family} {path} {arguments:?}"));
            }
        }
    }
}

#[test]
fn tables_settings_and_models() {
    let folder = Folder::new();
    let tiny = folder.file("tiny.json", std::fs::read_to_string(TINY).unwrap());
    let table = folder.path("sweep.csv");
    let sweep = ["sweep", &tiny, "--devices", "1..4", "--resume", table.to_str().unwrap()];
    harmless(&folder, &sweep);
    let good = std::fs::read_to_string(&table).unwrap();
    let mut rows = csv::Reader::from_reader(good.as_bytes());
    let header = rows.headers().unwrap().clone();
    let records: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    for (column, title) in header.iter().enumerate() {
        let mut writer = csv::Writer::from_writer(vec![]);
        writer.write_record(&header).unwrap();
        for record in &records {
            let cell = |(at, cell): (usize, &str)| if at == column { HOSTILE.to_string() } else { cell.to_string() };
            writer.write_record(record.iter().enumerate().map(cell)).unwrap();
        }
        std::fs::write(&table, writer.into_inner().unwrap()).unwrap();
        harmless(&folder, &sweep);
        let output = harmless(&folder, &[&sweep[..], &["--csv"]].concat());
        assert!(title == "why" || !output.stdout.is_empty() || !output.stderr.is_empty());
    }
    // The reason why there is no plan is repeated below the table, on one line.
    std::fs::write(&table, &good).unwrap();
    let none = [&sweep[..], &["--memory", "1KiB"]].concat();
    harmless(&folder, &none);
    let text = std::fs::read_to_string(&table).unwrap();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(rows.headers().unwrap()).unwrap();
    for record in rows.records().map(Result::unwrap) {
        let last = record.len() - 1;
        let why = |(at, cell): (usize, &str)| if at == last { HOSTILE.to_string() } else { cell.to_string() };
        writer.write_record(record.iter().enumerate().map(why)).unwrap();
    }
    std::fs::write(&table, writer.into_inner().unwrap()).unwrap();
    let output = harmless(&folder, &none);
    assert!(String::from_utf8_lossy(&output.stdout).contains("31merror: forgedx"), "{output:?}");

    let quoted = Value::from(HOSTILE.replace(['\u{7f}', '\t'], "")).to_string();
    for line in [
        format!("theme = {quoted}"),
        format!("{quoted} = 1"),
        format!("deadline = {quoted}"),
        format!("planners = [{quoted}]"),
        format!("[keys]\n{quoted} = [\"q\"]"),
        format!("[keys]\nquit = [{quoted}]"),
        format!("[limits]\nmemory = {quoted}"),
        format!("schedule = {HOSTILE}"),
    ] {
        let file = folder.file("config.toml", line);
        harmless(&folder, &["--config", &file, "--print-config"]);
        harmless(&folder, &[&tiny, "--config", &file]);
    }
    let model = r#"{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "_name_or_path": "a/b", "hidden_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
        "torch_dtype": "bfloat16", "hidden_act": "silu", "max_position_embeddings": 128}"#;
    for (path, text) in poisoned(model) {
        let bad = folder.file("config.json", text);
        let output = harmless(&folder, &["generate", &bad]);
        if output.status.success() {
            let made = folder.file("made.json", &output.stdout);
            harmless(&folder, &["lint", &made]);
        }
        assert!(!path.is_empty());
    }
}

/// Files that are named to harm, in every command that repeats a name.
#[cfg(unix)]
#[test]
fn names_of_files() {
    use std::os::unix::ffi::OsStrExt;

    let folder = Folder::new();
    let text = std::fs::read(TINY).unwrap();
    let plan = stdout(&["plan", TINY, "--json"], 0);
    for name in [OsStr::new(&HOSTILE.replace('/', "")), OsStr::from_bytes(b"bytes\x9b31m\xff\x1b[2J")] {
        let with = |end: &str| {
            let mut name = name.to_os_string();
            name.push(end);
            name
        };
        let (workload, planned) = (with(".json"), with(".plan"));
        std::fs::write(folder.path("").join(&workload), &text).unwrap();
        std::fs::write(folder.path("").join(&planned), &plan).unwrap();
        let word = |text: &str| OsStr::new(text).to_os_string();
        let missing = with(".missing");
        for arguments in [
            vec![word("lint"), workload.clone()],
            vec![word("plan"), workload.clone()],
            vec![word("plan"), workload.clone(), word("--json")],
            vec![workload.clone()],
            vec![word("plan"), missing.clone()],
            vec![missing.clone()],
            vec![word("check"), workload.clone(), planned.clone()],
            vec![word("check"), workload.clone(), planned.clone(), word("--json")],
            vec![word("check"), workload.clone(), workload.clone()],
            vec![word("check"), planned.clone(), planned.clone()],
            vec![word("simulate"), workload.clone(), planned.clone()],
            vec![word("simulate"), workload.clone(), planned.clone(), word("--devices"), word("1")],
            vec![word("export"), planned.clone(), word("--to"), word("csv")],
            vec![word("export"), planned.clone(), word("--to"), word("csv"), word("--workload"), workload.clone()],
            vec![word("compare"), workload.clone(), word("--planner"), word("piper"), word("--plan"), planned.clone()],
            vec![word("sweep"), workload.clone(), word("--devices"), word("1..4")],
            vec![word("sweep"), workload.clone(), word("--devices"), word("1..4"), word("--json")],
            vec![word("sweep"), workload.clone(), word("--devices"), word("1..4"), word("--resume"), missing.clone()],
            vec![word("sweep"), workload.clone(), word("--devices"), word("1..4"), word("--resume"), planned.clone()],
            vec![word("convert"), workload.clone(), word("--to"), word("placement")],
            vec![word("generate"), workload.clone()],
            vec![word("plan"), workload.clone(), word("--output"), planned.clone()],
            vec![word("--config"), planned.clone(), word("--print-config")],
        ] {
            harmless(&folder, &arguments);
        }
    }
}

/// Every argument of every command, as a value, as a file's name and as a word that nobody knows.
#[test]
fn arguments() {
    let folder = Folder::new();
    let tiny = folder.file("tiny.json", std::fs::read_to_string(TINY).unwrap());
    let plan = folder.file("tiny.plan", stdout(&["plan", TINY, "--json"], 0));
    let hostile = HOSTILE.replace('/', "");
    let mut root = plantui::cli::Cli::command();
    root.build();
    let all = root.get_subcommands().filter(|command| command.get_name() != "help");
    for command in all.chain([&root]) {
        let name = (command.get_name() != "plantui").then(|| command.get_name().to_string());
        let positionals: Vec<String> = command
            .get_positionals()
            .map(|positional| match positional.get_id().as_str() {
                "workload" => tiny.clone(),
                "plan" => plan.clone(),
                "shell" => "bash".into(),
                _ => "bert-32".into(),
            })
            .collect();
        let call = |positionals: &[String], more: &[&str]| {
            let mut arguments: Vec<String> = name.iter().chain(positionals).cloned().collect();
            arguments.extend(more.iter().map(ToString::to_string));
            match name.as_deref() {
                Some("compare") if !more.contains(&"--planner") => {
                    arguments.extend(["--planner", "equal-partition"].map(String::from));
                }
                Some("explain") if !more.contains(&"--each") => arguments.extend(["--each", "1ms"].map(String::from)),
                Some("sweep") if !more.contains(&"--devices") => {
                    arguments.extend(["--devices", "1..2"].map(String::from));
                }
                Some("export" | "convert") if !more.contains(&"--to") => {
                    arguments.extend(
                        ["--to", if name.as_deref() == Some("export") { "dot" } else { "placement" }].map(String::from),
                    );
                }
                _ => {}
            }
            harmless(&folder, &arguments)
        };
        for at in 0..positionals.len() {
            let mut bad = positionals.clone();
            bad[at] = hostile.clone();
            call(&bad, &[]);
        }
        call(&positionals, &[&hostile]);
        call(&positionals, &[&format!("--{hostile}")]);
        for flag in command.get_opts() {
            let Some(long) = flag.get_long() else { continue };
            let long = format!("--{long}");
            call(&positionals, &[&long, &hostile]);
            call(&positionals, &[&format!("{long}={hostile}")]);
            if matches!(long.as_str(), "--set" | "--series") {
                for setting in ["recompute=", "piper,recompute=", "split=", ""] {
                    call(&positionals, &[&long, &format!("{setting}{hostile}")]);
                }
            }
        }
        for switch in command.get_arguments().filter(|flag| matches!(flag.get_action(), ArgAction::SetTrue)) {
            if let Some(long) = switch.get_long() {
                call(&positionals, &[&format!("--{long}={hostile}")]);
            }
        }
    }
    let output = harmless(&folder, &[&hostile]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_environment() {
    let folder = Folder::new();
    let tiny = folder.file("tiny.json", std::fs::read_to_string(TINY).unwrap());
    let home = folder.path(&HOSTILE.replace('/', ""));
    std::fs::create_dir_all(home.join("plantui/themes")).unwrap();
    std::fs::write(home.join("plantui/config.toml"), "theme = 1").unwrap();
    let theme = HOSTILE.replace('/', "") + ".toml";
    std::fs::write(home.join("plantui/themes").join(theme), "nothing").unwrap();
    let variables = [
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "XDG_DATA_HOME",
        "TERM",
        "LANG",
        "LC_ALL",
        "COLORTERM",
        "COLUMNS",
        "NO_COLOR",
    ];
    for variable in variables {
        for arguments in [
            &["--print-config"][..],
            &[&tiny],
            &["themes"],
            &["plan", "--help"],
            &["--help"],
            &["--theme", "none", &tiny],
        ] {
            let output = plantui().env(variable, &home).args(arguments).output().unwrap();
            inspect(&output, &format!("{variable} {arguments:?}"));
        }
    }
    // The name that the program was called by is nobody's to choose.
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let program = plantui().get_program().to_os_string();
        let output = std::process::Command::new(program).arg0(HOSTILE).args(["plan", "--none"]).output().unwrap();
        inspect(&output, "argv[0]");
        assert_eq!(output.status.code(), Some(2));
    }
}

/// A name may not leave the comment or the string that it stands in.
#[test]
fn engine_files() {
    let folder = Folder::new();
    let plan = folder.file("plan.json", stdout(&["plan", BERT, "--devices", "8", "--json"], 0));
    let bert = format!("{}/{BERT}", env!("CARGO_MANIFEST_DIR"));
    for flag in ["--block-name", "--first-names", "--last-names"] {
        for name in ["x{}\nimport os", "x{}\rimport os", "x{}\u{2028}import os", "x{}\u{1b}[2J"] {
            let output = harmless(&folder, &["export", &plan, "--workload", &bert, "--to", "deepspeed", flag, name]);
            assert_eq!(output.status.code(), Some(2));
            assert!(output.stdout.is_empty());
        }
        let name = "x{}\"]; import os #'''\\";
        let output = harmless(&folder, &["export", &plan, "--workload", &bert, "--to", "torch", flag, name]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.lines().any(|line| line.trim_start().starts_with("import os")), "{text}");
    }
}

/// No other file of the program writes to a terminal by itself.
#[test]
fn everything_said_goes_through_one_place() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("crates")];
    let mut looked = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let shown = path.display().to_string();
            let allowed =
                ["src/streams.rs", "cli/output.rs", "cli/serve.rs", "tui/terminal.rs", "system/unix.rs", "src/main.rs"]
                    .iter()
                    .any(|end| shown.ends_with(end));
            for word in ["println!", "eprintln!", "print!(", "io::stdout()", "io::stderr()", "stdout().", "stderr()."] {
                assert!(allowed || !code.contains(word), "{shown} writes past `notice` and `cli::output`: {word}");
            }
            looked += 1;
        }
    }
    assert!(looked > 300);
}
