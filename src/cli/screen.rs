//! `plantui [WORKLOAD]`: the screen, or the report of `plan` without a terminal.
//!
//! The screen's start values come from the flags, then the last session with the workload, then the workload, then the
//! configuration file. The report uses only flags and workload, as in `plan`.

use std::{ffi::OsStr, path::PathBuf, sync::Arc};

use clap::{
    Arg, Args, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};

use super::{
    CommandEnd, Failure,
    arguments::{LimitArgs, PlannerArgs},
    input, job_input, output,
    planning::{self, PlanningTask},
    profile_input, report,
    schedule_argument::ScheduleParser,
    training_input,
};
use crate::{
    config::{self, Config},
    folders, notice,
    planner::{self, Planner},
    simulate::Schedule,
    tui::{self, ScreenError, ScreenRequest, theme},
    workload::{self, Workload},
};

/// Start values of the screen.
#[derive(Debug, Args)]
pub(crate) struct ScreenArgs {
    /// Workload to show: a file, or `-` for standard input [default: a built-in example]
    workload: Option<PathBuf>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    planning: PlannerArgs,
    #[command(flatten)]
    look: LookArgs,
    #[command(flatten)]
    start: StartArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Screen")]
struct LookArgs {
    /// Colours of the screen; `plantui themes` lists them [default: dark or light, like the terminal]
    #[arg(long, value_name = "NAME", value_parser = ThemeNames)]
    theme: Option<String>,
    /// Leaves the mouse to the terminal, for selecting text
    #[arg(long)]
    no_mouse: bool,
    /// Draws with ASCII alone [default: if the locale is not UTF-8]
    #[arg(long)]
    ascii: bool,
    /// Schedule with which plans are simulated at first [default: 1f1b]
    #[arg(long, value_name = "ID|FILE", value_parser = ScheduleParser)]
    schedule: Option<Schedule>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Session and configuration")]
struct StartArgs {
    /// Plays a tour of the built-in workload, or of a model to be trained; Space pauses it, any other key ends it
    #[arg(long, conflicts_with = "watch")]
    demo: bool,
    /// Reads and plans the workload again whenever its file changes
    #[arg(long)]
    watch: bool,
    /// Does not restore the last session with the workload
    #[arg(long)]
    fresh: bool,
    /// Reads this configuration [default: $PLANTUI_CONFIG, else plantui/config.toml in $XDG_CONFIG_HOME or ~/.config; on Windows in %APPDATA%]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints the configuration in force, flags included, as a commented file, and exits
    #[arg(long)]
    print_config: bool,
}

impl ScreenArgs {
    /// Shows the screen until the user leaves, or prints the report.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input.
    pub(crate) fn run(mut self) -> Result<CommandEnd, Failure> {
        if let Some(name) = &self.look.theme {
            // Loaded here to refuse a wrong name with and without a terminal.
            theme::load(name, theme::user_directory().as_deref(), theme::Depth::True)
                .map_err(|problem| Failure::refused(problem.to_string(), "`plantui themes` lists them"))?;
        }
        let named = self.start.config.is_some() || self.start.print_config;
        let config = (named || tui::terminal_is_there()).then(|| self.config()).transpose()?.unwrap_or_default();
        if self.start.print_config {
            output::print(&config.to_toml())?;
            return Ok(CommandEnd::Done);
        }
        if self.start.watch && self.workload.as_deref().is_none_or(input::is_standard_input) {
            return Err(Failure::refused("--watch needs a file to watch", "name one: plantui model.json --watch"));
        }
        // Standard input is read to its end here, before the screen reads keys from the terminal.
        let as_read = match &self.workload {
            Some(path) => input::workload_given(path, &self.limits.job_facts()?)?,
            None => workload::builtin(),
        };
        let mut workload = match &self.workload {
            Some(_) => self.limits.over(as_read.clone())?,
            None => as_read.clone(),
        };
        if self.start.demo && self.workload.is_some() && workload.training().is_none() {
            return Err(Failure::refused(
                format!("--demo has no tour of {}", workload.name),
                "leave the workload out, or name a model to be trained: plantui llama-3-70b --demo",
            ));
        }
        let mut dials_asked =
            self.limits.training.changed_dials(&self.planning.settings, self.limits.topology.is_some());
        dials_asked.extend(self.limits.profile.changed_dial(&self.planning.settings));
        dials_asked.extend(self.limits.changed_kinds());
        if tui::terminal_is_there() {
            let given = training_input::software(&mut workload, &self.planning.settings)?;
            self.planning.settings = profile_input::batch_of(&mut workload, given, &self.limits.profile)?;
        } else {
            return self.report(PlanningTask::new(workload, &self.limits, &self.planning)?);
        }
        if let Some(threads) = self.planning.threads {
            // The screen plans on the global pool, which can be sized only once: nothing has used it yet.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).stack_size(planner::STACK_BYTES);
            pool.build_global().map_err(|error| planning::no_threads(threads, &error))?;
        }
        let request = self.request(config, Arc::new(workload))?;
        let facts = self.limits.job_facts()?;
        let job = self.workload.as_ref().map(|path| job_input::read(path, &facts)).transpose()?.flatten();
        let pinned = job.map(|job| job.plan()).transpose()?.map(|plan| ("as it runs".to_string(), plan));
        let pinned = pinned.into_iter().collect();
        match tui::run(ScreenRequest { dials_asked, pinned, as_read: Arc::new(as_read), ..request }) {
            Ok(()) => Ok(CommandEnd::Done),
            Err(ScreenError::Option(error)) => Err(error.into()),
            Err(error) => Err(Failure::refused(error.to_string(), "")),
        }
    }

    /// Configuration file, overridden by the flags.
    fn config(&self) -> Result<Config, Failure> {
        let place = self.start.config.clone().or_else(|| config::place(folders::variable));
        let file = place.as_deref().map(Config::load).transpose()?.unwrap_or_default();
        file.add_hardware();
        Ok(Config {
            theme: self.look.theme.clone().unwrap_or(file.theme),
            mouse: file.mouse && !self.look.no_mouse,
            ascii: if self.look.ascii { Some(true) } else { file.ascii },
            planners: self.planning.planner.clone().map_or(file.planners, |id| vec![id]),
            schedule: self.look.schedule.unwrap_or(file.schedule),
            deadline: self.planning.deadline.or(file.deadline),
            limits: self.limits.overrides().or(&file.limits),
            ..file
        })
    }

    fn request(&self, config: Config, workload: Arc<Workload>) -> Result<ScreenRequest, Failure> {
        let planner = match &self.planning.planner {
            Some(id) => planning::choose(Some(id), &workload)?,
            None => match preferred(&config.planners, &workload).or_else(|| planner::opens_with(&workload)) {
                Some(planner) => planner,
                None => planning::choose(None, &workload)?,
            },
        };
        let usual = ScreenRequest::new(workload);
        Ok(ScreenRequest {
            overrides: self.limits.overrides(),
            defaults: config.limits,
            prices: config.prices,
            planner: planner.info().id.into(),
            planner_asked: self.planning.planner.is_some(),
            settings: planning::settings(planner, &self.limits, &self.planning.settings),
            schedule: config.schedule,
            simulator: config.simulator,
            schedule_asked: self.look.schedule.is_some(),
            // A tour neither restores nor saves a session.
            state_directory: folders::state(folders::variable).filter(|_| !self.start.demo),
            watch: self.start.watch,
            demo: self.start.demo,
            fresh: self.start.fresh || !config.restore,
            seed: self.planning.seed,
            deadline: config.deadline,
            keymap: config.keymap,
            theme: config.theme,
            ascii: config.ascii.unwrap_or(usual.ascii),
            mouse: config.mouse,
            ..usual
        })
    }

    fn report(&self, task: PlanningTask) -> Result<CommandEnd, Failure> {
        let (planned, _until_printed) = task.run(&self.planning)?;
        output::print(&report::planned(&planned))?;
        notice::note("standard output is not a terminal; in one this command opens the screen");
        Ok(planning::ending(&planned))
    }
}

/// Parser that accepts any name, so that the error for a wrong one describes its file. Completions get the existing
/// names.
#[derive(Debug, Clone)]
struct ThemeNames;

impl TypedValueParser for ThemeNames {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(theme::names(theme::user_directory().as_deref()).into_iter().map(PossibleValue::new)))
    }
}

/// First of these planners that natively supports the workload.
fn preferred(ids: &[String], workload: &Workload) -> Option<&'static dyn Planner> {
    ids.iter().filter_map(|id| planner::find(id)).find(|planner| planner.is_native(workload))
}
