//! Chart of a sweep as an SVG picture for papers and slides.
//!
//! Each planner, setting or second limit is a line. Lines differ by colour (Okabe and Ito's palette, which colour-blind
//! people can distinguish) and by the shape of their marks. From the ninth line on, dashes and the fill of the marks
//! differ too. Below the plot, each line with infeasible values of the limit has a row that shows them. `O(points)`.

use std::fmt::Write;

use super::xml::escaped;
use plantui_study::sweep::chart::{Chart, ChartAxis, ChartLine, ChartPoint};

const WIDTH: f64 = 960.0;
/// Left and upper edge of the plot, and its height.
const LEFT: f64 = 96.0;
const TOP: f64 = 56.0;
const HEIGHT: f64 = 340.0;
/// Least and greatest width of the plot; the legend takes the rest.
const NARROW: f64 = 480.0;
const WIDE: f64 = 700.0;
/// Height of a legend entry, and of a row that shows infeasible values.
const ROW: f64 = 18.0;
/// Longer legend entries are cut.
const MOST_LABEL: usize = 40;
/// Longer names along the axis are cut at their beginning, which is most often the same for all.
const MOST_NAME: usize = 22;
/// Lines with more points are drawn without marks, which would hide the line.
const MOST_MARKS: usize = 120;
/// Width of a letter of the fonts used, as a fraction of their size: slightly more than the average.
const LETTER: f64 = 0.56;
const COLOURS: [&str; 8] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9", "#7a6a00"];
/// Dashes of the lines; each serves eight lines.
const DASHES: [&str; 4] =
    ["", " stroke-dasharray=\"7 4\"", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"9 3 2 3\""];

/// Chart as a whole document, ending in a newline.
pub fn to_svg(chart: &Chart, title: &str) -> String {
    let missing: Vec<(usize, &ChartLine)> =
        chart.lines.iter().enumerate().filter(|(_, line)| line.marks.iter().any(|mark| mark.y.is_none())).collect();
    let mut picture = ChartSvg { chart, svg: String::new(), width: plot_width(chart) };
    let bottom = TOP + HEIGHT + ROW * missing.len() as f64 + if missing.is_empty() { 0.0 } else { 8.0 };
    let below = picture.axes(bottom);
    for (at, line) in chart.lines.iter().enumerate() {
        picture.line(at, line);
        picture.legend(at, line, TOP + 10.0 + ROW * at as f64);
    }
    for (row, (at, line)) in missing.into_iter().enumerate() {
        picture.no_plan(at, line, TOP + HEIGHT + 8.0 + ROW * (row as f64 + 0.5));
    }
    let tall = (below + 20.0).max(TOP + ROW * chart.lines.len() as f64 + 40.0);
    // A long title gets a smaller font and is not cut.
    let size = ((WIDTH - LEFT - 16.0) / (LETTER * 1.05) / title.chars().count().max(1) as f64).clamp(9.0, 16.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {tall}\" width=\"{WIDTH}\" height=\"{tall}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"13\" fill=\"#1a1a1a\">\n<title>{name}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{tall}\" fill=\"#ffffff\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" font-size=\"{size:.1}\" font-weight=\"bold\">{name}</text>\n{svg}</svg>\n",
        name = escaped(title),
        svg = picture.svg,
    )
}

/// Width that the longest legend entry leaves for the plot.
fn plot_width(chart: &Chart) -> f64 {
    let longest = chart.lines.iter().map(|line| line.label.chars().count().min(MOST_LABEL)).max().unwrap_or(0);
    (WIDTH - LEFT - 24.0 - 32.0 - 16.0 - 12.0 * LETTER * longest as f64).clamp(NARROW, WIDE)
}

/// Picture while it is drawn.
struct ChartSvg<'c> {
    chart: &'c Chart,
    svg: String,
    /// Width of the plot.
    width: f64,
}

impl ChartSvg<'_> {
    fn x(&self, x: f64) -> f64 {
        LEFT + self.chart.x.share(x) * self.width
    }

    fn y(&self, y: f64) -> f64 {
        // A margin at both ends, so that no mark lies on the frame.
        TOP + HEIGHT * (1.0 - (0.04 + 0.92 * self.chart.y.share(y)))
    }

    fn text(&mut self, x: f64, y: f64, attributes: &str, text: &str) {
        let _ = writeln!(self.svg, "<text x=\"{x:.1}\" y=\"{y:.1}\"{attributes}>{}</text>", escaped(text));
    }

    /// Draws frame, ticks and titles; returns the lower end of the drawing.
    fn axes(&mut self, bottom: f64) -> f64 {
        let (chart, width) = (self.chart, self.width);
        for tick in chart.y_ticks(7) {
            let y = self.y(tick);
            let _ = writeln!(self.svg, "<path d=\"M{LEFT} {y:.1}h{width:.1}\" stroke=\"#dddddd\"/>");
            self.text(LEFT - 8.0, y + 4.0, " text-anchor=\"end\" font-size=\"11\"", &chart.show_y_tick(tick));
        }
        let named = matches!(chart.along, ChartAxis::Workloads(_));
        let ticks = if named { chart.places.clone() } else { chart.x_ticks(8) };
        let mut below = bottom + 20.0;
        for tick in ticks {
            let x = self.x(tick);
            let _ = writeln!(self.svg, "<path d=\"M{x:.1} {TOP}V{:.1}\" stroke=\"#eeeeee\"/>", bottom + 4.0);
            let text = chart.show_x(tick);
            if named {
                // Names are longer than the distance of their ticks: they hang below, at a slant.
                let text = ending(&text);
                let y = bottom + 14.0;
                below = f64::max(below, y + 0.77 * 11.0 * LETTER * text.chars().count() as f64 + 8.0);
                let turned = format!(" text-anchor=\"end\" font-size=\"11\" transform=\"rotate(-50 {x:.1} {y:.1})\"");
                self.text(x, y, &turned, &text);
            } else {
                self.text(x, bottom + 20.0, " text-anchor=\"middle\" font-size=\"11\"", &text);
            }
        }
        let _ = writeln!(
            self.svg,
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#666666\"/>"
        );
        let scale = |logarithmic: bool| if logarithmic { " (logarithmic)" } else { "" };
        let title = format!("{}{}", chart.x_title(), scale(chart.x.logarithmic));
        self.text(LEFT + width / 2.0, below + 20.0, " text-anchor=\"middle\"", &title);
        let title = format!("{}{}", chart.y_title(), scale(chart.y.logarithmic));
        self.text(LEFT, TOP - 8.0, "", &title);
        below + 20.0
    }

    /// Draws the line through its marks, interrupted at infeasible values.
    fn line(&mut self, at: usize, line: &ChartLine) {
        // Workloads side by side have no values in between.
        let joined = !matches!(self.chart.along, ChartAxis::Workloads(_));
        for stretch in line.marks.split(|mark| mark.y.is_none()).filter(|stretch| joined && stretch.len() > 1) {
            let points = stretch.iter().filter_map(|mark| Some((self.x(mark.x), self.y(mark.y?))));
            let path: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let (colour, dashes) = (colour(at), dashes(at));
            let _ = writeln!(
                self.svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>",
                path.join(" ")
            );
        }
        if joined && line.marks.len() > MOST_MARKS {
            return;
        }
        for mark in &line.marks {
            let ChartPoint { x, y: Some(y), .. } = *mark else { continue };
            let told = format!("{}: {} at {}", line.label, self.chart.show_y(y), self.chart.show_x(x));
            let (x, y) = (self.x(x), self.y(y));
            self.sign(at, x, y, &told);
        }
    }

    /// Draws a mark in the shape of the line.
    fn sign(&mut self, at: usize, x: f64, y: f64, told: &str) {
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
        let colour = colour(at);
        let filling = match at / COLOURS.len() % DASHES.len() {
            0 => format!("fill=\"{colour}\""),
            1 => format!("fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"1.4\""),
            2 => format!("fill=\"{colour}\" fill-opacity=\"0.4\" stroke=\"{colour}\""),
            _ => format!("fill=\"{colour}\" stroke=\"#000000\""),
        };
        let _ = writeln!(self.svg, "<path d=\"{path}\" {filling}><title>{}</title></path>", escaped(told));
    }

    fn legend(&mut self, at: usize, line: &ChartLine, y: f64) {
        let x = LEFT + self.width + 24.0;
        let (colour, dashes) = (colour(at), dashes(at));
        let _ = writeln!(self.svg, "<path d=\"M{x:.1} {y:.1}h24\" stroke=\"{colour}\" stroke-width=\"1.8\"{dashes}/>");
        self.sign(at, x + 12.0, y, &line.label);
        let mut label: String = line.label.chars().take(MOST_LABEL).collect();
        if line.label.chars().count() > MOST_LABEL {
            label.push('…');
        }
        self.text(x + 32.0, y + 4.0, " font-size=\"12\"", &label);
    }

    /// Row of a line that shows infeasible values: a bar over each range, a cross at each value.
    fn no_plan(&mut self, at: usize, line: &ChartLine, y: f64) {
        let colour = colour(at);
        self.text(LEFT - 24.0, y + 4.0, " text-anchor=\"end\" font-size=\"11\"", "no plan");
        self.sign(at, LEFT - 15.0, y, &line.label);
        for stretch in line.marks.split(|mark| mark.y.is_some()).filter(|stretch| !stretch.is_empty()) {
            let (from, to) = (self.x(stretch[0].x), self.x(stretch[stretch.len() - 1].x));
            let _ = writeln!(
                self.svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\" fill=\"{colour}\" fill-opacity=\"0.15\"/>",
                from - 6.0,
                y - 5.0,
                to - from + 12.0
            );
            if stretch.len() > MOST_MARKS {
                continue;
            }
            for mark in stretch {
                let x = self.x(mark.x);
                let told = escaped(&format!("{}: no plan at {}", line.label, self.chart.show_x(mark.x)));
                let _ = writeln!(
                    self.svg,
                    "<path d=\"M{:.1} {:.1}l7 7m0 -7l-7 7\" stroke=\"{colour}\" stroke-width=\"1.6\"><title>{told}</title></path>",
                    x - 3.5,
                    y - 3.5
                );
            }
        }
    }
}

fn colour(at: usize) -> &'static str {
    COLOURS[at % COLOURS.len()]
}

fn dashes(at: usize) -> &'static str {
    DASHES[at / COLOURS.len() % DASHES.len()]
}

/// End of a long name.
fn ending(name: &str) -> String {
    let count = name.chars().count();
    if count <= MOST_NAME {
        return name.into();
    }
    format!("…{}", name.chars().skip(count - MOST_NAME + 1).collect::<String>())
}
