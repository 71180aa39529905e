//! Parts that several views are made of.

pub(super) mod bar;
pub(super) mod filter;
pub(super) mod scrollbar;
pub(super) mod tree;
