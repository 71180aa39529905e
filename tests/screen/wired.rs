//! A plan on a topology: which device holds which stage, which link is fullest, and what a wider one would be worth.

use std::{path::Path, sync::Arc, time::Duration};

use plantui::{
    cluster::{GivenLimits, LimitKind, topology::named},
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload,
};

use crate::{line, request};

fn opened(topology: &str, settings: &[&str], (width, height): (u16, u16)) -> Offscreen {
    let workload = Arc::new(workload::load(Path::new("inputs/bert32-layers.txt")).unwrap());
    let wired = named(topology).unwrap();
    let mut request = ScreenRequest { planner: "parmesan".into(), ..request(workload) };
    request.settings =
        std::iter::once(format!("topology={topology}")).chain(settings.iter().map(ToString::to_string)).collect();
    request.overrides = GivenLimits::default()
        .with(LimitKind::Devices, wired.devices() as u32)
        .on(Some(wired.machines()))
        .with(LimitKind::Batch, 64)
        .with(LimitKind::Memory, 16e9);
    request.deadline = Some(Duration::from_secs(5));
    let mut screen = Offscreen::new(request, width, height).unwrap();
    screen.focus(Focus::View);
    screen
}

#[test]
fn devices_draws_the_links_with_their_loads() {
    let mut screen = opened("dgx-1", &[], (120, 50));
    screen.act(Action::Show(View::Devices));
    let text = screen.text();
    let title = line(&text, "links under this plan");
    assert!(title.contains("dgx-1") && title.contains("fullest gpu") && title.contains("ms a microbatch"), "{text}");
    // Eight devices with their stages, arcs between them, heavy where they are fullest, dotted where nothing goes.
    let devices = line(&text, "█ gpu0");
    assert!((0..8).all(|gpu| devices.contains(&format!("gpu{gpu}"))), "{text}");
    assert!(text.contains('╰') && text.contains('━') && text.contains('┄'), "{text}");
    let listed = text.lines().filter(|line| line.contains("NVLink 2") && line.contains(" ms")).count();
    assert!(listed >= 3, "{text}");
}

#[test]
fn machines_stand_side_by_side_with_what_leads_from_one_to_another() {
    let mut screen = opened("2xdgx-a100", &["stages=2"], (160, 60));
    screen.act(Action::Show(View::Devices));
    let text = screen.text();
    let machines = line(&text, "█ machine 1");
    assert!(machines.contains("machine 2"), "{text}");
    assert!(text.contains(" network") && text.contains("nvswitch"), "{text}");
}

#[test]
fn where_there_is_little_room_the_fullest_links_are_listed() {
    let mut screen = opened("dgx-1", &[], (80, 24));
    screen.act(Action::Show(View::Devices));
    let text = screen.text();
    assert!(text.contains("links under this plan"), "{text}");
    assert!(text.lines().any(|line| line.contains(" → gpu") && line.contains("GB/s")), "{text}");
}

#[test]
fn overview_names_the_fullest_link_and_what_a_wider_one_is_worth() {
    let mut screen = opened("2xdgx-1+eth-25g", &["stages=2"], (200, 50));
    let text = screen.text();
    assert!(text.contains("fullest link "), "{text}");
    screen.wait(Duration::from_millis(10));
    screen.wait(Duration::from_millis(500));
    let text = screen.text();
    let wider = line(&text, "2x link");
    assert!(wider.contains('x') && text.contains("What would help"), "{text}");
    // It is an answer, nothing to be set: the first suggestion that can be taken is still taken.
    screen.act(Action::WouldHelp);
    screen.act(Action::Edit);
    assert!(screen.text().contains("taken: "), "{}", screen.text());
}
