//! Kind of a file that is not plantui's, detected by its content; by its name only if the content shows nothing.
//!
//! Users give files of their framework: checkpoints, exported models, configurations. The message names the kind of
//! file, and a usable file of the same model if there may be one.

mod bytes;
mod json;
mod text;

pub(super) use bytes::of_bytes;
pub(super) use json::of_json;
pub(super) use text::of_text;

/// Kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workload::formats) struct FileKind {
    /// Kind with its article: `a PDF`.
    pub(in crate::workload::formats) is: &'static str,
    /// Role for plantui.
    pub(in crate::workload::formats) role: FileRole,
}

/// Role of a file for plantui, which determines the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workload::formats) enum FileRole {
    /// Model or its weights: the same model's configuration is usable.
    Model,
    /// Configuration of a model, which can be trained.
    Configuration,
    /// Archive: its content may be usable.
    Packed,
    /// Text in another encoding.
    Encoded,
    /// Pointer to the file itself.
    Pointer,
    /// Any other file.
    Other,
}

const fn model(is: &'static str) -> FileKind {
    FileKind { is, role: FileRole::Model }
}

const fn packed(is: &'static str) -> FileKind {
    FileKind { is, role: FileRole::Packed }
}

const fn other(is: &'static str) -> FileKind {
    FileKind { is, role: FileRole::Other }
}

/// Kind by the extension of a file's name.
fn by_name(source: &str) -> Option<FileKind> {
    const ENDINGS: [(&str, FileKind); 22] = [
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
