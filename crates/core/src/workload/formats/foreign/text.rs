//! Texts that are not JSON objects: data, markup, source and prose.

use serde::de::IgnoredAny;

use super::{FileKind, by_name, model, other};
use crate::workload::formats::detect::is_layer_profile;

/// Number of lines that are inspected if not all are needed.
const LINES: usize = 40;

/// Kind of a text that is not a JSON object.
pub(in crate::workload::formats) fn of_text(text: &str, source: &str) -> FileKind {
    let start = text.trim_start();
    let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
    if start.starts_with('[') && (is_json || !is_header(start.lines().next().unwrap_or_default())) {
        let events = start.chars().take(200).collect::<String>().contains("\"ph\"");
        return other(if events { "a Chrome trace (a JSON array of events)" } else { "a JSON array" });
    }
    if is_layer_profile(start) {
        return other("a layer profile of PipeDream or DAPPLE (graph.txt)");
    }
    if is_json {
        return other("a single JSON value");
    }
    torch_text(start)
        .or_else(|| markup(start))
        .or_else(|| source_code(start))
        .or_else(|| protobuf_text(start))
        .or_else(|| settings(text))
        .or_else(|| table(start))
        .or_else(|| start.starts_with("# ").then_some(other("Markdown or a text of comments")))
        .or_else(|| by_name(source))
        .unwrap_or(other("plain text"))
}

/// Detects what torch and DeepSpeed print about a module.
fn torch_text(start: &str) -> Option<FileKind> {
    let said = |words: &[&str]| start.lines().take(LINES).any(|line| words.iter().any(|word| line.contains(word)));
    match () {
        () if said(&["ExportedProgram:", "class GraphModule(torch.nn.Module)"]) => {
            Some(model("the text of a program of torch.export"))
        }
        () if said(&["DeepSpeed Flops Profiler"]) => Some(model("a profile of DeepSpeed's flops profiler")),
        () if start.starts_with("opcode ") && said(&["placeholder"]) => Some(model("a table of a torch.fx graph")),
        () => None,
    }
}

/// Detects HTML, XML and drawings of graphs.
fn markup(start: &str) -> Option<FileKind> {
    let head: String = start.chars().take(500).collect::<String>().to_ascii_lowercase();
    let graph = ["digraph", "graph", "strict "].iter().any(|word| head.starts_with(word)) && start.contains('{');
    Some(other(match () {
        () if head.starts_with("<!doctype html") || head.starts_with("<html") => "an HTML page",
        () if head.starts_with('<') && head.contains("<svg") => "an SVG picture",
        () if head.starts_with('<') => "XML or HTML",
        () if graph => "a Graphviz graph",
        () => return None,
    }))
}

/// Detects scripts and programs.
fn source_code(start: &str) -> Option<FileKind> {
    if let Some(interpreter) = start.strip_prefix("#!") {
        let python = interpreter.lines().next().is_some_and(|line| line.contains("python"));
        return Some(other(if python { "a Python script" } else { "a script" }));
    }
    let python = |line: &str| {
        let from = line.starts_with("from ") && line.contains(" import ");
        let block = ["def ", "class ", "async def ", "if __name__"].iter().any(|word| line.starts_with(word));
        line.starts_with("import ") || from || (block && line.trim_end().ends_with(':'))
    };
    let c = |line: &str| line.starts_with("#include");
    let said = |is: &dyn Fn(&str) -> bool| start.lines().take(LINES).any(is);
    match () {
        () if said(&python) => Some(other("Python source")),
        () if said(&c) => Some(other("C or C++ source")),
        () => None,
    }
}

/// Detects protobuf messages in text form.
fn protobuf_text(start: &str) -> Option<FileKind> {
    let said = |word: &str| start.lines().take(LINES).any(|line| line.trim_start().starts_with(word));
    (said("ir_version:") || (said("node {") && (said("op:") || said("op_type:"))))
        .then_some(model("a model in protobuf's text form"))
}

fn is_toml(text: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| !table.is_empty())
}

/// Detects TOML, INI files and YAML.
fn settings(text: &str) -> Option<FileKind> {
    if is_toml(text) {
        return Some(other("TOML"));
    }
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with(['#', ';']))
        .take(LINES)
        .collect();
    let first = lines.first()?;
    if is_header(first) {
        return Some(other("an INI file"));
    }
    let most = |is: fn(&str) -> bool| lines.iter().filter(|line| is(line)).count() * 2 > lines.len();
    if first.starts_with("---") || first.starts_with("%YAML") || most(is_yaml) {
        return Some(other("YAML"));
    }
    most(|line| line.contains(" = ")).then_some(other("an INI file"))
}

/// True for `[package]` and `[[bench]]`: the first line of a section in TOML and INI files, which is not JSON.
fn is_header(line: &str) -> bool {
    let line = line.split(['#', ';']).next().unwrap_or_default().trim();
    let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) else { return false };
    let name = name.trim_start_matches('[').trim_end_matches(']').trim();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '"' | '\'' | ':' | '/');
    name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '"' | '\'' | '_')) && name.chars().all(word)
}

/// True for `key: value`, `key:` and `- item`.
fn is_yaml(line: &str) -> bool {
    let line = line.trim();
    if line == "-" || line.starts_with("- ") {
        return true;
    }
    let Some((key, value)) = line.split_once(':') else { return false };
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '"' | '\'');
    !key.is_empty() && key.chars().all(word) && (value.is_empty() || value.starts_with(' '))
}

/// Detects tables: lines with equal numbers of cells.
fn table(start: &str) -> Option<FileKind> {
    let lines: Vec<&str> = start.lines().filter(|line| !line.trim().is_empty()).take(LINES).collect();
    let alike = |separator: char| {
        let cells = lines.first().map_or(0, |line| line.matches(separator).count());
        let others = lines.iter().skip(1).all(|line| line.matches(separator).count() == cells);
        // A single comma may be part of any sentence.
        others && cells >= if lines.len() > 1 { 1 } else { 2 }
    };
    match () {
        () if alike('\t') => Some(other("a table with tabs")),
        () if alike(',') || alike(';') => Some(other("CSV")),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_apart() {
        for (text, is) in [
            ("[package]\nname = \"x\"\n", "TOML"),
            ("# a comment\n[[bench]]\nname = 'x'", "TOML"),
            ("devices = 4\n", "TOML"),
            ("[core]\n\tbare = false\n\tpath = a b\n", "an INI file"),
            ("[1, 2]", "a JSON array"),
            ("[{\"a\": 1},\n{\"b\"", "a JSON array"),
            ("[{\"ph\": \"X\", \"ts\": 0}]", "a Chrome trace (a JSON array of events)"),
            ("\"text\"", "a single JSON value"),
            ("nodes:\n  - id: 1\n  - id: 2\n", "YAML"),
            ("---\n{}", "YAML"),
            ("# comment\nname: x\nargs: [1]\n", "YAML"),
            ("<!DOCTYPE html>\n<html>", "an HTML page"),
            ("<html>", "an HTML page"),
            ("<?xml version=\"1.0\"?><svg/>", "an SVG picture"),
            ("<project/>", "XML or HTML"),
            ("strict digraph { a -> b }", "a Graphviz graph"),
            ("graphs are nice", "plain text"),
            ("#!/usr/bin/env python3\n", "a Python script"),
            ("#!/bin/sh\n", "a script"),
            ("\"\"\"A model.\"\"\"\n\nimport torch\n", "Python source"),
            ("class Net(nn.Module):\n    pass\n", "Python source"),
            ("#include <stdio.h>\n", "C or C++ source"),
            ("ir_version: 8\nproducer_name: \"pytorch\"\ngraph {\n", "a model in protobuf's text form"),
            ("id,time,memory\n", "CSV"),
            ("a,b\n1,2\n3,4\n", "CSV"),
            ("a\tb\n1\t2\n", "a table with tabs"),
            ("# Title\n\nText, and more text.\n", "Markdown or a text of comments"),
            ("Dear all,\nthis is prose: it says nothing.\n", "plain text"),
            ("Hello", "plain text"),
        ] {
            assert_eq!(of_text(text, "w").is, is, "{text:?}");
        }
        assert_eq!(of_text("stub", "model.ONNX").is, "an ONNX model, by its name");
        assert_eq!(of_text("fn main() {}", "main.rs").is, "Rust source, by its name");
    }
}
