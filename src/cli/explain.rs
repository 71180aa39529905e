//! `plantui explain`: the bottleneck of a plan, its binding limits, possible improvements, and alternatives.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs, PlannerArgs},
    explain_job,
    explain_links::LinkEffects,
    explain_published::{PublishedPart, published},
    failure::print_bug,
    input,
    interrupt::Interrupt,
    job_input,
    output::{self, Destination},
    planning::{self, PlanningTask},
    report::{self, counted, line},
    terms,
    watch::{simulating, watched},
};
use crate::schemas::DocumentSchema;
use crate::{
    cluster::GivenLimits,
    export::plan_json::status_word,
    family::{self, kinds::KindCount},
    plan::document::{ObjectivePart, PlannerPart, WorkloadPart, limit_value, limits_part},
    planner::Search,
    run::Run,
    simulate::Setup,
    study::{
        explain::{
            Cause, Certainty, Change, ExplainedPlan, Explanation, NOTICEABLE, PlanBottleneck, Replan, stage_name,
        },
        losses::{Losses, differences_text},
        prediction_gap::PredictionGap,
        rivals::{self, Rival},
    },
    units,
};

const EXAMPLES: &str = "\
Examples:
  plantui explain model.json
  plantui explain model.json --devices 64 --memory 8GiB
  plantui explain model.json --planner placement-dp --json
  plantui explain model.json --each 500ms
  plantui explain model.json --why
  plantui explain train.sh --hardware h100             a job: what it spends, and single changes

Plans, then plans again with one change at a time; every figure comes from such a re-plan. A limit binds if the plan \
improves without it. Differences are relative to the plan above. `at least`, `at most` and `about` mark differences \
between plans that are not proven optimal.
Exit codes: 0 done, 1 no feasible plan, 2 wrong use or input, 3 stopped before any plan, 70 a bug of plantui.";

/// Least default time of a re-plan.
const LEAST_SHARE: Duration = Duration::from_secs(2);

/// Explain a plan: bottleneck, binding limits, changes that would help, alternatives
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Workload to plan, or the job of a training engine to explain as it runs: a file, or `-` for standard input
    workload: PathBuf,
    /// The model of a job that does not state it: a published name or a Hugging Face config.json
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    planning: PlannerArgs,
    /// Time for each re-plan [default: 2s, or twice the time of the plan; with --deadline all re-plans together take
    /// that time again]
    #[arg(long, value_name = "TIME", value_parser = arguments::deadline)]
    each: Option<Duration>,
    /// Adds the meaning of the explanation's words, each with a small picture
    #[arg(long)]
    why: bool,
    /// Prints one JSON document (schema plantui.explain/1) in place of the text
    #[arg(long, conflicts_with = "why")]
    json: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

/// All results of an explanation.
struct ExplainReport {
    base: ExplainedPlan,
    bottleneck: Option<PlanBottleneck>,
    /// Lost time of its simulated iteration.
    losses: Option<Losses>,
    /// Published planners' plans in the same simulator.
    rivals: Vec<Rival>,
    explanation: Explanation,
    /// Effect of its plan on the links of a topology.
    links: LinkEffects,
    /// Longest time limit of a re-plan.
    each: Duration,
    /// Number of skipped questions.
    unasked: usize,
    /// True if they were skipped for lack of time, not because of Ctrl-C.
    late: bool,
}

impl ExplainArgs {
    /// Plans, asks the questions and prints.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input, or if the result cannot be written.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        if !self.why
            && let Some(job) = job_input::read_as(&self.workload, &self.limits.job_facts()?, self.model.as_deref())?
        {
            if self.limits.are_more_than_facts() {
                let problem = format!("{} is a job, explained as it runs on its own limits", job.job.source);
                let repair = "give only --hardware, --devices, --batch, --sequence-length and --precision";
                return Err(Failure::refused(problem, repair));
            }
            job.announce();
            return explain_job::run(&job, self.json, &destination);
        }
        if self.model.is_some() {
            let problem = format!("--model is for jobs, and {} is a workload", input::shown(&self.workload));
            return Err(Failure::refused(problem, "leave it out"));
        }
        let task = PlanningTask::new(self.limits.load(&self.workload)?, &self.limits, &self.planning)?;
        let (planned, explained) = match self.planning.threads {
            None => self.explain(task)?,
            Some(threads) => planning::pool(threads)?.install(|| self.explain(task))?,
        };
        let mut text = match (self.json, &explained) {
            (true, _) => output::json(&document(&planned, explained.as_ref())),
            (false, Some(explained)) => text(&planned, explained),
            (false, None) => report::planned(&planned),
        };
        if self.why {
            let used = crate::terms::used_in(&text);
            text += &format!("\nthe words\n\n{}", terms::text(&used));
        }
        destination.write(&text)?;
        Ok(planning::ending(&planned))
    }

    /// Plans, then answers one question after the other. Ctrl-C ends the plan or the questions and keeps the results so
    /// far; a re-plan that fails does the same.
    fn explain(&self, task: PlanningTask) -> Result<(Run, Option<ExplainReport>), Failure> {
        let whole = Search::new(None, self.planning.seed);
        let interrupt = Interrupt::cancels(&whole)?;
        let search = whole.part(self.planning.deadline);
        let measure = task.planner.measure(&task.problem.workload, &task.problem.options);
        let started = Instant::now();
        let planner = task.planner;
        let mut planned = watched((planner.info().name, measure), &search, &interrupt, || task.plan(&search))?;
        let each = self.each.unwrap_or_else(|| LEAST_SHARE.max(2 * started.elapsed()));
        let all = self.planning.deadline.filter(|_| self.each.is_none());
        planned.simulate_when(Setup::default(), |simulate| simulating(&search, &interrupt, simulate));
        let Some(base) = ExplainedPlan::new(planner, &planned.problem, &planned.outcome, planned.score.as_ref()) else {
            return Ok((planned, None));
        };
        let base = match &planned.simulation {
            Some(simulation) => base.simulated(&simulation.pipeline, &simulation.timeline),
            None => base,
        };
        let mut explanation = Explanation::default();
        let questions = base.questions();
        let asking = whole.part(all);
        // The remaining time is divided with a small reserve, so that no answer is lost at the deadline.
        let share_among =
            |among: usize| asking.remaining().map_or(each, |left| each.min(left.mul_f64(0.9) / among as u32));
        let mut longest = Duration::ZERO;
        for (number, question) in questions.iter().enumerate() {
            let share = share_among(questions.len() - number);
            longest = longest.max(share);
            let asked =
                watched(("re-planning", measure), &asking, &interrupt, || base.replan(question, Some(share), &asking));
            let Some(answer) = asked else { break };
            answer.fault.iter().for_each(|fault| print_bug(&format!("{}: {fault}", answer.label)));
            explanation.add(answer);
            asking.report_fraction(explanation.answers().len() as f64 / questions.len() as f64);
        }
        let simulated = planned.simulation.as_ref().map(|s| (&s.pipeline, &s.timeline));
        let bottleneck = PlanBottleneck::of(&base.problem.workload, &base.plan, &base.score, simulated);
        let losses = planned.simulation.as_ref().and_then(Losses::of_simulation);
        let mut unasked = questions.len() - explanation.answers().len();
        let others = if unasked == 0 { rivals::rival_planners(&base) } else { vec![] };
        let rival = |(number, &other): (usize, &_)| {
            let (own, share) = ((&base, losses.as_ref()?), share_among(others.len() - number));
            watched(("published planners", measure), &asking, &interrupt, || rivals::rival(other, own, share, &asking))
        };
        let rivals: Vec<Rival> = others.iter().enumerate().filter_map(rival).collect();
        if asking.cancelled() {
            unasked += others.len() - rivals.len();
        }
        let links = LinkEffects::of(&base, &asking.part(Some(each)));
        let (each, late) = (longest, !whole.cancelled());
        Ok((planned, Some(ExplainReport { base, bottleneck, losses, rivals, explanation, links, each, unasked, late })))
    }
}

fn text(planned: &Run, explained: &ExplainReport) -> String {
    let ExplainReport { base, bottleneck, losses, rivals, explanation, links, each, unasked, late } = explained;
    let mut text = String::new();
    let workload = &base.problem.workload;
    line(&mut text, format_args!("{}: {}", report::about(workload), planned.planner.info().name));
    text += &report::headline(planned, &base.plan, &base.score);
    if let Some(bottleneck) = bottleneck {
        limited_by(&mut text, base, bottleneck);
    }
    if let Some(simulation) = &planned.simulation {
        report::simulation(&mut text, simulation, losses.as_ref(), &base.problem.limits);
    }
    let experts = family::of(workload).expert_shares(&base.problem.limits, &base.plan);
    if !experts.is_empty() {
        let shares: Vec<String> =
            experts.iter().map(|(name, share)| format!("{name} {}", units::percent(*share))).collect();
        line(&mut text, format_args!("experts: {} of the predicted time", shares.join(", ")));
    }
    line(&mut text, format_args!(""));
    what_binds(&mut text, base, explanation);
    let (help, next_best) = (explanation.help(), explanation.next_best());
    let better = if base.score.measure.larger_is_better() { "+ is better" } else { "- is better" };
    rows(&mut text, base, &format!("what would help, one change each ({better})"), &help);
    rows(&mut text, base, "alternatives under the same limits", &next_best);
    published(&mut text, rivals);
    links.append_to(&mut text, &base.plan);
    if let Some(proof) = planned.outcome.proof() {
        line(&mut text, format_args!("proof: {proof}"));
    }
    line(&mut text, format_args!("limits: {}", report::limits(workload, &base.problem.limits)));
    let asked = explanation.answers().len();
    if asked > 0 {
        let each = units::seconds(each.as_secs_f64());
        line(&mut text, format_args!("{asked} re-plans, at most {each} each"));
    }
    if *unasked > 0 {
        let why = if *late { "the deadline has passed" } else { "stopped" };
        let would_do = if *late { "; use a longer --deadline or a shorter --each" } else { "" };
        line(&mut text, format_args!("{why}: {} not answered{would_do}", counted(*unasked, "question")));
    }
    report::notes(&mut text, &planned.outcome.notes);
    text
}

fn limited_by(text: &mut String, base: &ExplainedPlan, bottleneck: &PlanBottleneck) {
    line(text, format_args!("{}", report::limited_by(bottleneck)));
    let mut simulated = vec![];
    if let Some(busy) = bottleneck.busy {
        simulated.push(format!("{} computes {} of the time", bottleneck.name, units::percent(busy)));
    }
    if let Some(link) = bottleneck.link {
        let name = |stage| stage_name(&base.problem.workload, &base.plan, stage);
        let (from, to) = (name(link.from), name(link.to));
        simulated
            .push(format!("the busiest link, {from} to {to}, is in use {} of the time", units::percent(link.busy)));
    }
    if !simulated.is_empty() {
        line(text, format_args!("in a simulated iteration {}", simulated.join("; ")));
    }
}

/// Parts of an iteration by their names in the JSON document, which keeps the older names.
fn by_json_name(parts: impl IntoIterator<Item = (&'static str, f64)>) -> BTreeMap<&'static str, f64> {
    let named = |(name, value)| match name {
        "warm-up and drain" => ("fill and drain", value),
        "waits in the schedule" => ("waits of the schedule", value),
        name => (name, value),
    };
    parts.into_iter().map(named).collect()
}

fn what_binds(text: &mut String, base: &ExplainedPlan, explanation: &Explanation) {
    let causes = explanation.causes(base);
    if explanation.answers().is_empty() {
        line(text, format_args!("binding limits: unknown, no re-plan was made\n"));
        return;
    }
    line(text, format_args!("binding limits (each found by a plan without it)"));
    for cause in &causes {
        let Cause { kind, how, without, difference, value, .. } = cause;
        let value = base.show(*value);
        line(text, format_args!("  {}: {how}", kind.title()));
        line(text, format_args!("      {without}: {value}, {difference}"));
        if !cause.parts.is_empty() {
            line(text, format_args!("      per iteration: {}", differences_text(&cause.parts)));
        }
    }
    let free = explanation.free(base);
    match (causes.is_empty(), free.is_empty()) {
        (true, true) => line(
            text,
            format_args!(
                "  none tried: plans have no other limits than numbers of devices and the batch; those of --set are not tried"
            ),
        ),
        (true, false) => line(text, format_args!("  none: no plan without one of these limits is better")),
        _ => {}
    }
    if !free.is_empty() {
        line(text, format_args!("  does not bind: {}", free.join(", ")));
    }
    line(text, format_args!(""));
}

fn rows(text: &mut String, base: &ExplainedPlan, title: &str, answers: &[&Replan]) {
    if answers.is_empty() {
        return;
    }
    line(text, format_args!("{title}"));
    let widest = answers.iter().map(|answer| answer.label.width()).max().unwrap_or(0);
    let flags = |answer: &Replan| answer.question.change.flags();
    let longest = answers.iter().filter_map(|answer| flags(answer)).map(|flags| flags.width()).max().unwrap_or(0);
    let shown = |answer: &&Replan| -> Vec<String> {
        let value = match answer.value {
            Some(value) => base.show(value),
            None if answer.plan.is_some() => "no figure".into(),
            None => "no plan".into(),
        };
        let padding = " ".repeat(widest - answer.label.width() + 2);
        let told = flags(answer).map(|flags| padding + &flags).unwrap_or_default();
        let better = answer.gain().is_some_and(|gain| gain > NOTICEABLE) && !answer.parts.is_empty();
        let parts = if better {
            let padding = " ".repeat(longest - flags(answer).map_or(0, |flags| flags.width()) + 2);
            padding + &differences_text(&answer.parts)
        } else {
            String::new()
        };
        vec![format!("  {value}"), answer.difference().unwrap_or_default(), format!("{}{told}{parts}", answer.label)]
    };
    let table: Vec<Vec<String>> = answers.iter().map(shown).collect();
    report::table(text, &table);
    line(text, format_args!(""));
}

/// Limits of a plan, and changes that would help.
#[derive(Debug, Serialize, JsonSchema)]
struct ExplainDocument<'a> {
    schema: &'static str,
    workload: WorkloadPart,
    planner: PlannerPart,
    limits: GivenLimits,
    status: &'static str,
    /// Plans that a proof covers, if not all.
    proven_among: Option<&'a str>,
    objective: Option<ObjectivePart>,
    /// Unit of every `value` below.
    unit: Option<&'static str>,
    value: Option<f64>,
    stages: Option<usize>,
    devices: Option<u32>,
    /// Statement of the proof with its scope.
    proof: Option<String>,
    simulated: Option<SimulatedPart>,
    bottleneck: Option<BottleneckPart<'a>>,
    binds: Vec<BindsPart>,
    does_not_bind: Vec<&'static str>,
    help: Vec<RowPart<'a>>,
    /// Effect of the plan on the links of its topology, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    links: Option<&'a LinkEffects>,
    /// Shares of the time that experts add to their products.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    experts: BTreeMap<&'static str, f64>,
    next_best: Vec<RowPart<'a>>,
    published: Vec<PublishedPart>,
    seconds_each: Option<f64>,
    complete: bool,
    explanation: Option<&'a str>,
}

/// Simulated value of the objective, in its unit.
#[derive(Debug, Serialize, JsonSchema)]
struct SimulatedPart {
    schedule: &'static str,
    value: f64,
    /// Relative excess over the planned value.
    difference: f64,
    /// Shares of an iteration that are lost, 0 to 1.
    losses: Option<BTreeMap<&'static str, f64>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BottleneckPart<'a> {
    stage: usize,
    name: &'a str,
    parts: Vec<ShareOf>,
    /// Stages that limit as much, ascending, this one among them.
    alike: Vec<usize>,
    /// True if passes hide transfers; then `parts` has the passes alone.
    hides_transfers: bool,
    /// Stage that limits the simulated iteration, if the planner counts hidden transfers and so names another.
    as_simulated: Option<usize>,
    busy: Option<f64>,
    link: Option<LinkPart>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ShareOf {
    name: &'static str,
    seconds: f64,
    share: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LinkPart {
    from: usize,
    to: usize,
    busy: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BindsPart {
    what: &'static str,
    how: String,
    without: String,
    value: f64,
    gain: f64,
    certainty: &'static str,
    /// Excess of each part of a simulated iteration, seconds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RowPart<'a> {
    label: &'a str,
    limit: Option<&'static str>,
    option: Option<&'static str>,
    to: Option<serde_json::Value>,
    flags: Option<String>,
    status: &'static str,
    value: Option<f64>,
    change: Option<f64>,
    gain: Option<f64>,
    certainty: &'static str,
    stages: Option<usize>,
    devices: Option<u32>,
    seconds: f64,
    reason: Option<&'a str>,
    /// As in `BindsPart`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, f64>,
}

fn certainty_word(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Exact => "exact",
        Certainty::AtLeast => "at_least",
        Certainty::AtMost => "at_most",
        Certainty::About => "about",
    }
}

impl<'a> From<&'a Replan> for RowPart<'a> {
    fn from(answer: &'a Replan) -> Self {
        let (limit, option, to) = match &answer.question.change {
            Change::Limit(kind, value) => (Some(kind.label()), None, Some(limit_value(*kind, *value).into())),
            Change::Option(spec, value) => (None, Some(spec.name), Some(value.json())),
            Change::Kinds(kinds) => (Some("devices"), None, Some(KindCount::list(kinds).into())),
            Change::FreeLinks | Change::EveryDegree | Change::EngineFeasible => (None, None, None),
        };
        RowPart {
            label: &answer.label,
            limit,
            option,
            to,
            flags: answer.question.change.flags(),
            status: status_word(answer.status),
            value: answer.value,
            change: answer.change,
            gain: answer.gain(),
            certainty: certainty_word(answer.certainty),
            stages: answer.plan.as_ref().map(|plan| plan.stages.len()),
            devices: answer.plan.as_ref().map(crate::plan::Plan::devices_used),
            seconds: answer.seconds,
            reason: answer.reason.as_deref(),
            parts: by_json_name(answer.parts.iter().copied()),
        }
    }
}

fn document<'a>(planned: &'a Run, explained: Option<&'a ExplainReport>) -> ExplainDocument<'a> {
    let problem = &planned.problem;
    let mut document = ExplainDocument {
        schema: "plantui.explain/1",
        workload: problem.workload.as_ref().into(),
        planner: PlannerPart {
            id: planned.planner.info().id.into(),
            options: problem.options.iter().map(|(name, value)| (name.to_string(), value.json())).collect(),
        },
        limits: limits_part(&problem.limits, family::of(&problem.workload).limits()),
        status: status_word(planned.outcome.status),
        proven_among: planned.outcome.proven_among.as_deref(),
        objective: None,
        unit: None,
        value: None,
        stages: None,
        devices: None,
        proof: None,
        simulated: None,
        bottleneck: None,
        binds: vec![],
        does_not_bind: vec![],
        help: vec![],
        links: None,
        experts: BTreeMap::new(),
        next_best: vec![],
        published: vec![],
        seconds_each: None,
        complete: false,
        explanation: planned.outcome.infeasible.as_ref().map(|story| story.explanation.as_str()),
    };
    let Some(ExplainReport { base, bottleneck, losses, rivals, explanation, links, each, unasked, .. }) = explained
    else {
        return document;
    };
    let shares = family::of(&base.problem.workload).expert_shares(&base.problem.limits, &base.plan);
    document.experts = shares.into_iter().collect();
    document.links = Some(links).filter(|links| !links.is_empty());
    let score = &base.score;
    document.objective = Some(ObjectivePart {
        name: score.measure.name().into(),
        value: score.value,
        unit: score.measure.unit().into(),
        parameters: score.measure.parameters(),
    });
    (document.unit, document.value) = (Some(base.unit()), Some(base.value()));
    (document.stages, document.devices) = (Some(base.plan.stages.len()), Some(base.plan.devices_used()));
    document.proof = planned.outcome.proof().map(|proof| proof.to_string());
    document.simulated =
        planned.simulation.as_ref().zip(PredictionGap::of_run(planned)).map(|(simulation, gap)| SimulatedPart {
            schedule: simulation.schedule.id(),
            value: gap.simulated,
            difference: gap.difference(),
            losses: losses.map(|losses| by_json_name(losses.shares())),
        });
    document.bottleneck = bottleneck.as_ref().map(|bottleneck| BottleneckPart {
        stage: bottleneck.stage + 1,
        name: &bottleneck.name,
        parts: bottleneck
            .parts
            .iter()
            .map(|part| ShareOf { name: part.name, seconds: part.seconds, share: part.share })
            .collect(),
        alike: bottleneck.alike.iter().map(|stage| stage + 1).collect(),
        hides_transfers: bottleneck.hides_transfers,
        as_simulated: bottleneck.as_simulated.map(|stage| stage + 1),
        busy: bottleneck.busy,
        link: bottleneck.link.map(|link| LinkPart { from: link.from + 1, to: link.to + 1, busy: link.busy }),
    });
    let binds = |cause: Cause| BindsPart {
        what: cause.kind.id(),
        how: cause.how,
        without: cause.without,
        value: cause.value,
        gain: cause.gain,
        certainty: certainty_word(cause.certainty),
        parts: by_json_name(cause.parts),
    };
    document.binds = explanation.causes(base).into_iter().map(binds).collect();
    document.does_not_bind = explanation.free(base);
    document.help = explanation.help().into_iter().map(RowPart::from).collect();
    document.next_best = explanation.next_best().into_iter().map(RowPart::from).collect();
    document.published = rivals.iter().map(PublishedPart::from).collect();
    document.seconds_each = Some(each.as_secs_f64());
    document.complete = *unasked == 0;
    document
}

/// JSON Schema of the document.
pub(super) fn schema() -> DocumentSchema {
    DocumentSchema::written::<ExplainDocument<'_>>("plantui.explain/1")
}
