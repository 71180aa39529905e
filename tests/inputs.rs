//! The files in `inputs/` are what their own recorded commands make, and the program starts with one of them.
//!
//! After a change of the generator, `PLANTUI_REGENERATE=1 cargo test --test inputs` writes them anew.

use std::{fs, path::PathBuf, sync::Arc};

use clap::Parser;
use plantui::{
    cli::generate::{self, GenerateArgs},
    cluster::{Limits, Overrides},
    planner::{self, Options, Problem, Search, Status},
    workload::{self, Provenance},
};

#[derive(Parser)]
struct Generate {
    #[command(flatten)]
    args: GenerateArgs,
}

/// File and the command that makes it.
const INPUTS: [(&str, &str); 5] = [
    ("bert32a100.json", "plantui generate bert-32 --memory 8GiB"),
    ("bert96a100.json", "plantui generate bert-96 --devices 256 --memory 8GiB"),
    ("gpt3-175b-a100.json", "plantui generate gpt3-175b --hardware a100-80 --devices 512 --microbatches 1536"),
    ("llama-3-70b-h100.json", "plantui generate llama-3-70b --hardware h100 --devices 128 --microbatches 1024"),
    ("tiny-branch.json", "plantui generate tiny-branch"),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("inputs")
}

fn made_by(command: &str) -> String {
    let words = command.strip_prefix("plantui ").expect("a command of this program");
    let line = Generate::try_parse_from(words.split_whitespace()).unwrap_or_else(|error| panic!("{command}: {error}"));
    generate::run(&line.args).unwrap_or_else(|error| panic!("{command}: {error}"))
}

#[test]
fn every_file_is_made_again_by_the_command_it_records() {
    let regenerate = std::env::var_os("PLANTUI_REGENERATE").is_some();
    for (file, command) in INPUTS {
        let path = folder().join(file);
        if regenerate {
            fs::write(&path, made_by(command)).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        let workload = workload::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let Some(Provenance { made_by: recorded, assumptions }) = &workload.provenance else {
            panic!("{file} does not say how it was made");
        };
        assert_eq!(recorded, command, "{file}");
        assert!(assumptions.len() >= 4, "{file} states its assumptions");
        assert!(made_by(recorded) == text, "{file} is not what `{recorded}` makes");
        assert!(workload.unknown_fields.is_empty(), "{file}: {:?}", workload.unknown_fields);
        assert!(Limits::resolve(&workload, &Overrides::default()).is_ok(), "{file} brings all limits");
    }
}

#[test]
fn the_folder_holds_nothing_else() {
    let mut there: Vec<String> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    assert_eq!(there, INPUTS.map(|(file, _)| file));
}

#[test]
fn the_built_in_workload_is_bert_32() {
    let builtin = workload::builtin();
    assert_eq!((builtin.name.as_str(), builtin.source.as_str()), ("bert32a100", "built-in"));
    assert_eq!((builtin.nodes.len(), builtin.dag.edges().len()), (37, 67));
    let file = workload::load(&folder().join("bert32a100.json")).unwrap();
    assert_eq!((builtin.nodes, builtin.dag, builtin.profile), (file.nodes, file.dag, file.profile));
}

#[test]
fn every_file_can_be_planned_with_the_limits_it_brings() {
    let piper = planner::find("piper").unwrap();
    for (file, _) in INPUTS {
        let workload = workload::load(&folder().join(file)).unwrap();
        let limits = Limits::resolve(&workload, &Overrides::default()).unwrap();
        let options = Options::defaults(piper.options());
        let problem = Problem { workload: Arc::new(workload), limits, options };
        let (outcome, score) = planner::run(piper, &problem, &Search::default());
        assert_eq!(outcome.status, Status::Optimal, "{file}: {:?}", outcome.infeasible);
        let stages = outcome.plan.as_ref().map_or(0, |plan| plan.stages.len());
        let seconds = outcome.statistics.seconds;
        println!("{file}: {stages} stages, {:?} s, planned in {seconds} s", score.map(|s| s.value));
        assert!(stages > 1, "{file}: a first look needs more than one stage");
    }
}
