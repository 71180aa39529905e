//! A workload from a model configuration and a hardware preset.
