//! `plantui estimate` and `plantui calibrate` on the command line.

use serde_json::Value;

use super::{Folder, json, plantui, refusal, stdout};

/// A published run: NVIDIA measured 14.72 s.
const LLAMA: [&str; 14] = [
    "estimate",
    "llama-3-70b",
    "--hardware",
    "h100",
    "--devices",
    "64",
    "--parallel",
    "tp=4,pp=4,vp=5,cp=2,ep=1,mbs=1",
    "--global-batch",
    "128",
    "--sequence-length",
    "8192",
    "--precision",
    "bf16",
];

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {value}"))
}

#[test]
fn a_published_run_is_predicted_with_every_field() {
    let told = json(&[&LLAMA[..], &["--recompute", "none", "--stack", "megatron-2025", "--json"]].concat(), 0);
    assert_eq!(told["schema"], "plantui.estimate/1");
    let iteration = number(&told, "/iteration_s");
    assert!((iteration / 14.72 - 1.0).abs() < 0.03, "{iteration}");
    let tokens = number(&told, "/tokens_per_s");
    assert!((tokens * iteration / (128.0 * 8192.0) - 1.0).abs() < 1e-9);
    assert!((number(&told, "/tokens_per_s_per_device") * 64.0 / tokens - 1.0).abs() < 1e-9);
    let flops = number(&told, "/model_flops_per_s_per_device");
    assert!((flops / 989.4e12 / number(&told, "/mfu") - 1.0).abs() < 1e-9);
    assert_eq!(number(&told, "/hfu"), number(&told, "/mfu"));
    assert!((0.0..0.1).contains(&number(&told, "/bubble")));
    let parts = told["parts_s"].as_object().unwrap();
    for name in [
        "gemm",
        "attention",
        "elementwise",
        "tensor_parallel",
        "context_parallel",
        "expert_parallel",
        "head",
        "bubble",
        "imbalance",
        "p2p",
        "data_parallel",
        "optimizer",
    ] {
        assert!(parts.contains_key(name), "{name}");
    }
    let sum: f64 = parts.values().filter_map(Value::as_f64).sum();
    assert!((sum / iteration - 1.0).abs() < 1e-9, "{sum} {iteration}");
    let stages = told["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 4);
    let fullest = stages.iter().map(|stage| number(stage, "/memory_bytes")).fold(0.0, f64::max);
    assert_eq!(fullest, number(&told, "/memory_bytes"));
    for stage in stages {
        let parts: f64 = stage["memory"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        assert!((parts / number(stage, "/memory_bytes") - 1.0).abs() < 1e-9);
    }
    assert_eq!(told["fits"], "yes");
    assert_eq!(told["trust"]["runs"], 57);
    assert!(number(&told, "/trust/mean_error") < 0.03 && told["trust"]["class"].is_string());
    assert!(!told["assumptions"].as_array().unwrap().is_empty());
    // The table says the same.
    let table = stdout(&LLAMA, 0);
    assert!(table.contains("MFU") && table.contains("fits: yes") && table.contains("57 published runs"), "{table}");
}

#[test]
fn recomputation_trades_time_for_memory() {
    let told = |what: &str| json(&[&LLAMA[..], &["--recompute", what, "--json"]].concat(), 0);
    let [none, one, full] = ["none", "full:1", "full"].map(told);
    for (less, more) in [(&none, &one), (&one, &full)] {
        assert!(number(less, "/iteration_s") < number(more, "/iteration_s"));
        assert!(number(less, "/memory_bytes") > number(more, "/memory_bytes"));
        assert!(number(more, "/hfu") > number(more, "/mfu"));
    }
    // All layers but the head again: a third more work.
    let again = number(&full, "/hfu") / number(&full, "/mfu");
    assert!((1.30..1.34).contains(&again), "{again}");
}

#[test]
fn every_setting_changes_something_where_it_applies() {
    let base = ["estimate", "llama-3.1-8b", "--devices", "64", "--parallel", "tp=4,cp=2,mbs=2", "--global-batch", "64"];
    let told = |more: &[&str]| json(&[&base[..], more, &["--json"]].concat(), 0);
    let plain = told(&[]);
    for setting in [
        "sequence_parallel=false",
        "distributed_optimizer=false",
        "fsdp=true",
        "tp_overlap=false",
        "dp_overlap=false",
        "fused_cross_entropy=true",
        "vocab_parallel_loss=false",
        "fused_elementwise=false",
        "attention=flash1",
        "attention=flash2",
        "context_style=all-to-all",
        "gradient_bytes=2",
        "reserve=70GiB",
    ] {
        let changed = told(&["--set", setting]);
        let (name, value) = setting.split_once('=').unwrap();
        let shown = &changed["settings"][name];
        if name == "reserve" {
            assert_eq!(shown, 70.0 * 1024f64.powi(3));
            assert_ne!(changed["fits"], plain["fits"]);
            continue;
        }
        assert_eq!(shown.to_string().trim_matches('"'), value);
        let same = ["iteration_s", "memory_bytes"].iter().all(|field| changed[field] == plain[field]);
        assert!(!same, "{setting} changes nothing");
    }
    let unfused =
        json(&["estimate", "gpt2", "--devices", "1", "--global-batch", "8", "--set", "attention=unfused", "--json"], 0);
    assert!(unfused["trust"].is_null());
    for stack in ["nemo-24", "torchtitan", "plain"] {
        assert_eq!(told(&["--stack", stack])["stack"], stack);
    }
}

#[test]
fn models_come_from_names_files_folders_and_standard_input() {
    let folder = Folder::new();
    let config = r#"{"model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "max_position_embeddings": 40960}"#;
    let path = folder.file("config.json", config);
    let parent = folder.path("").to_str().unwrap().to_string();
    let flags = ["--devices", "8", "--parallel", "ep=8", "--global-batch", "16", "--json"];
    let named = json(&[&["estimate", "Qwen/Qwen3-30B-A3B"], &flags[..]].concat(), 0);
    for place in [path.as_str(), parent.as_str()] {
        let read = json(&[&["estimate", place], &flags[..]].concat(), 0);
        assert_eq!(read["iteration_s"], named["iteration_s"]);
        assert_eq!(read["model"]["parameters"], 30_532_122_624_u64);
    }
    let assert = plantui().args([&["estimate", "-"], &flags[..]].concat()).write_stdin(config).assert().code(0);
    let piped: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(piped["iteration_s"], named["iteration_s"]);
    assert!(named["assumptions"].to_string().contains("between software releases"));
    assert!(number(&named, "/model/active_parameters") < 4e9);
}

#[test]
fn what_engines_refuse_is_refused_with_the_rule() {
    let llama = |more: &[&str]| refusal(&[&["estimate", "llama-3-70b", "--global-batch", "128"], more].concat());
    for (flags, sentence) in [
        (&["--parallel", "tp=3"][..], "tp=3 does not divide the model's 64 attention heads"),
        (&["--stack", "torchtitan", "--parallel", "tp=16"], "tp=16 does not divide the model's 8 key/value heads"),
        (&["--parallel", "pp=83"], "80 layers are too few for pp·vp = 83·1 = 83"),
        (&["--parallel", "dp=3"], "global batch 128 is not divisible by mbs·dp = 1·3 = 3"),
        (&["--parallel", "pp=16,vp=5,mbs=16"], "interleaving needs a multiple of 16 microbatches, the pipeline stages"),
        (&["--parallel", "vp=2"], "vp=2 needs at least two pipeline stages"),
        (&["--parallel", "ep=2", "--devices", "2"], "ep=2, but llama-3-70b has no experts"),
        (&["--parallel", "cp=3"], "sequence length 8192 is not divisible by 2·cp = 6"),
        (&["--parallel", "tp=4,dp=2", "--devices", "16"], "dp=2 contradicts 16 devices"),
        (&["--parallel", "tp=4", "--devices", "6"], "6 devices are not a multiple of tp·pp·cp = 4·1·1 = 4"),
        (&["--parallel", "tp=4,tp=8"], "--parallel: tp is given twice, as 4 and 8"),
        (&["--parallel", "zp=4"], "--parallel: there is no degree `zp`"),
        (&["--parallel", "pp=4", "--layers", "20,20,20,21"], "--layers adds up to 81"),
        (&["--parallel", "pp=4", "--layers", "20,20,40"], "--layers has 3 numbers, but there are 4"),
        (&["--parallel", "pp=3", "--layers", "40,0,40"], "--layers leaves a stage without layers"),
        (&["--recompute", "full:81"], "--recompute full:81 is more than the 80"),
        (&["--recompute", "some"], "--recompute: recompute is `some`"),
        (&["--hardware", "tpu"], "--hardware: there is no hardware `tpu`"),
        (&["--hardware", "a100", "--precision", "fp8"], "a100-80 has no products in 8 bits"),
        (&["--precision", "mxfp8"], "mxfp8 needs hardware block scaling, which h100 lacks"),
        (&["--precision", "int3"], "--precision: precision is `int3`"),
        (&["--stack", "mine"], "--stack: there is no stack `mine`"),
        (&["--set", "colour=red"], "--set: there is no setting `colour`"),
        (&["--set", "parameter_offload=true"], "parameter_offload needs fsdp"),
        (&["--devices", "8", "--set", "zero=3", "--set", "hsdp=3"], "hsdp=3 does not divide dp·cp = 8·1 = 8"),
        (&["--devices", "8", "--set", "zero=0", "--set", "hsdp=4"], "hsdp divides nothing under zero=0"),
        (&["--adapter", "dora"], "--adapter: adapter is `dora`, must be none, lora or qlora"),
        (&["--recompute", "selective:magic"], "--recompute: recompute is `selective:magic`; modules are core_attn"),
        (&["--set", "attention"], "--set `attention` is no NAME=VALUE"),
        (&["--set", "attention=fast"], "--set: attention is `fast`, must be flash, flash1, flash2 or unfused"),
        (&["--set", "tp=2"], "--set: tp is no setting"),
        (&["--set", "fsdp=true", "--set", "fsdp=false"], "--set: fsdp is set twice"),
        (
            &["--parallel", "tp=2", "--set", "sequence_parallel=false", "--set", "tp_overlap=true"],
            "tp_overlap needs sequence_parallel",
        ),
        (&["--parallel", "cp=2", "--set", "attention=unfused"], "cp=2 needs a fused attention kernel"),
        (
            &["--parallel", "tp=8,cp=2", "--set", "context_style=all-to-all"],
            "context_style=all-to-all needs cp to divide",
        ),
        (&["--sequence-length", "0"], "--sequence-length: sequence_length is `0`"),
    ] {
        let error = llama(flags);
        assert!(error.starts_with(&format!("error: {sentence}")), "{flags:?}: {error}");
    }
    let experts =
        |parallel: &str| refusal(&["estimate", "mixtral-8x7b", "--global-batch", "96", "--parallel", parallel]);
    assert!(experts("ep=3,dp=3").contains("ep=3 does not divide the 8 experts"));
    assert!(experts("ep=4,dp=2").contains("ep·etp = 4·1 = 4 does not divide tp·cp·dp = 1·1·2 = 2"));
    let error = refusal(&["estimate", "gpt2", "--global-batch", "8", "--sequence-length", "2048"]);
    assert!(error.contains("more than the 1024 learned positions of gpt2"), "{error}");
    assert!(
        refusal(&["estimate", "llama-9", "--global-batch", "8"]).contains("there is no model and no file `llama-9`")
    );
}

#[test]
fn odd_configurations_are_refused_by_field() {
    let folder = Folder::new();
    let error = |name: &str, text: &str| {
        let path = folder.file(name, text);
        refusal(&["estimate", &path, "--global-batch", "8"])
    };
    for (text, sentence) in [
        (r#"{"model_type": "rwkv", "hidden_size": 4}"#, "model_type is `rwkv`, which is not known"),
        (r#"{"peft_type": "LORA", "r": 16}"#, "peft_type marks an adapter (LoRA)"),
        (r#"{"hidden_size": 4}"#, "model_type is missing"),
        (r#"{"model_type": "mixtral", "hidden_size": 64, "num_attention_heads": 4}"#, "num_local_experts is missing"),
        (
            r#"{"model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 3,
               "intermediate_size": 64, "vocab_size": 100, "num_hidden_layers": 2}"#,
            "num_key_value_heads is 3, which does not divide the 4 attention heads",
        ),
        (
            r#"{"model_type": "gemma2", "hidden_size": "wide", "num_attention_heads": 4}"#,
            "hidden_size is `wide`, must be a whole number",
        ),
        (
            r#"{"model_type": "qwen3", "hidden_size": 1073741824, "num_attention_heads": 1073741824}"#,
            "hidden_size is 1073741824, more than 1048576",
        ),
        (
            r#"{"model_type": "llama", "hidden_size": 1048576, "num_attention_heads": 1048576, "head_dim": 1048576,
               "intermediate_size": 1048576, "vocab_size": 1048576, "num_hidden_layers": 1000}"#,
            "describes",
        ),
        ("[1, 2]", ""),
        ("{", ""),
    ] {
        let found = error("config.json", text);
        assert!(found.contains(sentence), "{found}");
    }
    // Gemma 3's own files leave sizes to the library's defaults, inside a model that reads pictures.
    let pictures = r#"{"model_type": "gemma3", "vision_config": {"hidden_size": 1152}, "text_config": {"hidden_size": 2560,
        "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024}}"#;
    let path = folder.file("gemma.json", pictures);
    let told = json(&["estimate", &path, "--global-batch", "8", "--json"], 0);
    assert_eq!(told["model"]["parameters"], 3_880_263_168_u64);
    assert!(told["assumptions"].to_string().contains("only the text model is counted"));
    // Quantised weights are told, not counted as fewer.
    let quantised = r#"{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
        "quantization_config": {"quant_method": "gptq", "bits": 4}}"#;
    let path = folder.file("quantised.json", quantised);
    let told = json(&["estimate", &path, "--global-batch", "8", "--json"], 0);
    assert_eq!(told["model"]["parameters"], 8_030_261_248_u64);
    assert!(told["assumptions"].to_string().contains("quantised (`gptq`)"));
}

#[test]
fn a_calibration_is_written_applied_and_told() {
    let folder = Folder::new();
    let runs =
        "tp,pp,vp,cp,devices,global_batch,measured_s\n4,4,5,2,64,128,17.0\n8,2,1,1,64,128,18.9\n4,4,1,1,64,128,18.1\n";
    let runs = folder.file("runs.csv", runs);
    let file = folder.path("ours.json").to_str().unwrap().to_string();
    let text = stdout(&["calibrate", "llama-3-70b", "--runs", &runs, "--write", &file], 0);
    assert!(
        text.contains("compute rate") && text.contains("left out") && text.contains("next run to measure: tp="),
        "{text}"
    );
    assert!(text.contains("exposed data-parallel share") && text.contains("not identified"), "{text}");
    let shipped = json(&[&LLAMA[..], &["--json"]].concat(), 0);
    let fitted = json(&[&LLAMA[..], &["--calibration", &file, "--json"]].concat(), 0);
    let error = |told: &Value| (number(told, "/iteration_s") / 17.0 - 1.0).abs();
    assert!(error(&shipped) > 0.12 && error(&fitted) < 0.06, "{} {}", error(&shipped), error(&fitted));
    assert!(fitted["assumptions"].to_string().contains("calibrated on 3 runs of llama-3-70b"));
    let document = json(&["calibrate", "llama-3-70b", "--runs", &runs, "--json"], 0);
    assert_eq!(document["schema"], "plantui.calibrate/1");
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(3));
    // It is not replaced unasked, and what is none is refused.
    assert!(refusal(&["calibrate", "llama-3-70b", "--runs", &runs, "--write", &file]).contains("exists"));
    let error = refusal(&[&LLAMA[..], &["--calibration", &runs]].concat());
    assert!(error.contains("is not a calibration: it looks like CSV"), "{error}");
    assert!(refusal(&["calibrate", "llama-3-70b", "--runs", "none.csv"]).contains("none.csv"));
}

#[test]
fn measured_kernels_calibrate_a_device() {
    let folder = Folder::new();
    let kernels = r#"{"schema": "plantui.kernels/1", "device": "board", "torch": "2.6", "products": [{"precision": "bf16",
        "m": 8192, "n": 8192, "k": 8192, "seconds": 0.03}], "attention": [], "copies": [], "iterations": []}"#;
    let kernels = folder.file("kernels.json", kernels);
    let file = folder.path("ours.json").to_str().unwrap().to_string();
    let text = stdout(&["calibrate", "--kernels", &kernels, "--hardware", "rtx-3090", "--write", &file], 0);
    assert!(text.contains("kernels of board (PyTorch 2.6) for rtx-3090") && text.contains("gemm_16"), "{text}");
    assert!(text.contains("no iteration was measured"), "{text}");
    let asked =
        ["estimate", "llama-3.2-1b", "--hardware", "rtx-3090", "--devices", "8", "--global-batch", "64", "--json"];
    let (before, after) = (json(&asked, 0), json(&[&asked[..], &["--calibration", &file]].concat(), 0));
    assert!(number(&after, "/iteration_s") > number(&before, "/iteration_s"));
    let document = json(&["calibrate", "--kernels", &kernels, "--hardware", "rtx-3090", "--json"], 0);
    assert_eq!(document["schema"], "plantui.calibrate/1");
    assert_eq!(document["kernels"]["factors"][0]["constant"], "gemm_16");
    assert_eq!(document["calibration"]["hardware"], "rtx-3090");
    let text = std::fs::read_to_string(&kernels).unwrap();
    let fast = folder.file("fast.json", text.replace("0.03", "0.01"));
    let error = refusal(&["calibrate", "--kernels", &fast, "--hardware", "rtx-3090"]);
    assert!(error.contains("110 TFLOP/s in 16 bits, more than the 71 TFLOP/s of rtx-3090"), "{error}");
    let unused = ["calibrate", "--kernels", &kernels, "--hardware", "rtx-3090", "--devices", "8"];
    assert!(refusal(&unused).contains("--devices is about runs, and there are none"));
    assert!(after["assumptions"].to_string().contains("measured kernels for megatron-2025; no measured run tests it"));
    for call in [&["calibrate"][..], &["calibrate", "llama-3-8b"], &["calibrate", "--runs", "runs.csv"]] {
        assert!(refusal(call).contains("or --kernels FILE"));
    }
}

#[test]
fn a_topology_gives_links_machines_and_devices() {
    let asked = ["estimate", "llama-3.1-8b", "--parallel", "tp=2", "--global-batch", "64", "--json"];
    let of = |topology: &str| json(&[&asked[..], &["--topology", topology]].concat(), 0);
    let (fast, slow) = (of("2xdgx-h100"), of("2xdgx-h100+eth-25g"));
    assert_eq!((&fast["devices"], &slow["devices"]), (&16.into(), &16.into()));
    let reduced = |document: &serde_json::Value| document["parts_s"]["data_parallel"].as_f64().unwrap();
    assert!(reduced(&slow) > 2.0 * reduced(&fast), "{} {}", reduced(&slow), reduced(&fast));
    assert!(slow["assumptions"].to_string().contains("devices to a machine"), "{}", slow["assumptions"]);
}

#[test]
fn own_hardware_is_read_from_a_file_and_stays_known_to_its_plan() {
    let folder = Folder::new();
    let figures = "generation = \"ampere\"\npeak_16 = 71e12\nmemory_gib = 24\nmemory_bandwidth = 936e9\n\
        inner_link = 12e9\nouter_link = 3e9\nwatts = 350\n";
    let board = folder.file("my-board.toml", figures);
    let flags = ["--devices", "8", "--global-batch", "64", "--json"];
    let estimate = json(&[&["estimate", "llama-3.2-1b", "--hardware", &board], &flags[..]].concat(), 0);
    assert_eq!((&estimate["hardware"], estimate["trust"].is_null()), (&"my-board".into(), true));
    let plan = folder.path("plan.json").display().to_string();
    let made = ["plan", "llama-3.2-1b", "--hardware", &board, "--devices", "8", "--json", "--output", &plan];
    stdout(&made, 0);
    // The plan has the figures, so that the file is not needed again.
    assert!(stdout(&["check", "llama-3.2-1b", &plan], 0).starts_with("valid: "));
    let bad = |text: &str| refusal(&["estimate", "llama-3.2-1b", "--hardware", &folder.file("bad.toml", text)]);
    assert!(bad("peak_16 = 1e14").contains("memory_gib is missing"));
    assert!(bad("peak_16 = 1e14\ncolour = 1").contains("bad.toml:2: unknown field `colour`"));
    assert!(bad(&figures.replace("350", "0")).contains("watts is 0"));
}

#[test]
fn bands_hold_only_for_what_was_measured() {
    let titan = ["estimate", "llama-3-8b", "--stack", "torchtitan", "--devices", "8", "--global-batch", "64", "--json"];
    let told = |more: &[&str]| json(&[&titan[..], more].concat(), 0);
    assert!(number(&told(&[]), "/trust/band") > 0.0);
    for (more, differs) in [
        (&["--set", "hsdp=4"][..], "hsdp=4"),
        (&["--set", "optimizer_offload=true"], "optimizer_offload=true"),
        (&["--set", "moment_bytes=2"], "moment_bytes=2"),
        (&["--adapter", "lora"], "adapters (lora:r=16)"),
    ] {
        let document = told(more);
        assert!(document["differs"].to_string().contains(differs), "{more:?}: {}", document["differs"]);
    }
}

#[test]
fn days_and_cost_are_in_both_forms() {
    let flags = ["estimate", "llama-3-8b", "--devices", "8", "--global-batch", "64", "--tokens", "1T", "--price", "2"];
    assert!(stdout(&flags, 0).contains("1 T tokens: "));
    let document = json(&[&flags[..], &["--json"]].concat(), 0);
    let [rate, days] = ["/tokens_per_s", "/cost/days"].map(|field| number(&document, field));
    assert!((days * 86_400.0 * rate / 1e12 - 1.0).abs() < 1e-9);
    assert!((number(&document, "/cost/total") / (days * 24.0 * 8.0 * 2.0) - 1.0).abs() < 1e-9);
}

#[test]
fn a_run_that_does_not_fit_names_the_changes_that_make_it_fit() {
    let asked = ["estimate", "llama-3.1-70b", "--devices", "64", "--parallel", "tp=4,pp=2", "--global-batch", "128"];
    let text = stdout(&asked, 0);
    let line = text.lines().find(|line| line.starts_with("fits with: ")).unwrap();
    assert!(line.contains("--parallel tp=8,pp=2") && line.contains("--recompute full"), "{line}");
    // Each change is enough, and takes the told time.
    let told = json(&[&asked[..], &["--json"]].concat(), 0);
    let remedies = told["would_fit"].as_array().unwrap();
    assert!(remedies.len() > 1);
    for remedy in remedies {
        let flags = remedy["flags"].as_str().unwrap();
        let mut call = asked.map(String::from).to_vec();
        let parallel = flags.split_once("--parallel ").map(|(_, degrees)| degrees.to_string());
        match parallel {
            Some(degrees) => call[5] = degrees,
            None => call.extend(flags.split(' ').map(String::from)),
        }
        call.push("--json".into());
        let call: Vec<&str> = call.iter().map(String::as_str).collect();
        let changed = json(&call, 0);
        assert_eq!(changed["fits"], "yes", "{flags}");
        assert_eq!(changed["iteration_s"], remedy["iteration_s"], "{flags}");
    }
    let times: Vec<f64> = remedies.iter().map(|remedy| number(remedy, "/iteration_s")).collect();
    assert!(times.is_sorted());
    // What fits needs nothing, and what nothing helps says so.
    let fits = json(&["estimate", "llama-3.1-8b", "--devices", "64", "--parallel", "tp=4", "--json"], 0);
    assert_eq!(fits["would_fit"].as_array().map(Vec::len), Some(0));
    let hopeless = stdout(&["estimate", "llama-3.1-405b", "--devices", "8"], 0);
    assert!(hopeless.contains("no single change makes it fit; `plantui plan` searches all layouts"), "{hopeless}");
}

#[test]
fn every_kind_of_context_parallelism_has_its_time_and_says_what_it_is() {
    let of = |style: &str| {
        let style = format!("context_style={style}");
        let call = ["estimate", "llama-3.1-8b", "--devices", "64", "--parallel", "cp=16", "--global-batch", "16"];
        json(&[&call[..], &["--sequence-length", "131072", "--set", &style, "--json"]].concat(), 0)
    };
    let seconds = |told: &Value| number(told, "/parts_s/context_parallel");
    let (ring, gathered, both) = (of("ring"), of("all-gather"), of("hierarchical"));
    // Gathered keys and values are sent in the same time, and nothing hides it.
    assert!((seconds(&gathered) / seconds(&ring) - 2.0).abs() < 0.01);
    assert!(seconds(&both) < seconds(&ring));
    let assumed = |told: &Value| told["assumptions"].to_string();
    assert!(assumed(&ring).contains("passes keys and values around a ring (ring)"));
    assert!(assumed(&gathered).contains("gathers keys and values before attention (all-gather)"));
    assert!(assumed(&both).contains("exchanges heads over 8 ranks and passes keys and values between 2"));
    // Eight heads of keys and values cannot be exchanged over 16 ranks.
    let call =
        ["estimate", "llama-3.1-8b", "--devices", "64", "--parallel", "cp=16", "--set", "context_style=all-to-all"];
    assert!(refusal(&call).contains("context_style=all-to-all needs cp to divide the heads of a rank; cp=16, heads 8"));
}
