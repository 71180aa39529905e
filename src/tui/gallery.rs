//! Every view at every size in every look, as pictures to look at: what a change of the screen is judged by.

use std::{path::Path, sync::Arc, time::Duration};

use super::{Action, Depth, Focus, Offscreen, ScreenError, ScreenRequest, View, picture};
use crate::workload::Workload;

/// The sizes: a small terminal, a usual one, a large one.
pub const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 60)];

/// A look: what its pictures are called, its theme, and how many colours there are.
pub const LOOKS: [(&str, &str, Depth); 3] =
    [("dark", "dark", Depth::True), ("light", "light", Depth::True), ("16", "dark", Depth::Ansi)];

/// A screen of a workload in a look, with nothing of whoever draws it, on a view that has rested.
///
/// # Errors
/// [`ScreenError`] if the screen cannot be made.
pub fn posed(
    workload: &Arc<Workload>,
    (theme, depth): (&str, Depth),
    (width, height): (u16, u16),
    view: View,
) -> Result<Offscreen, ScreenError> {
    let mut request: ScreenRequest = picture::posed(workload, theme);
    request.depth = depth;
    // A planner that improves its plan for minutes shows what it has after a moment.
    request.deadline = Some(Duration::from_secs(2));
    let mut screen = Offscreen::new(request, width, height)?;
    screen.act(Action::Show(view));
    screen.focus(Focus::View);
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(500));
    Ok(screen)
}

/// Draws every view of the workloads, which come with the names for their pictures, in every size and look into a folder;
/// returns the names of the files.
///
/// # Errors
/// [`ScreenError`] if a screen cannot be made or a file cannot be written.
pub fn draw(folder: &Path, workloads: &[(String, Arc<Workload>)]) -> Result<Vec<String>, ScreenError> {
    std::fs::create_dir_all(folder)?;
    let mut names = vec![];
    for (workload_name, workload) in workloads {
        for (look, theme, depth) in LOOKS {
            for (width, height) in SIZES {
                for view in View::ALL {
                    let mut screen = posed(workload, (theme, depth), (width, height), view)?;
                    let title = view.title().to_lowercase();
                    let name = format!("{workload_name}-{title}-{width}x{height}-{look}.svg");
                    std::fs::write(folder.join(&name), screen.svg())?;
                    names.push(name);
                }
            }
        }
    }
    Ok(names)
}
