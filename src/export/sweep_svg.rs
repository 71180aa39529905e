//! The chart of a sweep as an SVG picture for papers and slides.
//!
//! A line per planner, setting or second limit, told apart by colour (Okabe and Ito's palette, which colour-blind people can
//! tell apart), by the form of its marks, and from the ninth on by dashes. Below the plot every line with values of the limit
//! for which there is no plan has a row that shows them. `O(points)`.

use std::fmt::Write;

use super::svg::escaped;
use crate::study::sweep::chart::{Chart, Line, Mark};

const WIDTH: f64 = 960.0;
/// The plot's left and upper edge, its width and height.
const PLOT: (f64, f64, f64, f64) = (96.0, 56.0, 560.0, 340.0);
/// Height of a legend entry, and of a row that shows where there is no plan.
const ROW: f64 = 18.0;
/// A legend that is longer is cut: more lines cannot be told apart anyway.
const MOST_LABEL: usize = 40;
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#7a6a00"];

/// The chart as a whole document, ending in a newline.
pub fn to_svg(chart: &Chart, title: &str) -> String {
    let (left, top, width, height) = PLOT;
    let missing: Vec<(usize, &Line)> =
        chart.lines.iter().enumerate().filter(|(_, line)| line.marks.iter().any(|mark| mark.y.is_none())).collect();
    let bottom = top + height + ROW * missing.len() as f64 + if missing.is_empty() { 0.0 } else { 8.0 };
    let tall = (bottom + 64.0).max(top + ROW * chart.lines.len() as f64 + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {tall}\" width=\"{WIDTH}\" height=\"{tall}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#1a1a1a\">\n<title>{name}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{tall}\" fill=\"#ffffff\"/>\n\
         <text x=\"{left}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{name}</text>\n",
        name = escaped(title),
    );
    axes(&mut svg, chart, bottom);
    for (at, line) in chart.lines.iter().enumerate() {
        draw_line(&mut svg, chart, at, line);
        legend(&mut svg, at, line, left + width + 24.0, top + 10.0 + ROW * at as f64);
    }
    for (row, (at, line)) in missing.into_iter().enumerate() {
        no_plan(&mut svg, chart, at, line, top + height + 8.0 + ROW * (row as f64 + 0.5));
    }
    svg.push_str("</svg>\n");
    svg
}

fn x_of(chart: &Chart, x: f64) -> f64 {
    PLOT.0 + chart.x.share(x) * PLOT.2
}

fn y_of(chart: &Chart, y: f64) -> f64 {
    // A little air at both ends, so that no mark lies on the frame.
    PLOT.1 + PLOT.3 * (1.0 - (0.04 + 0.92 * chart.y.share(y)))
}

fn axes(svg: &mut String, chart: &Chart, bottom: f64) {
    let (left, top, width, height) = PLOT;
    for tick in chart.y_ticks(7) {
        let y = y_of(chart, tick);
        let _ = writeln!(svg, "<path d=\"M{left} {y:.1}h{width}\" stroke=\"#dddddd\"/>");
        let text = escaped(&chart.show_y(tick));
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">{text}</text>",
            left - 8.0,
            y + 4.0
        );
    }
    for tick in chart.x_ticks(8) {
        let x = x_of(chart, tick);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {top}V{:.1}\" stroke=\"#eeeeee\"/>", bottom + 4.0);
        let text = escaped(&chart.show_x(tick));
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\">{text}</text>",
            bottom + 20.0
        );
    }
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#666666\"/>"
    );
    let scale = |logarithmic: bool| if logarithmic { " (logarithmic)" } else { "" };
    let (x, y) = (left + width / 2.0, bottom + 44.0);
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"middle\">{}{}</text>",
        chart.x_title(),
        scale(chart.x.logarithmic)
    );
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{:.1}\">{}{}</text>",
        top - 8.0,
        escaped(&chart.y_title()),
        scale(chart.y.logarithmic)
    );
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

/// The line through its marks, broken where there is no plan.
fn draw_line(svg: &mut String, chart: &Chart, at: usize, line: &Line) {
    let dashes = match at / COLOURS.len() {
        0 => "",
        1 => " stroke-dasharray=\"7 4\"",
        _ => " stroke-dasharray=\"2 3\"",
    };
    // Workloads side by side have nothing between them.
    let joined = matches!(chart.along, crate::study::sweep::chart::Along::Limit(_));
    for stretch in line.marks.split(|mark| mark.y.is_none()).filter(|stretch| joined && stretch.len() > 1) {
        let points = stretch.iter().filter_map(|mark| Some((x_of(chart, mark.x), y_of(chart, mark.y?))));
        let path: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let colour = colour(at);
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>",
            path.join(" ")
        );
    }
    for mark in &line.marks {
        let Mark { x, y: Some(y), .. } = *mark else { continue };
        let told = format!("{}: {} at {}", line.label, chart.show_y(y), chart.show_x(x));
        sign(svg, at, x_of(chart, x), y_of(chart, y), &told);
    }
}

/// The form of a line's marks.
fn sign(svg: &mut String, at: usize, x: f64, y: f64, told: &str) {
    let path = match at % COLOURS.len() {
        0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
        1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
        2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 5.0),
        3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        4 => format!("M{x:.1} {:.1}l4.5 -8h-9z", y + 5.0),
        5 => format!("M{:.1} {:.1}h3v-3h3v3h3v3h-3v3h-3v-3h-3z", x - 4.5, y - 1.5),
        6 => format!("M{:.1} {y:.1}l4 -4.5h4l-4 4.5l4 4.5h-4z", x - 4.0),
        _ => format!("M{:.1} {:.1}h10v4h-10z", x - 5.0, y - 2.0),
    };
    let _ = writeln!(svg, "<path d=\"{path}\" fill=\"{}\"><title>{}</title></path>", colour(at), escaped(told));
}

fn legend(svg: &mut String, at: usize, line: &Line, x: f64, y: f64) {
    let _ = writeln!(svg, "<path d=\"M{x} {y}h24\" stroke=\"{}\" stroke-width=\"1.8\"/>", colour(at));
    sign(svg, at, x + 12.0, y, &line.label);
    let mut label: String = line.label.chars().take(MOST_LABEL).collect();
    if line.label.chars().count() > MOST_LABEL {
        label.push('…');
    }
    let _ =
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{}</text>", x + 32.0, y + 4.0, escaped(&label));
}

/// The row of a line that shows where there is no plan: a bar over each such stretch, a cross at each value.
fn no_plan(svg: &mut String, chart: &Chart, at: usize, line: &Line, y: f64) {
    let colour = colour(at);
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\" fill=\"{colour}\">no plan</text>",
        PLOT.0 - 8.0,
        y + 4.0
    );
    for stretch in line.marks.split(|mark| mark.y.is_some()).filter(|stretch| !stretch.is_empty()) {
        let (from, to) = (x_of(chart, stretch[0].x), x_of(chart, stretch[stretch.len() - 1].x));
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\" fill=\"{colour}\" fill-opacity=\"0.15\"/>",
            from - 6.0,
            y - 5.0,
            to - from + 12.0
        );
        for mark in stretch {
            let x = x_of(chart, mark.x);
            let told = escaped(&format!("{}: no plan at {}", line.label, chart.show_x(mark.x)));
            let _ = writeln!(
                svg,
                "<path d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\" stroke=\"{colour}\" stroke-width=\"1.6\"><title>{told}</title></path>",
                x - 3.5,
                y - 3.5
            );
        }
    }
}
