//! Overview: the plan as a picture.
//!
//! ```text
//! 39.82 s → 31.95 s    1.25x faster    24.9%    78.4 of 80 GiB       figures
//! Cluster  126 of 128 devices                              legend  | Stage 4
//! ██ ██ ██ ██  ██ ██ ██ ██    a cell a device: hue stage,          | forward    109.7 ms
//! ▆▆ ▆▆ ▆▆ ▆▆  ██ ██ ██ ██    height memory, brightness load       | ..
//! Transfers  who sends to whom, as arcs                            |
//! Batch    256 microbatches, 1F1B                          legend  | What would help
//!  1 ▐██▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇   a row a stage                 | 2x devices    1.98x
//!    ├─ warm-up ─┤├──── steady ────┤├─ drain ─┤
//! ```
//! Where it is narrow, stage and help are lines below. Playing the batch moves a playhead over the strip, and cells of the map
//! show what their devices do there.

mod arcs;
mod areas;
mod below;
mod draw;
mod figures;
mod handovers;
mod side;
mod state;
mod traffic;
mod update;

pub(in crate::tui) use draw::draw;
pub(in crate::tui) use state::Overview;
