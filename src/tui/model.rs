//! Everything the screen knows; changed only by [`super::update`].

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

/// A job that is under way.
#[derive(Debug, Clone)]
pub(super) struct Running {
    /// Its number.
    pub job: u64,
    /// Where its progress is read.
    pub search: Search,
    /// When it was asked for; earlier than `begun` where it took the place of one that was not there yet.
    pub since: Instant,
    /// When this job was handed over.
    pub begun: Instant,
    /// Whether a plan is what is waited for.
    pub planning: bool,
}

/// How long a plan may take before the screen says that it waits: quick plans do not flicker.
pub(super) const PATIENCE: Duration = Duration::from_millis(80);

/// How long a search lasts before its course is worth a look.
pub(super) const LONG: Duration = Duration::from_millis(400);

/// The whole state.
pub(super) struct Model {
    /// What is planned.
    pub workload: Arc<Workload>,
    /// Who can plan.
    pub planners: &'static [&'static dyn Planner],
    /// Why each of them cannot plan this workload, if so.
    pub(crate) refusals: Vec<Option<String>>,
    /// Which planners plan the workload as it is, not a converted one; asked once, not with every frame.
    natives: Vec<bool>,
    /// Who does, by place.
    pub planner: usize,
    /// Who planned last for each objective, for this workload.
    pub last_for: Vec<(&'static str, usize)>,
    /// Under which limits.
    pub limits: Limits,
    /// Those it started with.
    pub first_limits: Limits,
    /// Those that the command line asked for.
    pub asked_limits: GivenLimits,
    /// What of the workload itself can be turned.
    pub dials: Vec<Dial>,
    /// How that stood at the start.
    pub first_dials: Vec<Dial>,
    /// Which of them the command line asked for.
    pub dials_asked: Vec<String>,
    /// The workload as its file had it, and as it was asked for.
    pub asked: (Arc<Workload>, Arc<Workload>),
    /// Those of a workload that does not state its own.
    pub defaults: GivenLimits,
    /// With which options, by planner.
    pub options: Vec<Options>,
    /// Seed and deadline of every search.
    pub seed: u64,
    /// The longest a plan may take.
    pub deadline: Option<Duration>,

    /// Which view is shown.
    pub view: View,
    /// Who hears the arrow keys.
    pub focus: Focus,
    /// Whether the left panel is folded; `None`: as the width suggests.
    pub folded: Option<bool>,
    /// Selected row of the left panel.
    pub panel_cursor: usize,
    /// Whether the planners that cannot plan this workload are listed.
    pub others_unfolded: bool,
    /// The value that is being typed.
    pub editing: Option<Editing>,
    /// What lies over everything else.
    pub overlay: Option<Overlay>,
    /// The last message, until the next key.
    pub message: Option<(Tone, String)>,

    /// How plans are simulated.
    pub setup: Setup,
    /// The settings it started with.
    pub first_settings: SimulatorSettings,
    /// The last result.
    pub shown: Option<Arc<ShownRun>>,
    /// Its edits by hand.
    pub edits: Edits,
    /// The timeline of its plan.
    pub simulated: Option<Arc<Simulated>>,
    /// The job under way.
    pub running: Option<Running>,
    /// What was seen last of its best plan so far.
    pub looked: Option<Looked>,
    /// The course of the last search.
    pub convergence: Convergence,
    /// Whether that course is shown.
    pub chart: bool,
    /// Why the chosen planner cannot plan this.
    pub refusal: Option<String>,
    /// Whether the last run was stopped before it had any plan.
    pub stopped: bool,
    /// Rises whenever what trees are built from changes.
    pub generation: u64,
    /// Counts jobs.
    pub jobs: u64,
    /// What is asked beside planning.
    pub studies: Studies,
    /// What would help.
    pub would_help: WouldHelp,

    /// What each view knows.
    pub views: Views,
    /// How the simulated batch is played.
    pub playing: Playing,
    /// What the last change did.
    pub changes: Changes,

    /// What may mislead a planner in the workload.
    pub(crate) findings: Vec<lint::Finding>,

    /// Sessions of this and other workloads.
    pub recent: Recent,
    /// Whether they are not to come back.
    pub fresh: bool,
    /// The tour, while it is played.
    pub demo: Option<Demo>,
    /// Whether the workload's file is watched.
    pub watch: bool,
    /// Readings of the workload's file: how many were asked for, and the latest that was taken.
    pub readings: (u64, u64),
    /// Which key does what.
    pub keymap: Keymap,
    /// How everything looks.
    pub theme: Theme,
    /// How many colours there are.
    pub depth: Depth,
    /// Where the user's themes are.
    pub theme_directory: Option<PathBuf>,
    /// Whether only ASCII is drawn.
    pub ascii: bool,
    /// Whether only the signs of the Linux console are drawn.
    pub console: bool,
    /// Whether the screen has been large enough to show anything.
    pub seen: bool,
    /// Size of the screen at the last drawing.
    pub size: (u16, u16),
    /// The time, as the loop told it.
    pub now: Instant,
    /// Where the last drawing put what can be clicked; later ones lie on top.
    pub hits: Vec<(Rect, Hit)>,
}

impl Model {
    /// The planner in force.
    pub(super) fn current_planner(&self) -> &'static dyn Planner {
        self.planners[self.planner]
    }

    /// The options that the planner in force declares.
    pub(super) fn specs(&self) -> &'static [OptionSpec] {
        self.current_planner().options()
    }

    /// Whether a planner plans this workload as it is, not a converted one.
    pub(super) fn is_native(&self, planner: usize) -> bool {
        self.natives[planner]
    }

    /// Whether a planner has lines and answers of its own where all are asked: it converts nothing, and asks no other.
    pub(super) fn stands_alone(&self, planner: usize) -> bool {
        self.is_native(planner) && !self.planners[planner].asks_others()
    }

    /// Whether the left panel is to be seen.
    pub(super) fn panel_visible(&self) -> bool {
        self.focus == Focus::Panel || !self.folded.unwrap_or(self.size.0 < 100)
    }

    /// Whether what is shown belongs to other limits than those at the left.
    pub(super) fn stale(&self) -> bool {
        if self.edited() || self.previewed().is_some() {
            return false;
        }
        self.stopped || self.refusal.is_some() || (self.planning_shown() && !self.best_so_far_shown())
    }

    /// Whether the course of the search is to be seen.
    pub(super) fn convergence_shown(&self) -> bool {
        self.chart && self.view.room().uses().plan
    }

    /// What plans of the planner in force are measured by.
    pub(super) fn measure(&self) -> Measure {
        self.current_planner().measure(&self.workload, &self.options[self.planner])
    }

    /// Name of what a planner's plans of this workload are best in: its own objective, or that of the workload's family
    /// where it converts.
    pub(super) fn objective_of(&self, planner: usize) -> &'static str {
        let (info, options) = (self.planners[planner].info(), &self.options[planner]);
        if self.is_native(planner) {
            info.objective
        } else {
            self.planners[planner].measure(&self.workload, options).name()
        }
    }

    /// Whether a plan has been waited for long enough to say so.
    pub(super) fn planning_shown(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|r| r.planning && (self.shown.is_none() || self.now.duration_since(r.since) >= PATIENCE))
    }
}

impl Model {
    /// The state at the start.
    ///
    /// # Errors
    /// What of the request cannot be met.
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

    /// Forgets everything that belongs to the last workload's plans.
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

    /// Takes a workload and looks for what may mislead a planner in it. A planner that refuses it gives way to another.
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
        // What is being typed is of no row that is there.
        if self.editing.as_ref().is_some_and(|editing| !self.panel_rows().contains(&editing.row)) {
            self.editing = None;
        }
        self.generation += 1;
    }

    /// Goes over to a planner that plans the workload as it is, where there is one and it is not in force already.
    pub(crate) fn choose_native(&mut self) {
        if !self.is_native(self.planner) {
            let able = (0..self.planners.len()).filter(|&i| self.refusals[i].is_none());
            let best = able.min_by_key(|&i| !self.is_native(i));
            let row = self.panel_row();
            self.planner = best.unwrap_or(self.planner);
            self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        }
    }

    /// Takes the size of the screen. Where the first that is large enough has room for the left panel, that hears the first
    /// keys: limits are what one turns first.
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
