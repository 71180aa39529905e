//! Models to be trained on the command line: planned, checked, written, exported, refused.

use serde_json::Value;

use crate::{Folder, TINY, argument, json, plantui, refusal, stdout};

const MODEL: &str = "llama-3.2-1b";
const ASKED: [&str; 6] = ["--hardware", "h100", "--devices", "8", "--global-batch", "16"];

fn plan_of(folder: &Folder, more: &[&str]) -> (String, Value) {
    let document = json(&[&["plan", MODEL, "--json"], &ASKED[..], more].concat(), 0);
    (folder.file("plan.json", document.to_string()), document)
}

#[test]
fn a_published_name_is_planned_checked_simulated_and_exported() {
    let folder = Folder::new();
    let (plan, document) = plan_of(&folder, &["--sequence-length", "2048", "--set", "tp_overlap=false"]);
    assert_eq!((&document["planner"]["id"], &document["status"]), (&"joint".into(), &"optimal".into()));
    assert_eq!(document["workload"]["training"]["sequence_length"], 2048);
    assert_eq!(document["workload"]["training"]["settings"]["tp_overlap"], "false");
    let parts = &document["configuration"];
    let devices: u64 = ["tp", "pp", "cp", "dp"].iter().map(|name| parts[*name].as_u64().unwrap()).product();
    assert_eq!(devices, 8);
    let all = document["configurations"].as_array().unwrap();
    assert!(all.len() >= 10 && all[0]["iteration_s"] == document["objective"]["value"], "{all:?}");
    // The plan says how it was made, so that nothing has to be repeated.
    let text = stdout(&["check", MODEL, &plan], 0);
    assert!(text.contains("tokens/s per device") && text.contains("no published run"), "{text}");
    let simulated = json(&["simulate", MODEL, &plan, "--json"], 0);
    let (a, b) = (simulated["iteration_s"].as_f64().unwrap(), document["objective"]["value"].as_f64().unwrap());
    assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    let flags = stdout(&["export", &plan, "--workload", MODEL, "--to", "megatron"], 0);
    for flag in ["--tensor-model-parallel-size", "--use-distributed-optimizer", "--num-layers 16", "--seq-length 2048"]
    {
        assert!(flags.contains(flag), "{flag}: {flags}");
    }
    assert!(!flags.contains("--tp-comm-overlap"), "{flags}");
    for format in ["svg", "csv", "dot", "chrome-trace"] {
        assert!(!stdout(&["export", &plan, "--to", format], 0).is_empty(), "{format}");
    }
    // Its configuration is of one schedule: another is no matter of the export.
    let error = refusal(&["export", &plan, "--to", "megatron", "--schedule", "gpipe"]);
    assert!(error.contains("the planned layout runs"), "{error}");
    let bridge = stdout(&["export", &plan, "--to", "megatron-bridge"], 0);
    for set in ["model.tensor_model_parallel_size = ", "config.train.global_batch_size = 16", "model.seq_length = 2048"]
    {
        assert!(bridge.contains(set), "{set}: {bridge}");
    }
    assert!(!bridge.contains("CommOverlapConfig"), "{bridge}");
    let zero = stdout(&["export", &plan, "--to", "deepspeed"], 0);
    for line in ["\"zero_optimization\": {\"stage\": 1}", "#   #SBATCH --nodes=1", "GRADIENT_CHECKPOINTING = False"] {
        assert!(zero.contains(line), "{line}: {zero}");
    }
    // What the engine's programs do not run is said with its cost, or refused.
    assert!(zero.contains("# not expressed: attention=flash (its programs: flash2)"), "{zero}");
    let exact = plantui().args(["export", &plan, "--to", "deepspeed", "--exact"]).assert().code(1).get_output().clone();
    assert!(String::from_utf8_lossy(&exact.stderr).contains("DeepSpeed cannot run this plan"), "{exact:?}");
}

#[test]
fn the_largest_clusters_are_planned_checked_and_exported() {
    let folder = Folder::new();
    let asked = ["--hardware", "h100", "--devices", "131072", "--global-batch", "16384"];
    let document = json(&[&["plan", "llama-3.1-405b", "--json"], &asked[..]].concat(), 0);
    let of_stage = |stage: &Value| stage["devices"].as_array().unwrap().len();
    assert_eq!(document["stages"].as_array().unwrap().iter().map(of_stage).sum::<usize>(), 131_072);
    let plan = folder.file("plan.json", document.to_string());
    assert!(stdout(&["check", "llama-3.1-405b", &plan], 0).starts_with("valid"));
    assert!(stdout(&["export", &plan, "--to", "megatron"], 0).contains("--tensor-model-parallel-size 8"));
}

#[test]
fn an_engine_refuses_axes_that_it_lacks_with_the_options_that_avoid_them() {
    let folder = Folder::new();
    let (plan, _) = plan_of(&folder, &["--set", "stages=2", "--set", "tensor_degree=2", "--set", "context_degree=1"]);
    for (engine, lacking) in [
        ("accelerate", "it has no pipeline, and the plan has 2 stages (--set stages=1)"),
        ("maxtext", "its pipeline runs all forward passes first"),
    ] {
        let error = plantui().args(["export", &plan, "--to", engine]).assert().code(1).get_output().stderr.clone();
        assert!(String::from_utf8_lossy(&error).contains(lacking), "{engine}: {}", String::from_utf8_lossy(&error));
    }
    for engine in ["deepspeed", "torch", "torch-schedule", "galvatron", "vllm"] {
        assert!(!stdout(&["export", &plan, "--to", engine], 0).is_empty(), "{engine}");
    }
}

#[test]
fn torchtitan_takes_interleaved_zb_by_name_and_others_as_a_list() {
    let folder = Folder::new();
    let asked = ["--stack", "torchtitan", "--set", "schedule=interleaved-zb", "--set", "stages=2"];
    let (plan, document) = plan_of(&folder, &asked);
    let own = &document["configuration"];
    assert!(own["vp"].as_u64().is_some_and(|parts| parts > 1) && own["schedule"] == "interleaved-zb", "{own}");
    stdout(&["check", MODEL, &plan], 0);
    assert_eq!(json(&["simulate", MODEL, &plan, "--json"], 0)["schedule"], "interleaved-zb");
    let text = stdout(&["export", &plan, "--to", "torchtitan"], 0);
    assert!(text.contains("\"InterleavedZeroBubble\"") && !text.contains("schedule_csv"), "{text}");
    // The job that this file describes is the plan.
    let job = folder.file("planned.py", &text);
    let read = json(&["import", &job, MODEL, "--hardware", "h100", "--json"], 0);
    assert_eq!(read["read"]["schedule"], "interleaved-zb", "{read}");
    // A schedule without a name is read from a file.
    let text = stdout(&["export", &plan, "--to", "torchtitan", "--schedule", "combined-1f1b"], 0);
    for part in
        ["\"PipelineScheduleMulti\"", "pipeline_parallel_schedule_csv = \"schedule.csv\"", "--to torch-schedule"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let list = stdout(&["export", &plan, "--to", "torch-schedule", "--schedule", "combined-1f1b"], 0);
    let csv = folder.file("own.csv", list);
    assert!(stdout(&["export", &plan, "--to", "torchtitan", "--schedule", &csv], 0).contains("schedule.csv"));
    // Sequences are not cut, and stages stay where the plan has them.
    for (schedule, reason) in [("seq1f1b", "passes whole sequences"), ("zb-h1", "on each rank, dealt out in turn")] {
        let refused = refusal(&["export", &plan, "--to", "torchtitan", "--schedule", schedule]);
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn torchtitan_is_told_every_part_of_the_model() {
    let folder = Folder::new();
    let asked = ["--stack", "torchtitan", "--set", "schedule=zb-v", "--set", "stages=2", "--memory", "20GiB"];
    let (plan, document) = plan_of(&folder, &asked);
    let own = &document["configuration"];
    assert_eq!((&own["schedule"], &own["pp"], &own["vp"]), (&"zb-v".into(), &2.into(), &2.into()), "{own}");
    assert_eq!(document["schedule"], "zb-v");
    stdout(&["check", MODEL, &plan], 0);
    let simulated = json(&["simulate", MODEL, &plan, "--json"], 0);
    assert_eq!(simulated["schedule"], "zb-v");
    let text = stdout(&["export", &plan, "--to", "torchtitan"], 0);
    for set in ["\"ZBVZeroBubble\"", "pipeline_parallel_degree = 2", "data_parallel_shard_degree = ", "\"layers\": 16"]
    {
        assert!(text.contains(set), "{set}: {text}");
    }
    // Four parts in the order of the model, with its two ends.
    let parts: Vec<&str> = text.lines().filter(|line| line.starts_with("    [")).collect();
    assert_eq!(parts.len(), 4, "{text}");
    assert!(
        parts[0].starts_with("    [\"tok_embeddings\", \"layers.0\"") && parts[3].contains("\"layers.15\""),
        "{text}"
    );
    assert!(parts[3].ends_with("\"norm\", \"lm_head\"],"), "{text}");
    // Megatron-LM runs no such schedule.
    let refused = refusal(&["export", &plan, "--to", "megatron"]);
    assert!(refused.contains("cannot run the schedule zb-v"), "{refused}");
    let none = plantui().args(["plan", MODEL, "--set", "schedule=zb-h1", "--stack", "torchtitan"]).assert().code(1);
    let told = String::from_utf8_lossy(&none.get_output().stdout).into_owned()
        + &String::from_utf8_lossy(&none.get_output().stderr);
    assert!(told.contains("torchtitan runs zb-v"), "{told}");
    // A configuration by hand, some of whose layers recompute: all of them do there, at a price.
    let mut some = document.clone();
    some["limits"]["memory_bytes"] = 8e10.into();
    some["configuration"] = serde_json::json!({"tp": 1, "pp": 2, "dp": 4, "recompute": "full:3"});
    let layer = |node: u64| if (1..=3).contains(&((node + 7) % 8 + 1)) { "activation recomp" } else { "vanilla" };
    let stage = |from: u64, to: u64| {
        let choices: serde_json::Map<String, Value> = (from..to)
            .map(|node| (node.to_string(), if node == 0 || node == 17 { "vanilla" } else { layer(node) }.into()))
            .collect();
        serde_json::json!({"nodes": (from..to).collect::<Vec<_>>(), "data_parallel": 4, "tensor_parallel": 1, "choices": choices})
    };
    some["stages"] = serde_json::json!([stage(0, 9), stage(9, 18)]);
    for field in ["schedule", "objective", "lower_bound", "simulation", "configurations", "virtual_stages", "warmup"] {
        some.as_object_mut().unwrap().remove(field);
    }
    let some = folder.file("some.json", some.to_string());
    let text = stdout(&["export", &some, "--to", "torchtitan"], 0);
    assert!(
        text.contains("# not expressed: recompute full:3 (its programs: full)") && text.contains("FullAC.Config()"),
        "{text}"
    );
    let exact = plantui().args(["export", &some, "--to", "torchtitan", "--exact"]).assert().failure();
    assert!(String::from_utf8_lossy(&exact.get_output().stderr).contains("cannot run this plan"));
}

#[test]
fn the_report_shows_what_a_training_engineer_asks() {
    let text = stdout(&[&["plan", MODEL], &ASKED[..]].concat(), 0);
    for told in [
        "tokens/s per device",
        "TFLOP/s",
        "MFU",
        "no published run is comparable: 1.24 G parameters",
        "in flight",
        "of 80 GiB",
        "slower",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let assumed = stdout(&["plan", MODEL], 0);
    assert!(
        assumed.contains("devices is assumed to be 64") && assumed.contains("batch is assumed to be 128"),
        "{assumed}"
    );
}

#[test]
fn a_model_is_generated_as_training_and_read_again() {
    let folder = Folder::new();
    let made = ["generate", MODEL, "--as", "training", "--hardware", "h100", "--devices", "8", "--global-batch", "16"];
    let text = stdout(&made, 0);
    assert!(text.contains("\"plantui.training/1\"") && text.contains("docs/src/background/truth.md"), "{text}");
    let file = folder.file("model.json", text);
    let own = json(&["plan", &file, "--json"], 0);
    let (_, named) = plan_of(&folder, &[]);
    assert_eq!(own["objective"], named["objective"]);
    assert_eq!(own["configuration"], named["configuration"]);
    let refused = refusal(&["generate", MODEL, "--as", "training", "--mfu", "0.4"]);
    assert!(refused.contains("--as: training takes --stack, --hardware"), "{refused}");
    let refused = refusal(&["generate", "bert-32", "--global-batch", "4"]);
    assert!(refused.contains("belongs to --as training"), "{refused}");
}

/// Eight devices of which each two attain 5 GB/s.
fn slow_box(folder: &Folder) -> String {
    let row = |from: usize| (0..8).map(|to| if from == to { "0" } else { "5" }).collect::<Vec<_>>().join(",") + "\n";
    folder.file("slow.csv", (0..8).map(row).collect::<String>())
}

#[test]
fn memory_and_software_change_the_plan_and_wrong_words_are_refused() {
    let folder = Folder::new();
    let (_, usual) = plan_of(&folder, &[]);
    let (_, tight) = plan_of(&folder, &["--memory", "12GiB", "--reserve", "1GiB"]);
    assert!(tight["objective"]["value"].as_f64() > usual["objective"]["value"].as_f64());
    let (_, wired) = plan_of(&folder, &["--topology", &slow_box(&folder)]);
    assert!(wired["objective"]["value"].as_f64() > usual["objective"]["value"].as_f64());
    for (arguments, told) in [
        (vec!["plan", TINY, "--hardware", "h100"], "--hardware is for models to be trained"),
        (vec!["plan", MODEL, "--hardware", "v200"], "--hardware: there is no hardware `v200`"),
        (
            vec!["estimate", MODEL, "--hardware", "v100", "--global-batch", "8", "--precision", "bf16"],
            "no products in bf16",
        ),
        (vec!["plan", MODEL, "--precision", "int3"], "--precision: is `int3`"),
        (vec!["plan", MODEL, "--set", "tp_overlap=7"], "tp_overlap is `7`, must be true or false"),
        (vec!["plan", "llama-3-71b"], "llama-3-71b"),
        (vec!["plan", MODEL, "--planner", "piper"], "Piper cannot plan"),
    ] {
        let error = refusal(&arguments);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn a_plan_says_the_links_and_constants_it_was_made_for() {
    let folder = Folder::new();
    let same = |document: &Value, arguments: &[&str]| {
        let checked = json(&[&["check"], arguments, &["--json"]].concat(), 0);
        assert_eq!((&checked["valid"], &checked["claim"]["holds"]), (&true.into(), &true.into()), "{checked}");
        let simulated = json(&[&["simulate"], arguments, &["--json"]].concat(), 0);
        let (a, b) = (simulated["iteration_s"].as_f64().unwrap(), document["objective"]["value"].as_f64().unwrap());
        assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    };
    // The links of a topology.
    let (plan, document) = plan_of(&folder, &["--topology", &slow_box(&folder)]);
    let told = &document["workload"]["training"];
    assert!(told["figures"]["outer_link"].as_f64().unwrap() < 10e9, "{told}");
    assert!(told["remarks"][0].as_str().unwrap().contains("slow: 8 devices to a machine"), "{told}");
    same(&document, &[MODEL, &plan]);
    assert!(stdout(&["export", &plan, "--to", "megatron"], 0).contains("--tensor-model-parallel-size"));
    // Asked for by a flag, other links count, and the plan is worth something else.
    let other = json(&["check", MODEL, &plan, "--topology", "dgx-h100", "--json"], 0);
    assert!(other["objective"]["value"].as_f64() < document["objective"]["value"].as_f64(), "{other}");
    // Figures and constants of the model's own file.
    let made = ["generate", MODEL, "--as", "training", "--hardware", "h100"];
    let text = stdout(&made, 0).replace("\"watts\": 700.0", "\"watts\": 500.0");
    let mut own: Value = serde_json::from_str(&text).unwrap();
    own["constants"]["gemm_16"] = 0.6.into();
    let model = folder.file("model.json", own.to_string());
    let document = json(&["plan", &model, "--devices", "8", "--global-batch", "16", "--json"], 0);
    let told = &document["workload"]["training"];
    assert_eq!((&told["figures"]["watts"], &told["constants"]["gemm_16"]), (&500.0.into(), &0.6.into()), "{told}");
    let plan = folder.file("own.json", document.to_string());
    same(&document, &[&model, &plan]);
    same(&document, &[MODEL, &plan]);
    for (field, value, wrong) in [("figures", 0.5, "watts"), ("constants", -1.0, "gemm_16")] {
        let mut forged = document.clone();
        forged["workload"]["training"][field][wrong] = value.into();
        let forged = folder.file("forged.json", forged.to_string());
        let error = refusal(&["check", &model, &forged]);
        assert!(error.contains(&format!("workload.training.{field}.{wrong}")), "{error}");
    }
}

#[test]
fn other_commands_take_models_too() {
    let asked = &ASKED[..];
    let explained = stdout(&[&["explain", MODEL], asked].concat(), 0);
    assert!(explained.contains("devices") && explained.contains("memory"), "{explained}");
    let compared = stdout(&[&["compare", MODEL], asked].concat(), 0);
    assert!(compared.contains("Joint"), "{compared}");
    let swept = stdout(&["sweep", MODEL, "--devices", "4,8", "--global-batch", "16", "--csv"], 0);
    assert_eq!(swept.lines().filter(|line| line.contains("joint")).count(), 2, "{swept}");
    // Lengths of sequences are an axis too.
    let lengths = ["--sequence-length", "1024,4096", "--devices", "4", "--global-batch", "16"];
    let swept = stdout(&[&["sweep", MODEL, "--csv"], &lengths[..]].concat(), 0);
    for name in ["1024 tokens", "4096 tokens"] {
        assert_eq!(swept.lines().filter(|line| line.contains(name)).count(), 1, "{swept}");
    }
    // So are the machines that it is trained on.
    let machines =
        ["--topology", "2xdgx-h100,2xdgx-h100+eth-25g", "--global-batch", "16", "--memory", "80GiB", "--json"];
    let swept = json(&[&["sweep", MODEL], &machines[..]].concat(), 0);
    let values: Vec<f64> =
        swept["points"].as_array().unwrap().iter().map(|point| point["objective"]["value"].as_f64().unwrap()).collect();
    assert!(values.len() == 2 && values[0] < values[1], "{swept}");
    let error = refusal(&[&["plan", MODEL], &lengths[..]].concat());
    assert!(error.contains("--sequence-length has several values, which only `sweep` accepts"), "{error}");
    let linted = stdout(&["lint", MODEL], 0);
    assert!(!linted.is_empty());
}

#[test]
fn a_profile_takes_its_times_from_real_training() {
    let folder = Folder::new();
    let made = ["generate", MODEL, "--stack", "megatron-2025", "--micro-batch", "2", "--sequence-length", "2048"];
    let text = stdout(&made, 0);
    let profile: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&profile["recipe"]["micro_batch"], &profile["recipe"]["sequence_length"]), (&2.into(), &2048.into()));
    assert_eq!(profile["nodes"].as_array().unwrap().len(), 18);
    let time = |degree: &str| profile["nodes"][1]["TMPCs"][degree][0]["timePerSample"].as_f64().unwrap();
    assert!(time("1") > time("2") && time("2") > time("1") / 2.0, "{} {}", time("1"), time("2"));
    let file = folder.file("profile.json", text);
    let planned = json(&["plan", &file, "--json"], 0);
    assert!(planned["objective"]["value"].as_f64().unwrap() > 0.0);
    // An encoder sends no mask, so that its stages are a chain.
    let bert: Value = serde_json::from_str(&stdout(&["generate", "bert-32", "--stack", "plain"], 0)).unwrap();
    assert_eq!(bert["edges"].as_array().unwrap().len() + 1, bert["nodes"].as_array().unwrap().len());
    // The published constants under their own name are today's file.
    let made = |more: &[&str]| stdout(&[&["generate", "bert-32", "--memory", "8GiB"], more].concat(), 0);
    assert_eq!(made(&["--stack", "piper-2021"]), include_str!("../../inputs/bert32a100.json"));
    for (arguments, told) in [
        (vec!["generate", MODEL, "--stack", "jax"], "--stack: there is no stack `jax`"),
        (vec!["generate", MODEL, "--stack", "plain", "--mfu", "0.5"], "--stack: the stacks of real training take"),
        (vec!["generate", MODEL, "--stack", "plain", "--tensor-degrees", "1,3"], "--tensor-degrees: tp=3"),
    ] {
        let error = refusal(&arguments);
        assert!(error.contains(told), "{error}");
    }
}

/// What a generated profile's plan takes in the simulator is what the model of training says of that configuration.
#[test]
fn a_generated_profile_is_simulated_as_its_model_is_estimated() {
    let folder = Folder::new();
    let profile = folder.file("profile.json", stdout(&["generate", "llama-3.1-8b", "--hardware", "h100"], 0));
    for (tensor, stages, replicas) in [(2, 4, 1), (1, 4, 2), (8, 1, 1), (2, 2, 2), (4, 4, 1)] {
        let (devices, layers) = (tensor * stages * replicas, 32 / stages);
        let nodes = |stage: i32| {
            let first = if stage == 0 { 0 } else { 1 + stage * layers };
            (first..1 + (stage + 1) * layers + i32::from(stage + 1 == stages)).collect::<Vec<i32>>()
        };
        let stage = |stage| {
            let choices: serde_json::Map<String, Value> =
                nodes(stage).iter().map(|node| (node.to_string(), "vanilla".into())).collect();
            serde_json::json!({"nodes": nodes(stage), "data_parallel": replicas, "tensor_parallel": tensor,
                "choices": choices})
        };
        let plan =
            serde_json::json!({"schema": "plantui.plan/1", "stages": (0..stages).map(stage).collect::<Vec<_>>()});
        let plan = folder.file(&format!("{tensor}-{stages}-{replicas}.json"), plan.to_string());
        let devices = devices.to_string();
        let limits = ["--devices", &devices, "--microbatches", "64", "--memory", "200GiB", "--json"];
        let simulated = json(&[&["simulate", &profile, &plan], &limits[..]].concat(), 0);
        let parallel = format!("tp={tensor},pp={stages}");
        let asked = ["--hardware", "h100", "--devices", &devices, "--parallel", &parallel, "--global-batch", "64"];
        let estimated = json(&[&["estimate", "llama-3.1-8b", "--json"], &asked[..]].concat(), 0);
        let [simulated, estimated] =
            [&simulated["iteration_s"], &estimated["iteration_s"]].map(|seconds| seconds.as_f64().unwrap());
        assert!((simulated / estimated - 1.0).abs() < 0.025, "{parallel}: {simulated} {estimated}");
    }
}

#[test]
fn a_plan_carries_its_prediction_and_a_forged_one_is_told() {
    let folder = Folder::new();
    let mut plan = json(&[&["plan", MODEL, "--json"], &ASKED[..]].concat(), 0);
    let prediction = &plan["prediction"];
    let tokens = prediction["tokens_per_s"].as_f64().unwrap();
    assert!(tokens > 0.0 && (0.0..1.0).contains(&prediction["mfu"].as_f64().unwrap()), "{prediction}");
    // A model of 1.2 G parameters is smaller than all that were published.
    assert!(prediction["trust"].is_null() && prediction["differs"][0].as_str().unwrap().contains("parameters"));
    assert_eq!(prediction["fits"], "yes");
    let file = folder.file("plan.json", plan.to_string());
    stdout(&["check", MODEL, &file], 0);
    plan["prediction"]["mfu"] = 0.99.into();
    let file = folder.file("forged.json", plan.to_string());
    let told = stdout(&["check", MODEL, &file], 1);
    assert!(told.contains("prediction: mfu is 0.99, recomputed"), "{told}");
}

#[test]
fn options_that_mean_nothing_for_a_model_are_refused() {
    for setting in ["schedule=gpipe", "space=engine", "engine=deepspeed"] {
        let error = refusal(&[&["plan", MODEL, "--set", setting], &ASKED[..]].concat());
        let name = setting.split('=').next().unwrap();
        assert!(error.contains(&format!("option {name} of planner joint does not apply to a model")), "{error}");
    }
    let explained = stdout(&[&["explain", MODEL], &ASKED[..]].concat(), 0);
    assert!(!explained.contains("schedule gpipe") && !explained.contains("microbatches"), "{explained}");
}

#[test]
fn a_configuration_is_mapped_to_a_topology_and_simulated_on_its_routes() {
    let folder = Folder::new();
    // Four stages of two shards on eight devices, of which only some pairs have a link of their own.
    let asked = ["--hardware", "v100", "--set", "stages=4", "--set", "data_parallel=false", "--memory", "16GB"];
    let document = json(
        &[&["plan", MODEL, "--devices", "8", "--global-batch", "16", "--reserve", "1GiB", "--json"], &asked[..]]
            .concat(),
        0,
    );
    let plan = folder.file("plan.json", document.to_string());
    let on = |method: &str| json(&["map", MODEL, &plan, "--topology", "dgx-1", "--method", method, "--json"], 0);
    let (identity, mapped) = (on("identity"), on("search"));
    let value = |document: &Value| document["objective"]["value"].as_f64().unwrap();
    let mut devices: Vec<u64> =
        mapped["mapping"]["devices"].as_array().unwrap().iter().map(|device| device.as_u64().unwrap()).collect();
    devices.sort_unstable();
    assert_eq!(devices, (0..8).collect::<Vec<u64>>());
    let communication = |document: &Value| document["mapping"]["communication_s"].as_f64().unwrap();
    assert!(communication(&mapped) <= communication(&identity), "{} {}", mapped["mapping"], identity["mapping"]);
    // What an iteration takes on the routes is what the plan is worth there, and `check` finds it again.
    for document in [&identity, &mapped] {
        let seconds = document["mapping"]["iteration_s"].as_f64().unwrap();
        assert!((seconds / value(document) - 1.0).abs() < 1e-9, "{document}");
        let file = folder.file("mapped.json", document.to_string());
        stdout(&["check", MODEL, &file], 0);
    }
    // Volta's links are slower than what the configuration was made for.
    assert!(value(&identity) > document["objective"]["value"].as_f64().unwrap());
    // On machines as the accelerator's data sheet has them nothing changes but for which devices share what.
    let h100 = json(&["plan", "llama-3-70b", "--devices", "64", "--global-batch", "128", "--json"], 0);
    let plan = folder.file("h100.json", h100.to_string());
    let same = json(&["map", "llama-3-70b", &plan, "--topology", "8xdgx-h100", "--method", "identity", "--json"], 0);
    assert!((value(&same) / value(&h100) - 1.0).abs() < 0.02, "{} {}", value(&same), value(&h100));
}

#[test]
fn a_plan_on_a_topology_is_worth_what_its_routes_attain() {
    let folder = Folder::new();
    // Of a DGX-1's pairs some have no NVLink: tensor groups on those that have are faster than the slowest pair says.
    let asked = ["--topology", "2xdgx-1", "--global-batch", "16", "--memory", "16GB", "--reserve", "1GiB", "--json"];
    let document = json(&[&["plan", MODEL], &asked[..]].concat(), 0);
    let seconds = document["objective"]["value"].as_f64().unwrap();
    let mapped = document["mapping"]["iteration_s"].as_f64().unwrap();
    assert!((seconds / mapped - 1.0).abs() < 1e-9, "{document}");
    let notes = document["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    let notes: Vec<&str> = notes.collect();
    assert!(notes.iter().any(|note| note.contains("groups run at the speed of their routes")), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("mapped to 2xdgx-1: an iteration takes")), "{notes:?}");
    let others: Vec<f64> =
        document["configurations"].as_array().unwrap().iter().map(|c| c["iteration_s"].as_f64().unwrap()).collect();
    assert!(others[0] == seconds && others.iter().all(|other| *other >= seconds), "{others:?}");
    let plan = folder.file("plan.json", document.to_string());
    let checked = json(&["check", MODEL, &plan, "--json"], 0);
    assert_eq!((&checked["valid"], &checked["claim"]["holds"]), (&true.into(), &true.into()), "{checked}");
    let simulated = json(&["simulate", MODEL, &plan, "--json"], 0);
    assert!((simulated["iteration_s"].as_f64().unwrap() / seconds - 1.0).abs() < 1e-6, "{simulated}");
    // Where nothing but the slowest pair is known it takes longer.
    let told = document["workload"]["training"].clone();
    assert!(told["figures"]["inner_link"].as_f64().unwrap() < 20e9, "{told}");
    let plain = json(&["map", MODEL, &plan, "--topology", "2xdgx-1", "--method", "identity", "--json"], 0);
    assert!(plain["objective"]["value"].as_f64().unwrap() >= seconds * (1.0 - 1e-9), "{plain}");
}

#[test]
fn the_zero_stage_is_a_setting_of_plans_too() {
    let plan = |stage: &str| json(&["plan", "llama-3.1-8b", "--devices", "16", "--set", stage, "--json"], 0);
    let settings = |document: &Value| document["workload"]["training"]["settings"].clone();
    assert_eq!(settings(&plan("zero=3"))["fsdp"], "true");
    assert_eq!(settings(&plan("zero=2"))["shard_gradients"], "true");
    assert!(refusal(&["plan", "llama-3.1-8b", "--devices", "16", "--set", "zero=4"]).contains("must be 0, 1, 2 or 3"));
}

#[test]
fn ranks_of_sixteen_devices_are_on_two_machines_as_they_are_launched() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    stdout(&["plan", "llama-3.1-8b", "--devices", "16", "--json", "--output", &plan], 0);
    let ranks = stdout(&["export", &plan, "--to", "rank-file"], 0);
    for machine in
        ["# machine 0: CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7", "# machine 1: CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7"]
    {
        assert!(ranks.contains(machine), "{ranks}");
    }
    assert!(stdout(&["export", &plan, "--to", "megatron"], 0).contains("launch: 16 ranks, 8 on each of 2 machines"));
}

#[test]
fn no_result_replaces_the_workload_that_is_read() {
    let folder = Folder::new();
    let own = argument(&folder.path("own.json"));
    stdout(&["generate", "llama-3.1-8b", "--as", "training", "--output", &own], 0);
    let before = std::fs::read_to_string(&own).unwrap();
    let error = refusal(&["plan", &own, "--json", "--output", &own, "--force"]);
    assert!(error.contains("is read by this command"), "{error}");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), before);
}

#[test]
fn a_pod_holds_whole_machines_and_is_kept() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let model = ["plan", "llama-3.1-8b", "--hardware", "h100", "--devices", "64", "--global-batch", "128"];
    let told = |flags: &[&str]| {
        let output = plantui().args([&model[..], flags].concat()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    let (code, out) = told(&["--fabric", "4:7"]);
    assert!(code == Some(2) && out.contains("has pods of 4 devices, and 8 devices share a machine's links"), "{out}");
    let (code, out) = told(&["--fabric", "16:7", "--output", &plan]);
    assert_eq!(code, Some(0), "{out}");
    for hardware in [&[][..], &["--hardware", "h100"]] {
        let output = plantui().args(["check", "llama-3.1-8b", &plan]).args(hardware).output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && out.contains("devices in several pods of 16"), "{out}");
    }
    let (code, out) = told(&["--fabric", "16:7", "--topology", "8xdgx-h100"]);
    assert!(code == Some(2) && out.contains("--fabric and --topology both state the links"), "{out}");
}
