//! State of the screen; changed only by [`super::update`].

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ratatui::layout::Rect;

pub use super::place::{Focus, View};
pub(super) use super::place::{Hit, Tone};
use super::{
    ScreenError, ScreenRequest,
    adjust::Editing,
    changes::Changes,
    convergence::Convergence,
    demo::Demo,
    edits::Edits,
    incumbent::Looked,
    keymap::Keymap,
    overlay::Overlay,
    panel_rows::PanelRow,
    playing::Playing,
    recent::Recent,
    session::Asked,
    shown::ShownRun,
    simulated::Simulated,
    studies::Studies,
    theme::{self, Depth, Theme},
    views::Views,
    would_help::WouldHelp,
};
use crate::{
    cluster::{GivenLimits, LimitKind, Limits},
    family::{
        self,
        dial::{self, Dial},
    },
    plan::Measure,
    planner::{OptionSpec, Options, Planner, Problem, Search},
    simulate::{Asked as AskedFor, Schedule, Setup, SimulatorSettings},
    tui::frame::SMALLEST,
    workload::{Workload, lint},
};

/// Running job.
#[derive(Debug, Clone)]
pub(super) struct Running {
    /// Number of the job.
    pub job: u64,
    /// Search to read its progress from.
    pub search: Search,
    /// Time of the first request; earlier than `begun` if the job replaced one without a result.
    pub since: Instant,
    /// Start of this job.
    pub begun: Instant,
    /// True while waiting for a plan.
    pub planning: bool,
}

/// Delay before the screen shows that it is planning, so that quick plans do not flicker.
pub(super) const PATIENCE: Duration = Duration::from_millis(80);

/// Minimum duration of a search whose course is shown.
pub(super) const LONG: Duration = Duration::from_millis(400);

/// Whole state.
pub(super) struct Model {
    /// Workload to plan.
    pub workload: Arc<Workload>,
    /// Available planners.
    pub planners: &'static [&'static dyn Planner],
    /// Reason why a planner cannot plan this workload, by planner.
    pub(crate) refusals: Vec<Option<String>>,
    /// True for planners that need no conversion of the workload, by planner. Cached, because every frame needs it.
    natives: Vec<bool>,
    /// Index of the planner in force.
    pub planner: usize,
    /// Last planner used for each objective, for this workload.
    pub last_for: Vec<(&'static str, usize)>,
    /// Limits in force.
    pub limits: Limits,
    /// Initial limits.
    pub first_limits: Limits,
    /// Limits from the command line.
    pub asked_limits: GivenLimits,
    /// Dials of the workload.
    pub dials: Vec<Dial>,
    /// Initial dials.
    pub first_dials: Vec<Dial>,
    /// Dials set on the command line.
    pub dials_asked: Vec<String>,
    /// The workload as in its file, and as requested.
    pub asked: (Arc<Workload>, Arc<Workload>),
    /// Limits for a workload that does not state its own.
    pub defaults: GivenLimits,
    /// Options, by planner.
    pub options: Vec<Options>,
    /// Seed of every search.
    pub seed: u64,
    /// Time limit of a plan.
    pub deadline: Option<Duration>,

    /// Shown view.
    pub view: View,
    /// Part that receives the arrow keys.
    pub focus: Focus,
    /// True if the left panel is folded; `None`: depends on the width.
    pub folded: Option<bool>,
    /// Selected row of the left panel.
    pub panel_cursor: usize,
    /// True if planners that cannot plan this workload are listed.
    pub others_unfolded: bool,
    /// Value being typed.
    pub editing: Option<Editing>,
    /// Open overlay.
    pub overlay: Option<Overlay>,
    /// Last message, until the next key.
    pub message: Option<(Tone, String)>,

    /// Schedule and settings of the simulator.
    pub setup: Setup,
    /// Initial settings of the simulator.
    pub first_settings: SimulatorSettings,
    /// Last result.
    pub shown: Option<Arc<ShownRun>>,
    /// Edits by hand of its plan.
    pub edits: Edits,
    /// Timeline of its plan.
    pub simulated: Option<Arc<Simulated>>,
    /// Running job.
    pub running: Option<Running>,
    /// Last incumbent taken from it.
    pub looked: Option<Looked>,
    /// Course of the last search.
    pub convergence: Convergence,
    /// True if that course is shown.
    pub chart: bool,
    /// Reason why the chosen planner cannot plan this workload.
    pub refusal: Option<String>,
    /// True if the last run was stopped before it had a plan.
    pub stopped: bool,
    /// Incremented whenever the data that trees are built from changes.
    pub generation: u64,
    /// Number of jobs so far.
    pub jobs: u64,
    /// Studies that run beside planning.
    pub studies: Studies,
    /// Suggestions of limits and options to change.
    pub would_help: WouldHelp,

    /// State of each view.
    pub views: Views,
    /// Playback of the simulated iteration.
    pub playing: Playing,
    /// Effect of the last change.
    pub changes: Changes,

    /// Lint findings of the workload.
    pub(crate) findings: Vec<lint::Finding>,

    /// Sessions of this and other workloads.
    pub recent: Recent,
    /// True to ignore them.
    pub fresh: bool,
    /// The tour, while it is running.
    pub demo: Option<Demo>,
    /// True if the workload's file is watched.
    pub watch: bool,
    /// Reads of the workload's file: number of requests, and the latest one accepted.
    pub readings: (u64, u64),
    /// Keys of each action.
    pub keymap: Keymap,
    /// Colours.
    pub theme: Theme,
    /// Colour depth.
    pub depth: Depth,
    /// Folder of the user's themes.
    pub theme_directory: Option<PathBuf>,
    /// True to draw with ASCII alone.
    pub ascii: bool,
    /// True to draw with the signs of the Linux console alone.
    pub console: bool,
    /// True once the screen has been large enough to show anything.
    pub seen: bool,
    /// Size of the screen at the last drawing, cells.
    pub size: (u16, u16),
    /// Current time, set by the loop.
    pub now: Instant,
    /// Clickable areas of the last drawing; later ones lie on top.
    pub hits: Vec<(Rect, Hit)>,
}

impl Model {
    /// Planner in force.
    pub(super) fn current_planner(&self) -> &'static dyn Planner {
        self.planners[self.planner]
    }

    /// Options that the planner in force declares.
    pub(super) fn specs(&self) -> &'static [OptionSpec] {
        self.current_planner().options()
    }

    /// True if a planner needs no conversion of this workload.
    pub(super) fn is_native(&self, planner: usize) -> bool {
        self.natives[planner]
    }

    /// True if a planner gets its own lines and answers in studies of all planners: it converts nothing and uses no
    /// other planner.
    pub(super) fn stands_alone(&self, planner: usize) -> bool {
        self.is_native(planner) && self.planners[planner].stands_alone()
    }

    /// True if the left panel is visible.
    pub(super) fn panel_visible(&self) -> bool {
        self.focus == Focus::Panel || !self.folded.unwrap_or(self.size.0 < 100)
    }

    /// True if the shown plan belongs to other limits than those at the left.
    pub(super) fn stale(&self) -> bool {
        if self.edited() || self.previewed().is_some() {
            return false;
        }
        self.stopped || self.refusal.is_some() || (self.planning_shown() && !self.best_so_far_shown())
    }

    /// True if the course of the search is visible.
    pub(super) fn convergence_shown(&self) -> bool {
        self.chart && self.view.room().uses().plan
    }

    /// Measure of plans of the planner in force.
    pub(super) fn measure(&self) -> Measure {
        self.current_planner().measure(&self.workload, &self.options[self.planner])
    }

    /// Name of a planner's objective for this workload: its own, or that of the workload's family if it converts.
    pub(super) fn objective_of(&self, planner: usize) -> &'static str {
        let (info, options) = (self.planners[planner].info(), &self.options[planner]);
        if self.is_native(planner) {
            info.objective
        } else {
            self.planners[planner].measure(&self.workload, options).name()
        }
    }

    /// True if planning has taken long enough to show it.
    pub(super) fn planning_shown(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|r| r.planning && (self.shown.is_none() || self.now.duration_since(r.since) >= PATIENCE))
    }
}

impl Model {
    /// Initial state.
    ///
    /// # Errors
    /// [`ScreenError`] for a request that cannot be met.
    // Long: every field once.
    pub(super) fn new(request: ScreenRequest) -> Result<Self, ScreenError> {
        let planner = request.planners.iter().position(|p| p.info().id == request.planner).ok_or_else(|| {
            let known: Vec<&str> = request.planners.iter().map(|p| p.info().id).collect();
            ScreenError::UnknownPlanner { asked: request.planner.clone(), known: known.join(", ") }
        })?;
        let mut options: Vec<Options> = request.planners.iter().map(|p| Options::defaults(p.options())).collect();
        options[planner] = Options::parse(
            &request.planner,
            request.planners[planner].options(),
            request.settings.iter().map(String::as_str),
        )?;
        let asked = Asked::by(&request);
        let recent = Recent::new(request.state_directory.clone());
        let (session, told) = match recent.session(&request.workload) {
            Ok(session) => (session.filter(|_| !request.fresh), None),
            Err(why) => (None, Some((Tone::Refused, why))),
        };
        let first_dials = dial::dials(&request.workload);
        let as_asked = (request.as_read, Arc::clone(&request.workload));
        let workload = match &session {
            Some(session) => session.turn(request.workload, &request.dials_asked),
            None => request.workload,
        };
        let kept =
            session.as_ref().map_or_else(|| request.overrides.clone(), |session| session.limits(&request.overrides));
        let unstated = request.defaults.unstated_by(&workload.limits);
        let limits = family::resolve(&workload, &kept.or(&unstated))
            .map_err(|missing| ScreenError::MissingLimit { name: workload.source.clone(), missing })?;
        let first_limits =
            family::resolve(&workload, &request.overrides.or(&unstated)).unwrap_or_else(|_| limits.clone());
        request.planners[planner].check_options(&Problem {
            workload: workload.clone(),
            limits: limits.clone(),
            options: options[planner].clone(),
        })?;
        let theme = theme::load(&request.theme, request.theme_directory.as_deref(), request.depth)
            .map_err(ScreenError::Theme)?;
        let schedule_asked = request.schedule_asked || request.schedule != Schedule::ALL[0];
        let asked_for = AskedFor { schedule: schedule_asked, ..AskedFor::default() };
        let setup = Setup { schedule: request.schedule, settings: SimulatorSettings::default(), asked: asked_for };
        let setup = setup.set(request.simulator);
        let mut model = Model {
            refusals: refusals(request.planners, &workload),
            natives: natives(request.planners, &workload),
            findings: lint::lint(&workload),
            dials: dial::dials(&workload),
            first_dials,
            dials_asked: request.dials_asked,
            asked: as_asked,
            workload,
            planners: request.planners,
            planner,
            last_for: vec![],
            limits,
            first_limits,
            asked_limits: request.overrides,
            defaults: request.defaults,
            options,
            seed: request.seed,
            deadline: request.deadline,
            view: View::ALL[0],
            focus: Focus::View,
            folded: None,
            panel_cursor: 0,
            others_unfolded: false,
            editing: None,
            overlay: None,
            message: told,
            setup,
            first_settings: request.simulator,
            shown: None,
            edits: Edits::default(),
            simulated: None,
            running: None,
            looked: None,
            convergence: Convergence::default(),
            chart: false,
            refusal: None,
            stopped: false,
            generation: 0,
            jobs: 0,
            studies: Studies::default(),
            would_help: WouldHelp::default(),
            views: Views::default(),
            playing: Playing::default(),
            changes: Changes::default(),
            recent,
            fresh: request.fresh,
            watch: request.watch,
            readings: (0, 0),
            demo: request.demo.then(|| Demo::new(Instant::now())),
            keymap: if request.ascii || request.console { request.keymap.in_words() } else { request.keymap },
            theme,
            depth: request.depth,
            theme_directory: request.theme_directory,
            ascii: request.ascii,
            console: request.console,
            seen: false,
            size: (0, 0),
            now: Instant::now(),
            hits: vec![],
        };
        if let Some(session) = session {
            model.restore(&session, &asked);
        }
        model.select_panel_row(PanelRow::Limit(LimitKind::Devices));
        Ok(model)
    }

    /// Clears everything that depends on the plans of the last workload.
    pub(crate) fn forget_results(&mut self) {
        if let Some(running) = self.running.take() {
            running.search.cancel();
        }
        self.forget_edits();
        self.shown = None;
        self.simulated = None;
        self.playing = Playing::default();
        self.convergence = Convergence::default();
        self.changes = Changes::default();
        self.forget_what_would_help();
        for view in View::ALL {
            view.room().forget(self);
        }
    }

    /// Sets the workload and lints it. A planner that refuses it is replaced by another.
    pub(crate) fn set_workload(&mut self, workload: Arc<Workload>) {
        let row = self.panel_row();
        self.refusals = refusals(self.planners, &workload);
        self.natives = natives(self.planners, &workload);
        self.findings = lint::lint(&workload);
        self.dials = dial::dials(&workload);
        self.workload = workload;
        self.last_for.retain(|&(_, planner)| self.refusals[planner].is_none());
        if self.refusals[self.planner].is_some() {
            self.choose_native();
        }
        self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        // Drop a typed value whose row no longer exists.
        if self.editing.as_ref().is_some_and(|editing| !self.panel_rows().contains(&editing.row)) {
            self.editing = None;
        }
        self.generation += 1;
    }

    /// Switches to a planner that needs no conversion, if there is one and the planner in force needs it.
    pub(crate) fn choose_native(&mut self) {
        if !self.is_native(self.planner) {
            let able = (0..self.planners.len()).filter(|&i| self.refusals[i].is_none());
            let best = able.min_by_key(|&i| !self.is_native(i));
            let row = self.panel_row();
            self.planner = best.unwrap_or(self.planner);
            self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        }
    }

    /// Sets the size of the screen. At the first sufficient size the left panel, if visible, gets the focus, because
    /// users change limits first.
    pub(super) fn start_at(&mut self, size: (u16, u16)) {
        self.size = size;
        if !self.seen && size.0 >= SMALLEST.0 && size.1 >= SMALLEST.1 {
            self.seen = true;
            if self.panel_visible() {
                self.focus = Focus::Panel;
            }
        }
    }
}

fn natives(planners: &[&dyn Planner], workload: &Workload) -> Vec<bool> {
    planners.iter().map(|planner| planner.is_native(workload)).collect()
}

fn refusals(planners: &[&dyn Planner], workload: &Workload) -> Vec<Option<String>> {
    planners.iter().map(|planner| planner.can_plan(workload).err().map(|why| why.to_string())).collect()
}
