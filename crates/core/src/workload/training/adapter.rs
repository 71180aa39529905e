//! Low-rank adapters (LoRA, QLoRA): the base weights are frozen, and each adapted matrix has two narrow ones beside it.
//!
//! An adapter of rank r on a matrix from `in` to `out` has r (in + out) parameters. Only these have gradients and
//! optimizer state.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;
use serde_json::Value;

use super::model::{Attention, FeedForward, LayerKind};

/// Bytes per weight in 4-bit NormalFloat with double quantisation: 4 bits, and 8 bits per block of 64 (Dettmers et al.
/// 2023, section 3).
pub const NF4_BYTES: f64 = 0.516;

/// Adapters on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adapter {
    /// Rank, r.
    pub rank: u32,
    /// True if the base weights are in 4 bits (QLoRA).
    pub quantised: bool,
    /// Adapted projections, a bit for each of [`PROJECTIONS`].
    targets: u8,
}

/// Names of the projections that can be adapted.
pub const PROJECTIONS: [&str; 7] = ["q", "k", "v", "o", "gate", "up", "down"];

/// Groups of projections: name and bits.
const GROUPS: [(&str, u8); 3] = [("all", 0x7f), ("attention", 0x0f), ("mlp", 0x70)];

/// Largest rank.
const MOST_RANK: u32 = 1 << 16;

/// `adapter_config.json` of PEFT, as far as it matters here.
#[derive(Deserialize)]
struct PeftFile {
    peft_type: String,
    r: u32,
    target_modules: Option<PeftTargets>,
    /// The rest, in which some fields change what is trained.
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PeftTargets {
    Word(String),
    Names(Vec<String>),
}

impl Adapter {
    /// Reads `lora:r=16,targets=all`, `qlora`, or `none`. Targets are separated by `+`.
    ///
    /// # Errors
    /// A sentence with the allowed form.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let shown = crate::text::printable(text);
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let quantised = match kind {
            "none" => return Ok(None),
            "lora" => false,
            "qlora" => true,
            _ => {
                return Err(format!(
                    "adapter is `{shown}`, must be none, lora or qlora, such as lora:r=16,targets=all"
                ));
            }
        };
        let mut adapter = Adapter { rank: 16, quantised, targets: GROUPS[0].1 };
        for part in rest.split([',', ':']).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("r", rank)) => {
                    let rank = rank.parse().ok().filter(|rank| (1..=MOST_RANK).contains(rank));
                    adapter.rank =
                        rank.ok_or_else(|| format!("adapter is `{shown}`: r must be from 1 to {MOST_RANK}"))?;
                }
                Some(("targets", names)) => adapter.targets = targets(names.split('+'), &shown)?,
                _ => return Err(format!("adapter is `{shown}`: after the kind come r=RANK and targets=NAMES")),
            }
        }
        Ok(Some(adapter))
    }

    /// Reads PEFT's `adapter_config.json`.
    ///
    /// # Errors
    /// A sentence, if it is no such file or adapts something else.
    pub fn from_peft(text: &str) -> Result<Self, String> {
        let file: PeftFile =
            serde_json::from_str(text).map_err(|error| format!("is no adapter_config.json: {error}"))?;
        if !file.peft_type.eq_ignore_ascii_case("lora") {
            return Err(format!("has the peft_type {}, must be LORA", crate::text::printable(&file.peft_type)));
        }
        for field in ["use_dora", "rank_pattern", "modules_to_save", "layers_to_transform", "exclude_modules"] {
            let set = |value: &Value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::Object(map) => !map.is_empty(),
                Value::Array(list) => !list.is_empty(),
                _ => true,
            };
            if file.rest.get(field).is_some_and(set) {
                return Err(format!("sets {field}, which is not modelled"));
            }
        }
        let all = GROUPS[0].1;
        let targets = match &file.target_modules {
            None => all,
            Some(PeftTargets::Word(word)) if word == "all-linear" => all,
            Some(PeftTargets::Word(word)) => targets([word.as_str()], word)?,
            Some(PeftTargets::Names(names)) => targets(names.iter().map(String::as_str), "target_modules")?,
        };
        if !(1..=MOST_RANK).contains(&file.r) {
            return Err(format!("has r = {}, must be from 1 to {MOST_RANK}", file.r));
        }
        Ok(Adapter { rank: file.r, quantised: false, targets })
    }

    fn adapts(self, projection: usize) -> bool {
        self.targets & 1 << projection != 0
    }

    /// Parameters of the adapters of a layer on each of `t` tensor-parallel ranks: of attention and dense block, and of
    /// routed experts (all of them together).
    pub fn parameters(self, kind: &LayerKind, hidden: u64, t: f64) -> [f64; 2] {
        let (h, rank) = (hidden as f64, f64::from(self.rank));
        let pair = |projection: usize, inputs: f64, outputs: f64| {
            if self.adapts(projection) { rank * (inputs + outputs) } else { 0.0 }
        };
        let attention = match kind.attention {
            Attention::Grouped { heads: 0, .. } => 0.0,
            Attention::Grouped { heads, key_value_heads, head_size } => {
                let [wide, narrow] = [heads, key_value_heads].map(|count| (count * head_size) as f64 / t);
                pair(0, h, wide) + pair(1, h, narrow) + pair(2, h, narrow) + pair(3, wide, h)
            }
            Attention::Latent { .. } => {
                let any = (0..4).any(|projection| self.adapts(projection));
                let sides = kind.attention.matrices(hidden).into_iter().map(|matrix| matrix.on_rank(t));
                if any { sides.map(|(outputs, inputs)| rank * (inputs + outputs)).sum() } else { 0.0 }
            }
        };
        let block = |width: f64, gated: bool| {
            let gate = if gated { pair(4, h, width) } else { 0.0 };
            gate + pair(5, h, width) + pair(6, width, h)
        };
        match kind.feed_forward {
            FeedForward::Dense { width, gated } => [attention + block(width as f64 / t, gated), 0.0],
            FeedForward::Experts(e) => {
                let shared = if e.shared_width > 0 { block(e.shared_width as f64 / t, e.gated) } else { 0.0 };
                let wide = e.token_width(hidden) as f64;
                let gate = if e.gated { pair(4, wide, e.width as f64) } else { 0.0 };
                let one = gate + pair(5, wide, e.width as f64) + pair(6, e.width as f64, wide);
                [attention + shared, e.count as f64 * one]
            }
        }
    }
}

fn targets<'t>(names: impl IntoIterator<Item = &'t str>, shown: &str) -> Result<u8, String> {
    let mut targets = 0;
    for name in names {
        // PEFT's names are those of the modules, such as q_proj.
        let short = name.trim_end_matches("_proj");
        let group = GROUPS.iter().find(|(known, _)| *known == name).map(|(_, bits)| *bits);
        let one = PROJECTIONS.iter().position(|known| *known == short).map(|at| 1 << at);
        targets |= group.or(one).ok_or_else(|| {
            format!(
                "adapter is `{shown}`: `{}` is no projection; there are {}, all, attention, mlp",
                crate::text::printable(name),
                PROJECTIONS.join(", ")
            )
        })?;
    }
    Ok(targets)
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:r={}", if self.quantised { "qlora" } else { "lora" }, self.rank)?;
        if self.targets == GROUPS[0].1 {
            return Ok(());
        }
        let group = GROUPS.iter().find(|(_, bits)| *bits == self.targets).map(|(name, _)| (*name).to_string());
        let names = || (0..7).filter(|at| self.adapts(*at)).map(|at| PROJECTIONS[at]).collect::<Vec<_>>().join("+");
        write!(f, ":targets={}", group.unwrap_or_else(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::training::published;

    #[test]
    fn every_form_is_read_as_it_is_shown() {
        for text in ["lora:r=16", "qlora:r=8:targets=attention", "lora:r=4:targets=q+v"] {
            assert_eq!(Adapter::parse(text).unwrap().unwrap().to_string(), text);
        }
        assert_eq!(Adapter::parse("none"), Ok(None));
        assert_eq!(Adapter::parse("lora:r=16,targets=all"), Adapter::parse("lora"));
        assert!(Adapter::parse("lora:targets=head").unwrap_err().contains("`head` is no projection"));
        assert!(Adapter::parse("dora").is_err() && Adapter::parse("lora:r=0").is_err());
        let peft = Adapter::from_peft(r#"{"peft_type": "LORA", "r": 4, "target_modules": ["q_proj", "v_proj"]}"#);
        assert_eq!(peft.unwrap().to_string(), "lora:r=4:targets=q+v");
        let dora = Adapter::from_peft(r#"{"peft_type": "LORA", "r": 4, "use_dora": true}"#);
        assert!(dora.unwrap_err().contains("use_dora"));
        assert!(Adapter::from_peft(r#"{"peft_type": "IA3", "r": 4}"#).unwrap_err().contains("must be LORA"));
    }

    #[test]
    fn parameters_are_those_that_peft_counts() {
        // PEFT prints 41,943,040 trainable parameters for all linear projections of Llama 3 8B at r = 16.
        let model = published::find("llama-3-8b").unwrap();
        let adapter = Adapter::parse("lora:r=16").unwrap().unwrap();
        let [shared, experts] = adapter.parameters(model.kind(0), model.hidden, 1.0);
        assert_eq!((32.0 * shared, experts), (41_943_040.0, 0.0));
    }
}
