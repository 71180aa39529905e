//! The tour.

use std::{sync::Arc, time::Duration};

use plantui::{
    cluster::LimitKind,
    tui::{Offscreen, View, film},
    workload,
};
use ratatui::crossterm::event::KeyCode;

use crate::{press, request};

fn tour(width: u16, height: u16) -> Offscreen {
    let mut request = request(Arc::new(workload::builtin()));
    request.demo = true;
    Offscreen::new(request, width, height).expect("the request can be met")
}

/// Lets the tour go on for this long, drawing as the loop does.
fn play(screen: &mut Offscreen, seconds: u32) -> String {
    for _ in 0..seconds * 4 {
        screen.wait(Duration::from_millis(250));
        screen.draw();
    }
    screen.text()
}

#[test]
fn it_plays_to_its_end_without_a_key() {
    for (width, height) in [(80, 24), (120, 36), (1, 1)] {
        let mut screen = tour(width, height);
        let first = screen.text();
        assert!(height < 16 || first.contains("tour, 1 of "), "{first}");
        let mut views = vec![];
        for _ in 0..30 {
            play(&mut screen, 4);
            views.push(screen.view());
        }
        let last = screen.text();
        assert!(!last.contains("tour, "), "{last}");
        for view in [View::Stages, View::Devices, View::Timeline, View::Compare, View::Sweep, View::Workload] {
            assert!(views.contains(&view), "{view:?} is not shown at {width} x {height}");
        }
        assert_eq!(screen.view(), View::Overview);
    }
}

#[test]
fn a_model_has_a_tour_of_its_own() {
    let model = Arc::new(workload::load(std::path::Path::new("llama-3-70b")).expect("a published name"));
    let mut request = request(model);
    request.overrides.set(LimitKind::Devices, Some(64.0));
    request.overrides.set(LimitKind::Batch, Some(128.0));
    request.demo = true;
    let mut screen = Offscreen::new(request, 120, 36).expect("the request can be met");
    let first = screen.text();
    let (mut views, mut texts) = (vec![], String::new());
    for _ in 0..100 {
        texts += &play(&mut screen, 1);
        views.push(screen.view());
    }
    for view in [View::Frontier, View::Hardware, View::Devices, View::Stages, View::History] {
        assert!(views.contains(&view), "{view:?} is not shown");
    }
    for part in ["TP 8", "side by side", "stay in the machine", "If machine 0 fails"] {
        assert!(texts.contains(part), "`{part}` is never shown");
    }
    let layout = |text: &str| text.lines().find(|line| line.contains("ZeRO-1")).map(str::to_string);
    assert_eq!(layout(&screen.text()), layout(&first), "the tour leaves the plan as it was");
}

#[test]
fn space_holds_it_and_any_other_key_ends_it() {
    let mut screen = tour(120, 36);
    play(&mut screen, 10);
    screen.keys(" ");
    let held = screen.text();
    assert!(held.contains(", held") && held.contains("Space goes on"), "{held}");
    assert_eq!(play(&mut screen, 60), held);
    screen.keys(" ");
    assert_ne!(play(&mut screen, 10), held);
    press(&mut screen, KeyCode::Char('q'));
    let text = screen.text();
    assert!(!screen.quit && text.contains("the tour has ended") && !text.contains("tour, "), "{text}");
    press(&mut screen, KeyCode::Char('q'));
    assert!(screen.quit);
}

#[test]
fn the_moving_picture_is_small_and_has_every_caption() {
    let picture = film().expect("it can be drawn");
    assert!(picture.len() < 1_500_000, "{} bytes", picture.len());
    assert_eq!(picture.matches("class=\"f\"").count() + 1, picture.matches("<use href=\"#ground\"/>").count());
    let frames = picture.matches("<use href=\"#ground\"/>").count();
    let at = picture.find("1 of ").expect("the first caption") + "1 of ".len();
    let steps: usize = picture[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    assert!(frames > steps + 5, "the batch is played in several pictures: {frames} of {steps}");
    for step in 1..=steps {
        assert!(picture.contains(&format!("{step} of {steps}")), "{step} of {steps}");
    }
}

#[test]
fn it_shows_what_would_help_and_an_edit_and_leaves_the_plan_as_it_was() {
    let mut screen = tour(120, 36);
    let row = |text: &str| text.lines().nth(2).unwrap_or_default().to_string();
    let first = row(&screen.text());
    let (mut helped, mut edited) = (false, false);
    for _ in 0..120 {
        let text = play(&mut screen, 1);
        helped |= text.contains("What would help: a re-plan for each limit") && text.contains("2x devices");
        edited |= text.contains("edited: ") && text.contains(" Joint's");
    }
    assert!(helped && edited, "what would help {helped}, an edit {edited}");
    assert_eq!(row(&screen.text()), first);
}
