//! `plantui import`: what engines run today, read back into workloads and plans.

use serde_json::Value;

use super::{Folder, argument, json, plantui, refusal, stdout};

/// A job script as people write them: Llama-3-8B on 16 devices.
pub(super) const SCRIPT: &str = "\
#!/bin/bash
#SBATCH --nodes=2 --gpus-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=2
TP=2
PP=${PP:-4}
MODEL_ARGS=(
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear
    --position-embedding-type rope --untie-embeddings-and-output-weights
    --seq-length 4096 --max-position-embeddings 8192 --vocab-size 128256
)
TRAINING_ARGS=(--micro-batch-size 1 --global-batch-size 64 --bf16 # --fp16
    --use-distributed-optimizer --sequence-parallel
    --recompute-granularity full --recompute-method block --recompute-num-layers 2)
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} \\
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
";

fn stages(document: &Value) -> Vec<Value> {
    let parts = document["stages"].as_array().expect("a plan has stages").iter();
    parts
        .map(|stage| {
            serde_json::json!([
                stage["nodes"],
                stage["data_parallel"],
                stage["tensor_parallel"],
                stage["devices"],
                stage["choices"]
            ])
        })
        .collect()
}

#[test]
fn a_megatron_script_becomes_a_workload_and_a_plan_that_compare_takes() {
    let folder = Folder::new();
    let script = folder.file("train.sh", SCRIPT);
    let (workload, plan) = (argument(&folder.path("model.json")), argument(&folder.path("today.json")));
    let text = stdout(&["import", &script, "--hardware", "h100", "--workload", &workload, "--plan", &plan], 0);
    assert!(text.contains("Megatron-LM arguments, 16 devices of 4 x 2 x 2"), "{text}");
    assert!(text.contains("64 microbatches of 1, a batch of 64; the first 2 of every stage recompute"), "{text}");
    assert!(text.contains("next: plantui compare"), "{text}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
    assert_eq!(document["stages"].as_array().unwrap().len(), 4);
    assert_eq!(document["limits"]["microbatches"], 64);
    let choices = document["stages"][1]["choices"].as_object().unwrap();
    let again = choices.values().filter(|choice| choice.as_str().unwrap().contains("recomp")).count();
    assert_eq!((choices.len(), again), (8, 2));
    let recipe = &document["workload"]["recipe"];
    assert_eq!((&recipe["sequence_length"], &recipe["optimizer_shards"]), (&4096.into(), &2.into()));
    stdout(&["check", &workload, &plan], 0);
    let compared = json(&["compare", &workload, "--plan", &plan, "--planner", "joint", "--json"], 0);
    let entries = compared["entries"].as_array().unwrap();
    let time = |entry: &Value| entry["iteration_s"].as_f64().unwrap();
    let (ours, theirs): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| entry["id"] == "joint");
    assert!(time(ours[0]) <= time(theirs[0]), "the planner is no worse than what runs today");
    // The better one goes back as arguments.
    let better = argument(&folder.path("better.json"));
    stdout(&["plan", &workload, "--planner", "joint", "--set", "engine=megatron", "--json", "--output", &better], 0);
    assert!(stdout(&["export", &better, "--to", "megatron"], 0).contains("--num-layers 32"));
}

#[test]
fn what_export_writes_is_read_back_as_the_same_plan() {
    let folder = Folder::new();
    let model = argument(&folder.path("model.json"));
    let generate =
        "generate llama-3-8b --hardware h100 --devices 16 --microbatches 64 --state-bytes distributed:4 --output";
    stdout(&[&generate.split(' ').collect::<Vec<_>>()[..], &[&model]].concat(), 0);
    for (engine, memory) in [
        ("megatron", "60GB"),
        ("megatron", "30GB"),
        ("deepspeed", "60GB"),
        ("deepspeed", "30GB"),
        ("torchtitan", "60GB"),
        ("torch", "60GB"),
        ("torch", "30GB"),
        ("megatron-bridge", "30GB"),
        ("galvatron", "60GB"),
        ("galvatron", "30GB"),
    ] {
        let plan = argument(&folder.path(&format!("{engine}-{memory}.json")));
        let set = format!("engine={}", engine.trim_end_matches("-bridge"));
        let call =
            ["plan", &model, "--planner", "joint", "--set", &set, "--memory", memory, "--json", "--output", &plan];
        stdout(&call, 0);
        let written = stdout(&["export", &plan, "--to", engine, "--exact"], 0);
        let file = folder.file(&format!("{engine}-{memory}.txt"), &written);
        let first: Value = serde_json::from_str(&std::fs::read_to_string(&plan).unwrap()).unwrap();
        let devices = stages(&first).iter().map(|stage| stage[3].as_array().unwrap().len()).sum::<usize>().to_string();
        let back = json(&["import", &file, "--for", &model, "--devices", &devices, "--json"], 0);
        assert_eq!(stages(&back), stages(&first), "{engine} {memory}\n{written}");
        assert_eq!(back["limits"]["microbatches"], first["limits"]["microbatches"], "{engine}");
    }
}

#[test]
fn a_workload_made_from_exported_arguments_is_the_one_they_came_from() {
    let folder = Folder::new();
    let (model, plan) = (argument(&folder.path("model.json")), argument(&folder.path("plan.json")));
    let generate = "generate llama-3-8b --hardware h100 --devices 16 --microbatches 64 --output";
    stdout(&[&generate.split(' ').collect::<Vec<_>>()[..], &[&model]].concat(), 0);
    stdout(&["plan", &model, "--planner", "joint", "--set", "engine=megatron", "--json", "--output", &plan], 0);
    let script = folder.file("again.sh", stdout(&["export", &plan, "--to", "megatron"], 0));
    let again = argument(&folder.path("again.json"));
    stdout(&["import", &script, "--hardware", "h100", "--workload", &again], 0);
    let nodes =
        |path: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap()["nodes"].clone();
    assert_eq!(nodes(&again), nodes(&model));
}

#[test]
fn logs_jobs_and_configurations_of_other_engines_are_read() {
    let folder = Folder::new();
    let log = folder.file(
        "run.log",
        "[rank0] using world size: 8, data-parallel size: 2\n------------------------ arguments ------------------------\n  \
         hidden_size ..................................... 1024\n  num_layers ...................................... 24\n  \
         num_attention_heads ............................. 16\n  padded_vocab_size ............................... 50304\n  \
         seq_length ...................................... 1024\n  max_position_embeddings ......................... 1024\n  \
         tensor_model_parallel_size ...................... 2\n  pipeline_model_parallel_size .................... 2\n  \
         world_size ...................................... 8\n  micro_batch_size ................................ 2\n  \
         global_batch_size ............................... 32\n  bf16 ............................................ True\n  \
         swiglu .......................................... False\n-------------------- end of arguments ---------------------\n",
    );
    let text = stdout(&["import", &log], 0);
    assert!(text.contains("8 devices of 2 x 2 x 2") && text.contains("16 microbatches of 2, a batch of 32"), "{text}");
    let toml = folder.file(
        "job.toml",
        "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\nseq_len = 2048\n[parallelism]\n\
         pipeline_parallel_degree = 4\ntensor_parallel_degree = 2\ndata_parallel_shard_degree = 2\n\
         pipeline_parallel_microbatch_size = 1\n[activation_checkpoint]\nmode = \"full\"\n",
    );
    let text = stdout(&["import", &toml, "--hardware", "h100"], 0);
    assert!(text.contains("a torchtitan job, 16 devices of 4 x 2 x 2"), "{text}");
    assert!(text.contains("16 microbatches of 1, a batch of 16; all layers recompute"), "{text}");
    let zero = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#;
    let zero = folder.file("ds.json", zero);
    let text = stdout(&["import", &zero, "--model", "llama-3-8b", "--devices", "8"], 0);
    assert!(text.contains("a DeepSpeed configuration, 8 devices of 1 x 8 x 1") && text.contains("ZeRO 2, 3"), "{text}");
    let accelerate = folder.file(
        "accelerate.yaml",
        "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  megatron_lm_tp_degree: 2\n  megatron_lm_pp_degree: 2\n  \
         megatron_lm_num_micro_batches: 8\nmixed_precision: bf16\nnum_processes: 8\n",
    );
    let text = stdout(&["import", &accelerate, "--model", "llama-3-8b"], 0);
    assert!(text.contains("a Hugging Face training configuration, 8 devices of 2 x 2 x 2"), "{text}");
    assert!(text.contains("16 microbatches of 1"), "{text}");
}

#[test]
fn what_cannot_be_read_is_one_sentence_with_the_repair() {
    let folder = Folder::new();
    for content in ["", "\0\u{1}\u{2}"] {
        let file = folder.file("job.sh", content);
        assert!(refusal(&["import", &file]).contains("give the script, log or configuration of a job"), "{content:?}");
        let calibrated = refusal(&["calibrate", "llama-3-8b", "--runs", &file]);
        assert!(calibrated.contains("give a CSV of measured runs"), "{content:?}: {calibrated}");
    }
    for (content, more, part) in [
        ("echo hello", &[][..], "--from"),
        ("--tensor-model-parallel-size $WHAT --num-layers 8", &[], "`$WHAT`"),
        ("--tensor-model-parallel-size 2 --context-parallel-size 2", &[], "plantui estimate"),
        ("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2", &["--devices", "4"], "--model"),
        ("--pipeline-model-parallel-size 5", &["--model", "llama-3-8b", "--devices", "5"], "do not divide 32 layers"),
        ("--tensor-model-parallel-size 2", &["--devices", "7"], "7 devices"),
        (
            "{\"pp_deg\": 2, \"pp_division\": \"8,9\", \"chunks\": 2, \"global_bsz\": 4}",
            &["--model", "llama-3-8b", "--devices", "2"],
            "17 layers",
        ),
    ] {
        let file = folder.file("job.sh", content);
        let error = refusal(&[&["import", file.as_str()], more].concat());
        assert!(error.contains(part), "{content}: {error}");
    }
    let file = folder.file("job.sh", SCRIPT);
    let taken = folder.file("taken.json", "{}");
    assert!(refusal(&["import", &file, "--plan", &taken]).contains("--force"));
    assert!(refusal(&["import", &file, "--hardware", "abacus"]).contains("a100-80"));
    plantui().args(["import", "-", "--hardware", "h100"]).write_stdin(SCRIPT).assert().code(0);
}
