//! Parts that several views are made of.

pub mod bar;
pub mod filter;
pub mod tree;
