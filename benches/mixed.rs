//! Planning a chain of layers on two kinds of devices, in clusters of the sizes of Sailor's traces (SOSP 2025).

use std::collections::BTreeMap;

use plantui::{
    family::kinds::{self, KindCount},
    planner::{
        Search,
        joint::mixed::{self, MixedSpace},
    },
    workload::{
        TrainingProfile, WorkloadFormat,
        mixed::{DeviceKind, Divided, KindCosts, KindLinks, LayerCost, LinkRate, MixedProfile, Reductions, TimeRule},
        training,
    },
};

/// Layers of a model of 350 M parameters, with its embedding and its head.
const LAYERS: usize = 26;
/// Forward pass of a layer for one sequence, seconds; memory, bytes: of a fast and a slow kind.
const KINDS: [(&str, f64, f64); 2] = [("a100-40", 2.1e-3, 40e9), ("v100-16", 7.2e-3, 16e9)];
/// Parameters of the embedding and of a layer.
const PARAMETERS: [f64; 2] = [53.6e6, 12.6e6];

fn main() {
    divan::main();
}

/// Cluster with so many devices of each kind.
fn cluster(counts: [u32; 2]) -> MixedProfile {
    let kind = |(&(id, _, memory_bytes), count): (&(&str, f64, f64), u32)| DeviceKind {
        id: id.into(),
        count,
        machine: 4,
        memory_bytes,
        price_per_hour: None,
    };
    let (mut costs, mut rates) = (vec![], BTreeMap::new());
    for (kind, (_, forward_s, _)) in KINDS.iter().enumerate() {
        for tensor in [1, 2, 4] {
            for micro_batch in [1, 2, 4, 8] {
                // Tensor parallelism and small microbatches are less efficient.
                let forward_s = forward_s * f64::from(micro_batch).powf(0.9) / f64::from(tensor).powf(0.8);
                let layer = |layer| LayerCost {
                    forward_s,
                    backward_s: 2.6 * forward_s,
                    update_s: Divided::whole(3e-3),
                    state_bytes: Divided::whole(24.0 * PARAMETERS[usize::from(layer > 0)] / f64::from(tensor)),
                    activation_bytes: 3.6e8 * f64::from(micro_batch) / f64::from(tensor),
                };
                let layers = (0..LAYERS).map(layer).collect();
                costs.push(KindCosts { kind, tensor, micro_batch, recompute: false, layers, reserve_bytes: 2e9 });
            }
            for other in 0..KINDS.len() {
                for degree in [1, 2, 4] {
                    let bytes_per_s = if kind == other { 1.2e9 } else { 0.9e9 };
                    let rate = LinkRate::Constant { bytes_per_s, latency_s: 1e-5 };
                    rates.insert(((kind, tensor), (other, degree)), rate);
                }
            }
        }
    }
    MixedProfile {
        kinds: KINDS.iter().zip(counts).map(kind).collect(),
        costs,
        output_bytes: vec![8.4e6; LAYERS],
        gradient_bytes: (0..LAYERS).map(|layer| 4.0 * PARAMETERS[usize::from(layer > 0)]).collect(),
        links: KindLinks { rates, reductions: Reductions::Messages { bucket_bytes: 5e8 }, prices: [].into() },
        rule: TimeRule::Stages,
        growth: 0.0,
        fixed_s: 0.0,
        exposed: 1.0,
        origin: None,
        remarks: vec![],
    }
}

#[divan::bench(args = [[32, 96], [80, 240], [128, 384]])]
fn plan(bencher: divan::Bencher<'_, '_>, counts: [u32; 2]) {
    let cluster = cluster(counts);
    let space = MixedSpace::all(cluster.devices());
    bencher.bench_local(|| mixed::plan(&cluster, 1024, &space, &Search::new(None, 0)).expect("two kinds are few"));
}

/// llama-3-70b on 64 H100 and 128 A100: without the first pass it takes 2.5 times the time.
#[divan::bench(sample_count = 5)]
fn model_to_be_trained(bencher: divan::Bencher<'_, '_>) {
    let model = training::published::find("llama-3-70b").expect("a published name");
    let profile = TrainingProfile::new(model, training::hardware::find("h100").expect("a preset"));
    let one = profile.into_workload("llama-3-70b", "llama-3-70b", WorkloadFormat::Training, None);
    let asked = KindCount::parse("64xh100,128xa100-80").expect("kinds").expect("numbers of kinds");
    let workload = kinds::over(&one, &asked).expect("costs on both kinds");
    let profile = workload.mixed().expect("several kinds");
    let space = MixedSpace::all(profile.devices());
    bencher.bench_local(|| mixed::plan(profile, 512, &space, &Search::new(None, 0)).expect("two kinds are few"));
}
