//! Where the published inputs are.

use std::path::PathBuf;

/// The folder that `PLANTUI_REFERENCE` names. Tests that ask for it are ignored unless they are asked for by
/// `cargo test --release -- --ignored`, so that none passes without its inputs.
///
/// # Panics
/// Where the variable is not set.
pub(crate) fn root() -> PathBuf {
    let root = std::env::var_os("PLANTUI_REFERENCE");
    PathBuf::from(root.expect("PLANTUI_REFERENCE names the folder of the published inputs"))
}
