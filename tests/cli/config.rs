//! The configuration file.

use crate::{Folder, TINY, argument, plantui, refusal, stdout};

#[test]
fn what_is_printed_is_a_configuration_that_prints_the_same() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "theme = \"light\"\n[keys.everywhere]\nquit = \"x\"\n");
    let printed = stdout(&["--config", &file, "--print-config"], 0);
    assert!(printed.contains("theme = \"light\"") && printed.contains("quit = [\"x\", \"ctrl-c\"]"), "{printed}");
    let again = folder.file("printed.toml", printed.clone());
    assert_eq!(stdout(&["--config", &again, "--print-config"], 0), printed);
}

#[test]
fn flags_are_part_of_what_is_in_force() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "theme = \"light\"\n[limits]\ndevices = 8\nbatch = 64\n");
    let flags = ["--theme", "dark", "--devices", "16", "--no-mouse", "--planner", "piper", "--deadline", "5s"];
    let printed = stdout(&[&["--config", &file, "--print-config"], &flags[..]].concat(), 0);
    for line in ["theme = \"dark\"", "devices = 16", "batch = 64", "mouse = false", "planner = [\"piper\"]"] {
        assert!(printed.lines().any(|printed| printed == line), "{line}\n{printed}");
    }
    assert!(printed.contains("deadline = \"5s\""));
}

#[test]
fn the_environment_names_the_file() {
    let folder = Folder::new();
    let file = folder.file("mine.toml", "mouse = false");
    let print = |variable: &str, value: &str| {
        let mut command = plantui();
        command.env_remove("PLANTUI_CONFIG").env_remove("XDG_CONFIG_HOME").env(variable, value).arg("--print-config");
        String::from_utf8(command.assert().code(0).get_output().stdout.clone()).unwrap()
    };
    assert!(print("PLANTUI_CONFIG", &file).contains("mouse = false"));
    std::fs::create_dir(folder.path("plantui")).unwrap();
    folder.file("plantui/config.toml", "mouse = false");
    assert!(print("XDG_CONFIG_HOME", &argument(&folder.path(""))).contains("mouse = false"));
    assert!(print("XDG_CONFIG_HOME", &argument(&folder.path("nowhere"))).contains("mouse = true"));
}

#[test]
fn a_mistake_names_file_line_and_repair_and_concerns_the_screen_alone() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "\nmuose = true");
    let error = refusal(&["--config", &file, TINY]);
    assert!(error.contains("config.toml:2: there is no setting `muose`"), "{error}");
    assert!(error.contains("did you mean `mouse`?"), "{error}");
    let missing = refusal(&["--config", &argument(&folder.path("none.toml")), TINY]);
    assert!(missing.contains("is not there") && missing.contains("--print-config"), "{missing}");
    plantui().env("PLANTUI_CONFIG", &file).args(["plan", TINY]).assert().code(0);
    plantui().env("PLANTUI_CONFIG", &file).arg(TINY).assert().code(0);
}

#[test]
fn a_mistake_is_told_shortly_and_with_an_example_of_its_own() {
    let folder = Folder::new();
    let error = refusal(&["--config", &folder.file("number.toml", "theme = 5"), TINY]);
    assert!(error.contains("theme cannot be 5") && error.contains("such as \"dark\""), "{error}");
    for long in [
        format!("theme = \"{}\"", "x".repeat(100_000)),
        format!("planner = \"{}\"", "x".repeat(100_000)),
        format!("{} = 1", "x".repeat(100_000)),
        format!("[limits]\nmemory = \"{}\"", "x".repeat(100_000)),
        format!("theme = {}", "[".repeat(100_000)),
    ] {
        let error = refusal(&["--config", &folder.file("long.toml", long), TINY]);
        assert!(error.len() < 4000, "{} bytes: {}", error.len(), &error[..300]);
    }
}

#[test]
fn another_file_is_called_what_it_is() {
    let folder = Folder::new();
    for (name, content, told) in [
        ("model.pt", &b"stub"[..], "a PyTorch checkpoint, by its name"),
        ("model.onnx", b"\x08\x07\x12\x07pytorch\x1a\x052.1.0:\x00", "ONNX"),
        ("config.json", b"{\"model_type\": \"llama\", \"hidden_size\": 4096}", "configuration"),
        ("page", b"<!DOCTYPE html><html></html>", "an HTML page"),
        ("train.py", b"import torch\nprint(torch.ones(3))\n", "Python source"),
        ("plan.pdf", b"%PDF-1.7\n", "a PDF"),
        ("values.yaml", b"theme: dark\nmouse: true\n", "YAML"),
    ] {
        let file = folder.file(name, content);
        let error = refusal(&["--config", &file, TINY]);
        assert!(error.contains(told) && error.contains("a configuration of plantui"), "{name}: {error}");
        assert!(error.contains("--print-config"), "{name}: {error}");
        let error = refusal(&["estimate", "llama-3-8b", "--global-batch", "64", "--calibration", &file]);
        assert!(error.contains(told), "{name}: {error}");
        assert!(error.contains("a calibration") && error.contains("plantui calibrate"), "{name}: {error}");
    }
    // What may be a configuration keeps its line.
    for (content, told) in [("theme = \"dark\"\nmouse true\n", ":2: "), ("# mine\n[keys\nq = \"quit\"\n", ":2: ")] {
        let error = refusal(&["--config", &folder.file("config.toml", content), TINY]);
        assert!(error.contains(told), "{error}");
    }
    stdout(&["--config", &folder.file("empty.toml", "\n"), "--print-config"], 0);
}
