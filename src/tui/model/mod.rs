//! State of the screen, in parts; changed only by [`super::update`].
//!
//! A part has the methods that read and change nothing else. The model has those that need several parts.

mod appearance;
mod panel;
mod planning;
mod session;
mod simulation;

use std::{sync::Arc, time::Instant};

use self::session::{natives, refusals};
pub(super) use self::{
    appearance::Appearance,
    panel::Panel,
    planning::{LONG, PATIENCE, Planning, Running},
    session::Session,
    simulation::Simulation,
};
pub use super::place::{Focus, View};
pub(super) use super::place::{Hit, Tone};
use super::{
    ScreenError, ScreenRequest,
    changes::Changes,
    convergence::Convergence,
    demo::Demo,
    edits::Edits,
    overlay::Overlay,
    panel_rows::PanelRow,
    playing::Playing,
    recent::Recent,
    stored_session::Asked,
    studies::Studies,
    theme::{self},
    views::Views,
    would_help::WouldHelp,
};
use crate::{
    cluster::LimitKind,
    family::{
        self,
        dial::{self},
    },
    planner::{Options, Problem},
    simulate::{ExplicitSettings, Schedule, Setup, SimulatorSettings},
    tui::frame::SMALLEST,
    workload::{Workload, lint},
};

/// Whole state.
pub(super) struct Model {
    /// What is planned.
    pub session: Session,
    /// Plans.
    pub planning: Planning,
    /// Simulation of the shown plan.
    pub simulation: Simulation,
    /// Size, colours, keys and signs of the screen.
    pub appearance: Appearance,
    /// Left panel.
    pub panel: Panel,
    /// Shown view.
    pub view: View,
    /// State of each view.
    pub views: Views,
    /// Part that receives the arrow keys.
    pub focus: Focus,
    /// Open overlay.
    pub overlay: Option<Overlay>,
    /// Last message, until the next key.
    pub message: Option<(Tone, String)>,
    /// The tour, while it is running.
    pub demo: Option<Demo>,
}

impl Model {
    /// True if the left panel is visible.
    pub(super) fn panel_visible(&self) -> bool {
        self.focus == Focus::Panel || !self.panel.folded.unwrap_or(self.appearance.size.0 < 100)
    }

    /// True if the shown plan belongs to other limits than those at the left.
    pub(super) fn stale(&self) -> bool {
        if self.edited() || self.previewed().is_some() {
            return false;
        }
        self.planning.stopped
            || self.planning.refusal.is_some()
            || (self.planning_shown() && !self.planning.best_so_far_shown())
    }

    /// True if the course of the search is visible.
    pub(super) fn convergence_shown(&self) -> bool {
        self.planning.chart && self.view.room().uses().plan
    }

    /// True if planning has taken long enough to show it.
    pub(super) fn planning_shown(&self) -> bool {
        self.planning.running.as_ref().is_some_and(|r| {
            r.planning && (self.planning.shown.is_none() || self.appearance.now.duration_since(r.since) >= PATIENCE)
        })
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
        let explicit = ExplicitSettings { schedule: schedule_asked, ..ExplicitSettings::default() };
        let setup = Setup { schedule: request.schedule, settings: SimulatorSettings::default(), explicit };
        let setup = setup.set(request.simulator);
        let mut model = Model {
            session: Session {
                refusals: refusals(request.planners, &workload),
                natives: natives(request.planners, &workload),
                findings: lint::lint(&workload),
                dials: dial::dials(&workload),
                workload,
                planners: request.planners,
                planner,
                last_for: vec![],
                limits,
                first_limits,
                asked_limits: request.overrides,
                first_dials,
                dials_asked: request.dials_asked,
                asked: as_asked,
                defaults: request.defaults,
                options,
                seed: request.seed,
                deadline: request.deadline,
                recent,
                fresh: request.fresh,
                watch: request.watch,
                readings: (0, 0),
            },
            planning: Planning {
                shown: None,
                edits: Edits::default(),
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
                changes: Changes::default(),
            },
            simulation: Simulation {
                setup,
                first_settings: request.simulator,
                simulated: None,
                playing: Playing::default(),
            },
            appearance: Appearance {
                theme,
                depth: request.depth,
                theme_directory: request.theme_directory,
                ascii: request.ascii,
                console: request.console,
                seen: false,
                size: (0, 0),
                now: Instant::now(),
                hits: vec![],
                keymap: if request.ascii || request.console { request.keymap.in_words() } else { request.keymap },
            },
            panel: Panel { folded: None, cursor: 0, others_unfolded: false, editing: None },
            view: View::ALL[0],
            views: Views::default(),
            focus: Focus::View,
            overlay: None,
            message: told,
            demo: request.demo.then(|| Demo::new(Instant::now())),
        };
        if let Some(session) = session {
            model.restore(&session, &asked);
        }
        model.select_panel_row(PanelRow::Limit(LimitKind::Devices));
        Ok(model)
    }

    /// Clears everything that depends on the plans of the last workload.
    pub(crate) fn forget_results(&mut self) {
        if let Some(running) = self.planning.running.take() {
            running.search.cancel();
        }
        self.planning.forget_edits();
        self.planning.shown = None;
        self.simulation.simulated = None;
        self.simulation.playing = Playing::default();
        self.planning.convergence = Convergence::default();
        self.planning.changes = Changes::default();
        self.planning.forget_what_would_help();
        for view in View::ALL {
            view.room().forget(self);
        }
    }

    /// Sets the workload and lints it. A planner that refuses it is replaced by another.
    pub(crate) fn set_workload(&mut self, workload: Arc<Workload>) {
        let row = self.panel_row();
        self.session.refusals = refusals(self.session.planners, &workload);
        self.session.natives = natives(self.session.planners, &workload);
        self.session.findings = lint::lint(&workload);
        self.session.dials = dial::dials(&workload);
        self.session.workload = workload;
        self.session.last_for.retain(|&(_, planner)| self.session.refusals[planner].is_none());
        if self.session.refusals[self.session.planner].is_some() {
            self.choose_native();
        }
        self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        // Drop a typed value whose row no longer exists.
        if self.panel.editing.as_ref().is_some_and(|editing| !self.panel_rows().contains(&editing.row)) {
            self.panel.editing = None;
        }
        self.planning.generation += 1;
    }

    /// Switches to a planner that needs no conversion, if there is one and the planner in force needs it.
    pub(crate) fn choose_native(&mut self) {
        if !self.session.is_native(self.session.planner) {
            let able = (0..self.session.planners.len()).filter(|&i| self.session.refusals[i].is_none());
            let best = able.min_by_key(|&i| !self.session.is_native(i));
            let row = self.panel_row();
            self.session.planner = best.unwrap_or(self.session.planner);
            self.select_panel_row(row.unwrap_or(PanelRow::Limit(LimitKind::Devices)));
        }
    }

    /// Sets the size of the screen. At the first sufficient size the left panel, if visible, gets the focus, because
    /// users change limits first.
    pub(super) fn start_at(&mut self, size: (u16, u16)) {
        self.appearance.size = size;
        if !self.appearance.seen && size.0 >= SMALLEST.0 && size.1 >= SMALLEST.1 {
            self.appearance.seen = true;
            if self.panel_visible() {
                self.focus = Focus::Panel;
            }
        }
    }
}
