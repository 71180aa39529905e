//! A search that takes its time: how far it is, and how it went.

use std::{sync::Arc, time::Duration};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    family::{self, check},
    plan::{Plan, Stage},
    tui::Offscreen,
    workload::{self, Choice, NodeIndex},
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, planners, press, request, stages, tiny};

/// A screen on which the planner that waits has begun, and its worker has not.
fn searching(width: u16, height: u16) -> Offscreen {
    let mut request = request(tiny());
    request.planners = &planners::ALL;
    request.planner = "one".into();
    request.overrides.set(LimitKind::Memory, Some(8e9));
    let mut screen = stages(request, width, height);
    screen.hold();
    screen.focus(plantui::tui::Focus::Panel);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Up);
    press(&mut screen, KeyCode::Enter);
    screen
}

/// Lets the search find something and the screen see it.
fn find(screen: &mut Offscreen, best: Option<f64>, bound: Option<f64>) {
    let search = screen.search().expect("a search is under way");
    if let Some(best) = best {
        search.improve(best, &Plan::default());
    }
    if let Some(bound) = bound {
        search.report_bound(bound);
    }
    screen.wait(Duration::from_millis(500));
}

#[test]
fn best_and_bound_are_drawn_while_they_close_in() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let mut screen = searching(width, height);
        screen.wait(Duration::from_millis(500));
        let before = screen.text();
        assert!(!before.contains("over time"), "nothing moves aside unasked\n{before}");
        screen.keys("b");
        let below: String = screen.text().lines().skip(3).collect();
        assert!(!below.contains('━'), "there is nothing to draw yet");
        find(&mut screen, Some(0.080), Some(0.010));
        find(&mut screen, Some(0.060), None);
        find(&mut screen, None, Some(0.050));
        let text = screen.text();
        let title = if width < 100 { line(&text, "━ 60") } else { line(&text, "over time") };
        assert!(title.contains("60.00 ms/sample") && title.contains("50.00 ms/sample"), "{title}");
        assert!(text.contains("80.00 ms/sample ┤") || text.contains("80.00 ms/sa… ┤"), "{text}");
        assert!(text.matches('━').count() > 10 && text.matches('┄').count() > 10, "{text}");
        assert!(text.contains("2.000 s"), "{text}");
        if width >= 120 {
            assert!(text.lines().next().unwrap().contains("best 60.00 ms/sample"), "{text}");
            assert!(text.lines().next().unwrap().contains("bound 50.00 ms/sample"), "{text}");
        }
    }
}

#[test]
fn the_course_of_a_search_goes_with_its_end_and_comes_back_by_a_key() {
    let mut screen = searching(120, 36);
    find(&mut screen, Some(0.080), Some(0.020));
    find(&mut screen, Some(0.060), None);
    screen.keys("b");
    assert!(screen.text().contains("over time"));
    screen.keys("7");
    assert!(!screen.text().contains("over time"), "it belongs to the plan, not to the workload");
    screen.keys("2");
    // The first Esc closes it, the second stops the search.
    press(&mut screen, KeyCode::Esc);
    assert!(!screen.text().contains("over time"));
    press(&mut screen, KeyCode::Esc);
    screen.release();
    let text = screen.text();
    assert!(text.lines().next().unwrap().contains("■ stopped"), "{text}");
    assert!(!text.contains("over time"), "{text}");
    screen.keys("b");
    let text = screen.text();
    // The plan that the planner gave back at the end counts as well.
    assert!(line(&text, "over time").contains("best 54.00 ms/sample"), "{text}");
    screen.keys("b");
    assert!(!screen.text().contains("over time"));
}

/// A value belongs to the workload's family, whoever planned: seconds a sample of Piper's profile, milliseconds of a placement.
#[test]
fn values_of_who_plans_a_converted_workload_are_told_in_its_own_unit() {
    for (file, planner, unit, not) in [
        ("inputs/llama-3-8b-training.json", "piper", " ms", "/sample"),
        ("inputs/llama-3-8b-training.json", "equal-partition", " ms", "/sample"),
        ("inputs/tiny-branch.json", "placement-dp", "ms/sample", " ms  "),
    ] {
        let workload = workload::load(std::path::Path::new(file)).expect("it is valid");
        let mut request = request(Arc::new(workload));
        request.planner = planner.into();
        request.planner_asked = true;
        let mut screen = stages(request, 120, 36);
        screen.keys("b");
        let text = screen.text();
        let title = line(&text, "over time");
        assert!(title.contains(unit) && !title.contains(not), "{file} by {planner}: {title}");
        let value = title.split("best ").nth(1).and_then(|rest| rest.split(" over").next()).expect("a best value");
        let value = value.trim().trim_end_matches("/sample");
        assert!(
            text.lines().next().unwrap().contains(&format!("(objective {value})")),
            "the header says {value} too: {text}"
        );
    }
}

/// All nodes of the example in their first modes on one device, or two by two.
fn plan(apart: bool) -> (Plan, f64) {
    let workload = tiny();
    let profile = workload.piper().expect("it is Piper's");
    let choice = |v: NodeIndex| profile.nodes[v].modes(1).expect("degree 1 is there")[0].id.clone();
    let all: Vec<NodeIndex> = workload.topological_order().collect();
    let groups: Vec<Vec<NodeIndex>> =
        if apart { all.chunks(2).map(<[NodeIndex]>::to_vec).collect() } else { vec![all] };
    let stage = |mut nodes: Vec<NodeIndex>| {
        nodes.sort_unstable();
        let choices = nodes.iter().map(|&v| Choice::Mode(choice(v))).collect();
        Stage { nodes, choices, data_parallel: 1, tensor_parallel: 1, devices: vec![] }
    };
    let plan = Plan { stages: groups.into_iter().map(stage).collect(), ..Plan::default() }.with_consecutive_devices();
    let overrides = GivenLimits::default().with(LimitKind::Memory, 8e9);
    let limits = family::resolve(&workload, &overrides).expect("the file states the rest");
    let score = check(&workload, &limits, &plan);
    assert!(score.is_valid(), "{:?}", score.violations);
    (plan, score.value)
}

#[test]
fn the_best_plan_so_far_is_shown_in_all_views_while_the_search_goes_on() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let mut screen = searching(width, height);
        screen.focus(plantui::tui::Focus::View);
        let before = line(&screen.text(), "limited by");
        let search = screen.search().expect("a search is under way");
        let (better, value) = plan(true);
        search.improve(value, &better);
        screen.wait(Duration::from_millis(100));
        assert_eq!(line(&screen.text(), "limited by"), before, "a quick plan follows: nothing flickers");
        screen.wait(Duration::from_millis(500));
        let text = screen.text();
        assert!(text.contains("limited by stage 2"), "{text}");
        for view in ["2", "3", "4"] {
            screen.keys(view);
            let text = screen.text();
            // Where the mark of the tab leaves little room, it is said in short.
            assert!(text.contains("best plan so far"), "{text}");
            // The timeline shows as many rows as there is room for.
            assert!(view == "4" || text.contains("● 3"), "{text}");
        }
        screen.keys("2");
        press(&mut screen, KeyCode::Esc);
        screen.release();
        let text = screen.text();
        assert!(!text.contains("best plan so far; the search continues") && text.contains("■ stopped"), "{text}");
    }
}

#[test]
fn plans_so_far_come_at_a_pace_and_only_if_they_keep_the_rules() {
    let mut screen = searching(120, 36);
    let search = screen.search().expect("a search is under way");
    screen.focus(plantui::tui::Focus::View);
    let (one, value) = plan(false);
    search.improve(value * 3.0, &Plan { stages: vec![one.stages[0].clone(); 2], ..Plan::default() });
    screen.wait(Duration::from_millis(500));
    assert!(!screen.text().contains("best plan so far; the search"), "a plan with every node twice is none");
    search.improve(value * 2.0, &one);
    screen.wait(Duration::from_millis(500));
    assert!(screen.text().contains("best plan so far; the search") && screen.text().contains("limited by stage 1"));
    let (better, least) = plan(true);
    search.improve(least, &better);
    screen.wait(Duration::from_millis(100));
    assert!(screen.text().contains("limited by stage 1"), "not yet");
    screen.wait(Duration::from_millis(300));
    assert!(screen.text().contains("limited by stage 2"));
}
