//! `plantui check`: validates a plan and scores it again, from the workload alone.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs},
    check_engine,
    input::{self, PlanFileContent},
    output,
    report::{self, line},
};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::{GivenLimits, Limits},
    export::plan_json,
    family::{self, read::LoadedPlan},
    plan::{
        Measure, Score, Violation,
        document::{ObjectivePart, SimulationPart, StagePart, WorkloadPart, limits_part, stage_parts},
        figures::{Claims, Figures},
    },
    planner::{self, OptionKind, Search},
    run::{Simulation, given_up, no_routes},
    simulate::{Schedule, Setup, SimulatorSetting, SimulatorSettings, simulate_unless},
    source::{LoadError, error::printable},
    units::exact_number,
    workload::Workload,
};

const EXAMPLES: &str = "\
Examples:
  plantui check model.json plan.json
  plantui check model.json plan.json --memory 8GiB     would it fit a smaller device?
  plantui plan model.json --json | plantui check model.json -
  plantui check model.json result.json --json          a result of the published Piper
  plantui check graph.json split.json --objective latency      a published placement split

Checks every rule and reports every violation. Limits come from the flags, else from the plan, else from the \
workload. The value, stages and simulation that the plan states are recomputed under the limits of the plan, even if \
flags change them. An optimal plan must carry a lower bound equal to its value; the check does not prove that bound. \
With --strict a plan with warnings is not valid.
Exit codes: 0 valid, 1 not valid, 2 wrong use or unreadable input.";

/// Validate and score a plan
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Workload the plan is for: a file, or `-` for standard input
    workload: PathBuf,
    /// Plan: a plantui plan or a JSON list of them, a result of the published Piper, a published placement split; `-` for standard input
    plan: PathBuf,
    #[command(flatten)]
    limits: LimitArgs,
    /// Objective of a device placement [default: that of the file, else max-load]
    #[arg(long, value_name = "NAME", help_heading = "Check")]
    objective: Option<PlacementObjective>,
    /// Rejects plans with warnings
    #[arg(long, help_heading = "Check")]
    strict: bool,
    /// Stops the simulation, with a warning, after this time, such as 60s or 2min
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = arguments::deadline,
        help_heading = "Check"
    )]
    deadline: Option<Duration>,
    /// Prints one JSON document (schema plantui.check/1) in place of the table
    #[arg(long, help_heading = "Output")]
    json: bool,
}

/// What a device placement can be scored by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PlacementObjective {
    /// The load of the busiest device
    MaxLoad,
    /// The largest forward load plus the largest backward load
    SeparateMaxima,
    /// The time that one sample takes
    Latency,
}

impl PlacementObjective {
    /// Measure, unless the file states more.
    fn measure(self) -> Measure {
        match self {
            PlacementObjective::MaxLoad => Measure::MaxLoad,
            PlacementObjective::SeparateMaxima => Measure::SeparateMaxima,
            PlacementObjective::Latency => Measure::Latency { subgraphs: None },
        }
    }

    /// Scores a loaded plan by this objective; claims about another measure are dropped.
    fn apply(self, workload: &Workload, loaded: &mut LoadedPlan) -> Result<(), Failure> {
        let measure = self.measure();
        let measures = family::of(workload).measures(&BTreeMap::new());
        if !measures.iter().any(|own| own.name() == measure.name()) {
            let message = format!("--objective {} is for device placements", measure.name().replace('_', "-"));
            return Err(Failure::refused(message, format!("{} is not one; leave it out", workload.name)));
        }
        if measure.name() != loaded.plan.measure.name() {
            loaded.plan = loaded.plan.measured_by(measure);
            loaded.claims = Claims::default();
            loaded.figures = Figures::default();
            loaded.notes.clear();
        }
        Ok(())
    }
}

/// Validity and score of a plan.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckDocument {
    schema: &'static str,
    workload: WorkloadPart,
    plan: PlanFile,
    limits: GivenLimits,
    valid: bool,
    objective: Option<ObjectivePart>,
    /// Objective in seconds, if it is a time per sample.
    time_per_sample_s: Option<f64>,
    claim: Option<Claim>,
    violations: Vec<String>,
    /// Figures of the file that differ from the recomputed ones; `contradictions` make the plan invalid.
    contradictions: Vec<String>,
    warnings: Vec<String>,
    stages: Vec<StagePart>,
    simulation: Option<SimulationPart>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PlanFile {
    file: String,
    kind: &'static str,
}

/// Value that the plan claims, in the unit of its measure.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct Claim {
    value: Option<f64>,
    lower_bound: Option<f64>,
    /// `None`: not judged, because the plan breaks a rule or the claim was made under other limits.
    holds: Option<bool>,
    #[serde(skip)]
    tolerance: f64,
    /// Recomputed value that the claim is compared with.
    #[serde(skip)]
    worth: f64,
    /// True if that value is under the file's own limits and the flags request others.
    #[serde(skip)]
    elsewhere: bool,
}

impl Claim {
    /// Claim of the plan, judged if the plan is valid under the limits it was made for.
    fn judge(claims: &Claims, score: &Score, same_limits: bool) -> Option<Self> {
        let Claims { value: claimed, lower_bound, tolerance } = *claims;
        claimed.or(lower_bound)?;
        let worth = score.value;
        let claim = Claim { value: claimed, lower_bound, holds: None, tolerance, worth, elsewhere: false };
        let holds = claimed.is_none_or(|claimed| claim.comes_out(claimed, score)) && claim.bound_is_possible(score);
        Some(Claim { holds: (score.is_valid() && same_limits).then_some(holds), ..claim })
    }

    /// True if a claimed value equals the recomputed one.
    fn comes_out(&self, claimed: f64, score: &Score) -> bool {
        (claimed - score.value).abs() <= self.tolerance * score.value
    }

    /// True if no bound is claimed, or the bound is consistent with the reached value.
    fn bound_is_possible(&self, score: &Score) -> bool {
        let slack = self.tolerance * score.value;
        self.lower_bound.is_none_or(|bound| {
            if score.measure.larger_is_better() { bound >= score.value - slack } else { bound <= score.value + slack }
        })
    }
}

/// Plan with all findings of the check.
struct CheckReport {
    workload: Workload,
    file: String,
    loaded: LoadedPlan,
    limits: Limits,
    score: Score,
    claim: Option<Claim>,
    simulation: Option<Simulation>,
    contradictions: Vec<String>,
    warnings: Vec<String>,
    /// True if a warning makes the plan invalid.
    strict: bool,
}

impl CheckArgs {
    /// Checks the plans and prints the findings.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input that cannot be read.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        input::one_standard_input(&self.workload, &self.plan)?;
        let workload = self.limits.load_for(&self.workload, &self.plan)?;
        let all = match input::plans(&self.plan, &workload)? {
            PlanFileContent::One(loaded) => {
                let checked = self.check(&workload, *loaded, input::shown(&self.plan))?;
                output::print(&if self.json { output::json(&checked.document()) } else { checked.report() })?;
                vec![checked]
            }
            PlanFileContent::List(list) => {
                let named = |i: usize| format!("{}[{i}]", input::shown(&self.plan));
                let checked = list.into_iter().enumerate().map(|(i, loaded)| self.check(&workload, loaded, named(i)));
                let all = checked.collect::<Result<Vec<_>, _>>()?;
                output::print(&match self.json {
                    true => output::json(&all.iter().map(CheckReport::document).collect::<Vec<_>>()),
                    false => all.iter().map(CheckReport::report).collect::<Vec<_>>().join("\n"),
                })?;
                all
            }
        };
        Ok(if all.iter().all(CheckReport::is_valid) { CommandEnd::Done } else { CommandEnd::NoPlan })
    }

    /// Checks one plan under its own limits and those of the flags.
    fn check(&self, workload: &Workload, mut loaded: LoadedPlan, file: String) -> Result<CheckReport, Failure> {
        if let Some(objective) = self.objective {
            objective.apply(workload, &mut loaded)?;
        }
        let as_made = loaded.clone();
        let limits = limits(&self.limits, &mut loaded, workload, &file)?;
        options(&loaded, &file)?;
        let score = family::check(workload, &limits, &loaded.plan);
        let search = Search::new(self.deadline, 0);
        let mut warnings = unknown(&loaded);
        let simulated = |limits: &Limits, plan: &LoadedPlan, score: &Score, warnings: &mut Vec<String>| {
            let run = || Simulation::within(workload, limits, &plan.plan, Setup::default(), &search);
            score.is_valid().then(run).and_then(|run| run.map_err(|given_up| warnings.push(given_up)).ok())
        };
        let simulation = simulated(&limits, &loaded, &score, &mut warnings);
        // Under other limits or prices a plan costs something else than its file says: its claims are judged under its
        // own.
        let own_limits = self.own_limits(workload, &loaded, &limits);
        let repriced = loaded.at_its_prices(workload);
        let (claim, (contradictions, given_up)) = match own_limits {
            Some(own) if own == limits && repriced.is_none() => {
                let claim = Claim::judge(&loaded.claims, &score, true);
                (claim, judged(workload, &limits, &loaded, (&score, simulation.as_ref()), &search))
            }
            Some(own) => {
                let priced = repriced.as_ref().unwrap_or(workload);
                let score = family::check(priced, &own, &as_made.plan);
                let simulation = simulated(&own, &as_made, &score, &mut warnings);
                let claim = Claim::judge(&as_made.claims, &score, true).map(|claim| Claim { elsewhere: true, ..claim });
                (claim, judged(priced, &own, &as_made, (&score, simulation.as_ref()), &search))
            }
            None => {
                let says_nothing = loaded.claims.value.is_none() && loaded.figures == Figures::default();
                let why = "the value in the file is not checked: flags change the limits of the plan";
                let claim = Claim::judge(&loaded.claims, &score, false);
                (claim, (vec![], (!says_nothing).then(|| why.to_string())))
            }
        };
        warnings.extend(given_up);
        let workload = workload.clone();
        Ok(CheckReport {
            workload,
            file,
            loaded,
            limits,
            score,
            claim,
            simulation,
            contradictions,
            warnings,
            strict: self.strict,
        })
    }

    /// Limits that the plan was made under: the requested ones if flags change nothing, else those of its file and the
    /// workload. `None` if unknown: the file names none, or flags change the topology or the training settings.
    fn own_limits(&self, workload: &Workload, loaded: &LoadedPlan, asked: &Limits) -> Option<Limits> {
        let LimitArgs { topology, training, .. } = &self.limits;
        if topology.is_some() || *training != LimitArgs::default().training {
            return None;
        }
        let own = family::resolve(workload, &loaded.limits).ok()?;
        (own == *asked || loaded.limits != GivenLimits::default()).then_some(own)
    }
}

/// Contradictions between the file and the recomputation under its own limits, a sentence each, and the reason if
/// something could not be judged in time.
fn judged(
    workload: &Workload,
    limits: &Limits,
    loaded: &LoadedPlan,
    (score, simulation): (&Score, Option<&Simulation>),
    search: &Search,
) -> (Vec<String>, Option<String>) {
    let mut contradictions = loaded.figures.contradictions(&loaded.claims, &loaded.plan, score);
    if let Some(own) = simulation.filter(|_| overlaps(loaded)) {
        contradictions.extend(loaded.figures.mapped_otherwise(own.timeline.iteration_s));
    }
    if let Some(own) = family::of(workload).prediction(limits, &loaded.plan) {
        contradictions.extend(loaded.figures.prediction.differences(&own));
    }
    if score.is_valid() {
        contradictions.extend(check_engine::broken(workload, limits, loaded));
    }
    match simulation.map(|own| differences(workload, limits, loaded, own, search)) {
        Some(Ok(differences)) => contradictions.extend(differences),
        Some(Err(given_up)) => return (contradictions, Some(given_up)),
        None => {}
    }
    (contradictions, None)
}

impl CheckReport {
    /// True if every rule is satisfied and the file's claims are confirmed; under `strict`, also without warnings.
    fn is_valid(&self) -> bool {
        self.score.is_valid()
            && self.contradictions.is_empty()
            && (!self.strict || self.warnings.is_empty())
            && self.claim.is_none_or(|claim| claim.holds != Some(false))
    }

    fn report(&self) -> String {
        let mut text = String::new();
        let verdict = if self.is_valid() { "valid" } else { "not valid" };
        let kind = self.loaded.kind;
        line(&mut text, format_args!("{verdict}: {} ({kind}) for {}", self.file, report::about(&self.workload)));
        for violation in &self.score.violations {
            line(&mut text, format_args!("  {violation}"));
        }
        for contradiction in &self.contradictions {
            line(&mut text, format_args!("  {contradiction}"));
        }
        for warning in &self.warnings {
            line(&mut text, format_args!("warning: {warning}"));
        }
        if let Some(claim) = self.claim {
            self.claimed(&mut text, claim);
        }
        if let Some(hint) = self.hint() {
            line(&mut text, format_args!("hint: {hint}"));
        }
        if self.score.stages.is_empty() {
            return text;
        }
        line(&mut text, format_args!("{}", report::objective_line(&self.limits, &self.loaded.plan, &self.score)));
        report::stages(
            &mut text,
            &self.workload,
            &self.limits,
            &self.loaded.plan,
            &self.score,
            self.simulation.as_ref(),
        );
        line(&mut text, format_args!(""));
        line(&mut text, format_args!("limits: {}", report::limits(&self.workload, &self.limits)));
        if let Some(simulation) = &self.simulation {
            line(&mut text, format_args!("{}", report::simulated(simulation, &self.limits)));
        }
        report::notes(&mut text, &self.notes());
        text
    }

    /// Results for the claims, a line each.
    fn claimed(&self, text: &mut String, claim: Claim) {
        let Score { value, measure, .. } = self.score;
        let recomputed = measure.show(value);
        if let Some(claimed) = claim.value {
            let verdict = match claim.holds {
                Some(_) if claim.elsewhere => {
                    let own = measure.show(claim.worth);
                    match self.score.is_valid() {
                        true => format!("takes {own} under its own limits, {recomputed} under these"),
                        false => {
                            format!("takes {own} under its own limits; not scored under these, where it breaks a rule")
                        }
                    }
                }
                Some(_) if (claimed - value).abs() <= claim.tolerance * value => "and the check agrees".to_string(),
                Some(_) => {
                    format!("but takes {recomputed} ({} against {})", exact_number(value), exact_number(claimed))
                }
                None if self.score.is_valid() => format!("under its own limits; takes {recomputed} under these"),
                None => "not scored: only a plan that keeps every rule is scored".to_string(),
            };
            // Without prices a plan that is measured by its cost has a time alone.
            line(text, format_args!("claims {}, {verdict}", self.loaded.plan.measure.show(claimed)));
        }
        if let Some(bound) = claim.lower_bound
            && claim.holds.is_some()
            && !claim.bound_is_possible(&Score { value: claim.worth, measure, ..Score::default() })
        {
            let recomputed = measure.show(claim.worth);
            let bound = measure.show(bound);
            let (kind, side) = if measure.larger_is_better() { ("n upper", "below") } else { (" lower", "above") };
            line(text, format_args!("states a{kind} bound of {bound}, {side} its value {recomputed}"));
        }
    }

    /// Possible cause if a file names no limits and breaks only rules that depend on them.
    fn hint(&self) -> Option<&'static str> {
        let of_limits = |violation: &Violation| {
            use Violation::{Indivisible, OutOfMemory, TooManyDevices, TooManyReplicas};
            matches!(
                violation,
                OutOfMemory { .. } | TooManyDevices { .. } | TooManyReplicas { .. } | Indivisible { .. }
            )
        };
        let violations = &self.score.violations;
        let told = self.loaded.limits != GivenLimits::default() || !family::of(&self.workload).plans_name_limits();
        (!told && !violations.is_empty() && violations.iter().all(of_limits))
            .then_some("the file states no limits: repeat the --devices, --memory and --microbatches of the plan")
    }

    fn document(&self) -> CheckDocument {
        let simulation = self.simulation.as_ref();
        let measure = self.score.measure;
        CheckDocument {
            schema: "plantui.check/1",
            workload: (&self.workload).into(),
            plan: PlanFile { file: self.file.clone(), kind: self.loaded.kind },
            limits: limits_part(&self.limits, family::of(&self.workload).limits()),
            valid: self.is_valid(),
            objective: self.score.is_valid().then(|| ObjectivePart {
                name: measure.name().into(),
                value: self.score.value,
                unit: measure.unit().into(),
                parameters: measure.parameters(),
            }),
            time_per_sample_s: self.score.is_valid().then_some(self.score.slowest_s),
            claim: self.claim,
            violations: self.score.violations.iter().map(ToString::to_string).collect(),
            contradictions: self.contradictions.clone(),
            warnings: self.warnings.clone(),
            stages: stage_parts(&self.workload, &self.loaded.plan, Some(&self.score)),
            simulation: simulation.map(|s| plan_json::simulation_part(&s.pipeline, s.schedule, &s.timeline)),
            notes: self.notes(),
        }
    }

    /// Assumptions of reading and simulation, and claims that rest on the file alone.
    fn notes(&self) -> Vec<String> {
        let simulated = self.simulation.iter().flat_map(|simulation| &simulation.pipeline.notes);
        let word = "`optimal` is the file's statement: the check scores the plan and proves no bound";
        let optimal = (self.loaded.figures.claims_optimum() && self.is_valid()).then(|| word.to_string());
        self.loaded.notes.iter().chain(simulated).cloned().chain(optimal).collect()
    }
}

/// Differences between the file's simulation and the simulator's, a sentence each. Uses the file's simulation settings.
fn differences(
    workload: &Workload,
    limits: &Limits,
    loaded: &LoadedPlan,
    simulation: &Simulation,
    search: &Search,
) -> Result<Vec<String>, String> {
    let Some(said) = &loaded.figures.simulation else { return Ok(vec![]) };
    let part = |of: &Simulation| said.differences(&plan_json::simulation_part(&of.pipeline, of.schedule, &of.timeline));
    let schedule = match said.schedule.as_deref() {
        Some(id) if id != simulation.schedule.id() => match Schedule::find(id) {
            Some(schedule) => schedule,
            None => return Ok(vec![format!("simulation: schedule is `{}`, which is not known", printable(id))]),
        },
        _ => simulation.schedule,
    };
    let mut settings = SimulatorSettings::default();
    for (name, value) in &said.settings {
        let changed =
            SimulatorSetting::find(name).ok_or("is not known".to_string()).and_then(|s| s.parse(value, &settings));
        settings = match changed {
            Ok(changed) => changed,
            Err(why) => {
                let (name, value) = (printable(name), printable(value));
                return Ok(vec![format!("simulation: settings.{name} is `{value}`: {why}")]);
            }
        };
    }
    if schedule == simulation.schedule && settings == simulation.pipeline.settings {
        return Ok(part(simulation));
    }
    let pipeline = family::pipeline_unless(workload, limits, &loaded.plan, &settings, &|| search.cancelled());
    let pipeline = pipeline.ok_or_else(|| no_routes(search))?;
    if let Some(reason) = pipeline.refusal(schedule).filter(|_| !pipeline.runs_once()) {
        return Ok(vec![format!("simulation: {reason}")]);
    }
    let simulated = simulate_unless(&pipeline, schedule, &|| search.cancelled());
    let timeline = simulated.ok_or_else(|| given_up(search))?;
    Ok(part(&Simulation { schedule, pipeline, timeline }))
}

/// True if the file's mapping was simulated with overlap of compute and transfers, as here.
fn overlaps(loaded: &LoadedPlan) -> bool {
    loaded.options.get("concurrent_copy_comp") != Some(&serde_json::Value::Bool(false))
}

/// Unknown planner or options of a file, a sentence each: they may be of another version, or misspelt.
fn unknown(loaded: &LoadedPlan) -> Vec<String> {
    let Some(id) = loaded.planner.as_deref() else { return vec![] };
    let Some(planner) = planner::find(id) else {
        return vec![format!("planner.id is `{}`, which is not known: its options are not checked", printable(id))];
    };
    let known = |name: &str| planner.options().iter().any(|spec| spec.name == name);
    let others = loaded.options.keys().filter(|name| !known(name));
    others.map(|name| format!("planner.options.{} is no option of {id}", printable(name))).collect()
}

/// Limits of the flags, else of the plan, else of the workload; the plan's devices are numbered for them.
pub(super) fn limits(
    flags: &LimitArgs,
    loaded: &mut LoadedPlan,
    workload: &Workload,
    file: &str,
) -> Result<Limits, Failure> {
    family::validate(workload, &loaded.limits, file)?;
    let overrides = flags.overrides().or(&loaded.limits);
    let limits = family::resolve(workload, &overrides).map_err(|missing| Failure::lacks(&workload.source, &missing))?;
    loaded.under(&limits);
    flags.wire(&mut loaded.plan);
    Ok(limits)
}

/// Refuses option values that the file's planner does not accept. Unknown options and planners may be of another
/// version and are accepted.
fn options(loaded: &LoadedPlan, file: &str) -> Result<(), LoadError> {
    let Some(planner) = loaded.planner.as_deref().and_then(planner::find) else { return Ok(()) };
    for spec in planner.options() {
        let Some(value) = loaded.options.get(spec.name) else { continue };
        let text = value.as_str().map_or_else(|| value.to_string(), String::from);
        // Types checked by the JSON type: a quoted word is not a number.
        let of_its_type = match spec.kind {
            OptionKind::Flag { .. } => value.is_boolean(),
            OptionKind::Number { .. } | OptionKind::Quantity { .. } => value.is_number(),
            OptionKind::Choice { .. } | OptionKind::File { .. } | OptionKind::Text { .. } => value.is_string(),
        };
        if !of_its_type || spec.parse(&text).is_err() {
            let problem = format!("is {}, which {} does not take", printable(&value.to_string()), planner.info().id);
            let repair = format!("it takes {}", spec.values().join(", "));
            return Err(LoadError::at(file, format!("planner.options.{}", spec.name), problem, repair));
        }
    }
    Ok(())
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<CheckDocument>("plantui.check/1")
}
