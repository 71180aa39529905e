//! The screen as a picture: the same views, drawn into a buffer, turned into SVG.

use std::{path::Path, sync::Arc};

use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

use super::{Focus, Offscreen, ScreenError, ScreenRequest, View, model::Model, theme::Depth, view};
use crate::{
    export::svg::{SvgStyle, buffer_to_svg},
    workload::{self, Workload},
};

/// The screen as it is, but for an overlay, as SVG.
pub(super) fn of(model: &mut Model) -> String {
    let (width, height) = model.size;
    let overlay = model.overlay.take();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| view::draw(frame, model));
    model.overlay = overlay;
    svg(terminal.backend().buffer(), model.theme.is_light(), model.view)
}

fn svg(buffer: &Buffer, light: bool, view: View) -> String {
    let mut style = if light { SvgStyle::light() } else { SvgStyle::dark() };
    style.title = format!("plantui: {}", view.title());
    buffer_to_svg(buffer, &style)
}

/// Size of the pictures that the README shows.
const SIZE: (u16, u16) = (120, 36);

/// Draws the pictures of the README from the real views into a folder: of the built-in workload, and of a device placement;
/// returns their names.
///
/// # Errors
/// [`ScreenError`] if the screen cannot be made or a file cannot be written.
pub fn screenshots(folder: &Path, placement: &Arc<Workload>) -> Result<Vec<String>, ScreenError> {
    std::fs::create_dir_all(folder)?;
    let builtin = Arc::new(workload::builtin());
    let mut names = vec![];
    for (name, theme, view, workload) in [
        ("stages", "dark", View::Stages, &builtin),
        ("devices", "dark", View::Devices, &builtin),
        ("timeline", "dark", View::Timeline, &builtin),
        ("stages-light", "light", View::Stages, &builtin),
        ("placement", "dark", View::Devices, placement),
    ] {
        let mut request = ScreenRequest::new(workload.clone());
        let able = request.planners.iter().find(|planner| planner.is_native(workload));
        request.planner = able.map(|planner| planner.info().id.to_string()).unwrap_or_default();
        request.theme = theme.into();
        request.theme_directory = None;
        request.depth = Depth::True;
        request.ascii = false;
        let mut screen = Offscreen::new(request, SIZE.0, SIZE.1)?;
        screen.pose(view);
        let text = svg(screen.draw(), theme == "light", view);
        let name = format!("{name}.svg");
        std::fs::write(folder.join(&name), text)?;
        names.push(name);
    }
    Ok(names)
}

impl Offscreen {
    /// Shows a view from its most telling side: a stage unfolded, the batch's beginning near enough to see microbatches.
    fn pose(&mut self, view: View) {
        use super::Action;
        // Planning times differ from run to run; the picture should not.
        self.settle_clock();
        self.act(Action::Show(view));
        self.focus(Focus::View);
        match view {
            View::Stages => {
                // A tree knows its rows only once it was drawn.
                self.draw();
                for _ in 0..5 {
                    self.act(Action::Down);
                }
                self.act(Action::Unfold);
                self.draw();
                self.act(Action::Down);
                self.act(Action::Unfold);
            }
            View::Timeline => {
                self.draw();
                self.act(Action::ZoomIn);
                for _ in 0..2 {
                    self.act(Action::Down);
                }
                for _ in 0..3 {
                    self.act(Action::NextEvent);
                }
            }
            View::Devices | View::Compare | View::Sweep | View::Workload => {}
        }
    }
}
