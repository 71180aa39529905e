//! Pictures of the screen: the same views, drawn into a buffer, as SVG.

use std::{path::Path, sync::Arc, time::Duration};

use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};

use super::{
    action::Action,
    model::{Focus, Model, View},
    offscreen::Offscreen,
    request::{ScreenError, ScreenRequest},
    svg::{SvgStyle, buffer_to_svg, buffers_to_svg},
    theme::Depth,
    tour::{self, Step},
};
use crate::{
    cluster::LimitKind,
    tui::{frame, views::overview::slide::SIZE as SLIDE},
    workload::{self, Workload},
};

/// Current screen without its overlay, as SVG.
pub(super) fn of(model: &mut Model) -> String {
    let (width, height) = model.appearance.size;
    let overlay = model.overlay.take();
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let Ok(_) = terminal.draw(|frame| frame::show(frame, model));
    model.overlay = overlay;
    svg(terminal.backend().buffer(), model.appearance.theme.is_light(), model.view)
}

/// The plan on the screen as a slide of 16 by 9, as SVG.
pub(super) fn slide(model: &Model) -> String {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(SLIDE.0, SLIDE.1));
    let Ok(_) = terminal.draw(|frame| frame::show_slide(frame, model));
    svg(terminal.backend().buffer(), model.appearance.theme.is_light(), View::ALL[0])
}

fn svg(buffer: &Buffer, light: bool, view: View) -> String {
    let mut style = if light { SvgStyle::light() } else { SvgStyle::dark() };
    style.title = format!("plantui: {}", view.title());
    buffer_to_svg(buffer, &style)
}

/// Size of the README's pictures, cells.
const SIZE: (u16, u16) = (120, 36);
/// Size of the pictures of a model, whose layout and figures are longer, cells.
const WIDE: (u16, u16) = (140, 40);
/// Size of the animated picture, cells.
const FILM: (u16, u16) = (100, 30);

/// Draws the README's pictures into a folder: those of the tours of the built-in workload and of a model to be trained,
/// one of a device placement, and one of a model on several kinds of devices. Returns their names.
///
/// # Errors
/// [`ScreenError`] if the screen cannot be created or a file cannot be written.
pub fn screenshots(
    folder: &Path,
    placement: &Arc<Workload>,
    model: &Arc<Workload>,
    kinds: &Arc<Workload>,
) -> Result<Vec<String>, ScreenError> {
    std::fs::create_dir_all(folder)?;
    let builtin = Arc::new(workload::builtin());
    let mut names = vec![];
    let mut keep = |name: String, text: String| -> Result<(), ScreenError> {
        std::fs::write(folder.join(&name), text)?;
        names.push(name);
        Ok(())
    };
    for (theme, suffix, wanted) in
        [("dark", "", &["overview", "stages", "devices", "timeline"][..]), ("light", "-light", &["overview"][..])]
    {
        let mut screen = Offscreen::new(posed(&builtin, theme), SIZE.0, SIZE.1)?;
        for step in tour::of(&builtin) {
            screen.play(step);
            screen.rest();
            if let Some(name) = step.picture.filter(|name| wanted.contains(name)) {
                keep(format!("{name}{suffix}.svg"), screen.svg())?;
            }
        }
    }
    let mut screen = Offscreen::new(posed_model(model), WIDE.0, WIDE.1)?;
    for step in tour::of(model) {
        screen.play(step);
        screen.rest();
        if let Some(name) = step.picture {
            keep(format!("{name}.svg"), screen.svg())?;
        }
    }
    let mut screen = Offscreen::new(posed(placement, "dark"), SIZE.0, SIZE.1)?;
    screen.act(Action::Show(View::Devices));
    screen.focus(Focus::View);
    keep("placement.svg".into(), screen.svg())?;
    let mut request = posed(kinds, "dark");
    request.overrides.set(LimitKind::Batch, Some(128.0));
    let mut screen = Offscreen::new(request, SIZE.0, SIZE.1)?;
    screen.rest();
    keep("kinds.svg".into(), screen.svg())?;
    Ok(names)
}

/// Animated picture of the tour of the built-in workload, with captions.
///
/// # Errors
/// [`ScreenError`] if the screen cannot be created.
pub fn film() -> Result<String, ScreenError> {
    let workload = Arc::new(workload::builtin());
    let mut request = posed(&workload, "dark");
    request.demo = true;
    let mut screen = Offscreen::new(request, FILM.0, FILM.1)?;
    let mut frames = vec![];
    for (i, step) in tour::of(&workload).iter().enumerate() {
        if let Some(demo) = &mut screen.model.demo {
            demo.step = i;
        }
        screen.play(step);
        let pace = Duration::from_secs_f32(step.seconds) / step.film;
        frames.push((screen.draw().clone(), pace));
        for _ in 1..step.film {
            screen.model.appearance.now += pace;
            screen.model.run_playhead();
            frames.push((screen.draw().clone(), pace));
        }
    }
    let style = SvgStyle { title: "plantui: a tour".into(), ..SvgStyle::dark() };
    Ok(buffers_to_svg(&frames, &style))
}

/// The same for a model to be trained, on the devices and with the batch of the README.
fn posed_model(model: &Arc<Workload>) -> ScreenRequest {
    let mut request = posed(model, "dark");
    request.overrides.set(LimitKind::Devices, Some(64.0));
    request.overrides.set(LimitKind::Batch, Some(128.0));
    request
}

/// Request for a screen without the user's own settings.
pub(super) fn posed(workload: &Arc<Workload>, theme: &str) -> ScreenRequest {
    let mut request = ScreenRequest::new(workload.clone());
    let able = request.planners.iter().find(|planner| planner.is_native(workload));
    request.planner = able.map(|planner| planner.info().id.to_string()).unwrap_or_default();
    request.theme = theme.into();
    request.theme_directory = None;
    request.depth = Depth::True;
    request.ascii = false;
    request
}

impl Offscreen {
    /// Performs a step of the tour.
    fn play(&mut self, step: &Step) {
        for does in step.does {
            // A tree has its rows only after drawing.
            self.draw();
            self.does(*does);
        }
    }

    /// Waits until suggestions are computed for the plan.
    fn rest(&mut self) {
        self.draw();
        self.wait(Duration::from_millis(10));
        self.wait(Duration::from_millis(500));
    }

    /// The plan on the screen as a slide, as SVG.
    pub fn slide(&self) -> String {
        slide(&self.model)
    }

    /// Picture of the screen, as SVG.
    pub fn svg(&mut self) -> String {
        let (light, view) = (self.model.appearance.theme.is_light(), self.model.view);
        svg(self.draw(), light, view)
    }
}
