//! `plantui map`: maps the parts of a plan to the devices of a topology.

use std::{path::PathBuf, time::Duration};

use clap::{Args, builder::PossibleValuesParser};

use super::{
    CommandEnd, Failure,
    arguments::{self, LimitArgs},
    input,
    interrupt::Interrupt,
    output::{self, Destination},
    report::{line, table},
    topology_input::TopologyArgument,
    watch::{mapping, simulating},
};
use crate::{
    cluster::{GivenLimits, LimitKind, Limits, topology::Topology},
    family,
    mapping::{
        CommunicationKinds, MapError, MappedPlan, Mapping, MappingChoice, MappingMethod, MappingSettings, Parallel,
        PlanError, map_plan,
    },
    notice,
    plan::{
        Measure, Plan, Score,
        configuration::ConfigurationPart,
        document::{
            Document, ExecutionPart, MappingPart, ObjectivePart, PlannerPart, SCHEMA, limits_part, stage_parts,
        },
    },
    planner::Search,
    run::Simulation,
    simulate::Setup,
    units,
    workload::Workload,
};

const EXAMPLES: &str = "\
Examples:
  plantui map graph.txt plan.json --topology dgx-1
  plantui map model.json plan.json --topology 2xdgx-a100 --shared-links
  plantui map graph.txt plan.json --topology dgx-1 --method identity
  plantui plan model.json --json | plantui map model.json - --topology mine.csv --json > mapped.json

Maps the plan of any planner with stages. The time is the communication of one microbatch at the busiest pair, ring \
or link; the lower bound holds for every mapping. The iteration is simulated before and after. --json prints the \
plan with its mapped devices and a field `mapping`. Ctrl-C and --deadline keep the best mapping so far.
Exit codes: 0 mapped, 1 the plan is not valid or does not fit on the topology, 2 wrong use or unreadable input.";

/// Map a plan's parts onto the devices of a topology
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct MapArgs {
    /// Workload the plan is for: a file, or `-` for standard input
    workload: PathBuf,
    /// Plan of any planner; `-` for standard input
    plan: PathBuf,
    #[command(flatten)]
    limits: LimitArgs,
    /// Method
    #[arg(long, value_name = "METHOD", default_value = MappingMethod::Search.id(),
          value_parser = PossibleValuesParser::new(MappingMethod::ALL.map(MappingMethod::id)))]
    method: String,
    /// Ignores transfers between stages
    #[arg(long)]
    no_p2p: bool,
    /// Ignores all-reduces
    #[arg(long)]
    no_allr: bool,
    /// Counts the total traffic of every link, instead of each transfer alone
    #[arg(long)]
    shared_links: bool,
    /// Parallel searches per target
    #[arg(long, value_name = "N", default_value_t = 1)]
    parallel_same_t: u32,
    /// Parallel searches in total
    #[arg(long, value_name = "N", default_value_t = 2)]
    parallel_degree: u32,
    /// Seed of random choices
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Stops after this time, such as 60s or 2min, with the best mapping so far; its simulation may take one more
    /// second
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = arguments::deadline)]
    deadline: Option<Duration>,
    /// Prints the plan with its mapping as JSON
    #[arg(long)]
    json: bool,
    /// Writes to this file in place of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Lets --output replace a file
    #[arg(long, requires = "output")]
    force: bool,
}

/// Mapped plan, measured under the topology's devices and machines.
struct MapReport {
    workload: Workload,
    limits: Limits,
    mapped: MappedPlan,
    score: Score,
}

impl MapArgs {
    /// Maps and prints.
    ///
    /// # Errors
    /// [`Failure`] for wrong use or input that cannot be read.
    pub(crate) fn run(self) -> Result<CommandEnd, Failure> {
        let destination = Destination::new(self.output.as_deref(), self.force);
        destination.check()?;
        input::one_standard_input(&self.workload, &self.plan)?;
        let Some(given) = &*self.limits.topology else {
            return Err(Failure::refused("map needs a topology", "give --topology, such as --topology dgx-1"));
        };
        let workload = self.limits.load_for(&self.workload, &self.plan)?;
        if let Some(profile) = workload.mixed() {
            let problem =
                format!("map is for plans on one kind of device, and this one is on {}", profile.kinds_text());
            return Err(Failure::refused(
                problem,
                "`plantui export PLAN --to rank-file` lists the device of each rank",
            ));
        }
        let mut loaded = input::plan(&self.plan, &workload)?;
        let shown = input::shown(&self.plan);
        let limits = super::check::limits(&self.limits.without_topology(), &mut loaded, &workload, &shown)?;
        if let Some(violation) = family::check(&workload, &limits, &loaded.plan).violations.first() {
            notice::error(&format!("{shown} is not valid: {violation}"));
            notice::hint("`plantui check` lists everything that is wrong with it");
            return Ok(CommandEnd::NoPlan);
        }
        let search = Search::new(self.deadline, self.seed);
        // It lives until the mapping is written.
        let interrupt = Interrupt::cancels(&search)?;
        let mapped = match self.mapped(workload, &limits, &loaded.plan, given, (&search, &interrupt))? {
            Ok(mapped) => mapped,
            Err(why) => {
                notice::error(&why);
                return Ok(CommandEnd::NoPlan);
            }
        };
        let planner = loaded.planner.map(|id| PlannerPart { id, options: loaded.options });
        let text = if self.json { output::json(&mapped.document(planner)) } else { mapped.report(given.topology()) };
        destination.write(&text)?;
        Ok(CommandEnd::Done)
    }

    /// Plan on the topology's devices, else the reason why it cannot be mapped.
    fn mapped(
        &self,
        workload: Workload,
        limits: &Limits,
        plan: &Plan,
        given: &TopologyArgument,
        (search, interrupt): (&Search, &Interrupt),
    ) -> Result<Result<MapReport, String>, Failure> {
        let consider =
            CommunicationKinds { transfers: !self.no_p2p, all_reduces: !self.no_allr, shared_links: self.shared_links };
        let settings = MappingSettings {
            method: MappingMethod::find(&self.method).unwrap_or_default(),
            parallel: Parallel { same_target: self.parallel_same_t, degree: self.parallel_degree },
            seed: self.seed,
            ..MappingSettings::default()
        };
        let topology = given.topology();
        let found = mapping(|| {
            map_plan(&workload, limits, plan, given.wired(), (consider, &settings, MappingChoice::Found), search)
        });
        let mut mapped = match found {
            Ok(mapped) => mapped,
            Err(error @ PlanError::NoStages) => {
                return Err(Failure::refused(error.to_string(), "map the plan of a pipeline"));
            }
            Err(PlanError::Map(error @ MapError::Parallel { .. })) => {
                return Err(Failure::refused(error.to_string(), ""));
            }
            Err(error) => return Ok(Err(error.to_string())),
        };
        let on = GivenLimits::from(limits)
            .with(LimitKind::Devices, topology.devices() as u32)
            .on(Some(topology.machines()).filter(|_| family::of(&workload).on_machines()));
        let limits = family::resolve(&workload, &on).map_err(|missing| Failure::lacks(&workload.source, &missing))?;
        let score = family::check(&workload, &limits, &mapped.plan);
        if let Some(violation) = score.violations.first() {
            return Ok(Err(format!("the plan is not valid on {}: {violation}", topology.name)));
        }
        if search.cancelled() {
            mapped.part.notes.push("the search was stopped: this is the best mapping so far".into());
            let simulate =
                |after: &Search| Simulation::within(&workload, &limits, &mapped.plan, Setup::default(), after);
            if mapped.part.iteration_s.is_none() {
                match simulating(search, interrupt, simulate) {
                    Ok(simulation) => mapped.part.iteration_s = Some(simulation.timeline.iteration_s),
                    Err(given_up) => mapped.part.notes.push(given_up),
                }
            }
        }
        interrupt.follows();
        Ok(Ok(MapReport { workload, limits, mapped, score }))
    }
}

impl MapReport {
    fn document(&self, planner: Option<PlannerPart>) -> Document {
        let MapReport { workload, limits, mapped: MappedPlan { plan, part, .. }, score } = self;
        let measure = plan.measure;
        let objective = ObjectivePart {
            name: measure.name().into(),
            value: score.value,
            unit: measure.unit().into(),
            parameters: measure.parameters(),
        };
        let execution = plan.execution.map(ExecutionPart::from).unwrap_or_default();
        Document {
            schema: SCHEMA.into(),
            workload: Some(workload.into()),
            planner,
            limits: Some(limits_part(limits, family::of(workload).limits())),
            status: Some("feasible".into()),
            objective: Some(objective),
            lower_bound: None,
            proven_among: None,
            stages: stage_parts(workload, plan, Some(score)),
            configuration: plan.configuration().map(ConfigurationPart::from),
            configurations: vec![],
            cheaper: vec![],
            prediction: family::of(workload).prediction(limits, plan),
            cost: None,
            operators: family::operators::operator_parts(workload, plan),
            mapping: Some(part.clone()),
            schedule: execution.schedule,
            virtual_stages: execution.virtual_stages,
            warmup: execution.warmup,
            simulation: None,
            infeasible: None,
            stats: std::collections::BTreeMap::new(),
            notes: vec![],
        }
    }

    fn report(&self, topology: &Topology) -> String {
        let MappedPlan { plan, mapping, part, before } = &self.mapped;
        let mut text = String::new();
        let workers = units::counted(mapping.devices.len(), "part");
        let ending = match mapping {
            _ if mapping.proved => "proven optimal",
            Mapping { budget: true, .. } => "not proven: the search reached its limit of steps",
            _ => "not proven",
        };
        line(&mut text, format_args!("{}: {workers} on {}, by {}", self.workload.name, topology.name, part.method));
        let seconds = |seconds: f64| format!("{} of communication per microbatch", units::seconds(seconds));
        let at = |part: &MappingPart| {
            let width = part.bottleneck_bytes_per_s.map(units::bandwidth_exact).unwrap_or_default();
            part.bottleneck.as_ref().map(|place| format!(", most at {place} ({width})")).unwrap_or_default()
        };
        line(&mut text, format_args!("{}{}", seconds(mapping.cost.seconds), at(part)));
        line(&mut text, format_args!("{ending}; bound {}", units::seconds(mapping.lower_bound_s)));
        if let Some(seconds) = part.iteration_s {
            let told = before.as_ref().and_then(|before| before.2);
            let told = told.map(|before| format!("; before, {}", units::seconds(before))).unwrap_or_default();
            line(&mut text, format_args!("an iteration simulated on the routes: {}{told}", units::seconds(seconds)));
        }
        if let Some((devices, cost, _)) = before {
            let change = if *devices == mapping.devices {
                "the same devices".into()
            } else if cost.seconds > mapping.cost.seconds && mapping.cost.seconds > 0.0 {
                format!("{:.2}x as long", cost.seconds / mapping.cost.seconds)
            } else {
                "no longer than before".into()
            };
            line(
                &mut text,
                format_args!("before, on the plan's own device numbers: {} ({change})", seconds(cost.seconds)),
            );
        }
        line(&mut text, format_args!(""));
        let mut rows = vec![["stage", "replica", "shard", "device", "machine"].map(String::from).to_vec()];
        let mut next = mapping.devices.iter();
        for (number, stage) in plan.stages.iter().enumerate() {
            // A plan over machines splits samples: its devices are the stage's replicas, as its degrees say.
            for replica in 0..stage.data_parallel.max(1) {
                for shard in 0..stage.tensor_parallel.max(1) {
                    let Some(&device) = next.next() else { break };
                    rows.push(vec![
                        (number + 1).to_string(),
                        replica.to_string(),
                        shard.to_string(),
                        topology.device_name(device).into(),
                        topology.machine_of(device).to_string(),
                    ]);
                }
            }
        }
        table(&mut text, &rows);
        let order: Vec<String> = mapping.devices.iter().map(ToString::to_string).collect();
        line(&mut text, format_args!("\nrank order: {}", order.join(",")));
        if topology.machines().sizes().len() == 1 {
            line(&mut text, format_args!("rank i runs part i with CUDA_VISIBLE_DEVICES={}", order.join(",")));
        }
        if let Measure::Speedup(_) = plan.measure {
            let worth = plan.measure.show(self.score.value);
            line(&mut text, format_args!("on these devices, in {}: {worth}", plan.measure.model()));
        }
        for note in &part.notes {
            line(&mut text, format_args!("note: {note}"));
        }
        text
    }
}
