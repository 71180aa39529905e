//! Experiments of the papers as sweeps over their published inputs, and one of our own over four networks.
//!
//! Tarnawski, Narayanan, Phanishayee: *Piper*, NeurIPS 2021: figures 1 to 3 and the tables of GNMT and ResNet
//! (<https://github.com/msr-fiddle/piper>). Tarnawski et al.: *Efficient Algorithms for Device Placement of DNN Graph
//! Operators*, NeurIPS 2020: the tables of throughput and latency (<https://github.com/msr-fiddle/dnn-partitioning>).
//! Every study takes the folder that holds the clones. Piper selects modes by the published rule here
//! (`knapsack=greedy`), so its values are comparable with the published ones.

mod extended;

use std::{path::Path, sync::Arc};

use super::{ChartFigure, LimitValues, Series, Sweep, SweepPoint};
use plantui_core::{
    cluster::{GivenLimits, LimitKind, Limits},
    source::LoadError,
    units::GIB,
    workload::{self, Workload},
};
use plantui_planners::OptionValue;

/// Study of a paper.
#[derive(Debug, Clone, Copy)]
pub struct Paper {
    /// Id for `--study`.
    pub id: &'static str,
    /// Content in one line.
    pub title: &'static str,
    /// Figure of its chart.
    pub figure: ChartFigure,
    /// Builds the sweep from the folder with the published inputs.
    build: fn(&Path) -> Result<Sweep, LoadError>,
}

/// All studies.
pub static ALL: [Paper; 9] = [
    Paper {
        id: "piper-figure-1",
        title: "Piper, figure 1: time per sample of BERT-32 by devices and memory, with a dimension switched off",
        figure: ChartFigure::Objective,
        build: figure_1,
    },
    Paper {
        id: "piper-figure-2",
        title: "Piper, figure 2: time per sample of BERT-32 for every number of devices up to 2048",
        figure: ChartFigure::Objective,
        build: figure_2,
    },
    Paper {
        id: "piper-figure-2-replicas",
        title: "Piper, figure 2: time per sample of BERT-32 on 2048 devices by the limit on replicas",
        figure: ChartFigure::Objective,
        build: figure_2_replicas,
    },
    Paper {
        id: "piper-figure-3",
        title: "Piper, figure 3: planning time of BERT with 32 to 96 layers",
        figure: ChartFigure::Seconds,
        build: figure_3,
    },
    Paper {
        id: "piper-gnmt",
        title: "Piper, GNMT table: time per sample by devices and memory",
        figure: ChartFigure::Objective,
        build: gnmt,
    },
    Paper {
        id: "piper-resnet",
        title: "Piper, ResNet table: time per sample by devices and memory",
        figure: ChartFigure::Objective,
        build: resnet,
    },
    Paper {
        id: "placement-throughput",
        title: "Device placement, throughput table: load of the busiest device by algorithm",
        figure: ChartFigure::Objective,
        build: throughput,
    },
    Paper {
        id: "placement-latency",
        title: "Device placement, latency table: time of one sample by algorithm",
        figure: ChartFigure::Objective,
        build: latency,
    },
    Paper {
        id: "joint-headroom",
        title: "Simulated iterations of four networks: Piper, equal partition, Piper for engines, and Joint by \
            schedule",
        figure: ChartFigure::Iteration,
        build: headroom,
    },
];

/// Study with this id.
pub fn find(id: &str) -> Option<&'static Paper> {
    ALL.iter().find(|paper| paper.id == id)
}

impl Paper {
    /// Sweep with its workloads loaded from `folder`.
    ///
    /// # Errors
    /// [`LoadError`] if a published input is missing.
    pub fn sweep(&self, folder: &Path) -> Result<Sweep, LoadError> {
        (self.build)(folder)
    }
}

/// Bandwidth of the published plots and tables: 25 GiB/s.
const BANDWIDTH: f64 = 25.0 * GIB;
const BERT: &str = "piper/inputs/bert32a100.json";

/// Lines that Piper is compared with: itself without one dimension, and the equal partitions.
const PIPER: [&str; 4] = [
    "Piper:piper,knapsack=greedy",
    "noDP:piper,knapsack=greedy,data_parallel=false",
    "noTP:piper,knapsack=greedy,tensor_parallel=false",
    "noAR:piper,knapsack=greedy,recompute=never",
];
const EQUAL: [&str; 4] = [
    "equi-sep:equal-partition,variant=transformer",
    "equi-nosep:equal-partition,variant=transformer,separate_ends=never",
    "equi-noTP-sep:equal-partition,variant=transformer,tensor_parallel=false",
    "equi-noTP-nosep:equal-partition,variant=transformer,separate_ends=never,tensor_parallel=false",
];
const GENERAL: &str = "equi-noTP:equal-partition,variant=general,tensor_parallel=false";

fn load(folder: &Path, input: &str) -> Result<Arc<Workload>, LoadError> {
    workload::load(&folder.join(input)).map(Arc::new).map_err(|mut error| {
        if error.repair.is_empty() {
            error.repair = "name the folder that holds the clones of the published repositories".into();
        }
        error
    })
}

fn series(lines: &[&str]) -> Vec<Series> {
    lines.iter().map(|line| Series::parse(line, &[]).expect("the studies' lines are tested")).collect()
}

fn values(kind: LimitKind, values: &[f64]) -> LimitValues {
    LimitValues { kind, values: values.to_vec() }
}

fn grid(
    workloads: Vec<Arc<Workload>>,
    lines: &[&str],
    axes: &[LimitValues],
    rest: &GivenLimits,
) -> Result<Sweep, LoadError> {
    Sweep::grid(workloads, series(lines), axes, rest)
        .map_err(|(source, missing)| LoadError::file(&source, missing.to_string(), "use the published file"))
}

fn figure_1(folder: &Path) -> Result<Sweep, LoadError> {
    let devices = values(LimitKind::Devices, &[8.0, 32.0, 64.0, 128.0, 512.0, 1024.0, 2048.0]);
    let memory = values(LimitKind::Memory, &[1.0, 2.0, 8.0, 80.0].map(|gib| gib * GIB));
    let rest = GivenLimits::default().with(LimitKind::Microbatches, 1920).with(LimitKind::Bandwidth, BANDWIDTH);
    grid(vec![load(folder, BERT)?], &[&PIPER[..], &EQUAL].concat(), &[devices, memory], &rest)
}

/// Study of the potential gain of several planners and schedules, with each network under the memory that its file
/// states.
fn headroom(folder: &Path) -> Result<Sweep, LoadError> {
    const LINES: [&str; 6] = [
        "Piper:piper",
        "equal:equal-partition",
        "1F1B:joint",
        "ZB-H1:joint,schedule=zb-h1",
        "interleaved:joint,schedule=interleaved",
        "any schedule:joint,schedule=auto",
    ];
    const NETWORKS: [&str; 4] = ["bert32a100", "bert96a100", "gpt3-175b-a100", "llama-3-70b-h100"];
    let networks = NETWORKS.map(|name| load(folder, &format!("joint/{name}.json")));
    let devices = values(LimitKind::Devices, &[8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0]);
    let microbatches = values(LimitKind::Microbatches, &[8.0, 32.0, 64.0, 128.0, 512.0, 1920.0]);
    let networks = networks.into_iter().collect::<Result<_, _>>()?;
    grid(networks, &LINES, &[devices, microbatches], &GivenLimits::default())
}

fn figure_2(folder: &Path) -> Result<Sweep, LoadError> {
    let devices = LimitValues { kind: LimitKind::Devices, values: (1..=2048).map(f64::from).collect() };
    let microbatches = values(LimitKind::Microbatches, &[512.0, 960.0]);
    let rest = GivenLimits::default().with(LimitKind::Memory, 8.0 * GIB);
    grid(vec![load(folder, BERT)?], &PIPER[..1], &[devices, microbatches], &rest)
}

/// Results of one run of the published table beside every number of devices: every sum of replicas.
fn figure_2_replicas(folder: &Path) -> Result<Sweep, LoadError> {
    const DEVICES: u32 = 2048;
    let bert = load(folder, BERT)?;
    let rest = GivenLimits::default().with(LimitKind::Devices, DEVICES).with(LimitKind::Memory, 8.0 * GIB);
    let mut sweep =
        grid(vec![Arc::clone(&bert)], &PIPER[..1], &[values(LimitKind::Microbatches, &[512.0, 960.0])], &rest)?;
    let (ends, series) = (std::mem::take(&mut sweep.points), std::mem::take(&mut sweep.series));
    sweep.along = series[0].planner.options().iter().find(|spec| spec.name == "most_replicas");
    for end in ends {
        // Replicas beyond the number of microbatches have no effect.
        for most in 1..=end.limits.microbatches.min(DEVICES) {
            let mut one = series[0].clone();
            one.options.set("most_replicas", OptionValue::Number(f64::from(most)));
            sweep.points.push(SweepPoint { series: sweep.series.len(), ..end.clone() });
            sweep.series.push(one);
        }
    }
    Ok(sweep)
}

fn figure_3(folder: &Path) -> Result<Sweep, LoadError> {
    let devices: Vec<f64> = (3..=10).map(|e| f64::from(1 << e)).chain([1536.0, 2048.0]).collect();
    let microbatches = values(LimitKind::Microbatches, &[480.0, 512.0, 1920.0, 2048.0]);
    let bert = load(folder, BERT)?;
    let mut workloads = vec![Arc::clone(&bert)];
    for layers in [48, 64, 96] {
        workloads.push(Arc::new(extended::bert(&folder.join(BERT), layers)?));
    }
    let axes = [values(LimitKind::Devices, &devices), microbatches];
    let sweep = grid(workloads, &PIPER[..1], &axes, &GivenLimits::default())?;
    // The study measures the time of a single plan.
    Ok(Sweep { alone: true, ..sweep })
}

/// Devices and memory (GiB) of a table.
type DeviceMemoryPairs = &'static [(u32, &'static [f64])];

fn table(folder: &Path, input: &str, pairs: DeviceMemoryPairs) -> Result<Sweep, LoadError> {
    let workload = load(folder, input)?;
    let rest = GivenLimits::default().with(LimitKind::Bandwidth, BANDWIDTH);
    let mut sweep = Sweep {
        workloads: vec![Arc::clone(&workload)],
        series: series(&[PIPER[0], GENERAL]),
        along: None,
        axes: vec![LimitKind::Devices, LimitKind::Memory],
        points: vec![],
        alone: false,
    };
    for &(devices, memory) in pairs {
        let memory = values(LimitKind::Memory, &memory.iter().map(|gib| gib * GIB).collect::<Vec<_>>());
        let axes = [values(LimitKind::Devices, &[f64::from(devices)]), memory];
        let part = grid(vec![Arc::clone(&workload)], &[PIPER[0], GENERAL], &axes, &rest)?;
        sweep.points.extend(part.points);
    }
    Ok(sweep)
}

fn gnmt(folder: &Path) -> Result<Sweep, LoadError> {
    const PAIRS: DeviceMemoryPairs = &[
        (2, &[2.5, 3.5]),
        (4, &[1.2, 2.5]),
        (8, &[0.6, 1.2, 2.4]),
        (16, &[0.3, 0.6, 1.2]),
        (32, &[0.3, 0.8]),
        (64, &[0.3]),
    ];
    table(folder, "piper/inputs/gnmt.json", PAIRS)
}

fn resnet(folder: &Path) -> Result<Sweep, LoadError> {
    const PAIRS: DeviceMemoryPairs = &[
        (8, &[4.0, 8.0, 16.0]),
        (16, &[1.5, 2.0, 4.0, 8.0, 16.0]),
        (32, &[1.5, 2.0, 4.0, 8.0, 16.0]),
        (64, &[1.0, 1.5, 2.0, 4.0, 8.0, 16.0]),
        (128, &[1.0, 1.5, 2.0, 4.0, 8.0, 16.0]),
    ];
    table(folder, "piper/inputs/resnet.json", PAIRS)
}

/// Planner that the published tables run on one accelerator without a memory limit.
const WITHOUT_MEMORY_LIMIT: &str = "placement-one";
/// Enough accelerators for every split of a human expert; the published tables limit neither their number nor their
/// memory.
const MOST_OF_EXPERTS: u32 = 16;

fn without_memory(limits: &Limits) -> Limits {
    limits.with(LimitKind::Memory, f64::INFINITY)
}

/// Every algorithm on every input of a folder, with the human expert if there is one.
fn placement(folder: &Path, inputs: &[&str], lines: &[&str], expert: &str) -> Result<Sweep, LoadError> {
    let root = folder.join("dnn-partitioning");
    let mut sweep =
        Sweep { workloads: vec![], series: series(lines), along: None, axes: vec![], points: vec![], alone: false };
    for input in inputs {
        let mut workload = Workload::clone(&*load(&root, &format!("{input}.json"))?);
        // Operator graphs share names with layer graphs.
        workload.name = input.split('/').skip(1).collect::<Vec<_>>().join("/");
        let place = sweep.workloads.len();
        let one = grid(vec![Arc::new(workload)], lines, &[], &GivenLimits::default())?;
        sweep.points.extend(one.points.iter().map(|point| {
            let heedless = one.series[point.series].planner.info().id == WITHOUT_MEMORY_LIMIT;
            let limits = if heedless { without_memory(&point.limits) } else { point.limits.clone() };
            SweepPoint { workload: place, series: point.series, limits }
        }));
        sweep.workloads.extend(one.workloads);
        if let Some(split) = expert_split(&root, input) {
            let mut human = Series::parse(expert, &[]).expect("the studies' lines are tested");
            human.options.set("split", OptionValue::File(split));
            let last = sweep.points[sweep.points.len() - 1].clone();
            let devices = f64::from(last.limits.devices.max(MOST_OF_EXPERTS));
            let limits = without_memory(&last.limits).with(LimitKind::Devices, devices);
            sweep.points.push(SweepPoint { series: sweep.series.len(), limits, ..last });
            sweep.series.push(human);
        }
    }
    Ok(sweep)
}

/// Split of a human expert, if there is one. Experts cut layer graphs; a split for inference also serves training,
/// where colour classes fix the rest.
fn expert_split(root: &Path, input: &str) -> Option<String> {
    let name = input
        .strip_prefix("throughput-inputs/LayerGraphs/")
        .or_else(|| input.strip_prefix("latency-inputs/LayerGraphs/"))?;
    let names = [name.to_string(), name.replace("_training", "_inference")];
    let path = |name: &String| root.join("human-experts").join(format!("{name}_expert.json"));
    names.iter().map(path).find(|path| path.is_file()).map(|path| path.display().to_string())
}

const THROUGHPUT_INPUTS: [&str; 16] = [
    "throughput-inputs/OperatorGraphs/bert_l-3_inference",
    "throughput-inputs/OperatorGraphs/bert_l-6_inference",
    "throughput-inputs/OperatorGraphs/bert_l-12_inference",
    "throughput-inputs/OperatorGraphs/resnet50_inference",
    "throughput-inputs/OperatorGraphs/bert_l-3_training",
    "throughput-inputs/OperatorGraphs/bert_l-6_training",
    "throughput-inputs/OperatorGraphs/bert_L-12_training",
    "throughput-inputs/OperatorGraphs/resnet50_training",
    "throughput-inputs/LayerGraphs/bert24_inference",
    "throughput-inputs/LayerGraphs/resnet50_inference",
    "throughput-inputs/LayerGraphs/inceptionv3_inference",
    "throughput-inputs/LayerGraphs/gnmt_inference",
    "throughput-inputs/LayerGraphs/bert24_training",
    "throughput-inputs/LayerGraphs/resnet50_training",
    "throughput-inputs/LayerGraphs/inceptionv3_training",
    "throughput-inputs/LayerGraphs/gnmt_training",
];

const LATENCY_INPUTS: [&str; 8] = [
    "latency-inputs/OperatorGraphs/bert_l-3_inference",
    "latency-inputs/OperatorGraphs/bert_l-6_inference",
    "latency-inputs/OperatorGraphs/bert_l-12_inference",
    "latency-inputs/OperatorGraphs/resnet50_inference",
    "latency-inputs/LayerGraphs/bert24_inference",
    "latency-inputs/LayerGraphs/resnet50_inference",
    "latency-inputs/LayerGraphs/inceptionv3_inference",
    "latency-inputs/LayerGraphs/gnmt_inference",
];

fn throughput(folder: &Path) -> Result<Sweep, LoadError> {
    let lines = [
        "DP:placement-dp",
        "DPL:placement-dpl",
        "IP contiguous:placement-ip,contiguity=contiguous",
        "IP:placement-ip",
        "PipeDream:placement-pipedream",
        "local search:placement-local-search",
        "multilevel:placement-multilevel",
        "one device:placement-one",
    ];
    placement(folder, &THROUGHPUT_INPUTS, &lines, "expert:placement-expert")
}

fn latency(folder: &Path) -> Result<Sweep, LoadError> {
    let lines = [
        "IP:placement-latency-ip",
        "greedy:placement-latency-greedy",
        "max-load DP:placement-latency-dp",
        "multilevel:placement-multilevel,objective=latency",
    ];
    placement(folder, &LATENCY_INPUTS, &lines, "expert:placement-expert,objective=latency")
}
