//! PipeDream's text: read, refused line by line, written and read again.

use std::{fs, path::PathBuf};

use crate::common::random_layers::{Dice, text};
use plantui::workload::{self, WorkloadFormat, convert, formats::torch_graph, lint};
use proptest::{prelude::*, test_runner::RngSeed};

fn read(text: &str) -> Result<workload::Workload, String> {
    workload::load_bytes(text.as_bytes(), "graph.txt", "graph").map_err(|error| error.to_string())
}

const A: &str =
    "node1 -- a -- forward_compute_time=1, backward_compute_time=2, activation_size=[3; 4], parameter_size=5";
const B: &str = "node2 -- b -- f=1e-3, b=2, a=3.5, p=5 -- stage_id=7";

#[test]
fn a_file_is_kept_as_it_is() {
    let workload = read(&format!("{A}\r\n\r\n{B}\r\n\tnode1 -- node2")).unwrap();
    assert_eq!(workload.format, WorkloadFormat::PipeDream);
    assert_eq!(workload.dag.edges(), [(0, 1)]);
    let nodes = &workload.layers().unwrap().nodes;
    assert_eq!((nodes[0].activation_bytes.as_slice(), nodes[0].activation()), ([3.0, 4.0].as_slice(), 7.0));
    assert_eq!((nodes[1].forward_ms, nodes[1].stage, workload.nodes[1].id.0), (1e-3, Some(7), 2));
}

#[test]
fn every_rule_names_line_and_repair() {
    for (second, says) in [
        ("node2 -- b", "graph.txt:2: has 2 parts between ` -- ` where a node has 3 or 4"),
        ("node2 -- b -- f=1, b=2, a=3", "has 3 figures where a node has 4"),
        ("node2 -- b -- f=1, b=2, a=3, p", "parameter_size has no `=`"),
        ("node2 -- b -- f=x, b=2, a=3, p=4", "forward_compute_time is `x`, must be a number"),
        ("node2 -- b -- f=1, b=-2, a=3, p=4", "backward_compute_time is -2, must be >= 0"),
        ("node2 -- b -- f=1, b=2, a=[3, p=4", "activation_size opens a list without closing it"),
        ("node2 -- b -- f=1, b=[2; 3], a=3, p=4", "only activation_size may be a list"),
        ("node2 -- b -- f=1, b=2, a=1e31, p=4", "must be at most 1e30"),
        ("node2 -- b -- f=1, b=2, a=3, p=4 -- stage_id=x", "stage_id is `x`"),
        ("node1 -- b -- f=1, b=2, a=3, p=4", "gives the id `node1` a second time"),
        ("\tnode1 -- node9", "`node9`, which no line above describes"),
        ("\tnode1", "has no ` -- ` where an edge has 2"),
        ("\tnode1 -- node1", "edges in a circle"),
    ] {
        let error = read(&format!("{A}\n{second}\n")).unwrap_err();
        assert!(error.contains(says), "{second:?}: {error}");
    }
    let circle = read(&format!("{A}\n{B}\n\tnode1 -- node2\n\tnode2 -- node1\nnode3 -- c -- f=1, b=2, a=3, p=4\n"));
    let says = "graph.txt:4: puts edges in a circle: node";
    assert!(circle.as_ref().is_err_and(|error| error.starts_with(says)), "{circle:?}");
    let idle = read("node1 -- a -- f=0, b=0, a=3, p=4\n").unwrap_err();
    assert!(idle.contains("has no node that takes any time"), "{idle}");
    let twice = read(&format!("{A}\n{B}\n\tnode1 -- node2\n\tnode1 -- node2\n")).unwrap_err();
    assert!(twice.contains("graph.txt:4: repeats an edge"), "{twice}");
}

#[test]
fn a_file_that_was_cut_off_before_its_edges_is_a_finding() {
    let found = |text: &str| lint::lint(&read(text).unwrap()).iter().any(|finding| finding.rule == "no-edges");
    assert!(found(&format!("{A}\n{B}\n")));
    assert!(!found(&format!("{A}\n{B}\n\tnode1 -- node2\n")) && !found(&format!("{A}\n")));
}

#[test]
fn what_is_written_reads_back_the_same() {
    for seed in 1..50 {
        let original = read(&text(&mut Dice::new(seed), 7)).unwrap();
        let written = torch_graph::write(&original, original.layers().unwrap());
        assert_eq!(read(&written).unwrap(), original);
    }
}

/// `PLANTUI_REGENERATE=1` writes the file anew.
#[test]
fn the_example_is_what_the_generator_and_the_conversion_make() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("inputs/bert32-layers.txt");
    let bert = workload::load(&path.with_file_name("bert32a100.json")).unwrap();
    let layers = convert::to_layers(&bert).unwrap().workload;
    let text = torch_graph::write(&layers, layers.layers().unwrap());
    if std::env::var_os("PLANTUI_REGENERATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == text, "convert inputs/bert32a100.json --to pipedream");
    assert_eq!(workload::load(&path).unwrap().nodes.len(), bert.nodes.len());
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn no_mutation_makes_the_reader_panic(seed in 1u64..1000, edits in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..8)) {
        let mut characters: Vec<char> = text(&mut Dice::new(seed), 4).chars().collect();
        for (at, character) in edits {
            let at = at.index(characters.len());
            characters[at] = character;
        }
        let text: String = characters.into_iter().collect();
        if let Err(message) = read(&text) {
            prop_assert!(message.starts_with("graph.txt:") && !message.chars().any(char::is_control), "{message:?}");
        }
    }
}
