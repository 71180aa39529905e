//! Files beside workloads and plans that were made to harm: every key and value of every kind of them, in every command
//! that reads it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    BERT, Folder, TINY,
    hostile::{HOSTILE, inspect, poisoned},
    import::SCRIPT,
    refusal, stdout,
};

/// As it can stand in a file: with a bell in it, that would be no text.
fn in_a_text() -> String {
    HOSTILE.replace('\u{7}', "")
}

/// The text with a hostile word in place of one of its own, one after the other; of equal words the first stands for all.
fn hostile_words(text: &str) -> Vec<String> {
    let between = |c: char| c.is_whitespace() || ",;:=|'\"[](){}".contains(c);
    // One word wherever lines are taken apart.
    let hostile = in_a_text().replace(char::is_whitespace, "");
    let (mut seen, mut made, mut end) = (BTreeSet::new(), vec![], 0);
    for piece in text.split_inclusive(between) {
        let (start, word) = (end, piece.trim_end_matches(between));
        end += piece.len();
        if !word.is_empty() && seen.insert(word) {
            made.push(format!("{}{hostile}{}", &text[..start], &text[start + word.len()..]));
        }
    }
    made
}

/// The table, its cells parted by blanks, as CSV with a hostile one, its head's included, one after the other.
fn hostile_cells(table: &str) -> Vec<String> {
    let hostile = in_a_text();
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split(' ').collect()).collect();
    let with_one = |place: usize| {
        let mut rows = rows.clone();
        *rows.iter_mut().flatten().nth(place).unwrap() = &hostile;
        let mut writer = csv::Writer::from_writer(vec![]);
        rows.iter().for_each(|row| writer.write_record(row).unwrap());
        String::from_utf8(writer.into_inner().unwrap()).unwrap()
    };
    (0..rows.iter().flatten().count()).map(with_one).collect()
}

/// The settings with a hostile key or value, one after the other, first as TOML can write it, then as it cannot.
fn hostile_toml(text: &str) -> Vec<String> {
    let document: Value = toml::from_str(text).unwrap();
    let written =
        |(_, json): (String, String)| toml::to_string(&serde_json::from_str::<Value>(&json).unwrap()).unwrap();
    poisoned(&document.to_string()).into_iter().map(written).chain(hostile_words(text)).collect()
}

/// Calls everything with each of these texts in a file; at least one has to be repeated, or nothing was tried.
fn harmless(folder: &Folder, file: &str, texts: impl IntoIterator<Item = String>, calls: &[&str]) {
    assert!(repeated(folder, file, texts, calls) > 0, "{file} is never repeated by {calls:?}");
}

/// Calls everything with each of these texts in a file, and counts the outputs that repeat one.
fn repeated(folder: &Folder, file: &str, texts: impl IntoIterator<Item = String>, calls: &[&str]) -> usize {
    let mut repeated = 0;
    for text in texts {
        folder.file(file, &text);
        for call in calls {
            let mut command = crate::plantui();
            let output = command.current_dir(folder.path("")).env("XDG_CONFIG_HOME", folder.path(""));
            let output = output.args(call.split(' ')).output().unwrap();
            inspect(&output, &format!("{call} of {text}"));
            let told = [output.stdout, output.stderr].concat();
            repeated += usize::from(String::from_utf8_lossy(&told).contains("forged"));
        }
    }
    repeated
}

#[test]
fn topologies() {
    let folder = Folder::new();
    folder.file("tiny.json", std::fs::read_to_string(TINY).unwrap());
    folder.file("tiny.plan", stdout(&["plan", TINY, "--json"], 0));
    let calls = [
        "topologies bad.top",
        "topologies bad.top --json",
        "topologies bad.top --svg",
        "topologies bad.top --dot",
        "plan tiny.json --topology bad.top --deadline 1s",
        "plan tiny.json --planner parmesan --set topology=bad.top --deadline 1s",
        "map tiny.json tiny.plan --topology bad.top --deadline 1s",
        "estimate llama-3.2-1b --global-batch 64 --topology bad.top",
    ];
    let link = |from, to| json!({"from": from, "to": to, "bandwidth": "25GB/s", "latency": "1us", "duplex": "full", "what": "PCIe"});
    let document = json!({
        "schema": "plantui.topology/1", "name": "two", "title": "two machines", "memory": "16GB", "relay": true,
        "devices": [{"id": "gpu0", "machine": "m0"}, {"id": "gpu1", "machine": "m0"}, {"id": "gpu2", "machine": "m1"}, {"id": "gpu3", "machine": "m1"}],
        "switches": [{"id": "switch", "machine": "m0"}], "nics": [{"id": "nic", "machine": "m1"}], "hosts": [{"id": "host", "machine": "m1"}],
        "links": [link("gpu0", "switch"), link("gpu1", "switch"), link("switch", "nic"), link("nic", "host"), link("gpu2", "host"), link("gpu3", "host")],
        "sources": [{"figure": "25", "source": "a paper"}], "notes": ["measured"]
    })
    .to_string();
    // Ids stand where links name them too.
    let renamed = ["gpu0", "gpu3", "switch", "nic", "host", "m0"]
        .map(|id| document.replace(&format!("\"{id}\""), &Value::from(format!("{HOSTILE}{id}")).to_string()));
    harmless(&folder, "bad.top", poisoned(&document).into_iter().map(|(_, text)| text).chain(renamed), &calls);
    for text in [
        "# symmetric\n# machines 2x2\n# memory 16GB\n,a,b,c,d\na,0,25,10,10\nb,25,0,10,10\nc,10,10,0,25\nd,10,10,25,0\n",
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tPIX\t0-7\nGPU1\tNV4\t X \tPHB\t0-7\n\nNIC Legend:\n\n  NIC0: mlx5_0\n",
        "P2P=Enabled\n   D\\D     0      1\nUnidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1\n     0 900.00  48.50\n     1  48.25 901.00\n",
    ] {
        harmless(&folder, "bad.top", hostile_words(text), &calls[..7]);
    }
}

#[test]
fn calibrations_and_measured_runs() {
    let folder = Folder::new();
    let table = "name model hardware stack parallel devices global_batch precision set measured_s measured_memory_bytes\n\
        a llama-3.1-8b h100 megatron-2025 tp=2,pp=2 8 16 bf16 tp_overlap=false 9.5 60GiB\n\
        b llama-3.1-8b h100 megatron-2025 tp=4 8 32 bf16 attention=flash2 19 50GiB";
    let calls = ["calibrate llama-3.1-8b --runs bad.runs", "calibrate llama-3.1-8b --runs bad.runs --json"];
    harmless(&folder, "bad.runs", hostile_cells(table), &calls);
    let megatron = "------------------------ arguments ------------------------\n  \
        world_size ...................................... 8\n  hidden_size ..................................... 4096\n  \
        global_batch_size ............................... 16\n  tensor_model_parallel_size ...................... 2\n  \
        recompute_granularity ........................... full\n  fp8 ............................................. None\n \
        iteration 1/ 20 | elapsed time per iteration (ms): 9500.1 |\n";
    let torchtitan = "Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n\
        Training starts at step 1, with local batch size 2, global batch size 8, sequence length 8192\n\
        step: 10  memory: 42.50GiB(53.0%)  tps: 4,096\n";
    harmless(&folder, "bad.runs", [megatron, torchtitan].into_iter().flat_map(hostile_words), &calls[..1]);

    let runs = folder.file("good.csv", "parallel,devices,global_batch,measured_s\n\"tp=2,pp=2\",8,16,9.5\n");
    let own = folder.path("ours.json").display().to_string();
    stdout(&["calibrate", "llama-3.1-8b", "--runs", &runs, "--write", &own], 0);
    let asked = "--devices 8 --global-batch 16 --calibration bad.json";
    let calls = [format!("estimate llama-3.1-8b {asked}"), format!("estimate llama-3.1-8b {asked} --json")];
    let texts = poisoned(&std::fs::read_to_string(own).unwrap()).into_iter().map(|(_, text)| text);
    harmless(&folder, "bad.json", texts, &calls.each_ref().map(String::as_str));
}

#[test]
fn settings_and_themes() {
    let folder = Folder::new();
    let call = ["--config bad.toml --print-config"];
    harmless(&folder, "bad.toml", hostile_toml(&stdout(&["--print-config"], 0)), &call);
    std::fs::create_dir_all(folder.path("plantui/themes")).unwrap();
    let theme = std::fs::read_to_string("themes/dark.toml").unwrap();
    harmless(&folder, "plantui/themes/bad.toml", hostile_toml(&theme), &["--theme bad --print-config"]);
}

#[test]
fn configurations_of_engines() {
    let folder = Folder::new();
    let asked = "--model llama-3.2-1b --devices 8 --deadline 1ms";
    let calls = [format!("import bad.job {asked}"), format!("import bad.job {asked} --json")];
    let calls = calls.each_ref().map(String::as_str);
    let script = SCRIPT.replace("-size $PP", "-size $PP --colour \"red\" --lr 1e-4");
    let calls_of_script = ["import bad.job --deadline 1ms", "import bad.job --deadline 1ms --json"];
    harmless(&folder, "bad.job", hostile_words(&script), &calls_of_script);
    for text in [
        "[model]\nname = \"llama3\"\n[training]\nlocal_batch_size = 8\nseq_len = 2048\n[parallelism]\npipeline_parallel_degree = 2\n\
         tensor_parallel_degree = 2\n[activation_checkpoint]\nmode = \"full\"\n",
        "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  megatron_lm_tp_degree: 2\n  megatron_lm_pp_degree: 2\n  \
         megatron_lm_num_micro_batches: 8\nmixed_precision: bf16\nnum_processes: 8\n",
    ] {
        // TOML and YAML have no control characters: such a file is refused as a whole.
        repeated(&folder, "bad.job", hostile_words(text), &calls);
    }
    for document in [
        json!({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}),
        json!({"pp_deg": 2, "tp_sizes_enc": "2,2", "pp_division": "8,8", "checkpoint": "0,0", "chunks": 2, "global_bsz": 8, "default_dp_type": "ddp"}),
    ] {
        harmless(&folder, "bad.job", poisoned(&document.to_string()).into_iter().map(|(_, text)| text), &calls);
    }
    // Python, as it is exported.
    let bert = folder.file("bert.json", std::fs::read_to_string(BERT).unwrap());
    let two_stages = ["--devices", "2", "--memory", "64GB", "--set", "stages=2", "--json"];
    let plan = folder.file("two.plan", stdout(&[&["plan", BERT], &two_stages[..]].concat(), 0));
    for engine in ["torch", "deepspeed"] {
        let script = stdout(&["export", &plan, "--workload", &bert, "--to", engine], 0);
        // Names of modules are read for their numbers alone, and are not repeated.
        repeated(&folder, "bad.job", hostile_words(&script), &["import bad.job --for bert.json"]);
    }
}

#[test]
fn degrees_that_no_plan_has_are_refused_before_anything_is_made_for_them() {
    let folder = Folder::new();
    let plan = stdout(&["plan", TINY, "--json"], 0);
    let mut document: Value = serde_json::from_str(&plan).unwrap();
    document["stages"][0]["data_parallel"] = json!(4_000_000_000_u32);
    let ours = folder.file("ours.json", document.to_string());
    let piper = json!({"stages": [{
        "nodes": [0, 1, 2, 3, 4, 5], "dataParallelDegree": 4_000_000_000_u32, "tensorParallelDegree": 1,
        "TMPCids": (0..6).map(|id| (id.to_string(), json!("vanilla"))).collect::<serde_json::Map<_, _>>()
    }]});
    let theirs = folder.file("theirs.json", piper.to_string());
    for (file, field) in [(&ours, "data_parallel"), (&theirs, "dataParallelDegree")] {
        for call in [
            &["check", TINY, file][..],
            &["simulate", TINY, file],
            &["map", TINY, file, "--topology", "dgx-1"],
            &["export", file, "--workload", TINY, "--to", "deepspeed"],
        ] {
            let told = refusal(call);
            let place = format!("stages[0].{field} is 4000000000");
            assert!(told.contains(&place) && told.contains("no more than 10000 devices"), "{call:?}: {told}");
        }
    }
    // One after the other, each within the limit.
    document["stages"][0]["data_parallel"] = json!(9_999);
    document["stages"][0]["tensor_parallel"] = json!(9_999);
    let both = folder.file("both.json", document.to_string());
    assert!(refusal(&["check", TINY, &both]).contains("stages[0] is on 9999 x 9999 devices"));
}

#[test]
fn numbers_are_read_to_the_nearest_double() {
    // Read digit by digit this becomes its neighbour, and a limit of just as much would not do.
    let folder = Folder::new();
    let exact = "938595867.7423489";
    let text = std::fs::read_to_string(TINY).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["bandwidth"] = serde_json::from_str(exact).unwrap();
    let file = folder.file("tiny.json", document.to_string());
    let read = stdout(&["plan", &file, "--json", "--memory", "1e12"], 0);
    let planned: Value = serde_json::from_str(&read).unwrap();
    let bandwidth = planned["limits"]["bandwidth_bytes_per_s"].as_f64().unwrap();
    assert_eq!(bandwidth, exact.parse::<f64>().unwrap());
}
