//! Where the published inputs are.

use std::path::PathBuf;

/// The folder that `PLANTUI_REFERENCE` names; says that the test is skipped where it is not set.
pub(crate) fn root(test: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from);
    if root.is_none() {
        println!("skipped {test}: PLANTUI_REFERENCE is not set");
    }
    root
}
