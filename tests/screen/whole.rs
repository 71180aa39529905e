//! Every view of every kind of workload at every size in every look, judged as far as a machine can: letters stand out,
//! texts are cut only where a border was reached, figures keep their digits and their units, columns stand below one
//! another, and lists that go on have a scrollbar.

use std::{path::Path, sync::Arc, time::Duration};

use plantui::{
    cluster::{GivenLimits, LimitKind, Machines},
    tui::{Action, Depth, Focus, Offscreen, ScreenRequest, View},
    workload::{self, Workload},
};
use ratatui::buffer::Buffer;

use crate::{gallery::pale, placement, request};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 36), (200, 60)];
const LOOKS: [(&str, Depth); 3] = [("dark", Depth::True), ("light", Depth::True), ("dark", Depth::Ansi)];

/// A workload and who plans it.
struct Kind {
    name: &'static str,
    workload: Arc<Workload>,
    planner: &'static str,
    settings: &'static [&'static str],
    overrides: GivenLimits,
}

fn of(file: &str) -> Arc<Workload> {
    Arc::new(workload::load(Path::new(file)).unwrap())
}

fn kinds() -> Vec<Kind> {
    let kind = |name, workload, planner, settings| Kind {
        name,
        workload,
        planner,
        settings,
        overrides: GivenLimits::default(),
    };
    let layers =
        GivenLimits::default().on(Some(Machines::even(2, 8))).with(LimitKind::Batch, 64).with(LimitKind::Memory, 8e9);
    let trained = GivenLimits::default().with(LimitKind::Devices, 16).with(LimitKind::Batch, 64);
    vec![
        kind("4 stages", of("inputs/bert32a100.json"), "piper", &["stages=4"]),
        kind("22 stages", of("inputs/bert96a100.json"), "piper", &["stages=22"]),
        Kind {
            overrides: GivenLimits::default().with(LimitKind::Devices, 512),
            ..kind("60 stages", of("inputs/gpt3-175b-a100.json"), "piper", &["stages=60"])
        },
        kind("placement", placement::training(), "placement-dp", &[]),
        Kind { overrides: layers, ..kind("DAPPLE", of("inputs/bert32-layers.txt"), "dapple", &[]) },
        kind("PaSE", of("inputs/alexnet-operators.json"), "pase", &[]),
        kind("latency", of("inputs/mistral-7b-latency.json"), "placement-latency-greedy", &[]),
        Kind { overrides: trained, ..kind("training", of("llama-3-8b"), "joint", &[]) },
    ]
}

fn planned(kind: &Kind, (theme, depth): (&str, Depth)) -> Offscreen {
    let mut request = ScreenRequest { planner: kind.planner.into(), ..request(Arc::clone(&kind.workload)) };
    request.settings = kind.settings.iter().map(ToString::to_string).collect();
    request.overrides = kind.overrides.clone();
    request.theme = theme.into();
    request.depth = depth;
    request.deadline = Some(Duration::from_secs(1));
    Offscreen::new(request, 80, 24).unwrap()
}

/// Draws every view but Sweep, which plans for itself, in every look and size, the panel open and folded.
fn every_picture(kind: &Kind, mut judge: impl FnMut(&str, View, &mut Offscreen)) {
    for look in LOOKS {
        let mut screen = planned(kind, look);
        for view in View::ALL.into_iter().filter(|view| *view != View::Sweep) {
            screen.act(Action::Show(view));
            for (width, height) in SIZES {
                screen.resize(width, height);
                for focus in [Focus::View, Focus::Panel] {
                    screen.focus(focus);
                    let name = format!("{} {look:?} {view:?} {width} x {height} {focus:?}", kind.name);
                    judge(&name, view, &mut screen);
                }
            }
        }
    }
}

/// Texts that end in `…` though blanks follow that they could have gone on into.
fn cut_without_need(text: &str) -> Vec<String> {
    const ROOM: usize = 10;
    let mut found = vec![];
    for line in text.lines() {
        let cells: Vec<char> = line.chars().collect();
        for (i, _) in cells.iter().enumerate().filter(|(_, c)| **c == '…') {
            // Alone it stands for what is to come.
            let cut = i > 0 && cells[i - 1] != ' ';
            let blanks = cells[i + 1..].iter().take_while(|c| **c == ' ').count();
            if cut && blanks >= ROOM && i + 1 + blanks < cells.len() {
                found.push(line.to_string());
            }
        }
    }
    found
}

/// Figures that were cut within, and units.
fn cut_figures(text: &str) -> Vec<String> {
    let cut = |line: &&str| {
        let cells: Vec<char> = line.chars().collect();
        let digits = cells.windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1] == '…');
        let words: Vec<&str> = line.split_whitespace().collect();
        let figure = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
        let units = words.windows(2).any(|pair| figure(pair[0]) && ["Gi", "Mi", "Ki", "Ti"].contains(&pair[1]));
        digits || units
    };
    text.lines().filter(cut).map(str::to_string).collect()
}

/// Rows of a list of stages or devices whose last column does not end where the first row's does.
fn crooked(text: &str) -> Vec<String> {
    let end = |line: &str| {
        let line = line.trim_end_matches([' ', '│', '█', '◂', '║', '▐']);
        let sized = ["GiB", "MiB", "KiB", "GB", "MB", "KB"].iter().any(|unit| line.ends_with(unit));
        (sized && line.contains("● ")).then(|| line.chars().count())
    };
    let ends: Vec<(usize, &str)> = text.lines().filter_map(|line| Some((end(line)?, line))).collect();
    let Some(&(first, _)) = ends.first() else { return vec![] };
    ends.iter().filter(|(end, _)| *end != first).map(|(_, line)| line.to_string()).collect()
}

/// Whether a scrollbar's thumb stands in any column.
fn has_thumb(buffer: &Buffer) -> bool {
    let area = buffer.area;
    let bar = |x: u16| {
        let cells = (1..area.height - 1).map(|y| buffer[(x, y)].symbol());
        cells.clone().any(|cell| cell == "█") && cells.filter(|cell| *cell == "│").count() > 1
    };
    (area.width / 2..area.width).any(bar)
}

/// A list of stages that does not fit and does not say so.
fn endless(view: View, stages: usize, screen: &mut Offscreen) -> Vec<String> {
    let rows = screen.text().lines().filter(|line| line.contains("● ")).count();
    let listed = matches!(view, View::Stages | View::Devices) && rows > 1;
    let silent = listed && rows < stages && !has_thumb(screen.draw());
    if silent { vec![format!("{rows} of {stages} stages and no scrollbar")] } else { vec![] }
}

fn judged(kind: &Kind, stages: usize) {
    let mut wrong = vec![];
    every_picture(kind, |name, view, screen| {
        let pale = pale(screen.draw());
        let text = screen.text();
        for found in [pale, cut_without_need(&text), cut_figures(&text), crooked(&text), endless(view, stages, screen)]
        {
            wrong.extend(found.first().map(|found| format!("{name}: {found}")));
        }
    });
    assert!(wrong.is_empty(), "{} pictures:\n{}", wrong.len(), wrong.join("\n"));
}

fn kind(name: &str) -> Kind {
    kinds().into_iter().find(|kind| kind.name == name).unwrap()
}

#[test]
fn pictures_of_pipelines_hold() {
    judged(&kind("4 stages"), 4);
    judged(&kind("22 stages"), 22);
    judged(&kind("60 stages"), 60);
}

#[test]
fn pictures_of_placements_hold() {
    judged(&kind("placement"), 2);
    judged(&kind("latency"), 2);
}

#[test]
fn pictures_of_dapple_hold() {
    judged(&kind("DAPPLE"), 2);
}

#[test]
fn pictures_of_operators_hold() {
    judged(&kind("PaSE"), 1);
}

#[test]
fn pictures_of_a_model_to_be_trained_hold() {
    judged(&kind("training"), 1);
}

#[test]
fn pictures_of_sweeps_hold() {
    for name in ["4 stages", "DAPPLE"] {
        let mut screen = planned(&kind(name), LOOKS[0]);
        screen.act(Action::Show(View::Sweep));
        screen.focus(Focus::View);
        for (width, height) in SIZES {
            screen.resize(width, height);
            for keys in ["", "v", "L"] {
                screen.keys(keys);
                let text = screen.text();
                let found = [pale(screen.draw()), cut_without_need(&text), cut_figures(&text)].concat();
                assert!(found.is_empty(), "{name} {width} x {height}: {found:?}\n{text}");
            }
        }
    }
}

#[test]
fn the_judge_sees_what_is_wrong() {
    assert_eq!(cut_without_need("+74.0% at lea…                    12 ms").len(), 1);
    assert!(cut_without_need("a name that is too l…  12 ms").is_empty());
    assert!(cut_without_need("… asking Piper           a").is_empty());
    assert_eq!(cut_figures("  12.4… GiB").len(), 1);
    assert_eq!(cut_figures("  12.4 Gi").len(), 1);
    assert!(cut_figures("  12.4 GiB …").is_empty());
    let list = "● 1  2 ms  12 GiB\n● 2  2 ms  7.1 GiB\n● 3  2 ms   8 GiB";
    assert_eq!(crooked(list), ["● 2  2 ms  7.1 GiB"]);
}
