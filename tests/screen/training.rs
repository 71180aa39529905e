//! A model to be trained on the screen: its configuration, what it attains, and what a change by hand costs.

use std::sync::Arc;

use plantui::{
    cluster::Overrides,
    tui::{Action, Focus, Offscreen, ScreenRequest, View},
    workload::{self, Workload},
};

use crate::{line, request};

fn model() -> Arc<Workload> {
    Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"))
}

fn opened(width: u16, height: u16) -> Offscreen {
    let overrides = Overrides { devices: Some(64), batch: Some(128), ..Overrides::default() };
    let request = ScreenRequest { overrides, planner: "joint".into(), ..request(model()) };
    let mut screen = Offscreen::new(request, width, height).expect("the request can be met");
    screen.act(Action::Show(View::Stages));
    screen.focus(Focus::View);
    screen.draw();
    screen
}

#[test]
fn a_published_name_opens_with_a_configuration_and_what_it_attains() {
    let mut screen = opened(160, 40);
    let text = screen.text();
    let figures = line(&text, "tokens/s per device");
    assert!(figures.contains("TFLOP/s") && figures.contains("MFU") && figures.contains("published runs"), "{text}");
    assert!(text.contains("tp=4,pp=4,vp=5,cp=2"), "{text}");
    assert!(text.contains("s/batch") && text.contains("Joint"), "{text}");
}

#[test]
fn the_first_view_tells_what_the_field_asks_for() {
    let mut screen = opened(200, 50);
    screen.act(Action::Show(View::Overview));
    let text = screen.text();
    let figures = text.lines().find(|line| line.contains(" tokens/s")).unwrap_or_else(|| panic!("{text}"));
    assert!(figures.contains('%') && figures.contains('±'), "{text}");
    assert!(
        line(&text, "per device").contains("MFU") && line(&text, "per device").contains("published runs"),
        "{text}"
    );
    // Options that are about profiles are not offered.
    assert!(!text.contains("│ engine") && !text.contains("microbatches/s"), "{text}");
}

#[test]
fn a_change_by_hand_shows_its_cost_at_once() {
    let mut screen = opened(160, 40);
    let before = line(&screen.text(), "tokens/s per device");
    for (action, told) in
        [(Action::LargerTensor, "tp=8,pp=4"), (Action::Merge, "2 stages on 64"), (Action::NextMode, "recompute full")]
    {
        screen.act(action);
        let text = screen.text();
        assert!(text.contains("edited: ") && text.contains(told), "{text}");
        assert_ne!(line(&text, "tokens/s per device"), before, "{text}");
        screen.keys("u");
    }
    assert_eq!(line(&screen.text(), "tokens/s per device"), before);
}

#[test]
fn every_view_draws_a_model_at_every_size() {
    for (width, height) in [(1, 1), (80, 24)] {
        let mut screen = opened(width, height);
        for number in "1234567".chars() {
            screen.keys(&number.to_string());
            screen.draw();
        }
    }
}
