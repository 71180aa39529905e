//! The rules by which engines read what is written for them. Every function refuses what its engine would refuse, by a
//! failed assertion, and gives what the engine would make of the text.

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

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
    pub(crate) samples: usize,
}

/// Megatron-Core's flags.
pub(crate) fn megatron(text: &str) -> Megatron {
    let text: String = text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
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
    let (micro, samples) = (count(&text, "--micro-batch-size"), count(&text, "--global-batch-size"));
    assert!(micro > 0 && samples.is_multiple_of(micro), "{text}");
    Megatron { stages, tensor_parallel: count(&text, "--tensor-model-parallel-size"), recompute, samples }
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

/// The parts of `layers` that DeepSpeed builds stage by stage, and the interval of its checkpoints: the module is made and
/// asked by Python. The parts join and none is empty.
pub(crate) fn deepspeed(test: &str, text: &str) -> Option<(Vec<(usize, usize)>, usize)> {
    let stand_in = "
import sys, types
class PipelineModule:
    def __init__(self, layers, num_stages, activation_checkpoint_interval):
        self.layers, self.num_stages, self.interval = layers, num_stages, activation_checkpoint_interval
        self._topo, self.global_rank = self, 0
    def get_coord(self, rank): return types.SimpleNamespace(pipe=rank)
    def _set_bounds(self, start=None, stop=None): self.bounds = (start, stop)
package, pipe = types.ModuleType('deepspeed'), types.ModuleType('deepspeed.pipe')
pipe.PipelineModule = PipelineModule
sys.modules['deepspeed'], sys.modules['deepspeed.pipe'] = package, pipe
";
    let ask = "
module = build(list(range(PlannedPipelineModule.PARTS[-1])))
for rank in range(module.num_stages):
    module.global_rank = rank
    module._partition_layers()
    assert module.bounds == (module.parts[rank], module.parts[rank + 1])
    print(*module.bounds)
assert len(module.parts) == module.num_stages + 1
print(module.interval)
";
    let printed = python(test, &format!("{stand_in}{text}{ask}"))?;
    let mut lines: Vec<Vec<usize>> =
        printed.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
    let interval = lines.pop().expect("it prints the interval")[0];
    let parts: Vec<(usize, usize)> = lines.iter().map(|line| (line[0], line[1])).collect();
    assert_eq!(parts[0].0, 0);
    assert!(
        parts.windows(2).all(|pair| pair[0].1 == pair[1].0) && parts.iter().all(|part| part.0 < part.1),
        "{parts:?}"
    );
    Some((parts, interval))
}

/// The modules in front of which `torch.distributed.pipelining` splits, and those that recompute, as Python reads them.
pub(crate) fn torch(test: &str, text: &str) -> Option<(Vec<String>, Vec<String>)> {
    let stand_in = "
import sys, types, enum
class SplitPoint(enum.Enum):
    BEGINNING = 1
    END = 2
for name in ['torch', 'torch.distributed', 'torch.distributed.pipelining']:
    sys.modules[name] = types.ModuleType(name)
sys.modules['torch.distributed.pipelining'].SplitPoint = SplitPoint
";
    let ask = "
import json
assert all(point is SplitPoint.BEGINNING for point in split_spec.values())
print(json.dumps([list(split_spec), recompute]))
";
    let printed = python(test, &format!("{stand_in}{text}{ask}"))?;
    let [splits, recompute]: [Vec<String>; 2] = serde_json::from_str(&printed).expect("two lists of names");
    assert!(no_twins(&splits) && no_twins(&recompute), "{text}");
    Some((splits, recompute))
}

fn no_twins(names: &[String]) -> bool {
    names.iter().collect::<std::collections::BTreeSet<_>>().len() == names.len()
}

/// The modules of every part of a torchtitan job; none is empty and none named twice.
pub(crate) fn torchtitan(text: &str) -> Vec<Vec<String>> {
    let job: toml::Table = text.parse().expect("it is TOML");
    let section = &job["parallelism"];
    let parts: Vec<Vec<String>> = section["module_fqns_per_model_part"].clone().try_into().expect("lists of names");
    assert_eq!(section["pipeline_parallel_degree"].as_integer(), Some(parts.len() as i64));
    assert!(["1F1B", "GPipe"].contains(&section["pipeline_parallel_schedule"].as_str().unwrap()));
    assert!(["none", "full"].contains(&job["activation_checkpoint"]["mode"].as_str().unwrap()));
    assert!(parts.iter().all(|part| !part.is_empty()) && no_twins(&parts.concat()), "{text}");
    parts
}

/// The blocks of every stage in Galvatron's strategy; its lists are as long as there are blocks.
pub(crate) fn galvatron(text: &str) -> Vec<usize> {
    let strategy: BTreeMap<String, Value> = serde_json::from_str(text).expect("it is JSON");
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
    for field in ["global_bsz", "chunks", "vtp"] {
        assert!(strategy[field].as_u64().is_some_and(|value| value > 0), "{field}");
    }
    division
}

/// The blocks of every stage that vLLM serves, and its tensor degree.
pub(crate) fn vllm(text: &str) -> (Vec<usize>, usize) {
    let line = text.lines().find(|line| !line.starts_with('#')).expect("there is a command");
    let partition = line.split(' ').next().unwrap().strip_prefix("VLLM_PP_LAYER_PARTITION=").expect("it comes first");
    let counts: Vec<usize> = partition.split(',').map(|count| count.parse().unwrap()).collect();
    assert_eq!(count(line, "--pipeline-parallel-size"), counts.len());
    assert!(counts.iter().all(|count| *count > 0), "{text}");
    (counts, count(line, "--tensor-parallel-size"))
}

/// A schedule for `torch.distributed.pipelining`: rows of one length, every operation once, on the rank of its stage, after
/// what it needs. Gives stages and microbatches.
pub(crate) fn torch_schedule(text: &str) -> (usize, usize) {
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let stages = rows.len();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "rows are padded with empty cells");
    let mut at: BTreeMap<(usize, char, usize), usize> = BTreeMap::new();
    for (rank, row) in rows.iter().enumerate() {
        for (step, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            let place = cell.find(['F', 'B']).expect("F or B");
            assert_eq!(cell[..place].parse::<usize>().unwrap(), rank);
            let key = (rank, cell.as_bytes()[place] as char, cell[place + 1..].parse().unwrap());
            assert_eq!(at.insert(key, step), None, "{cell} twice");
        }
    }
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
