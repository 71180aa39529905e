//! Training configuration of a model, from which the stages of its plan follow.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::workload::training::{Layout, Recompute, ZeroBubble};

/// Degrees of parallelism, microbatch size, recomputation and the split of the layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Degrees of parallelism and the microbatch size.
    pub layout: Layout,
    /// Recomputation in the backward pass.
    pub recompute: Recompute,
    /// True if norms and dropout are divided along the sequence over the tensor group.
    pub sequence_parallel: bool,
    /// True if the optimizer's state is divided over the data-parallel group.
    pub distributed_optimizer: bool,
    /// Layers of each stage, or of each virtual stage in the order of the model. Empty if they are split evenly.
    pub layers: Vec<u32>,
    /// True if the last virtual stage holds the head alone, and the layers that predict further tokens are on the one
    /// before.
    pub head_alone: bool,
    /// Zero-bubble schedule. `None` for 1F1B or, with virtual stages, interleaved 1F1B.
    pub zero_bubble: Option<ZeroBubble>,
}

impl fmt::Display for Configuration {
    /// Usual notation: `tp=4,pp=2,vp=5,cp=1,ep=1,dp=8,mbs=1, recompute full:2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)?;
        if self.recompute != Recompute::None {
            write!(f, ", recompute {}", self.recompute)?;
        }
        if self.layout.tensor > 1 && !self.sequence_parallel {
            f.write_str(", no sequence parallelism")?;
        }
        if !self.distributed_optimizer {
            f.write_str(", whole optimizer state")?;
        }
        if let Some(schedule) = self.zero_bubble {
            write!(f, ", {}", schedule.id())?;
        }
        if !self.layers.is_empty() {
            write!(f, ", layers {}", layers_text(&self.layers, self.head_alone))?;
        }
        Ok(())
    }
}

/// Layers of the stages as `plantui estimate` takes them: `m` stands for the layers that predict further tokens.
fn layers_text(layers: &[u32], head_alone: bool) -> String {
    let with = |(index, count): (usize, &u32)| match head_alone && index + 2 == layers.len() {
        true if *count == 0 => "m".to_string(),
        true => format!("{count}m"),
        false => count.to_string(),
    };
    layers.iter().enumerate().map(with).collect::<Vec<_>>().join(",")
}

/// Configuration in the plan JSON, with the names of `plantui estimate`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigurationPart {
    /// Tensor-parallel degree.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Virtual stages of each pipeline stage.
    #[serde(default = "one")]
    pub vp: u32,
    /// Context-parallel degree.
    #[serde(default = "one")]
    pub cp: u32,
    /// Expert-parallel degree.
    #[serde(default = "one")]
    pub ep: u32,
    /// Tensor-parallel degree of the routed experts.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub etp: u32,
    /// Data-parallel degree, without context parallelism.
    pub dp: u32,
    /// Sequences in a microbatch.
    #[serde(default = "one")]
    pub mbs: u32,
    /// `none`, `selective`, `selective:MODULES`, `full`, `full:N` or `every:N`.
    #[serde(default = "none")]
    pub recompute: String,
    /// True if sequences are divided over the tensor group.
    #[serde(default = "yes")]
    pub sequence_parallel: bool,
    /// True if the optimizer's state is divided over the data-parallel group.
    #[serde(default = "yes")]
    pub distributed_optimizer: bool,
    /// Layers of each (virtual) stage, if they are not split evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<u32>,
    /// True if the last virtual stage holds the head alone, and the layers that predict further tokens are on the one
    /// before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head_alone: bool,
    /// `zb-h1`, `zb-v` or `interleaved-zb`; absent for 1F1B and, with virtual stages, interleaved 1F1B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Seconds per iteration. Only in a list of several configurations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_s: Option<f64>,
    /// Bytes of the fullest rank, the reserve included. Only in a list of several configurations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<f64>,
}

fn one() -> u32 {
    1
}

fn is_one(degree: &u32) -> bool {
    *degree == 1
}

fn none() -> String {
    "none".into()
}

fn yes() -> bool {
    true
}

/// Largest degree or number of layers that a file may contain.
const MOST: u32 = 1 << 20;

impl From<&Configuration> for ConfigurationPart {
    fn from(configuration: &Configuration) -> Self {
        let layout = &configuration.layout;
        ConfigurationPart {
            tp: layout.tensor,
            pp: layout.pipeline,
            vp: layout.virtual_stages,
            cp: layout.context,
            ep: layout.expert,
            etp: layout.expert_tensor,
            dp: layout.data,
            mbs: layout.micro_batch,
            recompute: configuration.recompute.to_string(),
            sequence_parallel: configuration.sequence_parallel,
            distributed_optimizer: configuration.distributed_optimizer,
            layers: configuration.layers.clone(),
            head_alone: configuration.head_alone,
            schedule: configuration.zero_bubble.map(|schedule| schedule.id().into()),
            iteration_s: None,
            memory_bytes: None,
        }
    }
}

impl TryFrom<&ConfigurationPart> for Configuration {
    type Error = (&'static str, String);

    /// Converts the part. The error is the wrong field and its problem.
    fn try_from(part: &ConfigurationPart) -> Result<Self, Self::Error> {
        let degrees = [
            ("tp", part.tp),
            ("pp", part.pp),
            ("vp", part.vp),
            ("cp", part.cp),
            ("ep", part.ep),
            ("etp", part.etp),
            ("dp", part.dp),
            ("mbs", part.mbs),
        ];
        for (field, value) in degrees {
            if !(1..=MOST).contains(&value) {
                return Err((field, format!("is {value}, must be a whole number from 1 to {MOST}")));
            }
        }
        if let Some(count) = part.layers.iter().find(|&&count| count > MOST) {
            return Err(("layers", format!("is {count}, must be a whole number from 0 to {MOST}")));
        }
        let recompute = Recompute::parse(&part.recompute)
            .map_err(|problem| ("recompute", problem.trim_start_matches("recompute ").to_string()))?;
        let zero_bubble = match part.schedule.as_deref() {
            None | Some("1f1b" | "interleaved") => None,
            Some(id) => Some(ZeroBubble::find(id).ok_or_else(|| {
                let shown = crate::text::printable(id);
                ("schedule", format!("is `{shown}`, must be zb-h1, zb-v or interleaved-zb, or be left out for 1F1B"))
            })?),
        };
        Ok(Configuration {
            layout: Layout {
                tensor: part.tp,
                pipeline: part.pp,
                virtual_stages: part.vp,
                context: part.cp,
                expert: part.ep,
                expert_tensor: part.etp,
                data: part.dp,
                micro_batch: part.mbs,
            },
            recompute,
            sequence_parallel: part.sequence_parallel,
            distributed_optimizer: part.distributed_optimizer,
            layers: part.layers.clone(),
            head_alone: part.head_alone,
            zero_bubble,
        })
    }
}
