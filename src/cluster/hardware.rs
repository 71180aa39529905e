//! Hardware presets.
