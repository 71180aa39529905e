//! The Sweep view's state: which limit, which lines, what is answered so far, and where the cursor is.
//!
//! A sweep begins when the view is opened or a key is pressed, never by itself, and runs on threads of its own. It belongs to
//! the workload, planner, options and limits it was begun with; when those change it ends, and what it found stays to be
//! seen, marked as old. The limit it runs along is not one of them: taking a value from the chart leaves the chart as it is.

use std::{sync::Arc, thread, time::Duration};

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use crate::{
    cluster::LimitKind,
    planner::{self, OptionKind, OptionSpec, OptionValue, Options, Problem, Search},
    study::{
        explain::limits_of,
        sweep::{
            Answer, Figure, Point, Series, Sweep, Values,
            around::{Reach, around},
            chart::{Chart, Line, Mark, Scale},
            run,
        },
    },
    tui::{
        action::Action,
        model::{Model, Tone, View},
        overlay::Overlay,
        studies::{Finding, StudyKind},
        update::{Effects, moved},
    },
    workload::Workload,
};

/// The longest that one point may take: planners that improve a plan for minutes would keep the others waiting.
const PATIENCE: Duration = Duration::from_secs(5);

/// Values of a second limit at the most, and values that may be typed.
const MOST_UP: usize = 9;
const MOST_TYPED: usize = 400;

/// What a sweep was begun with.
#[derive(Debug, Clone)]
struct Basis {
    workload: Arc<Workload>,
    planner: usize,
    options: Options,
    /// With the limit along the chart left out.
    limits: crate::cluster::Limits,
    seed: u64,
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.workload, &other.workload)
            && (self.planner, &self.options, &self.limits, self.seed)
                == (other.planner, &other.options, &other.limits, other.seed)
    }
}

/// A sweep with its answers so far.
#[derive(Debug)]
pub(in crate::tui) struct Swept {
    basis: Basis,
    /// Along which limit.
    pub(in crate::tui) kind: LimitKind,
    /// The limit up the map, where there are two.
    pub(in crate::tui) second: Option<LimitKind>,
    /// What is asked.
    pub(in crate::tui) sweep: Arc<Sweep>,
    /// What is answered, as the points lie.
    pub(in crate::tui) answers: Vec<Option<Answer>>,
    /// The answers as lines.
    pub(in crate::tui) chart: Chart,
}

/// The state of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct SweepState {
    /// The sweep that is shown.
    pub(in crate::tui) swept: Option<Swept>,
    /// Along which of the planner's limits.
    axis: usize,
    /// How close the values of the limit lie.
    reach: Reach,
    /// Values that were typed, in place of those around the one in force.
    typed: Option<Values>,
    /// How many places further in the list of the planner's limits the second one is; 0: there is none.
    second: usize,
    /// Which axes are logarithmic against what their values suggest: 0 none, 1 that of the figure, 2 both, 3 that along.
    scales: u8,
    /// Which set of lines.
    lines: usize,
    /// What is drawn of the plans, by place in [`Figure::ALL`].
    figure: usize,
    /// Whether the sweep ended before its last point because something at the left was changed.
    cut_short: bool,
    /// The place along the chart that is read.
    pub(in crate::tui) cursor: usize,
    /// The line that is read.
    pub(in crate::tui) line: usize,
}

impl Swept {
    /// The line and the mark under the cursor, if that point is answered.
    pub(in crate::tui) fn read(&self, line: usize, place: usize) -> Option<(&Line, &Mark, &Answer)> {
        let line = self.chart.lines.get(line)?;
        let x = *self.chart.places.get(place)?;
        let mark = line.marks.iter().find(|mark| mark.x == x)?;
        Some((line, mark, self.answers[mark.place].as_ref()?))
    }

    /// Whether the planner of a line heeds the limit along the chart.
    pub(in crate::tui) fn heeds(&self, line: usize) -> bool {
        let label = self.chart.lines.get(line).map(|line| &line.label);
        let series = self.sweep.series.iter().position(|series| Some(&series.label) == label);
        // A single line is not called after its series: the limit is one of its planner's then.
        series.is_none_or(|series| self.sweep.heeds(series, self.kind))
    }

    /// Whether the limit along is something that work is spread over.
    pub(in crate::tui) fn scales(&self) -> bool {
        self.kind == LimitKind::Devices && self.second.is_none()
    }

    /// The axis of the figure.
    pub(in crate::tui) fn y_scale(&self) -> &Scale {
        &self.chart.y
    }

    /// What a plan must be worth to be as good as the one that is shown.
    pub(in crate::tui) fn goal(&self, model: &Model) -> Option<f64> {
        let shown = model.shown.as_ref()?.score.as_ref().filter(|score| score.is_valid())?;
        let objective = self.chart.objective.as_ref()?;
        (shown.measure.name() == objective.0).then_some(shown.value)
    }

    /// Points answered, and all.
    pub(in crate::tui) fn counts(&self) -> (usize, usize) {
        (self.answers.iter().flatten().count(), self.answers.len())
    }
}

/// What the lines of a chart are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lines {
    /// The planner in force.
    One,
    /// Every planner with its objective.
    Planners,
    /// The planner in force with each value of an option.
    Option(&'static OptionSpec),
}

impl Model {
    /// The limit along the chart: one that the planner heeds.
    pub(in crate::tui) fn sweep_axis(&self) -> LimitKind {
        let kinds = self.sweep_axes();
        kinds[self.views.sweep.axis % kinds.len()]
    }

    fn sweep_axes(&self) -> &'static [LimitKind] {
        limits_of(self.current_planner(), &self.workload)
    }

    fn lines(&self) -> Lines {
        let sets = self.line_sets();
        sets[self.views.sweep.lines % sets.len()]
    }

    fn line_sets(&self) -> Vec<Lines> {
        let few = |spec: &&OptionSpec| matches!(spec.kind, OptionKind::Flag { .. } | OptionKind::Choice { .. });
        let options = self.specs().iter().filter(few).map(Lines::Option);
        [Lines::One, Lines::Planners].into_iter().chain(options).collect()
    }

    /// A range as one might type it for the limit along the chart.
    pub(in crate::tui) fn sweep_range_example(&self) -> &'static str {
        self.sweep_axis().example_of_range()
    }

    /// What the lines are, for people.
    pub(in crate::tui) fn lines_title(&self) -> String {
        match self.lines() {
            Lines::One => self.current_planner().info().name.to_string(),
            Lines::Planners => "every planner".into(),
            Lines::Option(spec) => format!("{} by {}", self.current_planner().info().name, spec.label),
        }
    }

    /// The limit up the map, if one is asked for.
    fn sweep_second(&self) -> Option<LimitKind> {
        let kinds = self.sweep_axes();
        let place = self.views.sweep.second % kinds.len();
        (place > 0).then(|| kinds[(self.views.sweep.axis + place) % kinds.len()])
    }

    fn basis(&self, kind: LimitKind, second: Option<LimitKind>) -> Basis {
        Basis {
            workload: self.workload.clone(),
            planner: self.planner,
            options: self.options[self.planner].clone(),
            limits: second.map_or_else(|| self.limits.clone(), |second| self.limits.with(second, 1.0)).with(kind, 1.0),
            seed: self.seed,
        }
    }

    /// Whether what the view shows belongs to something else than what stands at the left.
    pub(in crate::tui) fn sweep_stale(&self) -> bool {
        self.views.sweep.swept.as_ref().is_some_and(|swept| swept.basis != self.basis(swept.kind, swept.second))
    }

    /// Something at the left was changed: ends a sweep of what no longer stands there, and goes on with one that stands
    /// there again.
    pub(in crate::tui) fn sweep_outdated(&mut self) -> Effects {
        if self.sweep_stale() {
            self.views.sweep.cut_short |= self.studying(StudyKind::Sweep);
            self.cancel_study(StudyKind::Sweep);
        } else if self.view == View::Sweep {
            return self.go_on();
        }
        vec![]
    }

    /// The view is opened: a sweep that is there stays, or goes on where a change had ended it, else one begins.
    pub(in crate::tui) fn open_sweep(&mut self) -> Effects {
        if self.views.sweep.swept.is_some() && !self.sweep_stale() { self.go_on() } else { self.begin_sweep() }
    }

    /// Answers what is still open of a sweep that a change at the left had ended.
    fn go_on(&mut self) -> Effects {
        let Some(swept) = self.views.sweep.swept.as_ref().filter(|_| self.views.sweep.cut_short) else { return vec![] };
        let open: Vec<usize> = (0..swept.answers.len()).filter(|&place| swept.answers[place].is_none()).collect();
        let sweep = Arc::clone(&swept.sweep);
        self.views.sweep.cut_short = false;
        vec![self.begin_study(StudyKind::Sweep, Box::new(move |search, found| answer(&sweep, &open, search, found)))]
    }

    /// Stops the sweep that is under way; tells whether there was one.
    pub(in crate::tui) fn stop_sweep(&mut self) -> bool {
        let studying = self.studying(StudyKind::Sweep);
        self.cancel_study(StudyKind::Sweep);
        studying
    }

    /// Does an action of the view.
    pub(in crate::tui) fn act_in_sweep(&mut self, action: Action) -> Effects {
        let last = self.views.sweep.swept.as_ref().map_or(0, |swept| swept.chart.places.len()).saturating_sub(1);
        let lines = self.views.sweep.swept.as_ref().map_or(0, |swept| swept.chart.lines.len());
        let (axes, sets) = (self.sweep_axes().len(), self.line_sets().len());
        let state = &mut self.views.sweep;
        match action {
            Action::CursorLeft => state.cursor = state.cursor.saturating_sub(1),
            Action::CursorRight => state.cursor = (state.cursor + 1).min(last),
            Action::SweepAxis => {
                state.axis = (state.axis + 1) % axes;
                state.typed = None;
                return self.begin_sweep();
            }
            Action::SweepLines => {
                state.lines = (state.lines + 1) % sets;
                return self.begin_sweep();
            }
            Action::SweepFiner | Action::SweepWider => {
                let Some(reach) = state.reach.moved(action == Action::SweepFiner) else { return vec![] };
                state.reach = reach;
                state.typed = None;
                return self.begin_sweep();
            }
            Action::SweepSecond => {
                state.second = (state.second + 1) % axes;
                return self.begin_sweep();
            }
            Action::SweepScales => {
                state.scales = (state.scales + 1) % 4;
                self.draw_sweep_anew();
                self.tell_scales();
            }
            Action::SweepFigure => {
                state.figure = (state.figure + 1) % Figure::ALL.len();
                self.draw_sweep_anew();
                let title = self.views.sweep.swept.as_ref().map(|swept| swept.chart.y_title()).unwrap_or_default();
                self.message = Some((Tone::Done, format!("drawn: {title}")));
            }
            Action::SweepRange => {
                self.overlay = Some(Overlay::Range(Input::default()));
            }
            Action::SweepAgain => return self.begin_sweep(),
            Action::TakePoint => return self.take_place(),
            // The second limit grows upwards.
            Action::Up if state.second > 0 => state.line = (state.line + 1).min(lines.saturating_sub(1)),
            Action::Down if state.second > 0 => state.line = state.line.saturating_sub(1),
            _ => state.line = moved(state.line, action, lines),
        }
        vec![]
    }

    /// Sets the limit to the value under the cursor.
    fn take_place(&mut self) -> Effects {
        let Some(swept) = &self.views.sweep.swept else { return vec![] };
        let Some(&value) = swept.chart.places.get(self.views.sweep.cursor) else { return vec![] };
        let (kind, second) = (swept.kind, swept.second);
        let other = swept.chart.lines.get(self.views.sweep.line).and_then(|line| line.marks.first());
        let other = other.and_then(|mark| Some((second?, swept.sweep.points[mark.place].limits.clone())));
        if let Some((second, limits)) = other {
            let (along, up) = (kind.counted(value), second.counted(limits.get(second)));
            self.message = Some((Tone::Done, format!("{along}, {up}")));
            return self.set_limits(self.limits.with(kind, value).with(second, limits.get(second)));
        }
        self.message = Some((Tone::Done, format!("{} {}", kind.label(), kind.format(value))));
        self.set_limits(self.limits.with(kind, value))
    }

    fn begin_sweep(&mut self) -> Effects {
        if let Some(reason) = &self.refusals[self.planner] {
            self.message = Some((Tone::Refused, reason.clone()));
            return vec![];
        }
        let kind = self.sweep_axis();
        let second = self.sweep_second();
        let typed = self.views.sweep.typed.as_ref().filter(|typed| typed.kind == kind);
        let values = typed
            .map_or_else(|| around(kind, self.limits.get(kind), self.views.sweep.reach), |typed| typed.values.clone());
        let mut series = self.series();
        if second.is_some() {
            // A map has one value in a cell.
            series.truncate(1);
        }
        let mut points = vec![];
        let ups = second.map_or_else(|| vec![None], |second| self.up_the_map(second).into_iter().map(Some).collect());
        for up in ups {
            let limits =
                second.zip(up).map_or_else(|| self.limits.clone(), |(second, up)| self.limits.with(second, up));
            for &value in &values {
                let limits = limits.with(kind, value);
                points.extend((0..series.len()).map(|series| Point { workload: 0, series, limits: limits.clone() }));
            }
        }
        let sweep = Sweep {
            workloads: vec![self.workload.clone()],
            series,
            along: None,
            axes: std::iter::once(kind).chain(second).collect(),
            points,
            alone: false,
        };
        let answers = vec![None; sweep.points.len()];
        let all: Vec<usize> = (0..sweep.points.len()).collect();
        let chart = Chart::new(&sweep, &answers, Figure::Objective);
        self.views.sweep.cursor =
            values.iter().position(|value| *value == self.limits.get(kind)).unwrap_or(values.len() / 2);
        let now = second.map(|second| second.format(self.limits.get(second)));
        let named = |label: &String| now.as_ref().is_some_and(|now| label.contains(now.as_str()));
        self.views.sweep.line = chart.lines.iter().position(|line| named(&line.label)).unwrap_or(0);
        self.views.sweep.cut_short = false;
        let sweep = Arc::new(sweep);
        let basis = self.basis(kind, second);
        self.views.sweep.swept = Some(Swept { basis, kind, second, sweep: Arc::clone(&sweep), answers, chart });
        self.draw_sweep_anew();
        vec![self.begin_study(StudyKind::Sweep, Box::new(move |search, found| answer(&sweep, &all, search, found)))]
    }

    /// The planners and settings that are lines.
    fn series(&self) -> Vec<Series> {
        let planner = self.current_planner();
        let own = || self.options[self.planner].clone();
        match self.lines() {
            Lines::One => vec![Series { label: planner.info().name.into(), ..Series::new(planner, own()) }],
            Lines::Planners => (0..self.planners.len())
                .filter(|&i| self.refusals[i].is_none() && (self.stands_alone(i) || i == self.planner))
                .filter(|&i| self.objective_of(i) == self.objective_of(self.planner))
                .filter(|&i| {
                    let (workload, limits, options) =
                        (self.workload.clone(), self.limits.clone(), self.options[i].clone());
                    self.planners[i].check_options(&Problem { workload, limits, options }).is_ok()
                })
                .map(|i| Series {
                    label: self.planners[i].info().name.into(),
                    ..Series::new(self.planners[i], self.options[i].clone())
                })
                .collect(),
            Lines::Option(spec) => {
                let line = |value: OptionValue| {
                    let mut options = own();
                    let label = format!("{} {}", spec.label, value.text());
                    options.set(spec.name, value);
                    Series { label, planner, options, wiring: None }
                };
                match spec.kind {
                    OptionKind::Choice { choices, .. } => {
                        choices.iter().map(|choice| line(OptionValue::Choice(choice.0))).collect()
                    }
                    _ => [true, false].map(|flag| line(OptionValue::Flag(flag))).to_vec(),
                }
            }
        }
    }

    fn take_answer(&mut self, place: usize, answer: Answer) {
        let Some(swept) = &mut self.views.sweep.swept else { return };
        swept.answers[place] = Some(answer);
        self.draw_sweep_anew();
    }

    /// Makes the chart of what is answered, with the axes that were asked for.
    fn draw_sweep_anew(&mut self) {
        let (scales, figure) = (self.views.sweep.scales, Figure::ALL[self.views.sweep.figure]);
        let Some(swept) = &mut self.views.sweep.swept else { return };
        swept.chart = Chart::new(&swept.sweep, &swept.answers, figure);
        let turned = |scale: &mut Scale| scale.logarithmic = !scale.logarithmic && scale.least > 0.0;
        if matches!(scales, 1 | 2) {
            turned(&mut swept.chart.y);
        }
        if matches!(scales, 2 | 3) {
            turned(&mut swept.chart.x);
        }
    }

    fn tell_scales(&mut self) {
        let Some(swept) = &self.views.sweep.swept else { return };
        let word = |scale: &Scale| if scale.logarithmic { "logarithmic" } else { "linear" };
        let (chart, title) = (&swept.chart, swept.chart.y_title());
        let text = format!("{} {}, {title} {}", chart.x_title(), word(&chart.x), word(&chart.y));
        self.message = Some((Tone::Done, text));
    }

    /// Values of the second limit: fewer than along, so that cells are seen.
    fn up_the_map(&self, kind: LimitKind) -> Vec<f64> {
        let all = around(kind, self.limits.get(kind), Reach::Wide);
        let now = self.limits.get(kind);
        let at = all.iter().position(|value| *value == now).unwrap_or(all.len() / 2);
        let step = all.len().div_ceil(MOST_UP).max(1);
        (0..all.len()).filter(|place| place.abs_diff(at).is_multiple_of(step)).map(|place| all[place]).collect()
    }

    /// A key while a range is typed.
    pub(in crate::tui) fn key_in_range(&mut self, mut input: Input, key: &KeyEvent) -> Effects {
        if key.code != KeyCode::Enter {
            input.handle_event(&Event::Key(*key));
            self.overlay = Some(Overlay::Range(input));
            return vec![];
        }
        let kind = self.sweep_axis();
        match Values::parse(kind, input.value()) {
            Ok(values) if values.values.len() <= MOST_TYPED => {
                self.views.sweep.typed = Some(values);
                self.begin_sweep()
            }
            Ok(values) => {
                let text = format!("{} values are more than {MOST_TYPED}; take larger steps", values.values.len());
                self.message = Some((Tone::Refused, text));
                vec![]
            }
            Err(error) => {
                self.message = Some((Tone::Refused, error));
                self.overlay = Some(Overlay::Range(input));
                vec![]
            }
        }
    }
}

/// Answers the points on half of the cores, so that the other half plans what is changed meanwhile.
fn answer(sweep: &Sweep, wanted: &[usize], search: &Search, found: &mut dyn FnMut(Finding)) {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let threads = thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(planner::STACK_BYTES).build();
    thread::scope(|scope| {
        scope.spawn(move || {
            // A send fails only when nobody waits any more.
            let run = || {
                run::run(sweep, wanted, Some(PATIENCE), search, &|place, answer| drop(sender.send((place, answer))));
            };
            // Where the system gives no threads those of the other planners do.
            match &pool {
                Ok(pool) => pool.install(run),
                Err(_) => run(),
            }
        });
        for (place, answer) in receiver {
            found(Box::new(move |model: &mut Model| model.take_answer(place, answer)));
        }
    });
}
