//! Syntaxes of job files, each read to settings with their lines; nothing is executed.

pub(crate) mod dump;
pub(crate) mod python;
pub(crate) mod shell;
pub(crate) mod toml;
pub(crate) mod yaml;

/// Most settings of a file.
pub(crate) const MOST_SETTINGS: usize = 100_000;

/// Number of the line at a byte offset, from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> u32 {
    let before = &text.as_bytes()[..offset.min(text.len())];
    u32::try_from(before.iter().filter(|byte| **byte == b'\n').count() + 1).unwrap_or(u32::MAX)
}
