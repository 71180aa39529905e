//! Drawing that several views share: text cut to a width, computed colours, the device map, the strip of an iteration.
//!
//! Views do not use each other; shared code stands here.

pub(in crate::tui) mod area;
pub(in crate::tui) mod atlas;
pub(in crate::tui) mod axis;
pub(in crate::tui) mod batch;
pub(in crate::tui) mod dim;
pub(in crate::tui) mod facts;
pub(in crate::tui) mod links;
pub(in crate::tui) mod load_parts;
pub(in crate::tui) mod map;
mod map_grid;
pub(in crate::tui) mod map_layout;
pub(in crate::tui) mod memory_chart;
pub(in crate::tui) mod moment;
pub(in crate::tui) mod phrases;
pub(in crate::tui) mod shades;
pub(in crate::tui) mod stage_block;
pub(in crate::tui) mod stage_line;
pub(in crate::tui) mod strip;
pub(in crate::tui) mod summary;
pub(in crate::tui) mod text;
pub(in crate::tui) mod topology;
pub(in crate::tui) mod words;
