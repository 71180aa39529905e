//! What there is: planners, completions, manual pages, help, generated workloads.

use std::fs;

use serde_json::Value;

use crate::{Folder, PLANNERS, argument, json, plantui, refusal, stdout};

const COMMANDS: [&str; 24] = [
    "plan",
    "check",
    "compare",
    "estimate",
    "calibrate",
    "explain",
    "map",
    "seek",
    "sweep",
    "simulate",
    "export",
    "lint",
    "convert",
    "import",
    "generate",
    "planners",
    "hardware",
    "topologies",
    "themes",
    "terms",
    "schema",
    "serve",
    "completions",
    "man",
];

#[test]
fn planners_are_listed_with_options_and_defaults() {
    let text = stdout(&["planners"], 0);
    for part in ["piper  (Piper)", "NeurIPS 2021", "recompute=auto|never|always|all-or-none  [default: auto]"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let list = json(&["planners", "--json"], 0);
    let ids: Vec<&Value> = list.as_array().unwrap().iter().map(|planner| &planner["id"]).collect();
    assert_eq!(ids[..3], ["joint", "piper", "equal-partition"]);
    for planner in list.as_array().unwrap() {
        assert!(["name", "paper", "summary"].iter().all(|field| planner[field].is_string()), "{planner}");
        assert!(planner["limits"].as_array().unwrap().contains(&"devices".into()), "{planner}");
        for option in planner["options"].as_array().unwrap() {
            let values = option["values"].as_array().unwrap();
            let word = values.iter().any(|value| value["value"] == option["default"]);
            let number = option["default"].as_f64().is_some_and(|default| {
                option["least"].as_f64().unwrap() <= default && default <= option["most"].as_f64().unwrap()
            });
            let free = option["type"] == "file" || option["type"] == "text";
            assert!(word || number || free, "{option}");
        }
    }
}

#[test]
fn every_listed_option_is_taken() {
    let list = json(&["planners", "--json"], 0);
    for planner in list.as_array().unwrap().iter().filter(|planner| PLANNERS.iter().any(|id| planner["id"] == *id)) {
        for option in planner["options"].as_array().unwrap() {
            let default = &option["default"];
            let default = default.as_str().map_or_else(|| default.to_string(), str::to_string);
            let setting = format!("{}={default}", option["name"].as_str().unwrap());
            let id = planner["id"].as_str().unwrap();
            json(&["plan", "inputs/tiny-branch.json", "--planner", id, "--set", &setting, "--memory=8GB", "--json"], 0);
        }
    }
}

#[test]
fn hardware_and_themes_are_listed() {
    let presets = json(&["hardware", "--json"], 0);
    let memory = |id: &str| {
        let preset = presets.as_array().unwrap().iter().find(|preset| preset["id"] == id).unwrap();
        assert!(preset["memory_bytes"]["source"].as_str().is_some_and(|source| !source.is_empty()));
        preset["memory_bytes"]["value"].as_f64().unwrap()
    };
    assert!(memory("a100-80") > memory("a100-40"));
    assert!(stdout(&["hardware"], 0).contains("h100"));
    let themes = json(&["themes", "--json"], 0);
    for theme in ["dark", "light", "high-contrast", "colour-blind", "monochrome"] {
        assert!(themes.as_array().unwrap().contains(&theme.into()), "{themes}");
    }
    assert!(stdout(&["themes"], 0).starts_with("dark\n"));
}

#[test]
fn completions_for_every_shell_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell], 0);
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
    }
    assert!(refusal(&["completions", "csh"]).contains("bash"));
}

#[test]
fn manual_pages_cover_the_tree() {
    let pages = stdout(&["man"], 0);
    assert_eq!(pages.matches(".TH plantui").count(), 1 + COMMANDS.len());
    let folder = Folder::new();
    let directory = argument(&folder.path(""));
    stdout(&["man", "--directory", &directory], 0);
    let plan = fs::read_to_string(folder.path("plantui-plan.1")).unwrap();
    assert!(plan.contains("Examples"), "{plan}");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1 + COMMANDS.len());
    assert!(refusal(&["man", "--directory", &directory]).contains("--force"));
}

#[test]
fn help_shows_an_example_of_every_command() {
    for command in COMMANDS {
        let help = stdout(&[command, "--help"], 0);
        assert!(help.contains(&format!("plantui {command}")) && help.contains("Example"), "{help}");
    }
    let help = stdout(&["--help"], 0);
    assert!(COMMANDS.iter().all(|command| help.contains(&format!("  {command}"))), "{help}");
    assert!(stdout(&["--version"], 0).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_generated_workload_can_be_planned() {
    let folder = Folder::new();
    let path = argument(&folder.path("model.json"));
    stdout(&["generate", "bert-32", "--devices", "8", "--output", &path], 0);
    assert_eq!(json(&["plan", &path, "--json"], 0)["limits"]["devices"], 8);
    assert!(refusal(&["generate", "bert-32", "--output", &path]).contains("--force"));
    assert!(refusal(&["generate", "bert-33"]).contains("bert-32"));
    plantui().args(["generate", "tiny-branch"]).assert().success().stdout(fs::read_to_string(crate::TINY).unwrap());
}

#[test]
fn every_activation_of_a_layer_scales_with_the_element() {
    for model in ["bert-32", "llama-3-8b"] {
        let layers = |bytes: &str| {
            let file = json(&["generate", model, "--keep-attention-scores", "--element-bytes", bytes], 0);
            let mode = &file["nodes"][5]["TMPCs"]["1"][0];
            (mode["memoryUsageA"].as_f64().unwrap(), file["edges"][5]["communicationCost"].as_f64().unwrap())
        };
        let (narrow, wide) = (layers("2"), layers("4"));
        assert!((wide.0 - 2.0 * narrow.0).abs() <= 2.0, "{model}: {narrow:?} {wide:?}");
        assert_eq!(wide.1, 2.0 * narrow.1);
    }
}

#[test]
fn completions_offer_the_words_that_flags_take() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell], 0);
        // A planner, a theme, a schedule, a format of a plan, one of a workload.
        for word in ["placement-dpl", "colour-blind", "gpipe", "torchtitan", "chrome-trace", "pipedream"] {
            assert!(script.contains(word), "{shell} does not offer {word}");
        }
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
}

#[test]
fn the_manual_has_every_command_and_every_flag_has_a_text() {
    use clap::CommandFactory;
    fn walk(command: &clap::Command, manual: &str) {
        let page = format!(".TH {} 1", command.get_display_name().unwrap_or(command.get_name()));
        assert!(manual.contains(&page) || manual.contains(&page.replace('-', "\\-")), "{page}");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let place = format!("{} of {}", argument.get_id(), command.get_name());
            assert!(argument.get_help().or(argument.get_long_help()).is_some(), "{place} has no text");
            if let Some(long) = argument.get_long() {
                let flag = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(manual.contains(&flag), "{place}: {flag} is not in the manual");
            }
        }
        for subcommand in command.get_subcommands() {
            walk(subcommand, manual);
        }
    }
    let mut command = plantui::cli::Cli::command().disable_help_subcommand(true);
    command.build();
    walk(&command, &stdout(&["man"], 0));
}

#[test]
fn a_profile_of_galvatron_is_generated_and_planned() {
    let folder = Folder::new();
    let times = folder.file(
        "computation_profiling_bf16_hidden1024_head16_seqlen512.json",
        r#"{"layernum[2]_bsz8": 9.0, "layertype_0_bsz8_seq512": 0.5, "layertype_other_bsz8_seq512": 0.25}"#,
    );
    let error = refusal(&["generate", &times]);
    assert!(error.contains("--layers 32"), "{error}");
    let error = refusal(&["generate", &times, "--layers", "8"]);
    assert!(error.contains("memory_profiling_bf16_hidden1024_head16_seqlen512.json: does not exist"), "{error}");
    folder.file(
        "memory_profiling_bf16_hidden1024_head16_seqlen512.json",
        r#"{"layertype_0_sp": {"parameter_size": 48.0, "tp_activation_per_bsz_dict": {"1": 20.0, "2": 10.0, "checkpoint": 1.0}},
            "other_memory_pp_on_first_sp": {"model_states": {"1": 800.0}, "activation": {"1": 4.0}},
            "other_memory_pp_on_last_sp": {"model_states": {"1": 800.0}, "activation": {"1": 8.0}}}"#,
    );
    let call = [
        "generate",
        &times,
        "--layers",
        "8",
        "--micro-batch",
        "8",
        "--devices",
        "4",
        "--memory",
        "4GiB",
        "--microbatches",
        "16",
    ];
    let file = folder.file("measured.json", stdout(&call, 0));
    let text = stdout(&["plan", &file, "--planner", "piper", "--json"], 0);
    let plan: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(plan["workload"]["nodes"], 10);
    assert_eq!(plan["workload"]["recipe"]["sequence_length"], 512);
    let error = refusal(&["generate", &times, "--layers", "8", "--mfu", "0.5"]);
    assert!(error.contains("the profile has measured the rest"), "{error}");
}
