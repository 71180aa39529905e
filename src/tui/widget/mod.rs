//! Widgets that several views share.

pub(super) mod bar;
pub(super) mod filter;
pub(super) mod list;
pub(super) mod scrollbar;
pub(super) mod tree;
