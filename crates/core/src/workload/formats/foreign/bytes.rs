//! Binary files, detected by their first bytes.

use super::{FileKind, FileRole, by_name, model, other, packed};

/// First bytes of files, with their kind.
const MAGIC: [(&[u8], FileKind); 46] = [
    (b"\x1f\x8b", packed("gzip-compressed")),
    (b"\x28\xb5\x2f\xfd", packed("zstd-compressed")),
    (b"BZh", packed("bzip2-compressed")),
    (b"\xfd7zXZ\x00", packed("xz-compressed")),
    (b"\x04\x22\x4d\x18", packed("lz4-compressed")),
    (b"7z\xbc\xaf\x27\x1c", packed("a 7z archive")),
    (b"Rar!\x1a\x07", packed("a RAR archive")),
    (b"PK\x03\x04", packed("a zip archive")),
    (b"PK\x05\x06", packed("an empty zip archive")),
    (b"GGUF", model("a GGUF model")),
    (b"\x89HDF\r\n\x1a\n", model("an HDF5 file, as Keras writes")),
    (b"\x93NUMPY", model("a NumPy array")),
    (b"\x80\x02", model("a Python pickle, as PyTorch wrote checkpoints")),
    (b"\x80\x03", model("a Python pickle")),
    (b"\x80\x04", model("a Python pickle")),
    (b"\x80\x05", model("a Python pickle")),
    (b"\x7fELF", other("a program")),
    (b"\xcf\xfa\xed\xfe", other("a program")),
    (b"\xce\xfa\xed\xfe", other("a program")),
    (b"\xca\xfe\xba\xbe", other("a program")),
    (b"\0asm", other("a WebAssembly program")),
    (b"!<arch>\n", other("a library of object code")),
    (b"\x89PNG", other("a picture")),
    (b"\xff\xd8\xff", other("a picture")),
    (b"GIF87a", other("a picture")),
    (b"GIF89a", other("a picture")),
    (b"II*\0", other("a picture")),
    (b"MM\0*", other("a picture")),
    (b"%PDF", other("a PDF")),
    (b"%!PS", other("PostScript")),
    (b"{\\rtf", other("a document in RTF")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", other("an Office document")),
    (b"SQLite format 3\0", other("an SQLite database, such as a profile of Nsight Systems")),
    (b"PAR1", other("a Parquet table")),
    (b"ARROW1", other("an Arrow table")),
    (b"OggS", other("audio")),
    (b"ID3\x03", other("audio")),
    (b"ID3\x04", other("audio")),
    (b"RIFF", other("a picture, audio or video in RIFF")),
    (b"\xff\xfe\0\0", FileKind { is: "text in UTF-32", role: FileRole::Encoded }),
    (b"\0\0\xfe\xff", FileKind { is: "text in UTF-32", role: FileRole::Encoded }),
    (b"\xff\xfe", FileKind { is: "text in UTF-16", role: FileRole::Encoded }),
    (b"\xfe\xff", FileKind { is: "text in UTF-16", role: FileRole::Encoded }),
    (b"-----BEGIN ", other("a key or a certificate")),
    (b"version https://git-lfs", FileKind { is: "a pointer of Git LFS to the file itself", role: FileRole::Pointer }),
    (b"BEGIN:VCALENDAR", other("a calendar")),
];

/// Kind of a file that is certainly not a readable text; `None` if it may be text.
pub(in crate::workload::formats) fn of_bytes(bytes: &[u8], source: &str) -> Option<FileKind> {
    let begins = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind);
    match begins {
        Some(zip) if bytes.starts_with(b"PK\x03\x04") => {
            let named = source.to_ascii_lowercase().ends_with(".pt2").then_some(model("a program of torch.export"));
            return Some(in_zip(bytes).or(named).unwrap_or(zip));
        }
        Some(kind) => return Some(kind),
        None => {}
    }
    if is_safetensors(bytes) {
        return Some(model("a safetensors checkpoint"));
    }
    if bytes.get(4..8) == Some(b"TFL3") {
        return Some(model("a TensorFlow Lite model"));
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    // If a file begins as JSON, the JSON reader reports where it stops being JSON.
    let json = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) && !head.contains(&0);
    if bytes.get(257..262) == Some(b"ustar") && !json {
        return Some(packed("a tar archive"));
    }
    if let Some(kind) = protobuf(bytes) {
        return Some(kind);
    }
    if is_wide(head) {
        return Some(FileKind { is: "text in UTF-16 or UTF-32", role: FileRole::Encoded });
    }
    // Text has line breaks, form feeds, tabs and escape sequences, but no other control characters.
    let binary = |&byte: &u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | b'\x0c' | b'\x1b');
    let told = if head.starts_with(b"MZ") { "a program" } else { "binary data" };
    (!json && head.iter().any(binary)).then(|| by_name(source).unwrap_or(other(told)))
}

/// Number of bytes that are inspected.
const HEAD: usize = 4096;

/// Kind of a zip archive, detected by the first names in it.
fn in_zip(bytes: &[u8]) -> Option<FileKind> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let has = |needle: &str| head.windows(needle.len()).any(|window| window == needle.as_bytes());
    if has("serialized_exported_program") || has("models/model.json") {
        Some(model("a program of torch.export"))
    } else if has("data.pkl") || has("constants.pkl") || has("archive_format") {
        Some(model("a PyTorch checkpoint"))
    } else if has("model.weights.h5") {
        Some(model("a Keras model"))
    } else if has(".npy") {
        Some(model("NumPy arrays"))
    } else if has("[Content_Types].xml") {
        Some(other("an Office document"))
    } else {
        None
    }
}

/// True for eight bytes of length, then a JSON object.
fn is_safetensors(bytes: &[u8]) -> bool {
    let length = bytes.get(..8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    length.is_some_and(|length| (2..1 << 30).contains(&length)) && bytes.get(8) == Some(&b'{')
}

/// True for text of two or four bytes per character: for ASCII characters, every other byte is zero.
fn is_wide(head: &[u8]) -> bool {
    let zeros = |from: usize| head.iter().skip(from).step_by(2).filter(|&&byte| byte == 0).count();
    let half = head.len() / 2;
    let printable = head.iter().filter(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()).count();
    half >= 2 && (zeros(0) * 10 >= half * 9 || zeros(1) * 10 >= half * 9) && printable * 5 >= head.len()
}

/// Detects an ONNX model or a TensorFlow graph. Both are protobuf messages; their first fields differ.
fn protobuf(bytes: &[u8]) -> Option<FileKind> {
    // ONNX: ir_version = 1 comes first, then names (2 to 6), the graph (7), operator sets (8), metadata (14, 20, 25,
    // 26).
    const ONNX: [u64; 11] = [2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26];
    let (first, mut rest) = varint(bytes)?;
    if first != 1 << 3 {
        return tensorflow(bytes);
    }
    let (version, after) = varint(rest)?;
    rest = after;
    let mut fields = 0;
    while fields < 4
        && let Some((tag, after)) = varint(rest)
    {
        let (field, wire) = (tag >> 3, tag & 7);
        if !ONNX.contains(&field) || wire != if field == 5 { 0 } else { 2 } {
            return None;
        }
        let (value, after) = varint(after)?;
        fields += 1;
        rest = if wire == 2 { after.get(usize::try_from(value).ok()?..).unwrap_or_default() } else { after };
    }
    // TensorFlow's saved model begins with version 1 too, then its graphs, whose first entry is not a short name.
    let name = after.strip_prefix(b"\x12").and_then(varint);
    let named = name.is_none_or(|(length, name)| length < 256 && name.first().is_none_or(u8::is_ascii_graphic));
    match (fields, version) {
        (0, _) => None,
        (_, 1) if !named => Some(model("a TensorFlow saved model")),
        (_, 1..=99) => Some(model("an ONNX model")),
        _ => None,
    }
}

/// Detects a frozen graph of TensorFlow: nodes (field 1), each beginning with its name.
fn tensorflow(bytes: &[u8]) -> Option<FileKind> {
    let node = bytes.strip_prefix(b"\x0a").and_then(varint).and_then(|(_, node)| node.strip_prefix(b"\x0a"));
    let (length, name) = varint(node?)?;
    let name = name.get(..usize::try_from(length).ok()?)?;
    // A text would need another line break here and a name of exactly that length.
    let operation = name.len() > 1 && name.iter().all(u8::is_ascii_graphic);
    (operation && bytes[1] != b'\n' && bytes.iter().take(HEAD).any(|&byte| byte == 0x12))
        .then_some(model("a TensorFlow graph"))
}

/// Number in protobuf's encoding, and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(bytes: &[u8]) -> Option<&'static str> {
        of_bytes(bytes, "w").map(|kind| kind.is)
    }

    #[test]
    fn protobufs_are_told_from_text() {
        // ir_version 8, producer "pytorch", an empty graph, operator set 17.
        assert_eq!(is(b"\x08\x08\x12\x07pytorch\x3a\x00\x42\x02\x10\x11"), Some("an ONNX model"));
        assert_eq!(is(b"\x08\x07\x12\x04stub"), Some("an ONNX model"));
        assert_eq!(is(b"\x08\x09\x3a\xff\x7fcut off here"), Some("an ONNX model"));
        assert_eq!(is(b"\x08\x01\x12\x90\x4e\x0a\x20\x12"), Some("a TensorFlow saved model"));
        assert_eq!(is(b"\x0a\x10\x0a\x05input\x12\x0bPlaceholder"), Some("a TensorFlow graph"));
        for text in ["\n\n\n{}", "\ttext", "\n\x0bid", "plain", "{\"nodes\": []}", "\n\u{1b}[31mred"] {
            assert!(protobuf(text.as_bytes()).is_none(), "{text:?}");
        }
        assert_eq!(is(b"\x08\x08"), Some("binary data"));
    }

    #[test]
    fn wide_text_is_told_from_binary_data() {
        let wide: Vec<u8> = "{\"nodes\": []}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(is(&wide), Some("text in UTF-16 or UTF-32"));
        assert_eq!(is(&[0; 64]), Some("binary data"));
        assert_eq!(is(b"{\"a\x01b\": 1}"), None);
        let long = format!("{{\"pad\": \"{}ustar\"}}", "x".repeat(257 - 9));
        assert_eq!((&long[257..262], is(long.as_bytes())), ("ustar", None));
        assert_eq!(is("{\"größe\": \"\u{4f60}\"}\r\n\t".as_bytes()), None);
    }
}
