//! The published planner in the registry.

use super::{
    super::settings,
    Candidate, Faults, HpgoModel, candidates,
    candidates::Candidates,
    data_parallel::{DataParallel, data_parallel},
    length::event_speedup,
    placement,
};
use crate::{Declaration, OptionKind, OptionSpec, Options, Outcome, Planner, PlannerInfo, Problem, Statistics, Status};
use plantui_core::{
    cluster::LimitKind,
    family,
    plan::{Basis, Length, Measure, Plan, SpeedupModel, Stage},
    search::Search,
    workload::{
        Choice,
        states::{States, StatesError},
    },
};

const fn fault(name: &'static str, label: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, label, help, kind: OptionKind::Flag { default: true } }
}

static OPTIONS: [OptionSpec; 15] = [
    settings::MICRO_BATCH,
    settings::OPTIMIZER,
    settings::PEAK_ACTIVATION,
    settings::NVLINK,
    settings::ETHERNET,
    settings::ALL_REDUCE,
    settings::STATES,
    OptionSpec {
        name: "faithful",
        label: "faithful",
        help: "keep the faults of the published planner named below; false corrects all of them",
        kind: OptionKind::Flag { default: true },
    },
    fault(
        "boundary_parameters",
        "shared cut",
        "fault: a stage's all-reduce counts the first state of the next stage too",
    ),
    fault("undivided_fill", "undivided fill", "fault: warm-up ignores replicated stages"),
    fault("one_way_cut", "one-way cut", "fault: two-stage pipelines count activations and not their gradients"),
    fault("any_cut", "any cut", "fault: two-stage pipelines may be cut where branches do not allow it"),
    fault(
        "mirrored_forward",
        "mirrored P3",
        "fault: P3 overlaps an all-reduce with the layer at the other end of the network",
    ),
    fault("even_halves", "even halves", "fault: the forward and backward pass are half of a layer's time each"),
    fault("memory_unchecked", "memory ignored", "fault: memory never rules a plan out"),
];

/// Declaration of the planner.
static DECLARATION: Declaration = Declaration {
    info: PlannerInfo {
        id: "dapple-hpgo",
        name: "DAPPLE (as published)",
        paper: "Fan et al.: DAPPLE, PPoPP 2021; as computed by HPGO, its published planner",
        summary: "one, two or n stages over machines, with the published recurrence",
        objective: "speedup",
        unit: "x",
    },
    options: &OPTIONS,
    tunables: &settings::LINKS,
    limits: &LimitKind::LAYERS,
    can_plan: |workload| settings::layers(workload).map(drop),
    check_options: settings::check_states,
    ..Declaration::NEW
};

/// Published planner of DAPPLE.
#[derive(Debug, Clone, Copy)]
pub struct Hpgo;

/// Returns the faults that the options keep.
fn faults(options: &Options) -> Faults {
    let kept = |name: &str| options.flag("faithful") && options.flag(name);
    Faults {
        boundary_parameters: kept("boundary_parameters"),
        undivided_fill: kept("undivided_fill"),
        one_way_cut: kept("one_way_cut"),
        any_cut: kept("any_cut"),
        mirrored_forward: kept("mirrored_forward"),
        even_halves: kept("even_halves"),
        memory_unchecked: kept("memory_unchecked"),
    }
}

impl Planner for Hpgo {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn plan(&self, problem: &Problem, search: &Search) -> Outcome {
        let (workload, limits, options) = (&problem.workload, &problem.limits, &problem.options);
        let Some(profile) = workload.layers() else { return Outcome::new(Status::Infeasible) };
        if limits.devices > placement::MOST {
            let most = placement::MOST;
            return Outcome::refused(format!(
                "The published planner's tables hold {most} devices, not {}.",
                limits.devices
            ));
        }
        // The length depends on the best plan and is set when it is found.
        let speedup = settings::model(profile, options, Length::Synchronous { whole_samples: false });
        let settings::Cuts { states, linear, complete, note } = match settings::cuts(workload, profile, options, search)
        {
            Ok(cuts) => cuts,
            Err(StatesError::Stopped) => return Outcome::new(Status::Cancelled),
            Err(error) => return Outcome::refused(settings::no_states(workload, error)),
        };
        let speedup = SpeedupModel { linear, ..speedup };
        let (machines, samples, memory) = (limits.machines.clone(), limits.samples(), limits.memory());
        let model = HpgoModel::new(&states, machines, samples, memory, speedup, faults(options));
        let all = candidates(&model, search);
        let stopped = search.cancelled();
        let mut outcome = Outcome::new(if stopped { Status::Cancelled } else { Status::Feasible });
        let plain = data_parallel(&model);
        outcome.statistics = statistics(&model, &plain, &all);
        outcome.notes = notes(&model, &plain, &all);
        outcome.notes.extend(note);
        match best_plan(problem, &model, &states, &all) {
            Some((best, value, plan)) => {
                search.improve(value, &plan);
                outcome
                    .statistics
                    .counts
                    .extend(event_speedup(&model, &best.stages, best.pipelines).map(|event| ("event_speedup", event)));
                let counts =
                    [("pipelines", f64::from(best.pipelines)), ("microbatches", f64::from(best.microbatches(&model)))];
                outcome.statistics.counts.extend(counts);
                // If cuts were left out, the state after a stage is not the one that the published fault counts.
                outcome.objective = Some(if complete { best.speedup } else { value });
                outcome.plan = Some(plan);
            }
            None if !stopped => {
                let (batch, micro) = (limits.samples(), speedup.micro_batch);
                let statistics = std::mem::take(&mut outcome.statistics);
                let why = format!(
                    "No plan of the published planner fits: a batch of {batch} in microbatches of {micro} on {} \
                    devices with {} each.",
                    limits.devices,
                    plantui_core::units::bytes_exact(limits.memory_limit())
                );
                outcome = Outcome { statistics, ..Outcome::refused(why) };
            }
            None => {}
        }
        if outcome.plan.is_some() {
            // Upper bound on the speed-up: devices that never wait.
            outcome.lower_bound = (!complete || stopped).then(|| f64::from(limits.devices));
            if search.deadline_passed() {
                outcome.status = Status::Feasible;
            }
        }
        outcome.statistics.seconds = search.elapsed().as_secs_f64();
        outcome
    }
}

/// Returns the best valid plan with its value; among equal ones the last in the list.
fn best_plan<'a>(
    problem: &Problem,
    model: &HpgoModel<'_>,
    states: &States,
    all: &'a Candidates,
) -> Option<(&'a Candidate, f64, Plan)> {
    let mut order: Vec<&Candidate> = all.plans.iter().rev().filter(|plan| plan.speedup > 0.0).collect();
    order.sort_by(|a, b| b.speedup.total_cmp(&a.speedup));
    order.into_iter().find_map(|candidate| {
        let plan = plan(model, states, candidate);
        let score = family::check(&problem.workload, &problem.limits, &plan);
        score.is_valid().then_some((candidate, score.value, plan))
    })
}

/// Converts a candidate to a plan over nodes.
pub(in crate::dapple) fn plan(model: &HpgoModel<'_>, states: &States, candidate: &Candidate) -> Plan {
    let stage = |stage: &super::length::Stage| {
        let nodes = states.nodes(stage.from, stage.to);
        let devices = placement::ids(stage.devices);
        Stage {
            choices: vec![Choice::Keep; nodes.len()],
            nodes,
            data_parallel: devices.len() as u32,
            tensor_parallel: 1,
            devices,
        }
    };
    let length = Length::Published {
        pipelines: candidate.pipelines,
        two_way: candidate.two_way,
        boundary_parameters: model.faults.boundary_parameters,
        undivided_fill: model.faults.undivided_fill,
        memory_unchecked: model.faults.memory_unchecked,
    };
    Plan {
        stages: candidate.stages.iter().map(stage).collect(),
        measure: Measure::Speedup(SpeedupModel { length, ..model.speedup }),
        basis: Basis::States(candidate.stages.iter().map(|stage| states.number(stage.to)).collect()),
        ..Plan::default()
    }
}

fn statistics(model: &HpgoModel<'_>, plain: &DataParallel, all: &Candidates) -> Statistics {
    let mut counts = vec![
        ("states", model.states() as f64),
        ("plans", all.plans.len() as f64),
        ("all_reduce_s", plain.all_reduce_s),
        ("largest_batch_of_a_device", plain.largest_batch as f64),
    ];
    counts.extend(plain.statistics());
    counts.push(("data_parallel_p3_infinite_speedup", plain.p3_infinite));
    let optional = [
        ("data_parallel_p3_optimal_speedup", plain.p3_optimal),
        ("gradient_accumulation_size_optimal", plain.optimal_accumulation_size.map(f64::from)),
        ("multistage_speedup", all.best_of_many_stages().map(|plan| plan.speedup)),
    ];
    counts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    Statistics { counts, ..Statistics::default() }
}

fn notes(model: &HpgoModel<'_>, plain: &DataParallel, all: &Candidates) -> Vec<String> {
    let mut notes =
        vec!["speed-ups are relative to one device without a memory limit that computes the whole batch".to_string()];
    notes.extend(all.missing.iter().cloned());
    if plain.accumulation_size.is_none() {
        notes.push(
            "no figures for data parallelism with overlap: not even one sample fits on a device (the published \
            program crashes)"
                .into(),
        );
    }
    if model.faults.memory_unchecked {
        notes.push("as published, memory limits only the microbatches of data parallelism, not the plan".into());
    }
    if let Some(p3) = plain.p3
        && all.best().is_some_and(|best| p3 > best.speedup)
    {
        notes.push(format!("data parallelism with P3 would be faster: {}x", plantui_core::units::number(p3)));
    }
    notes
}
