//! A plan's choice for a node, out of the modes that the node's profile offers.

use std::fmt;

use super::{
    mixed::LayerMode,
    operators::DimensionSplit,
    piper::{self, RECOMPUTE, VANILLA},
    placement::{ACCELERATOR, CPU},
    profiled::Profile,
};

/// Execution mode of a node within its stage. Its text is the one in plan documents and split files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Choice {
    /// Mode of a profile by tensor degree, by its id in the profile.
    Mode(String),
    /// Layer that keeps its activations until its backward pass.
    Keep,
    /// Layer whose backward pass recomputes its activations.
    Recompute,
    /// Node on an accelerator.
    Accelerator,
    /// Node on a CPU.
    Cpu,
    /// Operator split into pieces, one per device.
    Split(DimensionSplit),
    /// Layer with a micro-batch, on one of several kinds of devices.
    Layer(LayerMode),
    /// Text from a file that names no choice of the workload's profile. No check accepts it.
    Unknown(String),
}

impl Choice {
    /// Reads a choice from a text, for a node of the given profile.
    pub fn read(profile: &Profile, text: String) -> Choice {
        match (profile, text.as_str()) {
            (Profile::Piper(_), _) => Choice::Mode(text),
            (Profile::Layers(_) | Profile::Training(_), VANILLA) => Choice::Keep,
            (Profile::Layers(_) | Profile::Training(_), RECOMPUTE) => Choice::Recompute,
            (Profile::Placement(_), ACCELERATOR) => Choice::Accelerator,
            (Profile::Placement(_), CPU) => Choice::Cpu,
            (Profile::Mixed(_), _) => text.parse().map_or(Choice::Unknown(text), Choice::Layer),
            (Profile::Operators(_), _) => text.parse().map_or(Choice::Unknown(text), Choice::Split),
            _ => Choice::Unknown(text),
        }
    }

    /// Choice of a layer that recomputes its activations or keeps them.
    pub fn of_layer(recompute: bool) -> Choice {
        if recompute { Choice::Recompute } else { Choice::Keep }
    }

    /// True if the backward pass recomputes activations.
    pub fn recomputes(&self) -> bool {
        match self {
            Choice::Mode(id) => piper::recomputes(id),
            Choice::Layer(mode) => mode.recompute,
            choice => *choice == Choice::Recompute,
        }
    }

    /// Choice as text for people. The published names of layer modes need prior knowledge to read.
    pub fn label(&self) -> String {
        match self.to_string().as_str() {
            VANILLA => "no recompute".into(),
            RECOMPUTE => "recompute".into(),
            other => other.into(),
        }
    }

    /// Id of the mode, if the choice is a mode of a profile by tensor degree.
    pub fn mode(&self) -> Option<&str> {
        match self {
            Choice::Mode(id) => Some(id),
            _ => None,
        }
    }

    /// Split of an operator, if the choice is a split.
    pub fn split(&self) -> Option<&DimensionSplit> {
        match self {
            Choice::Split(split) => Some(split),
            _ => None,
        }
    }

    /// Mode of a layer on one of several kinds of devices, if the choice is one.
    pub fn layer_mode(&self) -> Option<LayerMode> {
        match self {
            Choice::Layer(mode) => Some(*mode),
            _ => None,
        }
    }

    /// True if the choice is the mode with this id.
    pub fn is_mode(&self, id: &str) -> bool {
        self.mode() == Some(id)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Mode(text) | Choice::Unknown(text) => f.pad(text),
            Choice::Keep => f.pad(VANILLA),
            Choice::Recompute => f.pad(RECOMPUTE),
            Choice::Accelerator => f.pad(ACCELERATOR),
            Choice::Cpu => f.pad(CPU),
            Choice::Split(split) => split.fmt(f),
            Choice::Layer(mode) => mode.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::workload::load;

    #[test]
    fn a_text_is_read_as_its_profile_means_it_and_written_as_it_was() {
        let cases = [
            ("bert32a100.json", "activation recomp", Choice::Mode(RECOMPUTE.into())),
            ("bert32a100.json", "cpu", Choice::Mode(CPU.into())),
            ("bert32-layers.txt", "vanilla", Choice::Keep),
            ("bert32-layers.txt", "activation recomp", Choice::Recompute),
            ("bert32-layers.txt", "cpu", Choice::Unknown(CPU.into())),
            ("branching-cnn-training.json", "cpu", Choice::Cpu),
            ("branching-cnn-training.json", "accelerator", Choice::Accelerator),
            ("branching-cnn-training.json", "vanilla", Choice::Unknown(VANILLA.into())),
            ("alexnet-operators.json", "whole", Choice::Split(DimensionSplit::default())),
            ("alexnet-operators.json", "b=4 n=8", Choice::Split("b=4 n=8".parse().unwrap())),
            ("alexnet-operators.json", "b=0", Choice::Unknown("b=0".into())),
        ];
        for (file, text, wanted) in cases {
            let workload = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../inputs").join(file)).unwrap();
            let choice = Choice::read(&workload.profile, text.into());
            assert_eq!(choice, wanted, "{file}");
            assert_eq!(choice.to_string(), text, "{file}");
        }
        let recomputing = [Choice::Recompute, Choice::Mode("full_recompute".into())];
        assert!(recomputing.iter().all(Choice::recomputes));
        assert!(![Choice::Keep, Choice::Mode(VANILLA.into()), Choice::Accelerator].iter().any(Choice::recomputes));
    }
}
