//! Size, colours, keys and signs of the screen.

use std::{path::PathBuf, time::Instant};

use ratatui::layout::{Position, Rect};

use crate::tui::{
    keymap::Keymap,
    place::Hit,
    theme::{Depth, Theme},
};

/// Smallest screen on which everything fits, cells.
pub(in crate::tui) const SMALLEST: (u16, u16) = (60, 16);

/// Size, colours, keys and signs of the screen.
pub(in crate::tui) struct Appearance {
    /// Colours.
    pub(in crate::tui) theme: Theme,
    /// Colour depth.
    pub(in crate::tui) depth: Depth,
    /// Folder of the user's themes.
    pub(in crate::tui) theme_directory: Option<PathBuf>,
    /// True to draw with ASCII alone.
    pub(in crate::tui) ascii: bool,
    /// True to draw with the signs of the Linux console alone.
    pub(in crate::tui) console: bool,
    /// True once the screen has been large enough to show anything.
    pub(in crate::tui) seen: bool,
    /// Size of the screen at the last drawing, cells.
    pub(in crate::tui) size: (u16, u16),
    /// Current time, set by the loop.
    pub(in crate::tui) now: Instant,
    /// Clickable areas of the last drawing; later ones lie on top.
    pub(in crate::tui) hits: Vec<(Rect, Hit)>,
    /// Keys of each action.
    pub(in crate::tui) keymap: Keymap,
}

impl Appearance {
    /// Target of a click at a position.
    pub(in crate::tui) fn hit(&self, position: Position) -> Option<Hit> {
        self.hits.iter().rev().find(|(area, _)| area.contains(position)).map(|(_, hit)| *hit)
    }
}
