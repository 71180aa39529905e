//! The screen: from a key to the frame with the new plan, and frames alone.

use std::sync::Arc;

use divan::Bencher;
use plantui::{
    tui::{Depth, Focus, Offscreen, ScreenRequest},
    workload,
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

fn main() {
    divan::main();
}

fn screen(devices: u32) -> Offscreen {
    let mut request = ScreenRequest::new(Arc::new(workload::builtin()));
    request.overrides.devices = Some(devices);
    request.depth = Depth::True;
    request.ascii = false;
    Offscreen::new(request, 200, 60).expect("the built-in workload has all limits")
}

/// A key that changes the devices, the plan, its check, its timeline and the frame, one after the other: what a user waits
/// for at the most. (On the real screen the timeline comes after the frame.)
#[divan::bench(args = [64, 256, 512])]
fn key_to_frame(bencher: Bencher<'_, '_>, devices: u32) {
    let mut screen = screen(devices);
    let mut up = false;
    bencher.bench_local(|| {
        up = !up;
        screen.key(if up { KeyCode::Right } else { KeyCode::Left }, KeyModifiers::NONE);
        screen.draw().area
    });
}

/// One frame of a view at 200 x 60; the timeline shows the whole batch of 512 devices.
#[divan::bench(args = ["1", "1*", "2", "30", "4"])]
fn frame(bencher: Bencher<'_, '_>, keys: &str) {
    let mut screen = screen(512);
    screen.focus(Focus::View);
    screen.draw();
    screen.keys(keys);
    bencher.bench_local(|| screen.draw().area);
}
