//! Facts of published jobs, looked up by hand in the engines' repositories, and kinds of text that were misread once.
//!
//! The text of each case is written here from the facts in its table; none is a copy of the published file.

use plantui::jobs::{self, ReadOptions};

/// Facts of a job in a line, as a reader sees them.
fn facts(text: &str, source: &str, given: &[(&str, &str)]) -> String {
    let flags = given.iter().filter(|(name, _)| *name != "model");
    let model = given.iter().find(|(name, _)| *name == "model").map(|(_, name)| published(name));
    let options = ReadOptions {
        flags: flags.map(|(name, value)| ((*name).into(), (*value).into(), format!("--{name}"))).collect(),
        model,
        ..ReadOptions::default()
    };
    let job = match jobs::read(text, source, None, &options) {
        Ok(job) => job,
        Err(error) => return format!("refused: {error}"),
    };
    let fact = |name: &str| job.facts.get(name).map_or("-".to_string(), |fact| fact.value.clone());
    let Some(model) = &job.model else { return "no model".into() };
    let degrees: Vec<String> = ["tp", "pp", "vp", "cp", "ep"]
        .iter()
        .filter(|name| !["-", "1"].contains(&fact(name).as_str()))
        .map(|name| format!("{name}{}", fact(name)))
        .collect();
    let parts = [
        job.format.to_string(),
        format!("{:.2}G", model.value.parameters() as f64 / 1e9),
        format!("n{}", fact("devices")),
        degrees.join(","),
        format!("mbs{}", fact("mbs")),
        format!("gbs{}", fact("global_batch")),
        format!("s{}", fact("sequence_length")),
        fact("precision"),
        fact("recompute"),
        format!("zero{}", fact("zero")),
        fact("adapter"),
    ];
    parts.into_iter().filter(|part| !part.is_empty() && part != "-").collect::<Vec<_>>().join(" ")
}

fn published(name: &str) -> plantui::family::training::Model {
    plantui::family::training::published::find(name).unwrap()
}

/// Published job: where, its name for the reader, what it states, and what it means.
struct Published {
    place: &'static str,
    file: &'static str,
    text: &'static str,
    given: &'static [(&'static str, &'static str)],
    means: &'static str,
}

const PUBLISHED: [Published; 11] = [
    Published {
        place: "NVIDIA/Megatron-LM examples/llama/train_llama3_8b_h100_fp8.sh",
        file: "train.sh",
        text: "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \
               --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128 --swiglu \
               --position-embedding-type rope --untie-embeddings-and-output-weights --disable-bias-linear \
               --vocab-size 128256 --seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 \
               --global-batch-size 128 --bf16 --fp8-format hybrid --fp8-recipe delayed --grad-reduce-in-bf16 \
               --use-distributed-optimizer --attention-backend fused",
        given: &[],
        means: "megatron 8.03G n8 mbs1 gbs128 s8192 fp8 none zero1",
    },
    Published {
        place: "NVIDIA/Megatron-LM examples/mixtral/train_mixtral_8x7b_distributed.sh, on four machines",
        file: "train.sh",
        text: "GPUS_PER_NODE=8\nNNODES=${SLURM_NNODES:-4}\ntorchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES \
               pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 \
               --group-query-attention --num-query-groups 8 --num-experts 8 --moe-router-topk 2 --swiglu \
               --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights \
               --disable-bias-linear --vocab-size 32000 --seq-length 4096 --max-position-embeddings 32768 \
               --micro-batch-size 1 --global-batch-size 256 --bf16 --use-distributed-optimizer \
               --pipeline-model-parallel-size 4 --expert-model-parallel-size 8 --moe-token-dispatcher-type alltoall",
        given: &[],
        means: "megatron 46.70G n32 pp4,ep8 mbs1 gbs256 s4096 bf16 none zero1",
    },
    Published {
        place: "EleutherAI/gpt-neox configs/20B.yml, on 96 A100",
        file: "20B.yml",
        text: "pipe-parallel-size: 4\nmodel-parallel-size: 2\nnum-layers: 44\nhidden-size: 6144\nnum-attention-heads: 64\n\
               seq-length: 2048\nmax-position-embeddings: 2048\npos-emb: rotary\nno-weight-tying: true\n\
               gpt-j-residual: true\nfp16: {enabled: true}\nzero_optimization: {stage: 1}\n\
               train_micro_batch_size_per_gpu: 4\ngradient_accumulation_steps: 32\ncheckpoint-activations: true\n\
               tokenizer_type: HFTokenizer\n",
        given: &[("devices", "96")],
        means: "gpt-neox 20.55G n96 tp2,pp4 mbs4 gbs1536 s2048 fp16 full zero1",
    },
    Published {
        place: "huggingface/smollm pre-training/smollm1/config_smollm1_135M.yaml",
        file: "config.yaml",
        text: "model:\n  dtype: bfloat16\n  model_config: {is_llama_config: true, hidden_size: 576, \
               intermediate_size: 1536, num_hidden_layers: 30, num_attention_heads: 9, num_key_value_heads: 3, \
               max_position_embeddings: 2048, tie_word_embeddings: true, vocab_size: 49152}\n\
               optimizer: {accumulate_grad_in_fp32: true, zero_stage: 0}\n\
               parallelism: {dp: 64, pp: 1, tp: 1, pp_engine: 1f1b}\n\
               tokens: {batch_accumulation_per_replica: 1, micro_batch_size: 8, sequence_length: 2048}\n",
        given: &[],
        means: "nanotron 0.13G n64 mbs8 gbs512 s2048 bf16 none zero0",
    },
    Published {
        place: "pytorch/torchtitan train_configs/llama3_70b.toml, on 64 A100",
        file: "llama3_70b.toml",
        text: "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nbatch_size = 8\nseq_len = 8192\n\
               data_parallel_shard_degree = -1\ntensor_parallel_degree = 8\n[experimental]\n\
               pipeline_parallel_degree = 1\n[activation_checkpoint]\nmode = \"full\"\n",
        given: &[("devices", "64")],
        means: "torchtitan 70.55G n64 tp8 mbs8 gbs64 s8192 bf16 full zero3",
    },
    Published {
        place: "pytorch/torchtitan torchtitan/models/llama3/train_configs/llama3_405b.toml, on 128 H100",
        file: "llama3_405b.toml",
        text: "[model]\nname = \"llama3\"\nflavor = \"405B\"\nconverters = [\"float8\"]\n[training]\n\
               local_batch_size = 2\nseq_len = 8192\n[parallelism]\ndata_parallel_shard_degree = -1\n\
               tensor_parallel_degree = 8\nenable_async_tensor_parallel = true\n[activation_checkpoint]\n\
               mode = \"full\"\n[compile]\nenable = true\n",
        given: &[("devices", "128")],
        means: "torchtitan 405.85G n128 tp8 mbs2 gbs32 s8192 fp8 full zero3",
    },
    Published {
        place: "NVIDIA/NeMo-Framework-Launcher conf/training/gpt3/175b.yaml",
        file: "175b.yaml",
        text: "trainer: {num_nodes: 128, devices: 8, precision: bf16}\nmodel:\n  micro_batch_size: 1\n  \
               global_batch_size: 2048\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 8\n  \
               virtual_pipeline_model_parallel_size: 12\n  sequence_parallel: true\n  encoder_seq_length: 2048\n  \
               max_position_embeddings: 2048\n  num_layers: 96\n  hidden_size: 12288\n  \
               ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n  num_attention_heads: 96\n  \
               optim: {name: distributed_fused_adam}\n",
        given: &[],
        means: "nemo 174.58G n1024 tp4,pp8,vp12 mbs1 gbs2048 s2048 bf16 none zero1",
    },
    Published {
        place: "NVIDIA/NeMo-Framework-Launcher conf/training/llama/llama2_70b.yaml, whose recompute method is inert",
        file: "llama2_70b.yaml",
        text: "trainer: {num_nodes: 128, devices: 8, precision: bf16}\nmodel:\n  micro_batch_size: 1\n  \
               global_batch_size: 2048\n  tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 4\n  \
               virtual_pipeline_model_parallel_size: 20\n  sequence_parallel: true\n  encoder_seq_length: 4096\n  \
               max_position_embeddings: 4096\n  num_layers: 80\n  hidden_size: 8192\n  ffn_hidden_size: 28672\n  \
               num_attention_heads: 64\n  num_query_groups: 8\n  activation: fast-swiglu\n  normalization: rmsnorm\n  \
               bias: false\n  position_embedding_type: rope\n  share_embeddings_and_output_weights: false\n  \
               activations_checkpoint_granularity: null\n  activations_checkpoint_method: block\n  \
               activations_checkpoint_num_layers: 0\n  optim: {name: distributed_fused_adam}\n",
        given: &[],
        means: "nemo 69.28G n1024 tp4,pp4,vp20 mbs1 gbs2048 s4096 bf16 none zero1",
    },
    Published {
        place: "AI-Hypercomputer/maxtext configs/gpu/a3/llama_2_7b, on one machine",
        file: "llama2_7b.yml",
        text: "model_name: llama2-7b\nper_device_batch_size: 4\nmax_target_length: 4096\nici_fsdp_parallelism: 8\n\
               dcn_data_parallelism: 1\nremat_policy: minimal_with_context\ndtype: bfloat16\nweight_dtype: float32\n",
        given: &[("devices", "8")],
        means: "maxtext 6.74G n8 mbs4 gbs32 s4096 bf16 selective:minimal zero3",
    },
    Published {
        place: "axolotl examples/llama-3/llama-3_1-8b-hsdp-tp.yaml",
        file: "hsdp-tp.yaml",
        text: "base_model: meta-llama/Llama-3.1-8B\ndp_shard_size: 4\ndp_replicate_size: 2\ntensor_parallel_size: 2\n\
               sequence_len: 2048\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nbf16: true\nfsdp_version: 2\n\
               fsdp_config: {reshard_after_forward: true}\n",
        given: &[],
        means: "axolotl 8.03G n16 tp2 mbs1 gbs8 s2048 bf16 none zero3",
    },
    Published {
        place: "LLaMA-Factory examples/train_lora/qwen3_lora_sft.yaml, on eight devices",
        file: "qwen3_lora_sft.yaml",
        text: "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\n\
               lora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\ngradient_accumulation_steps: 8\n\
               bf16: true\n",
        given: &[("devices", "8")],
        means: "llama-factory 4.02G n8 mbs1 gbs64 s2048 bf16 full zero0 lora:r=8,targets=all",
    },
];

#[test]
fn published_jobs_mean_what_their_authors_state() {
    for job in PUBLISHED {
        assert_eq!(facts(job.text, job.file, job.given), job.means, "{}", job.place);
    }
}

/// Flags of a small model, for cases about the language of a script.
const FLAGS: &str = "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
                     --max-position-embeddings 2048 --vocab-size 51200 --micro-batch-size 1 --global-batch-size 64 --bf16";

/// Tensor degree after the lines of a script, or the refusal.
fn tensor_after(lines: &str) -> String {
    let text =
        format!("{lines}\ntorchrun --nproc_per_node 8 pretrain_gpt.py {FLAGS} --tensor-model-parallel-size $TP \"$@\"");
    match jobs::read(&text, "train.sh", None, &ReadOptions::default()) {
        Ok(job) => job.degree("tp").to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn scripts_are_evaluated_as_bash_does() {
    for (lines, tensor) in [
        ("for x in 2 4 8; do TP=$x; if [ $x = 2 ]; then break; fi; done", "2"),
        ("TP=1; for x in 1 2 4; do for y in a b; do if [ $x = 2 ]; then break 2; fi; TP=$x; done; done", "1"),
        ("for x in 2 4 8; do if [ $x = 8 ]; then continue; fi; TP=$x; done", "4"),
        ("TP=2; f(){ local TP=8; }; f", "2"),
        ("TP=2; f(){ local TP; TP=8; }; f", "2"),
        ("TP=2; f(){ declare -g TP=4; }; f", "4"),
        ("set -- 8 1 4; shift 2; TP=$1; set --", "4"),
        ("TP=2; while true; do TP=4; break; TP=8; done", "4"),
    ] {
        assert_eq!(tensor_after(lines), tensor, "{lines}");
    }
    // Whether the loop is left is not known, and neither is the value.
    for lines in ["for x in 2 4 8; do TP=$x; if hostname; then break; fi; done", "TP=-1", "TP=0", "TP=4294967296"] {
        assert!(tensor_after(lines).starts_with("train.sh:"), "{lines}: {}", tensor_after(lines));
    }
    for flag in ["--num-attention-heads 3", "--num-query-groups 5 --group-query-attention", "--mtp-num-layers 99"] {
        let text = format!("torchrun --nproc_per_node 8 pretrain_gpt.py {FLAGS} {flag}");
        assert!(facts(&text, "train.sh", &[]).starts_with("refused: train.sh:1"), "{flag}");
    }
    // Alternatives of alternatives stay short.
    let many = "case $(h) in a) A=\"$A 1\";; b) A=\"$A 2\";; *) A=\"$A 3\";; esac\n".repeat(40);
    assert_eq!(tensor_after(&format!("TP=2\n{many}")), "2");
}

#[test]
fn launchers_state_devices_and_sharding() {
    let devices =
        |text: &str| facts(&format!("{text} {FLAGS}"), "train.sh", &[]).split(' ').nth(2).unwrap().to_string();
    assert_eq!(devices("srun -N 2 -n 16 --gpus-per-node=8 python pretrain_gpt.py"), "n16");
    assert_eq!(
        devices("#SBATCH --nodes=4 --gpus-per-node=8\nsrun -N 2 --gpus-per-node=8 python pretrain_gpt.py"),
        "n16"
    );
    assert_eq!(
        devices("#SBATCH --gpus-per-node=8\n#SBATCH -N 2\necho\n#SBATCH --nodes=8\nsrun python pretrain_gpt.py"),
        "n16"
    );
    let fine_tuning = "train.py --per_device_train_batch_size 2 --model_name_or_path meta-llama/Meta-Llama-3-8B";
    for (launch, means) in [
        ("--use_deepspeed --zero_stage 3 --offload_optimizer_device cpu --mixed_precision bf16", "bf16 none zero3"),
        ("--use_deepspeed --mixed_precision bf16", "bf16 none zero2"),
        ("--use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP --mixed_precision fp16", "fp16 none zero2"),
        ("--mixed_precision bf16", "bf16 none zero0"),
    ] {
        let text = format!("accelerate launch --num_processes 8 {launch} {fine_tuning}");
        assert!(facts(&text, "train.sh", &[]).ends_with(means), "{launch}: {}", facts(&text, "train.sh", &[]));
    }
}

#[test]
fn python_files_are_followed_to_their_last_value() {
    let program = "cfg = dict(per_device_train_batch_size=4, bf16=True)\n\
                   model = get_peft_model(model, LoraConfig(r=8))\nmodel.gradient_checkpointing_enable()\n\
                   args = TrainingArguments(output_dir='o', **cfg)\nargs.gradient_accumulation_steps = 8\n";
    let read = facts(program, "train.py", &[("model", "llama-3-8b"), ("devices", "8")]);
    for part in [" mbs4 gbs256 ", " bf16 full ", " lora:r=8,targets=all"] {
        assert!(read.contains(part), "{part}: {read}");
    }
    let recipe = |lines: &str| {
        let text = format!(
            "def llama3_8b_pretrain_8gpu_config():\n    cfg = base()\n    cfg.model.tensor_model_parallel_size = 2\n    cfg.train.global_batch_size = 64\n    cfg.train.micro_batch_size = 1\n{lines}\n    return cfg\n"
        );
        facts(&text, "recipe.py", &[])
    };
    for (line, part) in [
        ("    cfg.model.tensor_model_parallel_size *= 2", " tp4 "),
        ("    setattr(cfg.model, 'pipeline_model_parallel_size', 2)", " tp2,pp2 "),
        ("    cfg.model.num_layers = 4", "model.num_layers is 4"),
        ("    if not cfg.model.sequence_parallel:\n        cfg.model.pipeline_model_parallel_size = 4", "is not known"),
    ] {
        assert!(recipe(line).contains(part), "{line}: {}", recipe(line));
    }
}

#[test]
fn modes_named_none_and_zero_counts_are_no_absent_ones() {
    let titan = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n[activation_checkpoint]\nmode = \"none\"\n";
    assert!(facts(titan, "job.toml", &[("devices", "8")]).contains("bf16 none zero3"));
    let pure = "base_model: meta-llama/Llama-3.1-8B\nmicro_batch_size: 1\nbf16: full\nadapter:\n";
    let job = jobs::read(pure, "fft.yaml", None, &ReadOptions::default()).unwrap();
    let bytes = ["master_bytes", "gradient_bytes", "moment_bytes"].map(|name| job.facts[name].value.clone());
    assert_eq!(bytes, ["0", "2", "2"]);
    let copies = "model_name: llama2-7b\nper_device_batch_size: 1\nici_data_parallelism: 8\nici_fsdp_parallelism: 1\n";
    assert!(facts(copies, "job.yml", &[]).contains("zero0"), "{}", facts(copies, "job.yml", &[]));
    let window = "num-layers: 32\nhidden-size: 4096\nnum-attention-heads: 32\nseq-length: 8192\nmodel-parallel-size: 1\n\
                  pipe-parallel-size: 1\nmax-position-embeddings: 8192\nsliding_window_width: 4096\n";
    let read = |text: &str| jobs::read(text, "7B.yml", None, &ReadOptions::default()).unwrap().model.unwrap().value;
    let whole = window.replace("sliding_window_width: 4096\n", "");
    assert_ne!(read(window).kinds, read(&whole).kinds, "a window divides the attention's span");
    let options = ReadOptions { ignore: vec!["nosuch".into()], ..ReadOptions::default() };
    assert!(jobs::read(titan, "job.toml", None, &options).unwrap_err().to_string().contains("leaves out nothing"));
}
