//! Screens as snapshots, which a reviewer reads as a diff (`cargo insta review`): every view of five workloads, in the
//! sizes that people use.

use plantui::tui::{Action, Offscreen, View};

use super::{file, native, tiny};

/// Compares the text of a screen with its snapshot. The header is taken without the time of planning, which is at its
/// right end, and without its blanks.
pub(crate) fn compare(name: &str, screen: &mut Offscreen) {
    let text = screen.text();
    let (header, rest) = text.split_once('\n').expect("a screen has several rows");
    let header: Vec<&str> = header.split_whitespace().collect();
    let timeless = header.iter().rposition(|word| *word == "in").map_or(&header[..], |at| &header[..at]);
    let rest: String = rest.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, format!("{}\n{rest}", timeless.join(" ")));
    });
}

#[test]
fn views() {
    for (name, workload) in [
        ("pipeline", tiny()),
        ("profile", file("bert32a100.json")),
        ("placement", file("branching-cnn-training.json")),
        ("operators", file("alexnet-operators.json")),
        ("latency", file("mistral-7b-latency.json")),
    ] {
        for (width, height) in [(80, 24), (120, 36)] {
            let mut screen = Offscreen::new(native(&workload), width, height).expect("the request can be met");
            for view in View::ALL {
                if view == View::Sweep || view == View::Compare {
                    continue;
                }
                screen.act(Action::Show(view));
                compare(&format!("{name}-{}-{width}x{height}", view.title().to_lowercase()), &mut screen);
            }
        }
    }
}
