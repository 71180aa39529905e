//! Published runs, read from tables of the folder `truth` of the published inputs, as runs that can be predicted.
//!
//! A table has the facts of its publication. Each reader documents the missing facts and the assumptions in their
//! place. Rows that cannot be expressed are counted with the reason. Nothing is fitted here.

use std::{collections::BTreeMap, fs, path::Path};

use thiserror::Error;

use crate::family::training::request::Request;
use crate::units::GIB;
use crate::workload::training::{
    Release, from_hugging_face,
    hardware::{self, Accelerator},
    model::{Attention, Ends, Experts, FeedForward, LayerKind, Model, Projection},
    published,
    run::{
        AttentionKernel, ContextStyle, Layout, Recompute, Stack, TrainingPrecision, TrainingRun, TrainingSettings,
        ZeroBubble,
    },
};

/// Table that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}: {problem}")]
pub struct TruthTableError {
    /// File of the table.
    pub file: String,
    /// Problem.
    pub problem: String,
}

/// Published run.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedRun {
    /// Short name of the publication; one of [`SOURCES`].
    pub source: &'static str,
    /// Name of the run in the publication.
    pub name: String,
    /// Model of the run.
    pub model: Model,
    /// Configuration of the run.
    pub run: TrainingRun,
    /// Hardware of the run.
    pub accelerator: Accelerator,
    /// Measured iteration time, seconds.
    pub measured_s: f64,
    /// Measured peak memory of the fullest rank, bytes.
    pub measured_bytes: Option<f64>,
    /// Prediction of another predictor: seconds and bytes.
    pub peer: Option<(f64, f64)>,
}

/// Rows that cannot be expressed: source, number, and reason.
pub type SkippedRows = (String, usize, &'static str);

/// Publications, in display order.
pub const SOURCES: [&str; 20] = [
    "dgxc-benchmarking, BF16, H100",
    "dgxc-benchmarking, FP8, H100",
    "Korthikanti 2022, A100",
    "Narayanan 2021, A100",
    "Zero Bubble 2023, 1F1B, A100",
    "SimuMax, B200",
    "torchtitan, H100 500 W",
    "Zero Bubble 2023, ZB-1p as ZB-H1, A100",
    "BigScience 2022, A100",
    "MosaicML, A100, FSDP",
    "IBM, A100, FSDP",
    "torchtitan, A100",
    "MosaicML, H100, FSDP",
    "Pax, H100, FSDP",
    "KempnerForge, H200, FSDP",
    "torchtitan, H200",
    "Megatron-Bridge, dense, Blackwell",
    "Megatron-Bridge, experts",
    "Megatron-Bridge, LoRA",
    "Megatron-Bridge, experts, release named",
];

/// Beginnings of the classes of the second collection, each with its publication.
const SECOND: [(&str, usize); 12] = [
    ("BigScience", 8),
    ("Mosaic FSDP a100", 9),
    ("IBM", 10),
    ("torchtitan A100", 11),
    ("Mosaic FSDP h100", 12),
    ("Pax", 13),
    ("KempnerForge", 14),
    ("torchtitan H200", 15),
    ("Bridge dense", 16),
    ("Bridge MoE", 17),
    ("Grok-1", 17),
    ("Bridge LoRA", 18),
];

/// Reads all tables of the folder.
///
/// # Errors
/// [`TruthTableError`] if a table is missing or a number cannot be read.
pub fn read(folder: &Path) -> Result<(Vec<PublishedRun>, Vec<SkippedRows>), TruthTableError> {
    let mut runs = vec![];
    let mut left: BTreeMap<(String, &'static str), usize> = BTreeMap::new();
    for (file, read) in TABLES {
        for row in TruthTable::read(&folder.join(file))? {
            match read(&row)? {
                Ok(run) => runs.push(run),
                Err(reason) => *left.entry((row.source(), reason)).or_default() += 1,
            }
        }
    }
    for row in TruthTable::read(&folder.join("second/rows.tsv"))? {
        match second(folder, &row)? {
            Ok(run) => {
                // Runs of experts are predicted with their release and without.
                runs.extend(with_release(&run, &row));
                runs.push(run);
            }
            Err(reason) => *left.entry((row.text("cls").to_string(), reason)).or_default() += 1,
        }
    }
    Ok((runs, left.into_iter().map(|((source, reason), count)| (source, count, reason)).collect()))
}

/// The run of a mixture of experts with the release of Megatron-Bridge that its publication names.
fn with_release(published: &PublishedRun, row: &TableRow) -> Option<PublishedRun> {
    let release = Release::parse(row.text("source").strip_prefix("Megatron-Bridge ")?)?;
    if !published.model.has_experts() {
        return None;
    }
    let mut named = published.clone();
    named.source = SOURCES[19];
    named.run.settings.release = Some(release);
    Some(named)
}

type RowReader = fn(&TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError>;

const TABLES: [(&str, RowReader); 4] = [
    ("dgxc-benchmarking.tsv", dgxc),
    ("papers.tsv", paper),
    ("zero-bubble.tsv", zero_bubble),
    ("simumax-b200.tsv", simumax),
];

/// Row of a table, by names of columns.
struct TableRow {
    file: String,
    fields: BTreeMap<String, String>,
}

struct TruthTable;

impl TruthTable {
    fn read(path: &Path) -> Result<Vec<TableRow>, TruthTableError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path)
            .map_err(|error| TruthTableError { file: file.clone(), problem: error.to_string() })?;
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let names: Vec<String> = lines.next().unwrap_or_default().split('\t').map(String::from).collect();
        let row = |line: &str| {
            let fields = names.iter().cloned().zip(line.split('\t').map(|field| field.trim().to_string())).collect();
            TableRow { file: file.clone(), fields }
        };
        Ok(lines.map(row).collect())
    }
}

impl TableRow {
    fn text(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> Result<f64, TruthTableError> {
        let text = self.text(name);
        let problem = || format!("{name} is `{}`, not a number", crate::text::printable(text));
        text.parse().map_err(|_| TruthTableError { file: self.file.clone(), problem: problem() })
    }

    fn count(&self, name: &str) -> Result<u64, TruthTableError> {
        self.number(name).map(|value| value as u64)
    }

    fn degree(&self, name: &str) -> Result<u32, TruthTableError> {
        self.number(name).map(|value| value as u32)
    }

    fn source(&self) -> String {
        let source = self.text("source");
        let short = source.split([',', ';', '(']).next().unwrap_or(source).trim();
        short.split(" v24").next().unwrap_or(short).trim().to_string()
    }

    /// Dense decoder of equal layers with the usual columns.
    fn model(&self, vocabulary: u64, kv: &str, ffn: &str, gated: bool) -> Result<Model, TruthTableError> {
        let (hidden, heads) = (self.count("hidden")?, self.count("heads")?);
        let key_value_heads = if kv.is_empty() { heads } else { self.count(kv)? };
        let width = if ffn.is_empty() { 4 * hidden } else { self.count(ffn)? };
        let kind = LayerKind::decoder(
            Attention::Grouped { heads, key_value_heads, head_size: hidden / heads },
            FeedForward::Dense { width, gated },
            0,
        );
        let ends =
            Ends { vocabulary, token_width: hidden, positions: 0, before: 0, after: 0, projection: Projection::Own };
        let name = self.text("model");
        let mut model = Model::uniform(name, "a published run", hidden, kind, self.count("layers")? as usize, ends);
        // The plain blocks are GPT's, trained with dropout.
        model.dropout = !gated;
        Ok(model)
    }

    fn layout(&self, virtual_stages: u32, micro_batch: u32) -> Result<Layout, TruthTableError> {
        Ok(Layout {
            tensor: self.degree("tp")?,
            pipeline: self.degree("pp")?,
            virtual_stages,
            context: self.degree("cp")?,
            expert: self.degree("ep")?,
            expert_tensor: 1,
            data: self.degree("dp")?,
            micro_batch,
        })
    }
}

fn accelerator(id: &str) -> Accelerator {
    hardware::find(id).unwrap_or(hardware::all()[0])
}

fn run(
    layout: Layout,
    (global_batch, sequence): (u64, u64),
    precision: TrainingPrecision,
    (stack, settings): (Stack, TrainingSettings),
) -> TrainingRun {
    TrainingRun {
        layout,
        global_batch,
        sequence,
        precision,
        recompute: Recompute::None,
        stack,
        settings,
        layers: vec![],
        head_alone: false,
        zero_bubble: None,
        links: None,
    }
}

/// Run of the second collection, whose arguments are those of `plantui estimate`. BigScience's memory is that of
/// `nvidia-smi`, from which the reserve is taken off.
fn second(folder: &Path, row: &TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError> {
    let wrong = |problem: String| TruthTableError { file: row.file.clone(), problem };
    let class = row.text("cls");
    let Some(&(_, source)) = SECOND.iter().find(|(start, _)| class.starts_with(start)) else {
        return Err(wrong(format!("`{}` is no known class", crate::text::printable(class))));
    };
    if row.text("measured_s").is_empty() {
        return Ok(Err("ran out of memory"));
    }
    let arguments = row.text("arguments");
    let (name, rest) = arguments.split_once(' ').unwrap_or((arguments, ""));
    let model = match published::find(name) {
        Some(model) => model,
        None => {
            let path = folder.join("second").join(name);
            let text = fs::read_to_string(&path).map_err(|error| wrong(format!("{name}: {error}")))?;
            from_hugging_face(&text, name).map_err(|error| wrong(error.to_string()))?
        }
    };
    let mut request = Request::default();
    let mut words = rest.split_whitespace();
    while let (Some(flag), Some(value)) = (words.next(), words.next()) {
        request.set(flag, value).map_err(|problem| wrong(format!("{arguments}: {problem}")))?;
    }
    if class == "Bridge LoRA" {
        // Rank and targets of the recipe.
        request.set("adapter", "lora:r=16,targets=q+k+v").map_err(wrong)?;
    }
    let resolved = request.resolve(&model).map_err(|refusal| wrong(format!("{arguments}: {refusal}")))?;
    let measured_bytes = match row.text("measured_mem_gib") {
        "" => None,
        _ => Some(GIB * row.number("measured_mem_gib")?),
    };
    let beside = if class.starts_with("BigScience") { resolved.run.settings.reserve_bytes } else { 0.0 };
    Ok(Ok(PublishedRun {
        source: SOURCES[source],
        name: row.text("run").into(),
        model,
        run: resolved.run,
        accelerator: resolved.accelerator,
        measured_s: row.number("measured_s")?,
        measured_bytes: measured_bytes.map(|bytes| bytes - beside),
        peer: None,
    }))
}

/// Run of NVIDIA's recipes: all facts are stated; NeMo of 2024 with tensor-parallel overlap.
fn dgxc(row: &TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError> {
    let fp8 = row.text("precision") == "FP8";
    let model = row.model(row.count("vocab")?, "kv_heads", "ffn", row.text("gated") == "1")?;
    let layout = row.layout(row.degree("vp")?, row.degree("mbs")?)?;
    let precision = if fp8 { TrainingPrecision::Fp8 } else { TrainingPrecision::Bf16 };
    Ok(Ok(PublishedRun {
        source: SOURCES[usize::from(fp8)],
        name: format!("{} on {}", row.text("model"), row.text("gpus")),
        run: run(layout, (row.count("gbs")?, row.count("seq")?), precision, (Stack::Nemo24, Stack::Nemo24.settings())),
        model,
        accelerator: accelerator("h100"),
        measured_s: row.number("measured_step_s")?,
        measured_bytes: None,
        peer: None,
    }))
}

/// Settings of Megatron-LM of 2021 to 2023: no fused attention, and no overlap in tensor parallelism. The runs are those of
/// NVIDIA's Selene, or as fast, so that the constants are those of NVIDIA's stacks.
fn early_megatron() -> TrainingSettings {
    TrainingSettings {
        sequence_parallel: false,
        attention: AttentionKernel::Unfused,
        distributed_optimizer: false,
        ..Stack::Plain.settings()
    }
}

/// Microbatch sizes of Narayanan's table by hidden size, as in the authors' run scripts [memory].
const NARAYANAN_MICRO_BATCHES: [(u64, u32); 10] = [
    (2304, 16),
    (3072, 16),
    (4096, 16),
    (6144, 8),
    (8192, 4),
    (10_240, 2),
    (12_288, 2),
    (16_384, 1),
    (20_480, 1),
    (25_600, 1),
];

fn paper(row: &TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError> {
    let source = row.text("source");
    if source.contains("Fig 1") {
        return Ok(Err("analytic in the paper, not measured"));
    }
    if source.starts_with("Llama 3 report") {
        return Ok(Err("virtual stages and recomputation are not stated"));
    }
    if source.starts_with("torchtitan") {
        return torchtitan(row);
    }
    let model = row.model(row.count("vocab")?, "kv", "ffn", false)?;
    let hidden = model.hidden;
    let mut settings = early_megatron();
    let (layout, name) = if source.starts_with("Narayanan") {
        let micro_batch = NARAYANAN_MICRO_BATCHES.iter().find(|(h, _)| *h == hidden).map_or(1, |&(_, b)| b);
        // Gradients overlap only if torch's own wrapper reduced them, that is, without a pipeline.
        settings.dp_overlap = row.degree("pp")? == 1;
        (row.layout(1, micro_batch)?, SOURCES[3])
    } else {
        settings.sequence_parallel = row.text("note").starts_with("SP");
        (row.layout(row.degree("vp")?, row.degree("mbs")?)?, SOURCES[2])
    };
    let (batch, sequence) = (row.count("gbs")?, row.count("seq")?);
    let measured = row.number("measured")?;
    let measured_s = if row.text("unit").starts_with("TFLOP") {
        // The paper's own count, recomputation included.
        let (layers, h) = (model.layers.len() as f64, hidden as f64);
        let (s, vocabulary) = (sequence as f64, model.ends.vocabulary as f64);
        let flops = 96.0 * batch as f64 * s * layers * h * h * (1.0 + s / (6.0 * h) + vocabulary / (16.0 * layers * h));
        flops / (row.number("gpus")? * measured * 1e12)
    } else {
        measured
    };
    let recompute = if row.text("recompute") == "selective" { Recompute::SELECTIVE } else { Recompute::Full };
    Ok(Ok(PublishedRun {
        source: name,
        name: format!("{}, {}", row.text("model"), row.text("recompute")),
        run: TrainingRun {
            recompute,
            ..run(layout, (batch, sequence), TrainingPrecision::Fp16, (Stack::Nemo24, settings))
        },
        model,
        accelerator: accelerator("a100-80"),
        measured_s,
        measured_bytes: None,
        peer: None,
    }))
}

/// Run of torchtitan on devices of 96 GB with HBM2e at 500 W. Its selective recomputation keeps products, so only
/// elementwise kernels run again, which is not charged.
fn torchtitan(row: &TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError> {
    if row.text("mbs") == "?" || row.text("vp") == "?" {
        return Ok(Err("the micro-batch or the virtual stages are not stated"));
    }
    let note = row.text("note");
    let settings = TrainingSettings {
        tp_overlap: note.contains("AsyncTP"),
        fused_elementwise: !note.contains("eager"),
        ..Stack::Torchtitan.settings()
    };
    let h100 = accelerator("h100");
    let accelerator = Accelerator {
        watts: 500.0,
        memory_bytes: 96.0 * GIB,
        // HBM2e of five stacks, as on H100 PCIe and NVL boards of that time (assumed).
        memory_bandwidth: 2.4e12,
        ..h100
    };
    let model = row.model(row.count("vocab")?, "kv", "ffn", true)?;
    let precision =
        if row.text("precision").starts_with("FP8") { TrainingPrecision::Fp8 } else { TrainingPrecision::Bf16 };
    let recompute = if row.text("recompute") == "full" { Recompute::Full } else { Recompute::SELECTIVE };
    let (batch, sequence) = (row.count("gbs")?, row.count("seq")?);
    let tokens = batch as f64 * sequence as f64;
    let layout = row.layout(row.degree("vp")?, row.degree("mbs")?)?;
    Ok(Ok(PublishedRun {
        source: SOURCES[6],
        name: format!("{}, {}, {note}", row.text("model"), row.text("precision")),
        run: TrainingRun { recompute, ..run(layout, (batch, sequence), precision, (Stack::Torchtitan, settings)) },
        model,
        accelerator,
        measured_s: tokens / (row.number("measured")? * row.number("gpus")?),
        measured_bytes: noted_gib(note).map(|gib| gib * GIB),
        peer: None,
    }))
}

/// Peak memory in a note such as `compile; 77.0 GiB`.
fn noted_gib(note: &str) -> Option<f64> {
    let last = note.rsplit([';', ',']).next()?.trim();
    last.trim_end_matches("GiB").trim().parse().ok()
}

/// Measured run of 1F1B, interleaved 1F1B or ZB-1p. Both ends have one layer fewer, and interleaved stages have as many
/// virtual stages as layers. ZB-1p is a schedule found by search within 1F1B's memory; ZB-H1 represents it.
fn zero_bubble(row: &TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError> {
    let (interleaved, zero_bubble) = match row.text("schedule") {
        "1F1B" => (false, None),
        "1F1B-I" => (true, None),
        "ZB-1p" => (false, Some(ZeroBubble::H1)),
        "ZB-2p" => return Ok(Err("no schedule of plantui keeps twice the activations of 1F1B")),
        _ => return Ok(Err("bubble rates computed in the paper, not measured")),
    };
    let model = row.model(50_304, "", "", false)?;
    let pipeline = row.degree("gpus_stages")?;
    let layers = model.layers.len() as u32 + 2;
    let micro_batch = row.degree("mbs")?;
    let virtual_stages = if interleaved { layers / pipeline } else { 1 };
    let layout = Layout { pipeline, virtual_stages, micro_batch, ..Layout::ONE };
    let batch = row.count("microbatches")? * u64::from(micro_batch);
    let settings = TrainingSettings { attention: AttentionKernel::Unfused, ..early_megatron() };
    let rate = row.number("samples_per_gpu_s")? * f64::from(pipeline);
    Ok(Ok(PublishedRun {
        source: if zero_bubble.is_some() { SOURCES[7] } else { SOURCES[4] },
        name: format!("{} {} x {}", row.text("model"), row.text("schedule"), row.text("microbatches")),
        run: TrainingRun {
            zero_bubble,
            ..run(layout, (batch, row.count("seq")?), TrainingPrecision::Bf16, (Stack::Nemo24, settings))
        },
        model,
        accelerator: accelerator("a100-80"),
        measured_s: batch as f64 / rate,
        measured_bytes: None,
        peer: None,
    }))
}

/// Run on one machine of B200 with Megatron-LM: cut models, no overlap, fused cross-entropy.
fn simumax(row: &TableRow) -> Result<Result<PublishedRun, &'static str>, TruthTableError> {
    let name = row.text("model");
    let mut model = row.model(row.count("vocab")?, "kv", "dense_ffn", true)?;
    if name.starts_with("DeepSeek") {
        mixture(&mut model, name.starts_with("DeepSeek-V2"));
    }
    let settings = TrainingSettings {
        dp_overlap: false,
        fused_cross_entropy: true,
        context_style: ContextStyle::AllToAll,
        ..Stack::Plain.settings()
    };
    let layout = row.layout(1, row.degree("mbs")?)?;
    let batch = row.count("microbatches")? * u64::from(layout.data) * u64::from(layout.micro_batch);
    Ok(Ok(PublishedRun {
        source: SOURCES[5],
        name: row.text("case").to_string(),
        run: run(layout, (batch, row.count("seq")?), TrainingPrecision::Bf16, (Stack::Plain, settings)),
        model,
        accelerator: accelerator("b200"),
        measured_s: row.number("measured_ms")? / 1e3,
        measured_bytes: Some(row.number("measured_alloc_gib")? * GIB),
        peer: Some((row.number("simumax_ms")? / 1e3, row.number("simumax_alloc_gib")? * GIB)),
    }))
}

/// Layers of DeepSeek's configuration; the first one is dense.
fn mixture(model: &mut Model, second: bool) {
    let attention = Attention::Latent {
        heads: 128,
        query_rank: Some(1536),
        key_value_rank: 512,
        rope: 64,
        nope: 128,
        value: 128,
        head_size: 192,
    };
    let (count, chosen, width, shared) = if second { (160, 6, 1536, 2) } else { (256, 8, 2048, 1) };
    let experts =
        Experts { count, chosen, width, shared_width: shared * width, gated: true, node_limit: None, latent: None };
    let dense = LayerKind { attention, ..model.kinds[0] };
    model.kinds = vec![dense, LayerKind { feed_forward: FeedForward::Experts(experts), ..dense }];
    model.layers = (0..model.layers.len()).map(|layer| u16::from(layer > 0)).collect();
}
