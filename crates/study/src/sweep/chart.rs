//! Sweep as lines of a chart, independent of the drawing: a figure along the first axis, with a line per planner,
//! setting, value of the second axis and workload.
//!
//! Without an axis the workloads are side by side. Objectives in different units cannot share an axis: the chart then
//! shows the simulated throughput, which all plans have.

use super::{ChartFigure, PointResult, Sweep, range};
use plantui_core::{cluster::LimitKind, units};
use plantui_planners::{OptionSpec, OptionValue};

/// Quantity along the chart.
#[derive(Debug, Clone, PartialEq)]
pub enum ChartAxis {
    /// A limit.
    Limit(LimitKind),
    /// An option of the planners.
    Option(&'static OptionSpec),
    /// Workloads by name; x is their index.
    Workloads(Vec<String>),
}

/// Point on a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChartPoint {
    /// Position along the chart.
    pub x: f64,
    /// Value of the figure; `None` without a plan.
    pub y: Option<f64>,
    /// Index of the point in the sweep.
    pub place: usize,
}

/// Line of the chart.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartLine {
    /// Label that identifies the line.
    pub label: String,
    /// Answered points, by x.
    pub marks: Vec<ChartPoint>,
}

/// Mapping from values to fractions of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Value at the start.
    pub least: f64,
    /// Value at the end.
    pub most: f64,
    /// True if equal distances are equal factors.
    pub logarithmic: bool,
}

/// Chart of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Quantity along the chart.
    pub along: ChartAxis,
    /// Figure of the chart.
    pub figure: ChartFigure,
    /// Name and unit of the objective, if it is shown.
    pub objective: Option<(String, String)>,
    /// Lines, including those without an answer.
    pub lines: Vec<ChartLine>,
    /// Axis along the chart.
    pub x: Scale,
    /// Axis of the figure.
    pub y: Scale,
    /// All values along the chart, answered or not.
    pub places: Vec<f64>,
    /// Memory limit per device at the first point, bytes; memory is shown in its unit.
    pub memory_limit: f64,
}

/// Least ratio of the largest to the smallest value for a logarithmic axis.
const WIDE: f64 = 6.0;

impl Scale {
    fn over(values: impl Iterator<Item = f64>, logarithmic: impl Fn(f64, f64) -> bool) -> Self {
        let (least, most) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (v.min(least), v.max(most)));
        if least > most {
            return Scale { least: 0.0, most: 1.0, logarithmic: false };
        }
        Scale { least, most, logarithmic: least > 0.0 && logarithmic(least, most) }
    }

    /// Position of a value: 0 at the start, 1 at the end, a half if all values are equal.
    pub fn share(&self, value: f64) -> f64 {
        let place = |v: f64| if self.logarithmic { v.ln() } else { v };
        let length = place(self.most) - place(self.least);
        if length > 0.0 { ((place(value) - place(self.least)) / length).clamp(0.0, 1.0) } else { 0.5 }
    }

    /// Round values inside the scale, at most `most`, ascending; both ends if no round value is inside.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let inside = |ticks: Vec<f64>| -> Vec<f64> {
            let slack = 1e-9 * self.most.abs();
            ticks.into_iter().filter(|&v| v >= self.least - slack && v <= self.most + slack).collect()
        };
        let most = most.max(2);
        if self.logarithmic {
            let decades = self.least.log10().floor() as i32..=self.most.log10().ceil() as i32;
            let mut coarsest = None;
            for digits in [&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0][..], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
                let all = decades.clone().flat_map(|e| digits.iter().map(move |d| d * 10f64.powi(e)));
                let ticks = inside(all.collect());
                if ticks.len() >= 2 {
                    if ticks.len() <= most {
                        return ticks;
                    }
                    coarsest = Some(ticks);
                }
            }
            // Round values that are close together are preferred to ends that are not round.
            return coarsest.unwrap_or_else(|| vec![self.least, self.most]);
        }
        let length = self.most - self.least;
        if length <= 0.0 {
            return vec![self.least];
        }
        let rough = length / most as f64;
        let decade = 10f64.powf(rough.log10().floor());
        let by = |step: f64| {
            let first = (self.least / step).ceil();
            let count = ((self.most / step).floor() - first).max(0.0) as usize;
            inside((0..=count).map(|i| (first + i as f64) * step).collect())
        };
        // From the first step that is wide enough down to a step with two values inside.
        let steps = [10.0, 5.0, 2.0, 1.0, 0.5, 0.2].map(|d| d * decade);
        let widest = steps.iter().rposition(|&step| step >= rough).unwrap_or(0);
        let ticks = steps[widest..].iter().map(|&step| by(step)).find(|ticks| ticks.len() >= 2);
        ticks.unwrap_or_else(|| vec![self.least, self.most])
    }
}

impl Chart {
    /// Chart of the answers so far; `answers` has the order of the sweep's points.
    pub fn new(sweep: &Sweep, answers: &[Option<PointResult>], figure: ChartFigure) -> Self {
        let along = match (sweep.along, sweep.axes.first()) {
            (Some(spec), _) => ChartAxis::Option(spec),
            (None, Some(&kind)) => ChartAxis::Limit(kind),
            (None, None) => {
                ChartAxis::Workloads((0..sweep.workloads.len()).map(|place| sweep.workload_label(place)).collect())
            }
        };
        let objectives = || answers.iter().flatten().filter_map(|answer| answer.objective.as_ref());
        let first = objectives().next();
        let alike = objectives().all(|o| first.is_none_or(|first| (&o.name, &o.unit) == (&first.name, &first.unit)));
        let figure = if figure == ChartFigure::Objective && !alike { ChartFigure::Throughput } else { figure };
        let objective = first.filter(|_| figure == ChartFigure::Objective).map(|o| (o.name.clone(), o.unit.clone()));
        let mut lines: Vec<ChartLine> = vec![];
        let mut places = vec![];
        for (place, point) in sweep.points.iter().enumerate() {
            let x = match along {
                ChartAxis::Workloads(_) => point.workload as f64,
                ChartAxis::Limit(_) | ChartAxis::Option(_) => sweep.coordinates(point)[0],
            };
            places.push(x);
            let label = label(sweep, place, !matches!(along, ChartAxis::Workloads(_)));
            let line = match lines.iter().position(|line| line.label == label) {
                Some(at) => &mut lines[at],
                None => {
                    lines.push(ChartLine { label, marks: vec![] });
                    lines.last_mut().expect("one was added")
                }
            };
            if let Some(answer) = &answers[place] {
                let y = figure
                    .of(answer)
                    .filter(|y| y.is_finite() && (answer.has_plan() || figure != ChartFigure::Seconds));
                line.marks.push(ChartPoint { x, y, place });
            }
        }
        for line in &mut lines {
            line.marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        places.sort_by(f64::total_cmp);
        places.dedup();
        let geometric = !matches!(along, ChartAxis::Workloads(_)) && range::is_geometric(&places);
        let values = || lines.iter().flat_map(|line| line.marks.iter().filter_map(|mark| mark.y));
        Chart {
            x: Scale::over(places.iter().copied(), |_, _| geometric),
            y: Scale::over(values(), |least, most| most >= WIDE * least),
            along,
            figure,
            objective,
            lines,
            places,
            memory_limit: sweep.points.first().map_or(f64::INFINITY, |point| point.limits.memory_limit()),
        }
    }

    /// Title of the axis along the chart.
    pub fn x_title(&self) -> &'static str {
        match self.along {
            ChartAxis::Limit(kind) => kind.label(),
            ChartAxis::Option(spec) => spec.label,
            ChartAxis::Workloads(_) => "workload",
        }
    }

    /// Noun along the chart in the singular, and its plural behind a number if values are shown without a unit.
    pub fn x_noun(&self) -> (&'static str, String) {
        match self.along {
            ChartAxis::Limit(kind @ (LimitKind::Devices | LimitKind::Cpus | LimitKind::Microbatches)) => {
                (kind.singular(), format!(" {}", kind.label()))
            }
            _ => (self.x_title(), String::new()),
        }
    }

    /// Value along the chart, for people.
    pub fn show_x(&self, x: f64) -> String {
        match &self.along {
            ChartAxis::Limit(kind) => kind.format(x),
            ChartAxis::Option(spec) => spec.show(&OptionValue::Number(x)),
            ChartAxis::Workloads(names) => names.get(x as usize).cloned().unwrap_or_default(),
        }
    }

    /// Title of the figure's axis.
    pub fn y_title(&self) -> String {
        match &self.objective {
            Some((name, _)) => name.replace('_', " "),
            None => self.figure.title().into(),
        }
    }

    /// Value of the figure, for people.
    pub fn show_y(&self, y: f64) -> String {
        let objective = self.objective.as_ref().map(|(name, unit)| (name.as_str(), unit.as_str()));
        self.figure.show(y, objective, self.memory_limit)
    }

    /// Value of the figure as an axis label; the title already says "per sample".
    pub fn show_y_tick(&self, y: f64) -> String {
        self.show_y(y).replace("/sample", "")
    }

    /// Round values for the figure's axis, at most `most`; sizes are round in their shown unit.
    pub fn y_ticks(&self, most: usize) -> Vec<f64> {
        let unit = match self.figure {
            ChartFigure::Memory => {
                let thousand = if units::is_decimal(self.memory_limit) { 1e3 } else { 1024f64 };
                thousand.powf((self.y.most.max(1.0).ln() / thousand.ln()).floor())
            }
            _ => 1.0,
        };
        let scaled = Scale { least: self.y.least / unit, most: self.y.most / unit, ..self.y };
        scaled.ticks(most).into_iter().map(|tick| tick * unit).collect()
    }

    /// Values for the axis along the chart, at most `most`. They are the points' values, thinned evenly so that the
    /// roundest stay; with very many points, round values instead.
    pub fn x_ticks(&self, most: usize) -> Vec<f64> {
        let (count, most) = (self.places.len(), most.max(2));
        if let Some(doubles) = self.doubles(most) {
            return doubles;
        }
        if count <= most {
            return self.places.clone();
        }
        if count > MANY * most && !matches!(self.along, ChartAxis::Workloads(_)) {
            return self.x.ticks(most);
        }
        let digits: Vec<usize> =
            self.places.iter().map(|&x| significant(&self.show_x(x), self.x.logarithmic)).collect();
        let least = count.div_ceil(most);
        let thinned = |step: usize, first: usize| (first..count).step_by(step);
        let all = (least..=2 * least).flat_map(|step| (0..step).map(move |first| (step, first)));
        let fitting = all.filter(|&(step, first)| (2..=most).contains(&thinned(step, first).count()));
        // Fewest digits on average, but not with too few values.
        let worth = |&(step, first): &(usize, usize)| {
            let (sum, values) = thinned(step, first).fold((0, 0), |(sum, n), at| (sum + digits[at], n + 1));
            ((sum + 1) * count * count / values, count - values)
        };
        let (step, first) = fitting.min_by_key(worth).unwrap_or((least, 0));
        thinned(step, first).map(|at| self.places[at]).collect()
    }
}

impl Chart {
    /// Powers of two for counts on a logarithmic axis: 45 devices would be an unusual label.
    fn doubles(&self, most: usize) -> Option<Vec<f64>> {
        let counted = match self.along {
            ChartAxis::Limit(kind) => kind.is_count(),
            ChartAxis::Option(_) | ChartAxis::Workloads(_) => false,
        };
        // Unusual values, such as 1920 and its doubles, are what the user requested.
        let round = |&x: &f64| x > 0.0 && x.log2().fract() == 0.0;
        let fitting = self.x.logarithmic && self.places.iter().filter(|x| round(x)).count() >= 3;
        if !counted || !fitting {
            return None;
        }
        let (first, last) = (self.x.least.log2().ceil() as i32, self.x.most.log2().floor() as i32);
        let step = ((last - first + 1) as usize).div_ceil(most).max(1);
        let all: Vec<f64> = (first..=last).step_by(step).map(|e| 2f64.powi(e)).collect();
        (all.len() >= 2).then_some(all)
    }
}

/// Ratio of points to labels above which points are no longer thinned.
const MANY: usize = 6;

/// Significant digits of a shown value; on a logarithmic axis a power of two counts as one digit.
fn significant(shown: &str, factors: bool) -> usize {
    let end = shown.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(shown.len());
    if factors && shown[..end].parse().is_ok_and(u32::is_power_of_two) {
        return 1;
    }
    let whole: String = shown[..end].chars().filter(|c| *c != '.').collect();
    let digits = whole.trim_start_matches('0');
    if shown[..end].contains('.') { digits.len() } else { digits.trim_end_matches('0').len() }
}

/// Label that identifies a point's line: those of planner, second axis and workload that vary.
fn label(sweep: &Sweep, place: usize, workload_told: bool) -> String {
    let point = &sweep.points[place];
    let mut parts = vec![];
    let label = &sweep.series[point.series].label;
    if sweep.series.iter().any(|series| series.label != *label) {
        parts.push(label.clone());
    }
    if let Some(&kind) = sweep.axes.get(usize::from(sweep.along.is_none())) {
        let value = kind.format(point.limits.get(kind));
        parts.push(if value.bytes().all(|b| b.is_ascii_digit()) { format!("{value} {}", kind.label()) } else { value });
    }
    if workload_told && sweep.workloads.len() > 1 {
        parts.push(sweep.workload_label(point.workload));
    }
    if parts.is_empty() { label.clone() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_at_least_two() {
        for (least, most, logarithmic, room) in [
            (15.66, 91.27, false, 3),
            (15.66, 91.27, true, 3),
            (0.9, 1.1, false, 2),
            (3.0, 40.0, true, 2),
            (0.0, 7.0, false, 5),
        ] {
            let scale = Scale { least, most, logarithmic };
            let ticks = scale.ticks(room);
            assert!(ticks.len() >= 2 && ticks.windows(2).all(|pair| pair[0] < pair[1]), "{scale:?}: {ticks:?}");
            for tick in ticks {
                let digits = format!("{tick:.3e}");
                let mantissa = digits.split('e').next().unwrap().trim_end_matches('0').trim_end_matches('.');
                assert!(mantissa.len() <= 3 && (least..=most).contains(&tick), "{scale:?}: {tick}");
            }
        }
    }
}
