//! State of the screen, in parts; changed only by [`update`](super::update) and by the folders of the views.
//!
//! A part has the methods that read and change nothing else. The model has those that need several parts, in `derived`
//! and `rows`.

mod appearance;
mod derived;
mod layout;
mod panel;
mod planning;
mod rows;
mod session;
mod simulation;

use std::{sync::Arc, time::Instant};

pub(super) use self::{
    appearance::{Appearance, SMALLEST},
    layout::LayoutKnobs,
    panel::{Editing, Panel},
    planning::{LONG, Looked, PATIENCE, PROGRESS, Planning, Running},
    session::{Session, natives, refusals},
    simulation::Simulation,
};
use super::{
    changes::Changes,
    convergence::Convergence,
    demo::Demo,
    edits::Edits,
    overlay::Overlay,
    panel_rows::PanelRow,
    playing::Playing,
    recent::Recent,
    remedies::Remedies,
    request::{ScreenError, ScreenRequest},
    stored_session::Asked,
    studies::Studies,
    theme,
    views::{compare::pins, list::Views},
    would_help::WouldHelp,
};
pub(super) use super::{
    place::{Focus, Hit, Tone},
    views::list::View,
};
use crate::{
    cluster::LimitKind,
    family::{self, dial},
    planner::{Options, Problem},
    simulate::{ExplicitSettings, Schedule, Setup, SimulatorSettings},
    workload::lint,
};

/// Stage that the views share.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pointed {
    /// Stage that the cursor was moved to in any view.
    pub stage: Option<usize>,
    /// Stage of the shown view's cursor when it was opened; another one since then was chosen by the user.
    pub at_opening: Option<usize>,
}

/// Whole state.
pub(super) struct Model {
    /// Workload, planner, limits and options.
    pub session: Session,
    /// Plans.
    pub planning: Planning,
    /// Simulation of the shown plan.
    pub simulation: Simulation,
    /// Size, colours, keys and signs of the screen.
    pub appearance: Appearance,
    /// Left panel.
    pub panel: Panel,
    /// Knobs of the layout.
    pub layout: LayoutKnobs,
    /// Shown view.
    pub view: View,
    /// Stage that the cursor was put on, for all views.
    pub pointed: Pointed,
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
        let demo = request.demo.then(|| Demo::new(&workload, Instant::now()));
        let limits = family::resolve(&workload, &kept.or(&unstated))
            .map_err(|missing| ScreenError::Limit { name: workload.source.clone(), problem: missing })?;
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
                prices: request.prices,
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
                step: None,
                remedies: Remedies::default(),
                changes: Changes::default(),
                asked: [None; 2],
            },
            simulation: Simulation {
                setup,
                first_settings: request.simulator,
                simulated: None,
                own_schedule: Some(request.schedule).filter(|own| matches!(own, Schedule::Given(_))),
                schedule_editor: None,
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
            layout: LayoutKnobs::default(),
            panel: Panel { folded: None, cursor: 0, others_unfolded: false, editing: None },
            view: View::ALL[0],
            pointed: Pointed::default(),
            views: Views::default(),
            focus: Focus::View,
            overlay: None,
            message: told,
            demo,
        };
        if let Some(session) = session {
            model.restore(&session, &asked);
        }
        for (name, plan) in request.pinned {
            let compared = pins::of_job(plan, &model.pin_terms());
            model.views.compare.pins.add(&name, compared);
        }
        model.select_panel_row(PanelRow::Limit(LimitKind::Devices));
        Ok(model)
    }
}
