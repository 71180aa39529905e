//! Views that own their state: a folder each, with what it knows, how it changes and how it is drawn.

pub(super) mod overview;
