//! Speed of the screen: time of a frame, and time from a key to its effect. Prints one small table.
//!
//! `key to frame` is a key that changes the devices and the next frame, which still shows the old plan: the delay that
//! a user notices. `key to plan` is the same key, the plan, its check, its timeline and the frame with them, in
//! sequence on one thread: the longest wait of a user. (On the real screen the timeline comes after the frame.)

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plantui::{
    cluster::LimitKind,
    tui::{Depth, Focus, Offscreen, ScreenRequest},
    workload,
};
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// Sizes of the screen.
const SIZES: [(u16, u16); 2] = [(80, 24), (200, 60)];
/// Number of measurements.
const TIMES: usize = 101;

/// Views with their keys; the timeline as a whole, and zoomed in to single microbatches.
const FRAMES: [(&str, &str); 8] = [
    ("frame: overview", "1"),
    ("frame: overview, at an event", "1."),
    ("frame: stages", "2"),
    ("frame: stages, unfolded", "2*"),
    ("frame: devices", "3"),
    ("frame: timeline, whole batch", "40"),
    ("frame: timeline, a hundredth", "40+++++++x"),
    ("frame: compare", "5"),
];

/// Built-in BERT-32 with limits of its own.
struct Case {
    devices: u32,
    microbatches: u32,
    memory_gib: f64,
}

const CASES: [Case; 2] = [
    Case { devices: 64, microbatches: 1920, memory_gib: 8.0 },
    Case { devices: 512, microbatches: 2000, memory_gib: 2.0 },
];

fn screen(case: &Case, (width, height): (u16, u16)) -> Offscreen {
    let mut request = ScreenRequest::new(Arc::new(workload::builtin()));
    request.overrides.set(LimitKind::Devices, Some(case.devices));
    request.overrides.set(LimitKind::Microbatches, Some(case.microbatches));
    request.overrides.set(LimitKind::Memory, Some(case.memory_gib * f64::from(1 << 30)));
    request.theme_directory = None;
    request.depth = Depth::True;
    request.ascii = false;
    Offscreen::new(request, width, height).expect("the built-in workload has all limits")
}

/// Median and maximum of many times.
fn measured(mut one: impl FnMut() -> Duration) -> (Duration, Duration) {
    // The first one fills caches.
    one();
    let mut times: Vec<Duration> = (0..TIMES).map(|_| one()).collect();
    times.sort_unstable();
    (times[TIMES / 2], times[TIMES - 1])
}

fn frame(case: &Case, size: (u16, u16), keys: &str) -> (Duration, Duration) {
    let mut screen = screen(case, size);
    screen.draw();
    screen.focus(Focus::View);
    screen.keys(keys);
    measured(|| {
        let begun = Instant::now();
        screen.draw();
        begun.elapsed()
    })
}

/// Time from a key that changes the devices to a frame. `held`: to the first frame, while the plan is still computed.
fn key(case: &Case, size: (u16, u16), held: bool) -> (Duration, Duration) {
    let mut screen = screen(case, size);
    screen.draw();
    screen.focus(Focus::Panel);
    let mut up = false;
    measured(|| {
        if held {
            screen.hold();
        }
        up = !up;
        let begun = Instant::now();
        screen.key(if up { KeyCode::Right } else { KeyCode::Left }, KeyModifiers::NONE);
        screen.draw();
        let taken = begun.elapsed();
        screen.release();
        taken
    })
}

type ScreenMeasure = Box<dyn Fn(&Case, (u16, u16)) -> (Duration, Duration)>;

fn main() {
    let mut rows: Vec<(&str, ScreenMeasure)> = vec![];
    for (name, keys) in FRAMES {
        rows.push((name, Box::new(move |case, size| frame(case, size, keys))));
    }
    rows.push(("key to frame", Box::new(|case, size| key(case, size, true))));
    rows.push(("key to plan", Box::new(|case, size| key(case, size, false))));
    let milliseconds = |time: Duration| format!("{:>9.2}", time.as_secs_f64() * 1e3);
    println!("milliseconds, of {TIMES} times");
    for case in &CASES {
        println!("\nBERT-32, {} devices of {} GiB, {} microbatches", case.devices, case.memory_gib, case.microbatches);
        let heads: String = SIZES.iter().map(|(w, h)| format!("{:>20}", format!("{w} x {h}"))).collect();
        println!("{:<30}{heads}", "");
        println!("{:<30}{}", "", format!("{:>11}{:>9}", "median", "worst").repeat(SIZES.len()));
        for (name, measure) in &rows {
            let times: String = SIZES
                .iter()
                .map(|&size| {
                    let (median, worst) = measure(case, size);
                    format!("  {}{}", milliseconds(median), milliseconds(worst))
                })
                .collect();
            println!("{name:<30}{times}");
        }
    }
}
