//! What a file is that is none of ours: told by its content, and by its name only where the content says nothing.
//!
//! People bring what their framework writes: checkpoints, exported models, configurations. The message says what the file
//! is, and where there is something of the same model that would do, what that is.

mod bytes;
mod json;
mod text;

pub(super) use bytes::of_bytes;
pub(super) use json::of_json;
pub(super) use text::of_text;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workload::formats) struct Kind {
    /// With its article: `a PDF`.
    pub(in crate::workload::formats) is: &'static str,
    /// What it is to plantui.
    pub(in crate::workload::formats) role: Role,
}

/// What a file is to plantui, which decides what to say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workload::formats) enum Role {
    /// A model or its weights: the same model's configuration would do.
    Model,
    /// The configuration of a model, which can be trained.
    Configuration,
    /// Packed: what is in it may do.
    Packed,
    /// Text in another encoding.
    Encoded,
    /// A stand-in for the file itself.
    Pointer,
    /// Anything else.
    Other,
}

const fn model(is: &'static str) -> Kind {
    Kind { is, role: Role::Model }
}

const fn packed(is: &'static str) -> Kind {
    Kind { is, role: Role::Packed }
}

const fn other(is: &'static str) -> Kind {
    Kind { is, role: Role::Other }
}

/// What a file's name says of content that says nothing.
fn by_name(source: &str) -> Option<Kind> {
    const ENDINGS: [(&str, Kind); 22] = [
        ("onnx", model("an ONNX model, by its name")),
        ("pt", model("a PyTorch checkpoint, by its name")),
        ("pth", model("a PyTorch checkpoint, by its name")),
        ("pt2", model("a PyTorch export, by its name")),
        ("ckpt", model("a checkpoint, by its name")),
        ("bin", model("weights, by its name")),
        ("safetensors", model("a safetensors checkpoint, by its name")),
        ("gguf", model("a GGUF model, by its name")),
        ("pb", model("a TensorFlow graph, by its name")),
        ("tflite", model("a TensorFlow Lite model, by its name")),
        ("h5", model("a Keras model, by its name")),
        ("keras", model("a Keras model, by its name")),
        ("mlmodel", model("a Core ML model, by its name")),
        ("engine", model("a TensorRT engine, by its name")),
        ("npy", model("a NumPy array, by its name")),
        ("npz", model("NumPy arrays, by its name")),
        ("pkl", model("a Python pickle, by its name")),
        ("rs", other("Rust source, by its name")),
        ("cu", other("CUDA source, by its name")),
        ("md", other("Markdown, by its name")),
        ("tex", other("LaTeX, by its name")),
        ("log", other("a log, by its name")),
    ];
    let (_, ending) = source.rsplit_once('.')?;
    ENDINGS.iter().find(|(known, _)| ending.eq_ignore_ascii_case(known)).map(|(_, kind)| *kind)
}
