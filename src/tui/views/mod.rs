//! The views, a folder each: what a view knows, what it does with keys and clicks, how it is drawn. None knows another.

pub(super) mod compare;
pub(super) mod devices;
pub(super) mod overview;
pub(super) mod stages;
pub(super) mod sweep;
pub(super) mod timeline;
pub(super) mod workload;
