//! What a machine can judge of the screen at any size: columns stand below one another, lists that go on say so, what lies
//! behind an overlay is dim and can be read; and the keys that a newcomer tries first.

use std::{path::Path, sync::Arc, time::Duration};

use plantui::{
    cluster::{LimitKind, Machines},
    planner::Planner,
    tui::{Action, Depth, Focus, Offscreen, View},
    workload::{self, Workload},
};
use ratatui::{buffer::Buffer, crossterm::event::KeyCode};

use crate::{gallery::pale, press, request, tiny};

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 36), (160, 45), (200, 60)];
const LOOKS: [(&str, Depth); 3] = [("dark", Depth::True), ("light", Depth::True), ("colour-blind", Depth::True)];

fn of(file: &str) -> Arc<Workload> {
    Arc::new(workload::load(Path::new(file)).unwrap())
}

/// A screen with a plan of whoever plans the workload as it is.
fn planned(workload: &Arc<Workload>, (theme, depth): (&str, Depth)) -> Offscreen {
    let mut request = request(Arc::clone(workload));
    // Joint takes its time.
    let able = |planner: &&&dyn Planner| planner.is_native(workload) && planner.info().id != "joint";
    request.planner = request.planners.iter().find(able).expect("there is one").info().id.to_string();
    if workload.layers().is_some() {
        request.overrides.machines = Some(Machines::even(2, 8));
        request.overrides.set(LimitKind::Batch, Some(64));
        request.overrides.set(LimitKind::Memory, Some(8e9));
    }
    request.theme = theme.into();
    request.depth = depth;
    request.deadline = Some(Duration::from_secs(2));
    Offscreen::new(request, 80, 24).unwrap()
}

/// By row that ends in a size: the column of its end.
fn ends_of_sizes(text: &str) -> Vec<usize> {
    let row = |line: &str| {
        let line = line.trim_end_matches([' ', '│', '█', '◂']);
        let sized = ["GiB", "MiB", "KiB", "GB", "MB"].iter().any(|unit| line.ends_with(unit));
        (sized && line.contains("● ") && line.contains(" ms ")).then(|| line.chars().count())
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn sizes_of_stages_stand_below_one_another() {
    for workload in [tiny(), of("inputs/bert32a100.json"), of("inputs/bert32-layers.txt")] {
        let mut screen = planned(&workload, LOOKS[0]);
        screen.act(Action::Show(View::Stages));
        for (width, height) in SIZES {
            screen.resize(width, height);
            screen.focus(Focus::View);
            let text = screen.text();
            let ends = ends_of_sizes(&text);
            assert!(!ends.is_empty() || width < 100, "{width} x {height}\n{text}");
            assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{ends:?} at {width} x {height}\n{text}");
        }
    }
}

/// Columns in which a scrollbar's thumb stands.
fn thumbs(buffer: &Buffer) -> Vec<u16> {
    let area = buffer.area;
    let bar = |x: u16| {
        let cells = (1..area.height - 1).map(|y| buffer[(x, y)].symbol());
        cells.clone().any(|cell| cell == "█") && cells.filter(|cell| *cell == "│").count() > 1
    };
    (0..area.width).filter(|&x| bar(x)).collect()
}

#[test]
fn lists_that_go_on_have_a_bar_in_every_section_and_in_the_panel() {
    let mut screen = planned(&of("inputs/bert32a100.json"), LOOKS[0]);
    screen.resize(80, 24);
    screen.act(Action::Show(View::Workload));
    screen.focus(Focus::View);
    // Seven rows of nodes fit; all of them do not.
    let text = screen.text();
    assert!(thumbs(screen.draw()).is_empty(), "{text}");
    screen.keys("*");
    assert_eq!(thumbs(screen.draw()), [78], "{}", screen.text());
    // Edges, then findings.
    for _ in 0..2 {
        screen.keys("s");
        assert_eq!(thumbs(screen.draw()), [78], "{}", screen.text());
    }
    // Rows of the timeline, of which not all fit between head and chart.
    screen.act(Action::Show(View::Timeline));
    screen.draw();
    screen.keys("*");
    assert!(!thumbs(screen.draw()).is_empty(), "{}", screen.text());
    screen.keys("*");
    screen.act(Action::Show(View::Stages));
    screen.draw();
    screen.keys("*");
    assert_eq!(thumbs(screen.draw()), [78], "{}", screen.text());
    screen.focus(Focus::Panel);
    screen.resize(80, 16);
    assert!(thumbs(screen.draw()).contains(&29), "{}", screen.text());
}

#[test]
fn what_lies_behind_an_overlay_is_dim_and_can_be_read() {
    for look in &LOOKS {
        let mut screen = planned(&of("inputs/bert32a100.json"), *look);
        screen.resize(160, 45);
        screen.focus(Focus::View);
        let bright = screen.draw().clone();
        screen.keys("g");
        let found = pale(screen.draw());
        assert!(found.is_empty(), "{look:?}: {found:?}\n{}", screen.text());
        let dim = screen.draw().clone();
        // The map's first cell, which the overlay does not reach.
        let filled = (0..45).flat_map(|y| (0..160).map(move |x| (x, y)));
        let changed = filled.filter(|&at| bright[at].symbol() == "█" && dim[at].symbol() == "█");
        assert!(changed.clone().count() > 20 && changed.clone().all(|at| bright[at].fg != dim[at].fg));
        press(&mut screen, KeyCode::Esc);
        assert_eq!(*screen.draw(), bright);
    }
}

#[test]
fn the_help_tells_what_the_field_means_and_finds_words() {
    let mut screen = planned(&tiny(), LOOKS[0]);
    screen.resize(120, 36);
    screen.focus(Focus::Panel);
    screen.keys("?");
    assert!(!screen.text().contains("bubble\n"));
    screen.keys("bubble");
    let text = screen.text();
    let term = plantui::terms::find("bubble").unwrap();
    assert!(text.contains(&term.text[..30]), "{text}");
    press(&mut screen, KeyCode::Esc);
    // On a limit whose name is a word of the field, nothing need be typed.
    for _ in 0..30 {
        press(&mut screen, KeyCode::Up);
    }
    let mut told = false;
    for _ in 0..30 {
        screen.keys("?");
        told |= screen.text().contains(&plantui::terms::find("tensor parallel").unwrap().text[..30]);
        press(&mut screen, KeyCode::Esc);
        press(&mut screen, KeyCode::Down);
    }
    assert!(told);
    // Two columns where there is room for them.
    screen.resize(200, 60);
    screen.keys("?");
    let text = screen.text();
    let both = |line: &str| line.contains("Help") || line.contains("Everywhere");
    assert!(text.lines().filter(|line| both(line)).count() > 0 && text.lines().all(|line| line.chars().count() <= 200));
    assert!(text.lines().any(|line| line.matches("  ").count() > 4 && line.contains("Quit")), "{text}");
}

#[test]
fn edits_are_heard_in_overview_and_the_cursor_stays_with_its_stage() {
    let mut screen = planned(&tiny(), LOOKS[0]);
    screen.resize(160, 45);
    screen.act(Action::Show(View::Overview));
    screen.focus(Focus::View);
    let before = screen.text();
    screen.keys("s");
    let text = screen.text();
    if text.contains("edited by hand") {
        screen.keys("u");
    }
    screen.keys("[");
    let edited = screen.text();
    assert!(text.contains("edited by hand") || edited.contains("edited by hand"), "{before}\n{text}\n{edited}");
    assert_eq!(screen.view(), View::Overview);
    screen.keys("0");
    assert!(!screen.text().contains("edited by hand:"), "{}", screen.text());
}

#[test]
fn space_plays_while_the_panel_has_the_keys() {
    let mut screen = planned(&tiny(), LOOKS[0]);
    screen.resize(160, 45);
    screen.focus(Focus::Panel);
    let text = screen.text();
    assert!(text.lines().last().unwrap().contains("play"), "{text}");
    screen.keys(" ");
    assert!(screen.wakes(), "the playhead runs");
    press(&mut screen, KeyCode::Esc);
}

#[test]
fn sweep_draws_the_figure_that_is_asked_for() {
    let mut screen = planned(&tiny(), LOOKS[0]);
    screen.resize(160, 45);
    screen.act(Action::Show(View::Sweep));
    screen.focus(Focus::View);
    let objective = screen.text();
    let mut titles = vec![];
    for _ in 0..7 {
        screen.keys("v");
        let text = screen.text();
        titles.push(text.lines().find(|line| line.contains(" by devices")).expect("a title").trim().to_string());
        assert!(!text.contains("NaN"), "{text}");
    }
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), 7, "{titles:?}");
    press(&mut screen, KeyCode::Esc);
    assert_eq!(screen.text(), objective, "round it goes");
}
