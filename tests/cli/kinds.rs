//! Several kinds of devices: plans by kind, their files, engines, prices, and what is refused.

use std::fs;

use super::{Folder, argument, plantui};

/// Kinds of a request that most tests make.
const KINDS: &str = "16xh100,32xa100-80";

/// Exit code, standard output and standard error of a command.
fn run(arguments: &[&str]) -> (i32, String, String) {
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
fn a_sweep_takes_clusters_of_kinds() {
    let folder = Folder::new();
    let table = argument(&folder.path("sweep.csv"));
    let more = "24xh100,32xa100-80";
    let both = ["sweep", "llama-3-8b", "--devices", KINDS, "--devices", more, "--batch", "64,128"];
    let (code, out, err) = run(&[&both[..], &["--output", &table]].concat());
    assert!(code == 0 && out.contains("4 points") && out.contains(&format!("llama-3-8b on {more}")), "{out}{err}");
    assert_eq!(fs::read_to_string(&table).unwrap().lines().count(), 5);
    // Another cluster with as many devices is another workload.
    let resumed = |kinds: &str| {
        let (_, out, _) = run(&[
            "sweep",
            "llama-3-8b",
            "--devices",
            kinds,
            "--batch",
            "8,16",
            "--resume",
            &argument(&folder.path("r")),
        ]);
        out
    };
    resumed("2xh100,4xa100-80");
    assert!(!resumed("4xh100,2xa100-80").contains("from the file"));
    assert!(resumed("2xh100,4xa100-80").contains("2 of them from the file"));
    let (code, out, err) = run(&["sweep", "llama-3-8b", "--devices", "16", "--devices", "8", "--batch", "64"]);
    assert!(code == 0 && out.contains("by devices: 2 points"), "{out}{err}");
    for (flags, told) in [
        (&["--devices", KINDS, "--devices", "8"][..], "both a number of devices and kinds"),
        (&["--devices", KINDS, "--batch", "8,16", "--hardware", "h100"], "--hardware is for one kind"),
        (&["--devices", KINDS, "--batch", "8,16", "--memory", "8GiB"], "--memory is for one kind"),
    ] {
        let (code, _, err) = run(&[&["sweep", "llama-3-8b"], flags].concat());
        assert!(code == 2 && err.contains(told), "{flags:?}: {err}");
    }
}

#[test]
fn seek_finds_the_cheapest_plan_within_a_time_and_the_fastest_within_a_cost() {
    let priced = "16xh100:2.50,32xa100-80:1.20";
    let seek = |least: &str, until: &str| {
        let (code, out, err) = run(&[
            "seek",
            "llama-3-8b",
            "--devices",
            priced,
            "--batch",
            "128",
            "--least",
            least,
            "--until",
            until,
            "--json",
        ]);
        assert_eq!(code, 0, "{err}");
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&document["method"], &document["certainty"]), (&"one_plan".into(), &"proven".into()), "{out}");
        (document["answer"].as_f64().unwrap(), document["figure"].as_f64().unwrap())
    };
    // More devices than the kinds have are not asked for.
    let (code, out, _) = run(&[
        "seek",
        "llama-3-8b",
        "--devices",
        KINDS,
        "--batch",
        "128",
        "--least",
        "devices",
        "--until",
        "iteration_time<=3s",
    ]);
    assert!(code == 1 && out.contains("out of reach: of 48 devices the nearest is"), "{out}");
    let (cost, seconds) = seek("usd", "iteration_time<=6s");
    assert!(seconds <= 6.0, "{seconds}");
    let (fastest_s, within) = seek("iteration_time", &format!("cost<={cost}"));
    assert!(within <= cost && fastest_s <= seconds, "{within}, {fastest_s} s; {cost}, {seconds} s");
    let text = |least: &str, until: &str, more: &[&str]| {
        run(&[&["seek", "llama-3-8b", "--devices", priced, "--least", least, "--until", until], more].concat())
    };
    let (code, out, _) = text("cost", "iteration_time<=6s", &[]);
    assert!(code == 0 && out.contains("cheapest iteration within 6.000 s\na cost of"), "{out}");
    let (code, out, _) = text("cost", "iteration_time<=1ms", &[]);
    assert!(code == 1 && out.contains("no plan reaches it") && out.contains("No plan keeps most_seconds"), "{out}");
    for (least, until, more, told) in [
        ("cost", "cost<=3", &[][..], "--least cost needs a limit on iteration_time"),
        ("cost", "iteration_time>=6s", &[], "--least cost needs iteration_time at most"),
        ("iteration_time", "cost<=0", &[], "at most 0: no plan is so good"),
        ("cost", "iteration_time<=6", &[], "a duration without a unit"),
        ("iteration_time", "iteration_time<=6s", &[], "--least iteration_time needs a limit on cost"),
        ("cost", "iteration_time<=6s", &["--set", "minimise=time"], "set the same option"),
        ("cost", "iteration_time<=6s", &["--among", "1,2"], "--among is for a limit of several values"),
    ] {
        let (code, _, err) = text(least, until, more);
        assert!(code == 2 && err.contains(told), "{least} {until}: {err}");
    }
    let without = |devices: &str| {
        run(&["seek", "llama-3-8b", "--devices", devices, "--least", "cost", "--until", "iteration_time<=6s"]).2
    };
    assert!(without("16").contains("--least cost is for devices with prices"));
    assert!(without("16xh100:2,8xa100-80").contains("a100-80 has no price"));
}

#[test]
fn traffic_between_places_has_a_rate_a_latency_and_a_price() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let places = "16xh100@east:2.5,16xh100@west:2";
    let settings = ["between_places=1GB/s", "latency_between_places=30ms", "traffic_price=0.02"];
    let settings = settings.iter().flat_map(|setting| ["--set", setting]).collect::<Vec<_>>();
    let base = ["plan", "llama-3-8b", "--devices", places, "--batch", "128"];
    let (code, out, err) = run(&[&base[..], &settings, &["--output", &plan]].concat());
    assert!(code == 0 && out.contains("an hour and 0.3436 for traffic"), "{out}{err}");
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 0 && out.contains("and 0.3436 for traffic"), "{out}{err}");
    // The cheapest iteration sends nothing to another place.
    let (code, out, err) = run(&[&base[..], &settings, &["--set", "minimise=cost"]].concat());
    assert!(code == 0 && out.contains("0 of 16 h100@east, 16 of 16 h100@west"), "{out}{err}");
    // compare takes the settings, and a plan of an earlier version lacks those that it did not know.
    let compare = ["compare", "llama-3-8b", "--devices", places, "--batch", "128", "--plan", &plan];
    let (code, out, err) = run(&[&compare[..], &settings].concat());
    assert!(code == 0 && out.contains("plan.json"), "{out}{err}");
    let (code, _, err) = run(&compare);
    assert!(code == 2 && err.contains("plan.json has between_places 1GB/s, and the other plans have 0"), "{err}");
    let (code, _, err) = run(&[&base[..], &["--output", &plan, "--force"]].concat());
    assert_eq!(code, 0, "{err}");
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    let known = document["workload"]["training"]["settings"].as_object_mut().unwrap();
    assert!(known.remove("traffic_price").is_some() && known.remove("between_kinds").is_some());
    fs::write(&plan, document.to_string()).unwrap();
    let (code, out, err) = run(&compare);
    assert!(code == 0 && out.contains("plan.json"), "{out}{err}");
    for (devices, setting, told) in [
        ("16xh100,16xa100-80", "between_places=1GB/s", "between_places is for several places, and there is one"),
        ("16xh100@east,16xh100@west", "traffic_price=0.02", "h100@east has no price"),
        ("16xh100@east", "between_kinds=1GB/s", "between_kinds is for several kinds of devices, and there is one"),
        ("16", "traffic_price=0.02", "traffic_price is for several kinds of devices, and there is one"),
        ("16xh100@east,16xh100@west", "latency_between_places=fast", "must be a time, such as 30ms"),
    ] {
        let (code, _, err) = run(&["plan", "llama-3-8b", "--devices", devices, "--set", setting]);
        assert!(code == 2 && err.contains(told), "{devices} {setting}: {err}");
    }
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

#[test]
fn tokens_prices_and_failures_cost_a_training_on_kinds() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let on = |devices: &str, flags: &[&str]| {
        run(&[&["plan", "llama-3-8b", "--devices", devices, "--batch", "128", "--tokens", "1T"], flags].concat())
    };
    // 44.59 days of 16 devices for 2.50 and 32 for 1.20 an hour.
    let priced = "16xh100:2.50,32xa100-80:1.20";
    let (code, out, err) = on(priced, &["--output", &plan]);
    assert!(code == 0 && out.contains("1 T tokens: 44.59 days, costs 83.9 k"), "{out}{err}");
    let document: serde_json::Value = serde_json::from_slice(&fs::read(&plan).unwrap()).unwrap();
    let (days, total) = (document["cost"]["days"].as_f64().unwrap(), document["cost"]["total"].as_f64().unwrap());
    assert!((total / (days * 24.0 * (16.0 * 2.5 + 32.0 * 1.2)) - 1.0).abs() < 1e-9, "{days} days, {total}");
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 0 && out.starts_with("valid") && !err.contains("cost"), "{out}{err}");
    let (code, out, _) = on(priced, &["--failures-per-day", "2"]);
    assert!(code == 0 && out.contains("goodput 93.3%") && out.contains("costs 89.9 k"), "{out}");
    let (code, out, _) = on(KINDS, &[]);
    assert!(code == 0 && out.contains("44.59 days; prices in --devices give the cost"), "{out}");
    // Traffic between places is paid by the token.
    let (_, out, _) = on("16xh100@east:2.5,16xh100@west:2", &["--set", "traffic_price=0.02"]);
    let (_, free, _) = on("16xh100@east:2.5,16xh100@west:2", &[]);
    let total = |out: &str| {
        let text = out.lines().find(|line| line.contains("costs")).unwrap_or_default();
        text.split(['(', ' ']).filter_map(|word| word.parse::<f64>().ok()).next_back().unwrap()
    };
    let paid = total(&out) - total(&free);
    let of_token = 2.0 * 4096.0 * 2.0 * 0.02;
    assert!((paid / of_token - 1.0).abs() < 0.01, "{paid} for a billion tokens, {of_token}");
    for (arguments, told) in [
        (&["plan", "llama-3-8b", "--devices", priced, "--price", "2"][..], "--price is for one kind of device"),
        (&["plan", "llama-3-8b", "--devices", priced, "--restart-time", "5min"], "says nothing without failures"),
        (&["plan", "inputs/two-kinds.json", "--tokens", "1T"], "two-kinds states no tokens"),
    ] {
        let (code, _, err) = run(arguments);
        assert!(code == 2 && err.contains(told), "{arguments:?}: {err}");
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
fn explain_offers_no_plan_that_a_limit_on_the_cost_forbids() {
    let (code, out, err) = run(&["explain", "inputs/two-kinds.json", "--set", "most_cost=0.018"]);
    let row = out.lines().find(|line| line.contains("--batch 128")).unwrap_or_default();
    assert!(code == 0 && (row.is_empty() || row.contains("no plan")), "{out}{err}");
    let plan = run(&["plan", "inputs/two-kinds.json", "--batch", "128", "--set", "most_cost=0.018"]);
    assert_eq!(plan.0, 1, "there is none: {}", plan.1);
}

#[test]
fn a_cost_plan_without_prices_is_not_measured_in_seconds() {
    let folder = Folder::new();
    let plan = argument(&folder.path("plan.json"));
    let priced = ["plan", "llama-3-8b", "--devices", "16xh100:2.5,32xa100-80:1.2", "--batch", "128"];
    let (code, _, err) = run(&[&priced[..], &["--set", "minimise=cost", "--output", &plan]].concat());
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = run(&["check", "llama-3-8b", &plan, "--devices", KINDS]);
    assert!(code == 0 && out.contains("claims a cost of 0.0711/iteration, and the check agrees"), "{out}{err}");
    // Under other prices it costs more, and its file is still right.
    let (code, out, err) = run(&["check", "llama-3-8b", &plan, "--devices", "16xh100:5,32xa100-80:1.2"]);
    let told = "takes a cost of 0.0711/iteration under its own limits, a cost of 0.1422/iteration under these";
    assert!(code == 0 && out.contains(told), "{out}{err}");
    // A plan that was made without prices has no cost.
    let text = fs::read_to_string(&plan).unwrap();
    let without = text.replace("\"price_per_hour\": 2.5", "\"price_per_hour\": null");
    assert_ne!(without, text);
    fs::write(&plan, without).unwrap();
    let (code, out, err) = run(&["check", "llama-3-8b", &plan]);
    assert!(code == 1 && !out.contains("a cost of 6.") && out.contains("needs the price of each kind"), "{out}{err}");
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
fn a_sweep_tells_what_each_cluster_costs() {
    let folder = Folder::new();
    let (one, two) = ("16xh100:2.5", "16xh100@a:2.5,32xa100-80@b:1.2");
    let sweep = |more: &[&str]| run(&[&["sweep", "llama-3-8b", "--batch", "128", "--devices", one], more].concat());
    // The rate between places says nothing of the cluster in one.
    let (code, out, err) = sweep(&["--devices", two, "--set", "between_places=1GB/s", "--tokens", "1T"]);
    assert!(code == 0 && err.contains("changes nothing of llama-3-8b on 16xh100:2.5"), "{err}");
    let head = out.lines().find(|line| line.contains("an hour")).unwrap_or_default();
    assert!(head.contains("iteration cost") && head.contains("days for 1 T"), "{out}");
    let row = out.lines().find(|line| line.contains("on 16xh100@a") && line.contains(" s ")).unwrap_or_default();
    assert!(row.contains("78.40") && row.contains("0.09408"), "{out}");
    let (code, out, _) = sweep(&["--devices", two, "--csv"]);
    assert!(code == 0 && out.contains("16xh100@a (8 x 2), 32xa100-80@b (8 x 4)\",78.4,0.0,"), "{out}");
    assert!(!out.contains("e308") && !out.contains("1e30"), "{out}");
    // A table of an earlier version has no prices.
    let table = argument(&folder.path("sweep.csv"));
    let older: Vec<String> = out.lines().map(|row| row.replace("price_per_hour,traffic_price,", "")).collect();
    let older: Vec<String> =
        older.iter().map(|row| row.replace(",40.0,0.0,", ",").replace(",78.4,0.0,", ",")).collect();
    fs::write(&table, older.join("\n")).unwrap();
    let (code, out, err) = sweep(&["--devices", two, "--resume", &table]);
    assert!(code == 0 && out.contains("2 of them from the file"), "{out}{err}");
    let along = ["sweep", "llama-3-8b", "--batch", "64,128", "--figure", "cost", "--devices"];
    let (code, out, err) = run(&[&along[..], &[one]].concat());
    assert!(code == 0 && out.contains("cost of an iteration by batch") && out.contains("0.0711"), "{out}{err}");
    let (code, _, err) = run(&[&along[..], &["16xh100"]].concat());
    assert!(code == 2 && err.contains("--figure cost is for devices with prices"), "{err}");
    let (code, out, err) = run(&[&along[..], &[one, "--devices", "8xh100"]].concat());
    assert!(code == 0 && !out.contains("no plan"), "{out}{err}");
    let (code, _, err) = run(&[&along[..], &[one, "--devices", "8xh100:2", "--tokens", "1T"]].concat());
    assert!(code == 2 && err.contains("add columns to a table of one line"), "{err}");
    // Clusters without prices beside one with.
    let (code, out, err) = sweep(&["--devices", "8xh100"]);
    assert!(
        code == 0 && out.lines().filter(|line| line.contains("llama-3-8b on") && line.contains(" -")).count() == 1,
        "{out}{err}"
    );
    for (more, told) in [
        (&["--devices", one][..], "--devices 16xh100:2.5 is given twice"),
        (&["--devices", two, "--set", "minimise=both"], "a sweep shows one plan"),
        (&["--devices", "8xh100:2", "--set", "between_places=1GB/s"], "is for several places, and there is one"),
    ] {
        let (code, _, err) = sweep(more);
        assert!(code == 2 && err.contains(told), "{more:?}: {err}");
    }
}

#[test]
fn two_files_of_one_name_keep_their_clusters() {
    let folder = Folder::new();
    let copy = |place: &str| {
        fs::create_dir(folder.path(place)).unwrap();
        let path = folder.path(&format!("{place}/two-kinds.json"));
        fs::copy("inputs/two-kinds.json", &path).unwrap();
        argument(&path)
    };
    let (code, out, err) =
        run(&["sweep", &copy("x"), &copy("y"), "--devices", "4xfast,8xslow", "--devices", "8xfast,8xslow", "--csv"]);
    let mut names: Vec<&str> = out.lines().skip(1).filter_map(|row| row.split(",joint").next()).collect();
    names.sort_unstable();
    names.dedup();
    assert!(code == 0 && names.len() == 4, "{names:?} {err}");
}

#[test]
fn cheaper_plans_are_in_the_document() {
    let base = ["plan", "llama-3-8b", "--devices", "16xh100:2.5,32xa100-80:1.2", "--batch", "128"];
    let (code, out, err) = run(&[&base[..], &["--set", "minimise=both", "--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let cheaper = document["cheaper"].as_array().unwrap();
    let figure = |name: &str| cheaper.iter().map(|plan| plan[name].as_f64().unwrap()).collect::<Vec<_>>();
    assert!(figure("iteration_s").is_sorted() && cheaper.len() == 3, "{cheaper:?}");
    assert!(figure("cost").is_sorted_by(|a, b| a > b) && figure("price_per_hour")[2] == 40.0, "{cheaper:?}");
    let layers = |plan: &serde_json::Value| plan["stages"].as_array().map_or(0, Vec::len);
    assert_eq!(cheaper.iter().map(layers).collect::<Vec<_>>(), [2, 2, 1]);
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
