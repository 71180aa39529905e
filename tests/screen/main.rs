//! The screen without a terminal: scripted keys, and what can be read afterwards.

mod compare;
mod demo;
mod devices;
mod edits;
mod frontier;
mod gallery;
mod hardware;
mod help_panel;
mod history;
mod judged;
mod keys;
mod kinds;
mod layout;
mod looks;
mod overlays;
mod overview;
mod panel;
mod placement;
mod planners;
mod rebound;
mod reload;
mod schedules;
mod search;
mod sessions;
mod sizes;
mod snapshots;
mod sweep;
mod talks;
mod timeline;
mod training;
mod whole;
mod wired;
mod words;

use std::sync::Arc;

use plantui::{
    tui::{Action, Depth, Focus, Offscreen, ScreenRequest, View},
    workload::{self, Workload},
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// The six-node example with its branch.
pub(crate) fn tiny() -> Arc<Workload> {
    let bytes = include_bytes!("../../inputs/tiny-branch.json");
    Arc::new(workload::load_bytes(bytes, "inputs/tiny-branch.json", "tiny-branch").expect("it is valid"))
}

/// A workload of `inputs/`.
pub(crate) fn file(name: &str) -> Arc<Workload> {
    Arc::new(workload::load(format!("{}/inputs/{name}", env!("CARGO_MANIFEST_DIR")).as_ref()).expect("it is valid"))
}

/// A request with the first planner that plans the workload as it is.
pub(crate) fn native(workload: &Arc<Workload>) -> ScreenRequest {
    let mut request = request(Arc::clone(workload));
    let able = request.planners.iter().find(|planner| planner.is_native(workload)).expect("there is one");
    request.planner = able.info().id.to_string();
    request
}

/// Overview, which a screen opens with; the panel is closed where there would be one.
pub(crate) fn overview(request: ScreenRequest, width: u16, height: u16) -> Offscreen {
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    assert_eq!(screen.view(), View::Overview, "it is what the program opens with");
    screen.draw();
    screen.focus(Focus::View);
    if width >= 100 {
        press(&mut screen, KeyCode::F(1));
    }
    screen.draw();
    screen
}

/// What every test starts from, whatever the environment of the machine says.
pub(crate) fn request(workload: Arc<Workload>) -> ScreenRequest {
    let mut request = ScreenRequest::new(workload);
    request.theme_directory = None;
    request.depth = Depth::True;
    request.ascii = false;
    request
}

/// The same with Piper, for tests that know its figures.
pub(crate) fn piper(workload: Arc<Workload>) -> ScreenRequest {
    ScreenRequest { planner: "piper".into(), ..request(workload) }
}

/// A screen of 120 x 36 that shows Stages.
pub(crate) fn screen(request: ScreenRequest) -> Offscreen {
    stages(request, 120, 36)
}

/// A screen of a size that shows Stages; where the left panel is seen it has the keys, as at the start.
pub(crate) fn stages(request: ScreenRequest, width: u16, height: u16) -> Offscreen {
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.act(Action::Show(View::Stages));
    if width >= 100 && height >= 16 {
        screen.focus(Focus::Panel);
    }
    screen
}

/// Presses a key without modifiers.
pub(crate) fn press(screen: &mut Offscreen, code: KeyCode) {
    screen.key(code, KeyModifiers::NONE);
}

/// The first line of the screen that has a text in it.
pub(crate) fn line(text: &str, needle: &str) -> String {
    text.lines().find(|line| line.contains(needle)).unwrap_or_else(|| panic!("no `{needle}` in\n{text}")).to_string()
}
