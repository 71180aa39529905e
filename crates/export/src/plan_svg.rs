//! Picture of a plan for papers and slides: a box for each stage, from the network's inputs down to its outputs.
//!
//! ```text
//! ╭──────────────────────────────────────────────────────────────────────╮
//! │ stage 3      transformer 3 .. 5     ████████▒▒░ 20.20 ms  ███▌│ 7 GiB │─╮ skips a stage
//! │ 6 replicas   3 nodes, 3 recompute   the slowest           6 in flight │ │
//! ╰───┬──────────────────────────────────────────────────────────────────╯ │
//!     ↓ 4 MiB, 0.17 ms
//! ```
//!
//! `plan_svg/row.rs` decides the content of a box; this file draws it. Words, lengths and patterns carry everything, so
//! a black-and-white print is readable. The background is white and nothing is loaded from elsewhere.
//! `O(nodes + transfers)`. Boxes are stacked and as wide as the page, because plans have dozens of stages and a longer
//! page is easier than a wider one.

mod row;

use std::fmt::Write;

use self::row::{BarSegment, MemoryBar, StageBox, WorkKind};
use super::xml::escaped;
use plantui_core::{
    cluster::Limits,
    family,
    plan::{Measure, Plan, Score},
    simulate::{SimulatorSettings, Transfer},
    workload::Workload,
};

/// Left edge and width of the boxes. Transfers that skip stages run right of them, each in a lane.
const BOX: (f64, f64) = (24.0, 912.0);
const LANE: f64 = 12.0;
/// Lanes beyond this number are drawn on top of each other.
const MOST_LANES: usize = 12;
/// Height of a box, and of the gap below it.
const TALL: f64 = 70.0;
const GAP: f64 = 30.0;
/// Height of the heading above the first box.
const HEAD: f64 = 118.0;
/// Left edges of a box's four columns, and widths of the bars in the last two.
const COLUMNS: [f64; 4] = [36.0, 190.0, 446.0, 690.0];
const BARS: [f64; 2] = [130.0, 110.0];
const BAR_HEIGHT: f64 = 14.0;
/// Side of a device's square, and the most squares drawn.
const DEVICE: f64 = 7.0;
const MOST_DEVICES_DRAWN: usize = 24;

/// Picture as a whole document, ending in a newline. The score must belong to the plan.
pub(crate) fn to_svg(workload: &Workload, limits: &Limits, plan: &Plan, score: &Score) -> String {
    let pipeline = family::pipeline(workload, limits, plan, &SimulatorSettings::default());
    let mut rows = row::rows(workload, limits, plan, score);
    for row in &mut rows {
        row.holds.extend(row.stage.and_then(|stage| row::received_late(&pipeline.transfers, stage)));
    }
    let boxes = rows.iter().filter(|row| row.stage.is_some()).count();
    let skips = lanes(if boxes == rows.len() { &pipeline.transfers } else { &[] });
    let lanes = skips.iter().map(|(_, lane)| lane + 1).max().unwrap_or(0).min(MOST_LANES);
    let width = BOX.0 * 2.0 + BOX.1 + LANE * lanes as f64;
    // Rows that are not stages have no transfers between them.
    let gap = if boxes == rows.len() { GAP } else { 8.0 };
    let top_of = |at: usize| HEAD + (TALL + gap) * at as f64;
    let height = top_of(rows.len()) + 34.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#1a1a1a\">\n\
         <title>{name}</title>\n<defs>\n\
         <pattern id=\"edges\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
         <path d=\"M-1 1l2 -2M0 5l5 -5M4 6l2 -2\" stroke=\"#b35900\" stroke-width=\"1.4\"/></pattern>\n\
         <pattern id=\"sync\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
         <circle cx=\"2\" cy=\"2\" r=\"1\" fill=\"#1a1a1a\"/></pattern>\n\
         <marker id=\"head\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">\
         <path d=\"M0 0l8 4l-8 4z\" fill=\"#444444\"/></marker>\n</defs>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        name = escaped(&workload.name),
    );
    heading(&mut svg, workload, limits, plan, score);
    let scale = row::longest(&rows);
    for (at, row) in rows.iter().enumerate() {
        draw(&mut svg, row, top_of(at), scale);
    }
    if boxes == rows.len() {
        neighbours(&mut svg, &pipeline.transfers, rows.len(), top_of);
        for (transfer, lane) in &skips {
            skip(&mut svg, transfer, (*lane).min(MOST_LANES - 1), &top_of);
        }
    }
    let bottom = height - 16.0;
    let arrows = match pipeline.transfers.is_empty() {
        true => "",
        false => "Arrows: activations of a microbatch; gradients return the same way. ",
    };
    let left = BOX.0;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{bottom}\" font-size=\"11\" fill=\"#555555\">{arrows}</text>");
    svg + "</svg>\n"
}

/// Name, objective, limits, and the legend of columns and patterns.
fn heading(svg: &mut String, workload: &Workload, limits: &Limits, plan: &Plan, score: &Score) {
    let left = BOX.0;
    let name = escaped(&fitting(&workload.name, BOX.1 / 1.4));
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"30\" font-size=\"17\" font-weight=\"bold\">{name}</text>");
    let worth = escaped(&fitting(&row::value_line(limits, plan, score), BOX.1));
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"52\" font-size=\"13\">{worth}</text>");
    let columns = row::columns(plan.measure, limits, workload);
    for (x, text) in COLUMNS.into_iter().zip(columns) {
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"108\" font-size=\"11\" fill=\"#555555\">{}</text>", escaped(&text));
    }
    if let Measure::Latency { .. } = plan.measure {
        return;
    }
    let mut x = left;
    // Stages that are single devices have no replicas to reduce over.
    let named: &[(WorkKind, &str)] = if family::of(workload).stages_are_devices() {
        &[(WorkKind::Compute, "compute"), (WorkKind::Communication, "transfers")]
    } else {
        &[(WorkKind::Compute, "compute"), (WorkKind::Communication, "transfers"), (WorkKind::Sync, "all-reduce")]
    };
    for &(work, name) in named {
        block(svg, work, x, 70.0, 18.0);
        let _ = writeln!(svg, "<text x=\"{}\" y=\"81\">{name}</text>", x + 24.0);
        x += 110.0;
    }
}

/// Segment of a bar.
fn block(svg: &mut String, work: WorkKind, x: f64, y: f64, width: f64) {
    let mut rectangle = |fill: &str| {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{BAR_HEIGHT}\" fill=\"{fill}\"/>"
        );
    };
    match work {
        WorkKind::Compute => rectangle("#2b6ca3"),
        WorkKind::Communication => {
            rectangle("#fbe6cf");
            rectangle("url(#edges)");
        }
        WorkKind::Sync => {
            rectangle("#dddddd");
            rectangle("url(#sync)");
        }
    }
}

fn draw(svg: &mut String, row: &StageBox, top: f64, longest: f64) {
    let (left, width) = BOX;
    let (edge, weight) = if row.limits { ("#a11212", 2.4) } else { ("#888888", 1.0) };
    let _ = writeln!(
        svg,
        "<rect class=\"{}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{TALL}\" rx=\"6\" fill=\"#fafafa\" \
         stroke=\"{edge}\" stroke-width=\"{weight}\"/>",
        if row.stage.is_some() { "stage" } else { "operators" },
    );
    let mut text = |x: f64, line: usize, bold: bool, content: &str, room: f64| {
        if !content.is_empty() {
            let weight = if bold { " font-weight=\"bold\"" } else { "" };
            let y = top + 22.0 + 18.0 * line as f64;
            let content = escaped(&fitting(content, room));
            let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\"{weight}>{content}</text>");
        }
    };
    for (line, content) in row.what.iter().enumerate() {
        text(COLUMNS[0], line, line == 0, content, COLUMNS[1] - COLUMNS[0] - 8.0);
    }
    for (line, content) in row.holds.iter().enumerate() {
        text(COLUMNS[1], line, false, content, COLUMNS[2] - COLUMNS[1] - 8.0);
    }
    let beside = COLUMNS[2] + BARS[0] + 8.0;
    text(beside, 0, row.limits, &row.time, COLUMNS[3] - beside - 4.0);
    text(COLUMNS[2], 1, row.limits, &row.verdict, COLUMNS[3] - COLUMNS[2] - 8.0);
    let full = COLUMNS[3] + BARS[1] + 8.0;
    text(full, 0, false, &row.memory_text, left + width - full - 4.0);
    text(COLUMNS[3], 1, false, &row.in_flight, left + width - COLUMNS[3] - 8.0);
    let scale = if longest > 0.0 { BARS[0] / longest } else { 0.0 };
    for BarSegment { work, from_s, to_s } in &row.spans {
        block(svg, *work, COLUMNS[2] + from_s * scale, top + 11.0, (to_s - from_s) * scale);
    }
    if let Some(memory) = row.memory {
        gauge(svg, memory, top + 11.0);
    }
    devices(svg, row, top + TALL - 18.0);
}

/// Used memory within the frame of the limit.
fn gauge(svg: &mut String, MemoryBar { used, of }: MemoryBar, y: f64) {
    let share = if of > 0.0 { (used / of).min(1.0) } else { 0.0 };
    let (x, width) = (COLUMNS[3], BARS[1]);
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{:.2}\" height=\"{BAR_HEIGHT}\" fill=\"#8fb58f\"/>\n\
         <rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{BAR_HEIGHT}\" fill=\"none\" stroke=\"#666666\"/>",
        width * share
    );
}

/// Square for each device; the devices of a replica touch.
fn devices(svg: &mut String, row: &StageBox, y: f64) {
    let (replicas, each) = row.replicas;
    let drawn = (replicas as usize).saturating_mul(each as usize).min(MOST_DEVICES_DRAWN);
    let mut x = COLUMNS[2];
    for device in 0..drawn {
        let _ = writeln!(
            svg,
            "<rect class=\"device\" x=\"{x}\" y=\"{y}\" width=\"{DEVICE}\" height=\"{DEVICE}\" fill=\"#ffffff\" \
             stroke=\"#333333\"/>"
        );
        // Devices of one replica touch.
        x += DEVICE + if (device + 1) % (each as usize).max(1) == 0 { 3.0 } else { 0.0 };
    }
    let more = (replicas as usize).saturating_mul(each as usize) - drawn;
    if more > 0 {
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\" font-size=\"10\">+{more}</text>", y + DEVICE);
    }
}

/// Transfers from a stage to the next one.
fn neighbours(svg: &mut String, transfers: &[Transfer], stages: usize, top_of: impl Fn(usize) -> f64) {
    for transfer in transfers.iter().filter(|transfer| transfer.to == transfer.from + 1 && transfer.to < stages) {
        let (x, from, to) = (COLUMNS[0] + 20.0, top_of(transfer.from) + TALL, top_of(transfer.to));
        let _ = writeln!(
            svg,
            "<path class=\"transfer\" d=\"M{x} {from}V{to}\" stroke=\"#444444\" stroke-width=\"1.4\" \
             marker-end=\"url(#head)\"/>\n<text x=\"{}\" y=\"{:.1}\" font-size=\"11\">{}</text>",
            x + 12.0,
            (from + to) / 2.0 + 4.0,
            escaped(&row::sent(transfer)),
        );
    }
}

/// Transfer that skips stages: out at the right of its sender, down its lane, into its receiver.
fn skip(svg: &mut String, transfer: &Transfer, lane: usize, top_of: &impl Fn(usize) -> f64) {
    let edge = BOX.0 + BOX.1;
    let x = edge + LANE * (lane as f64 + 0.8);
    let (from, to) = (top_of(transfer.from) + TALL * 0.75, top_of(transfer.to) + TALL * 0.25);
    let told = format!("stage {} to stage {}: {}", transfer.from + 1, transfer.to + 1, row::sent(transfer));
    let told = escaped(&told);
    let _ = writeln!(
        svg,
        "<path class=\"transfer\" d=\"M{edge} {from}H{x:.1}V{to}H{edge}\" fill=\"none\" stroke=\"#444444\" \
         marker-end=\"url(#head)\"><title>{told}</title></path>"
    );
}

/// Transfers that skip stages, each in the first lane that is free over its whole length.
fn lanes(transfers: &[Transfer]) -> Vec<(Transfer, usize)> {
    let mut ends: Vec<usize> = vec![];
    let mut skips: Vec<Transfer> = transfers.iter().filter(|t| t.to > t.from + 1).copied().collect();
    skips.sort_by_key(|transfer| (transfer.from, transfer.to));
    let place = |transfer: Transfer| {
        let free = ends.iter().position(|&end| end <= transfer.from);
        let lane = free.unwrap_or_else(|| {
            ends.push(0);
            ends.len() - 1
        });
        ends[lane] = transfer.to;
        (transfer, lane)
    };
    skips.into_iter().map(place).collect()
}

/// Text cut to a width. A letter counts 6 units, slightly more than the average of these fonts at this size.
fn fitting(text: &str, width: f64) -> String {
    let most = (width / 6.0) as usize;
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_that_overlap_run_in_lanes_of_their_own() {
        let transfer = |from, to| Transfer { from, to, seconds: 1.0, bytes: 1.0 };
        let all = [transfer(0, 1), transfer(0, 3), transfer(1, 4), transfer(3, 5), transfer(4, 6), transfer(2, 6)];
        let placed: Vec<(usize, usize, usize)> =
            lanes(&all).into_iter().map(|(transfer, lane)| (transfer.from, transfer.to, lane)).collect();
        assert_eq!(placed, [(0, 3, 0), (1, 4, 1), (2, 6, 2), (3, 5, 0), (4, 6, 1)]);
    }

    #[test]
    fn long_texts_end_in_dots() {
        assert_eq!(fitting("short", 100.0), "short");
        assert_eq!(fitting("层层层层层", 20.0), "层层…");
    }

    #[test]
    fn a_gauge_of_nothing_is_empty() {
        let mut svg = String::new();
        gauge(&mut svg, MemoryBar { used: 5.0, of: 0.0 }, 0.0);
        assert!(svg.contains("width=\"0.00\""), "{svg}");
    }
}
