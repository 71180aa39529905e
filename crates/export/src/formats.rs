//! Table of the formats that a plan can be exported to. The command line, the screen, completions and help use it.

use std::{
    io::{self, Write},
    sync::LazyLock,
};

use super::{
    chrome_trace,
    engine::{self, Engine},
    jax_sharding, operator_dot, pipedream_graph, pipeline_dot, piper_result, plan_csv, plan_json, plan_svg, rank_file,
    split,
};
use plantui_core::{
    cluster::Limits,
    family,
    plan::{Plan, Score},
    schedule::csv,
    simulate::{Pipeline, PipelineStage, Schedule},
    workload::Workload,
};

/// Export format for plans.
#[derive(Debug)]
pub struct PlanFormat {
    /// Name for scripts, such as `plan-json`.
    pub id: &'static str,
    /// Former names for scripts; accepted, not shown.
    pub aliases: &'static [&'static str],
    /// Title for people.
    pub title: &'static str,
    /// Purpose in one line.
    pub help: &'static str,
    /// Further words that a search finds it by.
    pub keywords: &'static str,
    /// Suffix of its files, after the name of the workload.
    pub suffix: &'static str,
    /// Families whose plans it can hold, by [`Family::id`](plantui_core::family::Family::id); empty for all.
    pub families: &'static [&'static str],
    /// Further families of which it can hold some plans, as the format's own rules decide.
    pub perhaps: &'static [&'static str],
    /// Function that writes it.
    pub writes: FormatWriter,
}

/// Input and function of a format.
#[derive(Clone, Copy)]
pub enum FormatWriter {
    /// The whole run: the problem and its outcome. A plan is not required.
    Run,
    /// A valid plan with its score.
    Plan(fn(&ScoredPlan<'_>) -> String),
    /// One simulated batch.
    Trace,
    /// Order of actions of a pipeline.
    Schedule,
    /// Input of an engine: the nearest plan that it can run, and the losses.
    Engine(Engine),
}

impl std::fmt::Debug for FormatWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FormatWriter::Run => "Run",
            FormatWriter::Plan(_) => "Plan",
            FormatWriter::Trace => "Trace",
            FormatWriter::Schedule => "Schedule",
            FormatWriter::Engine(_) => "Engine",
        })
    }
}

/// Plan with its score.
#[derive(Debug, Clone, Copy)]
pub struct ScoredPlan<'a> {
    /// Workload of the plan.
    pub workload: &'a Workload,
    /// Limits that it was planned under.
    pub limits: &'a Limits,
    /// Plan to write.
    pub plan: &'a Plan,
    /// Check of the plan.
    pub score: &'a Score,
}

/// Defaults that most formats share.
const PLAIN: PlanFormat = PlanFormat {
    id: "",
    aliases: &[],
    title: "",
    help: "",
    keywords: "",
    suffix: "",
    families: &[],
    perhaps: &[],
    writes: FormatWriter::Run,
};

/// All formats in the order shown: the plan document first, engines last.
pub static FORMATS: LazyLock<Vec<PlanFormat>> = LazyLock::new(|| {
    let mut all = vec![
        PlanFormat {
            id: "plan-json",
            title: "plan JSON",
            help: "the whole plan; `plantui check` reads it",
            suffix: "plan.json",
            ..PLAIN
        },
        PlanFormat {
            id: "chrome-trace",
            title: "Chrome trace",
            help: "the timeline, for ui.perfetto.dev or chrome://tracing",
            keywords: "perfetto timeline",
            suffix: "trace.json",
            writes: FormatWriter::Trace,
            ..PLAIN
        },
        PlanFormat {
            id: "svg",
            title: "SVG picture",
            help: "the stages with their load, memory and transfers, for papers and slides",
            keywords: "drawing chart",
            suffix: "svg",
            writes: FormatWriter::Plan(|it| plan_svg::to_svg(it.workload, it.limits, it.plan, it.score)),
            ..PLAIN
        },
        PlanFormat {
            id: "csv",
            title: "CSV",
            help: "a row per node with its costs",
            keywords: "spreadsheet table",
            suffix: "csv",
            writes: FormatWriter::Plan(|it| plan_csv::to_csv(it.workload, it.plan, it.score)),
            ..PLAIN
        },
        PlanFormat {
            id: "dot",
            title: "Graphviz dot",
            help: "stages as clusters of nodes; `dot -Tsvg` draws it",
            suffix: "dot",
            writes: FormatWriter::Plan(to_dot),
            ..PLAIN
        },
        PlanFormat {
            id: "piper-result",
            aliases: &["piper"],
            title: "Piper result",
            help: "stages in the format of the published program",
            suffix: "piper.json",
            families: &["pipelines", "layers", "placements"],
            writes: FormatWriter::Plan(|it| piper_result::to_json(it.workload, it.plan)),
            ..PLAIN
        },
        PlanFormat {
            id: "pipedream",
            title: "PipeDream graph",
            help: "the profile with a stage_id on each line, for PipeDream's tools",
            suffix: "graph.txt",
            families: &["layers"],
            writes: FormatWriter::Plan(pipedream_graph::to_text),
            ..PLAIN
        },
        PlanFormat {
            id: "rank-file",
            title: "rank file",
            help: "machine and device of every rank, for launchers; CSV",
            keywords: "mapping launch slurm torchrun CUDA_VISIBLE_DEVICES",
            suffix: "ranks.csv",
            families: &["pipelines", "layers", "placements", "training", "mixed"],
            writes: FormatWriter::Plan(rank_file::to_csv),
            ..PLAIN
        },
        PlanFormat {
            id: "torch-schedule",
            title: "PyTorch schedule",
            help: "order of actions for torch.distributed.pipelining and torchtitan, in CSV: a row per rank",
            keywords: "torch-schedule torchtitan pipeline_parallel_schedule_csv",
            suffix: "schedule.csv",
            families: &["pipelines", "layers", "placements", "training", "mixed"],
            writes: FormatWriter::Schedule,
            ..PLAIN
        },
        PlanFormat {
            id: "placement-split",
            title: "placement split",
            help: "accelerators and CPUs in the format of the published programs",
            suffix: "split.json",
            families: &["placements"],
            writes: FormatWriter::Plan(|it| split::to_json(it.workload, it.limits, it.plan)),
            ..PLAIN
        },
        PlanFormat {
            id: "jax",
            title: "JAX sharding",
            help: "a PartitionSpec for every operator, in Python",
            suffix: "jax.py",
            families: &["operators"],
            writes: FormatWriter::Plan(|it| jax_sharding::to_python(it.workload, it.plan)),
            ..PLAIN
        },
    ];
    all.extend(Engine::ALL.into_iter().map(|engine| PlanFormat {
        id: engine.id(),
        title: engine.title(),
        help: engine.help(),
        keywords: engine.id(),
        suffix: engine.suffix(),
        families: match engine {
            Engine::Accelerate => &["training"],
            _ => &["pipelines", "layers", "training"],
        },
        // A device placement whose devices hold consecutive whole layers runs as a pipeline, and so does a plan on several
        // kinds of devices whose stages have equal degrees.
        perhaps: if engine == Engine::Accelerate { &[] } else { &["placements", "mixed"] },
        writes: FormatWriter::Engine(engine),
        ..PLAIN
    }));
    all
});

fn to_dot(it: &ScoredPlan<'_>) -> String {
    operator_dot::to_dot(it.workload, it.plan, it.score)
        .unwrap_or_else(|| pipeline_dot::to_dot(it.workload, it.plan, it.score))
}

/// Schedule of a pipeline, as PyTorch reads it.
///
/// # Errors
/// A sentence if its stages have different numbers of replicas, or if it cannot run the schedule.
pub fn schedule_csv(pipeline: &Pipeline, schedule: Schedule) -> Result<String, String> {
    let replicas = |stage: &PipelineStage| stage.replicas.max(1);
    let first = pipeline.stages.first().map_or(1, replicas);
    if let Some(other) = pipeline.stages.iter().position(|stage| replicas(stage) != first) {
        let (number, count) = (other + 1, replicas(&pipeline.stages[other]));
        return Err(format!(
            "a file has one order for each rank, and stage 1 has {first} replicas, stage {number} has {count}"
        ));
    }
    if pipeline.runs_once() {
        return Err("--to torch-schedule cannot run this plan: it runs one sample, without a schedule".into());
    }
    let listed = pipeline.clone().of_one_replica().explicit(schedule);
    listed.map(|listed| csv::write(&listed)).ok_or_else(|| pipeline.refusal(schedule).unwrap_or_default())
}

/// Format with this id or former id.
pub fn find(id: &str) -> Option<&'static PlanFormat> {
    FORMATS.iter().find(|format| format.id == id || format.aliases.contains(&id))
}

/// Formats that can hold plans of a workload, in the order shown.
pub fn of(workload: &Workload) -> impl Iterator<Item = &'static PlanFormat> {
    FORMATS.iter().filter(|format| format.suits(workload))
}

fn of_family(id: &'static str) -> impl Iterator<Item = &'static PlanFormat> {
    FORMATS.iter().filter(move |format| format.families.is_empty() || format.families.contains(&id))
}

impl PartialEq for PlanFormat {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for PlanFormat {}

/// Run to export.
#[derive(Debug, Clone, Copy)]
pub struct ExportInput<'a> {
    /// Run to write.
    pub run: plan_json::ReportedRun<'a>,
    /// Settings for engine exports.
    pub engine: &'a engine::EngineSettings,
}

/// Format of the plan document.
pub fn plan_json() -> &'static PlanFormat {
    &FORMATS[0]
}

impl PlanFormat {
    /// True if every plan of this workload can be exported.
    pub fn suits(&self, workload: &Workload) -> bool {
        self.families.is_empty() || self.families.contains(&family::of(workload).id())
    }

    /// True if some plan of this workload may be exportable.
    pub fn may_suit(&self, workload: &Workload) -> bool {
        self.suits(workload) || self.perhaps.contains(&family::of(workload).id())
    }

    /// Reason why a workload does not suit the format, and the repair.
    pub fn refusal(&self, workload: &Workload) -> (String, String) {
        let name = &workload.name;
        let of = self.families.first().copied().unwrap_or("plans");
        let others = of_family(family::of(workload).id()).map(|format| format.id);
        let others: Vec<&str> = others.collect();
        let repair = format!("its plans export as {}", others.join(", "));
        match of {
            "training" => (format!("is for models to be trained, and {name} is a profile of layers"), repair),
            "operators" => (
                format!("is for operator graphs, and {name} is not one"),
                "make one with `plantui generate transformer`".into(),
            ),
            "placements" => (format!("holds a device placement, and {name} is not one"), repair),
            _ if family::of(workload).nodes_are_operators() => {
                (format!("needs a pipeline, and {name} is an operator graph"), repair)
            }
            _ => (format!("needs a pipeline of layers, and {name} is not one"), repair),
        }
    }

    /// Writes a run.
    ///
    /// # Errors
    /// Errors of `out`. A sentence if there is no plan, no simulation, or no plan that the engine can run.
    pub fn write(&self, exported: &ExportInput<'_>, out: &mut dyn Write) -> io::Result<()> {
        let plan_json::ReportedRun { workload, limits, outcome, score, simulation, .. } = exported.run;
        let plan = || outcome.plan.as_ref().ok_or_else(|| io::Error::other("there is no plan"));
        match self.writes {
            FormatWriter::Run => out.write_all(plan_json::to_json(&plan_json::document(&exported.run)).as_bytes()),
            FormatWriter::Plan(text) => {
                let score = score.ok_or_else(|| io::Error::other("there is no plan"))?;
                out.write_all(text(&ScoredPlan { workload, limits, plan: plan()?, score }).as_bytes())
            }
            FormatWriter::Engine(engine) => {
                let exported = engine::export(engine, workload, limits, plan()?, exported.engine);
                out.write_all(exported.map_err(io::Error::other)?.text.as_bytes())
            }
            FormatWriter::Schedule => {
                let simulated = simulation.ok_or_else(|| io::Error::other("the schedule is not simulated yet"))?;
                let text = schedule_csv(simulated.pipeline, simulated.schedule).map_err(io::Error::other)?;
                out.write_all(text.as_bytes())
            }
            FormatWriter::Trace => {
                let simulated = simulation.ok_or_else(|| io::Error::other("the schedule is not simulated yet"))?;
                chrome_trace::write(&mut { out }, plan()?, simulated.pipeline, simulated.schedule, simulated.timeline)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own_and_says_what_it_is() {
        let ids: std::collections::BTreeSet<_> = FORMATS.iter().flat_map(|f| f.aliases.iter().chain([&f.id])).collect();
        assert_eq!(ids.len(), FORMATS.len() + 1);
        assert!(FORMATS.iter().all(|f| !f.title.is_empty() && !f.help.is_empty() && !f.suffix.is_empty()));
        assert!(ids.iter().all(|id| find(id).is_some()));
        assert_eq!(find("piper"), find("piper-result"));
    }

    #[test]
    fn what_a_workload_cannot_leave_as_is_refused_with_the_reason() {
        let workload = plantui_core::workload::builtin();
        let ids: Vec<&str> = of(&workload).map(|format| format.id).collect();
        assert!(ids.contains(&"megatron") && ids.contains(&"piper-result") && !ids.contains(&"jax"), "{ids:?}");
        for format in FORMATS.iter().filter(|format| !format.suits(&workload)) {
            assert!(format.refusal(&workload).0.contains(&workload.name), "{}", format.id);
        }
    }
}
