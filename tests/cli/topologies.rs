//! `plantui topologies`: the list, one by name, files, and what is refused.

use crate::{Folder, json, plantui, refusal, stdout};

#[test]
fn presets_are_listed_with_their_sources() {
    let text = stdout(&["topologies"], 0);
    for part in ["dgx-1 ", "dapple-c", "tpu-v4-4x4x4", "+ib-ndr", "nvidia-smi topo -m", "scaled by 10/25"] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let list = json(&["topologies", "--json"], 0);
    for entry in list.as_array().unwrap() {
        assert!(entry["id"].is_string() && entry["machines"].is_array() && entry["memory_bytes"].is_number());
        assert!(!entry["sources"].as_array().unwrap().is_empty(), "{entry}");
    }
    let published = list.as_array().unwrap().iter().find(|entry| entry["id"] == "dapple-a").unwrap();
    assert_eq!((&published["nvlink_bandwidth"], &published["all_reduce_bandwidth"]), (&25e9.into(), &3e9.into()));
}

#[test]
fn one_is_shown_drawn_and_read_back() {
    let text = stdout(&["topologies", "DGX-1"], 0);
    assert!(text.contains("bisection bandwidth: 156 GB/s each way (proven)"), "{text}");
    assert!(text.contains("source: NVLink 2: 25 GB/s a link"), "{text}");
    let folder = Folder::new();
    let file = folder.path("mine.json").display().to_string();
    stdout(&["topologies", "2xdgx-a100", "--json", "--output", &file], 0);
    let [named, read] = ["2xdgx-a100", file.as_str()].map(|name| stdout(&["topologies", name, "--json"], 0));
    assert_eq!(named, read);
    assert!(refusal(&["topologies", "dgx-1", "--json", "--output", &file]).contains("exists"));
    assert!(stdout(&["topologies", "dgx-1", "--svg"], 0).starts_with("<svg "));
    assert!(stdout(&["topologies", "dgx-1", "--dot"], 0).starts_with("digraph \"dgx-1\""));
    let rails = stdout(&["topologies", "4xdgx-h100"], 0);
    assert!(rails.contains("450 to any of gpu0 .. gpu7") && rails.contains("50 GB/s a pair"), "{rails}");
}

#[test]
fn what_tools_print_is_read_from_standard_input() {
    let matrix = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-7\nGPU1\tNV4\t X \t0-7\n\nLegend:\n";
    let shown = plantui().args(["topologies", "-"]).write_stdin(matrix).assert().code(0);
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("4 x NVLink, 56.25 GB/s") && text.contains("an NVLink is assumed to carry 14.0625 GB/s"),
        "{text}"
    );
}

#[test]
fn what_is_no_topology_is_refused_with_line_and_repair() {
    let folder = Folder::new();
    for (content, told, hint) in [
        ("0,25\n25\n", ":2: has 1 columns, and 2 before", "give every row as many"),
        (
            "# symmetric\n0,25\n20,0\n",
            ":3: row 2, column 1 is 20, and 25 in the other direction",
            "remove `# symmetric`",
        ),
        ("0,0\n25,0\n", ":1: row 1, column 2 is 0", "in GB/s"),
        ("", "is empty", "nvidia-smi topo -m"),
        ("\tGPU0\tCPUs\nGPU0\tX\t0-7\nGPU1\tNV4\tX\n", ":3: is the row of GPU1", "a column for each device"),
        (
            "{\"schema\": \"plantui.topology/1\", \"devices\": [{\"id\": \"a\"}, {\"id\": \"b\"}], \"links\": []}",
            "a cannot reach b",
            "add a link",
        ),
    ] {
        let file = folder.file("t.csv", content);
        let error = refusal(&["topologies", &file]);
        assert!(error.contains(told) && error.contains(hint), "{error}");
    }
    let error = refusal(&["topologies", "dgx-7"]);
    assert!(error.contains("dgx-7") && error.contains("dgx-h100"), "{error}");
    assert!(refusal(&["topologies", "--svg"]).contains("NAME"));
}
