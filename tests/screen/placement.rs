//! Device placements on the screen: devices by name, passes apart, how far from the best.

use std::{fmt::Write, sync::Arc};

use plantui::{
    tui::{Focus, Offscreen, ScreenRequest},
    workload::{self, Workload},
};
use ratatui::crossterm::event::KeyCode;

use crate::{line, press, request, stages};

/// A chain of twelve layers, forward and backward: three accelerators, one CPU; the third layer runs on the CPU alone, and
/// each layer's two nodes share a colour class.
pub(crate) fn training() -> Arc<Workload> {
    let (mut nodes, mut edges) = (String::new(), String::new());
    for i in 0..24 {
        let (layer, backward) = if i < 12 { (i, false) } else { (23 - i, true) };
        let time = 10 + layer % 3 + if backward { 4 } else { 0 };
        let supported = layer != 2;
        write!(
            nodes,
            "{}{{\"id\":{i},\"name\":\"{}{layer}\",\"supportedOnFpga\":{supported},\"cpuLatency\":{},\"fpgaLatency\":{time},\
             \"isBackwardNode\":{backward},\"colorClass\":{layer},\"size\":{}}}",
            if i > 0 { "," } else { "" },
            if backward { "grad" } else { "layer" },
            2 * time,
            1_000_000 * (layer + 1),
        )
        .unwrap();
        if i > 0 {
            let comma = if i > 1 { "," } else { "" };
            write!(edges, "{comma}{{\"sourceId\":{},\"destId\":{i},\"cost\":1.5}}", i - 1).unwrap();
        }
    }
    let text =
        format!("{{\"maxSizePerFPGA\":1e9,\"maxFPGAs\":3,\"maxCPUs\":1,\"nodes\":[{nodes}],\"edges\":[{edges}]}}");
    Arc::new(workload::load_bytes(text.as_bytes(), "training.json", "training").expect("it is valid"))
}

/// A request for it, with the planner of this id.
pub(crate) fn placement(planner: &str) -> ScreenRequest {
    let mut request = request(training());
    request.planner = planner.into();
    request
}

fn screen(planner: &str, width: u16, height: u16) -> Offscreen {
    stages(placement(planner), width, height)
}

#[test]
fn the_first_look_tells_which_device_limits_and_how_good_the_plan_is() {
    for (width, height) in [(80, 24), (120, 36), (200, 60)] {
        let text = screen("placement-dp", width, height).text();
        let first = line(&text, "optimal among contiguous splits in a chain");
        assert!(first.contains(" ms"), "{first}");
        let second = line(&text, if width < 130 { "busiest " } else { "limited by " });
        for part in ["forward ", "backward ", "received ", "sent ", "%"] {
            assert!(second.contains(part), "{part} in {second}");
        }
        let told = if width < 130 { "busiest " } else { "limited by " };
        assert!(["accelerator ", "CPU "].iter().any(|kind| second.contains(&format!("{told}{kind}"))), "{second}");
        // Its row is marked, and no row has degrees.
        let name = second.split(told).nth(1).unwrap().split(':').next().unwrap();
        let marked = text.lines().find(|l| l.contains('◂') && l.contains(name) && l.contains('▄'));
        assert!(marked.is_some(), "{name} in\n{text}");
        assert!(!text.contains("DP × TP") && !text.contains("1 × 1"), "{text}");
        assert!(text.contains("CPU 1") && text.contains("no limit"), "{text}");
    }
}

#[test]
fn without_a_proof_that_is_what_is_said() {
    // The local search uses no CPU, and the third layer needs one: without it there is a plan, but no bound.
    let text = screen("placement-one", 120, 36).text();
    assert!(text.contains("layer2 on an accelerator"), "{text}");
    let workload = Arc::new({
        let mut workload = Workload::clone(&training());
        if let workload::Profile::Placement(profile) = &mut workload.profile {
            profile.nodes.iter_mut().for_each(|node| node.supported = true);
        }
        workload
    });
    let mut request = request(workload);
    request.planner = "placement-local-search".into();
    let text = stages(request, 120, 36).text();
    assert!(text.contains("% of optimal in the placement model"), "{text}");
}

#[test]
fn devices_unfold_to_colour_classes_and_these_to_nodes() {
    let mut screen = screen("placement-dp", 120, 36);
    screen.focus(Focus::View);
    screen.draw();
    assert!(!screen.text().contains("class 0"));
    press(&mut screen, KeyCode::Right);
    assert!(line(&screen.text(), "class 0").contains("2 nodes"), "{}", screen.text());
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Right);
    let text = screen.text();
    assert!(text.contains("#0 layer0"), "{text}");
    assert!(line(&text, "#23 grad0").contains("backward"), "{text}");
    screen.keys("-");
    screen.keys("/grad7");
    press(&mut screen, KeyCode::Enter);
    assert!(line(&screen.text(), "grad7").contains('▌'), "{}", screen.text());
}

#[test]
fn the_selected_device_is_told_in_figures() {
    let mut screen = screen("placement-dp", 120, 36);
    screen.focus(Focus::View);
    screen.keys("3");
    let text = screen.text();
    assert!(text.contains("slowest ◂") && text.contains("░slack") && !text.contains("weights"), "{text}");
    for part in ["receives from CPU 1", "sends to      CPU 1", "less than the slowest", " of 1 GB"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let before = line(&text, "sends to");
    press(&mut screen, KeyCode::Down);
    assert_ne!(line(&screen.text(), "sends to"), before);
    screen.keys("4");
    let text = screen.text();
    // The stage under the cursor is the same in all views.
    assert!(line(&text, "▌  CPU 1").contains('▏') && text.contains("idle: CPU 1 until"), "{text}");
    assert!(text.contains("a CPU has no limit"), "{text}");
}

#[test]
fn the_workload_view_tells_passes_classes_and_what_needs_a_cpu() {
    let mut screen = screen("placement-dp", 120, 36);
    screen.focus(Focus::View);
    screen.keys("7");
    let text = screen.text();
    let facts = line(&text, "12 forward, 12 backward");
    assert!(facts.contains("12 colour classes") && facts.contains("2 nodes need a CPU"), "{facts}");
    let class = line(&text, "#2 layer2");
    assert!(class.contains("both") && class.contains("CPU only"), "{class}");
    press(&mut screen, KeyCode::Right);
    screen.draw();
    press(&mut screen, KeyCode::Down);
    press(&mut screen, KeyCode::Down);
    let text = screen.text();
    let row = line(&text, "#23 grad0");
    for part in ["▌", "backward", "14.00 ms", "28.00 ms", "977 KiB"] {
        assert!(row.contains(part), "{part} in {row}");
    }
    assert!(text.contains("colour class 0: on one device with 1 other node"), "{text}");
    assert!(text.contains("(2x)"), "{text}");
    screen.keys("s");
    assert!(line(&screen.text(), "layer0 ").contains("1.500 ms"), "{}", screen.text());
}

#[test]
fn a_latency_plan_tells_what_everything_waits_for() {
    let bytes = include_bytes!("../../inputs/mistral-7b-latency.json");
    let workload = workload::load_bytes(bytes, "mistral-7b-latency.json", "mistral-7b-latency").expect("it is valid");
    let mut request = request(Arc::new(workload));
    request.planner = "placement-latency-greedy".into();
    let mut screen = stages(request, 120, 36);
    let text = screen.text();
    assert!(line(&text, "from input to result").contains(" ms"), "{text}");
    assert!(!line(&text, "from input to result").contains("samples/s"), "{text}");
    let second = line(&text, "limited by ");
    assert!(second.contains("critical for") && second.contains(" of "), "{second}");
    screen.focus(Focus::View);
    screen.keys("3");
    let text = screen.text();
    assert!(text.contains("limits ◂") && text.contains("critical for"), "{text}");
    // The other objective is one key away, and so is the way back.
    screen.keys("O");
    assert!(screen.text().contains("objective: max load"), "{}", screen.text());
    screen.keys("O");
    assert!(line(&screen.text(), "● Latency").contains("greedy"), "{}", screen.text());
}
