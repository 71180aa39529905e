//! The rules by which engines read what is written for them. Every function refuses what its engine would refuse, by a
//! failed assertion, and gives what the engine would make of the text.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use super::engine_demands::DEMANDS;

/// Refuses words that the engine does not know.
fn known<'t>(engine: &str, words: impl IntoIterator<Item = &'t str>) {
    let row = DEMANDS.iter().find(|row| row.engine == engine).expect("every engine has its row");
    for word in words {
        assert!(row.words.contains(&word), "{engine} {} knows no {word}", row.version);
    }
}

/// Refuses flags that Megatron-LM does not know, wherever they stand in the code of a writer, and flags made of parts, which
/// cannot be read there. Comments are not code. How many different flags there are.
pub(crate) fn megatron_flags(source: &str) -> usize {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).fold(String::new(), |all, line| {
            assert!(!line.contains("--{"), "a flag is made of parts, write it out: {line}");
            all + line + "\n"
        });
    let of_flags = |c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_';
    let found: BTreeSet<&str> = code.split(of_flags).filter(|word| word.starts_with("--")).collect();
    known("Megatron-LM", found.iter().copied());
    found.len()
}

/// Refuses fields that the engine does not know, wherever they stand in the code of a writer: words of letters and dots that
/// begin with one of `roots`. How many different ones there are.
pub(crate) fn fields(engine: &str, source: &str, roots: &[&str]) -> usize {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let of_field = |c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_';
    let found: BTreeSet<&str> = code
        .filter(|line| line.contains('"'))
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .flat_map(|text| text.split(of_field))
        .map(|word| word.trim_matches('.'))
        .filter(|word| roots.iter().any(|root| word.starts_with(root)))
        .filter(|word| !["config.parallelism", "config.model", "config.model_spec.model"].contains(word))
        .collect();
    known(engine, found.iter().copied());
    found.len()
}

/// The fields that are assigned or compared in Megatron-Bridge's function.
pub(crate) fn megatron_bridge(text: &str) -> BTreeMap<String, String> {
    let assigned = text.lines().filter_map(|line| line.trim().split_once(" = "));
    let fields: BTreeMap<String, String> = assigned
        .filter(|(field, _)| field.starts_with("config.") || field.starts_with("model."))
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect();
    known("Megatron-Bridge", fields.keys().map(String::as_str));
    let sizes = text.split("MODEL = {\n").nth(1).expect("sizes are compared").split("\n}").next().unwrap_or_default();
    let sizes = sizes.lines().map(|line| line.trim().trim_end_matches(',').split_once(": ").expect(line));
    let sizes: BTreeMap<String, String> =
        sizes.map(|(name, value)| (name.trim_matches('"').to_string(), value.to_string())).collect();
    known("Megatron-Bridge", sizes.keys().map(String::as_str));
    fields.into_iter().chain(sizes).collect()
}

/// Refuses rows of accelerate's configuration that it does not know.
pub(crate) fn accelerate(text: &str) {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    known("accelerate", rows.map(|line| line.trim().split_once(':').expect(line).0));
}

/// The entries that the configuration of DeepSpeed without a pipeline prints; `None` without Python.
pub(crate) fn deepspeed_zero(test: &str, text: &str) -> Option<Value> {
    let config: Value = serde_json::from_str(&python(test, text)?).expect("it prints JSON");
    let mut left = vec![&config];
    while let Some(Value::Object(entries)) = left.pop() {
        known("DeepSpeed", entries.keys().map(String::as_str));
        left.extend(entries.values().filter(|value| value.is_object()));
    }
    Some(config)
}

/// The rows of MaxText's configuration.
pub(crate) fn maxtext(text: &str) -> BTreeMap<String, String> {
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows: BTreeMap<String, String> = rows
        .map(|line| line.split_once(": ").expect(line))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    known("MaxText", rows.keys().map(String::as_str));
    rows
}

/// The flags in notes for Galvatron's program.
pub(crate) fn galvatron_notes(notes: &[String]) {
    known("Galvatron", notes.iter().flat_map(|note| flags(note)));
}

/// The words of a text that begin with two dashes.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter(|word| word.starts_with("--"))
}

/// The value after a flag.
pub(crate) fn flag(text: &str, name: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).map(|word| word.trim_matches('"').to_string())
}

fn count(text: &str, name: &str) -> usize {
    let value = flag(text, name).unwrap_or_else(|| panic!("{name} is missing in {text}"));
    value.parse().unwrap_or_else(|_| panic!("{name} {value} is no number"))
}

/// What Megatron makes of its flags.
#[derive(Debug)]
pub(crate) struct Megatron {
    /// The letters of every stage, repetitions written out.
    pub(crate) stages: Vec<String>,
    pub(crate) tensor_parallel: usize,
    /// `None`, `uniform`, or `block` with the layers of every stage.
    pub(crate) recompute: Option<(String, usize)>,
    /// Samples of a batch and of a microbatch, where they are known.
    pub(crate) samples: Option<(usize, usize)>,
    /// Names of the flags.
    pub(crate) flags: Vec<String>,
}

/// Megatron-Core's flags.
pub(crate) fn megatron(text: &str) -> Megatron {
    let comments: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    let open: Vec<&str> = comments.iter().filter(|line| line.contains("fill in")).copied().collect();
    let text: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    known("Megatron-LM", flags(&text));
    // Its parser stops without these.
    for needed in
        ["--hidden-size", "--num-attention-heads", "--seq-length", "--max-position-embeddings", "--micro-batch-size"]
    {
        let there = flag(&text, needed).is_some();
        assert!(there != open.iter().any(|line| line.contains(needed)), "{needed} is given or asked for: {text}");
    }
    let layers = count(&text, "--num-layers");
    let stages = match flag(&text, "--pipeline-model-parallel-layout") {
        Some(layout) => expanded(&layout),
        None => vec!["E".to_string() + &"t".repeat(layers) + "L"],
    };
    assert_eq!(stages.len() % count(&text, "--pipeline-model-parallel-size"), 0, "stages are a multiple of P: {text}");
    let all: String = stages.concat();
    assert_eq!(
        (all.matches('E').count(), all.matches('L').count(), all.matches('t').count()),
        (1, 1, layers),
        "{text}"
    );
    assert!(stages[0].starts_with('E') && stages[stages.len() - 1].ends_with('L'), "{text}");
    assert!(stages.iter().all(|stage| !stage.is_empty()), "empty stages hang: {text}");
    for excluded in ["--num-layers-per-virtual-pipeline-stage", "--num-virtual-stages-per-pipeline-rank"] {
        assert!(!text.contains(excluded), "{excluded} excludes a layout");
    }
    let recompute = flag(&text, "--recompute-method").map(|method| {
        assert!(
            text.contains("--recompute-granularity full") && ["uniform", "block"].contains(&method.as_str()),
            "{text}"
        );
        (method, count(&text, "--recompute-num-layers"))
    });
    let samples = flag(&text, "--micro-batch-size").map(|_| {
        let (micro, samples) = (count(&text, "--micro-batch-size"), count(&text, "--global-batch-size"));
        assert!(micro > 0 && samples.is_multiple_of(micro), "{text}");
        (samples, micro)
    });
    let flags = flags(&text).map(str::to_string).collect();
    Megatron { stages, tensor_parallel: count(&text, "--tensor-model-parallel-size"), recompute, samples, flags }
}

/// A layout letter by letter: repetitions of a letter written out, stages parted.
fn expanded(layout: &str) -> Vec<String> {
    let stage = |text: &str| {
        let mut letters = String::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            assert!(['E', 't', 'm', 'L'].contains(&letter), "{letter} in {layout}");
            rest = &rest[1..];
            let mut times = 1;
            if let Some(count) = rest.strip_prefix('*') {
                let end = count.find(|c: char| !c.is_ascii_digit()).unwrap_or(count.len());
                times = count[..end].parse().expect("a number follows *");
                rest = &count[end..];
            }
            letters.extend(std::iter::repeat_n(letter, times));
        }
        letters
    };
    layout.split('|').map(stage).collect()
}

/// Runs a script in Python; `None`, with a word, where there is none.
pub(crate) fn python(test: &str, script: &str) -> Option<String> {
    let Ok(output) = Command::new("python3").args(["-c", script]).output() else {
        println!("skipped {test}: there is no python3");
        return None;
    };
    assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("Python prints UTF-8"))
}

/// What DeepSpeed makes of its script.
#[derive(Debug)]
pub(crate) struct DeepSpeed {
    /// The entries of `layers` that each stage builds; they join and none is empty.
    pub(crate) parts: Vec<(usize, usize)>,
    /// The entries that it checkpoints.
    pub(crate) recomputed: Vec<usize>,
    /// Its configuration.
    pub(crate) config: BTreeMap<String, Value>,
}

/// DeepSpeed's script, run by Python with a module that asks as DeepSpeed does.
pub(crate) fn deepspeed(test: &str, text: &str) -> Option<DeepSpeed> {
    let stand_in = "
import sys, types
class PipelineModule:
    def __init__(self, layers, num_stages=None, topology=None, activation_checkpoint_interval=0):
        assert (num_stages is None) != (topology is None)
        self.layers, self.num_stages, self.interval = layers, num_stages or topology[0], activation_checkpoint_interval
        self._topo, self.global_rank = self, 0
    def get_coord(self, rank): return types.SimpleNamespace(pipe=rank)
    def _set_bounds(self, start=None, stop=None): self._local_start, self._local_stop = start, stop
names = ['deepspeed', 'deepspeed.pipe', 'deepspeed.runtime', 'deepspeed.runtime.pipe', 'deepspeed.runtime.pipe.topology']
for name in names:
    sys.modules[name] = types.ModuleType(name)
sys.modules['deepspeed.pipe'].PipelineModule = PipelineModule
sys.modules['deepspeed.runtime.pipe.topology'].PipeModelDataParallelTopology = lambda num_pp, num_mp, num_dp: (num_pp,)
";
    let ask = "
import json
module = build([object() for _ in range(PlannedPipelineModule.PARTS[-1])])
parts, recomputed = [], []
for rank in range(module.num_stages):
    module.global_rank = rank
    module._partition_layers()
    start, stop = module._local_start, module._local_stop
    assert (start, stop) == (module.parts[rank], module.parts[rank + 1])
    parts.append([start, stop])
    module.forward_funcs = module.layers[start:stop]
    if module.interval > 0:
        blocks = range(0, stop - start, module.interval)
        recomputed += [start + i for i in blocks if module._is_checkpointable(module.forward_funcs[i:i + module.interval])]
assert len(module.parts) == module.num_stages + 1
print(json.dumps([parts, recomputed, CONFIG]))
";
    let printed = python(test, &format!("{stand_in}{text}{ask}"))?;
    type Printed = (Vec<(usize, usize)>, Vec<usize>, BTreeMap<String, Value>);
    let (parts, recomputed, config): Printed =
        serde_json::from_str(&printed).expect("parts, entries and a configuration");
    assert_eq!(parts[0].0, 0);
    assert!(
        parts.windows(2).all(|pair| pair[0].1 == pair[1].0) && parts.iter().all(|part| part.0 < part.1),
        "{parts:?}"
    );
    known("DeepSpeed", config.keys().map(String::as_str));
    for inner in config.values().filter_map(Value::as_object) {
        known("DeepSpeed", inner.keys().map(String::as_str));
    }
    // Pipelines refuse more than the first stage of ZeRO.
    assert!(config.get("zero_optimization").is_none_or(|zero| zero["stage"] == 1), "{config:?}");
    Some(DeepSpeed { parts, recomputed, config })
}

/// What `torch.distributed.pipelining` makes of its script.
#[derive(Debug)]
pub(crate) struct Torch {
    /// The modules in front of which it splits.
    pub(crate) splits: Vec<String>,
    /// Those that recompute, wrapped after the split.
    pub(crate) recompute: Vec<String>,
    /// The class of the schedule.
    pub(crate) schedule: String,
    /// By rank: its stages.
    pub(crate) stages: Vec<Vec<usize>>,
}

/// The script, run by Python on a model with the modules `names`: tracing refuses wrapped modules, as torch does.
pub(crate) fn torch(test: &str, text: &str, names: &[String]) -> Option<Torch> {
    let stand_in = "
import sys, types, enum
class SplitPoint(enum.Enum):
    BEGINNING = 1
    END = 2
class Module:
    def __init__(self, names): self.names, self.wrapped = names, set()
    def named_modules(self): return [('', self)] + [(name, self) for name in self.names]
    def get_submodule(self, parent): return Owner(self, parent)
class Owner:
    def __init__(self, stage, parent): self.__dict__.update(stage=stage, parent=parent)
    def __getattr__(self, child): return '.'.join(part for part in [self.parent, child] if part)
    def __setattr__(self, child, wrapped):
        name = getattr(self, child)
        assert wrapped == ('wrapped', name) and name in self.stage.names
        self.stage.wrapped.add(name)
class Pipe:
    def __init__(self, parts): self.stages, self.num_stages = [Module(part) for part in parts], len(parts)
    def get_stage_module(self, index): return self.stages[index]
    def build_stage(self, index, device, group): return index
def pipeline(module, mb_args, split_spec):
    assert not module.wrapped and isinstance(mb_args, tuple)
    assert all(point is SplitPoint.BEGINNING for point in split_spec.values())
    parts = [[]]
    for name in module.names:
        if name in split_spec: parts.append([])
        parts[-1].append(name)
    return Pipe(parts)
simulated = []
class Schedule:
    def __init__(self, stages, n_microbatches, loss_fn):
        assert n_microbatches > 0
        simulated.append((type(self).__name__, stages if isinstance(stages, list) else [stages]))
for name in ['torch', 'torch.distributed', 'torch.distributed.algorithms', 'torch.distributed.algorithms._checkpoint',
             'torch.distributed.algorithms._checkpoint.checkpoint_wrapper', 'torch.distributed.pipelining']:
    sys.modules[name] = types.ModuleType(name)
sys.modules['torch.distributed.algorithms._checkpoint.checkpoint_wrapper'].checkpoint_wrapper = lambda name: ('wrapped', name)
home = sys.modules['torch.distributed.pipelining']
home.SplitPoint, home.pipeline = SplitPoint, pipeline
for name in ['Schedule1F1B', 'ScheduleGPipe', 'ScheduleInterleaved1F1B', 'ScheduleZBVZeroBubble',
             'ScheduleDualPipeV', 'ScheduleLoopedBFS', 'ScheduleInterleavedZeroBubble']:
    setattr(home, name, type(name, (Schedule,), {}))
";
    let model = serde_json::to_string(names).expect("names serialise");
    let ask = format!(
        "
import json
pipe = split(Module({model}), 'example')
wrapped = [name for stage in pipe.stages for name in stage.names if name in stage.wrapped]
assert wrapped == recompute and pipe.num_stages == len(split_spec) + 1
for rank in range(len(stages_of_rank)):
    schedule(Module({model}), 'example', rank, 'cpu', None)
assert sorted(sum(stages_of_rank, [])) == list(range(pipe.num_stages))
assert len({{name for name, _ in simulated}}) == 1
print(json.dumps([list(split_spec), wrapped, simulated[0][0], [stages for _, stages in simulated]]))
"
    );
    let printed = python(test, &format!("{stand_in}{text}{ask}"))?;
    let (splits, recompute, schedule, stages): (Vec<String>, Vec<String>, String, Vec<Vec<usize>>) =
        serde_json::from_str(&printed).expect("splits, names, a class and stages");
    known("PyTorch pipelining", [schedule.as_str()]);
    assert!(no_twins(&splits) && no_twins(&recompute), "{text}");
    Some(Torch { splits, recompute, schedule, stages })
}

fn no_twins(names: &[String]) -> bool {
    names.iter().collect::<std::collections::BTreeSet<_>>().len() == names.len()
}

/// What torchtitan makes of a function of its registry.
#[derive(Debug)]
pub(crate) struct TorchTitan {
    /// The modules of every part; none is empty and none named twice.
    pub(crate) parts: Vec<Vec<String>>,
    /// What is assigned, by field.
    pub(crate) fields: BTreeMap<String, String>,
    /// The model's sizes, by name.
    pub(crate) sizes: BTreeMap<String, u64>,
}

/// A function of torchtitan's registry of configurations, its assignments read line by line.
pub(crate) fn torchtitan(text: &str) -> TorchTitan {
    assert!(
        text.contains("\ndef planned():\n    config = base()\n") && text.ends_with("    return config\n"),
        "{text}"
    );
    assert!(text.contains(".config_registry import "), "{text}");
    let list = text.split("MODEL_PARTS = [\n").nth(1).expect("the parts are there").split("\n]\n").next().unwrap();
    let part = |line: &str| -> Vec<String> { serde_json::from_str(line.trim().trim_end_matches(',')).expect(line) };
    let parts: Vec<Vec<String>> = list.lines().map(part).collect();
    let assigned =
        text.lines().filter(|line| line.starts_with("    ")).filter_map(|line| line.trim().split_once(" = "));
    let fields: BTreeMap<String, String> = assigned
        .filter(|(field, _)| field.starts_with("config.") || field.starts_with("parallelism."))
        .map(|(field, value)| (field.to_string(), value.to_string()))
        .collect();
    known("torchtitan", fields.keys().map(String::as_str));
    let ranks: usize = fields["parallelism.pipeline_parallel_degree"].parse().expect("a number");
    let schedule = fields["parallelism.pipeline_parallel_schedule"].trim_matches('"');
    let each = parts.len() / ranks;
    assert_eq!(each * ranks, parts.len(), "as many parts on every rank");
    match schedule {
        "1F1B" | "GPipe" => assert_eq!(each, 1),
        "Interleaved1F1B" | "InterleavedZeroBubble" | "LoopedBFS" => assert!(each > 1),
        "ZBVZeroBubble" | "DualPipeV" => assert_eq!(each, 2),
        other => panic!("torchtitan knows no schedule {other}"),
    }
    if ranks > 1 {
        assert_eq!(fields["parallelism.module_fqns_per_model_part"], "MODEL_PARTS");
        assert_eq!(fields["config.training.disable_cuda_graphs"], "True", "CUDA graphs refuse pipelines");
    }
    assert!(["None", "FullAC.Config()"].contains(&fields["config.activation_checkpoint"].as_str()));
    // A batch is a whole number of microbatches, which only a pipeline splits; a field that is not known is asked for in a
    // comment.
    let number = |field: &str| -> Option<usize> { fields.get(field).map(|value| value.parse().expect("a number")) };
    let replicas = number("parallelism.data_parallel_replicate_degree").unwrap_or(1)
        * number("parallelism.data_parallel_shard_degree").unwrap_or(1);
    let micro = number("parallelism.pipeline_parallel_microbatch_size");
    match (number("config.training.local_batch_size"), number("config.training.global_batch_size")) {
        (Some(local), Some(global)) => {
            assert_eq!(micro.is_some(), ranks > 1, "microbatches are of pipelines: {text}");
            assert!(local.is_multiple_of(micro.unwrap_or(local)) && global.is_multiple_of(local * replicas), "{text}");
        }
        (None, None) => assert!(text.contains("# fill in: config.training.local_batch_size"), "{text}"),
        other => panic!("one without the other: {other:?}"),
    }
    if fields.contains_key("config.compile.enable_async_tensor_parallel") {
        assert_eq!(fields["config.compile.enable"], "True", "it is a pass of the compiler");
        assert!(fields["config.compile.components"].contains("model"), "{text}");
    }
    let list = text.split("MODEL = {\n").nth(1).expect("sizes are compared").split("\n}").next().unwrap();
    let size = |line: &str| -> (String, u64) {
        let (name, value) = line.trim().trim_end_matches(',').split_once(": ").expect(line);
        (name.trim_matches('"').to_string(), value.parse().expect("a number"))
    };
    let sizes: BTreeMap<String, u64> = list.lines().map(size).collect();
    assert!(parts.iter().all(|part| !part.is_empty()) && no_twins(&parts.concat()), "{text}");
    for module in ["tok_embeddings", "norm", "lm_head"] {
        assert!(parts.iter().flatten().any(|name| name == module), "its splitter drops {module}: {text}");
    }
    TorchTitan { parts, fields, sizes }
}

/// The blocks of every stage in Galvatron's strategy; its lists are as long as there are blocks.
pub(crate) fn galvatron(text: &str) -> Vec<usize> {
    let strategy: BTreeMap<String, Value> = serde_json::from_str(text).expect("it is JSON");
    known("Galvatron", strategy.keys().map(String::as_str));
    assert!(["ddp", "zero2", "zero3"].contains(&strategy["default_dp_type"].as_str().unwrap()), "{text}");
    assert!(["gpipe", "pipedream_flush"].contains(&strategy["pipeline_type"].as_str().unwrap()), "{text}");
    let list = |field: &str| -> Vec<usize> {
        let text = strategy[field].as_str().unwrap_or_else(|| panic!("{field} is no string"));
        text.split(',').map(|part| part.parse().unwrap_or_else(|_| panic!("{field}: {text}"))).collect()
    };
    let division = list("pp_division");
    assert_eq!(strategy["pp_deg"], division.len());
    let blocks: usize = division.iter().sum();
    for field in ["tp_sizes_enc", "tp_consecutive_flags", "dp_types_enc", "use_sp", "checkpoint"] {
        assert_eq!(list(field).len(), blocks, "{field}");
    }
    assert!(list("tp_sizes_enc").iter().all(|t| *t > 0) && list("checkpoint").iter().all(|flag| *flag < 2));
    assert!(strategy.get("global_bsz").is_none_or(|value| value.as_u64().is_some_and(|value| value > 0)), "{text}");
    for field in ["chunks", "vtp"] {
        assert!(strategy[field].as_u64().is_some_and(|value| value > 0), "{field}");
    }
    division
}

/// The blocks of every stage that vLLM serves, and its tensor degree.
pub(crate) fn vllm(text: &str) -> (Vec<usize>, usize) {
    let line = text.lines().find(|line| !line.starts_with('#')).expect("there is a command");
    let partition = line.split(' ').next().unwrap().strip_prefix("VLLM_PP_LAYER_PARTITION=").expect("it comes first");
    known("vLLM", flags(line));
    let counts: Vec<usize> = partition.split(',').map(|count| count.parse().unwrap()).collect();
    assert_eq!(count(line, "--pipeline-parallel-size"), counts.len());
    assert!(counts.iter().all(|count| *count > 0), "{text}");
    (counts, count(line, "--tensor-parallel-size"))
}

/// A schedule for `torch.distributed.pipelining`: rows of one length, every operation once, on the rank of its stage (stages
/// are dealt to the ranks round robin), after what it needs. Gives stages and microbatches.
pub(crate) fn torch_schedule(text: &str) -> (usize, usize) {
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let ranks = rows.len();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "rows are padded with empty cells");
    let mut at: BTreeMap<(usize, char, usize), usize> = BTreeMap::new();
    for (rank, row) in rows.iter().enumerate() {
        for (step, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let place = cell.find(['F', 'B']).expect("F or B");
            let stage: usize = cell[..place].parse().unwrap();
            assert_eq!(stage % ranks, rank, "{cell}");
            let key = (stage, cell.as_bytes()[place] as char, cell[place + 1..].parse().unwrap());
            assert_eq!(at.insert(key, step), None, "{cell} twice");
        }
    }
    let stages = at.keys().map(|key| key.0 + 1).max().expect("something is done");
    for (&(stage, operation, m), &step) in &at {
        let needs = match operation {
            'F' if stage > 0 => (stage - 1, 'F', m),
            'F' => continue,
            _ if stage + 1 < stages => (stage + 1, 'B', m),
            _ => (stage, 'F', m),
        };
        assert!(at[&needs] < step, "{stage}{operation}{m} before {needs:?}");
    }
    assert_eq!(at.len() % (2 * stages), 0, "every stage works on every microbatch, forward and back");
    (stages, at.len() / (2 * stages))
}

/// The modules of a model with so many layers, in its order.
pub(crate) fn llama(layers: usize) -> Vec<String> {
    let blocks = (0..layers).map(|block| format!("layers.{block}"));
    std::iter::once("tok_embeddings".into()).chain(blocks).chain(["norm".into(), "lm_head".into()]).collect()
}
