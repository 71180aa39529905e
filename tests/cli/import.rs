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

/// Facts of a document of `plantui.import/1` in a line.
fn facts(document: &Value) -> String {
    let read = &document["read"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToString::to_string);
    let degrees = ["tp", "pp", "vp", "cp", "ep", "etp", "dp"];
    let degrees: Vec<String> = degrees.iter().map(|name| format!("{name}{}", read["parallel"][name])).collect();
    let billions = read["parameters"].as_f64().unwrap() / 1e9;
    format!(
        "{} {billions:.2}G s{} {} n{} {} mbs{} gbs{} {} {} {} {} {}",
        text(&document["format"]),
        read["sequence_length"],
        text(&read["precision"]),
        read["devices"],
        degrees.join(" "),
        read["micro_batch"],
        read["global_batch"],
        text(&read["recompute"]),
        text(&read["sharding"]),
        read["offload"],
        text(&read["adapter"]),
        read["layers"],
    )
}

#[test]
fn a_megatron_script_becomes_a_workload_and_a_plan_that_compare_takes() {
    let folder = Folder::new();
    let script = folder.file("train.sh", SCRIPT);
    let (workload, plan) = (argument(&folder.path("model.json")), argument(&folder.path("today.json")));
    let document =
        json(&["import", &script, "--hardware", "h100", "--workload", &workload, "--plan", &plan, "--json"], 0);
    assert_eq!(
        facts(&document),
        "megatron 8.03G s4096 bf16 n16 tp2 pp4 vp1 cp1 ep1 etp1 dp2 mbs1 gbs64 full:2 zero1 [] none 32"
    );
    let source = |name: &str| document["sources"][name].as_str().unwrap().rsplit('/').next().unwrap().to_string();
    assert_eq!(
        (source("tp"), source("model"), source("precision")),
        ("train.sh:18".into(), "train.sh:9".into(), "train.sh:14".into())
    );
    let (now, best) = (&document["as_it_runs"], &document["best"]);
    assert_eq!((&now["schema"], &best["schema"]), (&"plantui.estimate/1".into(), &"plantui.estimate/1".into()));
    assert!(best["iteration_s"].as_f64() < now["iteration_s"].as_f64());
    stdout(&["check", &workload, &plan], 0);
    let compared = json(&["compare", &workload, "--plan", &plan, "--planner", "joint", "--json"], 0);
    assert_eq!(compared["entries"].as_array().unwrap().len(), 2);
    let page = stdout(&["import", &script, "--hardware", "h100"], 0);
    for part in ["as it runs", "best found", "train.sh:18", "fits", "trust:", "plantui export best.json --to megatron"]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// Seconds of an iteration.
fn iteration(document: &Value) -> f64 {
    document["iteration_s"].as_f64().unwrap()
}

#[test]
fn the_best_plan_leaves_as_the_engine_runs_it() {
    let folder = Folder::new();
    let script = folder.file("train.sh", SCRIPT);
    let (workload, best) = (argument(&folder.path("job.json")), argument(&folder.path("best.json")));
    let call = ["import", &script, "--hardware", "h100", "--best", &best, "--json"];
    assert!(refusal(&call).contains("--plan and --best need a workload"));
    let document = json(&[&call[..], &["--workload", &workload]].concat(), 0);
    let flags = stdout(&["export", &best, "--to", "megatron"], 0);
    // What leaves is read back as the same run.
    let exported = folder.file("exported.sh", &flags);
    let back = json(&["import", &exported, "--hardware", "h100", "--json"], 0);
    assert_eq!(back["as_it_runs"]["parallel"], document["best"]["parallel"]);
    let (told, read) = (iteration(&document["best"]), iteration(&back["as_it_runs"]));
    assert!((told / read - 1.0).abs() < 1e-9, "{told} {read}");
}

#[test]
fn commands_take_a_job_in_place_of_a_workload() {
    let folder = Folder::new();
    let script = folder.file("train.sh", SCRIPT);
    let runs = |hardware: &str| {
        let document = json(&["import", &script, "--hardware", hardware, "--json"], 0);
        iteration(&document["as_it_runs"])
    };
    // Explained on the hardware that was asked for, with changes that help.
    for hardware in ["h100", "a100-80"] {
        let document = json(&["explain", &script, "--hardware", hardware, "--json"], 0);
        assert_eq!(document["schema"], "plantui.explain-job/1");
        assert!((iteration(&document) / runs(hardware) - 1.0).abs() < 1e-9);
        let changes = document["changes"].as_array().unwrap();
        assert!(!changes.is_empty());
        for change in changes {
            let faster = iteration(&document) / change["iteration_s"].as_f64().unwrap() - 1.0;
            assert!((faster - change["faster"].as_f64().unwrap()).abs() < 1e-9 && faster > 0.0, "{change}");
        }
    }
    assert!(refusal(&["explain", &script, "--memory", "40GiB"]).contains("explained as it runs"));
    let compared = json(&["compare", &script, "--planner", "joint", "--json"], 0);
    let names: Vec<&Value> = compared["entries"].as_array().unwrap().iter().map(|entry| &entry["planner"]).collect();
    assert_eq!(names.len(), 2, "{compared}");
    let planned = json(&["plan", &script, "--json"], 0);
    assert_eq!(planned["limits"]["devices"], 16);
    // Facts of the command line replace those of the file.
    let zero = folder.file(
        "ds_config.json",
        r#"{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true},
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4}"#,
    );
    assert!(refusal(&["explain", &zero, "--devices", "8"]).contains("does not state the model"));
}

#[test]
fn a_log_offers_a_calibration_that_runs() {
    let folder = Folder::new();
    let log = format!("{}/tests/field/jobs/29-mixtral-ep.log", env!("CARGO_MANIFEST_DIR"));
    let workload = argument(&folder.path("job.json"));
    let page = stdout(&["import", &log, "--hardware", "h100", "--workload", &workload], 0);
    assert!(page.contains("calibrate job.json --runs"), "{page}");
    let fitted = stdout(&["calibrate", &workload, "--runs", &log, "--hardware", "h100"], 0);
    assert!(fitted.contains("measured"), "{fitted}");
}

#[test]
fn every_job_of_the_field_is_read_right_or_refused_by_name() {
    type Case = (&'static str, &'static [&'static str], Result<&'static str, &'static [&'static str]>);
    let cases: [Case; 22] = [
        (
            "01-moe-ep1.sh",
            &[],
            Ok("megatron 46.71G s4096 bf16 n32 tp8 pp2 vp1 cp1 ep1 etp8 dp2 mbs1 gbs512 none zero1 [] none 32"),
        ),
        (
            "03-size-switch.sh",
            &[],
            Ok("megatron 0.91G s4096 bf16 n16 tp2 pp1 vp1 cp1 ep1 etp1 dp8 mbs1 gbs64 none none [] none 16"),
        ),
        (
            "03-size-switch.sh",
            &["--define", "SIZE=large"],
            Ok("megatron 64.85G s4096 bf16 n16 tp2 pp1 vp1 cp1 ep1 etp1 dp8 mbs1 gbs64 none none [] none 80"),
        ),
        (
            "04-quoted-block.sh",
            &[],
            Ok("megatron 1.31G s2048 bf16 n8 tp2 pp2 vp1 cp1 ep1 etp1 dp2 mbs2 gbs128 none none [] none 24"),
        ),
        (
            "06-arithmetic.sh",
            &[],
            Ok("megatron 1.31G s2048 bf16 n32 tp2 pp2 vp1 cp1 ep1 etp1 dp8 mbs1 gbs128 none none [] none 24"),
        ),
        (
            "07-default-value.sh",
            &[],
            Ok("megatron 1.31G s2048 bf16 n32 tp2 pp2 vp1 cp1 ep1 etp1 dp8 mbs1 gbs128 none none [] none 24"),
        ),
        (
            "08-cp.sh",
            &[],
            Ok("megatron 1.31G s131072 bf16 n8 tp2 pp1 vp1 cp4 ep1 etp1 dp1 mbs1 gbs16 none none [] none 24"),
        ),
        (
            "09-neox.yml",
            &["--devices", "96", "--hardware", "a100-40"],
            Ok("gpt-neox 8.47G s2048 fp16 n96 tp2 pp4 vp1 cp1 ep1 etp1 dp12 mbs4 gbs768 full zero1 [] none 40"),
        ),
        (
            "11-lora.yaml",
            &["--devices", "4"],
            Ok("llama-factory 70.55G s1024 bf16 n4 tp1 pp1 vp1 cp1 ep1 etp1 dp4 mbs1 gbs32 full none [] qlora:r=8 80"),
        ),
        (
            "13-titan-fsdp.toml",
            &["--devices", "128"],
            Ok("torchtitan 405.85G s8192 bf16 n128 tp8 pp1 vp1 cp1 ep1 etp1 dp16 mbs2 gbs32 full zero3 [] none 126"),
        ),
        ("15-titan-registry.py", &["llama-3.1-8b", "--devices", "16"], Err(&["tiny, middle, large", "--recipe"])),
        (
            "15-titan-registry.py",
            &["llama-3.1-8b", "--devices", "16", "--recipe", "middle"],
            Ok("torchtitan 8.03G s8192 bf16 n16 tp2 pp2 vp1 cp1 ep1 etp1 dp4 mbs1 gbs16 full zero3 [] none 32"),
        ),
        ("17-ds-pipeline.json", &["--devices", "8"], Err(&["does not state the model", "MODEL"])),
        (
            "17-ds-pipeline.json",
            &["llama-2-13b", "--devices", "8"],
            Ok("deepspeed 13.02G s4096 bf16 n8 tp1 pp4 vp1 cp1 ep1 etp1 dp2 mbs1 gbs256 full zero1 [] none 40"),
        ),
        (
            "19-fp32.log",
            &["--hardware", "a100-80"],
            Ok("megatron 70.55G s4096 fp32 n16 tp8 pp2 vp1 cp1 ep1 etp1 dp1 mbs1 gbs8 full none [] none 80"),
        ),
        (
            "20-account-for.sh",
            &[],
            Ok(
                "megatron 68.85G s8192 bf16 n64 tp4 pp8 vp1 cp1 ep1 etp1 dp2 mbs1 gbs128 none zero1 [] none [9,10,10,10,10,10,10,9]",
            ),
        ),
        ("21-last-only-pp1.sh", &[], Err(&["decoder_last_pipeline_num_layers", "it would train 1 of 20 layers"])),
        (
            "22-nemo.yaml",
            &[],
            Ok("nemo 20.24G s2048 bf16 n128 tp4 pp2 vp1 cp1 ep1 etp1 dp16 mbs4 gbs1024 full:1 none [] none 44"),
        ),
        (
            "26-accelerate-fsdp.yaml",
            &["llama-2-13b"],
            Ok("accelerate 13.02G s4096 bf16 n8 tp1 pp1 vp1 cp1 ep1 etp1 dp8 mbs1 gbs8 full zero3 [] none 40"),
        ),
        (
            "28-any-deepspeed.json",
            &["qwen3-8b", "--devices", "8"],
            Ok("deepspeed 8.19G s8192 bf16 n8 tp1 pp1 vp1 cp1 ep1 etp1 dp8 mbs1 gbs64 none zero1 [] none 36"),
        ),
        (
            "28-any-deepspeed.json",
            &["--model", "qwen3-30b-a3b", "--devices", "8"],
            Ok("deepspeed 30.53G s8192 bf16 n8 tp1 pp1 vp1 cp1 ep1 etp1 dp8 mbs1 gbs64 none zero1 [] none 48"),
        ),
        (
            "29-mixtral-ep.log",
            &[],
            Ok("megatron 46.70G s2048 bf16 n16 tp1 pp1 vp1 cp1 ep8 etp1 dp16 mbs1 gbs128 none zero1 [] none 32"),
        ),
    ];
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/field/jobs/");
    for (name, more, expected) in cases {
        let path = format!("{folder}{name}");
        let call = [&["import", path.as_str(), "--deadline", "1ms"], more].concat();
        match expected {
            Ok(read) => assert_eq!(facts(&json(&[&call[..], &["--json"]].concat(), 0)), read, "{name}"),
            Err(parts) => {
                let told = refusal(&call);
                assert!(parts.iter().all(|part| told.contains(part)), "{name}: {told}");
            }
        }
    }
}

#[test]
fn what_a_job_leaves_open_is_asked_for_or_listed() {
    let folder = Folder::new();
    let job = |content: &str| folder.file("job.sh", content);
    let base = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 8 \\\n \
                --seq-length 1024 --micro-batch-size 1 --global-batch-size 64 --bf16 --vocab-size 32000";
    for (more, part) in [
        ("--moe-new-thing 4", "moe-new-thing is not understood"),
        ("--tensor-model-parallel-size $TP", "--define TP=VALUE"),
        ("--tensor-model-parallel-size $(cat tp)", "the output of `cat tp`"),
        ("--tensor-model-parallel-size two", "`two`, must be a whole number"),
        ("--tensor-model-parallel-size 3", "8 devices are no multiple"),
        ("$(cat flags)", "in the place of a flag is not known"),
        ("--deepspeed_config absent.json", "absent.json, which is not there"),
    ] {
        let told = refusal(&["import", &job(&format!("{base} {more}"))]);
        assert!(told.contains(part), "{more}: {told}");
    }
    let document = |more: &str, flags: &[&str]| {
        json(&[&["import", &job(&format!("{base} {more}")), "--deadline", "1ms", "--json"], flags].concat(), 0)
    };
    let read = document("--moe-new-thing 4 --colour red --lr 1e-4", &["--ignore", "moe-new-thing"]);
    let names = |list: &str| -> Vec<String> {
        read["not_used"][list].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().into()).collect()
    };
    assert_eq!(names("no_effect"), ["moe-new-thing", "lr"]);
    assert_eq!(names("not_understood"), ["colour"]);
    let branch = "if [ -d /data ]; then TP=1; else TP=2; fi\n";
    let script = folder.file("branch.sh", format!("{branch}{base} --tensor-model-parallel-size $TP"));
    let told = refusal(&["import", &script]);
    assert!(told.contains("`2` or `1`") && told.contains("--define TP=VALUE"), "{told}");
    let read = json(&["import", &script, "--define", "TP=4", "--deadline", "1ms", "--json"], 0);
    assert_eq!(read["read"]["parallel"]["tp"], 4);
    let read = document("", &["--devices", "16", "--with", "tensor-model-parallel-size=2"]);
    assert_eq!((&read["read"]["devices"], &read["read"]["parallel"]["tp"]), (&16.into(), &2.into()));
    assert!(read["sources"]["devices"].as_str().unwrap().contains("--devices, in place of 8"), "{}", read["sources"]);
}

#[test]
fn a_list_of_a_schedule_is_named_and_an_unknown_schedule_refused() {
    let folder = Folder::new();
    let job = |schedule: &str| {
        let text = format!(
            "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\nseq_len = 8192\n[parallelism]\n\
            data_parallel_shard_degree = 2\npipeline_parallel_degree = 4\n{schedule}"
        );
        folder.file("titan.toml", text)
    };
    let own =
        job("pipeline_parallel_schedule = \"PipelineScheduleMulti\"\npipeline_parallel_schedule_csv = \"own.csv\"\n");
    let page = stdout(&["import", &own, "--hardware", "h100", "--devices", "8"], 0);
    let note = page.lines().find(|line| line.contains("names the list of a schedule")).unwrap();
    assert!(note.contains("titan.toml:11") && note.ends_with("PLAN --schedule own.csv` plays it"), "{page}");
    assert!(page.contains("tp=1,pp=4,vp=2,cp=1,ep=1,dp=2,mbs=1") && !page.contains("no effect"), "{page}");
    let unknown = job("pipeline_parallel_schedule = \"Zigzag\"\n");
    let error = refusal(&["import", &unknown, "--hardware", "h100", "--devices", "8"]);
    assert!(
        error.contains("titan.toml:10") && error.contains("`Zigzag`, which is no schedule of torchtitan"),
        "{error}"
    );
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
fn what_cannot_be_read_is_one_sentence_with_the_repair() {
    let folder = Folder::new();
    for content in ["", "\0\u{1}\u{2}"] {
        let file = folder.file("job.sh", content);
        assert!(refusal(&["import", &file]).contains("give the script, log or configuration of a job"), "{content:?}");
        let calibrated = refusal(&["calibrate", "llama-3-8b", "--runs", &file]);
        assert!(calibrated.contains("give a CSV of measured runs"), "{content:?}: {calibrated}");
    }
    for (content, more, part) in [
        ("echo hello", &[][..], "starts no training program"),
        ("--tensor-model-parallel-size $WHAT --num-layers 8", &[], "$WHAT"),
        ("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2", &["--devices", "4"], "MODEL"),
        ("--tensor-model-parallel-size 2", &["--devices", "7"], "7 devices"),
        (
            "{\"pp_deg\": 2, \"pp_division\": \"8,9\", \"chunks\": 2, \"global_bsz\": 4}",
            &["--model", "llama-3-8b", "--devices", "2"],
            "17, but llama-3-8b has 32 layers",
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
