//! Workload from Galvatron's measurements: its `computation_profiling_*.json` and `memory_profiling_*.json`.
//!
//! Galvatron 2.4 measures the forward pass of one layer (milliseconds per sample, by batch and sequence) and of the
//! parts around the layers (`layertype_other`). It also measures parameters (32-bit, MiB) and activations (MiB per
//! sample, by tensor degree, and with recomputation as `checkpoint`). The files are read as its cost model reads them.
//! The backward pass takes twice the forward. Weights with gradients and Adam's state take four times the parameters. A
//! layer at tensor degree t takes 1/t of its time. Half of the parts around the layers come before them. Its bandwidths
//! are in other files, so the two all-reduces of a pass use the given link bandwidth. `O(layers · degrees)` time and
//! memory.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    GenerateError,
    cost::ModeCost,
    sketch::{Sketch, SketchNode},
};
use plantui_core::{
    cluster::Limits,
    source::LoadError,
    workload::{
        Recipe,
        piper::{RECOMPUTE, TRANSFORMER_LAYER, VANILLA},
    },
};

const MIB: f64 = 1024.0 * 1024.0;
/// Bytes of a parameter in the profile.
const PARAMETER: f64 = 4.0;
/// Weights, gradients and two moments, as a multiple of the parameters.
const STATES: f64 = 4.0;
/// Time of the backward pass as a multiple of the forward pass.
const BACKWARD: f64 = 2.0;
/// All-reduces of a layer in each pass.
const REDUCES: f64 = 2.0;

/// Prefixes of the file names.
const TIMES: &str = "computation_profiling_";
const MEMORY: &str = "memory_profiling_";

/// Two texts of a profile, each with its name for messages.
#[derive(Debug, Clone, Copy)]
pub struct GalvatronProfile<'a> {
    /// Times.
    pub times: (&'a str, &'a str),
    /// Memory.
    pub memory: (&'a str, &'a str),
}

/// Facts that the files lack.
#[derive(Debug, Clone)]
pub struct GalvatronSettings {
    /// Number of layers.
    pub layers: u32,
    /// Sequences per microbatch.
    pub micro_batch: u32,
    /// Tokens per sequence; `None`: the value of the file's name or of its only entry.
    pub sequence_length: Option<u32>,
    /// Bytes per second between the devices of a tensor-parallel group.
    pub link_bytes_per_s: f64,
    /// Limits written into the file.
    pub limits: Limits,
}

/// Name of the memory profile that belongs to a file; `None` if the file is not a profile of times.
pub fn sibling(file_name: &str) -> Option<String> {
    file_name.strip_prefix(TIMES).map(|rest| format!("{MEMORY}{rest}"))
}

/// Text of a Piper workload.
///
/// # Errors
/// [`GenerateError`] with file and entry if the profile lacks or contradicts something.
// Long: one pass over the two files, entry by entry, with each error at its entry.
pub fn workload(
    profile: &GalvatronProfile<'_>,
    settings: &GalvatronSettings,
    command_line: &str,
) -> Result<String, GenerateError> {
    let times = ProfileFile::read(profile.times)?;
    let memory = ProfileFile::read(profile.memory)?;
    for file in [&times, &memory] {
        if file.entries.keys().any(|key| key.starts_with("layertype_1")) {
            let repair = "plantui reads profiles of one kind of layer";
            return Err(LoadError::at(file.source, "layertype_1", "is a second kind of layer", repair).into());
        }
    }
    let named = |field: &str| number_after(profile.times.1, field);
    let hidden = named("hidden").ok_or_else(|| {
        let problem = "has no width in its name, as computation_profiling_bf16_hidden4096_head32.json has";
        LoadError::file(times.source, problem, "give the file the name that Galvatron gave it")
    })?;
    let weights = memory.weights(settings.sequence_length.or(named("seqlen").map(|length| length as u32)))?;
    let length = weights.sequence.or(settings.sequence_length).or(named("seqlen").map(|length| length as u32));
    let length = length.ok_or_else(|| {
        LoadError::file(times.source, "does not state the sequence length", "give it with --sequence-length")
    })?;
    let b = f64::from(settings.micro_batch);
    let layer_s = times.seconds("layertype_0", settings.micro_batch, length)?.ok_or_else(|| {
        let problem = format!("has no layertype_0 at {length} tokens");
        LoadError::file(times.source, problem, "give a --sequence-length and a --micro-batch that it has")
    })?;
    let around_s = times.seconds("layertype_other", settings.micro_batch, length)?.unwrap_or(0.0);
    let bytes = b * f64::from(length) * hidden * 2.0;
    let cost = |forward_s: f64, state: f64, kept: f64, recomputes: bool| ModeCost {
        time_s: forward_s * (1.0 + BACKWARD + f64::from(u8::from(recomputes))),
        forward_s,
        parameters: state / STATES / PARAMETER,
        memory_a: kept,
        memory_b: state,
    };
    let mut nodes = vec![];
    for place in 0..settings.layers + 2 {
        let end = if place == 0 { Some(&weights.first) } else { (place > settings.layers).then_some(&weights.last) };
        let degrees = weights.layer.iter().map(|(&t, &activation)| {
            let share = f64::from(t);
            let modes = match end {
                // Half of the parts around the layers at each end; recomputation does not repeat them.
                Some(end) => {
                    let (state, kept) = end.at(t);
                    let cost = || cost(around_s / 2.0 / share, state * MIB, kept * MIB * b, false);
                    vec![(VANILLA, cost()), (RECOMPUTE, cost())]
                }
                None => {
                    let reduce = REDUCES * 2.0 * (share - 1.0) / share * bytes / settings.link_bytes_per_s;
                    let forward = layer_s / share + reduce;
                    let state = STATES * weights.parameters * MIB / share;
                    let kept = |mib: f64| mib * MIB * b;
                    let mut modes = vec![(VANILLA, cost(forward, state, kept(activation), false))];
                    modes.extend(weights.recomputed.map(|mib| (RECOMPUTE, cost(forward, state, kept(mib), true))));
                    modes
                }
            };
            (t, modes)
        });
        let name = match end {
            None => TRANSFORMER_LAYER.to_string(),
            Some(_) if place == 0 => "Embedding".into(),
            Some(_) => "head".into(),
        };
        nodes.push(SketchNode { name, degrees: degrees.collect() });
    }
    let name = |source: &'_ str| source.rsplit('/').next().unwrap_or(source).to_string();
    let edges = (0..nodes.len() - 1).map(|u| (u, u + 1, bytes)).collect();
    let assumptions = vec![
        format!(
            "times and memory are Galvatron's own measurements: {} and {}",
            name(profile.times.1),
            name(profile.memory.1)
        ),
        "the backward pass takes twice the forward, as in Galvatron's cost model".into(),
        "a layer at tensor degree t takes 1/t of its time and two all-reduces a pass over the hardware's link".into(),
        "weights, gradients and Adam's moments take four times the 32-bit parameters, divided by t".into(),
        "half of the time outside the layers goes to the embedding, half to the head".into(),
    ];
    let recipe = Recipe {
        micro_batch: Some(settings.micro_batch),
        sequence_length: Some(length),
        sequence_parallel: Some(weights.sequence_parallel),
        ..Recipe::default()
    };
    let (limits, provenance, recipe) = (settings.limits.clone(), command_line.into(), Some(recipe));
    Ok(Sketch { nodes, edges, limits, provenance, assumptions, recipe, gathered: None }.text())
}

/// Entries of a file.
struct ProfileFile<'a> {
    source: &'a str,
    entries: Map<String, Value>,
}

/// Parts at one end of the layers, MiB by tensor degree.
struct EndMemory {
    states: BTreeMap<u32, f64>,
    activation: BTreeMap<u32, f64>,
}

impl EndMemory {
    /// State and activations at a degree; a missing degree is extrapolated from the nearest lower one.
    fn at(&self, t: u32) -> (f64, f64) {
        let of = |all: &BTreeMap<u32, f64>| {
            all.range(..=t).next_back().map_or(0.0, |(&known, &mib)| mib * f64::from(known) / f64::from(t))
        };
        (of(&self.states), of(&self.activation))
    }
}

/// Memory profile, MiB.
struct MemoryProfile {
    sequence: Option<u32>,
    sequence_parallel: bool,
    parameters: f64,
    /// Activations per sample by tensor degree.
    layer: BTreeMap<u32, f64>,
    /// Activations per sample with recomputation.
    recomputed: Option<f64>,
    first: EndMemory,
    last: EndMemory,
}

impl<'a> ProfileFile<'a> {
    fn read((text, source): (&str, &'a str)) -> Result<Self, LoadError> {
        match serde_json::from_str(text) {
            Ok(Value::Object(entries)) => Ok(ProfileFile { source, entries }),
            Ok(_) => Err(LoadError::file(source, "is no JSON object", "give a profile that Galvatron wrote")),
            Err(error) => Err(LoadError::file(source, format!("is no JSON: {error}"), "")),
        }
    }

    fn number(&self, place: &str, value: &Value) -> Result<f64, LoadError> {
        match value.as_f64() {
            Some(number) if number >= 0.0 && number.is_finite() => Ok(number),
            _ => Err(LoadError::at(self.source, place, format!("is {value}"), "it must be a number from 0 on")),
        }
    }

    /// Seconds of a microbatch's forward pass: the entry at that batch, else the line fitted through all batches, else
    /// the only entry scaled by samples.
    fn seconds(&self, what: &str, batch: u32, length: u32) -> Result<Option<f64>, LoadError> {
        let mut points: Vec<(f64, f64)> = vec![];
        for (key, value) in &self.entries {
            let Some(rest) = key
                .strip_prefix(what)
                .filter(|rest| what != "layertype_0" || !rest.starts_with('_') || rest.starts_with("_bsz"))
            else {
                continue;
            };
            if number_after(rest, "_seq").is_some_and(|own| own != f64::from(length)) {
                continue;
            }
            let samples = number_after(rest, "_bsz");
            let milliseconds = self.number(key, value)?;
            if samples == Some(f64::from(batch)) {
                return Ok(Some(milliseconds * 1e-3 * f64::from(batch)));
            }
            points.push((samples.unwrap_or(1.0), milliseconds * samples.unwrap_or(1.0)));
        }
        if points.is_empty() {
            return Ok(None);
        }
        let count = points.len() as f64;
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
        let spread = mean(&|p| (p.0 - x) * (p.0 - x));
        let slope = if spread > 0.0 { mean(&|p| (p.0 - x) * (p.1 - y)) / spread } else { y / x };
        let fitted = if spread > 0.0 { y + slope * (f64::from(batch) - x) } else { slope * f64::from(batch) };
        if fitted > 0.0 {
            return Ok(Some(fitted * 1e-3));
        }
        Err(LoadError::at(
            self.source,
            what,
            format!("a line through its batches says {fitted:.3} ms for {batch}"),
            "give a --micro-batch that was measured",
        ))
    }

    /// Memory of layers and ends, with sequence parallelism if that was measured.
    fn weights(&self, requested: Option<u32>) -> Result<MemoryProfile, LoadError> {
        let missing =
            |name: &str| LoadError::at(self.source, name, "is missing", "give a profile that Galvatron wrote");
        let sequence_parallel = self.entries.contains_key("layertype_0_sp");
        let suffix = if sequence_parallel { "_sp" } else { "" };
        let place = format!("layertype_0{suffix}");
        let (sequence, layer) = self.by_sequence(&place, requested)?;
        let parameters = layer.get("parameter_size").ok_or_else(|| missing(&place))?;
        let parameters = self.number(&place, parameters)?;
        let by_degree = layer.get("tp_activation_per_bsz_dict").ok_or_else(|| missing(&place))?;
        let recomputed = by_degree.get("checkpoint").map(|value| self.number(&place, value)).transpose()?;
        let layer = self.degrees(&place, by_degree)?;
        if layer.is_empty() {
            return Err(missing(&place));
        }
        let end = |which: &str| -> Result<EndMemory, LoadError> {
            let place = format!("other_memory_pp_on_{which}{suffix}");
            let (_, end) = self.by_sequence(&place, requested)?;
            let part = |name: &str| self.degrees(&place, end.get(name).ok_or_else(|| missing(&place))?);
            Ok(EndMemory { states: part("model_states")?, activation: part("activation")? })
        };
        let (first, last) = (end("first")?, end("last")?);
        Ok(MemoryProfile { sequence, sequence_parallel, parameters, layer, recomputed, first, last })
    }

    /// Entry at the requested sequence length, if entries are by sequence length; without a request, the only one.
    fn by_sequence(&self, name: &str, requested: Option<u32>) -> Result<(Option<u32>, &Value), LoadError> {
        let missing = || LoadError::at(self.source, name, "is missing", "give a profile that Galvatron wrote");
        let entry = self.entries.get(name).ok_or_else(missing)?;
        let lengths: Vec<u32> =
            entry.as_object().into_iter().flat_map(Map::keys).filter_map(|key| key.parse().ok()).collect();
        match (lengths.as_slice(), requested) {
            ([], _) => Ok((None, entry)),
            ([one], None) => Ok((Some(*one), &entry[one.to_string()])),
            (all, Some(length)) if all.contains(&length) => Ok((Some(length), &entry[length.to_string()])),
            (all, _) => {
                let all: Vec<String> = all.iter().map(u32::to_string).collect();
                let repair = format!("give one of them with --sequence-length: {}", all.join(", "));
                Err(LoadError::at(self.source, name, "is by sequence length", repair))
            }
        }
    }

    /// Numbers by tensor degree; a single number belongs to degree 1.
    fn degrees(&self, place: &str, value: &Value) -> Result<BTreeMap<u32, f64>, LoadError> {
        let Some(entries) = value.as_object() else {
            return Ok(BTreeMap::from([(1, self.number(place, value)?)]));
        };
        let degrees = entries.iter().filter_map(|(key, value)| Some((key.parse().ok()?, value)));
        degrees.map(|(degree, value)| Ok((degree, self.number(place, value)?))).collect()
    }
}

/// Number after a word in a name: 4096 in `hidden4096`.
fn number_after(name: &str, word: &str) -> Option<f64> {
    let rest = &name[name.find(word)? + word.len()..];
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::workload;

    const MEMORY_TEXT: &str = r#"{
        "1_1_8": {"layernum[1]_bsz8_rank0_ms": 918.8},
        "layertype_0": {"256": {"parameter_size": 12.0,
            "tp_activation_per_bsz_dict": {"1": 30.0, "2": 18.0, "checkpoint": 2.0}}},
        "other_memory_pp_on_first": {"256": {"model_states": {"1": 80.0, "2": 50.0}, "activation": {"1": 4.0}}},
        "other_memory_pp_on_last": {"256": {"model_states": {"1": 96.0}, "activation": {"1": 6.0}}}}"#;
    const TIMES_TEXT: &str =
        r#"{"layernum[2]_bsz8": 51.0, "layertype_0_bsz8_seq256": 2.0, "layertype_other_bsz8_seq256": 1.0}"#;

    fn settings(micro_batch: u32) -> GalvatronSettings {
        let limits = Limits {
            devices: 4,
            microbatches: 8,
            memory_bytes: Some(1e9),
            bandwidth_bytes_per_s: Some(1e9),
            ..Limits::NEUTRAL
        };
        GalvatronSettings { layers: 3, micro_batch, sequence_length: None, link_bytes_per_s: 1e10, limits }
    }

    fn written(times: &str, memory: &str, settings: &GalvatronSettings) -> Result<String, GenerateError> {
        let name = "computation_profiling_bf16_hidden64_head4.json";
        workload(
            &GalvatronProfile { times: (times, name), memory: (memory, "memory.json") },
            settings,
            "plantui generate",
        )
    }

    #[test]
    fn a_profile_becomes_layers_between_two_ends() {
        assert_eq!(sibling("computation_profiling_x.json").as_deref(), Some("memory_profiling_x.json"));
        let text = written(TIMES_TEXT, MEMORY_TEXT, &settings(8)).unwrap();
        let workload = workload::load_reader(text.as_bytes(), "made.json", "made").unwrap();
        assert_eq!(workload.nodes.len(), 5);
        let value: Value = serde_json::from_str(&text).unwrap();
        let mode = |node: usize, t: &str, mode: usize, field: &str| {
            value["nodes"][node]["TMPCs"][t][mode][field].as_f64().unwrap()
        };
        let near = |a: f64, b: f64| assert!((a - b).abs() <= 1e-5 * b.abs(), "{a} {b}");
        // 8 samples of 2 ms, twice as long backward, and once more with recomputation.
        near(mode(1, "1", 0, "timePerSample"), 0.048);
        near(mode(1, "1", 1, "timePerSample"), 0.064);
        near(mode(0, "1", 0, "timePerSample"), 0.012);
        // Half the work on two devices, and two all-reduces of 8 x 256 x 64 x 2 bytes, each moving 2 (t - 1) / t of
        // them.
        near(mode(1, "2", 0, "forwardTimePerSample"), 0.008 + 2.0 * 262_144.0 / 1e10);
        near(mode(1, "1", 0, "memoryUsageB"), 48.0 * MIB);
        near(mode(1, "2", 0, "memoryUsageA"), 8.0 * 18.0 * MIB);
        near(mode(1, "1", 1, "memoryUsageA"), 16.0 * MIB);
        near(mode(1, "1", 0, "parameterSize"), 3.0 * MIB);
        near(mode(4, "2", 0, "memoryUsageB"), 48.0 * MIB);
    }

    #[test]
    fn other_batches_lie_on_a_line_through_those_measured() {
        let times = r#"{"layertype_0_bsz1": 5.0, "layertype_0_bsz2": 4.0, "layertype_other_0_bsz2": 3.0}"#;
        let memory = MEMORY_TEXT.replace("\"256\"", "\"512\"");
        let text = written(times, &memory, &settings(3)).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        // 5 ms for one and 8 ms for two give 11 ms for three.
        let forward = value["nodes"][1]["TMPCs"]["1"][0]["forwardTimePerSample"].as_f64().unwrap();
        assert!((forward - 0.011).abs() < 1e-9, "{forward}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let told = |times: &str, memory: &str| written(times, memory, &settings(8)).unwrap_err().to_string();
        assert!(told("[]", MEMORY_TEXT).contains("is no JSON object"));
        assert!(told("{}", MEMORY_TEXT).contains("has no layertype_0 at 256 tokens"));
        assert!(told(TIMES_TEXT, "{}").contains("layertype_0 is missing"));
        assert!(told(r#"{"layertype_0_bsz8": -1}"#, MEMORY_TEXT).contains("must be a number from 0 on"));
        assert!(told(r#"{"layertype_1_bsz8": 1}"#, MEMORY_TEXT).contains("second kind of layer"));
        let two =
            MEMORY_TEXT.replacen("{\"256\": {\"parameter_size\"", "{\"512\": {}, \"256\": {\"parameter_size\"", 1);
        assert!(told(TIMES_TEXT, &two).contains("--sequence-length: 512, 256"));
    }
}
