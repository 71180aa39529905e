//! Actions of Sweep, and start, continuation and end of a sweep.

use std::{collections::BTreeSet, sync::Arc, thread, time::Duration};

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use super::state::{Lines, Swept};
use crate::{
    cluster::LimitKind,
    family::kinds::KindCount,
    planner::{self, OptionKind, OptionValue, Problem, Search},
    study::sweep::{
        ChartFigure, LimitValues, PointResult, Series, Sweep, SweepPoint,
        around::values_around,
        chart::{Chart, Scale},
        run,
    },
    tui::{
        action::Action,
        effect::Effects,
        model::{Model, Planning, Tone, View},
        overlay::Overlay,
        studies::StudyKind,
        study_job::Finding,
        widget::list::moved,
    },
};

/// Time limit of one point. Planners that improve a plan for minutes would delay the others.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of typed values.
const MOST_TYPED: usize = 400;

impl Planning {
    /// Stops the running sweep. Returns true if there was one.
    pub(in crate::tui) fn stop_sweep(&mut self) -> bool {
        let studying = self.studying(StudyKind::Sweep);
        self.cancel_study(StudyKind::Sweep);
        studying
    }
}

impl Model {
    /// Handles a change at the left: stops an outdated sweep, and continues one whose inputs are in force again.
    pub(in crate::tui) fn sweep_outdated(&mut self) -> Effects {
        if self.sweep_stale() {
            self.views.sweep.cut_short |= self.planning.studying(StudyKind::Sweep);
            self.planning.cancel_study(StudyKind::Sweep);
        } else if self.view == View::Sweep {
            return self.go_on();
        }
        vec![]
    }

    /// Opens the view: keeps an up-to-date sweep, or continues it if a change stopped it. Otherwise starts one.
    pub(in crate::tui) fn open_sweep(&mut self) -> Effects {
        if self.views.sweep.swept.is_some() && !self.sweep_stale() { self.go_on() } else { self.begin_sweep() }
    }

    /// Computes the missing points of a sweep that a change at the left stopped.
    fn go_on(&mut self) -> Effects {
        let Some(swept) = self.views.sweep.swept.as_ref().filter(|_| self.views.sweep.cut_short) else { return vec![] };
        let open: Vec<usize> = (0..swept.answers.len()).filter(|&place| swept.answers[place].is_none()).collect();
        let sweep = Arc::clone(&swept.sweep);
        self.views.sweep.cut_short = false;
        vec![self.begin_study(StudyKind::Sweep, Box::new(move |search, found| answer(&sweep, &open, search, found)))]
    }

    /// Performs an action of the view.
    pub(in crate::tui) fn act_in_sweep(&mut self, action: Action) -> Effects {
        let last = self.views.sweep.swept.as_ref().map_or(0, |swept| swept.chart.places.len()).saturating_sub(1);
        let lines = self.views.sweep.swept.as_ref().map_or(0, |swept| swept.chart.lines.len());
        let (axes, sets) = (self.session.sweep_axes().len(), self.session.line_sets().len());
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
                self.draw_what_all_tell();
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
                // The cost is the last one, and only kinds with prices have it.
                let priced = KindCount::have_prices(&KindCount::of(&self.session.workload));
                state.figure = (state.figure + 1) % (ChartFigure::ALL.len() - usize::from(!priced));
                self.draw_sweep_anew();
                let title = self.views.sweep.swept.as_ref().map(|swept| swept.chart.y_title()).unwrap_or_default();
                self.message = Some((Tone::Done, format!("drawn: {title}")));
            }
            Action::SweepRange => {
                self.overlay = Some(Overlay::Range(Input::default()));
            }
            Action::SweepAgain => return self.begin_sweep(),
            Action::TakePoint => return self.take_place(),
            // The second limit increases upwards.
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
            return self.set_limits(self.session.limits.with(kind, value).with(second, limits.get(second)));
        }
        self.message = Some((Tone::Done, format!("{} {}", kind.label(), kind.format(value))));
        self.set_limits(self.session.limits.with(kind, value))
    }

    /// Values around the one in force; of a model's devices whole machines, or a power of two below one machine.
    fn swept_values(&self, kind: LimitKind) -> Vec<f64> {
        let now = self.session.limits.get(kind);
        let mut values = values_around(kind, now, self.views.sweep.reach);
        if let Some(machine) = self.machine().filter(|_| kind == LimitKind::Devices) {
            let rented = |value: f64| value % machine == 0.0 || (value < machine && value.log2().fract() == 0.0);
            #[allow(clippy::float_cmp, reason = "the value in force stays")]
            values.retain(|&value| value == now || rented(value));
        }
        values
    }

    fn begin_sweep(&mut self) -> Effects {
        if let Some(reason) = &self.session.refusals[self.session.planner] {
            self.message = Some((Tone::Refused, reason.clone()));
            return vec![];
        }
        let kind = self.sweep_axis();
        let second = self.sweep_second();
        let typed = self.views.sweep.typed.as_ref().filter(|typed| typed.kind == kind);
        let values = typed.map_or_else(|| self.swept_values(kind), |typed| typed.values.clone());
        let mut series = self.series();
        if second.is_some() {
            // A cell of a map has one value.
            series.truncate(1);
        }
        let mut points = vec![];
        let ups =
            second.map_or_else(|| vec![None], |second| self.session.up_the_map(second).into_iter().map(Some).collect());
        for up in ups {
            let limits = second
                .zip(up)
                .map_or_else(|| self.session.limits.clone(), |(second, up)| self.session.limits.with(second, up));
            for &value in &values {
                let limits = limits.with(kind, value);
                points.extend((0..series.len()).map(|series| SweepPoint {
                    workload: 0,
                    series,
                    limits: limits.clone(),
                }));
            }
        }
        let sweep = Sweep {
            workloads: vec![self.session.workload.clone()],
            series,
            along: None,
            axes: std::iter::once(kind).chain(second).collect(),
            points,
            alone: false,
        };
        let answers = vec![None; sweep.points.len()];
        let all: Vec<usize> = (0..sweep.points.len()).collect();
        let chart = Chart::new(&sweep, &answers, ChartFigure::ALL[self.views.sweep.figure]);
        self.views.sweep.cursor =
            values.iter().position(|value| *value == self.session.limits.get(kind)).unwrap_or(values.len() / 2);
        let now = second.map(|second| second.format(self.session.limits.get(second)));
        let named = |label: &String| now.as_ref().is_some_and(|now| label.contains(now.as_str()));
        self.views.sweep.line = chart.lines.iter().position(|line| named(&line.label)).unwrap_or(0);
        self.views.sweep.cut_short = false;
        let sweep = Arc::new(sweep);
        let basis = self.session.basis(kind, second);
        self.views.sweep.swept = Some(Swept { basis, kind, second, sweep: Arc::clone(&sweep), answers, chart });
        self.draw_sweep_anew();
        vec![self.begin_study(StudyKind::Sweep, Box::new(move |search, found| answer(&sweep, &all, search, found)))]
    }

    /// Draws iteration times if the lines have objectives of different units.
    fn draw_what_all_tell(&mut self) {
        let objectives = self.session.lines_of_planners().into_iter().map(|i| self.session.objective_of(i));
        let mixed = objectives.collect::<BTreeSet<_>>().len() > 1 && matches!(self.lines(), Lines::Planners);
        if mixed && ChartFigure::ALL[self.views.sweep.figure] == ChartFigure::Objective {
            let iteration = ChartFigure::ALL.iter().position(|figure| *figure == ChartFigure::Iteration);
            self.views.sweep.figure = iteration.unwrap_or(0);
        }
    }

    /// Planners and settings of the lines.
    fn series(&self) -> Vec<Series> {
        let planner = self.session.current_planner();
        let own = || self.session.options[self.session.planner].clone();
        match self.lines() {
            Lines::One => vec![Series { label: planner.info().name.into(), ..Series::new(planner, own()) }],
            Lines::Planners => (self.session.lines_of_planners().into_iter())
                .filter(|&i| {
                    let (workload, limits, options) =
                        (self.session.workload.clone(), self.session.limits.clone(), self.session.options[i].clone());
                    self.session.planners[i].check_options(&Problem { workload, limits, options }).is_ok()
                })
                .map(|i| Series {
                    label: self.session.planners[i].info().name.into(),
                    ..Series::new(self.session.planners[i], self.session.options[i].clone())
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

    fn take_answer(&mut self, place: usize, answer: PointResult) {
        let Some(swept) = &mut self.views.sweep.swept else { return };
        swept.answers[place] = Some(answer);
        self.draw_sweep_anew();
    }

    /// Rebuilds the chart from the results, with the chosen axes.
    fn draw_sweep_anew(&mut self) {
        let (scales, figure) = (self.views.sweep.scales, ChartFigure::ALL[self.views.sweep.figure]);
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

    /// Handles a key while a range is typed.
    pub(in crate::tui) fn key_in_range(&mut self, mut input: Input, key: &KeyEvent) -> Effects {
        if key.code != KeyCode::Enter {
            input.handle_event(&Event::Key(*key));
            self.overlay = Some(Overlay::Range(input));
            return vec![];
        }
        let kind = self.sweep_axis();
        match LimitValues::parse(kind, input.value()) {
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

/// Computes the points on half of the cores. The other half stays free for planning.
fn answer(sweep: &Sweep, wanted: &[usize], search: &Search, found: &mut dyn FnMut(Finding)) {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let threads = thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(planner::STACK_BYTES).build();
    thread::scope(|scope| {
        scope.spawn(move || {
            // A send fails only without a receiver.
            let run = || {
                run::run(sweep, wanted, Some(PATIENCE), search, &|place, answer| drop(sender.send((place, answer))));
            };
            // If the system provides no threads, use those of the other planners.
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
