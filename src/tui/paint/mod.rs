//! What several views draw alike: colours that are made, devices as cells of a map, a batch as a strip.
//!
//! Views know nothing of each other; what they share stands here.

pub(in crate::tui) mod atlas;
pub(in crate::tui) mod facts;
pub(in crate::tui) mod map;
pub(in crate::tui) mod map_layout;
pub(in crate::tui) mod moment;
pub(in crate::tui) mod shades;
pub(in crate::tui) mod stage_block;
pub(in crate::tui) mod stage_line;
pub(in crate::tui) mod strip;
