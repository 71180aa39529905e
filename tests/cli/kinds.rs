//! Several kinds of devices: plans by kind, their files, engines, and what is refused.

use std::fs;

use super::{Folder, argument, plantui};

/// Kinds of a request that most tests make.
pub(super) const KINDS: &str = "16xh100,32xa100-80";

/// Exit code, standard output and standard error of a command.
pub(super) fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = plantui().args(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Writes the plan of llama-3-8b on both kinds, with these settings.
fn planned(folder: &Folder, settings: &[&str]) -> String {
    let plan = argument(&folder.path("plan.json"));
    let mut arguments = vec!["plan", "llama-3-8b", "--devices", KINDS, "--batch", "128", "--output", &plan];
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let (code, _, err) = run(&arguments);
    assert_eq!(code, 0, "{err}");
    plan
}

#[test]
fn a_plan_keeps_its_kinds_and_is_confirmed() {
    let folder = Folder::new();
    let plan = planned(&folder, &[]);
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 0 && out.starts_with("valid") && out.contains("16 of 16 h100, 32 of 32 a100-80"), "{out}{err}");
    let (code, _, err) = run(&["check", "llama-3-8b", &plan, "--devices", "8xh100,32xa100-80"]);
    assert!(code == 2 && err.contains("workload.kinds") && err.contains("--devices 16xh100,32xa100-80"), "{err}");
    let (code, out, err) = run(&["simulate", "llama-3-8b", &plan]);
    assert!(code == 0 && out.contains("1F1B"), "{out}{err}");
}

#[test]
fn a_kind_without_devices_is_left_out() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let (code, _, err) = run(&["plan", "inputs/two-kinds.json", "--devices", "16xslow", "--output", &plan]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["check", "inputs/two-kinds.json", &plan]);
    assert!(code == 0 && out.contains("16 of 16 slow"), "{out}{err}");
}

#[test]
fn a_device_listed_twice_is_found() {
    let folder = Folder::new();
    let plan = planned(&folder, &[]);
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    document["stages"][0]["devices"][1] = 0.into();
    fs::write(&plan, document.to_string()).unwrap();
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 1 && out.contains("device 0 is already used by stage 1"), "{out}{err}");
}

#[test]
fn a_stage_moved_to_another_kind_is_found() {
    let folder = Folder::new();
    let plan = planned(&folder, &[]);
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    let first = &mut document["stages"][0]["devices"];
    assert_eq!(first[0], 0, "the first stage is on the first kind");
    first[0] = 47.into();
    fs::write(&plan, document.to_string()).unwrap();
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 1 && out.contains("and its first device of"), "{out}{err}");
}

#[test]
fn engines_take_plans_with_one_tensor_degree() {
    let folder = Folder::new();
    let plan = planned(&folder, &[]);
    let (code, _, err) = run(&["export", &plan, "--to", "megatron"]);
    assert!(code == 1 && err.contains("tensor degrees 2, 4") && err.contains("--set space=engine"), "{code} {err}");
    fs::remove_file(&plan).unwrap();
    let plan = planned(&folder, &["space=engine"]);
    let (code, out, err) = run(&["export", &plan, "--to", "megatron"]);
    assert!(code == 0 && out.contains("# order of the hosts: ranks 0–15 on"), "{out}{err}");
    assert!(out.contains("--pipeline-model-parallel-layout") && out.contains("--num-layers 32"), "{out}");
    assert!(!out.contains("nearest plan it can run"), "no figure is of one kind: {out}");
    let (code, out, _) = run(&["export", &plan, "--to", "rank-file"]);
    assert!(code == 0 && out.contains("local_device,kind\n") && out.contains(",h100\n"), "{out}");
}

#[test]
fn prices_lead_to_cheaper_plans() {
    let priced = "16xh100:2.50,32xa100-80:1.20";
    let figure = |settings: &[&str]| {
        let mut arguments = vec!["plan", "llama-3-8b", "--devices", priced, "--batch", "128", "--json"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let (code, out, err) = run(&arguments);
        assert_eq!(code, 0, "{err}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        let name = document["objective"]["name"].as_str().unwrap().to_string();
        (
            name,
            document["objective"]["value"].as_f64().unwrap(),
            document["simulation"]["iteration_s"].as_f64().unwrap(),
        )
    };
    let (name, fastest_s, _) = figure(&[]);
    assert_eq!(name, "pipeline_time");
    let (name, least, seconds) = figure(&["minimise=cost"]);
    assert!(name == "iteration_cost" && seconds > fastest_s, "{name}: {least}, {seconds} s");
    let (_, limited, seconds) = figure(&["minimise=cost", "most_seconds=6"]);
    assert!(limited >= least && seconds <= 6.0, "{limited} in {seconds} s");
    let (_, within_s, _) = figure(&["most_per_hour=60"]);
    assert!(within_s > fastest_s, "{within_s} s for less money, {fastest_s} s for more");
}

#[test]
fn what_kinds_cannot_do_is_refused_in_a_sentence() {
    for (arguments, part) in [
        (vec!["plan", "llama-3-8b", "--devices", "16xh100,32xmars"], "there is no hardware `mars`"),
        (vec!["plan", "llama-3-8b", "--devices", "16xh100,8"], "`8` is no number of devices of a kind"),
        (vec!["plan", "llama-3-8b", "--devices", "16xh100,8xh100"], "names h100 twice"),
        (vec!["plan", "llama-3-8b", "--devices", "1xh100,1xh200,1xb200,1xa100-80,1xv100"], "names 5 kinds"),
        (
            vec!["plan", "llama-3-8b", "--devices", "16xh100:free,8xa100-80"],
            "`free` is no price of a device for an hour: write 16xh100:2.50",
        ),
        (vec!["plan", "llama-3-8b", "--devices", KINDS, "--hardware", "h100"], "--hardware is for one kind"),
        (vec!["plan", "llama-3-8b", "--devices", KINDS, "--memory", "40GiB"], "--memory is for one kind"),
        (vec!["plan", "mixtral-8x7b", "--devices", KINDS], "mixtures of experts are planned on one kind"),
        (vec!["plan", "inputs/bert32a100.json", "--devices", KINDS], "has times of one kind of device"),
        (vec!["plan", "inputs/two-kinds.json", "--devices", KINDS], "has no times on h100, only on fast, slow"),
        (
            vec!["plan", "inputs/two-kinds.json", "--set", "between_places=1GB/s"],
            "between_places is a setting of a model to be trained, and two-kinds has times of its own",
        ),
        (vec!["plan", "llama-3-8b", "--devices", KINDS, "--planner", "dapple"], "it plans one kind of device"),
        (vec!["plan", "llama-3-8b", "--devices", KINDS, "--planner", "parmesan"], "it plans one kind of device"),
        (vec!["plan", "llama-3-8b", "--devices", KINDS, "--set", "schedule=zb-h1"], "all plans run 1F1B"),
    ] {
        let (code, out, err) = run(&arguments);
        assert!(code == 2 && err.contains(part), "{arguments:?}: {code} {out}{err}");
    }
    for setting in ["minimise=cost", "minimise=both", "most_cost=0.1", "most_per_hour=80"] {
        let (code, _, err) = run(&["plan", "llama-3-8b", "--devices", KINDS, "--set", setting]);
        assert!(code == 2 && err.contains("h100 has no price") && err.contains("16xh100:PRICE"), "{setting}: {err}");
    }
    let (code, out, _) = run(&["plan", "llama-3-70b", "--devices", "2xv100,2xa100-40", "--batch", "8"]);
    assert!(code == 1 && out.contains("No cut of the layers fits the memory of 2 v100, 2 a100-40"), "{out}");
}

#[test]
fn a_table_of_kinds_states_its_devices_and_takes_others() {
    let (code, out, err) = run(&["plan", "inputs/two-kinds.json"]);
    assert!(code == 0 && out.contains("8 of 8 fast, 16 of 16 slow"), "{out}{err}");
    let (code, out, err) = run(&["plan", "inputs/two-kinds.json", "--devices", "16xslow"]);
    assert!(code == 0 && out.contains("16 of 16 slow"), "{out}{err}");
    let (code, out, err) = run(&["plan", "inputs/two-kinds.json", "--devices", "12"]);
    assert!(code == 0 && out.contains("on 12 of 12 devices"), "{out}{err}");
}

#[test]
fn a_placement_keeps_its_kinds_and_is_confirmed() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let speeds = "inputs/two-speeds.json";
    let (code, _, err) = run(&["plan", speeds, "--devices", "1xfast,4xslow", "--output", &plan]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["check", speeds, &plan]);
    assert!(code == 0 && out.starts_with("valid") && out.contains("1 fast (2x, 16 GB), 4 slow"), "{out}{err}");
    // The stage with the most memory fits on the fast accelerator alone.
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    let stages = document["stages"].as_array_mut().unwrap();
    let on = |stage: &serde_json::Value, device: u32| stage["devices"] == serde_json::json!([device]);
    let (fast, slow) = (stages.iter().position(|s| on(s, 0)).unwrap(), stages.iter().position(|s| on(s, 1)).unwrap());
    (stages[fast]["devices"], stages[slow]["devices"]) = (serde_json::json!([1]), serde_json::json!([0]));
    fs::write(&plan, document.to_string()).unwrap();
    let (code, out, err) = run(&["check", speeds, &plan]);
    assert!(code == 1 && out.contains("needs") && out.contains("6 GB"), "{out}{err}");
}

#[test]
fn a_split_file_lists_accelerators_by_kind() {
    let folder = Folder::new();
    let (plan, split) = (argument(&folder.path("plan.json")), argument(&folder.path("split.json")));
    let speeds = "inputs/two-speeds.json";
    let (code, _, err) = run(&["plan", speeds, "--devices", "2xfast,3xslow", "--output", &plan]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(&["export", &plan, "--to", "placement-split", "--output", &split]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["check", speeds, &split]);
    assert!(code == 0 && out.starts_with("valid") && out.contains("10.40 ms"), "{out}{err}");
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&split).unwrap()).unwrap();
    document["fpgas"].as_array_mut().unwrap().pop();
    fs::write(&split, document.to_string()).unwrap();
    let (code, _, err) = run(&["check", speeds, &split]);
    assert!(code == 2 && err.contains("lists 4 accelerators, and two-speeds has 5"), "{err}");
}

#[test]
fn what_accelerators_of_several_kinds_lack_is_refused() {
    let speeds = "inputs/two-speeds.json";
    let cases: [(&[&str], &str); 6] = [
        (&["--planner", "placement-ip"], "it plans one kind of device, and there are 2 fast, 3 slow"),
        (&["--planner", "piper"], "`placement-dp` plans several"),
        (&["--memory", "8GB"], "--memory is for one kind of device"),
        (&["--devices", "1xbig"], "two-speeds has no big, only fast, slow"),
        (&["--devices", "1xfast:3"], "leave out the price of fast"),
        (&["--devices", "1xfast,1xslow", "--cpus", "0"], "No contiguous split fits on 1 fast (2x, 16 GB), 1 slow"),
    ];
    for (flags, told) in cases {
        let (code, out, err) = run(&[&["plan", speeds], flags].concat());
        assert!(code != 0 && (err.contains(told) || out.contains(told)), "{flags:?}: {code} {out}{err}");
    }
    let local = ["plan", speeds, "--planner", "placement-local-search"];
    let (code, out, err) = run(&local);
    assert!(code == 0 && out.contains("5 of 5 accelerators"), "{out}{err}");
    let (code, out, err) = run(&[&local[..], &["--devices", "1xfast,1xslow"]].concat());
    assert!(code == 1 && out.contains("on one slow accelerator, whose limit is 6 GB"), "{out}{err}");
    let (code, out, err) = run(&["plan", speeds, "--devices", "100"]);
    assert!(code == 0 && out.contains("note: --devices 100 is more than there are: the kinds have 5"), "{out}{err}");
}

#[test]
fn a_slow_link_between_kinds_keeps_the_plan_on_one() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let places = "16xh100@east,16xh100@west";
    let rate = "between_kinds=1GB/s";
    let arguments = ["plan", "llama-3-8b", "--devices", places, "--batch", "128", "--set", rate, "--output", &plan];
    let (code, _, err) = run(&arguments);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 0 && out.contains("16 of 16 h100@east, 16 of 16 h100@west"), "{out}{err}");
    let (code, out, err) = run(&["export", &plan, "--to", "megatron"]);
    assert!(code == 0 && out.contains("ranks 0–15 on h100@east"), "{out}{err}");
    let slow = ["plan", "llama-3-8b", "--devices", KINDS, "--batch", "128", "--set", "between_kinds=100MB/s"];
    let (code, out, err) = run(&slow);
    assert!(code == 0 && out.contains("16 of 16 h100, 0 of 32 a100-80"), "{out}{err}");
    for one in [
        &["plan", "llama-3-8b", "--devices", "16", "--batch", "128", "--set", rate][..],
        &["estimate", "llama-3-8b", "--devices", "16", "--set", rate],
    ] {
        let (code, out, err) = run(one);
        assert!(code != 0 && (out + &err).contains("between_kinds is for several kinds"), "{one:?}");
    }
}

#[test]
fn commands_without_kinds_say_so() {
    let (code, _, err) = run(&["estimate", "llama-3-8b", "--devices", KINDS]);
    assert!(code == 2 && err.contains("`plantui plan` takes kinds"), "{err}");
}

#[test]
fn schedules_of_kinds_fit_the_memory_of_each() {
    let folder = Folder::new();
    let plan = planned(&folder, &[]);
    let (code, out, err) = run(&["simulate", "llama-3-8b", &plan, "--schedule", "all"]);
    let fits = |schedule: &str| {
        let row = out.lines().find(|line| line.trim_start().starts_with(schedule)).unwrap_or_default();
        row.split_whitespace().any(|word| word == "yes")
    };
    assert!(code == 0 && fits("1F1B ") && !fits("GPipe "), "{out}{err}");
    // A device of the slow kind cannot run the stages of the fast one in their time.
    let (code, out, err) = run(&["simulate", "llama-3-8b", &plan, "--schedule", "dualpipe"]);
    assert!(code != 0 && (out + &err).contains("DualPipe places every stage on two devices"));
    let (code, out, err) = run(&["simulate", "llama-3-8b", &plan, "--schedule", "zb-v"]);
    assert!(code != 0 && (out + &err).contains("sends more often, which is not modelled between several kinds"));
}

/// Nodes 1 and 3 share a class, and 2 is between them: a contiguous split has all on one device, and others do not.
#[test]
fn a_bound_of_contiguous_splits_is_not_one_of_all() {
    let folder = Folder::new();
    let file = argument(&folder.path("cycle.json"));
    let node = |id: u32, class: u32| {
        serde_json::json!({"id": id, "supportedOnFpga": 1, "cpuLatency": 9.0, "fpgaLatency": 4.0,
                           "isBackwardNode": 0, "size": 1.0, "colorClass": class})
    };
    let kind = |kind: &str, speed: f64| serde_json::json!({"kind": kind, "count": 1, "speed": speed, "maxSize": 10.0});
    let edge = |from: u32, to: u32| serde_json::json!({"sourceId": from, "destId": to, "cost": 0.0});
    let graph = serde_json::json!({
        "accelerators": [kind("fast", 2.0), kind("slow", 1.0)], "maxCPUs": 0,
        "nodes": [node(1, 1), node(2, 2), node(3, 1)], "edges": [edge(1, 2), edge(2, 3)],
    });
    fs::write(&file, graph.to_string()).unwrap();
    for (planner, told) in
        [("placement-dp", "optimal"), ("placement-dpl", "within"), ("placement-local-search", "within")]
    {
        let (code, out, err) = run(&["plan", &file, "--planner", planner]);
        assert!(code == 0 && out.contains(&format!("proof: {told}")), "{planner}: {out}{err}");
    }
}

/// Hardware of the user, as a file.
const BOX: &str = "name = \"A box\"\npeak_16 = 200e12\nmemory_gib = 48\nmemory_bandwidth = 900e9\ninner_link = 32e9\n\
    outer_link = 12.5e9\ndomain = 4\n";

#[test]
fn a_kind_may_be_hardware_of_the_user() {
    let folder = Folder::new();
    let (file, plan) = (argument(&folder.path("box.toml")), argument(&folder.path("plan.json")));
    fs::write(&file, BOX).unwrap();
    let kinds = format!("8xh100:2.5,16x{file}@west:1.25");
    let base = ["plan", "llama-3-8b", "--batch", "64", "--output", &plan, "--devices"];
    let (code, out, err) = run(&[&base[..], &[&kinds]].concat());
    assert!(code == 0 && out.contains("on 8 of 8 h100, ") && out.contains("of 16 box@west"), "{out}{err}");
    let (code, out, err) = run(&["check", "llama-3-8b", &plan, "--devices", &kinds]);
    assert!(code == 0 && out.starts_with("valid"), "{out}{err}");
    let (code, _, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 2 && err.contains("workload.kinds of the plan: there is no hardware `box`"), "{err}");
    // The configuration file may have it as well.
    let config = folder.path("config.toml");
    fs::write(&config, format!("[hardware.box]\n{BOX}")).unwrap();
    let output = plantui().env("PLANTUI_CONFIG", &config).args(["check", "llama-3-8b", &plan]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (code, _, err) = run(&["plan", "llama-3-8b", "--devices", "8xh100,8xnone.toml"]);
    assert!(code == 2 && err.contains("none.toml: "), "{err}");
}

#[test]
fn transfers_between_places_use_their_links() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let base = ["plan", "llama-3-8b", "--devices", "16xh100@a,32xa100-80@b", "--batch", "128", "--output", &plan];
    let used = |rate: &str| {
        let (code, _, err) = run(&[&base[..], &["--set", &format!("between_places={rate}"), "--force"]].concat());
        assert_eq!(code, 0, "{err}");
        let (code, out, err) = run(&["simulate", "llama-3-8b", &plan, "--json"]);
        assert_eq!(code, 0, "{err}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        document["links"][0]["utilization"].as_f64().unwrap()
    };
    let (slow, fast) = (used("1GB/s"), used("10GB/s"));
    assert!(fast > 0.0 && slow > 5.0 * fast, "{slow} and {fast}");
    // A link that needs longer than the passes sets the pace.
    let slow = ["plan", "llama-3-8b", "--devices", "4xa100-40@a,4xa100-40@b", "--batch", "64", "--output", &plan];
    let (code, out, err) = run(&[&slow[..], &["--set", "between_places=5MB/s", "--force"]].concat());
    assert!(code == 0 && out.contains("proof: optimal"), "{out}{err}");
    let (_, out, err) = run(&["simulate", "llama-3-8b", &plan, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    let (link, iteration_s) = (&document["links"][0], document["iteration_s"].as_f64().unwrap());
    let stage: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    // Each rank of the tensor group sends its part.
    let ranks = stage["stages"][0]["tensor_parallel"].as_f64().unwrap();
    let (bytes, busy_s) = (link["bytes"].as_f64().unwrap(), link["busy_s"].as_f64().unwrap());
    assert!((bytes / ranks / 5e6 * 0.999..iteration_s).contains(&busy_s), "{busy_s} of {iteration_s} s, {bytes}");
    assert!(busy_s > 0.8 * iteration_s, "{busy_s} of {iteration_s} s");
}

#[test]
fn schedules_name_engines_that_can_run_the_stages() {
    let folder = Folder::new();
    let engines = |settings: &[&str]| {
        let plan = planned(&folder, settings);
        let (code, out, err) = run(&["simulate", "llama-3-8b", &plan, "--schedule", "all"]);
        fs::remove_file(&plan).unwrap();
        assert_eq!(code, 0, "{err}");
        out.contains("megatron")
    };
    // The fastest plan has two tensor degrees, and engines have one.
    assert!(!engines(&[]) && engines(&["space=engine"]));
}
