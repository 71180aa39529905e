//! Pictures of every view at every size and look, for judging changes of the screen.

use std::{path::Path, sync::Arc, time::Duration};

use super::{Action, Depth, Focus, Offscreen, ScreenError, ScreenRequest, View, picture};
use crate::workload::Workload;

/// Sizes in cells: a small, a usual and a large terminal.
pub const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 60)];

/// Looks: name in file names, theme, and colour depth.
pub const LOOKS: [(&str, &str, Depth); 3] =
    [("dark", "dark", Depth::True), ("light", "light", Depth::True), ("16", "dark", Depth::Ansi)];

/// Screen of a workload in a look, without the user's own settings, after the view has settled.
///
/// # Errors
/// [`ScreenError`] if the screen cannot be created.
pub fn posed(
    workload: &Arc<Workload>,
    (theme, depth): (&str, Depth),
    (width, height): (u16, u16),
    view: View,
) -> Result<Offscreen, ScreenError> {
    let mut request: ScreenRequest = picture::posed(workload, theme);
    request.depth = depth;
    // Cut off planners that improve their plan for minutes.
    request.deadline = Some(Duration::from_secs(2));
    let mut screen = Offscreen::new(request, width, height)?;
    screen.act(Action::Show(view));
    screen.focus(Focus::View);
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(500));
    Ok(screen)
}

/// Draws every view of the workloads in every size and look into a folder. Workloads come with names for their
/// pictures. Returns the file names.
///
/// # Errors
/// [`ScreenError`] if a screen cannot be created or a file cannot be written.
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
