//! Prices of several kinds of devices: costs, traffic, limits on both, and sweeps over clusters.

use std::fs;

use super::{
    Folder, argument,
    kinds::{KINDS, run},
};

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
