//! What can be exported, and the form that asks for a format and a path.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use tui_input::Input;

use super::{played::Played, shown::Shown};
use crate::{
    export::{
        chrome_trace,
        engine::{self, Engine, Settings},
        piper_result, plan_csv,
        plan_json::{self, Run, Simulation},
        split,
    },
    workload::{Profile, Workload},
};

/// A way to write a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExportFormat {
    /// Schema `plantui.plan/1`.
    PlanJson,
    /// Piper's own result.
    PiperResult,
    /// The published split of a device placement.
    PlacementSplit,
    /// The timeline, for Perfetto or chrome://tracing.
    ChromeTrace,
    /// A row per node.
    Csv,
    /// What a training engine takes.
    Engine(Engine),
}

impl ExportFormat {
    /// The formats that can hold plans of a workload, in the order they are shown.
    pub(super) fn of(workload: &Workload) -> Vec<ExportFormat> {
        let mut formats = vec![ExportFormat::PlanJson, ExportFormat::ChromeTrace, ExportFormat::Csv];
        match &workload.profile {
            Profile::Piper(_) => {
                formats.push(ExportFormat::PiperResult);
                formats.extend(Engine::ALL.map(ExportFormat::Engine));
            }
            Profile::Placement(_) => formats.push(ExportFormat::PlacementSplit),
            Profile::Layers(_) | Profile::Operators(_) => {}
        }
        formats
    }

    /// As the form names it.
    pub(super) fn title(self) -> &'static str {
        match self {
            ExportFormat::PlanJson => "plan JSON",
            ExportFormat::PiperResult => "Piper result",
            ExportFormat::PlacementSplit => "placement split",
            ExportFormat::ChromeTrace => "Chrome trace",
            ExportFormat::Csv => "CSV",
            ExportFormat::Engine(engine) => engine.title(),
        }
    }

    /// One line on what it is for.
    pub(super) fn help(self) -> &'static str {
        match self {
            ExportFormat::PlanJson => "everything about the plan; `plantui check` reads it",
            ExportFormat::PiperResult => "stages as the published program writes them",
            ExportFormat::PlacementSplit => "accelerators and CPUs as the published programs write them",
            ExportFormat::ChromeTrace => "the timeline, for ui.perfetto.dev or chrome://tracing",
            ExportFormat::Csv => "a row per node with its costs",
            ExportFormat::Engine(engine) => engine.help(),
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            ExportFormat::PlanJson => "plan.json",
            ExportFormat::PiperResult => "piper.json",
            ExportFormat::PlacementSplit => "split.json",
            ExportFormat::ChromeTrace => "trace.json",
            ExportFormat::Csv => "csv",
            ExportFormat::Engine(engine) => engine.suffix(),
        }
    }
}

/// The plan and the timeline that are exported: those that were on the screen when the form was opened.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) shown: Arc<Shown>,
    pub(super) played: Option<Arc<Played>>,
}

impl Source {
    /// Writes a format.
    pub(super) fn write(&self, format: ExportFormat, out: &mut dyn Write) -> io::Result<()> {
        let shown = &self.shown;
        let none = || io::Error::other("there is no plan");
        let (plan, score) = shown.plan().ok_or_else(none)?;
        match format {
            ExportFormat::PlanJson => {
                let simulation = self.played.as_ref().map(|played| Simulation {
                    pipeline: &played.pipeline,
                    schedule: played.schedule(),
                    timeline: &played.timeline,
                });
                let run = Run {
                    workload: &shown.workload,
                    limits: &shown.limits,
                    planner: shown.planner,
                    options: &shown.options,
                    outcome: &shown.outcome,
                    score: Some(score),
                    simulation,
                };
                out.write_all(plan_json::to_json(&plan_json::document(&run)).as_bytes())
            }
            ExportFormat::PiperResult => out.write_all(piper_result::to_json(&shown.workload, plan).as_bytes()),
            ExportFormat::PlacementSplit => {
                out.write_all(split::to_json(&shown.workload, &shown.limits, plan).as_bytes())
            }
            ExportFormat::Csv => out.write_all(plan_csv::to_csv(&shown.workload, plan, score).as_bytes()),
            ExportFormat::Engine(engine) => {
                let exported = engine::export(engine, &shown.workload, &shown.limits, plan, &Settings::default());
                out.write_all(exported.map_err(io::Error::other)?.text.as_bytes())
            }
            ExportFormat::ChromeTrace => {
                let played = self.played.as_ref().ok_or_else(|| io::Error::other("the schedule is not played yet"))?;
                let schedule = played.schedule();
                chrome_trace::write(&mut { out }, plan, &played.pipeline, schedule, &played.timeline)
            }
        }
    }

    /// The plan JSON as text.
    pub(super) fn plan_json(&self) -> Option<String> {
        let mut text = vec![];
        self.write(ExportFormat::PlanJson, &mut text).ok()?;
        String::from_utf8(text).ok()
    }
}

/// Bytes of the preview.
const PREVIEW: usize = 1 << 16;

/// Keeps the first bytes and refuses the rest, so that a long trace is not written to show its beginning.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = PREVIEW - self.0.len();
        if room == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(room);
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The form.
#[derive(Debug, Clone)]
pub(super) struct ExportForm {
    pub(super) source: Source,
    pub(super) format: ExportFormat,
    pub(super) path: Input,
    /// Whether the path is still the proposed one, which follows the format.
    proposed: bool,
    /// Whether the file is there and Enter will write over it.
    pub(super) overwrite: bool,
    /// Why it was not written.
    pub(super) error: Option<String>,
    /// The beginning of what will be written.
    pub(super) preview: Vec<String>,
    /// Its first line that is shown.
    pub(super) first_line: usize,
}

impl ExportForm {
    /// A form with the first format and a path made of the workload's and the planner's names.
    pub(super) fn new(source: Source) -> Self {
        let mut form = ExportForm {
            source,
            format: ExportFormat::PlanJson,
            path: Input::default(),
            proposed: true,
            overwrite: false,
            error: None,
            preview: vec![],
            first_line: 0,
        };
        form.choose(ExportFormat::PlanJson);
        form
    }

    /// Takes a format.
    pub(super) fn choose(&mut self, format: ExportFormat) {
        self.format = format;
        if self.proposed {
            let shown = &self.source.shown;
            self.path = format!("{}.{}.{}", shown.workload.name, shown.planner.id, format.suffix()).into();
        }
        self.overwrite = false;
        let mut beginning = Beginning(vec![]);
        let written = self.source.write(format, &mut beginning);
        // A full preview ends with an error of its own making.
        self.error = written.err().filter(|_| beginning.0.len() < PREVIEW).map(|e| e.to_string());
        self.preview = String::from_utf8_lossy(&beginning.0).lines().map(str::to_string).collect();
        self.first_line = 0;
    }

    /// Moves the preview by lines.
    pub(super) fn scroll(&mut self, by: isize) {
        let last = self.preview.len().saturating_sub(1);
        self.first_line = self.first_line.saturating_add_signed(by).min(last);
    }

    /// The next or previous format.
    pub(super) fn step(&mut self, forwards: bool) {
        let all = ExportFormat::of(&self.source.shown.workload);
        let at = all.iter().position(|f| *f == self.format).unwrap_or(0);
        self.choose(all[(at + if forwards { 1 } else { all.len() - 1 }) % all.len()]);
    }

    /// The path was typed.
    pub(super) fn typed(&mut self) {
        self.proposed = false;
        self.overwrite = false;
        self.error = None;
    }

    /// Where to write.
    pub(super) fn target(&self) -> PathBuf {
        PathBuf::from(self.path.value().trim())
    }
}
