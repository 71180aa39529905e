//! Clusters of several kinds of devices: the closed form against Sailor's simulator, plans against every plan of small
//! cases, and against the published planners on Sailor's clusters.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use serde_json::Value;

use crate::common::reference;
use plantui::{
    family::{
        self,
        kinds::{self, KindCount},
        mixed::iteration::{KindPipeline, KindStage, KindStageCost},
        training::{self, Estimate, Layout, Recompute, hardware, published},
    },
    planner::{
        Search,
        joint::mixed::{self, MixedGoal, MixedPlan, MixedSpace},
    },
    random::SplitMix,
    workload::{
        self, Profile, TrainingProfile, Workload, convert,
        formats::sailor,
        mixed::{
            DeviceKind, Divided, KindCosts, KindLinks, LayerCost, LinkRate, MixedProfile, Reductions, RingRate,
            TimeRule,
        },
        sailor::{SailorModel, ZoneDevices},
    },
};

/// Costs of a published model on these devices.
fn sailor(model: &str, layers: usize, devices: &[(&str, u32)]) -> MixedProfile {
    let tables = Arc::new(sailor::tables(&reference::root().join("sailor")).unwrap());
    let model = SailorModel { name: model.into(), layers };
    let price = |kind: &str| [("a100-40", 3.673385), ("v100-16", 2.859998)].into_iter().find(|own| own.0 == kind);
    let of = |&(kind, count): &(&str, u32)| ZoneDevices {
        kind: kind.into(),
        zone: None,
        count,
        price_per_hour: price(kind).map(|own| own.1),
    };
    tables.profile(&model, &devices.iter().map(of).collect::<Vec<_>>()).unwrap()
}

/// Plan on all devices.
fn plan(profile: &MixedProfile, batch: u32, search: &Search) -> Result<MixedPlan, mixed::TooManyKinds> {
    mixed::plan(profile, batch, &MixedSpace::all(profile.devices()), search)
}

/// Stages of these numbers of layers, each with its kind and tensor degree.
fn stages(of: &[(usize, usize, u32)]) -> Vec<KindStage> {
    let mut first = 0;
    let mut stage = |&(count, kind, tensor): &(usize, usize, u32)| {
        first += count;
        KindStage { layers: first - count..first, kind, tensor, recompute: false }
    };
    of.iter().map(&mut stage).collect()
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn the_closed_form_is_that_of_sailors_simulator() {
    let profile = sailor("OPT-350", 26, &[("a100-40", 64), ("v100-16", 64)]);
    for (of, data, micro_batch, seconds) in [
        (vec![(26, 0, 2)], 16, 4, 7.709689),
        (vec![(13, 0, 1), (13, 0, 1)], 16, 4, 8.323385),
        (vec![(7, 1, 2), (7, 1, 2), (6, 1, 2), (6, 1, 2)], 8, 2, 14.065180),
        (vec![(10, 0, 1), (10, 0, 1), (6, 1, 2)], 16, 2, 7.647089),
    ] {
        let pipeline = KindPipeline { stages: stages(&of), data, micro_batch, batch: 1024 };
        let costs = pipeline.costs(&profile).unwrap();
        assert!(
            (pipeline.iteration_s(&profile, &costs) - seconds).abs() < 1e-6,
            "{of:?}: {}",
            pipeline.iteration_s(&profile, &costs)
        );
    }
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn plans_are_faster_than_those_of_published_planners() {
    // Sailor's planner, and the most that a plan may take; seconds.
    for (model, batch, layers, devices, published_s, most_s) in [
        ("OPT-350", 1024, 26, vec![("a100-40", 32), ("v100-16", 96)], 5.884, 5.05),
        ("OPT-350", 1024, 26, vec![("a100-40", 80), ("v100-16", 240)], 2.771, 2.43),
        ("OPT-350", 1024, 26, vec![("a100-40", 128), ("v100-16", 384)], 1.912, 1.912),
        ("OPT-350", 1024, 26, vec![("a100-40", 32)], 7.993, 7.71),
    ] {
        let profile = sailor(model, layers, &devices);
        let plan = plan(&profile, batch, &Search::new(None, 0)).unwrap();
        let pipeline = plan.pipeline.expect("there is a plan");
        let costs = pipeline.costs(&profile).unwrap();
        let gap = 1.0 - plan.bound / plan.value;
        let told = format!("{devices:?}: {:.4} s, gap {gap:.5}, {} cases: {pipeline:?}", plan.value, plan.cases);
        println!("{told}");
        assert_eq!(pipeline.iteration_s(&profile, &costs), plan.value, "{told}");
        assert!(plan.value <= most_s && plan.value < published_s, "{told}");
        assert!((0.0..0.03).contains(&gap), "{told}");
        for (stage, cost) in pipeline.stages.iter().zip(&costs) {
            assert!(cost.memory_bytes() <= profile.kinds[stage.kind].memory_bytes, "{told}");
        }
        for (taken, kind) in pipeline.devices(profile.kinds.len()).into_iter().zip(&profile.kinds) {
            assert!(taken <= u64::from(kind.count), "{told}");
        }
    }
}

/// A plan that was run: its stages, if each is on one kind with one tensor degree, and the measured seconds.
fn measured(plan: &Value, profile: &MixedProfile) -> Option<(KindPipeline, f64)> {
    let pipeline = plan["pipeline_list"].as_array().filter(|all| all.len() == 1)?[0].clone();
    let same = |values: &Value| {
        let values = values.as_array()?;
        let first = values.first()?;
        values.iter().all(|other| other == first).then(|| first.clone())
    };
    let data = same(&pipeline["dp"])?.as_u64()? as u32;
    let stage = |(layers, replicas): (&Value, &Value)| {
        let replica = same(replicas)?;
        let device = same(&replica[0])?;
        let kind = profile
            .kinds
            .iter()
            .position(|kind| device[0].as_str().is_some_and(|id| id.eq_ignore_ascii_case(&kind.id)))?;
        let layers = layers.as_array()?;
        let first = layers.first()?.as_u64()? as usize;
        let tensor = replica[1].as_u64()? as u32;
        Some(KindStage { layers: first..first + layers.len(), kind, tensor, recompute: false })
    };
    let stages = pipeline["layers_per_stage"].as_array()?.iter().zip(pipeline["tmp_per_stage"].as_array()?);
    let stages = stages.map(stage).collect::<Option<_>>()?;
    let number = |name: &str| plan[name].as_u64().map(|value| value as u32);
    let (micro_batch, batch) = (number("mbs")?, number("gbs")?);
    Some((KindPipeline { stages, data, micro_batch, batch }, plan["real"].as_f64()?))
}

/// Runs of Sailor's authors on GH200 and on three kinds of older devices.
#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn measured_runs_are_near_their_prediction() {
    let root = reference::root().join("sailor/validation");
    let mut files = vec![];
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let kinds = [("gh-96", 256), ("rtx-3090", 64), ("rtx-2080", 64), ("titan-rtx", 64)];
    let opt = sailor("OPT-350", 26, &kinds);
    let neo = sailor("GPT-Neo-2.7", 34, &kinds[..1]);
    let mut errors: Vec<f64> = vec![];
    for file in &files {
        let plan: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let profile = if file.to_string_lossy().contains("GPT-NEO") { &neo } else { &opt };
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        let Some((pipeline, seconds)) = measured(&plan, profile) else {
            println!("{name}: stages on several kinds, or no measurement");
            continue;
        };
        let Some(costs) = pipeline.costs(profile) else {
            println!("{name}: no times in the tables");
            continue;
        };
        let error = pipeline.iteration_s(profile, &costs) / seconds - 1.0;
        println!("{name}: {seconds:.3} s, {:+.1} %", 100.0 * error);
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    println!("{} runs: mean {:.1} %, median {:.1} %", errors.len(), 100.0 * mean, 100.0 * errors[errors.len() / 2]);
    assert!(errors.len() >= 20 && mean < 0.25, "{errors:?}");
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn an_iteration_costs_the_devices_that_it_takes() {
    let mut profile = sailor("OPT-350", 26, &[("a100-40", 32), ("v100-16", 96)]);
    let taken = stages(&[(9, 1, 4), (4, 1, 2), (13, 0, 2)]);
    let pipeline = KindPipeline { stages: taken, data: 16, micro_batch: 2, batch: 1024 };
    assert_eq!(pipeline.devices(2), [32, 96]);
    let cost = pipeline.cost(&profile, 3600.0).unwrap();
    assert!((cost - (32.0 * 3.673385 + 96.0 * 2.859998)).abs() < 1e-9, "{cost}");
    profile.kinds[1].price_per_hour = None;
    assert_eq!(pipeline.cost(&profile, 3600.0), None, "one price is not known");
}

#[test]
#[ignore = "reads the published inputs: PLANTUI_REFERENCE"]
fn what_the_tables_lack_is_named() {
    let tables = Arc::new(sailor::tables(&reference::root().join("sailor")).unwrap());
    let device = |kind: &str, zone: Option<&str>| {
        vec![ZoneDevices { kind: kind.into(), zone: zone.map(Into::into), count: 8, price_per_hour: None }]
    };
    for (model, layers, devices, part) in [
        ("GPT-5", 26, device("a100-40", None), "no tables for the model `GPT-5`"),
        ("OPT-350", 27, device("a100-40", None), "no sizes for all 27 layers of `OPT-350`"),
        ("OPT-350", 26, device("h100", None), "no times of `OPT-350` on `h100`"),
        ("OPT-350", 26, device("a100-40", Some("mars")), "no links of A100-40 in mars"),
    ] {
        let error = tables.profile(&SailorModel { name: model.into(), layers }, &devices).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let model = SailorModel { name: "OPT-350".into(), layers: 26 };
    let both = [device("a100-40", Some("us-west1-b")), device("a100-40", Some("us-central1-a"))].concat();
    let profile = tables.profile(&model, &both).unwrap();
    let ids: Vec<&str> = profile.kinds.iter().map(|kind| kind.id.as_str()).collect();
    assert_eq!(ids, ["a100-40@us-west1-b", "a100-40@us-central1-a"]);
    assert_eq!([profile.links.price(0, 1), profile.links.price(1, 1)], [0.02, 0.0], "dollars for a GB");
}

/// A sequence's activations go to the next stage, and gradients of the same size come back.
#[test]
fn traffic_between_places_is_a_part_of_the_cost() {
    let kinds = ["h100@east", "h100@west"];
    let kinds = kinds.map(|id| KindCount { id: id.into(), count: 8, price_per_hour: Some(2.0) });
    let model = workload::load(Path::new("llama-3-8b")).unwrap();
    let model = dial_set(&model, "traffic_price", "0.02");
    let profile = kinds::over(&model, &kinds).unwrap().mixed().unwrap().clone();
    let on = |second: usize| KindPipeline {
        stages: stages(&[(17, 0, 2), (17, second, 2)]),
        data: 2,
        micro_batch: 1,
        batch: 16,
    };
    // 16 sequences of 8192 tokens, each of 4096 numbers of two bytes, there and back.
    let bytes = 16.0 * 8192.0 * 4096.0 * 2.0 * 2.0;
    assert!((on(1).traffic_cost(&profile) - 0.02 * bytes / 1e9).abs() < 1e-12, "{}", on(1).traffic_cost(&profile));
    assert_eq!(on(0).traffic_cost(&profile), 0.0);
    let cost = on(1).cost(&profile, 3600.0).unwrap();
    assert!((cost - 16.0 / 2.0 * 2.0 - 0.02 * bytes / 1e9).abs() < 1e-9, "{cost}");
}

fn dial_set(workload: &Workload, name: &str, value: &str) -> Workload {
    family::of(workload).with_setting(workload, name, value).unwrap()
}

/// Workload of the example file.
fn example() -> Workload {
    workload::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs/two-kinds.json")).unwrap()
}

#[test]
fn a_file_is_written_as_it_was_read() {
    let mut read = example();
    let Profile::Mixed(profile) = &mut read.profile else { panic!("costs on several kinds") };
    profile.links.prices.insert((0, 1), 0.02);
    let again = workload::load_bytes(convert::text(&read).as_bytes(), &read.source, &read.name).unwrap();
    assert_eq!(again, read);
    let kinds =
        [("h100", 16), ("a100-80", 32)].map(|(id, count)| KindCount { id: id.into(), count, price_per_hour: None });
    let model = workload::load(Path::new("llama-3-8b")).unwrap();
    let derived = kinds::over(&model, &kinds).unwrap();
    let again = workload::load_bytes(convert::text(&derived).as_bytes(), "file", "llama").unwrap();
    let (own, read) = (derived.mixed().unwrap(), again.mixed().unwrap());
    assert_eq!((&own.kinds, &own.costs, &own.links), (&read.kinds, &read.costs, &read.links));
}

#[test]
fn what_a_file_has_wrong_is_named() {
    let text = convert::text(&example());
    for (good, bad, part) in [
        ("\"machine\": 4.0", "\"machine\": 0", "kinds[0].machine is 0, must be a whole number from 1"),
        ("\"id\": \"slow\"", "\"id\": \"fast\"", "kinds[1].id is `fast`"),
        ("\"tensor\": 2.0", "\"tensor\": 3", "is 3, and a machine of fast has 4 devices"),
        ("\"micro_batch\": 2.0", "\"micro_batch\": 1", "costs[1] has the kind, degree, micro-batch"),
        ("\"forward_s\": 0.001", "\"forward_s\": -1", "costs[0].layers[0].forward_s is -1"),
        ("\"from\": \"fast\"", "\"from\": \"quick\"", "links[0].from is `quick`"),
        ("\"bytes_per_s\": 12000000000.0", "\"bytes_per_s\": 0", "links[0].bytes_per_s is 0"),
        ("\"batch\": 64.0", "\"batch\": 0", "batch is 0"),
        ("\"latency_s\": 0.00002", "\"price_per_gb\": 1, \"latency_s\": 0.00002", "the price of traffic within a kind"),
        ("\"latency_s\": 0.00002", "\"price_per_gb\": -1, \"latency_s\": 0.00002", "links[0].price_per_gb is -1"),
        ("plantui.mixed/1", "plantui.mixed/9", ""),
    ] {
        let changed = text.replacen(good, bad, 1);
        assert_ne!(changed, text, "{good}");
        let error = workload::load_bytes(changed.as_bytes(), "a.json", "a").unwrap_err().to_string();
        assert!(error.contains(part), "{bad}: {error}");
    }
}

/// On one kind, the closed form of derived costs is near the prediction for a model to be trained.
#[test]
fn one_kind_is_as_predicted_for_it() {
    for (model, hardware, tensor, stages, data, micro_batch, batch) in [
        ("llama-3-8b", "h100", 2, 2, 4, 1, 128),
        ("llama-3-8b", "a100-80", 4, 1, 4, 1, 64),
        ("llama-3-70b", "h100", 8, 8, 2, 1, 128),
        ("llama-2-13b", "a100-80", 4, 4, 1, 2, 64),
    ] {
        let accelerator = hardware::find(hardware).unwrap();
        let profile = TrainingProfile::new(published::find(model).unwrap(), accelerator);
        let layout = Layout { tensor, pipeline: stages, data, micro_batch, ..Layout::ONE };
        let mut run = profile.run(&profile.configuration(layout, Recompute::None), batch);
        run.settings.sequence_parallel &= tensor > 1;
        let devices = layout.devices();
        let estimate = Estimate::of(&profile.model, &run, &accelerator, devices, None).unwrap();
        let on_one = KindCount { id: hardware.into(), count: devices as u32, price_per_hour: None };
        let mixed = training::kinds::profile(&profile, &[(accelerator, on_one.clone())]).unwrap();
        let count = profile.model.layers.len() / stages as usize;
        let own = |stage: u32| {
            let first = if stage == 0 { 0 } else { 1 + count * stage as usize };
            let end = if stage + 1 == stages { profile.nodes() } else { 1 + count * (stage as usize + 1) };
            KindStage { layers: first..end, kind: 0, tensor, recompute: false }
        };
        let pipeline = KindPipeline { stages: (0..stages).map(own).collect(), data, micro_batch, batch };
        let costs = pipeline.costs(&mixed).unwrap();
        let (seconds, predicted_s) = (pipeline.iteration_s(&mixed, &costs), estimate.iteration_s);
        assert!((seconds / predicted_s - 1.0).abs() < 0.03, "{model} on {hardware}: {seconds} s, {predicted_s} s");
        let most = costs.iter().map(KindStageCost::memory_bytes).fold(0.0, f64::max);
        let predicted = estimate.memory_bytes + run.settings.reserve_bytes;
        assert!((most / predicted - 1.0).abs() < 0.05, "{model} on {hardware}: {most:e} bytes, {predicted:e}");
    }
}

#[test]
fn a_stopped_search_bounds_nothing_that_it_has_not_seen() {
    let (profile, search) = (random(&mut SplitMix::new(1)), Search::new(None, 0));
    search.cancel();
    let plan = plan(&profile, 8, &search).unwrap();
    assert!(plan.stopped && plan.pipeline.is_none() && plan.bound == 0.0, "{plan:?}");
}

#[test]
fn five_kinds_are_refused() {
    let mut profile = random(&mut SplitMix::new(1));
    profile.kinds.extend(std::iter::repeat_n(profile.kinds[0].clone(), 3));
    let error = plan(&profile, 8, &Search::new(None, 0)).unwrap_err().to_string();
    assert_eq!(error, "has 5 kinds of devices; at most 4 are planned: leave some out");
}

/// A small cluster of two kinds with costs in whole numbers.
fn random(random: &mut SplitMix) -> MixedProfile {
    let layers = 1 + random.below(6);
    let mut below = |most: usize| random.below(most) as f64;
    let kinds: Vec<DeviceKind> = (0..2)
        .map(|kind| DeviceKind {
            id: ["a", "b"][kind].into(),
            count: below(7) as u32 + u32::from(kind == 0),
            machine: 2,
            memory_bytes: 30.0 + below(120),
            price_per_hour: None,
        })
        .collect();
    let rule = if below(2) == 0.0 { TimeRule::Stages } else { TimeRule::Sailor };
    // Under Sailor's rules replicas divide nothing.
    let shares = |divided: f64| if rule == TimeRule::Stages { divided } else { 0.0 };
    let mut costs = vec![];
    for kind in 0..2 {
        for (tensor, recompute) in [(1, false), (2, false), (1, true)] {
            for micro_batch in [1, 2] {
                if below(8) == 0.0 || recompute && kind == 1 {
                    continue;
                }
                let layer = |_| LayerCost {
                    forward_s: 1.0 + below(9),
                    backward_s: 1.0 + below(9),
                    update_s: Divided { whole: below(3), divided: shares(below(3)) },
                    state_bytes: Divided { whole: 2.0 + below(9), divided: shares(below(6)) },
                    activation_bytes: if recompute { 0.5 } else { 1.0 + below(6) },
                };
                let layers = (0..layers).map(layer).collect();
                costs.push(KindCosts { kind, tensor, micro_batch, recompute, layers, reserve_bytes: below(5) });
            }
        }
    }
    let mut rates = BTreeMap::new();
    for from in 0..2 {
        for to in 0..2 {
            for (tensor, degree) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
                let rate = LinkRate::Constant { bytes_per_s: 1.0 + below(20), latency_s: below(3) };
                rates.insert(((from, tensor), (to, degree)), rate);
            }
        }
    }
    let mut sizes = || (0..layers).map(|_| 1.0 + below(20)).collect::<Vec<f64>>();
    let (output_bytes, gradient_bytes) = (sizes(), sizes());
    let mut ring = |key| (key, RingRate { within: 5.0 + below(20), across: 1.0 + below(9), machine: 2 });
    let rings = [(0, 1), (0, 2), (1, 1), (1, 2)].map(&mut ring);
    let reductions =
        if below(2) == 0.0 { Reductions::Messages { bucket_bytes: 50.0 } } else { Reductions::Rings(rings.into()) };
    MixedProfile {
        kinds,
        costs,
        output_bytes,
        gradient_bytes,
        links: KindLinks { rates, reductions, prices: BTreeMap::new() },
        rule,
        growth: below(2) / 10.0,
        fixed_s: below(3),
        exposed: if below(2) == 0.0 { 1.0 } else { 0.5 },
        origin: None,
        remarks: vec![],
    }
}

/// Profile with prices of devices and of the traffic between the kinds.
fn priced(mut profile: MixedProfile, random: &mut SplitMix) -> MixedProfile {
    profile.kinds.iter_mut().for_each(|kind| kind.price_per_hour = Some(360.0 * (1.0 + random.below(9) as f64)));
    for ends in [(0, 1), (1, 0)] {
        profile.links.prices.insert(ends, random.below(3) as f64 * 2.5e6);
    }
    profile
}

/// Least value of all pipelines with the goal and the limits on time and cost of a space; infinite if none fits.
fn of_all(profile: &MixedProfile, batch: u32, space: &MixedSpace) -> f64 {
    let layers = profile.output_bytes.len();
    let mut types: Vec<(usize, u32, bool)> =
        profile.costs.iter().map(|costs| (costs.kind, costs.tensor, costs.recompute)).collect();
    types.sort_unstable();
    types.dedup();
    let mut best = f64::INFINITY;
    // Bit i of `cuts`: a stage ends after layer i.
    for cuts in 0..1u32 << (layers - 1) {
        let mut counts = vec![];
        let mut first = 0;
        for layer in 0..layers {
            if layer + 1 == layers || cuts >> layer & 1 == 1 {
                counts.push(layer + 1 - first);
                first = layer + 1;
            }
        }
        for choice in 0..types.len().pow(counts.len() as u32) {
            let mut first = 0;
            let of = |(stage, &count): (usize, &usize)| {
                let (kind, tensor, recompute) = types[choice / types.len().pow(stage as u32) % types.len()];
                first += count;
                KindStage { layers: first - count..first, kind, tensor, recompute }
            };
            let stages: Vec<KindStage> = counts.iter().enumerate().map(of).collect();
            for data in 1..=profile.devices().min(batch) {
                for micro_batch in [1, 2] {
                    if profile.rule == TimeRule::Stages && !batch.is_multiple_of(data * micro_batch) {
                        continue;
                    }
                    let pipeline = KindPipeline { stages: stages.clone(), data, micro_batch, batch };
                    let there = pipeline
                        .devices(2)
                        .into_iter()
                        .zip(&profile.kinds)
                        .all(|(taken, kind)| taken <= u64::from(kind.count));
                    let Some(costs) = there.then(|| pipeline.costs(profile)).flatten() else { continue };
                    let fits = |(stage, cost): (&KindStage, &KindStageCost)| {
                        cost.memory_bytes() <= profile.kinds[stage.kind].memory_bytes
                    };
                    let seconds = pipeline.iteration_s(profile, &costs);
                    let cost = pipeline.cost(profile, seconds).unwrap_or(0.0);
                    if stages.iter().zip(&costs).all(fits) && seconds <= space.most_s && cost <= space.most_cost {
                        best = best.min(if space.goal == MixedGoal::Cost { cost } else { seconds });
                    }
                }
            }
        }
    }
    best
}

#[test]
fn plans_are_as_fast_as_the_fastest_of_all() {
    let mut draw = SplitMix::new(7);
    let (mut feasible, mut exact) = (0, 0);
    for case in 0..300 {
        let profile = random(&mut draw);
        let batch = 1 + draw.below(12) as u32;
        let plan = plan(&profile, batch, &Search::new(None, 0)).unwrap();
        let best = of_all(&profile, batch, &MixedSpace::all(profile.devices()));
        assert_eq!(plan.pipeline.is_some(), best.is_finite(), "case {case}");
        if !best.is_finite() {
            continue;
        }
        feasible += 1;
        exact += usize::from((plan.value - best).abs() < 1e-9);
        assert!(plan.bound <= best + 1e-9 && best <= plan.value + 1e-9, "case {case}: {plan:?}, {best}");
    }
    println!("{exact} of {feasible} are exact");
    assert!(feasible > 150 && exact * 100 >= feasible * 95, "{exact} of {feasible}");
}

#[test]
fn plans_are_as_cheap_as_the_cheapest_of_all() {
    let mut draw = SplitMix::new(13);
    let (mut feasible, mut exact, mut limited, mut traded) = (0, 0, 0, 0);
    for case in 0..150 {
        let plain = random(&mut draw);
        let profile = priced(plain, &mut draw);
        let batch = 1 + draw.below(8) as u32;
        let all = MixedSpace::all(profile.devices());
        let (fastest_s, least) =
            (of_all(&profile, batch, &all), of_all(&profile, batch, &MixedSpace { goal: MixedGoal::Cost, ..all }));
        for space in [
            MixedSpace { goal: MixedGoal::Cost, ..all },
            MixedSpace { goal: MixedGoal::Cost, most_s: 1.2 * fastest_s, ..all },
            MixedSpace { most_cost: 1.1 * least, ..all },
            // Limits that the best plan just keeps.
            MixedSpace { goal: MixedGoal::Cost, most_s: fastest_s, ..all },
            MixedSpace { most_cost: least, ..all },
        ] {
            let found = mixed::plan(&profile, batch, &space, &Search::new(None, 0)).unwrap();
            let best = of_all(&profile, batch, &space);
            assert_eq!(found.pipeline.is_some(), best.is_finite(), "case {case}");
            let Some(pipeline) = &found.pipeline else { continue };
            feasible += 1;
            exact += usize::from((found.value - best).abs() < 1e-9);
            limited += usize::from(space.most_cost.is_finite() && best > fastest_s + 1e-9);
            traded += usize::from(pipeline.traffic_cost(&profile) > 0.0);
            assert!(found.bound <= best + 1e-9 && best <= found.value + 1e-9, "case {case}: {found:?}, {best}");
        }
    }
    println!("{exact} of {feasible} are exact; {limited} limited by cost, {traded} pay for traffic");
    assert!(feasible > 250 && exact * 100 >= feasible * 95, "{exact} of {feasible}");
    assert!(limited > 100 && traded >= 10, "{limited}, {traded}");
}

#[test]
fn more_devices_are_never_slower() {
    let mut draw = SplitMix::new(11);
    for case in 0..100 {
        let mut profile = random(&mut draw);
        let before = plan(&profile, 8, &Search::new(None, 0)).unwrap();
        profile.kinds[draw.below(2)].count += 1;
        let after = plan(&profile, 8, &Search::new(None, 0)).unwrap();
        assert!(after.bound <= before.value + 1e-9, "case {case}: {before:?}, {after:?}");
    }
}

#[test]
fn settings_narrow_the_plans() {
    let mut draw = SplitMix::new(5);
    let mut narrowed = 0;
    for case in 0..100 {
        let profile = random(&mut draw);
        let all = MixedSpace::all(profile.devices());
        let free = mixed::plan(&profile, 8, &all, &Search::new(None, 0)).unwrap();
        for space in [
            MixedSpace { devices: 3, ..all },
            MixedSpace { tensor: Some(1), ..all },
            MixedSpace { data: Some(2), ..all },
            MixedSpace { micro_batch: Some(2), ..all },
            MixedSpace { stages: Some(2), ..all },
            MixedSpace { recompute: Some(false), ..all },
            MixedSpace { uniform: true, ..all },
            MixedSpace { headroom: 0.3, ..all },
        ] {
            let own = mixed::plan(&profile, 8, &space, &Search::new(None, 0)).unwrap();
            let Some(pipeline) = own.pipeline else { continue };
            let told = format!("case {case}: {space:?}, {pipeline:?}");
            narrowed += usize::from(own.value > free.value + 1e-9);
            assert!(own.value >= free.bound - 1e-9, "{told}");
            let (stages, costs) = (&pipeline.stages, pipeline.costs(&profile).unwrap());
            assert!(pipeline.devices(2).iter().sum::<u64>() <= u64::from(space.devices), "{told}");
            assert!(space.tensor.is_none_or(|tensor| stages.iter().all(|stage| stage.tensor == tensor)), "{told}");
            assert!(space.data.is_none_or(|data| pipeline.data == data), "{told}");
            assert!(space.micro_batch.is_none_or(|size| pipeline.micro_batch == size), "{told}");
            assert!(space.stages.is_none_or(|count| stages.len() == count), "{told}");
            assert!(space.recompute.is_none_or(|again| stages.iter().all(|stage| stage.recompute == again)), "{told}");
            assert!(!space.uniform || stages.iter().all(|stage| stage.tensor == stages[0].tensor), "{told}");
            for (stage, cost) in stages.iter().zip(&costs) {
                let room = profile.kinds[stage.kind].memory_bytes * (1.0 - space.headroom);
                assert!(cost.memory_bytes() <= room + 1e-9, "{told}");
            }
        }
    }
    assert!(narrowed > 100, "{narrowed}");
}
