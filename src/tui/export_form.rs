//! Export form: format and path.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Arc,
};

use tui_input::Input;

use super::{shown::ShownRun, simulated::Simulated};
use crate::{
    export::{
        engine::EngineSettings,
        formats::{self, ExportInput, PlanFormat},
        fullness,
        plan_json::{ReportedRun, ReportedSimulation},
    },
    simulate::Schedule,
    study::{compare::TIME_FOR_EACH, nearest},
};

/// Export format.
pub(super) type ExportFormat = &'static PlanFormat;

/// Plan and timeline to export: those on the screen when the form was opened.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) shown: Arc<ShownRun>,
    pub(super) simulated: Option<Arc<Simulated>>,
}

impl Source {
    /// True if both are the same plan, simulated the same way.
    fn is(&self, other: &Source) -> bool {
        let simulated = match (&self.simulated, &other.simulated) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (None, None) => true,
            _ => false,
        };
        simulated && Arc::ptr_eq(&self.shown, &other.shown)
    }

    /// Size of the exported file, bytes; 0 if it cannot be written. Takes as long as writing it.
    pub(super) fn size(&self, format: ExportFormat) -> u64 {
        let mut counted = Counted(0);
        self.write(format, &mut counted).map_or(0, |()| counted.0)
    }

    /// Writes the plan in a format.
    pub(super) fn write(&self, format: ExportFormat, out: &mut dyn Write) -> io::Result<()> {
        let shown = &self.shown;
        let simulation = self.simulated.as_ref().map(|simulated| ReportedSimulation {
            pipeline: &simulated.pipeline,
            schedule: simulated.schedule(),
            timeline: &simulated.timeline,
        });
        let run = ReportedRun {
            workload: &shown.workload,
            limits: &shown.limits,
            planner: shown.planner,
            options: &shown.options,
            outcome: &shown.outcome,
            score: shown.score.as_ref(),
            simulation,
        };
        let engine = EngineSettings {
            deadline: Some(TIME_FOR_EACH),
            // A schedule chosen on the screen; otherwise every engine uses its own default.
            schedule: self
                .simulated
                .as_ref()
                .map(|simulated| simulated.schedule())
                .filter(|own| *own != self.planned_for()),
            virtual_stages: self.simulated.as_ref().map(|simulated| simulated.pipeline.settings.virtual_stages),
            recipe: shown.workload.recipe,
            nearest: Some(nearest::plans),
            ..EngineSettings::default()
        };
        format.write(&ExportInput { run, engine: &engine }, out)
    }

    /// Schedule of the plan if no other is chosen.
    fn planned_for(&self) -> Schedule {
        let own = self.shown.plan().and_then(|(plan, _)| plan.execution);
        own.map_or(Schedule::ALL[0], |own| own.schedule)
    }

    /// Plan as JSON text.
    pub(super) fn plan_json(&self) -> Option<String> {
        let mut text = vec![];
        self.write(formats::plan_json(), &mut text).ok()?;
        String::from_utf8(text).ok()
    }
}

/// Writer that counts bytes.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Size of the preview, bytes.
pub(super) const PREVIEW: usize = 1 << 16;

/// Writer that keeps the first bytes and refuses the rest, so that previewing a long trace does not write all of it.
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

/// State of the form.
#[derive(Debug, Clone)]
pub(super) struct ExportForm {
    pub(super) source: Source,
    pub(super) format: ExportFormat,
    pub(super) path: Input,
    /// True while the path is the proposed one, which follows the format.
    proposed: bool,
    /// True if the file exists and Enter will overwrite it.
    pub(super) overwrite: bool,
    /// Reason why the file was not written.
    pub(super) error: Option<String>,
    /// Warning about devices that are almost full.
    pub(super) warning: Option<String>,
    /// First lines of the file to write.
    pub(super) preview: Vec<String>,
    /// First preview line shown.
    pub(super) first_line: usize,
    /// Size of the whole file, bytes; `None` while it is counted.
    pub(super) bytes: Option<u64>,
}

impl ExportForm {
    /// Form with the first format and a path from the names of workload and planner.
    pub(super) fn new(source: Source) -> Self {
        let limits = &source.shown.limits;
        let other = source.simulated.as_ref().filter(|simulated| simulated.schedule() != source.planned_for());
        let warning = source.shown.plan().and_then(|(_, score)| match other {
            Some(simulated) => fullness::simulated(&simulated.timeline, simulated.schedule(), limits),
            None => fullness::warning(score, limits),
        });
        let mut form = ExportForm {
            source,
            format: formats::plan_json(),
            path: Input::default(),
            proposed: true,
            overwrite: false,
            error: None,
            warning,
            preview: vec![],
            first_line: 0,
            bytes: None,
        };
        form.choose(formats::plan_json());
        form
    }

    /// Selects a format.
    pub(super) fn choose(&mut self, format: ExportFormat) {
        self.format = format;
        if self.proposed {
            let shown = &self.source.shown;
            self.path = format!("{}.{}.{}", shown.workload.name, shown.planner.id, format.suffix).into();
        }
        self.overwrite = false;
        let mut beginning = Beginning(vec![]);
        let written = self.source.write(format, &mut beginning);
        // A full preview always ends with `Beginning`'s own error.
        self.error = written.err().filter(|_| beginning.0.len() < PREVIEW).map(|e| e.to_string());
        self.preview = String::from_utf8_lossy(&beginning.0).lines().map(str::to_string).collect();
        self.first_line = 0;
        self.bytes = (beginning.0.len() < PREVIEW).then_some(beginning.0.len() as u64);
    }

    /// Stores a counted size, if it belongs to the current plan and format.
    pub(super) fn take_size(&mut self, source: &Source, format: ExportFormat, bytes: u64) {
        if self.format == format && self.source.is(source) {
            self.bytes = Some(bytes);
        }
    }

    /// Scrolls the preview by lines.
    pub(super) fn scroll(&mut self, by: isize) {
        let last = self.preview.len().saturating_sub(1);
        self.first_line = self.first_line.saturating_add_signed(by).min(last);
    }

    /// Selects the next or previous format.
    pub(super) fn step(&mut self, forwards: bool) {
        let all: Vec<_> = formats::of(&self.source.shown.workload).collect();
        let at = all.iter().position(|f| *f == self.format).unwrap_or(0);
        self.choose(all[(at + if forwards { 1 } else { all.len() - 1 }) % all.len()]);
    }

    /// Resets what depends on the path after it was typed.
    pub(super) fn typed(&mut self) {
        self.proposed = false;
        self.overwrite = false;
        self.error = None;
    }

    /// Path to write to.
    pub(super) fn target(&self) -> PathBuf {
        PathBuf::from(self.path.value().trim())
    }
}
