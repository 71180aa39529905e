//! Reads a plan for a workload: plantui's document, or Piper's own result format.
//!
//! All content of a document is checked. A contradiction with the workload or within the document is refused here.
//! Claims about the plan's value are returned as `Claims` for the code that measures the plan. `O(file)`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    kinds::{self, KindCount},
    operators::operator_parts,
    pipeline::result_file,
    placement::split_file,
};
use crate::{
    cluster::{
        GivenLimits, Limits,
        topology::{self, Topology},
    },
    family,
    plan::{
        Basis, Configuration, Measure, Plan, Stage,
        configuration::ConfigurationPart,
        document::{ExecutionPart, KindPart, OperatorPart, SCHEMA, TrainingPart},
        figures::{Claims, Figures, PredictionFigures, SimulationFigures, StageFigures},
    },
    source::{
        LoadError,
        error::{printable, single_line},
        strict::{JsonPairs, Object},
        syntax,
    },
    units::exact_number,
    workload::{
        Choice, NodeId, NodeIndex, Recipe, Workload,
        formats::{
            PlanTopology,
            detect::{self, PLAN},
        },
        training::settings::{Stack, TrainingSettings},
    },
};

/// Allowed values of `status`.
const STATUS_WORDS: [&str; 4] = ["optimal", "feasible", "infeasible", "cancelled"];

/// Plan from a file, with the file's statements about it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedPlan {
    /// Plan over the workload's node indices.
    pub plan: Plan,
    /// Limits in the file.
    pub limits: GivenLimits,
    /// Id of the planner, if the file has it.
    pub planner: Option<String>,
    /// Recipe of the workload's network, if the file has it.
    pub recipe: Option<Recipe>,
    /// Training settings of the model, if the file has them.
    pub training: Option<TrainingPart>,
    /// Kinds of devices that the plan was made for, if the file has several.
    pub kinds: Vec<KindPart>,
    /// Options of the planner, if the file has them: numbers, words, true or false by name.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Claims of the file about the plan's value.
    pub claims: Claims,
    /// Other figures of the file.
    pub figures: Figures,
    /// Format of the file: `plantui plan`, `Piper result` or `placement split`.
    pub kind: &'static str,
    /// Assumptions made in reading, a sentence each.
    pub notes: Vec<String>,
    /// Number of accelerators in a device placement, if known. Its CPUs have the numbers after them.
    pub accelerators: Option<u32>,
}

impl LoadedPlan {
    /// Workload with the prices that the plan was made for, if they differ. Kinds without a price in the file keep theirs.
    pub fn at_its_prices(&self, workload: &Workload) -> Option<Workload> {
        let own = KindCount::of(workload);
        let said = |id: &str| self.kinds.iter().find(|kind| kind.id == id).and_then(|kind| kind.price_per_hour);
        let priced =
            |kind: &KindCount| KindCount { price_per_hour: said(&kind.id).or(kind.price_per_hour), ..kind.clone() };
        let priced: Vec<KindCount> = own.iter().map(priced).collect();
        if priced == own { None } else { kinds::over(workload, &priced).ok() }
    }

    /// First training field that differs between plan and workload, with both values. Settings that a plan of an earlier
    /// version lacks have the values of its software.
    pub fn trained_otherwise(&self, workload: &Workload) -> Option<(String, [String; 2])> {
        let (made, now) = (self.training.as_ref()?, family::of(workload).training_part()?);
        let fields = |part: &TrainingPart| -> BTreeMap<String, String> {
            let TrainingPart { hardware, sequence_length, precision, stack, settings, figures, constants, .. } = part;
            let own = [("hardware", hardware), ("precision", precision), ("stack", stack)];
            let own = own.into_iter().map(|(name, value)| (name.to_string(), value.clone()));
            let numbers = figures.iter().chain(constants).map(|(name, value)| (name.clone(), exact_number(*value)));
            let length = ("sequence_length".to_string(), sequence_length.to_string());
            let usual = Stack::find(stack).unwrap_or_default().settings();
            let usual = TrainingSettings::NAMES.into_iter().map(|(name, _)| (name.to_string(), usual.text(name)));
            usual.chain(own).chain([length]).chain(settings.clone()).chain(numbers).collect()
        };
        let (made, now) = (fields(made), fields(&now));
        let names: BTreeSet<&String> = made.keys().chain(now.keys()).collect();
        let differs = names.into_iter().find(|name| made.get(*name) != now.get(*name))?;
        let value = |all: &BTreeMap<String, String>| all.get(differs).cloned().unwrap_or_else(|| "none".into());
        Some((differs.clone(), [value(&made), value(&now)]))
    }

    /// Renumbers the CPUs of a device placement for the number of accelerators in these limits.
    pub fn under(&mut self, limits: &Limits) {
        if let Some(own) = self.accelerators.filter(|&own| own != limits.devices) {
            self.plan = std::mem::take(&mut self.plan).with_cpus_behind(own, limits.devices);
        }
    }
}

#[derive(Debug, Deserialize)]
struct RawDocument {
    workload: Option<Object<RawWorkload>>,
    planner: Option<Object<RawPlanner>>,
    limits: Option<Object<GivenLimits>>,
    status: Option<String>,
    objective: Option<Object<RawObjective>>,
    lower_bound: Option<f64>,
    stages: Vec<Object<RawStage>>,
    operators: Option<Vec<Object<OperatorPart>>>,
    mapping: Option<Object<RawMapping>>,
    configuration: Option<Object<ConfigurationPart>>,
    simulation: Option<Object<SimulationFigures>>,
    prediction: Option<Object<PredictionFigures>>,
    schedule: Option<String>,
    virtual_stages: Option<u32>,
    warmup: Option<String>,
}

/// Fields of a mapping that a plan needs or that can be checked.
#[derive(Debug, Deserialize)]
struct RawMapping {
    topology: String,
    file: Option<String>,
    devices: Option<Vec<u32>>,
    iteration_s: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct RawPlanner {
    id: Option<String>,
    #[serde(default)]
    options: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct RawWorkload {
    nodes: Option<f64>,
    edges: Option<f64>,
    profile_batch: Option<u32>,
    recipe: Option<Recipe>,
    training: Option<TrainingPart>,
    #[serde(default)]
    kinds: Vec<KindPart>,
}

#[derive(Debug, Deserialize)]
struct RawObjective {
    name: String,
    value: f64,
    unit: String,
    #[serde(default)]
    parameters: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct RawStage {
    nodes: Vec<NodeId>,
    data_parallel: u32,
    tensor_parallel: u32,
    #[serde(default)]
    devices: Vec<u32>,
    choices: Option<JsonPairs<String>>,
    last_state: Option<u32>,
    compute_s: Option<f64>,
    communication_s: Option<f64>,
    sync_s: Option<f64>,
    memory_bytes: Option<f64>,
}

/// Reads a plan for a workload.
///
/// # Errors
/// [`LoadError`] if the text is not a plan, names nodes that the workload lacks, or contradicts itself.
pub fn read(workload: &Workload, text: &str, source: &str) -> Result<LoadedPlan, LoadError> {
    let text = detect::text(text.as_bytes(), source, &PLAN)?;
    if detect::is_layer_profile(text) {
        return super::layers::staged_graph::read(workload, text, source);
    }
    detect::object(text, source, &PLAN)?;
    // Only fields of the top level. Repeated ones are left to the format's reader, which refuses them.
    let fields: BTreeMap<Cow<'_, str>, &RawValue> = parse(text, source)?;
    match fields.get("schema").map(|schema| serde_json::from_str::<String>(schema.get())) {
        Some(Ok(schema)) if schema == SCHEMA => read_document(workload, text, source),
        Some(schema) => {
            let problem = schema.map_or("must be a string".into(), |other| format!("is `{}`", printable(&other)));
            Err(LoadError::at(source, "schema", problem, format!("this version reads {SCHEMA}")))
        }
        None if fields.contains_key("stages") && text.contains("\"data_parallel\"") => {
            let repair = format!("add `\"schema\": \"{SCHEMA}\"`");
            Err(LoadError::file(source, "lacks the field `schema`", repair))
        }
        None if fields.contains_key("stages") => result_file::read(workload, text, source),
        None if fields.contains_key("fpgas") || fields.contains_key("cpus") => split_file::read(workload, text, source),
        None if fields.contains_key("nodes") && fields.contains_key("edges") => {
            Err(LoadError::file(source, "is a workload, not a plan", "name the workload first and the plan second"))
        }
        None => Err(LoadError::file(source, "is not a plan: the field `stages` is missing", PLAN.give())),
    }
}

/// True if a text is meant as a plan, valid or not: it has fields that only plans have. A workload with errors is still
/// read as a workload.
pub fn is_plan(text: &str) -> bool {
    let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(text) else { return false };
    let has = |name: &str| fields.contains_key(name);
    let schema = fields.get("schema").is_some_and(|schema| schema.get().starts_with("\"plantui.plan/"));
    schema || has("stages") || (!has("nodes") && (has("fpgas") || has("cpus")))
}

/// Parses a whole text. Errors have line and path.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str, source: &str) -> Result<T, LoadError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value =
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| syntax::refuse(source, text, &error))?;
    deserializer.end().map_err(|error| {
        LoadError::file(source, "has text after the end of its JSON object", "remove it").on_line(Some(error.line()))
    })?;
    Ok(value)
}

/// Topology of the plan's devices, from its mapping; `None` for machines without a name outside the plan.
fn topology(mapping: &RawMapping, plan: &Plan, source: &str) -> Result<Option<Arc<Topology>>, LoadError> {
    let read = match &mapping.file {
        Some(file) => Some(PlanTopology::read(file).map_err(|error| {
            let problem = format!("is `{}`, which cannot be read: {error}", printable(file));
            LoadError::at(source, "mapping.file", problem, "give the topology file of the plan")
        })?),
        None => {
            topology::named(&mapping.topology).ok().map(|known| PlanTopology { topology: Arc::new(known), file: None })
        }
    };
    if let Some(devices) = &mapping.devices
        && !devices.iter().copied().eq(plan.devices())
    {
        let problem = "names other devices than the stages do";
        let repair = "it must list the devices of the stages, one after another";
        return Err(LoadError::at(source, "mapping.devices", problem, repair));
    }
    let Some(PlanTopology { topology, .. }) = read else { return Ok(None) };
    if let Some(device) = plan.devices().find(|&device| device as usize >= topology.devices()) {
        let problem = format!("has {} devices, and a stage sits on device {device}", topology.devices());
        return Err(LoadError::at(source, "mapping.topology", problem, "name the topology of the plan"));
    }
    Ok(Some(topology))
}

fn read_document(workload: &Workload, text: &str, source: &str) -> Result<LoadedPlan, LoadError> {
    let document: RawDocument = parse(text, source)?;
    if let Some(Object(part)) = &document.workload {
        of_this_workload(workload, part, source)?;
    }
    let stated = document.workload.as_ref().and_then(|Object(part)| part.profile_batch);
    // Plans of earlier versions have it in the planner's options.
    let option = document.planner.as_ref().and_then(|Object(planner)| planner.options.get("profile_batch")?.as_f64());
    of_this_batch(workload, stated.map(f64::from).or(option), source)?;
    let recipe = document.workload.as_ref().and_then(|Object(part)| part.recipe);
    let training = document.workload.as_ref().and_then(|Object(part)| part.training.clone());
    let kinds = document.workload.as_ref().map_or_else(Vec::new, |Object(part)| part.kinds.clone());
    if let Some(recipe) = &recipe {
        recipe.validate(source, "workload.recipe")?;
    }
    if let Some(status) = &document.status {
        known_status(status, document.stages.is_empty(), source)?;
    }
    let mut figures = Figures { status: document.status, ..Figures::default() };
    figures.simulation = document.simulation.map(|Object(simulation)| simulation);
    figures.prediction = document.prediction.map(|Object(prediction)| prediction).unwrap_or_default();
    let (schedule, virtual_stages, warmup) = (document.schedule, document.virtual_stages, document.warmup);
    let execution = ExecutionPart { schedule, virtual_stages, warmup }.read(source)?;
    let mut plan = Plan { execution, ..Plan::default() };
    let mut last_states = vec![];
    let by_id = workload.by_id();
    for (i, Object(part)) in document.stages.into_iter().enumerate() {
        let choices = part.choices.map_or_else(Vec::new, |JsonPairs(pairs)| pairs);
        let (nodes, choices) = nodes_with_modes((workload, &by_id), &part.nodes, choices, source, i, "choices")?;
        figures.stages.push(StageFigures {
            compute_s: part.compute_s,
            communication_s: part.communication_s,
            sync_s: part.sync_s,
            memory_bytes: part.memory_bytes,
        });
        let (data_parallel, tensor_parallel) = (part.data_parallel, part.tensor_parallel);
        last_states.extend(part.last_state);
        plan.stages.push(Stage { nodes, choices, data_parallel, tensor_parallel, devices: part.devices });
    }
    check_device_count(workload, &plan, ("data_parallel", "tensor_parallel"), source)?;
    if !last_states.is_empty() {
        plan.basis = Basis::States(last_states);
    }
    if let Some(Object(part)) = document.configuration.filter(|_| workload.training().is_some()) {
        let refuse = |(field, problem)| LoadError::at(source, format!("configuration.{field}"), problem, "");
        plan.basis = Basis::Configuration(Configuration::try_from(&part).map_err(refuse)?.into());
    }
    if let Some(parts) = document.operators {
        same_splits(workload, &plan, &parts, source)?;
    }
    let (planner, options) = document.planner.map(|Object(planner)| (planner.id, planner.options)).unwrap_or_default();
    if let Some((name, value)) =
        options.iter().find(|(_, value)| value.is_null() || value.is_array() || value.is_object())
    {
        let place = format!("planner.options.{}", printable(name));
        let problem = format!("is {}", printable(&value.to_string()));
        return Err(LoadError::at(source, place, problem, "an option is a number, a word, true or false"));
    }
    let mut notes = vec![];
    let mut told = options.clone();
    let claimed = document.objective.map(|Object(part)| part);
    told.extend(claimed.iter().flat_map(|part| part.parameters.clone()));
    plan.measure = match &claimed {
        Some(part) => measure(workload, part, &told, source)?,
        None => family::measure(workload),
    };
    if let Some(bound) = document.lower_bound.filter(|bound| *bound < 0.0) {
        let problem = format!("is {}, and no measure of plans is below 0", exact_number(bound));
        return Err(LoadError::at(source, "lower_bound", problem, "leave it out if it is unknown"));
    }
    let claims =
        Claims { value: claimed.map(|part| part.value), lower_bound: document.lower_bound, ..Claims::default() };
    let limits = document.limits.map(|Object(limits)| limits).unwrap_or_default();
    let accelerators = limits.devices().or(workload.limits.devices());
    // Where there are kinds, CPUs are numbered after the accelerators of all.
    let alike = KindCount::of(workload).is_empty();
    if plan.stages.iter().all(|stage| stage.devices.is_empty()) {
        plan = family::of(workload).numbered(plan, accelerators);
    }
    if let Some(Object(mapping)) = document.mapping {
        plan.topology = topology(&mapping, &plan, source)?;
        figures.mapped_iteration_s = mapping.iteration_s.filter(|_| plan.topology.is_some());
        if plan.topology.is_none() {
            let name = printable(&mapping.topology);
            notes.push(format!("the plan is mapped to {name}, which is not a preset: its routes are not simulated"));
        }
    }
    let kind = "plantui plan";
    Ok(LoadedPlan {
        plan,
        limits,
        planner,
        recipe,
        training,
        kinds,
        options,
        claims,
        figures,
        kind,
        notes,
        accelerators: accelerators.filter(|_| alike),
    })
}

/// Refuses a plan with more devices than plans of the workload may have, before data is allocated for each of them. The
/// fields are those of a stage's degrees.
pub(crate) fn check_device_count(
    workload: &Workload,
    plan: &Plan,
    (data, tensor): (&str, &str),
    source: &str,
) -> Result<(), LoadError> {
    let most = u64::from(family::of(workload).most_devices());
    let mut all = 0;
    for (i, stage) in plan.stages.iter().enumerate() {
        let (replicas, degree) = (u64::from(stage.data_parallel), u64::from(stage.tensor_parallel));
        for (field, value) in [(data, replicas), (tensor, degree)] {
            if value > most {
                let problem = format!("is {value}, and a plan has no more than {most} devices");
                return Err(LoadError::at(source, format!("stages[{i}].{field}"), problem, "check its degrees"));
            }
        }
        all += replicas * degree;
        if all > most {
            let problem = format!(
                "is on {replicas} x {degree} devices, {all} with the stages before it; a plan has no more than {most}"
            );
            return Err(LoadError::at(source, format!("stages[{i}]"), problem, "check its degrees"));
        }
    }
    Ok(())
}

/// Refuses a plan that was made for a workload of another size.
fn of_this_workload(workload: &Workload, part: &RawWorkload, source: &str) -> Result<(), LoadError> {
    for (field, said, there) in
        [("nodes", part.nodes, workload.nodes.len()), ("edges", part.edges, workload.dag.edges().len())]
    {
        if let Some(said) = said.filter(|&said| said != there as f64) {
            return Err(LoadError::at(
                source,
                format!("workload.{field}"),
                format!("is {}, but {} has {there}", exact_number(said), workload.name),
                "the plan belongs to another workload: check it with that one",
            ));
        }
    }
    let own: Vec<KindPart> = KindCount::of(workload).into_iter().map(Into::into).collect();
    // A kind without devices changes no device's number.
    let counts = |kinds: &[KindPart]| -> Vec<(String, u32)> {
        kinds.iter().filter(|kind| kind.devices > 0).map(|kind| (kind.id.clone(), kind.devices)).collect()
    };
    let same = |a: &[KindPart], b: &[KindPart]| counts(a) == counts(b);
    if !part.kinds.is_empty() && !same(&part.kinds, &own) {
        let text = |kinds: &[KindPart]| {
            let each: Vec<String> =
                kinds.iter().map(|kind| format!("{}x{}", kind.devices, printable(&kind.id))).collect();
            each.join(",")
        };
        let there = if own.is_empty() { "one kind of device".into() } else { text(&own) };
        let problem = format!("is {}, but {} has {there}", text(&part.kinds), workload.name);
        let priced = part.kinds.iter().map(|kind| KindCount {
            id: printable(&kind.id),
            count: kind.devices,
            price_per_hour: kind.price_per_hour,
        });
        let repair = format!("give --devices {}", KindCount::list(&priced.collect::<Vec<_>>()));
        return Err(LoadError::at(source, "workload.kinds", problem, repair));
    }
    Ok(())
}

/// Refuses a plan that took the workload's times as those of another batch size.
fn of_this_batch(workload: &Workload, said: Option<f64>, source: &str) -> Result<(), LoadError> {
    let own = family::of(workload).profile_batch().map(|batch| f64::from(batch.samples));
    match (said, own) {
        (Some(said), Some(own)) if said != own => {
            let (said, name) = (exact_number(said), &workload.name);
            Err(LoadError::at(
                source,
                "workload.profile_batch",
                format!("is {said}: the plan reads the profile's times for {said} samples, and {name} for {own}"),
                format!("give --profile-batch {said}, or plan again"),
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses splits by operator that differ from the stages' choices.
fn same_splits(
    workload: &Workload,
    plan: &Plan,
    parts: &[Object<OperatorPart>],
    source: &str,
) -> Result<(), LoadError> {
    let chosen = operator_parts(workload, plan);
    let chosen_of: FxHashMap<NodeId, &OperatorPart> = chosen.iter().map(|own| (own.node, own)).collect();
    let planned: FxHashSet<NodeId> =
        plan.stages.iter().flat_map(|stage| &stage.nodes).map(|&node| workload.nodes[node].id).collect();
    let mut seen = FxHashSet::default();
    for (i, Object(part)) in parts.iter().enumerate() {
        let refuse =
            |problem: String, repair: &str| Err(LoadError::at(source, format!("operators[{i}].node"), problem, repair));
        if !planned.contains(&part.node) {
            let repair = "the stages' nodes count: correct it, or remove `operators`";
            return refuse(format!("is {}, which is no node of the stages", part.node), repair);
        }
        if !seen.insert(part.node) {
            return refuse(format!("is {}, which is listed already", part.node), "keep one entry for every operator");
        }
        // An unreadable choice is reported by the check.
        let Some(own) = chosen_of.get(&part.node) else { continue };
        let differs = |name: &String| part.splits.get(name).is_some_and(|said| Some(said) != own.splits.get(name));
        if let Some(name) = part.splits.keys().find(|name| differs(name)) {
            let there = own.splits.get(name).map_or_else(|| "nothing".to_string(), ToString::to_string);
            return Err(LoadError::at(
                source,
                format!("operators[{i}].splits.{}", printable(name)),
                format!("is {}, but the choice of node {} says {there}", part.splits[name], part.node),
                "the stages' choices count: correct one of the two, or remove `operators`",
            ));
        }
    }
    match chosen.iter().find(|own| !parts.is_empty() && !seen.contains(&own.node)) {
        Some(missing) => {
            let problem = format!("lacks node {}", missing.node);
            Err(LoadError::at(source, "operators", problem, "add its splits, or remove `operators`"))
        }
        None => Ok(()),
    }
}

fn known_status(status: &str, empty: bool, source: &str) -> Result<(), LoadError> {
    if !STATUS_WORDS.contains(&status) {
        let problem = format!("is `{}`, which is not known", printable(status));
        return Err(LoadError::at(source, "status", problem, format!("it may be {}", STATUS_WORDS.join(", "))));
    }
    // A stopped planner may have found a plan. A planner that proved infeasibility has none.
    if status == "infeasible" && !empty {
        let repair = "remove `status`, or the stages";
        return Err(LoadError::at(source, "status", "is `infeasible`, but there are stages", repair));
    }
    Ok(())
}

/// Measure of the plan, if plans of this workload support it.
fn measure(
    workload: &Workload,
    part: &RawObjective,
    options: &BTreeMap<String, serde_json::Value>,
    source: &str,
) -> Result<Measure, LoadError> {
    let known = family::of(workload).measures(options);
    let refuse = |field: &str, said: &str, repair: String| {
        let problem = format!("is `{}`, which is not a known measure", printable(said));
        LoadError::at(source, format!("objective.{field}"), problem, repair)
    };
    let Some(measure) = known.iter().find(|measure| measure.name() == part.name) else {
        let names: Vec<String> = known.iter().map(|m| format!("{} in {}", m.name(), m.unit())).collect();
        let repair = format!("only {} is: convert it, or remove `objective`", names.join(", "));
        return Err(refuse("name", &part.name, repair));
    };
    if part.unit != measure.unit() {
        let repair = format!("only {} in {} is: convert it, or remove `objective`", measure.name(), measure.unit());
        return Err(refuse("unit", &part.unit, repair));
    }
    Ok(*measure)
}

/// Node indices of a stage, ascending, with the mode of each. Every node needs exactly one mode, and other ids have
/// none. `by_id` is [`Workload::by_id`].
pub(crate) fn nodes_with_modes(
    (workload, by_id): (&Workload, &FxHashMap<NodeId, NodeIndex>),
    ids: &[NodeId],
    modes: Vec<(String, String)>,
    source: &str,
    stage: usize,
    field: &str,
) -> Result<(Vec<NodeIndex>, Vec<Choice>), LoadError> {
    let place = format!("stages[{stage}].{field}");
    let refuse = |problem: String, repair: String| Err(LoadError::at(source, place.clone(), problem, repair));
    let members: FxHashSet<NodeId> = ids.iter().copied().collect();
    let mut mode_of: FxHashMap<NodeId, String> = FxHashMap::default();
    for (key, mode) in modes {
        let Some(id) = key.parse().ok().map(NodeId).filter(|id| members.contains(id)) else {
            return refuse(
                format!("lists `{}`, which is not a node of the stage", printable(&key)),
                "remove it".into(),
            );
        };
        // Names must be normalised as in the reader of workloads, because they are compared.
        if mode_of.insert(id, single_line(&mode)).is_some() {
            return refuse(format!("lists node {id} twice"), "keep one mode for every node".into());
        }
    }
    let mut pairs = Vec::with_capacity(ids.len());
    for (i, &id) in ids.iter().enumerate() {
        let Some(&index) = by_id.get(&id) else {
            let problem = format!("is {id}, which is not a node of {}", workload.name);
            let repair = "check the plan with its own workload";
            return Err(LoadError::at(source, format!("stages[{stage}].nodes[{i}]"), problem, repair));
        };
        let Some(mode) = mode_of.get(&id) else {
            let repair =
                format!("add `\"{id}\": \"{}\"` or another of its choices", family::of(workload).example_choice(index));
            return refuse(format!("has no choice for node {id}"), repair);
        };
        pairs.push((index, Choice::read(&workload.profile, mode.clone())));
    }
    pairs.sort();
    Ok(pairs.into_iter().unzip())
}
