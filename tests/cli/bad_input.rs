//! One clear sentence for every class of file that is no workload.

use crate::{Folder, TINY, argument, json, refusal, stdout};

/// The error of planning a file with this content: one `error:` line and at most one `hint:` line.
fn planning(name: &str, content: impl AsRef<[u8]>) -> String {
    let folder = Folder::new();
    let error = refusal(&["plan", &folder.file(name, content)]);
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines.len() <= 2 && lines.iter().skip(1).all(|line| line.starts_with("hint: ")), "{error}");
    assert!(lines[0].contains(name), "{error}");
    error
}

#[test]
fn files_that_are_something_else() {
    for (content, part) in [
        (&b""[..], "is empty"),
        (b" \n\t", "is empty"),
        (b"{\"nodes\": [", "before its JSON is complete"),
        (b"\x7fELF\x02\x01", "is a program"),
        (b"PK\x03\x04", "is a zip archive\nhint: unpack it first"),
        (b"\x00\x01\x02\x03", "binary data"),
        (b"{\"nodes\": [\xff]}", "UTF-8"),
        (b"digraph { a -> b }", "Graphviz"),
        (b"a,b,c\n1,2,3\n", "CSV"),
        (b"{\"hidden_size\": 4096}", "model_type is missing"),
        (b"{\"schema\": \"plantui.plan/1\", \"stages\": []}", "plantui check"),
        (b"[1, 2]", "JSON array"),
        (b"null", "a single JSON value"),
        (b"\x1f\x8b\x08", "is gzip-compressed\nhint: unpack it first"),
        (b"{\"nodes\": NaN, \"edges\": []}", "JSON has no NaN"),
    ] {
        let error = planning("workload.json", content);
        assert!(error.contains(part), "{:?}: {error}", String::from_utf8_lossy(content));
    }
}

/// What a name says only where the content says nothing, what is in the file otherwise.
#[test]
fn what_people_bring_is_called_what_it_is() {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let tensors = [&40u64.to_le_bytes()[..], b"{\"a\": {\"dtype\": \"F32\"}}"].concat();
    let model = "plantui generate config.json";
    for (name, content, is, repair) in [
        ("Cargo.toml", b"[package]\nname = \"plantui\"\n".to_vec(), "TOML", ""),
        ("deploy.yaml", b"kind: Pod\nspec:\n  - a\n".to_vec(), "YAML", ""),
        ("setup.cfg", b"[metadata]\nname = a b\n".to_vec(), "an INI file", ""),
        ("net.onnx", b"\x08\x07\x12\x07pytorch:\x04\x0a\x02\x0a\x00".to_vec(), "an ONNX model", model),
        ("net.onnx", b"stub".to_vec(), "an ONNX model, by its name", model),
        ("net.pt", b"PK\x03\x04\0\0\0\0net/data.pkl".to_vec(), "a PyTorch checkpoint", model),
        ("old.pt", b"\x80\x02\x8a\x0al\xfc".to_vec(), "a Python pickle", model),
        ("model.safetensors", tensors, "a safetensors checkpoint", model),
        ("model.safetensors.index.json", b"{\"weight_map\": {}}".to_vec(), "a safetensors index", model),
        ("config.json", b"{\"model_type\": \"llama\"}".to_vec(), "hidden_size is missing", "add hidden_size"),
        ("tokenizer.json", b"{\"added_tokens\": []}".to_vec(), "a tokenizer", model),
        ("model.gguf", b"GGUF\x03\0\0\0".to_vec(), "a GGUF model", model),
        (
            "model.safetensors",
            b"version https://git-lfs.github.com/spec/v1\n".to_vec(),
            "a pointer of Git LFS",
            "git lfs pull",
        ),
        ("times.csv", b"layer,time\n0,1.5\n".to_vec(), "CSV", ""),
        ("w.json.gz", b"\x1f\x8b\x08\0".to_vec(), "gzip-compressed", "unpack it first"),
        ("page.html", b"<!DOCTYPE html><html></html>".to_vec(), "an HTML page", ""),
        ("paper.pdf", b"%PDF-1.7\n%\xe2\xe3".to_vec(), "a PDF", ""),
        ("model.py", b"\"\"\"A model.\"\"\"\nimport torch\n".to_vec(), "Python source", ""),
        ("a.out", b"\x7fELF\x02\x01\x01".to_vec(), "a program", ""),
        ("loss.png", b"\x89PNG\r\n\x1a\n\0".to_vec(), "a picture", ""),
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF".to_vec(), "a picture", ""),
        ("wide.json", wide("\u{feff}{\"nodes\": []}"), "text in UTF-16", "save it in UTF-8"),
        ("wide.json", wide("{\"nodes\": [], \"edges\": []}"), "text in UTF-16", "save it in UTF-8"),
        ("log.jsonl", b"{\"step\": 1}\n{\"step\": 2}\n".to_vec(), "JSON Lines", ""),
        ("run.ipynb", b"{\"cells\": [], \"nbformat\": 4}".to_vec(), "a Jupyter notebook", ""),
        ("empty", vec![], "is empty", "plantui generate"),
    ] {
        let error = planning(name, content);
        assert!(error.contains(is) && error.contains(repair), "{name}: {error}");
    }
    let folder = Folder::new();
    folder.file("config.json", "{\"model_type\": \"llama\"}");
    let error = refusal(&["lint", &argument(&folder.path(""))]);
    assert!(error.contains("config.json: hidden_size is missing"), "{error}");
    let index = folder.file("index.json", "{\"weight_map\": {}}");
    let error = refusal(&["generate", &index]);
    assert!(error.contains("a safetensors index") && error.contains("the config.json that lies beside it"), "{error}");
}

#[test]
fn places_in_a_workload_are_named_with_line_and_path() {
    let text = std::fs::read_to_string(TINY).unwrap();
    for (from, to, parts) in [
        ("\"timePerSample\": 0.006", "\"timePerSample\": -1", ["nodes[1].TMPCs.1[0].timePerSample", "must be >= 0"]),
        ("\"destId\": 5", "\"destId\": 9", ["destId is 9", "no node"]),
        ("\"id\": 5", "\"id\": 4", ["nodes[5].id is 4", "nodes[4]"]),
        ("\"maxDevices\": 4", "\"maxDevices\": 0", ["maxDevices is 0", "from 1 to 10000"]),
        ("\"timePerSample\": 0.006", "\"timePerSample\": 1e308", ["timePerSample is 1e308", "at most 1e30"]),
        ("\"maxDevices\": 4", "\"maxDevices\": 1e300", ["maxDevices is 1e300", "from 1 to 10000"]),
        ("\"id\": 5", "\"id\": 1e20", ["nodes[5].id is ", "larger than the largest id 9e15"]),
        ("\"nodes\"", "\"knots\"", ["lacks the field", "nodes"]),
    ] {
        assert!(text.contains(from), "{from}");
        let error = planning("broken.json", text.replacen(from, to, 1));
        assert!(parts.iter().all(|part| error.contains(part)), "{from} -> {to}: {error}");
        assert!(error.contains("broken.json:"), "{error}");
    }
}

#[test]
fn names_cannot_move_the_cursor() {
    let text = std::fs::read_to_string(TINY).unwrap().replace("\"stem\"", "\"\\u001b[2Jstem\"");
    let folder = Folder::new();
    let table = stdout(&["plan", &folder.file("escape.json", text)], 0);
    assert!(!table.contains('\u{1b}'), "{table:?}");
}

/// What never ends, or waits for somebody to write, is refused wherever a file is read.
#[cfg(unix)]
#[test]
fn only_regular_files_are_read() {
    let folder = Folder::new();
    let pipe = argument(&folder.path("pipe"));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo");
    assert!(made.success());
    let expert = |path: &str| format!("split={path}");
    let topology = |path: &str| format!("topology={path}");
    for path in ["/dev/zero", &pipe, "inputs"] {
        for arguments in [
            &["plan", path][..],
            &["check", TINY, path],
            &["lint", path],
            &["export", path, "--to", "csv"],
            &["convert", path, "--to", "piper"],
            &["generate", path],
            &["--config", path, "--print-config"],
            &["topologies", path],
            &["plan", TINY, "--topology", path],
            &["plan", TINY, "--planner", "parmesan", "--set", &topology(path)],
            &["estimate", "llama-3-8b", "--global-batch", "64", "--calibration", path],
            &["plan", "inputs/branching-cnn-training.json", "--planner", "placement-expert", "--set", &expert(path)],
        ] {
            let error = refusal(arguments);
            assert!(error.contains("is no regular file") || error.contains("is a directory"), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn a_name_that_is_neither_file_nor_model_is_held_against_models() {
    let error = refusal(&["plan", "llama-3-71b"]);
    assert!(error.contains("llama-3-71b: is no file, and no model has that name"), "{error}");
    assert!(error.contains("did you mean `llama-3-70b`?"), "{error}");
    let error = refusal(&["plan", "some-model-of-mine-1.5x"]);
    assert!(error.contains("a model's name such as `llama-3-70b`"), "{error}");
}

#[test]
fn paths_that_are_no_file() {
    let error = refusal(&["plan", "no/such/file.json"]);
    assert!(error.contains("no/such/file.json: does not exist") && error.contains("hint: check the path"), "{error}");
    let error = refusal(&["plan", "inputs"]);
    assert!(error.contains("inputs: is a directory"), "{error}");
}

#[test]
fn a_mistyped_command_is_recognised() {
    for arguments in [&["plna"][..], &["plna", TINY], &["chek", TINY, "plan.json"]] {
        let error = refusal(arguments);
        assert!(error.contains("did you mean `plantui "), "{error}");
    }
    let error = refusal(&["plan"]);
    assert!(error.contains("<WORKLOAD>"), "{error}");
}

#[test]
fn lint_tells_findings_and_refuses_nothing_that_loads() {
    let text = std::fs::read_to_string(TINY).unwrap();
    let folder = Folder::new();
    // One node that fits no device.
    let swollen = text.replace("\"memoryUsageB\": 640000000", "\"memoryUsageB\": 640000000000");
    let file =
        folder.file("swollen.json", swollen.replace("\"memoryUsageB\": 320000000", "\"memoryUsageB\": 320000000000"));
    let document = json(&["lint", &file, "--json"], 0);
    assert_eq!(document["schema"], "plantui.lint/1");
    assert_eq!(document["workload"]["name"], "swollen");
    let findings = document["findings"].as_array().unwrap();
    let worst = findings.first().expect("a node that fits nowhere is a finding");
    assert_eq!(worst["severity"], "error");
    assert!(worst["nodes"].as_array().unwrap().contains(&2.into()), "{worst}");
    for finding in findings {
        assert!(["rule", "what", "why"].iter().all(|field| finding[field].is_string()), "{finding}");
    }
    let text = stdout(&["lint", &file], 0);
    assert!(text.contains("error: ") && text.contains(worst["what"].as_str().unwrap()), "{text}");
    assert_eq!(text.matches("\n\n").count(), findings.len());
    assert!(refusal(&["lint", "missing.json"]).contains("does not exist"));
}
