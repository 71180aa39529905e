//! Inputs from public cases, as their owners would try them; each stands for a kind.

use serde_json::{Value, json as object};

use crate::{BERT, Folder, argument, json, refusal, stdout};

fn topology(name: &str) -> String {
    format!("tests/field/topologies/{name}")
}

fn file(name: &str) -> String {
    format!("tests/field/{name}")
}

fn number(document: &Value, pointer: &str) -> f64 {
    document.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer} in {document}"))
}

fn estimate(arguments: &[&str]) -> Value {
    json(&[&["estimate"], arguments, &["--json"]].concat(), 0)
}

#[test]
fn no_share_of_a_transfer_is_hidden_that_compute_cannot_hide() {
    let file = topology("04-pcie-only.txt");
    let tensor = estimate(&[
        "llama-3-8b",
        "--hardware",
        "h100",
        "--topology",
        &file,
        "--parallel",
        "tp=8",
        "--global-batch",
        "64",
    ]);
    // 8 collectives a layer of 7/8 of 67 MB, 32 layers, 64 microbatches, over the 10 GB/s between the sockets.
    assert!(number(&tensor, "/iteration_s") > 96.0, "{}", tensor["iteration_s"]);
    let slow = "4xdgx-h100+eth-1g";
    let data = estimate(&["llama-3-8b", "--topology", slow, "--parallel", "tp=2,dp=16", "--global-batch", "128"]);
    assert!(number(&data, "/iteration_s") > 55.0, "{}", data["iteration_s"]);
    // The same from a plan of that configuration, and simulated.
    let planned =
        json(&["plan", "llama-3-8b", "--hardware", "h100", "--topology", &file, "--global-batch", "64", "--json"], 0);
    assert!(number(&planned, "/objective/value") < number(&tensor, "/iteration_s"), "{}", planned["objective"]);
}

#[test]
fn a_utilisation_that_no_run_has_reached_is_told_with_its_cause() {
    // A board of another kind has its own peak, which its power alone does not raise.
    let path = "tests/field/models/24-own-hardware.json";
    let own = json(&["plan", path, "--json"], 0);
    assert!(number(&own, "/prediction/hfu") < 0.5 && own["prediction"]["implausible"].is_null(), "{own}");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for constant in ["gemm_16", "attention", "memory", "links"] {
        file["constants"][constant]["value"] = 20.0.into();
    }
    let folder = Folder::new();
    let file = folder.file("fast.json", file.to_string());
    let text = stdout(&["plan", &file], 0);
    let line = text.lines().find(|line| line.starts_with("implausible: ")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("likely cause: the constants were changed or calibrated"), "{line}");
    // The data sheet's peak bounds every product.
    let document = json(&["plan", &file, "--json"], 0);
    assert!(number(&document, "/prediction/hfu") < 1.0, "{}", document["prediction"]);
    assert!(document["prediction"]["implausible"].is_string());
    let usual = estimate(&["llama-3.1-8b", "--devices", "8", "--global-batch", "64"]);
    assert!(usual["implausible"].is_null());
}

#[test]
fn trust_names_what_no_published_run_is_like() {
    let pcie = topology("04-pcie-only.txt");
    let told = |arguments: &[&str]| -> String {
        let document = estimate(arguments);
        assert!(document["trust"].is_null(), "{document}");
        let differs = document["differs"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_string());
        differs.collect::<Vec<_>>().join("; ")
    };
    for (arguments, differs) in [
        (
            vec![
                "tests/field/models/25-small-llama.json",
                "--devices",
                "32",
                "--parallel",
                "mbs=2",
                "--global-batch",
                "256",
            ],
            "587 M parameters, not 8 G to 406 G",
        ),
        (
            vec![
                "llama-3.1-8b",
                "--devices",
                "16",
                "--parallel",
                "cp=16",
                "--global-batch",
                "4",
                "--sequence-length",
                "1048576",
            ],
            "1048576 tokens, not 2048 to 8192",
        ),
        (
            vec!["llama-3-8b", "--hardware", "h100", "--topology", &pcie, "--parallel", "tp=8", "--global-batch", "64"],
            "devices joined by PCIe, not NVLink",
        ),
        (vec!["llama-3-8b", "--hardware", "h200", "--devices", "8", "--global-batch", "64"], "h200, not h100"),
        (
            vec!["llama-3-8b", "--stack", "plain", "--devices", "8", "--global-batch", "64"],
            "the software plain, not nemo-24",
        ),
        (vec!["llama-3-8b", "--devices", "4", "--global-batch", "64"], "4 devices, not 8 to 2304"),
        (
            vec![
                "llama-3-8b",
                "--devices",
                "8",
                "--parallel",
                "tp=2",
                "--global-batch",
                "64",
                "--set",
                "tp_overlap=false",
            ],
            "tp_overlap=false",
        ),
        (
            vec!["mixtral-8x7b", "--hardware", "a100", "--devices", "32", "--global-batch", "64", "--parallel", "ep=8"],
            "a100-80, not h100",
        ),
        (vec!["llama-3-8b", "--devices", "8", "--global-batch", "64", "--set", "fsdp=true"], "FSDP"),
    ] {
        let all = told(&arguments);
        assert!(all.contains(differs), "{arguments:?}: {all}");
    }
    let known = estimate(&["llama-3-8b", "--devices", "64", "--parallel", "cp=2", "--global-batch", "64"]);
    assert_eq!((&known["trust"]["runs"], known["differs"].as_array().map(Vec::len)), (&57.into(), Some(0)));
}

#[test]
fn fits_is_one_threshold_in_estimate_and_plan() {
    let fits = |arguments: &[&str]| {
        estimate(&[&["llama-3-8b", "--devices", "8", "--parallel", "tp=4", "--global-batch", "64"], arguments].concat())
    };
    // By the reserve alone: memory is known, and the limit is 80 GiB.
    let bytes = number(&fits(&[]), "/memory_bytes");
    let limit = 80.0 * 1024f64.powi(3);
    for (whole, expected) in
        [(limit / 1.11, "yes"), (limit / 1.09, "close"), (limit * 1.087, "no"), (limit * 1.145, "no")]
    {
        let reserve = format!("reserve={}", (whole - bytes).round());
        assert_eq!(fits(&["--set", &reserve])["fits"], expected, "{whole}");
    }
    let reserve = format!("reserve={}", (limit * 1.0875 - bytes).round());
    let arguments =
        ["estimate", "llama-3-8b", "--devices", "8", "--parallel", "tp=4", "--global-batch", "64", "--set", &reserve];
    let text = stdout(&arguments, 0);
    assert!(text.contains("108.7% of 80 GiB: fits: no, over by 7.00 GiB"), "{text}");
    // The planner takes what fits with the error of its memory model, and else what fits closely, marked.
    let plan = |memory: &str| {
        json(&["plan", "llama-3-8b", "--devices", "8", "--global-batch", "64", "--memory", memory, "--json"], 0)
    };
    assert_eq!(plan("80GiB")["prediction"]["fits"], "yes");
    let least =
        json(&["plan", "llama-3-8b", "--devices", "8", "--global-batch", "64", "--memory", "10GiB", "--json"], 1);
    let just = format!("{}", (number(&least, "/infeasible/smallest_memory_bytes") * 1.01).ceil());
    let close = plan(&just);
    assert_eq!(close["prediction"]["fits"], "close", "{}", close["prediction"]);
    assert!(close["proven_among"].as_str().unwrap().contains("that fit closely"), "{}", close["proven_among"]);
    assert!(close["notes"].to_string().contains("fits: close"), "{}", close["notes"]);
}

#[test]
fn an_infeasible_answer_names_devices_by_whole_machines_first() {
    let text = stdout(&["plan", "deepseek-v3"], 1);
    assert!(
        text.contains("No feasible layout on 64 devices of 80 GiB") && text.contains("Feasible with 192 x 80 GiB, or"),
        "{text}"
    );
    let document = json(&["plan", "deepseek-v3", "--json"], 1);
    assert_eq!(document["infeasible"]["limits"][0], "devices", "{}", document["infeasible"]);
    let enough = document["infeasible"]["fewest_devices"].to_string();
    json(&["plan", "deepseek-v3", "--devices", &enough, "--json"], 0);
}

#[test]
fn tables_of_links_are_read_with_their_nics_and_sockets() {
    let shown = |arguments: &[&str]| stdout(&[&["topologies"], arguments].concat(), 0);
    let bridge = shown(&[&topology("01-nv4-bridge.txt")]);
    assert!(bridge.contains("bisection bandwidth: 56.25 GB/s") && bridge.contains("--nvlink-gbps"), "{bridge}");
    assert!(shown(&[&topology("01-nv4-bridge.txt"), "--nvlink-gbps", "25"]).contains("bisection bandwidth: 100 GB/s"));
    for name in ["03-all-sys.txt", "04-pcie-only.txt"] {
        let text = shown(&[&topology(name)]);
        assert!(text.contains("bisection bandwidth: 10 GB/s"), "{name}: {text}");
    }
    assert!(shown(&[&topology("04-pcie-only.txt"), "--pcie", "gen5"]).contains("PCIe, 48 GB/s: gpu0, gpu1"));
    let gb200 = shown(&[&topology("06-h100-nics.txt"), "--hardware", "gb200"]);
    assert!(gb200.contains("18 x NVLink, 900 GB/s"), "{gb200}");
    let four = shown(&[&format!("4x{}+ib-ndr", topology("06-h100-nics.txt"))]);
    assert!(
        four.contains("32 devices in 4 machines")
            && four.contains("m0.mlx5_7")
            && four.contains("the listed NICs join"),
        "{four}"
    );
    let hosts = shown(&[&format!("{}+eth-10g", topology("07-two-hosts.txt"))]);
    assert!(hosts.contains("4 devices in 2 machines") && hosts.contains("1.25"), "{hosts}");
    let error = refusal(&["topologies", &topology("07-two-hosts.txt")]);
    assert!(error.contains("07-two-hosts.txt+ib-ndr"), "{error}");
    let matrix = shown(&[&format!("2x{}+eth-25g", topology("05-uniform-50.csv"))]);
    assert!(matrix.contains("16 devices in 2 machines") && matrix.contains("no NIC is listed"), "{matrix}");
}

#[test]
fn what_other_tools_print_is_read_or_refused_by_name() {
    let shown = |name: &str| stdout(&["topologies", &topology(name)], 0);
    let measured = shown("08-nvbandwidth.txt");
    assert!(
        measured.contains("3 devices") && measured.contains("21.95") && measured.contains("measured by nvbandwidth"),
        "{measured}"
    );
    let xgmi = shown("09-rocm-smi.txt");
    assert!(xgmi.contains("xGMI") && xgmi.contains("64 on MI300X"), "{xgmi}");
    let bus = shown("10-nccl-tests.txt");
    assert!(bus.contains("8 devices") && bus.contains("471.54 GB/s of bus bandwidth over all 8 devices"), "{bus}");
    let folder = crate::Folder::new();
    for (content, name) in [
        ("<system version=\"1\">\n<cpu numaid=\"0\"/>\n</system>\n", "NCCL's topology XML"),
        ("<?xml version=\"1.0\"?>\n<graphs version=\"1\"></graphs>\n", "NCCL's graph XML"),
        ("GPU 0: NVIDIA A100 (UUID: GPU-0)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n", "nvidia-smi nvlink -s"),
    ] {
        let file = folder.file("t.txt", content);
        let error = refusal(&["topologies", &file]);
        assert!(error.contains(name) && error.contains("nvidia-smi topo -m"), "{error}");
    }
    let table = "ACCESS TABLE:\n  a b\na ENABLED ENABLED\nb ENABLED ENABLED\n\nLINK TYPE TABLE:\n  a b\na SELF XGMI\nb XGMI SELF\n\nNUMA BW TABLE:\n  a b\na N/A 50000-64000\nb 50000-64000 N/A\n";
    let text = stdout(&["topologies", &folder.file("amd.txt", table)], 0);
    assert!(text.contains("xGMI, 64 GB/s"), "{text}");
    let p2p = "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 740.05  22.00 \n     1  21.00 744.46 \n\
        Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n     0 740.05  10.00 \n     1  10.50 744.46 \n";
    let text = stdout(&["topologies", &folder.file("p2p.txt", p2p)], 0);
    assert!(
        text.contains("2 of 2 pairs are faster without peer access, device 0 to 1 most: 22 instead of 10 GB/s"),
        "{text}"
    );
}

#[test]
fn hardware_and_topology_must_agree_and_machines_are_not_stretched() {
    let file = topology("06-h100-nics.txt");
    let error = refusal(&["plan", "llama-3-70b", "--hardware", "h100", "--topology", &file, "--devices", "64"]);
    assert!(
        error.contains("--devices 64 are more") && error.contains("8xtests/field/topologies/06-h100-nics.txt+ib-ndr"),
        "{error}"
    );
    let several = format!("8x{file}+ib-ndr");
    let plan = json(
        &["plan", "llama-3-70b", "--hardware", "h100", "--topology", &several, "--global-batch", "128", "--json"],
        0,
    );
    assert!((number(&plan, "/objective/value") - 14.41).abs() < 0.1, "{}", plan["objective"]);
    for command in ["plan", "estimate"] {
        let asked = |rest: &[&str]| refusal(&[&[command, "llama-3.2-1b", "--global-batch", "8"], rest].concat());
        assert!(asked(&["--topology", "pcie3-8"]).contains("does not name its devices"));
        let error = asked(&["--topology", "pcie3-8", "--hardware", "h100"]);
        assert!(error.contains("whose devices have 24 GB each, not 80 GiB"), "{error}");
        let error = asked(&["--topology", "dgx-a100", "--hardware", "h100"]);
        assert!(error.contains("whose devices are a100-80"), "{error}");
        assert!(asked(&["--topology", &file, "--pcie", "gen9"]).contains("gen9"));
    }
    // The topology says what runs.
    let on = |topology: &str| estimate(&["llama-3-8b", "--topology", topology, "--global-batch", "64"]);
    assert_eq!((&on("dgx-a100")["hardware"], &on("dgx-h200")["hardware"]), (&"a100-80".into(), &"h200".into()));
    let text = stdout(
        &[
            "plan",
            "llama-3-8b",
            "--hardware",
            "h100",
            "--topology",
            &topology("04-pcie-only.txt"),
            "--global-batch",
            "64",
        ],
        0,
    );
    assert!(text.contains("joined by PCIe") && !text.contains("joined by NVLink"), "{text}");
}

#[test]
fn every_hardware_that_is_listed_is_taken() {
    let listed = json(&["hardware", "--json"], 0);
    for hardware in listed.as_array().unwrap() {
        let id = hardware["id"].as_str().unwrap();
        estimate(&["gpt2", "--hardware", id, "--devices", "1", "--global-batch", "1"]);
        stdout(&["generate", "llama-3-8b", "--hardware", id], 0);
        stdout(&["plan", "gpt2", "--hardware", id, "--devices", "8", "--global-batch", "8"], 0);
    }
    let error = refusal(&["estimate", "gpt2", "--hardware", "nope", "--global-batch", "1"]);
    for hardware in listed.as_array().unwrap() {
        assert!(error.contains(hardware["id"].as_str().unwrap()), "{error}");
    }
}

#[test]
fn what_is_planned_on_routes_is_what_is_proven_and_simulated_there() {
    let profile = "tests/field/profiles/13-allreduce.json";
    let uniform = topology("05-uniform-50.csv");
    let plan = |settings: &[&str]| json(&[&["plan", profile, "--json"], settings].concat(), 0);
    for (wiring, most) in [("dgx-1", 66.68e-3), (uniform.as_str(), 43.34e-3)] {
        let free = plan(&["--topology", wiring]);
        let (value, bound) = (number(&free, "/objective/value"), number(&free, "/lower_bound"));
        assert!(value <= most && bound <= value, "{wiring}: {value}, bound {bound}");
        let simulated = number(&free, "/simulation/iteration_s");
        assert!((value - simulated).abs() < 1e-9, "{wiring}: {value}, simulated {simulated}");
        assert!(free["proven_among"].as_str().unwrap().contains("on the routes of"), "{free}");
        let one = plan(&["--topology", wiring, "--set", "stages=1"]);
        let restricted = number(&one, "/objective/value");
        assert!(restricted >= value - 1e-12 && restricted <= most, "{wiring}: {restricted}");
    }
    // One figure on top, that of a simulated batch; a planner's own objective below it.
    let text = stdout(&["plan", "inputs/bert32-layers.txt", "--planner", "parmesan", "--topology", "dgx-1"], 0);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].contains("/iteration") && lines[1].ends_with("simulated, 1F1B"), "{text}");
    assert!(lines[2].starts_with("planner's objective: ") && lines[2].contains(" one device"), "{text}");
}

#[test]
fn what_is_planned_for_an_engine_is_what_check_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.json");
    let file = file.to_str().unwrap();
    const LLAMA: &str = "inputs/llama-3-70b-h100.json";
    let interleaved = ["--set", "schedule=interleaved", "--set", "engine=torch", "--memory", "1TB"];
    let zero_bubble = ["--set", "schedule=zb-v", "--set", "engine=torch"];
    for (workload, devices, microbatches, settings) in [
        ("inputs/bert32a100.json", "32", "64", &zero_bubble[..]),
        (LLAMA, "32", "64", &zero_bubble),
        // Batches that the ranks do not divide: PyTorch makes two rounds of 5, of 10.
        (LLAMA, "4", "10", &[&interleaved[..], &["--set", "stages=4"]].concat()),
        (LLAMA, "8", "20", &[&interleaved[..], &["--set", "stages=8"]].concat()),
    ] {
        let limits = ["--devices", devices, "--microbatches", microbatches];
        let text = stdout(&[&["plan", workload, "--json"], &limits[..], settings].concat(), 0);
        std::fs::write(file, text).unwrap();
        let told = stdout(&["check", workload, file], 0);
        assert!(told.starts_with("valid: "), "{settings:?}\n{told}");
    }
}

#[test]
fn restrictions_of_an_engine_hide_no_plan_and_refusals_name_the_rule() {
    const LLAMA: &str = "inputs/llama-3-70b-h100.json";
    let plan = |limits: [&str; 2], settings: &[&str]| {
        let base = ["plan", LLAMA, "--json", "--devices", limits[0], "--microbatches", limits[1]];
        let given = ["--set", "schedule=interleaved", "--set", "engine=torchtitan"];
        let more: Vec<&str> = settings.iter().flat_map(|own| ["--set", *own]).collect();
        json(&[&base[..], &given, &more].concat(), 0)
    };
    for (limits, settings) in [(["32", "192"], &["stages=8", "stages=4"][..]), (["64", "64"], &["stages=4"])] {
        let all = plan(limits, &[]);
        let (value, bound) = (number(&all, "/objective/value"), number(&all, "/lower_bound"));
        for own in settings {
            let fewer = plan(limits, &[own]);
            assert!(number(&fewer, "/objective/value") >= bound * (1.0 - 1e-9), "{limits:?} {own}");
        }
        let stages = format!("stages={}", all["stages"].as_array().unwrap().len());
        let parts = format!("virtual_stages={}", all["virtual_stages"]);
        let same = plan(limits, &[&stages, &parts]);
        assert!(number(&same, "/objective/value") <= value * 1.001, "{limits:?} {stages} {parts}");
    }
    let refused = |microbatches: &str, engine: &str| {
        let given = ["plan", LLAMA, "--devices", "4", "--microbatches", microbatches, "--memory", "1TB"];
        stdout(&[&given[..], &["--set", engine, "--set", "schedule=interleaved", "--set", "stages=4"]].concat(), 1)
    };
    let megatron = refused("10", "engine=megatron");
    assert!(megatron.contains("4 stages do not divide 10 microbatches") && !megatron.contains("fits"), "{megatron}");
    assert!(refused("11", "engine=torch").contains("11 microbatches do not make 2 equal rounds over 4 stages"));
    // Recomputing everything has one meaning, whatever the engine.
    for engine in ["megatron", "torch", "torchtitan", "deepspeed", "galvatron"] {
        let told = refusal(&["plan", LLAMA, "--set", &format!("engine={engine}"), "--set", "recompute=always"]);
        assert!(told.contains("recomputes repeated layers only, not `Embedding`"), "{told}");
    }
}

/// The layer profile that was measured on 64 images, on two machines of eight.
const OF_64: [&str; 3] = ["tests/field/profiles/11-profile-of-64.txt", "--machines", "8,8"];

#[test]
fn the_batch_of_a_layer_profile_is_a_fact_that_is_told() {
    let plan = |more: &[&str]| json(&[&["plan"], &OF_64[..], &["--batch", "1024", "--json"], more].concat(), 0);
    let notes = |document: &Value| document["notes"].to_string();
    // By the sizes of its input and of its linear layers' outputs.
    let by_sizes = plan(&[]);
    assert!(notes(&by_sizes).contains("mean 64 images, which are assumed; --profile-batch N"), "{}", notes(&by_sizes));
    let told = plan(&["--profile-batch", "64"]);
    assert_eq!(by_sizes["objective"], told["objective"]);
    assert!(!notes(&told).contains("--profile-batch"), "{}", notes(&told));
    assert_eq!(plan(&["--set", "profile_batch=64"])["objective"], told["objective"]);
    let alone = plan(&["--profile-batch", "1"]);
    let seconds = |document: &Value| number(document, "/simulation/iteration_s");
    assert!(seconds(&alone) > 30.0 * seconds(&told), "{} {}", seconds(&alone), seconds(&told));
    for document in [&told, &alone] {
        assert!(notes(document).contains("without gradients and optimizer state"), "{}", notes(document));
    }
    let found = stdout(&["lint", OF_64[0]], 0);
    assert!(found.contains("[no-profile-batch]") && found.contains("those of 64 images"), "{found}");
    let found = stdout(&["lint", OF_64[0], "--profile-batch", "64"], 0);
    assert!(!found.contains("[no-profile-batch]"), "{found}");
    assert!(refusal(&["plan", BERT, "--profile-batch", "64"]).contains("--profile-batch is for layer profiles"));
}

#[test]
fn a_header_line_tells_the_batch_of_a_layer_profile() {
    let folder = Folder::new();
    let sizes = std::fs::read_to_string(OF_64[0]).unwrap();
    let headed = folder.file("headed.txt", format!("# VGG, cut short\n# profile_batch=32\n{sizes}"));
    let seconds = |file: &str, more: &[&str]| {
        let document = json(&[&["plan", file, "--machines", "8,8", "--batch", "64", "--json"], more].concat(), 0);
        assert!(!document["notes"].to_string().contains("how many samples"), "{}", document["notes"]);
        number(&document, "/simulation/iteration_s")
    };
    let of_header = seconds(&headed, &[]);
    assert_eq!(of_header, seconds(OF_64[0], &["--profile-batch", "32"]));
    // What a run of microbatches of two samples becomes tells them.
    let written = argument(&folder.path("bert.txt"));
    stdout(&["convert", "inputs/bert32a100.json", "--to", "pipedream", "--output", &written], 0);
    let text = std::fs::read_to_string(&written).unwrap();
    assert_eq!(text.lines().next(), Some("# profile_batch=2"), "{text}");
    let colon = folder.file("colon.txt", format!("# profile_batch: 64\n{sizes}"));
    assert!(refusal(&["plan", &colon]).contains("write `# profile_batch=64`"));
    let spaced = folder.file("spaced.txt", format!("# profile_batch = 32\n{sizes}"));
    assert_eq!(of_header, seconds(&spaced, &[]));
    let wrong = folder.file("wrong.txt", format!("# profile_batch=none\n{sizes}"));
    let told = refusal(&["plan", &wrong]);
    assert!(told.contains("wrong.txt:1: ") && told.contains("profile_batch"), "{told}");
}

#[test]
fn a_plan_is_judged_on_the_batch_that_it_was_made_for() {
    let folder = Folder::new();
    let plan = argument(&folder.path("p64.json"));
    let made = [&["plan"], &OF_64[..], &["--batch", "1024", "--profile-batch", "64", "--output", &plan]].concat();
    stdout(&made, 0);
    let seconds = |document: &Value| number(document, "/iteration_s");
    let usual = seconds(&json(&["simulate", OF_64[0], &plan, "--json"], 0));
    assert!((usual - 0.1924).abs() < 0.001, "{usual}");
    stdout(&["check", OF_64[0], &plan], 0);
    for command in ["check", "simulate"] {
        let told = refusal(&[command, OF_64[0], &plan, "--profile-batch", "1"]);
        assert!(told.contains("workload.profile_batch is 64") && told.contains("give --profile-batch 64"), "{told}");
    }
    let compare = [&["compare"], &OF_64[..], &["--batch", "1024", "--plan", &plan]].concat();
    stdout(&[&compare[..], &["--profile-batch", "64"]].concat(), 0);
    let told = refusal(&[&compare[..], &["--profile-batch", "1"]].concat());
    assert!(told.contains("p64.json: workload.profile_batch is 64"), "{told}");
}

#[test]
fn a_workload_without_any_time_is_refused_in_every_form() {
    let told = refusal(&["plan", "tests/field/profiles/16-placement-no-times.json"]);
    assert!(told.contains("has no node that takes any time"), "{told}");
    let folder = Folder::new();
    let mut piper: Value = serde_json::from_str(&std::fs::read_to_string(BERT).unwrap()).unwrap();
    for node in piper["nodes"].as_array_mut().unwrap() {
        for modes in node["TMPCs"].as_object_mut().unwrap().values_mut() {
            for mode in modes.as_array_mut().unwrap() {
                mode["timePerSample"] = 0.into();
                mode["forwardTimePerSample"] = 0.into();
            }
        }
    }
    let told = refusal(&["plan", &folder.file("bert.json", piper.to_string())]);
    assert!(told.contains("bert.json") && told.contains("has no node that takes any time"), "{told}");
    // An edge that is told twice.
    let edges = object!({
        "maxFPGAs": 2, "maxCPUs": 1, "maxMemoryPerFPGA": 1e9,
        "nodes": (0..2).map(|id| object!({
            "id": id, "name": "n", "supportedOnFpga": 1, "fpgaLatency": 1.0, "cpuLatency": 9.0, "size": 1.0,
            "isBackwardNode": 0, "colorClass": id
        })).collect::<Vec<_>>(),
        "edges": [
            {"sourceId": 0, "destId": 1, "cost": 1.0},
            {"sourceId": 0, "destId": 1, "cost": 1.0},
        ],
    });
    let found = stdout(&["lint", &folder.file("twice.json", edges.to_string())], 0);
    assert!(found.contains("[repeated-edges]"), "{found}");
}

#[test]
fn estimate_takes_the_batch_that_plan_takes() {
    let told = |flags: &[&str]| stdout(&[&["estimate", "llama-3-8b", "--devices", "8"], flags].concat(), 0);
    let usual = told(&[]);
    assert!(usual.contains("global batch 128") && usual.contains("global batch 128"), "{usual}");
    assert_eq!(told(&["--batch", "64"]), told(&["--global-batch", "64"]));
    assert!(!told(&["--batch", "64"]).contains("is assumed to carry"));
}

#[test]
fn the_engine_of_a_trained_model_is_that_of_its_stack() {
    fn plan<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["plan", "llama-3-8b", "--devices", "8", "--set"], more].concat()
    }
    assert!(stdout(&plan(&["engine=megatron"]), 0).contains("the plan is for Megatron-LM with --stack megatron-2025"));
    assert!(stdout(&plan(&["engine=torchtitan", "--stack", "torchtitan"]), 0).contains("the plan is for torchtitan"));
    let told = refusal(&plan(&["engine=torchtitan"]));
    assert!(told.contains("means Megatron-LM (--stack torchtitan is torchtitan"), "{told}");
    assert!(stdout(&["plan", "bert-32", "--devices", "8"], 0).contains("`plantui generate bert-32` makes another run"));
}

#[test]
fn what_an_answer_without_a_plan_says_would_do_does() {
    for (schedule, limit) in [
        ("interleaved", ["--memory", "3GiB"]),
        ("zb-v", ["--memory", "3GiB"]),
        ("zb-v", ["--devices", "3"]),
        ("1f1b", ["--memory", "500MiB"]),
    ] {
        let schedule = format!("schedule={schedule}");
        let call = ["plan", BERT, "--planner", "joint", "--set", &schedule, "--json"];
        let infeasible = json(&[&call[..], &limit].concat(), 1)["infeasible"].clone();
        let other = |flag: &str| if limit[0] == flag { vec![] } else { limit.to_vec() };
        let bytes = number(&infeasible, "/smallest_memory_bytes").to_string();
        stdout(&[&call[..], &other("--memory"), &["--memory", &bytes]].concat(), 0);
        if let Some(devices) = infeasible["fewest_devices"].as_u64() {
            stdout(&[&call[..], &other("--devices"), &["--devices", &devices.to_string()]].concat(), 0);
        }
    }
}

#[test]
fn stages_of_a_pipedream_graph_are_a_plan() {
    let staged = file("profiles/12-partitioned.txt");
    let folder = Folder::new();
    let plain = std::fs::read_to_string(&staged).unwrap();
    let plain: Vec<&str> = plain.lines().map(|line| line.split(" -- stage_id").next().unwrap()).collect();
    let graph = folder.file("graph.txt", &(plain.join("\n") + "\n"));
    let told = stdout(&["check", &graph, &staged, "--machines", "2"], 0);
    assert!(told.contains("2 stages on 2 of 2 devices") && told.contains("states no replicas"), "{told}");
    let compared = json(&["compare", &graph, "--machines", "2", "--plan", &staged, "--planner", "dapple", "--json"], 0);
    assert_eq!(compared["entries"].as_array().unwrap().len(), 2);
    // What is written is read.
    let written = stdout(&["plan", &graph, "--machines", "2", "--format", "pipedream"], 0);
    let written = folder.file("written.txt", &written);
    stdout(&["check", &graph, &written, "--machines", "2"], 0);
    assert!(refusal(&["check", &graph, &graph, "--machines", "2"]).contains("has no stage_id for node 1"));
}

#[test]
fn a_profile_for_each_micro_batch_is_chosen_by_a_flag() {
    let profiles = file("profiles/14-piper-by-microbatch.json");
    assert!(refusal(&["plan", &profiles]).contains("micro-batches 1, 2"));
    assert!(refusal(&["plan", &profiles, "--micro-batch", "3"]).contains("choose one of 1, 2"));
    let planned = json(&["plan", &profiles, "--micro-batch", "2", "--json"], 0);
    assert_eq!(planned["stages"].as_array().unwrap().len(), 2);
    assert!(refusal(&["plan", "llama-3-8b", "--micro-batch", "2"]).contains("no profiles by micro-batch"));
}

#[test]
fn files_of_other_programs_are_known_by_name() {
    for (name, part) in
        [("17-metis-profile.json", "a profile of Metis"), ("18-chakra.json", "a Chakra execution trace")]
    {
        assert!(refusal(&["plan", &file(&format!("profiles/{name}"))]).contains(part), "{name}");
    }
    let folder = Folder::new();
    for (name, text) in [
        ("program.txt", "ExportedProgram:\n    class GraphModule(torch.nn.Module):\n"),
        ("flops.txt", "-------- DeepSpeed Flops Profiler --------\nProfile Summary at step 1:\n"),
    ] {
        let path = folder.file(name, text);
        assert!(refusal(&["plan", &path]).contains("python -m plantui.profile"), "{name}");
    }
}
