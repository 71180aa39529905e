//! Planner: its declaration as data, and its function.

use thiserror::Error;

use super::{ManyRuns, OptionError, OptionSpec, Options, Others, Outcome, Problem, Proves, Tunable, one_by_one};
use plantui_core::{
    cluster::LimitKind,
    family::{self, kinds::KindCount},
    plan::Measure,
    search::Search,
    workload::Workload,
};

/// Identity of a planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannerInfo {
    /// Id in scripts: `piper`.
    pub id: &'static str,
    /// Name for people: `Piper`.
    pub name: &'static str,
    /// Publication that it follows.
    pub paper: &'static str,
    /// Its purpose in one sentence.
    pub summary: &'static str,
    /// Name of its objective in the plan JSON: `time_per_sample`.
    pub objective: &'static str,
    /// Unit of its objective: `s`.
    pub unit: &'static str,
}

/// Planners that a planner starts from. Whoever runs it hands it their plans ([`Planner::plan_from`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uses {
    /// None: it plans by itself.
    None,
    /// Its own search, then plans of other planners if an option asks for them.
    Optional,
    /// Nothing but plans of other planners. A comparison of all planners leaves it out unless the user names it.
    Only,
}

/// All that forms, flags and reports need to know about a planner. A planner states the fields up to `can_plan`; the
/// others have defaults in [`Declaration::NEW`].
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Id, names, paper and objective.
    pub info: PlannerInfo,
    /// Options with types, ranges and defaults.
    pub options: &'static [OptionSpec],
    /// Optimality claims, and the role of each option in them. If a planner declares nothing, a plan that it calls
    /// optimal is reported as feasible.
    pub proves: Proves,
    /// Options that decide which plans exist or what they run on.
    pub tunables: &'static [Tunable],
    /// Limits that the planner supports, in display order.
    pub limits: &'static [LimitKind],
    /// Checks that the planner can plan a workload. The error is a reason that a user can act on.
    pub can_plan: fn(&Workload) -> Result<(), CannotPlan>,
    /// Names of the options that have no effect on a workload. They are not offered for it, and refused.
    pub ignores: fn(&Workload) -> &'static [&'static str],
    /// Limits for workloads that support others than `limits`.
    pub other_limits: fn(&Workload) -> Option<&'static [LimitKind]>,
    /// Checks that the options suffice to plan, including the files that they name.
    pub check_options: fn(&Problem) -> Result<(), OptionError>,
    /// True if the planner models the routes of a topology: its plans, bounds and objective then hold on those routes.
    pub searches_routes: bool,
    /// True for problems where [`Planner::plan_many`] is faster than one [`Planner::plan`] for each number of devices.
    pub plans_many: fn(&Problem) -> bool,
    /// Planners that it starts from.
    pub uses: Uses,
}

impl Declaration {
    /// Declaration without options, claims and special cases.
    pub const NEW: Declaration = Declaration {
        info: PlannerInfo { id: "", name: "", paper: "", summary: "", objective: "", unit: "" },
        options: &[],
        proves: Proves::Nothing,
        tunables: &[],
        limits: &LimitKind::PIPELINE,
        can_plan: |_| Ok(()),
        ignores: |_| &[],
        other_limits: |_| None,
        check_options: |_| Ok(()),
        searches_routes: false,
        plans_many: |_| false,
        uses: Uses::None,
    };
}

/// Reason why a planner cannot plan a workload, worded so that a user can act on it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CannotPlan(String);

impl From<String> for CannotPlan {
    fn from(reason: String) -> Self {
        CannotPlan(reason)
    }
}

impl From<&str> for CannotPlan {
    fn from(reason: &str) -> Self {
        CannotPlan(reason.into())
    }
}

/// A planning algorithm: a declaration and the function [`plan`](Planner::plan). The other methods read the declaration.
///
/// ```
/// use std::sync::Arc;
/// use plantui_core::{cluster::GivenLimits, family, workload};
/// use plantui_planners::{self as planner, Options, Problem, Search};
///
/// let workload = Arc::new(workload::builtin());
/// let limits = family::resolve(&workload, &GivenLimits::default())?;
/// for planner in planner::all().iter().filter(|planner| planner.can_plan(&workload).is_ok()).take(2) {
///     let options = Options::defaults(planner.options());
///     let outcome = planner.plan(&Problem { workload: workload.clone(), limits: limits.clone(), options }, &Search::default());
///     assert!(outcome.plan.is_some(), "{}: {}", planner.info().name, outcome.summary());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Planner: Sync + Send {
    /// Declaration of the planner.
    fn declaration(&self) -> &'static Declaration;

    /// Plans the problem. Obeys the cancellation, deadline and threads of `search`, and reports progress to it.
    fn plan(&self, problem: &Problem, search: &Search) -> Outcome;

    /// Plans the problem with the plans of `others`, for planners that declare that they use them.
    fn plan_from(&self, problem: &Problem, others: &Others<'_>, search: &Search) -> Outcome {
        let _ = others;
        self.plan(problem, search)
    }

    /// Plans for several numbers of devices, with `problem` otherwise unchanged, and reports each outcome when it is
    /// ready. Values equal those of [`Planner::plan`] up to rounding. The plan may be another one of the same value.
    fn plan_many(&self, problem: &Problem, devices: &[u32], run: &mut dyn ManyRuns) {
        one_by_one(self, problem, devices, run);
    }

    /// Identity of the planner.
    fn info(&self) -> &'static PlannerInfo {
        &self.declaration().info
    }

    /// Options with types, ranges and defaults.
    fn options(&self) -> &'static [OptionSpec] {
        self.declaration().options
    }

    /// Checks that the planner can plan this workload.
    ///
    /// # Errors
    /// A reason that a user can act on.
    fn can_plan(&self, workload: &Workload) -> Result<(), CannotPlan> {
        let own = (self.declaration().can_plan)(workload);
        let kinds = KindCount::of(workload);
        if own.is_ok() || kinds.is_empty() {
            return own;
        }
        let several = if workload.placement().is_some() { "placement-dp" } else { "joint" };
        let kinds = KindCount::text(&kinds);
        Err(format!("it plans one kind of device, and there are {kinds}; `{several}` plans several").into())
    }

    /// True if it plans this workload without conversion. Other planners are not chosen as the default for the
    /// workload.
    fn is_native(&self, workload: &Workload) -> bool {
        (self.declaration().can_plan)(workload).is_ok()
    }

    /// Checks that the options suffice to plan, including the files that they name.
    ///
    /// # Errors
    /// [`OptionError`] with the option that is missing or wrong. [`Planner::plan`] reports the same error in its
    /// outcome.
    fn check_options(&self, problem: &Problem) -> Result<(), OptionError> {
        (self.declaration().check_options)(problem)
    }

    /// True if [`Planner::plan_many`] is faster than one [`Planner::plan`] for each number of devices.
    fn answers_many(&self, problem: &Problem) -> bool {
        (self.declaration().plans_many)(problem)
    }

    /// True if it does more than choose among plans of other planners.
    fn stands_alone(&self) -> bool {
        self.declaration().uses != Uses::Only
    }

    /// Names of the options that have no effect on this workload.
    fn ignores(&self, workload: &Workload) -> &'static [&'static str] {
        (self.declaration().ignores)(workload)
    }

    /// Options that apply to a workload, of those that decide which plans exist or what they run on.
    fn tunables_for(&self, workload: &Workload) -> Vec<Tunable> {
        let ignored = self.ignores(workload);
        self.declaration().tunables.iter().copied().filter(|tunable| !ignored.contains(&tunable.name())).collect()
    }

    /// Limits that it supports for this workload.
    fn limits_for(&self, workload: &Workload) -> &'static [LimitKind] {
        (self.declaration().other_limits)(workload).unwrap_or(self.declaration().limits)
    }

    /// Measure of the plans of a workload, and of the values and bounds that a running search reports.
    ///
    /// [`PlannerInfo::objective`] is the measure for workloads that the planner plans without conversion. Plans of a
    /// converted workload use the measure of that workload's family.
    fn measure(&self, workload: &Workload, options: &Options) -> Measure {
        let options = options.iter().map(|(name, value)| (name.to_string(), value.json())).collect();
        let own = self.info().objective;
        let known = family::of(workload).measures(&options).into_iter().find(|measure| measure.name() == own);
        match known {
            Some(known) => known,
            None if workload.mixed().is_some() => {
                family::of(workload).measures(&options).into_iter().next().unwrap_or_default()
            }
            None => family::measure(workload),
        }
    }
}
